/* Attention with projections, GRUs, encoder, decoder and classifier, composed of ops as the published code composes
 * them and compared with golden/blocks.safetensors. The library folds weights where it can (mtan.c, section 9); here
 * nothing is folded, so that what is compared is the chain of ops. The folded models are compared by the tests of
 * whole models.
 *
 * Two things of the reference are not there. Observed values are data, so no gradient of `x` of the masked
 * attention exists. The bias of the keys adds the same to every score of a query and cancels in the softmax: no op
 * reads it. Its gradient must be zero and is compared as such. */
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "golden_file.h"
#include "tape_test.h"

static const char BLOCKS[] = "blocks.safetensors";

enum { D = 3, K = 6, Z = 2, N = 5, E = 8 }; /* of the encoder, the decoder and the classifier */

/* ---- parts ---- */

typedef struct layer {
    mtan_tensor weight, bias;
} layer;

static mtan_tensor weight_named(piece *p, const char *prefix, const char *leaf, int32_t rows, int32_t cols,
                                int32_t fan) {
    char name[96];
    snprintf(name, sizeof name, "%s.%s", prefix, leaf);
    return piece_weight(p, name, rows, cols, fan);
}

static layer new_layer(piece *p, const char *prefix, const char *name, int32_t out, int32_t in) {
    char full[48];
    layer x;
    snprintf(full, sizeof full, "%s.%s", prefix, name);
    x.weight = weight_named(p, full, "weight", out, in, in);
    x.bias = weight_named(p, full, "bias", 1, out, in);
    return x;
}

static mtan_tensor linear(piece *p, const char *prefix, const char *name, mtan_tensor x, int32_t out) {
    const layer w = new_layer(p, prefix, name, out, x.cols);
    const mtan_tensor y = mtan_new(&p->tape, x.rows, out);
    mtan_op_linear(&p->tape, y, x, w.weight, &w.bias);
    return y;
}

/* One direction of a GRU; `end` is "l0" or "l0_reverse". */
static void gru(piece *p, const char *prefix, const char *end, mtan_tensor y, mtan_tensor x, int32_t reverse) {
    const char *const kinds[4] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    const mtan_tensor gx = mtan_new(&p->tape, x.rows, 3 * y.cols);
    mtan_tensor w[4];
    for (int i = 0; i < 4; i++) {
        char leaf[32];
        snprintf(leaf, sizeof leaf, "%s_%s", kinds[i], end);
        w[i] = weight_named(p, prefix, leaf, i < 2 ? 3 * y.cols : 1,
                            i == 0   ? x.cols
                            : i == 1 ? y.cols
                                     : 3 * y.cols,
                            y.cols);
    }
    mtan_op_linear(&p->tape, gx, x, w[0], &w[2]);
    mtan_op_gru(&p->tape, y, gx, w[1], w[3], NULL, 1, reverse);
}

static mtan_tensor bigru(piece *p, const char *prefix, mtan_tensor x) {
    const mtan_tensor y = mtan_new(&p->tape, x.rows, 2 * N);
    gru(p, prefix, "l0", mtan_columns(y, 0, N), x, 0);
    gru(p, prefix, "l0_reverse", mtan_columns(y, N, N), x, 1);
    return y;
}

/* The two projections of an attention, and one head of each: the query's divided by the root of its width. */
typedef struct projections {
    layer query, key;
    int32_t heads;
} projections;

static projections new_projections(piece *p, const char *prefix, int32_t heads) {
    projections x;
    x.query = new_layer(p, prefix, "linears.0", E, E);
    x.key = new_layer(p, prefix, "linears.1", E, E);
    x.heads = heads;
    return x;
}

static mtan_tensor project_query(piece *p, const projections *w, mtan_tensor x, int32_t head) {
    const int32_t width = E / w->heads;
    const mtan_tensor y = mtan_new(&p->tape, x.rows, width), bias = mtan_columns(w->query.bias, head * width, width);
    mtan_op_linear(&p->tape, y, x, mtan_rows(w->query.weight, head * width, width), &bias);
    mtan_op_scale(&p->tape, y, 1 / sqrt(width));
    return y;
}

static mtan_tensor project_key(piece *p, const projections *w, mtan_tensor x, int32_t head) {
    const int32_t width = E / w->heads;
    const mtan_tensor y = mtan_new(&p->tape, x.rows, width);
    mtan_op_linear(&p->tape, y, x, mtan_rows(w->key.weight, head * width, width), NULL);
    return y;
}

/* Over the batch's events, (R, out). A head gives [values, mask]; the mask half is `seen` at every query (Q1). */
static mtan_tensor attend_events(piece *p, const char *prefix, mtan_tensor query, mtan_tensor key, int32_t heads,
                                 int32_t out) {
    const projections w = new_projections(p, prefix, heads);
    const int32_t channels = p->batch.channels;
    const mtan_tensor y = mtan_new(&p->tape, p->batch.rows, heads * 2 * channels);
    for (int32_t h = 0; h < heads; h++) {
        const mtan_tensor score = mtan_new(&p->tape, 1, p->batch.scores);
        mtan_op_score(&p->tape, score, project_key(p, &w, key, h), project_query(p, &w, query, h), 0);
        mtan_op_attend(&p->tape, mtan_columns(y, h * 2 * channels, channels), score);
        mtan_op_spread(&p->tape, mtan_columns(y, (2 * h + 1) * channels, channels), p->batch.seen);
    }
    return linear(p, prefix, "linears.2", y, out);
}

/* Over values at the reference points, (Q, out). */
static mtan_tensor attend_values(piece *p, const char *prefix, mtan_tensor query, mtan_tensor key, mtan_tensor value,
                                 int32_t heads, int32_t out) {
    const projections w = new_projections(p, prefix, heads);
    const mtan_tensor y = mtan_new(&p->tape, query.rows, heads * value.cols);
    for (int32_t h = 0; h < heads; h++) {
        const mtan_tensor weight = mtan_new(&p->tape, query.rows, key.rows);
        mtan_op_score(&p->tape, weight, project_query(p, &w, query, h), project_key(p, &w, key, h), 1);
        mtan_op_softmax_pairs(&p->tape, weight);
        mtan_op_attend_values(&p->tape, mtan_columns(y, h * value.cols, value.cols), weight, value);
    }
    return linear(p, prefix, "linears.2", y, out);
}

/* ---- the records `small`, and times ---- */

enum { SMALL = 4, CELLS = 69 };

/* Distinct times of the records, one after the other, and the cells in the order of record and time. */
typedef struct small_set {
    mtan_real time[CELLS];
    int32_t keys[SMALL], times;
    piece_event events[CELLS];
} small_set;

static int load_small(small_set *set) {
    const char file[] = "records.safetensors";
    int32_t offset[SMALL + 1], channel[CELLS];
    float time[CELLS], value[CELLS];
    memset(set, 0, sizeof *set);
    if (!golden_read(file, "small/offset", MTAN_DTYPE_I32, offset, SMALL + 1) ||
        !golden_read(file, "small/channel", MTAN_DTYPE_I32, channel, CELLS) ||
        !golden_read(file, "small/time", MTAN_DTYPE_F32, time, CELLS) ||
        !golden_read(file, "small/value", MTAN_DTYPE_F32, value, CELLS) || offset[SMALL] != CELLS)
        return 0;
    for (int32_t b = 0, n = 0; b < SMALL; b++) {
        float last = -1;                                            /* times are not negative */
        for (int32_t left = offset[b + 1] - offset[b]; left > 0;) { /* the least time above the last, and its events */
            float next = HUGE_VALF;
            for (int32_t i = offset[b]; i < offset[b + 1]; i++)
                if (time[i] > last && time[i] < next) next = time[i];
            for (int32_t i = offset[b]; i < offset[b + 1]; i++)
                if (time[i] == next) {
                    const piece_event e = {b, set->keys[b], channel[i], (mtan_real)value[i]};
                    set->events[n++] = e, left--;
                }
            set->time[set->times++] = (mtan_real)next;
            set->keys[b]++, last = next;
        }
    }
    return 1;
}

static mtan_tensor observed_times(piece *p, const small_set *set) {
    const mtan_tensor x = mtan_new_constant(&p->tape, set->times, 1);
    if (piece_runs(p)) memcpy(mtan_data(&p->tape, x), set->time, (size_t)set->times * sizeof *set->time);
    return x;
}

static mtan_tensor reference_points(piece *p) {
    const mtan_tensor x = mtan_new_constant(&p->tape, K, 1);
    for (int32_t k = 0; piece_runs(p) && k < K; k++) mtan_data(&p->tape, x)[k] = (mtan_real)k / (K - 1);
    return x;
}

static void time_weights(piece *p, const char *prefix, mtan_tensor w[4]) {
    w[0] = weight_named(p, prefix, "linear.weight", 1, 1, 1);
    w[1] = weight_named(p, prefix, "linear.bias", 1, 1, 1);
    w[2] = weight_named(p, prefix, "periodic.weight", E - 1, 1, 1);
    w[3] = weight_named(p, prefix, "periodic.bias", E - 1, 1, 1);
}

static mtan_tensor embed(piece *p, const mtan_tensor w[4], mtan_tensor time) {
    const mtan_tensor y = mtan_new(&p->tape, time.rows, E);
    mtan_op_embed(&p->tape, y, time, w);
    return y;
}

/* ---- the blocks ---- */

static void build_masked(piece *p) {
    mtan_tensor query, key;
    piece_sequence(p, 2, K);
    piece_grid(p, 7, 4);
    query = piece_input(p, "query", K, E, 1, NULL);
    key = piece_input(p, "key", 14, E, 1, NULL);
    piece_output(p, "out", attend_events(p, "rec.att", query, key, *(const int32_t *)p->argument, N), piece_by_step);
}

static void build_unmasked(piece *p) {
    const int32_t seven[2] = {7, 7};
    mtan_tensor query, key, value;
    piece_sequence(p, 2, K);
    piece_queries(p, seven);
    query = piece_input(p, "query", 14, E, 1, NULL);
    key = piece_input(p, "key", K, E, 1, NULL);
    value = piece_input(p, "value", 2 * K, 2 * N, 1, piece_by_step);
    piece_output(p, "out", attend_values(p, "dec.att", query, key, value, *(const int32_t *)p->argument, 2 * N), NULL);
}

static void build_bigru(piece *p) {
    piece_sequence(p, 2, K);
    piece_output(p, "out", bigru(p, "dec.gru_rnn", piece_input(p, "x", 2 * K, Z, 1, piece_by_step)), piece_by_step);
}

static void build_encoder(piece *p) {
    const small_set *set = p->argument;
    mtan_tensor w[4], query, key, x;
    piece_sequence(p, SMALL, K);
    piece_events(p, D, set->keys, set->events, CELLS);
    time_weights(p, "rec", w);
    query = embed(p, w, reference_points(p));
    key = embed(p, w, observed_times(p, set));
    x = bigru(p, "rec.gru_rnn", attend_events(p, "rec.att", query, key, 1, N));
    x = linear(p, "rec", "hiddens_to_z0.0", x, 50);
    mtan_op_relu(&p->tape, x);
    x = linear(p, "rec", "hiddens_to_z0.2", x, 2 * Z);
    piece_output(p, "mean", mtan_columns(x, 0, Z), piece_by_step);
    piece_output(p, "logvar", mtan_columns(x, Z, Z), piece_by_step);
}

/* The prediction (Q, D) at cell i. */
static size_t at_cell(const piece *p, size_t i, size_t cols) {
    const piece_event *e = &((const small_set *)p->argument)->events[i];
    return (size_t)(p->query0[e->record] + e->row) * cols + (size_t)e->channel;
}

static void build_decoder(piece *p) {
    const small_set *set = p->argument;
    mtan_tensor w[4], query, key, x;
    piece_sequence(p, SMALL, K);
    piece_queries(p, set->keys);
    time_weights(p, "dec", w);
    query = embed(p, w, observed_times(p, set));
    key = embed(p, w, reference_points(p));
    x = bigru(p, "dec.gru_rnn", piece_input(p, "z", SMALL * K, Z, 1, piece_by_step));
    x = attend_values(p, "dec.att", query, key, x, 1, 2 * N);
    x = linear(p, "dec", "z0_to_obs.0", x, 50);
    mtan_op_relu(&p->tape, x);
    x = linear(p, "dec", "z0_to_obs.2", x, D);
    piece_output_cells(p, "pred", x, CELLS, at_cell);
}

static void build_classifier(piece *p) {
    mtan_tensor z, hidden, x;
    piece_sequence(p, 3, K);
    z = piece_input(p, "z", 3 * K, Z, 1, piece_by_step);
    hidden = mtan_new(&p->tape, 3 * K, N);
    x = mtan_new(&p->tape, 3, N);
    gru(p, "classifier.gru_rnn", "l0", hidden, z, 0);
    mtan_op_last(&p->tape, x, hidden);
    x = linear(p, "classifier", "classifier.0", x, 300);
    mtan_op_relu(&p->tape, x);
    x = linear(p, "classifier", "classifier.2", x, 300);
    mtan_op_relu(&p->tape, x);
    piece_output(p, "logits", linear(p, "classifier", "classifier.4", x, 2), NULL);
}

static const int32_t one_head = 1, two_heads = 2;

static const struct golden_block {
    const char *name;
    piece_build build;
    const int32_t *heads;
} golden_blocks[] = {
    {"att-masked-h1", build_masked, &one_head},
    {"att-masked-h2", build_masked, &two_heads},
    {"att-h1", build_unmasked, &one_head},
    {"att-h2", build_unmasked, &two_heads},
    {"bigru", build_bigru, NULL},
    {"classifier", build_classifier, NULL},
};

TEST golden_block(const struct golden_block *block) {
    ASSERT(piece_golden(BLOCKS, block->name, block->build, block->heads));
    PASS();
}

TEST golden_encoder(void) {
    small_set set;
    ASSERT(load_small(&set));
    ASSERT(piece_golden(BLOCKS, "encoder", build_encoder, &set));
    PASS();
}

TEST golden_decoder(void) {
    small_set set;
    ASSERT(load_small(&set));
    ASSERT(piece_golden(BLOCKS, "decoder", build_decoder, &set));
    PASS();
}

SUITE(blocks_suite) {
    for (size_t i = 0; i < sizeof golden_blocks / sizeof *golden_blocks; i++) {
        greatest_set_test_suffix(golden_blocks[i].name);
        RUN_TESTp(golden_block, &golden_blocks[i]);
    }
    RUN_TEST(golden_encoder);
    RUN_TEST(golden_decoder);
}
