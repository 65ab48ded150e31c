/* See origin.h. */
#include "origin.h"

#include <stdio.h>
#include <string.h>

#include "../../../platform/pool.h"

#if (defined __x86_64__ || defined __i386__) && defined __GNUC__
#include <cpuid.h>
#define ORIGIN_CPUID 1
#elif defined __unix__ || defined __APPLE__
#include <sys/utsname.h>
#define ORIGIN_UNAME 1
#endif

#ifndef MTAN_COMMIT
#define MTAN_COMMIT ""
#endif

const char *origin_commit(void) {
    return MTAN_COMMIT[0] ? MTAN_COMMIT : "-";
}

/* The CPU itself is asked where possible, because a file with its name may not be readable. */
void origin_cpu(char *out, size_t size) {
    snprintf(out, size, "unknown");
#if defined ORIGIN_CPUID
    unsigned name[12] = {0};
    int known = 1;
    for (unsigned i = 0; i < 3; i++)
        known &= __get_cpuid(0x80000002u + i, &name[4 * i], &name[4 * i + 1], &name[4 * i + 2], &name[4 * i + 3]);
    if (known) snprintf(out, size, "%.*s", (int)sizeof name, (const char *)name);
#elif defined ORIGIN_UNAME
    struct utsname system;
    if (uname(&system) >= 0) snprintf(out, size, "%s", system.machine);
#endif
    for (size_t n = strlen(out); n > 0 && out[n - 1] == ' '; n--) out[n - 1] = 0;
}

void origin_machine(char *out, size_t size) {
    char cpu[256];
    origin_cpu(cpu, sizeof cpu);
    snprintf(out, size, "%.60s x %d", cpu, (int)mtan_pool_cpus());
}
