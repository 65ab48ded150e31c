/* What a caller writes around the library: the file of a blob, the scratch of a count. */
#ifndef MTAN_TESTS_CALLER_H
#define MTAN_TESTS_CALLER_H

#include "check.h"

/* mtan_model_open, _load, _load_count, _load_config and mtan_trainer_load on a blob; what mtan_file_open says if it fails. */
mtan_status blob_open(mtan_model *model, const void *blob, size_t bytes);
mtan_status blob_load(mtan_model *model, mtan_real *weights, size_t count, const void *blob, size_t bytes);
mtan_status blob_load_count(const void *blob, size_t bytes, size_t *count);
mtan_status blob_load_config(mtan_config *config, const void *blob, size_t bytes);
mtan_status blob_load_trainer(mtan_trainer *trainer, const void *blob, size_t bytes);

/* mtan_record_times with scratch enough for the record, whatever its order. */
mtan_status times_of(const mtan_record *record, int32_t *times);

#endif
