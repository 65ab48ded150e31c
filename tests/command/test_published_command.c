/* The commands on small copies of the published data sets, as their authors ship them: Human Activity and MIMIC-III. PhysioNet's
 * is in test_own_command.c. */
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
#include "../../tools/mtan/model/bundle.h"

#define SMALL "--enc-hidden 4 --embed 4 --ref-points 4 --head-hidden 3 --batch 8 --threads 1 --epochs 1 --out @/run "

static void add(FILE *file, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (vfprintf(file, format, arguments) < 0) perror("mtan: build"), exit(2);
    va_end(arguments);
}

static FILE *make(const char *name) {
    FILE *file = fopen(command_path(name), "w");
    if (!file) perror("mtan: build"), exit(2);
    return file;
}

/* The metadata of a model file; free it. */
static char *metadata(const char *name, const char *key) {
    char error[512], *text;
    bundle b;
    if (!bundle_read(&b, command_path(name), error)) return tool_text(error);
    text = tool_text(bundle_text(&b, key, "(none)"));
    bundle_free(&b);
    return text;
}

static int count_lines(const char *name) {
    char *text = command_text(name);
    int n = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) n++;
    free(text);
    return n;
}

/* ---- Human Activity ---- */

/* Labels and predictions are of times: fifty to a window. */
TEST activity_has_classes_of_times(void) {
    command_activity("activity");
    ASSERT_EQ_FMT(DONE, command_run("train activity-enc --data @/activity --quiet " SMALL), "%d");
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/activity"), "%d");
    ASSERT_EQ_FMT(1 + 30 * 50, count_lines("out.txt"), "%d");
    ASSERT(command_says("out.txt",
                        "record,time,p_walking,p_falling,p_lying,p_sitting,p_standing up,p_on all fours,p_sitting on "
                        "the ground,p_unused-7,p_unused-8,p_unused-9,p_unused-10,predicted\nA01-0,"));
    ASSERT_EQ_FMT(DONE, command_run("eval @/run/best.safetensors --data @/activity --split all --json --bootstrap 0"),
                  "%d");
    ASSERT(command_is_json("out.txt") && command_says("out.txt", "\"records\": 30"));
    ASSERT_EQ_FMT(DONE, command_run("eval @/run/best.safetensors --data @/activity --split all --bootstrap 0"), "%d");
    ASSERT(command_says("out.txt", "walking") && command_says("out.txt", "falling"));
    PASS();
}

/* A person is on one side: with six windows to each, every part has a multiple of six. */
TEST activity_is_split_by_person(void) {
    char part[8], line[160];
    static const char *const parts[] = {"train", "valid", "test"};
    int all = 0;
    command_activity("activity");
    ASSERT_EQ_FMT(
        DONE,
        command_run("train activity-full --by-group --data @/activity/ConfLongDemo_JSI.txt --latent 2 --dec-hidden 3 "
                    "--mlp-hidden 3 --quiet " SMALL),
        "%d");
    for (int i = 0; i < 3; i++) {
        snprintf(part, sizeof part, "%s", parts[i]);
        snprintf(line, sizeof line, "predict @/run/best.safetensors --data @/activity --split %s --samples 0", part);
        ASSERT_EQ_FMT(DONE, command_run(line), "%d");
        const int windows = (count_lines("out.txt") - 1) / 50;
        ASSERT(windows > 0 && windows % 6 == 0);
        all += windows;
    }
    ASSERT_EQ_FMT(30, all, "%d");
    PASS();
}

/* ---- MIMIC-III ---- */

/* Thirty admissions of as many patients: a pulse of 80 in all, an oxygen saturation of 97 in every second, nothing else. */
static void write_mimic3(void) {
    FILE *file;
    mkdir(command_path("mimic3"), 0777);
    file = make("mimic3/ADMISSIONS.csv");
    add(file, "ROW_ID,SUBJECT_ID,HADM_ID,ADMITTIME,DISCHTIME,DEATHTIME,DIAGNOSIS,HOSPITAL_EXPIRE_FLAG,HAS_CHARTEVENTS_"
              "DATA\n");
    for (int i = 0; i < 30; i++)
        add(file, "1,%d,%d,2130-01-01 12:00:00,2130-01-09 12:00:00,,SEPSIS,%d,1\n", 100 + i, 200 + i, i % 3 == 0);
    fclose(file);
    file = make("mimic3/ICUSTAYS.csv");
    add(file, "ROW_ID,SUBJECT_ID,HADM_ID,ICUSTAY_ID,DBSOURCE,INTIME\n");
    for (int i = 0; i < 30; i++) add(file, "1,%d,%d,9,carevue,2130-01-01 12:00:00\n", 100 + i, 200 + i);
    fclose(file);
    file = make("mimic3/CHARTEVENTS.csv");
    add(file,
        "ROW_ID,SUBJECT_ID,HADM_ID,ICUSTAY_ID,ITEMID,CHARTTIME,STORETIME,CGID,VALUE,VALUENUM,VALUEUOM,WARNING,ERROR\n");
    for (int i = 0; i < 30; i++)
        for (int k = 0; k < 4; k++) {
            add(file, "1,%d,%d,9,211,2130-01-01 1%d:00:00,,,\"80\",80,u,0,0\n", 100 + i, 200 + i, 3 + k);
            if (i % 2) add(file, "1,%d,%d,9,646,2130-01-01 1%d:30:00,,,\"97\",97,u,0,0\n", 100 + i, 200 + i, 3 + k);
        }
    fclose(file);
    file = make("mimic3/OUTPUTEVENTS.csv");
    add(file, "row_id,subject_id,hadm_id,icustay_id,charttime,itemid,value,valueuom,storetime,cgid,iserror\n");
    fclose(file);
}

/* Means of the training records go into the file; a record without a channel gets its mean at time 0, so it is predicted as one
 * that says so itself. */
TEST mimic3_gives_its_means(const char *preset) {
    char line[256], *text, *first, *second;
    write_mimic3();
    snprintf(line, sizeof line, "train mimic3-enc --preset %s --data @/mimic3 --quiet " SMALL, preset);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    text = metadata("run/best.safetensors", "mtan.prep.fill");
    ASSERT(strncmp(text, "97 80 nan nan ", 14) == 0);
    free(text);
    command_write("without.csv", "record,time,channel,value\na,1,HR,80\na,2,HR,80\n");
    command_write("with.csv", "record,time,channel,value\na,0,SpO2,97\na,1,HR,80\na,2,HR,80\n");
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/without.csv"), "%d");
    first = command_text("out.txt");
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/with.csv"), "%d");
    second = command_text("out.txt");
    ASSERT_STR_EQ(first, second);
    free(first), free(second);
    PASS();
}

TEST mimic3_is_evaluated_and_streamed(void) {
    char *text;
    write_mimic3();
    ASSERT_EQ_FMT(DONE, command_run("train mimic3-enc --data @/mimic3 --fold 1 --quiet " SMALL), "%d");
    ASSERT_EQ_FMT(DONE, command_run("eval @/run/best.safetensors --data @/mimic3 --bootstrap 0"), "%d");
    ASSERT(command_says("out.txt", "6 records of the part 'test'")); /* a fifth */
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/mimic3"), "%d");
    ASSERT_EQ_FMT(1 + 30, count_lines("out.txt"), "%d");
    command_write("lines.csv", "a,1,HR,80\n");
    ASSERT_EQ_FMT(DONE, command_run("stream @/run/best.safetensors --data @/lines.csv"), "%d");
    ASSERT(command_says("err.txt",
                        "series without an observation stay so: `mtan predict` gives them their mean at time 0"));
    if (command_on_terminal("predict @/run/best.safetensors --data @/mimic3") == DONE) {
        text = command_text("terminal.txt");
        ASSERT(strstr(text, "\r\033[Kreading "));
        free(text);
    }
    PASS();
}

/* ---- the synthetic series, which need no data ---- */

TEST the_toy_makes_its_own_data(void) {
    const mtan_file_pair pairs[2] = {{"mtan.data.kind", "toy"}, {"mtan.data.variant", "smooth"}};
    const mtan_file_pair odd[2] = {{"mtan.data.kind", "toy"}, {"mtan.data.variant", "odd"}};
    command_tiny("toy.safetensors", TINY_INTERP, "channels 1", 1, pairs, 2);
    ASSERT_EQ_FMT(DONE, command_run("interpolate @/toy.safetensors --at 0:1:1 --samples 0"), "%d");
    ASSERT_EQ_FMT(1 + 1000 * 2, count_lines("out.txt"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("interpolate @/toy.safetensors --at 0.5:0.5:1 --samples 2 --json"), "%d");
    ASSERT_EQ_FMT(1000, count_lines("out.txt"), "%d");
    ASSERT(command_says("out.txt", "\"time\": 0.5, \"channel\": \"0\", \"mean\": ") &&
           command_says("out.txt", ", \"sd\": "));
    command_tiny("toy.safetensors", TINY_INTERP, "channels 1", 1, odd, 2);
    ASSERT(command_refused("interpolate @/toy.safetensors --at 0:1:1", "odd"));
    PASS();
}

SUITE(published_command_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(activity_has_classes_of_times);
    RUN_TEST(activity_is_split_by_person);
    RUN_TESTp(mimic3_gives_its_means, "correct");
    RUN_TESTp(mimic3_gives_its_means, "faithful");
    RUN_TEST(mimic3_is_evaluated_and_streamed);
    RUN_TEST(the_toy_makes_its_own_data);
}
