/* Helpers of the tests: comparisons in which NaN fails, buffers that notice one byte too far, whole files in memory.
 *
 * The comparisons return 1 when all is well and 0 otherwise, so that a test says ASSERT(check_close(...)). They print
 * one line: the worst index, both values, and the share of the limit that was used.
 */
#ifndef MTAN_TESTS_CHECK_H
#define MTAN_TESTS_CHECK_H

#include <stddef.h>

#define MTAN_INTERNALS
#include "../../mtan.h"

/* The entry that uses most of its limit. share = diff / limit: failed above 1; infinite where NaN appears. */
typedef struct {
    size_t index;
    double got, ref, diff, limit, share;
} check_worst;

/* Entry by entry: |got[i] - ref[i]| <= absolute + relative |ref[i]|. Comparing nothing (n = 0) is a failure as well. */
check_worst check_entries(const mtan_real *got, const double *ref, size_t n, double absolute, double relative);

/* By the norm: ||got - ref|| <= absolute + relative ||ref||. index, got and ref are those of the largest difference. */
check_worst check_distance(const mtan_real *got, const double *ref, size_t n, double absolute, double relative);

/* 1: print nothing. For tests that expect a failure. */
extern int check_quiet;

/* Did it stay within the limit? Written so that NaN answers no. */
int check_passes(const check_worst *worst);

/* The two above with the verdict printed under `name`. */
int check_close(const char *name, const mtan_real *got, const double *ref, size_t n, double absolute, double relative);
int check_norm(const char *name, const mtan_real *got, const double *ref, size_t n, double absolute, double relative);

/* The same bits? Prints the first byte that differs. */
int check_same(const char *name, const void *got, const void *expected, size_t bytes);

/* Does this machine keep the least significant byte first, as files do? */
int host_is_little(void);

/* Euclidean norm, summed in double. */
double check_length(const double *x, size_t n);

/* A block of exactly `bytes` bytes, aligned to 64, between two guard zones. The content starts as all ones, which is
 * NaN in every floating type, so a read of something never written shows. With the address sanitizer the zones are
 * forbidden, so a read of them stops the test as well. Exits when the machine has no memory left. */
void *guard_alloc(size_t bytes);

/* Told about every such block from its first to its last moment; both may be null. */
typedef struct {
    void (*given)(void *block, size_t bytes);
    void (*taken)(void *block);
} guard_watcher;
extern guard_watcher guard_watch;

/* Are both zones untouched? Prints which byte is not. */
int guard_check(const void *block);

/* guard_check, then frees. NULL is fine. */
int guard_free(void *block);

/* A whole file in a guarded block (guard_free it); NULL, with the reason printed, if it cannot be read. */
void *slurp(const char *path, size_t *bytes);

/* The same for a file of the folder golden/. */
void *slurp_golden(const char *name, size_t *bytes);

/* Is it a word of MTAN_SKIP_CASES? An emulated CPU takes minutes for the largest cases; a test that skips one says
 * LEFT_OUT. A suite may be named too. */
int case_left_out(const char *name);
#define LEFT_OUT "named in MTAN_SKIP_CASES"

/* The first words of a test that takes an emulated CPU seconds: its name may be such a word. */
#define MAY_BE_LEFT_OUT()                                                                                              \
    do {                                                                                                               \
        if (case_left_out(__func__)) SKIPm(LEFT_OUT);                                                                  \
    } while (0)

/* Puts random knots of encoded values in order, channel by channel, as a model's are. */
void sort_knots(const mtan_config *config, mtan_real *weights);

#endif
