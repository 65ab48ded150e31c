/* See logistic.h. Training rows are stored in blocks of eight lanes, so that one feature of all eight is contiguous:
 * the compiler vectorises over the lanes, and the order of every sum stays fixed. */
#include "logistic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/array.h"
#include "metrics.h"
#include "stop.h"

enum {
    LANES = 8,
    MEMORY = 10,     /* pairs that L-BFGS keeps; more gain little here */
    STEPS_MOST = 300 /* with the ridges below a fit takes a few dozen steps */
};
/* A gradient below this per row ends a fit: the weights then have six digits or more. */
static const double FLAT = 1e-8;
static const double ENOUGH = 1e-4; /* required share of the decrease that the slope predicts (Armijo) */

/* ---- rows ---- */

/* Class probabilities from the values of the columns, which are `apart` doubles apart. Returns log p of `label`. */
static double softmax(const logistic *r, const double *z, size_t apart, int32_t label, double *p) {
    double most = 0, sum = 0;
    for (size_t c = 0; c < (size_t)r->classes; c++) {
        p[c] = r->columns > 1 ? z[c * apart] : c == 1 ? z[0] : 0;
        if (c == 0 || p[c] > most) most = p[c];
    }
    for (size_t c = 0; c < (size_t)r->classes; c++) sum += exp(p[c] - most);
    const double own = p[label] - most - log(sum);
    for (size_t c = 0; c < (size_t)r->classes; c++) p[c] = exp(p[c] - most) / sum;
    return own;
}

void logistic_at(const logistic *r, const double *x, double *p) {
    double *z = tool_calloc(r->columns, sizeof *z);
    for (size_t k = 0; k <= r->features; k++)
        for (size_t c = 0; c < r->columns; c++)
            z[c] += r->weight[k * r->columns + c] * (k < r->features ? standard(&r->standard, x, k) : 1);
    softmax(r, z, 1, 0, p);
    free(z);
}

/* ---- what is minimised ---- */

typedef struct objective {
    const logistic *model; /* for its shape; weights are passed separately */
    const int32_t *label;
    size_t n, blocks, weights; /* weights: of the whole model */
    double *x;     /* (blocks, features + 1, LANES) standardised, 1 for the constant; rows past the end are 0 */
    double *z, *p; /* workspace: (columns, LANES) of a block; (classes) */
} objective;

static objective objective_make(const logistic *r, logistic_rows rows) {
    const size_t P = r->features + 1;
    objective o = {r, rows.label, rows.n, (rows.n + LANES - 1) / LANES, P * r->columns, NULL, NULL, NULL};
    o.x = tool_calloc(o.blocks * P * LANES, sizeof *o.x);
    o.z = tool_calloc(r->columns * LANES, sizeof *o.z), o.p = tool_calloc((size_t)r->classes, sizeof *o.p);
    for (size_t i = 0; i < rows.n; i++)
        for (size_t k = 0; k < P; k++)
            o.x[(i / LANES * P + k) * LANES + i % LANES] =
                k < r->features ? standard(&r->standard, rows.x + i * r->features, k) : 1;
    return o;
}

static void objective_free(objective *o) {
    free(o->x), free(o->z), free(o->p);
}

/* Replaces the columns of a block by the derivatives of the loss: p - 1 for the row's own class, p for the others.
 * Returns the loss. */
static double residuals(const objective *o, size_t first) {
    const logistic *r = o->model;
    double loss = 0;
    for (size_t b = 0; b < LANES; b++) {
        const size_t row = first + b;
        if (row < o->n) loss -= softmax(r, o->z + b, LANES, o->label[row], o->p);
        for (size_t c = 0; c < r->columns; c++) {
            const size_t of = r->columns > 1 ? c : 1;
            o->z[c * LANES + b] = row < o->n ? o->p[of] - (o->label[row] == (int32_t)of) : 0;
        }
    }
    return loss;
}

/* The objective at w, and its gradient. */
static double value_at(const objective *o, const double *w, double *gradient) {
    const size_t C = o->model->columns, P = o->model->features + 1;
    double value = 0;
    memset(gradient, 0, o->weights * sizeof *gradient);
    for (size_t block = 0; block < o->blocks; block++) {
        const double *x = o->x + block * P * LANES;
        memset(o->z, 0, C * LANES * sizeof *o->z);
        for (size_t k = 0; k < P; k++)
            for (size_t c = 0; c < C; c++)
                for (size_t b = 0; b < LANES; b++) o->z[c * LANES + b] += w[k * C + c] * x[k * LANES + b];
        value += residuals(o, block * LANES);
        for (size_t k = 0; k < P; k++)
            for (size_t c = 0; c < C; c++) {
                const double *a = o->z + c * LANES, *e = x + k * LANES;
                gradient[k * C + c] += ((a[0] * e[0] + a[1] * e[1]) + (a[2] * e[2] + a[3] * e[3])) +
                                       ((a[4] * e[4] + a[5] * e[5]) + (a[6] * e[6] + a[7] * e[7]));
            }
    }
    for (size_t i = 0; i < o->weights - C; i++) {
        value += 0.5 * o->model->ridge * w[i] * w[i];
        gradient[i] += o->model->ridge * w[i];
    }
    return value;
}

/* ---- L-BFGS ---- */

static double dot(const double *a, const double *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static double largest(const double *x, size_t n) {
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(x[i]));
    return most;
}

/* Ring buffers, (MEMORY, n) each, of the latest steps and of the changes of the gradient over them. */
typedef struct memory {
    double *moved, *turned, product[MEMORY]; /* product: moved . turned */
    size_t n, taken;
} memory;

/* The search direction: minus the gradient times the approximate inverse Hessian (Nocedal and Wright, algorithm
 * 7.4). */
static void direction_of(const memory *m, const double *gradient, double *direction) {
    double along[MEMORY];
    const size_t known = m->taken < MEMORY ? m->taken : MEMORY;
    for (size_t i = 0; i < m->n; i++) direction[i] = -gradient[i];
    for (size_t back = 1; back <= known; back++) {
        const size_t at = (m->taken - back) % MEMORY;
        along[at] = dot(m->moved + at * m->n, direction, m->n) / m->product[at];
        for (size_t i = 0; i < m->n; i++) direction[i] -= along[at] * m->turned[at * m->n + i];
    }
    if (known > 0) {
        const size_t at = (m->taken - 1) % MEMORY;
        const double *turned = m->turned + at * m->n, scale = m->product[at] / dot(turned, turned, m->n);
        for (size_t i = 0; i < m->n; i++) direction[i] *= scale;
    }
    for (size_t back = known; back >= 1; back--) {
        const size_t at = (m->taken - back) % MEMORY;
        const double more = along[at] - dot(m->turned + at * m->n, direction, m->n) / m->product[at];
        for (size_t i = 0; i < m->n; i++) direction[i] += more * m->moved[at * m->n + i];
    }
}

/* A point of the descent, with the objective there. */
typedef struct point {
    double *w, *gradient, value;
} point;

/* Halves the step until the objective decreases enough. 0: no step does, because double precision is exhausted. */
static int descend(const objective *o, const point *from, const double *direction, double step, point *to) {
    const double slope = dot(from->gradient, direction, o->weights);
    for (int halvings = 0; halvings < 40; halvings++, step /= 2) {
        for (size_t i = 0; i < o->weights; i++) to->w[i] = from->w[i] + step * direction[i];
        to->value = value_at(o, to->w, to->gradient);
        if (to->value <= from->value + ENOUGH * step * slope) return 1;
    }
    return 0;
}

static void remember(memory *m, const point *from, const point *to) {
    const size_t at = m->taken % MEMORY;
    for (size_t i = 0; i < m->n; i++) {
        m->moved[at * m->n + i] = to->w[i] - from->w[i];
        m->turned[at * m->n + i] = to->gradient[i] - from->gradient[i];
    }
    m->product[at] = dot(m->moved + at * m->n, m->turned + at * m->n, m->n);
    m->taken += m->product[at] > 0;
}

/* Minimises the objective from w, in place. */
static void minimise(const objective *o, double *w) {
    const size_t n = o->weights;
    double *room = tool_calloc((4 + 2 * MEMORY) * n, sizeof *room), *direction = room + 3 * n;
    memory m = {room + 4 * n, room + (4 + MEMORY) * n, {0}, n, 0};
    point here = {w, room, 0}, there = {room + n, room + 2 * n, 0};
    here.value = value_at(o, w, here.gradient);
    for (int step = 0; step < STEPS_MOST && !stop_asked(); step++) {
        const double steepest = largest(here.gradient, n);
        if (!(steepest > FLAT * (double)o->n)) break;
        direction_of(&m, here.gradient, direction);
        if (!descend(o, &here, direction, m.taken > 0 ? 1 : 1 / steepest, &there)) break;
        remember(&m, &here, &there);
        memcpy(w, there.w, n * sizeof *w), memcpy(here.gradient, there.gradient, n * sizeof *w);
        here.value = there.value;
    }
    free(room);
}

/* ---- fits ---- */

static logistic logistic_new(logistic_rows train, size_t features, int32_t classes) {
    logistic r = {features, classes, classes == 2 ? 1 : (size_t)classes, NULL, {0, NULL, NULL}, 0};
    r.weight = tool_calloc((features + 1) * r.columns, sizeof *r.weight);
    r.standard = standards_of(train.x, train.n, features);
    return r;
}

void logistic_fit(logistic *r, logistic_rows train, size_t features, int32_t classes, double ridge) {
    objective o;
    *r = logistic_new(train, features, classes);
    r->ridge = ridge;
    o = objective_make(r, train);
    minimise(&o, r->weight);
    objective_free(&o);
}

static double loss_on(const logistic *r, logistic_rows rows) {
    double *p = tool_calloc(rows.n * (size_t)r->classes, sizeof *p), loss;
    for (size_t i = 0; i < rows.n; i++) logistic_at(r, rows.x + i * r->features, p + i * (size_t)r->classes);
    loss = metric_log_loss(p, rows.label, rows.n, r->classes);
    free(p);
    return loss;
}

void logistic_choose(logistic *r, logistic_rows train, logistic_rows valid, size_t features, int32_t classes) {
    static const double ridges[] = {1000, 300, 100, 30, 10, 3, 1, 0.3, 0.1};
    double least = INFINITY, *best, chosen = ridges[0];
    objective o;
    *r = logistic_new(train, features, classes);
    o = objective_make(r, train);
    best = tool_calloc(o.weights, sizeof *best);
    for (size_t i = 0; i < sizeof ridges / sizeof ridges[0] && !stop_asked();
         i++) { /* warm start from the fit before */
        r->ridge = ridges[i];
        minimise(&o, r->weight);
        const double loss = loss_on(r, valid);
        if (!(loss < least)) break;
        least = loss, chosen = ridges[i];
        memcpy(best, r->weight, o.weights * sizeof *best);
    }
    memcpy(r->weight, best, o.weights * sizeof *best);
    r->ridge = chosen;
    free(best);
    objective_free(&o);
}

void logistic_free(logistic *r) {
    free(r->weight), standards_free(&r->standard);
    memset(r, 0, sizeof *r);
}
