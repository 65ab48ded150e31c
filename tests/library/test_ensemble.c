/* Ensembles: their members' weights in one model, averaged by predictors and streams, saved and read as any other. */
#define MTAN_INTERNALS
#include <greatest.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../mtan.h"
#include "caller.h"
#include "check.h"
#include "tiny_model.h"

enum { MEMBERS = 3, RECORDS = 5, MOST_OUT = 4096 };

/* Models of different weights on the same records, and the ensemble of them. */
typedef struct {
    tiny_model of[MEMBERS];
    mtan_model members[MEMBERS], model;
    mtan_real *weights;
} ensemble;

static int ensemble_open(ensemble *e, tiny_kind kind) {
    for (int i = 0; i < MEMBERS; i++) {
        tiny_open(&e->of[i], kind, RECORDS);
        mtan_weights_init(&e->of[i].config, e->of[i].weights, e->of[i].count, (uint32_t)i + 1);
        e->members[i] = e->of[i].model;
    }
    const size_t count = MEMBERS * e->of[0].count;
    e->weights = guard_alloc(count * sizeof *e->weights);
    return mtan_model_join(&e->model, e->weights, count, e->members, MEMBERS) == MTAN_OK;
}

static int ensemble_close(ensemble *e) {
    int good = guard_free(e->weights);
    for (int i = 0; i < MEMBERS; i++) good &= tiny_close(&e->of[i]);
    return good;
}

typedef struct {
    mtan_predictor predictor;
    void *memory;
} opened;

static int predictor_open(opened *p, const mtan_model *model, int32_t records) {
    const mtan_bounds bounds = {records, TINY_EVENTS, TINY_EVENTS + 8};
    size_t bytes;
    if (mtan_predictor_size(model, &bounds, &bytes) != MTAN_OK) return 0;
    p->memory = guard_alloc(bytes);
    return mtan_predictor_init(&p->predictor, model, &bounds, p->memory, bytes) == MTAN_OK;
}

/* In two turns, as two records fit a call. */
TEST probabilities_are_averaged(tiny_kind kind) {
    static mtan_real p[MEMBERS][MOST_OUT], mean[MOST_OUT], logits[MOST_OUT];
    ensemble e;
    opened o;
    size_t n = 0;
    if (tiny_left_out(kind)) SKIPm(LEFT_OUT);
    ASSERT(ensemble_open(&e, kind));
    for (size_t i = 0; i < MOST_OUT; i++) p[0][i] = -1;
    for (int i = 0; i < MEMBERS; i++) {
        ASSERT(predictor_open(&o, &e.members[i], 2));
        ASSERT_EQ(MTAN_OK, mtan_predictor_classify(&o.predictor, e.of[0].records, RECORDS, p[i]));
        ASSERT(guard_free(o.memory));
    }
    ASSERT(predictor_open(&o, &e.model, 2));
    ASSERT_EQ(MTAN_OK, mtan_predictor_classify(&o.predictor, e.of[0].records, RECORDS, mean));
    ASSERT_EQ(MTAN_OK, mtan_predictor_logits(&o.predictor, e.of[0].records, RECORDS, logits));
    while (n < MOST_OUT && p[0][n] >= 0) n++;
    ASSERT(n >= RECORDS * (size_t)e.model.config.classes && n < MOST_OUT);
    for (size_t i = 0; i < n; i++) {
        ASSERT(mean[i] == (p[0][i] + p[1][i] + p[2][i]) / 3);
        ASSERT(fabs((double)logits[i] - log((double)mean[i])) <= 1e-5);
    }
    ASSERT(memcmp(p[0], p[1], n * sizeof **p) != 0);
    ASSERT(guard_free(o.memory) & ensemble_close(&e));
    PASS();
}

/* Of all members together: the law of total variance, against one pass over every curve. */
TEST curves_are_averaged(void) {
    static mtan_real mean[MEMBERS][MOST_OUT], std[MEMBERS][MOST_OUT], all[MOST_OUT], spread[MOST_OUT];
    const mtan_real times[4] = {0, (mtan_real)0.25, (mtan_real)0.5, 1};
    ensemble e;
    opened o;
    ASSERT(ensemble_open(&e, TINY_FULL));
    mtan_record r = e.of[0].records[0];
    r.times = times, r.n_times = 4, r.noise = NULL;
    const size_t n = 4 * (size_t)e.model.config.channels;
    for (int i = 0; i < MEMBERS; i++) {
        ASSERT(predictor_open(&o, &e.members[i], 1));
        ASSERT_EQ(MTAN_OK, mtan_predictor_interpolate(&o.predictor, &r, mean[i], std[i]));
        ASSERT(guard_free(o.memory));
    }
    ASSERT(predictor_open(&o, &e.model, 1));
    ASSERT_EQ(MTAN_OK, mtan_predictor_interpolate(&o.predictor, &r, all, spread));
    for (size_t i = 0; i < n; i++) {
        double m = 0, v = 0;
        for (int k = 0; k < MEMBERS; k++) m += (double)mean[k][i] / MEMBERS;
        for (int k = 0; k < MEMBERS; k++)
            v +=
                ((double)std[k][i] * (double)std[k][i] + ((double)mean[k][i] - m) * ((double)mean[k][i] - m)) / MEMBERS;
        ASSERT(fabs((double)all[i] - m) <= 1e-6 * (1 + fabs(m)));
        ASSERT(fabs((double)spread[i] - sqrt(v)) <= 1e-5 * (1 + sqrt(v)));
    }
    ASSERT_EQ(MTAN_OK, mtan_predictor_interpolate(&o.predictor, &r, spread, NULL));
    ASSERT(check_same("mean", spread, all, n * sizeof *all));
    ASSERT(guard_free(o.memory) & ensemble_close(&e));
    PASS();
}

TEST streams_are_averaged(tiny_kind kind) {
    mtan_real batch[8], live[8];
    ensemble e;
    opened o;
    mtan_stream stream;
    size_t bytes;
    if (tiny_left_out(kind)) SKIPm(LEFT_OUT);
    ASSERT(ensemble_open(&e, kind));
    const mtan_record *r = &e.of[0].records[0];
    mtan_record ask = *r;
    ASSERT(predictor_open(&o, &e.model, 1));
    ASSERT_EQ(MTAN_OK, mtan_stream_size(&e.model, 0, &bytes));
    void *memory = guard_alloc(bytes);
    ASSERT_EQ(MTAN_OK, mtan_stream_init(&stream, &o.predictor, 0, memory, bytes));
    for (int twice = 0; twice < 2; twice++) {
        for (mtan_real t = 0; t <= 1; t += (mtan_real)0.001) /* in the order of time */
            for (int32_t i = 0; i < r->n_events; i++)
                if (r->events[i].time >= t && r->events[i].time < t + (mtan_real)0.001)
                    ASSERT_EQ(MTAN_OK,
                              mtan_stream_push(&stream, r->events[i].time, r->events[i].channel, r->events[i].value));
        ASSERT_EQ(MTAN_OK, mtan_stream_predict(&stream, &ask, live));
        ask.events = r->events;
        ASSERT_EQ(MTAN_OK, mtan_predictor_classify(&o.predictor, &ask, 1, batch));
        for (int c = 0; c < e.model.config.classes; c++) ASSERT(fabs((double)live[c] - (double)batch[c]) <= 1e-5);
        ASSERT_EQ(MTAN_OK, mtan_stream_reset(&stream));
    }
    ASSERT(guard_free(memory) & guard_free(o.memory) & ensemble_close(&e));
    PASS();
}

typedef struct {
    uint8_t *bytes;
    size_t n;
} blob;

static mtan_status pour(void *context, const void *bytes, size_t n) {
    blob *b = context;
    b->bytes = realloc(b->bytes, b->n + n);
    memcpy(b->bytes + b->n, bytes, n);
    b->n += n;
    return MTAN_OK;
}

TEST a_file_has_all_members(void) {
    ensemble e;
    mtan_model loaded, member;
    mtan_file file;
    size_t count;
    blob b = {NULL, 0};
    ASSERT(ensemble_open(&e, TINY_ENC));
    ASSERT_EQ(MTAN_OK, mtan_model_save(&e.model, NULL, NULL, 0, pour, &b));
    ASSERT_EQ(MTAN_OK, mtan_file_open(&file, b.bytes, b.n));
    ASSERT_EQ(MTAN_OK, mtan_model_load_count(&file, NULL, &count));
    ASSERT_EQ(MEMBERS * e.of[0].count, count);
    mtan_real *weights = guard_alloc(count * sizeof *weights);
    ASSERT_EQ(MTAN_OK, mtan_model_load(&loaded, weights, count, &file, NULL));
    ASSERT_EQ(MEMBERS, loaded.config.members);
    ASSERT(check_same("weights", weights, e.weights, count * sizeof *weights));
    for (int k = 0; k < MEMBERS; k++) {
        mtan_param p;
        ASSERT_EQ(MTAN_OK, mtan_model_member(&member, &loaded, k));
        ASSERT_EQ(1, member.config.members);
        for (int32_t i = 0; mtan_param_at(&member.config, i, &p) == MTAN_OK; i++)
            ASSERT(check_same(p.name, member.weights + member.offset[i], e.of[k].weights + p.offset,
                              (size_t)p.rows * (size_t)p.cols * sizeof(mtan_real)));
    }
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_model_member(&member, &loaded, MEMBERS));
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_model_member(&member, &loaded, -1));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_model_member(NULL, &loaded, 0));
    free(b.bytes);
    ASSERT(guard_free(weights) & ensemble_close(&e));
    PASS();
}

TEST what_takes_one_model_refuses_more(void) {
    const mtan_bounds bounds = {1, TINY_EVENTS, TINY_EVENTS};
    mtan_train_config train;
    mtan_model made;
    ensemble e;
    size_t bytes;
    mtan_train_config_init(&train);
    ASSERT(ensemble_open(&e, TINY_ENC));
    const size_t count = MEMBERS * e.of[0].count;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_trainer_size(&e.model, &train, &bounds, &bytes));
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_small_size(&e.model, 1, &bytes));
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_weights_init(&e.model.config, e.weights, count, 0));
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_model_join(&made, e.weights, count, &e.model, 1));
    ASSERT_EQ(MTAN_ERR_MEMORY, mtan_model_join(&made, e.weights, count - 1, e.members, MEMBERS));
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_model_join(&made, e.weights, count, e.members, 0));
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_model_join(&made, e.weights, count, e.members, MTAN_MAX_MEMBERS + 1));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_model_join(&made, e.weights, count, NULL, MEMBERS));
    e.members[1].config.alpha += 1;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_model_join(&made, e.weights, count, e.members, MEMBERS));
    e.model.config.members = MTAN_MAX_MEMBERS + 1;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&e.model.config));
    ASSERT(ensemble_close(&e));
    PASS();
}

SUITE(ensemble_suite) {
    static const tiny_kind classifying[] = {TINY_ENC, TINY_FULL, TINY_ENC_TIME, TINY_FULL_TIME};
    for (size_t i = 0; i < sizeof classifying / sizeof *classifying; i++) {
        greatest_set_test_suffix(tiny_names[classifying[i]]);
        RUN_TESTp(probabilities_are_averaged, classifying[i]);
    }
    RUN_TEST(curves_are_averaged);
    greatest_set_test_suffix(tiny_names[TINY_ENC]);
    RUN_TESTp(streams_are_averaged, TINY_ENC);
    greatest_set_test_suffix(tiny_names[TINY_FULL]);
    RUN_TESTp(streams_are_averaged, TINY_FULL);
    RUN_TEST(a_file_has_all_members);
    RUN_TEST(what_takes_one_model_refuses_more);
}
