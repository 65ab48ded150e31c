/* See own_columns.h. Each record's rows go through own_rows.h, like the rows of a file. */
#include "own_columns.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "own_rows.h"

typedef struct taking {
    const own_columns *columns;
    const own_options *options;
    own_source events, labels; /* used for clock, origin, error and counts; no file is open */
    const char **channels;     /* (n_channels) */
    const char **classes;      /* (n_classes) */
    int32_t *channel_place;    /* (n_channels) places in the data set; -1: the model has no such channel */
    int32_t *class_place;      /* (n_classes) */
    own_row *rows, *timeless;  /* of one record: stb_ds arrays */
    own_tally tally;
} taking;

static char events_name[] = "events", labels_name[] = "labels";

static void source_start(own_source *s, own_table table, char *name, const taking *t) {
    memset(s, 0, sizeof *s);
    s->table = table, s->origin = t->options->origin, s->codes = t->options->codes;
    s->clock = t->columns->date ? OWN_DATES : OWN_NUMBERS;
    s->csv.text.name = name;
    s->name[OWN_VALUE] = table == OWN_LABELS ? "label" : "value";
}

/* The texts of a list, n of them. */
static const char **list_of(const char *texts, int32_t n) {
    const char **list = tool_calloc((size_t)n + 1, sizeof *list);
    for (int32_t i = 0; i < n; i++, texts += strlen(texts) + 1) list[i] = texts;
    return list;
}

/* ---- places of names ---- */

/* Which of n names occur, as flags. */
static unsigned char *used_names(const int32_t *which, size_t rows, int32_t n) {
    unsigned char *used = tool_calloc((size_t)n + 1, 1);
    for (size_t i = 0; i < rows; i++)
        if (which[i] >= 0 && which[i] < n) used[which[i]] = 1;
    return used;
}

/* Appends the used names from `first` on to *texts, sorted as from a file; place[i] is where name i went. */
static void place_sorted(char ***texts, int32_t *place, const char **list, int32_t first, int32_t n,
                         const unsigned char *used) {
    names found;
    int32_t *sorted;
    const int32_t before = (int32_t)arrlen(*texts);
    memset(&found, 0, sizeof found);
    for (int32_t i = first; i < n; i++) place[i] = used[i] ? names_add(&found, list[i], strlen(list[i])) : -1;
    sorted = names_sorted(&found, texts);
    for (int32_t i = first; i < n; i++)
        if (place[i] >= 0) place[i] = before + sorted[place[i]];
    arrfree(sorted);
    names_free(&found);
}

/* Names of a model keep their places. Returns 0 if two names are the same. */
static int place_given(char ***texts, int32_t *place, const char **list, int32_t n, char **given) {
    names known;
    memset(&known, 0, sizeof known);
    const int good = names_set(&known, given);
    for (size_t i = 0; i < arrlenu(given); i++) arrput(*texts, tool_text(given[i]));
    for (int32_t i = 0; i < n; i++) place[i] = names_find(&known, list[i], strlen(list[i]));
    names_free(&known);
    return good;
}

static int place_channels(dataset *d, taking *t) {
    const own_columns *c = t->columns;
    unsigned char *used;
    t->channel_place = tool_calloc((size_t)c->n_channels + 1, sizeof *t->channel_place);
    if (t->options->channels)
        return place_given(&d->channels, t->channel_place, t->channels, c->n_channels, t->options->channels) ||
               dataset_fail(d, "the model has two channels of one name");
    used = used_names(c->channel, (size_t)c->offset[c->n_records], c->n_channels);
    for (int32_t i = 0; i < c->statics; i++) t->channel_place[i] = i, arrput(d->channels, tool_text(t->channels[i]));
    place_sorted(&d->channels, t->channel_place, t->channels, c->statics, c->n_channels, used);
    d->statics = c->statics;
    free(used);
    return 1;
}

static size_t label_count(const own_columns *c) {
    return c->label_offset ? (size_t)c->label_offset[c->n_records] : (size_t)c->n_records;
}

/* Names keep their given order, like the columns of a file. */
static int place_several(dataset *d, taking *t) {
    const own_columns *c = t->columns;
    d->task = MTAN_TASK_LABELS;
    if (t->options->classes)
        return place_given(&d->classes, t->class_place, t->classes, c->n_classes, t->options->classes) ||
               dataset_fail(d, "the model has two labels of one name");
    for (int32_t i = 0; i < c->n_classes; i++) t->class_place[i] = i, arrput(d->classes, tool_text(t->classes[i]));
    return c->n_classes <= OWN_CLASSES_MOST || dataset_fail(d, "more than %d labels", OWN_CLASSES_MOST);
}

static int place_classes(dataset *d, taking *t) {
    const own_columns *c = t->columns;
    unsigned char *used;
    t->class_place = tool_calloc((size_t)c->n_classes + 1, sizeof *t->class_place);
    if (c->several) return place_several(d, t);
    if (c->number) return d->task = MTAN_TASK_NUMBER, arrput(d->classes, tool_text("label")), 1;
    if (!c->label) return 1;
    if (t->options->classes)
        return place_given(&d->classes, t->class_place, t->classes, c->n_classes, t->options->classes) ||
               dataset_fail(d, "the model has two classes of one name");
    used = used_names(c->label, label_count(c), c->n_classes);
    place_sorted(&d->classes, t->class_place, t->classes, 0, c->n_classes, used);
    free(used);
    return arrlen(d->classes) <= OWN_CLASSES_MOST || dataset_fail(d, "more than %d classes", OWN_CLASSES_MOST);
}

/* ---- rows ---- */

/* Takes the time of a row or label: OWN_ROW_GOOD, or OWN_ROW_STATIC if it has none. */
static own_outcome take_time(own_source *s, own_row *row, size_t at, const double *time, const int64_t *date) {
    row->line = (uint32_t)(at + 1);
    if (date) return row->time.ticks = date[at], date[at] == OWN_NO_DATE ? OWN_ROW_STATIC : OWN_ROW_GOOD;
    row->time.number = time[at];
    if (isnan(time[at])) return OWN_ROW_STATIC;
    if (isfinite(time[at])) return OWN_ROW_GOOD;
    return own_complain(s, at + 1, "the time is infinite"), OWN_ROW_BAD;
}

static own_outcome take_channel(taking *t, own_row *row, size_t at) {
    own_source *s = &t->events;
    const int32_t channel = t->columns->channel[at];
    if (channel < 0 || channel >= t->columns->n_channels)
        return own_complain(s, at + 1, "channel %d: there are %d", (int)channel, (int)t->columns->n_channels),
               OWN_ROW_BAD;
    row->channel = channel;
    if (t->channel_place[channel] >= 0) return OWN_ROW_GOOD;
    if (!t->options->skip_unknown)
        return own_complain(s, at + 1, "the model has no channel \"%s\" (skip_unknown leaves such rows out)",
                            field_quote(t->channels[channel]).text),
               OWN_ROW_BAD;
    if (s->unknown++ == 0) s->first_unknown = tool_text(field_quote(t->channels[channel]).text);
    return OWN_ROW_LEFT_OUT;
}

static own_outcome take_row(taking *t, own_row *row, size_t at) {
    own_source *s = &t->events;
    const double value = t->columns->value[at];
    own_outcome got;
    if (isnan(value)) return s->missing++, OWN_ROW_LEFT_OUT;
    if (!(fabs(value) <= FLT_MAX))
        return own_complain(s, at + 1, "%g is no value: a number that a float can hold", value), OWN_ROW_BAD;
    row->value = (mtan_real)value;
    if ((got = take_channel(t, row, at)) != OWN_ROW_GOOD) return got;
    return take_time(s, row, at, t->columns->time, t->columns->date);
}

static int take_events(dataset *d, taking *t, int32_t record) {
    const own_columns *c = t->columns;
    own_row row;
    memset(&row, 0, sizeof row);
    arrsetlen(t->rows, 0), arrsetlen(t->timeless, 0);
    for (int64_t i = c->offset[record]; i < c->offset[record + 1]; i++) {
        const own_outcome got = take_row(t, &row, (size_t)i);
        if (got == OWN_ROW_GOOD) arrput(t->rows, row);
        else if (got == OWN_ROW_STATIC) arrput(t->timeless, row);
        else if (got == OWN_ROW_BAD) return dataset_fail(d, "%s", t->events.error);
    }
    own_add_statics(&t->events, &t->rows, t->timeless, arrlenu(t->timeless));
    return own_add_events(d, &t->events, t->rows, arrlenu(t->rows), t->channel_place, &t->tally) ||
           dataset_fail(d, "%s", t->events.error);
}

/* ---- labels ---- */

/* Adds the label at a place of the columns to the record in progress. Returns 1, or 0 with an error. */

static int take_class(dataset *d, const taking *t, size_t at) {
    const int32_t label = t->columns->label[at];
    if (label == MTAN_UNLABELED) return dataset_add_label(d, label), 1;
    if (label < 0 || label >= t->columns->n_classes)
        return dataset_fail(d, "labels:%zu: class %d: there are %d", at + 1, (int)label, (int)t->columns->n_classes);
    if (t->class_place[label] < 0)
        return dataset_fail(d, "labels:%zu: the model has no class \"%s\"", at + 1,
                            field_quote(t->classes[label]).text);
    return dataset_add_label(d, t->class_place[label]), 1;
}

static int take_number(dataset *d, const taking *t, size_t at) {
    const double number = t->columns->number[at];
    if (!isnan(number) && !(fabs(number) <= FLT_MAX))
        return dataset_fail(d, "labels:%zu: %g is no number that a float can hold", at + 1, number);
    arrput(d->numbers, (mtan_real)number);
    return dataset_add_label(d, isnan(number) ? MTAN_UNLABELED : 0), 1;
}

static int take_several(dataset *d, const taking *t, size_t at) {
    const size_t C = arrlenu(d->classes), n = (size_t)t->columns->n_classes;
    mtan_real *row = arraddnptr(d->numbers, C);
    int32_t label = MTAN_UNLABELED;
    for (size_t c = 0; c < C; c++) row[c] = (mtan_real)NAN;
    for (size_t i = 0; i < n; i++) {
        const double x = t->columns->several[at * n + i];
        if (isnan(x)) continue;
        if (t->class_place[i] < 0)
            return dataset_fail(d, "labels:%zu: the model has no label \"%s\"", at + 1,
                                field_quote(t->classes[i]).text);
        if (x < 0 || x > 1 || (x > 0 && x < 1))
            return dataset_fail(d, "labels:%zu: \"%s\" is %g: it must be 1 or 0", at + 1,
                                field_quote(t->classes[i]).text, x);
        row[t->class_place[i]] = (mtan_real)x, label = 0;
    }
    return dataset_add_label(d, label), 1;
}

static int take_label(dataset *d, const taking *t, size_t at) {
    return t->columns->several  ? take_several(d, t, at)
           : t->columns->number ? take_number(d, t, at)
                                : take_class(d, t, at);
}

/* Is there a label at this place? */
static int is_labelled(const own_columns *c, size_t at) {
    if (!c->several) return c->number ? !isnan(c->number[at]) : c->label[at] != MTAN_UNLABELED;
    for (int32_t i = 0; i < c->n_classes; i++)
        if (!isnan(c->several[at * (size_t)c->n_classes + (size_t)i])) return 1;
    return 0;
}

/* Two labels of one time must be the same, or one of them must be missing. */
static int take_time_labels(dataset *d, taking *t, int32_t record) {
    const own_columns *c = t->columns;
    const own_time *first = arrlen(t->rows) > 0 ? &t->rows[0].time : NULL;
    own_row row;
    memset(&row, 0, sizeof row);
    arrsetlen(t->timeless, 0);
    for (int64_t i = c->label_offset[record]; i < c->label_offset[record + 1]; i++) {
        if (take_time(&t->labels, &row, (size_t)i, c->label_time, c->label_date) != OWN_ROW_GOOD)
            return dataset_fail(d, "labels:%lld: the label of a time has none", (long long)i + 1);
        arrput(t->timeless, row);
    }
    own_sort(t->labels.clock, t->timeless, arrlenu(t->timeless));
    for (size_t i = 0; i < arrlenu(t->timeless); i++) {
        const own_row *r = &t->timeless[i];
        mtan_real moment;
        if (i > 0 && own_same_time(t->labels.clock, r->time, t->timeless[i - 1].time))
            return dataset_fail(d, "labels:%u: a second label of one time", (unsigned)r->line);
        if (!own_moment(&t->labels, r, first ? *first : t->timeless[0].time, &moment))
            return dataset_fail(d, "%s", t->labels.error);
        arrput(d->label_times, moment);
        if (!take_label(d, t, r->line - 1)) return 0;
    }
    own_join_times(d);
    return 1;
}

static int take_record_label(dataset *d, const taking *t, int32_t record) {
    return !is_labelled(t->columns, (size_t)record) || take_label(d, t, (size_t)record);
}

static int take_labels(dataset *d, taking *t, int32_t record) {
    if (!t->columns->label && !t->columns->number && !t->columns->several) return 1;
    return t->columns->label_offset ? take_time_labels(d, t, record) : take_record_label(d, t, record);
}

/* ---- all columns ---- */

static int is_ascending(const int64_t *offset, int32_t n) {
    for (int32_t i = 0; i < n; i++)
        if (offset[i] < 0 || offset[i + 1] < offset[i]) return 0;
    return 1;
}

static int check(dataset *d, const own_columns *c) {
    if (c->n_records <= 0) return dataset_fail(d, "events: no record");
    if (!is_ascending(c->offset, c->n_records) || (c->label_offset && !is_ascending(c->label_offset, c->n_records)))
        return dataset_fail(d, "events: the places of the records do not ascend");
    if (c->offset[c->n_records] >= UINT32_MAX) return dataset_fail(d, "events: too many rows");
    return (c->statics >= 0 && c->statics <= c->n_channels) || dataset_fail(d, "events: more statics than channels");
}

static int take_records(dataset *d, taking *t) {
    const own_columns *c = t->columns;
    const char *name = c->records;
    arrsetcap(d->records, (size_t)c->n_records);
    arrsetcap(d->events, (size_t)c->offset[c->n_records] + 1); /* never NULL */
    for (int32_t r = 0; r < c->n_records; r++, name += strlen(name) + 1) {
        dataset_add_record(d, name, c->group ? c->group[r] : -1);
        if (c->part && c->part[r] >= 0) arrlast(d->records).part = 1 + c->part[r];
        if (!take_events(d, t, r) || !take_labels(d, t, r)) return 0;
    }
    strcpy(d->unit, c->date ? "hours" : "");
    return 1;
}

static void taking_free(taking *t) {
    arrfree(t->rows), arrfree(t->timeless);
    free(t->channels), free(t->classes), free(t->channel_place), free(t->class_place);
    free(t->events.first_unknown);
}

int own_columns_labelled(const own_columns *c) {
    return c->label || c->number || c->several;
}

int own_take_columns(dataset *d, const own_columns *c, const own_options *o) {
    taking t;
    int good;
    memset(d, 0, sizeof *d);
    memset(&t, 0, sizeof t);
    t.columns = c, t.options = o;
    source_start(&t.events, OWN_EVENTS, events_name, &t), source_start(&t.labels, OWN_LABELS, labels_name, &t);
    t.channels = list_of(c->channels, c->n_channels), t.classes = list_of(c->classes, c->n_classes);
    good = check(d, c) && place_channels(d, &t) && place_classes(d, &t) && take_records(d, &t);
    if (good) own_note(d, &t.events, &t.tally);
    taking_free(&t);
    if (!good) dataset_free(d);
    return good;
}
