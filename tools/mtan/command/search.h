/* mtan train --budget: searches for settings. A trial is a run of `mtan train` with a few extra options, in a folder of
 * its own (RUN/trials/0, ...), so it can be stopped and resumed. Options that the user gives are never changed. The
 * method is successive halving: all trials get a few epochs, then the best third by validation gets three times as
 * many, until one trial is left, which becomes the run and is trained to its end. The printed options give the same
 * run, bit for bit. RUN/trials.csv lists the trials. */
#ifndef MTAN_TOOLS_SEARCH_H
#define MTAN_TOOLS_SEARCH_H

#include "train.h"

/* o: the options of `mtan train` with --budget. w: the watcher, or NULL. Returns an exit status. */
int search_run(const options *o, train_watch *w);

#endif
