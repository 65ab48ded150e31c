/* The elementary functions, through the scalar backend. `make ulp` measures all floats; here a sample, the awkward
 * arguments and the special values of C99's Annex F. The double build is compared with libm. */
#include <greatest.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#define MTAN_INTERNALS
#include "../../mtan.h"

static mtan_real call(mtan_function f, mtan_real x) {
    mtan_real y;
    mtan_backend_scalar.map(f, &y, &x, 1);
    return y;
}

/* Equal, sign of zero included; NaN equals NaN. */
static int identical(mtan_real a, mtan_real b) {
    if (a != a || b != b) return a != a && b != b;
    return a == b && !signbit(a) == !signbit(b);
}

/* Annex F where it names the function; sigmoid and softplus by their limits. */
TEST special_values(void) {
    const mtan_real inf = (mtan_real)INFINITY, nan = (mtan_real)NAN, zero = 0, one = 1, half = one / 2;
    const mtan_real ln2 = call(MTAN_SOFTPLUS, zero); /* its value is checked with the others */
    const mtan_real x[] = {zero, -zero, inf, -inf, nan, 10000, -10000, -one, (mtan_real)-1e-40};
    enum { N = sizeof x / sizeof *x };
    const struct {
        mtan_function f;
        size_t n; /* of the arguments above */
        mtan_real y[N];
    } rows[] = {
        {MTAN_EXP, 7, {one, one, inf, zero, nan, inf, zero}},
        {MTAN_LOG, 5, {-inf, -inf, inf, nan, nan}},
        {MTAN_SIN, 5, {zero, -zero, nan, nan, nan}},
        {MTAN_COS, 5, {one, one, nan, nan, nan}},
        {MTAN_TANH, 7, {zero, -zero, one, -one, nan, one, -one}},
        {MTAN_SIGMOID, 7, {half, half, one, zero, nan, one, zero}},
        {MTAN_SOFTPLUS, 7, {ln2, ln2, inf, zero, nan, 10000, zero}},
        {MTAN_SQRT, 9, {zero, -zero, inf, nan, nan, 100, nan, nan, nan}},
    };
    for (size_t j = 0; j < sizeof rows / sizeof *rows; j++) {
        for (size_t i = 0; i < rows[j].n; i++) {
            mtan_real y = call(rows[j].f, x[i]);
            if (identical(y, rows[j].y[i])) continue;
            printf("function %d of %g: %g, not %g\n", (int)rows[j].f, (double)x[i], (double)y, (double)rows[j].y[i]);
            FAILm("special value");
        }
    }
    ASSERT(identical(call(MTAN_LOG, one), zero));
    ASSERT(identical(call(MTAN_LOG, -one), nan));
    ASSERT(identical(call(MTAN_LOG, (mtan_real)-1e-40), nan));
    PASS();
}

/* A ReLU hands NaN on: a 0 in its place would hide that something went wrong. Zeros of either sign give 0. */
TEST relu_of_special_values(void) {
    const mtan_real inf = (mtan_real)INFINITY, nan = (mtan_real)NAN, zero = 0;
    const mtan_real x[] = {zero, -zero, inf, -inf, nan, -nan, 3, -3}, y[] = {zero, zero, inf, zero, nan, nan, 3, zero};
    enum { N = sizeof x / sizeof *x };
    mtan_real got[N];
    memcpy(got, x, sizeof x);
    mtan_backend_scalar.relu_forward(got, N);
    for (size_t i = 0; i < N; i++) {
        if (!identical(got[i], y[i])) printf("ReLU of %g: %g, not %g\n", (double)x[i], (double)got[i], (double)y[i]);
        ASSERT(identical(got[i], y[i]));
    }
    PASS();
}

/* As many results as asked for, not one more, and the same bits in any company. */
TEST any_length(void) {
    const size_t lengths[] = {0, 1, 7, 8, 9, 15, 16, 17, 67};
    for (mtan_function f = MTAN_EXP; f <= MTAN_SQRT; f++) {
        for (size_t j = 0; j < sizeof lengths / sizeof *lengths; j++) {
            size_t n = lengths[j];
            mtan_real *x = guard_alloc(n * sizeof *x), *y = guard_alloc(n * sizeof *y);
            for (size_t i = 0; i < n; i++) x[i] = (mtan_real)0.37 * (mtan_real)(i + 1);
            mtan_backend_scalar.map(f, y, x, n);
            for (size_t i = 0; i < n; i++) ASSERT(identical(y[i], call(f, x[i])));
            ASSERT(guard_free(x));
            ASSERT(guard_free(y));
        }
    }
    PASS();
}

#ifdef MTAN_DOUBLE
#define REAL_EPSILON DBL_EPSILON
#define REAL_MANY 7e5
#else
#define REAL_EPSILON FLT_EPSILON
#define REAL_MANY 1e3
#endif

/* e^x = significand 2^exponent, to an ulp; for large x, that of an x off by no more than its last place. */
static int parts_are_right(mtan_real x) {
    mtan_real significand, exponent;
    long double rest, limit = 1.1 * (double)REAL_EPSILON;
    mtan_backend_scalar.exp_parts(&significand, &exponent, &x, 1);
    rest =
        ((long double)x - (long double)exponent * 0x1.62e42feep-1L) - (long double)exponent * 1.9082149292705878e-10L;
    if (fabs((double)x) > REAL_MANY) limit += fabsl((long double)x) * (double)REAL_EPSILON;
    if (rint((double)exponent) == (double)exponent && significand >= (mtan_real)0.7 && significand <= (mtan_real)1.42 &&
        fabsl(logl((long double)significand) - rest) <= limit)
        return 1;
    printf("exp(%.9g) is not %.9g 2^%.9g\n", (double)x, (double)significand, (double)exponent);
    return 0;
}

TEST exponentials_in_parts(void) {
    const mtan_real huge[] = {1e4f, 12345.678f, 1e5f, 4194304, 8388608.5f, 1e7f, 3e7f, 1e10f, 1e20f, 2e38f};
    for (int i = -20000; i <= 20000; i++) ASSERT(parts_are_right((mtan_real)i * (mtan_real)0.0377));
    for (int i = 0; i < 1000; i++) ASSERT(parts_are_right((mtan_real)i * (mtan_real)11.33));
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++)
        ASSERT(parts_are_right(huge[i]) && parts_are_right(-huge[i]));
    PASS();
}

#ifdef MTAN_DOUBLE

static double libm(mtan_function f, double x) {
    switch (f) {
    case MTAN_EXP: return exp(x);
    case MTAN_LOG: return log(x);
    case MTAN_SIN: return sin(x);
    case MTAN_COS: return cos(x);
    case MTAN_TANH: return tanh(x);
    case MTAN_SIGMOID: return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
    case MTAN_SOFTPLUS: return x < 0 ? log1p(exp(x)) : x + log1p(exp(-x));
    case MTAN_SQRT: return sqrt(x);
    }
    return (double)NAN;
}

TEST double_is_libm(void) {
    for (mtan_function f = MTAN_EXP; f <= MTAN_SQRT; f++) {
        for (int i = -7000; i <= 7000; i++) {
            double x = i / 10.0 + 1e-3, ref;
            if (x < 0 && (f == MTAN_LOG || f == MTAN_SQRT)) continue;
            ref = libm(f, x);
            if (!(fabs(call(f, x) - ref) <= 1e-15 * fabs(ref))) {
                printf("function %d of %.17g: %.17g instead of %.17g\n", (int)f, x, call(f, x), ref);
                FAILm("differs from libm");
            }
        }
    }
    PASS();
}

SUITE(math_suite) {
    RUN_TEST(special_values);
    RUN_TEST(relu_of_special_values);
    RUN_TEST(any_length);
    RUN_TEST(exponentials_in_parts);
    RUN_TEST(double_is_libm);
}

#else

#include "../../tools/check/ulp.h"

/* The measure first: it must be able to see an error. */
TEST ulp_error_counts(void) {
    ASSERT_EQ(0.0, ulp_error(1.0f, 1.0));
    ASSERT_EQ(1.0, ulp_error(1.0f + FLT_EPSILON, 1.0));
    ASSERT_EQ(2.5, ulp_error(1.0f, 1.0 + 2.5 * (double)FLT_EPSILON));
    ASSERT_EQ(3.0, ulp_error(0.0f, 3 * 0x1p-149)); /* subnormals: the spacing is 2^-149 */
    ASSERT_EQ(1.0, ulp_error(FLT_MAX, 0x1p200));   /* Inf counts as the next float */
    ASSERT_EQ(0.0, ulp_error(INFINITY, 0x1p200));
    ASSERT_EQ((double)INFINITY, ulp_error(NAN, 1.0));
    ASSERT_EQ((double)INFINITY, ulp_error(1.0f, (double)NAN));
    ASSERT_EQ((double)INFINITY, ulp_error(0.0f, -0.0));
    PASS();
}

/* Every 4093rd float (a prime, so that the last bits vary) and all the awkward ones. */
TEST within_limit(const ulp_case *c) {
    double worst = -1;
    float worst_x = 0, x;
    uint32_t awkward = 0;
    for (uint64_t bits = 0; bits >> 32 == 0 || ulp_awkward(awkward, &x); bits += 4093) {
        if (bits >> 32 == 0) {
            x = ulp_float((uint32_t)bits);
        } else {
            awkward++;
        }
        double error = ulp_error(call(c->function, x), ulp_true(c->function, (double)x));
        if (!(error <= worst)) {
            worst = error;
            worst_x = x;
        }
    }
    printf("%-10s %.4f ulp at %.9g, %.0f %% of the limit\n", c->name, worst, (double)worst_x, worst / c->limit * 100);
    ASSERT(worst > 0); /* no function is exact: 0 would mean that nothing was measured */
    ASSERT(worst <= c->limit);
    PASS();
}

/* Where a formula hands over to another the result must not step back, apart from the last bit. */
TEST increasing_at_boundaries(void) {
    const mtan_function increasing[] = {MTAN_EXP, MTAN_LOG, MTAN_TANH, MTAN_SIGMOID, MTAN_SOFTPLUS, MTAN_SQRT};
    for (size_t j = 0; j < sizeof increasing / sizeof *increasing; j++) {
        mtan_function f = increasing[j];
        float x;
        for (uint32_t i = 0; ulp_awkward(i, &x); i++) {
            float next = nextafterf(x, INFINITY), y = call(f, x), after = call(f, next);
            if (after < nextafterf(y, -INFINITY)) {
                printf("function %d steps back: %.9g -> %.9g, next %.9g\n", (int)f, (double)x, (double)y,
                       (double)after);
                FAILm("not increasing");
            }
        }
    }
    PASS();
}

TEST symmetries_are_exact(void) {
    for (uint64_t bits = 0; bits < 0x7F800000u; bits += 65521) {
        float x = ulp_float((uint32_t)bits);
        ASSERT(identical(call(MTAN_SIN, -x), -call(MTAN_SIN, x)));
        ASSERT(identical(call(MTAN_COS, -x), call(MTAN_COS, x)));
        ASSERT(identical(call(MTAN_TANH, -x), -call(MTAN_TANH, x)));
    }
    PASS();
}

/* Beyond 1e5 an angle counts as 0. */
TEST large_angles_are_zero(void) {
    const float large[] = {nextafterf(1e5f, INFINITY), 1e6f, 4194304.0f, 1e10f, FLT_MAX};
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        ASSERT(identical(call(MTAN_SIN, large[i]), 0.0f));
        ASSERT(identical(call(MTAN_SIN, -large[i]), -0.0f));
        ASSERT(identical(call(MTAN_COS, large[i]), 1.0f));
        ASSERT(identical(call(MTAN_COS, -large[i]), 1.0f));
    }
    PASS();
}

SUITE(math_suite) {
    RUN_TEST(special_values);
    RUN_TEST(relu_of_special_values);
    RUN_TEST(any_length);
    RUN_TEST(exponentials_in_parts);
    RUN_TEST(ulp_error_counts);
    for (int i = 0; i < ULP_CASES; i++) {
        greatest_set_test_suffix(ulp_cases[i].name);
        RUN_TEST1(within_limit, &ulp_cases[i]);
    }
    RUN_TEST(increasing_at_boundaries);
    RUN_TEST(symmetries_are_exact);
    RUN_TEST(large_angles_are_zero);
}

#endif
