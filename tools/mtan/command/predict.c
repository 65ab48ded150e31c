/* mtan predict and mtan interpolate: records in, rows out, in the order in which they came. Own data is a stream: memory is that of a
 * few dozen records, whatever the length of the file. A record that cannot be used, or whose result is not finite, is reported,
 * left out, and makes the exit status 1. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/field.h"
#include "../../data/own.h"
#include "commands.h"
#include "../model/bounds.h"
#include "../model/device.h"
#include "rows.h"
#include "../model/runner.h"
#include "shared_options.h"
#include "../model/data_sets.h"

enum { RECORDS_AT_ONCE = 16, QUERIES_AT_ONCE = 512, MOST_QUERIES = 10000000, USUAL_SAMPLES = 20 };

typedef struct grid {
    double first, step;
    size_t n;
} grid;

typedef struct job {
    const options *options;
    bundle bundle;
    source source;
    dataset chunk; /* records that wait for their turn, in model units */
    runner run;
    mtan_bounds bounds; /* of the runner; {0}: not started */
    grid grid;          /* times to interpolate at, in the data's unit; n = 0: classify */
    row_printer out;
    int per_time; /* a row for each of a record's times */
    int failed;
} job;

/* ---- a chunk of records through the model ---- */

/* The predictors grow with the largest record seen. */
static int fit_runner(job *j) {
    const mtan_bounds need = model_bounds(&j->bundle.model.config, &j->chunk);
    const int32_t queries = j->grid.n ? QUERIES_AT_ONCE : 1;
    char error[512];
    if (j->run.predictor && need.events <= j->bounds.events && need.times <= j->bounds.times) return 1;
    if (j->run.predictor) runner_stop(&j->run);
    j->bounds.events = need.events + need.events / 2;
    j->bounds.times = need.times + need.times / 2 > queries ? need.times + need.times / 2 : queries;
    if (!runner_start(&j->run, &j->bundle.model, j->bounds, option_threads(j->options), error))
        return complain("%s", error), 0;
    runner_seed(&j->run, (uint64_t)option_integer(j->options, "seed", 0));
    return 1;
}

/* Has a chunk rows to be written? It has when all went wrong is that results of some records are not finite. */
static int has_rows(const job *j, int good) {
    return good || j->run.status == MTAN_ERR_NUMERIC;
}

/* Says so of a record whose result is not finite. */
static int is_broken(job *j, size_t record) {
    if (!j->run.broken[record]) return 0;
    complain("record %s: %s", dataset_name(&j->chunk, record), status_message(MTAN_ERR_NUMERIC));
    return j->failed = 1;
}

static int classify_chunk(job *j) {
    const size_t n = arrlenu(j->chunk.records), C = (size_t)j->bundle.model.config.classes;
    mtan_record *records = tool_calloc(n, sizeof *records);
    size_t *row0 = tool_calloc(n + 1, sizeof *row0);
    double *p;
    int good;
    for (size_t i = 0; i < n; i++) {
        records[i] = dataset_view(&j->chunk, i);
        row0[i + 1] = row0[i] + (j->per_time ? (size_t)j->chunk.records[i].n_times : 1);
    }
    p = tool_calloc(row0[n] * C, sizeof *p);
    good = has_rows(j, runner_classify(&j->run, records, n, row0, p, NULL));
    for (size_t i = 0; good && i < n; i++) {
        const dataset_record *r = &j->chunk.records[i];
        const char *time = j->per_time && r->n_times > 0 ? j->chunk.time_texts + r->time_text : NULL;
        if (is_broken(j, i)) continue;
        for (size_t row = row0[i]; row < row0[i + 1]; row++) {
            row_classes(&j->out, dataset_name(&j->chunk, i), time, p + row * C);
            if (time) time += strlen(time) + 1;
        }
    }
    free(p), free(row0), free(records);
    return good;
}

typedef struct curves {
    const job *job;
    mtan_real *mean, *sd; /* (records, queries, D) */
    mtan_real *times;     /* (queries) */
    size_t queries;
} curves;

static mtan_status interpolate_some(void *context, mtan_predictor *predictor, size_t first, size_t count) {
    const curves *c = context;
    const size_t block = c->queries * (size_t)predictor->model->config.channels;
    mtan_status status = MTAN_OK;
    for (size_t i = first; i < first + count && status == MTAN_OK; i++) {
        mtan_record r = dataset_view(&c->job->chunk, i);
        r.times = c->times, r.n_times = (int32_t)c->queries;
        status = mtan_predictor_interpolate(predictor, &r, c->mean + i * block, c->sd + i * block);
    }
    return status;
}

static void put_curve(job *j, const curves *c, size_t record, size_t query0) {
    const prep *p = &j->bundle.prep;
    const int32_t D = j->bundle.model.config.channels;
    const char *name = dataset_name(&j->chunk, record);
    for (size_t q = 0; q < c->queries; q++)
        for (int32_t d = 0; d < D; d++) {
            const size_t at = (record * c->queries + q) * (size_t)D + (size_t)d;
            const double mean = prep_raw_value(p, d, (double)c->mean[at]),
                         sd = prep_raw_spread(p, d, (double)c->sd[at]);
            char number[16], time[32];
            const char *channel = d < (int32_t)arrlen(p->channels) ? p->channels[d] : number;
            snprintf(number, sizeof number, "%d", (int)d);
            snprintf(time, sizeof time, "%.9g", j->grid.first + (double)(query0 + q) * j->grid.step);
            row_value(&j->out, name, time, channel, mean, sd);
        }
}

/* One record's whole grid before the next record's: a grid longer than a block takes one record at a time. */
static int interpolate_block(job *j, size_t query0, size_t queries) {
    const size_t n = arrlenu(j->chunk.records), block = queries * (size_t)j->bundle.model.config.channels;
    curves c = {j, tool_calloc(n * block, sizeof *c.mean), tool_calloc(n * block, sizeof *c.sd),
                tool_calloc(queries, sizeof *c.times), queries};
    int good;
    for (size_t q = 0; q < queries; q++)
        c.times[q] = prep_time(&j->bundle.prep, SPLIT_TEST, j->grid.first + (double)(query0 + q) * j->grid.step);
    good = has_rows(j, runner_each(&j->run, n, interpolate_some, &c));
    for (size_t i = 0; good && i < n; i++)
        if (!is_broken(j, i)) put_curve(j, &c, i, query0);
    free(c.mean), free(c.sd), free(c.times);
    return good;
}

/* The grid of a record ends where its curve is not finite. */
static int interpolate_chunk(job *j) {
    size_t q = 0;
    int good;
    do {
        good = interpolate_block(j, q, j->grid.n - q < QUERIES_AT_ONCE ? j->grid.n - q : QUERIES_AT_ONCE);
        q += QUERIES_AT_ONCE;
    } while (q < j->grid.n && j->run.status == MTAN_OK);
    return good;
}

static void clear_chunk(dataset *d) {
    arrsetlen(d->records, 0), arrsetlen(d->events, 0), arrsetlen(d->names, 0), arrsetlen(d->time_texts, 0);
}

static int run_chunk(job *j) {
    int good;
    if (arrlen(j->chunk.records) == 0) return 1;
    if (!fit_runner(j)) return clear_chunk(&j->chunk), 0;
    good = j->grid.n ? interpolate_chunk(j) : classify_chunk(j);
    if (!good)
        complain("record %s%s: %s", dataset_name(&j->chunk, j->run.failed), runner_doubt(&j->run),
                 status_message(j->run.status));
    clear_chunk(&j->chunk);
    fflush(stdout);
    return good;
}

/* The shortest decimal that is this time. */
static field_excerpt real_text(mtan_real time) {
    double rounded = (double)time;
    for (int digits = 1; digits <= 17; digits++) {
        char text[32];
        snprintf(text, sizeof text, "%.*g", digits, (double)time);
        rounded = strtod(text, NULL);
        if ((mtan_real)rounded == time) break;
    }
    return field_number_text(rounded);
}

/* n raw events of one time join the last record of the chunk, in model units. A time of which something is left, and which is
 * another than the one before, is one of the record's, and keeps the text that it was read from. */
static void take_time(job *j, const mtan_event *raw, int32_t n, const char *text) {
    dataset_record *r = &arrlast(j->chunk.records);
    mtan_event *e = arraddnptr(j->chunk.events, (size_t)n);
    int32_t kept;
    int is_new;
    memcpy(e, raw, (size_t)n * sizeof *e);
    kept = prep_events(&j->bundle.prep, SPLIT_TEST, e, n);
    is_new = kept > 0 && (r->n_events == 0 || e[0].time > e[-1].time);
    r->n_events += kept;
    r->n_times += is_new;
    arrsetlen(j->chunk.events, r->event0 + (size_t)r->n_events);
    if (is_new && j->per_time) dataset_add_time_text(&j->chunk, text ? text : real_text(raw->time).text);
}

/* A raw record joins the chunk. */
static int take_record(job *j, const dataset *from, size_t record) {
    const dataset_record *r = &from->records[record];
    const size_t at_once =
        j->grid.n > QUERIES_AT_ONCE ? 1 : (size_t)RECORDS_AT_ONCE * (size_t)option_threads(j->options);
    const char *text = from->time_texts ? from->time_texts + r->time_text : NULL;
    dataset_add_record(&j->chunk, dataset_name(from, record), -1);
    for (int32_t i = 0, n; i < r->n_events; i += n) {
        const mtan_event *e = from->events + r->event0 + i;
        for (n = 1; i + n < r->n_events && !(e[n].time > e->time);) n++;
        take_time(j, e, n, text);
        if (text) text += strlen(text) + 1;
    }
    return arrlenu(j->chunk.records) < at_once || run_chunk(j);
}

/* ---- where records come from ---- */

/* A model without channel names takes 0, 1, 2, ... */
static void number_channels(prep *p, int32_t channels) {
    char number[16];
    for (int32_t c = 0; arrlen(p->channels) < channels; c++) {
        snprintf(number, sizeof number, "%d", (int)c);
        arrput(p->channels, tool_text(number));
    }
}

static int stream_own(job *j, const char *path) {
    const source_input in = option_input(j->options, &j->bundle.prep);
    char error[512];
    own_options own;
    own_stream s;
    dataset one;
    own_status got = OWN_FAILED;
    int good = 1;
    memset(&one, 0, sizeof one);
    number_channels(&j->bundle.prep, j->bundle.model.config.channels);
    if (!source_own_options(&own, &in, &j->source, error)) return complain("%s", error), 0;
    own.keep_times = j->per_time;
    if (!own_stream_open(&s, path, &own)) return complain("%s", s.error), own_stream_close(&s), 0;
    while (good && ((got = own_stream_next(&s, &one)) == OWN_RECORD || got == OWN_BAD_RECORD)) {
        if (got == OWN_RECORD) good = unit_matches(&j->bundle.prep, &one) && take_record(j, &one, 0);
        else complain("%s", one.error), j->failed = 1;
    }
    good = run_chunk(j) && good;
    if (good && got == OWN_FAILED) complain("%s", one.error), good = 0;
    for (size_t i = 0; good && i < arrlenu(one.notes); i++) note("%s", one.notes[i]);
    dataset_free(&one);
    own_stream_close(&s);
    return good;
}

static int whole_set(job *j) {
    const source_input in = option_input(j->options, &j->bundle.prep);
    dataset d;
    int good = source_load(&d, &j->source, &in);
    if (good) source_complete(&j->source, &d);
    for (size_t i = 0; good && i < arrlenu(d.records); i++) good = take_record(j, &d, i);
    good = good && run_chunk(j);
    dataset_free(&d);
    return good;
}

static int parse_grid(grid *g, const char *text) {
    char *end;
    double last;
    g->first = strtod(text, &end);
    last = *end == ':' ? strtod(end + 1, &end) : NAN;
    g->step = *end == ':' ? strtod(end + 1, &end) : NAN;
    if (*end || !(g->step > 0) || !(last >= g->first) || !(fabs(g->first) < 1e12) ||
        !((last - g->first) / g->step < MOST_QUERIES))
        return complain("--at %s: must be FIRST:LAST:STEP, at most %d times", text, MOST_QUERIES), 0;
    g->n = (size_t)floor((last - g->first) / g->step + 1e-9) + 1;
    return 1;
}

static int run_job(job *j, const char *model) {
    const char *data = option_text(j->options, "data", NULL);
    char error[512] = "";
    int good;
    if (!bundle_read(&j->bundle, model, error)) return complain("%s", error);
    mtan_config *c = &j->bundle.model.config;
    if (!option_backend(j->options, &j->bundle.model.backend)) return BAD_USE;
    if (!source_read(&j->source, &j->bundle, error)) return complain("%s: %s", model, error);
    if (!data && j->source.set->needs_data) return complain("--data is missing");
    if (j->grid.n && c->kind != MTAN_FULL) return complain("%s: this model classifies and does not interpolate", model);
    if (!j->grid.n && c->classify == MTAN_CLASSIFY_NONE)
        return complain("%s: this model does not classify: `mtan interpolate`", model);
    c->predict_samples = (int32_t)option_integer(j->options, "samples", j->grid.n ? USUAL_SAMPLES : c->predict_samples);
    j->per_time = !j->grid.n && c->classify == MTAN_CLASSIFY_TIME;
    j->out.config = c, j->out.interpolates = j->grid.n > 0, j->out.json = option_given(j->options, "json");
    good = j->source.set->own ? stream_own(j, data) : whole_set(j);
    if (good) rows_header(&j->out);
    return !good ? BAD_USE : j->failed ? BAD_RESULT : DONE;
}

static int start_job(const options *o, const char *at) {
    job j;
    int status;
    memset(&j, 0, sizeof j);
    j.options = o;
    if (at && !parse_grid(&j.grid, at)) return BAD_USE;
    status = run_job(&j, o->argument[0]);
    runner_stop(&j.run);
    dataset_free(&j.chunk);
    bundle_free(&j.bundle);
    return status;
}

int command_predict(const options *o) {
    return start_job(o, NULL);
}

int command_interpolate(const options *o) {
    const char *at = option_text(o, "at", NULL);
    return at ? start_job(o, at) : complain("--at FIRST:LAST:STEP is missing");
}
