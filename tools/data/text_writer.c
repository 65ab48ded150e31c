/* See text_writer.h. */
#define _POSIX_C_SOURCE 200809L
#include "text_writer.h"

#include <stdlib.h>

int text_writer_open(text_writer *t) {
    t->text = NULL, t->length = 0;
    t->out = open_memstream(&t->text, &t->length);
    return t->out != NULL;
}

char *text_writer_close(text_writer *t, int good) {
    good = !ferror(t->out) && good;
    if (fclose(t->out) == 0 && good) return t->text;
    free(t->text);
    return NULL;
}
