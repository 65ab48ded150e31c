/* See attention_view.h. */
#include "attention_view.h"

#include <math.h>
#include <string.h>

#include "../../data/array.h"
#include "../run/reference.h"
#include "verdict.h"

/* The distinct times of a record, ascending, and the indices of those at which a channel was observed. A record may
 * contain an event twice (Q44). */
typedef struct moments {
    mtan_real *times; /* (L) */
    size_t *observed; /* indices into times, ascending */
} moments;

static moments moments_make(const mtan_record *r, int32_t channel) {
    moments m = {NULL, NULL};
    for (int32_t i = 0; i < r->n_events; i++) {
        const mtan_event *e = &r->events[i];
        if (i == 0 || e->time > r->events[i - 1].time) arrput(m.times, e->time);
        if (e->channel != channel) continue;
        if (arrlen(m.observed) == 0 || m.observed[arrlen(m.observed) - 1] + 1 < arrlenu(m.times))
            arrput(m.observed, arrlenu(m.times) - 1);
    }
    return m;
}

int attention_view_make(attention_view *v, mtan_predictor *run, mtan_record record, int32_t channel) {
    const mtan_config *config = &run->model->config;
    moments m = moments_make(&record, channel);
    const size_t L = arrlenu(m.times), n = arrlenu(m.observed);
    const size_t K = reference_points(config, L);
    mtan_real *all = tool_calloc(K * L, sizeof *all);
    int good;
    record.times = NULL, record.n_times = 0;
    good = mtan_predictor_attention(run, &record, 0, channel, all) == MTAN_OK;
    if (good) {
        v->times = n, v->references = K;
        v->time = tool_calloc(n, sizeof *v->time), v->reference = tool_calloc(K, sizeof *v->reference);
        v->weight = tool_calloc(K * n, sizeof *v->weight);
        for (size_t i = 0; i < n; i++) v->time[i] = (double)m.times[m.observed[i]];
        for (size_t k = 0; k < K; k++) {
            v->reference[k] = reference_time(config, m.times, k);
            for (size_t i = 0; i < n; i++) v->weight[k * n + i] = (double)all[k * L + m.observed[i]];
        }
    }
    arrfree(m.times), arrfree(m.observed), free(all);
    return good;
}

void attention_view_free(attention_view *v) {
    free(v->time), free(v->reference), free(v->weight);
    memset(v, 0, sizeof *v);
}

/* ---- how far from uniform ---- */

enum { RECORDS_SEEN = 8, OBSERVED_LEAST = 4 }; /* a channel with fewer observations shows nothing */

/* The channel that a record observes most often, and how often. */
static int32_t busiest(const dataset *d, const dataset_record *r, int32_t *often) {
    int32_t *count = tool_calloc(arrlenu(d->channels), sizeof *count), best = 0;
    const mtan_event *e = dataset_events(d, r);
    for (int32_t i = 0; i < r->n_events; i++) count[e[i].channel]++;
    for (int32_t c = 0; c < (int32_t)arrlen(d->channels); c++)
        if (count[c] > count[best]) best = c;
    *often = arrlen(d->channels) > 0 ? count[best] : 0;
    free(count);
    return best;
}

double attention_peak(mtan_predictor *run, const dataset *d, const int32_t *positions) {
    double most = NAN;
    for (size_t i = 0, seen = 0; i < arrlenu(positions) && seen < RECORDS_SEEN; i++) {
        int32_t often;
        const int32_t channel = busiest(d, &d->records[positions[i]], &often);
        attention_view v;
        if (often < OBSERVED_LEAST) continue;
        if (!attention_view_make(&v, run, dataset_view(d, (size_t)positions[i]), channel)) return NAN;
        const report_attention a = {NULL, NULL, v.time, v.reference, v.weight, v.times, v.references};
        most = fmax(most, verdict_peak(&a)); /* fmax skips the initial NaN */
        attention_view_free(&v);
        seen++;
    }
    return most;
}
