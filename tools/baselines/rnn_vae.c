/* RNN-VAE, the comparison of Rubanova et al. (2019): a GRU as encoder; the decoder is a GRU that starts from a sample
 * of the latent state and reads its own output and the time to the next query. With the setting "faithful", the encoder
 * is that of the published code, which reverses the gaps instead of the rows. That code also pairs the records of a
 * batch wrongly; code that makes batches reproduces this (arrange.h). */
#include "latent.h"

#include <string.h>

enum { OP_FEEDBACK = LATENT_OWN_OP };

/* Indices of the parameters: first tensors of its layers. */
typedef struct roles {
    int32_t encoder, z0, decoder, out, head;
} roles;

/* ---- the order of the decoder's rows ----
 * Step i of the decoder is the i-th distinct query time of every record that has so many. Records with more distinct
 * times come first, so that the rows of a step continue the first rows of the step before; a record has S consecutive
 * rows. */

typedef struct schedule {
    int32_t steps;
    int32_t *first;       /* (steps + 1) first row of each step */
    mtan_tensor first_at; /* their place in the workspace */
    mtan_tensor start,
        at; /* int32_t: row of z that each row of the first step starts from; row of the decoder that each result is
             * read from */
} schedule;

typedef struct query_count {
    int32_t record, distinct;
} query_count;

static int32_t count_distinct(const mtan_forward *f, int32_t b, int32_t *order) {
    const mtan_real *q = mtan_data(f->tape, f->tape->batch->query) + f->tape->batch->query0[b];
    const int32_t n = sort_queries(f, b, order);
    int32_t count = n > 0;
    for (int32_t i = 1; i < n; i++) count += q[order[i]] > q[order[i - 1]];
    return count;
}

/* Sorts records by descending number of distinct queries, and counts the steps. */
static void order_records(const mtan_forward *f, schedule *s, query_count *count, int32_t *order) {
    const mtan_batch *batch = f->tape->batch;
    for (int32_t b = 0; b < batch->records; b++) {
        const query_count own = {b, count_distinct(f, b, order)};
        int32_t at = b;
        for (; at > 0 && count[at - 1].distinct < own.distinct; at--) count[at] = count[at - 1];
        count[at] = own;
    }
    s->steps = batch->records ? count[0].distinct : 0;
    s->first[0] = 0;
    for (int32_t i = 0, running = batch->records; i < s->steps; i++) {
        while (count[running - 1].distinct <= i) running--;
        s->first[i + 1] = s->first[i] + running * batch->samples;
    }
}

/* Fills in the rows of the record at place `place`: their starts, the rows of its queries, and the gaps before them. */
static void place_record(const mtan_forward *f, const schedule *s, mtan_tensor gap, int32_t b, int32_t place,
                         int32_t *order) {
    const mtan_batch *batch = f->tape->batch;
    const int32_t S = batch->samples, q0 = batch->query0[b], n = sort_queries(f, b, order);
    const mtan_real *q = mtan_data(f->tape, batch->query) + q0;
    int32_t *start = (int32_t *)bytes_of(f->tape, s->start), *at = (int32_t *)bytes_of(f->tape, s->at);
    for (int32_t i = 0, step = -1; i < n; i++) {
        const double since = i == 0 ? 0 : (double)q[order[i]] - (double)q[order[i - 1]];
        step += i == 0 || since > 0;
        for (int32_t k = 0; k < S; k++) {
            const int32_t row = s->first[step] + place * S + k;
            at[q0 * S + k * n + order[i]] = row;
            if (i == 0) start[row] = b * S + k;
            if (i == 0 || since > 0) *mtan_data(f->tape, mtan_rows(gap, row, 1)) = (mtan_real)since;
        }
    }
}

/* The schedule, and its gaps (rows, 1). */
static schedule schedule_of(const mtan_forward *f, mtan_tensor gap) {
    mtan_tape *tape = f->tape;
    const mtan_batch *batch = tape->batch;
    const int32_t most = most_queries(tape);
    int32_t *order = mtan_new_ints(tape, (size_t)most);
    query_count *count = (query_count *)bytes_of(tape, new_bytes(tape, batch->records, sizeof *count));
    schedule s;
    s.steps = most;
    s.first_at = new_bytes(tape, most + 1, sizeof(int32_t));
    s.start = new_bytes(tape, f->noise.rows, sizeof(int32_t));
    s.at = new_bytes(tape, count_product(tape, batch->queries, batch->samples), sizeof(int32_t));
    s.first = (int32_t *)bytes_of(tape, s.first_at);
    if (!op_runs(tape)) return s;
    order_records(f, &s, count, order);
    for (int32_t i = 0; i < batch->records; i++) place_record(f, &s, gap, count[i].record, i, order);
    return s;
}

/* ---- a GRU fed with its own output: x_i = W2 tanh(W1 h_i + b1) + b2, h_{i+1} = GRU([x_i, gap], h_i) ---- */

enum { IH, HH, OUT1, OUT2, PRODUCTS };

typedef struct feedback {
    int32_t steps;
    mtan_tensor first; /* int32_t (steps + 1) */
    mtan_tensor w[PRODUCTS], b[PRODUCTS],
        packed[PRODUCTS];                   /* of the GRU's two products and the two layers of the output */
    mtan_tensor h, hidden, x;               /* (rows, Z), (rows, U), (rows, D) */
    mtan_tensor fed, before, gates, hn, gh; /* [x, gap] and the previous state of each row; see op_gru_step */
} feedback;

static feedback feedback_new(const mtan_forward *f) {
    const roles *r = f->roles;
    const int32_t weight[PRODUCTS] = {r->decoder, r->decoder + 1, r->out, r->out + 2};
    const int32_t bias[PRODUCTS] = {r->decoder + 2, r->decoder + 3, r->out + 1, r->out + 3};
    mtan_tape *tape = f->tape;
    const int32_t rows = count_product(tape, tape->batch->queries, tape->batch->samples), D = f->config->channels,
                  Z = f->config->latent;
    feedback d;
    memset(&d, 0, sizeof d);
    for (int32_t i = 0; i < PRODUCTS; i++) {
        d.w[i] = mtan_forward_param(f, weight[i]);
        d.b[i] = mtan_forward_param(f, bias[i]);
        d.packed[i] = packed_weight(f, d.w[i]);
    }
    d.h = mtan_new(tape, rows, Z);
    d.hidden = mtan_new(tape, rows, d.w[OUT1].rows);
    d.x = mtan_new(tape, rows, D);
    d.fed = mtan_new_constant(tape, rows, D + 1);
    d.before = mtan_new_constant(tape, rows, Z);
    d.gates = mtan_new_constant(tape, rows, 3 * Z);
    d.hn = mtan_new_constant(tape, tape->recording ? rows : 0, Z);
    d.gh = mtan_new_constant(tape, f->noise.rows, 3 * Z);
    return d;
}

/* y = x w^T + b of product i, for the rows of y. */
static void product(const mtan_tape *tape, const feedback *d, int32_t i, mtan_tensor y, mtan_tensor x) {
    tape->backend->copy(mtan_data(tape, y), (size_t)y.stride, mtan_data(tape, d->b[i]), 0, y.rows, y.cols);
    tape->backend->product_packed(mtan_data(tape, y), (size_t)y.stride, mtan_data(tape, x), (size_t)x.stride,
                                  mtan_data(tape, d->packed[i]), y.rows, y.cols, x.cols, 1, 0);
}

static void copy_rows(const mtan_tape *tape, mtan_tensor y, mtan_tensor x) {
    tape->backend->copy(mtan_data(tape, y), (size_t)y.stride, mtan_data(tape, x), (size_t)x.stride, y.rows, y.cols);
}

/* Computes the state of rows [first, first + rows) from the rows [from, from + rows) of the step before. */
static void next_state(const mtan_tape *tape, const feedback *d, int32_t first, int32_t from, int32_t rows) {
    const mtan_tensor fed = mtan_rows(d->fed, first, rows), before = mtan_rows(d->before, first, rows);
    const mtan_tensor gates = mtan_rows(d->gates, first, rows), gh = mtan_rows(d->gh, 0, rows);
    copy_rows(tape, mtan_columns(fed, 0, d->x.cols), mtan_rows(d->x, from, rows));
    copy_rows(tape, before, mtan_rows(d->h, from, rows));
    product(tape, d, IH, gates, fed);
    product(tape, d, HH, gh, before);
    tape->backend->gates_forward(mtan_data(tape, mtan_rows(d->h, first, rows)), (size_t)d->h.stride,
                                 mtan_data(tape, gates), (size_t)gates.stride,
                                 tape->recording ? mtan_data(tape, mtan_rows(d->hn, first, rows)) : NULL,
                                 mtan_data(tape, gh), mtan_data(tape, before), (size_t)before.stride, rows, d->h.cols);
}

static void op_feedback(mtan_tape *tape, const feedback *made, const schedule *s) {
    const mtan_tensor self = new_bytes(tape, 1, sizeof *made);
    mtan_node *node = mtan_record_op(tape, OP_FEEDBACK);
    feedback *d = (feedback *)bytes_of(tape, self);
    if (node) node->t[0] = self;
    if (!op_runs(tape)) return;
    *d = *made;
    d->steps = s->steps;
    d->first = s->first_at;
    for (int32_t i = 0; i < s->steps; i++) {
        const int32_t first = s->first[i], rows = s->first[i + 1] - first;
        const mtan_tensor hidden = mtan_rows(d->hidden, first, rows);
        mtan_real *t = mtan_data(tape, hidden);
        if (i > 0) next_state(tape, d, first, s->first[i - 1], rows);
        product(tape, d, OUT1, hidden, mtan_rows(d->h, first, rows));
        tape->backend->map(MTAN_TANH, t, t, (size_t)rows * (size_t)hidden.cols);
        product(tape, d, OUT2, mtan_rows(d->x, first, rows), hidden);
    }
}

/* dx += dy w[, first columns of x] */
static void product_back(const mtan_tape *tape, mtan_real *dx, int32_t cols, const mtan_real *dy, size_t ldy,
                         mtan_tensor w, int32_t rows) {
    tape->backend->product_nn(dx, (size_t)cols, dy, ldy, mtan_data(tape, w), (size_t)w.stride, rows, cols, w.rows, 1);
}

/* From a step's outputs to its states. */
static void output_back(const mtan_tape *tape, const feedback *d, int32_t first, int32_t rows) {
    const mtan_tensor x = mtan_rows(d->x, first, rows), hidden = mtan_rows(d->hidden, first, rows);
    mtan_real *dhidden = mtan_grad(tape, hidden);
    product_back(tape, dhidden, hidden.cols, mtan_grad(tape, x), (size_t)x.cols, d->w[OUT2], rows);
    tape->backend->tanh_backward(dhidden, mtan_data(tape, hidden), (size_t)rows * (size_t)hidden.cols);
    product_back(tape, mtan_grad(tape, mtan_rows(d->h, first, rows)), d->h.cols, dhidden, (size_t)hidden.cols,
                 d->w[OUT1], rows);
}

/* From a step's states to states and outputs of the step before. The kernel turns gates into their gradients, and
 * leaves that of the recurrent part of the third gate in hn. */
static void state_back(const mtan_tape *tape, const feedback *d, int32_t first, int32_t from, int32_t rows) {
    const int32_t Z = d->h.cols;
    const mtan_tensor w = d->w[HH];
    mtan_real *dh = mtan_grad(tape, mtan_rows(d->h, first, rows)), *to = mtan_grad(tape, mtan_rows(d->h, from, rows));
    mtan_real *g = mtan_data(tape, mtan_rows(d->gates, first, rows)),
              *hn = mtan_data(tape, mtan_rows(d->hn, first, rows));
    tape->backend->gates_backward(dh, g, (size_t)(3 * Z), hn, mtan_data(tape, mtan_rows(d->before, first, rows)),
                                  (size_t)Z, rows, Z);
    tape->backend->add(to, (size_t)Z, dh, (size_t)Z, rows, Z);
    product_back(tape, to, Z, g, (size_t)(3 * Z), mtan_rows(w, 0, 2 * Z), rows);
    product_back(tape, to, Z, hn, (size_t)Z, mtan_rows(w, 2 * Z, Z), rows);
    product_back(tape, mtan_grad(tape, mtan_rows(d->x, from, rows)), d->x.cols, g, (size_t)(3 * Z), d->w[IH], rows);
}

/* dw += dy^T x, db += the sum of dy, over rows [first, end) */
static void weight_back(const mtan_tape *tape, mtan_tensor w, mtan_tensor b, const mtan_real *dy, size_t ldy,
                        mtan_tensor x) {
    tape->backend->product_tn(mtan_grad(tape, w), (size_t)w.stride, dy, ldy, mtan_data(tape, x), (size_t)x.stride,
                              w.rows, w.cols, x.rows, 1);
    tape->backend->add(mtan_grad(tape, b), 0, dy, ldy, x.rows, w.rows);
}

/* All rows at once; rows of the first step have no step before. */
static void weights_back(const mtan_tape *tape, const feedback *d, int32_t begun, int32_t all) {
    const int32_t Z = d->h.cols, rows = all - begun;
    const mtan_tensor gates = mtan_rows(d->gates, begun, rows), before = mtan_rows(d->before, begun, rows);
    const mtan_real *g = mtan_data(tape, gates), *hn = mtan_data(tape, mtan_rows(d->hn, begun, rows));
    weight_back(tape, d->w[OUT1], d->b[OUT1], mtan_grad(tape, d->hidden), (size_t)d->hidden.cols,
                mtan_rows(d->h, 0, all));
    weight_back(tape, d->w[OUT2], d->b[OUT2], mtan_grad(tape, d->x), (size_t)d->x.cols, mtan_rows(d->hidden, 0, all));
    weight_back(tape, d->w[IH], d->b[IH], g, (size_t)(3 * Z), mtan_rows(d->fed, begun, rows));
    weight_back(tape, mtan_rows(d->w[HH], 0, 2 * Z), mtan_columns(d->b[HH], 0, 2 * Z), g, (size_t)(3 * Z), before);
    weight_back(tape, mtan_rows(d->w[HH], 2 * Z, Z), mtan_columns(d->b[HH], 2 * Z, Z), hn, (size_t)Z, before);
}

static void feedback_back(mtan_tape *tape, const mtan_node *n) {
    const feedback *d = (const feedback *)bytes_of(tape, n->t[0]);
    const int32_t *first = (const int32_t *)bytes_of(tape, d->first);
    if (d->steps == 0) return;
    for (int32_t i = d->steps - 1; i >= 0; i--) {
        output_back(tape, d, first[i], first[i + 1] - first[i]);
        if (i > 0) state_back(tape, d, first[i], first[i - 1], first[i + 1] - first[i]);
    }
    weights_back(tape, d, first[1], first[d->steps]);
}

/* ---- the model ---- */

static const char *const settings[] = {"faithful", "units", NULL};
static const double defaults[] = {0, 50};

static void params(const mtan_config *c, mtan_params *p, void *out) {
    roles *r = out;
    r->encoder = add_rnn_encoder(p, c);
    r->z0 = add_posterior(p, c, c->enc_hidden);
    r->decoder = add_gru(p, "dec.rnn", c->channels + 1, c->latent);
    r->out = add_net(p, "dec.out", c->latent, whole_setting(c, "units"), 1, c->channels);
    if (c->classify != MTAN_CLASSIFY_NONE) r->head = add_head(p, c, c->latent);
}

static void init(const mtan_config *c, const void *indices, mtan_real *weights, mtan_mt19937 *rng) {
    const roles *r = indices;
    start_net(c, weights, r->z0, 1, rng);
    start_net(c, weights, r->out, 1, rng);
    if (c->classify != MTAN_CLASSIFY_NONE) start_net(c, weights, r->head, c->head_hidden ? 2 : 0, rng);
}

/* States (Q S, Z) at the queries, or outputs (Q S, D). */
static mtan_tensor decode(const mtan_forward *f, mtan_tensor z, int32_t states) {
    mtan_tape *tape = f->tape;
    const feedback d = feedback_new(f);
    const schedule s = schedule_of(f, mtan_columns(d.fed, f->config->channels, 1));
    const int32_t begun = !op_runs(tape) ? z.rows : s.steps ? s.first[1] : 0;
    const mtan_tensor from = states ? d.h : d.x;
    const mtan_tensor y = mtan_new(tape, d.x.rows, from.cols);
    op_gather(tape, mtan_rows(d.h, 0, begun), z, s.start);
    op_feedback(tape, &d, &s);
    op_gather(tape, y, from, s.at);
    return y;
}

static void forward(const mtan_forward *f, mtan_outputs *out) {
    const mtan_config *c = f->config;
    const dense_rows rows = read_rows(f);
    const gap_kind gaps = is_faithful(c) ? TURNED_ROUND : SINCE_ROW_BEFORE;
    const roles *r = f->roles;
    const int32_t logits = f->wanted & MTAN_WANT_LOGITS;
    draw_latent(f, out, apply_rnn_encoder(f, &rows, r->encoder, gaps), r->z0);
    if (logits && c->classify == MTAN_CLASSIFY_RECORD) out->logits = apply_head(f, r->head, out->z);
    if (logits && per_time(c)) out->logits = apply_head(f, r->head, decode(f, out->z, 1));
    if (f->wanted & MTAN_WANT_PREDICTION) out->prediction = decode(f, out->z, 0);
}

static const mtan_backward backward[] = {LATENT_BACKWARD MTAN_BACKWARD(OP_FEEDBACK, feedback_back)};

extern const mtan_architecture baseline_rnn_vae;
const mtan_architecture baseline_rnn_vae = {
    .name = "rnn-vae",
    .settings = settings,
    .defaults = defaults,
    .roles = ROLES(roles),
    .traits = BASELINE_TRAITS,
    .check = check_latent,
    .params = params,
    .init = init,
    .forward = forward,
    .backward = backward,
};
