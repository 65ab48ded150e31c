/* The three synthetic data sets of the reference (src/utils.py), drawn exactly as by NumPy, with values equal to 1e-12.
 *
 * Every function fills arrays of the caller, row-major, for n series of `length` observations each. Times lie in [0,
 * 1], ascending; `truth` is the noise-free curve at 100 evenly spaced points from 0 to 1 and may be NULL. Uses libm. */
#ifndef MTAN_TOOLS_SYNTHETIC_H
#define MTAN_TOOLS_SYNTHETIC_H

#include "dataset.h"

enum {
    SYNTHETIC_TRUTH = 100,  /* points of the noise-free curve */
    SYNTHETIC_KEYS = 10,    /* points between which the kernel smoother interpolates */
    SYNTHETIC_CHANNELS = 3, /* of synthetic_irregular */
    SYNTHETIC_GRID = 101    /* times are drawn from this many evenly spaced points, with replacement (Q44) */
};

/* kernel_smoother_data_gen, the data set of the paper's appendix: ten standard normals at evenly spaced points,
 * smoothed by a Gaussian kernel exp(-100 (t - s)^2). No noise. `keys`, the normals, may be NULL. times, values (n,
 * length); truth (n, SYNTHETIC_TRUTH); keys (n, SYNTHETIC_KEYS) */
void synthetic_smooth(uint32_t seed, size_t n, size_t length, double *times, double *values, double *truth,
                      double *keys);
/* The value of such a curve at a time is the sum of its keys with these weights. */
void synthetic_weights(double time, double weight[SYNTHETIC_KEYS]);

/* sine_wave_data_gen: a sine of random phase, plus one number of noise per series (Q45).
 * times, values (n, length); truth (n, SYNTHETIC_TRUTH) */
void synthetic_sine(uint32_t seed, size_t n, size_t length, double *times, double *values, double *truth);

/* irregularly_sampled_data_gen: three related channels, each at its own times, plus one number of noise per channel.
 * times, values (n, SYNTHETIC_CHANNELS, length); truth (n, SYNTHETIC_CHANNELS, SYNTHETIC_TRUTH) */
void synthetic_irregular(uint32_t seed, size_t n, size_t length, double *times, double *values, double *truth);

/* One of these sets by name (smooth, sine, irregular) as a data set, with the noise-free curve as truth. Times that
 * were drawn twice stay two observations, as in the reference. Like every loader, returns 1, or 0 with d->error set and
 * nothing to free. */
int synthetic_load(dataset *d, const char *kind, size_t n, size_t length, uint32_t seed);

#endif
