/* How the paper's models are trained: settings, batches and optimiser under one name.
 *
 * mTAN's are what the reference's documented commands train: toy-interp, physionet-interp, physionet-full, physionet-enc,
 * mimic3-full, mimic3-enc, activity-enc; and activity-full (Q40).
 * A data set that the paper does not have is trained by DATA-enc, DATA-full or DATA-interp.
 * A baseline's are DATA-MODEL: physionet, mimic3, activity, toy or own, then its name. "-interp" behind a model with a latent state
 * trains interpolation alone, as toy always does; "-per-time" a class per time, as activity always does. */
#ifndef MTAN_TOOLS_RECIPES_H
#define MTAN_TOOLS_RECIPES_H

#include "../../../mtan.h"

typedef struct recipe {
    mtan_config config; /* channels and classes are those of the published data; own data sets its own */
    int32_t batch, epochs;
    double sample_low, sample_high; /* share of the time points shown to the encoder; 1, 1: all */
    mtan_optimizer optimizer;
    double lr;
    double decay; /* the learning rate is multiplied by this at every step, 1: never, */
    double floor; /* down to this share of where it started */
    int reconstructs; /* a baseline that classifies records and is told how well it reconstructs them, or tells the next row */
} recipe;

/* 1; 0: no such name, and r is untouched. */
int recipe_named(recipe *r, const char *name, mtan_preset preset);
/* For own data: enc, full, per-time, interp, or a baseline as above, without "own-". */
int recipe_for_own(recipe *r, const char *model, mtan_preset preset);

enum { RECIPES_OF_MTAN = 8, RECIPE_NAME = 64 };
/* The names for published data, mTAN's first, one after the other: `name`, or NULL past the last. */
const char *recipe_name(int index, char name[RECIPE_NAME]);
/* mTAN's in a text: "toy-interp, physionet-interp, ..." */
void recipe_list(char *text, size_t size);

#endif
