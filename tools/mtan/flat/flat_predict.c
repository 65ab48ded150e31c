/* Predictions for flat.h: classes, numbers, curves, the latent state. */
#include <stdlib.h>

#include "../base/messages.h"
#include "../run/bounds.h"
#include "../run/curve_samples.h"
#include "../run/reference.h"
#include "flat_question.h"

/* ---- classes and numbers ---- */

/* What a model of labels of times is asked: the observed times of all records with the queries among them. */
typedef struct asked {
    mtan_record *record;
    size_t *row0;     /* (records + 1) the first row of each record's answer */
    size_t *row;      /* (queries) the row of each query in its record's answer; NULL: all rows are wanted */
    mtan_real *times; /* (rows); NULL without queries */
} asked;

static void free_asked(asked *a) {
    free(a->record), free(a->row0), free(a->row), free(a->times);
}

static void ask_queries(const question *q, asked *a, size_t i) {
    const size_t first = (size_t)q->data->query_offset[i];
    mtan_record *r = &a->record[i];
    r->times = q->query + first, r->n_times = (int32_t)((size_t)q->data->query_offset[i + 1] - first);
    mtan_real *times = a->times + a->row0[i];
    r->n_times = (int32_t)asked_times(r, times, a->row + first);
    r->times = times;
    a->row0[i + 1] = a->row0[i] + (size_t)r->n_times;
}

/* 0 with a message printed. */
static int queries_ascend(const question *q) {
    const int64_t *offset = q->data->query_offset;
    for (size_t i = 0; offset && i < arrlenu(q->set.records); i++)
        if (!times_ascend(q->query + offset[i], (size_t)(offset[i + 1] - offset[i])))
            return complain("record %s: the times asked about must ascend", dataset_name(&q->set, i)), 0;
    return 1;
}

static asked asked_of(const question *q) {
    const size_t n = arrlenu(q->set.records);
    const int per_time = question_per_time(q), queries = per_time && q->data->query_offset;
    const size_t n_queries = queries ? (size_t)q->data->query_offset[n] : 0;
    asked a = {tool_calloc(n, sizeof *a.record), tool_calloc(n + 1, sizeof *a.row0), NULL, NULL};
    if (queries) {
        a.row = tool_calloc(n_queries + 1, sizeof *a.row);
        a.times = tool_calloc(n_queries + arrlenu(q->set.events) + 1, sizeof *a.times);
    }
    for (size_t i = 0; i < n; i++) {
        a.record[i] = dataset_view(&q->set, i);
        if (queries) ask_queries(q, &a, i);
        else a.row0[i + 1] = a.row0[i] + (per_time ? (size_t)q->set.records[i].n_times : 1);
    }
    return a;
}

static mtan_bounds asked_bounds(const question *q, const asked *a) {
    mtan_bounds b = model_bounds(&q->model.config, &q->set);
    for (size_t i = 0; i < arrlenu(q->set.records); i++)
        if (a->record[i].n_times > b.times) b.times = a->record[i].n_times;
    return b;
}

/* Copies the wanted rows of the answer p, in the data's unit. */
static void put_answer(const question *q, const asked *a, const double *p) {
    const size_t O = (size_t)mtan_config_outputs(&q->model.config), n = arrlenu(q->set.records);
    const int64_t *offset = q->data->query_offset;
    for (size_t i = 0, to = 0; i < n; i++) {
        const size_t rows = a->row ? (size_t)(offset[i + 1] - offset[i]) : a->row0[i + 1] - a->row0[i];
        for (size_t k = 0; k < rows; k++) {
            const double *from = p + (a->row0[i] + (a->row ? a->row[(size_t)offset[i] + k] : k)) * O;
            for (size_t o = 0; o < O; o++, to++) q->out[to] = flat_raw_output(&q->from->core, o, from[o]);
        }
    }
}

static int answer_predict(question *q) {
    if (!question_open(q, 0)) return 0;
    if (q->model.config.classify == MTAN_CLASSIFY_NONE)
        return complain("this model interpolates and does not classify"), 0;
    if (question_per_time(q) && !queries_ascend(q)) return 0;
    asked a = asked_of(q);
    double *p = tool_calloc(a.row0[arrlenu(q->set.records)] * (size_t)mtan_config_outputs(&q->model.config), sizeof *p);
    const int good =
        question_start(q, asked_bounds(q, &a)) &&
        (runner_classify(&q->run, a.record, arrlenu(q->set.records), a.row0, p, NULL) || question_failed(q, NULL));
    if (good) put_answer(q, &a, p);
    free(p), free_asked(&a);
    return good;
}

int32_t mtan_flat_predict(const mtan_flat_model *model, const mtan_flat_data *data, int32_t threads, int32_t samples,
                          uint64_t seed, double *out) {
    const question q = {.from = model, .data = data, .threads = threads, .samples = samples, .seed = seed, .out = out};
    return question_ask(q, answer_predict);
}

/* ---- curves and the latent state ---- */

typedef struct curve_room {
    mtan_real *mean, *sd; /* (QUERIES_AT_ONCE, D) */
} curve_room;

/* Interpolates one block of a record's queries and copies it into the results. */
static mtan_status interpolate_block(const question *q, mtan_predictor *p, mtan_record *r, size_t first, size_t n,
                                     const curve_room *room) {
    const size_t D = (size_t)q->model.config.channels;
    mtan_status status;
    r->times = q->query + first, r->n_times = (int32_t)n;
    if ((status = mtan_predictor_interpolate(p, r, room->mean, room->sd)) != MTAN_OK) return status;
    flat_raw_curves(&q->from->core, n, room->mean, room->sd, q->out + first * D, q->second + first * D);
    return MTAN_OK;
}

static mtan_status interpolate_some(void *context, mtan_predictor *p, size_t first, size_t count) {
    const question *q = context;
    const int64_t *offset = q->data->query_offset;
    const size_t D = (size_t)q->model.config.channels;
    const curve_room room = {tool_calloc(QUERIES_AT_ONCE * D, sizeof *room.mean),
                             tool_calloc(QUERIES_AT_ONCE * D, sizeof *room.sd)};
    mtan_status status = MTAN_OK;
    for (size_t i = first; i < first + count; i++) {
        mtan_record r = dataset_view(&q->set, i);
        const size_t end = (size_t)offset[i + 1];
        for (size_t at = (size_t)offset[i]; at < end && status == MTAN_OK; at += QUERIES_AT_ONCE)
            status = interpolate_block(q, p, &r, at, end - at < QUERIES_AT_ONCE ? end - at : QUERIES_AT_ONCE, &room);
    }
    free(room.mean), free(room.sd);
    return status;
}

static int answer_interpolate(question *q) {
    if (!q->data->query_offset) return complain("no times to interpolate at"), 0;
    if (!question_open(q, 0)) return 0;
    if (q->model.config.kind != MTAN_FULL) return complain("this model classifies and does not interpolate"), 0;
    if (q->samples < 0) q->model.config.predict_samples = curve_samples(&q->model.config, USUAL_SAMPLES);
    return question_start(q, dataset_bounds(&q->set)) &&
           (runner_each(&q->run, arrlenu(q->set.records), interpolate_some, q) || question_failed(q, NULL));
}

int32_t mtan_flat_interpolate(const mtan_flat_model *model, const mtan_flat_data *data, int32_t threads,
                              int32_t samples, uint64_t seed, double *mean, double *sd) {
    const question q = {
        .from = model, .data = data, .threads = threads, .samples = samples, .seed = seed, .out = mean, .second = sd};
    return question_ask(q, answer_interpolate);
}

static mtan_status latent_some(void *context, mtan_predictor *p, size_t first, size_t count) {
    const question *q = context;
    const size_t n = (size_t)q->model.config.ref_points * (size_t)q->model.config.latent;
    mtan_real *mean = tool_calloc(2 * n, sizeof *mean), *logvar = mean + n;
    mtan_status status = MTAN_OK;
    for (size_t i = first; i < first + count && status == MTAN_OK; i++) {
        const mtan_record r = dataset_view(&q->set, i);
        status = mtan_predictor_latent(p, &r, mean, logvar);
        for (size_t k = 0; status == MTAN_OK && k < n; k++)
            q->out[i * n + k] = (double)mean[k], q->second[i * n + k] = (double)logvar[k];
    }
    free(mean);
    return status;
}

static int answer_latent(question *q) {
    const mtan_config *c = &q->from->bundle.model.config;
    if (c->kind != MTAN_FULL || c->architecture || c->reference == MTAN_REF_OBSERVED)
        return complain("this model has no latent state of one size for all records"), 0;
    return question_open(q, 0) && question_start(q, dataset_bounds(&q->set)) &&
           (runner_each(&q->run, arrlenu(q->set.records), latent_some, q) || question_failed(q, NULL));
}

int32_t mtan_flat_latent(const mtan_flat_model *model, const mtan_flat_data *data, int32_t threads, double *mean,
                         double *logvar) {
    const question q = {.from = model, .data = data, .threads = threads, .samples = -1, .out = mean, .second = logvar};
    return question_ask(q, answer_latent);
}
