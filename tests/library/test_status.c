/* Bad input: every status through every function that gives it, with nothing touched by a call that failed; and input that
 * is unusual but allowed. */
#include <greatest.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "small.h"
#include "published.h"
#include "caller.h"

/* What a call that fails must leave as it is starts with this byte. */
enum { PATTERN = 0x5b, TOP = 1 << 20 };

static void paint(void *block, size_t bytes) {
    memset(block, PATTERN, bytes);
}

static int painted(const void *block, size_t bytes) {
    const unsigned char *p = block;
    for (size_t i = 0; i < bytes; i++)
        if (p[i] != PATTERN) return 0;
    return 1;
}

static int is_status(mtan_status s) {
    return s <= MTAN_OK && s >= MTAN_ERR_NUMERIC;
}

static int finite_reals(const mtan_real *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!(x[i] - x[i] == 0)) return 0;
    return 1;
}

/* Prints what was wrong: a table of cases says more than a line number. */
static int expect(const char *what, mtan_status expected, mtan_status got) {
    if (got != expected) printf("  BAD %s: status %d where %d is due\n", what, (int)got, (int)expected);
    return got == expected;
}

#define EXPECT(status, call) ASSERT(expect(#call, status, call))

TEST every_status_has_its_own_message(void) {
    const mtan_status unknown[] = {(mtan_status)(MTAN_ERR_NUMERIC - 1), (mtan_status)1, (mtan_status)INT_MIN};
    for (int i = 0; i >= MTAN_ERR_NUMERIC; i--) {
        const char *message = mtan_status_message((mtan_status)i);
        ASSERT(message && strlen(message) > 3);
        for (int k = 0; k > i; k--) ASSERT(strcmp(message, mtan_status_message((mtan_status)k)) != 0);
        for (int k = 0; k < 3; k++) ASSERT(strcmp(message, mtan_status_message(unknown[k])) != 0);
    }
    ASSERT(mtan_status_message(unknown[0]) && *mtan_status_message(unknown[0]));
    PASS();
}

TEST a_backend_says_what_it_is(void) {
    mtan_backend fused = mtan_backend_scalar;
    fused.name = "mine", fused.fused = 1;
    ASSERT_STR_EQ("scalar", mtan_backend_name(&mtan_backend_scalar));
    ASSERT_STR_EQ("mine", mtan_backend_name(&fused));
    ASSERT_EQ(1, mtan_backend_fused(&fused));
    ASSERT_STR_EQ("", mtan_backend_name(NULL));
    ASSERT_EQ(0, mtan_backend_fused(NULL));
    PASS();
}

/* SemVer, without a build or a candidate behind it. */
TEST the_version_is_that_of_the_header(void) {
    int major, minor, patch;
    char again[32];
    ASSERT_STR_EQ(MTAN_VERSION, mtan_version());
    ASSERT_EQ(3, sscanf(mtan_version(), "%d.%d.%d", &major, &minor, &patch));
    snprintf(again, sizeof again, "%d.%d.%d", major, minor, patch);
    ASSERT_STR_EQ(again, mtan_version());
    PASS();
}

/* ---- configurations ---- */

/* A config that is no model is refused, with the same status, by everything that takes one. */
static int refused(const char *what, const mtan_config *config, mtan_status expected) {
    mtan_real weights[64];
    mtan_param param;
    mtan_model model;
    int ok = 1;
    paint(weights, sizeof weights);
    paint(&param, sizeof param);
    paint(&model, sizeof model);
    ok &= expect(what, expected, mtan_config_check(config));
    ok &= expect(what, expected, mtan_param_at(config, 0, &param));
    ok &= expect(what, expected, mtan_weights_init(config, weights, mtan_weights_count(config), 1));
    ok &= expect(what, expected, mtan_model_init(&model, config, weights, mtan_weights_count(config)));
    ok &= mtan_param_count(config) == 0 && mtan_weights_count(config) == 0;
    ok &= painted(weights, sizeof weights) && painted(&param, sizeof param) && painted(&model, sizeof model);
    return ok;
}

static const struct {
    const char *settings;
    mtan_status status;
} bad_settings[] = {
    {"channels 0", MTAN_ERR_CONFIG},
    {"channels -1", MTAN_ERR_CONFIG},
    {"classes 1", MTAN_ERR_CONFIG},
    {"classes -1", MTAN_ERR_CONFIG},
    {"embed 0", MTAN_ERR_CONFIG},
    {"embed 1", MTAN_ERR_CONFIG},
    {"embed -8", MTAN_ERR_CONFIG},
    {"enc_heads 0", MTAN_ERR_CONFIG},
    {"enc_heads -2", MTAN_ERR_CONFIG},
    {"enc_heads 3", MTAN_ERR_CONFIG},
    {"enc_heads 16", MTAN_ERR_CONFIG},
    {"dec_heads 0", MTAN_ERR_CONFIG},
    {"dec_heads 3", MTAN_ERR_CONFIG},
    {"dec_heads 16", MTAN_ERR_CONFIG},
    {"enc_hidden 0", MTAN_ERR_CONFIG},
    {"dec_hidden 0", MTAN_ERR_CONFIG},
    {"latent 0", MTAN_ERR_CONFIG},
    {"ref_points 0", MTAN_ERR_CONFIG},
    {"mlp_hidden 0", MTAN_ERR_CONFIG},
    {"head_hidden -1", MTAN_ERR_CONFIG},
    {"samples 0", MTAN_ERR_CONFIG},
    {"predict_samples -1", MTAN_ERR_CONFIG},
    {"embedding fixed embed 7", MTAN_ERR_CONFIG},
    {"encoder rbf enc_heads 2", MTAN_ERR_CONFIG},
    {"encoder rnn3 enc_heads 2", MTAN_ERR_CONFIG},
    {"decoder rbf dec_heads 2", MTAN_ERR_CONFIG},
    {"decoder rnn3 dec_heads 2", MTAN_ERR_CONFIG},
    {"embed_base 0", MTAN_ERR_CONFIG},
    {"embed_base -1", MTAN_ERR_CONFIG},
    {"noise_std 0", MTAN_ERR_CONFIG},
    {"noise_std -0.1", MTAN_ERR_CONFIG},
    {"alpha -1", MTAN_ERR_CONFIG},
    {"kind enc classify none", MTAN_ERR_CONFIG},
    {"kind enc classify time reference even", MTAN_ERR_CONFIG},
    {"kind enc classify time reference given", MTAN_ERR_CONFIG},
    /* more than a dimension may be, and products that overflow 32 bits */
    {"channels 1048577", MTAN_ERR_SIZE},
    {"samples 1000000000", MTAN_ERR_SIZE},
    {"ref_points 1000000000", MTAN_ERR_SIZE},
    {"enc_hidden 1000000000", MTAN_ERR_SIZE},
    {"channels 1048576 enc_hidden 1048576", MTAN_ERR_SIZE},
    {"channels 1048576 embed 1048576 enc_heads 1048576", MTAN_ERR_SIZE},
    {"embed 1048576 enc_heads 1048576 embed_heads per_head", MTAN_ERR_SIZE},
    {"embed 1048576 dec_heads 1048576 embed_heads per_head", MTAN_ERR_SIZE},
    {"embed 1048576 dec_heads 1048576 dec_hidden 1048576", MTAN_ERR_SIZE},
    {"channels 262144 embed 8192 enc_heads 8192 enc_hidden 1", MTAN_ERR_SIZE}, /* 2 D H is 2^32: 0 in 32 bits */
    {"embed 8192 enc_heads 8192 ref_points 1048576", MTAN_ERR_SIZE},           /* H K is 2^33 */
    {"embed 8192 dec_heads 8192 ref_points 1048576", MTAN_ERR_SIZE},
    {"embed 1048576", MTAN_ERR_SIZE},
    {"enc_hidden 1048576", MTAN_ERR_SIZE},
    {"dec_hidden 1048576", MTAN_ERR_SIZE},
    {"head_hidden 1048576", MTAN_ERR_SIZE},
    {"latent 1048576 dec_hidden 1048576", MTAN_ERR_SIZE},
    {"mlp_hidden 1048576 latent 1048576", MTAN_ERR_SIZE},
    {"classes 1048576 head_hidden 1048576", MTAN_ERR_SIZE},
};

TEST bad_settings_are_refused(void) {
    small_model s;
    ASSERT(small_open_named(&s, "full record"));
    for (size_t i = 0; i < sizeof bad_settings / sizeof bad_settings[0]; i++) {
        mtan_config c = s.config;
        ASSERT(small_apply(&c, bad_settings[i].settings));
        ASSERT(refused(bad_settings[i].settings, &c, bad_settings[i].status));
    }
    ASSERT(small_close(&s));
    PASS();
}

TEST bad_enumerations_are_refused(void) {
    static const int bad[] = {-1, 3, 99, INT_MIN, INT_MAX};
    small_model s;
    ASSERT(small_open_named(&s, "full record"));
    for (size_t i = 0; i < 5; i++) {
        mtan_config c;
#define TRY_FIELD(field)                                                                                               \
    do {                                                                                                               \
        c = s.config;                                                                                                  \
        memcpy(&c.field, &bad[i], sizeof bad[i]);                                                                      \
        ASSERT(refused(#field, &c, MTAN_ERR_CONFIG));                                                                  \
    } while (0)
        TRY_FIELD(kind);
        TRY_FIELD(classify);
        TRY_FIELD(encoder);
        TRY_FIELD(decoder);
        TRY_FIELD(embedding);
        TRY_FIELD(embed_heads);
        TRY_FIELD(frequencies);
        TRY_FIELD(variance);
        TRY_FIELD(reference);
        TRY_FIELD(bound);
        TRY_FIELD(rule);
#undef TRY_FIELD
    }
    ASSERT(small_close(&s));
    PASS();
}

TEST bad_real_settings_are_refused(void) {
    const double bad[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300};
    small_model s;
    ASSERT(small_open_named(&s, "full record"));
    for (size_t i = 0; i < 5; i++) {
        mtan_config c = s.config;
        c.embed_base = bad[i];
        ASSERT(refused("embed_base", &c, MTAN_ERR_CONFIG));
        c = s.config, c.embed_scale = bad[i];
        ASSERT(refused("embed_scale", &c, MTAN_ERR_CONFIG));
        c = s.config, c.noise_std = bad[i];
        ASSERT(refused("noise_std", &c, MTAN_ERR_CONFIG));
        c = s.config, c.alpha = bad[i];
        ASSERT(refused("alpha", &c, MTAN_ERR_CONFIG));
    }
    ASSERT(small_close(&s));
    PASS();
}

TEST bad_reference_points_are_refused(void) {
    mtan_real points[4] = {0, 1, 2, 3};
    const mtan_real bad[] = {(mtan_real)NAN, (mtan_real)INFINITY, (mtan_real)-INFINITY};
    small_model s;
    ASSERT(small_open_named(&s, "enc record given"));
    s.config.ref = NULL;
    ASSERT(refused("no points", &s.config, MTAN_ERR_CONFIG));
    s.config.ref = points;
    EXPECT(MTAN_OK, mtan_config_check(&s.config));
    for (int i = 0; i < 3; i++) {
        points[3] = bad[i];
        ASSERT(refused("a point that is not finite", &s.config, MTAN_ERR_CONFIG));
    }
    ASSERT(small_close(&s));
    PASS();
}

TEST config_init_and_presets(void) {
    mtan_config c;
    paint(&c, sizeof c);
    EXPECT(MTAN_ERR_NULL, mtan_config_init(NULL, MTAN_ENC, MTAN_CLASSIFY_RECORD, 3, 2));
    EXPECT(MTAN_ERR_CONFIG, mtan_config_init(&c, MTAN_ENC, MTAN_CLASSIFY_RECORD, 0, 2));
    ASSERTm("a config that was refused is written", painted(&c, sizeof c));
    EXPECT(MTAN_ERR_CONFIG, mtan_config_init(&c, (mtan_kind)9, MTAN_CLASSIFY_RECORD, 3, 2));
    EXPECT(MTAN_ERR_CONFIG, mtan_config_init(&c, MTAN_ENC, (mtan_classify_kind)9, 3, 2));
    EXPECT(MTAN_ERR_CONFIG, mtan_config_init(&c, MTAN_ENC, MTAN_CLASSIFY_NONE, 3, 0));
    EXPECT(MTAN_ERR_SIZE, mtan_config_init(&c, MTAN_ENC, MTAN_CLASSIFY_RECORD, INT_MAX, 2));
    EXPECT(MTAN_OK, mtan_config_init(&c, MTAN_FULL, MTAN_CLASSIFY_NONE, 3, 0));
    EXPECT(MTAN_ERR_NULL, mtan_config_preset(NULL, MTAN_FAITHFUL));
    mtan_config before = c;
    EXPECT(MTAN_ERR_CONFIG, mtan_config_preset(&c, (mtan_preset)5));
    ASSERT(memcmp(&before, &c, sizeof c) == 0);
    EXPECT(MTAN_ERR_NULL, mtan_config_check(NULL));
    PASS();
}

/* ---- settings as text ---- */

TEST every_setting_goes_through_text(void) {
    int32_t n = 0;
    for (int i = 0; published_names[i]; i++) {
        mtan_config config, copy;
        ASSERT(published_config(&config, published_names[i]));
        ASSERT_EQ(MTAN_OK, mtan_config_preset(&config, (mtan_preset)(i % 2)));
        config.noise_std = 0.0125, config.embed_scale = -47.5;
        memset(&copy, 0, sizeof copy);
        for (n = 0; mtan_config_key(n); n++) {
            char text[64], again[64];
            const char *key = mtan_config_key(n);
            EXPECT(MTAN_OK, mtan_config_get(&config, key, text, sizeof text));
            EXPECT(MTAN_OK, mtan_config_set(&copy, key, text));
            EXPECT(MTAN_OK, mtan_config_get(&copy, key, again, strlen(text) + 1));
            ASSERT_STR_EQ(text, again);
            paint(again, sizeof again);
            for (size_t size = 0; size <= strlen(text); size++)
                EXPECT(MTAN_ERR_MEMORY, mtan_config_get(&copy, key, again, size));
            ASSERT(painted(again, sizeof again));
        }
        ASSERT(memcmp(&copy, &config, sizeof copy) == 0);
    }
    ASSERT(n > 20 && !mtan_config_key(-1) && !mtan_config_key(n + 1) && !mtan_config_key(INT_MAX));
    PASS();
}

/* Down to the smallest number there is, which no decimal of a setting's can say. */
TEST tiny_settings_go_through_text(void) {
    static const double tiny[] = {0,         1e-15,       1e-290,   0x1.fffffffffffffp-971, 1e-293, 1e-300,
                                  0x1p-1022, 0x0.8p-1022, 0x1p-1074};
    mtan_config config, copy;
    char text[64];
    ASSERT_EQ(MTAN_OK, mtan_config_init(&config, MTAN_FULL, MTAN_CLASSIFY_RECORD, 3, 2));
    for (size_t i = 0; i < sizeof tiny / sizeof tiny[0]; i++) {
        config.alpha = tiny[i];
        copy = config;
        copy.alpha = 1;
        EXPECT(MTAN_OK, mtan_config_get(&config, "alpha", text, sizeof text));
        EXPECT(MTAN_OK, mtan_config_set(&copy, "alpha", text));
        ASSERT(memcmp(&config.alpha, &copy.alpha, sizeof copy.alpha) == 0);
    }
    EXPECT(MTAN_ERR_CONFIG, mtan_config_set(&copy, "alpha", "0x10000000000000p-1127"));
    EXPECT(MTAN_ERR_CONFIG, mtan_config_set(&copy, "alpha", "0x1p-11260"));
    PASS();
}

/* As many digits as a double has: no decimal below 15 says it, and the text that does reads back as it. */
TEST long_settings_go_through_text(void) {
    static const double numbers[] = {123456.78901234567, 1e6 / 3, 999999999.9999999, -0.1234567890123456};
    static const struct {
        const char *text;
        double number;
    } written[] = {{"1E2", 100}, {"25e-2", 0.25}, {"1e+1", 10}, {"-2.5E-1", -0.25}, {"0xap-2", 2.5}, {".5", 0.5}};
    mtan_config config;
    char text[64];
    ASSERT_EQ(MTAN_OK, mtan_config_init(&config, MTAN_FULL, MTAN_CLASSIFY_RECORD, 3, 2));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        config.embed_scale = numbers[i];
        EXPECT(MTAN_OK, mtan_config_get(&config, "embed_scale", text, sizeof text));
        config.embed_scale = 0;
        EXPECT(MTAN_OK, mtan_config_set(&config, "embed_scale", text));
        ASSERT_MEM_EQ(&numbers[i], &config.embed_scale, sizeof numbers[i]);
    }
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        EXPECT(MTAN_OK, mtan_config_set(&config, "embed_scale", written[i].text));
        ASSERT_MEM_EQ(&written[i].number, &config.embed_scale, sizeof(double));
    }
    PASS();
}

TEST bad_text_is_refused(void) {
    static const char *const bad[] = {"",
                                      " ",
                                      "x",
                                      "-",
                                      ".",
                                      "+1",
                                      "1 ",
                                      " 1",
                                      "0x10",
                                      "1e",
                                      "1e+",
                                      "1.2.3",
                                      "nan",
                                      "inf",
                                      "1e999",
                                      "-1e-999",
                                      "--1",
                                      "1,5",
                                      "99999999999999999999999999999999",
                                      "1./",
                                      "1.5x",
                                      "1ex",
                                      "1e/",
                                      "1e5x",
                                      "1e99999",
                                      "0x",
                                      "0x123456789abcdefp-1", /* 60 bits */
                                      "0x1q-1",
                                      "0x1p+1",
                                      "0x1p-",
                                      "0x1p-/",
                                      "0x1p-1x",
                                      "0x1p-100000"};
    static const char *const bad_whole[] = {"1.5", "2147483648", "-2147483649", "1e10", "1e-1"};
    small_model s;
    ASSERT(small_open_named(&s, "full record"));
    mtan_config before = s.config;
    for (int32_t i = 0; mtan_config_key(i); i++) {
        for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
            ASSERTm(bad[k], mtan_config_set(&s.config, mtan_config_key(i), bad[k]) == MTAN_ERR_CONFIG);
        for (size_t k = 0; k < sizeof bad_whole / sizeof bad_whole[0]; k++) {
            char *field = strstr("embed_base embed_scale noise_std alpha interval slowest fastest", mtan_config_key(i));
            if (field && strcmp(mtan_config_key(i), "embed") != 0) continue;
            ASSERTm(bad_whole[k], mtan_config_set(&s.config, mtan_config_key(i), bad_whole[k]) == MTAN_ERR_CONFIG);
        }
    }
    EXPECT(MTAN_ERR_MISSING, mtan_config_set(&s.config, "", "1"));
    EXPECT(MTAN_ERR_MISSING, mtan_config_set(&s.config, "channel", "1"));
    EXPECT(MTAN_ERR_MISSING, mtan_config_set(&s.config, "channels ", "1"));
    EXPECT(MTAN_ERR_MISSING, mtan_config_set(&s.config, "ref", "1"));
    EXPECT(MTAN_ERR_NULL, mtan_config_set(NULL, "channels", "1"));
    EXPECT(MTAN_ERR_NULL, mtan_config_set(&s.config, NULL, "1"));
    EXPECT(MTAN_ERR_NULL, mtan_config_set(&s.config, "channels", NULL));
    ASSERT(memcmp(&before, &s.config, sizeof before) == 0);
    ASSERT(small_close(&s));
    PASS();
}

TEST bad_settings_have_no_text(void) {
    static const int bad[] = {-1, 3, INT_MIN, INT_MAX};
    char text[64];
    small_model s;
    ASSERT(small_open_named(&s, "full record"));
    paint(text, sizeof text);
    EXPECT(MTAN_ERR_NULL, mtan_config_get(NULL, "kind", text, sizeof text));
    EXPECT(MTAN_ERR_NULL, mtan_config_get(&s.config, NULL, text, sizeof text));
    EXPECT(MTAN_ERR_NULL, mtan_config_get(&s.config, "kind", NULL, sizeof text));
    EXPECT(MTAN_ERR_MISSING, mtan_config_get(&s.config, "kin", text, sizeof text));
    for (int i = 0; i < 4; i++) {
        mtan_config c = s.config;
        memcpy(&c.bound, &bad[i], sizeof bad[i]);
        EXPECT(MTAN_ERR_CONFIG, mtan_config_get(&c, "bound", text, sizeof text));
    }
    ASSERT(painted(text, sizeof text));
    ASSERT(small_close(&s));
    PASS();
}

/* A number that no text stands for. What cannot be read back must not be written. */
TEST reals_without_text_are_refused(void) {
    const double bad[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300};
    char text[64];
    small_model s;
    ASSERT(small_open_named(&s, "full record"));
    paint(text, sizeof text);
    for (int i = 0; i < 5; i++) {
        s.config.alpha = bad[i];
        EXPECT(MTAN_ERR_CONFIG, mtan_config_get(&s.config, "alpha", text, sizeof text));
    }
    ASSERT(painted(text, sizeof text));
    ASSERT(small_close(&s));
    PASS();
}

/* ---- a model with a predictor and a trainer ---- */

enum { MOST_RECORDS = 4, MOST_EVENTS = 6, MOST_TIMES = 4, ROOM = 4096 };
static const mtan_bounds desk_bounds = {MOST_RECORDS, MOST_EVENTS, MOST_TIMES};

typedef struct {
    small_model small;
    mtan_predictor predictor;
    mtan_trainer trainer;
    mtan_train_config train;
    void *memory[2];
    mtan_real *before; /* weights, moments: what a failed step must not change */
    int64_t step;
} desk;

static int desk_start(desk *d, const mtan_bounds *predict) {
    size_t bytes = 0;
    if (mtan_predictor_size(&d->small.model, predict, &bytes) != MTAN_OK) return 0;
    d->memory[0] = guard_alloc(bytes);
    if (mtan_predictor_init(&d->predictor, &d->small.model, predict, d->memory[0], bytes) != MTAN_OK) return 0;
    if (mtan_trainer_size(&d->small.model, &d->train, &desk_bounds, &bytes) != MTAN_OK) return 0;
    d->memory[1] = guard_alloc(bytes);
    d->before = malloc(3 * d->small.count * sizeof *d->before);
    return mtan_trainer_init(&d->trainer, &d->small.model, d->small.weights, &d->train, &desk_bounds, d->memory[1],
                             bytes) == MTAN_OK;
}

static int desk_open(desk *d, int index) {
    if (!small_open(&d->small, index)) return 0;
    mtan_train_config_init(&d->train);
    if (desk_start(d, &desk_bounds)) return 1;
    printf("  BAD %s does not start\n", d->small.name);
    return 0;
}

static int desk_close(desk *d) {
    free(d->before);
    return guard_free(d->memory[0]) & guard_free(d->memory[1]) & small_close(&d->small);
}

static void desk_remember(desk *d) {
    const size_t n = d->small.count, bytes = n * sizeof(mtan_real);
    memcpy(d->before, d->small.weights, bytes);
    memcpy(d->before + n, d->trainer.moment1, bytes);
    memcpy(d->before + 2 * n, d->trainer.moment2, bytes);
    d->step = d->trainer.step;
}

static int desk_unchanged(const desk *d) {
    const size_t n = d->small.count, bytes = n * sizeof(mtan_real);
    return memcmp(d->before, d->small.weights, bytes) == 0 && memcmp(d->before + n, d->trainer.moment1, bytes) == 0 &&
           memcmp(d->before + 2 * n, d->trainer.moment2, bytes) == 0 && d->step == d->trainer.step;
}

/* A sound record of writable parts, for tests to break. */
typedef struct {
    mtan_event events[MOST_EVENTS + 1], targets[MOST_EVENTS + 1];
    mtan_real times[MOST_TIMES + 1], noise[512];
    int32_t labels[MOST_TIMES + 1];
} parts;

static mtan_record sound(parts *p) {
    mtan_record r;
    memset(&r, 0, sizeof r);
    memset(p, 0, sizeof *p);
    for (int32_t i = 0; i <= MOST_EVENTS; i++) {
        p->events[i] = (mtan_event){(mtan_real)(i % 4) / 4, 0, (mtan_real)i / 8};
        p->targets[i] = (mtan_event){(mtan_real)(i % 3) / 4, 0, (mtan_real)i / 8};
    }
    for (int32_t i = 0; i <= MOST_TIMES; i++) p->times[i] = (mtan_real)i / 4;
    r.events = p->events, r.n_events = 5;
    r.targets = p->targets, r.n_targets = 4;
    r.times = p->times, r.n_times = 3;
    r.labels = p->labels;
    r.noise = p->noise, r.n_noise = 512;
    return r;
}

/* ---- records that must be refused ---- */

typedef struct {
    mtan_status status;
    const char *name;
} defect;

static const defect defects[] = {{MTAN_ERR_INPUT, "event time"},        {MTAN_ERR_INPUT, "event value"},
                                 {MTAN_ERR_INPUT, "target time"},       {MTAN_ERR_INPUT, "target value"},
                                 {MTAN_ERR_INPUT, "query time"},        {MTAN_ERR_INPUT, "channel below"},
                                 {MTAN_ERR_INPUT, "channel above"},     {MTAN_ERR_INPUT, "target below"},
                                 {MTAN_ERR_INPUT, "target above"},      {MTAN_ERR_INPUT, "channel far"},
                                 {MTAN_ERR_INPUT, "events < 0"},        {MTAN_ERR_INPUT, "targets < 0"},
                                 {MTAN_ERR_INPUT, "times < 0"},         {MTAN_ERR_NULL, "no events"},
                                 {MTAN_ERR_MEMORY, "too many events"},  {MTAN_ERR_MEMORY, "too many targets"},
                                 {MTAN_ERR_MEMORY, "too many queries"}, {MTAN_ERR_MEMORY, "too many times"},
                                 {MTAN_ERR_INPUT, "label below"},       {MTAN_ERR_INPUT, "label above"},
                                 {MTAN_ERR_INPUT, "noise too short"},   {MTAN_ERR_MEMORY, "too many target times"}};
enum { DEFECTS = sizeof defects / sizeof defects[0], LABEL_BELOW = 18, LABEL_ABOVE, SHORT_NOISE, TARGET_TIMES };

static void spoil(mtan_record *r, parts *p, int which, mtan_real not_finite, const mtan_config *c) {
    switch (which) {
    case 0: p->events[4].time = not_finite; break;
    case 1: p->events[0].value = not_finite; break;
    case 2: p->targets[3].time = not_finite; break;
    case 3: p->targets[0].value = not_finite; break;
    case 4: p->times[2] = not_finite; break;
    case 5: p->events[4].channel = -1; break;
    case 6: p->events[0].channel = c->channels; break;
    case 7: p->targets[3].channel = -1; break;
    case 8: p->targets[0].channel = c->channels; break;
    case 9: p->events[2].channel = INT_MIN; break;
    case 10: r->n_events = -1; break;
    case 11: r->n_targets = INT_MIN; break;
    case 12: r->n_times = -1; break;
    case 13: r->events = NULL; break;
    case 14: r->n_events = MOST_EVENTS + 1; break;
    case 15: r->n_targets = INT_MAX; break;
    case 16: r->n_times = MOST_TIMES + 1; break;
    case 17: p->events[0].time = 7; break; /* 0, 1/4, 1/2, 3/4 and 7 */
    case LABEL_BELOW: p->labels[0] = MTAN_UNLABELED - 1; break;
    case LABEL_ABOVE: p->labels[0] = c->classes; break;
    case SHORT_NOISE: r->n_noise = c->samples * c->ref_points * c->latent - 1; break;
    case TARGET_TIMES:
        r->n_targets = 6; /* six distinct times */
        for (int32_t i = 0; i < 6; i++) p->targets[i].time = (mtan_real)i;
    }
}

/* Every function that takes records, behind one signature. `out` is ROOM reals; a report is written there too. */
enum { CLASSIFY, LOGITS, INTERPOLATE, CURVES, LATENT, ATTENTION, TRAIN_LOSS, TRAIN_GRADIENT, TRAIN_STEP, CALLS };
static const char *const call_names[] = {"classify",  "logits",     "interpolate",    "curves",    "latent",
                                         "attention", "train_loss", "train_gradient", "train_step"};

static mtan_status call(desk *d, int which, const mtan_record *records, int32_t n, mtan_real *out) {
    mtan_report *report = (mtan_report *)(void *)out;
    const mtan_record *last = records && n > 0 ? records + (n - 1) : records;
    mtan_real *spread = out ? out + ROOM / 2 : NULL;
    switch (which) {
    case CLASSIFY: return mtan_predictor_classify(&d->predictor, records, n, out);
    case LOGITS: return mtan_predictor_logits(&d->predictor, records, n, out);
    case INTERPOLATE: return mtan_predictor_interpolate(&d->predictor, last, out, spread);
    case CURVES: return mtan_predictor_curves(&d->predictor, last, out);
    case LATENT: return mtan_predictor_latent(&d->predictor, last, out, spread);
    case ATTENTION: return mtan_predictor_attention(&d->predictor, last, 0, 0, out);
    case TRAIN_LOSS: return mtan_trainer_loss(&d->trainer, records, n, 12, report);
    case TRAIN_GRADIENT: return mtan_trainer_gradient(&d->trainer, records, n, 12, report);
    default: return mtan_trainer_step(&d->trainer, records, n, 12, report);
    }
}

/* Has this kind of model that function? */
static int has_call(const mtan_config *c, int which) {
    if (which == CLASSIFY || which == LOGITS) return c->classify != MTAN_CLASSIFY_NONE;
    if (which == INTERPOLATE || which == CURVES) return c->kind == MTAN_FULL && c->classify != MTAN_CLASSIFY_TIME;
    return which != LATENT || c->kind == MTAN_FULL;
}

/* Does the function read what is broken? Labels matter in training, noise where something is drawn. */
static int concerns(const mtan_config *c, int which_call, int which_defect) {
    const int trains = which_call >= TRAIN_LOSS;
    if (which_defect == LABEL_BELOW || which_defect == LABEL_ABOVE)
        return trains && c->classify != MTAN_CLASSIFY_NONE && c->task == MTAN_TASK_CLASSES;
    if (which_defect == SHORT_NOISE)
        return c->kind == MTAN_FULL && which_call != LATENT && which_call != ATTENTION &&
               (trains || c->predict_samples > 0);
    if (which_defect == TARGET_TIMES) return trains && c->kind == MTAN_FULL && c->classify != MTAN_CLASSIFY_TIME;
    return 1;
}

/* The third of three records is broken; the predictor takes two at a time, so the first two are sound and are done first. */
static int refuses(desk *d, int which_call, int which_defect, mtan_real not_finite, mtan_real *out) {
    parts p[3];
    mtan_record records[3];
    mtan_status status;
    for (int i = 0; i < 3; i++) records[i] = sound(&p[i]);
    spoil(&records[2], &p[2], which_defect, not_finite, &d->small.config);
    paint(out, ROOM * sizeof *out);
    desk_remember(d);
    status = call(d, which_call, records, 3, out);
    if (!concerns(&d->small.config, which_call, which_defect)) return is_status(status);
    if (status == defects[which_defect].status && painted(out, ROOM * sizeof *out) && desk_unchanged(d)) return 1;
    printf("  BAD %s of %s, %s: status %d where %d is due; output %s, weights %s\n", call_names[which_call],
           d->small.name, defects[which_defect].name, (int)status, (int)defects[which_defect].status,
           painted(out, ROOM * sizeof *out) ? "untouched" : "written", desk_unchanged(d) ? "unchanged" : "changed");
    return 0;
}

TEST broken_records_are_refused_and_nothing_is_written(void) {
    const mtan_real not_finite[] = {(mtan_real)NAN, (mtan_real)INFINITY, (mtan_real)-INFINITY};
    const mtan_bounds two = {2, MOST_EVENTS, MOST_TIMES};
    mtan_real *out = guard_alloc(ROOM * sizeof *out);
    int failures = 0, tried = 0;
    desk d;
    for (int i = 0; small_open(&d.small, i); i++) {
        mtan_train_config_init(&d.train);
        ASSERT(desk_start(&d, &two));
        for (int which = 0; which < CALLS; which++)
            for (int k = 0; k < DEFECTS && has_call(&d.small.config, which); k++)
                for (int f = 0; f < (k < 5 ? 3 : 1); f++, tried++)
                    failures += !refuses(&d, which, k, not_finite[f], out);
        ASSERT(desk_close(&d));
    }
    ASSERT(tried > small_count() * DEFECTS * 4);
    ASSERT_EQ_FMT(0, failures, "%d");
    ASSERT(guard_free(out));
    PASS();
}

TEST record_times_of_broken_records(void) {
    parts p;
    mtan_record r = sound(&p);
    int32_t times = 77;
    EXPECT(MTAN_ERR_NULL, times_of(NULL, &times));
    EXPECT(MTAN_ERR_NULL, times_of(&r, NULL));
    r.events = NULL;
    EXPECT(MTAN_ERR_NULL, times_of(&r, &times));
    r = sound(&p), r.n_events = -1;
    EXPECT(MTAN_ERR_INPUT, times_of(&r, &times));
    r = sound(&p), p.events[4].time = (mtan_real)NAN;
    EXPECT(MTAN_ERR_INPUT, times_of(&r, &times));
    ASSERT_EQ(77, times);
    r = sound(&p);
    EXPECT(MTAN_OK, times_of(&r, &times));
    ASSERT_EQ(4, times);
    EXPECT(MTAN_ERR_MEMORY, mtan_record_times(&r, NULL, &times)); /* not in the order of time */
    r.events = NULL, r.n_events = 0;
    EXPECT(MTAN_OK, times_of(&r, &times));
    ASSERT_EQ(0, times);
    PASS();
}

/* A million events that come in order, and a hundred thousand that do not: the first wish no scratch, and neither takes long. */
TEST record_times_of_long_records(void) {
    enum { N = 1000000, UNORDERED = 100000 };
    mtan_event *events = guard_alloc(N * sizeof *events);
    mtan_record r;
    int32_t times = 0;
    memset(&r, 0, sizeof r);
    for (int32_t i = 0; i < N; i++) {
        const mtan_event e = {(mtan_real)(i / 4), 0, 0};
        events[i] = e;
    }
    r.events = events, r.n_events = N;
    EXPECT(MTAN_OK, mtan_record_times(&r, NULL, &times));
    ASSERT_EQ_FMT(N / 4, times, "%d");
    for (int32_t i = 0; i < UNORDERED; i++) events[i].time = (mtan_real)((int64_t)i * 7919 % 25000);
    r.n_events = UNORDERED;
    EXPECT(MTAN_OK, times_of(&r, &times));
    ASSERT_EQ_FMT(25000, times, "%d");
    ASSERT(guard_free(events));
    PASS();
}

/* ---- arguments ---- */

TEST counts_of_records(void) {
    mtan_real *out = guard_alloc(ROOM * sizeof *out);
    desk d;
    for (int i = 0; desk_open(&d, i); i++) {
        const mtan_config *c = &d.small.config;
        parts p[MOST_RECORDS + 1];
        mtan_record records[MOST_RECORDS + 1];
        for (int b = 0; b <= MOST_RECORDS; b++) records[b] = sound(&p[b]);
        for (int which = 0; which < CALLS; which++) {
            const int classes = which == CLASSIFY || which == LOGITS;
            if ((!classes && which < TRAIN_LOSS) || !has_call(c, which)) continue;
            paint(out, ROOM * sizeof *out);
            desk_remember(&d);
            ASSERT(expect(call_names[which], classes ? MTAN_OK : MTAN_ERR_INPUT, call(&d, which, records, 0, out)));
            ASSERT(expect(call_names[which], MTAN_ERR_INPUT, call(&d, which, records, -1, out)));
            ASSERT(expect(call_names[which], MTAN_ERR_INPUT, call(&d, which, records, INT_MIN, out)));
            if (!classes)
                ASSERT(expect(call_names[which], MTAN_ERR_MEMORY, call(&d, which, records, MOST_RECORDS + 1, out)));
            ASSERT(painted(out, ROOM * sizeof *out) && desk_unchanged(&d));
            ASSERT(expect(call_names[which], MTAN_OK, call(&d, which, records, MOST_RECORDS, out)));
            if (classes) /* a predictor takes more records than its bound in turn */
                ASSERT(expect(call_names[which], MTAN_OK, call(&d, which, records, MOST_RECORDS + 1, out)));
        }
        ASSERT(desk_close(&d));
    }
    ASSERT(guard_free(out));
    PASS();
}

TEST heads_and_channels_of_attention(void) {
    static const int32_t bad[] = {-1, INT_MIN, INT_MAX};
    mtan_real *out = guard_alloc(ROOM * sizeof *out);
    desk d;
    paint(out, ROOM * sizeof *out);
    for (int i = 0; desk_open(&d, i); i++) {
        parts p;
        const mtan_record r = sound(&p);
        for (int k = 0; k < 3; k++) {
            EXPECT(MTAN_ERR_INPUT, mtan_predictor_attention(&d.predictor, &r, bad[k], 0, out));
            EXPECT(MTAN_ERR_INPUT, mtan_predictor_attention(&d.predictor, &r, 0, bad[k], out));
        }
        EXPECT(MTAN_ERR_INPUT, mtan_predictor_attention(&d.predictor, &r, d.small.config.enc_heads, 0, out));
        EXPECT(MTAN_ERR_INPUT, mtan_predictor_attention(&d.predictor, &r, 0, d.small.config.channels, out));
        ASSERT(painted(out, ROOM * sizeof *out));
        ASSERT(desk_close(&d));
    }
    ASSERT(guard_free(out));
    PASS();
}

TEST functions_that_a_model_does_not_have(void) {
    mtan_real *out = guard_alloc(ROOM * sizeof *out);
    int refusals = 0;
    desk d;
    paint(out, ROOM * sizeof *out);
    for (int i = 0; desk_open(&d, i); i++) {
        parts p;
        const mtan_record r = sound(&p);
        for (int which = 0; which < CALLS; which++) {
            if (has_call(&d.small.config, which)) continue;
            ASSERT(expect(call_names[which], MTAN_ERR_CONFIG, call(&d, which, &r, 1, out)));
            refusals++;
        }
        ASSERT(painted(out, ROOM * sizeof *out));
        ASSERT(desk_close(&d));
    }
    ASSERT(refusals > 10);
    ASSERT(guard_free(out));
    PASS();
}

TEST null_pointers_of_prediction(void) {
    mtan_real out[64];
    size_t bytes = 5;
    parts p;
    const mtan_record r = sound(&p);
    desk d;
    mtan_model bare;
    mtan_predictor made;
    ASSERT(small_open_named(&d.small, "full record"));
    mtan_train_config_init(&d.train);
    ASSERT(desk_start(&d, &desk_bounds));
    paint(out, sizeof out);
    paint(&made, sizeof made);
    EXPECT(MTAN_ERR_NULL, mtan_model_init(NULL, &d.small.config, d.small.weights, mtan_weights_count(&d.small.config)));
    EXPECT(MTAN_ERR_NULL, mtan_model_init(&bare, NULL, d.small.weights, mtan_weights_count(NULL)));
    EXPECT(MTAN_ERR_NULL, mtan_model_init(&bare, &d.small.config, NULL, mtan_weights_count(&d.small.config)));
    EXPECT(MTAN_ERR_MEMORY,
           mtan_model_init(&bare, &d.small.config, d.small.weights, mtan_weights_count(&d.small.config) - 1));
    EXPECT(MTAN_ERR_MEMORY, mtan_weights_init(&d.small.config, out, mtan_weights_count(&d.small.config) - 1, 1));
    EXPECT(MTAN_ERR_NULL, mtan_weights_init(NULL, out, mtan_weights_count(NULL), 1));
    EXPECT(MTAN_ERR_NULL, mtan_weights_init(&d.small.config, NULL, mtan_weights_count(&d.small.config), 1));
    EXPECT(MTAN_ERR_NULL, mtan_param_at(NULL, 0, (mtan_param *)(void *)out));
    EXPECT(MTAN_ERR_NULL, mtan_param_at(&d.small.config, 0, NULL));
    EXPECT(MTAN_ERR_MISSING, mtan_param_at(&d.small.config, -1, (mtan_param *)(void *)out));
    EXPECT(MTAN_ERR_MISSING,
           mtan_param_at(&d.small.config, mtan_param_count(&d.small.config), (mtan_param *)(void *)out));
    ASSERT(mtan_param_count(NULL) == 0 && mtan_weights_count(NULL) == 0);

    EXPECT(MTAN_ERR_NULL, mtan_predictor_size(NULL, &desk_bounds, &bytes));
    EXPECT(MTAN_ERR_NULL, mtan_predictor_size(&d.small.model, NULL, &bytes));
    EXPECT(MTAN_ERR_NULL, mtan_predictor_size(&d.small.model, &desk_bounds, NULL));
    EXPECT(MTAN_ERR_NULL, mtan_predictor_init(NULL, &d.small.model, &desk_bounds, out, 1000000));
    EXPECT(MTAN_ERR_NULL, mtan_predictor_init(&made, NULL, &desk_bounds, out, 1000000));
    EXPECT(MTAN_ERR_NULL, mtan_predictor_init(&made, &d.small.model, NULL, out, 1000000));
    EXPECT(MTAN_ERR_NULL, mtan_predictor_init(&made, &d.small.model, &desk_bounds, NULL, 1000000));
    bare = d.small.model, bare.weights = NULL;
    EXPECT(MTAN_ERR_NULL, mtan_predictor_size(&bare, &desk_bounds, &bytes));
    bare = d.small.model, bare.backend = NULL;
    EXPECT(MTAN_ERR_NULL, mtan_predictor_size(&bare, &desk_bounds, &bytes));
    bare = d.small.model, bare.precision = (mtan_precision)7;
    EXPECT(MTAN_ERR_CONFIG, mtan_predictor_size(&bare, &desk_bounds, &bytes));

    EXPECT(MTAN_ERR_NULL, mtan_predictor_classify(NULL, &r, 1, out));
    EXPECT(MTAN_ERR_NULL, mtan_predictor_classify(&d.predictor, NULL, 1, out));
    EXPECT(MTAN_ERR_NULL, mtan_predictor_classify(&d.predictor, &r, 1, NULL));
    EXPECT(MTAN_ERR_NULL, mtan_predictor_logits(NULL, &r, 1, out));
    EXPECT(MTAN_ERR_NULL, mtan_predictor_logits(&d.predictor, NULL, 1, out));
    EXPECT(MTAN_ERR_NULL, mtan_predictor_logits(&d.predictor, &r, 1, NULL));
    EXPECT(MTAN_ERR_NULL, mtan_predictor_interpolate(NULL, &r, out, out));
    EXPECT(MTAN_ERR_NULL, mtan_predictor_interpolate(&d.predictor, NULL, out, out));
    EXPECT(MTAN_ERR_NULL, mtan_predictor_interpolate(&d.predictor, &r, NULL, out));
    EXPECT(MTAN_ERR_NULL, mtan_predictor_curves(NULL, &r, out));
    EXPECT(MTAN_ERR_NULL, mtan_predictor_curves(&d.predictor, NULL, out));
    EXPECT(MTAN_ERR_NULL, mtan_predictor_curves(&d.predictor, &r, NULL));
    EXPECT(MTAN_ERR_NULL, mtan_predictor_latent(NULL, &r, out, out));
    EXPECT(MTAN_ERR_NULL, mtan_predictor_latent(&d.predictor, NULL, out, out));
    EXPECT(MTAN_ERR_NULL, mtan_predictor_latent(&d.predictor, &r, NULL, out));
    EXPECT(MTAN_ERR_NULL, mtan_predictor_attention(NULL, &r, 0, 0, out));
    EXPECT(MTAN_ERR_NULL, mtan_predictor_attention(&d.predictor, NULL, 0, 0, out));
    EXPECT(MTAN_ERR_NULL, mtan_predictor_attention(&d.predictor, &r, 0, 0, NULL));
    ASSERT(painted(out, sizeof out) && painted(&made, sizeof made) && bytes == 5);
    EXPECT(MTAN_OK, mtan_predictor_interpolate(&d.predictor, &r, out, NULL));
    EXPECT(MTAN_OK, mtan_predictor_latent(&d.predictor, &r, out, NULL));
    EXPECT(MTAN_OK, mtan_predictor_classify(&d.predictor, NULL, 0, NULL));
    ASSERT(desk_close(&d));
    PASS();
}

TEST null_pointers_of_training(void) {
    mtan_real memory[64];
    size_t bytes = 5;
    mtan_report report;
    mtan_trainer made;
    parts p;
    const mtan_record r = sound(&p);
    desk d;
    ASSERT(small_open_named(&d.small, "full record"));
    mtan_train_config_init(NULL);
    mtan_train_config_init(&d.train);
    ASSERT(desk_start(&d, &desk_bounds));
    paint(memory, sizeof memory);
    paint(&made, sizeof made);
    paint(&report, sizeof report);
    desk_remember(&d);
    EXPECT(MTAN_ERR_NULL, mtan_trainer_size(NULL, &d.train, &desk_bounds, &bytes));
    EXPECT(MTAN_ERR_NULL, mtan_trainer_size(&d.small.model, NULL, &desk_bounds, &bytes));
    EXPECT(MTAN_ERR_NULL, mtan_trainer_size(&d.small.model, &d.train, NULL, &bytes));
    EXPECT(MTAN_ERR_NULL, mtan_trainer_size(&d.small.model, &d.train, &desk_bounds, NULL));
#define INIT(t, m, w, c, b, block) mtan_trainer_init(t, m, w, c, b, block, 100000000)
    EXPECT(MTAN_ERR_NULL, INIT(NULL, &d.small.model, d.small.weights, &d.train, &desk_bounds, memory));
    EXPECT(MTAN_ERR_NULL, INIT(&made, NULL, d.small.weights, &d.train, &desk_bounds, memory));
    EXPECT(MTAN_ERR_NULL, INIT(&made, &d.small.model, NULL, &d.train, &desk_bounds, memory));
    EXPECT(MTAN_ERR_NULL, INIT(&made, &d.small.model, d.small.weights, NULL, &desk_bounds, memory));
    EXPECT(MTAN_ERR_NULL, INIT(&made, &d.small.model, d.small.weights, &d.train, NULL, memory));
    EXPECT(MTAN_ERR_NULL, INIT(&made, &d.small.model, d.small.weights, &d.train, &desk_bounds, NULL));
    EXPECT(MTAN_ERR_INPUT, INIT(&made, &d.small.model, d.small.weights + 1, &d.train, &desk_bounds, memory));
#undef INIT
    for (int which = TRAIN_LOSS; which < CALLS; which++)
        ASSERT(expect(call_names[which], MTAN_ERR_NULL, call(&d, which, NULL, 1, (mtan_real *)(void *)&report)));
    EXPECT(MTAN_ERR_NULL, mtan_trainer_loss(NULL, &r, 1, 1, &report));
    EXPECT(MTAN_ERR_NULL, mtan_trainer_loss(&d.trainer, &r, 1, 1, NULL));
    EXPECT(MTAN_ERR_NULL, mtan_trainer_gradient(NULL, &r, 1, 1, &report));
    EXPECT(MTAN_ERR_NULL, mtan_trainer_gradient(&d.trainer, &r, 1, 1, NULL));
    EXPECT(MTAN_ERR_NULL, mtan_trainer_step(NULL, &r, 1, 1, &report));
    EXPECT(MTAN_ERR_NULL, mtan_trainer_step(&d.trainer, &r, 1, 1, NULL));
    EXPECT(MTAN_ERR_NULL, mtan_trainer_update(NULL, 1));
    mtan_trainer_next(NULL, &r, 1);
    mtan_trainer_next(&d.trainer, &r, 1); /* on a CPU nothing goes ahead */
    ASSERT_EQ(NULL, d.trainer.state->next);
    ASSERT_EQ(NULL, mtan_trainer_scratch(&d.trainer, 0, NULL));
    ASSERT(painted(memory, sizeof memory) && painted(&made, sizeof made) && painted(&report, sizeof report) &&
           bytes == 5);
    ASSERT(desk_unchanged(&d));
    ASSERT(desk_close(&d));
    PASS();
}

/* ---- bounds and sizes ---- */

static int both_sizes(const char *settings, mtan_bounds bounds, mtan_status expected) {
    mtan_real weight = 0;
    mtan_config c;
    mtan_model model;
    mtan_train_config train;
    size_t bytes = 5;
    small_model s;
    int ok = small_open_named(&s, "full record");
    c = s.config;
    ok &= small_apply(&c, settings) && mtan_model_init(&model, &c, &weight, mtan_weights_count(&c)) == MTAN_OK;
    if (!ok) return 0;
    mtan_train_config_init(&train);
    ok &= expect(settings, expected, mtan_predictor_size(&model, &bounds, &bytes));
    ok &= expect(settings, expected, mtan_trainer_size(&model, &train, &bounds, &bytes));
    return ok & (bytes == 5) & small_close(&s);
}

/* Scratch is a thread's own workspace, which lies in the trainer's memory; for other threads there is none. */
TEST scratch_is_of_threads_that_there_are(void) {
    size_t bytes = 5;
    desk d;
    ASSERT(desk_open(&d, 0));
    const char *const memory = d.memory[1], *const scratch = mtan_trainer_scratch(&d.trainer, 0, &bytes);
    ASSERT(scratch > memory && bytes > 0 && guard_check(d.memory[1]));
    memset(mtan_trainer_scratch(&d.trainer, 0, &bytes), 0, bytes);
    ASSERT(guard_check(d.memory[1]));
    for (int32_t thread = -1; thread < 3; thread++) {
        bytes = 5;
        if (thread == 0) continue;
        ASSERT_EQ(NULL, mtan_trainer_scratch(&d.trainer, thread, &bytes));
        ASSERT_EQ(0, bytes);
    }
    bytes = 5;
    ASSERT_EQ(NULL, mtan_trainer_scratch(NULL, 0, &bytes));
    ASSERT_EQ(0, bytes);
    ASSERT(desk_close(&d));
    PASS();
}

TEST bounds_out_of_range(void) {
    const mtan_bounds negative[] = {{0, 1, 1}, {-1, 1, 1}, {1, -1, 1}, {1, 1, -1}, {INT_MIN, INT_MIN, INT_MIN}};
    const mtan_bounds large[] = {{INT_MAX, 1, 1}, {1, INT_MAX, 1}, {1, 1, INT_MAX},
                                 {TOP + 1, 1, 1}, {TOP, TOP, TOP}, {TOP, TOP, 1}};
    for (int i = 0; i < 5; i++) ASSERT(both_sizes("", negative[i], MTAN_ERR_INPUT));
    for (int i = 0; i < 6; i++) ASSERT(both_sizes("", large[i], MTAN_ERR_SIZE));
    PASS();
}

TEST sizes_whose_product_overflows(void) {
    const mtan_bounds small = {2, 8, 8}, many = {TOP, 8, 8}, several = {4096, 8, 8}, long_ones = {1, TOP, TOP};
    ASSERT(both_sizes("samples 1048576 predict_samples 1048576", many, MTAN_ERR_SIZE));
    ASSERT(both_sizes("samples 1048576 predict_samples 1048576", several, MTAN_ERR_SIZE));
    ASSERT(both_sizes("samples 1048576 predict_samples 1048576 ref_points 1048576", small, MTAN_ERR_SIZE));
    ASSERT(both_sizes("ref_points 1048576", many, MTAN_ERR_SIZE));
    ASSERT(both_sizes("ref_points 1048576", long_ones, MTAN_ERR_SIZE));
    ASSERT(both_sizes("ref_points 1048576 embed 4096", small, MTAN_ERR_SIZE)); /* of what is folded */
    ASSERT(both_sizes("channels 1048576 samples 65536 predict_samples 65536", small, MTAN_ERR_SIZE));
    ASSERT(both_sizes("channels 1048576", many, MTAN_ERR_SIZE));
    ASSERT(both_sizes("kind enc classify record channels 1048576 ref_points 1048576", small, MTAN_ERR_SIZE));
    ASSERT(both_sizes("kind enc classify time reference observed enc_hidden 4096", long_ones, MTAN_ERR_SIZE));
    ASSERT(both_sizes("classify none channels 65536 samples 65536 predict_samples 65536", long_ones, MTAN_ERR_SIZE));
    ASSERT(both_sizes("classify time classes 65536 samples 65536 predict_samples 65536 head_hidden 8", long_ones,
                      MTAN_ERR_SIZE));
    ASSERT(both_sizes("encoder rbf decoder rbf ref_points 1048576 samples 4096 predict_samples 4096", many,
                      MTAN_ERR_SIZE));
    ASSERT(both_sizes("encoder rnn3 decoder rnn3 ref_points 1048576 samples 4096 predict_samples 4096", many,
                      MTAN_ERR_SIZE));
    PASS();
}

/* Distinct times beyond the bounds, as many as the events: a record is refused however large its block of scores would be,
 * alone or before others. Here 2^20 times at 4096 points are more than 32 bits count. */
TEST more_times_than_the_bounds_have(void) {
    const mtan_bounds few = {2, TOP, 1};
    const mtan_event one = {0, 0, 1};
    mtan_real p[4];
    mtan_record records[2];
    mtan_predictor predictor;
    small_model s;
    size_t bytes = 0;
    mtan_event *events = guard_alloc(TOP * sizeof *events);
    memset(records, 0, sizeof records);
    for (int32_t i = 0; i < TOP; i++) events[i].time = (mtan_real)i, events[i].channel = 0, events[i].value = 1;
    records[0].events = events, records[0].n_events = TOP;
    records[1].events = &one, records[1].n_events = 1;
    ASSERT(small_open_named(&s, "enc record even"));
    s.model.config.ref_points = 4096;
    ASSERT_EQ(MTAN_OK, mtan_predictor_size(&s.model, &few, &bytes));
    void *memory = guard_alloc(bytes);
    ASSERT_EQ(MTAN_OK, mtan_predictor_init(&predictor, &s.model, &few, memory, bytes));
    paint(p, sizeof p);
    EXPECT(MTAN_ERR_MEMORY, mtan_predictor_classify(&predictor, records, 1, p));
    records[0].n_events = 2;
    EXPECT(MTAN_ERR_MEMORY, mtan_predictor_classify(&predictor, records, 2, p));
    ASSERT(painted(p, sizeof p));
    records[0].n_events = 1;
    EXPECT(MTAN_OK, mtan_predictor_classify(&predictor, records, 2, p));
    ASSERT(memcmp(p, p + 2, 2 * sizeof *p) == 0); /* the two say the same */
    ASSERT(guard_free(events) & guard_free(memory) & small_close(&s));
    PASS();
}

/* ---- training configurations ---- */

static void serial_for(void *context, int32_t n, mtan_body body, void *argument) {
    (void)context;
    for (int32_t i = n - 1; i >= 0; i--) body(argument, i, 0);
}

/* A size is right, or it is refused: `expected` bytes, which size_t may not hold. */
static int right_size(const char *what, uint64_t expected, mtan_status status, size_t bytes) {
    const int fits = expected <= SIZE_MAX;
    if (fits ? status == MTAN_OK && bytes == expected : status == MTAN_ERR_SIZE) return 1;
    printf("  BAD %s: status %d, %zu bytes where %llu are due\n", what, (int)status, bytes,
           (unsigned long long)expected);
    return 0;
}

/* A trainer's size grows by the same with every thread. From some kilobytes for each to more than there are addresses. */
TEST sizes_of_many_threads(void) {
    static const int32_t threads[] = {3, 7, 8, 64, 255, 256, 257, 511, 512, 1000, 1023, 1024};
    mtan_bounds bounds = {1, 1, 1};
    small_model s;
    int wide = 0;
    ASSERT(small_open_named(&s, "enc time"));
    for (; bounds.events <= 1 << 17; bounds.events *= 2, bounds.times = bounds.events > 4096 ? 4096 : bounds.events) {
        mtan_train_config train;
        size_t one = 0, two = 0;
        mtan_train_config_init(&train);
        train.parallel_for = serial_for;
        EXPECT(MTAN_OK, mtan_trainer_size(&s.model, &train, &bounds, &one));
        train.threads = 2;
        const mtan_status status = mtan_trainer_size(&s.model, &train, &bounds, &two);
        if (status == MTAN_ERR_SIZE && sizeof(size_t) == 4) break;
        EXPECT(MTAN_OK, status);
        for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
            const uint64_t expected = one + (uint64_t)(two - one) * (uint64_t)(threads[i] - 1);
            size_t bytes = 5;
            train.threads = threads[i];
            const mtan_status got = mtan_trainer_size(&s.model, &train, &bounds, &bytes);
            ASSERT(right_size("threads", expected, got, bytes));
            wide += expected / sizeof(mtan_real) > UINT32_MAX;
        }
    }
    ASSERT(wide > 0); /* more reals than 32 bits count */
    ASSERT(small_close(&s));
    PASS();
}

/* A size of at least `least` bytes, or a refusal where size_t cannot hold so many. */
static int no_less(const char *what, uint64_t least, mtan_status status, size_t bytes) {
    if (status == MTAN_OK ? bytes >= least : status == MTAN_ERR_SIZE && least > SIZE_MAX) return 1;
    printf("  BAD %s: status %d, %zu bytes where at least %llu are due\n", what, (int)status, bytes,
           (unsigned long long)least);
    return 0;
}

/* Models of up to 2 GB, of which nothing but sizes is asked. */
TEST sizes_of_large_models(void) {
    static const char *const hidden[] = {"16", "1000", "4000", "6000", "7000", "8000", "9000", "9400"};
    const mtan_bounds bounds = {64, 8, 8}; /* eight shards, with a gradient each */
    const uint64_t real = sizeof(mtan_real);
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
        mtan_real weight = 0;
        mtan_train_config train;
        mtan_model model;
        size_t bytes = 0;
        small_model s;
        ASSERT(small_open_named(&s, "enc record even"));
        mtan_train_config_init(&train);
        ASSERT_EQ(MTAN_OK, mtan_config_set(&s.config, "enc_hidden", hidden[i]));
        const uint64_t P = mtan_weights_count(&s.config), N = (uint64_t)s.config.enc_hidden;
        ASSERT_EQ(MTAN_OK, mtan_model_init(&model, &s.config, &weight, (size_t)P));
        mtan_status status = mtan_trainer_size(&model, &train, &bounds, &bytes);
        ASSERT(no_less("a trainer", (8 + 2) * P * real, status, bytes)); /* and two moments */
        status = mtan_predictor_size(&model, &bounds, &bytes);
        ASSERT(no_less("a predictor", 3 * N * N * real, status, bytes)); /* packed recurrent weights */
        ASSERT(small_close(&s));
    }
    PASS();
}

/* Sums of five parts, or three, for every channel at every point. */
TEST sizes_of_large_streams(void) {
    MAY_BE_LEFT_OUT();
    static const char *const channels[] = {"3", "50", "100", "200", "250", "300", "400"};
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        mtan_real weight = 0;
        mtan_model model;
        size_t bytes = 0;
        small_model s;
        ASSERT(small_open_named(&s, "enc record even"));
        ASSERT_EQ(MTAN_OK, mtan_config_set(&s.config, "channels", channels[i]));
        ASSERT_EQ(MTAN_OK, mtan_config_set(&s.config, "ref_points", "1048576"));
        const uint64_t sums = (uint64_t)s.config.channels * TOP * sizeof(mtan_real);
        ASSERT_EQ(MTAN_OK, mtan_model_init(&model, &s.config, &weight, mtan_weights_count(&s.config)));
        mtan_status status = mtan_stream_size(&model, TOP, &bytes);
        ASSERT(no_less("a stream", 5 * sums + 3 * TOP * sizeof(mtan_real), status, bytes));
        status = mtan_small_size(&model, TOP, &bytes);
        ASSERT(no_less("small memory", 3 * sums, status, bytes));
        s.model.config.ref_points = TOP, s.model.config.channels = 2048; /* 2^31 sums */
        EXPECT(MTAN_ERR_SIZE, mtan_stream_size(&s.model, 0, &bytes));
        EXPECT(MTAN_ERR_SIZE, mtan_small_size(&s.model, TOP, &bytes));
        ASSERT(small_close(&s));
    }
    PASS();
}

static mtan_status failing_allreduce(void *context, mtan_real *data, size_t n) {
    (void)context, (void)data, (void)n;
    return MTAN_ERR_WRITE;
}

TEST bad_training_configurations_are_refused(void) {
    const double bad[] = {NAN, INFINITY, -INFINITY, -1e-3};
    mtan_train_config good, c;
    mtan_trainer made;
    mtan_real memory[4];
    small_model s;
    int refusals = 0;
    ASSERT(small_open_named(&s, "full record"));
    mtan_train_config_init(&good);
    paint(&made, sizeof made);
    paint(memory, sizeof memory);
#define REFUSE(change)                                                                                                 \
    do {                                                                                                               \
        size_t bytes = 5;                                                                                              \
        c = good;                                                                                                      \
        change;                                                                                                        \
        ASSERT(expect(#change, MTAN_ERR_CONFIG, mtan_trainer_size(&s.model, &c, &desk_bounds, &bytes)));               \
        ASSERT(expect(#change, MTAN_ERR_CONFIG,                                                                        \
                      mtan_trainer_init(&made, &s.model, s.weights, &c, &desk_bounds, memory, sizeof memory)));        \
        ASSERT(bytes == 5 && painted(&made, sizeof made) && painted(memory, sizeof memory));                           \
        refusals++;                                                                                                    \
    } while (0)
    REFUSE(c.threads = 0);
    REFUSE(c.threads = -1);
    REFUSE(c.threads = 2);
    REFUSE((c.threads = INT_MAX, c.parallel_for = serial_for));
    REFUSE(c.ranks = 0);
    REFUSE(c.ranks = -2);
    REFUSE(c.ranks = 2);
    REFUSE((c.ranks = 3, c.allreduce = failing_allreduce));
    REFUSE((c.ranks = 6, c.allreduce = failing_allreduce));
    REFUSE((c.ranks = INT_MIN, c.allreduce = failing_allreduce));
    REFUSE((c.ranks = 2, c.rank = 2, c.allreduce = failing_allreduce));
    REFUSE(c.rank = 1);
    REFUSE(c.rank = -1);
    REFUSE(c.optimizer = (mtan_optimizer)2);
    REFUSE(c.optimizer = (mtan_optimizer)-1);
    REFUSE(c.beta1 = 1);
    REFUSE(c.beta2 = 1);
    for (int i = 0; i < 4; i++) {
        REFUSE(c.lr = bad[i]);
        REFUSE(c.beta1 = bad[i]);
        REFUSE(c.beta2 = bad[i]);
        REFUSE(c.epsilon = bad[i]);
        if (bad[i] != INFINITY) REFUSE(c.clip = bad[i]); /* an infinite limit is no limit */
        if (i < 3) REFUSE(c.kl_weight = bad[i]);
    }
#undef REFUSE
    ASSERT_EQ_FMT(17 + 16 + 3 + 3, refusals, "%d");
    ASSERT(small_close(&s));
    PASS();
}

/* The other rank has nothing to add. The n-th call, counted down by the context, fails. */
static mtan_status failing_later(void *context, mtan_real *data, size_t n) {
    int *left = context;
    (void)data, (void)n;
    return --*left == 0 ? MTAN_ERR_WRITE : MTAN_OK;
}

TEST failing_allreduce_of_gradients_changes_nothing(void) {
    mtan_report report;
    parts p;
    const mtan_record r = sound(&p);
    int left = 2; /* the sums of the loss go first */
    desk d;
    ASSERT(small_open_named(&d.small, "full record"));
    mtan_train_config_init(&d.train);
    d.train.ranks = 2, d.train.allreduce = failing_later, d.train.allreduce_context = &left;
    d.train.rank = 1; /* the last rank has the shard of a single record */
    ASSERT(desk_start(&d, &desk_bounds));
    desk_remember(&d);
    paint(&report, sizeof report);
    EXPECT(MTAN_ERR_WRITE, mtan_trainer_step(&d.trainer, &r, 1, 1, &report));
    ASSERT(left == 0 && desk_unchanged(&d) && painted(&report, sizeof report));
    EXPECT(MTAN_OK, mtan_trainer_step(&d.trainer, &r, 1, 1, &report));
    ASSERT(left == -2 && !desk_unchanged(&d));
    ASSERT(desk_close(&d));
    PASS();
}

TEST failing_allreduce_changes_nothing(void) {
    mtan_report report;
    parts p;
    const mtan_record r = sound(&p);
    desk d;
    ASSERT(small_open_named(&d.small, "full record"));
    mtan_train_config_init(&d.train);
    d.train.ranks = 2, d.train.allreduce = failing_allreduce;
    ASSERT(desk_start(&d, &desk_bounds));
    desk_remember(&d);
    paint(&report, sizeof report);
    EXPECT(MTAN_ERR_WRITE, mtan_trainer_step(&d.trainer, &r, 1, 1, &report));
    EXPECT(MTAN_ERR_WRITE, mtan_trainer_loss(&d.trainer, &r, 1, 1, &report));
    ASSERT(desk_unchanged(&d) && painted(&report, sizeof report));
    ASSERT(desk_close(&d));
    PASS();
}

/* ---- unusual input that is allowed ---- */

/* Every function the model has, on n records: status OK and finite results. */
static int all_finite(desk *d, const char *what, const mtan_record *records, int32_t n, mtan_real *out) {
    const size_t room = ROOM * sizeof *out;
    const mtan_real zero = 0;
    for (int which = 0; which < CALLS; which++) {
        if (!has_call(&d->small.config, which)) continue;
        for (size_t i = 0; i < ROOM; i++) out[i] = zero;
        const mtan_status status = call(d, which, records, n, out);
        const mtan_report *report = (const mtan_report *)(const void *)out;
        const int finite = which < TRAIN_LOSS
                               ? finite_reals(out, room / sizeof *out)
                               : report->loss - report->loss == 0 && report->gradient_norm - report->gradient_norm == 0;
        if (status == MTAN_OK && finite) continue;
        printf("  BAD %s of %s, %s: %s, %s\n", call_names[which], d->small.name, what, mtan_status_message(status),
               finite ? "finite" : "not finite");
        return 0;
    }
    return finite_reals(d->small.weights, d->small.count);
}

TEST times_outside_the_unit_interval_are_allowed(void) {
    mtan_real *out = guard_alloc(ROOM * sizeof *out);
    desk d;
    for (int i = 0; desk_open(&d, i); i++) {
        parts p;
        mtan_record r = sound(&p);
        for (int32_t k = 0; k <= MOST_EVENTS; k++) {
            p.events[k].time = (mtan_real)(k % 2 ? -3 : 1e4);
            p.targets[k].time = (mtan_real)(k % 2 ? 12345.5 : -1e4);
        }
        p.times[0] = -3, p.times[1] = (mtan_real)0.5, p.times[2] = 10000;
        ASSERT(all_finite(&d, "times from -10000 to 12345", &r, 1, out));
        ASSERT(desk_close(&d));
    }
    ASSERT(guard_free(out));
    PASS();
}

TEST records_without_anything_are_allowed(void) {
    mtan_real *out = guard_alloc(ROOM * sizeof *out);
    const mtan_real no_times[1] = {0};
    const mtan_event none[1] = {{0, 0, 0}};
    desk d;
    for (int i = 0; desk_open(&d, i); i++) {
        const mtan_config *c = &d.small.config;
        parts p;
        mtan_record bare[3];
        memset(bare, 0, sizeof bare);
        bare[1].events = bare[1].targets = none, bare[1].times = no_times; /* arrays without an element */
        ASSERT(all_finite(&d, "nothing at all", bare, 1, out));
        ASSERT(all_finite(&d, "empty arrays", bare + 1, 1, out));
        ASSERT(all_finite(&d, "three of them", bare, 3, out));
        bare[1] = sound(&p);
        ASSERT(all_finite(&d, "one record with and two without", bare, 3, out));
        memset(&bare[1], 0, sizeof bare[1]);
        if (c->classify == MTAN_CLASSIFY_RECORD && c->task == MTAN_TASK_CLASSES) {
            mtan_real total = 0;
            ASSERT_EQ(MTAN_OK, mtan_predictor_classify(&d.predictor, bare, 1, out));
            for (int32_t k = 0; k < c->classes; k++) total += out[k];
            ASSERT(fabs((double)total - 1) <= 1e-5);
        }
        ASSERT(desk_close(&d));
    }
    ASSERT(guard_free(out));
    PASS();
}

/* Records of a data set have labels whether or not the model wants them. */
TEST labels_mean_nothing_to_a_model_without_classes(void) {
    static const int32_t classes[] = {0, 1, -1, INT_MIN};
    mtan_real *out = guard_alloc(ROOM * sizeof *out);
    for (int i = 0; i < 4; i++) {
        parts p;
        mtan_record r = sound(&p);
        desk d;
        ASSERT(small_open_named(&d.small, "full none"));
        d.small.config.classes = classes[i];
        if (mtan_config_check(&d.small.config) == MTAN_OK) { /* or such a config is refused from the start */
            ASSERT_EQ(MTAN_OK, mtan_model_init(&d.small.model, &d.small.config, d.small.weights,
                                               mtan_weights_count(&d.small.config)));
            mtan_train_config_init(&d.train);
            ASSERT(desk_start(&d, &desk_bounds));
            p.labels[0] = 1;
            ASSERT(all_finite(&d, "a label", &r, 1, out));
            r.labels = NULL;
            ASSERT(all_finite(&d, "no label", &r, 1, out));
            ASSERT(desk_close(&d));
        } else {
            ASSERT(i >= 2 && small_close(&d.small));
        }
    }
    ASSERT(guard_free(out));
    PASS();
}

/* ---- numbers beyond the arithmetic ---- */

/* A step either succeeds and leaves finite weights and moments, or says so and changes nothing. */
static int step_is_sound(desk *d, const char *what, const mtan_record *records, int32_t n, mtan_status *status) {
    mtan_report report;
    int ok;
    desk_remember(d);
    paint(&report, sizeof report);
    *status = mtan_trainer_step(&d->trainer, records, n, 12, &report);
    if (*status == MTAN_OK)
        ok = finite_reals(d->small.weights, d->small.count) && finite_reals(d->trainer.moment1, d->small.count) &&
             finite_reals(d->trainer.moment2, d->small.count) && report.loss - report.loss == 0 &&
             d->trainer.step == d->step + 1;
    else ok = *status == MTAN_ERR_INPUT && desk_unchanged(d) && painted(&report, sizeof report);
    if (!ok)
        printf("  BAD %s, %s: status %d, loss %g, state %s, weights %s\n", d->small.name, what, (int)*status,
               *status == MTAN_OK ? report.loss : 0.0, desk_unchanged(d) ? "unchanged" : "changed",
               finite_reals(d->small.weights, d->small.count) ? "finite" : "not finite");
    return ok;
}

TEST a_step_never_leaves_broken_weights(void) {
    const mtan_real huge = sizeof(mtan_real) == 4 ? (mtan_real)1e30 : (mtan_real)1e300;
    const mtan_real weight[] = {(mtan_real)NAN, (mtan_real)INFINITY, huge, -huge};
    int failures = 0, refused_nan = 0, models = 0;
    mtan_status status;
    desk d;
    for (int i = 0; desk_open(&d, i); i++, models++) {
        parts p;
        const mtan_record r = sound(&p);
        failures += !step_is_sound(&d, "sound", &r, 1, &status);
        ASSERT_EQ(MTAN_OK, status);
        mtan_real *kept = malloc(d.small.count * sizeof *kept);
        memcpy(kept, d.small.weights, d.small.count * sizeof *kept);
        for (int k = 0; k < 4; k++) { /* all weights, then every seventh */
            for (size_t j = 0; j < d.small.count; j++) d.small.weights[j] = weight[k];
            failures += !step_is_sound(&d, "all weights huge or not finite", &r, 1, &status);
            refused_nan += k < 2 && status == MTAN_ERR_INPUT;
            for (size_t j = 0; j < d.small.count; j++) d.small.weights[j] = j % 7 == 3 && k >= 2 ? weight[k] : kept[j];
            failures += !step_is_sound(&d, "some weights huge", &r, 1, &status);
        }
        memcpy(d.small.weights, kept, d.small.count * sizeof *kept);
        failures += !step_is_sound(&d, "sound again", &r, 1, &status);
        ASSERT_EQ(MTAN_OK, status);
        free(kept);
        ASSERT(desk_close(&d));
    }
    ASSERT_EQ_FMT(2 * models, refused_nan, "%d");
    ASSERT_EQ_FMT(0, failures, "%d");
    PASS();
}

TEST a_gradient_that_is_not_finite_is_not_used(void) {
    const mtan_real bad[] = {(mtan_real)NAN, (mtan_real)INFINITY, (mtan_real)-INFINITY};
    mtan_report report;
    desk d;
    for (int i = 0; desk_open(&d, i); i++) {
        parts p;
        const mtan_record r = sound(&p);
        for (int k = 0; k < 3; k++) {
            EXPECT(MTAN_OK, mtan_trainer_gradient(&d.trainer, &r, 1, 12, &report));
            desk_remember(&d);
            d.trainer.gradient[d.small.count - 1] = bad[k];
            ASSERT(expect(d.small.name, MTAN_ERR_INPUT, mtan_trainer_update(&d.trainer, 12)));
            ASSERT(desk_unchanged(&d));
        }
        ASSERT(desk_close(&d));
    }
    PASS();
}

/* The square of a target is infinite in a float, its slope is not, and clipping would make a step of it. */
TEST a_loss_that_is_not_finite_is_no_step(void) {
    mtan_report report;
    mtan_status status;
    parts p;
    const mtan_record r = sound(&p);
    desk d;
    ASSERT(small_open_named(&d.small, "full none"));
    mtan_train_config_init(&d.train);
    d.train.clip = 1;
    ASSERT(desk_start(&d, &desk_bounds));
    p.targets[0].value = (mtan_real)(sizeof(mtan_real) == sizeof(float) ? 1e25 : 1e160);
    EXPECT(MTAN_OK, mtan_trainer_gradient(&d.trainer, &r, 1, 12, &report));
    ASSERT(!(report.loss - report.loss == 0));
    if (sizeof(mtan_real) == sizeof(float)) ASSERT(report.gradient_norm - report.gradient_norm == 0);
    ASSERT(step_is_sound(&d, "an infinite loss", &r, 1, &status));
    ASSERT_EQ(MTAN_ERR_INPUT, status);
    ASSERT(desk_close(&d));
    PASS();
}

static double endless(void *context, int64_t step, int32_t epoch) {
    (void)step, (void)epoch;
    return *(const double *)context;
}

TEST a_schedule_that_is_not_finite_is_not_used(void) {
    const double bad[] = {NAN, INFINITY};
    parts p;
    const mtan_record r = sound(&p);
    for (int k = 0; k < 2; k++) {
        double factor = bad[k];
        mtan_status status;
        desk d;
        ASSERT(small_open_named(&d.small, "enc record even"));
        mtan_train_config_init(&d.train);
        d.train.schedule = endless, d.train.schedule_context = &factor;
        ASSERT(desk_start(&d, &desk_bounds));
        ASSERT(step_is_sound(&d, "a schedule that is not finite", &r, 1, &status));
        ASSERT(desk_close(&d));
    }
    PASS();
}

/* A prediction is finite, or it is refused and nothing is written; attention is written as it is. */
static int prediction_is_sound(desk *d, int which, const mtan_record *r, mtan_real *out, mtan_status *status) {
    const size_t room = ROOM * sizeof *out;
    int ok;
    paint(out, room);
    *status = call(d, which, r, 1, out);
    ok = *status == MTAN_OK            ? finite_reals(out, ROOM)
         : *status == MTAN_ERR_NUMERIC ? which == ATTENTION || painted(out, room)
                                       : 0;
    if (!ok)
        printf("  BAD %s of %s: status %d, output %s\n", call_names[which], d->small.name, (int)*status,
               painted(out, room) ? "untouched" : "written");
    return ok;
}

/* Finite but huge values: no call crashes or reads outside its memory; predictions and a step are sound as above. */
TEST huge_values_do_no_harm(void) {
    const double huge[] = {1e10, 1e30, -3e38};
    mtan_real *out = guard_alloc(ROOM * sizeof *out);
    int failures = 0;
    mtan_status status;
    desk d;
    for (int i = 0; desk_open(&d, i); i++) {
        for (int k = 0; k < 3; k++)
            for (int where = 0; where < 3; where++) {
                parts p;
                const mtan_record r = sound(&p);
                for (int32_t e = 0; e <= MOST_EVENTS; e++) {
                    if (where == 0) p.events[e].value = (mtan_real)(e % 2 ? huge[k] : -huge[k]);
                    if (where == 1) p.targets[e].value = (mtan_real)huge[k];
                    if (where == 2) p.events[e].time = (mtan_real)(e % 2 ? huge[k] : -huge[k]);
                }
                for (int which = 0; which < TRAIN_LOSS; which++)
                    if (has_call(&d.small.config, which)) failures += !prediction_is_sound(&d, which, &r, out, &status);
                failures += !step_is_sound(&d, "huge values", &r, 1, &status);
            }
        ASSERT(desk_close(&d));
    }
    ASSERT_EQ_FMT(0, failures, "%d");
    ASSERT(guard_free(out));
    PASS();
}

/* The predictor's part of a desk for weights, or a precision, that have changed. */
static int desk_fold(desk *d) {
    size_t bytes = 0;
    if (!guard_free(d->memory[0]) || mtan_predictor_size(&d->small.model, &desk_bounds, &bytes) != MTAN_OK) return 0;
    d->memory[0] = guard_alloc(bytes);
    return mtan_predictor_init(&d->predictor, &d->small.model, &desk_bounds, d->memory[0], bytes) == MTAN_OK;
}

/* A call that reads a weight of NaN is refused; one that does not has the bits that it had. */
static int nan_is_noticed(desk *d, int which, const mtan_record *r, mtan_real *weight, int *refusals) {
    const size_t room = ROOM * sizeof(mtan_real);
    mtan_real *out = guard_alloc(room), *expected = guard_alloc(room);
    const mtan_real kept = *weight;
    mtan_status status;
    int ok = prediction_is_sound(d, which, r, expected, &status) && status == MTAN_OK;
    *weight = (mtan_real)NAN;
    ok = desk_fold(d) && prediction_is_sound(d, which, r, out, &status) && ok;
    if (status == MTAN_ERR_NUMERIC) ++*refusals;
    else ok &= memcmp(out, expected, room) == 0;
    *weight = kept;
    return desk_fold(d) & guard_free(out) & guard_free(expected) & ok;
}

/* What no prediction computes with: the bias of the keys, which cancels in the softmax; recurrent weights where there is one step;
 * splits of trees, which are compared, and the heights of leaves that this record is not in. */
static int is_dead(const mtan_config *c, const char *name) {
    return strstr(name, "linears.1.bias") || strstr(name, "trees.split") || strstr(name, "trees.height") ||
           (c->ref_points == 1 && strstr(name, "weight_hh"));
}

TEST a_weight_that_is_nan_gives_no_prediction(mtan_precision precision) {
    MAY_BE_LEFT_OUT();
    desk d;
    for (int i = 0; desk_open(&d, i); i++) {
        parts p;
        const mtan_record r = sound(&p);
        for (int32_t j = 0; j < r.n_events; j++)
            p.events[j].channel = d.small.config.statics; /* one that is attended to */
        d.small.model.precision = precision;
        ASSERT(desk_fold(&d));
        for (int32_t k = 0; k < mtan_param_count(&d.small.config); k++) {
            mtan_param param;
            int refusals = 0;
            ASSERT_EQ(MTAN_OK, mtan_param_at(&d.small.config, k, &param));
            for (int which = 0; which < TRAIN_LOSS; which++)
                if (has_call(&d.small.config, which))
                    ASSERT(nan_is_noticed(&d, which, &r, d.small.weights + param.offset, &refusals));
            if ((refusals == 0) == is_dead(&d.small.config, param.name)) continue;
            printf("  BAD %s of %s: %d calls notice it\n", param.name, d.small.name, refusals);
            FAIL();
        }
        ASSERT(desk_close(&d));
    }
    PASS();
}

/* The last record brings noise that is not finite. Of the records that a call takes at once none is written. */
TEST records_before_a_result_that_is_not_finite(void) {
    const mtan_bounds two = {2, MOST_EVENTS, MOST_TIMES};
    mtan_real *out = guard_alloc(ROOM * sizeof *out), expected[4];
    mtan_record records[4];
    parts p[4];
    desk d;
    ASSERT(small_open_named(&d.small, "full record"));
    mtan_train_config_init(&d.train);
    ASSERT(desk_start(&d, &two));
    ASSERT(d.small.config.predict_samples > 0 && d.small.config.classes == 2);
    for (int i = 0; i < 4; i++) records[i] = sound(&p[i]);
    EXPECT(MTAN_OK, mtan_predictor_classify(&d.predictor, records, 2, expected));
    p[3].noise[0] = (mtan_real)NAN;
    paint(out, ROOM * sizeof *out);
    EXPECT(MTAN_ERR_NUMERIC, mtan_predictor_classify(&d.predictor, records + 2, 2, out));
    ASSERT(painted(out, ROOM * sizeof *out));
    EXPECT(MTAN_ERR_NUMERIC, mtan_predictor_classify(&d.predictor, records, 4, out));
    ASSERT(memcmp(out, expected, sizeof expected) == 0 && painted(out + 4, (ROOM - 4) * sizeof *out));
    paint(out, ROOM * sizeof *out);
    records[0] = records[3]; /* in the first turn: there is no second */
    EXPECT(MTAN_ERR_NUMERIC, mtan_predictor_classify(&d.predictor, records, 3, out));
    ASSERT(painted(out, ROOM * sizeof *out));
    ASSERT(desk_close(&d) & guard_free(out));
    PASS();
}

/* Two samples that exclude each other's class have finite logits, and no mean of log-probabilities. The last two parameters
 * are those of the last layer, (2, N) and (2): logits x become factor (x - middle). */
TEST samples_that_exclude_each_other(void) {
    mtan_real x[4], out[2];
    parts p;
    mtan_param weight, bias;
    mtan_record r = sound(&p);
    desk d;
    ASSERT(small_open_named(&d.small, "full record"));
    mtan_train_config_init(&d.train);
    d.small.model.config.predict_samples = 2;
    d.small.model.config.rule = MTAN_MEAN_LOG_PROBABILITY;
    for (int32_t i = 0, half = d.small.config.ref_points * d.small.config.latent; i < 2 * half; i++)
        p.noise[i] = (mtan_real)(i < half ? 1 : -1);
    ASSERT(desk_start(&d, &desk_bounds));
    EXPECT(MTAN_OK, mtan_predictor_classify(&d.predictor, &r, 1, out));
    EXPECT(MTAN_OK, mtan_predictor_logits(&d.predictor, &r, 1, x));
    ASSERT_EQ(MTAN_OK, mtan_param_at(&d.small.config, mtan_param_count(&d.small.config) - 2, &weight));
    ASSERT_EQ(MTAN_OK, mtan_param_at(&d.small.config, mtan_param_count(&d.small.config) - 1, &bias));
    const mtan_real factor = 10000 / (mtan_real)fabs((double)(x[0] - x[1] - x[2] + x[3]));
    for (int32_t i = 0; i < weight.rows * weight.cols; i++) d.small.weights[weight.offset + (uint32_t)i] *= factor;
    for (uint32_t c = 0; c < 2; c++) {
        mtan_real *b = &d.small.weights[bias.offset + c];
        *b = factor * (*b - (x[c] + x[2 + c]) / 2);
    }
    ASSERT(desk_fold(&d));
    EXPECT(MTAN_OK, mtan_predictor_logits(&d.predictor, &r, 1, x));
    paint(out, sizeof out);
    EXPECT(MTAN_ERR_NUMERIC, mtan_predictor_classify(&d.predictor, &r, 1, out));
    ASSERT(painted(out, sizeof out));
    ASSERT(desk_close(&d));
    PASS();
}

/* ---- model files ---- */

typedef struct {
    unsigned char *bytes; /* at a multiple of 64 */
    size_t size, room;
    int fail_after;
} sink;

static mtan_status into_sink(void *context, const void *bytes, size_t n) {
    sink *s = context;
    if (s->size + n > s->room || s->fail_after-- == 0) return MTAN_ERR_INPUT;
    memcpy(s->bytes + s->size, bytes, n);
    s->size += n;
    return MTAN_OK;
}

/* Nothing but this status for every cut of the blob, and for other defects of it. */
static int refuses_blobs(desk *d, const sink *file) {
    mtan_config config;
    mtan_model model;
    mtan_real *weights = guard_alloc(d->small.count * sizeof *weights);
    int ok = 1;
    paint(&config, sizeof config);
    paint(&model, sizeof model);
    paint(weights, d->small.count * sizeof *weights);
    desk_remember(d);
    for (size_t size = 0; size < file->size; size += 1 + size / 50) {
        unsigned char *cut = guard_alloc(size);
        memcpy(cut, file->bytes, size);
        ok &= blob_open(&model, cut, size) == MTAN_ERR_FILE && blob_load_config(&config, cut, size) == MTAN_ERR_FILE;
        ok &= blob_load(&model, weights, d->small.count, cut, size) == MTAN_ERR_FILE;
        ok &= blob_load_trainer(&d->trainer, cut, size) == MTAN_ERR_FILE && guard_free(cut);
    }
    ok &= expect("no config", MTAN_ERR_NULL, blob_load_config(NULL, file->bytes, file->size));
    ok &= expect("no blob", MTAN_ERR_NULL, blob_load_config(&config, NULL, file->size));
    ok &= expect("no model", MTAN_ERR_NULL, blob_open(NULL, file->bytes, file->size));
    ok &= expect("no blob", MTAN_ERR_NULL, blob_open(&model, NULL, file->size));
    ok &= expect("no model", MTAN_ERR_NULL, blob_load(NULL, weights, d->small.count, file->bytes, file->size));
    ok &= expect("no weights", MTAN_ERR_NULL, blob_load(&model, NULL, d->small.count, file->bytes, file->size));
    ok &= expect("no blob", MTAN_ERR_NULL, blob_load(&model, weights, d->small.count, NULL, file->size));
    ok &=
        expect("few weights", MTAN_ERR_MEMORY, blob_load(&model, weights, d->small.count - 1, file->bytes, file->size));
    ok &= expect("no trainer", MTAN_ERR_NULL, blob_load_trainer(NULL, file->bytes, file->size));
    ok &= expect("no blob", MTAN_ERR_NULL, blob_load_trainer(&d->trainer, NULL, file->size));
    ok &= painted(&config, sizeof config) && painted(&model, sizeof model) &&
          painted(weights, d->small.count * sizeof *weights);
    return ok & desk_unchanged(d) & guard_free(weights);
}

static int saved(const desk *d, const mtan_trainer *trainer, sink *file) {
    file->size = 0, file->fail_after = -1;
    return mtan_model_save(&d->small.model, trainer, NULL, 0, into_sink, file) == MTAN_OK;
}

TEST broken_model_files_are_refused(void) {
    sink file = {guard_alloc(1 << 20), 0, 1 << 20, -1};
    mtan_file_pair pairs[MTAN_MAX_PAIRS + 1];
    desk d, other;
    ASSERT(small_open_named(&d.small, "full record") && small_open_named(&other.small, "full heads"));
    mtan_train_config_init(&d.train);
    mtan_train_config_init(&other.train);
    ASSERT(desk_start(&d, &desk_bounds) && desk_start(&other, &desk_bounds));
    ASSERT(saved(&d, &d.trainer, &file));
    ASSERT(refuses_blobs(&d, &file));
    EXPECT(MTAN_OK, blob_load_trainer(&d.trainer, file.bytes, file.size));
    desk_remember(&other);
    mtan_status status = blob_load_trainer(&other.trainer, file.bytes, file.size);
    ASSERT(status == MTAN_ERR_SHAPE && desk_unchanged(&other)); /* another model's checkpoint */
    ASSERT(saved(&d, NULL, &file));
    desk_remember(&d);
    EXPECT(MTAN_ERR_MISSING, blob_load_trainer(&d.trainer, file.bytes, file.size)); /* a file without moments */
    ASSERT(desk_unchanged(&d));

    memset(pairs, 0, sizeof pairs);
    EXPECT(MTAN_ERR_NULL, mtan_model_save(NULL, NULL, NULL, 0, into_sink, &file));
    EXPECT(MTAN_ERR_NULL, mtan_model_save(&d.small.model, NULL, NULL, 0, NULL, &file));
    EXPECT(MTAN_ERR_NULL, mtan_model_save(&d.small.model, NULL, NULL, 1, into_sink, &file));
    EXPECT(MTAN_ERR_NULL, mtan_model_save(&d.small.model, NULL, pairs, 1, into_sink, &file)); /* a pair without a key */
    EXPECT(MTAN_ERR_SIZE, mtan_model_save(&d.small.model, NULL, pairs, MTAN_MAX_PAIRS + 1, into_sink, &file));
    pairs[0] = (mtan_file_pair){"mtan.kind", "enc"};
    EXPECT(MTAN_ERR_INPUT, mtan_model_save(&d.small.model, NULL, pairs, 1, into_sink, &file)); /* a key twice */
    for (int after = 0; after < 40; after++) {
        file.size = 0, file.fail_after = after;
        EXPECT(MTAN_ERR_WRITE, mtan_model_save(&d.small.model, NULL, NULL, 0, into_sink, &file));
    }
    ASSERT(desk_close(&d) & desk_close(&other) & guard_free(file.bytes));
    PASS();
}

/* A sound safetensors file that is no model of ours, or whose tensors do not fit. */
TEST files_that_are_no_models_are_refused(void) {
    sink file = {guard_alloc(1 << 20), 0, 1 << 20, -1};
    mtan_file_entry entry = {"x", MTAN_DTYPE_REAL, 1, {1}, &file.room};
    mtan_file_pair pair = {"mtan.kind", "enc"};
    mtan_model model;
    mtan_config config;
    small_model s;
    size_t bytes;
    ASSERT(small_open_named(&s, "enc record even"));
    paint(&model, sizeof model);
    paint(&config, sizeof config);
    EXPECT(MTAN_OK, mtan_file_write_memory(&entry, 1, NULL, 0, file.bytes, file.room, &bytes));
    EXPECT(MTAN_ERR_FILE, blob_open(&model, file.bytes, bytes));
    EXPECT(MTAN_ERR_FILE, blob_load_config(&config, file.bytes, bytes));
    EXPECT(MTAN_OK, mtan_file_write_memory(&entry, 1, &pair, 1, file.bytes, file.room, &bytes));
    EXPECT(MTAN_ERR_MISSING, blob_open(&model, file.bytes, bytes)); /* no weights */
    pair.value = "nonsense";
    EXPECT(MTAN_OK, mtan_file_write_memory(&entry, 1, &pair, 1, file.bytes, file.room, &bytes));
    EXPECT(MTAN_ERR_FILE, blob_load_config(&config, file.bytes, bytes));
    EXPECT(MTAN_OK, mtan_model_save(&s.model, NULL, NULL, 0, into_sink, &file));
    unsigned char *odd = guard_alloc(file.size + 1); /* not aligned to the weights */
    memcpy(odd + 1, file.bytes, file.size);
    EXPECT(MTAN_ERR_SHAPE, blob_open(&model, odd + 1, file.size));
    ASSERT(painted(&model, sizeof model) && painted(&config, sizeof config));
    EXPECT(MTAN_OK, blob_load(&model, s.weights, s.count, odd + 1, file.size));
    ASSERT(guard_free(odd) & guard_free(file.bytes) & small_close(&s));
    PASS();
}

/* ---- anything at all ---- */

static void random_config(mtan_config *c, uint64_t *random) {
    static const int32_t odd[] = {-1, 0, 1, 2, 3, 4, 6, 8, 9, 16, TOP, TOP + 1, INT_MAX, INT_MIN};
    int32_t *whole[] = {&c->channels,   &c->classes,    &c->embed,       &c->enc_heads,
                        &c->dec_heads,  &c->enc_hidden, &c->dec_hidden,  &c->latent,
                        &c->ref_points, &c->mlp_hidden, &c->head_hidden, &c->samples,
                        &c->norm,       &c->skip_empty, &c->kl_anneal,   &c->predict_samples};
    for (int32_t k = small_whole(random, 0, 3); k > 0; k--) {
        const int32_t value = odd[small_whole(random, 0, small_whole(random, 0, 5) ? 9 : 13)];
        const int choice = small_whole(random, -1, 2);
        switch (small_whole(random, 0, 14)) {
        case 0: memcpy(&c->kind, &choice, sizeof choice); break;
        case 1: memcpy(&c->classify, &choice, sizeof choice); break;
        case 2: memcpy(&c->encoder, &choice, sizeof choice); break;
        case 3: memcpy(&c->decoder, &choice, sizeof choice); break;
        case 4: memcpy(&c->embedding, &choice, sizeof choice); break;
        case 5: memcpy(&c->embed_heads, &choice, sizeof choice); break;
        case 6: memcpy(&c->reference, &choice, sizeof choice); break;
        case 7: memcpy(&c->bound, &choice, sizeof choice); break;
        case 8: memcpy(&c->rule, &choice, sizeof choice); break;
        default: *whole[small_whole(random, 0, 15)] = value;
        }
    }
    if (c->reference == MTAN_REF_GIVEN && c->ref_points > 4) c->ref = NULL; /* four are given */
}

/* Breaks one thing in a record, or nothing; returns whether it did. */
static int random_damage(mtan_record *r, const mtan_bounds *bounds, uint64_t *random) {
    mtan_event *events = (mtan_event *)(uintptr_t)(small_whole(random, 0, 1) ? r->events : r->targets);
    const int32_t n = events == r->events ? r->n_events : r->n_targets, at = n > 0 ? small_whole(random, 0, n - 1) : 0;
    const int32_t over[] = {-1, INT_MIN, INT_MAX, 1};
    const int32_t k = small_whole(random, 0, 3);
    switch (small_whole(random, 0, 9)) {
    case 0: return n > 0 ? (events[at].time = (mtan_real)NAN, 1) : 0;
    case 1: return n > 0 ? (events[at].value = (mtan_real)(k % 2 ? INFINITY : -INFINITY), 1) : 0;
    case 2: return n > 0 ? (events[at].channel = k == 3 ? TOP : over[k], 1) : 0;
    case 3: return r->n_times > 0 ? (((mtan_real *)(uintptr_t)r->times)[0] = (mtan_real)NAN, 1) : 0;
    case 4: return r->n_events = k == 3 ? bounds->events + 1 : over[k], 1;
    case 5: return r->n_targets = k == 3 ? bounds->events + 1 : over[k], 1;
    case 6: return r->n_times = k == 3 ? bounds->times + 1 : over[k], 1;
    default: return 0;
    }
}

/* One predictor or trainer in a block of exactly its size. `status` of a call on `set` must be OK where nothing is broken;
 * a step may also find that its gradient is not finite. */
static int hostile_run(small_model *s, const mtan_bounds *bounds, const small_set *set, int broken, mtan_real *out,
                       int *ran) {
    desk d;
    size_t bytes = 0;
    int ok = 1;
    memset(&d, 0, sizeof d);
    d.small = *s;
    mtan_train_config_init(&d.train);
    mtan_status status = mtan_predictor_size(&s->model, bounds, &bytes);
    ok &= is_status(status);
    if (status != MTAN_OK || bytes > 8000000) return ok;
    d.memory[0] = guard_alloc(bytes);
    ok &= mtan_predictor_init(&d.predictor, &s->model, bounds, d.memory[0], bytes) == MTAN_OK;
    status = mtan_trainer_size(&s->model, &d.train, bounds, &bytes);
    ok &= is_status(status);
    const int trains = status == MTAN_OK && bytes <= 8000000 && set->n <= bounds->records;
    if (trains) {
        d.memory[1] = guard_alloc(bytes);
        ok &= mtan_trainer_init(&d.trainer, &s->model, s->weights, &d.train, bounds, d.memory[1], bytes) == MTAN_OK;
    }
    for (int which = 0; which < (trains ? CALLS : TRAIN_LOSS) && ok; which++) {
        status = call(&d, which, set->records, set->n, out);
        ok &= is_status(status) && guard_check(out);
        if (!broken && has_call(&s->config, which))
            ok &= status == MTAN_OK || (which == TRAIN_STEP && status == MTAN_ERR_INPUT);
        if (!ok) printf("  BAD %s of %s: status %d\n", call_names[which], s->name, (int)status);
        ++*ran;
    }
    return ok & guard_free(d.memory[0]) & guard_free(d.memory[1]);
}

TEST anything_at_all(void) {
    enum { ROUNDS = 2000, BIG = 1 << 16 };
    uint64_t random = 2021;
    mtan_real *out = guard_alloc(BIG * sizeof *out);
    int models = 0, ran = 0;
    for (int round = 0; round < ROUNDS; round++) {
        static const int32_t some[] = {0, 1, 2, 3, 5, 9};
        mtan_bounds bounds;
        bounds.records = some[small_whole(&random, 1, 5)]; /* one after the other: arguments have no order in C */
        bounds.events = some[small_whole(&random, 0, 5)];
        bounds.times = some[small_whole(&random, 0, 5)];
        const int strange = small_whole(&random, 0, 19);
        small_model s, made;
        ASSERT(small_open(&s, small_whole(&random, 0, small_count() - 1)));
        made = s;
        random_config(&made.config, &random);
        const mtan_status status = mtan_config_check(&made.config);
        ASSERT(is_status(status));
        made.count = mtan_weights_count(&made.config);
        ASSERT((made.count > 0) == (status == MTAN_OK));
        if (status == MTAN_OK && made.count < 100000 && (int64_t)made.config.channels * made.config.classes < 1000) {
            made.weights = guard_alloc(made.count * sizeof *made.weights);
            ASSERT_EQ(MTAN_OK, mtan_weights_init(&made.config, made.weights, mtan_weights_count(&made.config), 5));
            ASSERT_EQ(MTAN_OK,
                      mtan_model_init(&made.model, &made.config, made.weights, mtan_weights_count(&made.config)));
            const int32_t n = small_whole(&random, 1, bounds.records + 1), largest = small_whole(&random, 0, 1);
            small_set set = small_records(&made.config, &bounds, n, largest, &random);
            int broken = 0;
            for (int32_t b = 0; b < set.n && small_whole(&random, 0, 2) == 0; b++)
                broken |= random_damage(&set.records[b], &bounds, &random);
            if (strange == 0) bounds.records = -bounds.records;
            if (strange == 1) bounds.times = TOP;
            if (strange == 2) bounds.events = INT_MAX;
            ASSERT(hostile_run(&made, &bounds, &set, broken || strange < 3, out, &ran));
            ASSERT(small_free(&set) & guard_free(made.weights));
            models++;
        }
        ASSERT(small_close(&s));
    }
    printf("  %d models of %d configs, %d calls\n", models, ROUNDS, ran);
    ASSERT(models > ROUNDS / 4 && ran > ROUNDS);
    ASSERT(guard_free(out));
    PASS();
}

SUITE(status_suite) {
    RUN_TEST(every_status_has_its_own_message);
    RUN_TEST(a_backend_says_what_it_is);
    RUN_TEST(the_version_is_that_of_the_header);
    RUN_TEST(bad_settings_are_refused);
    RUN_TEST(bad_enumerations_are_refused);
    RUN_TEST(bad_real_settings_are_refused);
    RUN_TEST(bad_reference_points_are_refused);
    RUN_TEST(config_init_and_presets);
    RUN_TEST(every_setting_goes_through_text);
    RUN_TEST(tiny_settings_go_through_text);
    RUN_TEST(long_settings_go_through_text);
    RUN_TEST(bad_text_is_refused);
    RUN_TEST(bad_settings_have_no_text);
    RUN_TEST(reals_without_text_are_refused);
    RUN_TEST(broken_records_are_refused_and_nothing_is_written);
    RUN_TEST(record_times_of_broken_records);
    RUN_TEST(record_times_of_long_records);
    RUN_TEST(counts_of_records);
    RUN_TEST(heads_and_channels_of_attention);
    RUN_TEST(functions_that_a_model_does_not_have);
    RUN_TEST(null_pointers_of_prediction);
    RUN_TEST(null_pointers_of_training);
    RUN_TEST(scratch_is_of_threads_that_there_are);
    RUN_TEST(bounds_out_of_range);
    RUN_TEST(more_times_than_the_bounds_have);
    RUN_TEST(sizes_whose_product_overflows);
    RUN_TEST(sizes_of_many_threads);
    RUN_TEST(sizes_of_large_models);
    RUN_TEST(sizes_of_large_streams);
    RUN_TEST(bad_training_configurations_are_refused);
    RUN_TEST(failing_allreduce_changes_nothing);
    RUN_TEST(failing_allreduce_of_gradients_changes_nothing);
    RUN_TEST(times_outside_the_unit_interval_are_allowed);
    RUN_TEST(records_without_anything_are_allowed);
    RUN_TEST(labels_mean_nothing_to_a_model_without_classes);
    RUN_TEST(a_step_never_leaves_broken_weights);
    RUN_TEST(a_gradient_that_is_not_finite_is_not_used);
    RUN_TEST(a_loss_that_is_not_finite_is_no_step);
    RUN_TEST(a_schedule_that_is_not_finite_is_not_used);
    RUN_TEST(huge_values_do_no_harm);
    RUN_TESTp(a_weight_that_is_nan_gives_no_prediction, MTAN_REAL);
    RUN_TESTp(a_weight_that_is_nan_gives_no_prediction, MTAN_INT8);
    RUN_TEST(records_before_a_result_that_is_not_finite);
    RUN_TEST(samples_that_exclude_each_other);
    RUN_TEST(broken_model_files_are_refused);
    RUN_TEST(files_that_are_no_models_are_refused);
    RUN_TEST(anything_at_all);
}
