/* Terms beside a network that has been trained (mtan.h, mtan_config.terms): fitted to the training records (boost.h), weighed
 * against the network on the validation records, written into its weights. */
#ifndef MTAN_TOOLS_TERMS_H
#define MTAN_TOOLS_TERMS_H

#include "../../data/split.h"
#include "bundle.h"

/* Log-losses on the validation records, and what network and terms are multiplied by to give the lowest together. */
typedef struct terms_fit {
    double network, terms, together;
    double network_share, terms_share;
    int32_t rounds; /* 0: the terms tell nothing, and the model is as it was */
} terms_fit;

/* Terms that the model has already are fitted anew. d: prepared as for the training. 1, or 0 with error (512 bytes) set. */
int terms_add(bundle *b, const dataset *d, const split *s, int32_t threads, terms_fit *fit, char *error);

#endif
