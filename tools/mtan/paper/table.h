/* mtan table: what is to be run for the paper's tables, and what they look like. */
#ifndef MTAN_TOOLS_TABLE_H
#define MTAN_TOOLS_TABLE_H

#include <stdio.h>

#include "paper.h"
#include "results.h"

/* Which rows, presets and seeds are asked for. */
typedef struct table_choice {
    int tables[PAPER_TABLES + 1]; /* from 1: whether it is asked for */
    const char *only;             /* ROW, DATA or ROW/DATA, several between commas; NULL: all */
    int preset;                   /* an mtan_preset, or -1: all */
    int64_t *seeds;               /* an stb_ds array: those to run */
    int all_seeds;                /* every seed in the results counts, not only those */
} table_choice;

/* "0,1,5-7" -> seeds, an stb_ds array. 1, or 0. */
int table_seeds(int64_t **seeds, const char *text);
/* Is this one of those asked for? */
int table_wants(const table_choice *c, int table, const char *row, const char *data);
/* Does `only` name something that there is? */
int table_only_exists(const char *only);

/* The runs asked for whose numbers are not all in the results, in the order in which they are to be made: seed by seed. An stb_ds
 * array. */
paper_run *table_missing(const table_choice *c, const result *results);

int table_has(const result *results, const paper_run *r);      /* are they all in the results? */
const char *table_next(const char *word, const char *between); /* the next word of a list, "" at its end */

/* A number of a table from the results: over the seeds that have it. */
typedef struct table_number {
    int runs, diverged;  /* seeds with a value; without one, as their run diverged */
    double mean, spread; /* NaN: none; the spread is the standard deviation (n - 1) */
    double low, high;    /* 95 %, over the test records: the ends' means; NaN: not known */
    double seconds;      /* per epoch, mean; NaN: not known */
    int other;           /* runs with other options than the row's */
} table_number;
/* whose: a preset's name, or paper_rerun. */
table_number table_number_of(const table_choice *c, const result *results, const paper_cell *cell, const char *whose);
/* Does it differ from the paper's number by more than two standard errors? Both numbers have one: the paper's is what it prints behind
 * +-, ours is of the seeds and of the test records together. 0 where ours is not known. */
int table_differs(const table_number *n, const paper_cell *cell);

/* The tables asked for. no_data says why a data set cannot be had, or NULL: by its name. */
typedef const char *(*table_no_data)(void *context, const char *data);
typedef enum table_format { TABLE_TEXT, TABLE_MARKDOWN, TABLE_CSV, TABLE_JSON } table_format;
void table_print(FILE *out, table_format format, const table_choice *c, const result *results, table_no_data no_data,
                 void *context);

#endif
