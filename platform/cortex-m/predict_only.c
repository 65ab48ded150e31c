/* mtan.c for an image that only predicts: the same code under a table without the kernels of losses, gradients and
 * optimisers, which so fall to the linker's --gc-sections. Stands in for mtan.c. A trainer in such a build would call a
 * null pointer. */
#define MTAN_NO_TABLE
#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wunused-function" /* what the table leaves out */
#endif
#include "../../mtan.c"

#define LEFT_OUT(result, name, arguments)

const mtan_backend mtan_backend_scalar = {
    MTAN_KERNELS(MTAN_SCALAR, LEFT_OUT).fused = MTAN_FUSED,
    .name = MTAN_BACKEND_NAME,
};
