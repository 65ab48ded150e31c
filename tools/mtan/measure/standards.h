/* Numbers of rows on one scale, as the regressions take them: standardised by the training rows, limited to STANDARD_LIMIT standard
 * deviations (one odd row must not decide), and the mean where a row has none (NaN). */
#ifndef MTAN_TOOLS_STANDARDS_H
#define MTAN_TOOLS_STANDARDS_H

#include <stddef.h>

#define STANDARD_LIMIT 10.0

typedef struct standards {
    size_t features;
    double *mean, *scale; /* (features) of the training rows that have the number */
} standards;

/* x (n, features), NaN: missing. */
standards standards_of(const double *x, size_t n, size_t features);
/* Number k of a row. */
double standard(const standards *s, const double *row, size_t k);
void standards_free(standards *s);

#endif
