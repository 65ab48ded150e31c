/* What people see while a command works: on a terminal one line that is rewritten, elsewhere nothing that moves. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_line.h"
#include "../../tools/mtan/command/commands.h"

#define TRAIN                                                                                                          \
    "train own --model enc --data @/events.csv --labels @/labels.csv --enc-hidden 4 --embed 4 --ref-points 4 "         \
    "--head-hidden 3 --batch 8 --threads 1 --epochs 1 --out @/run"
#define REWRITE "\r\033[K"

#define ON_TERMINAL(line)                                                                                              \
    do {                                                                                                               \
        const int status = command_on_terminal(line);                                                                  \
        if (status < 0) SKIPm("there are no terminals here");                                                          \
        ASSERT_EQ_FMT(DONE, status, "%d");                                                                             \
    } while (0)

static int count(const char *text, const char *words) {
    int n = 0;
    for (; (text = strstr(text, words)) != NULL; text += strlen(words)) n++;
    return n;
}

/* The longest line of progress, by its bytes. */
static size_t longest(const char *text) {
    size_t most = 0;
    while ((text = strstr(text, REWRITE "epoch 1/1  batch ")) != NULL) {
        const size_t n = strcspn(text += strlen(REWRITE), "\r\n");
        if (n > most) most = n;
    }
    return most;
}

/* A line per step, in the width of the terminal, and gone before the next thing is said. */
TEST progress_is_rewritten(void) {
    char *text;
    ASSERT_EQ(0, setenv("COLUMNS", "31", 1));
    ON_TERMINAL(TRAIN);
    ASSERT_EQ(0, unsetenv("COLUMNS"));
    text = command_text("terminal.txt");
    ASSERT(count(text, REWRITE "epoch 1/1  batch 1/5  loss ") == 1 && count(text, REWRITE "epoch 1/1  batch 5/5") == 1);
    ASSERT_EQ_FMT((size_t)30, longest(text), "%zu");
    ASSERT(strstr(text, REWRITE "epoch   1  loss ") && strstr(text, "best epoch 1 of 1: "));
    free(text);
    PASS();
}

TEST the_usual_width_is_eighty(void) {
    char *text;
    ASSERT_EQ(0, setenv("COLUMNS", "3", 1)); /* no width that a line could have */
    ON_TERMINAL(TRAIN);
    ASSERT_EQ(0, unsetenv("COLUMNS"));
    text = command_text("terminal.txt");
    ASSERT(longest(text) > 50 && longest(text) < 80);
    free(text);
    PASS();
}

/* Shells keep COLUMNS to themselves: the terminal itself knows. */
TEST the_terminal_says_its_width(void) {
    char *text;
    ASSERT_EQ(0, unsetenv("COLUMNS"));
    command_terminal_columns(41);
    ON_TERMINAL(TRAIN);
    command_terminal_columns(0);
    text = command_text("terminal.txt");
    ASSERT_EQ_FMT((size_t)40, longest(text), "%zu");
    free(text);
    PASS();
}

/* The longest line of help, but for examples, which are there to be copied. */
static size_t longest_help(const char *text) {
    size_t most = 0;
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        if (strncmp(text, "  mtan ", 7) != 0 && n > most) most = n;
    }
    return most;
}

TEST help_is_as_wide_as_the_terminal(void) {
    static const size_t widths[] = {50, 61, 80, 200};
    char columns[16], *text;
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        snprintf(columns, sizeof columns, "%zu", widths[i]);
        ASSERT_EQ(0, setenv("COLUMNS", columns, 1));
        ASSERT_EQ_FMT(DONE, command_run("help train"), "%d");
        text = command_text("out.txt");
        ASSERTm(columns, longest_help(text) < widths[i]);
        ASSERTm(columns, longest_help(text) + 20 > widths[i]);
        free(text);
    }
    ASSERT_EQ(0, unsetenv("COLUMNS"));
    ASSERT_EQ_FMT(DONE, command_run("help train"), "%d");
    text = command_text("out.txt");
    ASSERT(longest_help(text) < 80 && longest_help(text) > 60);
    free(text);
    PASS();
}

TEST a_file_gets_no_progress(void) {
    char *text;
    ASSERT_EQ_FMT(DONE, command_run(TRAIN), "%d");
    text = command_text("err.txt");
    ASSERT(!strstr(text, "\033") && !strstr(text, "batch ") && strstr(text, "epoch   1  loss "));
    free(text);
    PASS();
}

TEST quiet_is_quiet(void) {
    ON_TERMINAL(TRAIN " --quiet");
    ASSERT_EQ_FMT((size_t)0, command_bytes("terminal.txt"), "%zu");
    PASS();
}

/* A name that goes into a file as it is does not speak to a terminal. */
TEST rows_are_cleaned_for_a_terminal(void) {
    char *text;
    command_tiny("m.safetensors", TINY_ENC, "", 1, NULL, 0);
    command_write("d.csv", "record,time,channel,value\n\33[31mred,0.5,0,1\n");
    ASSERT_EQ_FMT(DONE, command_run("predict @/m.safetensors --data @/d.csv"), "%d");
    ASSERT(command_says("out.txt", "\n\33[31mred,"));
    ON_TERMINAL("predict @/m.safetensors --data @/d.csv");
    text = command_text("terminal.txt");
    ASSERT(strstr(text, "\n?[31mred,") && !strstr(text, "\33"));
    free(text);
    PASS();
}

typedef struct heard {
    char text[200];
    int wrong, n;
} heard;

static void hear(void *context, int wrong, const char *text) {
    heard *h = context;
    snprintf(h->text, sizeof h->text, "%s", text);
    h->wrong = wrong, h->n++;
}

/* A program hears what a command would print, remarks too where a command is quiet, and never a line that moves. */
TEST a_program_listens(void) {
    heard h = {"", 0, 0};
    messages_listen(hear, &h);
    messages_quiet(1);
    note("epoch %d", 3);
    ASSERT_STR_EQ("epoch 3", h.text);
    ASSERT(!h.wrong && h.n == 1);
    progress("batch 1");
    progress_end();
    ASSERT_EQ_FMT(1, h.n, "%d");
    ASSERT_EQ_FMT(BAD_USE, complain("no \33[31mred"), "%d");
    ASSERT_STR_EQ("no ?[31mred", h.text);
    ASSERT(h.wrong && h.n == 2);
    messages_listen(NULL, NULL);
    note("nobody hears this");
    messages_quiet(0);
    ASSERT_EQ_FMT(2, h.n, "%d");
    PASS();
}

SUITE(messages_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(progress_is_rewritten);
    RUN_TEST(the_usual_width_is_eighty);
    RUN_TEST(the_terminal_says_its_width);
    RUN_TEST(help_is_as_wide_as_the_terminal);
    RUN_TEST(a_file_gets_no_progress);
    RUN_TEST(quiet_is_quiet);
    RUN_TEST(rows_are_cleaned_for_a_terminal);
    RUN_TEST(a_program_listens);
}
