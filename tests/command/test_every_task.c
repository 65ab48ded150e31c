/* What is asked about models of classes can be asked about those of a number and of several labels: `mtan explain`, --by and `mtan
 * compare`, each checked against what `mtan predict` and `mtan eval` say. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_line.h"
#include "../../tools/mtan/command/commands.h"

#define SMALL                                                                                                          \
    " --enc-hidden 8 --embed 8 --ref-points 6 --head-hidden 6 --batch 8 --lr 0.01 --epochs 4 --threads 1 --quiet "
#define NUMBERS " --data @/events.csv --labels @/numbers.csv "
#define SEVERAL " --data @/events.csv --labels @/several.csv "

/* A number, or two labels, that follow from the class of command_line.h's records, and a side that does not. */
static void write_labels(void) {
    char line[64];
    command_write("numbers.csv", "record,label,side\n");
    command_write("several.csv", "record,high,third,side\n");
    command_write("marks.csv", "record,high,third\n");
    for (int r = 0; r < COMMAND_RECORDS; r++) {
        const char *side = r % 3 ? "left" : "right";
        snprintf(line, sizeof line, "r%d,%.2f,%s\n", r, 100 + (r % 2 ? 60 : 30) + 0.37 * (r * 7 % 11), side);
        command_append("numbers.csv", line);
        snprintf(line, sizeof line, "r%d,%d,%d,%s\n", r, r % 2, r * 7 % 3 == 0, side);
        command_append("several.csv", line);
        snprintf(line, sizeof line, "r%d,%d,%d\n", r, r % 2, r * 7 % 3 == 0);
        command_append("marks.csv", line);
    }
}

/* One record x of three observations, one of them left out, up to a time. */
static void write_record(int without, double last) {
    static const struct {
        double time, value;
        const char *channel;
    } rows[] = {{1, 4.5, "heat"}, {2.5, 6.25, "pulse"}, {6, 3.5, "heat"}};
    char line[64];
    command_write("x.csv", "record,time,channel,value\n");
    for (int i = 0; i < 3; i++) {
        if (i == without || rows[i].time > last) continue;
        snprintf(line, sizeof line, "x,%g,%s,%g\n", rows[i].time, rows[i].channel, rows[i].value);
        command_append("x.csv", line);
    }
}

/* Field `field` of a line, the header being line 0. */
static double field_of(const char *text, int line, int field) {
    for (; line > 0 && text; line--) text = (text = strchr(text, '\n')) ? text + 1 : NULL;
    for (; field > 0 && text; field--) text = (text = strchr(text, ',')) ? text + 1 : NULL;
    return text ? strtod(text, NULL) : NAN;
}

static double answer(const char *asked, int line, int field) {
    char *text;
    double x = NAN;
    if (command_run(asked) != DONE) return NAN;
    text = command_text("out.txt");
    x = field_of(text, line, field);
    free(text);
    return x;
}

static int near(double a, double b) {
    const int good = fabs(a - b) <= 2e-4 * (1 + fabs(b));
    if (!good) printf("  BAD %g, not %g\n", a, b);
    return good;
}

static double log_odds(double p) {
    return log(p / (1 - p));
}

#define PREDICT "predict @/a/best.safetensors --data @/x.csv --quiet"

TEST a_number_is_explained(void) {
    double all;
    char *text;
    write_labels();
    ASSERT_EQ_FMT(DONE, command_run("train own --model enc --out @/a --interval 0.8" NUMBERS SMALL), "%d");
    write_record(-1, 9);
    all = answer(PREDICT, 1, 1);
    ASSERT_EQ_FMT(DONE, command_run("explain @/a/best.safetensors --data @/x.csv"), "%d");
    text = command_text("out.txt");
    ASSERT(strncmp(text, "record,time,channel,value,predicted,change\nx,1,heat,4.5,", 55) == 0);
    for (int i = 0; i < 3; i++) {
        write_record(i, 9);
        ASSERT(near(field_of(text, i + 1, 4), all));
        ASSERT(near(field_of(text, i + 1, 5), all - answer(PREDICT, 1, 1)));
    }
    free(text);
    write_record(-1, 2.5);
    const double early = answer(PREDICT, 1, 1);
    write_record(-1, 9);
    ASSERT(near(answer("explain @/a/best.safetensors --data @/x.csv --over-time", 2, 2), early));
    ASSERT(command_says("out.txt", "record,time,predicted,low,high\nx,1,"));
    ASSERT_EQ_FMT(DONE, command_run("explain @/a/best.safetensors --channels --bootstrap 20 --split all" NUMBERS),
                  "%d");
    ASSERT(command_says("out.txt", "channel,drop_r2,low,high\n"));
    ASSERT_EQ_FMT(DONE, command_run("explain @/a/best.safetensors --data @/x.csv --json"), "%d");
    ASSERT(command_says("out.txt", "\"value\": 4.5, \"predicted\": "));
    PASS();
}

TEST labels_are_explained(void) {
    char *text, *before;
    write_labels();
    ASSERT_EQ_FMT(DONE, command_run("train own --model enc --out @/a --data @/events.csv --labels @/marks.csv" SMALL),
                  "%d");
    write_record(-1, 9);
    ASSERT_EQ_FMT(DONE, command_run(PREDICT), "%d");
    before = command_text("out.txt");
    ASSERT_EQ_FMT(DONE, command_run("explain @/a/best.safetensors --data @/x.csv"), "%d");
    text = command_text("out.txt");
    ASSERT(strncmp(text, "record,time,channel,value,label,log_odds,change\nx,1,heat,4.5,high,", 65) == 0);
    write_record(1, 9);
    ASSERT_EQ_FMT(DONE, command_run(PREDICT), "%d");
    char *without = command_text("out.txt");
    for (int label = 0; label < 2; label++) {
        const double all = log_odds(field_of(before, 1, 1 + label));
        ASSERT(near(field_of(text, 3 + label, 5), all)); /* of the second observation */
        ASSERT(near(field_of(text, 3 + label, 6), all - log_odds(field_of(without, 1, 1 + label))));
    }
    free(text), free(before), free(without);
    ASSERT_EQ_FMT(DONE, command_run("explain @/a/best.safetensors --channels --bootstrap 20 --split all" SEVERAL),
                  "%d");
    ASSERT(command_says("out.txt", "channel,drop_auc,low,high\n"));
    PASS();
}

/* The squared errors of the groups add up to those of all. */
TEST groups_of_numbers_make_up_the_whole(void) {
    char *text;
    write_labels();
    ASSERT_EQ_FMT(DONE, command_run("train own --model enc --out @/a" NUMBERS SMALL), "%d");
    ASSERT_EQ_FMT(DONE, command_run("eval @/a/best.safetensors --by side --split all --json --bootstrap 50" NUMBERS),
                  "%d");
    ASSERT(command_is_json("out.txt"));
    text = command_text("out.txt");
    const double left = command_json(text, "\"name\": \"left\"", "rmse"),
                 right = command_json(text, "\"name\": \"right\"", "rmse"), all = command_json(text, "{", "rmse");
    ASSERT(near((40 * left * left + 20 * right * right) / 60, all * all) && fabs(left - right) > 1e-6);
    ASSERT(command_json(text, "\"name\": \"left\"", "rmse_low") < left);
    free(text);
    ASSERT_EQ_FMT(DONE, command_run("eval @/a/best.safetensors --by side --bootstrap 0" NUMBERS), "%d");
    ASSERT(command_says("out.txt", "RMSE ") && command_says("out.txt", "left "));
    ASSERT_EQ_FMT(DONE, command_run("report @/a --by side --bootstrap 20 -o @/page.html" NUMBERS), "%d");
    ASSERT(command_says("page.html", "R2 by side"));
    PASS();
}

/* A group's metrics are those of a file of its records alone. */
TEST groups_of_labels_are_measured(void) {
    char *text, line[64];
    write_labels();
    ASSERT_EQ_FMT(DONE, command_run("train own --model enc --out @/a --data @/events.csv --labels @/marks.csv" SMALL),
                  "%d");
    ASSERT_EQ_FMT(DONE, command_run("eval @/a/best.safetensors --by side --split all --json --bootstrap 0" SEVERAL),
                  "%d");
    text = command_text("out.txt");
    const double auc = command_json(text, "\"name\": \"left\"", "auc"),
                 loss = command_json(text, "\"name\": \"left\"", "log_loss");
    free(text);
    command_write("left.csv", "record,high,third\n");
    for (int r = 0; r < COMMAND_RECORDS; r++) {
        snprintf(line, sizeof line, "r%d,%d,%d\n", r, r % 2, r * 7 % 3 == 0);
        if (r % 3) command_append("left.csv", line);
    }
    ASSERT_EQ_FMT(DONE,
                  command_run("eval @/a/best.safetensors --split all --json --bootstrap 0 --data @/events.csv --labels "
                              "@/left.csv"),
                  "%d");
    text = command_text("out.txt");
    ASSERT(near(auc, command_json(text, "{", "auc")) && near(loss, command_json(text, "{", "log_loss")));
    free(text);
    PASS();
}

/* A number of `mtan compare --json`, which has no blanks. */
static double compared(const char *text, const char *metric, const char *key) {
    char words[32];
    snprintf(words, sizeof words, "\"name\":\"%s\"", metric);
    if (!(text = strstr(text, words))) return NAN;
    snprintf(words, sizeof words, "\"%s\":", key);
    return (text = strstr(text, words)) ? strtod(text + strlen(words), NULL) : NAN;
}

/* Each side has its own metric, and a model is as good as itself. */
TEST models_of_numbers_are_compared(void) {
    char *text;
    write_labels();
    ASSERT_EQ_FMT(DONE, command_run("train own --model enc --out @/a" NUMBERS SMALL), "%d");
    ASSERT_EQ_FMT(DONE, command_run("train own --model enc --seed 1 --out @/b" NUMBERS SMALL), "%d");
    ASSERT_EQ_FMT(DONE, command_run("eval @/b/best.safetensors --json --bootstrap 0" NUMBERS), "%d");
    text = command_text("out.txt");
    const double rmse = command_json(text, "{", "rmse");
    free(text);
    ASSERT_EQ_FMT(BAD_RESULT, command_run("compare @/a/best.safetensors @/b/best.safetensors --json" NUMBERS), "%d");
    ASSERT(command_is_json("out.txt"));
    text = command_text("out.txt");
    ASSERT(near(compared(text, "rmse", "b"), rmse));
    ASSERT(compared(text, "rmse", "low") <= compared(text, "rmse", "difference"));
    free(text);
    ASSERT_EQ_FMT(DONE, command_run("compare @/a/best.safetensors @/a/best.safetensors" NUMBERS), "%d");
    ASSERT(command_says("out.txt", "+0 to +0") && command_says("out.txt", "rmse "));
    ASSERT_EQ_FMT(DONE, command_run("train own --model enc --out @/c --data @/events.csv --labels @/marks.csv" SMALL),
                  "%d");
    ASSERT_EQ_FMT(DONE, command_run("compare @/c/best.safetensors @/c/best.safetensors" SEVERAL), "%d");
    ASSERT(command_says("out.txt", "auc "));
    ASSERT(command_refused("compare @/a/best.safetensors @/c/best.safetensors --split all --data @/events.csv",
                           "not have the same labels"));
    PASS();
}

SUITE(every_task_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(a_number_is_explained);
    RUN_TEST(labels_are_explained);
    RUN_TEST(groups_of_numbers_make_up_the_whole);
    RUN_TEST(groups_of_labels_are_measured);
    RUN_TEST(models_of_numbers_are_compared);
}
