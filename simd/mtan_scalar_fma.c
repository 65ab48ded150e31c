/* mtan_scalar_fma.c: the scalar kernels of mtan.c compiled for fused multiply-add, as mtan_backend_scalar_fma: the
 * reference of the fused class, for a program whose mtan.c is compiled without flags.
 *
 *     cc -O2 -mfma -c simd/mtan_scalar_fma.c
 */
#if !defined(__FMA__) && !defined(__ARM_FEATURE_FMA) && !defined(__FP_FAST_FMAF)
#error "compile with -mfma"
#endif
#define MTAN_KERNELS_ONLY
#define MTAN_BACKEND mtan_backend_scalar_fma
#define MTAN_BACKEND_NAME "scalar-fma"
#include "../mtan.c"
#include "mtan_simd.h"
