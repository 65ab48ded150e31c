/* The settings that an architecture has beside those of every model, by their names. */
#ifndef MTAN_TOOLS_BASELINES_ARCHITECTURE_SETTINGS_H
#define MTAN_TOOLS_BASELINES_ARCHITECTURE_SETTINGS_H

#define MTAN_INTERNALS
#include "../../mtan.h"

double setting_of(const mtan_config *c, const char *name); /* 0 where the model has none of that name */
int32_t whole_setting(const mtan_config *c, const char *name);
/* Is it a whole number from `least` to `most`? */
int32_t is_whole(double setting, double least, double most);

#endif
