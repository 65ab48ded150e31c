/* Own data by columns, in a program's memory. The data set equals the one that own_load makes from a file with the same
 * rows: the same order of records, channels and classes, the same clock, the same means of repeats. */
#ifndef MTAN_TOOLS_OWN_COLUMNS_H
#define MTAN_TOOLS_OWN_COLUMNS_H

#include "own.h"

/* Lists of names are zero-terminated texts, one after the other. A missing column is NULL. */
typedef struct own_columns {
    int32_t n_records, n_channels, n_classes;
    const char *records; /* (n_records) names, no two the same */
    const char
        *channels; /* (n_channels) names; the first `statics` of them are static, they do not change within a record */
    const char *classes;   /* (n_classes) names */
    int32_t statics;       /* not used if a model is given, which knows its own */
    const int64_t *offset; /* (n_records + 1): the rows of record r are offset[r] to offset[r + 1] - 1 */
    const double *time;  /* (rows) numbers, NaN: the row has no time and is true of its record at all times; or else: */
    const int64_t *date; /* (rows) dates in ticks (field.h), OWN_NO_DATE: no time */
    const int32_t *channel; /* (rows) index in `channels` */
    const double *value;    /* (rows) NaN: the row is left out and counted; its record exists all the same */
    /* The labels: a class or a number per record or, with label_offset (n_records + 1), which works like `offset`, per
     * time. */
    const int32_t *label; /* index in `classes`, MTAN_UNLABELED: none */
    const double *number; /* instead of label; NaN: none */
    const double
        *several; /* instead of both, rows of n_classes labels that are each true or not: 1, 0, or NaN for not known */
    const int64_t *label_offset;
    const double *label_time; /* numbers or dates, whichever the rows have */
    const int64_t *label_date;
    const int32_t *group; /* (n_records) records of one group stay in one part of a split; -1: none */
    const int32_t
        *part; /* (n_records) parts of a given split: 0, 1 or 2 for training, validation or test; -1: no part given */
} own_columns;

#define OWN_NO_DATE INT64_MIN

int own_columns_labelled(const own_columns *c); /* whether there are labels, of any kind */

/* The options for groups, statics, task and files are ignored. Returns 1, or 0 with d->error set and nothing to free;
 * messages name a row by its place, from 1: "events:7: ...". */
int own_take_columns(dataset *d, const own_columns *c, const own_options *o);

#endif
