/* mtan table: selects the runs for the paper's tables, and prints the tables. */
#ifndef MTAN_TOOLS_TABLE_H
#define MTAN_TOOLS_TABLE_H

#include <stdio.h>

#include "paper.h"
#include "results.h"

/* The rows, presets and seeds asked for. */
typedef struct table_choice {
    int tables[PAPER_TABLES + 1]; /* from 1: 1 if asked for */
    const char *only;             /* ROW, DATA or ROW/DATA, several separated by commas; NULL: all */
    int preset;                   /* an mtan_preset, or -1: all */
    int64_t *seeds;               /* an stb_ds array: the seeds to run */
    int all_seeds;                /* 1: every seed in the results counts, not only `seeds` */
} table_choice;

/* Parses "0,1,5-7" into seeds, an stb_ds array. Returns 1, or 0. */
int table_seeds(int64_t **seeds, const char *text);
/* Is the row on this data asked for? */
int table_wants(const table_choice *c, int table, const char *row, const char *data);
/* Does `only` name an existing row or data set? */
int table_only_exists(const char *only);

/* The runs asked for that lack some number in the results, in the order in which to make them: seed by seed. An stb_ds
 * array. */
paper_run *table_missing(const table_choice *c, const result *results);

int table_has(const result *results, const paper_run *r);      /* are all the run's numbers in the results? */
const char *table_next(const char *word, const char *between); /* the next word of a list, "" at its end */

/* A number of a table, from the results over all seeds that have it. */
typedef struct table_number {
    int runs, diverged;  /* seeds with a value; seeds without one, because the run diverged */
    double mean, spread; /* NaN: none; spread is the standard deviation (n - 1) */
    double low, high;    /* 95 % interval over the test records, each end averaged over the seeds; NaN: not known */
    double seconds;      /* per epoch, mean; NaN: not known */
    int other;           /* runs whose options differ from the row's */
} table_number;
/* whose: the name of a preset, or paper_rerun. */
table_number table_number_of(const table_choice *c, const result *results, const paper_cell *cell, const char *whose);
/* Does it differ from the paper's number by more than two standard errors? The paper's standard error is what it prints
 * after +-; ours covers the seeds and the test records together. 0 if ours is not known. */
int table_differs(const table_number *n, const paper_cell *cell);

/* Prints the tables asked for. no_data returns why the data set of that name cannot be read, or NULL. */
typedef const char *(*table_no_data)(void *context, const char *data);
typedef enum table_format { TABLE_TEXT, TABLE_MARKDOWN, TABLE_CSV, TABLE_JSON } table_format;
void table_print(FILE *out, table_format format, const table_choice *c, const result *results, table_no_data no_data,
                 void *context);

#endif
