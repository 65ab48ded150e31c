/* The ODE solvers of the baselines: values, gradients and accepted steps against torchdiffeq (golden/ode-solvers), gradients against
 * finite differences, rows against themselves in other company, and runs that must end. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden_file.h"
#include "greatest.h"
#include "ladder.h"
#include "tape_test.h"
#include "../../tools/baselines/ode.h"

#define FILE_NAME "ode-solvers.safetensors"
enum { STATES = 3, UNITS = 6, ROWS = 4, TIMES = 7, LINEARS = 3, MOST = 128, TAKEN = 512 };

static const mtan_backward backward[] = {ODE_BACKWARD};

/* ---- the field and the starts of the file ---- */

static const struct {
    const char *name;
    int32_t rows, cols;
} params[2 * LINEARS] = {{"flow.0.weight", UNITS, STATES}, {"flow.0.bias", 1, UNITS},
                         {"flow.2.weight", UNITS, UNITS},  {"flow.2.bias", 1, UNITS},
                         {"flow.4.weight", STATES, UNITS}, {"flow.4.bias", 1, STATES}};

typedef struct {
    const char *name;
    ode_method method;
    double rtol, atol;
    int32_t shared;
    double sign;
} ode_case;

static const ode_case cases[] = {{"euler", ODE_EULER, 0, 0, 1, 1},
                                 {"rk4", ODE_RK4, 0, 0, 1, 1},
                                 {"dopri5", ODE_DOPRI5, 1e-3, 1e-4, 1, 1},
                                 {"dopri5-tight", ODE_DOPRI5, 1e-4, 1e-5, 1, 1},
                                 {"dopri5-shared", ODE_DOPRI5, 1e-3, 1e-4, ROWS, 1},
                                 {"dopri5-backward", ODE_DOPRI5, 1e-3, 1e-4, 1, -1},
                                 {"dopri5-double", ODE_DOPRI5, 1e-9, 1e-11, 1, 1}};

static int read_reals(const char *tensor, mtan_real *out, size_t n) {
    float values[64];
    if (n > 64 || !golden_read(FILE_NAME, tensor, MTAN_DTYPE_F32, values, n)) return 0;
    for (size_t i = 0; i < n; i++) out[i] = (mtan_real)values[i];
    return 1;
}

static mtan_tensor stored(piece *p, const char *name, int32_t rows, int32_t cols) {
    const mtan_tensor x = piece_input(p, name, rows, cols, 0, NULL);
    if (piece_runs(p) && !read_reals(name, mtan_data(&p->tape, x), (size_t)rows * (size_t)cols))
        p->tape.status = MTAN_ERR_FILE;
    return x;
}

static ode_settings settings_of(const ode_case *c, int32_t rows) {
    const ode_settings set = {c->method, c->rtol, c->atol, rows, rows, MOST, c->shared};
    return set;
}

static int32_t equal_steps(double gap) {
    const int32_t n = (int32_t)floor(20 * gap + 0.007);
    return gap > 0 && n < 1 ? 1 : n;
}

/* Rows `first` to `first + rows` of the file's problem, each with outputs at all times. */
static void fill_task(ode_task *task, const ode_case *c, int32_t first) {
    mtan_real time[TIMES];
    if (!task->row || !read_reals("time", time, TIMES)) return;
    for (int32_t i = 0; i < task->rows; i++) {
        const ode_row row = {first + i, i, MOST, i * TIMES, TIMES, 0, 0};
        task->row[i] = row;
        for (int32_t k = 0; k < TIMES; k++) {
            const double at = (double)time[k], before = k ? (double)time[k - 1] : 0;
            const ode_output o = {c->sign * at, i * TIMES + k, equal_steps(at - before), 0};
            task->output[i * TIMES + k] = o;
        }
    }
}

typedef struct {
    const ode_case *c;
    ode_solver *solver; /* both are handed out */
    ode_task *task;
} golden_argument;

static void build_golden(piece *p) {
    const golden_argument *a = p->argument;
    mtan_tensor param[2 * LINEARS], start, out;
    p->tape.user = backward;
    for (int32_t i = 0; i < 2 * LINEARS; i++) param[i] = stored(p, params[i].name, params[i].rows, params[i].cols);
    start = stored(p, "start", ROWS, STATES);
    out = mtan_new(&p->tape, ROWS * TIMES, STATES);
    *a->solver = ode_solver_of(&p->tape, param, LINEARS, settings_of(a->c, ROWS));
    *a->task = ode_task_new(&p->tape, ROWS, ROWS * TIMES);
    fill_task(a->task, a->c, 0);
    op_ode(&p->tape, a->solver, out, start, a->task);
    piece_keep(p, PIECE_VALUE, "out", out);
    for (size_t i = 0; piece_runs(p) && i < ROWS * TIMES * STATES; i++) {
        char name[64];
        snprintf(name, sizeof name, "cot.%s", a->c->name);
        mtan_grad(&p->tape, out)[i] = (mtan_real)golden_u(name, i);
    }
}

/* The steps of every row, or of the first where all share them, as torchdiffeq took them. In float the states, and with them the
 * error and the next step, are a little others: their number must be the same. */
static int steps_agree(const piece *p, const golden_argument *a) {
    const ode_step *taken = (const ode_step *)(const void *)mtan_data(&p->tape, a->solver->steps);
    const int32_t sets = ROWS / a->c->shared;
    const double limit = sizeof(mtan_real) == sizeof(float) ? 2e-2 : a->c->rtol < 1e-7 ? 1e-4 : 1e-9;
    int32_t offset[ROWS + 1];
    double expected[2 * TAKEN];
    char name[64];
    snprintf(name, sizeof name, "%s/step_offset", a->c->name);
    if (!golden_read(FILE_NAME, name, MTAN_DTYPE_I32, offset, (size_t)sets + 1)) return 0;
    snprintf(name, sizeof name, "%s/step", a->c->name);
    if (offset[sets] > TAKEN || !golden_read(FILE_NAME, name, MTAN_DTYPE_F64, expected, 2 * (size_t)offset[sets]))
        return 0;
    for (int32_t i = 0; i < ROWS; i++) {
        const ode_row *r = &a->task->row[i];
        const double *e = expected + 2 * offset[i / a->c->shared];
        if (r->steps != offset[i / a->c->shared + 1] - offset[i / a->c->shared]) return 0;
        for (int32_t k = 0; k < r->steps; k++) {
            const ode_step *s = &taken[r->kept + k];
            if (!(fabs(s->time - e[2 * k]) <= limit * (e[2 * k] + e[2 * k + 1])) ||
                !(fabs(fabs(s->h) - e[2 * k + 1]) <= limit * e[2 * k + 1]))
                return 0;
        }
    }
    return 1;
}

/* At tolerances beyond float32 there is no float32 error to go by. */
static int tight_agrees(const piece *p) {
    static const char *const names[] = {"out",
                                        "grad.start",
                                        "grad.flow.0.weight",
                                        "grad.flow.0.bias",
                                        "grad.flow.2.weight",
                                        "grad.flow.2.bias",
                                        "grad.flow.4.weight",
                                        "grad.flow.4.bias"};
    int ok = 1;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *own = i ? names[i] + 5 : names[i];
        const mtan_tensor x = piece_find(p, own);
        const size_t n = (size_t)x.rows * (size_t)x.cols;
        mtan_real got[ROWS * TIMES * STATES];
        double expected[ROWS * TIMES * STATES];
        char name[64];
        snprintf(name, sizeof name, "%s/%s", p->name, names[i]);
        if (!golden_read(FILE_NAME, name, MTAN_DTYPE_F64, expected, n)) return 0;
        if (i) piece_gradient(p, own, got);
        else piece_values(p, own, got);
        ok = check_norm(name, got, expected, n, 0, 1e-10) && ok;
    }
    return ok;
}

TEST solves_as_torchdiffeq(const ode_case *c) {
    const int beyond_float = c->rtol > 0 && c->rtol < 1e-7;
    ode_solver solver;
    ode_task task;
    const golden_argument a = {c, &solver, &task};
    piece p;
    if (beyond_float && sizeof(mtan_real) == sizeof(float)) SKIPm("its tolerances need the double build");
    ASSERT(piece_run(&p, c->name, build_golden, &a));
    ASSERT(beyond_float ? tight_agrees(&p) : piece_compare(&p, FILE_NAME));
    if (c->method == ODE_DOPRI5) ASSERT(steps_agree(&p, &a));
    ASSERT(piece_end(&p));
    PASS();
}

/* ---- a problem on a tape of its own ---- */

typedef struct {
    mtan_tape tape;
    mtan_batch batch;
    mtan_tensor param[2 * LINEARS], start;
} scene;

/* Weights are those of the file times `scale`; and its starts. */
static void scene_open(scene *s, int32_t recording, double scale) {
    const size_t reals = 1 << 18;
    memset(s, 0, sizeof *s);
    s->tape.backend = &mtan_backend_scalar;
    s->tape.batch = &s->batch;
    s->tape.user = backward;
    s->tape.recording = recording;
    s->tape.capacity = reals;
    s->tape.work = guard_alloc(reals * sizeof(mtan_real));
    for (int32_t i = 0; i < 2 * LINEARS; i++) {
        const size_t n = (size_t)params[i].rows * (size_t)params[i].cols;
        s->param[i] = mtan_new(&s->tape, params[i].rows, params[i].cols);
        if (!read_reals(params[i].name, mtan_data(&s->tape, s->param[i]), n)) s->tape.status = MTAN_ERR_FILE;
        for (size_t k = 0; k < n; k++) mtan_data(&s->tape, s->param[i])[k] *= (mtan_real)scale;
    }
    s->start = mtan_new(&s->tape, ROWS, STATES);
    if (!read_reals("start", mtan_data(&s->tape, s->start), ROWS * STATES)) s->tape.status = MTAN_ERR_FILE;
}

static int scene_close(scene *s) {
    return guard_free(s->tape.work);
}

/* The file's problem for `rows` rows from `first` on. */
static mtan_tensor scene_solve(scene *s, const ode_case *c, int32_t first, int32_t rows) {
    const mtan_tensor out = mtan_new(&s->tape, rows * TIMES, STATES);
    const ode_solver solver = ode_solver_of(&s->tape, s->param, LINEARS, settings_of(c, rows));
    ode_task task = ode_task_new(&s->tape, rows, rows * TIMES);
    fill_task(&task, c, first);
    op_ode(&s->tape, &solver, out, s->start, &task);
    return out;
}

/* A row alone has the bits that it has among others, with gradients or without. */
TEST rows_do_not_see_each_other(const ode_case *c) {
    scene all, one;
    mtan_tensor out, alone;
    if (c->shared > 1) SKIPm("rows that share their steps do");
    scene_open(&all, 1, 1);
    out = scene_solve(&all, c, 0, ROWS);
    ASSERT_EQ(MTAN_OK, all.tape.status);
    for (int32_t i = 0; i < ROWS; i++) {
        scene_open(&one, i % 2, 1);
        alone = scene_solve(&one, c, i, 1);
        ASSERT_EQ(MTAN_OK, one.tape.status);
        ASSERT(check_same("a row", mtan_data(&one.tape, alone), mtan_data(&all.tape, mtan_rows(out, i * TIMES, TIMES)),
                          TIMES * STATES * sizeof(mtan_real)));
        ASSERT(scene_close(&one));
    }
    ASSERT(scene_close(&all));
    PASS();
}

/* sum(out * u("cot", i)) with entry `k` of parameter `i` (of the starts, past the last one) moved by `by` */
static double moved_loss(const ode_case *c, int32_t i, size_t k, double by) {
    scene s;
    mtan_tensor out;
    double loss = 0;
    scene_open(&s, 0, 0.5);
    mtan_data(&s.tape, i < 2 * LINEARS ? s.param[i] : s.start)[k] += (mtan_real)by;
    out = scene_solve(&s, c, 0, ROWS);
    for (size_t j = 0; j < ROWS * TIMES * STATES; j++) loss += (double)mtan_data(&s.tape, out)[j] * golden_u("cot", j);
    return scene_close(&s) && s.tape.status == MTAN_OK ? loss : NAN;
}

/* Steps follow the weights, which the gradient leaves out: with dopri5 a difference has jumps as large as the tolerance, which
 * must be small, and the field tame. */
TEST gradients_are_finite_differences(ode_method method) {
    const ode_case fine = {"", method, 1e-11, 1e-12, 1, 1}, *const c = &fine;
    const double by = 1e-4;
    scene s;
    mtan_tensor out;
    if (sizeof(mtan_real) == sizeof(float)) SKIPm("finite differences need the double build");
    scene_open(&s, 1, 0.5);
    out = scene_solve(&s, c, 0, ROWS);
    for (size_t j = 0; j < ROWS * TIMES * STATES; j++) mtan_grad(&s.tape, out)[j] = (mtan_real)golden_u("cot", j);
    mtan_backpropagate(&s.tape);
    for (int32_t i = 0; i <= 2 * LINEARS; i++) {
        const mtan_tensor x = i < 2 * LINEARS ? s.param[i] : s.start;
        for (size_t k = 0; k < (size_t)x.rows * (size_t)x.cols; k++) {
            const double found = (moved_loss(c, i, k, by) - moved_loss(c, i, k, -by)) / (2 * by);
            const double expected = (double)mtan_grad(&s.tape, x)[k];
            ASSERT(fabs(found - expected) <= 1e-6 * (1 + fabs(expected)));
        }
    }
    ASSERT(scene_close(&s));
    PASS();
}

/* ---- outputs, owners, ends ---- */

/* At the start, twice at one time, none at all, from one start into both directions. */
TEST outputs_may_repeat_or_be_absent(const ode_case *c) {
    static const ode_output wanted[] = {{0, 0, 0, 0},   {0.25, 1, 5, 0},  {0.25, 2, 0, 0},
                                        {0.5, 3, 5, 0}, {-0.25, 4, 5, 0}, {0, 5, 0, 0}};
    static const ode_row rows[] = {
        {1, 0, MOST, 0, 4, 0, 0}, {1, 1, MOST, 4, 1, 0, 0}, {2, 2, MOST, 5, 0, 0, 0}, {3, 3, MOST, 5, 1, 0, 0}};
    const ode_settings set = {c->method, c->rtol, c->atol, 4, 4, MOST, 1};
    const size_t state = STATES * sizeof(mtan_real);
    scene s;
    mtan_tensor out;
    ode_solver solver;
    ode_task task;
    scene_open(&s, 1, 1);
    out = mtan_new(&s.tape, 6, STATES);
    solver = ode_solver_of(&s.tape, s.param, LINEARS, set);
    task = ode_task_new(&s.tape, 4, 6);
    memcpy(task.row, rows, sizeof rows);
    memcpy(task.output, wanted, sizeof wanted);
    op_ode(&s.tape, &solver, out, s.start, &task);
    ASSERT_EQ(MTAN_OK, s.tape.status);
    ASSERT(check_same("the start", mtan_data(&s.tape, out), mtan_data(&s.tape, mtan_rows(s.start, 1, 1)), state));
    ASSERT(check_same("a start alone", mtan_data(&s.tape, mtan_rows(out, 5, 1)),
                      mtan_data(&s.tape, mtan_rows(s.start, 3, 1)), state));
    ASSERT(check_same("a repeat", mtan_data(&s.tape, mtan_rows(out, 1, 1)), mtan_data(&s.tape, mtan_rows(out, 2, 1)),
                      state));
    ASSERT(memcmp(mtan_data(&s.tape, mtan_rows(out, 1, 1)), mtan_data(&s.tape, mtan_rows(out, 4, 1)), state) != 0);
    ASSERT_EQ(0, task.row[2].steps + task.row[3].steps);
    for (size_t i = 0; i < 6 * STATES; i++) mtan_grad(&s.tape, out)[i] = 1;
    mtan_backpropagate(&s.tape);
    for (size_t j = 0; j < STATES; j++) { /* what has no output has no gradient, and the identity has 1 */
        ASSERT_EQ(0, mtan_grad(&s.tape, mtan_rows(s.start, 2, 1))[j]);
        ASSERT_EQ(1, mtan_grad(&s.tape, mtan_rows(s.start, 3, 1))[j]);
    }
    ASSERT(scene_close(&s));
    PASS();
}

/* Two ops on one solver, the second from where the first ended: with equal steps the bits of one op over both. */
TEST ops_of_one_solver_follow_each_other(void) {
    static const ode_output whole[] = {{0.25, 0, 3, 0}, {0.75, 1, 6, 0}}, first = {0.25, 0, 3, 0},
                            second = {0.5, 0, 6, 0};
    static const ode_row row = {0, 0, MOST, 0, 1, 0, 0}, both = {0, 0, MOST, 0, 2, 0, 0};
    const ode_settings set = {ODE_RK4, 0, 0, 1, 1, 9, 1};
    scene s[2];
    mtan_tensor out[2];
    for (int i = 0; i < 2; i++) {
        ode_solver solver;
        scene_open(&s[i], 1, 1);
        out[i] = mtan_new(&s[i].tape, 2, STATES);
        solver = ode_solver_of(&s[i].tape, s[i].param, LINEARS, set);
        for (int k = 0; k <= i; k++) {
            ode_task task = ode_task_new(&s[i].tape, 1, 2 - i);
            task.row[0] = i ? row : both;
            memcpy(task.output, i == 0 ? whole : k == 0 ? &first : &second, (size_t)(2 - i) * sizeof first);
            op_ode(&s[i].tape, &solver, i ? mtan_rows(out[i], k, 1) : out[i], k ? mtan_rows(out[i], 0, 1) : s[i].start,
                   &task);
        }
        ASSERT_EQ(MTAN_OK, s[i].tape.status);
        for (size_t j = 0; j < STATES; j++) mtan_grad(&s[i].tape, out[i])[STATES + j] = 1;
        mtan_backpropagate(&s[i].tape);
    }
    ASSERT(check_same("states", mtan_data(&s[0].tape, out[0]), mtan_data(&s[1].tape, out[1]),
                      2 * STATES * sizeof(mtan_real)));
    ASSERT(check_same("gradients", mtan_grad(&s[0].tape, s[0].start), mtan_grad(&s[1].tape, s[1].start),
                      STATES * sizeof(mtan_real)));
    ASSERT(scene_close(&s[0]));
    ASSERT(scene_close(&s[1]));
    PASS();
}

/* How y' = -rate tanh(tanh(y)) from `start` to time 1 ends; its steps have to be as short as 3 / rate. */
static mtan_status decay_ends(double rate, mtan_real start, double atol, int32_t most, int32_t recording) {
    static const ode_output output = {1, 0, 0, 0};
    static const ode_row row = {0, 0, MOST, 0, 1, 0, 0};
    const ode_settings set = {ODE_DOPRI5, 0, atol, 1, 1, most, 1};
    scene s;
    mtan_tensor out;
    ode_solver solver;
    ode_task task;
    scene_open(&s, recording, 0);
    for (int32_t i = 0; i < LINEARS; i++)
        for (int32_t k = 0; k < STATES; k++)
            mtan_data(&s.tape, s.param[2 * i])[k * s.param[2 * i].cols + k] = i + 1 < LINEARS ? 1 : -(mtan_real)rate;
    mtan_data(&s.tape, s.start)[0] = start;
    out = mtan_new(&s.tape, 1, STATES);
    solver = ode_solver_of(&s.tape, s.param, LINEARS, set);
    task = ode_task_new(&s.tape, 1, 1);
    task.row[0] = row, task.output[0] = output;
    op_ode(&s.tape, &solver, out, s.start, &task);
    return scene_close(&s) ? s.tape.status : MTAN_ERR_NULL;
}

/* Too many steps, and steps that never end. */
TEST every_run_ends(void) {
    ASSERT_EQ(MTAN_OK, decay_ends(1, 1, 1e-3, 16, 1));
    ASSERT_EQ(MTAN_ERR_MEMORY, decay_ends(1e3, 1, 1e-3, 16, 1));
    ASSERT_EQ(MTAN_OK, decay_ends(1e3, 1, 1e-3, 16, 0)); /* nothing is kept */
    ASSERT_EQ(MTAN_ERR_MEMORY, decay_ends(1e6, 1, 1e-3, 16, 0));
    ASSERT_EQ(MTAN_ERR_INPUT, decay_ends(1, 1, 1e-300, 16, 1));
    ASSERT_EQ(MTAN_ERR_INPUT, decay_ends(1, (mtan_real)NAN, 1e-3, 16, 1));
    ASSERT_EQ(MTAN_ERR_INPUT, decay_ends(INFINITY, 1, 1e-3, 16, 0));
    PASS();
}

/* The bound counts the steps of an owner exactly. */
TEST the_bound_is_exact(void) {
    static const ode_output output = {1, 0, 9, 0};
    for (int32_t i = 0; i < 4; i++) {
        const ode_settings set = {ODE_EULER, 0, 0, 1, 1, 8 + i % 2, 1}; /* 8 or 9 steps of room, and for the row */
        const ode_row row = {0, 0, 8 + i / 2, 0, 1, 0, 0};
        scene s;
        mtan_tensor out;
        ode_solver solver;
        ode_task task;
        scene_open(&s, 1, 1);
        out = mtan_new(&s.tape, 1, STATES);
        solver = ode_solver_of(&s.tape, s.param, LINEARS, set);
        task = ode_task_new(&s.tape, 1, 1);
        task.row[0] = row, task.output[0] = output;
        op_ode(&s.tape, &solver, out, s.start, &task);
        ASSERT_EQ(i < 3 ? MTAN_ERR_MEMORY : MTAN_OK, s.tape.status);
        ASSERT(scene_close(&s));
    }
    PASS();
}

SUITE(ode_suite) {
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        greatest_set_test_suffix(cases[i].name);
        RUN_TEST1(solves_as_torchdiffeq, &cases[i]);
        greatest_set_test_suffix(cases[i].name);
        RUN_TEST1(rows_do_not_see_each_other, &cases[i]);
    }
    for (size_t i = 0; i < 3; i++) {
        greatest_set_test_suffix(cases[i].name);
        RUN_TEST1(gradients_are_finite_differences, cases[i].method);
        greatest_set_test_suffix(cases[i].name);
        RUN_TEST1(outputs_may_repeat_or_be_absent, &cases[i]);
    }
    RUN_TEST(ops_of_one_solver_follow_each_other);
    RUN_TEST(every_run_ends);
    RUN_TEST(the_bound_is_exact);
}
