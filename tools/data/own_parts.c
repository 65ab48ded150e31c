/* See own.h: the file of a split. */
#include "own.h"

#include <stdio.h>
#include <string.h>

#include "own_rows.h"
#include "split.h"

/* 1 + the part of that name; 0: no such part. */
static int32_t part_named(const char *text) {
    for (int p = 0; p < SPLIT_PARTS; p++)
        if (strcmp(text, split_part_name(p)) == 0) return 1 + p;
    return 0;
}

static own_outcome read_part(dataset *d, own_source *s, const names *records, size_t *unknown) {
    const own_outcome got = own_source_next(s);
    const csv_field *name, *text;
    int32_t part, record;
    if (got != OWN_ROW_GOOD) return got;
    name = own_field(s, OWN_NAME), text = own_field(s, OWN_VALUE);
    part = part_named(text->text), record = names_find(records, name->text, name->length);
    if (!part)
        return own_complain(s, s->csv.line, "\"%s\" is no part: train, valid or test", field_quote(text->text).text),
               OWN_ROW_BAD;
    if (record < 0) return ++*unknown, OWN_ROW_GOOD;
    if (d->records[record].part && d->records[record].part != part)
        return own_complain(s, s->csv.line, "record \"%s\" is in part %s here and in %s elsewhere",
                            field_quote(name->text).text, split_part_name(part - 1),
                            split_part_name(d->records[record].part - 1)),
               OWN_ROW_BAD;
    d->records[record].part = part;
    return OWN_ROW_GOOD;
}

/* Collects the names of the records. */
static names names_of(const dataset *d) {
    names records;
    memset(&records, 0, sizeof records);
    for (size_t i = 0; i < arrlenu(d->records); i++) {
        const char *name = dataset_name(d, i);
        names_add(&records, name, strlen(name));
    }
    return records;
}

int own_read_parts(dataset *d, const char *path) {
    own_outcome got = OWN_ROW_BAD;
    size_t unknown = 0;
    own_source s;
    names records = names_of(d);
    if (names_count(&records) < (int32_t)arrlen(d->records))
        return names_free(&records), dataset_fail(d, "%s: the data has two records of one name", path);
    if (own_source_open(&s, path, OWN_PARTS, OWN_ORIGIN_AUTO, NULL))
        while ((got = read_part(d, &s, &records, &unknown)) == OWN_ROW_GOOD) continue;
    for (size_t i = 0; got == OWN_ROW_END && i < arrlenu(d->records); i++)
        if (!d->records[i].part) {
            snprintf(s.error, sizeof s.error, "%s: record \"%s\" of the data has no part", path,
                     field_quote(dataset_name(d, i)).text);
            got = OWN_ROW_BAD;
        }
    if (got != OWN_ROW_END) dataset_fail(d, "%s", s.error);
    else if (unknown) dataset_note(d, "%s: records that the data does not have: %zu", path, unknown);
    own_source_close(&s);
    names_free(&records);
    return got == OWN_ROW_END;
}
