/* The plan of `mtan train`: model, data, training schedule. A named configuration and a preset give the defaults,
 * options change them, and a model file stores them (mtan.plan.*, mtan.data.*), so that --resume needs no options
 * again. */
#ifndef MTAN_TOOLS_PLAN_H
#define MTAN_TOOLS_PLAN_H

#include "../options/options.h"
#include "board.h"
#include "source.h"

/* Model files contain these numbers. */
typedef enum plan_select { SELECT_LOSS, SELECT_AUC, SELECT_MSE, SELECT_ACCURACY, SELECT_LAST } plan_select;
typedef enum plan_schedule { SCHEDULE_CONSTANT, SCHEDULE_EXPONENTIAL, SCHEDULE_COSINE } plan_schedule;
/* The parts of the chosen model that are retrained with the validation records. */
typedef enum plan_refit { REFIT_NOTHING, REFIT_ALL, REFIT_TREES } plan_refit;

typedef struct plan {
    char name[32]; /* physionet-enc, ..., own */
    mtan_config config;
    source source;
    prep_kind scale;
    double time_scale; /* 0: the largest training time */
    int32_t epochs, batch, patience, shuffle, optimizer;
    int32_t ensemble;        /* number of models to train and join, with seeds from `seed` on; 1: no ensemble */
    int32_t pretrain_epochs; /* on the records of pretrain.h, before the rest; 0: none, or as many as these need */
    char pretrained[24];     /* a hash of those records; "": none */
    plan_select select;
    plan_schedule schedule;
    plan_refit refit;
    double lr, clip, dropout, thin;
    double decay, average; /* of the weights: mtan_train_config */
    double kl_weight;      /* likewise: where the model's kl_anneal is 0 */
    /* lr_decay: the factor per step of SCHEDULE_EXPONENTIAL. lr_floor: the share of lr that no schedule falls below. */
    double lr_decay, lr_floor;
    double warmup;           /* share of all steps over which the rate rises from 0 */
    char class_weights[256]; /* "none", "balanced", or a number for each class, separated by commas */
    /* The range of the share of times shown when interpolating; it is drawn anew for every record and epoch. */
    double observed_low, observed_high;
    int64_t seed;
    board_goal goal; /* limits on the model's size; not stored in files */
} plan;

/* Applies the defaults of a named configuration, then the options. 1, or 0 with a message printed. The channels and
 * classes of own data are known only after reading it: plan_fit sets them. */
int plan_make(plan *p, const options *o);
/* Whether the first argument names a configuration. 0 with a message printed, which lists the names. */
int plan_is_named(const options *o);
int plan_published(plan *p, const char *name); /* a configuration as published, without options; 0: no such name */
/* The settings that follow from the data, and whether all settings go together. o: the options that the plan was made
 * with, which messages name; NULL: none were given. 1, or 0 with a message printed. */
int plan_fit(plan *p, const options *o, const dataset *d);
const char *plan_task_words(const plan *p); /* what the labels are: "classes", "a number", ... */
int plan_has_trees(const plan *p);          /* whether trees are fitted: for classes only */
/* The class weights in the loss, (C), an stb_ds array; NULL: all classes count the same. */
double *plan_class_weights(const plan *p, const dataset *d, const split *s);
/* Runs plan_fit, splits the data, and fits and applies the preprocessing. resumed: the file of a run to be resumed, or
 * NULL. Its data must be these data, and its preprocessing is moved to `prepared` instead of being fitted. */
int plan_prepare(plan *p, const options *o, dataset *d, split *s, prep *prepared, bundle *resumed);
/* Whether the model and everything that training adds can be saved; checked before training. 1, or 0 with error (512
 * bytes) set. */
int plan_can_be_saved(const plan *p, const prep *prepared, char *error);
/* The epochs, within 20 and 200, that give `steps` steps: a schedule that falls to its end needs enough steps, for
 * small data sets as for large ones. */
int32_t plan_enough_epochs(const plan *p, size_t records, double steps);
/* The factor on the learning rate at a step, counted from 1, of all `steps`. */
double plan_rate(const plan *p, int64_t step, int64_t steps);
/* The word for a number that a model file stores as mtan.plan.<name>; NULL: it is a plain number, or has no meaning. */
const char *plan_word(const char *name, double value);

/* Write to a model file and read back. plan_read refuses options that contradict the file. */
void plan_write(const plan *p, mtan_file_pair **pairs);
int plan_read(plan *p, bundle *b, const options *o, char *error);
int plan_load(plan *p, bundle *b, char *error); /* the plan of the file, without options */
/* The options that turn the defaults of its name and preset into this plan, each with a blank before it: " --latent
 * 10". The seed is left out. 0: the name has no defaults (own data). */
int plan_describe(const plan *p, char *text, size_t size);

#endif
