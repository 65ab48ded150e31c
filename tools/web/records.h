/* flat.h where there are no tools: a model file in memory, and one record at a time, which the library prepares and predicts. With
 * flat_core.c and flat_stream.c this is all of flat.h that the WebAssembly module has, and a little that pages ask besides. */
#ifndef MTAN_WEB_RECORDS_H
#define MTAN_WEB_RECORDS_H

#include "../mtan/flat/flat_core.h"

/* Kernels of the models. */
extern const mtan_backend *const web_backend;

/* Makes the predictor anew: what is asked from now on has at most so many events and times, and so many samples of the latent state.
 * Its memory is taken here. As calls of flat.h, which fail where this was too little. */
int32_t web_room(mtan_flat_model *model, int32_t events, int32_t times, int32_t samples);

/* What the samples of the data's record are, in place of draws; NULL: drawn. */
void web_noise(mtan_flat_data *data, int32_t n, const mtan_real *noise);
/* What became of its observations, (6): the counts of mtan_prepared, in that order; and what times were counted from. */
int32_t web_found(const mtan_flat_model *model, const mtan_flat_data *data, int32_t *counts, double *origin);

#endif
