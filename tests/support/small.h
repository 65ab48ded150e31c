/* Small models of every kind, and random records for them within given bounds, for tests that iterate over all
 * kinds. */
#ifndef MTAN_TESTS_SMALL_H
#define MTAN_TESTS_SMALL_H

#include "check.h"

typedef struct {
    const char *name;
    mtan_config config;
    mtan_model model;
    mtan_real *weights; /* (count), a guarded block */
    size_t count;
} small_model;

/* Opens the model of that number with random weights; 0 past the last one. */
int small_open(small_model *s, int index);
int small_count(void);
int small_open_named(small_model *s, const char *name);
int small_close(small_model *s); /* 1: the guards are intact */

/* Applies "key value key value ..."; 0 when a setting is refused. */
int small_apply(mtan_config *config, const char *settings);

typedef struct {
    mtan_record *records; /* (n), a guarded block, like everything that the records point to */
    int32_t n;
} small_set;

/* n records with random content. `largest`: every count at its bound; otherwise between zero and its bound. Events are
 * not sorted, and times repeat if the bounds require it. Every record has targets, query times, labels and numbers. */
small_set small_records(const mtan_config *config, const mtan_bounds *bounds, int32_t n, int largest, uint64_t *random);
int small_free(small_set *set);

/* Trains for some steps on all records, with a rate and a decay that move every learned weight. Returns 0 if something
 * failed. */
int small_train(small_model *s, const mtan_bounds *bounds, const small_set *set, int steps);

/* Sizes of a call's results for a record: reference points, query times, distinct event times, rows of classes,
 * samples. */
int32_t small_points(const mtan_config *config, const mtan_record *record);
int32_t small_queries(const mtan_record *record);
int32_t small_distinct(const mtan_record *record);
size_t small_class_rows(const mtan_config *config, const small_set *set);
int32_t small_samples(const mtan_config *config);

/* splitmix64; an integer in [low, high]; a real in [-1, 1). */
uint64_t small_random(uint64_t *state);
int32_t small_whole(uint64_t *state, int32_t low, int32_t high);
mtan_real small_real(uint64_t *state);

#endif
