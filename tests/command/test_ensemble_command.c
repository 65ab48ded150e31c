/* `mtan train --ensemble`: members in folders of their own, one model file that every command takes. */
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
#include "../../tools/mtan/model/ensemble.h"

#define DATA "--data @/events.csv --labels @/labels.csv "
#define SMALL "--enc-hidden 8 --embed 8 --ref-points 6 --batch 8 --lr 0.01 --quiet " COMMAND_STEADY
#define TRAIN "train own --model enc " DATA SMALL "--head-hidden 6 "
#define CURVES "train own --model interp --data @/events.csv " SMALL "--latent 2 --dec-hidden 5 --mlp-hidden 6 "

/* Row i's first number of what `mtan predict` or `mtan interpolate` wrote, in column `column`. */
static double number_at(const char *name, int row, int column) {
    char *text = command_text(name), *at = text;
    double x = NAN;
    for (int i = 0; at && i <= row; i++) at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL;
    for (int i = 0; at && i < column; i++) at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL;
    if (at) x = strtod(at, NULL);
    free(text);
    return x;
}

/* Member i is the model that its seed alone would give. Without trees, which are sure of these records in every member. */
TEST members_are_averaged(void) {
    double p[4];
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--trees 0 --epochs 2 --seed 7 --ensemble 3 --out @/all"), "%d");
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--trees 0 --epochs 2 --seed 9 --out @/alone"), "%d");
    ASSERT(command_same_tensors("alone/last.safetensors", "all/member-2/last.safetensors"));
    for (int i = 0; i < 4; i++) {
        static const char *const models[] = {"member-0/", "member-1/", "member-2/", ""};
        char line[256];
        snprintf(line, sizeof line, "predict @/all/%sbest.safetensors --data @/events.csv --quiet", models[i]);
        ASSERT_EQ_FMT(DONE, command_run(line), "%d");
        p[i] = number_at("out.txt", 3, 1);
    }
    ASSERT(fabs(p[3] - (p[0] + p[1] + p[2]) / 3) < 1e-6);
    ASSERT(fabs(p[0] - p[1]) > 1e-6);
    PASS();
}

/* Each by itself, as its seed alone would be. */
TEST members_are_trained_once_more(void) {
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 2 --seed 7 --refit all --ensemble 2 --out @/all"), "%d");
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 2 --seed 8 --refit all --out @/alone"), "%d");
    ASSERT(command_same_tensors("alone/best.safetensors", "all/member-1/best.safetensors"));
    ASSERT(command_same_tensors("alone/chosen.safetensors", "all/member-1/chosen.safetensors"));
    PASS();
}

TEST every_command_takes_an_ensemble(void) {
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 2 --ensemble 2 --out @/all"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("selftest @/all/best.safetensors"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("eval @/all/best.safetensors " DATA), "%d");
    ASSERT_EQ_FMT(DONE, command_run("report @/all " DATA "-o @/page.html"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("quantize @/all/best.safetensors @/small.safetensors " DATA), "%d");
    ASSERT_EQ_FMT(DONE, command_run("selftest @/small.safetensors"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("inspect @/all/best.safetensors"), "%d");
    ASSERT(command_says("out.txt", "of 2 members"));
    ASSERT(command_refused("export @/all/best.safetensors --c -o @/model.h", "is an ensemble of 2 models"));
    ASSERT(command_refused("convert @/all/best.safetensors @/x.pt", "is an ensemble"));
    PASS();
}

TEST curves_are_averaged(void) {
    double mean[3], sd[3];
    ASSERT_EQ_FMT(DONE, command_run(CURVES "--epochs 1 --ensemble 2 --out @/all"), "%d");
    for (int i = 0; i < 3; i++) {
        static const char *const models[] = {"member-0/", "member-1/", ""};
        char line[256];
        snprintf(line, sizeof line, "interpolate @/all/%sbest.safetensors --data @/events.csv --at 0:10:5 --quiet",
                 models[i]);
        ASSERT_EQ_FMT(DONE, command_run(line), "%d");
        mean[i] = number_at("out.txt", 1, 3), sd[i] = number_at("out.txt", 1, 4);
    }
    const double middle = (mean[0] + mean[1]) / 2, apart = (mean[0] - mean[1]) / 2;
    ASSERT(fabs(mean[2] - middle) < 1e-4 * (1 + fabs(middle)));
    ASSERT(fabs(sd[2] - sqrt((sd[0] * sd[0] + sd[1] * sd[1]) / 2 + apart * apart)) < 1e-4 * (1 + sd[2]));
    PASS();
}

/* In the middle of a member, and between two: the file is that of an ensemble that was never interrupted. */
TEST an_interrupted_ensemble_goes_on(void) {
    char error[512];
    bundle b;
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 3 --ensemble 3 --out @/whole"), "%d");
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 3 --ensemble 3 --out @/parts"), "%d");
    ASSERT(command_same_files("whole/best.safetensors", "parts/best.safetensors"));
    ASSERT(unlink(command_path("parts/best.safetensors")) == 0);
    ASSERT(unlink(command_path("parts/member-2/last.safetensors")) == 0);
    ASSERT(unlink(command_path("parts/member-2/best.safetensors")) == 0);
    ASSERT(command_refused(TRAIN "--epochs 3 --ensemble 3 --out @/parts", "holds a run: --resume goes on with it"));
    ASSERT(command_refused("train own " DATA "--ensemble 4 --out @/parts --resume", "--ensemble: a resumed run keeps"));
    ASSERT_EQ_FMT(DONE, command_run("train own " DATA "--quiet --out @/parts --resume"), "%d");
    ASSERT(command_same_files("whole/best.safetensors", "parts/best.safetensors"));
    const pid_t child = command_start(TRAIN "--epochs 100000 --patience 0 --ensemble 2 --out @/stopped", 0);
    ASSERT(command_wait("stopped/member-0/log.csv", 2));
    kill(child, SIGINT);
    ASSERT_EQ_FMT(INTERRUPTED, command_finish(child), "%d");
    ASSERT(bundle_read(&b, command_path("stopped/member-0/last.safetensors"), error));
    const int epochs = (int)bundle_number(&b, "mtan.run.epoch", 0) + 2;
    char line[512];
    bundle_free(&b);
    snprintf(line, sizeof line, "train own " DATA "--quiet --epochs %d --out @/stopped --resume", epochs);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    snprintf(line, sizeof line, TRAIN "--epochs %d --patience 0 --ensemble 2 --out @/never", epochs);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    ASSERT(command_same_files("never/best.safetensors", "stopped/best.safetensors"));
    PASS();
}

TEST what_does_not_go_together_is_not_joined(void) {
    char members[2][4096], error[512] = "";
    bundle b;
    plan p;
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 1 --out @/a"), "%d");
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 1 --scale minmax --out @/b"), "%d");
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--epochs 1 --slowest 0.5 --out @/c"), "%d");
    snprintf(members[0], sizeof members[0], "%s", command_path("a/best.safetensors"));
    ASSERT(bundle_read(&b, members[0], error) && plan_load(&p, &b, error));
    snprintf(members[1], sizeof members[1], "%s", command_path("b/best.safetensors"));
    ASSERT(!ensemble_join(command_path("joined.safetensors"), &p, members, 2, NULL, error));
    ASSERT(strstr(error, "has other preprocessing than"));
    snprintf(members[1], sizeof members[1], "%s", command_path("c/best.safetensors"));
    ASSERT(!ensemble_join(command_path("joined.safetensors"), &p, members, 2, NULL, error));
    ASSERT(strstr(error, "the models cannot be joined"));
    ASSERT(access(command_path("joined.safetensors"), F_OK) != 0);
    bundle_free(&b);
    PASS();
}

SUITE(ensemble_command_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(members_are_averaged);
    RUN_TEST(members_are_trained_once_more);
    RUN_TEST(every_command_takes_an_ensemble);
    RUN_TEST(curves_are_averaged);
    RUN_TEST(an_interrupted_ensemble_goes_on);
    RUN_TEST(what_does_not_go_together_is_not_joined);
}
