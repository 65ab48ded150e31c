/* The helpers of check.h must themselves be able to fail. */
#include <greatest.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "check.h"

/* A call that must fail, and so prints nothing. */
#define FAILS(call)                                                                                                    \
    do {                                                                                                               \
        check_quiet = 1;                                                                                               \
        int passed = (call) ? 1 : 0;                                                                                   \
        check_quiet = 0;                                                                                               \
        ASSERT_FALSE(passed);                                                                                          \
    } while (0)

TEST close_accepts_what_is_close(void) {
    const mtan_real got[] = {1, 2, 3};
    const double ref[] = {1, 2.25, 3}; /* 2.25 away by 0.25: exactly representable, so the limit can be met exactly */
    ASSERT(check_close("at the limit", got, ref, 3, 0.25, 0));
    ASSERT(check_close("relative", got, ref, 3, 0, 0.25 / 2.25));
    FAILS(check_close("just beyond", got, ref, 3, 0.2499999, 0));
    ASSERT(check_close("equal at limit 0", got, ref, 1, 0, 0));
    FAILS(check_close("different at limit 0", got, ref, 2, 0, 0));
    FAILS(check_close("nothing compared", got, ref, 0, 1, 1));
    FAILS(check_close("negative limit", got, ref, 1, -1, 0));
    PASS();
}

TEST close_points_at_the_worst_entry(void) {
    const mtan_real got[] = {1, 5, 3, 7};
    const double ref[] = {1, 4, 3, 4};
    check_worst worst = check_entries(got, ref, 4, 2, 0);
    ASSERT_EQ(3, worst.index);
    ASSERT_EQ(7.0, worst.got);
    ASSERT_EQ(4.0, worst.ref);
    ASSERT_EQ(3.0, worst.diff);
    ASSERT_EQ(1.5, worst.share);
    ASSERT_FALSE(check_passes(&worst));
    PASS();
}

TEST close_rejects_nan_and_infinity(void) {
    const double odd[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    for (size_t i = 0; i < 3; i++) {
        for (size_t at = 0; at < 3; at++) { /* wherever it stands: first, in the middle, last */
            mtan_real got[] = {1, 1, 1};
            double ref[] = {1, 1, 1};
            got[at] = (mtan_real)odd[i];
            FAILS(check_close("odd value", got, ref, 3, 1e30, 1));
            FAILS(check_norm("odd value", got, ref, 3, 1e30, 1));
            ASSERT_EQ(at, check_entries(got, ref, 3, 1e30, 1).index);
            got[at] = 1;
            ref[at] = odd[i];
            FAILS(check_close("odd reference", got, ref, 3, 1e30, 1));
            FAILS(check_norm("odd reference", got, ref, 3, 1e30, 1));
        }
    }
    const mtan_real one = 1;
    const double two = 2;
    FAILS(check_close("NaN limit", &one, &two, 1, (double)NAN, 0));
    FAILS(check_norm("NaN limit", &one, &two, 1, (double)NAN, 0));
    FAILS(check_near(1, (double)NAN, 1));
    FAILS(check_near((double)NAN, 1, 1));
    FAILS(check_near(1, 1, (double)NAN));
    ASSERT(check_near(1, 1.5, 0.5));
    PASS();
}

TEST norm_adds_up_the_entries(void) {
    const mtan_real got[] = {3, 4};
    const double ref[] = {0, 0};
    ASSERT(check_norm("3-4-5", got, ref, 2, 5, 0));
    FAILS(check_norm("3-4-5", got, ref, 2, 4.99, 0));
    FAILS(check_norm("nothing compared", got, ref, 0, 5, 0));
    const double far[] = {3, 8}; /* 4 away, |far| = sqrt(73) */
    ASSERT(check_norm("relative", got, far, 2, 0, 0.47));
    FAILS(check_norm("relative", got, far, 2, 0, 0.46));
    PASS();
}

TEST same_compares_bits(void) {
    const double zero[] = {0.0, 1.0}, minus[] = {-0.0, 1.0};
    ASSERT(check_same("equal", zero, zero, sizeof zero));
    FAILS(check_same("zero and minus zero", zero, minus, sizeof zero));
    FAILS(check_same("nothing compared", zero, zero, 0));
    PASS();
}

/* Flips a byte behind the sanitizer's back, as code that is not instrumented would. */
#if defined(__GNUC__)
__attribute__((no_sanitize_address, noinline))
#endif
static void
flip(unsigned char *byte) {
    volatile unsigned char *p = byte;
    *p ^= 1;
}

TEST guards_notice_one_byte(void) {
    const size_t sizes[] = {0, 1, 7, 8, 9, 63, 64, 65, 1000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t bytes = sizes[i];
        unsigned char *block = guard_alloc(bytes);
        ASSERT_EQ(0, (uintptr_t)block % 64);
        memset(block, 0, bytes);
        ASSERT(guard_check(block));
        const ptrdiff_t outside[] = {-64, -1, (ptrdiff_t)bytes, (ptrdiff_t)bytes + 63};
        for (size_t j = 0; j < 4; j++) {
            flip(block + outside[j]);
            FAILS(guard_check(block));
            flip(block + outside[j]);
            ASSERT(guard_check(block));
        }
        flip(block + bytes);
        FAILS(guard_free(block));
    }
    ASSERT(guard_free(NULL));
    PASS();
}

TEST guarded_content_starts_as_nan(void) {
    mtan_real *block = guard_alloc(3 * sizeof *block);
    for (int i = 0; i < 3; i++) ASSERT(block[i] != block[i]);
    ASSERT(guard_free(block));
    PASS();
}

TEST slurp_reads_whole_files(void) {
    size_t bytes = 99;
    char *text = slurp("tests/suites.h", &bytes); /* tests run from the top folder */
    ASSERT(text != NULL);
    ASSERT(bytes > 20);
    ASSERT_EQ(0, memcmp(text, "/* Every suite", 14));
    ASSERT_EQ('\n', text[bytes - 1]);
    ASSERT(guard_free(text));
    bytes = 99;
    FAILS(slurp("tests/no such file", &bytes));
    ASSERT_EQ(99, bytes);
    PASS();
}

SUITE(check_suite) {
    RUN_TEST(close_accepts_what_is_close);
    RUN_TEST(close_points_at_the_worst_entry);
    RUN_TEST(close_rejects_nan_and_infinity);
    RUN_TEST(norm_adds_up_the_entries);
    RUN_TEST(same_compares_bits);
    RUN_TEST(guards_notice_one_byte);
    RUN_TEST(guarded_content_starts_as_nan);
    RUN_TEST(slurp_reads_whole_files);
}
