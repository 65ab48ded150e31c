/* Logistic regression against scikit-learn's (golden/rivals.safetensors), and how it chooses its ridge. */
#define GOLDEN_FILE "rivals.safetensors"
#include <greatest.h>
#include <math.h>
#include <string.h>

#include "golden_metrics.h"
#include "../../tools/data/generators.h"
#include "../../tools/mtan/measure/logistic.h"

static const char *tensor(char name[32], const char *of, const char *what) {
    snprintf(name, 32, "%s.%s", of, what);
    return name;
}

static int same_numbers(const char *name, const double *got, const double *expected, size_t n, double limit) {
    for (size_t i = 0; i < n; i++)
        if (!(fabs(got[i] - expected[i]) <= limit)) {
            printf("  BAD %s[%zu]: %.9g, expected %.9g\n", name, i, got[i], expected[i]);
            return 0;
        }
    return 1;
}

TEST the_regression_is_scikit_learns(const char *of) {
    char name[32];
    size_t n, many, numbers, one;
    double *x = golden_f64(tensor(name, of, "x"), &many), *weight = golden_f64(tensor(name, of, "weight"), &numbers);
    double *p = golden_f64(tensor(name, of, "p"), &numbers), *ridge = golden_f64(tensor(name, of, "ridge"), &one);
    int32_t *label = golden_i32(tensor(name, of, "label"), &n);
    const size_t features = many / n, classes = numbers / n;
    double *got = guard_alloc(classes * sizeof *got);
    logistic r;
    logistic_fit(&r, (logistic_rows){x, label, n}, features, (int32_t)classes, *ridge);
    ASSERT(same_numbers("weight", r.weight, weight, (features + 1) * r.columns, 1e-5));
    for (size_t i = 0; i < n; i++) {
        logistic_at(&r, x + i * features, got);
        ASSERT(same_numbers("p", got, p + i * classes, classes, 1e-5));
    }
    logistic_free(&r);
    ASSERT(guard_free(got));
    free(x), free(weight), free(p), free(ridge), free(label);
    PASS();
}

enum { ROWS = 240, FEATURES = 30 };

/* Rows whose class depends on `telling` of the first numbers, and on chance. */
static void make_rows(double *x, int32_t *label, size_t n, size_t telling, double chance, uint32_t seed) {
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, seed);
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t k = 0; k < FEATURES; k++) {
            x[i * FEATURES + k] = (double)numpy_interval(&rng, 2000) / 1000 - 1;
            if (k < telling) sum += x[i * FEATURES + k];
        }
        label[i] = sum + chance * ((double)numpy_interval(&rng, 2000) / 1000 - 1) > 0;
    }
}

TEST the_ridge_follows_the_data(void) {
    static double x[2 * ROWS * FEATURES];
    static int32_t label[2 * ROWS];
    const logistic_rows train = {x, label, ROWS}, valid = {x + ROWS * FEATURES, label + ROWS, ROWS};
    logistic clear, noise;
    make_rows(x, label, 2 * ROWS, 3, 0.05, 1);
    logistic_choose(&clear, train, valid, FEATURES, 2);
    make_rows(x, label, 2 * ROWS, 0, 1, 2);
    logistic_choose(&noise, train, valid, FEATURES, 2);
    ASSERT(clear.ridge <= 1 && noise.ridge >= 100);
    ASSERT(clear.weight[0] > 5 * fabs(clear.weight[FEATURES - 1]));
    logistic_free(&clear), logistic_free(&noise);
    PASS();
}

/* One class alone, a class that never occurs, no number at all: probabilities stay probabilities. */
TEST odd_rows_do_no_harm(void) {
    static const double x[] = {NAN, 1, 2, NAN, INFINITY, 3};
    static const int32_t label[] = {1, 1, 1};
    double p[3];
    logistic r;
    logistic_fit(&r, (logistic_rows){x, label, 3}, 2, 3, 1);
    logistic_at(&r, x, p);
    ASSERT(p[1] > 0.9 && fabs(p[0] + p[1] + p[2] - 1) < 1e-9);
    logistic_free(&r);
    logistic_fit(&r, (logistic_rows){x, label, 3}, 0, 2, 1);
    logistic_at(&r, x, p);
    ASSERT(p[1] > 0.9 && p[1] <= 1);
    logistic_free(&r);
    PASS();
}

SUITE(logistic_suite) {
    static const char *const cases[] = {"two", "five", "strong"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        greatest_set_test_suffix(cases[i]);
        RUN_TESTp(the_regression_is_scikit_learns, cases[i]);
    }
    RUN_TEST(the_ridge_follows_the_data);
    RUN_TEST(odd_rows_do_no_harm);
}
