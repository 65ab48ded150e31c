/* Settings of an architecture by their names. */
#ifndef MTAN_TOOLS_BASELINES_OWN_SETTINGS_H
#define MTAN_TOOLS_BASELINES_OWN_SETTINGS_H

#include "../../mtan.h"

double own_setting(const mtan_config *c, const char *name); /* 0 where the model has none of that name */
int32_t own_whole(const mtan_config *c, const char *name);
/* Is it a whole number from `least` to `most`? */
int32_t is_whole(double setting, double least, double most);

#endif
