/* See ridge.h. Conjugate gradients on the normal equations: each step is one pass over the rows, and no (features,
 * features) matrix is stored. */
#include "ridge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/memory.h"

enum { STEPS_MOST = 300 };         /* with the ridges below a fit takes a few dozen steps */
static const double SMALL = 1e-10; /* a fit ends when the residual is this share of the residual at zero weights */

/* The equations (x'x + ridge) w = x'y of standardised rows. x and y are centred, so that the constant drops out. */
typedef struct equations {
    double *x, *y, *mean; /* (n, features); (n); (features) */
    double offset;        /* the mean of y */
    double ridge;
    size_t n, features;
    double *along, *room; /* (n); (4, features) */
} equations;

static void centre(equations *e) {
    const double n = (double)e->n;
    for (size_t i = 0; i < e->n; i++) {
        e->offset += e->y[i] / n;
        for (size_t k = 0; k < e->features; k++) e->mean[k] += e->x[i * e->features + k] / n;
    }
    for (size_t i = 0; i < e->n; i++) {
        e->y[i] -= e->offset;
        for (size_t k = 0; k < e->features; k++) e->x[i * e->features + k] -= e->mean[k];
    }
}

static equations equations_make(const ridge_regression *r, ridge_rows rows) {
    equations e = {NULL, NULL, NULL, 0, 0, rows.n, r->features, NULL, NULL};
    e.x = tool_calloc(e.n * e.features, sizeof *e.x), e.y = tool_calloc(e.n, sizeof *e.y);
    e.mean = tool_calloc(e.features, sizeof *e.mean);
    e.along = tool_calloc(e.n, sizeof *e.along), e.room = tool_calloc(4 * e.features, sizeof *e.room);
    for (size_t i = 0; i < e.n; i++) {
        e.y[i] = rows.y[i];
        for (size_t k = 0; k < e.features; k++)
            e.x[i * e.features + k] = standard(&r->standard, rows.x + i * e.features, k);
    }
    centre(&e);
    return e;
}

static void equations_free(equations *e) {
    free(e->x), free(e->y), free(e->mean), free(e->along), free(e->room);
}

static double dot(const double *a, const double *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* out = x'a */
static void gather(const equations *e, const double *a, double *out) {
    memset(out, 0, e->features * sizeof *out);
    for (size_t i = 0; i < e->n; i++)
        for (size_t k = 0; k < e->features; k++) out[k] += a[i] * e->x[i * e->features + k];
}

/* out = (x'x + ridge) v */
static void multiply(const equations *e, const double *v, double *out) {
    for (size_t i = 0; i < e->n; i++) e->along[i] = dot(e->x + i * e->features, v, e->features);
    gather(e, e->along, out);
    for (size_t k = 0; k < e->features; k++) out[k] += e->ridge * v[k];
}

/* Conjugate gradients (Hestenes and Stiefel), starting from the given w. */
static void solve(const equations *e, double *w) {
    const size_t P = e->features;
    double *wanted = e->room, *left = wanted + P, *direction = left + P, *product = direction + P, square, least;
    gather(e, e->y, wanted);
    multiply(e, w, product);
    for (size_t k = 0; k < P; k++) direction[k] = left[k] = wanted[k] - product[k];
    square = dot(left, left, P), least = SMALL * SMALL * dot(wanted, wanted, P);
    for (int step = 0; step < STEPS_MOST && square > least; step++) {
        multiply(e, direction, product);
        const double length = square / dot(direction, product, P), before = square;
        for (size_t k = 0; k < P; k++) w[k] += length * direction[k], left[k] -= length * product[k];
        square = dot(left, left, P);
        for (size_t k = 0; k < P; k++) direction[k] = left[k] + square / before * direction[k];
    }
}

static void solve_all(ridge_regression *r, equations *e, double ridge) {
    r->ridge = e->ridge = ridge;
    solve(e, r->weight);
    r->weight[r->features] = e->offset - dot(r->weight, e->mean, r->features);
}

static ridge_regression ridge_new(ridge_rows train, size_t features) {
    const ridge_regression r = {features, tool_calloc(features + 1, sizeof(double)),
                                standards_of(train.x, train.n, features), 0};
    return r;
}

void ridge_fit(ridge_regression *r, ridge_rows train, size_t features, double ridge) {
    equations e;
    *r = ridge_new(train, features);
    e = equations_make(r, train);
    solve_all(r, &e, ridge);
    equations_free(&e);
}

static double error_on(const ridge_regression *r, ridge_rows rows) {
    double sum = 0;
    for (size_t i = 0; i < rows.n; i++) {
        const double off = ridge_at(r, rows.x + i * r->features) - rows.y[i];
        sum += off * off;
    }
    return sum;
}

void ridge_choose(ridge_regression *r, ridge_rows train, ridge_rows valid, size_t features) {
    static const double ridges[] = {10000, 3000, 1000, 300, 100, 30, 10, 3, 1, 0.3, 0.1};
    const size_t bytes = (features + 1) * sizeof(double);
    double least = INFINITY, *best = tool_calloc(features + 1, sizeof *best), chosen = ridges[0];
    equations e;
    *r = ridge_new(train, features);
    e = equations_make(r, train);
    for (size_t i = 0; i < sizeof ridges / sizeof ridges[0]; i++) { /* warm start from the fit before */
        solve_all(r, &e, ridges[i]);
        const double error = error_on(r, valid);
        if (!(error < least)) break;
        least = error, chosen = ridges[i];
        memcpy(best, r->weight, bytes);
    }
    memcpy(r->weight, best, bytes);
    r->ridge = chosen;
    free(best);
    equations_free(&e);
}

double ridge_at(const ridge_regression *r, const double *x) {
    double sum = r->weight[r->features];
    for (size_t k = 0; k < r->features; k++) sum += r->weight[k] * standard(&r->standard, x, k);
    return sum;
}

void ridge_free(ridge_regression *r) {
    free(r->weight), standards_free(&r->standard);
    memset(r, 0, sizeof *r);
}
