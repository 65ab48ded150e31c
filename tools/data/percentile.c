/* See percentile.h. */
#include "percentile.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

void sort_ascending(double *x, size_t n) {
    if (n > 1) qsort(x, n, sizeof *x, by_value);
}

/* Interpolates from the nearer end, so that the result is monotone and exact at both ends. */
double percentile_sorted(const double *x, size_t n, double percent) {
    const double place = percent / 100 * (double)(n - 1);
    const size_t i = (size_t)place < n - 1 ? (size_t)place : n - 1, next = i + 1 < n ? i + 1 : i;
    const double share = place - (double)i, step = x[next] - x[i];
    return share < 0.5 ? x[i] + step * share : x[next] - step * (1 - share);
}
