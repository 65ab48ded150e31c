/* mtan compare in a process of its own: files of tensors made by hand, models with random weights on data of their channels, and
 * pairs that cannot be compared. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "command_line.h"
#include "tiny_model.h"
#include "../../tools/mtan/command/commands.h"

#define DATA " --data @/d.csv --labels @/l.csv"

/* Twenty records of the channels that models without names have, two thirds of them labelled. */
static void write_data(const char *second) {
    char line[64];
    command_write("d.csv", "record,time,channel,value\n");
    command_write("l.csv", "record,label\n");
    for (int r = 0; r < 20; r++) {
        for (int k = 0; k < 6; k++) {
            snprintf(line, sizeof line, "r%d,%g,%d,%g\n", r, k / 6.0, k % 3, (r * 7 + k * 3) % 5 / 2.0);
            command_append("d.csv", line);
        }
        snprintf(line, sizeof line, "r%d,%s\n", r, r % 2 ? second : "no");
        if (r % 3) command_append("l.csv", line);
    }
}

/* ---- files ---- */

static const float six[6] = {1, 2, 3, 4, 5, 6}, moved[6] = {1, 2, 3, 4, 5, 8};
static const mtan_file_entry of_a[] = {{"equal", MTAN_DTYPE_F32, 1, {6}, six},
                                       {"moved", MTAN_DTYPE_F32, 2, {2, 3}, six},
                                       {"shape", MTAN_DTYPE_F32, 2, {2, 3}, six},
                                       {"rank", MTAN_DTYPE_F32, 1, {6}, six},
                                       {"mine", MTAN_DTYPE_F32, 0, {0}, six}};
static const mtan_file_entry of_b[] = {{"equal", MTAN_DTYPE_F32, 1, {6}, six},
                                       {"moved", MTAN_DTYPE_F32, 2, {2, 3}, moved},
                                       {"shape", MTAN_DTYPE_F32, 2, {3, 2}, six},
                                       {"rank", MTAN_DTYPE_F32, 2, {6, 1}, six},
                                       {"yours", MTAN_DTYPE_F32, 1, {2}, six}};
static const mtan_file_pair keys_a[] = {{"kept", "same"}, {"mtan.run.epoch", "1"}, {"only", "here"}};
static const mtan_file_pair keys_b[] = {{"kept", "same"}, {"mtan.run.epoch", "2"}};

TEST every_difference_is_named(void) {
    char *text;
    command_tensors("a", of_a, 5, keys_a, 3), command_tensors("b", of_b, 5, keys_b, 2);
    ASSERT_EQ_FMT(BAD_RESULT, command_run("compare @/a @/b"), "%d");
    ASSERT(command_says("out.txt", "equal                          (6)          equal bits\n"));
    ASSERT(command_says("out.txt", "moved                          (2, 3)               2       0.21  [1, 2]\n"));
    ASSERT(command_says("out.txt", "shape                          (2, 3)       in B (3, 2)\n"));
    ASSERT(command_says("out.txt", "rank                           (6)          in B (6, 1)\n"));
    ASSERT(command_says("out.txt", "mine                           ()           only in A\n"));
    ASSERT(command_says("out.txt", "yours                          (2)          only in B\n"));
    ASSERT(command_says("out.txt", "\n1 of 6 tensors have equal bits; metadata that differs:\n"));
    ASSERT(command_says("out.txt", "  mtan.run.epoch (does not count)\n    A  1\n    B  2\n"));
    ASSERT(command_says("out.txt", "  only\n    A  here\n    B  (none)\nA and B differ\n"));
    ASSERT_EQ_FMT(BAD_RESULT, command_run("compare @/a @/b --json"), "%d");
    ASSERT(command_is_json("out.txt"));
    text = command_text("out.txt");
    ASSERT(strstr(text, "{\"equal\":false,") &&
           strstr(text, "{\"name\":\"mine\",\"result\":\"only in A\",\"shape_a\":[]}"));
    ASSERT(strstr(text, "{\"name\":\"yours\",\"result\":\"only in B\",\"shape_b\":[2]}"));
    ASSERT(strstr(text, "\"result\":\"shapes differ\",\"shape_a\":[2,3],\"shape_b\":[3,2]}"));
    ASSERT(strstr(text,
                  "\"result\":\"values differ\",\"shape_a\":[2,3],\"shape_b\":[2,3],\"largest\":2,\"relative\":0.209"));
    ASSERT(strstr(text, "{\"key\":\"only\",\"counts\":true,\"a\":\"here\",\"b\":null}"));
    free(text);
    PASS();
}

TEST a_tolerance_makes_them_equal(void) {
    command_tensors("a", of_a, 2, NULL, 0), command_tensors("b", of_b, 2, NULL, 0);
    ASSERT_EQ_FMT(DONE, command_run("compare @/a @/b --tolerance 2"), "%d");
    ASSERT(command_says("out.txt", "; the metadata is the same\nequal within 2\n"));
    ASSERT_EQ_FMT(BAD_RESULT, command_run("compare @/a @/b --tolerance 1.99"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("compare @/a @/a --json"), "%d");
    ASSERT(command_is_json("out.txt") && command_says("out.txt", "{\"equal\":true,"));
    PASS();
}

/* Whole numbers of every width, and what is beyond a float, count by their values. */
TEST types_count_by_their_values(void) {
    static const uint8_t u8[2] = {1, 200};
    static const uint16_t u16[2] = {1, 200};
    static const int16_t i16[2] = {1, 200};
    static const int32_t i32[2] = {1, 200};
    static const uint32_t u32[2] = {1, 200};
    static const int64_t i64[2] = {1, 200};
    static const uint64_t u64[2] = {1, 200};
    static const double f64[2] = {1, 200};
    const mtan_file_entry types[] = {{"x", MTAN_DTYPE_U8, 1, {2}, u8},   {"x", MTAN_DTYPE_U16, 1, {2}, u16},
                                     {"x", MTAN_DTYPE_I16, 1, {2}, i16}, {"x", MTAN_DTYPE_I32, 1, {2}, i32},
                                     {"x", MTAN_DTYPE_U32, 1, {2}, u32}, {"x", MTAN_DTYPE_I64, 1, {2}, i64},
                                     {"x", MTAN_DTYPE_U64, 1, {2}, u64}};
    const mtan_file_entry real = {"x", MTAN_DTYPE_F64, 1, {2}, f64};
    command_tensors("real", &real, 1, NULL, 0);
    for (int i = 0; i < 7; i++) {
        command_tensors("whole", &types[i], 1, NULL, 0);
        ASSERT_EQ_FMT(BAD_RESULT, command_run("compare @/whole @/real"), "%d"); /* not the same bits */
        ASSERT(command_says("out.txt", "x                              (2)                  0          0  [0]\n"));
        ASSERT_EQ_FMT(DONE, command_run("compare @/whole @/real --tolerance 1e-9"), "%d");
    }
    PASS();
}

/* Numbers that nobody here can read are equal in their bits or not at all. */
TEST types_that_cannot_be_read_are_far_apart(void) {
    static const uint8_t one[2] = {0x38, 0x38}, other[2] = {0x38, 0x39};
    mtan_file_entry x = {"x", MTAN_DTYPE_F8_E4M3, 1, {2}, one};
    for (int i = 0; i < 2; i++) {
        x.dtype = i ? MTAN_DTYPE_F8_E5M2 : MTAN_DTYPE_F8_E4M3, x.data = one;
        command_tensors("a", &x, 1, NULL, 0);
        x.data = other;
        command_tensors("b", &x, 1, NULL, 0);
        ASSERT_EQ_FMT(DONE, command_run("compare @/a @/a"), "%d");
        ASSERT_EQ_FMT(BAD_RESULT, command_run("compare @/a @/b --tolerance 1e9"), "%d");
        ASSERT(command_says("out.txt", "x                              (2)                inf "));
    }
    PASS();
}

/* ---- predictions ---- */

TEST a_model_predicts_as_itself(void) {
    char *text;
    write_data("yes");
    command_tiny("a", TINY_ENC, "", 1, NULL, 0);
    ASSERT_EQ_FMT(DONE, command_run("compare @/a @/a --json --bootstrap 20" DATA), "%d");
    ASSERT(command_is_json("out.txt"));
    text = command_text("out.txt");
    ASSERT(strstr(text, "\"part\":\"all\",\"rows\":13,\"metrics\":[{\"name\":\"auc\""));
    ASSERT(strstr(text, ",\"difference\":0,\"low\":0,\"high\":0}") && strstr(text, "],\"changes\":0}"));
    free(text);
    PASS();
}

TEST two_models_predict_otherwise(void) {
    write_data("yes");
    command_tiny("a", TINY_ENC, "", 1, NULL, 0), command_tiny("b", TINY_ENC, "", 2, NULL, 0);
    ASSERT_EQ_FMT(BAD_RESULT, command_run("compare @/a @/b --bootstrap 0" DATA), "%d");
    ASSERT(command_says("out.txt", "\nboth on the all records: 13 rows\n"));
    ASSERT(command_says("out.txt", "95 % interval of B - A\nauc ") &&
           command_says("out.txt", " predictions change class\n"));
    ASSERT(command_says("out.txt", "   -\n")); /* no resamples, no interval */
    ASSERT_EQ_FMT(BAD_RESULT, command_run("compare @/a @/b --bootstrap 0 --json" DATA), "%d");
    ASSERT(command_is_json("out.txt") && command_says("out.txt", ",\"low\":null,\"high\":null}"));
    PASS();
}

/* Errors of curves, at what is held out. */
TEST curves_are_compared(void) {
    char *text;
    write_data("yes");
    command_tiny("a", TINY_INTERP, "", 1, NULL, 0), command_tiny("b", TINY_INTERP, "", 2, NULL, 0);
    ASSERT_EQ_FMT(BAD_RESULT, command_run("compare @/a @/b --json --bootstrap 20 --data @/d.csv"), "%d");
    ASSERT(command_is_json("out.txt"));
    text = command_text("out.txt");
    ASSERT(strstr(text, "\"rows\":20,\"metrics\":[{\"name\":\"mse\"") && !strstr(text, "\"changes\""));
    free(text);
    PASS();
}

TEST what_cannot_be_compared_is_refused(void) {
    write_data("yes");
    command_tiny("enc", TINY_ENC, "", 1, NULL, 0), command_tiny("interp", TINY_INTERP, "", 1, NULL, 0);
    command_tiny("more", TINY_ENC, "classes 3", 1, NULL, 0);
    ASSERT(command_refused("compare @/enc @/none", "none: No such file"));
    ASSERT(command_refused("compare @/none @/enc", "none: No such file"));
    ASSERT(command_refused("compare @/enc @/d.csv", "d.csv: not a valid safetensors file"));
    ASSERT(command_refused("compare @/enc @/interp" DATA,
                           "one model classifies what the other does not: nothing to compare"));
    ASSERT(command_refused("compare @/enc @/more" DATA,
                           "the two models do not have the same classes: nothing to compare"));
    ASSERT(command_refused("compare @/enc @/enc --data @/d.csv", "none of these records has a label to compare with"));
    ASSERT(command_refused("compare @/enc @/enc --data @/nowhere.csv", "nowhere.csv: No such file"));
    command_tensors("no-model", of_a, 1, NULL, 0);
    ASSERT(command_refused("compare @/enc @/no-model" DATA, "no-model: "));
    ASSERT(command_refused("compare @/no-model @/enc" DATA, "no-model: "));
    PASS();
}

/* Two runs on the same data whose test records are not the same. */
TEST other_splits_are_refused(void) {
    char line[256];
    for (int seed = 1; seed < 3; seed++) {
        snprintf(
            line, sizeof line,
            "train own --model enc --data @/events.csv --labels @/labels.csv --enc-hidden 4 --embed 4 --ref-points 4 "
            "--head-hidden 3 --epochs 1 --quiet --threads 1 --split-seed %d --out @/run%d",
            seed, seed);
        ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    }
    ASSERT(command_refused(
        "compare @/run1/best.safetensors @/run2/best.safetensors --data @/events.csv --labels @/labels.csv",
        "the two models were split differently: their test records are not the same; try --split all"));
    ASSERT_EQ_FMT(BAD_RESULT,
                  command_run("compare @/run1/best.safetensors @/run2/best.safetensors --data @/events.csv --labels "
                              "@/labels.csv --split all --bootstrap 5"),
                  "%d");
    ASSERT(command_says("out.txt", "both on the all records: 60 rows\n"));
    PASS();
}

/* One has learned a channel that the other has never seen. */
TEST other_channels_are_refused(void) {
    char line[256], row[32];
    command_write("heat.csv", "record,time,channel,value\n");
    for (int i = 0; i < 40; i++)
        snprintf(row, sizeof row, "r%d,%d,heat,%d\n", i / 2, i % 2, i % 7), command_append("heat.csv", row);
    for (int i = 0; i < 2; i++) {
        snprintf(line, sizeof line,
                 "train own --model interp --data @/%s.csv --enc-hidden 4 --embed 4 --ref-points 4 --latent 2 "
                 "--dec-hidden 3 "
                 "--mlp-hidden 3 --epochs 1 --quiet --threads 1 --out @/run%d",
                 i ? "heat" : "events", i);
        ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    }
    ASSERT(command_refused(
        "compare @/run0/best.safetensors @/run1/best.safetensors --skip-unknown --data @/events.csv --split all",
        "the two models do not have the same channels: nothing to compare"));
    PASS();
}

#define CURVES                                                                                                         \
    "train own --model interp --data @/events.csv --enc-hidden 4 --embed 4 --ref-points 4 --latent 2 --epochs 1 "      \
    "--quiet "

/* A forecast holds out the end of a record, other models hold out times in between. */
TEST other_points_are_refused(void) {
    ASSERT_EQ_FMT(DONE, command_run(CURVES "--out @/between"), "%d");
    ASSERT_EQ_FMT(DONE, command_run(CURVES "--forecast 3 --out @/three"), "%d");
    ASSERT_EQ_FMT(DONE, command_run(CURVES "--forecast 2.5 --seed 1 --out @/less"), "%d");
    ASSERT(command_refused("compare @/between/best.safetensors @/three/best.safetensors --data @/events.csv",
                           "the first model interpolates and the second forecasts 3: they are not measured at the same "
                           "points"));
    ASSERT(command_refused("compare @/three/best.safetensors @/less/best.safetensors --data @/events.csv",
                           "the first model forecasts 3 and the second forecasts 2.5: they are not"));
    ASSERT_EQ_FMT(DONE, command_run(CURVES "--forecast 3 --seed 1 --out @/again"), "%d");
    ASSERT_EQ_FMT(BAD_RESULT,
                  command_run("compare @/three/best.safetensors @/again/best.safetensors --data @/events.csv"), "%d");
    PASS();
}

TEST a_checkpoint_has_other_metadata(void) {
    command_tiny("m", TINY_ENC, "", 1, NULL, 0);
    ASSERT_EQ_FMT(DONE, command_run("convert @/m @/m.pt"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("compare @/m @/m.pt"), "%d");
    ASSERT(
        command_says("out.txt", "have equal bits; a checkpoint and a model file: metadata is not compared\nequal\n"));
    ASSERT_EQ_FMT(DONE, command_run("compare @/m.pt @/m --json"), "%d");
    ASSERT(command_is_json("out.txt") && command_says("out.txt", "\"metadata_compared\":false"));
    PASS();
}

SUITE(compare_command_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(every_difference_is_named);
    RUN_TEST(a_tolerance_makes_them_equal);
    RUN_TEST(types_count_by_their_values);
    RUN_TEST(types_that_cannot_be_read_are_far_apart);
    RUN_TEST(a_model_predicts_as_itself);
    RUN_TEST(two_models_predict_otherwise);
    RUN_TEST(curves_are_compared);
    RUN_TEST(what_cannot_be_compared_is_refused);
    RUN_TEST(other_splits_are_refused);
    RUN_TEST(other_channels_are_refused);
    RUN_TEST(other_points_are_refused);
    RUN_TEST(a_checkpoint_has_other_metadata);
}
