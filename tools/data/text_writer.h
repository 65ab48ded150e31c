/* Writes to a text in memory through a FILE. If memory runs out, it ends as memory.h describes. */
#ifndef MTAN_TOOLS_TEXT_WRITER_H
#define MTAN_TOOLS_TEXT_WRITER_H

#include <stdio.h>

/* Returns everything that body(out, context) prints, zero-terminated; free() it. body is called again, with more room,
 * until the text fits. */
typedef void (*text_body)(FILE *out, void *context);
char *text_write(text_body body, void *context, size_t *length);

#endif
