/* See own_statics.h. The file is read whole: whether a name is a category is known at its end. */
#include "own_statics.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    int32_t record, name, text; /* numbers in three lists of names */
    uint32_t line;
} entry;

typedef struct reader {
    own_source source;
    names names, texts;
    entry *entries;
    int *is_category; /* by name */
    names channels;   /* the model's, or the file's */
    int skip_unknown;
} reader;

static int fits(const char *text, double *number) {
    return field_number(text, number) && fabs(*number) <= FLT_MAX;
}

/* ---- reading ---- */

static own_outcome read_entry(own_statics *s, reader *r) {
    const own_outcome got = own_source_next(&r->source);
    const csv_field *name, *value;
    const csv_field *record;
    entry e;
    if (got != OWN_ROW_GOOD) return got;
    record = own_field(&r->source, OWN_NAME), name = own_channel(&r->source), value = own_field(&r->source, OWN_VALUE);
    if (name->length == 0) return own_complain(&r->source, r->source.csv.line, "the name is empty"), OWN_ROW_BAD;
    e.record = names_add(&s->records, record->text, record->length);
    if (field_missing(value->text)) return OWN_ROW_LEFT_OUT;
    e.name = names_add(&r->names, name->text, name->length), e.text = names_add(&r->texts, value->text, value->length);
    e.line = (uint32_t)r->source.csv.line;
    arrput(r->entries, e);
    return OWN_ROW_GOOD;
}

static int by_record(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->record != y->record) return x->record < y->record ? -1 : 1;
    if (x->name != y->name) return x->name < y->name ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

/* Sorts them; of two of one record and name one stays, and they must be the same. */
static int sort_entries(own_statics *s, reader *r) {
    size_t kept = 0;
    if (r->entries) qsort(r->entries, arrlenu(r->entries), sizeof *r->entries, by_record);
    for (size_t i = 0; i < arrlenu(r->entries); i++) {
        const entry *e = &r->entries[i], *before = kept ? &r->entries[kept - 1] : NULL;
        if (!before || before->record != e->record || before->name != e->name) r->entries[kept++] = *e;
        else if (before->text != e->text)
            return own_complain(&r->source, e->line, "\"%s\" of record \"%s\" is \"%s\" here and \"%s\" elsewhere",
                                field_quote(names_text(&r->names, e->name)).text,
                                field_quote(names_text(&s->records, e->record)).text,
                                field_quote(names_text(&r->texts, e->text)).text,
                                field_quote(names_text(&r->texts, before->text)).text);
    }
    arrsetlen(r->entries, kept);
    return 1;
}

/* ---- channels ---- */

/* "sex=F", malloc'd. */
static char *category_name(const char *name, const char *value) {
    const size_t room = strlen(name) + strlen(value) + 2;
    char *text = tool_calloc(room, 1);
    snprintf(text, room, "%s=%s", name, value);
    return text;
}

/* What the file says are numbers. */
static void find_categories(reader *r) {
    double number;
    for (size_t i = 0; i < arrlenu(r->entries); i++)
        if (!fits(names_text(&r->texts, r->entries[i].text), &number)) r->is_category[r->entries[i].name] = 1;
}

/* What the model says: it has channels that begin with the name and an equals sign. */
static void known_categories(reader *r, char **channels) {
    for (int32_t k = 0; k < names_count(&r->names); k++) {
        const char *name = names_text(&r->names, k);
        const size_t n = strlen(name);
        if (names_find(&r->channels, name, n) >= 0) continue;
        for (size_t c = 0; c < arrlenu(channels); c++)
            r->is_category[k] |= strncmp(channels[c], name, n) == 0 && channels[c][n] == '=';
    }
}

/* The values of a category, in order: appended as its channels. */
static void add_category(own_statics *s, const reader *r, int32_t name) {
    names values;
    char **sorted = NULL;
    int32_t *place;
    memset(&values, 0, sizeof values);
    for (size_t i = 0; i < arrlenu(r->entries); i++) {
        const char *text = names_text(&r->texts, r->entries[i].text);
        if (r->entries[i].name == name) names_add(&values, text, strlen(text));
    }
    place = names_sorted(&values, &sorted);
    for (size_t i = 0; i < arrlenu(sorted); i++) {
        arrput(s->channels, category_name(names_text(&r->names, name), sorted[i]));
        free(sorted[i]);
    }
    arrfree(sorted), arrfree(place);
    names_free(&values);
}

/* The file's own, by name. */
static int make_channels(own_statics *s, reader *r) {
    char **sorted = NULL;
    int32_t *place = names_sorted(&r->names, &sorted);
    for (size_t i = 0; i < arrlenu(sorted); i++) {
        const int32_t name = names_find(&r->names, sorted[i], strlen(sorted[i]));
        if (r->is_category[name]) add_category(s, r, name);
        else arrput(s->channels, tool_text(sorted[i]));
        free(sorted[i]);
    }
    arrfree(sorted), arrfree(place);
    if (names_set(&r->channels, s->channels)) return 1;
    snprintf(s->error, sizeof s->error, "%s: two channels are of one name", r->source.csv.text.name);
    return 0;
}

/* ---- rows ---- */

/* A category is observed whole: 1 for its value, 0 for the others. */
static void add_values(own_statics *s, reader *r, const entry *e, char **channels) {
    const char *name = names_text(&r->names, e->name);
    const size_t n = strlen(name);
    char *mine = category_name(name, names_text(&r->texts, e->text));
    own_row row;
    memset(&row, 0, sizeof row);
    row.record = e->record, row.line = e->line;
    if (names_find(&r->channels, mine, strlen(mine)) < 0 && s->unknown++ == 0)
        s->first_unknown = tool_text(field_quote(mine).text);
    for (size_t c = 0; c < arrlenu(channels); c++) {
        if (strncmp(channels[c], name, n) != 0 || channels[c][n] != '=') continue;
        row.channel = (int32_t)c, row.value = strcmp(channels[c], mine) == 0;
        arrput(s->rows, row);
    }
    free(mine);
}

static int add_number(own_statics *s, reader *r, const entry *e) {
    const char *name = names_text(&r->names, e->name), *text = names_text(&r->texts, e->text);
    double number;
    own_row row;
    memset(&row, 0, sizeof row);
    row.record = e->record, row.line = e->line;
    row.channel = names_find(&r->channels, name, strlen(name));
    if (row.channel < 0 && r->skip_unknown) return 1;
    if (row.channel < 0)
        return own_complain(&r->source, e->line, "the model has no channel \"%s\" (--skip-unknown leaves it out)",
                            field_quote(name).text);
    if (!fits(text, &number))
        return own_complain(&r->source, e->line,
                            "\"%s\" is no value of \"%s\": a number that a float can hold, or nothing",
                            field_quote(text).text, field_quote(name).text);
    row.value = (mtan_real)number;
    arrput(s->rows, row);
    return 1;
}

static int make_rows(own_statics *s, reader *r, char **channels) {
    const int32_t n = names_count(&s->records);
    size_t i = 0;
    s->start = tool_calloc((size_t)n + 1, sizeof *s->start);
    for (int32_t record = 0; record < n; record++) {
        s->start[record] = arrlenu(s->rows);
        for (; i < arrlenu(r->entries) && r->entries[i].record == record; i++)
            if (r->is_category[r->entries[i].name]) add_values(s, r, &r->entries[i], channels);
            else if (!add_number(s, r, &r->entries[i])) return 0;
    }
    s->start[n] = arrlenu(s->rows);
    return 1;
}

/* ---- all of it ---- */

static int read_file(own_statics *s, reader *r, const char *path, char **channels) {
    own_outcome got;
    if (!own_source_open(&r->source, path, OWN_STATICS, OWN_ORIGIN_AUTO, NULL)) return 0;
    while ((got = read_entry(s, r)) == OWN_ROW_GOOD || got == OWN_ROW_LEFT_OUT) continue;
    if (got != OWN_ROW_END || !sort_entries(s, r)) return 0;
    r->is_category = tool_calloc((size_t)names_count(&r->names) + 1, sizeof *r->is_category);
    if (channels) {
        names_set(&r->channels, channels);
        known_categories(r, channels);
        return make_rows(s, r, channels);
    }
    find_categories(r);
    return make_channels(s, r) && make_rows(s, r, s->channels);
}

int own_statics_read(own_statics *s, const char *path, char **channels, int skip_unknown) {
    reader r;
    int good;
    memset(s, 0, sizeof *s), memset(&r, 0, sizeof r);
    r.skip_unknown = skip_unknown;
    good = read_file(s, &r, path, channels);
    if (!good && !s->error[0]) memcpy(s->error, r.source.error, sizeof s->error);
    own_source_close(&r.source);
    names_free(&r.names), names_free(&r.texts), names_free(&r.channels);
    arrfree(r.entries), free(r.is_category);
    return good;
}

void own_statics_add(own_statics *s, const char *record, int32_t first, own_row **rows) {
    const int32_t at = names_find(&s->records, record, strlen(record));
    if (at < 0) return;
    s->used++;
    for (size_t i = s->start[at]; i < s->start[at + 1]; i++) {
        own_row row = s->rows[i];
        row.channel += first;
        arrput(*rows, row);
    }
}

void own_statics_note(const own_statics *s, dataset *d, const char *path) {
    if (s->unknown)
        dataset_note(
            d,
            "%s: %zu value%s of categories that the model does not know, \"%s\" the first: none of its channels is 1",
            path, s->unknown, s->unknown == 1 ? "" : "s", s->first_unknown);
    if (names_count(&s->records) > 0 && s->used == 0) dataset_note(d, "%s: none of its records is in the data", path);
}

void own_statics_free(own_statics *s) {
    for (size_t i = 0; i < arrlenu(s->channels); i++) free(s->channels[i]);
    arrfree(s->channels), arrfree(s->rows);
    names_free(&s->records);
    free(s->start), free(s->first_unknown);
    memset(s, 0, sizeof *s);
}
