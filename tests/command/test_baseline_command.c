/* The paper's baselines through the command: trained, resumed, evaluated and used on small files; and what they do to their
 * batches. What the models compute is tested elsewhere (test_baselines.c). */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "command_line.h"
#include "../../tools/baselines/architecture_settings.h"
#include "../../tools/baselines/arrange.h"
#include "../../tools/baselines/baselines.h"
#include "../../tools/mtan/model/bundle.h"
#include "../../tools/mtan/model/plan.h"
#include "../../tools/mtan/options/settings.h"
#include "../../tools/mtan/model/recipes.h"

static const char *const models[] = {"rnn-impute", "rnn-dt",  "rnn-decay", "gru-d",     "phased-lstm", "ip-nets",
                                     "seft",       "rnn-vae", "ode-rnn",   "l-ode-rnn", "l-ode-ode"};
enum { MODELS = sizeof models / sizeof models[0] };

/* Options that make a model small, of those that it has. */
static void add_small(char *line, size_t size, const char *model, const char *tail) {
    static const char *const keys[] = {"units", "gru_units", "psi_units", "rec_layers", "gen_layers", "ode_steps"};
    static const int values[] = {6, 5, 4, 1, 1, 5};
    const mtan_architecture *a = baseline_named(model);
    snprintf(line + strlen(line), size - strlen(line),
             " --enc-hidden 6 --latent 3 --mlp-hidden 5 --batch 8 --quiet --threads 2%s",
             strcmp(tail, "-interp") == 0 ? "" : " --head-hidden 4");
    if (strcmp(model, "ip-nets") == 0) snprintf(line + strlen(line), size - strlen(line), " --ref-points 6");
    for (int k = 0; k < 6; k++)
        for (int i = 0; a->settings && a->settings[i]; i++)
            if (strcmp(a->settings[i], keys[k]) == 0) {
                char name[64];
                snprintf(line + strlen(line), size - strlen(line), " --%s %d", setting_option(keys[k], name),
                         values[k]);
            }
}

static int train(const char *model, const char *tail, const char *labels, const char *more) {
    char line[700];
    snprintf(line, sizeof line, "train own --model %s%s --data @/events.csv", model, tail);
    if (labels) snprintf(line + strlen(line), sizeof line - strlen(line), " --labels @/%s", labels);
    add_small(line, sizeof line, model, tail);
    snprintf(line + strlen(line), sizeof line - strlen(line), " %s", more);
    return command_run(line);
}

/* Has it a latent state? */
static int is_variational(const char *model) {
    char name[RECIPE_NAME];
    recipe r;
    snprintf(name, sizeof name, "%s-interp", model);
    return recipe_for_own(&r, name, MTAN_CORRECT);
}

/* ---- plans ---- */

TEST the_rate_falls_to_its_floor(void) {
    plan p;
    memset(&p, 0, sizeof p);
    p.schedule = SCHEDULE_EXPONENTIAL, p.lr_decay = 0.999, p.lr_floor = 0.1;
    ASSERT(fabs(plan_rate(&p, 1, 1000000) - 0.999) < 1e-15);
    ASSERT(fabs(plan_rate(&p, 1000, 1000000) - pow(0.999, 1000)) < 1e-15);
    ASSERT(plan_rate(&p, 1000000, 1000000) >= 0.1 && plan_rate(&p, 1000000, 1000000) <= 0.1);
    p.schedule = SCHEDULE_CONSTANT, p.lr_decay = 1, p.lr_floor = 0;
    ASSERT(plan_rate(&p, 1000000, 1000000) >= 1);
    PASS();
}

/* Against the rates of torch.optim.lr_scheduler.CosineAnnealingLR, T_max 8, eta_min a tenth. */
TEST a_cosine_is_torchs(void) {
    static const double torchs[] = {1,
                                    0.96574578963007907,
                                    0.86819805153394636,
                                    0.72220754456429048,
                                    0.55000000000000004,
                                    0.37779245543570972,
                                    0.2318019484660537,
                                    0.134254210369921};
    plan p;
    memset(&p, 0, sizeof p);
    p.schedule = SCHEDULE_COSINE, p.lr_floor = 0.1;
    for (int i = 0; i < 8; i++) ASSERT(fabs(plan_rate(&p, i + 1, 8) - torchs[i]) < 1e-14);
    ASSERT(fabs(plan_rate(&p, 100, 8) - 0.1) < 1e-14); /* a run that is resumed for more epochs */
    p.warmup = 0.5;
    for (int i = 1; i <= 16; i++) {
        const double rate = plan_rate(&p, i, 16);
        if (i <= 8) ASSERT(fabs(rate - i / 8.0) < 1e-14);
        else ASSERT(fabs(rate - torchs[i - 9]) < 1e-14);
    }
    p.schedule = SCHEDULE_CONSTANT;
    ASSERT(fabs(plan_rate(&p, 4, 16) - 0.5) < 1e-14 && plan_rate(&p, 9, 16) >= 1);
    PASS();
}

/* ---- batches ---- */

static mtan_config config_of(const char *name, mtan_preset preset) {
    recipe r;
    if (!recipe_named(&r, name, preset)) memset(&r, 0, sizeof r);
    return r.config;
}

static uint32_t next_word(const void *context, uint64_t record) {
    (void)record;
    return ++*(uint32_t *)(uintptr_t)context;
}

/* IP-Nets. Of 11 observations 2, of 10 two, of 9 none; each as often as any other. */
TEST held_out_cells_are_a_fifth(void) {
    enum { N = 30, DRAWS = 4000 };
    const mtan_config config = config_of("physionet-ip-nets", MTAN_CORRECT);
    const baseline_hook *hook = baseline_hook_of(&config);
    uint32_t word = 3;
    mtan_event events[N], held[N];
    mtan_record record;
    const baseline_batch batch = {&config, &record, 1, 1, held, N, next_word, &word};
    int seen[N] = {0};
    ASSERT(hook);
    memset(&record, 0, sizeof record);
    record.events = events, record.n_events = N;
    for (int i = 0; i < N; i++) {
        const mtan_event e = {(mtan_real)i, i < 11 ? 0 : i < 21 ? 2 : 3, (mtan_real)i};
        events[i] = e;
    }
    for (int d = 0; d < DRAWS; d++) {
        int count[4] = {0};
        hook->arrange(&batch);
        ASSERT(record.events == events && record.targets == held);
        ASSERT_EQ(4, record.n_targets);
        for (int k = 0; k < 4; k++) count[held[k].channel]++, seen[(int)held[k].time]++;
        ASSERT(count[0] == 2 && count[1] == 0 && count[2] == 2 && count[3] == 0);
    }
    for (int i = 0; i < N; i++) { /* six standard deviations */
        const double p = i < 11 ? 2.0 / 11 : i < 21 ? 0.2 : 0;
        ASSERT(fabs(seen[i] - p * DRAWS) <= 6 * sqrt(p * DRAWS));
    }
    record.n_events = 0;
    hook->arrange(&batch);
    ASSERT_EQ(0, record.n_targets);
    PASS();
}

/* RNN-VAE as published, and as it should be: whose events each of ten records is encoded from. */
TEST partners_stay_in_their_batch(void) {
    static const size_t batches[] = {4, 50, 0, 4};
    static const int expected[][10] = {{3, 2, 1, 0, 7, 6, 5, 4, 9, 8},
                                       {9, 8, 7, 6, 5, 4, 3, 2, 1, 0},
                                       {0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
                                       {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}};
    mtan_event events[10];
    for (int k = 0; k < 4; k++) {
        const mtan_config config = config_of("physionet-rnn-vae", k < 3 ? MTAN_FAITHFUL : MTAN_CORRECT);
        mtan_record records[10];
        memset(records, 0, sizeof records);
        for (int i = 0; i < 10; i++) records[i].events = &events[i], records[i].n_events = 1;
        baseline_arrange(&config, records, 10, batches[k]);
        for (int i = 0; i < 10; i++) ASSERT_EQ_FMT(expected[k][i], (int)(records[i].events - events), "%d");
    }
    PASS();
}

/* In training a record is scored on its own events; a class per time without labels keeps them after training. */
TEST a_reversed_record_is_scored_on_its_own(void) {
    mtan_config config = config_of("activity-rnn-vae", MTAN_FAITHFUL);
    const baseline_hook *hook = baseline_hook_of(&config);
    const mtan_real time = 0;
    mtan_event events[2];
    mtan_record records[2];
    const baseline_batch batch = {&config, records, 2, 1, NULL, 0, NULL, NULL};
    ASSERT(hook && hook->mixes);
    for (int again = 0; again < 2; again++) {
        memset(records, 0, sizeof records);
        for (int i = 0; i < 2; i++) records[i].events = &events[i], records[i].n_events = 1;
        if (again) records[0].times = &time, records[0].n_times = 1;
        if (again) baseline_arrange(&config, records, 2, 2);
        else hook->arrange(&batch);
        ASSERT(records[0].events == &events[1] && records[1].events == &events[again ? 1 : 0]);
        for (int i = 0; i < 2; i++) ASSERT(again ? !records[i].targets : records[i].targets == &events[i]);
    }
    PASS();
}

/* ---- the command ---- */

TEST a_baseline_is_trained_and_used(const char *model) {
    ASSERT_EQ_FMT(DONE, train(model, "", "labels.csv", "--epochs 2 --out @/run"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("selftest @/run/best.safetensors"), "%d");
    ASSERT(command_says("out.txt", "the same bits"));
    ASSERT_EQ_FMT(
        DONE, command_run("eval @/run/best.safetensors --data @/events.csv --labels @/labels.csv --json --bootstrap 5"),
        "%d");
    ASSERT(command_says("out.txt", "\"auc\": "));
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/events.csv"), "%d");
    ASSERT(command_says("out.txt", "record,p_down,p_up,predicted\nr0,"));
    ASSERT_EQ_FMT(DONE, command_run("inspect @/run/best.safetensors"), "%d");
    ASSERT(command_says("out.txt", model));
    ASSERT_EQ_FMT(DONE, command_run("report @/run --data @/events.csv --labels @/labels.csv -o @/page.html --quiet"),
                  "%d");
    ASSERT(command_says("page.html", "left out: this model has no attention"));
    ASSERT_EQ_FMT(DONE,
                  command_run("compare @/run/best.safetensors @/run/best.safetensors --data @/events.csv --labels "
                              "@/labels.csv --bootstrap 5"),
                  "%d");
    PASS();
}

TEST a_resumed_baseline_has_the_same_bits(const char *model) {
    ASSERT_EQ_FMT(DONE, train(model, "", "labels.csv", "--preset faithful --thin 0.2 --epochs 3 --out @/whole"), "%d");
    ASSERT_EQ_FMT(DONE, train(model, "", "labels.csv", "--preset faithful --thin 0.2 --epochs 1 --out @/parts"), "%d");
    ASSERT_EQ_FMT(
        DONE,
        command_run("train own --data @/events.csv --labels @/labels.csv --quiet --epochs 3 --threads 1 --out "
                    "@/parts --resume"),
        "%d");
    ASSERT(command_same_tensors("whole/last.safetensors", "parts/last.safetensors"));
    ASSERT(command_same_columns("whole/steps.csv", "parts/steps.csv", 4));
    PASS();
}

TEST a_baseline_classifies_times(const char *model) {
    for (int faithful = 0; faithful < 2; faithful++) {
        char more[64];
        snprintf(more, sizeof more, "--epochs 1 --out @/run%d%s", faithful, faithful ? " --preset faithful" : "");
        ASSERT_EQ_FMT(DONE, train(model, "-per-time", "times.csv", more), "%d");
        snprintf(more, sizeof more, "selftest @/run%d/best.safetensors", faithful);
        ASSERT_EQ_FMT(DONE, command_run(more), "%d");
    }
    ASSERT_EQ_FMT(DONE, command_run("eval @/run0/best.safetensors --data @/events.csv --labels @/times.csv --json"),
                  "%d");
    ASSERT_EQ_FMT(DONE, command_run("predict @/run0/best.safetensors --data @/events.csv"), "%d");
    ASSERT(command_says("out.txt", "record,time,p_down,p_up,predicted\nr0,"));
    PASS();
}

TEST a_baseline_interpolates(const char *model) {
    for (int faithful = 0; faithful < 2; faithful++) {
        char more[64];
        snprintf(more, sizeof more, "--epochs 1 --out @/run%d%s", faithful, faithful ? " --preset faithful" : "");
        ASSERT_EQ_FMT(DONE, train(model, "-interp", NULL, more), "%d");
        snprintf(more, sizeof more, "eval @/run%d/best.safetensors --data @/events.csv", faithful);
        ASSERT_EQ_FMT(DONE, command_run(more), "%d");
    }
    ASSERT_EQ_FMT(DONE, command_run("interpolate @/run0/best.safetensors --data @/events.csv --at 0:10:5"), "%d");
    ASSERT(command_says("out.txt", "record,time,channel,mean,sd,extrapolated\nr0,0,heat,"));
    ASSERT_EQ_FMT(DONE, command_run("report @/run0 --data @/events.csv -o @/page.html --quiet"), "%d");
    ASSERT_EQ_FMT(BAD_RESULT,
                  command_run("compare @/run0/best.safetensors @/run1/best.safetensors --data @/events.csv --split all "
                              "--bootstrap 5"),
                  "%d");
    PASS();
}

/* Room for the steps of a solver is made as it is needed, in training, validation and after; it changes nothing else. */
TEST a_solver_gets_more_room(const char *model) {
    char error[512];
    bundle b;
    ASSERT_EQ_FMT(DONE, train(model, "-interp", NULL, "--epochs 2 --out @/wide --rtol 1e-5 --atol 1e-6"), "%d");
    ASSERT_EQ_FMT(
        DONE, train(model, "-interp", NULL, "--epochs 1 --out @/tight --rtol 1e-5 --atol 1e-6 --most-steps 1"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("train own --data @/events.csv --epochs 2 --out @/tight --resume"), "%d");
    ASSERT(command_same_tensors("wide/last.safetensors", "tight/last.safetensors"));
    ASSERT(bundle_read(&b, command_path("tight/last.safetensors"), error));
    ASSERT(setting_of(&b.model.config, "most_steps") > 1);
    bundle_free(&b);
    ASSERT_EQ_FMT(DONE, command_run("interpolate @/wide/best.safetensors --data @/events.csv --at 0:40:1"), "%d");
    char *wide = command_text("out.txt");
    ASSERT_EQ_FMT(DONE, command_run("interpolate @/tight/best.safetensors --data @/events.csv --at 0:40:1"), "%d");
    char *tight = command_text("out.txt");
    ASSERT_STR_EQ(wide, tight);
    free(wide), free(tight);
    PASS();
}

/* A prediction keeps no steps, so it has a thousand times the room; a time that is far away takes more. */
TEST a_far_prediction_gets_more_room(void) {
    ASSERT_EQ_FMT(DONE,
                  train("l-ode-ode", "-interp", NULL,
                        "--epochs 1 --out @/run --rec-solver euler --dec-solver euler --most-steps 50"),
                  "%d");
    ASSERT_EQ_FMT(DONE,
                  command_run("interpolate @/run/best.safetensors --data @/events.csv --at 40000:40000:1 --samples 1"),
                  "%d");
    char *wide = command_text("out.txt");
    if (!host_is_little()) SKIPm("the test changes files of this machine's order");
    command_metadata("run/best.safetensors", "mtan.most_steps", "1");
    ASSERT_EQ_FMT(DONE,
                  command_run("interpolate @/run/best.safetensors --data @/events.csv --at 40000:40000:1 --samples 1"),
                  "%d");
    ASSERT(command_says("err.txt", "a record needs more than 1 steps of the solver: making room for 2"));
    char *tight = command_text("out.txt");
    ASSERT_STR_EQ(wide, tight);
    free(wide), free(tight);
    PASS();
}

/* The value behind "auc" in out.txt; NaN: none. */
static double auc_of_eval(const char *model) {
    char line[200], *text, *at;
    double auc = NAN;
    snprintf(line, sizeof line, "eval @/%s --data @/events.csv --labels @/labels.csv --json --bootstrap 0", model);
    if (command_run(line) != DONE) return NAN;
    text = command_text("out.txt");
    at = strstr(text, "\"auc\": ");
    if (at) auc = strtod(at + 7, NULL);
    free(text);
    return auc;
}

/* Two classes that any model tells apart: but not one that is shown the observations of another record, in training and after. */
TEST a_reversed_batch_leaves_chance(void) {
    double correct, faithful;
    ASSERT_EQ_FMT(DONE, train("rnn-vae", "", "labels.csv", "--epochs 30 --head-hidden 16 --latent 4 --out @/correct"),
                  "%d");
    ASSERT_EQ_FMT(DONE,
                  train("rnn-vae", "", "labels.csv",
                        "--epochs 30 --head-hidden 16 --latent 4 --preset faithful --out @/faithful"),
                  "%d");
    correct = auc_of_eval("correct/best.safetensors"), faithful = auc_of_eval("faithful/best.safetensors");
    ASSERT(correct > 0.95);
    ASSERT(faithful < 0.8);
    PASS();
}

TEST what_is_mtans_alone_is_refused(void) {
    ASSERT_EQ_FMT(DONE, train("gru-d", "", "labels.csv", "--epochs 1 --out @/run"), "%d");
    ASSERT_EQ_FMT(BAD_USE, command_run("stream @/run/best.safetensors --data @/events.csv"), "%d");
    ASSERT(command_says("err.txt", "is a gru-d: streams are for mTAN's models"));
    ASSERT_EQ_FMT(BAD_USE, command_run("quantize @/run/best.safetensors @/x.safetensors"), "%d");
    ASSERT(command_says("err.txt", "is a gru-d"));
    ASSERT_EQ_FMT(BAD_USE, command_run("export @/run/best.safetensors --c -o @/x.h"), "%d");
    ASSERT(command_says("err.txt", "is a gru-d"));
    ASSERT_EQ_FMT(BAD_USE, command_run("convert @/run/best.safetensors @/x.pt"), "%d");
    ASSERT(command_says("err.txt", "is a gru-d"));
    ASSERT_EQ_FMT(BAD_USE, train("gru-d", "", "labels.csv", "--dropout 0.2 --epochs 1 --out @/x"), "%d");
    ASSERT(command_says("err.txt", "--dropout is for mTAN's models"));
    ASSERT_EQ_FMT(BAD_USE, train("gru-d", "", "times.csv", "--epochs 1 --out @/x"), "%d");
    ASSERT(command_says("err.txt", "-per-time"));
    ASSERT_EQ_FMT(BAD_USE, train("gru-d", "-interp", NULL, "--epochs 1 --out @/x"), "%d");
    ASSERT_EQ_FMT(BAD_USE, command_run("train own --model enc --bidirectional 1 --data @/events.csv --out @/x"), "%d");
    ASSERT(command_says("err.txt", "--bidirectional is a setting of "));
    PASS();
}

/* The mean that gaps are filled with is that of the training records, as the model sees them, and training leaves it. */
TEST means_are_those_of_training(void) {
    char error[512], *log;
    bundle b;
    mtan_param p;
    ASSERT_EQ_FMT(DONE, train("gru-d", "", "labels.csv", "--epochs 2 --out @/run"), "%d");
    ASSERT(bundle_read(&b, command_path("run/last.safetensors"), error));
    ASSERT_EQ(MTAN_OK, mtan_param_at(&b.model.config, 0, &p));
    ASSERT_STR_EQ("rec.mean", p.name);
    for (int32_t d = 0; d < p.rows; d++) /* z-scores of the same observations, a few of them clipped */
        ASSERT(fabs((double)b.weights[p.offset + (uint32_t)d]) < 0.02);
    bundle_free(&b);
    ASSERT_EQ_FMT(DONE, train("gru-d", "", "labels.csv", "--scale none --epochs 2 --out @/raw"), "%d");
    ASSERT(bundle_read(&b, command_path("raw/last.safetensors"), error));
    for (int32_t d = 0; d < p.rows; d++) { /* values lie between 3 and 8, half of the records in each half */
        const double mean = (double)b.weights[p.offset + (uint32_t)d];
        ASSERT(mean > 4.5 && mean < 6.5);
    }
    bundle_free(&b);
    log = command_text("raw/log.csv");
    ASSERT(log);
    free(log);
    PASS();
}

TEST a_budget_picks_settings_of_a_baseline(void) {
    ASSERT_EQ_FMT(
        DONE,
        command_run("train own --model seft --data @/events.csv --labels @/labels.csv --enc-hidden 16 --units 16 "
                    "--psi-units 8 --latent 8 --head-hidden 8 --batch 8 --epochs 3 --budget 3trials --out @/found"),
        "%d");
    ASSERT(command_says("err.txt", "best: trial "));
    PASS();
}

SUITE(baseline_command_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(the_rate_falls_to_its_floor);
    RUN_TEST(a_cosine_is_torchs);
    RUN_TEST(held_out_cells_are_a_fifth);
    RUN_TEST(partners_stay_in_their_batch);
    RUN_TEST(a_reversed_record_is_scored_on_its_own);
    for (int i = 0; i < MODELS; i++) {
        greatest_set_test_suffix(models[i]);
        RUN_TEST1(a_baseline_is_trained_and_used, models[i]);
        greatest_set_test_suffix(models[i]);
        RUN_TEST1(a_resumed_baseline_has_the_same_bits, models[i]);
        greatest_set_test_suffix(models[i]);
        RUN_TEST1(a_baseline_classifies_times, models[i]);
        greatest_set_test_suffix(models[i]);
        if (is_variational(models[i])) RUN_TEST1(a_baseline_interpolates, models[i]);
    }
    RUN_TEST1(a_solver_gets_more_room, "l-ode-rnn");
    RUN_TEST1(a_solver_gets_more_room, "l-ode-ode");
    RUN_TEST(a_far_prediction_gets_more_room);
    RUN_TEST(a_reversed_batch_leaves_chance);
    RUN_TEST(what_is_mtans_alone_is_refused);
    RUN_TEST(means_are_those_of_training);
    RUN_TEST(a_budget_picks_settings_of_a_baseline);
}
