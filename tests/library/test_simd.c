/* Every backend that this machine can run against the scalar code of its class, fused or unfused: every entry of the
 * table on awkward shapes, then whole models. The bits must be the same, of what is written and of what must not be. */
#include <greatest.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../simd/mtan_simd.h"
#include "kernel_cases.h"
#include "kernel_table.h"

#ifndef MTAN_DOUBLE

/* The body of kernels.inc at width 16 on machines without AVX-512, with MTAN_WITH_EMULATED512. */
extern const mtan_backend mtan_backend_emulated512;

/* ---- kernels: the cases of kernel_cases.h on both tables ---- */

/* Both NaN is equal: which NaN is not promised. */
static int same_reals(const mtan_real *got, const mtan_real *expected, size_t n, size_t *at) {
    for (size_t i = 0; i < n; i++)
        if (memcmp(&got[i], &expected[i], sizeof *got) != 0 && !(got[i] != got[i] && expected[i] != expected[i])) {
            *at = i;
            return 0;
        }
    return 1;
}

static const int32_t awkward[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 67, 128};
enum { AWKWARD = sizeof awkward / sizeof *awkward };

static int agree(const kernel_case *c, const kernel_shape *s, const mtan_backend *got, const mtan_backend *expected,
                 uint64_t seed) {
    kernel_work a, b;
    int ok;
    memset(&a, 0, sizeof a), memset(&b, 0, sizeof b);
    a.backend = got, b.backend = expected;
    a.random = b.random = seed;
    c->run(&a, s), c->run(&b, s);
    ok = kernel_collect(&a), ok = kernel_collect(&b) && ok && a.n == b.n;
    for (int i = 0; ok && i < a.n; i++) {
        size_t at = 0;
        if (same_reals(a.block[i].reals, b.block[i].reals, a.block[i].count, &at)) continue;
        printf("  BAD %s of %s (m %d, n %d, k %d, pad %d, add %d): operand %d at %zu is %.9g, %s has %.9g\n", c->name,
               got->name, (int)s->m, (int)s->n, (int)s->k, (int)s->pad, (int)s->add, i, at,
               (double)a.block[i].reals[at], expected->name, (double)b.block[i].reals[at]);
        ok = 0;
    }
    kernel_free(&a), kernel_free(&b);
    return ok;
}

/* Every width with every small height; random depths and strides; and what none of these meets. */
static int products_agree(const kernel_case *c, const mtan_backend *got, const mtan_backend *expected) {
    static const kernel_shape more[] = {
        {5, 33, 0, 1, 0},    {5, 33, 0, 1, 1},    {0, 9, 4, 0, 0},      {4, 0, 4, 0, 1},
        {50, 70, 600, 3, 1}, {3, 300, 513, 0, 0}, {97, 129, 257, 2, 0}, {13, 600, 20, 5, 1},
        {1, 384, 128, 0, 0}, {26, 48, 300, 0, 1}, {300, 5, 12, 0, 0},
    };
    uint64_t random = 1;
    int ok = 1;
    for (size_t j = 0; j < sizeof more / sizeof *more; j++) ok &= agree(c, &more[j], got, expected, j);
    for (int a = 0; a < AWKWARD; a++)
        for (int b = 0; ok && b < AWKWARD; b++) {
            const kernel_shape s = {awkward[a], awkward[b], awkward[small_whole(&random, 0, AWKWARD - 1)],
                                    small_whole(&random, 0, 5), small_whole(&random, 0, 1)};
            ok &= agree(c, &s, got, expected, (uint64_t)(a * 100 + b));
        }
    return ok;
}

static int others_agree(const kernel_case *c, const mtan_backend *got, const mtan_backend *expected) {
    static const int32_t rows[] = {1, 2, 8, 11, 33};
    uint64_t random = 2;
    int ok = 1;
    for (size_t a = 0; a < sizeof rows / sizeof *rows; a++)
        for (int b = 0; ok && b < AWKWARD; b++) {
            const kernel_shape s = {rows[a], awkward[b], small_whole(&random, 0, 1), small_whole(&random, 0, 5),
                                    (int32_t)(a + (size_t)b) % 2};
            ok &= agree(c, &s, got, expected, (uint64_t)a * 100 + (uint64_t)b);
        }
    return ok;
}

/* ---- models ---- */

typedef struct {
    mtan_real *values;
    size_t n, room;
} results;

static void keep_reals(results *r, const void *x, size_t reals) {
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
    size_t bytes = 0, rows = small_class_rows(&s->config, set) * (size_t)small_samples(&s->config) *
                             (size_t)mtan_config_outputs(&s->config);
    const int curves = s->config.kind == MTAN_FULL && s->config.classify != MTAN_CLASSIFY_TIME;
    mtan_real *out;
    void *memory;
    int ok = mtan_predictor_size(&s->model, bounds, &bytes) == MTAN_OK;
    memory = guard_alloc(bytes);
    ok = ok && mtan_predictor_init(&predictor, &s->model, bounds, memory, bytes) == MTAN_OK;
    if (ok && s->config.classify != MTAN_CLASSIFY_NONE) {
        out = guard_alloc(rows * sizeof *out);
        ok = mtan_predictor_logits(&predictor, set->records, set->n, out) == MTAN_OK;
        keep_reals(r, out, rows);
        ok = guard_free(out) && ok;
    }
    for (int32_t b = 0; ok && curves && b < set->n; b++) {
        const size_t n =
            (size_t)small_samples(&s->config) * (size_t)small_queries(&set->records[b]) * (size_t)s->config.channels;
        if (n == 0) continue;
        out = guard_alloc(n * sizeof *out);
        ok = mtan_predictor_curves(&predictor, &set->records[b], out) == MTAN_OK;
        keep_reals(r, out, n);
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
    ok = ok && mtan_trainer_gradient(&trainer, set->records, set->n, 1, &report) == MTAN_OK;
    if (ok) keep_reals(r, trainer.gradient, s->count);
    for (int step = 0; ok && step < 10; step++)
        ok = mtan_trainer_step(&trainer, set->records, set->n, 1, &report) == MTAN_OK;
    if (ok) keep_reals(r, &report, sizeof report / sizeof(mtan_real)), keep_reals(r, s->weights, s->count);
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

TEST every_entry_is_filled_once(const mtan_backend *b) {
    ASSERT_FALSE(kernel_missing(b));
    ASSERT_FALSE(kernel_twin(b));
    ASSERT_EQ(NULL, b->device);
    PASS();
}

TEST kernels_have_the_same_bits(const mtan_backend *b) {
    int ok = 1;
    for (const kernel_case *c = kernel_cases; c->name; c++)
        ok &= (c->product ? products_agree : others_agree)(c, b, scalar_of_class(b));
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

/* What the cases above do not ask: a function that there is not, and numbers that are not finite, which stay in their row. */
TEST unusual_arguments_have_the_same_result(const mtan_backend *b) {
    enum { ROWS = 4, N = 3, K = 21 };
    const mtan_backend *const scalar = scalar_of_class(b);
    mtan_real a[ROWS * K], w[N * K], packed[2][4096], c[2][ROWS * N], y[K];
    uint64_t random = 5;
    size_t at = 0;
    for (int i = 0; i < ROWS * K; i++) a[i] = small_real(&random);
    for (int i = 0; i < N * K; i++) w[i] = small_real(&random);
    for (int i = 0; i < K; i++) y[i] = 7;
    b->map((mtan_function)99, y, a, K);
    for (int i = 0; i < K; i++) ASSERT(y[i] == 7);
    a[K] = (mtan_real)NAN, a[2 * K + K - 1] = (mtan_real)INFINITY; /* in the first lane, in the last */
    for (int i = 0; i < 2; i++) {
        const mtan_backend *const k = i ? b : scalar;
        ASSERT(k->pack_int8_count(N, K) <= 4096);
        k->pack_int8(packed[i], w, K, N, K);
        k->product_int8(c[i], N, a, K, packed[i], ROWS, N, K, 0);
    }
    ASSERT(same_reals(c[1], c[0], ROWS * N, &at));
    for (int i = 0; i < ROWS * N; i++) ASSERT_EQ(i / N == 1 || i / N == 2, c[1][i] != c[1][i]);
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

/* The two checks of a table are worth something only if they find what they are for. */
TEST a_missing_entry_and_a_twin_are_found(void) {
    mtan_backend table = mtan_backend_scalar;
    ASSERT_FALSE(kernel_missing(&table));
    ASSERT_FALSE(kernel_twin(&table));
    table.product_tn = table.product_nn;
    ASSERT_STR_EQ("product_tn", kernel_twin(&table));
    table.relu_forward = NULL;
    ASSERT_STR_EQ("relu_forward", kernel_missing(&table));
    PASS();
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
    RUN_TEST(a_missing_entry_and_a_twin_are_found);
    RUN_TEST(names_and_the_list_agree);
    RUN_TEST(one_bit_is_seen);
    for (int i = 0; choice_at(i, &choice); i++) {
        const char *reason = reason_against(&choice);
        greatest_set_test_suffix(choice.name);
        if (reason) {
            RUN_TESTp(a_backend_cannot_run_here, choice.name, reason);
            continue;
        }
        RUN_TESTp(every_entry_is_filled_once, choice.backend);
        if (choice.backend == scalar_of_class(choice.backend)) continue;
        greatest_set_test_suffix(choice.name);
        RUN_TESTp(kernels_have_the_same_bits, choice.backend);
        greatest_set_test_suffix(choice.name);
        RUN_TESTp(small_models_have_the_same_bits, choice.backend);
        greatest_set_test_suffix(choice.name);
        RUN_TESTp(unusual_arguments_have_the_same_result, choice.backend);
        greatest_set_test_suffix(choice.name);
        RUN_TESTp(a_large_model_has_the_same_bits, choice.backend);
    }
}

#else

TEST there_is_scalar_code_alone(void) {
    SKIPm("the double build has the scalar code alone");
}

SUITE(simd_suite) {
    RUN_TEST(there_is_scalar_code_alone);
}

#endif
