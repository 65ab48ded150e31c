/* See knots.h. */
#include "knots.h"

#include <stdlib.h>

#include "../../data/memory.h"
#include "../../data/percentile.h"
#include "../model/bundle.h"

/* The values of some records, grouped by channel. */
typedef struct values {
    double *value;
    size_t *begin; /* (channels + 1) */
} values;

/* A counting sort. Channel c is counted at begin[c + 2]; the prefix sums turn begin[c + 1] into the place of its next
 * value, which ends up where the next channel begins. */
static values values_of(const dataset *d, const int32_t *records, size_t channels) {
    values v = {NULL, tool_calloc(channels + 2, sizeof *v.begin)};
    for (size_t i = 0; i < arrlenu(records); i++) {
        const mtan_record r = dataset_view(d, (size_t)records[i]);
        for (int32_t k = 0; k < r.n_events; k++) v.begin[r.events[k].channel + 2]++;
    }
    for (size_t c = 0; c < channels; c++) v.begin[c + 2] += v.begin[c + 1];
    v.value = tool_calloc(v.begin[channels + 1] + 1, sizeof *v.value);
    for (size_t i = 0; i < arrlenu(records); i++) {
        const mtan_record r = dataset_view(d, (size_t)records[i]);
        for (int32_t k = 0; k < r.n_events; k++)
            v.value[v.begin[r.events[k].channel + 1]++] = (double)r.events[k].value;
    }
    return v;
}

void knots_fit(mtan_real *weights, const plan *p, const dataset *d, const split *s) {
    const mtan_config *c = &p->config;
    int32_t *records;
    values v;
    mtan_param knots;
    if (c->values == MTAN_VALUES_PLAIN || !param_find(&knots, c, "rec.values.knots")) return;
    records = split_positions(s, p->source.fit_all ? "all" : "train");
    v = values_of(d, records, (size_t)c->channels);
    for (int32_t channel = c->statics; channel < c->channels; channel++) {
        mtan_real *knot = weights + knots.offset + (size_t)(channel - c->statics) * (size_t)(c->bins + 1);
        double *value = v.value + v.begin[channel];
        const size_t n = v.begin[channel + 1] - v.begin[channel];
        sort_ascending(value, n);
        for (int32_t j = 0; n > 0 && j <= c->bins; j++) {
            knot[j] = (mtan_real)percentile_sorted(value, n, 100.0 * j / c->bins);
            if (j > 0 && knot[j] < knot[j - 1]) knot[j] = knot[j - 1]; /* rounding must not make the knots descend */
        }
    }
    free(v.value), free(v.begin), arrfree(records);
}
