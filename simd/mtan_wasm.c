/* mtan_wasm.c: the kernels for WebAssembly's simd128, as the table mtan_backend_wasm. Kernels without a fast form
 * in kernels.inc are the scalar ones of mtan.c, compiled with this file's flags. So the table is complete, and all its
 * results are of one class.
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

#include <simde/wasm/simd128.h>

#define LANES 4
#define TILE_ROWS 6 /* engines map it to 16 registers on x86-64 */
#define PANEL_REALS 4096
typedef simde_v128_t vf;
typedef simde_v128_t vu;
typedef simde_v128_t vm;

#define v_set1 simde_wasm_f32x4_splat
#define v_load simde_wasm_v128_load
#define v_store simde_wasm_v128_store
#define v_add simde_wasm_f32x4_add
#define v_sub simde_wasm_f32x4_sub
#define v_mul simde_wasm_f32x4_mul
#define v_div simde_wasm_f32x4_div
#define v_sqrt simde_wasm_f32x4_sqrt
#define v_fma(a, b, c) simde_wasm_f32x4_add(simde_wasm_f32x4_mul(a, b), c)
#define v_min(a, b) simde_wasm_f32x4_pmin(b, a)
#define v_max(a, b) simde_wasm_f32x4_pmax(b, a)
#define v_lt simde_wasm_f32x4_lt
#define v_le simde_wasm_f32x4_le
#define v_eq simde_wasm_f32x4_eq
#define v_select(m, a, b) simde_wasm_v128_bitselect(a, b, m)
#define v_bits(x) (x)
#define v_floats(x) (x)
#define u_set1(x) simde_wasm_i32x4_splat((int32_t)(x))
#define u_add simde_wasm_i32x4_add
#define u_sub simde_wasm_i32x4_sub
#define u_and simde_wasm_v128_and
#define u_or simde_wasm_v128_or
#define u_xor simde_wasm_v128_xor
#define u_left simde_wasm_i32x4_shl
#define u_right simde_wasm_u32x4_shr

typedef simde_v128_t vi, vw;
#define i_zero() simde_wasm_i32x4_splat(0)
#define i_floats simde_wasm_f32x4_convert_i32x4
#define w_load simde_wasm_i16x8_load8x8
#define i_add_products(sum, w, x) simde_wasm_i32x4_add(sum, simde_wasm_i32x4_dot_i16x8(w, x))

#define MTAN_BACKEND mtan_backend_wasm
#define MTAN_BACKEND_NAME "wasm"
#include "kernels.inc"
