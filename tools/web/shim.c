/* The library behind a WebAssembly module without imports: what tools/web/mtan.js calls. An instance of the module is one model,
 * so the state below is per model, and dropping the instance frees all of it.
 *
 * Memory is an arena from the end of the stack to the end of the linear memory, which grows as it must and never shrinks: blocks
 * are taken one after the other and given back from the last. There is no malloc, no stdio, no libc beyond mem*.
 *
 * Pointers and counts come from mtan.js and are trusted; the model file and the events are checked by the library. */
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

extern unsigned char __heap_base; /* of the linker: its address is where the stack ends */

static struct {
    uintptr_t top; /* of the arena; 0: nothing was ever taken */
    uintptr_t end_of_model;
    mtan_file file;
    mtan_model model;
    mtan_predictor predictor;
    mtan_record record;
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

/* The model in a safetensors file that was written to a block of the arena and stays there. Weights of other types than F32 are
 * copied behind it: where matrices in I8 lie, the library opens them for its small path, and a predictor needs reals. */
EXPORT("open") mtan_status web_open(const void *blob, size_t bytes) {
    size_t count = 0;
    mtan_real *weights;
    mtan_status status = mtan_file_open(&web.file, blob, bytes);
    if (status == MTAN_OK) status = mtan_model_open(&web.model, &web.file, NULL);
    if (status == MTAN_OK && web.model.precision == MTAN_INT8) status = MTAN_ERR_SHAPE;
    if (status == MTAN_ERR_SHAPE && (status = mtan_model_load_count(&web.file, NULL, &count)) == MTAN_OK) {
        weights = web_take(count * sizeof *weights);
        status = weights ? mtan_model_load(&web.model, weights, count, &web.file, NULL) : MTAN_ERR_MEMORY;
    }
    web.model.backend = &BACKEND;
    web.end_of_model = web.top;
    return status;
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

/* A setting of the model ("enc_heads") or, where it has no such setting, the value of that key in its file: zero-terminated. */
EXPORT("text") mtan_status web_text(const char *key, char *text, size_t size) {
    const mtan_status status = mtan_config_get(&web.model.config, key, text, size);
    return status == MTAN_ERR_MISSING ? mtan_file_metadata(&web.file, key, text, size, NULL) : status;
}

/* The K reference points that a model was given, null where they are even or the record's own. */
EXPORT("reference") const mtan_real *web_reference(void) {
    return web.model.config.reference == MTAN_REF_GIVEN ? web.model.config.ref : NULL;
}

EXPORT("message") const char *web_message(mtan_status status) {
    return mtan_status_message(status);
}

/* ---- a record and what the model makes of it ---- */

/* The record of the calls below: arrays of the arena. times null: the distinct times of the events. noise null: drawn from seed
 * and name, as the mtan command does. */
EXPORT("record")
void web_record(const mtan_event *events, int32_t n_events, const mtan_real *times, int32_t n_times,
                const mtan_real *noise, int32_t n_noise, const char *name, size_t name_length, uint32_t seed) {
    const mtan_record record = {events,  n_events, 0,    NULL,  times,
                                n_times, n_noise,  NULL, noise, mtan_bytes_hash(name, name_length)};
    web.record = record;
    web.predictor.seed = seed;
}

EXPORT("times") int32_t web_times(void) { /* distinct, or a negative status */
    const size_t top = web.top;
    int32_t times = 0, *scratch = web_take(2 * sizeof *scratch * (size_t)web.record.n_events);
    const mtan_status status = mtan_record_times(&web.record, scratch, &times);
    web.top = top;
    return status == MTAN_OK ? times : (int32_t)status;
}

EXPORT("classify") mtan_status web_classify(mtan_real *probability) {
    return mtan_predictor_classify(&web.predictor, &web.record, 1, probability);
}

EXPORT("interpolate") mtan_status web_interpolate(mtan_real *mean, mtan_real *sd) {
    return mtan_predictor_interpolate(&web.predictor, &web.record, mean, sd);
}

EXPORT("attention") mtan_status web_attention(int32_t head, int32_t channel, mtan_real *weight) {
    return mtan_predictor_attention(&web.predictor, &web.record, head, channel, weight);
}
