/* Rows of predictions on standard output, as CSV or as one JSON object per line: what `mtan predict`, `mtan interpolate` and
 * `mtan stream` print. */
#ifndef MTAN_TOOLS_ROWS_H
#define MTAN_TOOLS_ROWS_H

#include "../../../mtan.h"

/* The first line of CSV: record,time,channel,mean,sd or record[,time],p0,p1 and so on. */
void rows_header(const mtan_config *config, int interpolates);
/* time may be NULL; p (classes) */
void row_classes(int json, const char *record, const double *time, const double *p, int32_t classes);
void row_value(int json, const char *record, double time, const char *channel, double mean, double sd);

#endif
