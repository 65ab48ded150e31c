/* Which records are for training, validation and test. Positions are those of dataset.records.
 *
 * The published splits are scikit-learn's: train_test_split(0.8, seed 42) leaves the test set, train_test_split(0.8,
 * seed 11) of the rest the validation set. Where records have groups, `by_group` draws groups instead of records (Q42:
 * windows of one person). MIMIC-III uses five stratified folds (StratifiedKFold, shuffled, seed 0) and the last fifth
 * of the training part, in order, for validation.
 *
 * People's own data is split by class: of each class as many to a part as its share, at least one to each part that the class
 * can be in (two records: training and test; one: training). Records without a label are a class of their own, one with
 * labels of times has the largest of them. Where that leaves a part empty the classes are not looked at.
 *
 * Every record is in exactly one part, in the order in which scikit-learn gives it, or in that of the data. With `by_group` the items that are
 * drawn are the groups in order of first appearance; a group's records stay together, in their own order, and the
 * shares are shares of groups. A record without a group (-1) is an item of its own. For folds a group has the largest
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
    SPLIT_STRATIFIED_FOLDS, /* fold `fold` of `folds`; for validation a fifth of each class of the others */
    SPLIT_GIVEN,            /* as the records say (dataset_record.part) */
    SPLIT_ALL,              /* all are for training: what was measured, was so by other models */
    SPLIT_KINDS
} split_kind;

enum { SPLIT_FOLD_COUNT = 5, SPLIT_FOLDS_MOST = 100 };

/* The seed that gives every published split: 42 and then 11 for the two draws, 0 for the folds. Any other seed s is s
 * for the first draw and for the folds, and s + 1 (mod 2^32) for the second draw. */
#define SPLIT_SEED 42u

typedef struct split_way {
    split_kind kind;
    int by_group;
    int32_t fold, folds; /* folds: SPLIT_FOLD_COUNT for SPLIT_FOLDS */
    uint32_t seed;
} split_way;

typedef struct split {
    int32_t *part[SPLIT_PARTS]; /* stb_ds arrays */
    /* What tells data sets apart, of the data as it stands when it is split: */
    uint64_t hash;   /* of the names and parts of all records, in their order */
    uint64_t values; /* of their events and of the channels' names; the order of the records does not matter here */
    uint64_t labels; /* of their labels, the times of these and the classes' names, likewise */
} split;

/* 1, or 0 with `error` (at least 256 bytes) set and nothing to free: too few records, no such fold, a fold of records without
 * one label each, or parts given that leave out a record, divide a group or leave none for training or validation. */
int split_make(split *s, const dataset *d, const split_way *how, char *error);
/* The same test records with others for validation: of `turns` splits the first, 0, is the one that there is, and each further one takes
 * a part of its training records, class by class, so that all have their turn. A group stays together if `by_group`. */
void split_turn(split *s, const split *from, const dataset *d, int by_group, int32_t turn, int32_t turns);
const char *split_part_name(int part); /* "train", "valid", "test" */
/* "train", "valid", "test", "all" -> the positions, a new stb_ds array (not NULL when empty); "all" is in the data
 * set's order. NULL for another word. */
int32_t *split_positions(const split *s, const char *part);
int split_part_of(const split *s, int32_t position); /* SPLIT_TEST where no part has it */
void split_free(split *s);

#endif
