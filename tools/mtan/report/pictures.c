/* See pictures.h. */
#include "pictures.h"

#include <stdlib.h>

#include "../../data/memory.h"

enum {
    HEAT_ROWS_MOST = 64, /* with more reference points, neighbours are averaged */
    PICTURE_NAME = 40,   /* characters */
    LINKS_MOST = 400     /* most lines that a reader can follow */
};

/* ---- curves ---- */

/* The borders of a panel's band; both NULL if it has none. The caller frees them. */
static void band_of(const report_panel *p, double **low, double **high) {
    *low = *high = NULL;
    if (!p->sd || p->mean.n == 0) return;
    *low = tool_calloc(p->mean.n, sizeof **low), *high = tool_calloc(p->mean.n, sizeof **high);
    for (size_t i = 0; i < p->mean.n; i++) {
        (*low)[i] = p->mean.y[i] - 2 * p->sd[i];
        (*high)[i] = p->mean.y[i] + 2 * p->sd[i];
    }
}

void picture_curves_fit(frame *f, const report_panel *p) {
    const report_points *parts[4] = {&p->seen, &p->held, &p->truth, &p->mean};
    double *low, *high;
    band_of(p, &low, &high);
    for (int i = 0; i < 4; i++) axis_fit(&f->x, parts[i]->x, parts[i]->n), axis_fit(&f->y, parts[i]->y, parts[i]->n);
    if (low) axis_fit(&f->y, low, p->mean.n), axis_fit(&f->y, high, p->mean.n);
    free(low), free(high);
}

void picture_curves(const frame *f, const report_panel *p) {
    double *low, *high;
    band_of(p, &low, &high);
    if (low) frame_band(f, "", p->mean.x, low, high, p->mean.n);
    frame_line(f, "truth", p->truth.x, p->truth.y, p->truth.n);
    frame_line(f, "c1", p->mean.x, p->mean.y, p->mean.n);
    frame_points(f, "seen", p->seen.x, p->seen.y, p->seen.n, 3.2);
    frame_points(f, "held", p->held.x, p->held.y, p->held.n, 3.2);
    free(low), free(high);
}

/* ---- attention ---- */

heat heat_make(const report_attention *a) {
    const size_t each = (a->references + HEAT_ROWS_MOST - 1) / HEAT_ROWS_MOST;
    heat h = {0};
    h.rows = (a->references + each - 1) / each;
    h.weight = tool_calloc(h.rows * a->times, sizeof *h.weight), h.place = tool_calloc(h.rows, sizeof *h.place);
    for (size_t k = 0; k < h.rows; k++) {
        const size_t end = (k + 1) * each < a->references ? (k + 1) * each : a->references;
        for (size_t i = k * each; i < end; i++) {
            const double part = 1 / (double)(end - k * each);
            h.place[k] += a->reference[i] * part;
            for (size_t t = 0; t < a->times; t++) h.weight[k * a->times + t] += a->weight[i * a->times + t] * part;
        }
    }
    for (size_t i = 0; i < h.rows * a->times; i++)
        if (h.weight[i] > h.most) h.most = h.weight[i];
    return h;
}

void heat_free(heat *h) {
    free(h->weight), free(h->place);
}

axis picture_times(const report_attention *a) {
    axis time = axis_none;
    axis_fit(&time, a->time, a->times), axis_fit(&time, a->reference, a->references);
    axis_settle(&time, 0.015);
    return time;
}

/* A copy of the weights that keeps only the strongest of each row, and only above an even share. Lines are drawn for
 * these in long records, where thousands of lines would hide each other. The caller frees it. */
static double *strongest(const heat *h, size_t times) {
    double *kept = tool_calloc(h->rows * times, sizeof *kept);
    for (size_t k = 0; k < h->rows; k++) {
        const double *row = h->weight + k * times;
        for (int n = 0; n < PICTURE_STRONGEST; n++) {
            size_t best = times;
            for (size_t t = 0; t < times; t++)
                if (!(kept[k * times + t] > 0) && row[t] > (best < times ? row[best] : 1.05 / (double)times)) best = t;
            if (best < times) kept[k * times + best] = row[best];
        }
    }
    return kept;
}

int picture_links_all(const report_attention *a, const heat *h) {
    return h->rows * a->times <= LINKS_MOST;
}

void picture_links(const frame *f, const report_attention *a, const heat *h) {
    double *above = tool_calloc(h->rows, sizeof *above), *below = tool_calloc(a->times, sizeof *below);
    double *few = picture_links_all(a, h) ? NULL : strongest(h, a->times);
    for (size_t k = 0; k < h->rows; k++) above[k] = 1;
    frame_links(f, h->place, h->rows, a->time, a->times, few ? few : h->weight, h->most);
    frame_axes(f, "observations", NULL);
    frame_text(f, "name", f->x.low, 1, 0, -9, "reference points", PICTURE_NAME);
    frame_points(f, "c0", h->place, above, h->rows, 1.8);
    frame_points(f, a->times > 60 ? "c0" : "seen", a->time, below, a->times, a->times > 60 ? 1.8 : 3);
    free(above), free(below), free(few);
}
