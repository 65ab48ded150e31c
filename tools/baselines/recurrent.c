/* GRUs on the rows of a record: RNN-Dt, RNN-Impute, RNN-Decay and GRU-D (Che et al., 2018), as defined in their papers
 * and, with the setting "faithful", as computed by the code of latent_ode (Rubanova et al., 2019).
 *
 * They combine two parts. Imputation: an unobserved value decays from the channel's last one towards its mean, the
 * further the longer the channel has not been observed. Decay: the state decays towards 0 before every step. The time
 * since a channel was last observed is delta (R, D). The faithful form of delta, and every other difference, is noted
 * where it is computed. */
#include "sequence.h"

extern const mtan_architecture baseline_rnn_dt, baseline_rnn_impute, baseline_rnn_decay, baseline_gru_d;

/* ---- settings and parameters ---- */

enum { FAITHFUL, BIDIRECTIONAL }; /* places in config.extra */
static const char *const settings[] = {"faithful", "bidirectional", NULL};
static const double defaults[] = {0, 0};

static int32_t is_faithful(const mtan_config *c) {
    return c->extra[FAITHFUL] > 0;
}

static int32_t directions(const mtan_config *c) {
    return c->extra[BIDIRECTIONAL] > 0 ? 2 : 1;
}

static int32_t imputes(const mtan_config *c) {
    return c->architecture == &baseline_rnn_impute || c->architecture == &baseline_gru_d;
}

static int32_t decays(const mtan_config *c) {
    return c->architecture == &baseline_rnn_decay || c->architecture == &baseline_gru_d;
}

/* Faithful imputation uses the mean of the record itself. */
static int32_t has_mean(const mtan_config *c) {
    return imputes(c) && !is_faithful(c);
}

/* Indices of the layers' first tensors. */
typedef struct roles {
    int32_t mean;
    struct {
        int32_t input_decay, decay, rnn;
    } of[2]; /* of each direction */
    int32_t head;
} roles;

static mtan_status check(const mtan_config *c) {
    return is_switch(c->extra[FAITHFUL]) ? check_sequence(c, c->extra[BIDIRECTIONAL]) : MTAN_ERR_CONFIG;
}

static void params(const mtan_config *c, mtan_params *p, void *out) {
    const int32_t D = c->channels, N = c->enc_hidden;
    roles *r = out;
    char name[MTAN_NAME_SIZE];
    if (has_mean(c)) r->mean = mtan_params_add(p, "rec.mean", D, 1, 1, D);
    for (int32_t i = 0; i < directions(c); i++) {
        if (imputes(c)) {
            r->of[i].input_decay = mtan_params_add(p, name_in_direction(name, "input_decay.weight", i), D, 1, 1, D);
            mtan_params_add(p, name_in_direction(name, "input_decay.bias", i), D, 1, 1, D);
        }
        if (decays(c)) r->of[i].decay = add_linear(p, name_in_direction(name, "decay", i), is_faithful(c) ? 1 : N, D);
        r->of[i].rnn = add_gru(p, name_in_direction(name, "rnn", i), decays(c) ? 2 * D : 2 * D + 1, N);
    }
    r->head = add_head(p, c, directions(c) * N);
}

static void init(const mtan_config *c, const void *indices, mtan_real *weights, mtan_mt19937 *rng) {
    const roles *r = indices;
    if (has_mean(c)) start_constant(c, weights, r->mean, 0);
    for (int32_t i = 0; i < directions(c); i++) {
        for (int32_t k = 0; imputes(c) && is_faithful(c) && k < 2; k++)
            start_constant(c, weights, r->of[i].input_decay + k, 0);
        if (decays(c)) start_net(c, weights, r->of[i].decay, 0, rng);
    }
    start_net(c, weights, r->head, c->head_hidden ? 2 : 0, rng);
}

/* ---- time since a channel was observed ---- */

/* delta_i = gap_i, plus delta_{i-1} if the channel was not observed at i - 1. Faithful: the second row adds nothing. */
static void sum_gaps(const mtan_tape *tape, mtan_tensor delta, mtan_tensor mask, mtan_tensor gap, int32_t reverse,
                     int32_t faithful) {
    const mtan_batch *batch = tape->batch;
    const size_t D = (size_t)delta.cols;
    for (int32_t i = 0; i < batch->steps; i++) {
        const run_step s = run_at(batch, i, reverse);
        for (int32_t b = 0; b < s.rows; b++) {
            const size_t row = s.row + (size_t)b, before = s.before + (size_t)b;
            const int32_t place = reverse ? batch->length[b] - 1 - s.k : s.k; /* its step in the run over this record,
                                                                               * from 0 */
            const mtan_real since = mtan_data(tape, gap)[row];
            const mtan_real *past = mtan_data(tape, delta) + before * D, *seen = mtan_data(tape, mask) + before * D;
            mtan_real *to = mtan_data(tape, delta) + row * D;
            for (size_t d = 0; d < D; d++) to[d] = since;
            for (size_t d = 0; place >= (faithful ? 2 : 1) && d < D; d++) to[d] += (1 - seen[d]) * past[d];
        }
    }
}

/* Faithful: delta is divided by the record's largest. */
static void divide_by_largest(const mtan_tape *tape, mtan_tensor delta) {
    const mtan_batch *batch = tape->batch;
    for (int32_t b = 0; b < batch->records; b++) {
        mtan_real largest = 0;
        for (int32_t k = 0; k < batch->length[b]; k++) {
            const mtan_real *x = mtan_data(tape, mtan_rows(delta, batch->first[k] + b, 1));
            for (int32_t d = 0; d < delta.cols; d++) largest = x[d] > largest ? x[d] : largest;
        }
        for (int32_t k = 0; largest > 0 && k < batch->length[b]; k++) {
            mtan_real *x = mtan_data(tape, mtan_rows(delta, batch->first[k] + b, 1));
            for (int32_t d = 0; d < delta.cols; d++) x[d] /= largest;
        }
    }
}

/* Faithful: gaps reach to the next row. */
static mtan_tensor gaps_of(const mtan_forward *f, const dense_rows *rows, int32_t reverse) {
    return is_faithful(f->config) ? gaps_after(f, rows->time, reverse) : gaps_before(f, rows->time, reverse);
}

static mtan_tensor delta_of(const mtan_forward *f, const dense_rows *rows, mtan_tensor gap, int32_t reverse) {
    const mtan_tensor delta = mtan_new_constant(f->tape, rows->x.rows, rows->x.cols);
    if (!op_runs(f->tape)) return delta;
    sum_gaps(f->tape, delta, rows->mask, gap, reverse, is_faithful(f->config));
    if (is_faithful(f->config)) divide_by_largest(f->tape, delta);
    return delta;
}

/* ---- imputation: x^ = m x + (1 - m)(g last + (1 - g) mean), g = exp(-max(0, w delta + b)), written start + g way ---- */

enum { OP_IMPUTE = BASELINE_OWN_OP, OP_DECAYED_GRU };
enum { IMPUTE_Y, IMPUTE_START, IMPUTE_WAY, IMPUTE_DELTA, IMPUTE_W, IMPUTE_B, IMPUTE_G }; /* tensors of its node */

static void op_impute(mtan_tape *tape, mtan_tensor y, mtan_tensor start, mtan_tensor way, mtan_tensor delta,
                      mtan_tensor w, mtan_tensor b) {
    const mtan_tensor g = mtan_new_constant(tape, y.rows, y.cols);
    const mtan_tensor t[7] = {y, start, way, delta, w, b, g};
    mtan_node *node = y.grad == MTAN_NO_GRAD ? NULL : mtan_record_op(tape, OP_IMPUTE);
    for (int i = 0; node && i < 7; i++) node->t[i] = t[i];
    for (int32_t i = 0; op_runs(tape) && i < y.rows; i++) {
        const mtan_real *weight = mtan_data(tape, w), *bias = mtan_data(tape, b);
        const mtan_real *since = mtan_data(tape, mtan_rows(delta, i, 1)),
                        *from = mtan_data(tape, mtan_rows(start, i, 1));
        const mtan_real *by = mtan_data(tape, mtan_rows(way, i, 1));
        mtan_real *share = mtan_data(tape, mtan_rows(g, i, 1)), *to = mtan_data(tape, mtan_rows(y, i, 1));
        for (int32_t d = 0; d < y.cols; d++) {
            const mtan_real a = weight[d] * since[d] + bias[d];
            share[d] = a <= 0 ? 0 : -a;
        }
        tape->backend->map(MTAN_EXP, share, share, (size_t)y.cols);
        for (int32_t d = 0; d < y.cols; d++) to[d] = from[d] + share[d] * by[d];
    }
}

static void impute_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_real *w = mtan_data(tape, n->t[IMPUTE_W]), *b = mtan_data(tape, n->t[IMPUTE_B]);
    mtan_real *dw = mtan_grad(tape, n->t[IMPUTE_W]), *db = mtan_grad(tape, n->t[IMPUTE_B]);
    for (int32_t i = 0; i < n->t[IMPUTE_Y].rows; i++) {
        const mtan_real *dy = mtan_grad(tape, mtan_rows(n->t[IMPUTE_Y], i, 1));
        const mtan_real *way = mtan_data(tape, mtan_rows(n->t[IMPUTE_WAY], i, 1));
        const mtan_real *g = mtan_data(tape, mtan_rows(n->t[IMPUTE_G], i, 1));
        const mtan_real *delta = mtan_data(tape, mtan_rows(n->t[IMPUTE_DELTA], i, 1));
        for (int32_t d = 0; d < n->t[IMPUTE_Y].cols; d++) {
            const mtan_real da = w[d] * delta[d] + b[d] > 0 ? -dy[d] * way[d] * g[d] : 0;
            dw[d] += da * delta[d];
            db[d] += da;
        }
    }
}

/* (B, D): the mean over a record's rows, with zeros for unobserved values, as in the published code. */
static mtan_tensor means_of_records(const mtan_forward *f, const dense_rows *rows) {
    const mtan_batch *batch = f->tape->batch;
    const mtan_tensor mean = mtan_new_constant(f->tape, batch->records, f->config->channels);
    for (int32_t b = 0; op_runs(f->tape) && b < batch->records; b++) {
        mtan_real *to = mtan_data(f->tape, mtan_rows(mean, b, 1));
        for (int32_t d = 0; d < mean.cols; d++) to[d] = 0;
        for (int32_t k = 0; k < batch->length[b]; k++) {
            const mtan_real *x = mtan_data(f->tape, mtan_rows(rows->x, batch->first[k] + b, 1));
            for (int32_t d = 0; d < mean.cols; d++) to[d] += x[d];
        }
        for (int32_t d = 0; batch->length[b] > 0 && d < mean.cols; d++) to[d] /= (mtan_real)batch->length[b];
    }
    return mean;
}

/* The latest value of each channel in the rows before, in the order of the run; before the first, the mean (faithful:
 * 0). */
static void fill_last(const mtan_forward *f, mtan_tensor last, const dense_rows *rows, mtan_tensor mean,
                      int32_t reverse) {
    const mtan_tape *tape = f->tape;
    const size_t D = (size_t)last.cols;
    for (int32_t i = 0; i < tape->batch->steps; i++) {
        const run_step s = run_at(tape->batch, i, reverse);
        for (int32_t b = 0; b < s.rows; b++) {
            const size_t before = (s.before + (size_t)b) * D;
            const mtan_real *x = mtan_data(tape, rows->x) + before, *seen = mtan_data(tape, rows->mask) + before;
            const mtan_real *past = mtan_data(tape, last) + before, *start = mtan_data(tape, mean);
            mtan_real *to = mtan_data(tape, last) + (s.row + (size_t)b) * D;
            for (size_t d = 0; b < s.known && d < D; d++) to[d] = seen[d] > 0 ? x[d] : past[d];
            for (size_t d = 0; b >= s.known && d < D; d++) to[d] = is_faithful(f->config) ? 0 : start[d];
        }
    }
}

/* start = m x + (1 - m) mean and, in place of `last`, way = (1 - m)(last - mean). The mean is a single row, or one row
 * per record. */
static void fill_start_and_way(const mtan_tape *tape, mtan_tensor start, mtan_tensor last, const dense_rows *rows,
                               mtan_tensor mean) {
    const mtan_batch *batch = tape->batch;
    const size_t D = (size_t)start.cols;
    for (int32_t k = 0; k < batch->steps; k++)
        for (int32_t row = batch->first[k]; row < batch->first[k + 1]; row++) {
            const size_t at = (size_t)row * D;
            const mtan_real *x = mtan_data(tape, rows->x) + at, *seen = mtan_data(tape, rows->mask) + at;
            const mtan_real *middle = mtan_data(tape, mtan_rows(mean, mean.rows == 1 ? 0 : row - batch->first[k], 1));
            mtan_real *from = mtan_data(tape, start) + at, *way = mtan_data(tape, last) + at;
            for (size_t d = 0; d < D; d++) {
                from[d] = seen[d] > 0 ? x[d] : middle[d];
                way[d] = seen[d] > 0 ? 0 : way[d] - middle[d];
            }
        }
}

/* Faithful: the decay of inputs keeps its initial value, because that code did not pass it to the optimiser. */
static mtan_tensor imputed(const mtan_forward *f, const dense_rows *rows, mtan_tensor delta, int32_t reverse) {
    const roles *r = f->roles;
    const int32_t index = r->of[reverse].input_decay;
    const int32_t R = rows->x.rows, D = rows->x.cols, faithful = is_faithful(f->config);
    const mtan_tensor mean = faithful ? means_of_records(f, rows) : mtan_forward_param(f, r->mean);
    const mtan_tensor y = faithful ? mtan_new_constant(f->tape, R, D) : mtan_new(f->tape, R, D);
    const mtan_tensor start = mtan_new_constant(f->tape, R, D), last = mtan_new_constant(f->tape, R, D);
    if (op_runs(f->tape)) {
        fill_last(f, last, rows, mean, reverse);
        fill_start_and_way(f->tape, start, last, rows, mean);
    }
    op_impute(f->tape, y, start, last, delta, mtan_forward_param(f, index), mtan_forward_param(f, index + 1));
    return y;
}

/* ---- a GRU whose state is multiplied by `decay` (R, N) or (R, 1) before every step ---- */

enum { GRU_Y, GRU_GX, GRU_DECAY, GRU_W, GRU_B, GRU_HN, GRU_KEPT, GRU_TENSORS }; /* tensors of its node */

/* kept: the decayed states of all rows when recording, or of one step; then room for one more step. */
static size_t kept_row(const mtan_tape *tape, const run_step *s) {
    return tape->recording ? s->row : 0;
}

static mtan_real *step_room(const mtan_tape *tape, const mtan_tensor *t) {
    return mtan_data(tape, mtan_rows(t[GRU_KEPT], t[GRU_KEPT].rows - 3 * tape->batch->records, 0));
}

static void decay_states(const mtan_tape *tape, const mtan_tensor *t, const run_step *s) {
    const mtan_tensor y = t[GRU_Y], decay = t[GRU_DECAY];
    const size_t N = (size_t)y.cols, each = decay.cols > 1;
    mtan_real *to = mtan_data(tape, t[GRU_KEPT]) + kept_row(tape, s) * N;
    for (int32_t b = 0; b < s->rows; b++, to += N) {
        const mtan_real *h = mtan_data(tape, y) + (s->before + (size_t)b) * (size_t)y.stride;
        const mtan_real *by = mtan_data(tape, decay) + (s->row + (size_t)b) * (size_t)decay.stride;
        if (b < s->known)
            for (size_t j = 0; j < N; j++) to[j] = h[j] * by[j * each];
        else
            for (size_t j = 0; j < N; j++) to[j] = 0;
    }
}

static void decayed_gru_run(const mtan_tape *tape, const mtan_tensor *t, mtan_tensor packed, int32_t reverse) {
    const mtan_backend *k = tape->backend;
    const mtan_tensor y = t[GRU_Y], gx = t[GRU_GX];
    const size_t N = (size_t)y.cols;
    mtan_real *gh = step_room(tape, t);
    for (int32_t i = 0; i < tape->batch->steps; i++) {
        const run_step s = run_at(tape->batch, i, reverse);
        const mtan_real *before = mtan_data(tape, t[GRU_KEPT]) + kept_row(tape, &s) * N;
        mtan_real *hn = tape->recording ? mtan_data(tape, t[GRU_HN]) + s.row * N : NULL;
        decay_states(tape, t, &s);
        k->copy(gh, 3 * N, mtan_data(tape, t[GRU_B]), 0, s.rows, 3 * y.cols);
        k->product_packed(gh, 3 * N, before, N, mtan_data(tape, packed), s.rows, 3 * y.cols, y.cols, 1, i % 2);
        k->gates_forward(mtan_data(tape, y) + s.row * (size_t)y.stride, (size_t)y.stride,
                         mtan_data(tape, gx) + s.row * (size_t)gx.stride, (size_t)gx.stride, hn, gh, before, N, s.rows,
                         y.cols);
    }
}

static void op_decayed_gru(mtan_tape *tape, mtan_tensor y, mtan_tensor gx, mtan_tensor decay, mtan_tensor w_hh,
                           mtan_tensor b_hh, mtan_tensor packed, int32_t reverse) {
    const int32_t B = tape->batch->records, R = y.rows, N = y.cols;
    mtan_tensor t[GRU_TENSORS] = {y, gx, decay, w_hh, b_hh};
    mtan_node *node;
    t[GRU_HN] = mtan_new_constant(tape, tape->recording ? R : 0, N);
    t[GRU_KEPT] = mtan_new_constant(tape, (tape->recording ? R : B) + 3 * B, N);
    node = mtan_record_op(tape, OP_DECAYED_GRU);
    if (node) node->n[0] = reverse;
    for (int i = 0; node && i < GRU_TENSORS; i++) node->t[i] = t[i];
    if (op_runs(tape)) decayed_gru_run(tape, t, packed, reverse);
}

/* Turns dh of the decayed states of a step into dh of the states before it. */
static void decay_states_back(const mtan_tape *tape, const mtan_tensor *t, const run_step *s, mtan_real *dh) {
    const mtan_tensor y = t[GRU_Y], decay = t[GRU_DECAY];
    const size_t N = (size_t)y.cols, each = decay.cols > 1;
    for (int32_t b = 0; b < s->known; b++, dh += N) {
        const mtan_real *h = mtan_data(tape, y) + (s->before + (size_t)b) * (size_t)y.stride;
        const size_t at = (s->row + (size_t)b) * (size_t)decay.stride;
        const mtan_real *by = mtan_data(tape, decay) + at;
        mtan_real *dby = mtan_grad(tape, decay) + at;
        for (size_t j = 0; j < N; j++) {
            dby[j * each] += dh[j] * h[j];
            dh[j] *= by[j * each];
        }
    }
}

/* As in the library's GRU, the gates become their gradients, and hn that of the third recurrent part. The decayed
 * states of all rows are contiguous, so the weights need only one product. */
static void decayed_gru_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_backend *k = tape->backend;
    const mtan_tensor *t = n->t, y = t[GRU_Y], gx = t[GRU_GX], w = t[GRU_W];
    const size_t N = (size_t)y.cols, ldg = (size_t)gx.stride, ldw = (size_t)w.stride;
    mtan_real *dh = step_room(tape, t), *g = mtan_data(tape, gx), *hn = mtan_data(tape, t[GRU_HN]);
    const mtan_real *kept = mtan_data(tape, t[GRU_KEPT]), *whh = mtan_data(tape, w);
    int32_t carried = 0; /* rows of dh with a gradient from the step after */
    for (int32_t i = tape->batch->steps - 1; i >= 0; i--) {
        const run_step s = run_at(tape->batch, i, n->n[0]);
        if (carried < s.rows) k->fill(dh + (size_t)carried * N, (size_t)(s.rows - carried) * N, 0);
        k->add(dh, N, mtan_grad(tape, y) + s.row * (size_t)y.stride, (size_t)y.stride, s.rows, y.cols);
        k->gates_backward(dh, g + s.row * ldg, ldg, hn + s.row * N, kept + s.row * N, N, s.rows, y.cols);
        k->product_nn(dh, N, g + s.row * ldg, ldg, whh, ldw, s.known, y.cols, 2 * y.cols, 1);
        k->product_nn(dh, N, hn + s.row * N, N, whh + 2 * N * ldw, ldw, s.known, y.cols, y.cols, 1);
        decay_states_back(tape, t, &s, dh);
        carried = s.known;
    }
    k->product_tn(mtan_grad(tape, w), ldw, g, ldg, kept, N, 2 * y.cols, y.cols, y.rows, 1);
    k->product_tn(mtan_grad(tape, w) + 2 * N * ldw, ldw, hn, N, kept, N, y.cols, y.cols, y.rows, 1);
    k->add(mtan_grad(tape, t[GRU_B]), 0, g, ldg, y.rows, 2 * y.cols);
    k->add(mtan_grad(tape, t[GRU_B]) + 2 * N, 0, hn, N, y.rows, y.cols);
}

/* ---- the models ---- */

/* exp(-max(0, W delta + b)), the decay of the states; faithful: one for all units. */
static mtan_tensor state_decay(const mtan_forward *f, mtan_tensor delta, int32_t index) {
    const mtan_tensor a = apply_linear(f, index, delta), decay = mtan_new(f->tape, a.rows, a.cols);
    op_decay(f->tape, decay, a);
    return decay;
}

/* [mask, gap] for the models that see the time since the last row, the mask for those whose state decays. */
static mtan_tensor beside_values(const mtan_forward *f, const dense_rows *rows, mtan_tensor gap) {
    const int32_t D = rows->mask.cols;
    mtan_tensor both;
    if (decays(f->config)) return rows->mask;
    both = mtan_new_constant(f->tape, rows->mask.rows, D + 1);
    mtan_op_copy(f->tape, mtan_columns(both, 0, D), rows->mask);
    mtan_op_copy(f->tape, mtan_columns(both, D, 1), gap);
    return both;
}

static void run_direction(const mtan_forward *f, const dense_rows *rows, mtan_tensor states, int32_t reverse) {
    const mtan_config *c = f->config;
    const roles *r = f->roles;
    const int32_t rnn = r->of[reverse].rnn;
    const mtan_tensor w_hh = mtan_forward_param(f, rnn + 1), b_hh = mtan_forward_param(f, rnn + 3);
    const mtan_tensor gap = gaps_of(f, rows, reverse), packed = packed_weight(f, w_hh);
    mtan_tensor x = rows->x, delta = gap, gx;
    if (imputes(c) || decays(c)) delta = delta_of(f, rows, gap, reverse);
    if (imputes(c)) x = imputed(f, rows, delta, reverse);
    gx = apply_input(f, rnn, rnn + 2, x, beside_values(f, rows, gap));
    if (decays(c))
        op_decayed_gru(f->tape, states, gx, state_decay(f, delta, r->of[reverse].decay), w_hh, b_hh, packed, reverse);
    else mtan_op_gru(f->tape, states, gx, w_hh, b_hh, &packed, 1, reverse);
}

static void forward(const mtan_forward *f, mtan_outputs *out) {
    const int32_t N = f->config->enc_hidden, n = directions(f->config);
    const dense_rows rows = read_rows(f);
    const mtan_tensor states = mtan_new(f->tape, rows.x.rows, n * N);
    for (int32_t i = 0; i < n; i++) run_direction(f, &rows, mtan_columns(states, i * N, N), i);
    out->logits = classify_states(f, states, ((const roles *)f->roles)->head);
}

static const mtan_backward backward[] = {BASELINE_BACKWARD MTAN_BACKWARD(OP_IMPUTE, impute_back),
                                         MTAN_BACKWARD(OP_DECAYED_GRU, decayed_gru_back)};

#define RECURRENT(title)                                                                                               \
    {                                                                                                                  \
        .name = title, .settings = settings, .defaults = defaults, .roles = ROLES(roles), .traits = BASELINE_TRAITS,   \
        .check = check, .params = params, .init = init, .forward = forward, .backward = backward                       \
    }
const mtan_architecture baseline_rnn_dt = RECURRENT("rnn-dt"), baseline_rnn_impute = RECURRENT("rnn-impute"),
                        baseline_rnn_decay = RECURRENT("rnn-decay"), baseline_gru_d = RECURRENT("gru-d");
