/* Growing arrays and hash maps for the tools: stb_ds, which does not check realloc, with the allocator of memory.h,
 * which never returns NULL. */
#ifndef MTAN_TOOLS_ARRAY_H
#define MTAN_TOOLS_ARRAY_H

#include "memory.h"

#define STBDS_REALLOC(context, pointer, size) tool_realloc(pointer, size)
#define STBDS_FREE(context, pointer) free(pointer)
#include <stdlib.h>
#include <stb/stb_ds.h>

/* Functions for what stb_ds expands inline at every use: they evaluate the array once, and handle a missing or a full
 * array in one place. The stand-in for stb_ds does not need them. */
#ifndef STB_DS_STAND_IN

static inline size_t array_count(const void *array) {
    return array ? ((const stbds_array_header *)array - 1)->length : 0;
}

static inline size_t array_room(const void *array) {
    return array ? ((const stbds_array_header *)array - 1)->capacity : 0;
}

static inline void *array_with_room(void *array, size_t item, size_t more) {
    return array && array_count(array) + more <= array_room(array) ? array : stbds_arrgrowf(array, item, more, 0);
}

static inline void *array_resized(void *array, size_t item, size_t count) {
    if (array_room(array) < count) array = stbds_arrgrowf(array, item, 0, count);
    if (array) stbds_header(array)->length = count;
    return array;
}

static inline void array_free(const void *array) {
    if (array) free(stbds_header(array));
}

#undef arrlen
#undef arrlenu
#undef arrsetlen
#undef arrfree
#undef stbds_arrmaybegrow
#define arrlen(a) ((ptrdiff_t)array_count(a))
#define arrlenu(a) array_count(a)
#define arrsetlen(a, n) ((a) = array_resized((a), sizeof *(a), (size_t)(n)))
#define arrfree(a) (array_free(a), (void)((a) = NULL))
#define stbds_arrmaybegrow(a, n) ((a) = array_with_room((a), sizeof *(a), (size_t)(n)))

#endif
#endif
