/* See names.h. Open addressing with linear probing. */
#include "names.h"

#include <limits.h>
#include <string.h>

#include "../../mtan.h"
#include "array.h"
#include "field.h"

int32_t names_count(const names *n) {
    return (int32_t)arrlen(n->start);
}

const char *names_text(const names *n, int32_t name) {
    return n->bytes + n->start[name];
}

static size_t length_of(const names *n, int32_t name) {
    const size_t end = name + 1 < names_count(n) ? n->start[name + 1] : arrlenu(n->bytes);
    return end - n->start[name] - 1;
}

/* The slot of the name, or the free slot where it belongs. There is always a free one. */
static struct names_slot *slot_of(const names *n, uint32_t hash, const char *text, size_t length) {
    const size_t mask = arrlenu(n->slots) - 1;
    size_t i = hash & mask;
    for (;; i = (i + 1) & mask) {
        struct names_slot *s = &n->slots[i];
        if (s->name < 0) return s;
        if (s->hash == hash && length_of(n, s->name) == length && memcmp(names_text(n, s->name), text, length) == 0)
            return s;
    }
}

static uint32_t hash_of(const char *text, size_t length) {
    return (uint32_t)mtan_bytes_hash(text, length);
}

int32_t names_find(const names *n, const char *text, size_t length) {
    return n->slots ? slot_of(n, hash_of(text, length), text, length)->name : -1;
}

/* Doubles the slots. All names in them differ, so each goes to the next free one. */
static void grow(names *n) {
    struct names_slot *old = n->slots;
    const size_t had = arrlenu(old), slots = had ? 2 * had : 64;
    const struct names_slot unused = {0, -1};
    n->slots = NULL;
    arrsetlen(n->slots, slots);
    for (size_t i = 0; i < slots; i++) n->slots[i] = unused;
    for (size_t i = 0; i < had; i++) {
        size_t at = old[i].hash & (slots - 1);
        if (old[i].name < 0) continue;
        while (n->slots[at].name >= 0) at = (at + 1) & (slots - 1);
        n->slots[at] = old[i];
    }
    arrfree(old);
}

int32_t names_add(names *n, const char *text, size_t length) {
    const uint32_t hash = hash_of(text, length);
    struct names_slot *slot;
    if (4 * (arrlenu(n->start) + 1) > 3 * arrlenu(n->slots)) grow(n);
    slot = slot_of(n, hash, text, length);
    if (slot->name >= 0) return slot->name;
    if (arrlenu(n->start) >= INT32_MAX) return -1;
    slot->hash = hash, slot->name = names_count(n);
    arrput(n->start, arrlenu(n->bytes));
    memcpy(arraddnptr(n->bytes, length + 1), text, length);
    arrlast(n->bytes) = 0;
    return slot->name;
}

int names_set(names *n, char **texts) {
    for (size_t i = 0; i < arrlenu(texts); i++) names_add(n, texts[i], strlen(texts[i]));
    return arrlenu(n->start) == arrlenu(texts);
}

void names_free(names *n) {
    arrfree(n->bytes), arrfree(n->start), arrfree(n->slots);
}

/* ---- order ---- */

typedef struct ranked {
    const char *text;
    int64_t number; /* 0 unless all are integers */
    int32_t name;
} ranked;

static int by_rank(const void *left, const void *right) {
    const ranked *a = left, *b = right;
    if (a->number != b->number) return a->number < b->number ? -1 : 1;
    return strcmp(a->text, b->text);
}

int32_t *names_sorted(const names *n, char ***texts) {
    const int32_t count = names_count(n);
    ranked *all = tool_calloc((size_t)count, sizeof *all);
    int32_t *place = NULL;
    int integers = 1;
    for (int32_t i = 0; i < count; i++) {
        all[i].text = names_text(n, i), all[i].name = i;
        integers = integers && field_integer(all[i].text, &all[i].number);
    }
    for (int32_t i = 0; !integers && i < count; i++) all[i].number = 0;
    qsort(all, (size_t)count, sizeof *all, by_rank);
    arrsetlen(place, (size_t)count);
    for (int32_t i = 0; i < count; i++) {
        place[all[i].name] = i;
        arrput(*texts, tool_text(all[i].text));
    }
    free(all);
    return place;
}
