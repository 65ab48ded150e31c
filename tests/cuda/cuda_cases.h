/* The kernels of cuda_cases.cpp, in order; and the real ones, with the shim under them. */
#ifndef MTAN_TESTS_CUDA_CASES_H
#define MTAN_TESTS_CUDA_CASES_H

#include "cuda_shim.h"

struct case_arguments {
    float *y;
    const float *x;
};

#define CUDA_CASES(X)                                                                                                  \
    X(reverse)                                                                                                         \
    X(reverse_without_barrier)                                                                                         \
    X(reverse_twice)                                                                                                   \
    X(blocks_meet)                                                                                                     \
    X(blocks_read)                                                                                                     \
    X(one_too_far)                                                                                                     \
    X(never_written)                                                                                                   \
    X(half_at_barrier)                                                                                                 \
    X(two_barriers)                                                                                                    \
    X(warps)                                                                                                           \
    X(warps_without_barrier)                                                                                           \
    X(across_warps)                                                                                                    \
    X(lane_missing)                                                                                                    \
    X(bytes)

enum {
#define X(name) CASE_##name,
    CUDA_CASES(X)
#undef X
};

#ifdef __cplusplus
extern "C" {
#endif

extern const shim_kernel cuda_cases[];

/* Those of platform/cuda/kernels.cu, in the order of arguments.h. */
extern const shim_kernel cuda_kernels[];
extern const int cuda_kernel_count;

#ifdef __cplusplus
}
#endif

#endif
