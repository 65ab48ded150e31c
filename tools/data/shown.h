/* Makes text from files safe to show. A name from a file must not send commands to the terminal that prints it: control
 * characters (escapes, colours, the title of a window), marks that change the direction of writing, and bytes that are
 * not UTF-8 are replaced. All text for people passes through here; JSON and HTML have their own escapes. */
#ifndef MTAN_TOOLS_SHOWN_H
#define MTAN_TOOLS_SHOWN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Reads the next character and moves past it; SHOWN_NOT for all of the above. */
enum { SHOWN_NOT = 0xFFFD };
uint32_t shown_next(const char **text);

/* Replaces characters that are not shown by '?', in place. */
void shown_clean(char *text);
/* The same, written to a stream: at most `most` characters in at least `width` columns. 1: the text was longer. */
int shown_put(FILE *out, const char *text, size_t width, size_t most);

/* Where bytes matter: \xe9 for each byte that is not shown, cut at `size`. */
void shown_escape(char *out, size_t size, const char *text);

/* 1 if all of it is UTF-8, which model files require. */
int text_is_utf8(const char *text);

#endif
