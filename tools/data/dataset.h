/* A data set in memory, in one form from every loader: raw values, times in the data's own unit, and records in the
 * order on which splits are defined. The loaders (physionet.h, activity.h, mimic3.h, own.h, synthetic.h) fill it,
 * prep.h computes the numbers that a model sees, and split.h selects the training records.
 *
 * A loader returns 1 for success, or 0 with `error` set ("file:line: what is wrong", without "mtan: ") and nothing to
 * free. Whatever it could not use as it was is counted, and reported once through `notes`. */
#ifndef MTAN_TOOLS_DATASET_H
#define MTAN_TOOLS_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "../../mtan.h"
#include "array.h"

typedef struct dataset_record {
    size_t event0;    /* index of its first event; they are contiguous, ascending in time, then in channel */
    size_t truth0;    /* index of its first truth */
    size_t label0;    /* index of its first label */
    size_t name;      /* its name's first byte in dataset.names */
    size_t time_text; /* its first time's first byte in dataset.time_texts */
    int32_t n_events;
    int32_t n_times; /* distinct event times */
    int32_t n_truth;
    int32_t n_labels; /* 0: not labelled; 1 for a record; one per labelled time, ascending */
    int32_t part;     /* in a given split: 1 + SPLIT_TRAIN and so on (split.h); 0: no part is given */
    int32_t
        group; /* records of one group (a person, a series cut into windows) stay in one part of a split; -1: none */
} dataset_record;

typedef struct dataset {
    dataset_record *records; /* these are all stb_ds arrays: arrlen(records) */
    mtan_event *events;
    mtan_event *truth; /* only scored, never shown to a model: the noise-free curve of synthetic series; else empty */
    int32_t *labels;   /* classes; MTAN_UNLABELED where a time has none */
    mtan_task task;    /* kind of the labels */
    mtan_real *
        numbers; /* (labels, C) unless the task is classes, else NULL: C numbers, or 1 and 0 for C labels; NaN: unknown;
                  * `labels` are then 0 */
    mtan_real *label_times; /* (labels) if labels belong to times, else NULL */
    char *names;            /* zero-terminated, one after the other */
    char *time_texts;       /* likewise: the times of each record as they were read, a text for each of its labels of
                             * times or, if it has none, for each distinct time; NULL: not kept */
    char **channels;        /* (D) names */
    int32_t statics; /* number of leading channels that are static in a record: they stand at its first time, or at 0 */
    char **classes;  /* (C) names of classes, numbers or labels; empty without labels */
    char **notes;    /* sentences on what was found: repeats averaged, rows left out, extra columns */
    char unit[24];   /* of the times, for people: "hours", "seconds", "" */
    double
        horizon; /* of a forecast: everything less than this before a record's last time is held out; 0: no forecast */
    char error[512];
} dataset;

/* The record's name, valid until the set changes. */
const char *dataset_name(const dataset *d, size_t record);
/* Its events and its truth; NULL if the whole set has none, because then there is no array. */
mtan_event *dataset_events(const dataset *d, const dataset_record *r);
mtan_event *dataset_truth(const dataset *d, const dataset_record *r);
/* (n_labels, C) Its numbers; NULL if the task is classes. */
mtan_real *dataset_numbers(const dataset *d, const dataset_record *r);

/* Does the record, or one of its times, have a label? */
int dataset_labelled(const dataset *d, const dataset_record *r);

/* These append. dataset_add_record starts a record without events, and dataset_add_event adds to the last record.
 * dataset_end_record sorts the last record's events (stable), averages repeats of (time, channel) in double, counts the
 * record's times, and returns how many events averaging removed. */
void dataset_add_record(dataset *d, const char *name, int32_t group);
void dataset_add_event(dataset *d, mtan_real time, int32_t channel, mtan_real value);
size_t dataset_end_record(dataset *d);
void dataset_add_label(dataset *d, int32_t label);        /* to the last record */
void dataset_add_time_text(dataset *d, const char *text); /* likewise */
void dataset_note(dataset *d, const char *format, ...);
int dataset_fail(dataset *d, const char *format, ...); /* sets error, returns 0 */

/* The record in the library's form. Labels of times come with their times as the query times. */
mtan_record dataset_view(const dataset *d, size_t record);

/* Bounds that hold every record and every label time. records stays 0: the caller sets its batch. */
mtan_bounds dataset_bounds(const dataset *d);

void dataset_free(dataset *d);

#endif
