/* Own data in memory: columns give the data set of a file with the same rows, to the last bit. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/data/own_columns.h"
#include "command_line.h"

static own_options plain;
static dataset file, memory;

static void open_sets(void *unused) {
    command_open(unused);
    memset(&plain, 0, sizeof plain), memset(&file, 0, sizeof file), memset(&memory, 0, sizeof memory);
}

static void close_sets(void *unused) {
    dataset_free(&file), dataset_free(&memory);
    arrfree(plain.channels), arrfree(plain.classes);
    command_close(unused);
}

static int same_texts(char **a, char **b) {
    if (arrlen(a) != arrlen(b)) return 0;
    for (size_t i = 0; i < arrlenu(a); i++)
        if (strcmp(a[i], b[i]) != 0) return 0;
    return 1;
}

#define SAME_ARRAY(member)                                                                                             \
    (arrlen(a->member) == arrlen(b->member) &&                                                                         \
     (arrlen(a->member) == 0 || memcmp(a->member, b->member, arrlenu(a->member) * sizeof *a->member) == 0))

/* By their members: in double an event has bytes between them. */
static int same_events(const dataset *a, const dataset *b) {
    if (arrlen(a->events) != arrlen(b->events)) return 0;
    for (size_t i = 0; i < arrlenu(a->events); i++) {
        const mtan_event *x = &a->events[i], *y = &b->events[i];
        if (memcmp(&x->time, &y->time, sizeof x->time) != 0 || x->channel != y->channel ||
            memcmp(&x->value, &y->value, sizeof x->value) != 0)
            return 0;
    }
    return 1;
}

static int same_sets(const dataset *a, const dataset *b) {
    for (size_t i = 0; i < arrlenu(a->records) && i < arrlenu(b->records); i++) {
        const dataset_record *x = &a->records[i], *y = &b->records[i];
        if (strcmp(dataset_name(a, i), dataset_name(b, i)) != 0 || x->event0 != y->event0 ||
            x->n_events != y->n_events || x->n_times != y->n_times || x->label0 != y->label0 ||
            x->n_labels != y->n_labels)
            return printf("  record %zu differs\n", i), 0;
    }
    return arrlen(a->records) == arrlen(b->records) && same_events(a, b) && SAME_ARRAY(labels) && SAME_ARRAY(numbers) &&
           SAME_ARRAY(label_times) && same_texts(a->channels, b->channels) && same_texts(a->classes, b->classes) &&
           a->statics == b->statics && strcmp(a->unit, b->unit) == 0;
}

/* The file, and the columns beside it, read with the same options. */
static int agree(const char *events, const char *labels, const own_columns *c) {
    command_write("e.csv", events);
    char *path = tool_text(command_path("e.csv"));
    if (labels) command_write("l.csv", labels);
    const int good = own_load(&file, path, labels ? command_path("l.csv") : NULL, &plain);
    free(path);
    if (!good) return printf("  %s\n", file.error), 0;
    if (!own_take_columns(&memory, c, &plain)) return printf("  %s\n", memory.error), 0;
    return same_sets(&file, &memory);
}

static const int64_t offset[] = {0, 4, 7};
static const int32_t channel[] = {2, 0, 2, 2, 0, 0, 2};
static const double values[] = {80, 3.25, 0.1, 0.2, NAN, -1e30, 7}, times[] = {1.5, 0.25, 1.5, 1.5, 0, 3, -2};

static own_columns two_records(void) {
    own_columns c;
    memset(&c, 0, sizeof c);
    c.n_records = 2, c.records = "b\0a";
    c.n_channels = 3, c.channels = "pH\0never\0HR";
    c.offset = offset, c.time = times, c.channel = channel, c.value = values;
    return c;
}

#define ROWS                                                                                                           \
    "record,time,channel,value\nb,1.5,HR,80\nb,0.25,pH,3.25\nb,1.5,HR,0.1\nb,1.5,HR,0.2\na,0,pH,\na,3,pH,-1e30\n"      \
    "a,-2,HR,7\n"

/* Channels that occur are sorted, repeats averaged in the order of rows, rows without a value left out. */
TEST numbers_agree_with_a_file(void) {
    own_columns c = two_records();
    ASSERT(agree(ROWS, NULL, &c));
    ASSERT_STR_EQ("HR", memory.channels[0]);
    ASSERT_EQ_FMT((size_t)2, arrlenu(memory.channels), "%zu");
    ASSERT(strstr(memory.notes[0], "events: 1 row without a value left out"));
    dataset_free(&file), dataset_free(&memory);
    plain.origin = OWN_ORIGIN_RECORD;
    ASSERT(agree(ROWS, NULL, &c));
    PASS();
}

TEST dates_agree_with_a_file(void) {
    /* 2024-05-31T23:59:00Z and so on, in ticks of 100 ns */
    static const int64_t dates[] = {17171999400000000, 17171998800000000, 17171999400000000, 17171999400000000, 0,
                                    17171999402500000, 17171999400000001};
    own_columns c = two_records();
    c.time = NULL, c.date = dates;
    ASSERT(agree("record,time,channel,value\nb,2024-05-31T23:59:00,HR,80\nb,2024-05-31T23:58:00Z,pH,3.25\n"
                 "b,2024-06-01T01:59:00+02:00,HR,0.1\nb,2024-05-31 23:59,HR,0.2\na,1970-01-01,pH,\n"
                 "a,2024-05-31T23:59:00.25,pH,-1e30\na,2024-05-31T23:59:00.0000001,HR,7\n",
                 NULL, &c));
    ASSERT_STR_EQ("hours", memory.unit);
    PASS();
}

TEST labels_agree_with_a_file(void) {
    static const int32_t label[] = {1, 0}, at_times[] = {1, 0, MTAN_UNLABELED};
    static const int64_t label_offset[] = {0, 2, 3};
    static const double label_time[] = {2, 1, 5}, number[] = {0.1, NAN};
    own_columns c = two_records();
    c.n_classes = 2, c.classes = "well\0sick", c.label = label;
    ASSERT(agree(ROWS, "record,label\nb,sick\na,well\n", &c));
    ASSERT_STR_EQ("sick", memory.classes[0]);
    dataset_free(&file), dataset_free(&memory);
    c.label = at_times, c.label_offset = label_offset, c.label_time = label_time;
    ASSERT(agree(ROWS, "record,time,label\nb,2,sick\nb,1,well\na,5,\n", &c));
    dataset_free(&file), dataset_free(&memory);
    c.label = NULL, c.label_offset = NULL, c.label_time = NULL, c.number = number, plain.task = OWN_TASK_NUMBER;
    ASSERT(agree(ROWS, "record,label\nb,0.1\na,\n", &c));
    PASS();
}

/* MEDS' rows without a time. */
TEST timeless_rows_agree_with_a_file(void) {
    static const double some[] = {1.5, NAN, 1.5, 1.5, 0, 3, NAN};
    own_columns c = two_records();
    c.time = some;
    ASSERT(agree("subject_id,time,code,numeric_value\nb,1.5,HR,80\nb,,pH,3.25\nb,1.5,HR,0.1\nb,1.5,HR,0.2\na,0,pH,\n"
                 "a,3,pH,-1e30\na,,HR,7\n",
                 NULL, &c));
    PASS();
}

TEST a_model_keeps_its_channels(void) {
    own_columns c = two_records();
    arrput(plain.channels, (char[]){"HR"}), arrput(plain.channels, (char[]){"BP"});
    ASSERT(!own_take_columns(&memory, &c, &plain));
    ASSERT_STR_EQ("events:2: the model has no channel \"pH\" (skip_unknown leaves such rows out)", memory.error);
    plain.skip_unknown = 1;
    ASSERT(agree(ROWS, NULL, &c));
    ASSERT_EQ_FMT((size_t)2, arrlenu(memory.channels), "%zu");
    PASS();
}

/* Static channels come first, in their own order. */
TEST statics_come_first(void) {
    own_columns c = two_records();
    c.statics = 1;
    ASSERT(own_take_columns(&memory, &c, &plain));
    ASSERT_EQ_FMT(1, (int)memory.statics, "%d");
    ASSERT_STR_EQ("pH", memory.channels[0]);
    PASS();
}

static int refused(const own_columns *c, const char *words) {
    if (own_take_columns(&memory, c, &plain)) return printf("  taken, not: %s\n", words), 0;
    if (strcmp(memory.error, words) == 0) return 1;
    return printf("  BAD    %s\n  wanted %s\n", memory.error, words), 0;
}

TEST nonsense_is_refused(void) {
    static const int32_t wild[] = {2, 0, 2, 3, 0, 0, 2}, label[] = {0, 2};
    static const int64_t falling[] = {0, 5, 4}, label_offset[] = {0, 2, 2};
    static const double never[] = {1.5, INFINITY, 1.5, 1.5, 0, 3, 1}, huge[] = {1, 2, 3, 4, 5, 1e39, 7},
                        twice[] = {1, 1}, missing[] = {1, NAN};
    own_columns c = two_records();
    c.channel = wild;
    ASSERT(refused(&c, "events:4: channel 3: there are 3"));
    c = two_records(), c.time = never;
    ASSERT(refused(&c, "events:2: the time is infinite"));
    c = two_records(), c.value = huge;
    ASSERT(refused(&c, "events:6: 1e+39 is no value: a number that a float can hold"));
    c = two_records(), c.offset = falling;
    ASSERT(refused(&c, "events: the places of the records do not ascend"));
    c = two_records(), c.n_records = 0;
    ASSERT(refused(&c, "events: no record"));
    c = two_records(), c.statics = 4;
    ASSERT(refused(&c, "events: more statics than channels"));
    c = two_records(), c.number = never;
    ASSERT(refused(&c, "labels:2: inf is no number that a float can hold"));
    c = two_records(), c.n_classes = 2, c.classes = "x\0y", c.label = label;
    ASSERT(refused(&c, "labels:2: class 2: there are 2"));
    c.label_offset = label_offset, c.label_time = twice;
    ASSERT(refused(&c, "labels:2: a second label of one time"));
    c.label_time = missing;
    ASSERT(refused(&c, "labels:2: the label of a time has none"));
    c = two_records(), c.n_classes = 2, c.classes = "x\0y", c.label = channel + 1;
    arrput(plain.classes, (char[]){"y"});
    ASSERT(refused(&c, "labels:1: the model has no class \"x\""));
    PASS();
}

SUITE(columns_suite) {
    GREATEST_SET_SETUP_CB(open_sets, NULL);
    GREATEST_SET_TEARDOWN_CB(close_sets, NULL);
    RUN_TEST(numbers_agree_with_a_file);
    RUN_TEST(dates_agree_with_a_file);
    RUN_TEST(labels_agree_with_a_file);
    RUN_TEST(timeless_rows_agree_with_a_file);
    RUN_TEST(a_model_keeps_its_channels);
    RUN_TEST(statics_come_first);
    RUN_TEST(nonsense_is_refused);
}
