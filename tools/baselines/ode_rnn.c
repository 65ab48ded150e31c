/* See ode_rnn.h. This file also has the model ODE-RNN itself. */
#include "ode_rnn.h"
#include "next.h"

#include <math.h>
#include <string.h>

/* ---- settings and parameters ---- */

int32_t whole_steps(double amount) {
    const double n = floor(amount + 0.007);
    return n < 1 ? 1 : n < 1e9 ? (int32_t)n : 1000000000;
}

int32_t is_solver(const mtan_config *c, const char *name) {
    return is_whole(setting_of(c, name), ODE_EULER, ODE_DOPRI5) && is_whole(setting_of(c, "ode_steps"), 1, 1e6) &&
           setting_of(c, "rtol") >= 0 && setting_of(c, "atol") > 0 && is_whole(setting_of(c, "most_steps"), 1, 1 << 20);
}

mtan_status check_ode_rnn(const mtan_config *c) {
    const int32_t sizes = is_whole(setting_of(c, "units"), 1, 1e6) && is_whole(setting_of(c, "gru_units"), 1, 1e6) &&
                          is_whole(setting_of(c, "rec_layers"), 0, ODE_LINEARS - 2);
    return sizes && is_solver(c, "rec_solver") ? MTAN_OK : MTAN_ERR_CONFIG;
}

enum { UPDATE, RESET, FRESH, NETS };

ode_rnn_roles add_ode_rnn(mtan_params *p, const mtan_config *c, int32_t direction) {
    static const char *const names[NETS] = {"gru.update_gate", "gru.reset_gate", "gru.new_state_net"};
    const int32_t N = c->enc_hidden, in = 2 * N + 2 * c->channels;
    ode_rnn_roles r;
    char name[MTAN_NAME_SIZE];
    for (int32_t i = 0; i < NETS; i++)
        r.net[i] = add_net(p, name_in_direction(name, names[i], direction), in, whole_setting(c, "gru_units"), 1,
                           i == FRESH ? 2 * N : N);
    r.field = add_net(p, name_in_direction(name, "ode", direction), N, whole_setting(c, "units"),
                      whole_setting(c, "rec_layers") + 1, N);
    return r;
}

void start_ode_rnn(const mtan_config *c, mtan_real *weights, const ode_rnn_roles *roles, mtan_mt19937 *rng) {
    for (int32_t i = 0; i < NETS; i++) start_net(c, weights, roles->net[i], 1, rng);
    start_net(c, weights, roles->field, whole_setting(c, "rec_layers") + 1, rng);
}

/* ---- the unit ----
 * u = sigmoid(update(c)), r = sigmoid(reset(c)) with c = [y, s, x, m]; [y~, v] = new([r y, r s, x, m]); y' = (1 - u) y~
 * + u y, s' = (1 - u) |v| + u s. Each net is a hidden layer with tanh and a linear one. The contribution of x and m to
 * the hidden layers is computed for all rows at once, and so are the gradients of the weights. */

typedef struct gru_unit {
    mtan_tensor w1[NETS], w2[NETS], b2[NETS], packed1[NETS], packed2[NETS]; /* w1: the columns of the state */
    mtan_tensor hidden[NETS];                                               /* (R, G) */
    mtan_tensor out[NETS], dout[NETS];   /* (R, N): u, r; (R, 2N): y~ and v; gradients before the sigmoids */
    mtan_tensor state, reset, dreset, h; /* (R, 2N): (y, s) before a row; r times that, its gradient; (y', s') */
    mtan_tensor passed;                  /* (R, 1): 1 where the row is skipped */
    mtan_tensor self;                    /* a copy of this struct */
} gru_unit;

static void new_net(const mtan_forward *f, gru_unit *u, const dense_rows *rows, int32_t i, int32_t index) {
    mtan_tape *tape = f->tape;
    const int32_t R = rows->x.rows, D = rows->x.cols, N2 = 2 * f->config->enc_hidden;
    const mtan_tensor w = mtan_forward_param(f, index), b = mtan_forward_param(f, index + 1);
    u->w1[i] = mtan_columns(w, 0, N2);
    u->w2[i] = mtan_forward_param(f, index + 2);
    u->b2[i] = mtan_forward_param(f, index + 3);
    u->packed1[i] = packed_weight(f, u->w1[i]);
    u->packed2[i] = packed_weight(f, u->w2[i]);
    u->out[i] = mtan_new_constant(tape, R, u->w2[i].rows);
    u->dout[i] = mtan_new_constant(tape, tape->recording ? R : 0, u->w2[i].rows);
    u->hidden[i] = mtan_new(tape, R, w.rows);
    mtan_op_linear(tape, u->hidden[i], rows->x, mtan_columns(w, N2, D), &b);
    mtan_op_linear_add(tape, u->hidden[i], rows->mask, mtan_columns(w, N2 + D, D));
}

static gru_unit unit_new(const mtan_forward *f, const dense_rows *rows, const ode_rnn_run *run) {
    mtan_tape *tape = f->tape;
    const int32_t R = rows->x.rows, N2 = 2 * f->config->enc_hidden;
    mtan_node *node;
    gru_unit u;
    memset(&u, 0, sizeof u);
    for (int32_t i = 0; i < NETS; i++) new_net(f, &u, rows, i, run->roles.net[i]);
    u.state = mtan_new(tape, R, N2);
    u.h = mtan_new(tape, R, N2);
    u.reset = mtan_new_constant(tape, R, N2);
    u.dreset = mtan_new_constant(tape, tape->recording ? tape->batch->records : 0, N2);
    u.passed = passed_rows(f, rows->mask, run->cells);
    u.self = new_bytes(tape, 1, sizeof u);
    if (op_runs(tape)) memcpy(bytes_of(tape, u.self), &u, sizeof u);
    node = mtan_record_op(tape, BASELINE_UNIT_WEIGHTS);
    if (node) node->t[0] = u.self;
    return u;
}

/* c = [c +] a b^T, for all rows of a step, with b packed; starts from the bias, if there is one */
static void multiply(const mtan_tape *tape, mtan_tensor c, mtan_tensor a, mtan_tensor packed, const mtan_tensor *bias) {
    if (bias) tape->backend->copy(mtan_data(tape, c), (size_t)c.stride, mtan_data(tape, *bias), 0, c.rows, c.cols);
    tape->backend->product_packed(mtan_data(tape, c), (size_t)c.stride, mtan_data(tape, a), (size_t)a.stride,
                                  mtan_data(tape, packed), c.rows, c.cols, a.cols, 1, 0);
}

/* Net i for a step's rows: `in` (rows, 2N) is the part of its input without x and m. */
static void run_net(const mtan_tape *tape, const gru_unit *u, int32_t i, mtan_tensor in, int32_t first, int32_t rows) {
    const mtan_tensor hidden = mtan_rows(u->hidden[i], first, rows), out = mtan_rows(u->out[i], first, rows);
    mtan_real *h = mtan_data(tape, hidden);
    multiply(tape, hidden, in, u->packed1[i], NULL);
    tape->backend->map(MTAN_TANH, h, h, (size_t)rows * (size_t)hidden.cols);
    multiply(tape, out, hidden, u->packed2[i], &u->b2[i]);
}

/* Addresses of one row in a step. Two of the lines address the halves of the state: [0, N) is y, [N, 2N) is s. */
typedef struct unit_row {
    mtan_real *u, *r, *fresh, *state, *reset, *h;
    int32_t passed;
} unit_row;

static unit_row unit_row_at(const mtan_tape *tape, const gru_unit *u, int32_t row) {
    unit_row at;
    at.u = mtan_data(tape, mtan_rows(u->out[UPDATE], row, 1));
    at.r = mtan_data(tape, mtan_rows(u->out[RESET], row, 1));
    at.fresh = mtan_data(tape, mtan_rows(u->out[FRESH], row, 1));
    at.state = mtan_data(tape, mtan_rows(u->state, row, 1));
    at.reset = mtan_data(tape, mtan_rows(u->reset, row, 1));
    at.h = mtan_data(tape, mtan_rows(u->h, row, 1));
    at.passed = mtan_data(tape, u->passed)[row] > 0;
    return at;
}

static void op_unit(mtan_tape *tape, const gru_unit *u, int32_t first, int32_t rows) {
    const int32_t N = u->out[UPDATE].cols;
    mtan_node *node = mtan_record_op(tape, BASELINE_UNIT);
    if (node) node->t[0] = u->self, node->n[0] = first, node->n[1] = rows;
    if (!op_runs(tape)) return;
    for (int32_t i = UPDATE; i <= RESET; i++) {
        mtan_real *gate = mtan_data(tape, mtan_rows(u->out[i], first, rows));
        run_net(tape, u, i, mtan_rows(u->state, first, rows), first, rows);
        tape->backend->map(MTAN_SIGMOID, gate, gate, (size_t)rows * (size_t)N);
    }
    for (int32_t i = 0; i < rows; i++) {
        const unit_row at = unit_row_at(tape, u, first + i);
        for (int32_t j = 0; j < N; j++)
            at.reset[j] = at.r[j] * at.state[j], at.reset[N + j] = at.r[j] * at.state[N + j];
        for (int32_t j = 0; at.passed && j < N; j++) at.u[j] = 1;
    }
    run_net(tape, u, FRESH, mtan_rows(u->reset, first, rows), first, rows);
    for (int32_t i = 0; i < rows; i++) {
        const unit_row at = unit_row_at(tape, u, first + i);
        for (int32_t j = 0; j < N; j++) {
            const mtan_real keep = at.u[j], spread = at.fresh[N + j];
            at.h[j] = (1 - keep) * at.fresh[j] + keep * at.state[j];
            at.h[N + j] = (1 - keep) * (spread < 0 ? -spread : spread) + keep * at.state[N + j];
        }
    }
}

/* Backward pass of net i: from dout to the hidden layer, and to `din` [added]. */
static void net_back(const mtan_tape *tape, const gru_unit *u, int32_t i, mtan_real *din, int32_t add, int32_t first,
                     int32_t rows) {
    const mtan_tensor w1 = u->w1[i], w2 = u->w2[i], hidden = mtan_rows(u->hidden[i], first, rows);
    mtan_real *dhidden = mtan_grad(tape, hidden);
    const size_t G = (size_t)hidden.cols;
    tape->backend->product_nn(dhidden, G, mtan_data(tape, mtan_rows(u->dout[i], first, rows)), (size_t)w2.rows,
                              mtan_data(tape, w2), (size_t)w2.stride, rows, w2.cols, w2.rows, 0);
    tape->backend->tanh_backward(dhidden, mtan_data(tape, hidden), (size_t)rows * G);
    tape->backend->product_nn(din, (size_t)w1.cols, dhidden, G, mtan_data(tape, w1), (size_t)w1.stride, rows, w1.cols,
                              w1.rows, add);
}

/* Backward pass of the blend of old and new state. */
static void blend_back(const mtan_tape *tape, const gru_unit *u, int32_t row) {
    const unit_row at = unit_row_at(tape, u, row);
    const int32_t N = u->out[UPDATE].cols;
    const mtan_real *dh = mtan_grad(tape, mtan_rows(u->h, row, 1));
    mtan_real *dstate = mtan_grad(tape, mtan_rows(u->state, row, 1));
    mtan_real *du = mtan_data(tape, mtan_rows(u->dout[UPDATE], row, 1));
    mtan_real *dfresh = mtan_data(tape, mtan_rows(u->dout[FRESH], row, 1));
    for (int32_t j = 0; j < N; j++) {
        const mtan_real keep = at.u[j], v = at.fresh[N + j], sign = (mtan_real)((v > 0) - (v < 0));
        const mtan_real dy = dh[j], ds = dh[N + j];
        dstate[j] += dy * keep, dstate[N + j] += ds * keep;
        dfresh[j] = dy * (1 - keep), dfresh[N + j] = ds * (1 - keep) * sign;
        du[j] = (dy * (at.state[j] - at.fresh[j]) + ds * (at.state[N + j] - sign * v)) * keep * (1 - keep);
    }
}

static void reset_back(const mtan_tape *tape, const gru_unit *u, int32_t row, const mtan_real *dreset) {
    const unit_row at = unit_row_at(tape, u, row);
    const int32_t N = u->out[UPDATE].cols;
    mtan_real *dstate = mtan_grad(tape, mtan_rows(u->state, row, 1));
    mtan_real *dr = mtan_data(tape, mtan_rows(u->dout[RESET], row, 1));
    for (int32_t j = 0; j < N; j++) {
        dstate[j] += dreset[j] * at.r[j], dstate[N + j] += dreset[N + j] * at.r[j];
        dr[j] = (dreset[j] * at.state[j] + dreset[N + j] * at.state[N + j]) * at.r[j] * (1 - at.r[j]);
    }
}

void ode_rnn_unit_back(mtan_tape *tape, const mtan_node *n) {
    const gru_unit *u = (const gru_unit *)bytes_of(tape, n->t[0]);
    const int32_t first = n->n[0], rows = n->n[1];
    mtan_real *dreset = mtan_data(tape, u->dreset), *dstate = mtan_grad(tape, mtan_rows(u->state, first, rows));
    for (int32_t i = 0; i < rows; i++) blend_back(tape, u, first + i);
    net_back(tape, u, FRESH, dreset, 0, first, rows);
    for (int32_t i = 0; i < rows; i++) reset_back(tape, u, first + i, dreset + (size_t)i * (size_t)u->dreset.cols);
    net_back(tape, u, UPDATE, dstate, 1, first, rows);
    net_back(tape, u, RESET, dstate, 1, first, rows);
}

/* dw += dy^T x over all rows */
static void weight_back(const mtan_tape *tape, mtan_tensor w, const mtan_real *dy, mtan_tensor x) {
    tape->backend->product_tn(mtan_grad(tape, w), (size_t)w.stride, dy, (size_t)w.rows, mtan_data(tape, x),
                              (size_t)x.stride, w.rows, w.cols, x.rows, 1);
}

void ode_rnn_weights_back(mtan_tape *tape, const mtan_node *n) {
    const gru_unit *u = (const gru_unit *)bytes_of(tape, n->t[0]);
    for (int32_t i = 0; i < NETS; i++) {
        const mtan_real *dout = mtan_data(tape, u->dout[i]);
        weight_back(tape, u->w1[i], mtan_grad(tape, u->hidden[i]), i == FRESH ? u->reset : u->state);
        weight_back(tape, u->w2[i], dout, u->hidden[i]);
        tape->backend->add(mtan_grad(tape, u->b2[i]), 0, dout, (size_t)u->dout[i].cols, u->dout[i].rows,
                           u->dout[i].cols);
    }
}

/* ---- intervals ---- */

/* The interval of the ODE before a row. */
typedef struct interval {
    double length;
    int32_t steps;
} interval;

/* The interval before the j-th counted row (from 0), which comes `gap` after the row before it; gap_before is the gap
 * before that row. The published ODE-RNN goes back by a hundredth, then ahead by the whole span in one step, then back
 * by the previous gap. Where the number of steps matters, the published code counts points, which gives one step
 * fewer. */
static interval interval_at(int32_t j, double gap, double gap_before, double span, double steps,
                            ode_rnn_intervals kind) {
    interval i = {j == 0 ? 0 : gap, 0};
    if (kind == PUBLISHED_LAGGING) i.length = j == 0 ? -0.01 : j == 1 ? span : -gap_before;
    if (kind == PUBLISHED_EARLY && j == 0) i.length = 0.01;
    if (kind != GAPS || j > 0) i.steps = whole_steps(steps * fabs(i.length) / span);
    if (kind != GAPS) i.steps = (kind == PUBLISHED_LAGGING && j == 1) || i.steps < 2 ? 1 : i.steps - 1;
    return i;
}

/* The intervals of all rows of one record. */
static void fill_intervals(interval *out, row_walk w, double steps, ode_rnn_intervals kind) {
    double first = 0, last = 0, before = 0, gap = 0;
    const row_walk start = w;
    int32_t count = 0;
    for (; walk_next(&w); count++) {
        last = walk_time(&w);
        first = count == 0 ? last : first;
    }
    w = start;
    for (int32_t j = 0; count > 1 && walk_next(&w); j++) {
        const double time = walk_time(&w), gap_before = gap;
        gap = j == 0 ? 0 : time - before;
        out[walk_row(&w)] = interval_at(j, gap, gap_before, last - first, steps, kind);
        before = time;
    }
}

static const interval *intervals_of(const mtan_forward *f, mtan_tensor time, mtan_tensor passed,
                                    const ode_rnn_run *run) {
    const mtan_tensor at = new_bytes(f->tape, time.rows, sizeof(interval));
    interval *out = (interval *)bytes_of(f->tape, at);
    if (!op_runs(f->tape)) return NULL;
    memset(out, 0, (size_t)time.rows * sizeof *out);
    for (int32_t b = 0; b < f->tape->batch->records; b++)
        fill_intervals(out, walk_start(f, time, passed, b, run->reverse), setting_of(f->config, "ode_steps"),
                       run->intervals);
    return out;
}

/* ---- the run ---- */

/* Step i of the run; while sizes are counted, the largest that is possible. */
static run_step step_at(const mtan_tape *tape, int32_t i, int32_t reverse) {
    const int32_t B = tape->batch->records;
    const run_step most = {i, (size_t)i * (size_t)B, 0, B, B};
    return op_runs(tape) ? run_at(tape->batch, i, reverse) : most;
}

/* Enough for equal steps over the whole span, for any distribution of its rows. */
static int32_t most_steps(const mtan_config *c, int32_t rows) {
    return whole_setting(c, "ode_steps") + 2 * rows + whole_setting(c, "most_steps");
}

static ode_solver solver_new(const mtan_forward *f, int32_t index) {
    const mtan_config *c = f->config;
    const int32_t B = f->tape->batch->records;
    const ode_settings set = {(ode_method)whole_setting(c, "rec_solver"),
                              setting_of(c, "rtol"),
                              setting_of(c, "atol"),
                              B,
                              B,
                              most_steps(c, f->tape->batch->steps),
                              1};
    return ode_solver_new(f, index, whole_setting(c, "rec_layers") + 1, set);
}

/* Moves y of `rows` rows from `first` on, for records from `record` on, from `start` over their intervals. */
static void move(const mtan_forward *f, const ode_solver *solver, mtan_tensor y, mtan_tensor start,
                 const interval *before, int32_t record) {
    ode_task task = ode_task_new(f->tape, y.rows, y.rows);
    for (int32_t i = 0; task.row && i < y.rows; i++) {
        const ode_row row = {i, record + i, most_steps(f->config, f->tape->batch->length[record + i]), i, 1, 0, 0};
        const ode_output output = {before[i].length, i, before[i].steps, 0};
        task.row[i] = row;
        task.output[i] = output;
    }
    op_ode(f->tape, solver, y, start, &task);
}

mtan_tensor apply_ode_rnn(const mtan_forward *f, const dense_rows *rows, ode_rnn_run run) {
    mtan_tape *tape = f->tape;
    const int32_t N = f->config->enc_hidden;
    const gru_unit u = unit_new(f, rows, &run);
    const interval *before = intervals_of(f, rows->time, u.passed, &run);
    const ode_solver solver = solver_new(f, run.roles.field);
    const mtan_tensor zero = mtan_new_constant(tape, tape->batch->records, 2 * N);
    if (op_runs(tape)) tape->backend->fill(mtan_data(tape, zero), (size_t)zero.rows * (size_t)zero.cols, 0);
    for (int32_t i = 0; i < tape->batch->steps; i++) {
        const run_step s = step_at(tape, i, run.reverse);
        const int32_t first = (int32_t)s.row, fresh = op_runs(tape) ? s.rows - s.known : s.rows;
        const mtan_tensor from = mtan_rows(u.h, (int32_t)s.before, s.known), to = mtan_rows(u.state, first, s.known);
        const mtan_tensor start = mtan_rows(zero, 0, fresh), begun = mtan_rows(u.state, first + s.rows - fresh, fresh);
        const interval *at = before ? before + first : NULL;
        mtan_op_copy(tape, mtan_columns(to, N, N), mtan_columns(from, N, N));
        mtan_op_copy(tape, begun, start);
        move(f, &solver, mtan_columns(to, 0, N), mtan_columns(from, 0, N), at, 0);
        if (run.intervals != GAPS)
            move(f, &solver, mtan_columns(begun, 0, N), mtan_columns(start, 0, N), at ? at + s.known : NULL, s.known);
        op_unit(tape, &u, first, s.rows);
    }
    return u.h;
}

/* ---- ODE-RNN ---- */

static const char *const settings[] = {"faithful",  "bidirectional", "units", "gru_units",  "rec_layers", "rec_solver",
                                       "ode_steps", "rtol",          "atol",  "most_steps", "next",       NULL};
static const double defaults[] = {0, 0, 50, 50, 3, ODE_EULER, 50, 1e-3, 1e-4, ODE_MOST_STEPS, 0};

/* Do the states also predict the next row? */
static int32_t tells_next(const mtan_config *c) {
    return setting_of(c, "next") > 0;
}

static int32_t directions(const mtan_config *c) {
    return setting_of(c, "bidirectional") > 0 ? 2 : 1;
}

static mtan_status check(const mtan_config *c) {
    const mtan_status status = check_sequence(c, setting_of(c, "bidirectional"));
    if (status != MTAN_OK || !is_switch(setting_of(c, "faithful")) || !is_switch(setting_of(c, "next")))
        return MTAN_ERR_CONFIG;
    if (tells_next(c) && c->classify != MTAN_CLASSIFY_RECORD) return MTAN_ERR_CONFIG;
    return check_ode_rnn(c);
}

typedef struct roles {
    ode_rnn_roles of[2]; /* of each direction */
    int32_t head, next;
} roles;

static void params(const mtan_config *c, mtan_params *p, void *out) {
    roles *r = out;
    for (int32_t i = 0; i < directions(c); i++) r->of[i] = add_ode_rnn(p, c, i);
    r->head = add_head(p, c, directions(c) * c->enc_hidden);
    if (tells_next(c)) r->next = add_next(p, c);
}

static void init(const mtan_config *c, const void *indices, mtan_real *weights, mtan_mt19937 *rng) {
    const roles *r = indices;
    for (int32_t i = 0; i < directions(c); i++) start_ode_rnn(c, weights, &r->of[i], rng);
    start_net(c, weights, r->head, c->head_hidden ? 2 : 0, rng);
    if (tells_next(c)) start_next(c, weights, r->next, rng);
}

static void forward(const mtan_forward *f, mtan_outputs *out) {
    const mtan_config *c = f->config;
    const roles *r = f->roles;
    const int32_t N = c->enc_hidden, count = directions(c);
    const dense_rows rows = read_rows(f);
    const mtan_tensor states = mtan_new(f->tape, rows.x.rows, count * N);
    for (int32_t i = 0; i < count; i++) {
        const ode_rnn_run run = {r->of[i], i, setting_of(c, "faithful") > 0 ? PUBLISHED_LAGGING : GAPS, 0};
        mtan_op_copy(f->tape, mtan_columns(states, i * N, N), mtan_columns(apply_ode_rnn(f, &rows, run), 0, N));
    }
    out->logits = classify_states(f, states, r->head);
    if (tells_next(c) && f->wanted & MTAN_WANT_LOSS) out->penalty = next_loss(f, states, &rows, r->next);
}

static const mtan_backward backward[] = {ODE_RNN_BACKWARD};

extern const mtan_architecture baseline_ode_rnn;
const mtan_architecture baseline_ode_rnn = {
    .name = "ode-rnn",
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
