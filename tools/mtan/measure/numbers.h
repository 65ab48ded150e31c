/* Predicted numbers of many records, or the probabilities of their labels, with the true values; and the metrics of
 * numbers (metrics of labels: labels.h). */
#ifndef MTAN_TOOLS_MODEL_NUMBERS_H
#define MTAN_TOOLS_MODEL_NUMBERS_H

#include "../../data/prep.h"
#include "../run/runner.h"

/* A row for each record or time that has a number, or one of several labels. */
typedef struct number_predictions {
    size_t rows;
    int32_t outputs; /* of a number 1, or 3: low, median, high; else the number of labels */
    double *p;       /* (rows, outputs) */
    double *y;       /* (rows, C) the true numbers; NaN: not known */
    int32_t *record; /* (rows) position in the data set */
    size_t *place;   /* (rows) index of the row's label in dataset.labels; or NULL */
} number_predictions;

/* In the data's units, or with units NULL in the model's. 1, or 0 with run->status and run->failed set. */
int numbers_make(number_predictions *p, runner *run, const dataset *d, const prep *units, const int32_t *positions);
/* The same of a number in the model's units, with low, median and high as the net gives them: they may cross.
 * numbers_sort makes them what a predictor gives. */
int numbers_make_unsorted(number_predictions *p, runner *run, const dataset *d, const int32_t *positions);
void numbers_sort(number_predictions *p);
double numbers_raw(const prep *units, double x);                /* to the data's unit; NULL: as it is */
double numbers_middle(const number_predictions *p, size_t row); /* the prediction, or the median of its interval */
/* The mean training loss: squared errors, or with an interval pinball losses. */
double numbers_loss(const number_predictions *p, double interval);
void numbers_free(number_predictions *p);

/* As scikit-learn's root_mean_squared_error, mean_absolute_error and r2_score; and the share of numbers within their
 * intervals, NaN if the model has none. */
typedef enum number_metric { NUMBER_RMSE, NUMBER_MAE, NUMBER_R2, NUMBER_COVERAGE, NUMBER_METRICS } number_metric;
const char *number_metric_key(number_metric name);
const char *number_metric_title(number_metric name);
int number_metric_higher(number_metric name);   /* 1: higher values are better, -1: lower ones */
int number_metric_in_units(number_metric name); /* whether it has the unit of the number */

typedef struct number_query {
    const number_predictions *p;
    number_metric name;
    const double *instead; /* (rows) another model's predictions, used in place of p's; or NULL */
    const double *minus;   /* (rows) likewise: gives the difference to them on the same draws; or NULL */
} number_query;
/* A metric_function of metrics.h; context is a number_query. rows NULL: all rows once. */
double number_drawn(void *context, const int32_t *rows, size_t n);

#endif
