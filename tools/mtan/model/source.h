/* How a data set is read and split. A model file keeps it, so that `mtan eval`, `mtan report` and `mtan compare` see the same test
 * records as `mtan train` left out. */
#ifndef MTAN_TOOLS_SOURCE_H
#define MTAN_TOOLS_SOURCE_H

#include "../../data/own_columns.h"
#include "../../data/split.h"
#include "bundle.h"

enum { SOURCE_MEANS = 12 }; /* most channels of a data set that has them */

extern const char *const preset_names[]; /* by mtan_preset, up to a NULL */

/* Set by `mtan train`, kept in the model file as mtan.data.* */
typedef struct source {
    const struct data_set *set; /* data_sets.h */
    char variant[16];           /* physionet: "a" or "ab"; toy: smooth, sine, irregular; else "" */
    mtan_preset preset;
    split_way split;   /* its seed is 42 as published */
    char groups[64];   /* own data: the column whose equal values stay on one side of the split; "": none */
    int interpolation; /* records are conditioned on a share of their times and scored on the rest */
    double observed;   /* that share in evaluation */
    double forecast;   /* in place of a share: all but the last so much time, in the data's unit; 0: a share */
    char origin[8];    /* own data: where its times start: auto, zero, record */
    int fit_all;       /* preprocessing is fitted to all records, not to the training records alone */
    int has_means;
    double means[SOURCE_MEANS]; /* what a series without an observation gets at time 0 */
} source;

void source_write(const source *s, mtan_file_pair **pairs); /* malloc'd texts, as prep_write */
int source_read(source *s, bundle *b, char *error);

/* Whether data is that which a model was trained on. The first three are, for all that the model's file says. */
typedef enum data_match {
    DATA_SAME,
    DATA_SAME_NAMES,   /* an older file keeps the names of the records and no more */
    DATA_OTHER_LABELS, /* or none */
    DATA_OTHER_VALUES,
    DATA_OTHER_RECORDS,
    DATA_UNKNOWN /* the file keeps nothing of its data */
} data_match;

/* What a split was made of, into a model file as mtan.split.*, and where its records are if names alone do not tell; whether data split the same way is what it
 * was made of; and how it differs, in words. */
void source_write_split(const split *s, const source *from, mtan_file_pair **pairs);
/* The records get the parts that a file has kept, unless they have parts: by their order, as the hash tells whether they are the
 * same. */
void source_give_parts(const source *s, dataset *d, bundle *b);
data_match source_match(const split *s, bundle *b);
const char *data_match_text(data_match match);

/* Where the data of a source lies, and how own data is read. */
typedef struct source_input {
    const char *path, *labels;  /* NULL: none */
    const own_columns *columns; /* own data in memory, in place of files; or NULL */
    const char *task;     /* own data: what its labels are, classes, number or labels; NULL: what they look like */
    const char *origin;   /* own data: where its times start; NULL: where the source says */
    const char *statics;  /* own data: a file of what does not change in a record; NULL: none */
    const char *splits;   /* which record is for what: a file; NULL: as the source says */
    const char *positive; /* the class that shall be the second of two, while there is no model; NULL: as it comes */
    int skip_unknown;     /* own data: rows of channels that the model does not have are left out */
    const prep *model;    /* own data must have its channels and classes; NULL while training: any */
    int keep_times;       /* own data keeps its times' texts (dataset.h) */
    int some;             /* published data: what there is of its files is enough */
} source_input;

/* Reads the data of a source, raw. 1, or 0 with a message printed. */
int source_load(dataset *d, const source *s, const source_input *in);
/* What the loader of own data needs; from may be NULL. 1, or 0 with error (512 bytes) set. */
int source_own_options(own_options *own, const source_input *in, const source *from, char *error);
int unit_matches(const prep *p, const dataset *d); /* dates are hours, numbers are not: 0 with a message printed */
int data_fits(const bundle *b, const dataset *d);  /* likewise, and it has the model's channels */

/* Says so where a model of own data has static channels and no file gives them. */
void source_tell_statics(const source *s, const source_input *in, const bundle *b);

/* Splits data as the source says, or as its records do. As split_make. */
int source_draw(split *s, const source *from, const dataset *d, char *error);
/* The same, and completes what needs the split: series without an observation. 1, or 0 with a message
 * printed. */
int source_split(split *s, source *from, dataset *d);
void source_complete(const source *s, dataset *d); /* the same by means that are known */
/* Fits the preprocessing of a preset on raw data. time_scale 0: the largest training time. */
void source_fit(prep *p, const source *from, const dataset *d, const split *s, prep_kind scale, double time_scale);

#endif
