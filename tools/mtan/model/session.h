/* A model with its data: read, split as in training, preprocessed. */
#ifndef MTAN_TOOLS_SESSION_H
#define MTAN_TOOLS_SESSION_H

#include "../command/options.h"
#include "../measure/interpolation.h"
#include "../measure/numbers.h"
#include "../measure/predictions.h"
#include "source.h"

typedef struct session {
    bundle bundle;
    source source;
    dataset data;
    split split;
    int keep_times;     /* set by the caller: the data keeps its times' texts (dataset.h) */
    int32_t *positions; /* of the part asked for (--split, default "test"), an stb_ds array */
    const char *part;   /* "train", "valid", "test", "all" */
    data_match match;   /* whether this is the data of the training */
} session;

/* Opens MODEL with --data, --labels, --split. Data that the model was not trained on (another file) is used whole, which is said.
 * Returns 1, or 0 with a message printed. */
int session_open(session *s, const options *o, const char *model);
void session_explain(session *s); /* which records of the training data are used; other data is said already */
/* The same in halves, on a session of zeros: the model; then its data, raw. session_close is due after both, whatever they
 * return. */
int session_read_model(session *s, const options *o, const char *model);
int session_read_data(session *s, const options *o);
void session_close(session *s);

/* How many records a batch of the model's training had; 0: the file does not say. */
size_t session_batch(session *s);
/* Over s->positions, by a runner of its own (--threads, --seed). 1, or 0 with a message printed. */
int session_predict(session *s, const options *o, predictions *p);
int session_numbers(session *s, const options *o, number_predictions *p); /* of a model that predicts a number */
/* share: of the times shown. Intervals as --bootstrap says. each: (positions) room for every record's errors, or NULL. */
int session_interpolate(session *s, const options *o, double share, interpolation_error *e, record_error *each);

#endif
