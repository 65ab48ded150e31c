/* Training of one model by a plan: batches, steps, validation, and the state that a checkpoint needs. It neither prints
 * nor writes files; train.c does. Every random draw is a function of (seed, epoch, record), so a resumed run continues
 * to the same bits, and the number of threads or ranks changes nothing. */
#ifndef MTAN_TOOLS_TRAINING_H
#define MTAN_TOOLS_TRAINING_H

#include "../../baselines/arrange.h"
#include "../model/plan.h"
#include "../run/runner.h"
#include "widths.h"

/* The result of one epoch. NaN where a number does not exist. */
typedef struct epoch_result {
    double train_loss, train_recon, train_ce, train_kl, gradient_norm;
    /* val_metric: AUC (two classes, labels), accuracy (more classes), RMSE (a number), MSE of held-out points
     * (interpolation). val_choice: of classes, the AUC or accuracy that chooses the epoch. val_selected: the best epoch
     * has the smallest: loss or MSE, or minus AUC or accuracy (plan.h, select). */
    double val_loss, val_metric, val_choice;
    double val_selected;
    size_t val_points; /* labelled rows or points validated; 0: no basis for choosing an epoch */
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
    mtan_model kept; /* the model that is validated and saved as the best: `model`, or its averaged weights */
    runner run;      /* for validation, of `kept` */
    mtan_pool pool;
    void *memory;
    double *class_weights; /* (C) in the loss, or NULL */
    /* the current batch */
    mtan_record *records; /* (batch); on a device twice that, for the next batch */
    mtan_event *events; /* (batch, most events), likewise: the events that the model sees, after hiding and thinning */
    const baseline_hook *hook; /* of the model, or NULL; room: (batch, most events), likewise, for its events */
    mtan_event *room;
    int32_t filled, n_filled; /* on a device: the batch that is filled already (0: none), and its records */
    int32_t *order;           /* (training records) this epoch's order, as positions in split->part[SPLIT_TRAIN] */
    /* state of the run that a checkpoint stores besides weights, moments and step */
    int32_t epoch, batch; /* epochs done; batches done of the next epoch */
    double sum[5];        /* over this epoch's batches: loss, recon, ce, kl, gradient norm, each times its records */
    double train_seconds; /* of this epoch; not in checkpoints, so that equal trainings write equal bytes */
    mtan_real *bands;     /* (D) factors on learned deviations, from the last validation (bands.h); or NULL */
    width_change width;   /* of a number's intervals, from the last validation */
    int32_t best_epoch, since_best; /* best_epoch 0: none yet */
    double best;                    /* the smallest selection value: loss, MSE, or minus AUC; SELECT_LAST: the newest */
    double first_loss;
    /* diverged: the last step's loss was NaN or far too large, or its gradient was not finite, or a result of
     * validation was not */
    int diverged;
} training;

typedef struct rank_set {
    int32_t rank, ranks;
    mtan_allreduce allreduce;
    void *context;
} rank_set;

/* Makes initial weights, workspaces and threads. 1, or 0 with error (512 bytes) set. */
int training_start(training *t, const plan *p, const dataset *d, const split *s, const mtan_backend *backend,
                   int32_t threads, const rank_set *r, char *error);
/* Copies in the weights that a pretrained model shares, before the first step. 0: a device failed. */
int training_take(training *t, const mtan_model *pretrained);
/* Trains on the next batch of the epoch: 1; 0 when the epoch's batches are done; -1 with error set on a failure. A loss
 * that is NaN leaves the weights as they were. */
int training_step(training *t, step_result *step, char *error);
/* Ends an epoch: validation and selection. Returns 1 when this epoch is the best so far, 0 when not, -1 with error set.
 * An epoch whose selection value is not finite is never the best. Without validation results the newest epoch is the
 * best; with SELECT_LAST it is the newest one whose value is finite. */
int training_end_epoch(training *t, epoch_result *result, char *error);
int32_t training_batches(const training *t);    /* per epoch */
const char *training_metric(const training *t); /* "val_auc", "val_acc", "val_rmse" or "val_mse" */
const char *training_choice(const training *t); /* the name of val_choice; NULL: it is val_loss or val_metric */
int training_finished(const training *t);       /* all epochs done, or `patience` epochs without a better one */

/* Copies weights and moments back from a device; call it before anything reads or writes them. 0: the device failed. */
int training_fetch(training *t);
/* The model that is saved as the best has its intervals changed by `width`. training_widen changes `kept` and `run` and
 * hands the previous weights to the caller in *before, NULL where nothing changes; training_narrow restores and frees
 * them. 0: the device failed. */
int training_widen(training *t, mtan_real **before);
int training_narrow(training *t, mtan_real *before);
void training_write(const training *t, mtan_file_pair **pairs); /* mtan.run.*, mtan.split.* */
int training_read(training *t, bundle *b, char *error);
void training_stop(training *t);

#endif
