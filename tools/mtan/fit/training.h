/* Training of one model by a plan: batches, steps, validation, and the state that a checkpoint needs. It neither prints nor
 * writes files: train.c does. Everything random is a function of (seed, epoch, record), so a resumed run continues to the same
 * bits, and threads and ranks change nothing. */
#ifndef MTAN_TOOLS_TRAINING_H
#define MTAN_TOOLS_TRAINING_H

#include "../../baselines/arrange.h"
#include "../model/plan.h"
#include "../model/runner.h"

/* What one epoch gave. NaN where there is no such number. */
typedef struct epoch_result {
    double train_loss, train_recon, train_ce, train_kl, gradient_norm;
    double val_loss,
        val_metric; /* metric: AUC (two classes), accuracy (more), MSE of held-out points (interpolation) */
    double
        val_selected; /* what the best epoch has the least of: loss or MSE, or minus AUC or accuracy (plan.h, select) */
    size_t val_points; /* labelled rows or points that they are of; 0: there is nothing to choose an epoch by */
    double seconds, eval_seconds;
} epoch_result;

typedef struct step_result {
    int32_t epoch, batch; /* batch from 1 */
    double loss, gradient_norm;
} step_result;

typedef struct training {
    const plan *plan;
    const dataset *data;
    const split *split;
    mtan_model model;
    mtan_real *weights;
    mtan_trainer trainer;
    mtan_model kept; /* what is validated and saved as the best: the model, or the mean of its weights */
    runner run;      /* for validation, of `kept` */
    mtan_pool pool;
    void *memory;
    double *class_weights; /* (C) in the loss, or NULL */
    /* the batch being trained on */
    mtan_record *records;      /* (batch); with a device twice, for the next batch too */
    mtan_event *events;        /* (batch, most events), likewise: what is left of each record's events after thinning */
    const baseline_hook *hook; /* of the model, or NULL; and events that it makes: (batch, most events), likewise */
    mtan_event *room;
    int32_t filled, n_filled; /* with a device: the batch that is there already, 0: none, and its records */
    int32_t *order;           /* (training records) this epoch's order, as positions in split->part[SPLIT_TRAIN] */
    /* state of the run: what a checkpoint keeps beside weights, moments and step */
    int32_t epoch, batch; /* epochs and, of the next one, batches that are done */
    double sum[5];        /* over this epoch's batches: loss, recon, ce, kl, gradient norm, each times its records */
    double train_seconds; /* of this epoch; no checkpoint keeps it, as the same training has the same bytes */
    mtan_real *bands;     /* (D) of a learned variance, as the last validation fitted them (bands.h); or NULL */
    double width; /* of the intervals of a number, as the last validation fitted it (widths.h); 0 or 1: as they are */
    int32_t best_epoch, since_best; /* best_epoch 0: none yet */
    double best;                    /* the smallest selection value: loss, MSE, or minus AUC; SELECT_LAST: the newest */
    double first_loss;
    int diverged; /* the last step's loss was not a number, or beyond all measure; or a validation's result not finite */
} training;

typedef struct rank_set {
    int32_t rank, ranks;
    mtan_allreduce allreduce;
    void *context;
} rank_set;

/* Initial weights, workspaces, threads. 1, or 0 with error (512 bytes) set. */
int training_start(training *t, const plan *p, const dataset *d, const split *s, const mtan_backend *backend,
                   int32_t threads, const rank_set *r, char *error);
/* Before the first step: the weights that a pretrained model has too become that model's. 0: a device failed. */
int training_take(training *t, const mtan_model *pretrained);
/* The next batch of the epoch: 1; 0 when the epoch's batches are done; -1 with error set on a failure (a loss that is not a number
 * leaves the weights as they were). */
int training_step(training *t, step_result *step, char *error);
/* Ends an epoch: validation, selection. Returns 1 when this is the best so far, 0 when not, -1 with error set. An epoch whose
 * selection value is not finite is never the best; where there is nothing to choose by, or nothing to be chosen (SELECT_LAST), the newest is. */
int training_end_epoch(training *t, epoch_result *result, char *error);
int32_t training_batches(const training *t);    /* per epoch */
const char *training_metric(const training *t); /* "val_auc", "val_acc" or "val_mse" */
int training_finished(const training *t);       /* all epochs done, or no better model for `patience` epochs */

/* Weights and moments as they are now come back from a device; 0: it failed. Before anything of them is read or written. */
int training_fetch(training *t);
/* What is saved as the best has the widths of validation: `kept` and `run` get them, until the weights are given back, which are the
 * caller's to hold: NULL where nothing changes. 0 as above. */
int training_widen(training *t, mtan_real **before);
int training_narrow(training *t, mtan_real *before);
void training_write(const training *t, mtan_file_pair **pairs); /* mtan.run.*, mtan.split.* */
int training_read(training *t, bundle *b, char *error);
void training_stop(training *t);

#endif
