/* The interface between cuda.c, which owns the device, and backend.c, which launches the kernels. */
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

/* The device in use. Null when there is none or it has failed: callers then do nothing. */
mtan_cuda *mtan_cuda_current(void);

/* The device address of a mirrored host address; without mirrors, the address itself. Null stays null. An address
 * outside of all mirrors fails the device. */
void *mtan_cuda_there(const void *address);

/* Runs a kernel with its structure of arguments; a grid without blocks does nothing. */
void mtan_cuda_launch(mtan_cuda_kernel kernel, size_t grid_x, size_t grid_y, size_t grid_z, const void *arguments);

/* Device memory for intermediate sums, valid until the next call. Null when there is none; the device has failed. */
void *mtan_cuda_scratch(size_t bytes);

/* Waits for all work before it, then returns the number at a device address; NaN when the device has failed. */
double mtan_cuda_answer(const double *address);

/* c = [c +] op(a) op(b) by cuBLAS; 0 when there is no cuBLAS or it failed: c is not computed. */
int mtan_cuda_sgemm(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, int a_transposed, const mtan_real *b,
                    size_t ldb, int b_transposed, int32_t m, int32_t n, int32_t k, int32_t add);

/* Marks the device as failed. */
void mtan_cuda_refuse(const char *what);

#endif
