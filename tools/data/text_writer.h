/* A text that is written like a file. Where there is no memory for it, it ends as memory.h says. */
#ifndef MTAN_TOOLS_TEXT_WRITER_H
#define MTAN_TOOLS_TEXT_WRITER_H

#include <stdio.h>

/* All that body(out, context) prints, zero-terminated; free() it. It is called once more, with more room, for as long as the text does
 * not fit. */
typedef void (*text_body)(FILE *out, void *context);
char *text_write(text_body body, void *context, size_t *length);

#endif
