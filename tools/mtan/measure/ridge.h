/* Linear regression with a ridge: what a statistician tries first for a number, so what a model has to beat. Rows of numbers in, a
 * number out; it knows nothing of records.
 *
 * The numbers of a row are standardised (standards.h). The weights minimise
 *
 *     sum over rows of (y - constant - sum of weight * number)^2 + ridge * sum of squared weights,
 *
 * the constant being free: scikit-learn's Ridge(alpha = ridge) on the standardised numbers. */
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
/* The same, with the ridge that has the smallest squared error on other rows: from the strongest down, until it gets worse. */
void ridge_choose(ridge_regression *r, ridge_rows train, ridge_rows valid, size_t features);
double ridge_at(const ridge_regression *r, const double *x);
void ridge_free(ridge_regression *r);

#endif
