/* mtan.c for an image that only predicts: the same code under a table without the kernels of losses, gradients and
 * optimisers, which so fall to the linker's --gc-sections. Stands in for mtan.c. A trainer in such a build would call a
 * null pointer. With MTAN_SMALL_ONLY it has mtan_small_classify alone, and what predictors need falls too. int8 products
 * use the DSP instructions where the CPU has them. */
#define MTAN_NO_TABLE
#ifdef __ARM_FEATURE_SIMD32
#include "../../simd/mtan_dsp.h"
#endif
#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wunused-function" /* what the table leaves out */
#endif
#include "../../mtan.c"

#define LEFT_OUT(result, name, arguments)

const mtan_backend mtan_backend_scalar = {
    MTAN_KERNELS(MTAN_SCALAR, LEFT_OUT).fused = MTAN_FUSED,
    .name = MTAN_BACKEND_NAME,
};
