/* Latent ODEs (Rubanova et al., 2019): the decoder is an ODE for z that starts from a sample at the record's first time
 * and is read at the queries. L-ODE-RNN has a GRU as encoder, L-ODE-ODE an ODE-RNN; both run from the last row to the
 * first.
 *
 * dopri5 controls its steps for every record and sample separately. With the setting "faithful" the samples of a record
 * share their steps, and the encoder of L-ODE-ODE has the published intervals. The setting most_steps is the most steps
 * that dopri5 may take from one start (ode.h describes what happens beyond). */
#include "latent.h"

#include <math.h>

/* ---- the decoder ---- */

static int32_t decoder_layers(const mtan_config *c) {
    return whole_setting(c, "gen_layers") + 1;
}

static mtan_status check_decoder(const mtan_config *c) {
    const int32_t ok = is_whole(setting_of(c, "gen_layers"), 0, ODE_LINEARS - 2) && is_solver(c, "dec_solver");
    return ok ? MTAN_OK : MTAN_ERR_CONFIG;
}

/* Indices of the parameters of either model, which has one of the two encoders. */
typedef struct roles {
    int32_t rnn;
    ode_rnn_roles ode_rnn;
    int32_t z0, ode, out, head;
} roles;

/* dec.ode, dec.out and the classes. */
static void add_decoder(mtan_params *p, const mtan_config *c, roles *r) {
    r->ode = add_net(p, "dec.ode", c->latent, whole_setting(c, "units"), decoder_layers(c), c->latent);
    if (!per_time(c)) r->out = add_linear(p, "dec.out", c->channels, c->latent);
    if (c->classify != MTAN_CLASSIFY_NONE) r->head = add_head(p, c, c->latent);
}

/* rec.z0 and the decoder. */
static void start_rest(const mtan_config *c, mtan_real *weights, const roles *r, mtan_mt19937 *rng) {
    start_net(c, weights, r->z0, 1, rng);
    start_net(c, weights, r->ode, decoder_layers(c), rng);
    if (!per_time(c)) start_net(c, weights, r->out, 0, rng);
    if (c->classify != MTAN_CLASSIFY_NONE) start_net(c, weights, r->head, c->head_hidden ? 2 : 0, rng);
}

/* Most steps of a run with n outputs. A fixed-step method takes ode_steps per unit of time and one for each output:
 * room for two units of time, plus most_steps. */
static int32_t most_steps(const mtan_config *c, int32_t n) {
    const int32_t most = whole_setting(c, "most_steps");
    return whole_setting(c, "dec_solver") == ODE_DOPRI5 ? most : most + 2 * whole_setting(c, "ode_steps") + n;
}

static ode_solver solver_new(const mtan_forward *f, int32_t index) {
    const mtan_config *c = f->config;
    const int32_t rows = count_product(f->tape, 2, f->noise.rows); /* into the future and into the past */
    const ode_settings set = {(ode_method)whole_setting(c, "dec_solver"),
                              setting_of(c, "rtol"),
                              setting_of(c, "atol"),
                              rows,
                              rows,
                              most_steps(c, most_queries(f->tape)),
                              is_faithful(c) ? f->tape->batch->samples : 1};
    return ode_solver_new(f, index, decoder_layers(c), set);
}

/* The first time at which record b was observed; 0 if it never was. */
static double first_time(const mtan_forward *f, const dense_rows *rows, mtan_tensor passed, int32_t b) {
    row_walk w = walk_start(f, rows->time, passed, b, 0);
    return walk_next(&w) ? walk_time(&w) : 0;
}

/* Adds a run for every sample of record b to n of its queries, order[from], order[from + by], ..., whose times move
 * away from the start. */
static void add_runs(const mtan_forward *f, ode_task *task, int32_t b, double start, const int32_t *order, int32_t n,
                     int32_t from, int32_t by) {
    const mtan_batch *batch = f->tape->batch;
    const int32_t S = batch->samples, first = batch->query0[b], all = batch->query0[b + 1] - first;
    const mtan_real *query = mtan_data(f->tape, batch->query) + first;
    for (int32_t s = 0; s < S && n > 0; s++) {
        const ode_row row = {b * S + s, task->rows, most_steps(f->config, n), task->outputs, n, 0, 0};
        double before = 0;
        task->row[task->rows++] = row;
        for (int32_t i = 0; i < n; i++) {
            const int32_t q = order[from + i * by];
            const double time = (double)query[q] - start, gap = fabs(time - before);
            const int32_t steps = gap > 0 ? whole_steps(setting_of(f->config, "ode_steps") * gap) : 0;
            const ode_output output = {time, first * S + s * all + q, steps, 0};
            task->output[task->outputs++] = output;
            before = time;
        }
    }
}

/* The runs of every sample: forwards from the start, and backwards from it. */
static void fill_task(const mtan_forward *f, ode_task *task, const dense_rows *rows, int32_t *order) {
    const mtan_tensor passed = passed_rows(f, rows->mask, per_time(f->config));
    if (!op_runs(f->tape)) return;
    task->rows = task->outputs = 0;
    for (int32_t b = 0; b < f->tape->batch->records; b++) {
        const double start = first_time(f, rows, passed, b);
        const mtan_real *query = mtan_data(f->tape, f->tape->batch->query) + f->tape->batch->query0[b];
        const int32_t n = sort_queries(f, b, order);
        int32_t past = 0;
        while (past < n && (double)query[order[past]] < start) past++;
        add_runs(f, task, b, start, order, n - past, past, 1);
        add_runs(f, task, b, start, order, past, past - 1, -1);
    }
}

/* z at the queries: (Q S, Z). */
static mtan_tensor decode(const mtan_forward *f, const dense_rows *rows, mtan_tensor z) {
    mtan_tape *tape = f->tape;
    const roles *r = f->roles;
    const int32_t results = count_product(tape, tape->batch->queries, tape->batch->samples);
    const mtan_tensor states = mtan_new(tape, results, f->config->latent);
    const ode_solver solver = solver_new(f, r->ode);
    ode_task task = ode_task_new(tape, solver.set.rows, results);
    fill_task(f, &task, rows, mtan_new_ints(tape, (size_t)most_queries(tape)));
    op_ode(tape, &solver, states, z, &task);
    return states;
}

/* The part after the encoder's states: the posterior, and the outputs asked for from its samples. */
static void finish(const mtan_forward *f, mtan_outputs *out, const dense_rows *rows, mtan_tensor states) {
    const mtan_config *c = f->config;
    const roles *r = f->roles;
    const int32_t logits = f->wanted & MTAN_WANT_LOGITS;
    draw_latent(f, out, states, r->z0);
    if (logits && c->classify == MTAN_CLASSIFY_RECORD) out->logits = apply_head(f, r->head, out->z);
    if (logits && per_time(c)) out->logits = apply_head(f, r->head, decode(f, rows, out->z));
    if (f->wanted & MTAN_WANT_PREDICTION) out->prediction = apply_linear(f, r->out, decode(f, rows, out->z));
}

/* ---- L-ODE-RNN ---- */

static const char *const rnn_settings[] = {"faithful", "units", "gen_layers", "dec_solver", "ode_steps",
                                           "rtol",     "atol",  "most_steps", NULL};
static const double rnn_defaults[] = {0, 50, 3, ODE_DOPRI5, 50, 1e-3, 1e-4, ODE_MOST_STEPS};

static mtan_status rnn_check(const mtan_config *c) {
    return check_latent(c) == MTAN_OK ? check_decoder(c) : MTAN_ERR_CONFIG;
}

static void rnn_params(const mtan_config *c, mtan_params *p, void *out) {
    roles *r = out;
    r->rnn = add_rnn_encoder(p, c);
    r->z0 = add_posterior(p, c, c->enc_hidden);
    add_decoder(p, c, r);
}

static void rnn_init(const mtan_config *c, const void *indices, mtan_real *weights, mtan_mt19937 *rng) {
    start_rest(c, weights, indices, rng);
}

static void rnn_forward(const mtan_forward *f, mtan_outputs *out) {
    const dense_rows rows = read_rows(f);
    const roles *r = f->roles;
    const gap_kind gaps = is_faithful(f->config) ? TO_ROW_AFTER : SINCE_ROW_BEFORE;
    finish(f, out, &rows, apply_rnn_encoder(f, &rows, r->rnn, gaps));
}

/* ---- L-ODE-ODE ---- */

static const char *const ode_settings_names[] = {"faithful",   "units",      "gru_units",  "rec_layers",
                                                 "gen_layers", "rec_solver", "dec_solver", "ode_steps",
                                                 "rtol",       "atol",       "most_steps", NULL};
static const double ode_defaults[] = {0, 50, 50, 3, 3, ODE_EULER, ODE_DOPRI5, 50, 1e-3, 1e-4, ODE_MOST_STEPS};

static mtan_status ode_check(const mtan_config *c) {
    return rnn_check(c) == MTAN_OK ? check_ode_rnn(c) : MTAN_ERR_CONFIG;
}

static void ode_params(const mtan_config *c, mtan_params *p, void *out) {
    roles *r = out;
    r->ode_rnn = add_ode_rnn(p, c, 0);
    r->z0 = add_posterior(p, c, 2 * c->enc_hidden);
    add_decoder(p, c, r);
}

static void ode_init(const mtan_config *c, const void *indices, mtan_real *weights, mtan_mt19937 *rng) {
    const roles *r = indices;
    start_ode_rnn(c, weights, &r->ode_rnn, rng);
    start_rest(c, weights, r, rng);
}

static void ode_forward(const mtan_forward *f, mtan_outputs *out) {
    const dense_rows rows = read_rows(f);
    const roles *r = f->roles;
    const ode_rnn_intervals intervals = is_faithful(f->config) ? PUBLISHED_EARLY : GAPS;
    const ode_rnn_run run = {r->ode_rnn, 1, intervals, per_time(f->config)};
    const mtan_tensor states = mtan_new(f->tape, f->tape->batch->records, 2 * f->config->enc_hidden);
    op_first(f->tape, states, apply_ode_rnn(f, &rows, run));
    finish(f, out, &rows, states);
}

static const mtan_backward backward[] = {LATENT_BACKWARD};

extern const mtan_architecture baseline_l_ode_rnn, baseline_l_ode_ode;
const mtan_architecture baseline_l_ode_rnn = {
    .name = "l-ode-rnn",
    .settings = rnn_settings,
    .defaults = rnn_defaults,
    .roles = ROLES(roles),
    .traits = BASELINE_TRAITS,
    .check = rnn_check,
    .params = rnn_params,
    .init = rnn_init,
    .forward = rnn_forward,
    .backward = backward,
};

const mtan_architecture baseline_l_ode_ode = {
    .name = "l-ode-ode",
    .settings = ode_settings_names,
    .defaults = ode_defaults,
    .roles = ROLES(roles),
    .traits = BASELINE_TRAITS,
    .check = ode_check,
    .params = ode_params,
    .init = ode_init,
    .forward = ode_forward,
    .backward = backward,
};
