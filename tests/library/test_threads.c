/* The thread pool: every index once, thread numbers that can stand for workspaces, and training that it does not change.
 * Bodies cannot assert, as they run in other threads: they leave marks, and the test looks at them afterwards. */
#define _POSIX_C_SOURCE 200112L /* clock_gettime */
#include <greatest.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../platform/pool.h"
#include "check.h"
#include "tiny_model.h"

enum { MOST_INDICES = 1000, MOST_THREADS = 8 };
static const int32_t thread_counts[] = {1, 2, 3, 8}; /* on most machines the last is more than the CPUs */
enum { THREAD_COUNTS = sizeof thread_counts / sizeof thread_counts[0] };

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void pause_for(long microseconds) {
    const struct timespec t = {microseconds / 1000000, microseconds % 1000000 * 1000};
    nanosleep(&t, NULL);
}

/* ---- every index once ---- */

typedef struct {
    int times[MOST_INDICES + 1], thread[MOST_INDICES]; /* no lock: a wrong pool is a race that ThreadSanitizer sees */
    int inside[MOST_THREADS];                          /* per thread: as a workspace would be */
    int overlaps[MOST_THREADS];
} marks;

static void mark(void *argument, int32_t index, int32_t thread) {
    marks *m = argument;
    m->times[index]++;
    m->thread[index] = thread;
    if (thread < 0 || thread >= MOST_THREADS) return;
    if (m->inside[thread]++) m->overlaps[thread]++;
    if (index % 64 == 0) pause_for(50); /* lets the others in, also where there is one CPU */
    m->inside[thread]--;
}

/* Did a run of n on these many threads do what it promises? */
static int marks_are_right(const marks *m, int32_t n, int32_t threads) {
    for (int32_t i = 0; i <= MOST_INDICES; i++)
        if (m->times[i] != (i < n)) return 0;
    for (int32_t i = 0; i < n; i++)
        if (m->thread[i] < 0 || m->thread[i] >= threads) return 0;
    for (int32_t t = 0; t < MOST_THREADS; t++)
        if (m->overlaps[t] || m->inside[t]) return 0;
    return 1;
}

TEST every_index_once(int32_t threads) {
    static const int32_t counts[] = {0, 1, 2, 7, 8, 1000, -1};
    mtan_pool pool;
    ASSERT_EQ(MTAN_OK, mtan_pool_start(&pool, threads));
    ASSERT_EQ(threads, pool.threads);
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            static marks m;
            memset(&m, 0, sizeof m);
            mtan_pool_run(&pool, counts[i], mark, &m);
            ASSERT(marks_are_right(&m, counts[i], threads));
        }
        if (round % 5 == 4) pause_for(20000); /* longer than any spinning: the next run has to wake them */
    }
    mtan_pool_stop(&pool);
    PASS();
}

/* ---- the threads are real: every body waits until all are inside ---- */

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t all_here;
    int32_t here, wanted, together;
    int thread_seen[MOST_THREADS];
} gathering;

static void gather(void *argument, int32_t index, int32_t thread) {
    gathering *g = argument;
    struct timespec limit;
    (void)index;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 20;
    pthread_mutex_lock(&g->lock);
    g->thread_seen[thread]++;
    if (++g->here == g->wanted) pthread_cond_broadcast(&g->all_here);
    while (g->here < g->wanted)
        if (pthread_cond_timedwait(&g->all_here, &g->lock, &limit)) break;
    g->together += g->here == g->wanted;
    pthread_mutex_unlock(&g->lock);
}

TEST all_threads_work_at_once(int32_t threads) {
    mtan_pool pool;
    ASSERT_EQ(MTAN_OK, mtan_pool_start(&pool, threads));
    for (int round = 0; round < 20; round++) {
        gathering g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, threads, 0, {0}};
        mtan_pool_run(&pool, threads, gather, &g);
        ASSERT_EQ(threads, g.together);
        for (int32_t t = 0; t < threads; t++) ASSERT_EQ(1, g.thread_seen[t]);
        pthread_cond_destroy(&g.all_here);
        pthread_mutex_destroy(&g.lock);
        if (round % 5 == 4) pause_for(20000);
    }
    mtan_pool_stop(&pool);
    PASS();
}

/* ---- many short runs, many pools ---- */

typedef struct {
    int64_t sum[MOST_THREADS];
} sums;

static void add_index(void *argument, int32_t index, int32_t thread) {
    ((sums *)argument)->sum[thread] += index + 1;
}

/* The bound is there for runs that sleep or hang: sound ones take some ten milliseconds altogether. */
TEST short_runs_are_quick(int32_t threads) {
    enum { RUNS = 10000, N = 8 };
    sums s = {{0}};
    int64_t sum = 0;
    mtan_pool pool;
    ASSERT_EQ(MTAN_OK, mtan_pool_start(&pool, threads));
    const double start = seconds();
    for (int i = 0; i < RUNS; i++) mtan_pool_run(&pool, N, add_index, &s);
    const double took = seconds() - start;
    mtan_pool_stop(&pool);
    for (int t = 0; t < MOST_THREADS; t++) sum += s.sum[t];
    ASSERT_EQ((int64_t)RUNS * N * (N + 1) / 2, sum);
    ASSERT(took <= 15);
    PASS();
}

TEST pools_start_and_stop(void) {
    for (int round = 0; round < 200; round++) {
        sums s = {{0}};
        mtan_pool pool, other;
        int64_t sum = 0;
        ASSERT_EQ(MTAN_OK, mtan_pool_start(&pool, thread_counts[round % THREAD_COUNTS]));
        ASSERT_EQ(MTAN_OK, mtan_pool_start(&other, 2));
        if (round % 3) mtan_pool_run(&pool, 4, add_index, &s); /* a pool may also end without a run */
        mtan_pool_stop(&other);
        mtan_pool_stop(&pool);
        ASSERT_EQ(1, pool.threads);
        mtan_pool_run(&pool, 4, add_index, &s); /* by the caller alone */
        ASSERT(s.sum[0] >= 10);
        for (int t = 0; t < MOST_THREADS; t++) sum += s.sum[t];
        ASSERT_EQ(round % 3 ? 20 : 10, sum);
        mtan_pool_stop(&pool);
    }
    PASS();
}

/* ---- calls inside and beside each other ---- */

typedef struct {
    mtan_pool *pool;
    marks inner[8];
} nest;

static void run_inside(void *argument, int32_t index, int32_t thread) {
    nest *n = argument;
    (void)thread;
    mtan_pool_run(n->pool, 5, mark, &n->inner[index]);
}

TEST run_inside_a_body_is_serial(void) {
    static nest n;
    mtan_pool pool;
    ASSERT_EQ(MTAN_OK, mtan_pool_start(&pool, 3));
    memset(&n, 0, sizeof n);
    n.pool = &pool;
    mtan_pool_run(&pool, 8, run_inside, &n);
    for (int i = 0; i < 8; i++) ASSERT(marks_are_right(&n.inner[i], 5, 1));
    mtan_pool_stop(&pool);
    PASS();
}

typedef struct {
    mtan_pool *pool;
    int bad;
    marks m;
} rival;

static void *run_often(void *context) {
    rival *r = context;
    for (int i = 0; i < 300; i++) {
        memset(&r->m, 0, sizeof r->m);
        mtan_pool_run(r->pool, 40, mark, &r->m);
        r->bad += !marks_are_right(&r->m, 40, 3);
    }
    return NULL;
}

TEST callers_share_a_pool(void) {
    static rival rivals[3];
    pthread_t id[3];
    mtan_pool pool;
    ASSERT_EQ(MTAN_OK, mtan_pool_start(&pool, 3));
    for (int i = 0; i < 3; i++) {
        rivals[i].pool = &pool, rivals[i].bad = 0;
        if (pthread_create(&id[i], NULL, run_often, &rivals[i])) exit(2);
    }
    for (int i = 0; i < 3; i++) pthread_join(id[i], NULL);
    for (int i = 0; i < 3; i++) ASSERT_EQ(0, rivals[i].bad);
    mtan_pool_stop(&pool);
    PASS();
}

/* ---- when threads cannot be had ---- */

TEST wrong_numbers_give_a_pool_of_one(void) {
    static const int32_t wrong[] = {0, -1, MTAN_POOL_MOST + 1, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        sums s = {{0}};
        mtan_pool pool;
        ASSERT_EQ(MTAN_ERR_CONFIG, mtan_pool_start(&pool, wrong[i]));
        ASSERT_EQ(1, pool.threads);
        mtan_pool_run(&pool, 4, add_index, &s);
        ASSERT_EQ(10, s.sum[0]);
        mtan_pool_stop(&pool);
    }
    ASSERT_EQ(MTAN_ERR_NULL, mtan_pool_start(NULL, 2));
    ASSERT(mtan_pool_cpus() >= 1);
    PASS();
}

/* threads_starved.c */
extern int starved_allowed; /* how many threads the system will still give */
mtan_status starved_pool_start(mtan_pool *pool, int32_t threads);
void starved_pool_run(void *pool, int32_t n, mtan_body body, void *argument);
void starved_pool_stop(mtan_pool *pool);

TEST pool_runs_with_the_threads_it_got(int allowed) {
    static marks m;
    mtan_pool pool;
    starved_allowed = allowed;
    ASSERT_EQ(allowed >= 4 ? MTAN_OK : MTAN_ERR_MEMORY, starved_pool_start(&pool, 5));
    ASSERT_EQ(allowed + 1, pool.threads);
    memset(&m, 0, sizeof m);
    starved_pool_run(&pool, 1000, mark, &m);
    ASSERT(marks_are_right(&m, 1000, pool.threads));
    starved_pool_stop(&pool);
    PASS();
}

/* threads_none.c */
int32_t none_pool_cpus(void);
mtan_status none_pool_start(mtan_pool *pool, int32_t threads);
void none_pool_run(void *pool, int32_t n, mtan_body body, void *argument);
void none_pool_stop(mtan_pool *pool);

TEST pool_without_threads_is_serial(void) {
    static marks m;
    mtan_pool pool;
    ASSERT_EQ(1, none_pool_cpus());
    ASSERT_EQ(MTAN_OK, none_pool_start(&pool, 1));
    none_pool_stop(&pool);
    ASSERT_EQ(MTAN_ERR_MEMORY, none_pool_start(&pool, 3));
    ASSERT_EQ(1, pool.threads);
    memset(&m, 0, sizeof m);
    none_pool_run(&pool, 1000, mark, &m);
    ASSERT(marks_are_right(&m, 1000, 1));
    none_pool_stop(&pool);
    PASS();
}

/* ---- training ---- */

enum { BATCH = 37 }; /* 37 records: 8 shards of two sizes */

/* Weights after TINY_STEPS steps, the caller's to free; without a pool the library runs its shards by itself. */
static mtan_real *train_on(tiny_kind kind, mtan_pool *pool, size_t *count) {
    tiny_model s;
    mtan_train_config config;
    mtan_report report;
    int good = 1;
    tiny_open(&s, kind, BATCH);
    mtan_train_config_init(&config);
    config.clip = 1;
    if (pool) config.parallel_for = mtan_pool_run, config.parallel_context = pool, config.threads = pool->threads;
    tiny_train(&s, &config);
    for (int step = 0; step < TINY_STEPS; step++)
        good &= mtan_trainer_step(&s.trainer, s.records, BATCH, 1 + step, &report) == MTAN_OK;
    mtan_real *weights = tiny_copy(s.weights, s.count);
    *count = s.count;
    good &= tiny_close(&s);
    if (!good) free(weights), weights = NULL;
    return weights;
}

TEST training_has_the_same_bits(tiny_kind kind) {
    size_t count, n;
    if (tiny_left_out(kind)) SKIPm(LEFT_OUT);
    mtan_real *serial = train_on(kind, NULL, &count);
    ASSERT(serial);
    for (int i = 0; i < THREAD_COUNTS; i++) {
        mtan_pool pool;
        ASSERT_EQ(MTAN_OK, mtan_pool_start(&pool, thread_counts[i]));
        mtan_real *weights = train_on(kind, &pool, &n);
        mtan_pool_stop(&pool);
        ASSERT(weights && n == count);
        ASSERT(check_same("weights", weights, serial, count * sizeof *weights));
        free(weights);
    }
    free(serial);
    PASS();
}

/* ---- predictors ---- */

enum { RECORDS = 37, AT_ONCE = 4, ROWS_MOST = RECORDS * TINY_TIMES };

/* First rows of the records; returns how many there are. */
static int32_t find_rows(const tiny_model *s, int32_t *rows) {
    int32_t scratch[2 * TINY_EVENTS], total = 0;
    for (int32_t i = 0; i < s->n; i++) {
        int32_t times = 1;
        rows[i] = total;
        if (s->config.classify == MTAN_CLASSIFY_TIME) mtan_record_times(&s->records[i], scratch, &times);
        total += times;
    }
    return total;
}

/* A parallel_for that leaves nothing to chance: index i is that of thread i % threads, and the last comes first if `backwards`. */
typedef struct dealer {
    int32_t threads, backwards;
} dealer;

static void deal(void *context, int32_t n, mtan_body body, void *argument) {
    const dealer *d = context;
    for (int32_t i = 0; i < n; i++) {
        const int32_t index = d->backwards ? n - 1 - i : i;
        body(argument, index, index % d->threads);
    }
}

/* With a dealer on one thread, else on a pool's threads. */
static mtan_status classify_on(tiny_model *s, int32_t threads, dealer *d, const int32_t *rows, mtan_real *p) {
    const mtan_bounds most = {AT_ONCE, TINY_EVENTS, TINY_TIMES};
    mtan_predictor predictors[MOST_THREADS];
    void *memory[MOST_THREADS] = {NULL};
    size_t bytes = 0;
    mtan_pool pool;
    mtan_status status = mtan_pool_start(&pool, threads);
    if (status == MTAN_OK) status = mtan_predictor_size(&s->model, &most, &bytes);
    for (int32_t t = 0; t < threads && status == MTAN_OK; t++) {
        memory[t] = malloc(bytes);
        status = mtan_predictor_init(&predictors[t], &s->model, &most, memory[t], bytes);
    }
    if (status == MTAN_OK)
        status = mtan_predictors_classify(predictors, threads, d ? deal : mtan_pool_run, d ? (void *)d : &pool,
                                          s->records, s->n, rows, p);
    mtan_pool_stop(&pool);
    for (int32_t t = 0; t < threads; t++) free(memory[t]);
    return status;
}

TEST predictors_on_threads_have_the_bits_of_one(tiny_kind kind) {
    static mtan_real alone[2 * ROWS_MOST], together[2 * ROWS_MOST];
    int32_t rows[RECORDS];
    tiny_model s;
    tiny_open(&s, kind, RECORDS);
    for (int32_t i = 0; i < RECORDS; i++) s.records[i].times = NULL, s.records[i].n_times = 0;
    const size_t numbers = 2 * (size_t)find_rows(&s, rows);
    tiny_predict(&s, RECORDS);
    ASSERT_EQ_FMT(MTAN_OK, mtan_predictor_classify(&s.predictor, s.records, RECORDS, alone), "%d");
    for (int i = 0; i < THREAD_COUNTS; i++) {
        memset(together, 0, sizeof together);
        ASSERT_EQ_FMT(MTAN_OK, classify_on(&s, thread_counts[i], NULL, rows, together), "%d");
        ASSERT(check_same("probabilities", together, alone, numbers * sizeof *alone));
    }
    if (s.config.classify == MTAN_CLASSIFY_RECORD) {
        memset(together, 0, sizeof together);
        ASSERT_EQ_FMT(MTAN_OK, classify_on(&s, 3, NULL, NULL, together), "%d");
        ASSERT(check_same("probabilities", together, alone, numbers * sizeof *alone));
    }
    ASSERT(tiny_close(&s));
    PASS();
}

/* Two records are bad in different ways: the earlier one's status, and what is in neither's piece is computed. */
TEST the_first_failure_of_many_threads_is_told(void) {
    static mtan_real alone[2 * RECORDS], together[2 * RECORDS];
    tiny_model s;
    mtan_pool pool;
    tiny_open(&s, TINY_ENC, RECORDS);
    tiny_predict(&s, RECORDS);
    ASSERT_EQ_FMT(MTAN_OK, mtan_predictor_classify(&s.predictor, s.records, RECORDS, alone), "%d");
    s.records[9].n_events = -1, s.records[30].events = NULL;
    for (int i = 0; i < THREAD_COUNTS; i++) {
        memset(together, 0, sizeof together);
        ASSERT_EQ_FMT(MTAN_ERR_INPUT, classify_on(&s, thread_counts[i], NULL, NULL, together), "%d");
        for (int32_t r = 0; r < RECORDS; r++)
            if (r / AT_ONCE != 9 / AT_ONCE && r / AT_ONCE != 30 / AT_ONCE)
                ASSERT(check_same("others", together + 2 * r, alone + 2 * r, 2 * sizeof *alone));
    }
    for (int32_t i = 0; i < 2 * MOST_THREADS; i++) {
        dealer d = {1 + i / 2, i % 2};
        ASSERT_EQ_FMT(MTAN_ERR_INPUT, classify_on(&s, d.threads, &d, NULL, together), "%d");
    }
    ASSERT_EQ_FMT(MTAN_OK, mtan_pool_start(&pool, 1), "%d");
    ASSERT_EQ(MTAN_ERR_NULL, mtan_predictors_classify(NULL, 1, mtan_pool_run, &pool, s.records, 1, NULL, together));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_predictors_classify(&s.predictor, 1, NULL, &pool, s.records, 1, NULL, together));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_predictors_classify(&s.predictor, 1, mtan_pool_run, &pool, NULL, 1, NULL, together));
    ASSERT_EQ(MTAN_ERR_INPUT,
              mtan_predictors_classify(&s.predictor, 0, mtan_pool_run, &pool, s.records, 1, NULL, together));
    ASSERT_EQ(MTAN_ERR_INPUT,
              mtan_predictors_classify(&s.predictor, 1, mtan_pool_run, &pool, s.records, -1, NULL, together));
    ASSERT_EQ(MTAN_OK, mtan_predictors_classify(&s.predictor, 1, mtan_pool_run, &pool, NULL, 0, NULL, NULL));
    mtan_predictor unlike[2] = {s.predictor, s.predictor};
    unlike[1].bounds.records++;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_predictors_classify(unlike, 2, mtan_pool_run, &pool, s.records, 1, NULL, together));
    unlike[1] = s.predictor, unlike[1].bounds.times++;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_predictors_classify(unlike, 2, mtan_pool_run, &pool, s.records, 1, NULL, together));
    mtan_model wider = *s.predictor.model;
    wider.config.classes++;
    unlike[1] = s.predictor, unlike[1].model = &wider;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_predictors_classify(unlike, 2, mtan_pool_run, &pool, s.records, 1, NULL, together));
    unlike[1] = s.predictor, unlike[1].model = NULL;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_predictors_classify(unlike, 2, mtan_pool_run, &pool, s.records, 1, NULL, together));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_predictors_classify(&s.predictor, 1, mtan_pool_run, &pool, s.records, 1, NULL, NULL));
    mtan_pool_stop(&pool);
    ASSERT(tiny_close(&s));
    PASS();
}

/* The last index first, in turns of the threads that the context counts: as unlike the order of records as can be. */
static void backwards(void *context, int32_t n, mtan_body body, void *argument) {
    for (int32_t i = n - 1; i >= 0; i--) body(argument, i, i % *(const int32_t *)context);
}

/* Three records in pieces of their own fail in three ways; whoever comes to them, and when, the first one's is told. */
TEST the_first_failure_in_any_order(void) {
    static mtan_real p[2 * RECORDS];
    const mtan_bounds one = {1, TINY_EVENTS, TINY_TIMES};
    const mtan_event bad = {0, -1, 0};
    mtan_predictor predictors[3];
    void *memory[3];
    size_t bytes = 0;
    tiny_model s;
    tiny_open(&s, TINY_ENC, 9);
    ASSERT_EQ(MTAN_OK, mtan_predictor_size(&s.model, &one, &bytes));
    for (int t = 0; t < 3; t++) {
        memory[t] = malloc(bytes);
        ASSERT_EQ(MTAN_OK, mtan_predictor_init(&predictors[t], &s.model, &one, memory[t], bytes));
    }
    for (int32_t threads = 1; threads <= 3; threads++)
        for (int32_t turn = 0; turn < 3; turn++) {
            static const mtan_status expected[] = {MTAN_ERR_INPUT, MTAN_ERR_MEMORY, MTAN_ERR_NULL};
            mtan_record records[9];
            memcpy(records, s.records, sizeof records);
            records[1 + turn].events = &bad, records[1 + turn].n_events = 1; /* at 1, 2, 3 */
            records[1 + (turn + 2) % 3].n_events = TINY_EVENTS + 1;          /* at 3, 1, 2 */
            records[1 + (turn + 1) % 3].events = NULL;                       /* at 2, 3, 1 */
            ASSERT_EQ_FMT(expected[turn],
                          mtan_predictors_classify(predictors, threads, backwards, &threads, records, 9, NULL, p),
                          "%d");
        }
    for (int t = 0; t < 3; t++) free(memory[t]);
    ASSERT(tiny_close(&s));
    PASS();
}

SUITE(threads_suite) {
    for (int i = 0; i < THREAD_COUNTS; i++) {
        static const char *const names[THREAD_COUNTS] = {"1", "2", "3", "8"};
        greatest_set_test_suffix(names[i]);
        RUN_TEST1(every_index_once, thread_counts[i]);
        greatest_set_test_suffix(names[i]);
        RUN_TEST1(all_threads_work_at_once, thread_counts[i]);
        greatest_set_test_suffix(names[i]);
        RUN_TEST1(short_runs_are_quick, thread_counts[i]);
    }
    RUN_TEST(pools_start_and_stop);
    RUN_TEST(run_inside_a_body_is_serial);
    RUN_TEST(callers_share_a_pool);
    RUN_TEST(wrong_numbers_give_a_pool_of_one);
    for (int allowed = 0; allowed <= 4; allowed++) {
        static const char *const names[] = {"0", "1", "2", "3", "4"};
        greatest_set_test_suffix(names[allowed]);
        RUN_TEST1(pool_runs_with_the_threads_it_got, allowed);
    }
    RUN_TEST(pool_without_threads_is_serial);
    for (int kind = 0; kind < TINY_KINDS; kind++) {
        greatest_set_test_suffix(tiny_names[kind]);
        RUN_TEST1(training_has_the_same_bits, (tiny_kind)kind);
    }
    static const tiny_kind classifiers[] = {TINY_ENC, TINY_FULL, TINY_ENC_TIME, TINY_FULL_TIME};
    for (int i = 0; i < 4; i++) {
        greatest_set_test_suffix(tiny_names[classifiers[i]]);
        RUN_TEST1(predictors_on_threads_have_the_bits_of_one, classifiers[i]);
    }
    RUN_TEST(the_first_failure_of_many_threads_is_told);
    RUN_TEST(the_first_failure_in_any_order);
}
