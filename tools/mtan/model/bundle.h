/* A model file with all that is needed to use it: weights and settings (mtan_model_save), preprocessing (prep.h), where the
 * data came from and how it was split, how far training went, and a record with its expected output. */
#ifndef MTAN_TOOLS_BUNDLE_H
#define MTAN_TOOLS_BUNDLE_H

#include "../../data/prep.h"
#include "../../../platform/pool.h"
#include "../../data/split.h"

typedef struct bundle {
    mtan_model model;
    mtan_real *weights; /* (P, and K given points) */
    prep prep;          /* kind PREP_NONE and no channel names for a converted model without statistics */
    void *blob;         /* the file, for what is read later: trainer state, metadata */
    size_t bytes;
    mtan_file file;
    char **texts; /* metadata values handed out */
} bundle;

/* Reads a model file. 1, or 0 with error (512 bytes) set. The backend is the best of this CPU. */
int bundle_read(bundle *b, const char *path, char *error);
/* A metadata value ("mtan.run.epoch"), or `otherwise`; valid until bundle_free. */
const char *bundle_text(bundle *b, const char *key, const char *otherwise);
double bundle_number(bundle *b, const char *key, double otherwise);
void bundle_free(bundle *b);

/* Writes atomically: to a temporary name in the same folder, flushed (file and folder), renamed. `pairs` are added to those
 * of the preprocessing. trainer may be NULL. 1, or 0 with error set and nothing changed. */
int bundle_write(const char *path, const mtan_model *model, const mtan_trainer *trainer, const prep *p,
                 const mtan_file_pair *pairs, size_t n_pairs, char *error);
/* Pairs whose texts are malloc'd: add one, free the texts of n. */
void pairs_add(mtan_file_pair **pairs, const char *key, const char *value);
void pairs_free(mtan_file_pair *pairs, size_t n);
/* The same way for any bytes. */
int file_write(const char *path, const void *bytes, size_t n, char *error);
/* The whole file; malloc'd and zero-terminated behind `bytes`; NULL with error set. */
void *file_read(const char *path, size_t *bytes, char *error);
/* Keeps a folder to this process: a descriptor for folder_unlock; -1: another one has it and there is no waiting, or the folder
 * cannot be opened. */
int folder_lock(const char *path, int wait);
void folder_unlock(int lock);

/* ---- running a model over many records, in parallel, in chunks that bound the memory ---- */

typedef struct runner {
    const mtan_model *model;
    mtan_predictor *predictor; /* one per thread */
    void **memory;
    mtan_bounds bounds;
    int32_t threads, chunk; /* chunk: most records in one call of a predictor */
    mtan_pool own_pool, *pool;
    int borrowed;             /* the memory is a trainer's */
    const mtan_real *weights; /* the model's, where they were brought to a device for this run; or null */
    uint64_t seed;            /* of the samples */
    mtan_status status;       /* of the first chunk that failed */
    size_t failed;            /* its first record */
    mtan_model grown;         /* the model with room for more steps of its solver, once a record has needed them */
} runner;

/* The bounds that hold every record of a data set for a model: dataset_bounds, but where the query times become steps of the
 * sequence beside the event times (a class per time by a baseline) they count together. records stays 0. */
mtan_bounds model_bounds(const mtan_config *c, const dataset *d);
/* Doubles the room for the steps of an adaptive solver, with a message; 0: there is none, or it has enough. */
int grow_steps(mtan_config *c);

int runner_start(runner *r, const mtan_model *model, mtan_bounds bounds, int32_t threads, char *error);
/* The same in a trainer's scratch memory where that is enough, on its threads: between steps only, and refreshed after every step. */
int runner_borrow(runner *r, const mtan_trainer *trainer, mtan_pool *pool, mtan_bounds bounds, char *error);
void runner_seed(runner *r, uint64_t seed); /* of the samples of the latent state; 0 at first */
/* The weights (or borrowed memory) have changed: fold them again. */
mtan_status runner_refresh(runner *r);
/* body(context, predictor, first, count) for chunks of 0..n-1, each predictor used by one thread at a time. A body that fails ends
 * the run: 0, with r->status and r->failed (the first of its chunk) set. Where a solver ran out of room it gets more and the body is
 * called again for the chunk. */
typedef mtan_status (*runner_body)(void *context, mtan_predictor *predictor, size_t first, size_t count);
int runner_each(runner *r, size_t n, runner_body body, void *context);

/* Class probabilities of n records, and logits (mean over the samples) where not NULL: rows of C, one per record or one per query
 * time. row0 (n + 1) says where each record's rows start. */
int runner_classify(runner *r, const mtan_record *records, size_t n, const size_t *row0, double *probability,
                    double *logit);
void runner_stop(runner *r);

#endif
