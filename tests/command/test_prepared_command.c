/* The C route against the command: a model file that `mtan train` wrote, raw observations, and nothing but mtan.h must give what
 * `mtan predict` prints, to the last digit. On data made here, in any order, with repeats, codes and dates; and on the published data
 * sets where MTAN_PHYSIONET, MTAN_ACTIVITY and MTAN_MIMIC3 name their folders. */
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/data/activity.h"
#include "../../tools/data/mimic3.h"
#include "../../tools/data/physionet.h"
#include "../../tools/mtan/command/commands.h"
#include "command_line.h"

/* ---- mtan.h alone ---- */

typedef struct route {
    char *blob;
    mtan_real *weights;
    void *prep_memory;
    mtan_file file;
    mtan_model model;
    mtan_prep prep;
} route;

static int route_open(route *r, const char *path) {
    FILE *in = fopen(path, "rb");
    size_t bytes, count = 0, room = 0;
    memset(r, 0, sizeof *r);
    if (!in) return 0;
    r->blob = malloc(1 << 22);
    bytes = fread(r->blob, 1, 1 << 22, in);
    fclose(in);
    if (mtan_file_open(&r->file, r->blob, bytes) != MTAN_OK) return 0;
    if (mtan_model_load_count(&r->file, NULL, &count) != MTAN_OK) return 0;
    r->weights = malloc(count * sizeof *r->weights);
    if (mtan_model_load(&r->model, r->weights, count, &r->file, NULL) != MTAN_OK) return 0;
    if (mtan_prep_size(&r->file, &room) != MTAN_OK) return 0;
    r->prep_memory = malloc(room);
    return mtan_prep_open(&r->prep, &r->file, r->prep_memory, room, NULL) == MTAN_OK;
}

static void route_close(route *r) {
    free(r->blob), free(r->weights), free(r->prep_memory);
}

/* Rows of probabilities (stb_ds array) of one raw record; NULL where the library refused. */
static mtan_real *route_classify(route *r, const mtan_observation *raw, int32_t n) {
    const int32_t room = n + r->prep.channels;
    mtan_event *events = malloc((size_t)room * sizeof *events + 1);
    mtan_bounds most = {1, room, room};
    mtan_real *p = NULL;
    mtan_prepared found;
    mtan_predictor run;
    mtan_record record;
    int32_t times = 1;
    size_t bytes = 0;
    memset(&record, 0, sizeof record);
    mtan_status status = mtan_prep_record(&r->prep, raw, n, events, room, &found);
    if (status == MTAN_OK) status = mtan_predictor_size(&r->model, &most, &bytes);
    void *memory = malloc(bytes + 1);
    if (status == MTAN_OK) status = mtan_predictor_init(&run, &r->model, &most, memory, bytes);
    record.events = events, record.n_events = found.events;
    if (status == MTAN_OK && r->model.config.classify == MTAN_CLASSIFY_TIME)
        status = mtan_record_times(&record, NULL, &times);
    if (status == MTAN_OK) {
        arrsetlen(p, (size_t)(times * r->model.config.classes));
        status = mtan_predictor_classify(&run, &record, 1, p);
    }
    free(events), free(memory);
    if (status == MTAN_OK) return p;
    printf("  BAD %s\n", mtan_status_message(status));
    arrfree(p);
    return NULL;
}

/* ---- against the command's rows ---- */

/* The next row of out.txt must end with these probabilities, as the command prints them, and a class. */
static int next_row_has(char **at, const mtan_real *p, int32_t classes) {
    char expected[1024] = "", *end = strchr(*at, '\n'), *last;
    for (int32_t k = 0; k < classes; k++)
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), ",%.9g", (double)p[k]);
    if (!end) return printf("  BAD no row is left\n"), 0;
    *end = 0;
    if ((last = strrchr(*at, ','))) *last = 0;
    const size_t n = strlen(*at), m = strlen(expected);
    const int same = n > m && strcmp(*at + n - m, expected) == 0;
    if (!same) printf("  BAD got %s, expected %s\n", *at, expected);
    *at = end + 1;
    return same;
}

static int rows_have(char **at, const mtan_real *p, int32_t classes) {
    int good = p != NULL;
    for (size_t i = 0; good && i < arrlenu(p); i += (size_t)classes) good = next_row_has(at, p + i, classes);
    return good;
}

/* Every record of a data set as its loader has it, in its own units. */
static int same_for_all(const char *model, const dataset *d) {
    char *text = command_text("out.txt"), *at = strchr(text, '\n') + 1;
    mtan_observation *raw = NULL;
    route r;
    int good = route_open(&r, model);
    for (size_t i = 0; good && i < arrlenu(d->records); i++) {
        const dataset_record *record = &d->records[i];
        arrsetlen(raw, (size_t)record->n_events);
        for (int32_t j = 0; j < record->n_events; j++) { /* backwards: the order does not matter */
            const mtan_event *e = &d->events[record->event0 + (size_t)(record->n_events - 1 - j)];
            raw[j].time = (double)e->time, raw[j].channel = e->channel, raw[j].value = (double)e->value;
        }
        mtan_real *p = route_classify(&r, raw, record->n_events);
        good = rows_have(&at, p, r.model.config.classes);
        if (!good) printf("  record %s\n", dataset_name(d, i));
        arrfree(p);
    }
    good = good && *at == 0;
    arrfree(raw);
    route_close(&r);
    free(text);
    return good;
}

#define SMALL "--epochs 1 --embed 8 --enc-hidden 8 --ref-points 8 --head-hidden 8 --quiet --out @/run "

TEST physionet_has_the_bits_of_predict(const char *preset) {
    const char *folder = getenv("MTAN_PHYSIONET");
    char line[512];
    dataset d;
    if (!folder) SKIPm("MTAN_PHYSIONET is not set");
    memset(&d, 0, sizeof d);
    snprintf(line, sizeof line, "train physionet-enc --data %s --preset %s " SMALL, folder, preset);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    snprintf(line, sizeof line, "predict @/run/best.safetensors --data %s --backend scalar", folder);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    ASSERT(physionet_load(&d, folder, 'a'));
    ASSERT(same_for_all(command_path("run/best.safetensors"), &d));
    dataset_free(&d);
    PASS();
}

TEST activity_has_the_bits_of_predict(void) {
    const char *folder = getenv("MTAN_ACTIVITY");
    char line[512];
    dataset d;
    if (!folder) SKIPm("MTAN_ACTIVITY is not set");
    memset(&d, 0, sizeof d);
    snprintf(line, sizeof line, "train activity-enc --data %s " SMALL, folder);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    snprintf(line, sizeof line, "predict @/run/best.safetensors --data %s --backend scalar", folder);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    ASSERT(activity_load(&d, folder, MTAN_CORRECT));
    ASSERT(same_for_all(command_path("run/best.safetensors"), &d));
    dataset_free(&d);
    PASS();
}

TEST mimic3_has_the_bits_of_predict(void) {
    const char *folder = getenv("MTAN_MIMIC3");
    char line[512];
    dataset d;
    if (!folder) SKIPm("MTAN_MIMIC3 is not set");
    memset(&d, 0, sizeof d);
    snprintf(line, sizeof line, "train mimic3-enc --data %s " SMALL, folder);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    snprintf(line, sizeof line, "predict @/run/best.safetensors --data %s --backend scalar", folder);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    ASSERT(mimic3_load(&d, folder, 0, NULL, NULL)); /* series without an observation are the library's to fill */
    ASSERT(same_for_all(command_path("run/best.safetensors"), &d));
    dataset_free(&d);
    PASS();
}

/* ---- own data ---- */

enum { PATIENTS = 40, ROWS = 9 };

/* Row k of patient i: hours on the patient's clock, a channel, a value. Times repeat; rows come in no order. */
static mtan_observation row_of(int i, int k) {
    const int sick = i % 2, slot = k * 5 % ROWS;
    const double hour = slot * 2.25 + (i * 7 % 4) * 0.5 - (slot % 4 == 3 ? 2.25 : 0);
    mtan_observation x = {hour, k % 3, 60 + 20 * (k % 3) + 3.7 * sick * slot / ROWS + (i * 13 + k * 29) % 17 * 0.3};
    return x;
}

/* Times as numbers, or as minutes since midnight of a day of each patient's own. */
static void write_own(int dates) {
    FILE *events = fopen(command_path("own.csv"), "w"), *labels = fopen(command_path("own_labels.csv"), "w");
    fputs("record,time,channel,value\n", events), fputs("record,label\n", labels);
    for (int i = 0; i < PATIENTS; i++) {
        for (int k = 0; k < ROWS; k++) {
            const mtan_observation x = row_of(i, k);
            char time[40];
            const int minutes = 90 + (int)(60 * x.time);
            snprintf(time, sizeof time, "%.17g", x.time);
            if (dates)
                snprintf(time, sizeof time, "2021-03-%02dT%02d:%02d:00Z", 1 + i % 28 + minutes / 1440,
                         minutes / 60 % 24, minutes % 60);
            fprintf(events, "p%02d,%s,c%d,%.17g\n", i, time, (int)x.channel, x.value);
        }
        fprintf(labels, "p%02d,%s\n", i, i % 2 ? "sick" : "well");
    }
    fclose(events), fclose(labels);
}

TEST own_data_has_the_bits_of_predict(int dates) {
    char *text, *at;
    route r;
    write_own(dates);
    ASSERT_EQ_FMT(
        DONE, command_run("train own --model enc --data @/own.csv --labels @/own_labels.csv --positive sick " SMALL),
        "%d");
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/own.csv --backend scalar"), "%d");
    text = command_text("out.txt"), at = strchr(text, '\n') + 1;
    ASSERT(route_open(&r, command_path("run/best.safetensors")));
    ASSERT_STR_EQ("sick", r.prep.class_names[r.prep.positive]);
    ASSERT_EQ_FMT(dates, r.prep.from_first, "%d");
    ASSERT_STR_EQ(dates ? "hours" : "", r.prep.unit);
    for (int i = 0; i < PATIENTS; i++) {
        mtan_observation raw[ROWS];
        for (int k = 0; k < ROWS; k++) {
            char name[8];
            raw[k] = row_of(i, k);
            snprintf(name, sizeof name, "c%d", (int)raw[k].channel);
            raw[k].channel = mtan_prep_channel_named(&r.prep, name);
            if (dates) raw[k].time += 24 * i; /* on whatever clock: they are counted from the first */
        }
        mtan_real *p = route_classify(&r, raw, ROWS);
        ASSERT(rows_have(&at, p, 2));
        arrfree(p);
    }
    ASSERT_EQ(0, *at);
    route_close(&r);
    free(text);
    PASS();
}

TEST a_positive_class_has_to_exist(void) {
    write_own(0);
    ASSERT_EQ_FMT(BAD_USE,
                  command_run("train own --model enc --data @/own.csv --labels @/own_labels.csv --positive ill " SMALL),
                  "%d");
    ASSERT(command_says("err.txt", "--positive ill: no class of the data is called so"));
    PASS();
}

/* ---- far outside of training ---- */

TEST wrong_units_are_told(void) {
    static const char *const lines[] = {"predict @/run/best.safetensors --data @/wrong.csv",
                                        "stream @/run/best.safetensors --data @/wrong.csv"};
    FILE *out;
    char line[160];
    write_own(0);
    ASSERT_EQ_FMT(DONE, command_run("train own --model enc --data @/own.csv --labels @/own_labels.csv " SMALL), "%d");
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/own.csv --strict"), "%d");
    out = fopen(command_path("wrong.csv"), "w");
    fputs("record,time,channel,value\na,1,c0,600\na,2,c0,61\na,3,c0,-700\na,500,c1,80\n", out);
    fclose(out);
    for (int i = 0; i < 2; i++) {
        ASSERT_EQ_FMT(DONE, command_run(lines[i]), "%d");
        ASSERT(command_says("err.txt", "channel c0: 2 values far outside of training's 60 to "));
        ASSERT(command_says("err.txt", "the first 600: is the unit the same?"));
        ASSERT(command_says("err.txt", "1 observation at times far outside of training's 0 to "));
        snprintf(line, sizeof line, "%s --strict", lines[i]);
        ASSERT_EQ_FMT(BAD_RESULT, command_run(line), "%d");
    }
    PASS();
}

TEST extrapolation_is_told(void) {
    char *text;
    FILE *out;
    write_own(0);
    ASSERT_EQ_FMT(
        DONE,
        command_run("train own --model interp --data @/own.csv --latent 2 --dec-hidden 4 --mlp-hidden 4 --batch 16 "
                    "--epochs 1 --embed 8 --enc-hidden 8 --ref-points 8 --quiet --out @/run"),
        "%d");
    out = fopen(command_path("one.csv"), "w");
    fputs("record,time,channel,value\na,2,c0,60\na,4,c1,81\n", out);
    fclose(out);
    ASSERT_EQ_FMT(DONE, command_run("interpolate @/run/best.safetensors --data @/one.csv --at 1:5:1"), "%d");
    text = command_text("out.txt");
    char *at = strchr(text, '\n') + 1;
    for (int row = 0; row < 15; row++) { /* five times, three channels */
        char *end = strchr(at, '\n');
        ASSERT(end);
        ASSERT_EQ_FMT(row / 3 == 0 || row / 3 == 4 ? '1' : '0', end[-1], "%c");
        at = end + 1;
    }
    free(text);
    ASSERT_EQ_FMT(DONE, command_run("interpolate @/run/best.safetensors --data @/one.csv --at 5:5:1 --json"), "%d");
    ASSERT(command_says("out.txt", "\"extrapolated\": true}"));
    PASS();
}

SUITE(prepared_command_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    greatest_set_test_suffix("numbers");
    RUN_TEST1(own_data_has_the_bits_of_predict, 0);
    greatest_set_test_suffix("dates");
    RUN_TEST1(own_data_has_the_bits_of_predict, 1);
    greatest_set_test_suffix("correct");
    RUN_TEST1(physionet_has_the_bits_of_predict, "correct");
    greatest_set_test_suffix("faithful");
    RUN_TEST1(physionet_has_the_bits_of_predict, "faithful");
    RUN_TEST(activity_has_the_bits_of_predict);
    RUN_TEST(mimic3_has_the_bits_of_predict);
    RUN_TEST(a_positive_class_has_to_exist);
    RUN_TEST(wrong_units_are_told);
    RUN_TEST(extrapolation_is_told);
}
