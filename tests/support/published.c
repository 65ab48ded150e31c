/* See published.h. */
#include "published.h"

#include <stdio.h>

#include "caller.h"
#include "check.h"

const char *const published_names[] = {"toy-interp",    "physionet-interp", "physionet-full",
                                       "physionet-enc", "mimic3-full",      "mimic3-enc",
                                       "activity-enc",  "activity-full",    NULL};

int published_config(mtan_config *config, const char *name) {
    char path[64];
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s.safetensors", name);
    void *blob = slurp_golden(path, &bytes);
    const int good = blob && blob_load_config(config, blob, bytes) == MTAN_OK;
    return guard_free(blob) && good;
}
