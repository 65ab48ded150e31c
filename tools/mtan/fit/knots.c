/* See knots.h. */
#include "knots.h"

#include <stdlib.h>

#include "../../data/memory.h"
#include "../../data/percentile.h"
#include "../model/bundle.h"

/* The values of a channel in these records, ascending; `room` for all of them. Returns how many. */
static size_t values_of(double *room, const dataset *d, const int32_t *records, int32_t channel) {
    size_t n = 0;
    for (size_t i = 0; i < arrlenu(records); i++) {
        const mtan_record r = dataset_view(d, (size_t)records[i]);
        for (int32_t k = 0; k < r.n_events; k++)
            if (r.events[k].channel == channel) room[n++] = (double)r.events[k].value;
    }
    sort_ascending(room, n);
    return n;
}

static size_t count_events(const dataset *d, const int32_t *records) {
    size_t n = 0;
    for (size_t i = 0; i < arrlenu(records); i++) n += (size_t)dataset_view(d, (size_t)records[i]).n_events;
    return n;
}

void knots_fit(mtan_real *weights, const plan *p, const dataset *d, const split *s) {
    const mtan_config *c = &p->config;
    int32_t *records;
    double *room;
    mtan_param knots;
    if (c->values == MTAN_VALUES_PLAIN || !param_find(&knots, c, "rec.values.knots")) return;
    records = split_positions(s, p->source.fit_all ? "all" : "train");
    room = tool_calloc(count_events(d, records) + 1, sizeof *room);
    for (int32_t channel = c->statics; channel < c->channels; channel++) {
        mtan_real *knot = weights + knots.offset + (size_t)(channel - c->statics) * (size_t)(c->bins + 1);
        const size_t n = values_of(room, d, records, channel);
        for (int32_t j = 0; n > 0 && j <= c->bins; j++) {
            knot[j] = (mtan_real)percentile_sorted(room, n, 100.0 * j / c->bins);
            if (j > 0 && knot[j] < knot[j - 1]) knot[j] = knot[j - 1]; /* by rounding: they may not fall */
        }
    }
    free(room), arrfree(records);
}
