/* Labelled records, or labelled times, as rows of features for the baseline regressions. */
#ifndef MTAN_TOOLS_SUMMARIES_H
#define MTAN_TOOLS_SUMMARIES_H

#include "../../data/dataset.h"
#include "rivals.h"

/* ---- channels of a record ---- */

/* Events sorted by channel, as rivals.h takes them; a buffer that serves one record after another. */
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
    size_t place; /* index in dataset.labels */
    double time;  /* NaN: the label is of the whole record */
} summary_row;
/* The rows of those records that have a label, an stb_ds array. */
summary_row *summary_rows(const dataset *d, const int32_t *positions);

/* The features of a record are the summaries of its channels; of a time, each channel's value interpolated there, mean
 * and spread. */
typedef struct summary_table {
    double *x;      /* (n, features) */
    int32_t *label; /* (n) */
    size_t *place;  /* (n) index in dataset.labels */
    size_t n, features;
} summary_table;

/* The rows that a regression is fitted to, and those that choose its ridge. */
typedef struct summary_fit {
    summary_table train, valid;
} summary_fit;
/* With many rows, only every second or third or so is used: their number suffices for good weights. columns: weights
 * per feature. Without `valid` rows a part of the training rows is held out. 0: too few rows, or no feature. */
int summary_fit_make(summary_fit *f, const dataset *d, const summary_row *train, const summary_row *valid,
                     int32_t columns);
void summary_fit_free(summary_fit *f);

/* Returns (rows, width), malloc'd: the regression's output for each row. */
typedef void (*summary_answer)(const void *regression, const double *x, double *out);
double *summary_ask(const dataset *d, const summary_row *rows, summary_answer answer, const void *regression,
                    size_t width);

#endif
