/* See subgroups.h. */
#include "subgroups.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *left, const void *right) {
    return strcmp(((const subgroup *)left)->name, ((const subgroup *)right)->name);
}

static const char *group_of(const record_column *by, const dataset *d, const predictions *p, size_t row) {
    return record_column_of(by, dataset_name(d, (size_t)p->record[row]));
}

/* The groups that occur, with their rows counted; one more than the most where there are more. */
static subgroup *groups_found(const record_column *by, const dataset *d, const predictions *p) {
    subgroup *found = NULL;
    for (size_t i = 0; i < p->rows && arrlen(found) <= SUBGROUPS_MOST; i++) {
        const char *name = group_of(by, d, p, i);
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

/* Rows of one group; the arrays are its own. */
static predictions rows_of(const subgroup *g, const record_column *by, const dataset *d, const predictions *p) {
    const size_t C = (size_t)p->classes;
    predictions part = {0, 0, p->classes, NULL, NULL, NULL, NULL};
    part.p = tool_calloc(g->rows * C, sizeof *part.p), part.score = tool_calloc(g->rows, sizeof *part.score);
    part.label = tool_calloc(g->rows, sizeof *part.label), part.record = tool_calloc(g->rows, sizeof *part.record);
    for (size_t i = 0; i < p->rows; i++) {
        const char *name = group_of(by, d, p, i);
        if (!name || strcmp(name, g->name) != 0) continue;
        memcpy(part.p + part.rows * C, p->p + i * C, C * sizeof *p->p);
        part.score[part.rows] = p->score[i], part.label[part.rows] = p->label[i];
        part.record[part.rows++] = p->record[i];
    }
    return part;
}

static void group_measure(subgroup *g, const predictions *part, int32_t draws) {
    metric_query q = {
        metric_table_new(part->p, part->classes == 2 ? part->score : NULL, part->label, part->rows, part->classes),
        METRIC_AUC, NULL};
    for (int i = 0; i < METRICS; i++) {
        q.name = (metric_name)i;
        g->value[i] = metric_drawn(&q, NULL, part->rows);
        g->range[i] = (interval){NAN, NAN};
        if (draws > 0) g->range[i] = metric_bootstrap(metric_drawn, &q, part->rows, part->record, draws, 0);
    }
    metric_table_free(q.table);
}

subgroup *subgroups_measure(const record_column *by, const dataset *d, const predictions *p, int32_t draws,
                            char *error) {
    subgroup *groups = groups_found(by, d, p);
    if (arrlen(groups) == 0) return snprintf(error, 512, "no labelled record has a value there"), NULL;
    if (arrlen(groups) > SUBGROUPS_MOST) {
        arrfree(groups);
        return snprintf(error, 512, "more than %d different values are no groups", SUBGROUPS_MOST), NULL;
    }
    for (size_t k = 0; k < arrlenu(groups); k++) {
        predictions part = rows_of(&groups[k], by, d, p);
        group_measure(&groups[k], &part, draws);
        predictions_free(&part);
    }
    return groups;
}
