/* How well a model fills in what it is not shown. */
#ifndef MTAN_TOOLS_INTERPOLATION_H
#define MTAN_TOOLS_INTERPOLATION_H

#include "../../data/dataset.h"
#include "../../data/prep.h"
#include "bands.h"
#include "metrics.h"
#include "../model/runner.h"

/* Interpolation of one record: what the model sees and what it is scored on. The held-out times are a function of the record's
 * name and `share` (Q23), so every evaluation and every model sees the same. Where the data set has a horizon they are instead what
 * lies within it before the record's last time; the first time is always shown. Arrays are stb_ds, in model units. */
typedef struct holdout {
    mtan_event *seen, *held;
} holdout;
void holdout_make(holdout *h, const dataset *d, size_t record, double share);
void holdout_free(holdout *h);

/* Records as a model is shown them: each without what is held out of it, and arranged in batches where the model does so. */
typedef struct shown_records {
    size_t n;
    holdout *holdout;     /* (n) */
    mtan_record *records; /* (n) */
} shown_records;
void shown_make(shown_records *s, const mtan_config *c, const dataset *d, const int32_t *positions, double share,
                size_t batch);
void shown_free(shown_records *s);

/* Sums of squared errors of one record, and over how many points. */
typedef struct record_error {
    double all, held, truth;
    size_t points, held_points, truth_points;
} record_error;

/* Mean squared errors over all target points and over the held-out ones, pooled over points (correct) or averaged over
 * batches as published (Q21, Q22), in model units. samples: S of the posterior (0: its mean). */
typedef struct interpolation_error {
    double all, held, truth; /* truth: on the noise-free curve, NaN without one */
    size_t points, held_points;
    interval all_range, held_range, truth_range; /* 95 %, over records, pooled; NaN without --bootstrap */
    band_table bands;                            /* of the held-out points */
} interpolation_error;
typedef struct interpolation_request {
    const dataset *data;
    const int32_t *positions;
    double share; /* of the times shown */
    size_t
        batch; /* how many records a batch of training had, where the model arranges them (arrange.h); 0: not known */
    size_t pooled;      /* how many records a ratio is taken over (Q22); 0: all */
    record_error *each; /* (positions) the errors of every record, for who compares them; or NULL */
    const prep *prep;   /* of the model file, which may widen bands (mtan_prep_channel); NULL: none does */
    mtan_real *fitted;  /* (D) gets by how much bands would have to be widened (bands_fit); or NULL */
} interpolation_request;
/* draws: resamples for the intervals; 0: none. */
int interpolation_measure(interpolation_error *e, runner *run, const interpolation_request *q, int32_t draws);
/* Which of `times` time stamps are shown: int(times * share) of them, by a permutation that `seed` decides. */
void choose_times(unsigned char *shown, int32_t times, double share, uint64_t seed);

#endif
