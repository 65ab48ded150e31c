/* See ladder.h. */
#include "ladder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the rule ---- */

double golden_u(const char *name, size_t i) {
    uint64_t z = 0xcbf29ce484222325u;
    for (; *name; name++) z = (z ^ (uint8_t)*name) * 0x100000001b3u;
    z += ((uint64_t)i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return ((double)(z >> 40) - 8388608.0) / 8388608.0;
}

static int ends_with(const char *text, const char *end) {
    return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

void golden_weights(const mtan_config *config, mtan_real *weights, double freq, double gain) {
    for (int32_t k = 0; k < mtan_param_count(config); k++) {
        mtan_param p;
        double scale = 1;
        mtan_param_at(config, k, &p);
        const int whole = ends_with(p.name, "values.knots"); /* rounded down to quarters, so that some are equal */
        while (scale * scale * p.fan > 1) scale /= 2;
        if (ends_with(p.name, "periodic.weight")) scale *= freq;
        if (ends_with(p.name, "linears.0.weight") || ends_with(p.name, "linears.1.weight")) scale *= gain;
        for (size_t i = 0; i < (size_t)p.rows * (size_t)p.cols; i++)
            weights[p.offset + i] =
                (mtan_real)(whole ? floor(4 * golden_u(p.name, i)) / 4 : golden_u(p.name, i) * scale);
    }
    sort_knots(config, weights);
}

/* ---- a case in memory ---- */

typedef struct {
    int n;
    mtan_event *events;
    int32_t *offset, *label;
    mtan_real *times; /* query times of each record, or its distinct times, ascending; record b starts at time0[b] */
    int *time0;
} record_set;

typedef struct {
    void *blob;
    mtan_file file;
    mtan_config config;
    record_set seen, scored;
    mtan_record *records;
    mtan_real *weights, *noise;
    mtan_model model;
    double kl_weight, lr;
    mtan_bounds bounds;
    ladder_visit visit;
    void *context;
    double largest_gradient; /* norm */
    int compared;
} ladder;

static double number_of(const ladder *l, const char *key, double otherwise) {
    char text[64];
    return mtan_file_metadata(&l->file, key, text, sizeof text, NULL) == MTAN_OK ? atof(text) : otherwise;
}

static int find_field(const mtan_file *file, const char *set, const char *field, mtan_tensor_view *view, size_t *n) {
    char name[96];
    snprintf(name, sizeof name, "%s/%s", set, field);
    if (mtan_file_tensor(file, name, view) != MTAN_OK) return 0;
    *n = view->count;
    return 1;
}

static int32_t *view_ints(const mtan_file *file, const char *set, const char *field, size_t *n) {
    mtan_tensor_view view;
    int32_t *out;
    if (!find_field(file, set, field, &view, n)) return NULL;
    out = malloc((view.count + 1) * sizeof *out);
    return mtan_view_read_i32(&view, out, view.count) == MTAN_OK ? out : NULL;
}

static mtan_real *view_reals(const mtan_file *file, const char *set, const char *field, size_t *n) {
    mtan_tensor_view view;
    mtan_real *out;
    if (!find_field(file, set, field, &view, n)) return NULL;
    out = malloc((view.count + 1) * sizeof *out);
    return mtan_view_read(&view, out, view.count) == MTAN_OK ? out : NULL;
}

static int by_value(const void *a, const void *b) {
    const mtan_real x = *(const mtan_real *)a, y = *(const mtan_real *)b;
    return (x > y) - (x < y);
}

/* Replaces the distinct times by the set's own query times, if it has any. */
static void load_queries(record_set *set, const mtan_file *file, const char *name) {
    size_t n = 0, records = 0;
    int32_t *offset = view_ints(file, name, "query_offset", &records);
    mtan_real *query = view_reals(file, name, "query", &n);
    if (offset && query && records == (size_t)set->n + 1) {
        free(set->times);
        set->times = query;
        for (size_t b = 0; b < records; b++) set->time0[b] = offset[b];
    } else {
        free(query);
    }
    free(offset);
}

static int load_set(record_set *set, const char *path, const char *name) {
    size_t bytes, n = 0, records = 0, labels = 0;
    void *blob = slurp_golden(path, &bytes);
    mtan_file file;
    int32_t *channel;
    mtan_real *time, *value;
    if (!blob || mtan_file_open(&file, blob, bytes) != MTAN_OK) return 0;
    set->offset = view_ints(&file, name, "offset", &records);
    set->label = view_ints(&file, name, "label", &labels);
    channel = view_ints(&file, name, "channel", &n);
    time = view_reals(&file, name, "time", &n);
    value = view_reals(&file, name, "value", &n);
    if (!set->offset || !channel || !time || !value) return 0;
    set->n = (int)records - 1;
    set->events = malloc((n + 1) * sizeof *set->events);
    set->times = malloc((n + 1) * sizeof *set->times);
    set->time0 = calloc(records, sizeof *set->time0);
    for (size_t i = 0; i < n; i++) set->events[i] = (mtan_event){time[i], channel[i], value[i]};
    for (int b = 0; b < set->n; b++) {
        const int first = set->offset[b], count = set->offset[b + 1] - first;
        mtan_real *out = set->times + set->time0[b];
        int distinct = 0;
        qsort(time + first, (size_t)count, sizeof *time, by_value);
        for (int i = 0; i < count; i++)
            if (i == 0 || time[first + i] != time[first + i - 1]) out[distinct++] = time[first + i];
        set->time0[b + 1] = set->time0[b] + distinct;
    }
    load_queries(set, &file, name);
    free(channel), free(time), free(value);
    return guard_free(blob);
}

static void free_set(record_set *set) {
    free(set->offset), free(set->label), free(set->events), free(set->times), free(set->time0);
}

/* Solvers are names in the files, but numbers in a model's own settings. */
static int load_setting(ladder *l, const char *name) {
    static const char *const solvers[] = {"euler", "rk4", "dopri5"};
    char key[64], text[64];
    snprintf(key, sizeof key, "mtan.%s", name);
    if (mtan_file_metadata(&l->file, key, text, sizeof text, NULL) != MTAN_OK) return 1;
    for (int i = 0; i < 3; i++)
        if (strcmp(text, solvers[i]) == 0) snprintf(text, sizeof text, "%d", i);
    return mtan_config_set(&l->config, name, text) == MTAN_OK;
}

/* For a model defined elsewhere: it has a latent state if the file has noise, and its preset is one of its own
 * settings. */
static int load_architecture_settings(ladder *l, const mtan_architecture *architecture) {
    mtan_tensor_view noise;
    char preset[16] = "";
    if (mtan_file_tensor(&l->file, "noise", &noise) == MTAN_OK) l->config.kind = MTAN_FULL;
    mtan_config_architecture(&l->config, architecture);
    mtan_file_metadata(&l->file, "mtan.preset", preset, sizeof preset, NULL);
    for (int32_t i = 0; architecture->settings && architecture->settings[i]; i++) {
        const char *name = architecture->settings[i];
        if (!load_setting(l, name)) return 0;
        if (strcmp(name, "faithful") == 0) l->config.extra[i] = strcmp(preset, "faithful") == 0;
    }
    return 1;
}

static int load_config(ladder *l, const mtan_architecture *architecture) {
    mtan_config_init(&l->config, MTAN_ENC, MTAN_CLASSIFY_RECORD, 1, 2);
    mtan_config_preset(&l->config, MTAN_FAITHFUL);
    for (int32_t i = 0; mtan_config_key(i); i++)
        if (!load_setting(l, mtan_config_key(i))) return 0;
    if (architecture && !load_architecture_settings(l, architecture)) return 0;
    l->config.kl_anneal = 0;
    l->config.predict_samples = l->config.samples;
    return mtan_config_check(&l->config) == MTAN_OK;
}

static int max_int(int a, int b) {
    return a > b ? a : b;
}

/* Reals in a record's latent state: of K points, or of one point if the model is defined elsewhere. */
static size_t latent_count(const mtan_config *c) {
    return (size_t)(c->architecture ? 1 : c->ref_points) * (size_t)c->latent;
}

static void make_records(ladder *l) {
    const mtan_config *c = &l->config;
    const size_t per_sample = latent_count(c);
    const int B = l->seen.n, S = c->samples, has_targets = l->scored.n > 0;
    l->records = calloc((size_t)B, sizeof *l->records);
    l->noise = malloc(((size_t)B * (size_t)S * per_sample + 1) * sizeof *l->noise);
    l->bounds.records = B;
    for (int b = 0; b < B; b++) {
        mtan_record *r = &l->records[b];
        mtan_real *noise = l->noise + (size_t)b * (size_t)S * per_sample;
        const record_set *scored = has_targets ? &l->scored : &l->seen;
        const record_set *asked = c->classify == MTAN_CLASSIFY_TIME ? &l->seen : scored;
        r->events = l->seen.events + l->seen.offset[b];
        r->n_events = l->seen.offset[b + 1] - l->seen.offset[b];
        if (has_targets) r->targets = scored->events + scored->offset[b];
        r->n_targets = has_targets ? scored->offset[b + 1] - scored->offset[b] : 0;
        r->times = asked->times + asked->time0[b];
        r->n_times = asked->time0[b + 1] - asked->time0[b];
        if (c->classify == MTAN_CLASSIFY_TIME) r->labels = l->seen.label + l->seen.time0[b];
        if (c->classify == MTAN_CLASSIFY_RECORD) r->labels = l->seen.label + b;
        r->noise = noise;
        r->n_noise = (int32_t)((size_t)S * per_sample);
        for (int s = 0; s < S; s++) /* the rule's noise is (S, B, K, Z) */
            for (size_t i = 0; i < per_sample; i++)
                noise[(size_t)s * per_sample + i] =
                    (mtan_real)(2 * golden_u("noise", ((size_t)s * (size_t)B + (size_t)b) * per_sample + i));
        l->bounds.events = max_int(l->bounds.events, max_int(r->n_events, r->n_targets));
        l->bounds.times = max_int(l->bounds.times, max_int(r->n_times, l->seen.time0[b + 1] - l->seen.time0[b]));
    }
    if (c->architecture) l->bounds.times += l->bounds.events; /* queries and events may share one sequence */
}

/* The number of the reference's parameters; each has a gradient with an error. */
static int32_t count_gradients(const ladder *l) {
    int32_t n = 0;
    for (size_t i = 0; i < l->file.tensors; i++) {
        mtan_tensor_view view;
        char name[128];
        if (mtan_file_tensor_at(&l->file, i, &view) != MTAN_OK) return -1;
        if (mtan_text_decode(&view.name, name, sizeof name, NULL) != MTAN_OK) return -1;
        n += strncmp(name, "grad.", 5) == 0 && ends_with(name, ".err32");
    }
    return n;
}

/* The file's weights, under the names of their parameters. */
static int read_weights(ladder *l) {
    if (count_gradients(l) != mtan_param_count(&l->config)) {
        printf("%d parameters, %d in the file\n", (int)mtan_param_count(&l->config), (int)count_gradients(l));
        return 0;
    }
    for (int32_t i = 0; i < mtan_param_count(&l->config); i++) {
        mtan_tensor_view view;
        mtan_param p;
        mtan_param_at(&l->config, i, &p);
        if (mtan_file_tensor(&l->file, p.name, &view) != MTAN_OK ||
            mtan_view_read(&view, l->weights + p.offset, (size_t)p.rows * (size_t)p.cols) != MTAN_OK) {
            printf("%s (%d, %d): not in the file\n", p.name, (int)p.rows, (int)p.cols);
            return 0;
        }
    }
    return 1;
}

static int ladder_open(ladder *l, const char *name, const mtan_architecture *architecture, const mtan_backend *backend,
                       ladder_visit visit, void *context) {
    char path[128], set[64], file[64] = "records";
    size_t bytes;
    memset(l, 0, sizeof *l);
    l->visit = visit, l->context = context;
    snprintf(path, sizeof path, "%s.safetensors", name);
    l->blob = slurp_golden(path, &bytes);
    if (!l->blob || mtan_file_open(&l->file, l->blob, bytes) != MTAN_OK || !load_config(l, architecture)) return 0;
    mtan_file_metadata(&l->file, "golden.file", file, sizeof file, NULL);
    snprintf(path, sizeof path, "%s.safetensors", file);
    if (mtan_file_metadata(&l->file, "golden.records", set, sizeof set, NULL) != MTAN_OK ||
        !load_set(&l->seen, path, set))
        return 0;
    if (mtan_file_metadata(&l->file, "golden.targets", set, sizeof set, NULL) == MTAN_OK &&
        !load_set(&l->scored, path, set))
        return 0;
    l->kl_weight = number_of(l, "golden.kl_coef", 1);
    l->lr = number_of(l, "golden.lr", 1e-3);
    make_records(l);
    l->weights = guard_alloc(mtan_weights_count(&l->config) * sizeof *l->weights);
    if (!architecture)
        golden_weights(&l->config, l->weights, number_of(l, "golden.freq", 8), number_of(l, "golden.gain", 1));
    else if (!read_weights(l)) return 0;
    if (mtan_model_init(&l->model, &l->config, l->weights, mtan_weights_count(&l->config)) != MTAN_OK) return 0;
    l->model.backend = backend;
    if (backend->device) backend->device->send(l->weights, mtan_weights_count(&l->config) * sizeof *l->weights);
    return 1;
}

static void ladder_close(ladder *l) {
    free_set(&l->seen), free_set(&l->scored);
    free(l->records), free(l->noise);
    guard_free(l->weights);
    if (l->blob) guard_free(l->blob);
}

/* ---- comparing ---- */

static double *golden_f64(const ladder *l, const char *name, const char *suffix, size_t *n) {
    char full[128];
    mtan_tensor_view view;
    double *out;
    snprintf(full, sizeof full, "%s%s", name, suffix);
    if (mtan_file_tensor(&l->file, full, &view) != MTAN_OK) return NULL;
    out = malloc((view.count + 1) * sizeof *out);
    *n = view.count;
    if (mtan_view_read_f64(&view, out, view.count) != MTAN_OK) *n = 0;
    return out;
}

/* The limits at the end of golden/README.md. */
static double limit_for(const ladder *l, double size, double err32) {
#ifdef MTAN_DOUBLE
    (void)err32;
    return 1e-10 * size + 1e-14 * l->largest_gradient;
#else
    (void)l;
    return 4 * err32 + 4 * ldexp(size, -24);
#endif
}

/* The factor from a limit on the norm of n errors to a limit on their sum. In float it is used in full: rounding errors
 * of an output that all entries share (a bias, a gate) have one sign. In double the norm's own limit is far from
 * reached. */
static double sum_reach(size_t n) {
    return sizeof(mtan_real) == sizeof(double) ? 1 : sqrt((double)n);
}

static void report(ladder *l, const char *name, double difference, double limit) {
    const double share = difference <= limit  ? (limit > 0 ? difference / limit : 0)
                         : difference > limit ? difference / limit
                                              : HUGE_VAL;
    l->compared++;
    l->visit(l->context, name, difference, limit, share);
}

/* Compares one tensor, stored whole or as 256 samples with sum and norm. A tensor that is missing in the file is not an
 * error, because not every case has it. */
static void compare(ladder *l, const char *name, const mtan_real *got, size_t n) {
    size_t count = 0, errors = 0, one = 0;
    double *ref = golden_f64(l, name, "", &count), *err = golden_f64(l, name, ".err32", &errors);
    double difference = 0, size = 0;
    if (ref && count == n && errors == 1) {
        for (size_t i = 0; i < n; i++) difference += (got[i] - ref[i]) * (got[i] - ref[i]), size += ref[i] * ref[i];
        report(l, name, sqrt(difference), limit_for(l, sqrt(size), err[0]));
    } else if (!ref && err && errors == 3) {
        double *sum = golden_f64(l, name, ".sum", &one), *norm = golden_f64(l, name, ".norm", &one), total = 0,
               length = 0;
        char part[128];
        ref = golden_f64(l, name, ".sample", &count);
        for (size_t j = 0; j < count; j++) {
            const double g = (double)got[j * n / count];
            difference += (g - ref[j]) * (g - ref[j]), size += ref[j] * ref[j];
        }
        for (size_t i = 0; i < n; i++) total += (double)got[i], length += (double)got[i] * (double)got[i];
        report(l, name, count == 256 ? sqrt(difference) : HUGE_VAL, limit_for(l, sqrt(size), err[0]));
        snprintf(part, sizeof part, "%s (sum)", name);
        report(l, part, fabs(total - sum[0]), limit_for(l, norm[0] * sum_reach(n), err[1]));
        snprintf(part, sizeof part, "%s (norm)", name);
        report(l, part, fabs(sqrt(length) - norm[0]), limit_for(l, norm[0], err[2]));
        free(sum), free(norm);
    } else if (ref || err) {
        report(l, name, HUGE_VAL, 0); /* another shape */
    }
    free(ref), free(err);
}

static void find_largest_gradient(ladder *l) {
    for (int32_t i = 0; i < mtan_param_count(&l->config); i++) {
        char name[96];
        size_t n = 0;
        mtan_param p;
        double *ref, size = 0;
        mtan_param_at(&l->config, i, &p);
        snprintf(name, sizeof name, "grad.%s", p.name);
        if ((ref = golden_f64(l, name, "", &n))) size = check_length(ref, n);
        else if ((ref = golden_f64(l, name, ".norm", &n))) size = ref[0];
        free(ref);
        if (size > l->largest_gradient) l->largest_gradient = size;
    }
}

/* ---- running ---- */

static mtan_trainer start_trainer(ladder *l, void **memory) {
    mtan_train_config config;
    mtan_trainer trainer;
    size_t bytes = 0;
    mtan_train_config_init(&config);
    config.kl_weight = l->kl_weight;
    config.lr = l->lr;
    memset(&trainer, 0, sizeof trainer);
    *memory = NULL;
    if (mtan_trainer_size(&l->model, &config, &l->bounds, &bytes) != MTAN_OK) return trainer;
    *memory = guard_alloc(bytes);
    if (mtan_trainer_init(&trainer, &l->model, l->weights, &config, &l->bounds, *memory, bytes) != MTAN_OK)
        trainer.model = NULL;
    return trainer;
}

static void compare_scalar(ladder *l, const char *name, double got) {
    const mtan_real x = (mtan_real)got;
    compare(l, name, &x, 1);
}

static int compare_training(ladder *l) {
    mtan_report r;
    void *memory;
    mtan_trainer trainer = start_trainer(l, &memory);
    mtan_status status =
        trainer.model ? mtan_trainer_gradient(&trainer, l->records, l->seen.n, 1, &r) : MTAN_ERR_MEMORY;
    if (status == MTAN_OK && l->model.backend->device &&
        !l->model.backend->device->fetch(trainer.gradient, mtan_weights_count(&l->model.config) * sizeof(mtan_real)))
        status = MTAN_ERR_DEVICE;
    if (status == MTAN_OK) {
        compare_scalar(l, "loss", r.loss);
        compare_scalar(l, "recon", r.recon);
        compare_scalar(l, "ce", r.ce);
        compare_scalar(l, "kl", r.kl);
        for (int32_t i = 0; i < mtan_param_count(&l->config); i++) {
            char name[96];
            mtan_param p;
            mtan_param_at(&l->config, i, &p);
            snprintf(name, sizeof name, "grad.%s", p.name);
            compare(l, name, trainer.gradient + p.offset, (size_t)p.rows * (size_t)p.cols);
        }
    } else {
        printf("training: %s\n", mtan_status_message(status));
    }
    return guard_free(memory) && status == MTAN_OK;
}

static size_t samples_of(const ladder *l) {
    return l->config.kind == MTAN_FULL ? (size_t)l->config.samples : 1;
}

static size_t logit_rows(const ladder *l) {
    return l->config.classify == MTAN_CLASSIFY_TIME ? (size_t)l->seen.time0[l->seen.n] : (size_t)l->seen.n;
}

static void deliver_logits(ladder *l, const mtan_real *got, mtan_status status) {
    const size_t C = (size_t)l->config.classes, S = samples_of(l), rows = logit_rows(l);
    mtan_real *turned = malloc(rows * S * C * sizeof *turned);
    for (size_t i = 0; i < rows * S * C; i++) { /* ours is (rows, S, C), the reference's (S, rows, C) */
        const size_t c = i % C, s = i / C % S, r = i / C / S;
        turned[(s * rows + r) * C + c] = status == MTAN_OK ? got[i] : (mtan_real)NAN;
    }
    compare(l, "logits", turned, rows * S * C);
    free(turned);
}

static mtan_real *room_for_logits(const ladder *l) {
    return malloc(logit_rows(l) * samples_of(l) * (size_t)l->config.classes * sizeof(mtan_real));
}

static void compare_logits(ladder *l, mtan_predictor *predictor) {
    mtan_real *got = room_for_logits(l);
    const mtan_status status = mtan_predictor_logits(predictor, l->records, l->seen.n, got);
    deliver_logits(l, got, status);
    free(got);
}

static void compare_latent(ladder *l, mtan_predictor *predictor) {
    const size_t n = latent_count(&l->config), B = (size_t)l->seen.n;
    mtan_real *mean = malloc(B * n * sizeof *mean), *logvar = malloc(B * n * sizeof *logvar);
    for (size_t b = 0; b < B; b++)
        if (mtan_predictor_latent(predictor, &l->records[b], mean + b * n, logvar + b * n) != MTAN_OK)
            mean[b * n] = (mtan_real)NAN;
    compare(l, "mean", mean, B * n);
    compare(l, "logvar", logvar, B * n);
    free(mean), free(logvar);
}

/* The decoder at the scored cells: (S, cells), with a record's cells stably sorted by time. */
static void compare_curves(ladder *l, mtan_predictor *predictor) {
    const record_set *set = l->scored.n ? &l->scored : &l->seen;
    const size_t D = (size_t)l->config.channels, S = (size_t)l->config.samples, cells = (size_t)set->offset[set->n];
    mtan_real *got = malloc((S * cells + 1) * sizeof *got),
              *curve = malloc((S * (size_t)l->bounds.times * D + 1) * sizeof *curve);
    for (int b = 0; b < set->n; b++) {
        const mtan_record *r = &l->records[b];
        const size_t Q = (size_t)r->n_times;
        size_t at = (size_t)set->offset[b];
        const mtan_status status = mtan_predictor_curves(predictor, r, curve);
        for (size_t q = 0; q < Q; q++)
            for (int e = set->offset[b]; e < set->offset[b + 1]; e++) {
                if (set->events[e].time != r->times[q]) continue;
                for (size_t s = 0; s < S; s++)
                    got[s * cells + at] =
                        status == MTAN_OK ? curve[(s * Q + q) * D + (size_t)set->events[e].channel] : (mtan_real)NAN;
                at++;
            }
    }
    compare(l, "pred", got, S * cells);
    free(got), free(curve);
}

static int compare_prediction(ladder *l) {
    mtan_predictor predictor;
    size_t bytes = 0;
    void *memory;
    mtan_status status = mtan_predictor_size(&l->model, &l->bounds, &bytes);
    memory = guard_alloc(bytes);
    if (status == MTAN_OK) status = mtan_predictor_init(&predictor, &l->model, &l->bounds, memory, bytes);
    if (status == MTAN_OK) {
        if (l->config.classify != MTAN_CLASSIFY_NONE) compare_logits(l, &predictor);
        if (l->config.kind == MTAN_FULL && !l->config.architecture) compare_latent(l, &predictor);
        if (l->config.kind == MTAN_FULL && l->config.classify != MTAN_CLASSIFY_TIME) compare_curves(l, &predictor);
    } else {
        printf("prediction: %s\n", mtan_status_message(status));
    }
    return guard_free(memory) && status == MTAN_OK;
}

static int run_case(const char *name, const mtan_architecture *architecture, const mtan_backend *backend,
                    ladder_visit visit, void *context) {
    ladder l;
    int ok = ladder_open(&l, name, architecture, backend, visit, context);
    if (!ok) printf("golden/%s: cannot be set up\n", name);
    if (ok) find_largest_gradient(&l);
    ok = ok && compare_training(&l);
    ok = ok && compare_prediction(&l);
    ladder_close(&l);
    return ok ? l.compared : -1;
}

int ladder_model(const char *name, const mtan_backend *backend, ladder_visit visit, void *context) {
    return run_case(name, NULL, backend, visit, context);
}

int ladder_architecture(const char *name, char *architecture, size_t size) {
    char path[128];
    size_t bytes;
    mtan_file file;
    void *blob;
    int ok;
    snprintf(path, sizeof path, "%s.safetensors", name);
    blob = slurp_golden(path, &bytes);
    ok = blob && mtan_file_open(&file, blob, bytes) == MTAN_OK &&
         mtan_file_metadata(&file, "mtan.architecture", architecture, size, NULL) == MTAN_OK;
    return guard_free(blob) && ok;
}

int ladder_elsewhere(const char *name, const mtan_architecture *architecture, const mtan_backend *backend,
                     ladder_visit visit, void *context) {
    return run_case(name, architecture, backend, visit, context);
}

int ladder_logits(const char *name, const mtan_backend *backend, ladder_way way, ladder_visit visit, void *context) {
    ladder l;
    const int ok = ladder_open(&l, name, NULL, backend, visit, context);
    if (ok && l.config.classify != MTAN_CLASSIFY_NONE) {
        mtan_real *got = room_for_logits(&l);
        const mtan_status status = way(context, &l.model, l.records, l.seen.n, got);
        if (status != MTAN_ERR_CONFIG) deliver_logits(&l, got, status);
        free(got);
    }
    ladder_close(&l);
    return ok ? l.compared : -1;
}

int ladder_training(const char *name, const mtan_backend *backend, ladder_visit visit, void *context) {
    ladder l;
    mtan_real losses[64] = {0};
    void *memory = NULL;
    int ok = ladder_open(&l, name, NULL, backend, visit, context), steps = 0;
    if (ok) {
        mtan_trainer trainer = start_trainer(&l, &memory);
        steps = (int)number_of(&l, "golden.steps", 10);
        for (int i = 0; ok && i < steps; i++) {
            mtan_report r;
            ok = trainer.model && mtan_trainer_step(&trainer, l.records, l.seen.n, 1, &r) == MTAN_OK;
            losses[i] = ok ? (mtan_real)r.loss : (mtan_real)NAN;
        }
        compare(&l, "losses", losses, (size_t)steps);
    }
    ok = guard_free(memory) && ok;
    ladder_close(&l);
    return ok ? l.compared : -1;
}

static const char *const cases[] = {"enc-small",
                                    "enc-one",
                                    "enc-unsorted",
                                    "enc-unseen",
                                    "enc-empty",
                                    "enc-far",
                                    "enc-k1",
                                    "enc-h2",
                                    "enc-h4",
                                    "enc-fixed",
                                    "enc-perhead",
                                    "rnn3-enc",
                                    "enc-summaries",
                                    "enc-shapes",
                                    "enc-shapes-unseen",
                                    "enc-course",
                                    "enc-course-unseen",
                                    "enc-statistics",
                                    "enc-local",
                                    "enc-local-far",
                                    "enc-local-unseen",
                                    "enc-piecewise",
                                    "enc-quantile",
                                    "enc-local-piecewise",
                                    "full-piecewise",
                                    "full-small",
                                    "full-one",
                                    "full-unsorted",
                                    "full-unseen",
                                    "full-empty",
                                    "full-far",
                                    "full-k1",
                                    "full-h2",
                                    "full-h4",
                                    "full-fixed",
                                    "full-perhead",
                                    "full-samples",
                                    "full-elbo",
                                    "full-iwae",
                                    "full-subset",
                                    "rbf-interp",
                                    "rbf-full",
                                    "rnn3-full",
                                    "toy-interp",
                                    "physionet-interp",
                                    "physionet-full",
                                    "physionet-enc",
                                    "mimic3-full",
                                    "mimic3-enc",
                                    "activity-enc",
                                    "activity-full",
                                    NULL};

const char *ladder_case(int index) {
    return cases[index];
}
