/* mtan train --budget: looks for settings. A trial is a run of `mtan train` with a few options more, in a folder of its own
 * (RUN/trials/0, ...), so that it can be stopped and gone on with; what the user gives is never changed. Successive halving: all trials get a few
 * epochs, the better third of them by validation gets three times as many, until one is left, which becomes the run and is trained to its
 * end. It is the run that the printed options give, to the bit. RUN/trials.csv keeps what was tried. */
#ifndef MTAN_TOOLS_SEARCH_H
#define MTAN_TOOLS_SEARCH_H

#include "train.h"

/* With the options of `mtan train`, --budget among them. w: who watches, or NULL. Returns an exit status. */
int search_run(const options *o, train_watch *w);

#endif
