/* Metrics, against scikit-learn and NumPy (golden/metrics.safetensors), and by their own laws. */
#include <greatest.h>
#include <math.h>
#include <string.h>

#include "golden_metrics.h"
#include "../../tools/mtan/measure/metrics.h"
#include "../../tools/data/generators.h"

#define NEAR 1e-12

/* ---- golden ---- */

TEST areas_are_scikit_learns(void) {
    size_t cases = 0, total = 0, first = 0;
    int32_t *n = golden_i32("binary.n", &cases), *label = golden_i32("binary.label", &total);
    double *score = golden_f64("binary.score", &total), *auc = golden_f64("binary.auc", &cases);
    double *auprc = golden_f64("binary.auprc", &cases);
    for (size_t k = 0; k < cases; first += (size_t)n[k++]) {
        ASSERT(same_number("auc", metric_auc(score + first, label + first, (size_t)n[k]), auc[k], NEAR));
        ASSERT(same_number("auprc", metric_auprc(score + first, label + first, (size_t)n[k]), auprc[k], NEAR));
    }
    ASSERT_EQ_FMT(total, first, "%zu");
    free(n), free(label), free(score), free(auc), free(auprc);
    PASS();
}

static int same_curve(const char *tensor, const double *x, const double *y, size_t points) {
    size_t n = 0;
    double *expected = golden_f64(tensor, &n);
    int good = n == 2 * points;
    for (size_t i = 0; good && i < points; i++)
        good = same_number(tensor, x[i], expected[i], NEAR) && same_number(tensor, y[i], expected[points + i], NEAR);
    free(expected);
    return good;
}

TEST curves_are_scikit_learns(void) {
    size_t cases = 0, total = 0;
    int32_t *n = golden_i32("binary.n", &cases), *label = golden_i32("binary.label", &total);
    double *score = golden_f64("binary.score", &total);
    const size_t rows = (size_t)n[1];
    double *x = guard_alloc((rows + 1) * sizeof *x), *y = guard_alloc((rows + 1) * sizeof *y);
    ASSERT(same_curve("binary.1.roc", x, y, metric_roc(x, y, score + n[0], label + n[0], rows)));
    ASSERT(same_curve("binary.1.pr", x, y, metric_pr(x, y, score + n[0], label + n[0], rows)));
    ASSERT_EQ_FMT(rows + 1, metric_roc(x, y, score, label, (size_t)n[0]), "%zu"); /* no ties: every row is a point */
    ASSERT(guard_free(x) && guard_free(y));
    free(n), free(label), free(score);
    PASS();
}

/* Rows of golden probabilities. */
typedef struct table {
    double *p;
    int32_t *label;
    size_t n;
    int32_t classes;
} table;

static double *golden_part(const char *name, const char *part, size_t *n) {
    char tensor[64];
    snprintf(tensor, sizeof tensor, "%s.%s", name, part);
    return golden_f64(tensor, n);
}

static table golden_table(const char *name) {
    char tensor[64];
    size_t cells = 0;
    table t;
    snprintf(tensor, sizeof tensor, "%s.label", name);
    t.label = golden_i32(tensor, &t.n);
    t.p = golden_part(name, "p", &cells);
    t.classes = (int32_t)(cells / t.n);
    return t;
}

static void free_table(table *t) {
    free(t->p), free(t->label);
}

static double plain(const table *t, metric_name name) {
    switch (name) {
    case METRIC_AUC: return metric_auc_classes(t->p, t->label, t->n, t->classes);
    case METRIC_AUPRC: return metric_auprc_classes(t->p, t->label, t->n, t->classes);
    case METRIC_ACCURACY: return metric_accuracy(t->p, t->label, t->n, t->classes);
    case METRIC_LOG_LOSS: return metric_log_loss(t->p, t->label, t->n, t->classes);
    case METRIC_BRIER: return metric_brier(t->p, t->label, t->n, t->classes);
    case METRIC_CALIBRATION: return metric_calibration(t->p, t->label, t->n, t->classes);
    default: return NAN;
    }
}

TEST scores_are_scikit_learns(const char *name) {
    table t = golden_table(name);
    size_t n = 0;
    double *expected = golden_part(name, "metrics", &n);
    metric_query q = {metric_table_new(t.p, NULL, t.label, t.n, t.classes), METRIC_AUC, NULL};
    ASSERT_EQ_FMT((size_t)METRICS, n, "%zu");
    for (int m = 0; m < METRICS; m++) {
        q.name = (metric_name)m;
        ASSERT(same_number(name, plain(&t, q.name), expected[m], NEAR));
        ASSERT(same_number(name, metric_drawn(&q, NULL, t.n), expected[m], NEAR));
    }
    metric_table_free(q.table);
    free(expected);
    free_table(&t);
    PASS();
}

static int same_bins(const char *name, const char *part, const table *t, int32_t of) {
    metric_bin bins[METRIC_BINS];
    size_t n = 0;
    double *expected = golden_part(name, part, &n);
    int good = n == 3 * METRIC_BINS;
    metric_bins(bins, t->p, t->label, t->n, t->classes, of);
    for (size_t k = 0; good && k < METRIC_BINS; k++)
        good = same_number("confidence", bins[k].confidence, expected[3 * k], NEAR) &&
               same_number("accuracy", bins[k].accuracy, expected[3 * k + 1], NEAR) &&
               same_number("count", (double)bins[k].count, expected[3 * k + 2], 0);
    free(expected);
    return good;
}

TEST classes_are_scikit_learns(const char *name) {
    table t = golden_table(name);
    metric_class each[5];
    int64_t counts[25];
    char tensor[64];
    size_t n = 0, cells = 0;
    snprintf(tensor, sizeof tensor, "%s.confusion", name);
    int32_t *confusion = golden_i32(tensor, &cells);
    double *expected = golden_part(name, "classes", &n);
    metric_confusion(counts, t.p, t.label, t.n, t.classes);
    for (size_t i = 0; i < cells; i++) ASSERT_EQ_FMT((long)confusion[i], (long)counts[i], "%ld");
    metric_per_class(each, counts, t.classes);
    for (size_t c = 0; c < (size_t)t.classes; c++) {
        ASSERT(same_number("precision", each[c].precision, expected[3 * c], NEAR));
        ASSERT(same_number("recall", each[c].recall, expected[3 * c + 1], NEAR));
        ASSERT(same_number("f1", each[c].f1, expected[3 * c + 2], NEAR));
    }
    ASSERT(same_bins(name, "bins", &t, -1));
    ASSERT(same_bins(name, "bins1", &t, 1));
    free(confusion), free(expected);
    free_table(&t);
    PASS();
}

/* 1 - p, p */
static double *both_columns(const double *score, size_t n) {
    double *p = calloc(2 * n, sizeof *p);
    for (size_t i = 0; i < n; i++) p[2 * i + 1] = 1 / (1 + exp(-score[i])), p[2 * i] = 1 - p[2 * i + 1];
    return p;
}

static int same_interval(interval got, const double *expected) {
    return same_number("low", got.low, expected[0], NEAR) && same_number("high", got.high, expected[1], NEAR);
}

TEST intervals_are_numpys(void) {
    size_t n = 0, m = 0;
    int32_t *label = golden_i32("boot.label", &n), *group = golden_i32("boot.group", &n);
    double *score = golden_f64("boot.score", &m), *expected = golden_f64("boot.intervals", &m);
    double *p = both_columns(score, n), *p2 = both_columns(score + n, n);
    metric_query q = {metric_table_new(p, score, label, n, 2), METRIC_AUC, NULL};
    ASSERT(same_interval(metric_bootstrap(metric_drawn, &q, n, NULL, 100, 5), expected));
    q.minus = metric_table_new(p2, NULL, label, n, 2); /* p ranks as its logit does */
    ASSERT(same_interval(metric_bootstrap(metric_drawn, &q, n, NULL, 100, 5), expected + 2));
    metric_table_free(q.minus);
    q.minus = NULL, q.name = METRIC_AUPRC;
    ASSERT(same_interval(metric_bootstrap(metric_drawn, &q, n, group, 100, 5), expected + 4));
    metric_table_free(q.table);
    free(label), free(group), free(score), free(expected), free(p), free(p2);
    PASS();
}

/* 80 rows of a calibrated model: the draws lie above the error, which is itself above 0. */
TEST the_calibration_error_has_no_interval(void) {
    enum { N = 80 };
    double p[2 * N];
    int32_t label[N];
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, 1);
    for (int i = 0; i < N; i++) {
        p[2 * i + 1] = numpy_uniform(&rng), p[2 * i] = 1 - p[2 * i + 1];
        label[i] = numpy_uniform(&rng) < p[2 * i + 1];
    }
    metric_query q = {metric_table_new(p, NULL, label, N, 2), METRIC_CALIBRATION, NULL};
    const interval drawn = metric_bootstrap(metric_drawn, &q, N, NULL, 1000, 0);
    const interval none = metric_interval(&q, N, NULL, 1000);
    ASSERT((drawn.low + drawn.high) / 2 > 1.2 * metric_drawn(&q, NULL, N));
    ASSERT(isnan(none.low) && isnan(none.high) && isnan(metric_interval(&q, N, NULL, 0).low));
    q.name = METRIC_BRIER;
    const interval same = metric_bootstrap(metric_drawn, &q, N, NULL, 100, 0),
                   range = metric_interval(&q, N, NULL, 100);
    ASSERT(range.low == same.low && range.high == same.high && range.low < range.high);
    metric_table_free(q.table);
    PASS();
}

/* ---- edges ---- */

TEST one_class_has_no_area(void) {
    static const double score[] = {0.1, 0.2, 0.3}, p[] = {0.2, 0.3, 0.5, 0.1, 0.1, 0.8};
    static const int32_t ones[] = {1, 1, 1}, zeros[] = {0, 0, 0}, second[] = {1, 1};
    double x[4], y[4];
    ASSERT(isnan(metric_auc(score, ones, 3)) && isnan(metric_auc(score, zeros, 3)) &&
           isnan(metric_auc(score, ones, 0)));
    ASSERT(metric_auprc(score, ones, 3) == 1 && isnan(metric_auprc(score, zeros, 3)));
    ASSERT(metric_roc(x, y, score, ones, 3) == 0 && metric_roc(x, y, score, zeros, 3) == 0);
    ASSERT(metric_pr(x, y, score, ones, 3) == 4 && metric_pr(x, y, score, zeros, 3) == 0);
    ASSERT(isnan(metric_auc_classes(p, second, 2, 3)) && metric_auprc_classes(p, second, 2, 3) == 1);
    PASS();
}

TEST nothing_has_no_score(void) {
    static const double p[] = {0.5, 0.5};
    static const int32_t unlabelled[] = {-1};
    metric_query q = {NULL, METRIC_AUC, NULL};
    for (size_t n = 0; n < 2; n++) {
        const table t = {(double *)(uintptr_t)p, (int32_t *)(uintptr_t)unlabelled, n, 2};
        q.table = metric_table_new(p, NULL, unlabelled, n, 2);
        for (int m = 0; m < METRICS; m++) {
            q.name = (metric_name)m;
            ASSERT(isnan(plain(&t, q.name)) && isnan(metric_drawn(&q, NULL, n)));
            const interval none = metric_bootstrap(metric_drawn, &q, n, NULL, 10, 1);
            ASSERT(isnan(none.low) && isnan(none.high));
        }
        metric_table_free(q.table);
    }
    metric_table_free(NULL);
    PASS();
}

/* NaN in any cell of a row that counts makes every metric NaN; in a row without a label it does nothing. */
TEST nan_is_not_hidden(const char *name) {
    table t = golden_table(name);
    const size_t C = (size_t)t.classes;
    double before[METRICS];
    for (int m = 0; m < METRICS; m++) before[m] = plain(&t, (metric_name)m);
    for (size_t cell = 7 * C; cell < 8 * C; cell++) {
        const double held = t.p[cell];
        metric_query q = {NULL, METRIC_AUC, NULL};
        t.p[cell] = NAN;
        q.table = metric_table_new(t.p, NULL, t.label, t.n, t.classes);
        for (int m = 0; m < METRICS; m++) {
            const int ranks_other = m <= METRIC_AUPRC && (C == 2 ? cell % C != 1 : cell % C == 3); /* not ranked */
            q.name = (metric_name)m;
            ASSERT(same_number(name, plain(&t, q.name), ranks_other ? before[m] : NAN, 0));
            ASSERT(same_number(name, metric_drawn(&q, NULL, t.n), ranks_other ? before[m] : NAN, 0));
        }
        metric_table_free(q.table);
        t.p[cell] = held;
    }
    free_table(&t);
    PASS();
}

TEST rows_without_a_label_are_left_out(const char *name) {
    table t = golden_table(name), more = t;
    const size_t C = (size_t)t.classes;
    int64_t counts[25], more_counts[25];
    more.n = 2 * t.n;
    more.p = calloc(more.n * C, sizeof *more.p);
    more.label = calloc(more.n, sizeof *more.label);
    for (size_t i = 0; i < more.n; i++) { /* every second row has no class */
        more.label[i] = i % 2 ? t.label[i / 2] : i % 4 ? t.classes : -1;
        for (size_t c = 0; c < C; c++) more.p[i * C + c] = i % 2 ? t.p[i / 2 * C + c] : (double)NAN;
    }
    metric_query q = {metric_table_new(more.p, NULL, more.label, more.n, t.classes), METRIC_AUC, NULL};
    for (int m = 0; m < METRICS; m++) {
        q.name = (metric_name)m;
        ASSERT(same_number(name, plain(&more, q.name), plain(&t, q.name), 0));
        ASSERT(same_number(name, metric_drawn(&q, NULL, more.n), plain(&t, q.name), NEAR));
    }
    metric_confusion(counts, t.p, t.label, t.n, t.classes);
    metric_confusion(more_counts, more.p, more.label, more.n, t.classes);
    ASSERT(check_same("confusion", more_counts, counts, C * C * sizeof *counts));
    metric_table_free(q.table);
    free_table(&more), free_table(&t);
    PASS();
}

TEST a_class_never_predicted_has_no_precision(void) {
    static const int64_t counts[] = {4, 0, 1, 0};
    metric_class each[2];
    metric_per_class(each, counts, 2);
    ASSERT(same_number("precision", each[0].precision, 0.8, NEAR) && each[0].recall == 1);
    ASSERT(isnan(each[1].precision) && each[1].recall == 0 && each[1].f1 == 0);
    ASSERT(each[1].support == 1 && each[1].predicted == 0 && each[0].predicted == 5);
    PASS();
}

/* log(1e-15) and not infinity */
TEST a_sure_mistake_costs_35_nats(void) {
    static const double p[] = {1, 0};
    static const int32_t label[] = {1};
    ASSERT(same_number("log-loss", metric_log_loss(p, label, 1, 2), 15 * log(10), NEAR));
    PASS();
}

/* ---- laws ---- */

/* Whole numbers, so that no map of them makes or breaks a tie; a positive is a fifth of the levels higher. */
static void make_scores(double *score, int32_t *label, size_t n, uint32_t levels, uint32_t seed) {
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, seed);
    for (size_t i = 0; i < n; i++) {
        label[i] = numpy_interval(&rng, 3) == 0;
        score[i] = (double)numpy_interval(&rng, levels - 1) + (label[i] ? levels / 5 : 0);
    }
}

enum { ROWS = 700 };

TEST order_is_all_that_counts(void) {
    double score[ROWS], mapped[ROWS], against[ROWS];
    int32_t label[ROWS], other[ROWS];
    for (uint32_t levels = 1; levels <= 1000; levels *= 10) {
        make_scores(score, label, ROWS, levels, levels);
        const double auc = metric_auc(score, label, ROWS), auprc = metric_auprc(score, label, ROWS);
        for (size_t i = 0; i < ROWS; i++) {
            mapped[i] = exp(score[i] / 50) - 7;
            against[i] = -score[i];
            other[i] = 1 - label[i];
        }
        ASSERT_EQ_FMT(auc, metric_auc(mapped, label, ROWS), "%.17g");
        ASSERT_EQ_FMT(auprc, metric_auprc(mapped, label, ROWS), "%.17g");
        ASSERT(same_number("against", metric_auc(against, label, ROWS), 1 - auc, NEAR));
        ASSERT(same_number("other", metric_auc(score, other, ROWS), 1 - auc, NEAR));
        ASSERT(same_number("both", metric_auc(against, other, ROWS), auc, NEAR));
        for (size_t i = 0; i < ROWS; i++) mapped[i] = score[ROWS - 1 - i], other[i] = label[ROWS - 1 - i];
        ASSERT_EQ_FMT(auc, metric_auc(mapped, other, ROWS), "%.17g");
        ASSERT_EQ_FMT(auprc, metric_auprc(mapped, other, ROWS), "%.17g");
    }
    PASS();
}

/* The trapezoids and steps under the curves. */
TEST areas_are_those_of_the_curves(void) {
    double score[ROWS], x[ROWS + 1], y[ROWS + 1], area = 0, steps = 0;
    int32_t label[ROWS];
    make_scores(score, label, ROWS, 50, 3);
    const size_t n = metric_roc(x, y, score, label, ROWS);
    for (size_t i = 1; i < n; i++) area += (x[i] - x[i - 1]) * (y[i] + y[i - 1]) / 2;
    ASSERT(n > 2 && x[n - 1] == 1 && y[n - 1] == 1);
    ASSERT(same_number("roc", metric_auc(score, label, ROWS), area, NEAR));
    const size_t m = metric_pr(x, y, score, label, ROWS);
    for (size_t i = 1; i < m; i++) steps += (x[i] - x[i - 1]) * y[i];
    ASSERT(m == n && x[m - 1] == 1);
    ASSERT(same_number("pr", metric_auprc(score, label, ROWS), steps, NEAR));
    PASS();
}

/* A draw gives what the plain functions give of its rows. */
TEST draws_are_those_rows(const char *name) {
    table t = golden_table(name), drawn = t;
    const size_t C = (size_t)t.classes;
    int32_t *rows = calloc(2 * t.n, sizeof *rows);
    metric_query q = {metric_table_new(t.p, NULL, t.label, t.n, t.classes), METRIC_AUC, NULL};
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, 8);
    drawn.p = calloc(2 * t.n * C, sizeof *t.p);
    drawn.label = calloc(2 * t.n, sizeof *t.label);
    for (size_t round = 0; round < 20; round++) {
        drawn.n = 1 + numpy_interval(&rng, (uint32_t)(2 * t.n - 1));
        for (size_t i = 0; i < drawn.n; i++) {
            rows[i] = (int32_t)numpy_interval(&rng, (uint32_t)t.n - 1);
            memcpy(drawn.p + i * C, t.p + (size_t)rows[i] * C, C * sizeof *t.p);
            drawn.label[i] = t.label[rows[i]];
        }
        for (int m = 0; m < METRICS; m++) {
            q.name = (metric_name)m;
            ASSERT(same_number(name, metric_drawn(&q, rows, drawn.n), plain(&drawn, q.name), NEAR));
        }
    }
    metric_table_free(q.table);
    free(rows);
    free_table(&drawn), free_table(&t);
    PASS();
}

/* Three scores for 200,000 rows: pairs that win and ties, counted by hand. */
TEST many_rows_are_exact(void) {
    enum { MANY = 200000 };
    double *score = calloc(MANY, sizeof *score);
    int32_t *label = calloc(MANY, sizeof *label);
    for (size_t i = 0; i < MANY; i++) score[i] = (double)(i % 5 == 0) + (i % 7 == 0), label[i] = i % 3 == 0;
    double yes[3] = {0, 0, 0}, no[3] = {0, 0, 0};
    for (size_t i = 0; i < MANY; i++) (label[i] ? yes : no)[(int)score[i]]++;
    const double wins = yes[1] * no[0] + yes[2] * (no[0] + no[1]),
                 ties = yes[0] * no[0] + yes[1] * no[1] + yes[2] * no[2];
    ASSERT(same_number("auc", metric_auc(score, label, MANY),
                       (wins + ties / 2) / ((yes[0] + yes[1] + yes[2]) * (no[0] + no[1] + no[2])), 1e-15));
    free(score), free(label);
    PASS();
}

/* Two rows of sums: 3/2, 30/4, or both 33/6. */
TEST pooled_errors_weigh_by_points(void) {
    static const double above[] = {3, 30, 0}, below[] = {2, 4, 0};
    static const int32_t rows[] = {1, 0, 1}, empty[] = {2};
    metric_quotient q = {above, below, NULL};
    ASSERT(metric_pooled(&q, NULL, 2) == 5.5 && metric_pooled(&q, rows, 3) == 6.3);
    ASSERT(isnan(metric_pooled(&q, empty, 1)));
    const interval range = metric_bootstrap(metric_pooled, &q, 2, NULL, 1000, 0);
    ASSERT(range.low == 1.5 && range.high == 7.5);
    PASS();
}

/* ---- sizes of draws ---- */

static double count_rows(void *context, const int32_t *rows, size_t n) {
    size_t *seen = context;
    for (size_t i = 0; i < n; i++) seen[rows[i]]++;
    return (double)n;
}

TEST groups_are_drawn_whole(void) {
    static const int32_t group[] = {5, 5, 5, -1, 9, 9, -1};
    size_t seen[7] = {0};
    const interval rows = metric_bootstrap(count_rows, seen, 7, NULL, 50, 2);
    ASSERT(rows.low == 7 && rows.high == 7);
    memset(seen, 0, sizeof seen);
    const interval groups = metric_bootstrap(count_rows, seen, 7, group, 2000, 2);
    ASSERT(groups.low < 7 && groups.high > 7 && groups.low >= 4 && groups.high <= 12);
    ASSERT(seen[0] == seen[1] && seen[1] == seen[2] && seen[4] == seen[5] && seen[3] != seen[6]);
    for (size_t i = 0; i < 7; i++) ASSERT(seen[i] > 1800 && seen[i] < 2200);
    PASS();
}

SUITE(metrics_suite) {
    static const char *const tables[] = {"two", "five"};
    RUN_TEST(areas_are_scikit_learns);
    RUN_TEST(curves_are_scikit_learns);
    for (size_t i = 0; i < 2; i++) {
        greatest_set_test_suffix(tables[i]);
        RUN_TEST1(scores_are_scikit_learns, tables[i]);
        greatest_set_test_suffix(tables[i]);
        RUN_TEST1(classes_are_scikit_learns, tables[i]);
        greatest_set_test_suffix(tables[i]);
        RUN_TEST1(nan_is_not_hidden, tables[i]);
        greatest_set_test_suffix(tables[i]);
        RUN_TEST1(rows_without_a_label_are_left_out, tables[i]);
        greatest_set_test_suffix(tables[i]);
        RUN_TEST1(draws_are_those_rows, tables[i]);
    }
    RUN_TEST(intervals_are_numpys);
    RUN_TEST(the_calibration_error_has_no_interval);
    RUN_TEST(one_class_has_no_area);
    RUN_TEST(nothing_has_no_score);
    RUN_TEST(a_class_never_predicted_has_no_precision);
    RUN_TEST(a_sure_mistake_costs_35_nats);
    RUN_TEST(order_is_all_that_counts);
    RUN_TEST(areas_are_those_of_the_curves);
    RUN_TEST(many_rows_are_exact);
    RUN_TEST(pooled_errors_weigh_by_points);
    RUN_TEST(groups_are_drawn_whole);
}
