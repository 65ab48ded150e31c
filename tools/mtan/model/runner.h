/* A model over many records, in parallel, in chunks that bound the memory. */
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
    int32_t threads, chunk; /* chunk: most records in one call of this one's predictors, fewer where they are large */
    mtan_pool own_pool, *pool;
    int borrowed;             /* the memory is a trainer's */
    const mtan_real *weights; /* the model's, where they were brought to a device for this run; or null */
    uint64_t seed;            /* of the samples */
    mtan_status status;       /* of the first chunk that failed; MTAN_OK when none has */
    size_t failed;            /* its first record; with MTAN_ERR_NUMERIC the first whose result is not finite */
    unsigned char *broken;    /* of the last run, for each record: its result is not finite */
    mtan_model grown;         /* the model with room for more steps of its solver, once a record has needed them */
} runner;

int runner_start(runner *r, const mtan_model *model, mtan_bounds bounds, int32_t threads, char *error);
/* The same in a trainer's scratch memory where that is enough, on its threads: between steps only, and refreshed after every step.
 * The model is the trainer's, or one on its averaged weights. */
int runner_borrow(runner *r, const mtan_trainer *trainer, const mtan_model *model, mtan_pool *pool, mtan_bounds bounds,
                  char *error);
void runner_seed(runner *r, uint64_t seed); /* of the samples of the latent state; 0 at first */
/* The weights (or borrowed memory) have changed: fold them again. */
mtan_status runner_refresh(runner *r);
/* body(context, predictor, first, count) for chunks of 0..n-1, each predictor used by one thread at a time. A body that fails ends
 * the run: 0, with r->status and r->failed (the first of its chunk) set. Where a solver ran out of room it gets more and the body is
 * called again for the chunk. After MTAN_ERR_NUMERIC it is called for each record of the chunk alone; the run then fails with that
 * status, r->broken says which records it was, and the body has done its work for all others. Memory that runs out in a body, on
 * whatever thread, has run out in runner_each. */
typedef mtan_status (*runner_body)(void *context, mtan_predictor *predictor, size_t first, size_t count);
int runner_each(runner *r, size_t n, runner_body body, void *context);
/* What to say behind the name of the record r->failed. */
const char *runner_doubt(const runner *r);

/* Class probabilities of n records, and logits (mean over the samples) where not NULL: rows of C, one per record or one per query
 * time. row0 (n + 1) says where each record's rows start. */
int runner_classify(runner *r, const mtan_record *records, size_t n, const size_t *row0, double *probability,
                    double *logit);
void runner_stop(runner *r);

#endif
