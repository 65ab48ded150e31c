/* See shown.h. */
#include "shown.h"

#include <string.h>

/* The number of bytes after a first byte; -1: no character starts with it. */
static int following(unsigned char first) {
    if (first < 0x80) return 0;
    if (first >= 0xC2 && first <= 0xDF) return 1;
    if (first >= 0xE0 && first <= 0xEF) return 2;
    return first >= 0xF0 && first <= 0xF4 ? 3 : -1;
}

/* The next character, or -1. An overlong form is invalid too, because it would hide the character. */
static int32_t next_code(const char **text) {
    static const int32_t least[4] = {0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)*text;
    const int more = following(s[0]);
    int32_t c = s[0];
    if (more > 0) c &= 0x3F >> more;
    for (int i = 1; i <= more; i++) {
        if ((s[i] & 0xC0) != 0x80) return *text += i, -1;
        c = c << 6 | (s[i] & 0x3F);
    }
    *text += more < 0 ? 1 : more + 1;
    return more < 0 || c < least[more] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF) ? -1 : c;
}

/* Is it neither a control character, nor a mark of direction, nor a noncharacter? */
static int is_shown(int32_t c) {
    if (c < 0x20 || (c >= 0x7F && c < 0xA0)) return 0;
    if (c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069)) return 0;
    return (c & 0xFFFE) != 0xFFFE;
}

uint32_t shown_next(const char **text) {
    const int32_t c = next_code(text);
    return is_shown(c) ? (uint32_t)c : SHOWN_NOT;
}

void shown_clean(char *text) {
    char *to = text;
    for (const char *at = text; *at;) {
        const char *from = at;
        if (shown_next(&at) == SHOWN_NOT) *to++ = '?';
        else
            while (from < at) *to++ = *from++;
    }
    *to = 0;
}

int shown_put(FILE *out, const char *text, size_t width, size_t most) {
    size_t n = 0;
    for (; *text && n < most; n++) {
        const char *from = text;
        if (shown_next(&text) == SHOWN_NOT) fputc('?', out);
        else fwrite(from, 1, (size_t)(text - from), out);
    }
    for (; n < width; n++) fputc(' ', out);
    return *text != 0;
}

void shown_escape(char *out, size_t size, const char *text) {
    size_t used = 0;
    *out = 0;
    while (*text && used + 17 < size) { /* room for four bytes of one character, each as \xe9, and the zero */
        const char *from = text;
        const int plain = shown_next(&text) != SHOWN_NOT;
        for (; from < text; from++)
            used += (size_t)snprintf(out + used, size - used, plain ? "%c" : "\\x%02x", *from & 0xFF);
    }
}

int text_is_utf8(const char *text) {
    while (*text)
        if (next_code(&text) < 0) return 0;
    return 1;
}
