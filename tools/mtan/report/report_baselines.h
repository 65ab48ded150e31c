/* What one has without the model, to stand beside each number of a page: guesses by the shares of the classes, a logistic
 * regression on summaries of the channels, straight lines, the last value and the mean for curves. Everything in the model's units. */
#ifndef MTAN_TOOLS_REPORT_BASELINES_H
#define MTAN_TOOLS_REPORT_BASELINES_H

#include "../model/metrics.h"
#include "../model/session.h"

/* A metric of the one who gives every row the shares of the classes among these rows: of the area 0.5, of the accuracy the share
 * of the largest class. NaN where the metric is NaN. */
double baseline_metric(metric_name name, const int32_t *label, size_t rows, int32_t classes);

/* The AUC of a logistic regression, fitted to the training records' summaries, on the session's records. NaN: not two classes of
 * records, no training records in the data, or so many channels and records that it would take long. */
double baseline_regression_auc(const session *s);

/* Mean squared errors of three ways to fill in a channel from the share of the times that the model is shown; NaN where
 * there are no such points. Pooled over all points. */
typedef struct baseline_fill {
    double lines, last, mean;
} baseline_fill;
typedef struct baseline_errors {
    baseline_fill all, held, truth;
} baseline_errors;
baseline_errors baseline_interpolation(const session *s, double share);

#endif
