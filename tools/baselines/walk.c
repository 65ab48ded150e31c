/* See walk.h. */
#include "walk.h"

mtan_tensor passed_rows(const mtan_forward *f, mtan_tensor mask, int32_t cells) {
    const mtan_tensor passed = mtan_new_constant(f->tape, mask.rows, 1);
    for (int32_t i = 0; op_runs(f->tape) && i < mask.rows; i++) {
        const mtan_real *m = mtan_data(f->tape, mtan_rows(mask, i, 1));
        int32_t any = !cells;
        for (int32_t d = 0; d < mask.cols; d++) any = any || m[d] > 0;
        mtan_data(f->tape, passed)[i] = any ? 0 : 1;
    }
    return passed;
}

row_walk walk_start(const mtan_forward *f, mtan_tensor time, mtan_tensor passed, int32_t b, int32_t reverse) {
    row_walk w;
    w.batch = f->tape->batch;
    w.time = mtan_data(f->tape, time), w.passed = mtan_data(f->tape, passed);
    w.b = b, w.reverse = reverse;
    w.k = reverse ? w.batch->length[b] : -1;
    return w;
}

int32_t walk_row(const row_walk *w) {
    return w->batch->first[w->k] + w->b;
}

int32_t walk_next(row_walk *w) {
    const int32_t length = w->batch->length[w->b];
    do w->k += w->reverse ? -1 : 1;
    while (w->k >= 0 && w->k < length && w->passed[walk_row(w)] > 0);
    return w->k >= 0 && w->k < length;
}

double walk_time(const row_walk *w) {
    const double t = (double)w->time[walk_row(w)];
    return w->reverse ? -t : t;
}
