/* Prints a hash of all that the library computes: every kernel of the scalar table on awkward shapes, every kind of
 * model (in batches, as streams, in small memory), and how far the small golden cases are from the reference. Two
 * builds of mtan.c of one class (fused or unfused) must print the same lines; `make bits` compares them. This program
 * itself is compiled once.
 *
 *     name-of-what-was-computed hash
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_cases.h"
#include "tiny_model.h"

/* n numbers of `size` bytes each, taken from the least significant byte whatever this machine's order. */
static uint64_t fnv1a(uint64_t h, const void *numbers, size_t n, size_t size) {
    const size_t turn = host_is_little() ? 0 : size - 1;
    for (const uint8_t *p = numbers; n > 0; n--, p += size)
        for (size_t i = 0; i < size; i++) h = (h ^ p[i ^ turn]) * 0x100000001b3u;
    return h;
}
#define FNV_START 0xcbf29ce484222325u

static void must(int ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "mtan: bits_dump: %s failed\n", what);
    exit(2);
}

static void print_hash(const char *what, int size, uint64_t h) {
    printf("%s-%d %016llx\n", what, size, (unsigned long long)h);
}

static void hash_reals(const char *what, int size, const mtan_real *x, int n) {
    print_hash(what, size, fnv1a(FNV_START, x, (size_t)n, sizeof *x));
}

/* ---- kernels ---- */

/* All that a case leaves behind. Which NaN it is, is not promised. */
static uint64_t hash_case(const kernel_case *c, const kernel_shape *s, const mtan_backend *k) {
    uint64_t h = FNV_START;
    kernel_work w;
    memset(&w, 0, sizeof w);
    w.backend = k;
    w.random = (uint64_t)s->n;
    c->run(&w, s);
    must(kernel_collect(&w), c->name);
    for (int i = 0; i < w.n; i++) {
        for (size_t j = 0; j < w.block[i].count; j++)
            if (w.block[i].reals[j] != w.block[i].reals[j]) w.block[i].reals[j] = -12345;
        h = fnv1a(h, w.block[i].reals, w.block[i].count, sizeof(mtan_real));
    }
    kernel_free(&w);
    return h;
}

static void dump_kernels(const mtan_backend *k) {
    static const int sizes[] = {1, 7, 8, 9, 15, 16, 17, 67}, heights[] = {1, 5, 16};
    for (const kernel_case *c = kernel_cases; c->name; c++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (int add = 0; add < 2; add++) {
                const kernel_shape s = {heights[(i + (size_t)add) % 3], sizes[i], 17 - sizes[i] % 3 * 8, (int)i % 4,
                                        add};
                print_hash(c->name, sizes[i], hash_case(c, &s, k));
            }
}

/* ---- models ---- */

enum { BATCH = 16, SAMPLES = 3 };

static uint64_t predictions(tiny_model *t) {
    enum { MOST = BATCH * SAMPLES * TINY_TIMES * TINY_TIMES * TINY_CHANNELS };
    static mtan_real out[MOST];
    uint64_t h = FNV_START;
    memset(out, 0, sizeof out); /* what a call does not fill stays 0 */
    t->model.config.predict_samples = SAMPLES;
    tiny_predict(t, 5);
    if (t->config.classify != MTAN_CLASSIFY_NONE) {
        must(mtan_predictor_logits(&t->predictor, t->records, BATCH, out) == MTAN_OK, "logits");
        h = fnv1a(h, out, MOST, sizeof out[0]);
        must(mtan_predictor_classify(&t->predictor, t->records, BATCH, out) == MTAN_OK, "classify");
        h = fnv1a(h, out, MOST, sizeof out[0]);
    }
    for (int head = 0; head < t->config.enc_heads; head++) {
        must(mtan_predictor_attention(&t->predictor, t->records, head, 0, out) == MTAN_OK, "attention");
        h = fnv1a(h, out, MOST, sizeof out[0]);
    }
    if (t->config.kind == MTAN_FULL && t->config.classify != MTAN_CLASSIFY_TIME) {
        must(mtan_predictor_interpolate(&t->predictor, t->records, out, out + TINY_TIMES * TINY_CHANNELS) == MTAN_OK,
             "interpolate");
        h = fnv1a(h, out, MOST, sizeof out[0]);
    }
    return h;
}

/* Every record pushed as it stands, in no order of time, with an answer after each observation. 0 where there is none. */
static uint64_t streamed(tiny_model *t) {
    enum { TIMES = 3, MOST = SAMPLES * TIMES * TINY_CHANNELS };
    static const mtan_real times[TIMES] = {0, (mtan_real)0.5, 1};
    mtan_real out[2 * MOST] = {0};
    uint64_t h = FNV_START;
    size_t bytes = 0;
    mtan_stream stream;
    void *memory;
    if (mtan_stream_size(&t->model, 0, &bytes) != MTAN_OK) return 0;
    t->model.config.predict_samples = SAMPLES;
    tiny_predict(t, 1);
    memory = guard_alloc(bytes);
    must(mtan_stream_init(&stream, &t->predictor, 0, memory, bytes) == MTAN_OK, "stream");
    for (int b = 0; b < BATCH; b++) {
        mtan_record ask = t->records[b];
        ask.times = times, ask.n_times = TIMES;
        must(mtan_stream_reset(&stream) == MTAN_OK, "reset");
        for (int i = 0; i < ask.n_events; i++) {
            const mtan_event *e = &ask.events[i];
            must(mtan_stream_push(&stream, e->time, e->channel, e->value) == MTAN_OK, "push");
            if (t->config.classify != MTAN_CLASSIFY_NONE)
                must(mtan_stream_logits(&stream, &ask, out) == MTAN_OK, "stream logits");
            if (t->config.kind == MTAN_FULL && t->config.classify != MTAN_CLASSIFY_TIME)
                must(mtan_stream_interpolate(&stream, &ask, out + MOST, NULL) == MTAN_OK, "stream interpolate");
            h = fnv1a(h, out, 2 * MOST, sizeof out[0]);
        }
    }
    must(guard_free(memory), "guard");
    return h;
}

/* Every record in small memory; 0 where the model is of another kind. */
static uint64_t in_small_memory(tiny_model *t) {
    mtan_real out[2];
    uint64_t h = FNV_START;
    size_t bytes = 0;
    void *memory;
    if (mtan_small_size(&t->model, 2, &bytes) != MTAN_OK) return 0;
    memory = guard_alloc(bytes);
    for (int b = 0; b < BATCH; b++) {
        must(mtan_small_logits(&t->model, &t->records[b], 2, memory, bytes, out) == MTAN_OK, "small logits");
        h = fnv1a(h, out, 2, sizeof out[0]);
    }
    must(guard_free(memory), "guard");
    return h;
}

/* The same on a model of whole numbers that are used in place. */
static uint64_t in_place(tiny_model *t) {
    const mtan_model model = t->model;
    mtan_real *weights, *next;
    int8_t *rows, *row;
    size_t count = 0, bytes = 0;
    uint64_t h;
    must(mtan_model_int8_counts(&t->config, &count, &bytes) == MTAN_OK, "int8 counts");
    next = weights = guard_alloc(count * sizeof *weights), row = rows = guard_alloc(bytes);
    for (int32_t i = 0; i < mtan_param_count(&t->config); i++) {
        mtan_param p;
        must(mtan_param_at(&t->config, i, &p) == MTAN_OK, "parameter");
        for (int32_t r = 0; r < p.rows; r++) {
            const mtan_real *x = t->weights + p.offset + (size_t)r * (size_t)p.cols;
            if (p.cols > 1) *next++ = mtan_row_quantize(row, x, (size_t)p.cols), row += p.cols;
            else *next++ = *x;
        }
    }
    must(mtan_model_init_int8(&t->model, &t->config, weights, count, rows, bytes) == MTAN_OK, "int8 model");
    h = in_small_memory(t);
    t->model = model;
    must(guard_free(weights) && guard_free(rows), "guard");
    return h;
}

/* Whatever predicts, in the precision of the model. */
static void dump_predictions(tiny_model *t, const char *kind, const char *precision) {
    printf("%s-%s", kind, precision), print_hash("prediction", BATCH, predictions(t));
    printf("%s-%s", kind, precision), print_hash("stream", BATCH, streamed(t));
    printf("%s-%s", kind, precision), print_hash("small", BATCH, in_small_memory(t));
}

static void dump_model(tiny_kind kind) {
    tiny_model t;
    mtan_train_config config;
    mtan_report report;
    tiny_open(&t, kind, BATCH);
    mtan_train_config_init(&config);
    config.clip = 1;
    tiny_train(&t, &config);
    dump_predictions(&t, tiny_names[kind], "");
    t.model.precision = MTAN_INT8;
    dump_predictions(&t, tiny_names[kind], "int8-");
    printf("%s-", tiny_names[kind]), print_hash("int8-in-place", BATCH, in_place(&t));
    t.model.precision = MTAN_REAL;
    must(mtan_trainer_gradient(&t.trainer, t.records, BATCH, 1, &report) == MTAN_OK, "gradient");
    printf("%s-", tiny_names[kind]), hash_reals("gradient", BATCH, t.trainer.gradient, (int)t.count);
    for (int i = 0; i < 3; i++) must(mtan_trainer_step(&t.trainer, t.records, BATCH, 12, &report) == MTAN_OK, "step");
    printf("%s-", tiny_names[kind]), hash_reals("weights", BATCH, t.weights, (int)t.count);
    printf("%s-", tiny_names[kind]), print_hash("loss", BATCH, fnv1a(FNV_START, &report.loss, 1, sizeof report.loss));
    must(tiny_close(&t), "guard");
}

/* The distance of an output or gradient from the reference changes with any bit of it, for all that matters. */
static void hash_distance(void *context, const char *tensor, double difference, double limit, double share) {
    uint64_t *h = context;
    (void)limit, (void)share;
    *h = fnv1a(fnv1a(*h, tensor, strlen(tensor), 1), &difference, 1, sizeof difference);
}

static int is_small(const char *name) {
    return strncmp(name, "physionet", 9) != 0 && strncmp(name, "mimic3", 6) != 0 && strncmp(name, "activity", 8) != 0;
}

int main(void) {
    dump_kernels(&mtan_backend_scalar);
    for (int kind = 0; kind < TINY_KINDS; kind++) dump_model((tiny_kind)kind);
    for (int i = 0; ladder_case(i); i++) {
        uint64_t h = FNV_START;
        if (!is_small(ladder_case(i))) continue;
        const int compared = ladder_model(ladder_case(i), &mtan_backend_scalar, hash_distance, &h);
        must(compared > 0, ladder_case(i));
        print_hash(ladder_case(i), compared, h);
    }
    return 0;
}
