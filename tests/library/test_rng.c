/* Random numbers: against NumPy and PyTorch (golden/rng.safetensors), and the statistics of our own. */
#include <greatest.h>
#include <math.h>
#include <string.h>

#include "check.h"
#include "golden_file.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define READ(tensor, type, array, n) ASSERT(golden_read("rng.safetensors", tensor, MTAN_DTYPE_##type, array, n))
#define GOLDEN(tensor, type, array) READ(tensor, type, array, COUNT(array))                    /* a vector */
#define GOLDEN2(tensor, type, array) READ(tensor, type, array, COUNT(array) * COUNT(*(array))) /* a matrix */

/* ---- The twister, and PyTorch ---- */

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

/* The low 53 of 64 bits; the first word drawn is the high one. */
static uint64_t torch_bits53(mtan_mt19937 *rng) {
    const uint64_t high = mtan_mt_next(rng) & 0x1fffffu;
    return high << 32 | mtan_mt_next(rng);
}

/* Pairs of normals close to 0 and far out, where a float radius is hardest. PyTorch draws v and then u with 53 bits
 * each, and takes 1 - u before it is rounded. */
TEST rare_normals_are_pytorchs(void) {
    uint32_t seed[3];
    int32_t at[3];
    float expected[3][2];
    GOLDEN("torch.rare.seed", U32, seed);
    GOLDEN("torch.rare.at", I32, at);
    GOLDEN2("torch.rare", F32, expected);
    for (size_t i = 0; i < COUNT(seed); i++) {
        const uint64_t one = UINT64_C(1) << 53;
        mtan_mt19937 rng;
        mtan_real got[2];
        mtan_mt_seed(&rng, seed[i]);
        for (int32_t skipped = 0; skipped < 4 * at[i]; skipped++) mtan_mt_next(&rng);
        const uint64_t v_bits = torch_bits53(&rng), u_bits = torch_bits53(&rng);
        const mtan_real u = (mtan_real)u_bits / (mtan_real)one, w = (mtan_real)(one - u_bits) / (mtan_real)one;
        const mtan_real v = (mtan_real)v_bits / (mtan_real)one;
        mtan_backend_scalar.normal_pairs(got, &u, &w, &v, 1);
        for (size_t j = 0; j < 2; j++) ASSERT_NEAR((double)expected[i][j], (double)got[j], 1e-5);
    }
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
        ASSERT_EQ((uint64_t)expected[i][1] << 32 | expected[i][0], mtan_bytes_hash(cases[i].bytes, cases[i].n));
    PASS();
}

TEST noise_agrees_with_a_second_implementation(void) {
    double expected[100];
    mtan_real *got = guard_alloc(100 * sizeof *got);
    GOLDEN("noise", F64, expected);
    mtan_noise_fill(&mtan_backend_scalar, got, 100, 5, (UINT64_C(1) << 32) + 6, mtan_bytes_hash("132539", 6), 2);
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
    RUN_TEST(uniform_fills_are_pytorchs_bit_for_bit);
    RUN_TEST(rare_normals_are_pytorchs);
    RUN_TEST(philox_gives_the_published_answers);
    RUN_TEST(hash_agrees_with_a_second_implementation);
    RUN_TEST(noise_agrees_with_a_second_implementation);
    RUN_TEST(noise_does_not_depend_on_length_or_order);
    RUN_TEST(noise_is_standard_normal);
    RUN_TEST(noise_neighbours_are_uncorrelated);
}
