/* Results of runs in a plain text file: a line for each number of a run, columns separated by tabs, sorted. Branches of
 * a repository that both add lines are thus merged line by line. */
#ifndef MTAN_TOOLS_RESULTS_H
#define MTAN_TOOLS_RESULTS_H

#include <stddef.h>
#include <stdint.h>

typedef struct result {
    int table; /* of the paper; the run's own table */
    char row[32], data[16], preset[16];
    int64_t seed;
    char metric[24];
    double value;               /* NaN: the run diverged */
    int32_t epochs, best_epoch; /* 0: not known */
    double seconds;             /* of training per epoch; NaN: not known */
    int32_t threads;
    char backend[16]; /* "-": not known */
    char command[480];
    char date[24];                /* UTC: 2026-11-16T14:05:09Z, so that later dates sort after earlier ones */
    double low, high;             /* 95 % interval of the value over the test records; NaN: not known */
    char commit[16], machine[80]; /* origin.h; "-": not known */
} result;

/* Fills an stb_ds array, sorted; empty if there is no file. Returns 1, or 0 with error (512 bytes) set. Of two lines
 * for the same number of the same run, the later one counts. Git's conflict markers are skipped, so the lines of both
 * sides count. */
int results_read(result **list, const char *path, char *error);
/* Adds n results to a file, replacing older ones of the same runs. The file is replaced as a whole. */
int results_add(const char *path, const result *some, size_t n, char *error);

/* The result of a run, or NULL. */
const result *results_find(const result *list, int table, const char *row, const char *data, const char *preset,
                           int64_t seed, const char *metric);

#endif
