/* PyTorch checkpoints: reads files of torch.save without PyTorch, and writes files that torch.load(weights_only=True)
 * accepts.
 *
 * It reads both forms: the stream of pickles and storages that torch.save wrote before version 1.6 (and with
 * _use_new_zipfile_serialization=False), and the zip archive of today. pickle.h lists what a file may contain;
 * big-endian files, TorchScript archives and whole pickled modules are refused. */
#ifndef MTAN_TOOLS_TORCHFILE_H
#define MTAN_TOOLS_TORCHFILE_H

#include "pickle.h"
#include "zipfile.h"

typedef struct torchfile {
    pickle pickle;
    zipfile zip;
    int is_zip;
    int32_t root; /* number of the saved object in pickle.values */
} torchfile;

/* Does the blob start like a file of torch.save? */
int torch_recognise(const void *blob, size_t bytes);
/* Returns 1, or 0 with error (512 bytes) set, "NAME: what is wrong", and nothing to free. The blob must stay in
 * memory. */
int torch_open(torchfile *t, const char *name, const void *blob, size_t bytes, char *error);
void torch_close(torchfile *t);

/* A tensor's elements as a view for the library's readers (mtan_view_read and others). Elements that are not contiguous
 * are first gathered into *scratch, an stb_ds array that belongs to the caller. The view's name is empty. */
void torch_view(const torchfile *t, const pickle_tensor *x, mtan_tensor_view *view, uint8_t **scratch);

/* ---- writing ----
 * One object is written from left to right: a dict opens, keys alternate with values, it closes. */

typedef struct torch_piece {
    const void *data;
    size_t bytes;
    uint8_t *owned; /* stb_ds array: the bytes, if the writer allocated them */
} torch_piece;

typedef struct torch_writer {
    uint8_t *pickle;     /* stb_ds array */
    torch_piece *pieces; /* stb_ds array: the storages */
} torch_writer;

enum { TORCH_DICT, TORCH_ORDERED_DICT, TORCH_LIST, TORCH_TUPLE };

void torch_begin(torch_writer *w); /* zeroes the writer */
void torch_put_open(torch_writer *w, int container);
void torch_put_close(torch_writer *w, int container);
void torch_put_bool(torch_writer *w, int value);
void torch_put_whole(torch_writer *w, int64_t value);
void torch_put_real(torch_writer *w, double value);
void torch_put_text(torch_writer *w, const char *text);
/* rank 0, 1 or 2. The reals must stay in memory until torch_finish. */
void torch_put_tensor(torch_writer *w, int rank, size_t rows, size_t cols, const mtan_real *data);
void torch_put_scalar(torch_writer *w, double value); /* a float32 tensor without dimensions */
/* Returns the whole file as a new stb_ds array, or NULL if it would exceed 4 GiB. Frees the writer. */
uint8_t *torch_finish(torch_writer *w);

#endif
