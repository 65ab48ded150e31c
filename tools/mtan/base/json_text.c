/* See json_text.h. */
#include "json_text.h"

#include <math.h>
#include <stdlib.h>

/* Length of the UTF-8 sequence at s; 0 if it is invalid, as overlong forms, surrogates and numbers past U+10FFFF
 * are. */
static int sequence_length(const unsigned char *s) {
    const int n = s[0] < 0x80                   ? 1
                  : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
                  : s[0] >= 0xE0 && s[0] < 0xF0 ? 3
                  : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
                                                : 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F)) return 0;
    if ((s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F)) return 0;
    return n;
}

void json_string(FILE *out, const char *text) {
    const unsigned char *s = (const unsigned char *)text;
    if (!text) {
        fputs("null", out);
        return;
    }
    fputc('"', out);
    while (*s) {
        const int n = sequence_length(s);
        if (n == 0) fputs("\xEF\xBF\xBD", out);
        else if (*s == '"' || *s == '\\') fprintf(out, "\\%c", *s);
        else if (*s < 0x20 || *s == 0x7F) fprintf(out, "\\u%04x", *s);
        else fwrite(s, 1, (size_t)n, out);
        s += n ? n : 1;
    }
    fputc('"', out);
}

void json_number(FILE *out, double x) {
    char text[40];
    if (isnan(x) || isinf(x)) {
        fputs("null", out);
        return;
    }
    for (int digits = 6; digits <= 17; digits++) {
        const double back = (snprintf(text, sizeof text, "%.*g", digits, x), strtod(text, NULL));
        if (!(back < x) && !(back > x)) break;
    }
    fputs(text, out);
}

void json_member(FILE *out, int *first, const char *key) {
    fprintf(out, "%s\"%s\": ", first && *first ? "" : ", ", key);
    if (first) *first = 0;
}

void json_key_text(FILE *out, int *first, const char *key, const char *text) {
    json_member(out, first, key), json_string(out, text);
}

void json_key_number(FILE *out, int *first, const char *key, double x) {
    json_member(out, first, key), json_number(out, x);
}

void json_key_count(FILE *out, int *first, const char *key, size_t n) {
    json_member(out, first, key), fprintf(out, "%zu", n);
}
