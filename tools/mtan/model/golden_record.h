/* A record with its expected output, stored in a model file, so that `mtan selftest MODEL` can verify the model on any
 * machine. */
#ifndef MTAN_TOOLS_GOLDEN_RECORD_H
#define MTAN_TOOLS_GOLDEN_RECORD_H

#include "../../data/split.h"
#include "../run/runner.h"
#include "bundle.h"

/* Picks a small record, preferably one that was not trained on, runs it through the runner's model and adds it as
 * mtan.golden.*. */
void golden_record_write(runner *run, const dataset *d, const split *s, mtan_file_pair **pairs);

/* An upper bound on the bytes that it adds to the file of such a model. */
size_t golden_record_room(const mtan_config *config);

/* The self-test record of a model file. The arrays are stb_ds: golden_record_free. */
typedef struct golden_record {
    mtan_record record; /* filled by golden_record_run */
    mtan_event *events; /* as the model sees them */
    mtan_real *times;   /* query times; none for a class per record */
    mtan_real *output;  /* the expected output */
    int fused;          /* it was computed with fused multiply-add */
} golden_record;

/* 0: the file holds no usable record; call golden_record_free all the same. */
int golden_record_read(golden_record *x, bundle *b);
/* The number of reals in the output: probabilities, or the mean of the interpolation. */
size_t golden_record_size(const mtan_config *config, const golden_record *x);
mtan_status golden_record_run(mtan_predictor *p, golden_record *x, mtan_real *out);
void golden_record_free(golden_record *x);

typedef struct golden_verdict {
    size_t numbers;         /* compared */
    int same_class, passed; /* same_class: hardware with fused multiply-add both, or both without: the bits are equal */
    double worst;           /* difference; infinite: the model cannot run it */
} golden_verdict;

/* Runs the file's record on the model's backend. 1, or 0 with error (512 bytes) set: it could not be run. */
int golden_record_test(golden_verdict *v, bundle *b, golden_record *x, char *error);

/* Runs the file's record through another model of the same settings: *change gets the largest difference from the
 * output of the file's own model. 0: there is no such record, or a model cannot run it. */
int golden_record_change(bundle *b, const mtan_model *other, double *change);
/* Replaces the expected output in pairs (malloc'd texts) by the other model's. */
void golden_record_renew(bundle *b, const mtan_model *other, mtan_file_pair *pairs);

#endif
