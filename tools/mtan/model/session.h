/* A model with its data: read, split as in training, preprocessed. */
#ifndef MTAN_TOOLS_SESSION_H
#define MTAN_TOOLS_SESSION_H

#include "../options/options.h"
#include "../measure/interpolation.h"
#include "../measure/numbers.h"
#include "../measure/predictions.h"
#include "source.h"

typedef struct session {
    bundle bundle;
    source source;
    dataset data;
    split split;
    int keep_times;     /* keep the texts of times (dataset.h): set before session_read_data */
    int32_t *positions; /* of the requested part (--split, default "test"), an stb_ds array */
    const char *part;   /* "train", "valid", "test", "all" */
    data_match match;   /* whether this is the data of the training */
} session;

/* Opens MODEL with --data, --labels, --split. Data that the model was not trained on is used completely, with a
 * message. Returns 1, or 0 with a message printed. */
int session_open(session *s, const options *o, const char *model);
/* The same, and keeps the texts of times if the model predicts labels of times. */
int session_open_times(session *s, const options *o, const char *model);
void session_explain(session *s); /* prints which records of the training data are used */
/* session_open in two halves, for a zeroed session: the model, then its data, raw. session_close is due after both,
 * whatever they return. */
int session_read_model(session *s, const options *o, const char *model);
int session_read_data(session *s, const options *o);
void session_close(session *s);

/* Records per batch in the model's training; 0: unknown. */
size_t session_batch(session *s);
/* Runs the model over s->positions (--threads, --seed). 1, or 0 with a message printed. */
int session_predict(session *s, const options *o, predictions *p);
int session_numbers(session *s, const options *o, number_predictions *p); /* for models of numbers or labels */
/* share: of the times shown. Intervals by --bootstrap. each: (positions) gets the errors of every record, or NULL. */
int session_interpolate(session *s, const options *o, double share, interpolation_error *e, record_error *each);

#endif
