/* mtan_avx512.c: the kernels for AVX-512, as the table mtan_backend_avx512. Everything that has no fast form in
 * kernels.inc is the scalar kernel of mtan.c compiled with this file's flags, so the table is whole and of one class.
 *
 *     cc -O2 -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma -isystem <folder of simde/> -c simd/mtan_avx512.c
 */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function" /* scalar kernels that have a fast form */
#endif
#if !defined(MTAN_EMULATED) && (!defined(__AVX512F__) || !defined(__AVX512DQ__) || !defined(__FMA__))
#error "compile with -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma"
#endif

#define VEC_AVX512
#define MTAN_INTERNALS
#define MTAN_KERNELS_ONLY
#define MTAN_NO_TABLE
#ifndef MTAN_BACKEND
#define MTAN_BACKEND mtan_backend_avx512
#define MTAN_BACKEND_NAME "avx512"
#endif
#include "mtan_simd.h"
#include "vec.h"
#include "../mtan.c"
#include "kernels.inc"
