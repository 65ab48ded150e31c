/* int8 weights: how far a quantised row, product and prediction may be from the original; files with them; and what is wrong
 * with a file. That all backends give the same bits is tested with their other kernels, in test_simd.c. */
#include <greatest.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "small.h"
#include "tiny_model.h"

/* ---- rows and products ---- */

static void fill(mtan_real *x, size_t n, double scale, uint64_t *random) {
    for (size_t i = 0; i < n; i++) x[i] = (mtan_real)scale * small_real(random);
}

/* Half a step, and the rounding of the scale to float. */
static int row_is_near(const mtan_real *x, size_t n) {
    int8_t *q = guard_alloc(n);
    const double scale = (double)mtan_quantize_row(q, x, n);
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
    ASSERT_EQ(0, mtan_quantize_row(q, x, 4));
    ASSERT(q[0] == 0 && q[1] == 0 && q[2] == 0 && q[3] == 0);
    x[1] = (mtan_real)1e-35;
    ASSERT_EQ(0, mtan_quantize_row(q, x, 4));
    x[2] = (mtan_real)-INFINITY;
    ASSERT(isnan((double)mtan_quantize_row(q, x, 4)));
    x[2] = (mtan_real)NAN;
    ASSERT(isnan((double)mtan_quantize_row(q, x, 4)));
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

static int8_file *file_of(const tiny_model *s) {
    int8_file *f = calloc(1, sizeof *f);
    if (!f || !(f->q = malloc(s->count)) || !(f->scale = malloc(s->count * sizeof *f->scale))) exit(2);
    for (int32_t i = 0; i < mtan_param_count(&s->config); i++) {
        mtan_param *p = &f->params[i], copy;
        mtan_param_at(&s->config, i, &copy);
        *p = copy;
        const size_t rows = (size_t)p->rows, cols = (size_t)p->cols;
        const mtan_real *w = s->weights + p->offset;
        snprintf(f->names[i], sizeof f->names[i], "%s.scale", copy.name); /* gcc fears that two texts of f overlap */
        if (p->rank != 2) {
            f->entries[f->n++] = entry_of(p->name, MTAN_DTYPE_REAL, p, 1, w);
            continue;
        }
        for (size_t r = 0; r < rows; r++)
            f->scale[p->offset + r] = (float)mtan_quantize_row(f->q + p->offset + r * cols, w + r * cols, cols);
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
    int8_file *f = file_of(&s);
    size_t bytes = 0, count = 0;
    uint8_t *blob = bytes_of(f, shift, &bytes);
    mtan_model model;
    ASSERT(blob);
    ASSERT_EQ(MTAN_OK, mtan_model_load_count(blob + shift, bytes, &count));
    mtan_real *loaded = guard_alloc(count * sizeof *loaded);
    ASSERT_EQ(MTAN_OK, mtan_model_load(&model, loaded, count, blob + shift, bytes));
    ASSERT_EQ(MTAN_INT8, model.precision);
    ASSERT(weights_are(f, &s, loaded));
    memcpy(s.weights, loaded, s.count * sizeof *loaded);
    int8_file *again = file_of(&s);
    for (int32_t i = 0; i < mtan_param_count(&s.config); i++) {
        const mtan_param *p = &f->params[i];
        if (p->rank == 2) ASSERT_MEM_EQ(f->q + p->offset, again->q + p->offset, (size_t)p->rows * (size_t)p->cols);
    }
    ASSERT_EQ(MTAN_ERR_SHAPE, mtan_model_open(&model, blob + shift, bytes));
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
static void other_shape(int8_file *f) {
    mtan_file_entry *e = entry_named(f, "rec.classifier.0.weight");
    const size_t rows = e->shape[0];
    e->shape[0] = e->shape[1], e->shape[1] = rows;
}
static void int8_vector(int8_file *f) {
    entry_named(f, "rec.classifier.0.bias")->dtype = MTAN_DTYPE_I8;
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
              {"shape", other_shape, MTAN_ERR_SHAPE},
              {"vector", int8_vector, MTAN_ERR_MISSING}};

TEST a_spoilt_file_is_refused(int index) {
    tiny_model s;
    tiny_open(&s, TINY_ENC, 1);
    int8_file *f = file_of(&s);
    mtan_model model, before;
    mtan_real *loaded = guard_alloc(s.count * sizeof *loaded), *untouched = tiny_copy(loaded, s.count);
    size_t bytes = 0;
    spoils[index].spoil(f);
    uint8_t *blob = bytes_of(f, 0, &bytes);
    ASSERT(blob);
    memset(&model, 7, sizeof model), before = model;
    ASSERT_EQ_FMTm(spoils[index].name, spoils[index].status, mtan_model_load(&model, loaded, s.count, blob, bytes),
                   "%d");
    ASSERT_MEM_EQ(&before, &model, sizeof model);
    ASSERT_MEM_EQ(untouched, loaded, s.count * sizeof *loaded);
    ASSERT(guard_free(loaded) && guard_free(blob) && tiny_close(&s));
    free(untouched), file_free(f);
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
    if (curves) mtan_interpolate(&s->predictor, s->records, out, NULL);
    else if (mtan_classify(&s->predictor, s->records, RECORDS, out) != MTAN_OK) return 0;
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
    mtan_recipe recipe;
    mtan_model model;
    mtan_real weight = 0; /* sizes are asked for, no weight is read */
    mtan_recipe_named(&recipe, "physionet-enc", MTAN_CORRECT);
    const size_t N = (size_t)recipe.config.enc_hidden, F = (size_t)recipe.config.head_hidden;
    ASSERT_EQ(MTAN_OK, mtan_model_init(&model, &recipe.config, &weight, mtan_weights_count(&recipe.config)));
    ASSERT_EQ(MTAN_OK, mtan_predictor_size(&model, &bounds, &real));
    model.precision = MTAN_INT8;
    ASSERT_EQ(MTAN_OK, mtan_predictor_size(&model, &bounds, &int8));
    packed = 3 * N * N + N * F + F * F; /* the recurrent matrix and the head's two large ones */
    ASSERT(int8 + packed * (sizeof(mtan_real) - 2) < real);
    PASS();
}

SUITE(int8_suite) {
    RUN_TEST(a_row_is_half_a_step_away);
    RUN_TEST(rows_without_a_step);
    RUN_TEST(a_product_is_near);
    RUN_TEST(the_largest_sums_fit);
    RUN_TEST(what_is_not_finite_stays_in_its_row);
    RUN_TESTp(a_file_comes_back, 0);
    RUN_TESTp(a_file_comes_back, 1);
    for (int i = 0; i < (int)(sizeof spoils / sizeof *spoils); i++) {
        greatest_set_test_suffix(spoils[i].name);
        RUN_TESTp(a_spoilt_file_is_refused, i);
    }
    for (int kind = 0; kind < TINY_KINDS; kind++) {
        greatest_set_test_suffix(tiny_names[kind]);
        RUN_TESTp(predictions_are_near, (tiny_kind)kind);
    }
    RUN_TEST(a_trainer_wants_reals);
    RUN_TEST(a_predictor_is_smaller);
}
