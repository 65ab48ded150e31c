/* The results of bands.h as a text table and as JSON. */
#ifndef MTAN_TOOLS_BANDS_TEXT_H
#define MTAN_TOOLS_BANDS_TEXT_H

#include <stdio.h>

#include "../measure/bands.h"

/* Units of the gaps: they are multiplied by time_scale, the data's, and followed by its unit. */
typedef struct band_units {
    double time_scale;
    const char *unit;
} band_units;

/* Row i of the table, the row of all points last; NULL past it. `name` gets the range of gaps. */
enum { BAND_NAME = 64 };
const band_row *bands_row(const band_table *table, int i, const band_units *units, char name[BAND_NAME]);

/* Prints nothing if no point was held out. */
void bands_put(FILE *out, const band_table *table, const band_units *units);
void bands_json(FILE *out, const band_table *table, const band_units *units); /* , "bands": {...} */

#endif
