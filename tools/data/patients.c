/* See patients.h. */
#include "patients.h"

#include <math.h>
#include <string.h>

#include "generators.h"

static const double pi = 3.14159265358979323846;
static const double lead = 2.5; /* hours between pulse and fever */

const char *const patient_channels[PATIENT_CHANNELS] = {"temperature", "pulse", "pressure"};
const char *const patient_classes[2] = {"fever-first", "pulse-first"};

/* Per channel: its usual value, the spread between patients, its response to the rhythm and to the episode, its noise,
 * and how often it is measured. */
static const struct vital {
    double base, spread, rhythm, episode, noise;
    int times;
} vitals[PATIENT_CHANNELS] = {{37, 0.16, 0.3, 1.6, 0.1, 6}, {80, 3.2, 5, 22.4, 2, 10}, {120, 3.2, -6, -19.2, 2.5, 6}};

/* ---- the truth ---- */

/* Rises within an hour and falls slowly. */
static double episode(double since, double fall) {
    return since < 0 ? 0 : (1 - exp(-since)) * exp(-since / fall);
}

double patient_truth(const patient *p, int32_t channel, double hour) {
    const struct vital *v = &vitals[channel];
    const double shift = channel != 1 ? 0 : p->pulse_first ? -lead : lead;
    return v->base + v->spread * p->own[channel] +
           v->rhythm * p->swing * sin(2 * pi * hour / PATIENT_HOURS + p->phase) +
           v->episode * p->height * episode(hour - p->onset - shift, p->fall);
}

/* ---- the observations ---- */

static double uniform(mtan_mt19937 *rng, double low, double high) {
    return low + (high - low) * numpy_uniform(rng);
}

static double normal(mtan_mt19937 *rng) {
    const double u = 1 - numpy_uniform(rng), v = numpy_uniform(rng);
    return sqrt(-2 * log(u)) * cos(2 * pi * v);
}

static double rounded(double x) {
    return floor(100 * x + 0.5) / 100;
}

static void sort_hours(double *hour, int n) {
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && hour[j] < hour[j - 1]; j--) {
            const double swap = hour[j];
            hour[j] = hour[j - 1], hour[j - 1] = swap;
        }
}

/* Nothing is measured during four hours, which differ between channels. */
static void observe(patient *p, int32_t channel, mtan_mt19937 *rng) {
    const struct vital *v = &vitals[channel];
    double hour[PATIENT_MOST], gap;
    for (int i = 0; i < v->times; i++) hour[i] = rounded(uniform(rng, 0, PATIENT_HOURS));
    sort_hours(hour, v->times);
    gap = uniform(rng, 0, PATIENT_HOURS - 4);
    for (int i = 0; i < v->times; i++) {
        const double value = rounded(patient_truth(p, channel, hour[i]) + v->noise * normal(rng));
        const mtan_observation x = {hour[i], channel, value};
        if (hour[i] < gap || hour[i] > gap + 4) p->seen[p->n++] = x;
    }
}

void patient_make(patient *p, uint32_t i) {
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, 1000003u * (i + 1));
    memset(p, 0, sizeof *p);
    p->phase = uniform(&rng, 0, 2 * pi), p->swing = uniform(&rng, 0.5, 1.2);
    p->onset = uniform(&rng, 3, 18), p->height = uniform(&rng, 1, 2), p->fall = uniform(&rng, 3, 6);
    p->pulse_first = numpy_uniform(&rng) < 0.5;
    for (int c = 0; c < PATIENT_CHANNELS; c++) p->own[c] = normal(&rng);
    for (int32_t c = 0; c < PATIENT_CHANNELS; c++) observe(p, c, &rng);
}
