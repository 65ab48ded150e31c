/* Fuzz target: gzip and plain files, line by line and as bytes. Any bytes are refused with a reason or read to their end, both ways
 * to the same result; and members that were packed come out as they went in, but for a file that was cut.
 *
 * The first byte: 1: the rest is a file as it stands. Otherwise it is texts between zero bytes, which become members of stored
 * blocks with their checksums, so that these are no walls; 2: the last of them is cut short; above: so many bytes at a time. */
#include "fuzz.h"

#ifdef MTAN_ZLIB
#include <zlib.h>
#endif

#include "../../tools/data/gzip.h"

enum { MOST = 1 << 16 };

static fuzz_file file;

static size_t put_word(uint8_t *out, size_t at, unsigned long x, int bytes) {
    uint8_t little[4];
    for (int i = 0; i < bytes; i++) little[i] = (uint8_t)(x >> (8 * i));
    return fuzz_put(out, at, little, (size_t)bytes);
}

static unsigned long checksum(const uint8_t *data, size_t n) {
#ifdef MTAN_ZLIB
    return crc32(0, data, (uInt)n);
#else
    return data ? (unsigned long)n : 0; /* refused before it is looked at */
#endif
}

/* A member of one stored block. */
static size_t put_member(uint8_t *out, size_t at, const uint8_t *data, size_t n) {
    static const uint8_t header[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1};
    at = fuzz_put(out, at, header, sizeof header);
    at = put_word(out, at, n, 2);
    at = put_word(out, at, ~n, 2);
    at = fuzz_put(out, at, data, n);
    at = put_word(out, at, checksum(data, n), 4);
    return put_word(out, at, n, 4);
}

/* Texts between zeros as members; the texts themselves go to `plain`. */
static size_t pack(uint8_t *out, const uint8_t *data, size_t size, uint8_t *plain, size_t *plain_bytes) {
    size_t at = 0;
    while (size > 0) {
        const uint8_t *zero = memchr(data, 0, size);
        const size_t n = zero ? (size_t)(zero - data) : size;
        at = put_member(out, at, data, n);
        *plain_bytes = fuzz_put(plain, *plain_bytes, data, n);
        data += n + (zero != NULL), size -= n + (zero != NULL);
    }
    return at;
}

/* All bytes of the file, `step` at a time. */
static size_t read_bytes(uint8_t *out, size_t step, int *good) {
    text_stream s;
    size_t n = 0, got = 0;
    if (text_open(&s, file.path, MOST)) do
            n += got = text_bytes(&s, out + n, step);
        while (got == step);
    *good = !s.error[0];
    text_close(&s);
    return n;
}

/* All lines, each behind the place of the last one in the bytes; 1 when there was no error. */
static int read_lines(const uint8_t *bytes, size_t n) {
    text_stream s;
    size_t at = 0, numbers = 0;
    if (text_open(&s, file.path, MOST))
        while (text_line(&s)) {
            PROMISE(s.number == ++numbers && strlen(s.line) == s.length);
            if (numbers == 1 && n >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) at = 3;
            PROMISE(at + s.length <= n && memcmp(bytes + at, s.line, s.length) == 0);
            at += s.length;
            if (at < n && bytes[at] == '\r') at++;
            else PROMISE(s.length == 0 || s.line[s.length - 1] != '\r');
            PROMISE(at == n || bytes[at] == '\n');
            at += at < n;
        }
    const int good = !s.error[0];
    if (good) PROMISE(at == n || (at == 0 && n == 3)); /* a byte order mark alone is no line */
    text_close(&s);
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t packed[FUZZ_ROOM], plain[FUZZ_ROOM], read[MOST + 256];
    size_t n = 0, plain_bytes = 0;
    int good, lines;
    if (size == 0) return 0;
    const int raw = data[0] & 1, cut = !raw && data[0] & 2;
    if (raw) n = fuzz_put(packed, 0, data + 1, size - 1);
    else n = pack(packed, data + 1, size - 1, plain, &plain_bytes);
    if (cut && n > 0) n--;
    fuzz_fill(&file, "file", packed, n);
    const size_t bytes = read_bytes(read, 1 + (data[0] >> 2), &good);
    lines = read_lines(read, bytes);
    if (!good) PROMISE(!lines);
#ifdef MTAN_ZLIB
    if (!raw && !cut) PROMISE(good && bytes == plain_bytes && memcmp(read, plain, bytes) == 0);
    if (cut && n > 0) PROMISE(!good);
#endif
    if (good && !lines) PROMISE(memchr(read, 0, bytes)); /* the one thing that a line may not hold */
    return 0;
}
