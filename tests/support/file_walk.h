/* Reads the whole content of an opened file, and checks what mtan_file_open guarantees. For the suite and the
 * fuzzer. */
#ifndef MTAN_TESTS_FILE_WALK_H
#define MTAN_TESTS_FILE_WALK_H

#include <stdlib.h>
#include <string.h>

#include "../../mtan.h"

/* A text decoded into a block of exactly its size (free it), or NULL. */
static char *file_walk_text(const mtan_text *coded) {
    size_t length = 0;
    if (mtan_text_decode(coded, NULL, 0, &length) != MTAN_OK) return NULL;
    char *plain = (char *)malloc(length + 1);
    if (plain != NULL && mtan_text_decode(coded, plain, length + 1, NULL) != MTAN_OK) {
        free(plain);
        return NULL;
    }
    return plain;
}

/* All elements, copied into blocks of exactly their size. */
static int file_walk_elements(const mtan_tensor_view *view) {
    const int real = view->dtype == MTAN_DTYPE_F16 || view->dtype == MTAN_DTYPE_BF16 || view->dtype == MTAN_DTYPE_F32 ||
                     view->dtype == MTAN_DTYPE_F64;
    const mtan_status expected = real ? MTAN_OK : MTAN_ERR_SHAPE;
    void *raw = malloc(view->bytes + !view->bytes);
    mtan_real *reals = (mtan_real *)malloc(view->count * sizeof *reals + 1);
    double *doubles = (double *)malloc(view->count * sizeof *doubles + 1);
    const int good = raw != NULL && reals != NULL && doubles != NULL &&
                     mtan_view_read_raw(view, view->dtype, raw, view->count) == MTAN_OK &&
                     mtan_view_read(view, reals, view->count) == expected &&
                     mtan_view_read_f64(view, doubles, view->count) == expected;
    free(raw);
    free(reals);
    free(doubles);
    return good;
}

/* The next tensor must also be the index-th. Looking up its name must lead back to the same tensor, unless the name
 * contains a zero and cannot be passed. */
static int file_walk_tensor(const mtan_file *file, size_t index, size_t *at, size_t *covered) {
    mtan_tensor_view view, again;
    if (mtan_file_tensor_next(file, at, &again) != MTAN_OK) return 0;
    if (mtan_file_tensor_at(file, index, &view) != MTAN_OK || again.name.raw != view.name.raw) return 0;
    char *name = file_walk_text(&view.name);
    size_t length = 0;
    int good = name != NULL && mtan_text_decode(&view.name, NULL, 0, &length) == MTAN_OK;
    if (good && memchr(name, 0, length) == NULL)
        good = mtan_file_tensor(file, name, &again) == MTAN_OK && again.name.raw == view.name.raw;
    free(name);
    *covered += view.bytes;
    return good && view.data >= file->data && view.bytes <= file->data_bytes &&
           (size_t)(view.data - file->data) <= file->data_bytes - view.bytes && file_walk_elements(&view);
}

static int file_walk_pair(const mtan_file *file, size_t index, size_t *at) {
    mtan_text key, value, again;
    if (mtan_file_metadata_next(file, at, &again, &value) != MTAN_OK) return 0;
    if (mtan_file_metadata_at(file, index, &key, &value) != MTAN_OK || again.raw != key.raw) return 0;
    char *plain_key = file_walk_text(&key), *plain_value = file_walk_text(&value);
    size_t length = 0, asked = 0;
    int good = plain_key != NULL && plain_value != NULL;
    if (good && mtan_text_decode(&key, NULL, 0, &length) == MTAN_OK && memchr(plain_key, 0, length) == NULL)
        good = mtan_file_metadata(file, plain_key, NULL, 0, &asked) == MTAN_OK &&
               mtan_text_decode(&value, NULL, 0, &length) == MTAN_OK && asked == length;
    free(plain_key);
    free(plain_value);
    return good;
}

/* Returns 1 if everything is as guaranteed. It continues after a failure, to touch as much as possible. */
static int file_walk(const mtan_file *file) {
    mtan_tensor_view view;
    mtan_text key, value;
    size_t covered = 0, tensor = 0, pair = 0;
    int good = 1;
    for (size_t i = 0; i < file->tensors; i++) good &= file_walk_tensor(file, i, &tensor, &covered);
    for (size_t i = 0; i < file->pairs; i++) good &= file_walk_pair(file, i, &pair);
    return good && covered == file->data_bytes && mtan_file_tensor_at(file, file->tensors, &view) == MTAN_ERR_MISSING &&
           mtan_file_tensor_next(file, &tensor, &view) == MTAN_ERR_MISSING &&
           mtan_file_metadata_at(file, file->pairs, &key, &value) == MTAN_ERR_MISSING &&
           mtan_file_metadata_next(file, &pair, &key, &value) == MTAN_ERR_MISSING;
}

#endif
