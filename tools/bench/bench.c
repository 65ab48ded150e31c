/* bench: measures the library's speed on this machine, how its time grows, and how much memory it needs. `bench
 * --help`.
 *
 * The rows are the workloads on which the peers are measured too (make bench-peers): the same records in the same
 * order, the same batches; a training step is mtan_trainer_step with Adam. Times are medians after a warm-up. Machines
 * are noisy: only compare ratios from a single run. */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include "../../mtan.h"
#include "../../platform/pool.h"
#include "../../simd/mtan_simd.h"
#include "../baselines/arrange.h"
#include "../data/physionet.h"
#include "../data/prep.h"
#include "../data/split.h"
#include "../mtan/paper/origin.h"
#include "../mtan/model/recipes.h"

static const char usage[] =
    "usage: bench [--data DIR] [--rows A,B] [--backend NAME] [--threads N] [--repeat N] [--quick] [--quiet]\n"
    "       bench --json-row ROW [--backend NAME] [--threads N] [--repeat N] [--data DIR]\n"
    "\n"
    "  --data DIR      PhysioNet 2012: folder of set-a.tar.gz, an archive, or a folder of .txt files; else made "
    "records\n"
    "  --rows A,B      only these of enc-train, full-train, interp-train, enc-infer-batch, enc-infer-single,\n"
    "                  enc-infer-single-int8, and of peak, growth, memory, start\n"
    "  --backend NAME  only this one; else every one that this CPU can run\n"
    "  --threads N     only this number; else 1 and 2\n"
    "  --repeat N      batches timed per row (12; 2 for scalar)\n"
    "  --quick         a quarter of the repetitions\n"
    "  --quiet         no progress on stderr\n"
    "  --json-row ROW  one row, one line: {\"work\":..., \"backend\":..., \"threads\":..., \"ms_per_record\":...};\n"
    "                  the best backend and 1 thread unless given; of the baselines too: gru-d-train, ...\n"
    "\n"
    "Prints a table and writes build/bench.json. Exit status 2 on bad usage or unreadable data.\n";

enum { MADE = 1536, SET_A = 4000 }; /* records: twelve batches of 128, as for the peers; all of set-a */

typedef struct options {
    const char *program, *data, *rows, *backend, *json_row;
    int threads, repeat, quick, quiet;
    FILE *json;
} options;

/* ---- small helpers ---- */

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void die(const char *format, ...) {
    va_list arguments;
    fprintf(stderr, "mtan: ");
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(2);
}

static void check(const char *what, mtan_status status) {
    if (status != MTAN_OK) die("%s: %s", what, mtan_status_message(status));
}

static void *allocate(size_t bytes) { /* not cleared: pages that are never touched must not count as resident */
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) die("out of memory");
    return memory;
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *x, int n) {
    qsort(x, (size_t)n, sizeof *x, compare_doubles);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* ---- backends and threads of this machine ---- */

enum { MOST_BACKENDS = 8, MOST_THREADS = 256 };

/* The backends that run here, slowest first. */
static int list_backends(const mtan_backend *list[MOST_BACKENDS]) {
    mtan_backend_choice choice;
    int choices = 0, n = 0;
    while (mtan_backend_list(choices, &choice)) choices++;
    while (choices-- > 0 && n < MOST_BACKENDS)
        if (mtan_backend_list(choices, &choice) && choice.backend) list[n++] = choice.backend;
    return n;
}

static const mtan_backend *find_backend(const char *name) {
    const mtan_backend *list[MOST_BACKENDS];
    const int n = list_backends(list);
    if (!name) return mtan_backend_best();
    for (int i = 0; i < n; i++)
        if (strcmp(list[i]->name, name) == 0) return list[i];
    die("%s: no such backend on this CPU", name);
    return NULL;
}

static int is_scalar(const mtan_backend *backend) {
    return strncmp(mtan_backend_name(backend), "scalar", 6) == 0;
}

static void start_pool(mtan_pool *pool, int threads) {
    if (mtan_pool_start(pool, threads) != MTAN_OK || pool->threads != threads) die("cannot start %d threads", threads);
}

/* ---- records ---- */

/* The data of all batches, once with all events and once with a tenth of the time points hidden. */
typedef struct workload {
    dataset raw;
    mtan_record *records; /* (n) all events */
    mtan_record *shown;   /* (n) events of about 90 % of the time points; all events are the targets */
    mtan_event *kept;
    int32_t *labels;
    int32_t n;
    mtan_bounds bounds; /* of one record */
} workload;

/* Labels are coin tosses, since their values do not affect times. The same coin hides time points, one toss per
 * time. */
static uint32_t coin(uint32_t record, uint32_t index) {
    const uint32_t counter[4] = {record, index, 0, 0}, key[2] = {2012, 0};
    uint32_t out[4];
    mtan_philox(out, counter, key);
    return out[0];
}

static int32_t hide_times(mtan_event *kept, const mtan_event *events, int32_t n_events, uint32_t number) {
    int32_t n = 0;
    uint32_t time = 0;
    for (int32_t j = 0; j < n_events; j++) {
        if (j > 0 && events[j].time > events[j - 1].time) time++;
        if (coin(number, time) % 10 != 0) kept[n++] = events[j];
    }
    return n;
}

static void make_records(workload *d, int with_hidden) {
    const size_t n = arrlenu(d->raw.records);
    size_t events = arrlenu(d->raw.events);
    d->n = (int32_t)n;
    d->records = calloc(n, sizeof *d->records);
    d->shown = with_hidden ? calloc(n, sizeof *d->shown) : NULL;
    d->labels = allocate(n * sizeof *d->labels);
    d->kept = with_hidden ? allocate(events * sizeof *d->kept) : NULL;
    if (!d->records || (with_hidden && !d->shown)) die("out of memory");
    d->bounds = dataset_bounds(&d->raw);
    events = 0;
    for (size_t i = 0; i < n; i++) {
        mtan_record *all = &d->records[i];
        *all = dataset_view(&d->raw, i);
        d->labels[i] = (int32_t)(coin((uint32_t)i, UINT32_MAX) & 1);
        all->labels = &d->labels[i];
        if (with_hidden) {
            mtan_record *part = &d->shown[i];
            *part = *all;
            part->targets = all->events, part->n_targets = all->n_events;
            part->events = d->kept + events;
            events += (size_t)(part->n_events = hide_times(d->kept + events, all->events, all->n_events, (uint32_t)i));
        }
    }
}

/* Values as published, times in units of 48 hours. */
static void normalise(dataset *raw) {
    prep p;
    split all;
    memset(&all, 0, sizeof all);
    for (size_t i = 0; i < arrlenu(raw->records); i++) arrput(all.part[SPLIT_TRAIN], (int32_t)i);
    prep_fit(&p, raw, &all, PREP_PUBLISHED, 48, NULL);
    prep_apply(&p, raw, &all);
    memory_return();
    prep_free(&p), split_free(&all);
}

static void load(workload *d, const char *path, size_t made, int with_hidden) {
    if (path) {
        if (!physionet_load(&d->raw, path, 'a')) die("%s", d->raw.error);
        normalise(&d->raw);
    } else physionet_generate(&d->raw, made, PHYSIONET_CHANNELS, 1);
    make_records(d, with_hidden);
}

static void unload(workload *d) {
    free(d->records), free(d->shown), free(d->labels), free(d->kept);
    dataset_free(&d->raw);
}

/* ---- operation counts ----
 * Multiply-adds of the folded models for one record. A backward pass costs two forward passes.
 *
 *   encoder    K L E scores, 2 K cells numerator and denominator, per direction 3N (K (D + N) + D): the values' half of
 *              the folded input weights, the recurrent weights, and the mask's half once a record
 *   posterior  K (2N M + M 2Z)                                        M: mlp_hidden
 *   decoder    GRU S K 2 3N' (Z + N'), scores L K E, values S L K 2N', folded first layer and output S L (2N' M + M D)
 *   classes    GRU over z S K 3N (Z + N) (MTAN_FULL), head N F + F F + F C          F: head_hidden
 * Not counted: work per batch (folding, Adam), exp, tanh, sin and sums. */

typedef struct shape {
    double shown, times,
        cells; /* of the average record: times the encoder sees, times the decoder is asked for, cells */
} shape;

static double encoder_work(const mtan_config *c, shape s) {
    const double K = c->ref_points, N = c->enc_hidden, D = c->channels, ways = c->kind == MTAN_FULL ? 2 : 1;
    return K * s.shown * c->embed + 2 * K * s.cells + ways * 3 * N * (K * (D + N) + D);
}

static double head_work(const mtan_config *c) {
    const double F = c->head_hidden;
    return F > 0 ? c->enc_hidden * F + F * F + F * c->classes : (double)c->enc_hidden * c->classes;
}

static double full_work(const mtan_config *c, shape s) {
    const double K = c->ref_points, S = c->samples, Z = c->latent, N = c->enc_hidden, R = c->dec_hidden,
                 M = c->mlp_hidden;
    double work = encoder_work(c, s) + K * (2 * N * M + M * 2 * Z) + S * K * 2 * 3 * R * (Z + R);
    work += s.times * K * c->embed + S * s.times * (K * 2 * R + 2 * R * M + M * c->channels);
    if (c->classify == MTAN_CLASSIFY_RECORD) work += S * (K * 3 * N * (Z + N) + head_work(c));
    return work;
}

static double model_work(const mtan_config *c, shape s) {
    return c->kind == MTAN_FULL ? full_work(c, s) : encoder_work(c, s) + head_work(c);
}

/* ---- rows ---- */

typedef struct work {
    const char *name, *recipe;
    int training, batch; /* batch 0: the recipe's */
    mtan_precision precision;
} work;

static const work works[] = {{"enc-train", "physionet-enc", 1, 0, MTAN_REAL},
                             {"full-train", "physionet-full", 1, 0, MTAN_REAL},
                             {"interp-train", "physionet-interp", 1, 0, MTAN_REAL},
                             {"enc-infer-batch", "physionet-enc", 0, 128, MTAN_REAL},
                             {"enc-infer-single", "physionet-enc", 0, 1, MTAN_REAL},
                             {"enc-infer-single-int8", "physionet-enc", 0, 1, MTAN_INT8}};
enum { WORKS = sizeof works / sizeof works[0] };

/* A model ready for timing: a trainer, or one predictor per thread. */
typedef struct engine {
    mtan_config config;
    mtan_model model;
    mtan_real *weights;
    mtan_pool pool;
    mtan_trainer trainer;
    mtan_predictor *predictor; /* (threads) */
    void *memory;
    mtan_real *probability; /* (batch, classes) */
    int training, batch, threads;
} engine;

enum { EPOCH = 50 }; /* late enough for the KL term to have weight */

static void start_trainer(engine *e, double lr, mtan_bounds bounds) {
    mtan_train_config config;
    size_t bytes;
    mtan_train_config_init(&config);
    config.lr = lr;
    config.threads = e->threads;
    config.parallel_for = mtan_pool_run;
    config.parallel_context = &e->pool;
    check("trainer", mtan_trainer_size(&e->model, &config, &bounds, &bytes));
    e->memory = allocate(bytes);
    check("trainer", mtan_trainer_init(&e->trainer, &e->model, e->weights, &config, &bounds, e->memory, bytes));
}

static void start_predictors(engine *e, mtan_bounds bounds) {
    size_t bytes;
    bounds.records = (bounds.records + e->threads - 1) / e->threads;
    check("predictor", mtan_predictor_size(&e->model, &bounds, &bytes));
    e->memory = allocate(bytes * (size_t)e->threads);
    e->predictor = allocate((size_t)e->threads * sizeof *e->predictor);
    for (int i = 0; i < e->threads; i++)
        check("predictor",
              mtan_predictor_init(&e->predictor[i], &e->model, &bounds, (char *)e->memory + bytes * (size_t)i, bytes));
}

/* The pool starts here and the trainer keeps its address, so an engine must not be moved. */
static void engine_start(engine *e, const mtan_config *config, int training, int batch, double lr,
                         mtan_precision precision, const mtan_backend *backend, int threads, mtan_bounds bounds) {
    const size_t count = mtan_weights_count(config);
    memset(e, 0, sizeof *e);
    e->config = *config;
    e->training = training, e->batch = batch, e->threads = threads;
    e->weights = allocate(count * sizeof *e->weights);
    e->probability = allocate((size_t)(batch * (config->classes > 0 ? config->classes : 1)) * sizeof *e->probability);
    start_pool(&e->pool, threads);
    check("weights", mtan_weights_init(config, e->weights, count, 0));
    check("model", mtan_model_init(&e->model, config, e->weights, count));
    e->model.backend = backend;
    e->model.precision = precision;
    bounds.records = batch;
    if (training) start_trainer(e, lr, bounds);
    else start_predictors(e, bounds);
}

static void engine_stop(engine *e) {
    mtan_pool_stop(&e->pool);
    free(e->weights), free(e->probability), free(e->predictor), free(e->memory);
}

typedef struct prediction {
    engine *e;
    const mtan_record *records;
    int32_t n;
    mtan_status status[MOST_THREADS];
} prediction;

/* Predicts one thread's share of a batch, with its own predictor. */
static void predict_part(void *argument, int32_t index, int32_t thread) {
    prediction *p = argument;
    const int32_t first = p->n * index / p->e->threads, last = p->n * (index + 1) / p->e->threads;
    (void)thread;
    p->status[index] = mtan_predictor_classify(&p->e->predictor[index], p->records + first, last - first,
                                               p->e->probability + first * p->e->config.classes);
}

/* Runs one training step, or one batch of predictions. */
static void engine_run(engine *e, const mtan_record *records, int32_t n) {
    mtan_report report;
    prediction p;
    if (e->training) {
        check("training", mtan_trainer_step(&e->trainer, records, n, EPOCH, &report));
        return;
    }
    p.e = e, p.records = records, p.n = n;
    mtan_pool_run(&e->pool, e->threads, predict_part, &p);
    for (int i = 0; i < e->threads; i++) check("prediction", p.status[i]);
}

/* Seconds of the repetition-th batch; batches cycle through the records. */
static double time_batch(engine *e, const mtan_record *records, int32_t available, int repetition) {
    const int batches = available / e->batch;
    const mtan_record *batch = records + (size_t)(repetition % batches) * (size_t)e->batch;
    const double start = seconds();
    engine_run(e, batch, e->batch);
    return seconds() - start;
}

typedef struct result {
    const char *work, *backend;
    int threads, batch, repeat;
    double ms, gflops, peak; /* per record; of the counted operations; of the machine, around the row */
} result;

/* Averages over the records in the timed batches. The fraction of times shown is taken to be the fraction of cells
 * shown. */
static shape average(const mtan_record *records, const workload *d, int32_t n) {
    shape s = {0, 0, 0};
    double cells = 0;
    for (int32_t i = 0; i < n; i++) {
        s.times += (double)d->raw.records[i].n_times / n;
        s.cells += (double)records[i].n_events / n;
        cells += (double)d->raw.records[i].n_events / n;
    }
    s.shown = s.times * s.cells / cells;
    return s;
}

/* mTAN's recipes as published, the baselines' as defined in their papers. */
static recipe find_recipe(const char *name) {
    recipe r;
    if (!recipe_named(&r, name, MTAN_FAITHFUL)) die("%s: no such recipe", name);
    if (r.config.architecture) recipe_named(&r, name, MTAN_CORRECT);
    return r;
}

static uint32_t word_of(const void *context, uint64_t record) {
    (void)context;
    return (uint32_t)record;
}

/* Arranges the records for the model. Returns the events that it creates (free them); NULL: it takes the records
 * unchanged. */
static mtan_event *arrange(const mtan_config *c, mtan_record *records, const workload *d) {
    const baseline_hook *hook = baseline_hook_of(c);
    const size_t most = (size_t)d->bounds.events;
    mtan_event *made = hook ? allocate((size_t)d->n * most * sizeof *made) : NULL;
    const baseline_batch b = {c, records, d->n, 1, made, most, word_of, NULL};
    if (hook) hook->arrange(&b);
    return made;
}

static result time_row(const work *w, const workload *d, const mtan_backend *backend, int threads, int repeat) {
    result r = {w->name, mtan_backend_name(backend), threads, 0, repeat, 0, 0, 0};
    double *times = allocate((size_t)repeat * sizeof *times);
    const recipe found = find_recipe(w->recipe);
    const mtan_record *given = found.config.classify == MTAN_CLASSIFY_NONE ? d->shown : d->records;
    mtan_record *records = memcpy(allocate((size_t)d->n * sizeof *records), given, (size_t)d->n * sizeof *records);
    mtan_event *made = arrange(&found.config, records, d);
    engine e;
    r.batch = w->batch ? w->batch : found.batch;
    if (d->n < r.batch) die("%s needs %d records, there are %d", w->name, r.batch, (int)d->n);
    engine_start(&e, &found.config, w->training, r.batch, found.lr, w->precision, backend, threads, d->bounds);
    /* Warm up with a whole batch, so that pages are mapped and clocks are up. Scalar steps take seconds, so they get
     * only a few records. */
    engine_run(&e, records, is_scalar(backend) && r.batch > 8 ? 8 : r.batch);
    for (int i = 0; i < repeat; i++) times[i] = time_batch(&e, records, d->n, i) / r.batch;
    const int32_t used = r.batch * repeat < d->n ? r.batch * repeat : d->n;
    r.ms = 1e3 * median(times, repeat);
    if (!found.config.architecture)
        r.gflops = 2e-6 * model_work(&found.config, average(records, d, used)) * (w->training ? 3 : 1) / r.ms;
    engine_stop(&e);
    free(times), free(records), free(made);
    return r;
}

/* Number of batches to time: single records take many, since each is short. */
static int repetitions(const options *o, const work *w, const mtan_backend *backend) {
    int n = is_scalar(backend) ? 2 : 12;
    if (o->repeat) return o->repeat;
    if (w->batch == 1) n *= is_scalar(backend) ? 10 : 20;
    return o->quick ? (n + 3) / 4 : n;
}

/* ---- the machine's peak: loops of fused multiply-adds that stay in registers, one for each register width ----
 * Twelve chains hide the latency of two units of up to six cycles. */

#define TWELVE(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define CHAIN_START(i) x##i = SPLAT((float)(i));
#define CHAIN_STEP(i) x##i = FMA(x##i, a, b);
#define CHAIN_END(i) x0 = FMA(x##i, a, x0);
#define CHAINS(vector)                                                                                                 \
    vector x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, a = SPLAT(0.5f), b = SPLAT(1);                            \
    TWELVE(CHAIN_START)                                                                                                \
    for (long i = 0; i < n; i++) {                                                                                     \
        TWELVE(CHAIN_STEP)                                                                                             \
    }                                                                                                                  \
    TWELVE(CHAIN_END)

/* `lanes` per register; backend: the one with registers of this width. */
typedef struct meter {
    int lanes;
    const char *backend;
    float (*loop)(long n);
} meter;

#if defined(__x86_64__) || defined(__i386__)
#define SPLAT _mm512_set1_ps
#define FMA _mm512_fmadd_ps
__attribute__((target("avx512f"))) static float peak_512(long n) {
    CHAINS(__m512)
    return _mm512_cvtss_f32(x0);
}
#undef SPLAT
#undef FMA
#define SPLAT _mm256_set1_ps
#define FMA _mm256_fmadd_ps
__attribute__((target("avx2,fma"))) static float peak_256(long n) {
    CHAINS(__m256)
    return _mm256_cvtss_f32(x0);
}
static const meter meters[] = {{16, "avx512", peak_512}, {8, "avx2", peak_256}, {0, NULL, NULL}};
static int meter_runs(const meter *m) {
    return m->lanes == 16 ? __builtin_cpu_supports("avx512f") : __builtin_cpu_supports("fma");
}
#else
#if defined(__ARM_NEON) && defined(__aarch64__)
#define SPLAT vdupq_n_f32
#define FMA(x, y, z) vfmaq_f32(z, x, y)
static float peak_128(long n) {
    CHAINS(float32x4_t)
    return vgetq_lane_f32(x0, 0);
}
static const meter meters[] = {{4, "neon", peak_128}, {0, NULL, NULL}};
#else
static const meter meters[] = {{0, NULL, NULL}};
#endif
static int meter_runs(const meter *m) {
    return m->loop != NULL;
}
#endif

/* The meter for a backend: its own register width; for scalar code, the widest of the CPU. NULL: there is none. */
static const meter *meter_of(const mtan_backend *backend) {
    const meter *widest = NULL;
    for (const meter *m = meters; m->loop; m++) {
        if (!meter_runs(m)) continue;
        if (strcmp(m->backend, mtan_backend_name(backend)) == 0) return m;
        if (!widest) widest = m;
    }
    return widest;
}

/* The product kernel on a shape that stays in the L1 cache: 12 x 96 x 48, packed weights, 25 kB in all. */
enum { PEAK_M = 12, PEAK_N = 96, PEAK_K = 48, PEAK_PACKED = 1 << 14 };

typedef struct peak_job {
    const meter *registers; /* NULL: measure the backend's products instead */
    const mtan_backend *backend;
    long n;
    float *sink; /* (threads, 16), so that nothing is optimised away and no two threads share a cache line */
} peak_job;

static void peak_body(void *argument, int32_t index, int32_t thread) {
    const peak_job *job = argument;
    mtan_real a[PEAK_M * PEAK_K], b[PEAK_N * PEAK_K], c[PEAK_M * PEAK_N], packed[PEAK_PACKED];
    (void)thread;
    if (job->registers) {
        job->sink[16 * index] = job->registers->loop(job->n);
        return;
    }
    for (int i = 0; i < PEAK_M * PEAK_K; i++) a[i] = (mtan_real)0.5;
    for (int i = 0; i < PEAK_N * PEAK_K; i++) b[i] = (mtan_real)0.25;
    if (job->backend->pack_count(PEAK_N, PEAK_K) > PEAK_PACKED)
        die("packed weights are larger than the benchmark's block");
    job->backend->pack(packed, b, PEAK_K, 1, PEAK_N, PEAK_K);
    for (long i = 0; i < job->n; i++)
        job->backend->product_packed(c, PEAK_N, a, PEAK_K, packed, PEAK_M, PEAK_N, PEAK_K, 0, 0);
    job->sink[16 * index] = (float)c[0];
}

enum { PEAK_RUNS = 20 };

/* Seconds per run: long enough that waking threads does not matter, short enough that some runs are not interrupted.
 * Batches are interrupted like everything else, so the runs around a row take about as long as a batch, or as one
 * record. */
static const double peak_alone = 0.004, peak_beside_batch = 0.03, peak_beside_record = 0.0004;

/* GFLOP/s of all threads together, for each run. */
static void measure_rates(const meter *registers, const mtan_backend *backend, int threads, double least,
                          double rate[PEAK_RUNS]) {
    const double each = registers ? 2.0 * 12 * registers->lanes : 2.0 * PEAK_M * PEAK_N * PEAK_K;
    peak_job job = {registers, backend, 64, NULL};
    mtan_pool pool;
    job.sink = allocate((size_t)threads * 16 * sizeof *job.sink);
    start_pool(&pool, threads);
    for (int good = 0; good < PEAK_RUNS;) {
        const double start = seconds();
        mtan_pool_run(&pool, threads, peak_body, &job);
        const double took = seconds() - start;
        rate[good] = 1e-9 * each * (double)job.n * threads / took;
        if (took < least) job.n *= 2;
        else good++;
    }
    mtan_pool_stop(&pool);
    free(job.sink);
}

static double best_rate(const meter *registers, const mtan_backend *backend, int threads) {
    double rate[PEAK_RUNS], best = 0;
    measure_rates(registers, backend, threads, peak_alone, rate);
    for (int i = 0; i < PEAK_RUNS; i++) best = fmax(best, rate[i]);
    return best;
}

/* Times a row together with the peak at that time. A shared machine has less to give in one minute than in another, so
 * peak and row are both medians, and half of the peak runs come before the row and half after it. */
static result time_beside_peak(const work *w, const workload *d, const mtan_backend *backend, int threads, int repeat) {
    const meter *registers = meter_of(backend);
    const double least = w->batch == 1 ? peak_beside_record : peak_beside_batch;
    double rate[2 * PEAK_RUNS];
    result r;
    measure_rates(registers, backend, threads, least, rate);
    r = time_row(w, d, backend, threads, repeat);
    measure_rates(registers, backend, threads, least, rate + PEAK_RUNS);
    r.peak = median(rate, 2 * PEAK_RUNS);
    return r;
}

/* ---- children: measurements from the start of a process ---- */

/* Resident memory of this process in bytes; -1 if the system does not report it. */
static double resident(void) {
    long total, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    const int got = f ? fscanf(f, "%ld %ld", &total, &pages) : 0;
    if (f) fclose(f);
    return got == 2 ? (double)pages * (double)sysconf(_SC_PAGESIZE) : -1;
}

/* Trains mTAND-Enc at batch 128 with all of set-a in memory. */
static void train_in_memory(const options *o) {
    const recipe r = find_recipe(works[0].recipe);
    workload d;
    engine e;
    load(&d, o->data, SET_A, 0);
    engine_start(&e, &r.config, 1, r.batch, r.lr, MTAN_REAL, find_backend(o->backend), o->threads ? o->threads : 2,
                 d.bounds);
    for (int i = 0; i < 3 && (i + 1) * e.batch <= d.n; i++) engine_run(&e, d.records + i * e.batch, e.batch);
}

/* The largest record of set-a in events and in times, and the average one. */
static const mtan_bounds largest = {1, 1501, 203}, typical = {1, 438, 75};

static mtan_record record_of(const mtan_bounds *size, mtan_event *events) {
    mtan_record r;
    memset(&r, 0, sizeof r);
    for (int i = 0; i < size->events; i++) {
        events[i].time = (mtan_real)(i % size->times) / (mtan_real)size->times;
        events[i].channel = i % PHYSIONET_CHANNELS;
        events[i].value = (mtan_real)0.5;
    }
    r.events = events, r.n_events = size->events;
    return r;
}

static void predict_in_memory(const options *o) {
    static mtan_event events[1501];
    const mtan_record record = record_of(&largest, events);
    const recipe r = find_recipe("physionet-enc");
    engine e;
    engine_start(&e, &r.config, 0, 1, 0, MTAN_REAL, find_backend(o->backend), 1, largest);
    engine_run(&e, &record, 1);
}

/* --memory train|infer: bytes on top of those of the process before it did anything; for infer without the weights. */
static int memory_child(const options *o, const char *what) {
    const double empty = resident();
    double weights = 0;
    if (strcmp(what, "train") == 0) train_in_memory(o);
    else {
        predict_in_memory(o);
        const recipe r = find_recipe("physionet-enc");
        weights = (double)(mtan_weights_count(&r.config) * sizeof(mtan_real));
    }
    printf("%.0f\n", empty < 0 ? -1 : resident() - empty - weights);
    return 0;
}

/* --first-prediction FILE: maps the model, uses it in place, predicts one record, and reports it. */
static int first_prediction_child(const options *o, const char *path) {
    static mtan_event events[438];
    const mtan_record record = record_of(&typical, events);
    const int file = open(path, O_RDONLY);
    struct stat status;
    mtan_file opened;
    mtan_predictor predictor;
    mtan_model model;
    mtan_real p[2];
    size_t bytes;
    void *blob, *memory;
    if (file < 0 || fstat(file, &status) != 0) die("%s: cannot be opened", path);
    blob = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (blob == MAP_FAILED) die("%s: cannot be mapped", path);
    check(path, mtan_file_open(&opened, blob, (size_t)status.st_size));
    check(path, mtan_model_open(&model, &opened, NULL));
    model.backend = find_backend(o->backend);
    check("predictor", mtan_predictor_size(&model, &typical, &bytes));
    memory = allocate(bytes);
    check("predictor", mtan_predictor_init(&predictor, &model, &typical, memory, bytes));
    check("prediction", mtan_predictor_classify(&predictor, &record, 1, p));
    printf("%.9g\n", (double)p[1]);
    return 0;
}

/* Runs this program again. Returns the seconds until its first output, whose number goes to *value; negative on
 * failure. */
static double run_child(const options *o, const char *backend, const char *mode, const char *argument, double *value) {
    const char *arguments[9] = {o->program, mode, argument, "--backend", backend, NULL, NULL, NULL, NULL};
    extern char **environ;
    posix_spawn_file_actions_t actions;
    char text[64] = {0};
    int ends[2], status = 1;
    ssize_t got = -1;
    double took;
    pid_t child;
    if (o->data) arguments[5] = "--data", arguments[6] = o->data;
    if (pipe(ends) != 0) die("no pipe");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    fflush(stdout);
    took = -seconds();
    if (posix_spawn(&child, o->program, &actions, NULL, (char *const *)(uintptr_t)arguments, environ) == 0) {
        close(ends[1]), ends[1] = -1;
        got = read(ends[0], text, sizeof text - 1);
        took += seconds();
        waitpid(child, &status, 0);
    }
    close(ends[0]);
    if (ends[1] >= 0) close(ends[1]);
    posix_spawn_file_actions_destroy(&actions);
    *value = atof(text);
    return got > 0 && status == 0 ? took : -1;
}

static mtan_status write_file(void *context, const void *bytes, size_t n) {
    return fwrite(bytes, 1, n, context) == n ? MTAN_OK : MTAN_ERR_WRITE;
}

/* Writes a model of physionet-enc; returns the file's size in MB. */
static double write_model(const char *path) {
    const recipe r = find_recipe("physionet-enc");
    mtan_model model;
    FILE *f = fopen(path, "wb");
    if (!f) die("%s: cannot be written", path);
    const size_t count = mtan_weights_count(&r.config);
    mtan_real *weights = allocate(count * sizeof *weights);
    check("weights", mtan_weights_init(&r.config, weights, count, 0));
    check("model", mtan_model_init(&model, &r.config, weights, count));
    check(path, mtan_model_save(&model, NULL, NULL, 0, write_file, f));
    const double bytes = (double)ftell(f);
    if (fclose(f) != 0) die("%s: cannot be written", path);
    free(weights);
    return bytes / 1e6;
}

/* ---- reports: a line on the terminal, an object in the file ---- */

/* Begins an object of the open list; no comma goes before the `first`. */
static void json_object(FILE *f, int first, const char *format, ...) {
    va_list arguments;
    if (!f) return;
    fputs(first ? "\n  {" : ",\n  {", f);
    va_start(arguments, format);
    vfprintf(f, format, arguments);
    va_end(arguments);
    fputc('}', f);
}

static void json_text(FILE *f, const char *key, const char *text, const char *after) {
    fprintf(f, "\"%s\": \"", key);
    for (; *text; text++)
        if (*text == '"' || *text == '\\') fprintf(f, "\\%c", *text);
        else if ((unsigned char)*text >= ' ') fputc(*text, f);
    fprintf(f, "\"%s", after);
}

static void describe_machine(const options *o) {
#if defined(__clang__)
    static const char compiler[] = __VERSION__;
#else
    static const char compiler[] = "gcc " __VERSION__;
#endif
    char cpu[256];
    origin_cpu(cpu, sizeof cpu);
    printf("%s, %d cores, %s\n", cpu, (int)mtan_pool_cpus(), compiler);
    if (!o->json) return;
    fputs("{\"machine\": {", o->json);
    json_text(o->json, "cpu", cpu, ", ");
    fprintf(o->json, "\"cores\": %d, ", (int)mtan_pool_cpus());
    json_text(o->json, "compiler", compiler, "},\n");
}

static void describe_data(const options *o, const workload *d) {
    const physionet_summary s = physionet_summarise(&d->raw);
    printf("%s: %zu records; time stamps %.1f +- %.1f, at most %d; cells %.1f +- %.1f, at most %d; of 41 channels %.1f "
           "never "
           "seen\n",
           o->data ? o->data : "made records", s.records, s.times, s.times_spread, (int)s.most_times, s.cells,
           s.cells_spread, (int)s.most_cells, s.never);
    if (!o->json) return;
    fputs("\"data\": {", o->json);
    json_text(o->json, "source", o->data ? o->data : "made", ", ");
    fprintf(o->json, "\"records\": %zu, \"times\": %.2f, \"most_times\": %d, \"cells\": %.2f, \"most_cells\": %d},\n",
            s.records, s.times, (int)s.most_times, s.cells, (int)s.most_cells);
}

static void progress(const options *o, const char *what, const char *backend, int threads) {
    if (o->quiet || !isatty(2)) return;
    if (what) fprintf(stderr, "\r%-21s %-10s %d ...", what, backend, threads);
    else fprintf(stderr, "\r%44s\r", "");
    fflush(stderr);
}

/* Is `name` in the comma-separated list? Without a list: yes. */
static int wanted(const options *o, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = o->rows; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
        if (strncmp(at, name, length) == 0 && (at[length] == 0 || at[length] == ',')) return 1;
    return !o->rows;
}

static int any_row(const options *o) {
    for (int i = 0; i < WORKS; i++)
        if (wanted(o, works[i].name)) return 1;
    return 0;
}

/* ---- sections of the report ---- */

typedef struct plan {
    const mtan_backend *backend[MOST_BACKENDS];
    int backends, threads[2], thread_counts;
} plan;

static plan make_plan(const options *o) {
    plan p;
    memset(&p, 0, sizeof p);
    p.backends = list_backends(p.backend);
    if (o->backend) p.backend[0] = find_backend(o->backend), p.backends = 1;
    p.threads[0] = o->threads ? o->threads : 1, p.threads[1] = 2;
    p.thread_counts = o->threads ? 1 : 2;
    return p;
}

/* Prints a line of the table of peaks; its label has been printed. */
static void report_rates(const options *o, const plan *p, const char *what, const meter *registers,
                         const mtan_backend *backend, int first) {
    for (int t = 0; t < p->thread_counts; t++) {
        const double rate = best_rate(registers, backend, p->threads[t]);
        printf(" %9.1f", rate);
        json_object(o->json, first && t == 0, "\"what\": \"%s\", \"threads\": %d, \"gflops\": %.2f", what,
                    p->threads[t], rate);
    }
}

static void report_peak(const options *o, const plan *p) {
    int first = 1;
    char what[32];
    if (o->json) fputs("\"peak\": [", o->json);
    printf("\nsingle-precision peak, GFLOP/s%32s", "threads");
    for (int t = 0; t < p->thread_counts; t++) printf(" %9d", p->threads[t]);
    for (const meter *m = meters; m->loop; m++) {
        if (!meter_runs(m)) continue;
        printf("\n  fused multiply-adds on registers, %2d wide                ", m->lanes);
        snprintf(what, sizeof what, "registers, %d wide", m->lanes);
        report_rates(o, p, what, m, NULL, first);
        first = 0;
    }
    for (int b = 0; b < p->backends; b++) {
        const char *name = mtan_backend_name(p->backend[b]);
        printf("\n  product kernel %d x %d x %d in first-level cache, %-10s", PEAK_M, PEAK_N, PEAK_K, name);
        report_rates(o, p, name, NULL, p->backend[b], first);
        first = 0;
    }
    puts("");
    if (o->json) fputs("],\n", o->json);
}

static void report_rows(const options *o, const plan *p, const workload *d) {
    int first = 1;
    if (o->json) fputs("\"rows\": [", o->json);
    printf("\n%-21s %-10s %7s %6s %14s %10s %10s %8s\n", "work", "backend", "threads", "batch", "ms per record",
           "GFLOP/s", "peak then", "share");
    for (int i = 0; i < WORKS * p->backends * p->thread_counts; i++) {
        const work *w = &works[i / p->backends / p->thread_counts];
        const mtan_backend *backend = p->backend[i / p->thread_counts % p->backends];
        const int t = i % p->thread_counts;
        result r;
        if (!wanted(o, w->name) || (w->batch == 1 && p->threads[t] > 1)) continue;
        progress(o, w->name, mtan_backend_name(backend), p->threads[t]);
        r = time_beside_peak(w, d, backend, p->threads[t], repetitions(o, w, backend));
        progress(o, NULL, NULL, 0);
        printf("%-21s %-10s %7d %6d %14.4f %10.2f %10.2f %6.1f %%\n", r.work, r.backend, r.threads, r.batch, r.ms,
               r.gflops, r.peak, 100 * r.gflops / r.peak);
        fflush(stdout);
        json_object(o->json, first,
                    "\"work\": \"%s\", \"backend\": \"%s\", \"threads\": %d, \"batch\": %d, \"repeat\": %d, "
                    "\"ms_per_record\": %.6f, \"gflops\": %.3f, \"peak\": %.3f, \"share_of_peak\": %.4f",
                    r.work, r.backend, r.threads, r.batch, r.repeat, r.ms, r.gflops, r.peak, r.gflops / r.peak);
        first = 0;
    }
    if (o->json) fputs("],\n", o->json);
}

/* How the time of a training step of mTAND-Enc grows when one size doubles. */
typedef struct growth {
    const char *name;
    int records, points, hidden, channels; /* factors: 1 or 2 */
    double density;                        /* of cells before doubling, relative to set-a */
} growth;

static const growth growths[] = {{"records", 2, 1, 1, 1, 1},
                                 {"reference points K", 1, 2, 1, 1, 1},
                                 {"observed cells", 1, 1, 1, 1, 0.5},
                                 {"channels D", 1, 1, 1, 2, 1},
                                 {"hidden units N", 1, 1, 2, 1, 1}};

/* Seconds of a step before and after doubling, and their ratio: medians over pairs of alternating steps. */
static void time_growth(const growth *g, const mtan_backend *backend, int records, int repeat, double took[3]) {
    workload d[2];
    engine e[2];
    double *times = allocate(3 * (size_t)repeat * sizeof *times);
    for (int i = 0; i < 2; i++) {
        recipe r = find_recipe("physionet-enc");
        r.config.ref_points *= i ? g->points : 1;
        r.config.enc_hidden *= i ? g->hidden : 1;
        r.config.channels *= i ? g->channels : 1;
        memset(&d[i], 0, sizeof d[i]);
        physionet_generate(&d[i].raw, (size_t)(records * (i ? g->records : 1)), r.config.channels, i ? 1 : g->density);
        make_records(&d[i], 0);
        engine_start(&e[i], &r.config, 1, d[i].n, r.lr, MTAN_REAL, backend, 1, d[i].bounds);
        engine_run(&e[i], d[i].records, d[i].n);
    }
    for (int k = 0; k < repeat; k++) {
        for (int i = 0; i < 2; i++) times[i * repeat + k] = time_batch(&e[i], d[i].records, d[i].n, 0);
        times[2 * repeat + k] = times[repeat + k] / times[k];
    }
    for (int i = 0; i < 3; i++) took[i] = median(times + i * repeat, repeat);
    for (int i = 0; i < 2; i++) engine_stop(&e[i]), unload(&d[i]);
    free(times);
}

static void report_growth(const options *o, const mtan_backend *backend) {
    const int records = is_scalar(backend) ? 8 : 64, repeat = is_scalar(backend) || o->quick ? 3 : 9;
    if (o->json) fputs("\"growth\": [", o->json);
    if (wanted(o, "growth"))
        printf("\ngrowth of a training step of mTAND-Enc, %s, 1 thread, %d records: doubled, and the exponent\n",
               mtan_backend_name(backend), records);
    for (int i = 0; wanted(o, "growth") && i < (int)(sizeof growths / sizeof growths[0]); i++) {
        double took[3];
        progress(o, growths[i].name, mtan_backend_name(backend), 1);
        time_growth(&growths[i], backend, records, repeat, took);
        progress(o, NULL, NULL, 0);
        printf("  %-20s %9.2f ms -> %9.2f ms   %5.2f\n", growths[i].name, 1e3 * took[0], 1e3 * took[1], log2(took[2]));
        fflush(stdout);
        json_object(o->json, i == 0, "\"doubled\": \"%s\", \"ms\": [%.4f, %.4f], \"exponent\": %.3f", growths[i].name,
                    1e3 * took[0], 1e3 * took[1], log2(took[2]));
    }
    if (o->json) fputs("],\n", o->json);
}

static void report_memory(const options *o, const mtan_backend *backend) {
    static const struct {
        const char *mode, *what;
        double limit;
    } rows[] = {{"train", "training mTAND-Enc, batch 128, 2 threads, 4000 records", 64},
                {"infer", "inference of the largest record, besides the weights", 2}};
    if (o->json) fputs("\"memory\": [", o->json);
    if (wanted(o, "memory")) puts("\nresident memory over an empty process, MB (10^6 bytes)");
    for (int i = 0; wanted(o, "memory") && i < 2; i++) {
        double bytes = -1;
        if (run_child(o, mtan_backend_name(backend), "--memory", rows[i].mode, &bytes) < 0 || bytes < 0) {
            printf("  %-56s not measured here\n", rows[i].what);
            bytes = -1e6;
        } else
            printf("  %-56s %6.2f   limit %2.0f%s\n", rows[i].what, bytes / 1e6, rows[i].limit,
                   bytes / 1e6 <= rows[i].limit ? "" : "   EXCEEDED");
        json_object(o->json, i == 0, "\"what\": \"%s\", \"megabytes\": %.3f, \"limit\": %.0f", rows[i].mode,
                    bytes / 1e6, rows[i].limit);
    }
    if (o->json) fputs("],\n", o->json);
}

static void report_start(const options *o, const mtan_backend *backend) {
    enum { RUNS = 10, LIMIT = 5 };
    static const char path[] = "build/bench-model.safetensors";
    double took[RUNS], value, megabytes, ms = -1;
    options plain = *o;
    plain.data = NULL;
    if (wanted(o, "start")) {
        megabytes = write_model(path);
        for (int i = 0; i < RUNS; i++)
            if ((took[i] = run_child(&plain, mtan_backend_name(backend), "--first-prediction", path, &value)) < 0)
                die("the child for the first prediction failed");
        ms = 1e3 * median(took, RUNS);
        printf("\nfrom process start to the first prediction of a typical record, %.1f MB model mapped from a file, "
               "%s: %.2f ms   limit %d "
               "ms%s\n",
               megabytes, mtan_backend_name(backend), ms, LIMIT, ms <= LIMIT ? "" : "   EXCEEDED");
    }
    if (o->json) fprintf(o->json, "\"first_prediction_ms\": %.3f}\n", ms);
}

/* ---- command line ---- */

/* A row of the report, or the training of a baseline: gru-d-train. */
static const work *find_work(const char *name) {
    static char of_baseline[RECIPE_NAME];
    static work baseline = {NULL, of_baseline, 1, 0, MTAN_REAL};
    const size_t n = strlen(name), end = strlen("-train");
    recipe r;
    for (int i = 0; i < WORKS; i++)
        if (strcmp(works[i].name, name) == 0) return &works[i];
    snprintf(of_baseline, sizeof of_baseline, "physionet-%.*s", n > end ? (int)(n - end) : 0, name);
    if (n > end && strcmp(name + n - end, "-train") == 0 && recipe_named(&r, of_baseline, MTAN_CORRECT) &&
        r.config.architecture)
        return baseline.name = name, &baseline;
    die("%s: no such row; `bench --help` lists them", name);
    return NULL;
}

static int json_row(const options *o) {
    const work *w = find_work(o->json_row);
    const mtan_backend *backend = find_backend(o->backend);
    workload d;
    result r;
    load(&d, o->data, MADE, 1);
    r = time_row(w, &d, backend, o->threads ? o->threads : 1, repetitions(o, w, backend));
    unload(&d);
    printf("{\"work\": \"%s\", \"backend\": \"%s\", \"threads\": %d, \"ms_per_record\": %.6f}\n", r.work, r.backend,
           r.threads, r.ms);
    return 0;
}

static int whole_report(options *o) {
    const plan p = make_plan(o);
    const mtan_backend *best = o->backend ? p.backend[0] : mtan_backend_best();
    workload d;
    o->json = fopen("build/bench.json", "w");
    if (!o->json) die("build/bench.json: cannot be written");
    load(&d, o->data, MADE, 1);
    describe_machine(o);
    describe_data(o, &d);
    if (wanted(o, "peak")) report_peak(o, &p);
    if (any_row(o)) report_rows(o, &p, &d);
    unload(&d);
    report_growth(o, best);
    report_memory(o, best);
    report_start(o, best);
    if (fclose(o->json) != 0) die("build/bench.json: cannot be written");
    return 0;
}

static int positive(const char *text) {
    char *end;
    const long x = strtol(text, &end, 10);
    if (*end || x < 1 || x > 1000000) die("%s: not a number from 1 to 1000000", text);
    return (int)x;
}

int main(int argc, char **argv) {
    options o = {"/proc/self/exe", NULL, NULL, NULL, NULL, 0, 0, 0, 0, NULL};
    const char *memory = NULL, *model = NULL;
    if (access(o.program, X_OK) != 0) o.program = argv[0];
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--help") == 0) return fputs(usage, stdout) < 0;
        else if (strcmp(argv[i], "--quick") == 0) o.quick = 1;
        else if (strcmp(argv[i], "--quiet") == 0) o.quiet = 1;
        else if (!value) return fputs(usage, stderr), 2;
        else {
            if (strcmp(argv[i], "--data") == 0) o.data = value;
            else if (strcmp(argv[i], "--rows") == 0) o.rows = value;
            else if (strcmp(argv[i], "--backend") == 0) o.backend = value;
            else if (strcmp(argv[i], "--threads") == 0) o.threads = positive(value);
            else if (strcmp(argv[i], "--repeat") == 0) o.repeat = positive(value);
            else if (strcmp(argv[i], "--json-row") == 0) o.json_row = value;
            else if (strcmp(argv[i], "--memory") == 0) memory = value;
            else if (strcmp(argv[i], "--first-prediction") == 0) model = value;
            else return fputs(usage, stderr), 2;
            i++;
        }
    }
    if (o.threads > MOST_THREADS) die("at most %d threads", MOST_THREADS);
    if (memory) return memory_child(&o, memory);
    if (model) return first_prediction_child(&o, model);
    return o.json_row ? json_row(&o) : whole_report(&o);
}
