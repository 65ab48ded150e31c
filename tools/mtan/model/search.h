/* mtan train --budget: picks settings on the validation records. */
#ifndef MTAN_TOOLS_SEARCH_H
#define MTAN_TOOLS_SEARCH_H

#include "training.h"

/* Without --budget: changes nothing. With it: tries settings for most of the time given, says what it tried, puts the best into the plan
 * and bounds its epochs by the time that is left. 1, or 0 with a message printed. */
int search_settings(plan *p, const dataset *d, const split *s, const mtan_backend *backend, const options *o,
                    const rank_set *r);

#endif
