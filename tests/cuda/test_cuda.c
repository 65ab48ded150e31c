/* The CUDA backend without a GPU: its kernels run on the shim of cuda_shim.h, its host side on the driver of cuda_driver.h.
 * First the shim itself has to find what it is there to find; then every kernel is compared with the scalar code, models
 * with the golden files, and every call of the driver is made to fail. */
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef MTAN_WITH_CUDA_SHIM

#include "cuda_cases.h"
#include "cuda_compare.h"
#include "kernel_table.h"
#include "ladder.h"
#include "../../platform/cuda/launch.h"
#include "tiny_model.h"

/* ---- the shim ---- */

static void run_case(int index, uint64_t seed, float y[128]) {
    const shim_index grid = {index == CASE_blocks_meet || index == CASE_blocks_read ? 2 : 1, 1, 1}, block = {64, 1, 1};
    struct case_arguments a;
    float x[64];
    for (int i = 0; i < 64; i++) x[i] = (float)i;
    a.x = x, a.y = y;
    shim_memory_add(x, sizeof x), shim_memory_add(y, (index == CASE_blocks_read ? 128 : 64) * sizeof *y);
    shim.seed = seed, shim.check_memory = 1;
    shim_clear();
    shim_launch(&cuda_cases[index], grid, block, &a);
    shim_memory_remove(x), shim_memory_remove(y);
}

TEST shim_finds(int index, shim_fault kind) {
    float y[128] = {0};
    for (uint64_t seed = 0; seed < 5; seed++) {
        run_case(index, seed, y);
        if (!shim_watches()) SKIPm("the kernels were compiled without -fsanitize=thread");
        ASSERT(shim.found[kind] > 0);
        ASSERT(strstr(shim.text, cuda_cases[index].name));
    }
    shim_clear();
    PASS();
}

TEST shim_allows(int index) {
    float y[128] = {0};
    for (uint64_t seed = 0; seed < 5; seed++) {
        run_case(index, seed, y);
        ASSERT_STR_EQ("", shim.text);
        ASSERT_EQ(0, shim.faults);
        for (int i = 0; index == CASE_reverse && i < 64; i++) ASSERT_EQ((float)(63 - i), y[i]);
        for (int i = 0; index == CASE_warps && i < 64; i++) /* 0 + ... + 31, then 32 + ... + 63 */
            ASSERT_EQ((float)((i < 32 ? 496 : 1520) + (i ^ 1)), y[i]);
    }
    PASS();
}

/* ---- kernels ---- */

static mtan_cuda device;

static int device_open(const mtan_cuda_blas *blas) {
    driver_reset();
    shim_clear();
    shim.skipped = 0, shim.check_memory = 1;
    test_driver.deferred = 0, test_driver.random = 1;
    return mtan_cuda_open(&device, &test_driver_functions, blas, 0, test_driver_image) == MTAN_CUDA_OK;
}

/* Nothing left, nothing found. */
static int device_close(void) {
    const int ok = device.status == MTAN_CUDA_OK;
    mtan_cuda_close(&device);
    if (driver_given_out() || test_driver.hasty || shim.faults)
        printf("  BAD %d things not given back, %d too early, %d faults: %s\n", driver_given_out(), test_driver.hasty,
               shim.faults, shim.text);
    return ok && driver_given_out() == 0 && test_driver.hasty == 0 && shim.faults == 0;
}

/* deferred: streams do their work late. */
TEST kernels_agree(int seed, int deferred) {
    int agree;
    ASSERT(device_open(NULL));
    test_driver.deferred = deferred;
    agree = cuda_kernels_agree(&device, (uint64_t)seed);
    for (int i = 0; i < cuda_kernel_count; i++) {
        if (test_driver.launched[i] == 0) printf("  BAD %s was never run\n", cuda_kernels[i].name);
        ASSERT(test_driver.launched[i] > 0);
    }
    ASSERT(agree);
    ASSERT(device_close());
    PASS();
}

/* Lines of kernels.cu whose barrier was left out and missed. */
static int missed[64], missed_count;

/* One run as it is, then without each of the barriers it meets that nobody has missed yet. */
static int barriers_are_missed(int index) {
    int met[64], n, ok;
    shim.lines = shim.skipped = 0;
    ok = cuda_barrier_run(index, &device) == 1;
    n = shim.lines;
    memcpy(met, shim.line, sizeof met);
    for (int i = 0; ok && i < n; i++) {
        int known = 0;
        for (int j = 0; j < missed_count; j++) known |= missed[j] == met[i];
        if (known) continue;
        shim.skipped = met[i];
        check_quiet = 1;
        if (cuda_barrier_run(index, &device) == 0) missed[missed_count++] = met[i];
        check_quiet = 0;
        shim.skipped = 0;
        shim_clear();
    }
    return ok;
}

static int has_line(const int *lines, int n, int line) {
    for (int i = 0; i < n; i++)
        if (lines[i] == line) return 1;
    return 0;
}

/* Not one barrier of the kernels can go: leave it out, and a fault is found. */
TEST every_barrier_is_needed(void) {
    int all[64], n = 0;
    if (!shim_watches()) SKIPm("the kernels were compiled without -fsanitize=thread");
    missed_count = 0;
    ASSERT(device_open(NULL));
    for (int i = 0; cuda_barrier_run(i, &device) >= 0; i++) {
        ASSERT(barriers_are_missed(i));
        for (int j = 0; j < shim.lines; j++)
            if (!has_line(all, n, shim.line[j])) all[n++] = shim.line[j];
    }
    for (int i = 0; i < n; i++) {
        if (!has_line(missed, missed_count, all[i])) printf("  BAD nobody misses the barrier in line %d\n", all[i]);
        ASSERT(has_line(missed, missed_count, all[i]));
    }
    ASSERT(n >= 12);
    ASSERT(device_close());
    PASS();
}

/* What the comparisons say must depend on what they compare. */
TEST one_wrong_number_is_seen(void) {
    const mtan_real x[3] = {1, 2, 3}, y[3] = {1, 2, 3.001f}, z[3] = {1, NAN, 3};
    check_quiet = 1;
    ASSERT(cuda_compare("same", x, x, 3, KERNEL_SAME));
    ASSERT_FALSE(cuda_compare("near", x, y, 3, KERNEL_NEAR));
    ASSERT_FALSE(cuda_compare("nan", z, x, 3, KERNEL_NEAR));
    ASSERT_FALSE(cuda_compare("nan expected", x, z, 3, KERNEL_NEAR));
    check_quiet = 0;
    PASS();
}

/* ---- models. Weights, trainers and predictors lie on the device, whose memory is not the host's and starts as NaN: what
 * the library forgets to send or to fetch shows, the more as streams do their work late. ---- */

static void mirror_block(void *block, size_t bytes) {
    mtan_cuda_mirror(&device, block, bytes);
}

static void unmirror_block(void *block) {
    mtan_cuda_unmirror(&device, block);
}

static int device_open_for_models(int deferred, uint64_t seed) {
    const int ok = device_open(NULL);
    test_driver.deferred = deferred, test_driver.random = seed + 1;
    shim.seed = seed;
    guard_watch.given = mirror_block, guard_watch.taken = unmirror_block;
    return ok;
}

static int device_close_for_models(void) {
    guard_watch.given = NULL, guard_watch.taken = NULL;
    return device_close();
}

typedef struct {
    int compared, over;
} tally;

static void count_tensor(void *context, const char *tensor, double difference, double limit, double share) {
    tally *t = context;
    t->compared++;
    if (share <= 1) return;
    t->over++;
    printf("  BAD %s: off by %.3g, limit %.3g\n", tensor, difference, limit);
}

TEST model_agrees(const char *name) {
    tally t = {0, 0};
    int status;
    ASSERT(device_open_for_models(1, 5));
    status = strncmp(name, "train-", 6) == 0 ? ladder_training(name, &mtan_backend_cuda, count_tensor, &t)
                                             : ladder_model(name, &mtan_backend_cuda, count_tensor, &t);
    ASSERT(status >= 1);
    ASSERT_EQ(status, t.compared);
    ASSERT_EQ(0, t.over);
    ASSERT(device_close_for_models());
    PASS();
}

/* A tiny model with its weights where the backend runs, and a trainer. */
static void tiny_on(tiny_model *s, tiny_kind kind, int32_t records, const mtan_backend *backend,
                    const mtan_train_config *config) {
    tiny_open(s, kind, records);
    s->model.backend = backend;
    if (backend->device) backend->device->send(s->weights, s->count * sizeof *s->weights);
    tiny_train(s, config);
}

enum { BATCHES = 2 };

/* Ten steps of a tiny model on two batches in turn; the weights come back, and stay with the caller. */
static int train_tiny(tiny_model *s, tiny_kind kind, const mtan_backend *backend, int ahead, double losses[10]) {
    const mtan_device *there = backend->device;
    mtan_train_config config;
    mtan_report report;
    mtan_train_config_init(&config);
    config.dropout = 0.2;
    tiny_on(s, kind, 2 * BATCHES, backend, &config);
    for (int i = 0; i < 10; i++) {
        if (ahead) mtan_trainer_next(&s->trainer, s->records + 2 * ((i + 1) % BATCHES), 2);
        if (mtan_trainer_step(&s->trainer, s->records + 2 * (i % BATCHES), 2, 1, &report) != MTAN_OK) return 0;
        losses[i] = report.loss;
    }
    return !there || there->fetch(s->weights, s->count * sizeof *s->weights);
}

/* Another order of threads, streams that do their work late, batches that are sent ahead: the bits are the same. The losses
 * are those of the scalar code. */
TEST training_repeats(int kind) {
    tiny_model a, b, c;
    double of_a[10], of_b[10], of_c[10];
    ASSERT(device_open_for_models(0, 1));
    ASSERT(train_tiny(&a, (tiny_kind)kind, &mtan_backend_cuda, 0, of_a));
    test_driver.deferred = 2, shim.seed = 2;
    ASSERT(train_tiny(&b, (tiny_kind)kind, &mtan_backend_cuda, 1, of_b));
    ASSERT(train_tiny(&c, (tiny_kind)kind, cuda_expected(), 0, of_c));
    ASSERT(check_same("weights", a.weights, b.weights, a.count * sizeof *a.weights));
    ASSERT_EQ(0, memcmp(of_a, of_b, sizeof of_a));
    for (int i = 0; i < 10; i++) ASSERT(fabs(of_a[i] - of_c[i]) <= 1e-4 * (1 + fabs(of_c[i])));
    ASSERT(of_a[8] < of_a[0]);
    ASSERT(tiny_close(&a) && tiny_close(&b) && tiny_close(&c));
    ASSERT(device_close_for_models());
    PASS();
}

/* Pinned memory is a matter of speed: the host may have none from the first, or none when it should grow. */
TEST training_needs_no_pinned_memory(int from_the_first) {
    tiny_model a, b;
    double of_a[10], of_b[10];
    ASSERT(device_open_for_models(0, 1));
    ASSERT(train_tiny(&a, TINY_FULL, &mtan_backend_cuda, 1, of_a));
    ASSERT(tiny_close(&a));
    ASSERT(device_close_for_models());
    if (from_the_first) test_driver.fail_in = "host_alloc", test_driver.error = 2;
    guard_watch.given = mirror_block, guard_watch.taken = unmirror_block;
    ASSERT_EQ(MTAN_CUDA_OK, mtan_cuda_open(&device, &test_driver_functions, NULL, 0, test_driver_image));
    test_driver.fail_in = "host_alloc", test_driver.error = 2;
    test_driver.deferred = 2;
    ASSERT(train_tiny(&b, TINY_FULL, &mtan_backend_cuda, 1, of_b));
    ASSERT(test_driver.failed);
    ASSERT_EQ(MTAN_CUDA_OK, device.status);
    ASSERT_EQ(0, memcmp(of_a, of_b, sizeof of_a));
    ASSERT(tiny_close(&b));
    ASSERT(device_close_for_models());
    driver_reset();
    PASS();
}

/* What a batch needs comes over while the step before it runs, not after. */
TEST batches_go_ahead(void) {
    tiny_model s;
    mtan_report report;
    mtan_train_config config;
    int sends;
    ASSERT(device_open_for_models(0, 1));
    mtan_train_config_init(&config);
    tiny_on(&s, TINY_FULL, 4, &mtan_backend_cuda, &config);
    mtan_trainer_next(&s.trainer, s.records + 2, 2);
    ASSERT_EQ(MTAN_OK, mtan_trainer_step(&s.trainer, s.records, 2, 1, &report));
    ASSERT(s.trainer.state->ahead.batch && s.trainer.state->ahead.records == s.records + 2);
    ASSERT_EQ(0, s.trainer.state->place);
    sends = test_driver.uploaded;
    ASSERT_EQ(MTAN_OK, mtan_trainer_step(&s.trainer, s.records + 2, 2, 1, &report));
    ASSERT_EQ(1, s.trainer.state->place);
    ASSERT(!s.trainer.state->ahead.batch);
    ASSERT_EQ(2, test_driver.uploaded - sends); /* reference points and shares alone */
    mtan_trainer_next(&s.trainer, s.records, 3);
    ASSERT_EQ(MTAN_OK, mtan_trainer_step(&s.trainer, s.records, 2, 1, &report));
    ASSERT_EQ(MTAN_OK, mtan_trainer_loss(&s.trainer, s.records, 4, 1, &report)); /* no step */
    ASSERT(s.trainer.state->ahead.batch);
    ASSERT_EQ(MTAN_OK, mtan_trainer_step(&s.trainer, s.records, 2, 1, &report)); /* not what was said, */
    ASSERT(!s.trainer.state->ahead.batch);                                       /* which may be gone by now */
    mtan_trainer_next(&s.trainer, s.records, 2);
    ASSERT_EQ(MTAN_OK, mtan_trainer_step(&s.trainer, s.records, 2, 1, &report));
    mtan_trainer_next(&s.trainer, NULL, 0);
    ASSERT(!s.trainer.state->ahead.batch);
    mtan_trainer_next(&s.trainer, s.records, 2);
    s.labels[0] = 100;
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_trainer_step(&s.trainer, s.records, 2, 1, &report));
    ASSERT(!s.trainer.state->next); /* a step that fails has no next */
    mtan_trainer_next(&s.trainer, s.records, 2);
    ASSERT_EQ(MTAN_OK, mtan_trainer_step(&s.trainer, s.records + 2, 2, 1, &report));
    ASSERT(!s.trainer.state->ahead.batch); /* what is wrong with it, its own step will say */
    s.labels[0] = 0;
    mtan_trainer_next(&s.trainer, s.records, 5); /* more than the bounds: left to the step itself */
    ASSERT_EQ(MTAN_OK, mtan_trainer_step(&s.trainer, s.records, 2, 1, &report));
    ASSERT_EQ(MTAN_ERR_MEMORY, mtan_trainer_step(&s.trainer, s.records, 5, 1, &report));
    ASSERT(tiny_close(&s));
    ASSERT(device_close_for_models());
    PASS();
}

/* ---- everything that a predictor does ---- */

enum { MOST_ANSWERS = 4096 };

static size_t answers_of(tiny_model *s, mtan_real *out) {
    const int full = s->config.kind == MTAN_FULL, curves = full && s->config.classify != MTAN_CLASSIFY_TIME;
    size_t n = 0;
    int32_t points;
    memset(out, 0, MOST_ANSWERS * sizeof *out);
    tiny_predict(s, 2);
    if (s->config.classify != MTAN_CLASSIFY_NONE) {
        if (mtan_predictor_classify(&s->predictor, s->records, s->n, out) != MTAN_OK) return 0;
        n = 1000;
        if (mtan_predictor_logits(&s->predictor, s->records, s->n, out + n) != MTAN_OK) return 0;
        n = 2000;
    }
    for (int32_t i = 0; curves && i < s->n; i++) {
        mtan_real mean[TINY_TIMES * TINY_CHANNELS] = {0}, std[TINY_TIMES * TINY_CHANNELS] = {0};
        if (mtan_predictor_interpolate(&s->predictor, &s->records[i], mean, std) != MTAN_OK) return 0;
        memcpy(out + n, mean, sizeof mean), memcpy(out + n + TINY_TIMES * TINY_CHANNELS, std, sizeof std);
        n += 2 * TINY_TIMES * TINY_CHANNELS;
    }
    if (full && mtan_predictor_latent(&s->predictor, s->records, out + n, out + n + 200) != MTAN_OK) return 0;
    n += 400;
    points = s->config.reference == MTAN_REF_OBSERVED ? TINY_TIMES : s->config.ref_points;
    if (mtan_predictor_attention(&s->predictor, s->records, 0, 1, out + n) != MTAN_OK) return 0;
    return n + (size_t)(points * TINY_TIMES);
}

TEST prediction_agrees(int kind) {
    tiny_model a, b;
    mtan_real got[MOST_ANSWERS], wanted[MOST_ANSWERS];
    size_t n;
    ASSERT(device_open_for_models(1, 3));
    tiny_open(&a, (tiny_kind)kind, 3), tiny_open(&b, (tiny_kind)kind, 3);
    a.model.backend = &mtan_backend_cuda, b.model.backend = cuda_expected();
    ASSERT(mtan_cuda_send(a.weights, a.count * sizeof *a.weights));
    n = answers_of(&a, got);
    ASSERT(n > 0 && n <= MOST_ANSWERS);
    ASSERT_EQ(n, answers_of(&b, wanted));
    ASSERT(cuda_compare(tiny_names[kind], got, wanted, n, KERNEL_NEAR));
    ASSERT(tiny_close(&a) && tiny_close(&b));
    ASSERT(device_close_for_models());
    PASS();
}

/* What the library does on the host alone is refused with a device. */
TEST what_a_device_cannot_do_is_refused(void) {
    tiny_model s;
    mtan_train_config config;
    size_t bytes;
    tiny_open(&s, TINY_ENC, 2);
    s.model.backend = &mtan_backend_cuda;
    mtan_train_config_init(&config);
    ASSERT_EQ(MTAN_OK, mtan_trainer_size(&s.model, &config, &s.bounds, &bytes));
    config.ranks = 2;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_trainer_size(&s.model, &config, &s.bounds, &bytes));
    config.ranks = 1, config.threads = 2;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_trainer_size(&s.model, &config, &s.bounds, &bytes));
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_stream_size(&s.model, 0, &bytes));
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_small_size(&s.model, 1, &bytes));
    ASSERT(tiny_close(&s));
    PASS();
}

/* Call after call of a step fails: the library says that the device did, and the device says how. */
TEST every_failure_reaches_the_caller(void) {
    int failures = 0;
    for (int k = 1;; k += 17) {
        tiny_model s;
        mtan_train_config config;
        mtan_report report;
        mtan_status status;
        ASSERT(device_open_for_models(0, 1));
        mtan_train_config_init(&config);
        tiny_on(&s, TINY_FULL, 2, &mtan_backend_cuda, &config);
        test_driver.fail_at = test_driver.calls + k, test_driver.error = 719;
        mtan_trainer_next(&s.trainer, s.records, 2);
        status = mtan_trainer_step(&s.trainer, s.records, 2, 1, &report);
        if (test_driver.failed) {
            /* the optimiser's launch is the last call: the next step says so */
            if (status == MTAN_OK) status = mtan_trainer_step(&s.trainer, s.records, 2, 1, &report);
            ASSERT_EQ(MTAN_ERR_DEVICE, status);
            ASSERT(strstr(device.message, "the GPU stopped"));
            failures++;
        }
        ASSERT(tiny_close(&s));
        guard_watch.given = NULL, guard_watch.taken = NULL;
        mtan_cuda_close(&device);
        ASSERT_EQ(0, driver_given_out());
        if (!test_driver.failed) break;
    }
    ASSERT(failures > 10);
    ASSERT_EQ(0, shim.faults);
    driver_reset();
    PASS();
}

/* ---- the host side ---- */

enum { COLS = 7, ROWS = 70 };

/* Where a scenario ended: a status, or numbers that are right. */
static mtan_cuda_status use_memory(mtan_cuda *d, mtan_real *x, mtan_real *y) {
    mtan_real here[ROWS * COLS], back[COLS] = {0};
    double sum;
    for (int i = 0; i < ROWS * COLS; i++) here[i] = (mtan_real)(i % COLS);
    if (mtan_cuda_upload(d, x, here, sizeof here)) return d->status;
    mtan_backend_cuda.fill(y, COLS, 1);
    mtan_backend_cuda.add(y, 0, x, COLS, ROWS, COLS); /* in parts, which need memory of their own */
    mtan_backend_cuda.product_nt(y, COLS, x, COLS, x, COLS, 1, 1, COLS, 0);
    sum = mtan_backend_cuda.sum(x, ROWS * COLS);
    if (mtan_cuda_download(d, back, y, sizeof back) || mtan_cuda_sync(d)) return d->status;
    return sum == ROWS * 21 && back[0] == 91 && back[6] == 1 + 6 * ROWS ? MTAN_CUDA_OK : MTAN_CUDA_FAILED;
}

/* Batch after batch into two places in turn, each sent while the one before it is worked on. */
static mtan_cuda_status send_batches(mtan_cuda *d, int waits) {
    mtan_real x[2][100], sums[6] = {0};
    mtan_cuda_status status = mtan_cuda_mirror(d, x, sizeof x);
    if (!status && (status = mtan_cuda_mirror(d, sums, sizeof sums)) != MTAN_CUDA_OK) mtan_cuda_unmirror(d, x);
    if (status) return status;
    mtan_cuda_send(sums, sizeof sums);
    for (int i = 0; i < 6; i++) {
        mtan_real *to = x[i % 2];
        for (int j = 0; j < 100; j++) to[j] = (mtan_real)(i + 1);
        mtan_cuda_send_ahead(to, sizeof x[0]);
        if (i > 0) mtan_cuda_fetch(&sums[i - 1], sizeof *sums); /* as a step ends */
        if (waits) mtan_cuda_arrive();
        mtan_backend_cuda.add(&sums[i], 0, to, 1, 100, 1);
    }
    status = mtan_cuda_fetch(sums, sizeof sums) ? MTAN_CUDA_OK : d->status;
    for (int i = 0; !status && i < 6; i++)
        if (sums[i] != (mtan_real)(100 * (i + 1))) status = MTAN_CUDA_FAILED;
    mtan_cuda_unmirror(d, sums), mtan_cuda_unmirror(d, x);
    return status;
}

static mtan_cuda_status use_mirror(mtan_cuda *d) {
    mtan_real x[COLS];
    mtan_cuda_status status = mtan_cuda_mirror(d, x, sizeof x);
    if (status) return status;
    mtan_cuda_send(x, sizeof x);
    mtan_backend_cuda.fill(x, COLS, 3);
    if (mtan_cuda_fetch(x, sizeof x)) status = x[0] == 3 && x[COLS - 1] == 3 ? MTAN_CUDA_OK : MTAN_CUDA_FAILED;
    else status = d->status;
    mtan_cuda_unmirror(d, x);
    return status;
}

/* A whole life: everything the host side does once. */
static mtan_cuda_status live(mtan_cuda *d) {
    mtan_real *x = NULL, *y = NULL;
    mtan_cuda_status status = mtan_cuda_open(d, &test_driver_functions, &test_blas_functions, 0, test_driver_image);
    if (status) return status;
    x = mtan_cuda_alloc(d, ROWS * COLS * sizeof *x);
    if (x) y = mtan_cuda_alloc(d, COLS * sizeof *y);
    if (!x || !y) status = d->status ? d->status : MTAN_CUDA_NO_MEMORY;
    if (!status) status = use_memory(d, x, y);
    if (!status) status = send_batches(d, 1);
    if (!status) status = use_mirror(d);
    mtan_cuda_free(d, y), mtan_cuda_free(d, x);
    mtan_cuda_close(d);
    return status;
}

/* What may fail without a word: giving back, what closing waits for, pinned memory, and a cuBLAS that does not start. */
static int is_unimportant(const char *call) {
    static const char *const calls[] = {"free_block",    "host_free",       "stream_destroy", "event_destroy",
                                        "module_unload", "context_release", "blas_create",    "blas_set_stream",
                                        "blas_destroy",  "stream_sync",     "context_push",   "context_pop",
                                        "host_alloc"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(call, calls[i]) == 0) return 1;
    return 0;
}

/* Call after call fails: each time there is a status and a sentence, everything is given back, and the next life is a good
 * one. */
TEST every_failure_is_told(int error, mtan_cuda_status kind) {
    mtan_cuda d;
    char own;
    int told = 0;
    ASSERT(device_open(NULL) && device_close());
    for (int k = 1;; k++) {
        mtan_cuda_status status;
        driver_reset();
        driver_set_current(&own);
        test_driver.fail_at = k, test_driver.error = error;
        memset(&d, 0xFF, sizeof d);
        status = live(&d);
        if (!test_driver.failed) break; /* there are fewer calls */
        if (driver_given_out() || (status == MTAN_CUDA_OK && !is_unimportant(test_driver.failed)))
            printf("  BAD %s failed: %d things kept, status %d\n", test_driver.failed, driver_given_out(), (int)status);
        ASSERT_EQ(0, driver_given_out());
        ASSERT(test_driver.left == 0 ||
               strcmp(test_driver.failed, "context_push") == 0); /* the context goes unentered */
        ASSERT(driver_current() == &own);
        ASSERT(status != MTAN_CUDA_OK || is_unimportant(test_driver.failed));
        if (status == MTAN_CUDA_OK) continue;
        told++;
        ASSERT_EQ(kind, status);
        ASSERT(strlen(d.message) > 20 && strstr(d.message, "failed"));
    }
    driver_reset();
    ASSERT_EQ(MTAN_CUDA_OK, live(&d));
    ASSERT(told > cuda_kernel_count);
    ASSERT_EQ(0, shim.faults);
    PASS();
}

/* Of what can be wrong with the kernels' image, each has its own remedy, which stands whole in the message. */
TEST a_bad_image_gets_its_remedy(int error, const char *remedy) {
    mtan_cuda d;
    driver_reset();
    test_driver.fail_in = "module_load", test_driver.error = error;
    ASSERT_EQ(MTAN_CUDA_NO_KERNELS, mtan_cuda_open(&d, &test_driver_functions, NULL, 0, test_driver_image));
    if (!strstr(d.message, remedy)) printf("  BAD %s\n", d.message);
    ASSERT(strstr(d.message, remedy));
    ASSERT(strlen(d.message) + strlen("JIT_COMPILATION_DISABLED") < sizeof d.message); /* for the longest name */
    ASSERT_EQ(0, driver_given_out());
    driver_reset();
    PASS();
}

/* Without pinned memory everything is as it was, but slower; the driver is asked for it once, not at every batch. */
TEST pinned_memory_can_be_missing(int error, int deferred) {
    mtan_cuda d;
    driver_reset();
    test_driver.fail_in = "host_alloc", test_driver.error = error;
    test_driver.deferred = deferred, test_driver.random = 1;
    test_driver.pinned_asked = 0;
    ASSERT_EQ(MTAN_CUDA_OK, live(&d));
    ASSERT(test_driver.failed);
    ASSERT_EQ(1, test_driver.pinned_asked);
    ASSERT_EQ(MTAN_CUDA_OK, d.status);
    ASSERT_EQ(0, driver_given_out());
    ASSERT_EQ(0, test_driver.left);
    ASSERT_EQ(0, shim.faults);
    driver_reset();
    PASS();
}

/* What may be wrong with the driver or the card itself, when it is looked for. */
TEST a_bad_driver_gets_its_remedy(int error, mtan_cuda_status kind, const char *remedy) {
    mtan_cuda d;
    driver_reset();
    test_driver.fail_in = "init", test_driver.error = error;
    ASSERT_EQ(kind, mtan_cuda_open(&d, &test_driver_functions, NULL, 0, test_driver_image));
    if (!strstr(d.message, remedy)) printf("  BAD %s\n", d.message);
    ASSERT(strstr(d.message, remedy));
    driver_reset();
    PASS();
}

/* A batch too large for the pinned memory that is to be had leaves the smaller ones theirs. */
TEST pinned_memory_that_does_not_grow_stays(void) {
    enum { LARGE = 1 << 19 };
    mtan_real *x = calloc(LARGE, sizeof *x);
    int asked, waits;
    ASSERT(x && device_open(NULL));
    ASSERT_EQ(MTAN_CUDA_OK, mtan_cuda_mirror(&device, x, LARGE * sizeof *x));
    ASSERT(mtan_cuda_send_ahead(x, 100 * sizeof *x));
    test_driver.fail_in = "host_alloc", test_driver.error = 2;
    ASSERT(mtan_cuda_send_ahead(x, LARGE * sizeof *x));
    ASSERT(test_driver.failed);
    asked = test_driver.pinned_asked;
    ASSERT(mtan_cuda_send_ahead(x, LARGE * sizeof *x));
    waits = test_driver.waits;
    ASSERT(mtan_cuda_send_ahead(x, 100 * sizeof *x));
    ASSERT_EQ(waits, test_driver.waits);
    ASSERT_EQ(asked, test_driver.pinned_asked);
    ASSERT(device_close());
    driver_reset();
    free(x);
    PASS();
}

TEST running_out_of_memory_is_no_end(void) {
    mtan_real *x;
    ASSERT(device_open(NULL));
    test_driver.fail_in = "alloc", test_driver.error = 2;
    ASSERT_EQ(NULL, mtan_cuda_alloc(&device, 100));
    test_driver.fail_in = NULL;
    ASSERT(strstr(device.message, "out of memory"));
    ASSERT_EQ(MTAN_CUDA_OK, device.status);
    x = mtan_cuda_alloc(&device, 4 * sizeof *x);
    ASSERT(x);
    mtan_backend_cuda.fill(x, 4, 3);
    ASSERT_EQ(12.0, mtan_backend_cuda.sum(x, 4));
    mtan_cuda_free(&device, x);
    ASSERT(device_close());
    PASS();
}

/* A kernel goes wrong: nothing is computed any more, sums are NaN, and the status says so until the device is opened anew. */
TEST a_lost_device_stays_lost(void) {
    mtan_real *x;
    int launches;
    ASSERT(device_open(NULL));
    x = mtan_cuda_alloc(&device, 4 * sizeof *x);
    test_driver.fail_in = "launch", test_driver.error = 719;
    mtan_backend_cuda.fill(x, 4, 3);
    test_driver.fail_in = NULL;
    launches = test_driver.launches;
    ASSERT(isnan(mtan_backend_cuda.sum(x, 4)));
    mtan_backend_cuda.fill(x, 4, 3);
    ASSERT_EQ(launches, test_driver.launches);
    ASSERT_EQ(MTAN_CUDA_LOST, mtan_cuda_sync(&device));
    ASSERT(strstr(device.message, "fill_kernel") && strstr(device.message, "the GPU stopped"));
    ASSERT_EQ(NULL, mtan_cuda_alloc(&device, 4));
    mtan_cuda_free(&device, x);
    mtan_cuda_close(&device);
    ASSERT_EQ(0, driver_given_out());
    ASSERT(device_open(NULL) && device_close());
    PASS();
}

/* Memory of the host that something is on its way to is free when mtan_cuda_sync has returned, whatever has failed since. */
TEST a_failed_device_is_waited_for(void) {
    mtan_real back[4] = {0}, *x;
    ASSERT(device_open(NULL));
    test_driver.deferred = 2;
    x = mtan_cuda_alloc(&device, sizeof back);
    mtan_backend_cuda.fill(x, 4, 3);
    ASSERT_EQ(MTAN_CUDA_OK, mtan_cuda_download(&device, back, x, sizeof back));
    mtan_cuda_refuse("a test says no");
    ASSERT_EQ(0, back[0]);
    ASSERT_EQ(MTAN_CUDA_FAILED, mtan_cuda_sync(&device));
    ASSERT(back[0] == 3 && back[3] == 3);
    ASSERT(strstr(device.message, "a test says no"));
    mtan_cuda_free(&device, x);
    mtan_cuda_close(&device);
    ASSERT_EQ(0, driver_given_out());
    PASS();
}

TEST memory_is_freed_when_kernels_are_done(void) {
    mtan_real *x;
    ASSERT(device_open(NULL));
    test_driver.deferred = 2;
    x = mtan_cuda_alloc(&device, 4 * sizeof *x);
    mtan_backend_cuda.fill(x, 4, 3);
    mtan_cuda_free(&device, x);
    ASSERT_EQ(0, test_driver.hasty);
    ASSERT(device_close());
    PASS();
}

/* ---- several devices, and a program that has a context of its own ---- */

static int device_opens(mtan_cuda *d, int ordinal) {
    return mtan_cuda_open(d, &test_driver_functions, &test_blas_functions, ordinal, test_driver_image) == MTAN_CUDA_OK;
}

/* Whether the device in use does its work. */
static int device_works(mtan_cuda *d) {
    const mtan_real here[4] = {1, 2, 3, 4};
    mtan_real *x = mtan_cuda_alloc(d, sizeof here);
    double sum;
    if (!x || mtan_cuda_upload(d, x, here, sizeof here)) return 0;
    mtan_backend_cuda.scale(x, 4, 1, 4, 2);
    sum = mtan_backend_cuda.sum(x, 4);
    mtan_cuda_free(d, x);
    if (d->status) printf("  BAD %s\n", d->message);
    return sum == 20 && mtan_cuda_sync(d) == MTAN_CUDA_OK;
}

TEST closing_one_device_leaves_the_other(void) {
    mtan_cuda a, b;
    driver_reset();
    ASSERT(device_opens(&a, 0) && device_works(&a));
    ASSERT(device_opens(&b, 1) && device_works(&b));
    mtan_cuda_use(&a);
    mtan_cuda_close(&b);
    ASSERT(device_works(&a));
    ASSERT(device_opens(&b, 1) && device_works(&b));
    mtan_cuda_close(&a);
    ASSERT(device_works(&b));
    mtan_cuda_close(&b);
    ASSERT_EQ(0, driver_given_out());
    ASSERT_EQ(0, test_driver.left);
    PASS();
}

/* Call after call of opening a second device fails, and each time the first one goes on. */
TEST failing_to_open_leaves_the_other(void) {
    mtan_cuda a, b;
    int failures = 0;
    driver_reset();
    ASSERT(device_opens(&a, 0));
    for (;; failures++) {
        test_driver.fail_at = test_driver.calls + failures + 1, test_driver.error = 2;
        if (device_opens(&b, 1)) break;
        ASSERT(device_works(&a));
        ASSERT_EQ(1, test_driver.contexts);
    }
    ASSERT(failures > cuda_kernel_count);
    mtan_cuda_close(&b);
    mtan_cuda_use(&a);
    ASSERT(device_works(&a));
    mtan_cuda_close(&a);
    ASSERT_EQ(0, driver_given_out());
    ASSERT_EQ(0, test_driver.left);
    PASS();
}

/* Memory is its device's, whichever is in use. */
TEST memory_is_of_its_device(void) {
    const mtan_real here[4] = {1, 2, 3, 4};
    mtan_real kept[4] = {5, 6, 7, 8}, back[4] = {0}, *x;
    mtan_cuda a, b;
    driver_reset();
    ASSERT(device_opens(&a, 0) && device_opens(&b, 1)); /* which is in use */
    x = mtan_cuda_alloc(&a, sizeof here);
    ASSERT_EQ(MTAN_CUDA_OK, mtan_cuda_upload(&a, x, here, sizeof here));
    ASSERT_EQ(MTAN_CUDA_OK, mtan_cuda_mirror(&a, kept, sizeof kept));
    ASSERT(device_works(&b));
    ASSERT_EQ(MTAN_CUDA_OK, mtan_cuda_download(&a, back, x, sizeof back));
    ASSERT_EQ(MTAN_CUDA_OK, mtan_cuda_sync(&a));
    ASSERT_EQ(0, memcmp(back, here, sizeof back));
    mtan_cuda_free(&a, x);
    mtan_cuda_use(&a);
    ASSERT(mtan_cuda_send(kept, sizeof kept));
    ASSERT_EQ(26.0, mtan_backend_cuda.sum(kept, 4));
    mtan_cuda_use(&b);
    mtan_cuda_unmirror(&a, kept);
    ASSERT(device_works(&b));
    mtan_cuda_close(&b), mtan_cuda_close(&a);
    ASSERT_EQ(0, driver_given_out());
    ASSERT_EQ(0, test_driver.left);
    PASS();
}

/* The program around, or another library in it, has a context: it is current after whatever is called here. */
TEST the_context_of_the_program_stays(void) {
    mtan_real here[4] = {1, 2, 3, 4}, *x;
    mtan_cuda d;
    char own;
    int calls = 0;
    driver_reset();
    driver_set_current(&own);
#define STAYS(call)                                                                                                    \
    do {                                                                                                               \
        call;                                                                                                          \
        if (driver_current() != &own) printf("  BAD after %s\n", #call);                                               \
        ASSERT(driver_current() == &own);                                                                              \
        calls++;                                                                                                       \
    } while (0)
    STAYS(ASSERT_FALSE(device_opens(&d, 2)));
    test_driver.fail_in = "module_load", test_driver.error = 222;
    STAYS(ASSERT_FALSE(device_opens(&d, 0)));
    test_driver.fail_in = NULL;
    STAYS(ASSERT(device_opens(&d, 0)));
    STAYS(mtan_cuda_use(NULL));
    STAYS(mtan_cuda_use(&d));
    STAYS(ASSERT((x = mtan_cuda_alloc(&d, sizeof here)) != NULL));
    STAYS(mtan_cuda_upload(&d, x, here, sizeof here));
    STAYS(mtan_backend_cuda.fill(x, 4, 2));
    STAYS(ASSERT_EQ(8.0, mtan_backend_cuda.sum(x, 4)));
    STAYS(mtan_cuda_download(&d, here, x, sizeof here));
    STAYS(ASSERT_EQ(MTAN_CUDA_OK, mtan_cuda_sync(&d)));
    STAYS(mtan_cuda_free(&d, x));
    STAYS(mtan_cuda_mirror(&d, here, sizeof here));
    STAYS(ASSERT(mtan_cuda_send(here, sizeof here)));
    STAYS(ASSERT(mtan_cuda_send_ahead(here, sizeof here)));
    STAYS(ASSERT(mtan_cuda_arrive()));
    STAYS(ASSERT(mtan_cuda_fetch(here, sizeof here)));
    STAYS(mtan_cuda_unmirror(&d, here));
    STAYS(mtan_cuda_close(&d));
#undef STAYS
    ASSERT_EQ(19, calls);
    driver_set_current(NULL);
    ASSERT_EQ(0, driver_given_out());
    PASS();
}

/* A context that has gone, with all that was in it: the device says so, and closing it still lets go of the context. */
TEST a_context_that_cannot_be_entered_is_told(void) {
    mtan_real *x;
    ASSERT(device_open(NULL));
    x = mtan_cuda_alloc(&device, 4 * sizeof *x);
    test_driver.fail_in = "context_push", test_driver.error = 709;
    mtan_backend_cuda.fill(x, 4, 3);
    ASSERT_EQ(0, test_driver.launches);
    ASSERT_EQ(MTAN_CUDA_LOST, mtan_cuda_sync(&device));
    ASSERT(strstr(device.message, "cuCtxPushCurrent"));
    mtan_cuda_free(&device, x);
    mtan_cuda_close(&device);
    ASSERT(test_driver.left > 0);
    ASSERT_EQ(0, driver_given_out());
    driver_reset();
    PASS();
}

TEST a_closed_device_does_nothing(void) {
    mtan_real *x;
    ASSERT(device_open(NULL));
    x = mtan_cuda_alloc(&device, 4 * sizeof *x);
    mtan_cuda_close(&device);
    mtan_cuda_free(&device, x);
    ASSERT_EQ(MTAN_CUDA_OK, device.status);
    mtan_cuda_use(&device);
    ASSERT(isnan(mtan_backend_cuda.sum(x, 4)));
    ASSERT_EQ(MTAN_CUDA_FAILED, device.status);
    ASSERT(strstr(device.message, "not open"));
    mtan_cuda_close(&device);
    ASSERT_EQ(0, driver_given_out());
    PASS();
}

TEST a_wrong_number_is_no_device(void) {
    mtan_cuda d;
    driver_reset();
    ASSERT_EQ(MTAN_CUDA_NO_DEVICE, mtan_cuda_open(&d, &test_driver_functions, NULL, 2, test_driver_image));
    ASSERT(strstr(d.message, "number 2"));
    ASSERT_EQ(MTAN_CUDA_NO_DEVICE, mtan_cuda_open(&d, &test_driver_functions, NULL, -1, test_driver_image));
    ASSERT_EQ(0, driver_given_out());
    PASS();
}

/* Without a device kernels do nothing, and say so. */
TEST no_device_does_nothing(void) {
    mtan_real x[4] = {1, 2, 3, 4};
    mtan_cuda_use(NULL);
    mtan_backend_cuda.fill(x, 4, 9);
    ASSERT_EQ(1, x[0]);
    ASSERT(isnan(mtan_backend_cuda.sum(x, 4)));
    PASS();
}

/* Uploads that start late, kernels that run late: each batch is still seen whole, and by the kernels it is meant for. */
TEST batches_come_over_in_time(int seed) {
    ASSERT(device_open(NULL));
    test_driver.deferred = 1, test_driver.random = (unsigned long long)seed + 1;
    ASSERT_EQ(MTAN_CUDA_OK, send_batches(&device, 1));
    ASSERT(device_close());
    PASS();
}

/* The deferred driver is worth something only if it punishes who does not wait. */
TEST a_batch_that_is_not_waited_for_shows(void) {
    int wrong = 0;
    for (unsigned seed = 1; seed < 20; seed++) {
        ASSERT(device_open(NULL));
        test_driver.deferred = 1, test_driver.random = seed;
        wrong += send_batches(&device, 0) != MTAN_CUDA_OK;
        mtan_cuda_close(&device);
        ASSERT_EQ(0, driver_given_out());
    }
    ASSERT(wrong > 0);
    shim_clear();
    PASS();
}

enum { SENDS = 5, SENT_REALS = 1500000 };

/* Sends, each written over as soon as it has returned; 1 if the device has got what was there before. */
static int sends_are_taken(mtan_real *x, size_t n) {
    const size_t each = n / SENDS;
    for (size_t i = 0; i < n; i++) x[i] = (mtan_real)(i % 1000);
    for (size_t i = 0; i < SENDS; i++) {
        if (!mtan_cuda_send(x + i * each, each * sizeof *x)) return 0;
        memset(x + i * each, 0, each * sizeof *x);
    }
    if (!mtan_cuda_fetch(x, SENDS * each * sizeof *x)) return 0;
    for (size_t i = 0; i < SENDS * each; i++)
        if (x[i] != (mtan_real)(i % 1000)) return 0;
    return 1;
}

/* Whatever the driver does with memory that is not pinned, and however much there is: a send has taken the bytes. */
TEST what_is_sent_may_change(int deferred, int pinned) {
    mtan_real *x = malloc(SENT_REALS * sizeof *x);
    ASSERT(x && device_open(NULL));
    test_driver.deferred = deferred;
    if (!pinned) test_driver.fail_in = "host_alloc", test_driver.error = 2;
    ASSERT_EQ(MTAN_CUDA_OK, mtan_cuda_mirror(&device, x, SENT_REALS * sizeof *x));
    for (size_t n = 5; n <= SENT_REALS; n = 3 * n + 1) ASSERT(sends_are_taken(x, n));
    ASSERT(sends_are_taken(x, SENT_REALS));
    ASSERT(device_close());
    driver_reset();
    free(x);
    PASS();
}

/* The same for memory without a mirror, which may be gone by then. */
TEST what_is_uploaded_may_change(void) {
    mtan_real here[4] = {1, 2, 3, 4}, *x;
    ASSERT(device_open(NULL));
    test_driver.deferred = 2;
    x = mtan_cuda_alloc(&device, sizeof here);
    ASSERT_EQ(MTAN_CUDA_OK, mtan_cuda_upload(&device, x, here, sizeof here));
    memset(here, 0, sizeof here);
    ASSERT_EQ(10.0, mtan_backend_cuda.sum(x, 4));
    mtan_cuda_free(&device, x);
    ASSERT(device_close());
    PASS();
}

/* What is small goes on its way without the host waiting for the kernels before it. */
TEST small_sends_do_not_wait(void) {
    mtan_real x[100] = {0};
    int waits;
    ASSERT(device_open(NULL));
    test_driver.deferred = 2;
    ASSERT_EQ(MTAN_CUDA_OK, mtan_cuda_mirror(&device, x, sizeof x));
    ASSERT(mtan_cuda_send(x, sizeof x)); /* the first finds its pinned memory */
    waits = test_driver.waits;
    for (int i = 0; i < 20; i++) {
        mtan_backend_cuda.fill(x, 100, 1);
        ASSERT(mtan_cuda_send(x, sizeof x));
    }
    ASSERT_EQ(waits, test_driver.waits);
    for (int i = 0; i < 10000; i++) { /* 4 MB in all, as steps send them: not one more wait than is asked for */
        ASSERT(mtan_cuda_send(x, sizeof x));
        if (i % 100 == 0) ASSERT(mtan_cuda_fetch(x, 0));
    }
    ASSERT_EQ(100, test_driver.waits - waits);
    ASSERT(device_close());
    PASS();
}

/* Large products go to cuBLAS where it is there, small ones never. */
TEST cublas_does_large_products(void) {
    static const char *const names[] = {"product_nn", "product_nt", "product_tn"};
    ASSERT(device_open(&test_blas_functions));
    for (int i = 0; i < 3; i++)
        for (int32_t add = 0; add < 2; add++) {
            const kernel_shape large = {90, 110, 120, 3, add}, small = {9, 11, 12, 3, add};
            ASSERT(cuda_agree(kernel_case_named(names[i]), &large, KERNEL_NEAR, &device, 0));
            ASSERT_EQ(2 * i + add + 1, test_driver.products);
            ASSERT(cuda_agree(kernel_case_named(names[i]), &small, KERNEL_NEAR, &device, 0));
            ASSERT_EQ(2 * i + add + 1, test_driver.products);
        }
    ASSERT(device_close());
    PASS();
}

/* A cuBLAS without code for the card starts and then fails: the kernels here go on without it. */
TEST a_failing_cublas_is_left(void) {
    const kernel_shape large = {90, 110, 120, 3, 1};
    ASSERT(device_open(&test_blas_functions));
    test_driver.blas_fails = 1;
    ASSERT(cuda_agree(kernel_case_named("product_nt"), &large, KERNEL_NEAR, &device, 0));
    ASSERT_EQ(0, test_driver.products);
    ASSERT(!device.blas && test_driver.blas == 0);
    ASSERT(device_close());
    PASS();
}

TEST a_driver_is_found_or_missed(void) {
    mtan_cuda_driver driver;
    mtan_cuda_blas blas;
    char message[128] = "";
    const mtan_cuda_status status = mtan_cuda_load(&driver, &blas, message, sizeof message);
    ASSERT(status == MTAN_CUDA_OK ? driver.error_name != NULL && message[0] == 0
                                  : status == MTAN_CUDA_NO_DRIVER && strstr(message, "NVIDIA driver"));
    PASS();
}

static mtan_cuda_status load_with(int driver, int blas, const char *missing, mtan_cuda_driver *d, mtan_cuda_blas *b,
                                  char message[128]) {
    driver_libraries.driver = (char)driver, driver_libraries.blas = (char)blas, driver_libraries.missing = missing;
    memset(d, 0xFF, sizeof *d), memset(b, 0xFF, sizeof *b);
    message[0] = 0;
    return driver_load(d, b, message, 128);
}

/* No driver is one thing, and one that lacks a function is another; of neither a table is half filled. */
TEST an_old_driver_is_not_a_missing_one(void) {
    const mtan_cuda_driver no_driver = {0};
    mtan_cuda_driver driver;
    mtan_cuda_blas blas;
    char message[128];
    ASSERT_EQ(MTAN_CUDA_NO_DRIVER, load_with(0, 1, NULL, &driver, &blas, message));
    ASSERT_STR_EQ("CUDA: no NVIDIA driver here: libcuda is missing", message);
    ASSERT_EQ(MTAN_CUDA_NO_DRIVER, load_with(1, 1, "cuLaunchKernel", &driver, &blas, message));
    ASSERT_STR_EQ("CUDA: the NVIDIA driver is too old: it has no cuLaunchKernel", message);
    ASSERT_EQ(0, memcmp(&driver, &no_driver, sizeof driver));
    ASSERT_EQ(MTAN_CUDA_OK, load_with(1, 1, "cublasSgemm_v2", &driver, &blas, message));
    ASSERT(driver.init && driver.error_name && !blas.create && !blas.sgemm);
    ASSERT_EQ(MTAN_CUDA_OK, load_with(1, 0, NULL, &driver, &blas, message));
    ASSERT(driver.init && driver.error_name && !blas.create && !blas.sgemm);
    ASSERT_EQ(MTAN_CUDA_OK, load_with(1, 1, NULL, &driver, &blas, message));
    ASSERT(driver.init && driver.error_name && blas.create && blas.sgemm);
    ASSERT_STR_EQ("", message);
    ASSERT_EQ(MTAN_CUDA_OK, driver_load(&driver, NULL, NULL, 0));
    PASS();
}

/* Kernels are given addresses of the host's and work on their images; what is no image is refused. */
TEST mirrors_are_kept_apart(void) {
    mtan_real a[8] = {1, 2, 3, 4, 5, 6, 7, 8}, b[4] = {0}, c[2] = {0};
    ASSERT(device_open(NULL));
    test_driver.deferred = 1;
    ASSERT_EQ(MTAN_CUDA_OK, mtan_cuda_mirror(&device, a, sizeof a));
    ASSERT_EQ(MTAN_CUDA_OK, mtan_cuda_mirror(&device, b, sizeof b));
    ASSERT_EQ(MTAN_CUDA_FAILED, mtan_cuda_mirror(&device, a + 7, sizeof a)); /* overlaps, and is refused */
    ASSERT_EQ(MTAN_CUDA_OK, device.status);
    ASSERT(mtan_cuda_send(a, sizeof a) && mtan_cuda_send(b, sizeof b));
    mtan_backend_cuda.add(b + 1, 0, a + 5, 0, 1, 3);
    mtan_backend_cuda.scale(a + 8, 1, 0, 1, 2); /* nothing of what lies behind it */
    ASSERT_EQ(0, b[1]);                         /* not here */
    ASSERT_EQ(21.0, mtan_backend_cuda.sum(b, 4));
    ASSERT(mtan_cuda_fetch(b + 1, 2 * sizeof *b));
    ASSERT(b[1] == 6 && b[2] == 7 && b[3] == 0); /* no more than was asked for */
    mtan_backend_cuda.fill(c, 2, 9);
    ASSERT_EQ(MTAN_CUDA_FAILED, mtan_cuda_sync(&device));
    ASSERT(strstr(device.message, "not mirrored"));
    ASSERT_EQ(0, c[0]);
    ASSERT_FALSE(mtan_cuda_send(a, sizeof a));
    mtan_cuda_close(&device);
    ASSERT_EQ(0, driver_given_out());
    ASSERT_EQ(0, shim.faults);
    PASS();
}

/* A tensor that is aligned on the host is so on the device, whatever the block's own alignment. */
TEST images_are_aligned_as_the_host_is(void) {
    mtan_real memory[200];
    ASSERT(device_open(NULL));
    for (int i = 0; i < 64; i += 7) {
        ASSERT_EQ(MTAN_CUDA_OK, mtan_cuda_mirror(&device, memory + i, 100 * sizeof *memory));
        ASSERT_EQ((uintptr_t)&memory[i] % 256, (uintptr_t)mtan_cuda_there(&memory[i]) % 256);
        mtan_cuda_unmirror(&device, memory + i);
    }
    ASSERT(device_close());
    PASS();
}

/* One block ends where the next begins: an address there is the next one's. */
TEST neighbours_are_told_apart(void) {
    mtan_real both[16] = {0};
    ASSERT(device_open(NULL));
    ASSERT_EQ(MTAN_CUDA_OK, mtan_cuda_mirror(&device, both, 8 * sizeof *both));
    ASSERT_EQ(MTAN_CUDA_OK, mtan_cuda_mirror(&device, both + 8, 8 * sizeof *both));
    ASSERT(mtan_cuda_send(both, 8 * sizeof *both) && mtan_cuda_send(both + 8, 8 * sizeof *both));
    mtan_backend_cuda.fill(both + 8, 8, 3);
    ASSERT(mtan_cuda_fetch(both, 8 * sizeof *both) && mtan_cuda_fetch(both + 8, 8 * sizeof *both));
    ASSERT(both[7] == 0 && both[8] == 3 && both[15] == 3);
    ASSERT(device_close());
    PASS();
}

TEST every_entry_is_filled_once(void) {
    ASSERT_FALSE(kernel_missing(&mtan_backend_cuda));
    ASSERT_FALSE(kernel_twin(&mtan_backend_cuda));
    PASS();
}

static void shim_tests(void) {
    static const struct {
        int index;
        shim_fault kind;
    } wrong[] = {{CASE_reverse_without_barrier, SHIM_RACE},
                 {CASE_reverse_twice, SHIM_RACE},
                 {CASE_blocks_meet, SHIM_RACE},
                 {CASE_blocks_read, SHIM_RACE},
                 {CASE_one_too_far, SHIM_OUTSIDE},
                 {CASE_never_written, SHIM_UNWRITTEN},
                 {CASE_half_at_barrier, SHIM_BARRIER},
                 {CASE_two_barriers, SHIM_BARRIER},
                 {CASE_warps_without_barrier, SHIM_RACE},
                 {CASE_across_warps, SHIM_RACE},
                 {CASE_lane_missing, SHIM_BARRIER}};
    static const int right[] = {CASE_reverse, CASE_warps, CASE_bytes};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        greatest_set_test_suffix(cuda_cases[wrong[i].index].name);
        RUN_TESTp(shim_finds, wrong[i].index, wrong[i].kind);
    }
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        greatest_set_test_suffix(cuda_cases[right[i]].name);
        RUN_TESTp(shim_allows, right[i]);
    }
}

static void model_tests(void) {
    static const char *const models[] = {"enc-small", "enc-far",  "enc-piecewise", "full-piecewise",
                                         "full-iwae", "rbf-full", "train-interp"};
    static const int trained[] = {TINY_FULL, TINY_ENC_TIME, TINY_OBSERVED};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        greatest_set_test_suffix(models[i]);
        RUN_TESTp(model_agrees, models[i]);
    }
    for (size_t i = 0; i < sizeof trained / sizeof *trained; i++) {
        greatest_set_test_suffix(tiny_names[trained[i]]);
        RUN_TESTp(training_repeats, trained[i]);
    }
    for (int kind = 0; kind < TINY_KINDS; kind++) {
        greatest_set_test_suffix(tiny_names[kind]);
        RUN_TESTp(prediction_agrees, kind);
    }
    for (int from_the_first = 0; from_the_first < 2; from_the_first++)
        RUN_TESTp(training_needs_no_pinned_memory, from_the_first);
    RUN_TEST(batches_go_ahead);
    RUN_TEST(what_a_device_cannot_do_is_refused);
    RUN_TEST(every_failure_reaches_the_caller);
}

static void host_tests(void) {
    static const struct {
        int error;
        mtan_cuda_status kind;
        const char *name;
    } failures[] = {{2, MTAN_CUDA_NO_MEMORY, "memory"},
                    {100, MTAN_CUDA_NO_DEVICE, "device"},
                    {719, MTAN_CUDA_LOST, "lost"},
                    {999, MTAN_CUDA_FAILED, "unknown"}};
    static const struct {
        int error;
        mtan_cuda_status kind;
        const char *remedy, *name;
    } drivers[] = {{3, MTAN_CUDA_NO_DRIVER, "not there, or too old", "none"},
                   {34, MTAN_CUDA_NO_DRIVER, "a stub to link with", "stub"},
                   {36, MTAN_CUDA_NO_DRIVER, "not there, or too old", "old"},
                   {803, MTAN_CUDA_NO_DRIVER, "restart the machine", "mismatch"},
                   {804, MTAN_CUDA_NO_DRIVER, "cuda-compat", "compatibility"},
                   {46, MTAN_CUDA_NO_DEVICE, "another program has it", "busy"},
                   {214, MTAN_CUDA_LOST, "the GPU stopped", "memory errors"},
                   {220, MTAN_CUDA_LOST, "the GPU stopped", "link errors"},
                   {712, MTAN_CUDA_FAILED, "(712)", "registered"}};
    static const struct {
        int error;
        const char *remedy, *name;
    } images[] = {{200, "build them anew", "not an image"},
                  {209, "with an nvcc that serves it", "no code"},
                  {218, "could not compile", "bad PTX"},
                  {221, "libnvidia-ptxjitcompiler", "no compiler"},
                  {222, "the driver is older than the nvcc that made the kernels", "newer PTX"},
                  {223, "unset CUDA_DISABLE_PTX_JIT", "no compiling"}};
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        greatest_set_test_suffix(failures[i].name);
        RUN_TESTp(every_failure_is_told, failures[i].error, failures[i].kind);
    }
    for (size_t i = 0; i < sizeof images / sizeof *images; i++) {
        greatest_set_test_suffix(images[i].name);
        RUN_TESTp(a_bad_image_gets_its_remedy, images[i].error, images[i].remedy);
    }
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++) {
        greatest_set_test_suffix(drivers[i].name);
        RUN_TESTp(a_bad_driver_gets_its_remedy, drivers[i].error, drivers[i].kind, drivers[i].remedy);
    }
    for (int deferred = 0; deferred < 3; deferred++) {
        RUN_TESTp(pinned_memory_can_be_missing, 2, deferred);
        RUN_TESTp(pinned_memory_can_be_missing, 304, deferred); /* the operating system refuses */
    }
    RUN_TEST(pinned_memory_that_does_not_grow_stays);
    RUN_TEST(running_out_of_memory_is_no_end);
    RUN_TEST(a_lost_device_stays_lost);
    RUN_TEST(a_failed_device_is_waited_for);
    RUN_TEST(memory_is_freed_when_kernels_are_done);
    RUN_TEST(closing_one_device_leaves_the_other);
    RUN_TEST(failing_to_open_leaves_the_other);
    RUN_TEST(memory_is_of_its_device);
    RUN_TEST(the_context_of_the_program_stays);
    RUN_TEST(a_context_that_cannot_be_entered_is_told);
    RUN_TEST(a_closed_device_does_nothing);
    RUN_TEST(a_wrong_number_is_no_device);
    RUN_TEST(no_device_does_nothing);
    for (int seed = 0; seed < 3; seed++) RUN_TESTp(batches_come_over_in_time, seed);
    RUN_TEST(a_batch_that_is_not_waited_for_shows);
    for (int deferred = 0; deferred < 3; deferred++) {
        RUN_TESTp(what_is_sent_may_change, deferred, 0);
        RUN_TESTp(what_is_sent_may_change, deferred, 1);
    }
    RUN_TEST(what_is_uploaded_may_change);
    RUN_TEST(small_sends_do_not_wait);
    RUN_TEST(cublas_does_large_products);
    RUN_TEST(a_failing_cublas_is_left);
    RUN_TEST(a_driver_is_found_or_missed);
    RUN_TEST(an_old_driver_is_not_a_missing_one);
    RUN_TEST(mirrors_are_kept_apart);
    RUN_TEST(images_are_aligned_as_the_host_is);
    RUN_TEST(neighbours_are_told_apart);
    RUN_TEST(every_entry_is_filled_once);
}

SUITE(cuda_suite) {
    shim_tests();
    RUN_TEST(one_wrong_number_is_seen);
    RUN_TESTp(kernels_agree, 0, 0);
    RUN_TESTp(kernels_agree, 1, 1);
    RUN_TEST(every_barrier_is_needed);
    host_tests();
    model_tests();
}

#else

TEST there_is_no_shim(void) {
    SKIPm("kernels are in float, and need a C++ compiler to run on the CPU");
}

SUITE(cuda_suite) {
    RUN_TEST(there_is_no_shim);
}

#endif
