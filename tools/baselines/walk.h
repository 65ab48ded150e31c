/* The rows of one record in either order of time, less those to be passed over. With a class per time the queries of a record are
 * among its rows; to an encoder that is to see the observations alone, a row without a cell is none. */
#ifndef MTAN_TOOLS_BASELINES_WALK_H
#define MTAN_TOOLS_BASELINES_WALK_H

#include "sequence.h"

/* (R, 1): 1 where a row is to be passed over, which is never unless `cells` is set, and then where it has no cell. */
mtan_tensor passed_rows(const mtan_forward *f, mtan_tensor mask, int32_t cells);

typedef struct row_walk {
    const mtan_batch *batch;
    const mtan_real *time, *passed;
    int32_t b, reverse, k; /* the record's place, the order, the step of the sequence */
} row_walk;
/* Before the first row of the record at place b. */
row_walk walk_start(const mtan_forward *f, mtan_tensor time, mtan_tensor passed, int32_t b, int32_t reverse);
int32_t walk_next(row_walk *w); /* on to the next row; 0 past the last */
int32_t walk_row(const row_walk *w);
double walk_time(const row_walk *w); /* that of the mirrored record in reverse: it ascends */

#endif
