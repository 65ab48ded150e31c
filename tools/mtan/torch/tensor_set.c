/* See tensor_set.h. */
#include "tensor_set.h"

#include <stdio.h>
#include <string.h>

#include "../base/files.h"

enum { NAME_MOST = 512, DEPTH_MOST = 12, TENSORS_MOST = 4096, VIEWS_MOST = 16, TEXT_MOST = 32 << 20 };

/* ---- safetensors ---- */

/* A text of the header, decoded; free() it. Decoding cannot fail, because the file has been checked. */
static char *decoded(const mtan_text *text) {
    size_t length = 0;
    char *out;
    mtan_text_decode(text, NULL, 0, &length);
    out = tool_calloc(length + 1, 1);
    mtan_text_decode(text, out, length + 1, NULL);
    return out;
}

static void take_file(tensor_set *s, const mtan_file *file) {
    mtan_text key, value;
    named_tensor t = {NULL, {{NULL, 0}, MTAN_DTYPE_BOOL, 0, {0}, 0, 0, NULL, 0}, NULL};
    for (size_t at = 0; mtan_file_tensor_next(file, &at, &t.view) == MTAN_OK;) {
        t.name = decoded(&t.view.name);
        arrput(s->tensors, t);
    }
    for (size_t at = 0; mtan_file_metadata_next(file, &at, &key, &value) == MTAN_OK;) {
        const named_text m = {decoded(&key), decoded(&value)};
        arrput(s->metadata, m);
    }
}

/* ---- PyTorch ---- */

typedef struct walk {
    tensor_set *set;
    const torchfile *file;
    unsigned char *seen; /* (values) containers already walked: a hostile file may hold a cycle */
    uint64_t stored;     /* bytes of all storages */
    uint64_t viewed;     /* bytes of the tensors so far: a hostile file may also use one storage many times */
    size_t text;         /* bytes of names and texts so far: it may also use one text many times */
    int too_much;
} walk;

/* Counts a name, a text and their bookkeeping. Is there room for them? */
static int take_text(walk *w, size_t bytes) {
    w->text += bytes + sizeof(named_tensor);
    return !(w->too_much |= w->text > TEXT_MOST);
}

static void add_tensor(walk *w, const char *name, const pickle_tensor *x) {
    named_tensor t;
    memset(&t, 0, sizeof t);
    w->viewed += x->count * w->file->pickle.storages[x->storage].item;
    w->too_much |= arrlen(w->set->tensors) == TENSORS_MOST || w->viewed / VIEWS_MOST > w->stored + (1 << 16);
    if (!take_text(w, strlen(name))) return;
    torch_view(w->file, x, &t.view, &t.gathered);
    t.name = tool_text(name);
    arrput(w->set->tensors, t);
}

static void add_text(walk *w, const char *name, const pickle_value *v) {
    char text[64];
    named_text m = {NULL, NULL};
    if (v->kind == PICKLE_NONE) snprintf(text, sizeof text, "None");
    else if (v->kind == PICKLE_BOOL) snprintf(text, sizeof text, "%s", v->whole ? "True" : "False");
    else if (v->kind == PICKLE_INT) snprintf(text, sizeof text, "%lld", (long long)v->whole);
    else if (v->kind == PICKLE_FLOAT) snprintf(text, sizeof text, "%.17g", v->real);
    else if (v->kind != PICKLE_TEXT) return;
    if (!take_text(w, strlen(name) + (v->kind == PICKLE_TEXT ? v->length : strlen(text)))) return;
    if (v->kind == PICKLE_TEXT) m.text = memcpy(tool_calloc(v->length + 1, 1), v->text, v->length);
    else m.text = tool_text(text);
    m.name = tool_text(name);
    arrput(w->set->metadata, m);
}

/* Joins "rec_state_dict" and "weight" to "rec.weight". */
static void join(char *out, const char *path, const char *key, size_t length) {
    static const char suffix[] = "_state_dict";
    const size_t n = sizeof suffix - 1;
    if (length > n && memcmp(key + length - n, suffix, n) == 0) length -= n;
    snprintf(out, NAME_MOST, "%s%s%.*s", path, *path ? "." : "", (int)(length < NAME_MOST ? length : NAME_MOST), key);
}

static void walk_value(walk *w, const char *path, int32_t number, int depth);

static void walk_dict(walk *w, const char *path, const pickle_value *dict, int depth) {
    for (size_t i = 0; i + 1 < arrlenu(dict->items) && !w->too_much; i += 2) {
        const pickle_value *key = &w->file->pickle.values[dict->items[i]];
        char name[NAME_MOST], digits[32];
        snprintf(digits, sizeof digits, "%lld", (long long)key->whole);
        if (key->kind == PICKLE_TEXT) join(name, path, key->text, key->length);
        else if (key->kind == PICKLE_INT) join(name, path, digits, strlen(digits));
        else continue;
        walk_value(w, name, dict->items[i + 1], depth + 1);
    }
}

static void walk_value(walk *w, const char *path, int32_t number, int depth) {
    const pickle_value *v = &w->file->pickle.values[number];
    const pickle_value *dict = pickle_dict(&w->file->pickle, number);
    if (v->kind == PICKLE_TENSOR) add_tensor(w, path, &w->file->pickle.tensors[v->whole]);
    else if (!dict && v->kind != PICKLE_LIST && v->kind != PICKLE_TUPLE) add_text(w, path, v);
    else if (depth < DEPTH_MOST && !w->seen[number]) {
        w->seen[number] = 1;
        if (dict) walk_dict(w, path, dict, depth);
        for (size_t i = 0; !dict && i < arrlenu(v->items) && !w->too_much; i++) {
            char name[NAME_MOST], digits[32];
            snprintf(digits, sizeof digits, "%zu", i);
            join(name, path, digits, strlen(digits));
            walk_value(w, name, v->items[i], depth + 1);
        }
    }
}

/* Returns 0 if the file holds more than any useful checkpoint. */
static int take_torch(tensor_set *s, const torchfile *file) {
    walk w = {s, file, tool_calloc(arrlenu(file->pickle.values), 1), 0, 0, 0, 0};
    for (size_t i = 0; i < arrlenu(file->pickle.storages); i++)
        w.stored += file->pickle.storages[i].count * file->pickle.storages[i].item;
    walk_value(&w, "", file->root, 0);
    free(w.seen);
    return !w.too_much;
}

/* ---- both ---- */

static int open_torch(tensor_set *s, const char *name, const void *blob, size_t bytes, char *error) {
    if (!torch_open(&s->file, name, blob, bytes, error)) return 0;
    s->torch = 1;
    if (take_torch(s, &s->file)) return 1;
    tensor_set_close(s);
    return snprintf(error, 512,
                    "%.300s: more than %d tensors, or the same numbers in more than %d of them, or %d MiB of text",
                    name, TENSORS_MOST, VIEWS_MOST, TEXT_MOST >> 20),
           0;
}

static int tensors_more(const void *start, size_t n) {
    return torch_recognise(start, n) || safetensors_more(start, n);
}

void *tensor_set_read(const char *path, size_t *bytes, char *error) {
    return file_read_while(path, tensors_more, bytes, error);
}

int tensor_set_open(tensor_set *s, const char *name, const void *blob, size_t bytes, char *error) {
    mtan_file file;
    mtan_status status;
    memset(s, 0, sizeof *s);
    if (torch_recognise(blob, bytes)) return open_torch(s, name, blob, bytes, error);
    if ((status = mtan_file_open(&file, blob, bytes)) != MTAN_OK)
        return snprintf(error, 512, "%.400s: %s", name, mtan_status_message(status)), 0;
    return take_file(s, &file), 1;
}

void tensor_set_close(tensor_set *s) {
    for (size_t i = 0; i < arrlenu(s->tensors); i++) {
        free(s->tensors[i].name);
        arrfree(s->tensors[i].gathered);
    }
    for (size_t i = 0; i < arrlenu(s->metadata); i++) free(s->metadata[i].name), free(s->metadata[i].text);
    arrfree(s->tensors);
    arrfree(s->metadata);
    if (s->torch) torch_close(&s->file);
}
