/* See baseline_case.h. */
#include "baseline_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sizes that differ, so that swapped dimensions show. Solvers with fixed steps, because finite differences would change
 * the steps of an adaptive one. Settings that a model does not have are left out. */
static const char *const small_settings[][2] = {
    {"enc_hidden", "5"}, {"latent", "2"},     {"mlp_hidden", "6"}, {"head_hidden", "4"}, {"ref_points", "7"},
    {"embed", "4"},      {"enc_heads", "2"},  {"samples", "2"},    {"noise_std", "0.5"}, {"predict_samples", "2"},
    {"units", "6"},      {"gru_units", "5"},  {"psi_units", "3"},  {"rec_layers", "1"},  {"gen_layers", "1"},
    {"rec_solver", "0"}, {"dec_solver", "1"}, {"ode_steps", "6"},  {"most_steps", "7"},
};

static void shrink(mtan_config *c) {
    for (size_t i = 0; i < sizeof small_settings / sizeof small_settings[0]; i++)
        mtan_config_set(c, small_settings[i][0], small_settings[i][1]);
    if (c->classify == MTAN_CLASSIFY_TIME) c->head_hidden = 0;
    if (c->kind == MTAN_ENC) c->samples = c->predict_samples = 1;
    else mtan_config_set(c, "most_steps", "300"); /* for an ODE: query times reach 37 */
}

double baseline_setting(const mtan_config *config, const char *name, double otherwise) {
    char text[64];
    return mtan_config_get(config, name, text, sizeof text) == MTAN_OK ? atof(text) : otherwise;
}

enum { FORMS = 2 * 2 * 3 * 2 * 2 }; /* also predicting the next row, kind, task, preset, directions */

/* Makes form `form` of an architecture; returns 0 if the architecture refuses it or lacks such a setting. */
static int make_form(mtan_config *c, char *name, size_t size, const mtan_architecture *a, int form) {
    static const char *const tasks[] = {"none", "record", "time"};
    const int next = form / 24, full = form / 12 % 2, task = form / 4 % 3, faithful = form / 2 % 2, both = form % 2;
    if (mtan_config_init(c, full ? MTAN_FULL : MTAN_ENC, MTAN_CLASSIFY_RECORD, BASELINE_CHANNELS, 3) != MTAN_OK)
        return 0;
    c->classify = (mtan_classify_kind)task;
    c->embed_base = 10, c->embed_scale = 3;
    mtan_config_architecture(c, a);
    shrink(c);
    if (faithful && mtan_config_set(c, "faithful", "1") != MTAN_OK) return 0;
    if (both && mtan_config_set(c, "bidirectional", "1") != MTAN_OK) return 0;
    if (next && mtan_config_set(c, "next", "1") != MTAN_OK) return 0;
    if (faithful) c->bound = MTAN_BOUND_FAITHFUL;
    snprintf(name, size, "%s %s%s%s%s", a->name, tasks[task], faithful ? " faithful" : "", both ? " bidirectional" : "",
             next ? " next" : "");
    return mtan_config_check(c) == MTAN_OK;
}

int baseline_form(mtan_config *config, char *name, size_t size, int index) {
    for (int a = 0; baselines[a]; a++)
        for (int form = 0; form < FORMS; form++)
            if (make_form(config, name, size, baselines[a], form) && index-- == 0) return 1;
    return 0;
}

/* Moves query times of a joined sequence: in every other record they lie between the event times, so that the bound on
 * both is reached. */
static void move_queries(const mtan_record *r) {
    mtan_real *t = (mtan_real *)(uintptr_t)r->times;
    for (int32_t i = 0; i < r->n_times; i++) t[i] += (mtan_real)0.01;
}

/* Without a decoder, targets are held-out observations: the first third of them. */
static void hold_out(mtan_record *r) {
    const int32_t n = r->n_events / 3;
    mtan_event *targets = guard_alloc((size_t)n * sizeof *targets);
    memcpy(targets, r->events, (size_t)n * sizeof *targets);
    guard_free((void *)(uintptr_t)r->targets);
    r->targets = targets;
    r->n_targets = n;
}

static void draw_records(baseline_case *c, int32_t records, int largest, uint64_t *random) {
    mtan_bounds most = c->bounds;
    if (c->config.classify == MTAN_CLASSIFY_TIME) most.times /= 2;
    c->set = small_records(&c->config, &most, records, largest, random);
    for (int32_t b = 0; b < records; b++) {
        if (b % 2) move_queries(&c->set.records[b]);
        if (c->config.kind == MTAN_ENC) hold_out(&c->set.records[b]);
    }
}

static int make_case(baseline_case *c, int32_t records, int largest) {
    uint64_t random = 11;
    c->count = mtan_weights_count(&c->config);
    c->weights = guard_alloc(c->count * sizeof *c->weights);
    c->bounds = (mtan_bounds){records, BASELINE_EVENTS, BASELINE_TIMES};
    if (mtan_weights_init(&c->config, c->weights, c->count, 3) != MTAN_OK) return 0;
    for (size_t i = 0; i < c->count; i++) c->weights[i] += small_real(&random) / 4; /* off kinks: biases start at 0 */
    draw_records(c, records, largest, &random);
    return mtan_model_init(&c->model, &c->config, c->weights, c->count) == MTAN_OK;
}

int baseline_open(baseline_case *c, int index, int32_t records, int largest) {
    memset(c, 0, sizeof *c);
    return baseline_form(&c->config, c->name, sizeof c->name, index) && make_case(c, records, largest);
}

int baseline_open_thin(baseline_case *c, int index, int32_t records) {
    static const char *const sizes[] = {"channels",  "enc_hidden", "latent",    "mlp_hidden", "head_hidden",
                                        "enc_heads", "units",      "gru_units", "psi_units"};
    memset(c, 0, sizeof *c);
    if (!baseline_form(&c->config, c->name, sizeof c->name, index)) return 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) mtan_config_set(&c->config, sizes[i], "1");
    return make_case(c, records, 0);
}

int baseline_close(baseline_case *c) {
    return small_free(&c->set) & guard_free(c->weights);
}
