/* See boost.h. */
#include "boost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/memory.h"
#include "../../data/percentile.h"
#include "metrics.h"

/* Rows of which the fit knows the step that each number stands at, and the sums of its terms so far. */
typedef struct placed {
    boost_rows rows;
    uint16_t *step; /* (numbers, n): 0 without the number, else 1 + thresholds up to it */
    double *sum;    /* (n, columns) */
    double *p;      /* (n, classes) */
} placed;

/* A step of one term: rows up to step `at` move by `low`, the others by `high`, those without the number as `missing_low` says. */
typedef struct move {
    size_t number;
    int32_t at, missing_low;
    double low, high, gain;
} move;

/* Gradient and curvature of the log-loss, and rows, added up. */
typedef struct slope {
    double g, h, n;
} slope;

/* Quantiles of the rows that have the number. One that repeats stands for no step: nothing lies between. */
static void find_thresholds(boost *b, boost_rows train) {
    double *seen = tool_calloc(train.n + 1, sizeof *seen);
    const size_t T = (size_t)b->thresholds;
    for (size_t j = 0; j < b->numbers; j++) {
        size_t n = 0;
        for (size_t i = 0; i < train.n; i++)
            if (!isnan(train.x[i * b->numbers + j])) seen[n++] = (double)train.x[i * b->numbers + j];
        sort_ascending(seen, n);
        for (size_t k = 0; n > 0 && k < T; k++) b->threshold[j * T + k] = (mtan_real)seen[(k + 1) * n / (T + 1)];
    }
    free(seen);
}

static size_t step_of(const boost *b, size_t number, mtan_real x) {
    const mtan_real *threshold = b->threshold + number * (size_t)b->thresholds;
    size_t step = 1;
    if (isnan(x)) return 0;
    while (step <= (size_t)b->thresholds && threshold[step - 1] <= x) step++;
    return step;
}

/* The logits of a row whose sums are given: class 0 of two has none. */
static void spread_columns(const boost *b, const double *sum, double *logit) {
    if (b->columns == 1) logit[0] = 0, logit[1] = sum[0];
    else memcpy(logit, sum, (size_t)b->classes * sizeof *logit);
}

void boost_softmax(double *x, size_t n) {
    double most = x[0], sum = 0;
    for (size_t i = 1; i < n; i++) most = x[i] > most ? x[i] : most;
    for (size_t i = 0; i < n; i++) sum += x[i] = exp(x[i] - most);
    for (size_t i = 0; i < n; i++) x[i] /= sum;
}

static void refresh(const boost *b, placed *r) {
    const size_t C = (size_t)b->classes;
    for (size_t i = 0; i < r->rows.n; i++) {
        spread_columns(b, r->sum + i * (size_t)b->columns, r->p + i * C);
        boost_softmax(r->p + i * C, C);
    }
}

static placed place(const boost *b, boost_rows rows) {
    const size_t n = rows.n, columns = (size_t)b->columns;
    placed r = {rows, tool_calloc(b->numbers * n + 1, sizeof *r.step), tool_calloc(n * columns + 1, sizeof *r.sum),
                tool_calloc(n * (size_t)b->classes + 1, sizeof *r.p)};
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < b->numbers; j++) r.step[j * n + i] = (uint16_t)step_of(b, j, rows.x[i * b->numbers + j]);
        memcpy(r.sum + i * columns, b->start, columns * sizeof *r.sum);
    }
    refresh(b, &r);
    return r;
}

static void placed_free(placed *r) {
    free(r->step), free(r->sum), free(r->p);
}

/* Every row's sum begins at the log of how frequent its class is. */
static void find_start(boost *b, boost_rows train) {
    double *count = tool_calloc((size_t)b->classes, sizeof *count);
    for (size_t i = 0; i < train.n; i++) count[train.label[i]]++;
    for (int32_t c = 0; c < b->classes; c++) count[c] = fmax(count[c], 0.5);
    for (int32_t k = 0; k < b->columns; k++) b->start[k] = log(b->columns == 1 ? count[1] / count[0] : count[k]);
    free(count);
}

static double gain_of(slope s) {
    return s.g * s.g / (s.h + BOOST_RIDGE);
}

static void consider(move *best, size_t number, int32_t at, int32_t missing_low, slope low, slope all) {
    const slope high = {all.g - low.g, all.h - low.h, all.n - low.n};
    const double gain = gain_of(low) + gain_of(high) - gain_of(all);
    if (low.n < BOOST_LEAST || high.n < BOOST_LEAST || !(gain > best->gain)) return;
    *best = (move){number,
                   at,
                   missing_low,
                   -BOOST_RATE * low.g / (low.h + BOOST_RIDGE),
                   -BOOST_RATE * high.g / (high.h + BOOST_RIDGE),
                   gain};
}

static void add_slope(slope *to, slope s) {
    to->g += s.g, to->h += s.h, to->n += s.n;
}

/* Both sides are tried for the rows without the number: with the low ones, with the high ones. */
static void best_of_number(const boost *b, const placed *r, const slope *row, slope *at, size_t j, move *best) {
    const size_t n = r->rows.n, steps = (size_t)b->thresholds + 2;
    const uint16_t *step = r->step + j * n;
    slope all = {0, 0, 0}, low = {0, 0, 0};
    memset(at, 0, steps * sizeof *at);
    for (size_t i = 0; i < n; i++) add_slope(&at[step[i]], row[i]);
    for (size_t k = 0; k < steps; k++) add_slope(&all, at[k]);
    for (size_t k = 1; k + 1 < steps; k++) {
        slope with = at[0];
        add_slope(&low, at[k]);
        add_slope(&with, low);
        consider(best, j, (int32_t)k, 0, low, all);
        if (at[0].n > 0) consider(best, j, (int32_t)k, 1, with, all);
    }
    add_slope(&low, at[steps - 1]);
    consider(best, j, b->thresholds + 1, 0, low, all); /* whether there is one at all */
}

static move best_move(const boost *b, const placed *r, int32_t column, slope *row, slope *at) {
    const size_t n = r->rows.n, C = (size_t)b->classes;
    const int32_t of = b->columns == 1 ? 1 : column;
    move best = {0, 0, 0, 0, 0, 1e-12};
    for (size_t i = 0; i < n; i++) {
        const double p = r->p[i * C + (size_t)of];
        row[i] = (slope){p - (r->rows.label[i] == of), p * (1 - p), 1};
    }
    for (size_t j = 0; j < b->numbers; j++) best_of_number(b, r, row, at, j, &best);
    return best;
}

static int is_low(const move *m, size_t step) {
    return step == 0 ? m->missing_low : step <= (size_t)m->at;
}

static void move_rows(const boost *b, placed *r, const move *m, int32_t column) {
    for (size_t i = 0; i < r->rows.n; i++)
        r->sum[i * (size_t)b->columns + (size_t)column] +=
            is_low(m, r->step[m->number * r->rows.n + i]) ? m->low : m->high;
}

static void move_term(boost *b, const move *m, int32_t column) {
    const size_t steps = (size_t)b->thresholds + 2;
    for (size_t k = 0; k < steps; k++)
        b->height[(m->number * steps + k) * (size_t)b->columns + (size_t)column] += is_low(m, k) ? m->low : m->high;
}

/* 0 when no step helps any column. */
static int boost_round(boost *b, placed *train, placed *valid, slope *row, slope *at) {
    int moved = 0;
    for (int32_t k = 0; k < b->columns; k++) {
        const move m = best_move(b, train, k, row, at);
        if (!(m.low < 0 || m.low > 0 || m.high < 0 || m.high > 0)) continue;
        move_rows(b, train, &m, k), move_rows(b, valid, &m, k);
        move_term(b, &m, k);
        moved = 1;
    }
    refresh(b, train), refresh(b, valid);
    return moved;
}

static void run_rounds(boost *b, placed *train, placed *valid, int32_t most) {
    const size_t heights = b->numbers * ((size_t)b->thresholds + 2) * (size_t)b->columns;
    slope *row = tool_calloc(train->rows.n, sizeof *row);
    slope *at = tool_calloc((size_t)b->thresholds + 2, sizeof *at);
    double *best = tool_calloc(heights, sizeof *best);
    double least = metric_log_loss(valid->p, valid->rows.label, valid->rows.n, b->classes);
    for (int32_t i = 1; i <= most && i - b->rounds <= BOOST_PATIENCE; i++) {
        double loss;
        if (!boost_round(b, train, valid, row, at)) break;
        loss = metric_log_loss(valid->p, valid->rows.label, valid->rows.n, b->classes);
        if (!(loss < least)) continue;
        least = loss, b->rounds = i;
        memcpy(best, b->height, heights * sizeof *best);
    }
    memcpy(b->height, best, heights * sizeof *best);
    free(row), free(at), free(best);
}

void boost_fit(boost *b, boost_rows train, boost_rows valid, boost_size size) {
    const int32_t columns = size.classes == 2 ? 1 : size.classes;
    const size_t numbers = size.numbers, thresholds = (size_t)size.thresholds;
    placed t, v;
    *b = (boost){.numbers = numbers, .classes = size.classes, .columns = columns, .thresholds = size.thresholds};
    b->threshold = tool_calloc(numbers * thresholds + 1, sizeof *b->threshold);
    b->height = tool_calloc(numbers * (thresholds + 2) * (size_t)columns + 1, sizeof *b->height);
    b->start = tool_calloc((size_t)columns, sizeof *b->start);
    find_thresholds(b, train);
    find_start(b, train);
    if (train.n == 0 || valid.n == 0) return;
    t = place(b, train), v = place(b, valid);
    run_rounds(b, &t, &v, size.rounds);
    placed_free(&t), placed_free(&v);
}

void boost_at(const boost *b, const mtan_real *x, double *logit) {
    const size_t steps = (size_t)b->thresholds + 2, columns = (size_t)b->columns;
    double *sum = logit + (b->columns == 1); /* two logits have room for the one sum */
    memcpy(sum, b->start, columns * sizeof *sum);
    for (size_t j = 0; j < b->numbers; j++)
        for (size_t k = 0; k < columns; k++) sum[k] += b->height[(j * steps + step_of(b, j, x[j])) * columns + k];
    if (b->columns == 1) logit[0] = 0;
}

void boost_free(boost *b) {
    free(b->threshold), free(b->height), free(b->start);
}
