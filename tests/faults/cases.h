/* The commands that are run with faults, on data so small that a run takes milliseconds. */
#ifndef MTAN_TESTS_FAULTS_CASES_H
#define MTAN_TESTS_FAULTS_CASES_H

#include "disk.h"

typedef struct fault_case {
    const char *name, *line;                                /* the words of the command */
    int status;                                             /* of the command without a fault */
    const char *old;                                        /* a file that its output replaces, or NULL */
    enum { NO_RUN, FROM_START, FROM_MIDDLE, FROM_END } run; /* what there is of a run before it */
    /* made by case_open */
    tree before;  /* work/ */
    outcome good; /* without a fault */
    disk disk;    /* after it */
} fault_case;

extern fault_case fault_cases[]; /* up to a name that is NULL */

void cases_data(const place *p);                          /* fills data/ */
int case_needs_more(const fault_case *c, const place *p); /* than the command was built with: zlib */
/* Runs it without a fault: 1, or 0 with a message printed when that fails, or when a model that it wrote is not sound. */
int case_open(fault_case *c, const place *p);
void case_close(fault_case *c);

int case_is_large(
    const fault_case *c); /* its files are, and its runs take long: it is left to the long version, mostly */
/* Runs it without a fault and gives what was done to the disk, for disk_step. */
void case_record(const fault_case *c, const place *p, disk *d, outcome *o);
/* What goes on after the command was cut off: itself, or with --resume where there is a run to resume in work/ as it is now. */
const char *case_again(const fault_case *c, const tree *now);
/* work/ as before the command. */
void case_reset(const fault_case *c, const place *p);

#endif
