/* Streams and the small path against the batch, on every small model, on the golden files, and over 10^6 observations.
 * In time order a stream must have the batch's bits; observations that come late leave it within STREAM_LIMIT. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../simd/mtan_simd.h"
#include "greatest.h"
#include "ladder.h"
#include "published.h"
#include "small.h"

#ifdef MTAN_DOUBLE
#define STREAM_LIMIT 4e-15
#define ORDER_LIMIT 4e-16
#define SMALL_LIMIT 2e-14
#else
#define STREAM_LIMIT 2e-6 /* as mtan.h says */
#define ORDER_LIMIT 2e-7  /* of a small network that hardly amplifies */
#define SMALL_LIMIT 1e-5
#endif

enum { MOST_EVENTS = 60, MOST_TIMES = 25, MOST_OUT = 4096 };

/* A predictor and a stream in blocks that notice one byte too far. */
typedef struct {
    mtan_predictor predictor;
    mtan_stream stream;
    void *predictor_memory, *stream_memory;
} rig;

static mtan_status rig_open(rig *r, const mtan_model *model, mtan_bounds bounds, int32_t window) {
    size_t bytes = 0;
    mtan_status status = mtan_stream_size(model, window, &bytes);
    memset(r, 0, sizeof *r);
    if (status != MTAN_OK) return status;
    r->stream_memory = guard_alloc(bytes);
    if ((status = mtan_predictor_size(model, &bounds, &bytes)) != MTAN_OK) return status;
    r->predictor_memory = guard_alloc(bytes);
    if ((status = mtan_predictor_init(&r->predictor, model, &bounds, r->predictor_memory, bytes)) != MTAN_OK)
        return status;
    mtan_stream_size(model, window, &bytes);
    return mtan_stream_init(&r->stream, &r->predictor, window, r->stream_memory, bytes);
}

static int rig_close(rig *r) {
    return guard_free(r->predictor_memory) & guard_free(r->stream_memory);
}

static mtan_status push_all(mtan_stream *s, const mtan_event *e, int32_t n) {
    mtan_status status = MTAN_OK;
    for (int32_t i = 0; i < n && status == MTAN_OK; i++)
        status = mtan_stream_push(s, e[i].time, e[i].channel, e[i].value);
    return status;
}

/* |got - ref| <= limit x the largest |ref|, or 1; limit 0: the same bits */
static int agrees(const char *name, const mtan_real *got, const mtan_real *ref, size_t n, double limit) {
    double *wide, largest = 1;
    int ok;
    if (limit == 0) return check_same(name, got, ref, n * sizeof *got);
    wide = malloc((n + 1) * sizeof *wide);
    for (size_t i = 0; i < n; i++) {
        wide[i] = (double)ref[i];
        largest = fabs(wide[i]) > largest ? fabs(wide[i]) : largest;
    }
    ok = n == 0 || check_close(name, got, wide, n, limit * largest, 0);
    free(wide);
    return ok;
}

/* Stable, as the batch's sort is. by_channel: channel after channel, each in time order. */
static void in_order(mtan_event *e, int32_t n, int by_channel) {
    for (int32_t i = 1; i < n; i++)
        for (int32_t j = i; j > 0; j--) {
            const mtan_event before = e[j - 1];
            const int apart = by_channel && before.channel != e[j].channel;
            if (apart ? before.channel <= e[j].channel : before.time <= e[j].time) break;
            e[j - 1] = e[j];
            e[j] = before;
        }
}

static void turn_round(mtan_event *e, int32_t n) {
    for (int32_t i = 0; i < n / 2; i++) {
        const mtan_event swap = e[i];
        e[i] = e[n - 1 - i];
        e[n - 1 - i] = swap;
    }
}

/* What a stream gives after these events, in this order, and what the batch gives for the record. limit 0: the same bits */
static int same_as_batch(rig *r, const mtan_record *record, const mtan_event *events, double limit) {
    static mtan_real got[MOST_OUT], ref[MOST_OUT], got_sd[MOST_OUT], ref_sd[MOST_OUT];
    const mtan_config *c = &r->predictor.model->config;
    const size_t rows = c->classify == MTAN_CLASSIFY_TIME ? (size_t)record->n_times : 1;
    const size_t S = (size_t)small_samples(c), C = (size_t)mtan_config_outputs(c);
    mtan_stream_reset(&r->stream);
    if (push_all(&r->stream, events, record->n_events) != MTAN_OK || r->stream.events != record->n_events) return 0;
    if (c->classify != MTAN_CLASSIFY_NONE) {
        if (mtan_predictor_logits(&r->predictor, record, 1, ref) != MTAN_OK ||
            mtan_stream_logits(&r->stream, record, got) != MTAN_OK || !agrees("logits", got, ref, rows * S * C, limit))
            return 0;
        if (mtan_predictor_classify(&r->predictor, record, 1, ref) != MTAN_OK ||
            mtan_stream_predict(&r->stream, record, got) != MTAN_OK ||
            !agrees("probabilities", got, ref, rows * C, limit))
            return 0;
    }
    if (c->kind == MTAN_FULL && c->classify != MTAN_CLASSIFY_TIME) {
        const size_t n = (size_t)record->n_times * (size_t)c->channels;
        if (mtan_predictor_interpolate(&r->predictor, record, ref, ref_sd) != MTAN_OK ||
            mtan_stream_interpolate(&r->stream, record, got, got_sd) != MTAN_OK ||
            !agrees("mean", got, ref, n, limit) || !agrees("sd", got_sd, ref_sd, n, limit))
            return 0;
    }
    return 1;
}

/* One record in every order: in time and channel by channel to the bit; as it stands (in no order) and backwards, but where
 * summaries count the steps from one observation to the next, which a late one would change. */
static int same_in_any_order(rig *r, const mtan_record *record) {
    mtan_event e[MOST_EVENTS];
    const int32_t n = record->n_events, late = !r->predictor.model->config.summaries;
    memcpy(e, record->events, (size_t)n * sizeof *e);
    if (late && !same_as_batch(r, record, e, STREAM_LIMIT)) return 0;
    in_order(e, n, 0);
    if (!same_as_batch(r, record, e, 0)) return 0;
    in_order(e, n, 1);
    if (!same_as_batch(r, record, e, 0)) return 0;
    turn_round(e, n);
    return !late || same_as_batch(r, record, e, STREAM_LIMIT);
}

/* Every kind of model in this precision on this backend. Returns how many, or -1. */
static int walk_models(const mtan_backend *backend, mtan_precision precision) {
    const mtan_bounds bounds = {1, MOST_EVENTS, MOST_TIMES};
    int streams = 0;
    for (int i = 0; i < small_count(); i++) {
        uint64_t random = 11;
        int ok = 1;
        small_model s;
        small_set set;
        rig r;
        mtan_status status;
        if (!small_open(&s, i)) return -1;
        s.model.backend = backend;
        s.model.precision = precision;
        status = rig_open(&r, &s.model, bounds, 0);
        set = small_records(&s.config, &bounds, 6, 0, &random);
        for (int32_t b = 0; status == MTAN_OK && ok && b < set.n; b++) ok = same_in_any_order(&r, &set.records[b]);
        if (!ok) printf("  %s\n", s.name);
        ok = ok && status == (s.config.reference == MTAN_REF_OBSERVED ? MTAN_ERR_CONFIG : MTAN_OK);
        streams += status == MTAN_OK;
        ok = rig_close(&r) && ok;
        ok = small_free(&set) && ok;
        if (!small_close(&s) || !ok) return -1;
    }
    return streams;
}

TEST equals_the_batch(void) {
    mtan_backend_choice choice;
    check_quiet = 1;
    for (int i = 0; mtan_backend_list(i, &choice); i++)
        for (int precision = MTAN_REAL; choice.backend && precision <= MTAN_INT8; precision++)
            ASSERTm(choice.name, walk_models(choice.backend, (mtan_precision)precision) > 20);
    check_quiet = 0;
    PASS();
}

/* ---- golden logits ---- */

enum { GOLDEN_TIMES = 200 };

/* As the record has them; in the order of time where summaries are read, as one that comes late is no step in them. */
static mtan_status push_record(mtan_stream *stream, const mtan_record *r) {
    const size_t bytes = ((size_t)r->n_events + 1) * sizeof(mtan_event);
    mtan_event *e = guard_alloc(bytes);
    mtan_status status;
    if (r->n_events > 0) memcpy(e, r->events, bytes - sizeof *e);
    if (stream->predictor->model->config.summaries) in_order(e, r->n_events, 0);
    status = push_all(stream, e, r->n_events);
    return guard_free(e) ? status : MTAN_ERR_MEMORY;
}

static mtan_status stream_way(void *context, const mtan_model *model, const mtan_record *records, int32_t n,
                              mtan_real *logits) {
    const mtan_config *c = &model->config;
    rig r;
    mtan_status status = rig_open(&r, model, (mtan_bounds){1, 0, GOLDEN_TIMES}, 0);
    (void)context;
    for (int32_t b = 0; b < n && status == MTAN_OK; b++) {
        const int32_t rows = c->classify == MTAN_CLASSIFY_TIME ? records[b].n_times : 1;
        mtan_stream_reset(&r.stream);
        status = push_record(&r.stream, &records[b]);
        if (status == MTAN_OK) status = mtan_stream_logits(&r.stream, &records[b], logits);
        logits += rows * small_samples(c) * mtan_config_outputs(c);
    }
    return rig_close(&r) ? status : MTAN_ERR_MEMORY;
}

/* The same, which must be the bits of mtan_predictor_logits on the sorted events. */
static mtan_status same_way(void *context, const mtan_model *model, const mtan_record *records, int32_t n,
                            mtan_real *logits) {
    enum { GOLDEN_EVENTS = 8000 };
    const mtan_config *c = &model->config;
    rig r;
    mtan_status status = rig_open(&r, model, (mtan_bounds){1, GOLDEN_EVENTS, GOLDEN_TIMES}, 0);
    (void)context;
    for (int32_t b = 0; b < n && status == MTAN_OK; b++) {
        const size_t rows = c->classify == MTAN_CLASSIFY_TIME ? (size_t)records[b].n_times : 1;
        const size_t count = rows * (size_t)(small_samples(c) * mtan_config_outputs(c));
        const size_t bytes = ((size_t)records[b].n_events + 1) * sizeof(mtan_event);
        mtan_event *e = guard_alloc(bytes);
        mtan_real *ref = guard_alloc(count * sizeof *ref);
        if (records[b].n_events > 0) memcpy(e, records[b].events, bytes - sizeof *e);
        in_order(e, records[b].n_events, 0);
        mtan_stream_reset(&r.stream);
        status = push_all(&r.stream, e, records[b].n_events);
        if (status == MTAN_OK) status = mtan_stream_logits(&r.stream, &records[b], logits);
        if (status == MTAN_OK) status = mtan_predictor_logits(&r.predictor, &records[b], 1, ref);
        if (status == MTAN_OK && !check_same("logits", logits, ref, count * sizeof *ref)) status = MTAN_ERR_INPUT;
        guard_free(e), guard_free(ref);
        logits += count;
    }
    return rig_close(&r) ? status : MTAN_ERR_MEMORY;
}

static mtan_status small_way(void *context, const mtan_model *model, const mtan_record *records, int32_t n,
                             mtan_real *logits) {
    const int32_t points = model->config.ref_points < 4 ? model->config.ref_points : 4;
    size_t bytes = 0;
    mtan_status status = mtan_small_size(model, points, &bytes);
    void *memory;
    (void)context;
    if (status != MTAN_OK) return status;
    memory = guard_alloc(bytes);
    for (int32_t b = 0; b < n && status == MTAN_OK; b++)
        status = mtan_small_logits(model, &records[b], points, memory, bytes,
                                   logits + b * mtan_config_outputs(&model->config));
    return guard_free(memory) ? status : MTAN_ERR_MEMORY;
}

static void keep_worst(void *context, const char *tensor, double difference, double limit, double share) {
    double *worst = context;
    (void)tensor, (void)difference, (void)limit;
    if (!(share <= *worst)) *worst = share;
}

static int is_published(const char *name) {
    return strncmp(name, "physionet", 9) == 0 || strncmp(name, "mimic3", 6) == 0 || strncmp(name, "activity", 8) == 0;
}

/* How many were compared, or left out. published: with the models of the published commands, which take seconds. */
static int golden_by(ladder_way way, const mtan_backend *backend, int published, double *worst) {
    int compared = 0;
    *worst = 0;
    for (int i = 0; ladder_case(i); i++) {
        const int left_out = case_left_out(ladder_case(i));
        const int n = left_out || (!published && is_published(ladder_case(i)))
                          ? left_out
                          : ladder_logits(ladder_case(i), backend, way, keep_worst, worst);
        if (n < 0) return -1;
        compared += n;
        if (!(*worst <= 1)) {
            printf("  %s: %g of its limit\n", ladder_case(i), *worst);
            return -1;
        }
    }
    return compared;
}

TEST golden_logits_by_stream(void) {
    double worst;
    ASSERT(golden_by(stream_way, &mtan_backend_scalar, 1, &worst) >= 30);
    printf("  worst golden logits by stream: %.3f of the limit\n", worst);
    PASS();
}

/* The published ones on the best backend that this CPU can run, the others on all. */
TEST golden_models_have_the_batchs_bits(void) {
    mtan_backend_choice choice;
    double worst;
    int best = 1;
    for (int i = 0; mtan_backend_list(i, &choice); i++) {
        if (!choice.backend) continue;
        ASSERTm(choice.name, golden_by(same_way, choice.backend, best, &worst) >= 20 + 10 * best);
        best = 0;
    }
    ASSERT(!best);
    PASS();
}

TEST golden_logits_in_small_memory(void) {
    double worst;
    ASSERT(golden_by(small_way, &mtan_backend_scalar, 1, &worst) >= 14);
    printf("  worst golden logits in small memory: %.3f of the limit\n", worst);
    PASS();
}

/* ---- a million observations ---- */

enum { MILLION = 1000000, DISTINCT = 1000 };

static void made_up(mtan_event *e, int32_t n, int32_t channels) {
    for (int32_t i = 0; i < n; i++) {
        e[i].time = (mtan_real)i / (mtan_real)n;
        e[i].channel = i % channels;
        e[i].value = (mtan_real)golden_u("stream.value", (size_t)i);
    }
}

/* Weights of queries and keys times `factor`: scores times its square. */
static void sharpen(small_model *s, mtan_real factor) {
    for (int32_t i = 0; i < mtan_param_count(&s->config); i++) {
        mtan_param p;
        mtan_param_at(&s->config, i, &p);
        if (strstr(p.name, "linears.0.") || strstr(p.name, "linears.1."))
            for (size_t j = 0; j < (size_t)p.rows * (size_t)p.cols; j++) s->weights[p.offset + j] *= factor;
    }
}

/* Attention does not change when every observation is there a thousand times: a million of them are the batch of one
 * thousand. */
TEST a_million_repeats(void) {
    MAY_BE_LEFT_OUT();
    static mtan_event e[DISTINCT];
    const mtan_bounds bounds = {1, DISTINCT, DISTINCT};
    mtan_record record = {0};
    small_model s;
    rig r;
    mtan_real got[2], ref[2];
    ASSERT(small_open_named(&s, "enc record even"));
    sharpen(&s, 3);
    ASSERT_EQ(MTAN_OK, rig_open(&r, &s.model, bounds, 0));
    made_up(e, DISTINCT, 3);
    record.events = e, record.n_events = DISTINCT;
    for (int i = 0; i < MILLION / DISTINCT; i++) ASSERT_EQ(MTAN_OK, push_all(&r.stream, e, DISTINCT));
    ASSERT_EQ(MILLION, r.stream.events);
    ASSERT_EQ(MTAN_OK, mtan_predictor_logits(&r.predictor, &record, 1, ref));
    ASSERT_EQ(MTAN_OK, mtan_stream_logits(&r.stream, NULL, got));
    ASSERT(agrees("a million repeats", got, ref, 2, ORDER_LIMIT));
    ASSERT(rig_close(&r));
    ASSERT(small_close(&s));
    PASS();
}

enum { RISING = 180000 };

/* Times from 0.7 to 1, a channel's values as it rises. */
static mtan_event rising(int i) {
    const mtan_event e = {((mtan_real)0.7 * RISING + (mtan_real)0.3 * (mtan_real)i) / RISING, i % 3,
                          (mtan_real)i / RISING};
    return e;
}

/* RBF with one point at the end of time: every observation scores a little above the last. */
static int open_rising(small_model *s, mtan_model *model, rig *r, mtan_bounds bounds) {
    static const mtan_real end = 1;
    mtan_config c;
    if (!small_open_named(s, "enc rbf")) return 0;
    c = s->config;
    c.reference = MTAN_REF_GIVEN, c.ref = &end, c.ref_points = 1;
    return mtan_model_init(model, &c, s->weights, s->count) == MTAN_OK && rig_open(r, model, bounds, 0) == MTAN_OK;
}

/* The base rises over and over; the bits are those of a batch that knew where it would end. */
TEST a_slow_rise(void) {
    mtan_event *e = malloc(RISING * sizeof *e);
    mtan_record record = {0};
    mtan_real got[2], ref[2];
    mtan_model model;
    small_model s;
    rig r;
    ASSERT(e && open_rising(&s, &model, &r, (mtan_bounds){1, RISING, RISING}));
    for (int i = 0; i < RISING; i++) e[i] = rising(i);
    record.events = e, record.n_events = RISING;
    ASSERT_EQ(MTAN_OK, push_all(&r.stream, e, RISING));
    ASSERT_EQ(MTAN_OK, mtan_stream_logits(&r.stream, NULL, got));
    ASSERT_EQ(MTAN_OK, mtan_predictor_logits(&r.predictor, &record, 1, ref));
    ASSERT(check_same("a slow rise", got, ref, sizeof got));
    free(e);
    ASSERT(rig_close(&r));
    ASSERT(small_close(&s));
    PASS();
}

/* Sums are exact once each channel had a late observation: forwards, where bases rise, and backwards, where they do not. */
TEST a_slow_rise_of_late_ones(void) {
    small_model s[2];
    mtan_model model[2];
    mtan_real got[2], ref[2];
    rig up, down;
    ASSERT(open_rising(&s[0], &model[0], &up, (mtan_bounds){1, 0, 1}));
    ASSERT(open_rising(&s[1], &model[1], &down, (mtan_bounds){1, 0, 1}));
    for (int channel = 0; channel < 3; channel++) ASSERT_EQ(MTAN_OK, mtan_stream_push(&up.stream, 1, channel, 0));
    for (int i = 0; i < RISING; i++) {
        const mtan_event e[2] = {rising(i), rising(RISING - 1 - i)};
        ASSERT_EQ(MTAN_OK, push_all(&up.stream, &e[0], 1));
        ASSERT_EQ(MTAN_OK, push_all(&down.stream, &e[1], 1));
    }
    for (int channel = 0; channel < 3; channel++) ASSERT_EQ(MTAN_OK, mtan_stream_push(&down.stream, 1, channel, 0));
    ASSERT_EQ(MTAN_OK, mtan_stream_logits(&up.stream, NULL, got));
    ASSERT_EQ(MTAN_OK, mtan_stream_logits(&down.stream, NULL, ref));
    ASSERT(agrees("a slow rise of late ones", got, ref, 2, ORDER_LIMIT));
    ASSERT(rig_close(&up));
    ASSERT(rig_close(&down));
    ASSERT(small_close(&s[0]));
    ASSERT(small_close(&s[1]));
    PASS();
}

/* Zeros and ones in turn have the mean of the first two. Plain sums of so many have drifted off it; they are exact from the
 * 2^16th observation of a channel on. */
TEST one_too_many(void) {
    enum { PLAIN = 1 << 16, MORE = 1 << 18 };
    mtan_real got[2], ref[2];
    mtan_model model;
    small_model s;
    rig r;
    ASSERT(open_rising(&s, &model, &r, (mtan_bounds){1, 0, 1}));
    for (int i = 0; i < PLAIN + MORE; i++) {
        ASSERT_EQ(MTAN_OK, mtan_stream_push(&r.stream, (mtan_real)0.4, 0, (mtan_real)(i % 2)));
        if (i == 1) ASSERT_EQ(MTAN_OK, mtan_stream_logits(&r.stream, NULL, ref));
    }
    ASSERT_EQ(MTAN_OK, mtan_stream_logits(&r.stream, NULL, got));
    ASSERT(agrees("one too many", got, ref, 2, ORDER_LIMIT));
    ASSERT(rig_close(&r));
    ASSERT(small_close(&s));
    PASS();
}

/* Times far out and sharp weights make scores of any size: from equal weights to one observation that takes all. */
TEST scores_far_apart(void) {
    static const char *const names[] = {"enc record even", "enc heads", "enc per head", "enc fixed", "enc rbf"};
    static const mtan_real reach[] = {1, 10, 100, 10000, (mtan_real)1e7};
    const mtan_bounds bounds = {1, MOST_EVENTS, MOST_EVENTS};
    mtan_event e[MOST_EVENTS];
    mtan_record record = {0};
    record.events = e, record.n_events = MOST_EVENTS;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        for (size_t f = 0; f < sizeof reach / sizeof *reach; f++) {
            small_model s;
            rig r;
            ASSERT(small_open_named(&s, names[k]));
            sharpen(&s, 1 + (mtan_real)f);
            ASSERT_EQ(MTAN_OK, rig_open(&r, &s.model, bounds, 0));
            made_up(e, MOST_EVENTS, s.config.channels);
            for (int i = 0; i < MOST_EVENTS; i++) e[i].time = reach[f] * (mtan_real)golden_u("stream.time", (size_t)i);
            in_order(e, MOST_EVENTS, 0);
            ASSERTm(names[k], same_as_batch(&r, &record, e, 0));
            turn_round(e, MOST_EVENTS);
            ASSERTm(names[k], same_as_batch(&r, &record, e, STREAM_LIMIT));
            ASSERT(rig_close(&r));
            ASSERT(small_close(&s));
        }
    PASS();
}

/* ---- reset, expiry, input ---- */

enum { WINDOW = 16 };

/* Is the stream what a fresh one is after these events? To the bit. */
static int is_fresh(rig *r, const mtan_model *model, const mtan_event *e, int32_t n) {
    rig fresh;
    mtan_real got[2], ref[2];
    int ok = rig_open(&fresh, model, (mtan_bounds){1, 0, 1}, 0) == MTAN_OK &&
             push_all(&fresh.stream, e, n) == MTAN_OK && mtan_stream_logits(&fresh.stream, NULL, ref) == MTAN_OK &&
             mtan_stream_logits(&r->stream, NULL, got) == MTAN_OK && check_same("logits", got, ref, sizeof got);
    return rig_close(&fresh) && ok && r->stream.events == n;
}

TEST reset_and_expiry(void) {
    mtan_event e[WINDOW + 4];
    small_model s;
    rig r;
    ASSERT(small_open_named(&s, "enc per head"));
    ASSERT_EQ(MTAN_OK, rig_open(&r, &s.model, (mtan_bounds){1, 0, 1}, WINDOW));
    made_up(e, WINDOW + 4, 3);
    ASSERT(is_fresh(&r, &s.model, e, 0));
    ASSERT_EQ(MTAN_OK, push_all(&r.stream, e, WINDOW));
    ASSERT(is_fresh(&r, &s.model, e, WINDOW));
    ASSERT_EQ(MTAN_OK, mtan_stream_expire(&r.stream, e[0].time)); /* nothing is older */
    ASSERT(is_fresh(&r, &s.model, e, WINDOW));
    ASSERT_EQ(MTAN_OK, mtan_stream_expire(&r.stream, e[5].time));
    ASSERT(is_fresh(&r, &s.model, e + 5, WINDOW - 5));
    ASSERT_EQ(MTAN_OK, push_all(&r.stream, e + WINDOW, 4)); /* across the ring's end */
    ASSERT(is_fresh(&r, &s.model, e + 5, WINDOW - 1));
    ASSERT_EQ(MTAN_OK, mtan_stream_expire(&r.stream, e[WINDOW + 1].time));
    ASSERT(is_fresh(&r, &s.model, e + WINDOW + 1, 3));
    ASSERT_EQ(MTAN_OK, mtan_stream_expire(&r.stream, 1e9f));
    ASSERT(is_fresh(&r, &s.model, e, 0));
    ASSERT_EQ(MTAN_OK, push_all(&r.stream, e, WINDOW + 4)); /* four more than are kept */
    ASSERT_EQ(MTAN_ERR_MEMORY, mtan_stream_expire(&r.stream, e[3].time));
    ASSERT(is_fresh(&r, &s.model, e, WINDOW + 4));
    ASSERT_EQ(MTAN_OK, mtan_stream_expire(&r.stream, e[4].time));
    ASSERT(is_fresh(&r, &s.model, e + 4, WINDOW));
    ASSERT_EQ(MTAN_OK, mtan_stream_reset(&r.stream));
    ASSERT(is_fresh(&r, &s.model, e, 0));
    ASSERT_EQ(MTAN_OK, push_all(&r.stream, e, 3));
    ASSERT(is_fresh(&r, &s.model, e, 3));
    ASSERT(rig_close(&r));
    ASSERT(small_close(&s));
    PASS();
}

/* A stream that lost observations out of its window and is reset has nothing left of them: not in its ring, which has turned,
 * not in what it lost, not in its count. */
TEST reset_of_a_window(void) {
    mtan_event e[WINDOW + 5];
    small_model s;
    rig r;
    ASSERT(small_open_named(&s, "enc per head"));
    ASSERT_EQ(MTAN_OK, rig_open(&r, &s.model, (mtan_bounds){1, 0, 1}, WINDOW));
    made_up(e, WINDOW + 5, 3);
    ASSERT_EQ(MTAN_OK, push_all(&r.stream, e, WINDOW + 5));
    ASSERT(r.stream.first > 0 && r.stream.has_lost && r.stream.lost >= e[1].time);
    ASSERT_EQ(MTAN_OK, mtan_stream_reset(&r.stream));
    ASSERT(r.stream.events == 0 && r.stream.first == 0 && r.stream.count == 0 && r.stream.has_lost == 0);
    ASSERT_EQ(MTAN_OK, push_all(&r.stream, e, 3));
    ASSERT_EQ(MTAN_OK, mtan_stream_expire(&r.stream, e[1].time)); /* nothing has been lost since */
    ASSERT(is_fresh(&r, &s.model, e + 1, 2));
    ASSERT_EQ(MTAN_OK, push_all(&r.stream, e + 3, WINDOW - 2)); /* as many as are kept */
    ASSERT_EQ(MTAN_OK, mtan_stream_expire(&r.stream, e[2].time));
    ASSERT(is_fresh(&r, &s.model, e + 2, WINDOW - 1));
    ASSERT(rig_close(&r));
    ASSERT(small_close(&s));
    PASS();
}

/* What was lost is known by its latest time, whatever came and went after it. */
TEST a_late_one_lost_after_a_later_one(void) {
    small_model s;
    rig r;
    ASSERT(small_open_named(&s, "enc per head"));
    ASSERT_EQ(MTAN_OK, rig_open(&r, &s.model, (mtan_bounds){1, 0, 1}, 1));
    ASSERT_EQ(MTAN_OK, mtan_stream_push(&r.stream, 5, 0, 1));
    ASSERT_EQ(MTAN_OK, mtan_stream_push(&r.stream, 3, 0, 1)); /* 5 is lost */
    ASSERT_EQ(MTAN_OK, mtan_stream_push(&r.stream, 6, 0, 1)); /* and 3 */
    ASSERT_EQ(MTAN_ERR_MEMORY, mtan_stream_expire(&r.stream, 4));
    ASSERT_EQ(MTAN_ERR_MEMORY, mtan_stream_expire(&r.stream, 5));
    ASSERT_EQ(3, r.stream.events);
    ASSERT_EQ(MTAN_OK, mtan_stream_expire(&r.stream, (mtan_real)5.5));
    ASSERT_EQ(1, r.stream.events);
    ASSERT(rig_close(&r));
    ASSERT(small_close(&s));
    PASS();
}

/* Where there are no classes there is nothing to predict. */
TEST a_stream_without_classes(void) {
    const mtan_real time = 0;
    small_model s;
    mtan_real p[8] = {7, 7, 7, 7, 7, 7, 7, 7};
    mtan_record ask = {0};
    rig r;
    ASSERT(small_open_named(&s, "full none"));
    ASSERT_EQ(MTAN_OK, rig_open(&r, &s.model, (mtan_bounds){1, 0, 1}, 0));
    ask.times = &time, ask.n_times = 1;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_stream_predict(&r.stream, &ask, p));
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_stream_logits(&r.stream, &ask, p));
    for (int i = 0; i < 8; i++) ASSERT(p[i] == 7);
    ASSERT_EQ(MTAN_OK, mtan_stream_interpolate(&r.stream, &ask, p, NULL));
    ASSERT(p[0] != 7 && p[s.config.channels] == 7);
    ASSERT(rig_close(&r));
    ASSERT(small_close(&s));
    PASS();
}

/* When the late one is forgotten the rest has come in order. */
TEST forgetting_the_late_one(void) {
    mtan_event e[WINDOW], late;
    mtan_record record = {0};
    small_model s;
    rig r;
    mtan_real got[2], ref[2];
    ASSERT(small_open_named(&s, "enc per head"));
    ASSERT_EQ(MTAN_OK, rig_open(&r, &s.model, (mtan_bounds){1, WINDOW, WINDOW}, WINDOW));
    made_up(e, WINDOW, 3);
    late = e[0];
    late.time = -1;
    ASSERT_EQ(MTAN_OK, push_all(&r.stream, e, WINDOW - 1));
    ASSERT_EQ(MTAN_OK, push_all(&r.stream, &late, 1));
    ASSERT_EQ(MTAN_OK, mtan_stream_expire(&r.stream, 0));
    ASSERT_EQ(MTAN_OK, push_all(&r.stream, e + WINDOW - 1, 1));
    record.events = e, record.n_events = WINDOW;
    ASSERT_EQ(MTAN_OK, mtan_stream_logits(&r.stream, NULL, got));
    ASSERT_EQ(MTAN_OK, mtan_predictor_logits(&r.predictor, &record, 1, ref));
    ASSERT(check_same("logits", got, ref, sizeof got));
    ASSERT(rig_close(&r));
    ASSERT(small_close(&s));
    PASS();
}

TEST hostile_input(void) {
    const mtan_real bad[3] = {(mtan_real)NAN, (mtan_real)INFINITY, -(mtan_real)INFINITY};
    mtan_event e[4];
    small_model s;
    mtan_real p[2] = {7, 7};
    mtan_record ask = {0};
    rig r;
    ASSERT(small_open_named(&s, "enc record given"));
    ASSERT_EQ(MTAN_OK, rig_open(&r, &s.model, (mtan_bounds){1, 0, 1}, 0));
    made_up(e, 4, 3);
    ASSERT_EQ(MTAN_OK, push_all(&r.stream, e, 4));
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(MTAN_ERR_INPUT, mtan_stream_push(&r.stream, bad[i], 0, 1));
        ASSERT_EQ(MTAN_ERR_INPUT, mtan_stream_push(&r.stream, 0, 0, bad[i]));
        ASSERT_EQ(MTAN_ERR_INPUT, mtan_stream_expire(&r.stream, bad[i]));
    }
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_stream_push(&r.stream, 0, -1, 1));
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_stream_push(&r.stream, 0, 3, 1));
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_stream_push(&r.stream, 0, INT32_MIN, 1));
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_stream_expire(&r.stream, 0));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_stream_push(NULL, 0, 0, 1));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_stream_reset(NULL));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_stream_expire(NULL, 0));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_stream_predict(NULL, NULL, p));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_stream_predict(&r.stream, NULL, NULL));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_stream_interpolate(&r.stream, NULL, p, NULL));
    ask.times = &e[0].time, ask.n_times = 1;
    ASSERT_EQ(MTAN_ERR_CONFIG, mtan_stream_interpolate(&r.stream, &ask, p, NULL));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_stream_interpolate(NULL, &ask, p, NULL));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_stream_interpolate(&r.stream, &ask, NULL, p));
    ASSERT(p[0] == 7 && p[1] == 7);
    ASSERT(is_fresh(&r, &s.model, e, 4));
    ASSERT(rig_close(&r));
    ASSERT(small_close(&s));
    PASS();
}

static void spoil_weights(small_model *s) {
    for (size_t i = 0; i < s->count; i++) s->weights[i] = (mtan_real)NAN;
}

TEST results_that_are_not_finite(void) {
    static const char *const names[] = {"enc record even", "enc rbf", "full record", "full none", "full time"};
    const mtan_real times[2] = {0, 1};
    mtan_real out[64], sd[64];
    mtan_event e[4];
    mtan_record ask = {0};
    ask.times = times, ask.n_times = 2;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        small_model s;
        rig r;
        ASSERT(small_open_named(&s, names[k]));
        spoil_weights(&s);
        ASSERT_EQ(MTAN_OK, rig_open(&r, &s.model, (mtan_bounds){1, 0, 2}, 0));
        made_up(e, 4, s.config.channels);
        ASSERT_EQ(MTAN_OK, push_all(&r.stream, e, 4));
        memset(out, 0x5b, sizeof out), memcpy(sd, out, sizeof out);
        if (s.config.classify != MTAN_CLASSIFY_NONE) {
            ASSERT_EQ(MTAN_ERR_NUMERIC, mtan_stream_predict(&r.stream, &ask, out));
            ASSERT_EQ(MTAN_ERR_NUMERIC, mtan_stream_logits(&r.stream, &ask, out));
        } else {
            ASSERT_EQ(MTAN_ERR_NUMERIC, mtan_stream_interpolate(&r.stream, &ask, out, sd));
        }
        ASSERT(memcmp(out, sd, sizeof out) == 0 && out[63] > 1);
        ASSERT(rig_close(&r));
        ASSERT(small_close(&s));
    }
    PASS();
}

/* A class per time: questions come with times, as many as the predictor has room for. */
TEST questions_with_times(void) {
    const mtan_real times[3] = {0, (mtan_real)0.5, 1};
    small_model s;
    mtan_real p[6] = {7, 7, 7, 7, 7, 7};
    mtan_record ask = {0};
    rig r;
    ASSERT(small_open_named(&s, "full time"));
    ASSERT_EQ(MTAN_OK, rig_open(&r, &s.model, (mtan_bounds){1, 0, 2}, 0));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_stream_predict(&r.stream, NULL, p));
    ask.times = times, ask.n_times = 3;
    ASSERT_EQ(MTAN_ERR_MEMORY, mtan_stream_predict(&r.stream, &ask, p));
    ASSERT(p[0] == 7);
    ask.n_times = 2;
    ASSERT_EQ(MTAN_OK, mtan_stream_predict(&r.stream, &ask, p));
    ASSERT(p[3] <= 1 && p[4] == 7);
    ASSERT(rig_close(&r));
    ASSERT(small_close(&s));
    PASS();
}

/* A question that cannot be answered leaves what was gathered alone. */
TEST questions_without_an_answer(void) {
    const mtan_real never = (mtan_real)NAN, noise = 0;
    small_model s;
    mtan_event e[4];
    mtan_real before[2], after[2];
    mtan_record ask = {0};
    rig r;
    ASSERT(small_open_named(&s, "full summaries"));
    ASSERT_EQ(MTAN_OK, rig_open(&r, &s.model, (mtan_bounds){1, 0, 1}, 0));
    made_up(e, 4, s.config.channels);
    in_order(e, 4, 0);
    ASSERT_EQ(MTAN_OK, push_all(&r.stream, e, 4));
    ASSERT_EQ(MTAN_OK, mtan_stream_predict(&r.stream, NULL, before));
    ask.times = &never, ask.n_times = 1;
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_stream_predict(&r.stream, &ask, after));
    ask.times = NULL, ask.noise = &noise, ask.n_noise = 1; /* one number for all samples */
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_stream_predict(&r.stream, &ask, after));
    ASSERT_EQ(MTAN_OK, mtan_stream_predict(&r.stream, NULL, after));
    ASSERT(check_same("probabilities", after, before, sizeof after));
    ASSERT(rig_close(&r));
    ASSERT(small_close(&s));
    PASS();
}

TEST sizes_of_streams(void) {
    small_model s;
    size_t bytes = 0, with_window = 0;
    rig r;
    ASSERT(small_open_named(&s, "enc heads"));
    ASSERT_EQ(MTAN_OK, mtan_stream_size(&s.model, 0, &bytes));
    ASSERT_EQ(MTAN_OK, mtan_stream_size(&s.model, 64, &with_window));
    ASSERT_EQ(bytes + 64 * 3 * sizeof(mtan_real), with_window);
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_stream_size(&s.model, -1, &bytes));
    ASSERT_EQ(MTAN_ERR_SIZE, mtan_stream_size(&s.model, INT32_MAX, &bytes));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_stream_size(&s.model, 0, NULL));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_stream_size(NULL, 0, &bytes));
    ASSERT_EQ(MTAN_OK, rig_open(&r, &s.model, (mtan_bounds){1, 0, 1}, 0));
    ASSERT_EQ(MTAN_ERR_MEMORY, mtan_stream_init(&r.stream, &r.predictor, 0, r.stream_memory, bytes - 1));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_stream_init(&r.stream, &r.predictor, 0, NULL, bytes));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_stream_init(&r.stream, NULL, 0, r.stream_memory, bytes));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_stream_init(NULL, &r.predictor, 0, r.stream_memory, bytes));
    ASSERT(rig_close(&r));
    ASSERT(small_close(&s));
    PASS();
}

/* ---- small memory ---- */

/* Every small model that can: each number of points at a time gives the same bits, within the limit of the batch. */
TEST small_memory_equals_the_batch(void) {
    const mtan_bounds bounds = {1, MOST_EVENTS, MOST_TIMES};
    int models = 0;
    check_quiet = 1;
    for (int i = 0; i < small_count(); i++) {
        uint64_t random = 5;
        small_model s;
        small_set set;
        rig r;
        size_t bytes = 0;
        ASSERT(small_open(&s, i));
        if (s.config.kind != MTAN_ENC || s.config.classify != MTAN_CLASSIFY_RECORD ||
            s.config.reference == MTAN_REF_OBSERVED) {
            ASSERT_EQm(s.name, MTAN_ERR_CONFIG, mtan_small_size(&s.model, 1, &bytes));
            ASSERT(small_close(&s));
            continue;
        }
        models++;
        ASSERT_EQ(MTAN_OK, rig_open(&r, &s.model, bounds, 0));
        set = small_records(&s.config, &bounds, 4, 0, &random);
        for (int32_t b = 0; b < set.n; b++) {
            const size_t O = (size_t)mtan_config_outputs(&s.config);
            mtan_real ref[6], first[6];
            ASSERT_EQ(MTAN_OK, mtan_predictor_logits(&r.predictor, &set.records[b], 1, ref));
            for (int32_t points = 1; points <= s.config.ref_points; points++) {
                mtan_real got[6];
                void *memory;
                ASSERT_EQ(MTAN_OK, mtan_small_size(&s.model, points, &bytes));
                memory = guard_alloc(bytes);
                ASSERT_EQ(MTAN_OK, mtan_small_logits(&s.model, &set.records[b], points, memory, bytes, got));
                ASSERT(guard_free(memory));
                if (points == 1) memcpy(first, got, O * sizeof *got);
                ASSERTm(s.name, check_same("points", got, first, O * sizeof *got));
                ASSERTm(s.name, agrees("small", got, ref, O, SMALL_LIMIT));
            }
        }
        ASSERT(rig_close(&r));
        ASSERT(small_free(&set));
        ASSERT(small_close(&s));
    }
    check_quiet = 0;
    ASSERT(models >= 7);
    PASS();
}

enum { LONG_RECORD = 1501, SMALL_RAM = 16 * 1024 };

/* The published model of PhysioNet, on a record of 1501 events, in 16 KB: four points at a time. */
TEST physionet_in_sixteen_kilobytes(void) {
    static mtan_event e[LONG_RECORD];
    mtan_config config;
    mtan_model model;
    mtan_record record = {0};
    mtan_real got[2], one[2], ref[2], p[2], *weights;
    size_t count, bytes = 0, least = 0;
    void *memory;
    rig r;
    ASSERT(published_config(&config, "physionet-enc"));
    count = mtan_weights_count(&config);
    weights = guard_alloc(count * sizeof *weights);
    ASSERT_EQ(MTAN_OK, mtan_weights_init(&config, weights, count, 1));
    ASSERT_EQ(MTAN_OK, mtan_model_init(&model, &config, weights, count));
    made_up(e, LONG_RECORD, config.channels);
    for (int i = 0; i < LONG_RECORD; i++) e[i].time = (mtan_real)(i / 10) / 151;
    record.events = e, record.n_events = LONG_RECORD;
    ASSERT_EQ(MTAN_OK, mtan_small_size(&model, 1, &least));
    ASSERT_EQ(MTAN_OK, mtan_small_size(&model, 4, &bytes));
    printf("  physionet-enc: %zu bytes with 1 point at a time, %zu with 4\n", least, bytes);
    ASSERT(bytes <= SMALL_RAM * sizeof(mtan_real) / sizeof(float));
    ASSERT(least < bytes);
    memory = guard_alloc(bytes);
    ASSERT_EQ(MTAN_ERR_MEMORY, mtan_small_classify(&model, &record, 4, memory, bytes - 1, p));
    ASSERT_EQ(MTAN_OK, mtan_small_logits(&model, &record, 4, memory, bytes, got));
    ASSERT_EQ(MTAN_OK, mtan_small_classify(&model, &record, 4, memory, bytes, p));
    ASSERT_EQ(MTAN_OK, mtan_small_logits(&model, &record, 1, memory, least, one));
    ASSERT(guard_free(memory));
    ASSERT(check_same("one point at a time", one, got, sizeof got));
    ASSERT_EQ(MTAN_OK, rig_open(&r, &model, (mtan_bounds){1, LONG_RECORD, LONG_RECORD}, 0));
    ASSERT_EQ(MTAN_OK, mtan_predictor_logits(&r.predictor, &record, 1, ref));
    ASSERT(agrees("16 KB, logits", got, ref, 2, SMALL_LIMIT));
    ASSERT_EQ(MTAN_OK, mtan_predictor_classify(&r.predictor, &record, 1, ref));
    ASSERT(agrees("16 KB, probabilities", p, ref, 2, SMALL_LIMIT));
    ASSERT_EQ(MTAN_OK, push_all(&r.stream, e, LONG_RECORD));
    ASSERT_EQ(MTAN_OK, mtan_stream_predict(&r.stream, NULL, p));
    ASSERT(check_same("stream of 1501", p, ref, sizeof p));
    ASSERT(rig_close(&r));
    ASSERT(guard_free(weights));
    PASS();
}

TEST small_memory_refuses(void) {
    const mtan_event wrong = {0, 3, 1}, endless = {(mtan_real)INFINITY, 0, 1};
    small_model s;
    mtan_record record = {0};
    mtan_real p[2] = {7, 7};
    size_t bytes = 0;
    void *memory;
    ASSERT(small_open_named(&s, "enc record even"));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_small_size(NULL, 1, &bytes));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_small_size(&s.model, 1, NULL));
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_small_size(&s.model, 0, &bytes));
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_small_size(&s.model, 5, &bytes));
    ASSERT_EQ(MTAN_OK, mtan_small_size(&s.model, 1, &bytes));
    memory = guard_alloc(bytes);
    ASSERT_EQ(MTAN_ERR_NULL, mtan_small_classify(&s.model, NULL, 1, memory, bytes, p));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_small_classify(&s.model, &record, 1, NULL, bytes, p));
    ASSERT_EQ(MTAN_ERR_NULL, mtan_small_classify(&s.model, &record, 1, memory, bytes, NULL));
    record.n_events = 1;
    ASSERT_EQ(MTAN_ERR_NULL, mtan_small_classify(&s.model, &record, 1, memory, bytes, p));
    record.events = &wrong;
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_small_classify(&s.model, &record, 1, memory, bytes, p));
    record.events = &endless;
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_small_classify(&s.model, &record, 1, memory, bytes, p));
    record.n_events = -1;
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_small_classify(&s.model, &record, 1, memory, bytes, p));
    record.n_events = 0;
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_small_classify(&s.model, &record, 0, memory, bytes, p));
    ASSERT_EQ(MTAN_ERR_INPUT, mtan_small_logits(&s.model, &record, 5, memory, bytes, p));
    ASSERT_EQ(MTAN_ERR_MEMORY, mtan_small_logits(&s.model, &record, 1, memory, bytes - 1, p));
    ASSERT(p[0] == 7 && p[1] == 7);
    record.n_events = 0;
    ASSERT_EQ(MTAN_OK, mtan_small_classify(&s.model, &record, 1, memory, bytes, p));
    ASSERT(fabs((double)p[0] + (double)p[1] - 1) < 1e-6);
    spoil_weights(&s);
    p[0] = p[1] = 7;
    ASSERT_EQ(MTAN_ERR_NUMERIC, mtan_small_classify(&s.model, &record, 1, memory, bytes, p));
    ASSERT_EQ(MTAN_ERR_NUMERIC, mtan_small_logits(&s.model, &record, 1, memory, bytes, p));
    ASSERT(p[0] == 7 && p[1] == 7);
    ASSERT(guard_free(memory));
    ASSERT(small_close(&s));
    PASS();
}

/* ---- backends ---- */

/* Logits of one record by stream and in small memory. */
static int both_ways(small_model *s, const mtan_backend *backend, const mtan_record *record, mtan_real out[4]) {
    s->model.backend = backend;
    return stream_way(NULL, &s->model, record, 1, out) == MTAN_OK &&
           small_way(NULL, &s->model, record, 1, out + 2) == MTAN_OK;
}

/* Bits agree among the fused backends, and among the others. */
TEST backends_agree(void) {
    static mtan_event e[MOST_EVENTS];
    const char *const names[] = {"enc heads", "enc fixed", "enc rbf"};
    mtan_real first[2][4];
    for (int n = 0; n < 3; n++) {
        small_model s;
        mtan_record record = {0};
        mtan_backend_choice choice;
        int known[2] = {0, 0};
        ASSERT(small_open_named(&s, names[n]));
        made_up(e, MOST_EVENTS, s.config.channels);
        record.events = e, record.n_events = MOST_EVENTS;
        for (int i = 0; mtan_backend_list(i, &choice); i++) {
            mtan_real got[4];
            const int class = choice.backend && choice.backend->fused;
            if (!choice.backend) continue;
            ASSERT(both_ways(&s, choice.backend, &record, got));
            if (!known[class]) memcpy(first[class], got, sizeof got);
            known[class] = 1;
            ASSERTm(choice.name, check_same(names[n], got, first[class], sizeof got));
        }
        ASSERT(known[0] + known[1] > 0);
        ASSERT(small_close(&s));
    }
    PASS();
}

SUITE(stream_suite) {
    RUN_TEST(backends_agree);
    RUN_TEST(equals_the_batch);
    RUN_TEST(golden_logits_by_stream);
    RUN_TEST(golden_models_have_the_batchs_bits);
    RUN_TEST(golden_logits_in_small_memory);
    RUN_TEST(a_million_repeats);
    RUN_TEST(a_slow_rise);
    RUN_TEST(a_slow_rise_of_late_ones);
    RUN_TEST(one_too_many);
    RUN_TEST(scores_far_apart);
    RUN_TEST(reset_and_expiry);
    RUN_TEST(reset_of_a_window);
    RUN_TEST(a_late_one_lost_after_a_later_one);
    RUN_TEST(a_stream_without_classes);
    RUN_TEST(forgetting_the_late_one);
    RUN_TEST(hostile_input);
    RUN_TEST(results_that_are_not_finite);
    RUN_TEST(questions_with_times);
    RUN_TEST(questions_without_an_answer);
    RUN_TEST(sizes_of_streams);
    RUN_TEST(small_memory_equals_the_batch);
    RUN_TEST(physionet_in_sixteen_kilobytes);
    RUN_TEST(small_memory_refuses);
}
