/* The named tensors and texts of a file, safetensors or a PyTorch checkpoint: the input of `mtan compare`.
 *
 * In a checkpoint, keys are joined by points, and "rec_state_dict" is called "rec", as in the model files that `mtan
 * convert` makes of it; numbers and texts (epoch, arguments) become its metadata. */
#ifndef MTAN_TOOLS_TENSOR_SET_H
#define MTAN_TOOLS_TENSOR_SET_H

#include <stddef.h>
#include <stdint.h>

#include "../../../mtan.h"
#include "../../data/array.h"
#include "torchfile.h"

typedef struct named_tensor {
    char *name;
    mtan_tensor_view view;
    uint8_t *gathered; /* its elements, if they are not contiguous in the file: an stb_ds array */
} named_tensor;

typedef struct named_text {
    char *name, *text;
} named_text;

typedef struct tensor_set {
    named_tensor *tensors; /* stb_ds arrays, in the file's order */
    named_text *metadata;
    int torch; /* 1: a PyTorch checkpoint, with: */
    torchfile file;
} tensor_set;

/* The bytes of such a file, as file_read returns them; of any other file only the beginning. */
void *tensor_set_read(const char *path, size_t *bytes, char *error);
/* The blob must stay in memory. Returns 1, or 0 with error (512 bytes) set and nothing to free. */
int tensor_set_open(tensor_set *s, const char *name, const void *blob, size_t bytes, char *error);
void tensor_set_close(tensor_set *s);

#endif
