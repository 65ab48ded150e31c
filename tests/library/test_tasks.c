/* Numbers and labels instead of classes: losses against PyTorch, gradients of whole models, what predictors, streams and the small
 * path give, and what is refused. */
#include <fenv.h>
#include <greatest.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden_file.h"
#include "small.h"

#ifdef MTAN_DOUBLE
#define NEAR 1e-12
#else
#define NEAR 2e-6
#endif

/* ---- golden: what PyTorch's losses are ---- */

enum { ROWS = 7, COUNT = 3, MOST = ROWS * COUNT * 3 };

static int read_reals(const char *loss, const char *part, double *out, size_t n) {
    char name[32];
    snprintf(name, sizeof name, "%s.%s", loss, part);
    return golden_read("tasks.safetensors", name, MTAN_DTYPE_F64, out, n);
}

static void to_reals(mtan_real *out, const double *x, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = (mtan_real)x[i];
}

TEST losses_are_those_of_pytorch(const char *name, mtan_task task, double interval) {
    const mtan_targets targets = {task, COUNT, (mtan_real)interval};
    const size_t n = ROWS * COUNT * (interval > 0 ? 3u : 1u);
    double given[MOST], wanted[ROWS * COUNT], gradient[MOST], expected, mean = 0, there = 0;
    mtan_real x[MOST], y[ROWS * COUNT], p[MOST], dx[MOST] = {0}, loss[ROWS], got;
    ASSERT(read_reals(name, "x", given, n) && read_reals(name, "y", wanted, ROWS * COUNT));
    ASSERT(read_reals(name, "loss", &expected, 1) && read_reals(name, "grad", gradient, n));
    to_reals(x, given, n), to_reals(y, wanted, ROWS * COUNT);
    mtan_backend_scalar.numbers_forward(NULL, loss, p, x, y, &targets, ROWS, 1);
    for (int i = 0; i < ROWS; i++) mean += (double)loss[i];
    for (int i = 0; i < ROWS * COUNT; i++) there += !isnan(wanted[i]);
    mtan_backend_scalar.numbers_backward(NULL, dx, p, y, &targets, (mtan_real)(1 / there), ROWS, 1);
    got = (mtan_real)(mean / there);
    ASSERT(check_close(name, &got, &expected, 1, 0, NEAR));
    ASSERT(check_close(name, dx, gradient, n, NEAR, NEAR));
    PASS();
}

/* ---- whole models ---- */

typedef struct {
    small_model small;
    small_set set;
    mtan_predictor predictor;
    mtan_trainer trainer;
    void *memory[2];
} desk;

enum { RECORDS = 9 };
static const mtan_bounds most = {RECORDS, 12, 6};

static int desk_open(desk *d, const char *name) {
    mtan_train_config train;
    size_t bytes[2];
    uint64_t random = 3;
    memset(d, 0, sizeof *d);
    if (!small_open_named(&d->small, name)) return 0;
    mtan_train_config_init(&train);
    train.seed = 5;
    d->set = small_records(&d->small.config, &most, RECORDS, 0, &random);
    if (mtan_predictor_size(&d->small.model, &most, &bytes[0]) != MTAN_OK ||
        mtan_trainer_size(&d->small.model, &train, &most, &bytes[1]) != MTAN_OK)
        return 0;
    d->memory[0] = guard_alloc(bytes[0]), d->memory[1] = guard_alloc(bytes[1]);
    return mtan_predictor_init(&d->predictor, &d->small.model, &most, d->memory[0], bytes[0]) == MTAN_OK &&
           mtan_trainer_init(&d->trainer, &d->small.model, d->small.weights, &train, &most, d->memory[1], bytes[1]) ==
               MTAN_OK;
}

static int desk_close(desk *d) {
    return guard_free(d->memory[0]) & guard_free(d->memory[1]) & small_free(&d->set) & small_close(&d->small);
}

/* The sum of the losses of a record's outputs, as the formulas stand in textbooks. */
static double loss_by_hand(const mtan_config *c, const mtan_real *x, const mtan_real *y, double *there) {
    const int32_t levels = mtan_config_outputs(c) / c->classes;
    double sum = 0;
    for (int32_t i = 0; i < c->classes; i++) {
        if (isnan((double)y[i])) continue;
        *there += 1;
        for (int32_t o = 0; o < levels; o++) {
            const double out = (double)x[i * levels + o], e = (double)y[i] - out, q = (1 + (o - 1) * c->interval) / 2;
            sum += c->task == MTAN_TASK_LABELS ? log(1 + exp(out)) - out * (double)y[i]
                   : levels == 3               ? fmax(q * e, (q - 1) * e)
                                               : e * e;
        }
    }
    return sum;
}

/* Mean over the numbers that are there. */
TEST a_batch_has_the_loss_of_its_logits(const char *name) {
    desk d;
    ASSERT(desk_open(&d, name));
    const mtan_config *c = &d.small.config;
    const int32_t O = mtan_config_outputs(c);
    mtan_real *logits = guard_alloc((size_t)(RECORDS * O) * sizeof *logits);
    mtan_report report;
    double sum = 0, there = 0;
    ASSERT_EQ(MTAN_OK, mtan_predictor_logits(&d.predictor, d.set.records, RECORDS, logits));
    ASSERT_EQ(MTAN_OK, mtan_trainer_loss(&d.trainer, d.set.records, RECORDS, 1, &report));
    for (int32_t b = 0; b < RECORDS; b++) sum += loss_by_hand(c, logits + b * O, d.set.records[b].numbers, &there);
    ASSERT_EQ_FMT((long long)there, (long long)report.labels, "%lld");
    ASSERT(there > 2 && fabs(report.ce - sum / there) <= 1e-5 * (1 + fabs(sum / there)));
    ASSERT(report.loss == report.ce && report.correct <= report.labels);
    ASSERT((report.correct > 0) == (c->task == MTAN_TASK_LABELS));
    ASSERT(guard_free(logits) && desk_close(&d));
    PASS();
}

#ifdef MTAN_DOUBLE
/* The slope of the loss along a random direction, against the gradient. */
TEST gradients_are_slopes(const char *name) {
    const double h = 1e-5;
    uint64_t random = 11;
    mtan_report report;
    desk d;
    ASSERT(desk_open(&d, name));
    const size_t n = d.small.count;
    double *way = malloc(n * sizeof *way), slope = 0, loss[2];
    ASSERT(way);
    ASSERT_EQ(MTAN_OK, mtan_trainer_gradient(&d.trainer, d.set.records, RECORDS, 1, &report));
    for (size_t i = 0; i < n; i++) slope += (way[i] = small_real(&random)) * d.trainer.gradient[i];
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < n; i++) d.small.weights[i] += (side ? -2 : 1) * h * way[i];
        ASSERT_EQ(MTAN_OK, mtan_trainer_loss(&d.trainer, d.set.records, RECORDS, 1, &report));
        loss[side] = report.loss;
    }
    ASSERT(fabs(slope) > 1e-3 && fabs((loss[0] - loss[1]) / (2 * h) - slope) <= 1e-6 * (1 + fabs(slope)));
    free(way);
    ASSERT(desk_close(&d));
    PASS();
}
#endif

TEST a_number_can_be_learned(const char *name) {
    mtan_report first, last;
    desk d;
    ASSERT(desk_open(&d, name));
    d.trainer.config.lr = 0.02;
    ASSERT_EQ(MTAN_OK, mtan_trainer_loss(&d.trainer, d.set.records, RECORDS, 1, &first));
    for (int i = 0; i < 200; i++) ASSERT_EQ(MTAN_OK, mtan_trainer_step(&d.trainer, d.set.records, RECORDS, 1, &last));
    ASSERT(last.ce < 0.9 * first.ce);
    ASSERT(desk_close(&d));
    PASS();
}

/* A row of logits of several samples as the rule says, in double. */
static void read_by_hand(const mtan_config *c, const mtan_real *logits, int32_t samples, double *out) {
    const int32_t O = mtan_config_outputs(c);
    const int labels = c->task == MTAN_TASK_LABELS, logs = c->rule == MTAN_MEAN_LOG_PROBABILITY;
    for (int32_t o = 0; o < O; o++) {
        double yes = 0, no = 0;
        for (int32_t s = 0; s < samples; s++) {
            const double x = (double)logits[s * O + o], p = labels ? 1 / (1 + exp(-x)) : x;
            yes += (labels && logs ? log(p) : p) / samples, no += (labels && logs ? log(1 - p) : 0) / samples;
        }
        out[o] = labels && logs ? exp(yes) / (exp(yes) + exp(no)) : yes;
    }
}

static int ascending(const double *x, size_t n) {
    for (size_t i = 1; i < n; i++)
        if (x[i] < x[i - 1]) return 0;
    return 1;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

TEST predictions_are_read_from_logits(const char *name) {
    desk d;
    ASSERT(desk_open(&d, name));
    const mtan_config *c = &d.small.config;
    const size_t O = (size_t)mtan_config_outputs(c), S = (size_t)small_samples(c), rows = small_class_rows(c, &d.set);
    mtan_real *logits = guard_alloc(rows * S * O * sizeof *logits), *out = guard_alloc(rows * O * sizeof *out);
    double *expected = guard_alloc(rows * O * sizeof *expected);
    int crossed = 0;
    ASSERT_EQ(MTAN_OK, mtan_predictor_logits(&d.predictor, d.set.records, RECORDS, logits));
    ASSERT_EQ(MTAN_OK, mtan_predictor_classify(&d.predictor, d.set.records, RECORDS, out));
    for (size_t r = 0; r < rows; r++) {
        double *row = expected + r * O;
        read_by_hand(c, logits + r * S * O, (int32_t)S, row);
        for (size_t i = 0; c->interval > 0 && i < O; i += 3) {
            crossed |= !ascending(row + i, 3);
            qsort(row + i, 3, sizeof *row, by_size);
        }
    }
    ASSERT(check_close(name, out, expected, rows * O, 1e-6, 2e-6));
    ASSERT(c->interval == 0 || crossed); /* or the order was not put to the test */
    ASSERT(guard_free(logits) && guard_free(out) && guard_free(expected) && desk_close(&d));
    PASS();
}

/* A program may trap the exceptions of floating-point arithmetic. */
TEST predictions_raise_no_invalid_operation(const char *name) {
#ifdef FE_INVALID
    desk d;
    ASSERT(desk_open(&d, name));
    const size_t O = (size_t)mtan_config_outputs(&d.small.config), rows = small_class_rows(&d.small.config, &d.set);
    mtan_real *out = guard_alloc(rows * O * sizeof *out);
    feclearexcept(FE_ALL_EXCEPT);
    ASSERT_EQ(MTAN_OK, mtan_predictor_classify(&d.predictor, d.set.records, RECORDS, out));
    ASSERT_FALSE(fetestexcept(FE_INVALID));
    ASSERT(guard_free(out) && desk_close(&d));
    PASS();
#else
    (void)name;
    SKIPm("this machine has no such exceptions");
#endif
}

/* The small path has its own way to the end; streams go that of predictors, and the suite of streams walks over these models. */
TEST the_small_path_agrees(const char *name) {
    size_t bytes = 0;
    desk d;
    ASSERT(desk_open(&d, name));
    const size_t O = (size_t)mtan_config_outputs(&d.small.config);
    mtan_real near[9 * RECORDS], got[9 * RECORDS];
    double expected[9 * RECORDS];
    ASSERT_EQ(MTAN_OK, mtan_small_size(&d.small.model, 2, &bytes));
    void *memory = guard_alloc(bytes);
    ASSERT_EQ(MTAN_OK, mtan_predictor_classify(&d.predictor, d.set.records, RECORDS, near));
    for (size_t b = 0; b < RECORDS; b++)
        ASSERT_EQ(MTAN_OK, mtan_small_classify(&d.small.model, &d.set.records[b], 2, memory, bytes, got + b * O));
    for (size_t i = 0; i < RECORDS * O; i++) expected[i] = (double)near[i];
    ASSERT(check_close(name, got, expected, RECORDS * O, 1e-5, 0));
    ASSERT(guard_free(memory) && desk_close(&d));
    PASS();
}

/* ---- what is refused ---- */

TEST targets_that_no_model_has_are_refused(const char *name, double bad) {
    desk d;
    mtan_report report;
    mtan_real *numbers;
    ASSERT(desk_open(&d, name));
    numbers = (mtan_real *)(uintptr_t)d.set.records[4].numbers;
    numbers[0] = (mtan_real)bad;
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_trainer_step(&d.trainer, d.set.records, RECORDS, 1, &report));
    d.set.records[4].numbers = NULL; /* none is no mistake */
    ASSERT_EQ(MTAN_OK, mtan_trainer_step(&d.trainer, d.set.records, RECORDS, 1, &report));
    d.set.records[4].numbers = numbers;
    ASSERT(desk_close(&d));
    PASS();
}

TEST settings_that_contradict_are_refused(void) {
    static const char *const bad[] = {
        "task number interval 1", "task number interval -0.5", "task labels interval 0.5", "interval 0.5", "classes 1",
        "task number classes 0"};
    static const char *const good[] = {"task number classes 1", "task labels classes 1", "task number interval 0.99"};
    mtan_config c;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        mtan_config_init(&c, MTAN_ENC, MTAN_CLASSIFY_RECORD, 3, 2);
        ASSERT(small_apply(&c, bad[i]));
        ASSERT_EQm(bad[i], MTAN_ERR_CONFIG, mtan_config_check(&c));
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        mtan_config_init(&c, MTAN_ENC, MTAN_CLASSIFY_RECORD, 3, 2);
        ASSERT(small_apply(&c, good[i]));
        ASSERT_EQm(good[i], MTAN_OK, mtan_config_check(&c));
    }
    ASSERT_EQ(6, (small_apply(&c, "classes 2"), mtan_config_outputs(&c)));
    c.classify = MTAN_CLASSIFY_NONE;
    ASSERT(mtan_config_outputs(&c) == 0 && mtan_config_outputs(NULL) == 0);
    PASS();
}

/* ---- units ---- */

/* A file of nothing but these pairs, and its preparation. */
static mtan_status open_prep(mtan_prep *prep, void *memory, size_t room, const mtan_file_pair *pairs, size_t n) {
    unsigned char blob[1024];
    size_t bytes = 0, needed = 0;
    mtan_file file;
    const char *key = NULL;
    mtan_status status = mtan_file_write_memory(NULL, 0, pairs, n, blob, sizeof blob, &bytes);
    if (status == MTAN_OK) status = mtan_file_open(&file, blob, bytes);
    if (status == MTAN_OK) status = mtan_prep_size(&file, &needed);
    if (status != MTAN_OK || needed > room) return status;
    return mtan_prep_open(prep, &file, memory, needed, &key);
}

TEST numbers_have_the_units_of_the_file(void) {
    const mtan_file_pair pairs[] = {{"mtan.channels", "1"},
                                    {"mtan.classes", "2"},
                                    {"mtan.number.offset", "37 -1e6"},
                                    {"mtan.number.scale", "0.5 1000"}};
    unsigned char memory[512];
    mtan_prep prep;
    ASSERT_EQ(MTAN_OK, open_prep(&prep, memory, sizeof memory, pairs, 4));
    ASSERT(mtan_prep_number(&prep, 0, 38) == 2 && mtan_prep_raw_number(&prep, 0, 2) == 38);
    ASSERT(mtan_prep_number(&prep, 1, -1e6) == 0 && mtan_prep_raw_number(&prep, 1, -1.5) == -1001500);
    ASSERT(mtan_prep_raw_number(&prep, 2, 7) == 7 && mtan_prep_raw_number(&prep, -1, 7) == 7);
    ASSERT(mtan_prep_number(&prep, 2, 7) == 7 && mtan_prep_number(&prep, -1, 7) == 7);
    ASSERT(mtan_prep_number(NULL, 0, 7) == 7 && mtan_prep_raw_number(NULL, 0, 7) == 7);
    ASSERT_EQ(MTAN_OK, open_prep(&prep, memory, sizeof memory, pairs, 2));
    ASSERT(!prep.number && mtan_prep_number(&prep, 0, 38) == 38 && mtan_prep_raw_number(&prep, 0, 38) == 38);
    PASS();
}

TEST units_that_cannot_be_used_are_refused(void) {
    static const char *const bad[][2] = {{"37", "1 1"},     {"37 1", "1"},   {"37 1", "1 0"},     {"37 1", "1 -1"},
                                         {"37 nan", "1 1"}, {"", "1 1"},     {"37 1", "1 1e-99"}, {"1 2", "1 x"},
                                         {"1 2 3", "1 1"},  {"1 inf", "1 1"}};
    unsigned char memory[512];
    mtan_prep prep;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const mtan_file_pair pairs[] = {{"mtan.channels", "1"},
                                        {"mtan.classes", "2"},
                                        {"mtan.number.offset", bad[i][0]},
                                        {"mtan.number.scale", bad[i][1]}};
        if (sizeof(mtan_real) == 8 && strstr(bad[i][1], "e-99")) continue; /* which a double can hold */
        ASSERT_EQm(bad[i][1], MTAN_ERR_FILE, open_prep(&prep, memory, sizeof memory, pairs, 4));
        ASSERT_EQm("an offset alone", MTAN_ERR_FILE, open_prep(&prep, memory, sizeof memory, pairs, 3));
    }
    PASS();
}

SUITE(tasks_suite) {
    static const char *const of_records[] = {"enc number", "enc interval", "enc labels"};
    static const char *const every[] = {"enc number",  "enc interval", "enc labels",      "enc time labels",
                                        "full number", "full labels",  "full time number"};
    greatest_set_test_suffix("squared");
    RUN_TESTp(losses_are_those_of_pytorch, "squared", MTAN_TASK_NUMBER, 0);
    greatest_set_test_suffix("pinball");
    RUN_TESTp(losses_are_those_of_pytorch, "pinball", MTAN_TASK_NUMBER, 0.9);
    greatest_set_test_suffix("labels");
    RUN_TESTp(losses_are_those_of_pytorch, "labels", MTAN_TASK_LABELS, 0);
    for (size_t i = 0; i < 3; i++) {
        greatest_set_test_suffix(of_records[i]);
        RUN_TESTp(a_batch_has_the_loss_of_its_logits, of_records[i]);
        greatest_set_test_suffix(of_records[i]);
        RUN_TESTp(the_small_path_agrees, of_records[i]);
    }
    for (size_t i = 0; i < sizeof every / sizeof every[0]; i++) {
#ifdef MTAN_DOUBLE
        greatest_set_test_suffix(every[i]);
        RUN_TESTp(gradients_are_slopes, every[i]);
#endif
        greatest_set_test_suffix(every[i]);
        RUN_TESTp(a_number_can_be_learned, every[i]);
        greatest_set_test_suffix(every[i]);
        RUN_TESTp(predictions_are_read_from_logits, every[i]);
        RUN_TESTp(predictions_raise_no_invalid_operation, every[i]);
    }
    RUN_TESTp(targets_that_no_model_has_are_refused, "enc number", INFINITY);
    RUN_TESTp(targets_that_no_model_has_are_refused, "enc labels", 2);
    RUN_TESTp(targets_that_no_model_has_are_refused, "enc labels", -1);
    RUN_TEST(settings_that_contradict_are_refused);
    RUN_TEST(numbers_have_the_units_of_the_file);
    RUN_TEST(units_that_cannot_be_used_are_refused);
}
