/* mtan_avx2.c: the kernels for AVX2 with FMA, as the table mtan_backend_avx2. Kernels without a fast form
 * in kernels.inc are the scalar ones of mtan.c, compiled with this file's flags. So the table is complete, and all its
 * results are of one class.
 *
 *     cc -O2 -mavx2 -mfma [-isystem FOLDER_OF_SIMDE] -c simd/mtan_avx2.c
 */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function" /* scalar kernels that have a fast form */
#endif
#if !defined(__AVX2__) || !defined(__FMA__)
#error "compile with -mavx2 -mfma"
#endif

#include "intrinsics.h"

#define LANES 8
#define TILE_ROWS 6 /* of 16 registers: 12 sums, 2 columns, 1 row */
#define PANEL_REALS 8192
typedef SIMDE(_m256) vf;
typedef SIMDE(_m256i) vu;
typedef SIMDE(_m256) vm;

#define v_set1 SIMDE(mm256_set1_ps)
#define v_load SIMDE(mm256_loadu_ps)
#define v_store SIMDE(mm256_storeu_ps)
#define v_add SIMDE(mm256_add_ps)
#define v_sub SIMDE(mm256_sub_ps)
#define v_mul SIMDE(mm256_mul_ps)
#define v_div SIMDE(mm256_div_ps)
#define v_sqrt SIMDE(mm256_sqrt_ps)
#define v_fma SIMDE(mm256_fmadd_ps)
#define v_min SIMDE(mm256_min_ps)
#define v_max SIMDE(mm256_max_ps)
#define v_lt(a, b) SIMDE(mm256_cmp_ps)(a, b, SIMDE_CMP_LT_OQ)
#define v_le(a, b) SIMDE(mm256_cmp_ps)(a, b, SIMDE_CMP_LE_OQ)
#define v_eq(a, b) SIMDE(mm256_cmp_ps)(a, b, SIMDE_CMP_EQ_OQ)
#define v_select(m, a, b) SIMDE(mm256_blendv_ps)(b, a, m)
#define v_bits SIMDE(mm256_castps_si256)
#define v_floats SIMDE(mm256_castsi256_ps)
#define u_set1(x) SIMDE(mm256_set1_epi32)((int32_t)(x))
#define u_add SIMDE(mm256_add_epi32)
#define u_sub SIMDE(mm256_sub_epi32)
#define u_and SIMDE(mm256_and_si256)
#define u_or SIMDE(mm256_or_si256)
#define u_xor SIMDE(mm256_xor_si256)
#define u_left SIMDE(mm256_slli_epi32)
#define u_right SIMDE(mm256_srli_epi32)

typedef SIMDE(_m256i) vi, vw;
#define i_zero SIMDE(mm256_setzero_si256)
#define i_floats SIMDE(mm256_cvtepi32_ps)
#define w_load(p) SIMDE(mm256_cvtepi8_epi16)(SIMDE(mm_loadu_si128)((const SIMDE(_m128i) *)(const void *)(p)))
#define i_add_products(sum, w, x) SIMDE(mm256_add_epi32)(sum, SIMDE(mm256_madd_epi16)(w, x))

static inline SIMDE(_m256i) first_lanes(size_t n) {
    static const int32_t on[2 * LANES] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return SIMDE(mm256_loadu_si256)((const SIMDE(_m256i) *)(const void *)(on + LANES - n));
}

#define V_LOADS_LANES
static inline vf v_load_n(const float *p, size_t n) {
    return n >= LANES ? v_load(p) : SIMDE(mm256_maskload_ps)(p, first_lanes(n));
}

/* In pieces of 4, 2 and 1: a masked store takes many cycles on some CPUs. */
static inline void v_store_n(float *p, vf x, size_t n) {
    SIMDE(_m128) rest = SIMDE(mm256_castps256_ps128)(x);
    if (n >= LANES) {
        v_store(p, x);
        return;
    }
    if (n & 4) {
        SIMDE(mm_storeu_ps)(p, rest);
        rest = SIMDE(mm256_extractf128_ps)(x, 1);
        p += 4;
    }
    if (n & 2) {
        SIMDE(mm_storel_pi)((SIMDE(_m64) *)(void *)p, rest);
        rest = SIMDE(mm_movehl_ps)(rest, rest);
        p += 2;
    }
    if (n & 1) SIMDE(mm_store_ss)(p, rest);
}

#define MTAN_BACKEND mtan_backend_avx2
#define MTAN_BACKEND_NAME "avx2"
#include "kernels.inc"
