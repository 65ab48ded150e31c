/* Metrics by a column of the labels: what the column says, what the groups measure, and what --by refuses. */
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_line.h"
#include "../../tools/data/array.h"
#include "../../tools/mtan/command/commands.h"
#include "../../tools/mtan/measure/subgroups.h"

#define DATA "--data @/events.csv --labels @/by.csv --split all "

TEST a_column_is_read_by_record(void) {
    record_column c;
    char error[512] = "";
    command_write("by.csv", "label,Hospital,record\nup,north,a\ndown,,b\nup,\"south, old\",c\nup,east,a\n");
    ASSERT(record_column_read(&c, command_path("by.csv"), "hospital", error));
    ASSERT_STR_EQ("north", record_column_of(&c, "a")); /* the first row counts */
    ASSERT_STR_EQ("south, old", record_column_of(&c, "c"));
    ASSERT(!record_column_of(&c, "b") && !record_column_of(&c, "z"));
    record_column_free(&c);
    ASSERT(!record_column_read(&c, command_path("by.csv"), "ward", error) && strstr(error, "no column \"ward\""));
    ASSERT(!record_column_read(&c, command_path("nowhere.csv"), "ward", error) && strstr(error, "nowhere.csv"));
    command_write("by.csv", "subject_id,prediction_time,boolean_value,site\np,2024-01-02,1,x\n");
    ASSERT(record_column_read(&c, command_path("by.csv"), "site", error));
    ASSERT_STR_EQ("x", record_column_of(&c, "p@2024-01-02"));
    record_column_free(&c);
    PASS();
}

/* Labels with a column in which every third record has nothing. */
static void write_groups(void) {
    char line[64];
    command_write("by.csv", "record,label,sex,id\n");
    for (int r = 0; r < COMMAND_RECORDS; r++) {
        snprintf(line, sizeof line, "r%d,%s,%s,%d\n", r, r % 2 ? "up" : "down",
                 r % 3 == 0   ? ""
                 : r % 3 == 1 ? "f"
                              : "m",
                 r);
        command_append("by.csv", line);
    }
}

static int train(void) {
    write_groups();
    return command_run(
               "train own --model enc --data @/events.csv --labels @/by.csv --out @/run --enc-hidden 8 --embed 8 "
               "--ref-points 6 --head-hidden 6 --batch 16 --lr 0.01 --epochs 2 --threads 1 --quiet") == DONE;
}

/* The metric of a group is that of a file with its records alone. */
TEST groups_are_measured_alone(void) {
    char *text, line[64];
    double accuracy, loss, low;
    ASSERT(train());
    ASSERT_EQ_FMT(DONE, command_run("eval @/run/best.safetensors " DATA "--by Sex --json"), "%d");
    ASSERT(command_is_json("out.txt"));
    text = command_text("out.txt");
    ASSERT(command_json(text, "\"name\": \"f\"", "rows") == 20 && command_json(text, "\"name\": \"m\"", "rows") == 20);
    accuracy = command_json(text, "\"name\": \"f\", \"rows\"", "accuracy"),
    loss = command_json(text, "\"name\": \"f\", \"rows\"", "log_loss");
    low = command_json(text, "\"name\": \"f\", \"rows\"", "log_loss_low");
    ASSERT(isfinite(command_json(text, "\"name\": \"f\", \"rows\"", "calibration_error")));
    ASSERT(isnan(command_json(text, "\"name\": \"f\", \"rows\"", "calibration_error_low")));
    free(text);
    command_write("f.csv", "record,label\n");
    for (int r = 1; r < COMMAND_RECORDS; r += 3)
        snprintf(line, sizeof line, "r%d,%s\n", r, r % 2 ? "up" : "down"), command_append("f.csv", line);
    ASSERT_EQ_FMT(
        DONE, command_run("eval @/run/best.safetensors --data @/events.csv --labels @/f.csv --split all --json"), "%d");
    text = command_text("out.txt");
    ASSERT(fabs(command_json(text, "\"model\"", "accuracy") - accuracy) < 1e-12);
    ASSERT(fabs(command_json(text, "\"model\"", "log_loss") - loss) < 1e-9 && low < loss);
    free(text);
    PASS();
}

TEST groups_are_shown(void) {
    ASSERT(train());
    ASSERT_EQ_FMT(DONE, command_run("eval @/run/best.safetensors " DATA "--by Sex"), "%d");
    ASSERT(command_says("err.txt", "by.csv: columns ignored: \"id\"\n")); /* what it groups by it reads */
    ASSERT(command_says("out.txt", "\nSex                rows  AUC ") &&
           command_says("out.txt", "\nf                    20  "));
    ASSERT_EQ_FMT(DONE, command_run("report @/run " DATA "--by sex -o @/page.html --quiet"), "%d");
    ASSERT(command_says("page.html", "AUC by sex"));
    PASS();
}

TEST what_is_no_column_of_groups_is_refused(void) {
    ASSERT(train());
    ASSERT(command_refused("eval @/run/best.safetensors " DATA "--by ward --quiet", "no column \"ward\""));
    ASSERT(command_refused("eval @/run/best.safetensors " DATA "--by id --quiet", "different values are no groups"));
    ASSERT(command_refused("eval @/run/best.safetensors --data @/events.csv --by sex --quiet",
                           "no record of this part has a label"));
    PASS();
}

SUITE(subgroups_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(a_column_is_read_by_record);
    RUN_TEST(groups_are_measured_alone);
    RUN_TEST(groups_are_shown);
    RUN_TEST(what_is_no_column_of_groups_is_refused);
}
