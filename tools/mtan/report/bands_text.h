/* What bands.h measures, for people and for programs. */
#ifndef MTAN_TOOLS_BANDS_TEXT_H
#define MTAN_TOOLS_BANDS_TEXT_H

#include <stdio.h>

#include "../measure/bands.h"

/* What the rows of a table are of: gaps are multiplied by time_scale, the data's, and its unit stands behind them. */
typedef struct band_units {
    double time_scale;
    const char *unit;
} band_units;

/* Row i of the table, all points last; NULL past it. `name` says which gaps it is of. */
enum { BAND_NAME = 64 };
const band_row *bands_row(const band_table *table, int i, const band_units *units, char name[BAND_NAME]);

/* Nothing where no point was held out. */
void bands_put(FILE *out, const band_table *table, const band_units *units);
void bands_json(FILE *out, const band_table *table, const band_units *units); /* , "bands": {...} */

#endif
