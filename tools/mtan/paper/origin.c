/* See origin.h. */
#include "origin.h"

#include <stdio.h>
#include <string.h>

#include "../../../platform/pool.h"

#ifndef MTAN_COMMIT
#define MTAN_COMMIT ""
#endif

const char *origin_commit(void) {
    return MTAN_COMMIT[0] ? MTAN_COMMIT : "-";
}

void origin_cpu(char *out, size_t size) {
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256];
    snprintf(out, size, "unknown");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
            snprintf(out, size, "%s", strchr(line, ':') + 2);
            out[strcspn(out, "\n")] = 0;
            break;
        }
    if (f) fclose(f);
}

void origin_machine(char *out, size_t size) {
    char cpu[256];
    origin_cpu(cpu, sizeof cpu);
    snprintf(out, size, "%.60s x %d", cpu, (int)mtan_pool_cpus());
}
