/* Walks over the rows of one record in either order of time, without the rows to skip. With a class per time, the
 * queries of a record are among its rows; an encoder that must see only the observations skips rows without a cell. */
#ifndef MTAN_TOOLS_BASELINES_WALK_H
#define MTAN_TOOLS_BASELINES_WALK_H

#include "sequence.h"

/* (R, 1): 1 where a row is skipped. If `cells` is set, that is every row without a cell, otherwise none. */
mtan_tensor passed_rows(const mtan_forward *f, mtan_tensor mask, int32_t cells);

typedef struct row_walk {
    const mtan_batch *batch;
    const mtan_real *time, *passed;
    int32_t b, reverse, k; /* the record's place, the direction, the step of the sequence */
} row_walk;
/* A walk that stands before the first row of the record at place b. */
row_walk walk_start(const mtan_forward *f, mtan_tensor time, mtan_tensor passed, int32_t b, int32_t reverse);
int32_t walk_next(row_walk *w); /* moves to the next row; 0 past the last */
int32_t walk_row(const row_walk *w);
double walk_time(const row_walk *w); /* ascending; in reverse, the time of the mirrored record */

#endif
