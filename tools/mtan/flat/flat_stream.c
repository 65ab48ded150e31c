/* The streams of flat.h; they need only mtan.h (flat_core.h). */
#include <string.h>

#include "../run/curve_samples.h"
#include "flat_core.h"

static const double TICKS_PER_HOUR = 36e9; /* of 100 ns */

struct mtan_flat_stream {
    const flat_core *from;
    mtan_model model; /* with the requested number of samples */
    mtan_predictor predictor;
    mtan_stream stream;
    void *memory, *state;
    mtan_real *room; /* (outputs), or twice (channels) */
    uint64_t id;
    int32_t runs;       /* it has had an observation */
    double first;       /* the time of the first observation, */
    int64_t first_date; /* or its date */
};

typedef struct opening {
    mtan_flat_stream *stream;
    const flat_core *from;
    const char *name;
    int32_t samples;
    uint64_t seed;
} opening;

static void set_samples(mtan_config *c, int32_t samples) {
    if (samples >= 0) c->predict_samples = samples;
    else if (c->classify == MTAN_CLASSIFY_NONE) c->predict_samples = curve_samples(c, USUAL_SAMPLES);
}

static size_t room_of(const mtan_config *c) {
    const int32_t outputs = mtan_config_outputs(c), both = 2 * c->channels;
    return (size_t)(outputs > both ? outputs : both) * sizeof(mtan_real);
}

static mtan_status start(mtan_flat_stream *s) {
    const mtan_bounds bounds = {1, 0, 1};
    size_t bytes = 0, state = 0;
    mtan_status status = mtan_stream_size(&s->model, 0, &state);
    if (status == MTAN_OK) status = mtan_predictor_size(&s->model, &bounds, &bytes);
    if (status != MTAN_OK) return status;
    s->room = flat_take(room_of(&s->model.config)), s->memory = flat_take(bytes), s->state = flat_take(state);
    if (!s->room || !s->memory || !s->state) return MTAN_ERR_MEMORY;
    status = mtan_predictor_init(&s->predictor, &s->model, &bounds, s->memory, bytes);
    return status == MTAN_OK ? mtan_stream_init(&s->stream, &s->predictor, 0, s->state, state) : status;
}

static int open_stream(void *job) {
    opening *o = job;
    mtan_flat_stream *s;
    mtan_status status;
    if (o->from->model.config.architecture) return flat_fail("streams are for mTAN's models", NULL);
    if (!(s = flat_take(sizeof *s))) return flat_fail(mtan_status_message(MTAN_ERR_MEMORY), NULL);
    memset(s, 0, sizeof *s);
    s->from = o->from, s->model = o->from->model;
    set_samples(&s->model.config, o->samples);
    s->id = mtan_bytes_hash(o->name, strlen(o->name));
    if ((status = start(s)) != MTAN_OK) {
        mtan_flat_stream_free(s);
        return flat_fail("no stream of this model: ",
                         status == MTAN_ERR_CONFIG ? "its reference points are each record's own times"
                                                   : mtan_status_message(status),
                         NULL);
    }
    s->predictor.seed = o->seed;
    o->stream = s;
    return 1;
}

mtan_flat_stream *mtan_flat_stream_new(const mtan_flat_model *model, const char *name, int32_t samples, uint64_t seed) {
    opening o = {NULL, flat_core_of(model), name, samples, seed};
    return flat_call(open_stream, &o) == 0 ? o.stream : NULL;
}

void mtan_flat_stream_free(mtan_flat_stream *stream) {
    if (!stream) return;
    flat_give_back(stream->state), flat_give_back(stream->memory), flat_give_back(stream->room);
    flat_give_back(stream);
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

/* The time as the model counts it. */
static double counted(const moment *m) {
    const mtan_flat_stream *s = m->stream;
    if (s->from->dates) return (double)(m->date - s->first_date) / TICKS_PER_HOUR;
    return s->from->prep.from_first ? m->time - s->first : m->time;
}

/* Prepares an observation and pushes it; a code for missing is skipped. */
static mtan_status take_in(const moment *m, int32_t channel) {
    const mtan_observation raw = {counted(m), channel, m->value};
    mtan_event e;
    const mtan_status status = mtan_prep_event(&m->stream->from->prep, &raw, &e);
    if (status != MTAN_OK) return status == MTAN_ERR_MISSING ? MTAN_OK : status;
    return mtan_stream_push(&m->stream->stream, e.time, e.channel, e.value);
}

static int push(void *job) {
    const moment *m = job;
    mtan_flat_stream *s = m->stream;
    const int32_t channel = mtan_prep_channel_named(&s->from->prep, m->channel), begins = !s->runs;
    mtan_status status;
    if (channel < 0) return flat_fail("the model has no channel \"", m->channel, "\"", NULL);
    if (!(m->value <= m->value)) return 1; /* NaN */
    if (begins) s->first = m->time, s->first_date = m->date, s->runs = 1;
    status = take_in(m, channel);
    if (status == MTAN_OK) return 1;
    if (begins) s->runs = 0;
    return flat_fail("channel \"", m->channel, "\": ", mtan_status_message(status), NULL);
}

int32_t mtan_flat_stream_push(mtan_flat_stream *stream, double time, int64_t date, const char *channel, double value) {
    moment m = {stream, time, date, channel, value, NULL, NULL};
    return flat_call(push, &m);
}

/* Prepares the question about a moment; *time gets its time in the model's units. 0 with a message: it has no time
 * yet. */
static int ask_about(const moment *m, mtan_real *time, mtan_record *about) {
    const mtan_flat_stream *s = m->stream;
    const int needs_time = m->sd != NULL || s->model.config.classify == MTAN_CLASSIFY_TIME;
    memset(about, 0, sizeof *about);
    about->id = s->id;
    if (!needs_time) return 1;
    if (s->from->prep.from_first && !s->runs)
        return flat_fail("times are counted from the first observation, and there is none yet", NULL);
    *time = mtan_prep_time(&s->from->prep, counted(m));
    about->times = time, about->n_times = 1;
    return 1;
}

static int predict(void *job) {
    const moment *m = job;
    mtan_flat_stream *s = m->stream;
    const int32_t O = mtan_config_outputs(&s->model.config);
    mtan_real time;
    mtan_record about;
    mtan_status status;
    if (s->model.config.classify == MTAN_CLASSIFY_NONE)
        return flat_fail("this model interpolates and does not classify", NULL);
    if (!ask_about(m, &time, &about)) return 0;
    status = mtan_stream_predict(&s->stream, &about, s->room);
    if (status != MTAN_OK) return flat_fail(mtan_status_message(status), NULL);
    for (int32_t i = 0; i < O; i++) m->out[i] = flat_raw_output(s->from, (size_t)i, (double)s->room[i]);
    return 1;
}

int32_t mtan_flat_stream_predict(mtan_flat_stream *stream, double time, int64_t date, double *out) {
    moment m = {stream, time, date, NULL, 0, out, NULL};
    return flat_call(predict, &m);
}

static int interpolate(void *job) {
    const moment *m = job;
    mtan_flat_stream *s = m->stream;
    mtan_real time, *mean = s->room, *sd = s->room + s->model.config.channels;
    mtan_record about;
    mtan_status status;
    if (s->model.config.kind != MTAN_FULL) return flat_fail("this model classifies and does not interpolate", NULL);
    if (!ask_about(m, &time, &about)) return 0;
    status = mtan_stream_interpolate(&s->stream, &about, mean, sd);
    if (status != MTAN_OK) return flat_fail(mtan_status_message(status), NULL);
    flat_raw_curves(s->from, 1, mean, sd, m->out, m->sd);
    return 1;
}

int32_t mtan_flat_stream_interpolate(mtan_flat_stream *stream, double time, int64_t date, double *mean, double *sd) {
    moment m = {stream, time, date, NULL, 0, mean, sd};
    return flat_call(interpolate, &m);
}

static int reset(void *job) {
    mtan_flat_stream *s = job;
    const mtan_status status = mtan_stream_reset(&s->stream);
    s->runs = 0;
    return status == MTAN_OK || flat_fail(mtan_status_message(status), NULL);
}

int32_t mtan_flat_stream_reset(mtan_flat_stream *stream) {
    return flat_call(reset, stream);
}
