/* The paper's models as the published code configures them, from the files that it made (golden/). */
#ifndef MTAN_TESTS_PUBLISHED_H
#define MTAN_TESTS_PUBLISHED_H

#include "../../mtan.h"

extern const char *const published_names[]; /* up to a null */
/* Of one of these names, or of another golden file of a model; 0: there is none, or it is no model. */
int published_config(mtan_config *config, const char *name);

#endif
