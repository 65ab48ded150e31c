/* What a probability of two classes is good for: who acts above a threshold, whom does he find and whom does he trouble, what is that
 * worth, and can the number itself be believed. Rows without a label are not counted; label 1 is the class that p is of. */
#ifndef MTAN_TOOLS_DECISIONS_H
#define MTAN_TOOLS_DECISIONS_H

#include "metrics.h"

/* Rows with p >= threshold are flagged. NaN where a share has nothing to be a share of. */
typedef struct decision {
    double threshold;
    double sensitivity, specificity; /* flagged among label 1; not flagged among label 0 */
    double ppv, npv;                 /* label 1 among the flagged; label 0 among the others */
    double flagged;                  /* of all rows */
    double benefit;     /* true positives minus false ones at the threshold's odds, by row (Vickers and Elkin 2006) */
    double benefit_all; /* the same for who flags everybody; who flags nobody has 0 */
} decision;
decision decision_at(double threshold, const double *p, const int32_t *label, size_t n);

/* Logistic recalibration: the label by intercept + slope * log-odds of p, by maximum likelihood. A slope of 1 and an intercept of 0
 * say what was meant; a slope below 1 says that p is too extreme. NaN where the likelihood has no largest value: one class alone, or
 * classes that a threshold separates. */
typedef struct recalibration {
    double slope, intercept;
    interval slope_range, intercept_range; /* 95 %, NaN without draws */
} recalibration;
recalibration recalibration_fit(const double *p, const int32_t *label, size_t n, const int32_t *group, int32_t draws);

#endif
