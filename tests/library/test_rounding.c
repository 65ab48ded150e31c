/* Rounding to whole numbers where two are equally near: to the even one, as the C library's rint has it. Vectors do
 * the same, so that a tie decided otherwise would be other bits. */
#include <greatest.h>
#include <math.h>

#include "check.h"

#ifndef MTAN_DOUBLE

/* The exponent of e^x is x / ln 2 rounded: by the fused class as the product is, by the other as the product of
 * floats is. */
static float expected_exponent(float x) {
    const float log2_e = 1.44269502f;
    volatile float product = x * log2_e;
    return mtan_backend_fused(&mtan_backend_scalar) ? (float)rint((double)x * (double)log2_e) : rintf(product);
}

TEST exponents_are_rounded_to_even(void) {
    int ties = 0;
    for (int k = -300; k <= 300; k++) {
        float x = ((float)k + 0.5f) / 1.44269502f;
        for (int i = 0; i < 4; i++) x = nextafterf(x, -1e9f);
        for (int i = 0; i < 9; i++, x = nextafterf(x, 1e9f)) {
            volatile float product = x * 1.44269502f;
            float significand, exponent;
            mtan_backend_scalar.exp_parts(&significand, &exponent, &x, 1);
            ties += product == (float)k + 0.5f;
            ASSERT_EQ_FMT((double)expected_exponent(x), (double)exponent, "%g");
        }
    }
    ASSERT(ties > 300); /* most halves are the product of some float */
    PASS();
}

#endif

SUITE(rounding_suite) {
#ifndef MTAN_DOUBLE
    RUN_TEST(exponents_are_rounded_to_even);
#endif
}
