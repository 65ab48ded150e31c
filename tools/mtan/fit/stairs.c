/* See stairs.h. */
#include "stairs.h"

#include <math.h>
#include <stdlib.h>

#include "../../data/memory.h"
#include "../../data/percentile.h"
#include "../measure/logistic.h"
#include "../measure/ridge.h"

/* A regression of either kind. */
typedef struct line {
    size_t features, columns;
    const double *weight; /* (features + 1, columns); the constants come last */
    const standards *standard;
} line;

/* Copies the numbers that are read into (rows, features). */
static double *read_rows(boost_rows rows, const size_t *number, size_t features, size_t numbers) {
    double *x = tool_calloc(rows.n * features + 1, sizeof *x);
    for (size_t i = 0; i < rows.n; i++)
        for (size_t k = 0; k < features; k++) x[i * features + k] = (double)rows.x[i * numbers + number[k]];
    return x;
}

/* Steps with equal numbers of rows, as far as the number does not repeat. A row without the number takes the step of
 * the mean. */
static void split_steps(boost_split *split, const double *sorted, size_t n, size_t number, double mean) {
    for (int32_t k = 0; k < BOOST_SPLITS; k++) {
        const mtan_real threshold = boost_threshold(sorted, ((size_t)k + 1) * n / MTAN_LEAVES);
        split[k] = (boost_split){k, (int32_t)number, mean >= (double)threshold, threshold};
    }
}

/* The mean of the standardised number over the rows of each leaf. */
static void mean_steps(double mean[MTAN_LEAVES], const boost *b, boost_rows rows, const double *x, const standards *s,
                       size_t k) {
    double count[MTAN_LEAVES] = {0};
    for (int32_t i = 0; i < MTAN_LEAVES; i++) mean[i] = 0;
    for (size_t i = 0; i < rows.n; i++) {
        const size_t leaf = boost_leaf(b, (size_t)b->trees, rows.x + i * b->numbers);
        mean[leaf] += standard(s, x + i * s->features, k), count[leaf]++;
    }
    for (int32_t i = 0; i < MTAN_LEAVES; i++) mean[i] = count[i] > 0 ? mean[i] / count[i] : 0;
}

static void add_stairs(boost *b, const line *r, boost_rows rows, const double *x, size_t k, size_t number) {
    const size_t columns = r->columns, tree = (size_t)b->trees;
    double *sorted = tool_calloc(rows.n + 1, sizeof *sorted), mean[MTAN_LEAVES];
    size_t n = 0;
    for (size_t i = 0; i < rows.n; i++)
        if (!isnan(x[i * r->features + k])) sorted[n++] = x[i * r->features + k];
    sort_ascending(sorted, n);
    if (n > 0 && sorted[0] < sorted[n - 1]) {
        split_steps(b->split + tree * BOOST_SPLITS, sorted, n, number, r->standard->mean[k]);
        mean_steps(mean, b, rows, x, r->standard, k);
        for (size_t i = 0; i < MTAN_LEAVES; i++)
            for (size_t c = 0; c < columns; c++)
                b->height[(tree * MTAN_LEAVES + i) * columns + c] = mean[i] * r->weight[k * columns + c];
        b->trees++;
    }
    free(sorted);
}

/* Writes the line as trees: x (rows, features) are the rows of `number`, of which the steps are made. */
static void write_stairs(boost *b, const line *r, boost_rows rows, const double *x, const size_t *number) {
    for (size_t c = 0; c < r->columns; c++) b->start[c] = r->weight[r->features * r->columns + c];
    for (size_t k = 0; k < r->features; k++) add_stairs(b, r, rows, x, k, number[k]);
}

static double class_stairs(boost *b, boost_rows train, const double *x, boost_rows valid, const double *y,
                           const size_t *number, size_t features, double ridge) {
    const logistic_rows rows = {x, train.label, train.n}, judges = {y, valid.label, valid.n};
    logistic r;
    if (isnan(ridge)) logistic_choose(&r, rows, judges, features, b->classes);
    else logistic_fit(&r, rows, features, b->classes, ridge);
    write_stairs(b, &(line){features, r.columns, r.weight, &r.standard}, train, x, number);
    ridge = r.ridge;
    return logistic_free(&r), ridge;
}

static double target_stairs(boost *b, boost_rows train, const double *x, boost_rows valid, const double *y,
                            const size_t *number, size_t features, double ridge) {
    const ridge_rows rows = {x, train.target, train.n}, judges = {y, valid.target, valid.n};
    ridge_regression r;
    if (isnan(ridge)) ridge_choose(&r, rows, judges, features);
    else ridge_fit(&r, rows, features, ridge);
    write_stairs(b, &(line){features, 1, r.weight, &r.standard}, train, x, number);
    ridge = r.ridge;
    return ridge_free(&r), ridge;
}

double stairs_fit(boost *b, boost_rows train, boost_rows valid, const uint8_t *reads, size_t numbers, int32_t classes,
                  double ridge) {
    size_t *number = tool_calloc(numbers + 1, sizeof *number), features = 0;
    for (size_t j = 0; j < numbers; j++)
        if (reads[j]) number[features++] = j;
    double *x = read_rows(train, number, features, numbers), *y = read_rows(valid, number, features, numbers);
    *b = boost_empty(numbers, classes, (int32_t)features);
    ridge = (classes == 1 ? target_stairs : class_stairs)(b, train, x, valid, y, number, features, ridge);
    free(number), free(x), free(y);
    return ridge;
}
