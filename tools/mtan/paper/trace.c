/* See trace.h. */
#include "trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef MTAN_DOUBLE

#include "../../data/memory.h"
#include "cost.h"

/* Most driver functions here ignore their parameters. */
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif

/* ---- the counter ---- */

static roofline_entry kernels[KERNEL_COUNT] = {
#define X(name, arguments, x, y, hot) {#name, 0, 0, 0, 0, 0, 0},
    MTAN_CUDA_KERNELS(X)
#undef X
};

static struct stream { double launches, sent, fetched, copies, waits; } streams[2];

void trace_reset(void) {
    for (int i = 0; i < KERNEL_COUNT; i++) {
        const char *name = kernels[i].name;
        memset(&kernels[i], 0, sizeof kernels[i]);
        kernels[i].name = name;
    }
    memset(streams, 0, sizeof streams);
}

/* A stream without kernels runs in parallel to the other one, so its copies count as sent ahead. */
void trace_read(roofline *r) {
    memset(r, 0, sizeof *r);
    memcpy(r->entry, kernels, sizeof kernels);
    for (const struct stream *s = streams; s < streams + 2; s++)
        if (s->launches > 0) {
            r->sent += s->sent, r->fetched += s->fetched;
            r->copies += s->copies, r->waits += s->waits;
        } else r->ahead += s->sent;
}

/* ---- the driver ---- */

/* A function for each entry of the driver's table that does nothing and succeeds: nothing_init, nothing_device_count,
 * ... */
#define X(name, symbol, parameters)                                                                                    \
    static int nothing_##name parameters {                                                                             \
        return 0;                                                                                                      \
    }
MTAN_CUDA_DRIVER(X)
#undef X

enum { OUT_OF_MEMORY = 2, NOT_FOUND = 500 }; /* values of CUDA */

static int device_count(int *count) {
    return *count = 1, 0;
}

static int context_retain(void **context, int device) {
    return *context = kernels, 0;
}

/* Refuses a kernel without a cost, since it cannot be counted. */
static int function_get(void **function, void *module, const char *name) {
    for (int i = 0; i < KERNEL_COUNT; i++) {
        const size_t n = strlen(kernels[i].name);
        if (strncmp(kernels[i].name, name, n) != 0 || strcmp(name + n, "_kernel") != 0) continue;
        *function = &kernels[i];
        return kernel_has_cost((mtan_cuda_kernel)i) ? 0 : NOT_FOUND;
    }
    return NOT_FOUND;
}

static int stream_create(void **stream, unsigned flags) {
    static int n;
    return *stream = &streams[n++ % 2], 0;
}

static int stream_sync(void *stream) {
    return ((struct stream *)stream)->waits++, 0;
}

static int host_alloc(void **memory, size_t bytes, unsigned flags) {
    return (*memory = calloc(1, bytes)) ? 0 : OUT_OF_MEMORY;
}

static int host_free(void *memory) {
    return free(memory), 0;
}

static int alloc(mtan_cuda_address *address, size_t bytes) {
    void *memory;
    const int error = host_alloc(&memory, bytes, 0);
    return *address = (mtan_cuda_address)(uintptr_t)memory, error;
}

static int free_block(mtan_cuda_address address) {
    return host_free((void *)(uintptr_t)address);
}

static int upload(mtan_cuda_address to, const void *from, size_t bytes, void *stream) {
    struct stream *s = stream;
    s->sent += (double)bytes, s->copies++;
    return memcpy((void *)(uintptr_t)to, from, bytes), 0;
}

static int download(void *to, mtan_cuda_address from, size_t bytes, void *stream) {
    struct stream *s = stream;
    s->fetched += (double)bytes, s->copies++;
    return memcpy(to, (const void *)(uintptr_t)from, bytes), 0;
}

static int launch(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                  unsigned block_z, unsigned shared, void *stream, void **arguments, void **extra) {
    roofline_entry *e = function;
    const unsigned grid[3] = {grid_x, grid_y, grid_z};
    const cost c = kernel_cost((mtan_cuda_kernel)(e - kernels), arguments[0], grid);
    ((struct stream *)stream)->launches++;
    e->launches++;
    e->flops += c.flops, e->busy += c.busy, e->turns += c.turns;
    e->read += 4 * c.read, e->written += 4 * c.written;
    return 0;
}

static mtan_cuda_driver driver_that_counts(void) {
#define X(name, symbol, parameters) nothing_##name,
    mtan_cuda_driver d = {MTAN_CUDA_DRIVER(X)};
#undef X
    d.device_count = device_count, d.context_retain = context_retain, d.function_get = function_get;
    d.stream_create = stream_create, d.stream_sync = stream_sync;
    d.host_alloc = host_alloc, d.host_free = host_free, d.alloc = alloc, d.free = free_block;
    d.upload = upload, d.download = download, d.launch = launch;
    return d;
}

/* ---- the device ---- */

static mtan_cuda counting, *before;
static memory_undo undo;

static void put_back(void *unused) {
    (void)unused;
    device_use(before);
    mtan_cuda_close(&counting);
}

const mtan_backend *trace_open(char text[DEVICE_TEXT]) {
    static mtan_cuda_driver driver;
    driver = driver_that_counts();
    if (mtan_cuda_open(&counting, &driver, NULL, 0, NULL))
        return snprintf(text, DEVICE_TEXT, "%s", counting.message), NULL;
    before = device_use(&counting);
    memory_remember(&undo, put_back, NULL);
    return &mtan_backend_cuda;
}

void trace_close(void) {
    memory_forget(&undo);
    put_back(NULL);
}

#else

const mtan_backend *trace_open(char text[DEVICE_TEXT]) {
    snprintf(text, DEVICE_TEXT, "what a GPU would do is counted in float: this program computes in double");
    return NULL;
}

void trace_close(void) {}

void trace_reset(void) {}

void trace_read(roofline *r) {
    memset(r, 0, sizeof *r);
}

#endif
