/* What the commands share: from a name and a path to records that a model can take.
 *
 * A data set is known by its kind (physionet, activity, mimic3, toy, own), which a model file keeps along with how the records were
 * split, so that `mtan eval`, `mtan report` and `mtan compare` see the same test records as `mtan train` left out. */
#ifndef MTAN_TOOLS_SESSION_H
#define MTAN_TOOLS_SESSION_H

#include "../../data/mimic3.h"
#include "../../data/own.h"
#include "bundle.h"
#include "metrics.h"
#include "../command/options.h"

/* How a data set is read and split: set by `mtan train`, kept in the model file as mtan.data.* */
typedef struct source {
    char kind[16];    /* physionet, activity, mimic3, toy, own */
    char variant[16]; /* physionet: "a" or "ab"; toy: smooth, sine, irregular; else "" */
    mtan_preset preset;
    split_kind split_kind;
    int by_group;
    int32_t fold;
    uint32_t seed;     /* of the split: 42 as published */
    int interpolation; /* records are conditioned on a share of their times and scored on the rest */
    double observed;   /* that share in evaluation */
    char origin[8];    /* own data: where its times start: auto, zero, record */
    int has_means;
    double means[MIMIC3_CHANNELS]; /* mimic3: what a series without an observation gets at time 0 */
} source;

void source_write(const source *s, mtan_file_pair **pairs); /* malloc'd texts, as prep_write */
int source_read(source *s, bundle *b, char *error);

/* Reads the data of a source from `path` (and labels for own data), raw. A model's prep gives the channel and class names that
 * own data must have; NULL while training. 1, or 0 with a message printed. */
int source_load(dataset *d, const source *s, const char *path, const char *labels, const prep *model, const options *o);

/* Splits it as the source says, and completes what needs the split: MIMIC-III's missing series. 1, or 0 with a message printed. */
int source_split(split *s, source *from, dataset *d);
/* Fits the preprocessing of a preset on raw data. time_scale 0: the largest training time. */
void source_fit(prep *p, const source *from, const dataset *d, const split *s, prep_kind scale, double time_scale);

/* A model with its data: read, split as in training, preprocessed. */
typedef struct session {
    bundle bundle;
    source source;
    dataset data;
    split split;
    int32_t *positions; /* of the part asked for (--split, default "test"), an stb_ds array */
    const char *part;   /* "train", "valid", "test", "all" */
} session;

/* Opens MODEL with --data, --labels, --split. Own data that was not split by `mtan train` the same way (another file) is used
 * whole. Returns 1, or 0 with a message printed. */
int session_open(session *s, const options *o, const char *model);
void session_close(session *s);

/* Predictions over s->positions: rows, labels (unlabelled rows left out of the metrics), groups (which record a row belongs to). */
typedef struct predictions {
    size_t rows, labelled;
    int32_t classes;
    double *p; /* (rows, C) */
    double
        *score; /* (rows) what AUC ranks: class 1's logit (faithful, Q26) or the logit difference; two classes only */
    int32_t *label;  /* (rows) MTAN_UNLABELED where there is none */
    int32_t *record; /* (rows) position in the data set */
} predictions;
int session_predict(session *s, const options *o, predictions *p);
/* swap: as swap_size has it. */
int predictions_make(predictions *p, runner *run, const dataset *d, const int32_t *positions, int faithful,
                     size_t swap);
void predictions_drop_unlabelled(predictions *p);
void predictions_free(predictions *p);

/* RNN-VAE as published encodes record b of a batch of B from the events of record B - 1 - b: how many records make a batch there, and
 * whose events the i-th of n is encoded from. 0 for every other model: its own. */
size_t swap_size(const mtan_config *c, double batch);
size_t swap_partner(size_t i, size_t n, size_t swap);

/* Interpolation of one record: what the model sees and what it is scored on. The held-out times are a function of the record's
 * name and `share` (Q23), so every evaluation and every model sees the same. Arrays are stb_ds, in model units. */
typedef struct holdout {
    mtan_event *seen, *held;
} holdout;
void holdout_make(holdout *h, const dataset *d, size_t record, double share);
void holdout_free(holdout *h);

/* Mean squared errors over all target points and over the held-out ones, pooled over points (correct) or averaged over
 * batches as published (Q21, Q22), in model units. samples: S of the posterior (0: its mean). */
typedef struct interpolation_error {
    double all, held, truth; /* truth: on the noise-free curve, NaN without one */
    size_t points, held_points;
    interval all_range, held_range, truth_range; /* 95 %, over records, pooled; NaN without --bootstrap */
} interpolation_error;
int session_interpolate(session *s, const options *o, double share, interpolation_error *e);
typedef struct interpolation_request {
    const dataset *data;
    const int32_t *positions;
    double share; /* of the times shown */
    size_t batch; /* how many records a ratio is taken over (Q22); 0: all */
    size_t swap;  /* as swap_size has it */
} interpolation_request;
/* draws: resamples for the intervals; 0: none. */
int interpolation_measure(interpolation_error *e, runner *run, const interpolation_request *q, int32_t draws);
mtan_bounds interpolation_bounds(const dataset *d); /* those of the events' and the truth's times together */
/* Which of `times` time stamps are shown: int(times * share) of them, by a permutation that `seed` decides. */
void choose_times(unsigned char *shown, int32_t times, double share, uint64_t seed);

/* --origin and --skip-unknown; from and model may be NULL. */
int own_options_make(own_options *own, const options *o, const source *from, const prep *model);
int unit_matches(const prep *p, const dataset *d); /* dates are hours, numbers are not: 0 with a message printed */
int32_t option_threads(const options *o);          /* --threads, default: CPUs, at most 8 */
int option_backend(const options *o,
                   const mtan_backend **b); /* --backend NAME; 0 with a message when it cannot run here */

#endif
