/* What predictions are worth, for flat.h: the metrics of `mtan eval`. */
#include <math.h>

#include "../command/messages.h"
#include "../model/bounds.h"
#include "../model/interpolation.h"
#include "../model/labels.h"
#include "../model/numbers.h"
#include "../model/predictions.h"
#include "flat_question.h"

static int32_t *all_positions(const question *q) {
    int32_t *positions = NULL;
    for (int32_t i = 0; i < (int32_t)arrlen(q->set.records); i++) arrput(positions, i);
    return positions;
}

static void put_metric(question *q, int index, double value, interval range) {
    q->out[3 * index] = value, q->out[3 * index + 1] = range.low, q->out[3 * index + 2] = range.high;
}

/* Rows of one record are drawn together. */
static interval range_of(const question *q, metric_function metric, void *context, size_t rows, const int32_t *record) {
    const interval none = {NAN, NAN};
    return q->draws > 0 ? metric_bootstrap(metric, context, rows, record, q->draws, 0) : none;
}

static int evaluate_classes(question *q, const int32_t *positions) {
    predictions p;
    if (!predictions_make(&p, &q->run, &q->set, positions, q->from->source.preset == MTAN_FAITHFUL, q->from->batch))
        return question_failed(q, positions);
    predictions_drop_unlabelled(&p);
    if (p.rows == 0) return complain("no record has a label"), predictions_free(&p), 0;
    metric_query m = {metric_table_new(p.p, p.classes == 2 ? p.score : NULL, p.label, p.rows, p.classes), METRIC_AUC,
                      NULL};
    for (int i = 0; i < METRICS; i++) {
        m.name = (metric_name)i;
        put_metric(q, i, metric_drawn(&m, NULL, p.rows), range_of(q, metric_drawn, &m, p.rows, p.record));
    }
    metric_table_free(m.table);
    predictions_free(&p);
    return 1;
}

static int evaluate_numbers(question *q, const int32_t *positions) {
    number_predictions p;
    if (!numbers_make(&p, &q->run, &q->set, q->prep, positions)) return question_failed(q, positions);
    if (p.rows == 0) return complain("no record has a number"), numbers_free(&p), 0;
    for (int i = 0; i < NUMBER_METRICS; i++) {
        number_query m = {&p, (number_metric)i, NULL, NULL};
        put_metric(q, i, number_drawn(&m, NULL, p.rows), range_of(q, number_drawn, &m, p.rows, p.record));
    }
    numbers_free(&p);
    return 1;
}

/* Means over the labels. */
static int evaluate_labels(question *q, const int32_t *positions) {
    number_predictions p;
    label_tables t;
    if (!numbers_make(&p, &q->run, &q->set, NULL, positions)) return question_failed(q, positions);
    if (p.rows == 0) return complain("no record has a label"), numbers_free(&p), 0;
    t = label_tables_make(p.p, p.y, p.rows, p.outputs);
    for (int i = 0; i < METRIC_CALIBRATION; i++) {
        interval range;
        const double value = label_measure(&t, &p, (metric_name)i, -1, q->draws, &range);
        put_metric(q, i, value, range);
    }
    label_tables_free(&t), numbers_free(&p);
    return 1;
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
    good = curves                        ? evaluate_curves(q, positions)
           : c->task == MTAN_TASK_NUMBER ? evaluate_numbers(q, positions)
           : c->task == MTAN_TASK_LABELS ? evaluate_labels(q, positions)
                                         : evaluate_classes(q, positions);
    arrfree(positions);
    return good;
}

const char *mtan_flat_metric(const mtan_flat_model *model, int32_t index) {
    static const char *const curves[] = {"mse_held_out", "mse"};
    const mtan_config *c = &model->bundle.model.config;
    const int most = c->classify == MTAN_CLASSIFY_NONE ? 2
                     : c->task == MTAN_TASK_NUMBER     ? NUMBER_METRICS
                     : c->task == MTAN_TASK_LABELS     ? METRIC_CALIBRATION
                                                       : METRICS;
    if (index < 0 || index >= most) return NULL;
    if (c->classify == MTAN_CLASSIFY_NONE) return curves[index];
    return c->task == MTAN_TASK_NUMBER ? number_metric_key((number_metric)index) : metric_key((metric_name)index);
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
