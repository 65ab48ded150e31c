/* Part of `mtan cv`: models that predict a number, or several labels. */
#ifndef MTAN_TOOLS_CV_NUMBERS_H
#define MTAN_TOOLS_CV_NUMBERS_H

#include <stdio.h>

#include "../measure/metrics.h"
#include "../model/session.h"

/* Walks through the labels of times of a fold's records, for the times in its rows; starts as zeros, with the
 * session. */
typedef struct row_times {
    const session *of;
    const char *text; /* of label `nth` of the record, or NULL */
    int32_t record, nth;
} row_times;

enum { FOLD_METRICS = METRICS + NUMBER_METRICS }; /* room for either kind */

/* A metric over the folds. pooled: measured on the rows of all folds together, with its 95 % interval, NaN where there
 * is none. */
typedef struct fold_metric {
    const char *key, *title;
    double mean, sd, pooled;
    interval range;
} fold_metric;

/* Rows of all folds, one fold after the other; starts as zeros. */
typedef struct pooled_numbers {
    mtan_task task;
    number_predictions all;         /* its pointers are the arrays below */
    double *p, *y;                  /* (rows, outputs); (rows, C): stb_ds arrays */
    int32_t *record;                /* (rows) stb_ds array */
    double *measured[FOLD_METRICS]; /* (folds) stb_ds arrays */
} pooled_numbers;

/* Measures a fold and writes its rows, with a header before those of the first fold. Returns 1, or 0 with a message
 * printed. */
int pooled_numbers_add(pooled_numbers *x, session *s, const options *o, int32_t fold, FILE *file);
/* Appends the metrics to *out, an stb_ds array. draws: of the bootstrap. */
void pooled_numbers_measure(pooled_numbers *x, int32_t draws, fold_metric **out);
void pooled_numbers_free(pooled_numbers *x);

/* Writes ",time" for label `nth` of a record, where labels have times: as it was read and as `mtan predict` writes it.
 * Rows come in the order of records and labels. */
void row_times_put(FILE *file, row_times *t, int32_t record, int32_t nth);

/* Mean and standard deviation (with n - 1) over the folds whose value is not NaN; x: an stb_ds array. */
void fold_spread(const double *x, double *mean, double *sd);

#endif
