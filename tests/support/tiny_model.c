/* See tiny_model.h. */
#include "tiny_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const tiny_names[TINY_KINDS] = {"enc",     "full",     "interp",   "enc-time",  "full-time",
                                            "rbf-enc", "rbf-full", "rnn3-enc", "rnn3-full", "per-head",
                                            "fixed",   "observed", "linear",   "variance",  "observed-variance"};

int tiny_left_out(tiny_kind kind) {
    char name[32];
    snprintf(name, sizeof name, "tiny-%s", tiny_names[kind]);
    return case_left_out(name);
}

static void must(mtan_status status, int line) {
    if (status == MTAN_OK) return;
    fprintf(stderr, "mtan: %s:%d: %s\n", __FILE__, line, mtan_status_message(status));
    exit(2);
}

static int is_enc(tiny_kind kind) {
    return kind == TINY_ENC || kind == TINY_ENC_TIME || kind == TINY_RBF_ENC || kind == TINY_RNN3_ENC;
}

void tiny_config(mtan_config *c, tiny_kind kind) {
    const int per_time = kind == TINY_ENC_TIME || kind == TINY_FULL_TIME || kind == TINY_LINEAR;
    mtan_config_init(c, is_enc(kind) ? MTAN_ENC : MTAN_FULL,
                     kind == TINY_INTERP || kind == TINY_VARIANCE ? MTAN_CLASSIFY_NONE
                     : per_time                                   ? MTAN_CLASSIFY_TIME
                                                                  : MTAN_CLASSIFY_RECORD,
                     TINY_CHANNELS, 2);
    c->embed = 16, c->enc_hidden = 9, c->dec_hidden = 7, c->latent = 5, c->ref_points = 6;
    c->mlp_hidden = 8, c->head_hidden = c->head_hidden ? 10 : 0;
    c->noise_std = 0.5, c->alpha = 2;
    if (kind == TINY_RBF_ENC || kind == TINY_RBF_FULL) c->encoder = c->decoder = MTAN_RBF;
    if (kind == TINY_RNN3_ENC || kind == TINY_RNN3_FULL) c->encoder = c->decoder = MTAN_RNN3;
    if (kind == TINY_FULL || kind == TINY_PER_HEAD) c->enc_heads = 2, c->dec_heads = 4, c->samples = 3;
    if (kind == TINY_PER_HEAD) c->embed_heads = MTAN_EMBED_PER_HEAD, c->bound = MTAN_BOUND_IWAE;
    if (kind == TINY_FIXED) c->embedding = MTAN_EMBED_FIXED, c->head_hidden = 0;
    if (kind == TINY_LINEAR) c->head_hidden = 0, c->dec_heads = 2;
    if (kind == TINY_OBSERVED || kind == TINY_OBSERVED_VARIANCE) c->reference = MTAN_REF_OBSERVED;
    if (kind == TINY_VARIANCE) c->enc_heads = c->dec_heads = 2, c->samples = 3;
    if (kind == TINY_VARIANCE || kind == TINY_OBSERVED_VARIANCE) c->variance = MTAN_VARIANCE_LEARNED;
    must(mtan_config_check(c), __LINE__);
}

/* Record b has 4 + (3 b mod 8) events in no order of time, two per time, and no (time, channel) pair twice. Its label
 * is the sign of its values. */
static void make_record(tiny_model *s, int32_t b) {
    mtan_event *events = s->events + (size_t)b * TINY_EVENTS;
    int32_t *labels = s->labels + (size_t)b * TINY_EVENTS;
    mtan_record *r = &s->records[b];
    const uint8_t number[4] = {(uint8_t)b, (uint8_t)(b >> 8)}; /* not b itself: gives the same noise in any byte
                                                                * order */
    r->n_events = 4 + 3 * b % 8;
    for (int32_t i = 0; i < r->n_events; i++) {
        const size_t at = (size_t)b * TINY_EVENTS + (size_t)i;
        const double noise = golden_u("tiny.value", at), level = b % 2 ? 0.75 : -0.75;
        const int32_t channel = i % (b % 3 == 2 ? 2 : TINY_CHANNELS); /* every third record lacks a channel */
        events[i].time = (mtan_real)(0.5 + 0.5 * golden_u("tiny.time", at - (size_t)(i % 2)));
        events[i].channel = channel;
        events[i].value = (mtan_real)(level + 0.125 * noise);
        labels[i] = b % 2;
    }
    r->events = events;
    r->labels = s->config.classify == MTAN_CLASSIFY_NONE ? NULL : labels;
    r->id = mtan_bytes_hash(number, sizeof number);
}

void tiny_open(tiny_model *s, tiny_kind kind, int32_t records) {
    memset(s, 0, sizeof *s);
    tiny_config(&s->config, kind);
    s->n = records;
    s->bounds.records = records, s->bounds.events = TINY_EVENTS, s->bounds.times = TINY_TIMES;
    s->count = mtan_weights_count(&s->config);
    s->weights = guard_alloc(s->count * sizeof *s->weights);
    s->records = calloc((size_t)records, sizeof *s->records);
    s->events = calloc((size_t)records * TINY_EVENTS, sizeof *s->events);
    s->labels = calloc((size_t)records * TINY_EVENTS, sizeof *s->labels);
    for (int32_t b = 0; b < records; b++) make_record(s, b);
    must(mtan_weights_init(&s->config, s->weights, mtan_weights_count(&s->config), 0), __LINE__);
    must(mtan_model_init(&s->model, &s->config, s->weights, mtan_weights_count(&s->config)), __LINE__);
}

void tiny_train(tiny_model *s, const mtan_train_config *config) {
    size_t bytes = 0;
    must(guard_free(s->trainer_memory) ? MTAN_OK : MTAN_ERR_MEMORY, __LINE__);
    must(mtan_trainer_size(&s->model, config, &s->bounds, &bytes), __LINE__);
    s->trainer_memory = guard_alloc(bytes);
    must(mtan_trainer_init(&s->trainer, &s->model, s->weights, config, &s->bounds, s->trainer_memory, bytes), __LINE__);
}

void tiny_predict(tiny_model *s, int32_t records_at_once) {
    mtan_bounds bounds = s->bounds;
    size_t bytes = 0;
    bounds.records = records_at_once;
    must(guard_free(s->predictor_memory) ? MTAN_OK : MTAN_ERR_MEMORY, __LINE__);
    must(mtan_predictor_size(&s->model, &bounds, &bytes), __LINE__);
    s->predictor_memory = guard_alloc(bytes);
    must(mtan_predictor_init(&s->predictor, &s->model, &bounds, s->predictor_memory, bytes), __LINE__);
}

int tiny_close(tiny_model *s) {
    const int weights = guard_free(s->weights), trainer = guard_free(s->trainer_memory);
    const int predictor = guard_free(s->predictor_memory);
    free(s->records), free(s->events), free(s->labels);
    return weights && trainer && predictor;
}

mtan_real *tiny_copy(const mtan_real *x, size_t n) {
    mtan_real *copy = malloc(n * sizeof *copy);
    if (copy == NULL) exit(2);
    memcpy(copy, x, n * sizeof *copy);
    return copy;
}
