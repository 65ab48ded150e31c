/* Signals at random moments of a training, most of them SIGKILL, some SIGTERM, which saves and ends it. It is started again until it ends
 * by itself: then its files are those of a run that nobody disturbed, byte for byte. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "checks.h"

static uint64_t draw(uint64_t *state) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return *state;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The shortest of a few: others may be using the machine. */
static double duration(const fault_case *c, const place *p) {
    double least = 1e9;
    for (int i = 0; i < 5; i++) {
        const double start = now();
        case_reset(c, p);
        child_wait(child_start(p, c->line, NULL, 0));
        if (now() - start < least) least = now() - start;
    }
    return least;
}

/* Starts it or goes on with it, and disturbs it after a while. Its status. */
static int disturb(const fault_case *c, const place *p, double most, uint64_t *state, int *signal_number) {
    const double wait = most * (double)(draw(state) % 1000000) / 1e6;
    const struct timespec pause = {(time_t)wait, (long)((wait - (double)(time_t)wait) * 1e9)};
    tree t = tree_read(place_path(p, "work"));
    const pid_t child = child_start(p, case_again(c, &t), NULL, 0);
    *signal_number = draw(state) % 8 ? SIGKILL : SIGTERM;
    nanosleep(&pause, NULL);
    kill(child, *signal_number);
    tree_free(&t);
    return child_wait(child);
}

static int expected(int status, int signal_number) {
    return status == 0 || status == 1000 + signal_number || (status == 130 && signal_number == SIGTERM);
}

/* From the beginning to the end, however often it is disturbed. Its last status. */
static int train_disturbed(const fault_case *c, const place *p, double most, uint64_t *state, unsigned long counts[2],
                           score *s) {
    int status, signal_number;
    case_reset(c, p);
    do {
        status = disturb(c, p, most, state, &signal_number);
        s->runs++;
        counts[0] += status >= 1000, counts[1] += status == 130;
    } while (status != 0 && expected(status, signal_number));
    return status;
}

unsigned long check_kills(const fault_case *c, const place *p, unsigned long kills, uint64_t seed, score *s) {
    const double most = duration(c, p);
    unsigned long counts[2] = {0, 0}, runs = 0, bad = 0;
    uint64_t state = seed ? seed : 1;
    for (; counts[0] < kills && bad < 5; runs++) {
        const int status = train_disturbed(c, p, most, &state, counts, s);
        tree after = tree_read(place_path(p, "work"));
        const char *path = tree_difference(&after, &c->good.after);
        if (status != 0 || path) {
            bad++;
            printf("  BAD after signals: status %d, %s differs\n", status, path ? path : "nothing");
        }
        tree_free(&after);
    }
    if (bad) s->failed++;
    else s->passed++;
    printf("%-8s%-13s %-24s %5lu killed, %lu saved and ended, %lu trainings to the end (seed %llu)\n",
           bad ? "FAILED" : "ok", c->name, "signals", counts[0], counts[1], runs, (unsigned long long)seed);
    return counts[0] + counts[1];
}
