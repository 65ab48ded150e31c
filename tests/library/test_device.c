/* A backend with a device, of which nothing but its calls is there: its memory is the host's and its kernels are the scalar
 * ones, so that results have the scalar code's bits, and each of its calls can be made to fail. What a real device does is
 * tested in tests/cuda. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "caller.h"
#include "check.h"
#include "tiny_model.h"

enum { RECORDS = 6 };
typedef enum { SEND, FETCH, SEND_AHEAD, ARRIVE, CALLS } call;

static int counted[CALLS], fails_at[CALLS]; /* that call of its kind fails, from 1 on; 0: none */

static int32_t count_call(call which) {
    return ++counted[which] != fails_at[which];
}

static int32_t do_send(const void *from, size_t bytes) {
    (void)from, (void)bytes;
    return count_call(SEND);
}

static int32_t do_fetch(void *to, size_t bytes) {
    (void)to, (void)bytes;
    return count_call(FETCH);
}

static int32_t do_send_ahead(const void *from, size_t bytes) {
    (void)from, (void)bytes;
    return count_call(SEND_AHEAD);
}

static int32_t do_arrive(void) {
    return count_call(ARRIVE);
}

static const mtan_device pretended = {do_send, do_fetch, do_send_ahead, do_arrive};

static const mtan_backend *backend_with_device(void) {
    static mtan_backend backend;
    backend = mtan_backend_scalar;
    backend.device = &pretended;
    memset(counted, 0, sizeof counted);
    memset(fails_at, 0, sizeof fails_at);
    return &backend;
}

static void open_with_device(tiny_model *s, tiny_kind kind) {
    mtan_train_config config;
    tiny_open(s, kind, RECORDS);
    s->model.backend = backend_with_device();
    mtan_train_config_init(&config);
    tiny_train(s, &config);
}

/* ---- what it gives ---- */

TEST results_are_those_of_the_host(tiny_kind kind) {
    tiny_model a, b;
    mtan_report there, here;
    mtan_train_config config;
    mtan_train_config_init(&config);
    open_with_device(&a, kind), tiny_open(&b, kind, RECORDS);
    tiny_train(&b, &config);
    ASSERT_EQ(MTAN_OK,
              mtan_trainer_gradient(&a.trainer, a.records, 1, 1, &there)); /* one record is one shard on both */
    ASSERT_EQ(MTAN_OK, mtan_trainer_gradient(&b.trainer, b.records, 1, 1, &here));
    ASSERT(check_same("report", &there, &here, sizeof here));
    ASSERT(check_same("gradient", a.trainer.gradient, b.trainer.gradient, a.count * sizeof *a.weights));
    ASSERT(counted[SEND] > 0 && counted[FETCH] > 0 && counted[SEND_AHEAD] == 0);
    ASSERT(tiny_close(&a) & tiny_close(&b));
    PASS();
}

/* Attention weights are made on the host, of scores, weights and totals: each of them comes over. */
TEST attention_fetches_what_it_reads(void) {
    tiny_model s;
    mtan_real weight[64 * TINY_EVENTS];
    tiny_open(&s, TINY_ENC, RECORDS);
    s.model.backend = backend_with_device();
    tiny_predict(&s, 1);
    const int before = counted[FETCH];
    ASSERT((size_t)s.config.ref_points * TINY_EVENTS <= sizeof weight / sizeof *weight);
    ASSERT_EQ(MTAN_OK, mtan_predictor_attention(&s.predictor, s.records, 0, 0, weight));
    ASSERT_EQ_FMT(3, counted[FETCH] - before, "%d");
    ASSERT(tiny_close(&s));
    PASS();
}

/* What a device does not have is refused; what int8 needs there is counted. */
TEST what_a_device_has(void) {
    static const char *const sizes[] = {"real", "int8"};
    tiny_model s;
    mtan_architecture other;
    size_t bytes[2] = {0, 0}, none = 5;
    tiny_open(&s, TINY_ENC, RECORDS);
    s.model.backend = backend_with_device();
    for (int i = 0; i < 2; i++) {
        s.model.precision = i ? MTAN_INT8 : MTAN_REAL;
        ASSERT_EQm(sizes[i], MTAN_OK, mtan_predictor_size(&s.model, &s.bounds, &bytes[i]));
    }
    s.model.backend = &mtan_backend_scalar;
    ASSERT_EQ(MTAN_OK, mtan_predictor_size(&s.model, &s.bounds, &none));
    ASSERT_EQ(bytes[1], none);
    s.model.precision = MTAN_REAL;
    ASSERT_EQ(MTAN_OK, mtan_predictor_size(&s.model, &s.bounds, &none));
    ASSERT(bytes[0] < none); /* real recurrent weights are not packed on a device */
    s.model.backend = backend_with_device();
    none = 5;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_stream_size(&s.model, 0, &none));
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_small_size(&s.model, 1, &none));
    memset(&other, 0, sizeof other);
    other.name = "other";
    s.model.config.architecture = &other; /* it does not say that its work is all in kernels */
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_predictor_size(&s.model, &s.bounds, &none));
    s.model.config.architecture = NULL;
    ASSERT_EQ(5, none);
    ASSERT(tiny_close(&s));
    PASS();
}

static mtan_status sum_of_one(void *context, mtan_real *data, size_t n) {
    (void)context, (void)data, (void)n;
    return MTAN_OK;
}

static void one_after_the_other(void *context, int32_t n, mtan_body body, void *argument) {
    (void)context;
    for (int32_t i = 0; i < n; i++) body(argument, i, 0);
}

/* Training with two threads or ranks is refused because of the device: without one the same is fine. */
TEST threads_and_ranks_are_refused(void) {
    tiny_model s;
    size_t bytes;
    mtan_train_config config;
    tiny_open(&s, TINY_ENC, RECORDS);
    mtan_train_config_init(&config);
    config.parallel_for = one_after_the_other, config.allreduce = sum_of_one;
    for (int i = 0; i < 2; i++) {
        config.ranks = i ? 2 : 1, config.threads = i ? 1 : 2;
        s.model.backend = &mtan_backend_scalar;
        ASSERT_EQ(MTAN_OK, mtan_trainer_size(&s.model, &config, &s.bounds, &bytes));
        s.model.backend = backend_with_device();
        bytes = 5;
        ASSERT_EQ(MTAN_ERR_CONFIG, mtan_trainer_size(&s.model, &config, &s.bounds, &bytes));
        ASSERT_EQ(5, bytes);
    }
    ASSERT(tiny_close(&s));
    PASS();
}

static size_t endless(int32_t n, int32_t k) {
    (void)n, (void)k;
    return (size_t)INT32_MAX + 1;
}

/* A backend may lay weights out in more room than 32-bit offsets count. */
TEST packed_weights_that_are_too_large(void) {
    mtan_backend backend = mtan_backend_scalar;
    tiny_model s;
    size_t bytes = 5;
    tiny_open(&s, TINY_ENC, 1);
    s.model.backend = &backend;
    backend.pack_count = endless;
    ASSERT_EQ(MTAN_ERR_SIZE, mtan_predictor_size(&s.model, &s.bounds, &bytes));
    backend.pack_count = mtan_backend_scalar.pack_count, backend.pack_int8_count = endless;
    s.model.precision = MTAN_INT8;
    ASSERT_EQ(MTAN_ERR_SIZE, mtan_predictor_size(&s.model, &s.bounds, &bytes));
    ASSERT_EQ(5, bytes);
    s.model.precision = MTAN_REAL;
    ASSERT_EQ(MTAN_OK, mtan_predictor_size(&s.model, &s.bounds, &bytes));
    ASSERT(tiny_close(&s));
    PASS();
}

TEST scratch_is_for_hosts(void) {
    tiny_model s;
    size_t bytes = 5;
    open_with_device(&s, TINY_ENC);
    ASSERT_EQ(NULL, mtan_trainer_scratch(&s.trainer, 0, &bytes));
    ASSERT_EQ(0, bytes);
    ASSERT(tiny_close(&s));
    PASS();
}

/* ---- failures ---- */

/* Runs `work` with the first call of that kind failing, then the second, until there are no more: how many there are, or -1
 * where one was not told. */
static int failures(tiny_model *s, call which, mtan_status (*work)(tiny_model *s)) {
    for (int n = 1;; n++) {
        memset(counted, 0, sizeof counted);
        fails_at[which] = n;
        const mtan_status status = work(s);
        fails_at[which] = 0;
        if (counted[which] < n) return status == MTAN_OK ? n - 1 : -1;
        if (status != MTAN_ERR_DEVICE) return -1;
    }
}

static mtan_status make_predictor(tiny_model *s) {
    size_t bytes = 0;
    mtan_predictor predictor;
    mtan_status status = mtan_predictor_size(&s->model, &s->bounds, &bytes);
    void *memory = guard_alloc(bytes);
    if (status == MTAN_OK) status = mtan_predictor_init(&predictor, &s->model, &s->bounds, memory, bytes);
    return guard_free(memory) ? status : MTAN_ERR_MEMORY;
}

static mtan_status classify(tiny_model *s) {
    mtan_real p[2 * RECORDS];
    return mtan_predictor_classify(&s->predictor, s->records, RECORDS, p);
}

static mtan_status take_step(tiny_model *s) {
    mtan_report report;
    return mtan_trainer_step(&s->trainer, s->records, RECORDS, 1, &report);
}

static mtan_status update(tiny_model *s) {
    return mtan_trainer_update(&s->trainer, 1);
}

TEST failures_are_told(void) {
    tiny_model s;
    open_with_device(&s, TINY_FULL);
    tiny_predict(&s, RECORDS);
    ASSERT(failures(&s, SEND, make_predictor) > 0);
    ASSERT(failures(&s, FETCH, make_predictor) > 0);
    ASSERT(failures(&s, SEND, classify) > 0);
    ASSERT(failures(&s, FETCH, classify) > 0);
    ASSERT(failures(&s, SEND, take_step) > 0);
    ASSERT(failures(&s, FETCH, take_step) > 0);
    ASSERT_EQ(1, failures(&s, FETCH, update));
    ASSERT(tiny_close(&s));
    PASS();
}

/* An update whose norm the device did not give moves nothing. */
/* The weights of each member are folded on the device. */
TEST failures_of_members_are_told(void) {
    tiny_model s;
    mtan_model members[2], joined;
    open_with_device(&s, TINY_FULL);
    mtan_real *weights = guard_alloc(2 * s.count * sizeof *weights);
    members[0] = members[1] = s.model;
    ASSERT_EQ(MTAN_OK, mtan_model_join(&joined, weights, 2 * s.count, members, 2));
    const int alone = failures(&s, SEND, make_predictor);
    const mtan_model model = s.model;
    s.model = joined;
    ASSERT(alone > 0 && failures(&s, SEND, make_predictor) == 2 * alone);
    s.model = model;
    ASSERT(guard_free(weights) & tiny_close(&s));
    PASS();
}

TEST a_failing_update_changes_nothing(void) {
    tiny_model s;
    mtan_report report;
    open_with_device(&s, TINY_ENC);
    ASSERT_EQ(MTAN_OK, mtan_trainer_gradient(&s.trainer, s.records, RECORDS, 1, &report));
    mtan_real *before = tiny_copy(s.weights, s.count);
    fails_at[FETCH] = counted[FETCH] + 1;
    ASSERT_EQ(MTAN_ERR_DEVICE, mtan_trainer_update(&s.trainer, 1));
    ASSERT(check_same("weights", s.weights, before, s.count * sizeof *before));
    ASSERT_EQ(0, (int)s.trainer.step);
    ASSERT_EQ(MTAN_OK, mtan_trainer_update(&s.trainer, 1));
    ASSERT(memcmp(s.weights, before, s.count * sizeof *before) != 0);
    free(before);
    ASSERT(tiny_close(&s));
    PASS();
}

/* ---- batches that go ahead ---- */

/* A batch that went ahead is used by the step it was sent for, with the bits of one that did not; not by a step with other
 * records, or with fewer of them; and one that does not arrive is a failure. */
TEST a_batch_goes_ahead(void) {
    tiny_model a, b;
    mtan_report there, here;
    open_with_device(&a, TINY_ENC), open_with_device(&b, TINY_ENC);
    const struct {
        int32_t said, n;
        int arrives;
    } steps[] = {{RECORDS, RECORDS, 0},
                 {RECORDS, RECORDS, 1},
                 {RECORDS - 1, RECORDS, 1},
                 {RECORDS, RECORDS, 0},
                 {RECORDS, RECORDS, 1}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const int before = counted[ARRIVE];
        mtan_trainer_next(&a.trainer, a.records, steps[i].said);
        ASSERT_EQ(MTAN_OK, mtan_trainer_step(&a.trainer, a.records, steps[i].n, 1, &there));
        ASSERT_EQ(steps[i].arrives, counted[ARRIVE] - before);
        ASSERT_EQ(MTAN_OK, mtan_trainer_step(&b.trainer, b.records, steps[i].n, 1, &here));
        ASSERT(check_same("report", &there, &here, sizeof here));
    }
    ASSERT(check_same("weights", a.weights, b.weights, a.count * sizeof *a.weights));
    fails_at[ARRIVE] = counted[ARRIVE] + 1;
    ASSERT_EQ(MTAN_ERR_DEVICE, mtan_trainer_step(&a.trainer, a.records, RECORDS, 1, &there));
    ASSERT(check_same("weights", a.weights, b.weights, a.count * sizeof *a.weights));
    ASSERT_EQ(MTAN_OK, mtan_trainer_step(&a.trainer, a.records, RECORDS, 1, &there));
    ASSERT(tiny_close(&a) & tiny_close(&b));
    PASS();
}

/* It stays whole when a loss is measured before its step. */
TEST a_loss_in_between_leaves_it_alone(void) {
    tiny_model a, b;
    mtan_report there, here;
    open_with_device(&a, TINY_ENC), open_with_device(&b, TINY_ENC);
    for (int i = 0; i < 4; i++) {
        mtan_trainer_next(&a.trainer, a.records, RECORDS);
        ASSERT_EQ(MTAN_OK, mtan_trainer_step(&a.trainer, a.records, RECORDS, 1, &there));
        ASSERT_EQ(MTAN_OK, mtan_trainer_loss(&a.trainer, a.records, RECORDS, 1, &there));
        ASSERT_EQ(MTAN_OK, mtan_trainer_step(&b.trainer, b.records, RECORDS, 1, &here));
    }
    ASSERT(counted[ARRIVE] > 0);
    ASSERT(check_same("weights", a.weights, b.weights, a.count * sizeof *a.weights));
    ASSERT(tiny_close(&a) & tiny_close(&b));
    PASS();
}

/* What cannot go ahead is left to its own step: no records, more than the bounds have, bad ones, others than were said, ones
 * that are taken back, and what the device does not take. */
TEST what_does_not_go_ahead(void) {
    tiny_model s;
    mtan_report report;
    mtan_record bad[RECORDS], same[RECORDS];
    open_with_device(&s, TINY_ENC);
    memcpy(same, s.records, sizeof same), memcpy(bad, s.records, sizeof bad);
    bad[1].n_events = -1;
    mtan_trainer_next(&s.trainer, s.records, 0);
    ASSERT_EQ(MTAN_OK, take_step(&s));
    mtan_trainer_next(&s.trainer, s.records, RECORDS + 1);
    ASSERT_EQ(MTAN_OK, take_step(&s));
    mtan_trainer_next(&s.trainer, bad, RECORDS);
    ASSERT_EQ(MTAN_OK, take_step(&s));
    ASSERT_EQ(0, counted[SEND_AHEAD]);
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_trainer_step(&s.trainer, bad, RECORDS, 1, &report));
    mtan_trainer_next(&s.trainer, s.records, RECORDS);
    fails_at[SEND_AHEAD] = 1;
    ASSERT_EQ(MTAN_OK, take_step(&s));
    ASSERT_EQ(1, counted[SEND_AHEAD]);
    mtan_trainer_next(&s.trainer, s.records, RECORDS);
    ASSERT_EQ(MTAN_OK, take_step(&s));
    ASSERT_EQ(2, counted[SEND_AHEAD]);
    ASSERT_EQ(MTAN_OK, mtan_trainer_step(&s.trainer, same, RECORDS, 1, &report)); /* others, though they say the same */
    mtan_trainer_next(&s.trainer, s.records, RECORDS);
    ASSERT_EQ(MTAN_OK, take_step(&s));
    mtan_trainer_next(&s.trainer, NULL, 0);
    ASSERT_EQ(MTAN_OK, take_step(&s));
    ASSERT_EQ(0, counted[ARRIVE]);
    mtan_trainer_next(&s.trainer, s.records, RECORDS); /* and what went ahead of a step that failed before it took it */
    ASSERT_EQ(MTAN_OK, take_step(&s));
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_trainer_step(&s.trainer, bad, RECORDS, 1, &report));
    ASSERT_EQ(MTAN_OK, take_step(&s));
    ASSERT_EQ(0, counted[ARRIVE]);
    ASSERT(tiny_close(&s));
    PASS();
}

/* ---- checkpoints ---- */

static struct {
    unsigned char bytes[1 << 17];
    size_t used;
} saved;

static mtan_status keep(void *context, const void *bytes, size_t n) {
    (void)context;
    if (n > sizeof saved.bytes - saved.used) return MTAN_ERR_WRITE;
    memcpy(saved.bytes + saved.used, bytes, n);
    saved.used += n;
    return MTAN_OK;
}

static mtan_status load_saved(tiny_model *s) {
    return blob_load_trainer(&s->trainer, saved.bytes, saved.used);
}

/* Weights and both moments go to the device, and each that does not is told. */
TEST a_checkpoint_goes_to_the_device(void) {
    tiny_model a, b;
    open_with_device(&a, TINY_ENC), open_with_device(&b, TINY_ENC);
    ASSERT_EQ(MTAN_OK, take_step(&a));
    saved.used = 0;
    ASSERT_EQ(MTAN_OK, mtan_model_save(&a.model, &a.trainer, NULL, 0, keep, NULL));
    ASSERT_EQ(3, failures(&b, SEND, load_saved));
    ASSERT(check_same("weights", b.weights, a.weights, a.count * sizeof *a.weights));
    ASSERT(check_same("moments", b.trainer.moment2, a.trainer.moment2, a.count * sizeof *a.weights));
    ASSERT_EQ(1, (int)b.trainer.step);
    ASSERT(tiny_close(&a) & tiny_close(&b));
    PASS();
}

SUITE(device_suite) {
    static const tiny_kind kinds[] = {TINY_ENC, TINY_FULL, TINY_ENC_TIME, TINY_OBSERVED};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        greatest_set_test_suffix(tiny_names[kinds[i]]);
        RUN_TEST1(results_are_those_of_the_host, kinds[i]);
    }
    RUN_TEST(attention_fetches_what_it_reads);
    RUN_TEST(what_a_device_has);
    RUN_TEST(threads_and_ranks_are_refused);
    RUN_TEST(packed_weights_that_are_too_large);
    RUN_TEST(scratch_is_for_hosts);
    RUN_TEST(failures_are_told);
    RUN_TEST(failures_of_members_are_told);
    RUN_TEST(a_failing_update_changes_nothing);
    RUN_TEST(a_batch_goes_ahead);
    RUN_TEST(a_loss_in_between_leaves_it_alone);
    RUN_TEST(what_does_not_go_ahead);
    RUN_TEST(a_checkpoint_goes_to_the_device);
}
