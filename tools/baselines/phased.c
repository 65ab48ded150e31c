/* Phased LSTM (Neil et al., 2016): an LSTM whose state and memory are updated only while a time gate is open, and only
 * slightly otherwise. Each unit's gate opens once in a period tau, from a shift on, for the fraction `open` of it; tau,
 * shift and fraction are learned.
 *
 * The input is [x, mask], where an unobserved value is the channel's last one, or 0 before the first. In the reverse
 * direction, time runs backwards for the gates as well. */
#include <math.h>

#include "sequence.h"

/* ---- settings and parameters ---- */

enum { BIDIRECTIONAL }; /* place in config.extra */
static const char *const settings[] = {"bidirectional", NULL};
static const double defaults[] = {0};

typedef struct roles {
    struct {
        int32_t w_ih, w_hh, b_ih, b_hh, log_tau, shift, open;
    } of[2]; /* of each direction */
    int32_t head;
} roles;

static int32_t directions(const mtan_config *c) {
    return c->extra[BIDIRECTIONAL] > 0 ? 2 : 1;
}

static mtan_status check(const mtan_config *c) {
    return check_sequence(c, c->extra[BIDIRECTIONAL]);
}

static void params(const mtan_config *c, mtan_params *p, void *out) {
    const int32_t D = c->channels, N = c->enc_hidden;
    roles *r = out;
    char name[MTAN_NAME_SIZE];
    for (int32_t i = 0; i < directions(c); i++) {
        r->of[i].w_ih = mtan_params_add(p, name_in_direction(name, "rnn.weight_ih_l0", i), 4 * N, 2 * D, 2, N);
        r->of[i].w_hh = mtan_params_add(p, name_in_direction(name, "rnn.weight_hh_l0", i), 4 * N, N, 2, N);
        r->of[i].b_ih = mtan_params_add(p, name_in_direction(name, "rnn.bias_ih_l0", i), 4 * N, 1, 1, N);
        r->of[i].b_hh = mtan_params_add(p, name_in_direction(name, "rnn.bias_hh_l0", i), 4 * N, 1, 1, N);
        r->of[i].log_tau = mtan_params_add(p, name_in_direction(name, "log_tau", i), N, 1, 1, N);
        r->of[i].shift = mtan_params_add(p, name_in_direction(name, "shift", i), N, 1, 1, N);
        r->of[i].open = mtan_params_add(p, name_in_direction(name, "open", i), N, 1, 1, N);
    }
    r->head = add_head(p, c, directions(c) * N);
}

/* Periods from 0.5 to 1000 on a logarithmic scale, a shift anywhere in the period, open for a tenth of it. */
static void init(const mtan_config *c, const void *indices, mtan_real *weights, mtan_mt19937 *rng) {
    const roles *r = indices;
    for (int32_t i = 0; i < directions(c); i++) {
        mtan_param log_tau, shift;
        if (mtan_param_at(c, r->of[i].log_tau, &log_tau) != MTAN_OK) return;
        if (mtan_param_at(c, r->of[i].shift, &shift) != MTAN_OK) return;
        for (int32_t j = 0; j < log_tau.rows; j++) {
            float drawn[2];
            mtan_torch_uniform(rng, &drawn[0], 1, (float)log(0.5), (float)log(1000));
            mtan_torch_uniform(rng, &drawn[1], 1, 0, 1);
            weights[log_tau.offset + (uint32_t)j] = (mtan_real)drawn[0];
            weights[shift.offset + (uint32_t)j] = (mtan_real)((double)drawn[1] * exp((double)drawn[0]));
        }
        start_constant(c, weights, r->of[i].open, 0.1);
    }
}

/* ---- the time gate ---- */

enum { OP_TIME_GATE = BASELINE_OWN_OP, OP_PHASED_LSTM };
enum { GATE_K, GATE_TIME, GATE_LOG_TAU, GATE_SHIFT, GATE_OPEN, GATE_TAU, GATE_TENSORS }; /* the tensors of its node */

#define LEAK ((mtan_real)0.001) /* slope of the closed gate: it passes this times the phase */

#define MOST_PERIODS ((mtan_real)(1 << 30)) /* beyond them a float has no fraction, and the phase has no meaning */

/* The phase of a unit after so many periods, in [0, 1). It uses a conversion to integer, which compilers vectorise,
 * unlike floor. */
static inline mtan_real phase(mtan_real periods) {
    const int32_t few = periods > -MOST_PERIODS && periods < MOST_PERIODS;
    const mtan_real near = few ? periods : 0, cut = (mtan_real)(int32_t)near, whole = cut > near ? cut - 1 : cut;
    return periods - (few ? whole : periods);
}

/* One row of k (N): the gate is closed, opening or closing. NaN does not count as closed. */
static void open_gates(mtan_real *restrict k, mtan_real now, const mtan_real *restrict shift,
                       const mtan_real *restrict open, const mtan_real *restrict tau, size_t N) {
    for (size_t j = 0; j < N; j++) {
        const mtan_real r = open[j], phi = phase((now - shift[j]) / tau[j]), ramp = 2 * phi / r;
        k[j] = phi >= r ? LEAK * phi : phi < r / 2 ? ramp : 2 - ramp;
    }
}

/* k (R, N) at the times (R, 1). */
static void op_time_gate(mtan_tape *tape, mtan_tensor k, mtan_tensor time, mtan_tensor log_tau, mtan_tensor shift,
                         mtan_tensor open) {
    const mtan_tensor tau = mtan_new_constant(tape, 1, k.cols);
    const mtan_tensor t[GATE_TENSORS] = {k, time, log_tau, shift, open, tau};
    mtan_node *node = mtan_record_op(tape, OP_TIME_GATE);
    for (int i = 0; node && i < GATE_TENSORS; i++) node->t[i] = t[i];
    if (!op_runs(tape)) return;
    tape->backend->map(MTAN_EXP, mtan_data(tape, tau), mtan_data(tape, log_tau), (size_t)k.cols);
    for (int32_t i = 0; i < k.rows; i++)
        open_gates(mtan_data(tape, mtan_rows(k, i, 1)), mtan_data(tape, time)[i], mtan_data(tape, shift),
                   mtan_data(tape, open), mtan_data(tape, tau), (size_t)k.cols);
}

/* The phase depends on (t - shift) / tau; the derivative of floor is 0. */
static void open_gates_back(mtan_real *restrict dlog_tau, mtan_real *restrict dshift, mtan_real *restrict dopen,
                            const mtan_real *restrict dk, mtan_real now, const mtan_real *restrict shift,
                            const mtan_real *restrict open, const mtan_real *restrict tau, size_t N) {
    for (size_t j = 0; j < N; j++) {
        const mtan_real r = open[j], periods = (now - shift[j]) / tau[j], phi = phase(periods);
        const mtan_real way = phi < r / 2 ? 1 : -1, slope = 2 * way / r, widening = dk[j] * way * 2 * phi / (r * r);
        const mtan_real dphi = dk[j] * (phi < r ? slope : LEAK);
        dopen[j] -= phi < r ? widening : 0;
        dlog_tau[j] -= dphi * periods;
        dshift[j] -= dphi / tau[j];
    }
}

static void time_gate_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_tensor *t = n->t;
    for (int32_t i = 0; i < t[GATE_K].rows; i++)
        open_gates_back(mtan_grad(tape, t[GATE_LOG_TAU]), mtan_grad(tape, t[GATE_SHIFT]), mtan_grad(tape, t[GATE_OPEN]),
                        mtan_grad(tape, mtan_rows(t[GATE_K], i, 1)), mtan_data(tape, t[GATE_TIME])[i],
                        mtan_data(tape, t[GATE_SHIFT]), mtan_data(tape, t[GATE_OPEN]), mtan_data(tape, t[GATE_TAU]),
                        (size_t)t[GATE_K].cols);
}

/* ---- the LSTM, gates i, f, g, o:  c~ = f c + i g,  h~ = o tanh(c~),  c' = k c~ + (1 - k) c,  h' = k h~ + (1 - k) h ---- */

enum { LSTM_Y, LSTM_GX, LSTM_K, LSTM_W, LSTM_B, LSTM_C, LSTM_KEPT, LSTM_TENSORS }; /* the tensors of its node */

/* kept (2 R + 2 B + 1, N): the states before each row, tanh(c~), room for the gradients of one step, and a row of
 * zeros. */
static mtan_real *kept_rows(const mtan_tape *tape, const mtan_tensor *t, size_t first) {
    return mtan_data(tape, t[LSTM_KEPT]) + first * (size_t)t[LSTM_Y].cols;
}

/* Row b of a step, in all arrays; without a row before, the previous state is zero. */
typedef struct cell {
    mtan_real *h, *c, *gate, *before, *tanh_c;
    const mtan_real *k, *c_before;
} cell;

static mtan_real *zeros(const mtan_tape *tape, const mtan_tensor *t) {
    return kept_rows(tape, t, (size_t)t[LSTM_KEPT].rows - 1);
}

static cell cell_at(const mtan_tape *tape, const mtan_tensor *t, const run_step *s, int32_t b) {
    const size_t N = (size_t)t[LSTM_Y].cols, row = s->row + (size_t)b, from = s->before + (size_t)b;
    cell at;
    at.h = mtan_data(tape, t[LSTM_Y]) + row * (size_t)t[LSTM_Y].stride;
    at.c = mtan_data(tape, t[LSTM_C]) + row * N;
    at.gate = mtan_data(tape, t[LSTM_GX]) + row * 4 * N;
    at.before = kept_rows(tape, t, row);
    at.tanh_c = kept_rows(tape, t, (size_t)t[LSTM_Y].rows + row);
    at.k = mtan_data(tape, t[LSTM_K]) + row * N;
    at.c_before = b < s->known ? mtan_data(tape, t[LSTM_C]) + from * N : zeros(tape, t);
    return at;
}

static void take_states(const mtan_tape *tape, const mtan_tensor *t, const run_step *s) {
    const mtan_tensor y = t[LSTM_Y];
    mtan_real *to = kept_rows(tape, t, s->row);
    tape->backend->copy(to, (size_t)y.cols, mtan_data(tape, y) + s->before * (size_t)y.stride, (size_t)y.stride,
                        s->known, y.cols);
    tape->backend->fill(to + (size_t)(s->known * y.cols), (size_t)(s->rows - s->known) * (size_t)y.cols, 0);
}

/* c~ from the gates (4 N), after their nonlinearities. */
static void find_memory(mtan_real *restrict c, const mtan_real *restrict gate, const mtan_real *restrict before,
                        size_t N) {
    for (size_t j = 0; j < N; j++) c[j] = gate[N + j] * before[j] + gate[j] * gate[2 * N + j];
}

/* h' from tanh(c~) and the states before; c~ becomes c'. */
static void pass_gate(mtan_real *restrict h, mtan_real *restrict c, const mtan_real *restrict k,
                      const mtan_real *restrict out, const mtan_real *restrict tanh_c,
                      const mtan_real *restrict h_before, const mtan_real *restrict c_before, size_t N) {
    for (size_t j = 0; j < N; j++) {
        h[j] = k[j] * out[j] * tanh_c[j] + (1 - k[j]) * h_before[j];
        c[j] = k[j] * c[j] + (1 - k[j]) * c_before[j];
    }
}

static void move_cell(const mtan_tape *tape, const mtan_tensor *t, cell at) {
    const mtan_backend *k = tape->backend;
    const size_t N = (size_t)t[LSTM_Y].cols;
    k->map(MTAN_SIGMOID, at.gate, at.gate, 2 * N);
    k->map(MTAN_TANH, at.gate + 2 * N, at.gate + 2 * N, N);
    k->map(MTAN_SIGMOID, at.gate + 3 * N, at.gate + 3 * N, N);
    find_memory(at.c, at.gate, at.c_before, N);
    k->map(MTAN_TANH, at.tanh_c, at.c, N);
    pass_gate(at.h, at.c, at.k, at.gate + 3 * N, at.tanh_c, at.before, at.c_before, N);
}

static void op_phased_lstm(mtan_tape *tape, mtan_tensor y, mtan_tensor gx, mtan_tensor k, mtan_tensor w_hh,
                           mtan_tensor b_hh, mtan_tensor packed, int32_t reverse) {
    const int32_t R = y.rows, N = y.cols, B = tape->batch->records;
    mtan_tensor t[LSTM_TENSORS] = {y, gx, k, w_hh, b_hh};
    mtan_node *node;
    t[LSTM_C] = mtan_new_constant(tape, R, N);
    t[LSTM_KEPT] = mtan_new_constant(tape, 2 * R + 2 * B + 1, N);
    node = mtan_record_op(tape, OP_PHASED_LSTM);
    if (node) node->n[0] = reverse;
    for (int i = 0; node && i < LSTM_TENSORS; i++) node->t[i] = t[i];
    if (op_runs(tape)) tape->backend->fill(zeros(tape, t), (size_t)N, 0);
    for (int32_t i = 0; op_runs(tape) && i < tape->batch->steps; i++) {
        const run_step s = run_at(tape->batch, i, reverse);
        take_states(tape, t, &s);
        tape->backend->product_packed(mtan_data(tape, gx) + s.row * (size_t)gx.stride, (size_t)gx.stride,
                                      kept_rows(tape, t, s.row), (size_t)N, mtan_data(tape, packed), s.rows, 4 * N, N,
                                      1, i % 2);
        tape->backend->add(mtan_data(tape, gx) + s.row * (size_t)gx.stride, (size_t)gx.stride, mtan_data(tape, b_hh), 0,
                           s.rows, 4 * N);
        for (int32_t b = 0; b < s.rows; b++) move_cell(tape, t, cell_at(tape, t, &s, b));
    }
}

/* Turns gradients of h' and c' into those of h (by the direct path) and c; the gates (4 N) become their own
 * gradients. */
static void move_cell_back(mtan_real *restrict gate, mtan_real *restrict dk, mtan_real *restrict dh,
                           mtan_real *restrict dc, const mtan_real *restrict k, const mtan_real *restrict tanh_c,
                           const mtan_real *restrict h_before, const mtan_real *restrict c_before, size_t N) {
    for (size_t j = 0; j < N; j++) {
        const mtan_real in = gate[j], forget = gate[N + j], g = gate[2 * N + j], o = gate[3 * N + j], c = c_before[j];
        const mtan_real dnew_h = k[j] * dh[j], dnew_c = k[j] * dc[j] + dnew_h * o * (1 - tanh_c[j] * tanh_c[j]);
        dk[j] += dh[j] * (o * tanh_c[j] - h_before[j]) + dc[j] * (forget * c + in * g - c);
        gate[j] = dnew_c * g * in * (1 - in);
        gate[N + j] = dnew_c * c * forget * (1 - forget);
        gate[2 * N + j] = dnew_c * in * (1 - g * g);
        gate[3 * N + j] = dnew_h * tanh_c[j] * o * (1 - o);
        dh[j] *= 1 - k[j];
        dc[j] = (1 - k[j]) * dc[j] + dnew_c * forget;
    }
}

static void phased_lstm_back(mtan_tape *tape, const mtan_node *n) {
    const mtan_backend *k = tape->backend;
    const mtan_tensor *t = n->t, y = t[LSTM_Y], gx = t[LSTM_GX], w = t[LSTM_W];
    const size_t N = (size_t)y.cols, ldy = (size_t)y.stride, ldg = (size_t)gx.stride, ldw = (size_t)w.stride;
    mtan_real *dh = kept_rows(tape, t, 2 * (size_t)y.rows), *dc = dh + (size_t)tape->batch->records * N;
    int32_t carried = 0; /* rows of dh and dc that hold gradients from the step after */
    for (int32_t i = tape->batch->steps - 1; i >= 0; i--) {
        const run_step s = run_at(tape->batch, i, n->n[0]);
        if (carried < s.rows) k->fill(dh + (size_t)carried * N, (size_t)(s.rows - carried) * N, 0);
        if (carried < s.rows) k->fill(dc + (size_t)carried * N, (size_t)(s.rows - carried) * N, 0);
        k->add(dh, N, mtan_grad(tape, y) + s.row * ldy, ldy, s.rows, y.cols);
        for (int32_t b = 0; b < s.rows; b++) {
            const cell at = cell_at(tape, t, &s, b);
            const size_t first = (size_t)b * N;
            move_cell_back(at.gate, mtan_grad(tape, t[LSTM_K]) + s.row * N + first, dh + first, dc + first, at.k,
                           at.tanh_c, at.before, at.c_before, N);
        }
        k->product_nn(dh, N, mtan_data(tape, gx) + s.row * ldg, ldg, mtan_data(tape, w), ldw, s.known, y.cols,
                      4 * y.cols, 1);
        carried = s.known;
    }
    k->product_tn(mtan_grad(tape, w), ldw, mtan_data(tape, gx), ldg, kept_rows(tape, t, 0), N, 4 * y.cols, y.cols,
                  y.rows, 1);
    k->add(mtan_grad(tape, t[LSTM_B]), 0, mtan_data(tape, gx), ldg, y.rows, 4 * y.cols);
}

/* ---- the model ---- */

static void fill_row(mtan_real *restrict to, const mtan_real *restrict x, const mtan_real *restrict seen,
                     const mtan_real *restrict past, size_t D) {
    for (size_t d = 0; d < D; d++) {
        const mtan_real now = x[d], before = past[d];
        to[d] = seen[d] > 0 ? now : before;
    }
}

/* The latest value of each channel at or before a row in the order of the run, 0 before the first: (R, D). */
static mtan_tensor filled_forward(const mtan_forward *f, const dense_rows *rows, int32_t reverse) {
    const mtan_tape *tape = f->tape;
    const mtan_tensor y = mtan_new_constant(f->tape, rows->x.rows, rows->x.cols);
    const size_t D = (size_t)y.cols;
    for (int32_t i = 0; op_runs(tape) && i < tape->batch->steps; i++) {
        const run_step s = run_at(tape->batch, i, reverse);
        for (int32_t b = 0; b < s.rows; b++) {
            const size_t row = (s.row + (size_t)b) * D, before = (s.before + (size_t)b) * D;
            const mtan_real *x = mtan_data(tape, rows->x) + row, *seen = mtan_data(tape, rows->mask) + row;
            mtan_real *to = mtan_data(tape, y) + row;
            if (b < s.known) fill_row(to, x, seen, mtan_data(tape, y) + before, D);
            else tape->backend->copy(to, D, x, D, 1, y.cols); /* x is 0 where it is not observed */
        }
    }
    return y;
}

static void run_direction(const mtan_forward *f, const dense_rows *rows, mtan_tensor states, int32_t reverse) {
    const roles *r = f->roles;
    const mtan_tensor time = mtan_new_constant(f->tape, states.rows, 1),
                      w_hh = mtan_forward_param(f, r->of[reverse].w_hh);
    const mtan_tensor k = mtan_new(f->tape, states.rows, states.cols), packed = packed_weight(f, w_hh);
    const mtan_tensor gx =
        apply_input(f, r->of[reverse].w_ih, r->of[reverse].b_ih, filled_forward(f, rows, reverse), rows->mask);
    mtan_op_copy(f->tape, time, rows->time);
    mtan_op_scale(f->tape, time, reverse ? -f->config->embed_scale : f->config->embed_scale);
    op_time_gate(f->tape, k, time, mtan_forward_param(f, r->of[reverse].log_tau),
                 mtan_forward_param(f, r->of[reverse].shift), mtan_forward_param(f, r->of[reverse].open));
    op_phased_lstm(f->tape, states, gx, k, w_hh, mtan_forward_param(f, r->of[reverse].b_hh), packed, reverse);
}

static void forward(const mtan_forward *f, mtan_outputs *out) {
    const int32_t N = f->config->enc_hidden, n = directions(f->config);
    const dense_rows rows = read_rows(f);
    const mtan_tensor states = mtan_new(f->tape, rows.x.rows, n * N);
    for (int32_t i = 0; i < n; i++) run_direction(f, &rows, mtan_columns(states, i * N, N), i);
    out->logits = classify_states(f, states, ((const roles *)f->roles)->head);
}

static const mtan_backward backward[] = {BASELINE_BACKWARD MTAN_BACKWARD(OP_TIME_GATE, time_gate_back),
                                         MTAN_BACKWARD(OP_PHASED_LSTM, phased_lstm_back)};

const mtan_architecture baseline_phased_lstm = {
    .name = "phased-lstm",
    .settings = settings,
    .defaults = defaults,
    .roles = ROLES(roles),
    .traits = BASELINE_TRAITS,
    .check = check,
    .params = params,
    .init = init,
    .forward = forward,
    .backward = backward,
};
