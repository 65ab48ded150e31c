/* See report_baselines.h. */
#include "report_baselines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/array.h"
#include "../model/rivals.h"

/* ---- classes ---- */

double baseline_metric(metric_name name, const int32_t *label, size_t rows, int32_t classes) {
    const size_t C = (size_t)classes;
    double *p = tool_calloc(rows * C + 1, sizeof *p), *share = tool_calloc(C + 1, sizeof *share), value, known = 0;
    metric_query q = {NULL, name, NULL};
    for (size_t i = 0; i < rows; i++)
        if (label[i] >= 0 && label[i] < classes) share[label[i]] += 1, known += 1;
    for (size_t i = 0; i < rows * C; i++) p[i] = share[i % C] / fmax(known, 1);
    q.table = metric_table_new(p, NULL, label, rows, classes);
    value = metric_drawn(&q, NULL, rows);
    metric_table_free(q.table);
    free(p), free(share);
    return value;
}

/* A channel's events as the rivals take them. */
static rival_series series_of(mtan_observation **room, const mtan_event *e, size_t n, int32_t channel) {
    arrsetlen(*room, 0);
    for (size_t i = 0; i < n; i++) {
        const mtan_observation seen = {(double)e[i].time, channel, (double)e[i].value};
        if (e[i].channel == channel) arrput(*room, seen);
    }
    return (rival_series){*room, (int32_t)arrlen(*room)};
}

/* (channels) The mean of each over the training records, or over the session's own where the data has none of those; 0 where a
 * channel was never observed. */
static double *channel_means(const session *s) {
    const size_t D = arrlenu(s->data.channels);
    const int32_t *positions = arrlenu(s->split.part[SPLIT_TRAIN]) > 0 ? s->split.part[SPLIT_TRAIN] : s->positions;
    double *mean = tool_calloc(D + 1, sizeof *mean), *count = tool_calloc(D + 1, sizeof *count);
    for (size_t i = 0; i < arrlenu(positions); i++) {
        const dataset_record *r = &s->data.records[positions[i]];
        const mtan_event *e = dataset_events(&s->data, r);
        for (int32_t k = 0; k < r->n_events; k++) mean[e[k].channel] += (double)e[k].value, count[e[k].channel] += 1;
    }
    for (size_t d = 0; d < D; d++) mean[d] /= fmax(count[d], 1);
    free(count);
    return mean;
}

/* Records with their classes: summaries x (n, features) and labels. */
typedef struct summaries {
    double *x;
    int32_t *label;
    size_t n, features;
} summaries;

static summaries summaries_make(const session *s, const int32_t *positions, const double *means) {
    const size_t D = arrlenu(s->data.channels);
    summaries m = {NULL, NULL, 0, D * RIVAL_SUMMARIES};
    mtan_observation *room = NULL;
    m.x = tool_calloc(arrlenu(positions) * m.features + 1, sizeof *m.x);
    for (size_t i = 0; i < arrlenu(positions); i++) {
        const dataset_record *r = &s->data.records[positions[i]];
        const mtan_event *e = dataset_events(&s->data, r);
        if (r->n_labels != 1 || s->data.labels[r->label0] < 0) continue;
        for (size_t d = 0; d < D; d++)
            rival_summarise(series_of(&room, e, (size_t)r->n_events, (int32_t)d), means[d],
                            m.x + m.n * m.features + d * RIVAL_SUMMARIES);
        arrput(m.label, s->data.labels[r->label0]);
        m.n++;
    }
    arrfree(room);
    return m;
}

static void summaries_free(summaries *m) {
    free(m->x), arrfree(m->label);
}

static double regression_auc(const summaries *train, const summaries *test) {
    const size_t F = train->features;
    double *room = tool_calloc(3 * F + 1, sizeof *room), *score = tool_calloc(test->n + 1, sizeof *score), auc;
    rival_regression r = {room, room + F + 1, room + 2 * F + 1, F};
    rival_regression_fit(&r, train->x, train->label, train->n);
    for (size_t i = 0; i < test->n; i++) score[i] = rival_regression_at(&r, test->x + i * F);
    auc = metric_auc(score, test->label, test->n);
    free(room), free(score);
    return auc;
}

/* Newton's method takes records x features^2 a round: this bound is a few seconds. */
static const double REGRESSION_MOST = 3e8;

double baseline_regression_auc(const session *s) {
    const int32_t *training = s->split.part[SPLIT_TRAIN];
    const double features = (double)arrlenu(s->data.channels) * RIVAL_SUMMARIES;
    double auc = NAN, *means;
    if (arrlenu(s->data.classes) != 2 || s->data.label_times || arrlenu(training) == 0 || features < 1 ||
        (double)arrlenu(training) * features * features > REGRESSION_MOST)
        return NAN;
    means = channel_means(s);
    summaries train = summaries_make(s, training, means), test = summaries_make(s, s->positions, means);
    if (train.n > 1 && test.n > 0) auc = regression_auc(&train, &test);
    summaries_free(&train), summaries_free(&test);
    free(means);
    return auc;
}

/* ---- curves ---- */

/* The last value seen at or before a time; `otherwise` before the first. */
static double last_value(rival_series s, double time, double otherwise) {
    for (int32_t i = 0; i < s.n && s.seen[i].time <= time; i++) otherwise = s.seen[i].value;
    return otherwise;
}

typedef struct fill_sum {
    baseline_fill sum;
    double points;
} fill_sum;

static void fill_add(fill_sum *f, rival_series seen, const mtan_event *e, size_t n, int32_t channel, double mean) {
    for (size_t i = 0; i < n; i++) {
        const double time = (double)e[i].time, value = (double)e[i].value;
        if (e[i].channel != channel) continue;
        f->sum.lines += pow(rival_linear(seen, time, mean) - value, 2);
        f->sum.last += pow(last_value(seen, time, mean) - value, 2);
        f->sum.mean += pow(mean - value, 2);
        f->points += 1;
    }
}

static baseline_fill fill_mean(const fill_sum *f) {
    const double n = f->points > 0 ? f->points : NAN;
    return (baseline_fill){f->sum.lines / n, f->sum.last / n, f->sum.mean / n};
}

baseline_errors baseline_interpolation(const session *s, double share) {
    fill_sum all, held, truth;
    mtan_observation *room = NULL;
    double *means = channel_means(s);
    memset(&all, 0, sizeof all), memset(&held, 0, sizeof held), memset(&truth, 0, sizeof truth);
    for (size_t i = 0; i < arrlenu(s->positions); i++) {
        const dataset_record *r = &s->data.records[s->positions[i]];
        holdout h;
        holdout_make(&h, &s->data, (size_t)s->positions[i], share);
        for (int32_t d = 0; d < (int32_t)arrlen(s->data.channels); d++) {
            const rival_series seen = series_of(&room, h.seen, arrlenu(h.seen), d);
            fill_add(&held, seen, h.held, arrlenu(h.held), d, means[d]);
            fill_add(&all, seen, dataset_events(&s->data, r), (size_t)r->n_events, d, means[d]);
            fill_add(&truth, seen, dataset_truth(&s->data, r), (size_t)r->n_truth, d, means[d]);
        }
        holdout_free(&h);
    }
    arrfree(room), free(means);
    return (baseline_errors){fill_mean(&all), fill_mean(&held), fill_mean(&truth)};
}
