/* See record_column.h. */
#define _POSIX_C_SOURCE 200809L
#include "record_column.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "array.h"
#include "own_rows.h"

/* Position of the column in a file's header; -1 with error set. */
static ptrdiff_t find_column(const char *path, const char *column, char *error) {
    csv_reader r;
    ptrdiff_t found = -1;
    csv_status got = CSV_FAILED;
    if (csv_open(&r, path)) got = csv_next(&r);
    for (ptrdiff_t i = 0; got == CSV_ROW && i < arrlen(r.fields) && found < 0; i++)
        if (strcasecmp(r.fields[i].text, column) == 0) found = i;
    if (found < 0 && got == CSV_FAILED) snprintf(error, 512, "%s", r.text.error);
    else if (found < 0) snprintf(error, 512, "%.300s: no column \"%.100s\"", path, column);
    csv_close(&r);
    return found;
}

/* The record of a row; a label with a prediction time belongs to the record subject@time. The caller frees the name. */
static char *record_of(const own_source *s) {
    const csv_field *name = own_field(s, OWN_NAME), *time = s->cuts ? own_field(s, OWN_TIME) : NULL;
    const int cut = time && time->length > 0;
    const size_t room = name->length + (cut ? time->length : 0) + 2;
    char *text = tool_calloc(room, 1);
    snprintf(text, room, "%s%s%s", name->text, cut ? "@" : "", cut ? time->text : "");
    return text;
}

static void keep_value(record_column *c, const own_source *s, ptrdiff_t column) {
    const csv_field *field = &s->csv.fields[column];
    char *record;
    if (field->length == 0) return;
    record = record_of(s);
    if (shgeti(c->values, record) < 0) shput(c->values, record, tool_text(field->text));
    free(record);
}

int record_column_read(record_column *c, const char *labels, const char *column, char *error) {
    const ptrdiff_t at = find_column(labels, column, error);
    own_outcome got = OWN_ROW_FAILED;
    own_source s;
    c->values = NULL;
    if (at < 0) return 0;
    sh_new_strdup(c->values);
    if (own_source_open(&s, labels, OWN_LABELS, OWN_ORIGIN_AUTO, NULL))
        while ((got = own_source_next(&s)) == OWN_ROW_GOOD) keep_value(c, &s, at);
    if (got != OWN_ROW_END) snprintf(error, 512, "%s", s.error), record_column_free(c);
    own_source_close(&s);
    return got == OWN_ROW_END;
}

const char *record_column_of(const record_column *c, const char *record) {
    record_value *values = c->values;
    const ptrdiff_t at = shgeti(values, record);
    return at < 0 ? NULL : values[at].value;
}

void record_column_free(record_column *c) {
    for (ptrdiff_t i = 0; i < shlen(c->values); i++) free(c->values[i].value);
    shfree(c->values);
    c->values = NULL;
}
