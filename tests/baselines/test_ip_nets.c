/* IP-Nets where exponentials of all distances vanish: what they compute is checked against a plain loop in double that keeps
 * logarithms. And what counts as held out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "greatest.h"
#include "../../tools/baselines/baselines.h"

enum { D = 3, K = 5, N = 2, CLASSES = 2, EVENTS = 5 };

static const mtan_bounds bounds = {1, EVENTS, EVENTS};

/* All early, and channel 2 never: at the later points every kernel is below exp(-1000). */
static const mtan_event events[EVENTS] = {{(mtan_real)0.01, 0, (mtan_real)0.5},
                                          {(mtan_real)0.02, 1, (mtan_real)-1.25},
                                          {(mtan_real)0.03, 0, (mtan_real)1.5},
                                          {(mtan_real)0.035, 1, (mtan_real)0.75},
                                          {(mtan_real)0.05, 0, (mtan_real)-0.5}};

typedef struct {
    mtan_config config;
    mtan_model model;
    mtan_real *weights;
    size_t count;
} small_net;

static int net_open(small_net *s) {
    memset(s, 0, sizeof *s);
    if (mtan_config_init(&s->config, MTAN_ENC, MTAN_CLASSIFY_RECORD, D, CLASSES) != MTAN_OK) return 0;
    s->config.enc_hidden = N, s->config.ref_points = K, s->config.head_hidden = 0, s->config.embed_scale = 48;
    if (mtan_config_architecture(&s->config, baseline_named("ip-nets")) != MTAN_OK) return 0;
    s->count = mtan_weights_count(&s->config);
    s->weights = malloc(s->count * sizeof *s->weights);
    return mtan_weights_init(&s->config, s->weights, s->count, 4) == MTAN_OK &&
           mtan_model_init(&s->model, &s->config, s->weights, s->count) == MTAN_OK;
}

static const mtan_real *weights_of(const small_net *s, const char *name) {
    mtan_param p;
    for (int32_t i = 0; mtan_param_at(&s->config, i, &p) == MTAN_OK; i++)
        if (strcmp(p.name, name) == 0) return s->weights + p.offset;
    return NULL;
}

/* ---- by hand ---- */

/* y and log lambda of a channel at r with exp(-alpha (r - T)^2); 0 for a channel without a cell. */
static int smooth_by_hand(int channel, double r, double alpha, double *y, double *log_lambda) {
    double most = -1e300, sum = 0, total = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < EVENTS; i++) {
            const double away = r - 48 * (double)events[i].time, exponent = -alpha * away * away;
            if (events[i].channel != channel) continue;
            if (pass == 0) most = fmax(most, exponent);
            else total += exp(exponent - most), sum += exp(exponent - most) * (double)events[i].value;
        }
    *y = total > 0 ? sum / total : 0;
    *log_lambda = most + log(total > 0 ? total : 1);
    return total > 0;
}

/* [chi, lambda, y' - chi] at every point. */
static void features_by_hand(const small_net *s, double out[K][3 * D]) {
    const mtan_real *kernel = weights_of(s, "rec.kernel"), *cross = weights_of(s, "rec.cross.weight");
    double y[K][D], fine[K][D], log_lambda[K][D], mean[D] = {0}, unused;
    int seen[D];
    for (int k = 0; k < K; k++)
        for (int d = 0; d < D; d++) {
            const double alpha = log1p(exp((double)kernel[d])), r = 48.0 * k / (K - 1);
            seen[d] = smooth_by_hand(d, r, alpha, &y[k][d], &log_lambda[k][d]);
            smooth_by_hand(d, r, 10 * alpha, &fine[k][d], &unused);
            mean[d] += y[k][d] / K;
        }
    for (int k = 0; k < K; k++) {
        double most = -1e300, total = 0;
        for (int d = 0; d < D; d++) most = seen[d] ? fmax(most, log_lambda[k][d]) : most;
        for (int d = 0; d < D; d++) total += seen[d] ? exp(log_lambda[k][d] - most) : 0;
        for (int d = 0; d < D; d++) {
            double chi = mean[d];
            for (int e = 0; e < D; e++)
                chi +=
                    seen[e] ? (double)cross[d * D + e] * exp(log_lambda[k][e] - most) / total * (y[k][e] - mean[e]) : 0;
            out[k][d] = chi, out[k][2 * D + d] = fine[k][d] - chi;
            out[k][D + d] = seen[d] ? exp(log_lambda[k][d]) : 0;
        }
    }
}

static double affine(const mtan_real *w, const mtan_real *b, const double *x, int row, int n) {
    double sum = (double)b[row];
    for (int i = 0; i < n; i++) sum += (double)w[row * n + i] * x[i];
    return sum;
}

static void logits_by_hand(const small_net *s, double out[CLASSES]) {
    const mtan_real *w = weights_of(s, "rec.rnn.weight_ih_l0"), *u = weights_of(s, "rec.rnn.weight_hh_l0");
    const mtan_real *b = weights_of(s, "rec.rnn.bias_ih_l0"), *c = weights_of(s, "rec.rnn.bias_hh_l0");
    double x[K][3 * D], h[N] = {0}, next[N];
    features_by_hand(s, x);
    for (int k = 0; k < K; k++) {
        for (int i = 0; i < N; i++) {
            const double r = 1 / (1 + exp(-affine(w, b, x[k], i, 3 * D) - affine(u, c, h, i, N)));
            const double z = 1 / (1 + exp(-affine(w, b, x[k], N + i, 3 * D) - affine(u, c, h, N + i, N)));
            const double n = tanh(affine(w, b, x[k], 2 * N + i, 3 * D) + r * affine(u, c, h, 2 * N + i, N));
            next[i] = (1 - z) * n + z * h[i];
        }
        memcpy(h, next, sizeof h);
    }
    for (int i = 0; i < CLASSES; i++)
        out[i] = affine(weights_of(s, "classifier.0.weight"), weights_of(s, "classifier.0.bias"), h, i, N);
}

/* ---- tests ---- */

static int logits_of(const small_net *s, mtan_real out[CLASSES]) {
    const mtan_record record = {.events = events, .n_events = EVENTS};
    mtan_predictor predictor;
    size_t bytes = 0;
    int ok = mtan_predictor_size(&s->model, &bounds, &bytes) == MTAN_OK;
    void *memory = guard_alloc(bytes);
    ok = ok && mtan_predictor_init(&predictor, &s->model, &bounds, memory, bytes) == MTAN_OK;
    ok = ok && mtan_predictor_logits(&predictor, &record, 1, out) == MTAN_OK;
    return guard_free(memory) && ok;
}

/* A float time of 48 is off by 2e-6, its square's share of an exponent by 1e-4: so much is a weight's. */
TEST nothing_vanishes_far_from_all_cells(void) {
    const double limit = sizeof(mtan_real) == sizeof(float) ? 2e-4 : 1e-12;
    small_net s;
    double expected[CLASSES];
    mtan_real logits[CLASSES];
    ASSERT(net_open(&s));
    logits_by_hand(&s, expected);
    ASSERT(logits_of(&s, logits));
    for (int i = 0; i < CLASSES; i++) {
        if (!(fabs((double)logits[i] - expected[i]) <= limit))
            printf("  BAD logit %.17g, by hand %.17g\n", (double)logits[i], expected[i]);
        ASSERT(fabs((double)logits[i] - expected[i]) <= limit);
    }
    free(s.weights);
    PASS();
}

static int recon_of(small_net *s, const mtan_event *targets, int32_t n, double *recon, mtan_real *gradient) {
    static const int32_t label = 1;
    const mtan_record record = {
        .events = events, .n_events = EVENTS, .targets = targets, .n_targets = n, .labels = &label};
    mtan_train_config config;
    mtan_trainer trainer;
    mtan_report report;
    size_t bytes = 0;
    int ok;
    void *memory;
    mtan_train_config_init(&config);
    ok = mtan_trainer_size(&s->model, &config, &bounds, &bytes) == MTAN_OK;
    memory = guard_alloc(bytes);
    ok = ok && mtan_trainer_init(&trainer, &s->model, s->weights, &config, &bounds, memory, bytes) == MTAN_OK;
    ok = ok && mtan_trainer_gradient(&trainer, &record, 1, 1, &report) == MTAN_OK;
    if (ok) *recon = report.recon, memcpy(gradient, trainer.gradient, s->count * sizeof *gradient);
    return guard_free(memory) && ok;
}

/* No targets: nothing to reconstruct. Some: an error. One that is no event of the record: as if it were not there. */
TEST only_events_are_held_out(void) {
    const mtan_event targets[3] = {events[2], {(mtan_real)0.03, 1, 7}, {(mtan_real)0.9, 0, 7}};
    small_net s;
    double none, some, more;
    mtan_real *gradient, *same;
    ASSERT(net_open(&s));
    gradient = malloc(s.count * sizeof *gradient), same = malloc(s.count * sizeof *same);
    ASSERT(recon_of(&s, NULL, 0, &none, gradient));
    ASSERT(recon_of(&s, targets, 1, &some, gradient));
    ASSERT(recon_of(&s, targets, 3, &more, same));
    ASSERT(none >= 0 && none <= 0 && some > 0.01 && some <= more && some >= more);
    ASSERT(check_same("gradient", same, gradient, s.count * sizeof *same));
    free(gradient), free(same), free(s.weights);
    PASS();
}

/* Times that no one measures in give numbers all the same. */
TEST absurd_times_stay_finite(void) {
    const mtan_event far[2] = {{(mtan_real)-1e30, 0, 1}, {(mtan_real)1e30, 1, 2}};
    const mtan_record record = {.events = far, .n_events = 2};
    small_net s;
    mtan_predictor predictor;
    mtan_real logits[CLASSES];
    size_t bytes = 0;
    void *memory;
    ASSERT(net_open(&s));
    ASSERT_EQ(MTAN_OK, mtan_predictor_size(&s.model, &bounds, &bytes));
    memory = guard_alloc(bytes);
    ASSERT_EQ(MTAN_OK, mtan_predictor_init(&predictor, &s.model, &bounds, memory, bytes));
    ASSERT_EQ(MTAN_OK, mtan_predictor_logits(&predictor, &record, 1, logits));
    for (int i = 0; i < CLASSES; i++) ASSERT(isfinite(logits[i]));
    ASSERT(guard_free(memory));
    free(s.weights);
    PASS();
}

SUITE(ip_nets_suite) {
    RUN_TEST(nothing_vanishes_far_from_all_cells);
    RUN_TEST(only_events_are_held_out);
    RUN_TEST(absurd_times_stay_finite);
}
