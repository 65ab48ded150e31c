/* The metrics of predictions whatever the task: classes, a number or several labels. Code that compares models,
 * subgroups or channels uses this interface and need not know the task. */
#ifndef MTAN_TOOLS_WORTH_H
#define MTAN_TOOLS_WORTH_H

#include "labels.h"
#include "predictions.h"

/* It points into the predictions, which the caller owns; drop rows without a label before. */
typedef struct worth {
    mtan_task task;
    size_t rows;
    const int32_t *record; /* (rows) position in the data set */
    const number_predictions *numbers;
    metric_table *table; /* for classes */
    int32_t classes;
    label_tables labels;
} worth;
worth worth_of_classes(const predictions *p);
worth worth_of_numbers(mtan_task task, const number_predictions *p); /* for a number, or for several labels */
void worth_free(worth *w);

/* The metrics of a task, numbered from 0: those of metric_name, of number_metric, or their means over the labels. */
int task_metrics(mtan_task task, int32_t outputs); /* their number, for predictions with so many outputs */
const char *task_metric_key(mtan_task task, int metric);
const char *task_metric_title(mtan_task task, int metric);
int task_metric_has_interval(mtan_task task, int metric); /* metrics.h: metric_interval */
int worth_metrics(const worth *w);
int worth_headline(const worth *w); /* the headline metric; higher is better */

typedef struct worth_query {
    const worth *of;
    int metric;
    const worth *minus;  /* another model on the same rows: gives the difference on the same draws; or NULL */
    const int32_t *only; /* rows are drawn from these; NULL: from all */
} worth_query;
/* A metric_function of metrics.h; context is a worth_query. rows NULL: all n rows once. */
double worth_drawn(void *context, const int32_t *rows, size_t n);

/* Records with labels, and a model's predictions of them with their metrics, whatever the task. `worth` points into its
 * own judged, so a judged must not be copied or moved. */
typedef struct judged_data {
    const dataset *set;
    const int32_t *positions; /* stb_ds array */
    int faithful;             /* the scores of two classes as published (predictions.h) */
    size_t batch;             /* likewise */
    const prep *units;        /* the units of numbers; NULL: the model's */
} judged_data;
typedef struct judged {
    predictions classes;
    number_predictions numbers;
    worth worth;
} judged;
/* 1, or 0 with run->status and run->failed set, and nothing to free. */
int judged_make(judged *j, runner *run, const judged_data *on);
void judged_free(judged *j);

#endif
