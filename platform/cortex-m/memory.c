/* The four functions that mtan.c needs of a libc, for images linked without one. Word by word where both sides allow
 * it, else byte by byte. Compile with -fno-tree-loop-distribute-patterns, or the compiler makes calls to themselves of
 * these loops. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Any object may be looked at through it. */
typedef uint32_t __attribute__((may_alias)) word;

static int aligned(const void *a, const void *b) {
    return (((uintptr_t)a | (uintptr_t)b) & (sizeof(word) - 1)) == 0;
}

void *memcpy(void *restrict to, const void *restrict from, size_t n) {
    unsigned char *d = to;
    const unsigned char *s = from;
    if (aligned(d, s))
        for (; n >= sizeof(word); n -= sizeof(word), d += sizeof(word), s += sizeof(word))
            *(word *)d = *(const word *)s;
    while (n--) *d++ = *s++;
    return to;
}

void *memmove(void *to, const void *from, size_t n) {
    unsigned char *d = to;
    const unsigned char *s = from;
    if ((uintptr_t)d - (uintptr_t)s >= n) return memcpy(to, from, n); /* forward is safe: below, or past the end */
    while (n--) d[n] = s[n];
    return to;
}

void *memset(void *to, int byte, size_t n) {
    unsigned char *d = to;
    const word filled = 0x01010101u * (unsigned char)byte;
    if (aligned(d, d))
        for (; n >= sizeof(word); n -= sizeof(word), d += sizeof(word)) *(word *)d = filled;
    while (n--) *d++ = (unsigned char)byte;
    return to;
}

int memcmp(const void *a, const void *b, size_t n) {
    const unsigned char *x = a, *y = b;
    for (; n--; x++, y++)
        if (*x != *y) return *x - *y;
    return 0;
}
