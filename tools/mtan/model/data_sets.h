/* The data sets that the command knows, a row each. All that is particular to one stands in its row: to add one takes its loader
 * (tools/data), a row and a test. */
#ifndef MTAN_TOOLS_DATA_SETS_H
#define MTAN_TOOLS_DATA_SETS_H

#include "../../data/prep.h"
#include "source.h"

/* What a preset does with the data. The first of a pair is for classes, the second for interpolation. */
typedef struct data_defaults {
    prep_kind scale[2];
    split_kind split[2];
    double time_scale;           /* times are divided by this; 0: by the largest training time */
    double baselines_time_scale; /* the same for the paper's baselines */
} data_defaults;

typedef struct data_setting {
    const char *key, *value; /* of a model's setting, or of an option of `mtan train` that takes a number or a word */
} data_setting;

typedef struct data_set {
    const char *name;
    /* reading */
    int (*load)(dataset *d, const source *s, const source_input *in);
    int needs_data;         /* it is read, from --data, not made */
    int own;                /* people's own files: a CSV of any channels, read record by record for predictions */
    const char *variant[2]; /* what of it is read, for classes and for interpolation */
    /* finding */
    int (*recognise)(const char *file_name); /* is this one of its files? NULL: `mtan check` cannot tell */
    int is_folder;                           /* one of its files alone is not the data set */
    const char *folders[4];                  /* where `mtan table` looks for it, up to a NULL */
    const char *how;                         /* to come by it */
    void (*imitate)(dataset *d,
                    const source *s); /* as many made records like it, for `mtan bench`; NULL: there are none */
    /* what is in it: own data sets its own */
    mtan_classify_kind classify;
    int32_t channels, classes;
    const char *const
        *coded; /* channels in which -1 means missing (Q36), which the correct preset heeds, up to a NULL; or NULL */
    /* what a series without an observation gets at time 0, from `n` training records or, with NULL, from all; or NULL */
    void (*means)(const dataset *d, const int32_t *train, size_t n, double *means);
    void (*fill)(dataset *d, const double *means);
    /* training */
    mtan_preset preset;                /* where --preset is not given */
    data_defaults defaults[2];         /* by preset; the third is as the second here */
    const data_setting *best;          /* what validation has chosen for the preset best, up to a NULL; or NULL */
    const data_setting *reconstructed; /* of baselines that reconstruct and classify, in correct and best; likewise */
    int by_group;                      /* records of one group stay on one side of the split */
    /* the same for mTAND-Full that interpolates, for the presets correct and best */
    const data_setting *curves[2];
    double observed; /* share of the times shown for interpolation; 1: all, and the true curve is what counts */
    double enc_rate; /* of mTAND-Enc in the correct preset; 0: the recipe's */
    int32_t baseline_epochs;
} data_set;

extern const data_set data_sets[]; /* ends with a NULL name */

/* By the first `length` bytes of a name; NULL: none. */
const data_set *data_set_named(const char *name, size_t length);
/* Which one lies at a path, by the names of files: never NULL for a file (own); NULL for a folder of something else,
 * with errno 0, or for one that cannot be listed, with errno set. */
const data_set *data_set_at(const char *path);
/* The names of those that are read from files, in words: "physionet, activity, mimic3 or own". */
void data_set_list(char *text, size_t size);

#endif
