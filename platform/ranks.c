/* The functions of ranks.h. Partial sums move point to point, because MPI_SUM has no fixed order: it may change with
 * the number of ranks, the message size or the release.
 *
 * A private communicator keeps these messages apart from others. It is a global, as MPI itself is. Only one thread at a
 * time may call. All ranks must run on the same kind of machine, because bits are sent as they are.
 */
#include "ranks.h"

#include <mpi.h>

#ifdef MTAN_DOUBLE
#define REAL MPI_DOUBLE
#else
#define REAL MPI_FLOAT
#endif

/* Reals per message: 64 KB of floats. That is large enough to be worth a message, and small enough that ranks further
 * up the tree add one piece while the ranks below send the next. */
enum { PIECE = 16384, TAG = 1 };

static MPI_Comm ranks_of_run = MPI_COMM_NULL;

mtan_status mtan_mpi_start(int *argc, char ***argv, int32_t *rank, int32_t *ranks) {
    int level, own, all;
    if (MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS) return MTAN_ERR_WRITE;
    if (level < MPI_THREAD_FUNNELED || MPI_Comm_dup(MPI_COMM_WORLD, &ranks_of_run) != MPI_SUCCESS) {
        MPI_Finalize();
        return MTAN_ERR_WRITE;
    }
    MPI_Comm_set_errhandler(ranks_of_run, MPI_ERRORS_RETURN);
    MPI_Comm_rank(ranks_of_run, &own);
    MPI_Comm_size(ranks_of_run, &all);
    *rank = own, *ranks = all;
    return all & (all - 1) ? MTAN_ERR_CONFIG : MTAN_OK;
}

/* Sums one piece up the tree. A rank adds the sums of the subtrees to its right, each twice as wide as the one before,
 * then sends its own sum to the left. Rank 0 ends with the total. */
static int sum_up(mtan_real *data, int n, int rank, int ranks) {
    mtan_real other[PIECE];
    for (int width = 1; width < ranks; width *= 2) {
        int error;
        if (rank & width) return MPI_Send(data, n, REAL, rank - width, TAG, ranks_of_run);
        if ((error = MPI_Recv(other, n, REAL, rank + width, TAG, ranks_of_run, MPI_STATUS_IGNORE)) != MPI_SUCCESS)
            return error;
        for (int i = 0; i < n; i++) data[i] += other[i];
    }
    return MPI_SUCCESS;
}

static int piece_size(size_t n, size_t at) {
    return n - at < PIECE ? (int)(n - at) : PIECE;
}

mtan_status mtan_mpi_sum(void *context, mtan_real *data, size_t n) {
    int rank, ranks;
    (void)context;
    if (MPI_Comm_rank(ranks_of_run, &rank) != MPI_SUCCESS || MPI_Comm_size(ranks_of_run, &ranks) != MPI_SUCCESS)
        return MTAN_ERR_WRITE;
    for (size_t at = 0; at < n; at += PIECE)
        if (sum_up(data + at, piece_size(n, at), rank, ranks) != MPI_SUCCESS) return MTAN_ERR_WRITE;
    for (size_t at = 0; at < n; at += PIECE)
        if (MPI_Bcast(data + at, piece_size(n, at), REAL, 0, ranks_of_run) != MPI_SUCCESS) return MTAN_ERR_WRITE;
    return MTAN_OK;
}

int mtan_mpi_any(int here) {
    int own = here != 0, all = 1;
    if (MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MAX, ranks_of_run) != MPI_SUCCESS) return 1;
    return all;
}

void mtan_mpi_stop(void) {
    if (ranks_of_run != MPI_COMM_NULL) MPI_Comm_free(&ranks_of_run);
    MPI_Finalize();
}

void mtan_mpi_abort(int exit_status) {
    MPI_Abort(MPI_COMM_WORLD, exit_status);
}
