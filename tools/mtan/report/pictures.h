/* Pictures that both the page and stand-alone figures use, drawn into a frame (figure.h): a record's curves, and
 * attention. */
#ifndef MTAN_TOOLS_PICTURES_H
#define MTAN_TOOLS_PICTURES_H

#include "figure.h"
#include "report.h"

enum { PICTURE_STRONGEST = 3 }; /* lines per reference point, when all lines would be too many */

/* picture_curves_fit: widens the frame's axes to hold a panel. picture_curves: draws observed and held-out points,
 * truth, mean, and a band of two standard deviations. */
void picture_curves_fit(frame *f, const report_panel *p);
void picture_curves(const frame *f, const report_panel *p);

/* Attention weights with few enough rows to be seen: neighbouring reference points are averaged. */
typedef struct heat {
    double *weight, *place; /* (rows, times), (rows) */
    size_t rows;
    double most;
} heat;
heat heat_make(const report_attention *a);
void heat_free(heat *h);

/* A time axis that holds observations and reference points. */
axis picture_times(const report_attention *a);
/* Draws reference points above, observations below, and lines between them: picture_links_all tells whether all of
 * them, or else only the strongest of each reference point. */
int picture_links_all(const report_attention *a, const heat *h);
void picture_links(const frame *f, const report_attention *a, const heat *h);

#endif
