/* See boost.h. */
#include "boost.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/generators.h"
#include "../../data/memory.h"
#include "../../data/percentile.h"
#include "../measure/metrics.h"
#include "../measure/stop.h"

/* Rows of the fit with the step of each number (its bin between thresholds), and their sums so far. */
typedef struct placed {
    boost_rows rows;
    uint16_t *step; /* (numbers, n): 0 without the number, else 1 + the thresholds at or below it */
    double *sum;    /* (n, columns) */
    double *p;      /* (n, classes) */
    uint8_t *leaf;  /* (n) of the newest tree */
} placed;

/* Sums of the gradient and the curvature of the loss. */
typedef struct slope {
    double g, h;
} slope;

/* A candidate split: rows up to step `at` stay, and so do rows without the number where `side` is 0. */
typedef struct choice {
    size_t number;
    int32_t at, side;
    double gain;
} choice;

/* The rows of a leaf: `n` entries of the fit's `order`, starting at `first`. */
typedef struct leaf {
    size_t first, n;
    choice best;
} leaf;

/* A fit in progress, with workspace for the sums over a leaf: `at` each step of a number (steps, columns); `low`, below
 * a step, without and with the rows that lack the number (2, columns); `all`, over the whole leaf (columns). */
typedef struct fit {
    boost *b;
    const boost_rule *rule;
    mtan_real *threshold; /* (numbers, thresholds), ascending */
    placed train, valid;
    slope *slope; /* (n, columns) of the training rows */
    uint32_t *order, *moved;
    size_t *number; /* all numbers, in the order that the last draws left */
    mtan_mt19937 random;
    slope *at, *low, *all;
    double *count; /* (steps) rows */
    leaf leaf[MTAN_LEAVES];
} fit;

static size_t within(size_t x, size_t least, size_t most) {
    return x < least ? least : x > most ? most : x;
}

/* A split tries a tenth of the numbers, but at least ten, or all if there are fewer. The fewer the trees, the larger
 * the rate. */
boost_rule boost_default(size_t numbers, size_t rows, int32_t classes, int32_t trees, uint32_t seed) {
    const double reach = 10; /* trees times rate */
    return (boost_rule){.numbers = numbers,
                        .classes = classes,
                        .trees = trees,
                        .patience = trees / 10 + 1,
                        .thresholds = 31,
                        .tried = within(numbers / 10, numbers < 10 ? numbers : 10, numbers),
                        .least = within(rows / 100, 3, 20),
                        .rate = fmin(0.1, reach / trees),
                        .ridge = 5,
                        .seed = seed};
}

/* ---- rows ---- */

/* Half way between x[i] and the next smaller number, so that a row stays on the same side when its number is computed
 * again with another rounding. */
mtan_real boost_threshold(const double *x, size_t i) {
    const size_t here = i;
    while (i > 0 && !(x[i - 1] < x[here])) i--;
    const mtan_real middle = i > 0 ? (mtan_real)((x[i - 1] + x[here]) / 2) : (mtan_real)x[here];
    return i > 0 && !(x[i - 1] < (double)middle) ? (mtan_real)x[here] : middle;
}

/* Thresholds at quantiles of the rows that have the number. A repeated threshold gives an empty step. */
static void find_thresholds(fit *f, boost_rows train) {
    double *seen = tool_calloc(train.n + 1, sizeof *seen);
    const size_t T = (size_t)f->rule->thresholds, numbers = f->rule->numbers;
    for (size_t j = 0; j < numbers; j++) {
        size_t n = 0;
        for (size_t i = 0; i < train.n; i++)
            if (!isnan(train.x[i * numbers + j])) seen[n++] = (double)train.x[i * numbers + j];
        sort_ascending(seen, n);
        for (size_t k = 0; n > 0 && k < T; k++) f->threshold[j * T + k] = boost_threshold(seen, (k + 1) * n / (T + 1));
    }
    free(seen);
}

static uint16_t step_of(const mtan_real *threshold, size_t n, mtan_real x) {
    size_t step = 1;
    if (isnan(x)) return 0;
    while (step <= n && threshold[step - 1] <= x) step++;
    return (uint16_t)step;
}

static int has_targets(const boost *b) {
    return b->classes == 1;
}

/* The logits of a row from its sums. Of two classes, class 0 has no sum: its logit is 0. */
static void spread_columns(const boost *b, const double *sum, double *logit) {
    if (b->columns == 1) logit[0] = 0, logit[1] = sum[0];
    else memcpy(logit, sum, (size_t)b->classes * sizeof *logit);
}

void boost_softmax(double *x, size_t n) {
    double most = x[0], sum = 0;
    for (size_t i = 1; i < n; i++) most = x[i] > most ? x[i] : most;
    for (size_t i = 0; i < n; i++) sum += x[i] = exp(x[i] - most);
    for (size_t i = 0; i < n; i++) x[i] /= sum;
}

static void refresh(const boost *b, placed *r) {
    const size_t C = (size_t)b->classes;
    for (size_t i = 0; i < r->rows.n && !has_targets(b); i++) {
        spread_columns(b, r->sum + i * (size_t)b->columns, r->p + i * C);
        boost_softmax(r->p + i * C, C);
    }
}

size_t boost_leaf(const boost *b, size_t tree, const mtan_real *x) {
    const boost_split *split = b->split + tree * BOOST_SPLITS;
    int32_t at = 0;
    for (int32_t k = 0; k < BOOST_SPLITS; k++) {
        const mtan_real number = x[split[k].number];
        if (split[k].leaf == at && (isnan(number) ? split[k].side : number >= split[k].threshold)) at = k + 1;
    }
    return (size_t)at;
}

static void add_up(const boost *b, const mtan_real *x, double *sum) {
    const size_t columns = (size_t)b->columns;
    memcpy(sum, b->start, columns * sizeof *sum);
    for (size_t t = 0; t < (size_t)b->trees; t++) {
        const double *height = b->height + (t * MTAN_LEAVES + boost_leaf(b, t, x)) * columns;
        for (size_t c = 0; c < columns; c++) sum[c] += height[c];
    }
}

static placed place(const fit *f, boost_rows rows) {
    const size_t n = rows.n, columns = (size_t)f->b->columns, numbers = f->rule->numbers;
    const size_t T = (size_t)f->rule->thresholds;
    placed r = {rows, tool_calloc(numbers * n + 1, sizeof *r.step), tool_calloc(n * columns + 1, sizeof *r.sum),
                tool_calloc(n * (size_t)f->b->classes + 1, sizeof *r.p), tool_calloc(n + 1, sizeof *r.leaf)};
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < numbers; j++)
            r.step[j * n + i] = step_of(f->threshold + j * T, T, rows.x[i * numbers + j]);
        add_up(f->b, rows.x + i * numbers, r.sum + i * columns);
    }
    refresh(f->b, &r);
    return r;
}

static void placed_free(placed *r) {
    free(r->step), free(r->sum), free(r->p), free(r->leaf);
}

static double mean_target(boost_rows rows) {
    double sum = 0;
    for (size_t i = 0; i < rows.n; i++) sum += rows.target[i];
    return rows.n > 0 ? sum / (double)rows.n : 0;
}

/* Every row's sums start at the log of the class frequency; of two classes, at the log-odds of class 1; of targets, at
 * their mean. */
static void find_start(boost *b, boost_rows train) {
    if (has_targets(b)) {
        b->start[0] = mean_target(train);
        return;
    }
    double *count = tool_calloc((size_t)b->classes, sizeof *count);
    for (size_t i = 0; i < train.n; i++) count[train.label[i]]++;
    for (int32_t c = 0; c < b->classes; c++) count[c] = fmax(count[c], 0.5);
    for (int32_t k = 0; k < b->columns; k++) b->start[k] = log(b->columns == 1 ? count[1] / count[0] : count[k]);
    free(count);
}

static int goes(const choice *c, size_t step) {
    return step == 0 ? c->side : step > (size_t)c->at;
}

/* ---- the best split of a leaf ---- */

static double gain_of(const fit *f, slope s) {
    return s.g * s.g / (s.h + f->rule->ridge);
}

/* The gain of splitting a leaf in two, with the sums `low` on one side. */
static double gain_by(const fit *f, const slope *low) {
    double gain = 0;
    for (int32_t c = 0; c < f->b->columns; c++) {
        const slope high = {f->all[c].g - low[c].g, f->all[c].h - low[c].h};
        gain += gain_of(f, low[c]) + gain_of(f, high) - gain_of(f, f->all[c]);
    }
    return gain;
}

static void consider(const fit *f, leaf *l, choice c, const slope *low, double rows) {
    const double least = (double)f->rule->least;
    if (rows < least || (double)l->n - rows < least) return;
    c.gain = gain_by(f, low);
    if (c.gain > l->best.gain) l->best = c;
}

static void add_slopes(slope *to, const slope *s, size_t n) {
    for (size_t i = 0; i < n; i++) to[i].g += s[i].g, to[i].h += s[i].h;
}

static void count_steps(fit *f, const leaf *l, size_t number) {
    const size_t columns = (size_t)f->b->columns, steps = (size_t)f->rule->thresholds + 2;
    const uint16_t *step = f->train.step + number * f->train.rows.n;
    memset(f->at, 0, steps * columns * sizeof *f->at);
    memset(f->count, 0, steps * sizeof *f->count);
    for (size_t i = 0; i < l->n; i++) {
        const size_t row = f->order[l->first + i];
        add_slopes(f->at + step[row] * columns, f->slope + row * columns, columns);
        f->count[step[row]]++;
    }
}

/* Tries every threshold, with the rows that lack the number on either side. The last step separates rows that have the
 * number from rows that do not. */
static void try_number(fit *f, leaf *l, size_t number) {
    const size_t columns = (size_t)f->b->columns, steps = (size_t)f->rule->thresholds + 2;
    slope *seen = f->low, *with = f->low + columns;
    double rows = 0;
    count_steps(f, l, number);
    memset(seen, 0, columns * sizeof *seen);
    memcpy(with, f->at, columns * sizeof *with);
    for (size_t k = 1; k < steps; k++) {
        add_slopes(seen, f->at + k * columns, columns), add_slopes(with, f->at + k * columns, columns);
        rows += f->count[k];
        consider(f, l, (choice){number, (int32_t)k, 1, 0}, seen, rows);
        if (f->count[0] > 0) consider(f, l, (choice){number, (int32_t)k, 0, 0}, with, rows + f->count[0]);
    }
}

/* The number to try in turn i: drawn without replacement, or simply number i of the list when all are tried. */
static size_t draw(fit *f, size_t i) {
    const size_t n = f->rule->numbers, all = f->rule->tried >= n;
    const size_t k = all ? i : i + numpy_interval(&f->random, (uint32_t)(n - 1 - i)), drawn = f->number[k];
    f->number[k] = f->number[i];
    return f->number[i] = drawn;
}

static void sum_leaf(fit *f, const leaf *l) {
    const size_t columns = (size_t)f->b->columns;
    memset(f->all, 0, columns * sizeof *f->all);
    for (size_t i = 0; i < l->n; i++) add_slopes(f->all, f->slope + f->order[l->first + i] * columns, columns);
}

/* Tries more than rule->tried numbers while none of them splits the leaf. */
static void find_split(fit *f, leaf *l) {
    l->best = (choice){0, 0, 0, 1e-12};
    if (l->n < 2 * f->rule->least) return;
    sum_leaf(f, l);
    for (size_t i = 0; i < f->rule->numbers && (i < f->rule->tried || l->best.at == 0); i++)
        try_number(f, l, draw(f, i));
}

/* ---- a tree ---- */

static void mark(placed *r, const choice *c, int32_t from, int32_t to) {
    const uint16_t *step = r->step + c->number * r->rows.n;
    for (size_t i = 0; i < r->rows.n; i++)
        if (r->leaf[i] == from && goes(c, step[i])) r->leaf[i] = (uint8_t)to;
}

/* Moves rows to leaf `to`; both leaves keep the order of their rows. */
static void divide(fit *f, leaf *from, leaf *to) {
    const uint16_t *step = f->train.step + from->best.number * f->train.rows.n;
    uint32_t *row = f->order + from->first;
    size_t kept = 0, gone = 0;
    for (size_t i = 0; i < from->n; i++)
        if (goes(&from->best, step[row[i]])) f->moved[gone++] = row[i];
        else row[kept++] = row[i];
    memcpy(row + kept, f->moved, gone * sizeof *row);
    *to = (leaf){from->first + kept, gone, {0, 0, 0, 0}};
    from->n = kept;
}

static boost_split split_by(const fit *f, int32_t from, const choice *c) {
    const size_t T = (size_t)f->rule->thresholds;
    const mtan_real *threshold = f->threshold + c->number * T;
    return (boost_split){from, (int32_t)c->number, c->side,
                         (size_t)c->at <= T ? threshold[c->at - 1] : (mtan_real)FLT_MAX};
}

static int32_t leaf_to_split(const fit *f, int32_t leaves) {
    int32_t best = 0;
    for (int32_t i = 1; i < leaves; i++)
        if (f->leaf[i].best.gain > f->leaf[best].best.gain) best = i;
    return f->leaf[best].best.at > 0 ? best : -1;
}

/* Returns the number of leaves: 1 when no split helps. */
static int32_t grow(fit *f, boost_split *split) {
    int32_t leaves = 1, from;
    for (size_t i = 0; i < f->train.rows.n; i++) f->order[i] = (uint32_t)i;
    memset(f->train.leaf, 0, f->train.rows.n), memset(f->valid.leaf, 0, f->valid.rows.n);
    f->leaf[0] = (leaf){0, f->train.rows.n, {0, 0, 0, 0}};
    find_split(f, &f->leaf[0]);
    for (int32_t k = 0; k < BOOST_SPLITS; k++) split[k].leaf = -1;
    for (; leaves < MTAN_LEAVES && (from = leaf_to_split(f, leaves)) >= 0; leaves++) {
        leaf *l = &f->leaf[from];
        split[leaves - 1] = split_by(f, from, &l->best);
        mark(&f->train, &l->best, from, leaves), mark(&f->valid, &l->best, from, leaves);
        divide(f, l, &f->leaf[leaves]);
        find_split(f, l), find_split(f, &f->leaf[leaves]);
    }
    return leaves;
}

static void lift(const boost *b, placed *r, const double *height) {
    const size_t columns = (size_t)b->columns;
    for (size_t i = 0; i < r->rows.n; i++)
        for (size_t c = 0; c < columns; c++) r->sum[i * columns + c] += height[r->leaf[i] * columns + c];
    refresh(b, r);
}

static void find_class_slopes(fit *f, size_t i) {
    const size_t columns = (size_t)f->b->columns, C = (size_t)f->b->classes;
    for (size_t c = 0; c < columns; c++) {
        const size_t of = columns == 1 ? 1 : c;
        const double p = f->train.p[i * C + of];
        f->slope[i * columns + c] = (slope){p - ((size_t)f->train.rows.label[i] == of), p * (1 - p)};
    }
}

static void find_slopes(fit *f) {
    for (size_t i = 0; i < f->train.rows.n; i++)
        if (has_targets(f->b)) f->slope[i] = (slope){f->train.sum[i] - f->train.rows.target[i], 1};
        else find_class_slopes(f, i);
}

/* Returns 0 when no split helps. */
static int add_tree(fit *f) {
    boost *b = f->b;
    const size_t columns = (size_t)b->columns;
    double *height = b->height + (size_t)b->trees * MTAN_LEAVES * columns;
    find_slopes(f);
    const int32_t leaves = grow(f, b->split + (size_t)b->trees * BOOST_SPLITS);
    if (leaves == 1) return 0;
    for (int32_t i = 0; i < leaves; i++) {
        sum_leaf(f, &f->leaf[i]);
        for (size_t c = 0; c < columns; c++)
            height[(size_t)i * columns + c] = -f->rule->rate * f->all[c].g / (f->all[c].h + f->rule->ridge);
    }
    lift(b, &f->train, height), lift(b, &f->valid, height);
    b->trees++;
    return 1;
}

/* The mean log-loss or squared error. */
static double valid_loss(const fit *f) {
    const boost_rows valid = f->valid.rows;
    double sum = 0;
    if (!has_targets(f->b)) return metric_log_loss(f->valid.p, valid.label, valid.n, f->b->classes);
    for (size_t i = 0; i < valid.n; i++) {
        const double off = f->valid.sum[i] - valid.target[i];
        sum += off * off;
    }
    return sum / (double)valid.n;
}

static void add_trees(fit *f) {
    double least = valid_loss(f);
    int32_t kept = f->b->trees;
    while (!stop_asked() && f->b->trees < f->rule->trees && f->b->trees - kept < f->rule->patience && add_tree(f)) {
        const double loss = valid_loss(f);
        if (loss < least) least = loss, kept = f->b->trees;
    }
    f->b->trees = kept;
}

/* ---- a fit ---- */

static void fit_start(fit *f, boost_rows train, boost_rows valid) {
    const size_t steps = (size_t)f->rule->thresholds + 2, columns = (size_t)f->b->columns;
    f->train = place(f, train), f->valid = place(f, valid);
    f->slope = tool_calloc(train.n * columns, sizeof *f->slope);
    f->order = tool_calloc(train.n, sizeof *f->order), f->moved = tool_calloc(train.n, sizeof *f->moved);
    f->number = tool_calloc(f->rule->numbers, sizeof *f->number);
    f->at = tool_calloc(steps * columns, sizeof *f->at), f->count = tool_calloc(steps, sizeof *f->count);
    f->low = tool_calloc(2 * columns, sizeof *f->low), f->all = tool_calloc(columns, sizeof *f->all);
    for (size_t j = 0; j < f->rule->numbers; j++) f->number[j] = j;
    mtan_mt_seed(&f->random, f->rule->seed);
}

static void fit_end(fit *f) {
    placed_free(&f->train), placed_free(&f->valid);
    free(f->slope), free(f->order), free(f->moved), free(f->number);
    free(f->at), free(f->count), free(f->low), free(f->all);
}

boost boost_empty(size_t numbers, int32_t classes, int32_t trees) {
    const size_t columns = classes == 2 ? 1 : (size_t)classes, n = (size_t)trees;
    boost b = {.numbers = numbers, .classes = classes, .columns = (int32_t)columns};
    b.split = tool_calloc(n * BOOST_SPLITS + 1, sizeof *b.split);
    b.height = tool_calloc(n * MTAN_LEAVES * columns + 1, sizeof *b.height);
    b.start = tool_calloc(columns, sizeof *b.start);
    return b;
}

/* Appends trees with their heights and start times `part`. */
static void append(boost *b, const boost *more, double part) {
    const size_t columns = (size_t)b->columns, at = (size_t)b->trees, n = (size_t)more->trees;
    const size_t heights = MTAN_LEAVES * columns;
    memcpy(b->split + at * BOOST_SPLITS, more->split, n * BOOST_SPLITS * sizeof *b->split);
    for (size_t i = 0; i < n * heights; i++) b->height[at * heights + i] = part * more->height[i];
    for (size_t c = 0; c < columns; c++) b->start[c] += part * more->start[c];
    b->trees += more->trees;
}

void boost_mean(boost *mean, const boost *a, const boost *b) {
    *mean = boost_empty(a->numbers, a->classes, a->trees + b->trees);
    append(mean, a, 0.5), append(mean, b, 0.5);
}

void boost_fit(boost *b, boost_rows train, boost_rows valid, const boost_rule *rule) {
    fit f = {.b = b, .rule = rule};
    const int32_t given = rule->first ? rule->first->trees : 0;
    *b = boost_empty(rule->numbers, rule->classes, given > rule->trees ? given : rule->trees);
    if (rule->first) append(b, rule->first, 1);
    else find_start(b, train);
    if (train.n == 0 || valid.n == 0) return;
    f.threshold = tool_calloc(rule->numbers * (size_t)rule->thresholds + 1, sizeof *f.threshold);
    find_thresholds(&f, train);
    fit_start(&f, train, valid);
    add_trees(&f);
    fit_end(&f);
    free(f.threshold);
}

void boost_at(const boost *b, const mtan_real *x, double *logit) {
    const int32_t two = b->classes == 2; /* one sum, which goes to the logit of class 1 */
    add_up(b, x, logit + two);
    if (two) logit[0] = 0;
}

void boost_free(boost *b) {
    free(b->split), free(b->height), free(b->start);
}
