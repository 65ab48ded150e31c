/* The rows of people's own files (own.h), for own.c and own_stream.c: finds the columns, reads a row, and turns the
 * rows of a record into its events. */
#ifndef MTAN_TOOLS_OWN_ROWS_H
#define MTAN_TOOLS_OWN_ROWS_H

#include "csv.h"
#include "field.h"
#include "names.h"
#include "own.h"

/* The kinds of files. */
typedef enum own_table { OWN_EVENTS, OWN_LABELS, OWN_PARTS, OWN_STATICS, OWN_TABLES } own_table;
enum { OWN_NAME, OWN_TIME, OWN_CHANNEL, OWN_VALUE, OWN_ROLES }; /* OWN_VALUE also holds a label or a part */

typedef enum own_clock { OWN_NO_TIMES, OWN_NUMBERS, OWN_DATES } own_clock; /* the kind of a file's times */

typedef union own_time {
    double number;
    int64_t ticks; /* of a date */
} own_time;

typedef struct own_row {
    own_time time;
    int32_t record;
    int32_t channel; /* or class, or label */
    mtan_real value;
    uint32_t line;
} own_row;

/* A column of a wide file: its cells are values of that channel. */
typedef struct own_column {
    csv_field channel;
    int32_t column;
} own_column;

typedef struct own_source {
    csv_reader csv;
    own_clock clock;
    own_origin origin;
    int keep_times;                 /* 0 unless the caller sets it after own_source_open, and so the next */
    const mtan_prep_channel *codes; /* (channels) rows that hold the code for "not observed" are left out; NULL: none */
    int statics;                    /* events: a row without a time is true of its record at all times */
    own_column *
        wide; /* stb_ds array: events have a column per channel, labels one per label; NULL: all values in one column */
    size_t cell; /* index in `wide` of the next cell; past the last: the next row comes */
    int cuts;    /* labels: the time is a prediction's, and later observations are cut */
    own_table table;
    int32_t column[OWN_ROLES];   /* -1: the file has no such column */
    int32_t group;               /* the column whose equal values stay together; -1: the file has none */
    int32_t read;                /* the column that somebody else reads; -1: none */
    size_t columns;              /* in every row */
    const char *name[OWN_ROLES]; /* of the columns above */
    char *ignored;               /* names of the other columns, for a note; NULL: none */
    size_t missing;              /* rows without a value or label; empty cells of a wide file are not counted */
    size_t unknown;              /* rows of unknown channels */
    char *first_unknown;         /* the first unknown channel, for a note */
    char error[512];             /* of the last outcome that was not good */
} own_source;

typedef enum own_outcome {
    OWN_ROW_END,
    OWN_ROW_GOOD,
    OWN_ROW_STATIC,   /* good, but without a time */
    OWN_ROW_LEFT_OUT, /* correct, but without anything to use */
    OWN_ROW_BAD,      /* error says why; its record is known: OWN_NAME of own_field */
    OWN_ROW_TORN,     /* error says why; its record is not known */
    OWN_ROW_FAILED    /* error says why; there are no more rows */
} own_outcome;

/* Opens the file and parses its header. group: the name of a column of groups, which the file may have; or NULL.
 * Returns 1, or 0 with error set. own_source_close is allowed after both. */
int own_source_open(own_source *s, const char *path, own_table table, own_origin origin, const char *group);
/* Right after own_source_open: no note calls this column ignored, as somebody else reads it. NULL: none. */
void own_source_read(own_source *s, const char *column);
void own_source_close(own_source *s);

/* Reads the next row: OWN_ROW_GOOD if it has as many fields as the header, and a record's name. Then own_field returns
 * its fields; NULL if the file has no such column. A row of a wide file is returned once for each of its channels. */
own_outcome own_source_next(own_source *s);
const csv_field *own_field(const own_source *s, int role);
/* The channel of the row or, in a wide file, the channel or the label of the current cell. */
const csv_field *own_channel(const own_source *s);

/* Reads the row's time: OWN_ROW_GOOD or OWN_ROW_BAD. */
own_outcome own_read_time(own_source *s, own_row *row);
/* Reads the row as an observation, except for its record. New channels are added unless `fixed`; with `fixed`, rows of
 * other channels are left out if skip_unknown is set, otherwise bad. */
own_outcome own_read_event(own_source *s, names *channels, int fixed, int skip_unknown, own_row *row);
/* Reads a cell of a file of several labels: row->value is 1 or 0, NaN if it is not known. Returns OWN_ROW_GOOD or
 * OWN_ROW_BAD. */
own_outcome own_read_truth(own_source *s, own_row *row);
/* Sets error to "file:line: ..." and returns 0. */
int own_complain(own_source *s, size_t line, const char *format, ...);
/* Reports that a row contradicts the value `kept` of another row for one of several labels. Also returns 0. */
int own_complain_truth(own_source *s, const own_row *row, const char *record, const char *label, mtan_real kept);

/* Sorts rows by time, then by line. */
void own_sort(own_clock clock, own_row *rows, size_t n);
int own_same_time(own_clock clock, own_time a, own_time b);
field_excerpt own_time_text(own_clock clock, own_time time);
/* The row's time on the clock of a record whose first observation is `first`. Returns 0 if it is out of range (error is
 * set). */
int own_moment(own_source *s, const own_row *row, own_time first, mtan_real *moment);

typedef struct own_tally {
    size_t repeats; /* rows that were averaged into another */
    size_t merged;  /* times that rounding made equal to the one before */
} own_tally;

/* Appends rows without a time to those of their record, an stb_ds array: at its first observation if times count from
 * there, otherwise at time 0. */
void own_add_statics(const own_source *s, own_row **rows, const own_row *statics, size_t n);
/* Adds the rows as events of the last record, with time_texts if they are kept, and ends the record. place maps the
 * rows' channels to the data set's, or is NULL. Sorts the rows. Returns 1, or 0 with the source's error set. */
int own_add_events(dataset *d, own_source *s, own_row *rows, size_t n, const int32_t *place, own_tally *tally);

/* Ends the last record's labels of times, which are ascending: its other observed times become unlabelled rows, because
 * a model's answer at one time may depend on the other times that are asked, and a prediction asks all of them. A record
 * without labels stays without. If texts of times are kept, those of the labels follow those of the observed times, and
 * become one list. */
void own_join_times(dataset *d);

/* Adds the counts as notes. */
void own_note(dataset *d, const own_source *s, const own_tally *tally);

/* ---- records cut out of others by their labels ---- */

/* For a record: whose observations it has (-1: its own), and until when; or that others were cut out of it. */
typedef struct own_cut {
    own_time until;
    int32_t subject;
    int32_t divided;
} own_cut;

/* A label with a prediction time belongs to a record of its own, subject@time, which is added to `records`: row->record
 * changes from the subject to that record. A label without a time belongs to the subject. `cuts` is an stb_ds array by
 * record, shorter than the records if the last ones are whole. Returns OWN_ROW_GOOD, OWN_ROW_BAD or OWN_ROW_FAILED. */
own_outcome own_cut_record(own_source *s, names *records, own_cut **cuts, own_row *row);
/* The record whose rows this one uses: itself unless it was cut out of another. */
int32_t own_subject(const own_cut *cuts, int32_t record);
/* Were others cut out of it? Then it contains their future, and it is not a record unless it has a label of its own. */
int own_is_divided(const own_cut *cuts, int32_t record);
/* The group of the parts of a record, which a split keeps together: their subject; -1 for a record without parts. */
int32_t own_group(const own_cut *cuts, int32_t record);
/* Removes a subject's rows that are later than the record. */
void own_cut_rows(own_clock clock, const own_cut *cuts, int32_t record, own_row **rows);

#endif
