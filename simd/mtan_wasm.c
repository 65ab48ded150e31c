/* mtan_wasm.c: the kernels for WebAssembly's simd128, as the table mtan_backend_wasm. Everything that has no fast form in
 * kernels.inc is the scalar kernel of mtan.c compiled with this file's flags, so the table is whole and of one class.
 *
 *     emcc -O2 -msimd128 -isystem <folder of simde/> -c simd/mtan_wasm.c
 */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function" /* scalar kernels that have a fast form */
#endif
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#error "the unfused class: compile without -mfma"
#endif

#define VEC_WASM
#define MTAN_INTERNALS
#define MTAN_KERNELS_ONLY
#define MTAN_NO_TABLE
#ifndef MTAN_BACKEND
#define MTAN_BACKEND mtan_backend_wasm
#define MTAN_BACKEND_NAME "wasm"
#endif
#include "mtan_simd.h"
#include "vec.h"
#include "../mtan.c"
#include "kernels.inc"
