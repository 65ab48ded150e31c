/* The GPU of a command. A command built by `make cuda` can run models on it (--backend cuda). In any other build these
 * functions exist too, do nothing, and say why there is no GPU. Held memory has an image on the device: see
 * platform/cuda/mtan_cuda.h. */
#ifndef MTAN_TOOLS_DEVICE_H
#define MTAN_TOOLS_DEVICE_H

#include "../../../mtan.h"

enum { DEVICE_TEXT = 320 };

/* Opens the GPU once and returns its backend, or null with the reason in `text`. On success `text` names the GPU. It
 * stays open until device_close. */
const mtan_backend *device_open(char text[DEVICE_TEXT]);
void device_close(void);
int on_device(const mtan_backend *b); /* whether the backend has a memory of its own */

/* On backends other than the GPU's these do nothing and succeed. 0: the device failed, and
 * status_message(MTAN_ERR_DEVICE) says how. */
int device_hold(const mtan_backend *b, void *memory, size_t bytes);
void device_release(const mtan_backend *b, void *memory);
int device_send(const mtan_backend *b, const void *from, size_t bytes);
int device_fetch(const mtan_backend *b, void *to, size_t bytes);

/* A sentence about a status; for a device failure the device's own. */
const char *status_message(mtan_status status);

#ifndef MTAN_DOUBLE
struct mtan_cuda;
struct mtan_cuda_driver;
struct mtan_cuda_blas;
/* Where the GPU comes from; all null: the machine's driver. Tests set their own. */
extern struct device_source {
    const struct mtan_cuda_driver *driver;
    const struct mtan_cuda_blas *blas;
    const void *image;
} device_source;

/* Puts an open device, or null for none, in place of the current one. The current one stays open and is returned (null:
 * none). */
struct mtan_cuda *device_use(struct mtan_cuda *device);
#endif

#endif
