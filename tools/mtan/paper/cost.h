/* The cost of a launch of a CUDA kernel on a GPU. It is computed from the kernel's structure of arguments
 * (platform/cuda/arguments.h) and its grid: nothing here knows when a kernel is launched, or in how many blocks.
 *
 * Multiplications and additions count one each, a function (exp, sin, tanh, ...) 20, a random normal 60. Every operand
 * is read or written once per launch, in float. */
#ifndef MTAN_TOOLS_COST_H
#define MTAN_TOOLS_COST_H

#include "../../../platform/cuda/launch.h"

typedef struct cost {
    double flops, busy, turns, read, written; /* as in roofline_entry */
} cost;

/* Reads the integers that arguments point to (lengths, offsets, events), but not the other arrays. */
cost kernel_cost(mtan_cuda_kernel kernel, const void *arguments, const unsigned grid[3]);

/* 0: the kernel is missing in cost.c. */
int kernel_has_cost(mtan_cuda_kernel kernel);

#endif
