/* See distributed.h. */
#include "distributed.h"

#include <string.h>

#include "../../../platform/ranks.h"

int distributed_start(rank_set *r) {
    mtan_status status;
    memset(r, 0, sizeof *r);
    status = mtan_mpi_start(NULL, NULL, &r->rank, &r->ranks);
    r->allreduce = mtan_mpi_sum;
    if (status == MTAN_OK) return 1;
    if (status == MTAN_ERR_MISSING)
        return complain("--distributed: this build has no MPI; `make mpi` makes one that has"), 0;
    if (status != MTAN_ERR_CONFIG) return complain("--distributed: MPI cannot be started"), 0;
    if (r->rank == 0) complain("--distributed: %d ranks; their number must be a power of two", (int)r->ranks);
    return mtan_mpi_stop(), 0;
}

int distributed_any(const rank_set *r, int here) {
    return r ? mtan_mpi_any(here) : here != 0;
}

void distributed_stop(int status) {
    if (status == BAD_USE)
        mtan_mpi_abort(status); /* this rank alone may have failed: the others must not wait for it */
    mtan_mpi_stop();
}
