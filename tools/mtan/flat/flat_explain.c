/* Explanations for flat.h: times, observations, attention, importance. */
#include <stdlib.h>
#include <string.h>

#include "../base/messages.h"
#include "../run/bounds.h"
#include "../run/device.h"
#include "../measure/explain.h"
#include "../run/reference.h"
#include "flat_question.h"

/* ---- times and observations ---- */

static int answer_times(question *q) {
    size_t n = 0;
    mtan_real *times;
    if (!question_open(q, 0)) return 0;
    times = tool_calloc(arrlenu(q->set.events), sizeof *times); /* an upper bound */
    if (q->offset) q->offset[0] = 0;
    for (size_t i = 0; i < arrlenu(q->set.records); i++) {
        const mtan_record r = dataset_view(&q->set, i);
        const size_t L = distinct_times(&r, times);
        for (size_t k = 0; q->out && k < L; k++) q->out[n + k] = prep_raw_time(q->prep, SPLIT_TEST, (double)times[k]);
        n += L;
        if (q->offset) q->offset[i + 1] = (int64_t)n;
    }
    free(times);
    return 1;
}

int32_t mtan_flat_times(const mtan_flat_model *model, const mtan_flat_data *data, int64_t *offset, double *time) {
    const question q = {.from = model, .data = data, .offset = offset, .out = time};
    return question_ask(q, answer_times);
}

static int answer_observations(question *q) {
    if (!question_open(q, 0) || !question_has_record(q)) return 0;
    const dataset_record *r = &q->set.records[q->record];
    const mtan_event *e = dataset_events(&q->set, r);
    *q->count = r->n_events;
    for (int32_t i = 0; i < r->n_events; i++) {
        if (q->out) q->out[i] = prep_raw_time(q->prep, SPLIT_TEST, (double)e[i].time);
        if (q->channels) q->channels[i] = e[i].channel;
        if (q->second) q->second[i] = prep_raw_value(q->prep, e[i].channel, (double)e[i].value);
    }
    return 1;
}

int32_t mtan_flat_observations(const mtan_flat_model *model, const mtan_flat_data *data, int32_t record, int32_t *count,
                               double *time, int32_t *channel, double *value) {
    const question q = {.from = model,
                        .data = data,
                        .record = record,
                        .count = count,
                        .out = time,
                        .channels = channel,
                        .second = value};
    return question_ask(q, answer_observations);
}

static int answer_prepare(question *q) {
    size_t n = 0;
    if (!question_open(q, 0)) return 0;
    q->offset[0] = 0;
    for (size_t i = 0; i < arrlenu(q->set.records); i++) {
        const dataset_record *r = &q->set.records[i];
        const mtan_event *e = dataset_events(&q->set, r);
        for (int32_t k = 0; k < r->n_events; k++, n++) {
            if (q->out) q->out[n] = (double)e[k].time;
            if (q->channels) q->channels[n] = e[k].channel;
            if (q->second) q->second[n] = (double)e[k].value;
        }
        q->offset[i + 1] = (int64_t)n;
    }
    return 1;
}

int32_t mtan_flat_prepare(const mtan_flat_model *model, const mtan_flat_data *data, int64_t *offset, double *time,
                          int32_t *channel, double *value) {
    const question q = {
        .from = model, .data = data, .offset = offset, .out = time, .channels = channel, .second = value};
    return question_ask(q, answer_prepare);
}

/* ---- attention and importance ---- */

static int show_attention(question *q, const mtan_record *r) {
    const mtan_config *c = &q->model.config;
    const size_t L = distinct_times(r, NULL), K = reference_points(c, L);
    mtan_real *times = tool_calloc(L, sizeof *times), *weight = tool_calloc(K * L, sizeof *weight);
    const mtan_status status = mtan_predictor_attention(&q->run.predictor[0], r, q->head, q->channel, weight);
    distinct_times(r, times);
    for (size_t i = 0; status == MTAN_OK && i < K * L; i++) q->out[i] = (double)weight[i];
    for (size_t k = 0; status == MTAN_OK && k < K; k++)
        q->second[k] = prep_raw_time(q->prep, SPLIT_TEST, reference_time(c, times, k));
    free(times), free(weight);
    return status == MTAN_OK || (complain("attention of head %d to channel %d: %s", (int)q->head, (int)q->channel,
                                          mtan_status_message(status)),
                                 0);
}

static int answer_attention(question *q) {
    if (!question_open(q, 0) || !question_has_record(q) || !question_start(q, model_bounds(&q->model.config, &q->set)))
        return 0;
    const mtan_record r = dataset_view(&q->set, (size_t)q->record);
    return show_attention(q, &r);
}

int32_t mtan_flat_attention(const mtan_flat_model *model, const mtan_flat_data *data, int32_t record, int32_t head,
                            int32_t channel, double *weight, double *reference) {
    const question q = {.from = model,
                        .data = data,
                        .threads = 1,
                        .samples = -1,
                        .record = record,
                        .head = head,
                        .channel = channel,
                        .out = weight,
                        .second = reference};
    return question_ask(q, answer_attention);
}

static int answer_importance(question *q) {
    const mtan_config *c = &q->from->bundle.model.config;
    record_influence f;
    mtan_record r;
    if (c->classify != MTAN_CLASSIFY_RECORD)
        return complain("importance is of models that predict a class, a number or labels of each record"), 0;
    if (*q->count >= c->classes) return complain("class or label %d: there are %d", (int)*q->count, (int)c->classes), 0;
    if (!question_open(q, 0) || !question_has_record(q) || !question_start(q, model_bounds(c, &q->set))) return 0;
    r = dataset_view(&q->set, (size_t)q->record);
    if (!explain_observations(&f, &q->run, &r, *q->count, q->prep))
        return complain("record %s: %s", dataset_name(&q->set, (size_t)q->record), status_message(q->run.status)), 0;
    *q->count = f.of, *q->second = f.said;
    memcpy(q->out, f.change, (size_t)r.n_events * sizeof *q->out);
    record_influence_free(&f);
    return 1;
}

int32_t mtan_flat_importance(const mtan_flat_model *model, const mtan_flat_data *data, int32_t record, int32_t threads,
                             int32_t *of, double *said, double *change) {
    const question q = {.from = model,
                        .data = data,
                        .threads = threads,
                        .samples = -1,
                        .record = record,
                        .count = of,
                        .second = said,
                        .out = change};
    return question_ask(q, answer_importance);
}
