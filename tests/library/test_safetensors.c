/* The container: what is written is read back, what is not a safetensors file is refused, nothing crashes.
 *
 * Blobs lie in guarded blocks of exactly their size, so that the address sanitizer sees a read of one byte too many.
 */
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "file_walk.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* A file from the text of its header and that many bytes of data: 0, 1, 2, ... */
static uint8_t *make_blob(const char *header, size_t header_bytes, size_t data_bytes, size_t *bytes) {
    *bytes = 8 + header_bytes + data_bytes;
    uint8_t *blob = guard_alloc(*bytes);
    for (int i = 0; i < 8; i++) blob[i] = (uint8_t)((uint64_t)header_bytes >> (8 * i));
    memcpy(blob + 8, header, header_bytes);
    for (size_t i = 0; i < data_bytes; i++) blob[8 + header_bytes + i] = (uint8_t)i;
    return blob;
}

/* Opens and, when that succeeds, walks a file of this header. */
static mtan_status try_header_n(const char *header, size_t header_bytes, size_t data_bytes) {
    mtan_file file;
    size_t bytes;
    uint8_t *blob = make_blob(header, header_bytes, data_bytes, &bytes);
    mtan_status status = mtan_file_open(&file, blob, bytes);
    if (status == MTAN_OK && !file_walk(&file)) status = MTAN_ERR_CONFIG; /* none that a reader gives */
    return guard_free(blob) ? status : MTAN_ERR_CONFIG;
}

static mtan_status try_header(const char *header, size_t data_bytes) {
    return try_header_n(header, strlen(header), data_bytes);
}

/* ---- What is written ------------------------------------------------------------------------------------------ */

static const mtan_real weights[6] = {1, -2, (mtan_real)0.5, (mtan_real)1e-3, 0, 7};
static const mtan_real scalar[1] = {(mtan_real)-0.25};
static const int32_t indices[3] = {1, -2, 0x12345678};
static const uint64_t counters[2] = {0x0123456789abcdefu, 1};
static const uint16_t halves[3] = {0x3c00, 0xc000, 0x0001};
static const uint8_t bytes3[3] = {1, 2, 255};

static const mtan_file_entry sample_entries[] = {
    {"bytes", MTAN_DTYPE_U8, 1, {3}, bytes3},
    {"halves", MTAN_DTYPE_F16, 1, {3}, halves},
    {"rec.linear.weight", MTAN_DTYPE_REAL, 2, {2, 3}, weights},
    {"scalar", MTAN_DTYPE_REAL, 0, {0}, scalar},
    {"indices", MTAN_DTYPE_I32, 1, {3}, indices},
    {"none", MTAN_DTYPE_F32, 2, {0, 5}, NULL},
    {"counters", MTAN_DTYPE_U64, 2, {1, 2}, counters},
    {"\"quoted\\\" \t\x01 gr\xc3\xbc\xc3\x9f \xe6\x97\xa5 \xf0\x9f\x99\x82", MTAN_DTYPE_BOOL, 1, {1}, bytes3},
};
static const mtan_file_pair sample_pairs[] = {
    {"format", "pt"},
    {"mtan.note", "two\nlines, a \"quote\", a \\, \x7f and \xf0\x9f\x99\x82"},
    {"", ""},
};
#define SAMPLE sample_entries, COUNT(sample_entries), sample_pairs, COUNT(sample_pairs)

/* The sample in a block of exactly its size; NULL if the writer fails. */
static uint8_t *make_sample(size_t *bytes) {
    size_t size, used = 0;
    if (mtan_file_write_size(SAMPLE, &size) != MTAN_OK) return NULL;
    uint8_t *blob = guard_alloc(size);
    if (mtan_file_write_memory(SAMPLE, blob, size, &used) != MTAN_OK || used != size) return NULL;
    *bytes = size;
    return blob;
}

TEST what_is_written_is_read_back(void) {
    size_t bytes, length;
    uint8_t *blob = make_sample(&bytes);
    mtan_file file;
    mtan_tensor_view view;
    char text[64];
    ASSERT(blob);
    ASSERT_EQ(MTAN_OK, mtan_file_open(&file, blob, bytes));
    ASSERT(file_walk(&file));
    ASSERT_EQ(COUNT(sample_entries), file.tensors);
    ASSERT_EQ(COUNT(sample_pairs), file.pairs);
    for (size_t i = 0; i < file.tensors; i++) {
        const mtan_file_entry *entry = &sample_entries[i];
        uint8_t copy[64];
        ASSERT_EQm(entry->name, MTAN_OK, mtan_file_tensor(&file, entry->name, &view));
        ASSERT_EQ(entry->dtype, view.dtype);
        ASSERT_EQ(entry->rank, view.rank);
        ASSERT_MEM_EQ(entry->shape, view.shape, sizeof view.shape);
        ASSERT(view.aligned);
        ASSERT_EQ(MTAN_OK, mtan_view_read_raw(&view, view.dtype, copy, view.count));
        if (view.bytes) ASSERT_MEM_EQ(entry->data, copy, view.bytes);
    }
    for (size_t i = 0; i < file.pairs; i++) {
        const mtan_file_pair *pair = &sample_pairs[i];
        ASSERT_EQm(pair->key, MTAN_OK, mtan_file_metadata(&file, pair->key, text, sizeof text, &length));
        ASSERT_STR_EQ(pair->value, text);
        ASSERT_EQ(strlen(pair->value), length);
    }
    ASSERT_EQ(MTAN_ERR_MISSING, mtan_file_tensor(&file, "scala", &view));
    ASSERT_EQ(MTAN_ERR_MISSING, mtan_file_tensor(&file, "scalar ", &view));
    ASSERT_EQ(MTAN_ERR_MISSING, mtan_file_tensor(&file, "__metadata__", &view));
    ASSERT_EQ(MTAN_ERR_MISSING, mtan_file_metadata(&file, "forma", text, sizeof text, &length));
    ASSERT(guard_free(blob));
    PASS();
}

/* Every byte of a file, spelled out: the same on hosts of either byte order. */
TEST bytes_are_as_specified(void) {
    static const char expected[] = "\xb8\0\0\0\0\0\0\0" /* 184 = 3 x 64 - 8 */
                                   "{\"__metadata__\":{\"k\":\"\\u000a\\\"\"},"
                                   "\"b\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                                   "\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[8,9]}}"
                                   "                                               " /* 47, up to 192 */
                                   "\x01\0\0\0\xfe\xff\xff\xff\x09";
    const int32_t b[2] = {1, -2};
    const uint8_t a = 9;
    const mtan_file_entry entries[] = {{"a", MTAN_DTYPE_U8, 0, {0}, &a}, {"b", MTAN_DTYPE_I32, 1, {2}, b}};
    const mtan_file_pair pair = {"k", "\n\""};
    uint8_t got[256];
    size_t used;
    ASSERT_EQ(MTAN_OK, mtan_file_write_memory(entries, 2, &pair, 1, got, sizeof got, &used));
    ASSERT_EQ(192 + 9, used);
    ASSERT_EQ(sizeof expected - 1, used);
    ASSERT(check_same("file", got, expected, used));
    PASS();
}

TEST nothing_at_all_can_be_written(void) {
    uint8_t *blob = guard_alloc(64);
    mtan_file file;
    size_t used;
    char text[4];
    ASSERT_EQ(MTAN_OK, mtan_file_write_memory(NULL, 0, NULL, 0, blob, 64, &used));
    ASSERT_EQ(64, used);
    ASSERT_EQ(MTAN_OK, mtan_file_open(&file, blob, used));
    ASSERT_EQ(0, file.tensors);
    ASSERT_EQ(0, file.pairs);
    ASSERT_EQ(MTAN_ERR_MISSING, mtan_file_metadata(&file, "k", text, sizeof text, NULL));
    ASSERT(guard_free(blob));
    PASS();
}

/* Collects what the writer hands over, and fails at one of the calls. */
typedef struct {
    uint8_t bytes[2048];
    size_t used;
    int calls, fail_at;
} collector;

static mtan_status collect(void *context, const void *bytes, size_t n) {
    collector *c = context;
    if (c->calls++ == c->fail_at || n == 0 || n > sizeof c->bytes - c->used) return MTAN_ERR_CONFIG;
    memcpy(c->bytes + c->used, bytes, n);
    c->used += n;
    return MTAN_OK;
}

TEST callback_gets_the_same_bytes_and_may_fail_at_any_call(void) {
    size_t bytes;
    uint8_t *blob = make_sample(&bytes);
    static collector c;
    ASSERT(blob);
    c.fail_at = -1;
    ASSERT_EQ(MTAN_OK, mtan_file_write(SAMPLE, collect, &c));
    ASSERT_EQ(bytes, c.used);
    ASSERT(check_same("file", c.bytes, blob, bytes));
    ASSERT(guard_free(blob));
    for (int calls = c.calls, i = 0; i < calls; i++) {
        memset(&c, 0, sizeof c);
        c.fail_at = i;
        ASSERT_EQ(MTAN_ERR_WRITE, mtan_file_write(SAMPLE, collect, &c));
        ASSERT_EQm("no call after the one that failed", i + 1, c.calls);
    }
    PASS();
}

/* More than the chunk through which a big-endian host writes. */
TEST long_tensors_are_written_whole(void) {
    enum { N = 1000 };
    static int32_t in[N], out[N];
    for (int i = 0; i < N; i++) in[i] = i * 1000003;
    const mtan_file_entry entry = {"x", MTAN_DTYPE_I32, 1, {N}, in};
    size_t size;
    mtan_file file;
    mtan_tensor_view view;
    ASSERT_EQ(MTAN_OK, mtan_file_write_size(&entry, 1, NULL, 0, &size));
    uint8_t *blob = guard_alloc(size);
    ASSERT_EQ(MTAN_OK, mtan_file_write_memory(&entry, 1, NULL, 0, blob, size, &size));
    ASSERT_EQ(MTAN_OK, mtan_file_open(&file, blob, size));
    ASSERT_EQ(MTAN_OK, mtan_file_tensor(&file, "x", &view));
    ASSERT_EQ(MTAN_OK, mtan_view_read_i32(&view, out, N));
    ASSERT_MEM_EQ(in, out, sizeof in);
    ASSERT_EQ(0x43, view.data[4]); /* 1000003 = 0xf4243 */
    ASSERT(guard_free(blob));
    PASS();
}

TEST buffers_one_byte_too_small_are_refused(void) {
    size_t bytes, used = 12345, length = 12345;
    uint8_t *sample = make_sample(&bytes), *small = guard_alloc(bytes - 1);
    mtan_file file;
    char text[3] = "zz";
    ASSERT(sample);
    ASSERT_EQ(MTAN_ERR_MEMORY, mtan_file_write_memory(SAMPLE, small, bytes - 1, &used));
    ASSERT_EQ(12345, used);
    for (size_t i = 0; i + 1 < bytes; i++) ASSERT_EQ(0xff, small[i]); /* as guard_alloc left it */
    ASSERT_EQ(MTAN_OK, mtan_file_open(&file, sample, bytes));
    ASSERT_EQ(MTAN_ERR_MEMORY, mtan_file_metadata(&file, "format", text, 2, &length));
    ASSERT_EQ(12345, length);
    ASSERT_STR_EQ("zz", text);
    ASSERT_EQ(MTAN_OK, mtan_file_metadata(&file, "format", text, 3, &length));
    ASSERT_STR_EQ("pt", text);
    ASSERT_EQ(MTAN_OK, mtan_file_metadata(&file, "mtan.note", NULL, 0, &length));
    ASSERT_EQ(strlen(sample_pairs[1].value), length);
    ASSERT(guard_free(sample) & guard_free(small));
    PASS();
}

TEST bad_contents_are_not_written(void) {
    static const uint8_t x[8] = {0};
    static const struct {
        const char *what;
        mtan_status expected;
        mtan_file_entry entries[2];
    } cases[] = {
        {"good", MTAN_OK, {{"a", MTAN_DTYPE_U8, 1, {1}, x}, {"b", MTAN_DTYPE_U8, 1, {1}, x}}},
        {"a name twice", MTAN_ERR_INPUT, {{"a", MTAN_DTYPE_U8, 1, {1}, x}, {"a", MTAN_DTYPE_U8, 1, {1}, x}}},
        {"no name", MTAN_ERR_NULL, {{NULL, MTAN_DTYPE_U8, 1, {1}, x}, {"b", MTAN_DTYPE_U8, 1, {1}, x}}},
        {"no data", MTAN_ERR_NULL, {{"a", MTAN_DTYPE_U8, 1, {1}, NULL}, {"b", MTAN_DTYPE_U8, 1, {1}, x}}},
        {"reserved", MTAN_ERR_INPUT, {{"__metadata__", MTAN_DTYPE_U8, 0, {0}, x}, {"b", MTAN_DTYPE_U8, 1, {1}, x}}},
        {"Latin-1", MTAN_ERR_INPUT, {{"\xfc", MTAN_DTYPE_U8, 1, {1}, x}, {"b", MTAN_DTYPE_U8, 1, {1}, x}}},
        {"UTF-8 cut short", MTAN_ERR_INPUT, {{"\xe6\x97", MTAN_DTYPE_U8, 0, {0}, x}, {"b", MTAN_DTYPE_U8, 0, {0}, x}}},
        {"surrogate", MTAN_ERR_INPUT, {{"\xed\xa0\x80", MTAN_DTYPE_U8, 0, {0}, x}, {"b", MTAN_DTYPE_U8, 0, {0}, x}}},
        {"rank 9",
         MTAN_ERR_INPUT,
         {{"a", MTAN_DTYPE_U8, 9, {1, 1, 1, 1, 1, 1, 1, 1}, x}, {"b", MTAN_DTYPE_U8, 0, {0}, x}}},
        {"rank -1", MTAN_ERR_INPUT, {{"a", MTAN_DTYPE_U8, -1, {1}, x}, {"b", MTAN_DTYPE_U8, 1, {1}, x}}},
        {"dtype 15", MTAN_ERR_INPUT, {{"a", (mtan_dtype)15, 1, {1}, x}, {"b", MTAN_DTYPE_U8, 1, {1}, x}}},
        {"product", MTAN_ERR_SIZE, {{"a", MTAN_DTYPE_U8, 2, {SIZE_MAX / 2, 3}, x}, {"b", MTAN_DTYPE_U8, 0, {0}, x}}},
        {"bytes", MTAN_ERR_SIZE, {{"a", MTAN_DTYPE_U64, 1, {SIZE_MAX / 8 + 1}, x}, {"b", MTAN_DTYPE_U8, 0, {0}, x}}},
        {"sum", MTAN_ERR_SIZE, {{"a", MTAN_DTYPE_U8, 1, {SIZE_MAX - 1}, x}, {"b", MTAN_DTYPE_U8, 1, {2}, x}}},
        {"sum with header",
         MTAN_ERR_SIZE,
         {{"a", MTAN_DTYPE_U8, 1, {SIZE_MAX - 9}, x}, {"b", MTAN_DTYPE_U8, 1, {2}, x}}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t size = 0;
        static collector c;
        memset(&c, 0, sizeof c);
        c.fail_at = -1;
        ASSERT_EQm(cases[i].what, cases[i].expected, mtan_file_write_size(cases[i].entries, 2, NULL, 0, &size));
        ASSERT_EQm(cases[i].what, cases[i].expected, mtan_file_write(cases[i].entries, 2, NULL, 0, collect, &c));
        uint8_t out[512];
        size_t used = 0;
        ASSERT_EQm(cases[i].what, cases[i].expected,
                   mtan_file_write_memory(cases[i].entries, 2, NULL, 0, out, sizeof out, &used));
        ASSERT_EQm(cases[i].what, size, used);
        ASSERT_EQm(cases[i].what, size, c.used); /* nothing, unless it is good */
    }
    PASS();
}

TEST bad_metadata_is_not_written(void) {
    const mtan_file_pair twice[] = {{"k", "1"}, {"k", "2"}}, no_key = {NULL, "v"}, no_value = {"k", NULL};
    const mtan_file_pair key = {"\xc0\x80", "v"}, value = {"k", "\xf5\x80\x80\x80"};
    const mtan_file_entry entry = {"a", MTAN_DTYPE_U8, 1, {0}, NULL};
    size_t size = 7;
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_file_write_size(NULL, 0, twice, 2, &size));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_write_size(NULL, 0, &no_key, 1, &size));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_write_size(NULL, 0, &no_value, 1, &size));
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_file_write_size(NULL, 0, &key, 1, &size));
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_file_write_size(NULL, 0, &value, 1, &size));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_write_size(NULL, 1, NULL, 0, &size));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_write_size(NULL, 0, NULL, 1, &size));
    ASSERT_EQ(MTAN_ERR_SIZE, mtan_file_write_size(&entry, MTAN_FILE_MAX_ENTRIES + 1, NULL, 0, &size));
    ASSERT_EQ(MTAN_ERR_SIZE, mtan_file_write_size(NULL, 0, twice, MTAN_FILE_MAX_ENTRIES + 1, &size));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_write_size(NULL, 0, NULL, 0, NULL));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_write(NULL, 0, NULL, 0, NULL, NULL));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_write_memory(NULL, 0, NULL, 0, NULL, 64, &size));
    ASSERT_EQ(7, size);
    PASS();
}

TEST headers_beyond_the_limit_are_refused(void) {
    const size_t n = MTAN_FILE_MAX_HEADER;
    char *text = malloc(n + 1);
    const mtan_file_pair pair = {"k", text};
    size_t size;
    ASSERT(text);
    memset(text, 'x', n);
    text[n - 128] = 0;
    ASSERT_EQ(MTAN_OK, mtan_file_write_size(NULL, 0, &pair, 1, &size));
    text[n - 128] = 'x';
    text[n] = 0;
    ASSERT_EQ(MTAN_ERR_SIZE, mtan_file_write_size(NULL, 0, &pair, 1, &size));
    free(text);
    char *header = malloc(n + 1);
    ASSERT(header);
    memset(header, ' ', n + 1);
    memcpy(header, "{}", 2);
    ASSERT_EQ(MTAN_OK, try_header_n(header, n, 0));
    ASSERT_EQ(MTAN_ERR_FILE, try_header_n(header, n + 1, 0));
    free(header);
    PASS();
}

/* ---- What is read --------------------------------------------------------------------------------------------- */

TEST null_pointers_are_refused(void) {
    size_t bytes, n = 0;
    uint8_t *blob = make_sample(&bytes);
    mtan_file file;
    mtan_tensor_view view;
    mtan_text key, value, none = {NULL, 0};
    mtan_real x[6];
    char text[64];
    ASSERT(blob);
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_open(NULL, blob, bytes));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_open(&file, NULL, bytes));
    ASSERT_EQ(MTAN_OK, mtan_file_open(&file, blob, bytes));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_tensor(NULL, "scalar", &view));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_tensor(&file, NULL, &view));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_tensor(&file, "scalar", NULL));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_tensor_at(NULL, 0, &view));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_tensor_at(&file, 0, NULL));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_tensor_next(NULL, &n, &view));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_tensor_next(&file, NULL, &view));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_tensor_next(&file, &n, NULL));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_length(NULL, 8, &n));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_length(blob, bytes, NULL));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_metadata(NULL, "format", text, sizeof text, &n));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_metadata(&file, NULL, text, sizeof text, &n));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_metadata(&file, "format", NULL, sizeof text, &n));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_metadata_at(NULL, 0, &key, &value));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_metadata_at(&file, 0, NULL, &value));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_metadata_at(&file, 0, &key, NULL));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_metadata_next(NULL, &n, &key, &value));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_metadata_next(&file, NULL, &key, &value));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_metadata_next(&file, &n, NULL, &value));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_metadata_next(&file, &n, &key, NULL));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_text_decode(NULL, text, sizeof text, &n));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_text_decode(&none, text, sizeof text, &n));
    ASSERT_EQ(MTAN_OK, mtan_file_tensor(&file, "scalar", &view));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_view_read(NULL, x, 1));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_view_read(&view, NULL, 1));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_view_read_f64(NULL, NULL, 1));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_view_read_f64(&view, NULL, 1));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_write_memory(SAMPLE, blob, bytes, NULL));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_file_write_memory(SAMPLE, NULL, bytes, &n));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_view_read_i32(&view, NULL, 1));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_view_read_raw(NULL, MTAN_DTYPE_REAL, x, 1));
    ASSERT_EQ(NULL, mtan_view_in_place(NULL));
    ASSERT(guard_free(blob));
    PASS();
}

#define T(fields) "{\"a\":{" fields "}}"
#define DTYPE "\"dtype\":\"F32\""
#define SHAPE "\"shape\":[2]"
#define OFFSETS "\"data_offsets\":[0,8]"
#define GOOD DTYPE "," SHAPE "," OFFSETS
#define TWO(a, b) "{\"a\":{\"dtype\":\"U8\"," a "},\"b\":{\"dtype\":\"U8\"," b "}}"
#define U8(n, begin, end) "\"shape\":[" #n "],\"data_offsets\":[" #begin "," #end "]"
#define META(value) "{\"__metadata__\":" value "}"
#define NAME(name) "{\"" name "\":{" GOOD "}}"

static const struct {
    const char *what, *header;
    size_t data_bytes;
    int valid;
} headers[] = {
    /* fields of a tensor */
    {"plain", T(GOOD), 8, 1},
    {"other order", T(OFFSETS "," DTYPE "," SHAPE), 8, 1},
    {"white space", "{ \n\t\"a\" : { \"dtype\" : \"F32\" , \r\"shape\" : [ 2 ] , \"data_offsets\" : [ 0 , 8 ] } } ", 8,
     1},
    {"escaped field and type", T("\"d\\u0074ype\":\"F\\u00332\"," SHAPE "," OFFSETS), 8, 1},
    {"no dtype", T(SHAPE "," OFFSETS), 8, 0},
    {"no shape", T(DTYPE "," OFFSETS), 8, 0},
    {"no offsets", T(DTYPE "," SHAPE), 8, 0},
    {"no fields", T(""), 0, 0},
    {"dtype twice", T(GOOD "," DTYPE), 8, 0},
    {"shape twice", T(GOOD "," SHAPE), 8, 0},
    {"offsets twice", T(GOOD "," OFFSETS), 8, 0},
    {"unknown field", T(GOOD ",\"x\":1"), 8, 0},
    {"unknown dtype", T("\"dtype\":\"F31\"," SHAPE "," OFFSETS), 8, 0},
    {"longer dtype", T("\"dtype\":\"F32 \"," SHAPE "," OFFSETS), 8, 0},
    {"shorter dtype", T("\"dtype\":\"F\"," SHAPE "," OFFSETS), 8, 0},
    {"lower-case dtype", T("\"dtype\":\"f32\"," SHAPE "," OFFSETS), 8, 0},
    {"dtype is a number", T("\"dtype\":32," SHAPE "," OFFSETS), 8, 0},
    {"shape is a number", T(DTYPE ",\"shape\":2," OFFSETS), 8, 0},
    {"tensor is null", "{\"a\":null}", 0, 0},
    {"tensor is an array", "{\"a\":[]}", 0, 0},
    /* numbers */
    {"scalar", T("\"dtype\":\"F64\",\"shape\":[]," OFFSETS), 8, 1},
    {"rank 8", T(DTYPE ",\"shape\":[1,1,1,1,1,1,1,2]," OFFSETS), 8, 1},
    {"rank 9", T(DTYPE ",\"shape\":[1,1,1,1,1,1,1,1,2]," OFFSETS), 8, 0},
    {"no elements", T(DTYPE ",\"shape\":[3,0],\"data_offsets\":[0,0]"), 0, 1},
    {"one offset", T(DTYPE "," SHAPE ",\"data_offsets\":[8]"), 8, 0},
    {"three offsets", T(DTYPE "," SHAPE ",\"data_offsets\":[0,4,8]"), 8, 0},
    {"negative", T(DTYPE ",\"shape\":[-2]," OFFSETS), 8, 0},
    {"minus zero", T(DTYPE "," SHAPE ",\"data_offsets\":[-0,8]"), 8, 0},
    {"plus", T(DTYPE ",\"shape\":[+2]," OFFSETS), 8, 0},
    {"fraction", T(DTYPE ",\"shape\":[2.0]," OFFSETS), 8, 0},
    {"exponent", T(DTYPE ",\"shape\":[2e0]," OFFSETS), 8, 0},
    {"leading zero", T(DTYPE ",\"shape\":[02]," OFFSETS), 8, 0},
    {"double zero", T(DTYPE "," SHAPE ",\"data_offsets\":[00,8]"), 8, 0},
    {"text as number", T(DTYPE ",\"shape\":[\"2\"]," OFFSETS), 8, 0},
    {"nested shape", T(DTYPE ",\"shape\":[[2]]," OFFSETS), 8, 0},
    {"trailing comma in shape", T(DTYPE ",\"shape\":[2,]," OFFSETS), 8, 0},
    {"leading comma in shape", T(DTYPE ",\"shape\":[,2]," OFFSETS), 8, 0},
    {"shape not closed", T(DTYPE ",\"shape\":[2," OFFSETS), 8, 0},
    {"2^64 - 1", T("\"dtype\":\"U8\",\"shape\":[18446744073709551615],\"data_offsets\":[0,8]"), 8, 0},
    {"2^64", T(DTYPE ",\"shape\":[18446744073709551618]," OFFSETS), 8, 0}, /* 2 if it wrapped */
    {"many digits", T(DTYPE ",\"shape\":[100000000000000000000000000000000]," OFFSETS), 8, 0},
    {"product wraps to 2", T(DTYPE ",\"shape\":[9223372036854775809,2]," OFFSETS), 8, 0},
    {"bytes wrap to 8", T(DTYPE ",\"shape\":[4611686018427387906]," OFFSETS), 8, 0},
    {"product wraps, then zero", T(DTYPE ",\"shape\":[4294967296,4294967296,0],\"data_offsets\":[0,0]"), 0, 0},
    /* ranges */
    {"size too small", T(DTYPE "," SHAPE ",\"data_offsets\":[0,7]"), 7, 0},
    {"size too large", T(DTYPE "," SHAPE ",\"data_offsets\":[0,9]"), 9, 0},
    {"begin after end", T(DTYPE "," SHAPE ",\"data_offsets\":[8,0]"), 8, 0},
    {"end beyond the file", T(GOOD), 7, 0},
    {"range beyond the file", T(DTYPE "," SHAPE ",\"data_offsets\":[8,16]"), 8, 0},
    {"range that wraps", T(DTYPE "," SHAPE ",\"data_offsets\":[18446744073709551612,4]"), 8, 0},
    {"trailing byte", T(GOOD), 9, 0},
    {"data without tensors", "{}", 1, 0},
    {"hole at the start", T(DTYPE "," SHAPE ",\"data_offsets\":[1,9]"), 9, 0},
    {"side by side", TWO(U8(2, 0, 2), U8(3, 2, 5)), 5, 1},
    {"in the other order", TWO(U8(2, 3, 5), U8(3, 0, 3)), 5, 1},
    {"hole between", TWO(U8(2, 0, 2), U8(2, 3, 5)), 5, 0},
    {"overlap", TWO(U8(3, 0, 3), U8(3, 2, 5)), 5, 0},
    {"overlap and hole that cancel", TWO(U8(3, 0, 3), U8(2, 2, 4)), 5, 0},
    {"one inside the other", TWO(U8(5, 0, 5), U8(1, 2, 3)), 5, 0},
    {"same range", TWO(U8(5, 0, 5), U8(5, 0, 5)), 5, 0},
    {"same range, sum right", TWO(U8(5, 0, 5), U8(5, 0, 5)), 10, 0},
    {"empty at the start", TWO(U8(5, 0, 5), U8(0, 0, 0)), 5, 1},
    {"empty at the end", TWO(U8(5, 0, 5), U8(0, 5, 5)), 5, 1},
    {"empty inside another", TWO(U8(5, 0, 5), U8(0, 2, 2)), 5, 0},
    {"empty beyond the file", TWO(U8(5, 0, 5), U8(0, 6, 6)), 5, 0},
    /* names */
    {"name twice", "{\"a\":{\"dtype\":\"U8\"," U8(1, 0, 1) "},\"a\":{\"dtype\":\"U8\"," U8(1, 1, 2) "}}", 2, 0},
    {"name twice, once escaped",
     "{\"a\":{\"dtype\":\"U8\"," U8(1, 0, 1) "},\"\\u0061\":{\"dtype\":\"U8\"," U8(1, 1, 2) "}}", 2, 0},
    {"slash twice, once escaped",
     "{\"/\":{\"dtype\":\"U8\"," U8(0, 0, 0) "},\"\\/\":{\"dtype\":\"U8\"," U8(0, 0, 0) "}}", 0, 0},
    {"empty name", NAME(""), 8, 1},
    {"all escapes", NAME("\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00fC"), 8, 1},
    {"zero in a name", NAME("a\\u0000b"), 8, 1},
    {"pair of surrogates", NAME("\\ud83d\\ude42"), 8, 1},
    {"high surrogate alone", NAME("\\ud83d"), 8, 0},
    {"high surrogate, then text", NAME("\\ud83dxude42"), 8, 0},
    {"high surrogate twice", NAME("\\ud83d\\ud83d"), 8, 0},
    {"high surrogate, then a letter", NAME("\\ud83d\\u0061"), 8, 0},
    {"high surrogate, then a line", NAME("\\ud83d\\nde42"), 8, 0},
    {"high surrogate, then what is above all of them", NAME("\\ud83d\\ue000"), 8, 0},
    {"low surrogate alone", NAME("\\ude42"), 8, 0},
    {"unknown escape", NAME("\\x"), 8, 0},
    {"upper-case escape", NAME("\\U0061"), 8, 0},
    {"three digits", NAME("\\u006"), 8, 0},
    {"not a digit", NAME("\\u006g"), 8, 0},
    {"not a digit, at sign", NAME("\\u006@"), 8, 0},
    {"backslash before the quote", NAME("\\"), 8, 0},
    {"control character", NAME("\x1f"), 8, 0},
    {"line break", NAME("\n"), 8, 0},
    {"delete", NAME("\x7f"), 8, 1},
    {"UTF-8", NAME("\xc3\xbc \xe6\x97\xa5 \xf0\x9f\x99\x82 \xf4\x8f\xbf\xbf"), 8, 1},
    {"UTF-8 cut short", NAME("\xf0\x9f\x99"), 8, 0},
    {"UTF-8 continued alone", NAME("\x80"), 8, 0},
    {"UTF-8 overlong, 2", NAME("\xc1\xbf"), 8, 0},
    {"UTF-8 overlong, 3", NAME("\xe0\x9f\xbf"), 8, 0},
    {"UTF-8 overlong, 4", NAME("\xf0\x8f\xbf\xbf"), 8, 0},
    {"UTF-8 surrogate", NAME("\xed\xa0\x80"), 8, 0},
    {"UTF-8 above the last", NAME("\xf4\x90\x80\x80"), 8, 0},
    {"UTF-8 five bytes", NAME("\xf8\x88\x80\x80\x80"), 8, 0},
    /* metadata */
    {"metadata", META("{\"format\":\"pt\",\"b\":\"\"}"), 0, 1},
    {"metadata last", "{\"a\":{" GOOD "},\"__metadata__\":{\"k\":\"v\"}}", 8, 1},
    {"metadata null", "{\"__metadata__\":null,\"a\":{" GOOD "}}", 8, 1},
    {"metadata empty", META("{}"), 0, 1},
    {"metadata twice", "{\"__metadata__\":{},\"__metadata__\":{}}", 0, 0},
    {"metadata null twice", "{\"__metadata__\":null,\"__metadata__\":null}", 0, 0},
    {"metadata twice, once escaped", "{\"__metadata__\":{},\"__metadat\\u0061__\":{}}", 0, 0},
    {"metadata nul", META("nul"), 0, 0},
    {"metadata nulx", META("nulx"), 0, 0},
    {"metadata nuxl", META("nuxl"), 0, 0},
    {"metadata true", META("true"), 0, 0},
    {"metadata array", META("[]"), 0, 0},
    {"metadata text", META("\"x\""), 0, 0},
    {"metadata number", META("{\"k\":1}"), 0, 0},
    {"metadata value null", META("{\"k\":null}"), 0, 0},
    {"metadata nested", META("{\"k\":{\"k\":\"v\"}}"), 0, 0},
    {"metadata deep", META("{\"k\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["), 0, 0},
    {"metadata key twice", META("{\"k\":\"1\",\"k\":\"2\"}"), 0, 0},
    {"metadata key twice, once a pair of surrogates", META("{\"\xf0\x9f\x99\x82\":\"1\",\"\\ud83d\\ude42\":\"2\"}"), 0,
     0},
    {"metadata key twice, once escaped", META("{\"k\":\"1\",\"\\u006b\":\"2\"}"), 0, 0},
    {"metadata trailing comma", META("{\"k\":\"1\",}"), 0, 0},
    {"metadata bad value", META("{\"k\":\"\\x\"}"), 0, 0},
    {"metadata is no tensor", META("{" GOOD "}"), 8, 0},
    {"metadata key like a tensor", "{\"__metadata__\":{\"a\":\"v\"},\"a\":{" GOOD "}}", 8, 1},
    /* the whole */
    {"empty object", "{}", 0, 1},
    {"padding", "{}      ", 0, 1},
    {"padding by a line break", "{}\n", 0, 0},
    {"leading space", " {}", 0, 0},
    {"byte order mark", "\xef\xbb\xbf{}", 0, 0},
    {"empty header", "", 0, 0},
    {"only an array", "[]", 0, 0},
    {"opened by a bracket", "[}", 0, 0},
    {"not closed", "{", 0, 0},
    {"tensor not closed", "{\"a\":{" GOOD "}", 8, 0},
    {"name not closed", "{\"a", 0, 0},
    {"closed twice", "{}}", 0, 0},
    {"two objects", "{}{}", 0, 0},
    {"trailing comma", "{\"a\":{" GOOD "},}", 8, 0},
    {"leading comma", "{,\"a\":{" GOOD "}}", 8, 0},
    {"trailing comma in a tensor", T(GOOD ","), 8, 0},
    {"no comma between fields", T(DTYPE " " SHAPE "," OFFSETS), 8, 0},
    {"no colon", "{\"a\"{" GOOD "}}", 8, 0},
    {"name without quotes", "{a:{" GOOD "}}", 8, 0},
    {"single quotes", "{'a':{" GOOD "}}", 8, 0},
    {"comment", "{/**/\"a\":{" GOOD "}}", 8, 0},
};

TEST headers_are_judged_one_by_one(void) {
    for (size_t i = 0; i < COUNT(headers); i++)
        ASSERT_EQm(headers[i].what, headers[i].valid ? MTAN_OK : MTAN_ERR_FILE,
                   try_header(headers[i].header, headers[i].data_bytes));
    ASSERT_EQm("zero byte in a name", MTAN_ERR_FILE,
               try_header_n("{\"\0\":{" GOOD "}}", sizeof "{\"\0\":{" GOOD "}}" - 1, 8));
    ASSERT_EQm("zero byte as padding", MTAN_ERR_FILE, try_header_n("{}\0", 3, 0));
    PASS();
}

/* Every prefix of every good header is a bad header. */
TEST headers_cut_short_are_refused(void) {
    for (size_t i = 0; i < COUNT(headers); i++) {
        size_t end = strlen(headers[i].header);
        while (end > 0 && headers[i].header[end - 1] == ' ') end--;
        for (size_t n = 0; headers[i].valid && n < end; n++)
            ASSERT_EQm(headers[i].what, MTAN_ERR_FILE, try_header_n(headers[i].header, n, headers[i].data_bytes));
    }
    PASS();
}

TEST every_dtype_has_its_size(void) {
    static const struct {
        const char *name;
        mtan_dtype dtype;
        int width;
    } all[] = {
        {"BOOL", MTAN_DTYPE_BOOL, 1}, {"U8", MTAN_DTYPE_U8, 1},     {"I8", MTAN_DTYPE_I8, 1},
        {"I16", MTAN_DTYPE_I16, 2},   {"U16", MTAN_DTYPE_U16, 2},   {"F8_E5M2", MTAN_DTYPE_F8_E5M2, 1},
        {"F16", MTAN_DTYPE_F16, 2},   {"BF16", MTAN_DTYPE_BF16, 2}, {"F8_E4M3", MTAN_DTYPE_F8_E4M3, 1},
        {"I32", MTAN_DTYPE_I32, 4},   {"U32", MTAN_DTYPE_U32, 4},   {"F32", MTAN_DTYPE_F32, 4},
        {"I64", MTAN_DTYPE_I64, 8},   {"U64", MTAN_DTYPE_U64, 8},   {"F64", MTAN_DTYPE_F64, 8},
    };
    for (size_t i = 0; i < COUNT(all); i++) {
        char header[128];
        mtan_file file;
        mtan_tensor_view view;
        size_t bytes;
        sprintf(header, "{\"x\":{\"dtype\":\"%s\",\"shape\":[3],\"data_offsets\":[0,%d]}}", all[i].name,
                3 * all[i].width);
        uint8_t *blob = make_blob(header, strlen(header), 3 * (size_t)all[i].width, &bytes);
        ASSERT_EQm(all[i].name, MTAN_OK, mtan_file_open(&file, blob, bytes));
        ASSERT_EQ(MTAN_OK, mtan_file_tensor_at(&file, 0, &view));
        ASSERT_EQ(all[i].dtype, view.dtype);
        ASSERT_EQ(3, view.count);
        ASSERT(file_walk(&file));
        ASSERT(guard_free(blob));
    }
    PASS();
}

TEST escapes_are_decoded(void) {
    static const struct {
        const char *coded, *plain;
        size_t length;
    } cases[] = {
        {"plain", "plain", 5},
        {"\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t", 8},
        {"\\u0041\\u00fC\\u65e5\\ud83d\\ude42", "A\xc3\xbc\xe6\x97\xa5\xf0\x9f\x99\x82", 10},
        {"\\uD800\\uDC00\\uDBFF\\uDFFF", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 8},
        {"\\u007f\\u0080\\u07ff\\u0800\\uffff", "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf", 11},
        {"a\\u0000b", "a\0b", 3},
        {"", "", 0},
    };
    char text[32];
    size_t length;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const mtan_text coded = {cases[i].coded, strlen(cases[i].coded)};
        ASSERT_EQm(cases[i].coded, MTAN_OK, mtan_text_decode(&coded, text, sizeof text, &length));
        ASSERT_EQ(cases[i].length, length);
        ASSERT_MEM_EQ(cases[i].plain, text, length + 1);
    }
    const mtan_text quote = {"a\"b", 3}, cut = {"\\u00", 4};
    ASSERT_EQ(MTAN_ERR_FILE, mtan_text_decode(&quote, text, sizeof text, &length));
    ASSERT_EQ(MTAN_ERR_FILE, mtan_text_decode(&cut, text, sizeof text, &length));
    PASS();
}

/* A name is found however it is spelled in the file; one with a zero inside is not found by its first half. */
TEST names_are_compared_decoded(void) {
    static const char header[] = "{\"\\u0061\\/\\ud83d\\ude42\":{\"dtype\":\"U8\"," U8(
        1, 0, 1) "},"
                 "\"b\\u0000c\":{\"dtype\":\"U8\"," U8(1, 1, 2) "},"
                                                                "\"__metadata__\":{\"\\u006b\":\"\\u0076\"}}";
    size_t bytes;
    uint8_t *blob = make_blob(header, sizeof header - 1, 2, &bytes);
    mtan_file file;
    mtan_tensor_view view;
    char text[2];
    ASSERT_EQ(MTAN_OK, mtan_file_open(&file, blob, bytes));
    ASSERT_EQ(MTAN_OK, mtan_file_tensor(&file, "a/\xf0\x9f\x99\x82", &view));
    ASSERT_EQ(0, view.data[0]);
    ASSERT_EQ(MTAN_ERR_MISSING, mtan_file_tensor(&file, "\\u0061\\/\\ud83d\\ude42", &view));
    ASSERT_EQ(MTAN_ERR_MISSING, mtan_file_tensor(&file, "b", &view));
    ASSERT_EQ(MTAN_ERR_MISSING, mtan_file_tensor(&file, "a/\xf0\x9f\x99", &view));
    ASSERT_EQ(MTAN_OK, mtan_file_metadata(&file, "k", text, sizeof text, NULL));
    ASSERT_STR_EQ("v", text);
    ASSERT(guard_free(blob));
    PASS();
}

/* The same tensor read in place, and from an odd address by copying. */
TEST alignment_is_told_and_copies_do_not_need_it(void) {
    size_t bytes;
    uint8_t *blob = make_sample(&bytes), *odd = guard_alloc(bytes + 1);
    mtan_file file;
    mtan_tensor_view view;
    mtan_real out[6];
    ASSERT(blob);
    ASSERT_EQ(MTAN_OK, mtan_file_open(&file, blob, bytes));
    ASSERT_EQ(MTAN_OK, mtan_file_tensor(&file, "rec.linear.weight", &view));
    ASSERT(view.aligned);
    ASSERT_EQ(host_is_little(), mtan_view_in_place(&view) != NULL);
    if (host_is_little()) ASSERT_MEM_EQ(weights, mtan_view_in_place(&view), sizeof weights);
    ASSERT_EQ(0, (file.data - blob) % 64);
    ASSERT_EQ(MTAN_OK, mtan_file_tensor(&file, "indices", &view));
    ASSERT_EQ(NULL, mtan_view_in_place(&view)); /* another type */
    memcpy(odd + 1, blob, bytes);
    ASSERT_EQ(MTAN_OK, mtan_file_open(&file, odd + 1, bytes));
    ASSERT_EQ(MTAN_OK, mtan_file_tensor(&file, "rec.linear.weight", &view));
    ASSERT_FALSE(view.aligned);
    ASSERT_EQ(NULL, mtan_view_in_place(&view));
    ASSERT_EQ(MTAN_OK, mtan_view_read(&view, out, 6));
    ASSERT_MEM_EQ(weights, out, sizeof weights);
    ASSERT(file_walk(&file));
    ASSERT(guard_free(blob) & guard_free(odd));
    PASS();
}

TEST reads_ask_for_the_right_count_and_type(void) {
    size_t bytes;
    uint8_t *blob = make_sample(&bytes);
    mtan_file file;
    mtan_tensor_view view;
    mtan_real x[7] = {99};
    double d[7] = {99};
    int32_t n[7] = {99};
    ASSERT(blob);
    ASSERT_EQ(MTAN_OK, mtan_file_open(&file, blob, bytes));
    ASSERT_EQ(MTAN_OK, mtan_file_tensor(&file, "rec.linear.weight", &view));
    ASSERT_EQ(MTAN_ERR_SHAPE, mtan_view_read(&view, x, 5));
    ASSERT_EQ(MTAN_ERR_SHAPE, mtan_view_read(&view, x, 7));
    ASSERT_EQ(MTAN_ERR_SHAPE, mtan_view_read_f64(&view, d, 5));
    ASSERT_EQ(MTAN_ERR_SHAPE, mtan_view_read_i32(&view, n, 6));
    ASSERT_EQ(MTAN_ERR_SHAPE, mtan_view_read_raw(&view, MTAN_DTYPE_U32, n, 6));
    ASSERT_EQ(MTAN_OK, mtan_file_tensor(&file, "indices", &view));
    ASSERT_EQ(MTAN_ERR_SHAPE, mtan_view_read(&view, x, 3));
    ASSERT_EQ(MTAN_ERR_SHAPE, mtan_view_read_f64(&view, d, 3));
    ASSERT_EQ(MTAN_ERR_SHAPE, mtan_view_read_i32(&view, n, 2));
    ASSERT(x[0] == 99 && d[0] == 99 && n[0] == 99);
    ASSERT_EQ(MTAN_OK, mtan_view_read_i32(&view, n, 3));
    ASSERT_MEM_EQ(indices, n, sizeof indices);
    ASSERT_EQ(MTAN_OK, mtan_file_tensor(&file, "none", &view));
    ASSERT_EQ(MTAN_OK, mtan_view_read(&view, NULL, 0));
    ASSERT_EQ(MTAN_OK, mtan_view_read_f64(&view, NULL, 0));
    ASSERT_EQ(MTAN_OK, mtan_file_tensor(&file, "halves", &view));
    x[0] = 99;
    ASSERT_EQ(MTAN_ERR_SHAPE, mtan_view_read(&view, x, 2));
    ASSERT_EQ(MTAN_ERR_SHAPE, mtan_view_read(&view, x, 4));
    ASSERT(x[0] == 99);
    ASSERT(guard_free(blob));
    PASS();
}

/* Writes n elements of a type and reads them back as double and as mtan_real. */
static mtan_status convert(mtan_dtype dtype, const void *data, size_t n, double *doubles, mtan_real *reals) {
    const mtan_file_entry entry = {"x", dtype, 1, {n}, data};
    mtan_file file;
    mtan_tensor_view view;
    size_t size;
    mtan_status status = mtan_file_write_size(&entry, 1, NULL, 0, &size);
    if (status != MTAN_OK) return status;
    uint8_t *blob = guard_alloc(size);
    status = mtan_file_write_memory(&entry, 1, NULL, 0, blob, size, &size);
    if (status == MTAN_OK) status = mtan_file_open(&file, blob, size);
    if (status == MTAN_OK) status = mtan_file_tensor(&file, "x", &view);
    if (status == MTAN_OK) status = mtan_view_read_f64(&view, doubles, n);
    if (status == MTAN_OK) status = mtan_view_read(&view, reals, n);
    return guard_free(blob) ? status : MTAN_ERR_CONFIG;
}

/* All 65536, against the definition. */
TEST every_half_is_converted(void) {
    enum { N = 65536 };
    static uint16_t bits[N];
    static double doubles[N];
    static mtan_real reals[N];
    for (int i = 0; i < N; i++) bits[i] = (uint16_t)i;
    ASSERT_EQ(MTAN_OK, convert(MTAN_DTYPE_F16, bits, N, doubles, reals));
    for (int i = 0; i < N; i++) {
        const int exponent = i >> 10 & 31, fraction = i & 1023;
        double expected = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
        if (exponent == 31) expected = fraction ? (double)NAN : HUGE_VAL;
        if (isnan(expected)) {
            ASSERT(isnan(doubles[i]) && isnan(reals[i])); /* of either sign: RISC-V keeps none through a conversion */
        } else {
            ASSERT_EQ_FMT(i >> 15 ? -expected : expected, doubles[i], "%g");
            ASSERT((double)reals[i] == doubles[i]);
            ASSERT_EQ(i >> 15, !!signbit(doubles[i]));
        }
    }
    PASS();
}

TEST other_reals_are_converted(void) {
    const uint16_t brain[] = {0x3f80, 0xc000, 0x7f80, 0x0001, 0x8000, 0x4049};
    const double brain_values[] = {1, -2, HUGE_VAL, 0x1p-133, -0.0, 3.140625};
    const float singles[] = {1.5f, -0x1p-149f, 3.4028234663852886e38f, 0.1f};
    const double wide[] = {0.1, 1e300, -1e-300, 1 + 0x1p-52, 16777217};
    double doubles[8];
    mtan_real reals[8];
    ASSERT_EQ(MTAN_OK, convert(MTAN_DTYPE_BF16, brain, 6, doubles, reals));
    ASSERT_MEM_EQ(brain_values, doubles, sizeof brain_values);
    for (int i = 0; i < 6; i++) ASSERT(reals[i] == (mtan_real)brain_values[i]);
    ASSERT_EQ(MTAN_OK, convert(MTAN_DTYPE_F32, singles, 4, doubles, reals));
    for (int i = 0; i < 4; i++) ASSERT(doubles[i] == (double)singles[i] && reals[i] == (mtan_real)singles[i]);
    ASSERT_EQ(MTAN_OK, convert(MTAN_DTYPE_F64, wide, 5, doubles, reals));
    ASSERT_MEM_EQ(wide, doubles, sizeof wide);
    for (int i = 0; i < 5; i++) ASSERT(reals[i] == (mtan_real)wide[i]); /* float: rounded, 1e300 to infinity */
    PASS();
}

/* ---- Hostile files -------------------------------------------------------------------------------------------- */

TEST header_lengths_are_bounded(void) {
    size_t bytes;
    uint8_t *blob = make_blob(T(GOOD), sizeof T(GOOD) - 1, 8, &bytes);
    const uint64_t right = sizeof T(GOOD) - 1;
    const uint64_t wrong[] = {0,
                              1,
                              right - 1,
                              right + 1,
                              bytes - 8,
                              bytes - 7,
                              bytes,
                              right + ((uint64_t)1 << 32),
                              UINT64_MAX,
                              UINT64_MAX - 7,
                              UINT64_MAX - 8 + right,
                              (uint64_t)1 << 63};
    mtan_file file;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        for (int k = 0; k < 8; k++) blob[k] = (uint8_t)(wrong[i] >> (8 * k));
        ASSERT_EQ(MTAN_ERR_FILE, mtan_file_open(&file, blob, bytes));
    }
    ASSERT(guard_free(blob));
    PASS();
}

TEST files_cut_at_any_byte_are_refused(void) {
    size_t bytes;
    uint8_t *blob = make_sample(&bytes);
    mtan_file file, before;
    ASSERT(blob);
    memset(&file, 0x55, sizeof file);
    before = file;
    for (size_t n = 0; n < bytes; n++) {
        uint8_t *part = guard_alloc(n);
        memcpy(part, blob, n);
        ASSERT_EQ(MTAN_ERR_FILE, mtan_file_open(&file, part, n));
        ASSERT_MEM_EQ(&before, &file, sizeof file); /* untouched */
        ASSERT(guard_free(part));
    }
    ASSERT(guard_free(blob));
    PASS();
}

/* Its first bytes tell a file's length in two steps: the header's, then the whole file's. */
TEST a_file_tells_its_length(void) {
    static const char *const bad[] = {T(DTYPE "," SHAPE ",\"data_offsets\":[0,18446744073709551615]"),
                                      T(DTYPE "," SHAPE), META("5"), META("{\"k\":5}")};
    size_t bytes, length;
    uint8_t *blob = make_sample(&bytes);
    mtan_file file;
    ASSERT(blob);
    ASSERT_EQ(MTAN_OK, mtan_file_open(&file, blob, bytes));
    const size_t header = (size_t)(file.data - blob);
    for (size_t n = 0; n <= bytes; n++) {
        uint8_t *part = guard_alloc(n);
        memcpy(part, blob, n);
        ASSERT_EQ(MTAN_OK, mtan_file_length(part, n, &length));
        ASSERT_EQ(n < 8 ? 8 : n < header ? header : bytes, length);
        ASSERT(guard_free(part));
    }
    blob[8] = '[', length = 7;
    ASSERT_EQ(MTAN_ERR_FILE, mtan_file_length(blob, header, &length));
    memset(blob, 0, 8);
    ASSERT_EQ(MTAN_ERR_FILE, mtan_file_length(blob, 8, &length));
    memset(blob, 255, 8);
    ASSERT_EQ(MTAN_ERR_FILE, mtan_file_length(blob, 8, &length));
    ASSERT(guard_free(blob));
    for (size_t i = 0; i < COUNT(bad); i++) {
        blob = make_blob(bad[i], strlen(bad[i]), 0, &bytes);
        ASSERT_EQm(bad[i], MTAN_ERR_FILE, mtan_file_length(blob, bytes, &length));
        ASSERT_EQ(7, length);
        ASSERT(guard_free(blob));
    }
    PASS();
}

/* Every bit flipped, and every byte replaced by those that mean something in JSON or UTF-8: the file is refused or can
 * be read, and a file opened before the change, whose header is then not what was checked, reads nothing outside. */
TEST any_byte_may_be_wrong(void) {
    MAY_BE_LEFT_OUT();
    static const char meaning[] = "\"\\{}[]:, 019-n\n\x80\xc3\xf0\xff"; /* the zero at its end, too */
    size_t bytes, opened = 0, refused = 0;
    uint8_t *blob = make_sample(&bytes);
    mtan_file file, good;
    ASSERT(blob);
    ASSERT_EQ(MTAN_OK, mtan_file_open(&good, blob, bytes));
    const size_t header_end = (size_t)(good.data - blob);
    for (size_t i = 0; i < bytes; i++) {
        const uint8_t right = blob[i];
        for (size_t k = 0; k < 8 + sizeof meaning; k++) {
            blob[i] = (uint8_t)(k < 8 ? right ^ 1 << k : meaning[k - 8]);
            if (mtan_file_open(&file, blob, bytes) == MTAN_OK) {
                opened++;
                ASSERT(file_walk(&file));
            } else {
                refused++;
                ASSERT(i < header_end); /* any data is good data */
                (void)file_walk(&good);
            }
        }
        blob[i] = right;
    }
    ASSERT(refused > 10 * header_end);                            /* most changes of the header are errors, ... */
    ASSERT(opened > (8 + sizeof meaning) * (bytes - header_end)); /* ... but not all: a name may be another */
    ASSERT(guard_free(blob));
    PASS();
}

/* A header of n tensors of one byte; tensor i has name i and range place[i]. */
static char *many_tensors(const size_t *names, const size_t *places, size_t n) {
    char *header = malloc(n * 96 + 3), *at = header;
    if (header == NULL) exit(2);
    *at++ = '{';
    for (size_t i = 0; i < n; i++)
        at += sprintf(at, "%s\"t%lu\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%lu,%lu]}", i ? "," : "",
                      (unsigned long)names[i], (unsigned long)places[i], (unsigned long)places[i] + 1);
    strcpy(at, "}");
    return header;
}

/* Names and ranges of a few hundred tensors in a scrambled order, then with one clash at every distance. */
TEST clashes_are_found_at_any_distance(void) {
    enum { N = 257 };
    static const size_t pairs[][2] = {{0, 1}, {0, 63}, {0, 64}, {0, 256}, {63, 64}, {64, 128}, {100, 200}, {255, 256}};
    size_t names[N], places[N];
    for (size_t i = 0; i < N; i++) names[i] = i, places[i] = i * 100 % N; /* 257 is prime */
    char *header = many_tensors(names, places, N);
    ASSERT_EQ(MTAN_OK, try_header(header, N));
    ASSERT_EQ(MTAN_ERR_FILE, try_header(header, N + 1));
    free(header);
    for (size_t k = 0; k < COUNT(pairs); k++) {
        const size_t a = pairs[k][0], b = pairs[k][1], place = places[b];
        names[b] = a;
        header = many_tensors(names, places, N);
        ASSERT_EQm("name", MTAN_ERR_FILE, try_header(header, N));
        free(header);
        names[b] = b;
        places[b] = places[a];
        header = many_tensors(names, places, N);
        ASSERT_EQm("range", MTAN_ERR_FILE, try_header(header, N)); /* sizes sum as before: an overlap and a hole */
        free(header);
        places[b] = place;
    }
    PASS();
}

/* Names of one hash, so that the comparison itself decides: FNV-1a over "costarring" and "liquid" is the same. */
TEST names_of_one_hash_are_told_apart(void) {
    ASSERT_EQ(MTAN_OK, try_header("{\"costarring\":{\"dtype\":\"U8\"," U8(1, 0, 1) "},"
                                                                                   "\"liquid\":{\"dtype\":\"U8\"," U8(
                                                                                       1, 1, 2) "}}",
                                  2));
    PASS();
}

/* A word of six letters for a number, and what it makes of a hash: FNV-1a, as the library hashes names. */
static uint32_t hash_word(uint32_t hash, uint32_t number, char word[7]) {
    number *= 2654435761u; /* odd: other numbers are other words, and their letters change all at once */
    for (int i = 0; i < 6; i++, number /= 41) {
        word[i] = (char)('A' + number % 41);
        if (word[i] == '\\') word[i] = '~';
        hash = (hash ^ (uint8_t)word[i]) * 16777619u;
    }
    word[6] = 0;
    return hash;
}

/* Two different words that take the hash to the same value; that value. */
static uint32_t find_twins(uint32_t hash, char twins[2][7]) {
    enum { SLOTS = 1 << 20 };
    static struct { uint32_t hash, number; /* from 1 on; 0: free */ } seen[SLOTS];
    memset(seen, 0, sizeof seen);
    for (uint32_t i = 1; i < SLOTS / 2; i++) {
        const uint32_t next = hash_word(hash, i, twins[0]);
        size_t slot = next % SLOTS;
        while (seen[slot].number && seen[slot].hash != next) slot = (slot + 1) % SLOTS;
        if (seen[slot].number) return hash_word(hash, seen[slot].number, twins[1]);
        seen[slot].hash = next, seen[slot].number = i;
    }
    exit(2);
}

/* 2^n names of one hash, as a hostile file has them: n words one after the other, each one of twins. */
static mtan_status try_twins(int n) {
    static char words[8][2][7], header[1 << 16];
    char *at = header + sprintf(header, "{\"__metadata__\":{");
    uint32_t hash = 2166136261u;
    for (int i = 0; i < n; i++) hash = find_twins(hash, words[i]);
    for (int name = 0; name < 1 << n; name++) {
        at += sprintf(at, "%s\"", name ? "," : "");
        for (int i = 0; i < n; i++) at += sprintf(at, "%s", words[i][name >> i & 1]);
        at += sprintf(at, "\":\"\"");
    }
    strcpy(at, "}}");
    return try_header(header, 0);
}

/* Four names of one hash may be an accident and are told apart; so many that they cost time are not. */
TEST many_names_of_one_hash_are_refused(void) {
    ASSERT_EQ(MTAN_OK, try_twins(2));
    ASSERT_EQ(MTAN_ERR_FILE, try_twins(6));
    PASS();
}

/* A header that is other than what was checked, whose last string has no end but a backslash: nothing is read behind it. */
TEST a_backslash_at_the_end_of_the_header(void) {
    static const char header[] = "{\"__metadata__\":{\"key\":\"value\"},\"a\":{" GOOD "}}";
    size_t bytes;
    uint8_t *blob = make_blob(header, sizeof header - 1, 8, &bytes);
    mtan_file file;
    mtan_tensor_view view;
    mtan_text key, value;
    ASSERT_EQ(MTAN_OK, mtan_file_open(&file, blob, bytes));
    char *const name = strstr((char *)blob + 8, "a\":{");
    memset(name, 'x', (size_t)((char *)blob + 8 + sizeof header - 1 - name));
    blob[8 + sizeof header - 2] = '\\';
    ASSERT_EQ(MTAN_ERR_FILE, mtan_file_tensor_at(&file, 0, &view));
    ASSERT_EQ(MTAN_ERR_FILE, mtan_file_tensor(&file, "a", &view));
    ASSERT_EQ(MTAN_OK, mtan_file_metadata_at(&file, 0, &key, &value)); /* which stands before it */
    ASSERT(value.length == 5 && memcmp(value.raw, "value", 5) == 0);
    ASSERT(guard_free(blob));
    PASS();
}

/* A text that grows while it is decoded, here since its first letter is written over the escape behind it: no more is written
 * than was counted. */
TEST a_text_that_grows(void) {
    char text[] = "x\\u0041";
    const mtan_text coded = {text, 7};
    size_t length = 5;
    ASSERT_EQ(MTAN_OK, mtan_text_decode(&coded, NULL, 0, &length));
    ASSERT_EQ(2, length);
    length = 5;
    ASSERT_EQ(MTAN_ERR_FILE, mtan_text_decode(&coded, text + 1, 3, &length));
    ASSERT_STR_EQ("xxx0041", text);
    ASSERT_EQ(5, length);
    PASS();
}

/* As many tensors as a file may have, and one more. */
TEST the_number_of_tensors_is_limited(void) {
    const size_t most = MTAN_FILE_MAX_ENTRIES;
    char *header = malloc((most + 1) * 64 + 64);
    mtan_file file;
    ASSERT(header);
    for (size_t n = most; n <= most + 1; n++) {
        char *at = header + sprintf(header, "{");
        for (size_t i = 0; i < n; i++)
            at += sprintf(at, "%s\"%lu\":{\"dtype\":\"U8\"," U8(0, 0, 0) "}", i ? "," : "", (unsigned long)i);
        strcpy(at, "}");
        size_t bytes;
        uint8_t *blob = make_blob(header, strlen(header), 0, &bytes);
        ASSERT_EQ(n == most ? MTAN_OK : MTAN_ERR_FILE, mtan_file_open(&file, blob, bytes));
        ASSERT(guard_free(blob));
    }
    ASSERT_EQ(most, file.tensors);
    free(header);
    PASS();
}

TEST the_number_of_entries_is_limited(void) {
    const size_t most = MTAN_FILE_MAX_ENTRIES;
    char *header = malloc((most + 1) * 24 + 64);
    mtan_file file;
    ASSERT(header);
    for (size_t n = most; n <= most + 1; n++) {
        char *at = header + sprintf(header, "{\"__metadata__\":{");
        for (size_t i = 0; i < n; i++) at += sprintf(at, "%s\"%lu\":\"\"", i ? "," : "", (unsigned long)i);
        strcpy(at, "}}");
        size_t bytes;
        uint8_t *blob = make_blob(header, strlen(header), 0, &bytes);
        ASSERT_EQ(n == most ? MTAN_OK : MTAN_ERR_FILE, mtan_file_open(&file, blob, bytes));
        ASSERT(guard_free(blob));
    }
    ASSERT_EQ(most, file.pairs);
    free(header);
    PASS();
}

/* ---- Time ----------------------------------------------------------------------------------------------------- */

/* A header of about a kilobyte for each of n entries: their texts are long, and alike up to the number at their end. */
typedef enum { IN_ORDER, SCRAMBLED, ESCAPED, KEYS, VALUES, BESIDE_METADATA, KINDS } long_kind;
static const char *const long_names[KINDS] = {"in_order", "scrambled", "escaped", "keys", "values", "beside_metadata"};

static char *put_long(char *at, const char *unit, size_t i) {
    for (size_t n = 0; n < 960; n += strlen(unit)) at += sprintf(at, "%s", unit);
    return at + sprintf(at, "%lu", (unsigned long)i);
}

static char *put_tensor(char *at, long_kind kind, size_t i, size_t n) {
    const size_t place = kind == SCRAMBLED ? n - 1 - i : i;
    *at++ = '"';
    if (kind == BESIDE_METADATA) at += sprintf(at, "%lu", (unsigned long)i);
    else at = put_long(at, kind == ESCAPED ? "\\n" : "x", i);
    return at + sprintf(at, "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%lu,%lu]}", (unsigned long)place,
                        (unsigned long)place + 1);
}

static char *put_pair(char *at, long_kind kind, size_t i) {
    *at++ = '"';
    at = kind == KEYS ? put_long(at, "x", i) : at + sprintf(at, "%lu", (unsigned long)i);
    at += sprintf(at, "\":\"");
    if (kind != KEYS) at = put_long(at, "\\t", i);
    return at + sprintf(at, "\"");
}

static char *long_header(long_kind kind, size_t n) {
    char *header = malloc(n * 1100 + 64), *at = header;
    if (header == NULL) exit(2);
    *at++ = '{';
    if (kind >= KEYS) {
        at += sprintf(at, "\"__metadata__\":{");
        for (size_t i = 0; i < n; i++) at = put_pair(at + sprintf(at, "%s", i ? "," : ""), kind, i);
        at += sprintf(at, "}%s", kind == BESIDE_METADATA ? "," : "");
    }
    for (size_t i = 0; i < n && kind != KEYS && kind != VALUES; i++)
        at = put_tensor(at + sprintf(at, "%s", i ? "," : ""), kind, i, n);
    strcpy(at, "}");
    return header;
}

/* Nanoseconds of CPU time for a byte of the header, the least of three runs over some four million bytes. */
static double open_time(long_kind kind, size_t n) {
    char *header = long_header(kind, n);
    size_t bytes;
    uint8_t *blob = make_blob(header, strlen(header), kind == KEYS || kind == VALUES ? 0 : n, &bytes);
    mtan_file file;
    double least = HUGE_VAL;
    for (int run = 0; run < 3; run++) {
        const clock_t start = clock();
        for (size_t i = 0; i < 3968 / n; i++)
            if (mtan_file_open(&file, blob, bytes) != MTAN_OK) exit(2);
        const double spent = (double)(clock() - start) / CLOCKS_PER_SEC * 1e9 / ((double)(3968 / n) * (double)bytes);
        least = spent < least ? spent : least;
    }
    free(header);
    return guard_free(blob) ? least : HUGE_VAL;
}

/* 62 times as many entries may take a little longer each, for they are compared with each other, but not 62 times. */
TEST large_headers_take_the_time_of_their_bytes(long_kind kind) {
    MAY_BE_LEFT_OUT();
    const double small = open_time(kind, 64), large = open_time(kind, 3968);
    if (greatest_get_verbosity()) printf("%.2f ns a byte with 64 entries, %.2f with 3968\n", small, large);
    ASSERT(large < 10 * small);
    PASS();
}

SUITE(safetensors_suite) {
    RUN_TEST(what_is_written_is_read_back);
    RUN_TEST(bytes_are_as_specified);
    RUN_TEST(nothing_at_all_can_be_written);
    RUN_TEST(callback_gets_the_same_bytes_and_may_fail_at_any_call);
    RUN_TEST(long_tensors_are_written_whole);
    RUN_TEST(buffers_one_byte_too_small_are_refused);
    RUN_TEST(bad_contents_are_not_written);
    RUN_TEST(bad_metadata_is_not_written);
    RUN_TEST(headers_beyond_the_limit_are_refused);
    RUN_TEST(null_pointers_are_refused);
    RUN_TEST(headers_are_judged_one_by_one);
    RUN_TEST(headers_cut_short_are_refused);
    RUN_TEST(every_dtype_has_its_size);
    RUN_TEST(escapes_are_decoded);
    RUN_TEST(names_are_compared_decoded);
    RUN_TEST(alignment_is_told_and_copies_do_not_need_it);
    RUN_TEST(reads_ask_for_the_right_count_and_type);
    RUN_TEST(every_half_is_converted);
    RUN_TEST(other_reals_are_converted);
    RUN_TEST(header_lengths_are_bounded);
    RUN_TEST(files_cut_at_any_byte_are_refused);
    RUN_TEST(a_file_tells_its_length);
    RUN_TEST(any_byte_may_be_wrong);
    RUN_TEST(clashes_are_found_at_any_distance);
    RUN_TEST(names_of_one_hash_are_told_apart);
    RUN_TEST(many_names_of_one_hash_are_refused);
    RUN_TEST(a_backslash_at_the_end_of_the_header);
    RUN_TEST(a_text_that_grows);
    RUN_TEST(the_number_of_tensors_is_limited);
    RUN_TEST(the_number_of_entries_is_limited);
    for (int kind = 0; kind < KINDS; kind++) {
        greatest_set_test_suffix(long_names[kind]);
        RUN_TEST1(large_headers_take_the_time_of_their_bytes, (long_kind)kind);
    }
}
