/* The strings of a file's header: every byte that may start a character, every way to end a string too early, types
 * that do not exist, and control characters as they are written. What is allowed follows RFC 8259 (JSON) and RFC
 * 3629 (UTF-8). */
#include <greatest.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

/* Opens a file of this header and of zeros as data. */
static mtan_status open_header(const char *header, size_t n, size_t data_bytes) {
    uint8_t *blob = guard_alloc(8 + n + data_bytes);
    mtan_file file;
    mtan_status status;
    memset(blob, 0, 8 + n + data_bytes);
    for (int i = 0; i < 4; i++) blob[i] = (uint8_t)(n >> (8 * i));
    memcpy(blob + 8, header, n);
    status = mtan_file_open(&file, blob, 8 + n + data_bytes);
    return guard_free(blob) ? status : MTAN_ERR_MEMORY;
}

/* A tensor of two bytes with this name, from its quote to its quote. */
static mtan_status open_name(const char *quoted) {
    char header[256];
    const int n =
        snprintf(header, sizeof header, "{%s:{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", quoted);
    return open_header(header, (size_t)n, 2);
}

/* How many bytes follow this one in UTF-8, or -1 where no character starts with it. */
static int followers(int lead) {
    if (lead < 0x80) return 0;
    return lead < 0xc2 ? -1 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : lead < 0xf5 ? 3 : -1;
}

/* Each first byte with 0 to 4 bytes behind it: 0x90 is right after each lead, but f4, whose second byte ends at 8f. */
TEST characters_start_and_end_where_they_must(void) {
    for (int lead = 1; lead < 256; lead++)
        for (int more = 0; more < 5; more++) {
            const int second = lead == 0xe0 ? 0xa0 : lead == 0xf4 ? 0x8f : 0x90;
            const int good = lead >= 0x20 && lead != '"' && lead != '\\' && followers(lead) == more;
            char name[16] = {'"', (char)lead}, what[32];
            for (int i = 0; i < more; i++) name[2 + i] = (char)(i == 0 ? second : 0x90);
            name[2 + more] = '"';
            sprintf(what, "byte %02x and %d more", (unsigned)lead, more);
            ASSERT_EQm(what, good ? MTAN_OK : MTAN_ERR_FILE, open_name(name));
        }
    PASS();
}

/* The last bits of a lead count: the neighbours of each limit. */
TEST the_ends_of_unicode_are_sharp(void) {
    static const struct {
        const char *name;
        int good;
    } cases[] = {{"\"\x7f\"", 1},
                 {"\"\xc2\x80\"", 1},
                 {"\"\xc1\xbf\"", 0},
                 {"\"\xdf\xbf\"", 1},
                 {"\"\xe0\xa0\x80\"", 1},
                 {"\"\xe0\x9f\xbf\"", 0},
                 {"\"\xed\x9f\xbf\"", 1},
                 {"\"\xed\xa0\x80\"", 0},
                 {"\"\xed\xbf\xbf\"", 0},
                 {"\"\xee\x80\x80\"", 1},
                 {"\"\xef\xbf\xbf\"", 1},
                 {"\"\xf0\x90\x80\x80\"", 1},
                 {"\"\xf4\x8f\xbf\xbf\"", 1},
                 {"\"\xf4\x90\x80\x80\"", 0},
                 {"\"\xf0\x8f\xbf\xbf\"", 0},
                 {"\"\xc2\x7f\"", 0},
                 {"\"\xc2\xc0\"", 0},
                 {"\"\xe1\x80\x7f\"", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ASSERT_EQm(cases[i].name, cases[i].good ? MTAN_OK : MTAN_ERR_FILE, open_name(cases[i].name));
    PASS();
}

TEST surrogates_come_in_pairs(void) {
    static const struct {
        const char *name;
        int good;
    } cases[] = {{"\"\\ud800\\udc00\"", 1}, {"\"\\udbff\\udfff\"", 1}, {"\"\\ud7ff\"", 1},
                 {"\"\\ue000\"", 1},        {"\"\\udc00\\udc00\"", 0}, {"\"\\udfff\\udfff\"", 0},
                 {"\"\\udc00\"", 0},        {"\"\\udc00\\ud800\"", 0}, {"\"\\ud800\"", 0},
                 {"\"\\ud800\\\"", 0},      {"\"\\ud800\\n\"", 0},     {"\"\\ud800xudc00\"", 0},
                 {"\"\\ud800\\udbff\"", 0}, {"\"\\ud800\\ue000\"", 0}, {"\"\\udbff\\ud800\"", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ASSERT_EQm(cases[i].name, cases[i].good ? MTAN_OK : MTAN_ERR_FILE, open_name(cases[i].name));
    ASSERT_EQ(MTAN_ERR_FILE, open_header("{\"\\ud800", 8, 0)); /* the file ends where the second one is due */
    ASSERT_EQ(MTAN_ERR_FILE, open_header("{\"\\ud800\\", 9, 0));
    PASS();
}

/* Where a quote is due stands something that no string may have in it: the string does not end there. */
TEST only_a_quote_ends_a_string(void) {
    static const char *const names[] = {"\"a\x01", "\"a\x1f", "\"a\xff", "\"a\x80", "\"a", "\"a'", "\"a\\", "\"\n"};
    ASSERT_EQ(MTAN_OK, open_name("\"a\""));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        ASSERT_EQm(names[i], MTAN_ERR_FILE, open_name(names[i]));
    ASSERT_EQ(MTAN_OK, open_header("{\"__metadata__\":{\"k\":\"v\"}}", 26, 0)); /* here no quote follows */
    ASSERT_EQ(MTAN_ERR_FILE, open_header("{\"__metadata__\":{\"k\":\"v\x01}}", 26, 0));
    ASSERT_EQ(MTAN_ERR_FILE, open_header("{\"__metadata__\":{\"k\":\"v\\}}", 26, 0));
    PASS();
}

/* A member, its data as long as the type would make it if it were another. */
TEST types_and_nulls_are_spelled_out(void) {
    static const char *const types[] = {"X8", "U", "U88", "u8", "", "F32 ", "BOO", "I3"};
    static const char *const nulls[] = {"nall", "nuxl", "nulx", "nul", "nu", "n", "Null", "nulll", "xull"};
    char header[128];
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        for (int width = 1; width <= 8; width *= 2) {
            const int n = snprintf(header, sizeof header,
                                   "{\"a\":{\"dtype\":\"%s\",\"shape\":[1],\"data_offsets\":[0,%d]}}", types[i], width);
            ASSERT_EQm(types[i], MTAN_ERR_FILE, open_header(header, (size_t)n, (size_t)width));
        }
    ASSERT_EQ(MTAN_OK, open_header("{\"__metadata__\":null}", 21, 0));
    for (size_t i = 0; i < sizeof nulls / sizeof nulls[0]; i++) {
        const int n = snprintf(header, sizeof header, "{\"__metadata__\":%s}", nulls[i]);
        ASSERT_EQm(nulls[i], MTAN_ERR_FILE, open_header(header, (size_t)n, 0));
        ASSERT_EQm(nulls[i], MTAN_ERR_FILE, open_header(header, (size_t)n - 1, 0));
    }
    PASS();
}

/* All of them are escaped, as JSON has no other way, and nothing else is, but the quote and the backslash. */
TEST control_characters_are_written_as_escapes(void) {
    for (int c = 1; c < 128; c++) {
        const char value[] = {'<', (char)c, '>', 0};
        const mtan_file_pair pair = {"k", value};
        char expected[64], text[8];
        uint8_t got[256];
        mtan_file file;
        size_t used, length;
        if (c < 0x20) sprintf(expected, "{\"__metadata__\":{\"k\":\"<\\u%04x>\"}}", (unsigned)c);
        else sprintf(expected, "{\"__metadata__\":{\"k\":\"<%s%c>\"}}", c == '"' || c == '\\' ? "\\" : "", c);
        ASSERT_EQ(MTAN_OK, mtan_file_write_memory(NULL, 0, &pair, 1, got, sizeof got, &used));
        ASSERT(check_same("header", got + 8, expected, strlen(expected)));
        ASSERT_EQ(MTAN_OK, mtan_file_open(&file, got, used));
        ASSERT_EQ(MTAN_OK, mtan_file_metadata(&file, "k", text, sizeof text, &length));
        ASSERT_STR_EQ(value, text);
    }
    PASS();
}

SUITE(strings_suite) {
    RUN_TEST(characters_start_and_end_where_they_must);
    RUN_TEST(the_ends_of_unicode_are_sharp);
    RUN_TEST(surrogates_come_in_pairs);
    RUN_TEST(only_a_quote_ends_a_string);
    RUN_TEST(types_and_nulls_are_spelled_out);
    RUN_TEST(control_characters_are_written_as_escapes);
}
