/* Small models of every kind on made-up records, for tests that compare the library with itself. */
#ifndef MTAN_TESTS_SMALL_MODEL_H
#define MTAN_TESTS_SMALL_MODEL_H

#include "ladder.h"

typedef enum {
    SMALL_ENC,
    SMALL_FULL, /* 2 encoder heads, 4 decoder heads, 3 samples */
    SMALL_INTERP,
    SMALL_ENC_TIME,
    SMALL_FULL_TIME,
    SMALL_RBF_ENC,
    SMALL_RBF_FULL,
    SMALL_RNN3_ENC,
    SMALL_RNN3_FULL,
    SMALL_PER_HEAD, /* an embedding per head, importance-weighted bound */
    SMALL_FIXED,    /* positional embedding, no hidden layers in the head */
    SMALL_KINDS
} small_kind;
extern const char *const small_names[SMALL_KINDS];

enum { SMALL_CHANNELS = 3, SMALL_EVENTS = 11, SMALL_TIMES = 11 };

typedef struct {
    mtan_config config;
    mtan_model model;
    mtan_real *weights; /* mtan_weights_init with seed 0 */
    size_t count;
    int32_t n;
    mtan_record *records; /* n of 4 to 11 events; labels can be read off the values */
    mtan_event *events;   /* SMALL_EVENTS to a record */
    int32_t *labels;      /* SMALL_EVENTS to a record */
    mtan_bounds bounds;
    mtan_trainer trainer;
    mtan_predictor predictor;
    void *trainer_memory, *predictor_memory;
} small_model;

void small_config(mtan_config *config, small_kind kind);

/* Each exits when the library refuses: these are the ground the tests stand on. */
void small_open(small_model *s, small_kind kind, int32_t records);
void small_train(small_model *s, const mtan_train_config *config);
void small_predict(small_model *s, int32_t records_at_once); /* anew each time */

/* Frees everything; 0 when something was written outside its memory. */
int small_close(small_model *s);

mtan_real *small_copy(const mtan_real *x, size_t n); /* free it */

#endif
