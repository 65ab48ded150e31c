/* mtan explain against mtan predict: an observation's change is what leaving its row out of the file does, the course over time what
 * a shorter file gives. */
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_line.h"
#include "../../tools/mtan/command/commands.h"

#define HEADER "record,time,channel,value\n"
#define SMALL "--enc-hidden 8 --embed 8 --ref-points 6 --batch 16 --lr 0.01 --epochs 4 --threads 1 --quiet "
#define TRAIN "train own --data @/events.csv --labels @/labels.csv --out @/run --head-hidden 6 " SMALL

static const char *const rows[] = {"x,1,heat,4\n", "x,2.5,pulse,7.25\n", "x,2.5,heat,3\n", "x,6,pulse,2\n"};
enum { ROWS = 4 };

/* x.csv: the rows but one (-1: all), and none of a time after `last`. */
static void write_record(int without, double last) {
    command_write("x.csv", HEADER);
    for (int i = 0; i < ROWS; i++)
        if (i != without && strtod(rows[i] + 2, NULL) <= last) command_append("x.csv", rows[i]);
}

/* The log-odds of "up" that predict gives x.csv; NaN: it fails. */
static double predicted(void) {
    double p = NAN;
    if (command_run("predict @/run/best.safetensors --data @/x.csv --json") == DONE) {
        char *text = command_text("out.txt");
        p = command_json(text, "\"record\"", "p_up");
        free(text);
    }
    return log(p / (1 - p));
}

/* Number `column` of the line that begins with these words. */
static double field_of(const char *text, const char *start, int column) {
    const char *at = strstr(text, start);
    for (; at && column > 0; column--) at = strchr(at, ','), at = at ? at + 1 : NULL;
    return at ? strtod(at, NULL) : NAN;
}

static int near(double got, double expected) {
    const int good = fabs(got - expected) <= 2e-5; /* float, and a probability of nine digits */
    if (!good) printf("  BAD %.9g, expected %.9g\n", got, expected);
    return good;
}

TEST a_change_is_what_leaving_out_does(void) {
    static const char *const starts[ROWS] = {"x,1,heat,4,", "x,2.5,pulse,7.25,", "x,2.5,heat,3,", "x,6,pulse,2,"};
    double all;
    char *text;
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--model enc"), "%d");
    write_record(-1, 9);
    all = predicted();
    ASSERT_EQ_FMT(DONE, command_run("explain @/run/best.safetensors --data @/x.csv"), "%d");
    text = command_text("out.txt");
    ASSERT(strncmp(text, "record,time,channel,value,class,log_odds,change\n", 48) == 0);
    for (int i = 0; i < ROWS; i++) {
        ASSERT(near(field_of(text, starts[i], 5), all));
        write_record(i, 9);
        ASSERT(near(field_of(text, starts[i], 6), all - predicted()));
    }
    free(text);
    ASSERT(command_run("explain @/run/best.safetensors --data @/x.csv --json") == DONE &&
           command_says("out.txt", "{\"record\": \"x\", \"time\": 1, \"channel\": \"heat\", \"value\": "));
    PASS();
}

TEST a_course_ends_with_the_prediction(const char *model) {
    static const struct {
        const char *start;
        double time;
    } steps[] = {{"x,1,", 1}, {"x,2.5,", 2.5}, {"x,6,", 6}};
    char line[512], *text;
    snprintf(line, sizeof line, "%s--model %s", TRAIN, model);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    write_record(-1, 9);
    ASSERT_EQ_FMT(DONE, command_run("explain @/run/best.safetensors --data @/x.csv --over-time"), "%d");
    text = command_text("out.txt");
    ASSERT(strncmp(text, "record,time,p_down,p_up,predicted\nx,1,", 38) == 0);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        const double p = field_of(text, steps[i].start, 3);
        write_record(-1, steps[i].time);
        ASSERT(near(log(p / (1 - p)), predicted()));
    }
    free(text);
    PASS();
}

/* "noise" says nothing of the class, "level" all. */
static void write_levels(void) {
    char line[96];
    command_write("levels.csv", HEADER);
    for (int r = 0; r < COMMAND_RECORDS; r++)
        for (int k = 0; k < 5; k++) {
            snprintf(line, sizeof line, "r%d,%d,%s,%g\n", r, k, k % 2 ? "level" : "noise",
                     k % 2 ? (r % 2 ? 3.0 : -3.0) + 0.01 * r : (r * 7 + k * 3) % 11);
            command_append("levels.csv", line);
        }
}

TEST the_channel_that_decides_comes_first(void) {
    char *text;
    write_levels();
    ASSERT_EQ_FMT(DONE,
                  command_run("train own --model enc --data @/levels.csv --labels @/labels.csv --out @/run "
                              "--head-hidden 6 --enc-hidden 8 --embed 8 --ref-points 6 --batch 8 --lr 0.02 --epochs 30 "
                              "--threads 1 --quiet"),
                  "%d");
    ASSERT_EQ_FMT(
        DONE, command_run("explain @/run/best.safetensors --data @/levels.csv --labels @/labels.csv --channels"), "%d");
    ASSERT(command_says("out.txt", "channel,drop_auc,low,high\nlevel,0."));
    ASSERT_EQ_FMT(
        DONE,
        command_run(
            "explain @/run/best.safetensors --data @/levels.csv --labels @/labels.csv --channels --json --split all"),
        "%d");
    ASSERT(command_is_json("out.txt"));
    text = command_text("out.txt");
    ASSERT(command_json(text, "\"name\": \"level\"", "low") > 0.2 &&
           fabs(command_json(text, "\"name\": \"noise\"", "drop")) < 0.1);
    ASSERT(command_json(text, "\"name\": \"level\"", "drop") <= command_json(text, "\"name\": \"level\"", "high"));
    free(text);
    PASS();
}

enum { CHANNELS = 14 };

/* The first channel decides between three classes, the others are the same for all records. */
static void write_kinds(void) {
    command_write("kinds.csv", HEADER), command_write("kinds-labels.csv", "record,label\n");
    for (int i = 0; i < 60; i++) {
        char line[64];
        for (int c = 0; c < CHANNELS; c++) {
            snprintf(line, sizeof line, "k%d,%d,c%d,%d\n", i, c % 3, c, c == 0 ? 3 * (i % 3) : c);
            command_append("kinds.csv", line);
        }
        snprintf(line, sizeof line, "k%d,%c\n", i, 'p' + i % 3);
        command_append("kinds-labels.csv", line);
    }
}

/* Of more than two classes the one that is predicted is explained, and channels are measured by accuracy; the report tells the
 * most important of them. */
TEST more_than_two_classes_are_explained(void) {
    static const char data[] = "--data @/kinds.csv --labels @/kinds-labels.csv --split all --bootstrap 10";
    char line[256];
    write_kinds();
    ASSERT_EQ_FMT(DONE,
                  command_run("train own --model enc --data @/kinds.csv --labels @/kinds-labels.csv --out @/run "
                              "--head-hidden 6 --enc-hidden 8 --embed 8 --ref-points 6 --batch 8 --lr 0.02 --epochs 30 "
                              "--threads 1 --quiet"),
                  "%d");
    snprintf(line, sizeof line, "explain @/run/best.safetensors %s --channels", data);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    ASSERT(command_says("out.txt", "channel,drop_accuracy,low,high\nc0,0."));
    ASSERT(command_says("out.txt", "\nc1,0,0,0\nc10,0,0,0\n")); /* what is equal comes in the order of the names */
    snprintf(line, sizeof line, "explain @/run/best.safetensors %s", data);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    ASSERT(command_says("out.txt", "k0,0,c0,0,p,") && command_says("out.txt", "k1,0,c0,3,q,"));
    snprintf(line, sizeof line, "report @/run %s -o @/page.html", data);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    ASSERT(command_says("page.html", "c0") && command_says("page.html", "accuracy"));
    PASS();
}

/* A record that is asked without each of its observations costs the square of their number. */
static int write_long_records(int observations) {
    FILE *f = fopen(command_path("long.csv"), "w");
    if (!f) return 0;
    fputs(HEADER, f);
    for (int i = 0; i < 2 * observations; i++)
        fprintf(f, "r%d,%d,%s,%d\n", i / observations, i % observations, i % 2 ? "heat" : "pulse", i % 7);
    return fclose(f) == 0;
}

TEST a_report_asks_long_records_less(void) {
    static const char report[] = "report @/run --data @/long.csv --labels @/labels.csv --split all --bootstrap 0 "
                                 "-o @/page.html --quiet";
    char *text;
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--model enc"), "%d");
    ASSERT(write_long_records(20));
    ASSERT_EQ_FMT(DONE, command_run(report), "%d");
    text = command_text("page.html");
    ASSERT(strstr(text, "record r1") && !strstr(text, "too many to leave out each"));
    free(text);
    ASSERT(write_long_records(2001));
    ASSERT_EQ_FMT(DONE, command_run(report), "%d");
    ASSERT(command_says("page.html", "record r1") && command_says("page.html", "too many to leave out each"));
    PASS();
}

TEST what_cannot_be_explained_is_refused(void) {
    ASSERT_EQ_FMT(DONE, command_run("train own --model interp --data @/events.csv --out @/curves " SMALL), "%d");
    ASSERT(command_refused("explain @/curves/best.safetensors --data @/events.csv",
                           "explain is for models that predict labels"));
    ASSERT_EQ_FMT(
        DONE, command_run("train own --model per-time --data @/events.csv --labels @/times.csv --out @/times " SMALL),
        "%d");
    ASSERT(command_refused("explain @/times/best.safetensors --data @/events.csv --labels @/times.csv",
                           "a label for every time"));
    ASSERT_EQ_FMT(
        DONE,
        command_run(
            "explain @/times/best.safetensors --data @/events.csv --labels @/times.csv --channels --bootstrap 0"),
        "%d");
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--model enc"), "%d");
    ASSERT(
        command_refused("explain @/run/best.safetensors --data @/events.csv --channels", "has a label to measure by"));
    PASS();
}

SUITE(explain_command_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(a_change_is_what_leaving_out_does);
    greatest_set_test_suffix("of a stream");
    RUN_TESTp(a_course_ends_with_the_prediction, "enc");
    greatest_set_test_suffix("without a stream");
    RUN_TESTp(a_course_ends_with_the_prediction, "gru-d");
    RUN_TEST(the_channel_that_decides_comes_first);
    RUN_TEST(more_than_two_classes_are_explained);
    RUN_TEST(a_report_asks_long_records_less);
    RUN_TEST(what_cannot_be_explained_is_refused);
}
