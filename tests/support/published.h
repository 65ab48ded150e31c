/* The paper's models with the published code's configuration, from the files that it wrote (golden/). */
#ifndef MTAN_TESTS_PUBLISHED_H
#define MTAN_TESTS_PUBLISHED_H

#include "../../mtan.h"

extern const char *const published_names[]; /* ends with a null */
/* The configuration of one of these names, or of another golden model file; 0: there is no such file, or it is no
 * model. */
int published_config(mtan_config *config, const char *name);

#endif
