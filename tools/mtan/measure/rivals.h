/* Baselines without a neural network: for curves linear interpolation, the last value, and a Gaussian process; for
 * classes summaries that a regression takes (logistic.h). They are done properly, so that beating them means something:
 * the process chooses its settings on the training series. */
#ifndef MTAN_TOOLS_RIVALS_H
#define MTAN_TOOLS_RIVALS_H

#include "../../../mtan.h"

/* A channel of a record: n observations in order of time. */
typedef struct rival_series {
    const mtan_observation *seen;
    int32_t n;
} rival_series;

/* Linear interpolation, constant before the first observation and after the last; `otherwise` without any. */
double rival_linear(rival_series s, double time, double otherwise);
/* The last value at or before a time; `otherwise` before the first. */
double rival_last(rival_series s, double time, double otherwise);

/* A Gaussian process with a squared exponential kernel and noise. */
typedef struct rival_process {
    double mean, variance, length, noise; /* noise: as a share of the variance */
} rival_process;
enum { RIVAL_MOST = 64 }; /* the process uses at most so many observations of a channel, the last ones */
/* Chooses length and noise by the leave-one-out error over the given series. */
rival_process rival_process_fit(const rival_series *s, size_t n);
double rival_process_at(const rival_process *p, rival_series s, double time);

/* Solves a x = b for a symmetric positive definite a (n, n), which its Cholesky factor overwrites; x overwrites b
 * (n). */
void rival_solve(double *a, size_t n, double *b);

/* Summaries of a channel: count, mean, minimum, maximum, standard deviation, first, last, time of the last, mean
 * absolute step, slope. Without an observation all but the count are NaN. */
enum { RIVAL_SUMMARIES = 10 };
void rival_summarise(rival_series s, double out[RIVAL_SUMMARIES]);

#endif
