/* Architectures: two small ones made here, of the library's ops and one of their own. What they compute is checked
 * against a plain loop, their gradients against finite differences, their files by reading them back. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "greatest.h"
#include "small.h"

enum { CHANNELS = 3, CLASSES = 3, RECORDS = 9, EVENTS = 12, TIMES = 14 };

/* ---- "counter": a GRU over [x, mask, 1.5 time], then classes; a penalty: the square of a weight for every record ---- */

enum { OP_SQUARE = MTAN_OP_USER };

static void op_square(mtan_tape *tape, mtan_tensor y, mtan_tensor x) {
    mtan_node *node = mtan_record_op(tape, OP_SQUARE);
    if (node) node->t[0] = y, node->t[1] = x;
    if (!tape->work || tape->status != MTAN_OK) return;
    for (int32_t i = 0; i < y.rows; i++) mtan_data(tape, y)[i] = mtan_data(tape, x)[0] * mtan_data(tape, x)[0];
}

static void square_back(mtan_tape *tape, const mtan_node *n) {
    for (int32_t i = 0; i < n->t[0].rows; i++)
        mtan_grad(tape, n->t[1])[0] += 2 * mtan_data(tape, n->t[1])[0] * mtan_grad(tape, n->t[0])[i];
}

static const mtan_backward counter_back[] = {MTAN_BACKWARD(OP_SQUARE, square_back)};
static const char *const counter_settings[] = {"factor", "units", NULL};
static const double counter_defaults[] = {1.5, 4};

static mtan_status counter_check(const mtan_config *c) {
    return c->extra[1] >= 1 && c->extra[1] <= 100 ? MTAN_OK : MTAN_ERR_CONFIG;
}

typedef struct {
    int32_t w_ih, w_hh, b_ih, b_hh, head, bias;
} counter_roles;

static void counter_params(const mtan_config *c, mtan_params *p, void *roles) {
    const int32_t N = (int32_t)c->extra[1], in = 2 * c->channels + 1;
    counter_roles *r = roles;
    r->w_ih = mtan_params_add(p, "gru.weight_ih", 3 * N, in, 2, N);
    r->w_hh = mtan_params_add(p, "gru.weight_hh", 3 * N, N, 2, N);
    r->b_ih = mtan_params_add(p, "gru.bias_ih", 3 * N, 1, 1, N);
    r->b_hh = mtan_params_add(p, "gru.bias_hh", 3 * N, 1, 1, N);
    r->head = mtan_params_add(p, "head.weight", c->classes, N, 2, N);
    r->bias = mtan_params_add(p, "head.bias", c->classes, 1, 1, N);
}

static void counter_init(const mtan_config *c, const void *roles, mtan_real *weights, mtan_mt19937 *rng) {
    mtan_param p;
    (void)rng;
    mtan_param_at(c, ((const counter_roles *)roles)->bias, &p);
    for (int32_t i = 0; i < p.rows; i++) weights[p.offset + (uint32_t)i] = (mtan_real)0.25;
}

static void counter_forward(const mtan_forward *f, mtan_outputs *out) {
    mtan_tape *tape = f->tape;
    const mtan_batch *batch = tape->batch;
    const int32_t R = batch->rows, D = f->config->channels, N = (int32_t)f->config->extra[1];
    const counter_roles *r = f->roles;
    const mtan_tensor b_ih = mtan_forward_param(f, r->b_ih), b = mtan_forward_param(f, r->bias);
    mtan_tensor input = mtan_new_constant(tape, R, 2 * D + 1), x = mtan_new_constant(tape, R, D);
    mtan_tensor mask = mtan_new_constant(tape, R, D), time = mtan_new_constant(tape, R, 1);
    mtan_tensor gx = mtan_new_gates(tape, R, 3 * N), h = mtan_new(tape, R, N), last;
    mtan_forward_rows(f, x, mask, time);
    mtan_op_scale(tape, time, f->config->extra[0]);
    mtan_op_copy(tape, mtan_columns(input, 0, D), x);
    mtan_op_copy(tape, mtan_columns(input, D, D), mask);
    mtan_op_copy(tape, mtan_columns(input, 2 * D, 1), time);
    mtan_op_linear(tape, gx, input, mtan_forward_param(f, r->w_ih), &b_ih);
    mtan_op_gru(tape, h, gx, mtan_forward_param(f, r->w_hh), mtan_forward_param(f, r->b_hh), NULL, 1, 0);
    if (f->config->classify == MTAN_CLASSIFY_TIME) {
        last = mtan_new(tape, batch->queries, N);
        mtan_op_at_queries(tape, last, h);
    } else {
        last = mtan_new(tape, batch->records, N);
        mtan_op_last(tape, last, h);
    }
    out->logits = mtan_new(tape, last.rows, f->config->classes);
    mtan_op_linear(tape, out->logits, last, mtan_forward_param(f, r->head), &b);
    if (!(f->wanted & MTAN_WANT_LOSS)) return;
    out->penalty = mtan_new(tape, batch->records, 1);
    op_square(tape, out->penalty, b);
}

enum { TRAITS = MTAN_READS_TIMES | MTAN_JOINS_QUERIES | MTAN_ONE_LATENT | MTAN_USES_ALPHA };

static const mtan_architecture counter = {
    .name = "counter",
    .settings = counter_settings,
    .defaults = counter_defaults,
    .roles = sizeof(counter_roles) / sizeof(int32_t),
    .traits = TRAITS,
    .check = counter_check,
    .params = counter_params,
    .init = counter_init,
    .forward = counter_forward,
    .backward = counter_back,
};

/* ---- "blurred": the mean of the last row's values as a latent state, read out at every query ---- */

static void blurred_params(const mtan_config *c, mtan_params *p, void *roles) {
    (void)roles;
    mtan_params_add(p, "encode.weight", 2 * c->latent, 2 * c->channels, 2, c->channels);
    mtan_params_add(p, "decode.weight", c->channels, c->latent, 2, c->latent);
}

static void blurred_forward(const mtan_forward *f, mtan_outputs *out) {
    mtan_tape *tape = f->tape;
    const mtan_batch *batch = tape->batch;
    const int32_t R = batch->rows, D = f->config->channels, S = batch->samples;
    mtan_tensor both = mtan_new_constant(tape, R, 2 * D), time = mtan_new_constant(tape, R, 1);
    mtan_tensor x = mtan_new_constant(tape, R, D), mask = mtan_new_constant(tape, R, D);
    mtan_tensor last = mtan_new(tape, batch->records, 2 * D), decoded = mtan_new(tape, batch->records * S, D);
    mtan_forward_rows(f, x, mask, time);
    mtan_op_copy(tape, mtan_columns(both, 0, D), x);
    mtan_op_copy(tape, mtan_columns(both, D, D), mask);
    mtan_op_last(tape, last, both);
    out->posterior = mtan_new(tape, batch->records, 2 * f->config->latent);
    mtan_op_linear(tape, out->posterior, last, mtan_forward_param(f, 0), NULL);
    if (f->wanted == MTAN_WANT_POSTERIOR) return;
    out->z = mtan_new(tape, f->noise.rows, f->config->latent);
    mtan_op_sample(tape, out->z, out->posterior, f->noise);
    mtan_op_linear(tape, decoded, out->z, mtan_forward_param(f, 1), NULL);
    if (!(f->wanted & MTAN_WANT_PREDICTION)) return;
    out->prediction = mtan_new(tape, batch->queries * S, D);
    for (int32_t b = 0; tape->work && b < batch->records; b++)
        for (int32_t s = 0; s < S; s++) {
            const int32_t n = batch->query0[b + 1] - batch->query0[b];
            mtan_op_copy(tape, mtan_rows(out->prediction, batch->query0[b] * S + s * n, n),
                         mtan_rows(decoded, b * S + s, 1));
        }
    for (int32_t i = 0; !tape->work && i < batch->records * S; i++)
        mtan_op_copy(tape, out->prediction, out->prediction); /* as many nodes */
}

static const mtan_architecture blurred = {
    .name = "blurred", .traits = TRAITS, .params = blurred_params, .forward = blurred_forward};
static const mtan_architecture *const known[] = {&counter, &blurred, NULL};

/* ---- a model with its records ---- */

typedef struct {
    mtan_config config;
    mtan_model model;
    mtan_real *weights;
    size_t count;
    small_set set;
} scene;

static const mtan_bounds bounds = {RECORDS, EVENTS, TIMES};

/* Query times of a joined sequence must ascend; some are event times, some not. */
static void sort_queries(const mtan_record *r) {
    mtan_real *t = (mtan_real *)(uintptr_t)r->times;
    for (int32_t i = 0; i < r->n_times; i++) {
        if (i % 3 == 0 && r->n_events > 0) t[i] = r->events[i % r->n_events].time;
        for (int32_t j = i; j > 0 && t[j] < t[j - 1]; j--) {
            const mtan_real swap = t[j];
            t[j] = t[j - 1], t[j - 1] = swap;
        }
    }
}

static int scene_open(scene *s, const mtan_architecture *a, mtan_kind kind, mtan_classify_kind classify) {
    const mtan_bounds half = {RECORDS, TIMES / 2,
                              TIMES / 2}; /* events' and queries' times together are in the bounds */
    uint64_t random = 7;
    memset(s, 0, sizeof *s);
    if (mtan_config_init(&s->config, kind, classify == MTAN_CLASSIFY_NONE ? MTAN_CLASSIFY_RECORD : classify, CHANNELS,
                         CLASSES) != MTAN_OK)
        return 0;
    s->config.classify = classify;
    s->config.latent = 2, s->config.samples = s->config.predict_samples = kind == MTAN_FULL ? 3 : 1;
    if (mtan_config_architecture(&s->config, a) != MTAN_OK) return 0;
    s->count = mtan_weights_count(&s->config);
    s->weights = malloc(s->count * sizeof *s->weights);
    s->set = small_records(&s->config, &half, RECORDS, 0, &random);
    for (int32_t i = 0; i < RECORDS; i++) sort_queries(&s->set.records[i]);
    return mtan_weights_init(&s->config, s->weights, s->count, 3) == MTAN_OK &&
           mtan_model_init(&s->model, &s->config, s->weights, s->count) == MTAN_OK;
}

static int scene_close(scene *s) {
    free(s->weights);
    return small_free(&s->set);
}

static mtan_status loss_of(scene *s, mtan_real *gradient, mtan_report *report) {
    mtan_train_config config;
    mtan_trainer trainer;
    size_t bytes = 0;
    mtan_status status;
    void *memory;
    mtan_train_config_init(&config);
    if ((status = mtan_trainer_size(&s->model, &config, &bounds, &bytes)) != MTAN_OK) return status;
    memory = guard_alloc(bytes);
    status = mtan_trainer_init(&trainer, &s->model, s->weights, &config, &bounds, memory, bytes);
    if (status == MTAN_OK && gradient) status = mtan_trainer_gradient(&trainer, s->set.records, RECORDS, 1, report);
    else if (status == MTAN_OK) status = mtan_trainer_loss(&trainer, s->set.records, RECORDS, 1, report);
    if (status == MTAN_OK && gradient) memcpy(gradient, trainer.gradient, s->count * sizeof *gradient);
    return guard_free(memory) ? status : MTAN_ERR_MEMORY;
}

/* ---- tests ---- */

/* Logits of the counter by a plain loop over a record's rows in double; rows are asked for by time. */
static void counter_by_hand(const scene *s, const mtan_record *r, mtan_real until, double out[CLASSES]) {
    enum { N = 4 };
    const mtan_real *w_ih = s->weights, *w_hh = w_ih + 3 * N * (2 * CHANNELS + 1), *b_ih = w_hh + 3 * N * N,
                    *b_hh = b_ih + 3 * N, *w = b_hh + 3 * N, *b = w + CLASSES * N;
    double h[N] = {0}, last = -1e30;
    for (;;) {
        double input[2 * CHANNELS + 1] = {0}, count[CHANNELS] = {0}, next = 1e30, g[3 * N], gh[3 * N];
        for (int32_t i = 0; i < r->n_events; i++)
            if ((double)r->events[i].time > last && (double)r->events[i].time < next) next = (double)r->events[i].time;
        for (int32_t i = 0; s->config.classify == MTAN_CLASSIFY_TIME && i < r->n_times; i++)
            if ((double)r->times[i] > last && (double)r->times[i] < next) next = (double)r->times[i];
        if (next > (double)until) break;
        last = next;
        for (int32_t i = 0; i < r->n_events; i++) {
            const mtan_event *e = &r->events[i];
            if ((double)e->time < next || (double)e->time > next) continue;
            input[e->channel] += (double)e->value;
            count[e->channel]++;
        }
        for (int d = 0; d < CHANNELS; d++) {
            input[d] /= count[d] > 0 ? count[d] : 1;
            input[CHANNELS + d] = count[d] > 0;
        }
        input[2 * CHANNELS] = 1.5 * next;
        for (int i = 0; i < 3 * N; i++) {
            g[i] = (double)b_ih[i], gh[i] = (double)b_hh[i];
            for (int k = 0; k < 2 * CHANNELS + 1; k++) g[i] += (double)w_ih[i * (2 * CHANNELS + 1) + k] * input[k];
            for (int k = 0; k < N; k++) gh[i] += (double)w_hh[i * N + k] * h[k];
        }
        for (int i = 0; i < N; i++) {
            const double reset = 1 / (1 + exp(-g[i] - gh[i])), z = 1 / (1 + exp(-g[N + i] - gh[N + i]));
            h[i] = (1 - z) * tanh(g[2 * N + i] + reset * gh[2 * N + i]) + z * h[i];
        }
    }
    for (int c = 0; c < CLASSES; c++) {
        out[c] = (double)b[c];
        for (int i = 0; i < N; i++) out[c] += (double)w[c * N + i] * h[i];
    }
}

/* Values, the mean of repeats, and their mask at a record's last time; zeros where there is none. */
static void last_row(const mtan_record *r, double row[2 * CHANNELS]) {
    double count[CHANNELS] = {0};
    mtan_real last = 0;
    for (int32_t i = 0; i < r->n_events; i++) last = i == 0 || r->events[i].time > last ? r->events[i].time : last;
    for (int d = 0; d < 2 * CHANNELS; d++) row[d] = 0;
    for (int32_t i = 0; i < r->n_events; i++) {
        if (r->events[i].time < last) continue;
        row[r->events[i].channel] += (double)r->events[i].value;
        count[r->events[i].channel]++;
    }
    for (int d = 0; d < CHANNELS; d++) {
        row[d] /= count[d] > 0 ? count[d] : 1;
        row[CHANNELS + d] = count[d] > 0;
    }
}

static int logits_of(scene *s, const mtan_record *record, mtan_real *logits) {
    mtan_predictor predictor;
    size_t bytes = 0;
    int ok = mtan_predictor_size(&s->model, &bounds, &bytes) == MTAN_OK;
    void *memory = guard_alloc(bytes);
    ok = ok && mtan_predictor_init(&predictor, &s->model, &bounds, memory, bytes) == MTAN_OK;
    ok = ok && mtan_predictor_logits(&predictor, record, 1, logits) == MTAN_OK;
    return guard_free(memory) && ok;
}

static int logits_agree(scene *s) {
    const mtan_real *got;
    mtan_real *logits = malloc(RECORDS * TIMES * CLASSES * sizeof *logits);
    mtan_predictor predictor;
    size_t bytes = 0;
    void *memory;
    double expected[CLASSES];
    int ok = mtan_predictor_size(&s->model, &bounds, &bytes) == MTAN_OK;
    memory = guard_alloc(bytes);
    ok = ok && mtan_predictor_init(&predictor, &s->model, &bounds, memory, bytes) == MTAN_OK;
    ok = ok && mtan_predictor_logits(&predictor, s->set.records, RECORDS, logits) == MTAN_OK;
    got = logits;
    for (int32_t i = 0; ok && i < RECORDS; i++) {
        const mtan_record *r = &s->set.records[i];
        const int32_t rows = s->config.classify == MTAN_CLASSIFY_TIME ? r->n_times : 1;
        for (int32_t k = 0; k < rows; k++, got += CLASSES) {
            counter_by_hand(s, r, s->config.classify == MTAN_CLASSIFY_TIME ? r->times[k] : (mtan_real)1e20, expected);
            for (int c = 0; c < CLASSES; c++) ok = ok && fabs((double)got[c] - expected[c]) < 2e-6;
        }
    }
    free(logits);
    return guard_free(memory) && ok;
}

/* Without query times there is a row for every distinct event time: that of the record with those as its queries. */
static int own_times_agree(scene *s) {
    int ok = 1;
    for (int32_t i = 0; ok && i < RECORDS; i++) {
        mtan_record *r = &s->set.records[i];
        const mtan_record kept = *r;
        mtan_real times[EVENTS], got[EVENTS * CLASSES], expected[EVENTS * CLASSES];
        int32_t n = 0;
        for (int32_t k = 0; k < r->n_events; k++) { /* in order, each once */
            int32_t at = n;
            while (at > 0 && times[at - 1] >= r->events[k].time) at--;
            if (at < n && !(times[at] > r->events[k].time)) continue;
            memmove(times + at + 1, times + at, (size_t)(n++ - at) * sizeof *times);
            times[at] = r->events[k].time;
        }
        r->times = times, r->n_times = n, r->labels = NULL;
        ok = ok && logits_of(s, r, expected);
        r->times = NULL, r->n_times = 0;
        ok = ok && logits_of(s, r, got) && memcmp(got, expected, (size_t)n * CLASSES * sizeof *got) == 0;
        *r = kept;
    }
    return ok;
}

TEST a_class_per_record_is_that_of_a_plain_loop(void) {
    scene s;
    ASSERT(scene_open(&s, &counter, MTAN_ENC, MTAN_CLASSIFY_RECORD));
    ASSERT(logits_agree(&s));
    ASSERT(scene_close(&s));
    PASS();
}

TEST a_class_per_time_is_that_of_a_plain_loop(void) {
    scene s;
    ASSERT(scene_open(&s, &counter, MTAN_ENC, MTAN_CLASSIFY_TIME));
    ASSERT(logits_agree(&s));
    ASSERT(scene_close(&s));
    PASS();
}

/* Query times that repeat share a step of the sequence; a record without query times is asked at its own. */
TEST queries_that_repeat_or_are_not_there(void) {
    scene s;
    ASSERT(scene_open(&s, &counter, MTAN_ENC, MTAN_CLASSIFY_TIME));
    for (int32_t i = 0; i < RECORDS; i++) {
        mtan_record *r = &s.set.records[i];
        mtan_real *t = (mtan_real *)(uintptr_t)r->times;
        for (int32_t k = 1; k < r->n_times; k++)
            if (k % 2) t[k] = t[k - 1];
    }
    for (int32_t i = 0; i < RECORDS; i++) { /* and two values of one time and channel are their mean */
        mtan_event *e = (mtan_event *)(uintptr_t)s.set.records[i].events;
        if (s.set.records[i].n_events > 1) e[1].time = e[0].time, e[1].channel = e[0].channel;
    }
    ASSERT(logits_agree(&s));
    ASSERT(own_times_agree(&s));
    ASSERT(scene_close(&s));
    PASS();
}

/* Asked at its last time, a record has the class of its last step, and so the same gradient, on another way. */
TEST the_gradient_of_the_last_time(void) {
    static mtan_real by_time[512], by_record[512];
    mtan_real last[RECORDS];
    mtan_record records[RECORDS];
    mtan_report at_time, at_end;
    scene s, t;
    ASSERT(scene_open(&s, &counter, MTAN_ENC, MTAN_CLASSIFY_RECORD));
    ASSERT(scene_open(&t, &counter, MTAN_ENC, MTAN_CLASSIFY_TIME));
    ASSERT(s.count == t.count && s.count <= 512);
    s.config.alpha = s.model.config.alpha = 1;
    const small_set of_s = s.set, of_t = t.set;
    memcpy(records, of_s.records, sizeof records);
    s.set.records = t.set.records = records;
    for (int32_t i = 0; i < RECORDS; i++) {
        mtan_record *r = &records[i];
        last[i] = -1000; /* of a record without events: a step with nothing, where the other has none */
        for (int32_t k = 0; k < r->n_events; k++) last[i] = r->events[k].time > last[i] ? r->events[k].time : last[i];
        if (r->n_events == 0) r->labels = NULL;
    }
    ASSERT_EQ(MTAN_OK, loss_of(&s, by_record, &at_end));
    for (int32_t i = 0; i < RECORDS; i++) records[i].times = &last[i], records[i].n_times = 1;
    ASSERT_EQ(MTAN_OK, loss_of(&t, by_time, &at_time));
    s.set = of_s, t.set = of_t;
    ASSERT(at_time.labels > 3 && at_time.labels == at_end.labels);
    for (size_t i = 0; i < s.count; i++) ASSERT(fabs((double)(by_time[i] - by_record[i])) < 1e-6);
    ASSERT(at_end.gradient_norm > 0.01);
    ASSERT(scene_close(&s) & scene_close(&t));
    PASS();
}

static void counter_without_penalty(const mtan_forward *f, mtan_outputs *out) {
    counter_forward(f, out);
    out->penalty.rows = 0;
}

/* The penalty of a record is the square of a weight: its part in the gradient is twice that weight, there alone. */
TEST the_gradient_of_a_penalty(void) {
    static mtan_real with[512], without[512];
    mtan_architecture plain = counter;
    mtan_report report;
    scene s;
    plain.forward = counter_without_penalty;
    ASSERT(scene_open(&s, &counter, MTAN_ENC, MTAN_CLASSIFY_RECORD));
    s.config.skip_empty = s.model.config.skip_empty = 0;
    const size_t bias = s.count - CLASSES; /* the first of the last parameter */
    s.weights[bias] = (mtan_real)-0.75;
    ASSERT_EQ(MTAN_OK, loss_of(&s, with, &report));
    s.model.config.architecture = &plain;
    ASSERT_EQ(MTAN_OK, loss_of(&s, without, &report));
    for (size_t i = 0; i < s.count; i++) ASSERT(fabs((double)(with[i] - without[i]) - (i == bias ? -1.5 : 0)) < 1e-6);
    ASSERT(scene_close(&s));
    PASS();
}

/* One latent state for a record: mean and log-variance are those of a plain loop over the last row, and a curve is read
 * out of them with the record's own noise, the same at every query. */
TEST one_latent_state_is_that_of_a_plain_loop(void) {
    enum { Z = 2, S = 3 };
    const mtan_real noise[S * Z] = {1, -1, (mtan_real)0.5, 2, 0, (mtan_real)-0.25};
    static mtan_real mean[Z], logvar[Z], curves[S * TIMES * CHANNELS];
    mtan_predictor predictor;
    size_t bytes = 0;
    scene s;
    ASSERT(scene_open(&s, &blurred, MTAN_FULL, MTAN_CLASSIFY_NONE));
    ASSERT(s.config.latent == Z && s.config.predict_samples == S);
    ASSERT_EQ(MTAN_OK, mtan_predictor_size(&s.model, &bounds, &bytes));
    void *memory = guard_alloc(bytes);
    ASSERT_EQ(MTAN_OK, mtan_predictor_init(&predictor, &s.model, &bounds, memory, bytes));
    for (int32_t i = 0; i < RECORDS; i++) {
        mtan_record r = s.set.records[i];
        const mtan_real *const decode = s.weights + 2 * Z * 2 * CHANNELS;
        double row[2 * CHANNELS], posterior[2 * Z] = {0};
        last_row(&r, row);
        for (int k = 0; k < 2 * Z * 2 * CHANNELS; k++)
            posterior[k / (2 * CHANNELS)] += (double)s.weights[k] * row[k % (2 * CHANNELS)];
        r.noise = noise, r.n_noise = S * Z;
        ASSERT_EQ(MTAN_OK, mtan_predictor_latent(&predictor, &r, mean, logvar));
        for (int k = 0; k < Z; k++) {
            ASSERT(fabs((double)mean[k] - posterior[k]) < 1e-6);
            ASSERT(fabs((double)logvar[k] - posterior[Z + k]) < 1e-6);
        }
        ASSERT_EQ(MTAN_OK, mtan_predictor_curves(&predictor, &r, curves));
        for (int32_t k = 0; k < S * r.n_times * CHANNELS; k++) {
            const int sample = k / (r.n_times * CHANNELS), d = k % CHANNELS;
            double x = 0;
            for (int z = 0; z < Z; z++)
                x += (double)decode[d * Z + z] *
                     (posterior[z] + exp(posterior[Z + z] / 2) * (double)noise[sample * Z + z]);
            ASSERT(fabs((double)curves[k] - x) < 1e-5);
        }
    }
    ASSERT(guard_free(memory) & scene_close(&s));
    PASS();
}

static int gradient_agrees(scene *s) {
    mtan_real *gradient = malloc(s->count * sizeof *gradient);
    mtan_report report, up, down;
    int ok = loss_of(s, gradient, &report) == MTAN_OK;
    for (size_t i = 0; ok && i < s->count; i++) {
        const mtan_real kept = s->weights[i], step = (mtan_real)1e-5;
        s->weights[i] = kept + step;
        ok = ok && loss_of(s, NULL, &up) == MTAN_OK;
        s->weights[i] = kept - step;
        ok = ok && loss_of(s, NULL, &down) == MTAN_OK;
        s->weights[i] = kept;
        ok = ok && fabs((up.loss - down.loss) / (2 * (double)step) - (double)gradient[i]) <
                       1e-6 * (1 + fabs((double)gradient[i]));
    }
    free(gradient);
    return ok;
}

TEST gradients_are_finite_differences(void) {
    static const struct {
        const mtan_architecture *architecture;
        mtan_kind kind;
        mtan_classify_kind classify;
    } cases[] = {{&counter, MTAN_ENC, MTAN_CLASSIFY_RECORD},
                 {&counter, MTAN_ENC, MTAN_CLASSIFY_TIME},
                 {&blurred, MTAN_FULL, MTAN_CLASSIFY_NONE}};
    if (sizeof(mtan_real) == sizeof(float)) SKIPm("finite differences need the double build");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scene s;
        ASSERT(scene_open(&s, cases[i].architecture, cases[i].kind, cases[i].classify));
        ASSERT(gradient_agrees(&s));
        ASSERT(scene_close(&s));
    }
    PASS();
}

TEST a_penalty_is_in_the_loss(void) {
    scene s;
    mtan_report report;
    ASSERT(scene_open(&s, &counter, MTAN_ENC, MTAN_CLASSIFY_RECORD));
    s.config.skip_empty = s.model.config.skip_empty = 0;
    ASSERT_EQ(MTAN_OK, loss_of(&s, NULL, &report));
    ASSERT_NEAR(0.0625, report.recon, 1e-7); /* 0.25 squared, for each of the records */
    ASSERT_NEAR(report.ce + 0.0625, report.loss, 1e-7);
    ASSERT(scene_close(&s));
    PASS();
}

typedef struct {
    unsigned char bytes[8192];
    size_t n;
} buffer;

static mtan_status keep(void *context, const void *bytes, size_t n) {
    buffer *b = context;
    if (n > sizeof b->bytes - b->n) return MTAN_ERR_WRITE;
    memcpy(b->bytes + b->n, bytes, n);
    b->n += n;
    return MTAN_OK;
}

TEST files_name_the_architecture(void) {
    static const mtan_architecture *const others[] = {&blurred, NULL};
    mtan_real weights[512];
    mtan_model read;
    buffer file = {{0}, 0};
    mtan_file opened;
    size_t count = 0;
    scene s;
    ASSERT(scene_open(&s, &counter, MTAN_ENC, MTAN_CLASSIFY_RECORD));
    ASSERT_EQ(MTAN_OK, mtan_config_set(&s.model.config, "factor", "2.25"));
    ASSERT_EQ(MTAN_OK, mtan_model_save(&s.model, NULL, NULL, 0, keep, &file));
    ASSERT_EQ(MTAN_OK, mtan_file_open(&opened, file.bytes, file.n));
    ASSERT_EQ(MTAN_OK, mtan_model_load_count(&opened, known, &count));
    ASSERT_EQ(s.count, count);
    ASSERT_EQ(MTAN_OK, mtan_model_load(&read, weights, 512, &opened, known));
    ASSERT_EQ(&counter, read.config.architecture);
    ASSERT(read.config.extra[0] >= 2.25 && read.config.extra[0] <= 2.25 && read.config.extra[1] >= 4);
    ASSERT_MEM_EQ(s.weights, weights, count * sizeof *weights);
    ASSERT_EQ(MTAN_ERR_MISSING, mtan_model_load(&read, weights, 512, &opened, others));
    ASSERT_EQ(MTAN_ERR_MISSING, mtan_model_load(&read, weights, 512, &opened, NULL));
    ASSERT_EQ(MTAN_ERR_MISSING, mtan_model_load_count(&opened, NULL, &count));
    for (size_t i = 0; i + 4 < file.n; i++) /* its own setting is no number any more */
        if (memcmp(file.bytes + i, "2.25", 4) == 0) file.bytes[i + 2] = 'x';
    ASSERT_EQ(MTAN_OK, mtan_file_open(&opened, file.bytes, file.n));
    ASSERT_EQ(MTAN_ERR_FILE, mtan_model_load_count(&opened, known, &count));
    ASSERT(scene_close(&s));
    PASS();
}

TEST settings_and_refusals(void) {
    const mtan_bounds huge = {1 << 10, 1 << 20, 1 << 20}; /* 2^30 events and as many queries, which are steps too */
    scene s;
    char text[64];
    size_t bytes;
    mtan_real query = 1;
    mtan_record *r;
    mtan_report report;
    ASSERT(scene_open(&s, &counter, MTAN_ENC, MTAN_CLASSIFY_TIME));
    ASSERT_EQ(MTAN_OK, mtan_config_get(&s.config, "factor", text, sizeof text));
    ASSERT_STR_EQ("1.5", text);
    ASSERT_EQ(MTAN_ERR_MISSING, mtan_config_set(&s.config, "unit", "3"));
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_set(&s.config, "units", "x"));
    ASSERT_EQ(MTAN_OK, mtan_config_set(&s.config, "units", "0")); /* the architecture's own check refuses it */
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&s.config));
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_stream_size(&s.model, 0, &bytes));
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_small_size(&s.model, 1, &bytes));
    ASSERT_EQ(MTAN_ERR_SIZE, mtan_predictor_size(&s.model, &huge, &bytes));
    s.model.precision = MTAN_INT8;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_predictor_size(&s.model, &bounds, &bytes));
    s.model.precision = MTAN_REAL;
    r = &s.set.records[0];
    for (int i = 0; r->n_times < 2; i++) r = &s.set.records[i];
    query = r->times[0];
    ((mtan_real *)(uintptr_t)r->times)[0] = r->times[r->n_times - 1] + 1; /* no longer ascending */
    ASSERT_EQ(MTAN_ERR_INPUT, loss_of(&s, NULL, &report));
    ((mtan_real *)(uintptr_t)r->times)[0] = query;
    ASSERT_EQ(MTAN_OK, loss_of(&s, NULL, &report));
    ASSERT(scene_close(&s));
    PASS();
}

/* ---- architectures that are none ---- */

static mtan_status of_architecture(const mtan_architecture *a) {
    mtan_config config;
    if (mtan_config_init(&config, MTAN_ENC, MTAN_CLASSIFY_RECORD, CHANNELS, CLASSES) != MTAN_OK) return MTAN_ERR_NULL;
    return mtan_config_architecture(&config, a);
}

TEST unfinished_architectures_are_refused(void) {
    mtan_config config;
    mtan_architecture a = blurred;
    memset(&config, 0, sizeof config);
    ASSERT_EQ(MTAN_ERR_NULL, mtan_config_architecture(NULL, &counter));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_config_architecture(&config, NULL));
    ASSERT_EQ(MTAN_OK, of_architecture(&a)); /* one without a check of its own */
    a.name = NULL;
    ASSERT_EQ(MTAN_ERR_CONFIG, of_architecture(&a));
    a = blurred, a.params = NULL;
    ASSERT_EQ(MTAN_ERR_CONFIG, of_architecture(&a));
    a = blurred, a.forward = NULL;
    ASSERT_EQ(MTAN_ERR_CONFIG, of_architecture(&a));
    a = blurred, a.roles = MTAN_MAX_ROLES;
    ASSERT_EQ(MTAN_OK, of_architecture(&a));
    a.roles = MTAN_MAX_ROLES + 1;
    ASSERT_EQ(MTAN_ERR_CONFIG, of_architecture(&a));
    a = blurred, a.folded = MTAN_MAX_FOLDED + 1;
    ASSERT_EQ(MTAN_ERR_CONFIG, of_architecture(&a));
    PASS();
}

/* Reference points are for those that take them. */
TEST points_are_for_those_that_take_them(void) {
    mtan_config config;
    mtan_architecture a = blurred;
    a.traits |= MTAN_HAS_POINTS;
    ASSERT_EQ(MTAN_OK, mtan_config_init(&config, MTAN_ENC, MTAN_CLASSIFY_RECORD, CHANNELS, CLASSES));
    ASSERT_EQ(MTAN_OK, mtan_config_architecture(&config, &a));
    ASSERT_EQ(MTAN_REF_EVEN, config.reference);
    ASSERT_EQ(MTAN_OK, mtan_config_architecture(&config, &blurred));
    ASSERT_EQ(MTAN_REF_OBSERVED, config.reference);
    config.reference = MTAN_REF_EVEN;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&config));
    PASS();
}

/* What each of these adds as its second parameter. */
static const struct {
    int32_t rows, cols, rank, fan;
    mtan_status status;
} shapes[] = {{1, 1, 1, 1, MTAN_OK},        {0, 0, 2, 1, MTAN_OK},        {-1, 1, 1, 1, MTAN_ERR_SIZE},
              {1, -1, 2, 1, MTAN_ERR_SIZE}, {1, 1, 0, 1, MTAN_ERR_SIZE},  {1, 1, 3, 1, MTAN_ERR_SIZE},
              {1, 1, 1, 0, MTAN_ERR_SIZE},  {1, 1, 1, -1, MTAN_ERR_SIZE}, {1 << 20, 1 << 20, 2, 1, MTAN_ERR_SIZE}};
static size_t shape;

static void shaped_params(const mtan_config *c, mtan_params *p, void *roles) {
    (void)c, (void)roles;
    mtan_params_add(p, "first", 2, 3, 2, 1);
    mtan_params_add(p, "second", shapes[shape].rows, shapes[shape].cols, shapes[shape].rank, shapes[shape].fan);
    mtan_params_add(p, "third", 2, 3, 2, 1);
}

static void no_forward(const mtan_forward *f, mtan_outputs *out) {
    (void)f, (void)out;
}

TEST parameters_that_cannot_be_are_refused(void) {
    static const mtan_architecture shaped = {.name = "shaped", .params = shaped_params, .forward = no_forward};
    for (shape = 0; shape < sizeof shapes / sizeof *shapes; shape++)
        ASSERT_EQ(shapes[shape].status, of_architecture(&shaped));
    PASS();
}

static int32_t many;

static void many_params(const mtan_config *c, mtan_params *p, void *roles) {
    (void)c, (void)roles;
    for (int32_t i = 0; i < many; i++)
        mtan_params_add(p, "a.name.that.is.longer.than.the.place.there.is.for.it.weight", i + 1, 1, 1, 1);
}

/* As many parameters as a model may have, and one more; a name is cut to its place. */
TEST parameters_are_counted(void) {
    static const mtan_architecture long_one = {.name = "long", .params = many_params, .forward = no_forward};
    mtan_config config;
    mtan_param p;
    many = MTAN_MAX_PARAMS;
    ASSERT_EQ(MTAN_OK, mtan_config_init(&config, MTAN_ENC, MTAN_CLASSIFY_RECORD, CHANNELS, CLASSES));
    ASSERT_EQ(MTAN_OK, mtan_config_architecture(&config, &long_one));
    ASSERT_EQ(MTAN_MAX_PARAMS, mtan_param_count(&config));
    ASSERT_EQ(MTAN_MAX_PARAMS * (MTAN_MAX_PARAMS + 1) / 2, mtan_weights_count(&config));
    ASSERT_EQ(MTAN_OK, mtan_param_at(&config, MTAN_MAX_PARAMS - 1, &p));
    ASSERT_STR_EQ("a.name.that.is.longer.than.the.place.there.is.f", p.name);
    ASSERT_EQ(MTAN_NAME_SIZE - 1, strlen(p.name));
    ASSERT_EQ(MTAN_MAX_PARAMS, p.rows);
    many++;
    ASSERT_EQ(MTAN_ERR_SIZE, mtan_config_check(&config));
    ASSERT_EQ(0, mtan_param_count(&config));
    PASS();
}

/* As many settings of its own as an architecture may have, without a null behind them. */
TEST settings_up_to_the_last(void) {
    static const char *const names[MTAN_MAX_EXTRA] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};
    static const double values[MTAN_MAX_EXTRA] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    static const double bad[] = {1e9, -1e9, NAN, INFINITY};
    mtan_architecture a = blurred;
    mtan_config config;
    char text[64];
    a.settings = names, a.defaults = values;
    ASSERT(names[MTAN_MAX_EXTRA - 1] && values[MTAN_MAX_EXTRA - 1] == 12); /* all of them */
    ASSERT_EQ(MTAN_OK, mtan_config_init(&config, MTAN_ENC, MTAN_CLASSIFY_RECORD, CHANNELS, CLASSES));
    ASSERT_EQ(MTAN_OK, mtan_config_architecture(&config, &a));
    ASSERT_EQ(MTAN_OK, mtan_config_get(&config, "l", text, sizeof text));
    ASSERT_STR_EQ("12", text);
    ASSERT_EQ(MTAN_OK, mtan_config_set(&config, "l", "-3.5"));
    ASSERT(config.extra[MTAN_MAX_EXTRA - 1] == -3.5);
    ASSERT_EQ(MTAN_ERR_MISSING, mtan_config_set(&config, "m", "1"));
    ASSERT_EQ(MTAN_OK, mtan_config_check(&config));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        config.extra[MTAN_MAX_EXTRA - 1] = bad[i];
        ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&config));
    }
    PASS();
}

static mtan_tensor never_small(const mtan_forward *f, const mtan_record *record, int32_t points) {
    (void)record, (void)points;
    f->tape->status = MTAN_ERR_FILE; /* what nobody expects */
    return mtan_new_constant(f->tape, 1, 1);
}

/* Hooks that are not there, and one that is there for a class per record alone. */
TEST calls_without_a_hook_are_refused(void) {
    mtan_architecture a = counter;
    mtan_predictor predictor;
    mtan_real weight = 7;
    buffer file = {{0}, 0};
    size_t bytes = 0;
    scene s;
    a.traits |= MTAN_HAS_POINTS, a.small = never_small;
    ASSERT(scene_open(&s, &counter, MTAN_ENC, MTAN_CLASSIFY_TIME));
    ASSERT_EQ(MTAN_OK, mtan_predictor_size(&s.model, &bounds, &bytes));
    void *memory = guard_alloc(bytes);
    ASSERT_EQ(MTAN_OK, mtan_predictor_init(&predictor, &s.model, &bounds, memory, bytes));
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_predictor_attention(&predictor, s.set.records, 0, 0, &weight));
    ASSERT(weight == 7 && guard_free(memory));
    s.model.config.architecture = &a, s.model.config.reference = MTAN_REF_EVEN;
    ASSERT_EQ(MTAN_OK, mtan_config_check(&s.model.config));
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_small_size(&s.model, 1, &bytes));
    s.model.config.classify = MTAN_CLASSIFY_RECORD;
    ASSERT_EQ(MTAN_ERR_FILE, mtan_small_size(&s.model, 1, &bytes));
    s.model.config.encoder = (mtan_interp_kind)9; /* which counter does not look at, but which has no name in a file */
    ASSERT_EQ(MTAN_OK, mtan_config_check(&s.model.config));
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_model_save(&s.model, NULL, NULL, 0, keep, &file));
    ASSERT_EQ(0, file.n);
    ASSERT(scene_close(&s));
    PASS();
}

static mtan_tensor no_small(const mtan_forward *f, const mtan_record *record, int32_t points) {
    (void)record, (void)points;
    return mtan_new_constant(f->tape, 1, f->config->classes);
}

/* As a build with MTAN_SMALL_ONLY has mTAND-Enc: what runs the whole model refuses it instead of calling a null pointer. */
TEST an_architecture_may_have_the_small_path_alone(void) {
    mtan_architecture a = counter;
    mtan_train_config train;
    size_t bytes;
    scene s;
    ASSERT(scene_open(&s, &counter, MTAN_ENC, MTAN_CLASSIFY_RECORD));
    mtan_train_config_init(&train);
    a.forward = NULL;
    s.model.config.architecture = &a;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_config_check(&s.model.config));
    a.small = no_small;
    ASSERT_EQ(MTAN_OK, mtan_config_check(&s.model.config));
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_predictor_size(&s.model, &bounds, &bytes));
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_stream_size(&s.model, 0, &bytes));
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_trainer_size(&s.model, &train, &bounds, &bytes));
    a.forward = counter.forward;
    ASSERT_EQ(MTAN_OK, mtan_predictor_size(&s.model, &bounds, &bytes));
    ASSERT_EQ(MTAN_OK, mtan_trainer_size(&s.model, &train, &bounds, &bytes));
    s.model.config.architecture = &counter;
    ASSERT(scene_close(&s));
    PASS();
}

SUITE(architecture_suite) {
    RUN_TEST(a_class_per_record_is_that_of_a_plain_loop);
    RUN_TEST(a_class_per_time_is_that_of_a_plain_loop);
    RUN_TEST(queries_that_repeat_or_are_not_there);
    RUN_TEST(the_gradient_of_the_last_time);
    RUN_TEST(the_gradient_of_a_penalty);
    RUN_TEST(one_latent_state_is_that_of_a_plain_loop);
    RUN_TEST(gradients_are_finite_differences);
    RUN_TEST(a_penalty_is_in_the_loss);
    RUN_TEST(files_name_the_architecture);
    RUN_TEST(settings_and_refusals);
    RUN_TEST(unfinished_architectures_are_refused);
    RUN_TEST(points_are_for_those_that_take_them);
    RUN_TEST(parameters_that_cannot_be_are_refused);
    RUN_TEST(parameters_are_counted);
    RUN_TEST(settings_up_to_the_last);
    RUN_TEST(calls_without_a_hook_are_refused);
    RUN_TEST(an_architecture_may_have_the_small_path_alone);
}
