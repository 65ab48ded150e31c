/* What the classifier of records reads beside the sequence. A head of one layer, whose weights are 0 but for a 1, shows each number
 * as a logit; the same numbers by their definitions, in double and in several passes, are what they are held to. */
#include <math.h>
#include <string.h>

#include "greatest.h"
#include "small.h"

#define LARGE 1e30f
enum { CHANNELS = 4, MOST = 40, HIDDEN = 3, TIMES = 17 };

typedef struct {
    mtan_config config;
    mtan_model model;
    mtan_real *weights, *head; /* head: (2, hidden and summaries) */
    size_t count;
    mtan_predictor predictor;
    void *memory;
    int32_t width;
} shown;

static int show(shown *s, int32_t summaries, int32_t statics) {
    const mtan_bounds bounds = {2, MOST, MOST};
    mtan_param p;
    size_t bytes = 0;
    memset(s, 0, sizeof *s);
    mtan_config_init(&s->config, MTAN_ENC, MTAN_CLASSIFY_RECORD, CHANNELS, 2);
    if (!small_apply(&s->config, "embed 4 enc_hidden 3 ref_points 2 head_hidden 0")) return 0;
    s->config.summaries = summaries, s->config.statics = statics;
    s->count = mtan_weights_count(&s->config);
    s->weights = guard_alloc(s->count * sizeof *s->weights);
    memset(s->weights, 0, s->count * sizeof *s->weights);
    for (int32_t i = 0; mtan_param_at(&s->config, i, &p) == MTAN_OK; i++)
        if (strcmp(p.name, "rec.classifier.weight") == 0) s->head = s->weights + p.offset, s->width = p.cols;
    if (!s->head || mtan_model_init(&s->model, &s->config, s->weights, s->count) != MTAN_OK) return 0;
    if (mtan_predictor_size(&s->model, &bounds, &bytes) != MTAN_OK) return 0;
    s->memory = guard_alloc(bytes);
    return mtan_predictor_init(&s->predictor, &s->model, &bounds, s->memory, bytes) == MTAN_OK;
}

static int hide(shown *s) {
    return guard_free(s->memory) & guard_free(s->weights);
}

/* The number that stands at `column` of what the head reads. The head's weights are packed anew. */
static double number_at(shown *s, const mtan_record *record, int32_t column) {
    const mtan_bounds bounds = {2, MOST, MOST};
    mtan_real logits[2] = {0, 0};
    size_t bytes = 0;
    s->head[column] = 1;
    mtan_predictor_size(&s->model, &bounds, &bytes);
    if (mtan_predictor_init(&s->predictor, &s->model, &bounds, s->memory, bytes) != MTAN_OK ||
        mtan_predictor_logits(&s->predictor, record, 1, logits) != MTAN_OK)
        logits[0] = NAN;
    s->head[column] = 0;
    return (double)logits[0];
}

/* ---- by definition ---- */

typedef struct {
    double time[MOST], value[MOST];
    int n;
} series;

static series series_of(const mtan_record *r, int32_t channel) {
    series s = {{0}, {0}, 0};
    for (int32_t i = 0; i < r->n_events; i++) {
        int at = s.n;
        if (r->events[i].channel != channel) continue;
        for (; at > 0 && s.time[at - 1] > (double)r->events[i].time; at--)
            s.time[at] = s.time[at - 1], s.value[at] = s.value[at - 1];
        s.time[at] = (double)r->events[i].time, s.value[at] = (double)r->events[i].value;
        s.n++;
    }
    return s;
}

static double mean(const double *x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    return sum / n;
}

static double product(const double *x, const double *y, int n) {
    const double a = mean(x, n), b = mean(y, n);
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (x[i] - a) * (y[i] - b);
    return sum / n;
}

enum { NUMBERS = MTAN_SUMMARIES + MTAN_SHAPES + MTAN_COURSE };

/* The mean of (x - from)^p. */
static double moment(const double *x, int n, double from, double p) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += pow(x[i] - from, p);
    return sum / n;
}

static double drawn(double x) {
    return copysign(log1p(fabs(x)), x);
}

/* Of the values' shape; steps: from one value to the next. */
static void define_shape(const series *s, double out[MTAN_SHAPES]) {
    const double rate = 32, a = mean(s->value, s->n), spread = sqrt(moment(s->value, s->n, a, 2)); /* fastest: 16 */
    double step[MOST], size = 0, near = 0, weights = 0, away = 0;
    const int n = s->n - 1;
    if (!(spread > 0)) return;
    for (int i = 0; i < n; i++) {
        const double gap = rate * (s->time[i + 1] - s->time[i]), weight = 1 / (1 + gap * gap);
        step[i] = s->value[i + 1] - s->value[i];
        size += fabs(step[i]) / n, away += fabs(s->value[i + 1] - mean(s->value, i + 1)) / n;
        near += weight * fabs(step[i]), weights += weight;
    }
    const double root = sqrt(moment(step, n, 0, 2));
    out[0] = drawn(moment(s->value, s->n, a, 3) / pow(spread, 3)),
    out[1] = log(moment(s->value, s->n, a, 4) / pow(spread, 4));
    for (int i = 0; i < s->n; i++) {
        out[2] = fmax(out[2], log1p((s->value[i] - a) / spread));
        out[3] = fmax(out[3], log1p((a - s->value[i]) / spread));
    }
    out[4] = size / spread, out[5] = near / weights / spread;
    out[6] = size / root, out[7] = drawn(moment(step, n, 0, 3) / pow(root, 3)), out[8] = away / spread;
    for (int i = 0; i < MTAN_SHAPES; i++) out[i] = round(out[i] * 65536) / 65536;
}

/* The mean of each part of time; where there is none, the one before or else the next one after. */
static void define_course(const series *s, double out[MTAN_COURSE]) {
    double sum[MTAN_COURSE] = {0};
    int n[MTAN_COURSE] = {0};
    for (int i = 0; i < s->n; i++) {
        const int part = (int)fmax(0, fmin(MTAN_COURSE - 1, floor(s->time[i] * MTAN_COURSE)));
        sum[part] += s->value[i], n[part]++;
    }
    for (int i = 0; i < MTAN_COURSE; i++) {
        int from = i;
        while (from >= 0 && n[from] == 0) from--;
        if (from < 0)
            for (from = i; n[from] == 0;) from++;
        out[i] = sum[from] / n[from];
    }
}

static void define(const series *s, double out[NUMBERS]) {
    double steps = 0, least = INFINITY, most = -INFINITY, width;
    for (int i = 0; i < NUMBERS; i++) out[i] = 0;
    if (s->n == 0) return;
    for (int i = 0; i < s->n; i++) {
        steps += i > 0 ? fabs(s->value[i] - s->value[i - 1]) : 0;
        least = fmin(least, s->value[i]), most = fmax(most, s->value[i]);
    }
    width = sqrt(product(s->time, s->time, s->n));
    out[0] = 1, out[1] = log1p(s->n), out[2] = mean(s->value, s->n), out[3] = sqrt(product(s->value, s->value, s->n));
    out[4] = s->value[0], out[5] = s->value[s->n - 1], out[6] = least, out[7] = most;
    out[8] = s->n > 1 ? steps / (s->n - 1) : 0;
    out[9] = width > 1e-9 ? product(s->time, s->value, s->n) / width : 0;
    out[10] = s->time[s->n - 1];
    define_shape(s, out + MTAN_SUMMARIES);
    define_course(s, out + MTAN_SUMMARIES + MTAN_SHAPES);
}

/* ---- tests ---- */

/* Unsorted, with repeats of times; `seen` channels have observations, far from 0 where `level` says so. */
static mtan_record made(mtan_event *e, int32_t n, int32_t seen, double level, uint64_t *random) {
    mtan_record r;
    memset(&r, 0, sizeof r);
    for (int32_t i = 0; i < n; i++) {
        e[i].time = (mtan_real)small_whole(random, 0, TIMES) / TIMES;
        e[i].channel = small_whole(random, 0, seen - 1);
        e[i].value = (mtan_real)(level + (double)small_real(random));
    }
    r.events = e, r.n_events = n;
    return r;
}

/* Numbers from the first to before the end. */
static int as_defined(shown *s, const mtan_record *r, int32_t first, int32_t end, double limit) {
    for (int32_t d = 0; d < CHANNELS; d++) {
        const series x = series_of(r, d);
        double want[NUMBERS];
        define(&x, want);
        for (int32_t i = first; i < end && i < (s->width - HIDDEN) / CHANNELS; i++) {
            const double got = number_at(s, r, HIDDEN + i * CHANNELS + d);
            if (fabs(got - want[i]) <= limit) continue;
            printf("  BAD summary %d of channel %d of %d observations: %.9g, not %.9g\n", (int)i, (int)d, x.n, got,
                   want[i]);
            return 0;
        }
    }
    return 1;
}

TEST summaries_are_what_they_are_called(int32_t summaries) {
    const int32_t numbers[] = {0, MTAN_SUMMARIES, MTAN_SUMMARIES + MTAN_SHAPES, NUMBERS};
    uint64_t random = 3;
    mtan_event e[MOST];
    shown s;
    ASSERT(show(&s, summaries, 0));
    ASSERT_EQ_FMT(HIDDEN + numbers[summaries] * CHANNELS, s.width, "%d");
    for (int32_t n = 0; n <= MOST; n = n < 4 ? n + 1 : n + 6) {
        const mtan_record near = made(e, n, CHANNELS - 1, 0, &random);
        ASSERT(as_defined(&s, &near, 0, NUMBERS, 2e-6));
    }
    for (int32_t n = 1; n <= MOST;
         n += 13) { /* a level of 1000 has 6e-5 between two floats, and nothing more is lost */
        const mtan_record far = made(e, n, 2, 1000, &random);
        ASSERT(as_defined(&s, &far, 0, NUMBERS, 2e-4));
    }
    const mtan_record late = made(e, MOST, CHANNELS, 0, &random); /* times far from 0 lose nothing either */
    for (int32_t i = 0; i < MOST; i++) e[i].time = (mtan_real)((1 << 20) + small_whole(&random, 0, TIMES) / 4.0);
    ASSERT(as_defined(&s, &late, 0, NUMBERS, 2e-6));
    for (int32_t i = 0; i < MOST; i++) e[i].value = 0.1f; /* values that are all one have no shape */
    ASSERT(as_defined(&s, &late, 0, NUMBERS, 2e-6));
    for (int32_t i = 0; i < MOST; i++) e[i].value = i % 2 ? -LARGE : LARGE; /* and the largest have one */
    ASSERT(as_defined(&s, &late, MTAN_SUMMARIES, MTAN_SUMMARIES + MTAN_SHAPES, 2e-6));
    ASSERT(hide(&s));
    PASS();
}

TEST static_channels_are_read_and_not_attended_to(void) {
    enum { STATIC = 2, VARYING = CHANNELS - STATIC };
    uint64_t random = 5;
    mtan_event e[MOST];
    mtan_real weight[2 * MOST];
    shown s;
    ASSERT(show(&s, 1, STATIC));
    ASSERT_EQ_FMT((int32_t)(HIDDEN + MTAN_SUMMARIES * VARYING + 2 * STATIC), s.width, "%d");
    for (int32_t n = 0; n <= MOST; n += 8) {
        const mtan_record r = made(e, n, CHANNELS - 1, 0, &random);
        for (int32_t m = 0; m < STATIC; m++) {
            const series x = series_of(&r, m);
            ASSERT_NEAR(x.n ? mean(x.value, x.n) : 0, number_at(&s, &r, HIDDEN + MTAN_SUMMARIES * VARYING + m), 1e-6);
            ASSERT_EQ_FMT(x.n ? 1.0 : 0.0, number_at(&s, &r, HIDDEN + MTAN_SUMMARIES * VARYING + STATIC + m), "%g");
        }
        for (int32_t d = 0; d < VARYING; d++) { /* the last channel is never observed */
            const series x = series_of(&r, STATIC + d);
            ASSERT_NEAR(log1p(x.n), number_at(&s, &r, HIDDEN + VARYING + d), 1e-6);
        }
        for (int32_t m = 0; n > 0 && m < STATIC; m++) {
            for (int i = 0; i < 2 * MOST; i++) weight[i] = 7;
            ASSERT_EQ(MTAN_OK, mtan_predictor_attention(&s.predictor, &r, 0, m, weight));
            for (int32_t i = 0; i < 2 * small_distinct(&r); i++) ASSERT_EQ_FMT(0.0, (double)weight[i], "%g");
        }
    }
    ASSERT(hide(&s));
    PASS();
}

/* What a static channel says changes nothing but what the head reads of it. */
TEST the_sequence_ignores_static_channels(void) {
    uint64_t random = 9;
    mtan_event e[MOST], fewer[MOST];
    mtan_record r = made(e, MOST, CHANNELS, 0, &random), without = r;
    mtan_real a[2], b[2];
    shown s;
    ASSERT(show(&s, 1, 1));
    for (size_t i = 0; i < s.count; i++) s.weights[i] = small_real(&random);
    for (int32_t c = 0; c < 2; c++)
        for (int32_t i = 0; i < 2; i++) s.head[(c + 1) * s.width - 1 - i] = 0;
    ASSERT(number_at(&s, &r, 0) == number_at(&s, &r, 0)); /* the weights are folded anew */
    s.head[0] = (mtan_real)0.5;
    without.events = fewer, without.n_events = 0;
    for (int32_t i = 0; i < r.n_events; i++)
        if (e[i].channel > 0) fewer[without.n_events++] = e[i];
    ASSERT(without.n_events < r.n_events);
    ASSERT_EQ(MTAN_OK, mtan_predictor_logits(&s.predictor, &r, 1, a));
    ASSERT_EQ(MTAN_OK, mtan_predictor_logits(&s.predictor, &without, 1, b));
    ASSERT(check_same("with and without", a, b, sizeof a));
    ASSERT(hide(&s));
    PASS();
}

TEST settings_that_no_model_can_have(void) {
    mtan_config c;
    mtan_config_init(&c, MTAN_ENC, MTAN_CLASSIFY_RECORD, CHANNELS, 2);
    c.summaries = 4;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&c));
    c.summaries = 1, c.statics = CHANNELS; /* nothing to attend to */
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&c));
    c.statics = -1;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&c));
    c.statics = CHANNELS - 1;
    ASSERT_EQ(MTAN_OK, mtan_config_check(&c));
    c.encoder = MTAN_RBF;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&c));
    mtan_config_init(&c, MTAN_FULL, MTAN_CLASSIFY_NONE, CHANNELS, 0);
    c.summaries = 1; /* no head reads them */
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&c));
    c.summaries = 0, c.variance = MTAN_VARIANCE_LEARNED, c.statistics = MTAN_SPREAD; /* it reads the intensity */
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&c));
    c.statistics = MTAN_SPREAD | MTAN_INTENSITY;
    ASSERT_EQ(MTAN_OK, mtan_config_check(&c));
    c.statistics = 8;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&c));
    c.statistics = MTAN_SLOPE, c.variance = MTAN_VARIANCE_FIXED, c.encoder = MTAN_RBF;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&c));
    PASS();
}

SUITE(summaries_suite) {
    RUN_TESTp(summaries_are_what_they_are_called, 1);
    RUN_TESTp(summaries_are_what_they_are_called, 2);
    RUN_TESTp(summaries_are_what_they_are_called, 3);
    RUN_TEST(static_channels_are_read_and_not_attended_to);
    RUN_TEST(the_sequence_ignores_static_channels);
    RUN_TEST(settings_that_no_model_can_have);
}
