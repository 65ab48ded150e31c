/* The data sets that the command knows, as a table. Everything specific to a data set is in its row: a new one needs a
 * loader (tools/data), a row and a test. */
#ifndef MTAN_TOOLS_DATA_SETS_H
#define MTAN_TOOLS_DATA_SETS_H

#include "../../data/prep.h"
#include "source.h"

/* What a preset does with the data. The first of each pair is for classes, the second for interpolation. */
typedef struct data_defaults {
    prep_kind scale[2];
    split_kind split[2];
    double time_scale;           /* times are divided by this; 0: by the largest training time */
    double baselines_time_scale; /* the same for the paper's baselines */
} data_defaults;

typedef struct data_setting {
    const char *key, *value; /* a model's setting, or an option of `mtan train` that takes a number or a word */
} data_setting;

typedef struct data_set {
    const char *name;
    /* reading */
    int (*load)(dataset *d, const source *s, const source_input *in);
    int needs_data;         /* it is read from --data, not generated */
    int own;                /* the user's own files: a CSV with any channels, which predictions read record by record */
    const char *variant[2]; /* the variant that is read, for classes and for interpolation */
    /* finding */
    int (*recognise)(const char *file_name); /* does this file belong to it? NULL: `mtan check` cannot tell */
    int is_folder;                           /* it is a folder: one of its files alone is not the data set */
    const char *folders[4];                  /* where `mtan table` looks for it; ends with NULL */
    const char *how;                         /* how to get it */
    /* Generates as many records of the same kind, for `mtan bench`; NULL: cannot. */
    void (*imitate)(dataset *d, const source *s);
    /* its content; own data sets its own */
    mtan_classify_kind classify;
    int32_t channels, classes;
    /* Channels in which -1 means missing (Q36), up to a NULL; the correct preset treats it so. NULL: there are none. */
    const char *const *coded;
    /* The value at time 0 that a series without an observation gets: its mean over `n` training records, or over all
     * with train NULL. NULL: it gets none. */
    void (*means)(const dataset *d, const int32_t *train, size_t n, double *means);
    void (*fill)(dataset *d, const double *means);
    /* training */
    mtan_preset preset;                /* without --preset */
    data_defaults defaults[2];         /* for the presets faithful and correct; best uses those of correct */
    const data_setting *best;          /* settings that validation chose for the preset best, up to a NULL; or NULL */
    const data_setting *reconstructed; /* likewise, of baselines that reconstruct and classify, in correct and best */
    int by_group;                      /* records of one group stay in the same part of the split */
    /* likewise, of mTAND-Full for interpolation, in the presets correct and best */
    const data_setting *curves[2];
    int curves_again; /* in these presets, models that interpolate are trained once more on the validation records too */
    double observed; /* share of the times shown for interpolation; 1: all, and the true curve counts */
    double enc_rate; /* learning rate of mTAND-Enc in the correct preset; 0: the recipe's */
    int32_t baseline_epochs;
} data_set;

extern const data_set data_sets[]; /* ends with a NULL name */

/* Looks up the first `length` bytes of a name; NULL: no such data set. */
const data_set *data_set_named(const char *name, size_t length);
/* Recognises the data set at a path by the names of its files. A file gives at least own, never NULL. NULL for a
 * folder: with errno 0 it is not recognised, with errno set it cannot be listed. */
const data_set *data_set_at(const char *path);
/* Lists the names of the data sets that are read from files: "physionet, activity, mimic3 or own". */
void data_set_list(char *text, size_t size);

#endif
