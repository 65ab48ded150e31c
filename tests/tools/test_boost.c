/* Boosted terms against scikit-learn's boosting of trees with two leaves (golden/rivals.safetensors), and what they leave alone. */
#define GOLDEN_FILE "rivals.safetensors"
#include <greatest.h>
#include <math.h>
#include <string.h>

#include "golden_metrics.h"
#include "../../tools/data/generators.h"
#include "../../tools/mtan/model/boost.h"

enum { ROUNDS = 40 }; /* as tools/golden/golden_rivals.py has it */

/* Few enough rows that every value has a threshold, as scikit-learn's bins do; validated on themselves, so that no round is one too
 * many. */
TEST the_steps_are_scikit_learns(const char *of) {
    char name[32];
    size_t n, many, numbers;
    snprintf(name, sizeof name, "%s.x", of);
    double *wide = golden_f64(name, &many);
    snprintf(name, sizeof name, "%s.label", of);
    int32_t *label = golden_i32(name, &n);
    snprintf(name, sizeof name, "%s.boosted", of);
    double *expected = golden_f64(name, &numbers), logit[8];
    const size_t features = many / n, classes = numbers / n;
    mtan_real *x = guard_alloc(many * sizeof *x);
    boost b;
    for (size_t i = 0; i < many; i++) x[i] = (mtan_real)(float)wide[i];
    const boost_rows rows = {x, label, n};
    boost_fit(&b, rows, rows, (boost_size){features, (int32_t)classes, 255, ROUNDS});
    ASSERT_EQ_FMT(ROUNDS, (int)b.rounds, "%d");
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        boost_at(&b, x + i * features, logit);
        for (size_t c = 0; c < classes; c++) sum += exp(logit[c]);
        for (size_t c = 0; c < classes; c++) ASSERT_IN_RANGE(expected[i * classes + c], exp(logit[c]) / sum, 1e-5);
    }
    boost_free(&b);
    ASSERT(guard_free(x));
    free(wide), free(label), free(expected);
    PASS();
}

enum { ROWS = 600, NUMBERS = 12, TELLS = 3 };

/* One number tells the class, in the middle of its range alone; it is missing now and then. */
static void make_rows(mtan_real *x, int32_t *label, uint32_t seed) {
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, seed);
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t j = 0; j < NUMBERS; j++) x[i * NUMBERS + j] = (mtan_real)numpy_interval(&rng, 2000) / 1000 - 1;
        label[i] =
            fabs((double)x[i * NUMBERS + TELLS]) < 0.3 ? numpy_interval(&rng, 9) > 0 : numpy_interval(&rng, 9) < 1;
        if (i % 10 == 9) x[i * NUMBERS + TELLS] = (mtan_real)NAN;
    }
}

static double spread_of(const boost *b, size_t number) {
    const size_t steps = (size_t)b->thresholds + 2;
    double least = INFINITY, most = -INFINITY;
    for (size_t k = 1; k < steps; k++) {
        least = fmin(least, b->height[number * steps + k]);
        most = fmax(most, b->height[number * steps + k]);
    }
    return most - least;
}

TEST a_number_that_tells_nothing_has_hardly_a_term(void) {
    mtan_real *x = guard_alloc(2 * ROWS * NUMBERS * sizeof *x);
    int32_t *label = guard_alloc(2 * ROWS * sizeof *label);
    boost b;
    make_rows(x, label, 1), make_rows(x + ROWS * NUMBERS, label + ROWS, 2);
    boost_fit(&b, (boost_rows){x, label, ROWS}, (boost_rows){x + ROWS * NUMBERS, label + ROWS, ROWS},
              (boost_size){NUMBERS, 2, 15, BOOST_ROUNDS});
    ASSERT(b.rounds > 10);
    ASSERT(b.rounds < BOOST_ROUNDS); /* validation has ended it */
    ASSERT(spread_of(&b, TELLS) > 2);
    for (size_t j = 0; j < NUMBERS; j++) ASSERT(j == TELLS || spread_of(&b, j) < 0.5);
    boost_free(&b);
    ASSERT(guard_free(x) & guard_free(label));
    PASS();
}

TEST without_validation_rows_nothing_is_fitted(void) {
    const mtan_real x[4] = {1, 2, (mtan_real)NAN, 4};
    const int32_t label[4] = {0, 1, 2, 1};
    double logit[3];
    boost b;
    boost_fit(&b, (boost_rows){x, label, 4}, (boost_rows){NULL, NULL, 0}, (boost_size){1, 3, 2, BOOST_ROUNDS});
    ASSERT_EQ_FMT(0, (int)b.rounds, "%d");
    boost_at(&b, x, logit);
    ASSERT_IN_RANGE(log(2), logit[1] - logit[0], 1e-12);
    boost_free(&b);
    PASS();
}

SUITE(boost_suite);
SUITE(boost_suite) {
    RUN_TESTp(the_steps_are_scikit_learns, "two");
    RUN_TESTp(the_steps_are_scikit_learns, "five");
    RUN_TESTp(the_steps_are_scikit_learns, "strong");
    RUN_TEST(a_number_that_tells_nothing_has_hardly_a_term);
    RUN_TEST(without_validation_rows_nothing_is_fitted);
}
