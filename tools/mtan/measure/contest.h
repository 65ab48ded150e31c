/* The model against baselines. Classes: the class shares and a logistic regression on summaries; several labels: the
 * same for each label. Numbers: the mean and a ridge regression on summaries. Curves: the mean, the last value and
 * straight lines. All are measured on the same rows, and the difference to the best baseline on the same bootstrap
 * draws. Values of curves are in the model's units, numbers in the units that the caller asks for. */
#ifndef MTAN_TOOLS_CONTEST_H
#define MTAN_TOOLS_CONTEST_H

#include "../../data/dataset.h"
#include "interpolation.h"
#include "metrics.h"
#include "numbers.h"
#include "predictions.h"

/* The baselines ("rivals" of the model). */
typedef enum rival_name {
    RIVAL_SHARES,     /* every row gets the class shares of the training data */
    RIVAL_PREVALENCE, /* every row gets each label's share in the training data */
    RIVAL_REGRESSION, /* logistic regression on summaries of the channels */
    RIVAL_RIDGE,      /* ridge regression on summaries of the channels */
    RIVAL_MEAN,       /* the training mean of the channel or of the number */
    RIVAL_LAST,       /* the last value carried forward */
    RIVAL_LINES,      /* linear interpolation */
    RIVALS
} rival_name;
const char *rival_key(rival_name name);   /* "regression", for programs */
const char *rival_title(rival_name name); /* "logistic regression on summaries", for people */

/* One metric of the model and of all baselines. */
typedef struct contest_number {
    const char *key, *title;
    int higher;                  /* 1: higher values are better, -1: lower ones */
    int in_units;                /* the metric has the unit of the data, so its size is arbitrary */
    double model, rival[RIVALS]; /* NaN: does not take part, or has no such metric */
    rival_name best;             /* the best baseline; RIVALS: there is none */
    /* better: by how much the model is better than the best baseline, for higher and lower metrics alike; NaN: no
     * baseline */
    double better;
    interval range; /* 95 % interval of `better`; NaN without draws */
    /* The records measured; and of metrics that rank, those of the rarest class (of labels: of the rarer side of the
     * label that has most). SIZE_MAX: not counted. */
    size_t records, rarest;
} contest_number;

/* With fewer records, or fewer of a class, the interval is too narrow to tell who is better. Of two equal models, one
 * had an AUC that was better by more than chance in 31, 13, 7 and 6 % of the samples with 1, 2, 3 and 5 records of a
 * class and 100 of the other, and a log-loss in 26, 11, 7 and 6 % of those with 2, 4, 6 and 10 records: 1000 to 2000
 * samples each; it should be 2.5 %. */
enum { CONTEST_RECORDS = 10, CONTEST_OF_CLASS = 5 };

/* For code that makes contest_numbers. contest_number_new: all values NaN, nothing counted. contest_best: the best
 * baseline that has the metric, the first of equals. contest_judge: sets `better` and its range; `difference` is a
 * metric_function of the model's value minus the best baseline's. contest_records: how many records have a row with
 * this label, or with label NULL any row; the rows of a record are adjacent. */
contest_number contest_number_new(const char *key, const char *title, int higher);
rival_name contest_best(const contest_number *n);
size_t contest_records(const int32_t *record, const int32_t *label, size_t rows, int32_t of);
void contest_judge(contest_number *n, metric_function difference, void *context, size_t rows, const int32_t *group,
                   int32_t draws);

/* ---- classes ---- */

/* The baselines' probabilities for the labelled rows of some records. */
typedef struct class_rivals {
    size_t rows;
    int32_t classes;
    int32_t *label, *record; /* (rows) the class; the record's position in the data */
    double *p[RIVALS];       /* (rows, classes); NULL: does not take part */
    double ridge;            /* of the regression; NaN: none could be fitted */
} class_rivals;
/* Fits the baselines to the records `train` and chooses the ridge on `valid`, or on a part of the training records if
 * `valid` is empty. Predicts the labelled rows of `asked`, in their order. Without a training record the shares are
 * those of the rows in `asked`, and there is no regression. All three are stb_ds arrays of positions. */
void class_rivals_make(class_rivals *r, const dataset *d, const int32_t *train, const int32_t *valid,
                       const int32_t *asked);
void class_rivals_free(class_rivals *r);

/* All metrics except the calibration error, in which a constant prediction is perfect. p: the model's labelled rows of
 * the same records, or NULL for the baselines alone. Returns an stb_ds array. */
contest_number *contest_classes(const class_rivals *r, const predictions *p, int32_t draws);

/* ---- numbers and labels ---- */

/* The baselines' predictions for the rows that have a number or labels. */
typedef struct number_rivals {
    size_t rows;
    int32_t count;     /* numbers or labels per row */
    double *y;         /* (rows, count) NaN: not known */
    int32_t *record;   /* (rows) the record's position in the data */
    double *p[RIVALS]; /* (rows, count); NULL: does not take part */
} number_rivals;
/* As class_rivals_make. Numbers are in the data's units, or with units NULL in the model's. */
void number_rivals_make(number_rivals *r, const dataset *d, const prep *units, const int32_t *train,
                        const int32_t *valid, const int32_t *asked);
void number_rivals_free(number_rivals *r);

/* RMSE, MAE and R2 of numbers; of labels the means over the labels of all metrics except the calibration error. p: the
 * model's rows of the same records, in the same units, or NULL for the baselines alone. Returns an stb_ds array. */
contest_number *contest_numbers(const number_rivals *r, const number_predictions *p, int32_t draws);
contest_number *contest_labels(const number_rivals *r, const number_predictions *p, int32_t draws);

/* ---- curves ---- */

/* Mean squared errors on held-out points, on all points and on the true curve, as far as there are such points. model
 * (asked): the errors of each record, or NULL for the baselines alone. share: of the times shown. Returns an stb_ds
 * array. */
contest_number *contest_curves(const dataset *d, const int32_t *train, const int32_t *asked, double share,
                               const record_error *model, int32_t draws);

/* The headline metric: AUC of two classes or of labels, accuracy of more classes, RMSE of numbers; of curves the error
 * on held-out points, else on the true curve, else on all points. classes: 0 where there are none, 2 for labels. NULL:
 * none of them was measured. */
int32_t contest_classes_of(const mtan_config *config);
const contest_number *contest_headline(const contest_number *numbers, int32_t classes);

#endif
