/* Explanations of a few records by a model of classes: the course of their predictions and the observations behind
 * them; and the most important channels. They fill the structures of report.h and own the memory behind them. */
#ifndef MTAN_TOOLS_STORIES_H
#define MTAN_TOOLS_STORIES_H

#include "../model/session.h"
#include "report.h"

typedef struct stories {
    report_story *records; /* stb_ds arrays */
    report_channel *channels;
    void **owned;
} stories;

/* Measures channels only if that takes seconds. 1, or 0 with a message printed; free in both cases. */
int stories_make(stories *x, session *s, const options *o, const int32_t *records, size_t n, int32_t positive);
void stories_free(stories *x);

#endif
