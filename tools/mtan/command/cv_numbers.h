/* Part of `mtan cv`: models that predict a number, or several labels. */
#ifndef MTAN_TOOLS_CV_NUMBERS_H
#define MTAN_TOOLS_CV_NUMBERS_H

#include <stdio.h>

#include "../measure/metrics.h"
#include "../model/session.h"

enum { FOLD_METRICS = METRICS + NUMBER_METRICS }; /* room for either kind */

/* Rows of all folds, one behind the other; zeros at first. */
typedef struct pooled_numbers {
    mtan_task task;
    number_predictions all;         /* its arrays are those below */
    double *p, *y;                  /* (rows, outputs); (rows, C): stb_ds arrays */
    int32_t *record;                /* (rows) likewise */
    double *measured[FOLD_METRICS]; /* (folds) likewise */
} pooled_numbers;

/* Measures a fold and writes its rows, the first one with the header. 1, or 0 with a message printed. */
int pooled_numbers_add(pooled_numbers *x, session *s, const options *o, int32_t fold, FILE *file);
void pooled_numbers_tell(pooled_numbers *x, int32_t folds, int32_t draws);
void pooled_numbers_free(pooled_numbers *x);

/* Mean and standard deviation (of n - 1) over the folds for which there is a number; x: an stb_ds array. */
void fold_spread(const double *x, double *mean, double *sd);

#endif
