/* See roofline.h. Sections: the counter; entries of the backend, of the device, and of one record; predictions. */
#include "roofline.h"

#include <string.h>

/* Most parameters of a kernel are pointers, and nothing here looks at what they point to. */
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif

/* ---- the counter ---- */

/* clang-format off */
#define ENTRIES(X)                                                                                                     \
    X(map) X(exp_parts) X(fill) X(scale) X(sum) X(sum_squares) X(copy) X(add) X(product_nn) X(product_nt)              \
    X(product_tn) X(embed_forward) X(embed_backward) X(embed_fixed) X(relu_forward) X(relu_backward)                   \
    X(tanh_backward) X(softplus_backward) X(softmax_forward) X(softmax_backward) X(score_forward) X(score_backward)    \
    X(attend_forward) X(attend_backward) X(attend_weights) X(rbf_forward) X(rbf_backward) X(rbf_weights)               \
    X(values_forward) X(values_backward) X(smooth_forward) X(smooth_backward) X(gru_forward) X(gru_backward)           \
    X(sample_forward) X(sample_backward) X(kl_forward) X(kl_backward) X(ratio_forward) X(ratio_backward)               \
    X(loglik_forward) X(loglik_backward) X(squared_error) X(bound_forward) X(bound_backward)                           \
    X(cross_entropy_forward) X(cross_entropy_backward) X(adam) X(adamax) X(pack) X(normal_pairs) X(pack_int8)          \
    X(product_int8) X(spread_forward) X(spread_backward) X(last_forward) X(last_backward) X(regroup_forward)           \
    X(regroup_backward) X(noise) X(mask)
/* clang-format on */

typedef enum {
#define X(name) ENTRY_##name,
    ENTRIES(X)
#undef X
        ENTRY_COUNT
} entry;

typedef char a_name_is_left_for_the_end[(int)ENTRY_COUNT < (int)ROOFLINE_ENTRIES ? 1 : -1];

static roofline counted;

void roofline_reset(void) {
    static const char *const names[] = {
#define X(name) #name,
        ENTRIES(X)
#undef X
    };
    memset(&counted, 0, sizeof counted);
    for (int i = 0; i < ENTRY_COUNT; i++) counted.entry[i].name = names[i];
}

void roofline_read(roofline *r) {
    if (!counted.entry[0].name) roofline_reset();
    *r = counted;
}

/* One call of an entry; read and written count numbers, of four bytes each. */
typedef struct work {
    double launches, flops, busy, turns, read, written;
} work;

static void count(entry e, work w) {
    roofline_entry *x = &counted.entry[e];
    x->calls++;
    x->launches += w.launches;
    x->flops += w.flops;
    x->busy += w.busy > w.flops ? w.busy : w.flops;
    x->turns += w.turns;
    x->read += 4 * w.read;
    x->written += 4 * w.written;
}

enum { FUNCTION = 20 }; /* flops of exp, log, sin, cos, tanh, sqrt */

/* n elements in one kernel: what is done, read and written for each. */
static work each(double n, double flops, double read, double written) {
    const work w = {n > 0, n * flops, 0, 0, n * read, n * written};
    return w;
}

static double area(int32_t rows, int32_t cols) {
    return (double)rows * cols;
}

static int64_t pieces(int64_t n, int64_t size) {
    return (n + size - 1) / size;
}

/* What all multiprocessors could do while `blocks` blocks of so many flops each are done. */
static double busy_while(int64_t blocks, double flops) {
    return (double)(ROOFLINE_UNITS * pieces(blocks, ROOFLINE_UNITS)) * flops;
}

static void wait_for(size_t bytes) {
    counted.fetched += (double)bytes;
    counted.copies += bytes > 0;
    counted.waits++;
}

/* ---- entries of the backend ---- */

static void map(mtan_function f, mtan_real *y, const mtan_real *x, size_t n) {
    count(ENTRY_map, each((double)n, FUNCTION, 1, 1));
}

static void exp_parts(mtan_real *significand, mtan_real *exponent, const mtan_real *x, size_t n) {
    count(ENTRY_exp_parts, each((double)n, FUNCTION, 1, 2));
}

static void fill(mtan_real *y, size_t n, mtan_real value) {
    count(ENTRY_fill, each((double)n, 0, 0, 1));
}

static void scale(mtan_real *y, size_t ldy, int32_t rows, int32_t cols, mtan_real factor) {
    count(ENTRY_scale, each(area(rows, cols), 1, 1, 1));
}

/* Sums of parts, their sum, and the way back of a double. */
static double total(entry e, size_t n, double flops) {
    const double parts = n <= 1024 ? 1 : n >= 256 * 1024 ? 256 : (double)pieces((int64_t)n, 1024);
    const work w = {2, (double)n * flops, 0, 0, (double)n + 2 * parts, 2 * parts + 2};
    count(e, w);
    wait_for(sizeof(double));
    return 0;
}

static double sum(const mtan_real *x, size_t n) {
    return total(ENTRY_sum, n, 1);
}

static double sum_squares(const mtan_real *x, size_t n) {
    return total(ENTRY_sum_squares, n, 2);
}

static void copy(mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx, int32_t rows, int32_t cols) {
    work w = each(area(rows, cols), 0, 1, 1);
    if (ldx == 0 && rows > 0) w.read = cols;
    count(ENTRY_copy, w);
}

/* How many rows a part of a sum over rows has. */
static int32_t part_depth(int32_t rows) {
    return rows <= 64 * 64 ? 64 : (rows + 63) / 64;
}

static void add_columns(int32_t rows, int32_t cols) {
    const int32_t depth = part_depth(rows);
    const double parts = rows > depth ? (double)pieces(rows, depth) * cols : 0;
    const work w = {parts > 0 ? 2 : cols > 0, area(rows, cols), 0, 0, area(rows, cols) + parts + cols, parts + cols};
    count(ENTRY_add, w);
}

static void add(mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx, int32_t rows, int32_t cols) {
    if (ldy == 0 && rows > 1) add_columns(rows, cols);
    else count(ENTRY_add, each(area(rows, cols), 1, 2, 1));
}

enum { TILE = 64 };

/* Few tiles and long sums are cut. */
static int64_t split_count(int64_t tiles, int32_t k) {
    const int64_t wanted = pieces(96, tiles), most = k / 512 < 32 ? k / 512 : 32;
    if (k < 1024 || tiles >= 96) return 1;
    return wanted < most ? wanted : most;
}

static void product(entry e, int32_t m, int32_t n, int32_t k, int32_t again) {
    const double mn = area(m, n), mk = area(m, k), nk = area(n, k);
    work w = {0, 0, 0, 0, 0, 0};
    if (m > 0 && n > 0) {
        const int64_t tiles = pieces(m, TILE) * pieces(n, TILE), splits = split_count(tiles, k);
        const double depth = (double)pieces(k, splits), partial = splits > 1 ? (double)splits * mn : 0;
        w.launches = splits > 1 ? 2 : 1;
        w.flops = 2 * mn * k;
        w.busy = busy_while(tiles * splits, 2.0 * TILE * TILE * depth);
        w.read = mk + nk + partial + (again ? mn : 0);
        w.written = mn + partial;
    }
    count(e, w);
}

static void product_nn(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *b, size_t ldb,
                       int32_t m, int32_t n, int32_t k, int32_t again) {
    product(ENTRY_product_nn, m, n, k, again);
}

static void product_nt(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *b, size_t ldb,
                       int32_t m, int32_t n, int32_t k, int32_t again) {
    product(ENTRY_product_nt, m, n, k, again);
}

static void product_tn(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *b, size_t ldb,
                       int32_t m, int32_t n, int32_t k, int32_t again) {
    product(ENTRY_product_tn, m, n, k, again);
}

static size_t pack_count(int32_t n, int32_t k) {
    return (size_t)n * (size_t)k;
}

static void pack(mtan_real *packed, const mtan_real *b, size_t ldb, int32_t n, int32_t k) {
    count(ENTRY_pack, each(area(n, k), 0, 1, 1));
}

static void product_packed(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *packed, int32_t m,
                           int32_t n, int32_t k, int32_t again) {
    product(ENTRY_product_nn, m, n, k, again);
}

static size_t pack_int8_count(int32_t n, int32_t k) {
    return (size_t)n + (pack_count(n, k) + sizeof(mtan_real) - 1) / sizeof(mtan_real);
}

static void pack_int8(mtan_real *packed, const mtan_real *b, size_t ldb, int32_t n, int32_t k) {
    count(ENTRY_pack_int8, each(area(n, k), 2, 1, 0.25));
}

static void int8(int32_t m, int32_t n, int32_t k, int32_t again) {
    work w = each(area(m, n), 2.0 * k, again ? 1 : 0, 1);
    w.read += area(m, k) + area(n, k) / 4 + n;
    count(ENTRY_product_int8, w);
}

static void product_int8(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const mtan_real *packed, int32_t m,
                         int32_t n, int32_t k, int32_t again) {
    int8(m, n, k, again);
}

static void product_nt_int8(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const int8_t *b,
                            const mtan_real *scales, int32_t m, int32_t n, int32_t k, int32_t again) {
    int8(m, n, k, again);
}

static void product_nn_int8(mtan_real *c, size_t ldc, const mtan_real *a, size_t lda, const int8_t *b, int32_t m,
                            int32_t n, int32_t k, int32_t again) {
    int8(m, n, k, again);
}

static void embed_forward(mtan_real *y, const mtan_real *time, const mtan_real *lw, const mtan_real *lb,
                          const mtan_real *pw, const mtan_real *pb, int32_t times, int32_t embed) {
    work w = each(area(times, embed), FUNCTION + 2, 0, 1);
    w.read = times + 2.0 * embed;
    count(ENTRY_embed_forward, w);
}

static void embed_backward(mtan_real *dlw, mtan_real *dlb, mtan_real *dpw, mtan_real *dpb, const mtan_real *dy,
                           const mtan_real *time, const mtan_real *pw, const mtan_real *pb, int32_t times,
                           int32_t embed) {
    const double partial = times > 0 ? 2.0 * embed * (double)pieces(times, part_depth(times)) : 0;
    work w = each(area(times, embed), FUNCTION + 5, 1, 0);
    w.launches *= 2;
    w.read += times + 4.0 * embed + partial;
    w.written = 2.0 * embed + partial;
    count(ENTRY_embed_backward, w);
}

static void embed_fixed(mtan_real *y, const mtan_real *time, mtan_real base, mtan_real factor, int32_t times,
                        int32_t embed) {
    work w = each(area(times, embed / 2), 3 * FUNCTION, 0, 2);
    w.read = times;
    count(ENTRY_embed_fixed, w);
}

static void relu_forward(mtan_real *y, size_t n) {
    count(ENTRY_relu_forward, each((double)n, 1, 1, 1));
}

static void relu_backward(mtan_real *dy, const mtan_real *y, size_t n) {
    count(ENTRY_relu_backward, each((double)n, 1, 2, 1));
}

static void tanh_backward(mtan_real *dy, const mtan_real *y, size_t n) {
    count(ENTRY_tanh_backward, each((double)n, 3, 2, 1));
}

static void softplus_backward(mtan_real *dx, const mtan_real *dy, const mtan_real *x, size_t n) {
    count(ENTRY_softplus_backward, each((double)n, FUNCTION + 3, 3, 1));
}

static void softmax_forward(mtan_real *y, int32_t rows, int32_t cols) {
    count(ENTRY_softmax_forward, each(area(rows, cols), FUNCTION + 4, 1, 1));
}

static void softmax_backward(mtan_real *dy, const mtan_real *y, int32_t rows, int32_t cols) {
    count(ENTRY_softmax_backward, each(area(rows, cols), 4, 2, 1));
}

static void sample_forward(mtan_real *z, const mtan_real *posterior, const mtan_real *noise, int32_t rows,
                           int32_t samples, int32_t latent) {
    work w = each(area(rows, samples) * latent, FUNCTION + 3, 1, 1);
    w.read += 2 * area(rows, latent);
    count(ENTRY_sample_forward, w);
}

static void sample_backward(mtan_real *dposterior, const mtan_real *dz, const mtan_real *z, const mtan_real *posterior,
                            int32_t rows, int32_t samples, int32_t latent) {
    work w = each(area(rows, latent), 4.0 * samples, 2.0 * samples + 4, 2);
    count(ENTRY_sample_backward, w);
}

static void cross_entropy_forward(mtan_real *loss, mtan_real *p, const mtan_real *x, const int32_t *label, int32_t rows,
                                  int32_t samples, int32_t classes) {
    work w = each(area(rows, classes), FUNCTION + 4, 1, 1);
    w.flops += (double)rows * FUNCTION;
    w.read += (double)rows / samples, w.written += rows;
    count(ENTRY_cross_entropy_forward, w);
}

static void cross_entropy_backward(mtan_real *dx, const mtan_real *p, const int32_t *label, mtan_real seed,
                                   int32_t rows, int32_t samples, int32_t classes) {
    work w = each(area(rows, classes), 3, 2, 1);
    w.read += (double)rows / samples;
    count(ENTRY_cross_entropy_backward, w);
}

static void adam(mtan_real *w, mtan_real *m, mtan_real *v, const mtan_real *g, size_t n, const mtan_real c[6]) {
    count(ENTRY_adam, each((double)n, FUNCTION + 11, 4, 3));
}

static void adamax(mtan_real *w, mtan_real *m, mtan_real *u, const mtan_real *g, size_t n, const mtan_real c[6]) {
    count(ENTRY_adamax, each((double)n, 10, 4, 3));
}

static void normal_pairs(mtan_real *out, const mtan_real *u, const mtan_real *w, const mtan_real *v, size_t n) {
    count(ENTRY_normal_pairs, each((double)n, 4 * FUNCTION, 3, 2));
}

/* ---- entries of the device: a batch in each call ---- */

static int32_t send(const void *from, size_t bytes) {
    counted.sent += (double)bytes;
    counted.copies++;
    return 1;
}

static int32_t fetch(void *to, size_t bytes) {
    if (bytes > 0) memset(to, 0, bytes);
    wait_for(bytes);
    return 1;
}

static int32_t send_ahead(const void *from, size_t bytes) {
    counted.ahead += (double)bytes;
    return 1;
}

static int32_t arrive(void) {
    return 1;
}

/* Points of the sequences: each record's own, or one list for all. */
static double points(const mtan_batch *b) {
    return b->point0 ? b->rows : b->steps;
}

/* Pairs of a record's event and a step of its sequence, over all records. */
static double event_steps(const mtan_batch *b) {
    double n = 0;
    for (int32_t i = 0; i < b->records; i++) {
        const int32_t *begin = b->begin + (size_t)i * (size_t)(b->channels + 1);
        n += (double)(begin[b->channels] - begin[0]) * b->length[i];
    }
    return n;
}

static void score_forward(const mtan_batch *b, mtan_real *score, const mtan_real *row, size_t ldr,
                          const mtan_real *point, size_t ldp, int32_t inner, int32_t decoder) {
    work w = each(decoder ? b->pairs : b->scores, 2.0 * inner, 0, 1);
    w.read = ((decoder ? b->queries : b->times) + points(b)) * inner;
    count(ENTRY_score_forward, w);
}

static void score_backward(const mtan_batch *b, mtan_real *drow, size_t ldr, mtan_real *dpoint, size_t ldp,
                           const mtan_real *dscore, const mtan_real *row, const mtan_real *point, int32_t inner,
                           int32_t decoder) {
    const double rows = (decoder ? b->queries : b->times) * (double)inner, at = points(b) * inner;
    const double launches = (drow != NULL) + (dpoint != NULL);
    work w = each(decoder ? b->pairs : b->scores, launches * 2.0 * inner, launches, 0);
    w.launches *= launches;
    w.read += launches * (rows + at);
    w.written = (drow ? rows : 0) + (dpoint ? at : 0);
    count(ENTRY_score_backward, w);
}

/* A row and a value of every event; of every score its weight and, for every step and channel, y and the total. */
static void attend_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *score, mtan_real *weight,
                           mtan_real *sums) {
    const double cells = area(b->rows, b->channels);
    work w = each(b->scores, FUNCTION + 2, 1, 1);
    w.launches = cells > 0;
    w.flops += 3 * event_steps(b) + cells;
    w.read += 2.0 * b->events;
    w.written += 2 * cells;
    count(ENTRY_attend_forward, w);
}

static void attend_backward(const mtan_batch *b, mtan_real *dscore, const mtan_real *dy, const mtan_real *y, size_t ldy,
                            const mtan_real *score, const mtan_real *weight, const mtan_real *sums) {
    const double cells = area(b->rows, b->channels);
    work w = each(b->scores, 2, 3, 1);
    w.launches = cells > 0;
    w.flops += 4 * event_steps(b) + cells;
    w.read += 2.0 * b->events + 3 * cells;
    count(ENTRY_attend_backward, w);
}

static void rbf_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *query, const mtan_real *time,
                        const mtan_real *beta) {
    work w = each(area(b->rows, b->channels), 1, 0, 1);
    w.flops += (FUNCTION + 6) * event_steps(b);
    w.read = 2.0 * b->events + b->times + points(b) + b->channels;
    count(ENTRY_rbf_forward, w);
}

static void rbf_backward(const mtan_batch *b, mtan_real *dbeta, const mtan_real *dy, const mtan_real *y, size_t ldy,
                         const mtan_real *query, const mtan_real *time, const mtan_real *beta) {
    const double parts = area(b->records, b->channels);
    work w = each(area(b->rows, b->channels), 2, 2, 0);
    w.launches = parts > 0 ? 2 : 0;
    w.flops += (FUNCTION + 9) * event_steps(b);
    w.read += 2.0 * b->events + b->times + points(b) + 2.0 * b->channels + parts;
    w.written = parts + b->channels;
    count(ENTRY_rbf_backward, w);
}

static void softmax_pairs_forward(const mtan_batch *b, mtan_real *weight) {
    count(ENTRY_softmax_forward, each(b->pairs, FUNCTION + 4, 1, 1));
}

static void softmax_pairs_backward(const mtan_batch *b, mtan_real *dweight, const mtan_real *weight) {
    count(ENTRY_softmax_backward, each(b->pairs, 4, 2, 1));
}

static void values_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *weight,
                           const mtan_real *value, size_t ldv, int32_t cols) {
    const double columns = area(b->samples, cols);
    work w = each(b->pairs, 2 * columns, 1, 0);
    w.read += b->rows * columns;
    w.written = b->queries * columns;
    count(ENTRY_values_forward, w);
}

static void values_backward(const mtan_batch *b, mtan_real *dweight, mtan_real *dvalue, const mtan_real *dy, size_t ldy,
                            const mtan_real *weight, const mtan_real *value, size_t ldv, int32_t cols) {
    const double columns = area(b->samples, cols);
    work w = each(b->pairs, 4 * columns, 2, 1);
    w.launches *= 2;
    w.read += 2 * (b->rows + b->queries) * columns;
    w.written += b->rows * columns;
    count(ENTRY_values_backward, w);
}

/* The nearest key of each query, then the values. */
static void smooth_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *query, const mtan_real *key,
                           const mtan_real *beta, const mtan_real *value, size_t ldv, int32_t cols) {
    const double columns = area(b->samples, cols), rows = area(b->queries, b->samples);
    work w = each(b->pairs, (FUNCTION + 6) * columns + 3.0 * b->samples, 0, 0);
    w.launches = rows > 0 ? 2 : 0;
    w.read = b->rows * columns + 2 * (b->queries + points(b)) + rows + cols;
    w.written = rows + b->queries * columns;
    count(ENTRY_smooth_forward, w);
}

/* The nearest keys, slopes, gradients of the values, and the sums of the slopes in two kernels. */
static void smooth_backward(const mtan_batch *b, mtan_real *dvalue, mtan_real *dbeta, const mtan_real *dy,
                            const mtan_real *y, size_t ldy, const mtan_real *query, const mtan_real *key,
                            const mtan_real *beta, const mtan_real *value, size_t ldv, int32_t cols) {
    const double columns = area(b->samples, cols), rows = area(b->queries, b->samples);
    const double parts = rows > 0 ? (double)pieces((int64_t)rows, part_depth((int32_t)rows)) * cols : 0;
    work w = each(b->pairs, (2 * FUNCTION + 16) * columns + 3.0 * b->samples, 0, 0);
    w.launches = rows > 0 ? 5 : 0;
    w.read = 2 * b->rows * columns + 5 * b->queries * columns + 3 * (b->queries + points(b)) + 2 * rows + parts;
    w.written = rows + 2 * b->queries * columns + b->rows * columns + parts + cols;
    count(ENTRY_smooth_backward, w);
}

enum { ON_CHIP = 128, WHOLE_ROWS = 6, STEP_ROWS = 16, STEP_UNITS = 32, BACK_UNITS = 64 };

/* Up to 128 units in one launch, a block for every six rows; more in one launch for each step. `gates` flops, `read`
 * and `written` numbers for each unit of a row; in launches for each step also what the last one left in memory. */
static void sequence(entry e, const mtan_batch *b, int32_t hidden, int32_t samples, int32_t step_units, double gates,
                     double read, double written) {
    const int whole = hidden <= ON_CHIP;
    const int64_t rows = (int64_t)b->records * samples, block_rows = whole ? WHOLE_ROWS : STEP_ROWS;
    const int64_t units = whole ? hidden : step_units;
    const double all = area(b->rows, samples) * hidden, weights = 3 * area(hidden, hidden);
    work w = each(all, gates + 6.0 * hidden, read + !whole, written + !whole);
    if (all > 0) {
        const int64_t blocks = pieces(rows, block_rows) * pieces(hidden, units);
        w.launches = whole ? 1 : b->steps;
        w.turns = (double)(b->steps * pieces(blocks, ROOFLINE_UNITS));
        w.busy = b->steps * busy_while(blocks, 6.0 * (double)(block_rows * units) * hidden);
        w.read += w.launches * weights;
    }
    count(e, w);
}

static void gru_forward(const mtan_batch *b, mtan_real *y, size_t ldy, mtan_real *g, size_t ldg, mtan_real *hn,
                        const mtan_real *w, size_t ldw, const mtan_real *bias, int32_t hidden, int32_t samples,
                        int32_t reverse) {
    sequence(ENTRY_gru_forward, b, hidden, samples, STEP_UNITS, 3 * FUNCTION + 10, 3, hn ? 5 : 4);
}

static void gru_backward(const mtan_batch *b, mtan_real *g, size_t ldg, mtan_real *hn, mtan_real *dh,
                         const mtan_real *dy, const mtan_real *y, size_t ldy, const mtan_real *w, size_t ldw,
                         int32_t hidden, int32_t samples, int32_t reverse) {
    sequence(ENTRY_gru_backward, b, hidden, samples, BACK_UNITS, 20, 6, 4);
}

static double latent_rows(const mtan_batch *b) {
    return b->one_latent ? b->records : b->rows;
}

static void kl_forward(const mtan_batch *b, mtan_real *kl, const mtan_real *posterior, int32_t latent) {
    work w = each(latent_rows(b) * latent, FUNCTION + 5, 2, 0);
    w.written = b->records;
    count(ENTRY_kl_forward, w);
}

static void kl_backward(const mtan_batch *b, mtan_real *dposterior, const mtan_real *posterior, const mtan_real *dkl,
                        int32_t latent) {
    work w = each(latent_rows(b) * latent, FUNCTION + 5, 4, 2);
    w.read += b->records;
    count(ENTRY_kl_backward, w);
}

static void ratio_forward(const mtan_batch *b, mtan_real *ratio, const mtan_real *z, const mtan_real *posterior,
                          const mtan_real *normals, int32_t latent) {
    work w = each(latent_rows(b) * latent, 6.0 * b->samples, 2.0 * b->samples + 1, 0);
    w.written = area(b->records, b->samples);
    count(ENTRY_ratio_forward, w);
}

static void ratio_backward(const mtan_batch *b, mtan_real *dz, mtan_real *dposterior, const mtan_real *z,
                           const mtan_real *dratio, int32_t latent) {
    work w = each(latent_rows(b) * latent, 4.0 * b->samples, 2.0 * b->samples + 1, b->samples + 1.0);
    w.read += area(b->records, b->samples);
    count(ENTRY_ratio_backward, w);
}

/* A cell is a row, a channel and a value. */
static void loglik_forward(const mtan_batch *b, mtan_real *logp, const mtan_real *prediction, double std) {
    work w = each(b->cells, 4.0 * b->samples, b->samples + 3.0, 0);
    w.launches = b->records > 0;
    w.written = area(b->records, b->samples);
    count(ENTRY_loglik_forward, w);
}

static void loglik_backward(const mtan_batch *b, mtan_real *dprediction, const mtan_real *prediction,
                            const mtan_real *dlogp, double std) {
    work w = each(b->cells, 4.0 * b->samples, 2.0 * b->samples + 3, b->samples);
    w.launches = b->records > 0;
    w.read += area(b->records, b->samples);
    count(ENTRY_loglik_backward, w);
}

static void squared_error(const mtan_batch *b, double *error, const mtan_real *prediction) {
    work w = each(b->cells, b->samples + 3.0, b->samples + 3.0, 0);
    w.launches = b->records > 0;
    w.written = 2.0 * b->records;
    count(ENTRY_squared_error, w);
}

static void bound_forward(int32_t records, mtan_real *loss, mtan_real *weight, const mtan_real *logp,
                          const mtan_real *kl, int32_t kl_stride, int32_t samples, mtan_bound bound, double kl_weight,
                          const mtan_real *share) {
    count(ENTRY_bound_forward, each(records, samples * (FUNCTION + 5.0) + FUNCTION, 2.0 * samples + 1, samples + 1.0));
}

static void bound_backward(int32_t records, mtan_real *dlogp, mtan_real *dkl, int32_t kl_stride,
                           const mtan_real *weight, int32_t samples, mtan_real kl_weight, mtan_real seed,
                           const mtan_real *share) {
    count(ENTRY_bound_backward, each(records, samples * 4.0, 3.0 * samples + 1, 2.0 * samples));
}

static void cross_entropy_forward_batch(const mtan_batch *b, mtan_real *loss, mtan_real *p, const mtan_real *x,
                                        const int32_t *label, int32_t classes) {
    cross_entropy_forward(loss, p, x, label, b->queries * b->samples, b->samples, classes);
}

static void cross_entropy_backward_batch(const mtan_batch *b, mtan_real *dx, const mtan_real *p, const int32_t *label,
                                         mtan_real seed, int32_t classes) {
    cross_entropy_backward(dx, p, label, seed, b->queries * b->samples, b->samples, classes);
}

static void spread_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx,
                           int32_t cols) {
    work w = each(area(b->rows, cols), 0, 0, 1);
    w.read = area(b->records, cols);
    count(ENTRY_spread_forward, w);
}

static void spread_backward(const mtan_batch *b, mtan_real *dx, size_t ldx, const mtan_real *dy, size_t ldy,
                            int32_t cols) {
    work w = each(area(b->rows, cols), 1, 1, 0);
    w.launches = area(b->records, cols) > 0;
    w.read += area(b->records, cols);
    w.written = area(b->records, cols);
    count(ENTRY_spread_backward, w);
}

static void last_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx, int32_t cols,
                         int32_t samples) {
    count(ENTRY_last_forward, each(area(b->records, samples) * cols, 0, 1, 1));
}

static void last_backward(const mtan_batch *b, mtan_real *dx, size_t ldx, const mtan_real *dy, size_t ldy, int32_t cols,
                          int32_t samples) {
    count(ENTRY_last_backward, each(area(b->records, samples) * cols, 1, 2, 1));
}

static void regroup_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx,
                            int32_t cols) {
    count(ENTRY_regroup_forward, each(area(b->rows, b->samples) * cols, 0, 1, 1));
}

static void regroup_backward(const mtan_batch *b, mtan_real *dx, size_t ldx, const mtan_real *dy, size_t ldy,
                             int32_t cols) {
    count(ENTRY_regroup_backward, each(area(b->rows, b->samples) * cols, 1, 2, 1));
}

static void noise(const mtan_batch *b, mtan_real *z, const uint64_t *id, uint64_t seed, uint64_t epoch,
                  int32_t latent) {
    work w = each(latent_rows(b) * area(b->samples, latent), 3 * FUNCTION, 0, 1);
    w.read = 2.0 * b->records;
    count(ENTRY_noise, w);
}

static void mask(const mtan_batch *b, mtan_real *out, const uint64_t *id, double dropout, uint64_t seed, uint64_t step,
                 int32_t width, int32_t layout, int32_t hidden_layer) {
    const int32_t rows = layout == 0 ? b->records : layout == 1 ? b->rows : b->queries;
    work w = each(area(rows, b->samples) * width, FUNCTION, 0, 1);
    w.read = 2.0 * b->records;
    count(ENTRY_mask, w);
}

/* ---- entries of the backend that take one record: a batch of one ---- */

/* A sequence of `queries` steps. */
static mtan_batch one_record(const int32_t *begin, const int32_t *queries, int32_t keys, int32_t channels) {
    mtan_batch b;
    memset(&b, 0, sizeof b);
    b.records = b.samples = 1;
    b.channels = channels;
    b.steps = b.rows = *queries;
    b.length = (int32_t *)(uintptr_t)queries; /* read alone */
    b.begin = (int32_t *)(uintptr_t)begin;
    b.times = keys;
    b.scores = keys * *queries;
    b.events = begin[channels] - begin[0];
    return b;
}

static void attend_forward_one(const mtan_attend *a, mtan_real *y, size_t ldy) {
    const mtan_batch b = one_record(a->begin, &a->queries, a->keys, a->channels);
    attend_forward(&b, y, ldy, a->score, a->weight, a->total);
}

static void attend_backward_one(const mtan_attend *a, mtan_real *dscore, const mtan_real *dy, size_t lddy,
                                const mtan_real *y, size_t ldy) {
    const mtan_batch b = one_record(a->begin, &a->queries, a->keys, a->channels);
    attend_backward(&b, dscore, dy, y, ldy, a->score, a->weight, a->total);
}

static void attend_weights(const mtan_attend *a, mtan_real *weight, int32_t channel) {
    count(ENTRY_attend_weights, each(area(a->queries, a->keys), 1, 1, 1));
}

static void rbf_forward_one(const mtan_rbf *a, mtan_real *y, size_t ldy) {
    const mtan_batch b = one_record(a->begin, &a->queries, a->keys, a->channels);
    rbf_forward(&b, y, ldy, a->query, a->time, a->beta);
}

static void rbf_backward_one(const mtan_rbf *a, mtan_real *dbeta, const mtan_real *dy, size_t lddy, const mtan_real *y,
                             size_t ldy) {
    const mtan_batch b = one_record(a->begin, &a->queries, a->keys, a->channels);
    rbf_backward(&b, dbeta, dy, y, ldy, a->query, a->time, a->beta);
}

static void rbf_weights(const mtan_rbf *a, mtan_real *weight, int32_t channel) {
    count(ENTRY_rbf_weights, each(area(a->queries, a->keys), FUNCTION, 0, 1));
}

static mtan_batch one_smooth(int32_t queries, int32_t keys) {
    mtan_batch b;
    memset(&b, 0, sizeof b);
    b.records = b.samples = 1;
    b.steps = b.rows = keys;
    b.queries = queries;
    b.pairs = queries * keys;
    return b;
}

static void smooth_forward_one(mtan_real *y, size_t ldy, const mtan_real *query, const mtan_real *key,
                               const mtan_real *beta, const mtan_real *value, size_t ldv, int32_t queries, int32_t keys,
                               int32_t cols) {
    const mtan_batch b = one_smooth(queries, keys);
    smooth_forward(&b, y, ldy, query, key, beta, value, ldv, cols);
}

static void smooth_backward_one(mtan_real *dvalue, mtan_real *dbeta, const mtan_real *dy, const mtan_real *y,
                                size_t ldy, const mtan_real *query, const mtan_real *key, const mtan_real *beta,
                                const mtan_real *value, size_t ldv, int32_t queries, int32_t keys, int32_t cols) {
    const mtan_batch b = one_smooth(queries, keys);
    smooth_backward(&b, dvalue, dbeta, dy, y, ldy, query, key, beta, value, ldv, cols);
}

/* Gates alone: their product is a call of its own. */
static void gru_forward_one(mtan_real *h, size_t ldh, mtan_real *g, size_t ldg, mtan_real *hn, const mtan_real *gh,
                            const mtan_real *before, size_t ldb, int32_t rows, int32_t hidden) {
    count(ENTRY_gru_forward, each(area(rows, hidden), 3 * FUNCTION + 10, before ? 7 : 6, hn ? 5 : 4));
}

static void gru_backward_one(mtan_real *dh, mtan_real *g, size_t ldg, mtan_real *hn, const mtan_real *before,
                             size_t ldb, int32_t rows, int32_t hidden) {
    count(ENTRY_gru_backward, each(area(rows, hidden), 20, before ? 6 : 5, 5));
}

static mtan_batch one_latent(int32_t steps, int32_t samples) {
    mtan_batch b;
    memset(&b, 0, sizeof b);
    b.records = 1, b.samples = samples;
    b.rows = steps;
    return b;
}

static void kl_forward_one(mtan_real *kl, const mtan_real *posterior, const int32_t *first, int32_t position,
                           int32_t steps, int32_t latent) {
    const mtan_batch b = one_latent(steps, 1);
    kl_forward(&b, kl, posterior, latent);
}

static void kl_backward_one(mtan_real *dposterior, const mtan_real *posterior, const mtan_real *dkl,
                            const int32_t *first, int32_t position, int32_t steps, int32_t latent) {
    const mtan_batch b = one_latent(steps, 1);
    kl_backward(&b, dposterior, posterior, dkl, latent);
}

static void ratio_forward_one(mtan_real *ratio, const mtan_real *z, const mtan_real *posterior,
                              const mtan_real *normals, const int32_t *first, int32_t position, int32_t steps,
                              int32_t samples, int32_t sample, int32_t latent) {
    const mtan_batch b = one_latent(steps, 1);
    ratio_forward(&b, ratio, z, posterior, normals, latent);
}

static void ratio_backward_one(mtan_real *dz, mtan_real *dposterior, const mtan_real *z, const mtan_real *dratio,
                               const int32_t *first, int32_t position, int32_t steps, int32_t samples, int32_t sample,
                               int32_t latent) {
    const mtan_batch b = one_latent(steps, 1);
    ratio_backward(&b, dz, dposterior, z, dratio, latent);
}

static mtan_batch one_target(int32_t cells, int32_t samples) {
    mtan_batch b;
    memset(&b, 0, sizeof b);
    b.records = 1, b.samples = samples;
    b.cells = cells;
    return b;
}

static void loglik_forward_one(mtan_real *logp, const mtan_real *prediction, int32_t channels, const int32_t *row,
                               const int32_t *channel, const mtan_real *value, int32_t cells, double std) {
    const mtan_batch b = one_target(cells, 1);
    loglik_forward(&b, logp, prediction, std);
}

static void loglik_backward_one(mtan_real *dprediction, const mtan_real *prediction, const mtan_real *dlogp,
                                int32_t channels, const int32_t *row, const int32_t *channel, const mtan_real *value,
                                int32_t cells, double std) {
    const mtan_batch b = one_target(cells, 1);
    loglik_backward(&b, dprediction, prediction, dlogp, std);
}

static double squared_error_one(const mtan_real *prediction, size_t apart, int32_t samples, int32_t channels,
                                const int32_t *row, const int32_t *channel, const mtan_real *value, int32_t cells) {
    const mtan_batch b = one_target(cells, samples);
    squared_error(&b, NULL, prediction);
    wait_for(sizeof(double));
    return 0;
}

static void bound_forward_one(mtan_real *loss, mtan_real *weight, const mtan_real *logp, const mtan_real *kl,
                              int32_t kl_stride, int32_t samples, mtan_bound bound, double kl_weight,
                              const mtan_real *share) {
    bound_forward(1, loss, weight, logp, kl, kl_stride, samples, bound, kl_weight, share);
}

static void bound_backward_one(mtan_real *dlogp, mtan_real *dkl, int32_t kl_stride, const mtan_real *weight,
                               int32_t samples, mtan_real kl_weight, mtan_real seed, const mtan_real *share) {
    bound_backward(1, dlogp, dkl, kl_stride, weight, samples, kl_weight, seed, share);
}

/* ---- the tables ---- */

/* clang-format off */
static const mtan_device device = {
    send, fetch, send_ahead, arrive, score_forward, score_backward, attend_forward, attend_backward, rbf_forward,
    rbf_backward, softmax_pairs_forward, softmax_pairs_backward, values_forward, values_backward, smooth_forward,
    smooth_backward, gru_forward, gru_backward, kl_forward, kl_backward, ratio_forward, ratio_backward,
    loglik_forward, loglik_backward, squared_error, bound_forward, bound_backward, cross_entropy_forward_batch,
    cross_entropy_backward_batch, spread_forward, spread_backward, last_forward, last_backward, regroup_forward,
    regroup_backward, noise, mask
};

const mtan_backend roofline_backend = {
    "roofline", 1, map, exp_parts, fill, scale, sum, sum_squares, copy, add, product_nn, product_nt, product_tn,
    embed_forward, embed_backward, embed_fixed, relu_forward, relu_backward, tanh_backward, softplus_backward,
    softmax_forward, softmax_backward, attend_forward_one, attend_backward_one, attend_weights, rbf_forward_one,
    rbf_backward_one, rbf_weights, smooth_forward_one, smooth_backward_one, gru_forward_one, gru_backward_one,
    sample_forward, sample_backward, kl_forward_one, kl_backward_one, ratio_forward_one, ratio_backward_one,
    loglik_forward_one, loglik_backward_one, bound_forward_one, bound_backward_one, squared_error_one,
    cross_entropy_forward, cross_entropy_backward, adam, adamax, pack_count, pack, product_packed, normal_pairs,
    pack_int8_count, pack_int8, product_int8, product_nt_int8, product_nn_int8, &device
};
/* clang-format on */

/* ---- predictions ---- */

/* As published, boost clocks: GM200 with 3072 cores and 336.5 GB/s, GP102 with 3584 cores and 480 GB/s. */
const roofline_card roofline_cards[] = {{"titanx-maxwell", "Maxwell", 3072 * 1.075e9 * 2, 336.5e9},
                                        {"titanx-pascal", "Pascal", 3584 * 1.531e9 * 2, 480e9},
                                        {NULL, NULL, 0, 0}};

enum { LAUNCH, TURN, FLOPS_SHARE, BANDWIDTH_SHARE, BUS, WAIT };

const roofline_assumption roofline_assumptions[] = {
    {"launch_seconds", 5e-6, "a launch or a copy"},
    {"turn_seconds", 2e-6, "a step of a GRU beside its products: two barriers and the gates, one after the other"},
    {"flops_share", 0.5, "of the peak at boost clock that kernels reach"},
    {"bandwidth_share", 0.75, "of the memory's bandwidth that kernels reach"},
    {"bus_bytes_per_second", 12e9, "PCIe 3.0 x16, of 15.75e9"},
    {"wait_seconds", 10e-6, "each time the host waits for the GPU"},
    {NULL, 0, NULL}};

static double assumed(int i) {
    return roofline_assumptions[i].value;
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

double roofline_seconds(const roofline_entry *e, const roofline_card *card) {
    const double arithmetic = e->busy / (assumed(FLOPS_SHARE) * card->flops);
    const double memory = (e->read + e->written) / (assumed(BANDWIDTH_SHARE) * card->bandwidth);
    return e->launches * assumed(LAUNCH) + larger(e->turns * assumed(TURN) + arithmetic, memory);
}

double roofline_copy_seconds(const roofline *r) {
    return r->copies * assumed(LAUNCH) + r->waits * assumed(WAIT) + (r->sent + r->fetched) / assumed(BUS);
}

double roofline_total(const roofline *r, const roofline_card *card) {
    double sum_of_all = roofline_copy_seconds(r);
    for (int i = 0; r->entry[i].name; i++) sum_of_all += roofline_seconds(&r->entry[i], card);
    return sum_of_all;
}

roofline_entry roofline_sum(const roofline *r) {
    roofline_entry s;
    memset(&s, 0, sizeof s);
    s.name = "all";
    for (int i = 0; r->entry[i].name; i++) {
        const roofline_entry *e = &r->entry[i];
        s.calls += e->calls, s.launches += e->launches, s.flops += e->flops, s.busy += e->busy, s.turns += e->turns;
        s.read += e->read, s.written += e->written;
    }
    return s;
}
