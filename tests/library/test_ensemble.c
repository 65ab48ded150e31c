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

/* The head's last layer gives numbers of a thousand and more: probabilities are 0 or 1. */
static void make_sure(ensemble *e, int member) {
    mtan_param p, last = {0};
    for (int32_t i = 0; mtan_param_at(&e->of[0].config, i, &p) == MTAN_OK; i++)
        if (strstr(p.name, "classifier.") && strstr(p.name, ".bias")) last = p;
    for (int32_t i = 0; i < last.rows * last.cols; i++) {
        const mtan_real bias = (mtan_real)(i % 2 ? -2000 : 2000);
        e->of[member].weights[last.offset + (size_t)i] = bias;
        e->weights[MEMBERS * last.offset + (size_t)(member * last.rows * last.cols + i)] = bias;
    }
}

/* Of labels and numbers the means are averaged too; as logits they stay finite where a probability is 0 or 1. */
TEST other_tasks_are_averaged(mtan_task task) {
    enum { OUTPUTS = 2 };
    mtan_real one[RECORDS * OUTPUTS], mean[RECORDS * OUTPUTS], logits[RECORDS * OUTPUTS];
    double sum[RECORDS * OUTPUTS] = {0};
    ensemble e;
    opened o;
    ASSERT(ensemble_open(&e, TINY_ENC));
    for (int i = 0; i < MEMBERS; i++) e.members[i].config.task = task;
    e.model.config.task = task;
    ASSERT_EQ(OUTPUTS, mtan_config_outputs(&e.model.config));
    for (int sure = 0; sure < 2; sure++) {
        memset(sum, 0, sizeof sum);
        for (int i = 0; i < MEMBERS; i++) {
            ASSERT(predictor_open(&o, &e.members[i], RECORDS));
            ASSERT_EQ(MTAN_OK, mtan_predictor_classify(&o.predictor, e.of[0].records, RECORDS, one));
            for (int k = 0; k < RECORDS * OUTPUTS; k++) sum[k] += (double)one[k] / MEMBERS;
            ASSERT(guard_free(o.memory));
        }
        ASSERT(predictor_open(&o, &e.model, RECORDS));
        ASSERT_EQ(MTAN_OK, mtan_predictor_classify(&o.predictor, e.of[0].records, RECORDS, mean));
        ASSERT_EQ(MTAN_OK, mtan_predictor_logits(&o.predictor, e.of[0].records, RECORDS, logits));
        for (int k = 0; k < RECORDS * OUTPUTS; k++) {
            const double p = (double)mean[k], as_logit = task == MTAN_TASK_LABELS ? log(p / (1 - p)) : p;
            ASSERT(fabs(p - sum[k]) <= 1e-6 * (1 + fabs(p)));
            if (sure && task == MTAN_TASK_LABELS) ASSERT(fabs((double)logits[k]) > 50 && fabs((double)logits[k]) < 99);
            else ASSERT(fabs((double)logits[k] - as_logit) <= 1e-5 * (1 + fabs(as_logit)));
        }
        ASSERT(guard_free(o.memory));
        for (int i = 0; i < MEMBERS; i++) make_sure(&e, i);
    }
    ASSERT(ensemble_close(&e));
    PASS();
}

/* A member that gives no number gives none to the ensemble. */
TEST a_member_that_fails_is_told(tiny_kind kind) {
    const mtan_real time = 0;
    mtan_real out[64];
    ensemble e;
    opened o;
    ASSERT(ensemble_open(&e, kind));
    mtan_record r = e.of[0].records[0];
    r.times = &time, r.n_times = 1, r.noise = NULL;
    for (size_t i = 0; i < MEMBERS * e.of[0].count; i++) e.weights[i] = (mtan_real)NAN;
    ASSERT(predictor_open(&o, &e.model, 1));
    ASSERT_EQ(MTAN_ERR_NUMERIC, kind == TINY_INTERP ? mtan_predictor_interpolate(&o.predictor, &r, out, NULL)
                                                    : mtan_predictor_classify(&o.predictor, &r, 1, out));
    ASSERT(guard_free(o.memory) & ensemble_close(&e));
    PASS();
}

TEST streams_of_curves_are_averaged(void) {
    const mtan_real times[2] = {(mtan_real)0.25, 1};
    const mtan_real seen[2][2] = {{0, 1}, {(mtan_real)0.5, 2}};
    mtan_real batch[2 * TINY_CHANNELS], live[2 * TINY_CHANNELS];
    mtan_event events[2];
    mtan_record r;
    mtan_stream stream;
    ensemble e;
    opened o;
    size_t bytes;
    memset(&r, 0, sizeof r);
    ASSERT(ensemble_open(&e, TINY_INTERP));
    ASSERT(predictor_open(&o, &e.model, 1));
    ASSERT_EQ(MTAN_OK, mtan_stream_size(&e.model, 0, &bytes));
    void *memory = guard_alloc(bytes);
    ASSERT_EQ(MTAN_OK, mtan_stream_init(&stream, &o.predictor, 0, memory, bytes));
    for (int32_t i = 0; i < 2; i++) {
        events[i].time = seen[i][0], events[i].channel = i, events[i].value = seen[i][1];
        ASSERT_EQ(MTAN_OK, mtan_stream_push(&stream, seen[i][0], i, seen[i][1]));
    }
    r.events = events, r.n_events = 2, r.times = times, r.n_times = 2;
    ASSERT_EQ(MTAN_OK, mtan_predictor_interpolate(&o.predictor, &r, batch, NULL));
    ASSERT_EQ(MTAN_OK, mtan_stream_interpolate(&stream, &r, live, NULL));
    for (int i = 0; i < 2 * TINY_CHANNELS; i++) ASSERT(fabs((double)live[i] - (double)batch[i]) <= 1e-5);
    ASSERT(guard_free(memory) & guard_free(o.memory) & ensemble_close(&e));
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
    ASSERT_EQ(MTAN_ERR_NULL, mtan_model_member(&member, NULL, 0));
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
    ASSERT_EQ(MTAN_ERR_NULL, mtan_model_join(NULL, e.weights, count, e.members, MEMBERS));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_model_join(&made, NULL, count, e.members, MEMBERS));
    e.model.config.members = MTAN_MAX_MEMBERS + 1;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&e.model.config));
    ASSERT(ensemble_close(&e));
    PASS();
}

/* Members are models of one kind, with weights of their own that are reals. */
TEST members_that_do_not_match_are_refused(void) {
    static const mtan_architecture other = {.name = "other"};
    static const int8_t rows[1] = {0};
    mtan_model made;
    ensemble e;
    ASSERT(ensemble_open(&e, TINY_ENC));
    const size_t count = MEMBERS * e.of[0].count;
    for (int what = 0; what < 8; what++) {
        mtan_model m[MEMBERS];
        memcpy(m, e.members, sizeof m);
        if (what == 0) m[1].config.alpha += 1;
        if (what == 1) m[1].config.architecture = &other;
        if (what == 2) m[1].config.extra[0] = 1;
        if (what == 3) m[1].config.extra[0] = -1;
        if (what == 4) m[1].config.kind = (mtan_kind)9;
        if (what == 5) m[0].config.kind = (mtan_kind)9;
        if (what == 6) m[2].rows = rows;
        if (what == 7) m[2].weights = NULL;
        ASSERT_EQ_FMT(what == 7 ? MTAN_ERR_NULL : MTAN_ERR_CONFIG, mtan_model_join(&made, e.weights, count, m, MEMBERS),
                      "%d");
    }
    ASSERT(ensemble_close(&e));
    PASS();
}

/* Reference points that the caller gives are part of a model, though they are no weights. */
TEST members_at_other_points_are_refused(void) {
    mtan_real point[2][TINY_EVENTS];
    mtan_model made, m[MEMBERS];
    ensemble e;
    ASSERT(ensemble_open(&e, TINY_ENC));
    const size_t count = MEMBERS * e.of[0].count;
    const int32_t K = e.members[0].config.ref_points;
    ASSERT(K > 1 && K <= TINY_EVENTS);
    for (int32_t k = 0; k < K; k++) point[0][k] = point[1][k] = (mtan_real)k / (mtan_real)K;
    memcpy(m, e.members, sizeof m);
    for (int i = 0; i < MEMBERS; i++) m[i].config.reference = MTAN_REF_GIVEN, m[i].config.ref = point[i == 1];
    ASSERT_EQ(MTAN_OK, mtan_model_join(&made, e.weights, count, m, MEMBERS));
    point[1][K - 1] += (mtan_real)0.25;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_model_join(&made, e.weights, count, m, MEMBERS));
    m[1].config.ref = NULL;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_model_join(&made, e.weights, count, m, MEMBERS));
    ASSERT(ensemble_close(&e));
    PASS();
}

/* Matrices of whole numbers, which a caller has in arrays, have the scales of their rows among the reals. */
TEST members_of_whole_numbers_lie_apart(void) {
    tiny_model s;
    mtan_model model, member;
    mtan_param p;
    size_t count, bytes;
    tiny_open(&s, TINY_ENC, 1);
    s.config.members = MEMBERS;
    ASSERT_EQ(MTAN_OK, mtan_model_int8_counts(&s.config, &count, &bytes));
    mtan_real *weights = guard_alloc(count * sizeof *weights);
    int8_t *rows = guard_alloc(bytes);
    ASSERT_EQ(MTAN_OK, mtan_model_init_int8(&model, &s.config, weights, count, rows, bytes));
    ASSERT_EQ(MTAN_OK, mtan_model_member(&member, &model, 2));
    for (int32_t i = 0; mtan_param_at(&member.config, i, &p) == MTAN_OK; i++) {
        const size_t cells = (size_t)p.rows * (size_t)p.cols;
        if (model.row0[i] == MTAN_NO_ROWS) {
            ASSERT_EQ(MTAN_NO_ROWS, member.row0[i]);
            ASSERT_EQ(2 * cells, member.offset[i] - model.offset[i]);
        } else {
            ASSERT_EQ(2 * cells, member.row0[i] - model.row0[i]);
            ASSERT_EQ(2 * (size_t)p.rows, member.offset[i] - model.offset[i]);
        }
    }
    ASSERT(guard_free(rows) & guard_free(weights) & tiny_close(&s));
    PASS();
}

TEST sizes_of_ensembles(void) {
    const mtan_bounds none = {1, 4, 0}, one = {1, 4, 1};
    size_t least = 0, more = 0;
    ensemble e;
    ASSERT(ensemble_open(&e, TINY_ENC));
    ASSERT_EQ(MTAN_OK, mtan_predictor_size(&e.model, &none, &least));
    ASSERT_EQ(MTAN_OK, mtan_predictor_size(&e.model, &one, &more));
    ASSERT(least > 0 && least <= more);
    ASSERT(ensemble_close(&e));
    PASS();
}

SUITE(ensemble_suite) {
    static const tiny_kind classifying[] = {TINY_ENC, TINY_FULL, TINY_ENC_TIME, TINY_FULL_TIME};
    for (size_t i = 0; i < sizeof classifying / sizeof *classifying; i++) {
        greatest_set_test_suffix(tiny_names[classifying[i]]);
        RUN_TESTp(probabilities_are_averaged, classifying[i]);
    }
    RUN_TESTp(other_tasks_are_averaged, MTAN_TASK_LABELS);
    RUN_TESTp(other_tasks_are_averaged, MTAN_TASK_NUMBER);
    RUN_TEST(curves_are_averaged);
    RUN_TEST(streams_of_curves_are_averaged);
    RUN_TESTp(a_member_that_fails_is_told, TINY_ENC);
    RUN_TESTp(a_member_that_fails_is_told, TINY_INTERP);
    greatest_set_test_suffix(tiny_names[TINY_ENC]);
    RUN_TESTp(streams_are_averaged, TINY_ENC);
    greatest_set_test_suffix(tiny_names[TINY_FULL]);
    RUN_TESTp(streams_are_averaged, TINY_FULL);
    RUN_TEST(a_file_has_all_members);
    RUN_TEST(members_of_whole_numbers_lie_apart);
    RUN_TEST(sizes_of_ensembles);
    RUN_TEST(what_takes_one_model_refuses_more);
    RUN_TEST(members_that_do_not_match_are_refused);
    RUN_TEST(members_at_other_points_are_refused);
}
