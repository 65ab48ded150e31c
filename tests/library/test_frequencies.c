/* Frequencies that fit the data: where initial weights put them, what attention then looks at, and the range that records ask for. */
#include <greatest.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../mtan.h"
#include "check.h"

enum { E = 32, K = 16 };

static mtan_config log_config(mtan_kind kind, int32_t heads) {
    mtan_config c;
    mtan_config_init(&c, kind, kind == MTAN_FULL ? MTAN_CLASSIFY_NONE : MTAN_CLASSIFY_RECORD, 2, 2);
    c.embed = E, c.enc_heads = c.dec_heads = heads, c.enc_hidden = c.dec_hidden = 8, c.ref_points = K;
    c.frequencies = MTAN_FREQUENCIES_LOG, c.slowest = 0.5, c.fastest = 50;
    return c;
}

static mtan_real *initial(const mtan_config *c, uint32_t seed) {
    mtan_real *w = malloc(mtan_weights_count(c) * sizeof *w);
    if (mtan_weights_init(c, w, mtan_weights_count(c), seed) != MTAN_OK) exit(2);
    return w;
}

static const mtan_real *tensor(const mtan_config *c, const mtan_real *w, const char *name, size_t *n) {
    mtan_param p;
    for (int32_t i = 0; i < mtan_param_count(c); i++) {
        mtan_param_at(c, i, &p);
        if (strcmp(p.name, name) == 0) return *n = (size_t)p.rows * (size_t)p.cols, w + p.offset;
    }
    return NULL;
}

/* One frequency in each of E - 1 parts of the range that have equal ratios, whoever computes them. */
TEST frequencies_fill_the_range(mtan_kind kind) {
    const char *const names[][4] = {
        {"rec.periodic.weight", "rec.periodic.bias", "rec.att.linears.0.weight", "rec.att.linears.1.weight"},
        {"dec.periodic.weight", "dec.periodic.bias", "dec.att.linears.0.weight", "dec.att.linears.1.weight"}};
    const mtan_config c = log_config(kind, 1);
    mtan_real *w = initial(&c, 5);
    size_t n = 0, m = 0;
    for (int part = 0; part < (kind == MTAN_FULL ? 2 : 1); part++) {
        const mtan_real *frequency = tensor(&c, w, names[part][0], &n), *phase = tensor(&c, w, names[part][1], &m);
        ASSERT(frequency && phase && n == E - 1 && m == E - 1);
        for (size_t i = 0; i < n; i++) {
            const double share = log((double)frequency[i] / (2 * acos(-1.0) * 0.5)) / log(100.0);
            ASSERT(share >= (double)i / (E - 1) - 1e-6 && share <= (double)(i + 1) / (E - 1) + 1e-6);
            ASSERT(phase[i] >= 0 && phase[i] <= (mtan_real)6.2831855);
        }
        const mtan_real *query = tensor(&c, w, names[part][2], &n), *key = tensor(&c, w, names[part][3], &m);
        ASSERT(query && key && n == m && check_same("key", key, query, n * sizeof *key));
    }
    free(w);
    PASS();
}

/* The share of attention within a tenth of the record around each reference point, over evenly spread observations. */
static double share_nearby(const mtan_config *c, uint32_t seed) {
    enum { EVENTS = 101 };
    mtan_event e[EVENTS];
    mtan_record record;
    mtan_bounds most = {1, EVENTS, EVENTS};
    mtan_real *w = initial(c, seed), weight[K * EVENTS];
    mtan_model model;
    mtan_predictor run;
    size_t bytes = 0;
    double near = 0;
    memset(&record, 0, sizeof record);
    for (int i = 0; i < EVENTS; i++) e[i].time = (mtan_real)i / 100, e[i].channel = 0, e[i].value = 0;
    record.events = e, record.n_events = EVENTS;
    if (mtan_model_init(&model, c, w, mtan_weights_count(c)) != MTAN_OK) exit(2);
    if (mtan_predictor_size(&model, &most, &bytes) != MTAN_OK) exit(2);
    void *memory = malloc(bytes);
    if (mtan_predictor_init(&run, &model, &most, memory, bytes) != MTAN_OK ||
        mtan_predictor_attention(&run, &record, 0, 0, weight) != MTAN_OK)
        exit(2);
    for (int k = 0; k < K; k++)
        for (int i = 0; i < EVENTS; i++)
            if (fabs((double)k / (K - 1) - (double)i / 100) <= 0.1) near += (double)weight[k * EVENTS + i] / K;
    free(memory), free(w);
    return near;
}

TEST attention_starts_in_the_neighbourhood(void) {
    mtan_config c = log_config(MTAN_ENC, 1);
    c.slowest = 1, c.fastest = 20;
    for (uint32_t seed = 0; seed < 3; seed++) {
        c.frequencies = MTAN_FREQUENCIES_LOG;
        const double near = share_nearby(&c, seed);
        c.frequencies = MTAN_FREQUENCIES_PUBLISHED;
        const double published = share_nearby(&c, seed); /* a fifth of the record holds a fifth of the weight */
        ASSERT(published < 0.25);
        ASSERT(near > 0.45);
    }
    PASS();
}

TEST other_weights_are_the_published_ones(void) {
    mtan_config c = log_config(MTAN_ENC, 2);
    mtan_real *ours = initial(&c, 3), *theirs;
    size_t n = 0;
    c.frequencies = MTAN_FREQUENCIES_PUBLISHED;
    theirs = initial(&c, 3);
    const char *const same[] = {"rec.att.linears.2.weight", "rec.enc.weight_hh_l0", "rec.classifier.4.bias",
                                "rec.linear.weight"};
    for (int i = 0; i < 4; i++) {
        const mtan_real *a = tensor(&c, ours, same[i], &n), *b = tensor(&c, theirs, same[i], &n);
        ASSERT(a && b && check_same(same[i], a, b, n * sizeof *a));
    }
    const mtan_real *a = tensor(&c, ours, "rec.periodic.weight", &n),
                    *b = tensor(&c, theirs, "rec.periodic.weight", &n);
    ASSERT(memcmp(a, b, n * sizeof *a) != 0);
    free(ours), free(theirs);
    PASS();
}

/* An embedding for each head: each of them fills the range. */
TEST every_head_has_its_own(void) {
    mtan_config c = log_config(MTAN_ENC, 4);
    size_t n = 0;
    c.embed_heads = MTAN_EMBED_PER_HEAD;
    mtan_real *w = initial(&c, 5);
    const mtan_real *frequency = tensor(&c, w, "rec.periodic.weight", &n);
    ASSERT(frequency && n == 4 * (E - 1));
    for (size_t i = 0; i < n; i++) {
        const double share = log((double)frequency[i] / (2 * acos(-1.0) * 0.5)) / log(100.0);
        const size_t part = i % (E - 1);
        ASSERT(share >= (double)part / (E - 1) - 1e-6 && share <= (double)(part + 1) / (E - 1) + 1e-6);
    }
    ASSERT(memcmp(frequency, frequency + E - 1, (E - 1) * sizeof *frequency) != 0);
    free(w);
    PASS();
}

static int same_weights(const mtan_config *a, const mtan_config *b) {
    mtan_real *ours = initial(a, 5), *theirs = initial(b, 5);
    const int same = mtan_weights_count(a) == mtan_weights_count(b) &&
                     memcmp(ours, theirs, mtan_weights_count(a) * sizeof *ours) == 0;
    free(ours), free(theirs);
    return same;
}

/* Without a range it is that from 1 to 16, in enc_rnn3 too; and where no frequency is learned all weights are the published
 * ones. */
TEST where_nothing_is_chosen(void) {
    mtan_config c = log_config(MTAN_FULL, 1), other;
    c.slowest = c.fastest = 0;
    other = c, other.slowest = 1, other.fastest = 16;
    ASSERT(same_weights(&c, &other));
    other.fastest = 17;
    ASSERT_FALSE(same_weights(&c, &other));
    other = c, other.encoder = other.decoder = MTAN_RNN3;
    mtan_real *ours = initial(&c, 5), *theirs = initial(&other, 5);
    size_t n = 0, m = 0;
    const mtan_real *a = tensor(&c, ours, "rec.periodic.weight", &n);
    const mtan_real *b = tensor(&other, theirs, "rec.periodic.weight", &m);
    ASSERT(a && b && n == E - 1 && m == n);
    for (size_t i = 0; i < n; i++) { /* drawn after other weights, from the same parts */
        const double share = log((double)b[i] / (2 * acos(-1.0))) / log(16.0);
        ASSERT(share >= (double)i / (E - 1) - 1e-6 && share <= (double)(i + 1) / (E - 1) + 1e-6);
    }
    free(ours), free(theirs);
    c.encoder = c.decoder = MTAN_RBF;
    other = c, other.frequencies = MTAN_FREQUENCIES_PUBLISHED;
    ASSERT(same_weights(&c, &other));
    c = log_config(MTAN_FULL, 1), c.embedding = MTAN_EMBED_FIXED;
    other = c, other.frequencies = MTAN_FREQUENCIES_PUBLISHED;
    ASSERT(same_weights(&c, &other));
    PASS();
}

/* A range of one gap is one frequency; a gap that is not finite is refused; the longest record counts, not the last. */
TEST ranges_at_the_ends(void) {
    static const double bad[] = {-1, 1e9, NAN, INFINITY};
    const mtan_event pair[] = {{0, 0, 1}, {0.25f, 0, 1}}, endless[] = {{0, 0, 1}, {1e31f, 0, 1}};
    const mtan_event lost[] = {{0, 0, 1}, {NAN, 0, 1}};
    mtan_record records[2];
    mtan_config c = log_config(MTAN_ENC, 1);
    c.slowest = c.fastest = 0;
    memset(records, 0, sizeof records);
    records[0].events = pair, records[0].n_events = 2;
    ASSERT_EQ_FMT(MTAN_OK, mtan_config_fit_frequencies(&c, records, 1), "%d");
    ASSERT(c.slowest == 4 && c.fastest == 4);
    const mtan_event longer[] = {{0, 0, 1}, {0.25f, 0, 1}, {0.5f, 0, 1}, {0.75f, 0, 1}, {1, 0, 1}};
    c.slowest = c.fastest = 0;
    records[1] = records[0];
    records[0].events = longer, records[0].n_events = 5;
    ASSERT_EQ_FMT(MTAN_OK, mtan_config_fit_frequencies(&c, records, 2), "%d");
    ASSERT(c.slowest == 1 && fabs(c.fastest - 2) < 1e-12);
    c.slowest = c.fastest = 0;
    records[1].events = endless;
    ASSERT_EQ_FMT(MTAN_ERR_INPUT, mtan_config_fit_frequencies(&c, records, 2), "%d");
    records[1].events = lost;
    ASSERT_EQ_FMT(MTAN_ERR_INPUT, mtan_config_fit_frequencies(&c, records, 2), "%d");
    ASSERT(c.slowest == 0 && c.fastest == 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        c = log_config(MTAN_ENC, 1), c.slowest = bad[i];
        ASSERT_EQ_FMT(MTAN_ERR_CONFIG, mtan_config_check(&c), "%d");
        c = log_config(MTAN_ENC, 1), c.fastest = bad[i];
        ASSERT_EQ_FMT(MTAN_ERR_CONFIG, mtan_config_check(&c), "%d");
    }
    PASS();
}

TEST the_range_follows_from_the_records(void) {
    /* gaps of 1/4, 1/4 and 1/16 (twice the same time is none); 1/4 and 1/2: the geometric mean is 2^(-11/5) */
    static const mtan_event first[] = {{0, 0, 1}, {0.25f, 1, 1}, {0.25f, 0, 1}, {0.5f, 0, 1}, {0.5625f, 0, 1}};
    static const mtan_event second[] = {{0.125f, 0, 1}, {0.375f, 1, 1}, {0.875f, 0, 1}};
    mtan_record records[3];
    mtan_config c = log_config(MTAN_ENC, 1);
    memset(records, 0, sizeof records);
    records[0].events = first, records[0].n_events = 5;
    records[1].events = second, records[1].n_events = 3;
    ASSERT_EQ_FMT(MTAN_OK, mtan_config_fit_frequencies(&c, records, 3), "%d");
    ASSERT(c.slowest == 0.5 && c.fastest == 50); /* chosen: they stay */
    c.slowest = c.fastest = 0;
    ASSERT_EQ_FMT(MTAN_OK, mtan_config_fit_frequencies(&c, records, 3), "%d");
    ASSERT_NEAR(1 / 0.75, c.slowest, 1e-12);
    ASSERT_NEAR(0.5 * pow(2, 11.0 / 5), c.fastest, 1e-9);
    c.slowest = c.fastest = 0;
    ASSERT_EQ_FMT(MTAN_ERR_INPUT, mtan_config_fit_frequencies(&c, records + 2, 1), "%d"); /* no gap */
    ASSERT_EQ_FMT(MTAN_ERR_INPUT, mtan_config_fit_frequencies(&c, NULL, 0), "%d");
    ASSERT_EQ_FMT(MTAN_ERR_NULL, mtan_config_fit_frequencies(&c, NULL, 1), "%d");
    ASSERT_EQ_FMT(MTAN_ERR_NULL, mtan_config_fit_frequencies(NULL, records, 1), "%d");
    static const mtan_event backwards[] = {{0.5f, 0, 1}, {0.25f, 0, 1}};
    records[0].events = backwards, records[0].n_events = 2;
    ASSERT_EQ_FMT(MTAN_ERR_INPUT, mtan_config_fit_frequencies(&c, records, 1), "%d");
    records[0].events = NULL;
    ASSERT_EQ_FMT(MTAN_ERR_NULL, mtan_config_fit_frequencies(&c, records, 1), "%d");
    ASSERT(c.slowest == 0 && c.fastest == 0);
    c.slowest = -1;
    ASSERT_EQ_FMT(MTAN_ERR_CONFIG, mtan_config_check(&c), "%d");
    PASS();
}

SUITE(frequencies_suite) {
    greatest_set_test_suffix("enc");
    RUN_TEST1(frequencies_fill_the_range, MTAN_ENC);
    greatest_set_test_suffix("full");
    RUN_TEST1(frequencies_fill_the_range, MTAN_FULL);
    RUN_TEST(attention_starts_in_the_neighbourhood);
    RUN_TEST(other_weights_are_the_published_ones);
    RUN_TEST(the_range_follows_from_the_records);
    RUN_TEST(every_head_has_its_own);
    RUN_TEST(where_nothing_is_chosen);
    RUN_TEST(ranges_at_the_ends);
}
