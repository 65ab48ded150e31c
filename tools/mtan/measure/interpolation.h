/* How well a model interpolates values that it is not shown. */
#ifndef MTAN_TOOLS_INTERPOLATION_H
#define MTAN_TOOLS_INTERPOLATION_H

#include "../../data/dataset.h"
#include "../../data/prep.h"
#include "bands.h"
#include "metrics.h"
#include "../run/runner.h"

/* One record, split into what the model sees and what it is scored on. The held-out times depend only on the record's
 * name and `share` (Q23), so every evaluation and every model holds out the same. If the data set has a horizon, the
 * times within it before the record's last time are held out instead; the first time is always shown. The arrays are
 * stb_ds, in model units. */
typedef struct holdout {
    mtan_event *seen, *held;
} holdout;
void holdout_make(holdout *h, const dataset *d, size_t record, double share);
void holdout_free(holdout *h);

/* Records as the model sees them: without their held-out events, and rearranged in batches if the model does so. */
typedef struct shown_records {
    size_t n;
    holdout *holdout;     /* (n) */
    mtan_record *records; /* (n) */
} shown_records;
void shown_make(shown_records *s, const mtan_config *c, const dataset *d, const int32_t *positions, double share,
                size_t batch);
void shown_free(shown_records *s);

/* Sums of squared errors of one record, and their numbers of points. by_channel: of all points, their mean per channel, then over
 * all channels, of which those without a point count as 0. */
typedef struct record_error {
    double all, held, truth, by_channel;
    size_t points, held_points, truth_points;
} record_error;

/* Mean squared errors on all target points and on the held-out ones, pooled over points (correct) or averaged over
 * batches as published (Q21, Q22), in model units. */
typedef struct interpolation_error {
    double all, held, truth; /* truth: on the noise-free curve, NaN without one */
    double by_channel;       /* mean over records, as latent_ode measures: every channel weighs the same */
    size_t points, held_points;
    interval all_range, held_range, truth_range; /* 95 %, over records, pooled; NaN without --bootstrap */
    band_table bands;                            /* of the held-out points */
} interpolation_error;
typedef struct interpolation_request {
    const dataset *data;
    const int32_t *positions;
    double share; /* of the times shown */
    /* batch: records per batch in training, for models that rearrange batches (arrange.h); 0: not known */
    size_t batch;
    size_t pooled;      /* records that a ratio is taken over (Q22); 0: all */
    record_error *each; /* (positions) gets the errors of every record, to compare models; or NULL */
    const prep *prep;   /* of the model file, which may widen bands (mtan_prep_channel); NULL: no widening */
    mtan_real *fitted;  /* (D) gets the factors that would calibrate the bands (bands_fit); or NULL */
} interpolation_request;
/* draws: bootstrap resamples for the intervals; 0: none. */
int interpolation_measure(interpolation_error *e, runner *run, const interpolation_request *q, int32_t draws);
/* Marks the shown ones of `times` time stamps: int(times * share) of them, the first of a permutation seeded by
 * `seed`. */
void choose_times(unsigned char *shown, int32_t times, double share, uint64_t seed);

#endif
