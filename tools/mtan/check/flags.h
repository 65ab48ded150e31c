/* Warnings about data that is valid but unlikely to train well: classes or channels in hardly any record, one class
 * with nearly all labels, labels that are numbers, reference points where nothing is ever observed. Each is a sentence
 * that says what to do. */
#ifndef MTAN_TOOLS_FLAGS_H
#define MTAN_TOOLS_FLAGS_H

#include "../../data/dataset.h"
#include "profile.h"

/* Appends to an stb_ds array of malloc'd texts. */
void flags_find(char ***flags, const profile *p, const dataset *d);

/* Reference points are spaced evenly from 0 to 1, the largest training time. The shares of them before a record's first
 * observation and after its last: medians over the records, whose times are in the model's units. NaN without an
 * observation. */
typedef struct idle_time {
    double before, after;
} idle_time;
idle_time idle_time_of(const dataset *prepared, const int32_t *positions);
/* own: own data, where --origin can count times from each record's first observation. */
void flags_idle_time(char ***flags, idle_time t, int own);

#endif
