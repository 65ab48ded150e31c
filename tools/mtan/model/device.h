/* The GPU of a command. A command built by `make cuda` can run models there (--backend cuda); in any other all of this is there
 * too, does nothing, and says why there is no GPU. What is held on a device has an image there: see platform/cuda/mtan_cuda.h.
 */
#ifndef MTAN_TOOLS_DEVICE_H
#define MTAN_TOOLS_DEVICE_H

#include "../../../mtan.h"

enum { DEVICE_TEXT = 320 };

/* Opens the GPU, once: its backend, or null with the reason in `text`. With a backend `text` says which GPU it is. It stays open
 * until device_close. */
const mtan_backend *device_open(char text[DEVICE_TEXT]);
void device_close(void);
int on_device(const mtan_backend *b); /* a backend with a memory of its own */

/* On any backend but the GPU's these do nothing and succeed. 0: the device failed, and status_message(MTAN_ERR_DEVICE) says how. */
int device_hold(const mtan_backend *b, void *memory, size_t bytes);
void device_release(const mtan_backend *b, void *memory);
int device_send(const mtan_backend *b, const void *from, size_t bytes);
int device_fetch(const mtan_backend *b, void *to, size_t bytes);

/* A sentence about a status: for a device's failure the device's own. */
const char *status_message(mtan_status status);

#ifndef MTAN_DOUBLE
struct mtan_cuda;
struct mtan_cuda_driver;
struct mtan_cuda_blas;
/* Where a GPU comes from; all null: from the machine. Tests have their own. */
extern struct device_source {
    const struct mtan_cuda_driver *driver;
    const struct mtan_cuda_blas *blas;
    const void *image;
} device_source;

/* Puts an open device, or null for none, in the place of the one in use, which stays open and is returned (null: there was none). */
struct mtan_cuda *device_use(struct mtan_cuda *device);
#endif

#endif
