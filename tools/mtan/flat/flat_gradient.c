/* The loss of records and its gradient for flat.h, to compare other implementations with. */
#include <stdlib.h>
#include <string.h>

#include "../base/messages.h"
#include "../run/bounds.h"
#include "flat_question.h"

/* ---- parameters ---- */

typedef struct naming {
    const mtan_flat_model *model;
    int32_t index;
    char *name;
    size_t size;
    int32_t *rows, *cols;
} naming;

static int name_parameter(void *job) {
    const naming *n = job;
    mtan_param p;
    if (mtan_param_at(&n->model->bundle.model.config, n->index, &p) != MTAN_OK)
        return complain("parameter %d: there is none", (int)n->index), 0;
    if (strlen(p.name) >= n->size) return complain("%s: no room for the name", p.name), 0;
    memcpy(n->name, p.name, strlen(p.name) + 1);
    *n->rows = p.rows, *n->cols = p.cols;
    return 1;
}

int32_t mtan_flat_parameters(const mtan_flat_model *model) {
    return mtan_param_count(&model->bundle.model.config);
}

int32_t mtan_flat_parameter(const mtan_flat_model *model, int32_t index, char *name, size_t size, int32_t *rows,
                            int32_t *cols) {
    naming n = {model, index, name, size, rows, cols};
    return flat_call(name_parameter, &n);
}

/* ---- the gradient ---- */

/* The records as a trainer takes them, with the given noise. The caller frees the noise. */
static mtan_record *training_records(const question *q, mtan_real **noise) {
    const mtan_config *c = &q->model.config;
    const size_t n = arrlenu(q->set.records);
    const size_t each = c->kind == MTAN_FULL ? (size_t)c->samples * (size_t)c->ref_points * (size_t)c->latent : 0;
    mtan_record *records = tool_calloc(n, sizeof *records);
    *noise = tool_calloc(n * each + 1, sizeof **noise);
    for (size_t i = 0; q->noise && i < n * each; i++) (*noise)[i] = (mtan_real)q->noise[i];
    for (size_t i = 0; i < n; i++) {
        records[i] = dataset_view(&q->set, i);
        if (q->noise) records[i].noise = *noise + i * each, records[i].n_noise = (int32_t)each;
    }
    return records;
}

/* Copies the gradient, parameter by parameter in the order of mtan_flat_parameter. */
static void put_gradient(double *out, const mtan_trainer *trainer) {
    mtan_param p;
    for (int32_t i = 0; mtan_param_at(&trainer->model->config, i, &p) == MTAN_OK; i++)
        for (size_t k = 0; k < (size_t)p.rows * (size_t)p.cols; k++) *out++ = (double)trainer->gradient[p.offset + k];
}

static mtan_status measure(question *q, const mtan_record *records, int32_t n) {
    mtan_bounds bounds = model_bounds(&q->model.config, &q->set);
    mtan_train_config config;
    mtan_trainer trainer;
    mtan_report report;
    mtan_status status;
    size_t bytes = 0;
    void *memory;
    mtan_train_config_init(&config);
    config.kl_weight = q->kl_weight, config.seed = q->seed;
    bounds.records = n;
    q->model.config.kl_anneal = 0;
    if ((status = mtan_trainer_size(&q->model, &config, &bounds, &bytes)) != MTAN_OK) return status;
    memory = tool_realloc(NULL, bytes);
    status = mtan_trainer_init(&trainer, &q->model, q->from->bundle.weights, &config, &bounds, memory, bytes);
    if (status == MTAN_OK) status = mtan_trainer_gradient(&trainer, records, n, 1, &report);
    if (status == MTAN_OK) {
        q->out[0] = report.loss, q->out[1] = report.recon, q->out[2] = report.ce, q->out[3] = report.kl;
        put_gradient(q->second, &trainer);
    }
    free(memory);
    return status;
}

static int answer_gradient(question *q) {
    mtan_record *records;
    mtan_real *noise;
    mtan_status status;
    if (!question_open(q, 1)) return 0;
    if (q->model.config.reference == MTAN_REF_OBSERVED && q->noise)
        return complain("noise can be given where all records have the same reference points"), 0;
    records = training_records(q, &noise);
    status = measure(q, records, (int32_t)arrlen(q->set.records));
    free(records), free(noise);
    return status == MTAN_OK || (complain("%s", mtan_status_message(status)), 0);
}

int32_t mtan_flat_gradient(const mtan_flat_model *model, const mtan_flat_data *data, const double *noise, uint64_t seed,
                           double kl_weight, double *loss, double *gradient) {
    const question q = {.from = model,
                        .data = data,
                        .samples = -1,
                        .seed = seed,
                        .noise = noise,
                        .kl_weight = kl_weight,
                        .out = loss,
                        .second = gradient};
    return question_ask(q, answer_gradient);
}
