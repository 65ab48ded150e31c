/* A question about records to a model: the common start and end of the predictions of flat.h. */
#ifndef MTAN_TOOLS_FLAT_QUESTION_H
#define MTAN_TOOLS_FLAT_QUESTION_H

#include "../run/runner.h"
#include "flat_call.h"

enum { QUERIES_AT_ONCE = 512 };

/* The question and the state on the way to the answer. Each function uses the members that it needs. */
typedef struct question {
    const mtan_flat_model *from;
    const mtan_flat_data *data;
    int32_t threads, samples;
    uint64_t seed;
    int32_t record, head, channel, draws;
    const double *noise; /* for a loss; NULL: drawn */
    double kl_weight;
    /* where results go */
    int64_t *offset;
    int32_t *count, *channels;
    double *out, *second, *third;
    /* made by question_open */
    mtan_model model; /* with the requested number of samples */
    const prep *prep;
    dataset set;
    runner run;
    mtan_real *query; /* (queries) in the model's units; NULL: none */
} question;

/* Calls `how`, which returns 1, or 0 with a message printed, and closes the question in both cases. Returns as
 * flat_call. */
int32_t question_ask(question q, int (*how)(question *q));

/* Prepares the records as the model sees them; with_labels: with their labels. 1, or 0 with a message printed; so do
 * the functions below. */
int question_open(question *q, int with_labels);
/* Starts q->run, with bounds for the queries too. */
int question_start(question *q, mtan_bounds bounds);
int question_has_record(const question *q); /* whether q->record exists */
int question_per_time(const question *q);   /* whether the model predicts at times */
/* Reports which record failed; returns 0. positions: of the records that were run, or NULL for all. */
int question_failed(const question *q, const int32_t *positions);

#endif
