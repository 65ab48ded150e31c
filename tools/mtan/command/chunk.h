/* Runs records through a model, a few at a time, and writes their rows: the common part of `mtan predict` and `mtan
 * interpolate`, wherever the records came from. Memory holds a few dozen records at most.
 *
 * A record that is too large for a predictor's workspace goes through a stream (mtan.h), whose memory does not grow. If
 * the model has no streams, the record is reported and left out. */
#ifndef MTAN_TOOLS_CHUNK_H
#define MTAN_TOOLS_CHUNK_H

#include "../../data/prep.h"
#include "../run/runner.h"
#include "far.h"
#include "rows.h"

/* Times to interpolate at, in the data's unit: first, first + step, ... They count from zero, or from a record's last
 * observation. */
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
    far_tally far;   /* observations far outside of the training data */
    /* private */
    dataset records; /* waiting for their turn, in model units */
    int part;        /* of the split, which the waiting records belong to */
    runner run;
    mtan_bounds bounds; /* of the runner; {0}: not started */
} chunk;

/* Adds a raw record of a part of the split to the chunk, and runs the chunk when it is full. Returns 1, or 0 with a
 * message printed. */
int chunk_take(chunk *c, const dataset *from, size_t record, int part);
/* Runs the records that wait. */
int chunk_run(chunk *c);
void chunk_free(chunk *c);

#endif
