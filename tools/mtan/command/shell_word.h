/* A command as one types it. */
#ifndef MTAN_TOOLS_SHELL_WORD_H
#define MTAN_TOOLS_SHELL_WORD_H

#include <stddef.h>

/* A word as a shell takes it: in quotes where it has to be. Appends to text, behind a space unless it is the first, cut at `size`. */
void shell_append(char *text, size_t size, const char *word);

#endif
