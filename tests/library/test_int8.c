/* int8 weights: how far a quantised row, product and prediction may be from the original; files with them, loaded and used
 * in place; and what is wrong with a file. That all backends give the same bits is tested with their other kernels, in test_simd.c. */
#include <greatest.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../simd/mtan_simd.h"
#include "check.h"
#include "published.h"
#include "small.h"
#include "tiny_model.h"
#include "caller.h"

/* ---- rows and products ---- */

static void fill(mtan_real *x, size_t n, double scale, uint64_t *random) {
    for (size_t i = 0; i < n; i++) x[i] = (mtan_real)scale * small_real(random);
}

/* Half a step, and the rounding of the scale to float. */
static int row_is_near(const mtan_real *x, size_t n) {
    int8_t *q = guard_alloc(n);
    const double scale = (double)mtan_row_quantize(q, x, n);
    int largest = 0, ok = scale > 0;
    for (size_t i = 0; i < n; i++) {
        ok = ok && fabs((double)x[i] - q[i] * scale) <= 0.5 * scale * (1 + 1e-4) && q[i] >= -127;
        largest = abs(q[i]) > largest ? abs(q[i]) : largest;
    }
    return guard_free(q) && ok && largest == 127;
}

TEST a_row_is_half_a_step_away(void) {
    static const size_t lengths[] = {1, 2, 7, 64, 513};
    uint64_t random = 3;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (double scale = 1e-25; scale < 1e30; scale *= 1e5) {
            mtan_real *x = guard_alloc(lengths[i] * sizeof *x);
            fill(x, lengths[i], scale, &random);
            x[0] = (mtan_real)(i % 2 ? scale : -scale);
            ASSERT(row_is_near(x, lengths[i]));
            ASSERT(guard_free(x));
        }
    PASS();
}

TEST rows_without_a_step(void) {
    mtan_real x[4] = {0, -0.0f, 0, 0};
    int8_t q[4] = {1, 1, 1, 1};
    ASSERT_EQ(0, mtan_row_quantize(q, x, 4));
    ASSERT(q[0] == 0 && q[1] == 0 && q[2] == 0 && q[3] == 0);
    x[1] = (mtan_real)1e-35;
    ASSERT_EQ(0, mtan_row_quantize(q, x, 4));
    x[2] = (mtan_real)-INFINITY;
    ASSERT(isnan((double)mtan_row_quantize(q, x, 4)));
    x[2] = (mtan_real)NAN;
    ASSERT(isnan((double)mtan_row_quantize(q, x, 4)));
    ASSERT(q[1] == 0 && q[2] == 0);
    PASS();
}

/* Weights are half a step off at most, and so are activations, whose step is 1/32767 of the largest; a sum of k floats is off
 * by k roundings at most. */
static double product_limit(const mtan_real *a, const mtan_real *b, size_t k) {
    double largest_a = 0, largest_b = 0, sum_a = 0, sum_b = 0;
    for (size_t p = 0; p < k; p++) {
        const double x = fabs((double)a[p]), y = fabs((double)b[p]);
        largest_a = fmax(largest_a, x), largest_b = fmax(largest_b, y), sum_a += x, sum_b += y;
    }
    return 0.5 * largest_b / 127 * sum_a + 0.5 * largest_a / 32767 * (sum_b + (double)k * largest_b / 254) +
           1e-5 * largest_b * sum_a;
}

/* b^T by the rows of b where they lie: the bits of the packed product. */
static int rows_in_place(const mtan_real *a, const mtan_real *b, const mtan_real *packed_c, int32_t m, int32_t n,
                         int32_t k) {
    const size_t N = (size_t)n, K = (size_t)k, bytes = (size_t)m * N * sizeof(mtan_real);
    mtan_real *c = guard_alloc(bytes), *scale = guard_alloc(N * sizeof *scale);
    int8_t *q = guard_alloc(N * K);
    int ok;
    for (size_t i = 0; i < N; i++) scale[i] = mtan_row_quantize(q + i * K, b + i * K, K);
    mtan_backend_scalar.product_nt_int8(c, N, a, K, q, scale, m, n, k, 0);
    ok = check_same("in place", c, packed_c, bytes);
    ok = guard_free(c) && ok, ok = guard_free(scale) && ok;
    return guard_free(q) && ok;
}

/* a b with b's rows (k, n) where they lie, their scales in the columns of a. */
static int columns_in_place(int32_t m, int32_t n, int32_t k, uint64_t *random) {
    const size_t M = (size_t)m, N = (size_t)n, K = (size_t)k;
    mtan_real *a = guard_alloc(M * K * sizeof *a), *b = guard_alloc(K * N * sizeof *b),
              *c = guard_alloc(M * N * sizeof *c);
    int8_t *q = guard_alloc(K * N);
    double *exact = calloc(M * N, sizeof *exact);
    int ok = exact != NULL;
    fill(a, M * K, 3, random), fill(b, K * N, 0.1, random);
    for (size_t p = 0; p < K; p++) {
        const mtan_real scale = mtan_row_quantize(q + p * N, b + p * N, N);
        for (size_t i = 0; i < M; i++) a[i * K + p] *= scale;
    }
    for (size_t i = 0; i < M * N; i++)
        for (size_t p = 0; p < K; p++) exact[i] += (double)a[i / N * K + p] * q[p * N + i % N];
    fill(c, M * N, 1, random);
    for (size_t i = 0; i < M * N; i++) exact[i] += (double)c[i];
    mtan_backend_scalar.product_nn_int8(c, N, a, K, q, m, n, k, 1);
    for (size_t i = 0; i < M * N; i++) { /* half a step of the largest activation, on every term */
        double largest = 0, sum = 0;
        for (size_t p = 0; p < K; p++) {
            largest = fmax(largest, fabs((double)a[i / N * K + p]));
            sum += abs(q[p * N + i % N]);
        }
        ok = ok && fabs((double)c[i] - exact[i]) <= 0.5 * largest / 32767 * sum + 1e-5;
    }
    free(exact);
    ok = guard_free(a) && ok, ok = guard_free(b) && ok, ok = guard_free(c) && ok;
    return guard_free(q) && ok;
}

TEST products_in_place(void) {
    uint64_t random = 8;
    ASSERT(columns_in_place(3, 40, 9, &random));
    ASSERT(columns_in_place(2, 7, 512, &random));
    ASSERT(columns_in_place(1, 5, 1500, &random));
    PASS();
}

static int product_is_near(int32_t m, int32_t n, int32_t k, uint64_t *random) {
    const mtan_backend *s = &mtan_backend_scalar;
    const size_t M = (size_t)m, N = (size_t)n, K = (size_t)k;
    mtan_real *a = guard_alloc(M * K * sizeof *a), *b = guard_alloc(N * K * sizeof *b),
              *c = guard_alloc(M * N * sizeof *c);
    mtan_real *packed = guard_alloc(s->pack_int8_count(n, k) * sizeof *packed);
    int ok = 1, moved = 0;
    fill(a, M * K, 3, random), fill(b, N * K, 0.1, random);
    s->pack_int8(packed, b, K, n, k);
    s->product_int8(c, N, a, K, packed, m, n, k, 0);
    for (size_t i = 0; i < M * N; i++) {
        const mtan_real *x = a + i / N * K, *y = b + i % N * K;
        double exact = 0;
        for (size_t p = 0; p < K; p++) exact += (double)x[p] * (double)y[p];
        ok = ok && fabs((double)c[i] - exact) <= product_limit(x, y, K);
        moved |= fabs((double)c[i] - exact) > 1e-4 * fabs(exact);
    }
    ok = ok && rows_in_place(a, b, c, m, n, k);
    ok = guard_free(a) && ok, ok = guard_free(b) && ok, ok = guard_free(c) && ok;
    return guard_free(packed) && ok && moved; /* without a difference it would not be int8 */
}

TEST a_product_is_near(void) {
    uint64_t random = 4;
    ASSERT(product_is_near(3, 40, 9, &random));
    ASSERT(product_is_near(2, 33, 512, &random));
    ASSERT(product_is_near(2, 10, 513, &random));
    ASSERT(product_is_near(1, 10, 1500, &random));
    PASS();
}

/* The largest sums there are: 512 terms, all at the ends of their ranges. */
TEST the_largest_sums_fit(void) {
    enum { K = 1024 };
    const mtan_backend *s = &mtan_backend_scalar;
    mtan_real a[K], b[K], packed[1 + K], c = 0;
    for (int i = 0; i < K; i++) a[i] = -2, b[i] = 3;
    s->pack_int8(packed, b, K, 1, K);
    s->product_int8(&c, 1, a, K, packed, 1, 1, K, 0);
    ASSERT(fabs((double)c + 6.0 * K) <= 0.01);
    PASS();
}

TEST what_is_not_finite_stays_in_its_row(void) {
    const mtan_backend *s = &mtan_backend_scalar;
    mtan_real a[6] = {1, 2, (mtan_real)NAN, 1, (mtan_real)INFINITY, 1}, b[4] = {1, 2, 3, 4}, packed[8], c[6];
    s->pack_int8(packed, b, 2, 2, 2);
    s->product_int8(c, 2, a, 2, packed, 3, 2, 2, 0);
    ASSERT(fabs((double)c[0] - 5) < 0.05 && fabs((double)c[1] - 11) < 0.1);
    for (int i = 2; i < 6; i++) ASSERT(isnan((double)c[i]));
    PASS();
}

/* ---- files ---- */

enum { MOST = 2 * MTAN_MAX_PARAMS, MOST_PAIRS = 128 };

/* A model's file with its matrices in int8, in which a test can spoil something. */
typedef struct {
    mtan_file_entry entries[MOST];
    mtan_file_pair pairs[MOST_PAIRS];
    char texts[MOST_PAIRS][2][64];
    mtan_param params[MTAN_MAX_PARAMS];
    char names[MTAN_MAX_PARAMS][64];
    int8_t *q;    /* as many as there are weights */
    float *scale; /* likewise */
    size_t n, m;
} int8_file;

static mtan_file_entry entry_of(const char *name, mtan_dtype dtype, const mtan_param *p, int rank, const void *data) {
    mtan_file_entry e;
    memset(&e, 0, sizeof e);
    e.name = name, e.dtype = dtype, e.rank = rank, e.data = data;
    e.shape[0] = (size_t)p->rows, e.shape[1] = rank == 2 ? (size_t)p->cols : 0;
    return e;
}

static void add_settings(int8_file *f, const mtan_config *config) {
    for (int32_t i = 0; mtan_config_key(i); i++, f->m++) {
        snprintf(f->texts[i][0], sizeof f->texts[i][0], "mtan.%s", mtan_config_key(i));
        mtan_config_get(config, mtan_config_key(i), f->texts[i][1], sizeof f->texts[i][1]);
        f->pairs[f->m].key = f->texts[i][0], f->pairs[f->m].value = f->texts[i][1];
    }
}

/* columns: matrices of one column, too, which a file for mtan_model_open leaves as reals */
static int8_file *file_of(const tiny_model *s, int columns) {
    int8_file *f = calloc(1, sizeof *f);
    if (!f || !(f->q = malloc(s->count)) || !(f->scale = malloc(s->count * sizeof *f->scale))) exit(2);
    for (int32_t i = 0; i < mtan_param_count(&s->config); i++) {
        mtan_param *p = &f->params[i], copy;
        mtan_param_at(&s->config, i, &copy);
        *p = copy;
        const size_t rows = (size_t)p->rows, cols = (size_t)p->cols;
        const mtan_real *w = s->weights + p->offset;
        snprintf(f->names[i], sizeof f->names[i], "%s.scale", copy.name); /* gcc fears that two texts of f overlap */
        if (p->rank != 2 || (p->cols == 1 && !columns)) {
            f->entries[f->n++] = entry_of(p->name, MTAN_DTYPE_REAL, p, p->rank, w);
            continue;
        }
        for (size_t r = 0; r < rows; r++)
            f->scale[p->offset + r] = (float)mtan_row_quantize(f->q + p->offset + r * cols, w + r * cols, cols);
        f->entries[f->n++] = entry_of(p->name, MTAN_DTYPE_I8, p, 2, f->q + p->offset);
        f->entries[f->n++] = entry_of(f->names[i], MTAN_DTYPE_F32, p, 1, f->scale + p->offset);
    }
    add_settings(f, &s->config);
    return f;
}

static void file_free(int8_file *f) {
    free(f->q), free(f->scale), free(f);
}

/* The file in a guarded block, `shift` bytes behind its start. */
static uint8_t *bytes_of(const int8_file *f, size_t shift, size_t *bytes) {
    uint8_t *blob;
    if (mtan_file_write_size(f->entries, f->n, f->pairs, f->m, bytes) != MTAN_OK) return NULL;
    blob = guard_alloc(*bytes + shift);
    if (mtan_file_write_memory(f->entries, f->n, f->pairs, f->m, blob + shift, *bytes, bytes) == MTAN_OK) return blob;
    guard_free(blob);
    return NULL;
}

static mtan_file_entry *entry_named(int8_file *f, const char *name) {
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->entries[i].name, name) == 0) return &f->entries[i];
    exit(2);
}

static int weights_are(const int8_file *f, const tiny_model *s, const mtan_real *loaded) {
    int ok = 1;
    for (int32_t i = 0; i < mtan_param_count(&s->config); i++) {
        const mtan_param *p = &f->params[i];
        for (size_t k = p->offset; k < p->offset + (size_t)p->rows * (size_t)p->cols; k++) {
            const size_t row = p->offset + (k - p->offset) / (size_t)p->cols;
            const mtan_real expected = p->rank == 2 ? (mtan_real)f->q[k] * (mtan_real)f->scale[row] : s->weights[k];
            ok = ok && loaded[k] == expected;
        }
    }
    return ok;
}

/* From any address; and quantising what was loaded changes none of the whole numbers. */
TEST a_file_comes_back(size_t shift) {
    tiny_model s;
    tiny_open(&s, TINY_FULL, 2);
    int8_file *f = file_of(&s, 1);
    size_t bytes = 0, count = 0;
    uint8_t *blob = bytes_of(f, shift, &bytes);
    mtan_model model;
    ASSERT(blob);
    ASSERT_EQ(MTAN_OK, blob_load_count(blob + shift, bytes, &count));
    mtan_real *loaded = guard_alloc(count * sizeof *loaded);
    ASSERT_EQ(MTAN_OK, blob_load(&model, loaded, count, blob + shift, bytes));
    ASSERT_EQ(MTAN_INT8, model.precision);
    ASSERT(weights_are(f, &s, loaded));
    memcpy(s.weights, loaded, s.count * sizeof *loaded);
    int8_file *again = file_of(&s, 1);
    for (int32_t i = 0; i < mtan_param_count(&s.config); i++) {
        const mtan_param *p = &f->params[i];
        if (p->rank == 2) ASSERT_MEM_EQ(f->q + p->offset, again->q + p->offset, (size_t)p->rows * (size_t)p->cols);
    }
    ASSERT_EQ(MTAN_ERR_SHAPE, blob_open(&model, blob + shift, bytes));
    ASSERT(guard_free(loaded) && guard_free(blob) && tiny_close(&s));
    file_free(f), file_free(again);
    PASS();
}

/* ---- hostile files ---- */

static float bad_scale[64];

static void without_scale(int8_file *f) {
    *entry_named(f, "rec.classifier.0.weight.scale") = f->entries[--f->n];
}
static void short_scale(int8_file *f) {
    entry_named(f, "rec.classifier.0.weight.scale")->shape[0]--;
}
static void scale_of_rank_2(int8_file *f) {
    mtan_file_entry *e = entry_named(f, "rec.classifier.0.weight.scale");
    e->rank = 2, e->shape[1] = 1;
}
static void scale_of_integers(int8_file *f) {
    entry_named(f, "rec.classifier.0.weight.scale")->dtype = MTAN_DTYPE_I32;
}
static void scale_with(int8_file *f, float x) {
    for (size_t i = 0; i < 64; i++) bad_scale[i] = 1;
    bad_scale[3] = x;
    entry_named(f, "rec.classifier.0.weight.scale")->data = bad_scale;
}
static void scale_nan(int8_file *f) {
    scale_with(f, NAN);
}
static void scale_infinite(int8_file *f) {
    scale_with(f, INFINITY);
}
static void scale_negative(int8_file *f) {
    scale_with(f, -1);
}
static void scale_too_large(int8_file *f) {
    scale_with(f, 3e36f); /* 127 times it is infinite */
}
static void other_shape(int8_file *f) {
    mtan_file_entry *e = entry_named(f, "rec.classifier.0.weight");
    const size_t rows = e->shape[0];
    e->shape[0] = e->shape[1], e->shape[1] = rows;
}
static void int8_vector(int8_file *f) {
    entry_named(f, "rec.classifier.0.bias")->dtype = MTAN_DTYPE_I8;
}

static void int8_vector_with_scale(int8_file *f) {
    mtan_file_entry *scale = &f->entries[f->n++];
    int8_vector(f);
    scale_with(f, 1);
    *scale = *entry_named(f, "rec.classifier.0.weight.scale");
    scale->name = "rec.classifier.0.bias.scale";
}

static const struct {
    const char *name;
    void (*spoil)(int8_file *f);
    mtan_status status;
} spoils[] = {{"no scale", without_scale, MTAN_ERR_MISSING},
              {"short scale", short_scale, MTAN_ERR_SHAPE},
              {"rank of scale", scale_of_rank_2, MTAN_ERR_SHAPE},
              {"type of scale", scale_of_integers, MTAN_ERR_SHAPE},
              {"NaN", scale_nan, MTAN_ERR_FILE},
              {"infinite", scale_infinite, MTAN_ERR_FILE},
              {"negative", scale_negative, MTAN_ERR_FILE},
              {"too large", scale_too_large, MTAN_ERR_FILE},
              {"shape", other_shape, MTAN_ERR_SHAPE},
              {"vector", int8_vector, MTAN_ERR_MISSING},
              {"vector with a scale", int8_vector_with_scale, MTAN_ERR_SHAPE}};

TEST a_spoilt_file_is_refused(int index) {
    tiny_model s;
    tiny_open(&s, TINY_ENC, 1);
    int8_file *f = file_of(&s, 0);
    mtan_model model, before;
    mtan_real *loaded = guard_alloc(s.count * sizeof *loaded), *untouched = tiny_copy(loaded, s.count);
    size_t bytes = 0;
    spoils[index].spoil(f);
    uint8_t *blob = bytes_of(f, 0, &bytes);
    ASSERT(blob);
    memset(&model, 7, sizeof model), before = model;
    ASSERT_EQ_FMTm(spoils[index].name, spoils[index].status, blob_load(&model, loaded, s.count, blob, bytes), "%d");
    ASSERT_MEM_EQ(&before, &model, sizeof model);
    ASSERT_MEM_EQ(untouched, loaded, s.count * sizeof *loaded);
    ASSERT(blob_open(&model, blob, bytes) < 0);
    ASSERT_MEM_EQ(&before, &model, sizeof model);
    ASSERT(guard_free(loaded) && guard_free(blob) && tiny_close(&s));
    free(untouched), file_free(f);
    PASS();
}

/* ---- models in place ---- */

enum { PLACES = 6 }; /* records */

/* Can a file of F32 be used in place here? */
static int in_place_host(void) {
    return sizeof(mtan_real) == sizeof(float) && host_is_little();
}

static mtan_status small_logits(const mtan_model *model, const tiny_model *s, int32_t points,
                                mtan_real out[2 * PLACES]) {
    size_t bytes = 0;
    mtan_status status = mtan_small_size(model, points, &bytes);
    void *memory;
    if (status != MTAN_OK) return status;
    memory = guard_alloc(bytes);
    for (int b = 0; b < PLACES && status == MTAN_OK; b++)
        status = mtan_small_logits(model, &s->records[b], points, memory, bytes, out + 2 * b);
    return guard_free(memory) ? status : MTAN_ERR_MEMORY;
}

/* Logits of the loaded file in reals: what is left of the difference are activations of 16 bits. */
static mtan_status real_logits(tiny_model *s, const void *blob, size_t bytes, mtan_real out[2 * PLACES]) {
    const mtan_status status = blob_load(&s->model, s->weights, s->count, blob, bytes);
    s->model.precision = MTAN_REAL;
    tiny_predict(s, PLACES);
    return status == MTAN_OK ? mtan_predictor_logits(&s->predictor, s->records, PLACES, out) : status;
}

/* The same numbers in two arrays, as `mtan export` writes them. */
static int init_arrays(mtan_model *model, const int8_file *f, const tiny_model *s, mtan_real **weights, int8_t **rows) {
    size_t count = 0, bytes = 0, reals = 0, whole = 0;
    if (mtan_model_int8_counts(&s->config, &count, &bytes) != MTAN_OK) return 0;
    *weights = guard_alloc(count * sizeof **weights), *rows = guard_alloc(bytes);
    for (int32_t i = 0; i < mtan_param_count(&s->config); i++) {
        const mtan_param *p = &f->params[i];
        const size_t n = (size_t)p->rows * (size_t)p->cols;
        if (p->rank != 2 || p->cols == 1) {
            memcpy(*weights + reals, s->weights + p->offset, n * sizeof **weights);
            reals += n;
            continue;
        }
        for (int32_t r = 0; r < p->rows; r++) (*weights)[reals++] = f->scale[p->offset + (size_t)r];
        memcpy(*rows + whole, f->q + p->offset, n);
        whole += n;
    }
    if (reals != count || whole != bytes) return 0;
    if (mtan_model_init_int8(model, &s->config, *weights, count - 1, *rows, bytes) != MTAN_ERR_MEMORY) return 0;
    if (mtan_model_init_int8(model, &s->config, *weights, count, *rows, bytes - 1) != MTAN_ERR_MEMORY) return 0;
    if (mtan_model_init_int8(model, &s->config, *weights, count, NULL, bytes) != MTAN_ERR_NULL) return 0;
    return mtan_model_init_int8(model, &s->config, *weights, count, *rows, bytes) == MTAN_OK;
}

/* Arrays and file give the same bits on every backend of a class, with any number of points at a time. */
static int same_in_place(const mtan_model *model, const tiny_model *s, const mtan_real *first) {
    mtan_backend_choice choice;
    mtan_real class[2][2 * PLACES], got[2 * PLACES];
    int known[2] = {0, 0}, ok = 1;
    mtan_model m = *model;
    for (int i = 0; mtan_backend_list(i, &choice); i++)
        for (int32_t points = 1; choice.backend && ok && points <= s->config.ref_points; points++) {
            const int fused = choice.backend->fused != 0;
            m.backend = choice.backend;
            ok = small_logits(&m, s, points, got) == MTAN_OK;
            if (!known[fused]) memcpy(class[fused], got, sizeof got);
            known[fused] = 1;
            ok = ok && check_same(choice.name, got, class[fused], sizeof got);
            if (fused == (mtan_backend_scalar.fused != 0)) ok = ok && check_same("arrays", got, first, sizeof got);
        }
    return ok;
}

static int refused(const mtan_model *model, const tiny_model *s) {
    mtan_train_config config;
    mtan_model real = *model; /* who says that it has reals does not make it so */
    size_t bytes = 0;
    mtan_train_config_init(&config);
    real.precision = MTAN_REAL;
    return mtan_predictor_size(model, &s->bounds, &bytes) == MTAN_ERR_CONFIG &&
           mtan_stream_size(model, 0, &bytes) == MTAN_ERR_CONFIG &&
           mtan_trainer_size(model, &config, &s->bounds, &bytes) == MTAN_ERR_CONFIG &&
           mtan_trainer_size(&real, &config, &s->bounds, &bytes) == MTAN_ERR_CONFIG;
}

TEST a_model_in_place(tiny_kind kind) {
    mtan_real got[2 * PLACES], ref[2 * PLACES], *weights;
    int8_t *rows;
    mtan_model arrays, opened;
    tiny_model s;
    size_t bytes = 0;
    double worst = 0;
    tiny_open(&s, kind, PLACES);
    int8_file *f = file_of(&s, 0);
    uint8_t *blob = bytes_of(f, 0, &bytes);
    ASSERT(blob && init_arrays(&arrays, f, &s, &weights, &rows));
    ASSERT_EQ(MTAN_INT8, arrays.precision);
    ASSERT_EQ(MTAN_OK, small_logits(&arrays, &s, 1, got));
    ASSERT(same_in_place(&arrays, &s, got));
    ASSERT(refused(&arrays, &s));
    ASSERT_EQ(in_place_host() ? MTAN_OK : MTAN_ERR_SHAPE, blob_open(&opened, blob, bytes));
    if (in_place_host())
        ASSERT(opened.precision == MTAN_INT8 && same_in_place(&opened, &s, got) && refused(&opened, &s));
    ASSERT_EQ(MTAN_OK, real_logits(&s, blob, bytes, ref));
    for (int i = 0; i < 2 * PLACES; i++) {
        const double d = fabs((double)got[i] - (double)ref[i]);
        worst = d > worst || isnan(d) ? d : worst;
    }
    ASSERT(worst > 0 && worst < 1e-4);
    ASSERT(guard_free(weights) && guard_free(rows) && guard_free(blob) && tiny_close(&s));
    file_free(f);
    PASS();
}

/* One matrix stays reals: it is used as such beside the others. */
TEST a_mixed_model_in_place(void) {
    mtan_real got[2 * PLACES], ref[2 * PLACES], all[2 * PLACES];
    mtan_model opened;
    tiny_model s;
    mtan_param p;
    size_t bytes = 0, more = 0;
    if (!in_place_host()) SKIPm("a file of F32 cannot be used in place here");
    tiny_open(&s, TINY_ENC, PLACES);
    int8_file *f = file_of(&s, 0);
    uint8_t *whole = bytes_of(f, 0, &more);
    mtan_file_entry *e = entry_named(f, "rec.classifier.0.weight");
    for (int32_t i = 0; i < mtan_param_count(&s.config); i++)
        if (mtan_param_at(&s.config, i, &p) == MTAN_OK && strcmp(p.name, e->name) == 0) break;
    e->dtype = MTAN_DTYPE_REAL, e->data = s.weights + p.offset;
    uint8_t *blob = bytes_of(f, 0, &bytes);
    ASSERT(blob && whole);
    ASSERT_EQ(MTAN_OK, blob_open(&opened, whole, more));
    ASSERT_EQ(MTAN_OK, small_logits(&opened, &s, 2, all));
    ASSERT_EQ(MTAN_OK, blob_open(&opened, blob, bytes));
    ASSERT_EQ(MTAN_INT8, opened.precision);
    ASSERT_EQ(MTAN_OK, small_logits(&opened, &s, 2, got));
    ASSERT_EQ(MTAN_OK, real_logits(&s, blob, bytes, ref));
    for (int i = 0; i < 2 * PLACES; i++) ASSERT(fabs((double)got[i] - (double)ref[i]) < 1e-4);
    ASSERT(memcmp(got, all, sizeof got) != 0);
    ASSERT(guard_free(blob) && guard_free(whole) && tiny_close(&s));
    file_free(f);
    PASS();
}

TEST arrays_that_are_not_there(void) {
    tiny_model s;
    mtan_model model, before;
    mtan_config bad;
    size_t count = 5, bytes = 5;
    int8_t row = 0;
    tiny_open(&s, TINY_ENC, 1);
    bad = s.config, bad.embed = 0;
    memset(&model, 7, sizeof model), before = model;
    ASSERT_EQ(MTAN_ERR_NULL, mtan_model_int8_counts(NULL, &count, &bytes));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_model_int8_counts(&s.config, NULL, &bytes));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_model_int8_counts(&s.config, &count, NULL));
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_model_int8_counts(&bad, &count, &bytes));
    ASSERT(count == 5 && bytes == 5);
    ASSERT_EQ(MTAN_ERR_NULL, mtan_model_init_int8(NULL, &s.config, s.weights, s.count, &row, s.count));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_model_init_int8(&model, &s.config, NULL, s.count, &row, s.count));
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_model_init_int8(&model, &bad, s.weights, s.count, &row, s.count));
    ASSERT_MEM_EQ(&before, &model, sizeof model);
    ASSERT(tiny_close(&s));
    PASS();
}

/* Weights to what int8 makes of them, and the arrays that are used in place. */
static void quantize_all(small_model *m, mtan_real *weights, int8_t *rows) {
    for (int32_t i = 0; i < mtan_param_count(&m->config); i++) {
        mtan_param p;
        mtan_param_at(&m->config, i, &p);
        const size_t cols = (size_t)p.cols;
        for (mtan_real *x = m->weights + p.offset, *end = x + (size_t)p.rows * cols; x < end; x += cols) {
            if (p.rank != 2 || p.cols == 1) {
                *weights++ = *x;
                continue;
            }
            *weights = mtan_row_quantize(rows, x, cols);
            for (size_t k = 0; k < cols; k++) x[k] = (mtan_real)*rows++ * *weights;
            weights++;
        }
    }
}

/* Several heads, an embedding for each, the fixed one, given points: against the same numbers as reals. */
TEST heads_in_place(void) {
    static const char *const names[] = {"enc heads", "enc per head", "enc fixed", "enc record given"};
    const mtan_bounds bounds = {1, 40, 20};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        uint64_t random = 21;
        size_t count = 0, whole = 0, bytes = 0;
        small_model m;
        mtan_model model;
        ASSERT(small_open_named(&m, names[k]));
        small_set set = small_records(&m.config, &bounds, 4, 1, &random);
        ASSERT_EQ(MTAN_OK, mtan_model_int8_counts(&m.config, &count, &whole));
        mtan_real *weights = guard_alloc(count * sizeof *weights);
        int8_t *rows = guard_alloc(whole);
        quantize_all(&m, weights, rows);
        ASSERT_EQ(MTAN_OK, mtan_model_init_int8(&model, &m.config, weights, count, rows, whole));
        ASSERT_EQ(MTAN_OK, mtan_small_size(&model, 2, &bytes));
        void *memory = guard_alloc(bytes);
        for (int32_t b = 0; b < set.n; b++) {
            mtan_real got[2], ref[2];
            ASSERT_EQ(MTAN_OK, mtan_small_logits(&model, &set.records[b], 2, memory, bytes, got));
            ASSERT_EQ(MTAN_OK, mtan_small_logits(&m.model, &set.records[b], 2, memory, bytes, ref));
            for (int i = 0; i < 2; i++) ASSERTm(names[k], fabs((double)got[i] - (double)ref[i]) < 1e-4);
            ASSERT(memcmp(got, ref, sizeof got) != 0);
        }
        ASSERT(guard_free(weights) && guard_free(rows) && guard_free(memory) && small_free(&set) && small_close(&m));
    }
    PASS();
}

static mtan_status no_write(void *context, const void *bytes, size_t n) {
    (void)context, (void)bytes, (void)n;
    return MTAN_OK;
}

/* A single column in int8 can be loaded, not opened; nor can an address that is not a multiple of four. */
TEST what_cannot_be_opened(void) {
    tiny_model s;
    tiny_open(&s, TINY_ENC, 1);
    int8_file *f = file_of(&s, 1), *g = file_of(&s, 0);
    mtan_real *weights;
    int8_t *rows;
    mtan_model model;
    size_t bytes = 0, more = 0;
    uint8_t *blob = bytes_of(f, 0, &bytes), *shifted = bytes_of(g, 2, &more);
    ASSERT(blob && shifted);
    ASSERT_EQ(MTAN_ERR_SHAPE, blob_open(&model, blob, bytes));
    ASSERT_EQ(MTAN_ERR_SHAPE, blob_open(&model, shifted + 2, more));
    ASSERT_EQ(MTAN_OK, blob_load(&model, s.weights, s.count, blob, bytes));
    ASSERT(init_arrays(&model, g, &s, &weights, &rows));
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_model_save(&model, NULL, NULL, 0, no_write, NULL));
    ASSERT(guard_free(weights) && guard_free(rows) && guard_free(blob) && guard_free(shifted) && tiny_close(&s));
    file_free(f), file_free(g);
    PASS();
}

/* ---- models ---- */

enum { RECORDS = 6, OUTPUTS = RECORDS * TINY_EVENTS * TINY_CHANNELS };

/* Probabilities of all records, or curves of the first; how many. */
static size_t outputs(tiny_model *s, mtan_precision precision, int32_t at_once, mtan_real out[OUTPUTS]) {
    const int curves = s->config.classify == MTAN_CLASSIFY_NONE;
    s->model.precision = precision;
    tiny_predict(s, at_once);
    for (size_t i = 0; i < OUTPUTS; i++) out[i] = 0;
    if (curves) mtan_predictor_interpolate(&s->predictor, s->records, out, NULL);
    else if (mtan_predictor_classify(&s->predictor, s->records, RECORDS, out) != MTAN_OK) return 0;
    return OUTPUTS;
}

/* Untrained models of every kind: near, but not the same; and a record's bits do not depend on its neighbours. */
TEST predictions_are_near(tiny_kind kind) {
    mtan_real real[OUTPUTS], int8[OUTPUTS], alone[OUTPUTS];
    double worst = 0;
    tiny_model s;
    tiny_open(&s, kind, RECORDS);
    ASSERT(outputs(&s, MTAN_REAL, RECORDS, real) && outputs(&s, MTAN_INT8, RECORDS, int8));
    ASSERT(outputs(&s, MTAN_INT8, 1, alone));
    for (size_t i = 0; i < OUTPUTS; i++) {
        const double d = fabs((double)real[i] - (double)int8[i]);
        worst = d > worst || isnan(d) ? d : worst;
    }
    ASSERT(worst > 0 && worst < 0.01);
    ASSERT(check_same(tiny_names[kind], alone, int8, sizeof int8));
    ASSERT(tiny_close(&s));
    PASS();
}

TEST a_trainer_wants_reals(void) {
    mtan_train_config config;
    tiny_model s;
    size_t bytes = 0;
    tiny_open(&s, TINY_ENC, 1);
    mtan_train_config_init(&config);
    s.model.precision = MTAN_INT8;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_trainer_size(&s.model, &config, &s.bounds, &bytes));
    s.model.precision = (mtan_precision)7;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_predictor_size(&s.model, &s.bounds, &bytes));
    ASSERT(tiny_close(&s));
    PASS();
}

/* The paper's classifier: what the precision is for. */
TEST a_predictor_is_smaller(void) {
    const mtan_bounds bounds = {1, 1, 1};
    size_t real = 0, int8 = 0, packed = 0;
    mtan_config config;
    mtan_model model;
    mtan_real weight = 0; /* sizes are asked for, no weight is read */
    ASSERT(published_config(&config, "physionet-enc"));
    const size_t N = (size_t)config.enc_hidden, F = (size_t)config.head_hidden;
    ASSERT_EQ(MTAN_OK, mtan_model_init(&model, &config, &weight, mtan_weights_count(&config)));
    ASSERT_EQ(MTAN_OK, mtan_predictor_size(&model, &bounds, &real));
    model.precision = MTAN_INT8;
    ASSERT_EQ(MTAN_OK, mtan_predictor_size(&model, &bounds, &int8));
    packed = 3 * N * N + N * F + F * F; /* the recurrent matrix and the head's two large ones */
    ASSERT(int8 + packed * (sizeof(mtan_real) - 2) < real);
    ASSERT_EQ(MTAN_OK, mtan_model_int8_counts(&config, &real, &int8)); /* in place: a quarter, in 16 KB of memory */
    ASSERT(4 * real + int8 < mtan_weights_count(&config) * 4 / 3);
    const int8_t row = 0;
    ASSERT_EQ(MTAN_OK, mtan_model_init_int8(&model, &config, &weight, real, &row, int8));
    ASSERT_EQ(MTAN_OK, mtan_small_size(&model, 4, &packed));
    ASSERT(packed <= 10000 * sizeof(mtan_real) / sizeof(float));
    PASS();
}

SUITE(int8_suite) {
    RUN_TEST(a_row_is_half_a_step_away);
    RUN_TEST(rows_without_a_step);
    RUN_TEST(a_product_is_near);
    RUN_TEST(products_in_place);
    RUN_TEST(the_largest_sums_fit);
    RUN_TEST(what_is_not_finite_stays_in_its_row);
    RUN_TESTp(a_file_comes_back, 0);
    RUN_TESTp(a_file_comes_back, 1);
    for (int i = 0; i < (int)(sizeof spoils / sizeof *spoils); i++) {
        greatest_set_test_suffix(spoils[i].name);
        RUN_TESTp(a_spoilt_file_is_refused, i);
    }
    static const tiny_kind in_place[] = {TINY_ENC, TINY_RNN3_ENC, TINY_RBF_ENC};
    for (int i = 0; i < 3; i++) {
        greatest_set_test_suffix(tiny_names[in_place[i]]);
        RUN_TESTp(a_model_in_place, in_place[i]);
    }
    RUN_TEST(a_mixed_model_in_place);
    RUN_TEST(arrays_that_are_not_there);
    RUN_TEST(heads_in_place);
    RUN_TEST(what_cannot_be_opened);
    for (int kind = 0; kind < TINY_KINDS; kind++) {
        greatest_set_test_suffix(tiny_names[kind]);
        RUN_TESTp(predictions_are_near, (tiny_kind)kind);
    }
    RUN_TEST(a_trainer_wants_reals);
    RUN_TEST(a_predictor_is_smaller);
}
