/* mtan_neon.c: the kernels for NEON (AArch64), as the table mtan_backend_neon. Everything that has no fast form in
 * kernels.inc is the scalar kernel of mtan.c compiled with this file's flags, so the table is whole and of one class.
 *
 *     cc -O2 -isystem <folder of simde/> -c simd/mtan_neon.c
 */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function" /* scalar kernels that have a fast form */
#endif
#if !defined(__aarch64__) && !defined(_M_ARM64)
#error "AArch64 only: 32-bit NEON divides by estimates"
#endif

#define VEC_NEON
#define MTAN_INTERNALS
#define MTAN_KERNELS_ONLY
#define MTAN_NO_TABLE
#ifndef MTAN_BACKEND
#define MTAN_BACKEND mtan_backend_neon
#define MTAN_BACKEND_NAME "neon"
#endif
#include "mtan_simd.h"
#include "vec.h"
#include "../mtan.c"
#include "kernels.inc"
