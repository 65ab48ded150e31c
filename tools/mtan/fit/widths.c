/* See widths.h. */
#include "widths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/memory.h"
#include "../../data/percentile.h"

static double moved(double end, double median, double factor, double margin) {
    return median + factor * (end - median) + margin;
}

/* The distance of the true number from the median, relative to the distance of the interval's end on the same side. */
static double distance(const double *p, double y) {
    const double width = y > p[1] ? p[2] - p[1] : p[1] - p[0];
    return width > 0 ? fabs(y - p[1]) / width : y == p[1] ? 0 : INFINITY;
}

/* How far the true number lies outside of the interval; negative: inside. */
static double outside(const double *p, double y) {
    return fmax(p[0] - y, y - p[2]);
}

/* The smallest value that so large a share of n + 1 records does not exceed: the extra one is the record to be
 * predicted. NaN: there is none. */
static double conformal(const number_predictions *p, double interval, double (*of)(const double *p, double y)) {
    const double rank = ceil((double)(p->rows + 1) * interval);
    double *out, value;
    if (p->outputs != 3 || p->rows < WIDTH_LEAST || rank > (double)p->rows) return NAN;
    out = tool_calloc(p->rows, sizeof *out);
    for (size_t i = 0; i < p->rows; i++) out[i] = of(p->p + 3 * i, p->y[i]);
    sort_ascending(out, p->rows);
    value = out[(size_t)rank - 1];
    free(out);
    return value;
}

double width_factor(const number_predictions *p, double interval) {
    const double factor = conformal(p, interval, distance);
    return factor > 1e-3 && factor < 1e3 ? factor : 1; /* beyond that the intervals are not learned yet */
}

double width_margin(const number_predictions *p, double interval) {
    const double margin = conformal(p, interval, outside);
    return isfinite(margin) ? margin : 0;
}

width_change width_find(const number_predictions *p, double interval) {
    const double factor = width_factor(p, interval);
    if (factor < 1) return (width_change){factor, 0};
    return (width_change){1, fmax(width_margin(p, interval), 0)};
}

int width_changes(width_change w) {
    return w.factor > 0 && (w.factor < 1 || w.factor > 1 || w.margin > 0);
}

double *width_middles(const number_predictions *p, width_change w) {
    double *middle;
    if (p->outputs != 3) return NULL;
    middle = tool_calloc(p->rows, sizeof *middle);
    for (size_t i = 0; i < p->rows; i++) {
        const double *x = p->p + 3 * i;
        double row[3] = {x[0], x[1], x[2]};
        if (width_changes(w))
            row[0] = moved(x[0], x[1], w.factor, -w.margin), row[2] = moved(x[2], x[1], w.factor, w.margin);
        sort_ascending(row, 3);
        middle[i] = row[1];
    }
    return middle;
}

int width_layer(const mtan_config *c, mtan_param *weight, mtan_param *bias) {
    int found = 0;
    mtan_param at;
    if (c->task != MTAN_TASK_NUMBER || mtan_config_outputs(c) != 3 * c->classes) return 0;
    for (int32_t i = 0; i < mtan_param_count(c); i++) {
        if (mtan_param_at(c, i, &at) != MTAN_OK || at.rows != 3 * c->classes || !strstr(at.name, "classifier."))
            continue;
        if (strstr(at.name, ".weight")) *weight = at, found |= 1;
        if (strstr(at.name, ".bias")) *bias = at, found |= 2;
    }
    return found == 3;
}

/* margin: of the bias; 0 for weights. */
static void apply(mtan_real *rows, int32_t cols, double factor, double margin) {
    mtan_real *low = rows, *median = rows + cols, *high = median + cols;
    for (int32_t k = 0; k < cols; k++) {
        low[k] = (mtan_real)moved((double)low[k], (double)median[k], factor, -margin);
        high[k] = (mtan_real)moved((double)high[k], (double)median[k], factor, margin);
    }
}

void width_apply(const mtan_config *c, mtan_real *weights, width_change w) {
    mtan_param weight, bias;
    if (!width_changes(w) || !width_layer(c, &weight, &bias)) return;
    for (int32_t k = 0; k < c->classes; k++) {
        mtan_real *rows = weights + weight.offset + (size_t)(3 * k * weight.cols);
        if (w.factor < 1 || w.factor > 1) apply(rows, weight.cols, w.factor, 0);
        apply(weights + bias.offset + (size_t)(3 * k), 1, w.factor, w.margin);
    }
}
