/* Runs of `mtan train`: what becomes of a folder, which data it belongs to, which epoch is the best. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_line.h"
#include "../../simd/mtan_simd.h"
#include "../../tools/mtan/command/commands.h"
#include "../../tools/mtan/command/shared_options.h"
#include "../../tools/mtan/model/files.h"
#include "../../tools/mtan/model/training.h"

#define DATA "--data @/events.csv --labels @/labels.csv "
#define TRAIN                                                                                                          \
    "train own --model enc " DATA "--enc-hidden 8 --embed 8 --ref-points 6 --head-hidden 6 --batch 8 --lr 0.01 "       \
    "--quiet "

/* ---- the best epoch ---- */

/* What `mtan train own` does before the first step. */
typedef struct small_run {
    options options;
    plan plan;
    dataset data;
    split split;
    prep prep;
    training training;
} small_run;

static int small_run_start(small_run *r) {
    static char events[160], labels[160],
        *words[] = {(char *)(uintptr_t) "mtan",
                    (char *)(uintptr_t) "train",
                    (char *)(uintptr_t) "own",
                    (char *)(uintptr_t) "--model=enc",
                    (char *)(uintptr_t) "--quiet",
                    events,
                    labels};
    char error[512];
    source_input in;
    memset(r, 0, sizeof *r);
    snprintf(events, sizeof events, "--data=%s", command_path("events.csv"));
    snprintf(labels, sizeof labels, "--labels=%s", command_path("labels.csv"));
    if (!options_parse(&r->options, sizeof words / sizeof words[0], words)) return 0;
    in = option_input(&r->options, NULL);
    return plan_make(&r->plan, &r->options) && source_load(&r->data, &r->plan.source, &in) &&
           plan_prepare(&r->plan, &r->data, &r->split, &r->prep) &&
           training_start(&r->training, &r->plan, &r->data, &r->split, mtan_backend_best(), 1, NULL, error);
}

static void small_run_stop(small_run *r) {
    training_stop(&r->training);
    prep_free(&r->prep), split_free(&r->split), dataset_free(&r->data);
}

/* One epoch, at whose end the weights are NaN or not. What training_end_epoch returns. */
static int end_epoch(training *t, int poisoned) {
    const size_t n = mtan_weights_count(&t->model.config);
    mtan_real *kept = tool_calloc(n, sizeof *kept);
    epoch_result result;
    step_result step;
    char error[512];
    int best;
    while (training_step(t, &step, error) == 1) continue;
    memcpy(kept, t->weights, n * sizeof *kept);
    for (size_t i = 0; poisoned && i < n; i++) t->weights[i] = (mtan_real)NAN;
    best = training_end_epoch(t, &result, error);
    memcpy(t->weights, kept, n * sizeof *kept);
    free(kept);
    return best;
}

TEST an_epoch_without_a_number_is_never_the_best(void) {
    small_run r;
    double best;
    ASSERT(small_run_start(&r));
    ASSERT_EQ_FMT(0, end_epoch(&r.training, 1), "%d");
    ASSERT(r.training.best_epoch == 0 && r.training.since_best == 1);
    ASSERT_EQ_FMT(1, end_epoch(&r.training, 0), "%d");
    ASSERT(r.training.best_epoch == 2 && isfinite(best = r.training.best));
    ASSERT_EQ_FMT(0, end_epoch(&r.training, 1), "%d");
    ASSERT(r.training.best_epoch == 2 && r.training.best == best && r.training.since_best == 1);
    small_run_stop(&r);
    PASS();
}

/* Changes a number of one digit in the metadata of a model file. */
static int set_digit(const char *name, const char *key, char digit) {
    char error[512], *bytes, *at = NULL;
    size_t n = 0, length = strlen(key);
    int good;
    if (!(bytes = file_read(command_path(name), &n, error))) return 0;
    for (size_t i = 0; i + length + 4 < n && !at; i++)
        if (memcmp(bytes + i, key, length) == 0) at = bytes + i + length;
    good = at && memcmp(at, "\":\"", 3) == 0;
    if (good) at[3] = digit;
    good = good && file_write(command_path(name), bytes, n, error);
    free(bytes);
    return good;
}

/* The state of a run whose only epoch gave no number to choose by. */
TEST a_run_without_a_best_epoch_fails(void) {
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 1 --out @/run"), "%d");
    ASSERT(set_digit("run/last.safetensors", "mtan.run.best_epoch", '0'));
    ASSERT_EQ_FMT(BAD_USE, command_run("train own " DATA "--quiet --out @/run --resume"), "%d");
    ASSERT(command_says("err.txt", "no best model: in no epoch was the validation loss a finite number"));
    PASS();
}

SUITE(runs_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(an_epoch_without_a_number_is_never_the_best);
    RUN_TEST(a_run_without_a_best_epoch_fails);
}
