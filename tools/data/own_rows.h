/* The rows of people's own files (own.h), for own.c and own_stream.c: which column is what, what a row says, and how
 * the rows of a record become its events. */
#ifndef MTAN_TOOLS_OWN_ROWS_H
#define MTAN_TOOLS_OWN_ROWS_H

#include "csv.h"
#include "field.h"
#include "names.h"
#include "own.h"

/* What a file is about. */
typedef enum own_table { OWN_EVENTS, OWN_LABELS, OWN_PARTS, OWN_STATICS, OWN_TABLES } own_table;
enum { OWN_NAME, OWN_TIME, OWN_CHANNEL, OWN_VALUE, OWN_ROLES }; /* a label or a part stands in OWN_VALUE */

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

/* A column of a wide file: what a row has in it is a value of that channel. */
typedef struct own_column {
    csv_field channel;
    int32_t column;
} own_column;

typedef struct own_source {
    csv_reader csv;
    own_clock clock;
    own_origin origin;
    int keep_times; /* 0 unless the caller sets it after own_source_open */
    int statics;    /* events: a row without a time is true of its record at all times */
    own_column *
        wide; /* stb_ds array: events with a column per channel, labels with one per label; NULL: one column has the values */
    size_t cell; /* the place in `wide` that comes next; the last behind: the next row does */
    int cuts;    /* labels: the time is that of a prediction, and what was observed later is cut */
    own_table table;
    int32_t column[OWN_ROLES];   /* -1: the file has none */
    int32_t group;               /* the column whose equal values stay together; -1: the file has none */
    size_t columns;              /* every row has as many */
    const char *name[OWN_ROLES]; /* of those columns */
    char *ignored;               /* names of the other columns, for a note; NULL: none */
    size_t missing;              /* rows without a value or label; empty cells of a wide file are not counted */
    size_t unknown;              /* rows of channels that are not known */
    char *first_unknown;         /* the first of those, for a note */
    char error[512];             /* of the last outcome that was not good */
} own_source;

typedef enum own_outcome {
    OWN_ROW_END,
    OWN_ROW_GOOD,
    OWN_ROW_STATIC,   /* good, but without a time */
    OWN_ROW_LEFT_OUT, /* nothing is wrong, but there is nothing to use */
    OWN_ROW_BAD,      /* error says why; its record is known */
    OWN_ROW_TORN,     /* error says why; its record is not known */
    OWN_ROW_FAILED    /* error says why; there are no more rows */
} own_outcome;

/* Opens the file and understands its header. group: the name of a column of groups, which the file may have; or NULL. 1, or 0
 * with error set. own_source_close is allowed after both. */
int own_source_open(own_source *s, const char *path, own_table table, own_origin origin, const char *group);
void own_source_close(own_source *s);

/* Reads the next row: OWN_ROW_GOOD when it has as many fields as the header, and a record's name. Then own_field gives
 * its fields; NULL where the file has no such column. A row of a wide file comes once for each of its channels. */
own_outcome own_source_next(own_source *s);
const csv_field *own_field(const own_source *s, int role);
/* The channel of the row or, in a wide file, the channel or the label of the cell. */
const csv_field *own_channel(const own_source *s);

/* The row's time: OWN_ROW_GOOD or OWN_ROW_BAD. */
own_outcome own_read_time(own_source *s, own_row *row);
/* The row as an observation, but for its record. Channels are added unless `fixed`; those that are not there are then
 * left out with skip_unknown, or bad. */
own_outcome own_read_event(own_source *s, names *channels, int fixed, int skip_unknown, own_row *row);
/* The cell of a file of several labels: row->value is 1 or 0, NaN where it is not known. OWN_ROW_GOOD or OWN_ROW_BAD. */
own_outcome own_read_truth(own_source *s, own_row *row);
/* Sets error to "file:line: ..." and returns 0. */
int own_complain(own_source *s, size_t line, const char *format, ...);
/* Of the label of several that a row gives, where another row gives `kept`. Likewise. */
int own_complain_truth(own_source *s, const own_row *row, const char *record, const char *label, mtan_real kept);

/* Sorts rows by time, then by line. */
void own_sort(own_clock clock, own_row *rows, size_t n);
int own_same_time(own_clock clock, own_time a, own_time b);
field_excerpt own_time_text(own_clock clock, own_time time);
/* The row's time on the clock of a record whose first observation is `first`. 0: out of range (error is set). */
int own_moment(own_source *s, const own_row *row, own_time first, mtan_real *moment);

typedef struct own_tally {
    size_t repeats; /* rows that went into the average of another */
    size_t merged;  /* times that rounding made equal to the one before */
} own_tally;

/* Rows without a time join those of their record, an stb_ds array: at its first observation where times are counted from it,
 * else at time 0. */
void own_add_statics(const own_source *s, own_row **rows, const own_row *statics, size_t n);
/* Adds the rows as events of the last record, with time_texts where they are kept, and ends it. place may be NULL, or says which channel each becomes. The
 * rows get sorted. 1, or 0 with the source's error set. */
int own_add_events(dataset *d, own_source *s, own_row *rows, size_t n, const int32_t *place, own_tally *tally);

/* What was found, as notes. */
void own_note(dataset *d, const own_source *s, const own_tally *tally);

/* ---- records that labels cut out of others ---- */

/* Of a record: whose observations it has (-1: its own), and until when; or that others were cut out of it. */
typedef struct own_cut {
    own_time until;
    int32_t subject;
    int32_t divided;
} own_cut;

/* A label with a prediction time belongs to a record of its own, subject@time, which is added to `records`: row->record, the
 * subject, becomes that. Without a time the label is that of the subject. `cuts` is an stb_ds array by record, shorter than the
 * records where the last are whole. OWN_ROW_GOOD, OWN_ROW_BAD or OWN_ROW_FAILED. */
own_outcome own_cut_record(own_source *s, names *records, own_cut **cuts, own_row *row);
/* The record whose rows are this one's: itself where it was not cut out of another. */
int32_t own_subject(const own_cut *cuts, int32_t record);
/* Were others cut out of it? Then its future is in it, and without a label of its own it is no record. */
int own_is_divided(const own_cut *cuts, int32_t record);
/* What the parts of a record have in common, so that a split keeps them together: the subject; -1 for a record without parts. */
int32_t own_group(const own_cut *cuts, int32_t record);
/* Takes away, of a subject's rows, what is later than the record. */
void own_cut_rows(own_clock clock, const own_cut *cuts, int32_t record, own_row **rows);

#endif
