/* See own_rows.h. */
#include "own_rows.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int own_complain(own_source *s, size_t line, const char *format, ...) {
    va_list arguments;
    const int n = snprintf(s->error, sizeof s->error, "%s:%zu: ", s->csv.text.name, line);
    va_start(arguments, format);
    if (n > 0 && (size_t)n < sizeof s->error) vsnprintf(s->error + n, sizeof s->error - (size_t)n, format, arguments);
    va_end(arguments);
    return 0;
}

int own_complain_truth(own_source *s, const own_row *row, const char *record, const char *label, mtan_real kept) {
    return own_complain(s, row->line, "record \"%s\" has \"%s\" %g here and %g elsewhere", field_quote(record).text,
                        field_quote(label).text, (double)row->value, (double)kept);
}

static const char *plural(size_t n) {
    return n == 1 ? "" : "s";
}

/* ---- the header ---- */

enum { LAYOUTS = 4 };
typedef const char *layout[OWN_ROLES]; /* names of columns; NULL: no column */

/* The allowed headers. A role that is in the first layout needs a column, except that labels may be without times. */
static const struct {
    layout layouts[LAYOUTS];
    const char *help;
    const char *wide; /* meaning of the columns of a wide file; NULL: the file cannot be wide */
} tables[OWN_TABLES] = {
    [OWN_EVENTS] = {{{"record", "time", "channel", "value"},
                     {"subject_id", "time", "code", "numeric_value"},
                     {"unique_id", "ds", NULL, "y"},
                     {"time_series_id", "timestamp", "channel_id", "value"}},
                    "record,time,channel,value or subject_id,time,code,numeric_value or unique_id,ds,y or "
                    "time_series_id,timestamp,channel_id,value, or record,time and one column per channel",
                    "channel"},
    [OWN_LABELS] = {{{"record", "time", NULL, "label"},
                     {"subject_id", "time", NULL, "boolean_value"},
                     {"unique_id", "ds", NULL, "label"},
                     {"time_series_id", "timestamp", NULL, "label"}},
                    "record,label or record,time,label or subject_id,prediction_time,boolean_value, or record and one "
                    "column of 1 and 0 per label",
                    "label"},
    [OWN_PARTS] = {{{"record", NULL, NULL, "part"},
                    {"subject_id", NULL, NULL, "part"},
                    {"unique_id", NULL, NULL, "part"},
                    {"time_series_id", NULL, NULL, "part"}},
                   "record,part",
                   NULL},
    [OWN_STATICS] = {{{"record", NULL, "name", "value"},
                      {"subject_id", NULL, "name", "value"},
                      {"unique_id", NULL, "name", "value"},
                      {"time_series_id", NULL, "name", "value"}},
                     "record,name,value, or record and one column per name",
                     "channel"}};
static const char prediction_time[] = "prediction_time"; /* from MEDS, but allowed for all labels */

static char lower(char c) {
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* Are the names equal, apart from case and blanks around the first? */
static int same_name(const char *text, const char *name) {
    text += strspn(text, " \t");
    for (; *name; text++, name++)
        if (lower(*text) != lower(*name)) return 0;
    return text[strspn(text, " \t")] == 0;
}

/* The first column of that name, searching from `from` on, or -1. */
static int32_t find_column(const own_source *s, const char *name, int32_t from) {
    for (int32_t i = from; i < (int32_t)arrlen(s->csv.fields); i++)
        if (same_name(s->csv.fields[i].text, name)) return i;
    return -1;
}

/* Assigns the column of that name to a role, if there is one. */
static int take_column(own_source *s, int role, const char *name) {
    s->name[role] = name;
    s->column[role] = name ? find_column(s, name, 0) : -1;
    return s->column[role] >= 0;
}

/* The first role that needs a column and has none, or -1. */
static int open_role(const own_source *s) {
    for (int role = 0; role < OWN_ROLES; role++) {
        const int needed = tables[s->table].layouts[0][role] && !(s->table == OWN_LABELS && role == OWN_TIME);
        if (s->column[role] < 0 && needed) return role;
    }
    return -1;
}

/* Has every column of a layout been found? Nixtla's layout has no column for channels. */
static int is_whole(const own_source *s, const layout columns) {
    for (int role = 0; role < OWN_ROLES; role++)
        if (columns[role] && s->column[role] < 0) return 0;
    return 1;
}

/* Takes all columns of one layout of events if possible; otherwise, for each role, the first name that exists. Returns
 * the same as open_role. */
static int choose_columns(own_source *s) {
    const layout *layouts = tables[s->table].layouts;
    for (int i = 0; i < LAYOUTS && s->table == OWN_EVENTS; i++) {
        for (int role = 0; role < OWN_ROLES; role++) take_column(s, role, layouts[i][role]);
        if (is_whole(s, layouts[i])) return -1;
    }
    for (int role = 0; role < OWN_ROLES; role++)
        for (int i = 0; i < LAYOUTS; i++)
            if (take_column(s, role, layouts[i][role])) break;
    return open_role(s);
}

/* The columns that are not used, for a note. */
static char *ignored_columns(const own_source *s) {
    char *list = NULL;
    for (int32_t i = 0; i < (int32_t)s->columns; i++) {
        char text[64];
        const int n = snprintf(text, sizeof text, "\"%s\"", field_quote(s->csv.fields[i].text).text);
        int used = s->group == i || s->read == i;
        for (int role = 0; role < OWN_ROLES; role++) used |= s->column[role] == i;
        if (used || arrlen(list) > 300) continue; /* keep the note short, even for a thousand columns */
        if (list) memcpy(arraddnptr(list, 2), ", ", 2);
        memcpy(arraddnptr(list, (size_t)n), text, (size_t)n);
    }
    if (list) arrput(list, 0);
    return list;
}

/* Is there a column for channels or values, in any layout? A y is not enough, because x,y,z are channels. */
static int has_long_column(const own_source *s) {
    const layout *layouts = tables[s->table].layouts;
    for (int i = 0; i < LAYOUTS; i++)
        for (int role = OWN_CHANNEL; role <= OWN_VALUE; role++)
            if (layouts[i][OWN_CHANNEL] && find_column(s, layouts[i][role], 0) >= 0) return 1;
    return 0;
}

/* Returns what is wrong with a column as a channel or a label, or NULL. */
static const char *column_fault(const own_source *s, const csv_field *field, names *seen) {
    const int32_t before = names_count(seen);
    if (field->length == 0)
        return s->table == OWN_LABELS ? "has no name: it would be the label's"
                                      : "has no name: it would be the channel's";
    for (int i = 0; i < LAYOUTS; i++)
        if (same_name(field->text, tables[OWN_LABELS].layouts[i][OWN_VALUE]))
            return "is no channel: labels have a file of their own";
    for (int role = OWN_NAME; role <= OWN_TIME; role++)
        if (s->column[role] >= 0 && same_name(field->text, s->name[role])) return "is there twice";
    return names_add(seen, field->text, field->length) < before ? "is there twice" : NULL;
}

/* Every column except the record's and the time's is a channel or a label. Returns 1, or 0 with error set. */
static int take_wide(own_source *s) {
    const char *fault = NULL;
    names seen;
    memset(&seen, 0, sizeof seen);
    for (int32_t i = 0; i < (int32_t)s->columns && !fault; i++) {
        own_column c = {s->csv.fields[i], i};
        if (i == s->column[OWN_NAME] || i == s->column[OWN_TIME] || i == s->group) continue;
        if ((fault = column_fault(s, &c.channel, &seen)))
            own_complain(s, s->csv.line, "column %d, \"%s\", %s", (int)i + 1, field_quote(c.channel.text).text, fault);
        c.channel.text = tool_text(c.channel.text);
        arrput(s->wide, c);
    }
    names_free(&seen);
    s->cell = arrlenu(s->wide);
    return !fault;
}

/* Handles events, static values or labels without a column for channels or values. Returns 1, or 0 with error set. */
static int try_wide(own_source *s, int *role) {
    const size_t least = s->column[OWN_TIME] >= 0 ? 3 : 2;
    if (!tables[s->table].wide || *role <= OWN_TIME || s->columns < least || has_long_column(s)) return 1;
    *role = -1;
    return take_wide(s);
}

static int check_separator(own_source *s) {
    for (size_t i = 0; i < s->columns; i++) {
        const char *found = strpbrk(s->csv.fields[i].text, "\t;");
        if (found)
            return own_complain(s, s->csv.line, "the columns are separated by %s: this reader takes commas alone",
                                *found == ';' ? "semicolons" : "tabs");
    }
    return 1;
}

static int understand_header(own_source *s, const char *group) {
    int role;
    s->columns = arrlenu(s->csv.fields);
    s->group = group ? find_column(s, group, 0) : -1, s->read = -1;
    role = choose_columns(s);
    if (s->table == OWN_LABELS && find_column(s, prediction_time, 0) >= 0)
        s->cuts = take_column(s, OWN_TIME, prediction_time);
    if (!try_wide(s, &role)) return 0;
    if (role >= 0 && !check_separator(s)) return 0;
    if (role >= 0)
        return own_complain(s, s->csv.line, "no column \"%s\": the first line has to name the columns %s",
                            tables[s->table].layouts[0][role], tables[s->table].help);
    for (role = 0; role < OWN_ROLES; role++)
        if (s->column[role] >= 0 && find_column(s, s->name[role], s->column[role] + 1) >= 0)
            return own_complain(s, s->csv.line, "two columns are called \"%s\"", s->name[role]);
    s->statics = s->table == OWN_EVENTS && !s->wide && strcmp(s->name[OWN_VALUE], "numeric_value") == 0;
    if (!s->wide) s->ignored = ignored_columns(s);
    return 1;
}

int own_source_open(own_source *s, const char *path, own_table table, own_origin origin, const char *group) {
    memset(s, 0, sizeof *s);
    s->table = table, s->origin = origin;
    csv_status got = csv_open(&s->csv, path) ? csv_next(&s->csv) : CSV_FAILED;
    if (got == CSV_ROW) return understand_header(s, group);
    if (got == CSV_BAD) return own_complain(s, s->csv.line, "%s", s->csv.problem);
    if (got == CSV_END) snprintf(s->error, sizeof s->error, "%s: empty, without so much as a header", s->csv.text.name);
    else memcpy(s->error, s->csv.text.error, sizeof s->error);
    return 0;
}

void own_source_read(own_source *s, const char *column) {
    if (column) s->read = find_column(s, column, 0);
    if (!s->ignored) return;
    arrfree(s->ignored);
    s->ignored = ignored_columns(s);
}

void own_source_close(own_source *s) {
    csv_close(&s->csv);
    for (size_t i = 0; i < arrlenu(s->wide); i++) free(s->wide[i].channel.text);
    arrfree(s->wide);
    arrfree(s->ignored);
    free(s->first_unknown);
    s->first_unknown = NULL;
}

/* ---- a row ---- */

const csv_field *own_field(const own_source *s, int role) {
    return s->column[role] < 0 ? NULL : &s->csv.fields[s->column[role]];
}

/* Does a row with too few or too many fields still say its record? A missing field shifts those behind it, so the name
 * must be the first, and another field must follow, or the row may be cut within the name. */
static int has_sure_name(const own_source *s) {
    return s->column[OWN_NAME] == 0 && arrlen(s->csv.fields) > 1 && own_field(s, OWN_NAME)->length > 0;
}

static own_outcome next_line(own_source *s) {
    const csv_status got = csv_next(&s->csv);
    if (got == CSV_END) return OWN_ROW_END;
    if (got == CSV_FAILED) return memcpy(s->error, s->csv.text.error, sizeof s->error), OWN_ROW_FAILED;
    if (s->csv.line > UINT32_MAX) return own_complain(s, s->csv.line, "too many lines: split the file"), OWN_ROW_FAILED;
    if (got == CSV_BAD) return own_complain(s, s->csv.line, "%s", s->csv.problem), OWN_ROW_TORN;
    if (arrlenu(s->csv.fields) != s->columns)
        return own_complain(s, s->csv.line, "%zu field%s, but the header has %zu", arrlenu(s->csv.fields),
                            plural(arrlenu(s->csv.fields)), s->columns),
               has_sure_name(s) ? OWN_ROW_BAD : OWN_ROW_TORN;
    if (own_field(s, OWN_NAME)->length == 0)
        return own_complain(s, s->csv.line, "the record's name is empty"), OWN_ROW_TORN;
    return OWN_ROW_GOOD;
}

static own_outcome take_cell(own_source *s) {
    s->column[OWN_VALUE] = s->wide[s->cell++].column;
    return OWN_ROW_GOOD;
}

own_outcome own_source_next(own_source *s) {
    own_outcome got;
    if (s->cell < arrlenu(s->wide)) return take_cell(s);
    got = next_line(s);
    if (!s->wide || got != OWN_ROW_GOOD) return got;
    s->cell = 0;
    return take_cell(s);
}

const csv_field *own_channel(const own_source *s) {
    static char only[] = "y";
    static const csv_field single = {only, 1, 0};
    if (s->wide) return &s->wide[s->cell - 1].channel;
    return s->column[OWN_CHANNEL] < 0 ? &single : own_field(s, OWN_CHANNEL);
}

static int read_value(own_source *s, const char *text, own_row *row) {
    double number;
    if (field_value(text, &number)) return row->value = (mtan_real)number, 1;
    if (s->wide)
        return own_complain(s, s->csv.line,
                            "\"%s\" in column \"%s\" is no value: a number that a float can hold, or nothing (each "
                            "column but the record's and the time's is a channel)",
                            field_quote(text).text, field_quote(own_channel(s)->text).text);
    return own_complain(s, s->csv.line, "\"%s\" is no value: a number that a float can hold, or nothing",
                        field_quote(text).text);
}

own_outcome own_read_time(own_source *s, own_row *row) {
    const char *text = own_field(s, OWN_TIME)->text;
    const own_clock clock = field_looks_like_date(text) ? OWN_DATES : OWN_NUMBERS;
    row->line = (uint32_t)s->csv.line;
    if (!(clock == OWN_DATES ? field_date(text, &row->time.ticks) : field_number(text, &row->time.number)))
        return own_complain(s, s->csv.line,
                            "\"%s\" is no time: a number, or a date as 2024-05-31 or 2024-05-31T23:59:00Z",
                            field_quote(text).text),
               OWN_ROW_BAD;
    if (clock == OWN_DATES && s->origin == OWN_ORIGIN_ZERO)
        return own_complain(s, s->csv.line, "\"%s\" is a date: --origin zero takes numbers", field_quote(text).text),
               OWN_ROW_BAD;
    if (s->clock != OWN_NO_TIMES && s->clock != clock)
        return own_complain(s, s->csv.line, "\"%s\" is a %s, but the times before are %s", field_quote(text).text,
                            clock == OWN_DATES ? "date" : "number", clock == OWN_DATES ? "numbers" : "dates"),
               OWN_ROW_BAD;
    s->clock = clock;
    return OWN_ROW_GOOD;
}

static own_outcome unknown_channel(own_source *s, const char *channel, int skip) {
    if (!skip)
        return own_complain(s, s->csv.line, "the model has no channel \"%s\" (--skip-unknown leaves such rows out)",
                            field_quote(channel).text),
               OWN_ROW_BAD;
    if (s->unknown++ == 0) s->first_unknown = tool_text(field_quote(channel).text);
    return OWN_ROW_LEFT_OUT;
}

own_outcome own_read_event(own_source *s, names *channels, int fixed, int skip_unknown, own_row *row) {
    const csv_field *channel = own_channel(s), *value = own_field(s, OWN_VALUE);
    const int is_static = s->statics && field_missing(own_field(s, OWN_TIME)->text);
    if (channel->length == 0) return own_complain(s, s->csv.line, "the channel's name is empty"), OWN_ROW_BAD;
    if (field_missing(value->text)) return s->missing += !s->wide, OWN_ROW_LEFT_OUT;
    if (!read_value(s, value->text, row)) return OWN_ROW_BAD;
    row->channel = names_find(channels, channel->text, channel->length);
    if (row->channel < 0 && fixed) return unknown_channel(s, channel->text, skip_unknown);
    row->line = (uint32_t)s->csv.line;
    if (!is_static && own_read_time(s, row) != OWN_ROW_GOOD) {
        s->cell = arrlenu(s->wide); /* the other cells would give the same result */
        return OWN_ROW_BAD;
    }
    if (row->channel < 0) row->channel = names_add(channels, channel->text, channel->length);
    if (row->channel < 0) return own_complain(s, s->csv.line, "too many channels"), OWN_ROW_FAILED;
    return is_static ? OWN_ROW_STATIC : OWN_ROW_GOOD;
}

static int read_truth(const char *text, mtan_real *value) {
    static const char *const words[] = {"false", "true", "False", "True", "FALSE", "TRUE"};
    double number;
    if (field_missing(text)) return *value = (mtan_real)NAN, 1;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(text, words[i]) == 0) return *value = (mtan_real)(i % 2), 1;
    if (!field_number(text, &number) || (number != 0 && number != 1)) return 0;
    return *value = (mtan_real)number, 1;
}

own_outcome own_read_truth(own_source *s, own_row *row) {
    const char *text = own_field(s, OWN_VALUE)->text;
    row->line = (uint32_t)s->csv.line;
    if (read_truth(text, &row->value)) return OWN_ROW_GOOD;
    return own_complain(s, s->csv.line,
                        "\"%s\" in column \"%s\" is no label: 1, 0 or nothing (each column but the record's and the "
                        "time's is a label; classes stand in a column \"label\")",
                        field_quote(text).text, field_quote(own_channel(s)->text).text),
           OWN_ROW_BAD;
}

/* ---- the rows of a record ---- */

/* 1 if a's line comes after b's, -1 if it comes before. */
static int compare_lines(const own_row *a, const own_row *b) {
    return (a->line > b->line) - (a->line < b->line);
}

static int by_number(const void *left, const void *right) {
    const own_row *a = left, *b = right;
    const double x = a->time.number, y = b->time.number;
    return x < y ? -1 : x > y ? 1 : compare_lines(a, b);
}

static int by_ticks(const void *left, const void *right) {
    const own_row *a = left, *b = right;
    const int64_t x = a->time.ticks, y = b->time.ticks;
    return x < y ? -1 : x > y ? 1 : compare_lines(a, b);
}

void own_sort(own_clock clock, own_row *rows, size_t n) {
    int (*compare)(const void *, const void *) = clock == OWN_DATES ? by_ticks : by_number;
    for (size_t i = 1; i < n; i++) /* files are mostly in order */
        if (compare(&rows[i - 1], &rows[i]) > 0) {
            qsort(rows, n, sizeof *rows, compare);
            return;
        }
}

int own_same_time(own_clock clock, own_time a, own_time b) {
    return clock == OWN_DATES ? a.ticks == b.ticks : !(a.number < b.number) && !(a.number > b.number);
}

field_excerpt own_time_text(own_clock clock, own_time time) {
    return clock == OWN_DATES ? field_date_text(time.ticks) : field_number_text(time.number);
}

/* Do times count from the record's first observation? */
static int counts(const own_source *s) {
    return s->clock == OWN_DATES || s->origin == OWN_ORIGIN_RECORD;
}

int own_moment(own_source *s, const own_row *row, own_time first, mtan_real *moment) {
    double t = row->time.number;
    if (s->clock == OWN_DATES) t = (double)(row->time.ticks - first.ticks) / FIELD_TICKS_PER_HOUR;
    else if (s->origin == OWN_ORIGIN_RECORD) t -= first.number;
    *moment = (mtan_real)t;
    return isfinite(*moment) ? 1 : own_complain(s, row->line, "the time is too large for a float");
}

/* Would counting from the first time distinguish the record's n times better? Their common start takes at least three
 * bits of each. */
static int begins_late(const own_row *rows, size_t n) {
    return fabs(rows[0].time.number) > 8 * (rows[n - 1].time.number - rows[0].time.number);
}

/* Counts two distinct times of the record that became one mtan_real; returns 0 with error set if that is refused. */
static int merge_times(own_source *s, const own_row *rows, size_t n, const own_row *a, const own_row *b,
                       const char *record, own_tally *tally) {
    tally->merged++;
    if (s->origin != OWN_ORIGIN_AUTO || s->clock == OWN_DATES || !begins_late(rows, n)) return 1;
    return own_complain(s, a->line > b->line ? a->line : b->line,
                        "the times %.17g and %.17g of record \"%s\" are one in float: use --origin record",
                        a->time.number, b->time.number, field_quote(record).text);
}

void own_add_statics(const own_source *s, own_row **rows, const own_row *statics, size_t n) {
    own_time zero = {0};
    if (n == 0) return;
    own_sort(s->clock, *rows, arrlenu(*rows));
    if (counts(s) && arrlen(*rows) > 0) zero = (*rows)[0].time;
    for (size_t i = 0; i < n; i++) {
        arrput(*rows, statics[i]);
        arrlast(*rows).time = zero;
    }
}

/* Whether a row holds the code for "not observed". It is left out before repeats are averaged, so that no code enters a
 * mean, as mtan_prep_record has it. */
static int is_code(const own_source *s, const own_row *row, const int32_t *place) {
    const mtan_prep_channel *c = s->codes ? &s->codes[place ? place[row->channel] : row->channel] : NULL;
    return c && (c->has & MTAN_HAS_MISSING) && row->value == c->missing;
}

int own_add_events(dataset *d, own_source *s, own_row *rows, size_t n, const int32_t *place, own_tally *tally) {
    const own_row *last = NULL;
    mtan_real before = 0, now;
    own_sort(s->clock, rows, n);
    if (n > INT32_MAX)
        return own_complain(s, rows[n - 1].line, "more than %d observations of one record", (int)INT32_MAX);
    for (size_t i = 0; i < n; i++) {
        const own_row *row = &rows[i];
        if (is_code(s, row, place)) continue;
        if (!own_moment(s, row, rows[0].time, &now)) return 0;
        if (last && !(before < now) && !own_same_time(s->clock, last->time, row->time) &&
            !merge_times(s, rows, n, last, row, dataset_name(d, arrlenu(d->records) - 1), tally))
            return 0;
        if (s->keep_times && (!last || before < now)) dataset_add_time_text(d, own_time_text(s->clock, row->time).text);
        dataset_add_event(d, now, place ? place[row->channel] : row->channel, row->value);
        last = row, before = now;
    }
    tally->repeats += dataset_end_record(d);
    return 1;
}

/* ---- the times of a record that has labels of times ---- */

/* Copies of what the last record has: stb_ds arrays. */
typedef struct time_labels {
    mtan_real *times, *numbers;
    int32_t *labels;
    char *texts;
} time_labels;

static time_labels take_time_labels(dataset *d, size_t C) {
    const dataset_record *r = &arrlast(d->records);
    const size_t n = (size_t)r->n_labels, cells = C * n, bytes = arrlenu(d->time_texts) - r->time_text;
    time_labels t = {NULL, NULL, NULL, NULL};
    if (C > 0) memcpy(arraddnptr(t.numbers, cells), d->numbers + r->label0 * C, cells * sizeof *t.numbers);
    memcpy(arraddnptr(t.times, n), d->label_times + r->label0, n * sizeof *t.times);
    memcpy(arraddnptr(t.labels, n), d->labels + r->label0, n * sizeof *t.labels);
    if (bytes > 0) memcpy(arraddnptr(t.texts, bytes), d->time_texts + r->time_text, bytes);
    arrsetlen(d->label_times, r->label0), arrsetlen(d->labels, r->label0), arrsetlen(d->time_texts, r->time_text);
    if (C > 0) arrsetlen(d->numbers, r->label0 * C);
    arrlast(d->records).n_labels = 0;
    return t;
}

static void free_time_labels(time_labels *t) {
    arrfree(t->times), arrfree(t->numbers), arrfree(t->labels), arrfree(t->texts);
}

static const char *text_after(const char *text) {
    return text ? text + strlen(text) + 1 : NULL;
}

/* Adds the label at a place of t, or at -1 none, with its numbers. */
static void put_time_label(dataset *d, const time_labels *t, ptrdiff_t at, size_t C, mtan_real time) {
    arrput(d->label_times, time);
    dataset_add_label(d, at < 0 ? MTAN_UNLABELED : t->labels[at]);
    for (size_t c = 0; c < C; c++) arrput(d->numbers, at < 0 ? (mtan_real)NAN : t->numbers[(size_t)at * C + c]);
}

void own_join_times(dataset *d) {
    const size_t C = d->numbers ? arrlenu(d->classes) : 0;
    const dataset_record r = arrlast(d->records);
    const mtan_event *e = r.n_events > 0 ? d->events + r.event0 : NULL;
    time_labels t = {NULL, NULL, NULL, NULL};
    if (r.n_labels == 0) return;
    t = take_time_labels(d, C);
    const char *observed = t.texts, *labelled = t.texts;
    for (int32_t i = 0; i < r.n_times; i++) labelled = text_after(labelled);
    for (int32_t i = 0, j = 0; i < r.n_events || j < r.n_labels;) {
        const int is_label = j < r.n_labels && !(i < r.n_events && e[i].time < t.times[j]);
        const mtan_real time = is_label ? t.times[j] : e[i].time;
        const int is_observed = i < r.n_events && !(e[i].time > time);
        put_time_label(d, &t, is_label ? j : -1, C, time);
        if (t.texts) dataset_add_time_text(d, is_observed ? observed : labelled);
        while (i < r.n_events && !(e[i].time > time)) i++;
        if (is_observed) observed = text_after(observed);
        if (is_label) j++, labelled = text_after(labelled);
    }
    free_time_labels(&t);
}

/* ---- records cut out of others by their labels ---- */

static own_cut *cut_at(own_cut **cuts, int32_t record) {
    const own_cut whole = {{0}, -1, 0};
    while (arrlen(*cuts) <= record) arrput(*cuts, whole);
    return *cuts + record;
}

/* Adds the record subject@time; -1: there are too many. */
static int32_t name_part(names *records, const csv_field *subject, const csv_field *time) {
    const size_t n = subject->length + 1 + time->length;
    char *text = tool_calloc(n + 1, 1);
    int32_t part;
    memcpy(text, subject->text, subject->length);
    text[subject->length] = '@';
    memcpy(text + subject->length + 1, time->text, time->length);
    part = names_add(records, text, n);
    free(text);
    return part;
}

own_outcome own_cut_record(own_source *s, names *records, own_cut **cuts, own_row *row) {
    const csv_field *time = own_field(s, OWN_TIME);
    const int32_t subject = row->record, before = names_count(records);
    int32_t part;
    if (field_missing(time->text)) return OWN_ROW_GOOD;
    if (own_read_time(s, row) != OWN_ROW_GOOD) return OWN_ROW_BAD;
    if ((part = name_part(records, own_field(s, OWN_NAME), time)) < 0)
        return own_complain(s, s->csv.line, "too many records"), OWN_ROW_FAILED;
    if (part < before && cut_at(cuts, part)->subject != subject)
        return own_complain(s, s->csv.line, "record \"%s\" is there already, and no part of \"%s\"",
                            field_quote(names_text(records, part)).text,
                            field_quote(names_text(records, subject)).text),
               OWN_ROW_BAD;
    cut_at(cuts, subject)->divided = 1;
    cut_at(cuts, part)->subject = subject;
    cut_at(cuts, part)->until = row->time;
    row->record = part;
    return OWN_ROW_GOOD;
}

int32_t own_subject(const own_cut *cuts, int32_t record) {
    return record < (int32_t)arrlen(cuts) && cuts[record].subject >= 0 ? cuts[record].subject : record;
}

int own_is_divided(const own_cut *cuts, int32_t record) {
    return record < (int32_t)arrlen(cuts) && cuts[record].divided;
}

int32_t own_group(const own_cut *cuts, int32_t record) {
    const int32_t subject = own_subject(cuts, record);
    return own_is_divided(cuts, subject) ? subject : -1;
}

void own_cut_rows(own_clock clock, const own_cut *cuts, int32_t record, own_row **rows) {
    size_t kept = 0;
    if (own_subject(cuts, record) == record) return;
    for (size_t i = 0; i < arrlenu(*rows); i++) {
        const own_time time = (*rows)[i].time, until = cuts[record].until;
        if (clock == OWN_DATES ? time.ticks <= until.ticks : time.number <= until.number) (*rows)[kept++] = (*rows)[i];
    }
    arrsetlen(*rows, kept);
}

/* ---- notes ---- */

void own_note(dataset *d, const own_source *s, const own_tally *tally) {
    const char *file = s->csv.text.name;
    if (s->ignored) dataset_note(d, "%s: columns ignored: %s", file, s->ignored);
    if (s->missing)
        dataset_note(d, "%s: %zu row%s without a %s left out", file, s->missing, plural(s->missing),
                     s->name[OWN_VALUE]);
    if (s->unknown)
        dataset_note(d, "%s: %zu %s%s of channels that the model does not have left out, \"%s\" the first", file,
                     s->unknown, s->wide ? "value" : "row", plural(s->unknown), s->first_unknown);
    if (tally->repeats)
        dataset_note(d, "%s: %zu repeat%s of a record, time and channel averaged", file, tally->repeats,
                     plural(tally->repeats));
    if (tally->merged)
        dataset_note(d, "%s: %zu time%s became equal to another by rounding", file, tally->merged,
                     plural(tally->merged));
}
