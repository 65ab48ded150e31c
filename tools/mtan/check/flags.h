/* What is not wrong with data, but will disappoint who trains on it: classes and channels of hardly any record, one class that is
 * nearly all, labels that are numbers, reference points where nothing is ever observed. Sentences, each with what to do. */
#ifndef MTAN_TOOLS_FLAGS_H
#define MTAN_TOOLS_FLAGS_H

#include "../../data/dataset.h"
#include "profile.h"

/* Appends to an stb_ds array of malloc'd texts. */
void flags_find(char ***flags, const profile *p, const dataset *d);

/* Reference points stand evenly from 0 to 1, the largest training time. What share of them lies before the first observation of a
 * record, and what share after the last: medians over the records, whose times are the model's. NaN without an observation. */
typedef struct idle_time {
    double before, after;
} idle_time;
idle_time idle_time_of(const dataset *prepared, const int32_t *positions);
/* own: data whose times can be counted from each record's first observation by an option. */
void flags_idle_time(char ***flags, idle_time t, int own);

#endif
