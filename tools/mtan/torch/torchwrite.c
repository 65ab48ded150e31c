/* Writes files of torch.save: a zip archive with stored entries, their data aligned to 64 bytes as in PyTorch, and a
 * pickle of protocol 2. Nothing in it needs more than torch.load(weights_only=True) allows. The same object gives the
 * same bytes. See torchfile.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/array.h"
#include "torchfile.h"

enum { ALIGNMENT = 64, LOCAL_SIZE = 30 };

/* ---- the pickle ---- */

static void put_bytes(uint8_t **out, const void *bytes, size_t n) {
    if (n) memcpy(arraddnptr(*out, n), bytes, n);
}

static void put_little(uint8_t **out, uint64_t x, int bytes) {
    for (int i = 0; i < bytes; i++) arrput(*out, (uint8_t)(x >> (8 * i)));
}

static void put_op(torch_writer *w, char op) {
    arrput(w->pickle, (uint8_t)op);
}

static void put_name(torch_writer *w, const char *module_newline_name_newline) {
    put_op(w, 'c');
    put_bytes(&w->pickle, module_newline_name_newline, strlen(module_newline_name_newline));
}

void torch_begin(torch_writer *w) {
    memset(w, 0, sizeof *w);
    put_bytes(&w->pickle, "\x80\x02", 2);
}

void torch_put_open(torch_writer *w, int container) {
    if (container == TORCH_ORDERED_DICT) {
        put_name(w, "collections\nOrderedDict\n");
        put_bytes(&w->pickle, ")R", 2);
    } else if (container != TORCH_TUPLE) {
        put_op(w, container == TORCH_DICT ? '}' : ']');
    }
    put_op(w, '(');
}

void torch_put_close(torch_writer *w, int container) {
    put_op(w, container == TORCH_TUPLE ? 't' : container == TORCH_LIST ? 'e' : 'u');
}

void torch_put_bool(torch_writer *w, int value) {
    arrput(w->pickle, (uint8_t)(value ? 0x88 : 0x89));
}

/* A signed number of up to 32 bits, otherwise eight bytes. */
void torch_put_whole(torch_writer *w, int64_t value) {
    if (value >= INT32_MIN && value <= INT32_MAX) {
        put_op(w, 'J');
        put_little(&w->pickle, (uint64_t)value, 4);
    } else {
        put_bytes(&w->pickle, "\x8a\x08", 2);
        put_little(&w->pickle, (uint64_t)value, 8);
    }
}

void torch_put_real(torch_writer *w, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_op(w, 'G');
    for (int i = 8; i-- > 0;) arrput(w->pickle, (uint8_t)(bits >> (8 * i)));
}

void torch_put_text(torch_writer *w, const char *text) {
    put_op(w, 'X');
    put_little(&w->pickle, strlen(text), 4);
    put_bytes(&w->pickle, text, strlen(text));
}

/* _rebuild_tensor_v2(storage, 0, shape, stride, False, OrderedDict()), with its own storage. */
static void put_rebuilt(torch_writer *w, int rank, const size_t shape[2], int wide, size_t bytes) {
    char key[24];
    const size_t stride[2] = {rank == 2 ? shape[1] : 1, 1};
    snprintf(key, sizeof key, "%zu", arrlenu(w->pieces) - 1);
    put_name(w, "torch._utils\n_rebuild_tensor_v2\n");
    put_bytes(&w->pickle, "((", 2);
    torch_put_text(w, "storage");
    put_name(w, wide ? "torch\nDoubleStorage\n" : "torch\nFloatStorage\n");
    torch_put_text(w, key);
    torch_put_text(w, "cpu");
    torch_put_whole(w, (int64_t)(bytes / (wide ? 8 : 4)));
    put_bytes(&w->pickle, "tQ", 2);
    torch_put_whole(w, 0);
    torch_put_open(w, TORCH_TUPLE);
    for (int i = 0; i < rank; i++) torch_put_whole(w, (int64_t)shape[i]);
    torch_put_close(w, TORCH_TUPLE);
    torch_put_open(w, TORCH_TUPLE);
    for (int i = 0; i < rank; i++) torch_put_whole(w, (int64_t)stride[i]);
    torch_put_close(w, TORCH_TUPLE);
    torch_put_bool(w, 0);
    put_name(w, "collections\nOrderedDict\n");
    put_bytes(&w->pickle, ")RtR", 4);
}

/* The file is little-endian on every machine. */
static uint8_t *as_little(const void *data, size_t count, size_t item) {
    uint8_t *out = NULL;
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = 0;
        uint32_t narrow;
        const uint8_t *at = (const uint8_t *)data + i * item;
        if (item == 8) memcpy(&bits, at, 8);
        else memcpy(&narrow, at, 4), bits = narrow;
        put_little(&out, bits, (int)item);
    }
    return out;
}

void torch_put_tensor(torch_writer *w, int rank, size_t rows, size_t cols, const mtan_real *data) {
    const size_t shape[2] = {rows, cols}, count = (rank > 0 ? rows : 1) * (rank > 1 ? cols : 1);
    torch_piece piece = {data, count * sizeof *data, NULL};
    const uint16_t one = 1;
    if (*(const uint8_t *)&one == 0) piece.data = piece.owned = as_little(data, count, sizeof *data);
    arrput(w->pieces, piece);
    put_rebuilt(w, rank, shape, sizeof *data == 8, piece.bytes);
}

void torch_put_scalar(torch_writer *w, double value) {
    const size_t shape[2] = {1, 1};
    const float narrow = (float)value;
    torch_piece piece = {NULL, sizeof narrow, NULL};
    piece.data = piece.owned = as_little(&narrow, 1, sizeof narrow);
    arrput(w->pieces, piece);
    put_rebuilt(w, 0, shape, 0, piece.bytes);
}

/* ---- the archive ---- */

typedef struct archive {
    uint8_t *bytes, *directory; /* stb_ds arrays */
    unsigned entries;
} archive;

/* The common part of the local header and the directory: version to flags, time (1980-01-01), checksum, sizes, name's
 * length. */
static void put_common(uint8_t **out, uint32_t checksum, size_t n, size_t name) {
    put_little(out, 20, 2); /* version needed */
    put_little(out, 0, 2);  /* flags */
    put_little(out, 0, 2);  /* stored */
    put_little(out, 0, 2);
    put_little(out, 0x21, 2);
    put_little(out, checksum, 4);
    put_little(out, n, 4);
    put_little(out, n, 4);
    put_little(out, name, 2);
}

/* The padding is an extra field "FB", as in PyTorch's own files. */
static void put_entry(archive *a, const char *name, const void *data, size_t n) {
    char path[64];
    const int length = snprintf(path, sizeof path, "archive/%s", name);
    const size_t start = arrlenu(a->bytes), bare = start + LOCAL_SIZE + (size_t)length + 4;
    const size_t padding = (ALIGNMENT - bare % ALIGNMENT) % ALIGNMENT;
    const uint32_t checksum = zip_checksum(data, n);
    put_bytes(&a->bytes, "PK\3\4", 4);
    put_common(&a->bytes, checksum, n, (size_t)length);
    put_little(&a->bytes, 4 + padding, 2);
    put_bytes(&a->bytes, path, (size_t)length);
    put_bytes(&a->bytes, "FB", 2);
    put_little(&a->bytes, padding, 2);
    for (size_t i = 0; i < padding; i++) arrput(a->bytes, 'Z');
    put_bytes(&a->bytes, data, n);
    put_bytes(&a->directory, "PK\1\2\0\0", 6);
    put_common(&a->directory, checksum, n, (size_t)length);
    for (int i = 0; i < 12; i++) arrput(a->directory, 0); /* extra, comment, disk, attributes */
    put_little(&a->directory, start, 4);
    put_bytes(&a->directory, path, (size_t)length);
    a->entries++;
}

static void put_end(archive *a) {
    const size_t start = arrlenu(a->bytes), n = arrlenu(a->directory);
    put_bytes(&a->bytes, a->directory, n);
    put_bytes(&a->bytes, "PK\5\6\0\0\0\0", 8);
    put_little(&a->bytes, a->entries, 2);
    put_little(&a->bytes, a->entries, 2);
    put_little(&a->bytes, n, 4);
    put_little(&a->bytes, start, 4);
    put_little(&a->bytes, 0, 2);
    arrfree(a->directory);
}

/* Sums the sizes of all parts with room for headers, because sizes in the archive are 32 bits wide. */
static int too_large(const torch_writer *w) {
    uint64_t sum = arrlenu(w->pickle);
    for (size_t i = 0; i < arrlenu(w->pieces); i++) sum += w->pieces[i].bytes + 512;
    return sum > UINT32_MAX - 4096u || arrlen(w->pieces) > 60000;
}

uint8_t *torch_finish(torch_writer *w) {
    archive a = {NULL, NULL, 0};
    char name[32];
    put_op(w, '.');
    if (!too_large(w)) {
        put_entry(&a, "data.pkl", w->pickle, arrlenu(w->pickle));
        put_entry(&a, "byteorder", "little", 6);
        for (size_t i = 0; i < arrlenu(w->pieces); i++) {
            snprintf(name, sizeof name, "data/%zu", i);
            put_entry(&a, name, w->pieces[i].data, w->pieces[i].bytes);
        }
        put_entry(&a, "version", "3\n", 2);
        put_end(&a);
    }
    for (size_t i = 0; i < arrlenu(w->pieces); i++) arrfree(w->pieces[i].owned);
    arrfree(w->pieces);
    arrfree(w->pickle);
    return a.bytes;
}
