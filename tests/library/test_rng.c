/* Random numbers: against NumPy, scikit-learn and PyTorch (golden/rng.safetensors), and the statistics of our own. */
#include <greatest.h>
#include <math.h>
#include <string.h>

#include "check.h"
#include "golden_file.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define READ(tensor, type, array, n) ASSERT(golden_read("rng.safetensors", tensor, MTAN_DTYPE_##type, array, n))
#define GOLDEN(tensor, type, array) READ(tensor, type, array, COUNT(array))                    /* a vector */
#define GOLDEN2(tensor, type, array) READ(tensor, type, array, COUNT(array) * COUNT(*(array))) /* a matrix */

/* ---- The twister, and NumPy ---- */

TEST words_are_those_of_numpy_and_pytorch(void) {
    uint32_t seed[5], word[5][9], torch[5][9];
    int32_t at[9];
    GOLDEN("mt.seed", U32, seed);
    GOLDEN("mt.at", I32, at);
    GOLDEN2("mt.word", U32, word);
    GOLDEN2("mt.torch", U32, torch);
    for (size_t s = 0; s < COUNT(seed); s++) {
        mtan_mt19937 rng;
        mtan_mt_seed(&rng, seed[s]);
        int32_t drawn = 0;
        for (size_t i = 0; i < COUNT(at); i++) {
            while (drawn < at[i]) mtan_mt_next(&rng), drawn++;
            uint32_t got = mtan_mt_next(&rng);
            drawn++;
            ASSERT_EQ_FMT(word[s][i], got, "%u");
            ASSERT_EQ_FMT(torch[s][i], got, "%u");
        }
    }
    PASS();
}

TEST intervals_are_numpys(void) {
    uint32_t max[120], expected[120];
    GOLDEN("interval.max", U32, max);
    GOLDEN("interval", U32, expected);
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, 7);
    for (size_t i = 0; i < COUNT(max); i++) ASSERT_EQ_FMT(expected[i], mtan_numpy_interval(&rng, max[i]), "%u");
    PASS();
}

TEST uniforms_are_numpys(void) {
    double expected[100];
    GOLDEN("uniform", F64, expected);
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, 8);
    for (size_t i = 0; i < COUNT(expected); i++) ASSERT_EQ_FMT(expected[i], mtan_numpy_uniform(&rng), "%.17g");
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
        mtan_numpy_permutation(&rng, got, (size_t)n[i]);
        ASSERT(check_same("permutation", got, expected + done, bytes));
        ASSERT(guard_free(got));
        done += (size_t)n[i];
    }
    ASSERT_EQ(COUNT(expected), done);
    mtan_mt19937 before = rng;
    mtan_numpy_permutation(&rng, NULL, 0);
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
        size_t size = (size_t)n[i], tests = mtan_split(order, size, 0.8, seed[i]);
        const int32_t *parts[] = {order, order + tests - END, order + tests, order + size - END};
        for (size_t p = 0; p < 4; p++) ASSERT(check_same("split", parts[p], ends[i] + p * END, END * sizeof *order));
    }
    PASS();
}

TEST split_sizes_are_scikit_learns(void) {
    int32_t expected[198], order[200];
    GOLDEN("split.tests", I32, expected);
    for (size_t i = 0; i < COUNT(expected); i++)
        ASSERT_EQ_FMT((size_t)expected[i], mtan_split(order, i + 2, 0.8, 0), "%zu");
    ASSERT_EQ(0, mtan_split(NULL, 0, 0.8, 0));
    ASSERT_EQ(1, mtan_split(order, 1, 0.8, 0));
    ASSERT_EQ(0, order[0]);
    const double sizes[] = {0, -1, (double)NAN, 1, 2, (double)INFINITY}; /* the first three: no training set */
    for (size_t i = 0; i < COUNT(sizes); i++) ASSERT_EQ(i < 3 ? 10 : 0, mtan_split(order, 10, sizes[i], 0));
    PASS();
}

/* ---- PyTorch ---- */

TEST uniform_fills_are_pytorchs_bit_for_bit(void) {
    enum { RANGES = 7, LENGTHS = 8, TOTAL = RANGES * (1 + 2 + 15 + 16 + 17 + 33 + 100 + 301) };
    float range[RANGES][2];
    static float expected[TOTAL];
    int32_t n[LENGTHS];
    size_t done = 0;
    GOLDEN2("torch.uniform.range", F32, range);
    GOLDEN("torch.uniform.n", I32, n);
    GOLDEN("torch.uniform", F32, expected);
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, 3);
    for (size_t r = 0; r < RANGES; r++) {
        for (size_t i = 0; i < LENGTHS; i++) {
            size_t size = (size_t)n[i];
            float *got = guard_alloc(size * sizeof *got);
            mtan_torch_uniform(&rng, got, size, range[r][0], range[r][1]);
            ASSERT(check_same("uniform_", got, expected + done, size * sizeof *got));
            ASSERT(guard_free(got));
            done += size;
        }
    }
    ASSERT_EQ(TOTAL, done);
    PASS();
}

/* The limit is absolute; *worst grows to the largest difference. */
static int normals_close(const float *got, const float *expected, size_t n, double *worst) {
    for (size_t i = 0; i < n; i++) {
        double diff = fabs((double)got[i] - (double)expected[i]);
        if (!(diff <= 1e-5)) {
            printf("  BAD randn, %zu of %zu: %.9g, expected %.9g\n", i, n, (double)got[i], (double)expected[i]);
            return 0;
        }
        *worst = fmax(*worst, diff);
    }
    return 1;
}

/* Lengths 1 to 40, long ones, and single draws around a long one: the half pair kept by a single draw must survive it. */
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
    double worst = 0;
    for (size_t i = 0; i < LENGTHS; i++) {
        size_t size = (size_t)n[i];
        float *got = guard_alloc(size * sizeof *got);
        mtan_torch_normal(&mtan_backend_scalar, &rng, got, size);
        ASSERT(normals_close(got, expected + done, size, &worst));
        ASSERT(guard_free(got));
        done += size;
    }
    ASSERT_EQ(TOTAL, done);
    mtan_torch_uniform(&rng, got_next, 4, 0, 1);
    ASSERT(check_same("the generator has moved as far", got_next, next, sizeof next));
    printf("  ok randn, %d entries: worst difference %.3g of 1e-05\n", TOTAL, worst);
    PASS();
}

/* Scalar normals close to 0 and far out, where a float radius is hardest. A pair takes four words. */
TEST rare_normals_are_pytorchs(void) {
    uint32_t seed[3];
    int32_t at[3];
    float expected[3][2], got[2];
    double worst = 0;
    GOLDEN("torch.rare.seed", U32, seed);
    GOLDEN("torch.rare.at", I32, at);
    GOLDEN2("torch.rare", F32, expected);
    for (size_t i = 0; i < COUNT(seed); i++) {
        mtan_mt19937 rng;
        mtan_mt_seed(&rng, seed[i]);
        for (int32_t skipped = 0; skipped < 4 * at[i]; skipped++) mtan_mt_next(&rng);
        mtan_torch_normal(&mtan_backend_scalar, &rng, got, 2);
        ASSERT(normals_close(got, expected[i], 2, &worst));
    }
    printf("  ok rare randn: worst difference %.3g of 1e-05\n", worst);
    PASS();
}

/* ---- Our own ---- */

/* The known answers that the authors publish with their code (Random123, kat_vectors, philox4x32 with 10 rounds). */
TEST philox_gives_the_published_answers(void) {
    const uint32_t ones = 0xffffffff;
    const struct {
        uint32_t counter[4], key[2], answer[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{ones, ones, ones, ones}, {ones, ones}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0}, /* digits of pi */
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < 3; i++) {
        uint32_t got[4];
        mtan_philox(got, cases[i].counter, cases[i].key);
        ASSERT(check_same("philox", got, cases[i].answer, sizeof got));
    }
    PASS();
}

TEST hash_agrees_with_a_second_implementation(void) {
    uint32_t expected[4][2];
    unsigned char all[256];
    for (size_t i = 0; i < 256; i++) all[i] = (unsigned char)i;
    const struct {
        const void *bytes;
        size_t n;
    } cases[] = {{NULL, 0}, {"a", 1}, {"132539", 6}, {all, 256}};
    GOLDEN2("hash", U32, expected);
    for (size_t i = 0; i < COUNT(cases); i++)
        ASSERT_EQ((uint64_t)expected[i][1] << 32 | expected[i][0], mtan_hash(cases[i].bytes, cases[i].n));
    PASS();
}

TEST noise_agrees_with_a_second_implementation(void) {
    double expected[100];
    mtan_real *got = guard_alloc(100 * sizeof *got);
    GOLDEN("noise", F64, expected);
    mtan_noise_fill(&mtan_backend_scalar, got, 100, 5, (UINT64_C(1) << 32) + 6, mtan_hash("132539", 6), 2);
    ASSERT(check_close("noise", got, expected, 100, sizeof *got == 4 ? 1e-5 : 1e-12, 0));
    ASSERT(guard_free(got));
    PASS();
}

TEST noise_does_not_depend_on_length_or_order(void) {
    mtan_real whole[3][100];
    for (uint64_t r = 0; r < 3; r++) mtan_noise_fill(&mtan_backend_scalar, whole[r], 100, 1, 2, r, 3);
    for (size_t n = 1; n <= 100; n++) {
        for (uint64_t r = 3; r-- > 0;) {
            mtan_real *part = guard_alloc(n * sizeof *part);
            mtan_noise_fill(&mtan_backend_scalar, part, n, 1, 2, r, 3);
            ASSERT(check_same("noise", part, whole[r], n * sizeof *part));
            ASSERT(guard_free(part));
        }
    }
    mtan_noise_fill(&mtan_backend_scalar, NULL, 0, 1, 2, 3, 4);
    PASS();
}

/* Moments and tails of 2^18 normals, and the correlation of each with its neighbour in every coordinate. All limits are
 * five standard errors of the estimate: for n independent normals these are sqrt(1/n) (mean, correlation), sqrt(2/n),
 * sqrt(15/n) and sqrt(96/n) (second to fourth moment) and sqrt(p (1 - p)/n) (share below a bound). */
enum { ROWS = 256, COLUMNS = 1024 };
#define STATISTICS_N ((double)ROWS * COLUMNS)

static int within(const char *what, double got, double expected, double standard_error) {
    double used = fabs(got - expected) / (5 * standard_error);
    int ok = used <= 1;
    printf("  %s noise, %s: %.5f, expected %.5f, %.0f %% of the limit\n", ok ? "ok" : "BAD", what, got, expected,
           100 * used);
    return ok;
}

TEST noise_is_standard_normal(void) {
    const double bounds[] = {-3, -2, -1, 0, 1, 2, 3};
    double below[COUNT(bounds)] = {0}, power[5] = {0};
    static mtan_real x[COLUMNS];
    for (uint64_t r = 0; r < ROWS; r++) {
        mtan_noise_fill(&mtan_backend_scalar, x, COLUMNS, 0, 0, r, 0);
        for (size_t i = 0; i < COLUMNS; i++) {
            double v = (double)x[i];
            for (size_t b = 0; b < COUNT(bounds); b++) below[b] += v < bounds[b];
            for (int p = 1; p <= 4; p++) power[p] += pow(v, p) / STATISTICS_N;
        }
    }
    ASSERT(within("mean", power[1], 0, sqrt(1 / STATISTICS_N)));
    ASSERT(within("second moment", power[2], 1, sqrt(2 / STATISTICS_N)));
    ASSERT(within("third moment", power[3], 0, sqrt(15 / STATISTICS_N)));
    ASSERT(within("fourth moment", power[4], 3, sqrt(96 / STATISTICS_N)));
    for (size_t b = 0; b < COUNT(bounds); b++) {
        double p = 0.5 * erfc(-bounds[b] / sqrt(2));
        ASSERT(within("share below a bound", below[b] / STATISTICS_N, p, sqrt(p * (1 - p) / STATISTICS_N)));
    }
    PASS();
}

/* The noise of one coordinate further on. */
static void neighbour(mtan_real *y, uint32_t r, size_t coordinate) {
    uint32_t at[4] = {r, r, r, r};
    at[coordinate]++;
    mtan_noise_fill(&mtan_backend_scalar, y, COLUMNS, at[0], at[1], at[2], at[3]);
}

TEST noise_neighbours_are_uncorrelated(void) {
    static const char *names[] = {"seed", "epoch", "record", "sample", "index + 1", "index + 8", "index + 16"};
    static mtan_real x[COLUMNS + 16], y[COLUMNS];
    double product[COUNT(names)] = {0}, squares[COUNT(names)] = {0};
    for (uint32_t r = 0; r < ROWS; r++) {
        mtan_noise_fill(&mtan_backend_scalar, x, COUNT(x), r, r, r, r);
        for (size_t k = 0; k < COUNT(names); k++) {
            const mtan_real *other = k < 4 ? y : x + (k == 4 ? 1 : k == 5 ? 8 : 16);
            if (k < 4) neighbour(y, r, k);
            for (size_t i = 0; i < COLUMNS; i++) {
                double a = (double)x[i], b = (double)other[i];
                product[k] += a * b / STATISTICS_N;
                squares[k] += (a * a - 1) * (b * b - 1) / 2 / STATISTICS_N; /* sees a shared radius */
            }
        }
    }
    for (size_t k = 0; k < COUNT(names); k++) {
        ASSERT(within(names[k], product[k], 0, sqrt(1 / STATISTICS_N)));
        ASSERT(within(names[k], squares[k], 0, sqrt(1 / STATISTICS_N)));
    }
    PASS();
}

SUITE(rng_suite) {
    RUN_TEST(words_are_those_of_numpy_and_pytorch);
    RUN_TEST(intervals_are_numpys);
    RUN_TEST(uniforms_are_numpys);
    RUN_TEST(permutations_are_numpys);
    RUN_TEST(splits_are_scikit_learns);
    RUN_TEST(split_sizes_are_scikit_learns);
    RUN_TEST(uniform_fills_are_pytorchs_bit_for_bit);
    RUN_TEST(normal_fills_are_pytorchs);
    RUN_TEST(rare_normals_are_pytorchs);
    RUN_TEST(philox_gives_the_published_answers);
    RUN_TEST(hash_agrees_with_a_second_implementation);
    RUN_TEST(noise_agrees_with_a_second_implementation);
    RUN_TEST(noise_does_not_depend_on_length_or_order);
    RUN_TEST(noise_is_standard_normal);
    RUN_TEST(noise_neighbours_are_uncorrelated);
}
