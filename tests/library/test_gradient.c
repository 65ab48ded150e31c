/* Gradients against finite differences, sign kept: every op, every kind of model, every parameter tensor by itself.
 *
 * The reference is the loss itself, so this suite needs no golden data and would find a loss and a gradient that agree
 * with the published code but not with each other. It needs the double build: in float the rounding of the loss,
 * divided by a step small enough for the curvature, is as large as most gradients.
 */
#include <greatest.h>

#include "check.h"

#ifndef MTAN_DOUBLE

TEST differences_need_the_double_build(void) {
    SKIPm("finite differences need the double build: rounding in float is larger than the gradients");
}

SUITE(gradient_suite) {
    RUN_TEST(differences_need_the_double_build);
}

#else

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/data/generators.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- the checker ---- */

/* A function of x and the gradient that is claimed for it. */
typedef struct {
    const char *name;
    double *x;       /* moved and put back */
    const double *g; /* claimed */
    double (*f)(void *context);
    void *context;
    mtan_mt19937 rng;
} probe;

/* What is allowed between the difference quotient and g.d, for a direction d of length 1:
 *   RELATIVE |g|           what curvature leaves after the extrapolation below; g.d itself is about |g| / sqrt(n), with
 *                          n below 1000
 *   ROUNDING (1 + |f|) / h the loss carries a few roundings of its own size and of the values of order 1 that make it:
 *                          less than 3 was seen, 16 is allowed */
#define RELATIVE 1e-8
#define ROUNDING (16 * DBL_EPSILON)

static double uniform(mtan_mt19937 *rng, double low, double high) {
    return low + (high - low) * numpy_uniform(rng);
}

static void random_direction(probe *p, double *d, size_t n) {
    double length = 0;
    for (size_t i = 0; i < n; i++) d[i] = uniform(&p->rng, -1, 1);
    length = check_length(d, n);
    for (size_t i = 0; i < n; i++) d[i] /= length;
}

/* (f(x + h d) - f(x - h d)) / 2h, moving only the n entries from `first`. */
static double quotient(probe *p, size_t first, size_t n, const double *d, const double *x, double h) {
    double f[2];
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < n; i++) p->x[first + i] = x[i] + (side ? h : -h) * d[i];
        f[side] = p->f(p->context);
    }
    memcpy(p->x + first, x, n * sizeof *x);
    return (f[1] - f[0]) / (2 * h);
}

static int say(const probe *p, const char *part, const char *what, double found, double claimed, double limit) {
    if (!check_quiet)
        printf("%s, %s: %s: quotient %.12g, gradient %.12g, limit %.3g\n", p->name, part, what, found, claimed, limit);
    return 0;
}

/* One direction inside the n entries from `first`. 1 when the claimed slope is right.
 *
 * A quotient across the kink of a ReLU is wrong although the gradient is right. Two steps, h and h/2, then disagree, and
 * the step is made smaller until they do not: they are compared with each other, never with the gradient. For a
 * smooth loss their mean (4 D(h/2) - D(h)) / 3 is free of the error of order h^2 as well.
 *
 * A slope of less than 50 limits, of which not two digits would be checked, proves nothing and is a failure too. */
static int check_direction(probe *p, const char *part, size_t first, size_t n) {
    double *d = malloc(n * sizeof *d), *x = malloc(n * sizeof *x), claimed = 0, limit = 0, estimate = 0;
    const double size = check_length(p->g + first, n), loss = p->f(p->context);
    int agree = 0, ok;
    random_direction(p, d, n);
    memcpy(x, p->x + first, n * sizeof *x);
    for (size_t i = 0; i < n; i++) claimed += p->g[first + i] * d[i];
    for (double h = 0x1p-12; h >= 0x1p-24 && !agree; h /= 4) {
        const double wide = quotient(p, first, n, d, x, h), narrow = quotient(p, first, n, d, x, h / 2);
        limit = RELATIVE * size + ROUNDING * (1 + fabs(loss)) / h;
        estimate = (4 * narrow - wide) / 3;
        agree = fabs(wide - narrow) <= limit;
    }
    free(d), free(x);
    ok = agree && fabs(estimate - claimed) <= limit;
    if (!agree) return say(p, part, "no step without a kink", estimate, claimed, limit);
    if (!ok) return say(p, part, "wrong", estimate, claimed, limit);
    if (!(fabs(claimed) > 50 * limit)) return say(p, part, "too small to prove anything", estimate, claimed, limit);
    return 1;
}

/* ---- the checker can fail ---- */

enum { TOY = 5 };

static double toy(void *context) { /* a kink of the kind ReLU has, at 0 of the last entry */
    const double *x = context;
    double sum = x[TOY - 1] > 0 ? x[TOY - 1] : 0;
    for (int i = 0; i < TOY - 1; i++) sum += sin(x[i] + i);
    return sum;
}

static int toy_passes(const double g[TOY], double last) {
    double x[TOY] = {0.1, -0.4, 0.3, 0.9, 0}, kept[TOY];
    probe p = {"toy", x, g, toy, x, {{0}, 0}};
    int ok;
    x[TOY - 1] = last;
    memcpy(kept, x, sizeof x);
    mtan_mt_seed(&p.rng, 3);
    check_quiet = 1;
    ok = check_direction(&p, "all", 0, TOY);
    check_quiet = 0;
    return ok && memcmp(kept, x, sizeof x) == 0;
}

TEST a_wrong_gradient_is_rejected(void) {
    const double right[TOY] = {cos(0.1), cos(0.6), cos(2.3), cos(3.9), 1};
    double wrong[TOY];
    ASSERT(toy_passes(right, 0.5));
    for (int i = 0; i < TOY; i++) { /* one entry: sign, NaN, infinite, missing, a little too large */
        const double bad[] = {-right[i], (double)NAN, (double)INFINITY, 0, right[i] * (1 + 1e-4)};
        for (size_t k = 0; k < COUNT(bad); k++) {
            memcpy(wrong, right, sizeof right);
            wrong[i] = bad[k];
            ASSERT_FALSE(toy_passes(wrong, 0.5));
        }
    }
    for (int i = 0; i < TOY; i++) wrong[i] = -right[i];
    ASSERT_FALSE(toy_passes(wrong, 0.5));
    PASS();
}

TEST a_kink_beside_the_point_is_no_error(void) {
    const double above[TOY] = {cos(0.1), cos(0.6), cos(2.3), cos(3.9), 1},
                 below[TOY] = {cos(0.1), cos(0.6), cos(2.3), cos(3.9), 0};
    ASSERT(toy_passes(above, 1e-5));
    ASSERT(toy_passes(below, -1e-5));
    ASSERT_FALSE(toy_passes(below, 1e-5));
    ASSERT_FALSE(toy_passes(above, -1e-5));
    PASS();
}

TEST a_gradient_of_zero_proves_nothing(void) {
    const double zero[TOY] = {0};
    ASSERT_FALSE(toy_passes(zero, 0.5));
    PASS();
}

/* ---- models ---- */

enum { DEPTH = 8, CHANNELS = 3, CLASSES = 3, MOST = 17 };

enum { OWN_TARGETS = 1, OWN_TIMES = 2, UNLABELED = 4 }; /* traits of the records, added up */
enum { DROPOUT = 8 };                                   /* a trait of the training */

typedef struct {
    const char *name;
    mtan_kind kind;
    mtan_classify_kind classify;
    int records;
    int traits;
    const char *settings; /* "key=value key=value", on top of small_config */
} model_case;

/* One training set and the model on it. */
typedef struct {
    mtan_config config;
    mtan_model model;
    mtan_trainer trainer;
    mtan_record records[MOST];
    mtan_event events[MOST][DEPTH], targets[MOST][DEPTH];
    mtan_real times[MOST][DEPTH];
    int32_t labels[MOST][DEPTH];
    mtan_real *noise, *weights, *gradient;
    void *memory;
    size_t n_weights;
    int n;
} training;

static const mtan_real given_points[4] = {-0.1, 0.35, 0.4, 1.3};

static int apply(mtan_config *c, const char *settings) {
    char pair[64];
    int used;
    for (; sscanf(settings, " %63s%n", pair, &used) == 1; settings += used) {
        char *value = strchr(pair, '=');
        *value++ = 0;
        if (mtan_config_set(c, pair, value) != MTAN_OK) return 0;
    }
    return 1;
}

static int small_config(mtan_config *c, const model_case *m) {
    mtan_config_init(c, m->kind, m->classify, CHANNELS, m->classify == MTAN_CLASSIFY_NONE ? 0 : CLASSES);
    c->ref = given_points;
    return apply(c, "embed=4 enc_hidden=3 dec_hidden=2 latent=2 ref_points=4 mlp_hidden=6 noise_std=0.5 alpha=2.5") &&
           (c->head_hidden == 0 || apply(c, "head_hidden=6")) && apply(c, m->settings) &&
           mtan_config_check(c) == MTAN_OK;
}

static void random_events(mtan_mt19937 *rng, mtan_event *e, int n) {
    for (int i = 0; i < n; i++) {
        e[i].time = uniform(rng, 0, 1);
        e[i].channel = (int32_t)numpy_interval(rng, CHANNELS - 1);
        e[i].value = uniform(rng, -1, 1);
    }
}

/* Of every five records: full, one event, none, equal times and equal (time, channel), short. Times come unsorted. */
static int fill_events(mtan_mt19937 *rng, mtan_event *e, int b) {
    static const int counts[5] = {DEPTH, 1, 0, 6, 3};
    random_events(rng, e, counts[b % 5]);
    if (b % 5 == 3) {
        e[1].time = e[4].time;
        e[2].time = e[5].time, e[2].channel = e[5].channel;
    }
    return counts[b % 5];
}

static void fill_record(training *t, mtan_mt19937 *rng, int b, int traits) {
    const int32_t per_record = t->config.samples * DEPTH * t->config.latent; /* no record has more points */
    mtan_record *r = &t->records[b];
    memset(r, 0, sizeof *r);
    r->events = t->events[b];
    r->n_events = fill_events(rng, t->events[b], b);
    r->id = (uint64_t)b;
    if (traits & OWN_TARGETS) {
        r->targets = t->targets[b];
        r->n_targets = b % 4 == 3 ? 0 : 2 + b % 4; /* also where nothing was seen, and none where something was */
        random_events(rng, t->targets[b], r->n_targets);
    }
    if (traits & OWN_TIMES) {
        r->times = t->times[b];
        r->n_times = b % 6 == 5 ? 0 : 2 + b % 4;
        for (int i = 0; i < r->n_times; i++) t->times[b][i] = (i + uniform(rng, 0, 1)) / 4;
    }
    if (t->config.classify != MTAN_CLASSIFY_NONE && !(traits & UNLABELED && b % 4 == 1)) r->labels = t->labels[b];
    for (int i = 0; i < DEPTH; i++) {
        t->labels[b][i] = (int32_t)numpy_interval(rng, CLASSES - 1);
        if (traits & UNLABELED && (b + i) % 3 == 0) t->labels[b][i] = MTAN_UNLABELED;
    }
    for (int32_t i = 0; i < per_record; i++) t->noise[b * per_record + i] = uniform(rng, -2, 2);
    if (b % 2) r->noise = t->noise + b * per_record, r->n_noise = per_record; /* the others draw their own */
}

static int start_training(training *t, const model_case *m, uint32_t seed) {
    const mtan_bounds bounds = {m->records, DEPTH, DEPTH};
    mtan_train_config config;
    mtan_mt19937 rng;
    size_t bytes = 0;
    memset(t, 0, sizeof *t);
    if (!small_config(&t->config, m)) return 0;
    t->n = m->records;
    t->n_weights = mtan_weights_count(&t->config);
    t->weights = guard_alloc(t->n_weights * sizeof *t->weights);
    t->gradient = malloc(t->n_weights * sizeof *t->gradient);
    t->noise = malloc((size_t)(MOST * t->config.samples * DEPTH * t->config.latent) * sizeof *t->noise);
    mtan_mt_seed(&rng, seed);
    for (int b = 0; b < t->n; b++) fill_record(t, &rng, b, m->traits);
    if (mtan_weights_init(&t->config, t->weights, mtan_weights_count(&t->config), seed) != MTAN_OK) return 0;
    for (size_t i = 0; i < t->n_weights; i++)
        t->weights[i] *= 1.5; /* out of the range where every layer is nearly linear */
    if (mtan_model_init(&t->model, &t->config, t->weights, mtan_weights_count(&t->config)) != MTAN_OK) return 0;
    mtan_train_config_init(&config);
    config.kl_weight = 0.7;
    config.dropout = m->traits & DROPOUT ? 0.25 : 0;
    if (mtan_trainer_size(&t->model, &config, &bounds, &bytes) != MTAN_OK) return 0;
    t->memory = guard_alloc(bytes);
    return mtan_trainer_init(&t->trainer, &t->model, t->weights, &config, &bounds, t->memory, bytes) == MTAN_OK;
}

static int end_training(training *t) {
    const int ok = guard_free(t->weights) & guard_free(t->memory);
    free(t->noise), free(t->gradient);
    return ok;
}

/* With dropout it is the gradient's own loss: the step stands still, and with it the masks. */
static double training_loss(void *context) {
    training *t = context;
    mtan_report r;
    mtan_status (*loss)(mtan_trainer *, const mtan_record *, int32_t, int32_t, mtan_report *) =
        t->trainer.config.dropout > 0 ? mtan_trainer_gradient : mtan_trainer_loss;
    return loss(&t->trainer, t->records, t->n, 1, &r) == MTAN_OK ? r.loss : (double)NAN;
}

/* The gradient, kept apart from the trainer's memory; its loss has the bits of the loss alone. */
static int take_gradient(training *t) {
    mtan_report r;
    double loss;
    if (mtan_trainer_gradient(&t->trainer, t->records, t->n, 1, &r) != MTAN_OK) return 0;
    memcpy(t->gradient, t->trainer.gradient, t->n_weights * sizeof *t->gradient);
    loss = training_loss(t);
    return check_same("loss with and without gradient", &r.loss, &loss, sizeof loss);
}

static probe probe_of(training *t, const char *name) {
    probe p = {name, t->weights, t->gradient, training_loss, t, {{0}, 0}};
    mtan_mt_seed(&p.rng, 11);
    return p;
}

/* The key's bias adds the same to every score of a query, which a softmax ignores: the gradient is 0, not nearly 0. */
static int is_key_bias(const char *name) {
    return strstr(name, "linears.1.bias") != NULL;
}

static int check_key_bias(training *t, const mtan_param *param) {
    const double before = training_loss(t);
    double after;
    int ok = 1;
    for (int32_t i = 0; i < param->rows; i++) {
        ok = ok && t->gradient[param->offset + (uint32_t)i] == 0;
        t->weights[param->offset + (uint32_t)i] += 0.25;
    }
    after = training_loss(t);
    for (int32_t i = 0; i < param->rows; i++)
        t->weights[param->offset + (uint32_t)i] -= 0.25; /* a sum of few bits: exact */
    if (!ok) printf("%s: the gradient of a key bias is not exactly 0\n", param->name);
    return ok && fabs(after - before) <= ROUNDING * (1 + fabs(before));
}

/* Every tensor by itself, then all together. Knots, the last one, are not learned. */
static int check_model(training *t, const char *name) {
    probe p = probe_of(t, name);
    const int32_t n = mtan_param_count(&t->config) - (t->config.values != MTAN_VALUES_PLAIN);
    size_t learned = 0;
    int ok = take_gradient(t);
    for (int32_t i = 0; i < n; i++) {
        mtan_param param;
        if (mtan_param_at(&t->config, i, &param) != MTAN_OK) return 0;
        if (is_key_bias(param.name)) ok = check_key_bias(t, &param) && ok;
        else ok = check_direction(&p, param.name, param.offset, (size_t)param.rows * (size_t)param.cols) && ok;
        learned = param.offset + (size_t)param.rows * (size_t)param.cols;
    }
    for (int i = 0; i < 3; i++) ok = check_direction(&p, "all tensors", 0, learned) && ok;
    return ok && n > 0;
}

#define ENC_RECORD MTAN_ENC, MTAN_CLASSIFY_RECORD
#define ENC_TIME MTAN_ENC, MTAN_CLASSIFY_TIME
#define INTERP MTAN_FULL, MTAN_CLASSIFY_NONE
#define FULL_RECORD MTAN_FULL, MTAN_CLASSIFY_RECORD
#define FULL_TIME MTAN_FULL, MTAN_CLASSIFY_TIME

static const model_case model_cases[] = {
    {"enc", ENC_RECORD, 6, 0, ""},
    {"enc, several shards", ENC_RECORD, 17, UNLABELED, ""},
    {"enc, linear head", ENC_RECORD, 6, 0, "head_hidden=0"},
    {"enc, unlabeled", ENC_RECORD, 6, UNLABELED, ""},
    {"enc, observed points", ENC_RECORD, 6, 0, "reference=observed"},
    {"enc, observed points, own times", ENC_RECORD, 17, OWN_TIMES, "reference=observed enc_heads=2"},
    {"enc, given points", ENC_RECORD, 6, 0, "reference=given"},
    {"enc, 2 heads", ENC_RECORD, 6, 0, "enc_heads=2"},
    {"enc, 4 heads", ENC_RECORD, 6, 0, "enc_heads=4"},
    {"enc, embedding per head", ENC_RECORD, 6, 0, "enc_heads=2 embed_heads=per_head"},
    {"enc, embedding per head, observed points", ENC_RECORD, 6, 0,
     "enc_heads=2 embed_heads=per_head reference=observed"},
    {"enc, fixed embedding", ENC_RECORD, 6, 0, "embedding=fixed enc_heads=2"},
    {"enc, rbf", ENC_RECORD, 6, 0, "encoder=rbf"},
    {"enc, rbf, observed points", ENC_RECORD, 6, OWN_TIMES, "encoder=rbf reference=observed"},
    {"enc, rnn3", ENC_RECORD, 6, 0, "encoder=rnn3"},
    {"enc, statistics", ENC_RECORD, 6, 0, "statistics=mean,spread,intensity,slope"},
    {"enc, statistics, 2 heads", ENC_RECORD, 17, UNLABELED, "statistics=mean,spread,slope enc_heads=2 statics=1"},
    {"enc, summaries", ENC_RECORD, 6, 0, "summaries=1 statics=1"},
    {"enc, piecewise", ENC_RECORD, 17, UNLABELED, "values=piecewise bins=3 enc_heads=2 summaries=1 statics=1"},
    {"enc, quantile, statistics", ENC_RECORD, 6, 0, "values=quantile bins=4 statistics=mean,spread,intensity,slope"},
    {"interp, piecewise", INTERP, 6, OWN_TARGETS, "values=piecewise bins=2 samples=2"},
    {"enc time, piecewise", ENC_TIME, 6, OWN_TIMES, "values=piecewise bins=2"},
    {"enc time, statistics", ENC_TIME, 6, OWN_TIMES, "statistics=mean,spread,intensity,slope"},
    {"enc time", ENC_TIME, 6, 0, ""},
    {"enc time, several shards", ENC_TIME, 17, UNLABELED, ""},
    {"enc time, own times", ENC_TIME, 6, OWN_TIMES | UNLABELED, "enc_heads=2"},
    {"enc time, hidden layers", ENC_TIME, 6, OWN_TIMES, "head_hidden=4"},
    {"enc time, embedding per head", ENC_TIME, 6, OWN_TIMES, "enc_heads=2 embed_heads=per_head"},
    {"enc time, fixed embedding", ENC_TIME, 6, 0, "embedding=fixed"},
    {"enc time, rbf", ENC_TIME, 6, OWN_TIMES, "encoder=rbf"},
    {"enc time, rnn3", ENC_TIME, 6, 0, "encoder=rnn3"},
    {"interp, statistics", INTERP, 6, 0, "samples=1 statistics=mean,spread,intensity,slope"},
    {"interp", INTERP, 6, 0, "samples=1"},
    {"interp, faithful", INTERP, 6, 0, "samples=3 bound=faithful norm=0 skip_empty=0"},
    {"interp, faithful, norm", INTERP, 6, 0, "samples=3 bound=faithful norm=1 skip_empty=0"},
    {"interp, elbo", INTERP, 6, 0, "samples=3 bound=elbo norm=0 skip_empty=0"},
    {"interp, elbo, norm, skip", INTERP, 6, 0, "samples=3 bound=elbo norm=1 skip_empty=1"},
    {"interp, iwae", INTERP, 6, 0, "samples=3 bound=iwae norm=0 skip_empty=0"},
    {"interp, iwae, norm, skip", INTERP, 6, 0, "samples=3 bound=iwae norm=1 skip_empty=1"},
    {"interp, faithful, skip, several shards", INTERP, 17, OWN_TARGETS, "samples=3 bound=faithful norm=0 skip_empty=1"},
    {"interp, targets", INTERP, 6, OWN_TARGETS, "samples=2 bound=elbo skip_empty=0"},
    {"interp, given points", INTERP, 6, 0, "reference=given"},
    {"interp, observed points", INTERP, 6, 0, "reference=observed samples=2"},
    {"interp, observed points, targets", INTERP, 17, OWN_TARGETS,
     "reference=observed samples=3 bound=iwae dec_heads=2"},
    {"interp, observed points, embedding per head", INTERP, 6, OWN_TARGETS,
     "reference=observed enc_heads=2 dec_heads=2 embed_heads=per_head bound=faithful skip_empty=0"},
    {"interp, observed points, fixed embedding", INTERP, 6, OWN_TARGETS, "reference=observed embedding=fixed"},
    {"interp, observed points, rbf", INTERP, 6, OWN_TARGETS, "reference=observed encoder=rbf decoder=rbf samples=2"},
    {"interp, observed points, rnn3", INTERP, 6, OWN_TARGETS, "reference=observed encoder=rnn3 decoder=rnn3"},
    {"interp, 3 points, small noise", INTERP, 6, 0, "ref_points=3 noise_std=0.1"},
    {"interp, 2 and 4 heads", INTERP, 6, 0, "enc_heads=2 dec_heads=4"},
    {"interp, 4 and 2 heads", INTERP, 6, OWN_TARGETS, "enc_heads=4 dec_heads=2 samples=2"},
    {"interp, embedding per head", INTERP, 6, 0, "enc_heads=2 dec_heads=2 embed_heads=per_head"},
    {"interp, fixed embedding", INTERP, 6, 0, "embedding=fixed enc_heads=2"},
    {"interp, rbf", INTERP, 6, OWN_TARGETS, "encoder=rbf decoder=rbf samples=2"},
    {"interp, rbf then attention", INTERP, 6, 0, "encoder=rbf dec_heads=2"},
    {"interp, attention then rbf", INTERP, 6, 0, "enc_heads=2 decoder=rbf"},
    {"interp, rnn3", INTERP, 6, 0, "encoder=rnn3 decoder=rnn3"},
    {"full", FULL_RECORD, 6, 0, ""},
    {"full, several shards", FULL_RECORD, 17, OWN_TARGETS | UNLABELED, "samples=2 bound=faithful"},
    {"full, linear head", FULL_RECORD, 6, UNLABELED, "head_hidden=0 samples=3 bound=iwae"},
    {"full, embedding per head", FULL_RECORD, 6, 0, "enc_heads=2 dec_heads=4 embed_heads=per_head"},
    {"full, observed points", FULL_RECORD, 17, OWN_TARGETS | UNLABELED, "reference=observed samples=2 enc_heads=2"},
    {"full, rbf", FULL_RECORD, 6, 0, "encoder=rbf decoder=rbf"},
    {"full, rnn3", FULL_RECORD, 6, 0, "encoder=rnn3 decoder=rnn3 samples=2"},
    {"full time", FULL_TIME, 6, 0, ""},
    {"full time, several shards", FULL_TIME, 17, OWN_TIMES | UNLABELED, "samples=2 enc_heads=2 dec_heads=2"},
    {"full time, linear head", FULL_TIME, 6, OWN_TIMES, "head_hidden=0"},
    {"full time, embedding per head", FULL_TIME, 6, OWN_TIMES, "enc_heads=2 dec_heads=2 embed_heads=per_head"},
    {"full time, observed points", FULL_TIME, 6, OWN_TIMES | UNLABELED, "reference=observed samples=2 dec_heads=2"},
    {"full time, observed points, rbf", FULL_TIME, 6, OWN_TIMES, "reference=observed encoder=rbf decoder=rbf"},
    {"full time, rbf", FULL_TIME, 6, UNLABELED, "encoder=rbf decoder=rbf samples=2"},
    {"full time, rnn3", FULL_TIME, 6, 0, "encoder=rnn3 decoder=rnn3"},
    {"enc, dropout", ENC_RECORD, 17, DROPOUT | UNLABELED, ""},
    {"enc, linear head, dropout", ENC_RECORD, 6, DROPOUT, "head_hidden=0"},
    {"enc time, dropout", ENC_TIME, 6, DROPOUT, "head_hidden=0"},
    {"enc time, hidden layers, dropout", ENC_TIME, 17, DROPOUT | OWN_TIMES, "head_hidden=8"},
    {"full, dropout", FULL_RECORD, 6, DROPOUT | UNLABELED, "samples=3 head_hidden=8"},
    {"full, linear head, dropout", FULL_RECORD, 6, DROPOUT, "head_hidden=0 samples=2"},
    {"full time, dropout", FULL_TIME, 17, DROPOUT | OWN_TIMES | UNLABELED, "samples=2 head_hidden=8 dec_heads=2"},
    {"full time, linear head, dropout", FULL_TIME, 6, DROPOUT | OWN_TIMES, "head_hidden=0 samples=2 dec_heads=2"},
    {"full time, rbf, linear head, dropout", FULL_TIME, 6, DROPOUT, "head_hidden=0 encoder=rbf decoder=rbf"},
    {"full time, observed points, dropout", FULL_TIME, 6, DROPOUT | OWN_TIMES, "reference=observed head_hidden=0"},
    {"full time, rnn3, dropout", FULL_TIME, 6, DROPOUT, "encoder=rnn3 decoder=rnn3 head_hidden=0"},
};

/* Seed 5: with some others the few hidden units of a layer are all below 0, and the layers under it learn nothing. */
TEST model(const model_case *m) {
    training t;
    ASSERTm("the case cannot be set up", start_training(&t, m, 5));
    ASSERT(m->records < MOST || mtan_shard_count(m->records) > 1);
    ASSERT(check_model(&t, m->name));
    ASSERT(end_training(&t));
    PASS();
}

/* Each tensor's gradient spoilt in turn: by sign, by a NaN, by a missing entry. The others still pass. */
TEST a_spoilt_tensor_of_a_model_is_rejected(void) {
    const model_case m = {"spoilt", FULL_RECORD, 6, 0, "enc_heads=2"};
    training t;
    ASSERT(start_training(&t, &m, 5));
    ASSERT(take_gradient(&t));
    for (int32_t i = 0; i < mtan_param_count(&t.config); i++) {
        mtan_param param;
        mtan_param_at(&t.config, i, &param);
        const size_t n = (size_t)param.rows * (size_t)param.cols;
        double *g = t.gradient + param.offset, *kept;
        int passed[3];
        probe p = probe_of(&t, m.name);
        if (is_key_bias(param.name)) continue;
        kept = malloc(n * sizeof *kept);
        memcpy(kept, g, n * sizeof *kept);
        ASSERT(check_direction(&p, param.name, param.offset, n));
        check_quiet = 1;
        for (size_t j = 0; j < n; j++) g[j] = -kept[j];
        passed[0] = check_direction(&p, param.name, param.offset, n);
        memcpy(g, kept, n * sizeof *kept);
        g[n / 2] = (double)NAN;
        passed[1] = check_direction(&p, param.name, param.offset, n);
        memset(g, 0, n * sizeof *g);
        passed[2] = check_direction(&p, param.name, param.offset, n);
        check_quiet = 0;
        memcpy(g, kept, n * sizeof *kept);
        free(kept);
        if (passed[0] || passed[1] || passed[2]) printf("%s: a spoilt gradient passed\n", param.name);
        ASSERT_FALSE(passed[0] || passed[1] || passed[2]);
    }
    ASSERT(end_training(&t));
    PASS();
}

/* ---- ops ----
 * A case builds one op on leaves in the parameter space, so that data and gradient of every input lie in two flat
 * arrays, as a model's do. Ops that work in place get a copy of their leaf. The objective is the output's product with
 * random cotangents; for the two ops that end a model it is `seed` times their loss. */

enum { LEAVES = 8, REALS = 512, B = 4, S = 2, D = 3, T = 8, P = 8, Q = 10, K = 3, C = 3, Z = 2, N = 3, E = 4 };

typedef struct op_run op_run;
typedef struct {
    const char *name;
    void (*build)(op_run *r);
    int32_t variant; /* means what the build function says */
} op_case;

struct op_run {
    const op_case *op;
    mtan_tape tape;
    mtan_batch batch;
    mtan_real x[REALS], g[REALS];
    size_t first[LEAVES + 1]; /* of each leaf in x and g */
    int leaves, counting;
    mtan_tensor out; /* may be a view */
    double seed;     /* 0: the output gets cotangents */
    double cotangents[REALS];
    void *memory;
    size_t capacity;
    mtan_mt19937 rng;
};

/* The next input: (rows, cols), uniform between low and high. */
static mtan_tensor leaf(op_run *r, int32_t rows, int32_t cols, double low, double high) {
    const size_t at = r->first[r->leaves], n = (size_t)rows * (size_t)cols;
    const mtan_tensor x = {(uint32_t)at, (uint32_t)at, rows, cols, cols, MTAN_SPACE_PARAM};
    if (at + n > REALS || r->leaves == LEAVES) abort();
    if (r->counting)
        for (size_t i = 0; i < n; i++) r->x[at + i] = uniform(&r->rng, low, high);
    r->first[++r->leaves] = at + n;
    return x;
}

/* Numbers that are no input. */
static mtan_tensor constant(op_run *r, int32_t rows, const mtan_real *from) {
    const mtan_tensor x = mtan_new_constant(&r->tape, rows, 1);
    if (!r->counting) memcpy(mtan_data(&r->tape, x), from, (size_t)rows * sizeof *from);
    return x;
}

static mtan_tensor random_constant(op_run *r, int32_t rows, int32_t cols) {
    const mtan_tensor x = mtan_new_constant(&r->tape, rows, cols);
    mtan_mt19937 rng;
    mtan_mt_seed(&rng, 21);
    for (int32_t i = 0; !r->counting && i < rows * cols; i++) mtan_data(&r->tape, x)[i] = uniform(&rng, -2, 2);
    return x;
}

/* An input in the workspace, for ops in place. */
static mtan_tensor copied(op_run *r, mtan_tensor x) {
    const mtan_tensor y = mtan_new(&r->tape, x.rows, x.cols);
    mtan_op_copy(&r->tape, y, x);
    return y;
}

static mtan_tensor output(op_run *r, int32_t rows, int32_t cols) {
    return r->out = mtan_new(&r->tape, rows, cols);
}

/* Four records: five times and an equal pair of observations; two times; one event; nothing. `ragged`: 4, 3, 1 and 0
 * points of the records' own; otherwise K points for all. Every record has queries. */
static void make_batch(op_run *r, int32_t ragged) {
    static int32_t order[] = {0, 1, 2, 3}, time0[] = {0, 5, 7, 8, 8}, point0[] = {0, 4, 7, 8, 8};
    static int32_t query0[] = {0, 3, 5, 8, 10}, row[] = {0, 1, 1, 4, 2, 3, 0, 0, 1, 0};
    static int32_t begin[] = {0, 4, 6, 6, 6, 7, 7, 9, 9, 9, 10, 10, 10, 10, 10, 10};
    static int32_t cell0[] = {0, 4, 6, 7, 8}, cell_row[] = {0, 1, 1, 2, 0, 1, 2, 1};
    static int32_t cell_channel[] = {2, 0, 0, 1, 1, 2, 0, 2};
    static int32_t first[2][5] = {{0, B, 2 * B, 3 * B}, {0, 3, 5, 7, 8}}, length[2][B] = {{K, K, K, K}, {4, 3, 1, 0}};
    static int32_t score0[2][5] = {{0, 15, 21, 24, 24}, {0, 20, 26, 27, 27}}; /* times x points of each record */
    static int32_t pair0[2][5] = {{0, 9, 15, 24, 30}, {0, 12, 18, 21, 21}};   /* queries x points */
    static mtan_real value[] = {0.3, -0.8, 1.1, 0.2, -0.4, 0.9, 0.6, -1.0, 0.5, 0.7};
    static mtan_real cell_value[] = {1, -1, 0.5, 0.2, 0.3, -0.7, 0.9, 0.1};
    static const mtan_real time[T] = {0.05, 0.2, 0.45, 0.7, 1, 0.3, 0.6, 0.5};
    static const mtan_real point[P] = {0, 0.15, 0.5, 0.95, 0.2, 0.35, 0.8, 0.4};
    static const mtan_real query[Q] = {0.1, 0.3, 0.9, 0.4, 0.7, 0, 0.6, 1, 0.2, 0.8};
    mtan_batch *b = &r->batch;
    memset(b, 0, sizeof *b);
    b->records = B, b->samples = S, b->channels = b->outputs = D, b->steps = ragged ? 4 : K;
    b->order = order, b->first = first[ragged], b->length = length[ragged];
    b->score0 = score0[ragged], b->pair0 = pair0[ragged], b->point0 = ragged ? point0 : NULL;
    b->time0 = time0, b->query0 = query0, b->begin = begin, b->row = row, b->value = value;
    b->cell0 = cell0, b->cell_row = cell_row, b->cell_channel = cell_channel, b->cell_value = cell_value;
    b->time = constant(r, T, time);
    b->point = constant(r, P, point);
    b->query = constant(r, Q, query);
    b->times = T, b->queries = Q, b->cells = cell0[B], b->events = 10;
    b->rows = b->first[b->steps], b->scores = b->score0[B], b->pairs = b->pair0[B];
    r->tape.batch = b;
}

/* Where the sequence stands: K points shared by all, or the records' own. */
static mtan_tensor points(op_run *r) {
    static const mtan_real shared[K] = {0, 0.5, 1};
    return r->batch.point0 ? r->batch.point : constant(r, K, shared);
}

static void build_embed(op_run *r) {
    mtan_tensor p[4];
    make_batch(r, 0);
    p[0] = leaf(r, 1, 1, -2, 2), p[1] = leaf(r, 1, 1, -2, 2), p[2] = leaf(r, E - 1, 1, -8, 8),
    p[3] = leaf(r, E - 1, 1, -2, 2);
    mtan_op_embed(&r->tape, output(r, T, E), r->batch.time, p);
}

static void build_linear(op_run *r) { /* variant: with a bias */
    const mtan_tensor x = leaf(r, 5, 4, -1, 1), w = leaf(r, 3, 4, -1, 1);
    const mtan_tensor b = r->op->variant ? leaf(r, 1, 3, -1, 1) : x;
    mtan_op_linear(&r->tape, output(r, 5, 3), x, w, r->op->variant ? &b : NULL);
}

static void build_linear_views(op_run *r) { /* columns of wider matrices, as heads are */
    const mtan_tensor x = leaf(r, 5, 7, -1, 1), w = leaf(r, 6, 4, -1, 1);
    mtan_tensor y = output(r, 5, 4);
    mtan_op_linear(&r->tape, mtan_columns(y, 0, 2), mtan_columns(x, 1, 4), mtan_rows(w, 0, 2), NULL);
    mtan_op_linear(&r->tape, mtan_columns(y, 2, 2), mtan_columns(x, 3, 4), mtan_rows(w, 4, 2), NULL);
    mtan_op_linear_add(&r->tape, mtan_columns(y, 1, 2), mtan_columns(x, 2, 4), mtan_rows(w, 2, 2));
}

static void build_linear_add(op_run *r) {
    const mtan_tensor start = leaf(r, 5, 3, -1, 1), x = leaf(r, 5, 4, -1, 1), w = leaf(r, 3, 4, -1, 1);
    r->out = copied(r, start);
    mtan_op_linear_add(&r->tape, r->out, x, w);
}

static void build_matmul(op_run *r) {
    const mtan_tensor a = leaf(r, 4, 5, -1, 1), b = leaf(r, 5, 3, -1, 1);
    mtan_op_matmul(&r->tape, output(r, 4, 3), a, b);
}

static void build_scale(op_run *r) { /* of a view: the columns beside it stay */
    r->out = copied(r, leaf(r, 4, 5, -1, 1));
    mtan_op_scale(&r->tape, mtan_columns(r->out, 1, 3), -2.5);
}

static void build_relu(op_run *r) {
    r->out = copied(r, leaf(r, 4, 5, -1, 1));
    mtan_op_relu(&r->tape, r->out);
}

static void build_tanh(op_run *r) {
    r->out = copied(r, leaf(r, 4, 5, -3, 3));
    mtan_op_tanh(&r->tape, r->out);
}

static void build_dropout(op_run *r) { /* variant: after a ReLU in the same place */
    static const mtan_real keep[20] = {1, 0, 1, 1, 0, 1, 1, 1, 0, 0, 1, 1, 0, 1, 1, 1, 0, 1, 0, 1};
    mtan_tensor mask = constant(r, 20, keep);
    mask.rows = 4, mask.cols = mask.stride = 5;
    r->out = copied(r, leaf(r, 4, 5, -1, 1));
    if (r->op->variant) mtan_op_relu(&r->tape, r->out);
    mtan_op_dropout(&r->tape, r->out, mask, 0.3);
}

static void build_softplus(op_run *r) {
    const mtan_tensor x = leaf(r, 4, 5, -6, 6);
    mtan_op_softplus(&r->tape, output(r, 4, 5), x);
}

static void build_copy(op_run *r) { /* a row for all rows beside a matrix */
    const mtan_tensor x = leaf(r, 4, 3, -1, 1), row = leaf(r, 1, 2, -1, 1);
    const mtan_tensor y = output(r, 4, 5);
    mtan_op_copy(&r->tape, mtan_columns(y, 0, 3), x);
    mtan_op_copy(&r->tape, mtan_columns(y, 3, 2), row);
}

static void build_spread(op_run *r) { /* variant: ragged */
    const mtan_tensor x = leaf(r, B, 3, -1, 1);
    make_batch(r, r->op->variant);
    mtan_op_spread(&r->tape, output(r, r->batch.rows, 3), x);
}

static void build_last(op_run *r) { /* variant: ragged */
    make_batch(r, r->op->variant);
    mtan_op_last(&r->tape, output(r, B * S, 3), leaf(r, r->batch.rows * S, 3, -1, 1));
}

static void build_softmax(op_run *r) {
    r->out = copied(r, leaf(r, 4, 5, -4, 4));
    mtan_op_softmax(&r->tape, r->out);
}

static void build_score(op_run *r) { /* variant: 1 ragged, 2 the decoder's */
    const int32_t ragged = r->op->variant & 1, decoder = r->op->variant >> 1;
    make_batch(r, ragged);
    const mtan_tensor row = leaf(r, decoder ? Q : T, E, -1, 1), point = leaf(r, ragged ? P : K, E, -1, 1);
    mtan_op_score(&r->tape, output(r, 1, decoder ? r->batch.pairs : r->batch.scores), row, point, decoder);
}

static void build_softmax_pairs(op_run *r) { /* variant: ragged */
    make_batch(r, r->op->variant);
    r->out = copied(r, leaf(r, 1, r->batch.pairs, -3, 3));
    mtan_op_softmax_pairs(&r->tape, r->out);
}

static void build_regroup(op_run *r) {
    make_batch(r, 1);
    const mtan_tensor x = leaf(r, r->batch.rows * S, C, -1, 1);
    mtan_op_regroup(&r->tape, output(r, x.rows, C), x);
}

/* variant 1: ragged. 2: ragged, and the events of a channel lie so far below the maximum of their query that the channel
 * needs a maximum of its own. */
static void build_attend(op_run *r) {
    make_batch(r, r->op->variant > 0);
    const mtan_tensor score = leaf(r, 1, r->batch.scores, -2, 2);
    if (r->counting && r->op->variant == 2)
        for (int i = 2 * 4; i < 4 * 4; i++) r->x[i] -= 1000; /* rows 2 and 3 of the first record, 4 queries each */
    mtan_op_attend(&r->tape, output(r, r->batch.rows, D), score);
}

/* variant: which statistics; with 8 more ragged, and with 16 more far, as above. Times and points matter here. */
static void build_moments(op_run *r) {
    const int32_t variant = r->op->variant, statistics = variant & 7;
    make_batch(r, variant > 7);
    const mtan_tensor score = leaf(r, 1, r->batch.scores, -2, 2);
    const int32_t columns = 1 + (statistics & 1) + (statistics >> 1 & 1) + (statistics & MTAN_SLOPE ? 3 : 0);
    if (r->counting && variant >= 16)
        for (int i = 2 * 4; i < 4 * 4; i++) r->x[i] -= 1000;
    mtan_op_moments(&r->tape, output(r, r->batch.rows, columns * D), score, points(r), 3, statistics);
}

static void build_attend_rbf(op_run *r) { /* variant: ragged */
    make_batch(r, r->op->variant);
    mtan_op_attend_rbf(&r->tape, output(r, r->batch.rows, D), points(r), leaf(r, 1, D, 0.5, 3));
}

static void build_attend_values(op_run *r) { /* two heads side by side; variant: ragged */
    make_batch(r, r->op->variant);
    const int32_t pairs = r->batch.pairs;
    const mtan_tensor a = leaf(r, 1, pairs, 0, 1), b = leaf(r, 1, pairs, 0, 1);
    const mtan_tensor value = leaf(r, r->batch.rows * S, C, -1, 1), y = output(r, Q * S, 2 * C);
    mtan_op_attend_values(&r->tape, mtan_columns(y, 0, C), a, value);
    mtan_op_attend_values(&r->tape, mtan_columns(y, C, C), b, value);
}

static void build_smooth(op_run *r) { /* variant: ragged */
    make_batch(r, r->op->variant);
    const mtan_tensor key = points(r), beta = leaf(r, 1, C, 0.5, 3), value = leaf(r, r->batch.rows * S, C, -1, 1);
    mtan_op_smooth(&r->tape, output(r, Q * S, C), key, beta, value);
}

static void build_gru(op_run *r) { /* variant: 1 ragged, 2 reverse, 4 two samples */
    const int32_t v = r->op->variant, samples = v & 4 ? S : 1;
    make_batch(r, v & 1);
    const mtan_tensor gx = copied(r, leaf(r, r->batch.rows * samples, 3 * N, -1, 1));
    const mtan_tensor w = leaf(r, 3 * N, N, -1, 1), b = leaf(r, 1, 3 * N, -1, 1);
    r->out = mtan_columns(output(r, gx.rows, N + 2), 1, N);
    mtan_op_gru(&r->tape, r->out, gx, w, b, NULL, samples, v >> 1 & 1);
}

/* variant of the next four: ragged */

static void build_sample(op_run *r) {
    make_batch(r, r->op->variant);
    const mtan_tensor posterior = leaf(r, r->batch.rows, 2 * Z, -1, 1);
    mtan_op_sample(&r->tape, output(r, r->batch.rows * S, Z), posterior, random_constant(r, r->batch.rows * S, Z));
}

static void build_kl(op_run *r) {
    make_batch(r, r->op->variant);
    mtan_op_kl(&r->tape, output(r, B, 1), leaf(r, r->batch.rows, 2 * Z, -1, 1));
}

/* z is an input beside the posterior here: the op counts the noise, not (z - mean) / std, as what it is given. */
static void build_ratio(op_run *r) {
    make_batch(r, r->op->variant);
    const mtan_tensor z = leaf(r, r->batch.rows * S, Z, -1, 1), posterior = leaf(r, r->batch.rows, 2 * Z, -1, 1);
    mtan_op_ratio(&r->tape, output(r, B * S, 1), z, posterior, random_constant(r, r->batch.rows * S, Z));
}

/* z made from the posterior, as models have it. */
static void build_sampled_ratio(op_run *r) {
    make_batch(r, r->op->variant);
    const mtan_tensor posterior = leaf(r, r->batch.rows, 2 * Z, -1, 1), z = mtan_new(&r->tape, r->batch.rows * S, Z);
    const mtan_tensor noise = random_constant(r, r->batch.rows * S, Z);
    mtan_op_sample(&r->tape, z, posterior, noise);
    mtan_op_ratio(&r->tape, output(r, B * S, 1), z, posterior, noise);
}

static void build_loglik(op_run *r) {
    make_batch(r, 0);
    mtan_op_loglik(&r->tape, output(r, B * S, 1), leaf(r, Q * S, D, -1, 1), 0.3);
}

static void build_loglik_sd(op_run *r) {
    make_batch(r, 0);
    const mtan_tensor prediction = leaf(r, Q * S, D, -1, 1), raw = leaf(r, Q * S, D, -2, 2);
    mtan_op_loglik_sd(&r->tape, output(r, B * S, 1), prediction, raw, 0.3);
}

static void build_bound(op_run *r) {                      /* variant: the bound */
    static const mtan_real shares[B] = {1, 0.25, 0, 0.5}; /* the third record is left out */
    const mtan_bound bound = (mtan_bound)r->op->variant;
    const mtan_tensor logp = leaf(r, B * S, 1, -2, 2), kl = leaf(r, bound == MTAN_BOUND_IWAE ? B * S : B, 1, -1, 2);
    r->seed = -0.4;
    r->out = mtan_new_constant(&r->tape, B, 1);
    mtan_op_bound(&r->tape, r->out, logp, kl, constant(r, B, shares), bound, 0.7, r->seed);
}

static void build_cross_entropy(op_run *r) { /* variant: rows to a label */
    static const int32_t labels[6] = {2, MTAN_UNLABELED, 0, 1, 1, MTAN_UNLABELED};
    const int32_t samples = r->op->variant, rows = 6 * samples;
    const mtan_tensor x = leaf(r, rows, C, -2, 2), p = mtan_new_constant(&r->tape, rows, C);
    r->batch.label = mtan_new_ints(&r->tape, 6);
    r->tape.batch = &r->batch;
    r->seed = 0.3;
    r->out = mtan_new_constant(&r->tape, rows, 1);
    if (r->batch.label) memcpy(r->batch.label, labels, sizeof labels);
    mtan_op_cross_entropy(&r->tape, r->out, p, x, NULL, samples, r->seed);
}

static void build_cross_entropy_queries(op_run *r) { /* rows of several samples as the decoder has them */
    static const int32_t labels[Q] = {2, MTAN_UNLABELED, 0, 1, 1, MTAN_UNLABELED, 2, 0, 1, 2};
    mtan_tensor x, p;
    make_batch(r, 0);
    x = leaf(r, Q * S, C, -2, 2), p = mtan_new_constant(&r->tape, Q * S, C);
    r->batch.label = mtan_new_ints(&r->tape, Q);
    r->seed = 0.3;
    r->out = mtan_new_constant(&r->tape, Q * S, 1);
    if (r->batch.label) memcpy(r->batch.label, labels, sizeof labels);
    mtan_op_cross_entropy(&r->tape, r->out, p, x, NULL, 0, r->seed);
}

/* Numbers and labels, of which some are missing. No output is near a number, where the pinball loss has a corner. */
static void fill_numbers(op_run *r, int32_t rows) {
    r->batch.number = mtan_data(&r->tape, mtan_new_constant(&r->tape, rows, 2));
    for (int32_t i = 0; r->batch.number && i < 2 * rows; i++)
        r->batch.number[i] = i % 5 == 3 ? (mtan_real)NAN : (mtan_real)(i % 2);
}

static const mtan_targets number_targets[] = {
    {MTAN_TASK_NUMBER, 2, 0}, {MTAN_TASK_NUMBER, 2, (mtan_real)0.9}, {MTAN_TASK_LABELS, 2, 0}};

static void build_numbers(op_run *r) { /* variant: which targets */
    const mtan_targets *targets = &number_targets[r->op->variant];
    const int32_t rows = 6 * S, outputs = targets->interval > 0 ? 6 : 2;
    const mtan_tensor x = leaf(r, rows, outputs, 0.1, 0.9);
    const mtan_tensor p = mtan_new_constant(&r->tape, rows, outputs);
    fill_numbers(r, 6);
    r->tape.batch = &r->batch;
    r->seed = 0.3;
    r->out = mtan_new_constant(&r->tape, rows, 1);
    mtan_op_numbers(&r->tape, r->out, p, x, targets, S, r->seed);
}

static void build_numbers_queries(op_run *r) { /* rows of several samples as the decoder has them */
    mtan_tensor x, p;
    make_batch(r, 0);
    x = leaf(r, Q * S, 2, -2, 2), p = mtan_new_constant(&r->tape, Q * S, 2);
    fill_numbers(r, Q);
    r->seed = 0.3;
    r->out = mtan_new_constant(&r->tape, Q * S, 1);
    mtan_op_numbers(&r->tape, r->out, p, x, &number_targets[0], 0, r->seed);
}

/* An op of the caller's own: y = x^2. */
static void square_back(mtan_tape *tape, const mtan_node *node) {
    mtan_real *dx = mtan_grad(tape, node->t[1]);
    const mtan_real *dy = mtan_grad(tape, node->t[0]), *x = mtan_data(tape, node->t[1]);
    for (int32_t i = 0; i < node->n[0]; i++) dx[i] += 2 * x[i] * dy[i];
}

static void build_user(op_run *r) {
    static const mtan_backward user[2] = {NULL, square_back};
    const mtan_tensor x = leaf(r, 4, 3, -1, 1), y = output(r, 4, 3);
    mtan_node *node = mtan_record_op(&r->tape, MTAN_OP_USER + 1);
    r->tape.user = user;
    if (node) node->n[0] = 12, node->t[0] = y, node->t[1] = x;
    for (int i = 0; !r->counting && i < 12; i++)
        mtan_data(&r->tape, y)[i] = mtan_data(&r->tape, x)[i] * mtan_data(&r->tape, x)[i];
}

static const op_case op_cases[] = {
    {"embed", build_embed, 0},
    {"linear", build_linear, 0},
    {"linear, bias", build_linear, 1},
    {"linear, views", build_linear_views, 0},
    {"linear_add", build_linear_add, 0},
    {"matmul", build_matmul, 0},
    {"scale", build_scale, 0},
    {"relu", build_relu, 0},
    {"tanh", build_tanh, 0},
    {"dropout", build_dropout, 0},
    {"dropout, relu", build_dropout, 1},
    {"softplus", build_softplus, 0},
    {"copy", build_copy, 0},
    {"spread", build_spread, 0},
    {"spread, ragged", build_spread, 1},
    {"last", build_last, 0},
    {"last, ragged", build_last, 1},
    {"softmax", build_softmax, 0},
    {"softmax_pairs", build_softmax_pairs, 0},
    {"softmax_pairs, ragged", build_softmax_pairs, 1},
    {"regroup", build_regroup, 0},
    {"score", build_score, 0},
    {"score, ragged", build_score, 1},
    {"score, decoder", build_score, 2},
    {"score, decoder, ragged", build_score, 3},
    {"attend", build_attend, 0},
    {"attend, ragged", build_attend, 1},
    {"attend, far", build_attend, 2},
    {"moments, mean", build_moments, 0},
    {"moments, spread", build_moments, MTAN_SPREAD},
    {"moments, intensity", build_moments, MTAN_INTENSITY},
    {"moments, slope", build_moments, MTAN_SLOPE},
    {"moments, all", build_moments, 7},
    {"moments, all, ragged", build_moments, 7 + 8},
    {"moments, all, far", build_moments, 7 + 16},
    {"attend_rbf", build_attend_rbf, 0},
    {"attend_rbf, ragged", build_attend_rbf, 1},
    {"attend_values", build_attend_values, 0},
    {"attend_values, ragged", build_attend_values, 1},
    {"smooth", build_smooth, 0},
    {"smooth, ragged", build_smooth, 1},
    {"gru", build_gru, 0},
    {"gru, ragged", build_gru, 1},
    {"gru, reverse", build_gru, 2},
    {"gru, ragged, reverse", build_gru, 3},
    {"gru, samples", build_gru, 4},
    {"gru, ragged, samples", build_gru, 5},
    {"gru, reverse, samples", build_gru, 6},
    {"gru, ragged, reverse, samples", build_gru, 7},
    {"sample", build_sample, 0},
    {"sample, ragged", build_sample, 1},
    {"kl", build_kl, 0},
    {"kl, ragged", build_kl, 1},
    {"ratio", build_ratio, 0},
    {"ratio, ragged", build_ratio, 1},
    {"ratio of samples", build_sampled_ratio, 0},
    {"ratio of samples, ragged", build_sampled_ratio, 1},
    {"loglik", build_loglik, 0},
    {"loglik_sd", build_loglik_sd, 0},
    {"bound, faithful", build_bound, MTAN_BOUND_FAITHFUL},
    {"bound, elbo", build_bound, MTAN_BOUND_ELBO},
    {"bound, iwae", build_bound, MTAN_BOUND_IWAE},
    {"cross_entropy", build_cross_entropy, 1},
    {"cross_entropy, samples", build_cross_entropy, S},
    {"cross_entropy, queries", build_cross_entropy_queries, 0},
    {"numbers, squared error", build_numbers, 0},
    {"numbers, pinball", build_numbers, 1},
    {"numbers, labels", build_numbers, 2},
    {"numbers, queries", build_numbers_queries, 0},
    {"an op of the caller's", build_user, 0},
};

/* Records the case on a fresh tape; the first time without memory, to count it and to draw the inputs. */
static void run_op(op_run *r) {
    memset(&r->tape, 0, sizeof r->tape);
    r->tape.backend = &mtan_backend_scalar;
    r->tape.work = r->counting ? NULL : r->memory;
    r->tape.capacity = r->capacity;
    r->tape.params = r->x;
    r->tape.grads = r->g;
    r->tape.recording = 1;
    r->leaves = 0;
    r->op->build(r);
}

/* What entry i of the output, a view perhaps, is multiplied by. */
static double cotangent(const op_run *r, int32_t i) {
    mtan_mt19937 rng;
    if (r->seed != 0) return r->seed;
    mtan_mt_seed(&rng, 100 + (uint32_t)i);
    return uniform(&rng, -1, 1);
}

static int32_t out_at(const op_run *r, int32_t i) {
    return i / r->out.cols * r->out.stride + i % r->out.cols;
}

static double op_objective(void *context) {
    op_run *r = context;
    double sum = 0;
    run_op(r);
    for (int32_t i = 0; i < r->out.rows * r->out.cols; i++)
        sum += r->cotangents[i] * mtan_data(&r->tape, r->out)[out_at(r, i)];
    return r->tape.status == MTAN_OK ? sum : (double)NAN;
}

static void op_gradient(op_run *r) {
    run_op(r);
    for (int32_t i = 0; i < r->out.rows * r->out.cols; i++) {
        r->cotangents[i] = cotangent(r, i);
        if (r->seed == 0) mtan_grad(&r->tape, r->out)[out_at(r, i)] = r->cotangents[i];
    }
    mtan_backpropagate(&r->tape);
}

static void start_op(op_run *r, const op_case *op) {
    memset(r, 0, sizeof *r);
    r->op = op;
    mtan_mt_seed(&r->rng, 9);
    r->counting = 1;
    run_op(r);
    r->counting = 0;
    r->capacity = r->tape.peak;
    r->memory = guard_alloc(r->capacity * sizeof(mtan_real));
}

/* Every input by itself, in two directions. Gradients are added to: what was there before, 0.5, comes back off. */
TEST op(const op_case *o) {
    op_run r;
    double g[REALS];
    start_op(&r, o);
    for (int i = 0; i < REALS; i++) r.g[i] = 0.5;
    op_gradient(&r);
    ASSERT_EQ(MTAN_OK, r.tape.status);
    for (int i = 0; i < REALS; i++) g[i] = r.g[i] - 0.5;
    probe p = {o->name, r.x, g, op_objective, &r, {{0}, 0}};
    mtan_mt_seed(&p.rng, 31);
    const int leaves = r.leaves;
    ASSERT(leaves > 0);
    for (int i = 0; i < leaves; i++) {
        char part[32];
        snprintf(part, sizeof part, "input %d", i);
        for (int k = 0; k < 2; k++) ASSERT(check_direction(&p, part, r.first[i], r.first[i + 1] - r.first[i]));
    }
    ASSERT(guard_free(r.memory));
    PASS();
}

/* Nothing is learned in it, so nothing is recorded. */
TEST the_fixed_embedding_has_no_gradient(void) {
    static const mtan_real times[3] = {0, 0.4, 1};
    union {
        mtan_real reals[256];
        mtan_node node;
    } memory;
    mtan_tape tape;
    mtan_tensor time, y;
    memset(&tape, 0, sizeof tape);
    tape.backend = &mtan_backend_scalar;
    tape.work = memory.reals, tape.capacity = COUNT(memory.reals);
    tape.recording = 1;
    time = mtan_new_constant(&tape, 3, 1);
    y = mtan_new_constant(&tape, 3, E);
    memcpy(mtan_data(&tape, time), times, sizeof times);
    mtan_op_embed_fixed(&tape, y, time, 10, 48);
    ASSERT_EQ(MTAN_OK, tape.status);
    ASSERT_EQ_FMT(0u, tape.nodes, "%u");
    ASSERT_EQ(NULL, mtan_grad(&tape, y));
    PASS();
}

SUITE(gradient_suite) {
    RUN_TEST(a_wrong_gradient_is_rejected);
    RUN_TEST(a_kink_beside_the_point_is_no_error);
    RUN_TEST(a_gradient_of_zero_proves_nothing);
    for (size_t i = 0; i < COUNT(op_cases); i++) {
        greatest_set_test_suffix(op_cases[i].name);
        RUN_TESTp(op, &op_cases[i]);
    }
    RUN_TEST(the_fixed_embedding_has_no_gradient);
    for (size_t i = 0; i < COUNT(model_cases); i++) {
        greatest_set_test_suffix(model_cases[i].name);
        RUN_TESTp(model, &model_cases[i]);
    }
    RUN_TEST(a_spoilt_tensor_of_a_model_is_rejected);
}

#endif
