/* The command as its users meet it: each call runs in a process of its own, on small files that the test writes. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "command_line.h"
#include "../../tools/mtan/model/bundle.h"
#include "../../tools/mtan/command/commands.h"
#include "../../tools/mtan/options/option_table.h"
#include "../../tools/mtan/base/files.h"

#define TRAIN                                                                                                          \
    "train own --model enc --data @/events.csv --labels @/labels.csv --enc-hidden 16 --embed 16 --ref-points 8 "       \
    "--head-hidden 12 --batch 8 --lr 0.01 --quiet --threads 2 " COMMAND_STEADY

/* ---- tests ---- */

TEST options_are_checked(void) {
    ASSERT_EQ_FMT(BAD_USE, command_run("trian own"), "%d");
    ASSERT(command_says("err.txt", "mtan: no command trian; did you mean train?"));
    ASSERT_EQ_FMT(BAD_USE, command_run("train own --modle enc"), "%d");
    ASSERT(command_says("err.txt", "mtan: train: no option --modle; did you mean --model?"));
    ASSERT_EQ_FMT(BAD_USE, command_run("train own --model enc --epochs many --out @/x"), "%d");
    ASSERT(command_says("err.txt", "mtan: --epochs many: not a number"));
    ASSERT_EQ_FMT(BAD_USE, command_run("train own --model enc --epochs 0 --out @/x"), "%d");
    ASSERT(command_says("err.txt", "mtan: --epochs 0: must be from 1 to 1e+06"));
    ASSERT_EQ_FMT(BAD_USE, command_run("eval a b"), "%d");
    ASSERT_EQ_FMT(BAD_USE, command_run("train physionet-encoder --out @/x"), "%d");
    ASSERT(command_says("err.txt", "physionet-enc"));
    ASSERT_EQ_FMT(BAD_USE, command_run("train own --model enc --data"), "%d");
    ASSERT(command_says("err.txt", "mtan: --data needs a value"));
    PASS();
}

TEST options_that_do_not_fit_are_refused(void) {
    ASSERT_EQ_FMT(BAD_USE, command_run(TRAIN "--observed 0.5 --epochs 1 --out @/x"), "%d");
    ASSERT(command_says("err.txt", "--observed is for models that interpolate"));
    ASSERT_EQ_FMT(BAD_USE, command_run(TRAIN "--epochs 1.5 --out @/x"), "%d");
    ASSERT(command_says("err.txt", "--epochs 1.5: must be a whole number"));
    ASSERT_EQ_FMT(BAD_USE, command_run(TRAIN "--lr 0 --epochs 1 --out @/x"), "%d");
    ASSERT_EQ_FMT(-1, access(command_path("x"), F_OK), "%d"); /* nothing was made */
    PASS();
}

/* Does any byte of a file speak to the terminal? */
static int command_is_quiet(const char *name) {
    char *text = command_text(name), *at = text;
    while (at && *at && (*at == '\n' || ((unsigned char)*at >= ' ' && *at != 127))) at++;
    const int quiet_file = at && !*at && !strstr(text, "\xC2\x9B");
    free(text);
    return quiet_file;
}

static void write_text(const char *name, const char *text) {
    FILE *file = fopen(command_path(name), "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0) perror("mtan: build"), exit(2);
}

/* The test's data with other names: `from` becomes `to` in one of its files. */
static void rename_in(const char *name, const char *from, const char *to) {
    char *text = command_text(name), *at = text;
    FILE *file = fopen(command_path(name), "w");
    if (!text || !file) perror("mtan: build"), exit(2);
    for (char *found; (found = strstr(at, from)); at = found + strlen(from))
        fwrite(at, 1, (size_t)(found - at), file), fputs(to, file);
    fputs(at, file);
    fclose(file);
    free(text);
}

/* Channels, classes and records with escapes in their names, through everything that prints for people. */
TEST names_do_not_speak_to_the_terminal(void) {
    rename_in("events.csv", "pulse", "\33]0;pulse\7");
    rename_in("events.csv", "heat",
              "\xC2\x9B"
              "2Jheat");
    rename_in("events.csv", "\nr7,", "\n\33[2Jr7,");
    rename_in("labels.csv", "up", "\33[31mup");
    rename_in("labels.csv", "r7,", "\33[2Jr7,");
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 1 --out @/a"), "%d");
    command_run("eval @/a/best.safetensors --data @/events.csv --labels @/labels.csv --bootstrap 0");
    ASSERT(command_says("out.txt", "?[31mup  ") && command_is_quiet("out.txt"));
    ASSERT_EQ_FMT(DONE, command_run("inspect @/a/best.safetensors --full"), "%d");
    ASSERT(command_is_quiet("out.txt"));
    command_append("events.csv", "\33[2Jr7,8.5,\33]0;pulse\7,1e99\n");
    command_run("check @/events.csv --labels @/labels.csv");
    ASSERT(command_says("out.txt", "?]0;pulse?") && command_is_quiet("out.txt"));
    ASSERT_EQ_FMT(BAD_USE, command_run("predict @/a/best.safetensors --data @/events.csv"), "%d");
    ASSERT(command_says("err.txt", "?[2Jr7") && command_is_quiet("err.txt"));
    write_text("other.csv", "record,time,channel,value\nr,1,\33[31mnone,1\n");
    ASSERT_EQ_FMT(BAD_RESULT, command_run("predict @/a/best.safetensors --data @/other.csv"), "%d");
    ASSERT(command_says("err.txt", "?[31mnone") && command_is_quiet("err.txt"));
    PASS();
}

/* The same for names of tensors and metadata. */
TEST files_do_not_speak_to_the_terminal(void) {
    static const uint8_t one = 1;
    const mtan_file_entry entry = {"\33[31mred", MTAN_DTYPE_U8, 0, {0}, &one};
    const mtan_file_pair pairs[2] = {{"\33]0;key\7", "\33[2Ja\xC2\x9B"},
                                     {"\33]0;key\7", "\xE2\x80\xAE"
                                                     "b\r"}};
    char error[512];
    for (int i = 0; i < 2; i++) {
        uint8_t bytes[512];
        size_t n = 0;
        ASSERT_EQ(MTAN_OK, mtan_file_write_memory(&entry, 1, &pairs[i], 1, bytes, sizeof bytes, &n));
        ASSERT(file_write(command_path(i ? "b" : "a"), bytes, n, error));
    }
    ASSERT_EQ_FMT(BAD_RESULT, command_run("compare @/a @/b"), "%d");
    ASSERT(command_says("out.txt", "?[31mred") && command_says("out.txt", "  ?]0;key?\n    A  ?[2Ja?\n    B  ?b?\n"));
    ASSERT(command_is_quiet("out.txt"));
    ASSERT_EQ_FMT(DONE, command_run("inspect @/a"), "%d");
    ASSERT(command_says("out.txt", "?]0;key? = ?[2Ja?\n") && command_is_quiet("out.txt"));
    PASS();
}

/* The text of a file with the lines that check folds made whole; free it. */
static char *unfolded(const char *name) {
    char *text = command_text(name), *to = text;
    for (const char *at = text; at && (*to = *at) != 0; to++) {
        at++;
        if (*to != '\n' || *at != ' ') continue;
        *to = ' ';
        at += strspn(at, " ");
    }
    return text;
}

/* What no model file takes is said before a model is trained, and by check. */
static int refused_early(const char *words) {
    const int train = command_run(TRAIN "--epochs 1 --out @/run"), said = command_says("err.txt", words);
    const int check = command_run("check @/events.csv --labels @/labels.csv");
    char *text = unfolded("out.txt");
    const int told = text && strstr(text, words) != NULL;
    free(text);
    return train == BAD_USE && said && check == BAD_RESULT && told && access(command_path("run/log.csv"), F_OK) != 0;
}

TEST names_that_cannot_be_saved_are_refused_early(void) {
    rename_in("events.csv", "heat", "caf\xE9");
    ASSERT(refused_early("channel \"caf\\xe9\" is not UTF-8"));
    rename_in("events.csv", "caf\xE9", "caf\xC3\xA9");
    rename_in("labels.csv", "down", "\xED\xA0\x80");
    ASSERT(refused_early("class \"\\xed\\xa0\\x80\" is not UTF-8"));
    PASS();
}

/* Names of 4.5 MB, in 70 channels. */
TEST more_names_than_a_file_holds_are_refused_early(void) {
    enum { LONG = 64000 };
    char *row = malloc(LONG + 64);
    for (int i = 0; i < 70; i++) {
        int n = sprintf(row, "r0,1,%d", i);
        memset(row + n, 'x', LONG);
        strcpy(row + n + LONG, ",1\n");
        command_append("events.csv", row);
    }
    free(row);
    ASSERT(refused_early("says of 72 channels and 2 classes takes up to"));
    PASS();
}

/* Names come back as they went in, and no spreadsheet computes them. */
TEST names_in_tables_are_quoted(void) {
    static const char *const names[][2] = {{"plain", "plain,"},     {"\" blank \"", "\" blank \","},
                                           {"\"a,b\"", "\"a,b\","}, {"\"say \"\"x\"\"\"", "\"say \"\"x\"\"\","},
                                           {"=1+1", "'=1+1,"},      {"@x", "'@x,"},
                                           {"-cmd", "'-cmd,"},      {"+1+2", "'+1+2,"},
                                           {"-5", "-5,"},           {"+1.5e3", "+1.5e3,"},
                                           {"'quote", "''quote,"}};
    enum { NAMES = sizeof names / sizeof names[0] };
    char text[2048] = "record,time,channel,value\n", row[64], *out, *line;
    for (int i = 0; i < NAMES; i++) sprintf(text + strlen(text), "%s,1,heat,2\n", names[i][0]);
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 1 --out @/run"), "%d");
    write_text("new.csv", text);
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/new.csv"), "%d");
    line = out = command_text("out.txt");
    for (int i = 0; i < NAMES; i++) {
        line = strchr(line, '\n') + 1;
        snprintf(row, sizeof row, "%.*s", (int)strlen(names[i][1]), line);
        ASSERT_STR_EQ(names[i][1], row);
    }
    free(out);
    PASS();
}

/* A child that writes the first n bytes of a file into a pipe, and `zeros` more: bytes without end when that is -1. */
static pid_t feed(const char *pipe_path, const char *name, size_t n, long zeros) {
    static const char none[4096];
    char error[512];
    size_t bytes = 0;
    pid_t child;
    fflush(NULL);
    if ((child = fork()) != 0) return child;
    signal(SIGPIPE, SIG_DFL);
    char *blob = file_read(command_path(name), &bytes, error);
    FILE *out = fopen(pipe_path, "wb");
    if (!blob || !out) _exit(99);
    fwrite(blob, 1, n < bytes ? n : bytes, out);
    for (; zeros != 0; zeros -= zeros > 0) fwrite(none, 1, sizeof none, out);
    _exit(fclose(out) != 0);
}

/* A model comes through a pipe; what has no end, or goes on behind a model's, is refused by its beginning. */
TEST streams_without_an_end_are_not_followed(void) {
    char error[512], *pipe_path = strcpy(malloc(200), command_path("pipe"));
    size_t bytes = 0, model;
    pid_t feeder;
    void *blob = file_read_while("/dev/zero", safetensors_more, &bytes, error);
    ASSERT(blob && bytes < 1 << 20);
    free(blob);
    ASSERT_FALSE(file_read("/dev/zero", &bytes, error));
    ASSERT(strstr(error, "larger than 256 MiB"));
    ASSERT_EQ_FMT(BAD_USE, command_run("inspect /dev/zero"), "%d");
    ASSERT(command_says("err.txt", "not a valid safetensors file"));
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 1 --out @/run"), "%d");
    model = command_bytes("run/best.safetensors");
    ASSERT_EQ(0, mkfifo(pipe_path, 0600));
    feeder = feed(pipe_path, "run/best.safetensors", SIZE_MAX, 0);
    ASSERT_EQ_FMT(DONE, command_run("selftest @/pipe"), "%d");
    ASSERT_EQ(0, command_finish(feeder));
    feeder = feed(pipe_path, "run/best.safetensors", SIZE_MAX, -1);
    blob = file_read_while(pipe_path, safetensors_more, &bytes, error);
    ASSERT(blob && bytes > model && bytes <= 2 * model + (1 << 17));
    free(blob);
    ASSERT_EQ_FMT(1000 + SIGPIPE, command_finish(feeder), "%d");
    feeder = feed(pipe_path, "run/best.safetensors", SIZE_MAX, -1);
    ASSERT_EQ_FMT(BAD_USE, command_run("selftest @/pipe"), "%d");
    ASSERT(command_says("err.txt", "not a valid safetensors file"));
    ASSERT_EQ_FMT(1000 + SIGPIPE, command_finish(feeder), "%d");
    free(pipe_path);
    PASS();
}

/* Validation records of one class have no AUC. */
TEST a_run_always_has_a_best_model(void) {
    FILE *labels = fopen(command_path("labels.csv"), "w");
    if (!labels) perror("mtan: build"), exit(2);
    fputs("record,label\nr0,up\nr1,down\n", labels);
    fclose(labels);
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 2 --select auc --out @/odd"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("selftest @/odd/best.safetensors"), "%d");
    PASS();
}

TEST other_data_is_used_whole(void) {
    command_append("two.csv", "record,time,channel,value\na,1,heat,2\nb,2,heat,3\n");
    command_append("two-labels.csv", "record,label\na,up\nb,down\n");
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 1 --out @/run"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("eval @/run/best.safetensors --data @/two.csv --labels @/two-labels.csv --quiet"),
                  "%d");
    ASSERT(command_says("out.txt", "2 records of the part 'all'"));
    ASSERT(command_says("err.txt",
                        "other data than the model was trained on (other records, or another order of them): all 2 "
                        "records"));
    ASSERT_EQ_FMT(BAD_USE,
                  command_run("eval @/run/best.safetensors --data @/two.csv --labels @/two-labels.csv --split test"),
                  "%d");
    PASS();
}

TEST samples_follow_the_seed(void) {
    char *first, *second;
    ASSERT_EQ_FMT(
        DONE,
        command_run("train own --model interp --data @/events.csv --enc-hidden 8 --embed 8 --ref-points 6 --latent 2 "
                    "--dec-hidden 5 --mlp-hidden 6 --batch 16 --epochs 1 --thin 0.3 --quiet --out @/curves"),
        "%d");
    ASSERT_EQ_FMT(
        DONE, command_run("interpolate @/curves/best.safetensors --data @/events.csv --at 0:5:5 --samples 5 --seed 1"),
        "%d");
    first = command_text("out.txt");
    ASSERT_EQ_FMT(
        DONE, command_run("interpolate @/curves/best.safetensors --data @/events.csv --at 0:5:5 --samples 5 --seed 2"),
        "%d");
    second = command_text("out.txt");
    ASSERT(strcmp(first, second) != 0);
    free(first), free(second);
    PASS();
}

TEST every_command_has_help(void) {
    char line[64];
    for (const command *c = commands; c->name; c++) {
        snprintf(line, sizeof line, "help %s", c->name);
        ASSERT_EQ_FMT(DONE, command_run(line), "%d");
        snprintf(line, sizeof line, "usage: mtan %s", c->name);
        ASSERT(command_says("out.txt", line));
    }
    ASSERT_EQ_FMT(DONE, command_run("man"), "%d");
    ASSERT(command_says("out.txt", "Fl Fl budget"));
    PASS();
}

/* `format` is how an option stands there, of the names of command and option. */
TEST every_option_is_completed(const char *shell, const char *format) {
    char line[128], name[64];
    const char *x;
    snprintf(line, sizeof line, "completion %s", shell);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    for (const command *c = commands; c->name; c++)
        for (int i = 0; (x = option_name(i, name)) != NULL; i++) {
            if (!option_belongs(i, c)) continue;
            snprintf(line, sizeof line, format, c->name, x);
            ASSERTm(x, command_says("out.txt", line));
        }
    ASSERT(command_says("out.txt", " physionet-enc "));
    PASS();
}

TEST an_unknown_shell_is_refused(void) {
    ASSERT_EQ_FMT(BAD_USE, command_run("completion tcsh"), "%d");
    ASSERT(command_says("err.txt", "bash, zsh or fish"));
    ASSERT_EQ_FMT(DONE, command_run("completion"), "%d");
    ASSERT(command_says("out.txt", "complete -o filenames -F _mtan mtan\n"));
    PASS();
}

TEST a_model_is_trained_and_used(void) {
    char *scores, *again;
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 12 --out @/run"), "%d");
    ASSERT_EQ_FMT(
        DONE,
        command_run("eval @/run/best.safetensors --data @/events.csv --labels @/labels.csv --json --bootstrap 50"),
        "%d");
    ASSERT(command_says("out.txt", "\"auc\": 1,"));
    ASSERT(command_says("out.txt", "\"calibration_error_low\": null, \"calibration_error_high\": null,"));
    ASSERT_EQ_FMT(DONE, command_run("selftest @/run/best.safetensors"), "%d");
    ASSERT(command_says("out.txt", "the same bits"));
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/events.csv --threads 1"), "%d");
    scores = command_text("out.txt");
    ASSERT(strstr(scores, "record,p_down,p_up,predicted\nr0,") == scores);
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/events.csv --threads 3"), "%d");
    again = command_text("out.txt");
    ASSERT_STR_EQ(scores, again);
    free(scores), free(again);
    ASSERT_EQ_FMT(BAD_USE, command_run("interpolate @/run/best.safetensors --data @/events.csv --at 0:1:1"), "%d");
    ASSERT(command_says("err.txt", "does not interpolate"));
    PASS();
}

/* Matrices of a file against those of another: |x - y| <= |x| / steps. */
static int matrices_are_near(const char *a, const char *b, double steps) {
    char error[512];
    bundle x, y;
    int ok = bundle_read(&x, command_path(a), error), moved = 0;
    if (!ok || !bundle_read(&y, command_path(b), error)) return 0;
    for (size_t i = 0; i < mtan_weights_count(&x.model.config); i++) {
        const double u = (double)x.weights[i], v = (double)y.weights[i];
        ok = ok && fabs(u - v) <= fmax(fabs(u), 6.2e-5) / steps; /* below 2^-14 a step of f16 stays what it is */
        moved |= fabs(u - v) > 0;
    }
    ok = ok && x.model.precision == MTAN_REAL && y.model.precision == MTAN_REAL;
    bundle_free(&x), bundle_free(&y);
    return ok && moved;
}

TEST a_model_is_made_smaller(void) {
    const char *const data = " --data @/events.csv --labels @/labels.csv";
    char line[256];
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 12 --out @/large"), "%d");
    snprintf(line, sizeof line, "quantize @/large/best.safetensors @/small.safetensors%s", data);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    ASSERT(command_says("err.txt", "of a probability") && command_says("err.txt", "'valid'") &&
           command_says("err.txt", "AUC"));
    ASSERT(command_bytes("small.safetensors") < command_bytes("large/best.safetensors"));
    ASSERT_EQ_FMT(DONE, command_run("selftest @/small.safetensors"), "%d");
    ASSERT(command_says("out.txt", "the same bits"));
    snprintf(line, sizeof line, "eval @/small.safetensors%s --json --bootstrap 0", data);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    ASSERT(command_says("out.txt", "\"auc\": 1,"));
    ASSERT_EQ_FMT(DONE, command_run("quantize @/large/best.safetensors @/f16.safetensors --type f16"), "%d");
    ASSERT(matrices_are_near("large/best.safetensors", "f16.safetensors", 2048));
    ASSERT_EQ_FMT(DONE, command_run("quantize @/large/last.safetensors @/bf16.safetensors --type bf16"), "%d");
    ASSERT(matrices_are_near("large/last.safetensors", "bf16.safetensors", 256));
    ASSERT_EQ_FMT(BAD_USE, command_run("quantize @/large/best.safetensors @/x.safetensors --type int4"), "%d");
    ASSERT(command_says("err.txt", "int8, f16 or bf16"));
    ASSERT_EQ_FMT(BAD_USE, command_run("quantize @/events.csv @/x.safetensors"), "%d");
    ASSERT_EQ_FMT((size_t)0, command_bytes("x.safetensors"), "%zu");
    PASS();
}

TEST a_resumed_run_has_the_same_bits(void) {
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--dropout 0.2 --thin 0.2 --epochs 6 --out @/whole"), "%d");
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--dropout 0.2 --thin 0.2 --epochs 2 --out @/parts"), "%d");
    ASSERT_EQ_FMT(BAD_USE, command_run(TRAIN "--epochs 6 --out @/parts"), "%d");
    ASSERT(command_says("err.txt", "holds a run: --resume goes on with it"));
    ASSERT_EQ_FMT(BAD_USE, command_run(TRAIN "--dropout 0.3 --epochs 6 --out @/parts --resume"), "%d");
    ASSERT(command_says("err.txt", "--dropout: a resumed run keeps the setting that it was started with"));
    ASSERT_EQ_FMT(
        BAD_USE,
        command_run("train own --data @/events.csv --labels @/labels.csv --optimizer adamax --out @/parts --resume"),
        "%d");
    ASSERT(command_says("err.txt", "--optimizer: a resumed run"));
    ASSERT_EQ_FMT(
        BAD_USE,
        command_run("train own --data @/events.csv --labels @/labels.csv --enc-hidden 99 --out @/parts --resume"),
        "%d");
    ASSERT(command_says("err.txt", "--enc_hidden: a resumed run"));
    ASSERT_EQ_FMT(
        DONE,
        command_run("train own --data @/events.csv --labels @/labels.csv --quiet --epochs 6 --threads 1 --out @/parts "
                    "--resume"),
        "%d");
    ASSERT(command_same_tensors("whole/last.safetensors", "parts/last.safetensors"));
    ASSERT(command_same_tensors("whole/best.safetensors", "parts/best.safetensors"));
    ASSERT(command_same_columns("whole/log.csv", "parts/log.csv", 4));
    ASSERT(command_same_columns("whole/steps.csv", "parts/steps.csv", 4));
    PASS();
}

TEST an_interrupted_run_is_saved(void) {
    pid_t child = command_start(TRAIN "--epochs 100000 --patience 0 --out @/stopped", 0);
    int32_t epochs;
    char error[512], line[512];
    bundle b;
    ASSERT(command_wait("stopped/log.csv", 2));
    kill(child, SIGINT);
    ASSERT_EQ_FMT(INTERRUPTED, command_finish(child), "%d");
    ASSERT(bundle_read(&b, command_path("stopped/last.safetensors"), error));
    epochs = (int32_t)bundle_number(&b, "mtan.run.epoch", 0);
    bundle_free(&b);
    snprintf(line, sizeof line, TRAIN "--epochs %d --patience 0 --out @/never", (int)epochs + 2);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    snprintf(line, sizeof line, TRAIN "--epochs %d --out @/stopped --resume", (int)epochs + 2);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    ASSERT(command_same_tensors("never/last.safetensors", "stopped/last.safetensors"));
    ASSERT(command_same_columns("never/log.csv", "stopped/log.csv", 4));
    ASSERT(command_same_columns("never/steps.csv", "stopped/steps.csv", 4));
    PASS();
}

TEST a_killed_run_leaves_a_good_checkpoint(void) {
    pid_t child = command_start(TRAIN "--epochs 100000 --patience 0 --out @/killed", 0);
    ASSERT(command_wait("killed/log.csv", 3));
    kill(child, SIGKILL);
    ASSERT_EQ_FMT(1000 + SIGKILL, command_finish(child), "%d");
    ASSERT_EQ_FMT(DONE, command_run("selftest @/killed/best.safetensors"), "%d");
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 20 --patience 1 --out @/killed --resume"), "%d");
    PASS();
}

/* Every write beyond the limit fails, as on a full disk. */
TEST a_full_disk_loses_nothing(void) {
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 2 --out @/full"), "%d");
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 2 --out @/copy"), "%d");
    ASSERT_EQ_FMT(BAD_USE, command_finish(command_start(TRAIN "--epochs 4 --out @/full --resume", 4096)), "%d");
    ASSERT(command_says("err.txt", "cannot be written"));
    ASSERT(command_same_tensors("copy/last.safetensors", "full/last.safetensors"));
    PASS();
}

TEST divergence_names_its_batch(void) {
    ASSERT_EQ_FMT(BAD_USE, command_run(TRAIN "--epochs 50 --lr 1000 --out @/wild"), "%d");
    ASSERT(command_says("err.txt", "mtan: epoch "));
    ASSERT(command_says("err.txt", ", batch "));
    PASS();
}

TEST interpolation_follows_the_grid(void) {
    char *text;
    int rows = 0;
    ASSERT_EQ_FMT(
        DONE,
        command_run("train own --model interp --data @/events.csv --enc-hidden 8 --embed 8 --ref-points 6 --latent 2 "
                    "--dec-hidden 5 --mlp-hidden 6 --batch 16 --epochs 2 --quiet --out @/curves"),
        "%d");
    ASSERT_EQ_FMT(
        DONE, command_run("interpolate @/curves/best.safetensors --data @/events.csv --at 0:10:2.5 --samples 3"), "%d");
    text = command_text("out.txt");
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) rows++;
    ASSERT_EQ_FMT(1 + COMMAND_RECORDS * 5 * 2, rows, "%d");
    ASSERT(strncmp(text, "record,time,channel,mean,sd,extrapolated\nr0,0,heat,", 51) == 0);
    free(text);
    ASSERT_EQ_FMT(DONE, command_run("eval @/curves/best.safetensors --data @/events.csv --json"), "%d");
    ASSERT(command_says("out.txt", "\"observed\": 0.9, \"mse_all\": "));
    ASSERT_EQ_FMT(DONE, command_run("selftest @/curves/best.safetensors"), "%d");
    ASSERT_EQ_FMT(BAD_USE, command_run("interpolate @/curves/best.safetensors --data @/events.csv --at 3:1:1"), "%d");
    PASS();
}

/* Of two channels with as many points each the mean over channels is that over points; of one alone it is half. */
TEST channels_weigh_the_same(void) {
    static const char *const data[] = {
        "record,time,channel,value\na,1,heat,2\na,2,pulse,3\na,4,heat,1\na,6,pulse,2\nb,1,heat,5\nb,2,pulse,1\nb,3,"
        "heat,"
        "2\nb,5,pulse,7\n",
        "record,time,channel,value\na,1,heat,2\na,2,heat,3\na,4,heat,1\nb,1,heat,5\nb,2,heat,1\nb,3,heat,2\n"};
    ASSERT_EQ_FMT(
        DONE,
        command_run("train own --model interp --data @/events.csv --enc-hidden 8 --embed 8 --ref-points 6 --latent 2 "
                    "--dec-hidden 5 --mlp-hidden 6 --batch 16 --epochs 1 --quiet --out @/curves"),
        "%d");
    for (int i = 0; i < 2; i++) {
        command_write("some.csv", data[i]);
        ASSERT_EQ_FMT(
            DONE, command_run("eval @/curves/best.safetensors --data @/some.csv --observed 0.5 --bootstrap 0 --json"),
            "%d");
        char *text = command_text("out.txt");
        const double all = command_json(text, "interpolation", "mse_all"),
                     by_channel = command_json(text, "interpolation", "mse_by_channel");
        free(text);
        ASSERT(all > 0 && fabs(by_channel - (i ? all / 2 : all)) <= 1e-6 * all);
    }
    PASS();
}

TEST bad_records_are_left_out_and_counted(void) {
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 1 --out @/run"), "%d");
    command_append("new.csv", "record,time,channel,value\na,1,heat,2\nb,1,heat,oops\nb,2,heat,3\nc,1,pulse,4\n");
    ASSERT_EQ_FMT(BAD_RESULT, command_run("predict @/run/best.safetensors --data @/new.csv"), "%d");
    ASSERT(command_says("err.txt", "new.csv:3: "));
    ASSERT(command_says("out.txt", "\na,"));
    ASSERT(command_says("out.txt", "\nc,"));
    command_append("odd.csv", "record,time,channel,value\na,1,mystery,2\n");
    ASSERT_EQ_FMT(BAD_RESULT, command_run("predict @/run/best.safetensors --data @/odd.csv"), "%d");
    ASSERT(command_says("err.txt", "mystery"));
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/odd.csv --skip-unknown"), "%d");
    command_append("dates.csv", "record,time,channel,value\na,2024-01-01T00:00,heat,2\na,2024-01-01T05:00,heat,2\n");
    ASSERT_EQ_FMT(BAD_USE, command_run("predict @/run/best.safetensors --data @/dates.csv"), "%d");
    ASSERT(command_says("err.txt", "the data's times are hours, the model's numbers without a unit"));
    ASSERT_EQ_FMT(BAD_USE, command_run("predict @/events.csv --data @/odd.csv"), "%d");
    ASSERT(command_says("err.txt", "not a valid safetensors file"));
    /* Each record that a bad row costs is named. */
    command_write("torn.csv",
                  "record,time,channel,value\na,1,pulse,5\nb,1,pulse\nc,1,pulse,5\n,2,pulse,5\nd,1,pulse,5\n");
    ASSERT_EQ_FMT(BAD_RESULT, command_run("predict @/run/best.safetensors --data @/torn.csv"), "%d");
    ASSERT(command_says("out.txt", "predicted\na,"));
    ASSERT(command_says("err.txt", "torn.csv:3: 3 fields, but the header has 4; record b is left out\n"));
    ASSERT(command_says("err.txt", "torn.csv:5: the record's name is empty; record c is left out\n"));
    ASSERT(command_says("err.txt", "torn.csv:5: the record's name is empty; record d is left out\n"));
    PASS();
}

static int count_lines(const char *name) {
    char *text = command_text(name);
    int lines = 0;
    for (const char *at = text; at && (at = strchr(at, '\n')) != NULL; at++) lines++;
    free(text);
    return lines;
}

/* A record whose values are floats, but not their sums: in both channels, with weights of either sign, they are NaN. */
#define TOO_LARGE(record)                                                                                              \
    record ",1,heat,3e38\n" record ",1,pulse,3e38\n" record ",2,heat,3e38\n" record ",2,pulse,3e38\n" record           \
           ",3,heat,3e38\n" record ",3,pulse,3e38\n"

/* Records b and e are named; the others have the rows that they have in a file without b and e. */
TEST results_that_are_not_finite_are_left_out(void) {
    static const char header[] = "record,time,channel,value\n", a[] = "a,1,heat,2\n", b[] = TOO_LARGE("b");
    static const char c_d[] = "c,1,pulse,4\nd,1,heat,3\n", e[] = TOO_LARGE("e"), f[] = "f,2,heat,3\n";
    const char *const lines[] = {header, a, b, c_d, e, f};
    char *all, *good;
    if (sizeof(mtan_real) > sizeof(float)) SKIPm("sums of floats fit in a double");
    for (int i = 0; i < 6; i++) {
        command_append("all.csv", lines[i]);
        if (lines[i] != b && lines[i] != e) command_append("good.csv", lines[i]);
    }
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 1 --scale none --out @/run"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/good.csv"), "%d");
    good = command_text("out.txt");
    ASSERT_EQ_FMT(BAD_RESULT, command_run("predict @/run/best.safetensors --data @/all.csv --threads 2 --quiet"), "%d");
    all = command_text("out.txt");
    ASSERT(good && all && strcmp(good, all) == 0 && strstr(all, "\nf,"));
    free(good), free(all);
    ASSERT(command_says("err.txt", "mtan: record b: a weight or a result is not finite"));
    ASSERT(command_says("err.txt", "mtan: record e: a weight or a result is not finite"));
    ASSERT_EQ_FMT(2, count_lines("err.txt"), "%d");
    PASS();
}

/* A grid of one block, for many records at once, and a longer one, for one record at a time. */
TEST curves_that_are_not_finite_are_left_out(void) {
    if (sizeof(mtan_real) > sizeof(float)) SKIPm("sums of floats fit in a double");
    command_append("new.csv", "record,time,channel,value\na,1,heat,2\n" TOO_LARGE("b") "c,1,pulse,4\n");
    ASSERT_EQ_FMT(
        DONE,
        command_run("train own --model interp --data @/events.csv --enc-hidden 8 --embed 8 --ref-points 6 --latent 2 "
                    "--dec-hidden 5 --mlp-hidden 6 --batch 16 --epochs 1 --scale none --quiet --out @/curves"),
        "%d");
    ASSERT_EQ_FMT(BAD_RESULT, command_run("interpolate @/curves/best.safetensors --data @/new.csv --at 0:4:1"), "%d");
    ASSERT_EQ_FMT(1 + 2 * 5 * 2, count_lines("out.txt"), "%d");
    ASSERT(command_says("err.txt", "mtan: record b: a weight or a result is not finite"));
    ASSERT_EQ_FMT(BAD_RESULT,
                  command_run("interpolate @/curves/best.safetensors --data @/new.csv --at 0:2000:1 --quiet"), "%d");
    ASSERT_EQ_FMT(1 + 2 * 2001 * 2, count_lines("out.txt"), "%d");
    ASSERT_EQ_FMT(1, count_lines("err.txt"), "%d");
    PASS();
}

/* Column `column` (from 0) of row `row` (from 1) of a table; NaN where there is none. */
static double cell(const char *text, int row, int column) {
    for (; row > 0 && text; row--) text = (text = strchr(text, '\n')) ? text + 1 : NULL;
    for (; column > 0 && text; column--) text = (text = strchr(text, ',')) ? text + 1 : NULL;
    return text && *text ? strtod(text, NULL) : NAN;
}

/* Same seed, same data, same split: the losses of the published script's first 40 steps, and its validation. */
TEST the_first_losses_are_the_published_ones(void) {
    const char *data = getenv("MTAN_PHYSIONET");
    double loss[40], valid[4];
    mtan_tensor_view view;
    mtan_file file;
    char line[512], *steps, *log;
    size_t bytes;
    void *golden;
    if (!data) SKIPm("MTAN_PHYSIONET is not set");
    golden = slurp_golden("losses-physionet-enc.safetensors", &bytes);
    ASSERT(golden && mtan_file_open(&file, golden, bytes) == MTAN_OK);
    ASSERT(mtan_file_tensor(&file, "loss", &view) == MTAN_OK && mtan_view_read_f64(&view, loss, 40) == MTAN_OK);
    ASSERT(mtan_file_tensor(&file, "valid", &view) == MTAN_OK && mtan_view_read_f64(&view, valid, 4) == MTAN_OK);
    snprintf(line, sizeof line,
             "train physionet-enc --preset faithful --seed 0 --epochs 2 --quiet --out @/losses --data %s", data);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    steps = command_text("losses/steps.csv"), log = command_text("losses/log.csv");
    for (int i = 0; i < 40; i++) ASSERT(fabs(cell(steps, i + 1, 2) - loss[i]) <= 1e-4 * loss[i]);
    for (int e = 0; e < 2; e++) ASSERT(fabs(cell(log, e + 1, 2) - valid[2 * e]) <= 1e-4 * valid[2 * e]);
    for (int e = 0; e < 2; e++) ASSERT(fabs(cell(log, e + 1, 3) - valid[2 * e + 1]) <= 1e-3);
    free(steps), free(log);
    ASSERT(guard_free(golden));
    PASS();
}

SUITE(command_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(options_are_checked);
    RUN_TEST(options_that_do_not_fit_are_refused);
    RUN_TEST(every_command_has_help);
    greatest_set_test_suffix("bash");
    RUN_TESTp(every_option_is_completed, "bash", "%.0s--%s ");
    greatest_set_test_suffix("zsh");
    RUN_TESTp(every_option_is_completed, "zsh", "%.0s        '--%s:");
    greatest_set_test_suffix("fish");
    RUN_TESTp(every_option_is_completed, "fish", "_from %s' -l %s ");
    RUN_TEST(an_unknown_shell_is_refused);
    RUN_TEST(names_do_not_speak_to_the_terminal);
    RUN_TEST(files_do_not_speak_to_the_terminal);
    RUN_TEST(names_that_cannot_be_saved_are_refused_early);
    RUN_TEST(more_names_than_a_file_holds_are_refused_early);
    RUN_TEST(names_in_tables_are_quoted);
    RUN_TEST(streams_without_an_end_are_not_followed);
    RUN_TEST(a_run_always_has_a_best_model);
    RUN_TEST(other_data_is_used_whole);
    RUN_TEST(samples_follow_the_seed);
    RUN_TEST(a_model_is_trained_and_used);
    RUN_TEST(a_model_is_made_smaller);
    RUN_TEST(a_resumed_run_has_the_same_bits);
    RUN_TEST(an_interrupted_run_is_saved);
    RUN_TEST(a_killed_run_leaves_a_good_checkpoint);
    RUN_TEST(a_full_disk_loses_nothing);
    RUN_TEST(divergence_names_its_batch);
    RUN_TEST(interpolation_follows_the_grid);
    RUN_TEST(channels_weigh_the_same);
    RUN_TEST(bad_records_are_left_out_and_counted);
    RUN_TEST(results_that_are_not_finite_are_left_out);
    RUN_TEST(curves_that_are_not_finite_are_left_out);
    RUN_TEST(the_first_losses_are_the_published_ones);
}
