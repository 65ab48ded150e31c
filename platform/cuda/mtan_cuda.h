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
 *     mtan_cuda_mirror(&device, memory, memory_bytes);
 *     mtan_trainer_init(..., memory, memory_bytes); mtan_trainer_step ...
 *     mtan_cuda_fetch(weights, weights_bytes);
 *     mtan_cuda_close(&device);
 *
 * Building needs no CUDA header and no CUDA library. The driver (libcuda.so.1, nvcuda.dll) is loaded at run time into a
 * table of functions. So is cuBLAS, which computes the large products where it is found. `make cuda` compiles
 * kernels.cu into an image that is linked as an array.
 *
 * Failures.  Functions return a status, 0 is success, and leave a sentence in device.message. Kernels return nothing: a
 * failure there (a lost device, no room for intermediate sums) stays in device.status, everything after it does
 * nothing, and mtan_cuda_sync returns it. Running out of memory in mtan_cuda_alloc does not fail the device. Nor does a
 * lack of pinned host memory, which only makes copies slower.
 *
 * Order.  Kernels and copies run one after the other on one stream, asynchronously to the host; mtan_cuda_sync waits
 * for them. The batch of the next step is copied on a second stream while kernels run: see mtan_trainer_next.
 *
 * Same bits.  Two runs give the same bits, on any GPU, unless cuBLAS takes part. They are not all the bits of a CPU:
 * the first comment of kernels.cu says which are.
 *
 * Contexts.  A device works in its GPU's primary context, which is current only during a call. After the call the
 * thread has its previous context again. Devices do not disturb each other, nor other libraries that use a GPU.
 *
 * Threads.  The entries of mtan_backend_cuda work on the device in use: the one opened last, or set by mtan_cuda_use.
 * There is one such device for the whole program, so only one thread at a time may call; it may be any thread.
 */
#ifndef MTAN_CUDA_H
#define MTAN_CUDA_H

#include "../../mtan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mtan_cuda_status {
    MTAN_CUDA_OK = 0,
    MTAN_CUDA_NO_DRIVER,  /* libcuda is missing or too old */
    MTAN_CUDA_NO_DEVICE,  /* no GPU, or none of that number */
    MTAN_CUDA_NO_KERNELS, /* the image has no code for this GPU, the driver refuses it, or it lacks a kernel */
    MTAN_CUDA_NO_MEMORY,  /* out of device memory */
    MTAN_CUDA_LOST,       /* the GPU stopped, or a kernel accessed invalid memory: restart the program */
    MTAN_CUDA_FAILED      /* any other error of the driver */
} mtan_cuda_status;

/* ---- the driver's functions, under shorter names; all return 0 or a CUDA error number ---- */

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

/* cuBLAS is column-major; cuda.c adapts it to row-major. An `operation` is 0 (as it is) or 1 (transposed). */
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

/* Loads the driver and, when `blas` is not null, cuBLAS. A missing cuBLAS is not a failure: blas->sgemm is then null.
 * `message` (may be null) gets a sentence about a failure. */
mtan_cuda_status mtan_cuda_load(mtan_cuda_driver *driver, mtan_cuda_blas *blas, char *message, size_t size);

/* The image that `make cuda` compiles from kernels.cu, aligned for the driver. */
extern const unsigned long long mtan_cuda_image[];

/* ---- a device ---- */

#define MTAN_CUDA_MOST_KERNELS 128

#define MTAN_CUDA_MOST_MIRRORS 32

/* A block of host memory and its image on the device. */
typedef struct mtan_cuda_mirrored {
    char *host;
    size_t bytes;
    mtan_cuda_address device;
} mtan_cuda_mirrored;

/* A buffer of pinned host memory, in which bytes wait for their turn in a stream. */
typedef struct mtan_cuda_staging {
    char *memory; /* null: none */
    size_t bytes, used;
} mtan_cuda_staging;

/* Provided by the caller, at one address from open to close. status, message, name and capability may be read; the rest
 * is private. */
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
    mtan_cuda_address scratch;      /* for intermediate sums */
    size_t scratch_bytes;
    double *pinned_answer, own_answer; /* where sums are copied to: pinned_answer unless null */
    size_t refused_bytes;              /* pinning so many bytes has failed; 0: none has */
    mtan_cuda_mirrored mirrors[MTAN_CUDA_MOST_MIRRORS];
    int mirror_count;
} mtan_cuda;

/* Opens GPU number `ordinal` and makes it the device that kernels use. With `blas` null, or its sgemm null, cuBLAS is
 * not used. On failure nothing is left open, and the message says what to do. The tables and the image must stay
 * valid. */
mtan_cuda_status mtan_cuda_open(mtan_cuda *device, const mtan_cuda_driver *driver, const mtan_cuda_blas *blas,
                                int ordinal, const void *image);
/* Frees everything, mirrors too, except memory from mtan_cuda_alloc: free that first. Works on a lost device. If
 * kernels used this device, there is no device in use afterwards. */
void mtan_cuda_close(mtan_cuda *device);

/* The device that kernels use from now on; null: none, and they do nothing. */
void mtan_cuda_use(mtan_cuda *device);

/* Device memory; null when there is none left. */
void *mtan_cuda_alloc(mtan_cuda *device, size_t bytes);
void mtan_cuda_free(mtan_cuda *device, void *memory);

/* Copies in order with the kernels. The source of an upload may be reused when it returns: up to 1 MiB is staged in
 * pinned memory; for more, or without pinned memory, the host waits. A download is complete when mtan_cuda_sync has
 * returned. */
mtan_cuda_status mtan_cuda_upload(mtan_cuda *device, void *to, const void *from, size_t bytes);
mtan_cuda_status mtan_cuda_download(mtan_cuda *device, void *to, const void *from, size_t bytes);

/* Waits for all work except batches sent ahead that have not arrived. Returns the first failure since the device was
 * opened. */
mtan_cuda_status mtan_cuda_sync(mtan_cuda *device);

/* Mirrors: host memory with an image on the device, byte for byte. A kernel that is given an address inside a mirror
 * uses its image. So a program that lays its tensors out on the host, as the library does, runs on the device unchanged
 * if it says what it has written (mtan_cuda_send) and what it wants to read (mtan_cuda_fetch):
 *
 *     mtan_cuda_mirror(&device, memory, bytes);        weights, a trainer's block, a predictor's block
 *     mtan_cuda_send(weights, n); ... kernels ...; mtan_cuda_fetch(loss, sizeof *loss);
 *
 * While any mirror exists, every address given to a kernel must be inside one; any other address fails the device, with
 * a message. A mirror that overlaps another, or one too many, is MTAN_CUDA_FAILED. MTAN_CUDA_NO_MEMORY leaves the
 * device as it was. The image starts with undefined content. */
mtan_cuda_status mtan_cuda_mirror(mtan_cuda *device, void *memory, size_t bytes);
void mtan_cuda_unmirror(mtan_cuda *device, void *memory);
/* Copies between a mirror of the device in use and its image. The source of a send may be reused when it returns; a
 * fetch waits for all work before it. Without mirrors (memory that host and device address alike) a send does nothing
 * and a fetch only waits. 0: the device has failed. */
int32_t mtan_cuda_send(const void *from, size_t bytes);
int32_t mtan_cuda_fetch(void *to, size_t bytes);
/* A send on the second stream, in parallel with running kernels, which must not touch these bytes. Kernels launched
 * after mtan_cuda_arrive see the bytes; a fetch waits for them only after mtan_cuda_arrive. */
int32_t mtan_cuda_send_ahead(const void *from, size_t bytes);
int32_t mtan_cuda_arrive(void);

/* ---- kernels: every pointer to a tensor or to integers is a device address, or one that is mirrored ---- */

/* Fills every entry of the table. The structures mtan_batch, mtan_gru, mtan_moment and mtan_targets themselves, and the
 * constants of the optimisers, are read on the host. Entries that return a number wait for it. */
extern const mtan_backend mtan_backend_cuda;

#ifdef __cplusplus
}
#endif

#endif
