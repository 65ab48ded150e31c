/* Latent ODEs (Rubanova et al., 2019): the decoder is an ODE for z, which starts from a sample at the record's first time and is read
 * at the queries. L-ODE-RNN has a GRU as encoder, L-ODE-ODE an ODE-RNN; both run from the last row to the first.
 *
 * dopri5 controls its steps for every record and sample alone; with the setting "faithful" for the samples of a record together. The
 * setting ref_points is the most steps that dopri5 may take from one start (ode.h says what happens beyond). */
#include "latent.h"

#include <math.h>

/* ---- the decoder ---- */

static int32_t decoder_layers(const mtan_config *c) {
    return own_whole(c, "gen_layers") + 1;
}

static mtan_status check_decoder(const mtan_config *c) {
    const int32_t ok = is_whole(own_setting(c, "gen_layers"), 0, ODE_LINEARS - 2) &&
                       is_whole(own_setting(c, "dec_solver"), ODE_EULER, ODE_DOPRI5) &&
                       is_whole(own_setting(c, "ode_steps"), 1, 1e6) && own_setting(c, "rtol") >= 0 &&
                       own_setting(c, "atol") > 0;
    return ok ? MTAN_OK : MTAN_ERR_CONFIG;
}

/* dec.ode, dec.out and the classes. */
static void add_decoder(mtan_params *p, const mtan_config *c) {
    add_net(p, "dec.ode", c->latent, own_whole(c, "units"), decoder_layers(c), c->latent);
    if (!per_time(c)) add_linear(p, "dec.out", c->channels, c->latent);
    if (c->classify != MTAN_CLASSIFY_NONE) add_head(p, c, c->latent);
}

static void start_decoder(const mtan_config *c, mtan_real *weights, int32_t index, mtan_mt19937 *rng) {
    const int32_t out = index + 2 * (decoder_layers(c) + 1);
    start_net(c, weights, index, decoder_layers(c), rng);
    if (!per_time(c)) start_net(c, weights, out, 0, rng);
    if (c->classify != MTAN_CLASSIFY_NONE)
        start_net(c, weights, out + (per_time(c) ? 0 : 2), c->head_hidden ? 2 : 0, rng);
}

/* Steps that a run with n outputs may take. Equal steps are ode_steps in a unit of time and one for each output: room for two
 * units of time, and what ref_points adds. */
static int32_t most_steps(const mtan_config *c, int32_t n) {
    return own_whole(c, "dec_solver") == ODE_DOPRI5 ? c->ref_points : c->ref_points + 2 * own_whole(c, "ode_steps") + n;
}

static ode_solver solver_new(const mtan_forward *f, int32_t index) {
    const mtan_config *c = f->config;
    const int32_t rows = count_product(f->tape, 2, f->noise.rows); /* into the future and into the past */
    const ode_settings set = {(ode_method)own_whole(c, "dec_solver"),
                              own_setting(c, "rtol"),
                              own_setting(c, "atol"),
                              rows,
                              rows,
                              most_steps(c, most_queries(f->tape)),
                              is_faithful(c) ? f->tape->batch->samples : 1};
    return ode_solver_new(f, index, decoder_layers(c), set);
}

/* The first time at which record b was observed; 0 where it never was. */
static double first_time(const mtan_forward *f, const dense_rows *rows, mtan_tensor passed, int32_t b) {
    row_walk w = walk_start(f, rows->time, passed, b, 0);
    return walk_next(&w) ? walk_time(&w) : 0;
}

/* A run for every sample of record b to its queries order[0], order[1], ... (n of them, from `from` on by `by`), whose times from the
 * start on are ahead of each other. */
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
            const int32_t steps = gap > 0 ? whole_steps(own_setting(f->config, "ode_steps") * gap) : 0;
            const ode_output output = {time, first * S + s * all + q, steps, 0};
            task->output[task->outputs++] = output;
            before = time;
        }
    }
}

/* Every sample's runs: from the start on, and back from it. */
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
static mtan_tensor decode(const mtan_forward *f, const dense_rows *rows, mtan_tensor z, int32_t index) {
    mtan_tape *tape = f->tape;
    const int32_t results = count_product(tape, tape->batch->queries, tape->batch->samples);
    const mtan_tensor states = mtan_new(tape, results, f->config->latent);
    const ode_solver solver = solver_new(f, index);
    ode_task task = ode_task_new(tape, solver.set.rows, results);
    fill_task(f, &task, rows, mtan_new_ints(tape, (size_t)most_queries(tape)));
    op_ode(tape, &solver, states, z, &task);
    return states;
}

/* The decoder's part of the outputs; its parameters start at `index`. */
static void finish(const mtan_forward *f, mtan_outputs *out, const dense_rows *rows, int32_t index) {
    const mtan_config *c = f->config;
    const int32_t after = index + 2 * (decoder_layers(c) + 1);
    if (c->classify == MTAN_CLASSIFY_RECORD) out->logits = apply_head(f, after + 2, out->z);
    if (per_time(c)) out->logits = apply_head(f, after, decode(f, rows, out->z, index));
    else if (f->prediction) out->prediction = apply_linear(f, after, decode(f, rows, out->z, index));
}

/* ---- L-ODE-RNN ---- */

static const char *const rnn_settings[] = {"faithful",  "units", "gen_layers", "dec_solver",
                                           "ode_steps", "rtol",  "atol",       NULL};
static const double rnn_defaults[] = {0, 50, 3, ODE_DOPRI5, 50, 1e-3, 1e-4};

static mtan_status rnn_check(const mtan_config *c) {
    return check_latent(c) == MTAN_OK ? check_decoder(c) : MTAN_ERR_CONFIG;
}

static void rnn_params(const mtan_config *c, mtan_params *p) {
    add_rnn_encoder(p, c);
    add_decoder(p, c);
}

static void rnn_init(const mtan_config *c, mtan_real *weights, mtan_mt19937 *rng) {
    start_net(c, weights, RNN_ENCODER_PARAMS - POSTERIOR_PARAMS, 1, rng);
    start_decoder(c, weights, RNN_ENCODER_PARAMS, rng);
}

static void rnn_forward(const mtan_forward *f, mtan_outputs *out) {
    const dense_rows rows = read_rows(f);
    const gap_kind gaps = is_faithful(f->config) ? TO_ROW_AFTER : SINCE_ROW_BEFORE;
    draw_latent(f, out, apply_rnn_encoder(f, &rows, 0, gaps), RNN_ENCODER_PARAMS - POSTERIOR_PARAMS);
    finish(f, out, &rows, RNN_ENCODER_PARAMS);
}

/* ---- L-ODE-ODE ---- */

static const char *const ode_settings_names[] = {"faithful",   "units",      "gru_units",  "rec_layers",
                                                 "gen_layers", "rec_solver", "dec_solver", "ode_steps",
                                                 "rtol",       "atol",       NULL};
static const double ode_defaults[] = {0, 50, 50, 3, 3, ODE_EULER, ODE_DOPRI5, 50, 1e-3, 1e-4};

static mtan_status ode_check(const mtan_config *c) {
    return rnn_check(c) == MTAN_OK ? check_ode_rnn(c) : MTAN_ERR_CONFIG;
}

static void ode_params(const mtan_config *c, mtan_params *p) {
    add_ode_rnn(p, c, 0);
    add_posterior(p, c, 2 * c->enc_hidden);
    add_decoder(p, c);
}

static void ode_init(const mtan_config *c, mtan_real *weights, mtan_mt19937 *rng) {
    const int32_t z0 = ode_rnn_params(c);
    start_ode_rnn(c, weights, 0, rng);
    start_net(c, weights, z0, 1, rng);
    start_decoder(c, weights, z0 + POSTERIOR_PARAMS, rng);
}

static void ode_forward(const mtan_forward *f, mtan_outputs *out) {
    const dense_rows rows = read_rows(f);
    const ode_rnn_run run = {0, 1, 0, per_time(f->config)};
    const mtan_tensor states = mtan_new(f->tape, f->tape->batch->records, 2 * f->config->enc_hidden);
    const int32_t z0 = ode_rnn_params(f->config);
    op_first(f->tape, states, apply_ode_rnn(f, &rows, run));
    draw_latent(f, out, states, z0);
    finish(f, out, &rows, z0 + POSTERIOR_PARAMS);
}

static const mtan_backward backward[] = {LATENT_BACKWARD};

extern const mtan_architecture baseline_l_ode_rnn, baseline_l_ode_ode;
const mtan_architecture baseline_l_ode_rnn = {"l-ode-rnn", rnn_settings, rnn_defaults, rnn_check,
                                              rnn_params,  rnn_init,     rnn_forward,  backward};
const mtan_architecture baseline_l_ode_ode = {"l-ode-ode", ode_settings_names, ode_defaults, ode_check,
                                              ode_params,  ode_init,           ode_forward,  backward};
