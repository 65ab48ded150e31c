/* `mtan train --pretrain`: the encoder starts as that of a model which learned to interpolate records without labels. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command_line.h"
#include "../../tools/mtan/command/commands.h"
#include "../../tools/mtan/model/bundle.h"

#define DATA "--data @/events.csv --labels @/labels.csv "
#define SMALL "--enc-hidden 8 --embed 8 --ref-points 6 --head-hidden 6 --batch 8 --quiet --threads 1 "
#define TRAIN "train own --model enc " DATA SMALL
/* A step that no weight can show. */
#define STANDING "--epochs 1 --lr 1e-12 --decay 0 --trees 0 "

/* Other records of the same channels, of which one has another one. */
static void write_unlabelled(const char *name, const char *last) {
    FILE *file = fopen(command_path(name), "w");
    fputs("record,time,channel,value\n", file);
    for (int r = 0; r < 40; r++)
        for (int k = 0; k < 9; k++)
            fprintf(file, "u%d,%.2f,%s,%.3f\n", r, k + 0.02 * r, k % 3 ? "pulse" : "heat", 4 + sin(k + r));
    if (last) fprintf(file, "u0,1,%s,2\n", last);
    fclose(file);
}

/* The largest difference between a tensor of one file and one of another, of the same shape; NaN: one is missing. */
static double distance(const char *a, const char *name_a, const char *b, const char *name_b) {
    const char *const files[] = {a, b}, *const names[] = {name_a, name_b};
    bundle open[2];
    mtan_param p[2];
    double most = NAN;
    int found = 0;
    char error[512];
    for (int k = 0; k < 2; k++) {
        if (!bundle_read(&open[k], command_path(files[k]), error)) printf("  BAD %s\n", error);
        for (int32_t i = 0; i < mtan_param_count(&open[k].model.config); i++)
            if (mtan_param_at(&open[k].model.config, i, &p[k]) == MTAN_OK && strcmp(p[k].name, names[k]) == 0) {
                found++;
                break;
            }
    }
    if (found == 2 && p[0].rows == p[1].rows && p[0].cols == p[1].cols) {
        most = 0;
        for (int32_t i = 0; i < p[0].rows * p[0].cols; i++)
            most = fmax(most, fabs((double)open[0].weights[p[0].offset + (size_t)i] -
                                   (double)open[1].weights[p[1].offset + (size_t)i]));
    }
    bundle_free(&open[0]), bundle_free(&open[1]);
    return most;
}

/* Where training begins: the encoder's tensors are the pretrained ones, and no others; the classifier's those of any training. */
TEST training_starts_with_the_pretrained_encoder(void) {
    static const char *const same[] = {"rec.att.linears.0.weight", "rec.att.linears.1.weight", "rec.att.linears.2.bias",
                                       "rec.periodic.weight", "rec.linear.bias"};
    write_unlabelled("more.csv", NULL);
    ASSERT_EQ_FMT(DONE, command_run(TRAIN STANDING "--pretrain @/more.csv --pretrain-epochs 3 --out @/run"), "%d");
    ASSERT_EQ_FMT(DONE, command_run(TRAIN STANDING "--out @/plain"), "%d");
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        ASSERT(distance("run/last.safetensors", same[i], "run/pretrain/last.safetensors", same[i]) < 1e-9);
        ASSERT(distance("run/last.safetensors", same[i], "plain/last.safetensors", same[i]) > 1e-4);
    }
    ASSERT(distance("run/last.safetensors", "rec.enc.weight_hh_l0", "run/pretrain/last.safetensors",
                    "rec.gru_rnn.weight_hh_l0") < 1e-9);
    ASSERT(distance("run/last.safetensors", "rec.classifier.0.weight", "plain/last.safetensors",
                    "rec.classifier.0.weight") < 1e-9);
    ASSERT_EQ_FMT(DONE, command_run("selftest @/run/pretrain/best.safetensors"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("inspect @/run/best.safetensors"), "%d");
    ASSERT(command_says("out.txt", "mtan.plan.pretrained"));
    PASS();
}

/* mTAND-Full has the decoder too. */
TEST the_decoder_is_pretrained_too(void) {
    write_unlabelled("more.csv", NULL);
    ASSERT_EQ_FMT(DONE,
                  command_run("train own --model full " DATA SMALL
                              "--epochs 1 --lr 1e-12 --latent 2 --dec-hidden 5 --mlp-hidden 6 "
                              "--pretrain @/more.csv --pretrain-epochs 2 --out @/run"),
                  "%d");
    ASSERT(distance("run/last.safetensors", "dec.z0_to_obs.2.weight", "run/pretrain/last.safetensors",
                    "dec.z0_to_obs.2.weight") < 1e-9);
    ASSERT(distance("run/last.safetensors", "rec.gru_rnn.weight_ih_l0_reverse", "run/pretrain/last.safetensors",
                    "rec.gru_rnn.weight_ih_l0_reverse") < 1e-9);
    PASS();
}

/* The encoder sees no static channel, so the model that interpolates has none. */
TEST static_channels_stay_out(void) {
    write_unlabelled("more.csv", NULL);
    command_write("static.csv", "record,age\nr0,30\nr1,40\nr2,50\n");
    ASSERT_EQ_FMT(DONE,
                  command_run(TRAIN STANDING "--static @/static.csv --pretrain @/more.csv --pretrain-epochs 2 --out "
                                             "@/run"),
                  "%d");
    ASSERT(distance("run/last.safetensors", "rec.att.linears.2.weight", "run/pretrain/last.safetensors",
                    "rec.att.linears.2.weight") < 1e-9);
    ASSERT_EQ_FMT(DONE, command_run("inspect @/run/pretrain/best.safetensors"), "%d");
    ASSERT(command_says("out.txt", "\"heat\",\"pulse\""));
    PASS();
}

/* 60 records, 9 or 10 of them for validation and 12 for testing; an ensemble is pretrained once. */
TEST what_judges_is_left_out(void) {
    ASSERT_EQ_FMT(DONE,
                  command_run("train own --model enc " DATA "--enc-hidden 8 --embed 8 --ref-points 6 --head-hidden 6 "
                              "--trees 0 --epochs 1 --ensemble 2 --pretrain @/events.csv --pretrain-epochs 1 --out "
                              "@/run"),
                  "%d");
    ASSERT(command_says("err.txt", "pretraining on 38 records, 22 left out as they are for validation or test"));
    ASSERT(access(command_path("run/pretrain/best.safetensors"), F_OK) == 0);
    ASSERT(access(command_path("run/member-0/pretrain"), F_OK) != 0);
    command_write("splits.csv", "record,part\n");
    for (int r = 0; r < COMMAND_RECORDS; r++) {
        char line[32];
        snprintf(line, sizeof line, "r%d,%s\n", r, r < 2 ? "train" : r < 30 ? "valid" : "test");
        command_append("splits.csv", line);
    }
    command_write("few.csv", "record,time,channel,value\nr7,1,heat,2\nr40,1,pulse,2\n");
    ASSERT(command_refused(TRAIN "--epochs 1 --splits @/splits.csv --pretrain @/few.csv --out @/none",
                           "no record is left that is not a validation or test record"));
    PASS();
}

/* Twice, and interrupted while it is pretrained. */
TEST the_same_bits_follow(void) {
    static const char line[] =
        TRAIN "--latent 2 --epochs 2 --trees 0 --pretrain @/more.csv --pretrain-epochs 60 --out @/";
    char other[512];
    write_unlabelled("more.csv", NULL);
    snprintf(other, sizeof other, "%swhole", line);
    ASSERT_EQ_FMT(DONE, command_run(other), "%d");
    snprintf(other, sizeof other, "%sparts", line);
    const pid_t child = command_start(other, 0);
    const int waited = command_wait("parts/pretrain/log.csv", 3);
    kill(child, SIGINT);
    ASSERT_EQ_FMT(INTERRUPTED, command_finish(child), "%d");
    ASSERT(waited);
    ASSERT(command_refused("train own " DATA "--quiet --out @/parts --resume", "--pretrain is missing"));
    ASSERT(command_refused("train own " DATA "--quiet --out @/parts --resume --pretrain @/events.csv",
                           "not the records that this run was pretrained on"));
    ASSERT_EQ_FMT(DONE, command_run("train own " DATA "--quiet --out @/parts --resume --pretrain @/more.csv"), "%d");
    ASSERT(command_same_files("whole/best.safetensors", "parts/best.safetensors"));
    ASSERT(command_same_files("whole/last.safetensors", "parts/last.safetensors"));
    ASSERT(command_same_files("whole/pretrain/best.safetensors", "parts/pretrain/best.safetensors"));
    PASS();
}

TEST what_cannot_be_pretrained_is_refused(void) {
    write_unlabelled("other.csv", "cold");
    write_unlabelled("more.csv", NULL);
    command_write("dates.csv", "record,time,channel,value\na,2024-05-31,heat,1\n");
    ASSERT(command_refused(TRAIN "--pretrain @/other.csv --out @/x", "other.csv:362: "));
    ASSERT(command_says("err.txt", "cold"));
    ASSERT(command_refused(TRAIN "--pretrain @/dates.csv --out @/x", "the data's times are hours"));
    ASSERT(command_refused(TRAIN "--pretrain @/none.csv --out @/x", "none.csv"));
    ASSERT(command_refused(TRAIN "--pretrain-epochs 3 --out @/x", "needs --pretrain DATA"));
    ASSERT(command_refused(TRAIN "--budget 3trials --pretrain @/more.csv --out @/x", "one of them"));
    ASSERT(command_refused("train own --model interp --data @/events.csv --pretrain @/more.csv --out @/x",
                           "is for mTAND-Enc and mTAND-Full"));
    ASSERT(command_refused("train own --model gru-d " DATA "--pretrain @/more.csv --out @/x",
                           "is for mTAND-Enc and mTAND-Full"));
    ASSERT(access(command_path("x"), F_OK) != 0);
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 1 --trees 0 --out @/plain"), "%d");
    ASSERT(command_refused("train own " DATA "--out @/plain --resume --pretrain @/more.csv",
                           "--pretrain: a resumed run keeps the setting"));
    PASS();
}

SUITE(pretrain_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(training_starts_with_the_pretrained_encoder);
    RUN_TEST(the_decoder_is_pretrained_too);
    RUN_TEST(static_channels_stay_out);
    RUN_TEST(what_judges_is_left_out);
    RUN_TEST(the_same_bits_follow);
    RUN_TEST(what_cannot_be_pretrained_is_refused);
}
