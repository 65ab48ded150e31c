/* Helpers of the tests: comparisons that fail for NaN, buffers that detect a write one byte too far, whole files in
 * memory.
 *
 * The comparisons return 1 on success and 0 otherwise, so that a test says ASSERT(check_close(...)). They print one
 * line: the worst index, both values, and the fraction of the limit that was used. */
#ifndef MTAN_TESTS_CHECK_H
#define MTAN_TESTS_CHECK_H

#include <stddef.h>

#define MTAN_INTERNALS
#include "../../mtan.h"

/* The entry that uses the largest fraction of its limit. share = diff / limit: above 1 it fails; infinite for NaN. */
typedef struct {
    size_t index;
    double got, ref, diff, limit, share;
} check_worst;

/* Entry by entry: |got[i] - ref[i]| <= absolute + relative |ref[i]|. Comparing nothing (n = 0) is a failure as well. */
check_worst check_entries(const mtan_real *got, const double *ref, size_t n, double absolute, double relative);

/* By the norm: ||got - ref|| <= absolute + relative ||ref||. index, got and ref are those of the largest difference. */
check_worst check_distance(const mtan_real *got, const double *ref, size_t n, double absolute, double relative);

/* 1: prints nothing, for tests that expect a failure. */
extern int check_quiet;

/* Did it stay within the limit? Written so that NaN fails. */
int check_passes(const check_worst *worst);

/* The two comparisons above, with the verdict printed under `name`. */
int check_close(const char *name, const mtan_real *got, const double *ref, size_t n, double absolute, double relative);
int check_norm(const char *name, const mtan_real *got, const double *ref, size_t n, double absolute, double relative);

/* |got - expected| <= tolerance, and neither is NaN, which greatest's ASSERT_IN_RANGE lets pass. Prints both. */
int check_near(double expected, double got, double tolerance);
#define ASSERT_NEAR(expected, got, tolerance) ASSERT(check_near((double)(expected), (double)(got), (double)(tolerance)))

/* The same bits? Prints the first byte that differs. */
int check_same(const char *name, const void *got, const void *expected, size_t bytes);

/* Does this machine keep the least significant byte first, as files do? */
int host_is_little(void);

/* Euclidean norm, summed in double. */
double check_length(const double *x, size_t n);

/* A block of exactly `bytes` bytes, aligned to 64, between two guard zones. The content starts as all ones, which is
 * NaN in every floating type, so that a read before a write shows. With the address sanitizer the zones are poisoned,
 * so reading them stops the test as well. Exits if memory runs out. */
void *guard_alloc(size_t bytes);

/* Called when each such block is allocated and when it is freed; both may be null. */
typedef struct {
    void (*given)(void *block, size_t bytes);
    void (*taken)(void *block);
} guard_watcher;
extern guard_watcher guard_watch;

/* Are both zones untouched? Prints which byte is not. */
int guard_check(const void *block);

/* Calls guard_check, then frees. NULL is fine. */
int guard_free(void *block);

/* A whole file in a guarded block (guard_free it); NULL, with the reason printed, if it cannot be read. */
void *slurp(const char *path, size_t *bytes);

/* The same for a file of the folder golden/. */
void *slurp_golden(const char *name, size_t *bytes);

/* Is the name in MTAN_SKIP_CASES? On an emulated CPU the largest cases take minutes; a test that skips one says
 * LEFT_OUT. The variable may also name a suite. */
int case_left_out(const char *name);
#define LEFT_OUT "named in MTAN_SKIP_CASES"

/* Goes first in a test that takes seconds on an emulated CPU, so that MTAN_SKIP_CASES may name the test. */
#define MAY_BE_LEFT_OUT()                                                                                              \
    do {                                                                                                               \
        if (case_left_out(__func__)) SKIPm(LEFT_OUT);                                                                  \
    } while (0)

/* Sorts random knots of encoded values, channel by channel, because a model's knots are sorted. */
void sort_knots(const mtan_config *config, mtan_real *weights);

#endif
