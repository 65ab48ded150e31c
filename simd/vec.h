/* vec.h: the vector vocabulary of kernels.inc. Each file of an instruction set defines the words over SIMDe before it includes
 * kernels.inc; what they have in common stands here. The words mean the same for all, lane by lane with IEEE rounding, so one
 * body gives the same bits at every width.
 *
 *    vf, vu, vm            LANES floats; as many 32-bit unsigned integers; a mask from a comparison
 *    v_load, v_store       unaligned
 *    v_load_n, v_store_n   the first n lanes alone, the others load as 0; a file that has its own defines V_LOADS_LANES
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

/* Constant loops over registers must be unrolled, or the accumulators would live in memory. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define UNROLL _Pragma("GCC unroll 16")
#else
#define UNROLL
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
