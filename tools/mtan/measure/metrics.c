/* See metrics.h. Scores become ranks once. All that depends on their order is computed from counts per rank, so ties
 * need no special care and sums of counts are exact. */
#include "metrics.h"

#include <math.h>
#include <string.h>

#include "../../../mtan.h"
#include "../../data/array.h"
#include "../../data/buckets.h"
#include "../../data/percentile.h"
#include "../../data/generators.h"
#include "stop.h"

static int is_class(int32_t label, int32_t classes) {
    return label >= 0 && label < classes;
}

/* ---- one row ---- */

/* The first largest of p (C), or -1 with NaN among them. */
static int32_t largest_class(const double *p, int32_t classes) {
    int32_t best = 0;
    for (int32_t c = 0; c < classes; c++) {
        if (isnan(p[c])) return -1;
        if (p[c] > p[best]) best = c;
    }
    return best;
}

static double row_hit(const double *p, int32_t label, int32_t classes) {
    const int32_t best = largest_class(p, classes);
    return best < 0 ? NAN : best == label;
}

static double row_loss(const double *p, int32_t label, int32_t classes) {
    const double own = p[label];
    return largest_class(p, classes) < 0 ? NAN : -log(own < 1e-15 ? 1e-15 : own);
}

static double row_brier(const double *p, int32_t label, int32_t classes) {
    double sum = 0;
    for (int32_t c = 0; c < classes; c++) sum += (p[c] - (c == label)) * (p[c] - (c == label));
    return classes == 2 ? sum / 2 : sum;
}

typedef double (*row_function)(const double *p, int32_t label, int32_t classes);

static double mean_of(row_function value, const double *p, const int32_t *label, size_t n, int32_t classes) {
    double sum = 0, rows = 0;
    for (size_t i = 0; i < n; i++)
        if (is_class(label[i], classes)) sum += value(p + i * (size_t)classes, label[i], classes), rows++;
    return rows > 0 ? sum / rows : NAN;
}

double metric_accuracy(const double *p, const int32_t *label, size_t n, int32_t classes) {
    return mean_of(row_hit, p, label, n, classes);
}

double metric_log_loss(const double *p, const int32_t *label, size_t n, int32_t classes) {
    return mean_of(row_loss, p, label, n, classes);
}

double metric_brier(const double *p, const int32_t *label, size_t n, int32_t classes) {
    return mean_of(row_brier, p, label, n, classes);
}

/* ---- calibration ---- */

/* Bin k holds (k/15, (k+1)/15], with the quotients as rounded. NaN goes to bin 0. */
static int bin_of(double confidence) {
    int k = 0;
    while (k < METRIC_BINS - 1 && confidence > (double)(k + 1) / METRIC_BINS) k++;
    return k;
}

/* The confidence of one row, and whether it was right: see metric_bins. */
static double row_confidence(const double *p, int32_t label, int32_t classes, int32_t of, double *hit) {
    const int32_t best = largest_class(p, classes), chosen = of < 0 ? best : of;
    *hit = best < 0 ? NAN : chosen == label;
    return best < 0 ? NAN : p[chosen];
}

/* Adds to sums, which bins_end turns into means. */
static void bins_add(metric_bin *bins, double confidence, double hit) {
    metric_bin *b = &bins[bin_of(confidence)];
    b->confidence += confidence, b->accuracy += hit, b->count++;
}

static void bins_end(metric_bin *bins) {
    for (int k = 0; k < METRIC_BINS; k++) {
        const double rows = bins[k].count ? (double)bins[k].count : NAN;
        bins[k].confidence /= rows, bins[k].accuracy /= rows;
    }
}

static double calibration_error(const metric_bin *bins) {
    double sum = 0, rows = 0;
    for (int k = 0; k < METRIC_BINS; k++)
        if (bins[k].count)
            sum += (double)bins[k].count * fabs(bins[k].accuracy - bins[k].confidence), rows += (double)bins[k].count;
    return rows > 0 ? sum / rows : NAN;
}

void metric_bins(metric_bin bins[METRIC_BINS], const double *p, const int32_t *label, size_t n, int32_t classes,
                 int32_t of) {
    memset(bins, 0, METRIC_BINS * sizeof *bins);
    for (size_t i = 0; i < n; i++) {
        double confidence, hit;
        if (!is_class(label[i], classes)) continue;
        confidence = row_confidence(p + i * (size_t)classes, label[i], classes, of, &hit);
        bins_add(bins, confidence, hit);
    }
    bins_end(bins);
}

double metric_calibration(const double *p, const int32_t *label, size_t n, int32_t classes) {
    metric_bin bins[METRIC_BINS];
    metric_bins(bins, p, label, n, classes, -1);
    return calibration_error(bins);
}

/* ---- classes ---- */

void metric_confusion(int64_t *counts, const double *p, const int32_t *label, size_t n, int32_t classes) {
    const size_t C = (size_t)classes;
    memset(counts, 0, C * C * sizeof *counts);
    for (size_t i = 0; i < n; i++) {
        const int32_t best = is_class(label[i], classes) ? largest_class(p + i * C, classes) : -1;
        if (best >= 0) counts[(size_t)label[i] * C + (size_t)best]++;
    }
}

static double quotient(int64_t above, int64_t below) {
    return below ? (double)above / (double)below : NAN;
}

void metric_per_class(metric_class *table, const int64_t *counts, int32_t classes) {
    const size_t C = (size_t)classes;
    for (size_t c = 0; c < C; c++) {
        const int64_t right = counts[c * C + c];
        metric_class *row = &table[c];
        memset(row, 0, sizeof *row);
        for (size_t k = 0; k < C; k++) row->support += counts[c * C + k], row->predicted += counts[k * C + c];
        row->precision = quotient(right, row->predicted);
        row->recall = quotient(right, row->support);
        row->f1 = quotient(2 * right, row->support + row->predicted);
    }
}

/* ---- ranks ---- */

typedef struct scored {
    double score;
    int32_t row;
} scored;

static int strictest_first(const void *a, const void *b) {
    const double x = ((const scored *)a)->score, y = ((const scored *)b)->score;
    return x > y ? -1 : x < y;
}

/* rank[i]: how many distinct scores are above that of row i; -1 for a row without a class. Returns the number of
 * distinct scores, or -1 with NaN among them. Scores are `apart` doubles apart. */
static int32_t rank_scores(int32_t *rank, const double *score, size_t apart, const int32_t *label, size_t n,
                           int32_t classes) {
    scored *sorted = tool_calloc(n, sizeof *sorted);
    size_t m = 0;
    int32_t ranks = 0;
    for (size_t i = 0; i < n && ranks == 0; i++) {
        rank[i] = -1;
        if (!is_class(label[i], classes)) continue;
        sorted[m].score = score[i * apart];
        sorted[m++].row = (int32_t)i;
        if (isnan(score[i * apart])) ranks = -1;
    }
    if (ranks == 0) {
        qsort(sorted, m, sizeof *sorted, strictest_first);
        for (size_t i = 0; i < m; i++) {
            ranks += i == 0 || sorted[i].score < sorted[i - 1].score;
            rank[sorted[i].row] = ranks - 1;
        }
    }
    free(sorted);
    return ranks;
}

/* Rows per rank that are of the class (yes), and that are not (no). */
typedef struct tally {
    int64_t *yes, *no;
    int32_t ranks;
} tally;

static tally tally_new(size_t ranks) {
    tally t;
    t.yes = tool_calloc(ranks, sizeof *t.yes);
    t.no = tool_calloc(ranks, sizeof *t.no);
    t.ranks = (int32_t)ranks;
    return t;
}

static void tally_free(tally *t) {
    free(t->yes), free(t->no);
}

/* Counts some rows, or with rows NULL all n; t has room for `ranks`. */
static void tally_rows(tally *t, int32_t ranks, const int32_t *rank, const int32_t *label, int32_t of,
                       const int32_t *rows, size_t n) {
    t->ranks = ranks;
    memset(t->yes, 0, (size_t)ranks * sizeof *t->yes);
    memset(t->no, 0, (size_t)ranks * sizeof *t->no);
    for (size_t i = 0; i < n; i++) {
        const size_t row = rows ? (size_t)rows[i] : i;
        if (rank[row] >= 0) (label[row] == of ? t->yes : t->no)[rank[row]]++;
    }
}

static int64_t total(const int64_t *x, int32_t n) {
    int64_t sum = 0;
    for (int32_t i = 0; i < n; i++) sum += x[i];
    return sum;
}

/* The share of pairs in which the row of the class ranks higher; ties count one half. Twice the pairs stay below
 * 2^62. */
static double area_of(const tally *t) {
    const int64_t yes = total(t->yes, t->ranks), no = total(t->no, t->ranks);
    int64_t twice = 0, below = no;
    for (int32_t k = 0; k < t->ranks; k++) {
        below -= t->no[k];
        twice += t->yes[k] * (2 * below + t->no[k]);
    }
    return yes && no ? (double)twice / (2.0 * (double)yes * (double)no) : NAN;
}

static double average_precision(const tally *t) {
    const int64_t all = total(t->yes, t->ranks);
    int64_t yes = 0, no = 0;
    double sum = 0;
    for (int32_t k = 0; k < t->ranks; k++) {
        yes += t->yes[k], no += t->no[k];
        if (t->yes[k]) sum += (double)t->yes[k] * ((double)yes / (double)(yes + no));
    }
    return all ? sum / (double)all : NAN;
}

typedef double (*rank_function)(const tally *t);

/* The tally of one column of scores; it has 0 ranks if a score is NaN or no row has a class. */
static tally tally_scores(const double *score, size_t apart, const int32_t *label, size_t n, int32_t classes,
                          int32_t of) {
    int32_t *rank = tool_calloc(n, sizeof *rank);
    const int32_t ranks = rank_scores(rank, score, apart, label, n, classes);
    tally t = tally_new(ranks > 0 ? (size_t)ranks : 0);
    if (ranks > 0) tally_rows(&t, ranks, rank, label, of, NULL, n);
    free(rank);
    return t;
}

static double ranked(rank_function value, const double *score, size_t apart, const int32_t *label, size_t n,
                     int32_t classes, int32_t of) {
    tally t = tally_scores(score, apart, label, n, classes, of);
    const double x = value(&t);
    tally_free(&t);
    return x;
}

double metric_auc(const double *score, const int32_t *label, size_t n) {
    return ranked(area_of, score, 1, label, n, 2, 1);
}

double metric_auprc(const double *score, const int32_t *label, size_t n) {
    return ranked(average_precision, score, 1, label, n, 2, 1);
}

static int occurs(int32_t of, const int32_t *label, const int32_t *rows, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (label[rows ? rows[i] : (int32_t)i] == of) return 1;
    return 0;
}

static double ranked_classes(rank_function value, const double *p, const int32_t *label, size_t n, int32_t classes) {
    double sum = 0;
    int32_t found = 0;
    if (classes == 2) return ranked(value, p + 1, 2, label, n, 2, 1);
    for (int32_t c = 0; c < classes; c++)
        if (occurs(c, label, NULL, n)) sum += ranked(value, p + c, (size_t)classes, label, n, classes, c), found++;
    return found ? sum / found : NAN;
}

double metric_auc_classes(const double *p, const int32_t *label, size_t n, int32_t classes) {
    return ranked_classes(area_of, p, label, n, classes);
}

double metric_auprc_classes(const double *p, const int32_t *label, size_t n, int32_t classes) {
    return ranked_classes(average_precision, p, label, n, classes);
}

/* ---- curves ---- */

size_t metric_roc(double *x, double *y, const double *score, const int32_t *label, size_t n) {
    tally t = tally_scores(score, 1, label, n, 2, 1);
    const int64_t all_yes = total(t.yes, t.ranks), all_no = total(t.no, t.ranks);
    int64_t yes = 0, no = 0;
    size_t points = 0;
    if (all_yes && all_no) {
        x[0] = y[0] = 0;
        for (int32_t k = 0; k < t.ranks; k++) {
            yes += t.yes[k], no += t.no[k];
            x[k + 1] = quotient(no, all_no), y[k + 1] = quotient(yes, all_yes);
        }
        points = (size_t)t.ranks + 1;
    }
    tally_free(&t);
    return points;
}

size_t metric_pr(double *x, double *y, const double *score, const int32_t *label, size_t n) {
    tally t = tally_scores(score, 1, label, n, 2, 1);
    const int64_t all = total(t.yes, t.ranks);
    int64_t yes = 0, no = 0;
    size_t points = 0;
    if (all) {
        x[0] = 0, y[0] = 1;
        for (int32_t k = 0; k < t.ranks; k++) {
            yes += t.yes[k], no += t.no[k];
            x[k + 1] = quotient(yes, all), y[k + 1] = quotient(yes, yes + no);
        }
        points = (size_t)t.ranks + 1;
    }
    tally_free(&t);
    return points;
}

/* ---- bootstrap ---- */

/* Draws as many groups as there are, with replacement, and lists their rows in an stb_ds array. */
static void draw_rows(int32_t **rows, const buckets *groups, mtan_mt19937 *rng) {
    arrsetlen(*rows, 0);
    for (size_t i = 0; i < groups->n; i++) {
        const uint32_t k = numpy_interval(rng, (uint32_t)groups->n - 1);
        const size_t n = (size_t)(groups->first[k + 1] - groups->first[k]);
        memcpy(arraddnptr(*rows, n), groups->member + groups->first[k], n * sizeof **rows);
    }
}

/* Without groups each row is a group of its own. */
static buckets group_rows(const int32_t *group, size_t n) {
    int32_t *alone = tool_calloc(n, sizeof *alone);
    buckets b;
    memset(alone, -1, n * sizeof *alone);
    b = buckets_fill(group ? group : alone, n);
    free(alone);
    return b;
}

interval metric_bootstrap(metric_function metric, void *context, size_t n, const int32_t *group, int32_t draws,
                          uint32_t seed) {
    buckets groups = group_rows(group, n);
    double *values = NULL;
    int32_t *rows = NULL;
    interval range = {NAN, NAN};
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, seed);
    for (int32_t i = 0; n > 0 && i < draws && !stop_asked(); i++) {
        double value;
        draw_rows(&rows, &groups, &rng);
        value = metric(context, rows, arrlenu(rows));
        if (!isnan(value)) arrput(values, value);
    }
    if (arrlenu(values) > 0) {
        sort_ascending(values, arrlenu(values));
        range.low = percentile_sorted(values, arrlenu(values), 2.5);
        range.high = percentile_sorted(values, arrlenu(values), 97.5);
    }
    buckets_free(&groups);
    arrfree(values), arrfree(rows);
    return range;
}

double metric_pooled(void *context, const int32_t *rows, size_t n) {
    const metric_quotient *q = context;
    double above = 0, below = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t row = rows ? (size_t)rows[i] : i;
        above += q->above[row] - (q->minus ? q->minus[row] : 0), below += q->below[row];
    }
    return below > 0 ? above / below : NAN;
}

/* ---- names ---- */

static const struct {
    const char *key, *title;
    int higher;
} known[METRICS] = {[METRIC_AUC] = {"auc", "AUC", 1},
                    [METRIC_AUPRC] = {"auprc", "AUPRC", 1},
                    [METRIC_ACCURACY] = {"accuracy", "accuracy", 1},
                    [METRIC_LOG_LOSS] = {"log_loss", "log-loss", -1},
                    [METRIC_BRIER] = {"brier", "Brier score", -1},
                    [METRIC_CALIBRATION] = {"calibration_error", "calibration error", -1}};

const char *metric_key(metric_name name) {
    return known[name].key;
}

const char *metric_title(metric_name name) {
    return known[name].title;
}

int metric_higher(metric_name name) {
    return known[name].higher;
}

/* ---- prepared tables ---- */

static const row_function row_values[METRICS] = {NULL, NULL, row_hit, row_loss, row_brier, NULL};

struct metric_table {
    const int32_t *label;
    size_t n;
    int32_t classes;
    int32_t columns;        /* ranked columns: one for two classes, else one per class */
    int32_t *rank;          /* (columns, n) */
    int32_t *ranks;         /* (columns) */
    tally counts;           /* workspace for one column */
    double *value[METRICS]; /* (n) per row, for metrics that are means over rows */
    double *confidence;     /* (n) of the largest class */
};

static void prepare_ranks(metric_table *t, const double *p, const double *score) {
    const size_t C = (size_t)t->classes;
    int32_t most = 0;
    for (int32_t c = 0; c < t->columns; c++) {
        const double *from = t->classes != 2 ? p + c : score ? score : p + 1;
        const size_t apart = t->classes == 2 && score ? 1 : C;
        t->ranks[c] = rank_scores(t->rank + (size_t)c * t->n, from, apart, t->label, t->n, t->classes);
        if (t->ranks[c] > most) most = t->ranks[c];
    }
    t->counts = tally_new((size_t)most);
}

static void prepare_row(metric_table *t, size_t i, const double *p) {
    double hit;
    for (int m = 0; m < METRICS; m++)
        if (row_values[m]) t->value[m][i] = row_values[m](p, t->label[i], t->classes);
    t->confidence[i] = row_confidence(p, t->label[i], t->classes, -1, &hit);
}

metric_table *metric_table_new(const double *p, const double *score, const int32_t *label, size_t n, int32_t classes) {
    metric_table *t = tool_calloc(1, sizeof *t);
    t->label = label, t->n = n, t->classes = classes;
    t->columns = classes == 2 ? 1 : classes;
    t->rank = tool_calloc((size_t)t->columns * n, sizeof *t->rank);
    t->ranks = tool_calloc((size_t)t->columns, sizeof *t->ranks);
    t->confidence = tool_calloc(n, sizeof *t->confidence);
    for (int m = 0; m < METRICS; m++)
        if (row_values[m]) t->value[m] = tool_calloc(n, sizeof *t->value[m]);
    prepare_ranks(t, p, score);
    for (size_t i = 0; i < n; i++)
        if (is_class(label[i], classes)) prepare_row(t, i, p + i * (size_t)classes);
    return t;
}

void metric_table_free(metric_table *t) {
    if (!t) return;
    for (int m = 0; m < METRICS; m++) free(t->value[m]);
    free(t->rank), free(t->ranks), free(t->confidence);
    tally_free(&t->counts);
    free(t);
}

static double drawn_ranks(metric_table *t, rank_function value, const int32_t *rows, size_t n) {
    double sum = 0;
    int32_t found = 0;
    for (int32_t c = 0; c < t->columns; c++) {
        const int32_t of = t->classes == 2 ? 1 : c;
        if (t->classes != 2 && !occurs(of, t->label, rows, n)) continue;
        if (t->ranks[c] < 0) return NAN;
        tally_rows(&t->counts, t->ranks[c], t->rank + (size_t)c * t->n, t->label, of, rows, n);
        sum += value(&t->counts), found++;
    }
    return found ? sum / found : NAN;
}

static double drawn_mean(const metric_table *t, const double *value, const int32_t *rows, size_t n) {
    double sum = 0, count = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t row = rows ? (size_t)rows[i] : i;
        if (is_class(t->label[row], t->classes)) sum += value[row], count++;
    }
    return count > 0 ? sum / count : NAN;
}

static double drawn_calibration(const metric_table *t, const int32_t *rows, size_t n) {
    metric_bin bins[METRIC_BINS];
    memset(bins, 0, sizeof bins);
    for (size_t i = 0; i < n; i++) {
        const size_t row = rows ? (size_t)rows[i] : i;
        if (is_class(t->label[row], t->classes)) bins_add(bins, t->confidence[row], t->value[METRIC_ACCURACY][row]);
    }
    bins_end(bins);
    return calibration_error(bins);
}

static double drawn_one(metric_table *t, metric_name name, const int32_t *rows, size_t n) {
    if (name == METRIC_AUC) return drawn_ranks(t, area_of, rows, n);
    if (name == METRIC_AUPRC) return drawn_ranks(t, average_precision, rows, n);
    if (name == METRIC_CALIBRATION) return drawn_calibration(t, rows, n);
    return drawn_mean(t, t->value[name], rows, n);
}

double metric_drawn(void *context, const int32_t *rows, size_t n) {
    const metric_query *q = context;
    const double value = drawn_one(q->table, q->name, rows, n);
    return q->minus ? value - drawn_one(q->minus, q->name, rows, n) : value;
}

int metric_has_interval(metric_name name) {
    return name != METRIC_CALIBRATION;
}

interval metric_interval(metric_query *q, size_t n, const int32_t *group, int32_t draws) {
    const interval none = {NAN, NAN};
    return draws > 0 && metric_has_interval(q->name) ? metric_bootstrap(metric_drawn, q, n, group, draws, 0) : none;
}
