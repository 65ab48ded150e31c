/* Kernels on the shim against the scalar code: operands that lie on either side, and the two kinds of comparison. */
#ifndef MTAN_TESTS_CUDA_COMPARE_H
#define MTAN_TESTS_CUDA_COMPARE_H

#include "check.h"
#include "cuda_driver.h"
#include "cuda_shim.h"
#include "small.h"

/* The scalar code of the fused class, whose bits kernels.cu promises for part of what it does; or, on a CPU without FMA,
 * the other one, and then only nearness is asked for. */
const mtan_backend *cuda_expected(void);

/* ---- one call of an entry, for either table ---- */

enum { CUDA_MOST_BLOCKS = 32 };

typedef struct {
    const mtan_backend *backend;
    mtan_cuda *device; /* null: operands lie on the host */
    uint64_t random;
    struct {
        void *given; /* what the kernel gets */
        mtan_real *reals;
        size_t count;
    } block[CUDA_MOST_BLOCKS];
    int n;
} cuda_work;

/* Operands; all of their reals are compared afterwards. The arrays given are the caller's. */
mtan_real *cuda_give(cuda_work *w, const mtan_real *x, size_t n);
const int32_t *cuda_give_ints(cuda_work *w, const int32_t *x, size_t n);
/* n reals in [-scale, scale), in [low, scale), or nothing yet */
mtan_real *cuda_take(cuda_work *w, size_t n, double scale);
mtan_real *cuda_take_positive(cuda_work *w, size_t n, double low, double scale);
mtan_real *cuda_take_nothing(cuda_work *w, size_t n);
/* A number that an entry returns, to be compared as an operand is. */
void cuda_keep(cuda_work *w, double x);

typedef struct {
    int32_t m, n, k, pad, add;
} cuda_shape;

typedef void cuda_run(cuda_work *w, const cuda_shape *s);

/* How near results have to be: the same bits (where the expected code is fused), or within 1e-5 of a block's largest. */
typedef enum { CUDA_SAME, CUDA_NEAR } cuda_nearness;

/* Runs it for both tables; 0, with a line, when they differ or the shim finds a fault. */
int cuda_agree(const char *name, cuda_run *run, const cuda_shape *s, cuda_nearness nearness, mtan_cuda *device,
               uint64_t seed);

/* n reals of the one side against the other. */
int cuda_compare(const char *name, const mtan_real *got, const mtan_real *expected, size_t n, cuda_nearness nearness);

/* Did the shim find nothing since the last call? Prints the first fault. */
int cuda_no_faults(const char *name);

/* The entries of the table, every one; and whole-batch kernels against the library's ops. 1: all agree. */
int cuda_entries_agree(mtan_cuda *device, uint64_t seed);
int cuda_batches_agree(mtan_cuda *device, uint64_t seed);

/* Small runs of the kernels that have barriers, by number: does it agree? -1 past the last. */
int cuda_barrier_run(int index, mtan_cuda *device);
int cuda_barrier_batch(int index, mtan_cuda *device);

#endif
