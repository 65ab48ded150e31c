/* Standardisation for the regressions: by mean and deviation of the training rows, limited to STANDARD_LIMIT standard
 * deviations so that a single outlier does not decide. A missing number (NaN) becomes the mean. */
#ifndef MTAN_TOOLS_STANDARDS_H
#define MTAN_TOOLS_STANDARDS_H

#include <stddef.h>

#define STANDARD_LIMIT 10.0

typedef struct standards {
    size_t features;
    double *mean, *scale; /* (features) over the training rows that have the number */
} standards;

/* x (n, features), NaN: missing. */
standards standards_of(const double *x, size_t n, size_t features);
/* Number k of a row, standardised. */
double standard(const standards *s, const double *row, size_t k);
void standards_free(standards *s);

#endif
