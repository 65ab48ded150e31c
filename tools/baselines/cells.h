/* The cells of a batch: the events of one channel at one time are one cell, with the mean of their values. For
 * baselines that read only what was observed. */
#ifndef MTAN_TOOLS_BASELINES_CELLS_H
#define MTAN_TOOLS_BASELINES_CELLS_H

#define MTAN_INTERNALS
#include "../../mtan.h"

typedef struct batch_cells {
    int32_t *begin;   /* (B, D + 1) first cell of each channel, as an index in the arrays below; cells ascend in time */
    int32_t *row;     /* time row of a cell, from the record's first */
    mtan_real *time;  /* its time */
    mtan_real *value; /* its value */
    int32_t count;    /* over all records; an upper bound while sizes are counted */
    int32_t most;     /* in one record, likewise */
} batch_cells;

/* Room for cells, without any content. */
batch_cells cells_new(mtan_tape *tape, int32_t count, int32_t most);
/* The cells of the tape's batch. */
batch_cells cells_of(mtan_tape *tape);

#endif
