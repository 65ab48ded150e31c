/* See own.h: loading a whole file. The rows are kept in the order of the file, then grouped by record. */
#include "own.h"

#include <limits.h>
#include <stdio.h>
#include <math.h>
#include <string.h>

#include "own_rows.h"
#include "own_statics.h"

/* The rows of record r are at places start[r] to start[r + 1] - 1, in the order of the file. */
typedef struct groups {
    size_t *start;
    uint32_t *order; /* row at each place; NULL: place i holds row i */
    const own_row *rows;
} groups;

typedef struct loader {
    const own_options *options;
    names records, channels, classes;
    names group_names;
    own_statics given; /* from the file of static values */
    own_source events, labels;
    own_row *rows;         /* of the events */
    own_row *statics;      /* of the events, without a time */
    own_cut *cuts;         /* by record; shorter than the records if the last ones are whole */
    own_row *label_rows;   /* labels of times; of several labels each cell, with its label as the channel */
    mtan_task task;        /* for numbers, `classes` holds their texts */
    int32_t *record_label; /* by record; shorter than the records if the last ones have no label */
    int32_t *record_group; /* by record or subject: value in the column of groups; -1: none; may be shorter than the
                            * records */
    size_t labelled;       /* number of labels kept: of records, rows of labels of times, or cells */
    size_t other_columns;  /* in a file of several labels: columns that are not labels of the model */
    int per_time;
    own_tally tally;

    groups event_groups, static_groups, label_groups;
    own_row *mine, *mine_statics, *mine_labels; /* of one record */
    int32_t *channel_place, *class_place;       /* by number of a name, in order of appearance; NULL: the places are the
                                                 * numbers */
} loader;

/* The record of a row. Rows of a record are mostly consecutive: `last` is the record of the previous row, or -1. */
static int32_t record_of(names *records, const csv_field *name, int32_t last) {
    if (last >= 0 && strcmp(names_text(records, last), name->text) == 0) return last;
    return names_add(records, name->text, name->length);
}

/* ---- groups ---- */

/* Takes the record's group from the row just read. All records of a subject have the same group, since they stay
 * together anyway. */
static own_outcome read_group(loader *l, own_source *s, int32_t record) {
    const csv_field *text = s->group < 0 ? NULL : &s->csv.fields[s->group];
    const int32_t subject = own_subject(l->cuts, record);
    int32_t group;
    if (!text || field_missing(text->text)) return OWN_ROW_GOOD;
    group = names_add(&l->group_names, text->text, text->length);
    while (arrlen(l->record_group) <= subject) arrput(l->record_group, -1);
    if (l->record_group[subject] < 0) l->record_group[subject] = group;
    if (l->record_group[subject] == group) return OWN_ROW_GOOD;
    return own_complain(s, s->csv.line, "record \"%s\" is in group \"%s\" here and in \"%s\" elsewhere",
                        field_quote(names_text(&l->records, subject)).text, field_quote(text->text).text,
                        field_quote(names_text(&l->group_names, l->record_group[subject])).text),
           OWN_ROW_BAD;
}

/* Groups from the column are numbered after the groups of subjects. */
static int32_t group_of(const loader *l, int32_t record) {
    const int32_t subject = own_subject(l->cuts, record);
    if (subject >= (int32_t)arrlen(l->record_group) || l->record_group[subject] < 0) return own_group(l->cuts, record);
    return names_count(&l->records) + l->record_group[subject];
}

static int check_groups(dataset *d, const loader *l) {
    const int there = l->events.group >= 0 || (l->labels.csv.text.name && l->labels.group >= 0);
    if (!l->options->groups || l->options->channels || there) return 1;
    return dataset_fail(d, "%s: no column \"%s\" for groups, here or in the labels", l->events.csv.text.name,
                        field_quote(l->options->groups).text);
}

/* ---- events ---- */

static own_outcome read_event(loader *l, own_row *row) {
    own_source *s = &l->events;
    const own_outcome got = own_source_next(s);
    if (got != OWN_ROW_GOOD) return got;
    row->record = record_of(&l->records, own_field(s, OWN_NAME), row->record);
    if (row->record < 0) return own_complain(s, s->csv.line, "too many records"), OWN_ROW_FAILED;
    if (read_group(l, s, row->record) != OWN_ROW_GOOD) return OWN_ROW_BAD;
    return own_read_event(s, &l->channels, l->options->channels != NULL, l->options->skip_unknown, row);
}

static int read_events(loader *l, const char *path) {
    own_row row;
    own_outcome got;
    memset(&row, 0, sizeof row);
    row.record = -1;
    if (!own_source_open(&l->events, path, OWN_EVENTS, l->options->origin, l->options->groups)) return 0;
    l->events.keep_times = l->options->keep_times, l->events.codes = l->options->codes;
    while ((got = read_event(l, &row)) == OWN_ROW_GOOD || got == OWN_ROW_STATIC || got == OWN_ROW_LEFT_OUT)
        if (got == OWN_ROW_GOOD) arrput(l->rows, row);
        else if (got == OWN_ROW_STATIC) arrput(l->statics, row);
    return got == OWN_ROW_END;
}

/* ---- labels ---- */

/* Could these labels be a number to predict? Then there may be any number of different labels. */
static int may_be_number(const loader *l, const char *text) {
    double number;
    return l->options->task != OWN_TASK_CLASSES && field_value(text, &number);
}

static own_outcome read_class(loader *l, int32_t *label) {
    const csv_field *text = own_field(&l->labels, OWN_VALUE);
    *label = MTAN_UNLABELED;
    if (field_missing(text->text)) return l->labels.missing += !l->per_time, OWN_ROW_GOOD;
    *label = names_find(&l->classes, text->text, text->length);
    if (*label >= 0) return OWN_ROW_GOOD;
    if (l->options->task == OWN_TASK_NUMBER && !may_be_number(l, text->text))
        return own_complain(&l->labels, l->labels.csv.line, "label \"%s\" is no number that a float can hold",
                            field_quote(text->text).text),
               OWN_ROW_BAD;
    if (l->options->classes && l->options->task != OWN_TASK_NUMBER)
        return own_complain(&l->labels, l->labels.csv.line, "the model has no class \"%s\"",
                            field_quote(text->text).text),
               OWN_ROW_BAD;
    if (names_count(&l->classes) >= OWN_CLASSES_MOST && !may_be_number(l, text->text))
        return own_complain(&l->labels, l->labels.csv.line, "more than %d classes", OWN_CLASSES_MOST), OWN_ROW_BAD;
    *label = names_add(&l->classes, text->text, text->length);
    return OWN_ROW_GOOD;
}

/* Two labels of one record or time must be the same, or one of them must be missing. */
static own_outcome agree(loader *l, int32_t record, size_t line, int32_t *kept, int32_t label) {
    if (*kept == MTAN_UNLABELED) *kept = label;
    if (label == MTAN_UNLABELED || label == *kept) return OWN_ROW_GOOD;
    return own_complain(&l->labels, line, "record \"%s\"%s has label \"%s\" here and \"%s\" elsewhere",
                        field_quote(names_text(&l->records, record)).text, l->per_time ? " at one time" : "",
                        field_quote(names_text(&l->classes, label)).text,
                        field_quote(names_text(&l->classes, *kept)).text),
           OWN_ROW_BAD;
}

static own_outcome keep_label(loader *l, own_row *row) {
    if (l->per_time) {
        if (own_read_time(&l->labels, row) != OWN_ROW_GOOD) return OWN_ROW_BAD;
        l->labelled += row->channel != MTAN_UNLABELED;
        arrput(l->label_rows, *row);
        return OWN_ROW_GOOD;
    }
    while (arrlen(l->record_label) <= row->record) arrput(l->record_label, MTAN_UNLABELED);
    l->labelled += row->channel != MTAN_UNLABELED && l->record_label[row->record] == MTAN_UNLABELED;
    return agree(l, row->record, l->labels.csv.line, &l->record_label[row->record], row->channel);
}

/* ---- several labels ---- */

/* Reads a cell: whether the record, or the time, has the label of its column. */
static own_outcome read_cell(loader *l, own_row *row) {
    const csv_field *label = own_channel(&l->labels);
    if (own_read_truth(&l->labels, row) != OWN_ROW_GOOD) return OWN_ROW_BAD;
    row->channel = names_find(&l->classes, label->text, label->length);
    if (l->per_time && own_read_time(&l->labels, row) != OWN_ROW_GOOD) return OWN_ROW_BAD;
    if (!isnan(row->value)) l->labelled++;
    if (l->per_time || !isnan(row->value)) arrput(l->label_rows, *row);
    return OWN_ROW_GOOD;
}

/* The columns' names are the labels. A model has its own labels, and ignores other columns. */
static int name_columns(loader *l) {
    own_source *s = &l->labels;
    size_t kept = 0;
    for (size_t i = 0; i < arrlenu(s->wide); i++) {
        const csv_field *name = &s->wide[i].channel;
        if (!l->options->classes) (void)names_add(&l->classes, name->text, name->length);
        if (names_find(&l->classes, name->text, name->length) >= 0) s->wide[kept++] = s->wide[i];
        else free(s->wide[i].channel.text), l->other_columns += s->wide[i].column != s->read;
    }
    arrsetlen(s->wide, kept);
    s->cell = kept;
    if (kept == 0) return own_complain(s, s->csv.line, "no column \"label\", and none that is a label of the model");
    if (kept <= OWN_CLASSES_MOST) return 1;
    return own_complain(s, s->csv.line, "more than %d labels", OWN_CLASSES_MOST);
}

/* Do the columns of the labels fit the task? */
static int check_columns(loader *l) {
    own_source *s = &l->labels;
    const own_task task = l->options->task;
    if (!s->wide && task == OWN_TASK_LABELS)
        return own_complain(
            s, s->csv.line,
            "--task labels takes record and one column of 1 and 0 per label, none of them called \"%s\"",
            s->name[OWN_VALUE]);
    if (!s->wide) return 1;
    if (task == OWN_TASK_CLASSES || task == OWN_TASK_NUMBER)
        return own_complain(s, s->csv.line, "no column \"label\", which --task %s takes",
                            task == OWN_TASK_NUMBER ? "number" : "classes");
    l->task = MTAN_TASK_LABELS;
    return name_columns(l);
}

static own_outcome read_label(loader *l, own_row *row) {
    own_outcome got = own_source_next(&l->labels);
    if (got != OWN_ROW_GOOD) return got;
    row->record = record_of(&l->records, own_field(&l->labels, OWN_NAME), row->record);
    if (row->record < 0) return own_complain(&l->labels, l->labels.csv.line, "too many records"), OWN_ROW_FAILED;
    if (l->labels.cuts) got = own_cut_record(&l->labels, &l->records, &l->cuts, row);
    if (got == OWN_ROW_GOOD) got = read_group(l, &l->labels, row->record);
    if (got == OWN_ROW_GOOD && l->labels.wide) return read_cell(l, row);
    if (got == OWN_ROW_GOOD) got = read_class(l, &row->channel);
    return got == OWN_ROW_GOOD ? keep_label(l, row) : got;
}

/* How many of the different labels are numbers, whether fractions are among them, and one that is no number; or -1. */
typedef struct numeric {
    int32_t numbers, fractions, other;
} numeric;

static numeric numeric_labels(const loader *l) {
    numeric n = {0, 0, -1};
    for (int32_t i = 0; i < names_count(&l->classes); i++) {
        double number;
        if (!field_value(names_text(&l->classes, i), &number)) n.other = i;
        else n.numbers++, n.fractions |= number != floor(number);
    }
    return n;
}

enum { CODES = 20 }; /* no more different numbers than that are codes of classes */

/* Are all labels numbers that look like measurements rather than codes? See own.h. */
static int looks_like_number(const loader *l) {
    const int32_t different = names_count(&l->classes);
    const numeric n = numeric_labels(l);
    return different > CODES && n.other < 0 && (n.fractions || (size_t)different > l->labelled / 2);
}

/* Numbers that were taken as classes because there are few of them, or because of a label that is none. */
static void note_numbers(dataset *d, const loader *l) {
    const numeric n = numeric_labels(l);
    const char *file = l->labels.csv.text.name;
    if (l->task != MTAN_TASK_CLASSES || l->options->task != OWN_TASK_GUESSED || l->options->classes) return;
    if (n.numbers <= CODES) return;
    if (n.other < 0)
        dataset_note(d, "%s: %d different numbers, each taken as a class; --task number predicts a number", file,
                     (int)n.numbers);
    else
        dataset_note(d, "%s: %d of %d different labels are numbers and \"%.40s\" is not: each is taken as a class",
                     file, (int)n.numbers, (int)names_count(&l->classes),
                     field_quote(names_text(&l->classes, n.other)).text);
}

static int check_labels(loader *l) {
    enum { ENOUGH = 10 }; /* two records of two classes are a small example, not a mistake */
    const char *file = l->labels.csv.text.name;
    const own_task task = l->options->task;
    if (l->labelled == 0) snprintf(l->labels.error, sizeof l->labels.error, "%s: no label", file);
    if (l->task == MTAN_TASK_LABELS) return l->labels.error[0] == 0;
    if (task == OWN_TASK_NUMBER || (task == OWN_TASK_GUESSED && !l->options->classes && looks_like_number(l)))
        l->task = MTAN_TASK_NUMBER;
    if (l->task == MTAN_TASK_NUMBER) return l->labels.error[0] == 0;
    if (names_count(&l->classes) > OWN_CLASSES_MOST)
        snprintf(l->labels.error, sizeof l->labels.error, "%s: more than %d classes", file, OWN_CLASSES_MOST);
    else if (!l->options->classes && l->labelled >= ENOUGH && l->labelled == (size_t)names_count(&l->classes))
        snprintf(l->labels.error, sizeof l->labels.error,
                 "%s: all %zu labels are different: no class is learned from one record; is it --task number?", file,
                 l->labelled);
    return l->labels.error[0] == 0;
}

static int read_labels(loader *l, const char *path) {
    own_row row;
    own_outcome got;
    memset(&row, 0, sizeof row);
    row.record = -1;
    if (!own_source_open(&l->labels, path, OWN_LABELS, l->options->origin, l->options->groups)) return 0;
    own_source_read(&l->labels, l->options->read);
    if (!check_columns(l)) return 0;
    l->per_time = own_field(&l->labels, OWN_TIME) != NULL && !l->labels.cuts;
    l->labels.clock = l->events.clock;
    while ((got = read_label(l, &row)) == OWN_ROW_GOOD) continue;
    return got == OWN_ROW_END && check_labels(l);
}

/* ---- from rows to records ---- */

static groups group(const own_row *rows, int32_t n_records) {
    groups g = {tool_calloc((size_t)n_records + 2, sizeof *g.start), NULL, rows};
    const size_t n = arrlenu(rows);
    int together = 1;
    for (size_t i = 0; i < n; i++) {
        g.start[rows[i].record + 2]++;
        together = together && (i == 0 || rows[i - 1].record <= rows[i].record);
    }
    for (int32_t r = 2; r < n_records + 2; r++) g.start[r] += g.start[r - 1];
    if (!together) g.order = tool_calloc(n, sizeof *g.order);
    for (size_t i = 0; i < n; i++) { /* start[r + 1] moves from the start of r to its end */
        const size_t at = g.start[rows[i].record + 1]++;
        if (g.order) g.order[at] = (uint32_t)i;
    }
    return g;
}

/* Copies the record's rows to *mine, an stb_ds array. */
static void gather(const groups *g, int32_t record, own_row **mine) {
    const size_t first = g->start[record], n = g->start[record + 1] - first;
    arrsetlen(*mine, n);
    for (size_t i = 0; i < n; i++) (*mine)[i] = g->rows[g->order ? g->order[first + i] : first + i];
}

static void ungroup(groups *g) {
    free(g->start), free(g->order);
}

/* Adds the index of a class, or the number in the label's text. */
static void add_label(dataset *d, const loader *l, int32_t label) {
    const int none = label == MTAN_UNLABELED;
    double number = NAN;
    if (l->task == MTAN_TASK_NUMBER) {
        if (!none) field_value(names_text(&l->classes, label), &number);
        arrput(d->numbers, (mtan_real)number);
        dataset_add_label(d, none ? label : 0);
    } else dataset_add_label(d, none || !l->class_place ? label : l->class_place[label]);
}

/* Adds several labels of one record, or of one of its times. */
static int add_cells(dataset *d, loader *l, const own_row *cells, size_t n) {
    const size_t C = arrlenu(d->classes);
    mtan_real *row = arraddnptr(d->numbers, C);
    int32_t label = MTAN_UNLABELED;
    for (size_t c = 0; c < C; c++) row[c] = (mtan_real)NAN;
    for (size_t i = 0; i < n; i++) {
        const own_row *cell = &cells[i];
        mtan_real *known = &row[l->class_place ? l->class_place[cell->channel] : cell->channel];
        if (isnan(cell->value)) continue;
        if (fabs(*known - cell->value) > 0)
            return own_complain_truth(&l->labels, cell, names_text(&l->records, cell->record),
                                      names_text(&l->classes, cell->channel), *known);
        *known = cell->value, label = 0;
    }
    dataset_add_label(d, label);
    return 1;
}

/* Adds the label or labels in the rows of one time. */
static int add_time_label(dataset *d, loader *l, const own_row *rows, size_t n) {
    int32_t label = rows[0].channel;
    if (l->task == MTAN_TASK_LABELS) return add_cells(d, l, rows, n);
    for (size_t i = 1; i < n; i++)
        if (agree(l, rows[0].record, rows[i].line, &label, rows[i].channel) != OWN_ROW_GOOD) return 0;
    add_label(d, l, label);
    return 1;
}

/* Adds labels of times, ascending; `first` is the time of the record's first observation, or NULL. */
static int add_time_labels(dataset *d, loader *l, const own_time *first) {
    own_row *mine = l->mine_labels;
    const size_t n = arrlenu(mine);
    if (n > INT32_MAX) return own_complain(&l->labels, mine[0].line, "more than %d labels of one record", INT32_MAX);
    own_sort(l->labels.clock, mine, n);
    for (size_t i = 0, j; i < n; i = j) {
        mtan_real moment;
        for (j = i + 1; j < n && own_same_time(l->labels.clock, mine[i].time, mine[j].time);) j++;
        if (!own_moment(&l->labels, &mine[i], first ? *first : mine[0].time, &moment)) return 0;
        arrput(d->label_times, moment);
        if (!add_time_label(d, l, mine + i, j - i)) return 0;
        if (l->options->keep_times) dataset_add_time_text(d, own_time_text(l->labels.clock, mine[i].time).text);
    }
    own_join_times(d);
    return 1;
}

static int32_t label_of(const loader *l, int32_t record) {
    return record < (int32_t)arrlen(l->record_label) ? l->record_label[record] : MTAN_UNLABELED;
}

/* Does the record have a label of its own, or one of several? */
static int has_label(const loader *l, int32_t record) {
    if (l->task == MTAN_TASK_LABELS) return l->label_groups.start[record + 1] > l->label_groups.start[record];
    return label_of(l, record) != MTAN_UNLABELED;
}

static int add_record_label(dataset *d, loader *l, int32_t record) {
    if (!has_label(l, record)) return 1;
    if (l->task != MTAN_TASK_LABELS) return add_label(d, l, label_of(l, record)), 1;
    gather(&l->label_groups, record, &l->mine_labels);
    return add_cells(d, l, l->mine_labels, arrlenu(l->mine_labels));
}

/* Given channels or classes keep their places: then NULL. */
static int32_t *set_names(char ***texts, char **given, const names *found) {
    if (!given) return names_sorted(found, texts);
    for (size_t i = 0; i < arrlenu(given); i++) arrput(*texts, tool_text(given[i]));
    return NULL;
}

/* Collects the rows of a record, up to the time of its label. */
static void gather_events(loader *l, int32_t record) {
    const int32_t subject = own_subject(l->cuts, record);
    gather(&l->event_groups, subject, &l->mine);
    gather(&l->static_groups, subject, &l->mine_statics);
    own_statics_add(&l->given, names_text(&l->records, subject), l->channel_place ? names_count(&l->channels) : 0,
                    &l->mine_statics);
    own_cut_rows(l->events.clock, l->cuts, record, &l->mine);
    own_add_statics(&l->events, &l->mine, l->mine_statics, arrlenu(l->mine_statics));
}

static int add_record(dataset *d, loader *l, int32_t record) {
    const own_time *first;
    dataset_add_record(d, names_text(&l->records, record), group_of(l, record));
    gather_events(l, record);
    if (!own_add_events(d, &l->events, l->mine, arrlenu(l->mine), l->channel_place, &l->tally))
        return dataset_fail(d, "%s", l->events.error);
    if (!l->per_time) return add_record_label(d, l, record) || dataset_fail(d, "%s", l->labels.error);
    first = arrlen(l->mine) > 0 ? &l->mine[0].time : NULL;
    gather(&l->label_groups, record, &l->mine_labels);
    return add_time_labels(d, l, first) || dataset_fail(d, "%s", l->labels.error);
}

/* Checks that no channel of the events has the name of a static value, or of one of its values ("sex" or "sex=F"): a
 * model knows only channels, and could not distinguish the two. */
static int tell_apart(dataset *d, const loader *l) {
    char **statics = l->given.channels;
    const char *clash = NULL;
    names stems;
    memset(&stems, 0, sizeof stems);
    for (size_t i = 0; i < arrlenu(statics); i++) names_add(&stems, statics[i], strcspn(statics[i], "="));
    for (int32_t i = 0; !clash && i < names_count(&l->channels); i++) {
        const char *channel = names_text(&l->channels, i);
        if (names_find(&stems, channel, strcspn(channel, "=")) >= 0) clash = channel;
    }
    names_free(&stems);
    return !clash || dataset_fail(d, "%s: the events have a channel \"%s\": what does not change needs another name",
                                  l->options->statics, field_quote(clash).text);
}

/* The channels of the file of statics come first in the data set, although until here they are numbered after those of
 * the events. */
static int place_channels(dataset *d, loader *l) {
    char **statics = l->given.channels;
    const int32_t n = (int32_t)arrlen(statics);
    if (!tell_apart(d, l)) return 0;
    for (int32_t i = 0; i < n; i++) arrput(d->channels, tool_text(statics[i]));
    l->channel_place = set_names(&d->channels, l->options->channels, &l->channels);
    for (size_t i = 0; n && i < arrlenu(l->channel_place); i++) l->channel_place[i] += n;
    for (int32_t i = 0; i < n; i++) arrput(l->channel_place, i);
    d->statics = n;
    return 1;
}

static int build(dataset *d, loader *l) {
    const int32_t n = names_count(&l->records);
    if (!place_channels(d, l)) return 0;
    d->task = l->task;
    if (l->task == MTAN_TASK_NUMBER) arrput(d->classes, tool_text("label"));
    else l->class_place = set_names(&d->classes, l->options->classes, &l->classes);
    l->event_groups = group(l->rows, n);
    l->static_groups = group(l->statics, n);
    l->label_groups = group(l->label_rows, n);
    arrsetcap(d->records, (size_t)n);
    arrsetcap(d->events, arrlenu(l->rows) + arrlenu(l->statics) +
                             1); /* never NULL: records point into it even if they have no events */
    for (int32_t r = 0; r < n; r++) {
        if (own_is_divided(l->cuts, r) && !has_label(l, r)) continue;
        if (!add_record(d, l, r)) return 0;
    }
    strcpy(d->unit, l->events.clock == OWN_DATES || l->labels.clock == OWN_DATES ? "hours" : "");
    return 1;
}

/* ---- the whole file ---- */

/* What the labels have to do with the observations. */
typedef struct overlap {
    size_t labelled, empty;            /* empty: labelled, but without an observation */
    ptrdiff_t first_empty, unlabelled; /* the first of those; the first with observations, but no label; -1: none */
} overlap;

static overlap overlap_of(const dataset *d) {
    overlap x = {0, 0, -1, -1};
    for (size_t i = 0; i < arrlenu(d->records); i++) {
        const dataset_record *r = &d->records[i];
        const int empty = r->n_events == 0, labelled = dataset_labelled(d, r);
        x.labelled += (size_t)labelled, x.empty += (size_t)(labelled && empty);
        if (labelled && empty && x.first_empty < 0) x.first_empty = (ptrdiff_t)i;
        if (!labelled && !empty && x.unlabelled < 0) x.unlabelled = (ptrdiff_t)i;
    }
    return x;
}

int own_labels_fit(const dataset *d, const char *events, const char *labels, char error[512]) {
    const overlap x = overlap_of(d);
    if (x.empty == 0 || x.empty < x.labelled || x.unlabelled < 0) return 1;
    snprintf(
        error, 512,
        "%.120s: no labelled record (\"%.40s\" is the first) has an observation, and no record of %.120s (\"%.40s\" "
        "is the first) has a label: are the ids written in the same way?",
        labels, field_quote(dataset_name(d, (size_t)x.first_empty)).text, events,
        field_quote(dataset_name(d, (size_t)x.unlabelled)).text);
    return 0;
}

static void note_labels(dataset *d, const loader *l) {
    static const own_tally none;
    const overlap x = overlap_of(d);
    size_t without = 0;
    own_note(d, &l->labels, &none);
    for (size_t i = 0; i < arrlenu(d->records); i++) without += d->records[i].n_labels == 0;
    if (x.empty)
        dataset_note(d, "%s: labelled records without an observation: %zu of %zu", l->labels.csv.text.name, x.empty,
                     x.labelled);
    if (without) dataset_note(d, "%s: records without a label: %zu", l->labels.csv.text.name, without);
    if (l->other_columns)
        dataset_note(d, "%s: columns that are no label of the model: %zu", l->labels.csv.text.name, l->other_columns);
    note_numbers(d, l);
    if (l->task == MTAN_TASK_NUMBER && l->options->task == OWN_TASK_GUESSED)
        dataset_note(d, "%s: %d different numbers: a number to predict; --task classes takes them as classes",
                     l->labels.csv.text.name, (int)names_count(&l->classes));
}

static int load(dataset *d, loader *l, const char *events, const char *labels) {
    if (!names_set(&l->channels, l->options->channels) ||
        !names_set(&l->classes, l->options->task == OWN_TASK_NUMBER ? NULL : l->options->classes))
        return dataset_fail(d, "the model has two channels or two classes of one name");
    if (!read_events(l, events)) return dataset_fail(d, "%s", l->events.error);
    if (labels && !read_labels(l, labels)) return dataset_fail(d, "%s", l->labels.error);
    if (l->options->statics &&
        !own_statics_read(&l->given, l->options->statics, l->options->channels, l->options->skip_unknown))
        return dataset_fail(d, "%s", l->given.error);
    if (names_count(&l->records) == 0) return dataset_fail(d, "%s: no record", l->events.csv.text.name);
    if (!check_groups(d, l) || !build(d, l)) return 0;
    if (labels && !own_labels_fit(d, l->events.csv.text.name, l->labels.csv.text.name, d->error)) return 0;
    own_note(d, &l->events, &l->tally);
    if (labels) note_labels(d, l);
    if (l->options->statics) own_statics_note(&l->given, d, l->options->statics);
    return 1;
}

static void free_loader(loader *l) {
    own_source_close(&l->events), own_source_close(&l->labels);
    names_free(&l->records), names_free(&l->channels), names_free(&l->classes);
    names_free(&l->group_names), arrfree(l->record_group), own_statics_free(&l->given);
    arrfree(l->rows), arrfree(l->statics), arrfree(l->label_rows), arrfree(l->record_label), arrfree(l->cuts);
    arrfree(l->mine), arrfree(l->mine_statics), arrfree(l->mine_labels);
    arrfree(l->channel_place), arrfree(l->class_place);
    ungroup(&l->event_groups), ungroup(&l->static_groups), ungroup(&l->label_groups);
}

int own_load(dataset *d, const char *events, const char *labels, const own_options *o) {
    static const own_options plain;
    loader l;
    int good;
    memset(d, 0, sizeof *d);
    memset(&l, 0, sizeof l);
    l.options = o ? o : &plain;
    good = load(d, &l, events, labels);
    free_loader(&l);
    if (!good) dataset_free(d);
    return good;
}
