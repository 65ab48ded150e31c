/* See cost.h. Two halves: the cost of each kernel per item of each kind, and the number of items of each kind in a
 * structure of arguments. */
#include "cost.h"

#include <string.h>

#include "roofline.h"

/* ---- the cost of each kernel per item ---- */

/* clang-format off */
enum {
    NONE, ONE,
    ELEMENTS,  /* the main items of a structure: see below */
    OPERANDS,  /* numbers that are read once, however often they are used */
    COLUMN,    /* elements of one row */
    SQUARES,   /* elements that are squared */
    PARTS,     /* of sums */
    TERMS,     /* of products: a multiplication and an addition each */
    RESULTS, ADDED, /* of products; earlier results that they are added to */
    RECORDS, GROUPS, /* groups: a record with each sample */
    SCORES,    /* a time of a record, or a query, paired with each of the record's steps */
    PAIRS,     /* a query paired with each step */
    ROWS, POINTS, EVENTS, CELLS, LABELS,
    EVENT_STEPS, STEP_CHANNELS, RECORD_CHANNELS, /* an event paired with each step, a step with each channel, ... */
    PAIR_SAMPLES, QUERY_SAMPLES, CELL_SAMPLES,
    PAIR_COLUMNS, QUERY_COLUMNS, STEP_COLUMNS, /* paired with each column of each sample */
    MEANS, SAMPLED, /* elements of a posterior's mean; elements of z */
    BEFORE, KEPT, WEIGHTS, /* of a GRU: states of the step before, if any; recurrent parts of n, if stored */
    THINGS
};
/* clang-format on */

/* flops of one exp, log, sin, cos, tanh or sqrt; of a unit's gates; of their gradients */
enum { FUNCTION = 20, GATES = 3 * FUNCTION + 10, GATES_BACK = 20 };

/* The flops per item, and the numbers read and written for it. */
typedef struct share {
    int thing;
    double flops, read, written;
} share;

enum { MOST_SHARES = 5 };

/* clang-format off */
static const share costs[KERNEL_COUNT][MOST_SHARES] = {
    [KERNEL_map] = {{ELEMENTS, FUNCTION, 1, 1}},
    [KERNEL_exp_parts] = {{ELEMENTS, FUNCTION, 1, 2}},
    [KERNEL_fill] = {{ELEMENTS, 0, 0, 1}},
    [KERNEL_relu_forward] = {{ELEMENTS, 1, 1, 1}},
    [KERNEL_relu_backward] = {{ELEMENTS, 1, 2, 1}},
    [KERNEL_tanh_backward] = {{ELEMENTS, 3, 2, 1}},
    [KERNEL_softplus_backward] = {{ELEMENTS, FUNCTION + 3, 3, 1}},
    [KERNEL_average] = {{ELEMENTS, 2, 2, 1}},
    [KERNEL_adam] = {{ELEMENTS, FUNCTION + 11, 4, 3}},
    [KERNEL_adamax] = {{ELEMENTS, 10, 4, 3}},
    [KERNEL_normal_pairs] = {{ELEMENTS, 4 * FUNCTION, 3, 2}},
    [KERNEL_scale] = {{ELEMENTS, 1, 1, 1}},
    [KERNEL_copy] = {{ELEMENTS, 0, 0, 1}, {OPERANDS, 0, 1, 0}},
    [KERNEL_add] = {{ELEMENTS, 1, 1, 1}, {OPERANDS, 0, 1, 0}},
    [KERNEL_pack] = {{ELEMENTS, 0, 1, 1}},
    [KERNEL_softmax_forward] = {{ELEMENTS, FUNCTION + 4, 1, 1}},
    [KERNEL_softmax_backward] = {{ELEMENTS, 4, 2, 1}},
    [KERNEL_column_parts] = {{ELEMENTS, 1, 1, 0}, {PARTS, 0, 0, 1}},
    [KERNEL_column_finish] = {{ELEMENTS, 1, 1, 0}, {COLUMN, 0, 1, 1}},
    [KERNEL_total_parts] = {{ELEMENTS, 1, 1, 0}, {SQUARES, 1, 0, 0}, {PARTS, 0, 0, 2}}, /* doubles: two numbers each */
    [KERNEL_total_finish] = {{PARTS, 1, 2, 0}, {ONE, 0, 0, 2}},
    [KERNEL_product_nn] = {{TERMS, 2, 0, 0}, {OPERANDS, 0, 1, 0}, {PARTS, 0, 0, 1}, {ADDED, 0, 1, 0}},
    [KERNEL_product_nt] = {{TERMS, 2, 0, 0}, {OPERANDS, 0, 1, 0}, {PARTS, 0, 0, 1}, {ADDED, 0, 1, 0}},
    [KERNEL_product_tn] = {{TERMS, 2, 0, 0}, {OPERANDS, 0, 1, 0}, {PARTS, 0, 0, 1}, {ADDED, 0, 1, 0}},
    [KERNEL_product_finish] = {{PARTS, 1, 1, 0}, {RESULTS, 0, 0, 1}, {ADDED, 0, 1, 0}},
    [KERNEL_pack_int8] = {{ELEMENTS, 2, 1, 0.25}, {COLUMN, 0, 0, 1}},
    [KERNEL_product_int8] = {{TERMS, 2, 0, 0}, {OPERANDS, 0, 1, 0}, {RESULTS, 0, 0, 1}, {ADDED, 0, 1, 0}},
    [KERNEL_embed_forward] = {{ELEMENTS, FUNCTION + 2, 0, 1}, {OPERANDS, 0, 1, 0}},
    [KERNEL_embed_fixed] = {{ELEMENTS, 1.5 * FUNCTION, 0, 1}, {ROWS, 0, 1, 0}},
    [KERNEL_embed_parts] = {{ELEMENTS, FUNCTION + 5, 1, 0}, {OPERANDS, 0, 1, 0}, {PARTS, 0, 0, 1}},
    [KERNEL_embed_finish] = {{PARTS, 1, 1, 0}, {COLUMN, 0, 2, 2}},
    [KERNEL_attend_forward] = {{SCORES, FUNCTION + 2, 1, 1}, {EVENT_STEPS, 3, 0, 0}, {EVENTS, 0, 2, 0}, {STEP_CHANNELS, 1, 0, 2}},
    [KERNEL_attend_backward] = {{SCORES, 2, 3, 1}, {EVENT_STEPS, 4, 0, 0}, {EVENTS, 0, 2, 0}, {STEP_CHANNELS, 1, 3, 0}},
    [KERNEL_attend_weights] = {{SCORES, 1, 1, 1}},
    [KERNEL_log_under] = {{ELEMENTS, FUNCTION, 2, 1}},
    [KERNEL_moments_forward] = {{SCORES, FUNCTION + 2, 1, 1}, {EVENT_STEPS, 14, 0, 0}, {EVENTS, 0, 2, 0}, {STEP_CHANNELS, FUNCTION + 24, 0, 12}},
    [KERNEL_moments_backward] = {{SCORES, 2, 3, 1}, {EVENT_STEPS, 13, 0, 0}, {EVENTS, 0, 2, 0}, {STEP_CHANNELS, FUNCTION + 50, 18, 0}},
    [KERNEL_moments_add] = {{ELEMENTS, 14, 8, 6}},
    [KERNEL_moments_read] = {{ELEMENTS, FUNCTION + 24, 7, 6}},
    [KERNEL_rbf_forward] = {{EVENT_STEPS, FUNCTION + 6, 0, 0}, {EVENTS, 0, 2, 0}, {OPERANDS, 0, 1, 0}, {STEP_CHANNELS, 1, 0, 1}},
    [KERNEL_rbf_backward] = {{EVENT_STEPS, FUNCTION + 9, 0, 0}, {EVENTS, 0, 2, 0}, {OPERANDS, 0, 1, 0}, {STEP_CHANNELS, 2, 2, 0},
                             {RECORD_CHANNELS, 0, 0, 1}},
    [KERNEL_rbf_finish] = {{RECORD_CHANNELS, 1, 1, 0}, {COLUMN, 0, 1, 1}},
    [KERNEL_rbf_weights] = {{SCORES, FUNCTION, 0, 1}},
    [KERNEL_smooth_nearest] = {{PAIR_SAMPLES, 3, 0, 0}, {OPERANDS, 0, 1, 0}, {QUERY_SAMPLES, 0, 0, 1}},
    [KERNEL_smooth_forward] = {{PAIR_COLUMNS, FUNCTION + 6, 0, 0}, {OPERANDS, 0, 1, 0}, {QUERY_SAMPLES, 0, 1, 0}, {QUERY_COLUMNS, 0, 0, 1},
                               {STEP_COLUMNS, 0, 1, 0}},
    [KERNEL_smooth_slopes] = {{PAIR_COLUMNS, 2 * FUNCTION + 12, 0, 0}, {OPERANDS, 0, 1, 0}, {QUERY_SAMPLES, 0, 1, 0}, {QUERY_COLUMNS, 0, 2, 2},
                              {STEP_COLUMNS, 0, 1, 0}},
    [KERNEL_smooth_values] = {{PAIR_COLUMNS, FUNCTION + 6, 0, 0}, {OPERANDS, 0, 1, 0}, {QUERY_SAMPLES, 0, 1, 0}, {QUERY_COLUMNS, 0, 2, 0},
                              {STEP_COLUMNS, 0, 1, 1}},
    [KERNEL_gates_forward] = {{ELEMENTS, GATES, 6, 4}, {BEFORE, 0, 1, 0}, {KEPT, 0, 0, 1}},
    [KERNEL_gates_backward] = {{ELEMENTS, GATES_BACK, 5, 4}, {BEFORE, 0, 1, 0}, {KEPT, 0, 0, 1}},
    /* kernels over whole sequences keep their states on chip; kernels over one step keep them in memory */
#define RUN {{TERMS, 2, 0, 0}, {ELEMENTS, GATES, 3, 4}, {KEPT, 0, 0, 1}, {WEIGHTS, 0, 1, 0}}
#define BACK {{TERMS, 2, 0, 0}, {ELEMENTS, GATES_BACK, 6, 3}, {KEPT, 0, 0, 1}, {WEIGHTS, 0, 1, 0}}
    [KERNEL_gru_run32] = RUN, [KERNEL_gru_run64] = RUN, [KERNEL_gru_run96] = RUN, [KERNEL_gru_run128] = RUN,
    [KERNEL_gru_back32] = BACK, [KERNEL_gru_back64] = BACK, [KERNEL_gru_back96] = BACK, [KERNEL_gru_back128] = BACK,
    [KERNEL_gru_step] = {{TERMS, 2, 0, 0}, {ELEMENTS, GATES, 4, 5}, {KEPT, 0, 0, 1}, {WEIGHTS, 0, 1, 0}},
    [KERNEL_gru_step_back] = {{TERMS, 2, 0, 0}, {ELEMENTS, GATES_BACK, 7, 4}, {KEPT, 0, 0, 1}, {WEIGHTS, 0, 1, 0}},
    [KERNEL_sample_forward] = {{SAMPLED, FUNCTION + 3, 1, 1}, {MEANS, 0, 2, 0}},
    [KERNEL_sample_backward] = {{SAMPLED, 4, 2, 0}, {MEANS, 0, 4, 2}},
    [KERNEL_kl_forward] = {{MEANS, FUNCTION + 5, 2, 0}, {RECORDS, 0, 0, 1}},
    [KERNEL_kl_backward] = {{MEANS, FUNCTION + 5, 4, 2}, {RECORDS, 0, 1, 0}},
    [KERNEL_ratio_forward] = {{SAMPLED, 6, 2, 0}, {MEANS, 0, 1, 0}, {GROUPS, 0, 0, 1}},
    [KERNEL_ratio_backward] = {{SAMPLED, 4, 2, 1}, {MEANS, 0, 1, 1}, {GROUPS, 0, 1, 0}},
    [KERNEL_loglik_forward] = {{CELL_SAMPLES, 4, 1, 0}, {CELLS, 0, 3, 0}, {GROUPS, 0, 0, 1}}, /* a cell is a row, a channel and a value */
    [KERNEL_loglik_backward] = {{CELL_SAMPLES, 4, 2, 1}, {CELLS, 0, 3, 0}, {GROUPS, 0, 1, 0}},
    [KERNEL_loglik_sd_forward] = {{CELL_SAMPLES, 2 * FUNCTION + 6, 2, 0}, {CELLS, 0, 3, 0}, {GROUPS, 0, 0, 1}},
    [KERNEL_loglik_sd_backward] = {{CELL_SAMPLES, 2 * FUNCTION + 8, 4, 2}, {CELLS, 0, 3, 0}, {GROUPS, 0, 1, 0}},
    [KERNEL_squared_error] = {{CELL_SAMPLES, 1, 1, 0}, {CELLS, 3, 3, 0}, {RECORDS, 0, 0, 2}},
    [KERNEL_bound_forward] = {{GROUPS, FUNCTION + 5, 2, 1}, {RECORDS, FUNCTION, 1, 1}},
    [KERNEL_bound_backward] = {{GROUPS, 4, 3, 2}, {RECORDS, 0, 1, 0}},
    [KERNEL_cross_entropy_forward] = {{ELEMENTS, FUNCTION + 4, 1, 1}, {ROWS, FUNCTION, 0, 1}, {LABELS, 0, 1, 0}},
    [KERNEL_cross_entropy_backward] = {{ELEMENTS, 3, 2, 1}, {LABELS, 0, 1, 0}},
    [KERNEL_numbers_forward] = {{ELEMENTS, FUNCTION + 4, 1, 1}, {ROWS, 0, 0, 1}, {LABELS, 0, 1, 0}},
    [KERNEL_numbers_backward] = {{ELEMENTS, 4, 2, 1}, {LABELS, 0, 1, 0}},
    [KERNEL_spread_forward] = {{STEP_COLUMNS, 0, 0, 1}, {ELEMENTS, 0, 1, 0}},
    [KERNEL_spread_backward] = {{STEP_COLUMNS, 1, 1, 0}, {ELEMENTS, 0, 1, 1}},
    [KERNEL_last_forward] = {{ELEMENTS, 0, 1, 1}},
    [KERNEL_last_backward] = {{ELEMENTS, 1, 2, 1}},
    [KERNEL_regroup_forward] = {{STEP_COLUMNS, 0, 1, 1}},
    [KERNEL_regroup_backward] = {{STEP_COLUMNS, 1, 2, 1}},
    [KERNEL_at_queries_forward] = {{QUERY_COLUMNS, 0, 1, 1}},
    [KERNEL_at_queries_backward] = {{QUERY_COLUMNS, 1, 2, 1}},
    [KERNEL_softmax_pairs_forward] = {{PAIRS, FUNCTION + 4, 1, 1}},
    [KERNEL_softmax_pairs_backward] = {{PAIRS, 4, 2, 1}},
    [KERNEL_score_forward] = {{TERMS, 2, 0, 0}, {SCORES, 0, 0, 1}, {ROWS, 0, 1, 0}, {POINTS, 0, 1, 0}},
    [KERNEL_score_row_backward] = {{TERMS, 2, 0, 0}, {SCORES, 0, 1, 0}, {ROWS, 0, 1, 1}, {POINTS, 0, 1, 0}},
    [KERNEL_score_point_backward] = {{TERMS, 2, 0, 0}, {SCORES, 0, 1, 0}, {ROWS, 0, 1, 0}, {POINTS, 0, 1, 1}},
    [KERNEL_values_forward] = {{PAIR_COLUMNS, 2, 0, 0}, {PAIRS, 0, 1, 0}, {QUERY_COLUMNS, 0, 0, 1}, {STEP_COLUMNS, 0, 1, 0}},
    [KERNEL_values_weight_backward] = {{PAIR_COLUMNS, 2, 0, 0}, {PAIRS, 0, 1, 1}, {QUERY_COLUMNS, 0, 1, 0}, {STEP_COLUMNS, 0, 1, 0}},
    [KERNEL_values_backward] = {{PAIR_COLUMNS, 2, 0, 0}, {PAIRS, 0, 1, 0}, {QUERY_COLUMNS, 0, 1, 0}, {STEP_COLUMNS, 0, 1, 1}},
    [KERNEL_noise] = {{ELEMENTS, 3 * FUNCTION, 0, 1}, {RECORDS, 0, 2, 0}}, /* an id is eight bytes */
    [KERNEL_mask] = {{ELEMENTS, FUNCTION, 0, 1}, {RECORDS, 0, 2, 0}},
};
/* clang-format on */

int kernel_has_cost(mtan_cuda_kernel kernel) {
    return costs[kernel][0].thing != NONE;
}

/* ---- the number of items of a launch ---- */

typedef struct launched {
    mtan_cuda_kernel kernel;
    const unsigned *grid;
    double n[THINGS];
    double busy, turns; /* set if multiprocessors idle; set if there are sequential steps */
} launched;

static double area(int rows, int cols) {
    return (double)rows * cols;
}

static void size_elementwise(launched *l, const struct elementwise *a) {
    l->n[ELEMENTS] = a->n;
}

/* x is a single row if the row is repeated. */
static void size_matrix(launched *l, const struct matrix *a) {
    l->n[ELEMENTS] = area(a->rows, a->cols);
    l->n[OPERANDS] = area(a->ldx ? a->rows : 1, a->cols);
}

static void size_column_sums(launched *l, const struct column_sums *a) {
    l->n[ELEMENTS] = area(a->rows, a->cols);
    l->n[PARTS] = area((int)l->grid[1], a->cols);
    l->n[COLUMN] = a->cols;
}

static void size_total(launched *l, const struct total *a) {
    l->n[ELEMENTS] = a->n;
    l->n[SQUARES] = a->squares ? a->n : 0;
    l->n[PARTS] = a->parts;
    l->n[ONE] = 1;
}

/* How many rounds the multiprocessors need to run all blocks, one block each at a time. */
static double rounds(const launched *l) {
    const long long blocks = (long long)l->grid[0] * l->grid[1] * l->grid[2];
    return (double)((blocks + ROOFLINE_UNITS - 1) / ROOFLINE_UNITS);
}

/* A block computes TILE x TILE sums of `depth` terms, even where fewer are needed. */
static void size_product(launched *l, const struct product *a) {
    const double results = area(a->m, a->n);
    const int finishes = l->kernel == KERNEL_product_finish;
    l->n[TERMS] = results * a->k;
    l->n[OPERANDS] = area(a->m, a->k) + area(a->n, a->k);
    l->n[PARTS] = results * a->splits;
    l->n[RESULTS] = results;
    l->n[ADDED] = a->add && (finishes || a->splits == 1) ? results : 0;
    if (!finishes) l->busy = ROOFLINE_UNITS * rounds(l) * 2.0 * TILE * TILE * a->depth;
}

/* b is packed, with n rows, or multiplied. */
static void size_product_int8(launched *l, const struct product_int8 *a) {
    l->n[ELEMENTS] = area(a->n, a->k);
    l->n[TERMS] = area(a->m, a->n) * a->k;
    l->n[OPERANDS] = area(a->m, a->k) + area(a->n, a->k) / 4 + (a->scale ? a->n : 0);
    l->n[RESULTS] = area(a->m, a->n);
    l->n[ADDED] = a->add ? l->n[RESULTS] : 0;
    l->n[COLUMN] = a->n;
}

static void size_embedding(launched *l, const struct embedding *a) {
    l->n[ELEMENTS] = area(a->times, a->embed);
    l->n[ROWS] = a->times;
    l->n[OPERANDS] = a->times + 2.0 * a->embed;
    l->n[PARTS] = 2 * area(a->chunks, a->embed);
    l->n[COLUMN] = a->embed;
}

static int span(const int *offsets, int r) {
    return offsets[r + 1] - offsets[r];
}

/* Sum of a list with an entry per record; without a list, every record counts 1. */
static double sum_of(const int *list, int n) {
    double sum = 0;
    for (int r = 0; r < n; r++) sum += list ? list[r] : 1;
    return sum;
}

/* Totals of a batch over its records. */
typedef struct totals {
    double times, steps, queries, cells, events, scores, pairs, event_steps;
    double points; /* of the sequences: each record's own, or a list that all share */
} totals;

static totals totals_of(const struct batch *b) {
    totals t;
    memset(&t, 0, sizeof t);
    for (int r = 0; r < b->records; r++) {
        const int *begin = b->begin + (size_t)r * (size_t)(b->channels + 1);
        const double K = b->length[r], L = span(b->time0, r), Q = span(b->query0, r);
        const double events = begin[b->channels] - begin[0];
        t.times += L, t.steps += K, t.queries += Q, t.events += events;
        t.scores += L * K, t.pairs += Q * K, t.event_steps += events * K;
        t.cells += span(b->cell0, r);
    }
    t.points = b->point0 ? t.steps : b->steps;
    return t;
}

static void size_events(launched *l, const struct batch *b, const totals *t) {
    l->n[SCORES] = t->scores;
    l->n[EVENTS] = t->events, l->n[EVENT_STEPS] = t->event_steps;
    l->n[OPERANDS] = t->times + t->points + b->channels;
    l->n[STEP_CHANNELS] = t->steps * b->channels;
    l->n[RECORD_CHANNELS] = area(b->records, b->channels);
    l->n[COLUMN] = b->channels;
}

static void size_attention(launched *l, const struct attention *a) {
    const totals t = totals_of(&a->batch);
    size_events(l, &a->batch, &t);
}

static void size_moments(launched *l, const struct moments *a) {
    size_attention(l, &a->attention);
}

static void size_moment(launched *l, const struct moment *a) {
    l->n[ELEMENTS] = a->n;
}

static void size_rbf(launched *l, const struct rbf *a) {
    const totals t = totals_of(&a->batch);
    size_events(l, &a->batch, &t);
}

static void size_columns(launched *l, const totals *t, double columns) {
    l->n[PAIR_COLUMNS] = t->pairs * columns;
    l->n[QUERY_COLUMNS] = t->queries * columns;
    l->n[STEP_COLUMNS] = t->steps * columns;
}

static void size_smooth(launched *l, const struct smooth *a) {
    const totals t = totals_of(&a->batch);
    l->n[PAIR_SAMPLES] = t.pairs * a->batch.samples;
    l->n[QUERY_SAMPLES] = t.queries * a->batch.samples;
    l->n[OPERANDS] = t.queries + t.points + a->cols;
    size_columns(l, &t, area(a->batch.samples, a->cols));
}

static void size_group(launched *l, const struct group *a) {
    const totals t = totals_of(&a->batch);
    l->n[PAIRS] = t.pairs;
    l->n[SCORES] = a->decoder ? t.pairs : t.scores;
    l->n[TERMS] = l->n[SCORES] * a->inner;
    l->n[ROWS] = (a->decoder ? t.queries : t.times) * a->inner;
    l->n[POINTS] = t.points * a->inner;
    size_columns(l, &t, area(a->batch.samples, a->inner));
}

static void size_likelihood(launched *l, const struct likelihood *a) {
    l->n[CELLS] = totals_of(&a->batch).cells;
    l->n[CELL_SAMPLES] = l->n[CELLS] * a->batch.samples;
    l->n[RECORDS] = a->batch.records;
    l->n[GROUPS] = area(a->batch.records, a->batch.samples);
}

static void size_gates(launched *l, const struct gates *a) {
    l->n[ELEMENTS] = area(a->rows, a->hidden);
    l->n[BEFORE] = a->before ? l->n[ELEMENTS] : 0;
    l->n[KEPT] = a->hn ? l->n[ELEMENTS] : 0;
}

/* Either all steps, with a few rows and all units per block; or one step, with some units of more rows per block. */
static void size_sequence(launched *l, const struct sequence *a) {
    const int forth = l->kernel == KERNEL_gru_step, whole = !forth && l->kernel != KERNEL_gru_step_back;
    const int step = a->reverse ? a->steps - 1 - a->step : a->step;
    const double tile =
        whole ? area(GRU_ROWS, a->hidden) : area(GRU_STEP_ROWS, forth ? GRU_STEP_UNITS : GRU_BACK_UNITS);
    const double gates = 3.0 * a->hidden;
    l->n[ELEMENTS] = area(whole ? a->first[a->steps] : span(a->first, step), a->samples) * a->hidden;
    l->n[TERMS] = l->n[ELEMENTS] * gates;
    l->n[KEPT] = a->hn ? l->n[ELEMENTS] : 0;
    l->n[WEIGHTS] = gates * a->hidden;
    l->turns = (whole ? a->steps : 1) * rounds(l);
    l->busy = ROOFLINE_UNITS * l->turns * 2 * tile * gates;
}

/* Rows of the whole batch, or the sum of the records' lengths. */
static void size_latent(launched *l, const struct latent *a) {
    l->n[MEANS] = (a->rows > 0 ? a->rows : sum_of(a->length, a->records)) * a->latent;
    l->n[SAMPLED] = l->n[MEANS] * a->samples;
    l->n[RECORDS] = a->records;
    l->n[GROUPS] = area(a->records, a->samples);
}

static void size_bound(launched *l, const struct bound *a) {
    l->n[RECORDS] = a->records;
    l->n[GROUPS] = area(a->records, a->samples);
}

/* With queries, there is a block per record. */
static void size_cross_entropy(launched *l, const struct cross_entropy *a) {
    l->n[ROWS] = a->query0 ? area(a->query0[l->grid[0]], a->samples) : a->rows;
    l->n[ELEMENTS] = l->n[ROWS] * a->classes;
    l->n[LABELS] = l->n[ROWS] / a->samples;
}

/* A row reads one number per output, where a classifier's row reads one label. */
static void size_numbers(launched *l, const struct numbers *a) {
    size_cross_entropy(l, &a->rows);
    l->n[ELEMENTS] *= a->levels;
    l->n[LABELS] *= a->rows.classes;
}

/* One row of elements for each record. */
static void size_rows(launched *l, const struct rows *a) {
    l->n[STEP_COLUMNS] = area(a->first[a->steps], a->samples) * a->cols;
    l->n[ELEMENTS] = area(a->records, a->samples) * a->cols;
    l->n[QUERY_COLUMNS] = area(a->query0[a->records], a->samples) * a->cols;
}

static void size_random(launched *l, const struct random *a) {
    const int by_steps = l->kernel == KERNEL_noise || a->layout == LAYOUT_STEP;
    const double rows = by_steps                     ? sum_of(a->length, a->records)
                        : a->layout == LAYOUT_RECORD ? a->records
                                                     : a->query0[a->records];
    l->n[ELEMENTS] = rows * area(a->samples, a->width);
    l->n[RECORDS] = a->records;
}

static void size_up(launched *l, const void *a) {
    switch (l->kernel) {
#define X(name, arguments, x, y, hot)                                                                                  \
    case KERNEL_##name: size_##arguments(l, a); break;
        MTAN_CUDA_KERNELS(X)
#undef X
    case KERNEL_COUNT: break;
    }
}

cost kernel_cost(mtan_cuda_kernel kernel, const void *arguments, const unsigned grid[3]) {
    launched l;
    cost c;
    memset(&l, 0, sizeof l), memset(&c, 0, sizeof c);
    l.kernel = kernel, l.grid = grid;
    size_up(&l, arguments);
    for (const share *s = costs[kernel]; s < costs[kernel] + MOST_SHARES; s++) {
        c.flops += l.n[s->thing] * s->flops;
        c.read += l.n[s->thing] * s->read;
        c.written += l.n[s->thing] * s->written;
    }
    c.turns = l.turns;
    c.busy = l.busy > c.flops ? l.busy : c.flops;
    return c;
}
