/* The caller's memory: a block of exactly the size that was asked for is enough, whatever its address and whatever lay in
 * it, for the largest records that the bounds allow; one byte less is refused. */
#include <greatest.h>
#include <stdlib.h>
#include <string.h>

#include "small.h"
#include "published.h"

/* ---- no pointers in what a workspace holds: its size then depends on the bounds, not on the CPU ---- */

typedef struct {
    uint32_t a[2];
    int32_t b[3];
    uint32_t c;
} plain_tensor;
typedef struct {
    uint32_t op;
    int32_t n[4];
    mtan_real x[2];
    plain_tensor t[7];
} plain_node;
typedef char tensor_is_plain[sizeof(mtan_tensor) == 24 && sizeof(mtan_tensor) == sizeof(plain_tensor) ? 1 : -1];
typedef char node_is_plain[sizeof(mtan_node) == sizeof(plain_node) && sizeof(mtan_node) % 4 == 0 ? 1 : -1];

TEST nodes_have_the_same_size_everywhere(void) {
    /* 4 + 16 + 8 + 7 x 24 in float; in double 4 more to align x, and 8 more of x */
    ASSERT_EQ_FMT(sizeof(mtan_real) == 4 ? (size_t)196 : (size_t)208, sizeof(mtan_node), "%zu");
    PASS();
}

/* ---- everything a model computes, as one string of bytes ---- */

typedef struct {
    unsigned char *bytes;
    size_t size, room;
    int ok;
} results;

static void append(results *out, const void *bytes, size_t n) {
    if (n == 0) return;
    if (out->size + n > out->room) {
        out->room = 2 * (out->size + n);
        out->bytes = realloc(out->bytes, out->room);
    }
    memcpy(out->bytes + out->size, bytes, n);
    out->size += n;
}

/* Takes an output block: was the call a success, is every entry finite, are the guards intact? Frees it. */
static void collect(results *out, const char *what, mtan_status status, mtan_real *block, size_t n) {
    if (status != MTAN_OK) {
        printf("  BAD %s: %s\n", what, mtan_status_message(status));
        out->ok = 0;
    }
    for (size_t i = 0; status == MTAN_OK && i < n; i++)
        if (!(block[i] - block[i] == 0)) {
            printf("  BAD %s: entry %zu of %zu is not finite\n", what, i, n);
            out->ok = 0;
            break;
        }
    append(out, block, n * sizeof *block);
    if (!guard_free(block)) out->ok = 0;
}

static mtan_real *reals(size_t n) {
    return guard_alloc(n * sizeof(mtan_real));
}

static void collect_decoder(results *out, mtan_predictor *p, const mtan_record *r) {
    const mtan_config *c = &p->model->config;
    const size_t QD = (size_t)small_queries(r) * (size_t)c->channels, S = (size_t)small_samples(c);
    const size_t KZ = (size_t)small_points(c, r) * (size_t)c->latent;
    mtan_real *first = reals(KZ), *second = reals(KZ);
    mtan_status status = mtan_predictor_latent(p, r, first, second);
    collect(out, "latent mean", status, first, KZ);
    collect(out, "latent log-variance", status, second, KZ);
    if (c->classify == MTAN_CLASSIFY_TIME) return;
    first = reals(QD), second = reals(QD);
    status = mtan_predictor_interpolate(p, r, first, second);
    collect(out, "interpolated mean", status, first, QD);
    collect(out, "interpolated deviation", status, second, QD);
    first = reals(S * QD);
    collect(out, "curves", mtan_predictor_curves(p, r, first), first, S * QD);
}

static void collect_predictions(results *out, mtan_predictor *p, const small_set *set) {
    const mtan_config *c = &p->model->config;
    const size_t rows = small_class_rows(c, set), C = (size_t)mtan_config_outputs(c), S = (size_t)small_samples(c);
    mtan_real *x;
    if (c->classify != MTAN_CLASSIFY_NONE) {
        x = reals(rows * C);
        collect(out, "probabilities", mtan_predictor_classify(p, set->records, set->n, x), x, rows * C);
        x = reals(rows * S * C);
        collect(out, "logits", mtan_predictor_logits(p, set->records, set->n, x), x, rows * S * C);
    }
    for (int32_t b = 0; b < set->n; b++) {
        const mtan_record *r = &set->records[b];
        const size_t QL = (size_t)small_points(c, r) * (size_t)small_distinct(r);
        x = reals(QL);
        collect(out, "attention", mtan_predictor_attention(p, r, b % c->enc_heads, b % c->channels, x), x, QL);
        if (c->kind == MTAN_FULL) collect_decoder(out, p, r);
    }
}

static void collect_training(results *out, mtan_trainer *t, const small_set *sets, int n_sets) {
    const size_t P = mtan_weights_count(&t->model->config);
    for (int i = 0; i < n_sets; i++) {
        mtan_report report, loss;
        memset(&report, 0, sizeof report);
        memset(&loss, 0, sizeof loss);
        mtan_status status = mtan_trainer_loss(t, sets[i].records, sets[i].n, 12, &loss);
        if (status == MTAN_OK) status = mtan_trainer_step(t, sets[i].records, sets[i].n, 12, &report);
        if (status != MTAN_OK || !(report.loss - report.loss == 0) || report.loss != loss.loss) {
            printf("  BAD training: %s, loss %g and %g\n", mtan_status_message(status), report.loss, loss.loss);
            out->ok = 0;
        }
        append(out, &report, sizeof report);
    }
    for (size_t i = 0; i < P; i++)
        if (!(t->weights[i] - t->weights[i] == 0)) out->ok = 0;
    append(out, t->moment1, P * sizeof(mtan_real));
    append(out, t->moment2, P * sizeof(mtan_real));
}

/* ---- one model, one block ---- */

enum { SETS = 3 };

typedef struct {
    small_model small;
    mtan_bounds bounds;
    mtan_train_config train;
    small_set sets[SETS];
} scene;

static void scene_open(scene *s, const mtan_bounds *bounds) {
    uint64_t random = 99;
    s->bounds = *bounds;
    mtan_train_config_init(&s->train);
    s->sets[0] = small_records(&s->small.config, bounds, bounds->records, 1, &random); /* at the bounds */
    s->sets[1] = small_records(&s->small.config, bounds, bounds->records, 0, &random);
    s->sets[2] = small_records(&s->small.config, bounds, 1, 0, &random);
}

static int scene_close(scene *s) {
    int ok = 1;
    for (int i = 0; i < SETS; i++) ok &= small_free(&s->sets[i]);
    return ok;
}

/* Runs a predictor and a trainer, each in a block `offset` bytes behind a multiple of 64 that was full of `dirt`. */
static results run_at(const scene *s, size_t offset, int dirt) {
    results out = {NULL, 0, 0, 1};
    small_model copy = s->small;
    mtan_predictor predictor;
    mtan_trainer trainer;
    size_t bytes = 0;
    unsigned char *block;
    if (mtan_predictor_size(&s->small.model, &s->bounds, &bytes) != MTAN_OK) out.ok = 0;
    block = guard_alloc(offset + bytes);
    memset(block, dirt, offset + bytes);
    if (mtan_predictor_init(&predictor, &s->small.model, &s->bounds, block + offset, bytes) != MTAN_OK) out.ok = 0;
    for (int i = 0; out.ok && i < SETS; i++) collect_predictions(&out, &predictor, &s->sets[i]);
    for (size_t i = 0; i < offset; i++) out.ok &= block[i] == dirt;
    out.ok &= guard_free(block);

    copy.weights = reals(copy.count);
    memcpy(copy.weights, s->small.weights, copy.count * sizeof *copy.weights);
    copy.model.weights = copy.weights;
    if (mtan_trainer_size(&copy.model, &s->train, &s->bounds, &bytes) != MTAN_OK) out.ok = 0;
    block = guard_alloc(offset + bytes);
    memset(block, dirt, offset + bytes);
    if (out.ok &&
        mtan_trainer_init(&trainer, &copy.model, copy.weights, &s->train, &s->bounds, block + offset, bytes) == MTAN_OK)
        collect_training(&out, &trainer, s->sets, SETS);
    else out.ok = 0;
    append(&out, copy.weights, copy.count * sizeof *copy.weights);
    for (size_t i = 0; i < offset; i++) out.ok &= block[i] == dirt;
    out.ok &= guard_free(block) & guard_free(copy.weights);
    return out;
}

static const mtan_bounds all_bounds[] = {{1, 0, 0}, {1, 0, 5}, {1, 1, 1}, {1, 6, 3},  {2, 1, 9},
                                         {3, 7, 4}, {5, 3, 3}, {9, 5, 5}, {17, 3, 4}, {2, 33, 17}};
enum { BOUNDS = sizeof all_bounds / sizeof all_bounds[0] };

static int same_at(const scene *s, const results *expected, size_t offset, int dirt) {
    results got = run_at(s, offset, dirt);
    int ok = got.ok && got.size == expected->size && memcmp(got.bytes, expected->bytes, got.size) == 0;
    if (!ok)
        printf("  BAD %s, bounds (%d, %d, %d), offset %zu, dirt %02x: other results\n", s->small.name,
               s->bounds.records, s->bounds.events, s->bounds.times, offset, (unsigned)dirt);
    free(got.bytes);
    return ok;
}

TEST exact_blocks_are_enough_at_every_address(void) {
    MAY_BE_LEFT_OUT();
    static const size_t offsets[] = {1, 4, 31, 60, 63};
    size_t runs = 0;
    scene s;
    for (int i = 0; small_open(&s.small, i); i++) {
        for (int b = 0; b < BOUNDS; b++) {
            scene_open(&s, &all_bounds[b]);
            results expected = run_at(&s, 0, 0xff);
            if (!expected.ok)
                printf("  BAD %s, bounds (%d, %d, %d)\n", s.small.name, s.bounds.records, s.bounds.events,
                       s.bounds.times);
            ASSERT(expected.ok);
            /* in turn one unaligned address; for one of the bounds several */
            for (int k = 0; k < (b == 5 ? 5 : 1); k++, runs++)
                ASSERT(same_at(&s, &expected, offsets[(b + k) % 5], k % 2 ? 0 : 0x41));
            free(expected.bytes);
            ASSERT(scene_close(&s));
        }
        ASSERT(small_close(&s.small));
    }
    ASSERT(runs >= (size_t)small_count() * BOUNDS);
    printf("  %zu runs at other addresses gave the same bits\n", runs);
    PASS();
}

TEST all_64_offsets_give_the_same_bits(void) {
    static const char *const names[] = {"enc time", "full heads"};
    scene s;
    int found = 0;
    for (int i = 0; small_open(&s.small, i); i++) {
        if (strcmp(s.small.name, names[0]) == 0 || strcmp(s.small.name, names[1]) == 0) {
            scene_open(&s, &all_bounds[5]);
            results expected = run_at(&s, 0, 0);
            ASSERT(expected.ok);
            for (size_t offset = 1; offset < 64; offset++) ASSERT(same_at(&s, &expected, offset, 0xff));
            free(expected.bytes);
            ASSERT(scene_close(&s));
            found++;
        }
        ASSERT(small_close(&s.small));
    }
    ASSERT_EQ(2, found);
    PASS();
}

/* ---- one byte too few ---- */

static int all_bytes(const void *block, int value, size_t n) {
    const unsigned char *p = block;
    while (n > 0 && p[n - 1] == value) n--;
    return n == 0;
}

static int refuses_less(small_model *s, const mtan_bounds *bounds) {
    mtan_train_config train;
    mtan_predictor predictor;
    mtan_trainer trainer;
    size_t bytes = 0;
    int ok = 1;
    mtan_train_config_init(&train);
    memset(&predictor, 0x3c, sizeof predictor);
    memset(&trainer, 0x3c, sizeof trainer);
    ok &= mtan_predictor_size(&s->model, bounds, &bytes) == MTAN_OK && bytes > 0;
    void *block = guard_alloc(bytes - 1);
    ok &= mtan_predictor_init(&predictor, &s->model, bounds, block, bytes - 1) == MTAN_ERR_MEMORY;
    ok &= mtan_predictor_init(&predictor, &s->model, bounds, block, 0) == MTAN_ERR_MEMORY;
    ok &= all_bytes(block, 0xff, bytes - 1) && all_bytes(&predictor, 0x3c, sizeof predictor) && guard_free(block);
    ok &= mtan_trainer_size(&s->model, &train, bounds, &bytes) == MTAN_OK && bytes > 0;
    block = guard_alloc(bytes - 1);
    ok &= mtan_trainer_init(&trainer, &s->model, s->weights, &train, bounds, block, bytes - 1) == MTAN_ERR_MEMORY;
    ok &= mtan_trainer_init(&trainer, &s->model, s->weights, &train, bounds, block, 0) == MTAN_ERR_MEMORY;
    ok &= all_bytes(block, 0xff, bytes - 1) && all_bytes(&trainer, 0x3c, sizeof trainer) && guard_free(block);
    return ok;
}

TEST one_byte_too_few_is_refused_and_nothing_written(void) {
    small_model s;
    for (int i = 0; small_open(&s, i); i++) {
        for (int b = 0; b < BOUNDS; b++) ASSERTm(s.name, refuses_less(&s, &all_bounds[b]));
        ASSERT(small_close(&s));
    }
    PASS();
}

/* ---- sizes ---- */

static size_t size_of(const small_model *s, const mtan_train_config *train, mtan_bounds bounds) {
    size_t bytes = 0;
    const mtan_status status =
        train ? mtan_trainer_size(&s->model, train, &bounds, &bytes) : mtan_predictor_size(&s->model, &bounds, &bytes);
    return status == MTAN_OK ? bytes : 0;
}

/* Does the size at these bounds not exceed the one at any neighbour that is larger in one bound? */
static int rises(const small_model *s, const mtan_train_config *train, mtan_bounds b, const mtan_bounds *next) {
    const size_t here = size_of(s, train, b);
    const mtan_bounds up[3] = {
        {next->records, b.events, b.times}, {b.records, next->events, b.times}, {b.records, b.events, next->times}};
    for (int i = 0; i < 3; i++)
        if (here == 0 || here > size_of(s, train, up[i])) {
            printf("  BAD %s %s: (%d, %d, %d) needs more than (%d, %d, %d)\n", train ? "trainer" : "predictor", s->name,
                   b.records, b.events, b.times, up[i].records, up[i].events, up[i].times);
            return 0;
        }
    return 1;
}

TEST sizes_rise_with_every_bound(void) {
    MAY_BE_LEFT_OUT();
    static const int32_t records[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65},
                         most[] = {0, 1, 3, 16, 17, 100, 200};
    mtan_train_config train;
    small_model s;
    mtan_train_config_init(&train);
    for (int i = 0; small_open(&s, i); i++) {
        for (int r = 0; r + 1 < 13; r++)
            for (int e = 0; e + 1 < 7; e++)
                for (int t = 0; t + 1 < 7; t++) {
                    const mtan_bounds here = {records[r], most[e], most[t]};
                    const mtan_bounds next = {records[r + 1], most[e + 1], most[t + 1]};
                    ASSERT(rises(&s, NULL, here, &next) && rises(&s, &train, here, &next));
                }
        ASSERT(small_close(&s));
    }
    PASS();
}

TEST sizes_of_a_published_model(void) {
    const mtan_bounds one = {1, 1501, 203}, batch = {128, 1501, 203};
    size_t predict = 0, trainer = 0;
    mtan_train_config train;
    mtan_config config;
    mtan_model model;
    ASSERT(published_config(&config, "physionet-enc"));
    mtan_real *weights = calloc(mtan_weights_count(&config), sizeof *weights);
    ASSERT_EQ(MTAN_OK, mtan_model_init(&model, &config, weights, mtan_weights_count(&config)));
    mtan_train_config_init(&train);
    ASSERT_EQ(MTAN_OK, mtan_predictor_size(&model, &one, &predict));
    ASSERT_EQ(MTAN_OK, mtan_trainer_size(&model, &train, &batch, &trainer));
    printf("  physionet-enc: predictor of one record %zu bytes, trainer of 128 records %zu bytes\n", predict, trainer);
    ASSERT(predict < 2000000 * (sizeof(mtan_real) / 4));
    free(weights);
    PASS();
}

/* The answer must not depend on where the model lies or on what its weights are. */
TEST sizes_do_not_depend_on_the_weights(void) {
    const mtan_bounds bounds = {9, 20, 10};
    mtan_train_config train;
    small_model s;
    mtan_train_config_init(&train);
    for (int i = 0; small_open(&s, i); i++) {
        const size_t predict = size_of(&s, NULL, bounds), trainer = size_of(&s, &train, bounds);
        memset(s.weights, 0xff, s.count * sizeof *s.weights);
        ASSERT_EQ_FMT(predict, size_of(&s, NULL, bounds), "%zu");
        ASSERT_EQ_FMT(trainer, size_of(&s, &train, bounds), "%zu");
        ASSERT(small_close(&s));
    }
    PASS();
}

SUITE(arena_suite) {
    RUN_TEST(nodes_have_the_same_size_everywhere);
    RUN_TEST(exact_blocks_are_enough_at_every_address);
    RUN_TEST(all_64_offsets_give_the_same_bits);
    RUN_TEST(one_byte_too_few_is_refused_and_nothing_written);
    RUN_TEST(sizes_rise_with_every_bound);
    RUN_TEST(sizes_of_a_published_model);
    RUN_TEST(sizes_do_not_depend_on_the_weights);
}
