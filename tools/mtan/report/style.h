/* What pages and figures look like: one list of colours, and the rules of what figure.h draws. */
#ifndef MTAN_TOOLS_STYLE_H
#define MTAN_TOOLS_STYLE_H

#include <stdio.h>

extern const char style_drawing[]; /* rules of what a figure holds; colours by name: var(--c1) */

/* The colours under their names; dark ones for screens alone, so that paper stays white. */
void style_colours(FILE *out);
/* Rules with the colours of paper in place of their names, for programs that know no names. */
void style_on_paper(FILE *out, const char *rules);
/* The beginning of a figure that is a file of its own: in place of figure_begin. */
void style_figure_begin(FILE *out, int width, int height, const char *description);

#endif
