/* Metrics for several labels: each label is a question of two classes, and the result is the mean over the labels, as
 * with scikit-learn's average = "macro". */
#ifndef MTAN_TOOLS_LABELS_H
#define MTAN_TOOLS_LABELS_H

#include "metrics.h"
#include "numbers.h"

/* A metric table for each label, over the rows in which it is known. */
typedef struct label_tables {
    int32_t labels;
    metric_table **table; /* (labels) */
    int32_t *truth;       /* (labels, rows) MTAN_UNLABELED: not known */
    double *mean;         /* (labels) share of the known rows in which the label is true */
    size_t *known;        /* (labels) rows in which the label is known */
} label_tables;
/* p, y (rows, labels); y 1 or 0, NaN: not known. */
label_tables label_tables_make(const double *p, const double *y, size_t rows, int32_t labels);
void label_tables_free(label_tables *t);

typedef struct label_query {
    const label_tables *tables;
    metric_name name;
    int32_t label;             /* or -1: the mean over the labels for which the metric exists */
    const label_tables *minus; /* another model on the same rows: gives the difference on the same draws; or NULL */
} label_query;
/* A metric_function; context is a label_query. rows NULL: all rows once. */
double label_drawn(void *context, const int32_t *rows, size_t n);
/* A metric of one label, or with label -1 the mean over all, on every row of p. range gets its interval, NaNs without
 * draws. */
double label_measure(const label_tables *t, const number_predictions *p, metric_name name, int32_t label, int32_t draws,
                     interval *range);

#endif
