/* mtan predict and mtan interpolate: one or more rows per record, in the order of the records. A file of events is read
 * as a stream, so memory holds a few dozen records whatever its length. A record that cannot be used, or whose result
 * is not finite, is reported and left out, and the exit status becomes 1. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/own_rows.h"
#include "chunk.h"
#include "commands.h"
#include "../model/shared_options.h"
#include "../run/curve_samples.h"
#include "../model/data_sets.h"
#include "../model/session.h"

enum { MOST_QUERIES = 10000000 };

typedef struct job {
    const options *options;
    session session;
    chunk chunk;
    size_t told; /* rows that could not be used */
} job;

/* ---- a stream of events ---- */

/* Names the channels of a model without channel names 0, 1, 2, ... */
static void number_channels(prep *p, int32_t channels) {
    char number[16];
    for (int32_t c = 0; arrlen(p->channels) < channels; c++) {
        snprintf(number, sizeof number, "%d", (int)c);
        arrput(p->channels, tool_text(number));
    }
}

static int ends_with(const char *text, const char *tail) {
    const size_t n = strlen(text), m = strlen(tail);
    return n >= m && strcmp(text + n - m, tail) == 0;
}

/* Is this a file of events, whatever the model was trained on? Decided by its name, otherwise by its header. */
static int holds_events(const char *path) {
    own_source s;
    int is_one;
    if (strcmp(path, "-") == 0 || ends_with(path, ".csv") || ends_with(path, ".csv.gz")) return 1;
    is_one = own_source_open(&s, path, OWN_EVENTS, OWN_ORIGIN_AUTO, NULL);
    own_source_close(&s);
    return is_one;
}

/* A model of published data accepts numbers as times, in its unit. */
static int take_one(job *j, dataset *one) {
    const session *s = &j->session;
    if ((s->source.set->own || one->unit[0]) && !unit_matches(&s->bundle.prep, one)) return 0;
    source_complete(&s->source, one);
    return chunk_take(&j->chunk, one, 0, SPLIT_TEST);
}

static void tell_bad(job *j, const dataset *one) {
    if (!complain_again(&j->told)) return;
    if (arrlen(one->records) > 0) complain("%s; record %s is left out", one->error, dataset_name(one, 0));
    else complain("%s; the row is left out", one->error);
}

static int stream_events(job *j, const char *path) {
    session *from = &j->session;
    source_input in = option_input(j->options, &from->bundle.prep);
    char error[512];
    own_options own;
    own_stream s;
    dataset one;
    own_status got = OWN_FAILED;
    int good = 1;
    memset(&one, 0, sizeof one);
    in.keep_times = from->keep_times && !from->source.has_means; /* means stand at times of their own */
    number_channels(&from->bundle.prep, from->bundle.model.config.channels);
    source_tell_statics(&from->source, &in, &from->bundle);
    if (!source_own_options(&own, &in, &from->source, error)) return complain("%s", error), 0;
    if (!own_stream_open(&s, path, &own)) return complain("%s", s.error), own_stream_close(&s), 0;
    while (good && ((got = own_stream_next(&s, &one)) == OWN_RECORD || got == OWN_BAD_RECORD)) {
        if (got == OWN_RECORD) good = take_one(j, &one);
        else tell_bad(j, &one), j->chunk.failed = 1;
    }
    good = chunk_run(&j->chunk) && good;
    complain_rest(j->told);
    if (good && got == OWN_FAILED) complain("%s", one.error), good = 0;
    for (size_t i = 0; good && i < arrlenu(one.notes); i++) note("%s", one.notes[i]);
    dataset_free(&one);
    own_stream_close(&s);
    return good;
}

/* ---- a whole data set ---- */

/* All records. Of published data, whichever files are there are enough. */
static int whole_set(job *j) {
    session *s = &j->session;
    source_input in = option_input(j->options, &s->bundle.prep);
    int good = 1;
    in.keep_times = s->keep_times, in.some = 1;
    number_channels(&s->bundle.prep, s->bundle.model.config.channels);
    source_tell_statics(&s->source, &in, &s->bundle);
    if (!source_load(&s->data, &s->source, &in) || !unit_matches(&s->bundle.prep, &s->data)) return 0;
    source_complete(&s->source, &s->data);
    for (size_t i = 0; good && i < arrlenu(s->data.records); i++) good = chunk_take(&j->chunk, &s->data, i, SPLIT_TEST);
    return good && chunk_run(&j->chunk);
}

/* The records of one part of the split that the model was trained with, in the order of the data, each in its part's
 * units. */
static int part_of_set(job *j) {
    session *s = &j->session;
    char *part, *asked;
    int good = 1;
    if (!session_read_data(s, j->options)) return 0;
    part = tool_calloc(arrlenu(s->data.records), 1), asked = tool_calloc(arrlenu(s->data.records), 1);
    for (int p = 0; p < SPLIT_PARTS; p++)
        for (size_t i = 0; i < arrlenu(s->split.part[p]); i++) part[s->split.part[p][i]] = (char)p;
    for (size_t i = 0; i < arrlenu(s->positions); i++) asked[s->positions[i]] = 1;
    for (size_t i = 0; good && i < arrlenu(s->data.records); i++)
        if (asked[i]) good = chunk_take(&j->chunk, &s->data, i, part[i]);
    free(part), free(asked);
    return good && chunk_run(&j->chunk);
}

/* With labels, the whole data set is read: they say which records there are, which a stream of events does not know. */
static int all_records(job *j) {
    const options *o = j->options;
    const char *data = option_text(o, "data", NULL);
    const data_set *set = j->session.source.set;
    if (option_given(o, "split")) return part_of_set(j);
    if (set->own ? !option_given(o, "labels") : data && holds_events(data)) return stream_events(j, data);
    return whole_set(j);
}

/* ---- the commands ---- */

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

/* Applies the options that depend on the model. */
static int set_up(job *j, const char *model) {
    const options *o = j->options;
    const int curves = j->chunk.grid.n > 0;
    mtan_config *c = &j->session.bundle.model.config;
    chunk *run = &j->chunk;
    if (!option_given(o, "data") && j->session.source.set->needs_data) return complain("--data is missing"), 0;
    if (curves && c->kind != MTAN_FULL) return complain("%s: this model classifies and does not interpolate", model), 0;
    if (!curves && c->classify == MTAN_CLASSIFY_NONE)
        return complain("%s: this model does not classify: `mtan interpolate`", model), 0;
    if (option_given(o, "samples") && c->kind != MTAN_FULL)
        return complain("--samples: this model has no latent state to draw from"), 0;
    c->predict_samples =
        (int32_t)option_integer(o, "samples", curves ? curve_samples(c, USUAL_SAMPLES) : c->predict_samples);
    j->session.keep_times = !curves && c->classify == MTAN_CLASSIFY_TIME;
    run->model = &j->session.bundle.model, run->prep = &j->session.bundle.prep;
    run->threads = option_threads(o), run->seed = (uint64_t)option_integer(o, "seed", 0);
    run->out.config = c, run->out.classes = run->prep->classes, run->out.number = run->prep->number,
    run->out.interpolates = curves, run->out.json = option_given(o, "json");
    return 1;
}

/* Reports observations far outside of the training data. Returns 1 if there were any and --strict makes them a
 * failure. */
static int was_strange(const job *j) {
    const mtan_prep units = prep_view(&j->session.bundle.prep, SPLIT_TEST);
    return far_tell(&j->chunk.far, &units) && option_given(j->options, "strict");
}

static int run_job(job *j, const char *model) {
    if (!session_read_model(&j->session, j->options, model) || !set_up(j, model) || !all_records(j)) return BAD_USE;
    rows_header(&j->chunk.out);
    return was_strange(j) || j->chunk.failed ? BAD_RESULT : DONE;
}

/* A forecast in ten steps. */
static grid forecast_grid(double horizon) {
    enum { STEPS = 10 };
    const grid g = {horizon / STEPS, horizon / STEPS, STEPS, 1};
    return g;
}

static int start_job(const options *o, const char *at, double forecast) {
    job j;
    int status;
    memset(&j, 0, sizeof j);
    j.options = o;
    if (at && !parse_grid(&j.chunk.grid, at)) return BAD_USE;
    if (forecast > 0) j.chunk.grid = forecast_grid(forecast);
    status = run_job(&j, o->argument[0]);
    chunk_free(&j.chunk);
    session_close(&j.session);
    return status;
}

int command_predict(const options *o) {
    return start_job(o, NULL, 0);
}

int command_interpolate(const options *o) {
    const char *at = option_text(o, "at", NULL);
    const double forecast = option_number(o, "forecast", 0);
    if (at && forecast > 0) return complain("--at and --forecast: one of them");
    if (!at && !(forecast > 0)) return complain("--at FIRST:LAST:STEP is missing, or --forecast H");
    return start_job(o, at, forecast);
}
