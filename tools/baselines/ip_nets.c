/* See baselines.h. Interpolation-prediction networks (Shukla & Marlin, ICLR 2019). At points r, for channel d with
 * cells (T_j, x_j):
 *     y = sum_j w_j x_j / sum_j w_j,  w_j = exp(-alpha_d (r - T_j)^2);  lambda = sum_j w_j;  y' as y with 10 alpha_d
 *     omega_d = lambda_d / sum over channels of lambda;  ybar_d = mean of y_d over the points
 *     chi_d = sum_e Wc_de omega_e (y_e - ybar_e) + ybar_d
 * and a GRU reads [chi, lambda, y' - chi] point after point. The points are K evenly spaced ones or, with a class per
 * time, the queries. In training, the cells that are a record's targets are held out, and interpolated from the others
 * at the record's own times. Rows of points are step-major, like those of a batch's sequence; `owner` holds the record
 * of a row. */
#include <string.h>

#include "baselines.h"
#include "cells.h"
#include "sequence.h"

enum { SETTING_FAITHFUL, SETTING_BIDIRECTIONAL };
static const char *const settings[] = {"faithful", "bidirectional", NULL};
static const double defaults[] = {0, 0};

enum {
    OP_INTERPOLATE = BASELINE_OWN_OP,
    OP_MEAN,
    OP_WEIGH,
    OP_FEATURES,
    OP_HELD_OUT,
    OP_PICK,
    OP_SEQUENCE,
};

/* ---- parameters ---- */

static int32_t faithful(const mtan_config *c) {
    return c->extra[SETTING_FAITHFUL] > 0;
}

static int32_t directions(const mtan_config *c) {
    return c->extra[SETTING_BIDIRECTIONAL] > 0 ? 2 : 1;
}

static mtan_status check(const mtan_config *c) {
    return is_switch(c->extra[SETTING_FAITHFUL]) ? check_sequence(c, c->extra[SETTING_BIDIRECTIONAL]) : MTAN_ERR_CONFIG;
}

/* Indices of the first parameter of each part; only faithful has `mean`. */
typedef struct roles {
    int32_t mean, kernel, cross, gru[2], head;
} roles;

static void params(const mtan_config *c, mtan_params *p, void *out) {
    const int32_t D = c->channels, N = c->enc_hidden;
    roles *r = out;
    if (faithful(c)) r->mean = mtan_params_add(p, "rec.mean", D, 1, 1, D);
    r->kernel = mtan_params_add(p, "rec.kernel", D, 1, 1, 400); /* uniform in +-0.05 */
    r->cross = mtan_params_add(p, "rec.cross.weight", D, D, 2, D);
    r->gru[0] = add_gru(p, "rec.rnn", 3 * D, N);
    if (directions(c) == 2) r->gru[1] = add_gru(p, "rec.reverse.rnn", 3 * D, N);
    r->head = add_head(p, c, directions(c) * N);
}

static void init(const mtan_config *c, const void *indices, mtan_real *weights, mtan_mt19937 *rng) {
    const roles *r = indices;
    mtan_param cross;
    (void)rng;
    if (faithful(c)) start_constant(c, weights, r->mean, 0); /* until the training records are known */
    start_constant(c, weights, r->cross, 0);
    if (mtan_param_at(c, r->cross, &cross) != MTAN_OK) return;
    for (size_t d = 0; d < (size_t)c->channels; d++) weights[cross.offset + d * ((size_t)c->channels + 1)] = 1;
}

/* ---- helpers ---- */

static void record(mtan_tape *tape, uint32_t op, const mtan_tensor *t, int32_t n) {
    mtan_node *node = mtan_record_op(tape, op);
    if (node) memcpy(node->t, t, (size_t)n * sizeof *t);
}

/* Integers in a tensor of as many reals, which are at least as wide: a form that a node can store. */
static int32_t *ints_of(const mtan_tape *tape, mtan_tensor x) {
    return (int32_t *)(void *)mtan_data(tape, x);
}

/* ---- points: the times at which a record is interpolated ---- */

typedef struct points {
    int32_t rows, steps;
    int32_t *first;    /* (steps + 1) first row of each step */
    int32_t *length;   /* (B) number of steps, descending, by place in the sequence */
    int32_t *place;    /* (B) place of a record of the batch in the sequence: its row at step k is first[k] + place */
    int32_t *start;    /* (B) its first point in `time`; it has length[place] points */
    mtan_real *time;   /* scaled */
    mtan_tensor owner; /* (rows) record of a row, as an index in the batch */
} points;

static points points_new(mtan_tape *tape, int64_t rows, int32_t steps, int32_t times) {
    const size_t B = (size_t)tape->batch->records;
    points p;
    if (rows > INT32_MAX && tape->status == MTAN_OK) tape->status = MTAN_ERR_SIZE;
    p.rows = rows > INT32_MAX ? 0 : (int32_t)rows;
    p.steps = steps;
    p.first = mtan_new_ints(tape, (size_t)steps + 1);
    p.length = mtan_new_ints(tape, B);
    p.place = mtan_new_ints(tape, B);
    p.start = mtan_new_ints(tape, B);
    p.time = mtan_data(tape, mtan_new_constant(tape, times, 1));
    p.owner = mtan_new_constant(tape, p.rows, 1);
    return p;
}

/* Keeps squares of times finite, and small compared with the inverse of the smallest weight. */
static mtan_real scaled(const mtan_forward *f, mtan_real time) {
    const double most = 1e9, t = f->config->embed_scale * (double)time;
    return (mtan_real)(t > most ? most : t < -most ? -most : t);
}

/* Computes steps and owners from lengths and places. */
static void points_finish(mtan_tape *tape, points *p) {
    const int32_t B = tape->batch->records;
    p->steps = p->length[0];
    p->first[0] = 0;
    for (int32_t k = 0, running = B; k < p->steps; k++) {
        while (p->length[running - 1] <= k) running--;
        p->first[k + 1] = p->first[k] + running;
    }
    p->rows = p->first[p->steps];
    for (int32_t b = 0; b < B; b++)
        for (int32_t k = 0; k < p->length[p->place[b]]; k++) ints_of(tape, p->owner)[p->first[k] + p->place[b]] = b;
}

/* The same K points from 0 to the scale for every record. */
static points even_points(const mtan_forward *f) {
    const int32_t B = f->tape->batch->records, K = f->config->ref_points;
    points p = points_new(f->tape, (int64_t)K * B, K, K);
    if (!op_runs(f->tape)) return p;
    for (int32_t b = 0; b < B; b++) p.length[b] = K, p.place[b] = b, p.start[b] = 0;
    for (int32_t k = 0; k < K; k++)
        p.time[k] = (mtan_real)(K > 1 ? f->config->embed_scale * (double)k / (double)(K - 1) : 0);
    points_finish(f->tape, &p);
    return p;
}

/* Length of the longest record, where record b is begin[b] up to begin[b + 1]; an upper bound while counting. */
static int32_t longest(const mtan_tape *tape, const int32_t *begin) {
    int32_t most = 0;
    if (!op_runs(tape)) return tape->batch->steps;
    for (int32_t b = 0; b < tape->batch->records; b++)
        most = begin[b + 1] - begin[b] > most ? begin[b + 1] - begin[b] : most;
    return most;
}

/* Every record's own times, which start at begin[b]: its queries, or its rows. */
static points own_points(const mtan_forward *f, mtan_tensor time, const int32_t *begin) {
    const int32_t B = f->tape->batch->records;
    points p = points_new(f->tape, time.rows, longest(f->tape, begin), time.rows);
    if (!op_runs(f->tape)) return p;
    for (int32_t i = 0; i < time.rows; i++) p.time[i] = scaled(f, mtan_data(f->tape, time)[i]);
    for (int32_t b = 0; b < B; b++) {
        const int32_t length = begin[b + 1] - begin[b];
        p.start[b] = begin[b];
        p.place[b] = 0; /* after longer records, and after earlier ones of the same length */
        for (int32_t a = 0; a < B; a++)
            p.place[b] += begin[a + 1] - begin[a] > length || (a < b && begin[a + 1] - begin[a] == length);
        p.length[p.place[b]] = length;
    }
    points_finish(f->tape, &p);
    return p;
}

/* ---- interpolation of every channel at the points ----
 * The nearest cell of a point is taken out of all exponents: its weight becomes 1, no weight is larger, and sums never
 * vanish. Only alpha has a gradient here, one number per channel, so the derivatives of the results are computed along
 * with them:
 *     dy/dalpha = -sum_j p_j s_j (x_j - y),  d(log lambda)/dalpha = -sum_j p_j s_j - nearest^2
 * with p_j = w_j / sum w and s_j = (r - T_j)^2 - nearest^2. */

/* Points per block. Loops over them have a known trip count, so compilers vectorise them. */
enum { BLOCK = 32 };

/* The largest weight is 1, so a weight of 1e-30 is lost in any sum. Smaller weights are slow to compute with, so they
 * are prevented. */
#define LEAST_EXPONENT ((mtan_real)-70) /* 4e-31 */
#define LEAST_ROOT ((mtan_real)1e-3)    /* the tenth root of 1e-30 */
#define NEVER_SEEN ((mtan_real)-1e30)   /* log lambda of a channel without a cell: exp and softmax turn it into 0 */

/* Sums over the cells of a channel at BLOCK points: of w x, w, w s x, w s. */
typedef struct moments {
    mtan_real sum[BLOCK], total[BLOCK], sum_s[BLOCK], total_s[BLOCK];
} moments;

/* One channel at BLOCK points. */
typedef struct lanes {
    mtan_real point[BLOCK], near[BLOCK]; /* scaled time of the point, and of its nearest cell */
    struct {
        mtan_real y[BLOCK], log_lambda[BLOCK], fine[BLOCK];
        mtan_real dy[BLOCK], dlog_lambda[BLOCK], dfine[BLOCK]; /* with respect to alpha */
    } out;
} lanes;

static void find_nearest(lanes *l, const mtan_real *time, int32_t n) {
    for (int i = 0; i < BLOCK; i++) l->near[i] = time[0];
    for (int32_t j = 1; j < n; j++) {
        const mtan_real t = time[j];
        for (int i = 0; i < BLOCK; i++) {
            const mtan_real a = l->point[i] - t, b = l->point[i] - l->near[i];
            l->near[i] = a * a < b * b ? t : l->near[i];
        }
    }
}

/* Computes s and the exponent of w for a cell at time t. The difference of squares is computed as a product, because
 * large squares would lose the difference between neighbours. */
static void find_exponents(mtan_real *restrict s, mtan_real *restrict exponent, const mtan_real *restrict point,
                           const mtan_real *restrict near, mtan_real t, mtan_real alpha) {
    for (int i = 0; i < BLOCK; i++) {
        const mtan_real square = (near[i] - t) * (point[i] - t + (point[i] - near[i])), x = -alpha * square;
        s[i] = square;
        exponent[i] = x > LEAST_EXPONENT ? x : LEAST_EXPONENT;
    }
}

/* Weights for 10 alpha: tenth powers. There are two loops, because in a single one gcc, which knows the powers of the
 * constant, would turn the choice into a branch. */
static void raise_weights(mtan_real *w) {
    for (int i = 0; i < BLOCK; i++) w[i] = w[i] > LEAST_ROOT ? w[i] : LEAST_ROOT;
    for (int i = 0; i < BLOCK; i++) {
        const mtan_real w2 = w[i] * w[i], w4 = w2 * w2;
        w[i] = w4 * w4 * w2;
    }
}

static void add_cells(moments *restrict m, const mtan_real *restrict s, const mtan_real *restrict w,
                      const mtan_real *value, int32_t n) {
    memset(m, 0, sizeof *m);
    for (int32_t j = 0; j < n; j++, s += BLOCK, w += BLOCK) {
        const mtan_real x = value[j];
        for (int i = 0; i < BLOCK; i++) {
            m->sum[i] += w[i] * x;
            m->total[i] += w[i];
            m->sum_s[i] += w[i] * s[i] * x;
            m->total_s[i] += w[i] * s[i];
        }
    }
}

/* y, and its derivative with respect to alpha for weights exp(-factor alpha s). */
static void find_mean(mtan_real *restrict y, mtan_real *restrict dy, const moments *restrict m, mtan_real factor) {
    for (int i = 0; i < BLOCK; i++) {
        y[i] = m->sum[i] / m->total[i];
        dy[i] = factor * (y[i] * m->total_s[i] - m->sum_s[i]) / m->total[i];
    }
}

static void find_intensity(const mtan_backend *k, lanes *l, const moments *m, mtan_real alpha) {
    k->map(MTAN_LOG, l->out.log_lambda, m->total, BLOCK);
    for (int i = 0; i < BLOCK; i++) {
        const mtan_real away = (l->point[i] - l->near[i]) * (l->point[i] - l->near[i]);
        l->out.log_lambda[i] -= alpha * away;
        l->out.dlog_lambda[i] = -m->total_s[i] / m->total[i] - away;
    }
}

/* A channel of n > 0 cells at the points of l. s and w (n, BLOCK) are scratch. */
static void smooth_channel(const mtan_backend *k, lanes *l, mtan_real alpha, const mtan_real *time,
                           const mtan_real *value, int32_t n, int32_t with_fine, mtan_real *s, mtan_real *w) {
    moments m;
    find_nearest(l, time, n);
    for (int32_t j = 0; j < n; j++)
        find_exponents(s + (size_t)j * BLOCK, w + (size_t)j * BLOCK, l->point, l->near, time[j], alpha);
    k->map(MTAN_EXP, w, w, (size_t)n * BLOCK);
    add_cells(&m, s, w, value, n);
    find_mean(l->out.y, l->out.dy, &m, 1);
    find_intensity(k, l, &m, alpha);
    if (!with_fine) return;
    for (int32_t j = 0; j < n; j++) raise_weights(w + (size_t)j * BLOCK);
    add_cells(&m, s, w, value, n);
    find_mean(l->out.fine, l->out.dfine, &m, 10);
}

/* tensors of its node */
enum { SMOOTH_Y, SMOOTH_LOG, SMOOTH_FINE, SMOOTH_ALPHA, SMOOTH_DY, SMOOTH_DLOG, SMOOTH_DFINE };

/* Writes column d of the results, at rows first[0] + place, first[1] + place, ... up to `count`. */
static void scatter_lanes(const mtan_tape *tape, const mtan_tensor *t, const lanes *l, const int32_t *first,
                          int32_t place, int32_t count, int32_t d) {
    const mtan_real *from[7] = {l->out.y,  l->out.log_lambda,  l->out.fine, NULL,
                                l->out.dy, l->out.dlog_lambda, l->out.dfine};
    for (int n = 0; n < 7; n++) {
        mtan_real *to = mtan_data(tape, t[n]) + place * t[n].stride + d;
        if (!from[n] || t[n].rows == 0) continue;
        for (int32_t i = 0; i < count; i++) to[(size_t)first[i] * (size_t)t[n].stride] = from[n][i];
    }
}

/* Interpolates record b at its points k up to k + BLOCK. Channels are the inner loop, so that the written rows stay in
 * the cache. */
static void smooth_block(const mtan_tape *tape, const mtan_tensor *t, const points *p, const batch_cells *cells,
                         int32_t b, int32_t k, mtan_real *scratch) {
    const int32_t D = tape->batch->channels, place = p->place[b], left = p->length[place] - k;
    const int32_t count = left < BLOCK ? left : BLOCK, *begin = cells->begin + (size_t)b * (size_t)(D + 1);
    lanes l;
    for (int i = 0; i < BLOCK; i++) l.point[i] = p->time[p->start[b] + k + (i < count ? i : count - 1)];
    for (int32_t d = 0; d < D; d++) {
        if (begin[d + 1] > begin[d])
            smooth_channel(tape->backend, &l, mtan_data(tape, t[SMOOTH_ALPHA])[d], cells->time + begin[d],
                           cells->value + begin[d], begin[d + 1] - begin[d], t[SMOOTH_FINE].rows > 0, scratch,
                           scratch + (size_t)cells->most * BLOCK);
        else {
            memset(&l.out, 0, sizeof l.out);
            for (int i = 0; i < BLOCK; i++) l.out.log_lambda[i] = NEVER_SEEN;
        }
        scatter_lanes(tape, t, &l, p->first + k, place, count, d);
    }
}

/* y, log_lambda and, if it has rows, fine: (rows of the points, D); alpha (1, D). */
static void op_interpolate(mtan_tape *tape, mtan_tensor y, mtan_tensor log_lambda, mtan_tensor fine, mtan_tensor alpha,
                           const points *p, const batch_cells *cells) {
    const int32_t kept = tape->recording ? y.rows : 0, fine_kept = tape->recording ? fine.rows : 0, D = y.cols;
    const mtan_tensor t[7] = {y,
                              log_lambda,
                              fine,
                              alpha,
                              mtan_new_constant(tape, kept, D),
                              mtan_new_constant(tape, kept, D),
                              mtan_new_constant(tape, fine_kept, D)};
    mtan_real *scratch = mtan_data(tape, mtan_new_constant(tape, cells->most, 2 * BLOCK));
    record(tape, OP_INTERPOLATE, t, 7);
    for (int32_t b = 0; op_runs(tape) && b < tape->batch->records; b++)
        for (int32_t k = 0; k < p->length[p->place[b]]; k += BLOCK) smooth_block(tape, t, p, cells, b, k, scratch);
}

static void interpolate_back(mtan_tape *tape, const mtan_node *n) {
    mtan_real *dalpha = mtan_grad(tape, n->t[SMOOTH_ALPHA]);
    for (int m = 0; m < 3; m++) {
        const mtan_tensor y = n->t[SMOOTH_Y + m], slope = n->t[SMOOTH_DY + m];
        for (int32_t i = 0; i < y.rows; i++) {
            const mtan_real *dy = grad_row(tape, y, i), *dy_dalpha = row_at(tape, slope, i);
            for (int32_t d = 0; d < y.cols; d++) dalpha[d] += dy[d] * dy_dalpha[d];
        }
    }
}

/* ---- mean over the points of each record: y (B, D), x (rows, D) ---- */

static void op_mean(mtan_tape *tape, mtan_tensor y, mtan_tensor x, const points *p) {
    const mtan_tensor count = mtan_new_constant(tape, y.rows, 1), t[4] = {y, x, p->owner, count};
    record(tape, OP_MEAN, t, 4);
    if (!op_runs(tape)) return;
    tape->backend->fill(mtan_data(tape, y), (size_t)y.rows * (size_t)y.cols, 0);
    for (int32_t i = 0; i < x.rows; i++)
        tape->backend->add(row_at(tape, y, ints_of(tape, p->owner)[i]), 0, row_at(tape, x, i), 0, 1, x.cols);
    for (int32_t b = 0; b < y.rows; b++) {
        const int32_t n = p->length[p->place[b]];
        ints_of(tape, count)[b] = n;
        for (int32_t d = 0; n > 0 && d < y.cols; d++) row_at(tape, y, b)[d] /= (mtan_real)n;
    }
}

static void mean_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor y = n->t[0], x = n->t[1];
    for (int32_t i = 0; i < x.rows; i++) {
        const int32_t b = ints_of(tape, n->t[2])[i];
        const mtan_real share = 1 / (mtan_real)ints_of(tape, n->t[3])[b], *dy = grad_row(tape, y, b);
        mtan_real *dx = grad_row(tape, x, i);
        for (int32_t d = 0; d < x.cols; d++) dx[d] += dy[d] * share;
    }
}

/* ---- y = omega (x - mean), omega the softmax of log lambda over the channels ----
 * A channel that was never observed has omega 0. If none was, the softmax is uniform, and x and mean are 0. */

enum { WEIGH_Y, WEIGH_X, WEIGH_LOG, WEIGH_MEAN, WEIGH_OWNER, WEIGH_OMEGA, WEIGH_SCRATCH };

static void op_weigh(mtan_tape *tape, mtan_tensor y, mtan_tensor x, mtan_tensor log_lambda, mtan_tensor mean,
                     mtan_tensor owner) {
    const mtan_tensor omega = mtan_new_constant(tape, y.rows, y.cols);
    const mtan_tensor scratch = mtan_new_constant(tape, tape->recording ? y.rows : 0, y.cols);
    const mtan_tensor t[7] = {y, x, log_lambda, mean, owner, omega, scratch};
    record(tape, OP_WEIGH, t, 7);
    mtan_op_copy(tape, omega, log_lambda);
    mtan_op_softmax(tape, omega);
    for (int32_t i = 0; op_runs(tape) && i < y.rows; i++) {
        const mtan_real *m = row_at(tape, mean, ints_of(tape, owner)[i]), *w = row_at(tape, omega, i);
        const mtan_real *from = row_at(tape, x, i);
        mtan_real *to = row_at(tape, y, i);
        for (int32_t d = 0; d < y.cols; d++) to[d] = w[d] * (from[d] - m[d]);
    }
}

static void weigh_row_back(mtan_real *restrict dx, mtan_real *restrict dm, mtan_real *restrict domega,
                           const mtan_real *restrict dy, const mtan_real *restrict omega, const mtan_real *restrict x,
                           const mtan_real *restrict mean, int32_t D) {
    for (int32_t d = 0; d < D; d++) {
        dx[d] += dy[d] * omega[d];
        dm[d] -= dy[d] * omega[d];
        domega[d] = dy[d] * (x[d] - mean[d]);
    }
}

static void weigh_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor y = n->t[WEIGH_Y], x = n->t[WEIGH_X], mean = n->t[WEIGH_MEAN], log_lambda = n->t[WEIGH_LOG];
    mtan_real *scratch = mtan_data(tape, n->t[WEIGH_SCRATCH]);
    for (int32_t i = 0; i < y.rows; i++) {
        const int32_t b = ints_of(tape, n->t[WEIGH_OWNER])[i];
        weigh_row_back(grad_row(tape, x, i), grad_row(tape, mean, b), row_at(tape, n->t[WEIGH_SCRATCH], i),
                       grad_row(tape, y, i), row_at(tape, n->t[WEIGH_OMEGA], i), row_at(tape, x, i),
                       row_at(tape, mean, b), y.cols);
    }
    tape->backend->softmax_backward(scratch, mtan_data(tape, n->t[WEIGH_OMEGA]), y.rows, y.cols);
    tape->backend->add(mtan_grad(tape, log_lambda), (size_t)y.cols, scratch, (size_t)y.cols, y.rows, y.cols);
}

/* ---- y (rows, 3D) = [chi, lambda, fine - chi], chi = cross + mean ---- */

enum { FEATURES_Y, FEATURES_CROSS, FEATURES_MEAN, FEATURES_LOG, FEATURES_FINE, FEATURES_OWNER };

static void op_features(mtan_tape *tape, const mtan_tensor t[6]) {
    const int32_t D = t[FEATURES_CROSS].cols;
    record(tape, OP_FEATURES, t, 6);
    for (int32_t i = 0; op_runs(tape) && i < t[FEATURES_Y].rows; i++) {
        const mtan_real *cross = row_at(tape, t[FEATURES_CROSS], i), *fine = row_at(tape, t[FEATURES_FINE], i);
        const mtan_real *mean = row_at(tape, t[FEATURES_MEAN], ints_of(tape, t[FEATURES_OWNER])[i]);
        mtan_real *y = row_at(tape, t[FEATURES_Y], i);
        for (int32_t d = 0; d < D; d++) y[d] = cross[d] + mean[d];
        for (int32_t d = 0; d < D; d++) y[2 * D + d] = fine[d] - y[d];
        tape->backend->map(MTAN_EXP, y + D, row_at(tape, t[FEATURES_LOG], i), (size_t)D);
    }
}

/* y and dy (3D) */
static void features_row_back(mtan_real *restrict dcross, mtan_real *restrict dmean, mtan_real *restrict dlog,
                              mtan_real *restrict dfine, const mtan_real *restrict dy, const mtan_real *restrict y,
                              int32_t D) {
    for (int32_t d = 0; d < D; d++) {
        dcross[d] += dy[d] - dy[2 * D + d];
        dmean[d] += dy[d] - dy[2 * D + d];
        dlog[d] += dy[D + d] * y[D + d];
        dfine[d] += dy[2 * D + d];
    }
}

static void features_back(mtan_tape *tape, const mtan_node *n) {
    for (int32_t i = 0; i < n->t[FEATURES_Y].rows; i++)
        features_row_back(grad_row(tape, n->t[FEATURES_CROSS], i),
                          grad_row(tape, n->t[FEATURES_MEAN], ints_of(tape, n->t[FEATURES_OWNER])[i]),
                          grad_row(tape, n->t[FEATURES_LOG], i), grad_row(tape, n->t[FEATURES_FINE], i),
                          grad_row(tape, n->t[FEATURES_Y], i), row_at(tape, n->t[FEATURES_Y], i),
                          n->t[FEATURES_CROSS].cols);
}

/* ---- y (B, 1): sum of share (chi - goal)^2 over the points and channels of a record, chi = cross + mean ---- */

enum { HELD_Y, HELD_CROSS, HELD_MEAN, HELD_GOAL, HELD_SHARE, HELD_OWNER };

static void op_held_out(mtan_tape *tape, const mtan_tensor t[6]) {
    record(tape, OP_HELD_OUT, t, 6);
    if (op_runs(tape)) tape->backend->fill(mtan_data(tape, t[HELD_Y]), (size_t)t[HELD_Y].rows, 0);
    for (int32_t i = 0; op_runs(tape) && i < t[HELD_CROSS].rows; i++) {
        const int32_t b = ints_of(tape, t[HELD_OWNER])[i];
        const mtan_real *cross = row_at(tape, t[HELD_CROSS], i), *mean = row_at(tape, t[HELD_MEAN], b);
        const mtan_real *goal = row_at(tape, t[HELD_GOAL], i), *share = row_at(tape, t[HELD_SHARE], i);
        for (int32_t d = 0; d < t[HELD_CROSS].cols; d++) {
            const mtan_real off = cross[d] + mean[d] - goal[d];
            if (share[d] > 0) mtan_data(tape, t[HELD_Y])[b] += share[d] * off * off;
        }
    }
}

static void held_out_row_back(mtan_real *restrict dcross, mtan_real *restrict dmean, mtan_real dy,
                              const mtan_real *restrict cross, const mtan_real *restrict mean,
                              const mtan_real *restrict goal, const mtan_real *restrict share, int32_t D) {
    for (int32_t d = 0; d < D; d++) {
        const mtan_real dchi = 2 * dy * share[d] * (cross[d] + mean[d] - goal[d]);
        dcross[d] += dchi;
        dmean[d] += dchi;
    }
}

static void held_out_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor *t = n->t;
    for (int32_t i = 0; i < t[HELD_CROSS].rows; i++) {
        const int32_t b = ints_of(tape, t[HELD_OWNER])[i];
        held_out_row_back(grad_row(tape, t[HELD_CROSS], i), grad_row(tape, t[HELD_MEAN], b),
                          mtan_grad(tape, t[HELD_Y])[b], row_at(tape, t[HELD_CROSS], i), row_at(tape, t[HELD_MEAN], b),
                          row_at(tape, t[HELD_GOAL], i), row_at(tape, t[HELD_SHARE], i), t[HELD_CROSS].cols);
    }
}

/* ---- row i of y is row index[i] of x ---- */

static void op_pick(mtan_tape *tape, mtan_tensor y, mtan_tensor x, mtan_tensor index) {
    const mtan_tensor t[3] = {y, x, index};
    record(tape, OP_PICK, t, 3);
    for (int32_t i = 0; op_runs(tape) && i < y.rows; i++)
        tape->backend->copy(row_at(tape, y, i), 0, row_at(tape, x, ints_of(tape, index)[i]), 0, 1, y.cols);
}

static void pick_back(mtan_tape *tape, const mtan_node *n) {
    for (int32_t i = 0; i < n->t[0].rows; i++)
        tape->backend->add(grad_row(tape, n->t[1], ints_of(tape, n->t[2])[i]), 0, grad_row(tape, n->t[0], i), 0, 1,
                           n->t[0].cols);
}

/* ---- the points as the tape's sequence, for the library's GRU, in the forward and the backward pass ---- */

typedef struct sequence {
    mtan_batch inner;
    const mtan_batch *outer;
} sequence;

static void record_change(mtan_tape *tape, mtan_tensor where, int32_t inner_in_backward) {
    mtan_node *node = mtan_record_op(tape, OP_SEQUENCE);
    if (node) node->t[0] = where, node->n[0] = inner_in_backward;
}

static void sequence_back(mtan_tape *tape, const mtan_node *n) {
    const sequence *s = (const sequence *)(const void *)mtan_data(tape, n->t[0]);
    tape->batch = n->n[0] ? &s->inner : s->outer;
}

/* States of the GRU over x (rows, 3D), forwards and, with two directions, backwards: h[0], h[1]. */
static void run_gru(const mtan_forward *f, const points *p, mtan_tensor x, mtan_tensor h[2]) {
    mtan_tape *tape = f->tape;
    const roles *r = f->roles;
    const mtan_tensor where = mtan_new_constant(tape, (int32_t)(sizeof(sequence) / sizeof(mtan_real) + 1), 1);
    sequence here, *s = op_runs(tape) ? (sequence *)(void *)mtan_data(tape, where) : &here;
    s->outer = tape->batch;
    s->inner = *tape->batch;
    s->inner.first = p->first, s->inner.length = p->length, s->inner.steps = p->steps, s->inner.rows = p->rows;
    record_change(tape, where, 0);
    tape->batch = &s->inner;
    for (int32_t i = 0; i < directions(f->config); i++) h[i] = apply_gru(f, r->gru[i], x, f->config->enc_hidden, i);
    record_change(tape, where, 1);
    tape->batch = s->outer;
}

static const mtan_backward backward[] = {
    BASELINE_BACKWARD MTAN_BACKWARD(OP_INTERPOLATE, interpolate_back),
    MTAN_BACKWARD(OP_MEAN, mean_back),
    MTAN_BACKWARD(OP_WEIGH, weigh_back),
    MTAN_BACKWARD(OP_FEATURES, features_back),
    MTAN_BACKWARD(OP_HELD_OUT, held_out_back),
    MTAN_BACKWARD(OP_PICK, pick_back),
    MTAN_BACKWARD(OP_SEQUENCE, sequence_back),
};

/* ---- cells ---- */

/* The cells with their times scaled, without the held-out ones (held null: none). Faithful: a channel without any cell
 * left gets a cell of the mean at time 0. */
static batch_cells kept_cells(const mtan_forward *f, const batch_cells *all, const int32_t *held) {
    const int32_t B = f->tape->batch->records, D = f->tape->batch->channels, more = faithful(f->config) ? D : 0;
    batch_cells c = cells_new(f->tape, all->count + B * more, all->most + more);
    int32_t n = 0;
    for (int32_t i = 0; op_runs(f->tape) && i < B * (D + 1); i++) {
        c.begin[i] = n;
        if (i % (D + 1) == D) continue; /* the end of a record's last channel */
        for (int32_t j = all->begin[i]; j < all->begin[i + 1]; j++) {
            if (held && held[j]) continue;
            c.time[n] = scaled(f, all->time[j]);
            c.value[n++] = all->value[j];
        }
        if (!more || n > c.begin[i]) continue;
        c.time[n] = 0;
        c.value[n++] = mtan_data(f->tape, mtan_forward_param(f, ((const roles *)f->roles)->mean))[i % (D + 1)];
    }
    return c;
}

/* Index of the cell of an event among those of its channel, or -1. */
static int32_t find_cell(const batch_cells *cells, const int32_t *begin, const mtan_event *e) {
    for (int32_t j = begin[e->channel]; j < begin[e->channel + 1]; j++)
        if (!(cells->time[j] < e->time) && !(cells->time[j] > e->time)) return j;
    return -1;
}

/* Sets held[j] to 1 for cells among their record's targets; a target that is not an event is ignored. Returns the
 * number of held cells. */
static int32_t mark_held(const mtan_forward *f, const batch_cells *cells, int32_t *held) {
    const mtan_batch *batch = f->tape->batch;
    int32_t count = 0;
    for (int32_t j = 0; op_runs(f->tape) && j < cells->count; j++) held[j] = 0;
    for (int32_t b = 0; op_runs(f->tape) && b < batch->records; b++) {
        const mtan_record *r = &f->records[batch->order[b]];
        for (int32_t i = 0; r->targets && i < r->n_targets; i++) {
            const int32_t *begin = cells->begin + (size_t)b * (size_t)(batch->channels + 1);
            const int32_t j = find_cell(cells, begin, &r->targets[i]);
            if (j >= 0) held[j] = 1, count++;
        }
    }
    return count;
}

/* goal and share (rows, D): the value of a held-out cell, and 1 / (D c) for c held-out cells in its channel; 0
 * elsewhere. */
static void fill_goals(const mtan_forward *f, const points *p, const batch_cells *cells, const int32_t *held,
                       mtan_tensor goal, mtan_tensor share) {
    mtan_tape *tape = f->tape;
    const int32_t D = tape->batch->channels;
    tape->backend->fill(mtan_data(tape, goal), (size_t)goal.rows * (size_t)D, 0);
    tape->backend->fill(mtan_data(tape, share), (size_t)share.rows * (size_t)D, 0);
    for (int32_t i = 0; i < tape->batch->records * (D + 1); i++) {
        const int32_t b = i / (D + 1), d = i % (D + 1);
        int32_t n = 0;
        if (d == D) continue; /* the end of a record's last channel */
        for (int32_t j = cells->begin[i]; j < cells->begin[i + 1]; j++) n += held[j];
        for (int32_t j = cells->begin[i]; j < cells->begin[i + 1]; j++) {
            const int32_t row = p->first[cells->row[j]] + p->place[b];
            if (!held[j]) continue;
            row_at(tape, goal, row)[d] = cells->value[j];
            row_at(tape, share, row)[d] = 1 / ((mtan_real)D * (mtan_real)n);
        }
    }
}

/* ---- the model ---- */

typedef struct channels {
    mtan_tensor log_lambda, fine; /* (rows, D) */
    mtan_tensor mean;             /* (B, D) */
    mtan_tensor cross;            /* (rows, D) chi without the mean */
} channels;

static channels interpolate(const mtan_forward *f, const points *p, const batch_cells *cells, int32_t with_fine) {
    mtan_tape *tape = f->tape;
    const int32_t D = f->config->channels, B = tape->batch->records;
    const roles *r = f->roles;
    const mtan_tensor alpha = mtan_new(tape, 1, D), y = mtan_new(tape, p->rows, D), q = mtan_new(tape, p->rows, D);
    channels c;
    c.log_lambda = mtan_new(tape, p->rows, D);
    c.fine = mtan_new(tape, with_fine ? p->rows : 0, D);
    c.mean = mtan_new(tape, B, D);
    c.cross = mtan_new(tape, p->rows, D);
    mtan_op_softplus(tape, alpha, mtan_forward_param(f, r->kernel));
    op_interpolate(tape, y, c.log_lambda, c.fine, alpha, p, cells);
    op_mean(tape, c.mean, y, p);
    op_weigh(tape, q, y, c.log_lambda, c.mean, p->owner);
    mtan_op_linear(tape, c.cross, q, mtan_forward_param(f, r->cross), NULL);
    return c;
}

static mtan_tensor features(const mtan_forward *f, const points *p, const batch_cells *cells) {
    const channels c = interpolate(f, p, cells, 1);
    const mtan_tensor y = mtan_new(f->tape, p->rows, 3 * f->config->channels);
    const mtan_tensor t[6] = {y, c.cross, c.mean, c.log_lambda, c.fine, p->owner};
    op_features(f->tape, t);
    return y;
}

/* y (B, 1): the loss of each record's held-out cells. */
static void reconstruct(const mtan_forward *f, mtan_tensor y, const batch_cells *all, const int32_t *held) {
    mtan_tape *tape = f->tape;
    const int32_t D = f->config->channels;
    const batch_cells cells = kept_cells(f, all, held);
    const points p = own_points(f, tape->batch->time, tape->batch->time0);
    const mtan_tensor goal = mtan_new_constant(tape, p.rows, D), share = mtan_new_constant(tape, p.rows, D);
    const channels c = interpolate(f, &p, &cells, 0);
    const mtan_tensor t[6] = {y, c.cross, c.mean, goal, share, p.owner};
    if (op_runs(tape)) fill_goals(f, &p, all, held, goal, share);
    op_held_out(tape, t);
}

static mtan_tensor held_out_loss(const mtan_forward *f, const batch_cells *all) {
    mtan_tape *tape = f->tape;
    const mtan_tensor y = mtan_new(tape, tape->batch->records, 1);
    int32_t *held = mtan_new_ints(tape, (size_t)all->count);
    const int32_t count = mark_held(f, all, held);
    if (!op_runs(tape) || count > 0) reconstruct(f, y, all, held);
    else tape->backend->fill(mtan_data(tape, y), (size_t)y.rows, 0);
    return y;
}

/* States at the queries; with two directions side by side. */
static mtan_tensor states_at_queries(const mtan_forward *f, const points *p, const mtan_tensor *h) {
    mtan_tape *tape = f->tape;
    const mtan_batch *batch = tape->batch;
    const int32_t N = f->config->enc_hidden;
    const mtan_tensor y = mtan_new(tape, p->rows, directions(f->config) * N);
    const mtan_tensor index = mtan_new_constant(tape, p->rows, 1);
    for (int32_t b = 0; op_runs(tape) && b < batch->records; b++)
        for (int32_t i = batch->query0[b]; i < batch->query0[b + 1]; i++)
            ints_of(tape, index)[i] = p->first[i - batch->query0[b]] + p->place[b];
    for (int32_t i = 0; i < directions(f->config); i++) op_pick(tape, mtan_columns(y, i * N, N), h[i], index);
    return y;
}

static void forward(const mtan_forward *f, mtan_outputs *out) {
    mtan_tape *tape = f->tape;
    const mtan_batch *batch = tape->batch;
    const int32_t per_time = f->config->classify == MTAN_CLASSIFY_TIME, B = batch->records;
    const batch_cells all = cells_of(tape), cells = kept_cells(f, &all, NULL);
    const points p = per_time ? own_points(f, batch->query, batch->query0) : even_points(f);
    mtan_tensor h[2], state;
    if (tape->status != MTAN_OK) return;
    run_gru(f, &p, features(f, &p, &cells), h);
    state = per_time ? states_at_queries(f, &p, h) : mtan_rows(h[0], p.rows - B, B); /* the last point of each */
    out->logits = apply_head(f, ((const roles *)f->roles)->head, state);
    if (f->wanted & MTAN_WANT_LOSS) out->penalty = held_out_loss(f, &all);
}

const mtan_architecture baseline_ip_nets = {
    .name = "ip-nets",
    .settings = settings,
    .defaults = defaults,
    .roles = ROLES(roles),
    .traits = BASELINE_TRAITS,
    .check = check,
    .params = params,
    .init = init,
    .forward = forward,
    .backward = backward,
};
