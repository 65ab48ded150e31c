/* Multinomial logistic regression with a ridge penalty: the standard baseline that a model has to beat. It works on
 * rows of numbers and knows nothing of records.
 *
 * The numbers are standardised (standards.h). The weights minimise
 *
 *     sum over rows of -log p(label) + ridge / 2 * sum of squared weights,
 *
 * with unpenalised constants. This is scikit-learn's LogisticRegression(C = 1 / ridge) on the standardised numbers. Two
 * classes have one column of weights, more classes have one column each. */
#ifndef MTAN_TOOLS_LOGISTIC_H
#define MTAN_TOOLS_LOGISTIC_H

#include <stddef.h>
#include <stdint.h>

#include "standards.h"

typedef struct logistic {
    size_t features;
    int32_t classes;
    size_t columns; /* of weights */
    double *weight; /* (features + 1, columns); the constants come last */
    standards standard;
    double ridge;
} logistic;

/* x (n, features), NaN: missing; label (n) of 0 .. classes - 1. */
typedef struct logistic_rows {
    const double *x;
    const int32_t *label;
    size_t n;
} logistic_rows;

void logistic_fit(logistic *r, logistic_rows train, size_t features, int32_t classes, double ridge);
/* Fits from the strongest ridge down until the log-loss on `valid` gets worse, and keeps the best fit. */
void logistic_choose(logistic *r, logistic_rows train, logistic_rows valid, size_t features, int32_t classes);
void logistic_at(const logistic *r, const double *x, double *p /* (classes) */);
void logistic_free(logistic *r);

#endif
