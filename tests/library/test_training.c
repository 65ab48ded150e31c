/* Training: optimisers against torch.optim, the schedule, shards, threads and ranks that must not change a bit. */
#define _POSIX_C_SOURCE 200112L /* clock_gettime */
#include <greatest.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "golden_file.h"
#include "tiny_model.h"

/* ---- optimisers ---- */

enum { OPTIM_WEIGHTS = 67, OPTIM_STEPS = 20 };

/* golden/README.md: the limit on the distance of one step's weights. */
static double step_limit(const double *ref, double err32) {
    const double size = check_length(ref, OPTIM_WEIGHTS);
    return sizeof(mtan_real) == sizeof(double) ? 1e-10 * size : 4 * err32 + 4 * ldexp(size, -24);
}

/* The golden gradient of a step at OPTIM_WEIGHTS weights from `first`, and 0 elsewhere. */
static void set_gradient(tiny_model *s, size_t first, size_t step) {
    memset(s->trainer.gradient, 0, s->count * sizeof(mtan_real));
    for (size_t i = 0; i < OPTIM_WEIGHTS; i++)
        s->trainer.gradient[first + i] =
            (mtan_real)(golden_u("optim.gradient", step * OPTIM_WEIGHTS + i) / (step % 2 ? 64 : 1));
}

/* The first 67 weights of a model take the golden steps, the others see a gradient of 0 and must not move. */
TEST optimizer_is_torchs(const char *tensor, mtan_optimizer optimizer, double clip) {
    double ref[OPTIM_STEPS * OPTIM_WEIGHTS], err[OPTIM_STEPS];
    char name[32];
    tiny_model s;
    mtan_train_config config;
    snprintf(name, sizeof name, "%s.err32", tensor);
    ASSERT(golden_read("optim.safetensors", tensor, MTAN_DTYPE_F64, ref, OPTIM_STEPS * OPTIM_WEIGHTS));
    ASSERT(golden_read("optim.safetensors", name, MTAN_DTYPE_F64, err, OPTIM_STEPS));
    tiny_open(&s, TINY_ENC, 1);
    mtan_train_config_init(&config);
    config.optimizer = optimizer, config.clip = clip, config.lr = 1e-3;
    tiny_train(&s, &config);
    for (size_t i = 0; i < OPTIM_WEIGHTS; i++) s.weights[i] = (mtan_real)golden_u("optim.weight", i);
    const mtan_real beyond = s.weights[OPTIM_WEIGHTS];
    for (size_t step = 0; step < OPTIM_STEPS; step++) {
        set_gradient(&s, 0, step);
        ASSERT_EQ(MTAN_OK, mtan_trainer_update(&s.trainer, 1));
        snprintf(name, sizeof name, "%s, step %d", tensor, (int)step + 1);
        ASSERT(check_norm(name, s.weights, ref + step * OPTIM_WEIGHTS, OPTIM_WEIGHTS,
                          step_limit(ref + step * OPTIM_WEIGHTS, err[step]), 0));
    }
    ASSERT(s.weights[OPTIM_WEIGHTS] == beyond);
    ASSERT_EQ(OPTIM_STEPS, (int)s.trainer.step);
    ASSERT(tiny_close(&s));
    PASS();
}

static double falling_rate(void *context, int64_t step, int32_t epoch) {
    (void)context, (void)epoch;
    return 1 / (double)step;
}

static mtan_param first_matrix(const mtan_config *c, int32_t least) {
    mtan_param p;
    for (int32_t i = 0; mtan_param_at(c, i, &p) == MTAN_OK; i++)
        if (p.rank == 2 && p.cols > 1 && p.rows * p.cols >= least) break;
    return p;
}

/* Golden weights in a matrix follow torch.optim.AdamW; without a gradient matrices shrink and nothing else moves. */
TEST decay_is_torchs(void) {
    double ref[OPTIM_STEPS * OPTIM_WEIGHTS], err[OPTIM_STEPS], kept = 1;
    char name[32];
    tiny_model s;
    mtan_param p;
    mtan_train_config config;
    ASSERT(golden_read("optim.safetensors", "adamw", MTAN_DTYPE_F64, ref, OPTIM_STEPS * OPTIM_WEIGHTS));
    ASSERT(golden_read("optim.safetensors", "adamw.err32", MTAN_DTYPE_F64, err, OPTIM_STEPS));
    tiny_open(&s, TINY_ENC, 1);
    mtan_train_config_init(&config);
    config.decay = 0.5, config.lr = 1e-3, config.schedule = falling_rate;
    tiny_train(&s, &config);
    const size_t first = first_matrix(&s.config, OPTIM_WEIGHTS + 1).offset;
    for (size_t i = 0; i < OPTIM_WEIGHTS; i++) s.weights[first + i] = (mtan_real)golden_u("optim.weight", i);
    mtan_real *before = tiny_copy(s.weights, s.count);
    for (size_t step = 0; step < OPTIM_STEPS; step++) {
        set_gradient(&s, first, step);
        ASSERT_EQ(MTAN_OK, mtan_trainer_update(&s.trainer, 1));
        snprintf(name, sizeof name, "adamw, step %d", (int)step + 1);
        ASSERT(check_norm(name, s.weights + first, ref + step * OPTIM_WEIGHTS, OPTIM_WEIGHTS,
                          step_limit(ref + step * OPTIM_WEIGHTS, err[step]), 0));
        kept *= 1 - 1e-3 / (double)(step + 1) * 0.5;
    }
    for (int32_t i = 0; mtan_param_at(&s.config, i, &p) == MTAN_OK; i++)
        for (size_t k = p.offset; k < p.offset + (size_t)p.rows * (size_t)p.cols; k++) {
            const double factor = p.rank == 2 && p.cols > 1 ? kept : 1, x = (double)before[k] * factor;
            if (k >= first && k < first + OPTIM_WEIGHTS) continue;
            ASSERT(fabs((double)s.weights[k] - x) <= (factor < 1 ? 1e-5 * fabs(x) : 0));
        }
    free(before);
    ASSERT(tiny_close(&s));
    PASS();
}

TEST average_is_torchs(void) {
    double ref[OPTIM_STEPS * OPTIM_WEIGHTS], err[OPTIM_STEPS];
    char name[32];
    tiny_model s;
    mtan_train_config config;
    ASSERT(golden_read("optim.safetensors", "averaged", MTAN_DTYPE_F64, ref, OPTIM_STEPS * OPTIM_WEIGHTS));
    ASSERT(golden_read("optim.safetensors", "averaged.err32", MTAN_DTYPE_F64, err, OPTIM_STEPS));
    tiny_open(&s, TINY_ENC, 1);
    mtan_train_config_init(&config);
    config.average = 0.9;
    tiny_train(&s, &config);
    for (size_t i = 0; i < OPTIM_WEIGHTS; i++) s.weights[i] = (mtan_real)golden_u("optim.weight", i);
    for (size_t step = 0; step < OPTIM_STEPS; step++) {
        set_gradient(&s, 0, step);
        ASSERT_EQ(MTAN_OK, mtan_trainer_update(&s.trainer, 1));
        snprintf(name, sizeof name, "averaged, step %d", (int)step + 1);
        ASSERT(check_norm(name, s.trainer.average, ref + step * OPTIM_WEIGHTS, OPTIM_WEIGHTS,
                          step_limit(ref + step * OPTIM_WEIGHTS, err[step]), 0));
    }
    ASSERT(s.trainer.average[OPTIM_WEIGHTS] == s.weights[OPTIM_WEIGHTS]);
    ASSERT(tiny_close(&s));
    PASS();
}

/* The block of a trainer without them is what it was. */
TEST average_alone_takes_memory(void) {
    tiny_model s;
    mtan_train_config config;
    const mtan_bounds bounds = {8, 64, 64};
    size_t plain, decayed, averaged;
    tiny_open(&s, TINY_ENC, 1);
    mtan_train_config_init(&config);
    ASSERT_EQ(MTAN_OK, mtan_trainer_size(&s.model, &config, &bounds, &plain));
    config.decay = 0.01;
    ASSERT_EQ(MTAN_OK, mtan_trainer_size(&s.model, &config, &bounds, &decayed));
    config.average = 0.99;
    ASSERT_EQ(MTAN_OK, mtan_trainer_size(&s.model, &config, &bounds, &averaged));
    ASSERT_EQ(plain, decayed);
    ASSERT(averaged >= plain + s.count * sizeof(mtan_real) && averaged < plain + (s.count + 64) * sizeof(mtan_real));
    config.average = 1;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_trainer_size(&s.model, &config, &bounds, &averaged));
    config.average = -0.5;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_trainer_size(&s.model, &config, &bounds, &averaged));
    config.average = 0, config.decay = -1;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_trainer_size(&s.model, &config, &bounds, &averaged));
    config.decay = 1e9;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_trainer_size(&s.model, &config, &bounds, &averaged));
    ASSERT(tiny_close(&s));
    PASS();
}

TEST gradient_that_is_not_finite_changes_nothing(void) {
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    tiny_model s;
    mtan_train_config config;
    tiny_open(&s, TINY_ENC, 1);
    mtan_train_config_init(&config);
    tiny_train(&s, &config);
    mtan_real *before = tiny_copy(s.weights, s.count);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        memset(s.trainer.gradient, 0, s.count * sizeof(mtan_real));
        s.trainer.gradient[i] = (mtan_real)bad[i];
        ASSERT_EQ(MTAN_ERR_INPUT, mtan_trainer_update(&s.trainer, 1));
    }
    ASSERT(check_same("weights", s.weights, before, s.count * sizeof *before));
    ASSERT_EQ(0, (int)s.trainer.step);
    free(before);
    ASSERT(tiny_close(&s));
    PASS();
}

/* A norm whose square no float holds would make the second moments infinite: such a gradient is not used, unless it is clipped
 * before. */
TEST gradient_too_large_for_its_square_changes_nothing(void) {
    tiny_model s;
    mtan_train_config config;
    const mtan_real huge = (mtan_real)1e25;
    if (sizeof(mtan_real) != sizeof(float)) SKIPm("a double holds the square");
    tiny_open(&s, TINY_ENC, 1);
    mtan_train_config_init(&config);
    tiny_train(&s, &config);
    mtan_real *before = tiny_copy(s.weights, s.count);
    memset(s.trainer.gradient, 0, s.count * sizeof(mtan_real));
    s.trainer.gradient[1] = huge;
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_trainer_update(&s.trainer, 1));
    ASSERT(check_same("weights", s.weights, before, s.count * sizeof *before));
    ASSERT_EQ(0, (int)s.trainer.step);
    s.trainer.config.clip = 1;
    ASSERT_EQ(MTAN_OK, mtan_trainer_update(&s.trainer, 1));
    ASSERT(fabs((double)s.trainer.gradient[1] - 1) < 1e-6 && fabs((double)s.trainer.moment2[1] - 1e-3) < 1e-8);
    ASSERT(s.weights[0] == before[0] && fabs((double)(before[1] - s.weights[1]) - 1e-3) < 1e-6);
    free(before);
    ASSERT(tiny_close(&s));
    PASS();
}

/* A gradient within the limit is used as it is: the same bits as without a limit. */
TEST clipping_leaves_short_gradients_alone(void) {
    tiny_model a, b;
    mtan_report report;
    mtan_train_config config;
    tiny_open(&a, TINY_ENC, 4), tiny_open(&b, TINY_ENC, 4);
    mtan_train_config_init(&config);
    tiny_train(&a, &config);
    config.clip = 1e6;
    tiny_train(&b, &config);
    for (int step = 0; step < 3; step++) {
        ASSERT_EQ(MTAN_OK, mtan_trainer_step(&a.trainer, a.records, 4, 1, &report));
        ASSERT_EQ(MTAN_OK, mtan_trainer_step(&b.trainer, b.records, 4, 1, &report));
        ASSERT(report.gradient_norm < 1e6);
    }
    ASSERT(check_same("weights", b.weights, a.weights, a.count * sizeof *a.weights));
    ASSERT(tiny_close(&a) & tiny_close(&b));
    PASS();
}

/* So is one that is as long as the limit. */
TEST clipping_leaves_a_gradient_at_its_limit_alone(void) {
    tiny_model a, b;
    mtan_report report;
    mtan_train_config config;
    tiny_open(&a, TINY_ENC, 4), tiny_open(&b, TINY_ENC, 4);
    mtan_train_config_init(&config);
    tiny_train(&a, &config);
    ASSERT_EQ(MTAN_OK, mtan_trainer_step(&a.trainer, a.records, 4, 1, &report));
    config.clip = report.gradient_norm;
    tiny_train(&b, &config);
    ASSERT_EQ(MTAN_OK, mtan_trainer_step(&b.trainer, b.records, 4, 1, &report));
    ASSERT(report.gradient_norm == config.clip);
    ASSERT(check_same("weights", b.weights, a.weights, a.count * sizeof *a.weights));
    ASSERT(tiny_close(&a) & tiny_close(&b));
    PASS();
}

/* ---- what is reported ---- */

/* All records of a classifier count; of a decoder's those that have targets, unless empty ones are in the loss. */
TEST records_in_the_loss_are_counted(void) {
    const tiny_kind kinds[] = {TINY_ENC, TINY_INTERP, TINY_INTERP};
    for (int i = 0; i < 3; i++) {
        tiny_model s;
        mtan_report report;
        mtan_train_config config;
        tiny_open(&s, kinds[i], 4);
        s.model.config.skip_empty = i < 2;
        s.records[1].n_events = 0;
        mtan_train_config_init(&config);
        tiny_train(&s, &config);
        memset(&report, 0, sizeof report);
        ASSERT_EQ(MTAN_OK, mtan_trainer_loss(&s.trainer, s.records, 4, 1, &report));
        ASSERT_EQ_FMT(i == 1 ? 3 : 4, (int)report.records, "%d");
        ASSERT(report.loss - report.loss == 0 && report.kl - report.kl == 0);
        ASSERT(tiny_close(&s));
    }
    PASS();
}

/* ---- schedule ---- */

typedef struct {
    int calls, epoch;
    int64_t step;
    double factor;
} schedule_log;

static double log_schedule(void *context, int64_t step, int32_t epoch) {
    schedule_log *log = context;
    log->calls++, log->step = step, log->epoch = epoch;
    return log->factor;
}

TEST schedule_scales_the_rate(void) {
    schedule_log log = {0, 0, 0, 0.25};
    tiny_model a, b;
    mtan_report report;
    mtan_train_config config;
    tiny_open(&a, TINY_FULL, 4), tiny_open(&b, TINY_FULL, 4);
    mtan_train_config_init(&config);
    config.lr = 0.25 * 0.0078125; /* exact, so both roads to it give the same bits */
    tiny_train(&a, &config);
    config.lr = 0.0078125, config.schedule = log_schedule, config.schedule_context = &log;
    tiny_train(&b, &config);
    for (int step = 1; step <= 3; step++) {
        ASSERT_EQ(MTAN_OK, mtan_trainer_step(&a.trainer, a.records, 4, 10 + step, &report));
        ASSERT_EQ(MTAN_OK, mtan_trainer_step(&b.trainer, b.records, 4, 10 + step, &report));
        ASSERT_EQ(step, log.calls);
        ASSERT_EQ(step, (int)log.step);
        ASSERT_EQ(10 + step, log.epoch);
    }
    ASSERT(check_same("weights", b.weights, a.weights, a.count * sizeof *a.weights));
    log.factor = 0; /* a rate of 0 leaves the weights where they are */
    ASSERT_EQ(MTAN_OK, mtan_trainer_step(&b.trainer, b.records, 4, 20, &report));
    ASSERT(check_same("weights", b.weights, a.weights, a.count * sizeof *a.weights));
    ASSERT(tiny_close(&a) & tiny_close(&b));
    PASS();
}

/* ---- losses ---- */

/* 50 steps on 16 records whose labels can be read off the first value. The factor is what must be left of the way down:
 * cross-entropy has 0 for a floor; the bound has one near its noise, so there only the fall is asked for. */
TEST loss_falls(tiny_kind kind) {
    tiny_model s;
    mtan_train_config config;
    mtan_report first, last;
    if (tiny_left_out(kind)) SKIPm(LEFT_OUT);
    tiny_open(&s, kind, 16);
    mtan_train_config_init(&config);
    config.lr = 0.01;
    tiny_train(&s, &config);
    ASSERT_EQ(MTAN_OK, mtan_trainer_loss(&s.trainer, s.records, 16, 1, &first));
    for (int step = 0; step < 50; step++) ASSERT_EQ(MTAN_OK, mtan_trainer_step(&s.trainer, s.records, 16, 1, &last));
    ASSERT_EQ(MTAN_OK, mtan_trainer_loss(&s.trainer, s.records, 16, 1, &last));
    if (greatest_get_verbosity()) printf("  ok %s: loss %.4f, then %.4f\n", tiny_names[kind], first.loss, last.loss);
    ASSERT(isfinite(first.loss) && isfinite(last.loss));
    ASSERT(last.loss < 0.6 * first.loss);
    ASSERT(tiny_close(&s));
    PASS();
}

/* The loss alone takes the same path as the gradient, and changes no weight, moment or gradient. */
TEST loss_is_that_of_the_gradient(tiny_kind kind) {
    tiny_model s;
    mtan_train_config config;
    mtan_report whole, alone;
    tiny_open(&s, kind, 9);
    mtan_train_config_init(&config);
    tiny_train(&s, &config);
    ASSERT_EQ(MTAN_OK, mtan_trainer_step(&s.trainer, s.records, 9, 1, &whole));
    ASSERT_EQ(MTAN_OK, mtan_trainer_gradient(&s.trainer, s.records, 9, 2, &whole));
    mtan_real *weights = tiny_copy(s.weights, s.count), *gradient = tiny_copy(s.trainer.gradient, s.count);
    mtan_real *moment1 = tiny_copy(s.trainer.moment1, s.count), *moment2 = tiny_copy(s.trainer.moment2, s.count);
    ASSERT_EQ(MTAN_OK, mtan_trainer_loss(&s.trainer, s.records, 9, 2, &alone));
    ASSERT(check_same("loss", &alone.loss, &whole.loss, sizeof alone.loss));
    ASSERT(check_same("recon", &alone.recon, &whole.recon, sizeof alone.recon));
    ASSERT(check_same("ce", &alone.ce, &whole.ce, sizeof alone.ce));
    ASSERT(check_same("kl", &alone.kl, &whole.kl, sizeof alone.kl));
    ASSERT(check_same("squared error", &alone.squared_error, &whole.squared_error, sizeof alone.squared_error));
    ASSERT(alone.records == whole.records && alone.labels == whole.labels && alone.correct == whole.correct &&
           alone.cells == whole.cells);
    ASSERT(check_same("weights", s.weights, weights, s.count * sizeof *weights));
    ASSERT(check_same("gradient", s.trainer.gradient, gradient, s.count * sizeof *gradient));
    ASSERT(check_same("first moments", s.trainer.moment1, moment1, s.count * sizeof *moment1));
    ASSERT(check_same("second moments", s.trainer.moment2, moment2, s.count * sizeof *moment2));
    ASSERT_EQ(1, (int)s.trainer.step);
    ASSERT(whole.gradient_norm > 0);
    free(weights), free(gradient), free(moment1), free(moment2);
    ASSERT(tiny_close(&s));
    PASS();
}

/* How many rows of probabilities a record has. */
static int32_t rows_of(const mtan_config *c, const mtan_record *r) {
    int32_t scratch[2 * TINY_EVENTS], times = 0;
    if (c->classify == MTAN_CLASSIFY_RECORD) return 1;
    return r->times ? r->n_times : mtan_record_times(r, scratch, &times) == MTAN_OK ? times : 0;
}

/* The report's labels and those that are right, against what a predictor says. Both have the same noise, which the records
 * bring: so much of it that the samples of a record are of different minds. */
TEST correct_are_those_predicted_right(tiny_kind kind) {
    enum { RECORDS = 37, CLASSES = 2, NOISE = 3 * 6 * 5 }; /* (S, K, Z) at the most */
    static mtan_real noise[RECORDS * NOISE];
    static const int32_t some[7] = {0, 0, 1, MTAN_UNLABELED, 1, 0, 0};
    mtan_real p[RECORDS * TINY_TIMES * CLASSES], *row = p;
    int64_t labels = 0, correct = 0;
    mtan_train_config config;
    mtan_report report;
    tiny_model s;
    tiny_open(&s, kind, RECORDS);
    ASSERT_EQ(CLASSES, s.config.classes);
    for (size_t i = 0; i < s.count; i++) s.weights[i] *= 3; /* so that both classes are predicted */
    for (int32_t i = 0; i < RECORDS * TINY_EVENTS; i++) s.labels[i] = some[(i / TINY_EVENTS + i % TINY_EVENTS) % 7];
    for (int32_t i = 0; i < RECORDS * NOISE; i++) noise[i] = (mtan_real)(20 * golden_u("training.noise", (size_t)i));
    for (int32_t b = 0; b < RECORDS; b++) s.records[b].noise = noise + b * NOISE, s.records[b].n_noise = NOISE;
    s.model.config.predict_samples = s.config.samples;
    mtan_train_config_init(&config);
    tiny_train(&s, &config);
    tiny_predict(&s, 5);
    ASSERT_EQ(MTAN_OK, mtan_trainer_loss(&s.trainer, s.records, RECORDS, 1, &report));
    ASSERT_EQ(MTAN_OK, mtan_predictor_classify(&s.predictor, s.records, RECORDS, p));
    for (int32_t b = 0; b < RECORDS; b++)
        for (int32_t i = 0; i < rows_of(&s.config, &s.records[b]); i++, row += CLASSES) {
            const int32_t label = s.records[b].labels[i];
            labels += label >= 0;
            correct += label == (row[1] > row[0]);
        }
    ASSERT_EQ_FMT((int)labels, (int)report.labels, "%d");
    ASSERT_EQ_FMT((int)correct, (int)report.correct, "%d");
    ASSERT(correct > 0 && correct < labels && 2 * correct != labels);
    ASSERT(tiny_close(&s));
    PASS();
}

/* ---- shards and threads ---- */

TEST shard_count_is_a_power_of_two(void) {
    int32_t before = 1;
    for (int32_t n = 1; n <= 4096; n++) {
        const int32_t shards = mtan_shard_count(n);
        ASSERT(shards >= 1 && shards <= n && (shards & (shards - 1)) == 0);
        ASSERT(shards >= before); /* never fewer for more records */
        ASSERT_EQ(shards, mtan_shard_count(n));
        before = shards;
    }
    ASSERT(before > 1);
    PASS();
}

static void in_reverse(void *context, int32_t n, mtan_body body, void *argument) {
    (void)context;
    for (int32_t i = n - 1; i >= 0; i--) body(argument, i, 0);
}

static void in_order(void *context, int32_t n, mtan_body body, void *argument) {
    (void)context;
    for (int32_t i = 0; i < n; i++) body(argument, i, 0);
}

/* Real threads: each takes the next index that is free, so the split changes from run to run. */
typedef struct {
    pthread_mutex_t lock;
    int32_t next, n, thread;
    mtan_body body;
    void *argument;
} crew;

static void *crew_member(void *context) {
    crew *c = context;
    pthread_mutex_lock(&c->lock);
    const int32_t thread = c->thread++;
    while (c->next < c->n) {
        const int32_t i = c->next++;
        pthread_mutex_unlock(&c->lock);
        c->body(c->argument, i, thread);
        pthread_mutex_lock(&c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static void on_threads(void *context, int32_t n, mtan_body body, void *argument) {
    const int threads = *(const int *)context;
    pthread_t id[8];
    crew c = {PTHREAD_MUTEX_INITIALIZER, 0, n, 0, body, argument};
    for (int i = 0; i < threads; i++)
        if (pthread_create(&id[i], NULL, crew_member, &c)) exit(2);
    for (int i = 0; i < threads; i++) pthread_join(id[i], NULL);
    pthread_mutex_destroy(&c.lock);
}

enum { BATCH = 37 }; /* 37 records: 8 shards of two sizes */

/* The gradient of the first step, then the weights after all; both owned by the caller. */
static int train_by(tiny_kind kind, double dropout, mtan_parallel_for parallel_for, int threads, mtan_real **gradient,
                    mtan_real **weights, size_t *count) {
    tiny_model s;
    mtan_train_config config;
    mtan_report report;
    tiny_open(&s, kind, BATCH);
    mtan_train_config_init(&config);
    config.parallel_for = parallel_for, config.parallel_context = &threads, config.threads = threads;
    config.clip = 1, config.dropout = dropout;
    tiny_train(&s, &config);
    int good = mtan_trainer_gradient(&s.trainer, s.records, BATCH, 1, &report) == MTAN_OK;
    *gradient = tiny_copy(s.trainer.gradient, s.count);
    for (int step = 0; good && step < TINY_STEPS; step++)
        good = mtan_trainer_step(&s.trainer, s.records, BATCH, 1 + step, &report) == MTAN_OK;
    *weights = tiny_copy(s.weights, s.count);
    *count = s.count;
    return tiny_close(&s) && good;
}

/* Threads have their scratch one behind the other. */
TEST scratch_of_threads_lies_apart(void) {
    tiny_model s;
    size_t bytes, other;
    mtan_train_config config;
    tiny_open(&s, TINY_ENC, 4);
    mtan_train_config_init(&config);
    config.parallel_for = in_order, config.threads = 3;
    tiny_train(&s, &config);
    const char *const first = mtan_trainer_scratch(&s.trainer, 0, &bytes);
    for (int32_t thread = 1; thread < 3; thread++)
        ASSERT(first + (size_t)thread * bytes == mtan_trainer_scratch(&s.trainer, thread, &other) && other == bytes);
    ASSERT(tiny_close(&s));
    PASS();
}

TEST threads_change_no_bit(tiny_kind kind, double dropout) {
    static const struct {
        const char *name;
        mtan_parallel_for run;
        int threads;
    } ways[] = {{"in order", in_order, 1},
                {"in reverse", in_reverse, 1},
                {"2 threads", on_threads, 2},
                {"3 threads", on_threads, 3},
                {"8 threads", on_threads, 8}};
    mtan_real *gradient, *weights, *g, *w;
    size_t count;
    if (tiny_left_out(kind)) SKIPm(LEFT_OUT);
    ASSERT(train_by(kind, dropout, NULL, 1, &gradient, &weights, &count));
    ASSERT_EQ(8, mtan_shard_count(BATCH));
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        ASSERT(train_by(kind, dropout, ways[i].run, ways[i].threads, &g, &w, &count));
        ASSERTm(ways[i].name, check_same("gradient", g, gradient, count * sizeof *g));
        ASSERTm(ways[i].name, check_same("weights", w, weights, count * sizeof *w));
        free(g), free(w);
    }
    free(gradient), free(weights);
    PASS();
}

/* A batch of eight shards has the weighted mean of what its records have alone: one denominator for all. */
TEST class_weights_are_those_of_the_batch(tiny_kind kind) {
    static const double weights[] = {0.25, 3, 1}, ones[] = {1, 1, 1}, none[] = {0, 1, 1},
                        bad[][3] = {{1, -1, 1}, {1, 1e9, 1}};
    tiny_model s;
    mtan_train_config config;
    mtan_report whole, one;
    double sum = 0, total = 0;
    tiny_open(&s, kind, BATCH);
    mtan_train_config_init(&config);
    config.class_weights = weights;
    tiny_train(&s, &config);
    s.labels[TINY_EVENTS] = MTAN_UNLABELED; /* of the second record, which weighs nothing */
    ASSERT(s.config.classes <= 3);
    ASSERT_EQ(MTAN_OK, mtan_trainer_loss(&s.trainer, s.records, BATCH, 1, &whole));
    for (int i = 0; i < BATCH; i++) {
        if (s.records[i].labels[0] < 0) continue;
        ASSERT_EQ(MTAN_OK, mtan_trainer_loss(&s.trainer, s.records + i, 1, 1, &one));
        sum += weights[s.records[i].labels[0]] * one.ce, total += weights[s.records[i].labels[0]];
    }
    ASSERT(fabs(whole.ce - sum / total) <= 1e-6 * whole.ce);
    s.trainer.config.class_weights = ones;
    ASSERT_EQ(MTAN_OK, mtan_trainer_gradient(&s.trainer, s.records, BATCH, 1, &whole));
    mtan_real *gradient = tiny_copy(s.trainer.gradient, s.count);
    s.trainer.config.class_weights = NULL;
    ASSERT_EQ(MTAN_OK, mtan_trainer_gradient(&s.trainer, s.records, BATCH, 1, &one));
    ASSERT(check_same("gradient", s.trainer.gradient, gradient, s.count * sizeof *gradient));
    ASSERT(memcmp(&whole, &one, sizeof one) == 0);
    config.class_weights = none;
    ASSERT_EQ(MTAN_OK, mtan_trainer_size(&s.model, &config, &s.trainer.bounds, &s.count));
    for (int i = 0; i < 2; i++) {
        config.class_weights = bad[i];
        ASSERT_EQ(MTAN_ERR_CONFIG, mtan_trainer_size(&s.model, &config, &s.trainer.bounds, &s.count));
    }
    free(gradient);
    ASSERT(tiny_close(&s));
    PASS();
}

/* A label beyond the classes is refused before anything is read at its place: the weights have their exact size here. */
TEST labels_beyond_class_weights_are_refused(void) {
    tiny_model s;
    mtan_train_config config;
    mtan_report report;
    tiny_open(&s, TINY_ENC, BATCH);
    double *weights = malloc((size_t)s.config.classes * sizeof *weights);
    for (int32_t c = 0; c < s.config.classes; c++) weights[c] = 1;
    mtan_train_config_init(&config);
    config.class_weights = weights;
    tiny_train(&s, &config);
    s.labels[0] = s.config.classes;
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_trainer_loss(&s.trainer, s.records, BATCH, 1, &report));
    s.labels[0] = 1000000;
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_trainer_loss(&s.trainer, s.records, BATCH, 1, &report));
    free(weights);
    ASSERT(tiny_close(&s));
    PASS();
}

/* ---- ranks: each a thread with a model of its own; the sum goes up a binary tree over the ranks ---- */

enum { MOST_RANKS = 4, MOST_SHARDS = 8 };

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t all_here;
    int ranks, here, round;
    const mtan_real *given[MOST_RANKS];
} meeting;

typedef struct {
    meeting *all;
    int rank, batch;
    tiny_model model;
    mtan_report report;
    mtan_status status;
    size_t moved; /* reals handed to the sum */
} rank_state;

static mtan_real tree_sum_of(const meeting *m, int first, int count, size_t i) {
    if (count == 1) return m->given[first][i];
    return tree_sum_of(m, first, count / 2, i) + tree_sum_of(m, first + count / 2, count / 2, i);
}

/* Waits until all ranks are here; 0 when one of them does not come, which would hang a real machine. */
static int meet(meeting *m) {
    struct timespec limit;
    int late = 0;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 60;
    pthread_mutex_lock(&m->lock);
    const int round = m->round;
    if (++m->here == m->ranks) m->here = 0, m->round++, pthread_cond_broadcast(&m->all_here);
    while (m->round == round && !late) late = pthread_cond_timedwait(&m->all_here, &m->lock, &limit);
    pthread_mutex_unlock(&m->lock);
    return !late;
}

static mtan_status add_over_ranks(void *context, mtan_real *data, size_t n) {
    rank_state *r = context;
    mtan_real *own = malloc(n * sizeof *own);
    int all;
    r->moved += n;
    pthread_mutex_lock(&r->all->lock);
    r->all->given[r->rank] = data;
    pthread_mutex_unlock(&r->all->lock);
    all = meet(r->all);
    for (size_t i = 0; all && i < n; i++) own[i] = tree_sum_of(r->all, 0, r->all->ranks, i);
    all = all && meet(r->all); /* all have read before anyone writes */
    if (all) memcpy(data, own, n * sizeof *own);
    free(own);
    return all ? MTAN_OK : MTAN_ERR_WRITE;
}

static void *train_rank(void *context) {
    rank_state *r = context;
    for (int step = 0; r->status == MTAN_OK && step < 3; step++)
        r->status = mtan_trainer_step(&r->model.trainer, r->model.records, r->batch, 1, &r->report);
    return NULL;
}

static void open_ranks(meeting *m, rank_state *state, tiny_kind kind, int ranks, int batch, double dropout) {
    memset(m, 0, sizeof *m);
    m->ranks = ranks;
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->all_here, NULL);
    for (int r = 0; r < ranks; r++) {
        mtan_train_config config;
        mtan_train_config_init(&config);
        config.rank = r, config.ranks = ranks, config.dropout = dropout;
        config.allreduce = ranks > 1 ? add_over_ranks : NULL, config.allreduce_context = &state[r];
        state[r].all = m, state[r].rank = r, state[r].batch = batch, state[r].status = MTAN_OK, state[r].moved = 0;
        tiny_open(&state[r].model, kind, batch);
        tiny_train(&state[r].model, &config);
    }
}

/* Runs every rank to its end; weights, reports and statuses stay in `state`. */
static void run_ranks(rank_state *state, int ranks, void *(*work)(void *)) {
    pthread_t id[MOST_RANKS];
    for (int r = 0; r < ranks; r++)
        if (pthread_create(&id[r], NULL, work, &state[r])) exit(2);
    for (int r = 0; r < ranks; r++) pthread_join(id[r], NULL);
}

static int close_ranks(meeting *m, rank_state *state, int ranks) {
    int good = 1;
    for (int r = 0; r < ranks; r++) good &= tiny_close(&state[r].model);
    pthread_cond_destroy(&m->all_here);
    pthread_mutex_destroy(&m->lock);
    return good;
}

/* Weights and the whole report, on every rank, as one process has them: also where there are fewer shards than ranks. */
TEST ranks_change_no_bit(tiny_kind kind, double dropout) {
    static const int batches[] = {1, 9, 17, 37}; /* 1, 2, 4 and 8 shards */
    static rank_state one[1], many[MOST_RANKS];
    meeting alone, m;
    if (tiny_left_out(kind)) SKIPm(LEFT_OUT);
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        open_ranks(&alone, one, kind, 1, batches[i], dropout);
        run_ranks(one, 1, train_rank);
        ASSERT_EQ(MTAN_OK, one[0].status);
        for (int ranks = 2; ranks <= MOST_RANKS; ranks *= 2) {
            open_ranks(&m, many, kind, ranks, batches[i], dropout);
            run_ranks(many, ranks, train_rank);
            for (int r = 0; r < ranks; r++) {
                const tiny_model *a = &many[r].model, *b = &one[0].model;
                ASSERT_EQ(MTAN_OK, many[r].status);
                ASSERT(check_same("weights", a->weights, b->weights, b->count * sizeof(mtan_real)));
                ASSERT(check_same("gradient", a->trainer.gradient, b->trainer.gradient, b->count * sizeof(mtan_real)));
                ASSERT(check_same("report", &many[r].report, &one[0].report, sizeof one[0].report));
            }
            ASSERT(close_ranks(&m, many, ranks));
        }
        ASSERT(close_ranks(&alone, one, 1));
    }
    PASS();
}

/* What only one rank's shard can see, a label out of range, is refused by all of them: none waits for the other. */
TEST ranks_fail_together(int ranks, int record) {
    static rank_state state[MOST_RANKS];
    meeting m;
    open_ranks(&m, state, TINY_ENC, ranks, 37, 0);
    for (int r = 0; r < ranks; r++) {
        state[r].model.labels[record * TINY_EVENTS] = 2;
    }
    mtan_real *before = tiny_copy(state[0].model.weights, state[0].model.count);
    run_ranks(state, ranks, train_rank);
    for (int r = 0; r < ranks; r++) {
        ASSERT_EQ(MTAN_ERR_INPUT, state[r].status);
        ASSERT(check_same("weights", state[r].model.weights, before, state[r].model.count * sizeof *before));
    }
    free(before);
    ASSERT(close_ranks(&m, state, ranks));
    PASS();
}

/* Another status than a label's, whose digits are all set but a few: more times than the bounds have, in the last shard. */
TEST ranks_fail_with_the_status_of_the_shard(int ranks) {
    static rank_state state[MOST_RANKS];
    meeting m;
    open_ranks(&m, state, TINY_ENC, ranks, 37, 0);
    for (int r = 0; r < ranks; r++) {
        tiny_model *s = &state[r].model;
        mtan_train_config config = s->trainer.config;
        s->bounds.times = 1;
        for (int32_t i = 0; i < 36 * TINY_EVENTS; i++) s->events[i].time = 0;
        tiny_train(s, &config);
    }
    run_ranks(state, ranks, train_rank);
    for (int r = 0; r < ranks; r++) ASSERT_EQ(MTAN_ERR_MEMORY, state[r].status);
    ASSERT(close_ranks(&m, state, ranks));
    PASS();
}

/* A sum over ranks that is none: one of the numbers comes back as it could not be. */
typedef struct {
    double number;
    int calls;
} false_sum;

static mtan_status sum_falsely(void *context, mtan_real *data, size_t n) {
    false_sum *f = context;
    if (f->calls++ == 0) data[n - 1] = (mtan_real)f->number;
    return MTAN_OK;
}

TEST sums_that_cannot_be_are_refused(void) {
    static const double number[] = {-1, 65536, 1e9, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        false_sum f = {number[i], 0};
        mtan_train_config config;
        mtan_report report;
        tiny_model s;
        tiny_open(&s, TINY_ENC, 9);
        mtan_train_config_init(&config);
        config.ranks = 2, config.allreduce = sum_falsely, config.allreduce_context = &f;
        tiny_train(&s, &config);
        mtan_real *before = tiny_copy(s.weights, s.count);
        ASSERT_EQ(MTAN_ERR_INPUT, mtan_trainer_step(&s.trainer, s.records, 9, 1, &report));
        ASSERT_EQ(1, f.calls); /* no gradient follows */
        ASSERT(check_same("weights", s.weights, before, s.count * sizeof *before));
        free(before);
        ASSERT(tiny_close(&s));
    }
    PASS();
}

/* What a rank gives to the sums: first the reports of all shards, then the gradient. */
typedef struct {
    int call, nothing;
    int shard[MOST_SHARDS]; /* has a report of its own */
} gift;

static mtan_status look_at_gift(void *context, mtan_real *data, size_t n) {
    gift *g = context;
    g->call++, g->nothing = 1;
    for (size_t i = 0; i < n; i++) {
        const int zero = !(data[i] > 0 || data[i] < 0);
        if (g->call == 1 && !zero) g->shard[i / (n / MOST_SHARDS)] = 1;
        g->nothing &= zero && signbit(data[i]);
    }
    return MTAN_OK;
}

static gift gift_of(int rank, int ranks, int batch) {
    gift g = {0, 0, {0}};
    mtan_train_config config;
    mtan_report report;
    tiny_model s;
    tiny_open(&s, TINY_ENC, batch);
    mtan_train_config_init(&config);
    config.rank = rank, config.ranks = ranks, config.allreduce = look_at_gift, config.allreduce_context = &g;
    tiny_train(&s, &config);
    if (mtan_trainer_gradient(&s.trainer, s.records, batch, 1, &report) != MTAN_OK || !tiny_close(&s)) g.call = -1;
    return g;
}

/* Rank after rank has the next shards, every shard one rank; one without shards gives a gradient of -0. */
TEST every_shard_has_one_rank(int ranks) {
    static const int batches[] = {1, 9, 17, 37}; /* 1, 2, 4 and 8 shards */
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        int next = 0;
        for (int rank = 0; rank < ranks; rank++) {
            const gift g = gift_of(rank, ranks, batches[i]);
            const int first = next;
            while (next < MOST_SHARDS && g.shard[next]) next++;
            for (int k = 0; k < MOST_SHARDS; k++) ASSERT_EQ(k >= first && k < next, g.shard[k]);
            ASSERT_EQ(2, g.call);
            ASSERT_EQ(next == first, g.nothing);
        }
        ASSERT_EQ_FMT((int)mtan_shard_count(batches[i]), next, "%d");
    }
    PASS();
}

static void *loss_of_rank(void *context) {
    rank_state *r = context;
    r->status = mtan_trainer_gradient(&r->model.trainer, r->model.records, r->batch, 1, &r->report);
    mtan_real *gradient = tiny_copy(r->model.trainer.gradient, r->model.count);
    r->moved = 0;
    if (r->status == MTAN_OK)
        r->status = mtan_trainer_loss(&r->model.trainer, r->model.records, r->batch, 1, &r->report);
    if (r->status == MTAN_OK && memcmp(gradient, r->model.trainer.gradient, r->model.count * sizeof *gradient))
        r->status = MTAN_ERR_INPUT;
    free(gradient);
    return NULL;
}

/* The loss alone leaves the gradient as it was, and does not send it round. */
TEST loss_over_ranks_moves_no_gradient(void) {
    static rank_state state[MOST_RANKS];
    meeting m;
    open_ranks(&m, state, TINY_FULL, 2, 37, 0);
    run_ranks(state, 2, loss_of_rank);
    for (int r = 0; r < 2; r++) {
        ASSERT_EQ(MTAN_OK, state[r].status);
        ASSERT(state[r].moved > 0 && state[r].moved < state[r].model.count);
    }
    ASSERT(close_ranks(&m, state, 2));
    PASS();
}

/* ---- samples of a class per time ---- */

/* Without noise all samples are one, so that several of them have the loss and the gradient of one. */
TEST samples_of_a_time_share_its_label(void) {
    enum { RECORDS = 9, SAMPLES = 3 };
    mtan_real zero[SAMPLES * 6 * 5] = {0}; /* (S, K, Z) */
    double gradient[4096];
    mtan_report report[2];
    for (int32_t i = 0; i < 2; i++) {
        tiny_model s;
        mtan_train_config config;
        tiny_open(&s, TINY_FULL_TIME, RECORDS);
        for (size_t k = 0; k < s.count; k++) s.weights[k] *= 3; /* so that times differ */
        s.config.samples = i ? SAMPLES : 1;
        ASSERT(s.config.ref_points == 6 && s.config.latent == 5 && s.count <= 4096);
        ASSERT_EQ(MTAN_OK, mtan_model_init(&s.model, &s.config, s.weights, s.count));
        for (int32_t b = 0; b < RECORDS; b++) {
            s.records[b].noise = zero, s.records[b].n_noise = SAMPLES * 6 * 5;
            for (int32_t k = 0; k < TINY_EVENTS; k++) s.labels[b * TINY_EVENTS + k] = (b + k) % 2;
        }
        mtan_train_config_init(&config);
        tiny_train(&s, &config);
        ASSERT_EQ(MTAN_OK, mtan_trainer_gradient(&s.trainer, s.records, RECORDS, 1, &report[i]));
        if (i)
            ASSERT(check_norm("gradient", s.trainer.gradient, gradient, s.count, 0,
                              sizeof(mtan_real) == sizeof(double) ? 1e-13 : 1e-5));
        for (size_t k = 0; k < s.count; k++) gradient[k] = (double)s.trainer.gradient[k];
        ASSERT(tiny_close(&s));
    }
    ASSERT(fabs(report[1].ce - report[0].ce) <= 1e-6 * report[0].ce);
    ASSERT(report[1].correct == report[0].correct && report[1].labels == report[0].labels);
    PASS();
}

SUITE(training_suite) {
    static const tiny_kind classifying[] = {TINY_ENC, TINY_FULL, TINY_ENC_TIME, TINY_FULL_TIME};
    greatest_set_test_suffix("adam");
    RUN_TESTp(optimizer_is_torchs, "adam", MTAN_ADAM, 0.0);
    greatest_set_test_suffix("adamax");
    RUN_TESTp(optimizer_is_torchs, "adamax", MTAN_ADAMAX, 0.0);
    greatest_set_test_suffix("clipped");
    RUN_TESTp(optimizer_is_torchs, "clipped", MTAN_ADAM, 0.5);
    RUN_TEST(decay_is_torchs);
    RUN_TEST(average_is_torchs);
    RUN_TEST(average_alone_takes_memory);
    RUN_TEST(gradient_that_is_not_finite_changes_nothing);
    RUN_TEST(gradient_too_large_for_its_square_changes_nothing);
    RUN_TEST(clipping_leaves_short_gradients_alone);
    RUN_TEST(clipping_leaves_a_gradient_at_its_limit_alone);
    RUN_TEST(records_in_the_loss_are_counted);
    RUN_TEST(scratch_of_threads_lies_apart);
    RUN_TEST(schedule_scales_the_rate);
    for (size_t i = 0; i < sizeof classifying / sizeof *classifying; i++) {
        greatest_set_test_suffix(tiny_names[classifying[i]]);
        RUN_TESTp(correct_are_those_predicted_right, classifying[i]);
    }
    RUN_TEST(shard_count_is_a_power_of_two);
    greatest_set_test_suffix(tiny_names[TINY_ENC]);
    RUN_TESTp(class_weights_are_those_of_the_batch, TINY_ENC);
    greatest_set_test_suffix(tiny_names[TINY_FULL]);
    RUN_TESTp(class_weights_are_those_of_the_batch, TINY_FULL);
    RUN_TEST(labels_beyond_class_weights_are_refused);
    for (int kind = 0; kind < TINY_KINDS; kind++) {
        greatest_set_test_suffix(tiny_names[kind]);
        RUN_TEST1(loss_falls, (tiny_kind)kind);
        greatest_set_test_suffix(tiny_names[kind]);
        RUN_TEST1(loss_is_that_of_the_gradient, (tiny_kind)kind);
        greatest_set_test_suffix(tiny_names[kind]);
        RUN_TESTp(threads_change_no_bit, (tiny_kind)kind, 0.0);
    }
    for (int kind = TINY_ENC; kind <= TINY_FULL; kind++) {
        greatest_set_test_suffix(tiny_names[kind]);
        RUN_TESTp(ranks_change_no_bit, (tiny_kind)kind, 0.0);
    }
    static const tiny_kind heads[] = {TINY_ENC, TINY_ENC_TIME,
                                      TINY_FULL_TIME}; /* two layers, its input, a folded one */
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s_dropout", tiny_names[heads[i]]);
        greatest_set_test_suffix(name);
        RUN_TESTp(threads_change_no_bit, heads[i], 0.3);
    }
    greatest_set_test_suffix("enc_dropout");
    RUN_TESTp(ranks_change_no_bit, TINY_ENC, 0.3);
    RUN_TESTp(ranks_fail_together, 2, 0);
    RUN_TESTp(ranks_fail_together, 4, 36);
    RUN_TESTp(ranks_fail_with_the_status_of_the_shard, 2);
    RUN_TESTp(ranks_fail_with_the_status_of_the_shard, 4);
    RUN_TEST(sums_that_cannot_be_are_refused);
    for (int ranks = 2; ranks <= 16; ranks *= 2) RUN_TESTp(every_shard_has_one_rank, ranks);
    RUN_TEST(loss_over_ranks_moves_no_gradient);
    RUN_TEST(samples_of_a_time_share_its_label);
}
