/* See own_tolerant.h. */
#include "own_tolerant.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "field.h"
#include "own_rows.h"

void problems_add(problems *p, const char *text) {
    if (p->count++ < p->most) arrput(p->text, tool_text(text));
}

void problems_end(problems *p, const char *text) {
    p->count++;
    arrput(p->text, tool_text(text));
}

void problems_free(problems *p) {
    for (size_t i = 0; i < arrlenu(p->text); i++) free(p->text[i]);
    arrfree(p->text);
}

typedef struct reading {
    problems *problems;
    own_source events, labels;
    names records, channels, classes;
    own_row *rows, *statics,
        *label_rows; /* good rows in the order of the file; `channel` holds a label's class or, with several labels, its
                      * index */
    own_cut *cuts;
    int32_t *channel_place, *class_place; /* names in order of appearance -> sorted */
    int per_time;
} reading;

/* ---- rows ---- */

static own_outcome next_event(reading *r, own_row *row) {
    const csv_field *name;
    const own_outcome got = own_source_next(&r->events);
    if (got != OWN_ROW_GOOD) return got;
    name = own_field(&r->events, OWN_NAME);
    if ((row->record = names_add(&r->records, name->text, name->length)) < 0)
        return own_complain(&r->events, r->events.csv.line, "too many records"), OWN_ROW_FAILED;
    return own_read_event(&r->events, &r->channels, 0, 0, row);
}

static own_outcome next_label(reading *r, own_row *row) {
    const csv_field *name, *label;
    const own_outcome got = own_source_next(&r->labels);
    if (got != OWN_ROW_GOOD) return got;
    name = own_field(&r->labels, OWN_NAME), label = own_field(&r->labels, OWN_VALUE);
    if ((row->record = names_add(&r->records, name->text, name->length)) < 0)
        return own_complain(&r->labels, r->labels.csv.line, "too many records"), OWN_ROW_FAILED;
    row->line = (uint32_t)r->labels.csv.line;
    if (r->per_time && own_read_time(&r->labels, row) != OWN_ROW_GOOD) return OWN_ROW_BAD;
    if (r->labels.cuts && own_cut_record(&r->labels, &r->records, &r->cuts, row) != OWN_ROW_GOOD) return OWN_ROW_BAD;
    if (r->labels.wide && own_read_truth(&r->labels, row) != OWN_ROW_GOOD) return OWN_ROW_BAD;
    if (r->labels.wide) label = own_channel(&r->labels);
    else if (field_missing(label->text)) return OWN_ROW_LEFT_OUT;
    row->channel = names_add(&r->classes, label->text, label->length);
    return OWN_ROW_GOOD;
}

/* Reads all rows of one file; 0 if it cannot be read to its end. */
static int read_rows(reading *r, own_source *s, own_outcome (*next)(reading *, own_row *), own_row **rows) {
    own_outcome got;
    own_row row;
    memset(&row, 0, sizeof row);
    while ((got = next(r, &row)) != OWN_ROW_END) {
        if (got == OWN_ROW_GOOD) arrput(*rows, row);
        else if (got == OWN_ROW_STATIC) arrput(r->statics, row);
        else if (got == OWN_ROW_FAILED) return problems_end(r->problems, s->error), 0;
        else if (got != OWN_ROW_LEFT_OUT) problems_add(r->problems, s->error);
    }
    return 1;
}

static int read_events(reading *r, const char *path, own_origin origin) {
    if (own_source_open(&r->events, path, OWN_EVENTS, origin, NULL))
        return read_rows(r, &r->events, next_event, &r->rows);
    return problems_end(r->problems, r->events.error), 0;
}

static int read_labels(reading *r, const char *path, own_origin origin) {
    if (!own_source_open(&r->labels, path, OWN_LABELS, origin, NULL))
        return problems_end(r->problems, r->labels.error), 0;
    r->per_time = own_field(&r->labels, OWN_TIME) != NULL && !r->labels.cuts;
    r->labels.clock = r->events.clock;
    return read_rows(r, &r->labels, next_label, &r->label_rows);
}

/* ---- records ---- */

/* Rows, grouped by record. */
typedef struct grouped {
    own_row *rows;
    size_t *first; /* (records + 1) index of each record's first row */
} grouped;

static grouped by_record(const own_row *rows, int32_t records) {
    grouped g = {tool_calloc(arrlenu(rows), sizeof *g.rows), tool_calloc((size_t)records + 1, sizeof *g.first)};
    size_t *at = tool_calloc((size_t)records + 1, sizeof *at);
    for (size_t i = 0; i < arrlenu(rows); i++) g.first[rows[i].record + 1]++;
    for (int32_t k = 0; k < records; k++) g.first[k + 1] += g.first[k], at[k] = g.first[k];
    for (size_t i = 0; i < arrlenu(rows); i++) g.rows[at[rows[i].record]++] = rows[i];
    free(at);
    return g;
}

static size_t count_of(const grouped *g, int32_t record) {
    return g->first[record + 1] - g->first[record];
}

static void free_grouped(grouped *g) {
    free(g->rows), free(g->first);
}

static void refuse_label(reading *r, const own_row *kept, const own_row *other) {
    own_complain(&r->labels, other->line, "record \"%s\"%s has label \"%s\" here and \"%s\" in line %u",
                 field_quote(names_text(&r->records, other->record)).text, r->per_time ? " at one time" : "",
                 field_quote(names_text(&r->classes, other->channel)).text,
                 field_quote(names_text(&r->classes, kept->channel)).text, (unsigned)kept->line);
    problems_add(r->problems, r->labels.error);
}

static void refuse_truth(reading *r, const own_row *cell, mtan_real kept) {
    own_complain_truth(&r->labels, cell, names_text(&r->records, cell->record), names_text(&r->classes, cell->channel),
                       kept);
    problems_add(r->problems, r->labels.error);
}

/* Adds one row of labels: a value for each label column of the file. */
static void add_truths(dataset *d, reading *r, const own_row *cells, size_t n) {
    const size_t C = arrlenu(d->classes);
    mtan_real *row = arraddnptr(d->numbers, C);
    for (size_t c = 0; c < C; c++) row[c] = (mtan_real)NAN;
    for (size_t i = 0; i < n; i++) {
        mtan_real *kept = &row[r->class_place[cells[i].channel]];
        if (isnan(*kept)) *kept = cells[i].value;
        else if (fabs(*kept - cells[i].value) > 0) refuse_truth(r, &cells[i], *kept);
    }
    dataset_add_label(d, 0);
}

/* If one record or time has two labels, the first one counts. `first` is the time of the record's first observation, or
 * NULL. */
static void add_labels(dataset *d, reading *r, own_row *rows, size_t n, const own_time *first) {
    if (r->per_time) own_sort(r->labels.clock, rows, n);
    for (size_t i = 0, j; i < n; i = j) {
        mtan_real moment;
        for (j = i + 1; j < n && (!r->per_time || own_same_time(r->labels.clock, rows[i].time, rows[j].time)); j++)
            if (!r->labels.wide && rows[j].channel != rows[i].channel) refuse_label(r, &rows[i], &rows[j]);
        if (r->per_time && !own_moment(&r->labels, &rows[i], first ? *first : rows[0].time, &moment)) {
            problems_add(r->problems, r->labels.error);
            continue;
        }
        if (r->per_time) arrput(d->label_times, moment);
        if (r->labels.wide) add_truths(d, r, rows + i, j - i);
        else dataset_add_label(d, r->class_place[rows[i].channel]);
    }
    if (r->per_time) own_join_times(d);
}

/* The record's rows up to the time of its label: an stb_ds array. */
static void gather_events(reading *r, const grouped *events, const grouped *statics, int32_t record, own_row **mine) {
    const int32_t subject = own_subject(r->cuts, record);
    const size_t n = count_of(events, subject);
    arrsetlen(*mine, n);
    if (n) memcpy(*mine, events->rows + events->first[subject], n * sizeof **mine);
    own_cut_rows(r->events.clock, r->cuts, record, mine);
    own_add_statics(&r->events, mine, statics->rows + statics->first[subject], count_of(statics, subject));
}

static void build(dataset *d, reading *r) {
    const int32_t n = names_count(&r->records);
    grouped events = by_record(r->rows, n), statics = by_record(r->statics, n), labels = by_record(r->label_rows, n);
    own_tally tally = {0, 0};
    own_row *mine = NULL;
    r->channel_place = names_sorted(&r->channels, &d->channels);
    r->class_place = names_sorted(&r->classes, &d->classes);
    if (r->labels.wide) d->task = MTAN_TASK_LABELS;
    for (int32_t i = 0; i < n; i++) {
        own_row *of_labels = labels.rows + labels.first[i];
        const size_t n_labels = count_of(&labels, i);
        if (own_is_divided(r->cuts, i) && n_labels == 0) continue;
        dataset_add_record(d, names_text(&r->records, i), own_group(r->cuts, i));
        gather_events(r, &events, &statics, i, &mine);
        if (!own_add_events(d, &r->events, mine, arrlenu(mine), r->channel_place, &tally)) {
            problems_add(r->problems, r->events.error);
            dataset_end_record(d);
        }
        if (n_labels > 0) add_labels(d, r, of_labels, n_labels, arrlen(mine) ? &mine[0].time : NULL);
    }
    strcpy(d->unit, r->events.clock == OWN_DATES ? "hours" : "");
    free_grouped(&events), free_grouped(&statics), free_grouped(&labels);
    arrfree(mine);
}

static void free_reading(reading *r) {
    own_source_close(&r->events), own_source_close(&r->labels);
    names_free(&r->records), names_free(&r->channels), names_free(&r->classes);
    arrfree(r->rows), arrfree(r->statics), arrfree(r->label_rows), arrfree(r->cuts);
    arrfree(r->channel_place), arrfree(r->class_place);
}

int tolerant_load(dataset *d, problems *p, const char *events, const char *labels, own_origin origin) {
    reading r;
    int good;
    memset(d, 0, sizeof *d);
    memset(&r, 0, sizeof r);
    r.problems = p;
    good = read_events(&r, events, origin) && (!labels || read_labels(&r, labels, origin));
    if (good && names_count(&r.records) == 0) {
        char text[512];
        snprintf(text, sizeof text, "%.400s: no record", events);
        problems_end(p, text);
        good = 0;
    }
    if (good) build(d, &r);
    free_reading(&r);
    return good;
}
