/* Ranks of mpirun for `mtan train --distributed`: platform/ranks.c where the build has it (make mpi). */
#ifndef MTAN_TOOLS_DISTRIBUTED_H
#define MTAN_TOOLS_DISTRIBUTED_H

#include "training.h"

int distributed_start(rank_set *r); /* 1, or 0 with a message printed */
/* 1 on every rank when `here` is not 0 on any: what a signal or a disk decides, all ranks decide. r NULL: one process. */
int distributed_any(const rank_set *r, int here);
void distributed_stop(int status); /* the exit status of this rank's command */

#endif
