/* See numbers.h. */
#include "numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/memory.h"
#include "../../data/percentile.h"

static size_t rows_of(const dataset *d, int32_t position, int per_time) {
    const dataset_record *r = &d->records[position];
    return !per_time ? 1 : r->n_labels > 0 ? (size_t)r->n_labels : (size_t)r->n_times;
}

double numbers_raw(const prep *units, double x) {
    const mtan_prep view = units ? prep_view(units, SPLIT_TEST) : (mtan_prep){0};
    return mtan_prep_raw_number(&view, 0, x);
}

/* Keeps the rows that have a number, `outputs` predictions each. */
static void keep_known(number_predictions *p, const dataset *d, const prep *units, const int32_t *positions,
                       const size_t *row0) {
    const size_t O = (size_t)p->outputs, C = arrlenu(d->classes);
    for (size_t i = 0; i < arrlenu(positions); i++) {
        const dataset_record *r = &d->records[positions[i]];
        for (size_t row = row0[i]; row < row0[i + 1]; row++) {
            const size_t k = row - row0[i];
            if ((int32_t)k >= r->n_labels || d->labels[r->label0 + k] == MTAN_UNLABELED) continue;
            for (size_t o = 0; o < O; o++) p->p[p->rows * O + o] = numbers_raw(units, p->p[row * O + o]);
            for (size_t c = 0; c < C; c++)
                p->y[p->rows * C + c] = numbers_raw(units, (double)dataset_numbers(d, r)[k * C + c]);
            p->place[p->rows] = r->label0 + k, p->record[p->rows++] = positions[i];
        }
    }
}

static int make(number_predictions *p, runner *run, const dataset *d, const prep *units, const int32_t *positions,
                int sorted) {
    const size_t n = arrlenu(positions);
    const int per_time = run->model->config.classify == MTAN_CLASSIFY_TIME;
    mtan_record *records = tool_calloc(n, sizeof *records);
    size_t *row0 = tool_calloc(n + 1, sizeof *row0);
    int good;
    memset(p, 0, sizeof *p);
    for (size_t i = 0; i < n; i++) {
        records[i] = dataset_view(d, (size_t)positions[i]);
        row0[i + 1] = row0[i] + rows_of(d, positions[i], per_time);
    }
    p->outputs = mtan_config_outputs(&run->model->config);
    p->p = tool_calloc(row0[n] * (size_t)p->outputs, sizeof *p->p);
    p->y = tool_calloc(row0[n] * arrlenu(d->classes), sizeof *p->y);
    p->record = tool_calloc(row0[n], sizeof *p->record), p->place = tool_calloc(row0[n], sizeof *p->place);
    good = runner_classify(run, records, n, row0, sorted ? p->p : NULL, sorted ? NULL : p->p);
    if (good) keep_known(p, d, units, positions, row0);
    else numbers_free(p);
    free(row0), free(records);
    return good;
}

int numbers_make(number_predictions *p, runner *run, const dataset *d, const prep *units, const int32_t *positions) {
    return make(p, run, d, units, positions, 1);
}

int numbers_make_unsorted(number_predictions *p, runner *run, const dataset *d, const int32_t *positions) {
    return make(p, run, d, NULL, positions, 0);
}

void numbers_sort(number_predictions *p) {
    for (size_t i = 0; p->outputs == 3 && i < p->rows; i++) sort_ascending(p->p + 3 * i, 3);
}

double numbers_middle(const number_predictions *p, size_t row) {
    return p->p[row * (size_t)p->outputs + (size_t)p->outputs / 2];
}

double numbers_loss(const number_predictions *p, double interval) {
    double sum = 0;
    for (size_t i = 0; i < p->rows * (size_t)p->outputs; i++) {
        const double e = p->y[i / (size_t)p->outputs] - p->p[i];
        const double quantile = (1 + ((double)(i % (size_t)p->outputs) - 1) * interval) / 2;
        sum += p->outputs == 1 ? e * e : fmax(quantile * e, (quantile - 1) * e);
    }
    return sum / (double)p->rows;
}

void numbers_free(number_predictions *p) {
    free(p->p), free(p->y), free(p->record), free(p->place);
    memset(p, 0, sizeof *p);
}

/* ---- metrics ---- */

static const char *const names[NUMBER_METRICS][2] = {
    {"rmse", "RMSE"}, {"mae", "MAE"}, {"r2", "R2"}, {"coverage", "in the interval"}};

const char *number_metric_key(number_metric name) {
    return names[name][0];
}

const char *number_metric_title(number_metric name) {
    return names[name][1];
}

int number_metric_higher(number_metric name) {
    return name == NUMBER_R2 ? 1 : -1;
}

int number_metric_in_units(number_metric name) {
    return name == NUMBER_RMSE || name == NUMBER_MAE;
}

static int is_within(const number_predictions *p, size_t row) {
    return p->y[row] >= p->p[3 * row] && p->y[row] <= p->p[3 * row + 2];
}

/* instead: as in number_query. */
static double measure(const number_query *q, const double *instead, const int32_t *rows, size_t n) {
    double squares = 0, sizes = 0, within = 0, sum = 0, around = 0;
    for (size_t i = 0; i < n; i++) sum += q->p->y[rows ? (size_t)rows[i] : i];
    for (size_t i = 0; i < n; i++) {
        const size_t row = rows ? (size_t)rows[i] : i;
        const double y = q->p->y[row], e = (instead ? instead[row] : numbers_middle(q->p, row)) - y;
        squares += e * e, sizes += fabs(e);
        around += (y - sum / (double)n) * (y - sum / (double)n);
        within += q->p->outputs == 3 && is_within(q->p, row);
    }
    switch (q->name) {
    case NUMBER_RMSE: return sqrt(squares / (double)n);
    case NUMBER_MAE: return sizes / (double)n;
    case NUMBER_R2: return around > 0 ? 1 - squares / around : NAN;
    case NUMBER_COVERAGE: return q->p->outputs == 3 ? within / (double)n : NAN;
    case NUMBER_METRICS: break;
    }
    return NAN;
}

double number_drawn(void *context, const int32_t *rows, size_t n) {
    const number_query *q = context;
    const double value = measure(q, q->instead, rows, n);
    return q->minus ? value - measure(q, q->minus, rows, n) : value;
}
