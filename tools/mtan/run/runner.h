/* Runs a model over many records, in parallel, in chunks that bound the memory. */
#ifndef MTAN_TOOLS_RUNNER_H
#define MTAN_TOOLS_RUNNER_H

#include "../../../mtan.h"
#include "../../../platform/pool.h"

enum { RUNNER_CHUNK = 16 }; /* most records in one call of a predictor */

typedef struct runner {
    const mtan_model *model;
    mtan_predictor *predictor; /* one per thread */
    void **memory;
    mtan_bounds bounds;
    int32_t threads, chunk; /* chunk: most records in one call of these predictors, fewer for large records */
    mtan_pool own_pool, *pool;
    int borrowed;             /* the memory belongs to a trainer */
    const mtan_real *weights; /* the model's weights, if this runner sent them to a device; or null */
    uint64_t seed;            /* seed of the latent samples */
    mtan_status status;       /* of the first chunk that failed; MTAN_OK if none did */
    size_t failed;            /* its first record; with MTAN_ERR_NUMERIC the first with a result that is not finite */
    unsigned char *broken;    /* (records) of the last run: the result is not finite */
    mtan_model grown;         /* copy of the model with room for more solver steps, once a record has needed them */
} runner;

int runner_start(runner *r, const mtan_model *model, mtan_bounds bounds, int32_t threads, char *error);
/* The same on a trainer's threads, and in its scratch memory if that is large enough. Use it between steps only, and
 * refresh it after every step. The model is the trainer's, or one with its averaged weights. */
int runner_borrow(runner *r, const mtan_trainer *trainer, const mtan_model *model, mtan_pool *pool, mtan_bounds bounds,
                  char *error);
void runner_seed(runner *r, uint64_t seed); /* of the latent samples; initially 0 */
/* Folds the weights again; call it after the weights or borrowed memory have changed. */
mtan_status runner_refresh(runner *r);
/* Calls body(context, predictor, first, count) for chunks of 0..n-1; only one thread at a time uses a predictor. A body
 * that fails ends the run: 0, with r->status and r->failed (the first record of its chunk) set. If a solver runs out of
 * room, it gets more and the body is called again for the chunk. After MTAN_ERR_NUMERIC the body is called for each
 * record of the chunk alone; the run then fails with that status, r->broken marks those records, and the body has done
 * its work for all others. If a body runs out of memory on any thread, runner_each fails with it on the caller's
 * thread. */
typedef mtan_status (*runner_body)(void *context, mtan_predictor *predictor, size_t first, size_t count);
int runner_each(runner *r, size_t n, runner_body body, void *context);
/* Text to print after the name of record r->failed. */
const char *runner_doubt(const runner *r);

/* Class probabilities of n records, and logits (mean over the samples), each if not NULL: rows of C, one per record or
 * one per query time. row0 (n + 1): the first row of each record. */
int runner_classify(runner *r, const mtan_record *records, size_t n, const size_t *row0, double *probability,
                    double *logit);
void runner_stop(runner *r);

#endif
