/* The summary at the end of a run of `mtan train`: the best model on the validation records next to the baselines,
 * whether it beats them, whether it depends on single observations, and the next command to run. */
#ifndef MTAN_TOOLS_OUTCOME_H
#define MTAN_TOOLS_OUTCOME_H

#include "../fit/training.h"
#include "../options/options.h"

/* best: the file of the best model. What cannot be measured is left out without an error, since the training itself has
 * succeeded. */
void outcome_say(const char *best, const training *t, const options *o);
void outcome_next(const char *best, const options *o); /* prints the next command to run */

#endif
