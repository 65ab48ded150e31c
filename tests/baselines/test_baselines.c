/* The paper's baselines. What they compute, and every gradient, is compared with golden/baseline-*: PyTorch's float64 values of
 * models written from the same definitions. In every form that a baseline accepts: gradients are finite differences, threads
 * and other records change no bit, files hold all of it, hostile records get a status, and the counted memory is enough. */
#define _POSIX_C_SOURCE 200809L /* opendir */
#include <dirent.h>
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../platform/pool.h"
#include "../../simd/mtan_simd.h"
#include "baseline_case.h"
#include "ladder.h"

/* ---- golden values ---- */

enum { MOST_CASES = 128, NAME_SIZE = 64 };

typedef struct {
    char tensor[128];
    double share;
    int compared, over;
} golden_sum;

static void sum_tensor(void *context, const char *tensor, double difference, double limit, double share) {
    golden_sum *t = context;
    const int over = !(share <= 1);
    if (over || greatest_get_verbosity() > 1)
        printf("  %s %s: off by %.3g of %.3g\n", over ? "BAD" : "ok", tensor, difference, limit);
    t->over += over;
    if (t->compared++ && share <= t->share) return;
    snprintf(t->tensor, sizeof t->tensor, "%s", tensor);
    t->share = share;
}

TEST golden_values_agree(const char *name, const mtan_backend *backend) {
    static char message[128];
    golden_sum t;
    char architecture[64] = "";
    int status;
    memset(&t, 0, sizeof t);
    ASSERT(ladder_architecture(name, architecture, sizeof architecture));
    snprintf(message, sizeof message, "%s: no such model here yet", architecture);
    if (!baseline_named(architecture)) SKIPm(message);
    status = ladder_elsewhere(name, baseline_named(architecture), backend, sum_tensor, &t);
    if (greatest_get_verbosity())
        printf("  %s: %d tensors, worst %s (%.3g %% of the limit)\n", name, status, t.tensor, 100 * t.share);
    ASSERTm("nothing was compared", status >= 1 && t.compared == status);
    ASSERT_EQm("a tensor is over its limit", 0, t.over);
    PASS();
}

static int by_name(const void *a, const void *b) {
    return strcmp(a, b);
}

/* Names of golden/baseline-*.safetensors without their ends, sorted; the records are not a case. */
static int list_cases(char names[MOST_CASES][NAME_SIZE]) {
    static const char start[] = "baseline-", end[] = ".safetensors";
    DIR *folder = opendir(MTAN_GOLDEN_DIR);
    int n = 0;
    for (struct dirent *e = folder ? readdir(folder) : NULL; e && n < MOST_CASES; e = readdir(folder)) {
        const size_t length = strlen(e->d_name), stem = length < sizeof end ? 0 : length - (sizeof end - 1);
        if (stem == 0 || stem >= NAME_SIZE || strcmp(e->d_name + stem, end) != 0) continue;
        if (strncmp(e->d_name, start, sizeof start - 1) != 0 || strncmp(e->d_name, "baseline-records", 16) == 0)
            continue;
        memcpy(names[n], e->d_name, stem);
        names[n++][stem] = 0;
    }
    if (folder) closedir(folder);
    qsort(names, (size_t)n, sizeof names[0], by_name);
    return n;
}

/* ---- one form at a time: losses, gradients, logits ---- */

typedef enum { LOSS, GRADIENT, STEPS } what_to_run;
enum { TRAINING_STEPS = 3 };

/* The report of a batch; its gradient, or the weights after some steps, in `out` (null: not needed). */
static mtan_status train(baseline_case *c, what_to_run what, mtan_pool *pool, mtan_real *out, mtan_report *report) {
    mtan_train_config config;
    mtan_trainer trainer;
    size_t bytes = 0;
    mtan_status status;
    void *memory;
    mtan_train_config_init(&config);
    if (pool) config.parallel_for = mtan_pool_run, config.parallel_context = pool, config.threads = pool->threads;
    if ((status = mtan_trainer_size(&c->model, &config, &c->bounds, &bytes)) != MTAN_OK) return status;
    memory = guard_alloc(bytes);
    status = mtan_trainer_init(&trainer, &c->model, c->weights, &config, &c->bounds, memory, bytes);
    for (int i = 0; status == MTAN_OK && i < (what == STEPS ? TRAINING_STEPS : 1); i++)
        status = what == LOSS       ? mtan_trainer_loss(&trainer, c->set.records, c->set.n, 1, report)
                 : what == GRADIENT ? mtan_trainer_gradient(&trainer, c->set.records, c->set.n, 1, report)
                                    : mtan_trainer_step(&trainer, c->set.records, c->set.n, 1, report);
    if (status == MTAN_OK && out) memcpy(out, what == STEPS ? c->weights : trainer.gradient, c->count * sizeof *out);
    return guard_free(memory) ? status : MTAN_ERR_MEMORY;
}

static size_t logit_count(const baseline_case *c, int32_t first, int32_t n) {
    const small_set part = {c->set.records + first, n};
    return small_class_rows(&c->config, &part) * (size_t)small_samples(&c->config) * (size_t)c->config.classes;
}

/* Logits of n records from `first` on, by a predictor for `most` records; null where it fails. The caller's to free. */
static mtan_real *logits_of(const baseline_case *c, const mtan_backend *backend, int32_t first, int32_t n,
                            int32_t most) {
    mtan_bounds bounds = c->bounds;
    mtan_model model = c->model;
    mtan_predictor predictor;
    size_t bytes = 0;
    mtan_real *out = malloc((logit_count(c, first, n) + 1) * sizeof *out);
    void *memory;
    int ok;
    model.backend = backend;
    bounds.records = most;
    ok = mtan_predictor_size(&model, &bounds, &bytes) == MTAN_OK;
    memory = guard_alloc(bytes);
    ok = ok && mtan_predictor_init(&predictor, &model, &bounds, memory, bytes) == MTAN_OK;
    ok = ok && mtan_predictor_logits(&predictor, c->set.records + first, n, out) == MTAN_OK;
    if (guard_free(memory) && ok) return out;
    free(out);
    return NULL;
}

/* ---- finite differences ---- */

/* What training must not move: means of the data, and decays that the published code left as they start. */
static int is_frozen(const mtan_config *c, const mtan_param *p) {
    const int faithful = baseline_setting(c, "faithful", 0) > 0;
    return strcmp(p->name, "rec.mean") == 0 || (faithful && strstr(p->name, "input_decay") != NULL);
}

/* The slope of the loss along a random direction of one tensor, against its gradient. */
static int slope_agrees(baseline_case *c, const mtan_param *p, const mtan_real *gradient, uint64_t *random) {
    const size_t n = (size_t)p->rows * (size_t)p->cols;
    const double step = 1e-6; /* the logarithm of a standard deviation near 0 is steep */
    mtan_real *w = c->weights + p->offset, *kept = malloc(n * sizeof *kept), *way = malloc(n * sizeof *way);
    double expected = 0, size = 0, slope;
    mtan_report up, down;
    int ok;
    memcpy(kept, w, n * sizeof *kept);
    for (size_t i = 0; i < n; i++) {
        way[i] = small_real(random);
        expected += (double)(way[i] * gradient[p->offset + i]);
        size += fabs((double)gradient[p->offset + i]);
        w[i] = kept[i] + (mtan_real)step * way[i];
    }
    ok = train(c, LOSS, NULL, NULL, &up) == MTAN_OK;
    for (size_t i = 0; i < n; i++) w[i] = kept[i] - (mtan_real)step * way[i];
    ok = ok && train(c, LOSS, NULL, NULL, &down) == MTAN_OK;
    memcpy(w, kept, n * sizeof *kept);
    slope = (up.loss - down.loss) / (2 * step);
    if (is_frozen(&c->config, p)) ok = ok && !(size > 0);
    else ok = ok && fabs(slope - expected) <= 1e-7 * (1 + size);
    if (!ok) printf("  BAD %s, %s: slope %.10g, gradient %.10g\n", c->name, p->name, slope, expected);
    free(kept), free(way);
    return ok;
}

/* How many tensors' gradients disagree; one more when all of them are zero. */
static int wrong_slopes(baseline_case *c) {
    uint64_t random = 5;
    mtan_real *gradient = malloc(c->count * sizeof *gradient);
    mtan_report report;
    int bad = train(c, GRADIENT, NULL, gradient, &report) != MTAN_OK, flat = 1;
    for (int32_t i = 0; !bad && i < mtan_param_count(&c->config); i++) {
        mtan_param p;
        mtan_param_at(&c->config, i, &p);
        bad += !slope_agrees(c, &p, gradient, &random);
    }
    for (size_t i = 0; !bad && i < c->count; i++) flat = flat && !(fabs((double)gradient[i]) > 0);
    free(gradient);
    return bad + flat;
}

TEST gradients_are_finite_differences(int index) {
    baseline_case c;
    ASSERT(baseline_open(&c, index, BASELINE_RECORDS, 0));
    ASSERT_EQ(0, wrong_slopes(&c));
    ASSERT(baseline_close(&c));
    ASSERT(baseline_open_thin(&c, index, BASELINE_RECORDS));
    ASSERT_EQ(0, wrong_slopes(&c));
    ASSERT(baseline_close(&c));
    PASS();
}

/* ---- the same bits ---- */

TEST threads_change_no_bit(int index) {
    enum { BATCH = 37 }; /* eight shards */
    mtan_real *after[2];
    mtan_report report;
    mtan_pool pool;
    size_t count = 0;
    ASSERT_EQ(MTAN_OK, mtan_pool_start(&pool, 3));
    for (int i = 0; i < 2; i++) {
        baseline_case c;
        ASSERT(baseline_open(&c, index, BATCH, 0));
        count = c.count;
        after[i] = malloc(count * sizeof *after[i]);
        ASSERT_EQ(MTAN_OK, train(&c, STEPS, i ? &pool : NULL, after[i], &report));
        ASSERT(isfinite(report.loss));
        ASSERT(baseline_close(&c));
    }
    mtan_pool_stop(&pool);
    ASSERT(check_same("weights", after[1], after[0], count * sizeof *after[0]));
    free(after[0]), free(after[1]);
    PASS();
}

static int alone_as_in_a_batch(const baseline_case *c, const mtan_backend *backend) {
    mtan_real *all = logits_of(c, backend, 0, c->set.n, c->set.n);
    int ok = all != NULL;
    for (int32_t b = 0; ok && b < c->set.n; b++) {
        const size_t n = logit_count(c, b, 1);
        mtan_real *one = logits_of(c, backend, b, 1, 1);
        ok = one && (n == 0 || check_same("logits", one, all + logit_count(c, 0, b), n * sizeof *one));
        free(one);
    }
    free(all);
    return ok;
}

TEST other_records_change_no_bit(int index) {
    baseline_case c;
    ASSERT(baseline_open(&c, index, BASELINE_RECORDS, 0));
    if (c.config.classify != MTAN_CLASSIFY_NONE) {
        ASSERT(alone_as_in_a_batch(&c, &mtan_backend_scalar));
        ASSERT(alone_as_in_a_batch(&c, mtan_backend_best()));
    }
    ASSERT(baseline_close(&c));
    PASS();
}

/* Backends of one class, fused or not, have the same bits, forwards and backwards. */
TEST backends_of_a_class_agree(int index) {
    const mtan_backend *reference = NULL;
    mtan_backend_choice choice;
    mtan_real *got, *expected;
    mtan_report report;
    baseline_case c;
    ASSERT(baseline_open(&c, index, BASELINE_RECORDS, 0));
    got = malloc(c.count * sizeof *got), expected = malloc(c.count * sizeof *expected);
    for (int i = 0; mtan_backend_list(i, &choice); i++) {
        if (!choice.backend || !choice.backend->fused) continue;
        c.model.backend = choice.backend;
        ASSERT_EQ(MTAN_OK, train(&c, GRADIENT, NULL, reference ? got : expected, &report));
        if (reference) ASSERT(check_same(choice.backend->name, got, expected, c.count * sizeof *got));
        reference = reference ? reference : choice.backend;
    }
    free(got), free(expected);
    ASSERT(baseline_close(&c));
    PASS();
}

/* ---- files ---- */

typedef struct {
    unsigned char *bytes;
    size_t n;
} buffer;

static mtan_status keep(void *context, const void *bytes, size_t n) {
    buffer *b = context;
    b->bytes = realloc(b->bytes, b->n + n);
    memcpy(b->bytes + b->n, bytes, n);
    b->n += n;
    return MTAN_OK;
}

TEST files_hold_the_model(int index) {
    buffer first = {NULL, 0}, second = {NULL, 0};
    baseline_case c;
    mtan_real *weights;
    mtan_model read;
    mtan_file file;
    size_t count = 0;
    ASSERT(baseline_open(&c, index, 1, 0));
    ASSERT_EQ(MTAN_OK, mtan_model_save(&c.model, NULL, NULL, 0, keep, &first));
    ASSERT_EQ(MTAN_OK, mtan_file_open(&file, first.bytes, first.n));
    ASSERT_EQ(MTAN_OK, mtan_model_load_count(&file, baselines, &count));
    ASSERT_EQ(c.count, count);
    weights = malloc(count * sizeof *weights);
    ASSERT_EQ(MTAN_OK, mtan_model_load(&read, weights, count, &file, baselines));
    ASSERT_EQ(c.config.architecture, read.config.architecture);
    ASSERT(check_same("weights", weights, c.weights, count * sizeof *weights));
    ASSERT_EQ(MTAN_OK, mtan_model_save(&read, NULL, NULL, 0, keep, &second)); /* settings included */
    ASSERT_EQ(first.n, second.n);
    ASSERT(check_same("file", second.bytes, first.bytes, first.n));
    free(weights), free(first.bytes), free(second.bytes);
    ASSERT(baseline_close(&c));
    PASS();
}

/* ---- hostile records ---- */

static mtan_status status_with(baseline_case *c, mtan_event event) {
    mtan_record *r = &c->set.records[0];
    const mtan_record kept = *r;
    mtan_report report;
    mtan_status status;
    r->events = &event;
    r->n_events = 1;
    status = train(c, LOSS, NULL, NULL, &report);
    *r = kept;
    return status;
}

TEST hostile_records_get_a_status(int index) {
    const mtan_real nan = (mtan_real)NAN, infinite = (mtan_real)INFINITY;
    baseline_case c;
    ASSERT(baseline_open(&c, index, 2, 0));
    ASSERT_EQ(MTAN_OK, status_with(&c, (mtan_event){0, 0, 0}));
    ASSERT_EQ(MTAN_ERR_INPUT, status_with(&c, (mtan_event){nan, 0, 0}));
    ASSERT_EQ(MTAN_ERR_INPUT, status_with(&c, (mtan_event){0, 0, nan}));
    ASSERT_EQ(MTAN_ERR_INPUT, status_with(&c, (mtan_event){infinite, 0, 0}));
    ASSERT_EQ(MTAN_ERR_INPUT, status_with(&c, (mtan_event){0, BASELINE_CHANNELS, 0}));
    ASSERT_EQ(MTAN_ERR_INPUT, status_with(&c, (mtan_event){0, -1, 0}));
    ASSERT(baseline_close(&c));
    PASS();
}

/* A parameter of NaN: the model does not read it, or there are no logits. */
TEST weights_of_nan_give_no_prediction(int index) {
    baseline_case c;
    mtan_real *expected;
    int refused = 0;
    ASSERT(baseline_open(&c, index, 1, 1));
    expected = c.config.classify == MTAN_CLASSIFY_NONE ? NULL : logits_of(&c, &mtan_backend_scalar, 0, 1, 1);
    ASSERT(expected || c.config.classify == MTAN_CLASSIFY_NONE);
    for (int32_t i = 0; expected && i < mtan_param_count(&c.config); i++) {
        mtan_param p;
        mtan_param_at(&c.config, i, &p);
        const size_t n = (size_t)p.rows * (size_t)p.cols;
        mtan_real *w = c.weights + p.offset, *kept = malloc(n * sizeof *kept), *logits;
        memcpy(kept, w, n * sizeof *kept);
        for (size_t k = 0; k < n; k++) w[k] = (mtan_real)NAN;
        logits = logits_of(&c, &mtan_backend_scalar, 0, 1, 1);
        if (logits) ASSERT(check_same(p.name, logits, expected, logit_count(&c, 0, 1) * sizeof *logits));
        refused += !logits;
        memcpy(w, kept, n * sizeof *kept);
        free(kept), free(logits);
    }
    ASSERT(refused > 0 || !expected);
    free(expected);
    ASSERT(baseline_close(&c));
    PASS();
}

/* Nothing observed, nothing asked for: every record alike, and nothing that is not a number. */
TEST empty_records_are_records(int index) {
    baseline_case c;
    mtan_real *logits, *gradient;
    mtan_report report;
    ASSERT(baseline_open(&c, index, BASELINE_RECORDS, 0));
    gradient = malloc(c.count * sizeof *gradient);
    for (int32_t b = 0; b < c.set.n; b++) {
        mtan_record *r = &c.set.records[b];
        r->n_events = r->n_targets = 0;
        if (c.config.classify == MTAN_CLASSIFY_TIME && b > 2) r->n_times = 0;
    }
    ASSERT_EQ(MTAN_OK, train(&c, GRADIENT, NULL, gradient, &report));
    ASSERT(isfinite(report.loss));
    for (size_t i = 0; i < c.count; i++) ASSERT(isfinite(gradient[i]));
    logits = c.config.classify == MTAN_CLASSIFY_NONE ? NULL : logits_of(&c, &mtan_backend_scalar, 0, c.set.n, c.set.n);
    ASSERT(logits || c.config.classify == MTAN_CLASSIFY_NONE);
    for (size_t i = 0; logits && i < logit_count(&c, 0, c.set.n); i++) ASSERT(isfinite(logits[i]));
    free(logits), free(gradient);
    ASSERT(baseline_close(&c));
    PASS();
}

/* ---- memory: what was counted is enough for records at their bounds, and for fewer ---- */

TEST counted_memory_is_enough(int index) {
    baseline_case c;
    mtan_report report;
    for (int32_t records = 1; records <= 11; records += 5)
        for (int largest = 0; largest < 2; largest++) {
            ASSERT(baseline_open(&c, index, records, largest));
            ASSERT_EQ(MTAN_OK, train(&c, GRADIENT, NULL, NULL, &report));
            if (c.config.classify != MTAN_CLASSIFY_NONE) {
                mtan_real *logits = logits_of(&c, &mtan_backend_scalar, 0, records, records);
                ASSERT(logits);
                free(logits);
            }
            ASSERT(baseline_close(&c));
        }
    PASS();
}

/* Every baseline classifies records and times. */
TEST tasks_are_there(void) {
    for (int i = 0; baselines[i]; i++) {
        int record = 0, time = 0;
        mtan_config config;
        char name[96];
        for (int k = 0; baseline_form(&config, name, sizeof name, k); k++) {
            if (config.architecture != baselines[i]) continue;
            record += config.classify == MTAN_CLASSIFY_RECORD;
            time += config.classify == MTAN_CLASSIFY_TIME;
        }
        ASSERTm(baselines[i]->name, record > 0 && time > 0);
        ASSERT_EQ(baselines[i], baseline_named(baselines[i]->name));
    }
    ASSERT_EQ(NULL, baseline_named("no such model"));
    PASS();
}

#define RUN_FORM(test)                                                                                                 \
    do {                                                                                                               \
        greatest_set_test_suffix(name);                                                                                \
        RUN_TEST1(test, i);                                                                                            \
    } while (0)

SUITE(baselines_suite) {
    static char cases[MOST_CASES][NAME_SIZE];
    static char name[96];
    mtan_config config;
    const int n = list_cases(cases);
    for (int i = 0; i < n; i++) {
        greatest_set_test_suffix(cases[i]);
        RUN_TESTp(golden_values_agree, cases[i], &mtan_backend_scalar);
        if (mtan_backend_best() == &mtan_backend_scalar) continue;
        snprintf(name, sizeof name, "%.63s on %.16s", cases[i], mtan_backend_best()->name);
        greatest_set_test_suffix(name);
        RUN_TESTp(golden_values_agree, cases[i], mtan_backend_best());
    }
    RUN_TEST(tasks_are_there);
    for (int i = 0; baseline_form(&config, name, sizeof name, i); i++) {
        if (sizeof(mtan_real) == sizeof(double)) RUN_FORM(gradients_are_finite_differences); /* float is too coarse */
        RUN_FORM(threads_change_no_bit);
        RUN_FORM(other_records_change_no_bit);
        RUN_FORM(backends_of_a_class_agree);
        RUN_FORM(files_hold_the_model);
        RUN_FORM(hostile_records_get_a_status);
        RUN_FORM(weights_of_nan_give_no_prediction);
        RUN_FORM(empty_records_are_records);
        RUN_FORM(counted_memory_is_enough);
    }
}
