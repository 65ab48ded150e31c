/* The preset best on made-up sets in which one thing decides the class: the level, the spread, or where the observations lie. What a
 * statistician would find in a minute, the default for such data has to find too. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/mtan/command/commands.h"
#include "command_line.h"
#include "small.h"

enum { RECORDS = 240, OBSERVATIONS = 24 };
typedef enum { LEVEL, SPREAD, PLACE } decides;

/* Roughly normal: the sum of four even numbers has a variance of 4/3. */
static double noise(uint64_t *random) {
    double sum = 0;
    for (int i = 0; i < 4; i++) sum += (double)small_real(random);
    return sum * 0.866;
}

/* Times from 0 to 100; of PLACE half of them in a window that depends on the class. */
static double time_of(decides what, int label, int i, uint64_t *random) {
    const double u = ((double)small_real(random) + 1) / 2;
    return what == PLACE && i % 2 ? (label ? 20 : 60) + 20 * u : 100 * u;
}

static void write_set(decides what) {
    uint64_t random = 17;
    FILE *events = fopen(command_path("made.csv"), "w"), *labels;
    fprintf(events, "record,time,channel,value\n");
    for (int r = 0; r < RECORDS; r++)
        for (int i = 0; i < OBSERVATIONS; i++) {
            const int label = r % 2;
            const double time = time_of(what, label, i, &random), z = noise(&random);
            const double value = what == LEVEL ? z + label : what == SPREAD ? z * (1 + label) : z;
            fprintf(events, "r%03d,%.3f,x,%.4f\n", r, time, value);
        }
    fclose(events);
    labels = fopen(command_path("made-labels.csv"), "w");
    fprintf(labels, "record,label\n");
    for (int r = 0; r < RECORDS; r++) fprintf(labels, "r%03d,%s\n", r, r % 2 ? "b" : "a");
    fclose(labels);
}

/* The AUC of the test records, after a training with more options; NaN when something failed. */
static double auc(const char *more) {
    char line[512];
    snprintf(line, sizeof line,
             "train own --model enc --data @/made.csv --labels @/made-labels.csv --out @/made --quiet "
             "--threads 1 %s",
             more);
    if (command_run(line) != DONE) return -1;
    if (command_run("eval @/made/best.safetensors --data @/made.csv --labels @/made-labels.csv --json") != DONE)
        return -1;
    char *text = command_text("out.txt");
    const double found = command_json(text, "{", "auc");
    free(text);
    return found;
}

TEST finds_what_decides(decides what) {
    double found;
    write_set(what);
    found = auc("--preset best --seed 1 --ref-points 16 --embed 64 --enc-hidden 32 --head-hidden 32 --epochs 80");
    if (!(found > 0.9)) printf("  BAD AUC %.4f\n", found);
    ASSERT(found > 0.9);
    PASS();
}

/* A model file says by which preset it was made, and goes on with it. */
TEST the_preset_is_kept(void) {
    write_set(LEVEL);
    ASSERT(auc("--preset best --ref-points 4 --embed 8 --enc-hidden 8 --head-hidden 8 --epochs 1") >= 0);
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

SUITE(best_command_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    greatest_set_test_suffix("level");
    RUN_TEST1(finds_what_decides, LEVEL);
    greatest_set_test_suffix("spread");
    RUN_TEST1(finds_what_decides, SPREAD);
    greatest_set_test_suffix("place");
    RUN_TEST1(finds_what_decides, PLACE);
    RUN_TEST(the_preset_is_kept);
}
