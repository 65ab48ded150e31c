/* Observations far outside of what a model saw in training: a wrong unit, mostly. Counted by channel while records go through, and
 * told once at the end. */
#ifndef MTAN_TOOLS_FAR_H
#define MTAN_TOOLS_FAR_H

#include <stddef.h>

#include "../../../mtan.h"

typedef struct far_tally {
    size_t *values;  /* by channel: an stb_ds array, empty until there is one */
    double *example; /* beside it: the first */
    size_t times;
    double time; /* the first of them */
} far_tally;

/* The observation is in the data's units, its time as the model counts it. */
void far_count(far_tally *f, const mtan_prep *p, const mtan_observation *raw);
/* A line for each channel that had some, and one for times, for people. 1: there were. */
int far_tell(const far_tally *f, const mtan_prep *p);
void far_free(far_tally *f);

#endif
