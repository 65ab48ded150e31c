/* What `mtan train` is to do: the model, the data, how long and how. A named configuration and a preset give the defaults,
 * options change them, a model file keeps them (mtan.plan.*, mtan.data.*), so that --resume needs no option again. */
#ifndef MTAN_TOOLS_PLAN_H
#define MTAN_TOOLS_PLAN_H

#include "../command/options.h"
#include "board.h"
#include "source.h"

/* Their numbers stand in model files. */
typedef enum plan_select { SELECT_LOSS, SELECT_AUC, SELECT_MSE, SELECT_ACCURACY, SELECT_LAST } plan_select;
typedef enum plan_schedule { SCHEDULE_CONSTANT, SCHEDULE_EXPONENTIAL, SCHEDULE_COSINE } plan_schedule;
/* What of the chosen model is trained once more, on the validation records too. */
typedef enum plan_refit { REFIT_NOTHING, REFIT_ALL, REFIT_TREES } plan_refit;

typedef struct plan {
    char name[32]; /* physionet-enc, ..., own */
    mtan_config config;
    source source;
    prep_kind scale;
    double time_scale; /* 0: the largest training time */
    int32_t epochs, batch, patience, shuffle, optimizer;
    int32_t ensemble;        /* how many models are trained, with seeds from `seed`, and joined; 1: one */
    int32_t pretrain_epochs; /* on the records of pretrain.h, before all others; 0: none, or as many as these need */
    char pretrained[24];     /* a hash of those records; "": there are none */
    plan_select select;
    plan_schedule schedule;
    plan_refit refit;
    double lr, clip, dropout, thin;
    double decay, average; /* of the weights: mtan_train_config */
    double kl_weight;      /* likewise: where the model's kl_anneal is 0 */
    double lr_decay,
        lr_floor;  /* SCHEDULE_EXPONENTIAL: the factor of a step; the share of lr that no schedule goes below */
    double warmup; /* share of all steps in which the rate rises from 0 */
    char class_weights[256]; /* "none", "balanced", or a number for each class, between commas */
    double observed_low,
        observed_high; /* share of the times shown when interpolating, drawn anew for every record and epoch */
    int64_t seed;
    board_goal goal; /* of the model's size; not kept in files */
} plan;

/* The defaults of a named configuration, then the options. 1, or 0 with a message printed. Own data has its channels and classes
 * only when it has been read: plan_fit sets them. */
int plan_make(plan *p, const options *o);
/* Is there a configuration of the name that is the first argument? 0 with a message printed, which lists the names. */
int plan_is_named(const options *o);
int plan_published(plan *p, const char *name); /* a configuration as published, no options; 0: no such name */
int plan_fit(plan *p, const dataset *d);
int plan_has_trees(const plan *p); /* that are fitted: beside classes alone */
/* The weights of the classes in the loss, (C), an stb_ds array; NULL: all count the same. */
double *plan_class_weights(const plan *p, const dataset *d, const split *s);
/* plan_fit, the split, and the preprocessing fitted to it and applied. With the file of a run to be resumed the data must be
 * that of the run, and the preprocessing is the file's, which gives it away. */
int plan_prepare(plan *p, dataset *d, split *s, prep *prepared, bundle *resumed);
/* Whether the model and what training will add can be saved: to be known before it is trained. 1, or 0 with error (512 bytes) set. */
int plan_can_be_saved(const plan *p, const prep *prepared, char *error);
/* A schedule that falls to its end needs steps enough, of large sets and of small ones. */
int32_t plan_enough_epochs(const plan *p, size_t records, double steps);
double plan_rate(const plan *p, int64_t step,
                 int64_t steps); /* factor on the learning rate for a step, from 1, of all */
/* The word behind a number that a model file keeps as mtan.plan.<name>, or NULL: it is a number, or means nothing. */
const char *plan_word(const char *name, double value);

/* Into a model file and back. plan_read refuses options that contradict the file. */
void plan_write(const plan *p, mtan_file_pair **pairs);
int plan_read(plan *p, bundle *b, const options *o, char *error);
int plan_load(plan *p, bundle *b, char *error); /* as it stands in the file */
/* The options that make this plan of the one that its name and preset stand for, each with a blank before it: " --latent 10". The
 * seed is not among them. 0: the name stands for nothing (own data). */
int plan_describe(const plan *p, char *text, size_t size);

#endif
