/* What every loader promises of a data set, touched to its end. */
#ifndef MTAN_FUZZ_DATASET_WALK_H
#define MTAN_FUZZ_DATASET_WALK_H

#include "fuzz.h"

#include <math.h>

#include "../../tools/data/dataset.h"

/* `repeats`: a channel may have two events at one time. */
static void dataset_walk_events(const dataset *d, const mtan_record *r, int32_t n_times, int repeats) {
    int32_t times = 0;
    for (int32_t i = 0; i < r->n_events; i++) {
        const mtan_event *e = &r->events[i];
        PROMISE(isfinite(e->time) && isfinite(e->value));
        PROMISE(e->channel >= 0 && e->channel < (int32_t)arrlen(d->channels));
        times += i == 0 || e->time > e[-1].time;
        if (i > 0) PROMISE(e->time > e[-1].time || (!(e->time < e[-1].time) && e->channel >= e[-1].channel + !repeats));
    }
    PROMISE(times == n_times);
}

static inline void dataset_walk(const dataset *d, int repeats) {
    size_t events = 0;
    for (size_t i = 0; i < arrlenu(d->records); i++) {
        const mtan_record r = dataset_view(d, i);
        PROMISE(strlen(dataset_name(d, i)) > 0);
        dataset_walk_events(d, &r, d->records[i].n_times, repeats);
        events += (size_t)r.n_events;
        for (int32_t k = 0; k < d->records[i].n_labels; k++) {
            PROMISE(r.labels[k] >= MTAN_UNLABELED && r.labels[k] < (int32_t)arrlen(d->classes));
            if (r.times) PROMISE(isfinite(r.times[k]) && (k == 0 || r.times[k] >= r.times[k - 1]));
        }
    }
    PROMISE(events == arrlenu(d->events));
}

#endif
