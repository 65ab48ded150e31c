/* mtan figures: what it draws, and what it refuses. */
#include <greatest.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/mtan/command/commands.h"
#include "command_line.h"

#define SMALL "--latent 2 --enc-hidden 4 --batch 400 --epochs 1 --threads 1 --quiet "

static size_t count(const char *text, const char *word) {
    size_t n = 0;
    for (; (text = strstr(text, word)) != NULL; text++) n++;
    return n;
}

/* An untrained model of the synthetic set. */
static void make_mtan(const char *name, const char *variant) {
    const mtan_file_pair pairs[] = {{"mtan.data.kind", "toy"}, {"mtan.data.variant", variant}};
    command_tiny(name, TINY_INTERP, "channels 1", 1, pairs, 2);
}

static int is_figure(const char *text) {
    return strncmp(text, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"900\" ", 50) == 0 &&
           strcmp(text + strlen(text) - 7, "</svg>\n") == 0 && !strstr(text, "var(") && !strstr(text, "nan");
}

static int there_is(const char *name) {
    FILE *file = fopen(command_path(name), "rb");
    if (file) fclose(file);
    return file != NULL;
}

TEST two_models_become_two_figures(void) {
    char *curves, *attention;
    ASSERT_EQ_FMT(DONE, command_run("train toy-interp --embed 8 --ref-points 6 --dec-hidden 4 --out @/mtan " SMALL),
                  "%d");
    ASSERT_EQ_FMT(DONE, command_run("train toy-l-ode-ode --out @/ode " SMALL), "%d");
    ASSERT_EQ_FMT(DONE, command_run("figures @/mtan/best.safetensors @/ode/best.safetensors -o @/one"), "%d");
    ASSERT(command_says("err.txt", "/one/interpolation.svg\n") && command_says("err.txt", "/one/attention.svg\n"));
    curves = command_text("one/interpolation.svg"), attention = command_text("one/attention.svg");
    ASSERT(is_figure(curves) && is_figure(attention));
    ASSERT_EQ_FMT((size_t)(2 * 3), count(curves, "class=\"band "), "%zu"); /* models, records */
    ASSERT_EQ_FMT((size_t)(3 * 3), count(curves, "<g class=\"truth\"><path"), "%zu");
    ASSERT_EQ_FMT((size_t)(3 * 3 * 20), count(curves, "<circle"), "%zu"); /* all that was observed */
    ASSERT(strstr(curves, ">Truth<") < strstr(curves, ">mTAND-Full<") &&
           strstr(curves, ">mTAND-Full<") < strstr(curves, ">L-ODE-ODE<"));
    ASSERT(strstr(attention, "class=\"link\"") && strstr(attention, ">mTAND-Full: the stronger"));
    free(curves), free(attention);
    ASSERT_EQ_FMT(DONE, command_run("figures @/ode/best.safetensors @/mtan/best.safetensors -o @/two --quiet"), "%d");
    ASSERT(command_same_files("one/attention.svg", "two/attention.svg"));
    ASSERT_EQ_FMT(DONE, command_run("figures @/mtan/best.safetensors @/ode/best.safetensors -o @/two --quiet"), "%d");
    ASSERT(command_same_files("one/interpolation.svg", "two/interpolation.svg"));
    ASSERT(command_refused("figures @/ode/best.safetensors -o @/three", "none of the models attends"));
    ASSERT(!there_is("three"));
    PASS();
}

TEST what_cannot_be_shown_is_refused(void) {
    make_mtan("mtan.safetensors", "smooth"), make_mtan("sine.safetensors", "sine");
    command_tiny("own.safetensors", TINY_ENC, "", 1, NULL, 0);
    command_write("file", "");
    ASSERT(command_refused("figures", "MODEL"));
    ASSERT(command_refused("figures @/nowhere.safetensors -o @/one", "nowhere.safetensors"));
    ASSERT(command_refused("figures @/own.safetensors -o @/one", "own.safetensors: "));
    ASSERT(command_refused("figures @/mtan.safetensors @/sine.safetensors -o @/one",
                           "sine.safetensors: its test records are not those of the first model"));
    ASSERT(!there_is("one"));
    ASSERT(command_refused("figures @/mtan.safetensors -o @/file", "file"));
    PASS();
}

/* A disk that is full leaves the figure of before, and nothing else. */
TEST a_full_disk_leaves_whole_figures(void) {
    make_mtan("mtan.safetensors", "smooth");
    ASSERT_EQ_FMT(DONE, command_run("figures @/mtan.safetensors -o @/ --quiet"), "%d");
    command_write("interpolation.svg", "before");
    ASSERT_EQ_FMT(BAD_USE, command_finish(command_start("figures @/mtan.safetensors -o @/ --quiet", 4096)), "%d");
    ASSERT_EQ_FMT(strlen("before"), command_bytes("interpolation.svg"), "%zu");
    PASS();
}

SUITE(figures_command_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(two_models_become_two_figures);
    RUN_TEST(what_cannot_be_shown_is_refused);
    RUN_TEST(a_full_disk_leaves_whole_figures);
}
