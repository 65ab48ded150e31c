/* What became of a run of `mtan train`, in a few lines at its end: the best model on the validation records beside what needs no
 * model, whether it is worth having, whether it looks at single observations; and the command to go on with. */
#ifndef MTAN_TOOLS_OUTCOME_H
#define MTAN_TOOLS_OUTCOME_H

#include "../fit/training.h"
#include "options.h"

/* best: the file of the best model. What cannot be measured is left out: the run has done its work. */
void outcome_say(const char *best, const training *t, const options *o);
void outcome_next(const char *best, const options *o); /* the command to go on with */

#endif
