/* stb_ds_stand_in.h: the part of stb_ds that the tools use. Where tools/deps.sh cannot download stb_ds.h, its stb_ds.h
 * includes this file instead. Names and meaning are those of stb_ds; array.h sets the allocator.
 *
 * An array is a pointer to its elements, with a ds_head in front; NULL is an empty one. A map is an array of struct {
 * key, value } in order of insertion (deleting an element moves the last one into its place); its element -1 holds the
 * key to look up. Keys of sh* are texts, which belong to the caller unless sh_new_strdup made the map; keys of hm* are
 * plain bytes without padding. */
#ifndef INCLUDE_STB_DS_H
#define INCLUDE_STB_DS_H
#define STB_DS_STAND_IN

#include <stddef.h>
#include <string.h>

typedef struct ds_head {
    size_t length, capacity; /* of a map: with element -1 */
    size_t *slots;           /* of a map: hash table of element numbers, see ds_find */
    size_t slot_count, used; /* a power of two; number of slots that are not EMPTY */
    int copies;              /* 1: the map owns copies of the key texts */
} ds_head;

enum { DS_HEAD = (sizeof(ds_head) + 15) / 16 * 16, DS_TEXT = 0 }; /* DS_TEXT as the size of a key: the key is a text */

#define ds_head_of(a) ((ds_head *)(void *)((char *)(a)-DS_HEAD))
void *ds_reserve(void *a, size_t size, size_t more,
                 size_t least); /* room for `more` elements, and for `least` in all */
void ds_delete(void *a, size_t size, size_t at, size_t n);
void *ds_map(void *map, size_t size);                         /* returns a map with an element -1 */
ptrdiff_t ds_find(void *map, size_t size, size_t key_size);   /* the index of the key in element -1, or -1 */
void *ds_insert(void *map, size_t size, size_t key_size);     /* adds the last element's key, which is not in the map
                                                               * yet */
ptrdiff_t ds_remove(void *map, size_t size, size_t key_size); /* 1, or 0 if it was not there */
void ds_free(void *map, size_t size);

static inline size_t ds_length(const void *a) {
    return a ? ((const ds_head *)(const void *)((const char *)a - DS_HEAD))->length : 0;
}

#define arrlen(a) ((ptrdiff_t)arrlenu(a))
#define arrlenu(a) ds_length(a)
#define arrlast(a) ((a)[ds_head_of(a)->length - 1])
#define arrpop(a) ((a)[--ds_head_of(a)->length])
#define arrput(a, value)                                                                                               \
    ((a) = ds_reserve(a, sizeof *(a), 1, 0), (a)[ds_head_of(a)->length] = (value), (void)ds_head_of(a)->length++)
#define arraddnptr(a, n)                                                                                               \
    ((a) = ds_reserve(a, sizeof *(a), (size_t)(n), 0),                                                                 \
     (n) ? (a) + ((ds_head_of(a)->length += (size_t)(n)) - (size_t)(n)) : (a))
#define arrsetcap(a, n) ((void)((a) = ds_reserve(a, sizeof *(a), 0, (size_t)(n))))
#define arrsetlen(a, n) (arrsetcap(a, n), (a) ? (void)(ds_head_of(a)->length = (size_t)(n)) : (void)0)
#define arrdel(a, i) arrdeln(a, i, 1)
#define arrdeln(a, i, n) ds_delete(a, sizeof *(a), (size_t)(i), (size_t)(n))
#define arrfree(a) ((void)((a) ? STBDS_FREE(NULL, ds_head_of(a)) : (void)0), (void)((a) = NULL))

#define ds_ask(map, k) ((map) = ds_map(map, sizeof *(map)), (map)[-1].key = (k))
#define ds_put(map, k, v, key_size)                                                                                    \
    (ds_ask(map, k), (map)[-1].value = (v),                                                                            \
     (void)(ds_find(map, sizeof *(map), key_size) < 0                                                                  \
                ? ((map) = ds_insert(map, sizeof *(map), key_size), 0)                                                 \
                : ((map)[ds_find(map, sizeof *(map), key_size)].value = (map)[-1].value, 0)))
#define hmgeti(map, k) (ds_ask(map, k), ds_find(map, sizeof *(map), sizeof(map)->key))
#define hmput(map, k, v) ds_put(map, k, v, sizeof(map)->key)
#define hmfree(map) (ds_free(map, sizeof *(map)), (map) = NULL)
#define shgeti(map, k) (ds_ask(map, (char *)(k)), ds_find(map, sizeof *(map), DS_TEXT))
#define shput(map, k, v) ds_put(map, (char *)(k), v, DS_TEXT)
#define shdel(map, k) (ds_ask(map, (char *)(k)), ds_remove(map, sizeof *(map), DS_TEXT))
#define sh_new_strdup(map) ((map) = ds_map(NULL, sizeof *(map)), (void)(ds_head_of((map)-1)->copies = 1))
#define shfree(map) hmfree(map)
#define shlen(map) ((map) ? (ptrdiff_t)ds_head_of((map)-1)->length - 1 : 0)
/* Between calls the value of element -1 is 0, which is the value of a missing key. */
#define shget(map, k)                                                                                                  \
    (ds_ask(map, (char *)(k)), memset(&(map)[-1].value, 0, sizeof(map)->value),                                        \
     (map)[ds_find(map, sizeof *(map), DS_TEXT)].value)

#endif

#if defined(STB_DS_IMPLEMENTATION) && !defined(DS_IMPLEMENTED)
#define DS_IMPLEMENTED

#include <stdint.h>

void *ds_reserve(void *a, size_t size, size_t more, size_t least) {
    const ds_head empty = {0};
    const ds_head *const old = a ? ds_head_of(a) : &empty;
    size_t capacity = old->capacity;
    ds_head *head;
    if (more > SIZE_MAX / 2 - old->length) more = SIZE_MAX / 2; /* beyond any memory: the allocator fails */
    else more += old->length;
    if (least < more) least = more;
    if (least <= capacity && (a || !least)) return a;
    capacity = capacity < SIZE_MAX / 4 && 2 * capacity > least ? 2 * capacity : least;
    if (capacity < 4) capacity = 4;
    if (capacity > (SIZE_MAX / 2 - DS_HEAD) / size) capacity = (SIZE_MAX / 2 - DS_HEAD) / size;
    head = STBDS_REALLOC(NULL, a ? (void *)old : NULL, DS_HEAD + capacity * size);
    if (!a) *head = empty;
    head->capacity = capacity;
    return (char *)head + DS_HEAD;
}

void ds_delete(void *a, size_t size, size_t at, size_t n) {
    char *const element = (char *)a + at * size;
    ds_head_of(a)->length -= n;
    memmove(element, element + n * size, (ds_head_of(a)->length - at) * size);
}

/* A slot holds the number of an element counted from -1, so never 0. */
enum { EMPTY = 0 };
#define DELETED SIZE_MAX

void *ds_map(void *map, size_t size) {
    char *a = map;
    if (a) return a;
    a = ds_reserve(NULL, size, 1, 0);
    ds_head_of(a)->length = 1;
    memset(a, 0, size);
    return a + size;
}

static const char *ds_text(const void *element) {
    const char *text;
    memcpy(&text, element, sizeof text);
    return text;
}

/* FNV-1a */
static size_t ds_hash(const void *element, size_t key_size) {
    const unsigned char *p = element;
    uint64_t h = 0xcbf29ce484222325u;
    if (key_size == DS_TEXT) p = (const unsigned char *)ds_text(element), key_size = strlen((const char *)p);
    for (size_t i = 0; i < key_size; i++) h = (h ^ p[i]) * 0x100000001b3u;
    return (size_t)(h ^ h >> 32);
}

static int ds_same(const void *a, const void *b, size_t key_size) {
    return key_size == DS_TEXT ? strcmp(ds_text(a), ds_text(b)) == 0 : memcmp(a, b, key_size) == 0;
}

/* The slot of the key of `like`, in a map that has slots; or NULL. */
static size_t *ds_slot(const char *a, const void *like, size_t size, size_t key_size) {
    const ds_head *const head = ds_head_of(a);
    const size_t mask = head->slot_count - 1;
    for (size_t i = ds_hash(like, key_size) & mask; head->slots[i] != EMPTY; i = (i + 1) & mask)
        if (head->slots[i] != DELETED && ds_same(a + head->slots[i] * size, like, key_size)) return &head->slots[i];
    return NULL;
}

static void ds_fill(const char *a, size_t size, size_t key_size, size_t at) {
    ds_head *const head = ds_head_of(a);
    const size_t mask = head->slot_count - 1;
    size_t i = ds_hash(a + at * size, key_size) & mask;
    while (head->slots[i] != EMPTY) i = (i + 1) & mask;
    head->slots[i] = at, head->used++;
}

/* At least a third of the slots stays empty. */
static void ds_make_slots(const char *a, size_t size, size_t key_size) {
    ds_head *const head = ds_head_of(a);
    size_t count = 16;
    if (head->used + 2 < head->slot_count / 3 * 2) return;
    while (count / 3 < head->length) count *= 2;
    head->slots = STBDS_REALLOC(NULL, head->slots, count * sizeof *head->slots);
    memset(head->slots, 0, count * sizeof *head->slots);
    head->slot_count = count, head->used = 0;
    for (size_t at = 1; at < head->length; at++) ds_fill(a, size, key_size, at);
}

ptrdiff_t ds_find(void *map, size_t size, size_t key_size) {
    const char *const a = (char *)map - size;
    const size_t *const slot = ds_head_of(a)->slots ? ds_slot(a, a, size, key_size) : NULL;
    return slot ? (ptrdiff_t)*slot - 1 : -1;
}

static void ds_copy_text(void *element) {
    const char *const text = ds_text(element);
    const size_t bytes = strlen(text) + 1;
    char *const copy = STBDS_REALLOC(NULL, NULL, bytes);
    memcpy(copy, text, bytes);
    memcpy(element, &copy, sizeof copy);
}

static void ds_free_text(const void *element) {
    char *text;
    memcpy(&text, element, sizeof text);
    STBDS_FREE(NULL, text);
}

void *ds_insert(void *map, size_t size, size_t key_size) {
    char *a = (char *)map - size;
    ds_make_slots(a, size, key_size);
    a = ds_reserve(a, size, 1, 0);
    memcpy(a + ds_head_of(a)->length * size, a, size);
    if (ds_head_of(a)->copies) ds_copy_text(a + ds_head_of(a)->length * size);
    ds_fill(a, size, key_size, ds_head_of(a)->length++);
    return a + size;
}

ptrdiff_t ds_remove(void *map, size_t size, size_t key_size) {
    char *const a = (char *)map - size;
    const ptrdiff_t at = ds_find(map, size, key_size);
    const size_t last = ds_head_of(a)->length - 1, place = (size_t)at + 1;
    if (at < 0) return 0;
    *ds_slot(a, a, size, key_size) = DELETED;
    if (ds_head_of(a)->copies) ds_free_text(a + place * size);
    if (place != last) {
        *ds_slot(a, a + last * size, size, key_size) = place;
        memcpy(a + place * size, a + last * size, size);
    }
    ds_head_of(a)->length = last;
    return 1;
}

void ds_free(void *map, size_t size) {
    char *const a = map ? (char *)map - size : NULL;
    if (!a) return;
    for (size_t i = 1; ds_head_of(a)->copies && i < ds_head_of(a)->length; i++) ds_free_text(a + i * size);
    STBDS_FREE(NULL, ds_head_of(a)->slots);
    STBDS_FREE(NULL, ds_head_of(a));
}

#endif
