/* Preparation: what mtan.c makes of raw observations, against plain code written here, libc's strtod and worked examples. How the tools
 * fit and write it is tested by tests/data/test_prep.c, and that it has the bits of `mtan predict` by test_prepared_command.c. */
#define MTAN_INTERNALS
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../mtan.h"
#include "check.h"

static uint64_t state;

static uint64_t draw(void) { /* xorshift64 */
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

static int32_t below(int32_t n) {
    return (int32_t)(draw() % (uint64_t)n);
}

/* ---- decimals ---- */

static int reads_as(const char *text) {
    mtan_config c;
    const double expected = strtod(text, NULL);
    mtan_config_init(&c, MTAN_FULL, MTAN_CLASSIFY_NONE, 1, 2);
    if (mtan_config_set(&c, "noise_std", text) != MTAN_OK) {
        if (isfinite(expected)) printf("  BAD %s was not read\n", text);
        return !isfinite(expected);
    }
    if (memcmp(&c.noise_std, &expected, sizeof expected) == 0) return 1;
    printf("  BAD %s: got %a, expected %a\n", text, c.noise_std, expected);
    return 0;
}

TEST decimals_are_correctly_rounded(void) {
    static const char *const hard[] = {"9007199254740993",
                                       "9007199254740992.5",
                                       "0.1",
                                       "1e22",
                                       "1e23",
                                       "8.5e22",
                                       "4.9406564584124654e-324",
                                       "2.4703282292062328e-324",
                                       "2.2250738585072011e-308",
                                       "1.7976931348623157e308",
                                       "1.7976931348623159e308",
                                       "0.000000000000000000000000000001",
                                       "123456789012345678901234567890",
                                       "0",
                                       "-0",
                                       "00.5",
                                       "3e-340",
                                       "1e340"};
    char text[64];
    for (size_t i = 0; i < sizeof hard / sizeof hard[0]; i++) ASSERT(reads_as(hard[i]));
    state = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        const uint64_t bits = draw();
        double x;
        memcpy(&x, &bits, sizeof x);
        snprintf(text, sizeof text, "%.*g", 1 + i % 20, isfinite(x) ? x : 1.0);
        ASSERT(reads_as(text));
        snprintf(text, sizeof text, "%.17g", (double)(float)(1e-3 * (double)(bits >> 40)));
        ASSERT(reads_as(text));
    }
    PASS();
}

/* ---- order ---- */

/* Insertion sort, which is stable, then means of what is equal. */
static int32_t merge_plainly(mtan_event *e, int32_t n) {
    int32_t kept = 0;
    for (int32_t i = 1; i < n; i++)
        for (int32_t j = i; j > 0; j--) {
            const mtan_event a = e[j - 1], b = e[j];
            if (a.time < b.time || (a.time == b.time && a.channel <= b.channel)) break;
            e[j - 1] = b, e[j] = a;
        }
    for (int32_t i = 0, j; i < n; i = j) {
        double sum = 0;
        for (j = i; j < n && e[j].time == e[i].time && e[j].channel == e[i].channel; j++) sum += (double)e[j].value;
        e[kept] = e[i], e[kept].value = (mtan_real)(sum / (j - i)), kept++;
    }
    return kept;
}

TEST events_are_sorted_and_repeats_averaged(void) {
    enum { MOST = 300 };
    mtan_event ours[MOST], theirs[MOST];
    state = 7;
    for (int32_t round = 0; round < 400; round++) {
        const int32_t n = round < 10 ? round : below(MOST), times = 1 + below(2 * n + 2), channels = 1 + below(4);
        for (int32_t i = 0; i < n; i++) {
            ours[i].time = (mtan_real)below(times) / 8, ours[i].channel = below(channels);
            ours[i].value = (mtan_real)(draw() >> 40) / (mtan_real)3e5;
        }
        memcpy(theirs, ours, sizeof ours);
        const int32_t kept = merge_plainly(theirs, n);
        ASSERT_EQ_FMT(kept, mtan_events_merge(ours, n), "%d");
        for (int32_t i = 0; i < kept; i++) /* one by one: in double there are bytes between them */
            ASSERT(ours[i].time == theirs[i].time && ours[i].channel == theirs[i].channel &&
                   ours[i].value == theirs[i].value);
    }
    PASS();
}

TEST long_records_are_sorted_in_little_time(void) {
    enum { N = 200000 }; /* insertion would take minutes */
    mtan_event *e = malloc(N * sizeof *e);
    state = 3;
    for (int32_t i = 0; i < N; i++) e[i].time = (mtan_real)below(N), e[i].channel = i % 3, e[i].value = 1;
    const int32_t n = mtan_events_merge(e, N);
    ASSERT(n > N / 2 && n < N);
    for (int32_t i = 1; i < n; i++)
        ASSERT(e[i - 1].time < e[i].time || (e[i - 1].time == e[i].time && e[i - 1].channel < e[i].channel));
    free(e);
    PASS();
}

/* ---- a file ---- */

/* A file in memory of exactly its size, which the address sanitizer watches. */
static void *written(const mtan_file_pair *pairs, size_t n, mtan_file *file) {
    size_t bytes = 0;
    if (mtan_file_write_size(NULL, 0, pairs, n, &bytes) != MTAN_OK) return NULL;
    void *blob = malloc(bytes);
    if (mtan_file_write_memory(NULL, 0, pairs, n, blob, bytes, &bytes) == MTAN_OK &&
        mtan_file_open(file, blob, bytes) == MTAN_OK)
        return blob;
    return free(blob), NULL;
}

/* Heart rate, temperature and a sex code; times count from the first, in hours; scaled by 24. */
static const mtan_file_pair patient[] = {{"mtan.channels", "3"},
                                         {"mtan.classes", "2"},
                                         {"mtan.prep.kind", "zscore"},
                                         {"mtan.prep.offset", "80 37 0.5"},
                                         {"mtan.prep.scale", "16 0.5 0.25"},
                                         {"mtan.prep.low", "40 -inf -inf"},
                                         {"mtan.prep.high", "144 inf inf"},
                                         {"mtan.prep.missing", "nan nan -1"},
                                         {"mtan.prep.fill", "nan 37.25 nan"},
                                         {"mtan.prep.least", "40 36 0"},
                                         {"mtan.prep.most", "160 41 1"},
                                         {"mtan.time.scale", "1 2 24"},
                                         {"mtan.time.span", "0 48"},
                                         {"mtan.time.unit", "hours"},
                                         {"mtan.data.origin", "record"},
                                         {"mtan.names.channels", "[\"HR\",\"T\\u00b0\",\"007\"]"},
                                         {"mtan.names.classes", "[\"died\",\"survived\"]"},
                                         {"mtan.names.positive", "died"}};
enum { PAIRS = sizeof patient / sizeof patient[0] };

/* The patient's file with one key changed; value null: without it. In memory of exactly the size that was asked for, at an odd
 * address. */
typedef struct opened {
    void *blob, *memory;
    mtan_prep prep;
    mtan_status status;
    const char *key;
} opened;

static opened open_both(const mtan_file_pair change[2]) {
    mtan_file_pair pairs[PAIRS + 2];
    opened o;
    mtan_file file;
    size_t n = 0, bytes = 0;
    int found[2] = {0, 0};
    memset(&o, 0, sizeof o);
    for (size_t i = 0; i < PAIRS; i++) {
        pairs[n] = patient[i];
        for (int k = 0; k < 2; k++)
            if (change[k].key && strcmp(change[k].key, pairs[n].key) == 0)
                pairs[n].value = change[k].value, found[k] = 1;
        n += pairs[n].value != NULL;
    }
    for (int k = 0; k < 2; k++) /* one that the patient's does not have */
        if (change[k].key && !found[k]) pairs[n++] = change[k];
    o.blob = written(pairs, n, &file);
    o.status = mtan_prep_size(&file, &bytes);
    o.memory = malloc(bytes + 1);
    o.status = mtan_prep_open(&o.prep, &file, (char *)o.memory + 1, bytes, &o.key);
    return o;
}

static opened open_changed(const char *key, const char *value) {
    const mtan_file_pair change[2] = {{key, value}, {NULL, NULL}};
    return open_both(change);
}

static void close_file(opened *o) {
    free(o->blob), free(o->memory);
}

TEST a_file_is_read(void) {
    opened o = open_changed(NULL, NULL);
    const mtan_prep *p = &o.prep;
    ASSERT_EQ_FMT(MTAN_OK, o.status, "%d");
    free(o.blob), o.blob = NULL; /* all is in the memory */
    ASSERT(p->channels == 3 && p->classes == 2 && p->fitted && p->from_first && p->positive == 0);
    ASSERT(p->time_scale == 24 && p->first == 0 && p->last == 48);
    ASSERT_STR_EQ("hours", p->unit);
    ASSERT_STR_EQ("T\xc2\xb0", p->channel_names[1]);
    ASSERT_STR_EQ("survived", p->class_names[1]);
    ASSERT_EQ_FMT((uint32_t)(MTAN_HAS_LOW | MTAN_HAS_HIGH | MTAN_HAS_RANGE), p->channel[0].has, "%u");
    ASSERT_EQ_FMT((uint32_t)(MTAN_HAS_FILL | MTAN_HAS_RANGE), p->channel[1].has, "%u");
    ASSERT_EQ_FMT((uint32_t)(MTAN_HAS_MISSING | MTAN_HAS_RANGE), p->channel[2].has, "%u");
    ASSERT(p->channel[1].fill == (mtan_real)37.25 && p->channel[0].low == 40 && p->channel[2].missing == -1);
    ASSERT_EQ_FMT(0, mtan_prep_channel_named(p, "HR"), "%d");
    ASSERT_EQ_FMT(1, mtan_prep_channel_named(p, "T\xc2\xb0"), "%d");
    ASSERT_EQ_FMT(2, mtan_prep_channel_named(p, "007"), "%d");
    ASSERT_EQ_FMT(-1, mtan_prep_channel_named(p, "hr"), "%d");
    ASSERT_EQ_FMT(-1, mtan_prep_channel_named(p, ""), "%d");
    ASSERT_EQ_FMT(1, mtan_prep_class_named(p, "survived"), "%d");
    ASSERT_EQ_FMT(-1, mtan_prep_class_named(p, "HR"), "%d");
    close_file(&o);
    PASS();
}

TEST a_file_without_preprocessing_says_so(void) {
    static const mtan_file_pair pairs[] = {{"mtan.channels", "12"}}; /* an interpolation need not speak of classes */
    const mtan_observation raw[] = {{2, 11, -1}, {0.5, 0, 7}};
    mtan_event e[2];
    mtan_prepared found;
    mtan_file file;
    mtan_prep prep;
    char memory[200];
    size_t bytes = 0;
    void *blob = written(pairs, 1, &file);
    ASSERT(blob);
    ASSERT_EQ_FMT(MTAN_OK, mtan_prep_size(&file, &bytes), "%d");
    ASSERT(bytes <= sizeof memory);
    ASSERT_EQ_FMT(MTAN_OK, mtan_prep_open(&prep, &file, memory, bytes, NULL), "%d");
    ASSERT(!prep.fitted && !prep.channel_names && !prep.class_names && prep.positive == -1 && prep.unit[0] == 0);
    ASSERT_EQ_FMT(7, mtan_prep_channel_named(&prep, "7"), "%d");
    ASSERT_EQ_FMT(11, mtan_prep_channel_named(&prep, "0011"), "%d");
    ASSERT_EQ_FMT(-1, mtan_prep_channel_named(&prep, "12"), "%d");
    ASSERT_EQ_FMT(-1, mtan_prep_channel_named(&prep, "1x"), "%d");
    ASSERT_EQ_FMT(-1, mtan_prep_class_named(&prep, "0"), "%d");
    ASSERT_EQ_FMT(MTAN_OK, mtan_prep_record(&prep, raw, 2, e, 2, &found), "%d");
    ASSERT(found.events == 2 && e[0].time == (mtan_real)0.5 && e[0].value == 7 && e[1].value == -1 &&
           found.origin == 0);
    ASSERT(mtan_prep_raw_value(&prep, 3, 1.5) == 1.5 && mtan_prep_raw_spread(&prep, 3, 1.5) == 1.5);
    free(blob);
    PASS();
}

TEST older_files_are_read(void) {
    static const char *const newer[] = {"mtan.prep.fill", "mtan.prep.least", "mtan.prep.most", "mtan.time.span",
                                        "mtan.names.positive"};
    for (size_t i = 0; i < sizeof newer / sizeof newer[0]; i++) {
        opened o = open_changed(newer[i], NULL);
        ASSERT_EQ_FMT(MTAN_OK, o.status, "%d");
        if (i == 3) ASSERT(!mtan_prep_far_time(&o.prep, 1e9));
        if (i == 4) ASSERT_EQ_FMT(1, o.prep.positive, "%d");
        close_file(&o);
    }
    PASS();
}

/* Where times are counted from: what the file says, else dates of people's own data from the record's first. */
TEST origins_of_times(void) {
    static const struct {
        mtan_file_pair change[2];
        int32_t from_first;
    } cases[] = {{{{"mtan.data.origin", "record"}, {NULL, NULL}}, 1},
                 {{{"mtan.data.origin", "zero"}, {NULL, NULL}}, 0},
                 {{{"mtan.data.origin", NULL}, {NULL, NULL}}, 0},
                 {{{"mtan.data.origin", NULL}, {"mtan.data.kind", "own"}}, 1},
                 {{{"mtan.data.origin", NULL}, {"mtan.data.kind", "physionet"}}, 0},
                 {{{"mtan.data.origin", NULL}, {"mtan.time.unit", "days"}}, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        opened o = open_both(cases[i].change);
        ASSERT_EQ_FMT(MTAN_OK, o.status, "%d");
        ASSERT_EQ_FMT(cases[i].from_first, o.prep.from_first, "%d");
        close_file(&o);
    }
    PASS();
}

/* A class that the file does not name has no name, and cannot be the one that a probability is about. */
TEST some_classes_have_names(void) {
    static const mtan_file_pair nameless[2] = {{"mtan.names.classes", NULL}, {"mtan.names.positive", NULL}};
    opened o = open_changed("mtan.names.classes", "[\"died\"]");
    ASSERT_EQ_FMT(MTAN_OK, o.status, "%d");
    ASSERT_STR_EQ("died", o.prep.class_names[0]);
    ASSERT_STR_EQ("", o.prep.class_names[1]);
    ASSERT_EQ_FMT(0, o.prep.positive, "%d");
    close_file(&o);
    o = open_changed("mtan.names.classes", NULL); /* what `positive` names is not there */
    ASSERT_EQ_FMT(MTAN_ERR_FILE, o.status, "%d");
    ASSERT_STR_EQ("mtan.names.positive", o.key);
    close_file(&o);
    o = open_both(nameless);
    ASSERT_EQ_FMT(MTAN_OK, o.status, "%d");
    ASSERT(!o.prep.class_names && o.prep.positive == 1);
    close_file(&o);
    PASS();
}

/* Names that are digits, with zeros in front or without; and the channels of a model without names. */
TEST numbers_are_names(void) {
    static const mtan_file_pair both[2] = {{"mtan.names.channels", "[\"7\",\"0\",\"07x\"]"}, {NULL, NULL}};
    opened o = open_both(both);
    ASSERT_EQ_FMT(MTAN_OK, o.status, "%d");
    ASSERT_EQ_FMT(0, mtan_prep_channel_named(&o.prep, "007"), "%d");
    ASSERT_EQ_FMT(1, mtan_prep_channel_named(&o.prep, "000"), "%d");
    ASSERT_EQ_FMT(2, mtan_prep_channel_named(&o.prep, "07x"), "%d");
    ASSERT_EQ_FMT(-1, mtan_prep_channel_named(&o.prep, "7x"), "%d");
    ASSERT_EQ_FMT(-1, mtan_prep_channel_named(&o.prep, NULL), "%d");
    ASSERT_EQ_FMT(-1, mtan_prep_channel_named(NULL, "7"), "%d");
    ASSERT_EQ_FMT(-1, mtan_prep_class_named(&o.prep, NULL), "%d");
    ASSERT_EQ_FMT(-1, mtan_prep_class_named(NULL, "died"), "%d");
    o.prep.channel_names = NULL;
    ASSERT_EQ_FMT(2, mtan_prep_channel_named(&o.prep, "0002"), "%d");
    ASSERT_EQ_FMT(-1, mtan_prep_channel_named(&o.prep, ""), "%d");
    ASSERT_EQ_FMT(-1, mtan_prep_channel_named(&o.prep, "21"), "%d");
    ASSERT_EQ_FMT(-1, mtan_prep_channel_named(&o.prep, "99999999999999999999"), "%d");
    close_file(&o);
    PASS();
}

/* The caller's memory lies over the header, in the text of a pair before all others: what is read first spoils what comes
 * after it, as if the file changed meanwhile. */
TEST a_file_that_changes_while_it_is_read(void) {
    static const char *const last[] = {"mtan.names.classes", "mtan.time.unit"};
    static char note[4096];
    memset(note, 'n', sizeof note - 1);
    for (int without_classes = 0; without_classes < 2; without_classes++) {
        mtan_file_pair pairs[PAIRS + 1] = {{"note", note}};
        mtan_file file;
        mtan_prep prep;
        const char *key = NULL;
        size_t n = 1, bytes = 0;
        for (size_t i = 0; i < PAIRS; i++)
            if (!without_classes || strncmp(patient[i].key, "mtan.names.c", 12) != 0 || patient[i].key[12] == 'h')
                pairs[n++] = patient[i];
        uint8_t *blob = written(pairs, n, &file);
        ASSERT(blob);
        ASSERT_EQ_FMT(MTAN_OK, mtan_prep_size(&file, &bytes), "%d");
        ASSERT(bytes < sizeof note - 200);
        memset(&prep, 0, sizeof prep);
        ASSERT_EQ_FMT(MTAN_ERR_FILE, mtan_prep_open(&prep, &file, blob + 100, bytes, &key), "%d");
        ASSERT_STR_EQ(last[without_classes], key);
        ASSERT_EQ_FMT(0, prep.channels, "%d");
        free(blob);
    }
    PASS();
}

#ifdef MTAN_DOUBLE
#define TOO_LARGE "16 1 1e309"
#else
#define TOO_LARGE "16 1 1e39"
#endif

TEST what_cannot_be_used_is_refused(void) {
    static const char *const bad[][2] = {{"mtan.channels", "4"},
                                         {"mtan.channels", "0"},
                                         {"mtan.channels", "1e9"},
                                         {"mtan.channels", "3.5"},
                                         {"mtan.channels", NULL},
                                         {"mtan.channels", "-1"},
                                         {"mtan.channels", "00000000000000000000000000000000000000003"},
                                         {"mtan.classes", "1"},
                                         {"mtan.classes", "x"},
                                         {"mtan.prep.kind", "other"},
                                         {"mtan.prep.kind", NULL},
                                         {"mtan.prep.offset", "80 37"},
                                         {"mtan.prep.offset", "80 37 nan"},
                                         {"mtan.prep.scale", "16 0 1"},
                                         {"mtan.prep.scale", "16 1 1 1"},
                                         {"mtan.prep.scale", TOO_LARGE},
                                         {"mtan.prep.low", "145 -inf -inf"},
                                         {"mtan.prep.low", "inf 0 0"},
                                         {"mtan.prep.high", NULL},
                                         {"mtan.prep.fill", "1 2"},
                                         {"mtan.prep.most", "1 2 x"},
                                         {"mtan.time.scale", "1 1 0"},
                                         {"mtan.time.scale", "1 1 -1"},
                                         {"mtan.time.scale", NULL},
                                         {"mtan.time.span", "1"},
                                         {"mtan.names.positive", "HR"},
                                         {"mtan.names.channels", "[\"a\",\"b\",\"a\"]"},
                                         {"mtan.names.channels", "[\"a\",\"b\"]"},
                                         {"mtan.names.channels", "[\"a\",\"b\",\"c\",\"d\"]"},
                                         {"mtan.names.channels", "[\"a\",\"b\",\"\"]"},
                                         {"mtan.names.channels", "[\"a\",\"b\",3]"},
                                         {"mtan.names.channels", "[\"a\",\"b\",\"c\""},
                                         {"mtan.names.channels", "\"a\",\"b\",\"c\"]"},
                                         {"mtan.names.channels", "[\"a\",\"b\",\"c\"] x"},
                                         {"mtan.names.channels", "[\"a\",\"b\",\"\\u0000\"]"},
                                         {"mtan.names.classes", "[\"a\",\"a\"]"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        opened o = open_changed(bad[i][0], bad[i][1]);
        if (o.status != MTAN_ERR_FILE || !o.key || strncmp(o.key, "mtan.", 5) != 0)
            printf("  BAD %s = %s: %d\n", bad[i][0], bad[i][1] ? bad[i][1] : "(none)", (int)o.status);
        ASSERT_EQ_FMT(MTAN_ERR_FILE, o.status, "%d");
        ASSERT(o.prep.channels == 0); /* untouched */
        close_file(&o);
    }
    PASS();
}

TEST too_little_memory_is_refused(void) {
    mtan_file file;
    mtan_prep prep;
    size_t bytes = 0;
    void *blob = written(patient, PAIRS, &file), *memory;
    ASSERT_EQ_FMT(MTAN_OK, mtan_prep_size(&file, &bytes), "%d");
    memory = malloc(bytes);
    ASSERT_EQ_FMT(MTAN_ERR_MEMORY, mtan_prep_open(&prep, &file, memory, bytes - 1, NULL), "%d");
    ASSERT_EQ_FMT(MTAN_ERR_NULL, mtan_prep_open(NULL, &file, memory, bytes, NULL), "%d");
    ASSERT_EQ_FMT(MTAN_ERR_NULL, mtan_prep_open(&prep, NULL, memory, bytes, NULL), "%d");
    ASSERT_EQ_FMT(MTAN_ERR_NULL, mtan_prep_open(&prep, &file, NULL, bytes, NULL), "%d");
    ASSERT_EQ_FMT(MTAN_ERR_NULL, mtan_prep_size(NULL, &bytes), "%d");
    ASSERT_EQ_FMT(MTAN_ERR_NULL, mtan_prep_size(&file, NULL), "%d");
    free(memory), free(blob);
    PASS();
}

TEST names_are_found_among_many(void) {
    enum { N = 500 };
    char text[16 * N] = "", count[16];
    mtan_file_pair pairs[] = {{"mtan.channels", count}, {"mtan.classes", "0"}, {"mtan.names.channels", text}};
    mtan_file file;
    mtan_prep prep;
    size_t bytes = 0;
    snprintf(count, sizeof count, "%d", N);
    for (int i = 0; i < N; i++) /* 7 and 500 have no common factor: all are different, and in no order */
        snprintf(text + strlen(text), 16, "%s\"n%d\"", i ? "," : "[", 7 * i % N);
    strcat(text, "]");
    void *blob = written(pairs, 3, &file);
    ASSERT(blob && mtan_prep_size(&file, &bytes) == MTAN_OK);
    void *memory = malloc(bytes);
    ASSERT_EQ_FMT(MTAN_OK, mtan_prep_open(&prep, &file, memory, bytes, NULL), "%d");
    for (int i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", 7 * i % N);
        ASSERT_EQ_FMT(i, mtan_prep_channel_named(&prep, name), "%d");
    }
    prep.order = NULL; /* as in a header that `mtan export` wrote */
    ASSERT_EQ_FMT(3, mtan_prep_channel_named(&prep, "n21"), "%d");
    ASSERT_EQ_FMT(-1, mtan_prep_channel_named(&prep, "n500"), "%d");
    free(memory), free(blob);
    PASS();
}

/* ---- a record ---- */

TEST a_record_is_prepared(void) {
    /* counted from 100: at 0 a pulse of 96, at 6 twice the sex, once as the code of none; at 12 pulses of 20 and 60 */
    const mtan_observation raw[] = {{112, 0, 20}, {100, 0, 96}, {106, 2, 1}, {112, 0, 60}, {109, 2, -1}, {124, 0, 500}};
    const mtan_event expected[] = {{0, 0, 1}, {0, 1, 0.5f}, {0.25f, 2, 2}, {0.5f, 0, -2.5f}, {1, 0, 4}};
    opened o = open_changed(NULL, NULL);
    mtan_event e[9];
    mtan_prepared found;
    ASSERT_EQ_FMT(MTAN_OK, o.status, "%d");
    ASSERT_EQ_FMT(MTAN_OK, mtan_prep_record(&o.prep, raw, 6, e, 9, &found), "%d");
    ASSERT_EQ_FMT(5, found.events, "%d");
    for (int i = 0; i < 5; i++) {
        ASSERT_EQ_FMT((double)expected[i].time, (double)e[i].time, "%g");
        ASSERT_EQ_FMT(expected[i].channel, e[i].channel, "%d");
        ASSERT_EQ_FMT((double)expected[i].value, (double)e[i].value, "%g");
    }
    ASSERT(found.missing == 1 && found.repeats == 1 && found.filled == 1 && found.origin == 100);
    ASSERT(found.far_values == 1 && found.far_times == 0);                       /* 500 is further above 160 than 120 */
    ASSERT_EQ_FMT(MTAN_OK, mtan_prep_record(&o.prep, raw, 6, e, 7, NULL), "%d"); /* one fill at most */
    ASSERT_EQ_FMT(MTAN_ERR_MEMORY, mtan_prep_record(&o.prep, raw, 6, e, 6, NULL), "%d");
    mtan_prep_channel more[4]; /* what lies behind the channels is none: it asks for no room */
    mtan_prep beside = o.prep;
    memcpy(more, o.prep.channel, 3 * sizeof *more);
    more[3] = more[1];
    beside.channel = more;
    ASSERT_EQ_FMT(MTAN_OK, mtan_prep_record(&beside, raw, 6, e, 7, NULL), "%d");
    ASSERT_EQ_FMT(MTAN_OK, mtan_prep_record(&o.prep, raw, 1, e, 9, &found), "%d"); /* its only time is the first */
    ASSERT(found.origin == 112 && e[0].time == 0);
    ASSERT_EQ_FMT(MTAN_OK, mtan_prep_record(&o.prep, NULL, 0, e, 9, &found), "%d");
    ASSERT(found.events == 1 && found.filled == 1 && e[0].channel == 1 && e[0].time == 0);
    close_file(&o);
    PASS();
}

/* What does not change within a record has no time: it starts no clock, and is not far. */
TEST what_is_static_has_no_time(void) {
    const mtan_observation raw[] = {{0, 0, 96}, {112, 1, 38}, {106, 1, 38}, {-1e9, 0, 20}};
    opened o = open_changed("mtan.statics", "1"), bad = open_changed("mtan.statics", "-1");
    mtan_event e[8];
    mtan_prepared found;
    ASSERT_EQ_FMT(MTAN_OK, o.status, "%d");
    ASSERT_EQ_FMT(1, o.prep.statics, "%d");
    ASSERT_EQ_FMT(MTAN_ERR_FILE, bad.status, "%d");
    ASSERT_EQ_FMT(MTAN_OK, mtan_prep_record(&o.prep, raw, 4, e, 8, &found), "%d");
    ASSERT(found.events == 3 && found.repeats == 1 && found.far_times == 0);
    ASSERT_EQ_FMT(106.0, found.origin, "%g");
    ASSERT(e[0].channel == 0 && e[0].time == 0 && e[1].channel == 1 && e[1].time == 0);
    ASSERT(e[2].time > 0);
    ASSERT_EQ_FMT(MTAN_OK, mtan_prep_record(&o.prep, raw, 1, e, 8, &found), "%d");
    ASSERT(found.origin == 0 && e[0].channel == 0);
    ASSERT_EQ_FMT(MTAN_OK, mtan_prep_event(&o.prep, &raw[3], e), "%d");
    ASSERT(e[0].time == 0);
    close_file(&o), close_file(&bad);
    PASS();
}

/* A channel that is observed needs no fill, and one without a range has nothing far from it. */
TEST an_observed_channel_is_not_filled(void) {
    static const mtan_file_pair rangeless[2] = {{"mtan.prep.least", NULL}, {"mtan.prep.most", NULL}};
    const mtan_observation raw[] = {{100, 1, 38}, {106, 0, 1e9}};
    opened o = open_both(rangeless);
    mtan_event e[3];
    mtan_prepared found;
    ASSERT_EQ_FMT(MTAN_OK, o.status, "%d");
    ASSERT_EQ_FMT(MTAN_OK, mtan_prep_record(&o.prep, raw, 2, e, 3, &found), "%d");
    ASSERT(found.events == 2 && found.filled == 0 && found.far_values == 0);
    ASSERT(e[0].channel == 1 && e[0].value == 2 && e[1].channel == 0 && e[1].value == 4);
    ASSERT(!mtan_prep_far_value(&o.prep, 0, 1e9) && !mtan_prep_far_time(NULL, 1e9));
    close_file(&o);
    PASS();
}

TEST without_a_preparation_numbers_stay(void) {
    ASSERT(mtan_prep_time(NULL, 2) == 2 && mtan_prep_raw_time(NULL, 2) == 2);
    ASSERT(mtan_prep_raw_value(NULL, 0, 2) == 2 && mtan_prep_raw_spread(NULL, 0, 2) == 2);
    ASSERT(mtan_prep_number(NULL, 0, 2) == 2 && mtan_prep_raw_number(NULL, 0, 2) == 2);
    ASSERT(!mtan_prep_far_value(NULL, 0, 1e9));
    PASS();
}

/* A code for "not observed" beside a value of the same time is no part of a mean, and a channel of codes alone is filled. */
TEST codes_enter_no_mean(void) {
    static const mtan_file_pair coded[2] = {{"mtan.prep.missing", "-1 -1 -1"}, {"mtan.prep.fill", "nan 37.25 nan"}};
    const mtan_observation raw[] = {{100, 0, -1}, {100, 0, 96}, {106, 1, -1}, {106, 2, -3}, {106, 2, 1}};
    opened o = open_both(coded);
    mtan_event e[8];
    mtan_prepared found;
    ASSERT_EQ_FMT(MTAN_OK, o.status, "%d");
    ASSERT_EQ_FMT(MTAN_OK, mtan_prep_record(&o.prep, raw, 5, e, 8, &found), "%d");
    ASSERT(found.events == 3 && found.missing == 2 && found.repeats == 1 && found.filled == 1);
    ASSERT(e[0].channel == 0 && e[0].value == 1);                      /* 96, not the mean of 96 and -1 */
    ASSERT(e[1].channel == 1 && e[1].time == 0 && e[1].value == 0.5f); /* the fill */
    ASSERT(e[2].channel == 2 && e[2].value == -6);                     /* a mean of -1 is no code */
    close_file(&o);
    PASS();
}

/* With one end of its range alone a channel has no range. */
TEST half_a_range_is_none(void) {
    static const char *const keys[] = {"mtan.prep.least", "mtan.prep.most"};
    for (int i = 0; i < 2; i++) {
        opened o = open_changed(keys[i], NULL);
        ASSERT_EQ_FMT(MTAN_OK, o.status, "%d");
        ASSERT(!mtan_prep_far_value(&o.prep, 0, 1e9) && !mtan_prep_far_value(&o.prep, 0, -1e9));
        close_file(&o);
    }
    PASS();
}

/* What an interval was found to need: a channel without it has its own deviation. */
TEST bands_widen_a_spread(void) {
    opened o = open_changed("mtan.prep.band", "1.5 nan 0.5");
    ASSERT_EQ_FMT(MTAN_OK, o.status, "%d");
    ASSERT(mtan_prep_raw_spread(&o.prep, 0, 2) == 48);   /* 2 of 16 */
    ASSERT(mtan_prep_raw_spread(&o.prep, 1, 2) == 1);    /* 2 of 0.5 */
    ASSERT(mtan_prep_raw_spread(&o.prep, 2, 2) == 0.25); /* 2 of 0.25 */
    close_file(&o);
    for (int i = 0; i < 2; i++) {
        o = open_changed("mtan.prep.band", i ? "1.5 1 -1" : "0 1 1");
        ASSERT_EQ_FMT(MTAN_ERR_FILE, o.status, "%d");
        close_file(&o);
    }
    PASS();
}

/* Clipped from below, where there is such a bound alone too; a negative scale; channels that there are not; and what is too large
 * is the largest number that there is. */
TEST values_at_the_ends(void) {
    static const mtan_file_pair ends[2] = {{"mtan.prep.low", "40 -inf 0"}, {"mtan.prep.scale", "-16 1e-30 0.25"}};
    const mtan_observation low = {0, 0, 20}, least = {0, 2, -7}, large = {0, 1, 1e20}, small = {0, 1, -1e20};
    const mtan_real largest = sizeof(mtan_real) == 4 ? (mtan_real)3.40282347e38f : (mtan_real)1.7976931348623157e308;
    opened o = open_both(ends);
    mtan_event e;
    ASSERT_EQ_FMT(MTAN_OK, o.status, "%d");
    ASSERT_EQ_FMT(MTAN_OK, mtan_prep_event(&o.prep, &low, &e), "%d");
    ASSERT(e.value == (mtan_real)2.5); /* (40 - 80) / -16 */
    ASSERT_EQ_FMT(MTAN_OK, mtan_prep_event(&o.prep, &least, &e), "%d");
    ASSERT(e.value == -2); /* (0 - 0.5) / 0.25 */
    ASSERT(mtan_prep_raw_spread(&o.prep, 0, 2) == 32 && mtan_prep_raw_value(&o.prep, 0, 2) == 48);
    ASSERT(mtan_prep_raw_value(&o.prep, -1, 2) == 2 && mtan_prep_raw_spread(&o.prep, 3, 2) == 2);
    if (sizeof(mtan_real) == 4) {
        ASSERT_EQ_FMT(MTAN_OK, mtan_prep_event(&o.prep, &large, &e), "%d");
        ASSERT(e.value == largest);
        ASSERT_EQ_FMT(MTAN_OK, mtan_prep_event(&o.prep, &small, &e), "%d");
        ASSERT(e.value == -largest);
    }
    o.prep.time_scale = 1e-10;
    ASSERT(mtan_prep_time(&o.prep, sizeof(mtan_real) == 4 ? 1e30 : 1e300) == largest);
    ASSERT(mtan_prep_time(&o.prep, sizeof(mtan_real) == 4 ? -1e30 : -1e300) == -largest);
    ASSERT_EQ_FMT(MTAN_ERR_NULL, mtan_prep_event(NULL, &low, &e), "%d");
    ASSERT_EQ_FMT(MTAN_ERR_NULL, mtan_prep_event(&o.prep, &low, NULL), "%d");
    ASSERT_EQ_FMT(MTAN_ERR_NULL, mtan_prep_record(&o.prep, &low, 1, NULL, 4, NULL), "%d");
    close_file(&o);
    PASS();
}

TEST bad_observations_are_refused(void) {
    const mtan_observation bad[] = {{NAN, 0, 1},   {INFINITY, 0, 1}, {1e300, 0, 1}, {1, 0, NAN},
                                    {1, 0, 1e300}, {1, -1, 1},       {1, 3, 1}};
    opened o = open_changed("mtan.data.origin", "zero");
    mtan_event e[4], before;
    mtan_prepared found;
    o.prep.from_first = 0;
    memset(&before, 0x5a, sizeof before);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const int too_large = sizeof(mtan_real) == 8 && (fabs(bad[i].time) == 1e300 || fabs(bad[i].value) == 1e300);
        memset(&found, 0x5a, sizeof found);
        e[0] = before;
        if (too_large) continue; /* double holds it */
        ASSERT_EQ_FMT(MTAN_ERR_INPUT, mtan_prep_record(&o.prep, &bad[i], 1, e, 4, &found), "%d");
        ASSERT_EQ_FMT(0x5a5a5a5a, found.events, "%x");
        ASSERT_EQ_FMT(MTAN_ERR_INPUT, mtan_prep_event(&o.prep, &bad[i], e), "%d");
        ASSERT(e[0].channel == before.channel && memcmp(&e[0].time, &before.time, sizeof before.time) == 0);
    }
    ASSERT_EQ_FMT(MTAN_ERR_INPUT, mtan_prep_record(&o.prep, bad, -1, e, 4, NULL), "%d");
    ASSERT_EQ_FMT(MTAN_ERR_INPUT, mtan_prep_record(&o.prep, bad, 0, e, -1, NULL), "%d");
    ASSERT_EQ_FMT(MTAN_ERR_NULL, mtan_prep_record(NULL, bad, 1, e, 4, NULL), "%d");
    ASSERT_EQ_FMT(MTAN_ERR_NULL, mtan_prep_record(&o.prep, NULL, 1, e, 4, NULL), "%d");
    ASSERT_EQ_FMT(MTAN_ERR_NULL, mtan_prep_record(&o.prep, bad, 0, NULL, 4, NULL), "%d"); /* there is one to fill */
    ASSERT_EQ_FMT(MTAN_ERR_NULL, mtan_prep_event(&o.prep, NULL, e), "%d");
    close_file(&o);
    PASS();
}

TEST one_event_is_that_of_a_record(void) {
    const mtan_observation raw = {6, 0, 200}, code = {6, 2, -1};
    opened o = open_changed(NULL, NULL);
    mtan_event e;
    ASSERT_EQ_FMT(MTAN_OK, mtan_prep_event(&o.prep, &raw, &e), "%d");
    ASSERT(e.time == (mtan_real)0.25 && e.channel == 0 && e.value == 4); /* clipped to 144 */
    ASSERT_EQ_FMT(MTAN_ERR_MISSING, mtan_prep_event(&o.prep, &code, &e), "%d");
    ASSERT(mtan_prep_far_value(&o.prep, 0, 281) && !mtan_prep_far_value(&o.prep, 0, 280));
    ASSERT(mtan_prep_far_value(&o.prep, 0, -81) && !mtan_prep_far_value(&o.prep, 0, -80));
    ASSERT(mtan_prep_far_time(&o.prep, 96.5) && !mtan_prep_far_time(&o.prep, 96) && mtan_prep_far_time(&o.prep, -49));
    ASSERT(!mtan_prep_far_value(&o.prep, 3, 1e9) && !mtan_prep_far_value(NULL, 0, 1e9));
    ASSERT(mtan_prep_time(&o.prep, 12) == (mtan_real)0.5 && mtan_prep_raw_time(&o.prep, 0.5) == 12);
    ASSERT(mtan_prep_raw_value(&o.prep, 0, 2) == 112 && mtan_prep_raw_spread(&o.prep, 1, 3) == 1.5);
    close_file(&o);
    PASS();
}

SUITE(preparation_suite) {
    RUN_TEST(decimals_are_correctly_rounded);
    RUN_TEST(events_are_sorted_and_repeats_averaged);
    RUN_TEST(long_records_are_sorted_in_little_time);
    RUN_TEST(a_file_is_read);
    RUN_TEST(a_file_without_preprocessing_says_so);
    RUN_TEST(older_files_are_read);
    RUN_TEST(origins_of_times);
    RUN_TEST(some_classes_have_names);
    RUN_TEST(numbers_are_names);
    RUN_TEST(a_file_that_changes_while_it_is_read);
    RUN_TEST(what_cannot_be_used_is_refused);
    RUN_TEST(too_little_memory_is_refused);
    RUN_TEST(names_are_found_among_many);
    RUN_TEST(a_record_is_prepared);
    RUN_TEST(what_is_static_has_no_time);
    RUN_TEST(an_observed_channel_is_not_filled);
    RUN_TEST(without_a_preparation_numbers_stay);
    RUN_TEST(codes_enter_no_mean);
    RUN_TEST(half_a_range_is_none);
    RUN_TEST(bands_widen_a_spread);
    RUN_TEST(values_at_the_ends);
    RUN_TEST(bad_observations_are_refused);
    RUN_TEST(one_event_is_that_of_a_record);
}
