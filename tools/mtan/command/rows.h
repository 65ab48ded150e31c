/* Rows of predictions on standard output, as CSV or as one JSON object per line: the output of `mtan predict`, `mtan
 * interpolate` and `mtan stream`. The CSV header is printed with the first row, so a command that fails earlier prints
 * nothing.
 *
 * Names in CSV are quoted if they contain a comma, a quote or a line end, or begin or end with a blank. A spreadsheet
 * takes a name for a formula if it begins with = + - @ a tab or a return and is not a number: such a name gets an
 * apostrophe in front, and so does a name that begins with an apostrophe. A reader that removes one leading apostrophe
 * has the name. */
#ifndef MTAN_TOOLS_ROWS_H
#define MTAN_TOOLS_ROWS_H

#include <stdio.h>

#include "../../../mtan.h"
#include "../../data/field.h"

typedef struct row_printer {
    const mtan_config *config;
    char **classes;               /* their names, an stb_ds array; empty if the model does not know them */
    const mtan_prep_unit *number; /* of a model that predicts a number; NULL: another model, or no units */
    int json, interpolates;
    int begun; /* 1: the header is printed */
} row_printer;

/* Classes: record[,time],p_sick,p_well,predicted: a probability per class and the name of the largest; p0,p1 and a
 * number if the classes have no names. Several labels: the same without `predicted`. A number: record[,time],predicted,
 * and low,high if the model has an interval. JSON has the same keys. p (outputs). In both kinds of rows a time is a
 * number or a date, in JSON a number or a string; here it may be NULL. */
void row_classes(row_printer *r, const char *record, const char *time, const double *p);
/* record,time,channel,mean,sd,extrapolated. outside: the time lies outside of the record's observations. */
void row_value(row_printer *r, const char *record, const char *time, const char *channel, double mean, double sd,
               int outside);
/* Prints a name as a field. To a file or a pipe its bytes go unchanged; to a terminal, made safe to show. */
void row_name(const char *name);
void row_field(FILE *file, const char *name); /* the same, into a file that is CSV */
/* The shortest decimal that reads back to this time, for data without the texts of times. */
field_excerpt row_time(mtan_real time);
/* Prints the CSV header if there is one and it is not printed yet. Rows print it themselves: this call is for success
 * without a row. */
void rows_header(row_printer *r);

#endif
