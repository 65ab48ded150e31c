/* Own data by columns, as a program has it in memory. The data set is the one that own_load makes of a file with the same rows:
 * the same order of records, channels and classes, the same clock, the same means of repeats. */
#ifndef MTAN_TOOLS_OWN_COLUMNS_H
#define MTAN_TOOLS_OWN_COLUMNS_H

#include "own.h"

/* Lists of names are zero-terminated texts, one after the other. What is NULL is not there. */
typedef struct own_columns {
    int32_t n_records, n_channels, n_classes;
    const char *records; /* (n_records) names, no two the same */
    const char
        *channels;       /* (n_channels) names; the first `statics` of them do not change in a record, and come first */
    const char *classes; /* (n_classes) names */
    int32_t statics;     /* a model that is given knows its own */
    const int64_t *offset; /* (n_records + 1): the rows of record r are offset[r] to offset[r + 1] - 1 */
    const double *time; /* (rows) numbers, NaN: the row has no time and is true of its record at all times; or dates: */
    const int64_t *date;    /* (rows) in ticks (field.h), OWN_NO_DATE: no time */
    const int32_t *channel; /* (rows) which name of `channels` */
    const double *value;    /* (rows) NaN: the row is left out and counted; its record exists all the same */
    /* What is to be learned: a class or a number of each record; with label_offset (n_records + 1), as `offset`, of its times. */
    const int32_t *label; /* which name of `classes`, MTAN_UNLABELED: none */
    const double *number; /* in place of label; NaN: none */
    const double
        *several; /* in place of both, rows of n_classes labels that are each true or not: 1, 0, or NaN for not known */
    const int64_t *label_offset;
    const double *label_time; /* as time or date, whichever the rows have */
    const int64_t *label_date;
    const int32_t *group; /* (n_records) records of one group stay on one side of a split; -1: of none */
    const int32_t
        *part; /* (n_records) of a split that is given, 0, 1 or 2 for training, validation or test; -1: none */
} own_columns;

#define OWN_NO_DATE INT64_MIN

/* Of the options groups, statics, task and files do not count. 1, or 0 with d->error set and nothing to free; a row is named by
 * its place, from 1 on: "events:7: ...". */
int own_take_columns(dataset *d, const own_columns *c, const own_options *o);

#endif
