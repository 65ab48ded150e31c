/* See bounds.h. */
#include "bounds.h"

#include "../../baselines/arrange.h"

/* Distinct times of the events and of the labels of a record, both ascending. */
static int32_t joined_times(const dataset *d, const dataset_record *r) {
    int32_t count = 0, i = 0, j = 0;
    while (i < r->n_events || j < r->n_labels) {
        const int event = i < r->n_events, label = j < r->n_labels;
        const mtan_real a = event ? d->events[r->event0 + (size_t)i].time : 0;
        const mtan_real b = label ? d->label_times[r->label0 + (size_t)j] : 0, t = event && (!label || a < b) ? a : b;
        while (i < r->n_events && !(d->events[r->event0 + (size_t)i].time > t)) i++;
        while (j < r->n_labels && !(d->label_times[r->label0 + (size_t)j] > t)) j++;
        count++;
    }
    return count;
}

mtan_bounds model_bounds(const mtan_config *c, const dataset *d) {
    mtan_bounds b = dataset_bounds(d);
    const baseline_hook *hook = baseline_hook_of(c);
    if (d->label_times && hook && hook->mixes) b.times *= 2; /* times of one record with events of another */
    for (size_t i = 0; c->architecture && d->label_times && i < arrlenu(d->records); i++) {
        const int32_t times = joined_times(d, &d->records[i]);
        if (times > b.times) b.times = times;
    }
    return b;
}

mtan_bounds interpolation_bounds(const dataset *d) {
    mtan_bounds b = dataset_bounds(d);
    int32_t most = b.times;
    for (size_t i = 0; i < arrlenu(d->records); i++) {
        const dataset_record *r = &d->records[i];
        if (r->n_times + r->n_truth > most) most = r->n_times + r->n_truth;
    }
    b.times = most;
    return b;
}
