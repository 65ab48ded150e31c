/* See sketch.h. */
#include "sketch.h"

#include <stdlib.h>
#include <string.h>

#include "../base/messages.h"
#include "../run/bounds.h"
#include "../run/solver_room.h"
#include "attention_view.h"

static const size_t MEMORY_MOST = (size_t)1 << 30; /* of the predictor with many samples */
static const double SHOWN = 0.7; /* share of a record's times that is shown, without one of training */

/* ---- the predictor ---- */

static int artist_fit(artist *a) {
    size_t bytes = 0;
    mtan_status status;
    while ((status = mtan_predictor_size(&a->model, &a->bounds, &bytes)) == MTAN_OK && bytes > MEMORY_MOST &&
           a->model.config.predict_samples > 1)
        a->model.config.predict_samples /= 2;
    if (status == MTAN_OK) {
        free(a->memory);
        a->memory = tool_calloc(bytes, 1);
        status = mtan_predictor_init(&a->predictor, &a->model, &a->bounds, a->memory, bytes);
    }
    if (status != MTAN_OK) complain("%s", mtan_status_message(status));
    return status == MTAN_OK;
}

int artist_start(artist *a, const session *s, int32_t samples) {
    memset(a, 0, sizeof *a);
    a->model = s->bundle.model;
    a->model.config.predict_samples = samples;
    a->bounds = model_bounds(&s->bundle.model.config, &s->data);
    a->bounds.records = 1;
    if (a->bounds.times < SKETCH_GRID) a->bounds.times = SKETCH_GRID;
    return artist_fit(a);
}

void artist_end(artist *a) {
    free(a->memory);
}

int interpolates(const mtan_config *m) {
    return m->kind == MTAN_FULL && m->classify != MTAN_CLASSIFY_TIME;
}

/* ---- curves ---- */

int sketch_make(sketch *k, artist *a, const session *s, int32_t position) {
    const dataset_record *r = &s->data.records[position];
    const mtan_event *e = dataset_events(&s->data, r);
    const double share = s->source.interpolation ? s->source.observed : SHOWN;
    const size_t D = (size_t)a->model.config.channels;
    const double first = r->n_truth > 0 ? (double)s->data.truth[r->truth0].time : (double)e[0].time;
    const double last = r->n_truth > 0 ? (double)s->data.truth[r->truth0 + (size_t)r->n_truth - 1].time
                                       : (double)e[r->n_events - 1].time;
    mtan_record record = dataset_view(&s->data, (size_t)position);
    mtan_status status;
    holdout_make(&k->h, &s->data, (size_t)position, share);
    for (int i = 0; i < SKETCH_GRID; i++) k->times[i] = (mtan_real)(first + (last - first) * i / (SKETCH_GRID - 1));
    k->mean = tool_calloc(SKETCH_GRID * D, sizeof *k->mean), k->sd = tool_calloc(SKETCH_GRID * D, sizeof *k->sd);
    record.events = k->h.seen, record.n_events = (int32_t)arrlen(k->h.seen);
    record.times = k->times, record.n_times = SKETCH_GRID;
    do status = mtan_predictor_interpolate(&a->predictor, &record, k->mean, k->sd);
    while (status == MTAN_ERR_MEMORY && grow_steps(&a->model.config) && artist_fit(a));
    return status == MTAN_OK;
}

void sketch_free(sketch *k) {
    free(k->mean), free(k->sd);
    holdout_free(&k->h);
}

static double *reals(void ***owned, size_t n) {
    double *block = tool_calloc(n + 1, sizeof *block);
    arrput(*owned, block);
    return block;
}

static const char *record_name(void ***owned, const session *s, int32_t position) {
    char name[1024];
    snprintf(name, sizeof name, "record %s", dataset_name(&s->data, (size_t)position));
    arrput(*owned, tool_text(name));
    return arrlast(*owned);
}

static const char *channel_name(const session *s, int32_t channel) {
    return arrlen(s->data.channels) > 1 ? s->data.channels[channel] : "";
}

/* The events of one channel, in the data's units. */
static report_points raw_points(void ***owned, const prep *p, const mtan_event *e, size_t n, int32_t channel,
                                int part) {
    double *x = reals(owned, n), *y = reals(owned, n);
    report_points points = {x, y, 0};
    for (size_t i = 0; i < n; i++) {
        if (e[i].channel != channel) continue;
        x[points.n] = prep_raw_time(p, part, (double)e[i].time);
        y[points.n++] = prep_raw_value(p, channel, (double)e[i].value);
    }
    return points;
}

report_panel sketch_panel(void ***owned, const sketch *k, const session *s, int32_t position, int32_t channel) {
    const dataset_record *r = &s->data.records[position];
    const prep *p = &s->bundle.prep;
    const size_t D = (size_t)s->bundle.model.config.channels;
    const int part = split_part_of(&s->split, position);
    double *time = reals(owned, SKETCH_GRID), *mean = reals(owned, SKETCH_GRID), *sd = reals(owned, SKETCH_GRID);
    for (size_t i = 0; i < SKETCH_GRID; i++) {
        time[i] = prep_raw_time(p, part, (double)k->times[i]);
        mean[i] = prep_raw_value(p, channel, (double)k->mean[i * D + (size_t)channel]);
        sd[i] = prep_raw_spread(p, channel, (double)k->sd[i * D + (size_t)channel]);
    }
    return (report_panel){.record = record_name(owned, s, position),
                          .channel = channel_name(s, channel),
                          .seen = raw_points(owned, p, k->h.seen, arrlenu(k->h.seen), channel, part),
                          .held = raw_points(owned, p, k->h.held, arrlenu(k->h.held), channel, part),
                          .truth = raw_points(owned, p, dataset_truth(&s->data, r), (size_t)r->n_truth, channel, part),
                          .mean = {time, mean, SKETCH_GRID},
                          .sd = sd};
}

/* ---- attention ---- */

report_attention sketch_attention(void ***owned, artist *a, const session *s, int32_t position, int32_t channel) {
    const prep *p = &s->bundle.prep;
    const int part = split_part_of(&s->split, position);
    attention_view v;
    if (!attention_view_make(&v, &a->predictor, dataset_view(&s->data, (size_t)position), channel))
        return (report_attention){.times = 0};
    for (size_t i = 0; i < v.times; i++) v.time[i] = prep_raw_time(p, part, v.time[i]);
    for (size_t k = 0; k < v.references; k++) v.reference[k] = prep_raw_time(p, part, v.reference[k]);
    arrput(*owned, v.time), arrput(*owned, v.reference), arrput(*owned, v.weight);
    return (report_attention){record_name(owned, s, position),
                              channel_name(s, channel),
                              v.time,
                              v.reference,
                              v.weight,
                              v.times,
                              v.references};
}
