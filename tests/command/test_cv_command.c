/* mtan cv: folds that cover the data once, runs that go on, numbers that can be computed again from the table of predictions. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../tools/mtan/base/messages.h"
#include "../../tools/mtan/model/ensemble.h"
#include "command_line.h"

#define SMALL "--epochs 2 --embed 4 --enc-hidden 4 --ref-points 4 --head-hidden 4 --quiet "
#define CV "cv own --data @/events.csv --labels @/labels.csv --out @/cv " SMALL

/* The share of rows whose predicted class is the label, of a table with each record of the data once; NaN: it is not one. */
static double accuracy(int folds) {
    char *text = command_text("cv/predictions.csv"), *at = strchr(text, '\n') + 1;
    int seen[COMMAND_RECORDS] = {0}, in_fold[8] = {0}, right = 0, rows = 0, good = 1, record, fold;
    for (; *at; at = strchr(at, '\n') + 1, rows++) {
        char label[8], predicted[8];
        double down, up;
        if (sscanf(at, "r%d,%d,%7[a-z],%lf,%lf,%7[a-z]", &record, &fold, label, &down, &up, predicted) != 6) good = 0;
        if (!good || record < 0 || record >= COMMAND_RECORDS || fold < 0 || fold >= folds || seen[record]++) break;
        in_fold[fold]++;
        good = fabs(down + up - 1) < 1e-5 && strcmp(predicted, up > down ? "up" : "down") == 0;
        right += strcmp(label, predicted) == 0;
    }
    good = good && rows == COMMAND_RECORDS && strncmp(text, "record,fold,label,p_down,p_up,predicted\n", 40) == 0;
    for (int f = 0; f < folds; f++) good = good && in_fold[f] == COMMAND_RECORDS / folds;
    free(text);
    return good ? (double)right / rows : NAN;
}

/* The number of a line's column, from 0 behind its title. */
static double printed(const char *title, int column) {
    char *text = command_text("out.txt"), *at = strstr(text, title);
    double x[3] = {NAN, NAN, NAN};
    if (at) sscanf(at + strlen(title), "%lf %lf %lf", &x[0], &x[1], &x[2]);
    free(text);
    return x[column];
}

TEST each_record_is_predicted_once(void) {
    ASSERT_EQ_FMT(DONE, command_run(CV "--model enc --folds 3"), "%d");
    ASSERT(command_says("out.txt", "3 folds, 60 labelled rows\n") && command_says("out.txt", "95 % interval"));
    ASSERT(fabs(printed("accuracy", 2) - accuracy(3)) < 6e-5);
    ASSERT(fabs(printed("accuracy", 0) - printed("accuracy", 2)) < 6e-5); /* the folds are of one size */
    ASSERT_EQ_FMT(DONE, command_run(CV "--model enc --folds 3 --json"), "%d");
    ASSERT(command_says("out.txt", "{\"folds\": 3, \"rows\": 60, \"auc\": {\"mean\": "));
    ASSERT(fabs(printed("\"accuracy\": {\"mean\": ", 0) - accuracy(3)) < 6e-5);
    ASSERT(command_says("out.txt", "\"pooled\": ") && command_says("out.txt", "\"high\": "));
    ASSERT_EQ_FMT(DONE, command_run("eval @/cv/fold1/best.safetensors --data @/events.csv --labels @/labels.csv"),
                  "%d");
    ASSERT(command_says("out.txt", "20 records of the part 'test'"));
    PASS();
}

/* A second call trains what is missing, and nothing else. */
TEST what_is_missing_is_trained(void) {
    char *first, *again;
    ASSERT_EQ_FMT(DONE, command_run(CV "--model enc --folds 2"), "%d");
    first = command_text("out.txt");
    ASSERT_EQ_FMT(0, rename(command_path("cv/fold0"), command_path("kept")), "%d");
    ASSERT_EQ_FMT(DONE, command_run(CV "--model enc --folds 2"), "%d");
    again = command_text("out.txt");
    ASSERT_STR_EQ(first, again);
    free(first), free(again);
    ASSERT(command_same_files("cv/fold0/best.safetensors", "kept/best.safetensors"));
    ASSERT(command_refused(CV "--model enc --folds 2 --lr 0.5", "--lr: a resumed run keeps the setting"));
    ASSERT(command_refused(CV "--model enc --folds 4", "--folds: a resumed run keeps the setting"));
    PASS();
}

/* The message says what works: cv has no --resume. */
TEST an_interrupted_cv_goes_on(void) {
    const char *const line =
        "cv own --model enc --data @/events.csv --labels @/labels.csv --out @/cv --folds 2 --embed 4 "
        "--enc-hidden 4 --ref-points 4 --head-hidden 4 --epochs 300 --patience 0";
    const pid_t child = command_start(line, 0);
    const int waited = command_wait("cv/fold0/log.csv", 2);
    kill(child, SIGINT);
    ASSERT_EQ_FMT(INTERRUPTED, command_finish(child), "%d");
    ASSERT(waited && command_says("err.txt", "/last.safetensors: go on with the same command\n"));
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    PASS();
}

TEST other_models_have_folds(void) {
    ASSERT_EQ_FMT(
        DONE,
        command_run("cv own --model per-time --data @/events.csv --labels @/times.csv --out @/cv --folds 2 " SMALL),
        "%d");
    ASSERT(command_says("cv/predictions.csv", "record,time,fold,label,p_down,p_up,predicted\n"));
    ASSERT_EQ_FMT(DONE,
                  command_run("cv own --model interp --data @/events.csv --out @/curves --folds 2 --epochs 1 --embed 4 "
                              "--enc-hidden 4 --dec-hidden 4 --latent 2 --ref-points 4 --quiet"),
                  "%d");
    ASSERT(command_says("out.txt", "2 folds: mean squared error of held-out points "));
    ASSERT_EQ_FMT(DONE,
                  command_run("cv own --model interp --data @/events.csv --out @/curves --folds 2 --epochs 1 --embed 4 "
                              "--enc-hidden 4 --dec-hidden 4 --latent 2 --ref-points 4 --quiet --json"),
                  "%d");
    ASSERT(command_says("out.txt", "{\"folds\": 2, \"rows\": 0, \"mse\": {\"mean\": "));
    command_write("numbers.csv", "record,label\n");
    for (int r = 0; r < COMMAND_RECORDS; r++) {
        char line[32];
        snprintf(line, sizeof line, "r%d,%d.5\n", r, r * 7 % 53);
        command_append("numbers.csv", line);
    }
    ASSERT_EQ_FMT(
        DONE, command_run("cv own --model enc --data @/events.csv --labels @/numbers.csv --out @/n --folds 2 " SMALL),
        "%d");
    ASSERT(command_says("out.txt", "2 folds, ") && command_says("out.txt", "RMSE "));
    ASSERT_EQ_FMT(
        DONE,
        command_run("cv own --model enc --data @/events.csv --labels @/numbers.csv --out @/n --folds 2 --json " SMALL),
        "%d");
    ASSERT(command_says("out.txt", "{\"folds\": 2, \"rows\": 60, \"rmse\": {\"mean\": "));
    ASSERT(command_says("n/predictions.csv", "record,fold,label,predicted\n"));
    PASS();
}

/* The record and the time of each row: the first two columns of a table, up to 60 rows in the order of the lines. */
static int same_times(const char *table, const char *others) {
    char *text = command_text(table), *other = command_text(others), line[96];
    int rows = 0, good = 1;
    for (const char *at = strchr(text, '\n'); at && at[1] && good && rows < 60; at = strchr(at + 1, '\n'), rows++) {
        const size_t name = strcspn(at + 1, ",") + 1, time = strcspn(at + 1 + name, ",") + 1;
        snprintf(line, sizeof line, "%.*s", (int)(1 + name + time), at);
        if (!(good = strstr(other, line) != NULL)) printf("  BAD    no row of %s begins with %s\n", others, line + 1);
    }
    free(text), free(other);
    return good && rows > 0;
}

/* Rows of dates.csv, and labels for two of three of their times. The times are dates or, like 0.1, no floats. */
static void write_times(int dates) {
    char line[64];
    command_write("t.csv", "record,time,channel,value\n"), command_write("t-labels.csv", "record,time,label\n");
    for (int r = 0; r < COMMAND_RECORDS; r++)
        for (int i = 0; i < 4; i++) {
            char time[32];
            snprintf(time, sizeof time, dates ? "2024-03-%02dT01:1%d:24Z" : "%d.%d", r % 28 + 1, i + 1);
            snprintf(line, sizeof line, "r%d,%s,x,%d\n", r, time, (r + i) % 7), command_append("t.csv", line);
            snprintf(line, sizeof line, "r%d,%s,%s\n", r, time, (r + i) % 2 ? "up" : "down");
            if (r > 0 && i % 3) command_append("t-labels.csv", line);
        }
}

/* A row's time is the one of `mtan predict`, so that the tables can be joined: of labels, of observed times without one,
 * of a record without labels; of numbers too, and of published data, whose times are not read as texts. */
TEST times_are_those_of_the_data(void) {
    for (int dates = 0; dates < 2; dates++) {
        write_times(dates);
        ASSERT_EQ_FMT(DONE,
                      command_run(dates
                                      ? "cv own --model per-time --data @/t.csv --labels @/t-labels.csv --out @/dates "
                                        "--folds 2 " SMALL
                                      : "cv own --model per-time --data @/t.csv --labels @/t-labels.csv --out @/cv "
                                        "--folds 2 " SMALL),
                      "%d");
        ASSERT_EQ_FMT(DONE,
                      command_run(dates ? "predict @/dates/fold0/best.safetensors --data @/t.csv --quiet"
                                        : "predict @/cv/fold0/best.safetensors --data @/t.csv --quiet"),
                      "%d");
        ASSERT(same_times(dates ? "dates/predictions.csv" : "cv/predictions.csv", "out.txt"));
    }
    ASSERT(command_says("dates/predictions.csv", "r1,2024-03-02T01:12:24Z,"));
    command_activity("activity");
    ASSERT_EQ_FMT(DONE, command_run("cv activity-enc --data @/activity --out @/persons --folds 2 " SMALL), "%d");
    ASSERT_EQ_FMT(DONE, command_run("predict @/persons/fold0/best.safetensors --data @/activity --quiet"), "%d");
    ASSERT(same_times("persons/predictions.csv", "out.txt"));
    PASS();
}

/* Each number of a time stands beside its time. */
TEST numbers_have_their_times(void) {
    char line[64];
    write_times(1);
    command_write("t-labels.csv", "record,time,label\n");
    for (int r = 1; r < COMMAND_RECORDS; r++) {
        snprintf(line, sizeof line, "r%d,2024-03-%02dT01:13:24Z,%d.5\n", r, r % 28 + 1, r);
        command_append("t-labels.csv", line);
    }
    ASSERT_EQ_FMT(
        DONE, command_run("cv own --model per-time --data @/t.csv --labels @/t-labels.csv --out @/cv --folds 2 " SMALL),
        "%d");
    ASSERT(command_says("cv/predictions.csv", "\nr7,2024-03-08T01:13:24Z,"));
    PASS();
}

TEST what_cannot_be_done_is_refused(void) {
    ASSERT(command_refused("cv own --model enc --data @/events.csv --labels @/labels.csv", "--out is missing"));
    ASSERT(command_refused("cv own --model enc --out @/cv", "--data is missing"));
    ASSERT(command_refused(CV "--model enc --fold 1", "cv: no option --fold"));
    ASSERT(command_refused(CV "--model enc --folds 61", "60 records or groups are too few for 61 folds"));
    ASSERT(command_refused(CV, "own data needs --model"));
    PASS();
}

/* A record's probability by a table of `mtan predict`; NaN: it is not there. */
static double probability(const char *record) {
    char *text = command_text("out.txt"), *at = strstr(text, record);
    double down = NAN, up = NAN;
    if (at && sscanf(at + strlen(record), ",%lf,%lf", &down, &up) != 2) up = NAN;
    free(text);
    return up;
}

/* The model of all folds is their mean; it has no test records, and says so. */
TEST folds_become_one_model(void) {
    double mean = 0;
    ASSERT_EQ_FMT(DONE, command_run(CV "--model enc --folds 2 --ensemble"), "%d");
    for (int k = 0; k < 2; k++) {
        char line[96];
        snprintf(line, sizeof line, "predict @/cv/fold%d/best.safetensors --data @/events.csv --quiet", k);
        ASSERT_EQ_FMT(DONE, command_run(line), "%d");
        mean += probability("\nr7") / 2;
    }
    ASSERT_EQ_FMT(DONE, command_run("predict @/cv/best.safetensors --data @/events.csv --quiet"), "%d");
    ASSERT(fabs(probability("\nr7") - mean) < 1e-6);
    ASSERT_EQ_FMT(DONE, command_run("selftest @/cv/best.safetensors"), "%d");
    ASSERT(command_refused("eval @/cv/best.safetensors --data @/events.csv --labels @/labels.csv",
                           "all of these records trained the model, and none is left to test it"));
    ASSERT_EQ_FMT(
        DONE, command_run("eval @/cv/best.safetensors --data @/events.csv --labels @/labels.csv --split train --json"),
        "%d");
    ASSERT(command_refused(CV "--model enc --folds 2 --fit training", "--fit: a resumed run keeps the setting"));
    ASSERT(command_refused(CV "--model enc --folds 65 --ensemble", "at most 64 members, and there are 65 folds"));
    ASSERT(
        command_refused(CV "--model enc --folds 2 --ensemble --budget 1s", "--budget finds other settings for each"));
    ASSERT(command_refused(CV "--model enc --fit some", "--fit some: must be one of training, all"));
    PASS();
}

/* Without it the folds' preprocessing differs, as each has seen other records. */
TEST preprocessing_sees_the_training_records_alone(void) {
    char members[2][4096], error[512] = "";
    plan p;
    bundle b;
    ASSERT_EQ_FMT(DONE, command_run(CV "--model enc --folds 2"), "%d");
    ASSERT(access(command_path("cv/best.safetensors"), F_OK) != 0);
    for (int k = 0; k < 2; k++) {
        char name[48];
        snprintf(name, sizeof name, "cv/fold%d/best.safetensors", k);
        snprintf(members[k], sizeof members[k], "%s", command_path(name));
    }
    ASSERT(bundle_read(&b, members[0], error) && plan_load(&p, &b, error));
    ASSERT(!ensemble_join(command_path("joined.safetensors"), &p, members, 2, NULL, error));
    ASSERT(strstr(error, "has other preprocessing than"));
    bundle_free(&b);
    PASS();
}

SUITE(cv_command_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(each_record_is_predicted_once);
    RUN_TEST(what_is_missing_is_trained);
    RUN_TEST(an_interrupted_cv_goes_on);
    RUN_TEST(other_models_have_folds);
    RUN_TEST(times_are_those_of_the_data);
    RUN_TEST(numbers_have_their_times);
    RUN_TEST(folds_become_one_model);
    RUN_TEST(preprocessing_sees_the_training_records_alone);
    RUN_TEST(what_cannot_be_done_is_refused);
}
