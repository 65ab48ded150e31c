/* See contest.h: numbers and labels. */
#include "contest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/array.h"
#include "labels.h"
#include "logistic.h"
#include "ridge.h"
#include "summaries.h"

static double number_of(const dataset *d, size_t place, size_t c) {
    return (double)d->numbers[place * arrlenu(d->classes) + c];
}

/* ---- labels ---- */

/* The rows of a table in which one label is known, for a regression with two classes. */
typedef struct known_rows {
    double *x;
    int32_t *label;
    size_t n, positive;
} known_rows;

static known_rows known_of(const summary_table *t, const dataset *d, size_t c) {
    known_rows k = {tool_calloc(t->n * t->features, sizeof *k.x), tool_calloc(t->n, sizeof *k.label), 0, 0};
    for (size_t i = 0; i < t->n; i++) {
        const double y = number_of(d, t->place[i], c);
        if (isnan(y)) continue;
        memcpy(k.x + k.n * t->features, t->x + i * t->features, t->features * sizeof *k.x);
        k.positive += y > 0.5, k.label[k.n++] = y > 0.5;
    }
    return k;
}

static void known_free(known_rows *k) {
    free(k->x), free(k->label);
}

/* A regression for each label. A label that is always the same in training has no fit: its weights are 0 and its
 * constant is the smoothed log-odds. */
typedef struct label_regressions {
    logistic *of;
    size_t labels;
} label_regressions;

static void fit_label(logistic *r, const summary_fit *f, const dataset *d, size_t c) {
    const size_t features = f->train.features;
    known_rows train = known_of(&f->train, d, c), valid = known_of(&f->valid, d, c);
    const logistic_rows fit = {train.x, train.label, train.n};
    const logistic_rows choose = {valid.n > 0 ? valid.x : train.x, valid.n > 0 ? valid.label : train.label,
                                  valid.n > 0 ? valid.n : train.n};
    if (train.positive > 0 && train.positive < train.n) logistic_choose(r, fit, choose, features, 2);
    else {
        logistic_fit(r, (logistic_rows){train.x, train.label, 0}, features, 2, 1);
        r->weight[features] = log((double)(1 + train.positive) / (double)(1 + train.n - train.positive));
    }
    known_free(&train), known_free(&valid);
}

static void ask_labels(const void *regression, const double *x, double *out) {
    const label_regressions *r = regression;
    for (size_t c = 0; c < r->labels; c++) {
        double p[2];
        logistic_at(&r->of[c], x, p);
        out[c] = p[1];
    }
}

static double *regress_labels(const dataset *d, const summary_row *train, const summary_row *valid,
                              const summary_row *rows) {
    label_regressions r = {NULL, arrlenu(d->classes)};
    summary_fit f;
    double *p;
    if (!summary_fit_make(&f, d, train, valid, (int32_t)r.labels)) return NULL;
    r.of = tool_calloc(r.labels, sizeof *r.of);
    for (size_t c = 0; c < r.labels; c++) fit_label(&r.of[c], &f, d, c);
    p = summary_ask(d, rows, ask_labels, &r, r.labels);
    for (size_t c = 0; c < r.labels; c++) logistic_free(&r.of[c]);
    free(r.of);
    summary_fit_free(&f);
    return p;
}

/* ---- numbers ---- */

static double *targets_of(const summary_table *t, const dataset *d) {
    double *y = tool_calloc(t->n, sizeof *y);
    for (size_t i = 0; i < t->n; i++) y[i] = number_of(d, t->place[i], 0);
    return y;
}

static void ask_number(const void *regression, const double *x, double *out) {
    *out = ridge_at(regression, x);
}

static double *regress_numbers(const dataset *d, const summary_row *train, const summary_row *valid,
                               const summary_row *rows) {
    ridge_regression r;
    summary_fit f;
    double *p, *y, *chosen;
    if (!summary_fit_make(&f, d, train, valid, 1)) return NULL;
    y = targets_of(&f.train, d), chosen = targets_of(&f.valid, d);
    ridge_choose(&r, (ridge_rows){f.train.x, y, f.train.n}, (ridge_rows){f.valid.x, chosen, f.valid.n},
                 f.train.features);
    p = summary_ask(d, rows, ask_number, &r, 1);
    ridge_free(&r), free(y), free(chosen);
    summary_fit_free(&f);
    return p;
}

/* ---- both ---- */

/* The mean of the known training values, for every row. The share of a label counts one extra row of each kind. */
static double *means_of(const dataset *d, const summary_row *known, size_t rows) {
    const size_t C = arrlenu(d->classes);
    const double more = d->task == MTAN_TASK_LABELS ? 1 : 0;
    double *p = tool_calloc(rows * C, sizeof *p);
    for (size_t c = 0; c < C; c++) {
        double sum = more, n = 2 * more;
        for (size_t i = 0; i < arrlenu(known); i++) {
            const double y = number_of(d, known[i].place, c);
            if (!isnan(y)) sum += y, n++;
        }
        for (size_t i = 0; i < rows; i++) p[i * C + c] = n > 0 ? sum / n : 0;
    }
    return p;
}

static void to_units(double *x, size_t n, const prep *units) {
    for (size_t i = 0; x && i < n; i++) x[i] = numbers_raw(units, x[i]);
}

void number_rivals_make(number_rivals *r, const dataset *d, const prep *units, const int32_t *train,
                        const int32_t *valid, const int32_t *asked) {
    const int labels = d->task == MTAN_TASK_LABELS;
    const size_t C = arrlenu(d->classes);
    summary_row *rows = summary_rows(d, asked), *seen = summary_rows(d, train), *chosen = summary_rows(d, valid);
    memset(r, 0, sizeof *r);
    r->rows = arrlenu(rows), r->count = (int32_t)C;
    r->y = tool_calloc(r->rows * C, sizeof *r->y), r->record = tool_calloc(r->rows, sizeof *r->record);
    for (size_t i = 0; i < r->rows; i++) {
        r->record[i] = rows[i].record;
        for (size_t c = 0; c < C; c++) r->y[i * C + c] = number_of(d, rows[i].place, c);
    }
    r->p[labels ? RIVAL_PREVALENCE : RIVAL_MEAN] = means_of(d, arrlenu(seen) > 0 ? seen : rows, r->rows);
    if (labels) r->p[RIVAL_REGRESSION] = regress_labels(d, seen, chosen, rows);
    else r->p[RIVAL_RIDGE] = regress_numbers(d, seen, chosen, rows);
    to_units(r->y, r->rows * C, units);
    for (int i = 0; i < RIVALS; i++) to_units(r->p[i], r->rows * C, units);
    arrfree(rows), arrfree(seen), arrfree(chosen);
}

void number_rivals_free(number_rivals *r) {
    for (int i = 0; i < RIVALS; i++) free(r->p[i]);
    free(r->y), free(r->record);
    memset(r, 0, sizeof *r);
}

/* ---- who is best ---- */

static contest_number number_number(number_metric name, const number_rivals *r, const number_predictions *model,
                                    int32_t draws) {
    const number_predictions alone = {r->rows, 1, NULL, r->y, r->record, NULL};
    number_query q = {model ? model : &alone, name, NULL, NULL};
    contest_number n =
        contest_number_new(number_metric_key(name), number_metric_title(name), number_metric_higher(name));
    n.in_units = number_metric_in_units(name), n.records = contest_records(r->record, NULL, r->rows, 0);
    if (model) n.model = number_drawn(&q, NULL, r->rows);
    for (int i = 0; i < RIVALS; i++)
        if ((q.instead = r->p[i]) != NULL) n.rival[i] = number_drawn(&q, NULL, r->rows);
    n.best = contest_best(&n);
    q.instead = NULL;
    if (!model || n.best == RIVALS) return n;
    q.minus = r->p[n.best];
    contest_judge(&n, number_drawn, &q, r->rows, r->record, draws);
    return n;
}

contest_number *contest_numbers(const number_rivals *r, const number_predictions *p, int32_t draws) {
    contest_number *numbers = NULL;
    if (p && p->rows != r->rows) return NULL; /* other rows: nothing can be paired */
    for (int i = 0; i < NUMBER_COVERAGE; i++) arrput(numbers, number_number((number_metric)i, r, p, draws));
    return numbers;
}

/* The records in which a label is true, or those in which it is not, if they are fewer: of the label that has most. */
static size_t rarest_outcome(const label_tables *t, const number_rivals *r) {
    size_t most = 0;
    for (int32_t c = 0; c < t->labels; c++) {
        const int32_t *truth = t->truth + (size_t)c * r->rows;
        const size_t yes = contest_records(r->record, truth, r->rows, 1),
                     no = contest_records(r->record, truth, r->rows, 0);
        if ((yes < no ? yes : no) > most) most = yes < no ? yes : no;
    }
    return most;
}

static contest_number label_number(metric_name name, const label_tables *model, const label_tables rival[RIVALS],
                                   const number_rivals *r, int32_t draws) {
    contest_number n = contest_number_new(metric_key(name), metric_title(name), metric_higher(name));
    label_query q = {model, name, -1, NULL};
    n.records = contest_records(r->record, NULL, r->rows, 0);
    if (name <= METRIC_AUPRC) n.rarest = rarest_outcome(&rival[RIVAL_PREVALENCE], r);
    if (model) n.model = label_drawn(&q, NULL, r->rows);
    for (int i = 0; i < RIVALS; i++)
        if (r->p[i]) q.tables = &rival[i], n.rival[i] = label_drawn(&q, NULL, r->rows);
    n.best = contest_best(&n);
    if (!model || n.best == RIVALS) return n;
    q.tables = model, q.minus = &rival[n.best];
    contest_judge(&n, label_drawn, &q, r->rows, r->record, draws);
    return n;
}

contest_number *contest_labels(const number_rivals *r, const number_predictions *p, int32_t draws) {
    label_tables rival[RIVALS], model;
    contest_number *numbers = NULL;
    if (p && (p->rows != r->rows || p->outputs != r->count)) return NULL; /* other rows: nothing can be paired */
    memset(&model, 0, sizeof model), memset(rival, 0, sizeof rival);
    if (p) model = label_tables_make(p->p, p->y, p->rows, p->outputs);
    for (int i = 0; i < RIVALS; i++)
        if (r->p[i]) rival[i] = label_tables_make(r->p[i], r->y, r->rows, r->count);
    for (int i = 0; i < METRICS; i++)
        if (i != METRIC_CALIBRATION) arrput(numbers, label_number((metric_name)i, p ? &model : NULL, rival, r, draws));
    for (int i = 0; i < RIVALS; i++) label_tables_free(&rival[i]);
    label_tables_free(&model);
    return numbers;
}
