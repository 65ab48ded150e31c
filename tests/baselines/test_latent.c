/* RNN-VAE, L-ODE-RNN, L-ODE-ODE and ODE-RNN beyond what test_baselines.c asks of all baselines: interpolation at any times in any
 * order, adaptive solvers in every place, the bound on their steps, and settings that are refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "baseline_case.h"
#include "greatest.h"

/* The first form whose name starts with `name`. */
static int open_named(baseline_case *c, const char *name, int32_t records) {
    mtan_config config;
    char found[96];
    for (int i = 0; baseline_form(&config, found, sizeof found, i); i++)
        if (strncmp(found, name, strlen(name)) == 0) return baseline_open(c, i, records, 1);
    return 0;
}

/* The model again, for settings that were changed without touching the parameters. */
static int reopen(baseline_case *c, const char *key, const char *value) {
    return mtan_config_set(&c->config, key, value) == MTAN_OK &&
           mtan_model_init(&c->model, &c->config, c->weights, c->count) == MTAN_OK;
}

/* ---- interpolation ---- */

enum { QUERIES = 9, MOST_VALUES = 2 * QUERIES * BASELINE_CHANNELS };

/* Each sample's curve at the queries. */
static int curves_at(baseline_case *c, const mtan_record *shown, const mtan_real *times, int32_t n, mtan_real *out) {
    const mtan_bounds bounds = {1, BASELINE_EVENTS, BASELINE_TIMES};
    mtan_record record = *shown;
    mtan_predictor predictor;
    size_t bytes = 0;
    void *memory;
    int ok = mtan_predictor_size(&c->model, &bounds, &bytes) == MTAN_OK;
    memory = guard_alloc(bytes);
    record.times = times, record.n_times = n;
    ok = ok && mtan_predictor_init(&predictor, &c->model, &bounds, memory, bytes) == MTAN_OK;
    ok = ok && mtan_predictor_curves(&predictor, &record, out) == MTAN_OK;
    return guard_free(memory) && ok;
}

/* A query's value does not depend on the order of the queries, or on how often it is asked. RNN-VAE's depends on what was asked
 * before, the ODEs' on nothing. */
TEST queries_come_in_any_order(const char *name) {
    static const mtan_real sorted[] = {-2, 0, (mtan_real)0.25, (mtan_real)0.5, (mtan_real)0.75, 1, 3};
    static const mtan_real mixed[QUERIES] = {
        1, (mtan_real)0.25, 3, (mtan_real)0.5, (mtan_real)0.75, -2, (mtan_real)0.25, 0, 1};
    static const int32_t place[QUERIES] = {5, 2, 6, 3, 4, 0, 2, 1, 5};
    mtan_real expected[MOST_VALUES], got[MOST_VALUES], one[MOST_VALUES];
    baseline_case c;
    ASSERT(open_named(&c, name, 3));
    for (int32_t r = 0; r < 3; r++) {
        mtan_record record = c.set.records[r];
        if (r == 2) record.n_events = 0;
        ASSERT(curves_at(&c, &record, sorted, 7, expected));
        ASSERT(curves_at(&c, &record, mixed, QUERIES, got));
        for (int32_t s = 0; s < c.config.predict_samples; s++)
            for (int32_t q = 0; q < QUERIES; q++)
                ASSERT(check_same("a query", got + (s * QUERIES + q) * BASELINE_CHANNELS,
                                  expected + (s * 7 + place[q]) * BASELINE_CHANNELS, BASELINE_CHANNELS * sizeof *got));
        ASSERT(curves_at(&c, &record, mixed, 1, one));
        ASSERT(isfinite(one[0]));
        ASSERT(curves_at(&c, &record, mixed, 0, one));
    }
    ASSERT(baseline_close(&c));
    PASS();
}

/* ---- solvers ---- */

static int logits_with(baseline_case *c, mtan_real *out) {
    mtan_predictor predictor;
    size_t bytes = 0;
    void *memory;
    int ok = mtan_predictor_size(&c->model, &c->bounds, &bytes) == MTAN_OK;
    memory = guard_alloc(bytes);
    ok = ok && mtan_predictor_init(&predictor, &c->model, &c->bounds, memory, bytes) == MTAN_OK;
    ok = ok && mtan_predictor_logits(&predictor, c->set.records, c->set.n, out) == MTAN_OK;
    return guard_free(memory) && ok;
}

/* dopri5 and rk4 with many steps solve the same equations; Euler with few steps does it worse, which shows that the setting counts. */
TEST solvers_agree(const char *name, const char *solver) {
    enum { RECORDS = 4, MOST = RECORDS * BASELINE_TIMES * 2 * 3 };
    mtan_real fine[MOST], adaptive[MOST], coarse[MOST];
    baseline_case c;
    size_t n;
    ASSERT(open_named(&c, name, RECORDS));
    n = small_class_rows(&c.config, &c.set) * (size_t)small_samples(&c.config) * (size_t)c.config.classes;
    ASSERT(n > 0 && n <= MOST);
    ASSERT(reopen(&c, "most_steps", "4000") && reopen(&c, "ode_steps", "200") && reopen(&c, solver, "1"));
    ASSERT(logits_with(&c, fine));
    ASSERT(reopen(&c, "rtol", "1e-5") && reopen(&c, "atol", "1e-6") && reopen(&c, solver, "2"));
    ASSERT(logits_with(&c, adaptive));
    ASSERT(reopen(&c, "ode_steps", "1") && reopen(&c, solver, "0"));
    ASSERT(logits_with(&c, coarse));
    ASSERT(memcmp(fine, coarse, n * sizeof *fine) != 0);
    for (size_t i = 0; i < n; i++) ASSERT(fabs((double)fine[i] - (double)adaptive[i]) <= 1e-4);
    ASSERT(baseline_close(&c));
    PASS();
}

/* ---- the bound on steps ---- */

static mtan_status gradient_status(baseline_case *c) {
    mtan_train_config config;
    mtan_trainer trainer;
    mtan_report report;
    size_t bytes = 0;
    mtan_status status;
    void *memory;
    mtan_train_config_init(&config);
    if ((status = mtan_trainer_size(&c->model, &config, &c->bounds, &bytes)) != MTAN_OK) return status;
    memory = guard_alloc(bytes);
    status = mtan_trainer_init(&trainer, &c->model, c->weights, &config, &c->bounds, memory, bytes);
    if (status == MTAN_OK) status = mtan_trainer_gradient(&trainer, c->set.records, c->set.n, 1, &report);
    return guard_free(memory) ? status : MTAN_ERR_NULL;
}

/* most_steps bounds the steps of training, not of prediction; more of it helps. */
TEST more_room_helps(const char *name, const char *solver) {
    mtan_real logits[64];
    baseline_case c;
    ASSERT(open_named(&c, name, 2));
    for (size_t i = 0; i < c.count; i++) c.weights[i] *= 12; /* a steep field */
    ASSERT(reopen(&c, "ode_steps", "1") && reopen(&c, "most_steps", "1") && reopen(&c, solver, "2") &&
           reopen(&c, "rtol", "1e-6") && reopen(&c, "atol", "1e-7"));
    ASSERT_EQ(MTAN_ERR_MEMORY, gradient_status(&c));
    ASSERT(logits_with(&c, logits));
    ASSERT(reopen(&c, "most_steps", "2000"));
    ASSERT_EQ(MTAN_OK, gradient_status(&c));
    ASSERT(baseline_close(&c));
    PASS();
}

/* ---- settings ---- */

TEST nonsense_is_refused(const char *name) {
    static const char *const bad[][2] = {
        {"faithful", "2"},   {"units", "0"},      {"units", "1.5"},       {"gru_units", "0"},   {"rec_layers", "-1"},
        {"rec_layers", "7"}, {"gen_layers", "7"}, {"rec_solver", "3"},    {"dec_solver", "-1"}, {"ode_steps", "0"},
        {"rtol", "-1"},      {"atol", "0"},       {"bidirectional", "1"}, {"most_steps", "0"}};
    baseline_case c;
    int refused = 0;
    ASSERT(open_named(&c, name, 1));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        mtan_config config = c.config;
        if (mtan_config_set(&config, bad[i][0], bad[i][1]) == MTAN_ERR_MISSING) continue;
        ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&config));
        refused++;
    }
    ASSERT(refused >= 3);
    c.config.kind = c.config.kind == MTAN_ENC ? MTAN_FULL : MTAN_ENC;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&c.config));
    ASSERT(baseline_close(&c));
    PASS();
}

SUITE(latent_suite) {
    static const char *const latent[] = {"rnn-vae record", "l-ode-rnn record", "l-ode-ode record",
                                         "l-ode-ode record faithful"};
    static const char *const all[] = {"rnn-vae record", "l-ode-rnn record", "l-ode-ode record", "ode-rnn record"};
    for (size_t i = 0; i < sizeof latent / sizeof latent[0]; i++) {
        greatest_set_test_suffix(latent[i]);
        RUN_TESTp(queries_come_in_any_order, latent[i]);
    }
    RUN_TESTp(solvers_agree, "ode-rnn record", "rec_solver");
    RUN_TESTp(solvers_agree, "ode-rnn time bidirectional", "rec_solver");
    RUN_TESTp(solvers_agree, "l-ode-rnn time", "dec_solver");
    RUN_TESTp(solvers_agree, "l-ode-rnn time faithful", "dec_solver");
    RUN_TESTp(solvers_agree, "l-ode-ode time", "rec_solver");
    RUN_TESTp(more_room_helps, "ode-rnn record", "rec_solver");
    RUN_TESTp(more_room_helps, "l-ode-rnn record", "dec_solver");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        greatest_set_test_suffix(all[i]);
        RUN_TESTp(nonsense_is_refused, all[i]);
    }
}
