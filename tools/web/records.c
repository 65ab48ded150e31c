/* See records.h. */
#include "records.h"

#include <string.h>

#include "../mtan/run/reference.h"

struct mtan_flat_model {
    flat_core core;
    mtan_file file;
};

/* The caller's columns, which must stay in memory. */
struct mtan_flat_data {
    const char *record, *channels;
    int32_t n, n_channels, n_queries, n_noise;
    const double *time, *value, *query;
    const int32_t *channel;
    const mtan_real *noise;
};

static mtan_predictor predictor; /* of the last web_room */

static int out_of_memory(void) {
    return flat_fail(mtan_status_message(MTAN_ERR_MEMORY), NULL);
}

/* ---- models ---- */

/* Weights of types other than F32 are copied after the file. The library would open int8 matrices for its small path,
 * but a predictor needs reals. */
static mtan_status open_weights(mtan_flat_model *m) {
    size_t count = 0;
    mtan_real *weights;
    mtan_status status = mtan_model_open(&m->core.model, &m->file, NULL);
    if (status == MTAN_OK && m->core.model.precision != MTAN_INT8) return status;
    if (status != MTAN_OK && status != MTAN_ERR_SHAPE) return status;
    if ((status = mtan_model_load_count(&m->file, NULL, &count)) != MTAN_OK) return status;
    weights = flat_take(count * sizeof *weights);
    return weights ? mtan_model_load(&m->core.model, weights, count, &m->file, NULL) : MTAN_ERR_MEMORY;
}

static mtan_status open_prep(mtan_flat_model *m, const char **key) {
    size_t bytes = 0;
    void *memory;
    const mtan_status status = mtan_prep_size(&m->file, &bytes);
    if (status != MTAN_OK) return status;
    memory = flat_take(bytes);
    return memory ? mtan_prep_open(&m->core.prep, &m->file, memory, bytes, key) : MTAN_ERR_MEMORY;
}

typedef struct opening {
    mtan_flat_model *model;
    const void *bytes;
    size_t n;
} opening;

static int open_model(void *job) {
    opening *o = job;
    const char *key = NULL; /* of the metadata that preparation could not use */
    mtan_flat_model *m = flat_take(sizeof *m);
    mtan_status status;
    if (!m) return out_of_memory();
    memset(m, 0, sizeof *m);
    status = mtan_file_open(&m->file, o->bytes, o->n);
    if (status == MTAN_OK) status = open_weights(m);
    if (status == MTAN_OK) status = open_prep(m, &key);
    if (status != MTAN_OK && key) return flat_fail("the model file's ", key, " cannot be used", NULL);
    if (status != MTAN_OK) return flat_fail(mtan_status_message(status), NULL);
    m->core.model.backend = web_backend;
    o->model = m;
    return 1;
}

/* The bytes are not copied: they must stay in place as long as the model. */
mtan_flat_model *mtan_flat_model_open(const void *bytes, size_t n) {
    opening o = {NULL, bytes, n};
    return flat_call(open_model, &o) == 0 ? o.model : NULL;
}

int32_t mtan_flat_model_text(const mtan_flat_model *model, const char *key, char *text, size_t size, size_t *length) {
    mtan_status status = MTAN_ERR_NULL;
    if (text) status = mtan_config_get(&model->core.model.config, key, text, size);
    if (status == MTAN_OK && length) *length = strlen(text);
    if (status != MTAN_OK) status = mtan_file_metadata(&model->file, key, text, size, length);
    return status == MTAN_OK || flat_fail(key, ": ", mtan_status_message(status), NULL) ? 0 : 1;
}

typedef struct rooming {
    mtan_flat_model *model;
    mtan_bounds most;
    int32_t samples;
} rooming;

static int make_room(void *job) {
    const rooming *r = job;
    mtan_model *model = &r->model->core.model;
    size_t bytes = 0;
    void *memory;
    mtan_status status;
    model->config.predict_samples = r->samples;
    status = mtan_predictor_size(model, &r->most, &bytes);
    if (status != MTAN_OK) return flat_fail(mtan_status_message(status), NULL);
    if (!(memory = flat_take(bytes))) return out_of_memory();
    status = mtan_predictor_init(&predictor, model, &r->most, memory, bytes);
    return status == MTAN_OK || flat_fail(mtan_status_message(status), NULL);
}

int32_t web_room(mtan_flat_model *model, int32_t events, int32_t times, int32_t samples) {
    rooming r = {model, {1, events, times}, samples};
    return flat_call(make_room, &r);
}

/* ---- records ---- */

/* One record whose times are numbers. */
mtan_flat_data *mtan_flat_data_new(int32_t n_records, const char *records, const int64_t *offset, int32_t n_channels,
                                   const char *channels, const double *time, const int64_t *date,
                                   const int32_t *channel, const double *value) {
    mtan_flat_data *d = flat_take(sizeof *d);
    if (!d || n_records != 1 || date) return flat_fail("there is room for one record, without dates", NULL), NULL;
    memset(d, 0, sizeof *d);
    d->record = records, d->n = (int32_t)(offset[1] - offset[0]);
    d->n_channels = n_channels, d->channels = channels;
    d->time = time + offset[0], d->channel = channel + offset[0], d->value = value + offset[0];
    return d;
}

void mtan_flat_data_free(mtan_flat_data *data) {
    flat_give_back(data);
}

void mtan_flat_data_queries(mtan_flat_data *data, const int64_t *offset, const double *time) {
    data->n_queries = (int32_t)(offset[1] - offset[0]), data->query = time + offset[0];
}

void web_noise(mtan_flat_data *data, int32_t n, const mtan_real *noise) {
    data->n_noise = n, data->noise = noise;
}

/* A question to the model about a record, and the place of the answer. */
typedef struct question {
    const flat_core *core;
    const mtan_flat_data *data;
    int32_t samples, head, channel;
    uint64_t seed;
    int64_t *offset;
    double *out, *second;
    int32_t *counts;
    /* set by open_question */
    mtan_record record;
    mtan_prepared found;
    mtan_real *query; /* (queries) in the model's units */
} question;

/* The model's index of each of the data's channels, or NULL with a message. */
static int32_t *known_channels(const question *q) {
    const char *name = q->data->channels;
    int32_t *known = flat_take((size_t)q->data->n_channels * sizeof *known);
    for (int32_t i = 0; known && i < q->data->n_channels; i++, name += strlen(name) + 1)
        if ((known[i] = mtan_prep_channel_named(&q->core->prep, name)) < 0)
            return flat_fail("the model has no channel \"", name, "\"", NULL), NULL;
    if (!known) out_of_memory();
    return known;
}

/* The observations, without those whose value is NaN. NULL: no memory. */
static mtan_observation *observations(const mtan_flat_data *d, const int32_t *known, int32_t *n) {
    mtan_observation *raw = flat_take((size_t)d->n * sizeof *raw);
    *n = 0;
    for (int32_t i = 0; raw && i < d->n; i++)
        if (d->value[i] <= d->value[i])
            raw[*n].time = d->time[i], raw[*n].channel = known[d->channel[i]], raw[(*n)++].value = d->value[i];
    return raw;
}

static int prepare_record(question *q) {
    const mtan_flat_data *d = q->data;
    const int32_t D = q->core->model.config.channels; /* extra room for channels that get a fill value */
    const int32_t *known = known_channels(q);
    int32_t n = 0;
    if (!known) return 0;
    mtan_observation *raw = observations(d, known, &n);
    mtan_event *events = d->n <= INT32_MAX - D ? flat_take((size_t)(d->n + D) * sizeof *events) : NULL;
    if (!raw || !events) return out_of_memory();
    const mtan_status status = mtan_prep_record(&q->core->prep, raw, n, events, d->n + D, &q->found);
    if (status != MTAN_OK) return flat_fail(mtan_status_message(status), NULL);
    q->record.events = events, q->record.n_events = q->found.events;
    return 1;
}

static int open_question(question *q) {
    const mtan_flat_data *d = q->data;
    if (q->samples >= 0 && q->samples != q->core->model.config.predict_samples)
        return flat_fail("there is room for another number of samples", NULL);
    if (!prepare_record(q)) return 0;
    if (!(q->query = flat_take((size_t)d->n_queries * sizeof *q->query))) return out_of_memory();
    for (int32_t i = 0; i < d->n_queries; i++) q->query[i] = mtan_prep_time(&q->core->prep, d->query[i]);
    q->record.noise = d->noise, q->record.n_noise = d->n_noise;
    q->record.id = mtan_bytes_hash(d->record, strlen(d->record));
    predictor.seed = q->seed;
    return 1;
}

static void ask_queries(question *q) {
    q->record.times = q->query, q->record.n_times = q->data->n_queries;
}

/* Answers a question and gives back the memory used on the way. */
static int32_t ask(question q, int (*answer)(void *question)) {
    void *floor = flat_take(0);
    const int32_t status = flat_call(answer, &q);
    flat_give_back(floor);
    return status;
}

/* ---- the preparation of a record ---- */

static int answer_found(void *job) {
    question *q = job;
    if (!prepare_record(q)) return 0;
    const mtan_prepared *f = &q->found;
    const int32_t counts[6] = {f->events, f->missing, f->repeats, f->filled, f->far_values, f->far_times};
    memcpy(q->counts, counts, sizeof counts);
    *q->out = f->origin;
    return 1;
}

int32_t web_found(const mtan_flat_model *model, const mtan_flat_data *data, int32_t *counts, double *origin) {
    const question q = {.core = &model->core, .data = data, .counts = counts, .out = origin};
    return ask(q, answer_found);
}

/* The record's distinct times, (*n), or NULL with a message. */
static mtan_real *times_of(const question *q, size_t *n) {
    mtan_real *times = flat_take((*n = distinct_times(&q->record, NULL)) * sizeof *times);
    if (!times) return out_of_memory(), NULL;
    distinct_times(&q->record, times);
    return times;
}

static int answer_times(void *job) {
    question *q = job;
    size_t L;
    if (!prepare_record(q)) return 0;
    const mtan_real *times = times_of(q, &L);
    if (!times) return 0;
    for (size_t i = 0; q->out && i < L; i++) q->out[i] = mtan_prep_raw_time(&q->core->prep, (double)times[i]);
    if (q->offset) q->offset[0] = 0, q->offset[1] = (int64_t)L;
    return 1;
}

int32_t mtan_flat_times(const mtan_flat_model *model, const mtan_flat_data *data, int64_t *offset, double *time) {
    const question q = {.core = &model->core, .data = data, .offset = offset, .out = time};
    return ask(q, answer_times);
}

static int answer_prepare(void *job) {
    question *q = job;
    if (!prepare_record(q)) return 0;
    q->offset[0] = 0, q->offset[1] = q->record.n_events;
    for (int32_t i = 0; i < q->record.n_events; i++) {
        const mtan_event *e = &q->record.events[i];
        if (q->out) q->out[i] = (double)e->time;
        if (q->counts) q->counts[i] = e->channel;
        if (q->second) q->second[i] = (double)e->value;
    }
    return 1;
}

int32_t mtan_flat_prepare(const mtan_flat_model *model, const mtan_flat_data *data, int64_t *offset, double *time,
                          int32_t *channel, double *value) {
    const question q = {
        .core = &model->core, .data = data, .offset = offset, .out = time, .counts = channel, .second = value};
    return ask(q, answer_prepare);
}

/* ---- predictions ---- */

/* Asks at the queries with the observed times among them. row (queries): the place of each query. */
static int ask_times(question *q, size_t **row) {
    const size_t n = (size_t)q->data->n_queries;
    if (!times_ascend(q->query, n)) return flat_fail("the times asked about must ascend", NULL);
    q->record.times = q->query, q->record.n_times = q->data->n_queries;
    const size_t asked = asked_times(&q->record, NULL, NULL);
    mtan_real *times = flat_take(asked * sizeof *times);
    if (!times || !(*row = flat_take(n * sizeof **row))) return out_of_memory();
    asked_times(&q->record, times, *row);
    q->record.times = times, q->record.n_times = (int32_t)asked;
    return 1;
}

static int answer_predict(void *job) {
    question *q = job;
    const mtan_config *c = &q->core->model.config;
    const int per_time = c->classify == MTAN_CLASSIFY_TIME;
    const size_t O = (size_t)mtan_config_outputs(c);
    size_t rows = 1, *row = NULL;
    if (c->classify == MTAN_CLASSIFY_NONE) return flat_fail("this model interpolates and does not classify", NULL);
    if (!open_question(q)) return 0;
    if (per_time && q->data->query && !ask_times(q, &row)) return 0;
    if (per_time) rows = row ? (size_t)q->record.n_times : distinct_times(&q->record, NULL);
    mtan_real *out = flat_take(rows * O * sizeof *out);
    if (!out) return out_of_memory();
    const mtan_status status = mtan_predictor_classify(&predictor, &q->record, 1, out);
    if (status != MTAN_OK) return flat_fail(mtan_status_message(status), NULL);
    for (size_t i = 0; i < (row ? (size_t)q->data->n_queries : rows); i++)
        for (size_t o = 0; o < O; o++)
            q->out[i * O + o] = flat_raw_output(q->core, o, (double)out[(row ? row[i] : i) * O + o]);
    return 1;
}

/* There is only one thread. */
int32_t mtan_flat_predict(const mtan_flat_model *model, const mtan_flat_data *data, int32_t threads, int32_t samples,
                          uint64_t seed, double *out) {
    const question q = {.core = &model->core, .data = data, .samples = samples, .seed = seed, .out = out};
    (void)threads;
    return ask(q, answer_predict);
}

static int answer_interpolate(void *job) {
    question *q = job;
    const mtan_config *c = &q->core->model.config;
    const size_t rows = (size_t)q->data->n_queries, n = rows * (size_t)c->channels;
    if (!q->data->query) return flat_fail("no times to interpolate at", NULL);
    if (c->kind != MTAN_FULL) return flat_fail("this model classifies and does not interpolate", NULL);
    if (!open_question(q)) return 0;
    ask_queries(q);
    mtan_real *mean = flat_take(n * sizeof *mean), *sd = flat_take(n * sizeof *sd);
    if (!mean || !sd) return out_of_memory();
    const mtan_status status = mtan_predictor_interpolate(&predictor, &q->record, mean, sd);
    if (status != MTAN_OK) return flat_fail(mtan_status_message(status), NULL);
    flat_raw_curves(q->core, rows, mean, sd, q->out, q->second);
    return 1;
}

int32_t mtan_flat_interpolate(const mtan_flat_model *model, const mtan_flat_data *data, int32_t threads,
                              int32_t samples, uint64_t seed, double *mean, double *sd) {
    const question q = {
        .core = &model->core, .data = data, .samples = samples, .seed = seed, .out = mean, .second = sd};
    (void)threads;
    return ask(q, answer_interpolate);
}

/* A model whose points are the record's own times has them at the queries, if there are any. */
static size_t points_of(const question *q, size_t distinct) {
    const mtan_config *c = &q->core->model.config;
    return q->record.times ? (size_t)q->record.n_times : reference_points(c, distinct);
}

static int show_attention(question *q, const mtan_real *times, size_t L) {
    const mtan_config *c = &q->core->model.config;
    const size_t K = points_of(q, L);
    mtan_real *weight = flat_take(K * L * sizeof *weight);
    if (!weight) return out_of_memory();
    const mtan_status status = mtan_predictor_attention(&predictor, &q->record, q->head, q->channel, weight);
    if (status != MTAN_OK) return flat_fail(mtan_status_message(status), NULL);
    for (size_t i = 0; i < K * L; i++) q->out[i] = (double)weight[i];
    for (size_t k = 0; k < K; k++)
        q->second[k] = mtan_prep_raw_time(&q->core->prep, reference_time(c, q->record.times ? q->query : times, k));
    return 1;
}

static int answer_attention(void *job) {
    question *q = job;
    const mtan_config *c = &q->core->model.config;
    size_t L;
    if (!open_question(q)) return 0;
    if (q->data->query && c->kind == MTAN_ENC && c->reference == MTAN_REF_OBSERVED) ask_queries(q);
    const mtan_real *times = times_of(q, &L);
    return times && show_attention(q, times, L);
}

int32_t mtan_flat_attention(const mtan_flat_model *model, const mtan_flat_data *data, int32_t record, int32_t head,
                            int32_t channel, double *weight, double *reference) {
    const question q = {.core = &model->core,
                        .data = data,
                        .samples = -1,
                        .head = head,
                        .channel = channel,
                        .out = weight,
                        .second = reference};
    (void)record;
    return ask(q, answer_attention);
}
