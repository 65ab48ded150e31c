/* What own data is trained with, on made-up sets in which one thing decides the class. What a statistician would find in a minute, the
 * default has to find too: at least 95 % of what a random forest reaches that is handed 47 features, among them the ones that decide. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/mtan/command/commands.h"
#include "command_line.h"
#include "small.h"

enum { RECORDS = 240, FRESH = 400, OBSERVATIONS = 24, MORE = 48 };
typedef enum { LEVEL, SPREAD, PLACE, DENSITY, CROWD, SHAPE, PERIOD } decides;

/* forest: the AUC of scikit-learn's random forest on the fresh records, as tools/golden/forest.py prints it. */
static const struct {
    const char *name;
    double forest;
} sets[] = {
    [LEVEL] = {"level", 0.9161}, [SPREAD] = {"spread", 0.9577}, [PLACE] = {"place", 1.0},  [DENSITY] = {"density", 1.0},
    [CROWD] = {"crowd", 0.7982}, [SHAPE] = {"shape", 0.7570},   [PERIOD] = {"period", 1.0}};

static double even(uint64_t *random) {
    return ((double)small_real(random) + 1) / 2;
}

/* Roughly normal: the sum of four even numbers has a variance of 4/3. */
static double noise(uint64_t *random) {
    double sum = 0;
    for (int i = 0; i < 4; i++) sum += (double)small_real(random);
    return sum * 0.866;
}

/* Of DENSITY 8 to 15 in one class and twice as many in the other; of CROWD 10 to 29, or 18 to 37. */
static int count_of(decides what, int label, double u) {
    if (what == DENSITY) return (8 + (int)(8 * u)) * (1 + label);
    if (what == CROWD) return 10 + (int)(20 * u) + 8 * label;
    return what == SHAPE || what == PERIOD ? MORE : OBSERVATIONS;
}

/* Times from 0 to 100; of PLACE half of them in a window that depends on the class. */
static double time_of(decides what, int label, int i, double u) {
    return what == PLACE && i % 2 ? (label ? 20 : 60) + 20 * u : 100 * u;
}

/* u: of the record. SHAPE goes up and then down somewhere, or down and then up; PERIOD is 12 or 20, the phase any. */
static double value_of(decides what, int label, double time, double u, double z) {
    const double s = (time - 20 - 60 * u) / 8, turn = s < 0 ? -1 : 1;
    switch (what) {
    case LEVEL: return z + 0.4 * label;
    case SPREAD: return z * (1 + 0.4 * label);
    case SHAPE: return 0.4 * z + (label ? 2 : -2) * turn * exp(-s * s);
    case PERIOD: return 0.4 * z + sin(6.283185307179586 * (time / (label ? 12 : 20) + u));
    case PLACE:
    case DENSITY:
    case CROWD: break;
    }
    return z;
}

static void write_records(decides what, int n, const char *events_name, const char *labels_name, uint64_t *random) {
    FILE *events = fopen(command_path(events_name), "w"), *labels = fopen(command_path(labels_name), "w");
    fprintf(events, "record,time,channel,value\n");
    fprintf(labels, "record,label\n");
    for (int r = 0; r < n; r++) {
        const int label = r % 2;
        const double u = even(random);
        const int count = count_of(what, label, u);
        for (int i = 0; i < count; i++) {
            const double time = time_of(what, label, i, even(random)), z = noise(random);
            fprintf(events, "r%03d,%.3f,x,%.4f\n", r, time, value_of(what, label, time, u, z));
        }
        fprintf(labels, "r%03d,%s\n", r, label ? "b" : "a");
    }
    fclose(events), fclose(labels);
}

/* Records to train on, and others to judge by. */
static void write_draw(decides what, uint64_t draw) {
    uint64_t random = 17 + 1000003 * draw;
    write_records(what, RECORDS, "made.csv", "made-labels.csv", &random);
    write_records(what, FRESH, "fresh.csv", "fresh-labels.csv", &random);
}

static void write_set(decides what) {
    write_draw(what, 0);
}

/* The AUC of the fresh records, after a training with more options; -1 when something failed. */
static double auc(const char *out, const char *more) {
    char line[512];
    snprintf(line, sizeof line,
             "train own --model enc --data @/made.csv --labels @/made-labels.csv --out @/%s --quiet "
             "--threads 1 %s",
             out, more);
    if (command_run(line) != DONE) return -1;
    snprintf(line, sizeof line,
             "eval @/%s/best.safetensors --data @/fresh.csv --labels @/fresh-labels.csv --json --bootstrap 0", out);
    if (command_run(line) != DONE) return -1;
    char *text = command_text("out.txt");
    const double found = command_json(text, "{", "auc");
    free(text);
    return found;
}

#define SMALLER "--seed 2 --ref-points 32 --embed 64 --enc-hidden 32 --head-hidden 32 "

/* What a model learns does not depend on the compiler: long trainings in the quickest build alone. */
static int is_quick(void) {
#if defined(MTAN_DOUBLE) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
    return 0;
#else
    return 1;
#endif
}

TEST finds_what_decides(decides what) {
    double found;
    if (!is_quick()) SKIPm("where trainings are slow");
    write_set(what);
    found = auc("made", SMALLER "--lr 0.003");
    if (!(found >= 0.95 * sets[what].forest)) printf("  BAD AUC %.4f, a forest %.4f\n", found, sets[what].forest);
    ASSERT(found >= 0.95 * sets[what].forest);
    PASS();
}

/* Where the level decides, what the paper's model sees is all there is to see, and what else best reads is noise: this costs little. */
TEST loses_little_where_the_level_decides(void) {
    const int draws = 6;
    double best = 0, correct = 0;
    char out[32];
    if (!is_quick()) SKIPm("where trainings are slow");
    for (int i = 0; i < draws; i++) {
        write_draw(LEVEL, (uint64_t)i);
        snprintf(out, sizeof out, "best%d", i);
        best += auc(out, SMALLER) / draws;
        snprintf(out, sizeof out, "correct%d", i);
        correct += auc(out, SMALLER "--preset correct") / draws;
    }
    if (!(best >= correct - 0.012)) printf("  BAD mean AUC %.4f, correct %.4f\n", best, correct);
    ASSERT(best >= correct - 0.012);
    PASS();
}

/* A model file says by which preset it was made, and goes on with it. */
TEST the_preset_is_kept(void) {
    write_set(LEVEL);
    ASSERT(auc("made", "--ref-points 4 --embed 8 --enc-hidden 8 --head-hidden 8 --epochs 1") >= 0);
    ASSERT_EQ_FMT(DONE, command_run("inspect @/made/best.safetensors"), "%d");
    ASSERT(command_says("out.txt", "best"));
    ASSERT(command_refused("train own --model enc --data @/made.csv --labels @/made-labels.csv --out @/made --resume "
                           "--preset correct",
                           "preset"));
    ASSERT(command_refused("train own --model enc --data @/made.csv --labels @/made-labels.csv --out @/other "
                           "--preset better",
                           "must be one of faithful, correct, best"));
    PASS();
}

/* What is attention's alone stays away from a model without. */
TEST an_ablation_is_trained_too(void) {
    write_set(LEVEL);
    ASSERT(auc("made", "--encoder rbf --ref-points 4 --embed 8 --enc-hidden 8 --head-hidden 8 --epochs 1") >= 0);
    ASSERT(command_refused("train own --model enc --data @/made.csv --labels @/made-labels.csv --out @/other "
                           "--encoder rbf --statistics mean,spread",
                           "--statistics: it needs attention, and the encoder is rbf"));
    PASS();
}

/* A search tries it, too. */
TEST without_summaries_there_are_no_trees(void) {
    write_set(LEVEL);
    ASSERT(auc("made", "--summaries 0 --ref-points 4 --embed 8 --enc-hidden 8 --head-hidden 8 --epochs 1") >= 0);
    ASSERT(command_refused("train own --model enc --data @/made.csv --labels @/made-labels.csv --out @/other "
                           "--summaries 0 --trees 10",
                           "--trees: trees split by summaries or static columns: --summaries must be 1 or more"));
    PASS();
}

/* ---- streams ---- */

/* Line i of record r: a time out of order, and one that repeats another's. As numbers, or as dates of the year 2024. */
static void put_line(const char *name, int r, int i, int dates) {
    const int hour = i * 7 % 12;
    char time[32], line[96];
    if (dates) snprintf(time, sizeof time, "2024-01-%02dT%02d:00:00Z", 1 + r % 28, hour);
    else snprintf(time, sizeof time, "%d", hour);
    snprintf(line, sizeof line, "r%d,%s,%s,%d\n", r, time, i % 3 ? "heat" : "pulse", (r * 5 + i * 11) % 17);
    command_append(name, line);
}

/* `mtan stream` puts a line that comes late in its place: first, last and steps of a summary depend on the order. */
TEST a_stream_in_any_order(int dates) {
    enum { LINES = 15 };
    char *predicted, *streamed, line[32];
    command_write("file.csv", "record,time,channel,value\n"), command_write("lines.csv", "");
    for (int r = 0; r < COMMAND_RECORDS; r++)
        for (int i = 0; i < LINES; i++) put_line("file.csv", r, i, dates);
    for (int i = LINES; i-- > 0;)
        for (int r = 0; r < COMMAND_RECORDS; r++) put_line("lines.csv", r, (i * 4 + r) % LINES, dates);
    for (int r = 0; r < COMMAND_RECORDS; r++) sprintf(line, "r%d,predict\n", r), command_append("lines.csv", line);
    ASSERT_EQ_FMT(DONE,
                  command_run("train own --model enc --data @/file.csv --labels @/labels.csv --quiet --threads 1 "
                              "--epochs 2 --trees 30 --summaries 3 --out @/run"),
                  "%d");
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/file.csv --quiet"), "%d");
    predicted = command_text("out.txt");
    ASSERT_EQ_FMT(DONE, command_run("stream @/run/best.safetensors --data @/lines.csv --every request"), "%d");
    streamed = command_text("out.txt");
    ASSERT_STR_EQ(predicted, streamed);
    free(predicted), free(streamed);
    ASSERT_EQ_FMT(DONE, command_run("stream @/run/best.safetensors --data @/lines.csv --every request --keep 5"), "%d");
    ASSERT(command_says("err.txt", "came late to records of more than 5 observations (--keep)"));
    PASS();
}

SUITE(best_command_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    for (int i = 0; i < (int)(sizeof sets / sizeof sets[0]); i++) {
        greatest_set_test_suffix(sets[i].name);
        RUN_TEST1(finds_what_decides, (decides)i);
    }
    RUN_TEST(loses_little_where_the_level_decides);
    RUN_TEST(the_preset_is_kept);
    RUN_TEST(an_ablation_is_trained_too);
    RUN_TEST(without_summaries_there_are_no_trees);
    RUN_TESTp(a_stream_in_any_order, 0);
    RUN_TESTp(a_stream_in_any_order, 1);
}
