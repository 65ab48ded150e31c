/* See recipes.h. The sizes are those of latent_ode (Rubanova et al. 2019) for the recurrent and the ODE models and of the
 * models' own papers for the others. Where nobody gives any (Phased-LSTM, IP-Nets and SeFT on Activity, all on MIMIC-III) they
 * are those of PhysioNet. */
#include "recipes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../data/array.h"

/* ---- sizes ---- */

typedef struct sizes {
    int32_t hidden, latent, units, gru_units, rec_layers, gen_layers, mlp; /* 0: the model has no such */
} sizes;

typedef struct row {
    const char *model;
    int variational;
    sizes record, time; /* for a class per record or interpolation; for a class per time */
    int hours;          /* its times are hours, so they are multiplied by 48 */
    int adam;           /* Adam 1e-3, batch 128; otherwise Adamax 1e-2 times 0.999 per step, batch 50 */
} row;

static const row rows[] = {
    {"rnn-impute", 0, {40, 0, 0, 0, 0, 0, 0}, {100, 0, 0, 0, 0, 0, 0}, 0, 0},
    {"rnn-dt", 0, {40, 0, 0, 0, 0, 0, 0}, {100, 0, 0, 0, 0, 0, 0}, 0, 0},
    {"rnn-decay", 0, {40, 0, 0, 0, 0, 0, 0}, {100, 0, 0, 0, 0, 0, 0}, 0, 0},
    {"gru-d", 0, {40, 0, 0, 0, 0, 0, 0}, {100, 0, 0, 0, 0, 0, 0}, 0, 0},
    {"phased-lstm", 0, {128, 0, 0, 0, 0, 0, 0}, {128, 0, 0, 0, 0, 0, 0}, 1, 1},
    {"ip-nets", 0, {100, 0, 0, 0, 0, 0, 0}, {128, 0, 0, 0, 0, 0, 0}, 1, 1},
    {"seft", 0, {32, 128, 32, 0, 0, 0, 0}, {32, 128, 32, 0, 0, 0, 0}, 1, 1},
    {"rnn-vae", 1, {40, 20, 50, 0, 0, 0, 50}, {100, 15, 500, 0, 0, 0, 500}, 0, 0},
    {"ode-rnn", 0, {40, 0, 50, 50, 3, 0, 0}, {100, 0, 500, 50, 4, 0, 0}, 0, 0},
    {"l-ode-rnn", 1, {40, 20, 50, 0, 0, 3, 50}, {100, 15, 500, 0, 0, 2, 50}, 0, 0},
    {"l-ode-ode", 1, {40, 20, 50, 50, 3, 3, 100}, {100, 15, 500, 50, 4, 2, 100}, 0, 0},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

typedef struct data_set {
    const char *name;
    mtan_classify_kind classify;
    int32_t channels, classes, epochs;
} data_set;

static const data_set data_sets[] = {
    {"physionet", MTAN_CLASSIFY_RECORD, 41, 2, 100}, {"mimic3", MTAN_CLASSIFY_RECORD, 12, 2, 100},
    {"activity", MTAN_CLASSIFY_TIME, 12, 11, 200},   {"toy", MTAN_CLASSIFY_NONE, 1, 0, 500},
    {"own", MTAN_CLASSIFY_RECORD, 1, 2, 100},
};
enum { DATA_SETS = sizeof data_sets / sizeof data_sets[0], PUBLISHED = 4 };

/* ---- names ---- */

static const row *row_named(const char *model) {
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].model, model) == 0) return &rows[i];
    return NULL;
}

int baseline_is_variational(const mtan_architecture *a) {
    const row *r = row_named(a->name);
    return r && r->variational;
}

/* Cuts `suffix` off the end of a name, if it is there. */
static int cut(char *name, const char *suffix) {
    const size_t n = strlen(name), m = strlen(suffix);
    if (n <= m || strcmp(name + n - m, suffix) != 0) return 0;
    name[n - m] = 0;
    return 1;
}

/* What "DATA-MODEL[-interp|-per-time]" is; 0: nothing. */
static int read_name(const char *name, data_set *d, const row **r) {
    char model[64];
    for (int i = 0; i < DATA_SETS; i++) {
        const size_t n = strlen(data_sets[i].name);
        if (strncmp(name, data_sets[i].name, n) != 0 || name[n] != '-') continue;
        *d = data_sets[i];
        snprintf(model, sizeof model, "%s", name + n + 1);
        if (d->classify == MTAN_CLASSIFY_RECORD && cut(model, "-interp"))
            d->classify = MTAN_CLASSIFY_NONE, d->classes = 0;
        else if (strcmp(d->name, "own") == 0 && cut(model, "-per-time")) d->classify = MTAN_CLASSIFY_TIME;
        *r = row_named(model);
        return *r && ((*r)->variational || d->classify != MTAN_CLASSIFY_NONE);
    }
    return 0;
}

const char *baseline_recipe_name(int index) {
    static char name[64];
    for (int d = 0; d < PUBLISHED; d++)
        for (int r = 0; r < ROWS; r++)
            for (int interp = 0; interp < 2; interp++) {
                baseline_recipe found;
                snprintf(name, sizeof name, "%s-%s%s", data_sets[d].name, rows[r].model, interp ? "-interp" : "");
                if (baseline_recipe_named(&found, name, MTAN_CORRECT) && index-- == 0) return name;
            }
    return NULL;
}

/* ---- recipes ---- */

/* A setting of the architecture; one that it does not have stays away. */
static void set_own(mtan_config *c, const char *key, int32_t value) {
    char text[16];
    snprintf(text, sizeof text, "%d", (int)value);
    if (value > 0) (void)mtan_config_set(c, key, text);
}

static void set_sizes(mtan_config *c, const sizes *s) {
    c->enc_hidden = s->hidden;
    if (s->latent) c->latent = s->latent;
    if (s->mlp) c->mlp_hidden = s->mlp;
    set_own(c, "units", s->units);
    set_own(c, "gru_units", s->gru_units);
    set_own(c, "rec_layers", s->rec_layers);
    set_own(c, "gen_layers", s->gen_layers);
}

static void set_named(mtan_config *c, const char *model) {
    if (strcmp(model, "ip-nets") == 0) c->ref_points = 192, c->skip_empty = 0;
    if (strcmp(model, "seft") == 0) c->embed = 4, c->embed_base = 100, c->enc_heads = 4, c->head_hidden = 0;
}

/* A latent state: three samples of it in training; the published code takes three for a prediction too. */
static void set_variational(mtan_config *c, mtan_preset preset) {
    c->samples = 3;
    c->alpha = 100;
    c->kl_anneal = c->classify != MTAN_CLASSIFY_TIME; /* a class per time has no KL in its loss */
    if (preset == MTAN_FAITHFUL) c->predict_samples = 3;
}

static void set_config(mtan_config *c, const data_set *d, const row *r, mtan_preset preset) {
    const int time = d->classify == MTAN_CLASSIFY_TIME;
    mtan_config_init(c, r->variational ? MTAN_FULL : MTAN_ENC, d->classify, d->channels, d->classes);
    mtan_config_preset(c, preset);
    mtan_config_architecture(c, baseline_named(r->model));
    c->embed_scale = r->hours ? 48 : 1;
    c->head_hidden = time ? 0 : 300;
    set_sizes(c, time ? &r->time : &r->record);
    if (r->variational) set_variational(c, preset);
    else set_own(c, "bidirectional", time);
    set_own(c, "faithful", preset == MTAN_FAITHFUL);
    set_named(c, r->model);
}

int baseline_recipe_named(baseline_recipe *r, const char *name, mtan_preset preset) {
    const row *model;
    data_set d;
    if (!read_name(name, &d, &model) || !baseline_named(model->model)) return 0;
    memset(r, 0, sizeof *r);
    set_config(&r->recipe.config, &d, model, preset);
    r->recipe.batch = model->adam ? 128 : 50;
    r->recipe.epochs = model->adam && d.classify == MTAN_CLASSIFY_RECORD ? 100 : d.epochs;
    r->recipe.lr = model->adam ? 1e-3 : 1e-2;
    r->recipe.sample_low = r->recipe.sample_high = 1;
    if (d.classify == MTAN_CLASSIFY_NONE && strcmp(d.name, "toy") != 0)
        r->recipe.sample_low = 0.5, r->recipe.sample_high = 0.9;
    r->optimizer = model->adam ? MTAN_ADAM : MTAN_ADAMAX;
    r->decay = model->adam ? 1 : 0.999;
    r->floor = model->adam ? 0 : 0.1;
    return 1;
}

/* ---- what batches need ---- */

static int is_named(const mtan_config *c, const char *name) {
    return c->architecture && strcmp(c->architecture->name, name) == 0;
}

static double own_value(const mtan_config *c, const char *name) {
    const char *const *names = c->architecture ? c->architecture->settings : NULL;
    for (int i = 0; names && names[i]; i++)
        if (strcmp(names[i], name) == 0) return c->own[i];
    return 0;
}

int baseline_holds_out(const mtan_config *c) {
    return is_named(c, "ip-nets");
}

/* Of each channel exactly `wanted`, every choice as likely as any other: an event is taken with the probability wanted / left. */
int32_t baseline_hold_out(mtan_event *held, const mtan_event *events, int32_t n, int32_t channels, mtan_mt19937 *rng) {
    int32_t *left = tool_calloc(2 * (size_t)channels, sizeof *left), *wanted = left + channels, count = 0;
    for (int32_t i = 0; i < n; i++) left[events[i].channel]++;
    for (int32_t d = 0; d < channels; d++) wanted[d] = left[d] / 5 >= 2 ? left[d] / 5 : 0;
    for (int32_t i = 0; i < n; i++) {
        const int32_t d = events[i].channel;
        if (wanted[d] > 0 && mtan_numpy_uniform(rng) * left[d] < wanted[d]) held[count++] = events[i], wanted[d]--;
        left[d]--;
    }
    free(left);
    return count;
}

int baseline_swaps_records(const mtan_config *c) {
    return is_named(c, "rnn-vae") && own_value(c, "faithful") > 0;
}

int32_t *baseline_step_bound(mtan_config *c) {
    return is_named(c, "l-ode-rnn") || is_named(c, "l-ode-ode") || is_named(c, "ode-rnn") ? &c->ref_points : NULL;
}
