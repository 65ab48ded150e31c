/* Escaping for HTML and SVG: see html.h. Knows no tags. */
#include "html.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "../../data/shown.h"

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
    while (text && *text) put(out, shown_next(&text));
}

size_t html_length(const char *text) {
    size_t n = 0;
    for (; text && *text; n++) shown_next(&text);
    return n;
}

void html_short(FILE *out, const char *text, size_t most) {
    const int cut = html_length(text) > most;
    for (size_t i = 0; text && *text && i + (size_t)cut < most; i++) put(out, shown_next(&text));
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
