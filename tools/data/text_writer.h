/* A text that is written like a file. */
#ifndef MTAN_TOOLS_TEXT_WRITER_H
#define MTAN_TOOLS_TEXT_WRITER_H

#include <stdio.h>

#include "memory.h"

typedef struct text_writer {
    FILE *out;
    char *text; /* good after text_writer_close */
    size_t length;
    memory_undo undo;
} text_writer;

int text_writer_open(text_writer *t); /* 0 with errno set */
/* The text, zero-terminated; free() it. NULL: it was not `good`, or (errno) not all of it was written. */
char *text_writer_close(text_writer *t, int good);

#endif
