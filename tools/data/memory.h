/* Memory for the tools, without a check at every allocation: a failed allocation returns at once to the enclosing
 * memory_try.
 *
 *     size_t missing = memory_try(load, &job);     load(&job) and everything it calls may allocate
 *     if (missing) ... out of memory: an allocation of so many bytes failed ...
 *
 * It returns by longjmp, past everything in between. Memory allocated there leaks, and so do open files and waiting
 * threads; memory_undo is for state that must not stay as it is: a half-written file, a lock.
 *
 * Attempts belong to a thread. On a thread without one, a failed allocation prints a message and aborts, because no
 * caller has said how to continue. Bodies of a pool run in attempts (runner_each), since nothing may jump out of a pool
 * while its other threads are at work.
 *
 * The library itself (mtan.c) never allocates. */
#ifndef MTAN_TOOLS_MEMORY_H
#define MTAN_TOOLS_MEMORY_H

#include <stddef.h>

/* Like realloc and calloc, but never NULL for a size above 0. */
void *tool_realloc(void *old, size_t bytes);
void *tool_calloc(size_t n, size_t size);
char *tool_text(const char *text); /* a copy; free() it */
/* Returns freed memory to the system if the C library keeps it (glibc): reading PhysioNet leaves 6 MB of it. */
void memory_return(void);

/* Calls run(argument). Returns 0, or the size of the allocation that failed in it. */
size_t memory_try(void (*run)(void *argument), void *argument);
/* Handles a failed allocation of so many bytes; does not return. */
void memory_fail(size_t bytes);

/* undo(argument) is called if memory runs out between memory_remember and memory_forget, before the stack is unwound.
 * Forget in the reverse order of remembering. */
typedef struct memory_undo {
    void (*undo)(void *argument);
    void *argument;
    struct memory_undo *before;
} memory_undo;
void memory_remember(memory_undo *u, void (*undo)(void *argument), void *argument);
void memory_forget(memory_undo *u);

#endif
