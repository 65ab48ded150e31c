/* See runner.h. */
#define MTAN_INTERNALS
#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/array.h"
#include "device.h"
#include "solver_room.h"

enum { ERROR_SIZE = 512, MOST_BYTES = 1 << 30 };

mtan_status runner_refresh(runner *r) {
    size_t bytes = 0;
    mtan_status status = mtan_predictor_size(r->model, &r->bounds, &bytes);
    for (int32_t t = 0; t < r->threads && status == MTAN_OK; t++)
        status = mtan_predictor_init(&r->predictor[t], r->model, &r->bounds, r->memory[t], bytes);
    runner_seed(r, r->seed);
    return r->status = status;
}

void runner_seed(runner *r, uint64_t seed) {
    r->seed = seed;
    for (int32_t t = 0; t < r->threads; t++) r->predictor[t].seed = seed;
}

static int runner_fails(runner *r, mtan_status status, char *error) {
    if (status == MTAN_ERR_CONFIG && on_device(r->model->backend))
        snprintf(error, ERROR_SIZE, "the model cannot be run on %s: baselines run on CPUs",
                 mtan_backend_name(r->model->backend));
    else snprintf(error, ERROR_SIZE, "the model cannot be run: %s", status_message(status));
    return runner_stop(r), 0;
}

static void runner_arrays(runner *r, const mtan_model *model, mtan_bounds bounds, mtan_pool *pool) {
    r->model = model;
    r->bounds = bounds;
    r->bounds.records = r->chunk = RUNNER_CHUNK;
    r->pool = pool;
    r->threads = pool->threads;
    r->predictor = tool_calloc((size_t)r->threads, sizeof *r->predictor);
    r->memory = tool_calloc((size_t)r->threads, sizeof *r->memory);
}

/* Allocates the runner's own memory; 0: the device has no room for it. */
static int runner_memory(runner *r, size_t bytes) {
    int good = 1;
    for (int32_t t = 0; t < r->threads; t++) {
        r->memory[t] = tool_calloc(1, bytes);
        good = good && device_hold(r->model->backend, r->memory[t], bytes);
    }
    return good;
}

/* Sends the weights to the device; no trainer does so for a model that is not being trained. */
static int runner_weights(runner *r) {
    const size_t bytes = mtan_weights_count(&r->model->config) * sizeof(mtan_real);
    const mtan_backend *b = r->model->backend;
    if (!on_device(b)) return 1;
    if (!device_hold(b, (void *)(uintptr_t)r->model->weights, bytes)) return 0;
    r->weights = r->model->weights;
    return device_send(b, r->weights, bytes);
}

/* Chooses the chunk, as many records as fit into MOST_BYTES but at least one, and the bytes for it. */
static mtan_status runner_size(runner *r, size_t *bytes) {
    for (;; r->bounds.records = r->chunk /= 2) {
        const mtan_status status = mtan_predictor_size(r->model, &r->bounds, bytes);
        if (r->chunk == 1 || (status == MTAN_OK ? *bytes <= MOST_BYTES : status != MTAN_ERR_SIZE)) return status;
    }
}

int runner_start(runner *r, const mtan_model *model, mtan_bounds bounds, int32_t threads, char *error) {
    mtan_status status;
    size_t bytes = 0;
    memset(r, 0, sizeof *r);
    mtan_pool_start(&r->own_pool, on_device(model->backend) ? 1 : threads); /* it may start fewer threads */
    runner_arrays(r, model, bounds, &r->own_pool);
    if ((status = runner_size(r, &bytes)) != MTAN_OK) return runner_fails(r, status, error);
    if (!runner_memory(r, bytes) || !runner_weights(r)) return runner_fails(r, MTAN_ERR_DEVICE, error);
    return (status = runner_refresh(r)) == MTAN_OK ? 1 : runner_fails(r, status, error);
}

int runner_borrow(runner *r, const mtan_trainer *trainer, const mtan_model *model, mtan_pool *pool, mtan_bounds bounds,
                  char *error) {
    const int device = on_device(model->backend);
    mtan_status status;
    size_t bytes = 0, room = 0;
    mtan_trainer_scratch(trainer, 0, &room);
    memset(r, 0, sizeof *r);
    runner_arrays(r, model, bounds, pool);
    while ((status = mtan_predictor_size(r->model, &r->bounds, &bytes)) == MTAN_OK && !device && bytes > room &&
           r->chunk > 1)
        r->bounds.records = r->chunk /= 2;
    if (status != MTAN_OK) return runner_fails(r, status, error);
    r->borrowed = bytes <= room; /* small batches of small records have no room for folded weights */
    if (!r->borrowed) return runner_memory(r, bytes) ? 1 : runner_fails(r, MTAN_ERR_DEVICE, error);
    for (int32_t t = 0; t < r->threads; t++) r->memory[t] = mtan_trainer_scratch(trainer, t, &room);
    return 1;
}

/* Allocates the runner's own memory for a model with room for more solver steps. */
static int runner_grow(runner *r) {
    size_t bytes = 0;
    if (r->model != &r->grown) r->grown = *r->model;
    if (!grow_steps(&r->grown.config)) return 0;
    r->model = &r->grown;
    if ((r->status = mtan_predictor_size(r->model, &r->bounds, &bytes)) != MTAN_OK) return 0;
    for (int32_t t = 0; t < r->threads; t++)
        r->memory[t] = tool_realloc(r->borrowed ? NULL : r->memory[t], bytes); /* not cleared, as it is large */
    r->borrowed = 0;
    return (r->status = runner_refresh(r)) == MTAN_OK;
}

typedef struct job {
    runner *runner;
    runner_body body;
    void *context;
    mtan_status *status; /* (chunks) */
    unsigned char *done; /* (chunks) */
    size_t *missing;     /* (chunks) bytes that could not be allocated */
    size_t n;
} job;

/* Runs the records of a chunk one by one. Those whose result is not finite are marked and do not count as a failure
 * here. */
static mtan_status run_apart(job *j, mtan_predictor *predictor, size_t first, size_t count) {
    mtan_status status = MTAN_OK;
    for (size_t i = first; i < first + count && status == MTAN_OK; i++) {
        status = j->body(j->context, predictor, i, 1);
        j->runner->broken[i] = status == MTAN_ERR_NUMERIC;
        if (status == MTAN_ERR_NUMERIC) status = MTAN_OK;
    }
    return status;
}

typedef struct chunk_run {
    job *job;
    int32_t index, thread;
} chunk_run;

static void run_body(void *argument) {
    const chunk_run *c = argument;
    job *j = c->job;
    const size_t chunk = (size_t)j->runner->chunk, first = (size_t)c->index * chunk;
    const size_t count = j->n - first < chunk ? j->n - first : chunk;
    mtan_predictor *predictor = &j->runner->predictor[c->thread];
    j->status[c->index] = j->body(j->context, predictor, first, count);
    if (j->status[c->index] == MTAN_ERR_NUMERIC) j->status[c->index] = run_apart(j, predictor, first, count);
    j->done[c->index] = j->status[c->index] == MTAN_OK;
}

/* A chunk that runs out of memory ends alone: unwinding out of the pool is not allowed, as other threads still use the
 * caller's stack. */
static void run_chunk(void *argument, int32_t index, int32_t thread) {
    job *j = argument;
    chunk_run c = {j, index, thread};
    if (!j->done[index]) j->missing[index] = memory_try(run_body, &c);
}

static void job_free(job *j) {
    free(j->status), free(j->done), free(j->missing);
}

/* Passes an allocation failure of a thread on to the caller, now that all threads are back. */
static void pass_on_failure(job *j, size_t chunks) {
    for (size_t i = 0; i < chunks; i++) {
        const size_t missing = j->missing[i];
        if (missing == 0) continue;
        job_free(j);
        memory_fail(missing);
    }
}

/* Fails a run with marked records. */
static int all_whole(runner *r, size_t n) {
    size_t i = 0;
    while (i < n && !r->broken[i]) i++;
    if (i < n) r->status = MTAN_ERR_NUMERIC, r->failed = i;
    return i == n;
}

const char *runner_doubt(const runner *r) {
    return r->status == MTAN_ERR_NUMERIC ? "" : " or one after it";
}

int runner_each(runner *r, size_t n, runner_body body, void *context) {
    const size_t chunks = (n + (size_t)r->chunk - 1) / (size_t)r->chunk;
    job j = {r,
             body,
             context,
             tool_calloc(chunks, sizeof *j.status),
             tool_calloc(chunks, 1),
             tool_calloc(chunks, sizeof *j.missing),
             n};
    size_t bad;
    r->status = MTAN_OK;
    free(r->broken), r->broken = NULL;
    r->broken = tool_calloc(n, 1);
    do {
        mtan_pool_run(r->pool, (int32_t)chunks, run_chunk, &j);
        pass_on_failure(&j, chunks);
        for (bad = 0; bad < chunks && j.status[bad] == MTAN_OK;) bad++;
        if (bad < chunks) r->status = j.status[bad], r->failed = bad * (size_t)r->chunk;
    } while (bad < chunks && r->status == MTAN_ERR_MEMORY && runner_grow(r));
    job_free(&j);
    return bad == chunks && all_whole(r, n);
}

typedef struct classification {
    const mtan_record *records;
    const size_t *row0;
    double *probability, *logit;
    int32_t classes, samples;
} classification;

static void keep_probabilities(const classification *c, const mtan_real *p, size_t row, size_t rows) {
    for (size_t i = 0; i < rows * (size_t)c->classes; i++) c->probability[row * (size_t)c->classes + i] = (double)p[i];
}

static void keep_logits(const classification *c, const mtan_real *x, size_t row, size_t rows) {
    const size_t C = (size_t)c->classes, S = (size_t)c->samples;
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < C; k++) {
            double sum = 0;
            for (size_t s = 0; s < S; s++) sum += (double)x[(i * S + s) * C + k];
            c->logit[(row + i) * C + k] = sum / (double)S;
        }
}

static mtan_status classify_chunk(void *context, mtan_predictor *predictor, size_t first, size_t count) {
    const classification *c = context;
    const size_t row = c->row0[first], rows = c->row0[first + count] - row;
    mtan_real *out = tool_calloc(rows * (size_t)c->samples * (size_t)c->classes, sizeof *out);
    mtan_status status = MTAN_OK;
    if (c->probability) {
        status = mtan_predictor_classify(predictor, c->records + first, (int32_t)count, out);
        if (status == MTAN_OK) keep_probabilities(c, out, row, rows);
    }
    if (status == MTAN_OK && c->logit) {
        status = mtan_predictor_logits(predictor, c->records + first, (int32_t)count, out);
        if (status == MTAN_OK) keep_logits(c, out, row, rows);
    }
    free(out);
    return status;
}

int runner_classify(runner *r, const mtan_record *records, size_t n, const size_t *row0, double *probability,
                    double *logit) {
    const mtan_config *config = &r->model->config;
    const int sampled = config->kind == MTAN_FULL && config->predict_samples > 1 && config->members <= 1;
    classification c = {
        records, row0, probability, logit, mtan_config_outputs(config), sampled ? config->predict_samples : 1};
    return runner_each(r, n, classify_chunk, &c);
}

void runner_stop(runner *r) {
    for (int32_t t = 0; t < r->threads && !r->borrowed; t++) {
        device_release(r->model->backend, r->memory[t]);
        free(r->memory[t]);
    }
    if (r->weights) device_release(r->model->backend, (void *)(uintptr_t)r->weights);
    free(r->memory), free(r->predictor), free(r->broken);
    mtan_pool_stop(&r->own_pool);
    memset(r, 0, sizeof *r);
}
