/* Rows of predictions on standard output, as CSV or as one JSON object per line: what `mtan predict`, `mtan interpolate` and
 * `mtan stream` print. CSV has a header, printed with the first row: a command that fails before it prints nothing.
 *
 * Names in CSV: in quotes where they hold a comma, a quote or a line's end, or begin or end with a blank. One that a spreadsheet
 * would take for a formula, for it begins with = + - @ a tab or a return and is no number, gets an apostrophe in front, and so
 * does one that begins with an apostrophe: whoever takes one apostrophe away has the name. */
#ifndef MTAN_TOOLS_ROWS_H
#define MTAN_TOOLS_ROWS_H

#include <stdio.h>

#include "../../../mtan.h"

typedef struct row_printer {
    const mtan_config *config;
    char **classes;               /* their names, an stb_ds array; as many as the model has, or it does not know them */
    const mtan_prep_unit *number; /* of a model that predicts a number; NULL: it does not, or has no units */
    int json, interpolates;
    int begun; /* the header is out */
} row_printer;

/* A name as CSV has it. */
void row_name(const char *name);
void row_field(FILE *file, const char *name); /* the same in a file that is one */
/* record[,time],p_sick,p_well,predicted: a probability per class and the name of the largest; p0,p1 and a number where the classes
 * have no names. JSON has the same keys. time, of both kinds of rows, is a number or a date, in JSON a number or a string; here it
 * may be NULL. p (outputs). Of several labels the same without `predicted`; of a number: record[,time],predicted, and low,high where the
 * model has an interval. */
void row_classes(row_printer *r, const char *record, const char *time, const double *p);
/* record,time,channel,mean,sd,extrapolated. outside: the time lies outside of the record's observations. */
void row_value(row_printer *r, const char *record, const char *time, const char *channel, double mean, double sd,
               int outside);
/* A name as a field. Bytes go into a file or a pipe as they are, to a terminal as it may show them. */
void row_name(const char *name);
void row_field(FILE *file, const char *name); /* the same in a file that is one */
/* The first line of CSV, unless it is out or there is none. Rows print it themselves: it is for success without a row. */
void rows_header(row_printer *r);

#endif
