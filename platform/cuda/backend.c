/* The library's kernels on the device in use: for each entry its structure of arguments and the shape of its launch. What is a
 * loop over smaller kernels on a CPU (a GRU in int8, the gradients of its weights) is the same loop here: mtan.c's, over this
 * table. */
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function" /* scalar kernels, which have their own form here */
#endif
#define MTAN_KERNELS_ONLY
#define MTAN_NO_TABLE
#define MTAN_BACKEND mtan_backend_cuda
#include "../../mtan.c"

#include "launch.h"

static size_t pieces(size_t n, size_t size) {
    return (n + size - 1) / size;
}

/* Threads enough for n elements; the kernels take several each where these are not enough. */
static size_t flat_blocks(size_t n, size_t threads) {
    const size_t most = 8192, blocks = pieces(n, threads);
    return blocks < most ? blocks : most;
}

static int fits(size_t n) {
    if (n <= INT32_MAX) return 1;
    mtan_cuda_refuse("a tensor has more than 2^31 - 1 elements");
    return 0;
}

/* Where the kernels find it, of whatever type. */
#define AT(pointer) mtan_cuda_there(pointer)

#define FLAT(kernel, n, a) mtan_cuda_launch(KERNEL_##kernel, flat_blocks(n, kernel##_threads), 1, 1, a)

/* ---- elementwise ---- */

static struct elementwise elementwise_of(mtan_real *y, const mtan_real *x, size_t n) {
    struct elementwise a;
    memset(&a, 0, sizeof a);
    a.y = AT(y), a.x = AT(x);
    a.n = fits(n) ? (unsigned)n : 0;
    return a;
}

static void cuda_map(mtan_function f, mtan_real *y, const mtan_real *x, size_t n) {
    struct elementwise a = elementwise_of(y, x, n);
    a.function = (int)f;
    FLAT(map, a.n, &a);
}

static void cuda_exp_parts(mtan_real *significand, mtan_real *exponent, const mtan_real *x, size_t n) {
    struct elementwise a = elementwise_of(significand, x, n);
    a.m = AT(exponent);
    FLAT(exp_parts, a.n, &a);
}

static void cuda_fill(mtan_real *y, size_t n, mtan_real value) {
    struct elementwise a = elementwise_of(y, NULL, n);
    a.c[0] = value;
    FLAT(fill, a.n, &a);
}

static void cuda_relu_forward(mtan_real *y, size_t n) {
    const struct elementwise a = elementwise_of(y, NULL, n);
    FLAT(relu_forward, a.n, &a);
}

static void cuda_relu_backward(mtan_real *dy, const mtan_real *y, size_t n) {
    const struct elementwise a = elementwise_of(dy, y, n);
    FLAT(relu_backward, a.n, &a);
}

static void cuda_tanh_backward(mtan_real *dy, const mtan_real *y, size_t n) {
    const struct elementwise a = elementwise_of(dy, y, n);
    FLAT(tanh_backward, a.n, &a);
}

static void cuda_softplus_backward(mtan_real *dx, const mtan_real *dy, const mtan_real *x, size_t n) {
    struct elementwise a = elementwise_of(dx, x, n);
    a.d = AT(dy);
    FLAT(softplus_backward, a.n, &a);
}

static void cuda_average(mtan_real *mean, const mtan_real *x, size_t n, mtan_real share) {
    struct elementwise a = elementwise_of(mean, x, n);
    a.c[0] = share;
    FLAT(average, a.n, &a);
}

static void cuda_adam(mtan_real *w, mtan_real *m, mtan_real *v, const mtan_real *g, size_t n, const mtan_real c[6]) {
    struct elementwise a = elementwise_of(w, g, n);
    a.m = AT(m), a.v = AT(v);
    memcpy(a.c, c, sizeof a.c);
    FLAT(adam, a.n, &a);
}

static void cuda_adamax(mtan_real *w, mtan_real *m, mtan_real *u, const mtan_real *g, size_t n, const mtan_real c[6]) {
    struct elementwise a = elementwise_of(w, g, n);
    a.m = AT(m), a.v = AT(u);
    memcpy(a.c, c, sizeof a.c);
    FLAT(adamax, a.n, &a);
}

static void cuda_normal_pairs(mtan_real *out, const mtan_real *u, const mtan_real *w, const mtan_real *v, size_t n) {
    struct elementwise a = elementwise_of(out, u, n);
    a.d = AT(w);
    a.m = AT(v);
    FLAT(normal_pairs, a.n, &a);
}

/* ---- matrices ---- */

static struct matrix matrix_of(mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx, int32_t rows, int32_t cols) {
    struct matrix a = {AT(y), AT(x), (int)ldy, (int)ldx, rows, cols, 0};
    return a;
}

static size_t area(int32_t rows, int32_t cols) {
    return (size_t)rows * (size_t)cols;
}

static void cuda_scale(mtan_real *y, size_t ldy, int32_t rows, int32_t cols, mtan_real factor) {
    struct matrix a = matrix_of(y, ldy, NULL, 0, rows, cols);
    a.factor = factor;
    FLAT(scale, area(rows, cols), &a);
}

static void cuda_copy(mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx, int32_t rows, int32_t cols) {
    const struct matrix a = matrix_of(y, ldy, x, ldx, rows, cols);
    FLAT(copy, area(rows, cols), &a);
}

/* How many rows a part of a sum over rows has: at most 64 parts, which depend on the rows alone. */
static int32_t part_depth(int32_t rows) {
    return rows <= 64 * 64 ? 64 : (rows + 63) / 64;
}

static void add_columns(mtan_real *y, const mtan_real *x, size_t ldx, int32_t rows, int32_t cols) {
    struct column_sums a = {AT(y), NULL, AT(x), (int)ldx, rows, cols, part_depth(rows)};
    if (rows > a.depth) {
        const size_t parts = pieces((size_t)rows, (size_t)a.depth);
        if (!(a.partial = mtan_cuda_scratch(parts * (size_t)cols * sizeof *a.partial))) return;
        mtan_cuda_launch(KERNEL_column_parts, pieces((size_t)cols, column_parts_x), parts, 1, &a);
        a.x = a.partial, a.ldx = cols, a.rows = (int)parts;
    }
    FLAT(column_finish, (size_t)cols, &a);
}

static void cuda_add(mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx, int32_t rows, int32_t cols) {
    const struct matrix a = matrix_of(y, ldy, x, ldx, rows, cols);
    if (ldy == 0 && rows > 1) add_columns(y, x, ldx, rows, cols);
    else FLAT(add, area(rows, cols), &a);
}

static double cuda_total(const mtan_real *x, size_t n, int squares) {
    const size_t parts = n <= 1024 ? 1 : n >= 256 * 1024 ? 256 : pieces(n, 1024);
    struct total a;
    if (!fits(n)) return mtan_cuda_answer(NULL);
    memset(&a, 0, sizeof a);
    if (!(a.out = mtan_cuda_scratch((parts + 1) * sizeof *a.out))) return mtan_cuda_answer(NULL);
    a.partial = a.out + 1;
    a.x = AT(x), a.n = (unsigned)n, a.squares = squares, a.parts = (int)parts;
    mtan_cuda_launch(KERNEL_total_parts, parts, 1, 1, &a);
    mtan_cuda_launch(KERNEL_total_finish, 1, 1, 1, &a);
    return mtan_cuda_answer(a.out);
}

static double cuda_sum(const mtan_real *x, size_t n) {
    return cuda_total(x, n, 0);
}

static double cuda_sum_squares(const mtan_real *x, size_t n) {
    return cuda_total(x, n, 1);
}

/* ---- products ---- */

/* Few tiles and long sums: cut, so that all multiprocessors have work. Depends on the shape alone: the same bits on any
 * GPU. Below 1024 terms a sum is left whole. */
static int split_count(int32_t m, int32_t n, int32_t k) {
    const size_t tiles = pieces((size_t)m, TILE) * pieces((size_t)n, TILE), wanted = pieces(96, tiles);
    const size_t most = (size_t)k / 512 < 32 ? (size_t)k / 512 : 32;
    if (k < 1024 || tiles >= 96) return 1;
    return (int)(wanted < most ? wanted : most);
}

/* From about a million terms on cuBLAS gains more than its launch costs. */
static int is_large(int32_t m, int32_t n, int32_t k) {
    return (double)m * n * k >= 1e6;
}

static void multiply(mtan_cuda_kernel kernel, int a_transposed, int b_transposed, mtan_real *c, size_t ldc,
                     const mtan_real *a, size_t lda, const mtan_real *b, size_t ldb, int32_t m, int32_t n, int32_t k,
                     int32_t add) {
    struct product q = {AT(c), NULL, AT(a), AT(b), (int)ldc, (int)lda, (int)ldb, m, n, k, add, 1, k};
    const size_t rows = pieces((size_t)m, TILE), cols = pieces((size_t)n, TILE);
    if (m == 0 || n == 0 || !fits(area(m, n))) return;
    if (is_large(m, n, k) && mtan_cuda_sgemm(q.c, ldc, q.a, lda, a_transposed, q.b, ldb, b_transposed, m, n, k, add))
        return;
    if ((q.splits = split_count(m, n, k)) > 1) {
        q.depth = (k + q.splits - 1) / q.splits;
        q.splits = (k + q.depth - 1) / q.depth;
        if (!(q.partial = mtan_cuda_scratch((size_t)q.splits * area(m, n) * sizeof *q.partial))) return;
    }
    mtan_cuda_launch(kernel, rows, cols, (size_t)q.splits, &q);
    if (q.splits > 1) FLAT(product_finish, area(m, n), &q);
}

static void cuda_product_nn(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *b, size_t ldb,
                            int32_t m, int32_t n, int32_t k, int32_t add) {
    multiply(KERNEL_product_nn, 0, 0, c, ldc, a, lda, b, ldb, m, n, k, add);
}

static void cuda_product_nt(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *b, size_t ldb,
                            int32_t m, int32_t n, int32_t k, int32_t add) {
    multiply(KERNEL_product_nt, 0, 1, c, ldc, a, lda, b, ldb, m, n, k, add);
}

static void cuda_product_tn(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *b, size_t ldb,
                            int32_t m, int32_t n, int32_t k, int32_t add) {
    multiply(KERNEL_product_tn, 1, 0, c, ldc, a, lda, b, ldb, m, n, k, add);
}

/* The layout is the transpose, as in the scalar code. */
static size_t cuda_pack_count(int32_t n, int32_t k) {
    return area(n, k);
}

static void cuda_pack(mtan_real *packed, const mtan_real *b, size_t bj, size_t bp, int32_t n, int32_t k) {
    const struct matrix a = matrix_of(packed, 0, b, bj, n, k);
    if (bp == 1) mtan_cuda_launch(KERNEL_pack, pieces((size_t)k, 32), pieces((size_t)n, 32), 1, &a);
    else cuda_copy(packed, (size_t)n, b, bp, k, n);
}

static void cuda_product_packed(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *packed,
                                int32_t m, int32_t n, int32_t k, int32_t add, int32_t last_first) {
    (void)last_first;
    cuda_product_nn(c, ldc, a, lda, packed, (size_t)n, m, n, k, add);
}

static size_t cuda_pack_int8_count(int32_t n, int32_t k) {
    return (size_t)n + pieces(area(n, k), sizeof(mtan_real));
}

static void cuda_pack_int8(mtan_real *packed, const mtan_real *b, size_t ldb, int32_t n, int32_t k) {
    struct product_int8 a;
    memset(&a, 0, sizeof a);
    a.packed = AT(packed), a.real = AT(b), a.ldb = (int)ldb, a.n = n, a.k = k;
    mtan_cuda_launch(KERNEL_pack_int8, pieces((size_t)n, pack_int8_y), 1, 1, &a);
}

static void multiply_int8(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const void *b,
                          const mtan_real *scale, int32_t row, int32_t term, int32_t m, int32_t n, int32_t k,
                          int32_t add) {
    const struct product_int8 q = {AT(c), NULL, AT(a), NULL, AT(scale), AT(b), (int)ldc, (int)lda,
                                   0,     m,    n,     k,    add,       row,   term};
    mtan_cuda_launch(KERNEL_product_int8, (size_t)m, pieces((size_t)n, 64), 1, &q);
}

static void cuda_product_int8(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *packed,
                              int32_t m, int32_t n, int32_t k, int32_t add) {
    multiply_int8(c, ldc, a, lda, packed + n, packed, k, 1, m, n, k, add);
}

static void cuda_product_nt_int8(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const int8_t *b,
                                 const mtan_real *scale, int32_t m, int32_t n, int32_t k, int32_t add) {
    multiply_int8(c, ldc, a, lda, b, scale, k, 1, m, n, k, add);
}

static void cuda_product_nn_int8(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const int8_t *b, int32_t m,
                                 int32_t n, int32_t k, int32_t add) {
    multiply_int8(c, ldc, a, lda, b, NULL, 1, n, m, n, k, add);
}

/* ---- embedding and softmax ---- */

static void cuda_embed_forward(mtan_real *y, const mtan_real *time, const mtan_real *lw, const mtan_real *lb,
                               const mtan_real *pw, const mtan_real *pb, int32_t times, int32_t embed) {
    struct embedding a;
    memset(&a, 0, sizeof a);
    a.y = AT(y), a.time = AT(time), a.lw = AT(lw), a.lb = AT(lb), a.pw = AT(pw), a.pb = AT(pb);
    a.times = times, a.embed = embed;
    FLAT(embed_forward, area(times, embed), &a);
}

static void cuda_embed_backward(mtan_real *dlw, mtan_real *dlb, mtan_real *dpw, mtan_real *dpb, const mtan_real *dy,
                                const mtan_real *time, const mtan_real *pw, const mtan_real *pb, int32_t times,
                                int32_t embed) {
    struct embedding a;
    memset(&a, 0, sizeof a);
    a.dlw = AT(dlw), a.dlb = AT(dlb), a.dpw = AT(dpw), a.dpb = AT(dpb), a.dy = AT(dy), a.time = AT(time), a.pw = AT(pw),
    a.pb = AT(pb);
    a.times = times, a.embed = embed;
    a.depth = part_depth(times);
    a.chunks = (int)pieces((size_t)times, (size_t)a.depth);
    if (times == 0 || !(a.partial = mtan_cuda_scratch(area(2 * a.chunks, embed) * sizeof *a.partial))) return;
    mtan_cuda_launch(KERNEL_embed_parts, pieces((size_t)embed, embed_parts_x), (size_t)a.chunks, 1, &a);
    FLAT(embed_finish, (size_t)embed, &a);
}

static void cuda_embed_fixed(mtan_real *y, const mtan_real *time, mtan_real base, mtan_real scale, int32_t times,
                             int32_t embed) {
    struct embedding a;
    memset(&a, 0, sizeof a);
    a.y = AT(y), a.time = AT(time), a.times = times, a.embed = embed;
    a.slope = -real_log(base) / (mtan_real)embed;
    a.scale = scale;
    FLAT(embed_fixed, area(times, embed / 2), &a);
}

static void cuda_softmax_forward(mtan_real *y, int32_t rows, int32_t cols) {
    const struct matrix a = matrix_of(y, 0, NULL, 0, rows, cols);
    if (cols > 0) mtan_cuda_launch(KERNEL_softmax_forward, pieces((size_t)rows, softmax_forward_y), 1, 1, &a);
}

static void cuda_softmax_backward(mtan_real *dy, const mtan_real *y, int32_t rows, int32_t cols) {
    const struct matrix a = matrix_of(dy, 0, y, 0, rows, cols);
    if (cols > 0) mtan_cuda_launch(KERNEL_softmax_backward, pieces((size_t)rows, softmax_backward_y), 1, 1, &a);
}

/* ---- attention ---- */

static struct batch batch_of(const mtan_batch *b) {
    struct batch a;
    memset(&a, 0, sizeof a);
    a.first = AT(b->first), a.length = AT(b->length);
    a.time0 = AT(b->time0), a.score0 = AT(b->score0), a.query0 = AT(b->query0), a.pair0 = AT(b->pair0);
    a.point0 = AT(b->point0), a.cell0 = AT(b->cell0);
    a.begin = AT(b->begin), a.row = AT(b->row), a.value = AT(b->value);
    a.cell_row = AT(b->cell_row), a.cell_channel = AT(b->cell_channel), a.cell_value = AT(b->cell_value);
    a.records = b->records, a.samples = b->samples, a.channels = b->channels, a.steps = b->steps;
    a.statics = b->statics, a.outputs = b->outputs;
    return a;
}

static struct attention attention_of(const mtan_batch *b, const mtan_real *score, const mtan_real *weight,
                                     const mtan_real *total) {
    struct attention a;
    memset(&a, 0, sizeof a);
    a.batch = batch_of(b);
    a.score = AT(score), a.weight = AT(weight), a.total = AT(total);
    return a;
}

static void attend_all(mtan_cuda_kernel kernel, struct attention *a, size_t tile) {
    a->tiles = (int)pieces((size_t)a->batch.steps, tile);
    mtan_cuda_launch(kernel, (size_t)a->batch.records * (size_t)a->tiles, 1, 1, a);
}

static void cuda_attend_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *score,
                                mtan_real *weight, mtan_real *total, mtan_real *scratch) {
    struct attention a = attention_of(b, score, weight, total);
    (void)scratch;
    a.y = AT(y), a.ldy = (int)ldy;
    attend_all(KERNEL_attend_forward, &a, ATTEND_TILE);
}

static void cuda_attend_backward(const mtan_batch *b, mtan_real *dscore, const mtan_real *dy, const mtan_real *y,
                                 size_t ldy, const mtan_real *score, const mtan_real *weight, const mtan_real *total,
                                 mtan_real *scratch) {
    struct attention a = attention_of(b, score, weight, total);
    (void)scratch;
    a.dscore = AT(dscore), a.dy = AT(dy), a.y = AT(y), a.ldy = (int)ldy;
    attend_all(KERNEL_attend_backward, &a, ATTEND_BACK_TILE);
}

static void cuda_attend_weights(const mtan_batch *b, mtan_real *shown, const mtan_real *score, const mtan_real *weight,
                                const mtan_real *total, int32_t channel) {
    struct attention a = attention_of(b, score, weight, total);
    a.dscore = AT(shown), a.channel = channel - b->statics;
    mtan_cuda_launch(KERNEL_attend_weights, (size_t)b->records, 1, 1, &a);
}

static void cuda_log_under(mtan_real *y, const mtan_real *x, const mtan_real *base, size_t n) {
    struct elementwise a = elementwise_of(y, x, n);
    a.d = AT(base);
    FLAT(log_under, a.n, &a);
}

/* ---- local statistics ---- */

static struct moments moments_arguments(struct attention attention, const mtan_real *point, const mtan_real *time,
                                        mtan_real rate, int32_t statistics, size_t tile) {
    struct moments a;
    memset(&a, 0, sizeof a);
    a.attention = attention;
    a.attention.tiles = (int)pieces((size_t)attention.batch.steps, tile);
    a.point = AT(point), a.time = AT(time), a.rate = rate, a.statistics = statistics;
    return a;
}

static void moments_all(mtan_cuda_kernel kernel, const struct moments *a) {
    mtan_cuda_launch(kernel, (size_t)a->attention.batch.records * (size_t)a->attention.tiles, 1, 1, a);
}

static void cuda_moments_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *score,
                                 mtan_real *weight, mtan_real *sums, mtan_real *scratch, const mtan_real *point,
                                 const mtan_real *time, mtan_real rate, int32_t statistics) {
    struct moments a =
        moments_arguments(attention_of(b, score, weight, sums), point, time, rate, statistics, ATTEND_TILE);
    (void)scratch;
    a.attention.y = AT(y), a.attention.ldy = (int)ldy;
    moments_all(KERNEL_moments_forward, &a);
}

static void cuda_moments_backward(const mtan_batch *b, mtan_real *dscore, const mtan_real *dy, const mtan_real *y,
                                  size_t ldy, const mtan_real *score, const mtan_real *weight, const mtan_real *sums,
                                  mtan_real *scratch, const mtan_real *point, const mtan_real *time, mtan_real rate,
                                  int32_t statistics) {
    struct moments a =
        moments_arguments(attention_of(b, score, weight, sums), point, time, rate, statistics, ATTEND_BACK_TILE);
    (void)scratch;
    a.attention.dscore = AT(dscore), a.attention.dy = AT(dy), a.attention.y = AT(y), a.attention.ldy = (int)ldy;
    moments_all(KERNEL_moments_backward, &a);
}

static void cuda_moments_add(mtan_real *sums, size_t stride, const mtan_real *weight, const mtan_real *point, size_t n,
                             const mtan_moment *o) {
    struct moment a;
    memset(&a, 0, sizeof a);
    a.sums = AT(sums), a.weight = AT(weight), a.point = AT(point), a.stride = (unsigned)stride, a.n = (unsigned)n;
    a.value = o->value, a.origin = o->origin, a.time = o->time, a.rate = o->rate;
    FLAT(moments_add, n, &a);
}

static void cuda_moments_read(mtan_real *y, const mtan_real *sums, size_t stride, const mtan_real *base,
                              mtan_real origin, int32_t statistics, size_t n) {
    struct moment a;
    memset(&a, 0, sizeof a);
    a.y = AT(y), a.sums = AT(sums), a.base = AT(base), a.stride = (unsigned)stride, a.n = (unsigned)n;
    a.origin = origin, a.statistics = statistics;
    FLAT(moments_read, n, &a);
}

/* ---- RBF smoothing ---- */

static struct rbf rbf_of(const mtan_batch *b, const mtan_real *query, const mtan_real *time, const mtan_real *beta) {
    struct rbf a;
    memset(&a, 0, sizeof a);
    a.batch = batch_of(b);
    a.query = AT(query), a.time = AT(time), a.beta = AT(beta);
    return a;
}

static void cuda_rbf_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *query,
                             const mtan_real *time, const mtan_real *beta) {
    struct rbf a = rbf_of(b, query, time, beta);
    a.y = AT(y), a.ldy = (int)ldy;
    a.tiles = (int)pieces((size_t)b->steps, rbf_forward_x);
    mtan_cuda_launch(KERNEL_rbf_forward, (size_t)b->records * (size_t)a.tiles, 1, 1, &a);
}

static void cuda_rbf_backward(const mtan_batch *b, mtan_real *dbeta, const mtan_real *dy, const mtan_real *y,
                              size_t ldy, const mtan_real *query, const mtan_real *time, const mtan_real *beta) {
    const size_t parts = area(b->records, b->channels);
    struct rbf a = rbf_of(b, query, time, beta);
    a.dbeta = AT(dbeta), a.dy = AT(dy), a.y = AT(y), a.ldy = (int)ldy;
    if (parts == 0 || !(a.partial = mtan_cuda_scratch(parts * sizeof *a.partial))) return;
    mtan_cuda_launch(KERNEL_rbf_backward, parts, 1, 1, &a);
    FLAT(rbf_finish, (size_t)b->channels, &a);
}

static void cuda_rbf_weights(const mtan_batch *b, mtan_real *shown, const mtan_real *query, const mtan_real *time,
                             const mtan_real *beta, int32_t channel) {
    struct rbf a = rbf_of(b, query, time, beta);
    a.y = AT(shown), a.channel = channel;
    mtan_cuda_launch(KERNEL_rbf_weights, (size_t)b->records, 1, 1, &a);
}

/* rows: of y in all; queries and keys: the most of a record */
static void smooth_run(struct smooth *a, size_t rows, size_t queries) {
    const size_t groups = area(a->batch.records, a->batch.samples);
    if (rows == 0 || !(a->least = mtan_cuda_scratch(rows * sizeof *a->least))) return;
    a->tiles = (int)pieces(queries * (size_t)a->cols, smooth_forward_threads);
    mtan_cuda_launch(KERNEL_smooth_nearest, groups, 1, 1, a);
    mtan_cuda_launch(KERNEL_smooth_forward, groups * (size_t)a->tiles, 1, 1, a);
}

static void smooth_back(struct smooth *a, size_t rows, size_t queries, size_t keys) {
    const size_t groups = area(a->batch.records, a->batch.samples), cols = (size_t)a->cols;
    const size_t parts = pieces(rows, (size_t)part_depth((int32_t)rows));
    if (rows == 0) return;
    /* the sums of the slopes go behind what they are sums of */
    if (!(a->least = mtan_cuda_scratch((rows * (1 + 2 * cols) + parts * cols) * sizeof *a->least))) return;
    a->totals = a->least + rows, a->slopes = a->totals + rows * cols;
    a->tiles = (int)pieces(queries * cols, smooth_slopes_threads);
    mtan_cuda_launch(KERNEL_smooth_nearest, groups, 1, 1, a);
    mtan_cuda_launch(KERNEL_smooth_slopes, groups * (size_t)a->tiles, 1, 1, a);
    a->tiles = (int)pieces(keys * cols, smooth_values_threads);
    mtan_cuda_launch(KERNEL_smooth_values, groups * (size_t)a->tiles, 1, 1, a);
    {
        struct column_sums s = {a->dbeta, a->slopes + rows * cols,  a->slopes, a->cols, (int)rows,
                                a->cols,  part_depth((int32_t)rows)};
        mtan_cuda_launch(KERNEL_column_parts, pieces(cols, column_parts_x), parts, 1, &s);
        s.x = s.partial, s.rows = (int)parts;
        FLAT(column_finish, cols, &s);
    }
}

static struct smooth smooth_of(const mtan_batch *b, const mtan_real *query, const mtan_real *key, const mtan_real *beta,
                               const mtan_real *value, size_t ldv, int32_t cols) {
    struct smooth a;
    memset(&a, 0, sizeof a);
    a.batch = batch_of(b);
    a.query = AT(query), a.key = AT(key), a.beta = AT(beta), a.value = AT(value), a.cols = cols;
    a.ldv = (int)value_stride(b, ldv), a.apart = (int)ldv;
    return a;
}

static void cuda_smooth_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *query,
                                const mtan_real *key, const mtan_real *beta, const mtan_real *value, size_t ldv,
                                int32_t cols) {
    struct smooth a = smooth_of(b, query, key, beta, value, ldv, cols);
    a.y = AT(y), a.ldy = (int)ldy;
    smooth_run(&a, area(b->queries, b->samples), (size_t)b->most_queries);
}

static void cuda_smooth_backward(const mtan_batch *b, mtan_real *dvalue, mtan_real *dbeta, const mtan_real *dy,
                                 const mtan_real *y, size_t ldy, const mtan_real *query, const mtan_real *key,
                                 const mtan_real *beta, const mtan_real *value, size_t ldv, int32_t cols) {
    struct smooth a = smooth_of(b, query, key, beta, value, ldv, cols);
    a.dvalue = AT(dvalue), a.dbeta = AT(dbeta), a.dy = AT(dy), a.y = AT(y), a.ldy = (int)ldy;
    smooth_back(&a, area(b->queries, b->samples), (size_t)b->most_queries, (size_t)b->steps);
}

/* ---- GRU ---- */

static void cuda_gates_forward(mtan_real *h, size_t ldh, mtan_real *g, size_t ldg, mtan_real *hn, const mtan_real *gh,
                               const mtan_real *before, size_t ldb, int32_t rows, int32_t hidden) {
    const struct gates a = {AT(h), AT(g), AT(hn), NULL, AT(gh), AT(before), (int)ldh, (int)ldg, (int)ldb, rows, hidden};
    FLAT(gates_forward, area(rows, hidden), &a);
}

static void cuda_gates_backward(mtan_real *dh, mtan_real *g, size_t ldg, mtan_real *hn, const mtan_real *before,
                                size_t ldb, int32_t rows, int32_t hidden) {
    const struct gates a = {NULL, AT(g), AT(hn), AT(dh), NULL, AT(before), 0, (int)ldg, (int)ldb, rows, hidden};
    FLAT(gates_backward, area(rows, hidden), &a);
}

enum { ON_CHIP = 128, WIDTHS = ON_CHIP / 32 };

/* Up to 128 units in one launch, weights on chip; more in one launch for each step. */
static void sequence_run(struct sequence *a) {
    static const mtan_cuda_kernel whole[WIDTHS] = {KERNEL_gru_run32, KERNEL_gru_run64, KERNEL_gru_run96,
                                                   KERNEL_gru_run128};
    const size_t rows = (size_t)a->rows, hidden = (size_t)a->hidden;
    if (hidden == 0) return;
    if (hidden <= ON_CHIP) mtan_cuda_launch(whole[(hidden - 1) / 32], pieces(rows, GRU_ROWS), 1, 1, a);
    else
        for (a->step = 0; a->step < a->steps; a->step++)
            mtan_cuda_launch(KERNEL_gru_step, pieces(rows, GRU_STEP_ROWS), pieces(hidden, GRU_STEP_UNITS), 1, a);
}

static void sequence_back(struct sequence *a) {
    static const mtan_cuda_kernel whole[WIDTHS] = {KERNEL_gru_back32, KERNEL_gru_back64, KERNEL_gru_back96,
                                                   KERNEL_gru_back128};
    const size_t rows = (size_t)a->rows, hidden = (size_t)a->hidden;
    if (hidden == 0) return;
    if (hidden <= ON_CHIP) mtan_cuda_launch(whole[(hidden - 1) / 32], pieces(rows, GRU_ROWS), 1, 1, a);
    else
        for (a->step = a->steps - 1; a->step >= 0; a->step--)
            mtan_cuda_launch(KERNEL_gru_step_back, pieces(rows, GRU_STEP_ROWS), pieces(hidden, GRU_BACK_UNITS), 1, a);
}

static struct sequence sequence_of(const mtan_batch *b, const mtan_gru *layer, const mtan_real *y, size_t ldy,
                                   mtan_real *g, size_t ldg, mtan_real *hn) {
    struct sequence a;
    memset(&a, 0, sizeof a);
    a.first = AT(b->first), a.steps = b->steps, a.rows = b->records * layer->samples, a.samples = layer->samples;
    a.y = AT(y), a.ldy = (int)ldy, a.g = AT(g), a.ldg = (int)ldg, a.hn = AT(hn);
    a.w = AT(layer->w), a.ldw = (int)layer->ldw;
    a.hidden = layer->hidden, a.reverse = layer->reverse;
    return a;
}

static void cuda_gru_forward(const mtan_batch *b, const mtan_gru *layer, mtan_real *y, size_t ldy, mtan_real *g,
                             size_t ldg, mtan_real *hn, mtan_real *scratch) {
    struct sequence a;
    if (layer->precision == MTAN_INT8) {
        scalar_gru_forward(b, layer, y, ldy, g, ldg, hn, scratch);
        return;
    }
    a = sequence_of(b, layer, y, ldy, g, ldg, hn);
    a.bias = AT(layer->bias);
    sequence_run(&a);
}

static void cuda_gru_backward(const mtan_batch *b, const mtan_gru *layer, mtan_real *dw, mtan_real *db, mtan_real *g,
                              size_t ldg, mtan_real *hn, mtan_real *scratch, const mtan_real *dy, const mtan_real *y,
                              size_t ldy) {
    struct sequence a = sequence_of(b, layer, y, ldy, g, ldg, hn);
    a.dh = AT(scratch), a.dy = AT(dy);
    sequence_back(&a);
    gru_weights_back(b, layer, dw, db, g, ldg, hn, y, ldy);
}

/* ---- the variational part ---- */

static void cuda_sample_forward(mtan_real *z, const mtan_real *posterior, const mtan_real *noise, int32_t rows,
                                int32_t samples, int32_t latent) {
    struct latent a;
    memset(&a, 0, sizeof a);
    a.z = AT(z), a.posterior = AT(posterior), a.noise = AT(noise), a.rows = rows, a.samples = samples,
    a.latent = latent;
    FLAT(sample_forward, area(rows, samples) * (size_t)latent, &a);
}

static void cuda_sample_backward(mtan_real *dposterior, const mtan_real *dz, const mtan_real *z,
                                 const mtan_real *posterior, int32_t rows, int32_t samples, int32_t latent) {
    struct latent a;
    memset(&a, 0, sizeof a);
    a.dposterior = AT(dposterior), a.posterior = AT(posterior);
    a.dz = AT(dz), a.z = AT(z);
    a.rows = rows, a.samples = samples, a.latent = latent;
    FLAT(sample_backward, area(rows, latent), &a);
}

/* The posterior has a row for each step, or one for a record. */
static struct latent latent_of(const mtan_batch *b, int32_t latent) {
    struct latent a;
    memset(&a, 0, sizeof a);
    if (!b->one_latent) a.first = AT(b->first), a.length = AT(b->length);
    a.records = b->records, a.samples = b->samples, a.latent = latent;
    return a;
}

static void cuda_kl_forward(const mtan_batch *b, mtan_real *kl, const mtan_real *posterior, int32_t latent) {
    struct latent a = latent_of(b, latent);
    a.out = AT(kl), a.posterior = AT(posterior);
    mtan_cuda_launch(KERNEL_kl_forward, (size_t)b->records, 1, 1, &a);
}

static void cuda_kl_backward(const mtan_batch *b, mtan_real *dposterior, const mtan_real *posterior,
                             const mtan_real *dkl, int32_t latent) {
    struct latent a = latent_of(b, latent);
    a.dposterior = AT(dposterior), a.posterior = AT(posterior), a.dout = AT(dkl);
    mtan_cuda_launch(KERNEL_kl_backward, (size_t)b->records, 1, 1, &a);
}

static void cuda_ratio_forward(const mtan_batch *b, mtan_real *ratio, const mtan_real *z, const mtan_real *posterior,
                               const mtan_real *noise, int32_t latent) {
    struct latent a = latent_of(b, latent);
    a.out = AT(ratio), a.posterior = AT(posterior), a.noise = AT(noise), a.z = AT(z);
    mtan_cuda_launch(KERNEL_ratio_forward, area(b->records, b->samples), 1, 1, &a);
}

static void cuda_ratio_backward(const mtan_batch *b, mtan_real *dz, mtan_real *dposterior, const mtan_real *z,
                                const mtan_real *dratio, int32_t latent) {
    struct latent a = latent_of(b, latent);
    a.dz = AT(dz), a.dposterior = AT(dposterior), a.dout = AT(dratio), a.z = AT(z);
    mtan_cuda_launch(KERNEL_ratio_backward, (size_t)b->records, 1, 1, &a);
}

/* ---- losses ---- */

static struct likelihood likelihood_of(const mtan_batch *b, const mtan_real *prediction, double std) {
    struct likelihood a;
    memset(&a, 0, sizeof a);
    a.batch = batch_of(b);
    a.prediction = AT(prediction);
    a.constant = LOG_TWO_PI + 2 * (double)real_log((mtan_real)std);
    a.variance = std * std;
    return a;
}

static void cuda_loglik_forward(const mtan_batch *b, mtan_real *logp, const mtan_real *prediction, double std) {
    struct likelihood a = likelihood_of(b, prediction, std);
    a.logp = AT(logp);
    mtan_cuda_launch(KERNEL_loglik_forward, area(b->records, b->samples), 1, 1, &a);
}

static void cuda_loglik_backward(const mtan_batch *b, mtan_real *dprediction, const mtan_real *prediction,
                                 const mtan_real *dlogp, double std) {
    struct likelihood a = likelihood_of(b, prediction, std);
    a.dprediction = AT(dprediction), a.dlogp = AT(dlogp);
    mtan_cuda_launch(KERNEL_loglik_backward, area(b->records, b->samples), 1, 1, &a);
}

static void cuda_loglik_sd_forward(const mtan_batch *b, mtan_real *logp, const mtan_real *prediction,
                                   const mtan_real *raw, mtan_real least) {
    struct likelihood a = likelihood_of(b, prediction, 1);
    a.logp = AT(logp), a.raw = AT(raw), a.least = least;
    mtan_cuda_launch(KERNEL_loglik_sd_forward, area(b->records, b->samples), 1, 1, &a);
}

static void cuda_loglik_sd_backward(const mtan_batch *b, mtan_real *dprediction, mtan_real *draw,
                                    const mtan_real *prediction, const mtan_real *raw, const mtan_real *dlogp,
                                    mtan_real least) {
    struct likelihood a = likelihood_of(b, prediction, 1);
    a.dprediction = AT(dprediction), a.draw = AT(draw), a.raw = AT(raw), a.dlogp = AT(dlogp), a.least = least;
    mtan_cuda_launch(KERNEL_loglik_sd_backward, area(b->records, b->samples), 1, 1, &a);
}

static void cuda_squared_error(const mtan_batch *b, double *error, const mtan_real *prediction) {
    struct likelihood a = likelihood_of(b, prediction, 1);
    a.error = AT(error);
    mtan_cuda_launch(KERNEL_squared_error, (size_t)b->records, 1, 1, &a);
}

static void cuda_bound_forward(int32_t records, mtan_real *loss, mtan_real *weight, const mtan_real *logp,
                               const mtan_real *kl, int32_t kl_stride, int32_t samples, mtan_bound bound,
                               double kl_weight, const mtan_real *share) {
    struct bound a;
    memset(&a, 0, sizeof a);
    a.loss = AT(loss), a.weight = AT(weight), a.logp = AT(logp), a.kl = AT(kl), a.share = AT(share);
    a.kl_weight = kl_weight;
    a.records = records, a.samples = samples, a.kl_stride = kl_stride, a.elbo = bound == MTAN_BOUND_ELBO;
    FLAT(bound_forward, (size_t)records, &a);
}

static void cuda_bound_backward(int32_t records, mtan_real *dlogp, mtan_real *dkl, int32_t kl_stride,
                                const mtan_real *weight, int32_t samples, mtan_real kl_weight, mtan_real seed,
                                const mtan_real *share) {
    struct bound a;
    memset(&a, 0, sizeof a);
    a.dlogp = AT(dlogp), a.dkl = AT(dkl), a.weight = AT(weight), a.share = AT(share);
    a.kl_weight = (double)kl_weight, a.seed = seed;
    a.records = records, a.samples = samples, a.kl_stride = kl_stride;
    FLAT(bound_backward, (size_t)records, &a);
}

/* samples 0: a block for each record, whose rows lie sample by sample */
static struct cross_entropy labels_of(const mtan_batch *b, const mtan_real *p, const int32_t *label,
                                      const mtan_real *weight, int32_t rows, int32_t samples, int32_t classes) {
    struct cross_entropy a;
    memset(&a, 0, sizeof a);
    a.p = AT(p), a.label = AT(label), a.classes = classes;
    if (weight) a.weight = AT(weight);
    a.rows = rows, a.samples = samples ? samples : b->samples;
    if (!samples) a.query0 = AT(b->query0), a.records = b->records;
    return a;
}

static size_t label_blocks(const struct cross_entropy *a) {
    return a->query0 ? (size_t)a->records : flat_blocks((size_t)a->rows, cross_entropy_forward_threads);
}

static void label_rows(mtan_cuda_kernel kernel, const struct cross_entropy *a) {
    mtan_cuda_launch(kernel, label_blocks(a), 1, 1, a);
}

static void cuda_cross_entropy_forward(const mtan_batch *b, mtan_real *loss, mtan_real *p, const mtan_real *x,
                                       const int32_t *label, const mtan_real *weight, int32_t rows, int32_t samples,
                                       int32_t classes) {
    struct cross_entropy a = labels_of(b, p, label, weight, rows, samples, classes);
    a.loss = AT(loss), a.x = AT(x);
    label_rows(KERNEL_cross_entropy_forward, &a);
}

static void cuda_cross_entropy_backward(const mtan_batch *b, mtan_real *dx, const mtan_real *p, const int32_t *label,
                                        const mtan_real *weight, mtan_real seed, int32_t rows, int32_t samples,
                                        int32_t classes) {
    struct cross_entropy a = labels_of(b, p, label, weight, rows, samples, classes);
    a.dx = AT(dx), a.seed = seed;
    label_rows(KERNEL_cross_entropy_backward, &a);
}

static struct numbers numbers_of(const mtan_batch *b, const mtan_real *p, const mtan_real *y, const mtan_targets *t,
                                 int32_t rows, int32_t samples) {
    struct numbers a;
    memset(&a, 0, sizeof a);
    a.rows = labels_of(b, p, NULL, NULL, rows, samples, t->count);
    a.y = AT(y), a.interval = t->interval, a.labels = t->task == MTAN_TASK_LABELS;
    a.levels = !a.labels && t->interval > 0 ? 3 : 1;
    return a;
}

static void cuda_numbers_forward(const mtan_batch *b, mtan_real *loss, mtan_real *p, const mtan_real *x,
                                 const mtan_real *y, const mtan_targets *t, int32_t rows, int32_t samples) {
    struct numbers a = numbers_of(b, p, y, t, rows, samples);
    a.rows.loss = AT(loss), a.rows.x = AT(x);
    mtan_cuda_launch(KERNEL_numbers_forward, label_blocks(&a.rows), 1, 1, &a);
}

static void cuda_numbers_backward(const mtan_batch *b, mtan_real *dx, const mtan_real *p, const mtan_real *y,
                                  const mtan_targets *t, mtan_real seed, int32_t rows, int32_t samples) {
    struct numbers a = numbers_of(b, p, y, t, rows, samples);
    a.rows.dx = AT(dx), a.rows.seed = seed;
    mtan_cuda_launch(KERNEL_numbers_backward, label_blocks(&a.rows), 1, 1, &a);
}

/* ---- moving rows ---- */

static struct rows rows_of(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx, int32_t cols,
                           int32_t samples) {
    struct rows a;
    memset(&a, 0, sizeof a);
    a.first = AT(b->first), a.length = AT(b->length), a.point0 = AT(b->point0);
    a.query0 = AT(b->query0), a.query_row = AT(b->query_row);
    a.y = AT(y), a.x = AT(x), a.ldy = (int)ldy, a.ldx = (int)ldx, a.cols = cols;
    a.records = b->records, a.samples = samples, a.steps = b->steps;
    return a;
}

static void cuda_spread_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx,
                                int32_t cols) {
    const struct rows a = rows_of(b, y, ldy, x, ldx, cols, 1);
    mtan_cuda_launch(KERNEL_spread_forward, (size_t)b->steps, 1, 1, &a);
}

static void cuda_spread_backward(const mtan_batch *b, mtan_real *dx, size_t ldx, const mtan_real *dy, size_t ldy,
                                 int32_t cols) {
    const struct rows a = rows_of(b, dx, ldx, dy, ldy, cols, 1);
    FLAT(spread_backward, area(b->records, cols), &a);
}

static void cuda_last_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx,
                              int32_t cols, int32_t samples) {
    const struct rows a = rows_of(b, y, ldy, x, ldx, cols, samples);
    FLAT(last_forward, area(b->records, samples) * (size_t)cols, &a);
}

static void cuda_last_backward(const mtan_batch *b, mtan_real *dx, size_t ldx, const mtan_real *dy, size_t ldy,
                               int32_t cols, int32_t samples) {
    const struct rows a = rows_of(b, dx, ldx, dy, ldy, cols, samples);
    FLAT(last_backward, area(b->records, samples) * (size_t)cols, &a);
}

/* Those that have a block for each record and sample. */
static void move_rows(mtan_cuda_kernel kernel, const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *x,
                      size_t ldx, int32_t cols) {
    const struct rows a = rows_of(b, y, ldy, x, ldx, cols, b->samples);
    mtan_cuda_launch(kernel, area(b->records, b->samples), 1, 1, &a);
}

static void cuda_regroup_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx,
                                 int32_t cols) {
    move_rows(KERNEL_regroup_forward, b, y, ldy, x, ldx, cols);
}

static void cuda_regroup_backward(const mtan_batch *b, mtan_real *dx, size_t ldx, const mtan_real *dy, size_t ldy,
                                  int32_t cols) {
    move_rows(KERNEL_regroup_backward, b, dx, ldx, dy, ldy, cols);
}

static void cuda_at_queries_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx,
                                    int32_t cols) {
    move_rows(KERNEL_at_queries_forward, b, y, ldy, x, ldx, cols);
}

static void cuda_at_queries_backward(const mtan_batch *b, mtan_real *dx, size_t ldx, const mtan_real *dy, size_t ldy,
                                     int32_t cols) {
    move_rows(KERNEL_at_queries_backward, b, dx, ldx, dy, ldy, cols);
}

/* ---- products of every record ---- */

static struct group group_of(const mtan_batch *b, mtan_real *c, size_t ldc, const mtan_real *x, size_t ldx,
                             const mtan_real *y, size_t ldy, int32_t inner) {
    const struct group a = {batch_of(b), AT(c), AT(x), AT(y), (int)ldc, (int)ldx, (int)ldy, inner, 1, 1, 0, 0};
    return a;
}

/* Tiles enough for the largest of the groups' results, (m, n). */
static void run_groups(mtan_cuda_kernel kernel, struct group *a, size_t groups, int32_t m, int32_t n) {
    a->tiles_m = (int)pieces((size_t)m, TILE), a->tiles_n = (int)pieces((size_t)n, TILE);
    mtan_cuda_launch(kernel, groups * (size_t)a->tiles_m * (size_t)a->tiles_n, 1, 1, a);
}

static void cuda_softmax_pairs_forward(const mtan_batch *b, mtan_real *weight) {
    struct group a = group_of(b, weight, 0, NULL, 0, NULL, 0, 0);
    a.tiles_m = (int)pieces((size_t)b->most_queries, softmax_pairs_forward_y);
    mtan_cuda_launch(KERNEL_softmax_pairs_forward, (size_t)b->records * (size_t)a.tiles_m, 1, 1, &a);
}

static void cuda_softmax_pairs_backward(const mtan_batch *b, mtan_real *dweight, const mtan_real *weight) {
    struct group a = group_of(b, dweight, 0, weight, 0, NULL, 0, 0);
    a.tiles_m = (int)pieces((size_t)b->most_queries, softmax_pairs_backward_y);
    mtan_cuda_launch(KERNEL_softmax_pairs_backward, (size_t)b->records * (size_t)a.tiles_m, 1, 1, &a);
}

/* With shared points the blocks of all records are one matrix. */
static void cuda_score_forward(const mtan_batch *b, mtan_real *score, const mtan_real *row, size_t ldr,
                               const mtan_real *point, size_t ldp, int32_t inner, int32_t decoder) {
    const int32_t rows = decoder ? b->queries : b->times;
    struct group a;
    if (!b->point0) {
        cuda_product_nt(score, (size_t)b->steps, row, ldr, point, ldp, rows, b->steps, inner, 0);
        return;
    }
    a = group_of(b, score, 0, row, ldr, point, ldp, inner);
    a.decoder = decoder;
    run_groups(KERNEL_score_forward, &a, (size_t)b->records, decoder ? b->most_queries : b->most_times, b->steps);
}

static void cuda_score_backward(const mtan_batch *b, mtan_real *drow, size_t ldr, mtan_real *dpoint, size_t ldp,
                                const mtan_real *dscore, const mtan_real *row, const mtan_real *point, int32_t inner,
                                int32_t decoder) {
    const int32_t rows = decoder ? b->queries : b->times, K = b->steps;
    const size_t B = (size_t)b->records, ld = (size_t)K;
    struct group a;
    if (!b->point0) {
        if (drow) cuda_product_nn(drow, ldr, dscore, ld, point, ldp, rows, inner, K, 1);
        if (dpoint) cuda_product_tn(dpoint, ldp, dscore, ld, row, ldr, K, inner, rows, 1);
        return;
    }
    a = group_of(b, drow, ldr, dscore, 0, point, ldp, inner);
    a.decoder = decoder;
    if (drow) run_groups(KERNEL_score_row_backward, &a, B, decoder ? b->most_queries : b->most_times, inner);
    a = group_of(b, dpoint, ldp, dscore, 0, row, ldr, inner);
    a.decoder = decoder;
    if (dpoint) run_groups(KERNEL_score_point_backward, &a, B, b->steps, inner);
}

static void cuda_values_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *weight,
                                const mtan_real *value, size_t ldv, int32_t cols) {
    struct group a = group_of(b, y, ldy, weight, 0, value, value_stride(b, ldv), cols);
    a.apart = (int)ldv;
    run_groups(KERNEL_values_forward, &a, area(b->records, b->samples), b->most_queries, cols);
}

static void cuda_values_backward(const mtan_batch *b, mtan_real *dweight, mtan_real *dvalue, const mtan_real *dy,
                                 size_t ldy, const mtan_real *weight, const mtan_real *value, size_t ldv,
                                 int32_t cols) {
    struct group a = group_of(b, dweight, 0, dy, ldy, value, value_stride(b, ldv), cols);
    a.apart = (int)ldv;
    run_groups(KERNEL_values_weight_backward, &a, (size_t)b->records, b->most_queries, b->steps);
    a = group_of(b, dvalue, value_stride(b, ldv), weight, 0, dy, ldy, cols);
    a.apart = (int)ldv;
    run_groups(KERNEL_values_backward, &a, area(b->records, b->samples), b->steps, cols);
}

/* ---- random numbers ---- */

typedef char ids_are_words[sizeof(uint64_t) == sizeof(unsigned long long) ? 1 : -1];

static struct random random_of(const mtan_batch *b, mtan_real *out, uint64_t seed, uint64_t epoch, int32_t width) {
    struct random a;
    memset(&a, 0, sizeof a);
    a.first = AT(b->first), a.length = AT(b->length), a.query0 = AT(b->query0), a.id = AT(b->id);
    a.out = AT(out), a.seed = seed, a.epoch = epoch, a.width = width;
    a.records = b->records, a.samples = b->samples;
    return a;
}

static void cuda_noise(const mtan_batch *b, mtan_real *z, uint64_t seed, uint64_t epoch, int32_t latent) {
    struct random a = random_of(b, z, seed, epoch, latent);
    if (b->one_latent) a.first = a.length = NULL;
    mtan_cuda_launch(KERNEL_noise, area(b->records, b->samples), 1, 1, &a);
}

static void cuda_mask(const mtan_batch *b, mtan_real *mask, double dropout, uint64_t seed, uint64_t step, int32_t width,
                      mtan_row_order order, int32_t hidden_layer) {
    struct random a = random_of(b, mask, seed, step, width);
    a.least = (unsigned long long)(dropout * 4294967296.0);
    a.layout = (int)order, a.hidden_layer = hidden_layer;
    mtan_cuda_launch(KERNEL_mask, (size_t)b->records, 1, 1, &a);
}

/* ---- the table ---- */

static const mtan_device device_cuda = {
    .send = mtan_cuda_send, .fetch = mtan_cuda_fetch, .send_ahead = mtan_cuda_send_ahead, .arrive = mtan_cuda_arrive};

/* Every kernel as it stands here: .map = cuda_map, and so on. */
#define CUDA_KERNEL(result, name, arguments) .name = cuda_##name,
const mtan_backend mtan_backend_cuda = {MTAN_KERNELS(CUDA_KERNEL, CUDA_KERNEL).name = "cuda", .fused = 1,
                                        .device = &device_cuda};
