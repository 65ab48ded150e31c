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

#include <arm_neon.h> /* SIMDe 0.7.4 lacks division and square root */
#include <simde/arm/neon.h>

#define LANES 4
#define TILE_ROWS 8 /* 16 sums, 2 columns, rows by element, of 32 registers */
#define PANEL_REALS 4096
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

#define MTAN_BACKEND mtan_backend_neon
#define MTAN_BACKEND_NAME "neon"
#include "kernels.inc"
