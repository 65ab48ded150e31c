/* See ops.h. */
#include "ops.h"

#include <stdio.h>
#include <string.h>

#include "../data/generators.h"

int op_runs(const mtan_tape *tape) {
    return tape->work && tape->status == MTAN_OK;
}

/* ---- elementwise ---- */

static void record(mtan_tape *tape, uint32_t op, const mtan_tensor t[2]) {
    mtan_node *node = t[0].grad == MTAN_NO_GRAD ? NULL : mtan_record_op(tape, op);
    if (node) memcpy(node->t, t, 2 * sizeof *t);
}

/* Row i of the result and of its operands: data and gradients. A missing gradient is null. */
typedef struct line {
    mtan_real *x[2], *d[2];
} line;

static line line_at(const mtan_tape *tape, const mtan_tensor *t, int32_t i) {
    line l;
    for (int k = 0; k < 2; k++) {
        const size_t at = (size_t)i * (size_t)t[k].stride;
        l.x[k] = mtan_data(tape, t[k]) + at;
        l.d[k] = t[k].grad == MTAN_NO_GRAD ? NULL : mtan_grad(tape, t[k]) + at;
    }
    return l;
}

void op_decay(mtan_tape *tape, mtan_tensor y, mtan_tensor x) {
    const mtan_tensor t[2] = {y, x};
    record(tape, BASELINE_decay, t);
    for (int32_t i = 0; op_runs(tape) && i < y.rows; i++) {
        const line l = line_at(tape, t, i);
        for (int32_t j = 0; j < y.cols; j++) l.x[0][j] = l.x[1][j] <= 0 ? 0 : -l.x[1][j];
        tape->backend->map(MTAN_EXP, l.x[0], l.x[0], (size_t)y.cols);
    }
}

void baseline_decay_back(mtan_tape *tape, const mtan_node *n) {
    for (int32_t i = 0; i < n->t[0].rows; i++) {
        const line l = line_at(tape, n->t, i);
        for (int32_t j = 0; l.d[1] && j < n->t[0].cols; j++)
            if (l.x[1][j] > 0) l.d[1][j] -= l.d[0][j] * l.x[0][j];
    }
}

/* An empty record with initial weights has standard deviations of 0, whose logarithm is not finite. */
#define LEAST_STD ((mtan_real)1e-6)

void op_logvar(mtan_tape *tape, mtan_tensor y, mtan_tensor x) {
    const mtan_tensor t[2] = {y, x};
    record(tape, BASELINE_logvar, t);
    for (int32_t i = 0; op_runs(tape) && i < y.rows; i++) {
        const line l = line_at(tape, t, i);
        for (int32_t j = 0; j < y.cols; j++) {
            const mtan_real std = l.x[1][j] < 0 ? -l.x[1][j] : l.x[1][j];
            l.x[0][j] = std < LEAST_STD ? LEAST_STD : std;
        }
        tape->backend->map(MTAN_LOG, l.x[0], l.x[0], (size_t)y.cols);
        for (int32_t j = 0; j < y.cols; j++) l.x[0][j] *= 2;
    }
}

void baseline_logvar_back(mtan_tape *tape, const mtan_node *n) {
    for (int32_t i = 0; i < n->t[0].rows; i++) {
        const line l = line_at(tape, n->t, i);
        for (int32_t j = 0; l.d[1] && j < n->t[0].cols; j++)
            if (l.x[1][j] > LEAST_STD || l.x[1][j] < -LEAST_STD) l.d[1][j] += 2 * l.d[0][j] / l.x[1][j];
    }
}

/* ---- the sequence ---- */

void op_first(mtan_tape *tape, mtan_tensor y, mtan_tensor x) {
    const mtan_batch *batch = tape->batch;
    const mtan_tensor t[2] = {y, x};
    const int32_t S = batch->records ? y.rows / batch->records : 0;
    if (x.grad != MTAN_NO_GRAD) record(tape, BASELINE_first, t);
    for (int32_t b = 0; op_runs(tape) && b < batch->records; b++) {
        mtan_real *to = mtan_data(tape, mtan_rows(y, b * S, S));
        if (batch->length[b] == 0) memset(to, 0, (size_t)S * (size_t)y.cols * sizeof *to);
        else
            tape->backend->copy(to, (size_t)y.stride, mtan_data(tape, mtan_rows(x, b * S, S)), (size_t)x.stride, S,
                                y.cols);
    }
}

void baseline_first_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_batch *batch = tape->batch;
    const mtan_tensor y = n->t[0], x = n->t[1];
    const int32_t S = y.rows / batch->records;
    for (int32_t b = 0; b < batch->records && batch->length[b] > 0; b++) /* longest first */
        tape->backend->add(mtan_grad(tape, mtan_rows(x, b * S, S)), (size_t)x.stride,
                           mtan_grad(tape, mtan_rows(y, b * S, S)), (size_t)y.stride, S, y.cols);
}

/* ---- layers ---- */

static int32_t add_named(mtan_params *p, const char *name, const char *tensor, int32_t rows, int32_t cols, int32_t rank,
                         int32_t fan) {
    char text[2 * MTAN_NAME_SIZE];
    snprintf(text, sizeof text, "%s.%s", name, tensor);
    return mtan_params_add(p, text, rows, cols, rank, fan);
}

int32_t add_linear(mtan_params *p, const char *name, int32_t out, int32_t in) {
    const int32_t index = add_named(p, name, "weight", out, in, 2, in);
    add_named(p, name, "bias", out, 1, 1, in);
    return index;
}

int32_t add_gru(mtan_params *p, const char *name, int32_t in, int32_t hidden) {
    const int32_t index = add_named(p, name, "weight_ih_l0", 3 * hidden, in, 2, hidden);
    add_named(p, name, "weight_hh_l0", 3 * hidden, hidden, 2, hidden);
    add_named(p, name, "bias_ih_l0", 3 * hidden, 1, 1, hidden);
    add_named(p, name, "bias_hh_l0", 3 * hidden, 1, 1, hidden);
    return index;
}

int32_t add_net(mtan_params *p, const char *name, int32_t in, int32_t units, int32_t layers, int32_t out) {
    int32_t first = 0;
    for (int32_t i = 0; i <= layers; i++) {
        char text[MTAN_NAME_SIZE];
        snprintf(text, sizeof text, "%s.%d", name, (int)(2 * i));
        const int32_t index = add_linear(p, text, i == layers ? out : units, i == 0 ? in : units);
        first = i == 0 ? index : first;
    }
    return first;
}

mtan_tensor apply_linear(const mtan_forward *f, int32_t index, mtan_tensor x) {
    const mtan_tensor w = mtan_forward_param(f, index), b = mtan_forward_param(f, index + 1);
    const mtan_tensor y = mtan_new(f->tape, x.rows, w.rows);
    mtan_op_linear(f->tape, y, x, w, &b);
    return y;
}

mtan_tensor apply_net(const mtan_forward *f, int32_t index, int32_t layers, mtan_tensor x, int32_t relu) {
    for (int32_t i = 0; i <= layers; i++) {
        x = apply_linear(f, index + 2 * i, x);
        if (i == layers) break;
        if (relu) mtan_op_relu(f->tape, x);
        else mtan_op_tanh(f->tape, x);
    }
    return x;
}

mtan_tensor packed_weight(const mtan_forward *f, mtan_tensor w) {
    const mtan_backend *k = f->tape->backend;
    const mtan_tensor packed = mtan_new_constant(f->tape, 1, (int32_t)k->pack_count(w.rows, w.cols));
    if (op_runs(f->tape))
        k->pack(mtan_data(f->tape, packed), mtan_data(f->tape, w), (size_t)w.stride, 1, w.rows, w.cols);
    return packed;
}

mtan_tensor apply_gru(const mtan_forward *f, int32_t index, mtan_tensor x, int32_t hidden, int32_t reverse) {
    const mtan_tensor w_hh = mtan_forward_param(f, index + 1), b = mtan_forward_param(f, index + 2);
    const mtan_tensor packed = packed_weight(f, w_hh);
    const mtan_tensor gx = mtan_new_gates(f->tape, x.rows, 3 * hidden), h = mtan_new(f->tape, x.rows, hidden);
    mtan_op_linear(f->tape, gx, x, mtan_forward_param(f, index), &b);
    mtan_op_gru(f->tape, h, gx, w_hh, mtan_forward_param(f, index + 3), &packed, 1, reverse);
    return h;
}

int32_t add_head(mtan_params *p, const mtan_config *c, int32_t in) {
    return add_net(p, "classifier", in, c->head_hidden, c->head_hidden ? 2 : 0, mtan_config_outputs(c));
}

mtan_tensor apply_head(const mtan_forward *f, int32_t index, mtan_tensor x) {
    return apply_net(f, index, f->config->head_hidden ? 2 : 0, x, 1);
}

/* ---- initial values of parameters ---- */

void start_constant(const mtan_config *c, mtan_real *weights, int32_t index, double value) {
    mtan_param p;
    if (mtan_param_at(c, index, &p) != MTAN_OK) return;
    for (size_t i = 0, n = (size_t)p.rows * (size_t)p.cols; i < n; i++) weights[p.offset + i] = (mtan_real)value;
}

void start_normal(const mtan_config *c, mtan_real *weights, int32_t index, double std, mtan_mt19937 *rng) {
    mtan_param p;
    float drawn[64];
    if (mtan_param_at(c, index, &p) != MTAN_OK) return;
    for (size_t i = 0, n = (size_t)p.rows * (size_t)p.cols; i < n; i++) {
        if (i % 64 == 0) torch_normal(rng, drawn, 64);
        weights[p.offset + i] = (mtan_real)(std * (double)drawn[i % 64]);
    }
}

void start_net(const mtan_config *c, mtan_real *weights, int32_t index, int32_t layers, mtan_mt19937 *rng) {
    for (int32_t i = 0; i <= layers; i++) {
        start_normal(c, weights, index + 2 * i, 0.1, rng);
        start_constant(c, weights, index + 2 * i + 1, 0);
    }
}
