/* See predictions.h. */
#include "predictions.h"

#include <stdlib.h>
#include <string.h>

#include "../../baselines/arrange.h"

/* The scores that the AUC ranks by: class 1's logit as published (Q26), else the difference of the two logits. */
static void rank_scores(predictions *p, const double *logit, int faithful) {
    for (size_t i = 0; i < p->rows; i++) p->score[i] = logit[2 * i + 1] - (faithful ? 0 : logit[2 * i]);
}

static void name_rows(predictions *p, const dataset *d, const int32_t *positions, const size_t *row0) {
    for (size_t i = 0; i < arrlenu(positions); i++) {
        const dataset_record *r = &d->records[positions[i]];
        for (size_t row = row0[i]; row < row0[i + 1]; row++) {
            const size_t k = row - row0[i];
            p->label[row] = (int32_t)k < r->n_labels ? d->labels[r->label0 + k] : MTAN_UNLABELED;
            p->record[row] = positions[i];
            p->labelled += p->label[row] != MTAN_UNLABELED;
        }
    }
}

static size_t rows_of(const dataset *d, int32_t position, int per_time) {
    const dataset_record *r = &d->records[position];
    return !per_time ? 1 : r->n_labels > 0 ? (size_t)r->n_labels : (size_t)r->n_times;
}

int predictions_make(predictions *p, runner *run, const dataset *d, const int32_t *positions, int faithful,
                     size_t batch) {
    const size_t n = arrlenu(positions);
    const int per_time = run->model->config.classify == MTAN_CLASSIFY_TIME;
    mtan_record *records = tool_calloc(n, sizeof *records);
    size_t *row0 = tool_calloc(n + 1, sizeof *row0);
    double *logit;
    int good;
    memset(p, 0, sizeof *p);
    for (size_t i = 0; i < n; i++) {
        records[i] = dataset_view(d, (size_t)positions[i]);
        row0[i + 1] = row0[i] + rows_of(d, positions[i], per_time);
    }
    baseline_arrange(&run->model->config, records, n, batch);
    p->rows = row0[n];
    p->classes = mtan_config_outputs(&run->model->config);
    p->p = tool_calloc(p->rows * (size_t)p->classes, sizeof *p->p);
    p->score = tool_calloc(p->rows, sizeof *p->score);
    p->label = tool_calloc(p->rows, sizeof *p->label);
    p->record = tool_calloc(p->rows, sizeof *p->record);
    logit = p->classes == 2 ? tool_calloc(2 * p->rows, sizeof *logit) : NULL;
    name_rows(p, d, positions, row0);
    good = runner_classify(run, records, n, row0, p->p, logit);
    if (good && logit) rank_scores(p, logit, faithful);
    free(logit), free(row0), free(records);
    if (!good) predictions_free(p);
    return good;
}

void predictions_drop_unlabelled(predictions *p) {
    const size_t C = (size_t)p->classes;
    size_t n = 0;
    for (size_t i = 0; i < p->rows; i++) {
        if (p->label[i] == MTAN_UNLABELED) continue;
        memmove(p->p + n * C, p->p + i * C, C * sizeof *p->p);
        p->score[n] = p->score[i], p->label[n] = p->label[i], p->record[n] = p->record[i];
        n++;
    }
    p->rows = p->labelled = n;
}

void predictions_free(predictions *p) {
    free(p->p), free(p->score), free(p->label), free(p->record);
    memset(p, 0, sizeof *p);
}
