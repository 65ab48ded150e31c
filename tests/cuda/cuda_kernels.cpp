/* platform/cuda/kernels.cu, as it stands, for the shim; and a table of what is in it. */
#include "cuda_shim.h"

#include "../../platform/cuda/kernels.cu"

#include "cuda_cases.h"

#define X(name, arguments, x, y, hot)                                                                                  \
    static void run_##name(const void *a) {                                                                            \
        name##_kernel(*(const struct arguments *)a);                                                                   \
    }
MTAN_CUDA_KERNELS(X)
#undef X

extern "C" const shim_kernel cuda_kernels[] = {
#define X(name, arguments, x, y, hot) {#name "_kernel", run_##name, sizeof(struct arguments)},
    MTAN_CUDA_KERNELS(X)
#undef X
};

extern "C" const int cuda_kernel_count = sizeof cuda_kernels / sizeof *cuda_kernels;
