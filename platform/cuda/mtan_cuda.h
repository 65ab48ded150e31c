/* NVIDIA GPUs: a device, its memory, and the library's kernels on it.
 *
 *     mtan_cuda_driver driver;
 *     mtan_cuda_blas blas;
 *     mtan_cuda device;
 *     char message[256];
 *     if (mtan_cuda_load(&driver, &blas, message, sizeof message)) -> message
 *     if (mtan_cuda_open(&device, &driver, &blas, 0, mtan_cuda_image)) -> device.message
 *     model.backend = &mtan_backend_cuda;
 *     mtan_cuda_mirror(&device, weights, weights_bytes), mtan_cuda_send(weights, weights_bytes);
 *     mtan_cuda_mirror(&device, memory, memory_bytes); mtan_trainer_init(..., memory, memory_bytes); mtan_trainer_step ...
 *     mtan_cuda_fetch(weights, weights_bytes);
 *     mtan_cuda_close(&device);
 *
 * No header and no library of CUDA's is needed to build: the driver (libcuda.so.1, nvcuda.dll) is looked for at run time and
 * is a table of functions here, and so is cuBLAS, which does the large products where it is found. The kernels are
 * kernels.cu, compiled by `make cuda` into an image that is linked as an array.
 *
 * Failures.  Functions return a status, 0 is success, and leave a sentence in device.message. Kernels return nothing: what
 * fails there - a lost device, no room for intermediate sums - stays in device.status, everything after it does nothing, and
 * mtan_cuda_sync gives it back. Running out of memory in mtan_cuda_alloc is not of that kind: the device goes on. So it does
 * without pinned memory of the host, only slower.
 *
 * Order.  Kernels and copies run one after the other on one stream, while the host goes on; mtan_cuda_sync waits for them.
 * The batch of the next step comes over on a second stream while kernels run: see mtan_trainer_next.
 *
 * Same bits.  Two runs give the same bits, on any GPU, unless cuBLAS has part in it. They are not the bits of a CPU: the
 * table in kernels.cu says where they are.
 *
 * Contexts.  A device works in its GPU's primary context, which is current for the length of a call alone: then the thread
 * has again the context that it had before. Devices do not disturb each other, nor other libraries that use a GPU.
 *
 * Threads.  The entries of mtan_backend_cuda work on the device opened last, or named by mtan_cuda_use, which is one for the
 * whole program: one thread at a time, any.
 */
#ifndef MTAN_CUDA_H
#define MTAN_CUDA_H

#include "../../mtan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mtan_cuda_status {
    MTAN_CUDA_OK = 0,
    MTAN_CUDA_NO_DRIVER,  /* no libcuda here, or one too old */
    MTAN_CUDA_NO_DEVICE,  /* no GPU, or not of that number */
    MTAN_CUDA_NO_KERNELS, /* the image has no code for this GPU, the driver refuses it, or it lacks a kernel */
    MTAN_CUDA_NO_MEMORY,  /* of the device */
    MTAN_CUDA_LOST,       /* the GPU stopped, or a kernel touched what is not its own: start the program anew */
    MTAN_CUDA_FAILED      /* anything else the driver says */
} mtan_cuda_status;

/* ---- the driver's functions, under shorter names; all return 0 or an error number of CUDA's ---- */

typedef unsigned long long mtan_cuda_address; /* CUdeviceptr */

#define MTAN_CUDA_DRIVER(X)                                                                                            \
    X(init, cuInit, (unsigned flags))                                                                                  \
    X(device_count, cuDeviceGetCount, (int *count))                                                                    \
    X(device_get, cuDeviceGet, (int *device, int ordinal))                                                             \
    X(device_name, cuDeviceGetName, (char *name, int size, int device))                                                \
    X(device_attribute, cuDeviceGetAttribute, (int *value, int attribute, int device))                                 \
    X(context_retain, cuDevicePrimaryCtxRetain, (void **context, int device))                                          \
    X(context_release, cuDevicePrimaryCtxRelease_v2, (int device))                                                     \
    X(context_push, cuCtxPushCurrent_v2, (void *context))                                                              \
    X(context_pop, cuCtxPopCurrent_v2, (void **context))                                                               \
    X(module_load, cuModuleLoadData, (void **module, const void *image))                                               \
    X(module_unload, cuModuleUnload, (void *module))                                                                   \
    X(function_get, cuModuleGetFunction, (void **function, void *module, const char *name))                            \
    X(stream_create, cuStreamCreate, (void **stream, unsigned flags))                                                  \
    X(stream_destroy, cuStreamDestroy_v2, (void *stream))                                                              \
    X(stream_sync, cuStreamSynchronize, (void *stream))                                                                \
    X(stream_wait, cuStreamWaitEvent, (void *stream, void *event, unsigned flags))                                     \
    X(event_create, cuEventCreate, (void **event, unsigned flags))                                                     \
    X(event_destroy, cuEventDestroy_v2, (void *event))                                                                 \
    X(event_record, cuEventRecord, (void *event, void *stream))                                                        \
    X(alloc, cuMemAlloc_v2, (mtan_cuda_address * address, size_t bytes))                                               \
    X(free, cuMemFree_v2, (mtan_cuda_address address))                                                                 \
    X(host_alloc, cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))                                       \
    X(host_free, cuMemFreeHost, (void *memory))                                                                        \
    X(upload, cuMemcpyHtoDAsync_v2, (mtan_cuda_address to, const void *from, size_t bytes, void *stream))              \
    X(download, cuMemcpyDtoHAsync_v2, (void *to, mtan_cuda_address from, size_t bytes, void *stream))                  \
    X(launch, cuLaunchKernel,                                                                                          \
      (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,          \
       unsigned block_z, unsigned shared, void *stream, void **arguments, void **extra))                               \
    X(error_name, cuGetErrorName, (int error, const char **name))

typedef struct mtan_cuda_driver {
#define X(name, symbol, parameters) int(*name) parameters;
    MTAN_CUDA_DRIVER(X)
#undef X
} mtan_cuda_driver;

/* cuBLAS: column-major, of which cuda.c makes row-major. An `operation` is 0 (as it is) or 1 (transposed). */
#define MTAN_CUDA_BLAS(X)                                                                                              \
    X(create, cublasCreate_v2, (void **handle))                                                                        \
    X(destroy, cublasDestroy_v2, (void *handle))                                                                       \
    X(set_stream, cublasSetStream_v2, (void *handle, void *stream))                                                    \
    X(sgemm, cublasSgemm_v2,                                                                                           \
      (void *handle, int operation_a, int operation_b, int m, int n, int k, const float *alpha, const float *a,        \
       int lda, const float *b, int ldb, const float *beta, float *c, int ldc))

typedef struct mtan_cuda_blas {
#define X(name, symbol, parameters) int(*name) parameters;
    MTAN_CUDA_BLAS(X)
#undef X
} mtan_cuda_blas;

/* Looks for the driver, and for cuBLAS when `blas` is not null: without it blas->sgemm is null, which is no failure.
 * `message` (may be null) gets a sentence about a failure. */
mtan_cuda_status mtan_cuda_load(mtan_cuda_driver *driver, mtan_cuda_blas *blas, char *message, size_t size);

/* The image that `make cuda` makes of kernels.cu, aligned as a driver may want it. */
extern const unsigned long long mtan_cuda_image[];

/* ---- a device ---- */

#define MTAN_CUDA_MOST_KERNELS 128

#define MTAN_CUDA_MOST_MIRRORS 32

/* A block of the host's and its image on the device. */
typedef struct mtan_cuda_mirrored {
    char *host;
    size_t bytes;
    mtan_cuda_address device;
} mtan_cuda_mirrored;

/* Pinned memory of the host, in which bytes wait for their turn in a stream. */
typedef struct mtan_cuda_staging {
    char *memory; /* null: none */
    size_t bytes, used;
} mtan_cuda_staging;

/* The caller's, at one address from open to close. Read status, message, name and capability; the rest is private. */
typedef struct mtan_cuda {
    mtan_cuda_status status;
    char message[256];
    char name[64];
    int capability; /* 52, 61, ... */
    const mtan_cuda_driver *driver;
    const mtan_cuda_blas *blas; /* null: none */
    void *blas_handle;
    int number; /* CUdevice */
    void *context, *module, *function[MTAN_CUDA_MOST_KERNELS];
    void *work, *copies, *sent;     /* two streams, and the event that marks what was sent ahead */
    mtan_cuda_staging sends, ahead; /* of each stream */
    mtan_cuda_address scratch;      /* for sums in parts */
    size_t scratch_bytes;
    double *pinned_answer, own_answer; /* where sums come back to: the first, if there is one */
    size_t refused_bytes;              /* pinned memory of so much is not to be had; 0: any may be */
    mtan_cuda_mirrored mirrors[MTAN_CUDA_MOST_MIRRORS];
    int mirror_count;
} mtan_cuda;

/* Opens GPU number `ordinal` and makes it the one that kernels use. `blas` null, or with a null sgemm: no cuBLAS. On
 * failure nothing is left open, and the message says what to do. The tables and the image have to stay. */
mtan_cuda_status mtan_cuda_open(mtan_cuda *device, const mtan_cuda_driver *driver, const mtan_cuda_blas *blas,
                                int ordinal, const void *image);
/* Gives everything back, mirrors too, but what mtan_cuda_alloc gave out: free that first. Works on a lost device. If it was
 * the one that kernels use, there is none now. */
void mtan_cuda_close(mtan_cuda *device);

/* The device that kernels use from now on; null: none, and they do nothing. */
void mtan_cuda_use(mtan_cuda *device);

/* Device memory; null when there is none left. */
void *mtan_cuda_alloc(mtan_cuda *device, size_t bytes);
void mtan_cuda_free(mtan_cuda *device, void *memory);

/* In order with the kernels. An upload has taken the bytes when it returns: up to 1 MiB wait for their turn in pinned memory,
 * for more of them, or without such memory, the host waits. A download has come when mtan_cuda_sync has returned. */
mtan_cuda_status mtan_cuda_upload(mtan_cuda *device, void *to, const void *from, size_t bytes);
mtan_cuda_status mtan_cuda_download(mtan_cuda *device, void *to, const void *from, size_t bytes);

/* Waits for all but what was sent ahead and has not arrived; the status of all that happened since the device was opened. */
mtan_cuda_status mtan_cuda_sync(mtan_cuda *device);

/* Mirrors: memory of the host that has an image on the device, byte for byte. Kernels given an address inside take the image
 * of it, so that a program which lays its tensors out on the host - as the library does - can run on the device as it is, if
 * it says what it has written (mtan_cuda_send) and what it wants to read (mtan_cuda_fetch):
 *
 *     mtan_cuda_mirror(&device, memory, bytes);        weights, a trainer's block, a predictor's block
 *     mtan_cuda_send(weights, n); ... kernels ...; mtan_cuda_fetch(loss, sizeof *loss);
 *
 * While there is a mirror every address given to a kernel has to be inside one: any other fails the device, with a message.
 * A mirror of memory that overlaps another's, or one too many, is MTAN_CUDA_FAILED; MTAN_CUDA_NO_MEMORY leaves the device
 * as it was. The image starts with nothing in particular. */
mtan_cuda_status mtan_cuda_mirror(mtan_cuda *device, void *memory, size_t bytes);
void mtan_cuda_unmirror(mtan_cuda *device, void *memory);
/* Of the device in use. A send has taken the bytes when it returns, and a fetch waits for all that went before it. Without
 * mirrors a send does nothing and a fetch waits: for memory that both sides address alike. 0: the device has failed. */
int32_t mtan_cuda_send(const void *from, size_t bytes);
int32_t mtan_cuda_fetch(void *to, size_t bytes);
/* A send on the second stream, beside kernels that are under way and do not touch these bytes. Kernels launched after
 * mtan_cuda_arrive find them; a fetch waits for them only then. */
int32_t mtan_cuda_send_ahead(const void *from, size_t bytes);
int32_t mtan_cuda_arrive(void);

/* ---- kernels: every pointer to a tensor or to integers is a device address, or one that is mirrored ---- */

/* Every entry of the table. mtan_attend and mtan_rbf themselves, and the constants of the optimisers, are read on the
 * host. Those that return a number wait for it. */
extern const mtan_backend mtan_backend_cuda;

#ifdef __cplusplus
}
#endif

#endif
