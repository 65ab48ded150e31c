/* See cv_numbers.h. */
#include "cv_numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/array.h"
#include "../measure/worth.h"
#include "commands.h"
#include "rows.h"

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

/* Moves to label `nth` of the record, which comes after the one before. */
static void row_times_move(row_times *t, int32_t record, int32_t nth) {
    const dataset *d = &t->of->data;
    if (!d->time_texts) return;
    if (!t->text || record != t->record)
        t->text = d->time_texts + d->records[record].time_text, t->record = record, t->nth = 0;
    for (; t->nth < nth; t->nth++) t->text += strlen(t->text) + 1;
}

void row_times_put(FILE *file, row_times *t, int32_t record, int32_t nth) {
    const dataset *d = &t->of->data;
    const dataset_record *r = &d->records[record];
    if (!d->label_times) return;
    row_times_move(t, record, nth);
    fputc(',', file);
    if (t->text) fputs(t->text, file);
    else if (nth < r->n_labels) {
        const double time = (double)d->label_times[r->label0 + (size_t)nth];
        fputs(row_time((mtan_real)prep_raw_time(&t->of->bundle.prep, SPLIT_TEST, time)).text, file);
    }
}

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
    row_times times = {.of = s};
    for (size_t i = 0; i < p->rows; i++) {
        const double *row = p->p + i * O;
        const size_t nth = p->place[i] - d->records[p->record[i]].label0;
        row_field(file, dataset_name(d, (size_t)p->record[i]));
        row_times_put(file, &times, p->record[i], (int32_t)nth);
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
    worth w = worth_of_numbers(x->task, &p);
    for (int i = 0; i < worth_metrics(&w); i++) {
        worth_query q = {&w, i, NULL, NULL};
        arrput(x->measured[i], worth_drawn(&q, NULL, p.rows));
    }
    for (size_t i = 0; i < p.rows; i++) arrput(x->record, p.record[i]);
    for (size_t i = 0; i < p.rows * C; i++) arrput(x->y, p.y[i]);
    for (size_t i = 0; i < p.rows * (size_t)p.outputs; i++) arrput(x->p, p.p[i]);
    worth_free(&w), numbers_free(&p);
    return 1;
}

void pooled_numbers_measure(pooled_numbers *x, int32_t draws, fold_metric **out) {
    x->all.rows = arrlenu(x->record), x->all.p = x->p, x->all.y = x->y, x->all.record = x->record;
    worth w = worth_of_numbers(x->task, &x->all);
    for (int i = 0; i < worth_metrics(&w); i++) {
        worth_query q = {&w, i, NULL, NULL};
        fold_metric m = {.key = task_metric_key(w.task, i), .title = task_metric_title(w.task, i), .range = {NAN, NAN}};
        fold_spread(x->measured[i], &m.mean, &m.sd);
        if (isnan(m.mean)) continue;
        m.pooled = worth_drawn(&q, NULL, w.rows);
        if (draws > 0) m.range = metric_bootstrap(worth_drawn, &q, w.rows, w.record, draws, 0);
        arrput(*out, m);
    }
    worth_free(&w);
}

void pooled_numbers_free(pooled_numbers *x) {
    arrfree(x->p), arrfree(x->y), arrfree(x->record);
    for (int i = 0; i < FOLD_METRICS; i++) arrfree(x->measured[i]);
}
