/* A question to a model about records: how the predictions of flat.h begin and end. */
#ifndef MTAN_TOOLS_FLAT_QUESTION_H
#define MTAN_TOOLS_FLAT_QUESTION_H

#include "../model/runner.h"
#include "flat_call.h"

enum { QUERIES_AT_ONCE = 512 };

/* What is asked, and on the way to the answer. Each function uses what it needs of it. */
typedef struct question {
    const mtan_flat_model *from;
    const mtan_flat_data *data;
    int32_t threads, samples;
    uint64_t seed;
    int32_t record, head, channel, draws;
    const double *noise; /* of a loss; NULL: drawn */
    double kl_weight;
    /* where results go */
    int64_t *offset;
    int32_t *count, *channels;
    double *out, *second, *third;
    /* made by question_open */
    mtan_model model; /* with as many samples as were asked for */
    const prep *prep;
    dataset set;
    runner run;
    mtan_real *query; /* (queries) in the model's units; NULL: none */
} question;

/* Calls `how`, which answers 1, or 0 with a message printed; the question is closed whatever it answers. As flat_call. */
int32_t question_ask(question q, int (*how)(question *q));

/* The records as the model sees them; with_labels: with what they are labelled. 1, or 0 with a message printed, as those that
 * follow. */
int question_open(question *q, int with_labels);
/* Starts q->run, with room for the queries too. */
int question_start(question *q, mtan_bounds bounds);
int question_has_record(const question *q); /* is q->record one? */
int question_per_time(const question *q);   /* does the model predict at times? */
/* Says which record failed; 0. positions: of the records that were run, or NULL for all. */
int question_failed(const question *q, const int32_t *positions);

#endif
