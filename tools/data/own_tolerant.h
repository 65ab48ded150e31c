/* Reads people's own data (own.h) in spite of its faults: every bad row is listed, and the good rows still make a data
 * set. Only `mtan check` uses it: training and prediction use own_load, which refuses the file at its first fault. */
#ifndef MTAN_TOOLS_TOLERANT_H
#define MTAN_TOOLS_TOLERANT_H

#include "own.h"

typedef struct problems {
    char **text;  /* the first `most` messages, "file:line: what is wrong": an stb_ds array */
    size_t most;  /* how many to keep */
    size_t count; /* how many there were */
} problems;

void problems_add(problems *p, const char *text);
void problems_end(problems *p, const char *text); /* adds the last message, which is kept in any case */
void problems_free(problems *p);

/* Reads both files (labels may be NULL) and fills d with the good rows. Returns 0 if a file cannot be read at all (the
 * last problem says why) or holds no record; then there is nothing to free. Notes are left to own_load. */
int tolerant_load(dataset *d, problems *p, const char *events, const char *labels, own_origin origin);

#endif
