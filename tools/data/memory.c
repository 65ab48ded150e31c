/* See memory.h. */
#include "memory.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

typedef struct attempt {
    jmp_buf place;
    volatile size_t missing; /* volatile: it changes between setjmp and longjmp */
    memory_undo *undos;      /* of the enclosing attempts */
    struct attempt *outer;
} attempt;

/* Thread-local. C99 has no keyword for that; gcc and clang have this one. */
static __thread attempt *innermost;
static __thread memory_undo *undos; /* the newest one first */

size_t memory_try(void (*run)(void *argument), void *argument) {
    attempt a;
    a.missing = 0, a.undos = undos, a.outer = innermost;
    innermost = &a;
    if (setjmp(a.place) == 0) run(argument);
    innermost = a.outer;
    return a.missing;
}

void memory_fail(size_t bytes) {
    attempt *a = innermost;
    if (!a) {
        fprintf(stderr, "mtan: out of memory: %zu bytes were not to be had\n", bytes);
        abort();
    }
    while (undos != a->undos) {
        const memory_undo *u = undos;
        undos = u->before;
        u->undo(u->argument);
    }
    a->missing = bytes;
    longjmp(a->place, 1);
}

void memory_remember(memory_undo *u, void (*undo)(void *argument), void *argument) {
    u->undo = undo, u->argument = argument, u->before = undos;
    undos = u;
}

void memory_forget(memory_undo *u) {
    undos = u->before;
}

static void *or_fail(void *memory, size_t bytes) {
    if (!memory && bytes > 0) memory_fail(bytes);
    return memory;
}

void *tool_realloc(void *old, size_t bytes) {
    return or_fail(realloc(old, bytes), bytes);
}

void *tool_calloc(size_t n, size_t size) {
    if (size > 0 && n > SIZE_MAX / size) memory_fail(SIZE_MAX);
    return or_fail(calloc(n ? n : 1, size ? size : 1), n * size);
}

char *tool_text(const char *text) {
    const size_t bytes = strlen(text) + 1;
    return memcpy(tool_realloc(NULL, bytes), text, bytes);
}

void memory_return(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}
