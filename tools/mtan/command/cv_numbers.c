/* See cv_numbers.h. */
#include "cv_numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/array.h"
#include "../model/labels.h"
#include "commands.h"
#include "rows.h"

/* ---- metrics ---- */

static int metrics_of(mtan_task task) {
    return task == MTAN_TASK_LABELS ? METRIC_CALIBRATION : NUMBER_METRICS; /* labels: all before it */
}

static const char *title_of(mtan_task task, int metric) {
    return task == MTAN_TASK_LABELS ? metric_title((metric_name)metric) : number_metric_title((number_metric)metric);
}

/* range: NULL, or the interval of so many draws. */
static double measure(const number_predictions *p, mtan_task task, int metric, int32_t draws, interval *range) {
    number_query of_number = {p, (number_metric)metric, NULL, NULL};
    label_tables tables = {0};
    label_query of_labels = {&tables, (metric_name)metric, -1, NULL};
    const int labels = task == MTAN_TASK_LABELS;
    const metric_function drawn = labels ? label_drawn : number_drawn;
    void *query = labels ? (void *)&of_labels : (void *)&of_number;
    if (labels) tables = label_tables_make(p->p, p->y, p->rows, p->outputs);
    const double value = drawn(query, NULL, p->rows);
    if (range && draws > 0) *range = metric_bootstrap(drawn, query, p->rows, p->record, draws, 0);
    label_tables_free(&tables);
    return value;
}

void fold_spread(const double *x, double *mean, double *sd) {
    double sum = 0, squares = 0, n = 0;
    for (size_t i = 0; i < arrlenu(x); i++)
        if (!isnan(x[i])) sum += x[i], n++;
    *mean = n > 0 ? sum / n : NAN;
    for (size_t i = 0; i < arrlenu(x); i++)
        if (!isnan(x[i])) squares += (x[i] - *mean) * (x[i] - *mean);
    *sd = n > 1 ? sqrt(squares / (n - 1)) : NAN;
}

/* ---- rows ---- */

static void write_name(FILE *file, const char *before, const char *name) {
    const size_t room = strlen(before) + strlen(name) + 1;
    char *text = tool_calloc(room, 1);
    snprintf(text, room, "%s%s", before, name);
    fputc(',', file), row_field(file, text);
    free(text);
}

static void write_header(FILE *file, const dataset *d, int32_t outputs) {
    const int labels = d->task == MTAN_TASK_LABELS;
    fputs(d->label_times ? "record,time,fold" : "record,fold", file);
    for (size_t c = 0; c < arrlenu(d->classes); c++) write_name(file, "", d->classes[c]);
    for (size_t c = 0; labels && c < arrlenu(d->classes); c++) write_name(file, "p_", d->classes[c]);
    fputs(labels ? "\n" : outputs == 3 ? ",predicted,low,high\n" : ",predicted\n", file);
}

static void write_number(FILE *file, double x) {
    fputc(',', file);
    if (!isnan(x)) fprintf(file, "%.9g", x);
}

static void write_rows(FILE *file, const session *s, const number_predictions *p, int32_t fold) {
    const dataset *d = &s->data;
    const size_t C = arrlenu(d->classes), O = (size_t)p->outputs;
    for (size_t i = 0; i < p->rows; i++) {
        const double *row = p->p + i * O;
        row_field(file, dataset_name(d, (size_t)p->record[i]));
        if (d->label_times)
            write_number(file, prep_raw_time(&s->bundle.prep, SPLIT_TEST, (double)d->label_times[p->place[i]]));
        fprintf(file, ",%d", (int)fold);
        for (size_t c = 0; c < C; c++) write_number(file, p->y[i * C + c]);
        if (d->task == MTAN_TASK_NUMBER && O == 3) write_number(file, row[1]), write_number(file, row[0]);
        for (size_t o = d->task == MTAN_TASK_NUMBER && O == 3 ? 2 : 0; o < O; o++) write_number(file, row[o]);
        fputc('\n', file);
    }
}

int pooled_numbers_add(pooled_numbers *x, session *s, const options *o, int32_t fold, FILE *file) {
    const size_t C = arrlenu(s->data.classes);
    number_predictions p;
    if (!session_numbers(s, o, &p)) return 0;
    x->task = s->data.task, x->all.outputs = p.outputs;
    if (fold == 0) write_header(file, &s->data, p.outputs);
    write_rows(file, s, &p, fold);
    for (int i = 0; i < metrics_of(x->task); i++) arrput(x->measured[i], measure(&p, x->task, i, 0, NULL));
    for (size_t i = 0; i < p.rows; i++) arrput(x->record, p.record[i]);
    for (size_t i = 0; i < p.rows * C; i++) arrput(x->y, p.y[i]);
    for (size_t i = 0; i < p.rows * (size_t)p.outputs; i++) arrput(x->p, p.p[i]);
    numbers_free(&p);
    return 1;
}

void pooled_numbers_tell(pooled_numbers *x, int32_t folds, int32_t draws) {
    x->all.rows = arrlenu(x->record), x->all.p = x->p, x->all.y = x->y, x->all.record = x->record;
    printf("%d folds, %zu labelled rows\n%-18s %10s %10s   %s\n", (int)folds, x->all.rows, "", "mean", "sd",
           "all rows together");
    for (int i = 0; i < metrics_of(x->task); i++) {
        interval range = {NAN, NAN};
        const double pooled = measure(&x->all, x->task, i, draws, &range);
        double mean, sd;
        fold_spread(x->measured[i], &mean, &sd);
        if (isnan(mean)) continue;
        printf("%-18s %10.5g %10.5g   %.5g", title_of(x->task, i), mean, sd, pooled);
        if (!isnan(range.low)) printf("   95 %% interval %.5g to %.5g", range.low, range.high);
        putchar('\n');
    }
}

void pooled_numbers_free(pooled_numbers *x) {
    arrfree(x->p), arrfree(x->y), arrfree(x->record);
    for (int i = 0; i < FOLD_METRICS; i++) arrfree(x->measured[i]);
}
