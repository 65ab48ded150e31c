/* Where a number comes from: the commit of this program and the machine that it runs on. */
#ifndef MTAN_TOOLS_ORIGIN_H
#define MTAN_TOOLS_ORIGIN_H

#include <stddef.h>

/* Ten digits, with a + behind them where files were changed since; "-": it was not built in a repository. */
const char *origin_commit(void);
/* The name that the CPU gives itself, that of its architecture where it gives none, or "unknown". */
void origin_cpu(char *out, size_t size);
/* That and how many there are: "AMD EPYC x 2". */
void origin_machine(char *out, size_t size);

#endif
