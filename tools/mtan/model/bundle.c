/* See bundle.h. Sections: files; model files; running a model. */
#define _POSIX_C_SOURCE 200809L
#include "bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../simd/mtan_simd.h"
#include "../../baselines/recipes.h"
#include "device.h"
#include "../command/options.h"

enum { ERROR_SIZE = 512, CHUNK = 16, MOST_STEPS = 1 << 16 };
/* Of a file that is read whole: 4 GiB, more than any model; a quarter of the memory where addresses have 32 bits. */
static const size_t MOST_BYTES = (size_t)1 << (sizeof(size_t) > 4 ? 32 : 30);

/* ---- files ---- */

void *file_read(const char *path, size_t *bytes, char *error) {
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t got, size = 0, room = 0;
    if (!file) return snprintf(error, ERROR_SIZE, "%s: %s", path, strerror(errno)), NULL;
    do {
        if (size + 1 >= room) text = tool_realloc(text, room = room ? 2 * room : 1 << 16);
        size += got = fread(text + size, 1, room - size - 1, file);
    } while (got > 0 && size <= MOST_BYTES);
    if (ferror(file) || size > MOST_BYTES) {
        if (ferror(file)) snprintf(error, ERROR_SIZE, "%s: %s", path, strerror(errno));
        else snprintf(error, ERROR_SIZE, "%s: larger than %zu MiB", path, MOST_BYTES >> 20);
        free(text), text = NULL;
    } else text[size] = 0;
    fclose(file);
    *bytes = size;
    return text;
}

/* A file that takes the place of `path` only when it is whole and on the disk. */
typedef struct replacement {
    char path[4096], temporary[4112];
    FILE *file;
} replacement;

static int replacement_open(replacement *r, const char *path, char *error) {
    struct stat status;
    if (snprintf(r->path, sizeof r->path, "%s", path) >= (int)sizeof r->path)
        return snprintf(error, ERROR_SIZE, "the path is too long"), 0;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) /* a device or a pipe must not be replaced */
        return snprintf(error, ERROR_SIZE, "%.400s: not a regular file", path), 0;
    snprintf(r->temporary, sizeof r->temporary, "%s.%ld.tmp", path, (long)getpid());
    if ((r->file = fopen(r->temporary, "wb")) != NULL) return 1;
    return snprintf(error, ERROR_SIZE, "%.400s: %s", r->temporary, strerror(errno)), 0;
}

/* The folder's entry has to reach the disk too, or a power cut may undo the renaming. */
static void flush_folder(const char *path) {
    char folder[4096];
    char *slash;
    int descriptor;
    snprintf(folder, sizeof folder, "%s", path);
    slash = strrchr(folder, '/');
    if (slash) *(slash == folder ? slash + 1 : slash) = 0;
    if ((descriptor = open(slash ? folder : ".", O_RDONLY)) < 0) return;
    (void)fsync(descriptor);
    close(descriptor);
}

int folder_lock(const char *path, int wait) {
    const int lock = open(path, O_RDONLY);
    if (lock < 0 || flock(lock, wait ? LOCK_EX : LOCK_EX | LOCK_NB) == 0) return lock;
    close(lock);
    return -1;
}

void folder_unlock(int lock) {
    if (lock >= 0) close(lock);
}

static int replacement_close(replacement *r, int good, char *error) {
    if (good) good = fflush(r->file) == 0 && fsync(fileno(r->file)) == 0;
    good = (fclose(r->file) == 0) & good;
    if (good) good = rename(r->temporary, r->path) == 0;
    if (!good) {
        snprintf(error, ERROR_SIZE, "%.400s: cannot be written: %s", r->path, strerror(errno));
        remove(r->temporary);
    } else flush_folder(r->path);
    return good;
}

int file_write(const char *path, const void *bytes, size_t n, char *error) {
    replacement r;
    if (!replacement_open(&r, path, error)) return 0;
    return replacement_close(&r, fwrite(bytes, 1, n, r.file) == n, error);
}

/* ---- model files ---- */

static mtan_status write_piece(void *context, const void *bytes, size_t n) {
    return fwrite(bytes, 1, n, context) == n ? MTAN_OK : MTAN_ERR_WRITE;
}

int bundle_write(const char *path, const mtan_model *model, const mtan_trainer *trainer, const prep *p,
                 const mtan_file_pair *pairs, size_t n_pairs, char *error) {
    mtan_file_pair *all = NULL;
    size_t own;
    mtan_status status;
    replacement r;
    int good;
    if (!replacement_open(&r, path, error)) return 0;
    prep_write(p, &all);
    own = arrlenu(all);
    for (size_t i = 0; i < n_pairs; i++) arrput(all, pairs[i]);
    status = mtan_model_save(model, trainer, all, arrlenu(all), write_piece, r.file);
    good = replacement_close(&r, status == MTAN_OK, error);
    if (status != MTAN_OK && status != MTAN_ERR_WRITE)
        snprintf(error, ERROR_SIZE, "%.400s: %s", path, mtan_status_message(status));
    pairs_free(all, own);
    arrfree(all);
    return good;
}

void pairs_free(mtan_file_pair *pairs, size_t n) {
    for (size_t i = 0; i < n; i++) free((void *)(uintptr_t)pairs[i].key), free((void *)(uintptr_t)pairs[i].value);
}

void pairs_add(mtan_file_pair **pairs, const char *key, const char *value) {
    const mtan_file_pair pair = {tool_text(key), tool_text(value)};
    arrput(*pairs, pair);
}

int bundle_read(bundle *b, const char *path, char *error) {
    mtan_status status;
    size_t count = 0;
    memset(b, 0, sizeof *b);
    if (!(b->blob = file_read(path, &b->bytes, error))) return 0;
    status = mtan_file_open(&b->file, b->blob, b->bytes);
    if (status == MTAN_OK) status = mtan_known_load_count(baselines, b->blob, b->bytes, &count);
    if (status == MTAN_OK) {
        b->weights = tool_calloc(count, sizeof *b->weights);
        status = mtan_known_load(&b->model, b->weights, count, baselines, b->blob, b->bytes);
    }
    if (status != MTAN_OK) {
        snprintf(error, ERROR_SIZE, "%.400s: %s", path, mtan_status_message(status));
        return bundle_free(b), 0;
    }
    b->model.backend = mtan_backend_best();
    if (!prep_read(&b->prep, &b->file, error)) {
        char reason[ERROR_SIZE];
        snprintf(reason, sizeof reason, "%s", error);
        snprintf(error, ERROR_SIZE, "%.200s: %.300s", path, reason);
        return bundle_free(b), 0;
    }
    return 1;
}

const char *bundle_text(bundle *b, const char *key, const char *otherwise) {
    size_t length = 0;
    char *text;
    if (mtan_file_metadata(&b->file, key, NULL, 0, &length) != MTAN_OK) return otherwise;
    text = tool_calloc(length + 1, 1);
    mtan_file_metadata(&b->file, key, text, length + 1, NULL);
    arrput(b->texts, text);
    return text;
}

double bundle_number(bundle *b, const char *key, double otherwise) {
    const char *text = bundle_text(b, key, NULL);
    char *end;
    double x;
    if (!text) return otherwise;
    x = strtod(text, &end);
    return end == text || *end ? otherwise : x;
}

void bundle_free(bundle *b) {
    prep_free(&b->prep);
    for (size_t i = 0; i < arrlenu(b->texts); i++) free(b->texts[i]);
    arrfree(b->texts);
    free(b->weights), free(b->blob);
    memset(b, 0, sizeof *b);
}

/* ---- running a model ---- */

/* Distinct times of the events and of the labels of a record, both ascending. */
static int32_t joined_times(const dataset *d, const dataset_record *r) {
    int32_t count = 0, i = 0, j = 0;
    while (i < r->n_events || j < r->n_labels) {
        const int event = i < r->n_events, label = j < r->n_labels;
        const mtan_real a = event ? d->events[r->event0 + (size_t)i].time : 0;
        const mtan_real b = label ? d->label_times[r->label0 + (size_t)j] : 0, t = event && (!label || a < b) ? a : b;
        while (i < r->n_events && !(d->events[r->event0 + (size_t)i].time > t)) i++;
        while (j < r->n_labels && !(d->label_times[r->label0 + (size_t)j] > t)) j++;
        count++;
    }
    return count;
}

mtan_bounds model_bounds(const mtan_config *c, const dataset *d) {
    mtan_bounds b = dataset_bounds(d);
    if (d->label_times && baseline_swaps_records(c)) b.times *= 2; /* one record's times, another's events */
    for (size_t i = 0; c->architecture && d->label_times && i < arrlenu(d->records); i++) {
        const int32_t times = joined_times(d, &d->records[i]);
        if (times > b.times) b.times = times;
    }
    return b;
}

int grow_steps(mtan_config *c) {
    int32_t *bound = baseline_step_bound(c);
    if (!bound || *bound > MOST_STEPS / 2) return 0;
    note("a record needs more than %d steps of the solver: making room for %d", (int)*bound, (int)*bound * 2);
    *bound *= 2;
    return 1;
}

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
    if (status == MTAN_ERR_CONFIG && r->model->backend->device)
        snprintf(error, ERROR_SIZE, "the model cannot be run on %s: baselines run on CPUs", r->model->backend->name);
    else snprintf(error, ERROR_SIZE, "the model cannot be run: %s", status_message(status));
    return runner_stop(r), 0;
}

static void runner_arrays(runner *r, const mtan_model *model, mtan_bounds bounds, mtan_pool *pool) {
    r->model = model;
    r->bounds = bounds;
    r->bounds.records = r->chunk = CHUNK;
    r->pool = pool;
    r->threads = pool->threads;
    r->predictor = tool_calloc((size_t)r->threads, sizeof *r->predictor);
    r->memory = tool_calloc((size_t)r->threads, sizeof *r->memory);
}

/* Memory of its own; 0: none on the device. */
static int runner_memory(runner *r, size_t bytes) {
    int good = 1;
    for (int32_t t = 0; t < r->threads; t++) {
        r->memory[t] = tool_calloc(1, bytes);
        good = good && device_hold(r->model->backend, r->memory[t], bytes);
    }
    return good;
}

/* The weights of a model that nobody trains go to the device as they are. */
static int runner_weights(runner *r) {
    const size_t bytes = mtan_weights_count(&r->model->config) * sizeof(mtan_real);
    const mtan_backend *b = r->model->backend;
    if (!b->device) return 1;
    if (!device_hold(b, (void *)(uintptr_t)r->model->weights, bytes)) return 0;
    r->weights = r->model->weights;
    return device_send(b, r->weights, bytes);
}

int runner_start(runner *r, const mtan_model *model, mtan_bounds bounds, int32_t threads, char *error) {
    mtan_status status;
    size_t bytes = 0;
    memset(r, 0, sizeof *r);
    mtan_pool_start(&r->own_pool, model->backend->device ? 1 : threads); /* fewer threads are enough */
    runner_arrays(r, model, bounds, &r->own_pool);
    if ((status = mtan_predictor_size(model, &r->bounds, &bytes)) != MTAN_OK) return runner_fails(r, status, error);
    if (!runner_memory(r, bytes) || !runner_weights(r)) return runner_fails(r, MTAN_ERR_DEVICE, error);
    return (status = runner_refresh(r)) == MTAN_OK ? 1 : runner_fails(r, status, error);
}

int runner_borrow(runner *r, const mtan_trainer *trainer, mtan_pool *pool, mtan_bounds bounds, char *error) {
    const size_t room = trainer->model->backend->device ? SIZE_MAX : trainer->work_count * sizeof(mtan_real);
    mtan_status status;
    size_t bytes = 0;
    memset(r, 0, sizeof *r);
    runner_arrays(r, trainer->model, bounds, pool);
    while ((status = mtan_predictor_size(r->model, &r->bounds, &bytes)) == MTAN_OK && bytes > room && r->chunk > 1)
        r->bounds.records = r->chunk /= 2;
    if (status != MTAN_OK) return runner_fails(r, status, error);
    /* a small batch of small records leaves no room for a predictor's folded weights; on a device the next batch is there */
    r->borrowed = bytes <= room && !r->model->backend->device;
    if (!r->borrowed) return runner_memory(r, bytes) ? 1 : runner_fails(r, MTAN_ERR_DEVICE, error);
    for (int32_t t = 0; t < r->threads; t++) r->memory[t] = trainer->work + (size_t)t * trainer->work_count;
    return 1;
}

/* Memory of its own for a model with room for more steps. */
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
    size_t n;
} job;

static void run_chunk(void *argument, int32_t index, int32_t thread) {
    job *j = argument;
    const size_t chunk = (size_t)j->runner->chunk, first = (size_t)index * chunk;
    const size_t count = j->n - first < chunk ? j->n - first : chunk;
    if (j->done[index]) return;
    j->status[index] = j->body(j->context, &j->runner->predictor[thread], first, count);
    j->done[index] = j->status[index] == MTAN_OK;
}

int runner_each(runner *r, size_t n, runner_body body, void *context) {
    const size_t chunks = (n + (size_t)r->chunk - 1) / (size_t)r->chunk;
    job j = {r, body, context, tool_calloc(chunks, sizeof *j.status), tool_calloc(chunks, 1), n};
    size_t bad;
    do {
        mtan_pool_run(r->pool, (int32_t)chunks, run_chunk, &j);
        for (bad = 0; bad < chunks && j.status[bad] == MTAN_OK;) bad++;
        if (bad < chunks) r->status = j.status[bad], r->failed = bad * (size_t)r->chunk;
    } while (bad < chunks && r->status == MTAN_ERR_MEMORY && runner_grow(r));
    free(j.status), free(j.done);
    return bad == chunks;
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
    mtan_status status = mtan_classify(predictor, c->records + first, (int32_t)count, out);
    if (status == MTAN_OK) keep_probabilities(c, out, row, rows);
    if (status == MTAN_OK && c->logit) {
        status = mtan_logits(predictor, c->records + first, (int32_t)count, out);
        if (status == MTAN_OK) keep_logits(c, out, row, rows);
    }
    free(out);
    return status;
}

int runner_classify(runner *r, const mtan_record *records, size_t n, const size_t *row0, double *probability,
                    double *logit) {
    const mtan_config *config = &r->model->config;
    const int sampled = config->kind == MTAN_FULL && config->predict_samples > 1;
    classification c = {records, row0, probability, logit, config->classes, sampled ? config->predict_samples : 1};
    return runner_each(r, n, classify_chunk, &c);
}

void runner_stop(runner *r) {
    for (int32_t t = 0; t < r->threads && !r->borrowed; t++) {
        device_release(r->model->backend, r->memory[t]);
        free(r->memory[t]);
    }
    if (r->weights) device_release(r->model->backend, (void *)(uintptr_t)r->weights);
    free(r->memory), free(r->predictor);
    mtan_pool_stop(&r->own_pool);
    memset(r, 0, sizeof *r);
}
