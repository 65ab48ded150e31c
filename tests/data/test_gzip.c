/* Text from plain files, gzip files and pipes: lines, their bounds, and what is refused. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef MTAN_ZLIB
#include <zlib.h>
#endif

#include "check.h"
#include "../../tools/data/gzip.h"

static char path[64]; /* of the test that runs */

static void open_path(void) {
    int file;
    strcpy(path, "build/gzip-XXXXXX");
    if ((file = mkstemp(path)) < 0) perror("mtan: build"), exit(2);
    close(file);
}

static void write_path(const void *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0) perror("mtan: build"), exit(2);
}

/* The lines of the file between bars, or the error. */
static const char *read_lines(uint64_t most) {
    static char all[4096];
    text_stream s;
    size_t at = 0;
    all[0] = 0;
    if (text_open(&s, path, most))
        while (text_line(&s)) {
            at += (size_t)snprintf(all + at, sizeof all - at, "|%s", s.line);
            if (s.length != strlen(s.line)) strcpy(all, "a wrong length");
        }
    if (s.error[0]) snprintf(all, sizeof all, "%s", s.error);
    text_close(&s);
    return all;
}

TEST lines_are_read(void) {
    static const char *const cases[][2] = {{"", ""},
                                           {"one", "|one"},
                                           {"one\n", "|one"},
                                           {"one\r\ntwo\r\n", "|one|two"},
                                           {"\n\nthree", "|||three"},
                                           {"\xef\xbb\xbfone\n\xef\xbb\xbf\n", "|one|\xef\xbb\xbf"},
                                           {"\xef\xbb\xbf", "|"},
                                           {"\r\n\ra\r\r\n", "||\ra\r"},
                                           {"\x1f\n", "|\x1f"},
                                           {"x\n", "|x"}};
    open_path();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_path(cases[i][0], strlen(cases[i][0]));
        ASSERT_STR_EQ(cases[i][1], read_lines(UINT64_MAX));
    }
    write_path("one\ntw\0o\n", 9);
    ASSERT(strstr(read_lines(UINT64_MAX), ":2: a zero byte"));
    remove(path);
    ASSERT(strstr(read_lines(UINT64_MAX), path));
    strcpy(path, "build");
    ASSERT_STR_EQ("build: a folder, not a file", read_lines(UINT64_MAX));
    PASS();
}

/* Lines of all lengths, so that their ends meet every place of the buffer; then the longest allowed, and one more. */
TEST long_lines_are_whole(void) {
    const size_t most = TEXT_LONGEST + 8;
    char *text = guard_alloc(most);
    text_stream s;
    size_t n = 0;
    FILE *f;
    open_path();
    memset(text, 'x', most);
    f = fopen(path, "wb");
    for (n = 0; f && n < 3000; n++) fwrite(text, 1, n, f), fputc('\n', f);
    ASSERT(f && fclose(f) == 0);
    ASSERT(text_open(&s, path, UINT64_MAX));
    for (n = 0; text_line(&s); n++) ASSERT(s.length == n && s.number == n + 1 && strspn(s.line, "x") == n);
    ASSERT(n == 3000 && s.bytes == 3000 * 3001 / 2 && !s.error[0] && text_progress(&s) == 1);
    text_close(&s);
    for (size_t extra = 0; extra < 2; extra++) {
        write_path(text, TEXT_LONGEST + extra);
        ASSERT(text_open(&s, path, UINT64_MAX));
        ASSERT_EQ_FMT((int)!extra, text_line(&s), "%d");
        ASSERT(extra ? strstr(s.error, ":1: a line of more than") != NULL : s.length == TEXT_LONGEST);
        text_close(&s);
    }
    remove(path);
    ASSERT(guard_free(text));
    PASS();
}

TEST bytes_are_read_and_bounded(void) {
    char bytes[16];
    text_stream s;
    open_path();
    write_path("line\n\0\1\2\3", 9);
    ASSERT(text_open(&s, path, 9));
    ASSERT(text_line(&s) && strcmp(s.line, "line") == 0);
    ASSERT(text_bytes(&s, bytes, 3) == 3 && memcmp(bytes, "\0\1\2", 3) == 0);
    ASSERT(text_bytes(&s, bytes, 16) == 1 && bytes[0] == 3 && text_bytes(&s, bytes, 16) == 0 && !s.error[0]);
    text_close(&s);
    ASSERT(text_open(&s, path, 8));
    ASSERT(!text_line(&s) && strstr(s.error, "unpacks to more than 8 bytes"));
    ASSERT(text_bytes(&s, bytes, 1) == 0);
    text_close(&s);
    remove(path);
    PASS();
}

/* A line is served while the writer still holds the pipe open. */
TEST a_pipe_is_read_as_it_comes(void) {
    int ends[2], saved = dup(0);
    text_stream s;
    ASSERT(pipe(ends) == 0 && dup2(ends[0], 0) == 0);
    close(ends[0]);
    ASSERT_EQ(9, write(ends[1], "one\ntwo\nt", 9));
    ASSERT(text_open(&s, "-", UINT64_MAX));
    ASSERT(text_line(&s) && strcmp(s.line, "one") == 0);
    ASSERT(text_line(&s) && strcmp(s.line, "two") == 0 && text_progress(&s) < 0);
    ASSERT_EQ(4, write(ends[1], "hree", 4));
    close(ends[1]);
    ASSERT(text_line(&s) && strcmp(s.line, "three") == 0 && !text_line(&s) && !s.error[0]);
    ASSERT_STR_EQ("standard input", s.name);
    text_close(&s);
    ASSERT(dup2(saved, 0) == 0);
    close(saved);
    PASS();
}

#ifdef MTAN_ZLIB
/* The text as a gzip member, behind what is there already. */
static size_t pack(const char *text, char *out, size_t most) {
    z_stream z;
    memset(&z, 0, sizeof z);
    if (deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) return 0;
    z.next_in = (unsigned char *)text, z.avail_in = (uInt)strlen(text);
    z.next_out = (unsigned char *)out, z.avail_out = (uInt)most;
    deflate(&z, Z_FINISH);
    deflateEnd(&z);
    return most - z.avail_out;
}
#endif

TEST gzip_is_unpacked_or_refused(void) {
    char packed[256] = "\x1f\x8b\x08";
    open_path();
#ifdef MTAN_ZLIB
    size_t n, first;
    first = pack("one\ntwo\nth", packed, sizeof packed);
    n = first + pack("ree\n", packed + first, sizeof packed - first); /* two members are one text */
    write_path(packed, n);
    ASSERT_STR_EQ("|one|two|three", read_lines(14));
    ASSERT(strstr(read_lines(13), "unpacks to more than 13 bytes"));
    for (size_t cut = 2; cut < n; cut++) {
        write_path(packed, cut);
        if (cut == first) ASSERT_STR_EQ("|one|two|th", read_lines(UINT64_MAX));
        else ASSERT(strstr(read_lines(UINT64_MAX), "ends early"));
    }
    for (size_t i = 2; i < n; i++) { /* any byte may be wrong; some do not count: time, padding */
        packed[i] ^= 0x10;
        write_path(packed, n);
        const char *got = read_lines(UINT64_MAX);
        ASSERT(strcmp(got, "|one|two|three") == 0 || strstr(got, "damaged") || strstr(got, "ends early"));
        ASSERT(i < n - 8 || strstr(got, "damaged")); /* the checksum and the length at the end do */
        packed[i] ^= 0x10;
    }
    memcpy(packed + n, "rest", 4);
    write_path(packed, n + 4);
    ASSERT(strstr(read_lines(UINT64_MAX), "damaged"));
#else
    write_path(packed, 3);
    ASSERT(strstr(read_lines(UINT64_MAX), "built without zlib: unpack it with gunzip"));
#endif
    remove(path);
    PASS();
}

SUITE(gzip_suite) {
    RUN_TEST(lines_are_read);
    RUN_TEST(long_lines_are_whole);
    RUN_TEST(bytes_are_read_and_bounded);
    RUN_TEST(a_pipe_is_read_as_it_comes);
    RUN_TEST(gzip_is_unpacked_or_refused);
}
