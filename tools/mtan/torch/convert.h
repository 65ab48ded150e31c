/* Between the published code's checkpoints (torchfile.h) and model files (bundle.h). */
#ifndef MTAN_TOOLS_CONVERT_H
#define MTAN_TOOLS_CONVERT_H

#include "../model/bundle.h"
#include "../command/options.h"
#include "torchfile.h"

/* What the user said about a checkpoint. It goes before the checkpoint's own args, but never before the shapes of its
 * tensors. */
typedef struct convert_given {
    const char *recipe;           /* name of a configuration, or NULL */
    const mtan_config *published; /* its settings; NULL: there is none of that name */
    mtan_file_pair *settings;     /* stb_ds array of settings as mtan_config_set takes them */
} convert_given;

typedef struct converted {
    mtan_model model;
    mtan_real *weights;           /* (P, and K given points) */
    mtan_real *moment1, *moment2; /* (P) of the optimiser; NULL when the checkpoint has none that can be used */
    mtan_optimizer optimizer;     /* whose they are */
    int64_t step, epoch;
    /* how it was trained, by its args; 0: not known */
    double lr, sample_tp; /* learning rate (else the optimiser's), share of the times shown for interpolation */
    int32_t batch, niters;
    int64_t seed;
    char *args;     /* the checkpoint's args as JSON, or NULL */
    char **remarks; /* stb_ds array of malloc'd sentences: what was assumed, what was left out */
} converted;

/* Finds the state dicts, works out what model they are of, and copies the weights. 1, or 0 with error (512 bytes) set and
 * nothing to free. */
int convert_from_torch(converted *m, const torchfile *t, const convert_given *given, char *error);
void converted_free(converted *m);

/* A model as a checkpoint with the published scripts' keys, to be loaded by torch.load(weights_only=True): an stb_ds array, or
 * NULL when it would be too large. */
uint8_t *convert_to_torch(bundle *b);
mtan_optimizer convert_optimizer(bundle *b); /* whose moments a model file has */

/* The preprocessing of a converted model, from the data of --stats-from, where its records are and how it was trained, as the
 * checkpoint says, else as published: pairs for the model file. 1, or 0 with a message printed. */
int convert_statistics(prep *p, mtan_file_pair **pairs, const options *o, const converted *m);

#endif
