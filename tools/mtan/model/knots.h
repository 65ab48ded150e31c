/* Knots of encoded values (mtan.h, mtan_values): quantiles of what a channel's observations are in training. */
#ifndef MTAN_TOOLS_KNOTS_H
#define MTAN_TOOLS_KNOTS_H

#include "../../data/dataset.h"
#include "plan.h"

/* Sets the knots among the weights of the plan's model; none where it has none. A channel that the records do not observe keeps its. */
void knots_fit(mtan_real *weights, const plan *p, const dataset *d, const split *s);

#endif
