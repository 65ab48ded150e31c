/* See explain.h. */
#include "explain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/generators.h"
#include "predictions.h"
#include "../run/reference.h"

/* ---- records slightly other than one ---- */

enum {
    TOGETHER_MOST = 1024,  /* variants per call */
    EVENTS_MOST = 1 << 21, /* events of these variants: 24 MB */
    EXCHANGES = 3          /* exchanges per channel: a single one depends on chance */
};

/* Writes the events of variant `which` of a record; returns their number. */
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

/* Outputs of n variants: p and logit (n, C). */
static int classify_variants(runner *run, const mtan_record *of, size_t n, variant_function make, double *p,
                             double *logit) {
    const size_t C = (size_t)mtan_config_outputs(&run->model->config), room = (size_t)of->n_events, most = together(of);
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

/* The log-odds of class k against all others: its logit minus the log-sum-exp of the other logits. */
static double log_odds_of(const double *logit, int32_t classes, int32_t k) {
    double most = -INFINITY, sum = 0;
    for (int32_t c = 0; c < classes; c++)
        if (c != k) most = fmax(most, logit[c]);
    for (int32_t c = 0; c < classes; c++)
        if (c != k) sum += exp(logit[c] - most);
    return logit[k] - most - log(sum);
}

int32_t likeliest(const double *p, int32_t classes) {
    int32_t best = 0;
    for (int32_t c = 1; c < classes; c++)
        if (p[c] > p[best]) best = c;
    return best;
}

/* The output that is explained, from one row of outputs. */
static double answer_of(const mtan_config *c, const double *p, const double *logit, int32_t of, const prep *units) {
    switch (c->task) {
    case MTAN_TASK_CLASSES: return log_odds_of(logit, c->classes, of);
    case MTAN_TASK_NUMBER: return numbers_raw(units, p[mtan_config_outputs(c) / 2]);
    case MTAN_TASK_LABELS: break;
    }
    return logit[of];
}

/* Outputs of a record, then of the record without each of its observations: rows of O. */
typedef struct variants {
    double *p, *logit;
} variants;

static int leave_out_each(variants *v, runner *run, const mtan_record *record) {
    const size_t n = (size_t)record->n_events, O = (size_t)mtan_config_outputs(&run->model->config), all[2] = {0, 1};
    v->p = tool_calloc((n + 1) * O, sizeof *v->p), v->logit = tool_calloc((n + 1) * O, sizeof *v->logit);
    return runner_classify(run, record, 1, all, v->p, v->logit) &&
           classify_variants(run, record, n, without_one, v->p + O, v->logit + O);
}

static void find_influence(record_influence *f, const variants *v, const mtan_config *c, size_t n, const prep *units) {
    const size_t O = (size_t)mtan_config_outputs(c);
    f->said = answer_of(c, v->p, v->logit, f->of, units);
    f->change = tool_calloc(n, sizeof *f->change);
    for (size_t i = 0; i < n; i++)
        f->change[i] = f->said - answer_of(c, v->p + (i + 1) * O, v->logit + (i + 1) * O, f->of, units);
}

int explain_observations(record_influence *f, runner *run, const mtan_record *record, int32_t of, const prep *units) {
    const mtan_config *c = &run->model->config;
    variants v;
    const int good = leave_out_each(&v, run, record);
    memset(f, 0, sizeof *f);
    if (good) {
        f->of = of >= 0 ? of : likeliest(v.p, c->classes);
        find_influence(f, &v, c, (size_t)record->n_events, units);
    }
    free(v.p), free(v.logit);
    return good;
}

int explain_labels(record_influence *f, runner *run, const mtan_record *record) {
    const mtan_config *c = &run->model->config;
    variants v;
    const int good = leave_out_each(&v, run, record);
    for (int32_t k = 0; good && k < c->classes; k++) {
        f[k].of = k;
        find_influence(&f[k], &v, c, (size_t)record->n_events, NULL);
    }
    free(v.p), free(v.logit);
    return good;
}

void record_influence_free(record_influence *f) {
    free(f->change);
    memset(f, 0, sizeof *f);
}

/* ---- time ---- */

/* A record that is streamed event by event: a prediction costs the same however many events came before. */
typedef struct follower {
    const mtan_record *record;
    size_t bytes; /* of a stream */
    double *p;
} follower;

static int is_last_of_time(const mtan_record *record, int32_t i) {
    return i + 1 == record->n_events || record->events[i + 1].time > record->events[i].time;
}

static mtan_status follow_with(const follower *f, mtan_predictor *predictor, void *memory, mtan_real *p) {
    const size_t O = (size_t)mtan_config_outputs(&predictor->model->config);
    double *to = f->p;
    mtan_stream stream;
    mtan_status status = mtan_stream_init(&stream, predictor, 0, memory, f->bytes);
    for (int32_t i = 0; i < f->record->n_events && status == MTAN_OK; i++) {
        const mtan_event *e = &f->record->events[i];
        status = mtan_stream_push(&stream, e->time, e->channel, e->value);
        if (status != MTAN_OK || !is_last_of_time(f->record, i)) continue;
        status = mtan_stream_predict(&stream, f->record, p);
        for (size_t k = 0; k < O; k++) *to++ = (double)p[k];
    }
    return status;
}

static mtan_status follow(void *context, mtan_predictor *predictor, size_t first, size_t count) {
    const follower *f = context;
    void *memory = tool_realloc(NULL, f->bytes);
    mtan_real *p = tool_calloc((size_t)mtan_config_outputs(&predictor->model->config), sizeof *p);
    const mtan_status status = follow_with(f, predictor, memory, p);
    (void)first, (void)count; /* one record */
    free(p), free(memory);
    return status;
}

/* Models that cannot stream are run anew at every time. */
static int follow_record(runner *run, const mtan_record *record, size_t times, double *p) {
    follower f = {record, 0, p};
    return mtan_stream_size(run->model, 0, &f.bytes) == MTAN_OK ? runner_each(run, 1, follow, &f)
                                                                : classify_variants(run, record, times, until, p, NULL);
}

int explain_course(record_course *c, runner *run, const mtan_record *record) {
    int good;
    memset(c, 0, sizeof *c);
    c->times = tool_calloc((size_t)record->n_events, sizeof *c->times);
    c->n = distinct_times(record, c->times);
    c->p = tool_calloc(c->n * (size_t)mtan_config_outputs(&run->model->config), sizeof *c->p);
    good = follow_record(run, record, c->n, c->p);
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

/* The data with a channel's series in each record replaced by that of record order[i]. The copy owns its records and
 * events and shares the rest. */
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

/* The model on the original data, and on data with a channel exchanged, a few times. */
typedef struct exchanged {
    const worth *model;
    judged other[EXCHANGES];
} exchanged;

/* A metric_function. */
static double mean_drop(void *context, const int32_t *rows, size_t n) {
    const exchanged *x = context;
    double sum = 0;
    for (int i = 0; i < EXCHANGES; i++) {
        worth_query q = {x->model, worth_headline(x->model), &x->other[i].worth, NULL};
        sum += worth_drawn(&q, rows, n);
    }
    return sum / EXCHANGES;
}

static int explain_channel(channel_drop *drop, runner *run, const channel_question *q, const worth *model,
                           int32_t channel) {
    const int32_t *positions = q->on.positions;
    int32_t *order = tool_calloc(arrlenu(positions), sizeof *order);
    judged_data on = q->on;
    exchanged x = {.model = model};
    mtan_mt19937 rng;
    int made = 0, good = 1;
    mtan_mt_seed(&rng, 0); /* the same exchanges for every channel */
    while (made < EXCHANGES && good) {
        numpy_permutation(&rng, order, arrlenu(positions));
        dataset mixed = exchange(q->on.set, positions, channel, order);
        on.set = &mixed;
        good = judged_make(&x.other[made], run, &on);
        made += good;
        arrfree(mixed.records), arrfree(mixed.events);
    }
    if (good) {
        drop->drop = mean_drop(&x, NULL, model->rows);
        drop->range = (interval){NAN, NAN};
        if (q->draws > 0) drop->range = metric_bootstrap(mean_drop, &x, model->rows, model->record, q->draws, 0);
    }
    for (int i = 0; i < made; i++) judged_free(&x.other[i]);
    free(order);
    return good;
}

int explain_channels(channel_drop *drops, double *value, const char **key, runner *run, const channel_question *q,
                     void (*tell)(size_t channel, size_t channels)) {
    const size_t D = arrlenu(q->on.set->channels);
    judged whole;
    int good = judged_make(&whole, run, &q->on);
    if (!good) return 0;
    worth_query query = {&whole.worth, worth_headline(&whole.worth), NULL, NULL};
    *value = worth_drawn(&query, NULL, whole.worth.rows), *key = task_metric_key(whole.worth.task, query.metric);
    for (size_t c = 0; c < D && good; c++) {
        if (tell) tell(c, D);
        good = explain_channel(&drops[c], run, q, &whole.worth, (int32_t)c);
    }
    judged_free(&whole);
    return good;
}
