/* The part of flat.h that stands on mtan.h alone: facts of a model, streams, answers in the data's units. The Python package has it, and
 * so has the WebAssembly module, where there are no files, no stdio and no malloc. Whoever links it brings the functions at the end. */
#ifndef MTAN_TOOLS_FLAT_CORE_H
#define MTAN_TOOLS_FLAT_CORE_H

#include "../../../mtan.h"
#include "flat.h"

/* Every struct mtan_flat_model begins with it. */
typedef struct flat_core {
    mtan_model model;
    mtan_prep prep;
    int32_t dates; /* times come as dates: ticks of 100 ns */
} flat_core;
const flat_core *flat_core_of(const mtan_flat_model *model);

/* Output `index` of predictions that lie row after row, a number in the data's unit. */
double flat_raw_output(const flat_core *c, size_t index, double output);
/* (rows, channels) in the data's units. */
void flat_raw_curves(const flat_core *c, size_t rows, const mtan_real *mean, const mtan_real *sd, double *raw_mean,
                     double *raw_sd);

/* ---- brought by whoever links it ---- */

/* Calls work(job), which returns 1, or 0 after flat_fail. Returns 0 for success, else 1. */
int32_t flat_call(int (*work)(void *job), void *job);
/* Says what is wrong: the texts one after the other, NULL behind the last. Returns 0. */
int flat_fail(const char *text, ...);
/* Memory, NULL where there is none; blocks are given back from the last. */
void *flat_take(size_t bytes);
void flat_give_back(void *block);

#endif
