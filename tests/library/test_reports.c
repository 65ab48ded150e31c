/* What a trainer's report counts, against a predictor that is asked about the same cells with the same noise. */
#include <greatest.h>
#include <math.h>

#include "tiny_model.h"

enum { RECORDS = 9, SAMPLES = 3, NOISE = SAMPLES * 11 * 5 }; /* (S, K, Z) at the most */

/* So much noise that the samples of a record differ: the error is that of their mean, not the mean of theirs. */
static void bring_noise(tiny_model *s, mtan_real *noise) {
    for (int32_t i = 0; i < RECORDS * NOISE; i++) noise[i] = (mtan_real)(8 * golden_u("reports.noise", (size_t)i));
    for (int32_t b = 0; b < RECORDS; b++) s->records[b].noise = noise + b * NOISE, s->records[b].n_noise = NOISE;
}

/* The squared error of a record's events, by a question about the time of each; *apart is that of the samples alone. */
static double event_errors(tiny_model *s, const mtan_record *record, double *apart) {
    mtan_real times[TINY_EVENTS], curve[SAMPLES * TINY_EVENTS * TINY_CHANNELS];
    const int32_t n = record->n_events, S = s->config.samples;
    mtan_record ask = *record;
    double sum = 0;
    for (int32_t i = 0; i < n; i++) times[i] = record->events[i].time;
    ask.times = times, ask.n_times = n;
    if (mtan_predictor_curves(&s->predictor, &ask, curve) != MTAN_OK) return NAN;
    for (int32_t i = 0; i < n; i++) {
        const mtan_event *e = &record->events[i];
        double mean = 0;
        for (int32_t k = 0; k < S; k++) {
            const double x = (double)curve[(k * n + i) * TINY_CHANNELS + e->channel];
            mean += x / S;
            *apart += (x - (double)e->value) * (x - (double)e->value) / S;
        }
        sum += (mean - (double)e->value) * (mean - (double)e->value);
    }
    return sum;
}

TEST squared_error_is_that_of_the_mean(tiny_kind kind) {
    static mtan_real noise[RECORDS * NOISE];
    const double relative = sizeof(mtan_real) == sizeof(float) ? 1e-5 : 1e-12;
    double expected = 0, apart = 0;
    int64_t cells = 0;
    mtan_train_config config;
    mtan_report report;
    tiny_model s;
    tiny_open(&s, kind, RECORDS);
    ASSERT(s.config.samples <= SAMPLES);
    for (size_t i = 0; i < s.count; i++) s.weights[i] *= 3; /* so that the latent state counts */
    bring_noise(&s, noise);
    s.model.config.predict_samples = s.config.samples;
    mtan_train_config_init(&config);
    tiny_train(&s, &config);
    tiny_predict(&s, 1);
    ASSERT_EQ(MTAN_OK, mtan_trainer_loss(&s.trainer, s.records, RECORDS, 1, &report));
    for (int32_t b = 0; b < RECORDS; b++) {
        expected += event_errors(&s, &s.records[b], &apart);
        cells += s.records[b].n_events;
    }
    ASSERT_EQ_FMT((int)cells, (int)report.cells, "%d");
    ASSERT(expected > 0.1 && (s.config.samples == 1 || apart > 1.01 * expected));
    if (!(fabs(report.squared_error - expected) <= relative * expected)) {
        printf("  BAD squared error %.9g, %.9g is due\n", report.squared_error, expected);
        FAIL();
    }
    ASSERT(tiny_close(&s));
    PASS();
}

SUITE(reports_suite) {
    static const tiny_kind with_decoder[] = {TINY_FULL, TINY_INTERP, TINY_RBF_FULL, TINY_RNN3_FULL, TINY_PER_HEAD};
    for (size_t i = 0; i < sizeof with_decoder / sizeof with_decoder[0]; i++) {
        greatest_set_test_suffix(tiny_names[with_decoder[i]]);
        RUN_TESTp(squared_error_is_that_of_the_mean, with_decoder[i]);
    }
}
