/* What a program costs on a GPU, counted instead of run. The CUDA backend works over a table of the driver's functions
 * (platform/cuda/mtan_cuda.h); here is a driver that has memory and copies it, computes nothing, and adds up what the kernels
 * were given to do. All above it is as with a GPU: which kernels are launched, in how many blocks, what is sent and waited for.
 *
 *     backend = trace_open(text);                         NULL: `text` says why
 *     training_start(..., backend, ...);
 *     trace_reset(); training_step ...; trace_read(&r);
 *     training_stop(...); trace_close();
 *
 * From the counts a prediction follows (roofline.h). Large products are those of the kernels, not cuBLAS's. What is fetched is zeros,
 * so losses and gradient norms are 0; weights stay as they are.
 *
 * There is one counter in the program, and one thread at a time may count. */
#ifndef MTAN_TOOLS_TRACE_H
#define MTAN_TOOLS_TRACE_H

#include "../model/device.h"
#include "roofline.h"

/* Until it is closed, the device that counts takes the place of the GPU, if there is one (device.h). */
const mtan_backend *trace_open(char text[DEVICE_TEXT]);
void trace_close(void);

void trace_reset(void);
void trace_read(roofline *r); /* what was counted since the reset */

#endif
