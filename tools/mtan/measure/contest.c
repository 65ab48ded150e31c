/* See contest.h. */
#include "contest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/array.h"
#include "logistic.h"
#include "summaries.h"

static const struct {
    const char *key, *title;
} names[RIVALS] = {[RIVAL_SHARES] = {"majority", "the largest class"},
                   [RIVAL_PREVALENCE] = {"prevalence", "how often each label is true"},
                   [RIVAL_REGRESSION] = {"regression", "logistic regression on summaries"},
                   [RIVAL_RIDGE] = {"ridge", "ridge regression on summaries"},
                   [RIVAL_MEAN] = {"mean", "the mean"},
                   [RIVAL_LAST] = {"last", "the last value"},
                   [RIVAL_LINES] = {"lines", "straight lines"}};

const char *rival_key(rival_name name) {
    return names[name].key;
}

const char *rival_title(rival_name name) {
    return names[name].title;
}

/* ---- classes ---- */

static logistic_rows rows_of(const summary_table *t) {
    return (logistic_rows){t->x, t->label, t->n};
}

/* 0: too few rows, no feature, or a single class. */
static int fit_regression(logistic *r, const dataset *d, const summary_row *train, const summary_row *valid) {
    const int32_t classes = (int32_t)arrlen(d->classes);
    const int32_t columns = classes > 2 ? classes : 1;
    summary_fit f;
    if (classes < 2 || !summary_fit_make(&f, d, train, valid, columns)) return 0;
    logistic_choose(r, rows_of(&f.train), rows_of(&f.valid), f.train.features, classes);
    summary_fit_free(&f);
    return 1;
}

static void ask_one(const void *regression, const double *x, double *out) {
    logistic_at(regression, x, out);
}

/* Laplace smoothing: counts one extra row of each class, as a class that training never saw is rare, not impossible. */
static double *class_shares(const summary_row *known, size_t rows, int32_t classes) {
    const size_t C = (size_t)classes;
    double *share = tool_calloc(C, sizeof *share), *p = tool_calloc(rows * C, sizeof *p), all = classes;
    for (size_t c = 0; c < C; c++) share[c] = 1;
    for (size_t i = 0; i < arrlenu(known); i++) share[known[i].label]++, all++;
    for (size_t i = 0; i < rows * C; i++) p[i] = share[i % C] / all;
    free(share);
    return p;
}

void class_rivals_make(class_rivals *r, const dataset *d, const int32_t *train, const int32_t *valid,
                       const int32_t *asked) {
    summary_row *rows = summary_rows(d, asked), *seen = summary_rows(d, train), *chosen = summary_rows(d, valid);
    logistic fit;
    memset(r, 0, sizeof *r);
    r->rows = arrlenu(rows), r->classes = (int32_t)arrlen(d->classes), r->ridge = NAN;
    r->label = tool_calloc(r->rows, sizeof *r->label), r->record = tool_calloc(r->rows, sizeof *r->record);
    for (size_t i = 0; i < r->rows; i++) r->label[i] = rows[i].label, r->record[i] = rows[i].record;
    r->p[RIVAL_SHARES] = class_shares(arrlenu(seen) > 0 ? seen : rows, r->rows, r->classes);
    if (fit_regression(&fit, d, seen, chosen)) {
        r->p[RIVAL_REGRESSION] = summary_ask(d, rows, ask_one, &fit, (size_t)fit.classes);
        r->ridge = fit.ridge;
        logistic_free(&fit);
    }
    arrfree(rows), arrfree(seen), arrfree(chosen);
}

void class_rivals_free(class_rivals *r) {
    for (int i = 0; i < RIVALS; i++) free(r->p[i]);
    free(r->label), free(r->record);
    memset(r, 0, sizeof *r);
}

/* ---- who is best ---- */

rival_name contest_best(const contest_number *n) {
    rival_name best = RIVALS;
    for (int i = 0; i < RIVALS; i++)
        if (!isnan(n->rival[i]) && (best == RIVALS || n->higher * (n->rival[i] - n->rival[best]) > 0))
            best = (rival_name)i;
    return best;
}

contest_number contest_number_new(const char *key, const char *title, int higher) {
    contest_number n = {key, title, higher, 0, NAN, {0}, RIVALS, NAN, {NAN, NAN}, SIZE_MAX, SIZE_MAX};
    for (int i = 0; i < RIVALS; i++) n.rival[i] = NAN;
    return n;
}

void contest_judge(contest_number *n, metric_function difference, void *context, size_t rows, const int32_t *group,
                   int32_t draws) {
    interval range;
    n->better = n->higher * (n->model - n->rival[n->best]);
    if (isnan(n->better) || draws == 0) return;
    range = metric_bootstrap(difference, context, rows, group, draws, 0);
    n->range.low = n->higher > 0 ? range.low : -range.high, n->range.high = n->higher > 0 ? range.high : -range.low;
}

size_t contest_records(const int32_t *record, const int32_t *label, size_t rows, int32_t of) {
    int32_t last = -1;
    size_t n = 0;
    for (size_t i = 0; i < rows; i++)
        if ((!label || label[i] == of) && record[i] != last) n++, last = record[i];
    return n;
}

/* The records of the rarest of the classes that occur. */
static size_t rarest_class(const class_rivals *r) {
    size_t rarest = SIZE_MAX;
    for (int32_t c = 0; c < r->classes; c++) {
        const size_t n = contest_records(r->record, r->label, r->rows, c);
        if (n > 0 && n < rarest) rarest = n;
    }
    return rarest;
}

static contest_number class_number(metric_name name, metric_table *model, metric_table *const rival[RIVALS],
                                   const class_rivals *r, int32_t draws) {
    contest_number n = contest_number_new(metric_key(name), metric_title(name), metric_higher(name));
    metric_query q = {model, name, NULL};
    n.records = contest_records(r->record, NULL, r->rows, 0);
    if (name <= METRIC_AUPRC) n.rarest = rarest_class(r);
    if (model) n.model = metric_drawn(&q, NULL, r->rows);
    for (int i = 0; i < RIVALS; i++)
        if ((q.table = rival[i]) != NULL) n.rival[i] = metric_drawn(&q, NULL, r->rows);
    n.best = contest_best(&n);
    if (!model || n.best == RIVALS) return n;
    q.table = model, q.minus = rival[n.best];
    contest_judge(&n, metric_drawn, &q, r->rows, r->record, draws);
    return n;
}

contest_number *contest_classes(const class_rivals *r, const predictions *p, int32_t draws) {
    metric_table *rival[RIVALS] = {NULL}, *model = NULL;
    contest_number *numbers = NULL;
    if (p && (p->rows != r->rows || p->classes != r->classes)) return NULL; /* other rows: nothing can be paired */
    if (p) model = metric_table_new(p->p, p->classes == 2 ? p->score : NULL, r->label, r->rows, r->classes);
    for (int i = 0; i < RIVALS; i++)
        if (r->p[i]) rival[i] = metric_table_new(r->p[i], NULL, r->label, r->rows, r->classes);
    for (int i = 0; i < METRICS; i++)
        if (i != METRIC_CALIBRATION) arrput(numbers, class_number((metric_name)i, model, rival, r, draws));
    for (int i = 0; i < RIVALS; i++) metric_table_free(rival[i]);
    metric_table_free(model);
    return numbers;
}

/* ---- curves ---- */

/* (channels) The mean of each channel over these records; 0 where it was never observed. */
static double *channel_means(const dataset *d, const int32_t *positions) {
    const size_t D = arrlenu(d->channels);
    double *mean = tool_calloc(D, sizeof *mean), *count = tool_calloc(D, sizeof *count);
    for (size_t i = 0; i < arrlenu(positions); i++) {
        const dataset_record *r = &d->records[positions[i]];
        const mtan_event *e = dataset_events(d, r);
        for (int32_t k = 0; k < r->n_events; k++) mean[e[k].channel] += (double)e[k].value, count[e[k].channel] += 1;
    }
    for (size_t c = 0; c < D; c++) mean[c] /= fmax(count[c], 1);
    free(count);
    return mean;
}

static double filled(rival_name name, rival_series seen, double time, double mean) {
    return name == RIVAL_LINES  ? rival_linear(seen, time, mean)
           : name == RIVAL_LAST ? rival_last(seen, time, mean)
                                : mean;
}

static double fill_error(rival_name name, const series_set *s, const double *means, const mtan_event *e, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t c = (size_t)e[i].channel;
        const double off = filled(name, series_of(s, c), (double)e[i].time, means[c]) - (double)e[i].value;
        sum += off * off;
    }
    return sum;
}

/* One baseline's errors on every record (asked), as interpolation_measure computes the model's. */
static void fill_records(record_error *error, rival_name name, const dataset *d, const int32_t *asked, double share,
                         const double *means) {
    series_set s = series_new(d);
    for (size_t i = 0; i < arrlenu(asked); i++) {
        const dataset_record *r = &d->records[asked[i]];
        holdout h;
        holdout_make(&h, d, (size_t)asked[i], share);
        series_fill(&s, h.seen, arrlenu(h.seen));
        error[i].held = fill_error(name, &s, means, h.held, arrlenu(h.held));
        error[i].all = fill_error(name, &s, means, dataset_events(d, r), (size_t)r->n_events);
        error[i].truth = fill_error(name, &s, means, dataset_truth(d, r), (size_t)r->n_truth);
        error[i].held_points = arrlenu(h.held), error[i].points = (size_t)r->n_events;
        error[i].truth_points = (size_t)r->n_truth;
        holdout_free(&h);
    }
    series_free(&s);
}

typedef enum error_kind { ERROR_HELD, ERROR_ALL, ERROR_TRUTH, ERRORS } error_kind;

static double error_of(const record_error *e, error_kind kind) {
    return kind == ERROR_HELD ? e->held : kind == ERROR_ALL ? e->all : e->truth;
}

static double points_of(const record_error *e, error_kind kind) {
    return (double)(kind == ERROR_HELD ? e->held_points : kind == ERROR_ALL ? e->points : e->truth_points);
}

/* (n) One participant's sum of squared errors on each record. */
static double *column_of(const record_error *e, size_t n, error_kind kind) {
    double *column = e ? tool_calloc(n, sizeof *column) : NULL;
    for (size_t i = 0; e && i < n; i++) column[i] = error_of(&e[i], kind);
    return column;
}

static contest_number curve_number(error_kind kind, const record_error *model, record_error *const rival[RIVALS],
                                   size_t n, int32_t draws) {
    static const char *const keys[ERRORS] = {"mse_held_out", "mse_all", "mse_truth"};
    static const char *const titles[ERRORS] = {"squared error, held out", "squared error, all points",
                                               "squared error, true curve"};
    contest_number x = contest_number_new(keys[kind], titles[kind], -1);
    double *points = tool_calloc(n, sizeof *points), *ours = column_of(model, n, kind), *theirs[RIVALS];
    metric_quotient q = {ours, points, NULL};
    x.records = 0;
    for (size_t i = 0; i < n; i++) points[i] = points_of(&rival[RIVAL_LINES][i], kind), x.records += points[i] > 0;
    if (ours) x.model = metric_pooled(&q, NULL, n);
    for (int i = 0; i < RIVALS; i++)
        if ((q.above = theirs[i] = column_of(rival[i], n, kind)) != NULL) x.rival[i] = metric_pooled(&q, NULL, n);
    x.best = contest_best(&x);
    if (ours && x.best < RIVALS) {
        q.above = ours, q.minus = theirs[x.best];
        contest_judge(&x, metric_pooled, &q, n, NULL, draws);
    }
    for (int i = 0; i < RIVALS; i++) free(theirs[i]);
    free(points), free(ours);
    return x;
}

contest_number *contest_curves(const dataset *d, const int32_t *train, const int32_t *asked, double share,
                               const record_error *model, int32_t draws) {
    static const rival_name taking_part[] = {RIVAL_MEAN, RIVAL_LAST, RIVAL_LINES};
    const size_t n = arrlenu(asked);
    double *means = channel_means(d, arrlenu(train) > 0 ? train : asked);
    record_error *rival[RIVALS] = {NULL};
    contest_number *numbers = NULL;
    for (size_t i = 0; i < sizeof taking_part / sizeof taking_part[0]; i++) {
        rival[taking_part[i]] = tool_calloc(n, sizeof **rival);
        fill_records(rival[taking_part[i]], taking_part[i], d, asked, share, means);
    }
    for (int kind = 0; kind < ERRORS; kind++) {
        const contest_number x = curve_number((error_kind)kind, model, rival, n, draws);
        if (x.best < RIVALS) arrput(numbers, x);
    }
    for (int i = 0; i < RIVALS; i++) free(rival[i]);
    free(means);
    return numbers;
}

int32_t contest_classes_of(const mtan_config *config) {
    if (config->classify == MTAN_CLASSIFY_NONE || config->task == MTAN_TASK_NUMBER) return 0;
    return config->task == MTAN_TASK_LABELS ? 2 : config->classes;
}

const contest_number *contest_headline(const contest_number *numbers, int32_t classes) {
    static const char *const wanted[] = {"mse_held_out", "mse_truth", "mse_all", "rmse"};
    const char *of_classes = metric_key(classes == 2 ? METRIC_AUC : METRIC_ACCURACY);
    for (size_t k = 0; k < sizeof wanted / sizeof wanted[0]; k++)
        for (size_t i = 0; i < arrlenu(numbers); i++)
            if (strcmp(numbers[i].key, classes > 0 ? of_classes : wanted[k]) == 0) return &numbers[i];
    return NULL;
}
