/* The style of pages and figures: one list of colours, and the CSS rules for figure.h. */
#ifndef MTAN_TOOLS_STYLE_H
#define MTAN_TOOLS_STYLE_H

#include <stdio.h>

extern const char style_drawing[]; /* rules for the elements of a figure; colours by name: var(--c1) */

/* Writes the colours as CSS variables; dark ones for screens only, so that paper stays white. */
void style_colours(FILE *out);
/* Writes rules with the paper colours in place of their names, for programs without CSS variables. */
void style_on_paper(FILE *out, const char *rules);
/* Begins a stand-alone figure file; used instead of figure_begin. */
void style_figure_begin(FILE *out, int width, int height, const char *description);

#endif
