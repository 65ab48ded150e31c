/* An optional hook: a baseline's changes to the records of a batch before training or evaluation. Code that makes
 * batches calls the hook if there is one, and knows no model by name. */
#ifndef MTAN_TOOLS_BASELINES_ARRANGE_H
#define MTAN_TOOLS_BASELINES_ARRANGE_H

#define MTAN_INTERNALS
#include "../../mtan.h"

/* A batch about to be used. The hook may change the events that a record is encoded from and the targets that it is
 * scored on. */
typedef struct baseline_batch {
    const mtan_config *config;
    mtan_record *records; /* (n) with events sorted by time */
    int32_t n, training;
    /* only in training: */
    mtan_event *room; /* (n, most): room for events that the hook creates; no record has more than `most` */
    size_t most;
    uint32_t (*draw)(const void *context, uint64_t record); /* a random word for a record, different in every epoch */
    const void *context;
} baseline_batch;

typedef struct baseline_hook {
    void (*arrange)(const baseline_batch *b);
    int32_t mixes; /* a record may be encoded from another record's events, so their times are added to its own */
} baseline_hook;

/* NULL: the model takes records unchanged. */
const baseline_hook *baseline_hook_of(const mtan_config *c);
/* Arranges n records for an evaluation in batches of `batch`, the size of a batch in training; 0: not known, they stay
 * unchanged. */
void baseline_arrange(const mtan_config *c, mtan_record *records, size_t n, size_t batch);

#endif
