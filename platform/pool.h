/* A pool of threads behind the library's mtan_parallel_for.
 *
 *     mtan_pool pool;
 *     mtan_pool_start(&pool, mtan_pool_cpus());
 *     config.parallel_for = mtan_pool_run, config.parallel_context = &pool, config.threads = pool.threads;
 *     ... train ...
 *     mtan_pool_stop(&pool);
 *
 * POSIX threads, Windows threads, or none: then everything runs in the caller. No globals; pools are independent.
 */
#ifndef MTAN_PLATFORM_THREADS_H
#define MTAN_PLATFORM_THREADS_H

#include "../mtan.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MTAN_POOL_MOST 1024 /* the most workspaces a trainer lays out */

/* Provided by the caller, at one address from start to stop. `threads` may be read; the rest is private. All zero is a
 * pool of one thread. */
typedef struct mtan_pool {
    int32_t threads; /* threads that run bodies, with the caller of mtan_pool_run */
    struct mtan_pool_crew *crew;
} mtan_pool;

/* CPUs that this process may use; at least 1. */
int32_t mtan_pool_cpus(void);

/* A pool of 1 to MTAN_POOL_MOST threads, one of them the caller. The pool can be run and stopped whatever is returned:
 * MTAN_ERR_MEMORY means that the system gave fewer threads, MTAN_ERR_CONFIG that the number was out of range and the
 * pool has one thread. */
mtan_status mtan_pool_start(mtan_pool *pool, int32_t threads);

/* An mtan_parallel_for; `pool` is the mtan_pool. A thread takes the next index when it is free; the caller is number 0.
 * A call from inside a body, or while another thread's call is running, is allowed: one call uses the pool, and every
 * other call runs its indices in order in its caller, as number 0. */
void mtan_pool_run(void *pool, int32_t n, mtan_body body, void *argument);

/* Ends and joins all threads. Must not be called during a run. Leaves a pool of one thread; stopping that does
 * nothing. */
void mtan_pool_stop(mtan_pool *pool);

#ifdef __cplusplus
}
#endif

#endif
