/* Predicted classes of many records, with their true classes. */
#ifndef MTAN_TOOLS_PREDICTIONS_H
#define MTAN_TOOLS_PREDICTIONS_H

#include "../../data/dataset.h"
#include "../run/runner.h"

/* Unlabelled rows are ignored by the metrics. */
typedef struct predictions {
    size_t rows, labelled;
    int32_t classes;
    double *p; /* (rows, C) */
    double
        *score; /* (rows) what AUC ranks: class 1's logit (faithful, Q26) or the logit difference; two classes only */
    int32_t *label;  /* (rows) MTAN_UNLABELED where there is none */
    int32_t *record; /* (rows) position in the data set */
} predictions;
/* batch: records per batch in training, for models that rearrange batches (arrange.h); 0: not known. */
int predictions_make(predictions *p, runner *run, const dataset *d, const int32_t *positions, int faithful,
                     size_t batch);
void predictions_drop_unlabelled(predictions *p);
void predictions_free(predictions *p);

#endif
