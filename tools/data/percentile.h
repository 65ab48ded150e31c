/* Percentiles as NumPy defines them ('linear': between the two nearest values). */
#ifndef MTAN_TOOLS_PERCENTILE_H
#define MTAN_TOOLS_PERCENTILE_H

#include <stddef.h>

void sort_ascending(double *x, size_t n); /* no NaN */
/* Of n > 0 sorted values, percent in [0, 100]; the same bits as numpy.percentile of float64. */
double percentile_sorted(const double *x, size_t n, double percent);

#endif
