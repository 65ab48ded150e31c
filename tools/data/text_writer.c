/* See text_writer.h. */
#define _POSIX_C_SOURCE 200809L
#include "text_writer.h"

#include <stdlib.h>

/* The stream writes to `text` and `length` when it is closed, and when the program ends: it must not outlive them. */
static void drop(void *argument) {
    text_writer *t = argument;
    fclose(t->out);
    free(t->text);
}

int text_writer_open(text_writer *t) {
    t->text = NULL, t->length = 0;
    if (!(t->out = open_memstream(&t->text, &t->length))) return 0;
    memory_remember(&t->undo, drop, t);
    return 1;
}

char *text_writer_close(text_writer *t, int good) {
    memory_forget(&t->undo);
    good = !ferror(t->out) && good;
    if (fclose(t->out) == 0 && good) return t->text;
    free(t->text);
    return NULL;
}
