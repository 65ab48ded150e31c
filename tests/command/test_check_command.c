/* mtan check in a process of its own, on data whose every number can be read off the lines that the test writes. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command_line.h"
#include "../../tools/mtan/command/commands.h"

#define HEADER "record,time,channel,value\n"

/* A text with one blank where it has any number of blanks and ends of lines, as check folds and aligns; free it. */
static char *flat(const char *text) {
    char *copy = malloc(strlen(text) + 1), *to = copy;
    for (; *text; text++)
        if (!strchr(" \n", *text)) *to++ = *text;
        else if (to == copy || to[-1] != ' ') *to++ = ' ';
    *to = 0;
    return copy;
}

/* Is every text of the list, up to a null, in the output? */
static int says_all(const char *const *words) {
    char *text = command_text("out.txt"), *all = flat(text);
    int good = 1;
    for (; *words; words++)
        if (!strstr(all, *words)) good = 0, printf("  BAD no \"%s\"\n", *words);
    if (!good) printf("%s", text);
    free(text), free(all);
    return good;
}

static int is(double got, double expected) {
    const int good = fabs(got - expected) <= 1e-12 * fabs(expected);
    if (!good) printf("  BAD %.17g, expected %.17g\n", got, expected);
    return good;
}

/* Another line of a file. */
static void line(const char *file, const char *format, ...) {
    char text[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    command_append(file, text);
}

/* 50 records of two classes: channel a at 0, 1, 2 and 4, its value the record's number and the time; b at 0 alone, always 7. */
static void write_plain(void) {
    static const double times[] = {0, 1, 2, 4};
    command_write("plain.csv", HEADER);
    command_write("plain-labels.csv", "record,label\n");
    for (int r = 0; r < 50; r++) {
        for (int k = 0; k < 4; k++) line("plain.csv", "r%d,%g,a,%g\n", r, times[k], r + times[k]);
        line("plain.csv", "r%d,0,b,7\n", r);
        line("plain-labels.csv", r % 5 ? "r%d,no\n" : "r%d,yes\n", r);
    }
}

TEST good_data_has_no_problem(void) {
    static const char *const said[] = {
        "no problem found records 50 (own) without an observation 0, with a single time 0 (0.0 %) labelled 50 class no "
        "40 80.0 % class yes 10 20.0 % ",
        "a 50 200 100.0 0 26 53 ",
        "b 50 50 25.0 7 7 7 constant ",
        "times 200 time stamps from 0 to 4 ",
        "per record least 4, quarter 4, median 4, three quarters 4, most 4 ",
        "gaps median 1, largest 2 in record r0 ",
        "sparsity 37.5 % of time stamps x channels hold nothing ",
        "duplicates none ",
        "leakage none found ",
        "suggested mtan train own --model enc --batch 4 --enc-hidden 32 --ref-points 8 --data ",
        "/plain.csv --labels ",
        "--out run ",
        " parameters, 32 hidden, 8 reference points, batch 4 ",
        "time scale 4 ",
        " per epoch: 8 x ",
        " MB for training, 0.0 MB for the data ",
        NULL};
    write_plain();
    ASSERT_EQ_FMT(DONE, command_run("check @/plain.csv --labels @/plain-labels.csv --quiet --threads 1"), "%d");
    ASSERT(says_all(said) && command_bytes("err.txt") == 0);
    PASS();
}

TEST programs_get_one_object(void) {
    char *text;
    write_plain();
    ASSERT_EQ_FMT(DONE, command_run("check @/plain.csv --labels @/plain-labels.csv --json --threads 2"), "%d");
    ASSERT(command_is_json("out.txt"));
    text = command_text("out.txt");
    ASSERT(is(command_json(text, "{", "problem_count"), 0) && is(command_json(text, "{", "records"), 50));
    ASSERT(is(command_json(text, "{", "observations"), 250) && is(command_json(text, "{", "time_stamps"), 200));
    ASSERT(is(command_json(text, "{", "sparsity"), 0.375) && is(command_json(text, "{", "gap_largest"), 2));
    ASSERT(is(command_json(text, "\"name\": \"yes\"", "labels"), 10));
    ASSERT(is(command_json(text, "\"name\": \"a\"", "max"), 53) &&
           is(command_json(text, "\"name\": \"b\"", "share"), 0.25));
    ASSERT(strstr(text, "\"constant\": true") && strstr(text, "\"rough\": false") && strstr(text, "\"kind\": \"own\""));
    ASSERT(is(command_json(text, "\"split\"", "train") + command_json(text, "\"split\"", "valid") +
                  command_json(text, "\"split\"", "test"),
              50));
    ASSERT(is(command_json(text, "\"cost\"", "threads"), 2) && command_json(text, "\"cost\"", "step_seconds") > 0);
    ASSERT(is(command_json(text, "\"cost\"", "epoch_seconds"), 8 * command_json(text, "\"cost\"", "step_seconds")));
    free(text);
    PASS();
}

/* All records have the same observations. Whatever the split, those outside of training have them too. */
TEST equal_records_leak(void) {
    static const char *const said[] = {
        "2 problems labels: 10 records have the observations of another, but not its label leakage: ",
        " validation or test records have the same observations as a training record (r",
        " duplicates 19 records have the observations of an earlier one (r1) ",
        " equal records, 0 of 0 groups (0 records) on both sides ", NULL};
    char *text, with[64];
    command_write("same.csv", HEADER);
    command_write("same-labels.csv", "record,label\n");
    for (int r = 0; r < 20; r++) {
        line("same.csv", "r%d,0,a,1\nr%d,3,a,2\n", r, r);
        line("same-labels.csv", r % 2 ? "r%d,no\n" : "r%d,yes\n", r);
    }
    ASSERT_EQ_FMT(BAD_RESULT, command_run("check @/same.csv --labels @/same-labels.csv"), "%d");
    ASSERT(says_all(said));
    ASSERT_EQ_FMT(BAD_RESULT, command_run("check @/same.csv --labels @/same-labels.csv --json"), "%d");
    ASSERT(command_is_json("out.txt"));
    text = command_text("out.txt");
    snprintf(with, sizeof with, "leakage: %.0f validation or test", command_json(text, "\"leakage\"", "equal_records"));
    ASSERT(strstr(text, with));
    ASSERT(is(command_json(text, "{", "duplicates"), 19) &&
           is(command_json(text, "{", "contradicting_duplicates"), 10));
    free(text);
    PASS();
}

/* One pair of twins: the words are of one. They may be on one side of the split, so there may be one problem or two. */
TEST one_contradiction_is_one(void) {
    static const char *const said[] = {" labels: 1 record has the observations of another, but not its label ",
                                       " duplicates 1 record has the observations of an earlier one (x0) ",
                                       " without an observation 0, with a single time 2 (3.8 %) ", NULL};
    write_plain();
    command_append("plain.csv", "w0,1,b,3\nx0,1,b,3\n");
    command_append("plain-labels.csv", "w0,no\nx0,yes\n");
    ASSERT_EQ_FMT(BAD_RESULT, command_run("check @/plain.csv --labels @/plain-labels.csv"), "%d");
    ASSERT(says_all(said));
    PASS();
}

/* ---- data with faults ---- */

TEST bad_rows_are_listed_and_left_out(void) {
    static const char *const said[] = {"26 problems ",
                                       "plain.csv:252: ", " and 6 more What follows is of the rows that can be used.",
                                       "records 50 (own) ", NULL};
    write_plain();
    for (int i = 0; i < 26; i++) line("plain.csv", "r%d,9,a,much\n", i);
    ASSERT_EQ_FMT(BAD_RESULT, command_run("check @/plain.csv --labels @/plain-labels.csv"), "%d");
    ASSERT(says_all(said));
    ASSERT_EQ_FMT(BAD_RESULT, command_run("check @/plain.csv --labels @/plain-labels.csv --json"), "%d");
    ASSERT(command_is_json("out.txt") && command_says("out.txt", "plain.csv:277: ")); /* programs get them all */
    PASS();
}

TEST data_without_observations_say_so(void) {
    command_write("e.csv", "record,time,channel,value\n");
    ASSERT_EQ_FMT(BAD_RESULT, command_run("check @/e.csv --labels @/labels.csv"), "%d");
    ASSERT(command_says("err.txt", "e.csv: there are no observations"));
    command_append("e.csv", "r0,T1.5,heat,1\nr1,T2.5,heat,1\n");
    ASSERT_EQ_FMT(BAD_RESULT, command_run("check @/e.csv --labels @/labels.csv"), "%d");
    ASSERT(command_says("err.txt", "e.csv: no row can be read: see the problems"));
    PASS();
}

/* Bad rows are listed, even where nothing else of the labelled records is left. */
TEST bad_rows_of_the_labelled_are_listed(void) {
    static const char *const said[] = {"3 problems ", "e.csv:2: ", "e.csv:3: ", " no labelled record (\"a\" ", NULL};
    command_write("e.csv", HEADER "a,oops,x,1\nb,oops,x,2\nc,1,x,3\nd,2,x,4\n");
    command_write("l.csv", "record,label\na,yes\nb,no\n");
    ASSERT_EQ_FMT(BAD_RESULT, command_run("check @/e.csv --labels @/l.csv"), "%d");
    ASSERT(says_all(said));
    PASS();
}

/* Of two labels of one time the first counts; a time that is none, and a prediction for nobody, are rows at fault. */
TEST bad_labels_of_times_are_listed(void) {
    static const char *const said[] = {"3 problems ",
                                       "l.csv:4: ",
                                       " at one time has label \"no\" here and \"yes\" in line 2 ",
                                       "l.csv:5: ",
                                       " labelled 1, 1 labels of times ",
                                       NULL};
    static const char *const cuts[] = {"m.csv:3: ", NULL};
    command_write("e.csv", HEADER "a,0,x,1\na,1,x,2\nb,2,x,3\n");
    command_write("l.csv", "record,time,label\na,1,yes\na,1,yes\na,1,no\nb,soon,no\n");
    ASSERT_EQ_FMT(BAD_RESULT, command_run("check @/e.csv --labels @/l.csv --model per-time"), "%d");
    ASSERT(says_all(said));
    command_write("m.csv", "subject_id,prediction_time,boolean_value\na,1,true\na,never,false\n");
    ASSERT_EQ_FMT(BAD_RESULT, command_run("check @/e.csv --labels @/m.csv"), "%d");
    ASSERT(says_all(cuts));
    PASS();
}

/* Each row that contradicts another is listed, the first counts; and a file without an observation has no sparsity. */
TEST labels_that_contradict_are_listed(void) {
    static const char *const said[] = {"3 problems ",
                                       "l.csv:3: record \"a\" has \"x\" 1 here and 0 elsewhere",
                                       "l.csv:5: record \"b\" has \"y\" 0 here and 1 elsewhere",
                                       " times none: there is no observation ",
                                       " sparsity none: there is no observation ",
                                       NULL};
    command_write("e.csv", HEADER);
    command_write("l.csv", "record,x,y\na,0,\na,1,1\nb,,1\nb,1,0\n");
    ASSERT_EQ_FMT(BAD_RESULT, command_run("check @/e.csv --labels @/l.csv"), "%d");
    ASSERT(says_all(said));
    PASS();
}

/* More bad rows than are listed do not hide why the rest cannot be read. */
TEST the_last_word_is_what_ends_the_reading(void) {
    command_write("bad.csv", HEADER);
    for (int i = 0; i < 30; i++) line("bad.csv", "r%d,9,a,much\n", i);
    ASSERT(command_refused("check @/bad.csv --labels @/none.csv", "none.csv: No such file"));
    PASS();
}

TEST what_training_refuses_is_a_problem(void) {
    static const char *const few[] = {"1 problem the records cannot be split for training: there are too few ",
                                      "records 2 (own) ", "gaps none: no record has two times ",
                                      "suggested mtan train own --model interp ", NULL};
    static const char *const refused[] = {"`mtan train` would refuse these data", NULL};
    command_write("few.csv", HEADER "r0,1,a,2\nr1,1,a,3\n");
    ASSERT_EQ_FMT(BAD_RESULT, command_run("check @/few.csv"), "%d");
    ASSERT(says_all(few));
    write_plain(); /* a classifier without labels */
    ASSERT_EQ_FMT(BAD_RESULT, command_run("check @/plain.csv --model enc"), "%d");
    ASSERT(says_all(refused));
    ASSERT_EQ_FMT(BAD_RESULT, command_run("check @/plain.csv --model enc --json"), "%d");
    ASSERT(command_is_json("out.txt") && command_says("out.txt", "would refuse these data"));
    PASS();
}

/* The loader proper, which training uses, refuses what row by row is good. */
TEST what_the_loader_refuses_is_a_problem(void) {
    static const char *const said[] = {"1 problem", NULL};
    command_write("l.csv", "record,label\nr0,yes\n");
    command_write("e.csv", HEADER "r0,1,a,3e38\nr0,1,a,3e38\n"); /* whose mean is beyond float */
    ASSERT_EQ_FMT(BAD_RESULT, command_run("check @/e.csv --labels @/l.csv"), "%d");
    ASSERT(says_all(said));
    PASS();
}

TEST labels_of_other_records_are_refused(void) {
    const char *words = "no labelled record (\"pr0\" is the first) has an observation";
    static const char *const said[] = {"2 problems ", " no labelled record (\"pr0\" is the first) has ", NULL};
    command_write("other.csv", "record,label\npr0,up\npr1,down\npr2,up\n");
    ASSERT(command_refused("check @/events.csv --labels @/other.csv", words));
    ASSERT(command_refused("train own --model enc --data @/events.csv --labels @/other.csv --out @/run", words));
    ASSERT(command_refused("cv own --model enc --data @/events.csv --labels @/other.csv --out @/run", words));
    command_append("events.csv", "r0,later,heat,1\n"); /* with other faults it is one of them */
    ASSERT_EQ_FMT(BAD_RESULT, command_run("check @/events.csv --labels @/other.csv"), "%d");
    ASSERT(says_all(said));
    PASS();
}

TEST what_cannot_be_looked_at_is_refused(void) {
    mkdir(command_path("empty"), 0777);
    ASSERT(command_refused("check -", "check reads its data twice: give it a file"));
    ASSERT(command_refused("check @/none.csv", "none.csv: No such file"));
    ASSERT(command_refused("check @/empty", "empty: no data set known by its files; --kind says which it is"));
    ASSERT(command_refused("check @/events.csv --kind toy", "--kind toy: must be physionet, activity, mimic3 or own"));
    ASSERT(command_refused("check @/events.csv --kind x", "--kind x: must be physionet, activity, mimic3 or own"));
    ASSERT(command_refused("check @/events.csv --origin x", "--origin x: must be record, zero or auto"));
    ASSERT(command_refused("check @/events.csv --model x", "--model x"));
    ASSERT(command_refused("check @/empty --kind physionet", "empty"));
    ASSERT(command_refused("check @/empty --kind physionet --model x", "physionet-x"));
    ASSERT(command_refused("check @/events.csv --labels @/none.csv", "none.csv: No such file"));
    PASS();
}

/* ---- kinds of data ---- */

/* Labels of times, dates, a code for what is missing, and a channel of the second record alone. */
TEST times_and_codes_are_described(void) {
    static const char *const said[] = {
        "labelled 30, 60 labels of times ",
        "-1 x 30 ",
        "time stamps from 0 to 2 (hours) ",
        "suggested mtan train own --model per-time --batch 4 --enc-hidden 32 --origin record --data ",
        " the record's own times, ",
        NULL};
    command_write("d.csv", HEADER);
    command_write("d-labels.csv", "record,time,label\n");
    for (int r = 0; r < 30; r++) {
        line("d.csv", "r%d,2024-01-01T00:00,a,-1\nr%d,2024-01-01T02:00,a,%d\n", r, r, 60 + r);
        line("d-labels.csv", "r%d,2024-01-01T00:00,up\nr%d,2024-01-01T01:00,down\n", r, r);
    }
    ASSERT_EQ_FMT(DONE, command_run("check @/d.csv --labels @/d-labels.csv --origin record"), "%d");
    ASSERT(says_all(said));
    ASSERT_EQ_FMT(DONE, command_run("check @/d.csv --labels @/d-labels.csv --json"), "%d");
    ASSERT(command_is_json("out.txt") && command_says("out.txt", "\"code\": -1, \"codes\": 30"));
    ASSERT(command_says("out.txt", "\"time_unit\": \"hours\""));
    PASS();
}

TEST persons_on_both_sides_leak(void) {
    char *text, words[128];
    command_activity("activity");
    ASSERT_EQ_FMT(BAD_RESULT, command_run("check @/activity --json"), "%d");
    ASSERT(command_is_json("out.txt"));
    text = command_text("out.txt");
    ASSERT(strstr(text, "\"kind\": \"activity\"") && is(command_json(text, "{", "records"), 30));
    ASSERT(is(command_json(text, "\"leakage\"", "groups"), 5));
    snprintf(words, sizeof words,
             "leakage: %.0f of 5 groups (persons, cut series) are on both sides of the split, with %.0f validation",
             command_json(text, "\"leakage\"", "shared_groups"), command_json(text, "\"leakage\"", "shared_records"));
    ASSERT(strstr(text, words) && strstr(text, "\"suggested\": \"mtan train activity-enc --data "));
    free(text);
    ASSERT_EQ_FMT(BAD_RESULT, command_run("check @/activity/ConfLongDemo_JSI.txt --kind activity --model gru-d"), "%d");
    ASSERT(command_says("out.txt", "records        30 (activity)\n") && command_says("out.txt", "unused-7"));
    ASSERT(command_says("out.txt", "of 5 groups (") && command_says("out.txt", "mtan train activity-gru-d "));
    PASS();
}

TEST channels_that_nobody_has_are_named(void) {
    static const char *const said[] = {
        "records 10 (physionet) ",
        "1 problem `mtan train` would refuse these data note: 10 of 10 records have no outcome ",
        " HR 10 20 66.7 60 69.5 79 K 0 0 0.0 never observed ", NULL};
    char name[64];
    mkdir(command_path("set-a"), 0777);
    for (int r = 0; r < 10; r++) {
        snprintf(name, sizeof name, "set-a/%d.txt", 100 + r);
        command_write(name, "Time,Parameter,Value\n00:00,Age,60\n");
        line(name, "01:00,HR,%d\n02:00,HR,%d\n", 60 + r, 70 + r);
    }
    ASSERT_EQ_FMT(BAD_RESULT, command_run("check @/set-a"), "%d");
    ASSERT(says_all(said));
    PASS();
}

TEST long_lists_are_cut(void) {
    static const char *const said[] = {" and 5 more classes ", "and 10 more (--json lists all) ", NULL};
    command_write("wide.csv", HEADER);
    command_write("wide-labels.csv", "record,label\n");
    for (int r = 0; r < 70; r++) {
        line("wide.csv", "r%d,1,c%d,%d\n", r, r, r);
        line("wide-labels.csv", "r%d,k%d\n", r, r % 25);
    }
    ASSERT_EQ_FMT(DONE, command_run("check @/wide.csv --labels @/wide-labels.csv"), "%d");
    ASSERT(says_all(said));
    PASS();
}

/* ---- cost ---- */

static void write_long(int times) {
    FILE *events = fopen(command_path("long.csv"), "w");
    command_write("long-labels.csv", "record,time,label\n");
    if (!events) perror("mtan: build"), exit(2);
    fputs(HEADER, events);
    for (int r = 0; r < 8; r++) {
        for (int t = 0; t < times; t++) fprintf(events, "r%d,%d,a,%d\n", r, t, r + t % 5);
        line("long-labels.csv", "r%d,1,x\nr%d,2,y\n", r, r);
    }
    fclose(events);
}

/* A class per time has as many reference points as the record has times: their product is too much for any machine. */
TEST what_is_too_large_is_not_run(void) {
    write_long(12000);
    ASSERT_EQ_FMT(DONE, command_run("check @/long.csv --labels @/long-labels.csv"), "%d");
    ASSERT(command_says("out.txt", "time           not measured: it would take too much memory\n"));
    ASSERT_EQ_FMT(DONE, command_run("check @/long.csv --labels @/long-labels.csv --json"), "%d");
    ASSERT(command_is_json("out.txt") && command_says("out.txt", "\"step_seconds\": null, \"epoch_seconds\": null"));
    PASS();
}

/* Records from `first` on, four times a day apart: long after time 0, as stars observed in one season are. */
static void write_late(double first) {
    command_write("late.csv", HEADER);
    command_write("late-labels.csv", "record,label\n");
    for (int r = 0; r < 60; r++) {
        for (int k = 0; k < 4; k++) line("late.csv", "r%d,%g,a,%d\n", r, first + k, r + k * (r % 3));
        line("late-labels.csv", "r%d,%s\n", r, r == 0 ? "odd" : r % 20 ? "usual" : "other");
    }
    line("late.csv", "r9,%g,once,5\n", first);
}

TEST disappointments_are_told_before(void) {
    static const char *const words[] = {
        "no problem found consider: ",
        "classes: 2 of 3 have fewer than 5 labels (odd: 1, other: 2)",
        "usual has 95.0 % of the labels",
        "channels: 1 of 2 are observed in hardly any record (once: 1)",
        "50 % of the reference points lie before the first observation and 0 % after the last: --origin record",
        NULL};
    write_late(3);
    ASSERT_EQ_FMT(DONE, command_run("check @/late.csv --labels @/late-labels.csv"), "%d");
    ASSERT(says_all(words));
    ASSERT_EQ_FMT(DONE, command_run("check @/late.csv --labels @/late-labels.csv --origin record --json"), "%d");
    char *text = command_text("out.txt");
    ASSERT(command_is_json("out.txt") && strstr(text, "\"flags\": [\"classes: ") &&
           !strstr(text, "times: in a typical"));
    free(text);
    PASS();
}

TEST labels_that_are_numbers_are_told(void) {
    write_late(0);
    command_write("late-labels.csv", "record,label\n");
    for (int r = 0; r < 60; r++) line("late-labels.csv", "r%d,%d\n", r, r % 25);
    (void)command_run("check @/late.csv --labels @/late-labels.csv");
    ASSERT(says_all((const char *const[]){"labels: 25 different numbers look like a quantity", NULL}));
    command_append("late-labels.csv", "r60,0.5\n"); /* no code has a fraction */
    (void)command_run("check @/late.csv --labels @/late-labels.csv");
    ASSERT(says_all((const char *const[]){"labels: a number to predict; if they are classes, --task classes", NULL}));
    (void)command_run("check @/late.csv --labels @/late-labels.csv --task classes");
    ASSERT(says_all((const char *const[]){"class 0.5 1 1.6 % ", " --task classes --data ", NULL}));
    ASSERT(command_refused("check @/late.csv --labels @/late-labels.csv --task numbers",
                           "--task numbers: must be classes, number or labels"));
    PASS();
}

TEST check_says_how_far_one_gets_without_a_model(void) {
    static const char *const words[] = {"without a model majority regression AUC 0.5000 ", " accuracy 0.", NULL};
    char *text;
    ASSERT_EQ_FMT(DONE, command_run("check @/events.csv --labels @/labels.csv"), "%d");
    ASSERT(says_all(words));
    text = command_text("out.txt");
    ASSERT(!strstr(text, "too few to tell"));
    free(text);
    command_write("some-labels.csv", "record,label\n");
    for (int r = 0; r < 40; r++) line("some-labels.csv", "r%d,%s\n", r, r % 2 ? "up" : "down");
    ASSERT_EQ_FMT(DONE, command_run("check @/events.csv --labels @/some-labels.csv"), "%d");
    ASSERT(says_all((const char *const[]){"8 records are too few to tell which is better.", NULL}));
    ASSERT_EQ_FMT(DONE, command_run("check @/events.csv --model interp"), "%d");
    ASSERT(says_all((const char *const[]){"without a model mean last lines squared error, held out 0.", NULL}));
    ASSERT_EQ_FMT(DONE, command_run("check @/events.csv --labels @/labels.csv --json"), "%d");
    text = command_text("out.txt");
    ASSERT(command_json(text, "\"baselines\"", "regression") > 0.9);
    free(text);
    PASS();
}

SUITE(check_command_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(good_data_has_no_problem);
    RUN_TEST(programs_get_one_object);
    RUN_TEST(equal_records_leak);
    RUN_TEST(one_contradiction_is_one);
    RUN_TEST(bad_rows_are_listed_and_left_out);
    RUN_TEST(data_without_observations_say_so);
    RUN_TEST(bad_rows_of_the_labelled_are_listed);
    RUN_TEST(bad_labels_of_times_are_listed);
    RUN_TEST(labels_that_contradict_are_listed);
    RUN_TEST(the_last_word_is_what_ends_the_reading);
    RUN_TEST(what_training_refuses_is_a_problem);
    RUN_TEST(what_the_loader_refuses_is_a_problem);
    RUN_TEST(labels_of_other_records_are_refused);
    RUN_TEST(what_cannot_be_looked_at_is_refused);
    RUN_TEST(times_and_codes_are_described);
    RUN_TEST(persons_on_both_sides_leak);
    RUN_TEST(channels_that_nobody_has_are_named);
    RUN_TEST(long_lists_are_cut);
    RUN_TEST(what_is_too_large_is_not_run);
    RUN_TEST(disappointments_are_told_before);
    RUN_TEST(labels_that_are_numbers_are_told);
    RUN_TEST(check_says_how_far_one_gets_without_a_model);
}
