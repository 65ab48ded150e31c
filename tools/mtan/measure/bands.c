/* See bands.h. */
#include "bands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/array.h"
#include "../../data/percentile.h"

const double band_levels[BAND_LEVELS] = {0.5, 0.8, 0.95};
/* Quantiles of the normal distribution at (1 + level) / 2. */
static const double deviations[BAND_LEVELS] = {0.6744897501960817, 1.2815515655446004, 1.959963984540054};
enum { FITTED = 1 }; /* the level that the factors are fitted to */

static int by_gap(const void *left, const void *right) {
    const double a = ((const band_point *)left)->gap, b = ((const band_point *)right)->gap;
    return (a > b) - (a < b);
}

static void measure_row(band_row *row, const band_point *p, size_t n) {
    const double log_two_pi = 1.8378770664093453;
    memset(row, 0, sizeof *row);
    row->points = n;
    for (size_t i = 0; i < n; i++) {
        const double z = p[i].error / p[i].sd;
        row->mse += p[i].error * p[i].error / (double)n;
        row->log_likelihood -= 0.5 * (log_two_pi + 2 * log(p[i].sd) + z * z) / (double)n;
        for (int k = 0; k < BAND_LEVELS; k++) row->inside[k] += (fabs(z) <= deviations[k]) / (double)n;
    }
}

void bands_measure(band_table *table, band_point *points) {
    const size_t n = arrlenu(points);
    size_t finite = 0, first = 0;
    memset(table, 0, sizeof *table);
    if (n > 0) qsort(points, n, sizeof *points, by_gap);
    measure_row(&table->all, points, n);
    while (finite < n && points[finite].gap < INFINITY) finite++;
    for (size_t k = 1; k <= BAND_ROWS; k++) {
        size_t end = k > BAND_GAPS ? n : finite * k / BAND_GAPS;
        while (end > 0 && end < finite && !(points[end].gap > points[end - 1].gap))
            end++; /* equal gaps stay together */
        if (end <= first) continue;
        measure_row(&table->gap[table->gaps], points + first, end - first);
        table->gap[table->gaps].from = table->gaps > 0 ? table->gap[table->gaps - 1].to : 0;
        table->gap[table->gaps++].to = points[end - 1].gap;
        first = end;
    }
}

void bands_fit(mtan_real *factor, int32_t channels, const band_point *points) {
    double *size = tool_calloc(arrlenu(points) + 1, sizeof *size);
    for (int32_t d = 0; d < channels; d++) {
        size_t n = 0;
        for (size_t i = 0; i < arrlenu(points); i++)
            if (points[i].channel == d) size[n++] = fabs(points[i].error / points[i].sd);
        factor[d] = 1;
        if (n < BAND_LEAST) continue;
        sort_ascending(size, n);
        const double ratio = percentile_sorted(size, n, 100 * band_levels[FITTED]) / deviations[FITTED];
        if (ratio > 1e-6 && ratio < 1e6) factor[d] = (mtan_real)ratio;
    }
    free(size);
}
