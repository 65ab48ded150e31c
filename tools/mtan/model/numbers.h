/* Numbers of many records as a model predicts them, beside the numbers that they have; and what such predictions are worth. */
#ifndef MTAN_TOOLS_MODEL_NUMBERS_H
#define MTAN_TOOLS_MODEL_NUMBERS_H

#include "../../data/prep.h"
#include "runner.h"

/* A row for each record or time that has a number. */
typedef struct number_predictions {
    size_t rows;
    int32_t outputs; /* 1; or 3: low, median, high */
    double *p;       /* (rows, outputs) */
    double *y;       /* (rows) the true number */
    int32_t *record; /* (rows) position in the data set */
} number_predictions;

/* In the data's units, or, with units NULL, in the model's. 1, or 0 with run->status and run->failed set. */
int numbers_make(number_predictions *p, runner *run, const dataset *d, const prep *units, const int32_t *positions);
double numbers_middle(const number_predictions *p, size_t row); /* the prediction itself */
/* The mean of what training minimises: squared errors, or with an interval pinball losses. */
double numbers_loss(const number_predictions *p, double interval);
void numbers_free(number_predictions *p);

/* As scikit-learn's root_mean_squared_error, mean_absolute_error and r2_score; the share of numbers within their intervals, NaN
 * where the model has none. */
typedef enum number_metric { NUMBER_RMSE, NUMBER_MAE, NUMBER_R2, NUMBER_COVERAGE, NUMBER_METRICS } number_metric;
const char *number_metric_key(number_metric name);
const char *number_metric_title(number_metric name);

typedef struct number_query {
    const number_predictions *p;
    number_metric name;
    const double *instead; /* one number for all rows in place of the predictions, or NULL */
} number_query;
/* A metric_function of metrics.h; context is a number_query. rows NULL: all rows once. */
double number_drawn(void *context, const int32_t *rows, size_t n);

#endif
