/* Records through a model, some at a time, and their rows out: what `mtan predict` and `mtan interpolate` do with a record
 * wherever it came from. Memory is that of a few dozen records.
 *
 * A record that is too large for a predictor's workspace goes through a stream (mtan.h), whose memory does not grow; where the
 * model has no streams it is reported and left out. */
#ifndef MTAN_TOOLS_CHUNK_H
#define MTAN_TOOLS_CHUNK_H

#include "../../data/prep.h"
#include "../model/runner.h"
#include "far.h"
#include "rows.h"

/* Times to interpolate at, in the data's unit: first, first + step, ...; counted from zero, or from a record's last observation. */
typedef struct grid {
    double first, step;
    size_t n;
    int after_last;
} grid;

typedef struct chunk {
    /* set by the caller */
    const mtan_model *model;
    const prep *prep;
    int32_t threads;
    uint64_t seed;
    grid grid;       /* n = 0: classify */
    row_printer out; /* its config is the model's */
    int failed;      /* set when a record was left out */
    far_tally far;   /* what lay far outside of training */
    /* private */
    dataset records; /* those that wait for their turn, in model units */
    int part;        /* of the split: the records' */
    runner run;
    mtan_bounds bounds; /* of the runner; {0}: not started */
} chunk;

/* A raw record of a part of the split joins the chunk, which is run when it is full. 1, or 0 with a message printed. */
int chunk_take(chunk *c, const dataset *from, size_t record, int part);
/* Runs what waits. */
int chunk_run(chunk *c);
void chunk_free(chunk *c);

#endif
