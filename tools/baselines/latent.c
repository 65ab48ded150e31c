/* See latent.h. */
#include "latent.h"

#include <string.h>

/* ---- gather ---- */

void op_gather(mtan_tape *tape, mtan_tensor y, mtan_tensor x, mtan_tensor index) {
    mtan_node *node = mtan_record_op(tape, BASELINE_GATHER);
    const int32_t *from = (const int32_t *)bytes_of(tape, index);
    if (node) node->t[0] = y, node->t[1] = x, node->t[2] = index;
    for (int32_t i = 0; op_runs(tape) && i < y.rows; i++)
        memcpy(mtan_data(tape, mtan_rows(y, i, 1)), mtan_data(tape, mtan_rows(x, from[i], 1)),
               (size_t)y.cols * sizeof(mtan_real));
}

void latent_gather_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor y = n->t[0], x = n->t[1];
    const int32_t *from = (const int32_t *)bytes_of(tape, n->t[2]);
    for (int32_t i = 0; i < y.rows; i++)
        tape->backend->add(mtan_grad(tape, mtan_rows(x, from[i], 1)), 0, mtan_grad(tape, mtan_rows(y, i, 1)), 0, 1,
                           y.cols);
}

/* ---- settings ---- */

int32_t is_faithful(const mtan_config *c) {
    return setting_of(c, "faithful") > 0;
}

int32_t per_time(const mtan_config *c) {
    return c->classify == MTAN_CLASSIFY_TIME;
}

mtan_status check_latent(const mtan_config *c) {
    const int32_t ok = c->kind == MTAN_FULL && is_switch(setting_of(c, "faithful")) && c->mlp_hidden > 0 &&
                       is_whole(setting_of(c, "units"), 1, 1e6);
    return ok ? MTAN_OK : MTAN_ERR_CONFIG;
}

/* ---- encoder ---- */

int32_t add_posterior(mtan_params *p, const mtan_config *c, int32_t in) {
    return add_net(p, "rec.z0", in, c->mlp_hidden, 1, 2 * c->latent);
}

int32_t add_rnn_encoder(mtan_params *p, const mtan_config *c) {
    return add_gru(p, "rec.rnn", 2 * c->channels + 1, c->enc_hidden);
}

/* Gaps of one record. With TURNED_ROUND, row i gets the gap between its mirror image and the next row in reverse
 * order. */
static void fill_gaps(const mtan_forward *f, mtan_tensor gap, mtan_tensor time, mtan_tensor passed, int32_t b,
                      gap_kind kind) {
    row_walk w = walk_start(f, time, passed, b, kind != TO_ROW_AFTER), to = walk_start(f, time, passed, b, 0);
    double before = 0;
    for (int32_t first = 1; walk_next(&w); first = 0) {
        const mtan_real since = (mtan_real)(first ? 0 : walk_time(&w) - before);
        before = walk_time(&w);
        if (kind != TURNED_ROUND) mtan_data(f->tape, gap)[walk_row(&w)] = since;
        else if (!first && walk_next(&to)) mtan_data(f->tape, gap)[walk_row(&to)] = since;
    }
}

static mtan_tensor gaps_of(const mtan_forward *f, const dense_rows *rows, mtan_tensor passed, gap_kind kind) {
    const mtan_tensor gap = mtan_new_constant(f->tape, rows->time.rows, 1);
    if (!op_runs(f->tape)) return gap;
    f->tape->backend->fill(mtan_data(f->tape, gap), (size_t)gap.rows, 0);
    for (int32_t b = 0; b < f->tape->batch->records; b++) fill_gaps(f, gap, rows->time, passed, b, kind);
    return gap;
}

/* An update gate of exactly 1 keeps the state, and then nothing in the row has a gradient. */
static void pass_over(const mtan_forward *f, mtan_tensor gates, mtan_tensor passed) {
    const int32_t N = f->config->enc_hidden;
    for (int32_t i = 0; op_runs(f->tape) && i < gates.rows; i++)
        if (mtan_data(f->tape, passed)[i] > 0)
            f->tape->backend->fill(mtan_data(f->tape, mtan_columns(mtan_rows(gates, i, 1), N, N)), (size_t)N, 1000);
}

mtan_tensor apply_rnn_encoder(const mtan_forward *f, const dense_rows *rows, int32_t index, gap_kind gaps) {
    mtan_tape *tape = f->tape;
    const int32_t R = rows->x.rows, D = rows->x.cols, N = f->config->enc_hidden;
    const mtan_tensor passed = passed_rows(f, rows->mask, per_time(f->config));
    const mtan_tensor gap = gaps_of(f, rows, passed, gaps), rest = mtan_new_constant(tape, R, D + 1);
    const mtan_tensor w = mtan_forward_param(f, index + 1), packed = packed_weight(f, w);
    const mtan_tensor h = mtan_new(tape, R, N), last = mtan_new(tape, tape->batch->records, N);
    mtan_tensor gates;
    mtan_op_copy(tape, mtan_columns(rest, 0, D), rows->mask);
    mtan_op_copy(tape, mtan_columns(rest, D, 1), gap);
    gates = apply_input(f, index, index + 2, rows->x, rest);
    pass_over(f, gates, passed);
    mtan_op_gru(tape, h, gates, w, mtan_forward_param(f, index + 3), &packed, 1, gaps != TURNED_ROUND);
    if (gaps == TURNED_ROUND) mtan_op_last(tape, last, h);
    else op_first(tape, last, h);
    return last;
}

/* ---- the latent state ---- */

void draw_latent(const mtan_forward *f, mtan_outputs *out, mtan_tensor states, int32_t index) {
    mtan_tape *tape = f->tape;
    const int32_t Z = f->config->latent;
    const mtan_tensor found = apply_net(f, index, 1, states, 0); /* the mean, and a number whose absolute value is
                                                                  * std */
    out->posterior = mtan_new(tape, states.rows, 2 * Z);
    mtan_op_copy(tape, mtan_columns(out->posterior, 0, Z), mtan_columns(found, 0, Z));
    op_logvar(tape, mtan_columns(out->posterior, Z, Z), mtan_columns(found, Z, Z));
    if (!(f->wanted & (MTAN_WANT_LOGITS | MTAN_WANT_PREDICTION))) return;
    out->z = mtan_new(tape, f->noise.rows, Z);
    mtan_op_sample(tape, out->z, out->posterior, f->noise);
}

/* ---- queries ---- */

int32_t most_queries(const mtan_tape *tape) {
    const mtan_batch *batch = tape->batch;
    int32_t most = 0;
    if (!op_runs(tape)) return batch->records ? batch->queries / batch->records : 0;
    for (int32_t b = 0; b < batch->records; b++) {
        const int32_t n = batch->query0[b + 1] - batch->query0[b];
        most = n > most ? n : most;
    }
    return most;
}

/* Insertion sort, because queries ascend already, except for an interpolation in another order. */
int32_t sort_queries(const mtan_forward *f, int32_t b, int32_t *order) {
    const mtan_batch *batch = f->tape->batch;
    const int32_t n = batch->query0[b + 1] - batch->query0[b];
    const mtan_real *q = mtan_data(f->tape, batch->query) + batch->query0[b];
    for (int32_t i = 0; i < n; i++) {
        int32_t at = i;
        for (; at > 0 && q[order[at - 1]] > q[i]; at--) order[at] = order[at - 1];
        order[at] = i;
    }
    return n;
}
