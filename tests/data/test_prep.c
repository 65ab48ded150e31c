/* Preprocessing: against the published code and NumPy (golden/metrics.safetensors), to text and back, and hostile text.
 * */
#include <float.h>
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "golden_metrics.h"
#include "../../tools/data/percentile.h"
#include "../../tools/data/prep.h"

#ifdef MTAN_DOUBLE
#define LARGEST DBL_MAX
#define NEAR 1e-12  /* of numbers that golden/ has in double */
#define SINGLE 2e-6 /* of numbers that it has in float, after a subtraction */
#else
#define LARGEST FLT_MAX
#define NEAR 2e-7
#define SINGLE 0.0
#endif

enum { CHANNELS = 8, UNSEEN = 4, CODED = 2 };

TEST percentiles_are_numpys(void) {
    size_t n = 0, m = 0;
    double *x = golden_f64("percentile.x", &n), *q = golden_f64("percentile.q", &m);
    double *expected = golden_f64("percentile", &m);
    sort_ascending(x, n);
    for (size_t i = 0; i < m; i++) ASSERT_EQ_FMT(expected[i], percentile_sorted(x, n, q[i]), "%.17g");
    ASSERT_EQ_FMT(x[0], percentile_sorted(x, 1, 99.9), "%.17g");
    free(x), free(q), free(expected);
    PASS();
}

/* ---- golden records ---- */

static void add_names(char ***names, size_t n) {
    char name[24];
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "c%zu", i);
        arrput(*names, tool_text(name));
    }
}

static dataset golden_records(void) {
    size_t n = 0, m = 0;
    int32_t *offset = golden_i32("prep.offset", &n), *channel = golden_i32("prep.channel", &m);
    float *time = golden_f32("prep.time", &m), *value = golden_f32("prep.value", &m);
    char name[24];
    dataset d;
    memset(&d, 0, sizeof d);
    strcpy(d.unit, "hours");
    add_names(&d.channels, CHANNELS);
    for (size_t r = 0; r + 1 < n; r++) {
        snprintf(name, sizeof name, "r%zu", r);
        dataset_add_record(&d, name, -1);
        for (int32_t i = offset[r]; i < offset[r + 1]; i++)
            dataset_add_event(&d, (mtan_real)time[i], channel[i], (mtan_real)value[i]);
        dataset_end_record(&d);
    }
    free(offset), free(channel), free(time), free(value);
    return d;
}

static split split_published(const dataset *d) {
    char error[256] = "";
    split s;
    if (!split_make(&s, d, &(split_way){SPLIT_PUBLISHED, 0, 0, SPLIT_FOLD_COUNT, SPLIT_SEED}, error))
        fprintf(stderr, "mtan: %s\n", error), exit(2);
    return s;
}

TEST published_values_are_the_published_codes(void) {
    dataset d = golden_records();
    split s = split_published(&d);
    size_t n = 0;
    float *time = golden_f32("prep.published.time", &n), *value = golden_f32("prep.published.value", &n);
    prep p;
    prep_fit(&p, &d, &s, PREP_PUBLISHED, 0, NULL);
    prep_apply(&p, &d, &s);
    ASSERT_EQ_FMT(n, arrlenu(d.events), "%zu");
    for (size_t i = 0; i < n; i++) {
        ASSERT(same_number("time", (double)d.events[i].time, (double)time[i], SINGLE));
        ASSERT(same_number("value", (double)d.events[i].value, (double)value[i], SINGLE));
    }
    ASSERT(p.channel[UNSEEN].offset == 0 && p.channel[UNSEEN].scale == 1);
    ASSERT(p.channel[1].scale < 0 && prep_raw_spread(&p, 1, 1) > 0); /* a negative maximum */
    ASSERT(!(p.time_scale[SPLIT_TRAIN] == p.time_scale[SPLIT_TEST]));
    free(time), free(value);
    prep_free(&p), split_free(&s), dataset_free(&d);
    PASS();
}

static int same_channels(const prep *p, const char *tensor) {
    size_t n = 0;
    double *expected = golden_f64(tensor, &n);
    int good = n == 4 * CHANNELS && arrlenu(p->channel) == CHANNELS;
    for (size_t k = 0; good && k < CHANNELS; k++) {
        const mtan_prep_channel *c = &p->channel[k];
        good = same_number("offset", (double)c->offset, expected[4 * k], k == 7 ? 1e4 * NEAR : NEAR) && /* cancels */
               same_number("scale", (double)c->scale, expected[4 * k + 1], NEAR) &&
               same_number("low", c->has & MTAN_HAS_LOW ? (double)c->low : -INFINITY, expected[4 * k + 2], NEAR) &&
               same_number("high", c->has & MTAN_HAS_HIGH ? (double)c->high : INFINITY, expected[4 * k + 3], NEAR);
        if (!good) printf("  channel %zu of %s\n", k, tensor);
    }
    free(expected);
    return good;
}

static const mtan_real *coded(void) {
    static mtan_real missing[CHANNELS];
    for (size_t k = 0; k < CHANNELS; k++) missing[k] = k == CODED ? -1 : (mtan_real)NAN;
    return missing;
}

TEST training_statistics_are_numpys(void) {
    dataset d = golden_records();
    split s = split_published(&d);
    prep p;
    prep_fit(&p, &d, &s, PREP_ZSCORE, 0, coded());
    ASSERT(same_channels(&p, "prep.zscore"));
    ASSERT(p.time_scale[SPLIT_TRAIN] == p.time_scale[SPLIT_TEST]);
    prep_free(&p);
    prep_fit(&p, &d, &s, PREP_MINMAX, 48, coded());
    ASSERT(same_channels(&p, "prep.minmax"));
    ASSERT(p.time_scale[SPLIT_VALID] == 48);
    prep_free(&p), split_free(&s), dataset_free(&d);
    PASS();
}

/* The same bits of all members; what lies between them may differ. */
static int same_numbers(const mtan_prep_channel *a, const mtan_prep_channel *b, size_t n) {
    for (size_t k = 0; k < n; k++)
        if (a[k].has != b[k].has || !check_same("channel", &a[k], &b[k], offsetof(mtan_prep_channel, has))) return 0;
    return 1;
}

/* Whatever the test records hold, the fit is that of the training records alone. */
TEST only_training_records_are_looked_at(void) {
    dataset d = golden_records(), other = golden_records();
    split s = split_published(&d);
    prep p, q;
    for (int part = SPLIT_VALID; part <= SPLIT_TEST; part++)
        for (size_t i = 0; i < arrlenu(s.part[part]); i++) {
            const dataset_record *r = &other.records[s.part[part][i]];
            for (size_t j = r->event0; j < r->event0 + (size_t)r->n_events; j++)
                other.events[j].value = 1e30f, other.events[j].time *= 100;
        }
    for (int kind = PREP_MINMAX; kind <= PREP_ZSCORE; kind++) {
        prep_fit(&p, &d, &s, (prep_kind)kind, 0, NULL);
        prep_fit(&q, &other, &s, (prep_kind)kind, 0, NULL);
        ASSERT(same_numbers(q.channel, p.channel, CHANNELS));
        ASSERT(check_same("times", q.time_scale, p.time_scale, sizeof p.time_scale));
        prep_free(&p), prep_free(&q);
    }
    split_free(&s), dataset_free(&d), dataset_free(&other);
    PASS();
}

/* ---- small sets ---- */

/* One channel; record i has the value x[i] at time i. All of them train. */
static dataset one_channel(const mtan_real *x, size_t n, split *s) {
    char name[24];
    dataset d;
    memset(&d, 0, sizeof d);
    memset(s, 0, sizeof *s);
    add_names(&d.channels, 1);
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "r%zu", i);
        dataset_add_record(&d, name, -1);
        dataset_add_event(&d, (mtan_real)i, 0, x[i]);
        dataset_end_record(&d);
        arrput(s->part[SPLIT_TRAIN], (int32_t)i);
    }
    return d;
}

static mtan_prep_channel fit_one(const mtan_real *x, size_t n, prep_kind kind) {
    split s;
    prep p;
    mtan_prep_channel c;
    dataset d = one_channel(x, n, &s);
    prep_fit(&p, &d, &s, kind, 0, NULL);
    c = p.channel[0];
    prep_free(&p), split_free(&s), dataset_free(&d);
    return c;
}

TEST a_rare_flag_is_not_clipped_away(void) {
    enum { ROWS = 3001 };
    static mtan_real x[ROWS];
    x[1234] = 1; /* percentile 99.9 is the value at place 2997 of 3000: 0 */
    const mtan_prep_channel c = fit_one(x, ROWS, PREP_ZSCORE);
    ASSERT_EQ_FMT((uint32_t)MTAN_HAS_RANGE, c.has, "%u");
    ASSERT(c.least == 0 && c.most == 1);
    ASSERT(same_number("mean", (double)c.offset, 1.0 / ROWS, 1e-6));
    ASSERT(same_number("sd", (double)c.scale, sqrt(1.0 / ROWS * (1 - 1.0 / ROWS)), 1e-6));
    PASS();
}

TEST constants_and_extremes_keep_a_usable_scale(void) {
    static const mtan_real zeros[] = {0, 0}, wide[] = {-LARGEST, LARGEST};
    mtan_real same[10]; /* in double their mean is another number */
    for (size_t i = 0; i < 10; i++) same[i] = (mtan_real)0.1;
    for (int kind = PREP_PUBLISHED; kind <= PREP_ZSCORE; kind++) {
        const mtan_prep_channel c = fit_one(same, 10, (prep_kind)kind), z = fit_one(zeros, 2, (prep_kind)kind);
        const mtan_prep_channel w = fit_one(wide, 2, (prep_kind)kind);
        ASSERT(same_number("offset", (double)c.offset, (double)same[0], 1e-7));
        ASSERT(kind == PREP_PUBLISHED ? c.scale == same[0] : c.scale == 1);
        ASSERT(z.scale == 1 && z.offset == 0);
        ASSERT(isfinite(w.offset) && isfinite(w.scale) && w.scale > 0);
    }
    PASS();
}

TEST results_are_finite_and_nan_stays(void) {
    static const mtan_real x[] = {0, (mtan_real)1e-3};
    mtan_event e[] = {{1, 0, LARGEST}, {2, 0, -LARGEST}, {3, 0, (mtan_real)NAN}, {LARGEST, 7, 5}, {1, -1, 6}};
    split s;
    prep p;
    dataset d = one_channel(x, 2, &s);
    prep_fit(&p, &d, &s, PREP_MINMAX, 0.25, NULL);
    ASSERT_EQ_FMT(5, prep_events(&p, SPLIT_TEST, e, 5), "%d");
    ASSERT(e[0].value == LARGEST && e[1].value == -LARGEST && isnan(e[2].value));
    ASSERT(e[0].time == 4 && e[3].time == LARGEST && e[3].value == 5 && e[4].value == 6);
    prep_free(&p), split_free(&s), dataset_free(&d);
    PASS();
}

TEST missing_codes_go(void) {
    dataset d = golden_records();
    split s = split_published(&d);
    size_t codes = 0, left = 0;
    prep p;
    for (size_t i = 0; i < arrlenu(d.events); i++) codes += d.events[i].channel == CODED && d.events[i].value == -1;
    dataset_add_record(&d, "codes only", -1);
    dataset_add_event(&d, 1, CODED, -1);
    dataset_end_record(&d);
    arrput(s.part[SPLIT_TEST], (int32_t)arrlen(d.records) - 1);
    prep_fit(&p, &d, &s, PREP_NONE, 0, coded());
    const dataset_record before = d.records[0];
    prep_apply(&p, &d, &s);
    for (size_t i = 0; i < arrlenu(d.records); i++) {
        const dataset_record *r = &d.records[i];
        int32_t times = 0;
        for (int32_t j = 0; j < r->n_events; j++) {
            const mtan_event *e = &d.events[r->event0 + (size_t)j];
            ASSERT(!(e->channel == CODED && e->value == -1));
            times += j == 0 || e->time > e[-1].time;
        }
        ASSERT_EQ_FMT(times, r->n_times, "%d");
        left += (size_t)r->n_events;
    }
    ASSERT(codes > 5);
    ASSERT_EQ_FMT(arrlenu(d.events), left + codes + 1, "%zu");
    ASSERT(d.records[0].event0 == before.event0 && arrlast(d.records).n_times == 0);
    prep_free(&p), split_free(&s), dataset_free(&d);
    PASS();
}

/* Labels at 4 and 10 s, truth at 5 s; the last event is at 2 s, so the scale is that of the last label. */
static dataset labelled_times(split *s) {
    static const mtan_real x[] = {10, 20, 30};
    static const mtan_event truth = {5, 0, 30};
    dataset d = one_channel(x, 3, s);
    for (int i = 0; i < 2; i++) {
        arrput(d.label_times, i ? 10 : 4);
        dataset_add_label(&d, i);
    }
    arrput(d.truth, truth);
    arrlast(d.records).n_truth = 1;
    return d;
}

TEST label_times_and_truth_follow(void) {
    split s;
    prep p;
    dataset d = labelled_times(&s);
    prep_fit(&p, &d, &s, PREP_MINMAX, 0, NULL);
    ASSERT(p.time_scale[SPLIT_TRAIN] == 10);
    prep_apply(&p, &d, &s);
    ASSERT(d.label_times[0] == (mtan_real)0.4 && d.label_times[1] == 1);
    ASSERT(d.truth[0].time == (mtan_real)0.5 && d.truth[0].value == 1 && d.events[1].value == (mtan_real)0.5);
    ASSERT(prep_time(&p, SPLIT_TEST, 5) == (mtan_real)0.5 && prep_raw_time(&p, SPLIT_TEST, 0.5) == 5);
    ASSERT(prep_raw_value(&p, 0, 0.5) == 20 && prep_raw_spread(&p, 0, 0.5) == 10);
    prep_free(&p), dataset_free(&d), split_free(&s);
    d = labelled_times(&s);
    prep_fit(&p, &d, &s, PREP_TIMES, 0, NULL);
    p.time_scale[SPLIT_TEST] = 20;
    prep_apply(&p, &d, NULL); /* all of them as test records */
    ASSERT(d.label_times[1] == (mtan_real)0.5 && d.truth[0].time == (mtan_real)0.25 && d.events[2].value == 30);
    prep_free(&p), dataset_free(&d), split_free(&s);
    PASS();
}

/* ---- text ---- */

/* A file in memory (free it) with these pairs, and counts of channels and classes. */
static void *write_file(mtan_file_pair *pairs, const char *channels, const char *classes, size_t *bytes) {
    const mtan_file_pair counts[] = {{"mtan.channels", channels}, {"mtan.classes", classes}};
    mtan_file_pair *all = NULL;
    for (size_t i = 0; i < 2; i++)
        if (counts[i].value) arrput(all, counts[i]);
    for (size_t i = 0; i < arrlenu(pairs); i++) arrput(all, pairs[i]);
    if (mtan_file_write_size(NULL, 0, all, arrlenu(all), bytes) != MTAN_OK) return arrfree(all), NULL;
    void *blob = malloc(*bytes);
    mtan_file_write_memory(NULL, 0, all, arrlenu(all), blob, *bytes, bytes);
    arrfree(all);
    return blob;
}

static void free_pairs(mtan_file_pair *pairs) {
    for (size_t i = 0; i < arrlenu(pairs); i++)
        free((void *)(uintptr_t)pairs[i].key), free((void *)(uintptr_t)pairs[i].value);
    arrfree(pairs);
}

/* Awkward numbers and names. -1000.00006 needs all nine digits. */
static prep awkward(void) {
    static const char *const names[] = {"Age", "say \"x\"\\n", "Temp \xc2\xb0 C,[]", "tab\there\x01"};
    static const char *const classes[] = {"in-hospital death", "\xe2\x9c\x93"};
    const uint32_t clips = MTAN_HAS_LOW | MTAN_HAS_HIGH, coded = MTAN_HAS_MISSING;
    const mtan_prep_channel channel[] = {
        {(mtan_real)0.1, (mtan_real)(1.0 / 3), 0, 0, -1, (mtan_real)0.7, 0, 0, 0, coded | MTAN_HAS_FILL},
        {-LARGEST, -LARGEST, -LARGEST, LARGEST, 0, 0, -LARGEST, LARGEST, (mtan_real)1.3,
         clips | MTAN_HAS_RANGE | MTAN_HAS_BAND},
        {(mtan_real)-0.0, FLT_MIN / 8, (mtan_real)1e-7, (mtan_real)1e-7, 0, 0, 0, 0, 0, clips | coded},
        {(mtan_real)16777217.0, (mtan_real)(1 + FLT_EPSILON), (mtan_real)-1000.00006, 0, LARGEST, 0, 0, 0, 0,
         MTAN_HAS_LOW | coded}};
    prep p;
    memset(&p, 0, sizeof p), p.positive = -1;
    p.kind = PREP_PUBLISHED;
    for (size_t i = 0; i < 4; i++) arrput(p.channel, channel[i]);
    for (size_t i = 0; i < 4; i++) arrput(p.channels, tool_text(names[i]));
    for (size_t i = 0; i < 2; i++) arrput(p.classes, tool_text(classes[i]));
    p.time_scale[0] = 48, p.time_scale[1] = 1.0 / 3, p.time_scale[2] = 1e-30;
    p.first = -0.1, p.last = 1.0 / 7;
    strcpy(p.unit, "hours since admission.."); /* all it can hold */
    return p;
}

static int same_texts(char **a, char **b) {
    if (arrlenu(a) != arrlenu(b)) return 0;
    for (size_t i = 0; i < arrlenu(a); i++)
        if (strcmp(a[i], b[i]) != 0) return 0;
    return 1;
}

static int same_prep(const prep *a, const prep *b) {
    return a->kind == b->kind && arrlenu(a->channel) == arrlenu(b->channel) && strcmp(a->unit, b->unit) == 0 &&
           memcmp(a->time_scale, b->time_scale, sizeof a->time_scale) == 0 &&
           memcmp(&a->first, &b->first, 2 * sizeof a->first) == 0 && same_texts(a->channels, b->channels) &&
           same_texts(a->classes, b->classes) && same_numbers(a->channel, b->channel, arrlenu(a->channel));
}

TEST text_brings_the_same_bits_back(void) {
    dataset d = golden_records();
    split s = split_published(&d);
    prep from[4], back;
    for (int i = 0; i < 3; i++) prep_fit(&from[i], &d, &s, (prep_kind)(PREP_PUBLISHED + i), 0, coded());
    from[3] = awkward();
    for (int i = 0; i < 4; i++) {
        mtan_file_pair *pairs = NULL;
        mtan_file file;
        size_t bytes = 0;
        char error[256] = "";
        prep_write(&from[i], &pairs);
        void *blob = write_file(pairs, i < 3 ? "8" : "4", "2", &bytes);
        ASSERT(blob && mtan_file_open(&file, blob, bytes) == MTAN_OK);
        if (!prep_read(&back, &file, error)) FAILm(error);
        ASSERT(same_prep(&from[i], &back));
        prep_free(&back), prep_free(&from[i]);
        free(blob), free_pairs(pairs);
    }
    split_free(&s), dataset_free(&d);
    PASS();
}

/* The pairs of `awkward` with one of them changed, or left out (value NULL). */
static void *changed_file(const char *key, const char *value, size_t *bytes) {
    mtan_file_pair *pairs = NULL;
    prep p = awkward();
    void *blob;
    prep_write(&p, &pairs);
    prep_free(&p);
    for (size_t i = arrlenu(pairs); i-- > 0;) {
        if (strcmp(pairs[i].key, key) != 0) continue;
        free((void *)(uintptr_t)pairs[i].value);
        pairs[i].value = tool_text(value ? value : "");
        if (!value) {
            free((void *)(uintptr_t)pairs[i].key), free((void *)(uintptr_t)pairs[i].value);
            arrdel(pairs, i);
        }
    }
    const int channels = strcmp(key, "mtan.channels") == 0, classes = strcmp(key, "mtan.classes") == 0;
    blob = write_file(pairs, channels ? value : "4", classes ? value : "2", bytes);
    free_pairs(pairs);
    return blob;
}

static const struct {
    const char *key, *value, *reason;
} hostile[] = {{"mtan.prep.kind", "zscored", "a newer version may know others"},
               {"mtan.prep.kind", NULL, "mtan.prep.offset must be"}, /* numbers without a kind */
               {"mtan.prep.kind", "", "a newer version may know others"},
               {"mtan.prep.scale", "1 1 1", "mtan.prep.scale must be a finite number for each channel that is not 0"},
               {"mtan.prep.scale", "1 1 1 1 1", "mtan.prep.scale must be"},
               {"mtan.prep.scale", "1 0 1 1", "mtan.prep.scale must be"},
               {"mtan.prep.scale", "1 1 inf 1", "mtan.prep.scale must be"},
               {"mtan.prep.scale", "1 1 1 nan", "mtan.prep.scale must be"},
               {"mtan.prep.scale", "1e999 1 1 1", "mtan.prep.scale must be"},
               {"mtan.prep.scale", "1e-999 1 1 1", "mtan.prep.scale must be"},
               {"mtan.prep.scale", "0x1p3 1 1 1", "mtan.prep.scale must be"},
               {"mtan.prep.scale", "1 infinity 1 1", "mtan.prep.scale must be"},
               {"mtan.prep.scale", "1,1,1,1", "mtan.prep.scale must be"},
               {"mtan.prep.scale", "1 1e 1 1", "mtan.prep.scale must be"},
               {"mtan.prep.scale", "1 -- 1 1", "mtan.prep.scale must be"},
               {"mtan.prep.scale", "1 1 1 0.3333333333333333333333333333333333333333333", "mtan.prep.scale must be"},
               {"mtan.prep.scale", NULL, "mtan.prep.scale must be"},
               {"mtan.prep.offset", "0 0 0 -inf", "mtan.prep.offset must be a number for each channel"},
               {"mtan.prep.low", "0 0 0 nan", "mtan.prep.low must be"},
               {"mtan.prep.low", "inf 0 0 0", "mtan.prep.low must be"},
               {"mtan.prep.low", "0 -1 1 0", "not above mtan.prep.high"},
               {"mtan.prep.missing", "x 0 0 0", "mtan.prep.missing must be"},
               {"mtan.prep.fill", "0 0 0", "mtan.prep.fill must be"},
               {"mtan.prep.fill", NULL, ""},
               {"mtan.prep.most", "0 0 0 0 0", "mtan.prep.most must be"},
               {"mtan.prep.most", NULL, ""},
               {"mtan.time.scale", "48", "mtan.time.scale must be three finite numbers above 0"},
               {"mtan.time.scale", "48 48 0", "mtan.time.scale must be"},
               {"mtan.time.scale", "48 -48 48", "mtan.time.scale must be"},
               {"mtan.time.scale", "48 inf 48", "mtan.time.scale must be"},
               {"mtan.time.scale", NULL, "mtan.time.scale must be"},
               {"mtan.time.scale", "48 1e-320 48", NULL},
               {"mtan.time.span", "0", "mtan.time.span must be two numbers"},
               {"mtan.time.unit", "hours since admission...", "too long"},
               {"mtan.names.channels", "[\"a\",\"b\",\"c\"]", "as many as the model has"},
               {"mtan.names.channels", "[\"a\",\"b\",\"c\",\"d\",\"e\"]", "as many as the model has"},
               {"mtan.names.channels", "[\"a\",\"b\",\"c\",\"a\"]", "different names"},
               {"mtan.names.channels", "[\"a\",\"b\",\"c\",\"\"]", "different names"},
               {"mtan.names.channels", "[\"a\",\"b\",\"c\",\"d\"", "a JSON array"},
               {"mtan.names.channels", "[\"a\",\"b\",\"c\",\"d\"]]", "a JSON array"},
               {"mtan.names.channels", "[\"a\",\"b\",\"c\",\"d]", "a JSON array"},
               {"mtan.names.channels", "[\"a\",\"b\",\"c\",\"d\\", "a JSON array"},
               {"mtan.names.channels", "[\"a\",\"b\",\"c\",\"\\x\"]", "a JSON array"},
               {"mtan.names.channels", "[\"a\",\"b\",\"c\",\"d\\u0000\"]", "a JSON array"},
               {"mtan.names.channels", "[\"a\" \"b\" \"c\" \"d\"]", "a JSON array"},
               {"mtan.names.channels", "[\"a\",\"b\",\"c\",4]", "a JSON array"},
               {"mtan.names.channels", "[]", "a JSON array"},
               {"mtan.names.channels", "", "a JSON array"},
               {"mtan.names.channels", " [ \"a\" , \"b\",\n\"c\",\"d\"] ", ""},
               {"mtan.names.channels", NULL, ""},
               {"mtan.names.classes", "[\"a\",\"b\",\"c\"]", "as many as the model has"},
               {"mtan.names.classes", "[\"a\"]", ""},
               {"mtan.channels", NULL, "mtan.channels must be a number of channels"},
               {"mtan.channels", "5", "must be"},
               {"mtan.channels", "1e9", "must be"},
               {"mtan.channels", "-1", "mtan.channels must be"},
               {"mtan.channels", "3.5", "mtan.channels must be"},
               {"mtan.classes", "nan", "mtan.classes must be"},
               {"mtan.classes", "0", ""}};

TEST bad_text_is_refused_with_a_reason(void) {
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        const char *reason = hostile[i].reason;
        size_t bytes = 0;
        char error[256] = "";
        mtan_file file;
        prep p;
        void *blob = changed_file(hostile[i].key, hostile[i].value, &bytes);
        if (!reason) reason = sizeof(mtan_real) == sizeof(double) ? "" : "above 0"; /* 0 in float */
        ASSERT(blob && mtan_file_open(&file, blob, bytes) == MTAN_OK);
        const int read = prep_read(&p, &file, error);
        if (read != !*reason || !strstr(error, reason)) {
            printf("  BAD %s = %s: %s, expected %s\n", hostile[i].key, hostile[i].value ? hostile[i].value : "(none)",
                   error, reason);
            FAIL();
        }
        prep_free(&p);
        free(blob);
    }
    PASS();
}

/* Every byte of the header changed in several ways: refused, or read into something that can be used. */
TEST changed_bytes_never_give_unusable_numbers(void) {
    static const char other[] = "9\" -e,]\\i";
    size_t bytes = 0, refused = 0, read = 0;
    char *blob = changed_file("", NULL, &bytes), error[256];
    mtan_file file;
    prep p;
    for (size_t i = 8; i < bytes; i++) {
        const char held = blob[i];
        for (size_t j = 0; j + 1 < sizeof other; j++) {
            blob[i] = other[j];
            if (mtan_file_open(&file, blob, bytes) != MTAN_OK) continue;
            if (!prep_read(&p, &file, error)) {
                refused++;
                continue;
            }
            read++;
            for (size_t k = 0; k < arrlenu(p.channel); k++)
                ASSERT(isfinite(p.channel[k].offset) && isfinite(p.channel[k].scale) && p.channel[k].scale != 0);
            ASSERT(p.time_scale[0] > 0 && isfinite(p.time_scale[0]));
            ASSERT(!p.channels || arrlenu(p.channels) == arrlenu(p.channel));
            prep_free(&p);
        }
        blob[i] = held;
    }
    ASSERT(refused > 500 && read > 500);
    free(blob);
    PASS();
}

TEST a_model_without_preprocessing_changes_nothing(void) {
    mtan_event e[] = {{(mtan_real)0.1, 2, -1}};
    size_t bytes = 0;
    char error[256];
    mtan_file_pair *pairs = NULL;
    mtan_file file;
    prep p;
    memset(&p, 0, sizeof p), p.positive = -1;
    prep_write(&p, &pairs);
    ASSERT_EQ_FMT((size_t)0, arrlenu(pairs), "%zu");
    void *blob = write_file(NULL, "3", "2", &bytes);
    ASSERT(blob && mtan_file_open(&file, blob, bytes) == MTAN_OK && prep_read(&p, &file, error));
    ASSERT(p.kind == PREP_NONE && arrlenu(p.channel) == 3 && !p.channels && !p.classes && p.unit[0] == 0);
    ASSERT_EQ_FMT(1, prep_events(&p, SPLIT_TEST, e, 1), "%d");
    ASSERT(e[0].time == (mtan_real)0.1 && e[0].value == -1);
    prep_free(&p);
    free(blob);
    PASS();
}

/* ---- matching ---- */

static char **texts(const char *const *from, size_t n) {
    char **to = NULL;
    for (size_t i = 0; i < n; i++) arrput(to, tool_text(from[i]));
    return to;
}

static void free_texts(char **t) {
    for (size_t i = 0; i < arrlenu(t); i++) free(t[i]);
    arrfree(t);
}

static int matches(const prep *p, const char *const *names, size_t n, const int32_t *expected, int32_t unknown,
                   int32_t absent) {
    char **channels = texts(names, n);
    int32_t map[8], lacks = -1;
    const int32_t got = prep_match(p, channels, map, &lacks);
    free_texts(channels);
    return got == unknown && lacks == absent && (n == 0 || check_same("map", map, expected, n * sizeof *map));
}

TEST channels_match_by_name(void) {
    static const char *const names[] = {"HR", "Temp", "7"}, *const data[] = {"Temp", "hr", "007", "HR", "0", "Temp"};
    static const char *const numbers[] = {"2", "00", "3", "1x", "", "99999999999", "-1"};
    static const int32_t by_name[] = {1, -1, 2, 0, -1, 1}, by_number[] = {2, 0, -1, -1, -1, -1, -1};
    prep p;
    memset(&p, 0, sizeof p), p.positive = -1;
    for (int i = 0; i < 3; i++) arrput(p.channel, prep_untouched());
    ASSERT(matches(&p, numbers, 7, by_number, 5, 1)); /* without names */
    p.channels = texts(names, 3);
    ASSERT(matches(&p, data, 6, by_name, 2, 0));
    ASSERT(matches(&p, data, 1, by_name, 0, 2));
    ASSERT(matches(&p, data, 0, NULL, 0, 3));
    prep_free(&p);
    PASS();
}

SUITE(prep_suite) {
    RUN_TEST(percentiles_are_numpys);
    RUN_TEST(published_values_are_the_published_codes);
    RUN_TEST(training_statistics_are_numpys);
    RUN_TEST(only_training_records_are_looked_at);
    RUN_TEST(a_rare_flag_is_not_clipped_away);
    RUN_TEST(constants_and_extremes_keep_a_usable_scale);
    RUN_TEST(results_are_finite_and_nan_stays);
    RUN_TEST(missing_codes_go);
    RUN_TEST(label_times_and_truth_follow);
    RUN_TEST(text_brings_the_same_bits_back);
    RUN_TEST(bad_text_is_refused_with_a_reason);
    RUN_TEST(changed_bytes_never_give_unusable_numbers);
    RUN_TEST(a_model_without_preprocessing_changes_nothing);
    RUN_TEST(channels_match_by_name);
}
