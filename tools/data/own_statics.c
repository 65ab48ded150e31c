/* See own_statics.h. The file is read as a whole, because only its end shows whether a name is a category. */
#include "own_statics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    int32_t record, name, text; /* indices in three lists of names */
    uint32_t line;
} entry;

/* The meaning of a name: a number, or a category. */
typedef struct variable {
    int is_category;
    names values;      /* of a category, unless the model defines them */
    int32_t *channels; /* of a category: indices of its channels, an stb_ds array */
} variable;

typedef struct reader {
    own_source source;
    names names, texts;
    entry *entries;
    variable *variables; /* by name */
    names channels;      /* the model's, or the file's */
    int skip_unknown;
} reader;

/* ---- reading ---- */

static own_outcome read_entry(own_statics *s, reader *r) {
    const own_outcome got = own_source_next(&r->source);
    const csv_field *name, *value;
    const csv_field *record;
    entry e;
    if (got != OWN_ROW_GOOD) return got;
    record = own_field(&r->source, OWN_NAME), name = own_channel(&r->source), value = own_field(&r->source, OWN_VALUE);
    if (name->length == 0) return own_complain(&r->source, r->source.csv.line, "the name is empty"), OWN_ROW_BAD;
    if (strchr(name->text, '='))
        return own_complain(&r->source, r->source.csv.line,
                            "\"%s\" is no name: an equals sign is for the values of categories",
                            field_quote(name->text).text),
               OWN_ROW_BAD;
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

/* Sorts the entries. Of entries with the same record and name one stays; their values must be equal. */
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

/* Decides from the file which names are numbers, and collects the values of the others. */
static void find_categories(reader *r) {
    double number;
    for (size_t i = 0; i < arrlenu(r->entries); i++)
        if (!field_value(names_text(&r->texts, r->entries[i].text), &number))
            r->variables[r->entries[i].name].is_category = 1;
    for (size_t i = 0; i < arrlenu(r->entries); i++) {
        const char *text = names_text(&r->texts, r->entries[i].text);
        variable *v = &r->variables[r->entries[i].name];
        if (v->is_category) names_add(&v->values, text, strlen(text));
    }
}

/* Gives each name its channels: those that begin with the name and an equals sign. */
static void share_channels(reader *r, char **channels) {
    for (int32_t c = 0; c < (int32_t)arrlen(channels); c++) {
        const char *equals = strchr(channels[c], '=');
        const int32_t name = equals ? names_find(&r->names, channels[c], (size_t)(equals - channels[c])) : -1;
        if (name >= 0) arrput(r->variables[name].channels, c);
    }
}

/* Decides from the model: a name is a category if it is no channel itself but has values that are. */
static void known_categories(reader *r) {
    for (int32_t k = 0; k < names_count(&r->names); k++) {
        const char *name = names_text(&r->names, k);
        r->variables[k].is_category =
            arrlen(r->variables[k].channels) > 0 && names_find(&r->channels, name, strlen(name)) < 0;
    }
}

/* Appends the values of a category, sorted, as its channels. */
static void add_category(own_statics *s, const reader *r, int32_t name) {
    char **sorted = NULL;
    int32_t *place = names_sorted(&r->variables[name].values, &sorted);
    for (size_t i = 0; i < arrlenu(sorted); i++) {
        arrput(s->channels, category_name(names_text(&r->names, name), sorted[i]));
        free(sorted[i]);
    }
    arrfree(sorted), arrfree(place);
}

/* The channels of the file, by name. */
static void make_channels(own_statics *s, reader *r) {
    char **sorted = NULL;
    int32_t *place = names_sorted(&r->names, &sorted);
    for (size_t i = 0; i < arrlenu(sorted); i++) {
        const int32_t name = names_find(&r->names, sorted[i], strlen(sorted[i]));
        if (r->variables[name].is_category) add_category(s, r, name);
        else arrput(s->channels, tool_text(sorted[i]));
        free(sorted[i]);
    }
    arrfree(sorted), arrfree(place);
    names_set(&r->channels, s->channels);
}

/* ---- rows ---- */

/* A category is observed as a whole: 1 for its value, 0 for the others. */
static void add_values(own_statics *s, reader *r, const entry *e, char **channels) {
    const int32_t *of = r->variables[e->name].channels;
    char *mine = category_name(names_text(&r->names, e->name), names_text(&r->texts, e->text));
    own_row row;
    memset(&row, 0, sizeof row);
    row.record = e->record, row.line = e->line;
    if (names_find(&r->channels, mine, strlen(mine)) < 0 && s->unknown++ == 0)
        s->first_unknown = tool_text(field_quote(mine).text);
    for (size_t i = 0; i < arrlenu(of); i++) {
        row.channel = of[i], row.value = strcmp(channels[of[i]], mine) == 0;
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
    if (!field_value(text, &number))
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
            if (r->variables[r->entries[i].name].is_category) add_values(s, r, &r->entries[i], channels);
            else if (!add_number(s, r, &r->entries[i])) return 0;
    }
    s->start[n] = arrlenu(s->rows);
    return 1;
}

/* ---- the whole file ---- */

static int read_file(own_statics *s, reader *r, const char *path, char **channels) {
    own_outcome got;
    if (!own_source_open(&r->source, path, OWN_STATICS, OWN_ORIGIN_AUTO, NULL)) return 0;
    while ((got = read_entry(s, r)) == OWN_ROW_GOOD || got == OWN_ROW_LEFT_OUT) continue;
    if (got != OWN_ROW_END || !sort_entries(s, r)) return 0;
    r->variables = tool_calloc((size_t)names_count(&r->names) + 1, sizeof *r->variables);
    if (channels) {
        names_set(&r->channels, channels);
        share_channels(r, channels);
        known_categories(r);
        return make_rows(s, r, channels);
    }
    find_categories(r);
    make_channels(s, r);
    share_channels(r, s->channels);
    return make_rows(s, r, s->channels);
}

static void free_reader(reader *r) {
    for (int32_t i = 0; r->variables && i < names_count(&r->names); i++)
        names_free(&r->variables[i].values), arrfree(r->variables[i].channels);
    own_source_close(&r->source);
    names_free(&r->names), names_free(&r->texts), names_free(&r->channels);
    arrfree(r->entries), free(r->variables);
}

int own_statics_read(own_statics *s, const char *path, char **channels, int skip_unknown) {
    reader r;
    int good;
    memset(s, 0, sizeof *s), memset(&r, 0, sizeof r);
    r.skip_unknown = skip_unknown;
    good = read_file(s, &r, path, channels);
    if (!good && !s->error[0]) memcpy(s->error, r.source.error, sizeof s->error);
    free_reader(&r);
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

int own_statics_strange(const own_statics *s, const char *path, char text[512]) {
    if (s->unknown)
        snprintf(text, 512,
                 "%.200s: %zu value%s of categories that the model does not know, \"%.100s\" the first: none of its "
                 "channels is 1",
                 path, s->unknown, s->unknown == 1 ? "" : "s", s->first_unknown);
    return s->unknown > 0;
}

void own_statics_note(const own_statics *s, dataset *d, const char *path) {
    char text[512];
    if (own_statics_strange(s, path, text)) dataset_note(d, "%s", text);
    if (names_count(&s->records) > 0 && s->used == 0) dataset_note(d, "%s: none of its records is in the data", path);
}

void own_statics_free(own_statics *s) {
    for (size_t i = 0; i < arrlenu(s->channels); i++) free(s->channels[i]);
    arrfree(s->channels), arrfree(s->rows);
    names_free(&s->records);
    free(s->start), free(s->first_unknown);
    memset(s, 0, sizeof *s);
}
