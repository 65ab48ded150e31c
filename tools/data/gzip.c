/* See gzip.h. It uses read(2) instead of stdio or gzread, because both wait until their buffer is full: lines that
 * arrive slowly through a pipe must be returned as they arrive. */
#define _POSIX_C_SOURCE 200809L
#include "gzip.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef MTAN_ZLIB
#include <zlib.h>
#endif

#include "array.h"

enum { CHUNK = 1 << 16 };

static int fail(text_stream *s, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(s->error, sizeof s->error, format, arguments);
    va_end(arguments);
    return 0;
}

/* ---- bytes of the file ---- */

/* -1 on an error, 0 at the end. */
static ptrdiff_t read_some(text_stream *s, void *out, size_t n) {
    ssize_t got;
    do got = read(s->file, out, n);
    while (got < 0 && errno == EINTR);
    if (got < 0) fail(s, "%s: %s", s->name, strerror(errno));
    else s->taken += (uint64_t)got;
    return got;
}

/* The first two bytes decide the file's type; they may arrive one at a time. */
static int read_magic(text_stream *s) {
    while (s->packed_end < 2) {
        const ptrdiff_t got = read_some(s, s->packed + s->packed_end, CHUNK - s->packed_end);
        if (got < 0) return 0;
        if (got == 0) break;
        s->packed_end += (size_t)got;
    }
    return 1;
}

static int is_gzip(const text_stream *s) {
    return s->packed_end >= 2 && memcmp(s->packed, "\x1f\x8b", 2) == 0;
}

/* ---- unpacking ---- */

#ifdef MTAN_ZLIB
static int start_inflater(text_stream *s) {
    z_stream *z = tool_calloc(1, sizeof *z);
    s->inflater = z;
    if (inflateInit2(z, 15 + 16) == Z_OK) return 1; /* the largest window; 16: gzip */
    free(z);
    s->inflater = NULL;
    return fail(s, "%s: zlib does not start", s->name);
}

static void stop_inflater(text_stream *s) {
    if (s->inflater) inflateEnd(s->inflater);
    free(s->inflater);
}

/* Returns at least one byte, -1 on an error, 0 at the end. Consecutive members (bgzip) form one file. */
static ptrdiff_t inflate_some(text_stream *s, void *out, size_t n) {
    z_stream *z = s->inflater;
    z->next_out = out, z->avail_out = (uInt)n;
    while (z->avail_out == (uInt)n) {
        if (s->packed_at == s->packed_end) {
            const ptrdiff_t got = read_some(s, s->packed, CHUNK);
            if (got < 0 || (got == 0 && s->between)) return got;
            if (got == 0) return fail(s, "%s: the compressed file ends early", s->name), -1;
            s->packed_at = 0, s->packed_end = (size_t)got;
        }
        if (s->between) inflateReset(z);
        z->next_in = (unsigned char *)s->packed + s->packed_at, z->avail_in = (uInt)(s->packed_end - s->packed_at);
        const int code = inflate(z, Z_NO_FLUSH);
        s->packed_at = s->packed_end - z->avail_in;
        s->between = code == Z_STREAM_END;
        if (code != Z_OK && code != Z_STREAM_END)
            return fail(s, "%s: the compressed file is damaged (%s)", s->name, z->msg ? z->msg : "zlib"), -1;
    }
    return (ptrdiff_t)(n - z->avail_out);
}
#else
static int start_inflater(text_stream *s) {
    return fail(s, "%s: compressed, and this program was built without zlib: unpack it with gunzip", s->name);
}

static void stop_inflater(text_stream *s) {
    (void)s;
}

static ptrdiff_t inflate_some(text_stream *s, void *out, size_t n) {
    return read_some(s, out, n);
}
#endif

static ptrdiff_t plain_some(text_stream *s, void *out, size_t n) {
    const size_t waiting = s->packed_end - s->packed_at, take = waiting < n ? waiting : n;
    if (take == 0) return read_some(s, out, n);
    memcpy(out, s->packed + s->packed_at, take);
    s->packed_at += take;
    return (ptrdiff_t)take;
}

/* Returns unpacked bytes, counted against the bound, like read_some. */
static ptrdiff_t unpack_some(text_stream *s, void *out, size_t n) {
    const ptrdiff_t got = s->inflater ? inflate_some(s, out, n) : plain_some(s, out, n);
    if (got <= 0) return got;
    s->bytes += (uint64_t)got;
    if (s->bytes <= s->most) return got;
    return fail(s, "%s: unpacks to more than %llu bytes", s->name, (unsigned long long)s->most), -1;
}

/* ---- opening and closing ---- */

static int open_file(text_stream *s, const char *path) {
    struct stat status;
    do s->file = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY);
    while (s->file < 0 && errno == EINTR);
    if (s->file < 0 || fstat(s->file, &status) != 0) return fail(s, "%s: %s", s->name, strerror(errno));
    if (S_ISDIR(status.st_mode)) return fail(s, "%s: a folder, not a file", s->name);
    if (S_ISREG(status.st_mode)) s->size = (uint64_t)status.st_size;
    return 1;
}

int text_open(text_stream *s, const char *path, uint64_t most) {
    memset(s, 0, sizeof *s);
    s->name = tool_text(strcmp(path, "-") == 0 ? "standard input" : path);
    s->file = -1;
    s->most = most;
    if (!open_file(s, path)) return 0;
    s->packed = tool_realloc(NULL, CHUNK);
    s->buffer = tool_realloc(NULL, s->capacity = CHUNK);
    return read_magic(s) && (!is_gzip(s) || start_inflater(s));
}

void text_close(text_stream *s) {
    if (s->file > STDIN_FILENO) close(s->file);
    stop_inflater(s);
    free(s->buffer), free(s->packed), free(s->name);
    s->buffer = s->packed = s->name = s->line = NULL;
    s->inflater = NULL;
    s->file = -1;
    s->at = s->end = 0;
}

double text_progress(const text_stream *s) {
    if (s->size == 0) return -1;
    return s->taken < s->size ? (double)s->taken / (double)s->size : 1;
}

/* ---- lines and bytes ---- */

/* Reads more bytes after the waiting ones, into a buffer that keeps one byte free for the final zero; like
 * read_some. */
static ptrdiff_t fill(text_stream *s) {
    ptrdiff_t got;
    memmove(s->buffer, s->buffer + s->at, s->end - s->at);
    s->end -= s->at, s->at = 0;
    if (s->end > TEXT_LONGEST)
        return fail(s, "%s:%zu: a line of more than %d bytes", s->name, s->number + 1, (int)TEXT_LONGEST), -1;
    if (s->end + 1 >= s->capacity) s->buffer = tool_realloc(s->buffer, s->capacity *= 2);
    if ((got = unpack_some(s, s->buffer + s->end, s->capacity - s->end - 1)) > 0) s->end += (size_t)got;
    return got;
}

/* Takes the bytes from s->at to `stop` as the next line. */
static int take_line(text_stream *s, char *stop) {
    s->line = s->buffer + s->at;
    s->at = (size_t)(stop - s->buffer) + (stop < s->buffer + s->end);
    s->number++;
    if (s->number == 1 && stop - s->line >= 3 && memcmp(s->line, "\xef\xbb\xbf", 3) == 0) s->line += 3;
    if (stop > s->line && stop[-1] == '\r') stop--;
    *stop = 0;
    s->length = (size_t)(stop - s->line);
    if (memchr(s->line, 0, s->length)) return fail(s, "%s:%zu: a zero byte: this is no text", s->name, s->number);
    return 1;
}

int text_line(text_stream *s) {
    size_t seen = 0;
    char *stop;
    if (s->error[0]) return 0;
    while (!(stop = memchr(s->buffer + s->at + seen, '\n', s->end - s->at - seen))) {
        ptrdiff_t got;
        seen = s->end - s->at;
        if ((got = fill(s)) < 0 || (got == 0 && seen == 0)) return 0;
        if (got > 0) continue;
        stop = s->buffer + s->end;
        break;
    }
    return take_line(s, stop);
}

size_t text_bytes(text_stream *s, void *out, size_t n) {
    char *to = out;
    size_t left = n;
    while (left > 0 && !s->error[0]) {
        size_t take = s->end - s->at;
        if (take == 0 && fill(s) <= 0) break;
        take = s->end - s->at < left ? s->end - s->at : left;
        memcpy(to, s->buffer + s->at, take);
        s->at += take, to += take, left -= take;
    }
    return n - left;
}
