/* See mtan_cuda.h: a device, its memory and its streams, over a table of the driver's functions. Nothing here knows what
 * the kernels compute. */
#include "launch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Error numbers and attributes of CUDA's that matter here. */
enum {
    ERROR_MEMORY = 2,
    ERROR_NOT_INITIALIZED = 3,
    ERROR_STUB = 34, /* a library to link with, without a driver behind it */
    ERROR_OLD_DRIVER = 36,
    ERROR_DEVICE_UNAVAILABLE = 46,
    ERROR_NO_DEVICE = 100,
    ERROR_BAD_DEVICE = 101,
    ERROR_BAD_IMAGE = 200,
    ERROR_NO_IMAGE = 209,
    ERROR_MEMORY_BITS = 214,
    ERROR_BAD_PTX = 218,
    ERROR_LINK_BITS = 220,
    ERROR_NO_COMPILER = 221,
    ERROR_NEWER_PTX = 222,
    ERROR_NO_COMPILING = 223,
    ERROR_NOT_FOUND = 500,
    ERROR_ADDRESS = 700, /* what a kernel can do to its context */
    ERROR_TIMEOUT = 702,
    ERROR_DESTROYED = 709,
    ERROR_FIRST_FAULT = 710, /* of those up to 719 two are not faults of kernels */
    ERROR_REGISTERED = 712,
    ERROR_NOT_REGISTERED = 713,
    ERROR_LAST_FAULT = 719,
    ERROR_DRIVER_MISMATCH = 803,
    ERROR_COMPATIBILITY = 804
};
enum { MOST_SENT = 1 << 20 }; /* bytes that do not wait: a step sends a few KB besides its batch */
enum { ATTRIBUTE_MAJOR = 75, ATTRIBUTE_MINOR = 76, NON_BLOCKING = 1, NO_TIMING = 2 };

typedef char kernels_fit[KERNEL_COUNT <= MTAN_CUDA_MOST_KERNELS ? 1 : -1];
typedef char functions_agree[(int)MTAN_EXP == FUNCTION_EXP && (int)MTAN_LOG == FUNCTION_LOG &&
                                     (int)MTAN_SIN == FUNCTION_SIN && (int)MTAN_COS == FUNCTION_COS &&
                                     (int)MTAN_TANH == FUNCTION_TANH && (int)MTAN_SIGMOID == FUNCTION_SIGMOID &&
                                     (int)MTAN_SOFTPLUS == FUNCTION_SOFTPLUS && (int)MTAN_SQRT == FUNCTION_SQRT
                                 ? 1
                                 : -1];

typedef char orders_agree[(int)MTAN_ROWS_BY_RECORD == LAYOUT_RECORD && (int)MTAN_ROWS_BY_STEP == LAYOUT_STEP &&
                                  (int)MTAN_ROWS_BY_QUERY == LAYOUT_QUERY
                              ? 1
                              : -1];

/* The entries of a backend have no argument that could say on which device: this is the only state of the program. */
static mtan_cuda *in_use;

static const struct {
    const char *name;
    unsigned x, y;
} kernels[KERNEL_COUNT] = {
#define X(name, arguments, x, y, hot) {#name "_kernel", x, y},
    MTAN_CUDA_KERNELS(X)
#undef X
};

/* ---- failures ---- */

static mtan_cuda_status kind_of(int error) {
    switch (error) {
    case 0: return MTAN_CUDA_OK;
    case ERROR_MEMORY: return MTAN_CUDA_NO_MEMORY;
    case ERROR_NOT_INITIALIZED:
    case ERROR_STUB:
    case ERROR_OLD_DRIVER:
    case ERROR_DRIVER_MISMATCH:
    case ERROR_COMPATIBILITY: return MTAN_CUDA_NO_DRIVER;
    case ERROR_DEVICE_UNAVAILABLE:
    case ERROR_NO_DEVICE:
    case ERROR_BAD_DEVICE: return MTAN_CUDA_NO_DEVICE;
    case ERROR_BAD_IMAGE:
    case ERROR_NO_IMAGE:
    case ERROR_BAD_PTX:
    case ERROR_NO_COMPILER:
    case ERROR_NEWER_PTX:
    case ERROR_NO_COMPILING:
    case ERROR_NOT_FOUND: return MTAN_CUDA_NO_KERNELS;
    case ERROR_MEMORY_BITS:
    case ERROR_LINK_BITS:
    case ERROR_ADDRESS:
    case ERROR_TIMEOUT:
    case ERROR_DESTROYED: return MTAN_CUDA_LOST;
    case ERROR_REGISTERED:
    case ERROR_NOT_REGISTERED: return MTAN_CUDA_FAILED;
    default: return error >= ERROR_FIRST_FAULT && error <= ERROR_LAST_FAULT ? MTAN_CUDA_LOST : MTAN_CUDA_FAILED;
    }
}

static const char *driver_advice(int error) {
    switch (error) {
    case ERROR_STUB:
        return ": the libcuda found is a stub to link with, not a driver: take its folder out of LD_LIBRARY_PATH";
    case ERROR_DRIVER_MISMATCH:
        return ": libcuda and the driver that runs are of different versions: restart the machine, or install them "
               "together";
    case ERROR_COMPATIBILITY:
        return ": the libcuda found is of a cuda-compat package that does not serve this GPU: take it away, or update "
               "the driver";
    default: return ": the NVIDIA driver is not there, or too old";
    }
}

/* The image has code for some GPUs, and PTX that the driver compiles for newer ones: each can be missing or refused. */
static const char *image_advice(int error) {
    switch (error) {
    case ERROR_NO_IMAGE: return ": no code for this GPU: build the kernels with an nvcc that serves it (make cuda)";
    case ERROR_BAD_PTX:
        return ": the driver could not compile the kernels for this GPU: update the driver, or build them with an nvcc "
               "that serves the GPU (make cuda)";
    case ERROR_NO_COMPILER:
        return ": the driver lacks its compiler: install libnvidia-ptxjitcompiler, or build the kernels with an nvcc "
               "that serves this GPU (make cuda)";
    case ERROR_NEWER_PTX:
        return ": the driver is older than the nvcc that made the kernels: update the driver, or build them with an "
               "older nvcc (make cuda NVCC=...)";
    case ERROR_NO_COMPILING:
        return ": no code for this GPU, and compiling it is forbidden: unset CUDA_DISABLE_PTX_JIT and "
               "CUDA_DISABLE_JIT, or use an nvcc that serves the GPU (make cuda)";
    default: return ": these are not the kernels of this program: build them anew (make cuda)";
    }
}

static const char *advice(mtan_cuda_status status, int error) {
    switch (status) {
    case MTAN_CUDA_OK: return "";
    case MTAN_CUDA_NO_DRIVER: return driver_advice(error);
    case MTAN_CUDA_NO_DEVICE: return ": no such GPU, or another program has it";
    case MTAN_CUDA_NO_KERNELS: return image_advice(error);
    case MTAN_CUDA_NO_MEMORY: return ": out of memory: fewer records at once, or a smaller model";
    case MTAN_CUDA_LOST: return ": the GPU stopped";
    case MTAN_CUDA_FAILED: return "";
    }
    return "";
}

/* Writes the message; what a driver says of itself may be missing. */
static mtan_cuda_status explain(mtan_cuda *d, const char *what, int error) {
    const mtan_cuda_status status = kind_of(error);
    const char *name = NULL;
    if (d->driver->error_name(error, &name) != 0 || !name) name = "an unknown error";
    snprintf(d->message, sizeof d->message, "CUDA: %s failed with %s (%d)%s", what, name, error, advice(status, error));
    return status;
}

/* A failure that stays. */
static mtan_cuda_status check(mtan_cuda *d, const char *what, int error) {
    if (error != 0 && d->status == MTAN_CUDA_OK) d->status = explain(d, what, error);
    return d->status;
}

void mtan_cuda_refuse(const char *what) {
    if (!in_use || in_use->status != MTAN_CUDA_OK) return;
    in_use->status = MTAN_CUDA_FAILED;
    snprintf(in_use->message, sizeof in_use->message, "CUDA: %s", what);
}

mtan_cuda *mtan_cuda_current(void) {
    return in_use && in_use->status == MTAN_CUDA_OK ? in_use : NULL;
}

void mtan_cuda_use(mtan_cuda *device) {
    in_use = device;
}

/* Between `enter` and `leave` the driver works on this device. Then the thread has its own context again, which may be that of
 * another device or of another library. 0: nothing was entered, and the device has failed. */
static int enter(mtan_cuda *d) {
    int error;
    if (!d->context) {
        if (!d->status) snprintf(d->message, sizeof d->message, "CUDA: the device is not open");
        if (!d->status) d->status = MTAN_CUDA_FAILED;
        return 0;
    }
    error = d->driver->context_push(d->context);
    check(d, "cuCtxPushCurrent", error);
    return error == 0;
}

static mtan_cuda_status leave(mtan_cuda *d) {
    void *own;
    return check(d, "cuCtxPopCurrent", d->driver->context_pop(&own));
}

/* ---- opening and closing ---- */

/* The driver gives memory out at multiples of 256: what is aligned on the host is to be so in the image. */
static size_t beyond_boundary(const void *memory) {
    return (uintptr_t)memory % 256;
}

static mtan_cuda_status find_device(mtan_cuda *d, int ordinal) {
    const mtan_cuda_driver *k = d->driver;
    int count = 0, major = 0, minor = 0;
    if (check(d, "cuInit", k->init(0))) return d->status;
    if (check(d, "cuDeviceGetCount", k->device_count(&count))) return d->status;
    if (ordinal < 0 || ordinal >= count) {
        d->status = MTAN_CUDA_NO_DEVICE;
        snprintf(d->message, sizeof d->message, "CUDA: there is no GPU number %d: this machine has %d", ordinal, count);
        return d->status;
    }
    check(d, "cuDeviceGet", k->device_get(&d->number, ordinal));
    if (!d->status) check(d, "cuDeviceGetName", k->device_name(d->name, (int)sizeof d->name, d->number));
    if (!d->status) check(d, "cuDeviceGetAttribute", k->device_attribute(&major, ATTRIBUTE_MAJOR, d->number));
    if (!d->status) check(d, "cuDeviceGetAttribute", k->device_attribute(&minor, ATTRIBUTE_MINOR, d->number));
    d->capability = 10 * major + minor;
    return d->status;
}

static mtan_cuda_status load_kernels(mtan_cuda *d, const void *image) {
    if (check(d, "cuModuleLoadData", d->driver->module_load(&d->module, image))) d->module = NULL;
    for (int i = 0; !d->status && i < KERNEL_COUNT; i++)
        check(d, kernels[i].name, d->driver->function_get(&d->function[i], d->module, kernels[i].name));
    return d->status;
}

/* Pinned memory of the host, from and to which copies are faster and run beside kernels. Null is no failure: ordinary memory
 * does as well, and as much is not asked for again. */
static void *pin(mtan_cuda *d, size_t bytes) {
    void *memory;
    if (d->refused_bytes && bytes >= d->refused_bytes) return NULL;
    if (d->driver->host_alloc(&memory, bytes, 0) == 0) return memory;
    d->refused_bytes = bytes;
    return NULL;
}

static mtan_cuda_status make_streams(mtan_cuda *d) {
    const mtan_cuda_driver *k = d->driver;
    if (check(d, "cuStreamCreate", k->stream_create(&d->work, NON_BLOCKING))) d->work = NULL;
    if (!d->status && check(d, "cuStreamCreate", k->stream_create(&d->copies, NON_BLOCKING))) d->copies = NULL;
    if (!d->status && check(d, "cuEventCreate", k->event_create(&d->sent, NO_TIMING))) d->sent = NULL;
    d->pinned_answer = d->status ? NULL : pin(d, sizeof *d->pinned_answer);
    return d->status;
}

/* A cuBLAS that does not start is one that is not there. */
static void start_blas(mtan_cuda *d, const mtan_cuda_blas *blas) {
    if (d->status || !blas || !blas->sgemm) return;
    if (blas->create(&d->blas_handle) != 0) {
        d->blas_handle = NULL;
        return;
    }
    d->blas = blas;
    if (blas->set_stream(d->blas_handle, d->work) == 0) return;
    blas->destroy(d->blas_handle);
    d->blas = NULL, d->blas_handle = NULL;
}

mtan_cuda_status mtan_cuda_open(mtan_cuda *device, const mtan_cuda_driver *driver, const mtan_cuda_blas *blas,
                                int ordinal, const void *image) {
    mtan_cuda *d = device;
    memset(d, 0, sizeof *d);
    d->driver = driver;
    if (find_device(d, ordinal)) return d->status;
    if (check(d, "cuDevicePrimaryCtxRetain", driver->context_retain(&d->context, d->number))) {
        d->context = NULL;
        return d->status;
    }
    if (enter(d)) {
        load_kernels(d, image);
        if (!d->status) make_streams(d);
        start_blas(d, blas);
        leave(d);
    }
    if (d->status) mtan_cuda_close(d);
    else in_use = d;
    return d->status;
}

static void drop_mirror(mtan_cuda *d, int i) {
    d->driver->free(d->mirrors[i].device - beyond_boundary(d->mirrors[i].host));
    d->mirrors[i] = d->mirrors[--d->mirror_count];
}

/* All that was made in the context, when the streams are done with it. */
static void give_back(mtan_cuda *d) {
    const mtan_cuda_driver *k = d->driver;
    if (d->work) k->stream_sync(d->work);
    if (d->copies) k->stream_sync(d->copies);
    if (d->blas) d->blas->destroy(d->blas_handle);
    if (d->scratch) k->free(d->scratch);
    while (d->mirror_count > 0) drop_mirror(d, 0);
    if (d->pinned_answer) k->host_free(d->pinned_answer);
    if (d->sends.memory) k->host_free(d->sends.memory);
    if (d->ahead.memory) k->host_free(d->ahead.memory);
    if (d->sent) k->event_destroy(d->sent);
    if (d->copies) k->stream_destroy(d->copies);
    if (d->work) k->stream_destroy(d->work);
    if (d->module) k->module_unload(d->module);
}

/* Status and message stay, to be read. With a context that cannot be entered all that is in it is lost already. */
void mtan_cuda_close(mtan_cuda *device) {
    mtan_cuda *d = device;
    void *own;
    if (in_use == d) in_use = NULL;
    if (!d->context) return;
    if (d->driver->context_push(d->context) == 0) {
        give_back(d);
        d->driver->context_pop(&own);
    }
    d->driver->context_release(d->number);
    d->mirror_count = 0;
    d->context = d->module = d->work = d->copies = d->sent = d->blas_handle = NULL;
    d->blas = NULL, d->pinned_answer = NULL;
    memset(&d->sends, 0, sizeof d->sends), memset(&d->ahead, 0, sizeof d->ahead);
    d->scratch = 0, d->scratch_bytes = 0;
}

/* ---- memory ---- */

void *mtan_cuda_alloc(mtan_cuda *device, size_t bytes) {
    mtan_cuda_address address = 0;
    int error;
    if (device->status || !enter(device)) return NULL;
    error = device->driver->alloc(&address, bytes ? bytes : 1);
    if (kind_of(error) == MTAN_CUDA_NO_MEMORY) explain(device, "cuMemAlloc", error); /* the device goes on */
    else check(device, "cuMemAlloc", error);
    leave(device);
    return error == 0 ? (void *)(uintptr_t)address : NULL;
}

/* A context that was closed has taken its memory with it. */
void mtan_cuda_free(mtan_cuda *device, void *memory) {
    if (!memory || !device->context || !enter(device)) return;
    device->driver->stream_sync(device->work); /* that freeing waits for kernels is nowhere promised */
    device->driver->free((mtan_cuda_address)(uintptr_t)memory);
    leave(device);
}

/* Pinned room for what is to go into a stream; what went from there before is waited for when there is no room left. Null:
 * there is no such memory, or the device has failed. */
static char *room(mtan_cuda *d, mtan_cuda_staging *s, void *stream, size_t bytes) {
    if (bytes > s->bytes - s->used) {
        if (check(d, "cuStreamSynchronize", d->driver->stream_sync(stream))) return NULL;
        s->used = 0;
    }
    if (bytes > s->bytes) {
        const size_t wanted = bytes > MOST_SENT ? bytes : MOST_SENT;
        char *larger = pin(d, wanted);
        if (!larger) return NULL;
        if (s->memory) d->driver->host_free(s->memory);
        s->memory = larger, s->bytes = wanted;
    }
    return s->memory + s->used;
}

/* A copy into a stream that has taken the bytes when this returns. A driver may read ordinary memory as late as pinned memory:
 * so they go from `s`, where nobody changes them, or are waited for. */
static void copy_over(mtan_cuda *d, mtan_cuda_staging *s, void *stream, const void *to, const void *from,
                      size_t bytes) {
    char *staged = s ? room(d, s, stream, bytes) : NULL;
    if (d->status) return;
    if (staged) memcpy(staged, from, bytes), s->used += bytes;
    check(d, "cuMemcpyHtoDAsync",
          d->driver->upload((mtan_cuda_address)(uintptr_t)to, staged ? staged : from, bytes, stream));
    if (!staged) check(d, "cuStreamSynchronize", d->driver->stream_sync(stream));
}

/* The many small sends of a step need not wait for kernels; the few large ones do, so that no memory is pinned for them. */
mtan_cuda_status mtan_cuda_upload(mtan_cuda *device, void *to, const void *from, size_t bytes) {
    if (device->status || bytes == 0 || !enter(device)) return device->status;
    copy_over(device, bytes <= MOST_SENT ? &device->sends : NULL, device->work, to, from, bytes);
    return leave(device);
}

mtan_cuda_status mtan_cuda_download(mtan_cuda *device, void *to, const void *from, size_t bytes) {
    const mtan_cuda_address address = (mtan_cuda_address)(uintptr_t)from;
    if (device->status || bytes == 0 || !enter(device)) return device->status;
    check(device, "cuMemcpyDtoHAsync", device->driver->download(to, address, bytes, device->work));
    return leave(device);
}

/* Also of a device that has failed: what is on its way to the host's memory must not arrive later. */
mtan_cuda_status mtan_cuda_sync(mtan_cuda *device) {
    if (!enter(device)) return device->status;
    if (!check(device, "cuStreamSynchronize", device->driver->stream_sync(device->work))) device->sends.used = 0;
    return leave(device);
}

/* ---- mirrors ---- */

/* The mirror that holds an address; one that is just behind it belongs to a tensor without elements. */
static mtan_cuda_mirrored *mirror_of(mtan_cuda *d, const void *address) {
    const char *at = address;
    mtan_cuda_mirrored *before = NULL;
    for (int i = 0; i < d->mirror_count; i++) {
        mtan_cuda_mirrored *m = &d->mirrors[i];
        if (at >= m->host && at < m->host + m->bytes) return m;
        if (at == m->host + m->bytes) before = m;
    }
    return before;
}

static int overlaps(const mtan_cuda *d, const char *from, size_t bytes) {
    for (int i = 0; i < d->mirror_count; i++)
        if (from < d->mirrors[i].host + d->mirrors[i].bytes && d->mirrors[i].host < from + bytes) return 1;
    return 0;
}

mtan_cuda_status mtan_cuda_mirror(mtan_cuda *device, void *memory, size_t bytes) {
    mtan_cuda_mirrored m;
    if (device->status) return device->status;
    if (device->mirror_count == MTAN_CUDA_MOST_MIRRORS || overlaps(device, memory, bytes)) {
        snprintf(device->message, sizeof device->message, "CUDA: too many mirrors, or two of the same memory");
        return MTAN_CUDA_FAILED;
    }
    m.host = memory, m.bytes = bytes;
    m.device = (mtan_cuda_address)(uintptr_t)mtan_cuda_alloc(device, bytes + beyond_boundary(memory));
    if (!m.device) return device->status ? device->status : MTAN_CUDA_NO_MEMORY;
    m.device += beyond_boundary(memory);
    device->mirrors[device->mirror_count++] = m;
    return MTAN_CUDA_OK;
}

void mtan_cuda_unmirror(mtan_cuda *device, void *memory) {
    int i = 0;
    while (i < device->mirror_count && device->mirrors[i].host != (char *)memory) i++;
    if (i == device->mirror_count || !enter(device)) return;
    device->driver->stream_sync(device->work);
    device->driver->stream_sync(device->copies);
    drop_mirror(device, i);
    leave(device);
}

void *mtan_cuda_there(const void *address) {
    mtan_cuda *d = mtan_cuda_current();
    const mtan_cuda_mirrored *m;
    if (!address || !d) return NULL;
    if (d->mirror_count == 0) return (void *)(uintptr_t)address;
    m = mirror_of(d, address);
    if (m) return (void *)(uintptr_t)(m->device + (mtan_cuda_address)((const char *)address - m->host));
    mtan_cuda_refuse("a kernel was given memory that is not mirrored on the device");
    return NULL;
}

/* Whether all of it is in one mirror. */
static int is_mirrored(mtan_cuda *d, const void *from, size_t bytes) {
    const mtan_cuda_mirrored *m = mirror_of(d, from);
    if (m && bytes <= m->bytes - (size_t)((const char *)from - m->host)) return 1;
    mtan_cuda_refuse("memory that is not mirrored was to be copied");
    return 0;
}

int32_t mtan_cuda_send(const void *from, size_t bytes) {
    mtan_cuda *d = mtan_cuda_current();
    if (!d || d->mirror_count == 0) return d != NULL;
    return is_mirrored(d, from, bytes) && !mtan_cuda_upload(d, mtan_cuda_there(from), from, bytes);
}

int32_t mtan_cuda_fetch(void *to, size_t bytes) {
    mtan_cuda *d = mtan_cuda_current();
    if (!d) return 0;
    if (d->mirror_count > 0 && (!is_mirrored(d, to, bytes) || mtan_cuda_download(d, to, mtan_cuda_there(to), bytes)))
        return 0;
    return mtan_cuda_sync(d) == MTAN_CUDA_OK;
}

int32_t mtan_cuda_send_ahead(const void *from, size_t bytes) {
    mtan_cuda *d = mtan_cuda_current();
    if (!d || d->mirror_count == 0 || bytes == 0) return d != NULL;
    if (!is_mirrored(d, from, bytes) || !enter(d)) return 0;
    copy_over(d, &d->ahead, d->copies, mtan_cuda_there(from), from, bytes);
    if (!d->status) check(d, "cuEventRecord", d->driver->event_record(d->sent, d->copies));
    return !leave(d);
}

int32_t mtan_cuda_arrive(void) {
    mtan_cuda *d = mtan_cuda_current();
    if (!d || !enter(d)) return 0;
    check(d, "cuStreamWaitEvent", d->driver->stream_wait(d->work, d->sent, 0));
    return !leave(d);
}

/* ---- for the kernels ---- */

void mtan_cuda_launch(mtan_cuda_kernel kernel, size_t grid_x, size_t grid_y, size_t grid_z, const void *arguments) {
    mtan_cuda *d = mtan_cuda_current();
    void *parameters[1];
    if (!d || grid_x == 0 || grid_y == 0 || grid_z == 0) return;
    if (grid_x > INT32_MAX || grid_y > 65535 || grid_z > 65535) {
        mtan_cuda_refuse("a tensor is larger than a kernel can take");
        return;
    }
    if (!enter(d)) return;
    parameters[0] = (void *)(uintptr_t)arguments; /* read only */
    check(d, kernels[kernel].name,
          d->driver->launch(d->function[kernel], (unsigned)grid_x, (unsigned)grid_y, (unsigned)grid_z,
                            kernels[kernel].x, kernels[kernel].y, 1, 0, d->work, parameters, NULL));
    leave(d);
}

/* Kernels that use the old one are waited for. */
static void grow_scratch(mtan_cuda *d, size_t bytes) {
    if (check(d, "cuStreamSynchronize", d->driver->stream_sync(d->work))) return;
    if (d->scratch) d->driver->free(d->scratch);
    d->scratch = 0, d->scratch_bytes = 0;
    if (check(d, "cuMemAlloc", d->driver->alloc(&d->scratch, bytes))) d->scratch = 0;
    else d->scratch_bytes = bytes;
}

/* Grows, and never shrinks. */
void *mtan_cuda_scratch(size_t bytes) {
    mtan_cuda *d = mtan_cuda_current();
    const size_t least = (size_t)1 << 20;
    if (!d) return NULL;
    if (bytes > d->scratch_bytes) {
        if (!enter(d)) return NULL;
        grow_scratch(d, bytes > least ? bytes : least);
        if (leave(d)) return NULL;
    }
    return (void *)(uintptr_t)d->scratch;
}

double mtan_cuda_answer(const double *address) {
    mtan_cuda *d = mtan_cuda_current();
    double *answer;
    if (!d) return (double)NAN;
    answer = d->pinned_answer ? d->pinned_answer : &d->own_answer;
    if (mtan_cuda_download(d, answer, address, sizeof *answer) || mtan_cuda_sync(d)) return (double)NAN;
    return *answer;
}

/* Row-major c is column-major c^T = op(b)^T op(a)^T: the operands change places. */
int mtan_cuda_sgemm(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, int a_transposed, const mtan_real *b,
                    size_t ldb, int b_transposed, int32_t m, int32_t n, int32_t k, int32_t add) {
    mtan_cuda *d = mtan_cuda_current();
    const float one = 1, start = add ? 1 : 0;
    int error;
    if (!d || !d->blas || !enter(d)) return 0;
    error = d->blas->sgemm(d->blas_handle, b_transposed, a_transposed, n, m, k, &one, b, (int)ldb, a, (int)lda, &start,
                           c, (int)ldc);
    if (error != 0) { /* one without code for this GPU, say: the kernels here do as well */
        d->blas->destroy(d->blas_handle);
        d->blas = NULL, d->blas_handle = NULL;
    }
    leave(d);
    return error == 0;
}
