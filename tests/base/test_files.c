/* Files as wholes: signals, left-overs, locks. */
#define _POSIX_C_SOURCE 200809L
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <greatest.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "command_line.h"
#include "../../tools/data/gzip.h"
#include "../../tools/mtan/base/files.h"

enum { PIECE = 50000, PIECES = 8 };

static void nothing(int signal_number) {
    (void)signal_number;
}

/* A signal every two milliseconds, which calls are not resumed after. */
static void alarms(int on) {
    const struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on ? nothing : SIG_DFL;
    if (on) sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, on ? &often : &never, NULL);
    if (!on) sigaction(SIGALRM, &action, NULL);
}

static void pause_for(long milliseconds) {
    const struct timespec moment = {0, milliseconds * 1000000};
    nanosleep(&moment, NULL);
}

/* A child that does one thing and ends with what that returns. */
static pid_t child_for(int (*task)(int descriptor), int descriptor) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) exit(task(descriptor));
    return child;
}

static int feed_pipe(int unused) {
    static char piece[PIECE];
    FILE *file;
    (void)unused;
    memset(piece, 'x', sizeof piece);
    pause_for(20);
    if (!(file = fopen(command_path("pipe"), "wb"))) return 1;
    for (int i = 0; i < PIECES; i++) fwrite(piece, 1, sizeof piece, file), fflush(file), pause_for(10);
    return fclose(file);
}

static int drain_pipe(int descriptor) {
    static char piece[PIECE];
    size_t all = 0;
    ssize_t n;
    do pause_for(5), n = read(descriptor, piece, sizeof piece), all += n > 0 ? (size_t)n : 0;
    while (n > 0);
    return all != (size_t)PIECES * PIECE;
}

TEST signals_end_no_reading(void) {
    char error[512] = "", *text;
    size_t bytes = 0;
    pid_t child;
    ASSERT_EQ(0, mkfifo(command_path("pipe"), 0600));
    child = child_for(feed_pipe, 0);
    alarms(1);
    text = file_read(command_path("pipe"), &bytes, error);
    alarms(0);
    if (!text) kill(child, SIGKILL); /* it may wait for a reader */
    ASSERT_EQ_FMT(0, command_finish(child), "%d");
    ASSERTm(error, text);
    ASSERT_EQ_FMT((size_t)PIECES * PIECE, bytes, "%zu");
    free(text);
    PASS();
}

TEST signals_end_no_opening(void) {
    static char bytes[PIECES * PIECE];
    text_stream s;
    size_t n = 0;
    pid_t child;
    ASSERT_EQ(0, mkfifo(command_path("pipe"), 0600));
    child = child_for(feed_pipe, 0);
    alarms(1);
    if (text_open(&s, command_path("pipe"), sizeof bytes)) n = text_bytes(&s, bytes, sizeof bytes);
    alarms(0);
    if (n < sizeof bytes) kill(child, SIGKILL); /* it may wait for a reader */
    ASSERT_EQ_FMT(n < sizeof bytes ? 1000 + SIGKILL : 0, command_finish(child), "%d");
    ASSERT_EQ_FMTm(s.error, sizeof bytes, n, "%zu");
    text_close(&s);
    PASS();
}

TEST signals_end_no_writing(void) {
    static char bytes[PIECES * PIECE];
    int ends[2], good;
    pid_t child;
    ASSERT_EQ(0, pipe(ends));
    fflush(NULL);
    if ((child = fork()) == 0) close(ends[1]), _exit(drain_pipe(ends[0]));
    close(ends[0]);
    alarms(1);
    good = descriptor_write(ends[1], bytes, sizeof bytes);
    alarms(0);
    close(ends[1]);
    ASSERT_EQ_FMT(0, command_finish(child), "%d");
    ASSERT(good);
    PASS();
}

/* Pieces that fit the buffer, fill it and are larger than it. */
TEST pieces_become_one_file(void) {
    static const size_t sizes[] = {1, 100, 16384 - 101, 1, 16384, 16385, 0, 40000, 7};
    static char bytes[100000];
    char error[512], *text;
    size_t n = 0, got = 0;
    replacement r;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(i % 251);
    ASSERT(replacement_open(&r, command_path("pieces"), error));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; n += sizes[i++])
        ASSERT(replacement_write(&r, bytes + n, sizes[i]));
    ASSERT_EQ_FMT((size_t)0, command_bytes("pieces"), "%zu");
    ASSERT(replacement_close(&r, 1, error));
    ASSERT((text = file_read(command_path("pieces"), &got, error)) != NULL);
    ASSERT(got == n && memcmp(text, bytes, n) == 0);
    free(text);
    PASS();
}

/* A process that can open no file more cannot open the folder. */
static int close_without_descriptors(int unused) {
    struct rlimit usual, none;
    replacement r;
    char error[512];
    (void)unused;
    if (!replacement_open(&r, command_path("there"), error) || !replacement_write(&r, "new", 3)) return 1;
    if (getrlimit(RLIMIT_NOFILE, &usual) != 0) return 2;
    none = usual, none.rlim_cur = 0;
    if (setrlimit(RLIMIT_NOFILE, &none) != 0) return 2;
    const int good = replacement_close(&r, 1, error);
    if (setrlimit(RLIMIT_NOFILE, &usual) != 0) return 2;
    return good || !strstr(error, "its folder cannot be flushed") ? 3 : 0;
}

TEST a_folder_that_is_not_flushed_is_said(void) {
    ASSERT_EQ_FMT(0, command_finish(child_for(close_without_descriptors, 0)), "%d");
    ASSERT(command_says("there", "new"));
    PASS();
}

static int is_file(const char *name) {
    return access(command_path(name), F_OK) == 0;
}

/* Until the test ends it. */
static int hold_replacement(int descriptor) {
    replacement r;
    char error[512];
    if (!replacement_open(&r, command_path("model"), error) || write(descriptor, "", 1) != 1) return 1;
    return pause();
}

TEST what_dead_processes_left_is_removed(void) {
    char name[64], byte;
    pid_t child;
    int ends[2];
    ASSERT_EQ(0, pipe(ends));
    child = child_for(hold_replacement, ends[1]);
    ASSERT_EQ(1, (int)read(ends[0], &byte, 1));
    snprintf(name, sizeof name, "model.%ld.tmp", (long)child);
    command_append("model.1.tmp", "x"), command_append("model.99999.tmp", "x"); /* 1 lives, but has not written this */
    command_append("model.old.tmp", "x"), command_append("model.12", "x"), command_append("other.12.tmp", "x");
    replacement_clear(command_path("model"));
    ASSERT(!is_file("model.1.tmp") && !is_file("model.99999.tmp"));
    ASSERT(is_file(name) && is_file("model.old.tmp") && is_file("model.12") && is_file("other.12.tmp"));
    kill(child, SIGKILL);
    ASSERT_EQ_FMT(1000 + SIGKILL, command_finish(child), "%d");
    replacement_clear(command_path("model"));
    ASSERT(!is_file(name));
    close(ends[0]), close(ends[1]);
    PASS();
}

/* Nobody clears by hand what a killed `mtan convert` left. */
TEST the_next_file_removes_what_the_last_left(void) {
    char error[512];
    command_append("model.99999.tmp", "x"), command_append("other.99999.tmp", "x");
    ASSERTm(error, file_write(command_path("model"), "new", 3, error));
    ASSERT(!is_file("model.99999.tmp") && is_file("other.99999.tmp"));
    ASSERT(command_says("model", "new"));
    PASS();
}

/* A link to itself is what also root cannot look behind. */
TEST what_the_system_does_not_say_is_no_answer(void) {
    char error[512] = "";
    ASSERT_EQ(0, symlink("loop", command_path("loop")));
    ASSERT_EQ_FMT(1, file_exists(command_path("events.csv"), error), "%d");
    ASSERT_EQ_FMT(1, file_exists(command_path("."), error), "%d");
    ASSERT_EQ_FMT(0, file_exists(command_path("nowhere"), error), "%d");
    ASSERT_EQ_FMT(0, file_exists(command_path("events.csv/nowhere"), error), "%d");
    ASSERT_STR_EQ("", error);
    ASSERT_EQ_FMT(-1, file_exists(command_path("loop"), error), "%d");
    ASSERT(strstr(error, "loop: "));
    PASS();
}

TEST a_folder_is_made_once(void) {
    char error[512] = "";
    ASSERT_EQ_FMT(1, folder_make(command_path("a"), error), "%d");
    ASSERT_EQ_FMT(0, folder_make(command_path("a//"), error), "%d");
    ASSERT_EQ_FMT(1, folder_make(command_path("a/b/"), error), "%d");
    ASSERT_STR_EQ("", error);
    ASSERT_EQ_FMT(-1, folder_make(command_path("no/such"), error), "%d");
    ASSERT(strstr(error, "no/such: "));
    PASS();
}

TEST a_lock_says_why_it_is_refused(void) {
    folder_hold h, other;
    ASSERT(folder_lock(&h, command_path("."), 0));
    ASSERT(!folder_lock(&other, command_path("."), 0));
    ASSERT_EQ_FMT(EWOULDBLOCK, errno, "%d");
    ASSERT(!folder_lock(&other, command_path("nowhere"), 0));
    ASSERT_EQ_FMT(ENOENT, errno, "%d");
    folder_unlock(&other), folder_unlock(&h);
    PASS();
}

TEST a_folder_has_one_owner(void) {
    char error[512] = "", owner[64];
    claim first, second;
    command_append("mtan.lock", "1\n"); /* a dead process left it, and its number has gone to another */
    ASSERTm(error, claim_take(&first, command_path("."), error));
    ASSERT(!claim_take(&second, command_path("."), error));
    snprintf(owner, sizeof owner, "process %ld is at work in this folder", (long)getpid());
    ASSERTm(error, strstr(error, owner));
    claim_drop(&second), claim_drop(&first), claim_drop(&first);
    ASSERT(!is_file("mtan.lock"));
    ASSERT(claim_take(&second, command_path("."), error));
    claim_drop(&second);
    ASSERT(!claim_take(&first, command_path("nowhere"), error));
    ASSERT(!claim_take(&first, command_path("events.csv"), error));
    PASS();
}

/* ---- what cannot be read or written ---- */

/* A path of n letters, which no system takes. */
static const char *long_path(size_t n) {
    static char path[6000];
    memset(path, 'x', n);
    path[n] = 0;
    return path;
}

TEST what_cannot_be_read_is_said(void) {
    char error[512] = "";
    size_t bytes;
    ASSERT(!file_read(command_path("nowhere"), &bytes, error) && strstr(error, "nowhere: No such file"));
    ASSERT(!file_read(command_path("."), &bytes, error) && strstr(error, "/.: Is a directory"));
    command_write("large", "");
    if (truncate(command_path("large"), (off_t)5 << 30) != 0) SKIPm("this file system has no files with holes");
    ASSERT(!file_read(command_path("large"), &bytes, error));
    ASSERTm(error, strstr(error, sizeof(size_t) > 4 ? "large: larger than 4096 MiB" : "large: larger than 1024 MiB"));
    ASSERTm(error, !strstr(error, "does it end?"));
    PASS();
}

TEST what_cannot_be_written_is_said(void) {
    char error[512] = "";
    claim c;
    ASSERT(!file_write(command_path("no/file"), "x", 1, error) && strstr(error, "no/file: No such file"));
    ASSERT(!file_write(command_path("."), "x", 1, error) && strstr(error, "/.: not a regular file"));
    ASSERT(!file_write(long_path(5000), "x", 1, error) && strcmp(error, "the path is too long") == 0);
    ASSERT(!claim_take(&c, long_path(5000), error) && strcmp(error, "the path is too long") == 0);
    PASS();
}

/* Somebody makes a folder of that name in the meantime. */
TEST what_cannot_be_replaced_is_said(void) {
    char error[512] = "";
    replacement r;
    ASSERT(replacement_open(&r, command_path("late"), error) && replacement_write(&r, "new", 3));
    ASSERT_EQ(0, mkdir(command_path("late"), 0777));
    ASSERT(!replacement_close(&r, 1, error));
    ASSERTm(error, strstr(error, "late: cannot be written: "));
    ASSERT(!is_file(strrchr(r.temporary, '/') + 1)); /* nothing is left */
    PASS();
}

static int write_here(int unused) {
    char error[512];
    (void)unused;
    replacement_clear("no/such/folder");
    if (chdir(command_path("")) != 0) return 1;
    if (!file_write("plain", "here", 4, error)) return 2;
    FILE *old = fopen("plain.7.tmp", "w");
    if (!old || fclose(old) != 0) return 3;
    replacement_clear("plain");
    return access("plain.7.tmp", F_OK) == 0 ? 4 : 0;
}

TEST a_name_alone_is_in_the_folder_where_one_is(void) {
    ASSERT_EQ_FMT(0, command_finish(child_for(write_here, 0)), "%d");
    ASSERT(command_says("plain", "here"));
    PASS();
}

/* Its owner has the lock, but has not come to write its number. */
TEST an_owner_without_a_number(void) {
    char error[512] = "";
    claim mine, other;
    folder_hold h;
    ASSERT(claim_take(&mine, command_path("."), error));
    ASSERT_EQ(0, truncate(command_path("mtan.lock"), 0));
    ASSERT(!claim_take(&other, command_path("."), error));
    ASSERTm(error, strstr(error, "another process is at work in this folder"));
    claim_drop(&mine);
    ASSERT(!folder_lock(&h, command_path("nowhere"), 0));
    folder_unlock(&h);
    PASS();
}

/* The owner before removes the file while others wait for its lock: they lock the one that is there. */
static int take_and_drop(int descriptor) {
    char error[512];
    claim c;
    for (int i = 0; i < 200; i++)
        if (claim_take(&c, command_path("."), error)) claim_drop(&c);
        else if (!strstr(error, "is at work in this folder")) return 1;
    (void)descriptor;
    return 0;
}

TEST claims_that_come_and_go_are_kept_apart(void) {
    pid_t child[3];
    for (int i = 0; i < 3; i++) child[i] = child_for(take_and_drop, 0);
    for (int i = 0; i < 3; i++) ASSERT_EQ_FMT(0, command_finish(child[i]), "%d");
    ASSERT(!is_file("mtan.lock"));
    PASS();
}

SUITE(files_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(signals_end_no_reading);
    RUN_TEST(signals_end_no_opening);
    RUN_TEST(signals_end_no_writing);
    RUN_TEST(pieces_become_one_file);
    RUN_TEST(a_folder_that_is_not_flushed_is_said);
    RUN_TEST(what_dead_processes_left_is_removed);
    RUN_TEST(the_next_file_removes_what_the_last_left);
    RUN_TEST(what_the_system_does_not_say_is_no_answer);
    RUN_TEST(a_folder_is_made_once);
    RUN_TEST(a_lock_says_why_it_is_refused);
    RUN_TEST(a_folder_has_one_owner);
    RUN_TEST(what_cannot_be_read_is_said);
    RUN_TEST(what_cannot_be_written_is_said);
    RUN_TEST(what_cannot_be_replaced_is_said);
    RUN_TEST(a_name_alone_is_in_the_folder_where_one_is);
    RUN_TEST(an_owner_without_a_number);
    RUN_TEST(claims_that_come_and_go_are_kept_apart);
}
