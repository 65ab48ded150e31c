/* People's own files through the command: what comes in as a CSV of observations, and what `mtan predict`, `mtan stream` and
 * `mtan train` make of it. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_line.h"
#include "../../tools/mtan/command/commands.h"

#define SMALL                                                                                                          \
    "--enc-hidden 8 --embed 8 --ref-points 6 --head-hidden 6 --batch 16 --lr 0.01 --epochs 1 --quiet --threads 1 "
#define HEADER "record,time,channel,value\n"

/* Records of two classes whose times are dates, with a label for every record. */
static void write_dates(void) {
    char line[96];
    command_append("dates.csv", HEADER);
    command_append("dates-labels.csv", "record,label\n");
    for (int r = 0; r < 20; r++) {
        for (int k = 0; k < 4; k++) {
            snprintf(line, sizeof line, "r%d,2024-01-%02dT0%d:30,heat,%d\n", r, 1 + r, 2 * k, r % 2 ? 6 : 3);
            command_append("dates.csv", line);
        }
        snprintf(line, sizeof line, "r%d,%s\n", r, r % 2 ? "up" : "down");
        command_append("dates-labels.csv", line);
    }
}

/* The first record has no value, so nothing is known of the file's times yet. */
TEST a_first_record_without_a_value_has_no_unit(void) {
    write_dates();
    ASSERT_EQ_FMT(
        DONE, command_run("train own --model enc --data @/dates.csv --labels @/dates-labels.csv --out @/run " SMALL),
        "%d");
    command_append("new.csv", HEADER "a,2024-01-01T00:00,heat,\nb,2024-01-01T00:00,heat,3\n");
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/new.csv"), "%d");
    ASSERT(command_says("out.txt", "record,p0,p1\na,") && command_says("out.txt", "\nb,"));
    command_append("numbers.csv", HEADER "a,0,heat,\nb,0,heat,3\n");
    ASSERT_EQ_FMT(BAD_USE, command_run("predict @/run/best.safetensors --data @/numbers.csv"), "%d");
    ASSERT(command_says("err.txt", "the data's times are numbers without a unit, the model's hours"));
    command_append("nothing.csv", HEADER "r0,2024-01-01T00:00,heat,\n");
    ASSERT_EQ_FMT(
        DONE, command_run("eval @/run/best.safetensors --data @/nothing.csv --labels @/dates-labels.csv --split all"),
        "%d");
    PASS();
}

/* Nothing goes to standard output before there is a result; no record at all is a result. */
TEST a_failure_prints_no_header(void) {
    ASSERT_EQ_FMT(
        DONE, command_run("train own --model enc --data @/events.csv --labels @/labels.csv --out @/run " SMALL), "%d");
    ASSERT_EQ_FMT(BAD_USE, command_run("predict @/run/best.safetensors --data @/nowhere.csv"), "%d");
    ASSERT_EQ_FMT((size_t)0, command_bytes("out.txt"), "%zu");
    command_append("dates.csv", HEADER "a,2024-01-01,heat,3\n");
    ASSERT_EQ_FMT(BAD_USE, command_run("predict @/run/best.safetensors --data @/dates.csv"), "%d");
    ASSERT_EQ_FMT((size_t)0, command_bytes("out.txt"), "%zu");
    ASSERT_EQ_FMT(BAD_USE, command_run("stream @/run/best.safetensors --data @/run"), "%d");
    ASSERT_EQ_FMT((size_t)0, command_bytes("out.txt"), "%zu");
    command_append("none.csv", HEADER);
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/none.csv"), "%d");
    ASSERT_EQ_FMT(strlen("record,p0,p1\n"), command_bytes("out.txt"), "%zu");
    ASSERT_EQ_FMT(DONE, command_run("stream @/run/best.safetensors --data @/none.csv"), "%d");
    ASSERT_EQ_FMT(strlen("record,p0,p1\n"), command_bytes("out.txt"), "%zu");
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/none.csv --json"), "%d");
    ASSERT_EQ_FMT((size_t)0, command_bytes("out.txt"), "%zu");
    PASS();
}

SUITE(own_command_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(a_first_record_without_a_value_has_no_unit);
    RUN_TEST(a_failure_prints_no_header);
}
