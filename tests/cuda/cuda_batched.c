/* Whole-batch kernels against the library's ops with scalar kernels: cuda_batches_agree of cuda_compare.h.
 *
 * A mirror is a tape's workspace on the host and a block of the device's memory with the same content at the same offsets.
 * An op runs on the one and a whole-batch kernel on the other; then the two are compared. Before the backward pass the
 * host's content goes over once more, so that each pass is tested for itself. */
#ifdef MTAN_WITH_CUDA_SHIM

#include "cuda_compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REALS = 1 << 18, RECORDS = 5, CHANNELS = 3, SAMPLES = 2, STEPS = 9, QUERIES = 16, EVENTS = 64 };

typedef struct {
    const char *name;
    mtan_cuda *device;
    mtan_tape tape, there; /* the same but for the address of the workspace */
    mtan_batch batch;
    mtan_batch on_device; /* its arrays at the device's addresses */
    mtan_real *memory, *back;
    uint64_t random;
    int ok;
} mirror;

static const mtan_device *kernels;

/* ---- a batch: five records, one of them without steps or events, one without queries ---- */

static int32_t *ints(mirror *m, const int32_t *x, size_t n) {
    int32_t *out = mtan_new_ints(&m->tape, n);
    memcpy(out, x, n * sizeof *out);
    return out;
}

/* Where things start, from how many there are. */
static int32_t *starts(mirror *m, const int32_t *count) {
    int32_t from[RECORDS + 1] = {0};
    for (int b = 0; b < RECORDS; b++) from[b + 1] = from[b] + count[b];
    return ints(m, from, RECORDS + 1);
}

static void random_reals(mirror *m, mtan_real *x, size_t n, double scale) {
    for (size_t i = 0; i < n; i++) x[i] = (mtan_real)scale * small_real(&m->random);
}

static mtan_real *reals(mirror *m, int32_t n) {
    mtan_real *x = mtan_data(&m->tape, mtan_new_constant(&m->tape, n, 1));
    random_reals(m, x, (size_t)n, 1);
    return x;
}

/* Events of a channel ascending in time, some of them twice at one time. */
static void add_events(mirror *m, const int32_t *keys) {
    int32_t begin[RECORDS * (CHANNELS + 1)], row[EVENTS], n = 0;
    for (int b = 0; b < RECORDS; b++)
        for (int d = 0; d <= CHANNELS; d++) {
            begin[b * (CHANNELS + 1) + d] = n;
            for (int32_t i = 0; d < CHANNELS && i < keys[b]; i++)
                for (int32_t times = small_whole(&m->random, 0, d == 1 ? 1 : 2); times > 0 && n < EVENTS; times--)
                    row[n++] = i;
        }
    m->batch.begin = ints(m, begin, RECORDS * (CHANNELS + 1));
    m->batch.row = ints(m, row, (size_t)n);
    m->batch.value = reals(m, n);
    m->batch.events = n;
}

/* Cells in the order of time, some of them the same one. */
static void add_cells(mirror *m, const int32_t *queries) {
    int32_t count[RECORDS] = {0}, row[EVENTS], channel[EVENTS], label[EVENTS], n = 0, total = 0;
    for (int b = 0; b < RECORDS; b++)
        for (int32_t q = 0; q < queries[b]; q++) {
            label[total++] = small_whole(&m->random, -1, 2);
            for (int32_t i = small_whole(&m->random, 0, 3); i > 0; i--) {
                row[n] = q;
                channel[n++] = small_whole(&m->random, 0, CHANNELS - 1);
                count[b]++;
            }
        }
    m->batch.cell0 = starts(m, count);
    m->batch.cell_row = ints(m, row, (size_t)n);
    m->batch.cell_channel = ints(m, channel, (size_t)n);
    m->batch.cell_value = reals(m, n);
    m->batch.label = ints(m, label, (size_t)total);
    m->batch.cells = n;
}

static void add_blocks(mirror *m, const int32_t *keys, const int32_t *queries, const int32_t *length) {
    int32_t scores[RECORDS], pairs[RECORDS];
    for (int b = 0; b < RECORDS; b++) scores[b] = keys[b] * length[b], pairs[b] = queries[b] * length[b];
    m->batch.time0 = starts(m, keys), m->batch.query0 = starts(m, queries);
    m->batch.score0 = starts(m, scores), m->batch.pair0 = starts(m, pairs);
    m->batch.times = m->batch.time0[RECORDS], m->batch.queries = m->batch.query0[RECORDS];
    m->batch.scores = m->batch.score0[RECORDS], m->batch.pairs = m->batch.pair0[RECORDS];
    m->batch.most_times = STEPS, m->batch.most_queries = 7;
}

static void add_steps(mirror *m, const int32_t *length) {
    int32_t first[STEPS + 1] = {0};
    m->batch.steps = length[0];
    for (int32_t k = 0; k < length[0]; k++) {
        first[k + 1] = first[k];
        for (int b = 0; b < RECORDS; b++) first[k + 1] += length[b] > k;
    }
    m->batch.first = ints(m, first, STEPS + 1);
    m->batch.length = ints(m, length, RECORDS);
    m->batch.rows = first[length[0]];
}

/* own: sequences of different lengths, at points of the records' own; else all alike, at shared points. */
static void mirror_start(mirror *m, const char *name, mtan_cuda *device, uint64_t seed, int own) {
    static const int32_t ragged[RECORDS] = {STEPS, 6, 6, 1, 0}, even[RECORDS] = {6, 6, 6, 6, 6};
    static const int32_t keys[RECORDS] = {STEPS, 4, 6, 1, 0}, queries[RECORDS] = {3, 0, 7, 2, 4};
    const int32_t *length = own ? ragged : even;
    memset(m, 0, sizeof *m);
    m->name = name, m->device = device, m->random = seed + 1, m->ok = 1;
    m->memory = guard_alloc(REALS * sizeof *m->memory);
    m->back = malloc(REALS * sizeof *m->back);
    memset(m->memory, 0, REALS * sizeof *m->memory);
    m->tape.backend = cuda_expected();
    m->tape.batch = &m->batch;
    m->tape.work = m->memory;
    m->tape.capacity = REALS;
    m->tape.recording = 1;
    m->there = m->tape;
    m->there.work = mtan_cuda_alloc(device, REALS * sizeof *m->memory);
    m->batch.records = RECORDS, m->batch.samples = SAMPLES, m->batch.channels = CHANNELS;
    add_steps(m, length);
    add_blocks(m, keys, queries, length);
    add_events(m, keys);
    add_cells(m, queries);
    if (own) m->batch.point0 = starts(m, length);
    m->batch.query = mtan_new_constant(&m->tape, m->batch.queries, 1);
    m->batch.time = mtan_new_constant(&m->tape, m->batch.times, 1);
    random_reals(m, mtan_data(&m->tape, m->batch.query), (size_t)m->batch.queries, 1);
    random_reals(m, mtan_data(&m->tape, m->batch.time), (size_t)m->batch.times, 1);
}

static int mirror_end(mirror *m) {
    int ok = m->ok;
    if (m->tape.status != MTAN_OK || m->device->status)
        printf("  BAD %s: %s\n", m->name, m->device->status ? m->device->message : "the tape is full"), ok = 0;
    mtan_cuda_free(m->device, m->there.work);
    free(m->back);
    ok = guard_free(m->memory) && ok;
    return cuda_no_faults(m->name) && ok;
}

/* ---- tensors ---- */

static void *there(const mirror *m, const void *here) {
    return here ? (char *)m->there.work + ((const char *)here - (const char *)m->memory) : NULL;
}

/* A new tensor, its values random. */
static mtan_tensor input(mirror *m, int32_t rows, int32_t cols, double scale) {
    const mtan_tensor x = mtan_new(&m->tape, rows, cols);
    random_reals(m, mtan_data(&m->tape, x), (size_t)rows * (size_t)cols, scale);
    return x;
}

/* A view of some columns of a wider one, as the models use them. */
static mtan_tensor wide(mirror *m, int32_t rows, int32_t cols, double scale) {
    return mtan_columns(input(m, rows, cols + 3, scale), 1, cols);
}

static mtan_real *data(const mirror *m, mtan_tensor x) {
    return mtan_data(&m->there, x);
}

static mtan_real *gradient(const mirror *m, mtan_tensor x) {
    return mtan_grad(&m->there, x);
}

/* The host's memory, with the batch's arrays, to the device. */
static void send(mirror *m) {
    mtan_batch *b = &m->on_device;
    mtan_cuda_upload(m->device, m->there.work, m->memory, REALS * sizeof *m->memory);
    *b = m->batch;
    b->first = there(m, b->first), b->length = there(m, b->length), b->begin = there(m, b->begin);
    b->time0 = there(m, b->time0), b->score0 = there(m, b->score0), b->query0 = there(m, b->query0);
    b->pair0 = there(m, b->pair0), b->point0 = there(m, b->point0), b->cell0 = there(m, b->cell0);
    b->row = there(m, b->row), b->value = there(m, b->value);
    b->cell_row = there(m, b->cell_row), b->cell_channel = there(m, b->cell_channel);
    b->cell_value = there(m, b->cell_value), b->label = there(m, b->label);
}

/* Random gradients everywhere, as after other ops, and all of it to the device. */
static void send_gradients(mirror *m, const mtan_tensor *x, int n) {
    for (int i = 0; i < n; i++)
        for (int32_t r = 0; r < x[i].rows; r++)
            random_reals(m, mtan_grad(&m->tape, mtan_rows(x[i], r, 1)), (size_t)x[i].cols, 1);
    send(m);
}

/* Host and device at n reals from an address of the host's. */
static void compare(mirror *m, const char *what, const mtan_real *here, size_t n, cuda_nearness nearness) {
    char name[96];
    snprintf(name, sizeof name, "%s, %s", m->name, what);
    mtan_cuda_download(m->device, m->back, there(m, here), n * sizeof *m->back);
    mtan_cuda_sync(m->device);
    m->ok = m->ok && cuda_compare(name, m->back, here, n, nearness);
}

/* The whole span of a tensor: what lies between its columns must not have changed either. */
static void compare_data(mirror *m, const char *what, mtan_tensor x, cuda_nearness nearness) {
    if (x.rows > 0)
        compare(m, what, mtan_data(&m->tape, x), (size_t)(x.rows - 1) * (size_t)x.stride + (size_t)x.cols, nearness);
}

static void compare_gradient(mirror *m, const char *what, mtan_tensor x, cuda_nearness nearness) {
    if (x.rows > 0)
        compare(m, what, mtan_grad(&m->tape, x), (size_t)(x.rows - 1) * (size_t)x.stride + (size_t)x.cols, nearness);
}

/* ---- attention ---- */

static int scores(mtan_cuda *device, uint64_t seed, int own, int decoder) {
    mirror m;
    mtan_tensor t[3];
    const int32_t E = 5;
    mirror_start(&m, own ? "scores" : "scores, shared points", device, seed, own);
    t[0] = input(&m, 1, decoder ? m.batch.pairs : m.batch.scores, 1);
    t[1] = wide(&m, decoder ? m.batch.queries : m.batch.times, E, 1);
    t[2] = wide(&m, own ? m.batch.point0[RECORDS] : m.batch.steps, E, 1);
    if (!own) t[2].grad = MTAN_NO_GRAD;
    send(&m);
    mtan_op_score(&m.tape, t[0], t[1], t[2], decoder);
    kernels->score_forward(&m.on_device, data(&m, t[0]), data(&m, t[1]), (size_t)t[1].stride, data(&m, t[2]),
                           (size_t)t[2].stride, E, decoder);
    compare_data(&m, "scores", t[0], CUDA_SAME);
    send_gradients(&m, t, own ? 3 : 2);
    mtan_backpropagate(&m.tape);
    kernels->score_backward(&m.on_device, gradient(&m, t[1]), (size_t)t[1].stride, gradient(&m, t[2]),
                            (size_t)t[2].stride, gradient(&m, t[0]), data(&m, t[1]), data(&m, t[2]), E, decoder);
    compare_gradient(&m, "rows' gradient", t[1], CUDA_SAME);
    if (own) compare_gradient(&m, "points' gradient", t[2], CUDA_SAME);
    return mirror_end(&m);
}

static int attention(mtan_cuda *device, uint64_t seed, int own) {
    mirror m;
    mtan_tape probe;
    mtan_tensor t[2], weight, total;
    mirror_start(&m, "attention", device, seed, own);
    t[0] = wide(&m, m.batch.rows, CHANNELS, 1);
    t[1] = input(&m, 1, m.batch.scores, 4);
    mtan_data(&m.tape, t[1])[1] -= 200;
    send(&m);
    probe = m.tape; /* where the op will take its buffers from */
    weight = mtan_new_constant(&probe, 1, m.batch.scores);
    total = mtan_new_constant(&probe, RECORDS * CHANNELS, m.batch.steps);
    mtan_op_attend(&m.tape, t[0], t[1]);
    kernels->attend_forward(&m.on_device, data(&m, t[0]), (size_t)t[0].stride, data(&m, t[1]), data(&m, weight),
                            data(&m, total));
    compare_data(&m, "interpolation", t[0], CUDA_SAME);
    compare_data(&m, "weights", weight, CUDA_SAME);
    compare_data(&m, "totals", total, CUDA_SAME);
    send_gradients(&m, t, 2);
    mtan_backpropagate(&m.tape);
    kernels->attend_backward(&m.on_device, gradient(&m, t[1]), gradient(&m, t[0]), data(&m, t[0]), (size_t)t[0].stride,
                             data(&m, t[1]), data(&m, weight), data(&m, total));
    compare_gradient(&m, "scores' gradient", t[1], CUDA_SAME);
    return mirror_end(&m);
}

static mtan_tensor positive(mirror *m, int32_t cols) {
    const mtan_tensor beta = input(m, 1, cols, 4);
    for (int32_t i = 0; i < cols; i++) mtan_data(&m->tape, beta)[i] += 5;
    return beta;
}

static int rbf(mtan_cuda *device, uint64_t seed, int own) {
    mirror m;
    mtan_tensor t[3];
    mirror_start(&m, "rbf", device, seed, own);
    t[0] = wide(&m, m.batch.rows, CHANNELS, 1);
    t[1] = input(&m, own ? m.batch.point0[RECORDS] : m.batch.steps, 1, 1);
    t[2] = positive(&m, CHANNELS);
    send(&m);
    mtan_op_attend_rbf(&m.tape, t[0], t[1], t[2]);
    kernels->rbf_forward(&m.on_device, data(&m, t[0]), (size_t)t[0].stride, data(&m, t[1]), data(&m, m.batch.time),
                         data(&m, t[2]));
    compare_data(&m, "interpolation", t[0], CUDA_SAME);
    send_gradients(&m, t, 3);
    mtan_backpropagate(&m.tape);
    kernels->rbf_backward(&m.on_device, gradient(&m, t[2]), gradient(&m, t[0]), data(&m, t[0]), (size_t)t[0].stride,
                          data(&m, t[1]), data(&m, m.batch.time), data(&m, t[2]));
    compare_gradient(&m, "bandwidths' gradient", t[2], CUDA_NEAR);
    return mirror_end(&m);
}

static int softmax(mtan_cuda *device, uint64_t seed, int own) {
    mirror m;
    mtan_tensor weight;
    mirror_start(&m, "softmax of pairs", device, seed, own);
    weight = input(&m, 1, m.batch.pairs, 3);
    send(&m);
    mtan_op_softmax_pairs(&m.tape, weight);
    kernels->softmax_pairs_forward(&m.on_device, data(&m, weight));
    compare_data(&m, "weights", weight, CUDA_NEAR);
    send_gradients(&m, &weight, 1);
    mtan_backpropagate(&m.tape);
    kernels->softmax_pairs_backward(&m.on_device, gradient(&m, weight), data(&m, weight));
    compare_gradient(&m, "gradient", weight, CUDA_NEAR);
    return mirror_end(&m);
}

static int values(mtan_cuda *device, uint64_t seed, int own) {
    mirror m;
    mtan_tensor t[3];
    const int32_t C = 5;
    mirror_start(&m, "values", device, seed, own);
    t[0] = wide(&m, m.batch.queries * SAMPLES, C, 1);
    t[1] = input(&m, 1, m.batch.pairs, 1);
    t[2] = input(&m, m.batch.rows * SAMPLES, C, 1);
    send(&m);
    mtan_op_attend_values(&m.tape, t[0], t[1], t[2]);
    kernels->values_forward(&m.on_device, data(&m, t[0]), (size_t)t[0].stride, data(&m, t[1]), data(&m, t[2]),
                            (size_t)t[2].stride, C);
    compare_data(&m, "results", t[0], CUDA_SAME);
    send_gradients(&m, t, 3);
    mtan_backpropagate(&m.tape);
    kernels->values_backward(&m.on_device, gradient(&m, t[1]), gradient(&m, t[2]), gradient(&m, t[0]),
                             (size_t)t[0].stride, data(&m, t[1]), data(&m, t[2]), (size_t)t[2].stride, C);
    compare_gradient(&m, "weights' gradient", t[1], CUDA_SAME);
    compare_gradient(&m, "values' gradient", t[2], CUDA_SAME);
    return mirror_end(&m);
}

static int smooth(mtan_cuda *device, uint64_t seed, int own) {
    mirror m;
    mtan_tensor t[4];
    const int32_t C = 5;
    mirror_start(&m, "smooth", device, seed, own);
    t[0] = input(&m, m.batch.queries * SAMPLES, C, 1);
    t[1] = input(&m, own ? m.batch.point0[RECORDS] : m.batch.steps, 1, 1);
    t[2] = positive(&m, C);
    t[3] = input(&m, m.batch.rows * SAMPLES, C, 1);
    send(&m);
    mtan_op_smooth(&m.tape, t[0], t[1], t[2], t[3]);
    kernels->smooth_forward(&m.on_device, data(&m, t[0]), (size_t)t[0].stride, data(&m, m.batch.query), data(&m, t[1]),
                            data(&m, t[2]), data(&m, t[3]), (size_t)t[3].stride, C);
    compare_data(&m, "results", t[0], CUDA_SAME);
    send_gradients(&m, t, 4);
    mtan_backpropagate(&m.tape);
    kernels->smooth_backward(&m.on_device, gradient(&m, t[3]), gradient(&m, t[2]), gradient(&m, t[0]), data(&m, t[0]),
                             (size_t)t[0].stride, data(&m, m.batch.query), data(&m, t[1]), data(&m, t[2]),
                             data(&m, t[3]), (size_t)t[3].stride, C);
    compare_gradient(&m, "values' gradient", t[3], CUDA_SAME);
    compare_gradient(&m, "bandwidths' gradient", t[2], CUDA_NEAR);
    return mirror_end(&m);
}

/* ---- GRU ---- */

static int gru(mtan_cuda *device, uint64_t seed, int32_t N, int32_t S, int reverse, int own) {
    mirror m;
    mtan_tape probe;
    mtan_tensor t[4], hn, dh;
    char name[64];
    snprintf(name, sizeof name, "gru of %d, %d samples%s", (int)N, (int)S, reverse ? ", backwards" : "");
    mirror_start(&m, name, device, seed, own);
    if (N > 100) m.batch.steps = 3, m.batch.rows = m.batch.first[3]; /* which is enough, and faster */
    t[0] = wide(&m, m.batch.rows * S, N, 1);
    t[1] = mtan_new_gates(&m.tape, m.batch.rows * S, 3 * N);
    t[2] = wide(&m, 3 * N, N, N > 30 ? 0.2 : 0.5);
    t[3] = input(&m, 1, 3 * N, 1);
    dh = mtan_new_constant(&m.tape, RECORDS * S, N);
    random_reals(&m, mtan_data(&m.tape, t[1]), (size_t)t[1].rows * (size_t)t[1].cols, 2);
    send(&m);
    probe = m.tape;
    hn = mtan_new_constant(&probe, t[0].rows, N);
    mtan_op_gru(&m.tape, t[0], t[1], t[2], t[3], NULL, S, reverse);
    kernels->gru_forward(&m.on_device, data(&m, t[0]), (size_t)t[0].stride, data(&m, t[1]), (size_t)t[1].stride,
                         data(&m, hn), data(&m, t[2]), (size_t)t[2].stride, data(&m, t[3]), N, S, reverse);
    compare_data(&m, "states", t[0], CUDA_NEAR);
    compare_data(&m, "gates", t[1], CUDA_NEAR);
    compare_data(&m, "recurrent part", hn, CUDA_NEAR);
    send_gradients(&m, t, 1);
    mtan_backpropagate(&m.tape);
    kernels->gru_backward(&m.on_device, data(&m, t[1]), (size_t)t[1].stride, data(&m, hn), data(&m, dh),
                          gradient(&m, t[0]), data(&m, t[0]), (size_t)t[0].stride, data(&m, t[2]), (size_t)t[2].stride,
                          N, S, reverse);
    compare_data(&m, "gates' gradient", t[1], CUDA_NEAR);
    compare_data(&m, "recurrent part's gradient", hn, CUDA_NEAR);
    return mirror_end(&m);
}

/* ---- losses ---- */

static int latent(mtan_cuda *device, uint64_t seed) {
    mirror m;
    mtan_tensor t[5];
    const int32_t Z = 3;
    mirror_start(&m, "latent", device, seed, 1);
    t[0] = input(&m, RECORDS, 1, 1);
    t[1] = input(&m, m.batch.rows, 2 * Z, 1);
    t[2] = input(&m, RECORDS * SAMPLES, 1, 1);
    t[3] = input(&m, t[1].rows * SAMPLES, Z, 1);
    t[4] = input(&m, t[1].rows * SAMPLES, Z, 1);
    send(&m);
    mtan_op_kl(&m.tape, t[0], t[1]);
    mtan_op_ratio(&m.tape, t[2], t[3], t[1], t[4]);
    kernels->kl_forward(&m.on_device, data(&m, t[0]), data(&m, t[1]), Z);
    kernels->ratio_forward(&m.on_device, data(&m, t[2]), data(&m, t[3]), data(&m, t[1]), data(&m, t[4]), Z);
    compare_data(&m, "kl", t[0], CUDA_NEAR);
    compare_data(&m, "ratio", t[2], CUDA_NEAR);
    send_gradients(&m, t, 5);
    mtan_backpropagate(&m.tape);
    kernels->ratio_backward(&m.on_device, gradient(&m, t[3]), gradient(&m, t[1]), data(&m, t[3]), gradient(&m, t[2]),
                            Z);
    kernels->kl_backward(&m.on_device, gradient(&m, t[1]), data(&m, t[1]), gradient(&m, t[0]), Z);
    compare_gradient(&m, "posterior's gradient", t[1], CUDA_SAME);
    compare_gradient(&m, "z's gradient", t[3], CUDA_SAME);
    return mirror_end(&m);
}

/* The library has no op for the squared error: its loop is repeated. */
static void compare_errors(mirror *m, mtan_tensor prediction) {
    const mtan_batch *b = &m->batch;
    double *errors = mtan_cuda_alloc(m->device, RECORDS * sizeof *errors), got[RECORDS];
    kernels->squared_error(&m->on_device, errors, data(m, prediction));
    mtan_cuda_download(m->device, got, errors, sizeof got);
    mtan_cuda_sync(m->device);
    mtan_cuda_free(m->device, errors);
    for (int r = 0; r < RECORDS; r++) {
        const int32_t L = b->query0[r + 1] - b->query0[r], c = b->cell0[r];
        const mtan_real *x = mtan_data(&m->tape, prediction) + b->query0[r] * SAMPLES * CHANNELS;
        const mtan_real wanted =
            (mtan_real)m->tape.backend->squared_error(x, (size_t)(L * CHANNELS), SAMPLES, CHANNELS, b->cell_row + c,
                                                      b->cell_channel + c, b->cell_value + c, b->cell0[r + 1] - c);
        const mtan_real found = (mtan_real)got[r];
        m->ok = m->ok && cuda_compare("squared error", &found, &wanted, 1, CUDA_NEAR);
    }
}

static int likelihood(mtan_cuda *device, uint64_t seed) {
    mirror m;
    mtan_tensor t[2];
    mirror_start(&m, "log-likelihood", device, seed, 1);
    t[0] = input(&m, RECORDS * SAMPLES, 1, 1);
    t[1] = input(&m, m.batch.queries * SAMPLES, CHANNELS, 1);
    send(&m);
    mtan_op_loglik(&m.tape, t[0], t[1], 0.25);
    kernels->loglik_forward(&m.on_device, data(&m, t[0]), data(&m, t[1]), 0.25);
    compare_data(&m, "log-likelihood", t[0], CUDA_NEAR);
    compare_errors(&m, t[1]);
    send_gradients(&m, t, 2);
    mtan_backpropagate(&m.tape);
    kernels->loglik_backward(&m.on_device, gradient(&m, t[1]), data(&m, t[1]), gradient(&m, t[0]), 0.25);
    compare_gradient(&m, "prediction's gradient", t[1], CUDA_SAME);
    return mirror_end(&m);
}

static int bound(mtan_cuda *device, uint64_t seed, mtan_bound kind) {
    const int stride = kind == MTAN_BOUND_IWAE;
    mirror m;
    mtan_tape probe;
    mtan_tensor t[4], weight;
    mirror_start(&m, "bound", device, seed, 1);
    t[0] = input(&m, RECORDS, 1, 1);
    t[1] = input(&m, RECORDS * SAMPLES, 1, 2);
    t[2] = input(&m, stride ? RECORDS * SAMPLES : RECORDS, 1, 2);
    t[3] = input(&m, RECORDS, 1, 1);
    send(&m);
    probe = m.tape;
    weight = mtan_new_constant(&probe, RECORDS * SAMPLES, 1);
    mtan_op_bound(&m.tape, t[0], t[1], t[2], t[3], kind, 0.7, 0.25);
    kernels->bound_forward(RECORDS, data(&m, t[0]), data(&m, weight), data(&m, t[1]), data(&m, t[2]), stride, SAMPLES,
                           kind, 0.7, data(&m, t[3]));
    compare_data(&m, "loss", t[0], CUDA_SAME);
    compare_data(&m, "weights", weight, CUDA_SAME);
    send_gradients(&m, t, 3);
    mtan_backpropagate(&m.tape);
    kernels->bound_backward(RECORDS, gradient(&m, t[1]), gradient(&m, t[2]), stride, data(&m, weight), SAMPLES,
                            (mtan_real)0.7, (mtan_real)0.25, data(&m, t[3]));
    compare_gradient(&m, "likelihood's gradient", t[1], CUDA_SAME);
    compare_gradient(&m, "kl's gradient", t[2], CUDA_SAME);
    return mirror_end(&m);
}

static int cross_entropy(mtan_cuda *device, uint64_t seed) {
    mirror m;
    mtan_tensor t[3];
    const int32_t C = 3;
    mirror_start(&m, "cross entropy of queries", device, seed, 1);
    t[0] = input(&m, m.batch.queries * SAMPLES, 1, 1);
    t[1] = input(&m, m.batch.queries * SAMPLES, C, 1);
    t[2] = input(&m, m.batch.queries * SAMPLES, C, 3);
    send(&m);
    mtan_op_cross_entropy(&m.tape, t[0], t[1], t[2], m.batch.label, 0, 0.25);
    kernels->cross_entropy_forward(&m.on_device, data(&m, t[0]), data(&m, t[1]), data(&m, t[2]), m.on_device.label, C);
    compare_data(&m, "loss", t[0], CUDA_SAME);
    compare_data(&m, "probabilities", t[1], CUDA_SAME);
    send_gradients(&m, t, 3);
    mtan_backpropagate(&m.tape);
    kernels->cross_entropy_backward(&m.on_device, gradient(&m, t[2]), data(&m, t[1]), m.on_device.label,
                                    (mtan_real)0.25, C);
    compare_gradient(&m, "gradient", t[2], CUDA_SAME);
    return mirror_end(&m);
}

/* ---- rows ---- */

typedef void move_op(mtan_tape *tape, mtan_tensor y, mtan_tensor x);
typedef void move_kernel(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx, int32_t cols);

static void last_forward(const mtan_batch *b, mtan_real *y, size_t ldy, const mtan_real *x, size_t ldx, int32_t cols) {
    kernels->last_forward(b, y, ldy, x, ldx, cols, SAMPLES);
}

static void last_backward(const mtan_batch *b, mtan_real *dx, size_t ldx, const mtan_real *dy, size_t ldy,
                          int32_t cols) {
    kernels->last_backward(b, dx, ldx, dy, ldy, cols, SAMPLES);
}

/* y and x have these many rows, 0 standing for those of the sequence with all samples */
static int moves(mtan_cuda *device, uint64_t seed, const char *name, int own, int32_t rows_y, int32_t rows_x,
                 move_op *op, move_kernel *forward, move_kernel *backward) {
    mirror m;
    mtan_tensor t[2];
    const int32_t C = 5;
    mirror_start(&m, name, device, seed, own);
    if (rows_y) t[0] = input(&m, rows_y, C, 1); /* mtan_op_last takes no view */
    else t[0] = wide(&m, m.batch.rows * (rows_x == RECORDS ? 1 : SAMPLES), C, 1);
    t[1] = wide(&m, rows_x ? rows_x : m.batch.rows * SAMPLES, C, 1);
    send(&m);
    op(&m.tape, t[0], t[1]);
    forward(&m.on_device, data(&m, t[0]), (size_t)t[0].stride, data(&m, t[1]), (size_t)t[1].stride, C);
    compare_data(&m, "result", t[0], CUDA_SAME);
    send_gradients(&m, t, 2);
    mtan_backpropagate(&m.tape);
    backward(&m.on_device, gradient(&m, t[1]), (size_t)t[1].stride, gradient(&m, t[0]), (size_t)t[0].stride, C);
    compare_gradient(&m, "gradient", t[1], CUDA_SAME);
    return mirror_end(&m);
}

/* ---- random numbers: the library's own functions, laid out by the loops of its models ---- */

static uint64_t *identities(mirror *m) {
    uint64_t *id = (uint64_t *)(void *)mtan_new_ints(&m->tape, 2 * RECORDS);
    for (int b = 0; b < RECORDS; b++) id[b] = mtan_hash(&b, sizeof b);
    return id;
}

static int noise(mtan_cuda *device, uint64_t seed) {
    const int32_t Z = 5;
    mirror m;
    mtan_tensor z;
    mtan_real drawn[STEPS * 5];
    uint64_t *id;
    mirror_start(&m, "noise", device, seed, 1);
    z = input(&m, m.batch.rows * SAMPLES, Z, 1);
    id = identities(&m);
    send(&m);
    for (int b = 0; b < RECORDS; b++)
        for (int s = 0; s < SAMPLES; s++) {
            const int32_t steps = m.batch.length[b];
            mtan_noise_fill(m.tape.backend, drawn, (size_t)(steps * Z), seed, (uint64_t)7 << 33, id[b], (uint32_t)s);
            for (int32_t k = 0; k < steps; k++)
                memcpy(mtan_data(&m.tape, z) + ((m.batch.first[k] + b) * SAMPLES + s) * Z, drawn + k * Z,
                       (size_t)Z * sizeof *drawn);
        }
    kernels->noise(&m.on_device, data(&m, z), there(&m, id), seed, (uint64_t)7 << 33, Z);
    compare_data(&m, "normals", z, CUDA_SAME);
    return mirror_end(&m);
}

static int masks(mtan_cuda *device, uint64_t seed, int layout) {
    const int32_t W = 7;
    mirror m;
    mtan_tensor mask;
    uint64_t *id;
    mirror_start(&m, "mask", device, seed, 1);
    if (layout == 1) m.batch.samples = 1;
    mask = input(&m, layout == 0 ? RECORDS * SAMPLES : layout == 1 ? m.batch.rows : m.batch.queries * SAMPLES, W, 1);
    id = identities(&m);
    send(&m);
    for (int b = 0; b < RECORDS; b++) {
        const int32_t queries = m.batch.query0[b + 1] - m.batch.query0[b];
        const int32_t rows = layout == 0 ? 1 : layout == 1 ? m.batch.length[b] : queries;
        for (int32_t i = 0; i < rows; i++)
            for (int32_t s = 0; s < m.batch.samples; s++) {
                const int32_t row = layout == 0   ? b * SAMPLES + s
                                    : layout == 1 ? m.batch.first[i] + b
                                                  : m.batch.query0[b] * SAMPLES + s * rows + i;
                mtan_mask_fill(mtan_data(&m.tape, mask) + row * W, (size_t)W, 0.3, seed, 11, id[b], (uint32_t)s,
                               (uint64_t)((2 * i + 1) * W));
            }
    }
    kernels->mask(&m.on_device, data(&m, mask), there(&m, id), 0.3, seed, 11, W, layout, 1);
    compare_data(&m, "mask", mask, CUDA_SAME);
    return mirror_end(&m);
}

/* ---- all of them ---- */

int cuda_batches_agree(mtan_cuda *device, uint64_t seed) {
    static const int32_t hidden[] = {1, 7, 32, 40, 70, 100, 131};
    int ok = 1;
    shim.seed = seed;
    kernels = mtan_backend_cuda.device;
    for (int own = 0; own < 2; own++) {
        ok &= scores(device, seed, own, 0) && scores(device, seed, own, 1);
        ok &= attention(device, seed, own) && rbf(device, seed, own);
        ok &= softmax(device, seed, own) && values(device, seed, own) && smooth(device, seed, own);
        for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
            ok &= gru(device, seed, hidden[i], hidden[i] == 7 ? 2 : 1, (int)((i + seed) % 2), own);
    }
    ok &= latent(device, seed) && noise(device, seed);
    ok &= likelihood(device, seed) && cross_entropy(device, seed);
    ok &= bound(device, seed, MTAN_BOUND_ELBO) && bound(device, seed, MTAN_BOUND_IWAE);
    for (int own = 0; own < 2; own++)
        ok &= moves(device, seed, "spread", own, 0, RECORDS, mtan_op_spread, kernels->spread_forward,
                    kernels->spread_backward) &&
              moves(device, seed, "last", own, RECORDS * SAMPLES, 0, mtan_op_last, last_forward, last_backward);
    ok &= moves(device, seed, "regroup", 1, 0, 0, mtan_op_regroup, kernels->regroup_forward, kernels->regroup_backward);
    for (int layout = 0; layout < 3; layout++) ok &= masks(device, seed, layout);
    return ok;
}

int cuda_barrier_batch(int index, mtan_cuda *device) {
    static const int32_t hidden[] = {7, 131};
    return index < 2 ? gru(device, 3, hidden[index], 1, 0, 1) : -1;
}

#else

typedef int no_cuda_batched;

#endif
