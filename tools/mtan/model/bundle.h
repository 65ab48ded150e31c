/* A model file with everything needed to use the model: weights and settings (mtan_model_save), preprocessing (prep.h),
 * the origin and the split of the data, the progress of training, and a record with its expected output. */
#ifndef MTAN_TOOLS_BUNDLE_H
#define MTAN_TOOLS_BUNDLE_H

#include "../../data/prep.h"

/* Metadata key of a model that was retrained with the validation records. */
#define RUN_AGAIN "mtan.run.again"

typedef struct bundle {
    mtan_model model;
    mtan_real *weights; /* (P, and K given points) */
    prep prep;          /* kind PREP_NONE and no channel names for a converted model without statistics */
    void *blob;         /* the file's bytes, read later for trainer state and metadata */
    size_t bytes;
    mtan_file file;
    char **texts; /* metadata values that bundle_text returned */
} bundle;

/* Reads a model file. 1, or 0 with error (512 bytes) set. The backend is the best of this CPU. */
int bundle_read(bundle *b, const char *path, char *error);
/* The same for a file in memory: n bytes, which are copied. name: used in errors. */
int bundle_open(bundle *b, const void *bytes, size_t n, const char *name, char *error);
/* A metadata value ("mtan.run.epoch"), or `otherwise`; valid until bundle_free. */
const char *bundle_text(bundle *b, const char *key, const char *otherwise);
double bundle_number(bundle *b, const char *key, double otherwise);
void bundle_free(bundle *b);

/* Replaces the file atomically, as file_write does. `pairs` are added to those of the preprocessing. trainer may be
 * NULL. 1, or 0 with error set and nothing changed. */
int bundle_write(const char *path, const mtan_model *model, const mtan_trainer *trainer, const prep *p,
                 const mtan_file_pair *pairs, size_t n_pairs, char *error);
/* Composes the same file, without a trainer, into an stb_ds array that it replaces. 1, or 0 with error set and *file
 * NULL. */
int bundle_compose(char **file, const mtan_model *model, const prep *p, const mtan_file_pair *pairs, size_t n_pairs,
                   char *error);
/* Whether bundle_write could write such a file with `room` more bytes of metadata; a dry run. 1, or 0 with error set,
 * which says what a model file does not accept: a name that is not UTF-8, or too many names. */
int bundle_check(const mtan_model *model, const prep *p, const mtan_file_pair *pairs, size_t n_pairs, size_t room,
                 char *error);
/* Finds a model's parameter by name; 0: it has none. */
int param_find(mtan_param *p, const mtan_config *config, const char *name);
/* Pairs with malloc'd texts: add one; copy those of a file whose keys start with `beginning`; free the texts of the
 * first n. */
void pairs_add(mtan_file_pair **pairs, const char *key, const char *value);
void pairs_copy(mtan_file_pair **pairs, const mtan_file *file, const char *beginning);
void pairs_free(mtan_file_pair *pairs, size_t n);

#endif
