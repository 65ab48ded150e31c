/* Comma-separated values, strictly: rows of fields over a text_stream (plain, .gz, standard input).
 *
 * Fields are separated by commas alone. A quoted field may contain commas, line ends and quotes ("" for one). Blanks
 * around a field are not part of it; blanks inside quotes are. Lines end with LF or CRLF (inside quotes CRLF becomes
 * LF). Blank lines and a byte order mark are skipped. Refused: a quote inside a bare field, text after a closing quote,
 * a quote that is never closed, a carriage return that ends no line, zero bytes, a row of more than 1 MiB, a field of
 * more than 64 KiB. The caller checks the number of fields.
 *
 *     csv_reader r;
 *     csv_status got = CSV_FAILED;
 *     if (csv_open(&r, path))
 *         while ((got = csv_next(&r)) == CSV_ROW) ... r.fields[0].text ... arrlen(r.fields) ...
 *     csv_close(&r); */
#ifndef MTAN_TOOLS_CSV_H
#define MTAN_TOOLS_CSV_H

#include "gzip.h"

enum { CSV_LONGEST = TEXT_LONGEST, CSV_FIELD_LONGEST = 1 << 16 };

typedef struct csv_field {
    char *text; /* zero-terminated; may be changed; valid until the next call */
    size_t length;
    int doubled; /* private: it contains "" for one quote */
} csv_field;

typedef enum csv_status {
    CSV_END,
    CSV_ROW,
    CSV_BAD,   /* not a row: `problem` says why; the next call continues after the physical line `line` */
    CSV_FAILED /* the file cannot be read further: text.error is "file:line: what is wrong" */
} csv_status;

typedef struct csv_reader {
    text_stream text;
    csv_field *fields;   /* stb_ds array */
    size_t line;         /* the physical line, from 1, in which the row begins */
    const char *problem; /* without file and line */

    char *held; /* private: lines with an open quote, joined by LF: an stb_ds array */
    size_t at, held_line;
} csv_reader;

/* 1, or 0 with text.error set. csv_close is allowed after both. */
int csv_open(csv_reader *r, const char *path);
csv_status csv_next(csv_reader *r);
void csv_close(csv_reader *r);

#endif
