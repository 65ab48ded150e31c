/* An architecture's own settings, in addition to those of every model, by name. */
#ifndef MTAN_TOOLS_BASELINES_ARCHITECTURE_SETTINGS_H
#define MTAN_TOOLS_BASELINES_ARCHITECTURE_SETTINGS_H

#define MTAN_INTERNALS
#include "../../mtan.h"

double setting_of(const mtan_config *c, const char *name); /* 0 if the model has no setting of that name */
int32_t whole_setting(const mtan_config *c, const char *name);
/* Is it an integer from `least` to `most`? */
int32_t is_whole(double setting, double least, double most);

#endif
