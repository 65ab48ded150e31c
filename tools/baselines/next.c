/* See next.h. */
#include "next.h"

enum { LAYERS = 1, UNITS = 100 }; /* latent_ode's */

int32_t add_next(mtan_params *p, const mtan_config *c) {
    return add_net(p, "dec", c->enc_hidden, UNITS, LAYERS, c->channels);
}

void start_next(const mtan_config *c, mtan_real *weights, int32_t index, mtan_mt19937 *rng) {
    start_net(c, weights, index, LAYERS, rng);
}

/* ---- y_b = sum over rows i after the first and channels d of share_bd m_id (p_{i-1,d} - x_id)^2 ---- */

enum { NEXT_Y, NEXT_P, NEXT_X, NEXT_MASK, NEXT_SHARE, NEXT_TENSORS };

/* One row of a record, and its prediction from the row before. */
typedef struct next_row {
    const mtan_real *p, *x, *mask, *share; /* (D) */
    int32_t before;
} next_row;

static next_row next_row_at(const mtan_tape *tape, const mtan_tensor *t, const run_step *s, int32_t b) {
    const int32_t row = (int32_t)s->row + b, before = (int32_t)s->before + b;
    const next_row r = {row_at(tape, t[NEXT_P], before), row_at(tape, t[NEXT_X], row), row_at(tape, t[NEXT_MASK], row),
                        row_at(tape, t[NEXT_SHARE], b), before};
    return r;
}

static void op_next(mtan_tape *tape, const mtan_tensor t[NEXT_TENSORS]) {
    const mtan_batch *batch = tape->batch;
    mtan_node *node = mtan_record_op(tape, BASELINE_next);
    mtan_real *y = mtan_data(tape, t[NEXT_Y]);
    for (int32_t i = 0; node && i < NEXT_TENSORS; i++) node->t[i] = t[i];
    if (!op_runs(tape)) return;
    tape->backend->fill(y, (size_t)t[NEXT_Y].rows, 0);
    for (int32_t i = 1; i < batch->steps; i++) {
        const run_step s = run_at(batch, i, 0);
        for (int32_t b = 0; b < s.rows; b++) {
            const next_row r = next_row_at(tape, t, &s, b);
            for (int32_t d = 0; d < t[NEXT_P].cols; d++)
                y[b] += r.share[d] * r.mask[d] * (r.p[d] - r.x[d]) * (r.p[d] - r.x[d]);
        }
    }
}

void baseline_next_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_real *dy = mtan_grad(tape, n->t[NEXT_Y]);
    for (int32_t i = 1; i < tape->batch->steps; i++) {
        const run_step s = run_at(tape->batch, i, 0);
        for (int32_t b = 0; b < s.rows; b++) {
            const next_row r = next_row_at(tape, n->t, &s, b);
            mtan_real *dp = grad_row(tape, n->t[NEXT_P], r.before);
            for (int32_t d = 0; d < n->t[NEXT_P].cols; d++)
                dp[d] += 2 * dy[b] * r.share[d] * r.mask[d] * (r.p[d] - r.x[d]);
        }
    }
}

/* ---- the loss ---- */

/* The weight of a cell in a record's channel; 0 for a channel without cells. */
static void fill_shares(const mtan_forward *f, mtan_tensor share, mtan_tensor mask) {
    const mtan_batch *batch = f->tape->batch;
    const int32_t D = share.cols;
    const double all = 2 * f->config->noise_std * f->config->noise_std * D;
    mtan_real *to = mtan_data(f->tape, share);
    f->tape->backend->fill(to, (size_t)share.rows * (size_t)D, 0);
    for (int32_t i = 0; i < batch->steps; i++) {
        const run_step s = run_at(batch, i, 0);
        const mtan_real *seen = mtan_data(f->tape, mask) + s.row * (size_t)D;
        for (int32_t k = 0; k < s.rows * D; k++) to[k] += seen[k];
    }
    for (int32_t k = 0; k < share.rows * D; k++) to[k] = to[k] > 0 ? (mtan_real)(1 / (all * (double)to[k])) : 0;
}

mtan_tensor next_loss(const mtan_forward *f, mtan_tensor states, const dense_rows *rows, int32_t index) {
    const int32_t B = f->tape->batch->records;
    const mtan_tensor y = mtan_new(f->tape, B, 1), share = mtan_new_constant(f->tape, B, f->config->channels);
    const mtan_tensor told = apply_net(f, index, LAYERS, states, 0);
    const mtan_tensor t[NEXT_TENSORS] = {y, told, rows->x, rows->mask, share};
    if (op_runs(f->tape)) fill_shares(f, share, rows->mask);
    op_next(f->tape, t);
    return y;
}
