/* See baselines.h. */
#include "baselines.h"

#include <string.h>

const mtan_architecture *const baselines[] = {NULL};

const mtan_architecture *baseline_named(const char *name) {
    for (int i = 0; baselines[i]; i++)
        if (strcmp(baselines[i]->name, name) == 0) return baselines[i];
    return NULL;
}
