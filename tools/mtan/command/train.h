/* A run of `mtan train` inside another command, or inside another program. */
#ifndef MTAN_TOOLS_TRAIN_H
#define MTAN_TOOLS_TRAIN_H

#include "../fit/training.h"
#include "options.h"

typedef struct train_watch {
    double deadline; /* by seconds(): the run is saved and ends as if interrupted */
    /* Asked after each step and, with its result, after each epoch; 0: as when the deadline has come. Whoever asks handles signals.
     * NULL: nobody does. */
    int (*go_on)(void *context, const training *t, const step_result *step, const epoch_result *epoch);
    void *context;
    int signals; /* all the same, a signal saves the run and ends it */
    int aloud;   /* at its end the run says what the model is worth, as the command does */
    /* what became of it */
    int late, diverged; /* the deadline, or who was asked, ended it; its loss is not a number any more */
} train_watch;

/* As the command does it, with the options of `mtan train`; returns its exit status. w may be NULL. */
int train_run(const options *o, train_watch *w);
/* Is there no run in a folder that a new one is to be made in? 0 with a message printed. */
int train_is_free(const char *path);

#endif
