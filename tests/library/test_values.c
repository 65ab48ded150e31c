/* Encoded values: a model that reads them is the published model on more channels, whose values are made here by the definition, in
 * double. Streams, the small path, int8 and files meet the same models among all small ones (small.c), and PyTorch's numbers in
 * test_golden.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "greatest.h"
#include "small.h"

enum { RECORDS = 7, EVENTS = 20, TIMES = 20, PARTS_MOST = 4, LOGITS_MOST = 64 };

/* The knots of a channel that is not static. */
static mtan_real *knots_at(small_model *s, int32_t channel) {
    mtan_param p;
    if (mtan_param_at(&s->config, mtan_param_count(&s->config) - 1, &p) != MTAN_OK) return NULL;
    return s->weights + p.offset + (channel - s->config.statics) * (s->config.bins + 1);
}

static double share_of(double x, double low, double high) {
    if (!(high > low)) return x < high ? 0 : 1;
    return fmin(1, fmax(0, (x - low) / (high - low)));
}

/* The parts of a value as mtan.h describes them; returns how many. */
static int32_t encode(small_model *s, int32_t channel, double x, mtan_real *part) {
    const mtan_real *knot = knots_at(s, channel);
    const int32_t bins = s->config.bins;
    double sum = 0;
    for (int32_t j = 0; j < bins; j++) {
        const double share = share_of(x, (double)knot[j], (double)knot[j + 1]);
        sum += share;
        if (s->config.values == MTAN_VALUES_PIECEWISE) part[1 + j] = (mtan_real)share;
    }
    part[0] = (mtan_real)(s->config.values == MTAN_VALUES_PIECEWISE ? x : sum / bins);
    return s->config.values == MTAN_VALUES_PIECEWISE ? 1 + bins : 1;
}

/* The events of a record on the channels that attention sees. */
static mtan_record spread_out(small_model *s, const mtan_record *r, mtan_event *out) {
    mtan_record made = *r;
    made.events = out, made.n_events = 0;
    made.targets = NULL, made.n_targets = 0;
    for (int32_t i = 0; i < r->n_events; i++) {
        mtan_real part[PARTS_MOST];
        const int32_t parts = encode(s, r->events[i].channel, (double)r->events[i].value, part);
        for (int32_t j = 0; j < parts; j++) {
            mtan_event *e = &out[made.n_events++];
            e->time = r->events[i].time, e->channel = r->events[i].channel * parts + j, e->value = part[j];
        }
    }
    return made;
}

typedef struct {
    mtan_predictor predictor;
    void *memory;
} runner;

static int start(runner *r, const mtan_model *model, mtan_bounds bounds) {
    size_t bytes = 0;
    if (mtan_predictor_size(model, &bounds, &bytes) != MTAN_OK) return 0;
    r->memory = guard_alloc(bytes);
    return mtan_predictor_init(&r->predictor, model, &bounds, r->memory, bytes) == MTAN_OK;
}

/* One channel is constant, and a bin of another has no width. */
static void shape_knots(small_model *s) {
    mtan_real *first = knots_at(s, 0), *second = knots_at(s, 1);
    for (int32_t j = 0; j <= s->config.bins; j++) first[j] = (mtan_real)0.25;
    second[1] = second[0];
}

static int close_to(const mtan_real *a, const mtan_real *b, int32_t n) {
    const double limit = sizeof(mtan_real) == sizeof(float) ? 2e-5 : 1e-13;
    for (int32_t i = 0; i < n; i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= limit)) return 0;
    return 1;
}

TEST encoded_values_are_more_channels(const char *name) {
    const mtan_bounds bounds = {1, EVENTS, TIMES}, wide_bounds = {1, PARTS_MOST * EVENTS, TIMES};
    mtan_real got[LOGITS_MOST], want[LOGITS_MOST], weight[2][TIMES * TIMES];
    mtan_event room[PARTS_MOST * EVENTS];
    uint64_t random = 5;
    small_model s;
    mtan_model wide;
    runner encoded, plain;
    int32_t parts, seen = 0;
    ASSERT(small_open_named(&s, name));
    shape_knots(&s);
    mtan_config c = s.config;
    parts = c.values == MTAN_VALUES_PIECEWISE ? 1 + c.bins : 1;
    c.values = MTAN_VALUES_PLAIN, c.channels *= parts; /* its parameters are the same but for the last one, the knots */
    ASSERT_EQ(MTAN_OK, mtan_model_init(&wide, &c, s.weights, s.count));
    ASSERT(start(&encoded, &s.model, bounds) && start(&plain, &wide, wide_bounds));
    small_set set = small_records(&s.config, &bounds, RECORDS, 0, &random);
    for (int32_t b = 0; b < set.n; b++) {
        const mtan_record r = set.records[b], more = spread_out(&s, &r, room);
        small_set one = {set.records + b, 1};
        const int32_t n = (int32_t)small_class_rows(&s.config, &one) * small_samples(&s.config) * c.classes;
        ASSERT(n <= LOGITS_MOST);
        ASSERT_EQ(MTAN_OK, mtan_predictor_logits(&encoded.predictor, &r, 1, got));
        ASSERT_EQ(MTAN_OK, mtan_predictor_logits(&plain.predictor, &more, 1, want));
        ASSERT(close_to(got, want, n));
        for (int32_t d = 0; d < s.config.channels; d++) {
            const int32_t cells = small_points(&s.config, &r) * small_distinct(&r);
            ASSERT_EQ(MTAN_OK, mtan_predictor_attention(&encoded.predictor, &r, 0, d, weight[0]));
            ASSERT_EQ(MTAN_OK, mtan_predictor_attention(&plain.predictor, &more, 0, d * parts, weight[1]));
            ASSERT_MEM_EQ(weight[0], weight[1], (size_t)cells * sizeof(mtan_real));
            seen += cells;
        }
    }
    ASSERT(seen > 0);
    ASSERT(guard_free(encoded.memory) & guard_free(plain.memory) & small_free(&set) & small_close(&s));
    PASS();
}

/* Shares by the numbers, at knots, between and beyond them. */
TEST a_bins_share_is_what_the_header_says(void) {
    static const struct {
        double x, share[3], quantile;
    } known[] = {{-9, {0, 0, 0}, 0},      {1, {0, 0, 0}, 0}, {1.5, {0.5, 0, 0}, 0.5 / 3}, {2, {1, 1, 0}, 2.0 / 3},
                 {3, {1, 1, 0.25}, 0.75}, {6, {1, 1, 1}, 1}, {99, {1, 1, 1}, 1}};
    const double knots[4] = {1, 2, 2, 6};
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        double sum = 0;
        for (int j = 0; j < 3; j++) {
            ASSERT_NEAR(known[k].share[j], share_of(known[k].x, knots[j], knots[j + 1]), 1e-15);
            sum += known[k].share[j];
        }
        ASSERT_NEAR(known[k].quantile, sum / 3, 1e-15);
    }
    PASS();
}

/* Values beyond the knots are as far as they go: nothing that a record holds makes a quantile larger than 1. */
TEST values_beyond_the_knots_are_the_outermost(void) {
    const mtan_bounds bounds = {2, 1, 1};
    mtan_event far = {(mtan_real)0.5, 1, (mtan_real)1e30}, end = far;
    mtan_record r[2];
    mtan_real p[4];
    runner run;
    small_model s;
    ASSERT(small_open_named(&s, "enc quantile"));
    end.value = knots_at(&s, 1)[s.config.bins];
    memset(r, 0, sizeof r);
    r[0].events = &far, r[1].events = &end, r[0].n_events = r[1].n_events = 1;
    ASSERT(start(&run, &s.model, bounds));
    for (int side = 0; side < 2; side++) {
        ASSERT_EQ(MTAN_OK, mtan_predictor_classify(&run.predictor, r, 2, p));
        ASSERT_MEM_EQ(p, &p[2], 2 * sizeof *p);
        far.value = (mtan_real)-1e30, end.value = knots_at(&s, 1)[0];
    }
    ASSERT(guard_free(run.memory) & small_close(&s));
    PASS();
}

TEST training_leaves_knots_alone(const char *name) {
    const mtan_bounds bounds = {RECORDS, EVENTS, TIMES};
    uint64_t random = 12;
    small_model s;
    mtan_param p;
    ASSERT(small_open_named(&s, name));
    ASSERT_EQ(MTAN_OK, mtan_param_at(&s.config, mtan_param_count(&s.config) - 1, &p));
    ASSERT_STR_EQ("rec.values.knots", p.name);
    ASSERT_EQ((s.config.channels - s.config.statics) * (s.config.bins + 1), p.rows);
    small_set set = small_records(&s.config, &bounds, RECORDS, 0, &random);
    mtan_real *before = guard_alloc(s.count * sizeof *before);
    memcpy(before, s.weights, s.count * sizeof *before);
    ASSERT(small_train(&s, &bounds, &set, 3));
    ASSERT_MEM_EQ(&before[p.offset], &s.weights[p.offset], (size_t)p.rows * sizeof *before);
    ASSERT(memcmp(before, s.weights, p.offset * sizeof *before) != 0);
    ASSERT(guard_free(before) & small_free(&set) & small_close(&s));
    PASS();
}

TEST knots_begin_evenly(void) {
    small_model s;
    ASSERT(small_open_named(&s, "enc piecewise"));
    ASSERT_EQ(MTAN_OK, mtan_weights_init(&s.config, s.weights, s.count, 1));
    for (int32_t d = 0; d < s.config.channels; d++)
        for (int32_t j = 0; j <= s.config.bins; j++)
            ASSERT_NEAR((double)j / s.config.bins, (double)knots_at(&s, d)[j], 1e-7);
    ASSERT(small_close(&s));
    PASS();
}

/* All else starts as it does without. */
TEST knots_come_last(void) {
    small_model s;
    mtan_config c;
    ASSERT(small_open_named(&s, "enc quantile"));
    c = s.config, c.values = MTAN_VALUES_PLAIN;
    const size_t count = mtan_weights_count(&c);
    mtan_real *plain = guard_alloc(count * sizeof *plain);
    ASSERT_EQ(MTAN_OK, mtan_weights_init(&c, plain, count, 3));
    ASSERT_EQ(MTAN_OK, mtan_weights_init(&s.config, s.weights, s.count, 3));
    ASSERT_MEM_EQ(plain, s.weights, count * sizeof *plain);
    ASSERT(guard_free(plain) & small_close(&s));
    PASS();
}

/* Each member of an ensemble reads values by its own knots. */
TEST members_have_their_own_knots(void) {
    const mtan_bounds bounds = {RECORDS, EVENTS, TIMES};
    mtan_real own[2][2 * RECORDS], both[2 * RECORDS];
    uint64_t random = 8;
    small_model s[2];
    mtan_model joined;
    runner run;
    ASSERT(small_open_named(&s[0], "enc piecewise") && small_open_named(&s[1], "enc piecewise"));
    for (int32_t j = 0; j < 3 * (s[1].config.bins + 1); j++) knots_at(&s[1], 0)[j] += (mtan_real)0.3;
    small_set set = small_records(&s[0].config, &bounds, RECORDS, 1, &random);
    for (int i = 0; i < 2; i++) {
        ASSERT(start(&run, &s[i].model, bounds));
        ASSERT_EQ(MTAN_OK, mtan_predictor_classify(&run.predictor, set.records, set.n, own[i]));
        ASSERT(guard_free(run.memory));
    }
    const mtan_model members[2] = {s[0].model, s[1].model};
    mtan_real *weights = guard_alloc(2 * s[0].count * sizeof *weights);
    ASSERT_EQ(MTAN_OK, mtan_model_join(&joined, weights, 2 * s[0].count, members, 2));
    ASSERT(start(&run, &joined, bounds));
    ASSERT_EQ(MTAN_OK, mtan_predictor_classify(&run.predictor, set.records, set.n, both));
    ASSERT(memcmp(own[0], own[1], sizeof own[0]) != 0);
    for (int i = 0; i < 2 * RECORDS; i++)
        ASSERT_NEAR(((double)own[0][i] + (double)own[1][i]) / 2, (double)both[i], 1e-6);
    ASSERT(guard_free(run.memory) & guard_free(weights) & small_free(&set) & small_close(&s[0]) & small_close(&s[1]));
    PASS();
}

TEST encodings_that_no_model_has_are_refused(void) {
    static const mtan_architecture other; /* whatever it is, it does not encode */
    mtan_config c, good;
    char text[32];
    ASSERT_EQ(MTAN_OK, mtan_config_init(&c, MTAN_ENC, MTAN_CLASSIFY_RECORD, 3, 2));
    ASSERT_EQ(MTAN_VALUES_PLAIN, c.values);
    c.bins = 0; /* nobody asks */
    ASSERT_EQ(MTAN_OK, mtan_config_check(&c));
    c.bins = MTAN_MAX_BINS;
    ASSERT_EQ(MTAN_OK, mtan_config_set(&c, "values", "piecewise"));
    ASSERT_EQ(MTAN_OK, mtan_config_get(&c, "values", text, sizeof text));
    ASSERT_STR_EQ("piecewise", text);
    ASSERT_EQ(MTAN_OK, mtan_config_check(&c));
    good = c;
    c.bins = MTAN_MAX_BINS + 1;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&c));
    c.bins = 0;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&c));
    c = good, c.values = (mtan_values)3;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&c));
    c = good, c.encoder = MTAN_RBF;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&c));
    c = good, c.architecture = &other;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&c));
    c = good, c.channels = 1 << 20, c.enc_heads = 8;
    ASSERT_EQ(MTAN_ERR_SIZE, mtan_config_check(&c));
    PASS();
}

SUITE(values_suite);
SUITE(values_suite) {
    RUN_TESTp(encoded_values_are_more_channels, "enc piecewise");
    RUN_TESTp(encoded_values_are_more_channels, "enc quantile");
    RUN_TESTp(encoded_values_are_more_channels, "enc time piecewise");
    RUN_TEST(a_bins_share_is_what_the_header_says);
    RUN_TEST(values_beyond_the_knots_are_the_outermost);
    RUN_TESTp(training_leaves_knots_alone, "enc piecewise statistics");
    RUN_TESTp(training_leaves_knots_alone, "full piecewise");
    RUN_TEST(knots_begin_evenly);
    RUN_TEST(knots_come_last);
    RUN_TEST(members_have_their_own_knots);
    RUN_TEST(encodings_that_no_model_has_are_refused);
}
