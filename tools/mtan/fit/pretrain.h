/* Pretraining on records without labels. A model that interpolates, with the encoder of the model that is to be trained, learns to fill
 * gaps; the model then starts with its weights. What the model has besides, its classifier above all, starts as ever.
 *
 * The labelled training records decide how values and times are scaled; the records of the pretraining are scaled likewise. Labelled
 * records of the validation and test parts that are handed in again are left out: what judges the model shall not have made it. */
#ifndef MTAN_TOOLS_PRETRAIN_H
#define MTAN_TOOLS_PRETRAIN_H

#include "../model/plan.h"

typedef struct pretraining {
    plan plan; /* of the model that interpolates */
    dataset data;
    split split; /* all are for training */
    prep prep;   /* the labelled data's, without the channels that do not change: the encoder sees none of them */
    size_t left_out;
} pretraining;

/* Reads the records at a path for a model whose plan, data and preprocessing are made. The plan keeps a hash of them, and a number of
 * epochs that is enough for them if it has none; a plan that has a hash takes these records and no others. 1, or 0 with a message
 * printed; pretrain_close is due after both. */
int pretrain_open(pretraining *x, plan *p, const dataset *labelled, const split *s, const prep *prepared,
                  const char *path);
void pretrain_close(pretraining *x);

/* Gives weights of this config the tensors that both models have; returns how many. */
int32_t pretrain_give(const mtan_config *to, mtan_real *weights, const mtan_model *from);

#endif
