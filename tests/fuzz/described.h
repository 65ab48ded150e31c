/* A safetensors file made of a description, for the targets that read model files: neither the header's length, nor long words,
 * nor the places of the tensors are walls in the way. Nothing is allocated for an input.
 *
 * Up to the first zero byte a description is the header, in which bytes below 32 stand for words. DESCRIBED_END ends a tensor: it
 * writes the tensor's place, behind the last one, as long as dtype and shape say. The bytes behind the zero are the data, again
 * and again until it is full. */
#ifndef MTAN_FUZZ_DESCRIBED_H
#define MTAN_FUZZ_DESCRIBED_H

#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#endif
#include "fuzz.h"

#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#define MTAN_FUZZ_POISON
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define MTAN_FUZZ_POISON
#endif
#endif
#ifdef MTAN_FUZZ_POISON
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, n) ((void)(at), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(at, n) ((void)(at), (void)(n))
#endif

enum { DESCRIBED_END = 6, DESCRIBED_MOST_DATA = 1 << 14, DESCRIBED_GUARD = 128 };

static const char *const described_words[FUZZ_WORDS] = {[1] = "{\"__metadata__\":{\"format\":\"pt",
                                                        [2] = "\",\"mtan.",
                                                        [3] = "\":\"",
                                                        [4] = "\"},\"",
                                                        [5] = "\":{\"dtype\":\"F32\",\"shape\":[",
                                                        [7] = ",\"",
                                                        [8] = "\":{\"dtype\":\"F16\",\"shape\":[",
                                                        [11] = "\":{\"dtype\":\"BF16\",\"shape\":[",
                                                        [12] = "\":{\"dtype\":\"F64\",\"shape\":[",
                                                        [14] = "\":{\"dtype\":\"I8\",\"shape\":[",
                                                        [15] = "\\u00",
                                                        [16] = ".weight",
                                                        [17] = ".bias",
                                                        [18] = "rec.",
                                                        [19] = "dec.",
                                                        [20] = "att.linears.",
                                                        [21] = "classifier.",
                                                        [22] = "gru_rnn",
                                                        [23] = "_ih_l0",
                                                        [24] = "_hh_l0",
                                                        [25] = "_reverse",
                                                        [26] = "linears.",
                                                        [27] = "hiddens_to_z0.",
                                                        [28] = "z0_to_obs.",
                                                        [29] = "periodic",
                                                        [30] = "linear"};

typedef struct described {
    uint8_t *bytes;
    size_t length;
} described;

/* Elements of a shape, the digits behind the last bracket of a header that ends here; no more than DESCRIBED_MOST_DATA. */
static size_t described_count(const uint8_t *header, size_t length) {
    size_t start = length, count = 1, size = 0;
    while (start > 0 && header[start - 1] != '[') start--;
    if (start == length) return 1;
    for (size_t i = start; i <= length; i++) {
        if (i < length && header[i] >= '0' && header[i] <= '9') size = 10 * size + (size_t)(header[i] - '0');
        else count *= size, size = 0;
        if (size > DESCRIBED_MOST_DATA || count > DESCRIBED_MOST_DATA) return DESCRIBED_MOST_DATA;
    }
    return count;
}

/* A number in decimal: printf would take as long as the reader. */
static size_t described_number(uint8_t *out, size_t at, size_t x) {
    uint8_t digits[20];
    size_t first = sizeof digits;
    do digits[--first] = (uint8_t)('0' + x % 10);
    while ((x /= 10) > 0);
    return fuzz_put(out, at, digits + first, sizeof digits - first);
}

static size_t described_place(uint8_t *out, size_t at, size_t *places, size_t width) {
    const size_t start = *places;
    *places += width * described_count(out, at);
    at = fuzz_put(out, at, "],\"data_offsets\":[", 18);
    at = described_number(out, at, start);
    at = fuzz_put(out, at, ",", 1);
    at = described_number(out, at, *places);
    return fuzz_put(out, at, "]}", 2);
}

/* The header; *places is where the last tensor ends. */
static size_t described_header(uint8_t *out, const uint8_t **data, size_t *size, size_t *places) {
    static const uint8_t widths[FUZZ_WORDS] = {[5] = 4, [8] = 2, [11] = 2, [12] = 8, [14] = 1};
    size_t length = 0, width = 4;
    for (; *size > 0 && **data != 0; (*data)++, (*size)--) {
        const uint8_t byte = **data;
        const char *word = byte < FUZZ_WORDS ? described_words[byte] : NULL;
        if (byte == DESCRIBED_END) {
            length = described_place(out, length, places, width);
            continue;
        }
        if (byte < FUZZ_WORDS && widths[byte]) width = widths[byte];
        length = word ? fuzz_put(out, length, word, strlen(word)) : fuzz_put(out, length, &byte, 1);
    }
    if (*size > 0) (*data)++, (*size)--;
    return length;
}

/* ---- memory that ends where a page begins that nobody may touch, so that faults are seen without a sanitizer too ---- */

/* The end of such memory of at least so many bytes. It is there for good: ask once. */
static inline uint8_t *described_fence(size_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (bytes + page - 1) / page * page;
    uint8_t *at = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || mprotect(at + room, page, PROT_NONE) != 0) fuzz_give_up("mmap");
    return at + room;
}

/* A copy of the file at `shift` bytes behind a multiple of 8: it ends at the fence or up to seven bytes before, which are out of
 * bounds too where there is a sanitizer. It stays until the next call. */
static inline described described_at_fence(const uint8_t *bytes, size_t length, size_t shift) {
    static uint8_t *fence;
    const size_t gap = (8 - (length + shift) % 8) % 8;
    described d;
    if (!fence) fence = described_fence(FUZZ_ROOM + DESCRIBED_MOST_DATA + 256);
    ASAN_UNPOISON_MEMORY_REGION(fence - 8, 8);
    d.bytes = fence - gap - length, d.length = length;
    if (length) memcpy(d.bytes, bytes, length);
    ASAN_POISON_MEMORY_REGION(fence - gap, gap);
    return d;
}

/* The file of a description. */
static inline described described_file(const uint8_t *data, size_t size, size_t shift) {
    static uint8_t out[FUZZ_ROOM + DESCRIBED_MOST_DATA + 256];
    uint8_t *header = out + 8;
    size_t places = 0, length = described_header(header, &data, &size, &places);
    while (length % 8) header[length++] = ' ';
    for (int k = 0; k < 8; k++) out[k] = (uint8_t)((uint64_t)length >> (8 * k));
    if (places > DESCRIBED_MOST_DATA) places = DESCRIBED_MOST_DATA;
    for (size_t i = 0; i < places; i++) header[length + i] = size ? data[i % size] : 0;
    return described_at_fence(out, 8 + length + places, shift);
}

#endif
