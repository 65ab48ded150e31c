/* Memory for the tools, whose code would drown in checks: an allocation that fails goes back to memory_try at once.
 *
 *     size_t missing = memory_try(load, &job);     load(&job) and all that it calls may allocate
 *     if (missing) ... out of memory: so many bytes were not to be had ...
 *
 * It goes back by longjmp, past everything in between. What was allocated there is lost, also what was opened for reading and
 * threads that wait; memory_undo is for what must not stay as it is: a file half written, a lock.
 *
 * Each thread has attempts of its own. On a thread that has none an allocation that fails prints a message and aborts: nobody
 * has said what is to become of the program. Bodies of a pool run in attempts (runner_each), as nobody may jump out of a pool
 * whose other threads are at work.
 *
 * The library itself (mtan.c) never allocates. */
#ifndef MTAN_TOOLS_MEMORY_H
#define MTAN_TOOLS_MEMORY_H

#include <stddef.h>

/* As realloc and calloc, but never NULL for a size above 0. */
void *tool_realloc(void *old, size_t bytes);
void *tool_calloc(size_t n, size_t size);
char *tool_text(const char *text); /* a copy; free() it */
/* Gives what was freed back to the system, where the C library keeps it (glibc): reading PhysioNet leaves 6 MB of it. */
void memory_return(void);

/* Calls run(argument). 0, or the bytes that could not be had in it. */
size_t memory_try(void (*run)(void *argument), void *argument);
/* What an allocation of so many bytes does that fails; does not return. */
void memory_fail(size_t bytes);

/* undo(argument) is called when memory runs out between memory_remember and memory_forget, before the stack is left. What was
 * remembered last is forgotten first. */
typedef struct memory_undo {
    void (*undo)(void *argument);
    void *argument;
    struct memory_undo *before;
} memory_undo;
void memory_remember(memory_undo *u, void (*undo)(void *argument), void *argument);
void memory_forget(memory_undo *u);

#endif
