/* mtan inspect in a process of its own: statistics of every type against numbers worked out by hand, a model's settings and memory
 * against what the library itself asks for, checkpoints, and what is refused. */
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "command_line.h"
#include "tiny_model.h"
#include "../../tools/mtan/command/commands.h"

static int is(double got, double expected) {
    const int good = isnan(expected) ? isnan(got) : fabs(got - expected) <= 1e-12 * fabs(expected);
    if (!good) printf("  BAD %.17g, expected %.17g\n", got, expected);
    return good;
}

/* ---- statistics ---- */

static const uint8_t bools[4] = {1, 0, 0, 1}, u8[2] = {0, 250}, f8[2] = {0x38, 0x38};
static const int8_t i8[4] = {-128, 127, -1, 0};
static const uint16_t u16[2] = {0, 65535}, f16[3] = {0x3C00, 0xC000, 0x7E00} /* 1, -2, NaN */,
                      bf16[2] = {0x3F80, 0x4040} /* 1, 3 */;
static const int16_t i16[2] = {-32768, 32766};
static const int32_t i32[2] = {INT32_MIN, INT32_MAX};
static const uint32_t u32[2] = {0, UINT32_MAX};
static const int64_t i64[2] = {-4, 6};
static const uint64_t u64[2] = {0, (uint64_t)1 << 63};
static float f32[6] = {1, 2, 3, 4, 5, 6}, nothing[2];
static const double f64[2] = {1e300, -1e300};

static const struct {
    mtan_file_entry entry;
    double mean, sd, least, most, nan;
} cases[] = {
    {{"bool", MTAN_DTYPE_BOOL, 1, {4}, bools}, 0.5, 0.5, 0, 1, 0},
    {{"u8", MTAN_DTYPE_U8, 1, {2}, u8}, 125, 125, 0, 250, 0},
    {{"i8", MTAN_DTYPE_I8, 2, {2, 2}, i8}, -0.5, 90.15680784056188, -128, 127, 0}, /* numpy.std */
    {{"f8", MTAN_DTYPE_F8_E4M3, 1, {2}, f8}, NAN, NAN, NAN, NAN, 0},
    {{"f8b", MTAN_DTYPE_F8_E5M2, 1, {2}, f8}, NAN, NAN, NAN, NAN, 0},
    {{"i16", MTAN_DTYPE_I16, 1, {2}, i16}, -1, 32767, -32768, 32766, 0},
    {{"u16", MTAN_DTYPE_U16, 1, {2}, u16}, 32767.5, 32767.5, 0, 65535, 0},
    {{"f16", MTAN_DTYPE_F16, 1, {3}, f16}, -0.5, 1.5, -2, 1, 1},
    {{"bf16", MTAN_DTYPE_BF16, 1, {2}, bf16}, 2, 1, 1, 3, 0},
    {{"i32", MTAN_DTYPE_I32, 1, {2}, i32}, -0.5, 2147483647.5, INT32_MIN, INT32_MAX, 0},
    {{"u32", MTAN_DTYPE_U32, 1, {2}, u32}, 2147483647.5, 2147483647.5, 0, UINT32_MAX, 0},
    {{"f32", MTAN_DTYPE_F32, 2, {2, 3}, f32}, 3.5, 1.707825127659933, 1, 6, 0},
    {{"nothing", MTAN_DTYPE_F32, 1, {2}, nothing}, NAN, NAN, NAN, NAN, 2},
    {{"empty", MTAN_DTYPE_F32, 2, {0, 3}, NULL}, NAN, NAN, NAN, NAN, 0},
    {{"f64", MTAN_DTYPE_F64, 1, {2}, f64}, 0, INFINITY, -1e300, 1e300, 0},
    {{"i64", MTAN_DTYPE_I64, 1, {2}, i64}, 1, 5, -4, 6, 0},
    {{"u64", MTAN_DTYPE_U64, 1, {2}, u64}, 4611686018427387904.0, 4611686018427387904.0, 0, 9223372036854775808.0, 0},
    {{"scalar", MTAN_DTYPE_U8, 0, {0}, u8 + 1}, 250, 0, 250, 250, 0}};
enum { CASES = sizeof cases / sizeof cases[0] };

static void write_cases(void) {
    const mtan_file_pair pair = {"kept", "as it is"};
    mtan_file_entry entries[CASES];
    nothing[0] = nothing[1] = NAN;
    for (int i = 0; i < CASES; i++) entries[i] = cases[i].entry;
    command_tensors("all.safetensors", entries, CASES, &pair, 1);
}

TEST statistics_of_every_type(void) {
    char name[64], *text;
    write_cases();
    ASSERT_EQ_FMT(DONE, command_run("inspect @/all.safetensors --json"), "%d");
    text = command_text("out.txt");
    ASSERT(strstr(text, "\"format\": \"safetensors\",\n \"model\": null,\n") && strstr(text, "\"kept\": \"as it is\""));
    for (int i = 0; i < CASES; i++) {
        snprintf(name, sizeof name, "\"name\": \"%s\"", cases[i].entry.name);
        ASSERT(is(command_json(text, name, "mean"), cases[i].mean));
        ASSERT(is(command_json(text, name, "sd"), isinf(cases[i].sd) ? NAN : cases[i].sd)); /* JSON has no infinity */
        ASSERT(is(command_json(text, name, "min"), cases[i].least));
        ASSERT(is(command_json(text, name, "max"), cases[i].most));
        ASSERT(is(command_json(text, name, "nan"), cases[i].nan));
    }
    ASSERT(strstr(text, "\"dtype\": \"f32\", \"shape\": [2, 3], \"count\": 6, \"mean\": 3.5, "));
    ASSERT(strstr(text, "\"dtype\": \"u8\", \"shape\": [], \"count\": 1, "));
    free(text);
    PASS();
}

/* Where there is no number there is a dash. */
TEST people_get_a_table(void) {
    static const char *const rows[] = {
        "safetensors, ",
        " bytes, 18 tensors, 42 elements\nmetadata:\n  kept = as it is\n",
        "type     shape               mean          sd         min         max   NaN  name\n",
        "f32      2 x 3                3.5       1.708           1           6     0  f32\n",
        "u8       scalar               250           0         250         250     0  scalar\n",
        "f32      2                      -           -           -           -     2  nothing\n",
        "f32      0 x 3                  -           -           -           -     0  empty\n",
        "f8_e4m3  2                      -           -           -           -     0  f8\n",
        "f16      3                   -0.5         1.5          -2           1     1  f16\n",
        "i8       2 x 2               -0.5       90.16        -128         127     0  i8\n"};
    write_cases();
    ASSERT_EQ_FMT(DONE, command_run("inspect @/all.safetensors"), "%d");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) ASSERT(command_says("out.txt", rows[i]));
    PASS();
}

/* ---- metadata ---- */

TEST long_texts_are_cut_unless_asked_for(void) {
    char text[101];
    const mtan_file_pair pair = {"long", text};
    memset(text, 'x', 100), text[100] = 0;
    command_tensors("t.safetensors", NULL, 0, &pair, 1);
    ASSERT_EQ_FMT(DONE, command_run("inspect @/t.safetensors"), "%d");
    ASSERT(command_says("out.txt", "xxx... (100 bytes)\n"));
    ASSERT_EQ_FMT(DONE, command_run("inspect @/t.safetensors --full"), "%d");
    ASSERT(command_says("out.txt", text));
    PASS();
}

/* ---- models ---- */

/* What the library asks for, as inspect prints it. */
static int says_memory(const tiny_model *s, int32_t events, int32_t times) {
    mtan_bounds bounds = {1, events, times};
    mtan_train_config train;
    size_t predict = 0, training = 0;
    char line[160];
    int ok = mtan_predictor_size(&s->model, &bounds, &predict) == MTAN_OK;
    mtan_train_config_init(&train);
    bounds.records = 32;
    ok = ok && mtan_trainer_size(&s->model, &train, &bounds, &training) == MTAN_OK;
    snprintf(line, sizeof line, "memory to predict a record of at most %d observations at %d times: %.1f KB\n",
             (int)events, (int)times, (double)predict / 1024);
    ok = ok && command_says("out.txt", line);
    snprintf(line, sizeof line, "memory to train on 32 such records a step, on one thread: %.1f %cB\n",
             (double)training / (training < 10u << 20 ? 1024 : 1048576), training < 10u << 20 ? 'K' : 'M');
    return ok && command_says("out.txt", line);
}

TEST a_model_has_settings_and_memory(void) {
    char line[128], *text;
    size_t small = 0;
    tiny_model s;
    tiny_open(&s, TINY_ENC, 1);
    command_model("m.safetensors", &s.model, NULL, 0);
    ASSERT_EQ_FMT(DONE, command_run("inspect @/m.safetensors --events 40 --times 20"), "%d");
    snprintf(line, sizeof line, "model: mTAND-Enc, %zu parameters\n", mtan_weights_count(&s.config));
    ASSERT(command_says("out.txt", line) && command_says("out.txt", " channels 3,"));
    ASSERT(command_says("out.txt", " ref_points 6,") && says_memory(&s, 40, 20));
    text = command_text("out.txt");
    ASSERT(!strstr(text, "mtan.channels = ")); /* printed above */
    free(text);
    ASSERT_EQ(MTAN_OK, mtan_small_size(&s.model, 4, &small));
    snprintf(line, sizeof line, "memory to predict any record, 4 reference points at a time: %.1f KB\n",
             (double)small / 1024);
    ASSERT(command_says("out.txt", line));
    ASSERT_EQ_FMT(DONE, command_run("inspect @/m.safetensors"), "%d");
    ASSERT(says_memory(&s, 1500, 200)); /* so large that it is told in MB */
    ASSERT_EQ_FMT(DONE, command_run("inspect @/m.safetensors --full"), "%d");
    ASSERT(command_says("out.txt", "  mtan.channels = 3\n"));
    ASSERT_EQ_FMT(DONE, command_run("inspect @/m.safetensors --events 16777216 --times 16777216"), "%d");
    ASSERT(command_says("out.txt", "a step, on one thread: more than can be laid out\n"));
    ASSERT(tiny_close(&s));
    PASS();
}

TEST programs_get_the_same_numbers(void) {
    mtan_bounds bounds = {1, 1500, 200};
    size_t predict = 0, small = 0;
    tiny_model s;
    char *text;
    tiny_open(&s, TINY_FULL, 1);
    command_model("m.safetensors", &s.model, NULL, 0);
    ASSERT_EQ_FMT(DONE, command_run("inspect @/m.safetensors --json"), "%d");
    text = command_text("out.txt");
    ASSERT_EQ(MTAN_OK, mtan_predictor_size(&s.model, &bounds, &predict));
    if (mtan_small_size(&s.model, 4, &small) != MTAN_OK) small = 0;
    ASSERT(is(command_json(text, "\"model\"", "parameters"), (double)mtan_weights_count(&s.config)));
    ASSERT(is(command_json(text, "\"memory\"", "predict_bytes"), (double)predict));
    ASSERT(is(command_json(text, "\"memory\"", "small_bytes"), (double)small));
    ASSERT(is(command_json(text, "\"memory\"", "batch"), 32));
    ASSERT(strstr(text, "\"kind\": \"") && strstr(text, "\"latent\": \"5\"") && strstr(text, "\"dec_heads\": \"4\""));
    free(text);
    ASSERT(tiny_close(&s));
    PASS();
}

/* Few reference points are all taken at once; a model of its records' own times has none to go through. */
TEST small_memory_is_named_where_there_is_one(void) {
    char *text;
    tiny_model s;
    tiny_open(&s, TINY_ENC, 1);
    s.config.ref_points = 2;
    ASSERT_EQ(MTAN_OK, mtan_model_init(&s.model, &s.config, s.weights, s.count));
    command_model("m.safetensors", &s.model, NULL, 0);
    ASSERT_EQ_FMT(DONE, command_run("inspect @/m.safetensors"), "%d");
    ASSERT(command_says("out.txt", "memory to predict any record, 2 reference points at a time: "));
    ASSERT(tiny_close(&s));
    tiny_open(&s, TINY_OBSERVED, 1);
    command_model("m.safetensors", &s.model, NULL, 0);
    ASSERT_EQ_FMT(DONE, command_run("inspect @/m.safetensors"), "%d");
    text = command_text("out.txt");
    ASSERT(strstr(text, "model: mTAND-Full") && !strstr(text, "memory to predict any record"));
    free(text);
    ASSERT(tiny_close(&s));
    PASS();
}

TEST a_model_of_int8_is_not_trained(void) {
    tiny_model s;
    char *text;
    tiny_open(&s, TINY_ENC, 1);
    command_model("m.safetensors", &s.model, NULL, 0);
    ASSERT_EQ_FMT(DONE, command_run("quantize @/m.safetensors @/int8.safetensors --quiet"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("inspect @/int8.safetensors"), "%d");
    ASSERT(command_says("out.txt", "its matrices are int8: it cannot be trained on\n") &&
           command_says("out.txt", "\ni8 "));
    text = command_text("out.txt");
    ASSERT(!strstr(text, "memory to train"));
    free(text);
    ASSERT(tiny_close(&s));
    PASS();
}

TEST a_checkpoint_is_shown_as_the_model_it_is(void) {
    char *text;
    ASSERT_EQ_FMT(DONE, command_run("inspect " MTAN_GOLDEN_DIR "/torch-enc.pt"), "%d");
    ASSERT(command_says("out.txt", "torch-enc.pt: PyTorch checkpoint, ") &&
           command_says("out.txt", "model: mTAND-Enc, ") &&
           command_says("out.txt", "  assumed 128 reference points, as the published script for mTAND-Enc has\n"));
    text = command_text("out.txt");
    ASSERT(!strstr(text, "optimizer.param_groups.0.params."));
    free(text);
    ASSERT_EQ_FMT(DONE, command_run("inspect " MTAN_GOLDEN_DIR "/torch-enc.pt --full"), "%d");
    ASSERT(command_says("out.txt", "  optimizer.param_groups.0.params.1 = 1\n"));
    ASSERT_EQ_FMT(DONE, command_run("inspect " MTAN_GOLDEN_DIR "/torch-enc.pt --json"), "%d");
    ASSERT(command_says("out.txt", "\"format\": \"pytorch\",\n \"model\": {\"parameters\": "));
    PASS();
}

/* ---- what cannot be shown ---- */

TEST what_is_no_file_of_tensors_is_refused(void) {
    ASSERT(command_refused("inspect @/none.pt", "none.pt: No such file"));
    ASSERT(command_refused("inspect @/events.csv", "events.csv: not a valid safetensors file"));
    ASSERT(command_refused("inspect", "usage: mtan inspect FILE"));
    ASSERT(command_refused("inspect @/events.csv --times 0", "--times 0: must be from 1 to"));
    PASS();
}

/* Settings of a model without its tensors: a file like any other. */
TEST half_a_model_is_a_file_of_tensors(void) {
    const mtan_file_entry entry = {"rec.x", MTAN_DTYPE_F32, 1, {6}, f32};
    const mtan_file_pair pairs[] = {{"mtan.format", "1"}, {"mtan.kind", "enc"}};
    char *text;
    command_tensors("half.safetensors", &entry, 1, pairs, 2);
    ASSERT_EQ_FMT(DONE, command_run("inspect @/half.safetensors"), "%d");
    text = command_text("out.txt");
    ASSERT(!strstr(text, "model:") && strstr(text, "  mtan.kind = enc\n"));
    free(text);
    PASS();
}

SUITE(inspect_command_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(statistics_of_every_type);
    RUN_TEST(people_get_a_table);
    RUN_TEST(long_texts_are_cut_unless_asked_for);
    RUN_TEST(a_model_has_settings_and_memory);
    RUN_TEST(programs_get_the_same_numbers);
    RUN_TEST(small_memory_is_named_where_there_is_one);
    RUN_TEST(a_model_of_int8_is_not_trained);
    RUN_TEST(a_checkpoint_is_shown_as_the_model_it_is);
    RUN_TEST(what_is_no_file_of_tensors_is_refused);
    RUN_TEST(half_a_model_is_a_file_of_tensors);
}
