/* Fuzz target: models from hostile files in use. Whatever the weights and settings are, as long as they load, a prediction is finite or
 * a refusal, and nothing is touched outside the memory that was asked for.
 *
 * The first byte as in model.c: 1: the baselines are known. The rest is a description (described.h), whose data is also what is observed.
 * Models with differential equations are left out: how long they take is for their settings to say. */
#include "described.h"

#include "../../tools/baselines/baselines.h"

enum { EVENTS = 4, MOST_WEIGHTS = 1 << 12, MOST_OUT = 1 << 10, MOST_BYTES = 1 << 18 };

static mtan_real weights[MOST_WEIGHTS], out[2 * MOST_OUT];
static uint64_t memory[(MOST_BYTES + DESCRIBED_GUARD) / 8];

static int is_finite(mtan_real x) {
    return x - x == 0;
}

/* Four events, and their times as query times, from the first bytes of the file's data. */
static mtan_record make_record(const mtan_file *file, const mtan_config *c) {
    static mtan_event events[EVENTS];
    static mtan_real times[EVENTS] = {0, (mtan_real)0.25, 1, (mtan_real)1e6};
    mtan_record r;
    memset(&r, 0, sizeof r);
    for (int i = 0; i < EVENTS; i++) {
        float value = 1;
        if (file->data_bytes >= 4 * (size_t)(i + 1)) memcpy(&value, file->data + 4 * i, sizeof value);
        events[i].time = times[i], events[i].channel = i % c->channels;
        events[i].value = is_finite((mtan_real)value) ? (mtan_real)value : 0;
    }
    r.events = events, r.n_events = EVENTS;
    r.times = times, r.n_times = EVENTS;
    return r;
}

static void check_probabilities(const mtan_config *c) {
    if (c->task == MTAN_TASK_NUMBER) return;
    const int32_t rows = c->classify == MTAN_CLASSIFY_TIME ? EVENTS : 1;
    for (int32_t i = 0; i < rows; i++) {
        mtan_real sum = 0;
        for (int32_t k = 0; k < c->classes; k++) {
            const mtan_real p = out[i * c->classes + k];
            PROMISE(p >= 0 && p <= (mtan_real)1.001);
            sum += p;
        }
        if (c->task == MTAN_TASK_CLASSES) PROMISE(sum > (mtan_real)0.99 && sum < (mtan_real)1.01);
    }
}

static void predict(mtan_model *model, const mtan_file *file) {
    const mtan_config *c = &model->config;
    const mtan_bounds bounds = {1, EVENTS, EVENTS};
    const mtan_record r = make_record(file, c);
    mtan_predictor predictor;
    size_t bytes = 0;
    if (mtan_predictor_size(model, &bounds, &bytes) != MTAN_OK || bytes > MOST_BYTES) return;
    uint8_t *end = (uint8_t *)memory + bytes;
    ASAN_POISON_MEMORY_REGION(end, DESCRIBED_GUARD);
    if (mtan_predictor_init(&predictor, model, &bounds, memory, bytes) == MTAN_OK) {
        if (mtan_predictor_classify(&predictor, &r, 1, out) == MTAN_OK) check_probabilities(c);
        if (mtan_predictor_interpolate(&predictor, &r, out, out + MOST_OUT) == MTAN_OK)
            for (int32_t i = 0; i < EVENTS * c->channels; i++) PROMISE(is_finite(out[i]) && out[MOST_OUT + i] >= 0);
    }
    ASAN_UNPOISON_MEMORY_REGION(end, DESCRIBED_GUARD);
}

/* In the path of little memory, with one reference point at a time. */
static void predict_small(const mtan_model *model, const mtan_file *file) {
    const mtan_record r = make_record(file, &model->config);
    size_t bytes = 0;
    if (mtan_small_size(model, 1, &bytes) != MTAN_OK || bytes > MOST_BYTES) return;
    uint8_t *end = (uint8_t *)memory + bytes;
    ASAN_POISON_MEMORY_REGION(end, DESCRIBED_GUARD);
    if (mtan_small_classify(model, &r, 1, memory, bytes, out) == MTAN_OK) check_probabilities(&model->config);
    ASAN_UNPOISON_MEMORY_REGION(end, DESCRIBED_GUARD);
}

/* Small enough that it is done in no time. */
static int is_small(const mtan_config *c) {
    const int32_t sizes[] = {c->channels, c->classes,         c->ref_points, c->embed,
                             c->latent,   c->predict_samples, c->samples};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i] > 16) return 0;
    return !c->architecture || !strstr(c->architecture->name, "ode");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const mtan_architecture *const *known;
    mtan_model model;
    mtan_file file;
    described d;
    if (size == 0) return 0;
    known = data[0] & 1 ? baselines : NULL;
    d = described_file(data + 1, size - 1, 0);
    if (mtan_file_open(&file, d.bytes, d.length) != MTAN_OK) return 0;
    if (mtan_model_load(&model, weights, MOST_WEIGHTS, &file, known) == MTAN_OK && is_small(&model.config))
        predict(&model, &file);
    if (mtan_model_open(&model, &file, known) == MTAN_OK && is_small(&model.config)) predict_small(&model, &file);
    return 0;
}
