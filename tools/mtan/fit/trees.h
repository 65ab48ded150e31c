/* Trees beside a network that has been trained (mtan.h, MTAN_LEAVES): fitted to the training records (boost.h), weighed
 * against the network on the validation records, written into its weights. Where records are few, half of them go on from a regression
 * (stairs.h). */
#ifndef MTAN_TOOLS_TREES_H
#define MTAN_TOOLS_TREES_H

#include "../../data/split.h"
#include "../model/bundle.h"

/* Log-losses on the validation records, and what network and trees are multiplied by to give the lowest together. */
typedef struct trees_fit {
    double network, trees, together;
    double network_share, trees_share;
    int32_t count;      /* 0: trees tell nothing, and the model is as it was */
    int32_t regression; /* so many of these are a regression, with this ridge, or go on from it */
    double ridge;
} trees_fit;

/* Trees that the model has already are fitted anew. d: prepared as for the training. 1, or 0 with error (512 bytes) set. */
int trees_add(bundle *b, const dataset *d, const split *s, int64_t seed, int32_t threads, trees_fit *fit, char *error);
/* As many trees, weighed as `fit` says, of all records at the positions: those of training and validation together. */
void trees_refit(bundle *b, const dataset *d, const int32_t *positions, int64_t seed, const trees_fit *fit);

#endif
