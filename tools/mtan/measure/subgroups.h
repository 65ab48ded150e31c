/* A model's metrics by subgroup: men and women, hospitals, whatever a column of the labels says of the records. */
#ifndef MTAN_TOOLS_SUBGROUPS_H
#define MTAN_TOOLS_SUBGROUPS_H

#include "../../data/record_column.h"
#include "worth.h"

typedef struct subgroup {
    const char *name; /* the column's */
    size_t rows;
    double value[METRICS];   /* as many as the task has metrics (worth.h) */
    interval range[METRICS]; /* 95 %, NaN without draws */
} subgroup;

enum { SUBGROUPS_MOST = 30 };
/* Rows of records that the column says nothing of are in no group. An stb_ds array in the order of the names; NULL
 * with error (512 bytes) set: no row has a group, or the groups are too many to be groups. */
subgroup *subgroups_measure(const record_column *by, const dataset *d, const worth *w, int32_t draws, char *error);

#endif
