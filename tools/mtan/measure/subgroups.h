/* A model's metrics by subgroup: sex, hospital, or any other column of the label file. */
#ifndef MTAN_TOOLS_SUBGROUPS_H
#define MTAN_TOOLS_SUBGROUPS_H

#include "../../data/record_column.h"
#include "worth.h"

typedef struct subgroup {
    const char *name; /* the column's value */
    size_t rows;
    double value[METRICS];   /* the first worth_metrics are used (worth.h) */
    interval range[METRICS]; /* 95 %, NaN without draws, and of a metric without an interval */
} subgroup;

enum { SUBGROUPS_MOST = 30 };
/* Rows of records without a value in the column are in no group. Returns an stb_ds array in the order of the names;
 * NULL with error (512 bytes) set: no row has a group, or there are more than SUBGROUPS_MOST. */
subgroup *subgroups_measure(const record_column *by, const dataset *d, const worth *w, int32_t draws, char *error);

#endif
