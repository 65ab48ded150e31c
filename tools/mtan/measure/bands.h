/* Whether a model's bands are honest: how often points that it was not shown lie inside, and how large errors are, by how far away
 * the nearest observation was. */
#ifndef MTAN_TOOLS_BANDS_H
#define MTAN_TOOLS_BANDS_H

#include <stddef.h>
#include <stdint.h>

#include "../../../mtan.h"

/* A point that was not shown, in the model's units. */
typedef struct band_point {
    double error, sd; /* observed minus predicted; of an observation, noise included */
    double gap;       /* time to the nearest observation of its channel that was shown; infinite: there was none */
    int32_t channel;
} band_point;

enum { BAND_LEVELS = 3, BAND_GAPS = 4, BAND_ROWS = BAND_GAPS + 1 };
extern const double band_levels[BAND_LEVELS]; /* 0.5, 0.8, 0.95 */

typedef struct band_row {
    double from, to; /* gaps above `from`, up to `to`; infinite where the channel was not shown at all */
    size_t points;
    double mse, log_likelihood; /* means */
    double inside[BAND_LEVELS]; /* share of the points in the band of that level: the mean and so many sd about it */
} band_row;

typedef struct band_table {
    band_row all;
    band_row
        gap[BAND_ROWS]; /* as many points in each of the first, as far as gaps differ; then those without observation */
    int gaps;           /* how many of them have points */
} band_table;

/* points is an stb_ds array, which is sorted by gap. */
void bands_measure(band_table *table, band_point *points);
/* What the sd of each channel is multiplied by for 80 % of its points to lie in the band of 80 %: (channels), 1 for one with
 * fewer than BAND_LEAST points. */
enum { BAND_LEAST = 30 };
void bands_fit(mtan_real *factor, int32_t channels, const band_point *points);

#endif
