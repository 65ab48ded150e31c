/* mtan predict and mtan interpolate: records in, rows out, in the order in which they came. Own data is a stream: memory is that of a
 * few dozen records, whatever the length of the file. A record that cannot be used, or whose result is not finite, is reported,
 * left out, and makes the exit status 1. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/own.h"
#include "chunk.h"
#include "commands.h"
#include "shared_options.h"
#include "../model/data_sets.h"

enum { MOST_QUERIES = 10000000, USUAL_SAMPLES = 20 };

typedef struct job {
    const options *options;
    bundle bundle;
    source source;
    chunk chunk;
} job;

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
    own.keep_times = !j->chunk.grid.n && j->bundle.model.config.classify == MTAN_CLASSIFY_TIME;
    if (!own_stream_open(&s, path, &own)) return complain("%s", s.error), own_stream_close(&s), 0;
    while (good && ((got = own_stream_next(&s, &one)) == OWN_RECORD || got == OWN_BAD_RECORD)) {
        if (got == OWN_RECORD) good = unit_matches(&j->bundle.prep, &one) && chunk_take(&j->chunk, &one, 0, SPLIT_TEST);
        else complain("%s", one.error), j->chunk.failed = 1;
    }
    good = chunk_run(&j->chunk) && good;
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
    for (size_t i = 0; good && i < arrlenu(d.records); i++) good = chunk_take(&j->chunk, &d, i, SPLIT_TEST);
    good = good && chunk_run(&j->chunk);
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
    if (j->chunk.grid.n && c->kind != MTAN_FULL)
        return complain("%s: this model classifies and does not interpolate", model);
    if (!j->chunk.grid.n && c->classify == MTAN_CLASSIFY_NONE)
        return complain("%s: this model does not classify: `mtan interpolate`", model);
    c->predict_samples =
        (int32_t)option_integer(j->options, "samples", j->chunk.grid.n ? USUAL_SAMPLES : c->predict_samples);
    j->chunk.model = &j->bundle.model, j->chunk.prep = &j->bundle.prep;
    j->chunk.threads = option_threads(j->options);
    j->chunk.seed = (uint64_t)option_integer(j->options, "seed", 0);
    j->chunk.out.config = c, j->chunk.out.interpolates = j->chunk.grid.n > 0,
    j->chunk.out.json = option_given(j->options, "json");
    good = j->source.set->own ? stream_own(j, data) : whole_set(j);
    if (good) rows_header(&j->chunk.out);
    return !good ? BAD_USE : j->chunk.failed ? BAD_RESULT : DONE;
}

static int start_job(const options *o, const char *at) {
    job j;
    int status;
    memset(&j, 0, sizeof j);
    j.options = o;
    if (at && !parse_grid(&j.chunk.grid, at)) return BAD_USE;
    status = run_job(&j, o->argument[0]);
    chunk_free(&j.chunk);
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
