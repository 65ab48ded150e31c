/* Trees beside the classifier: what they add is looked up once more here, from the numbers that the classifier is told, which are held
 * to those that the head reads (test_summaries.c) by a head that shows them. */
#include <math.h>
#include <string.h>

#include "greatest.h"
#include "small.h"

enum { RECORDS = 9, EVENTS = 24, TIMES = 24, MOST_NUMBERS = 256, MOST_LOGITS = 32 }; /* of a record, of all samples */

static mtan_real *tensor(small_model *s, const char *name, int32_t *count) {
    mtan_param p;
    *count = 0;
    for (int32_t i = 0; mtan_param_at(&s->config, i, &p) == MTAN_OK; i++)
        if (strcmp(p.name, name) == 0) return *count = p.rows, s->weights + p.offset;
    return NULL;
}

static int logits_of(const small_model *s, const small_set *set, mtan_real *out) {
    const mtan_bounds bounds = {RECORDS, EVENTS, TIMES};
    mtan_predictor p;
    size_t bytes = 0;
    void *memory;
    int good = mtan_predictor_size(&s->model, &bounds, &bytes) == MTAN_OK;
    memory = guard_alloc(bytes);
    good = good && mtan_predictor_init(&p, &s->model, &bounds, memory, bytes) == MTAN_OK &&
           mtan_predictor_logits(&p, set->records, set->n, out) == MTAN_OK;
    return guard_free(memory) & good;
}

/* Splits of leaves and numbers that there are, but for the second of each tree, which is of a number that there is none of; thresholds
 * among the values. */
static void plant(small_model *s, int32_t numbers, uint64_t *random) {
    int32_t count;
    mtan_real *split = tensor(s, "rec.trees.split", &count);
    for (int32_t i = 0; i < count; i += 4, split += 4) {
        const int32_t k = i / 4 % (MTAN_LEAVES - 1);
        split[0] = (mtan_real)(small_random(random) % (uint32_t)(k + 1));
        split[1] = (mtan_real)(k == 1 ? (uint32_t)numbers : small_random(random) % (uint32_t)numbers);
        split[2] = (mtan_real)(small_random(random) % 1000) / 500 - 1;
        split[3] = (mtan_real)(small_random(random) % 2);
    }
}

/* The leaf of tree t, by following it from split to split as mtan.h describes them. */
static int32_t leaf_at(small_model *s, int32_t t, int32_t numbers, const mtan_real *row) {
    const int32_t M = s->config.statics, varying = s->config.channels - M, changing = numbers - M;
    int32_t count, at = 0;
    const mtan_real *split = tensor(s, "rec.trees.split", &count) + t * (MTAN_LEAVES - 1) * 4;
    for (int32_t k = 1; k < MTAN_LEAVES; k++, split += 4) {
        const int32_t j = (int32_t)split[1];
        if ((int32_t)split[0] != at || j >= numbers) continue;
        const mtan_real seen = j < changing ? row[j % varying] : row[numbers + j - changing];
        if (seen > 0 ? row[j] >= split[2] : split[3] > 0) at = k;
    }
    return at;
}

TEST trees_add_the_heights_of_their_leaves(const char *name) {
    const mtan_bounds bounds = {RECORDS, EVENTS, TIMES};
    mtan_real alone[RECORDS * MOST_LOGITS], with[RECORDS * MOST_LOGITS], row[MOST_NUMBERS], *share, *height;
    uint64_t random = 11;
    int32_t count, changed = 0;
    uint32_t leaves = 0;
    small_model s;
    ASSERT(small_open_named(&s, name));
    const int32_t outputs = mtan_config_outputs(&s.config), width = (int32_t)mtan_summaries_count(&s.config);
    const int32_t numbers = width - s.config.statics, logits = small_samples(&s.config) * outputs;
    ASSERT(width <= MOST_NUMBERS && logits <= MOST_LOGITS);
    small_set set = small_records(&s.config, &bounds, RECORDS, 0, &random);
    plant(&s, numbers, &random);
    ASSERT(logits_of(&s, &set, with));
    share = tensor(&s, "rec.trees.share", &count);
    ASSERT_EQ_FMT(1, (int)count, "%d");
    height = tensor(&s, "rec.trees.height", &count);
    mtan_real *kept = guard_alloc((size_t)count * sizeof *kept), kept_share = *share;
    memcpy(kept, height, (size_t)count * sizeof *kept);
    memset(height, 0, (size_t)count * sizeof *height), *share = 1;
    ASSERT(logits_of(&s, &set, alone));
    for (int32_t b = 0; b < set.n; b++) {
        ASSERT_EQ(MTAN_OK, mtan_summaries(&s.config, &set.records[b], row, MOST_NUMBERS));
        for (int32_t i = 0; i < logits; i++) {
            double want = (double)kept_share * (double)alone[b * logits + i];
            for (int32_t t = 0; t < s.config.trees; t++) {
                const int32_t leaf = leaf_at(&s, t, numbers, row);
                want += (double)kept[(t * MTAN_LEAVES + leaf) * outputs + i % outputs];
                leaves |= 1u << leaf;
            }
            ASSERT_NEAR(want, (double)with[b * logits + i], 1e-5);
            changed += fabs(want - (double)alone[b * logits + i]) > 0.01;
        }
    }
    ASSERT(changed > RECORDS);     /* they do add something */
    ASSERT(leaves & (leaves - 1)); /* of more than one leaf */
    ASSERT(guard_free(kept) & small_free(&set) & small_close(&s));
    PASS();
}

/* A file may hold anything: what is no leaf and no number splits nothing. */
TEST splits_of_nothing_split_nothing(void) {
    const mtan_real odd[] = {(mtan_real)NAN, (mtan_real)-INFINITY, (mtan_real)INFINITY, (mtan_real)1e30, -1, 12};
    const mtan_bounds bounds = {RECORDS, EVENTS, TIMES};
    mtan_real plain[RECORDS * MOST_LOGITS], got[RECORDS * MOST_LOGITS];
    uint64_t random = 13;
    int32_t count;
    small_model s;
    ASSERT(small_open_named(&s, "enc trees"));
    small_set set = small_records(&s.config, &bounds, RECORDS, 0, &random);
    mtan_real *split = tensor(&s, "rec.trees.split", &count);
    for (int32_t i = 0; i < count; i++) split[i] = -1;
    ASSERT(logits_of(&s, &set, plain));
    for (size_t k = 0; k < sizeof odd / sizeof odd[0]; k++)
        for (int32_t field = 0; field < 2; field++) {
            for (int32_t i = 0; i < count; i += 4)
                split[i + field] = odd[k] < 100 && field ? 1000 : odd[k], split[i + 1 - field] = 0;
            ASSERT(logits_of(&s, &set, got));
            ASSERT_MEM_EQ(plain, got, (size_t)(set.n * mtan_config_outputs(&s.config)) * sizeof *got);
        }
    ASSERT(small_free(&set) & small_close(&s));
    PASS();
}

TEST training_leaves_trees_alone(void) {
    const mtan_bounds bounds = {RECORDS, EVENTS, TIMES};
    uint64_t random = 12;
    small_model s;
    mtan_param p;
    int32_t moved = 0;
    ASSERT(small_open_named(&s, "enc trees"));
    small_set set = small_records(&s.config, &bounds, RECORDS, 0, &random);
    mtan_real *before = guard_alloc(s.count * sizeof *before);
    memcpy(before, s.weights, s.count * sizeof *before);
    ASSERT(small_train(&s, &bounds, &set, 3));
    for (int32_t i = 0; mtan_param_at(&s.config, i, &p) == MTAN_OK; i++) {
        const int same =
            memcmp(before + p.offset, s.weights + p.offset, (size_t)p.rows * (size_t)p.cols * sizeof *before) == 0;
        ASSERT(strncmp(p.name, "rec.trees.", 10) != 0 || same);
        moved += !same;
    }
    ASSERT(moved > 5);
    ASSERT(guard_free(before) & small_free(&set) & small_close(&s));
    PASS();
}

/* A new model's trees add nothing. */
TEST trees_begin_with_nothing(void) {
    small_model s;
    int32_t count;
    ASSERT(small_open_named(&s, "enc trees"));
    ASSERT_EQ(MTAN_OK, mtan_weights_init(&s.config, s.weights, s.count, 1));
    ASSERT_EQ_FMT(1.0, (double)tensor(&s, "rec.trees.share", &count)[0], "%g");
    mtan_real *height = tensor(&s, "rec.trees.height", &count);
    for (int32_t i = 0; i < count; i++) ASSERT_EQ_FMT(0.0, (double)height[i], "%g");
    ASSERT(small_close(&s));
    PASS();
}

TEST summaries_of_unsorted_events_are_those_of_sorted(void) {
    const mtan_event sorted[3] = {{(mtan_real)0.1, 1, 3}, {(mtan_real)0.2, 1, 5}, {(mtan_real)0.9, 0, -1}};
    const mtan_event mixed[3] = {sorted[2], sorted[1], sorted[0]};
    mtan_record a, b;
    mtan_real x[2 * MTAN_SUMMARIES], y[2 * MTAN_SUMMARIES];
    mtan_config c;
    mtan_config_init(&c, MTAN_ENC, MTAN_CLASSIFY_RECORD, 2, 2);
    c.summaries = 1;
    memset(&a, 0, sizeof a);
    a.events = sorted, a.n_events = 3, b = a, b.events = mixed;
    ASSERT_EQ(MTAN_OK, mtan_summaries(&c, &a, x, 2 * MTAN_SUMMARIES));
    ASSERT_EQ(MTAN_OK, mtan_summaries(&c, &b, y, 2 * MTAN_SUMMARIES));
    ASSERT_MEM_EQ(x, y, sizeof x);
    ASSERT_EQ_FMT(5.0, (double)x[5 * 2 + 1], "%g"); /* the last of channel 1 */
    PASS();
}

TEST summaries_say_what_is_wrong(void) {
    const mtan_event far = {0, 2, 1};
    mtan_record r;
    mtan_real row[2 * MTAN_SUMMARIES];
    mtan_config c, bad;
    memset(&r, 0, sizeof r);
    mtan_config_init(&c, MTAN_ENC, MTAN_CLASSIFY_RECORD, 2, 2);
    ASSERT_EQ(0, mtan_summaries_count(&c));
    ASSERT_EQ(0, mtan_summaries_count(NULL));
    c.summaries = 1;
    ASSERT_EQ(2 * MTAN_SUMMARIES, mtan_summaries_count(&c));
    ASSERT_EQ(MTAN_OK, mtan_summaries(&c, &r, row, 2 * MTAN_SUMMARIES));
    ASSERT_EQ(MTAN_ERR_MEMORY, mtan_summaries(&c, &r, row, 2 * MTAN_SUMMARIES - 1));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_summaries(NULL, &r, row, 2 * MTAN_SUMMARIES));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_summaries(&c, NULL, row, 2 * MTAN_SUMMARIES));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_summaries(&c, &r, NULL, 2 * MTAN_SUMMARIES));
    bad = c, bad.embed = 0;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_summaries(&bad, &r, row, 2 * MTAN_SUMMARIES));
    r.events = &far, r.n_events = 1;
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_summaries(&c, &r, row, 2 * MTAN_SUMMARIES));
    r.events = NULL;
    ASSERT_EQ(MTAN_ERR_NULL, mtan_summaries(&c, &r, row, 2 * MTAN_SUMMARIES));
    PASS();
}

TEST trees_need_numbers_to_split_by(void) {
    mtan_config c;
    mtan_config_init(&c, MTAN_ENC, MTAN_CLASSIFY_RECORD, 2, 2);
    c.trees = 1;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&c));
    c.statics = 1;
    ASSERT_EQ(MTAN_OK, mtan_config_check(&c));
    c.trees = MTAN_MAX_TREES + 1;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&c));
    c.trees = MTAN_MAX_TREES, c.classes = 50000;
    ASSERT_EQ(MTAN_ERR_SIZE, mtan_config_check(&c));
    PASS();
}

SUITE(trees_suite);
SUITE(trees_suite) {
    RUN_TESTp(trees_add_the_heights_of_their_leaves, "enc trees");
    RUN_TESTp(trees_add_the_heights_of_their_leaves, "full trees");
    RUN_TEST(splits_of_nothing_split_nothing);
    RUN_TEST(training_leaves_trees_alone);
    RUN_TEST(trees_begin_with_nothing);
    RUN_TEST(summaries_of_unsorted_events_are_those_of_sorted);
    RUN_TEST(summaries_say_what_is_wrong);
    RUN_TEST(trees_need_numbers_to_split_by);
}
