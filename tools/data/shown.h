/* Text from files, as it may be shown. A name that comes from a file must not speak to the terminal that prints it: control
 * characters (escapes, colours, the title of a window), marks that turn the direction of writing and bytes that are no UTF-8
 * are taken out. Everything for people passes through here; JSON and HTML have escapes of their own. */
#ifndef MTAN_TOOLS_SHOWN_H
#define MTAN_TOOLS_SHOWN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The next character, moving on behind it; SHOWN_NOT for all of the above. */
enum { SHOWN_NOT = 0xFFFD };
uint32_t shown_next(const char **text);

/* What is not shown becomes '?', in place. */
void shown_clean(char *text);
/* The same on a stream: at most `most` characters in at least `width` columns. 1: that was not all of it. */
int shown_put(FILE *out, const char *text, size_t width, size_t most);

/* Where bytes matter: \xe9 for each byte of what is not shown, cut at `size`. */
void shown_escape(char *out, size_t size, const char *text);

/* 1 when all of it is UTF-8, which is what a model file takes. */
int text_is_utf8(const char *text);

#endif
