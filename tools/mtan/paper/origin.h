/* The origin of a number: the commit of this program and the machine that it runs on. */
#ifndef MTAN_TOOLS_ORIGIN_H
#define MTAN_TOOLS_ORIGIN_H

#include <stddef.h>

/* Ten digits, followed by a + if files were changed since the commit; "-": not built in a repository. */
const char *origin_commit(void);
/* The name that the CPU reports, the name of its architecture if it reports none, or "unknown". */
void origin_cpu(char *out, size_t size);
/* The CPU's name and the number of CPUs: "AMD EPYC x 2". */
void origin_machine(char *out, size_t size);

#endif
