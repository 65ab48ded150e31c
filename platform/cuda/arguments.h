/* The arguments of the kernels in kernels.cu: each kernel takes one structure, by value. The host (C99) and the device
 * (CUDA C++) compile the same file, so they cannot disagree; it includes nothing.
 *
 * Pointers are device addresses. Matrices are row-major, ld* is the stride between rows. Sizes are int and indices
 * unsigned: a tensor of the library has less than 2^31 reals. Letters are those of mtan.h. */
#ifndef MTAN_CUDA_ARGUMENTS_H
#define MTAN_CUDA_ARGUMENTS_H

/* mtan_function; cuda.c checks that the two agree */
enum {
    FUNCTION_EXP,
    FUNCTION_LOG,
    FUNCTION_SIN,
    FUNCTION_COS,
    FUNCTION_TANH,
    FUNCTION_SIGMOID,
    FUNCTION_SOFTPLUS,
    FUNCTION_SQRT
};

/* n elements; each kernel says which of the pointers it uses, and what for */
struct elementwise {
    float *y, *m, *v;
    const float *x, *d;
    unsigned n;
    int function; /* for map */
    float c[6];
};

/* rows x cols; ldx 0: one row, repeated */
struct matrix {
    float *y;
    const float *x;
    int ldy, ldx, rows, cols;
    float factor;
};

/* Sums over rows: each part of `depth` rows is summed into a row of partial (parts, cols), then partial itself as x. */
struct column_sums {
    float *y, *partial;
    const float *x;
    int ldx, rows, cols, depth;
};

struct total {
    double *out, *partial;
    const float *x;
    unsigned n;
    int squares, parts;
};

/* c (m, n) = [c +] sum over k. With splits > 1 each part of `depth` terms is summed into partial (splits, m, n). */
struct product {
    float *c, *partial;
    const float *a, *b;
    int ldc, lda, ldb, m, n, k, add, splits, depth;
};

/* a (m, k). b (n, k) in int8: entry (j, p) at byte row j + term p; scale (n), one per row of b, or null. To pack:
 * `packed` gets the n scales, then the rows. */
struct product_int8 {
    float *c, *packed;
    const float *a, *real, *scale; /* real: b before it was packed */
    const signed char *b;
    int ldc, lda, ldb, m, n, k, add, row, term;
};

struct embedding {
    float *y, *dlw, *dlb, *dpw, *dpb, *partial;
    const float *dy, *time, *lw, *lb, *pw, *pb;
    int times, embed, chunks, depth;
    float slope, scale; /* fixed embedding */
};

/* The arrays of mtan_batch on the device. */
struct batch {
    const int *first;  /* (steps + 1) row at which a step of the sequence starts */
    const int *length; /* (B) steps of each record */
    const int *time0, *score0, *query0, *pair0, *point0, *cell0; /* (B + 1) */
    const int *begin;                                            /* (B, D + 1) events of a channel */
    const int *row;                                              /* time row of an event */
    const float *value;
    const int *cell_row, *cell_channel;
    const float *cell_value;
    int records, samples, channels, statics, steps, outputs;
};

struct attention {
    struct batch batch;
    const float *score; /* blocks of (L, Q) */
    float *weight;      /* the same: exp(score) under a base */
    float *total;       /* (B, D, steps), a record's part is (D, Q) */
    float *y, *dscore;
    const float *dy;
    int ldy, channel, tiles;
};

/* local statistics of attention; sums (B, D, 6, steps), a record's part is (D, 6, Q) */
struct moments {
    struct attention attention; /* its `total` holds the sums */
    const float *point, *time;
    float rate;
    int statistics;
};

/* one observation, added to the sums (6, n), parts `stride` apart; or the features of such sums */
struct moment {
    float *sums, *y;
    const float *weight, *point, *base;
    float value, origin, time, rate;
    unsigned stride, n;
    int statistics;
};

struct rbf {
    struct batch batch;
    const float *query, *time, *beta;
    float *y, *dbeta, *partial; /* (records, D) */
    const float *dy;
    int ldy, channel, tiles;
};

/* values (keys, cols) of each record and sample, smoothed at its queries; strides are within one record */
struct smooth {
    struct batch batch;
    float *y, *dvalue, *dbeta;
    float *least, *totals, *slopes; /* (rows of y), (rows of y, cols) twice */
    const float *dy, *query, *key, *beta, *value;
    int ldy, ldv, cols, tiles, apart; /* apart: reals from one record and sample's values to the next, without point0 */
};

/* one step: g (rows, 3N), gh (rows, 3N), hn (rows, N) or null, before (rows, N) or null */
struct gates {
    float *h, *g, *hn, *dh;
    const float *gh, *before;
    int ldh, ldg, ldb, rows, hidden;
};

/* a whole sequence: rows of a step come `samples` at a time, those of the records still running first */
struct sequence {
    const int *first; /* (steps + 1) */
    float *y, *g, *hn, *dh;
    const float *w, *bias, *dy;
    int ldy, ldg, ldw, steps, rows, samples, hidden, reverse, step;
};

/* posterior (rows, 2Z), z and noise (rows S, Z) */
struct latent {
    const int *first, *length; /* null: one row per record */
    float *z, *out, *dposterior, *dz;
    const float *posterior, *noise, *dout;
    int records, rows, samples, latent;
};

struct likelihood {
    struct batch batch;
    float *logp, *dprediction, *draw;
    double *error;
    const float *prediction, *raw, *dlogp;
    double constant, variance; /* log(2 pi std^2) and std^2 */
    float least;               /* a learned std is least + softplus(raw) */
};

struct bound {
    float *loss, *weight, *dlogp, *dkl;
    const float *logp, *kl, *share;
    double kl_weight;
    float seed;
    int records, samples, kl_stride, elbo;
};

struct cross_entropy {
    float *loss, *p, *dx;
    const float *x, *weight; /* weight of the classes, or null */
    const int *label;
    const int *query0; /* null: `samples` rows per label; else a record's rows lie sample by sample */
    float seed;
    int rows, samples, classes, records;
};

/* the same with numbers instead of a label: `classes` numbers per row, `levels` outputs per number */
struct numbers {
    struct cross_entropy rows;
    const float *y;
    float interval;
    int levels, labels; /* labels: 1 when the numbers are yes/no labels */
};

/* rows that are moved from one layout to another */
struct rows {
    const int *first, *length, *point0, *query0, *query_row;
    float *y;
    const float *x;
    int ldy, ldx, cols, records, samples, steps;
};

/* products per record, or per record and sample: each kernel says which */
struct group {
    struct batch batch;
    float *c;
    const float *a, *b;
    int ldc, lda, ldb, inner, tiles_m, tiles_n, decoder;
    int apart; /* reals from one record and sample's values to the next, without point0 */
};

/* standard normals laid out as z, and masks of dropout */
struct random {
    const int *first, *length, *query0; /* first and length null: one row of noise per record */
    const unsigned long long *id;       /* (B) */
    float *out;
    unsigned long long seed, epoch, least;
    int records, samples, width, layout, hidden_layer;
};

/* How the rows to classify are laid out, for masks: mtan_row_order */
enum { LAYOUT_RECORD, LAYOUT_STEP, LAYOUT_QUERY };

/* X(kernel, arguments, threads in x, threads in y, hot): the kernels, and the number of threads in a block of each. A
 * hot kernel must keep all its values in registers. */
#define MTAN_CUDA_KERNELS(X)                                                                                           \
    X(map, elementwise, 256, 1, 1)                                                                                     \
    X(exp_parts, elementwise, 256, 1, 0)                                                                               \
    X(fill, elementwise, 256, 1, 1)                                                                                    \
    X(relu_forward, elementwise, 256, 1, 1)                                                                            \
    X(relu_backward, elementwise, 256, 1, 1)                                                                           \
    X(tanh_backward, elementwise, 256, 1, 1)                                                                           \
    X(softplus_backward, elementwise, 256, 1, 1)                                                                       \
    X(average, elementwise, 256, 1, 1)                                                                                 \
    X(adam, elementwise, 256, 1, 1)                                                                                    \
    X(adamax, elementwise, 256, 1, 1)                                                                                  \
    X(normal_pairs, elementwise, 256, 1, 0)                                                                            \
    X(scale, matrix, 256, 1, 1)                                                                                        \
    X(copy, matrix, 256, 1, 1)                                                                                         \
    X(add, matrix, 256, 1, 1)                                                                                          \
    X(pack, matrix, 32, 8, 0)                                                                                          \
    X(softmax_forward, matrix, 32, 4, 1)                                                                               \
    X(softmax_backward, matrix, 32, 4, 1)                                                                              \
    X(column_parts, column_sums, 32, 8, 1)                                                                             \
    X(column_finish, column_sums, 128, 1, 0)                                                                           \
    X(total_parts, total, 256, 1, 1)                                                                                   \
    X(total_finish, total, 256, 1, 0)                                                                                  \
    X(product_nn, product, 256, 1, 1)                                                                                  \
    X(product_nt, product, 256, 1, 1)                                                                                  \
    X(product_tn, product, 256, 1, 1)                                                                                  \
    X(product_finish, product, 256, 1, 0)                                                                              \
    X(pack_int8, product_int8, 32, 4, 0)                                                                               \
    X(product_int8, product_int8, 32, 8, 0)                                                                            \
    X(embed_forward, embedding, 256, 1, 1)                                                                             \
    X(embed_fixed, embedding, 256, 1, 0)                                                                               \
    X(embed_parts, embedding, 32, 8, 1)                                                                                \
    X(embed_finish, embedding, 128, 1, 0)                                                                              \
    X(attend_forward, attention, 32, 8, 1)                                                                             \
    X(attend_backward, attention, 128, 1, 1)                                                                           \
    X(attend_weights, attention, 128, 1, 0)                                                                            \
    X(log_under, elementwise, 256, 1, 0)                                                                               \
    X(moments_forward, moments, 32, 8, 0)                                                                              \
    X(moments_backward, moments, 128, 1, 0)                                                                            \
    X(moments_add, moment, 128, 1, 0)                                                                                  \
    X(moments_read, moment, 128, 1, 0)                                                                                 \
    X(rbf_forward, rbf, 32, 4, 0)                                                                                      \
    X(rbf_backward, rbf, 128, 1, 0)                                                                                    \
    X(rbf_finish, rbf, 128, 1, 0)                                                                                      \
    X(rbf_weights, rbf, 128, 1, 0)                                                                                     \
    X(smooth_nearest, smooth, 128, 1, 0)                                                                               \
    X(smooth_forward, smooth, 128, 1, 0)                                                                               \
    X(smooth_slopes, smooth, 128, 1, 0)                                                                                \
    X(smooth_values, smooth, 128, 1, 0)                                                                                \
    X(gates_forward, gates, 256, 1, 1)                                                                                 \
    X(gates_backward, gates, 256, 1, 1)                                                                                \
    X(gru_run32, sequence, 96, 1, 1)                                                                                   \
    X(gru_run64, sequence, 192, 1, 1)                                                                                  \
    X(gru_run96, sequence, 288, 1, 1)                                                                                  \
    X(gru_run128, sequence, 384, 1, 1)                                                                                 \
    X(gru_back32, sequence, 96, 1, 1)                                                                                  \
    X(gru_back64, sequence, 192, 1, 1)                                                                                 \
    X(gru_back96, sequence, 288, 1, 1)                                                                                 \
    X(gru_back128, sequence, 384, 1, 1)                                                                                \
    X(gru_step, sequence, 32, 4, 1)                                                                                    \
    X(gru_step_back, sequence, 32, 4, 1)                                                                               \
    X(sample_forward, latent, 256, 1, 1)                                                                               \
    X(sample_backward, latent, 256, 1, 1)                                                                              \
    X(kl_forward, latent, 128, 1, 0)                                                                                   \
    X(kl_backward, latent, 128, 1, 0)                                                                                  \
    X(ratio_forward, latent, 128, 1, 0)                                                                                \
    X(ratio_backward, latent, 128, 1, 0)                                                                               \
    X(loglik_forward, likelihood, 128, 1, 0)                                                                           \
    X(loglik_backward, likelihood, 128, 1, 0)                                                                          \
    X(loglik_sd_forward, likelihood, 128, 1, 0)                                                                        \
    X(loglik_sd_backward, likelihood, 128, 1, 0)                                                                       \
    X(squared_error, likelihood, 128, 1, 0)                                                                            \
    X(bound_forward, bound, 128, 1, 0)                                                                                 \
    X(bound_backward, bound, 128, 1, 0)                                                                                \
    X(cross_entropy_forward, cross_entropy, 128, 1, 0)                                                                 \
    X(cross_entropy_backward, cross_entropy, 128, 1, 0)                                                                \
    X(numbers_forward, numbers, 128, 1, 0)                                                                             \
    X(numbers_backward, numbers, 128, 1, 0)                                                                            \
    X(spread_forward, rows, 256, 1, 1)                                                                                 \
    X(spread_backward, rows, 256, 1, 1)                                                                                \
    X(last_forward, rows, 256, 1, 0)                                                                                   \
    X(last_backward, rows, 256, 1, 0)                                                                                  \
    X(regroup_forward, rows, 256, 1, 0)                                                                                \
    X(regroup_backward, rows, 256, 1, 0)                                                                               \
    X(at_queries_forward, rows, 256, 1, 0)                                                                             \
    X(at_queries_backward, rows, 256, 1, 0)                                                                            \
    X(softmax_pairs_forward, group, 32, 4, 1)                                                                          \
    X(softmax_pairs_backward, group, 32, 4, 1)                                                                         \
    X(score_forward, group, 256, 1, 1)                                                                                 \
    X(score_row_backward, group, 256, 1, 1)                                                                            \
    X(score_point_backward, group, 256, 1, 1)                                                                          \
    X(values_forward, group, 256, 1, 1)                                                                                \
    X(values_weight_backward, group, 256, 1, 1)                                                                        \
    X(values_backward, group, 256, 1, 1)                                                                               \
    X(noise, random, 128, 1, 0)                                                                                        \
    X(mask, random, 128, 1, 0)

enum {
#define X(name, arguments, x, y, hot) name##_x = x, name##_y = y, name##_threads = (x) * (y),
    MTAN_CUDA_KERNELS(X)
#undef X
};

/* Rows (a record and sample each) that a block of gru_run* or gru_back* takes through the whole sequence; rows and
 * units of a block of gru_step; units of a block of gru_step_back, which has GRU_STEP_ROWS rows, too. */
enum { GRU_ROWS = 6, GRU_STEP_ROWS = 16, GRU_STEP_UNITS = 32, GRU_BACK_UNITS = 64 };
/* A block of the product kernels computes a tile of c, TILE x TILE. */
enum { TILE = 64 };
enum { ATTEND_TILE = 32, ATTEND_BACK_TILE = 128 };

#endif
