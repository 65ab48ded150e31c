/* A data set in memory, the same from every loader: raw values, times in the data's own unit, records in the order on which
 * splits are defined. The loaders (physionet.h, activity.h, mimic3.h, own.h, synthetic.h) fill one; prep.h makes
 * the numbers that a model sees; split.h says which records are for training.
 *
 * A loader returns 1 for success, or 0 with `error` set ("file:line: what is wrong", without "mtan: ") and nothing to
 * free. What it read but could not use as it stood is counted, and said once through `notes`. */
#ifndef MTAN_TOOLS_DATASET_H
#define MTAN_TOOLS_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "../../mtan.h"
#include "array.h"

typedef struct dataset_record {
    size_t event0;    /* first of its events; they are contiguous, ascending in time, then in channel */
    size_t truth0;    /* first of its truth */
    size_t label0;    /* first of its labels */
    size_t name;      /* its name's first byte in dataset.names */
    size_t time_text; /* its first time's first byte in dataset.time_texts */
    int32_t n_events;
    int32_t n_times; /* distinct event times */
    int32_t n_truth;
    int32_t n_labels; /* 0: not labelled; 1 for a record; one per labelled time, ascending */
    int32_t part;     /* of a split that is given: 1 + SPLIT_TRAIN and so on (split.h); 0: none is */
    int32_t
        group; /* records of one group (a person, a series cut into windows) belong on one side of a split; -1: none */
} dataset_record;

typedef struct dataset {
    dataset_record *records; /* all of these are stb_ds arrays: arrlen(records) */
    mtan_event *events;
    mtan_event *truth; /* never shown to a model, only scored: the noise-free curve of synthetic series; else empty */
    int32_t *labels;   /* class numbers; MTAN_UNLABELED where a time has none */
    mtan_task task;    /* what the labels are */
    mtan_real *
        numbers; /* (labels, C) for tasks other than classes, `labels` being 0 then: C numbers, or 1 and 0 for C names; NaN: not
                           known; else NULL */
    mtan_real *label_times; /* beside `labels` when labels belong to times, else NULL */
    char *names;            /* zero-terminated, one after the other */
    char *time_texts;       /* likewise, the distinct times of each record as they were read; NULL: not kept */
    char **channels;        /* (D) names */
    int32_t statics; /* the first so many of them do not change in a record: they stand at its first time, or at 0 */
    char **classes;  /* (C) names of classes, numbers or labels; empty without labels */
    char **notes;    /* sentences about what was found: repeats averaged, rows left out, extra columns */
    char unit[24];   /* of the times: "hours", "seconds", ""; for people */
    double
        horizon; /* of a forecast, as long as the times are: what lies further on than this before a record's last time is held
                     * out; 0: nothing is forecast */
    char error[512];
} dataset;

/* The record's name, valid until the set changes. */
const char *dataset_name(const dataset *d, size_t record);
/* Its events and its truth; null where it has none, for a set without any has no array. */
mtan_event *dataset_events(const dataset *d, const dataset_record *r);
mtan_event *dataset_truth(const dataset *d, const dataset_record *r);
/* (n_labels, C) Its numbers; null where the task is classes. */
mtan_real *dataset_numbers(const dataset *d, const dataset_record *r);

/* Appends. dataset_add_record starts a record with no events; dataset_add_event adds to the last record. dataset_end_record
 * sorts the last record's events (stable), averages repeats of (time, channel) in double and returns how many events that
 * removed, and counts its times. */
void dataset_add_record(dataset *d, const char *name, int32_t group);
void dataset_add_event(dataset *d, mtan_real time, int32_t channel, mtan_real value);
size_t dataset_end_record(dataset *d);
void dataset_add_label(dataset *d, int32_t label);        /* of the last record */
void dataset_add_time_text(dataset *d, const char *text); /* likewise */
void dataset_note(dataset *d, const char *format, ...);
int dataset_fail(dataset *d, const char *format, ...); /* sets error, returns 0 */

/* The same record as the library takes it. Labels of times come with their times as the query times. */
mtan_record dataset_view(const dataset *d, size_t record);

/* The bounds that hold every record and every label time. records stays 0: the caller's batch. */
mtan_bounds dataset_bounds(const dataset *d);

void dataset_free(dataset *d);

#endif
