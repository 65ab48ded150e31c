/* ulp.h: the true values of the library's elementary functions, and the distance from them in units in the last place.
 * Shared by tools/check/ulp.c (all floats) and tests/library/test_math.c (a sample). Float build; needs libm. */
#ifndef MTAN_ULP_H
#define MTAN_ULP_H

#define MTAN_INTERNALS
#include "../../mtan.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    mtan_function function;
    const char *name;
    const char *range; /* where the limit holds; elsewhere ulp_true gives the promised value */
    double limit;      /* ulp */
} ulp_case;

static const ulp_case ulp_cases[] = {
    {MTAN_EXP, "exp", "all", 2},           {MTAN_LOG, "log", "all", 2},     {MTAN_SIN, "sin", "|x| <= 1e5", 2},
    {MTAN_COS, "cos", "|x| <= 1e5", 2},    {MTAN_TANH, "tanh", "all", 4},   {MTAN_SIGMOID, "sigmoid", "all", 4},
    {MTAN_SOFTPLUS, "softplus", "all", 4}, {MTAN_SQRT, "sqrt", "all", 0.5},
};
enum { ULP_CASES = sizeof ulp_cases / sizeof *ulp_cases };

static float ulp_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* e^x; far beyond the range of a float it is 0 or Inf without a call of libm, which is slow there. */
static double ulp_exp(double x) {
    return x < -200 ? 0 : x > 200 ? (double)INFINITY : fabs(x) < 0x1p-27 ? 1 + x : exp(x);
}

/* f(x) in double. A third of all floats are so small that two terms of the Taylor series are right to 2^-50: below
 * 2^-13, or 2^-27 if the third term is x^2. */
static double ulp_true(mtan_function f, double x) {
    double a = fabs(x), e;
    switch (f) {
    case MTAN_EXP: return ulp_exp(x);
    case MTAN_LOG: return x < 0 ? (double)NAN : log(x);
    case MTAN_SIN: return a < 0x1p-13 ? x * (1 - x * x / 6) : a <= 1e5 ? sin(x) : copysign(a - a, x);
    case MTAN_COS: return a < 0x1p-13 ? 1 - x * x / 2 : a <= 1e5 ? cos(x) : 1 + (a - a);
    case MTAN_TANH: return a < 0x1p-13 ? x * (1 - x * x / 3) : a > 30 ? copysign(1, x) : tanh(x);
    case MTAN_SIGMOID: e = ulp_exp(-a); return (x < 0 ? e : 1) / (1 + e);
    case MTAN_SOFTPLUS:
        if (a < 0x1p-27) return 0.69314718055994531 + x / 2;
        e = ulp_exp(-a);
        return (x > 0 ? x : 0) + (a > 40 ? e : log1p(e));
    case MTAN_SQRT: return x < 0 ? (double)NAN : sqrt(x);
    }
    return (double)NAN;
}

/* The distance |y - truth|, divided by the spacing of floats at the truth. Overflow counts as 2^128. A NaN on one side
 * only, or a zero of the wrong sign, counts as an infinite error. */
static double ulp_error(float y, double truth) {
    double d = y, scale;
    uint64_t bits, exponent;
    if (y != y || truth != truth) {
        return (y != y) == (truth != truth) ? 0 : INFINITY;
    }
    if (y == 0 && !signbit(y) != !signbit(truth)) {
        return INFINITY;
    }
    d = fabs(d) > 0x1p128 ? copysign(0x1p128, d) : d;
    truth = fabs(truth) > 0x1p128 ? copysign(0x1p128, truth) : truth;
    memcpy(&bits, &truth, sizeof bits);
    exponent = bits >> 52 & 0x7FF; /* biased by 1023 */
    exponent = exponent < 1023 - 126 ? 1023 - 126 : exponent > 1023 + 127 ? 1023 + 127 : exponent;
    bits = (2 * 1023 + 23 - exponent) << 52; /* 2^(23 - e) */
    memcpy(&scale, &bits, sizeof scale);
    return fabs(d - truth) * scale;
}

/* The i-th awkward argument; returns 0 after the last. They are 64 neighbours on each side, with both signs, of every
 * place where a function changes its formula, overflows, underflows or nearly cancels. */
static int ulp_awkward(uint32_t i, float *x) {
    static const float place[] = {
        /* ends, powers of two */
        0x1p-149f, 0x1p-126f, 0x1p-24f, 0x1p-12f, 0x1p-1f, 1.0f, 2.0f, 0x1.fffffep127f,
        /* exp: ln 2 / 2, overflow, subnormal results, underflow, the clamps */
        0.346573591f, 88.7228394f, 87.3365479f, 103.278931f, 103.972076f, 89.0f, 104.0f,
        /* log, softplus, tanh: where they change the formula or saturate */
        0.707106769f, 1.41421354f, 0.881373584f, 0.625f, 9.01091385f, 16.6355324f,
        /* quarter turns and their halves; 252.9 is 2^-28 from one, the closest of all; the largest angle */
        0.785398185f, 1.57079637f, 3.14159274f, 4.71238899f, 6.28318548f, 252.898209f, 31415.9258f, 99998.8906f, 1e5f,
        /* where adding ROUND stops rounding */
        4194304.0f, 8388608.0f};
    enum { PLACES = sizeof place / sizeof *place, AROUND = 129 };
    uint32_t bits, sign = i & 1, offset = i / 2 % AROUND, which = i / 2 / AROUND;
    if (which >= PLACES) {
        return 0;
    }
    memcpy(&bits, &place[which], sizeof bits);
    *x = ulp_float((bits + offset - 64) ^ sign << 31);
    return 1;
}

#endif
