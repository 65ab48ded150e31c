/* See baselines.h. Set functions for time series (Horn et al., ICML 2020): a record is a set of cells, each an element
 *     e = [sines and cosines of its time, its value, its channel as one of D]                                       (F)
 * which attention heads add up:
 *     out_h = sum_j softmax_j(key_jh . q_h / sqrt(V)) phi(e_j),   key_j = [e_j, a] Wk^T,   a = agg(mean_j psi(e_j))
 * Keys are linear and a is the same for all cells of a record, so a adds the same amount to all scores, and the softmax
 * cancels it: psi, agg and a's columns of Wk change nothing and have no gradient. They are parameters of the model (its
 * files have them) but are never computed. The rest of a score is e_j . A_h with A_h = q_h Wk_h / sqrt(V), which is
 * computed once. */
#include <math.h>
#include <string.h>

#include "baselines.h"
#include "cells.h"
#include "ops.h"
#include "architecture_settings.h"

enum { SETTING_UNITS, SETTING_PSI_UNITS };
static const char *const settings[] = {"units", "psi_units", NULL};
static const double defaults[] = {32, 64};

enum { PHI_LAYERS = 4 };
enum { OP_TRANSPOSE = BASELINE_OWN_OP, OP_CHANNELS, OP_POOL };

/* ---- sizes and parameters ---- */

static int32_t units_of(const mtan_config *c) {
    return (int32_t)c->extra[SETTING_UNITS];
}

/* Dense columns of an element: its time and its value. The columns of its channel follow. */
static int32_t dense_size(const mtan_config *c) {
    return c->embed + 1;
}

static int32_t element_size(const mtan_config *c) {
    return dense_size(c) + c->channels;
}

static mtan_status check(const mtan_config *c) {
    const double most = 1 << 20;
    if (c->kind != MTAN_ENC || c->embed % 2 != 0) return MTAN_ERR_CONFIG;
    if (!is_whole(c->extra[SETTING_UNITS], 1, most) || !is_whole(c->extra[SETTING_PSI_UNITS], 1, most) ||
        !is_whole(c->latent, 1, most))
        return MTAN_ERR_CONFIG;
    return is_whole((double)c->latent * c->enc_heads, 1, most) ? MTAN_OK : MTAN_ERR_SIZE;
}

/* Indices of the first parameter of each part that takes part in the computation. */
typedef struct roles {
    int32_t key, query, query_time, phi, rho, head;
} roles;

static void params(const mtan_config *c, mtan_params *p, void *out) {
    const int32_t F = element_size(c), V = c->latent, HV = c->enc_heads * c->latent, U = units_of(c);
    roles *r = out;
    add_net(p, "rec.psi", F, (int32_t)c->extra[SETTING_PSI_UNITS], 2, V);
    add_linear(p, "rec.agg", V, V);
    r->key = mtan_params_add(p, "rec.key.weight", HV, F + V, 2, F + V);
    r->query = mtan_params_add(p, "rec.query", c->enc_heads, V, 2, 1);
    if (c->classify == MTAN_CLASSIFY_TIME)
        r->query_time = mtan_params_add(p, "rec.query_time.weight", HV, c->embed, 2, 1);
    r->phi = add_net(p, "rec.phi", F, U, PHI_LAYERS - 1, V);
    r->rho = add_net(p, "rec.rho", HV, U, 2, U);
    r->head = add_head(p, c, U);
}

static void init(const mtan_config *c, const void *indices, mtan_real *weights, mtan_mt19937 *rng) {
    const roles *r = indices;
    (void)rng;
    start_constant(c, weights, r->query, 0);
    if (c->classify == MTAN_CLASSIFY_TIME) start_constant(c, weights, r->query_time, 0);
}

/* ---- elements ---- */

/* The first E columns of y: sines of scale t / tau_i, then cosines; tau_i from 1 to embed_base. */
static void encode_times(const mtan_forward *f, mtan_tensor y, const mtan_real *time) {
    mtan_tape *tape = f->tape;
    const int32_t half = f->config->embed / 2;
    const mtan_tensor angle = mtan_new_constant(tape, y.rows, half), wave = mtan_new_constant(tape, y.rows, half);
    const size_t count = (size_t)y.rows * (size_t)half;
    if (!op_runs(tape)) return;
    for (int32_t i = 0; i < half; i++) {
        const double tau = pow(f->config->embed_base, half > 1 ? (double)i / (half - 1) : 0);
        for (int32_t j = 0; j < y.rows; j++)
            mtan_data(tape, angle)[j * half + i] = (mtan_real)(f->config->embed_scale * (double)time[j] / tau);
    }
    tape->backend->map(MTAN_SIN, mtan_data(tape, wave), mtan_data(tape, angle), count);
    mtan_op_copy(tape, mtan_columns(y, 0, half), wave);
    tape->backend->map(MTAN_COS, mtan_data(tape, wave), mtan_data(tape, angle), count);
    mtan_op_copy(tape, mtan_columns(y, half, half), wave);
}

/* e (cells, E + 1) of all records, one after the other, without the channels. */
static mtan_tensor elements(const mtan_forward *f, const batch_cells *cells) {
    mtan_tape *tape = f->tape;
    const mtan_tensor e = mtan_new_constant(tape, cells->count, dense_size(f->config));
    encode_times(f, e, cells->time);
    for (int32_t j = 0; op_runs(tape) && j < e.rows; j++)
        mtan_data(tape, mtan_rows(e, j, 1))[e.cols - 1] = cells->value[j];
    return e;
}

/* Integers in a row of as many reals, which are at least as wide: a form that a node can store. */
static int32_t *ints_of(const mtan_tape *tape, mtan_tensor row) {
    return (int32_t *)(void *)mtan_data(tape, row);
}

/* First cell of each channel: a row of D + 1 for each record. */
static mtan_tensor channel_ranges(mtan_tape *tape, const batch_cells *cells) {
    const int32_t B = tape->batch->records, D1 = tape->batch->channels + 1;
    const mtan_tensor begin = mtan_new_constant(tape, B, D1);
    for (int32_t b = 0; op_runs(tape) && b < B; b++)
        memcpy(ints_of(tape, mtan_rows(begin, b, 1)), cells->begin + b * D1, (size_t)D1 * sizeof *cells->begin);
    return begin;
}

/* ---- the channel in the first layer ----
 * An element is 1 at its channel and 0 at the others, so the product with a weight is the weight's column for that
 * channel. The columns are transposed into rows, and the cells of a channel, which are contiguous, get theirs at
 * once. */

static void op_transpose(mtan_tape *tape, mtan_tensor y, mtan_tensor x) {
    mtan_node *node = mtan_record_op(tape, OP_TRANSPOSE);
    if (node) node->t[0] = y, node->t[1] = x;
    for (int32_t i = 0; op_runs(tape) && i < y.rows; i++)
        for (int32_t j = 0; j < y.cols; j++)
            mtan_data(tape, y)[i * y.stride + j] = mtan_data(tape, x)[j * x.stride + i];
}

static void transpose_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor y = n->t[0], x = n->t[1];
    for (int32_t i = 0; i < y.rows; i++)
        for (int32_t j = 0; j < y.cols; j++)
            mtan_grad(tape, x)[j * x.stride + i] += mtan_grad(tape, y)[i * y.stride + j];
}

/* y (cells of a record, U) += the row of their channel in w (D, U); begin (1, D + 1). */
static void op_channels(mtan_tape *tape, mtan_tensor y, mtan_tensor w, mtan_tensor begin) {
    mtan_node *node = mtan_record_op(tape, OP_CHANNELS);
    if (node) node->t[0] = y, node->t[1] = w, node->t[2] = begin;
    for (int32_t d = 0; op_runs(tape) && d < w.rows; d++) {
        const int32_t *at = ints_of(tape, begin) + d, n = at[1] - at[0], first = at[0] - ints_of(tape, begin)[0];
        if (n > 0)
            tape->backend->add(mtan_data(tape, mtan_rows(y, first, n)), (size_t)y.stride,
                               mtan_data(tape, mtan_rows(w, d, 1)), 0, n, y.cols);
    }
}

static void channels_back(mtan_tape *tape, const mtan_node *node) {
    const mtan_tensor y = node->t[0], w = node->t[1];
    const int32_t *begin = ints_of(tape, node->t[2]);
    for (int32_t d = 0; d < w.rows; d++) {
        const int32_t n = begin[d + 1] - begin[d], first = begin[d] - begin[0];
        if (n > 0)
            tape->backend->add(mtan_grad(tape, mtan_rows(w, d, 1)), 0, mtan_grad(tape, mtan_rows(y, first, n)),
                               (size_t)y.stride, n, y.cols);
    }
}

/* ---- attention heads over the cells of a record ----
 * asked (queries, H F) are the A_h of the queries; y (queries, H V). The row of a query is H rows of F or V, one for
 * each head, so the heads of all queries are rows of one product. */

enum { POOL_Y, POOL_ASKED, POOL_E, POOL_PHI, POOL_BEGIN, POOL_WEIGHT, POOL_GRADIENT, POOL_TENSORS }; /* of its node */

/* The node's tensors for one record: heads of all its queries, its cells, sizes. */
typedef struct pool {
    const mtan_tensor *t;
    int32_t rows, cells, dense, F, V;
} pool;

static pool pool_of(const mtan_tensor *t, int32_t heads) {
    pool p;
    p.t = t;
    p.rows = t[POOL_Y].rows * heads;
    p.cells = t[POOL_E].rows;
    p.dense = t[POOL_E].cols;
    p.F = t[POOL_ASKED].cols / heads;
    p.V = t[POOL_PHI].cols;
    return p;
}

/* score (rows, cells) += the part of `asked` for the cell's channel. */
static void add_channels(const mtan_tape *tape, const pool *p, mtan_real *score) {
    const int32_t *begin = ints_of(tape, p->t[POOL_BEGIN]);
    for (int32_t r = 0; r < p->rows; r++, score += p->cells) {
        const mtan_real *asked = mtan_data(tape, p->t[POOL_ASKED]) + (size_t)r * (size_t)p->F + p->dense;
        for (int32_t d = 0; d < p->F - p->dense; d++)
            for (int32_t j = begin[d]; j < begin[d + 1]; j++) score[j - begin[0]] += asked[d];
    }
}

static void add_channels_back(const mtan_tape *tape, const pool *p, const mtan_real *dscore) {
    const int32_t *begin = ints_of(tape, p->t[POOL_BEGIN]);
    for (int32_t r = 0; r < p->rows; r++, dscore += p->cells) {
        mtan_real *dasked = mtan_grad(tape, p->t[POOL_ASKED]) + (size_t)r * (size_t)p->F + p->dense;
        for (int32_t d = 0; d < p->F - p->dense; d++)
            for (int32_t j = begin[d]; j < begin[d + 1]; j++) dasked[d] += dscore[j - begin[0]];
    }
}

/* weight (rows, cells): softmax over the cells. */
static void pool_weights(const mtan_tape *tape, const pool *p, mtan_real *weight) {
    const mtan_backend *k = tape->backend;
    k->product_nt(weight, (size_t)p->cells, mtan_data(tape, p->t[POOL_ASKED]), (size_t)p->F,
                  mtan_data(tape, p->t[POOL_E]), (size_t)p->dense, p->rows, p->cells, p->dense, 0);
    add_channels(tape, p, weight);
    k->softmax_forward(weight, p->rows, p->cells);
}

static void op_pool(mtan_tape *tape, const mtan_tensor t[POOL_TENSORS], int32_t heads) {
    const pool p = pool_of(t, heads);
    mtan_real *weight = mtan_data(tape, t[POOL_WEIGHT]);
    mtan_node *node = mtan_record_op(tape, OP_POOL);
    for (int32_t i = 0; node && i < POOL_TENSORS; i++) node->t[i] = t[i];
    if (node) node->n[0] = heads;
    if (!op_runs(tape)) return;
    if (p.cells > 0) pool_weights(tape, &p, weight);
    tape->backend->product_nn(mtan_data(tape, t[POOL_Y]), (size_t)p.V, weight, (size_t)p.cells,
                              mtan_data(tape, t[POOL_PHI]), (size_t)p.V, p.rows, p.V, p.cells, 0); /* without cells:
                                                                                                    * 0 */
}

/* The weights are recomputed: with a class per time they would be the largest tensor of all. */
static void pool_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_backend *k = tape->backend;
    const mtan_tensor *t = n->t;
    const pool p = pool_of(t, n->n[0]);
    const size_t V = (size_t)p.V, cells = (size_t)p.cells;
    const mtan_real *dy = mtan_grad(tape, t[POOL_Y]);
    mtan_real *weight = mtan_data(tape, t[POOL_WEIGHT]), *gradient = mtan_data(tape, t[POOL_GRADIENT]);
    if (p.cells == 0) return;
    pool_weights(tape, &p, weight);
    k->product_tn(mtan_grad(tape, t[POOL_PHI]), V, weight, cells, dy, V, p.cells, p.V, p.rows, 1);
    k->product_nt(gradient, cells, dy, V, mtan_data(tape, t[POOL_PHI]), V, p.rows, p.cells, p.V, 0);
    k->softmax_backward(gradient, weight, p.rows, p.cells);
    k->product_nn(mtan_grad(tape, t[POOL_ASKED]), (size_t)p.F, gradient, cells, mtan_data(tape, t[POOL_E]),
                  (size_t)p.dense, p.rows, p.dense, p.cells, 1);
    add_channels_back(tape, &p, gradient);
}

static const mtan_backward backward[] = {BASELINE_BACKWARD MTAN_BACKWARD(OP_TRANSPOSE, transpose_back),
                                         MTAN_BACKWARD(OP_CHANNELS, channels_back), MTAN_BACKWARD(OP_POOL, pool_back)};

/* ---- the model ---- */

/* The queries of the heads (rows, H V): one row for all records, or one for every query. */
static mtan_tensor queries(const mtan_forward *f, const roles *r) {
    mtan_tape *tape = f->tape;
    const mtan_batch *batch = tape->batch;
    const int32_t HV = f->config->enc_heads * f->config->latent;
    mtan_tensor q = mtan_forward_param(f, r->query), at, sum;
    q.rows = 1, q.cols = q.stride = HV;
    if (f->config->classify != MTAN_CLASSIFY_TIME) return q;
    at = mtan_new_constant(tape, batch->queries, f->config->embed);
    encode_times(f, at, mtan_data(tape, batch->query));
    sum = mtan_new(tape, batch->queries, HV);
    mtan_op_linear(tape, sum, at, mtan_forward_param(f, r->query_time), &q);
    return sum;
}

/* (rows, H F): q_h Wk_h / sqrt(V) of every head, Wk without the columns of a. */
static mtan_tensor fold_keys(const mtan_forward *f, const roles *r, mtan_tensor q) {
    const int32_t H = f->config->enc_heads, V = f->config->latent, F = element_size(f->config);
    const mtan_tensor key = mtan_columns(mtan_forward_param(f, r->key), 0, F), y = mtan_new(f->tape, q.rows, H * F);
    for (int32_t h = 0; h < H; h++)
        mtan_op_matmul(f->tape, mtan_columns(y, h * F, F), mtan_columns(q, h * V, V), mtan_rows(key, h * V, V));
    mtan_op_scale(f->tape, y, 1 / sqrt((double)V));
    return y;
}

/* Largest number of queries of a record, times heads. */
static int32_t most_asked(const mtan_forward *f) {
    const mtan_batch *batch = f->tape->batch;
    int32_t most = 1;
    if (f->config->classify != MTAN_CLASSIFY_TIME) return f->config->enc_heads;
    if (!op_runs(f->tape)) most = batch->records ? (batch->queries + batch->records - 1) / batch->records : 0;
    for (int32_t b = 0; op_runs(f->tape) && b < batch->records; b++)
        most = batch->query0[b + 1] - batch->query0[b] > most ? batch->query0[b + 1] - batch->query0[b] : most;
    return most * f->config->enc_heads;
}

static mtan_tensor relu_net(const mtan_forward *f, int32_t index, int32_t layers, mtan_tensor x) {
    const mtan_tensor y = apply_net(f, index, layers, x, 1);
    mtan_op_relu(f->tape, y);
    return y;
}

/* phi and the heads of all records: results of the layers, and the tensors of the pool. */
typedef struct encoder {
    mtan_tensor layer[PHI_LAYERS]; /* (cells, U) and, the last, (cells, V) */
    mtan_tensor channels;          /* (D, U) the first layer's weights of the channels */
    mtan_tensor t[POOL_TENSORS];   /* of all records */
} encoder;

static encoder encoder_new(const mtan_forward *f, const batch_cells *cells) {
    mtan_tape *tape = f->tape;
    const mtan_config *c = f->config;
    const roles *r = f->roles;
    encoder e;
    for (int32_t i = 0; i < PHI_LAYERS; i++)
        e.layer[i] = mtan_new(tape, cells->count, i < PHI_LAYERS - 1 ? units_of(c) : c->latent);
    e.channels = mtan_new(tape, c->channels, units_of(c));
    op_transpose(tape, e.channels, mtan_columns(mtan_forward_param(f, r->phi), dense_size(c), c->channels));
    e.t[POOL_ASKED] = fold_keys(f, r, queries(f, r));
    e.t[POOL_E] = elements(f, cells);
    e.t[POOL_PHI] = e.layer[PHI_LAYERS - 1];
    e.t[POOL_Y] = mtan_new(tape, c->classify == MTAN_CLASSIFY_TIME ? tape->batch->queries : tape->batch->records,
                           c->enc_heads * c->latent);
    e.t[POOL_BEGIN] = channel_ranges(tape, cells);
    e.t[POOL_WEIGHT] = mtan_new_constant(tape, most_asked(f), cells->most);
    e.t[POOL_GRADIENT] = mtan_new_constant(tape, tape->recording ? most_asked(f) : 0, cells->most);
    return e;
}

/* phi of the cells from `first` on. */
static void run_phi(const mtan_forward *f, const encoder *e, int32_t first, int32_t count, mtan_tensor begin) {
    mtan_tape *tape = f->tape;
    mtan_tensor x = mtan_rows(e->t[POOL_E], first, count);
    for (int32_t i = 0; i < PHI_LAYERS; i++) {
        const int32_t phi = ((const roles *)f->roles)->phi + 2 * i;
        const mtan_tensor w = mtan_forward_param(f, phi), b = mtan_forward_param(f, phi + 1);
        const mtan_tensor y = mtan_rows(e->layer[i], first, count);
        mtan_op_linear(tape, y, x, mtan_columns(w, 0, x.cols), &b);
        if (i == 0) op_channels(tape, y, e->channels, begin);
        mtan_op_relu(tape, y);
        x = y;
    }
}

/* Encodes record b; while sizes are counted, its content is not known. */
static void encode_record(const mtan_forward *f, const encoder *e, int32_t b) {
    const mtan_batch *batch = f->tape->batch;
    const int32_t per_time = f->config->classify == MTAN_CLASSIFY_TIME, runs = op_runs(f->tape);
    const mtan_tensor at = mtan_rows(e->t[POOL_BEGIN], b, 1);
    const int32_t *begin = ints_of(f->tape, at), first = runs ? begin[0] : 0;
    const int32_t count = runs ? begin[batch->channels] - first : 0, asked = runs && per_time ? batch->query0[b] : 0;
    mtan_tensor t[POOL_TENSORS];
    for (int32_t i = 0; i < POOL_TENSORS; i++) t[i] = e->t[i];
    t[POOL_ASKED] = mtan_rows(t[POOL_ASKED], asked, runs && per_time ? batch->query0[b + 1] - asked : 1);
    t[POOL_Y] = mtan_rows(t[POOL_Y], per_time ? asked : b, t[POOL_ASKED].rows);
    t[POOL_E] = mtan_rows(t[POOL_E], first, count);
    t[POOL_PHI] = mtan_rows(t[POOL_PHI], first, count);
    t[POOL_BEGIN] = at;
    run_phi(f, e, first, count, at);
    op_pool(f->tape, t, f->config->enc_heads);
}

/* Record by record, so that a record's cells stay in the cache from layer to layer. The last record comes first, so
 * that the backward pass adds gradients from the first record on. */
static void forward(const mtan_forward *f, mtan_outputs *out) {
    const roles *r = f->roles;
    const batch_cells cells = cells_of(f->tape);
    encoder e;
    if (f->tape->status != MTAN_OK) return;
    e = encoder_new(f, &cells);
    for (int32_t b = f->tape->batch->records - 1; b >= 0; b--) encode_record(f, &e, b);
    out->logits = apply_head(f, r->head, relu_net(f, r->rho, 2, e.t[POOL_Y]));
}

const mtan_architecture baseline_seft = {
    .name = "seft",
    .settings = settings,
    .defaults = defaults,
    .roles = ROLES(roles),
    .traits = BASELINE_TRAITS,
    .check = check,
    .params = params,
    .init = init,
    .forward = forward,
    .backward = backward,
};
