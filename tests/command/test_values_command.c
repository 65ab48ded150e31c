/* Encoded values as people meet them: the knots that training finds, and that every command knows them. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/mtan/command/commands.h"
#include "../../tools/mtan/model/bundle.h"
#include "command_line.h"

enum { RECORDS = 60, BINS = 4, CHANNELS = 3 };
#define SMALL                                                                                                          \
    " --model enc --enc-hidden 8 --embed 8 --ref-points 4 --head-hidden 6 --batch 16 --trees 0 --quiet --threads 1 "
#define TRAIN "train own --data @/made.csv --labels @/made-labels.csv" SMALL
#define ENCODED TRAIN "--values piecewise --bins 4 "

/* Every record has the same values, so that any part of the records has the same quantiles: five that are even, a constant, and one
 * that is 0 four times of five. */
static void write_records(void) {
    FILE *events = fopen(command_path("made.csv"), "w"), *labels = fopen(command_path("made-labels.csv"), "w");
    fprintf(events, "record,time,channel,value\n");
    fprintf(labels, "record,label\n");
    for (int r = 0; r < RECORDS; r++) {
        for (int i = 0; i < 5; i++)
            fprintf(events, "r%02d,%d,even,%d\nr%02d,%d,fixed,7\nr%02d,%d,rare,%d\n", r, i, (i + 2 * r) % 5, r, i, r, i,
                    i == r % 5);
        fprintf(labels, "r%02d,%s\n", r, r % 2 ? "b" : "a");
    }
    fclose(events), fclose(labels);
}

TEST knots_are_quantiles_of_the_training_values(const char *kind) {
    static const double want[CHANNELS][BINS + 1] = {{0, 1, 2, 3, 4}, {7, 7, 7, 7, 7}, {0, 0, 0, 0, 1}};
    char line[512], error[512];
    bundle b;
    mtan_param p;
    write_records();
    snprintf(line, sizeof line, TRAIN "--values %s --bins 4 --scale none --epochs 1 --out @/run", kind);
    ASSERT_EQ_FMT(DONE, command_run(line), "%d");
    ASSERT(bundle_read(&b, command_path("run/best.safetensors"), error));
    ASSERT(param_find(&p, &b.model.config, "rec.values.knots"));
    ASSERT_EQ_FMT(CHANNELS * (BINS + 1), (int)p.rows, "%d");
    for (int i = 0; i < p.rows; i++)
        ASSERT_EQ_FMT(want[i / (BINS + 1)][i % (BINS + 1)], (double)b.weights[p.offset + (size_t)i], "%g");
    bundle_free(&b);
    PASS();
}

TEST a_run_goes_on_to_the_same_bits(void) {
    write_records();
    ASSERT_EQ_FMT(DONE, command_run(ENCODED COMMAND_STEADY "--epochs 3 --out @/whole"), "%d");
    ASSERT_EQ_FMT(DONE, command_run(ENCODED COMMAND_STEADY "--epochs 1 --out @/parts"), "%d");
    ASSERT_EQ_FMT(DONE, command_run(ENCODED COMMAND_STEADY "--epochs 3 --out @/parts --resume"), "%d");
    ASSERT(command_same_tensors("whole/last.safetensors", "parts/last.safetensors"));
    ASSERT(command_refused(TRAIN COMMAND_STEADY "--epochs 4 --out @/parts --resume --values quantile",
                           "--values: a resumed run keeps the setting that it was started with"));
    PASS();
}

/* The expected output in the file, as the library computes it in float and in int8; a header; one member among others. */
TEST every_command_knows_them(void) {
    write_records();
    ASSERT_EQ_FMT(DONE, command_run(ENCODED "--epochs 1 --ensemble 2 --out @/run"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("selftest @/run/best.safetensors"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("predict @/run/best.safetensors --data @/made.csv"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("quantize @/run/member-0/best.safetensors @/int8.safetensors"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("selftest @/int8.safetensors"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("export @/int8.safetensors --c --out @/model.h"), "%d");
    ASSERT(command_says("model.h", "c.values = MTAN_VALUES_PIECEWISE;"));
    ASSERT(command_says("model.h", "c.bins = 4;"));
    ASSERT_EQ_FMT(DONE, command_run("inspect @/run/member-0/best.safetensors"), "%d");
    ASSERT(command_says("out.txt", "rec.values.knots"));
    PASS();
}

TEST models_without_attention_refuse_them(void) {
    write_records();
    ASSERT(command_refused("train own --model gru-d --data @/made.csv --labels @/made-labels.csv --out @/run --values "
                           "piecewise",
                           "--values: gru-d does not read it, mTAND-Enc and mTAND-Full do"));
    ASSERT(
        command_refused(ENCODED "--encoder rbf --out @/run", "--values: it needs attention, and the encoder is rbf"));
    ASSERT(command_refused(TRAIN "--values quantile --bins 65 --out @/run", "--bins 65: must be from 1 to 64"));
    PASS();
}

SUITE(values_command_suite);
SUITE(values_command_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST1(knots_are_quantiles_of_the_training_values, "piecewise");
    RUN_TEST1(knots_are_quantiles_of_the_training_values, "quantile");
    RUN_TEST(a_run_goes_on_to_the_same_bits);
    RUN_TEST(every_command_knows_them);
    RUN_TEST(models_without_attention_refuse_them);
}
