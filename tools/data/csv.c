/* See csv.h. A line with an even number of quotes is a row and is split in place. A line with an odd number has a field
 * that continues on the next line: such lines are held until the number is even. If the held lines turn out not to be a
 * row, only the first of them is given up, so that a stray quote does not swallow the rows after it. */
#include "csv.h"

#include <string.h>

#include "array.h"

/* ---- one row ---- */

static int is_blank(char c) {
    return c == ' ' || c == '\t';
}

static char *skip_blanks(char *at, const char *end) {
    while (at < end && is_blank(*at)) at++;
    return at;
}

/* Both move *at past the field, to a comma or the end, and return what is wrong, or NULL. */
static const char *bare_field(csv_field *f, char **at, const char *end) {
    char *p = f->text = *at;
    for (; p < end && *p != ','; p++) {
        if (*p == '"') return "a quote inside a field that does not begin with one";
        if (*p == '\r') return "a carriage return inside a line: lines end with LF or CRLF";
    }
    *at = p;
    while (p > f->text && is_blank(p[-1])) p--;
    f->length = (size_t)(p - f->text);
    return NULL;
}

static const char *quoted_field(csv_field *f, char **at, const char *end) {
    char *p = f->text = *at + 1;
    for (;; p += 2) {
        if (!(p = memchr(p, '"', (size_t)(end - p)))) return "a quote that is never closed";
        if (p + 1 == end || p[1] != '"') break;
        f->doubled = 1;
    }
    f->length = (size_t)(p - f->text);
    *at = skip_blanks(p + 1, end);
    return *at == end || **at == ',' ? NULL : "text behind a closing quote";
}

/* Finds the fields without changing any byte. */
static const char *split(csv_reader *r, char *at, const char *end) {
    arrsetlen(r->fields, 0);
    for (;; at++) {
        csv_field f = {NULL, 0, 0};
        const char *problem;
        at = skip_blanks(at, end);
        problem = at < end && *at == '"' ? quoted_field(&f, &at, end) : bare_field(&f, &at, end);
        if (problem) return problem;
        if (f.length > CSV_FIELD_LONGEST) return "a field of more than 65536 bytes";
        arrput(r->fields, f);
        if (at == end) return NULL;
    }
}

/* Turns the fields into texts: "" becomes ", and a zero ends each. */
static void finish(csv_reader *r) {
    for (size_t i = 0; i < arrlenu(r->fields); i++) {
        csv_field *f = &r->fields[i];
        if (f->doubled) {
            size_t kept = 0;
            for (size_t k = 0; k < f->length; k++) {
                const char c = f->text[k];
                f->text[kept++] = c;
                if (c == '"') k++;
            }
            f->length = kept;
        }
        f->text[f->length] = 0;
    }
}

/* ---- which bytes form a row ---- */

static int odd_quotes(const char *at, const char *end) {
    int odd = 0;
    while ((at = memchr(at, '"', (size_t)(end - at)))) at++, odd = !odd;
    return odd;
}

/* Appends the line just read to the held bytes from r->at on, and discards the bytes before. */
static void hold(csv_reader *r) {
    const size_t left = arrlenu(r->held) - r->at;
    if (left == 0) r->held_line = r->text.number;
    if (left > 0) memmove(r->held, r->held + r->at, left);
    r->at = 0;
    arrsetlen(r->held, left);
    memcpy(arraddnptr(r->held, r->text.length), r->text.line, r->text.length);
    arrput(r->held, '\n');
}

/* Returns the end of the row that begins at r->at: the first LF outside quotes, after reading as many lines as needed.
 * If the quotes never close, it is the end of the first line, which is then not a row. NULL: the file cannot be
 * read. */
static char *held_row(csv_reader *r) {
    int inside = 0;
    for (size_t n = 0;; n++) {
        if (r->at + n == arrlenu(r->held)) {
            if (n > CSV_LONGEST || !text_line(&r->text))
                return r->text.error[0] ? NULL : memchr(r->held + r->at, '\n', n);
            hold(r);
        }
        if (r->held[r->at + n] == '\n' && !inside) return r->held + r->at + n;
        if (r->held[r->at + n] == '"') inside = !inside;
    }
}

/* Moves past all lines up to the LF at `last`, or past the first line only. */
static void let_go(csv_reader *r, const char *last) {
    const char *p = r->held + r->at, *all = r->held + arrlenu(r->held);
    do p = (const char *)memchr(p, '\n', (size_t)(all - p)) + 1, r->held_line++;
    while (last && p <= last);
    r->at = (size_t)(p - r->held);
}

static csv_status judge(csv_reader *r, char *row, const char *end) {
    r->problem = (size_t)(end - row) > CSV_LONGEST ? "a row of more than 1048576 bytes" : split(r, row, end);
    return r->problem ? CSV_BAD : CSV_ROW;
}

static csv_status next_held(csv_reader *r) {
    const char *end = held_row(r);
    csv_status status;
    r->line = r->held_line;
    if (!end) return CSV_FAILED;
    status = judge(r, r->held + r->at, end);
    let_go(r, status == CSV_ROW ? end : NULL);
    return status;
}

static csv_status next_fresh(csv_reader *r) {
    char *end;
    if (!text_line(&r->text)) return r->text.error[0] ? CSV_FAILED : CSV_END;
    end = r->text.line + r->text.length;
    if (odd_quotes(r->text.line, end)) return hold(r), next_held(r);
    r->line = r->text.number;
    return judge(r, r->text.line, end);
}

int csv_open(csv_reader *r, const char *path) {
    memset(r, 0, sizeof *r);
    return text_open(&r->text, path, UINT64_MAX);
}

csv_status csv_next(csv_reader *r) {
    csv_status status;
    do status = r->at < arrlenu(r->held) ? next_held(r) : next_fresh(r);
    while (status == CSV_ROW && arrlen(r->fields) == 1 && r->fields[0].length == 0);
    if (status == CSV_ROW) finish(r);
    return status;
}

void csv_close(csv_reader *r) {
    text_close(&r->text);
    arrfree(r->fields), arrfree(r->held);
}
