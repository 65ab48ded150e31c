/* A run of `mtan train` inside another command, or inside another program. */
#ifndef MTAN_TOOLS_TRAIN_H
#define MTAN_TOOLS_TRAIN_H

#include "../fit/training.h"
#include "../options/options.h"

typedef struct train_watch {
    double deadline; /* on the clock of seconds(): then the run is saved and ends as if interrupted */
    /* Called after each step and, with its result, after each epoch; returning 0 acts like a passed deadline. Called
     * with neither while trees are fitted or the model is compared, after the last epoch; returning 0 leaves that out.
     * The caller that sets it handles signals. NULL: none. */
    int (*go_on)(void *context, const training *t, const step_result *step, const epoch_result *epoch);
    void *context;
    int signals;       /* with go_on too, a signal saves the run and ends it */
    int aloud;         /* prints the summary at its end, as the command does */
    const char *again; /* what goes on with the run if it is stopped, for the message; NULL: "--resume" */
    /* results */
    int late, diverged; /* ended by the deadline or by go_on; its loss stopped being a number */
} train_watch;

/* Trains as the command does, with the options of `mtan train`; returns its exit status. w may be NULL. */
int train_run(const options *o, train_watch *w);
/* 1 if the folder holds no run yet, so a new one may start there; 0 with a message printed. */
int train_is_free(const char *path);

#endif
