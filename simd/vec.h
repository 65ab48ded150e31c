/* vec.h: the vector vocabulary of kernels.inc over SIMDe. The including file defines one of VEC_AVX2, VEC_AVX512,
 * VEC_NEON and VEC_WASM; the words are the same for all, lane by lane with IEEE rounding, so one body gives the same bits
 * at every width.
 *
 *    vf, vu, vm            LANES floats; as many 32-bit unsigned integers; a mask from a comparison
 *    v_load, v_store       unaligned; v_load_n and v_store_n touch the first n lanes alone (the others load as 0)
 *    v_fma(a, b, c)        a b + c, rounded once in the fused class, twice in the other
 *    v_min, v_max          NaN if b is NaN; which of two equal zeros is not promised
 *    v_lt, v_le, v_eq      false for NaN; v_select(m, a, b) is a where m holds, else b
 *    v_bits, v_floats      reinterpret; u_* are operations on vu
 *    transpose4            4 x 4 floats
 *    vi, vw                sums of LANES columns as integers; two int8 weights of each column as int16
 *    i_add_products        adds to each column its two weights times the two int16 of every 32-bit lane of x
 *
 * TILE_ROWS and PANEL_REALS shape the matrix products: rows of accumulators (two registers each) that leave room for the
 * operands, and a buffer on the stack for columns laid side by side. */
#ifndef MTAN_SIMD_VEC_H
#define MTAN_SIMD_VEC_H

#include <simde/x86/sse.h>

#if defined(VEC_AVX2)

#include <simde/x86/avx2.h>
#include <simde/x86/fma.h>

enum { LANES = 8, TILE_ROWS = 6, PANEL_REALS = 8192 }; /* 12 sums, 2 columns, 1 row of 16 registers */
typedef simde__m256 vf;
typedef simde__m256i vu;
typedef simde__m256 vm;

#define v_set1 simde_mm256_set1_ps
#define v_load simde_mm256_loadu_ps
#define v_store simde_mm256_storeu_ps
#define v_add simde_mm256_add_ps
#define v_sub simde_mm256_sub_ps
#define v_mul simde_mm256_mul_ps
#define v_div simde_mm256_div_ps
#define v_sqrt simde_mm256_sqrt_ps
#define v_fma simde_mm256_fmadd_ps
#define v_min simde_mm256_min_ps
#define v_max simde_mm256_max_ps
#define v_lt(a, b) simde_mm256_cmp_ps(a, b, SIMDE_CMP_LT_OQ)
#define v_le(a, b) simde_mm256_cmp_ps(a, b, SIMDE_CMP_LE_OQ)
#define v_eq(a, b) simde_mm256_cmp_ps(a, b, SIMDE_CMP_EQ_OQ)
#define v_select(m, a, b) simde_mm256_blendv_ps(b, a, m)
#define v_bits simde_mm256_castps_si256
#define v_floats simde_mm256_castsi256_ps
#define u_set1(x) simde_mm256_set1_epi32((int32_t)(x))
#define u_add simde_mm256_add_epi32
#define u_sub simde_mm256_sub_epi32
#define u_and simde_mm256_and_si256
#define u_or simde_mm256_or_si256
#define u_xor simde_mm256_xor_si256
#define u_left simde_mm256_slli_epi32
#define u_right simde_mm256_srli_epi32

typedef simde__m256i vi, vw;
#define i_zero simde_mm256_setzero_si256
#define i_floats simde_mm256_cvtepi32_ps
#define w_load(p) simde_mm256_cvtepi8_epi16(simde_mm_loadu_si128((const simde__m128i *)(const void *)(p)))
#define i_add_products(sum, w, x) simde_mm256_add_epi32(sum, simde_mm256_madd_epi16(w, x))

#elif defined(VEC_AVX512)

#include <simde/x86/avx512.h>

enum { LANES = 16, TILE_ROWS = 12, PANEL_REALS = 16384 }; /* 24 sums, 2 columns, 1 row of 32 registers */
typedef simde__m512 vf;
typedef simde__m512i vu;
typedef simde__mmask16 vm;

#define v_set1 simde_mm512_set1_ps
#define v_load(p) simde_mm512_loadu_ps(p)
#define v_store(p, x) simde_mm512_storeu_ps(p, x)
#define v_add simde_mm512_add_ps
#define v_sub simde_mm512_sub_ps
#define v_mul simde_mm512_mul_ps
#define v_div simde_mm512_div_ps
#define v_sqrt simde_mm512_sqrt_ps
#define v_fma simde_mm512_fmadd_ps
#define v_min simde_mm512_min_ps
#define v_max simde_mm512_max_ps
#define v_lt(a, b) simde_mm512_cmp_ps_mask(a, b, SIMDE_CMP_LT_OQ)
#define v_le(a, b) simde_mm512_cmp_ps_mask(a, b, SIMDE_CMP_LE_OQ)
#define v_eq(a, b) simde_mm512_cmp_ps_mask(a, b, SIMDE_CMP_EQ_OQ)
#define v_select(m, a, b) simde_mm512_mask_blend_ps(m, b, a)
#define v_bits simde_mm512_castps_si512
#define v_floats simde_mm512_castsi512_ps
#define u_set1(x) simde_mm512_set1_epi32((int32_t)(x))
#define u_add simde_mm512_add_epi32
#define u_sub simde_mm512_sub_epi32
#define u_and simde_mm512_and_si512
#define u_or simde_mm512_or_si512
#define u_xor simde_mm512_xor_si512
#define u_left simde_mm512_slli_epi32
#define u_right simde_mm512_srli_epi32

typedef simde__m512i vi, vw;
#define i_zero simde_mm512_setzero_si512
#define w_load(p) simde_mm512_cvtepi8_epi16(simde_mm256_loadu_si256((const simde__m256i *)(const void *)(p)))
#define i_add_products(sum, w, x) simde_mm512_add_epi32(sum, simde_mm512_madd_epi16(w, x))

#elif defined(VEC_NEON)

#include <arm_neon.h> /* SIMDe 0.7.4 lacks division and square root */
#include <simde/arm/neon.h>

enum { LANES = 4, TILE_ROWS = 8, PANEL_REALS = 4096 }; /* 16 sums, 2 columns, rows by element, of 32 registers */
typedef simde_float32x4_t vf;
typedef simde_uint32x4_t vu;
typedef simde_uint32x4_t vm;

#define v_set1 simde_vdupq_n_f32
#define v_load simde_vld1q_f32
#define v_store simde_vst1q_f32
#define v_add simde_vaddq_f32
#define v_sub simde_vsubq_f32
#define v_mul simde_vmulq_f32
#define v_div vdivq_f32
#define v_sqrt vsqrtq_f32
#define v_fma(a, b, c) simde_vfmaq_f32(c, a, b)
#define v_min simde_vminq_f32
#define v_max simde_vmaxq_f32
#define v_lt simde_vcltq_f32
#define v_le simde_vcleq_f32
#define v_eq simde_vceqq_f32
#define v_select(m, a, b) simde_vbslq_f32(m, a, b)
#define v_bits simde_vreinterpretq_u32_f32
#define v_floats simde_vreinterpretq_f32_u32
#define u_set1 simde_vdupq_n_u32
#define u_add simde_vaddq_u32
#define u_sub simde_vsubq_u32
#define u_and simde_vandq_u32
#define u_or simde_vorrq_u32
#define u_xor simde_veorq_u32
#define u_left(x, n) simde_vshlq_n_u32(x, n)
#define u_right(x, n) simde_vshrq_n_u32(x, n)

/* There is no sum of neighbouring products: the two of a column are summed at the end. */
typedef struct vi {
    simde_int32x4_t low, high;
} vi;
typedef simde_int16x8_t vw;
#define w_load(p) simde_vmovl_s8(simde_vld1_s8(p))

static inline vi i_zero(void) {
    const vi zero = {simde_vdupq_n_s32(0), simde_vdupq_n_s32(0)};
    return zero;
}

static inline vi i_add_products(vi sum, vw w, vu x) {
    const simde_int16x4_t two = simde_vget_low_s16(simde_vreinterpretq_s16_u32(x));
    sum.low = simde_vmlal_s16(sum.low, simde_vget_low_s16(w), two);
    sum.high = simde_vmlal_s16(sum.high, simde_vget_high_s16(w), two);
    return sum;
}

static inline vf i_floats(vi sum) {
    return simde_vcvtq_f32_s32(simde_vpaddq_s32(sum.low, sum.high));
}

#elif defined(VEC_WASM)

#include <simde/wasm/simd128.h>

enum { LANES = 4, TILE_ROWS = 6, PANEL_REALS = 4096 }; /* engines map it to 16 registers on x86-64 */
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

#else
#error "define VEC_AVX2, VEC_AVX512, VEC_NEON or VEC_WASM before vec.h"
#endif

/* Constant loops over registers must be unrolled, or the accumulators would live in memory. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define UNROLL _Pragma("GCC unroll 16")
#else
#define UNROLL
#endif

/* Lanes beyond n are neither read nor written. */
#if defined(VEC_AVX2)

static inline simde__m256i first_lanes(size_t n) {
    static const int32_t on[2 * LANES] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return simde_mm256_loadu_si256((const simde__m256i *)(const void *)(on + LANES - n));
}

static inline vf v_load_n(const float *p, size_t n) {
    return n >= LANES ? v_load(p) : simde_mm256_maskload_ps(p, first_lanes(n));
}

static inline void v_store_n(float *p, vf x, size_t n) {
    if (n >= LANES) v_store(p, x);
    else simde_mm256_maskstore_ps(p, first_lanes(n), x);
}

#elif defined(VEC_AVX512) && defined(__AVX512F__) /* SIMDe 0.7.4 lacks these */

static inline __mmask16 first_lanes(size_t n) {
    return (__mmask16)((1u << n) - 1);
}

static inline vf v_load_n(const float *p, size_t n) {
    return n >= LANES ? v_load(p) : _mm512_maskz_loadu_ps(first_lanes(n), p);
}

static inline void v_store_n(float *p, vf x, size_t n) {
    if (n >= LANES) v_store(p, x);
    else _mm512_mask_storeu_ps(p, first_lanes(n), x);
}

#define i_floats _mm512_cvtepi32_ps

#else

static inline vf v_load_n(const float *p, size_t n) {
    if (n >= LANES) return v_load(p);
    float lane[LANES];
    for (size_t i = 0; i < LANES; i++) lane[i] = i < n ? p[i] : 0;
    return v_load(lane);
}

static inline void v_store_n(float *p, vf x, size_t n) {
    if (n >= LANES) {
        v_store(p, x);
        return;
    }
    float lane[LANES];
    v_store(lane, x);
    for (size_t i = 0; i < n; i++) p[i] = lane[i];
}

#ifdef VEC_AVX512
static inline vf i_floats(vi x) {
    int32_t whole[LANES];
    float lane[LANES];
    simde_mm512_storeu_si512(whole, x);
    for (size_t i = 0; i < LANES; i++) lane[i] = (float)whole[i];
    return v_load(lane);
}
#endif

#endif

/* y[j][i] = x[i][j], rows ldx and ldy apart */
static inline void transpose4(float *y, size_t ldy, const float *x, size_t ldx) {
    const simde__m128 x0 = simde_mm_loadu_ps(x), x1 = simde_mm_loadu_ps(x + ldx);
    const simde__m128 x2 = simde_mm_loadu_ps(x + 2 * ldx), x3 = simde_mm_loadu_ps(x + 3 * ldx);
    const simde__m128 a = simde_mm_unpacklo_ps(x0, x1), b = simde_mm_unpacklo_ps(x2, x3);
    const simde__m128 c = simde_mm_unpackhi_ps(x0, x1), d = simde_mm_unpackhi_ps(x2, x3);
    simde_mm_storeu_ps(y, simde_mm_movelh_ps(a, b));
    simde_mm_storeu_ps(y + ldy, simde_mm_movehl_ps(b, a));
    simde_mm_storeu_ps(y + 2 * ldy, simde_mm_movelh_ps(c, d));
    simde_mm_storeu_ps(y + 3 * ldy, simde_mm_movehl_ps(d, c));
}

#endif
