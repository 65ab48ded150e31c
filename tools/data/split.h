/* Assigns records to training, validation and test. Positions are indices in dataset.records.
 *
 * The published splits are scikit-learn's: train_test_split(0.8, seed 42) leaves the test set, and
 * train_test_split(0.8, seed 11) of the rest leaves the validation set. If records have groups, `by_group` draws groups
 * instead of records (Q42: windows of one person). MIMIC-III uses five stratified folds (StratifiedKFold, shuffled,
 * seed 0) and the last fifth of the training part, in order, for validation.
 *
 * People's own data is split by class: each part gets its share of each class, and at least one record of each class if
 * there are enough (two records: training and test; one: training). Records without a label count as a class of their
 * own; a record with labels of times counts by the largest of them. If that leaves a part empty, the classes are
 * ignored.
 *
 * Every record is in exactly one part, in scikit-learn's order or in the order of the data. With `by_group` the drawn
 * items are the groups in order of first appearance; a group's records stay together, in their own order, and the
 * shares are shares of groups. A record without a group (-1) is an item by itself. For folds a group has the largest
 * label of its records. */
#ifndef MTAN_TOOLS_SPLIT_H
#define MTAN_TOOLS_SPLIT_H

#include "dataset.h"

enum { SPLIT_TRAIN, SPLIT_VALID, SPLIT_TEST, SPLIT_PARTS };

typedef enum split_kind {
    SPLIT_PUBLISHED,        /* 64 / 16 / 20 % */
    SPLIT_TWO,              /* 80 / 0 / 20 %: the published interpolation experiments (Q24) */
    SPLIT_FOLDS,            /* fold `fold` of five, stratified by the records' labels */
    SPLIT_STRATIFIED,       /* 64 / 16 / 20 % of each class */
    SPLIT_STRATIFIED_FOLDS, /* fold `fold` of `folds`; a fifth of each class of the other folds is for validation */
    SPLIT_GIVEN,            /* given with the records (dataset_record.part) */
    SPLIT_ALL,              /* all records are for training: the measurements come from other models */
    SPLIT_KINDS
} split_kind;

enum { SPLIT_FOLD_COUNT = 5, SPLIT_FOLDS_MOST = 100 };

/* The seed of every published split: 42 and then 11 for the two draws, 0 for the folds. Any other seed s is s for the
 * first draw and for the folds, and s + 1 (mod 2^32) for the second draw. */
#define SPLIT_SEED 42u

typedef struct split_way {
    split_kind kind;
    int by_group;
    int32_t fold, folds; /* folds: SPLIT_FOLD_COUNT for SPLIT_FOLDS */
    uint32_t seed;
} split_way;

typedef struct split {
    int32_t *part[SPLIT_PARTS]; /* stb_ds arrays */
    /* Hashes that distinguish data sets, of the data at the time of the split: */
    uint64_t hash;   /* of the names and parts of all records, in their order */
    uint64_t values; /* of their events and of the channels' names; independent of the order of the records */
    uint64_t labels; /* of their labels, the label times and the classes' names; likewise */
} split;

/* Returns 1, or 0 with `error` (at least 256 bytes) set and nothing to free: too few records, no such fold, a fold over
 * records that do not have one label each, or given parts that leave out a record, divide a group or leave training or
 * validation empty. */
int split_make(split *s, const dataset *d, const split_way *how, char *error);
/* Splits with the same test records but different validation records, by class. Turn 0 of `turns` is the given split,
 * and each further turn takes another part of its training records for validation, so that every record has its turn. A
 * group stays together if `by_group`. */
void split_turn(split *s, const split *from, const dataset *d, int by_group, int32_t turn, int32_t turns);
const char *split_part_name(int part); /* "train", "valid", "test" */
/* The positions of "train", "valid", "test" or "all" as a new stb_ds array (not NULL if empty); "all" is in the data
 * set's order. NULL for any other word. */
int32_t *split_positions(const split *s, const char *part);
int split_part_of(const split *s, int32_t position); /* SPLIT_TEST if it is in no part */
void split_free(split *s);

#endif
