/* Running out of memory, in the process of the test: whoever asked comes back, and leaves no half-written file and no lock. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../tools/data/text_writer.h"
#include "../../tools/mtan/command/commands.h"
#include "../../tools/mtan/base/files.h"
#include "../../tools/mtan/measure/metrics.h"
#include "../../tools/mtan/run/runner.h"
#include "command_line.h"
#include "tiny_model.h"

/* No machine has so much. Not even malloc is asked: a sanitizer's would end the program. */
static void ask_too_much(void) {
    tool_calloc(SIZE_MAX, 2);
}

static void fail(void *unused) {
    (void)unused;
    ask_too_much();
}

static void do_nothing(void *unused) {
    (void)unused;
}

/* ---- attempts ---- */

typedef struct trail {
    char text[16];
} trail;

static void leave_mark(void *argument) {
    strcat(((trail *)argument)->text, "u");
}

static void leave_other_mark(void *argument) {
    strcat(((trail *)argument)->text, "v");
}

static void fail_inside(void *argument) {
    trail *t = argument;
    memory_undo first, second, third;
    memory_remember(&first, leave_mark, t);
    memory_remember(&second, leave_other_mark, t);
    memory_remember(&third, leave_mark, t), memory_forget(&third);
    ask_too_much();
    strcat(t->text, "x");
}

static void try_twice(void *argument) {
    trail *t = argument;
    memory_undo outer;
    memory_remember(&outer, leave_mark, t);
    if (memory_try(fail_inside, t)) strcat(t->text, "1");
    if (!memory_try(do_nothing, NULL)) strcat(t->text, "2");
    memory_forget(&outer);
}

TEST an_attempt_comes_back(void) {
    ASSERT_EQ(0, memory_try(do_nothing, NULL));
    ASSERT_EQ(SIZE_MAX, memory_try(fail, NULL));
    ASSERT_EQ(SIZE_MAX, memory_try(fail, NULL)); /* and can be made again */
    PASS();
}

/* The last thing is undone first; those around the attempt that failed go on. */
TEST what_was_begun_is_undone(void) {
    trail t = {""};
    ASSERT_EQ(0, memory_try(try_twice, &t));
    ASSERT_STR_EQ("vu12", t.text);
    PASS();
}

static void measure(void *unused) {
    (void)unused;
    metric_auc(NULL, NULL, SIZE_MAX / 2);
}

TEST a_module_comes_back(void) {
    ASSERT_EQ(SIZE_MAX, memory_try(measure, NULL));
    PASS();
}

TEST without_an_attempt_it_aborts(void) {
    const struct rlimit no_core = {0, 0};
    int status = 0;
    pid_t child;
    fflush(NULL);
    if ((child = fork()) == 0) {
        setrlimit(RLIMIT_CORE, &no_core);
        if (!freopen("/dev/null", "w", stderr)) _exit(99);
        ask_too_much();
        _exit(0);
    }
    while (waitpid(child, &status, 0) < 0) continue;
    ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    PASS();
}

static int hungry(const options *o) {
    (void)o;
    return ask_too_much(), DONE;
}

TEST a_command_comes_back(void) {
    const command c = {"hungry", hungry, "", "", "", 0, 0, 0};
    options o;
    memset(&o, 0, sizeof o);
    o.command = &c;
    ASSERT_EQ_FMT(BAD_USE, command_call(&o), "%d");
    PASS();
}

/* ---- files ---- */

static void write_half(void *unused) {
    replacement r;
    char error[512];
    (void)unused;
    if (!replacement_open(&r, command_path("kept.txt"), error)) return;
    if (!replacement_write(&r, "half", 4)) return;
    ask_too_much();
}

/* The folder of a test with nothing in it but what the test wrote. */
static int count_files(void) {
    char line[200], text[16] = "";
    FILE *list;
    snprintf(line, sizeof line, "ls %s | wc -l", command_path(""));
    if (!(list = popen(line, "r"))) return -1;
    if (!fgets(text, sizeof text, list)) text[0] = 0;
    pclose(list);
    return atoi(text);
}

TEST a_file_stays_whole(void) {
    const int before = count_files();
    char error[512];
    ASSERT(file_write(command_path("kept.txt"), "whole", 5, error));
    ASSERT_EQ(SIZE_MAX, memory_try(write_half, NULL));
    ASSERT_EQ_FMT(before + 1, count_files(), "%d");
    ASSERT(command_says("kept.txt", "whole"));
    PASS();
}

static void lock_and_fail(void *unused) {
    folder_hold h;
    (void)unused;
    if (folder_lock(&h, command_path(""), 0)) ask_too_much();
}

TEST a_lock_is_given_back(void) {
    folder_hold h, other;
    ASSERT_EQ(SIZE_MAX, memory_try(lock_and_fail, NULL));
    ASSERT(folder_lock(&h, command_path(""), 0));
    ASSERT(!folder_lock(&other, command_path(""), 0)); /* it is a lock */
    folder_unlock(&other), folder_unlock(&h);
    PASS();
}

static void print_and_fail(FILE *out, void *unused) {
    (void)unused;
    fputs("lost", out);
    ask_too_much();
}

static void write_text_and_fail(void *length) {
    free(text_write(print_and_fail, NULL, length));
}

TEST a_text_is_dropped(void) {
    size_t length;
    ASSERT_EQ(SIZE_MAX, memory_try(write_text_and_fail, &length));
    PASS(); /* the rest is for the sanitizer to see: a stream that writes to a stack that is left */
}

static void print_numbers(FILE *out, void *n) {
    for (size_t i = 0; i < *(size_t *)n; i++) fprintf(out, "%07zu\n", i);
}

/* Of lengths around those at which there is more room. */
TEST a_text_is_whole(void) {
    for (size_t n = 0; n < 20000; n = n < 4090 ? n + 4090 : n < 4100 ? n + 1 : 2 * n - 100) {
        size_t length = 1;
        char *text = text_write(print_numbers, &n, &length);
        ASSERT_EQ_FMT(8 * n, length, "%zu");
        ASSERT_EQ_FMT(length, strlen(text), "%zu");
        for (size_t i = 0; i < n; i++) ASSERT_EQ_FMT(i, (size_t)strtoul(text + 8 * i, NULL, 10), "%zu");
        free(text);
    }
    PASS();
}

/* ---- threads ---- */

enum { RECORDS = 200 };

typedef struct hungry_run {
    runner *run;
    size_t hungry; /* the record whose chunk asks for too much; RECORDS: none */
    int done[RECORDS];
    int finished;
} hungry_run;

static mtan_status visit(void *context, mtan_predictor *predictor, size_t first, size_t count) {
    hungry_run *h = context;
    (void)predictor;
    for (size_t i = first; i < first + count; i++)
        if (i == h->hungry) ask_too_much();
        else h->done[i]++;
    return MTAN_OK;
}

static void visit_all(void *argument) {
    hungry_run *h = argument;
    memset(h->done, 0, sizeof h->done);
    h->finished = runner_each(h->run, RECORDS, visit, h);
}

/* A thread of a pool that runs out ends its chunk alone: the others finish theirs, and the caller then comes back. */
TEST a_thread_comes_back(int32_t threads) {
    hungry_run h = {NULL, 0, {0}, 0};
    char error[512];
    tiny_model s;
    runner run;
    tiny_open(&s, TINY_ENC, 1);
    ASSERT(runner_start(&run, &s.model, s.bounds, threads, error));
    h.run = &run;
    for (h.hungry = 0; h.hungry < RECORDS; h.hungry += 37) {
        ASSERT_EQ(SIZE_MAX, memory_try(visit_all, &h));
        ASSERT(!h.finished);
        for (size_t i = 0; i < RECORDS; i++) ASSERT_EQ_FMT(i / 16 != h.hungry / 16 || i < h.hungry, h.done[i], "%d");
    }
    h.hungry = RECORDS;
    ASSERT_EQ(0, memory_try(visit_all, &h));
    ASSERT(h.finished);
    runner_stop(&run);
    ASSERT(tiny_close(&s));
    PASS();
}

SUITE(memory_suite) {
    RUN_TEST(an_attempt_comes_back);
    RUN_TEST(what_was_begun_is_undone);
    RUN_TEST(a_module_comes_back);
    RUN_TEST(without_an_attempt_it_aborts);
    RUN_TEST(a_command_comes_back);
    for (int32_t threads = 1; threads < 6; threads += 2) RUN_TESTp(a_thread_comes_back, threads);
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(a_file_stays_whole);
    RUN_TEST(a_lock_is_given_back);
    RUN_TEST(a_text_is_dropped);
    RUN_TEST(a_text_is_whole);
}
