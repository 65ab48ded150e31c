/* Numbers as text, as settings and model files have them: what is read, what is written, and what is no number.
 * Values are literals of the compiler or those of the C library's strtod. */
#include <greatest.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "small.h"

static mtan_config start(void) {
    mtan_config config;
    mtan_config_init(&config, MTAN_FULL, MTAN_CLASSIFY_RECORD, 3, 2);
    return config;
}

/* ---- reading ---- */

static int reads_as(const char *text, double expected, double relative) {
    mtan_config config = start();
    config.alpha = 77;
    if (mtan_config_set(&config, "alpha", text) == MTAN_OK &&
        fabs(config.alpha - expected) <= relative * fabs(expected))
        return 1;
    printf("  BAD %s is read as %.17g, %.17g is due\n", text, config.alpha, expected);
    return 0;
}

TEST exact_numbers_are_read(void) {
    static const struct {
        const char *text;
        double value;
    } cases[] = {{"0", 0},
                 {"7", 7},
                 {"-7", -7},
                 {"1023456789", 1023456789},
                 {"0.5", 0.5},
                 {"-0.125", -0.125},
                 {"1234.0987", 1234.0987},
                 {"7e2", 700},
                 {"7E2", 700},
                 {"7e+2", 700},
                 {"25e-3", 0.025},
                 {"-25E-3", -0.025},
                 {"1.75e1", 17.5},
                 {"1e010", 1e10},
                 {"9e0", 9},
                 {"3e20", 3e20},
                 {"3e-20", 3e-20},
                 {"4e22", 4e22},
                 {"0x1p-0", 1},
                 {"0x18p-4", 1.5},
                 {"-0x8p-3", -1},
                 {"0x123456789p-0", 4886718345.0},
                 {"0x90p-09", 0.28125},
                 {"0xabcdefp-0", 11259375},
                 {"0xf9a0p-10", 0xf9a0 / 1024.0},
                 {"0x0edcba98765432p-20", 0x0edcba98765432p-20},
                 {"0x10000000000000p-1126", 0x1p-1074},
                 {"0x1fffffffffffffp-1074", 0x1.fffffffffffffp-1022}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) ASSERT(reads_as(cases[i].text, cases[i].value, 0));
    PASS();
}

/* Beyond 53 bits and 10^22 the nearest double, too; the ends of what is taken, 30 digits behind the first that is not 0 and 340
 * places to either side, are sharp, and so is the end of what a double holds. */
TEST long_numbers_are_read(void) {
    static const char *const good[] = {"123456789012345678901234567890",
                                       "0.000000000000000000000000123456",
                                       "0.1e301",
                                       "1e-300",
                                       "1e308",
                                       "1e-308",
                                       "1e-340",
                                       "0.1e-339",
                                       "0e340",
                                       "2.5e+100"};
    static const char *const bad[] = {"1234567890123456789012345678901",
                                      "0.1234567890123456789012345678901",
                                      "1e309",
                                      "1e341",
                                      "0e341",
                                      "1e-341",
                                      "0.1e-340",
                                      "1e99999999999999999999",
                                      "1e-99999999999999999999",
                                      "0x0fedcba98765432p-60",
                                      "0x1p-1127",
                                      "0x1p-99999999999999999999"};
    mtan_config config = start(), before = config;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) ASSERT(reads_as(good[i], strtod(good[i], NULL), 0));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ASSERTm(bad[i], mtan_config_set(&config, "alpha", bad[i]) == MTAN_ERR_CONFIG);
    ASSERT(memcmp(&config, &before, sizeof config) == 0);
    PASS();
}

/* The characters beside the digits in ASCII, and signs, letters and ends where they do not belong. */
TEST what_is_no_number_is_refused(void) {
    static const char *const bad[] = {
        "/",       ":",      "1/",     "1:",     "/1",     ":1",     "0.1/",   "0.1:",    "0./",
        "1e/",     "1e:",    "1e2/",   "1e2:",   "1e--2",  "1e-",    "1e+-2",  "1f2",     "1d2",
        "1F2",     "1D2",    "1e2e2",  "1e2.0",  "0x",     "0xp-1",  "0x1",    "0x1p",    "0x1p-",
        "0x1p1",   "0x1p+1", "0x1q-1", "0x1o-1", "0x1p.1", "0x/p-1", "0x:p-1", "0x`p-1",  "0xgp-1",
        "0x1/p-1", "0xAp-1", "0X1p-1", "0y1p-1", "1x1p-1", "0x1p-/", "0x1p-:", "0x1p-1/", "0x1p-1:"};
    mtan_config config = start(), before = config;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ASSERTm(bad[i], mtan_config_set(&config, "alpha", bad[i]) == MTAN_ERR_CONFIG);
    ASSERT(memcmp(&config, &before, sizeof config) == 0);
    PASS();
}

/* Whole settings go up to 1e9 on either side, and not a fraction further. */
TEST whole_settings_end_at_a_thousand_million(void) {
    static const char *const bad[] = {"1000000001", "-1000000001", "1000000000.5", "0.5", "-0.25"};
    mtan_config config = start();
    ASSERT_EQ(MTAN_OK, mtan_config_set(&config, "channels", "1000000000"));
    ASSERT_EQ(1000000000, config.channels);
    ASSERT_EQ(MTAN_OK, mtan_config_set(&config, "channels", "-1000000000"));
    ASSERT_EQ(-1000000000, config.channels);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ASSERTm(bad[i], mtan_config_set(&config, "channels", bad[i]) == MTAN_ERR_CONFIG);
    ASSERT_EQ(-1000000000, config.channels);
    PASS();
}

/* ---- writing ---- */

TEST the_shortest_text_is_written(void) {
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"},
                 {1, "1"},
                 {-1, "-1"},
                 {10, "10"},
                 {100, "100"},
                 {999999999, "999999999"},
                 {0.5, "0.5"},
                 {-47.5, "-47.5"},
                 {0.1, "0.1"},
                 {0.01, "0.01"},
                 {0.025, "0.025"},
                 {123456.789, "123456.789"},
                 {100.001, "100.001"},
                 {1e-15, "0.000000000000001"},
                 {0.123456789012345, "0.123456789012345"},
                 {1 / 3.0, "0x15555555555555p-54"},
                 {-1 / 3.0, "-0x15555555555555p-54"},
                 {0x1p-20, "0x10000000000000p-72"},
                 {0x1.abcdefp-100, "0x1abcdef0000000p-152"},
                 {0x1p-1074, "0x10000000000000p-1126"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mtan_config config = start();
        char text[64];
        config.embed_scale = cases[i].value;
        ASSERT_EQ(MTAN_OK, mtan_config_get(&config, "embed_scale", text, sizeof text));
        ASSERT_STR_EQ(cases[i].text, text);
    }
    PASS();
}

/* Numbers of all sizes and lengths: the C library reads the text as the same number, and so do we. */
TEST what_is_written_reads_back(void) {
    uint64_t random = 7;
    for (int i = 0; i < 20000; i++) {
        mtan_config config = start(), copy = config;
        char text[64];
        const double whole = (double)(int64_t)(small_random(&random) >> small_whole(&random, 2, 60));
        config.alpha =
            i % 2 ? whole / pow(10, small_whole(&random, 0, 18)) : ldexp(whole, -small_whole(&random, 0, 1100));
        if (!(config.alpha < 1e9)) continue;
        ASSERT_EQ(MTAN_OK, mtan_config_get(&config, "alpha", text, sizeof text));
        ASSERT_EQ_FMT(config.alpha, strtod(text, NULL), "%.17g");
        ASSERT_EQ(MTAN_OK, mtan_config_set(&copy, "alpha", text));
        ASSERT_EQ_FMT(config.alpha, copy.alpha, "%.17g");
    }
    PASS();
}

SUITE(numbers_suite) {
    RUN_TEST(exact_numbers_are_read);
    RUN_TEST(long_numbers_are_read);
    RUN_TEST(what_is_no_number_is_refused);
    RUN_TEST(whole_settings_end_at_a_thousand_million);
    RUN_TEST(the_shortest_text_is_written);
    RUN_TEST(what_is_written_reads_back);
}
