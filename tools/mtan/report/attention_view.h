/* How a model's encoder reads one channel of a record: the picture of report.h, before anybody draws it. */
#ifndef MTAN_TOOLS_ATTENTION_VIEW_H
#define MTAN_TOOLS_ATTENTION_VIEW_H

#include "../../../mtan.h"
#include "../../data/dataset.h"

/* Of the first head, in the model's units of time. Times at which the channel was not observed have no weight: they are left out. */
typedef struct attention_view {
    double *time;      /* (times) ascending */
    double *reference; /* (references) */
    double *weight;    /* (references, times) */
    size_t times, references;
} attention_view;

/* 1, or 0 with nothing to free: the model has no such attention. */
int attention_view_make(attention_view *v, mtan_predictor *run, mtan_record record, int32_t channel);
void attention_view_free(attention_view *v);

/* How far attention is from uniform: the largest weight in even shares, over a few records of the data and the channels that they
 * observe most. NaN: there is nothing to see. */
double attention_peak(mtan_predictor *run, const dataset *d, const int32_t *positions);

#endif
