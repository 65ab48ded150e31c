/* See split.h. Refuses to leave training or test empty, or validation where the kind has one. */
#include "split.h"

#include <stdio.h>
#include <string.h>

#include "buckets.h"
#include "generators.h"

enum { ERROR_SIZE = 256 };

/* What is drawn: groups of records, or each record by itself. */
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

static int draw_parts(split *s, const buckets *items, split_kind kind, uint32_t seed, char *error) {
    const size_t n = items->n, least = kind == SPLIT_TWO ? 2 : 3;
    const uint32_t second = seed == SPLIT_SEED ? 11u : seed + 1;
    if (n < least) {
        snprintf(error, ERROR_SIZE, "%zu records or groups are too few to split: at least %zu are needed", n, least);
        return 0;
    }
    int32_t *order = tool_calloc(n, sizeof *order), *inner = tool_calloc(n, sizeof *inner);
    const size_t n_test = sklearn_split(order, n, 0.8, seed), n_rest = n - n_test;
    const size_t n_valid = sklearn_split(inner, n_rest, kind == SPLIT_TWO ? 1 : 0.8, second);
    for (size_t i = 0; i < n_test; i++) add_item(s, SPLIT_TEST, items, order[i]);
    for (size_t i = 0; i < n_rest; i++) {
        const size_t from = kind == SPLIT_TWO ? i : (size_t)inner[i]; /* one draw: its order stays */
        add_item(s, i < n_valid ? SPLIT_VALID : SPLIT_TRAIN, items, order[n_test + from]);
    }
    free(order), free(inner);
    return 1;
}

/* ---- scikit-learn's StratifiedKFold ---- */

/* The one label of each item, or 0. */
static int find_labels(int32_t *label, const dataset *d, const buckets *items, char *error) {
    for (size_t i = 0; i < items->n; i++) {
        label[i] = -1;
        for (int32_t j = items->first[i]; j < items->first[i + 1]; j++) {
            const size_t at = (size_t)items->member[j];
            const dataset_record *r = &d->records[at];
            if (d->label_times || r->n_labels != 1 || d->labels[r->label0] < 0) {
                snprintf(error, ERROR_SIZE,
                         "record %.100s has not one label: folds are balanced by it, use another split",
                         dataset_name(d, at));
                return 0;
            }
            if (d->labels[r->label0] > label[i]) label[i] = d->labels[r->label0];
        }
    }
    return 1;
}

/* Deals the items to the folds. All items sorted by class are dealt in turn, which says how many of a class each fold
 * gets; which ones is a shuffle within the class. */
static void deal_folds(int32_t *fold, const buckets *classes, uint32_t seed) {
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, seed);
    for (size_t k = 0; k < classes->n; k++) {
        const int32_t first = classes->first[k], n = classes->first[k + 1] - first;
        int32_t *block = NULL, *order = tool_calloc((size_t)n, sizeof *order);
        for (int32_t f = 0; f < SPLIT_FOLD_COUNT; f++)
            for (int32_t i = first; i < first + n; i++)
                if (i % SPLIT_FOLD_COUNT == f) arrput(block, f);
        numpy_permutation(&rng, order, (size_t)n);
        for (int32_t i = 0; i < n; i++) fold[classes->member[first + i]] = block[order[i]];
        arrfree(block), free(order);
    }
}

/* The chosen fold is the test set; the last fifth of the others, in order, is for validation. */
static void take_fold(split *s, const buckets *items, const int32_t *fold, int32_t chosen) {
    int32_t *rest = NULL;
    for (size_t i = 0; i < items->n; i++) {
        if (fold[i] == chosen) add_item(s, SPLIT_TEST, items, (int32_t)i);
        else arrput(rest, (int32_t)i);
    }
    const size_t n_train = (size_t)(0.8 * (double)arrlenu(rest));
    for (size_t i = 0; i < arrlenu(rest); i++) add_item(s, i < n_train ? SPLIT_TRAIN : SPLIT_VALID, items, rest[i]);
    arrfree(rest);
}

static int draw_fold(split *s, const dataset *d, const buckets *items, int32_t chosen, uint32_t seed, char *error) {
    int32_t *label = tool_calloc(items->n, sizeof *label);
    int good = 0;
    if (chosen < 0 || chosen >= SPLIT_FOLD_COUNT)
        snprintf(error, ERROR_SIZE, "there is no fold %d: folds are 0 to %d", (int)chosen, SPLIT_FOLD_COUNT - 1);
    else if (find_labels(label, d, items, error)) {
        buckets classes = buckets_fill(label, items->n);
        good = buckets_largest(&classes) >= SPLIT_FOLD_COUNT;
        if (good) {
            deal_folds(label, &classes, seed == SPLIT_SEED ? 0 : seed); /* from here on the item's fold */
            take_fold(s, items, label, chosen);
        } else snprintf(error, ERROR_SIZE, "no class has %d records or groups: too few for folds", SPLIT_FOLD_COUNT);
        buckets_free(&classes);
    }
    free(label);
    return good;
}

/* ---- the whole ---- */

static void put_bytes(uint8_t out[8], uint64_t x) {
    for (int i = 0; i < 8; i++) out[i] = (uint8_t)(x >> 8 * i);
}

/* A chain over the records in the data set's order: the hash so far, that of the name, the part. The same on every
 * host. */
static uint64_t hash_split(const split *s, const dataset *d) {
    const size_t n = arrlenu(d->records);
    uint8_t *part = tool_calloc(n, 1), link[17];
    uint64_t hash = 0;
    for (int p = 0; p < SPLIT_PARTS; p++)
        for (size_t i = 0; i < arrlenu(s->part[p]); i++) part[s->part[p][i]] = (uint8_t)p;
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

/* Takes 64 bits more into a hash. */
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

/* As float, so that both builds agree. */
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

static uint64_t hash_labels(const dataset *d, size_t record) {
    const dataset_record *r = &d->records[record];
    uint64_t hash = mix_text(0, dataset_name(d, record));
    for (size_t i = r->label0; i < r->label0 + (size_t)r->n_labels; i++)
        hash = mix(hash, (d->label_times ? bits_of(d->label_times[i]) : 0) << 32 | (uint32_t)d->labels[i]);
    return hash;
}

/* Sums over the records do not depend on their order. */
static void hash_data(split *s, const dataset *d) {
    s->values = hash_texts(d->channels), s->labels = hash_texts(d->classes);
    for (size_t i = 0; i < arrlenu(d->records); i++) s->values += hash_events(d, i), s->labels += hash_labels(d, i);
}

int split_make(split *s, const dataset *d, split_kind kind, int by_group, int32_t fold, uint32_t seed, char *error) {
    buckets items;
    int good;
    memset(s, 0, sizeof *s);
    if (arrlenu(d->records) >= INT32_MAX) return snprintf(error, ERROR_SIZE, "too many records to split"), 0;
    items = find_items(d, by_group);
    good = kind == SPLIT_FOLDS ? draw_fold(s, d, &items, fold, seed, error) : draw_parts(s, &items, kind, seed, error);
    buckets_free(&items);
    if (good) s->hash = hash_split(s, d), hash_data(s, d);
    return good;
}

int32_t *split_positions(const split *s, const char *part) {
    static const char *const names[SPLIT_PARTS] = {"train", "valid", "test"};
    int32_t *positions = NULL;
    for (int p = 0; p < SPLIT_PARTS; p++) {
        if (strcmp(part, names[p]) != 0) continue;
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
