/* People's own data: a CSV file of observations, one per row, and one of labels. Plain, .gz, or standard input ("-").
 *
 * Observations.  The first row names the columns, in any order, in any case:
 *     record,time,channel,value                      or the names of
 *     subject_id,time,code,numeric_value             MEDS
 *     unique_id,ds,y                                 Nixtla: a single channel, "y"
 *     time_series_id,timestamp,channel_id,value
 * Other columns are ignored, and named in the notes. The format itself is csv.h's.
 * A wide file names no column for channels or values: each column but the record's and the time's is a channel
 *     record,time,hr,bp,...                          an empty cell is not observed
 * - A record or a channel is any text that is not empty. Channels are sorted: numerically when all are integers, else
 *   by their bytes; so the order of rows does not matter. Records keep the order of their first row. Names of channels and
 *   classes go into model files, which take UTF-8 alone: `mtan train` refuses others before it starts.
 * - A time is a finite number, or an ISO-8601 date or date and time (field.h); a file has one kind alone. Digits alone
 *   (20240531) are a number. A time without an offset is UTC.
 * - A value is a number that a float can hold. Nothing, NaN, NA or null: the row is left out and counted, whatever its
 *   time; its record exists all the same.
 * - Rows of one (record, time, channel) are averaged and counted.
 *
 * Times.  Dates become hours since the record's first observation (of those that were kept), unit "hours". Numbers
 * follow `origin`, unit "". Where distinct times become one mtan_real they are counted in the notes, or refused: see
 * OWN_ORIGIN_AUTO. Compare dataset.unit with the unit that a model was trained on.
 *
 * Rows of MEDS without a time are static: they stand at time 0 of the record, which is its first observation where times are
 * counted from that.
 *
 * Labels.  record,label; or record,time,label for labels of times (also subject_id, unique_id, time_series_id; ds,
 * timestamp; boolean_value); or, as MEDS has them, subject_id,prediction_time,boolean_value: such a label belongs to a record of
 * its own, called subject@time as the file writes the time, with what was observed until then, that moment included, and nothing
 * later. The records of a subject are one group, which splits keep together; the subject itself is then no record, unless a
 * label without a time is its own. A label is a class name; classes are sorted as channels are; at most 4096. An empty label
 * (or NaN, NA, null) is none. A record twice: an error unless the labels are the same. Times are on the clock of the
 * record's events. A record without events is allowed, and counted; so are records without a label. Ten or more labels
 * that are all different and no numbers are refused: they look like names.
 *
 * Numbers.  Labels that are all numbers, more than 20 different ones, and fractions or mostly different, are no classes but a
 * number to predict: the notes say so, and `task` decides otherwise. The set then has `numbers` and one name, "label", for a class.
 *
 * Several labels.  A file of labels without a column "label" (or boolean_value) has a column for each label:
 *     record,sepsis,stroke,...                       1 (true), 0 (false), or nothing where it is not known
 * with a time or a prediction_time if need be. The set then has `numbers`, a row of C for each record or time. A model's file may have
 * further columns, which are left out.
 *
 * Errors read "file:line: what is wrong"; the line is the physical one in which the row begins.
 */
#ifndef MTAN_TOOLS_OWN_H
#define MTAN_TOOLS_OWN_H

#include "dataset.h"

typedef enum own_origin {
    OWN_ORIGIN_AUTO,  /* numbers stay; an error when distinct times of a record become one mtan_real because it begins
                       * late, which OWN_ORIGIN_RECORD would mend */
    OWN_ORIGIN_ZERO,  /* numbers stay, whatever becomes of them; dates are an error */
    OWN_ORIGIN_RECORD /* the record's first observation is time 0: subtracted before rounding */
} own_origin;

/* What labels are. */
typedef enum own_task { OWN_TASK_GUESSED, OWN_TASK_CLASSES, OWN_TASK_NUMBER, OWN_TASK_LABELS } own_task;

enum { OWN_CLASSES_MOST = 4096 };

typedef struct own_options {
    char **channels; /* the model's, an stb_ds array: other channels are an error. NULL: those of the file */
    char **classes;  /* the model's, likewise */
    const char
        *groups; /* a column of the events or the labels whose equal values stay on one side of a split; NULL: none.
                         * Needed unless there are `channels` */
    const char *statics; /* a file of what does not change (own_statics.h); NULL: none */
    int skip_unknown;    /* rows of channels that are not in `channels` are left out and counted */
    int keep_times; /* the set gets time_texts: numbers and dates (in UTC) as they were read, whatever the origin */
    own_origin origin;
    own_task task;
} own_options;

/* A whole file, for training: the rows of a record may be scattered. labels and o may be NULL. 1, or 0 with d->error
 * set and nothing to free. Needs about 36 bytes per row (40 where records are scattered) and 100 per record while it
 * reads. */
int own_load(dataset *d, const char *events, const char *labels, const own_options *o);

/* A split that is given: record,part, a part being train, valid or test. Sets the records' parts; records of the file that the set
 * does not have are counted in a note. 1, or 0 with d->error set and the set as it was to be freed. */
int own_read_parts(dataset *d, const char *path);

/* ---- record after record, for prediction ----
 *
 * For files whose records are contiguous, without end if need be: the memory is that of the longest record, and 11 to
 * 21 bytes per record, for a hash of every name seen. (Two names of one 64-bit hash would be taken for one: a chance of
 * 3e-8 in a million records.) The options must name the channels; a model that has none may name them 0, 1, 2, ...
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
 *     own_stream_close(&s);
 */
typedef enum own_status {
    OWN_END,    /* `one` holds no record, and the notes on the whole file */
    OWN_RECORD, /* `one` holds one record */
    /* A row could not be read: `one` holds the record's name (or no record, where no name could be read) without
     * events, and the first error. The rest of the record is passed over, the next call goes on behind it. A row that
     * is not even a row of CSV with a record's name spoils the record in which it stands; between two records it
     * spoils both. */
    OWN_BAD_RECORD,
    /* It makes no sense to go on: the file cannot be read, or a record came back after another began (sort the file by
     * record). The record in progress is lost. Further calls say the same. */
    OWN_FAILED
} own_status;

typedef struct own_stream {
    char error[512]; /* of own_stream_open */
    struct own_stream_state *state;
} own_stream;

/* 1, or 0 with error set; own_stream_close is allowed after both. The options' channels must outlive the stream. */
int own_stream_open(own_stream *s, const char *path, const own_options *o);
/* Zero `one` before the first call; each call forgets what it held and uses its memory again. */
own_status own_stream_next(own_stream *s, dataset *one);
void own_stream_close(own_stream *s);

#endif
