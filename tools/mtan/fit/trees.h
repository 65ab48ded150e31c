/* Trees that support a trained network (mtan.h, MTAN_LEAVES): fitted to the training records (boost.h), weighed against
 * the network on the validation records, and written into its weights. With few records, half of the trees continue
 * from a regression (stairs.h). */
#ifndef MTAN_TOOLS_TREES_H
#define MTAN_TOOLS_TREES_H

#include "../../data/split.h"
#include "../model/bundle.h"

/* Losses on the validation records, the log-loss or the squared error in the model's unit: of the network, of the trees,
 * and of both with the shares that minimise it. */
typedef struct trees_fit {
    double network, trees, together;
    double network_share, trees_share;
    int32_t count;      /* 0: the trees do not help, and the network works alone */
    int32_t regression; /* how many of `count` are the regression, with this ridge, or continue from it */
    double ridge;
    double margin; /* by which each end of an interval is moved outwards; 0 without an interval */
} trees_fit;

/* Replaces any trees that the model has. d: prepared as for the training. 1, or 0 with error (512 bytes) set. A fit
 * that is stopped (stop.h) leaves the model without trees; so does trees_refit. */
int trees_add(bundle *b, const dataset *d, const split *s, int64_t seed, int32_t threads, trees_fit *fit, char *error);
/* Fits as many trees again, with the shares of `fit`, to all records at the positions: training and validation
 * together. */
void trees_refit(bundle *b, const dataset *d, const int32_t *positions, int64_t seed, const trees_fit *fit);

#endif
