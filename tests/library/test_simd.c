/* Every backend that this machine can run against the scalar code of its class, fused or unfused: every entry of the
 * table on awkward shapes, then whole models. The bits must be the same, of what is written and of what must not be. */
#include <greatest.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../simd/mtan_simd.h"
#include "small.h"

#if !defined(MTAN_DOUBLE) && (defined(MTAN_WITH_SCALAR_FMA) || defined(MTAN_WITH_AVX2) || defined(MTAN_WITH_AVX512) || \
                              defined(MTAN_WITH_NEON) || defined(MTAN_WITH_WASM))

/* The body of kernels.inc at width 16 on machines without AVX-512, through SIMDe, with MTAN_WITH_EMULATED512. */
extern const mtan_backend mtan_backend_emulated512;

/* ---- operands: one function runs a kernel for either table; what it takes is random from the same seed ---- */

enum { MOST_BLOCKS = 24 };

typedef struct {
    const mtan_backend *backend;
    uint64_t random;
    mtan_real *block[MOST_BLOCKS];
    size_t count[MOST_BLOCKS];
    int layout[MOST_BLOCKS]; /* 1: each backend has its own, not compared */
    int n;
} work;

static mtan_real *block_of(work *w, size_t count) {
    if (w->n == MOST_BLOCKS) exit(2);
    w->block[w->n] = guard_alloc((count + 1) * sizeof(mtan_real));
    w->block[w->n][count] = 7; /* never empty, and beyond the operand */
    w->count[w->n] = count + 1;
    w->layout[w->n] = 0;
    return w->block[w->n++];
}

/* Mostly in [-scale, scale), now and then a zero of either sign, a subnormal, or something large. */
static mtan_real any_real(work *w, mtan_real scale) {
    switch (small_whole(&w->random, 0, 63)) {
    case 0: return 0;
    case 1: return -(mtan_real)0;
    case 2: return (mtan_real)1e-41 * small_real(&w->random);
    case 3: return 1000 * scale * small_real(&w->random);
    default: return scale * small_real(&w->random);
    }
}

static mtan_real *take(work *w, size_t count, double scale) {
    mtan_real *x = block_of(w, count);
    for (size_t i = 0; i < count; i++) x[i] = any_real(w, (mtan_real)scale);
    return x;
}

static mtan_real *take_positive(work *w, size_t count, double scale) {
    mtan_real *x = block_of(w, count);
    for (size_t i = 0; i < count; i++)
        x[i] = (mtan_real)scale * ((mtan_real)small_whole(&w->random, 1, 1 << 20) / (1 << 20));
    return x;
}

/* In [-scale, scale), nothing special: for what is exponentiated and then summed. */
static mtan_real *take_plain(work *w, size_t count, double scale) {
    mtan_real *x = block_of(w, count);
    for (size_t i = 0; i < count; i++) x[i] = (mtan_real)scale * small_real(&w->random);
    return x;
}

static mtan_real *take_layout(work *w, size_t count) {
    mtan_real *x = block_of(w, count);
    w->layout[w->n - 1] = 1;
    return x;
}

/* Both NaN is equal: which NaN is not promised. */
static int same_reals(const mtan_real *got, const mtan_real *expected, size_t n, size_t *at) {
    for (size_t i = 0; i < n; i++)
        if (memcmp(&got[i], &expected[i], sizeof *got) != 0 && !(got[i] != got[i] && expected[i] != expected[i])) {
            *at = i;
            return 0;
        }
    return 1;
}

/* ---- shapes ---- */

typedef struct {
    int32_t m, n, k, pad, add;
} shape;

static const int32_t awkward[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 67, 128};
enum { AWKWARD = sizeof awkward / sizeof *awkward };

typedef void run_function(work *w, const shape *s);

static int agree(const char *name, run_function *run, const shape *s, const mtan_backend *got,
                 const mtan_backend *expected, uint64_t seed) {
    work a, b;
    int ok = 1;
    memset(&a, 0, sizeof a), memset(&b, 0, sizeof b);
    a.backend = got, b.backend = expected;
    a.random = b.random = seed;
    run(&a, s), run(&b, s);
    for (int i = 0; i < a.n; i++) {
        size_t at = 0;
        if (ok && !a.layout[i] && !same_reals(a.block[i], b.block[i], a.count[i], &at)) {
            printf("  BAD %s of %s (m %d, n %d, k %d, pad %d, add %d): operand %d at %zu is %.9g, %s has %.9g\n", name,
                   got->name, (int)s->m, (int)s->n, (int)s->k, (int)s->pad, (int)s->add, i, at, (double)a.block[i][at],
                   expected->name, (double)b.block[i][at]);
            ok = 0;
        }
        ok = guard_free(a.block[i]) && ok;
        ok = guard_free(b.block[i]) && ok;
    }
    return ok;
}

/* ---- products ---- */

static size_t area(int32_t rows, int32_t ld) {
    return (size_t)rows * (size_t)ld;
}

static void run_nn(work *w, const shape *s) {
    const int32_t lda = s->k + s->pad, ldb = s->n + s->pad, ldc = s->n + s->pad;
    mtan_real *c = take(w, area(s->m, ldc), 1), *a = take(w, area(s->m, lda), 1), *b = take(w, area(s->k, ldb), 1);
    w->backend->product_nn(c, (size_t)ldc, a, (size_t)lda, b, (size_t)ldb, s->m, s->n, s->k, s->add);
}

static void run_nt(work *w, const shape *s) {
    const int32_t lda = s->k + s->pad, ldb = s->k + s->pad, ldc = s->n + s->pad;
    mtan_real *c = take(w, area(s->m, ldc), 1), *a = take(w, area(s->m, lda), 1), *b = take(w, area(s->n, ldb), 1);
    w->backend->product_nt(c, (size_t)ldc, a, (size_t)lda, b, (size_t)ldb, s->m, s->n, s->k, s->add);
}

static void run_tn(work *w, const shape *s) {
    const int32_t lda = s->m + s->pad, ldb = s->n + s->pad, ldc = s->n + s->pad;
    mtan_real *c = take(w, area(s->m, ldc), 1), *a = take(w, area(s->k, lda), 1), *b = take(w, area(s->k, ldb), 1);
    w->backend->product_tn(c, (size_t)ldc, a, (size_t)lda, b, (size_t)ldb, s->m, s->n, s->k, s->add);
}

static void run_packed(work *w, const shape *s) {
    const int32_t lda = s->k + s->pad, ldb = s->k + s->pad, ldc = s->n + s->pad;
    mtan_real *c = take(w, area(s->m, ldc), 1), *a = take(w, area(s->m, lda), 1), *b = take(w, area(s->n, ldb), 1);
    mtan_real *packed = take_layout(w, w->backend->pack_count(s->n, s->k));
    w->backend->pack(packed, b, (size_t)ldb, s->n, s->k);
    w->backend->product_packed(c, (size_t)ldc, a, (size_t)lda, packed, s->m, s->n, s->k, s->add);
}

static void run_int8(work *w, const shape *s) {
    const int32_t lda = s->k + s->pad, ldb = s->k + s->pad, ldc = s->n + s->pad;
    mtan_real *c = take(w, area(s->m, ldc), 1), *a = take(w, area(s->m, lda), 1), *b = take(w, area(s->n, ldb), 1);
    mtan_real *packed = take_layout(w, w->backend->pack_int8_count(s->n, s->k));
    w->backend->pack_int8(packed, b, (size_t)ldb, s->n, s->k);
    w->backend->product_int8(c, (size_t)ldc, a, (size_t)lda, packed, s->m, s->n, s->k, s->add);
}

/* Any bytes are whole numbers. */
static void run_int8_in_place(work *w, const shape *s) {
    const int32_t lda = s->k + s->pad, ldc = s->n + s->pad;
    mtan_real *c = take(w, area(s->m, ldc), 1), *a = take(w, area(s->m, lda), 1), *d = take(w, area(s->m, ldc), 1);
    mtan_real *scale = take_positive(w, (size_t)s->n, 1), *b = take(w, area(s->n, s->k) / sizeof(mtan_real) + 1, 1);
    const int8_t *rows = (const int8_t *)(const void *)b;
    w->backend->product_nt_int8(c, (size_t)ldc, a, (size_t)lda, rows, scale, s->m, s->n, s->k, s->add);
    w->backend->product_nn_int8(d, (size_t)ldc, a, (size_t)lda, rows, s->m, s->n, s->k, s->add);
}

/* ---- everything else; m rows, n columns ---- */

/* All bits of a float come up: infinities, NaN, subnormals. */
static void run_map(work *w, const shape *s) {
    static const mtan_real special[] = {
        0,      -0.0f,   INFINITY,       -INFINITY,   NAN,      1,     -1,     89,
        -104,   88.8f,   -103.9f,        0.625f,      1e5f,     -1e5f, 100001, 1.17549435e-38f,
        1e-45f, -1e-45f, 3.40282347e38f, 0.41421357f, 0.881373f};
    const size_t n = (size_t)s->m * (size_t)s->n, specials = sizeof special / sizeof *special;
    mtan_real *x = block_of(w, n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)small_random(&w->random);
        x[i] = 8 * small_real(&w->random);
        if (i % 3 == 0) memcpy(&x[i], &bits, sizeof bits);
        if (i % 5 == 0) x[i] = special[i / 5 % specials];
    }
    for (int f = MTAN_EXP; f <= MTAN_SQRT; f++) w->backend->map((mtan_function)f, block_of(w, n), x, n);
    w->backend->exp_parts(block_of(w, n), block_of(w, n), x, n);
}

static void run_moves(work *w, const shape *s) {
    const size_t ld = (size_t)(s->n + s->pad), n = (size_t)s->n;
    mtan_real *y = take(w, (size_t)s->m * ld, 1), *x = take(w, (size_t)s->m * ld, 1), *sum = take(w, n, 1);
    mtan_real *filled = take(w, n + 3, 1), *copy = take(w, (size_t)s->m * ld, 1);
    double *sums = (double *)(void *)block_of(w, 4);
    w->backend->scale(y, ld, s->m, s->n, (mtan_real)0.3);
    w->backend->add(y, ld, x, ld, s->m, s->n);
    w->backend->add(sum, 0, x, ld, s->m, s->n);
    w->backend->add(y, ld, sum, 0, s->m, s->n);
    w->backend->copy(copy, ld, x, ld, s->m, s->n);
    w->backend->fill(filled, n, (mtan_real)0.7);
    sums[0] = w->backend->sum(x, n);
    sums[1] = w->backend->sum_squares(x, n);
}

static void run_embed(work *w, const shape *s) {
    const size_t T = (size_t)s->m, E = (size_t)s->n;
    mtan_real *time = take(w, T, 1), *lw = take(w, 1, 1), *lb = take(w, 1, 1), *pw = take(w, E, 8), *pb = take(w, E, 1);
    mtan_real *dlw = take(w, 1, 1), *dlb = take(w, 1, 1), *dpw = take(w, E, 1), *dpb = take(w, E, 1);
    mtan_real *dy = take(w, T * E, 1), *y = take(w, T * E, 1), *fixed = take(w, T * 2 * E, 1);
    w->backend->embed_forward(y, time, lw, lb, pw, pb, s->m, s->n);
    w->backend->embed_backward(dlw, dlb, dpw, dpb, dy, time, pw, pb, s->m, s->n);
    w->backend->embed_fixed(fixed, time, 10, 48, s->m, 2 * s->n);
}

static void run_elementwise(work *w, const shape *s) {
    const size_t n = (size_t)s->m * (size_t)s->n;
    mtan_real *y = take(w, n, 1), *dy = take(w, n, 1), *x = take(w, n, 1), *dx = take(w, n, 1), *t = take(w, n, 1);
    w->backend->relu_forward(y, n);
    w->backend->relu_backward(dy, x, n);
    w->backend->softplus_backward(dx, dy, x, n);
    w->backend->tanh_backward(t, x, n);
}

static void run_softmax(work *w, const shape *s) {
    const size_t n = (size_t)s->m * (size_t)s->n;
    mtan_real *y = take(w, n, 5), *dy = take(w, n, 1), *loss = take(w, (size_t)s->m, 1), *p = take(w, n, 1);
    mtan_real *x = take_plain(w, n, 5), *dx = take(w, n, 1);
    int32_t label[256];
    for (int32_t i = 0; i < s->m; i++) label[i] = i % 4 == 3 ? MTAN_UNLABELED : small_whole(&w->random, 0, s->n - 1);
    w->backend->softmax_forward(y, s->m, s->n);
    w->backend->softmax_backward(dy, y, s->m, s->n);
    w->backend->cross_entropy_forward(loss, p, x, label, s->m, 1, s->n);
    w->backend->cross_entropy_backward(dx, p, label, (mtan_real)0.25, s->m, 1, s->n);
}

/* m keys, n queries, a few channels: one with all keys, one with some and some twice, one with none, one with a single
 * key, whose scores are low when `add` is set, so that it needs a maximum of its own. */
static void run_attend(work *w, const shape *s) {
    enum { D = 4, KEYS = 128 };
    const size_t L = (size_t)s->m, Q = (size_t)s->n, ld = D + (size_t)s->pad, rows = 2 * Q + 1;
    mtan_real *score = take_plain(w, L * Q, 4), *weight = take(w, L * Q, 0), *total = take(w, D * Q, 0);
    mtan_real *scratch = take_layout(w, 2 * Q), *value = take(w, 3 * L, 1), *y = take(w, rows * ld, 1);
    mtan_real *dy = take(w, rows * ld, 1), *dscore = take(w, L * Q, 1), *shown = take(w, L * Q, 1);
    int32_t begin[D + 1] = {0}, row[3 * KEYS], first[KEYS], n = 0;
    for (int32_t i = 0; i < s->m; i++) row[n++] = i;
    begin[1] = n;
    for (int32_t i = 0; i < s->m; i += 1 + i % 3) row[n++] = i, row[n] = i, n += i % 2;
    begin[2] = begin[3] = n;
    row[n++] = s->m / 2;
    begin[4] = n;
    for (int32_t q = 0; q < s->n; q++) first[q] = 2 * q;
    for (size_t q = 0; s->add && q < Q; q += 3) score[L / 2 * Q + q] -= 200; /* e^-200 is below MTAN_FAR */
    const mtan_attend a = {score, weight, total, scratch, begin, row, value, first, 1, s->m, s->n, D};
    w->backend->attend_forward(&a, y, ld);
    w->backend->attend_backward(&a, dscore, dy, ld, y, ld);
    w->backend->attend_weights(&a, shown, s->pad % D);
    const mtan_rbf r = {
        take(w, Q, 1), take(w, L, 1), take_positive(w, D, 9), begin, row, value, first, 1, s->m, s->n, D};
    w->backend->rbf_forward(&r, y, ld);
    w->backend->rbf_backward(&r, take(w, D, 1), dy, ld, y, ld);
    w->backend->rbf_weights(&r, shown, s->pad % D);
}

static void run_smooth(work *w, const shape *s) {
    enum { Q = 5 };
    const size_t K = (size_t)s->m, C = (size_t)s->n, ld = C + (size_t)s->pad;
    mtan_real *y = take(w, Q * ld, 1), *dy = take(w, Q * ld, 1), *query = take(w, Q, 1), *key = take(w, K, 1);
    mtan_real *beta = take_positive(w, C, 9), *value = take(w, K * ld, 1), *dvalue = take(w, K * ld, 1);
    w->backend->smooth_forward(y, ld, query, key, beta, value, ld, Q, s->m, s->n);
    w->backend->smooth_backward(dvalue, take(w, C, 1), dy, y, ld, query, key, beta, value, ld, Q, s->m, s->n);
}

static void run_gru(work *w, const shape *s) {
    const size_t N = (size_t)s->n, R = (size_t)s->m, ldh = N + (size_t)s->pad, ldg = 3 * N + (size_t)s->pad;
    mtan_real *h = take(w, R * ldh, 1), *g = take(w, R * ldg, 3), *hn = take(w, R * N, 1), *gh = take(w, R * 3 * N, 3);
    mtan_real *before = take(w, R * ldh, 1), *dh = take(w, R * N, 1);
    const mtan_real *past = s->add ? before : NULL;
    w->backend->gru_forward(h, ldh, g, ldg, s->k % 2 ? hn : NULL, gh, past, ldh, s->m, s->n);
    w->backend->gru_backward(dh, g, ldg, hn, past, ldh, s->m, s->n);
}

/* n latent dimensions, m steps */
static void run_latent(work *w, const shape *s) {
    enum { STEPS = 128 };
    const int32_t S = 1 + s->pad % 3;
    const size_t Z = (size_t)s->n, rows = 2 * (size_t)s->m + 1, n = rows * (size_t)S * Z;
    mtan_real *posterior = take_plain(w, rows * 2 * Z, 2), *dposterior = take(w, rows * 2 * Z, 1);
    mtan_real *z = take(w, n, 1), *noise = take(w, n, 2), *dz = take(w, n, 1), *out = take(w, 8, 1);
    int32_t first[STEPS];
    for (int32_t k = 0; k < s->m; k++) first[k] = 2 * k;
    w->backend->sample_forward(z, posterior, noise, (int32_t)rows, S, s->n);
    w->backend->sample_backward(dposterior, dz, z, posterior, (int32_t)rows, S, s->n);
    w->backend->kl_forward(out, posterior, first, 1, s->m, s->n);
    w->backend->kl_backward(dposterior, posterior, out + 4, first, 1, s->m, s->n);
    w->backend->ratio_forward(out + 1, z, posterior, noise, first, 1, s->m, S, S - 1, s->n);
    w->backend->ratio_backward(dz, dposterior, z, out + 5, first, 1, s->m, S, S - 1, s->n);
}

/* m cells of a prediction of n channels, 3 samples */
static void run_losses(work *w, const shape *s) {
    enum { CELLS = 128, S = 3 };
    const size_t apart = (size_t)s->m * (size_t)s->n;
    mtan_real *prediction = take(w, S * apart, 1), *dprediction = take(w, S * apart, 1);
    mtan_real *value = take(w, (size_t)s->m, 1), *logp = take(w, 16, 1), *weight = take(w, S, 1);
    double *error = (double *)(void *)block_of(w, 2);
    int32_t row[CELLS], channel[CELLS];
    for (int32_t j = 0; j < s->m; j++) row[j] = j, channel[j] = small_whole(&w->random, 0, s->n - 1);
    w->backend->loglik_forward(logp, prediction, s->n, row, channel, value, s->m, 0.1);
    w->backend->loglik_backward(dprediction, prediction, logp + 1, s->n, row, channel, value, s->m, 0.1);
    error[0] = w->backend->squared_error(prediction, apart, S, s->n, row, channel, value, s->m);
    w->backend->bound_forward(logp + 2, weight, logp + 4, logp + 8, 1, S, s->add ? MTAN_BOUND_IWAE : MTAN_BOUND_ELBO,
                              0.7, logp + 3);
    w->backend->bound_backward(logp + 4, logp + 8, 1, weight, S, (mtan_real)0.7, (mtan_real)0.25, logp + 3);
}

static void run_optimisers(work *w, const shape *s) {
    const mtan_real c[6] = {0.1f, 0.999f, 0.001f, 1e-8f, 0.01f, 31.6f};
    const size_t n = (size_t)s->m * (size_t)s->n;
    mtan_real *x = take(w, n, 1), *g = take(w, n, 1), *m = take(w, n, 1), *v = take_positive(w, n, 1);
    mtan_real *u = take_positive(w, n, 1), *r = take_positive(w, n, 0.999), *t = take_positive(w, n, 1);
    mtan_real *out = take(w, 2 * n, 1), *rest = take(w, n, 1);
    w->backend->adam(x, m, v, g, n, c);
    w->backend->adamax(x, m, u, g, n, c);
    for (size_t i = 0; i < n; i++) {
        if (i % 7 == 0) r[i] = i % 2 ? 0 : 1e-10f;
        rest[i] = 1 - r[i];
    }
    w->backend->normal_pairs(out, r, rest, t, n);
}

static const struct {
    const char *name;
    run_function *run;
    int product;
} kernels[] = {
    {"product_nn", run_nn, 1},
    {"product_nt", run_nt, 1},
    {"product_tn", run_tn, 1},
    {"product_packed", run_packed, 1},
    {"product_int8", run_int8, 1},
    {"int8 in place", run_int8_in_place, 1},
    {"map", run_map, 0},
    {"moves and sums", run_moves, 0},
    {"embedding", run_embed, 0},
    {"elementwise", run_elementwise, 0},
    {"softmax", run_softmax, 0},
    {"attention", run_attend, 0},
    {"smooth", run_smooth, 0},
    {"gru", run_gru, 0},
    {"latent", run_latent, 0},
    {"losses", run_losses, 0},
    {"optimisers", run_optimisers, 0},
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

/* Every width with every small height; random depths and strides; and what none of these meets. */
static int products_agree(int i, const mtan_backend *got, const mtan_backend *expected) {
    static const shape more[] = {
        {5, 33, 0, 1, 0},    {5, 33, 0, 1, 1},    {0, 9, 4, 0, 0},      {4, 0, 4, 0, 1},
        {50, 70, 600, 3, 1}, {3, 300, 513, 0, 0}, {97, 129, 257, 2, 0}, {13, 600, 20, 5, 1},
        {1, 384, 128, 0, 0}, {26, 48, 300, 0, 1}, {300, 5, 12, 0, 0},
    };
    uint64_t random = 1;
    int ok = 1;
    for (size_t j = 0; j < sizeof more / sizeof *more; j++)
        ok &= agree(kernels[i].name, kernels[i].run, &more[j], got, expected, j);
    for (int a = 0; a < AWKWARD; a++)
        for (int b = 0; ok && b < AWKWARD; b++) {
            const shape s = {awkward[a], awkward[b], awkward[small_whole(&random, 0, AWKWARD - 1)],
                             small_whole(&random, 0, 5), small_whole(&random, 0, 1)};
            ok &= agree(kernels[i].name, kernels[i].run, &s, got, expected, (uint64_t)(a * 100 + b));
        }
    return ok;
}

static int others_agree(int i, const mtan_backend *got, const mtan_backend *expected) {
    static const int32_t rows[] = {1, 2, 8, 11, 33};
    uint64_t random = 2;
    int ok = 1;
    for (size_t a = 0; a < sizeof rows / sizeof *rows; a++)
        for (int b = 0; ok && b < AWKWARD; b++) {
            const shape s = {rows[a], awkward[b], small_whole(&random, 0, 1), small_whole(&random, 0, 5),
                             (int32_t)(a + (size_t)b) % 2};
            ok &= agree(kernels[i].name, kernels[i].run, &s, got, expected, (uint64_t)a * 100 + (uint64_t)b);
        }
    return ok;
}

/* ---- models ---- */

typedef struct {
    mtan_real *values;
    size_t n, room;
} results;

static void keep(results *r, const void *x, size_t reals) {
    if (r->n + reals > r->room) {
        r->room = 2 * (r->n + reals);
        r->values = realloc(r->values, r->room * sizeof *r->values);
        if (!r->values) exit(2);
    }
    memcpy(r->values + r->n, x, reals * sizeof *r->values);
    r->n += reals;
}

static int keep_predictions(results *r, const small_model *s, const small_set *set, const mtan_bounds *bounds) {
    mtan_predictor predictor;
    size_t bytes = 0,
           rows = small_class_rows(&s->config, set) * (size_t)small_samples(&s->config) * (size_t)s->config.classes;
    const int curves = s->config.kind == MTAN_FULL && s->config.classify != MTAN_CLASSIFY_TIME;
    mtan_real *out;
    void *memory;
    int ok = mtan_predictor_size(&s->model, bounds, &bytes) == MTAN_OK;
    memory = guard_alloc(bytes);
    ok = ok && mtan_predictor_init(&predictor, &s->model, bounds, memory, bytes) == MTAN_OK;
    if (ok && s->config.classify != MTAN_CLASSIFY_NONE) {
        out = guard_alloc(rows * sizeof *out);
        ok = mtan_logits(&predictor, set->records, set->n, out) == MTAN_OK;
        keep(r, out, rows);
        ok = guard_free(out) && ok;
    }
    for (int32_t b = 0; ok && curves && b < set->n; b++) {
        const size_t n =
            (size_t)small_samples(&s->config) * (size_t)small_queries(&set->records[b]) * (size_t)s->config.channels;
        if (n == 0) continue;
        out = guard_alloc(n * sizeof *out);
        ok = mtan_curves(&predictor, &set->records[b], out) == MTAN_OK;
        keep(r, out, n);
        ok = guard_free(out) && ok;
    }
    return guard_free(memory) && ok;
}

/* Predictions in both precisions, the gradient of a batch, the weights after ten steps. */
static int run_model(results *r, small_model *s, const small_set *set, const mtan_bounds *bounds,
                     const mtan_backend *backend) {
    mtan_train_config config;
    mtan_trainer trainer;
    mtan_report report;
    size_t bytes = 0;
    void *memory;
    int ok;
    s->model.backend = backend;
    ok = keep_predictions(r, s, set, bounds);
    s->model.precision = MTAN_INT8;
    ok = ok && keep_predictions(r, s, set, bounds);
    s->model.precision = MTAN_REAL;
    mtan_train_config_init(&config);
    ok = ok && mtan_trainer_size(&s->model, &config, bounds, &bytes) == MTAN_OK;
    memory = guard_alloc(bytes);
    ok = ok && mtan_trainer_init(&trainer, &s->model, s->weights, &config, bounds, memory, bytes) == MTAN_OK;
    ok = ok && mtan_train_gradient(&trainer, set->records, set->n, 1, &report) == MTAN_OK;
    if (ok) keep(r, trainer.gradient, s->count);
    for (int step = 0; ok && step < 10; step++)
        ok = mtan_train_step(&trainer, set->records, set->n, 1, &report) == MTAN_OK;
    if (ok) keep(r, &report, sizeof report / sizeof(mtan_real)), keep(r, s->weights, s->count);
    return guard_free(memory) && ok;
}

static int models_agree(small_model *s, int32_t records, const mtan_bounds *bounds, const mtan_backend *got,
                        const mtan_backend *expected) {
    uint64_t random = 5;
    small_set set = small_records(&s->config, bounds, records, 0, &random);
    mtan_real *weights = malloc(s->count * sizeof *weights);
    results a = {0}, b = {0};
    int ok = weights != NULL;
    size_t at = 0;
    memcpy(weights, s->weights, s->count * sizeof *weights);
    ok = ok && run_model(&a, s, &set, bounds, got);
    memcpy(s->weights, weights, s->count * sizeof *weights);
    ok = ok && run_model(&b, s, &set, bounds, expected);
    if (!ok) printf("  BAD %s: the library refuses\n", s->name);
    else if (a.n != b.n || memcmp(a.values, b.values, a.n * sizeof *a.values) != 0) {
        while (at < a.n && memcmp(&a.values[at], &b.values[at], sizeof *a.values) == 0) at++;
        printf("  BAD %s: %s differs from %s at %zu of %zu: %.9g, %.9g\n", s->name, got->name, expected->name, at, a.n,
               (double)a.values[at], (double)b.values[at]);
        ok = 0;
    }
    free(weights), free(a.values), free(b.values);
    return small_free(&set) && ok;
}

/* ---- tests ---- */

/* The scalar table of the same class; null when it is not linked or cannot run. */
static const mtan_backend *scalar_of_class(const mtan_backend *b) {
    if (mtan_backend_scalar.fused == b->fused) return &mtan_backend_scalar;
    return b->fused ? mtan_backend_named("scalar-fma") : NULL;
}

/* The backend at that index of the list, then the emulated one; 0 past the last. */
static int choice_at(int index, mtan_backend_choice *choice) {
    if (mtan_backend_list(index, choice)) return 1;
#ifdef MTAN_WITH_EMULATED512
    if (!mtan_backend_list(index - 1, choice)) return 0;
    choice->name = "emulated512", choice->backend = &mtan_backend_emulated512, choice->reason = NULL;
    if (!mtan_backend_named("scalar-fma")) choice->backend = NULL, choice->reason = "the CPU has no FMA";
    return 1;
#else
    return 0;
#endif
}

static const char *reason_against(const mtan_backend_choice *choice) {
    if (!choice->backend) return choice->reason;
    return scalar_of_class(choice->backend) ? NULL : "no scalar code of its class is linked";
}

/* An entry added to the table and forgotten in a backend would be null. */
TEST every_entry_is_filled(const mtan_backend *b) {
    const size_t first = offsetof(mtan_backend, map), entry = sizeof(void (*)(void));
    for (size_t at = first; at + entry <= offsetof(mtan_backend, device); at += entry) {
        static const unsigned char null[sizeof(void (*)(void))];
        ASSERT(memcmp((const unsigned char *)b + at, null, entry) != 0);
    }
    ASSERT_EQ(NULL, b->device);
    PASS();
}

TEST kernels_have_the_same_bits(const mtan_backend *b) {
    int ok = 1;
    for (int i = 0; i < KERNELS; i++)
        ok &= (kernels[i].product ? products_agree : others_agree)(i, b, scalar_of_class(b));
    ASSERT(ok);
    PASS();
}

TEST small_models_have_the_same_bits(const mtan_backend *b) {
    const mtan_bounds bounds = {5, 19, 9};
    int ok = 1;
    for (int i = 0; i < small_count(); i++) {
        small_model s;
        ASSERT(small_open(&s, i));
        ok &= models_agree(&s, 5, &bounds, b, scalar_of_class(b));
        ok &= small_close(&s);
    }
    ASSERT(ok);
    PASS();
}

/* The sizes of the paper's classifier: full panels, many rows, long sums. */
TEST a_large_model_has_the_same_bits(const mtan_backend *b) {
    const mtan_bounds bounds = {3, 200, 40};
    uint64_t random = 11;
    small_model s;
    int ok;
    memset(&s, 0, sizeof s);
    s.name = "physionet-enc";
    mtan_config_init(&s.config, MTAN_ENC, MTAN_CLASSIFY_RECORD, 41, 2);
    ASSERT(small_apply(&s.config, "embed 128 enc_hidden 128 ref_points 16 head_hidden 300"));
    s.count = mtan_weights_count(&s.config);
    s.weights = guard_alloc(s.count * sizeof *s.weights);
    for (size_t i = 0; i < s.count; i++) s.weights[i] = small_real(&random) / 8;
    ok = mtan_model_init(&s.model, &s.config, s.weights, s.count) == MTAN_OK &&
         models_agree(&s, 3, &bounds, b, scalar_of_class(b));
    ASSERT(small_close(&s) && ok);
    PASS();
}

TEST a_backend_cannot_run_here(const char *name, const char *reason) {
    printf("  %s: %s\n", name, reason);
    SKIPm(reason);
}

TEST names_and_the_list_agree(void) {
    mtan_backend_choice choice;
    int runs = 0;
    for (int i = 0; mtan_backend_list(i, &choice); i++) {
        ASSERT_EQ(choice.backend == NULL, choice.reason != NULL);
        ASSERT_EQ(mtan_backend_named(choice.name), choice.backend);
        if (choice.backend && runs++ == 0) ASSERT_EQ(mtan_backend_best(), choice.backend); /* fastest first */
        if (choice.backend) ASSERT_STR_EQ(choice.name, choice.backend->name);
    }
    ASSERT(runs > 0);
    ASSERT_EQ(mtan_backend_named("scalar"), &mtan_backend_scalar);
    ASSERT_EQ(mtan_backend_named("abacus"), NULL);
    ASSERT_FALSE(mtan_backend_list(-1, &choice));
    PASS();
}

/* The comparison above is worth something only if it sees one bit. */
TEST one_bit_is_seen(void) {
    const mtan_real x[2] = {0, NAN}, y[2] = {-0.0f, NAN};
    size_t at = 9;
    ASSERT_FALSE(same_reals(x, y, 2, &at));
    ASSERT_EQ(at, 0u);
    ASSERT(same_reals(x + 1, y + 1, 1, &at));
    PASS();
}

SUITE(simd_suite) {
    mtan_backend_choice choice;
    RUN_TEST(names_and_the_list_agree);
    RUN_TEST(one_bit_is_seen);
    for (int i = 0; choice_at(i, &choice); i++) {
        const char *reason = reason_against(&choice);
        greatest_set_test_suffix(choice.name);
        if (reason) {
            RUN_TESTp(a_backend_cannot_run_here, choice.name, reason);
            continue;
        }
        RUN_TESTp(every_entry_is_filled, choice.backend);
        if (choice.backend == scalar_of_class(choice.backend)) continue;
        greatest_set_test_suffix(choice.name);
        RUN_TESTp(kernels_have_the_same_bits, choice.backend);
        greatest_set_test_suffix(choice.name);
        RUN_TESTp(small_models_have_the_same_bits, choice.backend);
        greatest_set_test_suffix(choice.name);
        RUN_TESTp(a_large_model_has_the_same_bits, choice.backend);
    }
}

#else

TEST there_is_scalar_code_alone(void) {
    SKIPm("the double build, or no file of simd/ linked");
}

SUITE(simd_suite) {
    RUN_TEST(there_is_scalar_code_alone);
}

#endif
