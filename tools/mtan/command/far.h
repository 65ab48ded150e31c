/* Observations far outside of the model's training data: mostly a wrong unit. They are counted per channel while
 * records go through, and reported once at the end. */
#ifndef MTAN_TOOLS_FAR_H
#define MTAN_TOOLS_FAR_H

#include <stddef.h>

#include "../../../mtan.h"

typedef struct far_tally {
    size_t *values;  /* per channel: an stb_ds array, empty until the first such value */
    double *example; /* per channel: the first such value */
    size_t times;
    double time; /* the first such time */
} far_tally;

/* raw is in the data's units; its time counts as the model counts it. */
void far_count(far_tally *f, const mtan_prep *p, const mtan_observation *raw);
/* Notes a line for each channel with such values, and one for times. Returns 1 if there were any. */
int far_tell(const far_tally *f, const mtan_prep *p);
void far_free(far_tally *f);

#endif
