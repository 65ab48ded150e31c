/* Prints a hash of all that the library computes: every kernel of the scalar table on awkward shapes, every kind of
 * model (in batches, as streams, in small memory), and how far the small golden cases are from the reference. Two
 * builds of mtan.c of one class (fused or unfused) must print the same lines; `make bits` compares them. This program
 * itself is compiled once.
 *
 *     name-of-what-was-computed hash
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tiny_model.h"

/* n numbers of `size` bytes each, taken from the least significant byte whatever this machine's order. */
static uint64_t fnv1a(uint64_t h, const void *numbers, size_t n, size_t size) {
    const size_t turn = host_is_little() ? 0 : size - 1;
    for (const uint8_t *p = numbers; n > 0; n--, p += size)
        for (size_t i = 0; i < size; i++) h = (h ^ p[i ^ turn]) * 0x100000001b3u;
    return h;
}
#define FNV_START 0xcbf29ce484222325u

static void must(int ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "mtan: bits_dump: %s failed\n", what);
    exit(2);
}

static void print_hash(const char *what, int size, uint64_t h) {
    printf("%s-%d %016llx\n", what, size, (unsigned long long)h);
}

/* ---- kernels ---- */

static mtan_real pool[1 << 20]; /* all operands of one size */
static size_t pool_used;

/* n numbers in [-scale, scale) that follow from the name. */
static mtan_real *made(const char *name, int n, double scale) {
    mtan_real *x = pool + pool_used;
    pool_used += (size_t)n;
    must(pool_used <= sizeof pool / sizeof pool[0], "pool");
    for (int i = 0; i < n; i++) x[i] = (mtan_real)(scale * golden_u(name, (size_t)i));
    return x;
}

/* The same, in (0, scale). */
static mtan_real *positive(const char *name, int n, double scale) {
    mtan_real *x = made(name, n, scale);
    for (int i = 0; i < n; i++) x[i] = x[i] < 0 ? -x[i] : x[i] == 0 ? (mtan_real)scale / 2 : x[i];
    return x;
}

static void hash_reals(const char *what, int size, const mtan_real *x, int n) {
    print_hash(what, size, fnv1a(FNV_START, x, (size_t)n, sizeof *x));
}

static void basic_kernels(const mtan_backend *k, int n) {
    static const char *const names[] = {"exp", "log", "sin", "cos", "tanh", "sigmoid", "softplus", "sqrt"};
    const int32_t rows = 5, ld = n + 3;
    for (int f = MTAN_EXP; f <= MTAN_SQRT; f++) {
        const int whole_line = f != MTAN_LOG && f != MTAN_SQRT;
        mtan_real *x = whole_line ? made(names[f], n, 20) : positive(names[f], n, 20);
        k->map((mtan_function)f, x, x, (size_t)n);
        hash_reals(names[f], n, x, n);
    }
    mtan_real *parts = made("parts", 2 * n, 50);
    k->exp_parts(parts, parts + n, parts, (size_t)n), hash_reals("exp-parts", n, parts, 2 * n);
    mtan_real *y = made("y", rows * ld, 1), *x = made("x", rows * ld, 2);
    k->scale(y, (size_t)ld, rows, n, (mtan_real)0.3), hash_reals("scale", n, y, rows * ld);
    k->copy(y, (size_t)ld, x, (size_t)ld, rows, n), hash_reals("copy", n, y, rows * ld);
    k->copy(y, (size_t)ld, x, 0, rows, n), hash_reals("copy-row", n, y, rows * ld);
    k->add(y, (size_t)ld, x, (size_t)ld, rows, n), hash_reals("add", n, y, rows * ld);
    k->add(y, 0, x, (size_t)ld, rows, n), hash_reals("add-rows", n, y, rows * ld);
    k->fill(y, (size_t)n, (mtan_real)0.7), hash_reals("fill", n, y, rows * ld);
    double sums[2] = {k->sum(x, (size_t)n), k->sum_squares(x, (size_t)n)};
    print_hash("sums", n, fnv1a(FNV_START, sums, 2, sizeof sums[0]));
    mtan_real *u = positive("u", n, 0.999), *w = made("w", n, 1), *v = positive("v", n, 1),
              *out = made("out", 2 * n, 0);
    for (int i = 0; i < n; i++) w[i] = 1 - u[i];
    k->normal_pairs(out, u, w, v, (size_t)n), hash_reals("normal-pairs", n, out, 2 * n);
}

static void product_kernels(const mtan_backend *k, int n) {
    static const int others[] = {1, 5, 16};
    int8_t rows[17 * 67];
    for (int i = 0; i < 17 * 67; i++) rows[i] = (int8_t)(i * 89 % 255 - 127);
    for (int i = 0; i < 3; i++)
        for (int add = 0; add < 2; add++) {
            const int m = others[i], t = others[2 - i] + 1; /* n columns, m rows, t terms */
            const size_t ldc = (size_t)n + 1, wide = (size_t)(n > t ? n : t) + 2, tall = wide + (size_t)m;
            mtan_real *c = made("c", m * (n + 1), 1), *a = made("a", (int)(tall * tall), 1),
                      *b = made("b", (int)(tall * tall), 1);
            k->product_nn(c, ldc, a, tall, b, tall, m, n, t, add), hash_reals("product-nn", n, c, m * (n + 1));
            k->product_nt(c, ldc, a, tall, b, tall, m, n, t, add), hash_reals("product-nt", n, c, m * (n + 1));
            k->product_tn(c, ldc, a, tall, b, tall, m, n, t, add), hash_reals("product-tn", n, c, m * (n + 1));
            k->product_nt(c, ldc, a, tall, b, tall, m, t < n ? t : n, n, add),
                hash_reals("product-nt-long", n, c, m * (n + 1));
            k->product_nt_int8(c, ldc, a, tall, rows, b, m, n, t, add), hash_reals("int8-nt", n, c, m * (n + 1));
            k->product_nn_int8(c, ldc, a, tall, rows, m, n, t, add), hash_reals("int8-nn", n, c, m * (n + 1));
        }
}

static void layer_kernels(const mtan_backend *k, int n) {
    const int T = 4, E = n + 1, C = n < 2 ? 2 : n;
    mtan_real *time = made("time", T, 1), *lw = made("lw", 1, 1), *lb = made("lb", 1, 1), *pw = made("pw", n, 8);
    mtan_real *pb = made("pb", n, 1), *y = made("phi", T * 2 * E, 1), *dy = made("dphi", T * E, 1),
              *d = made("d", 4 * E, 1);
    k->embed_forward(y, time, lw, lb, pw, pb, T, E), hash_reals("embed", n, y, T * E);
    k->embed_backward(d, d + 1, d + E, d + 2 * E, dy, time, pw, pb, T, E), hash_reals("embed-back", n, d, 4 * E);
    k->embed_fixed(y, time, 10, 48, T, 2 * n), hash_reals("embed-fixed", n, y, T * 2 * n);
    mtan_real *x = made("act", 4 * C, 3), *g = made("dact", 4 * C, 1), *dx = made("dx", 4 * C, 1);
    k->softplus_backward(dx, g, x, (size_t)(4 * C)), hash_reals("softplus-back", n, dx, 4 * C);
    k->relu_forward(x, (size_t)C), k->relu_backward(g, x, (size_t)C), hash_reals("relu", n, x, 8 * C);
    k->map(MTAN_TANH, x, x, (size_t)C), k->tanh_backward(g, x, (size_t)C), hash_reals("tanh-back", n, g, 4 * C);
    k->softmax_forward(x, 4, C), hash_reals("softmax", n, x, 4 * C);
    k->softmax_backward(g, x, 4, C), hash_reals("softmax-back", n, g, 4 * C);
    const int32_t label[4] = {0, MTAN_UNLABELED, 1, C - 1};
    mtan_real *logits = made("logits", 8 * C, 4), *p = made("p", 8 * C, 1), *loss = made("loss", 8, 1),
              *dl = made("dl", 8 * C, 1);
    k->cross_entropy_forward(loss, p, logits, label, 8, 2, C), hash_reals("cross-entropy", n, loss, 8);
    k->cross_entropy_backward(dl, p, label, (mtan_real)0.25, 8, 2, C), hash_reals("cross-entropy-back", n, dl, 8 * C);
    const mtan_real c[6] = {(mtan_real)0.1,  (mtan_real)0.999, (mtan_real)0.001,
                            (mtan_real)1e-8, (mtan_real)0.01,  (mtan_real)31.6};
    mtan_real *w = made("w", 4 * n, 1), *moments = positive("m", 2 * n, 1), *gradient = made("g", n, 1);
    k->adam(w, moments, moments + n, gradient, (size_t)n, c), hash_reals("adam", n, w, 4 * n);
    k->adamax(w, moments, moments + n, gradient, (size_t)n, c), hash_reals("adamax", n, w, 4 * n);
}

/* n keys and n queries; the second channel sees every third key, the third none. */
static void attention_kernels(const mtan_backend *k, int n) {
    enum { D = 3, MOST = 67 };
    int32_t begin[D + 1] = {0, n, n + (n + 2) / 3, n + (n + 2) / 3}, row[2 * MOST], first[MOST];
    for (int i = 0; i < n; i++) row[i] = i, first[i] = 2 * i;
    for (int i = 0; 3 * i < n; i++) row[n + i] = 3 * i;
    mtan_real *value = made("value", 2 * n, 1), *y = made("y", 2 * n * D, 0), *dy = made("dy", 2 * n * D, 1);
    mtan_real *weight = made("weight", n * n, 0), *dscore = made("dscore", n * n, 1);
    for (int far = 0; far < 2; far++) { /* scores so far apart that the second channel needs a maximum of its own */
        mtan_attend a = {made("score", n * n, far ? 300 : 3),
                         made("exp", n * n, 0),
                         made("total", n * D, 0),
                         made("scratch", 2 * n, 0),
                         begin,
                         row,
                         value,
                         first,
                         1,
                         n,
                         n,
                         D};
        k->attend_forward(&a, y, D), hash_reals("attend", n, y, 2 * n * D);
        k->attend_backward(&a, dscore, dy, D, y, D), hash_reals("attend-back", n, dscore, n * n);
        for (int d = 0; d < D; d++) k->attend_weights(&a, weight, d), hash_reals("attend-weights", n, weight, n * n);
    }
    mtan_real *beta = positive("beta", D, 40), *dbeta = made("dbeta", D, 1);
    const mtan_rbf r = {made("query", n, 1), made("time", n, 1), beta, begin, row, value, first, 1, n, n, D};
    k->rbf_forward(&r, y, D), hash_reals("rbf", n, y, 2 * n * D);
    k->rbf_backward(&r, dbeta, dy, D, y, D), hash_reals("rbf-back", n, dbeta, D);
    for (int d = 0; d < D; d++) k->rbf_weights(&r, weight, d), hash_reals("rbf-weights", n, weight, n * n);
    mtan_real *wide = positive("wide", n, 40), *dwide = made("dwide", n, 1), *v = made("v", 5 * (n + 2), 1);
    mtan_real *s = made("s", 4 * (n + 1), 0), *ds = made("ds", 4 * (n + 1), 1), *dv = made("dv", 5 * (n + 2), 1);
    mtan_real *q = made("q", 4, 1), *t = made("t", 5, 1);
    k->smooth_forward(s, (size_t)n + 1, q, t, wide, v, (size_t)n + 2, 4, 5, n), hash_reals("smooth", n, s, 4 * (n + 1));
    k->smooth_backward(dv, dwide, ds, s, (size_t)n + 1, q, t, wide, v, (size_t)n + 2, 4, 5, n);
    hash_reals("smooth-back", n, dv, 5 * (n + 2)), hash_reals("smooth-back-beta", n, dwide, n);
}

static void gru_kernels(const mtan_backend *k, int n) {
    const int B = 3, ldh = n + 2, ldg = 3 * n + 1;
    mtan_real *h = made("h", B * ldh, 0), *g = made("gates", B * ldg, 2), *hn = made("hn", B * n, 0),
              *gh = made("gh", B * 3 * n, 2);
    mtan_real *before = made("before", B * ldh, 1), *dh = made("dh", B * n, 1);
    k->gru_forward(h, (size_t)ldh, g, (size_t)ldg, hn, gh, before, (size_t)ldh, B, n);
    hash_reals("gru", n, h, B * ldh), hash_reals("gru-gates", n, g, B * ldg), hash_reals("gru-hn", n, hn, B * n);
    k->gru_backward(dh, g, (size_t)ldg, hn, before, (size_t)ldh, B, n);
    hash_reals("gru-dh", n, dh, B * n), hash_reals("gru-dg", n, g, B * ldg), hash_reals("gru-dhn", n, hn, B * n);
    mtan_real *start = made("start", B * ldg, 2);
    k->gru_forward(h, (size_t)ldh, start, (size_t)ldg, NULL, gh, NULL, 0, B, n), hash_reals("gru-start", n, h, B * ldh);
}

static void latent_kernels(const mtan_backend *k, int n) {
    enum { K = 4, S = 2, B = 2 }; /* steps, samples, records; n is the latent size */
    int32_t first[K];
    const int R = K * B;
    for (int i = 0; i < K; i++) first[i] = B * i;
    mtan_real *posterior = made("posterior", R * 2 * n, 1), *noise = made("noise", R * S * n, 2),
              *z = made("z", R * S * n, 0);
    mtan_real *dz = made("dz", R * S * n, 1), *dp = made("dp", R * 2 * n, 1), *one = made("one", 4, 1);
    k->sample_forward(z, posterior, noise, R, S, n), hash_reals("sample", n, z, R * S * n);
    k->sample_backward(dp, dz, z, posterior, R, S, n), hash_reals("sample-back", n, dp, R * 2 * n);
    k->kl_forward(one, posterior, first, 1, K, n), hash_reals("kl", n, one, 4);
    k->kl_backward(dp, posterior, one + 1, first, 1, K, n), hash_reals("kl-back", n, dp, R * 2 * n);
    k->ratio_forward(one, z, posterior, noise, first, 1, K, S, 1, n), hash_reals("ratio", n, one, 4);
    k->ratio_backward(dz, dp, z, one + 1, first, 1, K, S, 1, n);
    hash_reals("ratio-dz", n, dz, R * S * n), hash_reals("ratio-dp", n, dp, R * 2 * n);
}

static void loss_kernels(const mtan_backend *k, int n) {
    enum { D = 3, MOST = 67 }; /* n cells; then n samples */
    int32_t row[MOST], channel[MOST];
    for (int i = 0; i < n; i++) row[i] = i / 2, channel[i] = i % 2 ? 2 : i % D;
    mtan_real *prediction = made("prediction", 3 * n * D, 1), *dprediction = made("dprediction", n * D, 1);
    mtan_real *value = made("cells", n, 1), *one = made("logp", 4, 1), *share = positive("share", 1, 1);
    k->loglik_forward(one, prediction, D, row, channel, value, n, 0.25), hash_reals("loglik", n, one, 4);
    k->loglik_backward(dprediction, prediction, one + 1, D, row, channel, value, n, 0.25);
    hash_reals("loglik-back", n, dprediction, n * D);
    const double error = k->squared_error(prediction, (size_t)(n * D), 3, D, row, channel, value, n);
    print_hash("squared-error", n, fnv1a(FNV_START, &error, 1, sizeof error));
    for (int b = MTAN_BOUND_FAITHFUL; b <= MTAN_BOUND_IWAE; b++) {
        const int stride = b == MTAN_BOUND_IWAE;
        mtan_real *logp = made("bound", n, 30), *kl = made("kl", n, 5), *weight = made("weights", n, 0),
                  *d = made("dbound", 2 * n, 1);
        k->bound_forward(one, weight, logp, kl, stride, n, (mtan_bound)b, 0.5, share);
        hash_reals("bound", n, one, 4), hash_reals("bound-weight", n, weight, n);
        k->bound_backward(d, d + n, stride, weight, n, (mtan_real)0.5, (mtan_real)0.25, share),
            hash_reals("bound-back", n, d, 2 * n);
    }
}

static void dump_kernels(const mtan_backend *k) {
    static const int sizes[] = {1, 7, 8, 9, 15, 16, 17, 67};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        pool_used = 0;
        basic_kernels(k, sizes[i]), product_kernels(k, sizes[i]), layer_kernels(k, sizes[i]);
        attention_kernels(k, sizes[i]), gru_kernels(k, sizes[i]), latent_kernels(k, sizes[i]),
            loss_kernels(k, sizes[i]);
    }
}

/* ---- models ---- */

enum { BATCH = 16, SAMPLES = 3 };

static uint64_t predictions(tiny_model *t) {
    enum { MOST = BATCH * SAMPLES * TINY_TIMES * TINY_TIMES * TINY_CHANNELS };
    static mtan_real out[MOST];
    uint64_t h = FNV_START;
    memset(out, 0, sizeof out); /* what a call does not fill stays 0 */
    t->model.config.predict_samples = SAMPLES;
    tiny_predict(t, 5);
    if (t->config.classify != MTAN_CLASSIFY_NONE) {
        must(mtan_logits(&t->predictor, t->records, BATCH, out) == MTAN_OK, "logits");
        h = fnv1a(h, out, MOST, sizeof out[0]);
        must(mtan_classify(&t->predictor, t->records, BATCH, out) == MTAN_OK, "classify");
        h = fnv1a(h, out, MOST, sizeof out[0]);
    }
    for (int head = 0; head < t->config.enc_heads; head++) {
        must(mtan_attention(&t->predictor, t->records, head, 0, out) == MTAN_OK, "attention");
        h = fnv1a(h, out, MOST, sizeof out[0]);
    }
    if (t->config.kind == MTAN_FULL && t->config.classify != MTAN_CLASSIFY_TIME) {
        must(mtan_interpolate(&t->predictor, t->records, out, out + TINY_TIMES * TINY_CHANNELS) == MTAN_OK,
             "interpolate");
        h = fnv1a(h, out, MOST, sizeof out[0]);
    }
    return h;
}

/* Every record pushed as it stands, in no order of time, with an answer after each observation. 0 where there is none. */
static uint64_t streamed(tiny_model *t) {
    enum { TIMES = 3, MOST = SAMPLES * TIMES * TINY_CHANNELS };
    static const mtan_real times[TIMES] = {0, (mtan_real)0.5, 1};
    mtan_real out[2 * MOST] = {0};
    uint64_t h = FNV_START;
    size_t bytes = 0;
    mtan_stream stream;
    void *memory;
    if (mtan_stream_size(&t->model, 0, &bytes) != MTAN_OK) return 0;
    t->model.config.predict_samples = SAMPLES;
    tiny_predict(t, 1);
    memory = guard_alloc(bytes);
    must(mtan_stream_init(&stream, &t->predictor, 0, memory, bytes) == MTAN_OK, "stream");
    for (int b = 0; b < BATCH; b++) {
        mtan_record ask = t->records[b];
        ask.times = times, ask.n_times = TIMES;
        must(mtan_stream_reset(&stream) == MTAN_OK, "reset");
        for (int i = 0; i < ask.n_events; i++) {
            const mtan_event *e = &ask.events[i];
            must(mtan_stream_push(&stream, e->time, e->channel, e->value) == MTAN_OK, "push");
            if (t->config.classify != MTAN_CLASSIFY_NONE)
                must(mtan_stream_logits(&stream, &ask, out) == MTAN_OK, "stream logits");
            if (t->config.kind == MTAN_FULL && t->config.classify != MTAN_CLASSIFY_TIME)
                must(mtan_stream_interpolate(&stream, &ask, out + MOST, NULL) == MTAN_OK, "stream interpolate");
            h = fnv1a(h, out, 2 * MOST, sizeof out[0]);
        }
    }
    must(guard_free(memory), "guard");
    return h;
}

/* Every record in small memory; 0 where the model is of another kind. */
static uint64_t in_small_memory(tiny_model *t) {
    mtan_real out[2];
    uint64_t h = FNV_START;
    size_t bytes = 0;
    void *memory;
    if (mtan_small_size(&t->model, 2, &bytes) != MTAN_OK) return 0;
    memory = guard_alloc(bytes);
    for (int b = 0; b < BATCH; b++) {
        must(mtan_small_logits(&t->model, &t->records[b], 2, memory, bytes, out) == MTAN_OK, "small logits");
        h = fnv1a(h, out, 2, sizeof out[0]);
    }
    must(guard_free(memory), "guard");
    return h;
}

/* The same on a model of whole numbers that are used in place. */
static uint64_t in_place(tiny_model *t) {
    const mtan_model model = t->model;
    mtan_real *weights, *next;
    int8_t *rows, *row;
    size_t count = 0, bytes = 0;
    uint64_t h;
    must(mtan_int8_counts(&t->config, &count, &bytes) == MTAN_OK, "int8 counts");
    next = weights = guard_alloc(count * sizeof *weights), row = rows = guard_alloc(bytes);
    for (int32_t i = 0; i < mtan_param_count(&t->config); i++) {
        mtan_param p;
        must(mtan_param_at(&t->config, i, &p) == MTAN_OK, "parameter");
        for (int32_t r = 0; r < p.rows; r++) {
            const mtan_real *x = t->weights + p.offset + (size_t)r * (size_t)p.cols;
            if (p.cols > 1) *next++ = mtan_quantize_row(row, x, (size_t)p.cols), row += p.cols;
            else *next++ = *x;
        }
    }
    must(mtan_model_init_int8(&t->model, &t->config, weights, count, rows, bytes) == MTAN_OK, "int8 model");
    h = in_small_memory(t);
    t->model = model;
    must(guard_free(weights) && guard_free(rows), "guard");
    return h;
}

/* Whatever predicts, in the precision of the model. */
static void dump_predictions(tiny_model *t, const char *kind, const char *precision) {
    printf("%s-%s", kind, precision), print_hash("prediction", BATCH, predictions(t));
    printf("%s-%s", kind, precision), print_hash("stream", BATCH, streamed(t));
    printf("%s-%s", kind, precision), print_hash("small", BATCH, in_small_memory(t));
}

static void dump_model(tiny_kind kind) {
    tiny_model t;
    mtan_train_config config;
    mtan_report report;
    tiny_open(&t, kind, BATCH);
    mtan_train_config_init(&config);
    config.clip = 1;
    tiny_train(&t, &config);
    dump_predictions(&t, tiny_names[kind], "");
    t.model.precision = MTAN_INT8;
    dump_predictions(&t, tiny_names[kind], "int8-");
    printf("%s-", tiny_names[kind]), print_hash("int8-in-place", BATCH, in_place(&t));
    t.model.precision = MTAN_REAL;
    must(mtan_train_gradient(&t.trainer, t.records, BATCH, 1, &report) == MTAN_OK, "gradient");
    printf("%s-", tiny_names[kind]), hash_reals("gradient", BATCH, t.trainer.gradient, (int)t.count);
    for (int i = 0; i < 3; i++) must(mtan_train_step(&t.trainer, t.records, BATCH, 12, &report) == MTAN_OK, "step");
    printf("%s-", tiny_names[kind]), hash_reals("weights", BATCH, t.weights, (int)t.count);
    printf("%s-", tiny_names[kind]), print_hash("loss", BATCH, fnv1a(FNV_START, &report.loss, 1, sizeof report.loss));
    must(tiny_close(&t), "guard");
}

/* The distance of an output or gradient from the reference changes with any bit of it, for all that matters. */
static void hash_distance(void *context, const char *tensor, double difference, double limit, double share) {
    uint64_t *h = context;
    (void)limit, (void)share;
    *h = fnv1a(fnv1a(*h, tensor, strlen(tensor), 1), &difference, 1, sizeof difference);
}

static int is_small(const char *name) {
    return strncmp(name, "physionet", 9) != 0 && strncmp(name, "mimic3", 6) != 0 && strncmp(name, "activity", 8) != 0;
}

int main(void) {
    dump_kernels(&mtan_backend_scalar);
    for (int kind = 0; kind < TINY_KINDS; kind++) dump_model((tiny_kind)kind);
    for (int i = 0; ladder_case(i); i++) {
        uint64_t h = FNV_START;
        if (!is_small(ladder_case(i))) continue;
        const int compared = ladder_model(ladder_case(i), &mtan_backend_scalar, hash_distance, &h);
        must(compared > 0, ladder_case(i));
        print_hash(ladder_case(i), compared, h);
    }
    return 0;
}
