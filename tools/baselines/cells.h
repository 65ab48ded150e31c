/* The cells of a batch: the events of one channel at one time are one cell, with the mean of their values. For the baselines that
 * read what was observed and nothing else. */
#ifndef MTAN_TOOLS_BASELINES_CELLS_H
#define MTAN_TOOLS_BASELINES_CELLS_H

#define MTAN_INTERNALS
#include "../../mtan.h"

typedef struct batch_cells {
    int32_t *begin;   /* (B, D + 1) cells of a channel, as positions in the arrays below, ascending in time */
    int32_t *row;     /* time row of a cell, from the record's first */
    mtan_real *time;  /* its time */
    mtan_real *value; /* its value */
    int32_t count;    /* of all records; while sizes are counted the most that there can be */
    int32_t most;     /* of one record, likewise */
} batch_cells;

/* Room for cells, of which none is filled. */
batch_cells cells_new(mtan_tape *tape, int32_t count, int32_t most);
/* Those of the tape's batch. */
batch_cells cells_of(mtan_tape *tape);

#endif
