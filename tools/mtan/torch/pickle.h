/* Reads the part of Python's pickle format that torch.save writes into a tree of plain values. Nothing is ever
 * executed: the name of a class or function is looked up in a short list, and any other name is refused with a message
 * that quotes it.
 *
 * Known: None, bool, int, float, str, list, tuple, dict, collections.OrderedDict, argparse.Namespace,
 * torch._utils._rebuild_tensor_v2 and _rebuild_parameter, and the typed storages of torch. Protocols 2 to 5.
 *
 * Limits: 262144 values, rank 8, tensors no larger than their storage. Values refer to each other by number. They may
 * be shared, and in a hostile file they may form a cycle: walk them with marks or a limit. */
#ifndef MTAN_TOOLS_PICKLE_H
#define MTAN_TOOLS_PICKLE_H

#include "../../../mtan.h"

typedef enum pickle_kind {
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INT,
    PICKLE_HUGE, /* an int beyond 64 bits: text and length are its bytes, little-endian */
    PICKLE_FLOAT,
    PICKLE_TEXT,
    PICKLE_LIST,
    PICKLE_TUPLE,
    PICKLE_DICT,
    PICKLE_OBJECT, /* an argparse.Namespace: whole is the number of its dict of attributes, or -1 */
    PICKLE_TENSOR,
    PICKLE_STORAGE,
    PICKLE_GLOBAL /* a known name, not yet called */
} pickle_kind;

typedef struct pickle_value {
    pickle_kind kind;
    int64_t whole; /* bool, int; for a tensor, storage or global, its index in the table below */
    double real;
    const char *text; /* UTF-8 in the blob, not terminated */
    size_t length;
    int32_t *items; /* stb_ds array of values; for a dict, keys and values alternate */
} pickle_value;

typedef struct pickle_storage {
    const char *key; /* names the bytes in the file */
    size_t key_length;
    mtan_dtype dtype;
    size_t item;         /* bytes of an element */
    uint64_t count;      /* elements */
    const uint8_t *data; /* NULL until the reader of the file sets it */
} pickle_storage;

typedef struct pickle_tensor {
    int32_t storage;
    int rank;
    size_t shape[MTAN_MAX_RANK], stride[MTAN_MAX_RANK], offset, count; /* in elements */
    int contiguous;
} pickle_tensor;

typedef struct pickle {
    const uint8_t *bytes;
    size_t n, at;
    pickle_value *values; /* stb_ds arrays */
    pickle_tensor *tensors;
    pickle_storage *storages;
    int32_t *by_key; /* indices of the storages, sorted by their keys */
    int32_t *stack, *memo;
    size_t *marks;
    char error[512];
} pickle;

/* Reads one object from p->at on and moves p->at past it. Returns its number, or -1 with p->error set. Values of
 * earlier calls stay. Start with a zeroed struct whose bytes and n are set. */
int32_t pickle_read(pickle *p);
void pickle_free(pickle *p);

/* The number of the value under a key of a dict or Namespace; -1: no such key, or not a dict or Namespace. */
int32_t pickle_get(const pickle *p, int32_t dict, const char *key);
int32_t pickle_get_whole(const pickle *p, int32_t dict, int64_t key);
/* The storage with a key, or NULL. */
pickle_storage *pickle_storage_named(const pickle *p, const char *key, size_t length);
/* The dict itself, or the dict of a Namespace; NULL for any other kind. */
const pickle_value *pickle_dict(const pickle *p, int32_t value);

#endif
