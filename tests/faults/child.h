/* The command as a process of its own, with a fault in it. */
#ifndef MTAN_TESTS_FAULTS_CHILD_H
#define MTAN_TESTS_FAULTS_CHILD_H

#include <sys/types.h>

#include "faults.h"
#include "tree.h"

/* The places: the command and the library as absolute paths; a folder with data/, which nobody changes, work/, in which the command
 * runs, and page, log, out and err beside them. */
typedef struct place {
    char command[TREE_PATH], preload[TREE_PATH], folder[TREE_PATH];
    fault_page *page; /* of the last run */
} place;

typedef struct outcome {
    int status; /* of exit; 1000 and the number of a signal. It gets SIGALRM after CHILD_SECONDS. */
    char *out, *err;
    size_t n_out;
    tree after; /* work/ */
} outcome;

enum { CHILD_SECONDS = 30 };

void place_open(place *p, const char *command, const char *preload);
void place_close(place *p);
const char *place_path(const place *p, const char *name); /* one of the last eight */

/* Words between blanks; fault: as MTAN_FAULT has it, or NULL; log: whether to keep one. */
pid_t child_start(const place *p, const char *line, const char *fault, int log);
int child_wait(pid_t child);
outcome child_run(const place *p, const char *line, const char *fault, int log);
void outcome_free(outcome *o);

#endif
