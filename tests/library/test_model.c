/* The model's table of parameters, its initial weights against the published code's, presets, and what prediction
 * promises: rules over samples, attention weights, results that depend on a record alone. */
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "golden_file.h"
#include "published.h"
#include "tiny_model.h"
#include "caller.h"

/* What is computed here in double and there in mtan_real may differ by. */
#define ROUNDING (sizeof(mtan_real) == sizeof(double) ? 1e-12 : 2e-6)

/* ---- parameters ---- */

typedef struct {
    const char *name;
    size_t rec, dec, classifier;
} model_counts;

/* The published code's own counts. */
static const model_counts counts[] = {
    {"toy-interp", 49400, 64381, 0}, {"physionet-interp", 96594, 70921, 0},   {"physionet-full", 871722, 72121, 381506},
    {"physionet-enc", 272578, 0, 0}, {"mimic3-full", 867890, 103042, 464450}, {"mimic3-enc", 602434, 0, 0},
    {"activity-enc", 1627659, 0, 0},
};

static int starts_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

TEST parameter_counts_are_the_references(const model_counts *expected) {
    model_counts got = {NULL, 0, 0, 0};
    mtan_config config;
    size_t next = 0;
    mtan_param p;
    ASSERT(published_config(&config, expected->name));
    const int32_t n = mtan_param_count(&config);
    for (int32_t i = 0; i < n; i++) {
        ASSERT_EQ(MTAN_OK, mtan_param_at(&config, i, &p));
        const size_t count = (size_t)p.rows * (size_t)p.cols;
        ASSERT_EQ(next, (size_t)p.offset);
        next += count;
        if (starts_with(p.name, "rec.")) got.rec += count;
        else if (starts_with(p.name, "dec.")) got.dec += count;
        else if (starts_with(p.name, "classifier.")) got.classifier += count;
        else FAILm("a name without a prefix");
    }
    ASSERT_EQ(MTAN_ERR_MISSING, mtan_param_at(&config, n, &p));
    ASSERT_EQ(expected->rec, got.rec);
    ASSERT_EQ(expected->dec, got.dec);
    ASSERT_EQ(expected->classifier, got.classifier);
    ASSERT_EQ(next, mtan_weights_count(&config));
    PASS();
}

/* Of n floats as a little-endian machine keeps them. */
static uint64_t fnv1a(const float *x, size_t n) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        for (int shift = 0; shift < 32; shift += 8) h = (h ^ (bits >> shift & 255)) * 0x100000001b3u;
    }
    return h;
}

/* The space-separated names that the golden file lists for a case. */
static int golden_names(const char *name, char *text, size_t size) {
    char key[64];
    size_t bytes;
    mtan_file file;
    void *blob = slurp_golden("init.safetensors", &bytes);
    snprintf(key, sizeof key, "mtan.%s", name);
    const int good = blob && mtan_file_open(&file, blob, bytes) == MTAN_OK &&
                     mtan_file_metadata(&file, key, text, size, NULL) == MTAN_OK;
    return guard_free(blob) && good;
}

/* Names, shapes, and the very bits of torch.manual_seed(0); weights of the double build are floats too. */
TEST initial_weights_are_the_references(const char *name) {
    char names[4096], tensor[64];
    int32_t shape[MTAN_MAX_PARAMS][3], hash[MTAN_MAX_PARAMS][2];
    float ends[MTAN_MAX_PARAMS][8];
    mtan_config config;
    ASSERT(published_config(&config, name));
    const size_t n = (size_t)mtan_param_count(&config), P = mtan_weights_count(&config);
    ASSERT(n > 0 && golden_names(name, names, sizeof names));
    snprintf(tensor, sizeof tensor, "%s/shape", name);
    ASSERT(golden_read("init.safetensors", tensor, MTAN_DTYPE_I32, shape, 3 * n)); /* fails for another n */
    snprintf(tensor, sizeof tensor, "%s/hash", name);
    ASSERT(golden_read("init.safetensors", tensor, MTAN_DTYPE_I32, hash, 2 * n));
    snprintf(tensor, sizeof tensor, "%s/ends", name);
    ASSERT(golden_read("init.safetensors", tensor, MTAN_DTYPE_F32, ends, 8 * n));
    mtan_real *weights = guard_alloc(P * sizeof *weights);
    float *floats = guard_alloc(P * sizeof *floats);
    ASSERT_EQ(MTAN_OK, mtan_weights_init(&config, weights, mtan_weights_count(&config), 0));
    for (size_t i = 0; i < P; i++) floats[i] = (float)weights[i];
    const char *next = strtok(names, " ");
    for (size_t i = 0; i < n; i++, next = strtok(NULL, " ")) {
        mtan_param p;
        ASSERT_EQ(MTAN_OK, mtan_param_at(&config, (int32_t)i, &p));
        ASSERT(next != NULL);
        ASSERT_STR_EQ(next, p.name);
        ASSERTm(p.name, p.rank == shape[i][0] && p.rows == shape[i][1] && p.cols == shape[i][2]);
        const size_t count = (size_t)p.rows * (size_t)p.cols, few = count < 4 ? count : 4;
        ASSERTm(p.name, check_same("first values", floats + p.offset, ends[i], few * sizeof(float)));
        ASSERTm(p.name, check_same("last values", floats + p.offset + count - few, ends[i] + 4, few * sizeof(float)));
        const uint64_t h = fnv1a(floats + p.offset, count);
        ASSERTm(p.name, (uint32_t)h == (uint32_t)hash[i][0] && (uint32_t)(h >> 32) == (uint32_t)hash[i][1]);
    }
    ASSERT(next == NULL);
    ASSERT(guard_free(weights) & guard_free(floats));
    PASS();
}

/* ---- settings ---- */

TEST presets_differ_as_documented(void) {
    mtan_config faithful, correct, best;
    ASSERT_EQ(MTAN_OK, mtan_config_init(&faithful, MTAN_FULL, MTAN_CLASSIFY_RECORD, 3, 2));
    correct = faithful;
    ASSERT_EQ(MTAN_OK, mtan_config_preset(&faithful, MTAN_FAITHFUL));
    ASSERT_EQ(MTAN_OK, mtan_config_preset(&correct, MTAN_CORRECT));
    ASSERT(faithful.noise_std == 0.01 && correct.noise_std == 0.1); /* Q16: variance 1e-4, the paper's 0.01 */
    ASSERT(faithful.bound == MTAN_BOUND_FAITHFUL && correct.bound == MTAN_BOUND_ELBO); /* Q17: log-mean-exp, mean */
    ASSERT(!faithful.skip_empty && correct.skip_empty);                                /* Q18: empty records */
    ASSERT(faithful.predict_samples == 1 && correct.predict_samples > 1);              /* Q25: one sample, several */
    ASSERT(faithful.rule == MTAN_MEAN_PROBABILITY && correct.rule == MTAN_MEAN_PROBABILITY); /* Q25: not the paper's */
    best = correct;
    ASSERT_EQ(MTAN_OK, mtan_config_preset(&best, MTAN_BEST));
    ASSERT(best.bound == correct.bound && best.summaries && !correct.summaries && !correct.statistics);
    ASSERT(best.statistics == (MTAN_SPREAD | MTAN_INTENSITY | MTAN_SLOPE) && best.frequencies == MTAN_FREQUENCIES_LOG);
    best = correct, best.encoder = MTAN_RBF; /* which takes none of it */
    ASSERT_EQ(MTAN_OK, mtan_config_preset(&best, MTAN_BEST));
    ASSERT(!best.statistics && !best.summaries && mtan_config_check(&best) == MTAN_OK);
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_preset(&faithful, (mtan_preset)3));
    PASS();
}

TEST kl_weight_follows_the_epochs(void) {
    static const int epochs[] = {11, 12, 100, 300, 5000};
    ASSERT(mtan_kl_anneal(1) == 0 && mtan_kl_anneal(10) == 0);
    for (size_t i = 0; i < sizeof epochs / sizeof epochs[0]; i++) {
        const double expected = 1 - pow(0.99, epochs[i] - 10);
        ASSERT(fabs(mtan_kl_anneal(epochs[i]) - expected) <= 1e-14);
    }
    PASS();
}

/* ---- prediction ---- */

static double class_probability(const mtan_real *logits, int classes, int c) {
    double total = 0;
    for (int j = 0; j < classes; j++) total += exp((double)logits[j] - (double)logits[c]);
    return 1 / total;
}

static size_t class_rows(const tiny_model *t) {
    size_t rows = 0;
    int32_t times = 0;
    if (t->config.classify != MTAN_CLASSIFY_TIME) return (size_t)t->n;
    for (int32_t b = 0; b < t->n; b++) {
        if (times_of(&t->records[b], &times) != MTAN_OK) return 0;
        rows += (size_t)times;
    }
    return rows;
}

/* The rules by their definition, from the logits. */
TEST samples_make_a_prediction(tiny_kind kind, mtan_rule rule) {
    enum { S = 5, C = 2 };
    tiny_model t;
    tiny_open(&t, kind, 6);
    t.model.config.rule = rule, t.model.config.predict_samples = S;
    tiny_predict(&t, 4);
    const size_t rows = class_rows(&t), samples = t.config.kind == MTAN_FULL ? S : 1;
    mtan_real *logits = guard_alloc(rows * samples * C * sizeof *logits), *got = guard_alloc(rows * C * sizeof *got);
    double *expected = malloc(rows * C * sizeof *expected);
    ASSERT_EQ(MTAN_OK, mtan_predictor_logits(&t.predictor, t.records, t.n, logits));
    ASSERT_EQ(MTAN_OK, mtan_predictor_classify(&t.predictor, t.records, t.n, got));
    for (size_t r = 0; r < rows; r++) {
        double mean[C] = {0}, total = 0;
        for (size_t s = 0; s < samples; s++)
            for (int c = 0; c < C; c++) {
                const double p = class_probability(logits + (r * samples + s) * C, C, c);
                mean[c] += (rule == MTAN_MEAN_PROBABILITY ? p : log(p)) / (double)samples;
            }
        for (int c = 0; c < C; c++) total += rule == MTAN_MEAN_PROBABILITY ? 0 : exp(mean[c]);
        for (int c = 0; c < C; c++) expected[r * C + (size_t)c] = total > 0 ? exp(mean[c]) / total : mean[c];
    }
    ASSERT(check_close("probabilities", got, expected, rows * C, ROUNDING, ROUNDING));
    free(expected);
    ASSERT(guard_free(logits) & guard_free(got) & tiny_close(&t));
    PASS();
}

/* Reals of a record's latent states: (K, Z), or (L, Z) where they stand at the observed times; never more than (6, Z). */
static size_t latent_count(const tiny_model *t, const mtan_record *record) {
    int32_t points = t->config.ref_points;
    if (t->config.reference == MTAN_REF_OBSERVED) times_of(record, &points);
    return (size_t)(points * t->config.latent);
}

/* All that a predictor says about its records, in one array (free it). */
static mtan_real *everything(tiny_model *t, size_t *n) {
    const int full = t->config.kind == MTAN_FULL, curves = full && t->config.classify != MTAN_CLASSIFY_TIME;
    const size_t S = full && t->model.config.predict_samples > 1 ? (size_t)t->model.config.predict_samples : 1;
    const size_t most_latent = (size_t)(t->config.ref_points * t->config.latent);
    const size_t most = (size_t)t->n * (2 * most_latent + S * TINY_TIMES * (TINY_CHANNELS + 2 + 2));
    mtan_real *all = calloc(most, sizeof *all);
    mtan_status status = MTAN_OK;
    *n = 0;
    if (t->config.classify != MTAN_CLASSIFY_NONE) {
        status = mtan_predictor_logits(&t->predictor, t->records, t->n, all);
        *n += class_rows(t) * S * 2;
    }
    for (int32_t b = 0; full && b < t->n; b++) {
        int32_t times = 0;
        const size_t latent = latent_count(t, &t->records[b]);
        times_of(&t->records[b], &times);
        if (status == MTAN_OK)
            status = mtan_predictor_latent(&t->predictor, &t->records[b], all + *n, all + *n + latent);
        *n += 2 * latent;
        if (curves && status == MTAN_OK) status = mtan_predictor_curves(&t->predictor, &t->records[b], all + *n);
        if (curves) *n += S * (size_t)times * TINY_CHANNELS;
    }
    if (status != MTAN_OK || *n == 0 || *n > most)
        printf("  BAD everything: %s\n", mtan_status_message(status)), *n = 0;
    return all;
}

TEST mean_of_the_posterior_is_noise_zero(tiny_kind kind) {
    tiny_model t;
    size_t n, m;
    tiny_open(&t, kind, 5);
    const size_t noise_n = (size_t)(t.config.ref_points * t.config.latent);
    mtan_real *noise = calloc(noise_n, sizeof *noise);
    t.model.config.predict_samples = 0;
    tiny_predict(&t, 5);
    mtan_real *mean = everything(&t, &n);
    t.model.config.predict_samples = 1;
    tiny_predict(&t, 5);
    mtan_real *drawn = everything(&t, &m);
    ASSERT_EQ(n, m);
    ASSERT(n > 0 && memcmp(mean, drawn, n * sizeof *mean) != 0); /* else the noise does nothing */
    free(drawn);
    for (int32_t b = 0; b < t.n; b++) t.records[b].noise = noise, t.records[b].n_noise = (int32_t)noise_n;
    drawn = everything(&t, &m);
    ASSERT_EQ(n, m);
    ASSERT(check_same("noise 0", drawn, mean, n * sizeof *mean));
    free(mean), free(drawn), free(noise);
    ASSERT(tiny_close(&t));
    PASS();
}

/* The noise that a predictor draws is that of (seed, epoch 0, id, sample). */
TEST noise_depends_on_seed_and_id(tiny_kind kind) {
    enum { S = 3 };
    tiny_model t;
    size_t n, m;
    tiny_open(&t, kind, 4);
    t.model.config.predict_samples = S;
    const size_t most = (size_t)(t.config.ref_points * t.config.latent);
    mtan_real *noise = malloc(4 * S * most * sizeof *noise);
    tiny_predict(&t, 4);
    t.predictor.seed = 99;
    mtan_real *drawn = everything(&t, &n);
    for (size_t b = 0; b < 4; b++) {
        const size_t KZ = latent_count(&t, &t.records[b]);
        mtan_real *own = noise + b * S * most;
        for (size_t s = 0; s < S; s++)
            mtan_noise_fill(t.model.backend, own + s * KZ, KZ, 99, 0, t.records[b].id, (uint32_t)s);
        t.records[b].noise = own, t.records[b].n_noise = (int32_t)(S * KZ);
    }
    mtan_real *given = everything(&t, &m);
    ASSERT_EQ(n, m);
    ASSERT(n > 0 && check_same("given noise", given, drawn, n * sizeof *given));
    for (size_t b = 0; b < 4; b++) t.records[b].noise = NULL;
    t.predictor.seed = 100;
    free(given);
    given = everything(&t, &m);
    ASSERT(memcmp(given, drawn, n * sizeof *given) != 0);
    free(drawn), free(given), free(noise);
    ASSERT(tiny_close(&t));
    PASS();
}

/* Mean and deviation are those of the curves, with an observation's own deviation where it is learned (test_variance.c has its
 * value); a query's answer depends on its own time alone, also beyond the records. */
TEST interpolates_anywhere(tiny_kind kind) {
    enum { S = 4, Q = 7, D = TINY_CHANNELS };
    static const mtan_real times[Q] = {(mtan_real)-0.5, 0, (mtan_real)0.1, (mtan_real)0.1,
                                       (mtan_real)0.77, 1, (mtan_real)2.5};
    tiny_model t;
    mtan_real curves[S * Q * D], mean[Q * D], std[Q * D], again[Q * D], alone[S * D];
    double expected_mean[Q * D], expected_std[Q * D];
    tiny_open(&t, kind, 2);
    t.model.config.predict_samples = S;
    tiny_predict(&t, 1);
    mtan_record *r = &t.records[1];
    r->times = times, r->n_times = Q;
    ASSERT_EQ(MTAN_OK, mtan_predictor_curves(&t.predictor, r, curves));
    ASSERT_EQ(MTAN_OK, mtan_predictor_interpolate(&t.predictor, r, mean, std));
    for (size_t i = 0; i < Q * D; i++) {
        double sum = 0, squares = 0;
        for (size_t s = 0; s < S; s++) sum += (double)curves[s * Q * D + i] / S;
        for (size_t s = 0; s < S; s++) squares += pow((double)curves[s * Q * D + i] - sum, 2) / S;
        expected_mean[i] = sum, expected_std[i] = sqrt(squares);
    }
    ASSERT(check_close("mean", mean, expected_mean, Q * D, 0, 1e-6));
    if (t.config.variance == MTAN_VARIANCE_FIXED) ASSERT(check_close("std", std, expected_std, Q * D, 0, 1e-6));
    for (size_t i = 0; t.config.variance == MTAN_VARIANCE_LEARNED && i < Q * D; i++)
        ASSERT((double)std[i] > expected_std[i] && (double)std[i] > t.config.noise_std);
    ASSERT_EQ(MTAN_OK, mtan_predictor_interpolate(&t.predictor, r, again, NULL));
    ASSERT(check_same("mean without std", again, mean, sizeof mean));
    for (size_t q = 0; q < Q; q++) {
        r->times = times + q, r->n_times = 1;
        ASSERT_EQ(MTAN_OK, mtan_predictor_curves(&t.predictor, r, alone));
        for (size_t s = 0; s < S; s++)
            ASSERT(check_same("one query", alone + s * D, curves + (s * Q + q) * D, D * sizeof *alone));
    }
    ASSERT(tiny_close(&t));
    PASS();
}

/* ---- attention, by its definition in double ---- */

static const mtan_real *weight_named(const tiny_model *t, const char *name) {
    mtan_param p;
    for (int32_t i = 0; i < mtan_param_count(&t->config); i++)
        if (mtan_param_at(&t->config, i, &p) == MTAN_OK && strcmp(p.name, name) == 0) return t->weights + p.offset;
    printf("  BAD no parameter %s\n", name);
    exit(2);
}

/* phi(t) of a head, (E). */
static void embed_time(const tiny_model *t, int head, double time, double *phi) {
    const mtan_config *c = &t->config;
    const int E = c->embed, own = c->embed_heads == MTAN_EMBED_PER_HEAD ? head : 0;
    if (c->embedding == MTAN_EMBED_FIXED) {
        for (int i = 0; i < E / 2; i++) {
            const double angle = c->embed_scale * time * pow(c->embed_base, -2.0 * i / E);
            phi[2 * i] = sin(angle), phi[2 * i + 1] = cos(angle);
        }
        return;
    }
    const mtan_real *w = weight_named(t, "rec.periodic.weight") + own * (E - 1);
    const mtan_real *b = weight_named(t, "rec.periodic.bias") + own * (E - 1);
    phi[0] = (double)weight_named(t, "rec.linear.weight")[own] * time + (double)weight_named(t, "rec.linear.bias")[own];
    for (int i = 1; i < E; i++) phi[i] = sin((double)w[i - 1] * time + (double)b[i - 1]);
}

/* One row of a projection of phi. */
static double project(const tiny_model *t, const char *layer, int row, const double *phi) {
    char weight[64], bias[64];
    const int E = t->config.embed;
    const char *dots = t->config.encoder == MTAN_RNN3 ? "rec.linears." : "rec.att.linears.";
    snprintf(weight, sizeof weight, "%s%s.weight", dots, layer);
    snprintf(bias, sizeof bias, "%s%s.bias", dots, layer);
    const mtan_real *w = weight_named(t, weight) + row * E;
    double sum = (double)weight_named(t, bias)[row];
    for (int i = 0; i < E; i++) sum += (double)w[i] * phi[i];
    return sum;
}

static double score_of(const tiny_model *t, int head, int channel, double query, double key) {
    const int E = t->config.embed, part = E / t->config.enc_heads;
    double q[64], k[64], sum = 0;
    if (t->config.encoder == MTAN_RBF) {
        const double width = log1p(exp((double)weight_named(t, "rec.bandwidth.weight")[channel]));
        return -width * (query - key) * (query - key);
    }
    embed_time(t, head, query, q), embed_time(t, head, key, k);
    for (int i = head * part; i < (head + 1) * part; i++) sum += project(t, "0", i, q) * project(t, "1", i, k);
    return sum / sqrt(part);
}

static int ascending(const void *a, const void *b) {
    const mtan_real x = *(const mtan_real *)a, y = *(const mtan_real *)b;
    return (x > y) - (x < y);
}

/* The distinct times of a record, ascending; at[e] is the place of event e's. */
static int distinct_times(const mtan_record *r, mtan_real *times, int *at) {
    int n = 0;
    mtan_real all[TINY_EVENTS];
    for (int i = 0; i < r->n_events; i++) all[i] = r->events[i].time;
    qsort(all, (size_t)r->n_events, sizeof *all, ascending);
    for (int i = 0; i < r->n_events; i++)
        if (n == 0 || all[i] != times[n - 1]) times[n++] = all[i];
    for (int i = 0; i < r->n_events; i++)
        for (at[i] = 0; times[at[i]] != r->events[i].time;) at[i]++;
    return n;
}

/* Weights, their sum, and the interpolated value they make: one head and channel of one record. */
static int attention_is_right(tiny_model *t, const mtan_record *r, int head, int channel) {
    mtan_real times[TINY_TIMES], weight[TINY_TIMES * TINY_TIMES];
    int at[TINY_EVENTS];
    const int L = distinct_times(r, times, at), own = t->config.reference == MTAN_REF_OBSERVED;
    const int Q = own ? L : t->config.ref_points;
    int seen = 0, good = mtan_predictor_attention(&t->predictor, r, head, channel, weight) == MTAN_OK;
    for (int q = 0; good && q < Q; q++) {
        double expected[TINY_TIMES] = {0}, total = 0, sum = 0, value = 0, got = 0;
        const double query = own ? (double)times[q] : (double)q / (Q - 1);
        for (int e = 0; e < r->n_events; e++) {
            if (r->events[e].channel != channel) continue;
            const double w = exp(score_of(t, head, channel, query, (double)r->events[e].time));
            expected[at[e]] += w, total += w, value += w * (double)r->events[e].value;
            got += (double)weight[q * L + at[e]] * (double)r->events[e].value;
            seen = 1;
        }
        for (int i = 0; i < L; i++) {
            sum += (double)weight[q * L + i];
            good = good && fabs((double)weight[q * L + i] - (seen ? expected[i] / total : 0)) <= ROUNDING;
        }
        good = good && fabs(sum - seen) <= ROUNDING && fabs(got - (seen ? value / total : 0)) <= ROUNDING;
    }
    if (!good) printf("  BAD attention: head %d, channel %d\n", head, channel);
    return good;
}

TEST attention_is_its_definition(tiny_kind kind) {
    tiny_model t;
    mtan_real nothing[1];
    tiny_open(&t, kind, 3);
    tiny_predict(&t, 1);
    for (int b = 0; b < 3; b++) /* the third record has never seen the last channel */
        for (int head = 0; head < t.config.enc_heads; head++)
            for (int channel = 0; channel < TINY_CHANNELS; channel++)
                ASSERT(attention_is_right(&t, &t.records[b], head, channel));
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_predictor_attention(&t.predictor, t.records, t.config.enc_heads, 0, nothing));
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_predictor_attention(&t.predictor, t.records, 0, TINY_CHANNELS, nothing));
    ASSERT(tiny_close(&t));
    PASS();
}

/* A channel that is seen only where scores lie far below those of another has weights all the same. */
TEST attention_far_away(void) {
    const mtan_event events[3] = {{0, 0, 1}, {(mtan_real)0.9, 1, 1}, {1, 1, 2}};
    mtan_real weight[TINY_TIMES * 3];
    mtan_record r;
    tiny_model t;
    int apart = 0;
    memset(&r, 0, sizeof r);
    r.events = events, r.n_events = 3;
    tiny_open(&t, TINY_ENC, 1);
    for (int i = 0; i < t.config.embed * t.config.embed; i++)
        t.weights[weight_named(&t, "rec.att.linears.0.weight") - t.weights + i] *= 3000;
    tiny_predict(&t, 1);
    for (int channel = 0; channel < 2; channel++) {
        ASSERT_EQ(MTAN_OK, mtan_predictor_attention(&t.predictor, &r, 0, channel, weight));
        for (int q = 0; q < t.config.ref_points; q++) {
            const double query = (double)q / (t.config.ref_points - 1);
            const double early = score_of(&t, 0, 1, query, (double)events[1].time);
            const double late = score_of(&t, 0, 1, query, (double)events[2].time);
            const double share = 1 / (1 + exp(late - early));
            const mtan_real *w = weight + 3 * q;
            apart += fabs(score_of(&t, 0, 0, query, 0) - fmax(early, late)) > 30;
            ASSERT(fabs((double)w[0] - (channel == 0)) <= ROUNDING);
            ASSERT(fabs((double)w[1] - (channel == 1 ? share : 0)) <= 1e3 * ROUNDING);
            ASSERT(fabs((double)w[2] - (channel == 1 ? 1 - share : 0)) <= 1e3 * ROUNDING);
        }
    }
    ASSERT(apart > 0);
    ASSERT(tiny_close(&t));
    PASS();
}

/* ---- what a result may depend on ---- */

/* Where each record's rows start in an answer of mtan_predictor_logits, by its place in the list. */
static void row_starts(const tiny_model *t, const mtan_record *records, size_t *start) {
    int32_t times = 1;
    start[0] = 0;
    for (int32_t b = 0; b < t->n; b++) {
        if (t->config.classify == MTAN_CLASSIFY_TIME) times_of(&records[b], &times);
        start[b + 1] = start[b] + (size_t)times;
    }
}

enum { MANY = 9, SAMPLES = 2, ROW = SAMPLES * 2 };

/* Logits of the records in the order given, brought back into the order of t->records. */
static int logits_in_order(tiny_model *t, const int *order, int32_t at_once, mtan_real *out, size_t row) {
    mtan_record list[MANY];
    size_t start[MANY + 1], home[MANY + 1];
    mtan_real answer[MANY * TINY_TIMES * ROW];
    for (int b = 0; b < MANY; b++) list[b] = t->records[order[b]];
    tiny_predict(t, at_once);
    if (mtan_predictor_logits(&t->predictor, list, MANY, answer) != MTAN_OK) return 0;
    row_starts(t, list, start), row_starts(t, t->records, home);
    for (int b = 0; b < MANY; b++)
        memcpy(out + home[order[b]] * row, answer + start[b] * row, (start[b + 1] - start[b]) * row * sizeof *out);
    return 1;
}

TEST place_and_company_change_no_bit(tiny_kind kind) {
    static const int forward[MANY] = {0, 1, 2, 3, 4, 5, 6, 7, 8}, mixed[MANY] = {7, 2, 8, 0, 5, 1, 6, 3, 4};
    tiny_model t;
    mtan_real expected[MANY * TINY_TIMES * ROW] = {0}, got[MANY * TINY_TIMES * ROW] = {0};
    tiny_open(&t, kind, MANY);
    t.model.config.predict_samples = SAMPLES;
    const size_t row = t.config.kind == MTAN_FULL ? ROW : 2;
    t.records[4].n_events = 0; /* a record without events among the others */
    ASSERT(logits_in_order(&t, forward, MANY, expected, row));
    for (int32_t at_once = 1; at_once <= MANY; at_once += at_once < 4 ? 1 : 5) { /* 1, 2, 3, 4, 9: 1 is each alone */
        memset(got, 0, sizeof got);
        ASSERT(logits_in_order(&t, mixed, at_once, got, row));
        ASSERT(check_same("mixed order", got, expected, sizeof got));
    }
    for (int32_t b = 0; b < MANY; b++) /* events the other way round; no (time, channel) pair comes twice */
        for (int32_t i = 0; i < t.records[b].n_events / 2; i++) {
            mtan_event *e = t.events + b * TINY_EVENTS, *f = e + t.records[b].n_events - 1 - i, held = e[i];
            e[i] = *f, *f = held;
        }
    memset(got, 0, sizeof got);
    ASSERT(logits_in_order(&t, forward, 3, got, row));
    ASSERT(check_same("events reversed", got, expected, sizeof got));
    ASSERT(tiny_close(&t));
    PASS();
}

/* torch.linspace(0, 1, K): from both ends towards the middle. */
TEST given_points_equal_even_points(tiny_kind kind, int32_t K) {
    tiny_model t;
    mtan_real points[64];
    size_t n, m;
    tiny_open(&t, kind, 3);
    t.model.config.ref_points = t.config.ref_points = K;
    const mtan_real step = K > 1 ? 1 / (mtan_real)(K - 1) : 0;
    for (int32_t k = 0; k < K; k++)
        points[k] = k < K / 2 || K == 1 ? step * (mtan_real)k : 1 - step * (mtan_real)(K - 1 - k);
    tiny_predict(&t, 3);
    mtan_real *even = everything(&t, &n);
    t.model.config.reference = MTAN_REF_GIVEN, t.model.config.ref = points;
    tiny_predict(&t, 3);
    mtan_real *given = everything(&t, &m);
    ASSERT_EQ(n, m);
    ASSERT(n > 0 && check_same("given points", given, even, n * sizeof *given));
    free(given);
    if (K > 1) { /* and they are used */
        points[K - 1] = (mtan_real)0.9;
        tiny_predict(&t, 3);
        given = everything(&t, &m);
        ASSERT(memcmp(given, even, n * sizeof *given) != 0);
        free(given);
    }
    free(even);
    ASSERT(tiny_close(&t));
    PASS();
}

#define EACH(test, kind, ...)                                                                                          \
    do {                                                                                                               \
        greatest_set_test_suffix(tiny_names[kind]);                                                                    \
        RUN_TESTp(test, __VA_ARGS__);                                                                                  \
    } while (0)

SUITE(model_suite) {
    static const char *const small_cases[] = {"rbf-interp", "rbf-full", "rnn3-enc", "rnn3-full"};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        greatest_set_test_suffix(counts[i].name);
        RUN_TEST1(parameter_counts_are_the_references, &counts[i]);
        greatest_set_test_suffix(counts[i].name);
        RUN_TEST1(initial_weights_are_the_references, counts[i].name);
    }
    for (size_t i = 0; i < sizeof small_cases / sizeof small_cases[0]; i++) {
        greatest_set_test_suffix(small_cases[i]);
        RUN_TEST1(initial_weights_are_the_references, small_cases[i]);
    }
    RUN_TEST(presets_differ_as_documented);
    RUN_TEST(kl_weight_follows_the_epochs);
    RUN_TEST(attention_far_away);
    for (int i = 0; i < TINY_KINDS; i++) {
        const tiny_kind kind = (tiny_kind)i;
        mtan_config c;
        tiny_config(&c, kind);
        EACH(attention_is_its_definition, kind, kind);
        if (c.reference == MTAN_REF_EVEN) EACH(given_points_equal_even_points, kind, kind, i % 2 ? 6 : 7);
        if (c.classify != MTAN_CLASSIFY_NONE) {
            EACH(samples_make_a_prediction, kind, kind, MTAN_MEAN_PROBABILITY);
            EACH(samples_make_a_prediction, kind, kind, MTAN_MEAN_LOG_PROBABILITY);
            EACH(place_and_company_change_no_bit, kind, kind);
        }
        if (c.kind != MTAN_FULL) continue;
        EACH(mean_of_the_posterior_is_noise_zero, kind, kind);
        EACH(noise_depends_on_seed_and_id, kind, kind);
        if (c.classify != MTAN_CLASSIFY_TIME) EACH(interpolates_anywhere, kind, kind);
    }
    greatest_set_test_suffix("one");
    RUN_TESTp(given_points_equal_even_points, TINY_FULL, 1);
}
