/* Configurations by name: how the paper's models are trained, with their settings, batches and optimiser.
 *
 * mTAN's configurations are those that the reference's documented commands train: toy-interp, physionet-interp,
 * physionet-full, physionet-enc, mimic3-full, mimic3-enc, activity-enc; and activity-full (Q40). A data set that is not
 * in the paper is trained by DATA-enc, DATA-full or DATA-interp. A baseline's configurations are DATA-MODEL: physionet,
 * mimic3, activity, toy or own, then the baseline's name. The suffix "-interp" after a model with a latent state trains
 * interpolation alone, as toy always does; "-per-time" trains a class per time, as activity always does. */
#ifndef MTAN_TOOLS_RECIPES_H
#define MTAN_TOOLS_RECIPES_H

#include "../../../mtan.h"

typedef struct recipe {
    mtan_config config; /* channels and classes are those of the published data; own data sets its own */
    int32_t batch, epochs;
    double sample_low, sample_high; /* share of the time points shown to the encoder; 1, 1: all */
    mtan_optimizer optimizer;
    double lr;
    double decay;     /* the learning rate is multiplied by this at every step; 1: it stays, */
    double floor;     /* and ends at this fraction of its initial value */
    int reconstructs; /* a baseline that classifies records and also learns to reconstruct them, or to predict the next
                       * row */
} recipe;

/* Returns 1; 0 if there is no such name, with r untouched. */
int recipe_named(recipe *r, const char *name, mtan_preset preset);
/* For own data: enc, full, per-time, interp, or a baseline's name as above, without "own-". */
int recipe_for_own(recipe *r, const char *model, mtan_preset preset);

enum { RECIPES_OF_MTAN = 8, RECIPE_NAME = 64 };
/* The names for published data, mTAN's first, one per index: `name`, or NULL past the last. */
const char *recipe_name(int index, char name[RECIPE_NAME]);
/* mTAN's names as text: "toy-interp, physionet-interp, ..." */
void recipe_list(char *text, size_t size);

#endif
