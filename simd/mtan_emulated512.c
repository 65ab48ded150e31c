/* mtan_emulated512.c: the body of kernels.inc at width 16 for a CPU without AVX-512, as mtan_backend_emulated512:
 * SIMDe makes each 512-bit vector of two of 256 bits. For tests; mtan_avx2.c is faster.
 *
 *     cc -O2 -mavx2 -mfma -isystem <folder of simde/> -c simd/mtan_emulated512.c
 */
#if !defined(__AVX2__) || !defined(__FMA__)
#error "compile with -mavx2 -mfma"
#endif
#define MTAN_EMULATED
#define MTAN_BACKEND mtan_backend_emulated512
#define MTAN_BACKEND_NAME "emulated512"
#include "mtan_avx512.c"
