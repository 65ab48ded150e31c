/* Training on several processes: the library's mtan_allreduce over MPI.
 *
 *     int32_t rank, ranks;
 *     status = mtan_mpi_start(&argc, &argv, &rank, &ranks);
 *     config.rank = rank, config.ranks = ranks, config.allreduce = mtan_mpi_sum;
 *     ... every rank gives mtan_trainer_step the same batches; rank 0 alone writes files and prints ...
 *     mtan_mpi_stop();
 *
 * Every rank ends with the same weights, to the bit, as a single process, for any number of ranks (a power of two). If
 * a decision depends on anything but the reports (a signal, a clock, a full disk), the ranks must make it together,
 * with mtan_mpi_any.
 *
 * The functions exist when MTAN_MPI is defined and ranks.c is linked, both compiled by mpicc (`make mpi`). Otherwise
 * this header defines stubs: mtan_mpi_start returns MTAN_ERR_MISSING, the process is rank 0 of 1, and no MPI is needed.
 */
#ifndef MTAN_PLATFORM_MPI_H
#define MTAN_PLATFORM_MPI_H

#include "../mtan.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef MTAN_MPI

/* Starts MPI and removes MPI's own arguments from argv. Call it once per process, in the main thread, which must also
 * be the thread that trains. Without mpirun the process is rank 0 of 1. MTAN_ERR_WRITE: MPI did not start, nothing is
 * running. MTAN_ERR_CONFIG: MPI runs, but the number of ranks is not a power of two; rank and ranks are set, so that
 * one rank can report it before all ranks stop. */
mtan_status mtan_mpi_start(int *argc, char ***argv, int32_t *rank, int32_t *ranks);

/* An mtan_allreduce; the context is not used. It adds by a binary tree over the ranks in order, so that the bits do not
 * depend on how MPI was built. MTAN_ERR_WRITE when a message fails: the ranks have then diverged, and the run must end
 * with mtan_mpi_abort. */
mtan_status mtan_mpi_sum(void *context, mtan_real *data, size_t n);

/* 1 on every rank when `here` is not 0 on at least one. All ranks must call it at the same place. A rank that can no
 * longer reach the others gets 1. */
int mtan_mpi_any(int here);

/* Ends MPI once all ranks have called it. */
void mtan_mpi_stop(void);

/* Ends all ranks at once, without waiting for any; does not return. For a rank that failed while others go on. */
void mtan_mpi_abort(int exit_status);

#else

static inline mtan_status mtan_mpi_start(int *argc, char ***argv, int32_t *rank, int32_t *ranks) {
    (void)argc, (void)argv;
    *rank = 0, *ranks = 1;
    return MTAN_ERR_MISSING;
}

static inline mtan_status mtan_mpi_sum(void *context, mtan_real *data, size_t n) {
    (void)context, (void)data, (void)n;
    return MTAN_OK; /* the sum over one rank */
}

static inline int mtan_mpi_any(int here) {
    return here != 0;
}

static inline void mtan_mpi_stop(void) {}

/* There is nobody else to end: the caller goes on to its own exit. */
static inline void mtan_mpi_abort(int exit_status) {
    (void)exit_status;
}

#endif

#ifdef __cplusplus
}
#endif

#endif
