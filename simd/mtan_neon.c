/* mtan_neon.c: the kernels for NEON (AArch64), as the table mtan_backend_neon. Kernels without a fast form
 * in kernels.inc are the scalar ones of mtan.c, compiled with this file's flags. So the table is complete, and all its
 * results are of one class.
 *
 *     cc -O2 [-isystem FOLDER_OF_SIMDE] -c simd/mtan_neon.c
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

#include "intrinsics.h"

#define LANES 4
#define TILE_ROWS 8 /* of 32 registers: 16 sums, 2 columns, and rows by element */
#define PANEL_REALS 4096
typedef SIMDE(float32x4_t) vf;
typedef SIMDE(uint32x4_t) vu;
typedef SIMDE(uint32x4_t) vm;

#define v_set1 SIMDE(vdupq_n_f32)
#define v_load SIMDE(vld1q_f32)
#define v_store SIMDE(vst1q_f32)
#define v_add SIMDE(vaddq_f32)
#define v_sub SIMDE(vsubq_f32)
#define v_mul SIMDE(vmulq_f32)
#define v_div vdivq_f32
#define v_sqrt vsqrtq_f32
#define v_fma(a, b, c) SIMDE(vfmaq_f32)(c, a, b)
#define v_min SIMDE(vminq_f32)
#define v_max SIMDE(vmaxq_f32)
#define v_lt SIMDE(vcltq_f32)
#define v_le SIMDE(vcleq_f32)
#define v_eq SIMDE(vceqq_f32)
#define v_select(m, a, b) SIMDE(vbslq_f32)(m, a, b)
#define v_bits SIMDE(vreinterpretq_u32_f32)
#define v_floats SIMDE(vreinterpretq_f32_u32)
#define u_set1 SIMDE(vdupq_n_u32)
#define u_add SIMDE(vaddq_u32)
#define u_sub SIMDE(vsubq_u32)
#define u_and SIMDE(vandq_u32)
#define u_or SIMDE(vorrq_u32)
#define u_xor SIMDE(veorq_u32)
#define u_left(x, n) SIMDE(vshlq_n_u32)(x, n)
#define u_right(x, n) SIMDE(vshrq_n_u32)(x, n)

/* NEON cannot add neighbouring products, so a column has two sums until the end. */
typedef struct vi {
    SIMDE(int32x4_t) low, high;
} vi;
typedef SIMDE(int16x8_t) vw;
#define w_load(p) SIMDE(vmovl_s8)(SIMDE(vld1_s8)(p))

static inline vi i_zero(void) {
    const vi zero = {SIMDE(vdupq_n_s32)(0), SIMDE(vdupq_n_s32)(0)};
    return zero;
}

static inline vi i_add_products(vi sum, vw w, vu x) {
    const SIMDE(int16x4_t) two = SIMDE(vget_low_s16)(SIMDE(vreinterpretq_s16_u32)(x));
    sum.low = SIMDE(vmlal_s16)(sum.low, SIMDE(vget_low_s16)(w), two);
    sum.high = SIMDE(vmlal_s16)(sum.high, SIMDE(vget_high_s16)(w), two);
    return sum;
}

static inline vf i_floats(vi sum) {
    return SIMDE(vcvtq_f32_s32)(SIMDE(vpaddq_s32)(sum.low, sum.high));
}

#define MTAN_BACKEND mtan_backend_neon
#define MTAN_BACKEND_NAME "neon"
#include "kernels.inc"
