/* How well the curves of the synthetic set can be told from their points without a network: by straight lines, by a
 * Gaussian process, and by the kernel that made the curves, which no method can beat on average. */
#ifndef MTAN_TOOLS_LIMITS_H
#define MTAN_TOOLS_LIMITS_H

#include "../measure/metrics.h"

typedef struct limit_error {
    double reconstruction, interpolation; /* mean squared errors: at the points shown; over the true curve */
    interval reconstruction_range, interpolation_range; /* 95 %, over records */
} limit_error;

/* Is a row of table 5 one of these limits: lines, process, kernel? */
int limit_named(const char *row);
/* Measured on the test records of toy-interp; the process chooses its settings on the training records. Returns 1, or 0
 * with a message printed. */
int limit_measure(limit_error *e, const char *row, int32_t draws);

#endif
