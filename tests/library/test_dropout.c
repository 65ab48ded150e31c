/* Dropout in the classifier's head: which units go, what becomes of the others, and what it must not touch. Gradients
 * with dropout are in test_gradient.c, threads and ranks in test_training.c. */
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "tiny_model.h"
#include "caller.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- the mask ---- */

static uint64_t finaliser(uint64_t z) { /* of splitmix64 */
    z ^= z >> 30, z *= UINT64_C(0xbf58476d1ce4e5b9);
    z ^= z >> 27, z *= UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Written down a second time: the word of index i is at least dropout 2^32. */
TEST mask_is_philox_of_its_coordinates(void) {
    const uint64_t seed = 5, step = (UINT64_C(3) << 32) + 6, record = mtan_bytes_hash("132539", 6);
    const uint64_t stream = finaliser(finaliser(seed) ^ record);
    const uint32_t key[2] = {(uint32_t)stream, (uint32_t)(stream >> 32)};
    mtan_real got[100];
    int dropped = 0;
    mtan_mask_fill(got, 100, 0.3, seed, step, record, 2, 7);
    for (uint32_t i = 0; i < 100; i++) {
        const uint32_t counter[4] = {(i + 7) / 4, 2, 6, 0x40000003};
        uint32_t word[4];
        mtan_philox(word, counter, key);
        ASSERT(got[i] == (word[(i + 7) % 4] >= 0.3 * 4294967296.0 ? 1 : 0));
        dropped += got[i] == 0;
    }
    ASSERT(dropped > 10 && dropped < 60);
    PASS();
}

TEST mask_does_not_depend_on_where_it_starts(void) {
    enum { N = 67 };
    mtan_real whole[N];
    mtan_mask_fill(whole, N, 0.5, 1, 2, 3, 4, 0);
    for (size_t first = 0; first < N; first++) {
        mtan_real *part = guard_alloc((N - first) * sizeof *part);
        mtan_mask_fill(part, N - first, 0.5, 1, 2, 3, 4, first);
        ASSERT(check_same("mask", part, whole + first, (N - first) * sizeof *part));
        ASSERT(guard_free(part));
    }
    mtan_mask_fill(NULL, 0, 0.5, 1, 2, 3, 4, 5);
    PASS();
}

/* Limits are five standard errors of a share or of a mean product. */
enum { MASKS = 256, UNITS = 1024 };
#define MASK_N ((double)MASKS * UNITS)

static int within(const char *what, double got, double expected, double standard_error) {
    const double used = fabs(got - expected) / (5 * standard_error);
    printf("  %s mask, %s: %.5f, expected %.5f, %.0f %% of the limit\n", used <= 1 ? "ok" : "BAD", what, got, expected,
           100 * used);
    return used <= 1;
}

TEST mask_keeps_its_share(double dropout) {
    static mtan_real mask[UNITS];
    double kept = 0;
    for (uint64_t r = 0; r < MASKS; r++) {
        mtan_mask_fill(mask, UNITS, dropout, 0, 0, r, 0, 0);
        for (size_t i = 0; i < UNITS; i++) {
            ASSERT(mask[i] == 0 || mask[i] == 1);
            kept += (double)mask[i];
        }
    }
    ASSERT(within("share kept", kept / MASK_N, 1 - dropout, sqrt(dropout * (1 - dropout) / MASK_N)));
    PASS();
}

/* A mask and the one of the next seed, step, record or sample, and a unit and the next, agree by chance alone. */
TEST masks_of_neighbours_are_independent(void) {
    static const char *names[] = {"seed", "step", "record", "sample", "unit + 1", "unit + 4"};
    static mtan_real x[UNITS + 4], y[UNITS];
    const double p = 0.3, variance = p * (1 - p);
    double product[COUNT(names)] = {0};
    for (uint32_t r = 0; r < MASKS; r++) {
        mtan_mask_fill(x, COUNT(x), p, r, r, r, r, 0);
        for (uint32_t k = 0; k < COUNT(names); k++) {
            const mtan_real *other = k < 4 ? y : x + (k == 4 ? 1 : 4);
            mtan_mask_fill(y, UNITS, p, r + (k == 0), r + (k == 1), r + (k == 2), r + (k == 3), 0);
            for (size_t i = 0; i < UNITS; i++)
                product[k] += ((double)x[i] - 1 + p) * ((double)other[i] - 1 + p) / variance / MASK_N;
        }
    }
    for (size_t k = 0; k < COUNT(names); k++) ASSERT(within(names[k], product[k], 0, sqrt(1 / MASK_N)));
    PASS();
}

TEST nothing_is_dropped_at_zero(void) {
    mtan_real mask[UNITS];
    mtan_mask_fill(mask, UNITS, 0, 1, 2, 3, 4, 0);
    for (size_t i = 0; i < UNITS; i++) ASSERT(mask[i] == 1);
    PASS();
}

/* ---- the op ---- */

/* Data and gradient become 0 or 1/(1 - 0.75) = 4 times themselves, exactly. */
TEST dropout_scales_what_it_keeps(void) {
    static const mtan_real x[6] = {(mtan_real)-1.5, 2, 3, (mtan_real)0.1, -5, 6}, keep[6] = {1, 0, 1, 1, 0, 0};
    union {
        mtan_real reals[512];
        mtan_node node;
    } memory;
    mtan_tape tape;
    memset(&tape, 0, sizeof tape);
    tape.backend = &mtan_backend_scalar;
    tape.work = memory.reals, tape.capacity = COUNT(memory.reals), tape.recording = 1;
    const mtan_tensor y = mtan_new(&tape, 2, 3), mask = mtan_new_constant(&tape, 2, 3);
    memcpy(mtan_data(&tape, y), x, sizeof x);
    memcpy(mtan_data(&tape, mask), keep, sizeof keep);
    mtan_op_dropout(&tape, y, mask, 0.75);
    memcpy(mtan_grad(&tape, y), x, sizeof x);
    mtan_backpropagate(&tape);
    ASSERT_EQ(MTAN_OK, tape.status);
    for (int i = 0; i < 6; i++) {
        ASSERT(mtan_data(&tape, y)[i] == 4 * x[i] * keep[i]);
        ASSERT(mtan_grad(&tape, y)[i] == 4 * x[i] * keep[i]);
    }
    PASS();
}

/* ---- training ---- */

enum { RECORDS = 12 };

static void open_trainer(tiny_model *s, tiny_kind kind, double dropout) {
    mtan_train_config config;
    tiny_open(s, kind, RECORDS);
    for (size_t i = 0; i < s->count; i++) s->weights[i] *= 3; /* so that what the head reads matters */
    mtan_train_config_init(&config);
    config.dropout = dropout, config.seed = 3;
    tiny_train(s, &config);
}

/* The last layer of the head: the one matrix with a row for each of the two classes. */
static int last_layer(const mtan_config *c, mtan_param *param) {
    for (int32_t i = 0; i < mtan_param_count(c); i++)
        if (mtan_param_at(c, i, param) == MTAN_OK && param->rank == 2 && param->rows == 2) return 1;
    return 0;
}

/* 1 where a unit of what the last layer reads is kept for any of the samples. */
static void kept_units(const tiny_model *s, int32_t units, uint64_t id, uint64_t row, mtan_real *kept) {
    const uint64_t hidden_layer = s->config.head_hidden > 0 ? 1 : 0;
    memset(kept, 0, (size_t)units * sizeof *kept);
    for (int32_t k = 0; k < (s->config.kind == MTAN_FULL ? s->config.samples : 1); k++) {
        mtan_real mask[32];
        mtan_mask_fill(mask, (size_t)units, s->trainer.config.dropout, 3, (uint64_t)s->trainer.step, id, (uint32_t)k,
                       (2 * row + hidden_layer) * (uint64_t)units);
        for (int32_t i = 0; i < units; i++) kept[i] += mask[i];
    }
}

/* One record, one label: the gradient of the last layer is the product of the error with what the layer reads, so that it
 * is 0 where that was dropped, and elsewhere not, unless it is 0 by ReLU. Counts in `seen` the
 * units that moved; 0: one moved that must not, or the other way round. */
static int gradient_shows(tiny_model *s, const mtan_param *w, const mtan_record *r, uint64_t row, int *seen) {
    mtan_real kept[32];
    mtan_report report;
    if (w->cols > 32 || mtan_trainer_gradient(&s->trainer, r, 1, 1, &report) != MTAN_OK || report.labels != 1) return 0;
    kept_units(s, w->cols, r->id, row, kept);
    for (int32_t i = 0; i < w->cols; i++) {
        const int moved = s->trainer.gradient[w->offset + (uint32_t)i] != 0;
        if (moved && kept[i] == 0) return 0;
        if (!moved && kept[i] != 0 && s->config.head_hidden == 0) return 0;
        *seen += moved;
    }
    return 1;
}

/* Each row of each record, at two steps. */
TEST masks_are_those_of_seed_step_record_and_row(tiny_kind kind) {
    tiny_model s;
    mtan_param w;
    mtan_report report;
    int seen = 0;
    open_trainer(&s, kind, 0.5);
    ASSERT(last_layer(&s.config, &w));
    for (int step = 0; step < 2; step++) {
        for (int32_t b = 0; b < RECORDS; b++) {
            int32_t labels[TINY_EVENTS], rows = 1;
            mtan_record r = s.records[b];
            if (s.config.classify == MTAN_CLASSIFY_TIME) ASSERT_EQ(MTAN_OK, times_of(&r, &rows));
            r.labels = labels;
            for (int32_t i = 0; i < rows; i++) {
                for (int32_t k = 0; k < TINY_EVENTS; k++) labels[k] = k == i ? 1 : MTAN_UNLABELED;
                ASSERT(gradient_shows(&s, &w, &r, (uint64_t)i, &seen));
            }
        }
        ASSERT_EQ(MTAN_OK, mtan_trainer_step(&s.trainer, s.records, RECORDS, 1, &report));
    }
    ASSERT(seen >= RECORDS);
    ASSERT(tiny_close(&s));
    PASS();
}

/* In any order and in any company a record has its own mask: the sum of the losses stays but for rounding, while the
 * next step's masks change it. */
TEST order_and_company_do_not_matter(tiny_kind kind) {
    tiny_model s;
    mtan_report all, turned, one;
    mtan_record reverse[RECORDS];
    double apart = 0, labels = 0;
    open_trainer(&s, kind, 0.3);
    ASSERT_EQ(MTAN_OK, mtan_trainer_gradient(&s.trainer, s.records, RECORDS, 1, &all));
    for (int32_t b = 0; b < RECORDS; b++) {
        reverse[b] = s.records[RECORDS - 1 - b];
        ASSERT_EQ(MTAN_OK, mtan_trainer_gradient(&s.trainer, &s.records[b], 1, 1, &one));
        apart += one.ce * (double)one.labels, labels += (double)one.labels;
    }
    ASSERT_EQ(MTAN_OK, mtan_trainer_gradient(&s.trainer, reverse, RECORDS, 1, &turned));
    ASSERT(fabs(turned.ce - all.ce) <= 1e-6 * all.ce);
    ASSERT(fabs(apart / labels - all.ce) <= 1e-6 * all.ce);
    s.trainer.step++;
    ASSERT_EQ(MTAN_OK, mtan_trainer_gradient(&s.trainer, s.records, RECORDS, 1, &turned));
    ASSERT(fabs(turned.ce - all.ce) > 1e-4 * all.ce);
    ASSERT(tiny_close(&s));
    PASS();
}

/* The loss alone is that of a trainer without dropout; so is the reconstruction, of which the head is no part. */
TEST loss_alone_has_no_dropout(tiny_kind kind) {
    tiny_model a, b;
    mtan_report with, without, gradient;
    open_trainer(&a, kind, 0), open_trainer(&b, kind, 0.6);
    ASSERT_EQ(MTAN_OK, mtan_trainer_loss(&a.trainer, a.records, RECORDS, 1, &without));
    ASSERT_EQ(MTAN_OK, mtan_trainer_gradient(&b.trainer, b.records, RECORDS, 1, &gradient));
    ASSERT_EQ(MTAN_OK, mtan_trainer_loss(&b.trainer, b.records, RECORDS, 1, &with));
    ASSERT(check_same("loss", &with, &without, offsetof(mtan_report, gradient_norm)));
    ASSERT(gradient.ce != with.ce);
    ASSERT(check_same("reconstruction", &gradient.recon, &with.recon, sizeof with.recon));
    ASSERT(tiny_close(&a) & tiny_close(&b));
    PASS();
}

/* A workspace grows with dropout, and only with it. */
TEST masks_cost_memory_only_where_there_are_any(void) {
    tiny_model s;
    size_t bytes[3];
    const double dropout[3] = {0, 0.5, 0.9};
    mtan_train_config config;
    tiny_open(&s, TINY_ENC, RECORDS);
    mtan_train_config_init(&config);
    for (int i = 0; i < 3; i++) {
        config.dropout = dropout[i];
        ASSERT_EQ(MTAN_OK, mtan_trainer_size(&s.model, &config, &s.bounds, &bytes[i]));
    }
    ASSERT(bytes[1] > bytes[0] && bytes[2] == bytes[1]);
    ASSERT(tiny_close(&s));
    PASS();
}

TEST dropout_out_of_range_is_refused(void) {
    static const double bad[] = {-1e-9, -1, 1, 1.5, NAN, INFINITY, -INFINITY};
    tiny_model s;
    mtan_train_config config;
    size_t bytes = 7;
    tiny_open(&s, TINY_ENC, 1);
    mtan_train_config_init(&config);
    ASSERT(config.dropout == 0);
    for (size_t i = 0; i < COUNT(bad); i++) {
        config.dropout = bad[i];
        ASSERT_EQ(MTAN_ERR_CONFIG, mtan_trainer_size(&s.model, &config, &s.bounds, &bytes));
        ASSERT_EQ(MTAN_ERR_CONFIG, mtan_trainer_init(&s.trainer, &s.model, s.weights, &config, &s.bounds, &bytes, 8));
    }
    ASSERT_EQ(7, (int)bytes);
    config.dropout = 1 - 1e-16; /* the largest below 1 */
    ASSERT_EQ(MTAN_OK, mtan_trainer_size(&s.model, &config, &s.bounds, &bytes));
    ASSERT(tiny_close(&s));
    PASS();
}

/* ---- resuming ---- */

typedef struct {
    unsigned char bytes[1 << 18];
    size_t used;
} store;

static mtan_status keep_bytes(void *context, const void *bytes, size_t n) {
    store *s = context;
    if (n > sizeof s->bytes - s->used) return MTAN_ERR_WRITE;
    memcpy(s->bytes + s->used, bytes, n);
    s->used += n;
    return MTAN_OK;
}

static int train_steps(tiny_model *s, int steps) {
    mtan_report report;
    for (int i = 0; i < steps; i++)
        if (mtan_trainer_step(&s->trainer, s->records, RECORDS, 1, &report) != MTAN_OK) return 0;
    return 1;
}

/* All in one epoch, so that nothing but the step can tell the masks apart. */
TEST resumed_training_drops_the_same_units(tiny_kind kind) {
    static store saved;
    tiny_model a, b;
    open_trainer(&a, kind, 0.4), open_trainer(&b, kind, 0.4);
    ASSERT(train_steps(&a, 3));
    saved.used = 0;
    ASSERT_EQ(MTAN_OK, mtan_model_save(&a.model, &a.trainer, NULL, 0, keep_bytes, &saved));
    ASSERT(train_steps(&a, 3));
    ASSERT_EQ(MTAN_OK, blob_load_trainer(&b.trainer, saved.bytes, saved.used));
    ASSERT(train_steps(&b, 3));
    ASSERT(check_same("weights", b.weights, a.weights, a.count * sizeof *a.weights));
    ASSERT(check_same("second moments", b.trainer.moment2, a.trainer.moment2, a.count * sizeof *a.weights));
    ASSERT_EQ(MTAN_OK, blob_load_trainer(&b.trainer, saved.bytes, saved.used));
    b.trainer.step += 7; /* other masks and another correction of the moments: not the same bits */
    ASSERT(train_steps(&b, 3));
    ASSERT(memcmp(b.weights, a.weights, a.count * sizeof *a.weights) != 0);
    ASSERT(tiny_close(&a) & tiny_close(&b));
    PASS();
}

SUITE(dropout_suite) {
    static const tiny_kind heads[] = {TINY_ENC,   TINY_FULL,     TINY_ENC_TIME, TINY_FULL_TIME,
                                      TINY_FIXED, TINY_OBSERVED, TINY_LINEAR};
    static const double rates[] = {0.05, 0.3, 0.5, 0.9};
    RUN_TEST(mask_is_philox_of_its_coordinates);
    RUN_TEST(mask_does_not_depend_on_where_it_starts);
    for (size_t i = 0; i < COUNT(rates); i++) {
        char name[16];
        snprintf(name, sizeof name, "%g", rates[i]);
        greatest_set_test_suffix(name);
        RUN_TESTp(mask_keeps_its_share, rates[i]);
    }
    RUN_TEST(masks_of_neighbours_are_independent);
    RUN_TEST(nothing_is_dropped_at_zero);
    RUN_TEST(dropout_scales_what_it_keeps);
    for (size_t i = 0; i < COUNT(heads); i++) {
        const char *name = tiny_names[heads[i]];
        greatest_set_test_suffix(name);
        RUN_TEST1(masks_are_those_of_seed_step_record_and_row, heads[i]);
        greatest_set_test_suffix(name);
        RUN_TEST1(order_and_company_do_not_matter, heads[i]);
        greatest_set_test_suffix(name);
        RUN_TEST1(loss_alone_has_no_dropout, heads[i]);
        greatest_set_test_suffix(name);
        RUN_TEST1(resumed_training_drops_the_same_units, heads[i]);
    }
    RUN_TEST(masks_cost_memory_only_where_there_are_any);
    RUN_TEST(dropout_out_of_range_is_refused);
}
