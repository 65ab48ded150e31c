/* The command on a device: the driver is the one of cuda_driver.h, kernels run on the shim. Each command is a child of the
 * test, which inherits where its GPU comes from. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_line.h"

#ifdef MTAN_WITH_CUDA_SHIM

#include "cuda_driver.h"
#include "cuda_shim.h"
#include "../../tools/mtan/run/device.h"

static const char *const SMALL = "--epochs 1 --batch 10 --ref-points 4 --enc-hidden 8 --embed 8 --enc-heads 1 "
                                 "--head-hidden 0 --seed 1 --quiet";

static void use_shim(void) {
    driver_reset();
    shim_clear();
    test_driver.deferred = 1, test_driver.random = 1;
    device_source.driver = &test_driver_functions, device_source.image = test_driver_image;
}

static int run_small(const char *command, const char *more) {
    char line[600];
    snprintf(line, sizeof line, "%s --data @/events.csv --labels @/labels.csv %s", command, more);
    return command_run(line);
}

/* A small model on the own data, into a folder. */
static int train_small(const char *out, const char *more) {
    char line[400];
    snprintf(line, sizeof line, "--model enc --out @/%s %s %s", out, SMALL, more);
    return run_small("train own", line);
}

TEST backends_are_listed(void) {
    use_shim();
    ASSERT_EQ(0, command_run("backends"));
    ASSERT(command_says("out.txt", "cuda         runs here"));
    device_source.driver = NULL;
    ASSERT_EQ(0, command_run("backends --json"));
    ASSERT(command_says("out.txt", "\"name\": \"cuda\", \"runs\": false"));
    PASS();
}

/* What a device trains, a CPU reads; the first loss is the CPU's. */
TEST a_model_is_trained(void) {
    char *here, *there;
    use_shim();
    ASSERT_EQ(0, train_small("gpu", "--backend cuda"));
    ASSERT_EQ(0, train_small("cpu", "--threads 1"));
    here = command_text("cpu/steps.csv"), there = command_text("gpu/steps.csv");
    ASSERT(here && there);
    ASSERT_EQ(0, strncmp(strchr(here, '\n'), strchr(there, '\n'), 9)); /* 1,1,0.69... */
    free(here), free(there);
    ASSERT_EQ(0, command_run("selftest @/gpu/best.safetensors"));
    ASSERT_EQ(0, command_run("selftest @/gpu/best.safetensors --backend cuda"));
    ASSERT(command_says("out.txt", "passed on cuda"));
    ASSERT_EQ(0, run_small("eval @/gpu/best.safetensors", "--backend cuda --split all"));
    ASSERT_EQ(0, command_run("predict @/gpu/best.safetensors --data @/events.csv --backend cuda"));
    ASSERT_EQ(2, command_run("stream @/gpu/best.safetensors --backend cuda"));
    ASSERT(command_says("err.txt", "`mtan stream` runs on the CPU alone"));
    PASS();
}

/* Stopped and gone on with, the run has the bits of one that was not. */
TEST a_run_is_resumed(void) {
    use_shim();
    ASSERT_EQ(0, train_small("whole", COMMAND_STEADY "--backend cuda --epochs 2"));
    ASSERT_EQ(0, train_small("parts", COMMAND_STEADY "--backend cuda"));
    ASSERT_EQ(0, run_small("train own", "--out @/parts --backend cuda --resume --epochs 2 --quiet"));
    ASSERT(command_same_tensors("whole/last.safetensors", "parts/last.safetensors"));
    PASS();
}

/* Each trial has its blocks on the device and gives them back. */
TEST settings_are_searched(void) {
    use_shim();
    ASSERT_EQ(0, train_small("search", "--backend cuda --budget 3trials"));
    PASS();
}

TEST a_baseline_is_refused(void) {
    use_shim();
    ASSERT_EQ(2, run_small("train own", "--model gru-d --out @/run --backend cuda --epochs 1"));
    ASSERT(command_says("err.txt", "baselines and --distributed run on CPUs"));
    PASS();
}

TEST without_a_gpu_it_says_so(void) {
    use_shim();
    test_driver.fail_at = 1, test_driver.error = 100;
    ASSERT_EQ(2, train_small("run", "--backend cuda"));
    ASSERT(command_says("err.txt", "--backend cuda: CUDA: cuInit failed"));
    ASSERT(command_says("err.txt", "no such GPU"));
    PASS();
}

/* A call now and then fails, from the first to the last of a training: a message, exit 2, and no half-written model. */
TEST a_failure_ends_the_program(int error, const char *words) {
    int failures = 0, status = 2;
    for (int k = 95; status == 2; k += 31 + k / 8, failures++) {
        use_shim();
        test_driver.fail_at = k, test_driver.error = error;
        status = train_small("run", "--backend cuda");
        ASSERT(status == 0 || status == 2);
        if (status == 0) break;
        ASSERT(command_says("err.txt", words));
        ASSERT(command_text("run/best.safetensors") == NULL);
    }
    ASSERT(failures > 3);
    PASS();
}

TEST a_card_is_measured(void) {
    use_shim();
    ASSERT_EQ(0, command_run("bench physionet-enc --backend cuda --records 2 --epochs 1"));
    ASSERT(command_says("out.txt", "cuda"));
    PASS();
}

SUITE(cuda_command_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(backends_are_listed);
    RUN_TEST(a_card_is_measured);
    RUN_TEST(a_model_is_trained);
    RUN_TEST(a_run_is_resumed);
    RUN_TEST(settings_are_searched);
    RUN_TEST(a_baseline_is_refused);
    RUN_TEST(without_a_gpu_it_says_so);
    greatest_set_test_suffix("memory");
    RUN_TESTp(a_failure_ends_the_program, 2, "out of memory");
    greatest_set_test_suffix("lost");
    RUN_TESTp(a_failure_ends_the_program, 719, "the GPU stopped");
    device_source.driver = NULL, device_source.image = NULL;
}

#else

TEST there_is_no_gpu(void) {
    ASSERT_EQ(2, command_run("train toy-interp --out @/run --backend cuda"));
    ASSERT(command_says("err.txt", "make cuda"));
    PASS();
}

SUITE(cuda_command_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(there_is_no_gpu);
}

#endif
