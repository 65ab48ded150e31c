/* See widths.h. */
#include "widths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/memory.h"
#include "../../data/percentile.h"

/* The distance of the true number from the median, relative to the distance of the interval's end on the same side. */
static double distance(const double *p, double y) {
    const double width = y > p[1] ? p[2] - p[1] : p[1] - p[0];
    return width > 0 ? fabs(y - p[1]) / width : y == p[1] ? 0 : INFINITY;
}

/* The smallest factor with which a share of n + 1 records lies inside: the extra one is the record to be predicted. */
double width_factor(const number_predictions *p, double interval) {
    const double rank = ceil((double)(p->rows + 1) * interval);
    double *out, factor;
    if (p->outputs != 3 || p->rows < WIDTH_LEAST || rank > (double)p->rows) return 1;
    out = tool_calloc(p->rows, sizeof *out);
    for (size_t i = 0; i < p->rows; i++) out[i] = distance(p->p + 3 * i, p->y[i]);
    sort_ascending(out, p->rows);
    factor = out[(size_t)rank - 1];
    free(out);
    return factor > 1e-3 && factor < 1e3 ? factor : 1; /* beyond that the intervals are not learned yet */
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

/* low = median + factor * (low - median), and high likewise. */
static void apply(mtan_real *rows, int32_t cols, double factor) {
    mtan_real *low = rows, *median = rows + cols, *high = median + cols;
    for (int32_t k = 0; k < cols; k++) {
        low[k] = (mtan_real)((double)median[k] + factor * ((double)low[k] - (double)median[k]));
        high[k] = (mtan_real)((double)median[k] + factor * ((double)high[k] - (double)median[k]));
    }
}

void width_apply(const mtan_config *c, mtan_real *weights, double factor) {
    mtan_param weight, bias;
    if (!width_layer(c, &weight, &bias)) return;
    for (int32_t k = 0; k < c->classes; k++) {
        apply(weights + weight.offset + (size_t)(3 * k * weight.cols), weight.cols, factor);
        apply(weights + bias.offset + (size_t)(3 * k), 1, factor);
    }
}
