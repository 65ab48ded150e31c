/* The library behind a WebAssembly module without imports: what tools/web/mtan.js calls. An instance of the module is one model,
 * so the state below is per model, and dropping the instance frees all of it.
 *
 * Memory is an arena from the end of the stack to the end of the linear memory, which grows as it must and never shrinks: blocks
 * are taken one after the other and given back from the last. There is no malloc, no stdio, no libc beyond mem*.
 *
 * Observations come as the data has them and are prepared here, by the model file's own preprocessing; results that have a unit
 * leave in the data's.
 *
 * Pointers and counts come from mtan.js and are trusted; the model file and the observations are checked by the library. */
#include "../../mtan.h"
#ifdef MTAN_DOUBLE
#error "mtan.js moves floats"
#endif
#ifdef MTAN_WITH_WASM
#include "../../simd/mtan_simd.h"
#define BACKEND mtan_backend_wasm
#else
#define BACKEND mtan_backend_scalar
#endif

#define EXPORT(name) __attribute__((export_name(name))) /* the linker exports no static function */

enum {
    PAGE = 65536, /* bytes of WebAssembly's unit of memory */
    ALIGN = 64    /* as model files lay out their tensors */
};

/* mtan.js writes observations and reads what was found by these places. */
typedef char web_layout[sizeof(mtan_observation) == 24 && offsetof(mtan_observation, channel) == 8 &&
                                offsetof(mtan_observation, value) == 16 && offsetof(mtan_prepared, far_times) == 20 &&
                                offsetof(mtan_prepared, origin) == 24
                            ? 1
                            : -1];

extern unsigned char __heap_base; /* of the linker: its address is where the stack ends */

static struct {
    uintptr_t top; /* of the arena; 0: nothing was ever taken */
    uintptr_t end_of_model;
    mtan_file file;
    mtan_model model;
    mtan_prep prep;
    const char *key; /* of the metadata that preparation stumbled over; null: over none */
    mtan_predictor predictor;
    mtan_record record;
    mtan_prepared found; /* what became of its observations */
} web;

/* ---- arena ---- */

/* n bytes at a multiple of 64, or null when the memory cannot grow. */
EXPORT("take") void *web_take(size_t n) {
    const uintptr_t from = web.top ? web.top : ((uintptr_t)&__heap_base + ALIGN - 1) / ALIGN * ALIGN;
    const uintptr_t room = (uintptr_t)__builtin_wasm_memory_size(0) * PAGE;
    const uintptr_t most = UINTPTR_MAX - PAGE - from;
    if (n > most - ALIGN) return NULL;
    web.top = from + (n + ALIGN - 1) / ALIGN * ALIGN;
    if (web.top > room && __builtin_wasm_memory_grow(0, (web.top - room + PAGE - 1) / PAGE) == SIZE_MAX) {
        web.top = from;
        return NULL;
    }
    return (void *)from;
}

/* Gives back `block` and all that was taken after it. */
EXPORT("release") void web_release(void *block) {
    web.top = (uintptr_t)block;
}

/* ---- model ---- */

/* Weights of other types than F32 are copied behind the file: where matrices in I8 lie, the library opens them for its small
 * path, and a predictor needs reals. */
static mtan_status open_weights(void) {
    size_t count = 0;
    mtan_real *weights;
    mtan_status status = mtan_model_open(&web.model, &web.file, NULL);
    if (status == MTAN_OK && web.model.precision != MTAN_INT8) return status;
    if (status != MTAN_OK && status != MTAN_ERR_SHAPE) return status;
    if ((status = mtan_model_load_count(&web.file, NULL, &count)) != MTAN_OK) return status;
    weights = web_take(count * sizeof *weights);
    return weights ? mtan_model_load(&web.model, weights, count, &web.file, NULL) : MTAN_ERR_MEMORY;
}

static mtan_status open_prep(void) {
    size_t bytes = 0;
    void *memory;
    mtan_status status = mtan_prep_size(&web.file, &bytes);
    if (status != MTAN_OK) return status;
    memory = web_take(bytes);
    return memory ? mtan_prep_open(&web.prep, &web.file, memory, bytes, &web.key) : MTAN_ERR_MEMORY;
}

/* The model in a safetensors file that was written to a block of the arena and stays there. */
EXPORT("open") mtan_status web_open(const void *blob, size_t bytes) {
    mtan_status status = mtan_file_open(&web.file, blob, bytes);
    if (status == MTAN_OK) status = open_weights();
    if (status == MTAN_OK) status = open_prep();
    web.model.backend = &BACKEND;
    web.end_of_model = web.top;
    return status;
}

EXPORT("failed_key") const char *web_failed_key(void) {
    return web.key;
}

/* Makes the predictor anew, for records of so many events and times; takes back everything behind the model. */
EXPORT("fit") mtan_status web_fit(int32_t events, int32_t times, int32_t samples) {
    const mtan_bounds most = {1, events, times};
    size_t bytes = 0;
    void *memory;
    mtan_status status;
    web.top = web.end_of_model;
    web.model.config.predict_samples = samples;
    status = mtan_predictor_size(&web.model, &most, &bytes);
    if (status != MTAN_OK) return status;
    memory = web_take(bytes);
    return memory ? mtan_predictor_init(&web.predictor, &web.model, &most, memory, bytes) : MTAN_ERR_MEMORY;
}

/* A setting of the model ("enc_heads"): zero-terminated. */
EXPORT("text") mtan_status web_text(const char *key, char *text, size_t size) {
    return mtan_config_get(&web.model.config, key, text, size);
}

EXPORT("is_int8") int32_t web_is_int8(void) {
    return web.model.precision == MTAN_INT8;
}

/* The K reference points that a model was given, null where they are even or the record's own. */
EXPORT("reference") const mtan_real *web_reference(void) {
    return web.model.config.reference == MTAN_REF_GIVEN ? web.model.config.ref : NULL;
}

EXPORT("message") const char *web_message(mtan_status status) {
    return mtan_status_message(status);
}

/* ---- preparation: names, ranges, times ---- */

EXPORT("channel_name") const char *web_channel_name(int32_t channel) {
    return web.prep.channel_names ? web.prep.channel_names[channel] : NULL;
}

EXPORT("class_name") const char *web_class_name(int32_t c) {
    return web.prep.class_names ? web.prep.class_names[c] : NULL;
}

EXPORT("channel_named") int32_t web_channel_named(const char *name) {
    return mtan_prep_channel_named(&web.prep, name);
}

EXPORT("positive") int32_t web_positive(void) {
    return web.prep.positive;
}

EXPORT("unit") const char *web_unit(void) {
    return web.prep.unit;
}

EXPORT("fitted") int32_t web_fitted(void) {
    return web.prep.fitted;
}

EXPORT("from_first") int32_t web_from_first(void) {
    return web.prep.from_first;
}

/* The first and the last of a channel's values in training (0, 1), or of the times where channel is -1. They cross where they
 * are not known. */
EXPORT("range") double web_range(int32_t channel, int32_t end) {
    const mtan_prep_channel *c = channel >= 0 && web.prep.channel ? &web.prep.channel[channel] : NULL;
    if (channel < 0) return end ? web.prep.last : web.prep.first;
    if (!c || !(c->has & MTAN_HAS_RANGE)) return end ? 0 : 1;
    return (double)(end ? c->most : c->least);
}

EXPORT("far_value") int32_t web_far_value(int32_t channel, double value) {
    return mtan_prep_far_value(&web.prep, channel, value);
}

EXPORT("far_time") int32_t web_far_time(double time) { /* of the record's clock */
    return mtan_prep_far_time(&web.prep, time - web.found.origin);
}

/* The model's time of a time on the record's clock, and back. */
EXPORT("model_time") mtan_real web_model_time(double time) {
    return mtan_prep_time(&web.prep, time - web.found.origin);
}

EXPORT("raw_time") double web_raw_time(mtan_real time) {
    return mtan_prep_raw_time(&web.prep, (double)time) + web.found.origin;
}

/* ---- a record and what the model makes of it ---- */

/* The record of the calls below, from n raw observations of the arena. What it is prepared into is taken behind them. */
EXPORT("record") mtan_status web_record(const mtan_observation *raw, int32_t n) {
    const int32_t room = n + web.prep.channels; /* for channels that get a value where they have none */
    const mtan_record none = {0};
    mtan_event *events = n <= INT32_MAX - web.prep.channels ? web_take((size_t)room * sizeof *events) : NULL;
    mtan_status status;
    if (!events) return MTAN_ERR_MEMORY;
    status = mtan_prep_record(&web.prep, raw, n, events, room, &web.found);
    web.record = none;
    web.record.events = events, web.record.n_events = status == MTAN_OK ? web.found.events : 0;
    return status;
}

EXPORT("found") const mtan_prepared *web_found(void) {
    return &web.found;
}

/* Query times on the record's clock: without them the distinct times of its events. Ascending. */
EXPORT("ask") mtan_status web_ask(const double *times, int32_t n) {
    mtan_real *counted = web_take((size_t)n * sizeof *counted);
    if (!counted) return MTAN_ERR_MEMORY;
    for (int32_t q = 0; q < n; q++) counted[q] = web_model_time(times[q]);
    web.record.times = counted, web.record.n_times = n;
    return MTAN_OK;
}

/* What samples are drawn from: noise of the arena, or null: from seed and name, as the mtan command does. */
EXPORT("draw")
void web_draw(const mtan_real *noise, int32_t n, const char *name, size_t name_length, uint32_t seed) {
    web.record.noise = noise, web.record.n_noise = n;
    web.record.id = mtan_bytes_hash(name, name_length);
    web.predictor.seed = seed;
}

/* The distinct times of the record's events, ascending, in the model's units; null for none. Returns how many, or a negative
 * status. */
EXPORT("times") int32_t web_times(mtan_real *distinct) {
    const uintptr_t top = web.top;
    int32_t times = 0, *scratch = web_take(2 * sizeof *scratch * (size_t)web.record.n_events);
    const mtan_status status = scratch ? mtan_record_times(&web.record, scratch, &times) : MTAN_ERR_MEMORY;
    web.top = top;
    if (status != MTAN_OK) return (int32_t)status;
    for (int32_t i = 0, k = 0; distinct && i < web.record.n_events; i++)
        if (i == 0 || web.record.events[i].time > web.record.events[i - 1].time)
            distinct[k++] = web.record.events[i].time;
    return times;
}

EXPORT("classify") mtan_status web_classify(mtan_real *probability) {
    return mtan_predictor_classify(&web.predictor, &web.record, 1, probability);
}

/* Means and standard deviations (n_times, D) in the data's units; mean and sd are scratch of the same shape. */
EXPORT("interpolate")
mtan_status web_interpolate(mtan_real *mean, mtan_real *sd, double *raw_mean, double *raw_sd) {
    const size_t D = (size_t)web.prep.channels, n = (size_t)web.record.n_times * D;
    const mtan_status status = mtan_predictor_interpolate(&web.predictor, &web.record, mean, sd);
    if (status != MTAN_OK) return status;
    for (size_t i = 0; i < n; i++) {
        raw_mean[i] = mtan_prep_raw_value(&web.prep, (int32_t)(i % D), (double)mean[i]);
        raw_sd[i] = mtan_prep_raw_spread(&web.prep, (int32_t)(i % D), (double)sd[i]);
    }
    return MTAN_OK;
}

EXPORT("attention") mtan_status web_attention(int32_t head, int32_t channel, mtan_real *weight) {
    return mtan_predictor_attention(&web.predictor, &web.record, head, channel, weight);
}
