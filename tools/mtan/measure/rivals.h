/* What people do without a model: straight lines, the last value or a Gaussian process for curves, summaries for classes, which a
 * regression takes (logistic.h). They are there to be beaten, so they are done properly: the process chooses its settings on the
 * training series. */
#ifndef MTAN_TOOLS_RIVALS_H
#define MTAN_TOOLS_RIVALS_H

#include "../../../mtan.h"

/* A channel of a record: n observations in the order of time. */
typedef struct rival_series {
    const mtan_observation *seen;
    int32_t n;
} rival_series;

/* Straight lines between neighbours, flat before the first and after the last; `otherwise` where there is none. */
double rival_linear(rival_series s, double time, double otherwise);
/* The last value at or before a time; `otherwise` before the first. */
double rival_last(rival_series s, double time, double otherwise);

/* A Gaussian process with a squared exponential kernel and noise. */
typedef struct rival_process {
    double mean, variance, length, noise; /* noise: a share of the variance */
} rival_process;
enum { RIVAL_MOST = 64 }; /* observations of a channel that the process takes: the last ones */
/* Chooses length and noise by the error of leaving out one observation at a time, over the given series. */
rival_process rival_process_fit(const rival_series *s, size_t n);
double rival_process_at(const rival_process *p, rival_series s, double time);

/* Solves a x = b, a (n, n) symmetric and positive definite, of which its factor remains; b (n) becomes x. */
void rival_solve(double *a, size_t n, double *b);

/* Summaries of a channel: count, mean, least, most, spread, first, last, time of the last, mean step, slope. Without an observation
 * all but the count are NaN. */
enum { RIVAL_SUMMARIES = 10 };
void rival_summarise(rival_series s, double out[RIVAL_SUMMARIES]);

#endif
