/* Pictures that a page and a figure that stands alone both have, drawn into a frame (figure.h): a record's curves, and attention. */
#ifndef MTAN_TOOLS_PICTURES_H
#define MTAN_TOOLS_PICTURES_H

#include "figure.h"
#include "report.h"

enum { PICTURE_STRONGEST = 3 }; /* lines of each reference point, where all of them would be too many */

/* Widens the frame's axes to hold a panel; draws it: observed and held-out points, truth, mean, two standard deviations. */
void picture_curves_fit(frame *f, const report_panel *p);
void picture_curves(const frame *f, const report_panel *p);

/* Attention as rows of weights, few enough to be seen: neighbouring reference points are averaged. */
typedef struct heat {
    double *weight, *place; /* (rows, times), (rows) */
    size_t rows;
    double most;
} heat;
heat heat_make(const report_attention *a);
void heat_free(heat *h);

/* An axis of time that holds observations and reference points. */
axis picture_times(const report_attention *a);
/* Reference points above, observations below, joined by lines: all of them, or the strongest of each reference point. */
int picture_links_all(const report_attention *a, const heat *h);
void picture_links(const frame *f, const report_attention *a, const heat *h);

#endif
