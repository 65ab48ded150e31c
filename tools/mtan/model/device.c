/* See device.h. */
#include "device.h"

#include <stdio.h>

static const mtan_backend *opened; /* null: no GPU is */

#if defined MTAN_WITH_CUDA || defined MTAN_WITH_CUDA_SHIM

#include "../../../platform/cuda/mtan_cuda.h"

struct device_source device_source;

static mtan_cuda device;
static mtan_cuda_driver found;
static mtan_cuda_blas found_blas;

static const void *kernels(void) {
#ifdef MTAN_WITH_CUDA
    if (!device_source.image) return mtan_cuda_image;
#endif
    return device_source.image;
}

const mtan_backend *device_open(char text[DEVICE_TEXT]) {
    const mtan_cuda_driver *driver = device_source.driver;
    const mtan_cuda_blas *blas = device_source.blas;
    if (!opened && !driver) {
        if (mtan_cuda_load(&found, &found_blas, text, DEVICE_TEXT)) return NULL;
        driver = &found, blas = &found_blas;
    }
    if (!opened && mtan_cuda_open(&device, driver, blas, 0, kernels()))
        return snprintf(text, DEVICE_TEXT, "%s", device.message), NULL;
    opened = &mtan_backend_cuda;
    snprintf(text, DEVICE_TEXT, "%s, sm_%d, %s", device.name, device.capability,
             device.blas ? "large products by cuBLAS" : "no cuBLAS");
    return opened;
}

void device_close(void) {
    if (opened) mtan_cuda_close(&device);
    opened = NULL;
}

static const char *device_message(void) {
    return device.message;
}

static int hold(void *memory, size_t bytes) {
    return mtan_cuda_mirror(&device, memory, bytes) == MTAN_CUDA_OK;
}

static void release(void *memory) {
    mtan_cuda_unmirror(&device, memory);
}

#else

const mtan_backend *device_open(char text[DEVICE_TEXT]) {
    snprintf(text, DEVICE_TEXT, "not in this program: `make cuda` builds one for NVIDIA GPUs");
    return NULL;
}

void device_close(void) {}

static const char *device_message(void) {
    return "";
}

static int hold(void *memory, size_t bytes) {
    (void)memory, (void)bytes;
    return 0;
}

static void release(void *memory) {
    (void)memory;
}

#endif

int device_hold(const mtan_backend *b, void *memory, size_t bytes) {
    return b != opened || hold(memory, bytes);
}

void device_release(const mtan_backend *b, void *memory) {
    if (opened && b == opened && memory) release(memory);
}

int device_send(const mtan_backend *b, const void *from, size_t bytes) {
    return b != opened || b->device->send(from, bytes);
}

int device_fetch(const mtan_backend *b, void *to, size_t bytes) {
    return b != opened || b->device->fetch(to, bytes);
}

const char *status_message(mtan_status status) {
    return status == MTAN_ERR_DEVICE && device_message()[0] ? device_message() : mtan_status_message(status);
}
