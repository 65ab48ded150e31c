/* See sequence.h. */
#include "sequence.h"

#include <stdio.h>

dense_rows read_rows(const mtan_forward *f) {
    const int32_t R = f->tape->batch->rows, D = f->config->channels;
    dense_rows rows;
    rows.x = mtan_new_constant(f->tape, R, D);
    rows.mask = mtan_new_constant(f->tape, R, D);
    rows.time = mtan_new_constant(f->tape, R, 1);
    mtan_forward_rows(f, rows.x, rows.mask, rows.time);
    return rows;
}

static int32_t rows_at(const mtan_batch *batch, int32_t k) {
    return batch->first[k + 1] - batch->first[k];
}

run_step run_at(const mtan_batch *batch, int32_t i, int32_t reverse) {
    run_step s;
    s.k = reverse ? batch->steps - 1 - i : i;
    s.row = (size_t)batch->first[s.k];
    s.rows = rows_at(batch, s.k);
    s.before = i == 0 ? 0 : (size_t)batch->first[reverse ? s.k + 1 : s.k - 1];
    s.known = i == 0 ? 0 : rows_at(batch, reverse ? s.k + 1 : s.k - 1);
    s.known = s.known < s.rows ? s.known : s.rows;
    return s;
}

mtan_tensor gaps_before(const mtan_forward *f, mtan_tensor time, int32_t reverse) {
    const mtan_batch *batch = f->tape->batch;
    const mtan_tensor gap = mtan_new_constant(f->tape, batch->rows, 1);
    for (int32_t i = 0; op_runs(f->tape) && i < batch->steps; i++) {
        const run_step s = run_at(batch, i, reverse);
        const mtan_real *t = mtan_data(f->tape, time) + s.row, *before = mtan_data(f->tape, time) + s.before;
        mtan_real *to = mtan_data(f->tape, gap) + s.row;
        for (int32_t b = 0; b < s.rows; b++) to[b] = b >= s.known ? 0 : reverse ? before[b] - t[b] : t[b] - before[b];
    }
    return gap;
}

/* The row after is the row before in the other direction. */
mtan_tensor gaps_after(const mtan_forward *f, mtan_tensor time, int32_t reverse) {
    return gaps_before(f, time, !reverse);
}

int32_t is_switch(double setting) {
    return (setting >= 0 && setting <= 0) || (setting >= 1 && setting <= 1);
}

mtan_status check_sequence(const mtan_config *c, double bidirectional) {
    if (c->kind != MTAN_ENC || c->classify == MTAN_CLASSIFY_NONE || !is_switch(bidirectional)) return MTAN_ERR_CONFIG;
    return bidirectional > 0 && c->classify != MTAN_CLASSIFY_TIME ? MTAN_ERR_CONFIG : MTAN_OK;
}

mtan_tensor classify_states(const mtan_forward *f, mtan_tensor states, int32_t index) {
    const mtan_batch *batch = f->tape->batch;
    const int32_t per_time = f->config->classify == MTAN_CLASSIFY_TIME;
    const mtan_tensor read = mtan_new(f->tape, per_time ? batch->queries : batch->records, states.cols);
    if (per_time) mtan_op_at_queries(f->tape, read, states);
    else mtan_op_last(f->tape, read, states);
    return apply_head(f, index, read);
}

mtan_tensor apply_input(const mtan_forward *f, int32_t weight, int32_t bias, mtan_tensor x, mtan_tensor rest) {
    const mtan_tensor w = mtan_forward_param(f, weight), b = mtan_forward_param(f, bias);
    const mtan_tensor gx = mtan_new_gates(f->tape, x.rows, w.rows);
    mtan_op_linear(f->tape, gx, x, mtan_columns(w, 0, x.cols), &b);
    mtan_op_linear_add(f->tape, gx, rest, mtan_columns(w, x.cols, rest.cols));
    return gx;
}

const char *name_in_direction(char *text, const char *name, int32_t reverse) {
    snprintf(text, MTAN_NAME_SIZE, "rec.%s%s", reverse ? "reverse." : "", name);
    return text;
}
