/* What the tools need of growing arrays and hash maps: stb_ds has it, and so has the stand-in where there is no stb_ds. */
#define typeof __typeof__ /* see tools/data/mimic3.c */
#include <greatest.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/data/array.h"

enum { MANY = 3000, KEYS = 200 };

TEST an_array_grows_and_shrinks(void) {
    int *a = NULL;
    ASSERT_EQ_FMT((size_t)0, arrlenu(a), "%zu");
    for (int i = 0; i < MANY; i++) arrput(a, i);
    ASSERT_EQ(MANY, arrlen(a));
    for (int i = 0; i < MANY; i++) ASSERT_EQ_FMT(i, a[i], "%d");
    ASSERT_EQ(MANY - 1, arrlast(a));
    ASSERT_EQ(MANY - 1, arrpop(a));
    ASSERT_EQ(MANY - 2, arrlast(a));
    arrdel(a, 0);
    ASSERT_EQ(MANY - 2, arrlen(a));
    ASSERT_EQ(1, a[0]);
    ASSERT_EQ(MANY - 2, arrlast(a));
    arrdeln(a, 1, 3);
    ASSERT_EQ(MANY - 5, arrlen(a));
    ASSERT(a[0] == 1 && a[1] == 5 && arrlast(a) == MANY - 2);
    arrdeln(a, 1, 0), a[1] = 2;
    arrsetlen(a, 2);
    ASSERT_EQ(2, arrlen(a));
    ASSERT_EQ(2, arrlast(a));
    arrfree(a);
    ASSERT_EQ(NULL, a);
    PASS();
}

TEST an_array_has_the_room_asked_for(void) {
    struct three {
        char c[3];
    } *a = NULL;
    double *none = NULL, *some = NULL;
    memcpy(arraddnptr(a, 2), "abcdef", 6);
    memcpy(arraddnptr(a, 1), "ghi", 3);
    ASSERT_EQ(3, arrlen(a));
    ASSERT_MEM_EQ("abcdefghi", a, 9);
    arrsetcap(a, 1000);
    ASSERT_EQ(3, arrlen(a));
    ASSERT_MEM_EQ("abcdefghi", a, 9);
    arrsetlen(none, 0);
    ASSERT_EQ(0, arrlen(none));
    arrsetcap(some, 1);
    ASSERT(some);
    ASSERT_EQ(0, arrlen(some));
    arrsetlen(some, 5);
    some[4] = 1;
    ASSERT_EQ(5, arrlen(some));
    arrfree(a), arrfree(none), arrfree(some);
    PASS();
}

TEST numbers_are_found_by_their_key(void) {
    struct {
        int32_t key;
        ptrdiff_t value;
    } *map = NULL;
    ptrdiff_t at;
    ASSERT_EQ(-1, hmgeti(map, 5));
    for (int32_t i = 0; i < MANY; i++) hmput(map, i * 7919, 2 * i);
    for (int32_t i = 0; i < MANY; i++) {
        at = hmgeti(map, i * 7919);
        ASSERT(at >= 0);
        ASSERT_EQ(i * 7919, map[at].key);
        ASSERT_EQ(2 * i, map[at].value);
    }
    ASSERT_EQ(-1, hmgeti(map, 1));
    hmput(map, 7919, 99);
    at = hmgeti(map, 7919);
    ASSERT_EQ(99, map[at].value);
    hmfree(map);
    ASSERT_EQ(NULL, map);
    PASS();
}

typedef struct named {
    char *key;
    int *value;
} named;

static const char *text_of(char text[8], size_t key) {
    snprintf(text, 8, "k%zu", key);
    return text;
}

/* A plain table of the same, and whatever the map has has to be there. */
static int same_as(named **map, int *const value[KEYS]) {
    char text[8];
    ptrdiff_t n = 0;
    for (size_t k = 0; k < KEYS; k++) {
        const ptrdiff_t at = shgeti(*map, text_of(text, k));
        n += value[k] != NULL;
        if ((at >= 0) != (value[k] != NULL) || shget(*map, text) != value[k]) return 0;
        if (at >= 0 && (strcmp((*map)[at].key, text) != 0 || (*map)[at].value != value[k])) return 0;
    }
    return n == shlen(*map);
}

TEST texts_come_and_go_as_in_a_table(void) {
    static int things[KEYS];
    int *value[KEYS] = {NULL};
    named *map = NULL;
    uint32_t random = 1;
    char text[8];
    sh_new_strdup(map);
    for (int step = 0; step < MANY; step++) {
        random = random * 1664525u + 1013904223u;
        const size_t k = (random >> 16) % KEYS, thing = (random >> 8) % KEYS;
        const int gone = (random >> 28) < (step < MANY / 2 ? 5 : 10); /* first it grows, then it shrinks */
        if (gone) {
            ASSERT_EQ(value[k] != NULL, shdel(map, text_of(text, k)));
            value[k] = NULL;
        } else {
            shput(map, text_of(text, k), &things[thing]);
            value[k] = &things[thing];
        }
        if (step % 100 == 0) ASSERT(same_as(&map, value));
    }
    ASSERT(same_as(&map, value));
    shfree(map);
    PASS();
}

TEST texts_may_stay_with_the_caller(void) {
    struct {
        char *key;
        int value;
    } *map = NULL;
    char mine[] = "mine";
    ptrdiff_t at;
    ASSERT_EQ(-1, shgeti(map, "mine"));
    shput(map, mine, 3);
    ASSERT_EQ(1, shlen(map));
    ASSERT_EQ(mine, map[0].key);
    ASSERT_EQ(0, shgeti(map, "mine"));
    shput(map, "other", 4);
    at = shgeti(map, "mine");
    ASSERT_EQ(3, map[at].value);
    at = shgeti(map, "other");
    ASSERT_EQ(4, map[at].value);
    shfree(map);
    PASS();
}

SUITE(array_suite) {
    RUN_TEST(an_array_grows_and_shrinks);
    RUN_TEST(an_array_has_the_room_asked_for);
    RUN_TEST(numbers_are_found_by_their_key);
    RUN_TEST(texts_come_and_go_as_in_a_table);
    RUN_TEST(texts_may_stay_with_the_caller);
}
