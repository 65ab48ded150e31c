/* Trains the tiny models over however many ranks it is started on, and writes what each rank ended with to a file of its
 * own: a hash of the weights and of the last report, for several sizes of batch, with and without dropout. tools/check/mpi.sh
 * compares the files of all ranks and runs with those of one process, built without MPI.
 *
 *     mpi_program PREFIX THREADS      writes PREFIX.0, PREFIX.1, ...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../platform/ranks.h"
#include "../../platform/pool.h"
#include "tiny_model.h"

enum { STEPS = 10, LARGE = 100003 };

typedef struct {
    FILE *out;
    int32_t rank, ranks;
    mtan_pool pool;
} runner;

static void open_model(const runner *run, tiny_model *s, tiny_kind kind, int32_t batch, double dropout) {
    mtan_train_config config;
    mtan_train_config_init(&config);
    config.rank = run->rank, config.ranks = run->ranks;
    config.allreduce = mtan_mpi_sum;
    config.threads = run->pool.threads, config.parallel_for = mtan_pool_run;
    config.parallel_context = (void *)(uintptr_t)&run->pool;
    config.dropout = dropout, config.clip = 1;
    tiny_open(s, kind, batch);
    tiny_train(s, &config);
}

static int train(const runner *run, tiny_kind kind, int32_t batch, double dropout) {
    tiny_model s;
    mtan_report report, loss;
    mtan_status status = MTAN_OK;
    memset(&report, 0, sizeof report), memset(&loss, 0, sizeof loss);
    open_model(run, &s, kind, batch, dropout);
    for (int step = 0; status == MTAN_OK && step < STEPS; step++)
        status = mtan_trainer_step(&s.trainer, s.records, batch, 1 + step, &report);
    if (status == MTAN_OK) status = mtan_trainer_loss(&s.trainer, s.records, batch, STEPS, &loss);
    fprintf(run->out, "%s, batch %d, dropout %g: status %d, weights %016llx, report %016llx, loss %.17g %016llx\n",
            tiny_names[kind], (int)batch, dropout, (int)status,
            (unsigned long long)mtan_bytes_hash(s.weights, s.count * sizeof *s.weights),
            (unsigned long long)mtan_bytes_hash(&report, sizeof report), loss.loss,
            (unsigned long long)mtan_bytes_hash(&loss, sizeof loss));
    return tiny_close(&s) && status == MTAN_OK;
}

/* A label that only the last shard's rank sees: all ranks refuse the batch, and none waits for another. */
static int refuse(const runner *run) {
    tiny_model s;
    mtan_report report;
    open_model(run, &s, TINY_ENC, 37, 0);
    s.labels[36 * TINY_EVENTS] = 2;
    const mtan_status status = mtan_trainer_step(&s.trainer, s.records, 37, 1, &report);
    fprintf(run->out, "a bad label: status %d, weights %016llx\n", (int)status,
            (unsigned long long)mtan_bytes_hash(s.weights, s.count * sizeof *s.weights));
    return tiny_close(&s) && status == MTAN_ERR_INPUT;
}

/* The addends of rank r: fractions of many exponents, so that another order of the sum has other bits. */
static mtan_real addend(int32_t rank, size_t i) {
    const uint64_t at[2] = {(uint64_t)rank, i}, h = mtan_bytes_hash(at, sizeof at);
    return (mtan_real)(h >> 40) / (mtan_real)(1 << h % 24);
}

static mtan_real tree_sum(int32_t first, int32_t count, size_t i) {
    if (count == 1) return addend(first, i);
    return tree_sum(first, count / 2, i) + tree_sum(first + count / 2, count / 2, i);
}

/* A sum of many pieces, the last not full, against the tree written down. */
static int sums_are_right(const runner *run) {
    mtan_real *x = malloc(LARGE * sizeof *x);
    int good = x != NULL;
    for (size_t i = 0; good && i < LARGE; i++) x[i] = addend(run->rank, i);
    good = good && mtan_mpi_sum(NULL, x, LARGE) == MTAN_OK;
    for (size_t i = 0; good && i < LARGE; i++) good = x[i] == tree_sum(0, run->ranks, i);
    free(x);
    return good && mtan_mpi_any(run->rank == run->ranks - 1) == 1 && mtan_mpi_any(0) == 0;
}

static int run_all(const runner *run) {
    static const int32_t batches[] = {1, 9, 37}; /* 1, 2 and 8 shards */
    int good = sums_are_right(run);
    if (!good) fprintf(stderr, "mtan: rank %d: a sum over the ranks is wrong\n", (int)run->rank);
    for (int kind = 0; kind < TINY_KINDS; kind++)
        for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++)
            good &= train(run, (tiny_kind)kind, batches[i], 0);
    good &= train(run, TINY_ENC, 37, 0.3) & train(run, TINY_FULL_TIME, 9, 0.3);
    return good & refuse(run);
}

int main(int argc, char **argv) {
    char path[1024];
    runner run = {NULL, 0, 1, {1, NULL}};
    const mtan_status started = mtan_mpi_start(&argc, &argv, &run.rank, &run.ranks);
    if (started != MTAN_OK && started != MTAN_ERR_MISSING) {
        if (run.rank == 0) fprintf(stderr, "mtan: %d ranks: %s\n", (int)run.ranks, mtan_status_message(started));
        if (started == MTAN_ERR_CONFIG) mtan_mpi_stop();
        return 2;
    }
    if (argc != 3 || mtan_pool_start(&run.pool, (int32_t)strtol(argv[2], NULL, 10)) != MTAN_OK) {
        fprintf(stderr, "usage: mpi_program PREFIX THREADS\n");
        mtan_mpi_abort(2);
        return 2;
    }
    snprintf(path, sizeof path, "%s.%d", argv[1], (int)run.rank);
    if (!(run.out = fopen(path, "w"))) {
        perror(path);
        mtan_mpi_abort(2);
        return 2;
    }
    const int good = run_all(&run) & (fclose(run.out) == 0);
    mtan_pool_stop(&run.pool);
    mtan_mpi_stop();
    return !good;
}
