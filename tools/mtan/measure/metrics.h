/* Metrics of predictions, computed in double. Ties, empty classes and single classes have defined results: NaN where a
 * metric does not exist (an AUC with one class), never a crash.
 *
 * A row whose label is none of the classes (MTAN_UNLABELED) is ignored, whatever its numbers are. A NaN among the
 * numbers that a result uses makes the result NaN. Of equal probabilities the first class counts as the largest. n
 * below 2^31. */
#ifndef MTAN_TOOLS_METRICS_H
#define MTAN_TOOLS_METRICS_H

#include <stddef.h>
#include <stdint.h>

/* Area under the ROC curve as scikit-learn's roc_auc_score: ties count one half. label 0 or 1, n of each score. */
double metric_auc(const double *score, const int32_t *label, size_t n);
/* Average precision as scikit-learn's average_precision_score: sum of (R_i - R_{i-1}) P_i over distinct thresholds. */
double metric_auprc(const double *score, const int32_t *label, size_t n);
/* p (n, C) probabilities. */
double metric_accuracy(const double *p, const int32_t *label, size_t n, int32_t classes);
double metric_log_loss(const double *p, const int32_t *label, size_t n, int32_t classes); /* p clipped at 1e-15 */
/* As scikit-learn's brier_score_loss: the mean over rows of the squared distance from p to the truth; half of that for
 * two classes. */
double metric_brier(const double *p, const int32_t *label, size_t n, int32_t classes);
/* Expected calibration error of the largest probability: 15 bins of equal width, |accuracy - confidence| weighted by
 * count. */
double metric_calibration(const double *p, const int32_t *label, size_t n, int32_t classes);
/* One against the rest, averaged over the classes that occur (macro). Two classes: the usual value of class 1. */
double metric_auc_classes(const double *p, const int32_t *label, size_t n, int32_t classes);
double metric_auprc_classes(const double *p, const int32_t *label, size_t n, int32_t classes);

/* The calibration curve. Bin k holds the confidences in (k/15, (k+1)/15], and bin 0 also holds 0. of = -1: the
 * confidence is the largest probability, and accuracy is how often its class is true. of = a class: the confidence is
 * the probability of that class, and accuracy is how often it is true. An empty bin has NaN means. A row with NaN makes
 * bin 0 NaN. */
enum { METRIC_BINS = 15 };
typedef struct metric_bin {
    double confidence, accuracy; /* means */
    int64_t count;
} metric_bin;
void metric_bins(metric_bin bins[METRIC_BINS], const double *p, const int32_t *label, size_t n, int32_t classes,
                 int32_t of);

/* counts (C, C): rows are true classes, columns predicted ones. A row with NaN is not counted. */
void metric_confusion(int64_t *counts, const double *p, const int32_t *label, size_t n, int32_t classes);

/* Per class, from the confusion matrix. As scikit-learn's precision_recall_fscore_support with zero_division = nan: a
 * precision is NaN when nothing was predicted, a recall when the class does not occur, an F1 when both. */
typedef struct metric_class {
    double precision, recall, f1;
    int64_t support, predicted; /* rows of this class; rows predicted as it */
} metric_class;
void metric_per_class(metric_class *table /* (C) */, const int64_t *counts /* (C, C) */, int32_t classes);

/* The points of the ROC curve (false positive rate, true positive rate) and of the precision-recall curve (recall,
 * precision) at every distinct threshold, starting at (0, 0) or (0, 1) and then from the strictest threshold on:
 * scikit-learn's roc_curve without dropping points, and its precision_recall_curve from the other end. Returns how
 * many, at most n + 1; 0 if the curve does not exist. x and y hold n + 1. */
size_t metric_roc(double *x, double *y, const double *score, const int32_t *label, size_t n);
size_t metric_pr(double *x, double *y, const double *score, const int32_t *label, size_t n);

/* Bootstrap: the 95 % interval of `metric` over resampled rows, by NumPy's percentile of the draws for which the metric
 * exists; NaN when it never does. If group (n) is not NULL, whole groups are drawn (the times of one record); a row
 * with a negative number is a group of one. Deterministic in the seed: each draw takes as many rows or groups as there
 * are, with replacement, continuing the sequence of RandomState(seed).randint(0, count, count); groups are numbered in
 * order of first appearance. */
typedef double (*metric_function)(void *context, const int32_t *rows, size_t n);
typedef struct interval {
    double low, high;
} interval;
interval metric_bootstrap(metric_function metric, void *context, size_t n, const int32_t *group, int32_t draws,
                          uint32_t seed);

/* The metrics above, prepared once for a bootstrap, so that a draw takes time linear in its rows. The table keeps the
 * pointer `label`. score (n) is what the AUC and AUPRC of two classes rank by; NULL: p of class 1. A table serves one
 * thread at a time.
 *
 *     metric_query q = {metric_table_new(p, score, label, n, classes), METRIC_AUC, NULL};
 *     value = metric_drawn(&q, NULL, n);
 *     range = metric_bootstrap(metric_drawn, &q, n, group, 1000, seed);
 *     metric_table_free(q.table); */
typedef enum metric_name {
    METRIC_AUC, /* macro for more than two classes, as METRIC_AUPRC */
    METRIC_AUPRC,
    METRIC_ACCURACY,
    METRIC_LOG_LOSS,
    METRIC_BRIER,
    METRIC_CALIBRATION,
    METRICS
} metric_name;
const char *metric_key(metric_name name);   /* "log_loss", for programs */
const char *metric_title(metric_name name); /* "log-loss", for people */
int metric_higher(metric_name name);        /* 1: higher values are better, -1: lower ones */
typedef struct metric_table metric_table;
metric_table *metric_table_new(const double *p, const double *score, const int32_t *label, size_t n, int32_t classes);
void metric_table_free(metric_table *table);

typedef struct metric_query {
    metric_table *table;
    metric_name name;
    /* minus: another model on the same rows: gives the difference, table - minus, on the same draws; or NULL */
    metric_table *minus;
} metric_query;
/* A metric_function; context is a metric_query. rows NULL: all rows once. */
double metric_drawn(void *context, const int32_t *rows, size_t n);
/* The bootstrap of a metric, from seed 0; NaN without draws, and of a metric that has no interval. The calibration
 * error has none: it counts the noise in every bin as error, and a draw, which takes some rows twice and leaves others
 * out, adds as much noise again. 80 rows of a calibrated model have an error of 0.10, on average over 200 such sets,
 * and their draws reach from 0.08 to 0.20; in 13 sets the error itself was outside. The slope and the intercept of the
 * recalibration (decisions.h) have intervals. */
interval metric_interval(metric_query *q, size_t n, const int32_t *group, int32_t draws);
int metric_has_interval(metric_name name);

/* A metric_function for errors pooled over points: the sum of above[row], minus the sum of minus[row] for another model
 * on the same rows, divided by the sum of below[row]. */
typedef struct metric_quotient {
    const double *above, *below; /* (n) sums of squares; numbers of points */
    const double *minus;         /* (n) or NULL */
} metric_quotient;
double metric_pooled(void *context, const int32_t *rows, size_t n);

#endif
