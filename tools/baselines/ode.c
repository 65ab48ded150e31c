/* See ode.h. */
#include "ode.h"

#include <math.h>
#include <string.h>

enum { STAGES = 7 };
#define ENDLESS 1000 /* factor on `most` if no steps are stored */
#define POOL                                                                                                           \
    192 /* rows that are gathered for one product: with few rows at a time, most work would be moving the weights'
         * gradients */

/* An explicit method. Stage s is f at y0 + h sum over r < s of a[s][r] k_r, s = 0 .. last; the argument of the last
 * stage is the state at the step's end. With `reuses`, f there is the next step's first stage; without, it is not
 * computed. */
typedef struct method {
    int32_t last, reuses;
    double a[STAGES][STAGES - 1];
} method;

/* clang-format off */
static const method methods[] = {
    {1, 0, {{0}, {1}}},
    {4, 0, {{0}, {1. / 3}, {-1. / 3, 1}, {1, -1, 1}, {1. / 8, 3. / 8, 3. / 8, 1. / 8}}},
    {6, 1, {{0},
            {1. / 5},
            {3. / 40, 9. / 40},
            {44. / 45, -56. / 15, 32. / 9},
            {19372. / 6561, -25360. / 2187, 64448. / 6561, -212. / 729},
            {9017. / 3168, -355. / 33, 46732. / 5247, 49. / 176, -5103. / 18656},
            {35. / 384, 0, 500. / 1113, 125. / 192, -2187. / 6784, 11. / 84}}}};
/* dopri5: its result minus that of the method of order 4; and the middle of the step, for the dense output */
static const double error_weight[STAGES] = {35. / 384 - 1951. / 21600, 0, 500. / 1113 - 22642. / 50085,
    125. / 192 - 451. / 720, -2187. / 6784 + 12231. / 42400, 11. / 84 - 649. / 6300, -1. / 60};
static const double middle_weight[STAGES] = {6025192743. / 30085553152. / 2, 0, 51252292925. / 65400821598. / 2,
    -2691868925. / 45128329728. / 2, 187940372067. / 1594534317056. / 2, -1776094331. / 19743644256. / 2,
    11237099. / 235043384. / 2};
/* clang-format on */

/* A running row. Neighbours in the scratch matrices are lanes. */
typedef struct ode_lane {
    int32_t row, next, left; /* its next output; equal steps left until then */
    double time, h, sign;    /* time reached, and step size; both positive */
} ode_lane;

/* A running op: addresses of all that the solver has. */
typedef struct pass {
    mtan_tape *tape;
    const mtan_backend *kernel;
    const ode_solver *solver;
    const method *method;
    ode_row *row;
    ode_output *output;
    ode_lane *lane;
    ode_step *step;
    mtan_real *arg, *k, *dk, *dy, *dy0, *df, *darg, *kept;
    mtan_tensor y, start;
    int32_t rows, lanes; /* rows of the task; number of running ones */
    int32_t *filled;     /* number of used rows in the pool */
    size_t size;         /* of a state */
} pass;

/* ---- layout ---- */

int32_t count_product(mtan_tape *tape, int32_t a, int32_t b) {
    if ((int64_t)a * b <= INT32_MAX) return a * b;
    if (tape->status == MTAN_OK) tape->status = MTAN_ERR_SIZE;
    return 0;
}

mtan_tensor new_bytes(mtan_tape *tape, int32_t n, size_t bytes) {
    return mtan_new_constant(tape, n, (int32_t)((bytes + sizeof(mtan_real) - 1) / sizeof(mtan_real)));
}

void *bytes_of(const mtan_tape *tape, mtan_tensor x) {
    return (void *)mtan_data(tape, x);
}

/* w or its transpose, packed for the backend. */
static mtan_tensor new_packed(mtan_tape *tape, mtan_tensor w, int32_t turned) {
    const int32_t n = turned ? w.cols : w.rows, k = turned ? w.rows : w.cols;
    const size_t ldw = (size_t)w.stride;
    const mtan_tensor packed = mtan_new_constant(tape, 1, (int32_t)tape->backend->pack_count(n, k));
    if (op_runs(tape))
        tape->backend->pack(mtan_data(tape, packed), mtan_data(tape, w), turned ? 1 : ldw, turned ? ldw : 1, n, k);
    return packed;
}

/* The transposes and most of the pool are only needed by the backward pass. */
static void new_field(mtan_tape *tape, ode_solver *s, const mtan_tensor *param) {
    const int32_t slots = tape->recording ? methods[s->set.method].last : 1;
    const int32_t all = count_product(tape, s->set.rows, slots), pool = !tape->recording || all > POOL ? all : POOL;
    for (int32_t i = 0; i < s->linears; i++) {
        const mtan_tensor w = param[2 * i];
        s->weight[i] = w;
        s->bias[i] = param[2 * i + 1];
        s->packed[i] = new_packed(tape, w, 0);
        if (tape->recording) s->turned[i] = new_packed(tape, w, 1);
        s->in[i] = mtan_new_constant(tape, i > 0 || tape->recording ? pool : 0, w.cols);
        s->dout[i] = mtan_new_constant(tape, tape->recording ? pool : 0, w.rows);
    }
    s->filled = new_bytes(tape, 1, sizeof(int32_t));
    if (op_runs(tape)) *(int32_t *)bytes_of(tape, s->filled) = 0;
}

static void new_scratch(mtan_tape *tape, ode_solver *s) {
    const int32_t rows = s->set.rows, back = tape->recording ? rows : 0;
    const int32_t stages = count_product(tape, rows, methods[s->set.method].last + 1);
    s->arg = mtan_new_constant(tape, stages, s->size);
    s->k = mtan_new_constant(tape, stages, s->size);
    s->dk = mtan_new_constant(tape, tape->recording ? stages : 0, s->size);
    s->dy = mtan_new_constant(tape, back, s->size);
    s->dy0 = mtan_new_constant(tape, back, s->size);
    s->df = mtan_new_constant(tape, back, s->size);
    s->darg = mtan_new_constant(tape, back, s->size);
    s->lanes = new_bytes(tape, rows, sizeof(ode_lane));
}

static void new_store(mtan_tape *tape, ode_solver *s) {
    const int32_t slots = tape->recording ? count_product(tape, s->set.owners, s->set.most) : 0;
    s->kept = mtan_new_constant(tape, slots, s->size * (1 + methods[s->set.method].reuses));
    s->steps = new_bytes(tape, slots, sizeof(ode_step));
    s->used = new_bytes(tape, s->set.owners, sizeof(int32_t));
    if (op_runs(tape)) memset(bytes_of(tape, s->used), 0, (size_t)s->set.owners * sizeof(int32_t));
}

/* Its node runs backwards after those of its ops, and flushes the rest of the pool. */
ode_solver ode_solver_of(mtan_tape *tape, const mtan_tensor *param, int32_t linears, ode_settings set) {
    mtan_node *node = mtan_record_op(tape, BASELINE_ODE_SOLVER);
    ode_solver s;
    memset(&s, 0, sizeof s);
    s.set = set;
    s.linears = linears;
    s.size = param[0].cols;
    s.self = new_bytes(tape, 1, sizeof s);
    new_field(tape, &s, param);
    new_scratch(tape, &s);
    new_store(tape, &s);
    if (node) node->t[0] = s.self;
    if (op_runs(tape)) memcpy(bytes_of(tape, s.self), &s, sizeof s);
    return s;
}

ode_solver ode_solver_new(const mtan_forward *f, int32_t index, int32_t layers, ode_settings set) {
    mtan_tensor param[2 * ODE_LINEARS];
    for (int32_t i = 0; i < 2 * (layers + 1); i++) param[i] = mtan_forward_param(f, index + i);
    return ode_solver_of(f->tape, param, layers + 1, set);
}

ode_task ode_task_new(mtan_tape *tape, int32_t rows, int32_t outputs) {
    ode_task t;
    t.rows = rows, t.outputs = outputs;
    t.at[0] = new_bytes(tape, rows, sizeof(ode_row));
    t.at[1] = new_bytes(tape, outputs, sizeof(ode_output));
    t.row = op_runs(tape) ? (ode_row *)bytes_of(tape, t.at[0]) : NULL;
    t.output = op_runs(tape) ? (ode_output *)bytes_of(tape, t.at[1]) : NULL;
    return t;
}

static pass pass_of(mtan_tape *tape, const ode_solver *s, mtan_tensor y, mtan_tensor start, ode_row *row,
                    ode_output *output, int32_t rows) {
    pass p;
    p.tape = tape;
    p.kernel = tape->backend;
    p.solver = s;
    p.method = &methods[s->set.method];
    p.row = row, p.output = output;
    p.lane = (ode_lane *)bytes_of(tape, s->lanes);
    p.step = (ode_step *)bytes_of(tape, s->steps);
    p.arg = mtan_data(tape, s->arg), p.k = mtan_data(tape, s->k);
    p.dk = mtan_data(tape, s->dk), p.dy = mtan_data(tape, s->dy), p.dy0 = mtan_data(tape, s->dy0);
    p.df = mtan_data(tape, s->df), p.darg = mtan_data(tape, s->darg);
    p.kept = mtan_data(tape, s->kept);
    p.y = y, p.start = start;
    p.rows = rows, p.lanes = 0;
    p.filled = (int32_t *)bytes_of(tape, s->filled);
    p.size = (size_t)s->size;
    return p;
}

static void fail(const pass *p, mtan_status status) {
    if (p->tape->status == MTAN_OK) p->tape->status = status;
}

/* The lanes of a stage in arg, k or dk: stages are stored one after the other, without gaps between lanes. */
static mtan_real *stage_of(const pass *p, mtan_real *base, int32_t s) {
    return base + (size_t)s * (size_t)p->lanes * p->size;
}

static mtan_real *lane_of(const pass *p, mtan_real *base, int32_t s, int32_t i) {
    return stage_of(p, base, s) + (size_t)i * p->size;
}

/* The lanes in slot `slot` of the pool's free part. */
static mtan_real *slot_of(const pass *p, mtan_tensor x, int32_t slot) {
    return mtan_data(p->tape, x) + ((size_t)*p->filled + (size_t)slot * (size_t)p->lanes) * (size_t)x.cols;
}

/* ---- the field ---- */

/* f of all lanes. Inputs of its layers stay in a slot; y itself only if a backward pass will follow. */
static void field(const pass *p, mtan_real *f, const mtan_real *y, int32_t slot, int32_t keep) {
    const ode_solver *s = p->solver;
    if (keep) memcpy(slot_of(p, s->in[0], slot), y, (size_t)p->lanes * p->size * sizeof *y);
    for (int32_t i = 0; i < s->linears; i++) {
        const mtan_tensor w = s->weight[i];
        const int32_t hidden = i + 1 < s->linears;
        mtan_real *to = hidden ? slot_of(p, s->in[i + 1], slot) : f;
        p->kernel->copy(to, (size_t)w.rows, mtan_data(p->tape, s->bias[i]), 0, p->lanes, w.rows);
        p->kernel->product_packed(to, (size_t)w.rows, y, (size_t)w.cols, mtan_data(p->tape, s->packed[i]), p->lanes,
                                  w.rows, w.cols, 1, 0);
        if (hidden) p->kernel->map(MTAN_TANH, to, to, (size_t)p->lanes * (size_t)w.rows);
        y = to;
    }
}

/* dy = [dy +] J^T df; gradients of the layers' outputs stay in the slot. */
static void field_back(const pass *p, mtan_real *dy, const mtan_real *df, int32_t slot, int32_t add) {
    const ode_solver *s = p->solver;
    memcpy(slot_of(p, s->dout[s->linears - 1], slot), df, (size_t)p->lanes * p->size * sizeof *df);
    for (int32_t i = s->linears - 1; i >= 0; i--) {
        const mtan_tensor w = s->weight[i];
        mtan_real *to = i > 0 ? slot_of(p, s->dout[i - 1], slot) : dy;
        p->kernel->product_packed(to, (size_t)w.cols, df, (size_t)w.rows, mtan_data(p->tape, s->turned[i]), p->lanes,
                                  w.cols, w.rows, i == 0 && add, 0);
        if (i > 0) p->kernel->tanh_backward(to, slot_of(p, s->in[i], slot), (size_t)p->lanes * (size_t)w.cols);
        df = to;
    }
}

/* Adds the pool's content to the gradients of the weights. */
static void empty_pool(mtan_tape *tape, const ode_solver *s) {
    int32_t *filled = (int32_t *)bytes_of(tape, s->filled);
    for (int32_t i = 0; i < s->linears; i++) {
        const mtan_tensor w = s->weight[i], b = s->bias[i];
        const mtan_real *dout = mtan_data(tape, s->dout[i]);
        if (w.grad != MTAN_NO_GRAD)
            tape->backend->product_tn(mtan_grad(tape, w), (size_t)w.stride, dout, (size_t)w.rows,
                                      mtan_data(tape, s->in[i]), (size_t)w.cols, w.rows, w.cols, *filled, 1);
        if (b.grad != MTAN_NO_GRAD) tape->backend->add(mtan_grad(tape, b), 0, dout, (size_t)w.rows, *filled, w.rows);
    }
    *filled = 0;
}

void ode_solver_back(mtan_tape *tape, const mtan_node *n) {
    empty_pool(tape, (const ode_solver *)bytes_of(tape, n->t[0]));
}

/* Makes room for n slots. */
static void reserve(const pass *p, int32_t n) {
    if (*p->filled + n * p->lanes > p->solver->dout[0].rows) empty_pool(p->tape, p->solver);
}

/* ---- one step of all lanes ---- */

/* y = y0 + h sum of w[r] k_r for one lane */
static void combine(const pass *p, mtan_real *y, const mtan_real *y0, int32_t lane, const double *w, int32_t n,
                    double h) {
    memmove(y, y0, p->size * sizeof *y);
    for (int32_t r = 0; r < n; r++) {
        const mtan_real factor = (mtan_real)(h * w[r]);
        const mtan_real *k = lane_of(p, p->k, r, lane);
        if (w[r] < 0 || w[r] > 0)
            for (size_t j = 0; j < p->size; j++) y[j] += factor * k[j];
    }
}

static double signed_step(const ode_lane *l) {
    return l->sign * l->h;
}

/* Computes the stages from the states in the first argument (and, if the method reuses it, f there); the end state is
 * the last argument. With `keep` each stage uses a slot of its own. */
static void take_step(const pass *p, int32_t keep) {
    const method *m = p->method;
    for (int32_t s = 0; s <= m->last; s++) {
        for (int32_t i = 0; s > 0 && i < p->lanes; i++)
            combine(p, lane_of(p, p->arg, s, i), lane_of(p, p->arg, 0, i), i, m->a[s], s, signed_step(&p->lane[i]));
        if (s >= m->reuses && s < m->last + m->reuses)
            field(p, stage_of(p, p->k, s), stage_of(p, p->arg, s), keep ? s - m->reuses : 0, keep);
    }
}

/* An output in a step is y0 w.start + y1 w.end + h sum of w.k f. */
typedef struct output_weights {
    double start, end, k[STAGES];
} output_weights;

/* Weights at x in (0, 1] of the step: the quartic through both ends, their slopes and the middle; for a method without
 * dense output x is 1. */
static output_weights weights_at(const method *m, double x) {
    const double middle = 16 * x * x * (1 - x) * (1 - x);
    output_weights w;
    memset(&w, 0, sizeof w);
    w.end = 1;
    if (!m->reuses) return w;
    w.start = 1 + x * x * (-11 + x * (18 - 8 * x)) + middle;
    w.end = x * x * (-5 + x * (14 - 8 * x));
    for (int32_t r = 0; r < STAGES; r++) w.k[r] = middle * middle_weight[r];
    w.k[0] += x * (1 + x * (-4 + x * (5 - 2 * x)));
    w.k[STAGES - 1] += x * x * (1 + x * (-3 + 2 * x));
    return w;
}

/* The dense output at x of the step that lane i has taken. */
static void write_output(const pass *p, int32_t row, int32_t i, double x) {
    const output_weights w = weights_at(p->method, x);
    const mtan_real *y0 = lane_of(p, p->arg, 0, i), *y1 = lane_of(p, p->arg, p->method->last, i);
    const mtan_real start = (mtan_real)w.start, end = (mtan_real)w.end;
    mtan_real *y = mtan_data(p->tape, mtan_rows(p->y, row, 1));
    for (size_t j = 0; j < p->size; j++) y[j] = start * y0[j] + end * y1[j];
    combine(p, y, y, i, w.k, STAGES, signed_step(&p->lane[i]));
}

/* ---- running ---- */

static int has_output(const pass *p, const ode_lane *l) {
    const ode_row *r = &p->row[l->row];
    return l->next < r->output + r->outputs;
}

/* Steps that must end at output o; for a method with dense output, whether it needs a step at all. */
static int32_t steps_to(const pass *p, const ode_output *o) {
    return p->method->reuses ? fabs(o->time) > 0 : o->steps;
}

/* Due outputs take the current state. */
static void copy_outputs(const pass *p, ode_lane *l, const mtan_real *y) {
    while (has_output(p, l) && l->left == 0) {
        ode_output *o = &p->output[l->next++];
        o->step = p->row[l->row].steps - 1;
        memcpy(mtan_data(p->tape, mtan_rows(p->y, o->row, 1)), y, p->size * sizeof *y);
        if (has_output(p, l)) l->left = steps_to(p, o + 1);
    }
}

/* Every row with an output beyond its start becomes a lane. */
static void start_lanes(pass *p) {
    const int32_t *used = (const int32_t *)bytes_of(p->tape, p->solver->used);
    for (int32_t i = 0; i < p->rows; i++) {
        ode_row *r = &p->row[i];
        ode_lane *l = &p->lane[p->lanes];
        const mtan_real *y = mtan_data(p->tape, mtan_rows(p->start, r->start, 1));
        r->kept = p->tape->recording ? r->owner * p->solver->set.most + used[r->owner] : 0;
        r->steps = 0;
        l->row = i, l->next = r->output, l->time = 0, l->h = 0;
        l->left = r->outputs ? steps_to(p, &p->output[r->output]) : 0;
        copy_outputs(p, l, y);
        if (!has_output(p, l)) continue;
        l->sign = p->output[l->next].time < 0 ? -1 : 1;
        memcpy(p->arg + (size_t)p->lanes++ * p->size, y, p->size * sizeof *y);
    }
}

/* Stores the step that lane i has taken from its first argument. */
static void keep_step(const pass *p, int32_t i) {
    const ode_lane *l = &p->lane[i];
    const ode_row *r = &p->row[l->row];
    const int32_t room = p->solver->set.most, most = r->most < room ? r->most : room, at = r->kept + r->steps;
    mtan_real *to;
    if (p->tape->recording ? at - r->owner * room >= most : r->steps / ENDLESS >= most) fail(p, MTAN_ERR_MEMORY);
    if (!p->tape->recording || p->tape->status != MTAN_OK) return;
    to = p->kept + (size_t)at * (size_t)p->solver->kept.cols;
    memcpy(to, lane_of(p, p->arg, 0, i), p->size * sizeof *to);
    if (p->method->reuses) memcpy(to + p->size, lane_of(p, p->k, 0, i), p->size * sizeof *to);
    p->step[at].time = l->time;
    p->step[at].h = signed_step(l);
}

/* Reads the outputs reached by a step of lane i. */
static void read_outputs(const pass *p, int32_t i) {
    ode_lane *l = &p->lane[i];
    const double t0 = l->time, t1 = t0 + l->h;
    for (; has_output(p, l) && fabs(p->output[l->next].time) <= t1; l->next++) {
        ode_output *o = &p->output[l->next];
        o->step = p->row[l->row].steps;
        write_output(p, o->row, i, (fabs(o->time) - t0) / (t1 - t0));
    }
    l->time = t1;
}

/* Moves lane i to the end of its step. */
static void accept_step(const pass *p, int32_t i) {
    ode_lane *l = &p->lane[i];
    const mtan_real *y1 = lane_of(p, p->arg, p->method->last, i), *f1 = lane_of(p, p->k, p->method->last, i);
    keep_step(p, i);
    if (p->method->reuses) read_outputs(p, i);
    p->row[l->row].steps++;
    if (!p->method->reuses) {
        l->left--;
        copy_outputs(p, l, y1);
    }
    memcpy(lane_of(p, p->arg, 0, i), y1, p->size * sizeof *y1);
    if (p->method->reuses) memcpy(lane_of(p, p->k, 0, i), f1, p->size * sizeof *f1);
}

/* Compacts the lanes that still have outputs to come. */
static void close_ranks(pass *p) {
    int32_t to = 0;
    for (int32_t i = 0; i < p->lanes; i++) {
        if (!has_output(p, &p->lane[i])) continue;
        p->lane[to] = p->lane[i];
        memmove(p->arg + (size_t)to * p->size, p->arg + (size_t)i * p->size, p->size * sizeof *p->arg);
        memmove(p->k + (size_t)to * p->size, p->k + (size_t)i * p->size, p->size * sizeof *p->k);
        to++;
    }
    p->lanes = to;
}

static void run_equal(pass *p) {
    while (p->lanes > 0 && p->tape->status == MTAN_OK) {
        for (int32_t i = 0; i < p->lanes; i++) {
            const ode_lane *l = &p->lane[i];
            const ode_output *o = &p->output[l->next];
            const double before = l->next > p->row[l->row].output ? o[-1].time : 0;
            p->lane[i].h = l->sign * (o->time - before) / o->steps;
        }
        take_step(p, 0);
        for (int32_t i = 0; i < p->lanes; i++) accept_step(p, i);
        close_ranks(p);
    }
}

/* ---- dopri5 ---- */

/* Root mean square over the lanes of a group of w[0] x_0 + w[1] x_1 + ..., each number divided by its tolerance. The
 * tolerance is that of the state at the start or, if larger, at the end of the step. */
static double group_norm(const pass *p, int32_t first, mtan_real *x, const double *w, int32_t n, int32_t with_end) {
    const ode_settings *set = &p->solver->set;
    double sum = 0;
    for (int32_t i = first; i < first + set->shared; i++)
        for (size_t j = 0; j < p->size; j++) {
            const double start = fabs((double)lane_of(p, p->arg, 0, i)[j]);
            const double end = with_end ? fabs((double)lane_of(p, p->arg, p->method->last, i)[j]) : 0;
            double v = 0;
            for (int32_t r = 0; r < n; r++) v += w[r] * (double)lane_of(p, x, r, i)[j];
            v /= set->atol + set->rtol * (end > start ? end : start);
            sum += v * v;
        }
    return sqrt(sum / ((double)set->shared * (double)p->size));
}

/* Hairer's first step (Hairer, Norsett, Wanner: Solving Ordinary Differential Equations I, II.4), in two halves; the
 * field is evaluated once between them. */
static double try_first(const pass *p, int32_t first, double *d1) {
    const double one[1] = {1}, d0 = group_norm(p, first, p->arg, one, 1, 0);
    *d1 = group_norm(p, first, p->k, one, 1, 0);
    return d0 < 1e-5 || *d1 < 1e-5 ? 1e-6 : 0.01 * d0 / *d1;
}

static double set_first(const pass *p, int32_t first, double h0, double d1) {
    const double minus[2] = {-1, 1}, d2 = group_norm(p, first, p->k, minus, 2, 0) / h0;
    double h1 = pow(0.01 / (d1 > d2 ? d1 : d2), 0.2);
    if (d1 <= 1e-15 && d2 <= 1e-15) h1 = 1e-3 * h0 > 1e-6 ? 1e-3 * h0 : 1e-6;
    return 100 * h0 < h1 ? 100 * h0 : h1;
}

static void first_steps(const pass *p) {
    const int32_t shared = p->solver->set.shared;
    const double one[1] = {1};
    double d1;
    field(p, p->k, p->arg, 0, 0);
    for (int32_t i = 0; i < p->lanes; i++) {
        p->lane[i].h = try_first(p, i / shared * shared, &d1);
        combine(p, lane_of(p, p->arg, 1, i), lane_of(p, p->arg, 0, i), i, one, 1, signed_step(&p->lane[i]));
    }
    field(p, stage_of(p, p->k, 1), stage_of(p, p->arg, 1), 0, 0);
    for (int32_t i = 0; i < p->lanes; i++) {
        const double h0 = try_first(p, i / shared * shared, &d1);
        p->lane[i].h = set_first(p, i / shared * shared, h0, d1);
    }
}

/* The factor on the step size after an error of `ratio` tolerances. */
static double step_factor(double ratio) {
    const double least = ratio < 1 ? 1 : 0.2, factor = 0.9 * pow(ratio, -0.2);
    if (ratio <= 0) return 10;
    if (!(factor > least)) return least; /* also for NaN */
    return factor < 10 ? factor : 10;
}

/* A step that no longer moves the time would never end. */
static void check_steps(const pass *p) {
    for (int32_t i = 0; i < p->lanes; i++) {
        const ode_lane *l = &p->lane[i];
        if (!(l->time + l->h > l->time && l->h < HUGE_VAL)) fail(p, MTAN_ERR_INPUT);
    }
}

static void run_adaptive(pass *p) {
    const int32_t shared = p->solver->set.shared;
    if (p->lanes > 0) first_steps(p);
    while (p->lanes > 0) {
        check_steps(p);
        if (p->tape->status != MTAN_OK) return;
        take_step(p, 0);
        for (int32_t first = 0; first < p->lanes; first += shared) {
            const double ratio = p->lane[first].h * group_norm(p, first, p->k, error_weight, STAGES, 1);
            for (int32_t i = first; i < first + shared; i++) {
                if (ratio <= 1) accept_step(p, i);
                p->lane[i].h *= step_factor(ratio);
            }
        }
        close_ranks(p);
    }
}

void op_ode(mtan_tape *tape, const ode_solver *solver, mtan_tensor y, mtan_tensor start, const ode_task *task) {
    mtan_node *node = mtan_record_op(tape, BASELINE_ODE);
    int32_t *used;
    pass p;
    if (node) {
        node->t[0] = y, node->t[1] = start, node->t[2] = solver->self;
        node->t[3] = task->at[0], node->t[4] = task->at[1];
        node->n[0] = task->rows;
    }
    if (!op_runs(tape)) return;
    p = pass_of(tape, solver, y, start, task->row, task->output, task->rows);
    start_lanes(&p);
    if (p.method->reuses) run_adaptive(&p);
    else run_equal(&p);
    used = (int32_t *)bytes_of(tape, solver->used);
    for (int32_t i = 0; i < p.rows; i++) used[p.row[i].owner] += p.row[i].steps;
}

/* ---- backward ----
 * Rows are ordered by descending number of steps: step j belongs to the first lanes, and a row joins them at its last
 * step. dy and df carry the gradients of the state, and of f there, from the step after. */

static void sort_lanes(const pass *p) {
    for (int32_t i = 0; i < p->rows; i++) {
        int32_t at = i;
        for (; at > 0 && p->row[p->lane[at - 1].row].steps < p->row[i].steps; at--) p->lane[at] = p->lane[at - 1];
        p->lane[at].row = i;
        p->lane[at].next = p->row[i].output + p->row[i].outputs - 1;
    }
}

/* Restores the lanes at the start of step j. */
static void restore_step(pass *p, int32_t j) {
    const size_t width = (size_t)p->solver->kept.cols;
    while (p->lanes < p->rows && p->row[p->lane[p->lanes].row].steps > j) p->lanes++;
    for (int32_t i = 0; i < p->lanes; i++) {
        const int32_t at = p->row[p->lane[i].row].kept + j;
        const mtan_real *kept = p->kept + (size_t)at * width;
        memcpy(lane_of(p, p->arg, 0, i), kept, p->size * sizeof *kept);
        if (p->method->reuses) memcpy(lane_of(p, p->k, 0, i), kept + p->size, p->size * sizeof *kept);
        p->lane[i].time = p->step[at].time;
        p->lane[i].h = fabs(p->step[at].h);
        p->lane[i].sign = p->step[at].h < 0 ? -1 : 1;
    }
}

/* y += factor x, n numbers. */
static void add_scaled(mtan_real *y, const mtan_real *x, double factor, size_t n) {
    const mtan_real f = (mtan_real)factor;
    for (size_t i = 0; i < n; i++) y[i] += f * x[i];
}

/* Adds the gradients of the outputs read in step j. */
static void outputs_back(const pass *p, int32_t i, int32_t j) {
    ode_lane *l = &p->lane[i];
    const double t0 = l->time, t1 = t0 + l->h;
    for (; l->next >= p->row[l->row].output && p->output[l->next].step == j; l->next--) {
        const ode_output *o = &p->output[l->next];
        const output_weights w = weights_at(p->method, (fabs(o->time) - t0) / (t1 - t0));
        const mtan_real *g = mtan_grad(p->tape, mtan_rows(p->y, o->row, 1));
        add_scaled(p->dy + (size_t)i * p->size, g, w.end, p->size);
        add_scaled(p->dy0 + (size_t)i * p->size, g, w.start, p->size);
        for (int32_t r = 0; r <= p->method->last && p->method->reuses; r++)
            add_scaled(lane_of(p, p->dk, r, i), g, signed_step(l) * w.k[r], p->size);
    }
}

/* From the argument of stage s to the state at the start and to the stages before. */
static void argument_back(const pass *p, int32_t s) {
    p->kernel->add(p->dy0, p->size, p->darg, p->size, p->lanes, (int32_t)p->size);
    for (int32_t i = 0; i < p->lanes; i++)
        for (int32_t r = 0; r < s; r++)
            add_scaled(lane_of(p, p->dk, r, i), p->darg + (size_t)i * p->size,
                       signed_step(&p->lane[i]) * p->method->a[s][r], p->size);
}

static void step_back(pass *p, int32_t j) {
    const method *m = p->method;
    size_t n;
    restore_step(p, j);
    reserve(p, m->last);
    n = (size_t)p->lanes * p->size;
    take_step(p, 1);
    p->kernel->fill(p->dk, (size_t)(m->last + 1) * n, 0);
    p->kernel->fill(p->dy0, n, 0);
    if (m->reuses) memcpy(stage_of(p, p->dk, m->last), p->df, n * sizeof *p->df);
    for (int32_t i = 0; i < p->lanes; i++) outputs_back(p, i, j);
    memcpy(p->darg, p->dy, n * sizeof *p->dy);
    if (m->reuses) field_back(p, p->darg, stage_of(p, p->dk, m->last), m->last - 1, 1);
    argument_back(p, m->last);
    for (int32_t s = m->last - 1; s >= m->reuses; s--) {
        field_back(p, p->darg, stage_of(p, p->dk, s), s - m->reuses, 0);
        argument_back(p, s);
    }
    *p->filled += m->last * p->lanes;
    memcpy(p->dy, p->dy0, n * sizeof *p->dy);
    if (m->reuses) memcpy(p->df, p->dk, n * sizeof *p->df);
}

/* The first stage of a row's first step, which no earlier step shares. */
static void first_back(const pass *p) {
    if (p->lanes == 0) return;
    reserve(p, 1);
    field(p, p->k, p->arg, 0, 1);
    field_back(p, p->dy, p->df, 0, 1);
    *p->filled += p->lanes;
}

static void start_back(const pass *p) {
    if (p->start.grad == MTAN_NO_GRAD) return;
    for (int32_t i = 0; i < p->lanes; i++)
        add_scaled(mtan_grad(p->tape, mtan_rows(p->start, p->row[p->lane[i].row].start, 1)),
                   p->dy + (size_t)i * p->size, 1, p->size);
    for (int32_t i = 0; i < p->rows; i++)
        for (int32_t k = 0; k < p->row[i].outputs && p->output[p->row[i].output + k].step < 0; k++)
            add_scaled(mtan_grad(p->tape, mtan_rows(p->start, p->row[i].start, 1)),
                       mtan_grad(p->tape, mtan_rows(p->y, p->output[p->row[i].output + k].row, 1)), 1, p->size);
}

void ode_back(mtan_tape *tape, const mtan_node *n) {
    pass p = pass_of(tape, (const ode_solver *)bytes_of(tape, n->t[2]), n->t[0], n->t[1],
                     (ode_row *)bytes_of(tape, n->t[3]), (ode_output *)bytes_of(tape, n->t[4]), n->n[0]);
    if (p.rows == 0) return;
    sort_lanes(&p);
    p.kernel->fill(p.dy, (size_t)p.rows * p.size, 0);
    p.kernel->fill(p.df, (size_t)p.rows * p.size, 0);
    for (int32_t j = p.row[p.lane[0].row].steps - 1; j >= 0; j--) step_back(&p, j);
    if (p.method->reuses) first_back(&p);
    start_back(&p);
}
