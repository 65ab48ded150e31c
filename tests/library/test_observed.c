/* Reference points at the observed times: mTAND-Full has then as many latent states as the record has times. For one
 * record that is the same model as the same points given by the caller, which the golden files cover. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "greatest.h"
#include "ladder.h"

enum { RECORDS = 5, MOST = 7, CHANNELS = 3, LATENT = 4, SAMPLES = 2 };

typedef struct {
    mtan_event events[RECORDS][2 * MOST];
    mtan_real times[RECORDS][MOST], noise[RECORDS][SAMPLES * MOST * LATENT];
    mtan_record records[RECORDS];
    int32_t labels[RECORDS];
} scene;

/* Record b has lengths[b] distinct times, two events at each; the last has none at all. */
static void make_scene(scene *s) {
    static const int lengths[RECORDS] = {4, 7, 1, 5, 0};
    memset(s, 0, sizeof *s);
    for (int b = 0; b < RECORDS; b++) {
        for (int i = 0; i < 2 * lengths[b]; i++) {
            s->times[b][i / 2] = (mtan_real)(0.125 * (i / 2) + 0.03125 * b);
            s->events[b][i].time = s->times[b][i / 2];
            s->events[b][i].channel = (i + b) % CHANNELS;
            s->events[b][i].value = (mtan_real)golden_u("observed.value", (size_t)(b * 100 + i));
        }
        for (int i = 0; i < SAMPLES * MOST * LATENT; i++)
            s->noise[b][i] = (mtan_real)golden_u("observed.noise", (size_t)(b * 1000 + i));
        s->labels[b] = b % 2;
        s->records[b].events = s->events[b];
        s->records[b].n_events = 2 * lengths[b];
        s->records[b].labels = &s->labels[b];
        s->records[b].noise = s->noise[b];
        s->records[b].n_noise = SAMPLES * MOST * LATENT;
    }
}

static mtan_config small_config(mtan_interp_kind kind, mtan_classify_kind classify) {
    mtan_config c;
    mtan_config_init(&c, MTAN_FULL, classify, CHANNELS, 2);
    c.encoder = c.decoder = kind;
    c.embed = 8;
    c.enc_heads = c.dec_heads = kind == MTAN_ATTENTION ? 2 : 1;
    c.enc_hidden = 5, c.dec_hidden = 3, c.latent = LATENT, c.mlp_hidden = 6, c.head_hidden = 7, c.ref_points = 4;
    c.samples = c.predict_samples = SAMPLES;
    return c;
}

typedef struct {
    mtan_report report;
    mtan_real *gradient;
    size_t n;
} outcome;

/* Loss and gradient of n records. */
static int gradient_of(const mtan_config *c, const mtan_record *records, int n, outcome *out) {
    const mtan_bounds bounds = {RECORDS, 2 * MOST, MOST};
    mtan_real *weights = malloc(mtan_weights_count(c) * sizeof *weights);
    mtan_train_config config;
    mtan_trainer trainer;
    mtan_model model;
    size_t bytes = 0;
    void *memory;
    int ok;
    mtan_train_config_init(&config);
    golden_weights(c, weights, 4, 1);
    ok = mtan_model_init(&model, c, weights, mtan_weights_count(c)) == MTAN_OK;
    ok = ok && mtan_trainer_size(&model, &config, &bounds, &bytes) == MTAN_OK;
    memory = guard_alloc(bytes);
    ok = ok && mtan_trainer_init(&trainer, &model, weights, &config, &bounds, memory, bytes) == MTAN_OK;
    ok = ok && mtan_trainer_gradient(&trainer, records, n, 1, &out->report) == MTAN_OK;
    out->n = mtan_weights_count(c);
    out->gradient = malloc(out->n * sizeof *out->gradient);
    if (ok) memcpy(out->gradient, trainer.gradient, out->n * sizeof *out->gradient);
    free(weights);
    return guard_free(memory) && ok;
}

TEST equals_given_points(mtan_interp_kind kind, mtan_classify_kind classify) {
    const double tolerance = sizeof(mtan_real) == 8 ? 1e-12 : 1e-5;
    scene s;
    make_scene(&s);
    for (int b = 0; b < RECORDS - 1; b++) {
        mtan_config own = small_config(kind, classify), given = own;
        outcome x, y;
        double *reference, size = 0;
        int close;
        own.reference = MTAN_REF_OBSERVED;
        given.reference = MTAN_REF_GIVEN;
        given.ref = s.times[b];
        given.ref_points = s.records[b].n_events / 2;
        ASSERT(gradient_of(&own, &s.records[b], 1, &x));
        ASSERT(gradient_of(&given, &s.records[b], 1, &y));
        ASSERT_EQ(x.n, y.n);
        ASSERT_NEAR(y.report.loss, x.report.loss, tolerance * (y.report.loss > 0 ? y.report.loss : -y.report.loss));
        ASSERT(x.report.loss - x.report.loss == 0);
        reference = malloc(y.n * sizeof *reference);
        for (size_t i = 0; i < y.n; i++) reference[i] = (double)y.gradient[i];
        size = check_length(reference, y.n);
        ASSERT(size > 0);
        close = check_norm("gradient", x.gradient, reference, y.n, 0, tolerance);
        free(reference), free(x.gradient), free(y.gradient);
        ASSERT(close);
    }
    PASS();
}

/* Ragged sequences side by side do not touch each other. */
TEST alone_or_together(mtan_interp_kind kind) {
    const mtan_bounds bounds = {RECORDS, 2 * MOST, MOST};
    mtan_config c = small_config(kind, MTAN_CLASSIFY_RECORD);
    mtan_real together[RECORDS][2], alone[2], *weights;
    mtan_predictor predictor;
    mtan_model model;
    size_t bytes = 0;
    void *memory;
    scene s;
    c.reference = MTAN_REF_OBSERVED;
    make_scene(&s);
    weights = malloc(mtan_weights_count(&c) * sizeof *weights);
    golden_weights(&c, weights, 4, 1);
    ASSERT_EQ(MTAN_OK, mtan_model_init(&model, &c, weights, mtan_weights_count(&c)));
    ASSERT_EQ(MTAN_OK, mtan_predictor_size(&model, &bounds, &bytes));
    memory = guard_alloc(bytes);
    ASSERT_EQ(MTAN_OK, mtan_predictor_init(&predictor, &model, &bounds, memory, bytes));
    ASSERT_EQ(MTAN_OK, mtan_predictor_classify(&predictor, s.records, RECORDS, together[0]));
    for (int b = 0; b < RECORDS; b++) {
        ASSERT_EQ(MTAN_OK, mtan_predictor_classify(&predictor, &s.records[b], 1, alone));
        ASSERT(alone[0] - alone[0] == 0);
        ASSERT(check_same("probability", alone, together[b], sizeof alone));
    }
    free(weights);
    ASSERT(guard_free(memory));
    PASS();
}

SUITE(observed_suite) {
    static const char *const names[] = {"attention", "rbf", "rnn3"};
    for (int kind = 0; kind < 3; kind++) {
        greatest_set_test_suffix(names[kind]);
        RUN_TESTp(equals_given_points, (mtan_interp_kind)kind, MTAN_CLASSIFY_NONE);
        greatest_set_test_suffix(names[kind]);
        RUN_TESTp(equals_given_points, (mtan_interp_kind)kind, MTAN_CLASSIFY_RECORD);
        greatest_set_test_suffix(names[kind]);
        RUN_TESTp(alone_or_together, (mtan_interp_kind)kind);
    }
}
