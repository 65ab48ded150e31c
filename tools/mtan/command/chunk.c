/* See chunk.h. Sections: classes; curves; records that are too large; a chunk. */
#include "chunk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../run/bounds.h"
#include "../run/device.h"
#include "../base/messages.h"

enum { RECORDS_AT_ONCE = 16, QUERIES_AT_ONCE = 512 };
static const size_t most_bytes = (size_t)1 << 31; /* of a workspace for one record */

/* Has the output a row for each of a record's times? */
static int per_time(const chunk *c) {
    return !c->grid.n && c->model->config.classify == MTAN_CLASSIFY_TIME;
}

/* Are there rows to write? Also after MTAN_ERR_NUMERIC, which says that the results of some records are not finite. */
static int has_rows(const chunk *c, int good) {
    return good || c->run.status == MTAN_ERR_NUMERIC;
}

/* Is the record's result not finite? Reports it if so. */
static int is_broken(chunk *c, size_t record) {
    if (!c->run.broken[record]) return 0;
    complain("record %s: %s", dataset_name(&c->records, record), status_message(MTAN_ERR_NUMERIC));
    return c->failed = 1;
}

/* ---- classes ---- */

/* The rows of a record: one for each of its times, those of its labels included, or a single one. */
static size_t rows_of(const chunk *c, size_t record) {
    const dataset_record *r = &c->records.records[record];
    return !per_time(c) ? 1 : (size_t)(r->n_labels > 0 ? r->n_labels : r->n_times);
}

/* The text of a record's first time; NULL: its row has no time. */
static const char *first_time(const chunk *c, size_t record) {
    return per_time(c) && rows_of(c, record) > 0 ? c->records.time_texts + c->records.records[record].time_text : NULL;
}

/* Prints the rows of one record, p (rows, C). *time is the text of the first row's time, and moves past the last. */
static void put_classes(chunk *c, size_t record, const char **time, size_t rows, const double *p) {
    for (size_t i = 0; i < rows; i++) {
        row_classes(&c->out, dataset_name(&c->records, record), *time,
                    p + i * (size_t)mtan_config_outputs(&c->model->config));
        if (*time) *time += strlen(*time) + 1;
    }
}

static int classify(chunk *c) {
    const size_t n = arrlenu(c->records.records), C = (size_t)mtan_config_outputs(&c->model->config);
    mtan_record *records = tool_calloc(n, sizeof *records);
    size_t *row0 = tool_calloc(n + 1, sizeof *row0);
    double *p;
    int good;
    for (size_t i = 0; i < n; i++) {
        records[i] = dataset_view(&c->records, i);
        row0[i + 1] = row0[i] + rows_of(c, i);
    }
    p = tool_calloc(row0[n] * C, sizeof *p);
    good = has_rows(c, runner_classify(&c->run, records, n, row0, p, NULL));
    for (size_t i = 0; good && i < n; i++) {
        const char *time = first_time(c, i);
        if (is_broken(c, i)) continue;
        put_classes(c, i, &time, row0[i + 1] - row0[i], p + row0[i] * C);
    }
    free(p), free(row0), free(records);
    return good;
}

/* ---- curves ---- */

typedef struct curves {
    const chunk *chunk;
    mtan_real *mean, *sd; /* (records, queries, D) */
    mtan_real *times;     /* (records, queries) */
    size_t query0, queries;
} curves;

/* Query q of a record, in the data's unit. */
static double query_time(const chunk *c, size_t record, size_t q) {
    const dataset_record *r = &c->records.records[record];
    const mtan_event *e = dataset_events(&c->records, r);
    const double last = r->n_events > 0 ? (double)e[r->n_events - 1].time : 0;
    const double origin = c->grid.after_last ? prep_raw_time(c->prep, c->part, last) : 0;
    return origin + (c->grid.first + (double)q * c->grid.step);
}

/* Allocates a block of the grid that starts at query0, with its times. */
static curves curves_start(const chunk *c, size_t query0) {
    const size_t left = c->grid.n - query0, queries = left < QUERIES_AT_ONCE ? left : QUERIES_AT_ONCE;
    const size_t records = arrlenu(c->records.records), n = records * queries * (size_t)c->model->config.channels;
    curves s = {c,
                tool_calloc(n, sizeof *s.mean),
                tool_calloc(n, sizeof *s.sd),
                tool_calloc(records * queries, sizeof *s.times),
                query0,
                queries};
    for (size_t i = 0; i < records * queries; i++)
        s.times[i] = prep_time(c->prep, c->part, query_time(c, i / queries, query0 + i % queries));
    return s;
}

static void curves_free(curves *s) {
    free(s->mean), free(s->sd), free(s->times);
}

static mtan_status interpolate_some(void *context, mtan_predictor *predictor, size_t first, size_t count) {
    const curves *s = context;
    const size_t block = s->queries * (size_t)predictor->model->config.channels;
    mtan_status status = MTAN_OK;
    for (size_t i = first; i < first + count && status == MTAN_OK; i++) {
        mtan_record r = dataset_view(&s->chunk->records, i);
        r.times = s->times + i * s->queries, r.n_times = (int32_t)s->queries;
        status = mtan_predictor_interpolate(predictor, &r, s->mean + i * block, s->sd + i * block);
    }
    return status;
}

/* Is the time before the record's first observation, or after its last? In model units. */
static int lies_outside(const dataset *d, size_t record, mtan_real time) {
    const dataset_record *r = &d->records[record];
    const mtan_event *e = d->events + r->event0;
    return r->n_events == 0 || time < e[0].time || time > e[r->n_events - 1].time;
}

static void put_curve(chunk *c, const curves *s, size_t record) {
    const prep *p = c->prep;
    const int32_t D = c->model->config.channels;
    const char *name = dataset_name(&c->records, record);
    for (size_t q = 0; q < s->queries; q++) {
        const int outside = lies_outside(&c->records, record, s->times[record * s->queries + q]);
        for (int32_t d = 0; d < D; d++) {
            const size_t at = (record * s->queries + q) * (size_t)D + (size_t)d;
            const double mean = prep_raw_value(p, d, (double)s->mean[at]),
                         sd = prep_raw_spread(p, d, (double)s->sd[at]);
            char number[16], time[32];
            const char *channel = d < (int32_t)arrlen(p->channels) ? p->channels[d] : number;
            snprintf(number, sizeof number, "%d", (int)d);
            snprintf(time, sizeof time, c->grid.after_last ? "%.7g" : "%.9g", query_time(c, record, s->query0 + q));
            row_value(&c->out, name, time, channel, mean, sd, outside);
        }
    }
}

/* Prints one record's whole grid before the next record's. A grid longer than a block therefore takes one record at a
 * time; it stops at a block whose curve is not finite. */
static int interpolate(chunk *c) {
    const size_t n = arrlenu(c->records.records);
    size_t q = 0;
    int good;
    do {
        curves s = curves_start(c, q);
        good = has_rows(c, runner_each(&c->run, n, interpolate_some, &s));
        for (size_t i = 0; good && i < n; i++)
            if (!is_broken(c, i)) put_curve(c, &s, i);
        curves_free(&s);
        q += QUERIES_AT_ONCE;
    } while (q < c->grid.n && c->run.status == MTAN_OK);
    return good;
}

/* ---- records that are too large ---- */

typedef struct lone {
    mtan_predictor predictor;
    mtan_stream stream;
    void *memory, *gathered;
} lone;

static int has_streams(const mtan_model *model) {
    size_t bytes;
    return !model->config.architecture && !on_device(model->backend) && mtan_stream_size(model, 0, &bytes) == MTAN_OK;
}

/* Has a runner room for a record of that size? Where there are no streams, the record may also run alone. */
static int has_room(const chunk *c, int32_t events, int32_t times) {
    const int32_t queries = c->grid.n ? QUERIES_AT_ONCE : 1, streams = has_streams(c->model);
    const mtan_bounds most = {streams ? RUNNER_CHUNK : 1, events, times > queries ? times : queries};
    size_t bytes;
    return mtan_predictor_size(c->model, &most, &bytes) == MTAN_OK && (streams || bytes <= most_bytes);
}

/* Feeds a stream with all observations of the record, in the order of time. */
static mtan_status lone_start(lone *l, const chunk *c, const mtan_record *r) {
    const mtan_bounds most = {1, 0, QUERIES_AT_ONCE};
    size_t bytes = 0, state = 0;
    mtan_status status = mtan_predictor_size(c->model, &most, &bytes);
    if (status == MTAN_OK) status = mtan_stream_size(c->model, 0, &state);
    l->memory = tool_realloc(NULL, bytes), l->gathered = tool_realloc(NULL, state);
    if (status == MTAN_OK) status = mtan_predictor_init(&l->predictor, c->model, &most, l->memory, bytes);
    if (status == MTAN_OK) status = mtan_stream_init(&l->stream, &l->predictor, 0, l->gathered, state);
    l->predictor.seed = c->seed;
    for (int32_t i = 0; status == MTAN_OK && i < r->n_events; i++)
        status = mtan_stream_push(&l->stream, r->events[i].time, r->events[i].channel, r->events[i].value);
    return status;
}

static mtan_status lone_interpolate(lone *l, chunk *c, mtan_record *ask) {
    mtan_status status = MTAN_OK;
    for (size_t q = 0; q < c->grid.n && status == MTAN_OK; q += QUERIES_AT_ONCE) {
        curves s = curves_start(c, q);
        ask->times = s.times, ask->n_times = (int32_t)s.queries;
        status = mtan_stream_interpolate(&l->stream, ask, s.mean, s.sd);
        if (status == MTAN_OK) put_curve(c, &s, 0);
        curves_free(&s);
    }
    return status;
}

/* Collects up to QUERIES_AT_ONCE times of the labels, if there are any, or else distinct times of the events, from *at
 * on, which moves past them. Returns how many. */
static int32_t next_times(const mtan_record *r, int32_t *at, mtan_real *times) {
    const int32_t end = r->times ? r->n_times : r->n_events;
    int32_t n = 0;
    for (; *at < end; ++*at) {
        const mtan_real time = r->times ? r->times[*at] : r->events[*at].time;
        if (!r->times && n > 0 && !(time > times[n - 1])) continue;
        if (n == QUERIES_AT_ONCE) break;
        times[n++] = time;
    }
    return n;
}

static mtan_status lone_classify(lone *l, chunk *c, mtan_record *ask) {
    const size_t C = (size_t)mtan_config_outputs(&c->model->config);
    mtan_real times[QUERIES_AT_ONCE], *out = tool_calloc(QUERIES_AT_ONCE * C, sizeof *out);
    double *p = tool_calloc(QUERIES_AT_ONCE * C, sizeof *p);
    const char *time = first_time(c, 0);
    const mtan_record all = *ask;
    const int32_t end = all.times ? all.n_times : all.n_events;
    mtan_status status;
    int32_t at = 0;
    do {
        const size_t rows = per_time(c) ? (size_t)(ask->n_times = next_times(&all, &at, times)) : 1;
        if (per_time(c)) ask->times = times;
        status = mtan_stream_predict(&l->stream, ask, out);
        for (size_t i = 0; status == MTAN_OK && i < rows * C; i++) p[i] = (double)out[i];
        if (status == MTAN_OK) put_classes(c, 0, &time, rows, p);
    } while (status == MTAN_OK && per_time(c) && at < end);
    free(out), free(p);
    return status;
}

/* Runs the only record of the chunk. */
static void run_alone(chunk *c) {
    mtan_record r = dataset_view(&c->records, 0);
    mtan_status status = MTAN_ERR_SIZE;
    lone l = {0};
    if (has_streams(c->model)) {
        status = lone_start(&l, c, &r);
        if (status == MTAN_OK) status = c->grid.n ? lone_interpolate(&l, c, &r) : lone_classify(&l, c, &r);
    }
    free(l.memory), free(l.gathered);
    if (status == MTAN_OK) return;
    c->failed = 1;
    complain("record %s, which is left out: %d observations at %d times: %s", dataset_name(&c->records, 0),
             (int)c->records.records[0].n_events, (int)c->records.records[0].n_times, mtan_status_message(status));
}

/* ---- a chunk ---- */

/* Grows the predictors to the largest record seen. */
static int fit_runner(chunk *c) {
    const mtan_bounds need = model_bounds(&c->model->config, &c->records);
    const int32_t queries = c->grid.n ? QUERIES_AT_ONCE : 1;
    char error[512];
    if (c->run.predictor && need.events <= c->bounds.events && need.times <= c->bounds.times) return 1;
    if (c->run.predictor) runner_stop(&c->run);
    c->bounds = need;
    if (has_room(c, need.events + need.events / 2, need.times + need.times / 2))
        c->bounds.events += need.events / 2, c->bounds.times += need.times / 2;
    if (c->bounds.times < queries) c->bounds.times = queries;
    if (!runner_start(&c->run, c->model, c->bounds, c->threads, error)) return complain("%s", error), 0;
    runner_seed(&c->run, c->seed);
    return 1;
}

static void clear(dataset *d) {
    arrsetlen(d->records, 0), arrsetlen(d->events, 0), arrsetlen(d->names, 0), arrsetlen(d->time_texts, 0);
    arrsetlen(d->labels, 0), arrfree(d->label_times);
}

int chunk_run(chunk *c) {
    int good;
    if (arrlen(c->records.records) == 0) return 1;
    if (!fit_runner(c)) return clear(&c->records), 0;
    good = c->grid.n ? interpolate(c) : classify(c);
    if (!good)
        complain("record %s%s: %s", dataset_name(&c->records, c->run.failed), runner_doubt(&c->run),
                 status_message(c->run.status));
    clear(&c->records);
    fflush(stdout);
    return good;
}

static void count_far(chunk *c, const mtan_event *raw, int32_t n) {
    const mtan_prep units = prep_view(c->prep, c->part);
    for (int32_t i = 0; i < n; i++) {
        const mtan_observation x = {(double)raw[i].time, raw[i].channel, (double)raw[i].value};
        far_count(&c->far, &units, &x);
    }
}

/* Adds n raw events of one time to the last record, in model units. If any of them remains and the time differs from
 * the one before, the time becomes one of the record's times and keeps the text that it was read from; NULL: no text. */
static void take_time(chunk *c, const mtan_event *raw, int32_t n, const char *text) {
    dataset_record *r = &arrlast(c->records.records);
    mtan_event *e = arraddnptr(c->records.events, (size_t)n);
    int32_t kept;
    int is_new;
    memcpy(e, raw, (size_t)n * sizeof *e);
    count_far(c, raw, n);
    kept = prep_events(c->prep, c->part, e, n);
    is_new = kept > 0 && (r->n_events == 0 || e[0].time > e[-1].time);
    r->n_events += kept;
    r->n_times += is_new;
    arrsetlen(c->records.events, r->event0 + (size_t)r->n_events);
    if (is_new && text) dataset_add_time_text(&c->records, text);
}

/* Adds the times of a raw record's labels, which its predictions belong to. What the labels are, no model needs. */
static void take_label_times(chunk *c, const dataset *from, const dataset_record *r) {
    const char *text = from->time_texts ? from->time_texts + r->time_text : NULL;
    for (size_t i = r->label0; i < r->label0 + (size_t)r->n_labels; i++) {
        const mtan_real raw = from->label_times[i];
        arrput(c->records.label_times, prep_time(c->prep, c->part, (double)raw));
        dataset_add_label(&c->records, MTAN_UNLABELED);
        dataset_add_time_text(&c->records, text ? text : row_time(raw).text);
        if (text) text += strlen(text) + 1;
    }
}

/* Are the predictions of a raw record those at the times of its labels? own.h has added the observed times to them. */
static int asks_labels(const chunk *c, const dataset *from, const dataset_record *r) {
    return per_time(c) && from->label_times && r->n_labels > 0;
}

static void take(chunk *c, const dataset *from, size_t record) {
    const dataset_record *r = &from->records[record];
    const int asked = asks_labels(c, from, r);
    const char *text = from->time_texts && per_time(c) && !asked ? from->time_texts + r->time_text : NULL;
    dataset_add_record(&c->records, dataset_name(from, record), -1);
    for (int32_t i = 0, n; i < r->n_events; i += n) {
        const mtan_event *e = from->events + r->event0 + i;
        for (n = 1; i + n < r->n_events && !(e[n].time > e->time);) n++;
        take_time(c, e, n, text || asked || !per_time(c) ? text : row_time(e->time).text);
        if (text) text += strlen(text) + 1;
    }
    if (asked) take_label_times(c, from, r);
}

int chunk_take(chunk *c, const dataset *from, size_t record, int part) {
    const size_t at_once = c->grid.n > QUERIES_AT_ONCE ? 1 : (size_t)RECORDS_AT_ONCE * (size_t)c->threads;
    const dataset_record *r = &from->records[record];
    const int32_t times = asks_labels(c, from, r) && r->n_labels > r->n_times ? r->n_labels : r->n_times;
    const int fits = r->n_events <= c->bounds.events && times <= c->bounds.times;
    const int alone = !fits && !has_room(c, r->n_events, times);
    if ((alone || part != c->part) && !chunk_run(c)) return 0;
    c->part = part;
    take(c, from, record);
    if (!alone) return arrlenu(c->records.records) < at_once || chunk_run(c);
    run_alone(c);
    clear(&c->records);
    fflush(stdout);
    return 1;
}

void chunk_free(chunk *c) {
    far_free(&c->far);
    runner_stop(&c->run);
    dataset_free(&c->records);
}
