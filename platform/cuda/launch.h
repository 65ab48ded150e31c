/* Between cuda.c, which has the device, and backend.c, which has the kernels' callers. */
#ifndef MTAN_CUDA_LAUNCH_H
#define MTAN_CUDA_LAUNCH_H

#ifdef MTAN_DOUBLE
#error "the kernels work in float"
#endif

#include "arguments.h"
#define MTAN_INTERNALS
#include "mtan_cuda.h"

typedef enum {
#define X(name, arguments, x, y, hot) KERNEL_##name,
    MTAN_CUDA_KERNELS(X)
#undef X
        KERNEL_COUNT
} mtan_cuda_kernel;

/* The device in use, or null where there is none or it has failed: then nothing is to be done. */
mtan_cuda *mtan_cuda_current(void);

/* The device's address for one of the host's that is mirrored; without mirrors, the address itself. Null stays null, and an
 * address that is on no device fails the device. */
void *mtan_cuda_there(const void *address);

/* Runs a kernel with its structure of arguments; a grid without blocks does nothing. */
void mtan_cuda_launch(mtan_cuda_kernel kernel, size_t grid_x, size_t grid_y, size_t grid_z, const void *arguments);

/* Device memory for intermediate sums, until the next call; null, with the device failed, when there is none. */
void *mtan_cuda_scratch(size_t bytes);

/* The number that lies at a device address, when all before it is done; NaN from a device that has failed. */
double mtan_cuda_answer(const double *address);

/* c = [c +] op(a) op(b) by cuBLAS; 0: there is none. */
int mtan_cuda_sgemm(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, int a_transposed, const mtan_real *b,
                    size_t ldb, int b_transposed, int32_t m, int32_t n, int32_t k, int32_t add);

/* Marks the device as failed. */
void mtan_cuda_refuse(const char *what);

#endif
