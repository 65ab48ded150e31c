/* demo: shows the use of the model on two thousand made-up patients, in comparison with simpler methods.
 *
 *     demo [--folder DIR] [--threads N] [--quiet]
 *
 * Writes the patients' observations and classes to DIR (build/demo), trains two models on them with exactly the
 * commands that it prints, and asks both about 300 patients that they have not seen: the noise-free curve of each vital
 * sign, against straight lines and a Gaussian process; and whether the pulse or the fever came first, against logistic
 * regression on summaries. It uses the models like any C program: a file, raw observations, mtan.h. Steps and seeds are
 * fixed, so the numbers do not depend on the machine's speed or on the number of threads. The exit status is 1 if a
 * simpler method wins, 2 if something failed. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../platform/pool.h"
#include "../data/patients.h"
#include "../mtan/command/commands.h"
#include "../mtan/model/bundle.h"
#include "../mtan/measure/logistic.h"
#include "../mtan/measure/rivals.h"

enum { TRAINED = 2000, ASKED = 300, PATIENTS = TRAINED + ASKED, FEATURES = PATIENT_CHANNELS * RIVAL_SUMMARIES };
enum { HALF_HOURS = 2 * PATIENT_HOURS + 1, ROOM = PATIENT_MOST + PATIENT_CHANNELS, WORDS = 64 };

typedef struct settings {
    const char *folder;
    int threads, quiet;
} settings;

static patient patients[PATIENTS]; /* the first TRAINED of them are for training */

/* ---- files and commands ---- */

static void put_patient(FILE *events, FILE *labels, uint32_t i) {
    const patient *p = &patients[i];
    for (int32_t k = 0; k < p->n; k++)
        fprintf(events, "p%04u,%.2f,%s,%.2f\n", (unsigned)i, p->seen[k].time, patient_channels[p->seen[k].channel],
                p->seen[k].value);
    fprintf(labels, "p%04u,%s\n", (unsigned)i, patient_classes[p->pulse_first]);
}

static int write_files(const char *folder) {
    char path[2][512];
    FILE *events, *labels;
    snprintf(path[0], sizeof path[0], "%.400s/events.csv", folder);
    snprintf(path[1], sizeof path[1], "%.400s/labels.csv", folder);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) return complain("%s: %s", folder, strerror(errno)), 0;
    events = fopen(path[0], "w"), labels = fopen(path[1], "w");
    if (events) fputs("record,time,channel,value\n", events);
    if (labels) fputs("record,label\n", labels);
    for (uint32_t i = 0; events && labels && i < TRAINED; i++) put_patient(events, labels, i);
    const int good = events && labels && !ferror(events) && !ferror(labels);
    if ((events && fclose(events) != 0) | (labels && fclose(labels) != 0) | !good)
        return complain("%s: cannot be written", folder), 0;
    return 1;
}

/* Runs a command of `mtan` in this process: prints it, then runs it quietly. The line is split at blanks; @ stands for
 * the folder. */
static int run_command(const char *line, const settings *s) {
    char text[1024] = "", threads[16], *word[WORDS + 3];
    options o;
    int n = 0, good;
    for (; *line; line++)
        snprintf(text + strlen(text), sizeof text - strlen(text), *line == '@' ? "%s" : "%.1s",
                 *line == '@' ? s->folder : line);
    if (!s->quiet) printf("%s\n", text), fflush(stdout);
    for (char *at = strtok(text, " "); at && n < WORDS; at = strtok(NULL, " ")) word[n++] = at;
    snprintf(threads, sizeof threads, "--threads=%d", s->threads);
    if (strcmp(word[1], "train") == 0) word[n++] = threads;
    messages_quiet(1);
    good = options_parse(&o, n, word) && command_call(&o) == DONE;
    messages_quiet(s->quiet);
    return good;
}

/* Removes an earlier run, which would be in the way. */
static void clear_run(const char *folder, const char *run) {
    static const char *const names[] = {"best.safetensors", "last.safetensors", "log.csv", "steps.csv"};
    char path[512];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%.400s/%s/%s", folder, run, names[i]);
        remove(path);
    }
}

#define COMMON                                                                                                         \
    "--data @/events.csv --origin zero --time-scale 24 --embed 64 --enc-heads 2 --batch 32 --patience 0 --seed 1 "
static int train_models(const settings *s) {
    clear_run(s->folder, "curves"), clear_run(s->folder, "classes");
    return run_command("mtan train own --model interp --out @/curves " COMMON "--ref-points 32 --enc-hidden 32 "
                       "--dec-hidden 32 --latent 12 --mlp-hidden 32 --noise-std 0.2 --samples 1 --epochs 40 --lr 0.004 "
                       "--lr-decay 0.999 --warmup 0 --variance fixed --kl-anneal 1 --predict-samples 8",
                       s) &&
           run_command("mtan train own --model enc --out @/classes --labels @/labels.csv --positive pulse-first " COMMON
                       "--fastest 6 --ref-points 24 --enc-hidden 32 --head-hidden 32 --epochs 90 "
                       "--lr 0.003",
                       s);
}

/* ---- the models, as a program in C uses them ---- */

typedef struct trained {
    bundle file;
    mtan_prep prep;
    mtan_predictor run;
    void *memory;
} trained;

static int open_trained(trained *t, const char *folder, const char *run) {
    const mtan_bounds most = {1, ROOM, HALF_HOURS};
    char path[512], error[512] = "";
    size_t bytes = 0;
    mtan_status status;
    snprintf(path, sizeof path, "%.400s/%s/best.safetensors", folder, run);
    if (!bundle_read(&t->file, path, error)) return complain("%s", error), 0;
    t->file.model.config.predict_samples = 0; /* predict from the mean of the latent state */
    t->prep = prep_view(&t->file.prep, SPLIT_TEST);
    status = mtan_predictor_size(&t->file.model, &most, &bytes);
    t->memory = tool_calloc(1, bytes);
    if (status == MTAN_OK) status = mtan_predictor_init(&t->run, &t->file.model, &most, t->memory, bytes);
    return status == MTAN_OK || (complain("%s: %s", path, mtan_status_message(status)), 0);
}

static void close_trained(trained *t) {
    free(t->memory);
    bundle_free(&t->file);
}

static mtan_status prepare(const trained *t, const patient *p, mtan_event *events, mtan_record *record) {
    mtan_observation raw[PATIENT_MOST];
    mtan_prepared found;
    for (int32_t k = 0; k < p->n; k++) {
        raw[k] = p->seen[k];
        raw[k].channel = mtan_prep_channel_named(&t->prep, patient_channels[raw[k].channel]);
    }
    const mtan_status status = mtan_prep_record(&t->prep, raw, p->n, events, ROOM, &found);
    memset(record, 0, sizeof *record);
    record->events = events, record->n_events = found.events;
    return status;
}

/* ---- curves ---- */

static rival_series channel_of(const patient *p, int32_t channel) {
    rival_series s = {p->seen, 0};
    while (s.seen < p->seen + p->n && s.seen->channel != channel) s.seen++;
    while (s.seen + s.n < p->seen + p->n && s.seen[s.n].channel == channel) s.n++;
    return s;
}

enum { MODEL, PROCESS, LINES, CURVE_WAYS };
static double curve_error[CURVE_WAYS][PATIENT_CHANNELS]; /* mean squares, divided by the channel's variance */

static mtan_status add_model_errors(trained *t, const patient *p, const rival_process *fit) {
    mtan_event events[ROOM];
    mtan_record record;
    mtan_real times[HALF_HOURS], mean[HALF_HOURS * PATIENT_CHANNELS];
    mtan_status status = prepare(t, p, events, &record);
    for (int q = 0; q < HALF_HOURS; q++) times[q] = mtan_prep_time(&t->prep, 0.5 * q);
    record.times = times, record.n_times = HALF_HOURS;
    if (status == MTAN_OK) status = mtan_predictor_interpolate(&t->run, &record, mean, NULL);
    for (int q = 0; status == MTAN_OK && q < HALF_HOURS; q++)
        for (int32_t c = 0; c < PATIENT_CHANNELS; c++) {
            const int32_t own = mtan_prep_channel_named(&t->prep, patient_channels[c]);
            const double value = mtan_prep_raw_value(&t->prep, own, (double)mean[q * PATIENT_CHANNELS + own]);
            curve_error[MODEL][c] += pow(value - patient_truth(p, c, 0.5 * q), 2) / fit[c].variance;
        }
    return status;
}

static void add_rival_errors(const patient *p, const rival_process *fit) {
    for (int32_t c = 0; c < PATIENT_CHANNELS; c++) {
        const rival_series s = channel_of(p, c);
        for (int q = 0; q < HALF_HOURS; q++) {
            const double truth = patient_truth(p, c, 0.5 * q), v = fit[c].variance;
            curve_error[PROCESS][c] += pow(rival_process_at(&fit[c], s, 0.5 * q) - truth, 2) / v;
            curve_error[LINES][c] += pow(rival_linear(s, 0.5 * q, fit[c].mean) - truth, 2) / v;
        }
    }
}

static int measure_curves(trained *t) {
    static rival_series all[TRAINED];
    rival_process fit[PATIENT_CHANNELS];
    mtan_status status = MTAN_OK;
    for (int32_t c = 0; c < PATIENT_CHANNELS; c++) {
        for (int i = 0; i < TRAINED; i++) all[i] = channel_of(&patients[i], c);
        fit[c] = rival_process_fit(all, TRAINED);
    }
    for (int i = TRAINED; i < PATIENTS && status == MTAN_OK; i++) {
        status = add_model_errors(t, &patients[i], fit);
        add_rival_errors(&patients[i], fit);
    }
    for (int way = 0; way < CURVE_WAYS; way++)
        for (int c = 0; c < PATIENT_CHANNELS; c++) curve_error[way][c] /= (double)ASKED * HALF_HOURS;
    return status == MTAN_OK || (complain("curves: %s", mtan_status_message(status)), 0);
}

/* ---- classes ---- */

static void summaries_of(const patient *p, double *out) {
    for (int32_t c = 0; c < PATIENT_CHANNELS; c++) rival_summarise(channel_of(p, c), out + c * RIVAL_SUMMARIES);
}

static void ask_regression(double *p) {
    static double x[TRAINED * FEATURES], one[FEATURES];
    static int32_t y[TRAINED];
    const double ridge = 10;
    logistic r;
    for (int i = 0; i < TRAINED; i++) summaries_of(&patients[i], x + i * FEATURES), y[i] = patients[i].pulse_first;
    logistic_fit(&r, (logistic_rows){x, y, TRAINED}, FEATURES, 2, ridge);
    for (int i = 0; i < ASKED; i++) {
        double both[2];
        summaries_of(&patients[TRAINED + i], one);
        logistic_at(&r, one, both);
        p[i] = both[1];
    }
    logistic_free(&r);
}

static int ask_model(trained *t, double *p) {
    mtan_status status = MTAN_OK;
    for (int i = 0; i < ASKED && status == MTAN_OK; i++) {
        mtan_event events[ROOM];
        mtan_record record;
        mtan_real both[2] = {0, 0};
        status = prepare(t, &patients[TRAINED + i], events, &record);
        if (status == MTAN_OK) status = mtan_predictor_classify(&t->run, &record, 1, both);
        p[i] = (double)both[t->prep.positive];
    }
    return status == MTAN_OK || (complain("classes: %s", mtan_status_message(status)), 0);
}

/* The fraction of pairs of a positive and a negative that are in the right order. */
static double pairs_in_order(const double *p) {
    double right = 0, pairs = 0;
    for (int i = 0; i < ASKED; i++)
        for (int j = 0; j < ASKED; j++) {
            if (!patients[TRAINED + i].pulse_first || patients[TRAINED + j].pulse_first) continue;
            right += p[i] > p[j] ? 1 : p[i] < p[j] ? 0 : 0.5;
            pairs++;
        }
    return right / pairs;
}

/* ---- the demo ---- */

static void print_curves(void) {
    static const char *const ways[CURVE_WAYS] = {"mTAND-Full", "Gaussian process", "straight lines"};
    printf("\n%-40s", "error of the curves, share of variance");
    for (int c = 0; c < PATIENT_CHANNELS; c++) printf(" %12s", patient_channels[c]);
    for (int way = 0; way < CURVE_WAYS; way++) {
        printf("\n  %-38s", ways[way]);
        for (int c = 0; c < PATIENT_CHANNELS; c++) printf(" %12.2f", curve_error[way][c]);
    }
    puts("");
}

static int compare(const settings *s) {
    static double ours[ASKED], theirs[ASKED];
    trained curves = {0}, classes = {0};
    int won = 1;
    if (!open_trained(&curves, s->folder, "curves") || !open_trained(&classes, s->folder, "classes")) return BAD_USE;
    if (!measure_curves(&curves) || !ask_model(&classes, ours)) return BAD_USE;
    ask_regression(theirs);
    print_curves();
    printf("\n%-40s %12s\n  %-38s %12.2f\n  %-38s %12.2f\n", "which came first, pulse or fever?", "AUC", "mTAND-Enc",
           pairs_in_order(ours), "logistic regression on summaries", pairs_in_order(theirs));
    for (int c = 0; c < PATIENT_CHANNELS; c++)
        won = won && curve_error[MODEL][c] < curve_error[PROCESS][c] && curve_error[MODEL][c] < curve_error[LINES][c];
    won = won && pairs_in_order(ours) > pairs_in_order(theirs);
    close_trained(&curves), close_trained(&classes);
    if (!won) complain("a rival won");
    return won ? DONE : BAD_RESULT;
}

static int write_reports(const settings *s) {
    return run_command("mtan report @/curves --data @/events.csv -o @/curves.html", s) &&
           run_command("mtan report @/classes --data @/events.csv --labels @/labels.csv -o @/classes.html", s);
}

static int parse(settings *s, int argc, char **argv) {
    const settings usual = {"build/demo", mtan_pool_cpus() < 8 ? mtan_pool_cpus() : 8, 0};
    *s = usual;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quiet") == 0) s->quiet = 1;
        else if (strcmp(argv[i], "--folder") == 0 && i + 1 < argc) s->folder = argv[++i];
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) s->threads = atoi(argv[++i]);
        else return complain("usage: demo [--folder DIR] [--threads N] [--quiet]"), 0;
    }
    if (s->threads >= 1 && s->threads <= MTAN_POOL_MOST && strlen(s->folder) < 100 && !strchr(s->folder, ' ')) return 1;
    return complain("--threads must be 1 to %d; --folder a short path without blanks", MTAN_POOL_MOST), 0;
}

int main(int argc, char **argv) {
    settings s;
    int status;
    if (!parse(&s, argc, argv)) return BAD_USE;
    for (uint32_t i = 0; i < PATIENTS; i++) patient_make(&patients[i], i);
    if (!write_files(s.folder)) return BAD_USE;
    messages_quiet(s.quiet);
    if (!s.quiet)
        printf("%d made-up patients: temperature, pulse and pressure, a few times each in a day (%s/events.csv)\n",
               TRAINED, s.folder);
    if (!train_models(&s)) return BAD_USE;
    status = compare(&s);
    if (status == BAD_USE || !write_reports(&s)) return BAD_USE;
    printf("\nreports: %s/curves.html, %s/classes.html\n", s.folder, s.folder);
    return status;
}
