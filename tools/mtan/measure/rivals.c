/* See rivals.h. */
#include "rivals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/array.h"

/* ---- lines ---- */

/* How many observations lie at or before a time. */
static int32_t seen_by(rival_series s, double time) {
    int32_t low = 0, high = s.n;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (s.seen[middle].time <= time) low = middle + 1;
        else high = middle;
    }
    return low;
}

double rival_linear(rival_series s, double time, double otherwise) {
    const int32_t i = seen_by(s, time); /* the first one beyond */
    if (s.n == 0) return otherwise;
    if (i == 0) return s.seen[0].value;
    if (i == s.n) return s.seen[s.n - 1].value;
    const mtan_observation *a = &s.seen[i - 1], *b = &s.seen[i];
    return a->value + (b->value - a->value) * (time - a->time) / (b->time - a->time);
}

double rival_last(rival_series s, double time, double otherwise) {
    const int32_t i = seen_by(s, time);
    return i > 0 ? s.seen[i - 1].value : otherwise;
}

/* ---- linear systems ---- */

/* Replaces a symmetric positive definite a (n, n) by its Cholesky factor. */
static void factorise(double *a, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = a[i * n + j];
            for (size_t k = 0; k < j; k++) sum -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = i == j ? sqrt(sum) : sum / a[j * n + j];
        }
}

/* Solves with the factor, in place. */
static void solve(const double *factor, size_t n, double *x) {
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++) x[i] -= factor[i * n + k] * x[k];
        x[i] /= factor[i * n + i];
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++) x[i] -= factor[k * n + i] * x[k];
        x[i] /= factor[i * n + i];
    }
}

void rival_solve(double *a, size_t n, double *b) {
    factorise(a, n);
    solve(a, n, b);
}

/* ---- a Gaussian process ---- */

static double kernel(const rival_process *p, double a, double b) {
    const double apart = (a - b) / p->length;
    return p->variance * exp(-0.5 * apart * apart);
}

static rival_series latest(rival_series s) {
    if (s.n > RIVAL_MOST) s.seen += s.n - RIVAL_MOST, s.n = RIVAL_MOST;
    return s;
}

static void factorise_kernel(const rival_process *p, rival_series s, double *factor) {
    const size_t n = (size_t)s.n;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            factor[i * n + j] = kernel(p, s.seen[i].time, s.seen[j].time) + (i == j ? p->noise * p->variance : 0);
    factorise(factor, n);
}

double rival_process_at(const rival_process *p, rival_series s, double time) {
    static double factor[RIVAL_MOST * RIVAL_MOST];
    double weight[RIVAL_MOST], value = p->mean;
    s = latest(s);
    for (int32_t i = 0; i < s.n; i++) weight[i] = s.seen[i].value - p->mean;
    factorise_kernel(p, s, factor);
    solve(factor, (size_t)s.n, weight);
    for (int32_t i = 0; i < s.n; i++) value += kernel(p, time, s.seen[i].time) * weight[i];
    return value;
}

/* The squared leave-one-out errors of a series, each being (A^-1 y)_i / (A^-1)_ii. */
static double left_out_error(const rival_process *p, rival_series s) {
    static double factor[RIVAL_MOST * RIVAL_MOST];
    double weight[RIVAL_MOST], sum = 0;
    s = latest(s);
    for (int32_t i = 0; i < s.n; i++) weight[i] = s.seen[i].value - p->mean;
    factorise_kernel(p, s, factor);
    solve(factor, (size_t)s.n, weight);
    for (int32_t i = 0; i < s.n; i++) {
        double unit[RIVAL_MOST] = {0};
        unit[i] = 1;
        solve(factor, (size_t)s.n, unit);
        sum += weight[i] / unit[i] * weight[i] / unit[i];
    }
    return sum;
}

static void fit_moments(rival_process *p, const rival_series *s, size_t n) {
    double count = 0, sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        for (int32_t j = 0; j < s[i].n; j++) sum += s[i].seen[j].value, count++;
    p->mean = sum / count;
    for (size_t i = 0; i < n; i++)
        for (int32_t j = 0; j < s[i].n; j++) squares += pow(s[i].seen[j].value - p->mean, 2);
    p->variance = squares / count;
}

rival_process rival_process_fit(const rival_series *s, size_t n) {
    static const double lengths[] = {0.02, 0.04, 0.08, 0.1, 0.12, 0.16, 0.24, 0.5},
                        noises[] = {1e-4, 1e-3, 0.01, 0.03, 0.1, 0.2, 0.4};
    rival_process p = {0, 1, 1, 1}, best;
    double least = INFINITY, last = 0;
    fit_moments(&p, s, n);
    for (size_t i = 0; i < n; i++)
        if (s[i].n > 0) last = fmax(last, s[i].seen[s[i].n - 1].time);
    best = p;
    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
        for (size_t k = 0; k < sizeof noises / sizeof noises[0]; k++) {
            double error = 0;
            p.length = lengths[l] * last, p.noise = noises[k];
            for (size_t i = 0; i < n; i++) error += left_out_error(&p, s[i]);
            if (error < least) least = error, best = p;
        }
    return best;
}

/* ---- summaries ---- */

static double slope_of(rival_series s, double mean) {
    double time = 0, up = 0, down = 0;
    for (int32_t i = 0; i < s.n; i++) time += s.seen[i].time / s.n;
    for (int32_t i = 0; i < s.n; i++) {
        const double apart = s.seen[i].time - time;
        up += apart * (s.seen[i].value - mean), down += apart * apart;
    }
    return down > 0 ? up / down : 0;
}

void rival_summarise(rival_series s, double out[RIVAL_SUMMARIES]) {
    double sum = 0, squares = 0, least = NAN, most = NAN, steps = 0;
    for (int32_t i = 0; i < s.n; i++) {
        const double x = s.seen[i].value;
        sum += x;
        least = fmin(least, x), most = fmax(most, x); /* fmin and fmax skip the initial NaN */
        if (i > 0) steps += fabs(x - s.seen[i - 1].value) / (s.n - 1);
    }
    const double mean = sum / s.n;
    for (int32_t i = 0; i < s.n; i++) squares += pow(s.seen[i].value - mean, 2) / s.n;
    const double all[RIVAL_SUMMARIES] = {s.n,
                                         mean,
                                         least,
                                         most,
                                         sqrt(squares),
                                         s.n > 0 ? s.seen[0].value : NAN,
                                         s.n > 0 ? s.seen[s.n - 1].value : NAN,
                                         s.n > 0 ? s.seen[s.n - 1].time : NAN,
                                         steps,
                                         slope_of(s, mean)};
    for (size_t i = 0; i < RIVAL_SUMMARIES; i++) out[i] = s.n > 0 || i == 0 ? all[i] : NAN;
}
