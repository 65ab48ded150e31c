/* The results of `mtan check` on a data set: filled by command/check.c, printed by check_print.c. */
#ifndef MTAN_TOOLS_CHECK_DATA_H
#define MTAN_TOOLS_CHECK_DATA_H

#include "../measure/contest.h"
#include "../model/data_sets.h"
#include "../model/plan.h"
#include "profile.h"
#include "../../data/own_tolerant.h"

typedef struct checked {
    const char *path, *labels;
    const data_set *set;
    problems problems;
    size_t rows_at_fault; /* how many of the problems name a row; these come first */
    char **flags;         /* stb_ds array of texts (flags.h) */
    dataset data;         /* raw; preprocessed at the end, for the timing */
    size_t data_bytes;
    profile profile;
    int has_split, has_cost;
    split split;
    leakage leakage;
    plan plan; /* what `mtan train` would do */
    double time_scale;
    contest_number *rivals; /* baselines on the test records; an stb_ds array */
    cost cost;
    int32_t threads;
    const char *backend;
    char command[1024]; /* the suggested command, as typed in a shell */
} checked;

void check_print(const checked *c); /* aligned tables within 80 columns */
void check_json(const checked *c);  /* one object */

#endif
