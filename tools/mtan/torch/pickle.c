/* See pickle.h. A stack machine of some forty instructions. Each instruction either reads forward or fails, and values
 * are not compared pairwise, so time and memory grow in proportion to the length of the input, up to a logarithm. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/array.h"
#include "pickle.h"

enum { MOST_VALUES = 1 << 18, MOST_STORAGES = 4096 };

static int fail(pickle *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(p->error, sizeof p->error, format, args);
    va_end(args);
    return 0;
}

/* ---- reading forward ---- */

static const uint8_t *take(pickle *p, uint64_t n) {
    if (n > p->n - p->at) return fail(p, "the pickle is cut off at byte %zu", p->at), NULL;
    p->at += (size_t)n;
    return p->bytes + p->at - n;
}

static int take_little(pickle *p, int bytes, uint64_t *x) {
    const uint8_t *at = take(p, (uint64_t)bytes);
    *x = 0;
    for (int i = bytes; at && i-- > 0;) *x = *x << 8 | at[i];
    return at != NULL;
}

/* ---- values and the stack ---- */

/* A new value on top of the stack, or NULL. */
static pickle_value *push_new(pickle *p, pickle_kind kind) {
    const pickle_value fresh = {kind, 0, 0, NULL, 0, NULL};
    if (arrlen(p->values) >= MOST_VALUES)
        return fail(p, "more than %d values: no checkpoint of a model is like that", (int)MOST_VALUES), NULL;
    arrput(p->values, fresh);
    arrput(p->stack, (int32_t)arrlen(p->values) - 1);
    return &arrlast(p->values);
}

/* The number of stack entries above the innermost mark. */
static size_t above_mark(const pickle *p) {
    return arrlenu(p->stack) - (arrlenu(p->marks) ? arrlast(p->marks) : 0);
}

/* Takes the topmost value, never one below the innermost mark. */
static int pop(pickle *p, int32_t *value) {
    if (above_mark(p) == 0) return fail(p, "the pickle takes more than it has put down, at byte %zu", p->at);
    *value = arrpop(p->stack);
    return 1;
}

static int pop_kind(pickle *p, pickle_kind kind, int32_t *value) {
    if (!pop(p, value)) return 0;
    return p->values[*value].kind == kind ? 1 : fail(p, "the pickle is malformed at byte %zu", p->at);
}

/* Reads the topmost value and leaves it on the stack. */
static int top(pickle *p, int32_t *value) {
    return pop(p, value) ? arrput(p->stack, *value), 1 : 0;
}

/* ---- numbers and texts ---- */

static int push_whole(pickle *p, pickle_kind kind, int64_t whole) {
    pickle_value *v = push_new(p, kind);
    if (v) v->whole = whole;
    return v != NULL;
}

static int read_whole(pickle *p, int bytes) {
    uint64_t x;
    if (!take_little(p, bytes, &x)) return 0;
    return push_whole(p, PICKLE_INT, bytes == 4 ? (int64_t)(int32_t)(uint32_t)x : (int64_t)x);
}

/* An int of n bytes, two's complement. */
static int read_long(pickle *p, int length_bytes) {
    uint64_t n, x = 0;
    const uint8_t *at;
    if (!take_little(p, length_bytes, &n) || !(at = take(p, n))) return 0;
    pickle_value *v = push_new(p, n > 8 ? PICKLE_HUGE : PICKLE_INT);
    if (!v) return 0;
    v->text = (const char *)at, v->length = (size_t)n;
    if (n > 8) return 1;
    for (uint64_t i = n; i-- > 0;) x = x << 8 | at[i];
    if (n > 0 && n < 8 && at[n - 1] & 0x80) x |= ~(uint64_t)0 << (8 * n);
    memcpy(&v->whole, &x, sizeof x);
    return 1;
}

static int read_float(pickle *p) {
    const uint8_t *at = take(p, 8);
    pickle_value *v = at ? push_new(p, PICKLE_FLOAT) : NULL;
    uint64_t bits = 0;
    if (!v) return 0;
    for (int i = 0; i < 8; i++) bits = bits << 8 | at[i];
    memcpy(&v->real, &bits, sizeof bits);
    return 1;
}

/* Length in bytes of the character that starts here; 0: not UTF-8. */
static size_t utf8_step(const uint8_t *s, size_t left) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t n = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
    uint32_t code = n == 1 ? s[0] : s[0] & (0xffu >> (n + 1));
    if (n == 0 || n > left) return 0;
    for (size_t i = 1; i < n; i++) {
        if (s[i] >> 6 != 2) return 0;
        code = code << 6 | (s[i] & 63);
    }
    return code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : n;
}

static int read_text(pickle *p, int length_bytes) {
    uint64_t n;
    const uint8_t *at;
    if (!take_little(p, length_bytes, &n) || !(at = take(p, n))) return 0;
    for (size_t i = 0, step; i < n; i += step)
        if (!(step = utf8_step(at + i, (size_t)n - i)))
            return fail(p, "a text that is not UTF-8 before byte %zu", p->at);
    pickle_value *v = push_new(p, PICKLE_TEXT);
    if (v) v->text = (const char *)at, v->length = (size_t)n;
    return v != NULL;
}

/* ---- containers ---- */

static int make_tuple(pickle *p, size_t n) {
    if (above_mark(p) < n) return fail(p, "the pickle takes more than it has put down, at byte %zu", p->at);
    const size_t first = arrlenu(p->stack) - n;
    int32_t *items = NULL;
    for (size_t i = 0; i < n; i++) arrput(items, p->stack[first + i]);
    arrsetlen(p->stack, first);
    pickle_value *v = push_new(p, PICKLE_TUPLE);
    if (v) v->items = items;
    else arrfree(items);
    return v != NULL;
}

static int tuple_from_mark(pickle *p) {
    if (arrlen(p->marks) == 0) return fail(p, "a mark is missing at byte %zu", p->at);
    const size_t n = above_mark(p);
    (void)arrpop(p->marks);
    return make_tuple(p, n);
}

static int key_allowed(const pickle *p, int32_t value) {
    return p->values[value].kind <= PICKLE_TEXT && p->values[value].kind != PICKLE_FLOAT;
}

/* Moves the last n entries of the stack into the list or dict below them. */
static int fill(pickle *p, pickle_kind kind, size_t n) {
    const size_t first = arrlenu(p->stack) - n;
    if (first <= (arrlenu(p->marks) ? arrlast(p->marks) : 0) || (kind == PICKLE_DICT && n % 2) ||
        p->values[p->stack[first - 1]].kind != kind)
        return fail(p, "the pickle is malformed at byte %zu", p->at);
    int32_t **items = &p->values[p->stack[first - 1]].items;
    for (size_t i = 0; i < n; i++) {
        if (kind == PICKLE_DICT && i % 2 == 0 && !key_allowed(p, p->stack[first + i]))
            return fail(p, "a dict's key is neither text nor number, at byte %zu", p->at);
        arrput(*items, p->stack[first + i]);
    }
    arrsetlen(p->stack, first);
    return 1;
}

static int fill_from_mark(pickle *p, pickle_kind kind) {
    if (arrlen(p->marks) == 0) return fail(p, "a mark is missing at byte %zu", p->at);
    const size_t n = above_mark(p);
    (void)arrpop(p->marks);
    return fill(p, kind, n);
}

static int fill_one(pickle *p, pickle_kind kind) {
    const size_t n = kind == PICKLE_DICT ? 2 : 1;
    return above_mark(p) < n ? fail(p, "the pickle is malformed at byte %zu", p->at) : fill(p, kind, n);
}

/* ---- the memo ---- */

static int remember(pickle *p, uint64_t index) {
    int32_t value = 0;
    if (!top(p, &value)) return 0;
    if (index >= MOST_VALUES) return fail(p, "memo index %llu is out of range", (unsigned long long)index);
    while (arrlenu(p->memo) <= index) arrput(p->memo, -1);
    p->memo[index] = value;
    return 1;
}

static int recall(pickle *p, int bytes) {
    uint64_t index;
    if (!take_little(p, bytes, &index)) return 0;
    if (index >= arrlenu(p->memo) || p->memo[index] < 0)
        return fail(p, "memo index %llu was never set, at byte %zu", (unsigned long long)index, p->at);
    arrput(p->stack, p->memo[index]);
    return 1;
}

static int remember_at(pickle *p, int bytes) {
    uint64_t index;
    return take_little(p, bytes, &index) && remember(p, index);
}

/* ---- names: the only ones that a file may refer to ---- */

enum { IS_ORDERED_DICT, IS_NAMESPACE, IS_TENSOR, IS_PARAMETER, IS_STORAGE };

typedef struct known {
    const char *module, *name;
    int what;
    mtan_dtype dtype; /* of a storage */
    size_t item;
} known;

static const known names[] = {
    {"collections", "OrderedDict", IS_ORDERED_DICT, 0, 0},
    {"argparse", "Namespace", IS_NAMESPACE, 0, 0},
    {"torch._utils", "_rebuild_tensor_v2", IS_TENSOR, 0, 0},
    {"torch._utils", "_rebuild_parameter", IS_PARAMETER, 0, 0},
    {"torch", "FloatStorage", IS_STORAGE, MTAN_DTYPE_F32, 4},
    {"torch", "DoubleStorage", IS_STORAGE, MTAN_DTYPE_F64, 8},
    {"torch", "HalfStorage", IS_STORAGE, MTAN_DTYPE_F16, 2},
    {"torch", "BFloat16Storage", IS_STORAGE, MTAN_DTYPE_BF16, 2},
    {"torch", "LongStorage", IS_STORAGE, MTAN_DTYPE_I64, 8},
    {"torch", "IntStorage", IS_STORAGE, MTAN_DTYPE_I32, 4},
    {"torch", "ShortStorage", IS_STORAGE, MTAN_DTYPE_I16, 2},
    {"torch", "CharStorage", IS_STORAGE, MTAN_DTYPE_I8, 1},
    {"torch", "ByteStorage", IS_STORAGE, MTAN_DTYPE_U8, 1},
    {"torch", "BoolStorage", IS_STORAGE, MTAN_DTYPE_BOOL, 1},
};
enum { NAMES = sizeof names / sizeof names[0] };

static int text_is(const char *text, size_t length, const char *word) {
    return length == strlen(word) && memcmp(text, word, length) == 0;
}

/* A name from the file, made safe for a message: shortened, without control characters. */
static const char *printable(char out[64], const char *text, size_t length) {
    size_t n = length < 60 ? length : 60;
    for (size_t i = 0; i < n; i++) out[i] = text[i] >= ' ' && text[i] < 127 ? text[i] : '?';
    strcpy(out + n, n < length ? "..." : "");
    return out;
}

static int push_name(pickle *p, const char *module, size_t module_length, const char *name, size_t name_length) {
    char first[64], second[64];
    for (int i = 0; i < NAMES; i++)
        if (text_is(module, module_length, names[i].module) && text_is(name, name_length, names[i].name))
            return push_whole(p, PICKLE_GLOBAL, i);
    return fail(p, "refuses to load %s.%s: a checkpoint of a model has no need of it",
                printable(first, module, module_length), printable(second, name, name_length));
}

static const char *take_line(pickle *p, size_t *length) {
    const uint8_t *from = p->bytes + p->at, *end = p->n > p->at ? memchr(from, '\n', p->n - p->at) : NULL;
    if (!end) return fail(p, "the pickle is cut off at byte %zu", p->at), NULL;
    *length = (size_t)(end - from);
    p->at += *length + 1;
    return (const char *)from;
}

static int read_name(pickle *p) {
    size_t module_length = 0, name_length = 0;
    const char *module = take_line(p, &module_length), *name = module ? take_line(p, &name_length) : NULL;
    return name && push_name(p, module, module_length, name, name_length);
}

static int name_from_stack(pickle *p) {
    int32_t name, module;
    if (!pop_kind(p, PICKLE_TEXT, &name) || !pop_kind(p, PICKLE_TEXT, &module)) return 0;
    return push_name(p, p->values[module].text, p->values[module].length, p->values[name].text, p->values[name].length);
}

/* ---- storages and tensors ---- */

static const pickle_value *item_of(const pickle *p, const pickle_value *container, size_t index, pickle_kind kind) {
    if (index >= arrlenu(container->items)) return NULL;
    const pickle_value *v = &p->values[container->items[index]];
    return v->kind == kind ? v : NULL;
}

static int compare_texts(const char *a, size_t a_length, const char *b, size_t b_length) {
    if (a_length != b_length) return a_length < b_length ? -1 : 1;
    return a_length ? memcmp(a, b, a_length) : 0;
}

/* Position of a key in the sorted list of storages, or where to insert it. */
static size_t storage_place(const pickle *p, const char *key, size_t length, int *found) {
    size_t low = 0, high = arrlenu(p->by_key);
    *found = 0;
    while (low < high && !*found) {
        const size_t middle = low + (high - low) / 2;
        const pickle_storage *s = &p->storages[p->by_key[middle]];
        const int order = compare_texts(s->key, s->key_length, key, length);
        if (order == 0) *found = 1;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return high;
}

pickle_storage *pickle_storage_named(const pickle *p, const char *key, size_t length) {
    int found;
    const size_t place = storage_place(p, key, length, &found);
    return found ? &p->storages[p->by_key[place]] : NULL;
}

/* The same key always refers to the same storage. Returns its index, or -1. */
static int32_t add_storage(pickle *p, const pickle_storage *s) {
    int found;
    const size_t place = storage_place(p, s->key, s->key_length, &found);
    if (found) {
        const pickle_storage *old = &p->storages[p->by_key[place]];
        if (old->dtype == s->dtype && old->count == s->count) return p->by_key[place];
        return fail(p, "a storage has two types or sizes, before byte %zu", p->at), -1;
    }
    if (arrlen(p->storages) >= MOST_STORAGES) return fail(p, "more than %d storages", (int)MOST_STORAGES), -1;
    arrput(p->by_key, -1);
    memmove(p->by_key + place + 1, p->by_key + place, (arrlenu(p->by_key) - 1 - place) * sizeof *p->by_key);
    p->by_key[place] = (int32_t)arrlen(p->storages);
    arrput(p->storages, *s);
    return (int32_t)arrlen(p->storages) - 1;
}

/* A persistent id: ('storage', type, key, location, count), and None for the legacy form's views. */
static int load_storage(pickle *p) {
    pickle_storage s;
    int32_t id;
    if (!pop_kind(p, PICKLE_TUPLE, &id)) return 0;
    const pickle_value *t = &p->values[id], *word = item_of(p, t, 0, PICKLE_TEXT);
    const pickle_value *type = item_of(p, t, 1, PICKLE_GLOBAL), *key = item_of(p, t, 2, PICKLE_TEXT);
    const pickle_value *count = item_of(p, t, 4, PICKLE_INT);
    if (!word || !type || !key || !count || !text_is(word->text, word->length, "storage") || arrlen(t->items) > 6 ||
        names[type->whole].what != IS_STORAGE || count->whole < 0 || key->length > 64)
        return fail(p, "a reference to something other than a tensor's storage, before byte %zu", p->at);
    if (arrlen(t->items) == 6 && !item_of(p, t, 5, PICKLE_NONE)) return fail(p, "a storage that is a view of another");
    memset(&s, 0, sizeof s);
    s.key = key->text, s.key_length = key->length, s.count = (uint64_t)count->whole;
    s.dtype = names[type->whole].dtype, s.item = names[type->whole].item;
    const int32_t index = s.count > SIZE_MAX / 8 ? -1 : add_storage(p, &s);
    if (index < 0 && !p->error[0]) return fail(p, "a storage is too large");
    return index >= 0 && push_whole(p, PICKLE_STORAGE, index);
}

/* Shape and stride from two tuples of non-negative integers. */
static int read_shape(const pickle *p, pickle_tensor *x, const pickle_value *shape, const pickle_value *stride) {
    if (!shape || !stride || arrlen(shape->items) > MTAN_MAX_RANK || arrlen(shape->items) != arrlen(stride->items))
        return 0;
    x->rank = (int)arrlen(shape->items);
    for (int i = 0; i < x->rank; i++) {
        const pickle_value *n = item_of(p, shape, (size_t)i, PICKLE_INT),
                           *s = item_of(p, stride, (size_t)i, PICKLE_INT);
        if (!n || !s || n->whole < 0 || s->whole < 0 || (uint64_t)n->whole > SIZE_MAX / 8 ||
            (uint64_t)s->whole > SIZE_MAX / 8)
            return 0;
        x->shape[i] = (size_t)n->whole, x->stride[i] = (size_t)s->whole;
    }
    return 1;
}

/* Does every element lie in the storage, and are there at most as many elements as it has? Sets count and
 * contiguous. */
static int inside(pickle_tensor *x, uint64_t stored) {
    uint64_t last = x->offset;
    size_t expected = 1;
    x->count = 1, x->contiguous = 1;
    for (int i = 0; i < x->rank; i++)
        if (x->shape[i] == 0) x->count = 0;
    if (x->count == 0 || x->offset >= stored) return x->count == 0;
    for (int i = x->rank; i-- > 0;) {
        const size_t steps = x->shape[i] - 1;
        if (steps > 0 && x->stride[i] > stored / steps) return 0;
        last += (uint64_t)steps * x->stride[i];
        if (last >= stored || x->shape[i] > stored / x->count) return 0;
        x->contiguous &= steps == 0 || x->stride[i] == expected;
        x->count *= x->shape[i];
        expected *= x->shape[i];
    }
    return 1;
}

/* (storage, offset, shape, stride, requires_grad, hooks), and in newer files a dict of rare properties. */
static int call_rebuild_tensor(pickle *p, const pickle_value *args) {
    pickle_tensor x;
    const pickle_value *storage = item_of(p, args, 0, PICKLE_STORAGE), *offset = item_of(p, args, 1, PICKLE_INT);
    const pickle_value *more = item_of(p, args, 6, PICKLE_DICT);
    memset(&x, 0, sizeof x);
    if (!storage || !offset || offset->whole < 0 || (uint64_t)offset->whole > SIZE_MAX / 8 ||
        !read_shape(p, &x, item_of(p, args, 2, PICKLE_TUPLE), item_of(p, args, 3, PICKLE_TUPLE)))
        return fail(p, "a tensor is described in a way that is not understood, before byte %zu", p->at);
    if (more && arrlen(more->items)) return fail(p, "a tensor with properties that are not understood (conjugate?)");
    x.storage = (int32_t)storage->whole, x.offset = (size_t)offset->whole;
    if (!inside(&x, p->storages[x.storage].count))
        return fail(p, "a tensor reaches beyond its storage, before byte %zu", p->at);
    arrput(p->tensors, x);
    return push_whole(p, PICKLE_TENSOR, (int64_t)arrlen(p->tensors) - 1);
}

/* ---- calls ---- */

static int call(pickle *p, int from_class) {
    int32_t function, tuple;
    if (!pop_kind(p, PICKLE_TUPLE, &tuple) || !pop_kind(p, PICKLE_GLOBAL, &function)) return 0;
    const pickle_value *args = &p->values[tuple];
    const known *k = &names[p->values[function].whole];
    if (k->what == IS_ORDERED_DICT && arrlen(args->items) == 0) return push_new(p, PICKLE_DICT) != NULL;
    if (k->what == IS_NAMESPACE && arrlen(args->items) == 0) return push_whole(p, PICKLE_OBJECT, -1);
    if (k->what == IS_TENSOR && !from_class) return call_rebuild_tensor(p, args);
    if (k->what == IS_PARAMETER && !from_class && item_of(p, args, 0, PICKLE_TENSOR))
        return arrput(p->stack, args->items[0]), 1;
    return fail(p, "refuses a call of %s.%s with arguments that torch.save does not write", k->module, k->name);
}

/* Attributes. Those of a Namespace are kept by reference, so that no file can multiply them; those of a state_dict are
 * the versions of its modules, which are not needed. */
static int build(pickle *p) {
    int32_t state = 0, object = 0;
    if (!pop(p, &state) || !top(p, &object)) return 0;
    if (p->values[state].kind != PICKLE_DICT) return fail(p, "attributes that are no dict, before byte %zu", p->at);
    if (p->values[object].kind == PICKLE_OBJECT) p->values[object].whole = state;
    else if (p->values[object].kind != PICKLE_DICT)
        return fail(p, "attributes of a plain value, before byte %zu", p->at);
    return 1;
}

/* ---- the machine ---- */

static int start(pickle *p) {
    uint64_t version;
    if (!take_little(p, 1, &version)) return 0;
    return version >= 2 && version <= 5 ? 1 : fail(p, "pickle protocol %d is not supported", (int)version);
}

static int skip_frame(pickle *p) {
    uint64_t length;
    return take_little(p, 8, &length);
}

static int step(pickle *p, uint8_t op) {
    switch (op) {
    case 0x80: return start(p);
    case 0x95: return skip_frame(p);
    case '(': return arrput(p->marks, arrlenu(p->stack)), 1;
    case 'N': return push_whole(p, PICKLE_NONE, 0);
    case 0x88: return push_whole(p, PICKLE_BOOL, 1);
    case 0x89: return push_whole(p, PICKLE_BOOL, 0);
    case 'K': return read_whole(p, 1);
    case 'M': return read_whole(p, 2);
    case 'J': return read_whole(p, 4);
    case 0x8a: return read_long(p, 1);
    case 0x8b: return read_long(p, 4);
    case 'G': return read_float(p);
    case 0x8c: return read_text(p, 1);
    case 'X': return read_text(p, 4);
    case 0x8d: return read_text(p, 8);
    case '}': return push_new(p, PICKLE_DICT) != NULL;
    case ']': return push_new(p, PICKLE_LIST) != NULL;
    case ')': return make_tuple(p, 0);
    case 0x85: return make_tuple(p, 1);
    case 0x86: return make_tuple(p, 2);
    case 0x87: return make_tuple(p, 3);
    case 't': return tuple_from_mark(p);
    case 'a': return fill_one(p, PICKLE_LIST);
    case 'e': return fill_from_mark(p, PICKLE_LIST);
    case 's': return fill_one(p, PICKLE_DICT);
    case 'u': return fill_from_mark(p, PICKLE_DICT);
    case 'q': return remember_at(p, 1);
    case 'r': return remember_at(p, 4);
    case 0x94: return remember(p, arrlenu(p->memo));
    case 'h': return recall(p, 1);
    case 'j': return recall(p, 4);
    case 'c': return read_name(p);
    case 0x93: return name_from_stack(p);
    case 'R': return call(p, 0);
    case 0x81: return call(p, 1);
    case 'b': return build(p);
    case 'Q': return load_storage(p);
    default: return fail(p, "instruction 0x%02x at byte %zu is none that torch.save writes", op, p->at - 1);
    }
}

static int compare_keys(const pickle_value *x, const pickle_value *y) {
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    if (x->kind <= PICKLE_INT) return (x->whole > y->whole) - (x->whole < y->whole);
    return compare_texts(x->text, x->length, y->text, y->length);
}

static int by_key(const void *a, const void *b) {
    return compare_keys(*(const pickle_value *const *)a, *(const pickle_value *const *)b);
}

/* Maps each value from `first` on that may be a key to a representative of all values equal to it. Texts are compared
 * only here, because many dicts may share long keys. */
static int32_t *find_equals(const pickle *p, size_t first) {
    const size_t n = arrlenu(p->values) - first;
    const pickle_value **keys = NULL;
    int32_t *equal = tool_calloc(n + 1, sizeof *equal);
    for (size_t i = 0; i < n; i++)
        if (key_allowed(p, (int32_t)(first + i))) arrput(keys, &p->values[first + i]);
    if (keys) qsort(keys, arrlenu(keys), sizeof *keys, by_key);
    for (size_t i = 0; i < arrlenu(keys); i++) {
        const size_t at = (size_t)(keys[i] - p->values) - first;
        const int same = i > 0 && compare_keys(keys[i - 1], keys[i]) == 0;
        equal[at] = same ? equal[(size_t)(keys[i - 1] - p->values) - first] : (int32_t)at;
    }
    arrfree(keys);
    return equal;
}

static int fail_twice(pickle *p, const pickle_value *key) {
    char word[64];
    if (key->kind != PICKLE_TEXT) return fail(p, "a number occurs twice as a key of a dict");
    return fail(p, "'%s' occurs twice in a dict", printable(word, key->text, key->length));
}

/* In Python the last of two equal keys would win; a file with a repeated key is refused instead. */
static int all_keys_differ(pickle *p, size_t first) {
    int32_t *equal = find_equals(p, first), good = 1;
    size_t *seen = tool_calloc(arrlenu(p->values) - first + 1, sizeof *seen); /* the last dict that had this key */
    for (size_t i = first; good && i < arrlenu(p->values); i++) {
        const int32_t *items = p->values[i].items;
        for (size_t k = 0; good && p->values[i].kind == PICKLE_DICT && k < arrlenu(items); k += 2) {
            size_t *last = &seen[equal[(size_t)items[k] - first]];
            if (*last == i + 1) good = fail_twice(p, &p->values[items[k]]);
            *last = i + 1;
        }
    }
    free(equal), free(seen);
    return good;
}

int32_t pickle_read(pickle *p) {
    const size_t first = arrlenu(p->values);
    const uint8_t *op;
    arrsetlen(p->stack, 0), arrsetlen(p->marks, 0), arrsetlen(p->memo, 0);
    while ((op = take(p, 1)) && *op != '.')
        if (!step(p, *op)) return -1;
    if (!op) return -1;
    if (arrlen(p->stack) != 1 || arrlen(p->marks) != 0) return fail(p, "the pickle is malformed at its end"), -1;
    return all_keys_differ(p, first) ? p->stack[0] : -1;
}

void pickle_free(pickle *p) {
    for (size_t i = 0; i < arrlenu(p->values); i++) arrfree(p->values[i].items);
    arrfree(p->values);
    arrfree(p->tensors);
    arrfree(p->storages);
    arrfree(p->by_key);
    arrfree(p->stack);
    arrfree(p->memo);
    arrfree(p->marks);
}

/* ---- lookup ---- */

const pickle_value *pickle_dict(const pickle *p, int32_t value) {
    if (value < 0) return NULL;
    const pickle_value *v = &p->values[value];
    if (v->kind == PICKLE_OBJECT) return v->whole < 0 ? NULL : &p->values[v->whole];
    return v->kind == PICKLE_DICT ? v : NULL;
}

static int32_t get(const pickle *p, int32_t dict, const pickle_value *key) {
    const pickle_value *d = pickle_dict(p, dict);
    for (size_t i = 0; d && i + 1 < arrlenu(d->items); i += 2)
        if (compare_keys(&p->values[d->items[i]], key) == 0) return d->items[i + 1];
    return -1;
}

int32_t pickle_get(const pickle *p, int32_t dict, const char *key) {
    const pickle_value k = {PICKLE_TEXT, 0, 0, key, strlen(key), NULL};
    return get(p, dict, &k);
}

int32_t pickle_get_whole(const pickle *p, int32_t dict, int64_t key) {
    const pickle_value k = {PICKLE_INT, key, 0, NULL, 0, NULL};
    return get(p, dict, &k);
}
