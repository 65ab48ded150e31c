/* What a probability of two classes is good for: the flagged and missed cases when everybody above a threshold is
 * flagged, the net benefit of that, and the calibration of the probability. Rows without a label are not counted; p is
 * the probability of label 1. */
#ifndef MTAN_TOOLS_DECISIONS_H
#define MTAN_TOOLS_DECISIONS_H

#include "metrics.h"

/* Rows with p >= threshold are flagged. NaN where the denominator of a share is 0. */
typedef struct decision {
    double threshold;
    double sensitivity, specificity; /* flagged among label 1; not flagged among label 0 */
    double ppv, npv;                 /* label 1 among the flagged; label 0 among the others */
    double flagged;                  /* of all rows */
    /* Net benefit per row: true positives minus false ones at the threshold's odds (Vickers and Elkin 2006). */
    double benefit;
    double benefit_all; /* the same for flagging everybody; flagging nobody has 0 */
} decision;
decision decision_at(double threshold, const double *p, const int32_t *label, size_t n);

/* Logistic recalibration: a fit of the label by intercept + slope * log-odds of p, by maximum likelihood. Slope 1 and
 * intercept 0 mean that p is calibrated; a slope below 1 means that p is too extreme. NaN where the likelihood has no
 * maximum: only one class, or classes that a threshold separates. */
typedef struct recalibration {
    double slope, intercept;
    interval slope_range, intercept_range; /* 95 %, NaN without draws */
} recalibration;
recalibration recalibration_fit(const double *p, const int32_t *label, size_t n, const int32_t *group, int32_t draws);

#endif
