/* mtan_emulated512.c: the body of kernels.inc at width 16 for a CPU without AVX-512, as mtan_backend_emulated512:
 * SIMDe makes each 512-bit vector from two of 256 bits, and mtan_avx512.c defines the words of vec.h. Without SIMDe
 * this file defines them with the vector extensions of gcc and clang. For tests; mtan_avx2.c is faster.
 *
 *     cc -O2 -mavx2 -mfma -Wno-psabi [-isystem FOLDER_OF_SIMDE] -c simd/mtan_emulated512.c
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
#define MTAN_EMULATED
#define MTAN_BACKEND mtan_backend_emulated512
#define MTAN_BACKEND_NAME "emulated512"
#include "intrinsics.h"

#ifndef MTAN_NO_SIMDE
#include "mtan_avx512.c"
#else

#define LANES 16
#define TILE_ROWS 12
#define PANEL_REALS 16384
typedef float vf __attribute__((vector_size(64)));
typedef uint32_t vu __attribute__((vector_size(64)));
typedef vu vm, vi, vw;

typedef union halves {
    vf floats;
    vu bits;
    __m256 f[2];
    __m256i i[2];
} halves;

static inline vf v_load(const float *p) {
    const halves x = {.f = {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}};
    return x.floats;
}

static inline void v_store(float *p, vf x) {
    const halves h = {x};
    _mm256_storeu_ps(p, h.f[0]), _mm256_storeu_ps(p + 8, h.f[1]);
}

static inline vf v_fma(vf a, vf b, vf c) {
    const halves x = {a}, y = {b}, z = {c};
    const halves sum = {.f = {_mm256_fmadd_ps(x.f[0], y.f[0], z.f[0]), _mm256_fmadd_ps(x.f[1], y.f[1], z.f[1])}};
    return sum.floats;
}

static inline vf v_sqrt(vf a) {
    const halves x = {a}, root = {.f = {_mm256_sqrt_ps(x.f[0]), _mm256_sqrt_ps(x.f[1])}};
    return root.floats;
}

#define v_set1(x) ((x) - (vf){0}) /* keeps a negative zero, which + would not */
#define v_add(a, b) ((a) + (b))
#define v_sub(a, b) ((a) - (b))
#define v_mul(a, b) ((a) * (b))
#define v_div(a, b) ((a) / (b))
#define v_lt(a, b) ((vm)((a) < (b)))
#define v_le(a, b) ((vm)((a) <= (b)))
#define v_eq(a, b) ((vm)((a) == (b)))
#define v_bits(x) ((vu)(x))
#define v_floats(x) ((vf)(x))
#define u_set1(x) ((uint32_t)(x) + (vu){0})
#define u_add(a, b) ((a) + (b))
#define u_sub(a, b) ((a) - (b))
#define u_and(a, b) ((a) & (b))
#define u_or(a, b) ((a) | (b))
#define u_xor(a, b) ((a) ^ (b))
#define u_left(x, n) ((x) << (n))
#define u_right(x, n) ((x) >> (n))

static inline vf v_select(vm m, vf a, vf b) {
    return v_floats((m & v_bits(a)) | (~m & v_bits(b)));
}

static inline vf v_min(vf a, vf b) {
    return v_select(v_lt(a, b), a, b);
}

static inline vf v_max(vf a, vf b) {
    return v_select(v_lt(b, a), a, b);
}

#define i_zero() ((vi){0})

static inline vw w_load(const int8_t *p) {
    const __m128i *const q = (const __m128i *)(const void *)p;
    const halves w = {.i = {_mm256_cvtepi8_epi16(_mm_loadu_si128(q)), _mm256_cvtepi8_epi16(_mm_loadu_si128(q + 1))}};
    return w.bits;
}

static inline vi i_add_products(vi sum, vw w, vu x) {
    const halves a = {.bits = w}, b = {.bits = x};
    const halves products = {.i = {_mm256_madd_epi16(a.i[0], b.i[0]), _mm256_madd_epi16(a.i[1], b.i[1])}};
    return sum + products.bits;
}

static inline vf i_floats(vi x) {
    const halves h = {.bits = x}, floats = {.f = {_mm256_cvtepi32_ps(h.i[0]), _mm256_cvtepi32_ps(h.i[1])}};
    return floats.floats;
}

#include "kernels.inc"
#endif
