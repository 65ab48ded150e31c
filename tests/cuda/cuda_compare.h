/* Kernels on the shim against the scalar code: operands that lie on either side, and two kinds of nearness. */
#ifndef MTAN_TESTS_CUDA_COMPARE_H
#define MTAN_TESTS_CUDA_COMPARE_H

#include "check.h"
#include "cuda_driver.h"
#include "cuda_shim.h"
#include "kernel_cases.h"

/* The scalar code of the fused class, whose bits kernels.cu promises for part of what it does; or, on a CPU without FMA,
 * the other one, and then only nearness is asked for. */
const mtan_backend *cuda_expected(void);

/* n reals of the one side against the other: the same bits (where the expected code is fused), or within 1e-5 of the largest. */
int cuda_compare(const char *name, const mtan_real *got, const mtan_real *expected, size_t n, kernel_nearness nearness);

/* Did the shim find nothing since the last call? Prints the first fault. */
int cuda_no_faults(const char *name);

/* Runs a case for both tables; 0, with a line, when they differ or the shim finds a fault. */
int cuda_agree(const kernel_case *c, const kernel_shape *s, kernel_nearness nearness, mtan_cuda *device, uint64_t seed);

/* Every case of kernel_cases.h on the device and on the scalar table. 1: all agree. */
int cuda_kernels_agree(mtan_cuda *device, uint64_t seed);

/* Small runs of the kernels that have barriers, by number: does it agree? -1 past the last. */
int cuda_barrier_run(int index, mtan_cuda *device);

#endif
