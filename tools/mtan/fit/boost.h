/* Boosted trees: each tree is fitted to the errors of the sum of the trees before it, and moves that sum a little
 * (Friedman 2001). A number that is informative only within one range, or only together with another number, takes a
 * split or two here, but is hard to learn for a network that has seen few records. An uninformative number gets no
 * split. This code works on rows of numbers and knows nothing of records.
 *
 * A tree grows by the split that lowers the log-loss most, over all leaves. A split consists of a number, one of its
 * thresholds, and the side that takes the rows without the number. Thresholds lie just below quantiles of the training
 * rows. A leaf moves its rows by `rate` of a Newton step. Each split is chosen among a few numbers that are drawn anew,
 * so that trees differ and their sum is steadier. Two classes share one sum, class 1 against class 0; of more classes
 * each has its own sum, and every leaf of a tree moves all of them. Where a row has a number to predict in place of a
 * class, half of the squared error takes the place of the log-loss, and the sum is the prediction. */
#ifndef MTAN_TOOLS_BOOST_H
#define MTAN_TOOLS_BOOST_H

#include <stddef.h>
#include <stdint.h>

#include "../../../mtan.h"

enum { BOOST_SPLITS = MTAN_LEAVES - 1 };

/* x (n, numbers), NaN: missing; label (n) of 0 .. classes - 1; with `classes` 1 in the rule, target (n) in its place. */
typedef struct boost_rows {
    const mtan_real *x;
    const int32_t *label;
    size_t n;
    const double *target;
} boost_rows;

typedef struct boost boost;

typedef struct boost_rule {
    size_t numbers;
    int32_t classes;    /* 1: none, the rows have targets */
    int32_t trees;      /* at most; the fit keeps those up to the lowest validation loss */
    int32_t patience;   /* early stopping: so many trees in a row without a lower validation loss */
    int32_t thresholds; /* per number */
    size_t tried;       /* numbers that are tried for a split; more while none of them gives one */
    size_t least;       /* fewest rows of a leaf */
    double rate, ridge; /* ridge: added to the curvature of a leaf */
    uint32_t seed;      /* of the draws of numbers */
    const boost *first; /* trees to start from, which count towards `trees`; NULL: none */
} boost_rule;

/* Split k of a tree divides the rows in `leaf` and makes leaf k + 1. Leaf k + 1 gets the rows whose number is at or
 * above the threshold and, where `side` is 1, the rows without the number. leaf < 0: there is no such split, and no
 * later one. */
typedef struct boost_split {
    int32_t leaf, number, side;
    mtan_real threshold;
} boost_split;

struct boost {
    size_t numbers;
    int32_t classes, columns; /* columns: sums per row */
    int32_t trees;
    boost_split *split; /* (trees, BOOST_SPLITS) */
    double *height;     /* (trees, MTAN_LEAVES, columns) */
    double *start;      /* (columns) the initial sums of every row */
};

/* Defaults for `rows` training rows. Mean AUC over five folds on PhysioNet's numbers (data_sets.c): 1000 trees at rate
 * 0.01 0.860; 500 trees at rate 0.02 0.858; 63 thresholds the same; 16 leaves 0.860; least 10 0.860; four sums of 250
 * trees each, averaged, 0.861. */
boost_rule boost_default(size_t numbers, size_t rows, int32_t classes, int32_t trees, uint32_t seed);
/* Without training or validation rows it adds no tree to those of rule->first. It asks before each tree whether to stop
 * (stop.h). */
void boost_fit(boost *b, boost_rows train, boost_rows valid, const boost_rule *rule);
/* Takes the trees of both at half their height, so that a row's sums are the mean of the two. */
void boost_mean(boost *mean, const boost *a, const boost *b);
/* Room for `trees` trees; b.trees is 0. */
boost boost_empty(size_t numbers, int32_t classes, int32_t trees);
/* A threshold just below number i of an ascending list. */
mtan_real boost_threshold(const double *ascending, size_t i);
size_t boost_leaf(const boost *b, size_t tree, const mtan_real *x);
/* Turns logits (n) into probabilities, in place. */
void boost_softmax(double *x, size_t n);
/* A row's sums as logits, (classes); of targets its prediction. */
void boost_at(const boost *b, const mtan_real *x, double *logit);
void boost_free(boost *b);

#endif
