/* See stories.h. */
#include "stories.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../model/shared_options.h"
#include "../run/bounds.h"
#include "../run/device.h"
#include "../measure/explain.h"

enum { TOLD = 6, CHANNELS_TOLD = 12 };
static const double ASKED_MOST = 30000; /* most records to run for all channels: a few seconds */
/* Most events to run for the observations of a record, which are left out one by one. */
static const double EVENTS_MOST = 4e6;

static void *own(stories *x, void *block) {
    arrput(x->owned, block);
    return block;
}

static const char *name_of(char **names, int32_t k) {
    return k >= 0 && k < (int32_t)arrlen(names) ? names[k] : "";
}

/* ---- a record ---- */

typedef struct ranked {
    int32_t event;
    double change;
} ranked;

static int strongest_first(const void *left, const void *right) {
    const ranked *a = left, *b = right;
    const double x = fabs(a->change), y = fabs(b->change);
    return x < y ? 1 : x > y ? -1 : a->event - b->event;
}

/* "pulse 97 at 21" */
static const char *observation_text(stories *x, const session *s, const mtan_event *e, int part) {
    const prep *p = &s->bundle.prep;
    char text[256];
    snprintf(text, sizeof text, "%.120s %.4g at %.4g", name_of(s->data.channels, e->channel),
             prep_raw_value(p, e->channel, (double)e->value), prep_raw_time(p, part, (double)e->time));
    return own(x, tool_text(text));
}

static void tell_observations(stories *x, report_story *story, const session *s, const mtan_record *record,
                              const record_influence *f, int part) {
    const size_t n = (size_t)record->n_events;
    ranked *order = tool_calloc(n, sizeof *order);
    report_influence *told = own(x, tool_calloc(TOLD, sizeof *told));
    for (size_t i = 0; i < n; i++) order[i] = (ranked){(int32_t)i, f->change[i]};
    qsort(order, n, sizeof *order, strongest_first);
    story->told = told, story->n_told = n < TOLD ? n : TOLD;
    for (size_t i = 0; i < story->n_told; i++)
        told[i] = (report_influence){observation_text(x, s, &record->events[order[i].event], part), order[i].change};
    free(order);
}

static void tell_course(stories *x, report_story *story, const session *s, const record_course *c, int32_t of,
                        int part) {
    double *time = own(x, tool_calloc(c->n, sizeof *time)), *p = own(x, tool_calloc(c->n, sizeof *p));
    for (size_t i = 0; i < c->n; i++) {
        time[i] = prep_raw_time(&s->bundle.prep, part, (double)c->times[i]);
        p[i] = c->p[i * (size_t)s->bundle.model.config.classes + (size_t)of];
    }
    story->course = (report_points){time, p, c->n};
}

static int32_t likeliest_at_end(const record_course *c, int32_t classes) {
    return c->n > 0 ? likeliest(c->p + (c->n - 1) * (size_t)classes, classes) : 0;
}

/* Skips records so long that leaving out each observation would take minutes. */
static int ask_observations(stories *x, report_story *story, const session *s, runner *run, const mtan_record *record,
                            int32_t of, int part) {
    record_influence f;
    if ((double)record->n_events * (double)record->n_events > EVENTS_MOST) return 1;
    if (!explain_observations(&f, run, record, of, NULL)) return 0;
    tell_observations(x, story, s, record, &f, part);
    record_influence_free(&f);
    return 1;
}

static int tell_record(stories *x, session *s, runner *run, int32_t position, int32_t positive) {
    const int part = split_part_of(&s->split, position);
    const mtan_record record = dataset_view(&s->data, (size_t)position);
    const int32_t classes = s->bundle.model.config.classes;
    report_story story;
    record_course c;
    int32_t of;
    char text[256];
    int good;
    memset(&story, 0, sizeof story);
    if (!explain_course(&c, run, &record)) return 0;
    of = classes == 2 ? positive : likeliest_at_end(&c, classes);
    snprintf(text, sizeof text, "record %.200s", dataset_name(&s->data, (size_t)position));
    story.record = own(x, tool_text(text)), story.of = name_of(s->bundle.prep.classes, of);
    tell_course(x, &story, s, &c, of, part);
    good = ask_observations(x, &story, s, run, &record, of, part);
    if (good) arrput(x->records, story);
    record_course_free(&c);
    return good;
}

/* ---- channels ---- */

static int most_important_first(const void *left, const void *right) {
    const report_channel *a = left, *b = right;
    return a->drop < b->drop ? 1 : a->drop > b->drop ? -1 : strcmp(a->name, b->name);
}

static int tell_channels(stories *x, session *s, runner *run, const options *o) {
    const size_t D = arrlenu(s->data.channels);
    const channel_question q = {{&s->data, s->positions, s->source.preset == MTAN_FAITHFUL, session_batch(s), NULL},
                                (int32_t)option_integer(o, "bootstrap", 1000)};
    channel_drop *drops;
    const char *key;
    double value;
    int good;
    if (D < 2 || (double)D * (double)arrlenu(s->positions) > ASKED_MOST) return 1;
    drops = tool_calloc(D, sizeof *drops);
    good = explain_channels(drops, &value, &key, run, &q, NULL);
    for (size_t i = 0; good && i < D; i++) {
        const report_channel c = {s->data.channels[i], drops[i].drop, drops[i].range.low, drops[i].range.high};
        if (!isnan(c.drop)) arrput(x->channels, c);
    }
    if (arrlen(x->channels) > 0) qsort(x->channels, arrlenu(x->channels), sizeof *x->channels, most_important_first);
    if (arrlen(x->channels) > CHANNELS_TOLD) arrsetlen(x->channels, CHANNELS_TOLD);
    free(drops);
    return good;
}

/* ---- all ---- */

int stories_make(stories *x, session *s, const options *o, const int32_t *records, size_t n, int32_t positive) {
    const mtan_config *config = &s->bundle.model.config;
    char error[512] = "";
    runner run;
    int good = 1;
    memset(x, 0, sizeof *x);
    if (config->classify == MTAN_CLASSIFY_NONE || config->task != MTAN_TASK_CLASSES) return 1;
    if (!runner_start(&run, &s->bundle.model, exchanged_bounds(model_bounds(config, &s->data)), option_threads(o),
                      error))
        return complain("%s", error), 0;
    for (size_t i = 0; i < n && good && config->classify == MTAN_CLASSIFY_RECORD; i++)
        good = tell_record(x, s, &run, records[i], positive);
    good = good && tell_channels(x, s, &run, o);
    if (!good) complain("%s", status_message(run.status));
    runner_stop(&run);
    return good;
}

void stories_free(stories *x) {
    for (size_t i = 0; i < arrlenu(x->owned); i++) free(x->owned[i]);
    arrfree(x->owned), arrfree(x->records), arrfree(x->channels);
}
