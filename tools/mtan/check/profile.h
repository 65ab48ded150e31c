/* The computing part of `mtan check`: the content of a data set, leakage between its splits, and the cost of training
 * on it. It works on raw data as the loaders return it; only profile_cost needs preprocessed data. It changes
 * nothing. */
#ifndef MTAN_TOOLS_PROFILE_H
#define MTAN_TOOLS_PROFILE_H

#include "../../data/dataset.h"
#include "../../data/split.h"

typedef struct channel_profile {
    size_t records; /* records that observe it */
    size_t observations;
    double share;             /* of all time stamps, the share at which it is observed */
    double low, median, high; /* NaN: never observed */
    int constant;             /* observed more than once, always the same */
    double code;  /* a value that probably means "missing": -1, 999, ..., alone at an end of the range; NaN: none */
    size_t codes; /* how often it occurs */
} channel_profile;

typedef struct profile {
    size_t records, labelled;  /* labelled: the record has a label, or at least one of its times has */
    size_t unobserved, single; /* records without an observation; with a single time stamp */
    size_t observations, stamps;
    size_t labels;                  /* total number: of records, or of times */
    channel_profile *channels;      /* (D) stb_ds arrays */
    size_t *classes;                /* (C) labels of each class */
    double first, last;             /* times; NaN without an observation */
    double stamps_quantile[5];      /* time stamps per record: least, quarter, median, three quarters, most */
    double gap_median, gap_largest; /* between neighbouring time stamps of a record; NaN: no record has two */
    size_t gap_record;              /* the record with the largest */
    double sparsity;                /* the share of the cells (time stamps x channels) without an observation */
    /* twin (records): the first record with the same observations, maybe itself; -1: it has no observations */
    int32_t *twin;
    size_t twins;         /* records that repeat an earlier one */
    size_t contradicting; /* those of them with another label */
    size_t twin_example;  /* the first of them */
} profile;

void profile_make(profile *p, const dataset *d);
void profile_free(profile *p);

/* What validation and test records share with training records. */
typedef struct leakage {
    size_t twins;                       /* those whose observations a training record has too */
    size_t twin_outside, twin_training; /* the first such pair */
    size_t groups, shared_groups;       /* all groups; groups with records on both sides */
    size_t shared_records;              /* validation and test records that belong to them */
} leakage;
leakage profile_leakage(const profile *p, const dataset *d, const split *s);

/* Settings that suit the size of own data. Batch: the largest power of two up to records / 20, within 4 and 64, so that
 * an epoch has at least 20 steps. Hidden units: 32 below 500 records, 64 below 2000, else 128. Reference points: the
 * next power of two from the median number of time stamps, within 8 and 128. */
typedef struct suggestion {
    const char *model; /* enc or per-time, by the labels; interp without two classes */
    int32_t batch, hidden, ref_points;
} suggestion;
suggestion profile_suggest(const profile *p, const dataset *d);

/* What a configuration costs on this machine. Memory is exact: the block that the trainer asks for. Time is the
 * shortest of real steps on batches spread over the training records, with random weights, measured for about
 * `seconds`; validation is not included. Time is NaN when the block is above `most` bytes, as nothing is run then. */
typedef struct cost {
    size_t parameters, bytes;
    int32_t steps;       /* per epoch */
    double step_seconds; /* of one */
    double cpu_share;    /* share of the threads' time that was CPU time: far below 1 when others use the machine */
    int rough;           /* a whole batch would take longer than `seconds`: scaled from one eighth of a batch */
    mtan_status status;
} cost;
/* train: optimiser, clipping and dropout; profile_cost sets its threads. */
cost profile_cost(const mtan_config *config, mtan_train_config train, const mtan_backend *backend, const dataset *d,
                  const int32_t *training, int32_t batch, int32_t threads, double seconds, size_t most);

#endif
