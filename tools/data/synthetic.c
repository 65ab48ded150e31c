/* See synthetic.h. */
#include "synthetic.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "generators.h"

/* The state of numpy.random after seed(): the twister, and the second normal of the last pair. */
typedef struct {
    mtan_mt19937 mt;
    int has_normal;
    double normal;
} numpy_random;

static void numpy_seed(numpy_random *rng, uint32_t seed) {
    mtan_mt_seed(&rng->mt, seed);
    rng->has_normal = 0;
}

/* randn(): Marsaglia's polar method. The second number of a pair is returned first. */
static double numpy_normal(numpy_random *rng) {
    if (rng->has_normal) {
        rng->has_normal = 0;
        return rng->normal;
    }
    double x, y, square;
    do {
        x = 2 * numpy_uniform(&rng->mt) - 1;
        y = 2 * numpy_uniform(&rng->mt) - 1;
        square = x * x + y * y;
    } while (square >= 1 || square == 0);
    double factor = sqrt(-2 * log(square) / square);
    rng->has_normal = 1;
    rng->normal = factor * x;
    return factor * y;
}

/* linspace(0, 1, n)[i]: the step is rounded first, and the end is set explicitly. */
static double even(size_t i, size_t n) {
    return i == n - 1 ? 1 : (double)i * (1.0 / (double)(n - 1));
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* sort(choice(linspace(0, 1, 101), size=length)) */
static void grid_times(numpy_random *rng, double *times, size_t length) {
    for (size_t i = 0; i < length; i++) times[i] = even(numpy_interval(&rng->mt, SYNTHETIC_GRID - 1), SYNTHETIC_GRID);
    if (length > 0) qsort(times, length, sizeof *times, ascending);
}

/* ---- The kernel smoother ---- */

/* The weights of the keys at a time, and their sum. */
static double key_weights(double time, double *weight) {
    double total = 0;
    for (size_t k = 0; k < SYNTHETIC_KEYS; k++) {
        const double distance = time - even(k, SYNTHETIC_KEYS);
        weight[k] = exp(-100 * (distance * distance));
        total += weight[k];
    }
    return total;
}

static double smooth(const double *keys, double time) {
    double weight[SYNTHETIC_KEYS], sum = 0;
    const double total = key_weights(time, weight);
    for (size_t k = 0; k < SYNTHETIC_KEYS; k++) sum += weight[k] * keys[k];
    return sum / total;
}

void synthetic_weights(double time, double weight[SYNTHETIC_KEYS]) {
    const double total = key_weights(time, weight);
    for (size_t k = 0; k < SYNTHETIC_KEYS; k++) weight[k] /= total;
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
        double phase = 10 * numpy_uniform(&rng.mt), noise = 0.1 * numpy_normal(&rng);
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
            for (size_t i = 0; i < length; i++) times[c * length + i] = numpy_uniform(&rng.mt);
            if (length > 0) qsort(times + c * length, length, sizeof *times, ascending);
        }
        double a = 10 * numpy_normal(&rng), b = 10 * numpy_uniform(&rng.mt);
        for (size_t c = 0; c < SYNTHETIC_CHANNELS; c++) {
            double noise = 0.01 * numpy_normal(&rng);
            for (size_t i = 0; i < length; i++) *values++ = channel_value(c, *times++, a, b) + noise;
            for (size_t i = 0; truth && i < SYNTHETIC_TRUTH; i++)
                *truth++ = channel_value(c, even(i, SYNTHETIC_TRUTH), a, b);
        }
    }
}

/* ---- As a data set ---- */

enum { MOST_NUMBERS = 1 << 26 }; /* in one array: 512 MB */

/* Adds one series of C channels, each with its own ascending times (C, length): merged by time, then by channel. */
static void add_events(dataset *d, size_t C, size_t length, const double *times, const double *values) {
    size_t next[SYNTHETIC_CHANNELS] = {0};
    dataset_record *r = &arrlast(d->records);
    for (size_t k = 0; k < C * length; k++) {
        size_t first = C;
        for (size_t c = 0; c < C; c++)
            if (next[c] < length &&
                (first == C || (mtan_real)times[c * length + next[c]] < (mtan_real)times[first * length + next[first]]))
                first = c;
        const size_t at = first * length + next[first]++;
        const mtan_real time = (mtan_real)times[at];
        if (k == 0 || time > arrlast(d->events).time) r->n_times++;
        dataset_add_event(d, time, (int32_t)first, (mtan_real)values[at]);
    }
}

/* Adds the curves of one series (C, SYNTHETIC_TRUTH), by time, then by channel. */
static void add_truth(dataset *d, size_t C, const double *truth) {
    for (size_t i = 0; i < SYNTHETIC_TRUTH; i++)
        for (size_t c = 0; c < C; c++) {
            const mtan_event e = {(mtan_real)even(i, SYNTHETIC_TRUTH), (int32_t)c,
                                  (mtan_real)truth[c * SYNTHETIC_TRUTH + i]};
            arrput(d->truth, e);
        }
    arrlast(d->records).n_truth = (int32_t)(C * SYNTHETIC_TRUTH);
}

int synthetic_load(dataset *d, const char *kind, size_t n, size_t length, uint32_t seed) {
    const int smooth_set = strcmp(kind, "smooth") == 0, sine_set = strcmp(kind, "sine") == 0;
    const size_t C = smooth_set || sine_set ? 1 : SYNTHETIC_CHANNELS, row = C * length, curve = C * SYNTHETIC_TRUTH;
    double *times, *values, *truth;
    char name[24];
    memset(d, 0, sizeof *d);
    if (!smooth_set && !sine_set && strcmp(kind, "irregular") != 0)
        return dataset_fail(d, "no synthetic data set '%.40s': there are smooth, sine and irregular", kind);
    if (n == 0 || length == 0 || n > MOST_NUMBERS / curve || length > MOST_NUMBERS / C / n)
        return dataset_fail(d, "%zu synthetic series of %zu points: none at all, or more than memory should hold", n,
                            length);
    times = tool_calloc(n * row, sizeof *times), values = tool_calloc(n * row, sizeof *values);
    truth = tool_calloc(n * curve, sizeof *truth);
    if (smooth_set) synthetic_smooth(seed, n, length, times, values, truth, NULL);
    else if (sine_set) synthetic_sine(seed, n, length, times, values, truth);
    else synthetic_irregular(seed, n, length, times, values, truth);
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%zu", i);
        dataset_add_record(d, name, -1);
        add_events(d, C, length, times + i * row, values + i * row);
        add_truth(d, C, truth + i * curve);
    }
    for (size_t c = 0; c < C; c++) {
        snprintf(name, sizeof name, "x%zu", c);
        arrput(d->channels, tool_text(name));
    }
    free(times), free(values), free(truth);
    return 1;
}
