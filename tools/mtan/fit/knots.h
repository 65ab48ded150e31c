/* Knots of encoded values (mtan.h, mtan_values): quantiles of each channel's observed values in training.
 *
 * No preset encodes values, because it did not help on PhysioNet: mean AUC of five folds of the 3200 training and
 * validation records (`mtan cv physionet-enc --preset best --trees 0 --seed 0`, and 1), plain 0.842 and 0.841;
 * piecewise, 5 bins 0.839 and 0.840; shares without the value 0.839 and 0.843; quantile, 5 bins 0.837 (seed 0). Within
 * one fold the difference is up to 0.02, in either direction. An epoch takes 0.21 s of a core for plain and for
 * quantile, 0.31 s with the shares.
 *
 * The synthetic sets of test_best_command.c (with their options, seed 2), AUC plain, piecewise, quantile: level 0.905,
 * 0.907, 0.889; spread 0.949, 0.948, 0.949; place 0.989, 0.988, 0.998; density 1 each; crowd 0.819, 0.818, 0.818; shape
 * 0.965, 0.755, 0.670; period 0.974, 0.983, 0.839.
 *
 * Encoded values help where the class decides whether values lie in three clusters or in four, of nearly the same
 * spread: seeds 2 and 3, AUC 0.854 and 0.863 plain, 0.995 and 0.985 piecewise, 0.864 and 0.855 quantile. */
#ifndef MTAN_TOOLS_KNOTS_H
#define MTAN_TOOLS_KNOTS_H

#include "../../data/dataset.h"
#include "../model/plan.h"

/* Sets the knots in the weights of the plan's model; does nothing for a model without knots. A channel that these
 * records never observe keeps its knots. */
void knots_fit(mtan_real *weights, const plan *p, const dataset *d, const split *s);

#endif
