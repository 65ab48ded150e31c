/* What NumPy, scikit-learn and PyTorch draw (golden/rng.safetensors). */
#include "../../tools/data/generators.h"

#include <greatest.h>
#include <math.h>

#include "check.h"
#include "golden_file.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define READ(tensor, type, array, n) ASSERT(golden_read("rng.safetensors", tensor, MTAN_DTYPE_##type, array, n))
#define GOLDEN(tensor, type, array) READ(tensor, type, array, COUNT(array))                    /* a vector */
#define GOLDEN2(tensor, type, array) READ(tensor, type, array, COUNT(array) * COUNT(*(array))) /* a matrix */

TEST intervals_are_numpys(void) {
    uint32_t max[120], expected[120];
    GOLDEN("interval.max", U32, max);
    GOLDEN("interval", U32, expected);
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, 7);
    for (size_t i = 0; i < COUNT(max); i++) ASSERT_EQ_FMT(expected[i], numpy_interval(&rng, max[i]), "%u");
    PASS();
}

TEST uniforms_are_numpys(void) {
    double expected[100];
    GOLDEN("uniform", F64, expected);
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, 8);
    for (size_t i = 0; i < COUNT(expected); i++) ASSERT_EQ_FMT(expected[i], numpy_uniform(&rng), "%.17g");
    PASS();
}

TEST permutations_are_numpys(void) {
    int32_t n[7], expected[845];
    size_t done = 0;
    GOLDEN("permutation.n", I32, n);
    GOLDEN("permutation", I32, expected);
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, 9);
    for (size_t i = 0; i < COUNT(n); i++) {
        size_t bytes = (size_t)n[i] * sizeof(int32_t);
        int32_t *got = guard_alloc(bytes);
        numpy_permutation(&rng, got, (size_t)n[i]);
        ASSERT(check_same("permutation", got, expected + done, bytes));
        ASSERT(guard_free(got));
        done += (size_t)n[i];
    }
    ASSERT_EQ(COUNT(expected), done);
    mtan_mt19937 before = rng;
    numpy_permutation(&rng, NULL, 0);
    ASSERT(check_same("no draw for nothing", &rng, &before, sizeof rng));
    PASS();
}

TEST splits_are_scikit_learns(void) {
    enum { END = 10 };
    int32_t n[6], ends[6][4 * END];
    uint32_t seed[6];
    static int32_t order[8000];
    GOLDEN("split.n", I32, n);
    GOLDEN("split.seed", U32, seed);
    GOLDEN2("split.ends", I32, ends);
    for (size_t i = 0; i < COUNT(n); i++) {
        size_t size = (size_t)n[i], tests = sklearn_split(order, size, 0.8, seed[i]);
        const int32_t *parts[] = {order, order + tests - END, order + tests, order + size - END};
        for (size_t p = 0; p < 4; p++) ASSERT(check_same("split", parts[p], ends[i] + p * END, END * sizeof *order));
    }
    PASS();
}

TEST split_sizes_are_scikit_learns(void) {
    int32_t expected[198], order[200];
    GOLDEN("split.tests", I32, expected);
    for (size_t i = 0; i < COUNT(expected); i++)
        ASSERT_EQ_FMT((size_t)expected[i], sklearn_split(order, i + 2, 0.8, 0), "%zu");
    ASSERT_EQ(0, sklearn_split(NULL, 0, 0.8, 0));
    ASSERT_EQ(1, sklearn_split(order, 1, 0.8, 0));
    ASSERT_EQ(0, order[0]);
    const double sizes[] = {0, -1, (double)NAN, 1, 2, (double)INFINITY}; /* the first three: no training set */
    for (size_t i = 0; i < COUNT(sizes); i++) ASSERT_EQ(i < 3 ? 10 : 0, sklearn_split(order, 10, sizes[i], 0));
    PASS();
}

/* Below 16 PyTorch draws normals in pairs of four words and keeps the second half of a pair for later. */
static void skip_pairs(mtan_mt19937 *rng, size_t n, int *half) {
    for (size_t i = 0; i < n; i++) {
        *half = !*half;
        for (int word = 0; *half && word < 4; word++) mtan_mt_next(rng);
    }
}

/* One stream of draws of lengths 1 to 40 and long ones: the tail that is made anew, and how far the generator moves. */
TEST normal_fills_are_pytorchs(void) {
    enum { LENGTHS = 50, TOTAL = 820 + 100 + 1000 + 4097 + 1 + 100 + 1 + 1 + 15 + 16 + 1 };
    int32_t n[LENGTHS];
    static float expected[TOTAL];
    float next[4], got_next[4];
    size_t done = 0;
    GOLDEN("torch.normal.n", I32, n);
    GOLDEN("torch.normal", F32, expected);
    GOLDEN("torch.normal.next", F32, next);
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, 4);
    int half = 0;
    for (size_t i = 0; i < LENGTHS; i++) {
        size_t size = (size_t)n[i];
        if (size < 16) {
            skip_pairs(&rng, size, &half);
        } else {
            float *got = guard_alloc(size * sizeof *got);
            torch_normal(&rng, got, size);
            for (size_t j = 0; j < size; j++) ASSERT_NEAR(expected[done + j], got[j], 1e-5f);
            ASSERT(guard_free(got));
        }
        done += size;
    }
    ASSERT_EQ(TOTAL, done);
    mtan_torch_uniform(&rng, got_next, 4, 0, 1);
    ASSERT(check_same("the generator has moved as far", got_next, next, sizeof next));
    PASS();
}

SUITE(generators_suite) {
    RUN_TEST(intervals_are_numpys);
    RUN_TEST(uniforms_are_numpys);
    RUN_TEST(permutations_are_numpys);
    RUN_TEST(splits_are_scikit_learns);
    RUN_TEST(split_sizes_are_scikit_learns);
    RUN_TEST(normal_fills_are_pytorchs);
}
