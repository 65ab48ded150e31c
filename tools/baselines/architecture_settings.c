/* See architecture_settings.h. */
#include "architecture_settings.h"

#include <math.h>
#include <string.h>

double setting_of(const mtan_config *c, const char *name) {
    const char *const *names = c->architecture ? c->architecture->settings : NULL;
    for (int32_t i = 0; names && names[i]; i++)
        if (strcmp(names[i], name) == 0) return c->extra[i];
    return 0;
}

int32_t whole_setting(const mtan_config *c, const char *name) {
    return (int32_t)setting_of(c, name);
}

int32_t is_whole(double setting, double least, double most) {
    return setting >= least && setting <= most && floor(setting) >= setting;
}
