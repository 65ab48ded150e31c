/* Predictions for flat.h: classes, numbers, curves, the latent state. */
#include <stdlib.h>

#include "../command/messages.h"
#include "../model/bounds.h"
#include "../model/curve_samples.h"
#include "flat_question.h"

/* ---- classes and numbers ---- */

/* The record, with its queries if the model predicts at times. */
static mtan_record asked_record(const question *q, size_t i) {
    mtan_record r = dataset_view(&q->set, i);
    const int64_t *offset = q->data->query_offset;
    if (!offset || !question_per_time(q)) return r;
    r.times = q->query + offset[i], r.n_times = (int32_t)(offset[i + 1] - offset[i]);
    return r;
}

static int answer_predict(question *q) {
    if (!question_open(q, 0)) return 0;
    if (q->model.config.classify == MTAN_CLASSIFY_NONE)
        return complain("this model interpolates and does not classify"), 0;
    const size_t n = arrlenu(q->set.records), O = (size_t)mtan_config_outputs(&q->model.config);
    mtan_record *records = tool_calloc(n, sizeof *records);
    size_t *row0 = tool_calloc(n + 1, sizeof *row0);
    for (size_t i = 0; i < n; i++) {
        records[i] = asked_record(q, i);
        row0[i + 1] = row0[i] + (!question_per_time(q) ? 1
                                 : records[i].times    ? (size_t)records[i].n_times
                                                       : (size_t)q->set.records[i].n_times);
    }
    const int good = question_start(q, model_bounds(&q->model.config, &q->set)) &&
                     (runner_classify(&q->run, records, n, row0, q->out, NULL) || question_failed(q, NULL));
    for (size_t i = 0; good && i < row0[n] * O; i++) q->out[i] = flat_raw_output(&q->from->core, i, q->out[i]);
    free(row0), free(records);
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
