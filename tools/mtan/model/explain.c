/* See explain.h. */
#include "explain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/generators.h"
#include "predictions.h"

/* ---- records slightly other than one ---- */

enum {
    TOGETHER_MOST = 1024,  /* variants in one call */
    EVENTS_MOST = 1 << 21, /* of all of them: 24 MB */
    EXCHANGES = 3          /* of a channel: the drop of one alone depends on who meets whom */
};

/* Variant `which` of a record; returns its number of events. */
typedef int32_t (*variant_function)(mtan_event *out, const mtan_record *of, size_t which);

static int32_t without_one(mtan_event *out, const mtan_record *of, size_t which) {
    const size_t after = (size_t)of->n_events - which - 1;
    memcpy(out, of->events, which * sizeof *out);
    memcpy(out + which, of->events + which + 1, after * sizeof *out);
    return of->n_events - 1;
}

static int32_t until(mtan_event *out, const mtan_record *of, size_t which) {
    int32_t n = 0;
    for (size_t times = 0; n < of->n_events; n++) {
        times += n == 0 || of->events[n].time > of->events[n - 1].time;
        if (times > which + 1) break;
        out[n] = of->events[n];
    }
    return n;
}

static size_t together(const mtan_record *of) {
    const size_t most = EVENTS_MOST / (size_t)(of->n_events > 0 ? of->n_events : 1);
    return most < 1 ? 1 : most > TOGETHER_MOST ? TOGETHER_MOST : most;
}

/* Classes of n variants: p and logit (n, C). */
static int classify_variants(runner *run, const mtan_record *of, size_t n, variant_function make, double *p,
                             double *logit) {
    const size_t C = (size_t)run->model->config.classes, room = (size_t)of->n_events, most = together(of);
    const size_t count = n < most ? n : most;
    mtan_event *events = tool_calloc(count * room, sizeof *events);
    mtan_record *records = tool_calloc(count, sizeof *records);
    size_t *row0 = tool_calloc(count + 1, sizeof *row0);
    int good = 1;
    for (size_t first = 0; first < n && good; first += count) {
        const size_t now = n - first < count ? n - first : count;
        for (size_t i = 0; i < now; i++) {
            records[i] = *of;
            records[i].events = events + i * room;
            records[i].n_events = make(events + i * room, of, first + i);
            row0[i + 1] = i + 1;
        }
        good = runner_classify(run, records, now, row0, p + first * C, logit ? logit + first * C : NULL);
    }
    free(events), free(records), free(row0);
    return good;
}

/* ---- observations ---- */

/* Of class k against all others: its logit minus the log of the sum of the others' exponentials. */
static double log_odds_of(const double *logit, int32_t classes, int32_t k) {
    double most = -INFINITY, sum = 0;
    for (int32_t c = 0; c < classes; c++)
        if (c != k) most = fmax(most, logit[c]);
    for (int32_t c = 0; c < classes; c++)
        if (c != k) sum += exp(logit[c] - most);
    return logit[k] - most - log(sum);
}

static int32_t likeliest(const double *p, int32_t classes) {
    int32_t best = 0;
    for (int32_t c = 1; c < classes; c++)
        if (p[c] > p[best]) best = c;
    return best;
}

int explain_observations(record_influence *f, runner *run, const mtan_record *record, int32_t of) {
    const int32_t C = run->model->config.classes;
    const size_t n = (size_t)record->n_events, all[2] = {0, 1};
    double *p = tool_calloc((n + 1) * (size_t)C, sizeof *p), *logit = tool_calloc((n + 1) * (size_t)C, sizeof *logit);
    const int good = runner_classify(run, record, 1, all, p, logit) &&
                     classify_variants(run, record, n, without_one, p + C, logit + C);
    memset(f, 0, sizeof *f);
    if (good) {
        f->of = of >= 0 ? of : likeliest(p, C);
        f->log_odds = log_odds_of(logit, C, f->of);
        f->change = tool_calloc(n, sizeof *f->change);
        for (size_t i = 0; i < n; i++) f->change[i] = f->log_odds - log_odds_of(logit + (i + 1) * (size_t)C, C, f->of);
    }
    free(p), free(logit);
    return good;
}

void record_influence_free(record_influence *f) {
    free(f->change);
    memset(f, 0, sizeof *f);
}

/* ---- time ---- */

int explain_course(record_course *c, runner *run, const mtan_record *record) {
    int good;
    memset(c, 0, sizeof *c);
    c->times = tool_calloc((size_t)record->n_events, sizeof *c->times);
    for (int32_t i = 0; i < record->n_events; i++)
        if (i == 0 || record->events[i].time > record->events[i - 1].time) c->times[c->n++] = record->events[i].time;
    c->p = tool_calloc(c->n * (size_t)run->model->config.classes, sizeof *c->p);
    good = classify_variants(run, record, c->n, until, c->p, NULL);
    if (!good) record_course_free(c);
    return good;
}

void record_course_free(record_course *c) {
    free(c->times), free(c->p);
    memset(c, 0, sizeof *c);
}

/* ---- channels ---- */

mtan_bounds exchanged_bounds(mtan_bounds b) {
    b.events *= 2, b.times *= 2;
    return b;
}

static int by_time(const void *left, const void *right) {
    const mtan_event *a = left, *b = right;
    if (a->time < b->time || a->time > b->time) return a->time < b->time ? -1 : 1;
    return (a->channel > b->channel) - (a->channel < b->channel);
}

static void take_channel(mtan_event **to, const dataset *d, int32_t record, int32_t channel, int others) {
    const dataset_record *r = &d->records[record];
    const mtan_event *e = dataset_events(d, r);
    for (int32_t i = 0; i < r->n_events; i++)
        if ((e[i].channel == channel) != others) arrput(*to, e[i]);
}

/* The data with a channel's series of each record replaced by those of record order[i]. Records and events are its own, the rest is
 * the data's. */
static dataset exchange(const dataset *d, const int32_t *positions, int32_t channel, const int32_t *order) {
    dataset mixed = *d;
    mixed.records = NULL, mixed.events = NULL;
    memcpy(arraddnptr(mixed.records, arrlenu(d->records)), d->records, arrlenu(d->records) * sizeof *d->records);
    for (size_t i = 0; i < arrlenu(positions); i++) {
        dataset_record *r = &mixed.records[positions[i]];
        mtan_event *e;
        r->event0 = arrlenu(mixed.events);
        take_channel(&mixed.events, d, positions[i], channel, 1);
        take_channel(&mixed.events, d, positions[order[i]], channel, 0);
        r->n_events = (int32_t)(arrlenu(mixed.events) - r->event0), r->n_times = 0;
        if (r->n_events == 0) continue;
        e = mixed.events + r->event0;
        qsort(e, (size_t)r->n_events, sizeof *e, by_time);
        for (int32_t k = 0; k < r->n_events; k++) r->n_times += k == 0 || e[k].time > e[k - 1].time;
    }
    return mixed;
}

static metric_table *table_of(const predictions *p) {
    return metric_table_new(p->p, p->classes == 2 ? p->score : NULL, p->label, p->rows, p->classes);
}

/* The model as it is, and with a channel exchanged a few times. */
typedef struct exchanged {
    metric_name metric;
    metric_table *model, *other[EXCHANGES];
} exchanged;

/* A metric_function. */
static double mean_drop(void *context, const int32_t *rows, size_t n) {
    const exchanged *x = context;
    double sum = 0;
    for (int i = 0; i < EXCHANGES; i++) {
        metric_query q = {x->model, x->metric, x->other[i]};
        sum += metric_higher(x->metric) * metric_drawn(&q, rows, n);
    }
    return sum / EXCHANGES;
}

static int explain_channel(channel_drop *drop, runner *run, const channel_question *q, const predictions *whole,
                           metric_table *model, int32_t channel) {
    int32_t *order = tool_calloc(arrlenu(q->positions), sizeof *order);
    predictions p[EXCHANGES];
    exchanged x = {q->metric, model, {NULL}};
    mtan_mt19937 rng;
    int made = 0, good = 1;
    mtan_mt_seed(&rng, 0); /* the same exchanges for every channel */
    while (made < EXCHANGES && good) {
        numpy_permutation(&rng, order, arrlenu(q->positions));
        dataset mixed = exchange(q->data, q->positions, channel, order);
        good = predictions_make(&p[made], run, &mixed, q->positions, q->faithful, q->batch);
        arrfree(mixed.records), arrfree(mixed.events);
        if (!good) break;
        predictions_drop_unlabelled(&p[made]);
        x.other[made] = table_of(&p[made]), made++;
    }
    if (good) {
        drop->drop = mean_drop(&x, NULL, whole->rows);
        drop->range = (interval){NAN, NAN};
        if (q->draws > 0) drop->range = metric_bootstrap(mean_drop, &x, whole->rows, whole->record, q->draws, 0);
    }
    for (int i = 0; i < made; i++) metric_table_free(x.other[i]), predictions_free(&p[i]);
    free(order);
    return good;
}

int explain_channels(channel_drop *drops, double *metric, runner *run, const channel_question *q,
                     void (*tell)(size_t channel, size_t channels)) {
    const size_t D = arrlenu(q->data->channels);
    predictions whole;
    metric_query query = {NULL, q->metric, NULL};
    int good = predictions_make(&whole, run, q->data, q->positions, q->faithful, q->batch);
    if (!good) return 0;
    predictions_drop_unlabelled(&whole);
    query.table = table_of(&whole);
    *metric = metric_drawn(&query, NULL, whole.rows);
    for (size_t c = 0; c < D && good; c++) {
        if (tell) tell(c, D);
        good = explain_channel(&drops[c], run, q, &whole, query.table, (int32_t)c);
    }
    metric_table_free(query.table);
    predictions_free(&whole);
    return good;
}
