/* See flat_question.h. */
#include "flat_question.h"

#include <stdlib.h>

#include "../base/messages.h"
#include "../model/shared_options.h"
#include "../run/device.h"

static void take_queries(question *q) {
    const int64_t *offset = q->data->query_offset;
    const size_t n = offset ? (size_t)offset[q->data->columns.n_records] : 0;
    if (!offset) return;
    q->query = tool_calloc(n + 1, sizeof *q->query);
    for (size_t i = 0; i < n; i++) q->query[i] = prep_time(q->prep, SPLIT_TEST, q->data->query_time[i]);
}

/* The most queries of one record in one call. */
static int32_t most_queries(const question *q) {
    const int64_t *offset = q->data->query_offset;
    int64_t most = 0;
    for (int32_t r = 0; offset && r < q->data->columns.n_records; r++)
        if (offset[r + 1] - offset[r] > most) most = offset[r + 1] - offset[r];
    return most < QUERIES_AT_ONCE ? (int32_t)most : QUERIES_AT_ONCE;
}

int question_open(question *q, int with_labels) {
    own_columns c = q->data->columns;
    q->model = q->from->bundle.model, q->prep = &q->from->bundle.prep;
    if (q->samples >= 0) q->model.config.predict_samples = q->samples;
    if (!with_labels) c.label = NULL, c.number = c.several = NULL, c.label_offset = NULL, c.n_classes = 0;
    if (!flat_prepare(&q->set, q->from, &c, q->data->skip_unknown)) return 0;
    take_queries(q);
    return 1;
}

int question_start(question *q, mtan_bounds bounds) {
    char error[512] = "";
    if (bounds.times < most_queries(q)) bounds.times = most_queries(q);
    if (!runner_start(&q->run, &q->model, bounds, q->threads > 0 ? q->threads : usual_threads(), error))
        return complain("%s", error), 0;
    runner_seed(&q->run, q->seed);
    return 1;
}

int question_failed(const question *q, const int32_t *positions) {
    const size_t record = positions ? (size_t)positions[q->run.failed] : q->run.failed;
    return complain("record %s%s: %s", dataset_name(&q->set, record), runner_doubt(&q->run),
                    status_message(q->run.status)),
           0;
}

static void question_close(question *q) {
    if (q->run.predictor) runner_stop(&q->run);
    dataset_free(&q->set);
    free(q->query);
}

typedef struct asking {
    question *q;
    int (*answer)(question *q);
} asking;

static int answer(void *job) {
    const asking *a = job;
    const int good = a->answer(a->q);
    question_close(a->q);
    return good;
}

int32_t question_ask(question q, int (*how)(question *q)) {
    asking a = {&q, how};
    return flat_call(answer, &a);
}

int question_has_record(const question *q) {
    if (q->record >= 0 && q->record < (int32_t)arrlen(q->set.records)) return 1;
    return complain("record %d: there are %d", (int)q->record, (int)arrlen(q->set.records)), 0;
}

int question_per_time(const question *q) {
    return q->model.config.classify == MTAN_CLASSIFY_TIME;
}
