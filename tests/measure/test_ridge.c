/* Ridge regression against scikit-learn's (golden/rivals.safetensors), and how it chooses its ridge. */
#define GOLDEN_FILE "rivals.safetensors"
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "golden_metrics.h"
#include "../../tools/data/generators.h"
#include "../../tools/mtan/measure/ridge.h"

static double *of_case(const char *name, const char *what, size_t *n) {
    char tensor[32];
    snprintf(tensor, sizeof tensor, "%s.%s", name, what);
    return golden_f64(tensor, n);
}

TEST the_regression_is_scikit_learns(const char *name) {
    size_t many, n, weights, one;
    double *x = of_case(name, "x", &many), *y = of_case(name, "y", &n), *weight = of_case(name, "weight", &weights);
    double *p = of_case(name, "p", &n), *ridge = of_case(name, "ridge", &one);
    const size_t features = many / n;
    ridge_regression r;
    ASSERT_EQ_FMT(features + 1, weights, "%zu");
    ridge_fit(&r, (ridge_rows){x, y, n}, features, *ridge);
    for (size_t k = 0; k < weights; k++) ASSERT(fabs(r.weight[k] - weight[k]) <= 1e-7 * (1 + fabs(weight[k])));
    for (size_t i = 0; i < n; i++) ASSERT(same_number("p", ridge_at(&r, x + i * features), p[i], 1e-8));
    ridge_free(&r);
    free(x), free(y), free(weight), free(p), free(ridge);
    PASS();
}

enum { ROWS = 120, FEATURES = 20 };

static void make_rows(double *x, double *y, double told, uint32_t seed) {
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, seed);
    for (size_t i = 0; i < 2 * ROWS; i++) {
        for (size_t k = 0; k < FEATURES; k++) x[i * FEATURES + k] = (double)numpy_interval(&rng, 2000) / 1000 - 1;
        y[i] = told * (x[i * FEATURES] - x[i * FEATURES + 1]) + (double)numpy_interval(&rng, 2000) / 1000 - 1;
    }
}

TEST the_ridge_follows_the_data(void) {
    static double x[2 * ROWS * FEATURES], y[2 * ROWS];
    const ridge_rows train = {x, y, ROWS}, valid = {x + ROWS * FEATURES, y + ROWS, ROWS};
    ridge_regression clear, noise;
    make_rows(x, y, 10, 1);
    ridge_choose(&clear, train, valid, FEATURES);
    make_rows(x, y, 0, 2);
    ridge_choose(&noise, train, valid, FEATURES);
    ASSERT(clear.ridge <= 3 && noise.ridge >= 1000);
    ASSERT(fabs(clear.weight[0] + clear.weight[1]) < 0.1 * fabs(clear.weight[0]));
    ridge_free(&clear), ridge_free(&noise);
    PASS();
}

/* Constant numbers, a single row, nothing known of a row: the mean, and never something that is no number. */
TEST odd_rows_do_no_harm(void) {
    const double x[] = {NAN, 1, 2, NAN, INFINITY, 3}, y[] = {5, 5, 5}, unknown[] = {NAN, NAN};
    ridge_regression r;
    ridge_choose(&r, (ridge_rows){x, y, 3}, (ridge_rows){x, y, 3}, 2);
    ASSERT(same_number("constant", ridge_at(&r, x), 5, 1e-9));
    ASSERT(same_number("unknown", ridge_at(&r, unknown), 5, 1e-9));
    ridge_free(&r);
    ridge_fit(&r, (ridge_rows){x + 4, y, 1}, 2, 1);
    ASSERT(same_number("one row", ridge_at(&r, unknown), 5, 1e-9));
    ridge_free(&r);
    PASS();
}

SUITE(ridge_suite) {
    static const char *const cases[] = {"number", "wide"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        greatest_set_test_suffix(cases[i]);
        RUN_TESTp(the_regression_is_scikit_learns, cases[i]);
    }
    RUN_TEST(the_ridge_follows_the_data);
    RUN_TEST(odd_rows_do_no_harm);
}
