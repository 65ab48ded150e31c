/* Terms beside the classifier: what they add is looked up once more here, from the numbers that the classifier is told, which are held
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

/* The height of number j, from the tensors as mtan.h describes them. */
static double height_at(small_model *s, int32_t j, int32_t numbers, const mtan_real *row, int32_t output) {
    const int32_t T = s->config.terms, M = s->config.statics, varying = s->config.channels - M;
    int32_t count, step = 1;
    const mtan_real *threshold = tensor(s, "rec.terms.threshold", &count) + j * T;
    const mtan_real *height = tensor(s, "rec.terms.height", &count);
    const int32_t changing = numbers - M;
    const mtan_real seen = j < changing ? row[j % varying] : row[numbers + j - changing];
    for (int32_t k = 0; k < T; k++) step += threshold[k] <= row[j];
    if (!(seen > 0)) step = 0;
    return (double)height[(j * (T + 2) + step) * mtan_config_outputs(&s->config) + output];
}

static void sort_thresholds(small_model *s) {
    const int32_t T = s->config.terms;
    int32_t count;
    mtan_real *x = tensor(s, "rec.terms.threshold", &count);
    for (int32_t i = 1; i < count; i++)
        for (int32_t k = i; k % T > 0 && x[k] < x[k - 1]; k--) {
            const mtan_real smaller = x[k];
            x[k] = x[k - 1], x[k - 1] = smaller;
        }
}

TEST terms_add_the_height_of_each_number(const char *name) {
    const mtan_bounds bounds = {RECORDS, EVENTS, TIMES};
    mtan_real alone[RECORDS * MOST_LOGITS], with[RECORDS * MOST_LOGITS], row[MOST_NUMBERS], *share, *height;
    uint64_t random = 11;
    int32_t count, changed = 0;
    small_model s;
    ASSERT(small_open_named(&s, name));
    const int32_t outputs = mtan_config_outputs(&s.config), width = (int32_t)mtan_summaries_count(&s.config);
    const int32_t numbers = width - s.config.statics, logits = small_samples(&s.config) * outputs;
    ASSERT(width <= MOST_NUMBERS && logits <= MOST_LOGITS);
    small_set set = small_records(&s.config, &bounds, RECORDS, 0, &random);
    sort_thresholds(&s);
    ASSERT(logits_of(&s, &set, with));
    share = tensor(&s, "rec.terms.share", &count);
    ASSERT_EQ_FMT(1, (int)count, "%d");
    height = tensor(&s, "rec.terms.height", &count);
    mtan_real *kept = guard_alloc((size_t)count * sizeof *kept), kept_share = *share;
    memcpy(kept, height, (size_t)count * sizeof *kept);
    memset(height, 0, (size_t)count * sizeof *height), *share = 1;
    ASSERT(logits_of(&s, &set, alone));
    memcpy(height, kept, (size_t)count * sizeof *kept);
    for (int32_t b = 0; b < set.n; b++) {
        ASSERT_EQ(MTAN_OK, mtan_summaries(&s.config, &set.records[b], row, MOST_NUMBERS));
        for (int32_t i = 0; i < logits; i++) {
            double want = (double)kept_share * (double)alone[b * logits + i];
            for (int32_t j = 0; j < numbers; j++) want += height_at(&s, j, numbers, row, i % outputs);
            ASSERT_IN_RANGE(want, (double)with[b * logits + i], 1e-5);
            changed += fabs(want - (double)alone[b * logits + i]) > 0.01;
        }
    }
    ASSERT(changed > RECORDS); /* they do add something */
    ASSERT(guard_free(kept) & small_free(&set) & small_close(&s));
    PASS();
}

TEST training_leaves_terms_alone(void) {
    const mtan_bounds bounds = {RECORDS, EVENTS, TIMES};
    uint64_t random = 12;
    mtan_train_config train;
    mtan_trainer trainer;
    mtan_report report;
    small_model s;
    size_t bytes = 0;
    mtan_param p;
    int32_t moved = 0;
    ASSERT(small_open_named(&s, "enc terms"));
    small_set set = small_records(&s.config, &bounds, RECORDS, 0, &random);
    mtan_real *before = guard_alloc(s.count * sizeof *before);
    memcpy(before, s.weights, s.count * sizeof *before);
    mtan_train_config_init(&train);
    train.lr = 0.01, train.decay = 1;
    ASSERT_EQ(MTAN_OK, mtan_trainer_size(&s.model, &train, &bounds, &bytes));
    void *memory = guard_alloc(bytes);
    ASSERT_EQ(MTAN_OK, mtan_trainer_init(&trainer, &s.model, s.weights, &train, &bounds, memory, bytes));
    for (int i = 0; i < 3; i++) ASSERT_EQ(MTAN_OK, mtan_trainer_step(&trainer, set.records, set.n, 0, &report));
    for (int32_t i = 0; mtan_param_at(&s.config, i, &p) == MTAN_OK; i++) {
        const int same =
            memcmp(before + p.offset, s.weights + p.offset, (size_t)p.rows * (size_t)p.cols * sizeof *before) == 0;
        ASSERT(strncmp(p.name, "rec.terms.", 10) != 0 || same);
        moved += !same;
    }
    ASSERT(moved > 5);
    ASSERT(guard_free(memory) & guard_free(before) & small_free(&set) & small_close(&s));
    PASS();
}

/* A new model's terms add nothing. */
TEST terms_begin_with_nothing(void) {
    small_model s;
    int32_t count;
    ASSERT(small_open_named(&s, "enc terms"));
    ASSERT_EQ(MTAN_OK, mtan_weights_init(&s.config, s.weights, s.count, 1));
    ASSERT_EQ_FMT(1.0, (double)tensor(&s, "rec.terms.share", &count)[0], "%g");
    mtan_real *height = tensor(&s, "rec.terms.height", &count);
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
    PASS();
}

TEST terms_need_numbers_to_be_terms_of(void) {
    mtan_config c;
    mtan_config_init(&c, MTAN_ENC, MTAN_CLASSIFY_RECORD, 2, 2);
    c.terms = 1;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&c));
    c.statics = 1;
    ASSERT_EQ(MTAN_OK, mtan_config_check(&c));
    c.terms = MTAN_MAX_TERMS + 1;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&c));
    c.terms = MTAN_MAX_TERMS, c.summaries = 1, c.channels = 100000, c.classes = 8;
    ASSERT_EQ(MTAN_ERR_SIZE, mtan_config_check(&c));
    PASS();
}

SUITE(terms_suite);
SUITE(terms_suite) {
    RUN_TESTp(terms_add_the_height_of_each_number, "enc terms");
    RUN_TESTp(terms_add_the_height_of_each_number, "full terms");
    RUN_TEST(training_leaves_terms_alone);
    RUN_TEST(terms_begin_with_nothing);
    RUN_TEST(summaries_of_unsorted_events_are_those_of_sorted);
    RUN_TEST(summaries_say_what_is_wrong);
    RUN_TEST(terms_need_numbers_to_be_terms_of);
}
