/* People's own files through the command: what comes in as a CSV of observations, and what `mtan predict`, `mtan stream` and
 * `mtan train` make of it. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"
#include "command_line.h"
#include "small.h"
#include "../../tools/mtan/command/commands.h"
#include "../../tools/mtan/model/bundle.h"

#define SMALL_CURVES                                                                                                   \
    "--enc-hidden 8 --embed 8 --ref-points 6 --batch 16 --lr 0.01 --epochs 1 --quiet --threads 1 " COMMAND_STEADY
#define SMALL SMALL_CURVES " --head-hidden 6 "
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
    ASSERT(command_says("out.txt", "record,p_down,p_up,predicted\na,") && command_says("out.txt", "\nb,"));
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
    ASSERT_EQ_FMT(strlen("record,p_down,p_up,predicted\n"), command_bytes("out.txt"), "%zu");
    ASSERT_EQ_FMT(DONE, command_run("stream @/run/best.safetensors --data @/none.csv"), "%d");
    ASSERT_EQ_FMT(strlen("record,p_down,p_up,predicted\n"), command_bytes("out.txt"), "%zu");
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/none.csv --json"), "%d");
    ASSERT_EQ_FMT((size_t)0, command_bytes("out.txt"), "%zu");
    PASS();
}

/* The likeliest class of a row, by the names of the columns of its table; NULL: the table is not of that form. */
static const char *likeliest(char *table) {
    static const char head[] = "record,p_=1,\"p_a, \"\"b\"\"\",p_x,predicted\n";
    static const char *const printed[] = {"'=1", "\"a, \"\"b\"\"\"", "x"};
    double p[3];
    int read = -1, best = 0;
    if (strncmp(table, head, strlen(head)) != 0) return NULL;
    if (sscanf(table + strlen(head), "new,%lf,%lf,%lf,%n", &p[0], &p[1], &p[2], &read) != 3 || read < 0) return NULL;
    for (int k = 1; k < 3; k++)
        if (p[k] > p[best]) best = k;
    table += strlen(head) + (size_t)read;
    return strncmp(table, printed[best], strlen(printed[best])) == 0 && table[strlen(printed[best])] == '\n'
               ? printed[best]
               : NULL;
}

/* Names as people have them: a column and a cell of CSV, a key and a text of JSON. */
TEST classes_are_called_by_their_names(void) {
    static const char *const names[] = {"\"a, \"\"b\"\"\"", "=1", "x"};
    char line[64], *table;
    command_append("odd.csv", "record,label\n");
    for (int r = 0; r < 30; r++) {
        snprintf(line, sizeof line, "r%d,%s\n", r, names[r % 3]);
        command_append("odd.csv", line);
    }
    ASSERT_EQ_FMT(DONE, command_run("train own --model enc --data @/events.csv --labels @/odd.csv --out @/run " SMALL),
                  "%d");
    command_append("new.csv", HEADER "new,1,heat,3\n");
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/new.csv"), "%d");
    table = command_text("out.txt");
    ASSERT(likeliest(table));
    free(table);
    ASSERT_EQ_FMT(DONE, command_run("stream @/run/best.safetensors --data @/new.csv"), "%d");
    table = command_text("out.txt");
    ASSERT(likeliest(table));
    free(table);
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/new.csv --json"), "%d");
    ASSERT(command_is_json("out.txt") && command_says("out.txt", "{\"record\": \"new\", \"p_=1\": 0.") &&
           command_says("out.txt", ", \"p_a, \\\"b\\\"\": 0.") && command_says("out.txt", ", \"predicted\": \""));
    PASS();
}

/* The class asked for is the second of two: what AUC, AUPRC, curves and rows are about, in training and for the same data later. */
TEST a_class_is_positive_by_its_name(void) {
    char *text;
    double down, up;
    ASSERT_EQ_FMT(
        DONE,
        command_run(
            "train own --model enc --data @/events.csv --labels @/labels.csv --positive down --out @/run " SMALL),
        "%d");
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/events.csv"), "%d");
    ASSERT(command_says("out.txt", "record,p_up,p_down,predicted\n"));
    ASSERT_EQ_FMT(
        DONE,
        command_run(
            "eval @/run/best.safetensors --data @/events.csv --labels @/labels.csv --split all --json --bootstrap 0"),
        "%d");
    text = command_text("out.txt");
    ASSERT(command_says("out.txt", "\"classes\": [{\"name\": \"up\", \"support\": "));
    down = command_json(text, "\"name\": \"down\"", "support"), up = command_json(text, "\"name\": \"up\"", "support");
    ASSERT(down > 0 && up > 0 && down + up > COMMAND_RECORDS - 0.5 && down + up < COMMAND_RECORDS + 0.5);
    free(text);
    ASSERT_EQ_FMT(DONE,
                  command_run("train own --model enc --data @/events.csv --labels @/labels.csv --epochs 2 "
                              "--out @/run --resume --quiet"),
                  "%d");
    PASS();
}

/* A column per channel: the same model and the same predictions as from a row per observation. */
TEST a_wide_file_serves_as_a_long_one(void) {
    char *rows, *again;
    command_write("wide.csv", "record,time,pulse,heat\n");
    command_write("long.csv", HEADER);
    for (int r = 0; r < 30; r++)
        for (int i = 0; i < 4; i++) {
            char line[96];
            const int both = (r + i) % 2;
            snprintf(line, sizeof line, both ? "r%d,%d,%d,%d\n" : "r%d,%d,%d,\n", r, i, 60 + r + i, 30 + r * i);
            command_append("wide.csv", line);
            snprintf(line, sizeof line, both ? "r%d,%d,pulse,%d\nr%d,%d,heat,%d\n" : "r%d,%d,pulse,%d\n", r, i,
                     60 + r + i, r, i, 30 + r * i);
            command_append("long.csv", line);
        }
    ASSERT_EQ_FMT(
        DONE, command_run("train own --model enc --data @/wide.csv --labels @/labels.csv --out @/wide " SMALL), "%d");
    ASSERT_EQ_FMT(
        DONE, command_run("train own --model enc --data @/long.csv --labels @/labels.csv --out @/long " SMALL), "%d");
    ASSERT(command_same_files("wide/best.safetensors", "long/best.safetensors"));
    ASSERT_EQ_FMT(DONE, command_run("predict @/wide/best.safetensors --data @/wide.csv"), "%d");
    rows = command_text("out.txt");
    ASSERT_EQ_FMT(DONE, command_run("predict @/wide/best.safetensors --data @/long.csv"), "%d");
    again = command_text("out.txt");
    ASSERT_STR_EQ(rows, again);
    free(rows), free(again);
    ASSERT_EQ_FMT(DONE, command_run("check @/wide.csv --labels @/labels.csv"), "%d");
    command_append("wide.csv", "r0,9,70,\"very \"\"hot\"\"\"\nr0,later,70,38\n");
    ASSERT_EQ_FMT(BAD_RESULT, command_run("check @/wide.csv --labels @/labels.csv"), "%d");
    ASSERT(command_says("out.txt", "2 problems") && command_says("out.txt", "wide.csv:122:") &&
           command_says("out.txt", "in column \"heat\" is no value") && command_says("out.txt", "wide.csv:123:"));
    PASS();
}

/* Numbers by their shortest decimal, dates in UTC; not what scaling and a float make of them. */
TEST times_come_out_as_they_came_in(void) {
    ASSERT_EQ_FMT(DONE,
                  command_run("train own --model per-time --data @/events.csv --labels @/times.csv --out @/run " SMALL),
                  "%d");
    command_append("new.csv", HEADER "a,4.51,heat,2\na,1.0,heat,3\na,3.00000001,pulse,4\na,1,pulse,3\n");
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/new.csv"), "%d");
    ASSERT(command_says("out.txt", "record,time,p_down,p_up,predicted\na,1,") &&
           command_says("out.txt", "\na,3.00000001,") && command_says("out.txt", "\na,4.51,"));
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/new.csv --json"), "%d");
    ASSERT(command_says("out.txt", "\"time\": 4.51, \"p_down\": "));
    command_append("seconds.csv", HEADER "a,1700000001,heat,2\na,1700000000,heat,3\n");
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/seconds.csv --origin record"), "%d");
    ASSERT(command_says("out.txt", "record,time,p_down,p_up,predicted\na,1700000000,") &&
           command_says("out.txt", "\na,1700000001,"));
    write_dates();
    command_append("hours.csv", "record,time,label\nr0,2024-01-01T00:30,up\nr1,2024-01-02T00:30,down\n");
    ASSERT_EQ_FMT(
        DONE, command_run("train own --model per-time --data @/dates.csv --labels @/hours.csv --out @/dates " SMALL),
        "%d");
    ASSERT_EQ_FMT(DONE, command_run("predict @/dates/best.safetensors --data @/dates.csv"), "%d");
    ASSERT(command_says("out.txt", "\nr1,2024-01-02T00:30:00Z,") &&
           command_says("out.txt", "\nr1,2024-01-02T06:30:00Z,"));
    ASSERT_EQ_FMT(DONE, command_run("predict @/dates/best.safetensors --data @/dates.csv --json"), "%d");
    ASSERT(command_says("out.txt", "{\"record\": \"r1\", \"time\": \"2024-01-02T00:30:00Z\", \"p_down\": "));
    PASS();
}

/* The last line of a text file, a copy. */
static char *last_line(const char *name) {
    char *text = command_text(name), *line;
    text[strlen(text) - 1] = 0;
    line = strdup(strrchr(text, '\n') + 1);
    free(text);
    return line;
}

/* Wide lines, and what a file says of the record, predict as a file of them does. */
TEST a_stream_takes_wide_lines_and_statics(void) {
    char *whole, *streamed, line[64];
    command_write("wide.csv", "record,time,heat,pulse\n");
    command_write("fixed.csv", "record,age,sex\n");
    command_write("classes.csv", "record,label\n");
    for (int r = 0; r < 30; r++) {
        for (int k = 0; k < 4; k++) {
            snprintf(line, sizeof line, "r%d,%d,%d,%s\n", r, k, r % 2 ? 6 : 3, k % 2 ? "" : "80");
            command_append("wide.csv", line);
        }
        snprintf(line, sizeof line, "r%d,%d,%s\n", r, 40 + r, r % 3 ? "F" : "M");
        command_append("fixed.csv", line);
        snprintf(line, sizeof line, "r%d,%s\n", r, r % 2 ? "up" : "down");
        command_append("classes.csv", line);
    }
    ASSERT_EQ_FMT(DONE,
                  command_run("train own --model enc --data @/wide.csv --labels @/classes.csv --static @/fixed.csv "
                              "--out @/run " SMALL),
                  "%d");
    command_write("new.csv", "record,time,pulse,heat\nr5,0,70,\nr5,1.5,,7\n");
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/new.csv --static @/fixed.csv"), "%d");
    whole = last_line("out.txt");
    ASSERT_EQ_FMT(DONE, command_run("stream @/run/best.safetensors --data @/new.csv --static @/fixed.csv"), "%d");
    streamed = last_line("out.txt");
    ASSERT_STR_EQ(whole, streamed);
    free(streamed);
    command_write("lines.csv", "r5,0,pulse,70\nr5,1.5,heat,7\n"); /* the same line by line */
    ASSERT_EQ_FMT(DONE, command_run("stream @/run/best.safetensors --data @/lines.csv --static @/fixed.csv"), "%d");
    streamed = last_line("out.txt");
    ASSERT_STR_EQ(whole, streamed);
    free(whole), free(streamed);
    command_write("strange.csv", "record,age,sex\nr5,45,?\nr6,46,f\n");
    ASSERT_EQ_FMT(DONE, command_run("stream @/run/best.safetensors --data @/lines.csv --static @/strange.csv"), "%d");
    ASSERT(command_says("err.txt", "2 values of categories that the model does not know, \"sex=?\" the first"));
    ASSERT_EQ_FMT(DONE, command_run("stream @/run/best.safetensors --data @/new.csv"), "%d");
    ASSERT(command_says("err.txt", "static channels (age, sex=F, sex=M) are missing: --static FILE gives them"));
    command_append("new.csv", "r5,2,x,8\nr5,3,8\nr5,4,,\n");
    ASSERT_EQ_FMT(BAD_RESULT, command_run("stream @/run/best.safetensors --data @/new.csv --static @/fixed.csv"), "%d");
    ASSERT(command_says("err.txt", "new.csv:4: not a number that a float can hold: x"));
    ASSERT(command_says("err.txt", "new.csv:5: not as many fields as the header has"));
    command_write("new.csv", "record,time,size\nr5,0,70\n");
    ASSERT_EQ_FMT(BAD_USE, command_run("stream @/run/best.safetensors --data @/new.csv --static @/fixed.csv"), "%d");
    ASSERT(command_says("err.txt", "new.csv:1: a channel that the model does not know: size"));
    ASSERT(command_refused("stream @/run/best.safetensors --data @/lines.csv --static @/fixed.csv --window 3",
                           "--window would forget what --static gives"));
    PASS();
}

TEST a_stream_counts_from_the_first_value(void) {
    char *whole, *streamed;
    write_dates();
    ASSERT_EQ_FMT(
        DONE, command_run("train own --model enc --data @/dates.csv --labels @/dates-labels.csv --out @/run " SMALL),
        "%d");
    command_append("new.csv",
                   HEADER "a,2023-12-31T00:00,heat,\na,2024-01-01T00:10,heat,7\na,2024-01-01T05:20,heat,1\n");
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/new.csv"), "%d");
    whole = last_line("out.txt");
    ASSERT_EQ_FMT(DONE, command_run("stream @/run/best.safetensors --data @/new.csv"), "%d");
    streamed = last_line("out.txt");
    ASSERT_STR_EQ(whole, streamed);
    free(whole), free(streamed);
    PASS();
}

/* Until time 10 all records are alike; what tells the classes apart comes later. */
static void write_meds(void) {
    char line[96];
    command_append("meds.csv", "subject_id,time,code,numeric_value\n");
    command_append("meds-labels.csv", "subject_id,prediction_time,boolean_value\n");
    for (int r = 0; r < 40; r++) {
        snprintf(line, sizeof line, "s%d,,age,50\ns%d,5,heat,3\ns%d,15,heat,%d\n", r, r, r, r % 2 ? 9 : 1);
        command_append("meds.csv", line);
        snprintf(line, sizeof line, "s%d,10,%s\n", r, r % 2 ? "true" : "false");
        command_append("meds-labels.csv", line);
    }
}

TEST the_future_does_not_leak_into_training(void) {
    write_meds();
    ASSERT_EQ_FMT(DONE,
                  command_run("train own --model enc --data @/meds.csv --labels @/meds-labels.csv --out @/run " SMALL
                              "--epochs 10"),
                  "%d");
    ASSERT_EQ_FMT(
        DONE,
        command_run("eval @/run/best.safetensors --data @/meds.csv --labels @/meds-labels.csv --json --bootstrap 0"),
        "%d");
    ASSERT(command_says("out.txt", "\"auc\": 0.5,"));
    PASS();
}

TEST folds_and_groups_split_own_data(void) {
    const char *const train = "train own --model enc --data @/events.csv --labels @/labels.csv " SMALL;
    char line[512], *first, *second;
    for (int fold = 0; fold < 2; fold++) {
        snprintf(line, sizeof line, "%s --fold %d --out @/fold%d", train, fold, fold);
        ASSERT_EQ_FMT(DONE, command_run(line), "%d");
        snprintf(line, sizeof line,
                 "eval @/fold%d/best.safetensors --data @/events.csv --labels @/labels.csv --bootstrap 0", fold);
        ASSERT_EQ_FMT(DONE, command_run(line), "%d");
        ASSERT(command_says("out.txt", "12 records of the part 'test', 12 labelled rows"));
    }
    first = command_text("fold0/steps.csv"), second = command_text("fold1/steps.csv");
    ASSERT(strcmp(first, second) != 0);
    free(first), free(second);
    snprintf(line, sizeof line, "%s --out @/usual", train);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    snprintf(line, sizeof line, "%s --epochs 2 --fold 0 --out @/usual --resume", train);
    ASSERT_EQ_FMT(BAD_USE, command_run(line), "%d");
    ASSERT(command_says("err.txt", "--fold: a resumed run keeps the setting that it was started with"));
    snprintf(line, sizeof line, "%s --by-group --out @/groups", train);
    ASSERT_EQ_FMT(BAD_USE, command_run(line), "%d");
    ASSERT(command_says("err.txt", "--by-group: no record of this data is in a group; own data has groups where"));
    write_meds();
    ASSERT_EQ_FMT(
        DONE,
        command_run(
            "train own --model enc --data @/meds.csv --labels @/meds-labels.csv --by-group --out @/meds " SMALL),
        "%d");
    PASS();
}

/* What `mtan split` lists is what training takes, and keeps; changed, it can be given back. */
TEST the_split_is_listed_and_given(void) {
    static const char train[] = "train own --model enc --data @/events.csv --labels @/labels.csv " SMALL;
    char line[320], *listed, *again;
    ASSERT_EQ_FMT(DONE, command_run("split @/events.csv --labels @/labels.csv"), "%d");
    ASSERT(command_says("out.txt", "record,part\nr0,") &&
           command_says("err.txt", "38 training, 10 validation, 12 test"));
    listed = command_text("out.txt");
    command_write("splits.csv", listed);
    snprintf(line, sizeof line, "%s --out @/drawn", train);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    ASSERT_EQ_FMT(DONE, command_run("split @/drawn/best.safetensors --data @/events.csv"), "%d"); /* without labels */
    again = command_text("out.txt");
    ASSERT_STR_EQ(listed, again);
    free(again);
    snprintf(line, sizeof line, "%s --splits @/splits.csv --out @/given", train);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    ASSERT(command_same_tensors("drawn/best.safetensors", "given/best.safetensors"));
    ASSERT_EQ_FMT(DONE, command_run("split @/given/best.safetensors --data @/events.csv --labels @/labels.csv"), "%d");
    again = command_text("out.txt");
    ASSERT_STR_EQ(listed, again);
    free(listed), free(again);
    snprintf(line, sizeof line, "%s --epochs 2 --out @/given --resume", train);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    command_append("splits.csv", "r1,nowhere\n");
    snprintf(line, sizeof line, "%s --splits @/splits.csv --out @/bad", train);
    ASSERT(command_refused(line, "splits.csv:62: \"nowhere\" is no part: train, valid or test"));
    snprintf(line, sizeof line, "%s --splits @/splits.csv --fold 1 --out @/bad", train);
    ASSERT(command_refused(line, "--splits and --fold exclude each other"));
    snprintf(line, sizeof line, "%s --folds 3 --out @/bad", train);
    ASSERT(command_refused(line, "--folds N needs --fold"));
    ASSERT(command_refused("split @/drawn/best.safetensors --data @/times.csv", "times.csv:1: column 3, \"label\","));
    command_write("other.csv", HEADER "a,0,heat,1\nb,0,pulse,2\n");
    ASSERT(command_refused("split @/drawn/best.safetensors --data @/other.csv", "was trained on other data"));
    PASS();
}

/* Classes are balanced over the parts, and numbers that are classes only where that is said. */
TEST the_split_is_that_of_the_task(void) {
    command_write("ten.csv", HEADER), command_write("ten-labels.csv", "record,label\n");
    for (int r = 0; r < 50; r++) {
        char row[64];
        snprintf(row, sizeof row, "t%d,0,heat,%d\n", r, r), command_append("ten.csv", row);
        snprintf(row, sizeof row, "t%d,%d.5\n", r, r % 2), command_append("ten-labels.csv", row);
    }
    ASSERT_EQ_FMT(DONE, command_run("split @/ten.csv --labels @/ten-labels.csv --task number"), "%d");
    char *number = command_text("out.txt"), *classes;
    ASSERT_EQ_FMT(DONE, command_run("split @/ten.csv --labels @/ten-labels.csv --task classes"), "%d");
    classes = command_text("out.txt");
    ASSERT(strcmp(number, classes) != 0);
    free(number), free(classes);
    ASSERT(command_refused("split @/ten.csv --labels @/ten-labels.csv --task no", "--task no: "));
    PASS();
}

/* Wards of three records: on one side each, in the split and in the folds. */
TEST groups_of_a_column_stay_together(void) {
    char line[96], side[COMMAND_RECORDS / 3][8], *at, *text;
    command_write("wards.csv", "record,ward,label\n");
    for (int r = 0; r < COMMAND_RECORDS; r++) {
        snprintf(line, sizeof line, "r%d,w%d,%s\n", r, r / 3, r / 3 % 2 ? "up" : "down");
        command_append("wards.csv", line);
    }
    for (int fold = -1; fold < 3; fold++) {
        snprintf(line, sizeof line, "split @/events.csv --labels @/wards.csv --groups ward");
        if (fold >= 0) snprintf(line + strlen(line), sizeof line - strlen(line), " --fold %d --folds 3", fold);
        ASSERT_EQ_FMT(DONE, command_run(line), "%d");
        text = command_text("out.txt"), at = strchr(text, '\n') + 1;
        for (int r = 0; r < COMMAND_RECORDS; r++, at = strchr(at, '\n') + 1) {
            char part[8];
            ASSERT_EQ(1, sscanf(strchr(at, ',') + 1, "%7s", part));
            if (r % 3 == 0) strcpy(side[r / 3], part);
            ASSERT_STR_EQ(side[r / 3], part);
        }
        free(text);
    }
    ASSERT_EQ_FMT(
        DONE,
        command_run("train own --model enc --data @/events.csv --labels @/wards.csv --groups ward --out @/run " SMALL),
        "%d");
    ASSERT_EQ_FMT(DONE, command_run("eval @/run/best.safetensors --data @/events.csv --labels @/wards.csv"), "%d");
    ASSERT(command_says("out.txt", "12 records of the part 'test'"));
    ASSERT(command_refused("train own --model enc --data @/events.csv --labels @/wards.csv --groups war --out @/x",
                           "events.csv: no column \"war\" for groups, here or in the labels"));
    PASS();
}

/* Classes that the static column alone tells: a model reads it beside the sequence, and its file knows the names. */
TEST static_columns_reach_the_classifier(void) {
    static const char train[] =
        "train own --model enc --data @/events.csv --labels @/blood.csv --static @/static.csv "
        "--epochs 60 --lr 0.05 --embed 4 --enc-hidden 4 --ref-points 4 --head-hidden 8 --quiet ";
    char line[320], *whole, *streamed;
    command_write("static.csv", "record,age,blood\n");
    command_write("blood.csv", "record,label\n");
    for (int r = 0; r < COMMAND_RECORDS; r++) {
        const int up = r * 7 % 5 < 2;
        snprintf(line, sizeof line, "r%d,%d,%s\n", r, 20 + r % 9, up ? "AB" : "0");
        command_append("static.csv", line);
        snprintf(line, sizeof line, "r%d,%s\n", r, up ? "yes" : "no");
        command_append("blood.csv", line);
    }
    snprintf(line, sizeof line, "%s--out @/run", train);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    ASSERT_EQ_FMT(DONE,
                  command_run("eval @/run/best.safetensors --data @/events.csv --labels @/blood.csv --static "
                              "@/static.csv --json --bootstrap 0"),
                  "%d");
    ASSERT(command_says("out.txt", "\"auc\": 1,"));
    ASSERT_EQ_FMT(DONE, command_run("inspect @/run/best.safetensors --full"), "%d");
    ASSERT(command_says("out.txt", "[\"age\",\"blood=0\",\"blood=AB\",\"heat\",\"pulse\"]"));
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/events.csv --static @/static.csv"), "%d");
    streamed = command_text("out.txt");
    ASSERT_EQ_FMT(DONE,
                  command_run("predict @/run/best.safetensors --data @/events.csv --static @/static.csv --labels "
                              "@/blood.csv"),
                  "%d");
    whole = command_text("out.txt");
    ASSERT_STR_EQ(whole, streamed);
    free(whole), free(streamed);
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/events.csv"), "%d");
    ASSERT(command_says("err.txt", "the model's static channels (age, blood=0, blood=AB) are missing: --static FILE"));
    snprintf(line, sizeof line, "%s--out @/run --resume", train);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    PASS();
}

/* ---- models of published data ---- */

/* Ten records to a set, as PhysioNet ships them. */
static void write_physionet(const char *set, int first) {
    char name[64], line[96];
    mkdir(command_path("physionet"), 0777);
    snprintf(name, sizeof name, "physionet/%s", set);
    mkdir(command_path(name), 0777);
    if (first == 1)
        command_append("physionet/Outcomes-a.txt", "RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death\n");
    for (int r = first; r < first + 10; r++) {
        snprintf(name, sizeof name, "physionet/%s/%d.txt", set, r);
        command_append(name, "Time,Parameter,Value\n00:00,Age,60\n");
        for (int k = 1; k < 5; k++) {
            snprintf(line, sizeof line, "%02d:24,HR,%d\n%02d:24,Temp,%d\n", 8 * k, 60 + 10 * (r % 2) + k, 8 * k,
                     36 + r % 3);
            command_append(name, line);
        }
        snprintf(line, sizeof line, "%d,6,1,5,-1,%d\n", r, r % 2);
        if (first == 1) command_append("physionet/Outcomes-a.txt", line);
    }
}

/* Record 1 as a CSV, at the hours that its file has. */
#define RECORD_1                                                                                                       \
    HEADER "1,0,Age,60\n1,8.4,HR,71\n1,8.4,Temp,37\n1,16.4,HR,72\n1,16.4,Temp,37\n1,24.4,HR,73\n1,24.4,Temp,37\n"      \
           "1,32.4,HR,74\n1,32.4,Temp,37\n"

TEST a_model_of_physionet_takes_events(void) {
    char *from_folder, *from_file, *from_stream;
    write_physionet("set-a", 1);
    command_append("one.csv", RECORD_1);
    ASSERT_EQ_FMT(DONE, command_run("train physionet-enc --data @/physionet --out @/run " SMALL), "%d");
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/physionet/set-a"), "%d");
    from_folder = command_text("out.txt");
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/one.csv"), "%d");
    from_file = last_line("out.txt");
    ASSERT_EQ_FMT(DONE, command_run("stream @/run/best.safetensors --data @/one.csv"), "%d");
    from_stream = last_line("out.txt");
    ASSERT_STR_EQ(from_stream, from_file);
    ASSERT(strstr(from_folder, from_file)); /* 8.4 hours are a multiple of the loader's 0.016 */
    free(from_folder), free(from_file), free(from_stream);
    ASSERT(freopen(command_path("one.csv"), "r", stdin));
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data -"), "%d");
    ASSERT(command_says("out.txt", "record,p_survived,p_died,predicted\n1,"));
    command_append("odd.csv", HEADER "1,0,Mystery,60\n");
    ASSERT_EQ_FMT(BAD_RESULT, command_run("predict @/run/best.safetensors --data @/odd.csv"), "%d");
    ASSERT(command_says("err.txt", "the model has no channel \"Mystery\""));
    command_append("bad.csv", "record;time\n");
    ASSERT_EQ_FMT(BAD_USE, command_run("predict @/run/best.safetensors --data @/bad.csv"), "%d");
    ASSERT(command_says("err.txt", "separated by semicolons"));
    PASS();
}

static int lines_of(const char *name) {
    char *text = command_text(name);
    int n = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) n++;
    free(text);
    return n;
}

/* Training needs both sets, a curve those records that there are. */
TEST interpolation_takes_the_sets_that_are_there(void) {
    write_physionet("set-a", 1), write_physionet("set-b", 11);
    ASSERT_EQ_FMT(DONE,
                  command_run("train physionet-interp --data @/physionet --latent 2 --dec-hidden 5 --mlp-hidden 6 "
                              "--out @/run " SMALL_CURVES),
                  "%d");
    for (int b = 0; b < 2; b++) {
        const char *const away = b ? "physionet/set-a" : "physionet/set-b";
        ASSERT_EQ(0, rename(command_path(away), command_path("away")));
        ASSERT_EQ_FMT(DONE, command_run("interpolate @/run/best.safetensors --data @/physionet --at 0:1:1 --samples 1"),
                      "%d");
        ASSERT(command_says("out.txt", b ? "extrapolated\n11,0,Age," : "extrapolated\n1,0,Age,"));
        ASSERT_EQ_FMT(1 + 10 * 2 * 41, lines_of("out.txt"), "%d");
        ASSERT_EQ_FMT(BAD_USE,
                      command_run("interpolate @/run/best.safetensors --data @/physionet --at 0:1:1 --split test"),
                      "%d");
        ASSERT_EQ(0, rename(command_path("away"), command_path(away)));
    }
    PASS();
}

/* ---- parts and samples ---- */

TEST a_part_of_the_split_is_predicted(void) {
    static const int records[] = {38, 10, 12, COMMAND_RECORDS};
    static const char *const parts[] = {"train", "valid", "test", "all"};
    char line[160], *all, *part;
    ASSERT_EQ_FMT(
        DONE, command_run("train own --model enc --data @/events.csv --labels @/labels.csv --out @/run " SMALL), "%d");
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/events.csv"), "%d");
    all = command_text("out.txt");
    for (int i = 0; i < 4; i++) {
        snprintf(line, sizeof line, "predict @/run/best.safetensors --data @/events.csv --split %s", parts[i]);
        ASSERT_EQ_FMT(DONE, command_run(line), "%d");
        ASSERT_EQ_FMT(1 + records[i], lines_of("out.txt"), "%d");
        part = command_text("out.txt");
        for (char *at = strtok(part, "\n"), *last = all; at; at = strtok(NULL, "\n")) /* rows of it, in its order */
            ASSERT((last = strstr(last, at)));
        free(part);
    }
    free(all);
    ASSERT_EQ_FMT(BAD_USE, command_run("predict @/run/best.safetensors --data @/events.csv --split tests"), "%d");
    ASSERT(command_says("err.txt", "--split tests: must be train, valid, test or all"));
    command_append("other.csv", HEADER "a,1,heat,2\n");
    ASSERT_EQ_FMT(BAD_USE, command_run("predict @/run/best.safetensors --data @/other.csv --split test"), "%d");
    ASSERT(command_says("err.txt", "other data than the model was trained on"));
    PASS();
}

TEST a_prediction_draws_samples(void) {
    char *few, *many;
    ASSERT_EQ_FMT(
        DONE,
        command_run("train own --model full --data @/events.csv --labels @/labels.csv --latent 2 --dec-hidden "
                    "5 --mlp-hidden 6 --out @/run " SMALL),
        "%d");
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/events.csv --samples 1"), "%d");
    few = command_text("out.txt");
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/events.csv --samples 9"), "%d");
    many = command_text("out.txt");
    ASSERT(strcmp(few, many) != 0);
    free(few), free(many);
    ASSERT_EQ_FMT(
        DONE, command_run("train own --model enc --data @/events.csv --labels @/labels.csv --out @/enc " SMALL), "%d");
    ASSERT_EQ_FMT(BAD_USE, command_run("predict @/enc/best.safetensors --data @/events.csv --samples 9"), "%d");
    ASSERT(command_says("err.txt", "--samples: this model has no latent state"));
    PASS();
}

/* The records are those that the labels name. */
TEST predictions_are_made_at_their_times(void) {
    write_meds();
    ASSERT_EQ_FMT(DONE,
                  command_run("train own --model enc --data @/meds.csv --labels @/meds-labels.csv --out @/run " SMALL),
                  "%d");
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/meds.csv --labels @/meds-labels.csv"),
                  "%d");
    ASSERT_EQ_FMT(41, lines_of("out.txt"), "%d");
    ASSERT(command_says("out.txt", "record,p_false,p_true,predicted\ns0@10,"));
    ASSERT_EQ_FMT(
        DONE, command_run("predict @/run/best.safetensors --data @/meds.csv --labels @/meds-labels.csv --split test"),
        "%d");
    ASSERT_EQ_FMT(9, lines_of("out.txt"), "%d");
    PASS();
}

/* Six times a record and two labels, one at a time without an observation. */
static void write_sparse_labels(void) {
    char line[96];
    command_write("steps.csv", HEADER);
    command_write("sparse.csv", "record,time,label\n");
    for (int r = 0; r < 40; r++) {
        for (int k = 0; k < 6; k++) {
            snprintf(line, sizeof line, "r%d,%d,heat,%d\n", r, k, (r * 7 + k * k * 3) % 5);
            command_append("steps.csv", line);
        }
        snprintf(line, sizeof line, "r%d,2,%s\nr%d,3.5,%s\n", r, r % 3 ? "up" : "down", r, r % 2 ? "up" : "down");
        command_append("sparse.csv", line);
    }
}

/* The mean of minus the logarithm of the label's probability, by the rows of `mtan predict`. */
static double loss_of_rows(char *rows) {
    double sum = 0, n = 0, time, down, up;
    int r;
    for (char *row = strtok(rows, "\n"); row; row = strtok(NULL, "\n")) {
        if (sscanf(row, "r%d,%lf,%lf,%lf", &r, &time, &down, &up) != 4) continue;
        if (time < 2 || (time > 2 && time < 3.5) || time > 3.5) continue;
        sum -= log((time < 3 ? r % 3 : r % 2) ? up : down), n++;
    }
    return sum / n;
}

/* What the recurrent network says at one time depends on the times before it that are asked. */
TEST eval_and_predict_ask_the_same_times(void) {
    char *text;
    double loss;
    write_sparse_labels();
    ASSERT_EQ_FMT(DONE,
                  command_run("train own --model per-time --data @/steps.csv --labels @/sparse.csv --out @/run " SMALL),
                  "%d");
    ASSERT_EQ_FMT(
        DONE, command_run("predict @/run/best.safetensors --data @/steps.csv --labels @/sparse.csv --split all"), "%d");
    ASSERT_EQ_FMT(1 + 40 * 7, lines_of("out.txt"), "%d");
    ASSERT(command_says("out.txt", "\nr7,3,") && command_says("out.txt", "\nr7,3.5,"));
    text = command_text("out.txt"), loss = loss_of_rows(text), free(text);
    ASSERT_EQ_FMT(
        DONE, command_run("eval @/run/best.safetensors --data @/steps.csv --labels @/sparse.csv --split all --json"),
        "%d");
    text = command_text("out.txt");
    ASSERT_NEAR(command_json(text, "{", "log_loss"), loss, 1e-6);
    free(text);
    PASS();
}

/* ---- records that are too large for a workspace ---- */

/* A record of n times between two of one. */
static void write_large(const char *name, int n) {
    FILE *file = fopen(command_path(name), "w");
    if (!file) perror("mtan: build"), exit(2);
    fputs(HEADER "a,1,heat,4\n", file);
    for (int i = 0; i < n; i++) fprintf(file, "big,%d.5,%s,%d\n", i, i % 3 ? "heat" : "pulse", i % 7);
    fputs("z,1,heat,4\n", file);
    fclose(file);
}

/* With 4096 reference points and 16 records at once, 2^15 times are 2^31 scores. */
TEST a_record_of_any_length_is_predicted(void) {
    char *rows, *streamed;
    if (case_left_out("large-record")) SKIPm(LEFT_OUT);
    ASSERT_EQ_FMT(DONE,
                  command_run("train own --model enc --data @/events.csv --labels @/labels.csv --out @/run " SMALL
                              "--ref-points 4096"),
                  "%d");
    write_large("large.csv", 33000);
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/large.csv"), "%d");
    rows = command_text("out.txt");
    ASSERT(strstr(rows, "\na,") && strstr(rows, "\nz,"));
    command_append("large.csv", "big\n"); /* for the stream: what do you make of all of it? */
    ASSERT_EQ_FMT(DONE, command_run("stream @/run/best.safetensors --every request --data @/large.csv"), "%d");
    streamed = last_line("out.txt");
    ASSERT(strstr(rows, streamed));
    free(rows), free(streamed);
    PASS();
}

TEST a_record_that_is_too_large_costs_itself_alone(void) {
    ASSERT_EQ_FMT(DONE,
                  command_run("train own --model per-time --data @/events.csv --labels @/times.csv --out @/run " SMALL),
                  "%d");
    write_large("large.csv", 24000); /* as many reference points as times, and no stream */
    ASSERT_EQ_FMT(BAD_RESULT, command_run("predict @/run/best.safetensors --data @/large.csv"), "%d");
    ASSERT(command_says("out.txt", "\na,1,") && command_says("out.txt", "\nz,1,"));
    ASSERT(command_says("err.txt", "mtan: record big, which is left out: 24000 observations at 24000 times: "));
    PASS();
}

/* A decoder's classes and curves of a large record come in blocks of query times. */
static void write_decoder(mtan_classify_kind classify) {
    const prep none = {0};
    char error[512] = "";
    mtan_config config;
    mtan_model model;
    mtan_real *weights;
    mtan_config_init(&config, MTAN_FULL, classify, 2, classify == MTAN_CLASSIFY_NONE ? 0 : 2);
    small_apply(&config, "ref_points 4096 embed 4 enc_hidden 3 dec_hidden 3 latent 2 mlp_hidden 3 head_hidden 3");
    weights = calloc(mtan_weights_count(&config), sizeof *weights);
    if (!weights || mtan_weights_init(&config, weights, mtan_weights_count(&config), 3) != MTAN_OK ||
        mtan_model_init(&model, &config, weights, mtan_weights_count(&config)) != MTAN_OK ||
        !bundle_write(command_path("decoder.safetensors"), &model, NULL, &none, NULL, 0, error))
        printf("  BAD %s\n", error);
    free(weights);
}

static void write_decoded(const char *name, const char *last) {
    FILE *file = fopen(command_path(name), "w");
    if (!file) perror("mtan: build"), exit(2);
    fputs(HEADER, file);
    for (int i = 0; i < 17000; i++) fprintf(file, "big,%d,%d,%d\n", i, i % 2, i % 7);
    fputs(last, file);
    fclose(file);
}

TEST large_records_have_classes_of_times_and_curves(void) {
    if (case_left_out("large-record")) SKIPm(LEFT_OUT);
    write_decoded("large.csv", "");
    write_decoded("asked.csv", "big,600,,\n"); /* for the stream: and at that time? */
    for (int curves = 0; curves < 2; curves++) {
        char *rows, *streamed;
        write_decoder(curves ? MTAN_CLASSIFY_NONE : MTAN_CLASSIFY_TIME);
        ASSERT_EQ_FMT(DONE,
                      command_run(curves
                                      ? "interpolate @/decoder.safetensors --data @/large.csv --samples 0 --at 0:600:1"
                                      : "predict @/decoder.safetensors --data @/large.csv --samples 0"),
                      "%d");
        rows = command_text("out.txt");
        ASSERT_EQ_FMT(DONE, command_run("stream @/decoder.safetensors --every request --samples 0 --data @/asked.csv"),
                      "%d");
        streamed = last_line("out.txt");
        ASSERT(strncmp(streamed, "big,600,", 8) == 0 && strstr(rows, streamed));
        free(rows), free(streamed);
    }
    PASS();
}

/* Frequencies that fit the data's times have no short decimal form; the KL term joins after epoch 10. */
TEST a_page_is_for_people(void) {
    char *text;
    ASSERT_EQ_FMT(
        DONE,
        command_run("train own --model interp --data @/events.csv --frequencies log --latent 3 --dec-hidden 8 "
                    "--mlp-hidden 6 --samples 1 --kl-anneal 1 --out @/run " SMALL_CURVES " --epochs 11 --patience 0"),
        "%d");
    ASSERT_EQ_FMT(DONE, command_run("inspect @/run/last.safetensors"), "%d");
    ASSERT(command_says("out.txt", " frequencies log, slowest "));
    text = command_text("out.txt");
    ASSERT(!strstr(text, " slowest 0x") && !strstr(text, " fastest 0x"));
    free(text);
    ASSERT_EQ_FMT(DONE, command_run("inspect @/run/last.safetensors --json"), "%d"); /* programs get every bit */
    ASSERT(command_says("out.txt", "\"slowest\": \"0x"));
    ASSERT_EQ_FMT(DONE, command_run("report @/run/last.safetensors --data @/events.csv -o @/page.html --quiet"), "%d");
    ASSERT(command_says("page.html", "epoch of these weights"));
    ASSERT(command_says("page.html", "its weight grows from epoch 11 on, so that the loss may rise"));
    text = command_text("page.html");
    ASSERT(strstr(text, "slowest") && !strstr(text, "0x1"));
    free(text);
    PASS();
}

SUITE(own_command_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(a_first_record_without_a_value_has_no_unit);
    RUN_TEST(a_failure_prints_no_header);
    RUN_TEST(classes_are_called_by_their_names);
    RUN_TEST(a_class_is_positive_by_its_name);
    RUN_TEST(a_wide_file_serves_as_a_long_one);
    RUN_TEST(times_come_out_as_they_came_in);
    RUN_TEST(a_stream_counts_from_the_first_value);
    RUN_TEST(a_stream_takes_wide_lines_and_statics);
    RUN_TEST(the_future_does_not_leak_into_training);
    RUN_TEST(folds_and_groups_split_own_data);
    RUN_TEST(the_split_is_listed_and_given);
    RUN_TEST(the_split_is_that_of_the_task);
    RUN_TEST(groups_of_a_column_stay_together);
    RUN_TEST(static_columns_reach_the_classifier);
    RUN_TEST(a_model_of_physionet_takes_events);
    RUN_TEST(interpolation_takes_the_sets_that_are_there);
    RUN_TEST(a_part_of_the_split_is_predicted);
    RUN_TEST(a_prediction_draws_samples);
    RUN_TEST(predictions_are_made_at_their_times);
    RUN_TEST(eval_and_predict_ask_the_same_times);
    RUN_TEST(a_record_of_any_length_is_predicted);
    RUN_TEST(a_record_that_is_too_large_costs_itself_alone);
    RUN_TEST(large_records_have_classes_of_times_and_curves);
    RUN_TEST(a_page_is_for_people);
}
