/* Preprocessing as metadata of a model file: see prep.h. What is read is hostile: every number is checked before use,
 * and no count from a file is trusted for an allocation beyond what the library itself allows. Locale: tools stay in
 * "C". */
#include "prep.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Digits that bring the same bits back. */
#ifdef MTAN_DOUBLE
enum { DIGITS = 17 };
#else
enum { DIGITS = 9 };
#endif
enum { ERROR_SIZE = 256, MOST_CHANNELS = 1 << 20, DOUBLE_DIGITS = 17 };

#define SPACE " \t\r\n" /* of JSON */

static const char *const kinds[PREP_KINDS] = {"none", "published", "minmax", "zscore", "times"};

/* The numbers of a channel and their keys. */
static const struct field {
    const char *key;
    size_t offset;
} fields[] = {{"mtan.prep.offset", offsetof(prep_channel, offset)},
              {"mtan.prep.scale", offsetof(prep_channel, scale)},
              {"mtan.prep.low", offsetof(prep_channel, low)},
              {"mtan.prep.high", offsetof(prep_channel, high)},
              {"mtan.prep.missing", offsetof(prep_channel, missing)}};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static mtan_real *field_of(prep_channel *c, size_t f) {
    return (mtan_real *)(void *)((char *)c + fields[f].offset);
}

const char *prep_kind_name(prep_kind kind) {
    return kinds[kind];
}

/* ---- writing ---- */

static void add_pair(mtan_file_pair **pairs, const char *key, const char *value) {
    const mtan_file_pair pair = {tool_text(key), tool_text(value)};
    arrput(*pairs, pair);
}

static void put_text(char **text, const char *piece) {
    const size_t n = strlen(piece);
    memcpy(arraddnptr(*text, n), piece, n);
}

static void put_number(char **text, double x, int digits) {
    char piece[40] = "nan"; /* printf may give it a sign */
    if (!isnan(x)) snprintf(piece, sizeof piece, "%.*g", digits, x);
    if (arrlenu(*text) > 0) arrput(*text, ' ');
    put_text(text, piece);
}

/* Adds the text, which goes. */
static void add_text(mtan_file_pair **pairs, const char *key, char *text) {
    arrput(text, 0);
    add_pair(pairs, key, text);
    arrfree(text);
}

static void put_quoted(char **text, const char *name) {
    char code[8];
    arrput(*text, '"');
    for (; *name; name++) {
        const unsigned char byte = (unsigned char)*name;
        if (byte == '"' || byte == '\\') arrput(*text, '\\');
        if (byte >= 0x20) arrput(*text, *name);
        else snprintf(code, sizeof code, "\\u%04x", byte), put_text(text, code);
    }
    arrput(*text, '"');
}

static void add_names(mtan_file_pair **pairs, const char *key, char **names) {
    char *text = NULL;
    if (arrlenu(names) == 0) return;
    for (size_t i = 0; i < arrlenu(names); i++) {
        arrput(text, i ? ',' : '[');
        put_quoted(&text, names[i]);
    }
    arrput(text, ']');
    add_text(pairs, key, text);
}

/* All that numbers depend on. */
static void add_numbers(mtan_file_pair **pairs, const prep *p) {
    char *scales = NULL;
    add_pair(pairs, "mtan.prep.kind", prep_kind_name(p->kind));
    for (size_t f = 0; f < FIELDS; f++) {
        char *text = NULL;
        for (size_t k = 0; k < arrlenu(p->channel); k++)
            put_number(&text, (double)*field_of(&p->channel[k], f), DIGITS);
        add_text(pairs, fields[f].key, text);
    }
    for (int part = 0; part < SPLIT_PARTS; part++) put_number(&scales, p->time_scale[part], DOUBLE_DIGITS);
    add_text(pairs, "mtan.time.scale", scales);
    add_pair(pairs, "mtan.time.unit", p->unit);
}

void prep_write(const prep *p, mtan_file_pair **pairs) {
    if (arrlenu(p->channel) > 0) add_numbers(pairs, p);
    add_names(pairs, "mtan.names.channels", p->channels);
    add_names(pairs, "mtan.names.classes", p->classes);
}

/* ---- reading ---- */

static int refuse(char *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, ERROR_SIZE, format, arguments);
    va_end(arguments);
    return 0;
}

/* The value of a key as text (free it), or NULL. A zero byte inside ends it: what follows is then missing. */
static char *value_of(const mtan_file *file, const char *key) {
    size_t length = 0;
    char *text;
    if (mtan_file_metadata(file, key, NULL, 0, &length) != MTAN_OK) return NULL;
    text = tool_calloc(length + 1, 1);
    if (mtan_file_metadata(file, key, text, length + 1, NULL) == MTAN_OK) return text;
    free(text);
    return NULL;
}

/* The next number between spaces: decimal, or one of three words. 1, or 0 at anything else. */
static int next_number(const char **at, double *x) {
    static const char *const words[] = {"nan", "inf", "-inf"};
    const char *token = *at + strspn(*at, " ");
    const size_t n = strcspn(token, " ");
    char *end = NULL;
    int known = n > 0 && strspn(token, "0123456789+-.eE") >= n;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        known |= strlen(words[i]) == n && memcmp(words[i], token, n) == 0;
    if (!known) return 0;
    *x = strtod(token, &end);
    *at = token + n;
    return end == *at;
}

/* Exactly n numbers. */
static int read_numbers(double *x, size_t n, const mtan_file *file, const char *key, char *error) {
    char *text = value_of(file, key);
    const char *at = text;
    size_t i = 0;
    int good = text != NULL;
    if (!text) return refuse(error, "%s is missing", key);
    while (i < n && good) good = next_number(&at, &x[i++]);
    if (!good) refuse(error, "%s: number %zu of %zu is no number", key, i, n);
    else if (at[strspn(at, " ")] != 0) good = refuse(error, "%s has more than %zu numbers", key, n);
    free(text);
    return good;
}

/* A count among the model's settings. */
static int read_count(size_t *n, const mtan_file *file, const char *key, char *error) {
    double x;
    if (!read_numbers(&x, 1, file, key, error)) return 0;
    if (!(x >= 0 && x <= MOST_CHANNELS && x == floor(x))) return refuse(error, "%s is no possible count", key);
    *n = (size_t)x;
    return 1;
}

/* One JSON string and what separates it; the name is malloc'd. 1, 0 at the end of the array, -1: no array of strings.
 * */
static int next_name(const char **at, char **name, int first) {
    const char *s = *at + strspn(*at, SPACE);
    mtan_text coded;
    size_t length = 0;
    if (*s == (first ? '[' : ',')) s += 1 + strspn(s + 1, SPACE);
    else return *s == ']' && !first && s[1 + strspn(s + 1, SPACE)] == 0 ? 0 : -1;
    if (*s++ != '"') return -1;
    coded.raw = s;
    for (; *s && *s != '"'; s++)
        if (*s == '\\' && s[1]) s++;
    coded.length = (size_t)(s - coded.raw);
    if (*s != '"' || mtan_text_decode(&coded, NULL, 0, &length) != MTAN_OK) return -1;
    *name = tool_calloc(length + 1, 1);
    mtan_text_decode(&coded, *name, length + 1, NULL);
    *at = s + 1;
    if (length > 0 && strlen(*name) == length) return 1;
    free(*name);
    return -1;
}

typedef struct known {
    char *key;
    int value;
} known;

static int parse_names(char ***names, const char *text) {
    known *seen = NULL;
    char *name;
    int more = 1, fresh = 1;
    while (fresh && (more = next_name(&text, &name, !*names)) == 1) {
        fresh = shgeti(seen, name) < 0;
        arrput(*names, name);
        shput(seen, name, 1);
    }
    shfree(seen);
    return more == 0; /* 1 when a name came twice */
}

/* Absent is fine. Otherwise at least `least` and at most `most` different names. */
static int read_names(char ***names, size_t least, size_t most, const mtan_file *file, const char *key, char *error) {
    char *text = value_of(file, key);
    const int good = !text || parse_names(names, text);
    const size_t n = arrlenu(*names);
    free(text);
    if (!good) return refuse(error, "%s is no JSON array of different names", key);
    if (*names && (n < least || n > most))
        return refuse(error, "%s has %zu names, but the model has %zu", key, n, most);
    return 1;
}

static int check_channel(const prep_channel *c, size_t k, char *error) {
    if (!isfinite(c->offset)) return refuse(error, "mtan.prep.offset: that of channel %zu is not finite", k);
    if (!isfinite(c->scale) || !(c->scale < 0 || c->scale > 0))
        return refuse(error, "mtan.prep.scale: that of channel %zu is zero or not finite", k);
    if (!(c->low <= c->high) || c->low >= (mtan_real)INFINITY || c->high <= -(mtan_real)INFINITY)
        return refuse(error, "mtan.prep.low and high: those of channel %zu leave no value", k);
    return 1;
}

static int read_channels(prep *p, const mtan_file *file, char *error) {
    const size_t n = arrlenu(p->channel);
    double *x = tool_calloc(n, sizeof *x);
    int good = 1;
    for (size_t f = 0; f < FIELDS && good; f++) {
        good = read_numbers(x, n, file, fields[f].key, error);
        for (size_t k = 0; k < n && good; k++) *field_of(&p->channel[k], f) = (mtan_real)x[k];
    }
    for (size_t k = 0; k < n && good; k++) good = check_channel(&p->channel[k], k, error);
    free(x);
    return good;
}

static int read_times(prep *p, const mtan_file *file, char *error) {
    char *unit = value_of(file, "mtan.time.unit");
    const size_t length = unit ? strlen(unit) : 0;
    if (length < sizeof p->unit) memcpy(p->unit, unit ? unit : "", length + 1);
    free(unit);
    if (length >= sizeof p->unit) return refuse(error, "mtan.time.unit is too long");
    if (!read_numbers(p->time_scale, SPLIT_PARTS, file, "mtan.time.scale", error)) return 0;
    for (int part = 0; part < SPLIT_PARTS; part++) {
        const mtan_real scale = (mtan_real)p->time_scale[part]; /* what times are divided by */
        if (!(isfinite(scale) && scale > 0)) return refuse(error, "mtan.time.scale must be above 0 and finite");
    }
    return 1;
}

static int read_kind(prep *p, const mtan_file *file, char *error) {
    char *text = value_of(file, "mtan.prep.kind");
    int kind = 0;
    if (!text) {
        for (size_t f = 0; f < FIELDS; f++)
            if (mtan_file_metadata(file, fields[f].key, NULL, 0, NULL) == MTAN_OK)
                return refuse(error, "%s without mtan.prep.kind", fields[f].key);
        return 1;
    }
    while (kind < PREP_KINDS && strcmp(kinds[kind], text) != 0) kind++;
    if (kind == PREP_KINDS) refuse(error, "mtan.prep.kind \"%.40s\" is unknown: a newer version may know it", text);
    p->kind = (prep_kind)kind;
    free(text);
    return kind < PREP_KINDS;
}

static int read_all(prep *p, const mtan_file *file, char *error) {
    size_t channels = 0, classes = 0;
    if (!read_kind(p, file, error) || !read_count(&channels, file, "mtan.channels", error) ||
        !read_count(&classes, file, "mtan.classes", error))
        return 0;
    for (size_t k = 0; k < channels; k++) arrput(p->channel, prep_untouched());
    for (int part = 0; part < SPLIT_PARTS; part++) p->time_scale[part] = 1;
    return read_names(&p->channels, channels, channels, file, "mtan.names.channels", error) &&
           read_names(&p->classes, 0, classes ? classes : SIZE_MAX, file, "mtan.names.classes", error) &&
           (mtan_file_metadata(file, "mtan.prep.kind", NULL, 0, NULL) != MTAN_OK ||
            (read_channels(p, file, error) && read_times(p, file, error)));
}

int prep_read(prep *p, const mtan_file *file, char *error) {
    memset(p, 0, sizeof *p);
    if (read_all(p, file, error)) return 1;
    prep_free(p);
    return 0;
}
