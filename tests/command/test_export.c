/* `mtan export --c`: what the header says is read back from its text and compared with the model, bit for bit. That
 * compilers read it the same way is checked by tools/check/export_check.sh, as a test may not count on one. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "tiny_model.h"
#include "../../tools/mtan/command/export.h"
#include "../../tools/mtan/base/files.h"

static char path[64];
static board_need need; /* of the last model that was exported */

static void open_file(void *unused) {
    int descriptor;
    (void)unused;
    strcpy(path, "build/export-XXXXXX");
    if ((descriptor = mkstemp(path)) < 0) perror("mtan: build"), exit(2);
    close(descriptor);
}

static void close_file(void *unused) {
    (void)unused;
    if (remove(path) != 0) perror("mtan: build"), exit(2);
}

/* ---- a model file, and its header ---- */

static const char *const awkward_names[] = {"a \"quoted\\ one", "what?\?/then", "\xC3\xA9t\xC3\xA9 */\n0"};

static void fill_prep(prep *p) {
    memset(p, 0, sizeof *p), p->positive = -1;
    p->kind = PREP_ZSCORE, p->first = 1;
    for (int part = 0; part < SPLIT_PARTS; part++) p->time_scale[part] = part == SPLIT_TEST ? 48.1 : 7;
    for (int i = 0; i < TINY_CHANNELS; i++) {
        mtan_prep_channel c = prep_untouched();
        c.offset = (mtan_real)0.1f * (mtan_real)(i + 1), c.scale = (mtan_real)3 / (mtan_real)(i + 7);
        if (i == 1) c.low = -2, c.high = (mtan_real)2.5f, c.has = MTAN_HAS_LOW | MTAN_HAS_HIGH;
        if (i == 2) c.missing = -1, c.high = 9, c.has = MTAN_HAS_HIGH | MTAN_HAS_MISSING;
        arrput(p->channel, c);
        arrput(p->channels, tool_text(awkward_names[i]));
    }
    arrput(p->classes, tool_text("no"));
    arrput(p->classes, tool_text("yes"));
}

/* Writes t to the file and exports it; NULL with the reason in `error`. */
static char *exported(const tiny_model *t, const mtan_file_pair *pairs, size_t n, const char *name, char *error) {
    const export_settings s = {name, "a/b*/c", 20, 12};
    size_t length = 0;
    char *text = NULL;
    bundle b;
    prep p;
    fill_prep(&p);
    if (!bundle_write(path, &t->model, NULL, &p, pairs, n, error)) printf("  BAD %s\n", error), exit(2);
    prep_free(&p);
    if (!bundle_read(&b, path, error)) return NULL;
    text = export_text(&b, &s, &length, &need, error);
    if (text && strlen(text) != length) printf("  BAD the text holds a zero\n"), exit(2);
    bundle_free(&b);
    return text;
}

/* ---- reading C ---- */

/* A number; with the suffix f it is a float. */
static mtan_real literal_at(const char *at, char **end) {
    const float narrow = strtof(at, end);
    return **end == 'f' ? ((*end)++, (mtan_real)narrow) : (mtan_real)strtod(at, end);
}

/* The numbers of an array, in order; stb_ds. Braces and comments are passed over. */
static mtan_real *array_of(const char *text, const char *name) {
    char key[64], *end;
    mtan_real *out = NULL;
    snprintf(key, sizeof key, "model_%s[] = {", name);
    const char *at = strstr(text, key);
    if (!at) return NULL;
    for (at += strlen(key); strncmp(at, "};", 2) != 0; at = end) {
        end = (char *)(uintptr_t)at + 1;
        if (strncmp(at, "/*", 2) == 0) end = strstr(at, "*/") + 2;
        else if (strchr("-0123456789", *at)) arrput(out, literal_at(at, &end));
    }
    return out;
}

static int same_array(const char *text, const char *name, const mtan_real *expected, size_t n) {
    mtan_real *x = array_of(text, name);
    const int good = arrlenu(x) == n && check_same(name, x, expected, n * sizeof *x);
    if (arrlenu(x) != n) printf("  BAD %s: %zu numbers instead of %zu\n", name, arrlenu(x), n);
    arrfree(x);
    return good;
}

static long number_of(const char *text, const char *name) {
    char key[64];
    snprintf(key, sizeof key, " model_%s = ", name);
    const char *at = strstr(text, key);
    return at ? strtol(at + strlen(key), NULL, 0) : -1;
}

/* The index-th string of an array, unescaped. */
static int is_string(const char *text, const char *array, int index, const char *expected) {
    char key[64], got[128] = "";
    size_t n = 0;
    snprintf(key, sizeof key, "model_%s[] = {", array);
    const char *at = strstr(text, key);
    for (at = at ? at + strlen(key) : ""; *at && index >= 0; index--) {
        if (!(at = strchr(at, '"'))) return 0;
        for (n = 0, at++; *at != '"' && n + 1 < sizeof got; n++)
            if (*at != '\\') got[n] = *at++;
            else if (at[1] < '0' || at[1] > '7') got[n] = at[1], at += 2;
            else got[n] = (char)((at[1] - '0') * 64 + (at[2] - '0') * 8 + at[3] - '0'), at += 4;
        got[n] = 0, at++;
    }
    return strcmp(got, expected) == 0;
}

/* ---- the tests ---- */

TEST weights_keep_their_bits(void) {
    static const float awkward[] = {-0.0f,        1.0f,        1e-45f,        1.17549435e-38f, 3.40282347e38f,
                                    -0.1f,        1.00000012f, 16777217.0f,   1e10f,           -1e-10f,
                                    0.333333343f, 123456.789f, 0.0000123456f, -3.14159274f};
    char error[512] = "", hash[64];
    tiny_model t;
    tiny_open(&t, TINY_ENC, 1);
    for (size_t i = 0; i < sizeof awkward / sizeof awkward[0]; i++) t.weights[5 + i] = awkward[i];
    char *text = exported(&t, NULL, 0, "model", error);
    ASSERTm(error, text);
    ASSERT(same_array(text, "weights", t.weights, t.count));
    ASSERT_EQ_FMT((long)t.count, number_of(text, "weight_count"), "%ld");
    float *narrow = tool_calloc(t.count, sizeof *narrow);
    for (size_t i = 0; i < t.count; i++) narrow[i] = (float)t.weights[i];
    snprintf(hash, sizeof hash, "model_hash = 0x%016llxu;",
             (unsigned long long)mtan_bytes_hash(narrow, t.count * sizeof *narrow));
    const uint16_t one = 1;
    if (*(const uint8_t *)&one) ASSERT(strstr(text, hash)); /* little-endian: the bytes are the hash's */
    free(narrow), free(text);
    ASSERT(tiny_close(&t));
    PASS();
}

/* Every setting is assigned, and every C name in it is one that mtan.h has. */
TEST settings_are_those_of_the_model(int kind) {
    char error[512] = "", value[64], key[96];
    size_t bytes;
    char *header = file_read("mtan.h", &bytes, error);
    tiny_model t;
    ASSERTm(error, header);
    tiny_open(&t, (tiny_kind)kind, 1);
    char *text = exported(&t, NULL, 0, "model", error);
    ASSERTm(error, text);
    for (int32_t i = 0; mtan_config_key(i); i++) {
        ASSERT_EQ(MTAN_OK, mtan_config_get(&t.model.config, mtan_config_key(i), value, sizeof value));
        snprintf(key, sizeof key, "    c.%s = ", mtan_config_key(i));
        const char *at = strstr(text, key);
        ASSERTm(key, at);
        at += strlen(key);
        const size_t n = strcspn(at, ";");
        if (strncmp(at, "MTAN_", 5) != 0) {
            ASSERT_EQm(key, strtod(value, NULL), strtod(at, NULL));
            continue;
        }
        char name[64], *end;
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        for (end = value; *end; end++) *end = (char)(*end >= 'a' && *end <= 'z' ? *end - 32 : *end);
        ASSERTm(name, strstr(header, name) && strlen(name) > strlen(value) &&
                          strcmp(name + strlen(name) - strlen(value), value) == 0);
    }
    free(text), free(header);
    ASSERT(tiny_close(&t));
    PASS();
}

TEST given_points_come_along(void) {
    static const mtan_real points[] = {(mtan_real)0.1f, (mtan_real)0.25f, (mtan_real)0.7f, 1};
    char error[512] = "";
    tiny_model t;
    tiny_open(&t, TINY_ENC, 1);
    t.model.config.reference = MTAN_REF_GIVEN, t.model.config.ref_points = 4, t.model.config.ref = points;
    char *text = exported(&t, NULL, 0, "model", error);
    ASSERTm(error, text);
    ASSERT(same_array(text, "ref", points, 4));
    ASSERT(strstr(text, "c.ref = model_ref;"));
    free(text);
    ASSERT(tiny_close(&t));
    PASS();
}

/* Row i of the table of channels: nine numbers and the flags. */
static int same_row(const char *text, int i, const mtan_prep_channel *c) {
    const mtan_real expected[] = {c->offset, c->scale, c->low,  c->high, c->missing,
                                  c->fill,   c->least, c->most, c->band};
    const char *at = strstr(text, "model_prep_channels[] = {");
    char *end = NULL;
    for (at = at ? strchr(at + strlen("model_prep_channels[] = "), '{') : NULL; at && i >= 0; i--)
        at = strchr(at + 1, '{');
    for (int k = 0; at && k < 9; k++, at = end)
        if (!(literal_at(at + 1 + (k > 0), &end) == expected[k])) return 0;
    return at && strtoul(at + 2, &end, 10) == c->has && *end == 'u';
}

TEST preprocessing_comes_along(void) {
    char error[512] = "";
    tiny_model t;
    prep p;
    tiny_open(&t, TINY_ENC, 1);
    char *text = exported(&t, NULL, 0, "model", error);
    ASSERTm(error, text);
    fill_prep(&p);
    for (int i = 0; i < TINY_CHANNELS; i++) ASSERT(same_row(text, i, &p.channel[i]));
    ASSERT(
        strstr(text, "\n    48.100000000000001, 1, 0,\n    \"\",\n")); /* the scale of new records, no span, no unit */
    for (int i = 0; i < TINY_CHANNELS; i++) ASSERT(is_string(text, "channel_names", i, awkward_names[i]));
    ASSERT(is_string(text, "class_names", 1, "yes"));
    ASSERT(strstr(text, "\?\?") == NULL); /* trigraphs */
    prep_free(&p), free(text);
    ASSERT(tiny_close(&t));
    PASS();
}

/* The top of the header says what its numbers are counted in. */
TEST units_are_told(void) {
    static const struct {
        tiny_kind kind;
        const char *words;
    } cases[] = {
        {TINY_ENC, "Times are in the unit of the training data, counted as in the training data: model_prepare"},
        {TINY_INTERP, "mtan_prep_raw_value(&model_prep, channel, mean)"}};
    char error[512] = "";
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tiny_model t;
        tiny_open(&t, cases[i].kind, 1);
        char *text = exported(&t, NULL, 0, "model", error);
        ASSERTm(error, text);
        ASSERT(strstr(text, cases[i].words));
        free(text);
        ASSERT(tiny_close(&t));
    }
    PASS();
}

/* Runs a record in as much memory as the header says, and not a byte more. */
static mtan_status run_as_exported(const mtan_model *m, const char *text, const mtan_record *r, mtan_real *out) {
    const mtan_bounds most = {1, (int32_t)number_of(text, "events"), (int32_t)number_of(text, "times")};
    const int32_t points = (int32_t)number_of(text, "points");
    const int small = strstr(text, "\n#define model_is_small 1\n") != NULL;
    size_t bytes = 0;
    mtan_predictor run;
    mtan_status status = small ? mtan_small_size(m, points, &bytes) : mtan_predictor_size(m, &most, &bytes);
    void *memory = guard_alloc(bytes);
    if (bytes != (size_t)number_of(text, "memory") || bytes != need.memory) status = MTAN_ERR_SIZE;
    if (status == MTAN_OK && small) status = mtan_small_classify(m, r, points, memory, bytes, out);
    else if (status == MTAN_OK) status = mtan_predictor_init(&run, m, &most, memory, bytes);
    if (status == MTAN_OK && !small)
        status = m->config.classify == MTAN_CLASSIFY_NONE ? mtan_predictor_interpolate(&run, r, out, NULL)
                                                          : mtan_predictor_classify(&run, r, 1, out);
    return guard_free(memory) ? status : MTAN_ERR_MEMORY;
}

/* Reads the record out of the header and runs it. */
static mtan_status run_test_record(tiny_model *t, const char *text, mtan_real *out) {
    mtan_real *flat = array_of(text, "test_events"), *times = array_of(text, "test_times");
    mtan_event *events = NULL;
    mtan_record r;
    memset(&r, 0, sizeof r);
    for (size_t i = 0; i + 2 < arrlenu(flat); i += 3) {
        const mtan_event e = {flat[i], (int32_t)flat[i + 1], flat[i + 2]};
        arrput(events, e);
    }
    r.events = events, r.n_events = (int32_t)number_of(text, "test_event_count");
    r.n_times = (int32_t)number_of(text, "test_time_count"), r.times = r.n_times > 0 ? times : NULL;
    r.id = strtoull(strstr(text, "model_test_id = ") + strlen("model_test_id = "), NULL, 0);
    const mtan_status status = run_as_exported(&t->model, text, &r, out);
    arrfree(flat), arrfree(times), arrfree(events);
    return status;
}

static const char *prediction_of(int kind) {
    return kind == TINY_ENC      ? "return mtan_small_classify(m, record, model_points, memory, model_memory, out);"
           : kind == TINY_INTERP ? "return mtan_predictor_interpolate(run, record, out, 0);"
                                 : "return mtan_predictor_classify(run, record, 1, out);";
}

/* Without a record in the file one is made up; its output is what the model gives. */
TEST record_is_made_up(int kind) {
    char error[512] = "";
    mtan_real out[64];
    tiny_model t;
    bundle b;
    tiny_open(&t, (tiny_kind)kind, 1);
    char *text = exported(&t, NULL, 0, "model", error);
    ASSERTm(error, text);
    ASSERT(bundle_read(&b, path, error)); /* for the backend that the exporter took */
    t.model.backend = b.model.backend;
    ASSERT_EQ(t.model.backend->fused != 0, number_of(text, "test_fused"));
    const size_t n = (size_t)number_of(text, "test_output_count");
    ASSERT(n > 0 && n <= sizeof out / sizeof out[0]);
    ASSERT_EQ(MTAN_OK, run_test_record(&t, text, out));
    ASSERT(same_array(text, "test_output", out, n));
    ASSERT(strstr(text, prediction_of(kind)));
    bundle_free(&b), free(text);
    ASSERT(tiny_close(&t));
    PASS();
}

#define THREE_EVENTS                                                                                                   \
    { "mtan.golden.events", "0 1 0.5 0.100000001 2 -1.5 0.899999976 0 0.25" }

/* A predictor's output goes out as it stands in the file, whatever this machine would compute. */
TEST record_of_the_file_is_taken(void) {
    static const mtan_file_pair pairs[] = {THREE_EVENTS,
                                           {"mtan.golden.times", ""},
                                           {"mtan.golden.output", "0.25 0.75"},
                                           {"mtan.golden.id", "00000000000000ff"},
                                           {"mtan.golden.fused", "1"}};
    static const mtan_real events[] = {
        0, 1, (mtan_real)0.5f, (mtan_real)0.1f, 2, (mtan_real)-1.5f, (mtan_real)0.9f, 0, (mtan_real)0.25f};
    static const mtan_real output[] = {(mtan_real)0.25f, (mtan_real)0.75f};
    char error[512] = "";
    tiny_model t;
    tiny_open(&t, TINY_FULL, 1);
    char *text = exported(&t, pairs, 5, "model", error);
    ASSERTm(error, text);
    if (sizeof(mtan_real) == sizeof(float)) ASSERT(same_array(text, "test_events", events, 9));
    ASSERT(same_array(text, "test_output", output, 2));
    ASSERT_EQ_FMT(3L, number_of(text, "test_event_count"), "%ld");
    ASSERT_EQ_FMT(0L, number_of(text, "test_time_count"), "%ld");
    ASSERT_EQ_FMT(1L, number_of(text, "test_fused"), "%ld");
    ASSERT_EQ_FMT(255L, number_of(text, "test_id"), "%ld");
    free(text);
    ASSERT(tiny_close(&t));
    PASS();
}

/* mtan_small_classify gives other bits than the predictor that wrote the file, and the header has its; but no other result. */
TEST small_output_is_near_that_of_the_file(void) {
    static const mtan_event events[] = {
        {0, 1, (mtan_real)0.5f}, {(mtan_real)0.1f, 2, (mtan_real)-1.5f}, {(mtan_real)0.9f, 0, (mtan_real)0.25f}};
    static unsigned char memory[65536];
    mtan_real before[2], out[2];
    char error[512] = "", said[128], *text;
    mtan_record r;
    tiny_model t;
    tiny_open(&t, TINY_ENC, 1);
    memset(&r, 0, sizeof r);
    r.events = events, r.n_events = 3;
    ASSERT_EQ(MTAN_OK, mtan_small_classify(&t.model, &r, 1, memory, sizeof memory, before));
    for (int wrong = 0; wrong < 2; wrong++) {
        snprintf(said, sizeof said, "%.9g %.9g", (double)before[0] + (wrong ? 2e-4 : 2e-5), (double)before[1]);
        const mtan_file_pair pairs[] = {THREE_EVENTS, {"mtan.golden.output", said}, {"mtan.golden.id", "0"}};
        text = exported(&t, pairs, 3, "model", error);
        if (wrong) {
            ASSERT(!text && strstr(error, "another output"));
            continue;
        }
        ASSERTm(error, text);
        ASSERT_EQ_FMT(3L, number_of(text, "test_event_count"), "%ld");
        ASSERT_EQ(MTAN_OK, run_test_record(&t, text, out));
        if (number_of(text, "test_fused") == mtan_backend_fused(t.model.backend))
            ASSERT(same_array(text, "test_output", out, 2));
        free(text);
    }
    ASSERT(tiny_close(&t));
    PASS();
}

/* What the header says of flash and RAM is what board_need_of says, and the text has it. */
TEST needs_are_told(int kind) {
    char error[512] = "", words[160];
    board_need expected;
    tiny_model t;
    tiny_open(&t, (tiny_kind)kind, 1);
    char *text = exported(&t, NULL, 0, "model", error);
    ASSERTm(error, text);
    ASSERT_EQ(kind == TINY_ENC, board_need_of(&expected, &t.model.config, 0));
    ASSERT_EQ_FMT(4 * t.count, need.weights, "%zu");
    ASSERT_EQ_FMT((long)need.memory, number_of(text, "memory"), "%ld");
    if (kind == TINY_ENC) ASSERT_EQ_FMT(expected.memory, need.memory, "%zu");
    snprintf(words, sizeof words, " * Flash: %zu bytes of weights, and about %d KB of code", need.weights,
             (kind == TINY_ENC ? BOARD_CODE : BOARD_PREDICTOR_CODE) / 1024);
    ASSERT(strstr(text, words));
    snprintf(words, sizeof words, " RAM: %zu bytes of memory, and about\n * %d KB of stack, ", need.memory,
             (kind == TINY_ENC ? BOARD_STACK : BOARD_PREDICTOR_STACK) / 1024);
    ASSERT(strstr(text, words));
    free(text);
    ASSERT(tiny_close(&t));
    PASS();
}

TEST what_c_cannot_say_is_refused(void) {
    static const char *const names[] = {"", "1st", "a-b", "mtan", "mtan_x", "_x", "a b", "int main(){}//"};
    static const mtan_file_pair infinite[] = {
        {"mtan.golden.events", "0 0 1"}, {"mtan.golden.output", "inf 0"}, {"mtan.golden.id", "0"}};
    static const mtan_file_pair late[] = {
        {"mtan.golden.events", "nan 0 1"}, {"mtan.golden.output", "1 0"}, {"mtan.golden.id", "0"}};
    char error[512] = "";
    tiny_model t;
    tiny_open(&t, TINY_ENC, 1);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        ASSERT_EQm(names[i], NULL, exported(&t, NULL, 0, names[i], error));
    ASSERT(strstr(error, "--name"));
    ASSERT_EQ(NULL, exported(&t, infinite, 3, "model", error));
    ASSERT_EQ(NULL, exported(&t, late, 3, "model", error));
    ASSERT(strstr(error, "self-test"));
    char *text = exported(&t, NULL, 0, "Other_2", error);
    ASSERT(text && strstr(text, "Other_2_weights[]") && !strstr(text, " model_"));
    ASSERT(strstr(text, "from a/b_/c.")); /* the source cannot end the comment */
    free(text);
    t.weights[7] = (mtan_real)NAN;
    ASSERT_EQ(NULL, exported(&t, NULL, 0, "model", error));
    ASSERT(strstr(error, "not finite"));
    ASSERT(tiny_close(&t));
    PASS();
}

SUITE(export_suite) {
    static const int kinds[] = {TINY_ENC, TINY_FULL, TINY_INTERP, TINY_ENC_TIME};
    GREATEST_SET_SETUP_CB(open_file, NULL);
    GREATEST_SET_TEARDOWN_CB(close_file, NULL);
    RUN_TEST(weights_keep_their_bits);
    for (int kind = 0; kind < TINY_KINDS; kind++) RUN_TEST1(settings_are_those_of_the_model, kind);
    RUN_TEST(given_points_come_along);
    RUN_TEST(preprocessing_comes_along);
    RUN_TEST(units_are_told);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) RUN_TEST1(record_is_made_up, kinds[i]);
    RUN_TEST(record_of_the_file_is_taken);
    RUN_TEST(small_output_is_near_that_of_the_file);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) RUN_TEST1(needs_are_told, kinds[i]);
    RUN_TEST(what_c_cannot_say_is_refused);
    GREATEST_SET_SETUP_CB(NULL, NULL);
    GREATEST_SET_TEARDOWN_CB(NULL, NULL);
}
