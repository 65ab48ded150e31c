/* What is done to a case. Each returns how many faults there were, and adds one to `passed` or `failed` for each way to fail. */
#ifndef MTAN_TESTS_FAULTS_CHECKS_H
#define MTAN_TESTS_FAULTS_CHECKS_H

#include "cases.h"

typedef struct score {
    unsigned passed, failed, skipped; /* ways to fail */
    unsigned long runs;               /* of the command */
} score;

/* thorough: every call, not a sample of those that there are many of; and a second run behind every fault, not only where the first one
 * left something else than it found or should have made. */
unsigned long check_faults(const fault_case *c, const place *p, int thorough, score *s);
/* Power cuts after every change of the disk. */
unsigned long check_power(const fault_case *c, const place *p, score *s);
/* So many signals at random moments of a training, which is resumed until it ends. */
unsigned long check_kills(const fault_case *c, const place *p, unsigned long kills, uint64_t seed, score *s);

/* Runs what goes on from work/ as it is, and compares what comes of it with the good run. What is wrong, or NULL. */
const char *finish_case(const fault_case *c, const place *p, score *s);

#endif
