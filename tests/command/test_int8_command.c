/* int8 models as people meet them: what quantize says, how compare and inspect see the file, the C header with int8 arrays. */
#define _POSIX_C_SOURCE 200809L
#include <float.h>
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "command_line.h"
#include "tiny_model.h"
#include "../../tools/mtan/model/bundle.h"
#include "../../tools/mtan/command/commands.h"
#include "../../tools/mtan/base/files.h"

#define TRAIN                                                                                                          \
    "train own --model enc --data @/events.csv --labels @/labels.csv --enc-hidden 16 --embed 16 --ref-points 8 "       \
    "--head-hidden 12 --batch 8 --lr 0.01 --quiet --threads 2 --epochs 12 --out @/run"
#define FLOAT "@/run/best.safetensors"
#define DATA " --data @/events.csv --labels @/labels.csv"

static int train_and_quantize(void) {
    return command_run(TRAIN) == DONE && command_run("quantize " FLOAT " @/int8.safetensors") == DONE;
}

/* Sets element i of every row of a tensor in a file. */
static int set_column(const char *file, const char *tensor, size_t i, float value) {
    char error[512];
    size_t bytes = 0;
    uint8_t *blob = file_read(command_path(file), &bytes, error);
    mtan_file f;
    mtan_tensor_view view;
    int ok = blob && mtan_file_open(&f, blob, bytes) == MTAN_OK && mtan_file_tensor(&f, tensor, &view) == MTAN_OK;
    const size_t cols = ok && view.rank == 2 ? view.shape[1] : ok ? view.count : 1;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (size_t k = i; ok && k < view.count; k += cols)
        for (size_t byte = 0; byte < 4; byte++)
            blob[(size_t)(view.data - blob) + 4 * k + byte] = (uint8_t)(bits >> 8 * byte);
    ok = ok && view.dtype == MTAN_DTYPE_F32 && file_write(command_path(file), blob, bytes, error);
    free(blob);
    return ok;
}

/* A unit that is always 0 may have any weights behind it: in int8 they take the steps of all the others. */
TEST a_loss_of_auc_is_a_bad_result(void) {
    if (sizeof(mtan_real) != sizeof(float)) SKIPm("the file is of doubles");
    ASSERT_EQ_FMT(DONE, command_run(TRAIN " --trees 0"), "%d");
    ASSERT(set_column("run/best.safetensors", "rec.classifier.0.bias", 3, -1e6f));
    ASSERT(set_column("run/best.safetensors", "rec.classifier.2.weight", 3, 1e6f));
    ASSERT_EQ_FMT(BAD_RESULT, command_run("quantize " FLOAT " @/int8.safetensors" DATA), "%d");
    ASSERT(command_says("err.txt", "the AUC falls by more than 0.002"));
    ASSERT(command_says("err.txt", "AUC  "));
    ASSERT_EQ_FMT(DONE, command_run("quantize " FLOAT " @/f16.safetensors --type bf16" DATA), "%d");
    PASS();
}

/* The scales are in the values, not tensors that only one file has. */
TEST int8_is_compared_by_value(void) {
    char *text;
    ASSERT(train_and_quantize());
    ASSERT_EQ_FMT(BAD_RESULT, command_run("compare " FLOAT " @/int8.safetensors"), "%d");
    text = command_text("out.txt");
    ASSERT(strstr(text, "rec.enc.weight_hh_l0 ") && !strstr(text, "only in") && !strstr(text, ".scale"));
    free(text);
    ASSERT_EQ_FMT(BAD_RESULT, command_run("compare @/int8.safetensors " FLOAT " --json"), "%d");
    ASSERT(command_says("out.txt", "\"values differ\",\"shape_a\":[48,16]"));
    ASSERT_EQ_FMT(DONE, command_run("compare " FLOAT " @/int8.safetensors --tolerance 0.01"), "%d");
    ASSERT_EQ_FMT(BAD_RESULT, command_run("compare " FLOAT " @/int8.safetensors --tolerance 0.00001"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("compare @/int8.safetensors @/int8.safetensors"), "%d");
    ASSERT(command_says("out.txt", ".scale"));
    PASS();
}

TEST int8_is_inspected(void) {
    ASSERT(train_and_quantize());
    ASSERT_EQ_FMT(DONE, command_run("inspect @/int8.safetensors"), "%d");
    char *text = command_text("out.txt");
    ASSERT(strstr(text, "cannot be trained on") && strstr(text, "reference points at a time") &&
           !strstr(text, "more than can be laid out"));
    free(text);
    ASSERT_EQ_FMT(DONE, command_run("inspect " FLOAT), "%d");
    ASSERT(command_says("out.txt", "memory to train"));
    PASS();
}

/* Are these the numbers between the braces of an array of the header? */
static int array_is(const char *text, const char *name, const double *expected, size_t n) {
    const char *at = strstr(text, name);
    size_t found = 0;
    int ok = at != NULL;
    for (at = ok ? strchr(at, '{') : NULL; ok && *at != '}';) {
        char *end;
        const char *comment = strncmp(at, "/*", 2) == 0 ? strstr(at, "*/") : NULL;
        const double x = strtod(at, &end);
        if (comment) at = comment + 2;
        else if (!strchr("-0123456789", *at)) at++;
        else ok = found < n && fabs(x - expected[found]) <= 1e-7 * fabs(x), found++, at = end;
    }
    return ok && found == n;
}

/* What the file holds, in the order of the header: all but int8 matrices, and their scales; their bytes. */
static int read_arrays(const bundle *b, double *weights, double *rows) {
    int ok = 1;
    for (int32_t i = 0; i < mtan_param_count(&b->model.config); i++) {
        char name[64];
        mtan_param p;
        mtan_tensor_view view;
        mtan_param_at(&b->model.config, i, &p);
        const int int8 = p.rank == 2 && p.cols > 1;
        snprintf(name, sizeof name, "%s%s", p.name, int8 ? ".scale" : "");
        ok = ok && mtan_file_tensor(&b->file, name, &view) == MTAN_OK &&
             mtan_view_read_f64(&view, weights, view.count) == MTAN_OK;
        weights += ok ? view.count : 0;
        ok = ok && mtan_file_tensor(&b->file, p.name, &view) == MTAN_OK;
        for (size_t k = 0; ok && int8 && k < view.count; k++) *rows++ = (int8_t)view.data[k];
    }
    return ok;
}

TEST int8_is_exported(void) {
    char error[512], *text;
    size_t reals = 0, whole = 0;
    bundle b;
    ASSERT(train_and_quantize());
    ASSERT_EQ_FMT(DONE, command_run("export @/int8.safetensors --c -o @/model.h"), "%d");
    ASSERT(command_says("model.h", "#define model_is_int8 1"));
    ASSERT(command_says("model.h", "return mtan_small_classify(m, record, model_points, memory, model_memory, out);"));
    text = command_text("model.h");
    ASSERT(bundle_read(&b, command_path("int8.safetensors"), error));
    ASSERT_EQ(MTAN_OK, mtan_model_int8_counts(&b.model.config, &reals, &whole));
    double *weights = tool_calloc(reals, sizeof *weights), *rows = tool_calloc(whole, sizeof *rows);
    ASSERT(read_arrays(&b, weights, rows));
    ASSERT(array_is(text, "model_weights[]", weights, reals));
    ASSERT(array_is(text, "model_rows[]", rows, whole));
    rows[whole / 2] += 1;
    ASSERT_FALSE(array_is(text, "model_rows[]", rows, whole)); /* it would have been seen */
    free(weights), free(rows), free(text), bundle_free(&b);
    PASS();
}

/* What mtan_small_classify cannot run gets reals. */
TEST int8_curves_are_exported_as_reals(void) {
    char *text;
    ASSERT_EQ_FMT(DONE,
                  command_run("train own --model interp --data @/events.csv --enc-hidden 8 --embed 8 --ref-points 6 "
                              "--latent 2 --batch 8 --quiet --epochs 1 --out @/curves"),
                  "%d");
    ASSERT_EQ_FMT(DONE, command_run("quantize @/curves/best.safetensors @/int8.safetensors"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("export @/int8.safetensors --c -o @/curves.h"), "%d");
    text = command_text("curves.h");
    ASSERT(!strstr(text, "_is_int8") && !strstr(text, "int8_t") && strstr(text, "mtan_predictor_interpolate"));
    free(text);
    PASS();
}

/* ---- 16 bits ---- */

/* A model whose matrix rec.classifier.4.weight has these numbers. */
static void write_numbers(const char *name, const float *x, size_t n) {
    mtan_config config;
    mtan_model model;
    tiny_config(&config, TINY_ENC);
    const size_t count = mtan_weights_count(&config);
    mtan_real *weights = tool_calloc(count, sizeof *weights);
    for (int32_t i = 0; i < mtan_param_count(&config); i++) {
        mtan_param p;
        mtan_param_at(&config, i, &p);
        for (size_t k = 0; k < n && strcmp(p.name, "rec.classifier.4.weight") == 0; k++)
            weights[p.offset + k] = (mtan_real)x[k];
    }
    if (mtan_model_init(&model, &config, weights, count) != MTAN_OK) exit(2);
    command_model(name, &model, NULL, 0);
    free(weights);
}

static const uint16_t *read_bits(const char *name, uint16_t bits[20]) {
    char error[512];
    mtan_tensor_view view;
    bundle b;
    if (!bundle_read(&b, command_path(name), error)) return printf("  BAD %s\n", error), NULL;
    if (mtan_file_tensor(&b.file, "rec.classifier.4.weight", &view) != MTAN_OK || view.bytes != 40) return NULL;
    for (int i = 0; i < 20; i++) bits[i] = (uint16_t)(view.data[2 * i] | view.data[2 * i + 1] << 8);
    bundle_free(&b);
    return bits;
}

/* Rounded to nearest, ties to even. The bits of f16 are those of Python's struct.pack('e', x). */
TEST numbers_of_16_bits_are_rounded(void) {
    static const float x[] = {1,        -2,       65504,     0.1f,         0x1p-14f,     0x1p-15f,     0x1p-24f,
                              0x1p-25f, 0x3p-26f, -0x1p-20f, 1 + 0x1p-11f, 1 + 0x3p-11f, 0x1.ffcp-15f, 0,
                              0.333f};
    static const uint16_t f16[] = {0x3c00, 0xc000, 0x7bff, 0x2e66, 0x0400, 0x0200, 0x0001, 0x0000,
                                   0x0001, 0x8010, 0x3c00, 0x3c02, 0x0400, 0x0000, 0x3554};
    static const uint16_t bf16[] = {0x3f80, 0xc000, 0x4780, 0x3dcd, 0x3880, 0x3800, 0x3380, 0x3300,
                                    0x3340, 0xb580, 0x3f80, 0x3f80, 0x3880, 0x0000, 0x3eaa};
    uint16_t bits[20];
    write_numbers("m", x, sizeof x / sizeof x[0]);
    ASSERT_EQ_FMT(DONE, command_run("quantize @/m @/f16 --type f16"), "%d");
    ASSERT(read_bits("f16", bits));
    for (size_t i = 0; i < sizeof f16 / sizeof f16[0]; i++) ASSERT_EQ_FMT(f16[i], bits[i], "%04x");
    ASSERT_EQ_FMT(DONE, command_run("quantize @/m @/bf16 --type bf16"), "%d");
    ASSERT(read_bits("bf16", bits));
    for (size_t i = 0; i < sizeof bf16 / sizeof bf16[0]; i++) ASSERT_EQ_FMT(bf16[i], bits[i], "%04x");
    PASS();
}

TEST weights_that_do_not_fit_are_refused(void) {
    static const float large[] = {65536}, none[] = {NAN};
    write_numbers("m", large, 1);
    ASSERT(command_refused("quantize @/m @/q --type f16",
                           "rec.classifier.4.weight: the weight 65536 cannot be kept in this type"));
    ASSERT_EQ_FMT(DONE, command_run("quantize @/m @/q --type bf16"), "%d");
    write_numbers("m", none, 1);
    ASSERT(command_refused("quantize @/m @/n", "m: a weight or a result is not finite"));
    ASSERT_EQ_FMT((size_t)0, command_bytes("n"), "%zu");
    PASS();
}

/* ---- trees ---- */

/* Channel b is measured in records of class 1 alone, and its values say nothing: trees must split by "known or not". */
static void write_rare_channel(void) {
    uint32_t random = 1;
    char line[64];
    command_write("d.csv", "record,time,channel,value\n"), command_write("l.csv", "record,label\n");
    for (int r = 0; r < 60; r++) {
        for (int k = 0; k < 8; k++) {
            random = random * 1664525u + 1013904223u;
            snprintf(line, sizeof line, "r%d,%d,%s,%g\n", r, k, r % 2 && k % 2 ? "b" : "a", (random >> 16) / 65536.0);
            command_append("d.csv", line);
        }
        snprintf(line, sizeof line, "r%d,%d\n", r, r % 2);
        command_append("l.csv", line);
    }
}

/* Has a split of the trees this threshold? */
static int has_threshold(const bundle *b, double threshold) {
    mtan_tensor_view view;
    int found = 0;
    if (mtan_file_tensor(&b->file, "rec.trees.split", &view) != MTAN_OK) return 0;
    double *x = tool_calloc(view.count, sizeof *x);
    int ok = mtan_view_read_f64(&view, x, view.count) == MTAN_OK;
    for (size_t k = 2; ok && k < view.count; k += 4) found += fabs(x[k] - threshold) <= 0;
    free(x);
    return found > 0;
}

static int same_tensor(const bundle *a, const bundle *b, const char *name) {
    mtan_tensor_view x, y;
    return mtan_file_tensor(&a->file, name, &x) == MTAN_OK && mtan_file_tensor(&b->file, name, &y) == MTAN_OK &&
           x.count == y.count && x.dtype == y.dtype && x.bytes == y.bytes && memcmp(x.data, y.data, x.bytes) == 0;
}

/* A split by "known or not" has the largest float as its threshold. Trees stay reals, so every type keeps it. */
TEST trees_stay_as_they_are(const char *type) {
    char line[160], error[512];
    bundle a, b;
    if (sizeof(mtan_real) != sizeof(float)) SKIPm("the file is of doubles");
    write_rare_channel();
    ASSERT_EQ_FMT(DONE,
                  command_run("train own --model enc --data @/d.csv --labels @/l.csv --enc-hidden 8 --embed 8 "
                              "--ref-points 4 --head-hidden 8 --quiet --threads 1 --epochs 2 --trees 20 --out @/run"),
                  "%d");
    snprintf(line, sizeof line, "quantize " FLOAT " @/q --type %s --data @/d.csv --labels @/l.csv", type);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    ASSERT(bundle_read(&a, command_path("run/best.safetensors"), error) && bundle_read(&b, command_path("q"), error));
    ASSERT(has_threshold(&a, FLT_MAX));
    ASSERT(same_tensor(&a, &b, "rec.trees.share") && same_tensor(&a, &b, "rec.trees.split") &&
           same_tensor(&a, &b, "rec.trees.height"));
    bundle_free(&a), bundle_free(&b);
    ASSERT_EQ_FMT(DONE, command_run("selftest @/q"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("export @/q --c -o @/model.h"), "%d");
    ASSERT(command_says("model.h", "3.4028234"));
    PASS();
}

/* ---- other models ---- */

TEST given_points_stay(void) {
    static const mtan_real points[6] = {0, (mtan_real)0.125, (mtan_real)0.25, (mtan_real)0.5, (mtan_real)0.75, 2};
    char error[512];
    tiny_model s;
    bundle b;
    tiny_open(&s, TINY_ENC, 1);
    s.config.reference = MTAN_REF_GIVEN, s.config.ref = points;
    ASSERT_EQ(MTAN_OK, mtan_model_init(&s.model, &s.config, s.weights, s.count));
    command_model("m", &s.model, NULL, 0);
    ASSERT_EQ_FMT(DONE, command_run("quantize @/m @/q"), "%d");
    ASSERT(bundle_read(&b, command_path("q"), error));
    ASSERT(b.model.config.ref_points == 6 && check_same("points", b.model.config.ref, points, sizeof points));
    bundle_free(&b);
    ASSERT(tiny_close(&s));
    PASS();
}

/* What is int8 already stays as it is, to the bit. */
TEST int8_of_int8_is_the_same(void) {
    command_tiny("m", TINY_ENC, "", 1, NULL, 0);
    ASSERT_EQ_FMT(DONE, command_run("quantize @/m @/once"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("quantize @/once @/twice"), "%d");
    ASSERT(command_same_tensors("once", "twice"));
    PASS();
}

static void write_curves(void) {
    char line[64];
    command_write("d.csv", "record,time,channel,value\n"), command_write("l.csv", "record,label\n");
    for (int r = 0; r < 12; r++) {
        for (int k = 0; k < 6; k++) {
            snprintf(line, sizeof line, "r%d,%g,%d,%d\n", r, k / 6.0, k % 3, (r * 5 + k) % 7);
            command_append("d.csv", line);
        }
        snprintf(line, sizeof line, "r%d,%d\n", r, r % 3);
        command_append("l.csv", line);
    }
}

/* Curves have an error in place of an AUC; three classes have the AUC of each against the others. */
TEST curves_and_many_classes_are_measured(void) {
    write_curves();
    command_tiny("curves", TINY_INTERP, "", 1, NULL, 0), command_tiny("three", TINY_ENC, "classes 3", 1, NULL, 0);
    ASSERT_EQ_FMT(DONE, command_run("quantize @/curves @/q --type f16 --data @/d.csv"), "%d");
    ASSERT(command_says("err.txt", "mean squared error ") &&
           command_says("err.txt", ", at held-out points of the part 'all'\n"));
    ASSERT(command_run("quantize @/three @/q --type f16 --data @/d.csv --labels @/l.csv --split all") != BAD_USE);
    ASSERT(command_says("err.txt", "12 records of the part 'all'\nAUC  "));
    PASS();
}

SUITE(int8_command_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(a_loss_of_auc_is_a_bad_result);
    RUN_TEST(int8_is_compared_by_value);
    RUN_TEST(int8_is_inspected);
    RUN_TEST(int8_is_exported);
    RUN_TEST(int8_curves_are_exported_as_reals);
    RUN_TEST(numbers_of_16_bits_are_rounded);
    RUN_TEST(weights_that_do_not_fit_are_refused);
    greatest_set_test_suffix("int8");
    RUN_TESTp(trees_stay_as_they_are, "int8");
    greatest_set_test_suffix("f16");
    RUN_TESTp(trees_stay_as_they_are, "f16");
    greatest_set_test_suffix("bf16");
    RUN_TESTp(trees_stay_as_they_are, "bf16");
    RUN_TEST(given_points_stay);
    RUN_TEST(int8_of_int8_is_the_same);
    RUN_TEST(curves_and_many_classes_are_measured);
    GREATEST_SET_SETUP_CB(NULL, NULL);
    GREATEST_SET_TEARDOWN_CB(NULL, NULL);
}
