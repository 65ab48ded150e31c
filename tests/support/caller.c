/* See caller.h. */
#include "caller.h"

#include <stdlib.h>

mtan_status blob_open(mtan_model *model, const void *blob, size_t bytes) {
    mtan_file file;
    const mtan_status status = mtan_file_open(&file, blob, bytes);
    return status != MTAN_OK ? status : mtan_model_open(model, &file, NULL);
}

mtan_status blob_load(mtan_model *model, mtan_real *weights, size_t count, const void *blob, size_t bytes) {
    mtan_file file;
    const mtan_status status = mtan_file_open(&file, blob, bytes);
    return status != MTAN_OK ? status : mtan_model_load(model, weights, count, &file, NULL);
}

mtan_status blob_load_count(const void *blob, size_t bytes, size_t *count) {
    mtan_file file;
    const mtan_status status = mtan_file_open(&file, blob, bytes);
    return status != MTAN_OK ? status : mtan_model_load_count(&file, NULL, count);
}

mtan_status blob_load_config(mtan_config *config, const void *blob, size_t bytes) {
    mtan_file file;
    const mtan_status status = mtan_file_open(&file, blob, bytes);
    return status != MTAN_OK ? status : mtan_model_load_config(config, &file, NULL);
}

mtan_status blob_load_trainer(mtan_trainer *trainer, const void *blob, size_t bytes) {
    mtan_file file;
    const mtan_status status = mtan_file_open(&file, blob, bytes);
    return status != MTAN_OK ? status : mtan_trainer_load(trainer, &file);
}

mtan_status times_of(const mtan_record *record, int32_t *times) {
    const size_t events = record && record->n_events > 0 ? (size_t)record->n_events : 0;
    int32_t *scratch = guard_alloc(2 * events * sizeof *scratch);
    const mtan_status status = mtan_record_times(record, scratch, times);
    return guard_free(scratch) ? status : MTAN_ERR_MEMORY;
}
