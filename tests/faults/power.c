/* Power cuts: after every entry of a run's log, all that disk.h says may be left. From each of them the work must go on to where an
 * uninterrupted run comes. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>

#include "checks.h"

enum { MOST_SHOWN = 5 };

typedef struct cuts {
    const fault_case *c;
    const place *p;
    score *score;
    uint64_t *seen; /* hashes of what was tried already */
    size_t n_seen;
    unsigned long states, bad, fresh; /* fresh: had to begin from the start, as nothing was safe yet */
} cuts;

static int is_new(cuts *x, const tree *t) {
    const uint64_t h = tree_hash(t);
    for (size_t i = 0; i < x->n_seen; i++)
        if (x->seen[i] == h) return 0;
    if (!(x->seen = realloc(x->seen, (x->n_seen + 1) * sizeof *x->seen))) fail_system("memory");
    x->seen[x->n_seen++] = h;
    return 1;
}

/* When the command has ended well, nothing of what it made may be lost any more; a lock file may come back. */
static const char *lost_at_end(const cuts *x, const tree *t) {
    for (size_t i = 0; i < x->c->good.after.n; i++) {
        const tree_file *f = &x->c->good.after.files[i], *there = tree_find(t, f->path);
        if (!there || !file_same(f, there)) return f->path;
    }
    return NULL;
}

static void try_state(cuts *x, const disk *d, const tree *t, int end, const char *what) {
    const char *path = disk_broken(d, t), *bad = NULL;
    char text[600];
    if (!path && end) path = lost_at_end(x, t);
    if (path) snprintf(text, sizeof text, "%s is lost, old or not whole", path), bad = text;
    if (!bad && !is_new(x, t)) return;
    x->states++;
    if (!bad) {
        tree_write(t, place_path(x->p, "work"));
        x->fresh += x->c->run != NO_RUN && !tree_find(t, "run/last.safetensors");
        bad = finish_case(x->c, x->p, x->score);
    }
    if (bad && ++x->bad <= MOST_SHOWN) printf("  BAD mtan %s\n      power cut %s: %s\n", x->c->line, what, bad);
}

static void try_all(cuts *x, const disk *d, size_t entry, int end) {
    static const char *const kinds[DISK_KINDS] = {"lost", "whole", "half", "zeros"};
    for (size_t changes = 0; changes <= d->n_changes; changes++)
        for (int kind = 0; kind < DISK_KINDS; kind++) {
            tree t = disk_after(d, changes, kind);
            char what[120];
            snprintf(what, sizeof what, "after entry %zu, %zu of %zu names, bytes %s", entry, changes, d->n_changes,
                     kinds[kind]);
            try_state(x, d, &t, end, what);
            tree_free(&t);
        }
}

unsigned long check_power(const fault_case *c, const place *p, score *s) {
    cuts x = {c, p, s, NULL, 0, 0, 0, 0};
    size_t entries = 0;
    outcome o;
    disk d;
    case_record(c, p, &d, &o);
    if (d.bytes > 0) try_all(&x, &d, 0, 0);
    while (disk_step(&d)) try_all(&x, &d, ++entries, d.at == d.bytes);
    if (entries > 0) {
        if (x.bad) s->failed++;
        else s->passed++;
        printf("%-8s%-13s %-24s %5lu states, %lu of them without a run to resume, of %zu changes\n",
               x.bad ? "FAILED" : "ok", c->name, "power cuts", x.states, x.fresh, entries);
    }
    free(x.seen);
    outcome_free(&o), disk_free(&d);
    return x.states;
}
