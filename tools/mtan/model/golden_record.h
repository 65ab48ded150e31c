/* A record with its expected output, kept in a model file, so that `mtan selftest MODEL` proves a model on any machine. */
#ifndef MTAN_TOOLS_GOLDEN_RECORD_H
#define MTAN_TOOLS_GOLDEN_RECORD_H

#include "../../data/split.h"
#include "bundle.h"
#include "runner.h"

/* Picks a small record that was not trained on, runs it through the runner's model and adds it as mtan.golden.* */
void golden_record_write(runner *run, const dataset *d, const split *s, mtan_file_pair **pairs);

/* The most bytes that it adds to a file of such a model. */
size_t golden_record_room(const mtan_config *config);

/* The record of a model file. The arrays are of stb_ds: golden_record_free. */
typedef struct golden_record {
    mtan_record record; /* filled by golden_record_run */
    mtan_event *events; /* as the model sees them */
    mtan_real *times;   /* query times; none for a class per record */
    mtan_real *output;  /* what is expected */
    int fused;          /* of the class of arithmetic that computed it */
} golden_record;

/* 0: the file holds none that can be used; free it all the same. */
int golden_record_read(golden_record *x, bundle *b);
/* How many reals a model makes of it: probabilities, or the mean of the interpolation. */
size_t golden_record_size(const mtan_config *config, const golden_record *x);
mtan_status golden_record_run(mtan_predictor *p, golden_record *x, mtan_real *out);
void golden_record_free(golden_record *x);

/* The file's record through another model of the same settings: the largest difference from what the file's own model gives.
 * 0 when the file has no such record. */
int golden_record_change(bundle *b, const mtan_model *other, double *change);
/* The output promised in pairs with malloc'd texts becomes that of the other model. */
void golden_record_renew(bundle *b, const mtan_model *other, mtan_file_pair *pairs);

#endif
