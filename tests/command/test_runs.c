/* Runs of `mtan train`: what becomes of a folder, which data it belongs to, which epoch is the best. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command_line.h"
#include "../../simd/mtan_simd.h"
#include "../../tools/mtan/command/commands.h"
#include "../../tools/mtan/model/shared_options.h"
#include "../../tools/mtan/base/files.h"
#include "../../tools/mtan/fit/training.h"

#define DATA "--data @/events.csv --labels @/labels.csv "
#define TRAIN                                                                                                          \
    "train own --model enc " DATA "--enc-hidden 8 --embed 8 --ref-points 6 --head-hidden 6 --batch 8 --lr 0.01 "       \
    "--quiet " COMMAND_STEADY
#define CURVES                                                                                                         \
    "train own --model interp --data @/events.csv --enc-hidden 8 --embed 8 --ref-points 6 --latent 2 --dec-hidden 5 "  \
    "--mlp-hidden 6 --batch 16 --quiet " COMMAND_STEADY

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

static int small_run_start(small_run *r, const char *model, const char *option) {
    static char events[160], labels[160],
        *words[] = {(char *)(uintptr_t) "mtan",
                    (char *)(uintptr_t) "train",
                    (char *)(uintptr_t) "own",
                    (char *)(uintptr_t) "--quiet",
                    events,
                    labels,
                    NULL,
                    NULL};
    char error[512];
    source_input in;
    memset(r, 0, sizeof *r);
    snprintf(events, sizeof events, "--data=%s", command_path("events.csv"));
    snprintf(labels, sizeof labels, "--labels=%s", command_path("labels.csv"));
    words[6] = (char *)(uintptr_t)model, words[7] = (char *)(uintptr_t)option;
    if (!options_parse(&r->options, sizeof words / sizeof words[0], words)) return 0;
    in = option_input(&r->options, NULL);
    return plan_make(&r->plan, &r->options) && source_load(&r->data, &r->plan.source, &in) &&
           plan_prepare(&r->plan, &r->options, &r->data, &r->split, &r->prep, NULL) &&
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
    ASSERT(small_run_start(&r, "--model=enc", "--seed=0"));
    ASSERT_EQ_FMT(-1, end_epoch(&r.training, 1), "%d");
    ASSERT(r.training.best_epoch == 0 && r.training.diverged);
    ASSERT_EQ_FMT(1, end_epoch(&r.training, 0), "%d");
    ASSERT(r.training.best_epoch > 0 && isfinite(best = r.training.best));
    ASSERT_EQ_FMT(-1, end_epoch(&r.training, 1), "%d");
    ASSERT(r.training.best_epoch > 0 && r.training.best == best);
    small_run_stop(&r);
    PASS();
}

/* How many targets of the last batch lie at times that its records show, and how many there are. */
static void count_targets(const training *t, int32_t *shown, int32_t *all) {
    *shown = *all = 0;
    for (int32_t b = 0; b < t->plan->batch && b < (int32_t)arrlen(t->split->part[SPLIT_TRAIN]); b++) {
        const mtan_record *r = &t->records[b];
        *all += r->n_targets;
        for (int32_t i = 0; i < r->n_targets; i++) {
            int32_t k = 0;
            while (k < r->n_events && !(r->events[k].time >= r->targets[i].time)) k++;
            *shown += k < r->n_events && !(r->events[k].time > r->targets[i].time);
        }
    }
}

/* What is copied says nothing of how far off a guess is. */
TEST a_variance_is_learned_from_what_is_hidden(void) {
    small_run r;
    step_result step;
    char error[512];
    int32_t shown, all;
    for (int learned = 0; learned < 2; learned++) {
        ASSERT(small_run_start(&r, "--model=interp", learned ? "--variance=learned" : "--variance=fixed"));
        ASSERT_EQ_FMT(1, training_step(&r.training, &step, error), "%d");
        count_targets(&r.training, &shown, &all);
        ASSERT(all > 0 && (learned ? shown == 0 : shown > all / 3));
        small_run_stop(&r);
    }
    PASS();
}

/* Replaces the first such text in a file by one of the same length: metadata of a model file can be changed so. */
static int replace(const char *name, const char *from, const char *to) {
    char error[512], *bytes, *at = NULL;
    const size_t length = strlen(from);
    size_t n = 0;
    int good;
    if (!(bytes = file_read(command_path(name), &n, error))) return 0;
    for (size_t i = 0; i + length < n && !at; i++)
        if (memcmp(bytes + i, from, length) == 0) at = bytes + i;
    if (at) memcpy(at, to, length);
    good = at && file_write(command_path(name), bytes, n, error);
    free(bytes);
    return good;
}

/* The state of a run whose only epoch gave no number to choose by. */
TEST a_run_without_a_best_epoch_fails(void) {
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 1 --out @/run"), "%d");
    ASSERT(replace("run/last.safetensors", "best_epoch\":\"1", "best_epoch\":\"0"));
    ASSERT_EQ_FMT(BAD_USE, command_run("train own " DATA "--quiet --out @/run --resume"), "%d");
    ASSERT(command_says("err.txt", "no best model: in no epoch was the validation loss a finite number"));
    PASS();
}

/* ---- whose data it is ---- */

/* events.csv once more, with other values or with the rows of every record turned round. */
static void write_events(const char *name, double factor, int turned) {
    char *text = command_text("events.csv"), *line = strchr(text, '\n') + 1, **rows = NULL;
    command_append(name, "record,time,channel,value\n");
    for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) *end = 0, arrput(rows, line);
    for (size_t first = 0, next; first < arrlenu(rows); first = next) {
        const size_t length = strcspn(rows[first], ",") + 1;
        for (next = first; next < arrlenu(rows) && strncmp(rows[next], rows[first], length) == 0;) next++;
        for (size_t i = first; i < next; i++) {
            const char *row = rows[turned ? first + next - 1 - i : i], *value = strrchr(row, ',') + 1;
            char copy[128];
            snprintf(copy, sizeof copy, "%.*s%.4f\n", (int)(value - row), row, factor * strtod(value, NULL));
            command_append(name, copy);
        }
    }
    arrfree(rows);
    free(text);
}

/* labels.csv with the two classes exchanged. */
static void write_flipped(const char *name) {
    char line[32];
    command_append(name, "record,label\n");
    for (int r = 0; r < COMMAND_RECORDS; r++) {
        snprintf(line, sizeof line, "r%d,%s\n", r, r % 2 ? "down" : "up");
        command_append(name, line);
    }
}

#define RESUME(events, labels)                                                                                         \
    "train own --data @/" events " --labels @/" labels " --quiet --epochs 4 --out @/run --resume"
#define EVAL(events, labels) "eval @/run/best.safetensors --bootstrap 0 --data @/" events " --labels @/" labels

TEST a_run_is_resumed_with_its_own_data(void) {
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 4 --out @/whole"), "%d");
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 2 --out @/run"), "%d");
    write_events("large.csv", 1000, 0), write_events("turned.csv", 1, 1), write_flipped("flipped.csv");
    ASSERT_EQ_FMT(BAD_USE, command_run(RESUME("large.csv", "labels.csv")), "%d");
    ASSERT(
        command_says("err.txt", "not the data of the run to be resumed: the same records with other values or times"));
    ASSERT_EQ_FMT(BAD_USE, command_run(RESUME("events.csv", "flipped.csv")), "%d");
    ASSERT(command_says("err.txt", "not the data of the run to be resumed: other labels"));
    ASSERT_EQ_FMT(DONE, command_run(RESUME("turned.csv", "labels.csv")), "%d");
    ASSERT(command_same_tensors("whole/last.safetensors", "run/last.safetensors"));
    command_append("events.csv", "one-more,1,heat,2\n");
    ASSERT_EQ_FMT(BAD_USE, command_run(RESUME("events.csv", "labels.csv")), "%d");
    ASSERT(command_says("err.txt", "not the data of the run to be resumed: other records"));
    command_append("events.csv", "one-more,1,height,2\n");
    ASSERT_EQ_FMT(BAD_USE, command_run(RESUME("events.csv", "labels.csv")), "%d");
    ASSERT(command_says("err.txt", "height"));
    PASS();
}

/* What a run was started with, which its file keeps, and another value for it. */
static const struct {
    const char *option, *start, *changed;
    int curves; /* of a model that interpolates */
} kept[] = {{"by-group", "--groups group --by-group", "--by-group", 0},
            {"fold", "--fold 1", "--fold 2", 0},
            {"folds", "--fold 1 --folds 4", "--fold 1 --folds 3", 0},
            {"split-seed", "--split-seed 7", "--split-seed 8", 0},
            {"splits", "--fold 1", "--splits @/parts.csv", 0},
            {"fit", "--fit all", "--fit training", 0},
            {"origin", "--origin record", "--origin zero", 0},
            {"groups", "--groups group", "--groups other", 0},
            {"positive", "--positive down", "--positive up", 0},
            {"observed", "--observed 0.7", "--observed 0.6", 1},
            {"forecast", "--forecast 6", "--forecast 5", 1}};
enum { KEPT = sizeof kept / sizeof kept[0] };

static int train_kept(size_t i, const char *more) {
    char line[1024];
    snprintf(line, sizeof line, "%s%s", kept[i].curves ? CURVES : TRAIN "--labels @/grouped.csv ", more);
    return command_run(line);
}

static void write_groups(void) {
    char line[64];
    command_write("grouped.csv", "record,label,group,other\n"), command_write("parts.csv", "record,part\n");
    for (int r = 0; r < COMMAND_RECORDS; r++) {
        snprintf(line, sizeof line, "r%d,%s,g%d,h%d\n", r, r % 2 ? "up" : "down", r / 2, r / 3);
        command_append("grouped.csv", line);
        snprintf(line, sizeof line, "r%d,%s\n", r, r % 3 == 0 ? "train" : r % 3 == 1 ? "valid" : "test");
        command_append("parts.csv", line);
    }
}

TEST a_resumed_run_keeps_what_its_file_says(void) {
    char line[256], said[128];
    for (const source_field *f = source_fields; f->key; f++) {
        size_t i = 0;
        while (i < KEPT && f->option && strcmp(kept[i].option, f->option) != 0) i++;
        ASSERTm(f->key, i < KEPT);
    }
    write_groups();
    for (size_t i = 0; i < KEPT; i++) {
        snprintf(line, sizeof line, "%s --epochs 1 --out @/parts%zu", kept[i].start, i);
        ASSERT_EQ_FMT(DONE, train_kept(i, line), "%d");
        snprintf(line, sizeof line, "%s --epochs 3 --out @/whole%zu", kept[i].start, i);
        ASSERT_EQ_FMT(DONE, train_kept(i, line), "%d");
        if (strcmp(kept[i].option, "by-group") != 0) { /* a flag, which --groups has set already */
            snprintf(line, sizeof line, "%s --epochs 3 --resume --out @/parts%zu", kept[i].changed, i);
            ASSERT_EQ_FMTm(kept[i].option, BAD_USE, train_kept(i, line), "%d");
            snprintf(said, sizeof said, "--%s: a resumed run keeps the setting that it was started with",
                     kept[i].option);
            ASSERTm(kept[i].option, command_says("err.txt", said));
        }
        snprintf(line, sizeof line, "--epochs 3 --resume --out @/parts%zu", i);
        ASSERT_EQ_FMTm(kept[i].option, DONE, train_kept(i, line), "%d");
        snprintf(line, sizeof line, "parts%zu/best.safetensors", i);
        snprintf(said, sizeof said, "whole%zu/best.safetensors", i);
        ASSERTm(kept[i].option, command_same_files(line, said));
    }
    PASS();
}

TEST eval_says_which_records_it_uses(void) {
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 1 --out @/run"), "%d");
    write_events("large.csv", 1000, 0), write_flipped("flipped.csv");
    ASSERT_EQ_FMT(DONE, command_run(EVAL("events.csv", "labels.csv")), "%d");
    ASSERT(command_says("err.txt", "these are the training data: the test part, 12 records"));
    ASSERT_EQ_FMT(DONE, command_run(EVAL("events.csv", "labels.csv") " --split all"), "%d");
    ASSERT(command_says("err.txt", "these are the training data: all parts, 60 records"));
    ASSERT_EQ_FMT(DONE, command_run(EVAL("events.csv", "flipped.csv")), "%d");
    ASSERT(
        command_says("err.txt", "these are the training data with other labels, or none: the test part, 12 records"));
    ASSERT_EQ_FMT(DONE, command_run(EVAL("large.csv", "labels.csv")), "%d");
    ASSERT(command_says("err.txt", "these are the same records with other values or times than in training: part "
                                   "'test', 12 records; --split all takes all, those that trained the model too"));
    ASSERT(command_says("out.txt", "12 records of the part 'test'"));
    ASSERT_EQ_FMT(DONE, command_run(EVAL("large.csv", "labels.csv") " --split all"), "%d");
    ASSERT(command_says("out.txt", "60 records of the part 'all'"));
    PASS();
}

/* In another order it is not known which records are those of the test part: no number is better than one of records
 * that trained the model. */
TEST the_order_of_records_tells_their_parts(void) {
    char *text;
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 1 --out @/run"), "%d");
    text = command_text("events.csv");
    char *rows = strchr(text, '\n') + 1, *second = strstr(rows, "\nr1,") + 1;
    command_write("turned.csv", "record,time,channel,value\n");
    command_append("turned.csv", second);
    *second = 0;
    command_append("turned.csv", rows);
    free(text);
    ASSERT(
        command_refused(EVAL("turned.csv", "labels.csv"), "the same records in another order or in other parts than"));
    ASSERT_EQ_FMT(DONE, command_run(EVAL("turned.csv", "labels.csv") " --split all"), "%d");
    ASSERT(command_says("out.txt", "60 records of the part 'all'"));
    PASS();
}

/* What trained the model is no test of it because a file was forgotten: the command that is printed names all files. */
TEST what_comes_next_names_every_file(void) {
    command_write("static.csv", "record,name,value\nr0,age,3\nr1,age,4\nr2,age,5\n");
    ASSERT_EQ_FMT(DONE,
                  command_run("train own --model enc --data @/events.csv --labels @/labels.csv --static @/static.csv "
                              "--epochs 1 --embed 8 --enc-hidden 8 --ref-points 6 --head-hidden 6 --out @/run"),
                  "%d");
    ASSERT(command_says("err.txt", "/labels.csv --static "));
    ASSERT_EQ_FMT(DONE, command_run(EVAL("events.csv", "labels.csv")), "%d");
    ASSERT(command_says("out.txt", "12 records of the part 'test'"));
    command_run("check @/events.csv --labels @/labels.csv --static @/static.csv");
    ASSERT(command_says("out.txt", "--static"));
    PASS();
}

static mtan_real offset_in(const char *name) {
    char error[512];
    mtan_real offset = (mtan_real)NAN;
    bundle b;
    if (bundle_read(&b, command_path(name), error)) offset = b.prep.channel[0].offset, bundle_free(&b);
    return offset;
}

/* A file from before values and labels were told apart. Its preprocessing stays, whatever the data is. */
TEST an_older_file_knows_its_data_by_names(void) {
    mtan_real offset;
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 2 --out @/run"), "%d");
    ASSERT(replace("run/best.safetensors", "mtan.split.values", "mtan.split.VALUES"));
    ASSERT(replace("run/last.safetensors", "mtan.split.values", "mtan.split.VALUES"));
    offset = offset_in("run/last.safetensors");
    write_events("large.csv", 1000, 0);
    ASSERT_EQ_FMT(DONE, command_run(EVAL("events.csv", "labels.csv")), "%d");
    ASSERT(command_says("err.txt",
                        "these are the training data by the names of the records, all that this older file keeps "
                        "of its data: the test part, 12 records"));
    ASSERT_EQ_FMT(
        DONE, command_run("train own --data @/large.csv --labels @/labels.csv --epochs 3 --out @/run --resume"), "%d");
    ASSERT(command_says("err.txt", "the data is taken for that of the run by the names of the records"));
    ASSERT(offset_in("run/last.safetensors") == offset);
    PASS();
}

/* ---- the same bytes ---- */

#define FIRST TRAIN "--dropout 0.2 --thin 0.2 --decay 0.1 --average 0.9 --select auc "

static int same_run(const char *a, const char *b) {
    char x[2][64], y[2][64];
    snprintf(x[0], 64, "%s/best.safetensors", a), snprintf(x[1], 64, "%s/last.safetensors", a);
    snprintf(y[0], 64, "%s/best.safetensors", b), snprintf(y[1], 64, "%s/last.safetensors", b);
    return command_same_files(x[0], y[0]) && command_same_files(x[1], y[1]);
}

TEST threads_and_backends_leave_no_trace(void) {
    char line[512];
    mtan_backend_choice choice;
    ASSERT_EQ_FMT(DONE, command_run(FIRST "--epochs 3 --threads 1 --out @/one"), "%d");
    ASSERT_EQ_FMT(DONE, command_run(FIRST "--epochs 3 --threads 2 --out @/two"), "%d");
    ASSERT(same_run("one", "two"));
    for (int i = 0; mtan_backend_list(i, &choice); i++) {
        if (!choice.backend || mtan_backend_fused(choice.backend) != mtan_backend_fused(mtan_backend_best())) continue;
        snprintf(line, sizeof line, FIRST "--epochs 3 --threads 2 --backend %s --out @/%s", choice.name, choice.name);
        ASSERT_EQ_FMT(DONE, command_run(line), "%d");
        ASSERT(same_run("one", choice.name));
    }
    PASS();
}

/* The best epoch comes before the interruption, and after it. */
TEST a_resumed_run_writes_the_same_files(void) {
    ASSERT_EQ_FMT(DONE, command_run(FIRST "--epochs 6 --patience 5 --out @/whole"), "%d");
    ASSERT_EQ_FMT(DONE, command_run(FIRST "--epochs 3 --out @/parts"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("train own " DATA "--quiet --epochs 6 --patience 5 --out @/parts --resume"), "%d");
    ASSERT(same_run("whole", "parts"));
    ASSERT_EQ_FMT(DONE, command_run(CURVES "--epochs 4 --out @/curves"), "%d");
    ASSERT_EQ_FMT(DONE, command_run(CURVES "--epochs 1 --out @/cut"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("train own --data @/events.csv --quiet --epochs 4 --out @/cut --resume"), "%d");
    ASSERT(same_run("curves", "cut"));
    PASS();
}

/* The last number of a table becomes 5000. */
static void set_last_number(const char *name) {
    char *text = command_text(name), error[512];
    strcpy(strrchr(text, ',') + 1, "5000\n"); /* in place of 0.000 */
    if (!file_write(command_path(name), text, strlen(text), error)) printf("  BAD %s\n", error);
    free(text);
}

/* In the middle of an epoch, whose seconds go on where they were. */
TEST an_interrupted_run_writes_the_same_files(void) {
    const pid_t child = command_start(FIRST "--epochs 100000 --patience 0 --out @/stopped", 0);
    int32_t epochs;
    char error[512], line[512];
    bundle b;
    ASSERT(command_wait("stopped/log.csv", 2));
    kill(child, SIGINT);
    ASSERT_EQ_FMT(INTERRUPTED, command_finish(child), "%d");
    ASSERT(bundle_read(&b, command_path("stopped/last.safetensors"), error));
    epochs = (int32_t)bundle_number(&b, "mtan.run.epoch", 0) + 2;
    bundle_free(&b);
    set_last_number("stopped/steps.csv");
    snprintf(line, sizeof line, "train own " DATA "--quiet --epochs %d --out @/stopped --resume", (int)epochs);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    snprintf(line, sizeof line, FIRST "--epochs %d --patience 0 --out @/never", (int)epochs);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    ASSERT(same_run("never", "stopped"));
    ASSERT(command_says("stopped/log.csv", ",5000."));
    PASS();
}

/* Records of so many classes that the fit of trees and the comparison with a regression take seconds. */
static void write_many_classes(void) {
    enum { MANY = 300, CLASSES = 75 };
    char line[96];
    command_write("many.csv", "record,time,a,b,c,d\n"), command_write("many-labels.csv", "record,label\n");
    for (int r = 0; r < MANY; r++) {
        for (int i = 0; i < 3; i++) {
            snprintf(line, sizeof line, "m%d,%d,%d,%d,%d,%d\n", r, i, (r * 7 + i) % 31, r * 11 % 37, (r + i * i) % 41,
                     r * r % 43);
            command_append("many.csv", line);
        }
        snprintf(line, sizeof line, "m%d,class %d\n", r, r % CLASSES), command_append("many-labels.csv", line);
    }
}

/* Ctrl-C after the last epoch: the network is there, and the run goes on to the files of one that was not stopped. */
TEST what_follows_the_last_epoch_is_interrupted(void) {
    static const char many[] =
        "train own --model enc --data @/many.csv --labels @/many-labels.csv --enc-hidden 8 --embed 8 "
        "--ref-points 6 --head-hidden 6 --batch 64 --epochs 1 --trees 200 --threads 1 ";
    char line[512];
    write_many_classes();
    snprintf(line, sizeof line, "%s--out @/stopped", many);
    const pid_t child = command_start(line, 0);
    const int waited = command_wait("stopped/log.csv", 1); /* the last epoch is over */
    kill(child, SIGINT);
    ASSERT_EQ_FMT(INTERRUPTED, command_finish(child), "%d");
    ASSERT(waited && command_says("err.txt", "interrupted in ") &&
           command_says("err.txt", ", which is left out with all that follows: go on with --resume\n"));
    ASSERT_EQ_FMT(DONE, command_run("selftest @/stopped/best.safetensors"), "%d");
    ASSERT(access(command_path("stopped/chosen.safetensors"), F_OK) != 0);
    snprintf(line, sizeof line, "%s--quiet --out @/stopped --resume", many);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    snprintf(line, sizeof line, "%s--quiet --out @/never", many);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    ASSERT(same_run("never", "stopped"));
    PASS();
}

/* The epochs of a schedule that ends with them are the run's for good. */
TEST a_schedule_keeps_its_epochs(void) {
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--schedule cosine --warmup 0.1 --epochs 2 --out @/fixed"), "%d");
    ASSERT_EQ_FMT(BAD_USE, command_run("train own " DATA "--epochs 3 --out @/fixed --resume"), "%d");
    ASSERT(command_says("err.txt", "--epochs: a resumed run keeps the setting that it was started with"));
    ASSERT_EQ_FMT(DONE, command_run("train own " DATA "--quiet --out @/fixed --resume"), "%d");
    PASS();
}

/* What is kept as the best is the mean of the weights, which last.safetensors has beside them. */
TEST the_best_model_is_the_average(void) {
    char error[512];
    bundle best, last;
    mtan_tensor_view view;
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--average 0.8 --epochs 1 --trees 0 --out @/mean"), "%d");
    ASSERT(bundle_read(&best, command_path("mean/best.safetensors"), error));
    ASSERT(bundle_read(&last, command_path("mean/last.safetensors"), error));
    const size_t count = mtan_weights_count(&best.model.config), bytes = count * sizeof(mtan_real);
    mtan_real *average = tool_calloc(count, sizeof *average);
    ASSERT_EQ(MTAN_OK, mtan_file_tensor(&last.file, "mtan.average", &view));
    ASSERT_EQ(MTAN_OK, mtan_view_read(&view, average, count));
    ASSERT(memcmp(best.weights, average, bytes) == 0);
    ASSERT(memcmp(last.weights, average, bytes) != 0);
    ASSERT_EQ(MTAN_ERR_MISSING, mtan_file_tensor(&best.file, "mtan.average", &view));
    free(average);
    bundle_free(&best), bundle_free(&last);
    PASS();
}

/* 1: the two files have the same weights; 0: others, or a file cannot be read. */
static int same_weights(const char *a, const char *b) {
    char error[512];
    bundle x, y;
    int same = 0;
    if (!bundle_read(&x, command_path(a), error)) return printf("  BAD %s\n", error), 0;
    if (bundle_read(&y, command_path(b), error)) {
        const size_t count = mtan_weights_count(&x.model.config);
        same = count == mtan_weights_count(&y.model.config) &&
               memcmp(x.weights, y.weights, count * sizeof *x.weights) == 0;
        bundle_free(&y);
    }
    bundle_free(&x);
    return same;
}

/* The newest state is of another epoch than the best. */
TEST a_page_says_whose_weights_it_shows(void) {
    char words[512];
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--lr 1 --epochs 5 --trees 0 --select auc --out @/run"), "%d");
    bundle b;
    ASSERT(bundle_read(&b, command_path("run/last.safetensors"), words));
    const double best = bundle_number(&b, "mtan.run.best_epoch", NAN);
    bundle_free(&b);
    ASSERT(best < 5);
    ASSERT_EQ_FMT(DONE, command_run("report @/run/last.safetensors -o @/page.html --quiet"), "%d");
    snprintf(words, sizeof words, "marks epoch %.0f of 5, which had the highest validation AUC. The weights used",
             best);
    ASSERT(command_says("page.html", words) && command_says("page.html", " used below are those after epoch 5.<"));
    PASS();
}

/* Whatever the validation records say of it. */
TEST the_last_epoch_can_be_kept(void) {
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--lr 1 --epochs 4 --trees 0 --select last --out @/last"), "%d");
    ASSERT(same_weights("last/best.safetensors", "last/last.safetensors"));
    ASSERT_EQ_FMT(DONE, command_run("report @/last -o @/page.html --quiet"), "%d");
    ASSERT(command_says("page.html", "marks epoch 4 of 4, which is the last and whose weights are used below.<"));
    ASSERT_EQ_FMT(DONE, command_run(CURVES "--select last --epochs 2 --out @/curves"), "%d");
    ASSERT(same_weights("curves/best.safetensors", "curves/last.safetensors"));
    PASS();
}

/* The number in a column of a row of a log; row 0 is the heading. NaN: it is empty, or there is no such column. */
static double logged(const char *log, const char *column, int row) {
    const size_t n = strlen(column);
    const char *at = log;
    int before = 0;
    for (; strncmp(at, column, n) != 0 || !strchr(",\n", at[n]); before++)
        if (at += strcspn(at, ",\n"), *at++ == '\n') return NAN;
    for (at = log; row > 0; row--) at = strchr(at, '\n') + 1;
    for (; before > 0; before--) at = strchr(at, ',') + 1;
    return strchr(",\n", *at) ? NAN : strtod(at, NULL);
}

#define SHOWN                                                                                                          \
    "train own --model enc --data @/events.csv --enc-hidden 8 --embed 8 --ref-points 6 --head-hidden 6 --batch 8 "     \
    "--lr 0.003 --epochs 6 --trees 0 --threads 1 " COMMAND_STEADY

/* The first row with the largest value of a column is that of the epoch that was chosen. */
static int chosen_by(const char *run, const char *column) {
    char name[64], words[64];
    snprintf(name, sizeof name, "%s/log.csv", run);
    char *log = command_text(name);
    int best = 1;
    for (int row = 2; row <= 6; row++)
        if (logged(log, column, row) > logged(log, column, best)) best = row;
    snprintf(words, sizeof words, "best epoch %d of 6", isnan(logged(log, column, best)) ? 0 : best);
    free(log);
    snprintf(name, sizeof name, "  %s ", column);
    return command_says("err.txt", words) && command_says("err.txt", name);
}

/* Of more than two classes the accuracy is printed, and of two the AUC, whatever chooses. */
TEST the_metric_that_chooses_is_shown(void) {
    char row[32];
    command_write("three.csv", "record,label\n");
    for (int r = 0; r < COMMAND_RECORDS; r++)
        snprintf(row, sizeof row, "r%d,%s\n", r,
                 r % 2   ? "up"
                 : r % 3 ? "down"
                         : "odd"),
            command_append("three.csv", row);
    ASSERT_EQ_FMT(DONE, command_run(SHOWN "--labels @/three.csv --select auc --out @/three"), "%d");
    ASSERT(chosen_by("three", "val_auc") && command_says("three/log.csv", ",val_loss,val_acc,seconds,"));
    ASSERT_EQ_FMT(DONE, command_run("report @/three -o @/three.html"), "%d");
    ASSERT(command_says("three.html", "Validation AUC") && command_says("three.html", "Validation accuracy"));
    ASSERT_EQ_FMT(DONE, command_run(SHOWN "--labels @/labels.csv --select accuracy --out @/two"), "%d");
    ASSERT(chosen_by("two", "val_acc") && command_says("two/log.csv", ",val_loss,val_auc,seconds,"));
    ASSERT_EQ_FMT(DONE, command_run(SHOWN "--labels @/labels.csv --select auc --out @/both"), "%d");
    ASSERT(chosen_by("both", "val_auc") && command_says("both/log.csv", ",gradient_norm\n"));
    PASS();
}

#define AGAIN TRAIN "--trees 20 --average 0.5 --select auc "

/* The chosen model is that of a run that ends there; the best one has seen the validation records too. */
TEST what_was_chosen_is_trained_once_more(void) {
    ASSERT_EQ_FMT(DONE, command_run(AGAIN "--epochs 3 --refit nothing --out @/once"), "%d");
    ASSERT_EQ_FMT(DONE, command_run(AGAIN "--epochs 3 --refit all --out @/again"), "%d");
    ASSERT(same_weights("once/best.safetensors", "again/chosen.safetensors"));
    ASSERT(!same_weights("again/best.safetensors", "again/chosen.safetensors"));
    ASSERT_EQ_FMT(DONE, command_run("report @/again -o @/page.html --quiet"), "%d");
    ASSERT(command_says("page.html",
                        " of 3, which had the highest validation AUC. The weights used below were trained "
                        "once more in as many epochs, on the records of training and validation together.<"));
    ASSERT_EQ_FMT(DONE, command_run("report @/once -o @/page.html --quiet"), "%d");
    ASSERT(command_says("page.html", " of 3, which had the highest validation AUC and whose weights are used below.<"));
    ASSERT_EQ_FMT(DONE, command_run("selftest @/again/best.safetensors"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("eval @/again/best.safetensors --split valid --bootstrap 0 " DATA), "%d");
    ASSERT(command_says("err.txt", "the model was trained on the validation records, too"));
    ASSERT_EQ_FMT(DONE, command_run("eval @/again/best.safetensors --bootstrap 0 " DATA), "%d");
    ASSERT(!command_says("err.txt", "the model was trained on the validation records, too"));
    ASSERT_EQ_FMT(DONE, command_run("eval @/again/chosen.safetensors --split valid --bootstrap 0 " DATA), "%d");
    ASSERT(!command_says("err.txt", "the model was trained on the validation records, too"));
    ASSERT_EQ_FMT(DONE, command_run(AGAIN "--epochs 3 --refit all --threads 2 --out @/threads"), "%d");
    ASSERT(same_run("again", "threads"));
    PASS();
}

/* Without labels too, unless bands are fitted on the validation records, as best does for own data. */
TEST curves_are_trained_once_more(void) {
    ASSERT_EQ_FMT(DONE, command_run(CURVES "--variance fixed --out @/once"), "%d");
    ASSERT_EQ_FMT(DONE, command_run(CURVES "--variance fixed --refit all --out @/again"), "%d");
    ASSERT(same_weights("once/best.safetensors", "again/chosen.safetensors"));
    ASSERT(!same_weights("again/best.safetensors", "again/chosen.safetensors"));
    ASSERT_EQ_FMT(DONE, command_run("selftest @/again/best.safetensors"), "%d");
    ASSERT(command_refused(CURVES "--refit all --out @/x",
                           "--refit all does not go with --variance learned, whose bands are fitted on the validation "
                           "records"));
    ASSERT(command_refused(CURVES "--refit trees --out @/x", "--refit"));
    PASS();
}

/* The network stays as it was chosen. A search goes on with a trial that has been fitted once more, and fits what it had chosen. */
TEST trees_are_fitted_once_more(void) {
    static const char *const calls[] = {AGAIN "--epochs 3 --refit trees --out @/trees",
                                        AGAIN "--epochs 3 --out @/trees",
                                        AGAIN "--epochs 1 --refit trees --budget 3trials --out @/trees"};
    ASSERT_EQ_FMT(DONE, command_run(AGAIN "--epochs 3 --refit nothing --out @/once"), "%d");
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        ASSERT_EQ_FMT(DONE, command_run(calls[i]), "%d");
        if (i < 2) ASSERT(same_weights("once/best.safetensors", "trees/chosen.safetensors"));
        ASSERT_EQ_FMT(BAD_RESULT, command_run("compare @/trees/chosen.safetensors @/trees/best.safetensors"), "%d");
        ASSERT(command_says("out.txt", "21 of 23 tensors have equal bits; ")); /* splits and heights differ */
        ASSERT_EQ_FMT(DONE, command_run("selftest @/trees/best.safetensors"), "%d");
        ASSERT_EQ_FMT(0, rename(command_path("trees"), command_path(i == 0 ? "a" : i == 1 ? "b" : "c")), "%d");
    }
    ASSERT(same_run("a", "b")); /* best for own data */
    ASSERT(command_refused(AGAIN "--refit 1 --out @/x", "--refit 1: must be one of nothing, all, trees"));
    PASS();
}

/* When it was done already, and where more epochs find no better one or a better one. */
TEST a_run_is_resumed_before_it_was_trained_once_more(void) {
    ASSERT_EQ_FMT(DONE, command_run(AGAIN "--epochs 6 --refit all --out @/whole"), "%d");
    for (int epochs = 1; epochs <= 6; epochs += 5) {
        char line[512];
        snprintf(line, sizeof line, AGAIN "--epochs %d --refit all --out @/parts%d", epochs, epochs);
        ASSERT_EQ_FMT(DONE, command_run(line), "%d");
        snprintf(line, sizeof line, "train own " DATA "--quiet --epochs 6 --out @/parts%d --resume", epochs);
        ASSERT_EQ_FMT(DONE, command_run(line), "%d");
        snprintf(line, sizeof line, "parts%d", epochs);
        ASSERT(same_run("whole", line));
    }
    PASS();
}

/* Against sklearn.utils.class_weight.compute_class_weight("balanced"): n / (C n_c). */
TEST balanced_weights_are_those_of_the_training_labels(void) {
    small_run r;
    double count[2] = {0, 0}, *weight;
    ASSERT(small_run_start(&r, "--model=enc", "--seed=0"));
    ASSERT(!r.training.class_weights);
    strcpy(r.plan.class_weights, "balanced");
    ASSERT((weight = plan_class_weights(&r.plan, &r.data, &r.split)));
    for (size_t i = 0; i < arrlenu(r.split.part[SPLIT_TRAIN]); i++)
        count[r.data.labels[r.data.records[r.split.part[SPLIT_TRAIN][i]].label0]]++;
    ASSERT(count[0] > 0 && count[1] > 0);
    for (int c = 0; c < 2; c++) ASSERT(fabs(weight[c] - (count[0] + count[1]) / (2 * count[c])) < 1e-15);
    arrfree(weight);
    small_run_stop(&r);
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--class-weights balanced --epochs 2 --out @/even"), "%d");
    ASSERT_EQ_FMT(BAD_USE, command_run("train own " DATA "--class-weights none --epochs 3 --out @/even --resume"),
                  "%d");
    ASSERT(command_says("err.txt", "--class-weights: a resumed run keeps"));
    ASSERT_EQ_FMT(DONE, command_run("train own " DATA "--quiet --epochs 3 --out @/even --resume"), "%d");
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--class-weights balanced --epochs 3 --out @/at-once"), "%d");
    ASSERT(same_run("even", "at-once"));
    PASS();
}

/* ---- one process, one folder ---- */

TEST a_folder_is_trained_in_by_one_process(void) {
    const pid_t child = command_start(TRAIN "--epochs 100000 --patience 0 --out @/run", 0);
    char owner[64];
    int waited, fresh, resumed, said;
    snprintf(owner, sizeof owner, "run: process %ld is at work in this folder", (long)child);
    waited = command_wait("run/log.csv", 2);
    fresh = command_run(TRAIN "--epochs 2 --out @/run"), said = command_says("err.txt", owner);
    resumed = command_run("train own " DATA "--epochs 2 --out @/run --resume"), said &= command_says("err.txt", owner);
    kill(child, SIGKILL); /* before anything is asserted, or it would train on */
    ASSERT_EQ_FMT(1000 + SIGKILL, command_finish(child), "%d");
    ASSERT(waited && fresh == BAD_USE && resumed == BAD_USE && said);
    command_append("run/best.safetensors.1.tmp", "half a");
    ASSERT_EQ_FMT(DONE, command_run("train own " DATA "--quiet --epochs 2 --patience 1 --out @/run --resume"), "%d");
    ASSERT(access(command_path("run/mtan.lock"), F_OK) != 0);
    ASSERT(access(command_path("run/best.safetensors.1.tmp"), F_OK) != 0);
    PASS();
}

/* Whichever is first: one trains, the other is refused, and nothing is lost. */
TEST of_two_that_start_one_is_refused(void) {
    for (int i = 0; i < 5; i++) {
        char line[400];
        int first, second;
        pid_t one, other;
        snprintf(line, sizeof line, TRAIN "--epochs 20 --patience 0 --out @/run%d", i);
        one = command_start(line, 0), other = command_start(line, 0);
        first = command_finish(one), second = command_finish(other);
        ASSERT_EQ_FMT(DONE + BAD_USE, first + second, "%d");
    }
    PASS();
}

TEST a_refused_run_leaves_no_folder(void) {
    static const char *const lines[] = {
        "train own --model enc --data @/nothing.csv --labels @/labels.csv --out @/x",
        "train own --model enc --data @/labels.csv --out @/x", /* no events */
        "train own --model enc --data @/events.csv --out @/x", /* no labels */
        TRAIN "--threads many --out @/x",
        TRAIN "--budget soon --out @/x",
        TRAIN "--backend none --out @/x",
        "train own " DATA "--out @/x --resume",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        ASSERT_EQ_FMT(BAD_USE, command_run(lines[i]), "%d");
        ASSERTm(lines[i], access(command_path("x"), F_OK) != 0);
    }
    PASS();
}

TEST the_folder_is_tried_before_the_data(void) {
    ASSERT_EQ_FMT(BAD_USE, command_run("train own --model enc --data @/nothing.csv --out @/labels.csv"), "%d");
    ASSERT(command_says("err.txt", "labels.csv/mtan.lock: "));
    ASSERT_EQ_FMT(BAD_USE, command_run("train own --model enc --data @/nothing.csv --out @/no/such"), "%d");
    ASSERT(command_says("err.txt", "no/such: "));
    PASS();
}

/* Whether there is a run cannot be told: then there may be one. */
TEST a_run_that_cannot_be_seen_is_not_written_over(void) {
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 1 --out @/run"), "%d");
    ASSERT(remove(command_path("run/last.safetensors")) == 0);
    ASSERT(symlink("last.safetensors", command_path("run/last.safetensors")) == 0);
    ASSERT_EQ_FMT(BAD_USE, command_run(TRAIN "--epochs 3 --out @/run"), "%d");
    ASSERT(command_says("err.txt", "last.safetensors: "));
    ASSERT(command_says("run/log.csv", "\n1,"));
    ASSERT_EQ_FMT(BAD_USE, command_run(TRAIN "--out @/run --resume"), "%d");
    PASS();
}

/* The reason is that of the row that was lost, not of a call after it. */
TEST a_full_disk_is_named(void) {
    if (mkdir(command_path("run"), 0777) != 0 || access("/dev/full", W_OK) != 0) SKIPm("there is no /dev/full");
    ASSERT(symlink("/dev/full", command_path("run/log.csv")) == 0);
    ASSERT_EQ_FMT(BAD_USE, command_run(TRAIN "--epochs 3 --out @/run"), "%d");
    ASSERT(command_says("err.txt", "log.csv: cannot be written: No space left on device"));
    PASS();
}

/* A page without its curves looks as if there were none. */
TEST a_log_that_cannot_be_read_makes_no_page(void) {
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 1 --out @/run"), "%d");
    ASSERT(remove(command_path("run/log.csv")) == 0);
    ASSERT_EQ_FMT(DONE, command_run("report @/run -o @/page.html"), "%d"); /* it is not there */
    ASSERT(command_says("err.txt", "log.csv: not there, no learning curves"));
    ASSERT(remove(command_path("page.html")) == 0);
    ASSERT(mkdir(command_path("run/log.csv"), 0777) == 0);
    ASSERT_EQ_FMT(BAD_USE, command_run("report @/run -o @/page.html"), "%d");
    ASSERT(command_says("err.txt", "log.csv: "));
    ASSERT(access(command_path("page.html"), F_OK) != 0);
    PASS();
}

SUITE(runs_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(an_epoch_without_a_number_is_never_the_best);
    RUN_TEST(a_variance_is_learned_from_what_is_hidden);
    RUN_TEST(a_run_without_a_best_epoch_fails);
    RUN_TEST(a_run_is_resumed_with_its_own_data);
    RUN_TEST(a_resumed_run_keeps_what_its_file_says);
    RUN_TEST(eval_says_which_records_it_uses);
    RUN_TEST(the_order_of_records_tells_their_parts);
    RUN_TEST(what_comes_next_names_every_file);
    RUN_TEST(an_older_file_knows_its_data_by_names);
    RUN_TEST(threads_and_backends_leave_no_trace);
    RUN_TEST(a_resumed_run_writes_the_same_files);
    RUN_TEST(an_interrupted_run_writes_the_same_files);
    RUN_TEST(what_follows_the_last_epoch_is_interrupted);
    RUN_TEST(a_schedule_keeps_its_epochs);
    RUN_TEST(the_best_model_is_the_average);
    RUN_TEST(a_page_says_whose_weights_it_shows);
    RUN_TEST(the_last_epoch_can_be_kept);
    RUN_TEST(the_metric_that_chooses_is_shown);
    RUN_TEST(what_was_chosen_is_trained_once_more);
    RUN_TEST(curves_are_trained_once_more);
    RUN_TEST(trees_are_fitted_once_more);
    RUN_TEST(a_run_is_resumed_before_it_was_trained_once_more);
    RUN_TEST(balanced_weights_are_those_of_the_training_labels);
    RUN_TEST(a_folder_is_trained_in_by_one_process);
    RUN_TEST(of_two_that_start_one_is_refused);
    RUN_TEST(a_refused_run_leaves_no_folder);
    RUN_TEST(the_folder_is_tried_before_the_data);
    RUN_TEST(a_run_that_cannot_be_seen_is_not_written_over);
    RUN_TEST(a_full_disk_is_named);
    RUN_TEST(a_log_that_cannot_be_read_makes_no_page);
}
