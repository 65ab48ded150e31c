/* What the commands refuse, and in which words: a table of command lines for each of them, on models with random weights and on
 * small files. Nothing is printed but the message, and nothing is written. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "command_line.h"
#include "../../tools/mtan/command/commands.h"

typedef struct refusal {
    const char *line, *words;
} refusal;

static int all_refused(const refusal *cases, size_t n) {
    int good = 1;
    for (size_t i = 0; i < n; i++)
        if (!command_refused(cases[i].line, cases[i].words)) good = 0, printf("  BAD mtan %s\n", cases[i].line);
    return good;
}
#define ALL_REFUSED(cases) ASSERT(all_refused(cases, sizeof cases / sizeof cases[0]))

#define OWN "train own --data @/events.csv --labels @/labels.csv --quiet "
#define NUMBER "train own --model enc --data @/events.csv --labels @/number.csv --quiet "
#define SEVERAL "train own --model enc --data @/events.csv --labels @/several.csv --quiet "
#define THREE "train own --model enc --data @/events.csv --labels @/three.csv --quiet "
#define SMALL "--enc-hidden 4 --embed 4 --ref-points 4 --head-hidden 3 --batch 8 --threads 1 --epochs 1 " COMMAND_STEADY

static void write_data(void) {
    command_write("d.csv", "record,time,channel,value\na,0.5,0,1\na,0.75,1,2\nb,0.25,2,1\n");
    command_write("l.csv", "record,label\na,no\nb,yes\n");
}

/* ---- words of the command line ---- */

TEST words_that_are_no_options(void) {
    static const refusal cases[] = {
        {"zzzzzzzzzz", "no command zzzzzzzzzz; `mtan help` lists them"},
        {"inspect -z", "inspect: no option --z; `mtan help inspect` lists them"},
        {"eval m -o x", "eval: no option --o; "},
        {"train own -oo x", "train: no option --oo"},
        {"inspect --json=yes m", "--json takes no value"},
        {"inspect --a-name-that-is-longer-than-any-option-can-be-and-still-goes-on-and-on-and-on m",
         "inspect: no option --a-name-that"},
        {"help a b c d e f g h i j k l m n o p q r s t u v w x y z 1 2 3 4 5 6 7 8 9 10 11",
         "help: too many arguments"},
        {"eval", "usage: mtan eval MODEL --data PATH"},
        {"help nothing", "no command nothing; "},
        {"inspect -- --json a", "usage: mtan inspect FILE"},
        {"train ownn", "mtan: train: no configuration ownn; did you mean own? There are toy-interp, "},
        {"train physionet-grud --out @/x",
         "mtan: train: no configuration physionet-grud; did you mean physionet-gru-d? "},
        {"train zzz --backend none", "mtan: train: no configuration zzz; there are toy-interp, "},
        {"train own --lr 1x", "--lr 1x: not a number"},
        {"train own --lr=", "--lr : not a number"},
        {"train own --lr nan", "--lr nan: must be from"}};
    ALL_REFUSED(cases);
    PASS();
}

TEST words_that_are_options(void) {
    ASSERT_EQ_FMT(DONE, command_run("help"), "%d");
    ASSERT(command_says("out.txt", "mtan: Multi-Time Attention Networks") && command_says("out.txt", "\n  inspect "));
    ASSERT_EQ_FMT(DONE, command_run("help -q"), "%d");
    command_tensors("--odd", NULL, 0, NULL, 0);
    ASSERT(command_refused("inspect -- --odd", "--odd: No such file")); /* a name, and not an option */
    PASS();
}

/* ---- train ---- */

TEST plans_that_cannot_be_made(void) {
    static const refusal cases[] = {
        {"train own --data @/events.csv --out @/x", "own data needs --model enc, full, per-time, interp or a baseline"},
        {"train own --model best --out @/x", "--model best: must be enc, full, per-time, interp or a baseline"},
        {"train own --model enc --preset better --out @/x", "--preset better: must be one of faithful, correct, best"},
        {OWN "--model enc --shuffle maybe --out @/x", "--shuffle maybe: must be one of no, yes"},
        {OWN "--model enc --optimizer sgd --out @/x", "--optimizer sgd: must be one of adam, adamax"},
        {OWN "--model enc --select best --out @/x", "--select best: must be one of loss, auc, mse, accuracy, last"},
        {OWN "--model enc --class-weights 1,x --out @/x",
         "--class-weights 1,x: must be none, balanced or a number for"},
        {OWN "--model enc --class-weights 1,2,3 --out @/x", "--class-weights has 3 numbers, and the data 2 classes"},
        {OWN "--model interp --class-weights balanced --out @/x", "--class-weights is for models that classify"},
        {OWN "--model enc --schedule linear --out @/x",
         "--schedule linear: must be one of constant, exponential, cosine"},
        {OWN "--model enc --schedule exponential --out @/x", "--schedule exponential needs --lr-decay"},
        {OWN "--model enc --schedule cosine --lr-decay 0.99 --out @/x",
         "--lr-decay is for --schedule exponential, not cosine"},
        {OWN "--model enc --scale best --out @/x",
         "--scale best: must be one of none, published, minmax, zscore, times"},
        {OWN "--model enc --select mse --out @/x", "--select mse does not go with this model"},
        {OWN "--model interp --select auc --out @/x", "--select auc does not go with this model"},
        {OWN "--model gru-d --dropout 0.5 --out @/x", "--dropout is for mTAN's models: gru-d has none"},
        {OWN "--model enc --gru-units 3 --out @/x", "--gru-units is a setting of "},
        {OWN "--model enc --embed many --out @/x", "--embed many: not a value of this setting"},
        {OWN "--model ode-rnn --rec-solver best --out @/x", "--rec-solver best: not a value of this setting"},
        {OWN "--model enc --embed 0 --out @/x", "--embed 0: must be at least 2"},
        {OWN "--model per-time --out @/x", "the labels belong to records: --model enc, full or a baseline"},
        {"train own --model enc --data @/events.csv --labels @/times.csv --out @/x",
         "the labels belong to times: --model per-time, or a baseline's -per-time"},
        {"train own --model enc --data @/events.csv --out @/x",
         "own needs labels of at least two classes; --labels FILE has 0"},
        {OWN "--model enc --by-group --out @/x", "--by-group: no record of this data is in a group; own data has "
                                                 "groups where its labels have a prediction_time"},
        {OWN "--model enc --origin nowhere --out @/x", "--origin nowhere: must be record, zero or auto"},
        {OWN "--model enc", "--out is missing: the folder of the run"},
        {"train own --model enc --out @/x", "--data is missing"},
        {OWN "--model enc --backend best-of-all --out @/x", "--backend best-of-all: there is none of this name"},
        {OWN "--model enc --budget 1d --out @/x", "--budget 1d: must be a time such as 90s, 10m or 2h"},
        {OWN "--model enc --budget 10ms --out @/x", "--budget 10ms: must be a time such as 90s, 10m or 2h"},
        {OWN "--model enc --budget 0.5 --out @/x", "--budget 0.5: must be a time such as 90s, 10m or 2h"},
        {OWN "--model enc --budget 99999h --out @/x", "--budget 99999h: must be a time such as 90s, 10m or 2h"},
        {OWN "--model enc --distributed --out @/x", "--distributed"},
        {OWN "--model enc --resume --out @/x", "x/last.safetensors: No such file"}};
    ALL_REFUSED(cases);
    ASSERT_EQ_FMT(-1, access(command_path("x"), F_OK), "%d"); /* a folder that was made for nothing goes */
    PASS();
}

/* A message names the setting and the reason. */
TEST settings_that_no_model_can_have(void) {
    static const refusal cases[] = {
        {OWN "--model enc --embed 7 --embedding fixed --out @/x", "--embed 7: must be even with --embedding fixed"},
        {OWN "--model enc --embed 6 --enc-heads 4 --out @/x", "--embed 6: must be a multiple of the numbers of heads"},
        {OWN "--model enc --enc-heads 3 --out @/x", "--enc-heads 3: --embed must be a multiple of it"},
        {OWN "--model enc --trees 9999 --out @/x", "--trees 9999: must be from 0 to 4096"},
        {OWN "--model enc --members 100 --out @/x", "--members 100: no model can have this value together with "},
        {OWN "--model full --variance learned --statistics mean,spread --out @/x",
         "--variance learned: reads the intensity, so --statistics must be mean or contain it"},
        {OWN "--model enc --encoder rbf --static @/static.csv --out @/x", "--encoder rbf: cannot have static columns"},
        {OWN "--model enc --embed 0 --enc-hidden 0 --out @/x", "no model can have these settings together"},
        {"train own --model enc --data @/header.csv --labels @/labels.csv --out @/x",
         "the data has no observation to train on"}};
    command_write("header.csv", "record,time,channel,value\n");
    command_write("static.csv", "record,age\nr0,30\nr1,40\nr2,50\n");
    ALL_REFUSED(cases);
    ASSERT_EQ_FMT(-1, access(command_path("x"), F_OK), "%d");
    PASS();
}

/* What is given is read. */
TEST options_that_nothing_reads(void) {
    static const refusal cases[] = {
        {OWN "--model enc --latent 3 --out @/x", "--latent: mTAND-Enc has no latent state"},
        {OWN "--model enc --samples 3 --out @/x", "--samples: mTAND-Enc has no latent state"},
        {OWN "--model enc --predict-samples 3 --out @/x", "--predict-samples: mTAND-Enc has no latent state"},
        {OWN "--model enc --rule mean_log_probability --out @/x", "--rule: mTAND-Enc has no latent state"},
        {OWN "--model enc --alpha 3 --out @/x", "--alpha: mTAND-Enc has no latent state"},
        {OWN "--model enc --noise-std 3 --out @/x", "--noise-std: mTAND-Enc has no latent state"},
        {OWN "--model enc --bound iwae --out @/x", "--bound: mTAND-Enc has no latent state"},
        {OWN "--model enc --kl-weight 3 --out @/x", "--kl-weight: mTAND-Enc has no latent state"},
        {OWN "--model full --kl-anneal 1 --kl-weight 3 --out @/x", "--kl-weight: it is read with --kl-anneal 0 only"},
        {OWN "--model enc --mlp-hidden 3 --out @/x", "--mlp-hidden: mTAND-Enc has no latent state"},
        {OWN "--model enc --decoder rbf --out @/x", "--decoder: mTAND-Enc has no decoder"},
        {OWN "--model enc --dec-heads 2 --out @/x", "--dec-heads: mTAND-Enc has no decoder"},
        {OWN "--model enc --variance learned --out @/x", "--variance: mTAND-Enc has no decoder"},
        {OWN "--model enc --bins 3 --out @/x", "--bins: it is for --values piecewise or quantile, and the values are "},
        {OWN "--model enc --embed-base 3 --out @/x", "--embed-base: it is for --embedding fixed, and the time embed"},
        {OWN "--model enc --lr-decay 1 --out @/x", "--lr-decay is for --schedule exponential, not cosine"},
        {OWN "--model enc --interval 0.9 --out @/x",
         "--interval: it needs a number to predict, and the labels are classes"},
        {OWN "--model enc --trees 0 --refit trees --out @/x", "--refit: there are no trees: --trees is 0"},
        {OWN "--model gru-d --trees 20 --out @/x", "--trees: gru-d does not read it, mTAND-Enc and mTAND-Full do"},
        {OWN "--model interp --trees 20 --out @/x", "--trees: a model that interpolates predicts no label"},
        {OWN "--model interp --dropout 0.2 --out @/x", "--dropout: a model that interpolates predicts no label"},
        {OWN "--model interp --head-hidden 3 --out @/x", "--head-hidden: a model that interpolates predicts no label"},
        {NUMBER "--select auc --out @/x", "--select: it is for classes or several labels, and the labels are a number"},
        {NUMBER "--refit all --out @/x", "--refit is for classes and curves, and the labels are a number"},
        {SEVERAL "--refit trees --out @/x",
         "--refit: it is for classes and numbers, and the labels are several labels"},
        {SEVERAL "--trees 20 --out @/x", "--trees: it is for classes and numbers, and the labels are several labels"},
        {THREE "--positive low --out @/x", "--positive: it is for two classes, and the data has more"}};
    FILE *number = fopen(command_path("number.csv"), "w"), *three = fopen(command_path("three.csv"), "w");
    FILE *several = fopen(command_path("several.csv"), "w");
    fputs("record,label\n", number), fputs("record,label\n", three), fputs("record,hot,wet\n", several);
    for (int r = 0; r < COMMAND_RECORDS; r++) {
        fprintf(number, "r%d,%.1f\n", r, 0.7 * r);
        fprintf(three, "r%d,%s\n", r, r % 3 == 0 ? "low" : r % 3 == 1 ? "mid" : "top");
        fprintf(several, "r%d,%d,%d\n", r, r % 2, r % 3 == 0);
    }
    fclose(number), fclose(three), fclose(several);
    ALL_REFUSED(cases);
    ASSERT_EQ_FMT(-1, access(command_path("x"), F_OK), "%d");
    ASSERT_EQ_FMT(DONE,
                  command_run("train own --model interp --data @/events.csv --labels @/labels.csv "
                              "--enc-hidden 4 --embed 4 --ref-points 4 --epochs 1 --out @/c"),
                  "%d");
    ASSERT(command_says("err.txt", "--labels: a model that interpolates does not learn from them"));
    PASS();
}

TEST a_path_that_is_too_long(void) {
    char line[5100] = "train own --model enc --out ";
    memset(line + strlen(line), 'x', 900);
    ASSERT(command_refused(line, strerror(ENAMETOOLONG))); /* C libraries say it in their own words */
    PASS();
}

/* Too few records for three parts. */
TEST data_that_cannot_be_split(void) {
    write_data();
    ASSERT(
        command_refused("train own --model enc --data @/d.csv --labels @/l.csv --quiet " SMALL "--out @/x", "record"));
    PASS();
}

TEST runs_that_cannot_go_on(void) {
    static const refusal cases[] = {
        {"train physionet-enc --data @/events.csv --out @/run --resume",
         "the run in this folder is own, not physionet-enc"},
        {OWN "--preset faithful --out @/run --resume",
         "--preset: a resumed run keeps the setting that it was started with"},
        {OWN "--budget 5s --out @/run --resume", "--budget: a resumed run keeps"},
        {OWN "--split-seed 7 --out @/run --resume", "--split-seed: a resumed run keeps"},
        {OWN "--fold 2 --out @/run --resume", "--fold: a resumed run keeps"},
        {OWN "--origin zero --out @/run --resume", "--origin: a resumed run keeps"},
        {OWN "--scale best --out @/run --resume", "last.safetensors: cannot be resumed with these options"}};
    ASSERT_EQ_FMT(DONE, command_run(OWN "--model enc " SMALL "--out @/run"), "%d");
    ALL_REFUSED(cases);
    remove(command_path("run/log.csv"));
    ASSERT(command_refused(OWN "--epochs 2 --out @/run --resume", "run/log.csv: No such file"));
    command_write("run/log.csv", "epoch\n"), remove(command_path("run/steps.csv"));
    ASSERT(command_refused(OWN "--epochs 2 --out @/run --resume", "run/steps.csv: No such file"));
    command_write("run/best.safetensors", "no model");
    ASSERT(command_refused(OWN "--epochs 2 --out @/run --resume", "best.safetensors: not a valid safetensors file"));
    command_write("run/last.safetensors", "no model");
    ASSERT(command_refused(OWN "--epochs 2 --out @/run --resume", "last.safetensors: not a valid safetensors file"));
    PASS();
}

/* A table whose last row was cut by a power cut, or lost, is made good. */
TEST tables_are_cut_at_the_last_whole_row(void) {
    char *log, *text;
    ASSERT_EQ_FMT(DONE, command_run(OWN "--model enc --patience 9 " SMALL "--out @/run"), "%d");
    log = command_text("run/log.csv");
    command_append("run/log.csv", "2,0.5,0.5\n3,0.7"), command_append("run/steps.csv", "1,99\n7");
    ASSERT_EQ_FMT(DONE, command_run(OWN "--epochs 2 --out @/run --resume"), "%d");
    text = command_text("run/log.csv");
    ASSERT(strncmp(text, log, strlen(log)) == 0 && strncmp(text + strlen(log), "2,", 2) == 0);
    ASSERT_EQ_FMT((size_t)0, strlen(strchr(text + strlen(log), '\n') + 1), "%zu");
    free(log), free(text);
    PASS();
}

/* ---- models whose files say what cannot be ---- */

static void write_with(const char *key, const char *value) {
    const mtan_file_pair pair = {key, value};
    command_tiny("m.safetensors", TINY_ENC, "", 1, &pair, 1);
}

TEST metadata_out_of_range(void) {
    static const char *const pairs[][2] = {
        {"mtan.data.kind", "nothing"},    {"mtan.data.split_kind", "-1"}, {"mtan.data.split_kind", "99"},
        {"mtan.data.fold", "5"},          {"mtan.data.fold", "nan"},      {"mtan.data.split_seed", "-1"},
        {"mtan.data.split_seed", "1e99"}, {"mtan.data.observed", "0"},    {"mtan.data.observed", "2"}};
    write_data();
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char said[80];
        write_with(pairs[i][0], pairs[i][1]);
        snprintf(said, sizeof said, "m.safetensors: its %s is %s", pairs[i][0],
                 i == 0 ? "no data set of this version" : "out of range");
        ASSERT(command_refused("eval @/m.safetensors --data @/d.csv --labels @/l.csv", said));
        ASSERT(command_refused("stream @/m.safetensors --data @/d.csv", said));
    }
    write_with("mtan.data.kind", "mimic3");
    ASSERT(command_refused("eval @/m.safetensors --data @/d.csv", "it has 3 channels, and mimic3 has 12"));
    write_with("mtan.data.origin", "nowhere");
    ASSERT(command_refused("eval @/m.safetensors --data @/d.csv", "--origin nowhere: must be record, zero or auto"));
    ASSERT(command_refused("predict @/m.safetensors --data @/d.csv", "--origin nowhere: must be record, zero or auto"));
    PASS();
}

/* Numbers that no run has, in the file of one. */
TEST runs_out_of_range(void) {
    static const char *const cases[][4] = {
        {"mtan.run.epoch", "-1", "1", "its mtan.run.* metadata is out of range"},
        {"mtan.run.epoch", "1e99", "1", "its mtan.run.* metadata is out of range"},
        {"mtan.run.batch", "-1", "0", "its mtan.run.* metadata is out of range"},
        {"mtan.run.batch", "1e6", "0", "its mtan.run.* metadata is out of range"},
        {"mtan.run.batch", "many", "0", "its mtan.run.* metadata is out of range"},
        {"mtan.plan.lr", "-1", "0.001", "the file says nothing usable for mtan.plan.lr"},
        {"mtan.plan.batch", "0", "8", "the file says nothing usable for mtan.plan.batch"},
        {"mtan.plan.epochs", "1.5x", "1", "the file says nothing usable for mtan.plan.epochs"},
        {"mtan.data.fold", "9", "0", "its mtan.data.fold is out of range"}};
    ASSERT_EQ_FMT(DONE, command_run(OWN "--model enc " SMALL "--out @/run"), "%d");
    if (!host_is_little()) SKIPm("the test changes files of this machine's order");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        command_metadata("run/last.safetensors", cases[i][0], cases[i][1]);
        ASSERT(command_refused(OWN "--out @/run --resume", cases[i][3]));
        command_metadata("run/last.safetensors", cases[i][0], cases[i][2]);
    }
    command_metadata("run/last.safetensors", "mtan.step", NULL);
    ASSERT(command_refused(OWN "--epochs 2 --out @/run --resume", "last.safetensors: "));
    PASS();
}

TEST records_for_a_self_test(void) {
    static const char *const bad[][2] = {{"mtan.golden.events", "1 2"}, {"mtan.golden.events", "x"},
                                         {"mtan.golden.times", "x"},    {"mtan.golden.output", "x"},
                                         {"mtan.golden.output", "1"},   {"mtan.golden.output", ""}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        mtan_file_pair pairs[4] = {{"mtan.golden.id", "1"},
                                   {"mtan.golden.events", "0.5 0 1"},
                                   {"mtan.golden.times", ""},
                                   {"mtan.golden.output", "0.5 0.5"}};
        for (int k = 1; k < 4; k++)
            if (strcmp(pairs[k].key, bad[i][0]) == 0) pairs[k].value = bad[i][1];
        command_tiny("m.safetensors", TINY_ENC, "", 1, pairs, 4);
        ASSERT(command_refused("selftest @/m.safetensors", "holds no usable record for a self-test (mtan.golden.*)"));
    }
    command_tiny("m.safetensors", TINY_ENC, "", 1, NULL, 0);
    ASSERT(command_refused("selftest @/m.safetensors", "holds no usable record for a self-test (mtan.golden.*)"));
    ASSERT(command_refused("selftest @/none", "none: No such file"));
    ASSERT(command_refused("selftest @/m.safetensors --backend x", "--backend x: there is none of this name"));
    PASS();
}

/* A record with an output that the model does not give. */
TEST a_self_test_that_fails(void) {
    const mtan_file_pair pairs[4] = {{"mtan.golden.id", "1"},
                                     {"mtan.golden.events", "0.5 0 1 "},
                                     {"mtan.golden.times", ""},
                                     {"mtan.golden.output", "0.25 0.75"}};
    const mtan_file_pair odd[4] = {{"mtan.golden.id", "1"},
                                   {"mtan.golden.events", "0.5 77 1"},
                                   {"mtan.golden.times", ""},
                                   {"mtan.golden.output", "0.25 0.75"}};
    command_tiny("m.safetensors", TINY_ENC, "", 1, pairs, 4);
    ASSERT_EQ_FMT(BAD_RESULT, command_run("selftest @/m.safetensors"), "%d");
    ASSERT(command_says("out.txt", ": FAILED on ") && command_says("out.txt", ": largest difference 0."));
    ASSERT_EQ_FMT(BAD_RESULT, command_run("selftest @/m.safetensors --json"), "%d");
    ASSERT(command_is_json("out.txt") && command_says("out.txt", "\"passed\": false}"));
    command_tiny("m.safetensors", TINY_ENC, "", 1, odd, 4); /* a channel that it does not have */
    ASSERT_EQ_FMT(BAD_RESULT, command_run("selftest @/m.safetensors"), "%d");
    ASSERT(command_says("out.txt", ": largest difference inf"));
    PASS();
}

/* ---- eval, predict, interpolate ---- */

TEST models_that_do_something_else(void) {
    static const refusal cases[] = {
        {"predict @/interp", "--data is missing"},
        {"predict @/none --data @/d.csv", "none: No such file"},
        {"predict @/interp --data @/d.csv", "interp: this model does not classify: `mtan interpolate`"},
        {"interpolate @/enc --data @/d.csv --at 0:1:1", "enc: this model classifies and does not interpolate"},
        {"interpolate @/interp --data @/d.csv", "--at FIRST:LAST:STEP is missing"},
        {"interpolate @/interp --data @/d.csv --at 0", "--at 0: must be FIRST:LAST:STEP"},
        {"interpolate @/interp --data @/d.csv --at 0:1", "--at 0:1: must be FIRST:LAST:STEP"},
        {"interpolate @/interp --data @/d.csv --at 0:1:0", "--at 0:1:0: must be FIRST:LAST:STEP"},
        {"interpolate @/interp --data @/d.csv --at 0:1:1x", "--at 0:1:1x: must be FIRST:LAST:STEP"},
        {"interpolate @/interp --data @/d.csv --at 1e12:2e12:1e12", "must be FIRST:LAST:STEP"},
        {"interpolate @/interp --data @/d.csv --at 0:1e9:1", "must be FIRST:LAST:STEP, at most 10000000 times"},
        {"predict @/enc --data @/d.csv --samples 3", "--samples: this model has no latent state to draw from"},
        {"predict @/enc --data @/nowhere.csv", "nowhere.csv: No such file"},
        {"predict @/enc --data @/d.csv --backend x",
         "--backend x: there is none of this name; `mtan backends` lists them"},
        {"predict @/enc --data @/nowhere.csv --labels @/l.csv", "nowhere.csv: No such file"},
        {"predict @/enc --data @/nowhere.csv --split all", "nowhere.csv: No such file"},
        {"eval @/enc", "--data is missing"},
        {"eval @/enc --data @/two.csv", "the data's channels are not the model's"},
        {"stream @/none --data @/d.csv", "none: No such file"},
        {"stream @/enc --data @/nowhere.csv", "nowhere.csv: No such file"},
        {"stream @/enc --data @/d.csv --every 0", "--every 0: must be line, request or a time above 0"},
        {"stream @/enc --data @/d.csv --every now", "--every now: must be line, request or a time above 0"},
        {"stream @/enc --data @/d.csv --backend cuda", "--backend cuda: `mtan stream` runs on the CPU alone"},
        {"stream @/observed --data @/d.csv",
         "observed: its reference points are each record's own times: use `mtan predict`"}};
    write_data();
    command_write("two.csv", "record,time,channel,value\na,0.5,0,1\na,0.75,1,2\n");
    command_tiny("enc", TINY_ENC, "", 1, NULL, 0), command_tiny("interp", TINY_INTERP, "", 1, NULL, 0);
    command_tiny("observed", TINY_OBSERVED, "", 1, NULL, 0);
    ALL_REFUSED(cases);
    PASS();
}

/* The same, where it is first said that the data is not that of the training. */
TEST models_without_a_split(void) {
    write_data();
    command_tiny("enc", TINY_ENC, "", 1, NULL, 0), command_tiny("interp", TINY_INTERP, "", 1, NULL, 0);
    ASSERT(command_refused("eval @/enc --data @/d.csv", "no record of this part has a label"));
    ASSERT(command_refused("eval @/enc --data @/d.csv --labels @/l.csv --split some",
                           "--split some: other data than the model"));
    ASSERT(command_refused("quantize @/interp @/q --data @/nowhere.csv", "nowhere.csv: No such file"));
    ASSERT_EQ_FMT(DONE, command_run("eval @/interp --data @/d.csv --observed 0.5 --bootstrap 0"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("eval @/enc --data @/d.csv --labels @/l.csv --bootstrap 0 --split all"), "%d");
    ASSERT(command_says("out.txt", "2 records of the part 'all'"));
    PASS();
}

/* A record whose values are floats, but not their sums. */
TEST results_that_are_not_finite(void) {
    static const refusal cases[] = {
        {"eval @/enc --data @/d.csv --labels @/l.csv --bootstrap 0", "record b: a weight or a result is not finite"},
        {"eval @/interp --data @/d.csv --bootstrap 0", "record b: a weight or a result is not finite"},
        {"compare @/enc @/enc --data @/d.csv --labels @/l.csv", "record b: a weight or a result is not finite"},
        {"compare @/interp @/interp --data @/d.csv", "interpolation failed: a weight or a result is not finite"}};
    if (sizeof(mtan_real) > sizeof(float)) SKIPm("sums of floats fit in a double");
    write_data();
    for (int i = 0; i < 12; i++) {
        char line[64];
        snprintf(line, sizeof line, "b,%g,%d,3e38\n", i / 12.0, i % 3);
        command_append("d.csv", line);
    }
    command_tiny("enc", TINY_ENC, "", 1, NULL, 0), command_tiny("interp", TINY_INTERP, "", 1, NULL, 0);
    ALL_REFUSED(cases);
    PASS();
}

/* ---- disks that are full ---- */

/* Standard output is a file here: what does not fit into it is said, and is no success. */
TEST output_that_does_not_fit(void) {
    FILE *file;
    command_tiny("enc", TINY_ENC, "", 1, NULL, 0);
    ASSERT_EQ_FMT(BAD_USE, command_finish(command_start("export @/enc --c", 1000)), "%d");
    ASSERT(command_says("err.txt", "enc: standard output: File too large"));
    file = fopen(command_path("lines.csv"), "w");
    if (!file) perror("mtan: build"), exit(2);
    for (int i = 0; i < 5000; i++) fprintf(file, "r,%d,0,1\n", i);
    fclose(file);
    ASSERT_EQ_FMT(BAD_USE, command_finish(command_start("stream @/enc --data @/lines.csv", 1000)), "%d");
    ASSERT(command_says("err.txt", "standard output: cannot write"));
    PASS();
}

/* The file of the run is the first that does not fit, whichever it is. */
TEST a_run_that_does_not_fit(void) {
    static const size_t limits[] = {100, 1500, 4000};
    for (int i = 0; i < 3; i++) {
        char line[300], out[16];
        snprintf(out, sizeof out, "run%d", i);
        snprintf(line, sizeof line, OWN "--model enc " SMALL "--out @/%s", out);
        ASSERT_EQ_FMT(BAD_USE, command_finish(command_start(line, limits[i])), "%d");
        ASSERT(command_says("err.txt", "cannot be written: File too large"));
    }
    PASS();
}

TEST files_that_end_too_early(void) {
    static const uint8_t start[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b, 0x4c};
    FILE *file = fopen(command_path("cut.csv.gz"), "wb");
    if (!file || fwrite(start, 1, sizeof start, file) != sizeof start || fclose(file) != 0)
        perror("mtan: build"), exit(2);
    command_tiny("enc", TINY_ENC, "", 1, NULL, 0);
#ifdef MTAN_ZLIB
    ASSERT(command_refused("stream @/enc --data @/cut.csv.gz", "cut.csv.gz: the compressed file ends early"));
    ASSERT(command_refused("check @/cut.csv.gz", "cut.csv.gz: the compressed file ends early"));
#endif
    ASSERT(command_refused("predict @/enc --data @/cut.csv.gz", "cut.csv.gz: "));
    PASS();
}

/* ---- the search ---- */

TEST searches_that_find_nothing(void) {
    ASSERT(
        command_refused("train own --model interp --preset faithful --data @/events.csv --budget 5s --quiet --out @/x",
                        "--budget needs validation records: this plan has none"));
    ASSERT(command_refused(OWN "--model enc --lr 1000 --decay 1 --clip 0 --budget 2trials --epochs 200 --enc-hidden 8 "
                               "--embed 8 --ref-points 4 "
                               "--threads 1 --out @/x",
                           "every candidate diverged: a smaller --lr may help"));
    PASS();
}

/* ---- quantize, export ---- */

TEST files_that_are_not_made(void) {
    static const refusal cases[] = {
        {"quantize @/none @/q", "none: No such file"},
        {"quantize @/enc @/q --type f32", "--type f32: must be int8, f16 or bf16"},
        {"quantize @/enc @/q --backend x", "--backend x: there is none of this name"},
        {"quantize @/enc @/no/q", "no/q: No such file"},
        {"export @/enc", "export: say --c, the only form there is"},
        {"export @/none --c", "none: No such file"},
        {"export @/enc --c --name 9", "--name 9: must be a letter, then letters, digits and _, not mtan..."},
        {"export @/enc --c --name mtan_x", "--name mtan_x: must be a letter"},
        {"export @/enc --c --name a-b", "--name a-b: must be a letter"},
        {"export @/enc --c --name a_very_long_name_that_no_header_file_would_ever_want_to_have_before_its_names",
         "must be a letter"},
        {"export @/enc --c -o @/pipe", "pipe is no regular file; without -o the header goes to standard output"},
        {"export @/enc --c -o @/no/x.h", "no/x.h: No such file"},
        {"export @/time --c --events 1000000 --times 1000000", "1000000 events at 1000000 times: "},
        {"quantize @/enc @/pipe", "pipe: not a regular file"}};
    command_tiny("enc", TINY_ENC, "", 1, NULL, 0), command_tiny("time", TINY_ENC_TIME, "", 1, NULL, 0);
    ASSERT_EQ(0, mkfifo(command_path("pipe"), 0600));
    ALL_REFUSED(cases);
    ASSERT_EQ_FMT((size_t)0, command_bytes("q"), "%zu");
    PASS();
}

/* Without -o the header is what is printed: the same bytes as the file. */
TEST a_header_goes_to_standard_output(void) {
    command_tiny("enc", TINY_ENC, "", 1, NULL, 0);
    ASSERT_EQ_FMT(DONE, command_run("export @/enc --c -o @/model.h"), "%d");
    ASSERT(command_says("err.txt", "model.h: "));
    ASSERT_EQ_FMT(DONE, command_run("export @/enc --c"), "%d");
    ASSERT(command_same_files("out.txt", "model.h") && command_bytes("err.txt") == 0);
    PASS();
}

SUITE(refusals_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(words_that_are_no_options);
    RUN_TEST(words_that_are_options);
    RUN_TEST(plans_that_cannot_be_made);
    RUN_TEST(settings_that_no_model_can_have);
    RUN_TEST(options_that_nothing_reads);
    RUN_TEST(a_path_that_is_too_long);
    RUN_TEST(data_that_cannot_be_split);
    RUN_TEST(runs_that_cannot_go_on);
    RUN_TEST(tables_are_cut_at_the_last_whole_row);
    RUN_TEST(metadata_out_of_range);
    RUN_TEST(runs_out_of_range);
    RUN_TEST(records_for_a_self_test);
    RUN_TEST(a_self_test_that_fails);
    RUN_TEST(models_that_do_something_else);
    RUN_TEST(models_without_a_split);
    RUN_TEST(results_that_are_not_finite);
    RUN_TEST(output_that_does_not_fit);
    RUN_TEST(a_run_that_does_not_fit);
    RUN_TEST(files_that_end_too_early);
    RUN_TEST(searches_that_find_nothing);
    RUN_TEST(files_that_are_not_made);
    RUN_TEST(a_header_goes_to_standard_output);
}
