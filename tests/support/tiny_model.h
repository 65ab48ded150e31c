/* Tiny models of every kind with made-up records, for tests that compare the library with itself. */
#ifndef MTAN_TESTS_TINY_MODEL_H
#define MTAN_TESTS_TINY_MODEL_H

#include "ladder.h"

typedef enum {
    TINY_ENC,
    TINY_FULL, /* 2 encoder heads, 4 decoder heads, 3 samples */
    TINY_INTERP,
    TINY_ENC_TIME,
    TINY_FULL_TIME,
    TINY_RBF_ENC,
    TINY_RBF_FULL,
    TINY_RNN3_ENC,
    TINY_RNN3_FULL,
    TINY_PER_HEAD, /* an embedding per head, importance-weighted bound */
    TINY_FIXED,    /* positional embedding, no hidden layers in the head */
    TINY_OBSERVED, /* latent states at the observed times */
    TINY_LINEAR,   /* a class per time from one layer, which is folded into the decoder */
    TINY_VARIANCE, /* a learned variance: 2 encoder heads, 2 decoder heads, 3 samples */
    TINY_OBSERVED_VARIANCE,
    TINY_KINDS
} tiny_kind;
extern const char *const tiny_names[TINY_KINDS];
int tiny_left_out(tiny_kind kind); /* case_left_out of tiny-NAME */

enum { TINY_CHANNELS = 3, TINY_EVENTS = 11, TINY_TIMES = 11 };

/* Steps of a test that trains on several threads. Two steps show ThreadSanitizer every access, at 30 times the cost. */
#ifdef MTAN_TESTS_THREADED
enum { TINY_STEPS = 2 };
#else
enum { TINY_STEPS = 10 };
#endif

typedef struct {
    mtan_config config;
    mtan_model model;
    mtan_real *weights; /* mtan_weights_init with seed 0 */
    size_t count;
    int32_t n;
    mtan_record *records; /* n of 4 to 11 events; labels can be read off the values */
    mtan_event *events;   /* TINY_EVENTS to a record */
    int32_t *labels;      /* TINY_EVENTS to a record */
    mtan_bounds bounds;
    mtan_trainer trainer;
    mtan_predictor predictor;
    void *trainer_memory, *predictor_memory;
} tiny_model;

void tiny_config(mtan_config *config, tiny_kind kind);

/* Each exits if the library refuses, because the tests depend on them. */
void tiny_open(tiny_model *s, tiny_kind kind, int32_t records);
void tiny_train(tiny_model *s, const mtan_train_config *config);
void tiny_predict(tiny_model *s, int32_t records_at_once); /* into a new array each time */

/* Frees everything; returns 0 if something was written outside its memory. */
int tiny_close(tiny_model *s);

mtan_real *tiny_copy(const mtan_real *x, size_t n); /* free it */

#endif
