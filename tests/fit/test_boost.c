/* Boosted trees against scikit-learn's (golden/rivals.safetensors), and what they leave alone. */
#define GOLDEN_FILE "rivals.safetensors"
#include <greatest.h>
#include <math.h>
#include <string.h>

#include "check.h"
#include "golden_metrics.h"
#include "../../tools/data/generators.h"
#include "../../tools/mtan/fit/boost.h"
#include "../../tools/mtan/fit/stairs.h"
#include "../../tools/mtan/measure/logistic.h"

enum { ROUNDS = 40, LEAST = 5 }; /* as tools/golden/golden_rivals.py has it */

static boost_rule rule_of(size_t numbers, size_t classes, int32_t trees) {
    boost_rule rule = boost_default(numbers, 0, (int32_t)classes, trees, 0);
    rule.thresholds = 255, rule.tried = numbers, rule.least = LEAST;
    rule.rate = classes == 2 ? 0.1 : 0.5, rule.ridge = classes == 2 ? 5 : 0;
    return rule;
}

/* Few enough rows that every value has a threshold, as scikit-learn's bins do; validated on themselves, so that no tree is one too
 * many. */
TEST the_trees_are_scikit_learns(const char *of, int32_t trees) {
    char name[32];
    size_t n, many, numbers;
    snprintf(name, sizeof name, "%s.x", of);
    double *wide = golden_f64(name, &many);
    snprintf(name, sizeof name, "%s.label", of);
    int32_t *label = golden_i32(name, &n);
    snprintf(name, sizeof name, "%s.boosted", of);
    double *expected = golden_f64(name, &numbers), logit[8];
    const size_t features = many / n, classes = numbers / n;
    const boost_rule rule = rule_of(features, classes, trees);
    mtan_real *x = guard_alloc(many * sizeof *x);
    boost b;
    for (size_t i = 0; i < many; i++) x[i] = (mtan_real)(float)wide[i];
    const boost_rows rows = {x, label, n, NULL};
    boost_fit(&b, rows, rows, &rule);
    ASSERT_EQ_FMT(trees, b.trees, "%d");
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        boost_at(&b, x + i * features, logit);
        for (size_t c = 0; c < classes; c++) sum += exp(logit[c]);
        for (size_t c = 0; c < classes; c++) ASSERT_NEAR(expected[i * classes + c], exp(logit[c]) / sum, 1e-5);
    }
    boost_free(&b);
    ASSERT(guard_free(x));
    free(wide), free(label), free(expected);
    PASS();
}

/* The same for numbers to predict; and they go on from a regression that is written as trees. */
TEST trees_of_targets_are_scikit_learns(const char *of) {
    char name[32];
    size_t n, many;
    snprintf(name, sizeof name, "%s.x", of);
    double *wide = golden_f64(name, &many);
    snprintf(name, sizeof name, "%s.y", of);
    double *y = golden_f64(name, &n);
    snprintf(name, sizeof name, "%s.boosted", of);
    double *expected = golden_f64(name, &n), said, from = 0, alone = 0;
    const size_t features = many / n;
    boost_rule rule = rule_of(features, 2, ROUNDS);
    mtan_real *x = guard_alloc(many * sizeof *x);
    uint8_t *reads = guard_alloc(features);
    boost b, first;
    rule.classes = 1;
    memset(reads, 1, features);
    for (size_t i = 0; i < many; i++) x[i] = (mtan_real)(float)wide[i];
    const boost_rows rows = {x, NULL, n, y};
    boost_fit(&b, rows, rows, &rule);
    ASSERT_EQ_FMT((int)ROUNDS, b.trees, "%d");
    for (size_t i = 0; i < n; i++) {
        boost_at(&b, x + i * features, &said);
        ASSERT_NEAR(expected[i], said, 1e-5 * fabs(expected[i]));
        alone += (said - y[i]) * (said - y[i]);
    }
    boost_free(&b);
    stairs_fit(&first, rows, rows, reads, features, 1, 1);
    rule.first = &first, rule.trees += first.trees;
    boost_fit(&b, rows, rows, &rule);
    ASSERT(b.trees > first.trees);
    for (size_t i = 0; i < n; i++) boost_at(&b, x + i * features, &said), from += (said - y[i]) * (said - y[i]);
    ASSERT(from < alone);
    boost_free(&b), boost_free(&first);
    ASSERT(guard_free(x) & guard_free(reads));
    free(wide), free(y), free(expected);
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

TEST a_number_that_tells_nothing_is_hardly_split_by(void) {
    mtan_real *x = guard_alloc(2 * ROWS * NUMBERS * sizeof *x);
    int32_t *label = guard_alloc(2 * ROWS * sizeof *label);
    int32_t splits[NUMBERS] = {0}, first = 0;
    const boost_rule rule = boost_default(NUMBERS, ROWS, 2, 1000, 7);
    boost b;
    make_rows(x, label, 1), make_rows(x + ROWS * NUMBERS, label + ROWS, 2);
    boost_fit(&b, (boost_rows){x, label, ROWS, NULL}, (boost_rows){x + ROWS * NUMBERS, label + ROWS, ROWS, NULL},
              &rule);
    ASSERT(b.trees > 100);
    ASSERT(b.trees < 1000); /* validation has ended it */
    for (int32_t t = 0; t < b.trees; t++) first += b.split[t * BOOST_SPLITS].number == TELLS;
    for (int32_t i = 0; i < b.trees * BOOST_SPLITS; i++)
        if (b.split[i].leaf >= 0) splits[b.split[i].number]++;
    ASSERT(first > b.trees * 7 / 10); /* of twelve numbers ten are tried */
    for (int32_t j = 0; j < NUMBERS; j++) ASSERT(j == TELLS || 2 * splits[j] < 3 * splits[TELLS]);
    boost_free(&b);
    ASSERT(guard_free(x) & guard_free(label));
    PASS();
}

/* Two numbers that tell only together: no sum of functions of one each finds it. */
TEST numbers_that_tell_together_are_found(void) {
    const boost_rule rule = boost_default(NUMBERS, ROWS, 2, 300, 7);
    mtan_real *x = guard_alloc(2 * ROWS * NUMBERS * sizeof *x);
    int32_t *label = guard_alloc(2 * ROWS * sizeof *label), right = 0;
    double logit[2];
    boost b;
    make_rows(x, label, 3), make_rows(x + ROWS * NUMBERS, label + ROWS, 4);
    for (size_t i = 0; i < 2 * (size_t)ROWS; i++)
        label[i] = (x[i * NUMBERS] > 0) == (x[i * NUMBERS + 1] > (mtan_real)0.2);
    boost_fit(&b, (boost_rows){x, label, ROWS, NULL}, (boost_rows){x + ROWS * NUMBERS, label + ROWS, ROWS, NULL},
              &rule);
    for (size_t i = ROWS; i < 2 * (size_t)ROWS; i++) {
        boost_at(&b, x + i * NUMBERS, logit);
        right += (logit[1] > logit[0]) == label[i];
    }
    ASSERT(right > ROWS * 8 / 10);
    boost_free(&b);
    ASSERT(guard_free(x) & guard_free(label));
    PASS();
}

/* One of a hundred numbers is not constant: it is found, drawn or not. */
TEST a_tree_looks_on_until_a_number_splits(void) {
    enum { MANY = 100, FEW = 60 };
    const boost_rule rule = boost_default(MANY, FEW, 2, 50, 7);
    mtan_real *x = guard_alloc(FEW * MANY * sizeof *x);
    int32_t label[FEW];
    boost b;
    for (size_t i = 0; i < FEW * (size_t)MANY; i++) x[i] = 1;
    for (size_t i = 0; i < FEW; i++) label[i] = i % 2, x[i * MANY + 42] = (mtan_real)(i % 2);
    const boost_rows rows = {x, label, FEW, NULL};
    boost_fit(&b, rows, rows, &rule);
    ASSERT_EQ_FMT(50, b.trees, "%d");
    for (int32_t t = 0; t < b.trees; t++) ASSERT_EQ_FMT(42, b.split[t * BOOST_SPLITS].number, "%d");
    boost_free(&b);
    ASSERT(guard_free(x));
    PASS();
}

/* What is drawn depends on the seed alone. */
TEST the_seed_decides_what_is_drawn(void) {
    mtan_real *x = guard_alloc(ROWS * NUMBERS * sizeof *x);
    int32_t *label = guard_alloc(ROWS * sizeof *label);
    double logit[3][2];
    make_rows(x, label, 5);
    for (uint32_t i = 0; i < 3; i++) {
        const boost_rule rule = boost_default(NUMBERS, ROWS, 2, 20, i / 2);
        const boost_rows rows = {x, label, ROWS, NULL};
        boost b;
        boost_fit(&b, rows, rows, &rule);
        boost_at(&b, x, logit[i]);
        boost_free(&b);
    }
    ASSERT_MEM_EQ(logit[0], logit[1], sizeof logit[0]);
    ASSERT(memcmp(logit[0], logit[2], sizeof logit[0]) != 0);
    ASSERT(guard_free(x) & guard_free(label));
    PASS();
}

TEST without_validation_rows_nothing_is_fitted(void) {
    const mtan_real x[4] = {1, 2, (mtan_real)NAN, 4};
    const int32_t label[4] = {0, 1, 2, 1};
    const boost_rule rule = boost_default(1, 4, 3, 10, 0);
    double logit[3];
    boost b;
    boost_fit(&b, (boost_rows){x, label, 4, NULL}, (boost_rows){NULL, NULL, 0, NULL}, &rule);
    ASSERT_EQ_FMT(0, b.trees, "%d");
    boost_at(&b, x, logit);
    ASSERT_NEAR(log(2), logit[1] - logit[0], 1e-12);
    boost_free(&b);
    PASS();
}

enum { LINES = 3, SKIPPED = 1 };

/* Classes by a straight line of number 0 and the opposite of number 2; number 1 repeats 0 and is not to be read. */
static void make_lines(mtan_real *x, int32_t *label, int32_t classes, uint32_t seed) {
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, seed);
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t j = 0; j < LINES; j++) x[i * LINES + j] = (mtan_real)numpy_interval(&rng, 2000) / 1000 - 1;
        x[i * LINES + SKIPPED] = x[i * LINES];
        const double u = (double)numpy_interval(&rng, 2000) / 1000 - 1,
                     at = (double)x[i * LINES] - (double)x[i * LINES + 2] + u;
        label[i] = at < -0.5 ? 0 : at < 0.5 && classes > 2 ? 2 : at > 0;
        if (i % 10 == 9) x[i * LINES] = (mtan_real)NAN;
    }
}

/* Beside the regression itself, which test_logistic.c has against scikit-learn: its probabilities, in steps of a tenth of the rows. */
TEST stairs_follow_the_regression(int32_t classes) {
    const uint8_t reads[LINES] = {1, 0, 1};
    mtan_real *x = guard_alloc(ROWS * LINES * sizeof *x);
    int32_t *label = guard_alloc(ROWS * sizeof *label);
    double *wide = guard_alloc(2 * ROWS * sizeof *wide), logit[3], p[3], far = 0, mean = 0;
    const boost_rows rows = {x, label, ROWS, NULL};
    logistic r;
    boost b;
    make_lines(x, label, classes, 5);
    for (size_t i = 0; i < ROWS; i++) wide[2 * i] = (double)x[i * LINES], wide[2 * i + 1] = (double)x[i * LINES + 2];
    ASSERT_NEAR(3, stairs_fit(&b, rows, rows, reads, LINES, classes, 3), 0);
    logistic_fit(&r, (logistic_rows){wide, label, ROWS}, 2, classes, 3);
    ASSERT_EQ_FMT(2, b.trees, "%d");
    for (int32_t i = 0; i < b.trees * BOOST_SPLITS; i++) ASSERT(b.split[i].number != SKIPPED);
    for (size_t i = 0; i < ROWS; i++) {
        boost_at(&b, x + i * LINES, logit);
        boost_softmax(logit, (size_t)classes);
        logistic_at(&r, wide + 2 * i, p);
        for (int32_t c = 0; c < classes; c++) far = fmax(far, fabs(logit[c] - p[c])), mean += logit[c] - p[c];
    }
    ASSERT(far < 0.15);
    ASSERT(far > 1e-3); /* they are steps */
    ASSERT(fabs(mean / ROWS) < 1e-9);
    boost_free(&b), logistic_free(&r);
    ASSERT(guard_free(x) & guard_free(label) & guard_free(wide));
    PASS();
}

/* A row without the number takes the step of the mean, as in the regression: it is not taken for a low one. */
TEST stairs_take_the_mean_of_a_missing_number(void) {
    const mtan_real x[6] = {1, 2, 3, 4, 5, 6}, none = (mtan_real)NAN;
    const int32_t label[6] = {0, 0, 1, 0, 1, 1};
    const uint8_t reads = 1;
    double logit[2], below[2], above[2];
    boost b;
    stairs_fit(&b, (boost_rows){x, label, 6, NULL}, (boost_rows){x, label, 6, NULL}, &reads, 1, 2, 1);
    boost_at(&b, &none, logit), boost_at(&b, x + 2, below), boost_at(&b, x + 3, above);
    ASSERT(below[1] < above[1]);
    ASSERT(logit[1] >= below[1] && logit[1] <= above[1]);
    boost_free(&b);
    PASS();
}

/* A constant number has no line; where there is room for no more trees the given ones stay. */
TEST trees_go_on_from_those_given(void) {
    const uint8_t reads[LINES] = {1, 1, 1};
    mtan_real *x = guard_alloc(ROWS * LINES * sizeof *x);
    int32_t *label = guard_alloc(ROWS * sizeof *label);
    const boost_rows rows = {x, label, ROWS, NULL};
    boost_rule rule = boost_default(LINES, ROWS, 2, 1, 0);
    double logit[2], same[2];
    boost first, b;
    make_lines(x, label, 2, 6);
    for (size_t i = 0; i < ROWS; i++) x[i * LINES + SKIPPED] = 1;
    ASSERT(stairs_fit(&first, rows, rows, reads, LINES, 2, (double)NAN) > 0);
    ASSERT_EQ_FMT(2, first.trees, "%d");
    rule.first = &first;
    boost_fit(&b, rows, rows, &rule);
    ASSERT_EQ_FMT(2, b.trees, "%d");
    for (size_t i = 0; i < ROWS; i++) {
        boost_at(&b, x + i * LINES, logit), boost_at(&first, x + i * LINES, same);
        ASSERT_NEAR(same[1], logit[1], 0);
    }
    boost_free(&b);
    rule = boost_default(LINES, ROWS, 2, 50, 0), rule.first = &first;
    boost_fit(&b, rows, rows, &rule);
    ASSERT(b.trees > 2);
    ASSERT(memcmp(b.height, first.height, 2 * MTAN_LEAVES * sizeof *b.height) == 0);
    boost_free(&b), boost_free(&first);
    ASSERT(guard_free(x) & guard_free(label));
    PASS();
}

TEST a_mean_is_of_the_sums(void) {
    mtan_real *x = guard_alloc(ROWS * LINES * sizeof *x);
    int32_t *label = guard_alloc(ROWS * sizeof *label);
    const boost_rows rows = {x, label, ROWS, NULL};
    boost_rule rule = boost_default(LINES, ROWS, 3, 4, 0);
    double logit[3], of_a[3], of_b[3];
    boost a, b, mean;
    make_lines(x, label, 3, 7);
    boost_fit(&a, rows, rows, &rule);
    rule.trees = 9, rule.seed = 1;
    boost_fit(&b, rows, rows, &rule);
    boost_mean(&mean, &a, &b);
    ASSERT_EQ_FMT(a.trees + b.trees, mean.trees, "%d");
    for (size_t i = 0; i < ROWS; i++) {
        boost_at(&mean, x + i * LINES, logit), boost_at(&a, x + i * LINES, of_a), boost_at(&b, x + i * LINES, of_b);
        for (int c = 0; c < 3; c++) ASSERT(fabs(logit[c] - (of_a[c] + of_b[c]) / 2) <= 1e-12);
    }
    boost_free(&a), boost_free(&b), boost_free(&mean);
    ASSERT(guard_free(x) & guard_free(label));
    PASS();
}

SUITE(boost_suite);
SUITE(boost_suite) {
    RUN_TESTp(the_trees_are_scikit_learns, "two", ROUNDS);
    RUN_TESTp(the_trees_are_scikit_learns, "five", 1);
    RUN_TESTp(the_trees_are_scikit_learns, "strong", 1);
    RUN_TEST1(trees_of_targets_are_scikit_learns, "number");
    RUN_TEST1(trees_of_targets_are_scikit_learns, "wide");
    RUN_TEST(a_number_that_tells_nothing_is_hardly_split_by);
    RUN_TEST(numbers_that_tell_together_are_found);
    RUN_TEST(a_tree_looks_on_until_a_number_splits);
    RUN_TEST(the_seed_decides_what_is_drawn);
    RUN_TEST(without_validation_rows_nothing_is_fitted);
    RUN_TESTp(stairs_follow_the_regression, 2);
    RUN_TESTp(stairs_follow_the_regression, 3);
    RUN_TEST(stairs_take_the_mean_of_a_missing_number);
    RUN_TEST(trees_go_on_from_those_given);
    RUN_TEST(a_mean_is_of_the_sums);
}
