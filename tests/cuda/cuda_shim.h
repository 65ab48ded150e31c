/* A GPU for tests: kernels written in CUDA C++ run on the CPU, one block at a time, and what they touch is watched.
 *
 * The kernels are compiled as C++ with this file before them and with -fsanitize=thread, which makes the compiler call a
 * function at every load and store; the functions called are those of cuda_shim.c, not the thread sanitizer's. Threads of a
 * block are fibres that run in an order drawn from a seed until they stand at a barrier or exchange values in a warp.
 *
 * Faults that are found:
 *   two threads touch one word of shared or global memory with nothing between that orders them, and one of them writes
 *     (__syncthreads orders the threads of a block, __syncwarp those of a warp, nothing those of two blocks)
 *   memory is touched that is neither shared nor the device's
 *   shared memory is read that the block has not written
 *   threads of a block stand at different barriers, or some have returned while others wait
 *
 * Compiled without -fsanitize=thread kernels run as well, but only the last kind is found: shim_watches tells.
 */
#ifndef MTAN_TESTS_CUDA_SHIM_H
#define MTAN_TESTS_CUDA_SHIM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct shim_index {
    unsigned x, y, z;
} shim_index;

/* A kernel that takes one structure. */
typedef struct shim_kernel {
    const char *name;
    void (*run)(const void *arguments);
    size_t bytes;
} shim_kernel;

typedef enum {
    SHIM_NONE,
    SHIM_RACE,      /* two threads and a word */
    SHIM_OUTSIDE,   /* neither shared nor device memory */
    SHIM_UNWRITTEN, /* shared memory read before it was written */
    SHIM_BARRIER,   /* a barrier or an exchange that not all threads reach */
    SHIM_FAULTS
} shim_fault;

/* How kernels run from now on, and what was found. */
typedef struct shim_state {
    unsigned long long seed;
    int check_memory;               /* whether global memory has to be the device's: see shim_memory_add */
    int skipped;                    /* the barrier on this line of the kernels does nothing; 0: all do */
    int faults, found[SHIM_FAULTS]; /* in all, and of each kind */
    shim_fault first;
    char text[256]; /* of the first */
    /* lines of the barriers that were met; at most 64 */
    int lines, line[64];
} shim_state;
extern shim_state shim;

/* Forgets the faults, keeps the rest. */
void shim_clear(void);

/* 1: loads and stores are watched. Known once a kernel has run. */
int shim_watches(void);

/* Device memory: a block that kernels may touch. */
void shim_memory_add(const void *from, size_t bytes);
void shim_memory_remove(const void *from);

/* Runs a kernel to its end; 0 when a block has more than 1024 threads, or when one could not run to its end. */
int shim_launch(const shim_kernel *kernel, shim_index grid, shim_index block, const void *arguments);

/* ---- what kernels call ---- */

/* A fibre's own never change while it runs. */
#ifdef __GNUC__
#define SHIM_CONST __attribute__((const))
#else
#define SHIM_CONST
#endif
shim_index shim_thread_index(void) SHIM_CONST;
shim_index shim_block_index(void) SHIM_CONST;
shim_index shim_block_size(void) SHIM_CONST;
shim_index shim_grid_size(void) SHIM_CONST;
void shim_barrier(int line);
void shim_warp_barrier(int line);
unsigned shim_exchange(unsigned bits, unsigned lane_xor, int line);

#ifdef __cplusplus
}
#endif

/* ---- CUDA's vocabulary, as far as kernels.cu uses it ---- */

#if defined __cplusplus && defined MTAN_CUDA_SHIM

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#ifdef __ELF__
#define __shared__ static __attribute__((section("mtan_shared")))
#else
#define __shared__ static
#endif
#define threadIdx shim_thread_index()
#define blockIdx shim_block_index()
#define blockDim shim_block_size()
#define gridDim shim_grid_size()
#define __syncthreads() shim_barrier(__LINE__)
#define __syncwarp() shim_warp_barrier(__LINE__)
#define __shfl_xor_sync(mask, value, lane) shim_shuffle((value), (lane), __LINE__)

struct __attribute__((aligned(16))) float4 {
    float x, y, z, w;
};

static inline float fmaf(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}
static inline float __fsqrt_rn(float x) {
    return __builtin_sqrtf(x);
}
static inline unsigned __float_as_uint(float x) {
    unsigned u;
    __builtin_memcpy(&u, &x, sizeof u);
    return u;
}
static inline float __uint_as_float(unsigned u) {
    float x;
    __builtin_memcpy(&x, &u, sizeof x);
    return x;
}
static inline int shim_shuffle(int x, int lane, int line) {
    return (int)shim_exchange((unsigned)x, (unsigned)lane, line);
}
static inline float shim_shuffle(float x, int lane, int line) {
    return __uint_as_float(shim_exchange(__float_as_uint(x), (unsigned)lane, line));
}

#endif

#endif
