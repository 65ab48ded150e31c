/* Evaluation for flat.h: the metrics of `mtan eval`. */
#include <math.h>

#include "../base/messages.h"
#include "../run/bounds.h"
#include "../measure/interpolation.h"
#include "../measure/worth.h"
#include "flat_question.h"

static int32_t *all_positions(const question *q) {
    int32_t *positions = NULL;
    for (int32_t i = 0; i < (int32_t)arrlen(q->set.records); i++) arrput(positions, i);
    return positions;
}

static void put_metric(question *q, int index, double value, interval range) {
    q->out[3 * index] = value, q->out[3 * index + 1] = range.low, q->out[3 * index + 2] = range.high;
}

/* The bootstrap draws the rows of one record together. */
static interval range_of(const question *q, worth_query *m) {
    const interval none = {NAN, NAN};
    const int has = q->draws > 0 && task_metric_has_interval(m->of->task, m->metric);
    return has ? metric_bootstrap(worth_drawn, m, m->of->rows, m->of->record, q->draws, 0) : none;
}

static int evaluate_task(question *q, const int32_t *positions) {
    const judged_data on = {&q->set, positions, q->from->source.preset == MTAN_FAITHFUL, q->from->batch, q->prep};
    judged j;
    if (!judged_make(&j, &q->run, &on)) return question_failed(q, positions);
    const worth *w = &j.worth;
    const int good = w->rows > 0 || (complain("no record has a label"), 0);
    for (int i = 0; good && i < worth_metrics(w); i++) {
        worth_query m = {w, i, NULL, NULL};
        put_metric(q, i, worth_drawn(&m, NULL, w->rows), range_of(q, &m));
    }
    judged_free(&j);
    return good;
}

static int evaluate_curves(question *q, const int32_t *positions) {
    const interpolation_request ask_for = {.data = &q->set,
                                           .positions = positions,
                                           .share = q->from->source.observed,
                                           .batch = q->from->batch,
                                           .pooled = q->from->source.preset == MTAN_FAITHFUL ? q->from->batch : 0,
                                           .prep = q->prep};
    interpolation_error e;
    if (!interpolation_measure(&e, &q->run, &ask_for, q->draws)) return question_failed(q, positions);
    put_metric(q, 0, e.held, e.held_range);
    put_metric(q, 1, e.all, e.all_range);
    return 1;
}

static int answer_evaluate(question *q) {
    const mtan_config *c = &q->from->bundle.model.config;
    const int curves = c->classify == MTAN_CLASSIFY_NONE;
    int32_t *positions;
    int good;
    if (!question_open(q, 1)) return 0;
    if (!curves && c->task != q->set.task)
        return complain("the data's labels are not what the model predicts: a class, a number or several labels"), 0;
    q->set.horizon = (double)prep_time(q->prep, SPLIT_TEST, q->from->source.forecast);
    if (!question_start(q, curves ? interpolation_bounds(&q->set) : model_bounds(c, &q->set))) return 0;
    positions = all_positions(q);
    good = curves ? evaluate_curves(q, positions) : evaluate_task(q, positions);
    arrfree(positions);
    return good;
}

const char *mtan_flat_metric(const mtan_flat_model *model, int32_t index) {
    static const char *const curves[] = {"mse_held_out", "mse"};
    const mtan_config *c = &model->bundle.model.config;
    if (index < 0) return NULL;
    if (c->classify == MTAN_CLASSIFY_NONE) return index < 2 ? curves[index] : NULL;
    return index < task_metrics(c->task, mtan_config_outputs(c)) ? task_metric_key(c->task, index) : NULL;
}

int32_t mtan_flat_evaluate(const mtan_flat_model *model, const mtan_flat_data *data, int32_t threads, int32_t samples,
                           uint64_t seed, int32_t draws, double *value) {
    const question q = {.from = model,
                        .data = data,
                        .threads = threads,
                        .samples = samples,
                        .seed = seed,
                        .draws = draws,
                        .out = value};
    return question_ask(q, answer_evaluate);
}
