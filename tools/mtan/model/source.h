/* How a data set is read and split. A model file stores it, so that `mtan eval`, `mtan report` and `mtan compare` use
 * the test records that `mtan train` left out. */
#ifndef MTAN_TOOLS_SOURCE_H
#define MTAN_TOOLS_SOURCE_H

#include "../../data/own_columns.h"
#include "../../data/split.h"
#include "bundle.h"

enum { SOURCE_MEANS = 12 }; /* most channels of a data set with means */

extern const char *const preset_names[]; /* by mtan_preset, up to a NULL */

/* Set by `mtan train`, stored in the model file as mtan.data.* */
typedef struct source {
    const struct data_set *set; /* data_sets.h */
    char variant[16];           /* physionet: "a" or "ab"; toy: smooth, sine, irregular; else "" */
    mtan_preset preset;
    split_way split;   /* its seed is 42 as published */
    char groups[64];   /* own data: the column whose equal values stay in the same part of the split; "": none */
    int interpolation; /* records are conditioned on a share of their times and scored on the rest */
    double observed;   /* that share in evaluation */
    double forecast;   /* forecast instead of a share: hold out the last so much time, in the data's unit; 0: a share */
    char origin[8];    /* own data: where times start: auto, zero, record */
    int32_t fit_all;   /* preprocessing is fitted to all records, not only to the training records */
    int has_means;
    double means[SOURCE_MEANS]; /* value at time 0 of a series without an observation */
} source;

/* What an option sets, a model file stores as mtan.data.<key>, and a resumed run keeps. */
typedef struct source_field {
    const char *key;
    const char *option; /* NULL: several decide */
    char type;          /* i int32_t or an enum, u uint32_t, d double, t a text of `size` bytes */
    size_t offset, size;
    double low, high, otherwise; /* otherwise: in a file from before there was such a field */
    const char *const *words;    /* by number, up to a NULL; NULL: none */
} source_field;

extern const source_field source_fields[]; /* up to one without a key */

double source_number(const source *s, const source_field *f); /* of a field that is no text */
const char *source_text(const source *s, const source_field *f);
void source_set(source *s, const source_field *f, double x);

void source_write(const source *s, mtan_file_pair **pairs); /* with malloc'd texts, like prep_write */
int source_read(source *s, bundle *b, char *error);
/* The option by which two sources of a data set differ; NULL: none. */
const char *source_difference(const source *a, const source *b);

/* Whether data is the data that a model was trained on. The first three values mean yes, as far as the model's file can
 * tell. */
typedef enum data_match {
    DATA_SAME,
    DATA_SAME_NAMES,   /* an older file stores only the names of the records */
    DATA_OTHER_LABELS, /* or no labels */
    DATA_OTHER_VALUES, /* the parts of the records are known all the same */
    DATA_OTHER_ORDER,  /* all values are there, and the parts are not known */
    DATA_OTHER_RECORDS,
    DATA_UNKNOWN /* the file stores nothing about its data */
} data_match;

/* source_write_split stores hashes of the data behind a split in a model file as mtan.split.*, and, where names alone
 * do not decide the split, the part of each record. source_match compares data that is split the same way with these.
 * data_match_text says in words how it differs. */
void source_write_split(const split *s, const source *from, mtan_file_pair **pairs);
/* Gives the records the parts that a file stores, unless they have parts. The parts are assigned in order; the hash
 * later shows whether the records are the same. */
void source_give_parts(const source *s, dataset *d, bundle *b);
data_match source_match(const split *s, bundle *b);
const char *data_match_text(data_match match);

/* The location of a source's data, and how own data is read. */
typedef struct source_input {
    const char *path, *labels;  /* NULL: none */
    const own_columns *columns; /* own data in memory instead of files; or NULL */
    const char *task;           /* own data: kind of labels: classes, number or labels; NULL: guessed */
    const char *origin;         /* own data: where times start; NULL: as the source says */
    const char *statics;        /* own data: a file of static channels; NULL: none */
    const char *by;             /* own data: a column of the labels that the command reads itself; NULL: none */
    const char *splits;         /* a file with the part of each record; NULL: as the source says */
    const char *positive;       /* the class that becomes the second of two, without a model; NULL: as read */
    int skip_unknown;           /* own data: ignore rows of channels that the model does not have */
    const prep *model;          /* own data must have its channels and classes; NULL while training: any */
    int keep_times;             /* own data: keep the texts of times (dataset.h) */
    int some;                   /* published data: some of its files are enough */
} source_input;

/* Reads the data of a source, raw. 1, or 0 with a message printed. */
int source_load(dataset *d, const source *s, const source_input *in);
/* Sets the options of the loader of own data; from may be NULL. 1, or 0 with error (512 bytes) set. */
int source_own_options(own_options *own, const source_input *in, const source *from, char *error);
int unit_matches(const prep *p, const dataset *d); /* same unit of time: 0 with a message printed */
int data_fits(const bundle *b, const dataset *d);  /* likewise, and the model's channels */

/* Prints a note if a model of own data has static channels and no file gives them. */
void source_tell_statics(const source *s, const source_input *in, const bundle *b);

/* Splits data as the source says, or as its records say. Returns as split_make. */
int source_draw(split *s, const source *from, const dataset *d, char *error);
/* The same, and fills series without an observation, whose means depend on the split. 1, or 0 with a message
 * printed. */
int source_split(split *s, source *from, dataset *d);
void source_complete(const source *s, dataset *d); /* fills them by known means */
/* Fits the preprocessing of a preset on raw data. time_scale 0: the largest training time. */
void source_fit(prep *p, const source *from, const dataset *d, const split *s, prep_kind scale, double time_scale);

#endif
