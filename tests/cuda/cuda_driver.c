/* See cuda_driver.h. */
#ifdef MTAN_WITH_CUDA_SHIM

#include "cuda_driver.h"
#include "cuda_cases.h"

#include <stdlib.h>
#include <string.h>

driver_state test_driver;
const unsigned char test_driver_image[] = "kernels.cu";

static int lost; /* the error that ended the context */

/* The error of this call, 0 mostly. An error of a kernel stays with the context. */
static int next_call(const char *name) {
    int fails;
    test_driver.calls++;
    fails = test_driver.calls == test_driver.fail_at || (test_driver.fail_in && strcmp(name, test_driver.fail_in) == 0);
    if (fails) test_driver.failed = name;
    if (lost) return lost;
    if (!fails) return 0;
    if (test_driver.error >= 700 && test_driver.error < 720) lost = test_driver.error;
    return test_driver.error;
}

#define CALL()                                                                                                         \
    do {                                                                                                               \
        const int error = next_call(__func__);                                                                         \
        if (error) return error;                                                                                       \
    } while (0)

int driver_given_out(void) {
    const driver_state *d = &test_driver;
    return d->contexts + d->modules + d->streams + d->events + d->blocks + d->pinned + d->blas;
}

void driver_reset(void) {
    lost = 0;
    test_driver.calls = test_driver.fail_at = test_driver.launches = test_driver.products = 0;
    test_driver.failed = test_driver.fail_in = NULL;
    test_driver.blas_fails = 0;
}

/* ---- the device ---- */

static int init(unsigned flags) {
    CALL();
    return flags == 0 ? 0 : 1;
}

static int device_count(int *count) {
    CALL();
    *count = 1;
    return 0;
}

static int device_get(int *device, int ordinal) {
    CALL();
    *device = 10 + ordinal; /* handles are not ordinals */
    return ordinal == 0 ? 0 : 101;
}

static int device_name(char *name, int size, int device) {
    CALL();
    if (device != 10 || size < 16) return 101;
    strcpy(name, "a shim");
    return 0;
}

static int device_attribute(int *value, int attribute, int device) {
    CALL();
    *value = attribute == 75 ? 5 : 2; /* a Titan X of 2015 */
    return device == 10 ? 0 : 101;
}

static char the_context, the_module;
static void *current;

static int context_retain(void **context, int device) {
    CALL();
    if (device != 10) return 101;
    *context = &the_context;
    test_driver.contexts++;
    return 0;
}

static int context_release(int device) {
    lost = 0;
    test_driver.contexts -= device == 10;
    return next_call(__func__);
}

static int context_use(void *context) {
    CALL();
    current = context;
    return 0;
}

static int module_load(void **module, const void *image) {
    CALL();
    if (image != test_driver_image) return 200;
    if (current != &the_context) return 201;
    *module = &the_module;
    test_driver.modules++;
    return 0;
}

/* What is given back is given back, whatever the driver says of it: as with a real one whose context is lost. */
static int module_unload(void *module) {
    test_driver.modules -= module == &the_module;
    return next_call(__func__);
}

static int function_get(void **function, void *module, const char *name) {
    CALL();
    if (module != &the_module) return 400;
    for (int i = 0; i < cuda_kernel_count; i++)
        if (strcmp(cuda_kernels[i].name, name) == 0) {
            *function = (void *)(uintptr_t)&cuda_kernels[i];
            return 0;
        }
    return 500;
}

/* ---- streams: queues of things to do ---- */

typedef struct {
    int recorded, reached; /* how often it was put into a stream, and how often it came up */
} event;

typedef struct piece {
    enum { COPY, LAUNCH, RECORD, WAIT } kind;
    void *to;
    const void *from;
    size_t bytes;
    void *own; /* what `from` was, when it must not be waited for */
    const shim_kernel *kernel;
    shim_index grid, block;
    event *event;
    int turn;
    struct piece *next;
} piece;

typedef struct stream {
    piece *first, **last;
    struct stream *next;
} stream;

static stream *streams;

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
    if (error && !lost) lost = error;
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
        stream *other = streams;
        if (advance(s)) continue;
        while (other && !advance(other)) other = other->next;
    }
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
    for (stream *other = streams; test_driver.deferred == 1 && other; other = other->next)
        if (draw(4) == 0) advance(other);
    return lost;
}

static int stream_create(void **out, unsigned flags) {
    stream *s;
    CALL();
    (void)flags;
    s = calloc(1, sizeof *s);
    if (!s) exit(2);
    s->last = &s->first;
    s->next = streams;
    streams = s;
    *out = s;
    test_driver.streams++;
    return 0;
}

static int stream_destroy(void *given) {
    stream **at = &streams, *s = given;
    finish(s);
    while (*at != s) at = &(*at)->next;
    *at = s->next;
    free(s);
    test_driver.streams--;
    return next_call(__func__);
}

static int stream_sync(void *given) {
    const int error = next_call(__func__);
    finish(given);
    return error ? error : lost;
}

static int event_create(void **out, unsigned flags) {
    event *e;
    CALL();
    (void)flags;
    e = calloc(1, sizeof *e);
    if (!e) exit(2);
    *out = e;
    test_driver.events++;
    return 0;
}

static int event_destroy(void *given) {
    for (stream *s = streams; s; s = s->next) finish(s);
    free(given);
    test_driver.events--;
    return next_call(__func__);
}

static int event_record(void *given, void *to) {
    event *e = given;
    piece p;
    CALL();
    memset(&p, 0, sizeof p);
    p.kind = RECORD, p.event = e, p.turn = ++e->recorded;
    return put(to, p);
}

static int stream_wait(void *to, void *given, unsigned flags) {
    event *e = given;
    piece p;
    CALL();
    (void)flags;
    memset(&p, 0, sizeof p);
    p.kind = WAIT, p.event = e, p.turn = e->recorded;
    return put(to, p);
}

/* ---- memory ---- */

enum { ALIGNED = 256 }; /* as the driver gives memory out */

typedef struct block {
    void *base;
    char *from;
    size_t bytes;
    int pinned;
    struct block *next;
} block;

static block *blocks;

static block *block_with(const void *from, size_t bytes, int pinned) {
    const char *at = from;
    for (block *b = blocks; b; b = b->next)
        if (b->pinned == pinned && at >= b->from && at + bytes <= b->from + b->bytes) return b;
    return NULL;
}

static void *give(size_t bytes, int pinned) {
    block *b = malloc(sizeof *b);
    if (!b || !(b->base = malloc(bytes + ALIGNED))) exit(2);
    b->from = (char *)b->base + (ALIGNED - (uintptr_t)b->base % ALIGNED);
    memset(b->from, 0xFF, bytes);
    b->bytes = bytes, b->pinned = pinned, b->next = blocks;
    blocks = b;
    if (!pinned) shim_memory_add(b->from, bytes);
    *(pinned ? &test_driver.pinned : &test_driver.blocks) += 1;
    return b->from;
}

/* Freeing waits for everything that is under way. */
static int take_back(const char *name, const void *from, int pinned) {
    for (stream *s = streams; s; s = s->next) finish(s);
    for (block **at = &blocks; *at; at = &(*at)->next) {
        block *b = *at;
        if (b->from != from || b->pinned != pinned) continue;
        *at = b->next;
        if (!pinned) shim_memory_remove(b->from);
        free(b->base), free(b);
        *(pinned ? &test_driver.pinned : &test_driver.blocks) -= 1;
        return next_call(name);
    }
    return 1;
}

static int alloc(mtan_cuda_address *address, size_t bytes) {
    CALL();
    *address = (mtan_cuda_address)(uintptr_t)give(bytes, 0);
    return 0;
}

static int free_block(mtan_cuda_address address) {
    return take_back(__func__, (void *)(uintptr_t)address, 0);
}

static int host_alloc(void **memory, size_t bytes, unsigned flags) {
    CALL();
    (void)flags;
    *memory = give(bytes, 1);
    return 0;
}

static int host_free(void *memory) {
    return take_back(__func__, memory, 1);
}

/* From pinned memory a copy may start later; from other memory the driver has taken it when it returns. */
static int upload(mtan_cuda_address address, const void *from, size_t bytes, void *to) {
    piece p;
    CALL();
    memset(&p, 0, sizeof p);
    p.kind = COPY, p.to = (void *)(uintptr_t)address, p.from = from, p.bytes = bytes;
    if (!block_with(p.to, bytes, 0)) return 1;
    if (!block_with(from, bytes, 1)) p.from = p.own = copy_of(from, bytes);
    test_driver.uploaded++;
    return put(to, p);
}

static int download(void *memory, mtan_cuda_address address, size_t bytes, void *to) {
    piece p;
    CALL();
    memset(&p, 0, sizeof p);
    p.kind = COPY, p.to = memory, p.from = (void *)(uintptr_t)address, p.bytes = bytes;
    if (!block_with(p.from, bytes, 0)) return 1;
    return put(to, p);
}

/* ---- launches ---- */

static int launch(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                  unsigned block_z, unsigned shared, void *to, void **arguments, void **extra) {
    const shim_kernel *kernel = function;
    piece p;
    CALL();
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
    init,           device_count,    device_get,     device_name, device_attribute,
    context_retain, context_release, context_use,    module_load, module_unload,
    function_get,   stream_create,   stream_destroy, stream_sync, stream_wait,
    event_create,   event_destroy,   event_record,   alloc,       free_block,
    host_alloc,     host_free,       upload,         download,    launch,
    error_name};

/* ---- cuBLAS, as its manual defines it: column-major ---- */

static void *blas_stream;
static char the_blas;

static int blas_create(void **handle) {
    CALL();
    *handle = &the_blas;
    test_driver.blas++;
    return 0;
}

static int blas_destroy(void *handle) {
    test_driver.blas -= handle == &the_blas;
    return next_call(__func__);
}

static int blas_set_stream(void *handle, void *to) {
    CALL();
    blas_stream = to;
    return handle == &the_blas ? 0 : 1;
}

static int blas_sgemm(void *handle, int operation_a, int operation_b, int m, int n, int k, const float *alpha,
                      const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc) {
    CALL();
    if (test_driver.blas_fails) return 8;
    if (handle != &the_blas || lda < (operation_a ? k : m) || ldb < (operation_b ? n : k) || ldc < m) return 7;
    test_driver.products++;
    finish(blas_stream);
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
