/* See text_writer.h. The buffer is allocated here, because a stream that grows by itself (open_memstream) drops output
 * that it has no memory for, and glibc reports that only to the printing call that failed, whose result is not
 * checked. */
#define _POSIX_C_SOURCE 200809L
#include "text_writer.h"

#include <stdlib.h>

#include "memory.h"

enum { FIRST_ROOM = 1 << 15 };

typedef struct page {
    char *text;
    FILE *out;
} page;

/* The stream writes to `text` when it is closed and when the program ends, so it must not outlive the buffer. */
static void drop(void *argument) {
    page *p = argument;
    fclose(p->out);
    free(p->text);
}

static void page_open(page *p, size_t room) {
    p->text = tool_calloc(room, 1);
    if ((p->out = fmemopen(p->text, room, "w"))) return;
    free(p->text);
    memory_fail(room);
}

char *text_write(text_body body, void *context, size_t *length) {
    for (size_t room = FIRST_ROOM;; room *= 2) {
        memory_undo undo;
        page p;
        page_open(&p, room);
        memory_remember(&undo, drop, &p);
        body(p.out, context);
        memory_forget(&undo);
        const int good = fflush(p.out) == 0 && !ferror(p.out);
        const long end = ftell(p.out);
        fclose(p.out);
        if (good && end >= 0 && (size_t)end + 1 < room) { /* a text that fills the buffer may have been cut */
            p.text[end] = 0;
            *length = (size_t)end;
            return p.text;
        }
        free(p.text);
    }
}
