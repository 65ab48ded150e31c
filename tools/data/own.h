/* People's own data: a CSV file of observations, one per row, and one of labels. Plain, .gz, or standard input ("-").
 *
 * Observations.  The first row names the columns, in any order and in any case, by one of these sets of names:
 *     record,time,channel,value
 *     subject_id,time,code,numeric_value             MEDS
 *     unique_id,ds,y                                 Nixtla: a single channel, "y"
 *     time_series_id,timestamp,channel_id,value
 * Other columns are ignored and named in the notes. csv.h describes the format itself. A wide file has no columns for
 * channel and value: each column except the record's and the time's is a channel
 *     record,time,hr,bp,...                          an empty cell is not observed
 * - A record or a channel is any non-empty text. Channels are sorted, numerically if all are integers, otherwise by
 *   their bytes, so the order of rows does not matter. Records keep the order of their first row. Names of channels and
 *   classes go into model files, which accept only UTF-8: `mtan train` refuses others before it starts.
 * - A time is a finite number, or an ISO-8601 date or date and time (field.h); a file has only one of these kinds.
 *   Digits alone (20240531) are a number. A time without an offset is UTC.
 * - A value is a number that a float can hold. If it is empty, NaN, NA or null, the row is left out and counted,
 *   whatever its time; its record exists all the same.
 * - Rows with the same record, time and channel are averaged and counted.
 *
 * Times.  Dates become hours since the record's first observation (of the rows that were kept), unit "hours". Numbers
 * follow `origin`, unit "". If rounding makes distinct times the same mtan_real, they are counted in the notes, or
 * refused: see OWN_ORIGIN_AUTO. Compare dataset.unit with the unit that a model was trained on.
 *
 * Rows of MEDS without a time are static. They stand at time 0 of the record, which is its first observation if times
 * count from there.
 *
 * Labels.  record,label; or record,time,label for labels of times (also subject_id, unique_id, time_series_id; ds,
 * timestamp; boolean_value); or, as in MEDS, subject_id,prediction_time,boolean_value. A label with a prediction time
 * belongs to a record of its own, called subject@time with the time as written in the file. That record has the
 * subject's observations up to and including that time. The records of a subject are one group, which splits keep
 * together; the subject itself is then not a record, unless it has a label without a time. A label is a class name;
 * classes are sorted like channels; at most 4096. An empty label (or NaN, NA, null) is no label. Two labels for a
 * record are an error unless they are the same. Times are on the clock of the record's events. If times have labels, an
 * observed time without one gets MTAN_UNLABELED in each record that has labels. A record without events is allowed and
 * counted, and so are records without a label. Ten or more labels that are all different and not numbers are refused,
 * because they look like names, and labels none of whose records has an observation.
 *
 * Numbers.  If the labels are all numbers, more than 20 different ones, and if there are fractions among them or most
 * are different, they are not classes but a number to predict. The notes say so, and `task` overrides it. The set then
 * has `numbers` and a single name, "label", as a class.
 *
 * Several labels.  A file of labels without a column "label" (or boolean_value) has a column for each label:
 *     record,sepsis,stroke,...                       1 (true), 0 (false), or empty if it is not known
 * with a time or a prediction_time if needed. The set then has `numbers`, a row of C for each record or time. When a
 * model is given, columns that are not its labels are ignored.
 *
 * Errors read "file:line: what is wrong"; the line is the physical one in which the row begins. */
#ifndef MTAN_TOOLS_OWN_H
#define MTAN_TOOLS_OWN_H

#include "dataset.h"

typedef enum own_origin {
    OWN_ORIGIN_AUTO,  /* numbers are not shifted; it is an error if distinct times of a record become one mtan_real
                       * because the record begins late, which OWN_ORIGIN_RECORD would avoid */
    OWN_ORIGIN_ZERO,  /* numbers are never shifted; dates are an error */
    OWN_ORIGIN_RECORD /* the record's first observation is time 0, subtracted before rounding */
} own_origin;

/* The kind of labels. */
typedef enum own_task { OWN_TASK_GUESSED, OWN_TASK_CLASSES, OWN_TASK_NUMBER, OWN_TASK_LABELS } own_task;

enum { OWN_CLASSES_MOST = 4096 };

typedef struct own_options {
    char **channels; /* the model's, an stb_ds array: other channels are an error. NULL: the file's */
    char **classes;  /* the model's, likewise */
    const mtan_prep_channel
        *codes; /* (channels) the model's, whose codes for "not observed" are left out; NULL: none */
    const char
        *groups; /* a column of the events or the labels, whose equal values stay in one part of a split; NULL: none.
                  * Must exist unless there are `channels` */
    const char *read;    /* a column of the labels that the caller reads (record_column.h), so that no note calls it
                          * ignored; NULL: none */
    const char *statics; /* a file of static values (own_statics.h); NULL: none */
    int skip_unknown;    /* rows of channels that are not in `channels` are left out and counted */
    int keep_times;      /* fills time_texts: numbers, and dates in UTC, as they were read, whatever the origin */
    own_origin origin;
    own_task task;
} own_options;

/* Loads a whole file, for training; the rows of a record may be scattered. labels and o may be NULL. Returns 1, or 0
 * with d->error set and nothing to free. While reading it needs about 36 bytes per row (40 if records are scattered)
 * and 100 per record. */
int own_load(dataset *d, const char *events, const char *labels, const own_options *o);

/* Do the labels belong to these observations? Returns 0 with error set if no labelled record has an observation, while
 * other records have some: then the two files write the records' names differently. own_load refuses such files. */
int own_labels_fit(const dataset *d, const char *events, const char *labels, char error[512]);

/* Reads a given split: record,part, where a part is train, valid or test. Sets the records' parts; records of the file
 * that are not in the set are counted in a note. Returns 1, or 0 with d->error set; the set must still be freed. */
int own_read_parts(dataset *d, const char *path);

/* ---- one record at a time, for prediction ----
 *
 * For files whose records are contiguous, even endless ones. Memory holds the longest record, and 11 to 21 bytes per
 * record for a hash of every name seen. (Two names with the same 64-bit hash would be taken for one: a chance of 3e-8
 * in a million records.) The options must name the channels; for a model without channel names, name them 0, 1, 2, ...
 *
 *     own_stream s;
 *     dataset one = {0};
 *     own_status got;
 *     if (!own_stream_open(&s, path, &o)) return complain("%s", s.error);
 *     while ((got = own_stream_next(&s, &one)) == OWN_RECORD || got == OWN_BAD_RECORD)
 *         if (got == OWN_BAD_RECORD) complain("%s", one.error), bad = 1; else ... dataset_view(&one, 0) ...
 *     if (got == OWN_FAILED) complain("%s", one.error);
 *     else ... one.notes ...
 *     dataset_free(&one);
 *     own_stream_close(&s); */
typedef enum own_status {
    OWN_END,    /* `one` holds no record, but the notes on the whole file */
    OWN_RECORD, /* `one` holds one record */
    /* A row could not be read: `one` holds the record's name without events (or no record, if no name could be read),
     * and the first error. The rest of the record is skipped, and the next call continues after it. A row with too few
     * or too many fields costs its own record alone, if the name is its first field and not its only one; where other
     * rows of that record are missing, it is reported before the record in progress. A row without such a name makes
     * the record around it bad; between two records it makes both bad. */
    OWN_BAD_RECORD,
    /* The stream cannot continue: the file cannot be read, or a record came back after another began (sort the file by
     * record). The record in progress is lost. Further calls return the same. */
    OWN_FAILED
} own_status;

typedef struct own_stream {
    char error[512]; /* of own_stream_open */
    struct own_stream_state *state;
} own_stream;

/* 1, or 0 with error set; own_stream_close is allowed after both. The options' channels must outlive the stream. */
int own_stream_open(own_stream *s, const char *path, const own_options *o);
/* Zero `one` before the first call; each call discards its contents and reuses its memory. */
own_status own_stream_next(own_stream *s, dataset *one);
void own_stream_close(own_stream *s);

#endif
