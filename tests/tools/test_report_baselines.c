/* What stands beside the numbers of a report: guesses, straight lines, a regression, against values worked out by hand. */
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../tools/data/array.h"
#include "../../tools/mtan/report/report_baselines.h"

static int near(double got, double expected) {
    if (fabs(got - expected) <= 1e-6) return 1;
    printf("  BAD: %.9g, expected %.9g\n", got, expected);
    return 0;
}

TEST guessing_has_what_it_has(void) {
    const int32_t label[] = {0, 1, 0, 0, MTAN_UNLABELED}, one[] = {1, 1}, three[] = {0, 1, 2, 2};
    ASSERT(near(baseline_metric(METRIC_AUC, label, 5, 2), 0.5));
    ASSERT(near(baseline_metric(METRIC_AUPRC, label, 5, 2), 0.25));
    ASSERT(near(baseline_metric(METRIC_ACCURACY, label, 5, 2), 0.75));
    ASSERT(near(baseline_metric(METRIC_LOG_LOSS, label, 5, 2), -(0.75 * log(0.75) + 0.25 * log(0.25))));
    ASSERT(near(baseline_metric(METRIC_BRIER, label, 5, 2), 0.75 * 0.25));
    ASSERT(near(baseline_metric(METRIC_ACCURACY, three, 4, 3), 0.5));
    ASSERT(near(baseline_metric(METRIC_AUPRC, three, 4, 3), 1.0 / 3));
    ASSERT(isnan(baseline_metric(METRIC_AUC, one, 2, 2)));
    PASS();
}

static void add_record(session *s, int part, int times, double slope) {
    const int32_t position = (int32_t)arrlen(s->data.records);
    char name[16];
    snprintf(name, sizeof name, "r%d", (int)position);
    dataset_add_record(&s->data, name, -1);
    for (int i = 0; i < times; i++) dataset_add_event(&s->data, (mtan_real)i, 0, (mtan_real)(slope * i));
    dataset_end_record(&s->data);
    arrput(s->split.part[part], position);
    if (part == SPLIT_TEST) arrput(s->positions, position);
}

static void session_drop(session *s) {
    dataset_free(&s->data), split_free(&s->split);
    arrfree(s->positions);
}

/* On a ramp the lines are wrong outside of the times shown alone, the last value at every time held out. */
TEST straight_lines_follow_a_ramp(void) {
    session s;
    baseline_errors e;
    memset(&s, 0, sizeof s);
    arrput(s.data.channels, tool_text("x"));
    add_record(&s, SPLIT_TRAIN, 2, 20); /* its mean is 10 */
    add_record(&s, SPLIT_TEST, 40, 1);
    e = baseline_interpolation(&s, 0.5);
    ASSERT(e.held.lines < 2 && e.held.last > e.held.lines && e.held.mean > 50);
    ASSERT(near(e.all.lines, e.held.lines / 2)); /* half of the points are shown, and the lines pass through them */
    ASSERT(near(e.all.mean, 223.5));             /* (40^2 - 1) / 12 + (19.5 - 10)^2 */
    ASSERT(isnan(e.truth.lines));
    e = baseline_interpolation(&s, 0); /* nothing is shown: all have the mean */
    ASSERT(near(e.held.lines, 223.5) && near(e.held.last, 223.5) && near(e.held.mean, 223.5));
    session_drop(&s);
    PASS();
}

/* Classes that differ in their slope, which is a summary; without training records there is nothing to fit. */
TEST a_regression_finds_slopes(void) {
    session s;
    memset(&s, 0, sizeof s);
    arrput(s.data.channels, tool_text("x"));
    arrput(s.data.classes, tool_text("down")), arrput(s.data.classes, tool_text("up"));
    for (int i = 0; i < 60; i++) {
        add_record(&s, i < 40 ? SPLIT_TRAIN : SPLIT_TEST, 5 + i % 4, (i % 2 ? 1 : -1) * (1 + 0.1 * (i % 7)));
        dataset_add_label(&s.data, i % 2);
    }
    ASSERT(near(baseline_regression_auc(&s), 1));
    arrsetlen(s.split.part[SPLIT_TRAIN], 0);
    ASSERT(isnan(baseline_regression_auc(&s)));
    session_drop(&s);
    PASS();
}

SUITE(report_baselines_suite) {
    RUN_TEST(guessing_has_what_it_has);
    RUN_TEST(straight_lines_follow_a_ramp);
    RUN_TEST(a_regression_finds_slopes);
}
