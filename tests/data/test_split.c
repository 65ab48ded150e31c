/* Splits, against scikit-learn (golden/metrics.safetensors). */
#include <greatest.h>
#include <stdio.h>
#include <string.h>

#include "golden_metrics.h"
#include "../../tools/data/buckets.h"
#include "../../tools/data/split.h"

/* n records r0, r1, ...; labels and groups may be NULL. */
static dataset make_data(size_t n, const int32_t *label, const int32_t *group) {
    dataset d;
    char name[24];
    memset(&d, 0, sizeof d);
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "r%zu", i);
        dataset_add_record(&d, name, group ? group[i] : -1);
        if (label) dataset_add_label(&d, label[i]);
    }
    return d;
}

/* The ends of a part when the tensor has fewer, else all of it. */
static int same_positions(const int32_t *part, const char *tensor) {
    size_t n = 0, wrong = 0;
    int32_t *expected = golden_i32(tensor, &n);
    const size_t have = arrlenu(part);
    if (have < n || (have > n && n != 16)) wrong = 1;
    for (size_t i = 0; i < n && !wrong; i++) wrong += part[i < n / 2 ? i : have - n + i] != expected[i];
    if (wrong) printf("  BAD %s: %zu positions, expected %zu\n", tensor, have, n);
    free(expected);
    return !wrong;
}

static int same_parts(const split *s, const char *name) {
    static const char *const parts[SPLIT_PARTS] = {"train", "valid", "test"};
    char tensor[64];
    int good = 1;
    for (int p = 0; p < SPLIT_PARTS; p++) {
        snprintf(tensor, sizeof tensor, "%s.%s", name, parts[p]);
        good &= same_positions(s->part[p], tensor);
    }
    return good;
}

/* Is every record in exactly one part? */
static int covers(const split *s, size_t n) {
    char *seen = calloc(n, 1);
    size_t found = 0;
    for (int p = 0; p < SPLIT_PARTS; p++)
        for (size_t i = 0; i < arrlenu(s->part[p]); i++) found += !seen[s->part[p][i]]++;
    for (size_t i = 0; i < n; i++) found -= seen[i] != 1;
    free(seen);
    return found == n;
}

TEST two_draws_are_scikit_learns(void) {
    static const struct {
        size_t n;
        uint32_t seed;
        const char *name;
    } cases[] = {{137, SPLIT_SEED, "two.137"},
                 {137, 7, "two.137.seed7"},
                 {3, SPLIT_SEED, "two.3"},
                 {4000, SPLIT_SEED, "two.4000"}};
    char error[256];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dataset d = make_data(cases[i].n, NULL, NULL);
        split s;
        ASSERT(split_make(&s, &d, &(split_way){SPLIT_PUBLISHED, 0, 0, SPLIT_FOLD_COUNT, cases[i].seed}, error));
        ASSERT(same_parts(&s, cases[i].name));
        ASSERT(covers(&s, cases[i].n));
        split_free(&s);
        dataset_free(&d);
    }
    PASS();
}

TEST one_draw_has_no_validation_set(void) {
    dataset d = make_data(137, NULL, NULL);
    char error[256];
    split s;
    ASSERT(split_make(&s, &d, &(split_way){SPLIT_TWO, 0, 0, SPLIT_FOLD_COUNT, SPLIT_SEED}, error));
    ASSERT(same_positions(s.part[SPLIT_TRAIN], "one.137.train"));
    ASSERT(same_positions(s.part[SPLIT_TEST], "one.137.test"));
    ASSERT_EQ_FMT((size_t)0, arrlenu(s.part[SPLIT_VALID]), "%zu");
    split_free(&s);
    dataset_free(&d);
    PASS();
}

/* The test set is the fold, the rest ascends through training and validation. */
static int is_fold(const split *s, const int32_t *of, size_t n, int32_t fold) {
    const size_t n_train = arrlenu(s->part[SPLIT_TRAIN]), n_valid = arrlenu(s->part[SPLIT_VALID]);
    size_t test = 0, rest = 0;
    if (!covers(s, n) || n_train != (size_t)(0.8 * (double)(n_train + n_valid))) return 0;
    for (size_t i = 0; i < n; i++) {
        const int32_t *next = of[i] == fold    ? s->part[SPLIT_TEST] + test++
                              : rest < n_train ? s->part[SPLIT_TRAIN] + rest++
                                               : s->part[SPLIT_VALID] + (rest++ - n_train);
        if (*next != (int32_t)i) return 0;
    }
    return 1;
}

TEST folds_are_scikit_learns(void) {
    size_t cases = 0, total = 0;
    int32_t *n = golden_i32("fold.n", &cases), *label = golden_i32("fold.label", &total);
    int32_t *of = golden_i32("fold.of", &total);
    size_t first = 0;
    char error[256];
    for (size_t k = 0; k < cases; first += (size_t)n[k++]) {
        dataset d = make_data((size_t)n[k], label + first, NULL);
        for (int32_t fold = 0; fold < SPLIT_FOLD_COUNT; fold++) {
            split s;
            ASSERT(split_make(&s, &d, &(split_way){SPLIT_FOLDS, 0, fold, SPLIT_FOLD_COUNT, SPLIT_SEED}, error));
            ASSERT(is_fold(&s, of + first, (size_t)n[k], fold));
            split_free(&s);
        }
        dataset_free(&d);
    }
    ASSERT_EQ_FMT(total, first, "%zu");
    free(n), free(label), free(of);
    PASS();
}

TEST the_last_fifth_is_for_validation(void) {
    size_t cases = 0, total = 0;
    int32_t *n = golden_i32("fold.n", &cases), *label = golden_i32("fold.label", &total);
    dataset d = make_data((size_t)n[4], label + n[0] + n[1] + n[2] + n[3], NULL);
    char error[256];
    split s;
    ASSERT(split_make(&s, &d, &(split_way){SPLIT_FOLDS, 0, 2, SPLIT_FOLD_COUNT, SPLIT_SEED}, error));
    ASSERT(same_parts(&s, "fold.2"));
    split_free(&s);
    ASSERT(split_make(&s, &d, &(split_way){SPLIT_FOLDS, 0, 2, SPLIT_FOLD_COUNT, 9}, error));
    ASSERT(same_parts(&s, "fold.2.seed9"));
    split_free(&s);
    dataset_free(&d);
    free(n), free(label);
    PASS();
}

TEST groups_stay_together(void) {
    size_t n = 0;
    int32_t *key = golden_i32("group.key", &n), *label = golden_i32("group.label", &n);
    dataset d = make_data(n, label, key);
    char error[256];
    split s;
    ASSERT(split_make(&s, &d, &(split_way){SPLIT_PUBLISHED, 1, 0, SPLIT_FOLD_COUNT, SPLIT_SEED}, error));
    ASSERT(same_parts(&s, "group.two"));
    ASSERT(covers(&s, n));
    split_free(&s);
    ASSERT(split_make(&s, &d, &(split_way){SPLIT_FOLDS, 1, 3, SPLIT_FOLD_COUNT, SPLIT_SEED}, error));
    ASSERT(same_parts(&s, "group.fold"));
    ASSERT(covers(&s, n));
    split_free(&s);
    dataset_free(&d);
    free(key), free(label);
    PASS();
}

/* ---- by class ---- */

static int32_t count_in(const split *s, int part, const int32_t *label, int32_t class) {
    int32_t n = 0;
    for (size_t i = 0; i < arrlenu(s->part[part]); i++) n += label[s->part[part][i]] == class;
    return n;
}

/* Classes of 1, 2, 3, 4, 9 and 181 records, which stand one behind the other: the share of each is within one of its due, and
 * no class lacks a part that it could have. */
TEST each_class_has_its_share(void) {
    static const int32_t sizes[] = {1, 2, 3, 4, 9, 181};
    enum { CLASSES = sizeof sizes / sizeof sizes[0], N = 200 };
    int32_t label[N];
    size_t n = 0;
    char error[256];
    for (int32_t c = 0; c < CLASSES; c++)
        for (int32_t i = 0; i < sizes[c]; i++) label[n++] = c;
    dataset d = make_data(N, label, NULL);
    for (uint32_t seed = 0; seed < 50; seed++) {
        split s;
        ASSERT(split_make(&s, &d, &(split_way){SPLIT_STRATIFIED, 0, 0, SPLIT_FOLD_COUNT, seed}, error));
        ASSERT(covers(&s, N));
        ASSERT_EQ_FMT((size_t)40, arrlenu(s.part[SPLIT_TEST]), "%zu");
        ASSERT_EQ_FMT((size_t)32, arrlenu(s.part[SPLIT_VALID]), "%zu");
        for (int32_t c = 0; c < CLASSES; c++) {
            const int32_t train = count_in(&s, SPLIT_TRAIN, label, c), valid = count_in(&s, SPLIT_VALID, label, c),
                          test = count_in(&s, SPLIT_TEST, label, c);
            ASSERT(train >= 1 && test >= (sizes[c] > 1) && valid >= (sizes[c] > 2));
            ASSERT(sizes[c] > 9 || (test <= 2 && valid <= 2));
        }
        split_free(&s);
    }
    dataset_free(&d);
    PASS();
}

/* Another seed is another draw, the same seed the same; where classes would leave a part empty they are not looked at. */
TEST a_stratified_draw_follows_its_seed(void) {
    static const int32_t all_different[] = {0, 1, 2, 3};
    int32_t label[60];
    char error[256];
    split a, b, c;
    for (int32_t i = 0; i < 60; i++) label[i] = i % 3 ? MTAN_UNLABELED : i % 2;
    dataset d = make_data(60, label, NULL);
    ASSERT(split_make(&a, &d, &(split_way){SPLIT_STRATIFIED, 0, 0, 5, 1}, error));
    ASSERT(split_make(&b, &d, &(split_way){SPLIT_STRATIFIED, 0, 0, 5, 1}, error));
    ASSERT(split_make(&c, &d, &(split_way){SPLIT_STRATIFIED, 0, 0, 5, 2}, error));
    ASSERT(a.hash == b.hash && a.hash != c.hash && covers(&a, 60));
    ASSERT_EQ_FMT(8, count_in(&a, SPLIT_TEST, label, MTAN_UNLABELED), "%d"); /* a fifth of 40 */
    split_free(&a), split_free(&b), split_free(&c);
    dataset_free(&d);
    d = make_data(4, all_different, NULL);
    ASSERT(split_make(&a, &d, &(split_way){SPLIT_STRATIFIED, 0, 0, 5, 1}, error));
    ASSERT(covers(&a, 4) && a.part[SPLIT_VALID] && a.part[SPLIT_TEST]);
    split_free(&a);
    dataset_free(&d);
    PASS();
}

/* Two records of each class cannot be in three parts: each is drawn alike, and stays where a model file will have it. */
TEST rare_classes_are_drawn_in_order(void) {
    enum { N = 40 };
    int32_t label[N];
    char error[256];
    split s;
    for (int32_t i = 0; i < N; i++) label[i] = i / 2;
    dataset d = make_data(N, label, NULL);
    ASSERT(split_make(&s, &d, &(split_way){SPLIT_STRATIFIED, 0, 0, SPLIT_FOLD_COUNT, 3}, error));
    ASSERT(covers(&s, N) && arrlen(s.part[SPLIT_VALID]) > 1 && arrlen(s.part[SPLIT_TEST]) > 1);
    for (int part = 0; part < SPLIT_PARTS; part++)
        for (size_t i = 1; i < arrlenu(s.part[part]); i++) ASSERT(s.part[part][i] > s.part[part][i - 1]);
    split_free(&s);
    dataset_free(&d);
    PASS();
}

/* Records in the order of their classes, in groups of three: each record is tested once, every fold has every class, and the
 * sides do not share a group. */
TEST folds_of_any_data_cover_it(void) {
    enum { N = 90, FOLDS = 4 };
    int32_t label[N], group[N], tested[N] = {0};
    char error[256];
    for (int32_t i = 0; i < N; i++) label[i] = i / 30, group[i] = i / 3;
    dataset d = make_data(N, label, group);
    for (int32_t fold = 0; fold < FOLDS; fold++) {
        int32_t side[N / 3];
        split s;
        memset(side, -1, sizeof side);
        ASSERT(split_make(&s, &d, &(split_way){SPLIT_STRATIFIED_FOLDS, 1, fold, FOLDS, 7}, error));
        ASSERT(covers(&s, N));
        for (int p = 0; p < SPLIT_PARTS; p++)
            for (int32_t c = 0; c < 3; c++) ASSERT(count_in(&s, p, label, c) >= 3);
        for (int p = 0; p < SPLIT_PARTS; p++)
            for (size_t i = 0; i < arrlenu(s.part[p]); i++) {
                const int32_t at = s.part[p][i];
                tested[at] += p == SPLIT_TEST;
                ASSERT(side[group[at]] < 0 || side[group[at]] == p);
                side[group[at]] = p;
            }
        split_free(&s);
    }
    for (int32_t i = 0; i < N; i++) ASSERT_EQ_FMT(1, tested[i], "%d");
    dataset_free(&d);
    PASS();
}

/* Every record but those of the test is for validation once; classes keep their shares, groups stay together. */
TEST all_have_their_turn(void) {
    enum { N = 90, TURNS = 5 };
    const split_way way = {SPLIT_STRATIFIED, 1, 0, SPLIT_FOLD_COUNT, SPLIT_SEED};
    int32_t label[N], group[N], validated[N] = {0};
    char error[256];
    split first;
    for (int32_t i = 0; i < N; i++) group[i] = i / 2, label[i] = i / 2 % 3 == 0;
    dataset d = make_data(N, label, group);
    ASSERT(split_make(&first, &d, &way, error));
    for (int32_t turn = 0; turn < TURNS; turn++) {
        split s;
        split_turn(&s, &first, &d, 1, turn, TURNS);
        ASSERT(covers(&s, N));
        ASSERT_EQ_FMT(arrlen(first.part[SPLIT_TEST]), arrlen(s.part[SPLIT_TEST]), "%td");
        ASSERT(count_in(&s, SPLIT_VALID, label, 1) >= 4 && count_in(&s, SPLIT_VALID, label, 0) >= 8);
        for (size_t i = 0; i < arrlenu(s.part[SPLIT_VALID]); i++) {
            const int32_t at = s.part[SPLIT_VALID][i];
            ASSERT_EQ_FMT(SPLIT_VALID, split_part_of(&s, at % 2 ? at - 1 : at + 1), "%d");
            validated[at]++;
        }
        if (turn == 0) ASSERT(first.hash == s.hash && first.values == s.values);
        split_free(&s);
    }
    for (int32_t i = 0; i < N; i++) ASSERT_EQ_FMT(split_part_of(&first, i) != SPLIT_TEST, validated[i], "%d");
    split_free(&first), dataset_free(&d);
    PASS();
}

TEST parts_may_be_given(void) {
    static const int32_t group[] = {0, 0, 1, 2};
    static const int32_t part[] = {SPLIT_TEST, SPLIT_TEST, SPLIT_TRAIN, SPLIT_VALID};
    dataset d = make_data(4, NULL, group);
    char error[256] = "";
    split s;
    for (int i = 0; i < 4; i++) d.records[i].part = 1 + part[i];
    ASSERT(split_make(&s, &d, &(split_way){SPLIT_GIVEN, 1, 0, 5, 0}, error));
    ASSERT(covers(&s, 4) && s.part[SPLIT_TEST][1] == 1 && s.part[SPLIT_TRAIN][0] == 2 && s.part[SPLIT_VALID][0] == 3);
    split_free(&s);
    d.records[1].part = 1 + SPLIT_TRAIN;
    ASSERT(split_make(&s, &d, &(split_way){SPLIT_GIVEN, 0, 0, 5, 0}, error));
    split_free(&s);
    ASSERT(!split_make(&s, &d, &(split_way){SPLIT_GIVEN, 1, 0, 5, 0}, error));
    ASSERT_STR_EQ("the split divides a group: r1 is on another side than r0", error);
    d.records[1].part = d.records[0].part = 1 + SPLIT_TRAIN; /* whoever tests on other data needs no test part */
    ASSERT(split_make(&s, &d, &(split_way){SPLIT_GIVEN, 1, 0, 5, 0}, error));
    ASSERT(covers(&s, 4) && !s.part[SPLIT_TEST]);
    split_free(&s);
    d.records[3].part = 1 + SPLIT_TRAIN;
    ASSERT(!split_make(&s, &d, &(split_way){SPLIT_GIVEN, 1, 0, 5, 0}, error));
    ASSERT_STR_EQ("the split has no valid record", error);
    d.records[1].part = 0;
    ASSERT(!split_make(&s, &d, &(split_way){SPLIT_GIVEN, 0, 0, 5, 0}, error));
    ASSERT_STR_EQ("record r1 has no part of the split", error);
    dataset_free(&d);
    PASS();
}

static int refused(dataset *d, split_kind kind, int by_group, int32_t fold, const char *reason) {
    char error[256] = "";
    split s;
    const int made = split_make(&s, d, &(split_way){kind, by_group, fold, SPLIT_FOLD_COUNT, SPLIT_SEED}, error);
    if (made) split_free(&s);
    if (made || !strstr(error, reason)) printf("  BAD \"%s\", expected \"%s\"\n", error, reason);
    dataset_free(d);
    return !made && strstr(error, reason) != NULL;
}

TEST what_cannot_be_split_is_refused(void) {
    static const int32_t one_group[] = {4, 4, 4, 4, 4, 4}, four_each[] = {0, 1, 0, 1, 0, 1, 0, 1},
                         unlabelled[] = {0, 0, 0, 0, 0, MTAN_UNLABELED};
    dataset d = make_data(0, NULL, NULL);
    ASSERT(refused(&d, SPLIT_PUBLISHED, 0, 0, "at least 3"));
    d = make_data(2, NULL, NULL);
    ASSERT(refused(&d, SPLIT_PUBLISHED, 0, 0, "at least 3"));
    d = make_data(1, NULL, NULL);
    ASSERT(refused(&d, SPLIT_TWO, 0, 0, "at least 2"));
    d = make_data(6, NULL, one_group);
    ASSERT(refused(&d, SPLIT_TWO, 1, 0, "1 records or groups are too few"));
    d = make_data(8, four_each, NULL);
    ASSERT(refused(&d, SPLIT_FOLDS, 0, 0, "no class has 5"));
    d = make_data(6, unlabelled, NULL);
    ASSERT(refused(&d, SPLIT_FOLDS, 0, 0, "record r5 has not one label"));
    d = make_data(6, NULL, NULL);
    ASSERT(refused(&d, SPLIT_FOLDS, 0, 0, "record r0 has not one label"));
    d = make_data(6, one_group, NULL);
    arrput(d.label_times, 0);
    ASSERT(refused(&d, SPLIT_FOLDS, 0, 0, "record r0 has not one label"));
    d = make_data(6, one_group, NULL);
    ASSERT(refused(&d, SPLIT_FOLDS, 0, 5, "no fold 5"));
    d = make_data(6, one_group, NULL);
    ASSERT(refused(&d, SPLIT_FOLDS, 0, -1, "no fold -1"));
    d = make_data(6, NULL, one_group);
    ASSERT(refused(&d, SPLIT_STRATIFIED, 1, 0, "at least 3"));
    d = make_data(4, NULL, NULL);
    ASSERT(refused(&d, SPLIT_STRATIFIED_FOLDS, 0, 0, "4 records or groups are too few for 5 folds"));
    PASS();
}

static uint64_t hash_of(dataset *d, split_kind kind, uint32_t seed) {
    char error[256];
    split s;
    uint64_t hash = 0;
    if (split_make(&s, d, &(split_way){kind, 0, 0, SPLIT_FOLD_COUNT, seed}, error)) hash = s.hash, split_free(&s);
    return hash;
}

TEST the_hash_is_of_names_and_parts(void) {
    size_t n = 0;
    uint32_t *expected = golden_array("two.3.hash", MTAN_DTYPE_U32, sizeof *expected, &n);
    dataset small = make_data(3, NULL, NULL), d = make_data(100, NULL, NULL), longer = make_data(101, NULL, NULL);
    ASSERT(hash_of(&small, SPLIT_PUBLISHED, SPLIT_SEED) == ((uint64_t)expected[1] << 32 | expected[0]));
    const uint64_t hash = hash_of(&d, SPLIT_PUBLISHED, SPLIT_SEED);
    ASSERT(hash == hash_of(&d, SPLIT_PUBLISHED, SPLIT_SEED));
    ASSERT(hash != hash_of(&d, SPLIT_PUBLISHED, 43));
    ASSERT(hash != hash_of(&d, SPLIT_TWO, SPLIT_SEED));
    ASSERT(hash != hash_of(&longer, SPLIT_PUBLISHED, SPLIT_SEED));
    d.names[d.records[50].name] = 'R';
    ASSERT(hash != hash_of(&d, SPLIT_PUBLISHED, SPLIT_SEED));
    dataset_free(&small), dataset_free(&d), dataset_free(&longer);
    free(expected);
    PASS();
}

/* Records with one event and one label each, in the order of the list. */
static split split_of(const int32_t *order, int32_t changed, mtan_real by_time, mtan_real by_value, int32_t by_label) {
    dataset d;
    char name[24], error[256];
    split s;
    memset(&d, 0, sizeof d);
    for (int32_t i = 0; i < 4; i++) {
        const int32_t k = order[i], change = k == changed;
        snprintf(name, sizeof name, "r%d", (int)k);
        dataset_add_record(&d, name, -1);
        dataset_add_event(&d, (mtan_real)k + (change ? by_time : 0), 0, 2 * (mtan_real)k + (change ? by_value : 0));
        dataset_end_record(&d);
        dataset_add_label(&d, k % 2 + (change ? by_label : 0));
    }
    if (!split_make(&s, &d, &(split_way){SPLIT_PUBLISHED, 0, 0, SPLIT_FOLD_COUNT, SPLIT_SEED}, error))
        fprintf(stderr, "mtan: %s\n", error), exit(2);
    split_free(&s);
    dataset_free(&d);
    return s;
}

TEST other_data_has_other_hashes(void) {
    static const int32_t order[] = {0, 1, 2, 3}, turned[] = {3, 1, 0, 2};
    const split s = split_of(order, -1, 0, 0, 0), moved = split_of(turned, -1, 0, 0, 0);
    const split later = split_of(order, 2, 1, 0, 0), more = split_of(order, 3, 0, 1, 0),
                odd = split_of(order, 1, 0, 0, 1);
    ASSERT(moved.hash != s.hash && moved.values == s.values && moved.labels == s.labels);
    ASSERT(later.hash == s.hash && later.values != s.values && later.labels == s.labels);
    ASSERT(more.hash == s.hash && more.values != s.values && more.labels == s.labels);
    ASSERT(odd.hash == s.hash && odd.values == s.values && odd.labels != s.labels);
    PASS();
}

TEST parts_go_by_name(void) {
    dataset d = make_data(137, NULL, NULL);
    char error[256];
    split s;
    ASSERT(split_make(&s, &d, &(split_way){SPLIT_TWO, 0, 0, SPLIT_FOLD_COUNT, SPLIT_SEED}, error));
    int32_t *test = split_positions(&s, "test"), *valid = split_positions(&s, "valid");
    int32_t *all = split_positions(&s, "all");
    ASSERT(same_positions(test, "one.137.test"));
    ASSERT(valid != NULL && arrlenu(valid) == 0);
    ASSERT_EQ_FMT((size_t)137, arrlenu(all), "%zu");
    for (int32_t i = 0; i < 137; i++) ASSERT_EQ_FMT(i, all[i], "%d");
    ASSERT(split_positions(&s, "Test") == NULL);
    arrfree(test), arrfree(valid), arrfree(all);
    split_free(&s);
    dataset_free(&d);
    PASS();
}

TEST buckets_keep_the_order(void) {
    static const int32_t key[] = {9, -1, 2, 9, -1, 2, INT32_MAX, 0}, first[] = {0, 2, 3, 5, 6, 7, 8},
                         member[] = {0, 3, 1, 2, 5, 4, 6, 7};
    buckets b = buckets_fill(key, 8);
    ASSERT_EQ_FMT((size_t)6, b.n, "%zu");
    ASSERT(check_same("first", b.first, first, sizeof first));
    ASSERT(check_same("member", b.member, member, sizeof member));
    ASSERT_EQ_FMT(2, buckets_largest(&b), "%d");
    buckets_free(&b);
    b = buckets_fill(key, 0);
    ASSERT(b.n == 0 && b.first[0] == 0 && buckets_largest(&b) == 0);
    buckets_free(&b);
    PASS();
}

SUITE(split_suite) {
    RUN_TEST(two_draws_are_scikit_learns);
    RUN_TEST(one_draw_has_no_validation_set);
    RUN_TEST(folds_are_scikit_learns);
    RUN_TEST(the_last_fifth_is_for_validation);
    RUN_TEST(groups_stay_together);
    RUN_TEST(each_class_has_its_share);
    RUN_TEST(a_stratified_draw_follows_its_seed);
    RUN_TEST(rare_classes_are_drawn_in_order);
    RUN_TEST(folds_of_any_data_cover_it);
    RUN_TEST(all_have_their_turn);
    RUN_TEST(parts_may_be_given);
    RUN_TEST(what_cannot_be_split_is_refused);
    RUN_TEST(the_hash_is_of_names_and_parts);
    RUN_TEST(other_data_has_other_hashes);
    RUN_TEST(parts_go_by_name);
    RUN_TEST(buckets_keep_the_order);
}
