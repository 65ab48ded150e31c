/* Preprocessing as metadata of a model file: see prep.h. The library reads it (mtan_prep_open) and checks every number.
 * The functions here write it, explain in words what the library refused, and copy what it read into the tools'
 * arrays. */
#include "prep.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Enough digits to restore the same bits. */
#ifdef MTAN_DOUBLE
enum { DIGITS = 17 };
#else
enum { DIGITS = 9 };
#endif
enum { ERROR_SIZE = 256, DOUBLE_DIGITS = 17 };

static const char *const kinds[PREP_KINDS] = {"none", "published", "minmax", "zscore", "times"};

/* The numbers of a channel, their keys, and the value for none. */
static const struct field {
    const char *key;
    size_t offset;
    uint32_t flag; /* in `has`; 0: always present */
    double none;
    int optional; /* left out if no channel has it */
} fields[] = {{"mtan.prep.offset", offsetof(mtan_prep_channel, offset), 0, 0, 0},
              {"mtan.prep.scale", offsetof(mtan_prep_channel, scale), 0, 0, 0},
              {"mtan.prep.low", offsetof(mtan_prep_channel, low), MTAN_HAS_LOW, -INFINITY, 0},
              {"mtan.prep.high", offsetof(mtan_prep_channel, high), MTAN_HAS_HIGH, INFINITY, 0},
              {"mtan.prep.missing", offsetof(mtan_prep_channel, missing), MTAN_HAS_MISSING, NAN, 0},
              {"mtan.prep.fill", offsetof(mtan_prep_channel, fill), MTAN_HAS_FILL, NAN, 1},
              {"mtan.prep.least", offsetof(mtan_prep_channel, least), MTAN_HAS_RANGE, NAN, 1},
              {"mtan.prep.most", offsetof(mtan_prep_channel, most), MTAN_HAS_RANGE, NAN, 1},
              {"mtan.prep.band", offsetof(mtan_prep_channel, band), MTAN_HAS_BAND, NAN, 1}};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static double field_of(const mtan_prep_channel *c, const struct field *f) {
    mtan_real x;
    memcpy(&x, (const char *)c + f->offset, sizeof x);
    return f->flag && !(c->has & f->flag) ? f->none : (double)x;
}

static int is_written(const prep *p, const struct field *f) {
    size_t k = 0;
    while (k < arrlenu(p->channel) && !(p->channel[k].has & f->flag)) k++;
    return !f->optional || k < arrlenu(p->channel);
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
    char piece[40] = "nan"; /* printf may print NaN with a sign */
    if (!isnan(x)) snprintf(piece, sizeof piece, "%.*g", digits, x);
    if (arrlenu(*text) > 0) arrput(*text, ' ');
    put_text(text, piece);
}

/* Adds the text and frees it. */
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

/* Adds everything that affects the numbers. */
static void add_numbers(mtan_file_pair **pairs, const prep *p) {
    char *scales = NULL, *span = NULL;
    add_pair(pairs, "mtan.prep.kind", prep_kind_name(p->kind));
    for (const struct field *f = fields; f < fields + FIELDS; f++) {
        char *text = NULL;
        if (!is_written(p, f)) continue;
        for (size_t k = 0; k < arrlenu(p->channel); k++) put_number(&text, field_of(&p->channel[k], f), DIGITS);
        add_text(pairs, f->key, text);
    }
    for (int part = 0; part < SPLIT_PARTS; part++) put_number(&scales, p->time_scale[part], DOUBLE_DIGITS);
    add_text(pairs, "mtan.time.scale", scales);
    if (p->first <= p->last) {
        put_number(&span, p->first, DOUBLE_DIGITS), put_number(&span, p->last, DOUBLE_DIGITS);
        add_text(pairs, "mtan.time.span", span);
    }
    add_pair(pairs, "mtan.time.unit", p->unit);
}

void prep_write(const prep *p, mtan_file_pair **pairs) {
    if (arrlenu(p->channel) > 0) add_numbers(pairs, p);
    add_names(pairs, "mtan.names.channels", p->channels);
    add_names(pairs, "mtan.names.classes", p->classes);
    if (arrlenu(p->number) > 0) {
        char *offset = NULL, *scale = NULL;
        put_number(&offset, p->number[0].offset, DOUBLE_DIGITS), put_number(&scale, p->number[0].scale, DOUBLE_DIGITS);
        add_text(pairs, "mtan.number.offset", offset), add_text(pairs, "mtan.number.scale", scale);
    }
    if (p->positive >= 0 && p->positive < (int32_t)arrlen(p->classes))
        add_pair(pairs, "mtan.names.positive", p->classes[p->positive]);
}

/* ---- reading ---- */

/* What a key should contain, in words, for a value that the library could not use. */
static const struct {
    const char *key, *wants;
} wanted[] = {{"mtan.channels", "a number of channels"},
              {"mtan.classes", "a number of classes"},
              {"mtan.prep.kind", "none, published, minmax, zscore or times; a newer version may know others"},
              {"mtan.prep.scale", "a finite number for each channel that is not 0"},
              {"mtan.prep.low", "a number for each channel that is not above mtan.prep.high, or -inf"},
              {"mtan.prep.band", "a number above 0 for each channel"},
              {"mtan.prep.", "a number for each channel"},
              {"mtan.data.means", "a number for each channel"},
              {"mtan.time.scale", "three finite numbers above 0"},
              {"mtan.time.span", "two numbers"},
              {"mtan.names.positive", "the name of a class"},
              {"mtan.names.", "a JSON array of different names, as many as the model has"},
              {"", "something else"}};

static int refuse(char *error, const char *key) {
    size_t i = 0;
    while (strncmp(key, wanted[i].key, strlen(wanted[i].key)) != 0) i++;
    snprintf(error, ERROR_SIZE, "%s must be %s", key, wanted[i].wants);
    return 0;
}

/* The value of a key as text (free it), or NULL. */
static char *value_of(const mtan_file *file, const char *key) {
    size_t length = 0;
    char *text;
    if (mtan_file_metadata(file, key, NULL, 0, &length) != MTAN_OK) return NULL;
    text = tool_calloc(length + 1, 1);
    mtan_file_metadata(file, key, text, length + 1, NULL);
    return text;
}

/* Reads the scales of all parts of the split; the library reads only the scale of new records. */
static int read_scales(prep *p, const mtan_file *file, char *error) {
    char *text = value_of(file, "mtan.time.scale"), *at = text;
    int good = 1;
    for (int part = 0; part < SPLIT_PARTS && text; part++) {
        p->time_scale[part] = strtod(at, &at);
        good = good && (mtan_real)p->time_scale[part] > 0;
    }
    free(text);
    return good || refuse(error, "mtan.time.scale");
}

static prep_kind read_kind(const mtan_file *file) {
    char *text = value_of(file, "mtan.prep.kind");
    int kind = 0;
    while (text && kind + 1 < PREP_KINDS && strcmp(kinds[kind], text) != 0) kind++;
    free(text);
    return (prep_kind)kind;
}

static void copy_names(char ***to, const char *const *names, int32_t n) {
    for (int32_t i = 0; names && i < n && names[i][0]; i++) arrput(*to, tool_text(names[i]));
}

/* Copies what the library read into the tools' arrays. */
static int take_all(prep *p, const mtan_prep *read, const mtan_file *file, char *error) {
    if (strlen(read->unit) >= sizeof p->unit) return snprintf(error, ERROR_SIZE, "mtan.time.unit is too long"), 0;
    p->kind = read_kind(file);
    for (int32_t d = 0; d < read->channels; d++)
        arrput(p->channel, read->channel ? read->channel[d] : prep_untouched());
    for (int part = 0; part < SPLIT_PARTS; part++) p->time_scale[part] = 1;
    p->first = read->first, p->last = read->last, p->from_first = read->from_first, p->statics = read->statics;
    strcpy(p->unit, read->unit);
    copy_names(&p->channels, read->channel_names, read->channels);
    copy_names(&p->classes, read->class_names, read->classes);
    for (int32_t c = 0; read->number && c < read->classes; c++) arrput(p->number, read->number[c]);
    p->positive = mtan_file_metadata(file, "mtan.names.positive", NULL, 0, NULL) == MTAN_OK ? read->positive : -1;
    return !read->fitted || read_scales(p, file, error);
}

int prep_read(prep *p, const mtan_file *file, char *error) {
    mtan_prep read;
    const char *key = "mtan.channels";
    size_t bytes = 0;
    void *memory;
    int good;
    memset(p, 0, sizeof *p);
    mtan_prep_size(file, &bytes); /* if it fails, mtan_prep_open reports the key */
    memory = tool_calloc(bytes + 1, 1);
    good = mtan_prep_open(&read, file, memory, bytes, &key) == MTAN_OK ? take_all(p, &read, file, error)
                                                                       : refuse(error, key);
    free(memory);
    if (!good) prep_free(p);
    return good;
}
