/* The WebAssembly module that tools/web/mtan.js calls: memory, and exported names for the functions of
 * tools/mtan/flat/flat.h, with number types that JavaScript has. An instance of the module is one model, so the state
 * below is per model, and dropping the instance frees all of it.
 *
 * Memory is an arena from the end of the stack to the end of the linear memory, which grows as needed and never
 * shrinks: blocks are taken one after the other and released in reverse order. There is no malloc, no stdio, and no
 * libc beyond mem* and strlen.
 *
 * Calls return 0, or 1 with a sentence in message(). Pointers and counts come from mtan.js and are trusted; the library
 * checks the model file and the observations. */
#include <stdarg.h>
#include <string.h>

#include "records.h"
#ifdef MTAN_DOUBLE
#error "mtan.js moves floats"
#endif
#ifdef MTAN_WITH_WASM
#include "../../simd/mtan_simd.h"
const mtan_backend *const web_backend = &mtan_backend_wasm;
#else
const mtan_backend *const web_backend = &mtan_backend_scalar;
#endif

#define EXPORT(name) __attribute__((export_name(name))) /* the linker does not export static functions */

enum {
    PAGE = 65536, /* bytes of WebAssembly's unit of memory */
    ALIGN = 64    /* the alignment of tensors in model files */
};

extern unsigned char __heap_base; /* from the linker: its address is the end of the stack */

static struct {
    uintptr_t top;         /* of the arena; 0: nothing taken yet */
    uintptr_t end_of_kept; /* end of the model and its streams */
    mtan_flat_model *model;
    mtan_flat_data *data; /* the record of the calls below */
    int64_t offset[2], queries[2];
    char message[512];
} web;

/* ---- memory and messages ---- */

/* Returns n bytes at a multiple of 64, or null if the memory cannot grow. */
EXPORT("take") void *flat_take(size_t n) {
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

/* Releases `block` and everything taken after it. */
EXPORT("release") void flat_give_back(void *block) {
    if (block) web.top = (uintptr_t)block;
}

int flat_fail(const char *text, ...) {
    size_t used = 0;
    va_list more;
    va_start(more, text);
    for (; text; text = va_arg(more, const char *)) {
        const size_t length = strlen(text), room = sizeof web.message - 1 - used;
        memcpy(web.message + used, text, length < room ? length : room);
        used += length < room ? length : room;
    }
    va_end(more);
    web.message[used] = 0;
    return 0;
}

/* A call that fails releases everything that it took. */
int32_t flat_call(int (*work)(void *job), void *job) {
    void *floor = flat_take(0);
    web.message[0] = 0;
    if (work(job)) return 0;
    flat_give_back(floor);
    return 1;
}

EXPORT("message") const char *mtan_flat_message(void) {
    return web.message;
}

/* Releases everything except the model and its streams. */
EXPORT("drop") void web_drop(void) {
    web.top = web.end_of_kept;
}

/* ---- the model ---- */

/* Opens a safetensors file that was written to a block of the arena and stays there. */
EXPORT("open") int32_t web_open(const void *bytes, size_t n) {
    web.model = mtan_flat_model_open(bytes, n);
    web.end_of_kept = web.top;
    return web.model ? 0 : 1;
}

/* Drops the previous room first. */
EXPORT("room") int32_t web_fit(int32_t events, int32_t times, int32_t samples) {
    web_drop();
    return web_room(web.model, events, times, samples);
}

/* A setting ("enc_heads") or a value of the metadata: zero-terminated. */
EXPORT("text") int32_t web_text(const char *key, char *text, size_t size) {
    return mtan_flat_model_text(web.model, key, text, size, NULL);
}

EXPORT("outputs") int32_t web_outputs(void) {
    return mtan_flat_model_outputs(web.model);
}

EXPORT("channel") const char *web_channel(int32_t index) {
    return mtan_flat_model_channel(web.model, index);
}

EXPORT("class") const char *web_class(int32_t index) {
    return mtan_flat_model_class(web.model, index);
}

EXPORT("positive") int32_t web_positive(void) {
    return mtan_flat_model_positive(web.model);
}

EXPORT("unit") const char *web_unit(void) {
    return mtan_flat_model_unit(web.model);
}

EXPORT("from_first") int32_t web_from_first(void) {
    return mtan_flat_model_from_first(web.model);
}

EXPORT("range") int32_t web_range(int32_t channel, double *ends) {
    return mtan_flat_model_range(web.model, channel, ends, ends + 1);
}

EXPORT("fitted") int32_t web_fitted(void) {
    return flat_core_of(web.model)->prep.fitted;
}

EXPORT("is_int8") int32_t web_is_int8(void) {
    return flat_core_of(web.model)->model.precision == MTAN_INT8;
}

EXPORT("channel_named") int32_t web_channel_named(const char *name) {
    return mtan_prep_channel_named(&flat_core_of(web.model)->prep, name);
}

EXPORT("far_value") int32_t web_far_value(int32_t channel, double value) {
    return mtan_prep_far_value(&flat_core_of(web.model)->prep, channel, value);
}

/* Both take a time in the data's unit, counted from the record's origin; model_time returns it in the model's units. */
EXPORT("far_time") int32_t web_far_time(double time) {
    return mtan_prep_far_time(&flat_core_of(web.model)->prep, time);
}

EXPORT("model_time") mtan_real web_model_time(double time) {
    return mtan_prep_time(&flat_core_of(web.model)->prep, time);
}

/* ---- a record and its predictions ---- */

/* Sets the record for the calls below, with n observations in columns of the arena. */
EXPORT("record")
int32_t web_record(const char *name, int32_t n, int32_t n_channels, const char *channels, const double *time,
                   const int32_t *channel, const double *value) {
    web.offset[1] = n;
    web.data = mtan_flat_data_new(1, name, web.offset, n_channels, channels, time, NULL, channel, value);
    return web.data ? 0 : 1;
}

EXPORT("queries") void web_queries(int32_t n, const double *times) {
    web.queries[1] = n;
    mtan_flat_data_queries(web.data, web.queries, times);
}

EXPORT("noise") void web_samples(int32_t n, const mtan_real *noise) {
    web_noise(web.data, n, noise);
}

EXPORT("found") int32_t web_became(int32_t *counts, double *origin) {
    return web_found(web.model, web.data, counts, origin);
}

/* Returns the number of distinct times, or -1; with null, only counts them. */
EXPORT("times") int32_t web_times(double *times) {
    int64_t offset[2];
    return mtan_flat_times(web.model, web.data, offset, times) == 0 ? (int32_t)offset[1] : -1;
}

/* The same for the events that the model sees, with their times in its units. */
EXPORT("event_times") int32_t web_event_times(double *times) {
    int64_t offset[2];
    return mtan_flat_prepare(web.model, web.data, offset, times, NULL, NULL) == 0 ? (int32_t)offset[1] : -1;
}

EXPORT("predict") int32_t web_predict(int32_t samples, uint32_t seed, double *out) {
    return mtan_flat_predict(web.model, web.data, 1, samples, seed, out);
}

EXPORT("interpolate") int32_t web_interpolate(int32_t samples, uint32_t seed, double *mean, double *sd) {
    return mtan_flat_interpolate(web.model, web.data, 1, samples, seed, mean, sd);
}

EXPORT("attention") int32_t web_attention(int32_t head, int32_t channel, double *weight, double *reference) {
    return mtan_flat_attention(web.model, web.data, 0, head, channel, weight, reference);
}

/* ---- streams ---- */

/* Returns null on failure. The stream stays as long as the model, and so does everything taken since drop(), so call
 * drop() first. */
EXPORT("stream_new") mtan_flat_stream *web_stream_new(const char *name, int32_t samples, uint32_t seed) {
    mtan_flat_stream *stream = mtan_flat_stream_new(web.model, name, samples, seed);
    web.end_of_kept = web.top;
    return stream;
}

EXPORT("stream_push")
int32_t web_stream_push(mtan_flat_stream *stream, double time, const char *channel, double value) {
    return mtan_flat_stream_push(stream, time, 0, channel, value);
}

EXPORT("stream_predict") int32_t web_stream_predict(mtan_flat_stream *stream, double time, double *out) {
    return mtan_flat_stream_predict(stream, time, 0, out);
}

EXPORT("stream_interpolate")
int32_t web_stream_interpolate(mtan_flat_stream *stream, double time, double *mean, double *sd) {
    return mtan_flat_stream_interpolate(stream, time, 0, mean, sd);
}

EXPORT("stream_reset") int32_t web_stream_reset(mtan_flat_stream *stream) {
    return mtan_flat_stream_reset(stream);
}
