/* What predictions are worth in the metrics of their task: of classes, of a number or of several labels. Who compares models, subgroups
 * or channels asks here and need not know the task. */
#ifndef MTAN_TOOLS_WORTH_H
#define MTAN_TOOLS_WORTH_H

#include "labels.h"
#include "predictions.h"

/* It points into the predictions, which stay the caller's; rows without a label are to be dropped before. */
typedef struct worth {
    mtan_task task;
    size_t rows;
    const int32_t *record; /* (rows) position in the data set */
    const number_predictions *numbers;
    metric_table *table; /* of classes */
    int32_t classes;
    label_tables labels;
} worth;
worth worth_of_classes(const predictions *p);
worth worth_of_numbers(mtan_task task, const number_predictions *p); /* of a number, or of several labels */
void worth_free(worth *w);

/* The metrics of the task, from 0 on: those of metric_name, of number_metric, or means over the labels. */
int worth_metrics(const worth *w);
int worth_headline(const worth *w); /* the one by which a model is judged; higher is better */
const char *worth_key(const worth *w, int metric);
const char *worth_title(const worth *w, int metric);

typedef struct worth_query {
    const worth *of;
    int metric;
    const worth *minus;  /* another model on the same rows: the difference on the same draws; or NULL */
    const int32_t *only; /* rows are drawn from these; NULL: from all */
} worth_query;
/* A metric_function of metrics.h; context is a worth_query. rows NULL: all n rows once. */
double worth_drawn(void *context, const int32_t *rows, size_t n);

#endif
