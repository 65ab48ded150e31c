/* Faults, one by one: every call of a kind fails in a run of its own, from the first to the one that no run comes to. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

enum { MEMORY_SAMPLE = 30, SAMPLE = 60, LARGE_SAMPLE = 10, MOST_SHOWN = 3 };

#define ALL "open+read+write+fsync+rename+close+lock+stat+folder"

/* A way to fail. */
typedef struct way {
    const char *name, *calls, *action;
    int code;
    enum { SEEN, UNSEEN, DEADLY } effect; /* may be an error; must change nothing; ends the process */
} way;

static const way ways[] = {
    {"memory", "memory", "once", ENOMEM, SEEN},
    {"memory from there on", "memory", "on", ENOMEM, SEEN},
    {"threads", "thread", "once", EAGAIN, SEEN},
    {"open", "open", "once", EMFILE, SEEN},
    {"read", "read", "once", EIO, SEEN},
    {"write", "write", "once", EIO, SEEN},
    {"disk full from there on", "write+fsync+folder+rename", "on", ENOSPC, SEEN},
    {"fsync", "fsync", "once", EIO, SEEN},
    {"rename", "rename", "once", EACCES, SEEN},
    {"close", "close", "once", EIO, SEEN},
    {"locks", "lock", "once", ENOLCK, SEEN},
    {"stat", "stat", "once", EIO, SEEN},
    {"folders", "folder", "once", EACCES, SEEN},
    {"EINTR", "open+read+write+fsync+close+lock", "once", EINTR, UNSEEN},
    {"half", "read+write", "half", 0, UNSEEN},
    {"kill", ALL, "kill", 0, DEADLY},
    {"half and kill", "write", "tear", 0, DEADLY},
};

static const char *wrong(const char *format, ...) {
    static char texts[4][512]; /* one may be part of the next */
    static int next;
    char *text = texts[next++ % 4];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof texts[0], format, arguments);
    va_end(arguments);
    return text;
}

/* ---- what may be there afterwards ---- */

static const char *name_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int is_lock(const char *path) {
    return strcmp(name_of(path), "mtan.lock") == 0;
}

/* NAME.<digits>.tmp, mtan.lock: the next run takes it away. */
static int is_leftover(const char *path) {
    const char *name = name_of(path), *dot;
    const size_t n = strlen(name);
    if (is_lock(path)) return 1;
    if (n < 6 || strcmp(name + n - 4, ".tmp") != 0) return 0;
    for (dot = name + n - 5; dot > name && *dot >= '0' && *dot <= '9';) dot--;
    return *dot == '.' && dot < name + n - 5;
}

static int is_beginning(const tree_file *f, const tree_file *whole) {
    return whole && f->n <= whole->n && memcmp(f->bytes, whole->bytes, f->n) == 0;
}

/* A file is the old one or a whole one; a table may end before its end. */
static int may_be(const fault_case *c, const tree_file *f) {
    const tree_file *old = tree_find(&c->before, f->path), *good = tree_find(&c->good.after, f->path);
    if (f->is_folder) return (old && old->is_folder) || (good && good->is_folder);
    if (disk_grows(f->path) && (is_beginning(f, old) || is_beginning(f, good))) return 1;
    return disk_is_version(&c->disk, f);
}

/* leftovers: whether there may be some. */
static const char *check_tree(const fault_case *c, const tree *after, int leftovers) {
    for (size_t i = 0; i < after->n; i++) {
        const tree_file *f = &after->files[i];
        if (is_leftover(f->path) ? !leftovers : !may_be(c, f))
            return wrong("%s (%zu bytes) is %s", f->path, f->n,
                         is_leftover(f->path) ? "left over" : "not a whole file");
    }
    for (size_t i = 0; i < c->before.n; i++)
        if (!is_leftover(c->before.files[i].path) && !tree_find(after, c->before.files[i].path))
            return wrong("%s is gone", c->before.files[i].path);
    return NULL;
}

static int has_leftovers(const tree *t) {
    for (size_t i = 0; i < t->n; i++)
        if (is_leftover(t->files[i].path)) return 1;
    return 0;
}

/* But for what may be left over: nothing, lock files, anything. */
enum { CLEAN, LOCKS, LEFTOVERS };

static const char *same_tree(const fault_case *c, const tree *after, int allowed) {
    tree clean = {NULL, 0};
    const char *path;
    for (size_t i = 0; i < after->n; i++) {
        const tree_file *f = &after->files[i];
        if (allowed == LOCKS ? is_lock(f->path) : allowed == LEFTOVERS && is_leftover(f->path)) continue;
        tree_put(&clean, f->path, f->is_folder, f->bytes, f->n);
    }
    path = tree_difference(&clean, &c->good.after);
    if (path) path = wrong("%s differs from that of the good run", path);
    tree_free(&clean);
    return path;
}

static int same_output(const fault_case *c, const outcome *o) {
    return o->n_out == c->good.n_out && memcmp(o->out, c->good.out, o->n_out) == 0;
}

/* ---- one fault ---- */

static const char *check_seen(const fault_case *c, const outcome *o, int leftovers) {
    const char *bad;
    if (strstr(o->err, "AddressSanitizer: CHECK failed"))
        return NULL; /* it needs memory itself where a thread begins */
    if (o->status >= 1000) return wrong("signal %d: %s", o->status - 1000, o->err);
    if (o->status < 0 || o->status > 2) return wrong("status %d: %s", o->status, o->err);
    if (o->status != 0 && !strstr(o->err, "mtan: ")) return wrong("status %d without a message", o->status);
    if ((bad = check_tree(c, &o->after, leftovers)) != NULL) return bad;
    if (o->status != 0) return NULL;
    if (c->status != 0) return "status 0, and it should have been refused";
    if (!same_output(c, o)) return "status 0, and standard output differs from that of the good run";
    return same_tree(c, &o->after, leftovers ? LEFTOVERS : CLEAN);
}

static const char *check_unseen(const fault_case *c, const outcome *o) {
    if (o->status != c->status) return wrong("status %d: %s", o->status, o->err);
    if (!same_output(c, o)) return "standard output differs from that of the good run";
    return same_tree(c, &o->after, CLEAN);
}

/* A lock file that could not be removed, or whose removal a power cut undid, locks nothing. In a folder of runs in which nothing is left
 * to do, nobody comes to take it away. */
const char *finish_case(const fault_case *c, const place *p, score *s) {
    tree now = tree_read(place_path(p, "work"));
    const int allowed = c->run == NO_RUN && !same_tree(c, &now, LOCKS) ? LOCKS : CLEAN;
    outcome o = child_run(p, case_again(c, &now), NULL, 0);
    const char *bad = NULL;
    s->runs++;
    if (o.status != c->status) bad = wrong("the run after it: status %d: %s", o.status, o.err);
    else if (c->run == NO_RUN && !same_output(c, &o)) bad = "the run after it prints something else";
    else if ((bad = same_tree(c, &o.after, allowed)) != NULL) bad = wrong("after the next run too, %s", bad);
    outcome_free(&o), tree_free(&now);
    return bad;
}

/* Whether the next run finds anything but what it expects. */
static int is_between(const fault_case *c, const outcome *o) {
    return has_leftovers(&o->after) ||
           (tree_difference(&o->after, &c->before) && tree_difference(&o->after, &c->good.after));
}

static const char *check_one(const fault_case *c, const place *p, const way *w, const char *fault, int thorough,
                             score *s) {
    const int leftovers = strstr(w->calls, "folder") != NULL; /* when they cannot be removed */
    const char *bad;
    outcome o;
    case_reset(c, p);
    o = child_run(p, c->line, fault, 0);
    s->runs++;
    if (p->page->hits == 0) bad = "";
    else if (w->effect == UNSEEN) bad = check_unseen(c, &o);
    else if (w->effect == SEEN) bad = check_seen(c, &o, leftovers);
    else bad = o.status == 1009 ? check_tree(c, &o.after, 1) : wrong("status %d", o.status);
    if (!bad && ((thorough && !case_is_large(c) && o.status != 0) || is_between(c, &o))) bad = finish_case(c, p, s);
    outcome_free(&o);
    return bad;
}

/* ---- all of them ---- */

/* How many calls of a way there are in the good run. */
static uint32_t count_calls(const fault_case *c, const place *p, const way *w) {
    char fault[120];
    outcome o;
    snprintf(fault, sizeof fault, "%s:0:once", w->calls);
    case_reset(c, p);
    o = child_run(p, c->line, fault, 0);
    outcome_free(&o);
    return p->page->seen;
}

/* Which calls are tried: each, or so few that the whole takes less than a minute. */
static uint32_t step_of(const fault_case *c, const way *w, uint32_t calls, int thorough) {
    const uint32_t sample = case_is_large(c) ? LARGE_SAMPLE : strcmp(w->calls, "memory") == 0 ? MEMORY_SAMPLE : SAMPLE;
    return thorough || calls <= sample ? 1 : (calls + sample - 1) / sample;
}

static unsigned long check_way(const fault_case *c, const place *p, const way *w, int thorough, score *s) {
    const uint32_t calls = count_calls(c, p, w), step = step_of(c, w, calls, thorough);
    unsigned long faults = 0, bad = 0;
    for (uint32_t n = 1;; n += step) {
        char fault[120];
        const char *reason;
        snprintf(fault, sizeof fault, "%s:%u:%s:%d", w->calls, (unsigned)n, w->action, w->code);
        reason = check_one(c, p, w, fault, thorough, s);
        if (reason && !*reason) break;
        faults++;
        if (!reason) continue;
        if (++bad <= MOST_SHOWN) printf("  BAD MTAN_FAULT=%s mtan %s\n      %s\n", fault, c->line, reason);
    }
    if (bad > MOST_SHOWN) printf("      and %lu more like this\n", bad - MOST_SHOWN);
    if (calls == 0) return 0;
    if (bad || faults == 0) s->failed++;
    else s->passed++;
    printf("%-8s%-13s %-24s %5lu faults of %u calls\n", bad ? "FAILED" : "ok", c->name, w->name, faults,
           (unsigned)calls);
    fflush(stdout);
    return faults;
}

unsigned long check_faults(const fault_case *c, const place *p, int thorough, score *s) {
    unsigned long faults = 0;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) faults += check_way(c, p, &ways[i], thorough, s);
    return faults;
}
