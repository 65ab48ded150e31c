/* See limits.h. */
#include "limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/synthetic.h"
#include "../options/options.h"
#include "../model/plan.h"
#include "../measure/rivals.h"

/* Standard deviation of the noise assumed in the solution with the true kernel; the points have no noise. */
#define KERNEL_NOISE 0.01

/* ---- predictors ---- */

/* Predicts a curve at a time from the points of its record. */
typedef struct guess {
    rival_process process;
    rival_series series;
    double key[SYNTHETIC_KEYS]; /* of the kernel: the keys' mean given the points */
} guess;

static double lines_at(const guess *g, double time) {
    return rival_linear(g->series, time, 0);
}

static double process_at(const guess *g, double time) {
    return rival_process_at(&g->process, g->series, time);
}

static double kernel_at(const guess *g, double time) {
    double weight[SYNTHETIC_KEYS], sum = 0;
    synthetic_weights(time, weight);
    for (size_t k = 0; k < SYNTHETIC_KEYS; k++) sum += weight[k] * g->key[k];
    return sum;
}

/* The keys are standard normals, and the points x are sums of them with known weights W. The mean of the keys given x
 * solves (W^T W + noise^2 I) key = W^T x. */
static void kernel_solve(guess *g) {
    double system[SYNTHETIC_KEYS * SYNTHETIC_KEYS] = {0}, weight[SYNTHETIC_KEYS];
    memset(g->key, 0, sizeof g->key);
    for (size_t k = 0; k < SYNTHETIC_KEYS; k++) system[k * SYNTHETIC_KEYS + k] = KERNEL_NOISE * KERNEL_NOISE;
    for (int32_t i = 0; i < g->series.n; i++) {
        synthetic_weights(g->series.seen[i].time, weight);
        for (size_t k = 0; k < SYNTHETIC_KEYS; k++) {
            g->key[k] += weight[k] * g->series.seen[i].value;
            for (size_t l = 0; l < SYNTHETIC_KEYS; l++) system[k * SYNTHETIC_KEYS + l] += weight[k] * weight[l];
        }
    }
    rival_solve(system, SYNTHETIC_KEYS, g->key);
}

static const struct limit {
    const char *row;
    double (*at)(const guess *g, double time);
} limits[] = {{"lines", lines_at}, {"process", process_at}, {"kernel", kernel_at}};

static const struct limit *limit_of(const char *row) {
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (strcmp(limits[i].row, row) == 0) return &limits[i];
    return NULL;
}

int limit_named(const char *row) {
    return limit_of(row) != NULL;
}

/* ---- errors ---- */

static mtan_observation *observations(const dataset *d, const int32_t *positions, rival_series *series) {
    mtan_observation *all = NULL;
    for (size_t i = 0; i < arrlenu(positions); i++) {
        const dataset_record *r = &d->records[positions[i]];
        const mtan_event *e = dataset_events(d, r);
        for (int32_t k = 0; k < r->n_events; k++) {
            const mtan_observation o = {(double)e[k].time, e[k].channel, (double)e[k].value};
            arrput(all, o);
        }
    }
    for (size_t i = 0, first = 0; i < arrlenu(positions); first += (size_t)series[i].n, i++)
        series[i].seen = all + first, series[i].n = d->records[positions[i]].n_events;
    return all;
}

static double squared(const struct limit *limit, const guess *g, const mtan_event *e, int32_t n) {
    double sum = 0;
    for (int32_t i = 0; i < n; i++) sum += pow(limit->at(g, (double)e[i].time) - (double)e[i].value, 2);
    return sum;
}

static double pooled(interval *range, const double *above, const double *below, size_t n, int32_t draws) {
    metric_quotient q = {above, below, NULL};
    *range = metric_bootstrap(metric_pooled, &q, n, NULL, draws, 0);
    return metric_pooled(&q, NULL, n);
}

static void measure(limit_error *e, const struct limit *limit, guess *g, const dataset *d, const int32_t *test,
                    int32_t draws) {
    const size_t n = arrlenu(test);
    double *column = tool_calloc(4 * n, sizeof *column);
    rival_series *series = tool_calloc(n, sizeof *series);
    mtan_observation *all = observations(d, test, series);
    for (size_t i = 0; i < n; i++) {
        const dataset_record *r = &d->records[test[i]];
        g->series = series[i];
        kernel_solve(g);
        column[i] = squared(limit, g, dataset_events(d, r), r->n_events), column[n + i] = r->n_events;
        column[2 * n + i] = squared(limit, g, dataset_truth(d, r), r->n_truth), column[3 * n + i] = r->n_truth;
    }
    e->reconstruction = pooled(&e->reconstruction_range, column, column + n, n, draws);
    e->interpolation = pooled(&e->interpolation_range, column + 2 * n, column + 3 * n, n, draws);
    arrfree(all);
    free(column), free(series);
}

static rival_process fit_process(const dataset *d, const int32_t *train) {
    rival_series *series = tool_calloc(arrlenu(train), sizeof *series);
    mtan_observation *all = observations(d, train, series);
    const rival_process p = rival_process_fit(series, arrlenu(train));
    arrfree(all);
    free(series);
    return p;
}

int limit_measure(limit_error *e, const char *row, int32_t draws) {
    const struct limit *limit = limit_of(row);
    char *words[] = {"mtan", "train", "toy-interp"};
    const source_input in = {0};
    options o;
    plan p;
    dataset d;
    split s;
    guess g;
    int good;
    if (!options_parse(&o, 3, words) || !plan_make(&p, &o) || !source_load(&d, &p.source, &in)) return 0;
    if ((good = source_split(&s, &p.source, &d))) {
        memset(&g, 0, sizeof g);
        if (limit->at == process_at) g.process = fit_process(&d, s.part[SPLIT_TRAIN]);
        measure(e, limit, &g, &d, s.part[SPLIT_TEST], draws);
        split_free(&s);
    }
    dataset_free(&d);
    return good;
}
