/* Files of text or bytes, read from front to back: plain, gzip (recognised by the first two bytes, not by the name), or
 * standard input ("-"). Memory stays at a few buffers whatever the file's size. Input is hostile until checked: the
 * unpacked size and the length of a line are bounded, and a damaged or truncated archive is an error, never a short
 * file.
 *
 * Gzip needs zlib (MTAN_ZLIB); without it a compressed file is refused with advice to unpack it.
 *
 *     text_stream s;
 *     if (text_open(&s, path, most_bytes))
 *         while (text_line(&s)) ... s.line, s.length, s.number ...
 *     if (s.error[0]) ... "file:line: what is wrong" ...
 *     text_close(&s); */
#ifndef MTAN_TOOLS_GZIP_H
#define MTAN_TOOLS_GZIP_H

#include <stddef.h>
#include <stdint.h>

enum { TEXT_LONGEST = 1 << 20 }; /* bytes of a line */

typedef struct text_stream {
    char *line;      /* zero-terminated, without \n or \r\n; may be changed; valid until the next call */
    size_t length;   /* in bytes; no byte is zero */
    size_t number;   /* of the line, from 1 */
    uint64_t bytes;  /* unpacked so far */
    char *name;      /* the path, or "standard input": for messages */
    char error[512]; /* "" while all is well */

    int file; /* from here on: private */
    uint64_t most, taken, size;
    char *buffer, *packed;
    size_t capacity, at, end, packed_at, packed_end;
    void *inflater;
    int between; /* gzip: the last member has ended, another may follow */
} text_stream;

/* 1, or 0 with error set. `most` bounds the unpacked bytes (UINT64_MAX: no bound). text_close is allowed after both. */
int text_open(text_stream *s, const char *path, uint64_t most);

/* Reads the next line and returns 1. At the end or on an error it returns 0, with error set in the second case. A byte
 * order mark at the start is skipped, a zero byte is an error, and the last line needs no line end. */
int text_line(text_stream *s);

/* Reads the next n bytes, fewer only at the end or on an error. */
size_t text_bytes(text_stream *s, void *out, size_t n);

/* The fraction of the file that has been read, 0 to 1; negative if its size is not known (a pipe). */
double text_progress(const text_stream *s);

void text_close(text_stream *s);

#endif
