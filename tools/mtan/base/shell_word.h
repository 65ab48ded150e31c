/* Builds a command line that can be pasted into a shell. */
#ifndef MTAN_TOOLS_SHELL_WORD_H
#define MTAN_TOOLS_SHELL_WORD_H

#include <stddef.h>

/* Appends a word to text, quoted where a shell needs it, with a space in front unless it is the first; cut at
 * `size`. */
void shell_append(char *text, size_t size, const char *word);

#endif
