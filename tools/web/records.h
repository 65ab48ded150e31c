/* flat.h without the tools: a model file in memory, and one record at a time, which the library prepares and predicts.
 * With flat_core.c and flat_stream.c, this is the part of flat.h that the WebAssembly module has, plus a few functions
 * for pages. */
#ifndef MTAN_WEB_RECORDS_H
#define MTAN_WEB_RECORDS_H

#include "../mtan/flat/flat_core.h"

/* The kernels that the models use. */
extern const mtan_backend *const web_backend;

/* Recreates the predictor for at most so many events and times, and so many samples of the latent state, and takes its
 * memory now. Calls of flat.h fail if this was too little. */
int32_t web_room(mtan_flat_model *model, int32_t events, int32_t times, int32_t samples);

/* Sets the samples for the data's record, which are otherwise drawn; NULL: draw them. */
void web_noise(mtan_flat_data *data, int32_t n, const mtan_real *noise);
/* The preparation of its observations: counts (6), those of mtan_prepared in that order; and the origin of its
 * times. */
int32_t web_found(const mtan_flat_model *model, const mtan_flat_data *data, int32_t *counts, double *origin);

#endif
