/* See device.h. */
#define MTAN_INTERNALS
#include "device.h"

#include <stdio.h>

static const mtan_backend *opened; /* null: no GPU is open */

#ifndef MTAN_DOUBLE

#include "../../../platform/cuda/mtan_cuda.h"

struct device_source device_source;

static mtan_cuda gpu, *used = &gpu; /* device_use may set another device */

/* Loads the machine's driver and this program's kernels. 0: there is none, and `text` says why. */
#ifdef MTAN_WITH_CUDA

static int find_source(char text[DEVICE_TEXT]) {
    static mtan_cuda_driver driver;
    static mtan_cuda_blas blas;
    if (mtan_cuda_load(&driver, &blas, text, DEVICE_TEXT)) return 0;
    device_source.driver = &driver, device_source.blas = &blas, device_source.image = mtan_cuda_image;
    return 1;
}

#else

static int find_source(char text[DEVICE_TEXT]) {
    return snprintf(text, DEVICE_TEXT, "not in this program: `make cuda` builds one for NVIDIA GPUs"), 0;
}

#endif

const mtan_backend *device_open(char text[DEVICE_TEXT]) {
    if (!opened && !device_source.driver && !find_source(text)) return NULL;
    if (!opened && mtan_cuda_open(&gpu, device_source.driver, device_source.blas, 0, device_source.image))
        return snprintf(text, DEVICE_TEXT, "%s", gpu.message), NULL;
    opened = &mtan_backend_cuda;
    snprintf(text, DEVICE_TEXT, "%s, sm_%d, %s", used->name, used->capability,
             used->blas ? "large products by cuBLAS" : "no cuBLAS");
    return opened;
}

mtan_cuda *device_use(mtan_cuda *device) {
    mtan_cuda *before = opened ? used : NULL;
    used = device ? device : &gpu;
    opened = device ? &mtan_backend_cuda : NULL;
    mtan_cuda_use(device);
    return before;
}

void device_close(void) {
    if (opened) mtan_cuda_close(used);
    opened = NULL;
}

static const char *device_message(void) {
    return used->message;
}

static int hold(void *memory, size_t bytes) {
    return mtan_cuda_mirror(used, memory, bytes) == MTAN_CUDA_OK;
}

static void release(void *memory) {
    mtan_cuda_unmirror(used, memory);
}

#else

const mtan_backend *device_open(char text[DEVICE_TEXT]) {
    snprintf(text, DEVICE_TEXT, "not in this program: it computes in double, GPUs in float (make cuda)");
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

int on_device(const mtan_backend *b) {
    return b->device != NULL;
}

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
