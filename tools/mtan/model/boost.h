/* Boosted terms: a step function of each number of a row, fitted one step at a time. A number that tells much in one range alone is
 * one step here and hard for a network that has seen few records; a number that tells nothing gets no step. The sum is a generalised
 * additive model (Lou, Caruana, Gehrke 2012). It knows nothing of records.
 *
 * A round looks for the step that lowers the log-loss most: a number, one of its thresholds and the side of rows without it. Both
 * sides move by BOOST_RATE of a Newton step. Thresholds are quantiles of the training rows. Two classes have one term, of class 1
 * against class 0; more have one each, moved in turn. */
#ifndef MTAN_TOOLS_BOOST_H
#define MTAN_TOOLS_BOOST_H

#include <stddef.h>
#include <stdint.h>

#include "../../../mtan.h"

#define BOOST_RATE 0.1
#define BOOST_RIDGE 5.0 /* added to the curvature of a side */
enum {
    BOOST_ROUNDS = 1000, /* mostly enough */
    BOOST_PATIENCE = 60, /* rounds without a lower log-loss on the validation rows */
    BOOST_LEAST = 10,    /* rows on each side of a step */
};

/* x (n, numbers), NaN: missing; label (n) of 0 .. classes - 1. */
typedef struct boost_rows {
    const mtan_real *x;
    const int32_t *label;
    size_t n;
} boost_rows;

typedef struct boost {
    size_t numbers;
    int32_t classes, columns, thresholds; /* columns: terms of each number */
    mtan_real *threshold;                 /* (numbers, thresholds), ascending */
    double *height; /* (numbers, thresholds + 2, columns): without the number, below the first, ... */
    double *start;  /* (columns) where every row's sum begins */
    int32_t rounds; /* with the lowest log-loss on the validation rows */
} boost;

/* Rounds are chosen on the validation rows; without any there is none. */
typedef struct boost_size {
    size_t numbers;
    int32_t classes, thresholds, rounds; /* rounds: at most */
} boost_size;
void boost_fit(boost *b, boost_rows train, boost_rows valid, boost_size size);
/* Logits (n) become probabilities. */
void boost_softmax(double *x, size_t n);
/* The sums of a row's terms as logits, (classes). */
void boost_at(const boost *b, const mtan_real *x, double *logit);
void boost_free(boost *b);

#endif
