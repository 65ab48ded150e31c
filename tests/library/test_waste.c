/* The memory that a size asks for is used: when records are as large as the bounds allow, no part of a block stays
 * as it was. And no more than it is. */
#include <greatest.h>
#include <string.h>

#include "small.h"

/* In a predictor a row of the attention's scratch, which serves the backward pass, stays as it was: a real for every reference
 * point or query time. */
enum { DIRT_A = 0x00, DIRT_B = 0x55, TIMES = 50, SCRATCH = TIMES * sizeof(mtan_real) };

/* Every array starts at a multiple of 64 bytes: gaps of that size, two in a row, are no waste. A whole number has the place of a
 * real, half of which it leaves in the double build; an event has one, and one more for each bin of its value. */
static size_t gaps(const mtan_config *c) {
    const size_t numbers = c->values == MTAN_VALUES_PIECEWISE ? 1 + (size_t)c->bins : 1;
    return 2 * 64 + TIMES * numbers * (sizeof(mtan_real) - sizeof(int32_t));
}

static int ask_everything(mtan_predictor *p, const small_set *set) {
    const mtan_config *c = &p->model->config;
    const int32_t S = small_samples(c);
    int ok = 1;
    if (c->classify != MTAN_CLASSIFY_NONE) {
        mtan_real *x = guard_alloc(small_class_rows(c, set) * (size_t)(S * mtan_config_outputs(c)) * sizeof *x);
        ok &= mtan_predictor_logits(p, set->records, set->n, x) == MTAN_OK;
        ok &= mtan_predictor_classify(p, set->records, set->n, x) == MTAN_OK && guard_free(x);
    }
    for (int32_t b = 0; c->kind == MTAN_FULL && c->classify != MTAN_CLASSIFY_TIME && b < set->n; b++) {
        mtan_real *x = guard_alloc((size_t)(S * small_queries(&set->records[b]) * c->channels) * sizeof *x);
        ok &= mtan_predictor_curves(p, &set->records[b], x) == MTAN_OK && guard_free(x);
    }
    return ok;
}

/* A small model with sizes that an array of any of them shows. */
typedef struct {
    small_model small;
    mtan_config config;
    mtan_model model;
    mtan_real *weights;
} large_model;

static int large_open(large_model *s, int index) {
    static mtan_real points[TIMES];
    mtan_config *c = &s->config;
    size_t count;
    if (!small_open(&s->small, index)) return 0;
    *c = s->small.config;
    c->embed = 36, c->ref_points = TIMES, c->enc_hidden = 35, c->dec_hidden = 45, c->latent = 38, c->mlp_hidden = 39;
    c->head_hidden = c->head_hidden ? 40 : 0;
    c->ref = c->ref ? points : NULL;
    if (c->values != MTAN_VALUES_PLAIN)
        c->statics = 0; /* all events could be encoded, but those of static channels are not */
    count = mtan_weights_count(c);
    s->weights = guard_alloc(count * sizeof *s->weights);
    return mtan_weights_init(c, s->weights, count, 3) == MTAN_OK &&
           mtan_model_init(&s->model, c, s->weights, count) == MTAN_OK;
}

static int large_close(large_model *s) {
    return guard_free(s->weights) & small_close(&s->small);
}

/* A predictor or, with a train config, a trainer in a block of `bytes`, which was full of `dirt`. */
static unsigned char *used_block(large_model *s, const mtan_train_config *train, const mtan_bounds *bounds,
                                 const small_set *set, size_t bytes, int dirt) {
    unsigned char *block = guard_alloc(bytes);
    mtan_predictor predictor;
    mtan_trainer trainer;
    mtan_report report;
    int ok;
    memset(block, dirt, bytes);
    if (train) {
        ok = mtan_trainer_init(&trainer, &s->model, s->weights, train, bounds, block, bytes) == MTAN_OK;
        ok = ok && mtan_trainer_step(&trainer, set->records, set->n, 12, &report) == MTAN_OK;
    } else {
        ok = mtan_predictor_init(&predictor, &s->model, bounds, block, bytes) == MTAN_OK;
        ok = ok && ask_everything(&predictor, set);
    }
    if (ok) return block;
    guard_free(block);
    return NULL;
}

/* The longest stretch of bytes that nobody wrote: they are still the dirt of both runs. */
static size_t longest_untouched(const unsigned char *a, const unsigned char *b, size_t n) {
    size_t longest = 0, run = 0;
    for (size_t i = 0; i < n; i++) {
        run = a[i] == DIRT_A && b[i] == DIRT_B ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

/* One record, as some questions take one at a time. */
static int wastes_little(large_model *s, const mtan_train_config *train) {
    const mtan_bounds bounds = {1, TIMES, TIMES};
    const size_t most = gaps(&s->config) + (train ? 0 : SCRATCH);
    uint64_t random = 5;
    small_set set = small_records(&s->config, &bounds, 1, 1, &random);
    size_t bytes = 0, longest = SIZE_MAX;
    unsigned char *a, *b;
    const mtan_status status =
        train ? mtan_trainer_size(&s->model, train, &bounds, &bytes) : mtan_predictor_size(&s->model, &bounds, &bytes);
    a = status == MTAN_OK ? used_block(s, train, &bounds, &set, bytes, DIRT_A) : NULL;
    b = status == MTAN_OK ? used_block(s, train, &bounds, &set, bytes, DIRT_B) : NULL;
    if (a && b) longest = longest_untouched(a, b, bytes);
    if (longest > most) printf("  BAD %s: %zu bytes of %zu are never touched\n", s->small.name, longest, bytes);
    return (guard_free(a) & guard_free(b) & small_free(&set)) && longest <= most;
}

TEST no_memory_is_asked_for_in_vain(int trains) {
    MAY_BE_LEFT_OUT();
    mtan_train_config train;
    large_model s;
    mtan_train_config_init(&train);
    for (int i = 0; i < small_count(); i++) {
        ASSERT(large_open(&s, i));
        ASSERT(wastes_little(&s, trains ? &train : NULL));
        ASSERT(large_close(&s));
    }
    PASS();
}

/* The logits of many classes are what a small block ends with: the block is not written beyond them. */
TEST many_classes_fit_in_small_memory(void) {
    enum { CLASSES = 1000 };
    static const mtan_event events[] = {{(mtan_real)0.1, 0, (mtan_real)0.5}, {(mtan_real)0.7, 1, (mtan_real)-2}};
    const mtan_record record = {.events = events, .n_events = 2};
    mtan_config config;
    mtan_model model;
    mtan_real *weights, *p = guard_alloc(CLASSES * sizeof *p);
    size_t count, bytes = 0;
    void *memory;
    double sum = 0;
    ASSERT_EQ(MTAN_OK, mtan_config_init(&config, MTAN_ENC, MTAN_CLASSIFY_RECORD, 2, CLASSES));
    ASSERT(small_apply(&config, "embed 2 enc_hidden 3 ref_points 2 head_hidden 0"));
    count = mtan_weights_count(&config);
    weights = guard_alloc(count * sizeof *weights);
    ASSERT_EQ(MTAN_OK, mtan_weights_init(&config, weights, count, 1));
    ASSERT_EQ(MTAN_OK, mtan_model_init(&model, &config, weights, count));
    ASSERT_EQ(MTAN_OK, mtan_small_size(&model, 1, &bytes));
    ASSERT(bytes < 2 * CLASSES * sizeof *p);
    memory = guard_alloc(bytes);
    ASSERT_EQ(MTAN_OK, mtan_small_classify(&model, &record, 1, memory, bytes, p));
    for (int i = 0; i < CLASSES; i++) sum += (double)p[i];
    ASSERT(sum > 1 - 1e-4 && sum < 1 + 1e-4);
    ASSERT(guard_free(memory) & guard_free(weights) & guard_free(p));
    PASS();
}

SUITE(waste_suite) {
    greatest_set_test_suffix("predictor");
    RUN_TESTp(no_memory_is_asked_for_in_vain, 0);
    greatest_set_test_suffix("trainer");
    RUN_TESTp(no_memory_is_asked_for_in_vain, 1);
    RUN_TEST(many_classes_fit_in_small_memory);
}
