/* A run of `mtan train` inside another command. */
#ifndef MTAN_TOOLS_TRAIN_H
#define MTAN_TOOLS_TRAIN_H

#include "options.h"

typedef struct train_watch {
    double deadline; /* by seconds(): the run is saved and ends as if interrupted */
    /* what became of it */
    int late, diverged; /* the deadline ended it; its loss is not a number any more */
} train_watch;

/* As the command does it, with the options of `mtan train`; returns its exit status. */
int train_run(const options *o, train_watch *w);

#endif
