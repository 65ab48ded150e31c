/* vec.h: the vector vocabulary of kernels.inc. The file of each instruction set defines these words with intrinsics.h
 * and then includes kernels.inc; this file defines what all instruction sets share. A word means the same everywhere,
 * lane by lane with IEEE rounding, so one body gives the same bits at every width.
 *
 *    vf, vu, vm            LANES floats; as many 32-bit unsigned integers; a mask from a comparison
 *    v_load, v_store       unaligned
 *    v_load_n, v_store_n   only the first n lanes; the others load as 0. A file with its own defines V_LOADS_LANES
 *    v_fma(a, b, c)        a b + c, rounded once in the fused class, twice in the other
 *    v_min, v_max          NaN if b is NaN; of two zeros, either one
 *    v_lt, v_le, v_eq      false for NaN; v_select(m, a, b) is a where m holds, else b
 *    v_bits, v_floats      reinterpret; u_* are operations on vu
 *    transpose4            4 x 4 floats
 *    vi, vw                sums of LANES columns as integers; two int8 weights of each column as int16
 *    i_add_products        adds to each column its two weights times the two int16 of every 32-bit lane of x
 *
 * TILE_ROWS and PANEL_REALS shape the matrix products. TILE_ROWS rows of accumulators (two registers each) leave room
 * for the operands. PANEL_REALS is the size of the buffer on the stack into which columns are copied as panels. */
#ifndef MTAN_SIMD_VEC_H
#define MTAN_SIMD_VEC_H

#include "intrinsics.h"

/* UNROLL: constant loops over registers must be unrolled, or the accumulators would live in memory. UNROLL_TWICE: a
 * long loop gains by half as many branches. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#define UNROLL_TWICE _Pragma("clang loop unroll_count(2)")
#elif defined(__GNUC__)
#define UNROLL _Pragma("GCC unroll 16")
#define UNROLL_TWICE _Pragma("GCC unroll 2")
#else
#define UNROLL
#define UNROLL_TWICE
#endif

#ifndef V_LOADS_LANES

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

#endif

/* Four floats: q_low(a, b) is a0 b0 a1 b1, q_high(a, b) is a2 b2 a3 b3; q_first and q_last join the first and the last
 * halves of a and b. */
#if defined(MTAN_NO_SIMDE) && (defined(__aarch64__) || defined(_M_ARM64))
typedef float32x4_t vq;
#define q_load vld1q_f32
#define q_store vst1q_f32
#define q_low vzip1q_f32
#define q_high vzip2q_f32
#define q_first(a, b) vcombine_f32(vget_low_f32(a), vget_low_f32(b))
#define q_last(a, b) vcombine_f32(vget_high_f32(a), vget_high_f32(b))
#else
typedef SIMDE(_m128) vq;
#define q_load SIMDE(mm_loadu_ps)
#define q_store SIMDE(mm_storeu_ps)
#define q_low SIMDE(mm_unpacklo_ps)
#define q_high SIMDE(mm_unpackhi_ps)
#define q_first SIMDE(mm_movelh_ps)
#define q_last(a, b) SIMDE(mm_movehl_ps)(b, a)
#endif

/* y[j][i] = x[i][j], rows ldx and ldy apart */
static inline void transpose4(float *y, size_t ldy, const float *x, size_t ldx) {
    const vq x0 = q_load(x), x1 = q_load(x + ldx), x2 = q_load(x + 2 * ldx), x3 = q_load(x + 3 * ldx);
    const vq a = q_low(x0, x1), b = q_low(x2, x3), c = q_high(x0, x1), d = q_high(x2, x3);
    q_store(y, q_first(a, b));
    q_store(y + ldy, q_last(a, b));
    q_store(y + 2 * ldy, q_first(c, d));
    q_store(y + 3 * ldy, q_last(c, d));
}

#endif
