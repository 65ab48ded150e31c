/* See labels.h. */
#include "labels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../../mtan.h"
#include "../../data/memory.h"

/* The probabilities of both classes of a label, (rows, 2). */
static double *both(const double *p, size_t rows, size_t labels, size_t label) {
    double *out = tool_calloc(2 * rows, sizeof *out);
    for (size_t i = 0; i < rows; i++) out[2 * i + 1] = p[i * labels + label], out[2 * i] = 1 - p[i * labels + label];
    return out;
}

label_tables label_tables_make(const double *p, const double *y, size_t rows, int32_t labels) {
    const size_t C = (size_t)labels;
    label_tables t = {labels, tool_calloc(C, sizeof *t.table), tool_calloc(C * rows, sizeof *t.truth),
                      tool_calloc(C, sizeof *t.mean), tool_calloc(C, sizeof *t.known)};
    for (size_t c = 0; c < C; c++) {
        int32_t *truth = t.truth + c * rows;
        double *classes = both(p, rows, C, c);
        for (size_t i = 0; i < rows; i++) {
            const double is = y[i * C + c];
            truth[i] = isnan(is) ? MTAN_UNLABELED : is > 0.5;
            if (!isnan(is)) t.known[c]++, t.mean[c] += is;
        }
        t.mean[c] /= (double)t.known[c];
        t.table[c] = metric_table_new(classes, NULL, truth, rows, 2);
        free(classes);
    }
    return t;
}

void label_tables_free(label_tables *t) {
    for (int32_t c = 0; c < t->labels; c++) metric_table_free(t->table[c]);
    free(t->table), free(t->truth), free(t->mean), free(t->known);
    memset(t, 0, sizeof *t);
}

static double measure(const label_tables *t, const label_query *q, const int32_t *rows, size_t n) {
    double sum = 0, count = 0;
    for (int32_t c = 0; c < t->labels; c++) {
        metric_query of = {t->table[c], q->name, NULL};
        const double x = q->label < 0 || q->label == c ? metric_drawn(&of, rows, n) : NAN;
        if (!isnan(x)) sum += x, count++;
    }
    return count > 0 ? sum / count : NAN;
}

double label_drawn(void *context, const int32_t *rows, size_t n) {
    const label_query *q = context;
    const double value = measure(q->tables, q, rows, n);
    return q->minus ? value - measure(q->minus, q, rows, n) : value;
}

double label_measure(const label_tables *t, const number_predictions *p, metric_name name, int32_t label, int32_t draws,
                     interval *range) {
    label_query q = {t, name, label, NULL};
    *range = (interval){NAN, NAN};
    if (draws > 0) *range = metric_bootstrap(label_drawn, &q, p->rows, p->record, draws, 0);
    return label_drawn(&q, NULL, p->rows);
}
