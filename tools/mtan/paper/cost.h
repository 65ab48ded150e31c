/* What a launch of a CUDA kernel asks of a GPU. Its sizes come from the kernel's own structure of arguments
 * (platform/cuda/arguments.h) and from its grid: nothing here knows when a kernel is launched, or in how many blocks.
 *
 * Multiplications and additions count one each, a function (exp, sin, tanh, ...) 20, a random normal 60. Every operand is read or
 * written once per launch, in float. */
#ifndef MTAN_TOOLS_COST_H
#define MTAN_TOOLS_COST_H

#include "../../../platform/cuda/launch.h"

typedef struct cost {
    double flops, busy, turns, read, written; /* as in roofline_entry */
} cost;

/* The integers that arguments point to (lengths, offsets, events) are read; the other arrays are not. */
cost kernel_cost(mtan_cuda_kernel kernel, const void *arguments, const unsigned grid[3]);

/* 0: cost.c has forgotten it. */
int kernel_has_cost(mtan_cuda_kernel kernel);

#endif
