/* See synthetic.h. */
#include "tools/data/synthetic.h"

#include <math.h>
#include <stdlib.h>

#include "mtan.h"

/* numpy.random after seed(): the twister, and the second half of the last pair of normals. */
typedef struct {
    mtan_mt19937 mt;
    int has_normal;
    double normal;
} numpy_random;

static void numpy_seed(numpy_random *rng, uint32_t seed) {
    mtan_mt_seed(&rng->mt, seed);
    rng->has_normal = 0;
}

/* randn(): Marsaglia's polar method. The second number of a pair is the first that is handed out. */
static double numpy_normal(numpy_random *rng) {
    if (rng->has_normal) {
        rng->has_normal = 0;
        return rng->normal;
    }
    double x, y, square;
    do {
        x = 2 * mtan_numpy_uniform(&rng->mt) - 1;
        y = 2 * mtan_numpy_uniform(&rng->mt) - 1;
        square = x * x + y * y;
    } while (square >= 1 || square == 0);
    double factor = sqrt(-2 * log(square) / square);
    rng->has_normal = 1;
    rng->normal = factor * x;
    return factor * y;
}

/* linspace(0, 1, n)[i]: the step is rounded first, and the end is set. */
static double even(size_t i, size_t n) {
    return i == n - 1 ? 1 : (double)i * (1.0 / (double)(n - 1));
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* sort(choice(linspace(0, 1, 101), size=length)) */
static void grid_times(numpy_random *rng, double *times, size_t length) {
    for (size_t i = 0; i < length; i++)
        times[i] = even(mtan_numpy_interval(&rng->mt, SYNTHETIC_GRID - 1), SYNTHETIC_GRID);
    if (length > 0) qsort(times, length, sizeof *times, ascending);
}

/* ---- The kernel smoother ---- */

static double smooth(const double *keys, double time) {
    double sum = 0, total = 0;
    for (size_t k = 0; k < SYNTHETIC_KEYS; k++) {
        double distance = time - even(k, SYNTHETIC_KEYS), weight = exp(-100 * (distance * distance));
        sum += weight * keys[k];
        total += weight;
    }
    return sum / total;
}

void synthetic_smooth(uint32_t seed, size_t n, size_t length, double *times, double *values, double *truth,
                      double *keys) {
    numpy_random rng;
    numpy_seed(&rng, seed);
    for (size_t s = 0; s < n; s++, times += length, values += length) {
        double key[SYNTHETIC_KEYS];
        for (size_t k = 0; k < SYNTHETIC_KEYS; k++) key[k] = numpy_normal(&rng);
        grid_times(&rng, times, length);
        for (size_t i = 0; i < length; i++) values[i] = smooth(key, times[i]);
        for (size_t i = 0; truth && i < SYNTHETIC_TRUTH; i++) *truth++ = smooth(key, even(i, SYNTHETIC_TRUTH));
        for (size_t k = 0; keys && k < SYNTHETIC_KEYS; k++) *keys++ = key[k];
    }
}

/* ---- The sine waves ---- */

void synthetic_sine(uint32_t seed, size_t n, size_t length, double *times, double *values, double *truth) {
    numpy_random rng;
    numpy_seed(&rng, seed);
    for (size_t s = 0; s < n; s++, times += length, values += length) {
        grid_times(&rng, times, length);
        double phase = 10 * mtan_numpy_uniform(&rng.mt), noise = 0.1 * numpy_normal(&rng);
        for (size_t i = 0; i < length; i++) values[i] = sin(12 * (times[i] + phase)) + noise;
        for (size_t i = 0; truth && i < SYNTHETIC_TRUTH; i++) *truth++ = sin(12 * (even(i, SYNTHETIC_TRUTH) + phase));
    }
}

/* ---- Three channels ---- */

/* a shifts the first two channels, b the third. */
static double channel_value(size_t channel, double time, double a, double b) {
    double x = 20 * (channel == 0 ? time + a : time + a + 20);
    if (channel == 2) return sin(12 * (time + b));
    return (channel == 0 ? .8 : -.5) * sin(x + sin(x));
}

void synthetic_irregular(uint32_t seed, size_t n, size_t length, double *times, double *values, double *truth) {
    numpy_random rng;
    numpy_seed(&rng, seed);
    for (size_t s = 0; s < n; s++) {
        for (size_t c = 0; c < SYNTHETIC_CHANNELS; c++) {
            for (size_t i = 0; i < length; i++) times[c * length + i] = mtan_numpy_uniform(&rng.mt);
            if (length > 0) qsort(times + c * length, length, sizeof *times, ascending);
        }
        double a = 10 * numpy_normal(&rng), b = 10 * mtan_numpy_uniform(&rng.mt);
        for (size_t c = 0; c < SYNTHETIC_CHANNELS; c++) {
            double noise = 0.01 * numpy_normal(&rng);
            for (size_t i = 0; i < length; i++) *values++ = channel_value(c, *times++, a, b) + noise;
            for (size_t i = 0; truth && i < SYNTHETIC_TRUTH; i++)
                *truth++ = channel_value(c, even(i, SYNTHETIC_TRUTH), a, b);
        }
    }
}
