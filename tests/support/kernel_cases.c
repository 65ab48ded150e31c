/* See kernel_cases.h. Sections: operands; products; elementwise; a batch; rows; attention; recurrence; losses; random
 * numbers. */
#include "kernel_cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- operands ----
 * Each function draws from the work's random numbers. A call must therefore have at most one of them among its
 * arguments: C leaves the order of evaluation open, and compilers differ. */

static void *give_bytes(kernel_work *w, const void *x, size_t bytes) {
    void *given = w->memory ? w->memory->place(x, bytes) : guard_alloc(bytes);
    if (w->n == KERNEL_MOST_BLOCKS) abort();
    if (!w->memory && bytes) memcpy(given, x, bytes);
    w->block[w->n].given = given, w->block[w->n].reals = NULL, w->block[w->n].count = 0;
    w->n++;
    return given;
}

/* Gives an operand that is compared afterwards. */
static mtan_real *give(kernel_work *w, const mtan_real *x, size_t n) {
    mtan_real *given = give_bytes(w, x, n * sizeof *x);
    if (!(w->block[w->n - 1].reals = malloc((n + 1) * sizeof *x))) abort();
    w->block[w->n - 1].count = n;
    return given;
}

static int32_t *give_ints(kernel_work *w, const int32_t *x, size_t n) {
    return give_bytes(w, x, n * sizeof *x);
}

/* Mostly in [low, high); sometimes a zero of either sign, a subnormal, or a large number. */
static mtan_real any_real(kernel_work *w, double low, double high, int special) {
    const mtan_real x = small_real(&w->random);
    const int32_t kind = small_whole(&w->random, 0, 63);
    if (special && !w->plain && kind < 4)
        return kind == 0 ? 0 : kind == 1 ? -(mtan_real)0 : x * (mtan_real)(kind == 2 ? 1e-41 : 1000 * high);
    return (mtan_real)(low + (high - low) * 0.5 * (1 + (double)x));
}

static mtan_real *take_some(kernel_work *w, size_t n, double low, double high, int special) {
    mtan_real *x = malloc((n + 1) * sizeof *x), *given;
    if (!x) abort();
    for (size_t i = 0; i < n; i++) x[i] = any_real(w, low, high, special);
    given = give(w, x, n);
    free(x);
    return given;
}

static mtan_real *take(kernel_work *w, size_t n, double scale) {
    return take_some(w, n, -scale, scale, 1);
}

/* No special values: for operands that are exponentiated and then summed. */
static mtan_real *take_plain(kernel_work *w, size_t n, double scale) {
    return take_some(w, n, -scale, scale, 0);
}

static mtan_real *take_positive(kernel_work *w, size_t n, double low, double high) {
    return take_some(w, n, low, high, 0);
}

/* Room for a result. */
static mtan_real *take_room(kernel_work *w, size_t n) {
    return take_some(w, n, 0.5, 0.5, 0);
}

/* Room whose layout differs between backends: not compared. */
static mtan_real *take_layout(kernel_work *w, size_t n) {
    mtan_real *room = take_room(w, n);
    w->block[w->n - 1].count = 0;
    return room;
}

/* Stores a double as the sum of two reals, because it has more digits than one. */
static void keep(kernel_work *w, double x) {
    const mtan_real high = (mtan_real)x, pair[2] = {high, (mtan_real)(x - (double)high)};
    give(w, pair, 2);
}

static void keep_doubles(kernel_work *w, const double *there, size_t n) {
    double x[128];
    if (w->memory) w->memory->fetch(x, there, n * sizeof *x);
    else memcpy(x, there, n * sizeof *x);
    for (size_t i = 0; i < n && i < 4; i++) keep(w, x[i]);
}

int kernel_collect(kernel_work *w) {
    int ok = 1;
    for (int i = 0; i < w->n; i++) {
        const size_t bytes = w->block[i].count * sizeof(mtan_real);
        if (w->memory) {
            if (bytes) w->memory->fetch(w->block[i].reals, w->block[i].given, bytes);
            w->memory->free(w->block[i].given);
        } else {
            if (bytes) memcpy(w->block[i].reals, w->block[i].given, bytes);
            ok = guard_free(w->block[i].given) && ok;
        }
    }
    return ok;
}

void kernel_free(kernel_work *w) {
    for (int i = 0; i < w->n; i++) free(w->block[i].reals);
}

static size_t area(int32_t rows, int32_t cols) {
    return (size_t)rows * (size_t)cols;
}

/* ---- products: m rows, n columns, k terms ---- */

static void run_nn(kernel_work *w, const kernel_shape *s) {
    const int32_t lda = s->k + s->pad, ldb = s->n + s->pad, ldc = s->n + s->pad;
    mtan_real *c = take(w, area(s->m, ldc), 1), *a = take(w, area(s->m, lda), 1), *b = take(w, area(s->k, ldb), 1);
    w->backend->product_nn(c, (size_t)ldc, a, (size_t)lda, b, (size_t)ldb, s->m, s->n, s->k, s->add);
}

static void run_nt(kernel_work *w, const kernel_shape *s) {
    const int32_t lda = s->k + s->pad, ldb = s->k + s->pad, ldc = s->n + s->pad;
    mtan_real *c = take(w, area(s->m, ldc), 1), *a = take(w, area(s->m, lda), 1), *b = take(w, area(s->n, ldb), 1);
    w->backend->product_nt(c, (size_t)ldc, a, (size_t)lda, b, (size_t)ldb, s->m, s->n, s->k, s->add);
}

static void run_tn(kernel_work *w, const kernel_shape *s) {
    const int32_t lda = s->m + s->pad, ldb = s->n + s->pad, ldc = s->n + s->pad;
    mtan_real *c = take(w, area(s->m, ldc), 1), *a = take(w, area(s->k, lda), 1), *b = take(w, area(s->k, ldb), 1);
    w->backend->product_tn(c, (size_t)ldc, a, (size_t)lda, b, (size_t)ldb, s->m, s->n, s->k, s->add);
}

static void run_packed(kernel_work *w, const kernel_shape *s) {
    const int32_t lda = s->k + s->pad, ldb = s->k + s->pad, ldc = s->n + s->pad;
    mtan_real *c = take(w, area(s->m, ldc), 1), *a = take(w, area(s->m, lda), 1), *b = take(w, area(s->n, ldb), 1);
    mtan_real *packed = take_layout(w, w->backend->pack_count(s->n, s->k));
    w->backend->pack(packed, b, (size_t)ldb, 1, s->n, s->k);
    w->backend->product_packed(c, (size_t)ldc, a, (size_t)lda, packed, s->m, s->n, s->k, s->add, 0);
}

/* The same with a matrix (k, n) that is packed transposed, and from the last columns on. */
static void run_packed_turned(kernel_work *w, const kernel_shape *s) {
    const int32_t lda = s->k + s->pad, ldb = s->n + s->pad, ldc = s->n + s->pad;
    mtan_real *c = take(w, area(s->m, ldc), 1), *a = take(w, area(s->m, lda), 1), *b = take(w, area(s->k, ldb), 1);
    mtan_real *packed = take_layout(w, w->backend->pack_count(s->n, s->k));
    w->backend->pack(packed, b, 1, (size_t)ldb, s->n, s->k);
    w->backend->product_packed(c, (size_t)ldc, a, (size_t)lda, packed, s->m, s->n, s->k, s->add, 1);
}

static void run_int8(kernel_work *w, const kernel_shape *s) {
    const int32_t lda = s->k + s->pad, ldb = s->k + s->pad, ldc = s->n + s->pad;
    mtan_real *c = take(w, area(s->m, ldc), 1), *a = take(w, area(s->m, lda), 1), *b = take(w, area(s->n, ldb), 1);
    mtan_real *packed = take_layout(w, w->backend->pack_int8_count(s->n, s->k));
    w->backend->pack_int8(packed, b, (size_t)ldb, s->n, s->k);
    w->backend->product_int8(c, (size_t)ldc, a, (size_t)lda, packed, s->m, s->n, s->k, s->add);
}

/* b unpacked: (n, k) with a scale per row, or (k, n) without scales. */
static void run_int8_in_place(kernel_work *w, const kernel_shape *s) {
    const int32_t lda = s->k + s->pad, ldc = s->n + s->pad;
    const size_t bytes = area(s->n, s->k);
    mtan_real *c = take(w, area(s->m, ldc), 1), *a = take(w, area(s->m, lda), 1), *d = take(w, area(s->m, ldc), 1);
    mtan_real *scale = take_positive(w, (size_t)s->n, 0, 1);
    int8_t *made = malloc(bytes + 1);
    const int8_t *b;
    if (!made) abort();
    for (size_t i = 0; i < bytes; i++) made[i] = (int8_t)small_whole(&w->random, -127, 127);
    b = give_bytes(w, made, bytes);
    free(made);
    w->backend->product_nt_int8(c, (size_t)ldc, a, (size_t)lda, b, scale, s->m, s->n, s->k, s->add);
    w->backend->product_nn_int8(d, (size_t)ldc, a, (size_t)lda, b, s->m, s->n, s->k, s->add);
}

/* ---- elementwise, moves and sums: m rows, n columns ---- */

/* In float, all bit patterns: infinities, NaN, subnormals. */
static mtan_real *take_anything(kernel_work *w, size_t n) {
    static const double special[] = {0,      -0.0,           HUGE_VAL, -HUGE_VAL, (double)NAN,   1,          -1,
                                     89,     -104,           88.8,     -103.9,    0.625,         1e5,        -1e5,
                                     100001, 1.17549435e-38, 1e-45,    -1e-45,    3.40282347e38, 0.41421357, 0.881373};
    const size_t specials = sizeof special / sizeof *special;
    mtan_real *values = malloc((n + 1) * sizeof *values), *x;
    if (!values) abort();
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)small_random(&w->random);
        values[i] = 8 * small_real(&w->random);
        if (i % 3 == 0 && sizeof(mtan_real) == sizeof bits) memcpy(&values[i], &bits, sizeof bits);
        if (i % 5 == 0) values[i] = (mtan_real)special[i / 5 % specials];
    }
    x = give(w, values, n);
    free(values);
    return x;
}

static void run_map(kernel_work *w, const kernel_shape *s) {
    const size_t n = area(s->m, s->n);
    mtan_real *x = take_anything(w, n), *whole, *part;
    for (int f = MTAN_EXP; f <= MTAN_SQRT; f++) w->backend->map((mtan_function)f, take_room(w, n), x, n);
    whole = take_room(w, n), part = take_room(w, n);
    w->backend->exp_parts(whole, part, x, n);
}

static void run_moves(kernel_work *w, const kernel_shape *s) {
    const size_t ld = (size_t)(s->n + s->pad), n = (size_t)s->n, all = (size_t)s->m * ld;
    mtan_real *y = take(w, all, 1), *x = take(w, all, 1), *row = take(w, n, 1), *filled = take(w, n + 3, 1);
    mtan_real *copy = take(w, all, 1), *repeated = take(w, all, 1);
    w->backend->scale(y, ld, s->m, s->n, (mtan_real)0.3);
    w->backend->add(y, ld, x, ld, s->m, s->n);
    w->backend->add(y, ld, row, 0, s->m, s->n);
    w->backend->add(row, 0, x, 0, 1, s->n);
    w->backend->copy(copy, ld, x, ld, s->m, s->n);
    w->backend->copy(repeated, ld, row, 0, s->m, s->n);
    w->backend->fill(filled, n, (mtan_real)0.7);
}

static void run_sums(kernel_work *w, const kernel_shape *s) {
    const size_t ld = (size_t)(s->n + s->pad), n = area(s->m, s->n);
    mtan_real *x = take(w, (size_t)s->m * ld, 1), *sum = take(w, (size_t)s->n, 1), *row = take(w, (size_t)s->n, 1);
    w->backend->add(sum, 0, x, ld, s->m, s->n);
    w->backend->add(sum, 0, row, 0, s->m, s->n);
    keep(w, w->backend->sum(x, n));
    keep(w, w->backend->sum_squares(x, n));
}

static void run_elementwise(kernel_work *w, const kernel_shape *s) {
    const size_t n = area(s->m, s->n);
    mtan_real *y = take(w, n, 1), *dy = take(w, n, 1), *x = take(w, n, 1), *dx = take(w, n, 1), *t = take(w, n, 1);
    mtan_real *any = take_anything(w, n);
    w->backend->relu_forward(y, n);
    w->backend->relu_forward(any, n);
    w->backend->relu_backward(dy, x, n);
    w->backend->softplus_backward(dx, dy, x, n);
    w->backend->tanh_backward(t, x, n);
}

static void run_optimisers(kernel_work *w, const kernel_shape *s) {
    const mtan_real c[6] = {(mtan_real)0.1,  (mtan_real)0.999, (mtan_real)0.001,
                            (mtan_real)1e-8, (mtan_real)0.01,  (mtan_real)31.6};
    const size_t n = area(s->m, s->n);
    mtan_real *x = take(w, n, 1), *g = take(w, n, 1), *m = take(w, n, 1);
    mtan_real *v = take_positive(w, n, 1e-6, 1), *u = take_positive(w, n, 1e-6, 1);
    w->backend->adam(x, m, v, g, n, c);
    w->backend->adamax(x, m, u, g, n, c);
}

static void run_average(kernel_work *w, const kernel_shape *s) {
    const size_t n = area(s->m, s->n);
    mtan_real *mean = take(w, n, 1), *x = take(w, n, 1);
    w->backend->average(mean, x, n, (mtan_real)0.001);
}

static void run_embed(kernel_work *w, const kernel_shape *s) {
    const size_t T = (size_t)s->m, E = (size_t)s->n;
    mtan_real *time = take(w, T, 1), *lw = take(w, 1, 1), *lb = take(w, 1, 1), *pw = take(w, E, 8), *pb = take(w, E, 1);
    w->backend->embed_forward(take_room(w, T * E), time, lw, lb, pw, pb, s->m, s->n);
    w->backend->embed_fixed(take_room(w, T * 2 * E), time, 10, 48, s->m, 2 * s->n);
}

static void run_embed_backward(kernel_work *w, const kernel_shape *s) {
    const size_t T = (size_t)s->m, E = (size_t)s->n;
    mtan_real *time = take(w, T, 1), *pw = take(w, E, 8), *pb = take(w, E, 1), *dlw = take(w, 1, 1);
    mtan_real *dlb = take(w, 1, 1), *dpw = take(w, E, 1), *dpb = take(w, E, 1), *dy = take(w, T * E, 1);
    w->backend->embed_backward(dlw, dlb, dpw, dpb, dy, time, pw, pb, s->m, s->n);
}

static void run_softmax(kernel_work *w, const kernel_shape *s) {
    const size_t n = area(s->m, s->n);
    mtan_real *y = take(w, n, 5), *dy = take(w, n, 1);
    w->backend->softmax_forward(y, s->m, s->n);
    w->backend->softmax_backward(dy, y, s->m, s->n);
}

/* ---- a batch ---- */

enum { RECORDS = 4, STEPS = 131, EVENTS = 2048 };

/* Sizes of a batch: the first record has the full sizes, the others smaller ones, and the last one nothing if that is
 * allowed. */
typedef struct {
    int32_t channels, samples, steps, keys, queries;
    int own;    /* 1: sequences of different lengths, at the records' own points; 0: equal lengths, at shared points */
    int joined; /* 1: the queries are steps, so a record without steps has no queries */
} sizes;

static int32_t *starts(kernel_work *w, int32_t *at, const int32_t *count) {
    at[0] = 0;
    for (int b = 0; b < RECORDS; b++) at[b + 1] = at[b] + count[b];
    return give_ints(w, at, RECORDS + 1);
}

static void make_steps(kernel_work *w, mtan_batch *b, const int32_t *length) {
    int32_t first[STEPS + 1] = {0};
    for (int32_t k = 0; k < length[0]; k++) {
        first[k + 1] = first[k];
        for (int r = 0; r < RECORDS; r++) first[k + 1] += length[r] > k;
    }
    b->steps = length[0];
    b->rows = first[length[0]];
    b->first = give_ints(w, first, (size_t)length[0] + 1);
    b->length = give_ints(w, length, RECORDS);
}

/* Events ascending in time in every channel: one channel with all keys, one with some keys and some twice, one with
 * none, then channels with single events. */
static void make_events(kernel_work *w, mtan_batch *b, const int32_t *keys) {
    int32_t *begin = malloc(RECORDS * ((size_t)b->channels + 1) * sizeof *begin), row[EVENTS], n = 0;
    if (!begin) abort();
    for (int r = 0; r < RECORDS; r++)
        for (int32_t d = 0; d <= b->channels; d++) {
            begin[r * (b->channels + 1) + d] = n;
            for (int32_t i = 0; d < b->channels && i < keys[r] && n + 2 < EVENTS; i++) {
                const int32_t times = d == 0 ? 1 : d == 1 ? i % 3 : d == 2 ? 0 : i == keys[r] / 2;
                for (int32_t k = 0; k < times; k++) row[n++] = i;
            }
        }
    b->begin = give_ints(w, begin, RECORDS * ((size_t)b->channels + 1));
    b->row = give_ints(w, row, (size_t)n);
    b->value = take(w, (size_t)n, 1);
    b->events = n;
    free(begin);
}

/* Target cells in order of time, some of them repeated; a label for each query, or none; ids. */
static void make_targets(kernel_work *w, mtan_batch *b, const int32_t *queries, const int32_t *length) {
    int32_t count[RECORDS] = {0}, at[RECORDS + 1], row[EVENTS], channel[EVENTS], label[EVENTS], step[EVENTS], n = 0,
            q = 0;
    uint64_t id[RECORDS];
    for (int r = 0; r < RECORDS; r++) {
        id[r] = small_random(&w->random);
        for (int32_t i = 0; i < queries[r]; i++, q++) {
            label[q] = small_whole(&w->random, -1, 1);
            step[q] = length[r] > 0 ? small_whole(&w->random, 0, length[r] - 1) : 0;
            for (int32_t k = small_whole(&w->random, 0, 3); k > 0 && n < EVENTS; k--, count[r]++) {
                row[n] = i;
                channel[n++] = small_whole(&w->random, 0, b->channels - 1);
            }
        }
    }
    b->cell0 = starts(w, at, count);
    b->cell_row = give_ints(w, row, (size_t)n), b->cell_channel = give_ints(w, channel, (size_t)n);
    b->cell_value = take(w, (size_t)n, 1);
    b->label = give_ints(w, label, (size_t)q), b->query_row = give_ints(w, step, (size_t)q);
    b->id = give_bytes(w, id, sizeof id);
    b->cells = n;
}

static mtan_batch make_batch(kernel_work *w, const sizes *z) {
    int32_t length[RECORDS], keys[RECORDS], queries[RECORDS], scores[RECORDS], pairs[RECORDS], at[RECORDS + 1];
    mtan_batch b;
    memset(&b, 0, sizeof b);
    b.records = RECORDS, b.samples = z->samples, b.channels = b.outputs = z->channels;
    for (int r = 0; r < RECORDS; r++) {
        const int last = r == RECORDS - 1;
        length[r] = z->own ? z->steps * (RECORDS - 1 - r) / (RECORDS - 1) : z->steps;
        keys[r] = r == 0 ? z->keys : last ? 0 : small_whole(&w->random, 0, z->keys);
        queries[r] = r == 0 ? z->queries : r == 1 ? 0 : small_whole(&w->random, 1, z->queries);
        if (z->joined && length[r] == 0) queries[r] = 0;
        scores[r] = keys[r] * length[r], pairs[r] = queries[r] * length[r];
    }
    make_steps(w, &b, length);
    b.time0 = starts(w, at, keys), b.times = at[RECORDS];
    b.score0 = starts(w, at, scores), b.scores = at[RECORDS];
    b.query0 = starts(w, at, queries), b.queries = at[RECORDS];
    b.pair0 = starts(w, at, pairs), b.pairs = at[RECORDS];
    if (z->own) b.point0 = starts(w, at, length);
    b.most_times = z->keys, b.most_queries = z->queries;
    make_events(w, &b, keys);
    make_targets(w, &b, queries, length);
    return b;
}

static int32_t points_of(const mtan_batch *b, const sizes *z) {
    return z->own ? b->rows : b->steps;
}

/* Columns of a matrix in memory. */
static size_t wide(int32_t cols, const kernel_shape *s) {
    return (size_t)(cols + s->pad);
}

/* ---- rows: n columns ---- */

static void run_rows(kernel_work *w, const kernel_shape *s) {
    const sizes z = {2, 1 + s->pad % 2, s->m < 9 ? s->m : 9, 3, 5, s->add, 1};
    const mtan_batch b = make_batch(w, &z);
    const size_t ld = wide(s->n, s), R = (size_t)b.rows, S = (size_t)b.samples, Q = (size_t)b.queries;
    mtan_real *record = take(w, RECORDS * ld, 1), *drecord = take(w, RECORDS * ld, 1);
    mtan_real *sequence = take(w, R * S * ld, 1), *dsequence = take(w, R * S * ld, 1);
    mtan_real *last = take(w, RECORDS * S * ld, 1), *grouped = take(w, R * S * ld, 1), *asked = take(w, Q * S * ld, 1);
    w->backend->spread_forward(&b, sequence, ld, record, ld, s->n);
    w->backend->spread_backward(&b, drecord, ld, sequence, ld, s->n);
    w->backend->last_forward(&b, last, ld, dsequence, ld, s->n, b.samples);
    w->backend->last_backward(&b, dsequence, ld, last, ld, s->n, b.samples);
    w->backend->at_queries_forward(&b, asked, ld, dsequence, ld, s->n);
    w->backend->at_queries_backward(&b, dsequence, ld, asked, ld, s->n);
    if (!s->add) return;
    w->backend->regroup_forward(&b, grouped, ld, dsequence, ld, s->n);
    w->backend->regroup_backward(&b, dsequence, ld, grouped, ld, s->n);
}

/* m terms, n points */
static void run_scores(kernel_work *w, const kernel_shape *s) {
    const sizes z = {2, 1, s->n < 40 ? s->n : 40, 7, 5, s->add, 0};
    const mtan_batch b = make_batch(w, &z);
    const size_t ld = wide(s->m, s), P = (size_t)points_of(&b, &z);
    for (int decoder = 0; decoder < 2; decoder++) {
        const size_t T = (size_t)(decoder ? b.queries : b.times);
        mtan_real *score = take(w, (size_t)(decoder ? b.pairs : b.scores), 1), *row = take(w, T * ld, 1);
        mtan_real *point = take(w, P * ld, 1), *drow = take(w, T * ld, 1), *dpoint = take(w, P * ld, 1);
        w->backend->score_forward(&b, score, row, ld, point, ld, s->m, decoder);
        w->backend->score_backward(&b, drow, ld, s->k % 2 ? dpoint : NULL, ld, score, row, point, s->m, decoder);
    }
}

static void run_pairs(kernel_work *w, const kernel_shape *s) {
    const sizes z = {2, 1, s->n, 3, 5, s->add, 0};
    const mtan_batch b = make_batch(w, &z);
    mtan_real *weight = take(w, (size_t)b.pairs, 5), *dweight = take(w, (size_t)b.pairs, 1);
    w->backend->softmax_pairs_forward(&b, weight);
    w->backend->softmax_pairs_backward(&b, dweight, weight);
}

static void run_values(kernel_work *w, const kernel_shape *s) {
    const sizes z = {2, 1 + s->pad % 2, s->m, 3, 5, s->add, 0};
    const mtan_batch b = make_batch(w, &z);
    const size_t ld = wide(s->n, s), S = (size_t)b.samples, Q = (size_t)b.queries, R = (size_t)b.rows;
    mtan_real *y = take(w, Q * S * ld, 1), *weight = take(w, (size_t)b.pairs, 1), *value = take(w, R * S * ld, 1);
    mtan_real *dy = take(w, Q * S * ld, 1), *dweight = take(w, (size_t)b.pairs, 1), *dvalue = take(w, R * S * ld, 1);
    w->backend->values_forward(&b, y, ld, weight, value, ld, s->n);
    w->backend->values_backward(&b, dweight, dvalue, dy, ld, weight, value, ld, s->n);
}

/* ---- attention: at most m keys, n points, four channels ---- */

static sizes attended(const kernel_shape *s) {
    const sizes z = {4, 1, s->n, s->m, 3, s->k, 0};
    return z;
}

/* With `add`, some scores of a channel's only key are so low that the channel needs its own base. */
static mtan_real *take_scores(kernel_work *w, const kernel_shape *s, size_t n) {
    const size_t Q = (size_t)s->n;
    mtan_real *made = malloc((n + 1) * sizeof *made), *score;
    if (!made) abort();
    for (size_t i = 0; i < n; i++) made[i] = 4 * small_real(&w->random);
    for (size_t q = 0; s->add && q < Q; q += 3) made[(size_t)(s->m / 2) * Q + q] -= 200; /* e^-200 is far below */
    score = give(w, made, n);
    free(made);
    return score;
}

static void run_attend(kernel_work *w, const kernel_shape *s) {
    const sizes z = attended(s);
    const mtan_batch b = make_batch(w, &z);
    const size_t ld = wide(b.channels, s), N = (size_t)b.scores, R = (size_t)b.rows, Q = (size_t)s->n;
    mtan_real *dy = take(w, R * ld, 1), *score = take_scores(w, s, N), *y = take(w, R * ld, 1);
    mtan_real *weight, *total, *scratch;
    weight = take_room(w, N), total = take_room(w, area(RECORDS * b.channels, b.steps));
    scratch = take_layout(w, 2 * Q);
    w->backend->attend_forward(&b, y, ld, score, weight, total, scratch);
    w->backend->attend_backward(&b, take(w, N, 1), dy, y, ld, score, weight, total, scratch);
    w->backend->attend_weights(&b, take(w, N, 1), score, weight, total, s->pad % b.channels);
}

/* n logarithms relative to integer bases */
static void run_log_under(kernel_work *w, const kernel_shape *s) {
    enum { MOST = 64 };
    const size_t n = (size_t)s->n < MOST ? (size_t)s->n : MOST;
    mtan_real base[MOST], *y = take_room(w, n), *x = take_positive(w, n, 1e-9, 1e9);
    for (size_t i = 0; i < n; i++) base[i] = (mtan_real)(37 * i % 300) - 150;
    w->backend->log_under(y, x, give(w, base, n), n);
}

/* Local statistics, one set after the other; and the sums that a stream adds to and reads. */
static void run_moments(kernel_work *w, const kernel_shape *s) {
    const sizes z = attended(s);
    const int32_t which = (s->m + s->n + s->k) % 8;
    const mtan_batch b = make_batch(w, &z);
    const size_t ld = wide(MTAN_FEATURES * b.channels, s), N = (size_t)b.scores, R = (size_t)b.rows, Q = (size_t)s->n;
    mtan_real *made = malloc((N + 1) * sizeof *made), *score, *point, *time, *y, *dy = take(w, R * ld, 1), *sums, *base;
    mtan_real *weight, *scratch;
    mtan_moment o;
    if (!made) abort();
    for (size_t i = 0; i < N; i++) made[i] = 4 * small_real(&w->random);
    for (size_t q = 0; s->add && q < Q; q += 3) made[(size_t)(s->m / 2) * Q + q] -= 200;
    score = give(w, made, N);
    free(made);
    point = take(w, (size_t)points_of(&b, &z), 1), time = take(w, (size_t)b.times, 1);
    y = take(w, R * ld, 1);
    weight = take_room(w, N), sums = take_room(w, area(RECORDS * b.channels, MTAN_MOMENTS * b.steps));
    scratch = take_layout(w, (2 + MTAN_FEATURES) * Q);
    w->backend->moments_forward(&b, y, ld, score, weight, sums, scratch, point, time, 7, which);
    w->backend->moments_backward(&b, take(w, N, 1), dy, y, ld, score, weight, sums, scratch, point, time, 7, which);
    weight = take_positive(w, Q, 0.1, 2), point = take(w, Q, 1), base = take(w, Q, 1);
    sums = take_positive(w, MTAN_MOMENTS * Q, 1, 2);
    o.value = small_real(&w->random), o.origin = small_real(&w->random);
    o.time = small_real(&w->random), o.rate = 5;
    w->backend->moments_add(sums, Q, weight, point, Q, &o);
    w->backend->moments_read(take(w, MTAN_FEATURES * Q, 1), sums, Q, base, o.origin, which, Q);
}

static void run_rbf(kernel_work *w, const kernel_shape *s) {
    const sizes z = attended(s);
    const mtan_batch b = make_batch(w, &z);
    const size_t ld = wide(b.channels, s), R = (size_t)b.rows;
    mtan_real *query = take(w, (size_t)points_of(&b, &z), 1), *time = take(w, (size_t)b.times, 1);
    mtan_real *beta = take_positive(w, (size_t)b.channels, 0.1, 9);
    w->backend->rbf_forward(&b, take(w, R * ld, 1), ld, query, time, beta);
    w->backend->rbf_weights(&b, take(w, (size_t)b.scores, 1), query, time, beta, s->pad % b.channels);
}

static void run_rbf_backward(kernel_work *w, const kernel_shape *s) {
    const sizes z = attended(s);
    const mtan_batch b = make_batch(w, &z);
    const size_t ld = wide(b.channels, s), R = (size_t)b.rows;
    mtan_real *query = take(w, (size_t)points_of(&b, &z), 1), *time = take(w, (size_t)b.times, 1);
    mtan_real *beta = take_positive(w, (size_t)b.channels, 0.1, 9), *y = take(w, R * ld, 1), *dy = take(w, R * ld, 1);
    w->backend->rbf_backward(&b, take(w, (size_t)b.channels, 1), dy, y, ld, query, time, beta);
}

/* m points, n columns; the gradient of beta is a sum over queries */
static void run_smooth(kernel_work *w, const kernel_shape *s) {
    const sizes z = {2, 1 + s->pad % 2, s->m, 3, 4, s->add, 0};
    const mtan_batch b = make_batch(w, &z);
    const size_t ld = wide(s->n, s), S = (size_t)b.samples, Q = (size_t)b.queries, R = (size_t)b.rows;
    mtan_real *query = take(w, Q, 1), *key = take(w, (size_t)points_of(&b, &z), 1),
              *beta = take_positive(w, (size_t)s->n, 0.1, 9);
    mtan_real *y = take(w, Q * S * ld, 1), *dy = take(w, Q * S * ld, 1), *value = take(w, R * S * ld, 1);
    mtan_real *dvalue = take(w, R * S * ld, 1), *dbeta = take(w, (size_t)s->n, 1);
    w->backend->smooth_forward(&b, y, ld, query, key, beta, value, ld, s->n);
    w->backend->smooth_backward(&b, dvalue, dbeta, dy, y, ld, query, key, beta, value, ld, s->n);
}

/* ---- recurrence: m rows, n units ---- */

static void run_gates(kernel_work *w, const kernel_shape *s) {
    const size_t N = (size_t)s->n, R = (size_t)s->m, ldh = N + (size_t)s->pad, ldg = 3 * N + (size_t)s->pad;
    mtan_real *h = take(w, R * ldh, 1), *g = take(w, R * ldg, 3), *hn = take(w, R * N, 1), *gh = take(w, R * 3 * N, 3);
    mtan_real *before = take(w, R * ldh, 1), *dh = take(w, R * N, 1);
    const mtan_real *past = s->add ? before : NULL;
    w->backend->gates_forward(h, ldh, g, ldg, s->k % 2 ? hn : NULL, gh, past, ldh, s->m, s->n);
    w->backend->gates_backward(dh, g, ldg, hn, past, ldh, s->m, s->n);
}

static mtan_real *packed_for(kernel_work *w, const mtan_gru *layer, int precision) {
    const int32_t N = layer->hidden;
    mtan_real *packed;
    if (precision == 0) return NULL;
    packed = take_layout(w, (precision == 2 ? w->backend->pack_int8_count : w->backend->pack_count)(3 * N, N));
    if (precision == 2) w->backend->pack_int8(packed, layer->w, layer->ldw, 3 * N, N);
    else w->backend->pack(packed, layer->w, layer->ldw, 1, 3 * N, N);
    return packed;
}

static mtan_real *packed_back(kernel_work *w, const mtan_gru *layer) {
    const int32_t N = layer->hidden;
    const size_t first = w->backend->pack_count(N, 2 * N);
    mtan_real *packed = take_layout(w, first + w->backend->pack_count(N, N));
    w->backend->pack(packed, layer->w, 1, layer->ldw, N, 2 * N);
    w->backend->pack(packed + first, layer->w + 2 * (size_t)N * layer->ldw, 1, layer->ldw, N, N);
    return packed;
}

/* A whole sequence: weights unpacked, packed, or in int8; some records end early. */
static void run_gru(kernel_work *w, const kernel_shape *s) {
    const int32_t N = s->n, S = 1 + s->pad % 2;
    const sizes z = {2, S, s->m < 6 ? s->m + 1 : 6, 2, 2, s->m % 2, 0};
    const mtan_batch b = make_batch(w, &z);
    const size_t n = (size_t)N, ldy = wide(N, s), ldg = wide(3 * N, s), R = (size_t)(b.rows * S);
    mtan_real *y = take(w, R * ldy, 1), *g = take_plain(w, R * ldg, 2), *hn = take(w, R * n, 1),
              *dy = take(w, R * ldy, 1);
    mtan_real *weights = take_plain(w, 3 * n * ldy, N > 30 ? 0.2 : 0.5),
              *scratch = take_layout(w, (size_t)(RECORDS * S) * 3 * n);
    mtan_real *dw = take(w, 3 * n * ldy, 1), *db = take(w, 3 * n, 1);
    mtan_gru layer;
    memset(&layer, 0, sizeof layer);
    layer.w = weights, layer.ldw = ldy, layer.hidden = N, layer.samples = S, layer.reverse = s->add;
    layer.bias = take_plain(w, 3 * n, 1);
    layer.packed = packed_for(w, &layer, s->m % 3);
    layer.precision = s->m % 3 == 2 ? MTAN_INT8 : MTAN_REAL;
    if (s->m % 3 == 1) layer.back = packed_back(w, &layer);
    w->backend->gru_forward(&b, &layer, y, ldy, g, ldg, s->k % 2 || layer.precision == MTAN_REAL ? hn : NULL, scratch);
    if (layer.precision == MTAN_REAL) w->backend->gru_backward(&b, &layer, dw, db, g, ldg, hn, scratch, dy, y, ldy);
}

/* The input that a GRU computes itself, with k columns in one or two parts. On a device the input is computed
 * before. */
static void take_input(kernel_work *w, const kernel_shape *s, const mtan_batch *b, mtan_gru *layer, mtan_real *g) {
    const size_t N3 = 3 * (size_t)s->n, columns = (size_t)s->k, parts = 1 + (size_t)s->m % 2,
                 S = (size_t)layer->samples;
    const size_t ldx = parts * columns + (size_t)s->pad, part = w->backend->pack_count(3 * s->n, s->k);
    const size_t rows = (size_t)b->rows * S;
    mtan_real *x = take_plain(w, rows * ldx, 1), *in = take_plain(w, parts * N3 * columns, 1);
    mtan_real *constant = take_plain(w, RECORDS * S * N3, 1), *packed = take_layout(w, parts * part);
    layer->ldc = s->pad ? N3 : 0;
    for (int32_t k = 0; w->backend->device && k < b->steps; k++)
        w->backend->copy(g + (size_t)b->first[k] * S * N3, N3, constant, layer->ldc,
                         (b->first[k + 1] - b->first[k]) * layer->samples, 3 * s->n);
    for (size_t p = 0; p < parts; p++)
        if (w->backend->device)
            w->backend->product_nt(g, N3, x + p * columns, ldx, in + p * N3 * columns, columns, (int32_t)rows, 3 * s->n,
                                   s->k, 1);
        else w->backend->pack(packed + p * part, in + p * N3 * columns, columns, 1, 3 * s->n, s->k);
    if (w->backend->device) return;
    layer->x = x, layer->ldx = ldx, layer->parts = (int32_t)parts, layer->columns = s->k;
    layer->w_in = packed, layer->part = part, layer->constant = constant;
}

static void run_gru_input(kernel_work *w, const kernel_shape *s) {
    const int32_t S = 1 + s->pad % 2;
    const sizes z = {2, S, s->m < 6 ? s->m + 1 : 6, 2, 2, s->m % 2, 0};
    const mtan_batch b = make_batch(w, &z);
    const size_t n = (size_t)s->n, R = (size_t)(b.rows * S);
    mtan_real *y = take(w, R * n, 1), *g = take_layout(w, R * 3 * n), *hn = take_room(w, R * n);
    mtan_real *scratch = take_layout(w, (size_t)(RECORDS * S) * 3 * n);
    mtan_gru layer;
    memset(&layer, 0, sizeof layer);
    layer.w = take_plain(w, 3 * n * n, s->n > 30 ? 0.2 : 0.5), layer.ldw = n, layer.hidden = s->n;
    layer.samples = S, layer.reverse = s->add, layer.bias = take_plain(w, 3 * n, 1);
    take_input(w, s, &b, &layer, g);
    w->backend->gru_forward(&b, &layer, y, n, g, 3 * n, s->k % 2 ? hn : NULL, scratch);
}

/* ---- the variational part: m steps, n latent dimensions ---- */

static sizes varied(const kernel_shape *s) {
    const sizes z = {3, 1 + s->pad % 3, s->m < 40 ? s->m : 40, 2, 5, s->add, 0};
    return z;
}

static void run_latent(kernel_work *w, const kernel_shape *s) {
    const sizes z = varied(s);
    mtan_batch b = make_batch(w, &z);
    const size_t Z = (size_t)s->n, R = (size_t)b.rows, n = R * (size_t)b.samples * Z;
    mtan_real *posterior = take_plain(w, R * 2 * Z, 2), *dposterior = take(w, R * 2 * Z, 1), *noise = take(w, n, 2);
    mtan_real *values = take(w, n, 1), *dz = take(w, n, 1), *dkl = take(w, RECORDS, 1);
    mtan_real *dratio = take(w, RECORDS * (size_t)b.samples, 1);
    w->backend->sample_forward(values, posterior, noise, b.rows, b.samples, s->n);
    w->backend->sample_backward(dposterior, dz, values, posterior, b.rows, b.samples, s->n);
    w->backend->kl_backward(&b, dposterior, posterior, dkl, s->n);
    w->backend->ratio_backward(&b, dz, dposterior, values, dratio, s->n);
    b.one_latent = b.rows >= RECORDS; /* the first rows as the records' only ones */
    if (b.one_latent) w->backend->kl_backward(&b, dposterior, posterior, dkl, s->n);
}

static void run_latent_sums(kernel_work *w, const kernel_shape *s) {
    const sizes z = varied(s);
    const mtan_batch b = make_batch(w, &z);
    const size_t Z = (size_t)s->n, R = (size_t)b.rows, n = R * (size_t)b.samples * Z;
    mtan_real *posterior = take_plain(w, R * 2 * Z, 2), *values = take(w, n, 1), *noise = take(w, n, 2);
    w->backend->kl_forward(&b, take_room(w, RECORDS), posterior, s->n);
    w->backend->ratio_forward(&b, take_room(w, RECORDS * (size_t)b.samples), values, posterior, noise, s->n);
}

/* m channels */
static void run_losses(kernel_work *w, const kernel_shape *s) {
    const sizes z = {s->m, 1 + s->pad % 3, 2, 2, s->n < 40 ? s->n : 40, 1, 0};
    const mtan_batch b = make_batch(w, &z);
    const size_t n = (size_t)(b.queries * b.samples) * (size_t)b.channels, BS = RECORDS * (size_t)b.samples;
    mtan_real *prediction = take(w, n, 1), *dprediction = take(w, n, 1);
    double *error = (double *)(void *)take_layout(w, RECORDS * sizeof(double) / sizeof(mtan_real));
    w->backend->loglik_forward(&b, take_room(w, BS), prediction, 0.1);
    w->backend->loglik_backward(&b, dprediction, prediction, take(w, BS, 1), 0.1);
    w->backend->squared_error(&b, error, prediction);
    keep_doubles(w, error, RECORDS);
}

static void run_deviations(kernel_work *w, const kernel_shape *s) {
    const sizes z = {s->m, 1 + s->pad % 3, 2, 2, s->n < 40 ? s->n : 40, 1, 0};
    const mtan_batch b = make_batch(w, &z);
    const size_t n = (size_t)(b.queries * b.samples) * (size_t)b.channels, BS = RECORDS * (size_t)b.samples;
    mtan_real *prediction = take(w, n, 1), *raw = take(w, n, 1);
    mtan_real *dprediction = take(w, n, 1), *draw = take(w, n, 1);
    w->backend->loglik_sd_forward(&b, take_room(w, BS), prediction, raw, (mtan_real)0.1);
    w->backend->loglik_sd_backward(&b, dprediction, draw, prediction, raw, take(w, BS, 1), (mtan_real)0.1);
}

/* m records, three samples */
static void run_bound(kernel_work *w, const kernel_shape *s) {
    enum { S = 3 };
    const size_t B = (size_t)s->m, K = s->add ? B * S : B;
    mtan_real *logp = take(w, B * S, 2), *kl = take(w, K, 2), *share = take(w, B, 1), *weight = take_room(w, B * S);
    mtan_real *dlogp = take(w, B * S, 1), *dkl = take(w, K, 1);
    w->backend->bound_forward(s->m, take_room(w, B), weight, logp, kl, s->add, S,
                              s->k ? MTAN_BOUND_IWAE : MTAN_BOUND_ELBO, 0.7, share);
    w->backend->bound_backward(s->m, dlogp, dkl, s->add, weight, S, (mtan_real)0.7, (mtan_real)0.25, share);
}

/* n classes: rows of the queries, or m labels of `samples` rows */
static void run_cross_entropy(kernel_work *w, const kernel_shape *s) {
    const sizes z = {2, 1 + s->pad % 3, 2, 2, 9, 1, 0};
    const mtan_batch b = make_batch(w, &z);
    const int32_t samples = s->add ? 0 : b.samples, C = s->n < 2 ? 2 : s->n,
                  labels = s->m < b.queries ? s->m : b.queries;
    const int32_t rows = (s->add ? b.queries : labels) * b.samples;
    const size_t n = area(rows, C);
    mtan_real *p = take_room(w, n), *x = take_plain(w, n, 5);
    w->backend->cross_entropy_forward(&b, take_room(w, (size_t)rows), p, x, b.label, NULL, rows, samples, C);
    w->backend->cross_entropy_backward(&b, take(w, n, 1), p, b.label, NULL, (mtan_real)0.25, rows, samples, C);
    mtan_real *weight = take_positive(w, (size_t)C, 1e-6, 1);
    w->backend->cross_entropy_forward(&b, take_room(w, (size_t)rows), p, x, b.label, weight, rows, samples, C);
    w->backend->cross_entropy_backward(&b, take(w, n, 1), p, b.label, weight, (mtan_real)0.25, rows, samples, C);
}

/* n numbers or labels, some of them missing; rows as for the labels above */
static void run_numbers(kernel_work *w, const kernel_shape *s) {
    const sizes z = {2, 1 + s->pad % 3, 2, 2, 9, 1, 0};
    const mtan_batch b = make_batch(w, &z);
    const mtan_targets targets[] = {
        {MTAN_TASK_NUMBER, s->n, 0}, {MTAN_TASK_NUMBER, s->n, (mtan_real)0.9}, {MTAN_TASK_LABELS, s->n, 0}};
    const int32_t samples = s->add ? 0 : b.samples, labels = s->m < b.queries ? s->m : b.queries;
    const int32_t rows = (s->add ? b.queries : labels) * b.samples;
    for (int k = 0; k < 3; k++) {
        const size_t wanted = area(b.queries, s->n), n = area(rows, s->n) * (targets[k].interval > 0 ? 3 : 1);
        mtan_real *y = malloc((wanted + 1) * sizeof *y), *given, *p = take_room(w, n), *x = take_plain(w, n, 5);
        if (!y) abort();
        for (size_t i = 0; i < wanted; i++) {
            const int32_t whole = small_whole(&w->random, -1, 1);
            y[i] = whole < 0 ? (mtan_real)NAN : (mtan_real)whole;
        }
        given = give(w, y, wanted);
        free(y);
        w->backend->numbers_forward(&b, take_room(w, (size_t)rows), p, x, given, &targets[k], rows, samples);
        w->backend->numbers_backward(&b, take(w, n, 1), p, given, &targets[k], (mtan_real)0.25, rows, samples);
    }
}

/* ---- random numbers: n wide ---- */

static void run_normals(kernel_work *w, const kernel_shape *s) {
    const size_t n = area(s->m, s->n);
    mtan_real *u = malloc((n + 1) * sizeof *u), *rest = malloc((n + 1) * sizeof *rest), *a, *b, *v, *normals;
    if (!u || !rest) abort();
    for (size_t i = 0; i < n; i++) {
        u[i] = (mtan_real)small_whole(&w->random, 0, (1 << 20) - 1) / (1 << 20);
        if (i % 7 == 0) u[i] = i % 2 ? 0 : (mtan_real)1e-10;
        rest[i] = 1 - u[i];
    }
    a = give(w, u, n), b = give(w, rest, n);
    free(u), free(rest);
    v = take_positive(w, n, 0, 1), normals = take_room(w, 2 * n);
    w->backend->normal_pairs(normals, a, b, v, n);
}

static void run_random(kernel_work *w, const kernel_shape *s) {
    sizes z = varied(s);
    mtan_batch b = make_batch(w, &z);
    const size_t N = (size_t)s->n, S = (size_t)b.samples;
    w->backend->noise(&b, take_room(w, (size_t)b.rows * S * N), 5, (uint64_t)7 << 33, s->n);
    w->backend->mask(&b, take_room(w, RECORDS * S * N), 0.3, 6, 11, s->n, MTAN_ROWS_BY_RECORD, 1);
    w->backend->mask(&b, take_room(w, (size_t)b.queries * S * N), 0.3, 6, 11, s->n, MTAN_ROWS_BY_QUERY, 0);
    b.one_latent = 1;
    w->backend->noise(&b, take_room(w, RECORDS * S * N), 5, 3, s->n);
    b.samples = 1;
    w->backend->mask(&b, take_room(w, (size_t)b.rows * N), 0.3, 6, 11, s->n, MTAN_ROWS_BY_STEP, 1);
}

/* ---- the list of cases ---- */

const kernel_case kernel_cases[] = {
    {"product_nn", run_nn, 1, KERNEL_SAME},
    {"product_nt", run_nt, 1, KERNEL_SAME},
    {"product_tn", run_tn, 1, KERNEL_SAME},
    {"product_packed", run_packed, 1, KERNEL_SAME},
    {"product_packed turned", run_packed_turned, 1, KERNEL_SAME},
    {"product_int8", run_int8, 1, KERNEL_SAME},
    {"product_int8 in place", run_int8_in_place, 1, KERNEL_SAME},
    {"map", run_map, 0, KERNEL_SAME},
    {"moves", run_moves, 0, KERNEL_SAME},
    {"sums", run_sums, 0, KERNEL_NEAR},
    {"elementwise", run_elementwise, 0, KERNEL_SAME},
    {"optimisers", run_optimisers, 0, KERNEL_SAME},
    {"average", run_average, 0, KERNEL_SAME},
    {"embedding", run_embed, 0, KERNEL_SAME},
    {"embedding, backward", run_embed_backward, 0, KERNEL_NEAR},
    {"softmax", run_softmax, 0, KERNEL_NEAR},
    {"rows", run_rows, 0, KERNEL_SAME},
    {"scores", run_scores, 0, KERNEL_SAME},
    {"softmax of pairs", run_pairs, 0, KERNEL_NEAR},
    {"values", run_values, 0, KERNEL_SAME},
    {"attention", run_attend, 0, KERNEL_SAME},
    {"logarithms under bases", run_log_under, 0, KERNEL_SAME},
    {"local statistics", run_moments, 0, KERNEL_SAME},
    {"rbf", run_rbf, 0, KERNEL_SAME},
    {"rbf, backward", run_rbf_backward, 0, KERNEL_NEAR},
    {"smooth", run_smooth, 0, KERNEL_NEAR},
    {"gates", run_gates, 0, KERNEL_SAME},
    {"gru", run_gru, 0, KERNEL_NEAR},
    {"gru with its input", run_gru_input, 0, KERNEL_NEAR},
    {"latent", run_latent, 0, KERNEL_SAME},
    {"latent, sums", run_latent_sums, 0, KERNEL_NEAR},
    {"losses", run_losses, 0, KERNEL_NEAR},
    {"losses with deviations", run_deviations, 0, KERNEL_NEAR},
    {"bound", run_bound, 0, KERNEL_SAME},
    {"cross entropy", run_cross_entropy, 0, KERNEL_SAME},
    {"numbers", run_numbers, 0, KERNEL_SAME},
    {"normals", run_normals, 0, KERNEL_SAME},
    {"random numbers", run_random, 0, KERNEL_SAME},
    {NULL, NULL, 0, KERNEL_SAME},
};

const kernel_case *kernel_case_named(const char *name) {
    const kernel_case *c = kernel_cases;
    while (c->name && strcmp(c->name, name) != 0) c++;
    return c->name ? c : NULL;
}
