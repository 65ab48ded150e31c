/* Escaping for HTML and SVG: see html.h. Knows no tags. */
#include "html.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static const uint32_t UNREADABLE = 0xFFFD;

/* How many bytes follow a first byte; -1: no character starts so. */
static int following(unsigned char first) {
    if (first < 0x80) return 0;
    if (first >= 0xC2 && first <= 0xDF) return 1;
    if (first >= 0xE0 && first <= 0xEF) return 2;
    return first >= 0xF0 && first <= 0xF4 ? 3 : -1;
}

/* Not a control character, a mark of direction, half of a surrogate pair or a code that means nothing. */
static int shown(uint32_t c) {
    if (c < 0x20 || (c >= 0x7F && c < 0xA0)) return 0;
    if (c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069)) return 0;
    return c <= 0x10FFFF && !(c >= 0xD800 && c <= 0xDFFF) && (c & 0xFFFE) != 0xFFFE;
}

/* The next character; moves on by its bytes. An overlong form is unreadable as well, for it would hide what it is. */
static uint32_t next(const char **text) {
    static const uint32_t least[4] = {0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)*text;
    const int more = following(s[0]);
    uint32_t c = s[0];
    if (more > 0) c &= 0x3Fu >> more;
    for (int i = 1; i <= more; i++) {
        if ((s[i] & 0xC0) != 0x80) return *text += i, UNREADABLE;
        c = c << 6 | (s[i] & 0x3Fu);
    }
    *text += more < 0 ? 1 : more + 1;
    return more < 0 || c < least[more] || !shown(c) ? UNREADABLE : c;
}

static void put(FILE *out, uint32_t c) {
    if (c == '&') fputs("&amp;", out);
    else if (c == '<') fputs("&lt;", out);
    else if (c == '>') fputs("&gt;", out);
    else if (c == '"') fputs("&quot;", out);
    else if (c == '\'') fputs("&#39;", out);
    else if (c < 0x80) fputc((int)c, out);
    else if (c < 0x800) fprintf(out, "%c%c", (int)(0xC0 | c >> 6), (int)(0x80 | (c & 0x3F)));
    else if (c < 0x10000)
        fprintf(out, "%c%c%c", (int)(0xE0 | c >> 12), (int)(0x80 | (c >> 6 & 0x3F)), (int)(0x80 | (c & 0x3F)));
    else
        fprintf(out, "%c%c%c%c", (int)(0xF0 | c >> 18), (int)(0x80 | (c >> 12 & 0x3F)), (int)(0x80 | (c >> 6 & 0x3F)),
                (int)(0x80 | (c & 0x3F)));
}

void html_text(FILE *out, const char *text) {
    while (text && *text) put(out, next(&text));
}

size_t html_length(const char *text) {
    size_t n = 0;
    for (; text && *text; n++) next(&text);
    return n;
}

void html_short(FILE *out, const char *text, size_t most) {
    const int cut = html_length(text) > most;
    for (size_t i = 0; text && *text && i + (size_t)cut < most; i++) put(out, next(&text));
    if (cut) put(out, 0x2026);
}

static const char *signed_text(char *text, double value, const char *plain) {
    static const char minus[] = "\xE2\x88\x92", infinity[] = "\xE2\x88\x9E", none[] = "\xE2\x80\x93";
    if (isnan(value)) plain = none;
    if (isinf(value)) plain = infinity;
    snprintf(text, 32, "%s%s", value < 0 ? minus : "", plain);
    return text;
}

const char *html_number(char *text, double value, int digits) {
    char plain[24];
    snprintf(plain, sizeof plain, "%.*g", digits < 12 ? digits : 12, fabs(value));
    return signed_text(text, value, plain);
}

int html_decimals(double value, int digits) {
    const double size = fabs(value);
    const int before = size > 0 && size < 1e15 ? (int)floor(log10(size)) + 1 : 1;
    const int decimals = digits - (before > 0 || size >= 0.1 ? (before > 1 ? before : 0) : before);
    return decimals < 0 ? 0 : decimals > 8 ? 8 : decimals;
}

const char *html_fixed(char *text, double value, int decimals) {
    char plain[24];
    if (fabs(value) >= 1e12) return html_number(text, value, 4);
    snprintf(plain, sizeof plain, "%.*f", decimals < 8 ? decimals : 8, fabs(value));
    return signed_text(text, value, plain);
}
