/* A learned variance: against a PyTorch module (tools/golden/golden_variance.py), in streams, and what may not have one. */
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../mtan.h"
#include "check.h"
#include "tiny_model.h"

enum { D = 3, K = 5, Z = 3, SAMPLES = 3, RECORDS = 3, MOST_EVENTS = 16 };

/* golden/variance.safetensors: what one of its cases holds. */
typedef struct golden_case {
    const char *name;
    mtan_file file;
    void *blob;
    mtan_config config;
    mtan_model model;
    mtan_real *weights;
    double *gradient;
    mtan_event shown[RECORDS][MOST_EVENTS], targets[RECORDS][MOST_EVENTS];
    mtan_real times[RECORDS][MOST_EVENTS], noise[RECORDS][SAMPLES * K * Z];
    mtan_record records[RECORDS];
} golden_case;

/* The doubles of a tensor of the case; how many. 0: there is none. */
static size_t case_doubles(const golden_case *g, const char *tensor, double *out, size_t room) {
    char name[128];
    mtan_tensor_view view;
    snprintf(name, sizeof name, "%s/%s", g->name, tensor);
    if (mtan_file_tensor(&g->file, name, &view) != MTAN_OK || view.count > room) return 0;
    return mtan_view_read_f64(&view, out, view.count) == MTAN_OK ? view.count : 0;
}

static int32_t case_events(const golden_case *g, int32_t record, const char *kind, mtan_event *events) {
    char name[128];
    double time[MOST_EVENTS], value[MOST_EVENTS];
    int32_t channel[MOST_EVENTS];
    mtan_tensor_view view;
    snprintf(name, sizeof name, "%d/%s.time", record, kind);
    const size_t n = case_doubles(g, name, time, MOST_EVENTS);
    snprintf(name, sizeof name, "%d/%s.value", record, kind);
    if (n == 0 || case_doubles(g, name, value, MOST_EVENTS) != n) exit(2);
    snprintf(name, sizeof name, "%s/%d/%s.channel", g->name, record, kind);
    if (mtan_file_tensor(&g->file, name, &view) != MTAN_OK || mtan_view_read_i32(&view, channel, n) != MTAN_OK) exit(2);
    for (size_t i = 0; i < n; i++)
        events[i].time = (mtan_real)time[i], events[i].channel = channel[i], events[i].value = (mtan_real)value[i];
    return (int32_t)n;
}

static void open_record(golden_case *g, int32_t b) {
    mtan_record *r = &g->records[b];
    double noise[SAMPLES * K * Z];
    char name[32];
    snprintf(name, sizeof name, "%d/noise", b);
    if (case_doubles(g, name, noise, SAMPLES * K * Z) != SAMPLES * K * Z) exit(2);
    for (int i = 0; i < SAMPLES * K * Z; i++) g->noise[b][i] = (mtan_real)noise[i];
    r->events = g->shown[b], r->n_events = case_events(g, b, "shown", g->shown[b]);
    r->targets = g->targets[b], r->n_targets = case_events(g, b, "target", g->targets[b]);
    r->noise = g->noise[b], r->n_noise = SAMPLES * K * Z;
    for (int32_t i = 0; i < r->n_targets; i++) g->times[b][i] = g->targets[b][i].time;
    r->times = g->times[b], r->n_times = r->n_targets;
}

static void open_weights(golden_case *g) {
    const size_t count = mtan_weights_count(&g->config);
    double *whole = malloc(count * sizeof *whole);
    g->weights = guard_alloc(count * sizeof *g->weights);
    g->gradient = malloc(count * sizeof *g->gradient);
    for (int32_t i = 0; i < mtan_param_count(&g->config); i++) {
        char name[96];
        mtan_param p;
        mtan_param_at(&g->config, i, &p);
        const size_t n = (size_t)p.rows * (size_t)p.cols;
        snprintf(name, sizeof name, "gradient/%s", p.name);
        if (case_doubles(g, name, g->gradient + p.offset, n) != n) exit(2);
        snprintf(name, sizeof name, "weight/%s", p.name);
        if (case_doubles(g, name, whole, n) != n) exit(2);
        for (size_t j = 0; j < n; j++) g->weights[p.offset + j] = (mtan_real)whole[j];
    }
    free(whole);
    if (mtan_model_init(&g->model, &g->config, g->weights, count) != MTAN_OK) exit(2);
}

static void open_case(golden_case *g, const char *name, int32_t heads) {
    size_t bytes = 0;
    mtan_config *c = &g->config;
    memset(g, 0, sizeof *g);
    g->name = name;
    g->blob = slurp_golden("variance.safetensors", &bytes);
    if (!g->blob || mtan_file_open(&g->file, g->blob, bytes) != MTAN_OK) exit(2);
    mtan_config_init(c, MTAN_FULL, MTAN_CLASSIFY_NONE, D, 2);
    c->embed = 8, c->ref_points = K, c->enc_hidden = 6, c->dec_hidden = 4, c->latent = Z, c->mlp_hidden = 7;
    c->enc_heads = c->dec_heads = heads, c->samples = c->predict_samples = SAMPLES;
    c->variance = MTAN_VARIANCE_LEARNED, c->noise_std = 0.1;
    open_weights(g);
    for (int32_t b = 0; b < RECORDS; b++) open_record(g, b);
}

static int close_case(golden_case *g) {
    free(g->gradient);
    return guard_free(g->weights) && guard_free(g->blob);
}

/* In double what torch says, to ten digits; in float to what the arithmetic leaves. */
static double limit(void) {
    return sizeof(mtan_real) == sizeof(double) ? 1e-10 : 2e-4;
}

TEST means_and_deviations_are_those_of_torch(const char *name, int32_t heads) {
    const mtan_bounds most = {1, MOST_EVENTS, MOST_EVENTS};
    golden_case g;
    mtan_predictor run;
    mtan_real mean[MOST_EVENTS * D], std[MOST_EVENTS * D];
    double expected[MOST_EVENTS * D];
    size_t bytes = 0;
    open_case(&g, name, heads);
    ASSERT_EQ(MTAN_OK, mtan_predictor_size(&g.model, &most, &bytes));
    void *memory = guard_alloc(bytes);
    ASSERT_EQ(MTAN_OK, mtan_predictor_init(&run, &g.model, &most, memory, bytes));
    for (int32_t b = 0; b < RECORDS; b++) {
        const size_t n = (size_t)g.records[b].n_times * D;
        char tensor[32];
        ASSERT_EQ(MTAN_OK, mtan_predictor_interpolate(&run, &g.records[b], mean, std));
        snprintf(tensor, sizeof tensor, "%d/mean", b);
        ASSERT_EQ(n, case_doubles(&g, tensor, expected, MOST_EVENTS * D));
        ASSERT(check_norm(tensor, mean, expected, n, 0, limit()));
        snprintf(tensor, sizeof tensor, "%d/std", b);
        ASSERT_EQ(n, case_doubles(&g, tensor, expected, MOST_EVENTS * D));
        ASSERT(check_norm(tensor, std, expected, n, 0, limit()));
    }
    ASSERT(guard_free(memory));
    ASSERT(close_case(&g));
    PASS();
}

TEST the_gradient_is_that_of_torch(const char *name, int32_t heads) {
    const mtan_bounds most = {RECORDS, MOST_EVENTS, MOST_EVENTS};
    golden_case g;
    mtan_train_config t;
    mtan_trainer trainer;
    mtan_report report;
    double loss = 0;
    size_t bytes = 0;
    open_case(&g, name, heads);
    mtan_train_config_init(&t);
    t.kl_weight = 0.7;
    ASSERT_EQ(MTAN_OK, mtan_trainer_size(&g.model, &t, &most, &bytes));
    void *memory = guard_alloc(bytes);
    ASSERT_EQ(MTAN_OK, mtan_trainer_init(&trainer, &g.model, g.weights, &t, &most, memory, bytes));
    ASSERT_EQ(MTAN_OK, mtan_trainer_gradient(&trainer, g.records, RECORDS, 1, &report));
    ASSERT_EQ(1u, case_doubles(&g, "loss", &loss, 1));
    ASSERT(fabs(report.loss - loss) <= limit() * fabs(loss));
    const double whole = check_length(g.gradient, mtan_weights_count(&g.config));
    for (int32_t i = 0; i < mtan_param_count(&g.config); i++) {
        mtan_param p;
        mtan_param_at(&g.config, i, &p);
        ASSERT(check_norm(p.name, trainer.gradient + p.offset, g.gradient + p.offset, (size_t)p.rows * (size_t)p.cols,
                          limit() * 1e-3 * whole, limit()));
    }
    ASSERT(guard_free(memory));
    ASSERT(close_case(&g));
    PASS();
}

/* Mean and std of a stream have the bits of a predictor's, whatever far events do to the bases. */
TEST streams_have_the_same_bits(const char *name, int32_t heads) {
    const mtan_bounds most = {1, MOST_EVENTS, MOST_EVENTS};
    golden_case g;
    mtan_predictor run;
    mtan_stream stream;
    mtan_real mean[2][MOST_EVENTS * D], std[2][MOST_EVENTS * D];
    size_t bytes = 0, more = 0;
    open_case(&g, name, heads);
    ASSERT_EQ(MTAN_OK, mtan_predictor_size(&g.model, &most, &bytes));
    ASSERT_EQ(MTAN_OK, mtan_stream_size(&g.model, 0, &more));
    void *memory = guard_alloc(bytes), *room = guard_alloc(more);
    ASSERT_EQ(MTAN_OK, mtan_predictor_init(&run, &g.model, &most, memory, bytes));
    ASSERT_EQ(MTAN_OK, mtan_stream_init(&stream, &run, 0, room, more));
    for (int32_t b = 0; b < RECORDS; b++) {
        const mtan_record *r = &g.records[b];
        const size_t n = (size_t)r->n_times * D;
        mtan_stream_reset(&stream);
        for (int32_t i = 0; i < r->n_events; i++)
            mtan_stream_push(&stream, r->events[i].time, r->events[i].channel, r->events[i].value);
        ASSERT_EQ(MTAN_OK, mtan_predictor_interpolate(&run, r, mean[0], std[0]));
        ASSERT_EQ(MTAN_OK, mtan_stream_interpolate(&stream, r, mean[1], std[1]));
        ASSERT(check_same("mean", mean[1], mean[0], n * sizeof mean[0][0]));
        ASSERT(check_same("std", std[1], std[0], n * sizeof std[0][0]));
    }
    ASSERT(guard_free(room) && guard_free(memory));
    ASSERT(close_case(&g));
    PASS();
}

/* All that a model of fixed variance has starts as it did. */
TEST other_weights_start_the_same(void) {
    mtan_config c;
    tiny_config(&c, TINY_VARIANCE);
    const size_t learned = mtan_weights_count(&c);
    mtan_real *a = malloc(learned * sizeof *a), *b = malloc(learned * sizeof *b);
    ASSERT_EQ(MTAN_OK, mtan_weights_init(&c, a, learned, 7));
    c.variance = MTAN_VARIANCE_FIXED;
    const size_t fixed = mtan_weights_count(&c);
    ASSERT(fixed < learned);
    ASSERT_EQ(MTAN_OK, mtan_weights_init(&c, b, learned, 7));
    ASSERT(check_same("weights", a, b, fixed * sizeof *a));
    free(a), free(b);
    PASS();
}

/* Values do not change it, where they reach no latent state: it reads how much was observed, also among local statistics. */
TEST it_reads_the_intensity(int32_t statistics) {
    const mtan_bounds bounds = {1, 4, 4};
    const mtan_real times[2] = {(mtan_real)0.25, (mtan_real)0.75};
    mtan_event e[4];
    mtan_real mean[2 * TINY_CHANNELS], std[3][2 * TINY_CHANNELS];
    mtan_config c;
    mtan_model model;
    mtan_predictor run;
    mtan_record r;
    mtan_param p;
    size_t bytes = 0;
    tiny_config(&c, TINY_VARIANCE);
    c.statistics = statistics;
    const size_t count = mtan_weights_count(&c);
    mtan_real *weights = guard_alloc(count * sizeof *weights);
    ASSERT_EQ(MTAN_OK, mtan_weights_init(&c, weights, count, 3));
    for (int32_t i = 0; mtan_param_at(&c, i, &p) == MTAN_OK; i++)
        if (strstr(p.name, "rec.gru_rnn") || strstr(p.name, "hiddens_to_z0"))
            memset(weights + p.offset, 0, (size_t)p.rows * (size_t)p.cols * sizeof *weights);
    ASSERT_EQ(MTAN_OK, mtan_model_init(&model, &c, weights, count));
    ASSERT_EQ(MTAN_OK, mtan_predictor_size(&model, &bounds, &bytes));
    void *memory = guard_alloc(bytes);
    ASSERT_EQ(MTAN_OK, mtan_predictor_init(&run, &model, &bounds, memory, bytes));
    memset(&r, 0, sizeof r);
    r.events = e, r.times = times, r.n_times = 2;
    for (int k = 0; k < 3; k++) { /* as it is, with other values, with one observation fewer */
        for (int i = 0; i < 4; i++)
            e[i].time = (mtan_real)(0.25 * i), e[i].channel = i % 2, e[i].value = (mtan_real)(k == 1 ? 5 - 2 * i : i);
        r.n_events = k == 2 ? 3 : 4;
        ASSERT_EQ(MTAN_OK, mtan_predictor_interpolate(&run, &r, mean, std[k]));
    }
    ASSERT(check_same("std", std[1], std[0], sizeof std[0]));
    ASSERT(memcmp(std[2], std[0], sizeof std[0]) != 0);
    ASSERT(guard_free(memory) & guard_free(weights));
    PASS();
}

TEST only_a_decoder_with_attention_has_one(void) {
    mtan_config good, c;
    tiny_config(&good, TINY_VARIANCE);
    c = good, c.encoder = MTAN_RBF, c.enc_heads = 1;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&c));
    c = good, c.decoder = MTAN_RBF, c.dec_heads = 1;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&c));
    c = good, c.classify = MTAN_CLASSIFY_TIME, c.classes = 2;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&c));
    tiny_config(&c, TINY_ENC);
    c.variance = MTAN_VARIANCE_LEARNED;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&c));
    PASS();
}

SUITE(variance_suite) {
    static const struct {
        const char *name;
        int32_t heads;
    } cases[] = {{"plain", 1}, {"heads", 2}, {"far", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        RUN_TESTp(means_and_deviations_are_those_of_torch, cases[i].name, cases[i].heads);
        RUN_TESTp(the_gradient_is_that_of_torch, cases[i].name, cases[i].heads);
        RUN_TESTp(streams_have_the_same_bits, cases[i].name, cases[i].heads);
    }
    RUN_TEST(other_weights_start_the_same);
    RUN_TESTp(it_reads_the_intensity, 0);
    RUN_TESTp(it_reads_the_intensity, MTAN_INTENSITY);
    RUN_TESTp(it_reads_the_intensity, MTAN_SPREAD | MTAN_INTENSITY | MTAN_SLOPE);
    RUN_TEST(only_a_decoder_with_attention_has_one);
}
