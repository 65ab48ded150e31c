/* Pretraining on records without labels. A model that interpolates shares its encoder with the model that is to be
 * trained, and learns to fill gaps. The model to be trained then starts with these weights. Its other tensors, above
 * all the classifier, are initialised as usual.
 *
 * Values and times are scaled by the labelled training records, here too. Labelled records of the validation and test
 * parts that occur among the pretraining records are left out, so that no record both trains and judges the model. */
#ifndef MTAN_TOOLS_PRETRAIN_H
#define MTAN_TOOLS_PRETRAIN_H

#include "../model/plan.h"

typedef struct pretraining {
    plan plan; /* of the interpolating model */
    dataset data;
    split split; /* all records are for training */
    prep prep;   /* of the labelled data, without the static channels, which the encoder does not read */
    size_t left_out;
} pretraining;

/* Reads the records at a path for a model whose plan, data and preprocessing are made. The plan stores a hash of them;
 * if it has a hash already, only these records are accepted. If the plan has no number of pretraining epochs, it gets
 * one that suffices for these records. 1, or 0 with a message printed; pretrain_close is due after both. */
int pretrain_open(pretraining *x, plan *p, const dataset *labelled, const split *s, const prep *prepared,
                  const char *path);
void pretrain_close(pretraining *x);

/* Copies the tensors that both models have into weights of the config `to`; returns how many. */
int32_t pretrain_give(const mtan_config *to, mtan_real *weights, const mtan_model *from);

#endif
