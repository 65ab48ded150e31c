/* The model beside what one has without it: the shares of the classes and a logistic regression on summaries for classes, the same for
 * each of several labels; the mean and a ridge regression on summaries for numbers; the mean, the last value and straight lines for
 * curves. Everybody is measured on the same rows, and the difference to the best of the others on the same draws. Values of curves
 * are in the model's units, numbers in those that are asked for. */
#ifndef MTAN_TOOLS_CONTEST_H
#define MTAN_TOOLS_CONTEST_H

#include "../../data/dataset.h"
#include "interpolation.h"
#include "metrics.h"
#include "numbers.h"
#include "predictions.h"

/* Who takes part without a model. */
typedef enum rival_name {
    RIVAL_SHARES,     /* every row has the shares of the classes in training */
    RIVAL_PREVALENCE, /* every row has, for each label, its share in training */
    RIVAL_REGRESSION, /* logistic regression on summaries of the channels */
    RIVAL_RIDGE,      /* ridge regression on the same */
    RIVAL_MEAN,       /* the mean in training, of the channel or of the number */
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
    int in_units;                /* it has the unit of the data and may be of any size */
    double model, rival[RIVALS]; /* NaN: did not take part, or has no such number */
    rival_name best;             /* of the rivals; RIVALS: there is none */
    double better;  /* by how much the model is better than that one, whichever way the measure runs; NaN: no rival */
    interval range; /* of it, 95 %; NaN without draws */
} contest_number;

/* For those who make such measures: one of nobody; of the rivals that have the number, the first of the best; and by how much the model
 * is better, `difference` being a metric_function of the model's number minus the best rival's. */
contest_number contest_number_new(const char *key, const char *title, int higher);
rival_name contest_best(const contest_number *n);
void contest_judge(contest_number *n, metric_function difference, void *context, size_t rows, const int32_t *group,
                   int32_t draws);

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

/* ---- numbers and labels ---- */

/* What others say of the rows that have a number, or a label of several. */
typedef struct number_rivals {
    size_t rows;
    int32_t count;     /* numbers or labels of a row */
    double *y;         /* (rows, count) NaN: not known */
    int32_t *record;   /* (rows) the record's position in the data */
    double *p[RIVALS]; /* (rows, count); NULL: does not take part */
} number_rivals;
/* As class_rivals_make. Numbers are in the data's units, or, with units NULL, in the model's. */
void number_rivals_make(number_rivals *r, const dataset *d, const prep *units, const int32_t *train,
                        const int32_t *valid, const int32_t *asked);
void number_rivals_free(number_rivals *r);

/* RMSE, MAE and R2, or the metrics of labels, the mean over them, but for the calibration error. p: the model's rows of the same
 * records, in the same units, or NULL: the rivals alone. An stb_ds array. */
contest_number *contest_numbers(const number_rivals *r, const number_predictions *p, int32_t draws);
contest_number *contest_labels(const number_rivals *r, const number_predictions *p, int32_t draws);

/* ---- curves ---- */

/* Mean squared errors on held-out points, on all points and on the true curve, each where there are such points. model: (asked) of
 * each record, or NULL: the rivals alone. share: of the times that are shown. An stb_ds array. */
contest_number *contest_curves(const dataset *d, const int32_t *train, const int32_t *asked, double share,
                               const record_error *model, int32_t draws);

/* The number by which a model is judged: AUC of two classes, accuracy of more, the error on held-out points or, where there are
 * none, on the true curve, else on all; the RMSE of numbers. classes: 0 where there are none, 2 of labels, which are true or not.
 * NULL: none. */
int32_t contest_classes_of(const mtan_config *config);
const contest_number *contest_headline(const contest_number *numbers, int32_t classes);

#endif
