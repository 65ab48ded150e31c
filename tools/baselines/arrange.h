/* What a baseline does to the records of a batch before they are trained or evaluated on: an optional hook. Whoever makes
 * batches calls it where there is one, and knows no model by name. */
#ifndef MTAN_TOOLS_BASELINES_ARRANGE_H
#define MTAN_TOOLS_BASELINES_ARRANGE_H

#define MTAN_INTERNALS
#include "../../mtan.h"

/* A batch as it is about to be used. The hook may change what a record is encoded from (events) and scored on (targets). */
typedef struct baseline_batch {
    const mtan_config *config;
    mtan_record *records; /* (n) with events sorted by time */
    int32_t n, training;
    /* in training alone */
    mtan_event *room; /* (n, most): for events that the hook makes; no record has more than `most` */
    size_t most;
    uint32_t (*draw)(const void *context, uint64_t record); /* a random word for a record, another one in every epoch */
    const void *context;
} baseline_batch;

typedef struct baseline_hook {
    void (*arrange)(const baseline_batch *b);
    int32_t mixes; /* a record may be encoded from another one's events: their times come on top of its own */
} baseline_hook;

/* NULL: the model takes records as they are. */
const baseline_hook *baseline_hook_of(const mtan_config *c);
/* Arranges n records for an evaluation in batches of `batch`, as training had them; 0: not known, they stay as they are. */
void baseline_arrange(const mtan_config *c, mtan_record *records, size_t n, size_t batch);

#endif
