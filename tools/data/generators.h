/* Random draws of NumPy, scikit-learn and PyTorch, bit for bit, from the library's Mersenne twister: for splits,
 * shuffles, made data and the initial weights of some baselines. Seed with mtan_mt_seed. */
#ifndef MTAN_TOOLS_GENERATORS_H
#define MTAN_TOOLS_GENERATORS_H

#define MTAN_INTERNALS
#include "../../mtan.h"

/* NumPy's legacy generator (numpy.random.* and RandomState). */

/* An integer in [0, max], drawn as in shuffle, choice with replacement and randint(0, max + 1): the low bits that can
 * hold max, drawn again while above max. max = 0 draws nothing. */
uint32_t numpy_interval(mtan_mt19937 *rng, uint32_t max);
/* random_sample(): a double in [0, 1) with 53 bits. */
double numpy_uniform(mtan_mt19937 *rng);
/* RandomState.permutation(n): the numbers 0..n-1 in random order. n below 2^31. */
void numpy_permutation(mtan_mt19937 *rng, int32_t *out /* (n) */, size_t n);

/* scikit-learn's train_test_split(range(n), train_size=train_size, random_state=seed). Fills `order` and returns the
 * number of test items: order[0 .. n_test) is the test set, order[n_test .. n) the training set, both in scikit-learn's
 * order. The training set has floor(train_size * n) items; a train_size outside [0, 1] is clamped, and NaN counts as
 * 0. */
size_t sklearn_split(int32_t *order /* (n) */, size_t n, double train_size, uint32_t seed);

/* torch.randn(n) for n of 16 or more. */
void torch_normal(mtan_mt19937 *rng, float *out /* (n) */, size_t n);

#endif
