/* The part of flat.h that depends on mtan.h only: facts about a model, streams, conversion to the data's units. The
 * Python package includes it, and so does the WebAssembly module, where there are no files, no stdio and no malloc. The
 * including program must provide the functions at the end. */
#ifndef MTAN_TOOLS_FLAT_CORE_H
#define MTAN_TOOLS_FLAT_CORE_H

#include "../../../mtan.h"
#include "flat.h"

/* The first member of every struct mtan_flat_model. */
typedef struct flat_core {
    mtan_model model;
    mtan_prep prep;
    int32_t dates; /* times come as dates: ticks of 100 ns */
} flat_core;
const flat_core *flat_core_of(const mtan_flat_model *model);

/* Converts output `index` of row-major predictions to the data's unit. */
double flat_raw_output(const flat_core *c, size_t index, double output);
/* (rows, channels) in the data's units. */
void flat_raw_curves(const flat_core *c, size_t rows, const mtan_real *mean, const mtan_real *sd, double *raw_mean,
                     double *raw_sd);

/* ---- provided by the program that links it ---- */

/* Calls work(job), which returns 1, or 0 after flat_fail. Returns 0 for success, else 1. */
int32_t flat_call(int (*work)(void *job), void *job);
/* Reports an error: the texts concatenated, ended by NULL. Returns 0. */
int flat_fail(const char *text, ...);
/* Allocates memory, NULL if there is none; blocks are freed in reverse order. */
void *flat_take(size_t bytes);
void flat_give_back(void *block);

#endif
