/* See cuda_driver.h. */
#ifdef MTAN_WITH_CUDA_SHIM

#include "cuda_driver.h"
#include "cuda_cases.h"

#include <stdlib.h>
#include <string.h>

driver_state test_driver;
const unsigned char test_driver_image[] = "kernels.cu";

/* ---- contexts: one for each device, and a stack of them in the thread ---- */

enum { DEVICES = 2, FIRST_DEVICE = 10, MOST_PUSHED = 8 }; /* handles are not ordinals */
enum { INVALID_CONTEXT = 201, INVALID_HANDLE = 400 };     /* errors of CUDA's */

typedef struct context {
    int retained;
    int lost; /* the error that ended it */
} context;

static context contexts[DEVICES];
static void *pushed[MOST_PUSHED];
static int depth;

void *driver_current(void) {
    return depth ? pushed[depth - 1] : NULL;
}

void driver_set_current(void *given) {
    depth = given != NULL;
    pushed[0] = given;
}

/* Of a device, and not some other library's. */
static context *current(void) {
    for (context *c = contexts; c < contexts + DEVICES; c++)
        if (c == driver_current() && c->retained) return c;
    return NULL;
}

/* The error that a test wants of this call, 0 mostly. An error of a kernel stays with the context. */
static int wanted_error(const char *name) {
    int fails;
    test_driver.calls++;
    fails = test_driver.calls == test_driver.fail_at || (test_driver.fail_in && strcmp(name, test_driver.fail_in) == 0);
    if (!fails) return 0;
    test_driver.failed = name;
    if (test_driver.error >= 700 && test_driver.error < 720 && current()) current()->lost = test_driver.error;
    return test_driver.error;
}

/* The error of this call: that of the context, if it has one. */
static int next_call(const char *name) {
    const int before = current() ? current()->lost : 0, error = wanted_error(name);
    return before ? before : error;
}

#define CALL()                                                                                                         \
    do {                                                                                                               \
        const int error = next_call(__func__);                                                                         \
        if (error) return error;                                                                                       \
    } while (0)

/* A call that needs a device's context. */
#define CALL_IN_CONTEXT()                                                                                              \
    do {                                                                                                               \
        CALL();                                                                                                        \
        if (!current()) return INVALID_CONTEXT;                                                                        \
    } while (0)

/* ---- what is given out, by the context that was current ---- */

typedef enum { MODULE, STREAM, EVENT, BLOCK, PINNED, BLAS, THINGS } thing_kind;

typedef struct thing {
    thing_kind kind;
    context *owner;
    struct thing *next;
} thing;

static thing *things;
static int *const counts[THINGS] = {&test_driver.modules, &test_driver.streams, &test_driver.events,
                                    &test_driver.blocks,  &test_driver.pinned,  &test_driver.blas};

static void *new_thing(thing_kind kind, size_t bytes) {
    thing *t = calloc(1, bytes);
    if (!t) exit(2);
    t->kind = kind, t->owner = current(), t->next = things;
    things = t;
    *counts[kind] += 1;
    return t;
}

/* As the driver has it: what belongs to another context than the current one cannot be used. */
static int is_usable(const void *given, thing_kind kind) {
    for (const thing *t = things; t; t = t->next)
        if (t == given) return t->kind == kind && t->owner == current();
    return 0;
}

static void finish_all(void);
static void free_memory(thing *t);

static void remove_thing(thing *t) {
    thing **at = &things;
    finish_all();
    while (*at != t) at = &(*at)->next;
    *at = t->next;
    *counts[t->kind] -= 1;
    if (t->kind == BLOCK || t->kind == PINNED) free_memory(t);
    free(t);
}

/* What is given back is given back, whatever the driver says of it: as with a real one whose context is lost. */
static int take_back(const char *name, void *given, thing_kind kind) {
    if (!is_usable(given, kind)) return INVALID_HANDLE;
    remove_thing(given);
    return next_call(name);
}

int driver_given_out(void) {
    const driver_state *d = &test_driver;
    return d->contexts + d->modules + d->streams + d->events + d->blocks + d->pinned + d->blas;
}

void driver_reset(void) {
    for (int i = 0; i < DEVICES; i++) contexts[i].lost = 0;
    test_driver.calls = test_driver.fail_at = test_driver.launches = test_driver.products = 0;
    test_driver.failed = test_driver.fail_in = NULL;
    test_driver.blas_fails = test_driver.left = test_driver.hasty = 0;
    driver_set_current(NULL);
}

/* ---- the device ---- */

static int init(unsigned flags) {
    CALL();
    return flags == 0 ? 0 : 1;
}

static int device_count(int *count) {
    CALL();
    *count = DEVICES;
    return 0;
}

static int is_device(int device) {
    return device >= FIRST_DEVICE && device < FIRST_DEVICE + DEVICES;
}

static int device_get(int *device, int ordinal) {
    CALL();
    *device = FIRST_DEVICE + ordinal;
    return is_device(*device) ? 0 : 101;
}

static int device_name(char *name, int size, int device) {
    CALL();
    if (!is_device(device) || size < 16) return 101;
    strcpy(name, "a shim");
    return 0;
}

static int device_attribute(int *value, int attribute, int device) {
    CALL();
    *value = attribute == 75 ? 5 : 2; /* a Titan X of 2015 */
    return is_device(device) ? 0 : 101;
}

static int context_retain(void **out, int device) {
    CALL();
    if (!is_device(device)) return 101;
    contexts[device - FIRST_DEVICE].retained++;
    *out = &contexts[device - FIRST_DEVICE];
    test_driver.contexts++;
    return 0;
}

/* With the last that holds it a context goes, and all that is in it; `left` says how much that was. */
static int context_release(int device) {
    context *c = &contexts[device - FIRST_DEVICE];
    const int error = wanted_error(__func__);
    if (!is_device(device) || !c->retained) return 101;
    test_driver.contexts--;
    if (--c->retained > 0) return error;
    for (thing *t = things, *next; t; t = next) {
        next = t->next;
        if (t->owner == c) remove_thing(t), test_driver.left++;
    }
    c->lost = 0;
    return error;
}

static int context_push(void *given) {
    const int error = wanted_error(__func__);
    if (error) return error;
    if (!given || depth == MOST_PUSHED) return INVALID_CONTEXT;
    pushed[depth++] = given;
    return 0;
}

static int context_pop(void **out) {
    const int error = wanted_error(__func__);
    if (depth == 0) return INVALID_CONTEXT;
    *out = pushed[--depth];
    return error;
}

/* A function is known to one module, and so to one context. */
typedef struct {
    const shim_kernel *kernel;
    const thing *module;
} function;

typedef struct {
    thing base;
    function functions[128];
} module;

static int module_load(void **out, const void *image) {
    CALL_IN_CONTEXT();
    if (image != test_driver_image) return 200;
    *out = new_thing(MODULE, sizeof(module));
    return 0;
}

static int module_unload(void *given) {
    return take_back(__func__, given, MODULE);
}

static int function_get(void **out, void *given, const char *name) {
    module *m = given;
    CALL_IN_CONTEXT();
    if (!is_usable(given, MODULE)) return INVALID_HANDLE;
    for (int i = 0; i < cuda_kernel_count; i++)
        if (strcmp(cuda_kernels[i].name, name) == 0) {
            m->functions[i] = (function){&cuda_kernels[i], &m->base};
            *out = &m->functions[i];
            return 0;
        }
    return 500;
}

/* ---- streams: queues of things to do ---- */

typedef struct {
    thing base;
    int recorded, reached; /* how often it was put into a stream, and how often it came up */
} event;

typedef struct piece {
    enum { COPY, LAUNCH, RECORD, WAIT } kind;
    void *to;
    const void *from;
    size_t bytes;
    void *own; /* a kernel's arguments, which a launch takes at once */
    const shim_kernel *kernel;
    shim_index grid, block;
    event *event;
    int turn;
    struct piece *next;
} piece;

typedef struct {
    thing base;
    piece *first, **last;
} stream;

static stream *first_stream(thing *from) {
    while (from && from->kind != STREAM) from = from->next;
    return (stream *)(void *)from;
}

static int do_piece(const piece *p) {
    switch (p->kind) {
    case COPY: memcpy(p->to, p->from, p->bytes); break;
    case LAUNCH: return shim_launch(p->kernel, p->grid, p->block, p->own) ? 0 : 719;
    case RECORD: p->event->reached = p->turn; break;
    case WAIT: break;
    }
    return 0;
}

/* The first piece of a stream, unless it waits for another; 0: nothing was done. */
static int advance(stream *s) {
    piece *p = s->first;
    int error;
    if (!p || (p->kind == WAIT && p->event->reached < p->turn)) return 0;
    s->first = p->next;
    if (!s->first) s->last = &s->first;
    error = do_piece(p);
    if (error && !s->base.owner->lost) s->base.owner->lost = error;
    free(p->own), free(p);
    return 1;
}

static unsigned draw(unsigned n) {
    test_driver.random ^= test_driver.random << 13;
    test_driver.random ^= test_driver.random >> 7;
    test_driver.random ^= test_driver.random << 17;
    return (unsigned)(test_driver.random >> 33) % n;
}

/* Other streams only as far as this one waits for them. */
static void finish(stream *s) {
    while (s->first) {
        stream *other = first_stream(things);
        if (advance(s)) continue;
        while (other && !advance(other)) other = first_stream(other->base.next);
    }
}

static void finish_all(void) {
    for (stream *s = first_stream(things); s; s = first_stream(s->base.next)) finish(s);
}

static void *copy_of(const void *from, size_t bytes) {
    void *own = malloc(bytes ? bytes : 1);
    if (!own) exit(2);
    memcpy(own, from, bytes);
    return own;
}

static int put(void *to, piece p) {
    stream *s = to;
    piece *kept = copy_of(&p, sizeof p);
    kept->next = NULL;
    *s->last = kept;
    s->last = &kept->next;
    if (!test_driver.deferred) finish(s);
    for (stream *other = first_stream(things); test_driver.deferred == 1 && other;
         other = first_stream(other->base.next))
        if (draw(4) == 0) advance(other);
    return s->base.owner->lost;
}

static int stream_create(void **out, unsigned flags) {
    stream *s;
    CALL_IN_CONTEXT();
    (void)flags;
    *out = s = new_thing(STREAM, sizeof *s);
    s->last = &s->first;
    return 0;
}

static int stream_destroy(void *given) {
    return take_back(__func__, given, STREAM);
}

static int stream_sync(void *given) {
    const int error = next_call(__func__);
    stream *s = given;
    test_driver.waits++;
    if (!is_usable(given, STREAM)) return INVALID_HANDLE;
    finish(s);
    return error ? error : s->base.owner->lost;
}

static int event_create(void **out, unsigned flags) {
    CALL_IN_CONTEXT();
    (void)flags;
    *out = new_thing(EVENT, sizeof(event));
    return 0;
}

static int event_destroy(void *given) {
    return take_back(__func__, given, EVENT);
}

static int event_record(void *given, void *to) {
    event *e = given;
    piece p;
    CALL_IN_CONTEXT();
    if (!is_usable(given, EVENT) || !is_usable(to, STREAM)) return INVALID_HANDLE;
    memset(&p, 0, sizeof p);
    p.kind = RECORD, p.event = e, p.turn = ++e->recorded;
    return put(to, p);
}

static int stream_wait(void *to, void *given, unsigned flags) {
    event *e = given;
    piece p;
    CALL_IN_CONTEXT();
    (void)flags;
    if (!is_usable(given, EVENT) || !is_usable(to, STREAM)) return INVALID_HANDLE;
    memset(&p, 0, sizeof p);
    p.kind = WAIT, p.event = e, p.turn = e->recorded;
    return put(to, p);
}

/* ---- memory ---- */

enum { ALIGNED = 256 }; /* as the driver gives memory out */

typedef struct {
    thing base;
    void *memory;
    char *from;
    size_t bytes;
} block;

/* The block of the current context that has these bytes. */
static block *block_with(const void *from, size_t bytes, thing_kind kind) {
    const char *at = from;
    for (thing *t = things; t; t = t->next) {
        block *b = (block *)(void *)t;
        if (t->kind == kind && t->owner == current() && at >= b->from && at + bytes <= b->from + b->bytes) return b;
    }
    return NULL;
}

static void *give(size_t bytes, thing_kind kind) {
    block *b = new_thing(kind, sizeof *b);
    if (!(b->memory = malloc(bytes + ALIGNED))) exit(2);
    b->from = (char *)b->memory + (ALIGNED - (uintptr_t)b->memory % ALIGNED);
    b->bytes = bytes;
    memset(b->from, 0xFF, bytes);
    if (kind == BLOCK) shim_memory_add(b->from, bytes);
    return b->from;
}

static void free_memory(thing *t) {
    block *b = (block *)(void *)t;
    if (t->kind == BLOCK) shim_memory_remove(b->from);
    free(b->memory);
}

/* That freeing memory waits for kernels is nowhere promised. */
static int take_block_back(const char *name, const void *from, thing_kind kind) {
    block *b = block_with(from, 0, kind);
    for (stream *s = first_stream(things); s; s = first_stream(s->base.next))
        test_driver.hasty += s->first && s->base.owner == current();
    return b && b->from == from ? take_back(name, b, kind) : 1;
}

static int alloc(mtan_cuda_address *address, size_t bytes) {
    CALL_IN_CONTEXT();
    *address = (mtan_cuda_address)(uintptr_t)give(bytes, BLOCK);
    return 0;
}

static int free_block(mtan_cuda_address address) {
    return take_block_back(__func__, (void *)(uintptr_t)address, BLOCK);
}

static int host_alloc(void **memory, size_t bytes, unsigned flags) {
    test_driver.pinned_asked++;
    CALL_IN_CONTEXT();
    (void)flags;
    *memory = give(bytes, PINNED);
    return 0;
}

static int host_free(void *memory) {
    return take_block_back(__func__, memory, PINNED);
}

/* A copy reads its memory when it comes up. Of memory that is not pinned the manual says no more than that the driver may
 * take it before it returns, and GPUs that share the host's page tables need not. */
static int upload(mtan_cuda_address address, const void *from, size_t bytes, void *to) {
    piece p;
    CALL_IN_CONTEXT();
    memset(&p, 0, sizeof p);
    p.kind = COPY, p.to = (void *)(uintptr_t)address, p.from = from, p.bytes = bytes;
    if (!is_usable(to, STREAM)) return INVALID_HANDLE;
    if (!block_with(p.to, bytes, BLOCK)) return 1;
    test_driver.uploaded++;
    return put(to, p);
}

static int download(void *memory, mtan_cuda_address address, size_t bytes, void *to) {
    piece p;
    CALL_IN_CONTEXT();
    memset(&p, 0, sizeof p);
    p.kind = COPY, p.to = memory, p.from = (void *)(uintptr_t)address, p.bytes = bytes;
    if (!is_usable(to, STREAM)) return INVALID_HANDLE;
    if (!block_with(p.from, bytes, BLOCK)) return 1;
    return put(to, p);
}

/* ---- launches ---- */

static int launch(void *given, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                  unsigned block_z, unsigned shared, void *to, void **arguments, void **extra) {
    const shim_kernel *kernel = ((const function *)given)->kernel;
    piece p;
    CALL_IN_CONTEXT();
    if (!is_usable(((const function *)given)->module, MODULE) || !is_usable(to, STREAM)) return INVALID_HANDLE;
    if (shared != 0 || extra != NULL || grid_y > 65535 || grid_z > 65535) return 1;
    test_driver.launches++;
    test_driver.launched[kernel - cuda_kernels]++;
    memset(&p, 0, sizeof p);
    p.kind = LAUNCH, p.kernel = kernel;
    p.grid = (shim_index){grid_x, grid_y, grid_z};
    p.block = (shim_index){block_x, block_y, block_z};
    p.own = copy_of(arguments[0], kernel->bytes);
    return put(to, p);
}

static int error_name(int error, const char **name) {
    if (error == 999) return 1; /* one it does not know */
    *name = "CUDA_ERROR_OF_A_TEST";
    return 0;
}

const mtan_cuda_driver test_driver_functions = {
    init,         device_count, device_get,   device_name,   device_attribute, context_retain, context_release,
    context_push, context_pop,  module_load,  module_unload, function_get,     stream_create,  stream_destroy,
    stream_sync,  stream_wait,  event_create, event_destroy, event_record,     alloc,          free_block,
    host_alloc,   host_free,    upload,       download,      launch,           error_name};

/* ---- cuBLAS, as its manual defines it: column-major ---- */

typedef struct {
    thing base;
    void *to;
} blas_handle;

static int blas_create(void **out) {
    CALL_IN_CONTEXT();
    *out = new_thing(BLAS, sizeof(blas_handle));
    return 0;
}

static int blas_destroy(void *given) {
    return take_back(__func__, given, BLAS);
}

static int blas_set_stream(void *given, void *to) {
    CALL_IN_CONTEXT();
    if (!is_usable(given, BLAS) || !is_usable(to, STREAM)) return 1;
    ((blas_handle *)given)->to = to;
    return 0;
}

static int blas_sgemm(void *given, int operation_a, int operation_b, int m, int n, int k, const float *alpha,
                      const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc) {
    CALL_IN_CONTEXT();
    if (test_driver.blas_fails) return 8;
    if (!is_usable(given, BLAS) || !is_usable(((blas_handle *)given)->to, STREAM)) return 1;
    if (lda < (operation_a ? k : m) || ldb < (operation_b ? n : k) || ldc < m) return 7;
    test_driver.products++;
    finish(((blas_handle *)given)->to);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            double sum = 0;
            for (int p = 0; p < k; p++)
                sum += (double)a[operation_a ? p + i * lda : i + p * lda] *
                       (double)b[operation_b ? j + p * ldb : p + j * ldb];
            c[i + j * ldc] = (float)((double)*alpha * sum + (*beta != 0 ? (double)(*beta * c[i + j * ldc]) : 0));
        }
    return 0;
}

const mtan_cuda_blas test_blas_functions = {blas_create, blas_destroy, blas_set_stream, blas_sgemm};

#else

typedef int no_driver;

#endif
