/* Growing arrays and hash maps for the tools: stb_ds, with an allocator that never returns NULL.
 *
 * stb_ds does not check realloc. Here running out of memory prints a message and ends the program with status 2, which is
 * what a tool would do anyway; the library itself (mtan.c) never allocates. */
#ifndef MTAN_TOOLS_ARRAY_H
#define MTAN_TOOLS_ARRAY_H

#include <stddef.h>

/* As realloc and calloc, but never NULL for a size above 0. */
void *tool_realloc(void *old, size_t bytes);
void *tool_calloc(size_t n, size_t size);
char *tool_text(const char *text); /* a copy; free() it */

#define STBDS_REALLOC(context, pointer, size) tool_realloc(pointer, size)
#define STBDS_FREE(context, pointer) free(pointer)
#include <stdlib.h>
#include <stb/stb_ds.h>

#endif
