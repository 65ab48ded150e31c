/* How the baselines are trained: sizes and optimiser by data set, and what each asks of whoever makes its batches. */
#ifndef MTAN_TOOLS_BASELINES_RECIPES_H
#define MTAN_TOOLS_BASELINES_RECIPES_H

#include "baselines.h"

/* A recipe with its optimiser. mTAN's own have Adam and a constant rate. */
typedef struct baseline_recipe {
    mtan_recipe recipe;
    mtan_optimizer optimizer;
    double decay; /* the learning rate is multiplied by this at every step, 1: never, */
    double floor; /* down to this share of where it started */
} baseline_recipe;

/* DATA-MODEL: physionet, mimic3, activity, toy or own, then the name of a baseline. "-interp" behind a model with a latent
 * state trains interpolation alone, as toy always does; "-per-time" a class per time, as activity always does. 1; 0: no
 * such name. Channels and classes are those of the published data; own data sets its own. */
int baseline_recipe_named(baseline_recipe *r, const char *name, mtan_preset preset);
/* The names for published data, one after the other: NULL past the last. The text stays until the next call. */
const char *baseline_recipe_name(int index);

/* Whether the model has a latent state, so that it interpolates. */
int baseline_is_variational(const mtan_architecture *a);

/* IP-Nets learns to reconstruct what it is not shown: a record's targets are cells held out of its events, drawn anew in
 * every epoch. Chooses those of n events that are sorted by time into `held`, which holds n, by the twister: of the c
 * observations of a channel floor(c / 5), where that is two or more. Returns how many. */
int baseline_holds_out(const mtan_config *c);
int32_t baseline_hold_out(mtan_event *held, const mtan_event *events, int32_t n, int32_t channels, mtan_mt19937 *rng);

/* RNN-VAE as published reverses the batch instead of time: record b of B is encoded from the events of record B - 1 - b. */
int baseline_swaps_records(const mtan_config *c);

/* The setting that bounds the steps of an adaptive solver; a record that needs more is MTAN_ERR_MEMORY. NULL: no such. */
int32_t *baseline_step_bound(mtan_config *c);

#endif
