/* See baselines.h. Set functions for time series (Horn et al., ICML 2020): a record is a set of cells, each an element
 *     e = [sines and cosines of its time, its value, its channel as one of D]                                            (F)
 * which heads of attention add up:
 *     out_h = sum_j softmax_j(key_jh . q_h / sqrt(V)) phi(e_j),   key_j = [e_j, a] Wk^T,   a = agg(mean_j psi(e_j))
 * Keys are linear and a is the same for all cells of a record, so what it adds to a score it adds to all of them, and the softmax
 * takes it out again: psi, agg and a's columns of Wk change nothing and have no gradient. They are parameters of the model (its
 * files have them) and never computed. What is left of a score is e_j . A_h with A_h = q_h Wk_h / sqrt(V), which is made once. */
#include <math.h>

#include "baselines.h"
#include "cells.h"
#include "ops.h"
#include "architecture_settings.h"

enum { SETTING_UNITS, SETTING_PSI_UNITS };
static const char *const settings[] = {"units", "psi_units", NULL};
static const double defaults[] = {32, 64};

enum { OP_POOL = BASELINE_OWN_OP };

/* ---- sizes and parameters ---- */

static int32_t units_of(const mtan_config *c) {
    return (int32_t)c->extra[SETTING_UNITS];
}

static int32_t element_size(const mtan_config *c) {
    return c->embed + 1 + c->channels;
}

static mtan_status check(const mtan_config *c) {
    const double most = 1 << 20;
    if (c->kind != MTAN_ENC || c->embed % 2 != 0) return MTAN_ERR_CONFIG;
    if (!is_whole(c->extra[SETTING_UNITS], 1, most) || !is_whole(c->extra[SETTING_PSI_UNITS], 1, most) ||
        !is_whole(c->latent, 1, most))
        return MTAN_ERR_CONFIG;
    return is_whole((double)c->latent * c->enc_heads, 1, most) ? MTAN_OK : MTAN_ERR_SIZE;
}

/* Indices of the first parameter of each part that is computed with. */
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
    r->phi = add_net(p, "rec.phi", F, U, 3, V);
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

/* e (cells, F) of all records, one after the other. */
static mtan_tensor elements(const mtan_forward *f, const batch_cells *cells) {
    mtan_tape *tape = f->tape;
    const int32_t D = f->config->channels, E = f->config->embed;
    const mtan_tensor e = mtan_new_constant(tape, cells->count, element_size(f->config));
    if (op_runs(tape)) tape->backend->fill(mtan_data(tape, e), (size_t)e.rows * (size_t)e.cols, 0);
    encode_times(f, e, cells->time);
    for (int32_t i = 0; op_runs(tape) && i < tape->batch->records * (D + 1); i++) {
        if (i % (D + 1) == D) continue; /* the end of a record's last channel */
        for (int32_t j = cells->begin[i]; j < cells->begin[i + 1]; j++) {
            mtan_real *row = mtan_data(tape, mtan_rows(e, j, 1));
            row[E] = cells->value[j];
            row[E + 1 + i % (D + 1)] = 1;
        }
    }
    return e;
}

/* ---- heads of attention over the cells of each record ----
 * asked (queries, H F) are the A_h of the queries, or one row for all records; y (rows, H V). A row of a query is H rows of F or V, one
 * for each head, so the heads of all queries of a record are rows of one product. */

enum { POOL_Y, POOL_ASKED, POOL_E, POOL_PHI, POOL_RANGE, POOL_WEIGHT, POOL_GRADIENT }; /* the tensors of its node */

/* One record: its queries times heads, its cells, and its part of each tensor. n: heads, and whether queries are the records' own. */
typedef struct pool {
    int32_t rows, cells, F, V;
    mtan_tensor y, asked, e, phi;
} pool;

static pool pool_of(const mtan_tape *tape, const mtan_tensor *t, const int32_t *n, int32_t b) {
    const int32_t *range = (const int32_t *)(const void *)mtan_data(tape, t[POOL_RANGE]);
    const int32_t first = n[1] ? tape->batch->query0[b] : b, count = n[1] ? tape->batch->query0[b + 1] - first : 1;
    pool p;
    p.rows = count * n[0];
    p.cells = range[b + 1] - range[b];
    p.F = t[POOL_E].cols;
    p.V = t[POOL_PHI].cols;
    p.y = mtan_rows(t[POOL_Y], first, count);
    p.asked = mtan_rows(t[POOL_ASKED], n[1] ? first : 0, count);
    p.e = mtan_rows(t[POOL_E], range[b], p.cells);
    p.phi = mtan_rows(t[POOL_PHI], range[b], p.cells);
    return p;
}

/* weight (rows, cells): softmax over the cells. */
static void pool_weights(const mtan_tape *tape, const pool *p, mtan_real *weight) {
    const mtan_backend *k = tape->backend;
    k->product_nt(weight, (size_t)p->cells, mtan_data(tape, p->asked), (size_t)p->F, mtan_data(tape, p->e),
                  (size_t)p->e.stride, p->rows, p->cells, p->F, 0);
    k->softmax_forward(weight, p->rows, p->cells);
}

static void op_pool(mtan_tape *tape, const mtan_tensor t[7], int32_t heads, int32_t per_time) {
    const int32_t n[2] = {heads, per_time};
    const mtan_backend *k = tape->backend;
    mtan_node *node = mtan_record_op(tape, OP_POOL);
    if (node) {
        for (int32_t i = 0; i < 7; i++) node->t[i] = t[i];
        node->n[0] = heads, node->n[1] = per_time;
    }
    for (int32_t b = 0; op_runs(tape) && b < tape->batch->records; b++) {
        const pool p = pool_of(tape, t, n, b);
        mtan_real *weight = mtan_data(tape, t[POOL_WEIGHT]);
        if (p.cells > 0) pool_weights(tape, &p, weight);
        k->product_nn(mtan_data(tape, p.y), (size_t)p.V, weight, (size_t)p.cells, mtan_data(tape, p.phi),
                      (size_t)p.phi.stride, p.rows, p.V, p.cells, 0); /* no cell: 0 */
    }
}

/* The weights are made again: with a class per time they would be the largest tensor of all. */
static void pool_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_backend *k = tape->backend;
    mtan_real *weight = mtan_data(tape, n->t[POOL_WEIGHT]), *gradient = mtan_data(tape, n->t[POOL_GRADIENT]);
    for (int32_t b = 0; b < tape->batch->records; b++) {
        const pool p = pool_of(tape, n->t, n->n, b);
        const mtan_real *dy = mtan_grad(tape, p.y);
        const size_t F = (size_t)p.F, V = (size_t)p.V, cells = (size_t)p.cells;
        if (p.cells == 0) continue;
        pool_weights(tape, &p, weight);
        k->product_tn(mtan_grad(tape, p.phi), (size_t)p.phi.stride, weight, cells, dy, V, p.cells, p.V, p.rows, 1);
        k->product_nt(gradient, cells, dy, V, mtan_data(tape, p.phi), (size_t)p.phi.stride, p.rows, p.cells, p.V, 0);
        k->softmax_backward(gradient, weight, p.rows, p.cells);
        k->product_nn(mtan_grad(tape, p.asked), F, gradient, cells, mtan_data(tape, p.e), (size_t)p.e.stride, p.rows,
                      p.F, p.cells, 1);
    }
}

static const mtan_backward backward[] = {BASELINE_BACKWARD MTAN_BACKWARD(OP_POOL, pool_back)};

/* ---- the model ---- */

/* What the heads ask (rows, H V): one row for all records, or one for every query. */
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

/* Where each record's cells start, as a tensor, which a node can keep. */
static mtan_tensor cell_ranges(mtan_tape *tape, const batch_cells *cells) {
    const int32_t B = tape->batch->records, D1 = tape->batch->channels + 1;
    const mtan_tensor range = mtan_new_constant(tape, B + 1, 1);
    int32_t *start = (int32_t *)(void *)mtan_data(tape, range);
    for (int32_t b = 0; op_runs(tape) && b < B; b++) {
        start[b] = cells->begin[b * D1];
        start[b + 1] = cells->begin[b * D1 + D1 - 1];
    }
    return range;
}

/* Most queries of a record, times heads. */
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

static void forward(const mtan_forward *f, mtan_outputs *out) {
    mtan_tape *tape = f->tape;
    const int32_t per_time = f->config->classify == MTAN_CLASSIFY_TIME;
    const roles *r = f->roles;
    const batch_cells cells = cells_of(tape);
    mtan_tensor t[7];
    if (tape->status != MTAN_OK) return;
    t[POOL_ASKED] = fold_keys(f, r, queries(f, r));
    t[POOL_E] = elements(f, &cells);
    t[POOL_PHI] = relu_net(f, r->phi, 3, t[POOL_E]);
    t[POOL_Y] = mtan_new(tape, per_time ? tape->batch->queries : tape->batch->records,
                         f->config->enc_heads * f->config->latent);
    t[POOL_RANGE] = cell_ranges(tape, &cells);
    t[POOL_WEIGHT] = mtan_new_constant(tape, most_asked(f), cells.most);
    t[POOL_GRADIENT] = mtan_new_constant(tape, tape->recording ? most_asked(f) : 0, cells.most);
    op_pool(tape, t, f->config->enc_heads, per_time);
    out->logits = apply_head(f, r->head, relu_net(f, r->rho, 2, t[POOL_Y]));
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
