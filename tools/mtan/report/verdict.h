/* Verdicts: a sentence on each picture of the report, for readers who do not see such pictures every day. Plain arrays
 * in, words out: the page draws, this file judges. A sentence claims a difference only if it is larger than chance
 * explains. The text is empty if nothing can be said. Texts have VERDICT_BYTES. */
#ifndef MTAN_TOOLS_VERDICT_H
#define MTAN_TOOLS_VERDICT_H

#include "../measure/metrics.h"
#include "report.h"

enum { VERDICT_BYTES = 256 };

/* Validation by epoch: still improving, level, or worse since its best epoch. `better` is 1 if higher values are
 * better, -1 if lower ones are. train: the same measure on the training records, which tells overfitting from bad luck;
 * or NULL. end: whether more epochs could go on as the last ones did. */
typedef enum learning_end {
    END_OPEN,     /* they could */
    END_SCHEDULE, /* the learning rate had fallen to its end */
    END_CHOICE    /* the measure that chooses the epoch no longer improved */
} learning_end;
const char *verdict_learning(char *text, const double *epoch, const double *train, const double *valid, size_t epochs,
                             int better, learning_end end);
/* Whether the last epochs still improved, the best one among them. */
int verdict_improves(const double *epoch, const double *valid, size_t epochs, int better);
/* The AUC and its 95 % interval (NaN: not known). rarer, here and below: the rows of the class that has fewer. */
const char *verdict_ranking(char *text, double auc, double low, double high, size_t rarer);
/* Average precision compared with the share of class 1, which is the average precision of guessing. */
const char *verdict_precision(char *text, double average, double share, size_t rarer);
/* two: the bins are of the probability of class 1; else of the largest probability. Rows count as independent. slope
 * and intercept are those of the logistic recalibration of class 1: value, and the ends of the interval. NULL, or ends
 * that are NaN: not known. */
const char *verdict_calibration(char *text, const metric_bin bins[METRIC_BINS], int two, const double slope[3],
                                const double intercept[3]);
/* For a number: verdict_coverage compares the share of numbers inside their intervals with the promised share;
 * verdict_explained, for models without intervals, gives the share of the variance. verdict_residuals tells whether
 * predictions are biased, too extreme or too cautious. */
const char *verdict_coverage(char *text, double inside, size_t n, double promised);
const char *verdict_explained(char *text, double r2);
const char *verdict_residuals(char *text, const double *predicted, const double *truth, size_t n);
/* A channel of a record: the error of the curve compared with that of linear interpolation between the shown points. */
const char *verdict_panel(char *text, const report_panel *p);
/* Errors of the model and of linear interpolation at the same shares. */
const char *verdict_errors(char *text, const report_points *model, const report_points *lines);
const char *verdict_attention(char *text, const report_attention *a);
/* verdict_peak: the largest weight in units of an even share; NaN: nothing to measure. verdict_uniform: a sentence if
 * no observation stands out by that measure, else empty. */
double verdict_peak(const report_attention *a);
const char *verdict_uniform(char *text, double peak);

#endif
