/* See shared_options.h. */
#include "shared_options.h"

#include <string.h>

#include "../../../platform/pool.h"
#include "../../../simd/mtan_simd.h"
#include "../run/device.h"

enum { MOST_THREADS = 8 };

source_input option_input(const options *o, const prep *model) {
    source_input in;
    memset(&in, 0, sizeof in);
    in.path = option_text(o, "data", NULL);
    in.labels = option_text(o, "labels", NULL);
    in.columns = o->columns;
    in.origin = option_text(o, "origin", NULL);
    in.statics = option_text(o, "static", NULL);
    in.by = option_text(o, "by", NULL);
    in.splits = option_text(o, "splits", NULL);
    in.task = option_text(o, "task", NULL);
    in.positive = option_text(o, "positive", NULL);
    in.skip_unknown = option_given(o, "skip-unknown");
    in.model = model;
    return in;
}

int32_t usual_threads(void) {
    const int32_t cpus = mtan_pool_cpus();
    return cpus < MOST_THREADS ? cpus : MOST_THREADS;
}

int32_t option_threads(const options *o) {
    return (int32_t)option_integer(o, "threads", usual_threads());
}

static int option_device(const options *o, const mtan_backend **b) {
    char text[DEVICE_TEXT];
    if (!(o->command->traits & COMMAND_ON_DEVICE))
        return complain("--backend cuda: `mtan %s` runs on the CPU alone", o->command->name), 0;
    *b = device_open(text);
    if (!*b) return complain("--backend cuda: %s", text), 0;
    note("cuda: %s", text);
    return 1;
}

int option_backend(const options *o, const mtan_backend **b) {
    const char *name = option_text(o, "backend", "best");
    const mtan_backend *found = mtan_backend_named(name);
    mtan_backend_choice choice;
    if (found) return *b = found, 1;
    if (strcmp(name, "cuda") == 0) return option_device(o, b);
    for (int i = 0; mtan_backend_list(i, &choice); i++)
        if (strcmp(choice.name, name) == 0 && choice.reason)
            return complain("--backend %s: %s", name, choice.reason), 0;
    return complain("--backend %s: there is none of this name; `mtan backends` lists them", name), 0;
}
