/* How two model files differ, and whether the difference shows in their predictions: the computing part of `mtan
 * compare`.
 *
 * Tensors are matched by name and compared by value, in double. An int8 matrix is compared by the numbers it stands
 * for: integers times the scales of their rows. The order of tensors in the file and the bytes between them do not
 * count. Nothing is written, and nothing says which model is better. */
#ifndef MTAN_TOOLS_DIFFERENCE_H
#define MTAN_TOOLS_DIFFERENCE_H

#include <stddef.h>
#include <stdint.h>

#include "../../../mtan.h"
#include "../../data/array.h"
#include "../measure/metrics.h"
#include "../torch/tensor_set.h"

typedef enum difference_kind {
    DIFFERENCE_NONE,   /* the same type, shape and bits */
    DIFFERENCE_VALUES, /* the same shape; the type may differ */
    DIFFERENCE_SHAPE,
    DIFFERENCE_ONLY_A,
    DIFFERENCE_ONLY_B
} difference_kind;

typedef struct tensor_difference {
    char *name;
    difference_kind kind;
    mtan_tensor_view a, b; /* zeros where a file lacks the tensor */
    double largest;        /* absolute difference; infinite where NaN or an infinity meets something else */
    size_t where;          /* the element, in row-major order */
    double relative;       /* norm of b - a, divided by the norm of a; 0 when both are 0 */
} tensor_difference;

typedef struct metadata_difference {
    char *key, *a, *b; /* NULL: the file has no such key */
    int counts; /* 0: how it was trained (mtan.run.*, mtan.plan.*), or derived from the weights (mtan.golden.*) */
} metadata_difference;

typedef struct differences {
    tensor_difference *tensors; /* stb_ds array: those of A in its order, then those that only B has */
    metadata_difference *metadata;
    int metadata_compared;
} differences;

/* Fills d; the views point into the files. Call differences_free afterwards. Between a checkpoint and a model file, the
 * optimiser's state and the metadata are not compared, because the two kinds of file store different ones. */
void differences_find(differences *d, const tensor_set *a, const tensor_set *b);
/* 1 when every tensor is in both files and differs by at most `tolerance` (0: equal bits), and no metadata that counts
 * differs. */
int differences_equal(const differences *d, double tolerance);
void differences_free(differences *d);

/* ---- in their predictions ---- */

/* The same n rows predicted twice. */
typedef struct paired {
    size_t n;
    int32_t classes;
    const int32_t *label;         /* (n) all labelled */
    const int32_t *record;        /* (n) rows of one record are drawn together; NULL: each row by itself */
    const double *p[2];           /* (n, C) */
    const double *score[2];       /* (n) what AUC ranks, with two classes */
    const double *squared_sum[2]; /* interpolation, one row per record: sum of its squared errors */
    const double *points;         /* (n) and the number of points in that sum */
} paired;

typedef struct paired_metric {
    const char *name;
    double a, b;
    interval difference; /* 95 % interval of b - a; NaN without draws */
} paired_metric;

/* AUC, accuracy and log-loss, or MSE alone where squared_sum is set; an stb_ds array. */
paired_metric *paired_metrics(const paired *x, int32_t draws, uint32_t seed);
/* Number of rows for which the two predict a different class. */
size_t paired_changes(const paired *x);

#endif
