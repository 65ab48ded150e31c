/* Every entry of mtan_backend_cuda against the scalar code: cuda_entries_agree of cuda_compare.h. */
#ifdef MTAN_WITH_CUDA_SHIM

#include "cuda_compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t area(int32_t rows, int32_t ld) {
    return (size_t)rows * (size_t)ld;
}

/* ---- products: m rows, n columns, k terms ---- */

static void run_nn(cuda_work *w, const cuda_shape *s) {
    const int32_t lda = s->k + s->pad, ldb = s->n + s->pad, ldc = s->n + s->pad;
    mtan_real *c = cuda_take(w, area(s->m, ldc), 1), *a = cuda_take(w, area(s->m, lda), 1);
    const mtan_real *b = cuda_take(w, area(s->k, ldb), 1);
    w->backend->product_nn(c, (size_t)ldc, a, (size_t)lda, b, (size_t)ldb, s->m, s->n, s->k, s->add);
}

static void run_nt(cuda_work *w, const cuda_shape *s) {
    const int32_t lda = s->k + s->pad, ldb = s->k + s->pad, ldc = s->n + s->pad;
    mtan_real *c = cuda_take(w, area(s->m, ldc), 1), *a = cuda_take(w, area(s->m, lda), 1);
    const mtan_real *b = cuda_take(w, area(s->n, ldb), 1);
    w->backend->product_nt(c, (size_t)ldc, a, (size_t)lda, b, (size_t)ldb, s->m, s->n, s->k, s->add);
}

static void run_tn(cuda_work *w, const cuda_shape *s) {
    const int32_t lda = s->m + s->pad, ldb = s->n + s->pad, ldc = s->n + s->pad;
    mtan_real *c = cuda_take(w, area(s->m, ldc), 1), *a = cuda_take(w, area(s->k, lda), 1);
    const mtan_real *b = cuda_take(w, area(s->k, ldb), 1);
    w->backend->product_tn(c, (size_t)ldc, a, (size_t)lda, b, (size_t)ldb, s->m, s->n, s->k, s->add);
}

/* The layout is the scalar one in both, so that it is compared as well. */
static void run_packed(cuda_work *w, const cuda_shape *s) {
    const int32_t lda = s->k + s->pad, ldb = s->k + s->pad, ldc = s->n + s->pad;
    mtan_real *c = cuda_take(w, area(s->m, ldc), 1), *a = cuda_take(w, area(s->m, lda), 1);
    const mtan_real *b = cuda_take(w, area(s->n, ldb), 1);
    mtan_real *packed = cuda_take_nothing(w, w->backend->pack_count(s->n, s->k));
    w->backend->pack(packed, b, (size_t)ldb, s->n, s->k);
    w->backend->product_packed(c, (size_t)ldc, a, (size_t)lda, packed, s->m, s->n, s->k, s->add);
}

static void run_int8(cuda_work *w, const cuda_shape *s) {
    const int32_t lda = s->k + s->pad, ldb = s->k + s->pad, ldc = s->n + s->pad;
    mtan_real *c = cuda_take(w, area(s->m, ldc), 1), *a = cuda_take(w, area(s->m, lda), 1);
    const mtan_real *b = cuda_take(w, area(s->n, ldb), 1);
    mtan_real *packed = cuda_take_nothing(w, w->backend->pack_int8_count(s->n, s->k));
    w->backend->pack_int8(packed, b, (size_t)ldb, s->n, s->k);
    w->backend->product_int8(c, (size_t)ldc, a, (size_t)lda, packed, s->m, s->n, s->k, s->add);
}

/* b where it lies: (n, k) with a scale to a row, or (k, n) without. */
static void run_int8_in_place(cuda_work *w, const cuda_shape *s) {
    const int32_t lda = s->k + s->pad, ldc = s->n + s->pad;
    mtan_real *c = cuda_take(w, area(s->m, ldc), 1), *d = cuda_take(w, area(s->m, ldc), 1);
    const mtan_real *a = cuda_take(w, area(s->m, lda), 1), *scale = cuda_take(w, (size_t)s->n, 1);
    const size_t n = (area(s->n, s->k) + sizeof(mtan_real) - 1) / sizeof(mtan_real);
    mtan_real *bytes = malloc((n + 1) * sizeof *bytes);
    const int8_t *b;
    for (size_t i = 0; i < n * sizeof *bytes; i++) ((int8_t *)bytes)[i] = (int8_t)small_whole(&w->random, -127, 127);
    b = (const int8_t *)(const void *)cuda_give(w, bytes, n);
    free(bytes);
    w->backend->product_nt_int8(c, (size_t)ldc, a, (size_t)lda, b, scale, s->m, s->n, s->k, s->add);
    w->backend->product_nn_int8(d, (size_t)ldc, a, (size_t)lda, b, s->m, s->n, s->k, s->add);
}

/* ---- m rows, n columns ---- */

/* All bits of a float come up: infinities, NaN, subnormals. */
static void run_map(cuda_work *w, const cuda_shape *s) {
    static const mtan_real special[] = {
        0,      -0.0f,   INFINITY,       -INFINITY,   NAN,      1,     -1,     89,
        -104,   88.8f,   -103.9f,        0.625f,      1e5f,     -1e5f, 100001, 1.17549435e-38f,
        1e-45f, -1e-45f, 3.40282347e38f, 0.41421357f, 0.881373f};
    const size_t n = area(s->m, s->n), specials = sizeof special / sizeof *special;
    mtan_real *values = malloc(n * sizeof *values), *x;
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)small_random(&w->random);
        values[i] = 8 * small_real(&w->random);
        if (i % 3 == 0) memcpy(&values[i], &bits, sizeof bits);
        if (i % 5 == 0) values[i] = special[i / 5 % specials];
    }
    x = cuda_give(w, values, n);
    free(values);
    for (int f = MTAN_EXP; f <= MTAN_SQRT; f++) w->backend->map((mtan_function)f, cuda_take_nothing(w, n), x, n);
    w->backend->exp_parts(cuda_take_nothing(w, n), cuda_take_nothing(w, n), x, n);
}

static void run_moves(cuda_work *w, const cuda_shape *s) {
    const size_t ld = (size_t)(s->n + s->pad), n = (size_t)s->n, all = (size_t)s->m * ld;
    mtan_real *y = cuda_take(w, all, 1), *x = cuda_take(w, all, 1), *sum = cuda_take(w, n, 1);
    mtan_real *filled = cuda_take(w, n + 3, 1), *copy = cuda_take(w, all, 1), *repeated = cuda_take(w, all, 1);
    w->backend->scale(y, ld, s->m, s->n, (mtan_real)0.3);
    w->backend->add(y, ld, x, ld, s->m, s->n);
    w->backend->add(y, ld, sum, 0, s->m, s->n);
    w->backend->add(sum, 0, x, 0, 1, s->n);
    w->backend->copy(copy, ld, x, ld, s->m, s->n);
    w->backend->copy(repeated, ld, sum, 0, s->m, s->n);
    w->backend->fill(filled, n, (mtan_real)0.7);
}

static void run_sums(cuda_work *w, const cuda_shape *s) {
    const size_t ld = (size_t)(s->n + s->pad), n = area(s->m, s->n);
    mtan_real *x = cuda_take(w, (size_t)s->m * ld, 1), *sum = cuda_take(w, (size_t)s->n, 1);
    const mtan_real *row = cuda_take(w, (size_t)s->n, 1);
    w->backend->add(sum, 0, x, ld, s->m, s->n);
    w->backend->add(sum, 0, row, 0, s->m, s->n);
    cuda_keep(w, w->backend->sum(x, n));
    cuda_keep(w, w->backend->sum_squares(x, n));
}

static void run_embed(cuda_work *w, const cuda_shape *s) {
    const size_t T = (size_t)s->m, E = (size_t)s->n;
    mtan_real *time = cuda_take(w, T, 1), *lw = cuda_take(w, 1, 1), *lb = cuda_take(w, 1, 1);
    mtan_real *pw = cuda_take(w, E, 8), *pb = cuda_take(w, E, 1), *y = cuda_take(w, T * E, 1);
    mtan_real *fixed = cuda_take(w, T * 2 * E, 1);
    w->backend->embed_forward(y, time, lw, lb, pw, pb, s->m, s->n);
    w->backend->embed_fixed(fixed, time, 10, 48, s->m, 2 * s->n);
}

static void run_embed_backward(cuda_work *w, const cuda_shape *s) {
    const size_t T = (size_t)s->m, E = (size_t)s->n;
    mtan_real *time = cuda_take(w, T, 1), *pw = cuda_take(w, E, 8), *pb = cuda_take(w, E, 1);
    mtan_real *dlw = cuda_take(w, 1, 1), *dlb = cuda_take(w, 1, 1), *dpw = cuda_take(w, E, 1);
    mtan_real *dpb = cuda_take(w, E, 1), *dy = cuda_take(w, T * E, 1);
    w->backend->embed_backward(dlw, dlb, dpw, dpb, dy, time, pw, pb, s->m, s->n);
}

static void run_elementwise(cuda_work *w, const cuda_shape *s) {
    const size_t n = area(s->m, s->n);
    mtan_real *y = cuda_take(w, n, 1), *dy = cuda_take(w, n, 1), *x = cuda_take(w, n, 1), *dx = cuda_take(w, n, 1);
    mtan_real *t = cuda_take(w, n, 1);
    w->backend->relu_forward(y, n);
    w->backend->relu_backward(dy, x, n);
    w->backend->softplus_backward(dx, dy, x, n);
    w->backend->tanh_backward(t, x, n);
}

static void run_softmax(cuda_work *w, const cuda_shape *s) {
    const size_t n = area(s->m, s->n);
    mtan_real *y = cuda_take(w, n, 5), *dy = cuda_take(w, n, 1);
    w->backend->softmax_forward(y, s->m, s->n);
    w->backend->softmax_backward(dy, y, s->m, s->n);
}

static void run_cross_entropy(cuda_work *w, const cuda_shape *s) {
    const int32_t S = 1 + s->pad % 3;
    const size_t rows = (size_t)(s->m * S), n = rows * (size_t)s->n;
    mtan_real *loss = cuda_take(w, rows, 1), *p = cuda_take(w, n, 1), *x = cuda_take(w, n, 5);
    mtan_real *dx = cuda_take(w, n, 1);
    int32_t label[256];
    const int32_t *labels;
    for (int32_t i = 0; i < s->m; i++) label[i] = i % 4 == 3 ? MTAN_UNLABELED : small_whole(&w->random, 0, s->n - 1);
    labels = cuda_give_ints(w, label, (size_t)s->m);
    w->backend->cross_entropy_forward(loss, p, x, s->add ? labels : NULL, s->m * S, S, s->n);
    w->backend->cross_entropy_backward(dx, p, labels, (mtan_real)0.25, s->m * S, S, s->n);
}

/* ---- attention: m keys, n queries, four channels ---- */

enum { CHANNELS = 4, KEYS = 128 };

typedef struct {
    int32_t begin[CHANNELS + 1], row[3 * KEYS], first[KEYS], n;
} sparse;

/* A channel with all keys, one with some and some twice, one with none, and one with a single key. */
static sparse sparse_events(const cuda_shape *s) {
    sparse e;
    memset(&e, 0, sizeof e);
    for (int32_t i = 0; i < s->m; i++) e.row[e.n++] = i;
    e.begin[1] = e.n;
    for (int32_t i = 0; i < s->m; i += 1 + i % 3) e.row[e.n++] = i, e.row[e.n] = i, e.n += i % 2;
    e.begin[2] = e.begin[3] = e.n;
    e.row[e.n++] = s->m / 2;
    e.begin[4] = e.n;
    for (int32_t q = 0; q < s->n; q++) e.first[q] = 2 * q;
    return e;
}

/* With `add` some scores of the single key are low, so that its channel needs a maximum of its own. */
static mtan_real *sparse_scores(cuda_work *w, const cuda_shape *s) {
    const size_t L = (size_t)s->m, Q = (size_t)s->n;
    mtan_real *values = malloc(L * Q * sizeof *values), *score;
    for (size_t i = 0; i < L * Q; i++) values[i] = 4 * small_real(&w->random);
    for (size_t q = 0; s->add && q < Q; q += 3) values[L / 2 * Q + q] -= 200; /* e^-200 is below MTAN_FAR */
    score = cuda_give(w, values, L * Q);
    free(values);
    return score;
}

static void run_attend(cuda_work *w, const cuda_shape *s) {
    const size_t L = (size_t)s->m, Q = (size_t)s->n, ld = CHANNELS + (size_t)s->pad, rows = 2 * Q + 1;
    const sparse e = sparse_events(s);
    mtan_real *y = cuda_take(w, rows * ld, 1), *dy = cuda_take(w, rows * ld, 1);
    mtan_attend a;
    a.score = sparse_scores(w, s);
    a.weight = cuda_take_nothing(w, L * Q), a.total = cuda_take_nothing(w, CHANNELS * Q);
    a.scratch = w->device ? NULL : malloc(2 * Q * sizeof(mtan_real));
    a.begin = cuda_give_ints(w, e.begin, CHANNELS + 1), a.row = cuda_give_ints(w, e.row, (size_t)e.n);
    a.value = cuda_take(w, (size_t)e.n, 1);
    a.first = cuda_give_ints(w, e.first, Q);
    a.position = 1, a.keys = s->m, a.queries = s->n, a.channels = CHANNELS;
    w->backend->attend_forward(&a, y, ld);
    w->backend->attend_backward(&a, cuda_take(w, L * Q, 1), dy, ld, y, ld);
    w->backend->attend_weights(&a, cuda_take(w, L * Q, 1), s->pad % CHANNELS);
    free(a.scratch);
}

static mtan_rbf rbf_operands(cuda_work *w, const cuda_shape *s) {
    const sparse e = sparse_events(s);
    mtan_rbf r;
    r.query = cuda_take(w, (size_t)s->n, 1), r.time = cuda_take(w, (size_t)s->m, 1);
    r.beta = cuda_take_positive(w, CHANNELS, 0.1, 9);
    r.begin = cuda_give_ints(w, e.begin, CHANNELS + 1), r.row = cuda_give_ints(w, e.row, (size_t)e.n);
    r.value = cuda_take(w, (size_t)e.n, 1);
    r.first = cuda_give_ints(w, e.first, (size_t)s->n);
    r.position = 1, r.keys = s->m, r.queries = s->n, r.channels = CHANNELS;
    return r;
}

static void run_rbf(cuda_work *w, const cuda_shape *s) {
    const size_t ld = CHANNELS + (size_t)s->pad, rows = 2 * (size_t)s->n + 1;
    const mtan_rbf r = rbf_operands(w, s);
    w->backend->rbf_forward(&r, cuda_take(w, rows * ld, 1), ld);
    w->backend->rbf_weights(&r, cuda_take(w, area(s->m, s->n), 1), s->pad % CHANNELS);
}

static void run_rbf_backward(cuda_work *w, const cuda_shape *s) {
    const size_t ld = CHANNELS + (size_t)s->pad, rows = 2 * (size_t)s->n + 1;
    const mtan_rbf r = rbf_operands(w, s);
    mtan_real *y = cuda_take(w, rows * ld, 1), *dy = cuda_take(w, rows * ld, 1);
    w->backend->rbf_backward(&r, cuda_take(w, CHANNELS, 1), dy, ld, y, ld);
}

/* m keys, n columns, 5 queries; the gradient of beta is a sum over queries, by a tree */
static void run_smooth(cuda_work *w, const cuda_shape *s) {
    enum { Q = 5 };
    const size_t K = (size_t)s->m, C = (size_t)s->n, ld = C + (size_t)s->pad;
    mtan_real *y = cuda_take(w, Q * ld, 1), *dy = cuda_take(w, Q * ld, 1), *query = cuda_take(w, Q, 1);
    mtan_real *key = cuda_take(w, K, 1), *beta = cuda_take_positive(w, C, 0.1, 9), *value = cuda_take(w, K * ld, 1);
    mtan_real *dvalue = cuda_take(w, K * ld, 1), *dbeta = cuda_take(w, C, 1);
    w->backend->smooth_forward(y, ld, query, key, beta, value, ld, Q, s->m, s->n);
    w->backend->smooth_backward(dvalue, dbeta, dy, y, ld, query, key, beta, value, ld, Q, s->m, s->n);
}

static void run_gru(cuda_work *w, const cuda_shape *s) {
    const size_t N = (size_t)s->n, R = (size_t)s->m, ldh = N + (size_t)s->pad, ldg = 3 * N + (size_t)s->pad;
    mtan_real *h = cuda_take(w, R * ldh, 1), *g = cuda_take(w, R * ldg, 3), *hn = cuda_take(w, R * N, 1);
    mtan_real *gh = cuda_take(w, R * 3 * N, 3), *before = cuda_take(w, R * ldh, 1), *dh = cuda_take(w, R * N, 1);
    const mtan_real *past = s->add ? before : NULL;
    w->backend->gru_forward(h, ldh, g, ldg, s->k % 2 ? hn : NULL, gh, past, ldh, s->m, s->n);
    w->backend->gru_backward(dh, g, ldg, hn, past, ldh, s->m, s->n);
}

/* n latent dimensions, m steps */
static void run_latent(cuda_work *w, const cuda_shape *s) {
    enum { STEPS = 128 };
    const int32_t S = 1 + s->pad % 3;
    const size_t Z = (size_t)s->n, rows = 2 * (size_t)s->m + 1, n = rows * (size_t)S * Z;
    mtan_real *posterior = cuda_take(w, rows * 2 * Z, 2), *dposterior = cuda_take(w, rows * 2 * Z, 1);
    mtan_real *z = cuda_take(w, n, 1), *noise = cuda_take(w, n, 2), *dz = cuda_take(w, n, 1);
    mtan_real *dkl = cuda_take(w, 1, 1), *dratio = cuda_take(w, 1, 1);
    int32_t first[STEPS];
    const int32_t *firsts;
    for (int32_t k = 0; k < s->m; k++) first[k] = 2 * k;
    firsts = cuda_give_ints(w, first, (size_t)s->m);
    w->backend->sample_forward(z, posterior, noise, (int32_t)rows, S, s->n);
    w->backend->sample_backward(dposterior, dz, z, posterior, (int32_t)rows, S, s->n);
    w->backend->kl_backward(dposterior, posterior, dkl, firsts, 1, s->m, s->n);
    w->backend->ratio_backward(dz, dposterior, z, dratio, firsts, 1, s->m, S, S - 1, s->n);
}

static void run_latent_sums(cuda_work *w, const cuda_shape *s) {
    enum { STEPS = 128 };
    const int32_t S = 1 + s->pad % 3;
    const size_t Z = (size_t)s->n, rows = 2 * (size_t)s->m + 1, n = rows * (size_t)S * Z;
    mtan_real *posterior = cuda_take(w, rows * 2 * Z, 2), *z = cuda_take(w, n, 1), *noise = cuda_take(w, n, 2);
    int32_t first[STEPS];
    const int32_t *firsts;
    for (int32_t k = 0; k < s->m; k++) first[k] = 2 * k;
    firsts = cuda_give_ints(w, first, (size_t)s->m);
    w->backend->kl_forward(cuda_take(w, 1, 1), posterior, firsts, 1, s->m, s->n);
    w->backend->ratio_forward(cuda_take(w, 1, 1), z, posterior, noise, firsts, 1, s->m, S, S - 1, s->n);
}

/* m cells of a prediction of n channels, 3 samples; with `add` some are the same cell */
enum { CELLS = 128, SAMPLES = 3 };

static void run_losses(cuda_work *w, const cuda_shape *s) {
    const size_t apart = area(s->m, s->n);
    mtan_real *prediction = cuda_take(w, SAMPLES * apart, 1), *dprediction = cuda_take(w, SAMPLES * apart, 1);
    mtan_real *value = cuda_take(w, (size_t)s->m, 1), *logp = cuda_take(w, 1, 1);
    int32_t row[CELLS], channel[CELLS];
    const int32_t *rows, *channels;
    for (int32_t j = 0; j < s->m; j++) {
        row[j] = s->add ? j / 5 : j;
        channel[j] = small_whole(&w->random, 0, s->n - 1);
    }
    rows = cuda_give_ints(w, row, (size_t)s->m), channels = cuda_give_ints(w, channel, (size_t)s->m);
    w->backend->loglik_forward(logp, prediction, s->n, rows, channels, value, s->m, 0.1);
    w->backend->loglik_backward(dprediction, prediction, cuda_take(w, 1, 1), s->n, rows, channels, value, s->m, 0.1);
    cuda_keep(w, w->backend->squared_error(prediction, apart, SAMPLES, s->n, rows, channels, value, s->m));
}

static void run_bound(cuda_work *w, const cuda_shape *s) {
    mtan_real *logp = cuda_take(w, SAMPLES, 2), *kl = cuda_take(w, SAMPLES, 2), *share = cuda_take(w, 1, 1);
    mtan_real *loss = cuda_take(w, 1, 1), *weight = cuda_take(w, SAMPLES, 1);
    mtan_real *dlogp = cuda_take(w, SAMPLES, 1), *dkl = cuda_take(w, SAMPLES, 1);
    w->backend->bound_forward(loss, weight, logp, kl, s->add, SAMPLES, s->k ? MTAN_BOUND_IWAE : MTAN_BOUND_ELBO, 0.7,
                              share);
    w->backend->bound_backward(dlogp, dkl, s->add, weight, SAMPLES, (mtan_real)0.7, (mtan_real)0.25, share);
}

static void run_optimisers(cuda_work *w, const cuda_shape *s) {
    const mtan_real c[6] = {0.1f, 0.999f, 0.001f, 1e-8f, 0.01f, 31.6f};
    const size_t n = area(s->m, s->n);
    mtan_real *x = cuda_take(w, n, 1), *g = cuda_take(w, n, 1), *m = cuda_take(w, n, 1);
    mtan_real *v = cuda_take_positive(w, n, 1e-6, 1), *u = cuda_take_positive(w, n, 1e-6, 1);
    w->backend->adam(x, m, v, g, n, c);
    w->backend->adamax(x, m, u, g, n, c);
}

static void run_normals(cuda_work *w, const cuda_shape *s) {
    const size_t n = area(s->m, s->n);
    mtan_real *u = malloc(n * sizeof *u), *rest = malloc(n * sizeof *rest), *a, *b;
    for (size_t i = 0; i < n; i++) {
        u[i] = (mtan_real)small_whole(&w->random, 0, (1 << 20) - 1) / (1 << 20);
        if (i % 7 == 0) u[i] = i % 2 ? 0 : 1e-10f;
        rest[i] = 1 - u[i];
    }
    a = cuda_give(w, u, n), b = cuda_give(w, rest, n);
    free(u), free(rest);
    w->backend->normal_pairs(cuda_take_nothing(w, 2 * n), a, b, cuda_take_positive(w, n, 0, 1), n);
}

/* ---- all of them ---- */

static const struct {
    const char *name;
    cuda_run *run;
    cuda_nearness nearness;
} products[] = {{"product_nn", run_nn, CUDA_SAME},     {"product_nt", run_nt, CUDA_SAME},
                {"product_tn", run_tn, CUDA_SAME},     {"product_packed", run_packed, CUDA_SAME},
                {"product_int8", run_int8, CUDA_SAME}, {"product_int8 in place", run_int8_in_place, CUDA_SAME}},
  others[] = {{"map", run_map, CUDA_SAME},
              {"moves", run_moves, CUDA_SAME},
              {"sums", run_sums, CUDA_NEAR},
              {"embedding", run_embed, CUDA_SAME},
              {"embedding, backward", run_embed_backward, CUDA_NEAR},
              {"elementwise", run_elementwise, CUDA_SAME},
              {"softmax", run_softmax, CUDA_NEAR},
              {"cross entropy", run_cross_entropy, CUDA_SAME},
              {"attention", run_attend, CUDA_SAME},
              {"rbf", run_rbf, CUDA_SAME},
              {"rbf, backward", run_rbf_backward, CUDA_NEAR},
              {"smooth", run_smooth, CUDA_NEAR},
              {"gru", run_gru, CUDA_SAME},
              {"latent", run_latent, CUDA_SAME},
              {"latent, sums", run_latent_sums, CUDA_NEAR},
              {"losses", run_losses, CUDA_NEAR},
              {"bound", run_bound, CUDA_SAME},
              {"optimisers", run_optimisers, CUDA_SAME},
              {"normals", run_normals, CUDA_SAME}};

int cuda_entries_agree(mtan_cuda *device, uint64_t seed) {
    static const cuda_shape of_products[] = {
        {1, 1, 1, 0, 0}, {2, 3, 7, 1, 1},   {5, 33, 0, 1, 0},   {5, 33, 0, 1, 1},  {0, 9, 4, 0, 0},
        {4, 0, 4, 0, 1}, {65, 7, 17, 3, 1}, {64, 64, 16, 0, 0}, {9, 67, 33, 2, 0}, {70, 66, 35, 0, 1}};
    static const cuda_shape long_sums[] = {{3, 5, 1024, 0, 1}, {17, 9, 1537, 2, 0}}; /* in parts */
    static const cuda_shape of_others[] = {{1, 1, 0, 0, 0},   {2, 7, 1, 1, 1},   {8, 9, 0, 2, 0},
                                           {11, 33, 1, 3, 1}, {70, 17, 0, 4, 0}, {33, 40, 1, 5, 1}};
    int ok = 1;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        for (size_t j = 0; j < sizeof of_products / sizeof *of_products; j++)
            ok &= cuda_agree(products[i].name, products[i].run, &of_products[j], products[i].nearness, device, seed);
        for (size_t j = 0; j < 2; j++)
            ok &= cuda_agree(products[i].name, products[i].run, &long_sums[j], CUDA_NEAR, device, seed);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        for (size_t j = 0; j < sizeof of_others / sizeof *of_others; j++)
            ok &= cuda_agree(others[i].name, others[i].run, &of_others[j], others[i].nearness, device, seed);
    return ok;
}

int cuda_barrier_run(int index, mtan_cuda *device) {
    static const struct {
        const char *name;
        cuda_run *run;
        cuda_shape shape;
    } runs[] = {{"product_nn", run_nn, {5, 7, 33, 0, 0}},
                {"pack", run_packed, {5, 40, 9, 0, 0}},
                {"int8", run_int8, {2, 5, 600, 0, 0}},
                {"sums", run_sums, {70, 3, 0, 0, 0}},
                {"embedding", run_embed_backward, {70, 3, 0, 0, 0}},
                {"attention", run_attend, {33, 40, 0, 0, 0}}};
    if (index >= (int)(sizeof runs / sizeof *runs)) return -1;
    return cuda_agree(runs[index].name, runs[index].run, &runs[index].shape, CUDA_NEAR, device, 3);
}

#else

typedef int no_cuda_entries;

#endif
