/* Every op on a tape of its own. Most are compared with golden/ops.safetensors, what moves rows with plain loops,
 * the GRU of ragged records with each record alone. tape_test.h says what piece_run checks besides: that counting
 * and running agree, that one line too little is refused, that nothing outside the workspace is touched. */
#include <greatest.h>
#include <math.h>
#include <string.h>

#include "golden_file.h"
#include "tape_test.h"

static const char OPS[] = "ops.safetensors";

static const int32_t five[2] = {5, 5}; /* queries of a record */

/* The times of embed-* and rbf-*: (i / divisor), or its square. */
static mtan_tensor times(piece *p, int32_t n, double divisor, int squared) {
    const mtan_tensor x = mtan_new_constant(&p->tape, n, 1);
    for (int32_t i = 0; piece_runs(p) && i < n; i++)
        mtan_data(&p->tape, x)[i] = (mtan_real)((squared ? i * i : i) / divisor);
    return x;
}

/* ---- golden: simple ops ---- */

static void build_embed_learned(piece *p) {
    const mtan_tensor time = times(p, 9, 8, 0), y = mtan_new(&p->tape, 9, 16);
    mtan_tensor w[4];
    w[0] = piece_input(p, "linear_weight", 1, 1, 1, NULL);
    w[1] = piece_input(p, "linear_bias", 1, 1, 1, NULL);
    w[2] = piece_input(p, "periodic_weight", 15, 1, 8, NULL);
    w[3] = piece_input(p, "periodic_bias", 15, 1, 1, NULL);
    mtan_op_embed(&p->tape, y, time, w);
    piece_output(p, "out", y, NULL);
}

/* Nothing to learn: no gradient, and no node on the tape. */
static void build_embed_fixed(piece *p) {
    const mtan_tensor time = times(p, 9, 8, 0), y = mtan_new_constant(&p->tape, 9, 16);
    mtan_op_embed_fixed(&p->tape, y, time, 10, 48);
    piece_keep(p, PIECE_VALUE, "out", y);
}

static void build_linear(piece *p) {
    const mtan_tensor x = piece_input(p, "x", 7, 5, 1, NULL), w = piece_input(p, "weight", 9, 5, 1, NULL);
    const mtan_tensor b = piece_input(p, "bias", 1, 9, 1, NULL), y = mtan_new(&p->tape, 7, 9);
    mtan_op_linear(&p->tape, y, x, w, &b);
    piece_output(p, "out", y, NULL);
}

/* In place: the tensor is x and out at once, and its gradient turns from that of out into that of x. */
static void build_relu(piece *p) {
    const mtan_tensor x = piece_input(p, "x", 4, 9, 1, NULL);
    mtan_op_relu(&p->tape, x);
    piece_output(p, "out", x, NULL);
}

static void build_tanh(piece *p) {
    const mtan_tensor x = piece_input(p, "x", 4, 9, 4, NULL);
    mtan_op_tanh(&p->tape, x);
    piece_output(p, "out", x, NULL);
}

/* ---- golden: the GRU. The input's product with W_ih is an op of its own. ---- */

static void build_gru(piece *p) {
    const int32_t reverse = *(const int32_t *)p->argument;
    mtan_tensor x, w_ih, w_hh, b_ih, b_hh, gx, y;
    piece_sequence(p, 3, 6);
    x = piece_input(p, "x", 18, 5, 1, piece_by_step);
    w_ih = piece_input(p, "weight_ih", 21, 5, 1, NULL);
    w_hh = piece_input(p, "weight_hh", 21, 7, 1, NULL);
    b_ih = piece_input(p, "bias_ih", 1, 21, 1, NULL);
    b_hh = piece_input(p, "bias_hh", 1, 21, 1, NULL);
    gx = mtan_new(&p->tape, 18, 21);
    y = mtan_new(&p->tape, 18, 7);
    mtan_op_linear(&p->tape, gx, x, w_ih, &b_ih);
    mtan_op_gru(&p->tape, y, gx, w_hh, b_hh, NULL, 1, reverse);
    piece_output(p, "out", y, piece_by_step);
}

/* ---- golden: losses ---- */

static const mtan_real class_weights[4] = {(mtan_real)0.5, 2, 0, 1};
static const double weighted_labels = 2 + 1 + 2 + 0.5; /* of the labels 1 0 3 2 1: 2, 0.5, 1, 0, 2 */

/* The op gives the loss of each row and takes the gradient of each as `seed`; the mean is taken by the test. */
static void cross_entropy_rows(piece *p, int weighted) {
    const mtan_tensor x = piece_input(p, "logits", 5, 4, 4, NULL), loss = mtan_new_constant(&p->tape, 5, 1);
    const mtan_tensor probability = mtan_new_constant(&p->tape, 5, 4), weight = mtan_new_constant(&p->tape, 1, 4);
    p->batch.label = mtan_new_ints(&p->tape, 5);
    for (int32_t b = 0; p->batch.label && b < 5; b++) p->batch.label[b] = (3 * b + 1) % 4;
    for (int32_t c = 0; p->batch.label && c < 4; c++) mtan_data(&p->tape, weight)[c] = class_weights[c];
    mtan_op_cross_entropy(&p->tape, loss, probability, x, weighted ? &weight : NULL, 1,
                          piece_cotangent(p, "out", 0) / (weighted ? weighted_labels : 5));
    piece_keep(p, PIECE_KEPT, "loss", loss);
}

static void build_cross_entropy(piece *p) {
    cross_entropy_rows(p, 0);
}

static void build_weighted_cross_entropy(piece *p) {
    cross_entropy_rows(p, 1);
}

TEST golden_cross_entropy(int weighted) {
    piece p;
    mtan_real loss[5], out;
    double mean = 0;
    ASSERT(piece_run(&p, weighted ? "weighted-ce" : "softmax-ce",
                     weighted ? build_weighted_cross_entropy : build_cross_entropy, NULL));
    piece_values(&p, "loss", loss);
    for (int i = 0; i < 5; i++) mean += (double)loss[i] / (weighted ? weighted_labels : 5);
    out = (mtan_real)mean;
    ASSERT(piece_compare(&p, OPS));
    ASSERT(piece_compare_array(&p, OPS, "out", &out, 1));
    ASSERT(piece_end(&p));
    PASS();
}

/* What is observed is data, so there is no gradient of x; it would be minus that of the mean. */
static void build_loglik(piece *p) {
    const mtan_tensor mean = piece_input(p, "mean", 10, 3, 1, NULL), logp = mtan_new(&p->tape, 2, 1);
    mtan_batch *batch = &p->batch;
    piece_sequence(p, 2, 1);
    piece_queries(p, five);
    batch->cell0 = p->cell0, batch->cell_row = p->cell_row, batch->cell_channel = p->cell_channel;
    batch->cell_value = p->cell_value, batch->channels = batch->outputs = 3;
    for (int32_t i = 0, n = 0; i < 30; i++) {
        if (piece_u(p, "mask", (size_t)i) < -0.5) continue;
        p->cell_row[n] = i / 3 % 5, p->cell_channel[n] = i % 3;
        p->cell_value[n++] = (mtan_real)piece_u(p, "x", (size_t)i);
        p->cell0[2] = n;
        if (i < 15) p->cell0[1] = n;
    }
    batch->cells = p->cell0[2];
    mtan_op_loglik(&p->tape, logp, mean, 0.25);
    piece_output(p, "out", logp, NULL);
}

/* Mean and log-variance are the halves of one tensor. */
static mtan_tensor posterior(piece *p) {
    mtan_tensor x;
    piece_sequence(p, 2, 4);
    x = mtan_new(&p->tape, 8, 6);
    piece_input_view(p, "mean", mtan_columns(x, 0, 3), 1, piece_by_step);
    piece_input_view(p, "logvar", mtan_columns(x, 3, 3), 1, piece_by_step);
    return x;
}

static void build_kl(piece *p) {
    const mtan_tensor x = posterior(p), kl = mtan_new(&p->tape, 2, 1);
    mtan_op_kl(&p->tape, kl, x);
    piece_output(p, "out", kl, NULL);
}

/* The noise is drawn, not learned: it has no gradient. */
static void build_reparam(piece *p) {
    const mtan_tensor x = posterior(p), z = mtan_new(&p->tape, 16, 3), noise = mtan_new_constant(&p->tape, 16, 3);
    p->batch.samples = 2;
    piece_fill(p, "reparam.noise", noise, 2, piece_by_step_and_sample);
    mtan_op_sample(&p->tape, z, x, noise);
    piece_output(p, "out", z, piece_by_step_and_sample);
}

/* Ours are the samples of a record together; theirs (S, B). */
static size_t by_record(const piece *p, size_t i, size_t cols) {
    (void)p, (void)cols;
    return i % 3 * 4 + i / 3;
}

/* The bound without a KL is minus the log mean exp. Its gradient per record is `seed`, so a bound for every record. */
static void build_logmeanexp(piece *p) {
    const mtan_tensor x = piece_input(p, "x", 12, 1, 8, by_record), loss = mtan_new(&p->tape, 3, 1);
    const mtan_tensor kl = mtan_new(&p->tape, 3, 1), share = mtan_new_constant(&p->tape, 3, 1);
    for (int32_t b = 0; b < 3; b++) {
        if (piece_runs(p)) mtan_data(&p->tape, kl)[b] = 0, mtan_data(&p->tape, share)[b] = 1;
        mtan_op_bound(&p->tape, mtan_rows(loss, b, 1), mtan_rows(x, 4 * b, 4), mtan_rows(kl, b, 1),
                      mtan_rows(share, b, 1), MTAN_BOUND_FAITHFUL, 0, -piece_cotangent(p, "out", (size_t)b));
    }
    mtan_op_scale(&p->tape, loss, -1);
    piece_output(p, "out", loss, NULL);
}

/* ---- golden: attention ---- */

/* The mask half of the output is 1 where a channel was ever seen and 0 elsewhere, at every query (Q1): `seen`,
 * spread. The observed values are data: there is no gradient of x. */
static void build_attention_masked(piece *p) {
    mtan_tensor q, k, score, y;
    piece_sequence(p, 1, 5);
    piece_grid(p, 7, 4);
    q = piece_input(p, "q", 5, 16, 4, NULL);
    k = piece_input(p, "k", 7, 16, 1, NULL);
    score = mtan_new(&p->tape, 1, p->batch.scores);
    y = mtan_new(&p->tape, 5, 8);
    mtan_op_scale(&p->tape, q, 0.25);
    mtan_op_score(&p->tape, score, k, q, 0);
    mtan_op_attend(&p->tape, mtan_columns(y, 0, 4), score);
    mtan_op_spread(&p->tape, mtan_columns(y, 4, 4), p->batch.seen);
    piece_keep(p, PIECE_KEPT, "score", score);
    piece_output(p, "out", y, NULL);
}

/* The weights come from the kernel. Those of channel 3, never observed, have no meaning (Q4). */
TEST golden_attention_masked(void) {
    enum { Q = 5, L = 7, D = 4 };
    piece p;
    mtan_real exponentials[L * Q], total[D * Q], scratch[2 * Q], y[Q * D], weight[Q * L], got[Q * L * D],
        out[Q * 2 * D];
    const mtan_real *score;
    double ref[Q * L * D];
    ASSERT(piece_run(&p, "attention-masked", build_attention_masked, NULL));
    ASSERT(piece_compare(&p, OPS));
    score = mtan_data(&p.tape, piece_find(&p, "score"));
    mtan_backend_scalar.attend_forward(&p.batch, y, D, score, exponentials, total, scratch);
    piece_values(&p, "out", out);
    for (size_t q = 0; q < Q; q++) ASSERT(check_same("kernel and op", y + q * D, out + q * 2 * D, D * sizeof *y));
    ASSERT(golden_read(OPS, "attention-masked/weights", MTAN_DTYPE_F64, ref, Q * L * D));
    for (size_t i = 0; i < Q * L * D; i++) got[i] = (mtan_real)ref[i];
    for (int32_t d = 0; d < 3; d++) {
        mtan_backend_scalar.attend_weights(&p.batch, weight, score, exponentials, total, d);
        for (size_t i = 0; i < Q * L; i++) got[i * D + (size_t)d] = weight[i];
    }
    ASSERT(piece_compare_array(&p, OPS, "weights", got, Q * L * D));
    ASSERT(piece_end(&p));
    PASS();
}

static void build_attention(piece *p) {
    mtan_tensor q, k, x, weight, y;
    piece_sequence(p, 1, 7);
    piece_queries(p, five);
    q = piece_input(p, "q", 5, 16, 4, NULL);
    k = piece_input(p, "k", 7, 16, 1, NULL);
    x = piece_input(p, "x", 7, 6, 1, NULL);
    weight = mtan_new(&p->tape, 5, 7);
    y = mtan_new(&p->tape, 5, 6);
    mtan_op_scale(&p->tape, q, 0.25);
    mtan_op_score(&p->tape, weight, q, k, 1);
    mtan_op_softmax_pairs(&p->tape, weight);
    mtan_op_attend_values(&p->tape, y, weight, x);
    piece_keep(p, PIECE_VALUE, "weights", weight);
    piece_output(p, "out", y, NULL);
}

/* Bandwidths of the mask half have no effect and no gradient: the whole tensor is compared. */
static void build_rbf_masked(piece *p) {
    mtan_tensor query, bandwidth, beta, y;
    piece_sequence(p, 1, 5);
    piece_grid(p, 7, 4);
    query = times(p, 5, 4, 0);
    p->batch.time = times(p, 7, 64, 1);
    bandwidth = piece_input(p, "bandwidth", 1, 8, 4, NULL);
    beta = mtan_new(&p->tape, 1, 8);
    y = mtan_new(&p->tape, 5, 8);
    mtan_op_softplus(&p->tape, beta, bandwidth);
    mtan_op_attend_rbf(&p->tape, mtan_columns(y, 0, 4), query, mtan_columns(beta, 0, 4));
    mtan_op_spread(&p->tape, mtan_columns(y, 4, 4), p->batch.seen);
    piece_output(p, "out", y, NULL);
}

static void build_rbf(piece *p) {
    mtan_tensor key, bandwidth, beta, x, y;
    piece_sequence(p, 1, 7);
    piece_queries(p, five);
    p->batch.query = times(p, 5, 4, 0);
    key = times(p, 7, 64, 1);
    bandwidth = piece_input(p, "bandwidth", 1, 6, 4, NULL);
    x = piece_input(p, "x", 7, 6, 1, NULL);
    beta = mtan_new(&p->tape, 1, 6);
    y = mtan_new(&p->tape, 5, 6);
    mtan_op_softplus(&p->tape, beta, bandwidth);
    mtan_op_smooth(&p->tape, y, key, beta, x);
    piece_output(p, "out", y, NULL);
}

static const int32_t forward = 0, backward = 1;

static const struct golden_op {
    const char *name;
    piece_build build;
    const void *argument;
} golden_ops[] = {
    {"embed-learned", build_embed_learned, NULL},
    {"embed-fixed", build_embed_fixed, NULL},
    {"linear", build_linear, NULL},
    {"relu", build_relu, NULL},
    {"tanh", build_tanh, NULL},
    {"gru", build_gru, &forward},
    {"gru-reverse", build_gru, &backward},
    {"gauss-loglik", build_loglik, NULL},
    {"kl", build_kl, NULL},
    {"reparam", build_reparam, NULL},
    {"logmeanexp", build_logmeanexp, NULL},
    {"attention", build_attention, NULL},
    {"rbf-masked", build_rbf_masked, NULL},
    {"rbf", build_rbf, NULL},
};

TEST golden_op(const struct golden_op *op) {
    ASSERT(piece_golden(OPS, op->name, op->build, op->argument));
    PASS();
}

/* ---- plain loops: rows that move, products, factors ----
 * Records of 5, 3, 3 and 1 steps: rows 0-3, 4-6, 7-9, 10, 11. */

static const int32_t ragged[4] = {5, 3, 3, 1};
static const size_t record_of_row[12] = {0, 1, 2, 3, 0, 1, 2, 0, 1, 2, 0, 0};

/* Two tensors side by side in one, a row repeated under them, and a view of part of the result. */
static void build_copy(piece *p) {
    const mtan_tensor a = piece_input(p, "a", 3, 2, 1, NULL), b = piece_input(p, "b", 3, 3, 1, NULL);
    const mtan_tensor row = piece_input(p, "row", 1, 5, 1, NULL), y = mtan_new(&p->tape, 5, 5);
    mtan_op_copy(&p->tape, mtan_columns(mtan_rows(y, 0, 3), 0, 2), a);
    mtan_op_copy(&p->tape, mtan_columns(mtan_rows(y, 0, 3), 2, 3), b);
    mtan_op_copy(&p->tape, mtan_rows(y, 3, 2), row);
    piece_output(p, "out", y, NULL);
}

TEST copies(void) {
    piece p;
    mtan_real out[25], da[6], db[9], drow[5];
    double expected[25], ea[6], eb[9], erow[5];
    ASSERT(piece_run(&p, "copy", build_copy, NULL));
    for (size_t i = 0; i < 25; i++) {
        const size_t r = i / 5, c = i % 5;
        const double cot = piece_cotangent(&p, "out", i);
        expected[i] = r >= 3  ? piece_u(&p, "row", c)
                      : c < 2 ? piece_u(&p, "a", r * 2 + c)
                              : piece_u(&p, "b", r * 3 + c - 2);
        if (r >= 3) erow[c] = (r == 3 ? 0 : erow[c]) + cot;
        else if (c < 2) ea[r * 2 + c] = cot;
        else eb[r * 3 + c - 2] = cot;
    }
    piece_values(&p, "out", out), piece_gradient(&p, "a", da), piece_gradient(&p, "b", db);
    piece_gradient(&p, "row", drow);
    ASSERT(piece_near("copy", out, expected, 25));
    ASSERT(piece_near("copy da", da, ea, 6));
    ASSERT(piece_near("copy db", db, eb, 9));
    ASSERT(piece_near("copy drow", drow, erow, 5));
    ASSERT(piece_end(&p));
    PASS();
}

static void build_add(piece *p) {
    const mtan_tensor a = piece_input(p, "a", 3, 2, 1, NULL), b = piece_input(p, "b", 3, 2, 1, NULL);
    const mtan_tensor y = mtan_new(&p->tape, 3, 2);
    mtan_op_copy(&p->tape, y, a);
    mtan_op_add(&p->tape, y, b);
    piece_output(p, "out", y, NULL);
}

TEST adds(void) {
    piece p;
    mtan_real out[6], da[6], db[6];
    double sum[6], passed_on[6];
    ASSERT(piece_run(&p, "add", build_add, NULL));
    for (size_t i = 0; i < 6; i++) {
        sum[i] = piece_u(&p, "a", i) + piece_u(&p, "b", i);
        passed_on[i] = piece_cotangent(&p, "out", i);
    }
    piece_values(&p, "out", out), piece_gradient(&p, "a", da), piece_gradient(&p, "b", db);
    ASSERT(piece_near("add", out, sum, 6));
    ASSERT(piece_near("add da", da, passed_on, 6));
    ASSERT(piece_near("add db", db, passed_on, 6));
    ASSERT(piece_end(&p));
    PASS();
}

static void build_spread(piece *p) {
    mtan_tensor x, y;
    piece_lengths(p, 4, ragged);
    x = piece_input(p, "x", 4, 3, 1, NULL);
    y = mtan_new(&p->tape, 12, 4);
    mtan_op_spread(&p->tape, mtan_columns(y, 1, 3), x);
    piece_output(p, "out", mtan_columns(y, 1, 3), NULL);
}

TEST spreads(void) {
    piece p;
    mtan_real out[36], dx[12];
    double expected[36], edx[12] = {0};
    ASSERT(piece_run(&p, "spread", build_spread, NULL));
    for (size_t i = 0; i < 36; i++) {
        const size_t at = record_of_row[i / 3] * 3 + i % 3;
        expected[i] = piece_u(&p, "x", at);
        edx[at] += piece_cotangent(&p, "out", i);
    }
    piece_values(&p, "out", out), piece_gradient(&p, "x", dx);
    ASSERT(piece_near("spread", out, expected, 36));
    ASSERT(piece_near("spread dx", dx, edx, 12));
    ASSERT(piece_end(&p));
    PASS();
}

/* Two samples a row; the last record has no step at all and gives zeros. */
static void build_last(piece *p) {
    const int32_t length[4] = {4, 2, 2, 0};
    mtan_tensor x, y;
    piece_lengths(p, 4, length);
    x = piece_input(p, "x", 16, 3, 1, NULL);
    y = mtan_new(&p->tape, 8, 3);
    mtan_op_last(&p->tape, y, x);
    piece_output(p, "out", y, NULL);
}

TEST lasts(void) {
    const size_t last_row[3] = {7, 4, 5}; /* rows 0-2, 3-5, 6, 7 */
    piece p;
    mtan_real out[24], dx[48];
    double expected[24] = {0}, edx[48] = {0};
    ASSERT(piece_run(&p, "last", build_last, NULL));
    for (size_t i = 0; i < 18; i++) {
        const size_t b = i / 6, at = last_row[b] * 6 + i % 6;
        expected[i] = piece_u(&p, "x", at);
        edx[at] = piece_cotangent(&p, "out", i);
    }
    piece_values(&p, "out", out), piece_gradient(&p, "x", dx);
    ASSERT(piece_near("last", out, expected, 24));
    ASSERT(piece_near("last dx", dx, edx, 48));
    ASSERT(piece_end(&p));
    PASS();
}

/* y = -3 (a b + c w^T), on views with strides of their own: all three products of the kernels, forward and backward. */
static void build_products(piece *p) {
    const mtan_tensor wide = mtan_new(&p->tape, 4, 9), tall = mtan_new(&p->tape, 7, 3), y = mtan_new(&p->tape, 4, 5);
    const mtan_tensor a = mtan_columns(wide, 2, 3), b = mtan_columns(mtan_new(&p->tape, 3, 6), 1, 5);
    const mtan_tensor w = mtan_rows(tall, 1, 5), c = mtan_columns(wide, 6, 3), part = mtan_columns(y, 0, 5);
    piece_input_view(p, "a", a, 1, NULL);
    piece_input_view(p, "b", b, 1, NULL);
    piece_input_view(p, "c", c, 1, NULL);
    piece_input_view(p, "w", w, 1, NULL);
    mtan_op_matmul(&p->tape, part, a, b);
    mtan_op_linear_add(&p->tape, part, c, w);
    mtan_op_scale(&p->tape, part, -3);
    piece_output(p, "out", y, NULL);
}

TEST products(void) {
    piece p;
    mtan_real got[20];
    double y[20] = {0}, da[12] = {0}, db[15] = {0}, dc[12] = {0}, dw[15] = {0};
    ASSERT(piece_run(&p, "products", build_products, NULL));
    for (size_t i = 0; i < 60; i++) {
        const size_t r = i / 15, j = i / 3 % 5, k = i % 3;
        const double a = piece_u(&p, "a", r * 3 + k), b = piece_u(&p, "b", k * 5 + j), c = piece_u(&p, "c", r * 3 + k);
        const double w = piece_u(&p, "w", j * 3 + k), cot = -3 * piece_cotangent(&p, "out", r * 5 + j);
        y[r * 5 + j] += -3 * (a * b + c * w);
        da[r * 3 + k] += cot * b, db[k * 5 + j] += cot * a, dc[r * 3 + k] += cot * w, dw[j * 3 + k] += cot * c;
    }
    piece_values(&p, "out", got);
    ASSERT(piece_near("products", got, y, 20));
    piece_gradient(&p, "a", got);
    ASSERT(piece_near("products da", got, da, 12));
    piece_gradient(&p, "b", got);
    ASSERT(piece_near("products db", got, db, 15));
    piece_gradient(&p, "c", got);
    ASSERT(piece_near("products dc", got, dc, 12));
    piece_gradient(&p, "w", got);
    ASSERT(piece_near("products dw", got, dw, 15));
    ASSERT(piece_end(&p));
    PASS();
}

/* ---- plain loops: the three bounds, with a KL per record or per sample, a weight and a share ---- */

typedef struct bound_case {
    mtan_bound bound;
    int32_t per_sample;
} bound_case;

enum { BOUND_B = 3, BOUND_S = 4 };
static const double KL_WEIGHT = 0.5, SEED = 0.75; /* exact in float */

static double share_of(size_t b) {
    return b == 1 ? 0.25 : b == 2 ? 0 : 1; /* 0: left out */
}

static void build_bound(piece *p) {
    const bound_case *c = p->argument;
    const mtan_tensor logp = piece_input(p, "logp", BOUND_B * BOUND_S, 1, 8, NULL);
    const mtan_tensor kl = piece_input(p, "kl", BOUND_B * (c->per_sample ? BOUND_S : 1), 1, 4, NULL);
    const mtan_tensor share = mtan_new_constant(&p->tape, BOUND_B, 1), loss = mtan_new_constant(&p->tape, BOUND_B, 1);
    for (size_t b = 0; piece_runs(p) && b < BOUND_B; b++) mtan_data(&p->tape, share)[b] = (mtan_real)share_of(b);
    mtan_op_bound(&p->tape, loss, logp, kl, share, c->bound, KL_WEIGHT, SEED);
    piece_keep(p, PIECE_KEPT, "loss", loss);
}

static size_t kl_at(const bound_case *c, size_t b, size_t s) {
    return c->per_sample ? b * BOUND_S + s : b;
}

/* weight[s] = exp(v) / sum of exp(v), or 1/S; the loss is minus log mean exp, or minus the mean */
static double bound_of(const piece *p, const bound_case *c, size_t b, double weight[BOUND_S]) {
    double sum = 0, mean = 0;
    for (size_t s = 0; s < BOUND_S; s++) {
        const double v =
            (8 * piece_u(p, "logp", b * BOUND_S + s) - KL_WEIGHT * 4 * piece_u(p, "kl", kl_at(c, b, s))) * share_of(b);
        weight[s] = c->bound == MTAN_BOUND_ELBO ? 1 : exp(v);
        sum += weight[s];
        mean += v / BOUND_S;
    }
    for (size_t s = 0; s < BOUND_S; s++) weight[s] /= sum;
    return c->bound == MTAN_BOUND_ELBO ? -mean : -log(sum / BOUND_S);
}

TEST bounds(const bound_case *c) {
    piece p;
    mtan_real got[BOUND_B * BOUND_S];
    double loss[BOUND_B], dlogp[BOUND_B * BOUND_S], dkl[BOUND_B * BOUND_S] = {0}, weight[BOUND_S];
    ASSERT(piece_run(&p, "bound", build_bound, c));
    for (size_t b = 0; b < BOUND_B; b++) {
        loss[b] = bound_of(&p, c, b, weight);
        for (size_t s = 0; s < BOUND_S; s++) {
            dlogp[b * BOUND_S + s] = -SEED * share_of(b) * weight[s];
            dkl[kl_at(c, b, s)] += SEED * KL_WEIGHT * share_of(b) * weight[s];
        }
    }
    piece_values(&p, "loss", got);
    ASSERT(piece_near("loss", got, loss, BOUND_B));
    piece_gradient(&p, "logp", got);
    ASSERT(piece_near("dlogp", got, dlogp, BOUND_B * BOUND_S));
    piece_gradient(&p, "kl", got);
    ASSERT(piece_near("dkl", got, dkl, c->per_sample ? BOUND_B * BOUND_S : BOUND_B));
    ASSERT(piece_end(&p));
    PASS();
}

/* log q(z|x) - log p(z), together with the sampling that makes z:
 * z = m + n exp(v/2), ratio = sum of (z^2 - n^2 - v) / 2 */
static void build_ratio(piece *p) {
    const mtan_tensor x = posterior(p), noise = mtan_new_constant(&p->tape, 16, 3), z = mtan_new(&p->tape, 16, 3);
    const mtan_tensor ratio = mtan_new(&p->tape, 4, 1);
    p->batch.samples = 2;
    piece_fill(p, "ratio.noise", noise, 2, NULL);
    mtan_op_sample(&p->tape, z, x, noise);
    mtan_op_ratio(&p->tape, ratio, z, x, noise);
    piece_output(p, "out", ratio, NULL);
}

TEST ratios(void) {
    piece p;
    mtan_real got[24];
    double ratio[4] = {0}, dmean[24] = {0}, dlogvar[24] = {0};
    ASSERT(piece_run(&p, "ratio", build_ratio, NULL));
    for (size_t i = 0; i < 48;
         i++) { /* our order: step, record, sample, latent; theirs for the posterior: record, step */
        const size_t k = i / 12, b = i / 6 % 2, s = i / 3 % 2, at = (b * 4 + k) * 3 + i % 3;
        const double n = 2 * piece_u(&p, "noise", i), m = piece_u(&p, "mean", at), v = piece_u(&p, "logvar", at);
        const double z = m + n * exp(v / 2), cot = piece_cotangent(&p, "out", b * 2 + s);
        ratio[b * 2 + s] += (z * z - n * n - v) / 2;
        dmean[at] += cot * z;
        dlogvar[at] += cot * (z * n * exp(v / 2) / 2 - 0.5);
    }
    piece_values(&p, "out", got);
    ASSERT(piece_near("ratio", got, ratio, 4));
    piece_gradient(&p, "mean", got);
    ASSERT(piece_near("ratio dmean", got, dmean, 24));
    piece_gradient(&p, "logvar", got);
    ASSERT(piece_near("ratio dlogvar", got, dlogvar, 24));
    ASSERT(piece_end(&p));
    PASS();
}

/* ---- the GRU of ragged records: the same bits as each record alone ---- */

enum { GRU_N = 3, GRU_ROWS = 12, GRU_MOST = 2 * GRU_ROWS * 3 * GRU_N };

typedef struct gru_case {
    int32_t samples, reverse;
    int32_t alone; /* which record; -1: all four together */
} gru_case;

/* Input and output have the rows of all records, so that a record has the same numbers and cotangents in either run. */
static void build_ragged(piece *p) {
    const gru_case *c = p->argument;
    const int32_t S = c->samples;
    mtan_tensor x, gx, w, b, y, out;
    if (c->alone < 0) piece_lengths(p, 4, ragged);
    else piece_lengths(p, 1, &ragged[c->alone]);
    x = piece_input(p, "x", GRU_ROWS * S, 3 * GRU_N, 2, NULL);
    w = piece_input(p, "w", 3 * GRU_N, GRU_N, 1, NULL);
    b = piece_input(p, "b", 1, 3 * GRU_N, 1, NULL);
    gx = mtan_new(&p->tape, p->batch.rows * S, 3 * GRU_N);
    y = mtan_new(&p->tape, p->batch.rows * S, GRU_N);
    out = mtan_new(&p->tape, GRU_ROWS * S, GRU_N);
    for (int32_t r = 0, at = 0; r < GRU_ROWS; r++)
        if (c->alone < 0 || record_of_row[r] == (size_t)c->alone)
            mtan_op_copy(&p->tape, mtan_rows(gx, at++ * S, S), mtan_rows(x, r * S, S));
    mtan_op_gru(&p->tape, y, gx, w, b, NULL, S, c->reverse);
    for (int32_t r = 0, at = 0; r < GRU_ROWS; r++)
        if (c->alone < 0 || record_of_row[r] == (size_t)c->alone)
            mtan_op_copy(&p->tape, mtan_rows(out, r * S, S), mtan_rows(y, at++ * S, S));
    piece_output(p, "out", out, NULL);
}

typedef struct gru_result {
    mtan_real out[GRU_MOST], dx[GRU_MOST], dw[3 * GRU_N * GRU_N], db[3 * GRU_N];
} gru_result;

static int run_gru(const gru_case *c, gru_result *r) {
    piece p;
    const int ok = piece_run(&p, "ragged", build_ragged, c);
    if (ok) {
        piece_values(&p, "out", r->out), piece_gradient(&p, "x", r->dx);
        piece_gradient(&p, "w", r->dw), piece_gradient(&p, "b", r->db);
    }
    return piece_end(&p) && ok;
}

/* The gradients of the weights are sums over records in another order: equal to rounding only. */
TEST ragged_gru(int32_t samples, int32_t reverse) {
    const size_t wide = 3 * GRU_N * (size_t)samples, narrow = GRU_N * (size_t)samples;
    gru_case c = {samples, reverse, -1};
    gru_result all, one;
    double dw[3 * GRU_N * GRU_N] = {0}, db[3 * GRU_N] = {0};
    ASSERT(run_gru(&c, &all));
    for (c.alone = 0; c.alone < 4; c.alone++) {
        ASSERT(run_gru(&c, &one));
        for (size_t r = 0; r < GRU_ROWS; r++) {
            if (record_of_row[r] != (size_t)c.alone) continue;
            ASSERT(check_same("out", one.out + r * narrow, all.out + r * narrow, narrow * sizeof(mtan_real)));
            ASSERT(check_same("dx", one.dx + r * wide, all.dx + r * wide, wide * sizeof(mtan_real)));
        }
        for (size_t i = 0; i < 3 * GRU_N * GRU_N; i++) dw[i] += (double)one.dw[i];
        for (size_t i = 0; i < 3 * GRU_N; i++) db[i] += (double)one.db[i];
    }
    ASSERT(piece_near("dw", all.dw, dw, 3 * GRU_N * GRU_N));
    ASSERT(piece_near("db", all.db, db, 3 * GRU_N));
    PASS();
}

/* ---- records with points of their own (MTAN_REF_OBSERVED): the same bits as each record alone ----
 * Four records of 4, 2, 2 and 0 steps, so 8 rows in all, and as many points, keys and queries. A record alone has its
 * points as the shared ones, which is what the golden tests cover. Inputs and outputs have the rows of all records. */

enum { OWN = 8, OWN_S = 2, OWN_E = 3, OWN_C = 5, OWN_D = 2 };
static const int32_t own_steps[4] = {4, 2, 2, 0}, own_keys[4] = {3, 2, 1, 2}, own_queries[4] = {2, 3, 1, 2};
static const int32_t step_owner[OWN] = {0, 1, 2, 0, 1, 2, 0, 0}, point_owner[OWN] = {0, 0, 0, 0, 1, 1, 2, 2};
static const int32_t key_owner[OWN] = {0, 0, 0, 1, 1, 2, 3, 3}, query_owner[OWN] = {0, 0, 1, 1, 1, 2, 3, 3};

typedef struct own_case {
    int32_t rbf, alone; /* which record; -1: all four together */
    int32_t fixed;      /* the points are no parameters */
} own_case;

static int32_t first_row(const own_case *c, const int32_t *owner) {
    int32_t r = 0;
    while (r < OWN && owner[r] < c->alone) r++;
    return r;
}

/* The rows of the record that is alone, or all. */
static mtan_tensor rows_of(const own_case *c, mtan_tensor x, const int32_t *owner) {
    const own_case next = {c->rbf, c->alone + 1, 0};
    const int32_t first = first_row(c, owner);
    return c->alone < 0 ? x : mtan_rows(x, first, first_row(&next, owner) - first);
}

/* Step-major rows of one record between a tensor of all and one of its own, one way or the other. */
static void copy_steps(piece *p, mtan_tensor all, mtan_tensor own, int32_t samples, int32_t out) {
    const own_case *c = p->argument;
    for (int32_t r = 0, at = 0; r < OWN; r++) {
        const mtan_tensor whole = mtan_rows(all, r * samples, samples);
        if (step_owner[r] != c->alone) continue;
        if (out) mtan_op_copy(&p->tape, whole, mtan_rows(own, at++ * samples, samples));
        else mtan_op_copy(&p->tape, mtan_rows(own, at++ * samples, samples), whole);
    }
}

static void own_events(piece *p) {
    const own_case *c = p->argument;
    piece_event events[OWN * OWN_D];
    int32_t n = 0;
    for (int32_t i = 0, row = 0; i < OWN; i++) {
        row = i > 0 && key_owner[i] == key_owner[i - 1] ? row + 1 : 0;
        for (int32_t d = 0; d < OWN_D; d++) {
            const piece_event e = {c->alone < 0 ? key_owner[i] : 0, row, d,
                                   (mtan_real)piece_u(p, "x", (size_t)(i * OWN_D + d))};
            if (c->alone < 0 || key_owner[i] == c->alone) events[n++] = e;
        }
    }
    piece_events(p, OWN_D, c->alone < 0 ? own_keys : &own_keys[c->alone], events, n);
}

static void own_lengths(piece *p) {
    const own_case *c = p->argument;
    if (c->alone >= 0) piece_lengths(p, 1, &own_steps[c->alone]);
    else piece_lengths(p, 4, own_steps), piece_own_points(p);
}

/* Encoder: attention, or RBF smoothing at times, over each record's events. */
static void build_own_encoder(piece *p) {
    const own_case *c = p->argument;
    mtan_tensor key, point, width, out, y;
    own_lengths(p);
    own_events(p);
    key = piece_input(p, "key", OWN, c->rbf ? 1 : OWN_E, 1, NULL);
    point = piece_input(p, "point", OWN, c->rbf ? 1 : OWN_E, 1, NULL);
    width = piece_input(p, "width", 1, OWN_D, 1, NULL);
    out = mtan_new(&p->tape, OWN, OWN_D);
    y = c->alone < 0 ? out : mtan_new(&p->tape, own_steps[c->alone], OWN_D);
    key = rows_of(c, key, key_owner), point = rows_of(c, point, point_owner);
    if (c->rbf) {
        const mtan_tensor beta = mtan_new(&p->tape, 1, OWN_D);
        p->batch.time = key;
        mtan_op_softplus(&p->tape, beta, width);
        mtan_op_attend_rbf(&p->tape, y, point, beta);
    } else {
        const mtan_tensor score = mtan_new(&p->tape, 1, p->batch.scores);
        mtan_op_score(&p->tape, score, key, point, 0);
        mtan_op_attend(&p->tape, y, score);
    }
    if (c->alone >= 0) copy_steps(p, out, y, 1, 1);
    piece_output(p, "out", out, NULL);
}

/* Decoder: attention, or RBF smoothing, of values that a record has at its steps. Two samples. */
static void build_own_decoder(piece *p) {
    const own_case *c = p->argument;
    mtan_tensor query, point, value, width, out, own, weight;
    own_lengths(p);
    piece_queries(p, c->alone < 0 ? own_queries : &own_queries[c->alone]);
    p->batch.samples = OWN_S;
    query = rows_of(c, piece_input(p, "query", OWN, c->rbf ? 1 : OWN_E, 1, NULL), query_owner);
    point = rows_of(c, piece_input(p, "point", OWN, c->rbf ? 1 : OWN_E, 1, NULL), point_owner);
    if (c->fixed) point.grad = MTAN_NO_GRAD;
    value = piece_input(p, "value", OWN * OWN_S, OWN_C, 1, NULL);
    width = piece_input(p, "width", 1, OWN_C, 1, NULL);
    out = mtan_new(&p->tape, OWN * OWN_S, OWN_C);
    own = mtan_new(&p->tape, p->batch.rows * OWN_S, OWN_C);
    if (c->alone < 0) mtan_op_regroup(&p->tape, own, value);
    else copy_steps(p, value, own, OWN_S, 0);
    piece_output(p, "out", out, NULL);
    if (c->alone >= 0) out = mtan_rows(out, first_row(c, query_owner) * OWN_S, query.rows * OWN_S);
    if (c->rbf) {
        const mtan_tensor beta = mtan_new(&p->tape, 1, OWN_C);
        p->batch.query = query;
        mtan_op_softplus(&p->tape, beta, width);
        mtan_op_smooth(&p->tape, out, point, beta, own);
        return;
    }
    if (c->alone < 0) {
        weight = mtan_new(&p->tape, 1, p->batch.pairs);
        mtan_op_score(&p->tape, weight, query, point, 1);
        mtan_op_softmax_pairs(&p->tape, weight);
    } else { /* one block of weights is a matrix like any other */
        weight = mtan_new(&p->tape, query.rows, point.rows);
        mtan_op_linear(&p->tape, weight, query, point, NULL);
        mtan_op_softmax(&p->tape, weight);
    }
    mtan_op_attend_values(&p->tape, out, weight, own);
}

/* The rows of record b in tensor `name` of both pieces: values of an output, else the gradient. */
static int same_rows(const piece *all, const piece *one, const char *name, const int32_t *owner, int32_t b) {
    const mtan_tensor x = piece_find(all, name), y = piece_find(one, name);
    const size_t n = (size_t)(x.rows / OWN * x.cols);
    const int out = strcmp(name, "out") == 0;
    const mtan_real *got = out ? mtan_data(&all->tape, x) : mtan_grad(&all->tape, x);
    const mtan_real *expected = out ? mtan_data(&one->tape, y) : mtan_grad(&one->tape, y);
    for (size_t r = 0; r < OWN; r++)
        if (owner[r] == b && !check_same(name, got + r * n, expected + r * n, n * sizeof *got)) return 0;
    return 1;
}

/* The gradient of the bandwidths is summed over the records, so it is equal to rounding only. */
TEST own_points(int32_t decoder, int32_t rbf) {
    own_case all_case = {rbf, -1, 0}, c = {rbf, 0, 0};
    const piece_build build = decoder ? build_own_decoder : build_own_encoder;
    const size_t wide = decoder ? OWN_C : OWN_D;
    piece all, one;
    mtan_real got[OWN_C];
    double dwidth[OWN_C] = {0};
    ASSERT(piece_run(&all, "own", build, &all_case));
    for (c.alone = 0; c.alone < 3; c.alone++) {
        ASSERT(piece_run(&one, "own", build, &c));
        ASSERT(same_rows(&all, &one, "out", decoder ? query_owner : step_owner, c.alone));
        ASSERT(same_rows(&all, &one, "point", point_owner, c.alone));
        ASSERT(same_rows(&all, &one, decoder ? "query" : "key", decoder ? query_owner : key_owner, c.alone));
        if (decoder) ASSERT(same_rows(&all, &one, "value", step_owner, c.alone));
        piece_gradient(&one, "width", got);
        for (size_t i = 0; i < wide; i++) dwidth[i] += (double)got[i];
        ASSERT(piece_end(&one));
    }
    piece_gradient(&all, "width", got);
    ASSERT(piece_near("dwidth", got, dwidth, wide));
    if (decoder) { /* the last record has queries but no points: nothing to interpolate */
        const mtan_real *out = mtan_data(&all.tape, piece_find(&all, "out"));
        for (size_t i = 6 * OWN_S * OWN_C; i < OWN * OWN_S * OWN_C; i++) ASSERT(out[i] == 0);
    }
    ASSERT(piece_end(&all));
    PASS();
}

/* They get no gradient, and the queries have the same as ever. */
TEST fixed_points(void) {
    own_case learned = {0, -1, 0}, fixed = {0, -1, 1};
    piece p, q;
    mtan_real got[OWN * OWN_E], expected[OWN * OWN_E];
    ASSERT(piece_run(&p, "own", build_own_decoder, &learned) && piece_run(&q, "own", build_own_decoder, &fixed));
    piece_gradient(&p, "query", expected), piece_gradient(&q, "query", got);
    ASSERT(check_same("dquery", got, expected, sizeof got));
    piece_gradient(&p, "point", expected), piece_gradient(&q, "point", got);
    for (int i = 0; i < OWN * OWN_E; i++) ASSERT(got[i] == 0);
    ASSERT(expected[0] != 0);
    ASSERT(piece_end(&p) & piece_end(&q));
    PASS();
}

/* ---- an op that the library does not know: y = x^2, the second of the caller's table ---- */

static void never_called(mtan_tape *tape, const mtan_node *node) {
    (void)node;
    tape->status = MTAN_ERR_INPUT;
}

static void square_backward(mtan_tape *tape, const mtan_node *node) {
    const mtan_real *dy = mtan_grad(tape, node->t[0]), *x = mtan_data(tape, node->t[1]);
    mtan_real *dx = mtan_grad(tape, node->t[1]);
    for (int32_t i = 0; i < node->n[0]; i++) dx[i] += 2 * x[i] * dy[i] * node->x[0];
}

/* 0.5 (-2 x)^2: library ops before and after, so that the order of the backward run matters */
static void build_user(piece *p) {
    static const mtan_backward table[] = {never_called, square_backward};
    const mtan_tensor x = piece_input(p, "x", 3, 5, 1, NULL), y = mtan_new(&p->tape, 3, 5);
    mtan_node *node;
    p->tape.user = table;
    mtan_op_scale(&p->tape, x, -2);
    node = mtan_record_op(&p->tape, MTAN_OP_USER + 1);
    if (node) node->t[0] = y, node->t[1] = x, node->n[0] = 15, node->x[0] = 1;
    for (int32_t i = 0; piece_runs(p) && i < 15; i++) {
        const mtan_real v = mtan_data(&p->tape, x)[i];
        mtan_data(&p->tape, y)[i] = v * v;
    }
    mtan_op_scale(&p->tape, y, 0.5);
    piece_output(p, "out", y, NULL);
}

TEST user_op(void) {
    piece p;
    mtan_real out[15], dx[15];
    double expected[15], edx[15];
    ASSERT(piece_run(&p, "user", build_user, NULL));
    for (size_t i = 0; i < 15; i++) {
        const double x = piece_u(&p, "x", i);
        expected[i] = 2 * x * x;
        edx[i] = 4 * x * piece_cotangent(&p, "out", i);
    }
    piece_values(&p, "out", out), piece_gradient(&p, "x", dx);
    ASSERT_EQ(MTAN_OK, p.tape.status);
    ASSERT_EQ(3, p.tape.nodes);
    ASSERT(piece_near("user", out, expected, 15));
    ASSERT(piece_near("user dx", dx, edx, 15));
    ASSERT(piece_end(&p));
    PASS();
}

/* Without recording there are no gradients and no nodes, and the values are the same bits. */
static void build_not_recording(piece *p) {
    p->tape.recording = 0;
    build_attention(p);
}

TEST without_recording(void) {
    piece with, without;
    mtan_real a[30], b[30];
    ASSERT(piece_run(&with, "attention", build_attention, NULL));
    ASSERT(piece_run(&without, "attention", build_not_recording, NULL));
    ASSERT_EQ(0, without.tape.nodes);
    ASSERT(without.tape.peak < with.tape.peak);
    piece_values(&with, "out", a), piece_values(&without, "out", b);
    ASSERT(check_same("out", b, a, sizeof a));
    ASSERT(piece_end(&with) && piece_end(&without));
    PASS();
}

/* Where one factor is a constant the other still has its gradient, and the constant's place stays as it is. */
static void build_constants(piece *p) {
    const int32_t which = *(const int32_t *)p->argument;
    mtan_tensor a = piece_input(p, "a", 4, 3, 1, NULL), b = piece_input(p, "b", 3, 5, 1, NULL);
    mtan_tensor c = piece_input(p, "c", 4, 3, 1, NULL), w = piece_input(p, "w", 5, 3, 1, NULL);
    const mtan_tensor y = mtan_new(&p->tape, 4, 5), z = mtan_new(&p->tape, 4, 5);
    if (which == 0) a.grad = c.grad = MTAN_NO_GRAD;
    else b.grad = w.grad = MTAN_NO_GRAD;
    mtan_op_matmul(&p->tape, y, a, b);
    mtan_op_linear(&p->tape, z, c, w, NULL);
    piece_output(p, "y", y, NULL);
    piece_output(p, "z", z, NULL);
}

TEST constant_factors(int32_t which) {
    piece p;
    mtan_real got[15];
    double da[12] = {0}, db[15] = {0}, dc[12] = {0}, dw[15] = {0};
    ASSERT(piece_run(&p, "constants", build_constants, &which));
    for (size_t i = 0; i < 60; i++) {
        const size_t r = i / 15, j = i / 3 % 5, k = i % 3;
        const double dy = piece_cotangent(&p, "y", r * 5 + j), dz = piece_cotangent(&p, "z", r * 5 + j);
        if (which == 0) db[k * 5 + j] += dy * piece_u(&p, "a", r * 3 + k);
        if (which == 0) dw[j * 3 + k] += dz * piece_u(&p, "c", r * 3 + k);
        if (which == 1) da[r * 3 + k] += dy * piece_u(&p, "b", k * 5 + j);
        if (which == 1) dc[r * 3 + k] += dz * piece_u(&p, "w", j * 3 + k);
    }
    piece_gradient(&p, "a", got);
    ASSERT(which == 0 || piece_near("constants da", got, da, 12));
    for (int i = 0; which == 0 && i < 12; i++) ASSERT(got[i] == 0);
    piece_gradient(&p, "c", got);
    ASSERT(which == 0 || piece_near("constants dc", got, dc, 12));
    for (int i = 0; which == 0 && i < 12; i++) ASSERT(got[i] == 0);
    piece_gradient(&p, "b", got);
    ASSERT(which == 1 || piece_near("constants db", got, db, 15));
    for (int i = 0; which == 1 && i < 15; i++) ASSERT(got[i] == 0);
    piece_gradient(&p, "w", got);
    ASSERT(which == 1 || piece_near("constants dw", got, dw, 15));
    for (int i = 0; which == 1 && i < 15; i++) ASSERT(got[i] == 0);
    ASSERT(piece_end(&p));
    PASS();
}

/* ---- the ends of a tape ---- */

/* What is too large for 32-bit offsets is a failure, and so is what has no size; a tape without memory counts them. */
static mtan_status size_of(int32_t rows, int32_t cols, int32_t more_rows, int32_t more_cols, int fold) {
    mtan_tape tape;
    memset(&tape, 0, sizeof tape);
    tape.backend = &mtan_backend_scalar;
    tape.n_params = fold ? 1000 : 0;
    (fold ? mtan_new_fold_constant : mtan_new_constant)(&tape, rows, cols);
    (fold ? mtan_new_fold_constant : mtan_new_constant)(&tape, more_rows, more_cols);
    return tape.status;
}

TEST tensors_that_are_too_large(void) {
    const int32_t most = INT32_MAX;
    for (int fold = 0; fold < 2; fold++) {
        ASSERT_EQ(MTAN_OK, size_of(1 << 15, 1 << 15, 3, 4, fold));
        ASSERT_EQ(MTAN_OK, size_of(most, 0, 0, most, fold));
        ASSERT_EQ(MTAN_ERR_SIZE, size_of(-1, 3, 1, 1, fold));
        ASSERT_EQ(MTAN_ERR_SIZE, size_of(3, -1, 1, 1, fold));
        ASSERT_EQ(MTAN_ERR_SIZE, size_of(1 << 16, 1 << 16, 1, 1, fold)); /* 0 in 32 bits */
        ASSERT_EQ(MTAN_ERR_SIZE, size_of(1, 1, most, 1, fold));          /* together */
        ASSERT_EQ(MTAN_ERR_SIZE, size_of(most, 1, 1, 1, fold));          /* after the last place */
    }
    ASSERT_EQ(MTAN_ERR_SIZE, size_of(most - 999, 1, 0, 0, 1)); /* beside the parameters */
    PASS();
}

/* A counting tape has as many nodes as 32 bits count, or as many as fit in a quarter of the addresses, and then fails. */
TEST nodes_without_end(void) {
    mtan_tape tape;
    memset(&tape, 0, sizeof tape);
    tape.backend = &mtan_backend_scalar;
    tape.recording = 1;
    ASSERT_EQ(NULL, mtan_record_op(&tape, MTAN_OP_USER));
    ASSERT_EQ(1, tape.nodes);
    tape.peak = 1000; /* larger before: it stays */
    mtan_record_op(&tape, MTAN_OP_USER);
    ASSERT(tape.nodes == 2 && tape.peak == 1000);
    tape.nodes = UINT32_MAX - 1;
    ASSERT_EQ(NULL, mtan_record_op(&tape, MTAN_OP_USER));
    ASSERT_EQ(MTAN_ERR_SIZE, tape.status);
    ASSERT_EQ(UINT32_MAX - 1, tape.nodes);
    ASSERT_EQ(1000, tape.peak);
    PASS();
}

/* A tensor without memory behind it has no address, and one without a gradient none for that. */
TEST addresses_of_tensors(void) {
    mtan_real work[8], grads[8];
    mtan_tape tape;
    mtan_tensor x = {2, 3, 1, 1, 1, MTAN_SPACE_WORK};
    memset(&tape, 0, sizeof tape);
    ASSERT(mtan_data(&tape, x) == NULL && mtan_grad(&tape, x) == NULL);
    tape.work = work;
    ASSERT(mtan_data(&tape, x) == work + 2 && mtan_grad(&tape, x) == work + 3);
    x.space = MTAN_SPACE_PARAM;
    ASSERT(mtan_data(&tape, x) == NULL && mtan_grad(&tape, x) == NULL);
    tape.params = work, tape.grads = grads;
    ASSERT(mtan_data(&tape, x) == work + 2 && mtan_grad(&tape, x) == grads + 3);
    x.grad = MTAN_NO_GRAD;
    ASSERT_EQ(NULL, mtan_grad(&tape, x));
    PASS();
}

/* No records: nothing is computed, nothing is divided by their number, and the gradients stay. */
static void build_no_bound(piece *p) {
    const mtan_tensor logp = piece_input(p, "logp", 3, 1, 1, NULL), kl = piece_input(p, "kl", 3, 1, 1, NULL);
    const mtan_tensor share = mtan_new_constant(&p->tape, 1, 1);
    mtan_op_bound(&p->tape, mtan_new(&p->tape, 0, 1), logp, kl, share, MTAN_BOUND_ELBO, 1, 1);
    piece_keep(p, PIECE_KEPT, "share", share);
}

TEST a_bound_of_no_records(void) {
    piece p;
    mtan_real got[3];
    ASSERT(piece_run(&p, "none", build_no_bound, NULL));
    ASSERT_EQ(1, p.tape.nodes);
    piece_gradient(&p, "logp", got);
    ASSERT(got[0] == 0 && got[1] == 0 && got[2] == 0);
    piece_gradient(&p, "kl", got);
    ASSERT(got[0] == 0 && got[1] == 0 && got[2] == 0);
    ASSERT(piece_end(&p));
    PASS();
}

/* A number that is no function changes nothing. */
TEST no_such_function(void) {
    const mtan_real x[3] = {1, 2, 3};
    mtan_real y[3] = {7, 7, 7};
    mtan_backend_scalar.map((mtan_function)99, y, x, 3);
    ASSERT(y[0] == 7 && y[1] == 7 && y[2] == 7);
    PASS();
}

SUITE(ops_suite) {
    static const bound_case bound_cases[] = {
        {MTAN_BOUND_FAITHFUL, 0}, {MTAN_BOUND_FAITHFUL, 1}, {MTAN_BOUND_ELBO, 0},
        {MTAN_BOUND_ELBO, 1},     {MTAN_BOUND_IWAE, 1},
    };
    for (size_t i = 0; i < sizeof golden_ops / sizeof *golden_ops; i++) {
        greatest_set_test_suffix(golden_ops[i].name);
        RUN_TESTp(golden_op, &golden_ops[i]);
    }
    RUN_TESTp(golden_cross_entropy, 0);
    RUN_TESTp(golden_cross_entropy, 1);
    RUN_TEST(golden_attention_masked);
    RUN_TEST(copies);
    RUN_TEST(adds);
    RUN_TEST(spreads);
    RUN_TEST(lasts);
    RUN_TEST(products);
    for (size_t i = 0; i < sizeof bound_cases / sizeof *bound_cases; i++) RUN_TESTp(bounds, &bound_cases[i]);
    RUN_TEST(ratios);
    for (int32_t i = 0; i < 4; i++) RUN_TESTp(ragged_gru, 1 + i / 2, i % 2);
    for (int32_t i = 0; i < 4; i++) RUN_TESTp(own_points, i / 2, i % 2);
    RUN_TEST(fixed_points);
    RUN_TEST(user_op);
    RUN_TEST(without_recording);
    RUN_TESTp(constant_factors, 0);
    RUN_TESTp(constant_factors, 1);
    RUN_TEST(tensors_that_are_too_large);
    RUN_TEST(nodes_without_end);
    RUN_TEST(addresses_of_tensors);
    RUN_TEST(a_bound_of_no_records);
    RUN_TEST(no_such_function);
}
