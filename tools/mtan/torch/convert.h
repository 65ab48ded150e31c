/* Conversion between the published code's checkpoints (torchfile.h) and model files (bundle.h). */
#ifndef MTAN_TOOLS_CONVERT_H
#define MTAN_TOOLS_CONVERT_H

#include "../model/bundle.h"
#include "../options/options.h"
#include "torchfile.h"

/* What the user specifies about a checkpoint. It takes precedence over the checkpoint's own args, but never over the
 * shapes of its tensors. */
typedef struct convert_given {
    const char *recipe;           /* name of a configuration, or NULL */
    const mtan_config *published; /* its settings; NULL: no such name */
    mtan_file_pair *settings;     /* stb_ds array of settings in the form of mtan_config_set */
} convert_given;

typedef struct converted {
    mtan_model model;
    mtan_real *weights;           /* (P, and K given points) */
    mtan_real *moment1, *moment2; /* (P) of the optimiser; NULL if the checkpoint has no usable ones */
    mtan_optimizer optimizer;     /* that the moments belong to */
    int64_t step, epoch;
    /* training settings from its args; 0: not known */
    double lr, sample_tp; /* learning rate (from the args or the optimiser), share of the times shown for
                           * interpolation */
    int32_t batch, niters;
    int64_t seed;
    char *args;     /* the checkpoint's args as JSON, or NULL */
    char **remarks; /* stb_ds array of malloc'd sentences: assumptions, and what was left out */
} converted;

/* Finds the state dicts, derives the model's settings, and copies the weights. Returns 1, or 0 with error (512 bytes)
 * set and nothing to free. */
int convert_from_torch(converted *m, const torchfile *t, const convert_given *given, char *error);
void converted_free(converted *m);

/* Writes a model as a checkpoint with the published scripts' keys, which torch.load(weights_only=True) loads: an stb_ds
 * array, or NULL if it would be too large. */
uint8_t *convert_to_torch(bundle *b);
mtan_optimizer convert_optimizer(bundle *b); /* that the moments of a model file belong to */

/* Computes the preprocessing of a converted model from the data of --stats-from. The location of its records and its
 * training come from the checkpoint, otherwise from the published commands; they become pairs for the model file.
 * Returns 1, or 0 with a message printed. */
int convert_statistics(prep *p, mtan_file_pair **pairs, const options *o, const converted *m);

#endif
