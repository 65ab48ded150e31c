/* See cells.h. */
#include "cells.h"
#include "ops.h"

/* The number of events of the longest record. */
static int32_t longest_record(const mtan_tape *tape) {
    const mtan_batch *batch = tape->batch;
    const int32_t D1 = batch->channels + 1, records = batch->records;
    int32_t most = 0;
    if (!op_runs(tape)) return records ? (batch->events + records - 1) / records : 0;
    for (int32_t b = 0; b < records; b++) {
        const int32_t n = batch->begin[b * D1 + D1 - 1] - batch->begin[b * D1];
        most = n > most ? n : most;
    }
    return most;
}

batch_cells cells_new(mtan_tape *tape, int32_t count, int32_t most) {
    const size_t records = (size_t)tape->batch->records, D = (size_t)tape->batch->channels;
    batch_cells c;
    c.begin = mtan_new_ints(tape, records * (D + 1));
    c.row = mtan_new_ints(tape, (size_t)count);
    c.time = mtan_data(tape, mtan_new_constant(tape, count, 1));
    c.value = mtan_data(tape, mtan_new_constant(tape, count, 1));
    c.count = count;
    c.most = most;
    return c;
}

/* Appends the cells of the events [from, to), which are one channel of one record, ascending in time; returns the new
 * number of cells. */
static int32_t add_channel(const mtan_batch *batch, const mtan_real *time, batch_cells *c, int32_t n, int32_t from,
                           int32_t to) {
    for (int32_t i = from; i < to; n++) {
        const int32_t start = i, row = batch->row[i];
        mtan_real sum = 0;
        for (; i < to && batch->row[i] == row; i++) sum += batch->value[i];
        c->row[n] = row;
        c->time[n] = time[row];
        c->value[n] = sum / (mtan_real)(i - start);
    }
    return n;
}

batch_cells cells_of(mtan_tape *tape) {
    const mtan_batch *batch = tape->batch;
    const int32_t D = batch->channels;
    batch_cells c = cells_new(tape, batch->events, longest_record(tape));
    int32_t n = 0;
    for (int32_t b = 0; op_runs(tape) && b < batch->records; b++) {
        const int32_t *events = batch->begin + (size_t)b * (size_t)(D + 1);
        int32_t *begin = c.begin + (size_t)b * (size_t)(D + 1);
        begin[0] = n;
        for (int32_t d = 0; d < D; d++)
            begin[d + 1] = n =
                add_channel(batch, mtan_data(tape, batch->time) + batch->time0[b], &c, n, events[d], events[d + 1]);
    }
    if (op_runs(tape)) c.count = n;
    return c;
}
