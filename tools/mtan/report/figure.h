/* Plots as inline SVG: a figure holds frames, a frame holds axes, lines, bands, points, bars and cells. It knows
 * nothing of the data behind a plot. Colours are classes (c1, c2, ...) that the page's style sheet defines, so that one
 * figure serves light and dark.
 *
 *     frame f = {out, 44, 20, 300, 180, axis_none, axis_none};
 *     figure_begin(out, 360, 240, "Loss by epoch");
 *     axis_fit(&f.x, epoch, n), axis_fit(&f.y, loss, n);
 *     if (axis_settle(&f.x, 0) & axis_settle(&f.y, 0.05)) frame_axes(&f, "epoch", "loss"), frame_line(&f, "c1", epoch, loss, n);
 *     else frame_message(&f, "no epochs yet");
 *     figure_end(out);
 *
 * Values that are not finite are left out and leave a gap in a line. Everything is clipped to the frame. The same
 * arguments give the same bytes. */
#ifndef MTAN_TOOLS_FIGURE_H
#define MTAN_TOOLS_FIGURE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct axis {
    double low, high;
    int log;   /* decades; low must be above 0 */
    int whole; /* ticks at whole numbers only */
} axis;

typedef struct frame {
    FILE *out;
    double left, top, width, height; /* of the plotting area, inside the figure */
    axis x, y;
} frame;

enum { AXIS_TICKS_MOST = 24, FIGURE_LEVELS = 16 };

extern const axis axis_none; /* empty: for axis_fit */
extern const axis axis_unit; /* 0 to 1 */

/* Widens the axis to hold the finite values. */
void axis_fit(axis *a, const double *values, size_t n);
/* Finishes an axis for drawing: adds `margin` (a share of the range) on both sides and avoids an empty range. 0 when
 * nothing was fitted: the axis is then 0 to 1. */
int axis_settle(axis *a, double margin);
/* Writes about `most` round numbers inside the axis, ascending; returns how many (at most AXIS_TICKS_MOST). */
size_t axis_ticks(const axis *a, size_t most, double *ticks);
/* axis_label: the label of a tick, in 32 bytes. axis_power: the power of ten that all labels of the axis leave out (0:
 * none). */
int axis_power(const axis *a);
void axis_label(const axis *a, const double *ticks, size_t n, size_t i, char *text);

void figure_begin(FILE *out, int width, int height, const char *description);
void figure_end(FILE *out);

/* Draws grid, ticks and axis names. With a NULL name the axis has no labels. */
void frame_axes(const frame *f, const char *x_name, const char *y_name);
/* Prints a sentence instead of a plot. */
void frame_message(const frame *f, const char *text);

void frame_line(const frame *f, const char *style, const double *x, const double *y, size_t n);
void frame_band(const frame *f, const char *style, const double *x, const double *low, const double *high, size_t n);
void frame_points(const frame *f, const char *style, const double *x, const double *y, size_t n, double radius);
void frame_bar(const frame *f, const char *style, double x0, double x1, double y0, double y1);
void frame_rule(const frame *f, const char *style, double x0, double y0, double x1, double y1);
/* Prints text at a point, shifted by (dx, dy) pixels and cut to `most` characters. The style "middle" centres it, "end"
 * right-aligns it. */
void frame_text(const frame *f, const char *style, double x, double y, double dx, double dy, const char *text,
                size_t most);

/* Draws value (rows, cols) as shades of c1, from none at 0 to full at `most`. x (cols + 1) and y (rows + 1): cell
 * borders in the frame's units. */
void frame_cells(const frame *f, const double *x, size_t cols, const double *y, size_t rows, const double *value,
                 double most);
/* Draws weight (tops, bottoms) as lines from x_top at the upper border of the frame to x_bottom at the lower one,
 * shaded the same way. */
void frame_links(const frame *f, const double *x_top, size_t tops, const double *x_bottom, size_t bottoms,
                 const double *weight, double most);

#endif
