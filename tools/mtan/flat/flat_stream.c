/* The streams of flat.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/field.h"
#include "../command/messages.h"
#include "../command/settings.h"
#include "../model/data_sets.h"
#include "flat_call.h"

enum { USUAL_SAMPLES = 20 };

struct mtan_flat_stream {
    const mtan_flat_model *from;
    mtan_model model;
    mtan_predictor predictor;
    mtan_stream stream;
    void *memory, *state;
    uint64_t id;
    int dates, counted; /* times are dates; they are counted from the first observation */
    int runs;           /* there was one */
    double first;       /* its time, */
    int64_t first_date; /* or its date */
};

typedef struct opening {
    mtan_flat_stream *stream;
    const mtan_flat_model *from;
    const char *name;
    int32_t samples;
    uint64_t seed;
} opening;

static void set_samples(mtan_config *c, int32_t samples) {
    if (samples >= 0) c->predict_samples = samples;
    else if (c->classify == MTAN_CLASSIFY_NONE) c->predict_samples = USUAL_SAMPLES;
}

static mtan_status start(mtan_flat_stream *s) {
    const mtan_bounds bounds = {1, 0, 1};
    size_t bytes = 0, state = 0;
    mtan_status status = mtan_stream_size(&s->model, 0, &state);
    if (status == MTAN_OK) status = mtan_predictor_size(&s->model, &bounds, &bytes);
    if (status != MTAN_OK) return status;
    s->memory = tool_calloc(1, bytes), s->state = tool_calloc(1, state);
    status = mtan_predictor_init(&s->predictor, &s->model, &bounds, s->memory, bytes);
    return status == MTAN_OK ? mtan_stream_init(&s->stream, &s->predictor, 0, s->state, state) : status;
}

static int open_stream(void *job) {
    opening *o = job;
    const mtan_config *c = &o->from->bundle.model.config;
    mtan_flat_stream *s;
    mtan_status status;
    if (c->architecture) return complain("this is a %s: streams are for mTAN's models", model_title(c)), 0;
    s = tool_calloc(1, sizeof *s);
    s->from = o->from, s->model = o->from->bundle.model;
    set_samples(&s->model.config, o->samples);
    s->dates = o->from->source.set->own && strcmp(o->from->bundle.prep.unit, "hours") == 0;
    s->counted = s->dates || strcmp(o->from->source.origin, "record") == 0;
    s->id = mtan_bytes_hash(o->name, strlen(o->name));
    if ((status = start(s)) != MTAN_OK) {
        complain(status == MTAN_ERR_CONFIG ? "no stream of this model: its reference points are each record's own times"
                                           : "no stream of this model: %s",
                 mtan_status_message(status));
        return mtan_flat_stream_free(s), 0;
    }
    s->predictor.seed = o->seed;
    o->stream = s;
    return 1;
}

mtan_flat_stream *mtan_flat_stream_new(const mtan_flat_model *model, const char *name, int32_t samples, uint64_t seed) {
    opening o = {NULL, model, name, samples, seed};
    return flat_call(open_stream, &o) == 0 ? o.stream : NULL;
}

void mtan_flat_stream_free(mtan_flat_stream *stream) {
    if (stream) free(stream->memory), free(stream->state);
    free(stream);
}

/* ---- observations and predictions ---- */

typedef struct moment {
    mtan_flat_stream *stream;
    double time;
    int64_t date;
    const char *channel;
    double value;
    double *out, *sd;
} moment;

/* A time as the model counts it. */
static double counted(const moment *m) {
    const mtan_flat_stream *s = m->stream;
    if (s->dates) return (double)(m->date - s->first_date) / FIELD_TICKS_PER_HOUR;
    return s->counted ? m->time - s->first : m->time;
}

static int push(void *job) {
    moment *m = job;
    mtan_flat_stream *s = m->stream;
    const mtan_prep units = prep_view(&s->from->bundle.prep, SPLIT_TEST);
    mtan_observation raw = {0, mtan_prep_channel_named(&units, m->channel), m->value};
    mtan_event e;
    mtan_status status;
    const mtan_flat_stream before = *s;
    if (raw.channel < 0) return complain("the model has no channel \"%s\"", field_quote(m->channel).text), 0;
    if (isnan(m->value)) return 1;
    if (!s->runs) s->first = m->time, s->first_date = m->date, s->runs = 1;
    raw.time = counted(m);
    status = mtan_prep_event(&units, &raw, &e);
    if (status == MTAN_OK) status = mtan_stream_push(&s->stream, e.time, e.channel, e.value);
    if (status == MTAN_OK || status == MTAN_ERR_MISSING) return 1;
    s->first = before.first, s->first_date = before.first_date, s->runs = before.runs;
    return complain("channel \"%s\", value %g: %s", field_quote(m->channel).text, m->value,
                    mtan_status_message(status)),
           0;
}

int32_t mtan_flat_stream_push(mtan_flat_stream *stream, double time, int64_t date, const char *channel, double value) {
    moment m = {stream, time, date, channel, value, NULL, NULL};
    return flat_call(push, &m);
}

/* What is asked about the moment, whose time in the model's units goes to *time. 0 with a message: it has none yet. */
static int ask_about(const moment *m, mtan_real *time, mtan_record *about) {
    const mtan_flat_stream *s = m->stream;
    const mtan_config *c = &s->model.config;
    const int needs_time = m->sd != NULL || c->classify == MTAN_CLASSIFY_TIME;
    memset(about, 0, sizeof *about);
    about->id = s->id;
    if (!needs_time) return 1;
    if (s->counted && !s->runs)
        return complain("times are counted from the first observation, and there is none yet"), 0;
    *time = prep_time(&s->from->bundle.prep, SPLIT_TEST, counted(m));
    about->times = time, about->n_times = 1;
    return 1;
}

static int predict(void *job) {
    const moment *m = job;
    mtan_flat_stream *s = m->stream;
    const mtan_config *c = &s->model.config;
    const int32_t O = mtan_config_outputs(c);
    const mtan_prep units = prep_view(&s->from->bundle.prep, SPLIT_TEST);
    mtan_real time, *out;
    mtan_record about;
    mtan_status status;
    if (c->classify == MTAN_CLASSIFY_NONE) return complain("this model interpolates and does not classify"), 0;
    if (!ask_about(m, &time, &about)) return 0;
    out = tool_calloc((size_t)O, sizeof *out);
    status = mtan_stream_predict(&s->stream, &about, out);
    for (int32_t i = 0; status == MTAN_OK && i < O; i++)
        m->out[i] = c->task == MTAN_TASK_NUMBER ? mtan_prep_raw_number(&units, i / (O / c->classes), (double)out[i])
                                                : (double)out[i];
    free(out);
    return status == MTAN_OK || (complain("%s", mtan_status_message(status)), 0);
}

int32_t mtan_flat_stream_predict(mtan_flat_stream *stream, double time, int64_t date, double *out) {
    moment m = {stream, time, date, NULL, 0, out, NULL};
    return flat_call(predict, &m);
}

static int interpolate(void *job) {
    const moment *m = job;
    mtan_flat_stream *s = m->stream;
    const prep *p = &s->from->bundle.prep;
    const int32_t D = s->model.config.channels;
    mtan_real time, *mean, *sd;
    mtan_record about;
    mtan_status status;
    if (s->model.config.kind != MTAN_FULL) return complain("this model classifies and does not interpolate"), 0;
    if (!ask_about(m, &time, &about)) return 0;
    mean = tool_calloc(2 * (size_t)D, sizeof *mean), sd = mean + D;
    status = mtan_stream_interpolate(&s->stream, &about, mean, sd);
    for (int32_t d = 0; status == MTAN_OK && d < D; d++) {
        m->out[d] = prep_raw_value(p, d, (double)mean[d]);
        m->sd[d] = prep_raw_spread(p, d, (double)sd[d]);
    }
    free(mean);
    return status == MTAN_OK || (complain("%s", mtan_status_message(status)), 0);
}

int32_t mtan_flat_stream_interpolate(mtan_flat_stream *stream, double time, int64_t date, double *mean, double *sd) {
    moment m = {stream, time, date, NULL, 0, mean, sd};
    return flat_call(interpolate, &m);
}

static int reset(void *job) {
    mtan_flat_stream *s = job;
    const mtan_status status = mtan_stream_reset(&s->stream);
    s->runs = 0;
    return status == MTAN_OK || (complain("%s", mtan_status_message(status)), 0);
}

int32_t mtan_flat_stream_reset(mtan_flat_stream *stream) {
    return flat_call(reset, stream);
}
