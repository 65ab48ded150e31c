/* See zipfile.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef MTAN_ZLIB
#include <zlib.h>
#endif

#include "../../data/array.h"
#include "zipfile.h"

enum {
    LOCAL_SIZE = 30,
    CENTRAL_SIZE = 46,
    END_SIZE = 22,
    LOCATOR_SIZE = 20,
    END64_SIZE = 56,
    LONGEST_COMMENT = 0xffff,
    MOST_ENTRIES = 16384, /* a checkpoint has one per tensor; the limit bounds the time to sort them */
    ERROR_SIZE = 512
};
#define LOCAL_MARK 0x04034b50u
#define CENTRAL_MARK 0x02014b50u
#define END_MARK 0x06054b50u
#define LOCATOR_MARK 0x07064b50u
#define END64_MARK 0x06064b50u

static uint64_t little(const uint8_t *at, int bytes) {
    uint64_t x = 0;
    for (int i = bytes; i-- > 0;) x = x << 8 | at[i];
    return x;
}

static int refuse(char *error, const char *why) {
    snprintf(error, ERROR_SIZE, "%s", why);
    return 0;
}

uint32_t zip_checksum(const void *bytes, size_t n) {
    const uint8_t *at = bytes;
    uint32_t table[256], sum = 0xffffffffu;
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int k = 0; k < 8; k++) table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320u : 0);
    }
    for (size_t i = 0; i < n; i++) sum = sum >> 8 ^ table[(sum ^ at[i]) & 255];
    return ~sum;
}

/* ---- the directory ---- */

typedef struct directory {
    uint64_t entries, bytes, offset;
} directory;

/* The end record is the last thing in the file, except for a comment whose length it gives. */
static const uint8_t *find_end(const zipfile *z) {
    const size_t furthest = z->bytes < END_SIZE + LONGEST_COMMENT ? z->bytes : END_SIZE + LONGEST_COMMENT;
    for (size_t back = END_SIZE; back <= furthest; back++) {
        const uint8_t *at = z->blob + z->bytes - back;
        if (little(at, 4) == END_MARK && little(at + 20, 2) == back - END_SIZE) return at;
    }
    return NULL;
}

/* The 64-bit end record, which PyTorch always writes, or NULL. */
static const uint8_t *find_end64(const zipfile *z, const uint8_t *end) {
    if (end - z->blob < LOCATOR_SIZE) return NULL;
    const uint8_t *locator = end - LOCATOR_SIZE;
    const uint64_t offset = little(locator + 8, 8);
    if (little(locator, 4) != LOCATOR_MARK || offset > z->bytes || z->bytes - offset < END64_SIZE) return NULL;
    return little(z->blob + offset, 4) == END64_MARK ? z->blob + offset : NULL;
}

static int read_end(const zipfile *z, directory *d, char *error) {
    const uint8_t *end = find_end(z), *end64 = end ? find_end64(z, end) : NULL;
    if (!end) return refuse(error, "a zip archive without an end: the file is cut off or damaged");
    if (end64) {
        d->entries = little(end64 + 32, 8), d->bytes = little(end64 + 40, 8), d->offset = little(end64 + 48, 8);
        if (little(end64 + 16, 4) != 0 || little(end64 + 20, 4) != 0) return refuse(error, "a zip archive in parts");
    } else {
        d->entries = little(end + 10, 2), d->bytes = little(end + 12, 4), d->offset = little(end + 16, 4);
        if (little(end + 4, 2) != 0 || little(end + 6, 2) != 0) return refuse(error, "a zip archive in parts");
    }
    if (d->offset > z->bytes || d->bytes > z->bytes - d->offset)
        return refuse(error, "the zip archive's directory lies outside the file: it is cut off or damaged");
    if (d->entries > MOST_ENTRIES || d->entries * CENTRAL_SIZE > d->bytes)
        return refuse(error, "the zip archive's directory is damaged or has more than 16384 entries");
    return 1;
}

/* A 32-bit field whose bits are all ones is stored in extra field 1; the fields stand there in this order. */
static int widen(const uint8_t *extra, size_t n, uint64_t *fields[3]) {
    int wanted = 0;
    for (int i = 0; i < 3; i++) wanted += *fields[i] == 0xffffffffu;
    for (size_t at = 0; wanted && at + 4 <= n;) {
        const size_t length = (size_t)little(extra + at + 2, 2);
        if (length > n - at - 4) return 0;
        if (little(extra + at, 2) == 1 && length >= 8 * (size_t)wanted) {
            at += 4;
            for (int i = 0; i < 3; i++)
                if (*fields[i] == 0xffffffffu) *fields[i] = little(extra + at, 8), at += 8;
            return 1;
        }
        at += 4 + length;
    }
    return wanted == 0;
}

/* Finds the content: it follows the local header, whose name must be the directory's. */
static int locate(const zipfile *z, zip_entry *e, uint64_t offset, char *error) {
    if (offset > z->bytes || z->bytes - offset < LOCAL_SIZE || little(z->blob + offset, 4) != LOCAL_MARK)
        return refuse(error, "an entry of the zip archive lies outside the file: it is cut off or damaged");
    const uint8_t *local = z->blob + offset;
    const uint64_t start = offset + LOCAL_SIZE + little(local + 26, 2) + little(local + 28, 2);
    if (start > z->bytes || e->packed_bytes > z->bytes - start)
        return refuse(error, "an entry of the zip archive is longer than the file: it is cut off or damaged");
    if (little(local + 26, 2) != e->name_length || memcmp(local + LOCAL_SIZE, e->name, e->name_length) != 0)
        return refuse(error, "the zip archive's directory does not match its entries");
    e->packed = z->blob + start;
    return 1;
}

/* Reads one entry of the directory; returns its length, or 0 with error set. */
static size_t read_entry(zipfile *z, const uint8_t *at, size_t left, char *error) {
    zip_entry e;
    if (left < CENTRAL_SIZE || little(at, 4) != CENTRAL_MARK)
        return (size_t)refuse(error, "the zip archive's directory is damaged");
    const size_t name = (size_t)little(at + 28, 2), extra = (size_t)little(at + 30, 2);
    const size_t whole = CENTRAL_SIZE + name + extra + (size_t)little(at + 32, 2);
    uint64_t offset = little(at + 42, 4);
    uint64_t *wide[3] = {&e.bytes, &e.packed_bytes, &offset};
    if (whole > left) return (size_t)refuse(error, "the zip archive's directory is cut off");
    e.name = (const char *)at + CENTRAL_SIZE, e.name_length = name;
    e.method = (int)little(at + 10, 2);
    e.checksum = (uint32_t)little(at + 16, 4);
    e.packed_bytes = little(at + 20, 4), e.bytes = little(at + 24, 4);
    if (little(at + 8, 2) & 1) return (size_t)refuse(error, "the zip archive is encrypted");
    if (!widen(at + CENTRAL_SIZE + name, extra, wide))
        return (size_t)refuse(error, "the zip archive misses sizes of 64 bits");
    if (!locate(z, &e, offset, error)) return 0;
    arrput(z->entries, e);
    return whole;
}

static int compare_names(const char *a, size_t a_length, const char *b, size_t b_length) {
    const int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

static int by_name(const void *a, const void *b) {
    const zip_entry *x = a, *y = b;
    return compare_names(x->name, x->name_length, y->name, y->name_length);
}

static int read_directory(zipfile *z, char *error) {
    directory d = {0, 0, 0};
    if (!read_end(z, &d, error)) return 0;
    const uint8_t *at = z->blob + d.offset;
    size_t left = (size_t)d.bytes;
    for (uint64_t i = 0; i < d.entries; i++) {
        const size_t used = read_entry(z, at, left, error);
        if (!used) return 0;
        at += used, left -= used;
    }
    const size_t n = arrlenu(z->entries);
    if (n) qsort(z->entries, n, sizeof *z->entries, by_name);
    for (size_t i = 1; i < n; i++)
        if (by_name(&z->entries[i - 1], &z->entries[i]) == 0)
            return refuse(error, "a name of the zip archive occurs twice");
    return 1;
}

int zip_open(zipfile *z, const void *blob, size_t bytes, char *error) {
    memset(z, 0, sizeof *z);
    z->blob = blob, z->bytes = bytes;
    if (read_directory(z, error)) return 1;
    zip_close(z);
    return 0;
}

void zip_close(zipfile *z) {
    for (size_t i = 0; i < arrlenu(z->unpacked); i++) free(z->unpacked[i]);
    arrfree(z->unpacked);
    arrfree(z->entries);
}

const zip_entry *zip_find(const zipfile *z, const char *name) {
    size_t low = 0, high = arrlenu(z->entries);
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const zip_entry *e = &z->entries[middle];
        const int order = compare_names(e->name, e->name_length, name, strlen(name));
        if (order == 0) return e;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return NULL;
}

/* ---- contents ---- */

#ifdef MTAN_ZLIB
/* Deflate expands a byte to at most 1032, so allocations stay in proportion to the file. */
static const uint8_t *inflate_entry(zipfile *z, const zip_entry *e, char *error) {
    z_stream stream;
    if (e->bytes / 1032 > e->packed_bytes + 1 || e->bytes >= UINT32_MAX || e->packed_bytes > UINT32_MAX)
        return refuse(error, "an entry of the zip archive claims to be larger than it can be"), NULL;
    uint8_t *out = tool_realloc(NULL, (size_t)e->bytes + 1);
    memset(&stream, 0, sizeof stream);
    stream.next_in = (Bytef *)(uintptr_t)e->packed, stream.avail_in = (uInt)e->packed_bytes;
    stream.next_out = out, stream.avail_out = (uInt)e->bytes;
    int end = inflateInit2(&stream, -MAX_WBITS);
    if (end == Z_OK) end = inflate(&stream, Z_FINISH);
    inflateEnd(&stream);
    arrput(z->unpacked, out);
    if (end == Z_STREAM_END && stream.total_out == e->bytes) return out;
    return refuse(error, "an entry of the zip archive cannot be unpacked: it is damaged"), NULL;
}
#else
static const uint8_t *inflate_entry(zipfile *z, const zip_entry *e, char *error) {
    (void)z, (void)e;
    return refuse(error, "an entry of the zip archive is compressed, and this program was built without zlib"), NULL;
}
#endif

const uint8_t *zip_content(zipfile *z, const zip_entry *e, char *error) {
    const uint8_t *content = e->packed;
    if (e->packed_bytes > z->bytes - z->used) return refuse(error, "entries of the zip archive overlap"), NULL;
    z->used += e->packed_bytes;
    if (e->method == 8) {
        if (!(content = inflate_entry(z, e, error))) return NULL;
    } else if (e->method != 0 || e->bytes != e->packed_bytes) {
        return refuse(error, "an entry of the zip archive is compressed in a way this program does not know"), NULL;
    }
    if (zip_checksum(content, (size_t)e->bytes) == e->checksum) return content;
    char name[64]; /* only printable ASCII of a damaged or hostile name may reach a terminal */
    size_t n = 0;
    for (; n < e->name_length && n + 1 < sizeof name; n++)
        name[n] = e->name[n] >= ' ' && e->name[n] < 127 ? e->name[n] : '?';
    name[n] = 0;
    snprintf(error, ERROR_SIZE, "the checksum of '%s' in the zip archive is wrong: the file is damaged", name);
    return NULL;
}
