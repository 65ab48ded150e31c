/* See split.h. It refuses to leave training or test empty, or validation if the kind has a validation part. */
#include "split.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buckets.h"
#include "generators.h"

enum { ERROR_SIZE = 256 };

/* The drawn items: groups of records, or single records. */
static buckets find_items(const dataset *d, int by_group) {
    const size_t n = arrlenu(d->records);
    int32_t *key = tool_calloc(n, sizeof *key);
    for (size_t i = 0; i < n; i++) key[i] = by_group ? d->records[i].group : -1;
    const buckets items = buckets_fill(key, n);
    free(key);
    return items;
}

static void add_item(split *s, int part, const buckets *items, int32_t item) {
    for (int32_t i = items->first[item]; i < items->first[item + 1]; i++) arrput(s->part[part], items->member[i]);
}

/* ---- scikit-learn's train_test_split, once or twice ---- */

static int draw_parts(split *s, const buckets *items, const split_way *how, char *error) {
    const split_kind kind = how->kind;
    const uint32_t seed = how->seed, second = seed == SPLIT_SEED ? 11u : seed + 1;
    const size_t n = items->n, least = kind == SPLIT_TWO ? 2 : 3;
    if (n < least) {
        snprintf(error, ERROR_SIZE, "%zu records or groups are too few to split: at least %zu are needed", n, least);
        return 0;
    }
    int32_t *order = tool_calloc(n, sizeof *order), *inner = tool_calloc(n, sizeof *inner);
    const size_t n_test = sklearn_split(order, n, 0.8, seed), n_rest = n - n_test;
    const size_t n_valid = sklearn_split(inner, n_rest, kind == SPLIT_TWO ? 1 : 0.8, second);
    for (size_t i = 0; i < n_test; i++) add_item(s, SPLIT_TEST, items, order[i]);
    for (size_t i = 0; i < n_rest; i++) {
        const size_t from = kind == SPLIT_TWO ? i : (size_t)inner[i]; /* a single draw keeps its order */
        add_item(s, i < n_valid ? SPLIT_VALID : SPLIT_TRAIN, items, order[n_test + from]);
    }
    free(order), free(inner);
    return 1;
}

/* ---- by class ---- */

/* (C) The rank of each of several labels: the number of more frequent labels. Rare labels are the hardest to spread
 * over the parts. */
static int32_t *rank_labels(const dataset *d) {
    const size_t C = arrlenu(d->classes), cells = arrlenu(d->numbers);
    int32_t *rank = tool_calloc(C, sizeof *rank), *count = tool_calloc(C, sizeof *count);
    for (size_t i = 0; i < cells; i++) count[i % C] += d->numbers[i] > 0;
    for (size_t a = 0; a < C; a++)
        for (size_t b = 0; b < C; b++) rank[a] += count[b] > count[a] || (count[b] == count[a] && b < a);
    free(count);
    return rank;
}

/* The class by which a row of labels is dealt: its class or, with several labels, the rarest label that it has; 0 if it
 * has none. */
static int32_t row_class(const dataset *d, const int32_t *rank, size_t row) {
    const size_t C = arrlenu(d->classes);
    int32_t class = d->labels[row];
    for (size_t c = 0; rank && c < C; c++)
        if (d->numbers[row * C + c] > 0 && rank[c] + 1 > class) class = rank[c] + 1;
    return class;
}

/* The largest class of each item; -1: no class. */
static void find_classes(int32_t *class, const dataset *d, const buckets *items) {
    int32_t *rank = d->task == MTAN_TASK_LABELS ? rank_labels(d) : NULL;
    for (size_t i = 0; i < items->n; i++) {
        class[i] = -1;
        for (int32_t j = items->first[i]; j < items->first[i + 1]; j++) {
            const dataset_record *r = &d->records[items->member[j]];
            for (size_t k = r->label0; k < r->label0 + (size_t)r->n_labels; k++) {
                const int32_t found = row_class(d, rank, k);
                if (found > class[i]) class[i] = found;
            }
        }
    }
    free(rank);
}

/* Groups the places in `list` by class; items without a class form a group. */
static buckets group_classes(const int32_t *class, const int32_t *list, size_t n) {
    int32_t *key = tool_calloc(n, sizeof *key);
    for (size_t i = 0; i < n; i++) key[i] = class[list[i]] + 1;
    const buckets classes = buckets_fill(key, n);
    free(key);
    return classes;
}

/* How many items of a class of n go to test and validation. One stays in training, and each other part gets one as long
 * as there are any. `owed` is what earlier classes could not give. */
static void count_parts(int32_t count[SPLIT_PARTS], int32_t n, const double *share, double *owed) {
    static const int after_training[] = {SPLIT_TEST, SPLIT_VALID};
    int32_t spare = n - 1;
    for (int i = 0; i < 2; i++) {
        const int part = after_training[i], last = i == 1 || !(share[SPLIT_VALID] > 0);
        const int32_t most = last || spare < 2 ? spare : spare - 1;
        count[part] = 0;
        if (!(share[part] > 0)) continue;
        owed[part] += n * share[part];
        count[part] = (int32_t)floor(owed[part] + 0.5);
        if (count[part] < 1) count[part] = 1;
        if (count[part] > most) count[part] = most;
        owed[part] -= count[part];
        spare -= count[part];
    }
}

typedef struct class_size {
    int32_t class, n;
} class_size;

static int by_size(const void *a, const void *b) {
    const class_size *x = a, *y = b;
    return x->n != y->n ? (x->n > y->n) - (x->n < y->n) : (x->class > y->class) - (x->class < y->class);
}

/* Deals the n items of `list` to the parts, class by class, the smallest first: large classes compensate for what small
 * ones took beyond their share. */
static void deal_parts(uint8_t *part, const int32_t *class, const int32_t *list, size_t n, const double *share,
                       uint32_t seed) {
    double owed[SPLIT_PARTS] = {0};
    buckets classes = group_classes(class, list, n);
    class_size *order = tool_calloc(classes.n, sizeof *order);
    int32_t *shuffled = tool_calloc(n, sizeof *shuffled);
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, seed);
    for (size_t k = 0; k < classes.n; k++)
        order[k].class = (int32_t)k, order[k].n = classes.first[k + 1] - classes.first[k];
    qsort(order, classes.n, sizeof *order, by_size);
    for (size_t k = 0; k < classes.n; k++) {
        const int32_t *members = classes.member + classes.first[order[k].class], m = order[k].n;
        int32_t count[SPLIT_PARTS];
        count_parts(count, m, share, owed);
        numpy_permutation(&rng, shuffled, (size_t)m);
        for (int32_t i = 0; i < m; i++)
            part[list[members[shuffled[i]]]] = (uint8_t)(i < count[SPLIT_TEST]                        ? SPLIT_TEST
                                                         : i < count[SPLIT_TEST] + count[SPLIT_VALID] ? SPLIT_VALID
                                                                                                      : SPLIT_TRAIN);
    }
    free(order), free(shuffled);
    buckets_free(&classes);
}

static void take_parts(split *s, const buckets *items, const uint8_t *part) {
    for (size_t i = 0; i < items->n; i++) add_item(s, part[i], items, (int32_t)i);
}

/* Returns 0 if a part would be empty. */
static int draw_stratified(split *s, const dataset *d, const buckets *items, uint32_t seed) {
    static const double share[SPLIT_PARTS] = {[SPLIT_VALID] = 0.16, [SPLIT_TEST] = 0.2};
    int32_t *class = tool_calloc(items->n, sizeof *class), *list = tool_calloc(items->n, sizeof *list);
    uint8_t *part = tool_calloc(items->n, 1);
    int found[SPLIT_PARTS] = {0}, good;
    find_classes(class, d, items);
    for (size_t i = 0; i < items->n; i++) list[i] = (int32_t)i;
    deal_parts(part, class, list, items->n, share, seed);
    for (size_t i = 0; i < items->n; i++) found[part[i]] = 1;
    good = found[SPLIT_TRAIN] && found[SPLIT_VALID] && found[SPLIT_TEST];
    if (good) take_parts(s, items, part);
    free(class), free(list), free(part);
    return good;
}

/* ---- scikit-learn's StratifiedKFold ---- */

/* Does each record have one label? */
static int has_one_label(const dataset *d, char *error) {
    for (size_t i = 0; i < arrlenu(d->records); i++) {
        const dataset_record *r = &d->records[i];
        if (!d->label_times && r->n_labels == 1 && d->labels[r->label0] >= 0) continue;
        snprintf(error, ERROR_SIZE, "record %.100s has not one label: folds are balanced by it, use another split",
                 dataset_name(d, i));
        return 0;
    }
    return 1;
}

/* Deals the items to the folds. Dealing all items in turn, sorted by class, gives the number of items of a class per
 * fold; a shuffle within the class selects them. */
static void deal_folds(int32_t *fold, const buckets *classes, int32_t folds, uint32_t seed) {
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, seed);
    for (size_t k = 0; k < classes->n; k++) {
        const int32_t first = classes->first[k], n = classes->first[k + 1] - first;
        int32_t *block = NULL, *order = tool_calloc((size_t)n, sizeof *order);
        for (int32_t f = 0; f < folds; f++)
            for (int32_t i = first; i < first + n; i++)
                if (i % folds == f) arrput(block, f);
        numpy_permutation(&rng, order, (size_t)n);
        for (int32_t i = 0; i < n; i++) fold[classes->member[first + i]] = block[order[i]];
        arrfree(block), free(order);
    }
}

/* The last fifth, in order, goes to validation. */
static void end_is_for_validation(uint8_t *part, const int32_t *rest) {
    const size_t n = arrlenu(rest), n_train = (size_t)(0.8 * (double)n);
    for (size_t i = n_train; i < n; i++) part[rest[i]] = SPLIT_VALID;
}

/* The chosen fold is the test set; a fifth of the other folds goes to validation. */
static void take_fold(split *s, const buckets *items, const int32_t *fold, const int32_t *class, const split_way *how) {
    static const double share[SPLIT_PARTS] = {[SPLIT_VALID] = 0.2};
    uint8_t *part = tool_calloc(items->n, 1);
    int32_t *rest = NULL;
    for (size_t i = 0; i < items->n; i++) {
        part[i] = fold[i] == how->fold ? SPLIT_TEST : SPLIT_TRAIN;
        if (part[i] == SPLIT_TRAIN) arrput(rest, (int32_t)i);
    }
    if (how->kind == SPLIT_FOLDS) end_is_for_validation(part, rest);
    else deal_parts(part, class, rest, arrlenu(rest), share, how->seed + 1);
    take_parts(s, items, part);
    arrfree(rest), free(part);
}

/* Each class must fill the folds, as in scikit-learn; for folds of any data, all items together must. */
static int draw_fold(split *s, const dataset *d, const buckets *items, const split_way *how, char *error) {
    const int32_t folds = how->folds;
    int32_t *class, *fold, *list;
    int good = 0;
    if (how->fold < 0 || how->fold >= folds)
        return snprintf(error, ERROR_SIZE, "there is no fold %d: folds are 0 to %d", (int)how->fold, (int)folds - 1), 0;
    if (how->kind == SPLIT_FOLDS && !has_one_label(d, error)) return 0;
    class = tool_calloc(items->n, sizeof *class), fold = tool_calloc(items->n, sizeof *fold),
    list = tool_calloc(items->n, sizeof *list);
    for (size_t i = 0; i < items->n; i++) list[i] = (int32_t)i;
    find_classes(class, d, items);
    buckets classes = group_classes(class, list, items->n);
    if (how->kind == SPLIT_FOLDS && buckets_largest(&classes) < folds)
        snprintf(error, ERROR_SIZE, "no class has %d records or groups: too few for folds", (int)folds);
    else if (items->n < (size_t)folds || items->n < 3)
        snprintf(error, ERROR_SIZE, "%zu records or groups are too few for %d folds", items->n, (int)folds);
    else {
        deal_folds(fold, &classes, folds, how->seed == SPLIT_SEED ? 0 : how->seed);
        take_fold(s, items, fold, class, how);
        good = 1;
    }
    buckets_free(&classes);
    free(class), free(fold), free(list);
    return good;
}

/* ---- parts that are given ---- */

static const char *const part_names[SPLIT_PARTS] = {"train", "valid", "test"};

const char *split_part_name(int part) {
    return part_names[part];
}

static int take_all(split *s, const buckets *items) {
    for (size_t i = 0; i < items->n; i++) add_item(s, SPLIT_TRAIN, items, (int32_t)i);
    return 1;
}

static int take_given(split *s, const dataset *d, const buckets *items, char *error) {
    for (size_t i = 0; i < items->n; i++) {
        const size_t first = (size_t)items->member[items->first[i]];
        for (int32_t j = items->first[i]; j < items->first[i + 1]; j++) {
            const size_t at = (size_t)items->member[j];
            if (!d->records[at].part)
                return snprintf(error, ERROR_SIZE, "record %.100s has no part of the split", dataset_name(d, at)), 0;
            if (d->records[at].part != d->records[first].part)
                return snprintf(error, ERROR_SIZE, "the split divides a group: %.100s is on another side than %.100s",
                                dataset_name(d, at), dataset_name(d, first)),
                       0;
        }
        add_item(s, d->records[first].part - 1, items, (int32_t)i);
    }
    for (int p = 0; p < SPLIT_TEST; p++) /* with a given split, the test may use other data */
        if (!s->part[p]) return snprintf(error, ERROR_SIZE, "the split has no %s record", part_names[p]), 0;
    return 1;
}

/* ---- making a split ---- */

static void put_bytes(uint8_t out[8], uint64_t x) {
    for (int i = 0; i < 8; i++) out[i] = (uint8_t)(x >> 8 * i);
}

/* (records) The part of each record. */
static uint8_t *parts_of_records(const split *s, size_t records) {
    uint8_t *part = tool_calloc(records, 1);
    for (int p = 0; p < SPLIT_PARTS; p++)
        for (size_t i = 0; i < arrlenu(s->part[p]); i++) part[s->part[p][i]] = (uint8_t)p;
    return part;
}

/* A chain over the records in the data set's order: the hash so far, the hash of the name, the part. The same on every
 * host. */
static uint64_t hash_split(const split *s, const dataset *d) {
    const size_t n = arrlenu(d->records);
    uint8_t *part = parts_of_records(s, n), link[17];
    uint64_t hash = 0;
    for (size_t i = 0; i < n; i++) {
        const char *name = dataset_name(d, i);
        put_bytes(link, hash);
        put_bytes(link + 8, mtan_bytes_hash(name, strlen(name)));
        link[16] = part[i];
        hash = mtan_bytes_hash(link, sizeof link);
    }
    free(part);
    return hash;
}

/* Mixes 64 more bits into a hash. */
static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15); /* 2^64 over the golden ratio, odd */
    return hash ^ hash >> 32;
}

static uint64_t mix_text(uint64_t hash, const char *text) {
    return mix(hash, mtan_bytes_hash(text, strlen(text)));
}

static uint64_t hash_texts(char **texts) {
    uint64_t hash = 0;
    for (size_t i = 0; i < arrlenu(texts); i++) hash = mix_text(hash, texts[i]);
    return hash;
}

/* The bits as float, so that both builds agree. */
static uint64_t bits_of(mtan_real x) {
    const float number = (float)x;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static uint64_t hash_events(const dataset *d, size_t record) {
    const dataset_record *r = &d->records[record];
    uint64_t hash = mix_text(0, dataset_name(d, record));
    for (int32_t i = 0; i < r->n_events; i++) {
        const mtan_event *e = &d->events[r->event0 + (size_t)i];
        hash = mix(mix(hash, bits_of(e->time) << 32 | (uint32_t)e->channel), bits_of(e->value));
    }
    return hash;
}

static int counts(const dataset *d, size_t label) {
    return !d->label_times || d->labels[label] != MTAN_UNLABELED;
}

/* Times without a label do not count: they say nothing about the labels. */
static uint64_t hash_labels(const dataset *d, size_t record) {
    const dataset_record *r = &d->records[record];
    const size_t C = d->numbers ? arrlenu(d->classes) : 0, end = r->label0 + (size_t)r->n_labels;
    uint64_t hash = mix_text(0, dataset_name(d, record));
    for (size_t i = r->label0; i < end; i++)
        if (counts(d, i))
            hash = mix(hash, (d->label_times ? bits_of(d->label_times[i]) : 0) << 32 | (uint32_t)d->labels[i]);
    for (size_t i = r->label0 * C; i < end * C; i++)
        if (counts(d, i / C)) hash = mix(hash, bits_of(d->numbers[i]));
    return hash;
}

/* Sums over the records are independent of their order. */
static void hash_data(split *s, const dataset *d) {
    s->values = hash_texts(d->channels), s->labels = hash_texts(d->classes);
    for (size_t i = 0; i < arrlenu(d->records); i++) s->values += hash_events(d, i), s->labels += hash_labels(d, i);
}

/* (n) The part of each item, which is its records' part. */
static uint8_t *parts_of_items(const split *s, const buckets *items, size_t records) {
    uint8_t *of_record = parts_of_records(s, records), *part = tool_calloc(items->n, 1);
    for (size_t i = 0; i < items->n; i++) part[i] = of_record[items->member[items->first[i]]];
    free(of_record);
    return part;
}

/* Where classes are too rare to be in every part. The records of a part are in the order of the data, as they are when
 * the parts are read back from a model file. */
static int draw_in_order(split *s, const dataset *d, const buckets *items, const split_way *how, char *error) {
    if (!draw_parts(s, items, how, error)) return 0;
    uint8_t *part = parts_of_items(s, items, arrlenu(d->records));
    split_free(s);
    take_parts(s, items, part);
    return free(part), 1;
}

static int draw(split *s, const dataset *d, const buckets *items, const split_way *how, char *error) {
    switch (how->kind) {
    case SPLIT_FOLDS:
    case SPLIT_STRATIFIED_FOLDS: return draw_fold(s, d, items, how, error);
    case SPLIT_GIVEN: return take_given(s, d, items, error);
    case SPLIT_ALL: return take_all(s, items);
    case SPLIT_STRATIFIED: return draw_stratified(s, d, items, how->seed) || draw_in_order(s, d, items, how, error);
    default: return draw_parts(s, items, how, error);
    }
}

int split_make(split *s, const dataset *d, const split_way *how, char *error) {
    buckets items;
    int good;
    memset(s, 0, sizeof *s);
    if (arrlenu(d->records) >= INT32_MAX) return snprintf(error, ERROR_SIZE, "too many records to split"), 0;
    items = find_items(d, how->by_group);
    good = draw(s, d, &items, how, error);
    buckets_free(&items);
    if (good) s->hash = hash_split(s, d), hash_data(s, d);
    else split_free(s);
    return good;
}

void split_turn(split *s, const split *from, const dataset *d, int by_group, int32_t turn, int32_t turns) {
    buckets items = find_items(d, by_group);
    uint8_t *part = parts_of_items(from, &items, arrlenu(d->records));
    int32_t *class = tool_calloc(items.n, sizeof *class), *fold = tool_calloc(items.n, sizeof *fold), *list = NULL;
    find_classes(class, d, &items);
    for (size_t i = 0; i < items.n; i++)
        if (part[i] == SPLIT_TRAIN) arrput(list, (int32_t)i);
    buckets classes = group_classes(class, list, arrlenu(list));
    deal_folds(fold, &classes, turns - 1, SPLIT_SEED);
    for (size_t i = 0; turn > 0 && i < items.n; i++)
        if (part[i] == SPLIT_VALID) part[i] = SPLIT_TRAIN;
    for (size_t i = 0; turn > 0 && i < arrlenu(list); i++)
        if (fold[i] == turn - 1) part[list[i]] = SPLIT_VALID;
    memset(s, 0, sizeof *s);
    take_parts(s, &items, part);
    s->hash = hash_split(s, d), hash_data(s, d);
    buckets_free(&classes), buckets_free(&items);
    arrfree(list), free(class), free(fold), free(part);
}

int32_t *split_positions(const split *s, const char *part) {
    int32_t *positions = NULL;
    for (int p = 0; p < SPLIT_PARTS; p++) {
        if (strcmp(part, part_names[p]) != 0) continue;
        const size_t n = arrlenu(s->part[p]);
        arrsetcap(positions, n + 1);
        for (size_t i = 0; i < n; i++) arrput(positions, s->part[p][i]);
        return positions;
    }
    if (strcmp(part, "all") != 0) return NULL;
    size_t n = 0;
    for (int p = 0; p < SPLIT_PARTS; p++) n += arrlenu(s->part[p]);
    arrsetcap(positions, n + 1);
    for (size_t i = 0; i < n; i++) arrput(positions, (int32_t)i);
    return positions;
}

int split_part_of(const split *s, int32_t position) {
    for (int part = 0; part < SPLIT_PARTS; part++)
        for (size_t i = 0; i < arrlenu(s->part[part]); i++)
            if (s->part[part][i] == position) return part;
    return SPLIT_TEST;
}

void split_free(split *s) {
    for (int p = 0; p < SPLIT_PARTS; p++) arrfree(s->part[p]);
}
