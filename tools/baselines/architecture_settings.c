/* See architecture_settings.h. */
#include "architecture_settings.h"

#include <math.h>
#include <string.h>

double own_setting(const mtan_config *c, const char *name) {
    for (int32_t i = 0; c->architecture->settings[i]; i++)
        if (strcmp(c->architecture->settings[i], name) == 0) return c->own[i];
    return 0;
}

int32_t own_whole(const mtan_config *c, const char *name) {
    return (int32_t)own_setting(c, name);
}

int32_t is_whole(double setting, double least, double most) {
    return setting >= least && setting <= most && floor(setting) >= setting;
}
