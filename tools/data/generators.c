/* See generators.h. */
#include "generators.h"

uint32_t numpy_interval(mtan_mt19937 *rng, uint32_t max) {
    uint32_t mask = max, x;
    if (max == 0) return 0;
    for (int shift = 1; shift < 32; shift *= 2) mask |= mask >> shift;
    do x = mtan_mt_next(rng) & mask;
    while (x > max);
    return x;
}

double numpy_uniform(mtan_mt19937 *rng) {
    uint32_t high = mtan_mt_next(rng) >> 5, low = mtan_mt_next(rng) >> 6; /* 27 + 26 bits */
    return (high * 67108864.0 + low) / 9007199254740992.0;                /* (high 2^26 + low) / 2^53 */
}

/* Fisher-Yates from the top. */
void numpy_permutation(mtan_mt19937 *rng, int32_t *out, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = (int32_t)i;
    for (size_t i = n; i-- > 1;) {
        uint32_t j = numpy_interval(rng, (uint32_t)i);
        int32_t held = out[i];
        out[i] = out[j];
        out[j] = held;
    }
}

size_t sklearn_split(int32_t *order, size_t n, double train_size, uint32_t seed) {
    mtan_mt19937 rng;
    size_t n_train = 0;
    if (train_size >= 1) n_train = n;
    else if (train_size > 0) n_train = (size_t)(train_size * (double)n);
    mtan_mt_seed(&rng, seed);
    numpy_permutation(&rng, order, n);
    return n - n_train;
}

/* Turns sixteen uniforms, multiples of 2^-24, into sixteen normals: the first eight are u, the others v. */
static void normal_block(float x[16]) {
    mtan_real u[8], w[8], v[8], pairs[16];
    for (int j = 0; j < 8; j++) {
        u[j] = (mtan_real)x[j];
        w[j] = 1 - u[j]; /* exact, never 0 */
        v[j] = (mtan_real)x[8 + j];
    }
    mtan_backend_scalar.normal_pairs(pairs, u, w, v, 8);
    for (int j = 0; j < 16; j++) x[j] = (float)pairs[j];
}

/* PyTorch works in blocks of 16. If some numbers are left over, it draws the last 16 again. */
void torch_normal(mtan_mt19937 *rng, float *out, size_t n) {
    mtan_torch_uniform(rng, out, n, 0, 1);
    for (size_t i = 0; n - i >= 16; i += 16) normal_block(out + i);
    if (n % 16 != 0) {
        mtan_torch_uniform(rng, out + n - 16, 16, 0, 1);
        normal_block(out + n - 16);
    }
}
