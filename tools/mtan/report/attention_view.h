/* The encoder's attention over one channel of a record, as data for the picture in report.h. */
#ifndef MTAN_TOOLS_ATTENTION_VIEW_H
#define MTAN_TOOLS_ATTENTION_VIEW_H

#include "../../../mtan.h"
#include "../../data/dataset.h"

/* Attention of the first head, with times in the model's units. Times at which the channel was not observed have no
 * weight and are left out. */
typedef struct attention_view {
    double *time;      /* (times) ascending */
    double *reference; /* (references) */
    double *weight;    /* (references, times) */
    size_t times, references;
} attention_view;

/* 1, or 0 with nothing to free: the model has no attention over time. */
int attention_view_make(attention_view *v, mtan_predictor *run, mtan_record record, int32_t channel);
void attention_view_free(attention_view *v);

/* How far attention is from uniform: the largest weight in units of an even share, over a few records and the channel
 * that each observes most. NaN: nothing to measure. */
double attention_peak(mtan_predictor *run, const dataset *d, const int32_t *positions);

#endif
