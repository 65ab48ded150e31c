/* Small kernels, most of them wrong on purpose, each in one way: what cuda_shim.c must find, and what it must not. */
#include "cuda_shim.h"

#include "cuda_cases.h"

/* Reverses 64 values through shared memory. */
static void reverse_kernel(const struct case_arguments a) {
    __shared__ float turned[64];
    turned[63 - threadIdx.x] = a.x[threadIdx.x];
    __syncthreads();
    a.y[threadIdx.x] = turned[threadIdx.x];
}

static void reverse_without_barrier_kernel(const struct case_arguments a) {
    __shared__ float turned[64];
    turned[63 - threadIdx.x] = a.x[threadIdx.x];
    a.y[threadIdx.x] = turned[threadIdx.x];
}

/* The barrier that keeps the second round from overwriting what the first is still reading is missing. */
static void reverse_twice_kernel(const struct case_arguments a) {
    __shared__ float turned[64];
    for (int i = 0; i < 2; i++) {
        turned[63 - threadIdx.x] = a.x[threadIdx.x];
        __syncthreads();
        a.y[threadIdx.x] = turned[threadIdx.x];
    }
}

/* Two blocks add to one word. */
static void blocks_meet_kernel(const struct case_arguments a) {
    if (threadIdx.x == 0) a.y[0] += 1;
}

/* Block 0 writes what the others read. */
static void blocks_read_kernel(const struct case_arguments a) {
    if (blockIdx.x == 0) a.y[0] = 1;
    else a.y[blockIdx.x * 64 + threadIdx.x] = a.y[0];
}

static void one_too_far_kernel(const struct case_arguments a) {
    a.y[threadIdx.x + 1] = a.x[threadIdx.x];
}

static void never_written_kernel(const struct case_arguments a) {
    __shared__ float nothing[64];
    if (threadIdx.x < 63) nothing[threadIdx.x] = 1;
    __syncthreads();
    a.y[threadIdx.x] = nothing[threadIdx.x];
}

static void half_at_barrier_kernel(const struct case_arguments a) {
    if (threadIdx.x < 32) __syncthreads();
    a.y[threadIdx.x] = 1;
}

static void two_barriers_kernel(const struct case_arguments a) {
    if (threadIdx.x < 32) __syncthreads();
    else __syncthreads(); /* another one */
    a.y[threadIdx.x] = 1;
}

/* Sums of 32 by exchanges, and neighbours within a warp handed over with a barrier of the warp. */
static void warps_kernel(const struct case_arguments a) {
    __shared__ float handed[64];
    float s = a.x[threadIdx.x];
    for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
    handed[threadIdx.x] = s + threadIdx.x;
    __syncwarp();
    a.y[threadIdx.x] = handed[threadIdx.x ^ 1];
}

/* The same without the barrier of the warp. */
static void warps_without_barrier_kernel(const struct case_arguments a) {
    __shared__ float handed[64];
    handed[threadIdx.x] = a.x[threadIdx.x];
    a.y[threadIdx.x] = handed[threadIdx.x ^ 1];
}

/* A barrier of a warp orders nothing between two warps. */
static void across_warps_kernel(const struct case_arguments a) {
    __shared__ float handed[64];
    handed[threadIdx.x] = a.x[threadIdx.x];
    __syncwarp();
    a.y[threadIdx.x] = handed[threadIdx.x ^ 32];
}

static void lane_missing_kernel(const struct case_arguments a) {
    if (threadIdx.x == 5) return;
    a.y[threadIdx.x] = __shfl_xor_sync(~0u, a.x[threadIdx.x], 1);
}

/* Neighbouring bytes by different threads: allowed. */
static void bytes_kernel(const struct case_arguments a) {
    ((signed char *)a.y)[threadIdx.x] = (signed char)threadIdx.x;
}

#define X(name)                                                                                                        \
    static void run_##name(const void *a) {                                                                            \
        name##_kernel(*(const struct case_arguments *)a);                                                              \
    }
CUDA_CASES(X)
#undef X

extern "C" const shim_kernel cuda_cases[] = {
#define X(name) {#name, run_##name, sizeof(struct case_arguments)},
    CUDA_CASES(X)
#undef X
};
