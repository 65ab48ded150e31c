/* See worth.h. */
#include "worth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/memory.h"

worth worth_of_classes(const predictions *p) {
    worth w;
    memset(&w, 0, sizeof w);
    w.task = MTAN_TASK_CLASSES, w.rows = p->rows, w.record = p->record, w.classes = p->classes;
    w.table = metric_table_new(p->p, p->classes == 2 ? p->score : NULL, p->label, p->rows, p->classes);
    return w;
}

worth worth_of_numbers(mtan_task task, const number_predictions *p) {
    worth w;
    memset(&w, 0, sizeof w);
    w.task = task, w.rows = p->rows, w.record = p->record, w.numbers = p;
    if (task == MTAN_TASK_LABELS) w.labels = label_tables_make(p->p, p->y, p->rows, p->outputs);
    return w;
}

void worth_free(worth *w) {
    if (w->task == MTAN_TASK_CLASSES) metric_table_free(w->table);
    if (w->task == MTAN_TASK_LABELS) label_tables_free(&w->labels);
    memset(w, 0, sizeof *w);
}

int task_metrics(mtan_task task, int32_t outputs) {
    switch (task) {
    case MTAN_TASK_CLASSES: return METRICS;
    case MTAN_TASK_NUMBER: return outputs == 3 ? NUMBER_METRICS : NUMBER_COVERAGE;
    case MTAN_TASK_LABELS: return METRIC_CALIBRATION; /* a calibration error is per label */
    }
    return 0;
}

const char *task_metric_key(mtan_task task, int metric) {
    return task == MTAN_TASK_NUMBER ? number_metric_key((number_metric)metric) : metric_key((metric_name)metric);
}

const char *task_metric_title(mtan_task task, int metric) {
    return task == MTAN_TASK_NUMBER ? number_metric_title((number_metric)metric) : metric_title((metric_name)metric);
}

int task_metric_has_interval(mtan_task task, int metric) {
    return task == MTAN_TASK_NUMBER || metric_has_interval((metric_name)metric);
}

int worth_metrics(const worth *w) {
    return task_metrics(w->task, w->numbers ? w->numbers->outputs : w->classes);
}

int worth_headline(const worth *w) {
    if (w->task == MTAN_TASK_NUMBER) return NUMBER_R2;
    return w->task == MTAN_TASK_LABELS || w->classes == 2 ? METRIC_AUC : METRIC_ACCURACY;
}

static double value_of(const worth *w, int metric, const int32_t *rows, size_t n) {
    metric_query of_classes = {w->table, (metric_name)metric, NULL};
    number_query of_number = {w->numbers, (number_metric)metric, NULL, NULL};
    label_query of_labels = {&w->labels, (metric_name)metric, -1, NULL};
    switch (w->task) {
    case MTAN_TASK_CLASSES: return metric_drawn(&of_classes, rows, n);
    case MTAN_TASK_NUMBER: return number_drawn(&of_number, rows, n);
    case MTAN_TASK_LABELS: return label_drawn(&of_labels, rows, n);
    }
    return NAN;
}

static double difference_of(const worth_query *q, const int32_t *rows, size_t n) {
    return value_of(q->of, q->metric, rows, n) - (q->minus ? value_of(q->minus, q->metric, rows, n) : 0);
}

double worth_drawn(void *context, const int32_t *rows, size_t n) {
    const worth_query *q = context;
    int32_t *chosen;
    double value;
    if (!q->only) return difference_of(q, rows, n);
    if (!rows) return difference_of(q, q->only, n);
    chosen = tool_calloc(n, sizeof *chosen);
    for (size_t i = 0; i < n; i++) chosen[i] = q->only[rows[i]];
    value = difference_of(q, chosen, n);
    free(chosen);
    return value;
}

int judged_make(judged *j, runner *run, const judged_data *on) {
    const mtan_task task = run->model->config.task;
    memset(j, 0, sizeof *j);
    if (task == MTAN_TASK_CLASSES) {
        if (!predictions_make(&j->classes, run, on->set, on->positions, on->faithful, on->batch)) return 0;
        predictions_drop_unlabelled(&j->classes);
        j->worth = worth_of_classes(&j->classes);
        return 1;
    }
    if (!numbers_make(&j->numbers, run, on->set, on->units, on->positions)) return 0;
    j->worth = worth_of_numbers(task, &j->numbers);
    return 1;
}

void judged_free(judged *j) {
    const mtan_task task = j->worth.task;
    worth_free(&j->worth);
    if (task == MTAN_TASK_CLASSES) predictions_free(&j->classes);
    else numbers_free(&j->numbers);
}
