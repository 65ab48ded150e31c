/* L-ODE-ODE, L-ODE-RNN and ODE-RNN in training: the losses of steps from the same weights, records and noise as latent_ode's own
 * models have them (golden/losses-latent-ode; tools/golden/golden_losses_latent.py says what the records are). */
#include <math.h>
#include <string.h>

#include "golden_file.h"
#include "greatest.h"
#include "ladder.h"
#include "../../tools/baselines/baselines.h"

enum { ROWS = 12, RECORDS = 12, BATCH = 4, STEPS = 100, SURE = 40, LATENT = 10, MOST_CHANNELS = 3 };

/* Relative limits of the first SURE losses and of all. The adaptive solver makes a difference of rounding one of tolerance sooner or
 * later, when it takes another number of steps; training carries it on (4 % in double). ODE-RNN's steps are fixed. */
static const double early[] = {1e-3, 1e-6}, late[] = {0.25, 0.25}, fixed[] = {1e-5, 1e-12};
#define IN_THIS_BUILD(limits) ((limits)[sizeof(mtan_real) > sizeof(float)])

typedef struct {
    const char *tensor, *model;
    int32_t channels, mlp;
    double constant; /* of the density, which the published loss has and this one not */
    const double *first, *all;
} loss_case;

/* ---- records ---- */

typedef struct {
    mtan_event events[RECORDS][ROWS * MOST_CHANNELS];
    int32_t labels[RECORDS];
    mtan_real noise[BATCH][LATENT];
    mtan_record records[RECORDS];
} loss_records;

static mtan_real row_time(int32_t r, int32_t j) {
    return (mtan_real)(float)((5 * j + floor(2.5 * (1 + golden_u("losses.time", (size_t)(r * ROWS + j))))) / 60);
}

static void make_record(loss_records *all, int32_t r, int32_t D) {
    mtan_record *record = &all->records[r];
    memset(record, 0, sizeof *record);
    record->events = all->events[r];
    for (int32_t j = 0; j < ROWS; j++)
        for (int32_t c = 0; c < D; c++) {
            const size_t i = (size_t)(r * D + c);
            const mtan_real t = row_time(r, j);
            const double x = golden_u("losses.level", i) + 2 * (double)t * golden_u("losses.slope", i);
            const mtan_event event = {t, c, (mtan_real)(float)x};
            if (D == 1 || (j + c + r) % 3 != 0) all->events[r][record->n_events++] = event;
        }
    all->labels[r] = golden_u("losses.slope", (size_t)(r * D)) > 0;
    record->labels = &all->labels[r];
}

/* Those of a step, with its noise. */
static void take_batch(loss_records *all, int32_t step, mtan_record *batch) {
    for (int32_t b = 0; b < BATCH; b++) {
        const size_t at = (size_t)(step * BATCH + b);
        for (size_t z = 0; z < LATENT; z++)
            all->noise[b][z] = (mtan_real)(2 * golden_u("losses.noise", at * LATENT + z));
        batch[b] = all->records[at % RECORDS];
        batch[b].noise = all->noise[b], batch[b].n_noise = LATENT;
    }
}

/* ---- the model ---- */

static int configure(mtan_config *c, const loss_case *of) {
    static const char *const settings[][2] = {{"enc_hidden", "20"}, {"units", "30"},       {"gru_units", "25"},
                                              {"rec_layers", "1"},  {"gen_layers", "1"},   {"faithful", "1"},
                                              {"next", "1"},        {"head_hidden", "300"}};
    const int latent = strcmp(of->model, "ode-rnn") != 0, classes = of->channels > 1;
    if (mtan_config_init(c, latent ? MTAN_FULL : MTAN_ENC, classes ? MTAN_CLASSIFY_RECORD : MTAN_CLASSIFY_NONE,
                         of->channels, classes ? 2 : 0) != MTAN_OK)
        return 0;
    mtan_config_architecture(c, baseline_named(of->model));
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        mtan_config_set(c, settings[i][0], settings[i][1]); /* what a model does not have is left out */
    if (latent) c->latent = LATENT, c->mlp_hidden = of->mlp;
    c->samples = 1, c->bound = MTAN_BOUND_ELBO, c->norm = 1, c->kl_anneal = 0;
    c->noise_std = 0.01, c->alpha = 100;
    return mtan_config_check(c) == MTAN_OK;
}

static double rate(void *context, int64_t step, int32_t epoch) {
    (void)context, (void)epoch;
    return fmax(pow(0.999, (double)step), 0.1);
}

/* Half the KL divergence as a mean over the latent numbers; here it is a sum, divided by the cells. */
static mtan_train_config as_published(const mtan_record *record) {
    mtan_train_config c;
    mtan_train_config_init(&c);
    c.optimizer = MTAN_ADAMAX, c.lr = 1e-2, c.schedule = rate;
    c.kl_weight = 0.5 * record->n_events / LATENT;
    return c;
}

static int train(const loss_case *of, mtan_real *losses) {
    const mtan_bounds bounds = {BATCH, ROWS * MOST_CHANNELS, 2 * ROWS};
    loss_records all;
    mtan_record batch[BATCH];
    mtan_config config;
    mtan_model model;
    mtan_trainer trainer;
    mtan_report report;
    size_t bytes = 0;
    if (!configure(&config, of)) return 0;
    for (int32_t r = 0; r < RECORDS; r++) make_record(&all, r, of->channels);
    const mtan_train_config how = as_published(&all.records[0]);
    const size_t count = mtan_weights_count(&config);
    mtan_real *weights = guard_alloc(count * sizeof *weights);
    golden_weights(&config, weights, 1, 1);
    int ok = mtan_model_init(&model, &config, weights, count) == MTAN_OK &&
             mtan_trainer_size(&model, &how, &bounds, &bytes) == MTAN_OK;
    void *memory = guard_alloc(bytes);
    ok = ok && mtan_trainer_init(&trainer, &model, weights, &how, &bounds, memory, bytes) == MTAN_OK;
    for (int32_t step = 0; ok && step < STEPS; step++) {
        take_batch(&all, step, batch);
        ok = mtan_trainer_step(&trainer, batch, BATCH, 1, &report) == MTAN_OK;
        losses[step] = (mtan_real)(report.loss + of->constant);
    }
    return guard_free(memory) & guard_free(weights) & ok;
}

static const loss_case cases[] = {
    {"l-ode-ode", "l-ode-ode", 1, 100, 0, early, late},
    {"l-ode-rnn", "l-ode-rnn", 1, 50, 0, early, late},
    {"l-ode-ode.class", "l-ode-ode", MOST_CHANNELS, 100, 0, early, late},
    {"l-ode-rnn.class", "l-ode-rnn", MOST_CHANNELS, 50, 0, early, late},
    {"ode-rnn.class", "ode-rnn", MOST_CHANNELS, 0, -3.6862316527834187, fixed, fixed}, /* log 0.01 + log(2 pi) / 2 */
};

TEST losses_are_latent_odes(const loss_case *of) {
    double expected[STEPS];
    mtan_real losses[STEPS];
    ASSERT(golden_read("losses-latent-ode.safetensors", of->tensor, MTAN_DTYPE_F64, expected, STEPS));
    ASSERT(train(of, losses));
    ASSERT(check_close("the first losses", losses, expected, SURE, 0, IN_THIS_BUILD(of->first)));
    ASSERT(check_close("all losses", losses, expected, STEPS, 0, IN_THIS_BUILD(of->all)));
    PASS();
}

SUITE(latent_losses_suite) {
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        greatest_set_test_suffix(cases[i].tensor);
        RUN_TESTp(losses_are_latent_odes, &cases[i]);
    }
}
