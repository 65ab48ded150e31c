/* What attention lies between: the distinct times of a record and the reference points of a model. It stands on mtan.h alone, as the
 * WebAssembly module has it too. */
#ifndef MTAN_TOOLS_REFERENCE_H
#define MTAN_TOOLS_REFERENCE_H

#include "../../../mtan.h"

/* Of a record whose events are in the order of time, ascending; NULL: they are only counted. Returns how many. */
size_t distinct_times(const mtan_record *record, mtan_real *times);
/* How many points a record with so many distinct times has, and the time of one of them, in the model's units. */
size_t reference_points(const mtan_config *c, size_t distinct);
double reference_time(const mtan_config *c, const mtan_real *times, size_t point);

#endif
