/* Linear regression with a ridge penalty: the standard baseline for a number that a model has to beat. It works on rows
 * of numbers and knows nothing of records.
 *
 * The numbers are standardised (standards.h). The weights minimise
 *
 *     sum over rows of (y - constant - sum of weight * number)^2 + ridge * sum of squared weights,
 *
 * with an unpenalised constant. This is scikit-learn's Ridge(alpha = ridge) on the standardised numbers. */
#ifndef MTAN_TOOLS_RIDGE_H
#define MTAN_TOOLS_RIDGE_H

#include "standards.h"

typedef struct ridge_regression {
    size_t features;
    double *weight; /* (features + 1); the constant comes last */
    standards standard;
    double ridge;
} ridge_regression;

/* x (n, features), NaN: missing; y (n). */
typedef struct ridge_rows {
    const double *x, *y;
    size_t n;
} ridge_rows;

void ridge_fit(ridge_regression *r, ridge_rows train, size_t features, double ridge);
/* Fits from the strongest ridge down until the squared error on `valid` gets worse, and keeps the best fit. */
void ridge_choose(ridge_regression *r, ridge_rows train, ridge_rows valid, size_t features);
double ridge_at(const ridge_regression *r, const double *x);
void ridge_free(ridge_regression *r);

#endif
