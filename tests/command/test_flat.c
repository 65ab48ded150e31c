/* The flat interface for other languages against the command: the same model files, the same numbers, the same sentences. */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../tools/data/array.h"
#include "../../tools/data/memory.h"
#include "../../tools/mtan/command/commands.h"
#include "../../tools/mtan/flat/flat.h"
#include "command_line.h"

#define SIZES "--enc-hidden 8 --embed 8 --ref-points 6 --batch 16 --lr 0.01 --epochs 3 --threads 1 --seed 3 "
#define ENC "train own --model enc --head-hidden 6 " SIZES
#define FULL "train own --model interp --mlp-hidden 6 --dec-hidden 6 --latent 3 " SIZES
enum { ROWS_MOST = 1000 };

/* The test folder's events.csv and labels.csv as columns. */
static struct {
    char records[COMMAND_RECORDS * 8];
    int64_t offset[COMMAND_RECORDS + 1];
    double time[ROWS_MOST], value[ROWS_MOST], number[COMMAND_RECORDS];
    int32_t channel[ROWS_MOST], label[COMMAND_RECORDS];
    mtan_flat_data *data;
} columns;
static const char channels[] = "pulse\0heat", classes[] = "up\0down";

static void read_columns(void) {
    char record[16], channel[16], last[16] = "";
    char *text = command_text("events.csv"), *line = strchr(text, '\n') + 1, *names = columns.records;
    int32_t n = 0, rows = 0;
    for (; sscanf(line, "%15[^,],%lf,%15[^,],%lf", record, &columns.time[rows], channel, &columns.value[rows]) == 4;
         line = strchr(line, '\n') + 1, rows++) {
        if (strcmp(last, record) != 0) {
            columns.offset[n] = rows, columns.label[n] = n % 2 ? 0 : 1, columns.number[n] = n / 3.0, n++;
            names += sprintf(names, "%s", strcpy(last, record)) + 1;
        }
        columns.channel[rows] = strcmp(channel, "heat") == 0;
    }
    columns.offset[n] = rows;
    free(text);
}

static void open_flat(void *unused) {
    command_open(unused);
    read_columns();
    columns.data = mtan_flat_data_new(COMMAND_RECORDS, columns.records, columns.offset, 2, channels, columns.time, NULL,
                                      columns.channel, columns.value);
    mtan_flat_data_classes(columns.data, 2, classes, columns.label);
}

static void close_flat(void *unused) {
    mtan_flat_listen(NULL, NULL);
    mtan_flat_data_free(columns.data);
    command_close(unused);
}

/* A line of words as the flat interface takes them; @ stands for the folder. */
static int run(const char *line, mtan_flat_progress asked, void *context) {
    char *copy = tool_text(line), *word;
    const char **words = NULL;
    int status;
    for (word = strtok(copy, " "); word; word = strtok(NULL, " "))
        arrput(words, tool_text(*word == '@' ? command_path(word + 2) : word));
    status = mtan_flat_run(columns.data, (int32_t)arrlen(words), words, asked, context);
    for (size_t i = 0; i < arrlenu(words); i++) free((void *)(uintptr_t)words[i]);
    arrfree(words);
    free(copy);
    return status;
}

/* ---- training ---- */

typedef struct watched {
    int steps, epochs, most, rising;
    double loss;
    int asked, stops; /* calls after the last epoch; which of them stops the run, from 1; 0: none */
} watched;

static int32_t watch(void *context, int32_t epoch, int32_t epochs, int32_t batch, int32_t batches, double loss,
                     double val_loss, double val_metric) {
    watched *w = context;
    if (epoch == 0) return isnan(loss) && isnan(val_loss) && isnan(val_metric) && ++w->asked != w->stops;
    w->rising = w->rising && epoch >= 1 && epoch <= epochs && batch >= 0 && batch <= batches && isfinite(loss);
    if (batch > 0) w->steps++, w->rising = w->rising && isnan(val_loss);
    else w->epochs++, w->rising = w->rising && isfinite(val_loss) && val_metric >= 0 && val_metric <= 1;
    return w->most == 0 || w->steps < w->most;
}

TEST a_training_writes_the_commands_bytes(void) {
    watched w = {.rising = 1};
    ASSERT_EQ_FMT(DONE, run(ENC "--out @/flat", watch, &w), "%d");
    ASSERT_EQ_FMT(DONE, command_run(ENC "--out @/run --data @/events.csv --labels @/labels.csv --quiet"), "%d");
    ASSERT(command_same_files("flat/best.safetensors", "run/best.safetensors"));
    ASSERT(command_same_files("flat/last.safetensors", "run/last.safetensors"));
    ASSERT(w.rising && w.epochs == 3 && w.steps == 9);
    PASS();
}

TEST numbers_train_to_the_commands_bytes(void) {
    char line[40];
    command_write("numbers.csv", "record,label\n");
    for (int i = 0; i < COMMAND_RECORDS; i++)
        sprintf(line, "r%d,%.17g\n", i, columns.number[i]), command_append("numbers.csv", line);
    mtan_flat_data_numbers(columns.data, columns.number);
    ASSERT_EQ_FMT(DONE, run(ENC "--task number --out @/flat", NULL, NULL), "%d");
    ASSERT_EQ_FMT(DONE, command_run(ENC "--task number --out @/run --data @/events.csv --labels @/numbers.csv --quiet"),
                  "%d");
    ASSERT(command_same_files("flat/best.safetensors", "run/best.safetensors"));
    PASS();
}

TEST curves_train_to_the_commands_bytes(void) {
    mtan_flat_data_classes(columns.data, 0, NULL, NULL);
    ASSERT_EQ_FMT(DONE, run(FULL "--out @/flat", NULL, NULL), "%d");
    ASSERT_EQ_FMT(DONE, command_run(FULL "--out @/run --data @/events.csv --quiet"), "%d");
    ASSERT(command_same_files("flat/best.safetensors", "run/best.safetensors"));
    PASS();
}

/* Whoever watches stops a run; it keeps its best model and goes on to the bytes of one that was never stopped. */
TEST a_training_is_stopped_and_resumed(void) {
    watched w = {.most = 4, .rising = 1};
    ASSERT_EQ_FMT(INTERRUPTED, run(ENC "--out @/flat", watch, &w), "%d");
    ASSERT_EQ_FMT(4, w.steps, "%d");
    ASSERT(command_bytes("flat/best.safetensors") > 0);
    ASSERT_EQ_FMT(DONE, run(ENC "--out @/flat --resume", NULL, NULL), "%d");
    ASSERT_EQ_FMT(DONE, run(ENC "--out @/whole", NULL, NULL), "%d");
    ASSERT(command_same_files("flat/best.safetensors", "whole/best.safetensors"));
    PASS();
}

/* Whatever it stops after the last epoch, the model is whole, and the run goes on to the same bytes. */
TEST what_follows_a_training_is_stopped_too(const char *line) {
    watched all = {.rising = 1};
    char words[256];
    snprintf(words, sizeof words, "%s --out @/whole", line);
    ASSERT_EQ_FMT(DONE, run(words, watch, &all), "%d");
    ASSERT(all.rising && all.asked > 10);
    for (int part = 0; part <= 4; part++) {
        watched w = {.rising = 1, .stops = part ? all.asked * part / 4 : 1};
        snprintf(words, sizeof words, "%s --out @/flat%d", line, part);
        ASSERT_EQ_FMT(INTERRUPTED, run(words, watch, &w), "%d");
        ASSERT(w.asked == w.stops && w.epochs == all.epochs);
        snprintf(words, sizeof words, "selftest @/flat%d/best.safetensors", part);
        ASSERT_EQ_FMT(DONE, command_run(words), "%d");
        snprintf(words, sizeof words, "%s --out @/flat%d --resume", line, part);
        ASSERT_EQ_FMT(DONE, run(words, NULL, NULL), "%d");
        snprintf(words, sizeof words, "flat%d/best.safetensors", part);
        ASSERT(command_same_files(words, "whole/best.safetensors"));
    }
    PASS();
}

static void count_remarks(void *context, int32_t wrong, const char *text) {
    int *heard = context;
    heard[wrong != 0] += strlen(text) > 0;
}

TEST failures_are_sentences(void) {
    int heard[2] = {0, 0};
    mtan_flat_listen(count_remarks, heard);
    ASSERT_EQ_FMT(BAD_USE, run(ENC "--out @/flat --dropuot 0.5", NULL, NULL), "%d");
    ASSERT_STR_EQ("train: no option --dropuot; did you mean --dropout?", mtan_flat_message());
    ASSERT(heard[0] == 0 && heard[1] == 1);
    ASSERT_EQ_FMT(BAD_USE, run("predict m.safetensors", NULL, NULL), "%d");
    ASSERT_STR_EQ("predict: only commands that write files run inside another program", mtan_flat_message());
    columns.value[5] = INFINITY;
    ASSERT_EQ_FMT(BAD_USE, run(ENC "--out @/flat", NULL, NULL), "%d");
    ASSERT_STR_EQ("events:6: inf is no value: a number that a float can hold", mtan_flat_message());
    ASSERT(!mtan_flat_model_load(command_path("labels.csv")));
    ASSERT(strstr(mtan_flat_message(), "labels.csv: "));
    ASSERT(!mtan_flat_model_open("nonsense", 8));
    ASSERT(strstr(mtan_flat_message(), "the model: "));
    PASS();
}

/* ---- models ---- */

static mtan_flat_model *trained(const char *line) {
    return run(line, NULL, NULL) == DONE ? mtan_flat_model_load(command_path("flat/best.safetensors")) : NULL;
}

TEST a_model_is_its_bytes(void) {
    mtan_flat_model *m = trained(ENC "--out @/flat"), *again;
    const void *bytes;
    char text[16];
    size_t n = 0;
    ASSERT(m);
    bytes = mtan_flat_model_bytes(m, &n);
    ASSERT((again = mtan_flat_model_open(bytes, n)));
    ASSERT_EQ_FMT(0, (int)mtan_flat_model_save(again, command_path("again.safetensors")), "%d");
    ASSERT(command_same_files("again.safetensors", "flat/best.safetensors"));
    ASSERT_EQ_FMT(0, (int)mtan_flat_model_text(m, "enc_hidden", text, sizeof text, &n), "%d");
    ASSERT_STR_EQ("8", text);
    ASSERT_EQ_FMT(0, (int)mtan_flat_model_text(m, "mtan.plan.seed", NULL, 0, &n), "%d");
    ASSERT_EQ_FMT((size_t)1, n, "%zu");
    ASSERT(mtan_flat_model_text(m, "mtan.nothing", text, sizeof text, &n) != 0);
    ASSERT(mtan_flat_model_outputs(m) == 2 && mtan_flat_model_channels(m) == 2);
    ASSERT_STR_EQ("heat", mtan_flat_model_channel(m, 0));
    ASSERT_STR_EQ("down", mtan_flat_model_class(m, 0));
    ASSERT(!mtan_flat_model_channel(m, 2) && !mtan_flat_model_class(m, -1));
    ASSERT(strlen(mtan_flat_model_backend(m)) > 0 && strlen(mtan_flat_version()) > 0);
    ASSERT(mtan_flat_model_save(m, command_path("no/such/folder")) != 0);
    mtan_flat_model_free(m), mtan_flat_model_free(again), mtan_flat_model_free(NULL);
    PASS();
}

/* ---- predictions ---- */

/* Column `column`, from 0, of row `row`, from 1, of what a command printed. */
static double printed(const char *text, size_t row, int column) {
    for (; row > 0; row--) text = strchr(text, '\n') + 1;
    for (; column > 0; column--) text = strchr(text, ',') + 1;
    return strtod(text, NULL);
}

static int same_number(double got, double shown) {
    const int good = fabs(got - shown) <= 1e-8 * (1 + fabs(shown)); /* nine digits are printed */
    if (!good) printf("  BAD %.12g, printed %.12g\n", got, shown);
    return good;
}

/* Three labels of a record, some of them not known; the last record has none that is. */
TEST several_labels_train_to_the_commands_bytes(void) {
    static const char names[] = "early\0late\0odd";
    static double value[3 * COMMAND_RECORDS], measured[15];
    mtan_flat_model *m;
    char line[40], *text;
    command_write("several.csv", "record,early,late,odd\n");
    for (int i = 0; i < COMMAND_RECORDS; i++) {
        double *v = value + 3 * i;
        v[0] = i % 2, v[1] = i % 3 == 0, v[2] = i % 5 == 0 ? NAN : i % 7 < 3;
        if (i == COMMAND_RECORDS - 1) v[0] = v[1] = v[2] = NAN;
        else
            sprintf(line, isnan(v[2]) ? "r%d,%g,%g,\n" : "r%d,%g,%g,%g\n", i, v[0], v[1], v[2]),
                command_append("several.csv", line);
    }
    mtan_flat_data_labels(columns.data, 3, names, value);
    ASSERT((m = trained(ENC "--out @/flat")));
    ASSERT_EQ_FMT(DONE, command_run(ENC "--out @/run --data @/events.csv --labels @/several.csv --quiet"), "%d");
    ASSERT(command_same_files("flat/best.safetensors", "run/best.safetensors"));
    ASSERT_STR_EQ("auc", mtan_flat_metric(m, 0));
    ASSERT(mtan_flat_metric(m, 4) && !mtan_flat_metric(m, 5));
    ASSERT_EQ_FMT(0, (int)mtan_flat_evaluate(m, columns.data, 1, -1, 0, 10, measured), "%d");
    ASSERT_EQ_FMT(DONE,
                  command_run("eval @/run/best.safetensors --data @/events.csv --labels @/several.csv --split all "
                              "--bootstrap 10 --json --quiet"),
                  "%d");
    text = command_text("out.txt");
    ASSERT(same_number(measured[0], command_json(text, "\"model\"", "auc")));
    free(text);
    value[1] = 0.5;
    ASSERT(mtan_flat_evaluate(m, columns.data, 1, -1, 0, 10, measured) != 0);
    ASSERT_STR_EQ("labels:1: \"late\" is 0.5: it must be 1 or 0", mtan_flat_message());
    mtan_flat_data_labels(columns.data, 3, "early\0late\0new", value);
    ASSERT(mtan_flat_evaluate(m, columns.data, 1, -1, 0, 10, measured) != 0);
    mtan_flat_model_free(m);
    PASS();
}

TEST facts_of_a_model(void) {
    mtan_flat_model *m = trained(ENC "--origin record --positive up --out @/flat");
    double least = 0, most = 0;
    ASSERT(m);
    ASSERT(strcmp("up", mtan_flat_model_class(m, mtan_flat_model_positive(m))) == 0);
    ASSERT_STR_EQ("", mtan_flat_model_unit(m));
    ASSERT(mtan_flat_model_from_first(m) && !mtan_flat_model_has_dates(m));
    ASSERT_EQ_FMT(0, (int)mtan_flat_model_range(m, 1, &least, &most), "%d");
    ASSERT(least < most);
    ASSERT_EQ_FMT(0, (int)mtan_flat_model_range(m, -1, &least, &most), "%d");
    ASSERT(fabs(least) < 1e-9 && most > 0); /* counted from the first one */
    ASSERT(mtan_flat_model_range(m, 2, &least, &most) != 0);
    mtan_flat_model_free(m);
    PASS();
}

TEST predictions_are_the_commands(void) {
    mtan_flat_model *m = trained(ENC "--out @/flat");
    double p[2 * COMMAND_RECORDS], again[2 * COMMAND_RECORDS];
    char *text;
    ASSERT(m);
    ASSERT_EQ_FMT(0, (int)mtan_flat_predict(m, columns.data, 1, -1, 0, p), "%d");
    ASSERT_EQ_FMT(0, (int)mtan_flat_predict(m, columns.data, 2, -1, 0, again), "%d");
    ASSERT_MEM_EQ(p, again, sizeof p);
    ASSERT_EQ_FMT(DONE, command_run("predict @/flat/best.safetensors --data @/events.csv --quiet"), "%d");
    text = command_text("out.txt");
    for (size_t i = 0; i < COMMAND_RECORDS; i++)
        ASSERT(same_number(p[2 * i], printed(text, i + 1, 1)) && same_number(p[2 * i + 1], printed(text, i + 1, 2)));
    free(text);
    columns.channel[0] = 7;
    ASSERT(mtan_flat_predict(m, columns.data, 1, -1, 0, again) != 0);
    ASSERT_STR_EQ("events:1: channel 7: there are 2", mtan_flat_message());
    mtan_flat_model_free(m);
    PASS();
}

/* Where the values of a parameter begin among all of them; -1: there is no such parameter. */
static int32_t place_of(const mtan_flat_model *m, const char *wanted, int32_t *count) {
    char name[64];
    int32_t rows, cols;
    *count = 0;
    for (int32_t i = 0; i < mtan_flat_parameters(m); i++, *count += rows * cols)
        if (mtan_flat_parameter(m, i, name, sizeof name, &rows, &cols) == 0 && strcmp(name, wanted) == 0) return *count;
    return -1;
}

/* The cross-entropy is the mean of -log p of the true classes, and its gradient in the last bias that of p minus the truth. */
TEST a_gradient_follows_from_the_predictions(void) {
    mtan_flat_model *m = trained(ENC "--preset correct --out @/flat");
    double p[2 * COMMAND_RECORDS], loss[4], *gradient, ce = 0, bias = 0;
    int32_t count, at;
    ASSERT(m);
    ASSERT(place_of(m, "", &count) < 0);
    at = place_of(m, "rec.classifier.4.bias", &(int32_t){0});
    ASSERT(at > 0);
    gradient = calloc((size_t)count, sizeof *gradient);
    ASSERT_EQ_FMT(0, (int)mtan_flat_predict(m, columns.data, 1, -1, 0, p), "%d");
    ASSERT_EQ_FMT(0, (int)mtan_flat_gradient(m, columns.data, NULL, 0, 1, loss, gradient), "%d");
    for (size_t i = 0; i < COMMAND_RECORDS; i++) {
        const int truth = strcmp(mtan_flat_model_class(m, 0), columns.label[i] == 0 ? "up" : "down") != 0;
        ce -= log(p[2 * i + (size_t)truth]) / COMMAND_RECORDS;
        bias += (p[2 * i] - (truth == 0)) / COMMAND_RECORDS;
    }
    ASSERT(fabs(loss[0] - ce) < 1e-6 && fabs(loss[2] - ce) < 1e-6);
    ASSERT(fabs(gradient[at] - bias) < 1e-6 && fabs(gradient[at + 1] + bias) < 1e-6);
    free(gradient);
    ASSERT(mtan_flat_parameter(m, 999, (char[8]){0}, 8, &count, &at) != 0);
    ASSERT_STR_EQ("parameter 999: there is none", mtan_flat_message());
    ASSERT(mtan_flat_parameter(m, 0, (char[8]){0}, 8, &count, &at) != 0);
    mtan_flat_model_free(m);
    PASS();
}

/* Given noise that is zero, the latent state is its mean for every seed; drawn noise goes by the seed. */
TEST noise_is_given_or_drawn(void) {
    mtan_flat_model *m = trained(FULL "--out @/flat");
    double *noise = calloc(COMMAND_RECORDS * 6 * 3, sizeof *noise), loss[4][4], *gradient;
    int32_t count;
    ASSERT(m && place_of(m, "", &count) < 0);
    gradient = calloc((size_t)count, sizeof *gradient);
    for (int i = 0; i < 4; i++)
        ASSERT_EQ_FMT(
            0, (int)mtan_flat_gradient(m, columns.data, i < 2 ? noise : NULL, (uint64_t)i, 1, loss[i], gradient), "%d");
    ASSERT_MEM_EQ(loss[0], loss[1], sizeof loss[0]);
    ASSERT(loss[0][1] != loss[2][1] && loss[2][1] != loss[3][1]); /* minus the bound */
    ASSERT(loss[0][3] == loss[3][3]);                             /* the KL has no noise */
    free(noise), free(gradient);
    mtan_flat_model_free(m);
    PASS();
}

TEST prepared_records_are_in_the_models_units(void) {
    mtan_flat_model *m = trained(ENC "--out @/flat");
    int64_t offset[COMMAND_RECORDS + 1];
    double time[ROWS_MOST], value[ROWS_MOST], raw_time[ROWS_MOST], raw[ROWS_MOST], rate, least = 1e9, most = -1e9;
    int32_t channel[ROWS_MOST], raw_channel[ROWS_MOST], count;
    ASSERT(m);
    ASSERT_EQ_FMT(0, (int)mtan_flat_prepare(m, columns.data, offset, NULL, NULL, NULL), "%d");
    ASSERT_EQ_FMT(0, (int)mtan_flat_prepare(m, columns.data, offset, time, channel, value), "%d");
    ASSERT_EQ_FMT(0, (int)mtan_flat_observations(m, columns.data, 1, &count, raw_time, raw_channel, raw), "%d");
    ASSERT_EQ_FMT((int)(offset[2] - offset[1]), (int)count, "%d");
    rate = time[offset[1] + count - 1] / raw_time[count - 1];
    for (int32_t i = 0; i < count; i++) {
        ASSERT_EQ_FMT(channel[offset[1] + i], raw_channel[i], "%d");
        ASSERT(fabs(time[offset[1] + i] - rate * raw_time[i]) < 1e-6);
    }
    for (int64_t i = 0; i < offset[COMMAND_RECORDS]; i++) {
        least = value[i] < least ? value[i] : least, most = value[i] > most ? value[i] : most;
        ASSERT(time[i] >= 0 && time[i] <= 1.01);
    }
    ASSERT(least < -1 && most > 1 && most < 4); /* deviations of z-scores */
    mtan_flat_model_free(m);
    PASS();
}

TEST curves_are_the_commands(void) {
    int64_t offset[COMMAND_RECORDS + 1];
    double at[3 * COMMAND_RECORDS], mean[6 * COMMAND_RECORDS], sd[6 * COMMAND_RECORDS];
    double latent[COMMAND_RECORDS * 18], logvar[COMMAND_RECORDS * 18];
    mtan_flat_model *m;
    char *text;
    mtan_flat_data_classes(columns.data, 0, NULL, NULL);
    ASSERT((m = trained(FULL "--out @/flat")));
    for (int i = 0; i <= COMMAND_RECORDS; i++) offset[i] = 3 * i;
    for (int i = 0; i < 3 * COMMAND_RECORDS; i++) at[i] = 1 + 2 * (i % 3);
    ASSERT(mtan_flat_interpolate(m, columns.data, 1, -1, 0, mean, sd) != 0);
    ASSERT_STR_EQ("no times to interpolate at", mtan_flat_message());
    mtan_flat_data_queries(columns.data, offset, at);
    ASSERT_EQ_FMT(0, (int)mtan_flat_interpolate(m, columns.data, 1, -1, 0, mean, sd), "%d");
    ASSERT_EQ_FMT(DONE, command_run("interpolate @/flat/best.safetensors --data @/events.csv --at 1:5:2 --quiet"),
                  "%d");
    text = command_text("out.txt");
    for (size_t i = 0; i < 6 * COMMAND_RECORDS; i++)
        ASSERT(same_number(mean[i], printed(text, i + 1, 3)) && same_number(sd[i], printed(text, i + 1, 4)));
    free(text);
    ASSERT_EQ_FMT(0, (int)mtan_flat_latent(m, columns.data, 1, latent, logvar), "%d");
    ASSERT(isfinite(latent[0]) && isfinite(logvar[COMMAND_RECORDS * 18 - 1]) && latent[0] != latent[18]);
    ASSERT(mtan_flat_predict(m, columns.data, 1, -1, 0, mean) != 0);
    mtan_flat_model_free(m);
    PASS();
}

TEST times_asked_about_ascend(void) {
    const double at[2] = {2.5, 0.5}; /* of record 1 */
    double first[COMMAND_RECORDS], p[4];
    int64_t label[COMMAND_RECORDS + 1], query[COMMAND_RECORDS + 1];
    mtan_flat_model *m;
    for (int i = 0; i <= COMMAND_RECORDS; i++) label[i] = i, query[i] = i < 2 ? 0 : 2;
    for (int i = 0; i < COMMAND_RECORDS; i++) first[i] = columns.time[columns.offset[i]];
    mtan_flat_data_label_times(columns.data, label, first, NULL);
    ASSERT((m = trained("train own --model per-time " SIZES "--out @/flat")));
    mtan_flat_data_queries(columns.data, query, at);
    ASSERT(mtan_flat_predict(m, columns.data, 1, -1, 0, p) != 0);
    ASSERT_STR_EQ("record r1: the times asked about must ascend", mtan_flat_message());
    mtan_flat_model_free(m);
    PASS();
}

TEST a_stream_ends_where_a_record_does(void) {
    mtan_flat_model *m =
        trained(ENC "--summaries 0 --out @/flat"); /* those count steps, and one that is late is none */
    double p[2 * COMMAND_RECORDS], now[2];
    mtan_flat_stream *s;
    ASSERT(m);
    ASSERT_EQ_FMT(0, (int)mtan_flat_predict(m, columns.data, 1, -1, 0, p), "%d");
    ASSERT((s = mtan_flat_stream_new(m, "r0", -1, 0)));
    for (int64_t i = 0; i < columns.offset[1]; i++)
        ASSERT_EQ_FMT(
            0,
            (int)mtan_flat_stream_push(s, columns.time[i], 0, columns.channel[i] ? "heat" : "pulse", columns.value[i]),
            "%d");
    ASSERT_EQ_FMT(0, (int)mtan_flat_stream_predict(s, NAN, 0, now), "%d");
    ASSERT(fabs(now[0] - p[0]) <= 1e-5); /* observations were pushed out of order */
    ASSERT_EQ_FMT(0, (int)mtan_flat_stream_push(s, 1, 0, "heat", NAN), "%d");
    ASSERT(mtan_flat_stream_push(s, 1, 0, "heart", 1) != 0);
    ASSERT_STR_EQ("the model has no channel \"heart\"", mtan_flat_message());
    ASSERT(mtan_flat_stream_push(s, INFINITY, 0, "heat", 1) != 0);
    ASSERT(mtan_flat_stream_interpolate(s, 1, 0, now, p) != 0);
    ASSERT_EQ_FMT(0, (int)mtan_flat_stream_reset(s), "%d");
    ASSERT_EQ_FMT(0, (int)mtan_flat_stream_predict(s, NAN, 0, now + 0), "%d");
    mtan_flat_stream_free(s), mtan_flat_stream_free(NULL);
    mtan_flat_model_free(m);
    PASS();
}

/* ---- why, and what it is worth ---- */

TEST attention_is_shares(void) {
    mtan_flat_model *m = trained(ENC "--out @/flat");
    double weight[6 * 16], reference[6], *times;
    int64_t offset[COMMAND_RECORDS + 1];
    ASSERT(m);
    ASSERT_EQ_FMT(0, (int)mtan_flat_times(m, columns.data, offset, NULL), "%d");
    times = tool_calloc((size_t)offset[COMMAND_RECORDS], sizeof *times);
    ASSERT_EQ_FMT(0, (int)mtan_flat_times(m, columns.data, NULL, times), "%d");
    const int64_t L = offset[1];
    ASSERT(L > 3 && L <= 16);
    for (int64_t i = 1; i < L; i++) ASSERT(times[i] > times[i - 1] && times[i] <= 10.5);
    ASSERT_EQ_FMT(0, (int)mtan_flat_attention(m, columns.data, 0, 0, 1, weight, reference), "%d");
    for (int k = 0; k < 6; k++) {
        double sum = 0;
        for (int64_t i = 0; i < L; i++) sum += weight[k * L + i];
        ASSERT(fabs(sum - 1) < 1e-5);
    }
    ASSERT(reference[0] == 0 && reference[5] > 9 && reference[5] < 10.5);
    ASSERT(mtan_flat_attention(m, columns.data, COMMAND_RECORDS, 0, 1, weight, reference) != 0);
    ASSERT(mtan_flat_attention(m, columns.data, 0, 5, 1, weight, reference) != 0);
    free(times);
    mtan_flat_model_free(m);
    PASS();
}

/* Leaving an observation out changes the log-odds by its importance. */
TEST importance_is_what_leaving_out_does(void) {
    mtan_flat_model *m = trained(ENC "--out @/flat");
    int32_t count = 0, of = -1, channel[16];
    double time[16], value[16], change[16], log_odds, p[2 * COMMAND_RECORDS];
    ASSERT(m);
    ASSERT_EQ_FMT(0, (int)mtan_flat_observations(m, columns.data, 0, &count, NULL, NULL, NULL), "%d");
    ASSERT(count > 3 && count <= 16);
    ASSERT_EQ_FMT(0, (int)mtan_flat_observations(m, columns.data, 0, &count, time, channel, value), "%d");
    ASSERT_EQ_FMT(0, (int)mtan_flat_importance(m, columns.data, 0, 1, &of, &log_odds, change), "%d");
    ASSERT_EQ_FMT(0, (int)mtan_flat_predict(m, columns.data, 1, -1, 0, p), "%d");
    ASSERT(of >= 0 && fabs(log_odds - log(p[of] / p[1 - of])) < 1e-4);
    for (int64_t i = 0; i < columns.offset[1]; i++)
        if (fabs(columns.time[i] - time[2]) < 1e-5) columns.value[i] = NAN;
    ASSERT_EQ_FMT(0, (int)mtan_flat_predict(m, columns.data, 1, -1, 0, p), "%d");
    ASSERT(fabs(log_odds - change[2] - log(p[of] / p[1 - of])) < 1e-4);
    of = 2;
    ASSERT(mtan_flat_importance(m, columns.data, 0, 1, &of, &log_odds, change) != 0);
    mtan_flat_model_free(m);
    PASS();
}

/* It is told in the number's unit. */
TEST a_number_has_importances(void) {
    int32_t of = -1;
    double change[16], said, p[COMMAND_RECORDS];
    mtan_flat_model *m;
    mtan_flat_data_numbers(columns.data, columns.number);
    ASSERT((m = trained(ENC "--task number --seed 1 --out @/flat"))); /* of seed 3 no unit of the head is alive */
    ASSERT(mtan_flat_metric(m, 2) && !mtan_flat_metric(m, 3));        /* no interval, no coverage */
    ASSERT_EQ_FMT(0, (int)mtan_flat_predict(m, columns.data, 1, -1, 0, p), "%d");
    ASSERT_EQ_FMT(0, (int)mtan_flat_importance(m, columns.data, 0, 1, &of, &said, change), "%d");
    ASSERT(of == 0 && fabs(said - p[0]) < 1e-5);
    columns.value[0] = NAN;
    ASSERT_EQ_FMT(0, (int)mtan_flat_predict(m, columns.data, 1, -1, 0, p), "%d");
    ASSERT(fabs(change[0]) > 1e-4 && fabs(said - change[0] - p[0]) < 1e-4);
    mtan_flat_model_free(m);
    PASS();
}

TEST each_label_has_importances(void) {
    static const char names[] = "early\0late";
    static double marks[2 * COMMAND_RECORDS];
    double change[2][16], said[2], p[2 * COMMAND_RECORDS];
    mtan_flat_model *m;
    for (int i = 0; i < COMMAND_RECORDS; i++) marks[2 * i] = i % 2, marks[2 * i + 1] = i % 3 == 0;
    mtan_flat_data_labels(columns.data, 2, names, marks);
    ASSERT((m = trained(ENC "--out @/flat")));
    for (int32_t k = 0; k < 2; k++)
        ASSERT_EQ_FMT(0, (int)mtan_flat_importance(m, columns.data, 0, 1, &k, &said[k], change[k]), "%d");
    columns.value[0] = NAN;
    ASSERT_EQ_FMT(0, (int)mtan_flat_predict(m, columns.data, 1, -1, 0, p), "%d");
    for (int k = 0; k < 2; k++) ASSERT(fabs(said[k] - change[k][0] - log(p[k] / (1 - p[k]))) < 1e-4);
    for (int i = 0; i < 2 * COMMAND_RECORDS; i++) marks[i] = NAN;
    ASSERT(mtan_flat_evaluate(m, columns.data, 1, -1, 0, 0, p) != 0);
    ASSERT_STR_EQ("no record has a label", mtan_flat_message());
    mtan_flat_model_free(m);
    PASS();
}

TEST a_search_sees_several_labels(void) {
    static const char names[] = "early\0late";
    static double marks[2 * COMMAND_RECORDS];
    mtan_flat_model *m;
    for (int i = 0; i < COMMAND_RECORDS; i++) marks[2 * i] = i % 2, marks[2 * i + 1] = i % 3 == 0;
    mtan_flat_data_labels(columns.data, 2, names, marks);
    ASSERT((m = trained("train own --budget 2trials --batch 16 --epochs 2 --threads 1 --out @/flat")));
    ASSERT_EQ_FMT(2, (int)mtan_flat_model_outputs(m), "%d"); /* not curves */
    ASSERT_STR_EQ("late", mtan_flat_model_class(m, 1));
    mtan_flat_model_free(m);
    PASS();
}

/* What a command of another program's would print goes to who listens. */
TEST commands_print_nothing(void) {
    ASSERT_EQ_FMT(DONE, run(ENC "--out @/flat", NULL, NULL), "%d");
    fflush(stdout);
    const int before = dup(STDOUT_FILENO), file = open(command_path("out.txt"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    ASSERT(before >= 0 && file >= 0 && dup2(file, STDOUT_FILENO) >= 0);
    const int status = run("quantize @/flat/best.safetensors @/small.safetensors", NULL, NULL);
    fflush(stdout);
    (void)dup2(before, STDOUT_FILENO), close(before), close(file);
    ASSERT_EQ_FMT(DONE, status, "%d");
    ASSERT_EQ_FMT((size_t)0, command_bytes("out.txt"), "%zu");
    PASS();
}

TEST metrics_are_the_commands(void) {
    mtan_flat_model *m = trained(ENC "--out @/flat");
    double value[18];
    char *text;
    ASSERT(m);
    ASSERT_EQ_FMT(0, (int)mtan_flat_evaluate(m, columns.data, 1, -1, 0, 50, value), "%d");
    ASSERT_EQ_FMT(DONE,
                  command_run("eval @/flat/best.safetensors --data @/events.csv --labels @/labels.csv --split all "
                              "--bootstrap 50 --json --quiet"),
                  "%d");
    text = command_text("out.txt");
    ASSERT_STR_EQ("auc", mtan_flat_metric(m, 0));
    ASSERT(same_number(value[0], command_json(text, "", "auc")));
    ASSERT_STR_EQ("log_loss", mtan_flat_metric(m, 3));
    ASSERT(same_number(value[9], command_json(text, "", "log_loss")));
    ASSERT(value[10] < value[9] && value[9] < value[11]);
    ASSERT(!mtan_flat_metric(m, 6) && !mtan_flat_metric(m, -1));
    free(text);
    mtan_flat_data_classes(columns.data, 0, NULL, NULL);
    ASSERT(mtan_flat_evaluate(m, columns.data, 1, -1, 0, 0, value) != 0);
    ASSERT_STR_EQ("no record has a label", mtan_flat_message());
    mtan_flat_model_free(m);
    PASS();
}

TEST a_report_needs_no_files(void) {
    ASSERT_EQ_FMT(DONE, run(ENC "--out @/flat", NULL, NULL), "%d");
    ASSERT_EQ_FMT(DONE, run("report @/flat --out @/r.html", NULL, NULL), "%d");
    ASSERT(command_says("r.html", "</html>") && command_says("r.html", "Results on "));
    PASS();
}

SUITE(flat_suite) {
    GREATEST_SET_SETUP_CB(open_flat, NULL);
    GREATEST_SET_TEARDOWN_CB(close_flat, NULL);
    RUN_TEST(a_training_writes_the_commands_bytes);
    RUN_TEST(numbers_train_to_the_commands_bytes);
    RUN_TEST(several_labels_train_to_the_commands_bytes);
    RUN_TEST(curves_train_to_the_commands_bytes);
    RUN_TEST(a_training_is_stopped_and_resumed);
    RUN_TESTp(what_follows_a_training_is_stopped_too, ENC "--refit trees");
    RUN_TESTp(what_follows_a_training_is_stopped_too, ENC "--refit all");
    RUN_TEST(failures_are_sentences);
    RUN_TEST(a_model_is_its_bytes);
    RUN_TEST(facts_of_a_model);
    RUN_TEST(predictions_are_the_commands);
    RUN_TEST(a_gradient_follows_from_the_predictions);
    RUN_TEST(noise_is_given_or_drawn);
    RUN_TEST(prepared_records_are_in_the_models_units);
    RUN_TEST(curves_are_the_commands);
    RUN_TEST(times_asked_about_ascend);
    RUN_TEST(a_stream_ends_where_a_record_does);
    RUN_TEST(attention_is_shares);
    RUN_TEST(importance_is_what_leaving_out_does);
    RUN_TEST(a_number_has_importances);
    RUN_TEST(each_label_has_importances);
    RUN_TEST(a_search_sees_several_labels);
    RUN_TEST(commands_print_nothing);
    RUN_TEST(metrics_are_the_commands);
    RUN_TEST(a_report_needs_no_files);
}
