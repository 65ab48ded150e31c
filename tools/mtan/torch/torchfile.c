/* See torchfile.h: reading. torchwrite.c writes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/array.h"
#include "torchfile.h"

enum { ERROR_SIZE = 512, PATH_SIZE = 256 };

static int refuse(torchfile *t, const char *why) {
    snprintf(t->pickle.error, sizeof t->pickle.error, "%s", why);
    return 0;
}

static int starts_with(const uint8_t *bytes, size_t n, const char *word, size_t length) {
    return n >= length && memcmp(bytes, word, length) == 0;
}

int torch_recognise(const void *blob, size_t bytes) {
    const uint8_t *at = blob;
    return starts_with(at, bytes, "PK\3\4", 4) || (bytes >= 2 && at[0] == 0x80 && at[1] >= 2 && at[1] <= 5);
}

/* ---- the zip form ---- */

/* Finds the folder that holds all entries, from the single entry FOLDER/data.pkl. */
static const zip_entry *find_pickle(const zipfile *z) {
    static const char tail[] = "/data.pkl";
    const size_t n = sizeof tail - 1;
    const zip_entry *found = NULL;
    for (size_t i = 0; i < arrlenu(z->entries); i++) {
        const zip_entry *e = &z->entries[i];
        if (e->name_length <= n || memcmp(e->name + e->name_length - n, tail, n) != 0) continue;
        if (memchr(e->name, '/', e->name_length - n)) continue;
        if (found) return NULL;
        found = e;
    }
    return found && found->name_length < PATH_SIZE - 80 ? found : NULL;
}

/* Finds FOLDER/NAME, next to the entry FOLDER/data.pkl. */
static const zip_entry *find_beside(const zipfile *z, const zip_entry *pickle_entry, const char *name, size_t length) {
    char path[PATH_SIZE];
    const size_t folder = pickle_entry->name_length - strlen("data.pkl");
    memcpy(path, pickle_entry->name, folder);
    memcpy(path + folder, name, length);
    path[folder + length] = 0;
    return zip_find(z, path);
}

static int check_byte_order(torchfile *t, const zip_entry *pickle_entry) {
    const zip_entry *e = find_beside(&t->zip, pickle_entry, "byteorder", 9);
    if (!e) return 1; /* older files have no such entry and are taken as little-endian */
    const uint8_t *content = zip_content(&t->zip, e, t->pickle.error);
    if (!content) return 0;
    return e->bytes == 6 && memcmp(content, "little", 6) == 0 ? 1 : refuse(t, "big-endian files are not supported");
}

static int find_zip_storages(torchfile *t, const zip_entry *pickle_entry) {
    for (size_t i = 0; i < arrlenu(t->pickle.storages); i++) {
        pickle_storage *s = &t->pickle.storages[i];
        char name[80] = "data/";
        memcpy(name + 5, s->key, s->key_length);
        const zip_entry *e = find_beside(&t->zip, pickle_entry, name, 5 + s->key_length);
        if (!e) return refuse(t, "the archive misses the data of a tensor");
        if (e->bytes != s->count * s->item) return refuse(t, "a tensor's data has another size than the pickle says");
        if (!(s->data = zip_content(&t->zip, e, t->pickle.error))) return 0;
    }
    return 1;
}

static int read_zip(torchfile *t, const void *blob, size_t bytes) {
    if (!zip_open(&t->zip, blob, bytes, t->pickle.error)) return 0;
    t->is_zip = 1;
    const zip_entry *e = find_pickle(&t->zip);
    if (!e) return refuse(t, "a zip archive, but not one of torch.save: it has no data.pkl of its own");
    if (!check_byte_order(t, e)) return 0;
    if (!(t->pickle.bytes = zip_content(&t->zip, e, t->pickle.error))) return 0;
    t->pickle.n = (size_t)e->bytes;
    t->root = pickle_read(&t->pickle);
    return t->root >= 0 && find_zip_storages(t, e);
}

/* ---- the stream ---- */

static int is_magic(const pickle_value *v) {
    static const char magic[] = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
    return v->kind == PICKLE_HUGE && v->length == 10 && memcmp(v->text, magic, 10) == 0;
}

/* The file starts with three pickles: a magic number, the version 1001, and a description of the machine that wrote
 * it. */
static int read_preamble(torchfile *t) {
    pickle *p = &t->pickle;
    int32_t magic = pickle_read(p);
    if (magic < 0 || !is_magic(&p->values[magic])) return refuse(t, "a pickle, but not a file of torch.save");
    const int32_t version = pickle_read(p);
    if (version < 0) return 0;
    if (p->values[version].kind != PICKLE_INT || p->values[version].whole != 1001)
        return refuse(t, "a version of torch.save's format that is not supported");
    const int32_t machine = pickle_read(p);
    const int32_t little = machine < 0 ? -1 : pickle_get(p, machine, "little_endian");
    if (machine < 0) return 0;
    if (little < 0 || p->values[little].kind != PICKLE_BOOL || !p->values[little].whole)
        return refuse(t, "big-endian files are not supported");
    return 1;
}

/* Reads one storage: the number of elements in eight bytes, then the elements. */
static int read_storage(torchfile *t, const pickle_value *key) {
    pickle *p = &t->pickle;
    pickle_storage *s = key->kind == PICKLE_TEXT ? pickle_storage_named(p, key->text, key->length) : NULL;
    uint64_t count = 0;
    if (!s || s->data) return refuse(t, "the list of storages does not match the tensors");
    if (p->n - p->at < 8) return refuse(t, "the file is cut off");
    for (int i = 8; i-- > 0;) count = count << 8 | p->bytes[p->at + (size_t)i];
    if (count != s->count) return refuse(t, "a tensor's data has another size than the pickle says");
    p->at += 8;
    if (count > (p->n - p->at) / s->item) return refuse(t, "the file is cut off");
    s->data = p->bytes + p->at;
    p->at += (size_t)count * s->item;
    return 1;
}

static int read_stream(torchfile *t, const void *blob, size_t bytes) {
    pickle *p = &t->pickle;
    p->bytes = blob, p->n = bytes;
    if (!read_preamble(t)) return 0;
    if ((t->root = pickle_read(p)) < 0) return 0;
    const int32_t keys = pickle_read(p);
    if (keys < 0) return 0;
    const pickle_value *list = &p->values[keys];
    if (list->kind != PICKLE_LIST || arrlen(list->items) != arrlen(p->storages))
        return refuse(t, "the list of storages does not match the tensors");
    for (size_t i = 0; i < arrlenu(list->items); i++)
        if (!read_storage(t, &p->values[list->items[i]])) return 0;
    return p->at == p->n ? 1 : refuse(t, "bytes are left over at the end: the file is damaged");
}

/* ---- both ---- */

int torch_open(torchfile *t, const char *name, const void *blob, size_t bytes, char *error) {
    memset(t, 0, sizeof *t);
    const int good = !torch_recognise(blob, bytes)   ? refuse(t, "not a file of torch.save")
                     : *(const uint8_t *)blob == 'P' ? read_zip(t, blob, bytes)
                                                     : read_stream(t, blob, bytes);
    if (good) return 1;
    snprintf(error, ERROR_SIZE, "%.200s: %.300s", name, t->pickle.error);
    torch_close(t);
    return 0;
}

void torch_close(torchfile *t) {
    pickle_free(&t->pickle);
    if (t->is_zip) zip_close(&t->zip);
    memset(t, 0, sizeof *t);
}

/* Row-major order: the last index runs fastest. */
static void gather(uint8_t *out, const pickle_tensor *x, const uint8_t *data, size_t item) {
    size_t index[MTAN_MAX_RANK] = {0}, at = x->offset;
    for (size_t i = 0; i < x->count; i++) {
        memcpy(out + i * item, data + at * item, item);
        for (int d = x->rank; d-- > 0;) {
            at += x->stride[d];
            if (++index[d] < x->shape[d]) break;
            at -= x->stride[d] * x->shape[d];
            index[d] = 0;
        }
    }
}

void torch_view(const torchfile *t, const pickle_tensor *x, mtan_tensor_view *view, uint8_t **scratch) {
    const pickle_storage *s = &t->pickle.storages[x->storage];
    memset(view, 0, sizeof *view);
    view->name.raw = "";
    view->dtype = s->dtype, view->rank = x->rank;
    memcpy(view->shape, x->shape, sizeof view->shape);
    view->count = x->count, view->bytes = x->count * s->item;
    view->data = s->data + (x->count ? x->offset * s->item : 0);
    if (!x->contiguous && x->count) {
        arrsetlen(*scratch, view->bytes);
        gather(*scratch, x, s->data, s->item);
        view->data = *scratch;
    }
    view->aligned = (uintptr_t)view->data % s->item == 0;
}
