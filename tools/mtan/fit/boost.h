/* Boosted trees: each is fitted to what the sum of those before it gets wrong, and moves that sum a little (Friedman 2001). A number that
 * tells much in one range alone, or only beside another, is a split or two here and hard for a network that has seen few records; a number
 * that tells nothing gets no split. It knows nothing of records.
 *
 * A tree grows by the split that lowers the log-loss most, of any leaf: by a number, one of its thresholds and the side of rows without
 * it. Thresholds lie just below quantiles of the training rows. A leaf moves its rows by `rate` of a Newton step. Each split is chosen among a few
 * numbers, drawn anew: trees differ, and their sum is steadier. Two classes have one sum, of class 1 against class 0; more have one each,
 * which all leaves of a tree move. */
#ifndef MTAN_TOOLS_BOOST_H
#define MTAN_TOOLS_BOOST_H

#include <stddef.h>
#include <stdint.h>

#include "../../../mtan.h"

enum { BOOST_SPLITS = MTAN_LEAVES - 1 };

/* x (n, numbers), NaN: missing; label (n) of 0 .. classes - 1. */
typedef struct boost_rows {
    const mtan_real *x;
    const int32_t *label;
    size_t n;
} boost_rows;

typedef struct boost boost;

typedef struct boost_rule {
    size_t numbers;
    int32_t classes;
    int32_t trees;      /* at most; as many are kept as give the lowest log-loss of the validation rows */
    int32_t patience;   /* trees that do not lower it end the fit */
    int32_t thresholds; /* of a number */
    size_t tried;       /* numbers that a split is chosen among, or more while none of them gives one */
    size_t least;       /* rows of a leaf */
    double rate, ridge; /* ridge: added to the curvature of a leaf */
    uint32_t seed;      /* of what is drawn */
    const boost *first; /* the trees to begin with, which count among `trees`; NULL: none */
} boost_rule;

/* Split k of a tree is of the rows in `leaf`, and makes leaf k + 1: of those whose number is the threshold or more, and of those without
 * the number where `side` is 1. leaf < 0: there is none, nor a later one. */
typedef struct boost_split {
    int32_t leaf, number, side;
    mtan_real threshold;
} boost_split;

struct boost {
    size_t numbers;
    int32_t classes, columns; /* columns: sums of a row */
    int32_t trees;
    boost_split *split; /* (trees, BOOST_SPLITS) */
    double *height;     /* (trees, MTAN_LEAVES, columns) */
    double *start;      /* (columns) where every row's sum begins */
};

/* For so many training rows. PhysioNet's numbers (data_sets.c), mean AUC of five folds: a thousand trees at rate 0.01 0.860, five hundred at
 * 0.02 0.858; 63 thresholds the same, 16 leaves 0.860, least 10 0.860; four sums of 250 trees each, averaged, 0.861. */
boost_rule boost_default(size_t numbers, size_t rows, int32_t classes, int32_t trees, uint32_t seed);
/* Without validation rows there is no tree. */
void boost_fit(boost *b, boost_rows train, boost_rows valid, const boost_rule *rule);
/* The trees of both, each with half of its height: a row's sums are the mean of theirs. */
void boost_mean(boost *mean, const boost *a, const boost *b);
/* Room for so many trees, of which there is none yet. */
boost boost_empty(size_t numbers, int32_t classes, int32_t trees);
/* A threshold just below number i of an ascending list. */
mtan_real boost_threshold(const double *ascending, size_t i);
size_t boost_leaf(const boost *b, size_t tree, const mtan_real *x);
/* Logits (n) become probabilities. */
void boost_softmax(double *x, size_t n);
/* A row's sums as logits, (classes). */
void boost_at(const boost *b, const mtan_real *x, double *logit);
void boost_free(boost *b);

#endif
