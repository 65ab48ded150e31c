/* greatest_stand_in.h: the part of greatest that our tests use. Where tools/deps.sh cannot download greatest.h, its
 * greatest.h includes this file instead. Names, options and output are greatest's; where greatest is available, the
 * tests use it. */
#ifndef GREATEST_H
#define GREATEST_H

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum greatest_test_res { GREATEST_TEST_RES_FAIL = -1, GREATEST_TEST_RES_PASS, GREATEST_TEST_RES_SKIP };

/* State of the whole run; counts are indexed by the result plus one: failed, passed, skipped. */
typedef struct greatest_run {
    unsigned verbosity, column, assertions, all[3], suite[3];
    const char *only_suite, *only_test, *except_test;
    int exactly, list, first_failure;
    void (*setup)(void *), (*teardown)(void *);
    void *setup_argument, *teardown_argument;
    clock_t run_began, suite_began, test_began;
    const char *suffix, *message, *file; /* of the running test */
    unsigned line;
    char name[128];
} greatest_run;
extern greatest_run greatest;

#define TEST static enum greatest_test_res
#define SUITE(name) void name(void)
#define SUITE_EXTERN(name) void name(void)
#define RUN_SUITE(suite) greatest_run_suite(suite, #suite)
#define RUN_TESTp(test, ...)                                                                                           \
    do                                                                                                                 \
        if (greatest_before(#test)) greatest_after(test(__VA_ARGS__));                                                 \
    while (0)
#define RUN_TEST1(test, argument) RUN_TESTp(test, argument)
#define RUN_TEST(test)                                                                                                 \
    do                                                                                                                 \
        if (greatest_before(#test)) greatest_after(test());                                                            \
    while (0)

#define GREATEST_END(result, text)                                                                                     \
    return (greatest.message = (text), greatest.file = __FILE__, greatest.line = __LINE__, GREATEST_TEST_RES_##result)
#define PASS() GREATEST_END(PASS, NULL)
#define SKIPm(text) GREATEST_END(SKIP, text)
#define FAILm(text) GREATEST_END(FAIL, text)
#define FAIL() FAILm(NULL)

#define ASSERTm(text, condition)                                                                                       \
    do {                                                                                                               \
        greatest.assertions++;                                                                                         \
        if (!(condition)) FAILm(text);                                                                                 \
    } while (0)
#define ASSERT(condition) ASSERTm(#condition, condition)
#define ASSERT_FALSE(condition) ASSERTm(#condition, !(condition))
#define ASSERT_EQm(text, expected, got) ASSERTm(text, (expected) == (got))
#define ASSERT_EQ(expected, got) ASSERT_EQm(#expected " != " #got, expected, got)

/* Arguments are evaluated a second time when they are printed, as in greatest. */
#define GREATEST_SHOWN(text, condition, format, expected, got)                                                         \
    do {                                                                                                               \
        greatest.assertions++;                                                                                         \
        if (!(condition)) {                                                                                            \
            printf("\nExpected: ");                                                                                    \
            printf(format, expected);                                                                                  \
            printf("\n     Got: ");                                                                                    \
            printf(format, got);                                                                                       \
            printf("\n");                                                                                              \
            FAILm(text);                                                                                               \
        }                                                                                                              \
    } while (0)
#define ASSERT_EQ_FMTm(text, expected, got, format) GREATEST_SHOWN(text, (expected) == (got), format, expected, got)
#define ASSERT_EQ_FMT(expected, got, format) ASSERT_EQ_FMTm(#expected " != " #got, expected, got, format)
#define ASSERT_STR_EQ(expected, got)                                                                                   \
    GREATEST_SHOWN(#expected " != " #got, strcmp(expected, got) == 0, "%s", expected, got)
#define ASSERT_MEM_EQ(expected, got, size) ASSERTm(#expected " != " #got, memcmp(expected, got, size) == 0)

static inline unsigned greatest_get_verbosity(void) {
    return greatest.verbosity;
}

static inline void greatest_set_test_suffix(const char *suffix) {
    greatest.suffix = suffix;
}

static inline void GREATEST_SET_SETUP_CB(void (*call)(void *), void *argument) {
    greatest.setup = call, greatest.setup_argument = argument;
}

static inline void GREATEST_SET_TEARDOWN_CB(void (*call)(void *), void *argument) {
    greatest.teardown = call, greatest.teardown_argument = argument;
}

static inline int greatest_matches(const char *name, const char *filter) {
    return greatest.exactly ? strcmp(name, filter) == 0 : strstr(name, filter) != NULL;
}

/* Should the test run? */
static inline int greatest_before(const char *test) {
    greatest_run *g = &greatest;
    int run;
    snprintf(g->name, sizeof g->name, "%s%s%s", test, g->suffix ? "_" : "", g->suffix ? g->suffix : "");
    g->suffix = NULL;
    run = !(g->only_test && !greatest_matches(g->name, g->only_test)) &&
          !(g->except_test && greatest_matches(g->name, g->except_test)) && !(g->first_failure && g->suite[0]);
    if (run && g->list) printf("  %s\n", g->name);
    if (!run || g->list) return 0;
    g->test_began = clock();
    if (g->setup) g->setup(g->setup_argument);
    return 1;
}

static inline void greatest_took(clock_t began) {
    const clock_t ticks = clock() - began;
    printf(" (%lu ticks, %.3f sec)", (unsigned long)ticks, (double)ticks / (double)CLOCKS_PER_SEC);
}

static inline void greatest_after(enum greatest_test_res result) {
    static const char *const word[] = {"FAIL", "PASS", "SKIP"};
    const char *message = greatest.message ? greatest.message : "";
    if (greatest.teardown) greatest.teardown(greatest.teardown_argument);
    greatest.suite[result + 1]++;
    if (!greatest.verbosity && result != GREATEST_TEST_RES_FAIL) {
        printf("%s%s", result == GREATEST_TEST_RES_PASS ? "." : "s", ++greatest.column % 72 ? "" : "\n");
    } else {
        if (!greatest.verbosity) printf("F\n"), greatest.column = 0;
        printf("%s %s: %s", word[result + 1], greatest.name, message);
        if (result == GREATEST_TEST_RES_FAIL) printf(" (%s:%u)", greatest.file, greatest.line);
        if (greatest.verbosity) greatest_took(greatest.test_began);
        printf("\n");
    }
    fflush(stdout);
}

static inline void greatest_run_suite(void (*suite)(void), const char *name) {
    greatest_run *g = &greatest;
    unsigned tests;
    if ((g->only_suite && !greatest_matches(name, g->only_suite)) || (g->first_failure && g->all[0])) return;
    memset(g->suite, 0, sizeof g->suite);
    g->column = 0;
    printf("\n* Suite %s:\n", name);
    g->suite_began = clock();
    suite();
    g->setup = g->teardown = NULL;
    for (int i = 0; i < 3; i++) g->all[i] += g->suite[i];
    tests = g->suite[0] + g->suite[1] + g->suite[2];
    if (!tests) return;
    printf("\n%u test%s - %u passed, %u failed, %u skipped", tests, tests == 1 ? "" : "s", g->suite[1], g->suite[0],
           g->suite[2]);
    greatest_took(g->suite_began);
    printf("\n");
}

static inline int greatest_usage(const char *program, int status) {
    printf("Usage: %s [-hlfev] [-s SUITE] [-t TEST] [-x EXCLUDE]\n"
           "  -h  print this help\n"
           "  -l  list suites and tests, then exit (dry run)\n"
           "  -f  stop after the first failure\n"
           "  -v  verbose: a line for each test\n"
           "  -s SUITE  only suites whose name contains SUITE\n"
           "  -t TEST   only tests whose name contains TEST\n"
           "  -e        names must be equal, not contained\n"
           "  -x EXCLUDE  no tests whose name contains EXCLUDE\n",
           program);
    return status;
}

/* Returns -1, or the exit status of the program. */
static inline int greatest_options(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *o = argv[i];
        const char letter = o[0] == '-' && o[1] && !o[2] ? o[1] : '?';
        const char **text = letter == 's'   ? &greatest.only_suite
                            : letter == 't' ? &greatest.only_test
                            : letter == 'x' ? &greatest.except_test
                                            : NULL;
        if (text && i + 1 < argc) *text = argv[++i];
        else if (letter == 'v') greatest.verbosity++;
        else if (letter == 'e') greatest.exactly = 1;
        else if (letter == 'l') greatest.list = 1;
        else if (letter == 'f') greatest.first_failure = 1;
        else if (letter == 'h') return greatest_usage(argv[0], EXIT_SUCCESS);
        else return greatest_usage(argv[0], EXIT_FAILURE);
    }
    return -1;
}

static inline int greatest_report(void) {
    const greatest_run *g = &greatest;
    const unsigned tests = g->all[0] + g->all[1] + g->all[2];
    if (g->list) return EXIT_SUCCESS;
    printf("\nTotal: %u test%s", tests, tests == 1 ? "" : "s");
    greatest_took(g->run_began);
    printf(", %u assertion%s\nPass: %u, fail: %u, skip: %u.\n", g->assertions, g->assertions == 1 ? "" : "s", g->all[1],
           g->all[0], g->all[2]);
    return g->all[0] ? EXIT_FAILURE : EXIT_SUCCESS;
}

#define GREATEST_MAIN_DEFS() greatest_run greatest
#define GREATEST_MAIN_BEGIN()                                                                                          \
    const int end = greatest_options(argc, argv);                                                                      \
    if (end >= 0) return end;                                                                                          \
    greatest.run_began = clock()
#define GREATEST_MAIN_END() return greatest_report()

#endif
