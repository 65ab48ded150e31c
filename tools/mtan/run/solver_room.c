/* See solver_room.h. */
#include "solver_room.h"

#include <stdio.h>

#include "../../baselines/architecture_settings.h"
#include "../base/messages.h"

enum { MOST_STEPS = 1 << 16 };

int grow_steps(mtan_config *c) {
    const int32_t now = whole_setting(c, STEPS_SETTING);
    char text[16];
    if (now < 1 || now > MOST_STEPS / 2) return 0;
    note("a record needs more than %d steps of the solver: making room for %d", (int)now, (int)now * 2);
    snprintf(text, sizeof text, "%d", (int)now * 2);
    return mtan_config_set(c, STEPS_SETTING, text) == MTAN_OK;
}
