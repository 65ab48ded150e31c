/* Code that callers of the library write: a file from a blob, scratch for a count. */
#ifndef MTAN_TESTS_CALLER_H
#define MTAN_TESTS_CALLER_H

#include "check.h"

/* mtan_model_open, _load, _load_count, _load_config and mtan_trainer_load on a blob; if mtan_file_open fails, its
 * status. */
mtan_status blob_open(mtan_model *model, const void *blob, size_t bytes);
mtan_status blob_load(mtan_model *model, mtan_real *weights, size_t count, const void *blob, size_t bytes);
mtan_status blob_load_count(const void *blob, size_t bytes, size_t *count);
mtan_status blob_load_config(mtan_config *config, const void *blob, size_t bytes);
mtan_status blob_load_trainer(mtan_trainer *trainer, const void *blob, size_t bytes);

/* mtan_record_times with enough scratch for the record, in any order. */
mtan_status times_of(const mtan_record *record, int32_t *times);

#endif
