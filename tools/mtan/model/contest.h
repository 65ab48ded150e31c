/* The model beside what one has without it: the shares of the classes and a logistic regression on summaries for classes; the mean,
 * the last value and straight lines for curves. Everybody is measured on the same rows, and the difference to the best of the
 * others on the same draws. Values are in the model's units. */
#ifndef MTAN_TOOLS_CONTEST_H
#define MTAN_TOOLS_CONTEST_H

#include "../../data/dataset.h"
#include "interpolation.h"
#include "metrics.h"
#include "predictions.h"

/* Who takes part without a model. */
typedef enum rival_name {
    RIVAL_SHARES,     /* every row has the shares of the classes in training */
    RIVAL_REGRESSION, /* logistic regression on summaries of the channels */
    RIVAL_MEAN,       /* the channel's mean in training */
    RIVAL_LAST,       /* the last value carried forward */
    RIVAL_LINES,      /* straight lines between neighbours */
    RIVALS
} rival_name;
const char *rival_key(rival_name name);   /* "regression", for programs */
const char *rival_title(rival_name name); /* "logistic regression on summaries", for people */

/* One measure of all who took part. */
typedef struct contest_number {
    const char *key, *title;
    int higher;                  /* 1: higher values are better, -1: lower ones */
    double model, rival[RIVALS]; /* NaN: did not take part, or has no such number */
    rival_name best;             /* of the rivals; RIVALS: there is none */
    double better;  /* by how much the model is better than that one, whichever way the measure runs; NaN: no rival */
    interval range; /* of it, 95 %; NaN without draws */
} contest_number;

/* ---- classes ---- */

/* Probabilities for the labelled rows of some records. */
typedef struct class_rivals {
    size_t rows;
    int32_t classes;
    int32_t *label, *record; /* (rows) the class; the record's position in the data */
    double *p[RIVALS];       /* (rows, classes); NULL: does not take part */
    double ridge;            /* of the regression; NaN: none could be fitted */
} class_rivals;
/* Fitted to the records `train` and, for the ridge, `valid` (without any: a part of the training records); asked about the
 * labelled rows of `asked`, in their order. Without a training record the shares are those of the rows asked about, and there is no
 * regression. stb_ds arrays of positions. */
void class_rivals_make(class_rivals *r, const dataset *d, const int32_t *train, const int32_t *valid,
                       const int32_t *asked);
void class_rivals_free(class_rivals *r);

/* All metrics but the calibration error, of which a constant has none. p: the model's labelled rows of the same records, or NULL:
 * the rivals alone. An stb_ds array. */
contest_number *contest_classes(const class_rivals *r, const predictions *p, int32_t draws);

/* ---- curves ---- */

/* Mean squared errors on held-out points, on all points and on the true curve, each where there are such points. model: (asked) of
 * each record, or NULL: the rivals alone. share: of the times that are shown. An stb_ds array. */
contest_number *contest_curves(const dataset *d, const int32_t *train, const int32_t *asked, double share,
                               const record_error *model, int32_t draws);

/* The number by which a model is judged: AUC of two classes, accuracy of more, the error on held-out points or, where there are
 * none, on the true curve, else on all. NULL: none. */
const contest_number *contest_headline(const contest_number *numbers, int32_t classes);

#endif
