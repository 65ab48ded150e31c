/* The two sides of attention: the times of a record, observed and asked, and the reference points of a model. It depends
 * on mtan.h only, as the WebAssembly module uses it too. */
#ifndef MTAN_TOOLS_REFERENCE_H
#define MTAN_TOOLS_REFERENCE_H

#include "../../../mtan.h"

/* Writes the distinct times, ascending, of a record whose events are in order of time; times NULL: only counts. Returns
 * how many. */
size_t distinct_times(const mtan_record *record, mtan_real *times);
int times_ascend(const mtan_real *times, size_t n);
/* The distinct times and the record's query times, which must ascend, as one ascending list; row (n_times): the place
 * of each query. times and row may be NULL. Returns how many there are. A model of labels of times learns from all of
 * them (own.h), and its answer at one time may depend on the other times that are asked. */
size_t asked_times(const mtan_record *record, mtan_real *times, size_t *row);
/* The number of reference points for a record with so many distinct times, and the time of one point, in the model's
 * units. */
size_t reference_points(const mtan_config *c, size_t distinct);
double reference_time(const mtan_config *c, const mtan_real *times, size_t point);

#endif
