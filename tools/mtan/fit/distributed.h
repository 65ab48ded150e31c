/* MPI ranks for `mtan train --distributed`; platform/ranks.c implements them where the build has MPI (make mpi). */
#ifndef MTAN_TOOLS_DISTRIBUTED_H
#define MTAN_TOOLS_DISTRIBUTED_H

#include "training.h"

int distributed_start(rank_set *r); /* 1, or 0 with a message printed */
/* 1 on every rank when `here` is not 0 on any rank, so that all ranks act alike when one gets a signal or its disk
 * fails. r NULL: one process. */
int distributed_any(const rank_set *r, int here);
void distributed_stop(int status); /* the exit status of this rank's command */

#endif
