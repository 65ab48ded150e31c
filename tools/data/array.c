/* See array.h. */
#define STB_DS_IMPLEMENTATION
#include "array.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void *or_die(void *memory, size_t bytes) {
    if (memory || bytes == 0) return memory;
    fprintf(stderr, "mtan: out of memory: %zu bytes were not to be had\n", bytes);
    exit(2);
}

void *tool_realloc(void *old, size_t bytes) {
    return or_die(realloc(old, bytes), bytes);
}

void *tool_calloc(size_t n, size_t size) {
    return or_die(calloc(n ? n : 1, size ? size : 1), n > SIZE_MAX / (size ? size : 1) ? SIZE_MAX : n * size);
}

char *tool_text(const char *text) {
    const size_t bytes = strlen(text) + 1;
    return memcpy(tool_realloc(NULL, bytes), text, bytes);
}
