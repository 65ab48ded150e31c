/* Knots of encoded values (mtan.h, mtan_values): quantiles of what a channel's observations are in training.
 *
 * Why no preset has them. PhysioNet, five folds of the 3200 training and validation records (`mtan cv physionet-enc --preset best --trees 0
 * --seed 0`, and 1), mean AUC of the folds: plain 0.842 and 0.841; piecewise, 5 bins 0.839 and 0.840; shares without the value 0.839 and
 * 0.843; quantile, 5 bins 0.837 (seed 0). A fold's own difference is up to 0.02, either way. An epoch takes 0.21 s of a core plain and as
 * quantile, 0.31 s with the shares. The made-up sets of test_best_command.c (their options, seed 2), AUC plain, piecewise, quantile: level
 * 0.905, 0.907, 0.889; spread 0.949, 0.948, 0.949; place 0.989, 0.988, 0.998; density 1 each; crowd 0.819, 0.818, 0.818; shape 0.965, 0.755,
 * 0.670; period 0.974, 0.983, 0.839. What they are for: where values lie in three lumps or in four, of nearly the same spread, seeds 2 and 3,
 * 0.854 and 0.863 plain, 0.995 and 0.985 piecewise, 0.864 and 0.855 as quantile. */
#ifndef MTAN_TOOLS_KNOTS_H
#define MTAN_TOOLS_KNOTS_H

#include "../../data/dataset.h"
#include "../model/plan.h"

/* Sets the knots among the weights of the plan's model; none where it has none. A channel that the records do not observe keeps its. */
void knots_fit(mtan_real *weights, const plan *p, const dataset *d, const split *s);

#endif
