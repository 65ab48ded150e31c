/* mtan train --budget: what it tries, that the best of it is the run that its options give, and what it leaves behind. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../tools/mtan/command/commands.h"
#include "command_line.h"

#define DATA "--data @/events.csv --labels @/labels.csv "
#define SMALL_CURVES "--embed 8 --batch 16 --threads 1 "
#define SMALL SMALL_CURVES "--head-hidden 6 "
#define SEARCH "train own " DATA SMALL "--enc-hidden 8 --ref-points 6 --seed 3 "

/* The options behind the first `before` in a text, up to the end of its line. */
static void options_behind(char *words, size_t size, const char *text, const char *before) {
    const char *at = strstr(text, before);
    *words = 0;
    if (!at) return;
    at += strlen(before);
    snprintf(words, size, "%.*s", (int)strcspn(at, "\n"), at);
}

static int rows_of(const char *text) {
    int rows = 0;
    for (; *text; text++) rows += *text == '\n';
    return rows;
}

/* Counted trials depend on no clock: the same seed, the same files; and the options that are printed make the same run. */
TEST the_best_is_the_run_of_its_options(void) {
    char *text, words[400], line[1024], *best;
    ASSERT_EQ_FMT(DONE, command_run(SEARCH "--epochs 9 --budget 4trials --out @/one"), "%d");
    text = command_text("err.txt");
    ASSERT((best = strstr(text, "best: trial ")));
    options_behind(words, sizeof words, best + strlen("best: trial "), ":");
    ASSERT(strstr(words, "--epochs 9") && strstr(words, "--select auc"));
    free(text);
    ASSERT_EQ_FMT(DONE, command_run(SEARCH "--epochs 9 --budget 4trials --out @/two"), "%d");
    ASSERT(command_same_files("one/best.safetensors", "two/best.safetensors"));
    ASSERT(command_same_files("one/last.safetensors", "two/last.safetensors"));
    snprintf(line, sizeof line, SEARCH "%s%s --out @/three --quiet", strstr(words, "--model") ? "" : "--model enc ",
             words);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    ASSERT(command_same_files("one/best.safetensors", "three/best.safetensors"));
    ASSERT(command_same_columns("one/log.csv", "three/log.csv", 4));
    PASS();
}

/* Nine in the first round, three in the second; the folder of the run has no more than a run and the table. */
TEST what_was_tried_is_told_and_kept(void) {
    char *text;
    ASSERT_EQ_FMT(DONE, command_run(SEARCH "--epochs 9 --lr 0.01 --budget 9trials --out @/found"), "%d");
    text = command_text("err.txt");
    ASSERT(strstr(text, "round  trial  epochs  seconds  auc        settings\n    1      0       1 "));
    ASSERT(strstr(text, "as it stands\n") && strstr(text, "\n    2 ") && !strstr(text, "\n    3 "));
    ASSERT(strstr(text, " --thin ") && strstr(text, " --frequencies ") && strstr(text, " --statistics mean"));
    ASSERT(strstr(text, " --values plain") &&
           (strstr(text, " --values piecewise") || strstr(text, " --values quantile")));
    ASSERT(!strstr(text, " --lr ") && !strstr(text, " --enc-hidden ")); /* which the user gave */
    ASSERT(strstr(text, "\nnext, on the test records: mtan eval "));
    free(text);
    text = command_text("found/trials.csv");
    ASSERT(strncmp(text, "trial,round,epochs,seconds,auc,end,options\n0,", 45) == 0);
    ASSERT_EQ_FMT(10, rows_of(text), "%d");
    free(text);
    ASSERT(access(command_path("found/trials"), F_OK) != 0 && access(command_path("found/mtan.lock"), F_OK) != 0);
    ASSERT_EQ_FMT(DONE, command_run("selftest @/found/best.safetensors"), "%d");
    ASSERT(command_refused(SEARCH "--budget 9trials --out @/found", "holds a run: --resume goes on with it"));
    PASS();
}

/* A trial is five runs then, and the runs of the others leave nothing behind; curves have many points of each record. */
TEST few_records_are_validated_in_turn(void) {
    static const char said[] = "few labelled records: each trial is validated on 5 parts of them in turn\n";
    char *text;
    const pid_t child = command_start(SEARCH "--model enc --epochs 12 --budget 2trials --fold 1 --out @/found", 0);
    const int turned = command_wait("found/trials/0-4/log.csv", 2);
    ASSERT_EQ_FMT(DONE, command_finish(child), "%d");
    ASSERT(turned && command_says("err.txt", said));
    ASSERT(access(command_path("found/trials"), F_OK) != 0);
    ASSERT_EQ_FMT(DONE,
                  command_run("train own --model interp --data @/events.csv " SMALL_CURVES "--latent 3 --enc-hidden 8 "
                              "--ref-points 6 --epochs 2 --budget 2trials --out @/curves"),
                  "%d");
    text = command_text("err.txt");
    ASSERT(!strstr(text, said));
    free(text);
    PASS();
}

/* An option that only some of the models read is for their trials, and ends no other. */
TEST options_of_some_trials_end_no_other(void) {
    char *text;
    ASSERT_EQ_FMT(DONE, command_run(SEARCH "--refit trees --latent 3 --epochs 2 --budget 9trials --out @/found"), "%d");
    text = command_text("found/trials.csv");
    ASSERT(strstr(text, "--model ") && !strstr(text, "impossible"));
    free(text);
    ASSERT(command_refused(SEARCH "--model enc --latent 3 --budget 9trials --out @/x",
                           "--latent: mTAND-Enc has no latent state"));
    ASSERT(command_refused(SEARCH "--interval 0.9 --budget 9trials --out @/x",
                           "--interval: it needs a number to predict, and the labels are classes"));
    PASS();
}

TEST the_clock_bounds_a_search(void) {
    const int status = command_run(SEARCH "--model enc --epochs 9 --budget 2s --out @/found");
    if (status == BAD_USE && command_says("err.txt", "no candidate had an epoch in that time"))
        SKIPm("this machine is too busy for a search of 2 s");
    ASSERT_EQ_FMT(DONE, status, "%d");
    ASSERT(command_says("err.txt", "best: trial "));
    ASSERT(access(command_path("found/last.safetensors"), F_OK) == 0);
    PASS();
}

TEST curves_and_numbers_are_searched_too(void) {
    char line[64];
    command_write("numbers.csv", "record,label\n");
    for (int r = 0; r < COMMAND_RECORDS; r++) {
        snprintf(line, sizeof line, "r%d,%d.5\n", r, r * 7 % COMMAND_RECORDS);
        command_append("numbers.csv", line);
    }
    ASSERT_EQ_FMT(DONE,
                  command_run("train own --data @/events.csv " SMALL_CURVES
                              "--latent 3 --enc-hidden 8 --ref-points 6 --epochs 3 --budget 3trials --out @/curves"),
                  "%d");
    ASSERT(command_says("err.txt", "seconds  mse ") && command_says("err.txt", "mtan eval"));
    ASSERT_EQ_FMT(DONE,
                  command_run("train own --data @/events.csv --labels @/numbers.csv " SMALL
                              "--model enc --enc-hidden 8 --ref-points 6 --epochs 3 --budget 3trials --out @/numbers"),
                  "%d");
    ASSERT(command_says("err.txt", "seconds  loss "));
    PASS();
}

/* The best so far stays, as a run that can be gone on with as the message says, and so does the table of this first
 * round. */
TEST an_interrupted_search_keeps_its_best(void) {
    const pid_t child = command_start(SEARCH "--model enc --epochs 90 --budget 9trials --out @/stopped", 0);
    const int waited = command_wait("stopped/trials/1/log.csv", 2);
    kill(child, SIGINT);
    const int status = command_finish(child);
    ASSERT(waited);
    ASSERT_EQ_FMT(INTERRUPTED, status, "%d");
    ASSERT(command_says("err.txt", "the best so far is in ") &&
           command_says("err.txt", "go on with --resume instead of --budget\n"));
    ASSERT(command_says("stopped/trials.csv", "trial,round,epochs,seconds,auc,end,options\n0,1,10,"));
    ASSERT(access(command_path("stopped/trials"), F_OK) != 0);
    ASSERT_EQ_FMT(DONE, command_run("selftest @/stopped/best.safetensors"), "%d");
    ASSERT(command_refused("train own " DATA "--lr 5 --out @/stopped --resume", "--lr: a resumed run keeps"));
    ASSERT_EQ_FMT(DONE, command_run(SEARCH "--model enc --epochs 90 --resume --quiet --out @/stopped"), "%d");
    PASS();
}

/* The table has what a later round did until then. Of an ensemble no run is left, and the message does not promise one. */
TEST the_table_of_a_stopped_search_is_up_to_date(void) {
    const pid_t child = command_start("train own --model interp --data @/events.csv " SMALL_CURVES
                                      "--latent 3 --enc-hidden 8 --ref-points 6 --epochs 180 --budget 9trials "
                                      "--ensemble 2 --out @/stopped",
                                      0);
    const int waited = command_wait("stopped/trials.csv", 4);
    kill(child, SIGINT);
    ASSERT_EQ_FMT(INTERRUPTED, command_finish(child), "%d");
    ASSERT(waited);
    char *text = command_text("err.txt");
    const int in_rounds = strstr(text, "best: trial ") == NULL;
    free(text);
    if (!in_rounds) SKIPm("the search ended before the signal");
    ASSERT(command_says("stopped/trials.csv", ",2,"));
    ASSERT(command_says("err.txt", "nothing to go on with; "));
    ASSERT(access(command_path("stopped/last.safetensors"), F_OK) != 0);
    PASS();
}

/* What a killed process left is swept away. */
TEST a_killed_search_is_started_anew(void) {
    const pid_t child = command_start(SEARCH "--model enc --epochs 90 --budget 9trials --out @/killed", 0);
    const int waited = command_wait("killed/trials/1/log.csv", 2);
    kill(child, SIGKILL);
    ASSERT_EQ_FMT(1000 + SIGKILL, command_finish(child), "%d");
    ASSERT(waited);
    ASSERT_EQ_FMT(DONE, command_run(SEARCH "--model enc --epochs 3 --budget 3trials --quiet --out @/killed"), "%d");
    ASSERT(access(command_path("killed/trials"), F_OK) != 0);
    PASS();
}

TEST members_have_the_settings_of_the_best(void) {
    ASSERT_EQ_FMT(
        DONE, command_run(SEARCH "--model enc --epochs 3 --budget 3trials --ensemble 2 --quiet --out @/joined"), "%d");
    ASSERT(access(command_path("joined/member-1/best.safetensors"), F_OK) == 0);
    ASSERT_EQ_FMT(DONE, command_run("selftest @/joined/best.safetensors"), "%d");
    PASS();
}

TEST what_cannot_be_searched_is_refused(void) {
    ASSERT(command_refused(SEARCH "--budget 1trials --out @/x", "or 2 to 81 trials: 9trials"));
    ASSERT(command_refused(SEARCH "--budget 100trials --out @/x", "or 2 to 81 trials: 9trials"));
    ASSERT(command_refused(SEARCH "--budget 9trials", "--out is missing"));
    ASSERT(command_refused(SEARCH "--budget 9trials --distributed --out @/x", "leave --distributed out"));
    ASSERT(mkfifo(command_path("pipe"), 0600) == 0);
    ASSERT(command_refused("train own --data @/pipe --labels @/labels.csv --budget 9trials --out @/x",
                           "--budget reads the data for every trial"));
    ASSERT(access(command_path("x"), F_OK) != 0);
    PASS();
}

SUITE(search_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(the_best_is_the_run_of_its_options);
    RUN_TEST(what_was_tried_is_told_and_kept);
    RUN_TEST(few_records_are_validated_in_turn);
    RUN_TEST(options_of_some_trials_end_no_other);
    RUN_TEST(the_clock_bounds_a_search);
    RUN_TEST(curves_and_numbers_are_searched_too);
    RUN_TEST(an_interrupted_search_keeps_its_best);
    RUN_TEST(the_table_of_a_stopped_search_is_up_to_date);
    RUN_TEST(a_killed_search_is_started_anew);
    RUN_TEST(members_have_the_settings_of_the_best);
    RUN_TEST(what_cannot_be_searched_is_refused);
}
