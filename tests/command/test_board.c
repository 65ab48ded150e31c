/* Models for boards: `mtan train --small`, --flash and --ram take sizes that fit, and what is said of them is true. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command_line.h"
#include "../../tools/mtan/command/commands.h"
#include "../../tools/mtan/model/board.h"
#include "../../tools/mtan/model/bundle.h"

#define TRAIN                                                                                                          \
    "train own --model enc --data @/events.csv --labels @/labels.csv --batch 16 --epochs 1 --threads 1 --ref-points "  \
    "4 " COMMAND_STEADY

static mtan_config enc_of(int32_t channels) {
    mtan_config c;
    if (mtan_config_init(&c, MTAN_ENC, MTAN_CLASSIFY_RECORD, channels, 2) != MTAN_OK) exit(2);
    return c;
}

/* Flash and RAM of a model in int8, counted here from the library's own numbers. */
static size_t flash_of(const mtan_config *c) {
    size_t count = 0, bytes = 0;
    if (mtan_model_int8_counts(c, &count, &bytes) != MTAN_OK) exit(2);
    return 4 * count + bytes + BOARD_CODE;
}

static size_t ram_of(const mtan_config *c) {
    static const mtan_real nowhere[1] = {0}; /* sizes do not read weights */
    mtan_model model;
    size_t bytes = 0;
    if (mtan_model_init(&model, c, nowhere, mtan_weights_count(c)) != MTAN_OK ||
        mtan_small_size(&model, c->ref_points < BOARD_POINTS ? c->ref_points : BOARD_POINTS, &bytes) != MTAN_OK)
        exit(2);
    return bytes + BOARD_INT8_STACK;
}

static board_goal goal_of(size_t flash, size_t ram) {
    board_goal g;
    memset(&g, 0, sizeof g);
    g.flash = flash, g.ram = ram;
    return g;
}

TEST sizes_fit_the_flash(int32_t channels) {
    size_t before = 0;
    messages_quiet(1);
    for (size_t flash = 48 * 1024; flash <= 1024 * 1024; flash += 8 * 1024) {
        const board_goal goal = goal_of(flash, 0);
        mtan_config c = enc_of(channels);
        const int fits = flash_of(&c) <= flash;
        ASSERT(board_choose(&goal, &c));
        ASSERT_EQ(MTAN_OK, mtan_config_check(&c));
        ASSERT(flash_of(&c) <= flash && flash_of(&c) >= before); /* more flash is never a smaller model */
        before = flash_of(&c);
        ASSERT(!fits || (c.embed == 128 && c.enc_hidden == 128 && c.ref_points == 128 && c.head_hidden == 300));
    }
    messages_quiet(0);
    PASS();
}

TEST sizes_fit_the_ram(int32_t channels) {
    const board_goal goal = goal_of(0, 20 * 1024);
    mtan_config c = enc_of(channels);
    messages_quiet(1);
    ASSERT(board_choose(&goal, &c));
    messages_quiet(0);
    if (sizeof(mtan_real) == sizeof(float)) ASSERT(ram_of(&c) <= 20 * 1024);
    ASSERT(board_fits(&goal, &c));
    PASS();
}

TEST without_a_goal_nothing_changes(void) {
    const board_goal none = goal_of(0, 0);
    mtan_config c = enc_of(3), full;
    ASSERT(board_choose(&none, &c));
    ASSERT_EQ(300, c.head_hidden);
    ASSERT_EQ(MTAN_OK, mtan_config_init(&full, MTAN_FULL, MTAN_CLASSIFY_NONE, 3, 0));
    ASSERT(board_choose(&none, &full) && board_fits(&none, &full));
    PASS();
}

TEST needs_of_int8_are_those_of_the_library(void) {
    const mtan_config c = enc_of(41);
    board_need need;
    ASSERT(board_need_of(&need, &c, 1));
    ASSERT_EQ_FMT(flash_of(&c), need.weights + need.code, "%zu");
    ASSERT_EQ_FMT(ram_of(&c), need.memory + need.stack, "%zu");
    ASSERT(board_need_of(&need, &c, 0));
    ASSERT_EQ_FMT(4 * mtan_weights_count(&c), need.weights, "%zu");
    PASS();
}

static int load(bundle *b, const char *name) {
    char error[512] = "";
    if (bundle_read(b, command_path(name), error)) return 1;
    return printf("  BAD %s\n", error), 0;
}

TEST small_makes_a_model_that_fits(void) {
    const board_goal goal = goal_of(128 * 1024, 20 * 1024);
    char said[160];
    bundle b;
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--small --out @/run"), "%d");
    ASSERT(load(&b, "run/best.safetensors"));
    ASSERT(board_fits(&goal, &b.model.config));
    ASSERT_EQ(4, b.model.config.ref_points); /* what the user says stays */
    ASSERT(b.model.config.head_hidden < 300 && b.model.config.trees > 0);
    snprintf(
        said, sizeof said,
        "for 128 KB of flash and 20 KB of RAM: --embed %d --enc-hidden %d --ref-points 4 --head-hidden %d --trees %d\n",
        (int)b.model.config.embed, (int)b.model.config.enc_hidden, (int)b.model.config.head_hidden,
        (int)b.model.config.trees);
    ASSERT(command_says("err.txt", said));
    ASSERT(command_says("err.txt", "mtan quantize to int8, then mtan export: "));
    bundle_free(&b);
    PASS();
}

/* What training announces is what the header has. */
TEST the_exported_header_keeps_the_promise(void) {
    char said[96];
    board_need need;
    bundle b;
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--flash 64k --out @/run --quiet"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("quantize @/run/best.safetensors @/int8.safetensors"), "%d");
    ASSERT_EQ_FMT(DONE, command_run("export @/int8.safetensors --c -o @/model.h"), "%d");
    ASSERT(load(&b, "run/best.safetensors"));
    ASSERT(board_need_of(&need, &b.model.config, 1));
    ASSERT(need.weights + need.code <= 64 * 1024);
    snprintf(said, sizeof said, " * Flash: %zu bytes of weights,", need.weights);
    ASSERT(command_says("model.h", said));
    snprintf(said, sizeof said, "model_memory = %zu,", need.memory);
    ASSERT(command_says("model.h", said));
    snprintf(said, sizeof said, "model.h: %zu bytes of weights and about %zu KB of code", need.weights,
             need.code / 1024);
    ASSERT(command_says("err.txt", said));
    bundle_free(&b);
    PASS();
}

/* Where a board decides the sizes, a search leaves them alone. */
TEST a_search_keeps_to_the_goal(void) {
    const board_goal goal = goal_of(64 * 1024, 0);
    bundle b;
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--flash 64k --budget 3trials --out @/found"), "%d");
    char *text = command_text("err.txt");
    ASSERT(strstr(text, " --thin ") && !strstr(text, " --ref-points 8 --enc-hidden"));
    free(text);
    ASSERT(load(&b, "found/best.safetensors"));
    ASSERT(board_fits(&goal, &b.model.config));
    bundle_free(&b);
    PASS();
}

TEST what_cannot_fit_is_refused(void) {
    ASSERT_EQ_FMT(BAD_USE, command_run(TRAIN "--flash 20k --out @/x"), "%d");
    ASSERT(command_says("err.txt", "no model fits into 20 KB of flash"));
    ASSERT_EQ_FMT(BAD_USE, command_run(TRAIN "--flash 64k --enc-hidden 256 --out @/x"), "%d");
    ASSERT(command_says("err.txt", "no model fits into 64 KB of flash"));
    ASSERT_EQ_FMT(BAD_USE, command_run(TRAIN "--ram soon --out @/x"), "%d");
    ASSERT(command_says("err.txt", "--ram soon: must be a size such as 128k, 1m or 131072"));
    ASSERT_EQ_FMT(BAD_USE, command_run(TRAIN "--flash 128kb --out @/x"), "%d");
    ASSERT(command_says("err.txt", "--flash 128kb: must be a size"));
    ASSERT_EQ_FMT(BAD_USE,
                  command_run("train own --model full --data @/events.csv --labels @/labels.csv --small --out @/x"),
                  "%d");
    ASSERT(command_says("err.txt", "are for mTAND-Enc with a class per record"));
    ASSERT(access(command_path("x"), F_OK) != 0);
    PASS();
}

TEST a_resumed_run_keeps_its_sizes(void) {
    bundle b;
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--flash 64k --out @/run --quiet"), "%d");
    ASSERT(load(&b, "run/best.safetensors"));
    const int32_t hidden = b.model.config.enc_hidden;
    bundle_free(&b);
    ASSERT_EQ_FMT(BAD_USE, command_run(TRAIN "--flash 34k --epochs 2 --out @/run --resume"), "%d");
    ASSERT(command_says("err.txt", "no model fits into 34 KB of flash"));
    ASSERT_EQ_FMT(DONE, command_run(TRAIN "--flash 1m --epochs 2 --out @/run --resume"), "%d");
    ASSERT(load(&b, "run/last.safetensors"));
    ASSERT_EQ(hidden, b.model.config.enc_hidden);
    bundle_free(&b);
    PASS();
}

SUITE(board_suite) {
    RUN_TEST1(sizes_fit_the_flash, 1);
    RUN_TEST1(sizes_fit_the_flash, 41);
    RUN_TEST1(sizes_fit_the_ram, 3);
    RUN_TEST1(sizes_fit_the_ram, 100);
    RUN_TEST(without_a_goal_nothing_changes);
    RUN_TEST(needs_of_int8_are_those_of_the_library);
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(small_makes_a_model_that_fits);
    RUN_TEST(the_exported_header_keeps_the_promise);
    RUN_TEST(a_search_keeps_to_the_goal);
    RUN_TEST(what_cannot_fit_is_refused);
    RUN_TEST(a_resumed_run_keeps_its_sizes);
    GREATEST_SET_SETUP_CB(NULL, NULL);
    GREATEST_SET_TEARDOWN_CB(NULL, NULL);
}
