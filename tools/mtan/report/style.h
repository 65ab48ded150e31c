/* The style of pages and figures: one list of colours, and the CSS rules. */
#ifndef MTAN_TOOLS_STYLE_H
#define MTAN_TOOLS_STYLE_H

#include <stdio.h>

/* Rules, with colours by name: var(--c1). A page has them in this order. */
extern const char style_page[];    /* its text, its headline numbers and the grid of its figures */
extern const char style_drawing[]; /* the elements of a figure (figure.h) */
extern const char style_tables[];  /* its tables; and what changes on narrow screens and on paper */

/* Writes the colours as CSS variables; dark ones for screens only, so that paper stays white. */
void style_colours(FILE *out);
/* Writes rules with the paper colours in place of their names, for programs without CSS variables. */
void style_on_paper(FILE *out, const char *rules);
/* Begins a stand-alone figure file; used instead of figure_begin. */
void style_figure_begin(FILE *out, int width, int height, const char *description);

#endif
