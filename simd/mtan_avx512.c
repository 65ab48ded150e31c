/* mtan_avx512.c: the kernels for AVX-512, as the table mtan_backend_avx512. Kernels without a fast form
 * in kernels.inc are the scalar ones of mtan.c, compiled with this file's flags. So the table is complete, and all its
 * results are of one class.
 *
 *     cc -O2 -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma [-isystem FOLDER_OF_SIMDE] -c simd/mtan_avx512.c
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

#include "intrinsics.h"

#define LANES 16
#define TILE_ROWS 12 /* of 32 registers: 24 sums, 2 columns, 1 row */
#define PANEL_REALS 16384
typedef SIMDE(_m512) vf;
typedef SIMDE(_m512i) vu;
typedef SIMDE(_mmask16) vm;

#define v_set1 SIMDE(mm512_set1_ps)
#define v_load(p) SIMDE(mm512_loadu_ps)(p)
#define v_store(p, x) SIMDE(mm512_storeu_ps)(p, x)
#define v_add SIMDE(mm512_add_ps)
#define v_sub SIMDE(mm512_sub_ps)
#define v_mul SIMDE(mm512_mul_ps)
#define v_div SIMDE(mm512_div_ps)
#define v_sqrt SIMDE(mm512_sqrt_ps)
#define v_fma SIMDE(mm512_fmadd_ps)
#define v_min SIMDE(mm512_min_ps)
#define v_max SIMDE(mm512_max_ps)
#define v_lt(a, b) SIMDE(mm512_cmp_ps_mask)(a, b, SIMDE_CMP_LT_OQ)
#define v_le(a, b) SIMDE(mm512_cmp_ps_mask)(a, b, SIMDE_CMP_LE_OQ)
#define v_eq(a, b) SIMDE(mm512_cmp_ps_mask)(a, b, SIMDE_CMP_EQ_OQ)
#define v_select(m, a, b) SIMDE(mm512_mask_blend_ps)(m, b, a)
#define v_bits SIMDE(mm512_castps_si512)
#define v_floats SIMDE(mm512_castsi512_ps)
#define u_set1(x) SIMDE(mm512_set1_epi32)((int32_t)(x))
#define u_add SIMDE(mm512_add_epi32)
#define u_sub SIMDE(mm512_sub_epi32)
#define u_and SIMDE(mm512_and_si512)
#define u_or SIMDE(mm512_or_si512)
#define u_xor SIMDE(mm512_xor_si512)
#define u_left SIMDE(mm512_slli_epi32)
#define u_right SIMDE(mm512_srli_epi32)

typedef SIMDE(_m512i) vi, vw;
#define i_zero SIMDE(mm512_setzero_si512)
#define w_load(p) SIMDE(mm512_cvtepi8_epi16)(SIMDE(mm256_loadu_si256)((const SIMDE(_m256i) *)(const void *)(p)))
#define i_add_products(sum, w, x) SIMDE(mm512_add_epi32)(sum, SIMDE(mm512_madd_epi16)(w, x))

#ifdef __AVX512F__ /* SIMDe 0.7.4 lacks these */

static inline __mmask16 first_lanes(size_t n) {
    return (__mmask16)((1u << n) - 1);
}

#define V_LOADS_LANES
static inline vf v_load_n(const float *p, size_t n) {
    return n >= LANES ? v_load(p) : _mm512_maskz_loadu_ps(first_lanes(n), p);
}

static inline void v_store_n(float *p, vf x, size_t n) {
    if (n >= LANES) v_store(p, x);
    else _mm512_mask_storeu_ps(p, first_lanes(n), x);
}

#define i_floats _mm512_cvtepi32_ps

#else

static inline vf i_floats(vi x) {
    int32_t whole[LANES];
    float lane[LANES];
    SIMDE(mm512_storeu_si512)(whole, x);
    for (size_t i = 0; i < LANES; i++) lane[i] = (float)whole[i];
    return v_load(lane);
}

#endif

#ifndef MTAN_BACKEND
#define MTAN_BACKEND mtan_backend_avx512
#define MTAN_BACKEND_NAME "avx512"
#endif
#include "kernels.inc"
