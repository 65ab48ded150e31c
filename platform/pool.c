/* The pool of pool.h: a thin wrapper around the system's threads, then the pool on top of it.
 *
 * Made for runs of 0.1 to 100 ms, several in a row: an idle worker watches the run counter for a moment and then
 * sleeps. A run never waits for a worker that has not joined it, so a worker that the system does not schedule costs
 * only its share of the speed.
 *
 * MTAN_NO_THREADS leaves the threads out; so does a system that is neither Windows nor Unix with gcc's atomics.
 */
#if defined __linux__ && !defined _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include <stdlib.h>

#include "pool.h"

/* ---- The system ------------------------------------------------------------------------------------------------
 *
 * Threads may read a counter while another thread writes it. Only the counter's value passes between threads this way.
 * Everything else is handed over under the lock, so a counter orders no other memory.
 */
#if defined MTAN_NO_THREADS
#define POOL_NONE
#elif defined _WIN32
#define POOL_WINDOWS
#elif (defined __unix__ || defined __APPLE__) && defined __GNUC__
#define POOL_POSIX
#else
#define POOL_NONE
#endif

#if defined POOL_POSIX

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

typedef pthread_t thread_id;
typedef pthread_mutex_t lock_type;
typedef pthread_cond_t condition;
typedef uint32_t counter;
#define THREAD_MAIN(name) static void *name(void *context)

static int thread_start(thread_id *id, void *(*entry)(void *), void *context) {
    return pthread_create(id, NULL, entry, context) == 0;
}
static void thread_join(thread_id id) {
    pthread_join(id, NULL);
}

static int lock_open(lock_type *lock) {
    return pthread_mutex_init(lock, NULL) == 0;
}
static void lock_close(lock_type *lock) {
    pthread_mutex_destroy(lock);
}
static void lock_take(lock_type *lock) {
    pthread_mutex_lock(lock);
}
static void lock_give(lock_type *lock) {
    pthread_mutex_unlock(lock);
}

static int condition_open(condition *c) {
    return pthread_cond_init(c, NULL) == 0;
}
static void condition_close(condition *c) {
    pthread_cond_destroy(c);
}
static void condition_wait(condition *c, lock_type *lock) {
    pthread_cond_wait(c, lock);
}
static void condition_wake(condition *c) {
    pthread_cond_broadcast(c);
}

static uint32_t counter_get(counter *c) {
    return __atomic_load_n(c, __ATOMIC_RELAXED);
}
static void counter_set(counter *c, uint32_t value) {
    __atomic_store_n(c, value, __ATOMIC_RELAXED);
}
static uint32_t counter_take(counter *c) {
    return __atomic_fetch_add(c, 1, __ATOMIC_RELAXED);
}

static void relax(void) { /* tells the CPU that this is a waiting loop */
#if defined __i386__ || defined __x86_64__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#else
    sched_yield();
#endif
}

int32_t mtan_pool_cpus(void) {
    long n;
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return (int32_t)CPU_COUNT(&set);
#endif
    n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : (int32_t)n;
}

#elif defined POOL_WINDOWS

#if !defined _WIN32_WINNT || _WIN32_WINNT < 0x0600
#undef _WIN32_WINNT
#define _WIN32_WINNT 0x0600 /* Vista: slim locks and condition variables, neither of which can fail to open */
#endif
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#include <process.h>

typedef HANDLE thread_id;
typedef SRWLOCK lock_type;
typedef CONDITION_VARIABLE condition;
typedef volatile LONG counter;
#define THREAD_MAIN(name) static unsigned __stdcall name(void *context)

static int thread_start(thread_id *id, unsigned(__stdcall *entry)(void *), void *context) {
    *id = (HANDLE)_beginthreadex(NULL, 0, entry, context, 0, NULL);
    return *id != 0;
}
static void thread_join(thread_id id) {
    WaitForSingleObject(id, INFINITE);
    CloseHandle(id);
}

static int lock_open(lock_type *lock) {
    return InitializeSRWLock(lock), 1;
}
static void lock_close(lock_type *lock) {
    (void)lock;
}
static void lock_take(lock_type *lock) {
    AcquireSRWLockExclusive(lock);
}
static void lock_give(lock_type *lock) {
    ReleaseSRWLockExclusive(lock);
}

static int condition_open(condition *c) {
    return InitializeConditionVariable(c), 1;
}
static void condition_close(condition *c) {
    (void)c;
}
static void condition_wait(condition *c, lock_type *lock) {
    SleepConditionVariableSRW(c, lock, INFINITE, 0);
}
static void condition_wake(condition *c) {
    WakeAllConditionVariable(c);
}

static uint32_t counter_get(counter *c) {
    return (uint32_t)*c;
} /* an aligned volatile load is one load */
static void counter_set(counter *c, uint32_t value) {
    InterlockedExchange(c, (LONG)value);
}
static uint32_t counter_take(counter *c) {
    return (uint32_t)InterlockedIncrement(c) - 1;
}

static void relax(void) {
    YieldProcessor();
}

int32_t mtan_pool_cpus(void) {
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return info.dwNumberOfProcessors < 1 ? 1 : (int32_t)info.dwNumberOfProcessors;
}

#else /* No thread can be made: the pool below consists of the caller alone, and nothing has to be locked. */

typedef char thread_id, lock_type, condition;
typedef uint32_t counter;
#define THREAD_MAIN(name) static void *name(void *context)

static int thread_start(thread_id *id, void *(*entry)(void *), void *context) {
    (void)id, (void)entry, (void)context;
    return 0;
}
static void thread_join(thread_id id) {
    (void)id;
}
static int lock_open(lock_type *lock) {
    return *lock = 1;
}
static void lock_close(lock_type *lock) {
    *lock = 0;
}
static void lock_take(lock_type *lock) {
    (void)lock;
}
static void lock_give(lock_type *lock) {
    (void)lock;
}
static int condition_open(condition *c) {
    return *c = 1;
}
static void condition_close(condition *c) {
    *c = 0;
}
static void condition_wait(condition *c, lock_type *lock) {
    (void)c, (void)lock;
}
static void condition_wake(condition *c) {
    (void)c;
}
static uint32_t counter_get(counter *c) {
    return *c;
}
static void counter_set(counter *c, uint32_t value) {
    *c = value;
}
static uint32_t counter_take(counter *c) {
    return (*c)++;
}
static void relax(void) {}
int32_t mtan_pool_cpus(void) {
    return 1;
}

#endif

/* ---- The pool -------------------------------------------------------------------------------------------------- */

/* A pause takes 10 to 150 cycles, so this is 10 to 200 us: longer than the gap between the runs of a training step, and
 * about what sleeping and waking would cost. */
enum { SPINS = 4000 };

typedef struct {
    struct mtan_pool_crew *crew;
    int32_t number; /* 1 .. threads - 1 */
    thread_id id;
} worker;

/* All fields are written under the lock, except `next`. The four fields of a run (n, body, argument, next) are set
 * while no worker is active, and a worker becomes active under the lock. So active workers may read them without it. */
typedef struct mtan_pool_crew {
    lock_type lock;
    condition wake;    /* a run has begun, or the end has come */
    condition idle;    /* nobody is active */
    counter run;       /* how many runs have begun */
    counter next;      /* first index not handed out; n or more: all are */
    counter active;    /* workers in the run */
    uint32_t n;        /* unsigned: every thread takes one index too many, which must not overflow */
    int busy, stop;    /* somebody's run is going on; workers must end */
    int spins;         /* 0 when there are more threads than CPUs: the watched thread may need this CPU */
    int32_t sleeping;  /* workers waiting for `wake` */
    int32_t n_workers; /* that were started */
    mtan_body body;
    void *argument;
    worker workers[];
} crew;

static void take_indices(crew *c, int32_t thread) {
    for (uint32_t i; (i = counter_take(&c->next)) < c->n;) c->body(c->argument, (int32_t)i, thread);
}

THREAD_MAIN(worker_main) {
    const worker *self = context;
    crew *c = self->crew;
    uint32_t seen = 0;
    for (;;) {
        for (int i = 0; i < c->spins && counter_get(&c->run) == seen; i++) relax();
        lock_take(&c->lock);
        c->sleeping++;
        while (counter_get(&c->run) == seen && !c->stop) condition_wait(&c->wake, &c->lock);
        c->sleeping--;
        if (c->stop) break;
        seen = counter_get(&c->run);
        if (counter_get(&c->next) < c->n) { /* else it is over already */
            counter_set(&c->active, counter_get(&c->active) + 1);
            lock_give(&c->lock);
            take_indices(c, self->number);
            lock_take(&c->lock);
            counter_set(&c->active, counter_get(&c->active) - 1);
            if (counter_get(&c->active) == 0) condition_wake(&c->idle);
        }
        lock_give(&c->lock);
    }
    lock_give(&c->lock);
    return 0;
}

/* 0 when another run is going on. */
static int run_begin(crew *c, int32_t n, mtan_body body, void *argument) {
    lock_take(&c->lock);
    const int free_now = !c->busy;
    if (free_now) {
        c->busy = 1;
        c->n = (uint32_t)n, c->body = body, c->argument = argument;
        counter_set(&c->next, 0);
        counter_set(&c->run, counter_get(&c->run) + 1);
        if (c->sleeping) condition_wake(&c->wake);
    }
    lock_give(&c->lock);
    return free_now;
}

/* All indices are handed out, so no worker joins any more. Waits for the workers that are still running theirs. */
static void run_end(crew *c) {
    for (int i = 0; i < c->spins && counter_get(&c->active); i++) relax();
    lock_take(&c->lock);
    while (counter_get(&c->active)) condition_wait(&c->idle, &c->lock);
    c->busy = 0;
    lock_give(&c->lock);
}

void mtan_pool_run(void *pool, int32_t n, mtan_body body, void *argument) {
    crew *c = ((mtan_pool *)pool)->crew;
    if (n > 1 && c && run_begin(c, n, body, argument)) {
        take_indices(c, 0);
        run_end(c);
    } else {
        for (int32_t i = 0; i < n; i++) body(argument, i, 0);
    }
}

/* A crew without workers, or null. */
static crew *crew_open(int32_t threads) {
    crew *c = calloc(1, sizeof *c + (size_t)(threads - 1) * sizeof c->workers[0]);
    if (!c) return NULL;
    c->spins = threads <= mtan_pool_cpus() ? SPINS : 0;
    if (lock_open(&c->lock)) {
        if (condition_open(&c->wake)) {
            if (condition_open(&c->idle)) return c;
            condition_close(&c->wake);
        }
        lock_close(&c->lock);
    }
    free(c);
    return NULL;
}

static void crew_close(crew *c) {
    lock_take(&c->lock);
    c->stop = 1;
    counter_set(&c->run, counter_get(&c->run) + 1); /* for workers that spin */
    condition_wake(&c->wake);
    lock_give(&c->lock);
    for (int32_t i = 0; i < c->n_workers; i++) thread_join(c->workers[i].id);
    condition_close(&c->idle);
    condition_close(&c->wake);
    lock_close(&c->lock);
    free(c);
}

mtan_status mtan_pool_start(mtan_pool *pool, int32_t threads) {
    crew *c;
    if (!pool) return MTAN_ERR_NULL;
    pool->threads = 1, pool->crew = NULL;
    if (threads < 1 || threads > MTAN_POOL_MOST) return MTAN_ERR_CONFIG;
    if (threads == 1) return MTAN_OK;
    if (!(c = crew_open(threads))) return MTAN_ERR_MEMORY;
    for (; c->n_workers < threads - 1; c->n_workers++) {
        worker *w = &c->workers[c->n_workers];
        w->crew = c, w->number = c->n_workers + 1;
        if (!thread_start(&w->id, worker_main, w)) break;
    }
    if (c->n_workers == 0) crew_close(c);
    else pool->threads = c->n_workers + 1, pool->crew = c;
    return pool->threads == threads ? MTAN_OK : MTAN_ERR_MEMORY;
}

void mtan_pool_stop(mtan_pool *pool) {
    if (pool->crew) crew_close(pool->crew);
    pool->threads = 1, pool->crew = NULL;
}
