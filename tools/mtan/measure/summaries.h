/* Labelled records, or labelled times, as rows of numbers for a regression: what one can say of a channel without a model. */
#ifndef MTAN_TOOLS_SUMMARIES_H
#define MTAN_TOOLS_SUMMARIES_H

#include "../../data/dataset.h"
#include "rivals.h"

/* ---- channels of a record ---- */

/* Events as the rivals take them, sorted by channel; room that serves one record after another. */
typedef struct series_set {
    mtan_observation *seen; /* stb_ds array */
    int32_t *first;         /* (channels + 1) */
    size_t channels;
} series_set;
series_set series_new(const dataset *d);
void series_fill(series_set *s, const mtan_event *e, size_t n);
rival_series series_of(const series_set *s, size_t channel);
void series_free(series_set *s);

/* ---- rows ---- */

typedef struct summary_row {
    int32_t record, label;
    size_t place; /* in dataset.labels */
    double time;  /* NaN: the label is the record's */
} summary_row;
/* The rows of some records that have a label, an stb_ds array. */
summary_row *summary_rows(const dataset *d, const int32_t *positions);

/* A record has the summaries of its channels; a time has beside each channel's mean and spread the value there. */
typedef struct summary_table {
    double *x;      /* (n, features) */
    int32_t *label; /* (n) */
    size_t *place;  /* (n) in dataset.labels */
    size_t n, features;
} summary_table;

/* What a regression is fitted to, and chosen by. */
typedef struct summary_fit {
    summary_table train, valid;
} summary_fit;
/* Where there are many rows every second is taken, or every third: the weights of that many are known well. columns: how many weights
 * a feature has. Without a row of `valid` a part of the training rows serves. 0: there are too few rows, or nothing to tell them by. */
int summary_fit_make(summary_fit *f, const dataset *d, const summary_row *train, const summary_row *valid,
                     int32_t columns);
void summary_fit_free(summary_fit *f);

/* (rows, width), malloc'd: what a regression says of each row. */
typedef void (*summary_answer)(const void *regression, const double *x, double *out);
double *summary_ask(const dataset *d, const summary_row *rows, summary_answer answer, const void *regression,
                    size_t width);

#endif
