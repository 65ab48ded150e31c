/* See trees.h. */
#include "trees.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boost.h"
#include "stairs.h"
#include "widths.h"
#include "../run/bounds.h"
#include "../measure/metrics.h"
#include "../measure/numbers.h"
#include "../measure/predictions.h"
#include "../measure/stop.h"
#include "../measure/summaries.h"

enum { SHARES = 15 };     /* the shares of network and trees are each tried at 0, 0.1, ..., SHARES / 10 */
enum { SPLIT_REALS = 4 }; /* leaf, number, threshold, side: mtan.h, MTAN_LEAVES */

static mtan_real *tensor(bundle *b, const char *name) {
    mtan_param p;
    return param_find(&p, &b->model.config, name) ? b->weights + p.offset : NULL;
}

static int32_t numbers_of(const mtan_config *c) {
    return (int32_t)mtan_summaries_count(c) - c->statics;
}

/* The numbers that trees split a record by, in the order of mtan_summaries; NaN where the channel was not observed. */
static void read_numbers(const mtan_config *c, const mtan_record *record, mtan_real *out, mtan_real *room) {
    const int32_t n = numbers_of(c), changing = n - c->statics, channels = c->channels - c->statics;
    (void)mtan_summaries(c, record, room,
                         mtan_summaries_count(c)); /* it cannot fail: the network has already read the record */
    for (int32_t j = 0; j < n; j++) {
        const mtan_real seen = j < changing ? room[j % channels] : room[n + (j - changing)];
        out[j] = seen > 0 ? room[j] : (mtan_real)NAN;
    }
}

static int has_number(const mtan_config *c) {
    return c->task == MTAN_TASK_NUMBER;
}

/* A row for each record that has a class or a number. */
static boost_rows rows_of(const mtan_config *c, const dataset *d, const int32_t *positions) {
    summary_row *rows = summary_rows(d, positions);
    const size_t n = arrlenu(rows), numbers = (size_t)numbers_of(c);
    mtan_real *x = tool_calloc(n * numbers + 1, sizeof *x), *room = tool_calloc(mtan_summaries_count(c), sizeof *room);
    int32_t *label = tool_calloc(n + 1, sizeof *label);
    double *target = has_number(c) ? tool_calloc(n + 1, sizeof *target) : NULL;
    for (size_t i = 0; i < n; i++) {
        const mtan_record record = dataset_view(d, (size_t)rows[i].record);
        read_numbers(c, &record, x + i * numbers, room);
        label[i] = rows[i].label;
        if (target) target[i] = (double)d->numbers[rows[i].place];
    }
    free(room), arrfree(rows);
    return (boost_rows){x, label, n, target};
}

static void rows_free(boost_rows r) {
    free((void *)r.x), free((void *)r.label), free((void *)r.target);
}

/* Resets the weights to the network alone, as at the start of a training. */
static void drop_trees(bundle *b) {
    const mtan_config *c = &b->model.config;
    const size_t splits = (size_t)c->trees * BOOST_SPLITS, leaves = (size_t)c->trees * MTAN_LEAVES;
    tensor(b, "rec.trees.share")[0] = 1;
    memset(tensor(b, "rec.trees.split"), 0, splits * SPLIT_REALS * sizeof(mtan_real));
    memset(tensor(b, "rec.trees.height"), 0, leaves * (size_t)mtan_config_outputs(c) * sizeof(mtan_real));
}

/* What the network and the trees say of the validation rows, (n, classes), with workspace for their mixture: logits, or
 * numbers. */
typedef struct pair {
    boost_rows rows;
    int32_t classes; /* 1: numbers */
    double *network, *tree, *both;
} pair;

static double squared_error(const double *x, const double *y, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (x[i] - y[i]) * (x[i] - y[i]);
    return sum / (double)n;
}

static double loss_of(const pair *x, double network_share, double trees_share) {
    const size_t C = (size_t)x->classes, n = x->rows.n * C;
    for (size_t i = 0; i < n; i++) x->both[i] = network_share * x->network[i] + trees_share * x->tree[i];
    if (C == 1) return squared_error(x->both, x->rows.target, n);
    for (size_t i = 0; i < n; i += C) boost_softmax(x->both + i, C);
    return metric_log_loss(x->both, x->rows.label, x->rows.n, x->classes);
}

/* A penalty on the mixture in addition to its loss, which draws it towards equal shares: otherwise a few validation
 * records decide by chance for the network or the trees alone. Synthetic sets in which one property decides the class
 * (plan.c), 38 or 64 validation records, AUC on others, mean of eight draws, with a penalty on the trees' share instead
 * and with this one: the mean 0.904 and 0.909, the spread 0.949 and 0.950, where the observations lie 0.993 and 0.990,
 * how many there are 0.796 and 0.799, a local shape 0.998 both, the period 0.953 both, the trend of the README's
 * example 0.893 and 0.892. */
static double doubt(const pair *x, double network_share, double trees_share) {
    const double records = 10, off = trees_share / (network_share + trees_share) - 0.5;
    return records / (double)x->rows.n * off * off;
}

static void weigh(trees_fit *fit, const pair *x) {
    double least = INFINITY;
    fit->network = loss_of(x, 1, 0), fit->trees = loss_of(x, 0, 1);
    for (int i = 0; i <= SHARES; i++)
        for (int k = i == 0; k <= SHARES; k++) {
            const double loss = loss_of(x, 0.1 * i, 0.1 * k), cost = loss + doubt(x, 0.1 * i, 0.1 * k);
            if (!(cost < least)) continue;
            least = cost, fit->together = loss;
            fit->network_share = 0.1 * i, fit->trees_share = 0.1 * k;
        }
}

/* A split in the layout of mtan.h; leaf -1 marks an unused split. */
static void write_split(mtan_real *to, const boost_split *from) {
    to[0] = (mtan_real)from->leaf, to[1] = (mtan_real)from->number;
    to[2] = from->threshold, to[3] = (mtan_real)from->side;
}

/* What the first tree adds to output k in all leaves: the initial sum and, at the ends of an interval, the margin. */
static double constant_of(const boost *fitted, const trees_fit *fit, size_t column, size_t k) {
    static const double side[3] = {-1, 0, 1};
    return fit->trees_share * fitted->start[column] + (fitted->classes == 1 ? side[k] * fit->margin : 0);
}

/* Both ends of an interval move with its median. */
static void write_trees(bundle *b, const boost *fitted, const trees_fit *fit) {
    const size_t outputs = (size_t)mtan_config_outputs(&b->model.config), trees = (size_t)fitted->trees;
    const size_t columns = (size_t)fitted->columns, two = fitted->classes == 2; /* class 1 alone has a sum */
    mtan_real *splits = tensor(b, "rec.trees.split"), *height = tensor(b, "rec.trees.height");
    tensor(b, "rec.trees.share")[0] = (mtan_real)fit->network_share;
    for (size_t i = 0; i < trees * BOOST_SPLITS; i++) write_split(splits + SPLIT_REALS * i, &fitted->split[i]);
    for (size_t i = 0; i < trees * MTAN_LEAVES; i++)
        for (size_t k = two; k < outputs; k++) {
            const size_t column = fitted->classes == 1 ? 0 : k - two;
            const double constant = i < MTAN_LEAVES ? constant_of(fitted, fit, column, k) : 0;
            height[i * outputs + k] = (mtan_real)(fit->trees_share * fitted->height[i * columns + column] + constant);
        }
}

static pair pair_make(const boost *fitted, boost_rows rows) {
    const size_t C = (size_t)fitted->classes, n = rows.n * C;
    const pair x = {rows, fitted->classes, tool_calloc(n + 1, sizeof(double)), tool_calloc(n + 1, sizeof(double)),
                    tool_calloc(n + 1, sizeof(double))};
    for (size_t i = 0; i < rows.n; i++) boost_at(fitted, rows.x + i * fitted->numbers, x.tree + i * C);
    return x;
}

static void pair_free(pair *x) {
    free(x->network), free(x->tree), free(x->both);
}

/* The network's log-probabilities, or numbers, of the labelled records at the positions. 0: a record failed. */
static int ask_classes(pair *x, runner *run, const dataset *d, const int32_t *positions) {
    predictions p;
    if (!predictions_make(&p, run, d, positions, 0, 0)) return 0;
    predictions_drop_unlabelled(&p);
    for (size_t i = 0; i < p.rows * (size_t)p.classes; i++) x->network[i] = log(fmax(p.p[i], 1e-15));
    return predictions_free(&p), 1;
}

static int ask_number(pair *x, runner *run, const dataset *d, const int32_t *positions) {
    number_predictions p;
    if (!numbers_make_unsorted(&p, run, d, positions)) return 0; /* the median's own row */
    for (size_t i = 0; i < p.rows; i++) x->network[i] = numbers_middle(&p, i);
    return numbers_free(&p), 1;
}

/* rows: of the labelled records at the positions. */
static int compare(runner *run, const dataset *d, const int32_t *positions, boost_rows rows, const boost *fitted,
                   trees_fit *fit) {
    pair x = pair_make(fitted, rows);
    const int good = (fitted->classes == 1 ? ask_number : ask_classes)(&x, run, d, positions);
    if (good) weigh(fit, &x);
    pair_free(&x);
    return good;
}

/* Trees move the intervals of a number, and the network's share scales them: they get the width that validation asks
 * for once more. A factor goes into the network's rows, a margin, which the share would scale, into the first tree. */
static int widen(bundle *b, runner *run, const dataset *d, const int32_t *positions, const boost *fitted,
                 trees_fit *fit) {
    const mtan_config *c = &b->model.config;
    number_predictions p;
    if (!has_number(c) || mtan_config_outputs(c) == 1) return 1;
    if (!numbers_make_unsorted(&p, run, d, positions)) return 0;
    const width_change w = width_find(&p, c->interval);
    numbers_free(&p);
    fit->margin = w.margin;
    width_apply(c, b->weights, (width_change){w.factor, 0});
    write_trees(b, fitted, fit);
    return 1;
}

/* Weighs the trees against the network and writes them to it. 0 with error set. */
static int join(bundle *b, const dataset *d, const int32_t *positions, boost_rows rows, const boost *fitted,
                int32_t threads, trees_fit *fit, char *error) {
    const mtan_bounds bounds = model_bounds(&b->model.config, d);
    runner run;
    if (!runner_start(&run, &b->model, bounds, threads, error)) return 0;
    int good = compare(&run, d, positions, rows, fitted, fit);
    if (good) write_trees(b, fitted, fit), good = widen(b, &run, d, positions, fitted, fit);
    if (!good) snprintf(error, 512, "%.400s", mtan_status_message(run.status));
    runner_stop(&run);
    return good;
}

/* Marks the numbers that a regression reads: the plain summaries and the static channels. Numbers for the shape and the
 * course of a channel are left to the trees. */
static uint8_t *plain_numbers(const mtan_config *c) {
    const int32_t n = numbers_of(c), channels = c->channels - c->statics;
    uint8_t *plain = tool_calloc((size_t)n + 1, 1);
    for (int32_t j = 0; j < n; j++) plain[j] = j < MTAN_SUMMARIES * channels || j >= n - c->statics;
    return plain;
}

/* With more numbers or records a regression takes long, and trees find the same effects: on PhysioNet it brings no
 * gain. */
static int takes_regression(const mtan_config *c, boost_rows train) {
    const size_t most_rows = 2000;
    const int32_t most_numbers = 100, read = MTAN_SUMMARIES * (c->channels - c->statics) + c->statics;
    return read <= most_numbers && read <= c->trees / 2 && train.n > 0 && train.n <= most_rows;
}

/* With a regression there are two fits, and each gets half of the trees. */
static boost_rule rule_of(const mtan_config *c, boost_rows train, int64_t seed, int regression) {
    return boost_default((size_t)numbers_of(c), train.n, c->classes, regression ? c->trees / 2 : c->trees,
                         (uint32_t)seed);
}

/* The mean of trees fitted from scratch and of trees that continue from a regression; `most` limits the latter. */
static void fit_both(boost *b, const mtan_config *c, boost_rows train, boost_rows valid, boost_rule rule, int32_t most,
                     trees_fit *fit) {
    uint8_t *plain = plain_numbers(c);
    boost alone, first, after;
    boost_fit(&alone, train, valid, &rule);
    fit->ridge = stairs_fit(&first, train, valid, plain, rule.numbers, c->classes, fit->ridge);
    rule.trees = most, rule.first = &first;
    boost_fit(&after, train, valid, &rule);
    fit->regression = after.trees;
    boost_mean(b, &alone, &after);
    boost_free(&alone), boost_free(&first), boost_free(&after), free(plain);
}

int trees_add(bundle *b, const dataset *d, const split *s, int64_t seed, int32_t threads, trees_fit *fit, char *error) {
    const mtan_config *c = &b->model.config;
    const boost_rows train = rows_of(c, d, s->part[SPLIT_TRAIN]), valid = rows_of(c, d, s->part[SPLIT_VALID]);
    const int regression = takes_regression(c, train) && valid.n > 0;
    const boost_rule rule = rule_of(c, train, seed, regression);
    boost fitted;
    int good = 1;
    memset(fit, 0, sizeof *fit);
    drop_trees(b);
    fit->ridge = NAN;
    if (regression) fit_both(&fitted, c, train, valid, rule, rule.trees, fit);
    else boost_fit(&fitted, train, valid, &rule);
    fit->count = stop_asked() ? 0 : fitted.trees;
    if (fit->count > 0) good = join(b, d, s->part[SPLIT_VALID], valid, &fitted, threads, fit, error);
    boost_free(&fitted);
    rows_free(train), rows_free(valid);
    return good;
}

/* The fit validates on its own training rows: their loss falls with every tree, so that it keeps all of them. */
void trees_refit(bundle *b, const dataset *d, const int32_t *positions, int64_t seed, const trees_fit *fit) {
    const mtan_config *c = &b->model.config;
    if (fit->count == 0) return;
    const boost_rows rows = rows_of(c, d, positions);
    boost_rule rule = rule_of(c, rows, seed, fit->regression > 0);
    boost fitted;
    trees_fit again = *fit; /* starts with its ridge */
    rule.trees = fit->count - fit->regression, rule.patience = fit->count + 1;
    drop_trees(b);
    if (fit->regression == 0) boost_fit(&fitted, rows, rows, &rule);
    else fit_both(&fitted, c, rows, rows, rule, fit->regression, &again);
    if (!stop_asked()) write_trees(b, &fitted, fit);
    boost_free(&fitted), rows_free(rows);
}
