/* The parts of every section of a report's page: a heading, figures with a caption, and the sentence above a
 * picture. */
#ifndef MTAN_TOOLS_PAGE_PARTS_H
#define MTAN_TOOLS_PAGE_PARTS_H

#include <stdio.h>

#include "figure.h"
#include "report.h"

enum {
    WIDTH = 360, /* figure width in its own units: about a phone's width, so that text keeps its size there */
    HEIGHT = 240,
    LEFT = 46,
    RIGHT = 12,
    TOP = 26,
    BOTTOM = 38,
    NAME_MOST = 40
};

void page_section(FILE *out, const char *title, const char *words);
/* The calls of a figure in order: caption; keys, words and a verdict within the caption; the frame; drawing; the
 * end. */
void page_caption(FILE *out, const char *name, const char *more);
void page_key(FILE *out, const char *kind, const char *name);
void page_words(FILE *out, const char *name, double value);
void page_verdict(FILE *out, const char *text);
frame page_frame(FILE *out, int height, const char *description);
void page_plot_end(FILE *out);

/* The name of a time axis: "time, hours". */
const char *page_time(char name[80], const char *what, const report_data *r);

/* Sections in page_classes.c, page_numbers.c and page_curves.c; they print nothing if the report has no such data. */
void page_classes(FILE *out, const report_data *r);
void page_number(FILE *out, const report_data *r);
void page_labels(FILE *out, const report_data *r);
void page_curves(FILE *out, const report_data *r);

#endif
