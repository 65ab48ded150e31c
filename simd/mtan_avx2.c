/* mtan_avx2.c: the kernels for AVX2 with FMA, as the table mtan_backend_avx2. Everything that has no fast form in
 * kernels.inc is the scalar kernel of mtan.c compiled with this file's flags, so the table is whole and of one class.
 *
 *     cc -O2 -mavx2 -mfma -isystem <folder of simde/> -c simd/mtan_avx2.c
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

#include <simde/x86/avx2.h>
#include <simde/x86/fma.h>

#define LANES 8
#define TILE_ROWS 6 /* 12 sums, 2 columns, 1 row of 16 registers */
#define PANEL_REALS 8192
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

static inline simde__m256i first_lanes(size_t n) {
    static const int32_t on[2 * LANES] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return simde_mm256_loadu_si256((const simde__m256i *)(const void *)(on + LANES - n));
}

#define V_LOADS_LANES
static inline vf v_load_n(const float *p, size_t n) {
    return n >= LANES ? v_load(p) : simde_mm256_maskload_ps(p, first_lanes(n));
}

static inline void v_store_n(float *p, vf x, size_t n) {
    if (n >= LANES) v_store(p, x);
    else simde_mm256_maskstore_ps(p, first_lanes(n), x);
}

#define MTAN_BACKEND mtan_backend_avx2
#define MTAN_BACKEND_NAME "avx2"
#include "kernels.inc"
