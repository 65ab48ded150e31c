/* Counts the cost of a program on a GPU instead of running it. The CUDA backend calls the driver through a table of
 * functions (platform/cuda/mtan_cuda.h). The driver here has memory and copies data, computes nothing, and adds up the
 * work of the launched kernels. Everything above the driver runs as with a GPU: the kernels that are launched, their
 * number of blocks, the copies and the waits.
 *
 *     backend = trace_open(text);                         NULL: `text` says why
 *     training_start(..., backend, ...);
 *     trace_reset(); training_step ...; trace_read(&r);
 *     training_stop(...); trace_close();
 *
 * A prediction follows from the counts (roofline.h). Large products are counted as the backend's own kernels, not
 * cuBLAS's. Everything fetched is zero, so losses and gradient norms are 0; weights stay as they are.
 *
 * There is one counter in the program, and only one thread at a time may count. */
#ifndef MTAN_TOOLS_TRACE_H
#define MTAN_TOOLS_TRACE_H

#include "../run/device.h"
#include "roofline.h"

/* Until trace_close, the counting device takes the place of the GPU (device.h), even if there is a GPU. */
const mtan_backend *trace_open(char text[DEVICE_TEXT]);
void trace_close(void);

void trace_reset(void);
void trace_read(roofline *r); /* what was counted since the reset */

#endif
