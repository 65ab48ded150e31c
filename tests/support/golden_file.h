/* Reads one tensor of a file of golden/. */
#ifndef MTAN_TESTS_GOLDEN_FILE_H
#define MTAN_TESTS_GOLDEN_FILE_H

#include "check.h"

/* Copies the n elements of a tensor of exactly that type into `out`; returns 0 unless the file, the tensor, its type
 * and its size are as expected. */
static int golden_read(const char *file_name, const char *tensor, mtan_dtype dtype, void *out, size_t n) {
    mtan_file file;
    mtan_tensor_view view;
    size_t bytes = 0;
    void *blob = slurp_golden(file_name, &bytes);
    int ok = blob && mtan_file_open(&file, blob, bytes) == MTAN_OK &&
             mtan_file_tensor(&file, tensor, &view) == MTAN_OK && mtan_view_read_raw(&view, dtype, out, n) == MTAN_OK;
    return guard_free(blob) && ok;
}

#endif
