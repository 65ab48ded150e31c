/* mtan explain: the influence of a record's observations on its prediction, the course of a prediction in time, or the
 * channels that a model depends on. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../run/bounds.h"
#include "../run/device.h"
#include "../measure/explain.h"
#include "../model/session.h"
#include "../base/json_text.h"
#include "commands.h"
#include "rows.h"
#include "../model/shared_options.h"

static void put_key(const char *before, const char *key, double x) {
    printf("%s\"%s\": ", before, key);
    json_number(stdout, x);
}

/* Prints a number of the data: seven digits are all that it has. */
static void put_datum(const char *before, double x) {
    printf("%s%.7g", before, x);
}

static const char *name_of(char **names, int32_t k, char number[16]) {
    snprintf(number, 16, "%d", (int)k);
    return k < (int32_t)arrlen(names) ? names[k] : number;
}

/* ---- observations ---- */

/* The events as they were read, before preprocessing clips their values. */
typedef struct raw_events {
    mtan_event *events; /* of all records, unprocessed; an stb_ds array */
    dataset_record *records;
} raw_events;

static raw_events raw_keep(const dataset *d) {
    raw_events r = {NULL, NULL};
    if (d->events) memcpy(arraddnptr(r.events, arrlenu(d->events)), d->events, arrlenu(d->events) * sizeof *d->events);
    memcpy(arraddnptr(r.records, arrlenu(d->records)), d->records, arrlenu(d->records) * sizeof *d->records);
    return r;
}

/* The raw event behind an event of the model. The model's events lack the raw ones that hold codes of missing values:
 * *at walks past those. */
static mtan_event raw_of(const session *s, const raw_events *raw, int32_t position, int part, const mtan_event *e,
                         int32_t *at) {
    const dataset_record *r = &raw->records[position];
    const prep *p = &s->bundle.prep;
    while (*at < r->n_events) {
        const mtan_event *x = &raw->events[r->event0 + (size_t)(*at)++];
        const mtan_real time = prep_time(p, part, (double)x->time);
        if (x->channel == e->channel && !(time < e->time) && !(time > e->time)) return *x;
    }
    const mtan_event back = {(mtan_real)prep_raw_time(p, part, (double)e->time), e->channel,
                             (mtan_real)prep_raw_value(p, e->channel, (double)e->value)};
    return back;
}

/* Per task: the column with the name of the class or label, NULL if there is only one, and the column of the predicted
 * size. */
static const struct {
    const char *of, *size;
} answers[] = {[MTAN_TASK_CLASSES] = {"class", "log_odds"},
               [MTAN_TASK_NUMBER] = {NULL, "predicted"},
               [MTAN_TASK_LABELS] = {"label", "log_odds"}};

static void put_json(const char *record, const mtan_event *e, const char *channel, mtan_task task, const char *of,
                     double size, double change) {
    fputs("{\"record\": ", stdout), json_string(stdout, record), put_datum(", \"time\": ", (double)e->time);
    fputs(", \"channel\": ", stdout), json_string(stdout, channel), put_datum(", \"value\": ", (double)e->value);
    if (answers[task].of) printf(", \"%s\": ", answers[task].of), json_string(stdout, of);
    put_key(", ", answers[task].size, size), put_key(", ", "change", change), puts("}");
}

static void put_observation(const session *s, const char *record, const mtan_event *e, const record_influence *f,
                            double change, int json) {
    const mtan_task task = s->bundle.model.config.task;
    char number[16], other[16];
    const char *channel = name_of(s->data.channels, e->channel, number);
    const char *of = name_of(s->bundle.prep.classes, f->of, other);
    if (json) {
        put_json(record, e, channel, task, of, f->said, change);
        return;
    }
    row_name(record), put_datum(",", (double)e->time), putchar(',');
    row_name(channel), put_datum(",", (double)e->value), putchar(',');
    if (answers[task].of) row_name(of), putchar(',');
    printf("%.9g,%.9g\n", f->said, change); /* as many digits as `mtan predict` prints */
}

/* Fills one influence, or one per label. */
static int find_influences(const session *s, runner *run, const mtan_record *record, record_influence *f) {
    const mtan_config *c = &s->bundle.model.config;
    const int32_t positive = s->bundle.prep.positive >= 0 ? s->bundle.prep.positive : 1;
    if (c->task == MTAN_TASK_LABELS) return explain_labels(f, run, record);
    return explain_observations(f, run, record, c->classes == 2 ? positive : -1, &s->bundle.prep);
}

static int explain_record(session *s, runner *run, const raw_events *raw, int32_t position, int json) {
    const int part = split_part_of(&s->split, position);
    const mtan_record record = dataset_view(&s->data, (size_t)position);
    const mtan_config *c = &s->bundle.model.config;
    const int32_t n = c->task == MTAN_TASK_LABELS ? c->classes : 1;
    record_influence *f = tool_calloc((size_t)n, sizeof *f);
    const int good = find_influences(s, run, &record, f);
    int32_t at = 0;
    for (int32_t i = 0; good && i < record.n_events; i++) {
        const mtan_event e = raw_of(s, raw, position, part, &record.events[i], &at);
        for (int32_t k = 0; k < n; k++)
            put_observation(s, dataset_name(&s->data, (size_t)position), &e, &f[k], f[k].change[i], json);
    }
    for (int32_t k = 0; k < n; k++) record_influence_free(&f[k]);
    free(f);
    return good;
}

static int explain_records(session *s, runner *run, const raw_events *raw, int json) {
    const mtan_task task = s->bundle.model.config.task;
    if (!json)
        printf("record,time,channel,value%s%s,%s,change\n", answers[task].of ? "," : "",
               answers[task].of ? answers[task].of : "", answers[task].size);
    for (size_t i = 0; i < arrlenu(s->positions); i++) {
        progress("record %zu of %zu", i + 1, arrlenu(s->positions));
        if (!explain_record(s, run, raw, s->positions[i], json)) return progress_end(), 0;
    }
    progress_end();
    return 1;
}

/* ---- time ---- */

static int explain_times(session *s, runner *run, int json) {
    mtan_config config = s->bundle.model.config;
    row_printer rows = {&config, s->bundle.prep.classes, s->bundle.prep.number, json, 0, 0};
    const size_t C = (size_t)mtan_config_outputs(&config);
    config.classify = MTAN_CLASSIFY_TIME; /* rows have a time */
    for (size_t i = 0; i < arrlenu(s->positions); i++) {
        const int part = split_part_of(&s->split, s->positions[i]);
        const mtan_record record = dataset_view(&s->data, (size_t)s->positions[i]);
        record_course c;
        if (!explain_course(&c, run, &record)) return 0;
        for (size_t k = 0; k < c.n; k++) {
            char time[32];
            snprintf(time, sizeof time, "%.7g", prep_raw_time(&s->bundle.prep, part, (double)c.times[k]));
            row_classes(&rows, dataset_name(&s->data, (size_t)s->positions[i]), time, c.p + k * C);
        }
        record_course_free(&c);
    }
    rows_header(&rows);
    return 1;
}

/* ---- channels ---- */

typedef struct ranked {
    channel_drop drop;
    int32_t channel;
} ranked;

static int largest_first(const void *left, const void *right) {
    const ranked *a = left, *b = right;
    if (a->drop.drop < b->drop.drop || a->drop.drop > b->drop.drop) return a->drop.drop < b->drop.drop ? 1 : -1;
    return a->channel - b->channel;
}

static void tell_channel(size_t channel, size_t channels) {
    progress("channel %zu of %zu", channel + 1, channels);
}

static void put_channels(const session *s, const ranked *r, size_t n, const char *metric, double value, int json) {
    char number[16];
    if (json) put_key("{", metric, value), fputs(", \"channels\": [", stdout);
    else printf("channel,drop_%s,low,high\n", metric);
    for (size_t i = 0; i < n; i++) {
        const char *name = name_of(s->data.channels, r[i].channel, number);
        if (json) {
            fputs(i ? ", {\"name\": " : "{\"name\": ", stdout), json_string(stdout, name);
            put_key(", ", "drop", r[i].drop.drop), put_key(", ", "low", r[i].drop.range.low);
            put_key(", ", "high", r[i].drop.range.high), putchar('}');
        } else {
            row_name(name), printf(",%.6g", r[i].drop.drop);
            if (isnan(r[i].drop.range.low)) puts(",,");
            else printf(",%.6g,%.6g\n", r[i].drop.range.low, r[i].drop.range.high);
        }
    }
    if (json) puts("]}");
}

static int explain_all_channels(session *s, runner *run, const options *o, int json) {
    const size_t D = arrlenu(s->data.channels);
    const channel_question q = {{&s->data, s->positions, s->source.preset == MTAN_FAITHFUL, session_batch(s), NULL},
                                (int32_t)option_integer(o, "bootstrap", 1000)};
    channel_drop *drops = tool_calloc(D, sizeof *drops);
    ranked *r = tool_calloc(D, sizeof *r);
    const char *metric = "";
    double value;
    const int good = explain_channels(drops, &value, &metric, run, &q, tell_channel);
    progress_end();
    for (size_t i = 0; i < D; i++) r[i].drop = drops[i], r[i].channel = (int32_t)i;
    qsort(r, D, sizeof *r, largest_first);
    if (good) put_channels(s, r, D, metric, value, json);
    free(drops), free(r);
    return good;
}

/* ---- the command ---- */

static int has_labels(const session *s) {
    for (size_t i = 0; i < arrlenu(s->positions); i++)
        if (dataset_labelled(&s->data, &s->data.records[s->positions[i]])) return 1;
    return 0;
}

/* Returns 1, or 0 with a message printed. */
static int can_be_explained(const session *s, const options *o) {
    const mtan_classify_kind kind = s->bundle.model.config.classify;
    if (kind == MTAN_CLASSIFY_NONE)
        return complain("this model interpolates: explain is for models that predict labels"), 0;
    if (option_given(o, "channels"))
        return has_labels(s) || (complain("--channels: no record of this part has a label to measure by"), 0);
    return kind == MTAN_CLASSIFY_RECORD ||
           (complain("this model has a label for every time: explain takes those with one for a record, or --channels"),
            0);
}

static int explain(session *s, const options *o, const raw_events *raw) {
    const int json = option_given(o, "json");
    char error[512] = "";
    runner run;
    int good;
    if (!can_be_explained(s, o)) return BAD_USE;
    if (!runner_start(&run, &s->bundle.model, exchanged_bounds(model_bounds(&s->bundle.model.config, &s->data)),
                      option_threads(o), error))
        return complain("%s", error);
    runner_seed(&run, (uint64_t)option_integer(o, "seed", 0));
    good = option_given(o, "channels")    ? explain_all_channels(s, &run, o, json)
           : option_given(o, "over-time") ? explain_times(s, &run, json)
                                          : explain_records(s, &run, raw, json);
    if (!good) complain("%s", status_message(run.status));
    runner_stop(&run);
    return good ? DONE : BAD_USE;
}

int command_explain(const options *o) {
    raw_events raw = {NULL, NULL};
    session s;
    int status = BAD_USE;
    memset(&s, 0, sizeof s);
    if (session_read_model(&s, o, o->argument[0]) && session_read_data(&s, o)) {
        raw = raw_keep(&s.data);
        prep_apply(&s.bundle.prep, &s.data, &s.split);
        session_explain(&s);
        status = explain(&s, o, &raw);
    }
    arrfree(raw.events), arrfree(raw.records);
    session_close(&s);
    return status;
}
