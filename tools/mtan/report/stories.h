/* A few records as a model of classes reads them: how their prediction comes about in time and which observations made it; and the
 * channels that it rests on. What report.h draws, with the memory behind it. */
#ifndef MTAN_TOOLS_STORIES_H
#define MTAN_TOOLS_STORIES_H

#include "../model/session.h"
#include "report.h"

typedef struct stories {
    report_story *records; /* stb_ds arrays */
    report_channel *channels;
    void **owned;
} stories;

/* Channels where measuring them is a matter of seconds, else none. 1, or 0 with a message printed; free in both cases. */
int stories_make(stories *x, session *s, const options *o, const int32_t *records, size_t n, int32_t positive);
void stories_free(stories *x);

#endif
