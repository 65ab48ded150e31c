/* The synthetic data sets against the reference's own generators (golden/synthetic.safetensors). */
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "golden_file.h"
#include "../../tools/data/synthetic.h"
#include "../../tools/data/generators.h"

enum { N = 1000, LENGTH = 20, MOST = SYNTHETIC_CHANNELS * SYNTHETIC_TRUTH };

/* The golden file has the first and the last `few` of n series, each `row` numbers. In double whatever mtan_real is. */
static int check_few(const char *tensor, const double *got, size_t n, size_t few, size_t row) {
    double expected[6 * MOST], worst = 0;
    if (!golden_read("synthetic.safetensors", tensor, MTAN_DTYPE_F64, expected, 2 * few * row)) return 0;
    for (size_t i = 0; i < 2 * few * row; i++) {
        size_t series = i / row < few ? i / row : n - 2 * few + i / row;
        double diff = fabs(got[series * row + i % row] - expected[i]);
        if (!(diff <= 1e-12)) {
            printf("  BAD %s: series %zu, number %zu is off by %g\n", tensor, series, i % row, diff);
            return 0;
        }
        worst = fmax(worst, diff);
    }
    printf("  ok %s, %zu entries: worst difference %.3g of 1e-12\n", tensor, 2 * few * row, worst);
    return 1;
}

static double *alloc(size_t count) {
    return guard_alloc(count * sizeof(double));
}

TEST kernel_smoother_is_the_references(void) {
    double *times = alloc(N * LENGTH), *values = alloc(N * LENGTH);
    double *truth = alloc(N * SYNTHETIC_TRUTH), *keys = alloc(N * SYNTHETIC_KEYS);
    synthetic_smooth(0, N, LENGTH, times, values, truth, keys);
    ASSERT(check_few("smooth.keys", keys, N, 3, SYNTHETIC_KEYS));
    ASSERT(check_few("smooth.times", times, N, 3, LENGTH));
    ASSERT(check_few("smooth.values", values, N, 3, LENGTH));
    ASSERT(check_few("smooth.truth", truth, N, 3, SYNTHETIC_TRUTH));
    double *again = alloc(N * LENGTH);
    synthetic_smooth(0, N, LENGTH, times, again, NULL, NULL);
    ASSERT(check_same("without truth and keys", again, values, N * LENGTH * sizeof *again));
    ASSERT(guard_free(times) & guard_free(values) & guard_free(truth) & guard_free(keys) & guard_free(again));
    PASS();
}

TEST sine_wave_is_the_references(void) {
    double *times = alloc(N * LENGTH), *values = alloc(N * LENGTH), *truth = alloc(N * SYNTHETIC_TRUTH);
    synthetic_sine(1, N, LENGTH, times, values, truth);
    ASSERT(check_few("sine.times", times, N, 3, LENGTH));
    ASSERT(check_few("sine.values", values, N, 3, LENGTH));
    ASSERT(check_few("sine.truth", truth, N, 3, SYNTHETIC_TRUTH));
    ASSERT(guard_free(times) & guard_free(values) & guard_free(truth));
    PASS();
}

TEST irregular_channels_are_the_references(void) {
    enum { FEW = 50, ROW = SYNTHETIC_CHANNELS * LENGTH };
    double *times = alloc(FEW * ROW), *values = alloc(FEW * ROW), *truth = alloc(FEW * MOST);
    synthetic_irregular(2, FEW, LENGTH, times, values, truth);
    ASSERT(check_few("irregular.times", times, FEW, 2, ROW));
    ASSERT(check_few("irregular.values", values, FEW, 2, ROW));
    ASSERT(check_few("irregular.truth", truth, FEW, 2, MOST));
    ASSERT(guard_free(times) & guard_free(values) & guard_free(truth));
    PASS();
}

/* The exporter makes sure that these are the series the reference trains and tests on. */
TEST split_is_the_references(void) {
    int32_t order[N], train[800], test[200];
    ASSERT(golden_read("synthetic.safetensors", "smooth.train", MTAN_DTYPE_I32, train, 800));
    ASSERT(golden_read("synthetic.safetensors", "smooth.test", MTAN_DTYPE_I32, test, 200));
    ASSERT_EQ(200, sklearn_split(order, N, 0.8, 42));
    ASSERT(check_same("test", order, test, sizeof test));
    ASSERT(check_same("train", order + 200, train, sizeof train));
    PASS();
}

TEST nothing_asked_nothing_written(void) {
    double *none = alloc(0), *truth = alloc(SYNTHETIC_TRUTH);
    synthetic_smooth(0, 0, LENGTH, none, none, none, none);
    synthetic_sine(0, 0, LENGTH, none, none, none);
    synthetic_irregular(0, 0, LENGTH, none, none, none);
    synthetic_smooth(0, 1, 0, none, none, truth, NULL); /* a series without observations still has a truth */
    for (size_t i = 0; i < SYNTHETIC_TRUTH; i++) ASSERT(fabs(truth[i]) <= 10);
    ASSERT(guard_free(none) & guard_free(truth));
    PASS();
}

/* Series `series` of the data set against row `row` of the golden arrays (C, length) and (C, SYNTHETIC_TRUTH). */
static int same_series(const dataset *d, size_t series, size_t C, const double *times, const double *values,
                       const double *truth) {
    const dataset_record *r = &d->records[series];
    const mtan_event *e = d->events + r->event0, *t = d->truth + r->truth0;
    size_t next[SYNTHETIC_CHANNELS] = {0};
    int32_t distinct = 0;
    if (r->n_events != (int32_t)(C * LENGTH) || r->n_truth != (int32_t)(C * SYNTHETIC_TRUTH)) return 0;
    for (size_t i = 0; i < C * LENGTH; i++) {
        const size_t c = (size_t)e[i].channel, at = c * LENGTH + next[c]++;
        if (next[c] > LENGTH || !(fabs((double)e[i].time - times[at]) <= 6e-8) ||
            !(fabs((double)e[i].value - values[at]) <= 2e-7))
            return 0;
        if (i > 0 && (e[i].time < e[i - 1].time || (!(e[i].time > e[i - 1].time) && e[i].channel < e[i - 1].channel)))
            return 0;
        distinct += i == 0 || e[i].time > e[i - 1].time;
    }
    for (size_t i = 0; i < C * SYNTHETIC_TRUTH; i++)
        if (t[i].channel != (int32_t)(i % C) || !(fabs((double)t[i].time - (double)(i / C) / 99) <= 6e-8) ||
            !(fabs((double)t[i].value - truth[i % C * SYNTHETIC_TRUTH + i / C]) <= 2e-7))
            return 0;
    return r->n_times == distinct;
}

/* The first and the last series of each set, through the loader; values to the rounding of float. */
TEST data_sets_are_the_references(void) {
    static const struct {
        const char *kind;
        uint32_t seed;
        size_t n, few, channels;
    } sets[] = {{"smooth", 0, N, 3, 1}, {"sine", 1, N, 3, 1}, {"irregular", 2, 50, 2, SYNTHETIC_CHANNELS}};
    double times[6 * SYNTHETIC_CHANNELS * LENGTH], values[6 * SYNTHETIC_CHANNELS * LENGTH], truth[6 * MOST];
    char name[32];
    dataset d;
    for (size_t k = 0; k < 3; k++) {
        const size_t few = sets[k].few, C = sets[k].channels, row = C * LENGTH, curve = C * SYNTHETIC_TRUTH;
        snprintf(name, sizeof name, "%s.times", sets[k].kind);
        ASSERT(golden_read("synthetic.safetensors", name, MTAN_DTYPE_F64, times, 2 * few * row));
        snprintf(name, sizeof name, "%s.values", sets[k].kind);
        ASSERT(golden_read("synthetic.safetensors", name, MTAN_DTYPE_F64, values, 2 * few * row));
        snprintf(name, sizeof name, "%s.truth", sets[k].kind);
        ASSERT(golden_read("synthetic.safetensors", name, MTAN_DTYPE_F64, truth, 2 * few * curve));
        ASSERT(synthetic_load(&d, sets[k].kind, sets[k].n, LENGTH, sets[k].seed));
        ASSERT(arrlenu(d.records) == sets[k].n && arrlenu(d.channels) == C && arrlenu(d.labels) == 0);
        for (size_t i = 0; i < 2 * few; i++)
            ASSERT(same_series(&d, i < few ? i : sets[k].n - 2 * few + i, C, times + i * row, values + i * row,
                               truth + i * curve));
        dataset_free(&d);
    }
    PASS();
}

TEST impossible_sets_are_refused(void) {
    dataset d;
    ASSERT(!synthetic_load(&d, "square", 10, 20, 0) && strstr(d.error, "'square'"));
    ASSERT(!synthetic_load(&d, "smooth", 0, 20, 0) && strstr(d.error, "0 synthetic series"));
    ASSERT(!synthetic_load(&d, "smooth", 10, 0, 0) && !synthetic_load(&d, "irregular", SIZE_MAX, 2, 0));
    ASSERT(!synthetic_load(&d, "sine", 2, SIZE_MAX, 0) && !synthetic_load(&d, "sine", 1 << 20, 1 << 20, 0));
    PASS();
}

SUITE(synthetic_suite) {
    RUN_TEST(kernel_smoother_is_the_references);
    RUN_TEST(sine_wave_is_the_references);
    RUN_TEST(irregular_channels_are_the_references);
    RUN_TEST(split_is_the_references);
    RUN_TEST(nothing_asked_nothing_written);
    RUN_TEST(data_sets_are_the_references);
    RUN_TEST(impossible_sets_are_refused);
}
