/* See subgroups.h. */
#include "subgroups.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *left, const void *right) {
    return strcmp(((const subgroup *)left)->name, ((const subgroup *)right)->name);
}

static const char *group_of(const record_column *by, const dataset *d, const worth *w, size_t row) {
    return record_column_of(by, dataset_name(d, (size_t)w->record[row]));
}

/* The groups that occur, with their row counts; it stops at SUBGROUPS_MOST + 1 groups. */
static subgroup *groups_found(const record_column *by, const dataset *d, const worth *w) {
    subgroup *found = NULL;
    for (size_t i = 0; i < w->rows && arrlen(found) <= SUBGROUPS_MOST; i++) {
        const char *name = group_of(by, d, w, i);
        size_t k = 0;
        if (!name) continue;
        while (k < arrlenu(found) && strcmp(found[k].name, name) != 0) k++;
        if (k == arrlenu(found)) {
            subgroup g;
            memset(&g, 0, sizeof g);
            g.name = name;
            arrput(found, g);
        }
        found[k].rows++;
    }
    if (arrlen(found) > 0) qsort(found, arrlenu(found), sizeof *found, by_name);
    return found;
}

/* (rows of the group) Their indices among all rows. */
static int32_t *rows_of(const subgroup *g, const record_column *by, const dataset *d, const worth *w) {
    int32_t *rows = tool_calloc(g->rows, sizeof *rows);
    size_t n = 0;
    for (size_t i = 0; i < w->rows; i++) {
        const char *name = group_of(by, d, w, i);
        if (name && strcmp(name, g->name) == 0) rows[n++] = (int32_t)i;
    }
    return rows;
}

static void group_measure(subgroup *g, const worth *w, const int32_t *rows, int32_t draws) {
    int32_t *record = tool_calloc(g->rows, sizeof *record);
    for (size_t i = 0; i < g->rows; i++) record[i] = w->record[rows[i]];
    for (int i = 0; i < worth_metrics(w); i++) {
        worth_query q = {w, i, NULL, rows};
        g->value[i] = worth_drawn(&q, NULL, g->rows);
        g->range[i] = (interval){NAN, NAN};
        if (draws > 0 && task_metric_has_interval(w->task, i))
            g->range[i] = metric_bootstrap(worth_drawn, &q, g->rows, record, draws, 0);
    }
    free(record);
}

subgroup *subgroups_measure(const record_column *by, const dataset *d, const worth *w, int32_t draws, char *error) {
    subgroup *groups = groups_found(by, d, w);
    if (arrlen(groups) == 0) return snprintf(error, 512, "no labelled record has a value there"), NULL;
    if (arrlen(groups) > SUBGROUPS_MOST) {
        arrfree(groups);
        return snprintf(error, 512, "more than %d different values are no groups", SUBGROUPS_MOST), NULL;
    }
    for (size_t k = 0; k < arrlenu(groups); k++) {
        int32_t *rows = rows_of(&groups[k], by, d, w);
        group_measure(&groups[k], w, rows, draws);
        free(rows);
    }
    return groups;
}
