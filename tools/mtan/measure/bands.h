/* Calibration of a model's bands on held-out points: the share of points inside each band, and the size of the errors
 * by the distance in time to the nearest observation. */
#ifndef MTAN_TOOLS_BANDS_H
#define MTAN_TOOLS_BANDS_H

#include <stddef.h>
#include <stdint.h>

#include "../../../mtan.h"

/* A held-out point, in the model's units. */
typedef struct band_point {
    double error, sd; /* error: observed minus predicted. sd: of an observation, so with the noise */
    double gap;       /* time to the nearest shown observation of its channel; infinite: there is none */
    int32_t channel;
} band_point;

enum { BAND_LEVELS = 3, BAND_GAPS = 4, BAND_ROWS = BAND_GAPS + 1 };
extern const double band_levels[BAND_LEVELS]; /* 0.5, 0.8, 0.95 */

typedef struct band_row {
    double from, to; /* gaps above `from`, up to `to`; infinite where no observation of the channel was shown */
    size_t points;
    double mse, log_likelihood; /* means */
    double inside[BAND_LEVELS]; /* share of the points inside the band of that level: mean +- a multiple of sd */
} band_row;

typedef struct band_table {
    band_row all;
    /* gap: first up to BAND_GAPS rows with equal numbers of points, as far as gaps differ; then the points of
     * channels without a shown observation */
    band_row gap[BAND_ROWS];
    int gaps; /* rows of `gap` that are used */
} band_table;

/* points: an stb_ds array; it gets sorted by gap. */
void bands_measure(band_table *table, band_point *points);
/* factor (channels): the multiple of its sd with which 80 % of a channel's points lie inside the band of 80 %; 1 for a
 * channel with fewer than BAND_LEAST points. */
enum { BAND_LEAST = 30 };
void bands_fit(mtan_real *factor, int32_t channels, const band_point *points);

#endif
