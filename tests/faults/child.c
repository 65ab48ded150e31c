/* See child.h. */
#define _POSIX_C_SOURCE 200809L
#define _XOPEN_SOURCE 700
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 80 };

const char *place_path(const place *p, const char *name) {
    static char paths[8][2 * TREE_PATH];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", p->folder, name);
    return path;
}

/* Memory is faster than a disk, and nothing here needs one. */
static void choose_folder(place *p) {
    const char *asked = getenv("FAULTS_DIR");
    snprintf(p->folder, sizeof p->folder, "%s/mtan-faults-XXXXXX",
             asked                           ? asked
             : access("/dev/shm", W_OK) == 0 ? "/dev/shm"
                                             : "build");
    if (!mkdtemp(p->folder)) fail_system(p->folder);
}

static void absolute(char out[TREE_PATH], const char *path) {
    char *full = realpath(path, NULL);
    if (!full || snprintf(out, TREE_PATH, "%s", full) >= TREE_PATH) fail_system(path);
    free(full);
}

void place_open(place *p, const char *command, const char *preload) {
    char relative[TREE_PATH];
    int file;
    absolute(p->command, command), absolute(p->preload, preload);
    choose_folder(p);
    snprintf(relative, sizeof relative, "%s", p->folder);
    absolute(p->folder, relative);
    if (mkdir(place_path(p, "work"), 0777) != 0 || mkdir(place_path(p, "data"), 0777) != 0) fail_system(p->folder);
    if ((file = open(place_path(p, "page"), O_RDWR | O_CREAT, 0666)) < 0 || ftruncate(file, sizeof *p->page) != 0)
        fail_system("page");
    p->page = mmap(NULL, sizeof *p->page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (p->page == MAP_FAILED) fail_system("page");
    close(file);
}

void place_close(place *p) {
    const tree nothing = {NULL, 0};
    munmap(p->page, sizeof *p->page);
    if (getenv("FAULTS_KEEP")) {
        printf("%s is kept\n", p->folder);
        return;
    }
    tree_write(&nothing, p->folder);
    if (rmdir(p->folder) != 0) fail_system(p->folder);
}

static void redirect(const char *path, int flags, int descriptor) {
    const int file = open(path, flags, 0666);
    if (file < 0 || dup2(file, descriptor) < 0) _exit(99);
    close(file);
}

static void set_up(const place *p, const char *fault, int log) {
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    redirect("/dev/null", O_RDONLY, STDIN_FILENO);
    redirect(place_path(p, "out"), O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
    redirect(place_path(p, "err"), O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
    if (chdir(place_path(p, "work")) != 0) _exit(99);
    setenv("MTAN_FAULT_PAGE", place_path(p, "page"), 1);
    if (fault) setenv("MTAN_FAULT", fault, 1);
    if (log) setenv("MTAN_FAULT_LOG", place_path(p, "log"), 1);
    setenv("LD_PRELOAD", p->preload, 1);
    /* For a command that was built with sanitizers: what they find is a status of its own. */
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0:allocator_may_return_null=1:exitcode=99", 1);
    setenv("UBSAN_OPTIONS", "exitcode=99", 1);
    alarm(CHILD_SECONDS);
}

pid_t child_start(const place *p, const char *line, const char *fault, int log) {
    char text[1024], *words[WORDS] = {NULL}, name[] = "mtan";
    int n = 0;
    pid_t child;
    memset(p->page, 0, sizeof *p->page);
    fflush(NULL);
    if ((child = fork()) < 0) fail_system("fork");
    if (child > 0) return child;
    words[n++] = name;
    snprintf(text, sizeof text, "%s", line);
    for (char *at = strtok(text, " "); at && n < WORDS - 1; at = strtok(NULL, " ")) words[n++] = at;
    set_up(p, fault, log);
    execv(p->command, words);
    _exit(99);
}

int child_wait(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) fail_system("waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

outcome child_run(const place *p, const char *line, const char *fault, int log) {
    outcome o;
    size_t n;
    o.status = child_wait(child_start(p, line, fault, log));
    o.out = file_bytes(place_path(p, "out"), &o.n_out);
    o.err = file_bytes(place_path(p, "err"), &n);
    o.after = tree_read(place_path(p, "work"));
    return o;
}

void outcome_free(outcome *o) {
    free(o->out), free(o->err);
    tree_free(&o->after);
}
