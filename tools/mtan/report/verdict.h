/* What a picture of the report says, in a sentence, for people who do not read such pictures every day. Plain arrays in, words out:
 * the page draws, this file judges. A sentence claims a difference only where it is larger than chance explains; a text is empty
 * where nothing can be said. Texts have VERDICT_BYTES. */
#ifndef MTAN_TOOLS_VERDICT_H
#define MTAN_TOOLS_VERDICT_H

#include "../measure/metrics.h"
#include "report.h"

enum { VERDICT_BYTES = 256 };

/* Validation by epoch: still improving, level, or worse since its best epoch. `better` is 1 where higher values are better, -1 where
 * lower ones are. train, or NULL: the same measure on the training records, which tells overfitting from bad luck. */
const char *verdict_learning(char *text, const double *epoch, const double *train, const double *valid, size_t epochs,
                             int better);
/* The AUC, its 95 % interval (NaN: not known). */
const char *verdict_ranking(char *text, double auc, double low, double high);
/* Average precision beside the share of class 1, which is what guessing has. */
const char *verdict_precision(char *text, double average, double share);
/* two: the bins are of the probability of class 1; else of the largest one. Rows count as independent. */
const char *verdict_calibration(char *text, const metric_bin bins[METRIC_BINS], int two);
/* Of a number: how many lie in their intervals, if there are any, beside what those promise; else the share of the variance. Then
 * whether the predictions lean to one side, or are too close to their mean or too far from it. */
const char *verdict_coverage(char *text, double inside, size_t n, double promised);
const char *verdict_explained(char *text, double r2);
const char *verdict_residuals(char *text, const double *predicted, const double *truth, size_t n);
/* A channel of a record: the curve's error beside that of straight lines between the points seen. */
const char *verdict_panel(char *text, const report_panel *p);
/* Errors of the model and of straight lines at the same shares. */
const char *verdict_errors(char *text, const report_points *model, const report_points *lines);
const char *verdict_attention(char *text, const report_attention *a);
/* The largest weight in even shares; NaN: there is nothing to see. And what to say of attention where that is all, empty where some
 * observations stand out. */
double verdict_peak(const report_attention *a);
const char *verdict_uniform(char *text, double peak);

#endif
