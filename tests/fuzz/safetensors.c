/* Fuzz target: any bytes are either refused or a file that can be read to its end.
 *
 * The input is taken twice. Once as it is. Then as the description of a file, so that the header's length and its long
 * words are no walls in the way: up to the first zero byte it is the header, where control characters stand for the
 * words of the format; what follows is the data.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "file_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whole tensors first, which fit together, then their parts. */
static const char *const words[] = {
    "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}",
    "\"b\":{\"dtype\":\"F16\",\"shape\":[2,1],\"data_offsets\":[4,8]}",
    "\"c\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[8,16]}",
    "\"d\":{\"dtype\":\"BF16\",\"shape\":[0],\"data_offsets\":[0,0]}",
    "{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}",
    "\"dtype\":\"I32\"",
    "\"shape\":[",
    "\"data_offsets\":[",
    "\"__metadata__\":",
    "{\"k\":\"v\"}",
    "null",
    "\\u00",
    "\\ud83d\\ude42",
    "18446744073709551615",
};
enum { WORDS = sizeof words / sizeof words[0], LONGEST = 64 };

static void try_blob(const uint8_t *blob, size_t bytes) {
    mtan_file file;
    size_t length = 0;
    const int told = mtan_file_length(blob, bytes, &length) == MTAN_OK;
    if (mtan_file_open(&file, blob, bytes) == MTAN_OK && (!told || length != bytes || !file_walk(&file))) abort();
}

/* A header's byte, or the word it stands for. Returns the new end. */
static uint8_t *spell(uint8_t *at, uint8_t c) {
    if (c - 1 < WORDS) {
        const size_t n = strlen(words[c - 1]);
        memcpy(at, words[c - 1], n);
        return at + n;
    }
    *at = c;
    return at + 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    try_blob(data, size);
    uint8_t *spelled = malloc(8 + size * LONGEST), *at = spelled + 8;
    if (spelled == NULL) return 0;
    size_t i = 0;
    while (i < size && data[i] != 0) at = spell(at, data[i++]);
    const uint64_t header = (uint64_t)(at - spelled - 8);
    for (int k = 0; k < 8; k++) spelled[k] = (uint8_t)(header >> (8 * k));
    for (i++; i < size; i++) *at++ = data[i];
    /* Again into a block of exactly its size, for the address sanitizer. */
    const size_t bytes = (size_t)(at - spelled);
    uint8_t *exact = malloc(bytes);
    if (exact != NULL) {
        memcpy(exact, spelled, bytes);
        try_blob(exact, bytes);
    }
    free(exact);
    free(spelled);
    return 0;
}
