/* Records with the statistics of PhysioNet's set-a, generated for benchmarks where the data is not available.
 *
 * The statistics per channel, measured on set-a: in how many of 100 records it is ever observed, and at how many of
 * 1000 times of such a record. The number of times is log-normal (quartiles 59, 72, 88: median 72, sigma 0.29), at most
 * 203; the times are evenly spaced with jitter. Values are uniform, because no kernel's time depends on them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "physionet.h"
#include "generators.h"

enum { MOST_TIMES = 203, DESCRIPTORS = 5, HEART_RATE = 19 };

static const struct {
    int present, rate;
} habit[PHYSIONET_CHANNELS] = {{100, 0},  {100, 0},  {100, 0},  {100, 0},  {100, 437}, {40, 23},  {42, 28},
                               {43, 29},  {43, 28},  {43, 29},  {98, 54},  {8, 17},    {98, 54},  {70, 621},
                               {68, 147}, {98, 221}, {97, 52},  {98, 53},  {98, 68},   {98, 779}, {98, 57},
                               {55, 44},  {97, 53},  {70, 615}, {63, 150}, {98, 54},   {87, 429}, {87, 423},
                               {87, 428}, {76, 91},  {76, 91},  {76, 94},  {98, 53},   {28, 826}, {45, 51},
                               {70, 621}, {98, 275}, {5, 30},   {22, 39},  {97, 471},  {98, 49}};

static double normal(mtan_mt19937 *rng) {
    const double u = 1 - numpy_uniform(rng), v = numpy_uniform(rng);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* Adds the events of one time. The draws do not depend on `density`, so a larger density adds cells to the same
 * record. */
static void make_time(dataset *d, mtan_mt19937 *rng, mtan_real time, const unsigned char *present, int32_t channels,
                      double density) {
    int32_t n = 0;
    for (int32_t c = 0; c < channels; c++) {
        const double rate = habit[c % PHYSIONET_CHANNELS].rate * 1e-3 * PHYSIONET_CHANNELS / channels * density;
        const double draw = numpy_uniform(rng), value = numpy_uniform(rng);
        const int always = (c < DESCRIPTORS && !(time > 0)) || (c == channels - 1 && n == 0);
        if (!always && !(present[c] && draw < rate)) continue;
        dataset_add_event(d, time, always && c >= DESCRIPTORS && HEART_RATE < channels ? HEART_RATE : c,
                          (mtan_real)value);
        n++;
    }
}

void physionet_generate(dataset *d, size_t n, int32_t channels, double density) {
    unsigned char *present = tool_calloc((size_t)channels, 1);
    mtan_mt19937 rng;
    memset(d, 0, sizeof *d);
    mtan_mt_seed(&rng, 2012);
    for (size_t i = 0; i < n; i++) {
        const double length = fmin(MOST_TIMES, fmax(1, rint(72 * exp(0.29 * normal(&rng)))));
        char name[24];
        snprintf(name, sizeof name, "%zu", i);
        dataset_add_record(d, name, -1);
        for (int32_t c = 0; c < channels; c++)
            present[c] = numpy_uniform(&rng) * 100 < habit[c % PHYSIONET_CHANNELS].present;
        for (int32_t t = 0; t < (int32_t)length; t++) {
            const double jitter = t ? numpy_uniform(&rng) : 0;
            make_time(d, &rng, (mtan_real)((t + jitter) / length), present, channels, density);
        }
        arrlast(d->records).n_times = (int32_t)length;
    }
    free(present);
}
