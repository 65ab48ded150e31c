/* See recipes.h. */
#include "recipes.h"

#include <stdio.h>
#include <string.h>

#include "../../baselines/baselines.h"
#include "data_sets.h"

/* ---- mTAN ---- */

typedef struct row {
    const char *name;
    mtan_kind kind;
    mtan_classify_kind classify;
    int32_t channels, classes, batch, hidden, latent, points, samples, anneal, epochs;
    double lr, alpha, sample_low, sample_high;
} row;

static const row of_mtan[RECIPES_OF_MTAN] = {
    {"toy-interp", MTAN_FULL, MTAN_CLASSIFY_NONE, 1, 0, 128, 32, 1, 20, 5, 1, 5000, 1e-4, 1, 1, 1},
    {"physionet-interp", MTAN_FULL, MTAN_CLASSIFY_NONE, 41, 0, 32, 64, 16, 64, 5, 1, 500, 1e-3, 1, 0.5, 0.9},
    {"physionet-full", MTAN_FULL, MTAN_CLASSIFY_RECORD, 41, 2, 50, 256, 20, 128, 1, 1, 300, 1e-4, 100, 1, 1},
    {"physionet-enc", MTAN_ENC, MTAN_CLASSIFY_RECORD, 41, 2, 128, 128, 0, 128, 1, 0, 200, 1e-4, 1, 1, 1},
    {"mimic3-full", MTAN_FULL, MTAN_CLASSIFY_RECORD, 12, 2, 128, 256, 128, 128, 1, 0, 300, 1e-4, 5, 1, 1},
    {"mimic3-enc", MTAN_ENC, MTAN_CLASSIFY_RECORD, 12, 2, 256, 256, 0, 128, 1, 0, 200, 1e-4, 1, 1, 1},
    {"activity-enc", MTAN_ENC, MTAN_CLASSIFY_TIME, 12, 11, 256, 512, 0, 128, 1, 0, 1000, 1e-3, 1, 1, 1},
    {"activity-full", MTAN_FULL, MTAN_CLASSIFY_TIME, 12, 11, 256, 64, 20, 128, 1, 0, 1000, 1e-3, 1, 1, 1}};

/* For own data: channels and classes come from the data. */
static const row own_mtan[] = {
    {"enc", MTAN_ENC, MTAN_CLASSIFY_RECORD, 1, 2, 64, 128, 0, 128, 1, 0, 100, 1e-3, 1, 1, 1},
    {"full", MTAN_FULL, MTAN_CLASSIFY_RECORD, 1, 2, 64, 64, 20, 128, 1, 0, 100, 1e-3, 1, 1, 1},
    {"per-time", MTAN_ENC, MTAN_CLASSIFY_TIME, 1, 2, 64, 128, 0, 128, 1, 0, 100, 1e-3, 1, 1, 1},
    {"interp", MTAN_FULL, MTAN_CLASSIFY_NONE, 1, 0, 64, 64, 16, 64, 1, 1, 100, 1e-3, 1, 0.5, 0.9}};
enum { OWN_MTAN = sizeof own_mtan / sizeof own_mtan[0] };

static int set_mtan(recipe *r, const row *rows, int n, const char *name, mtan_preset preset) {
    int i = 0;
    while (i < n && strcmp(rows[i].name, name) != 0) i++;
    if (i == n) return 0;
    const row *from = &rows[i];
    memset(r, 0, sizeof *r);
    mtan_config_init(&r->config, from->kind, from->classify, from->channels, from->classes);
    mtan_config_preset(&r->config, preset);
    r->config.enc_hidden = from->hidden;
    if (from->latent) r->config.latent = from->latent;
    r->config.ref_points = from->points;
    r->config.samples = from->samples;
    r->config.kl_anneal = from->anneal;
    r->config.alpha = from->alpha;
    r->batch = from->batch, r->epochs = from->epochs;
    r->sample_low = from->sample_low, r->sample_high = from->sample_high;
    r->optimizer = MTAN_ADAM, r->lr = from->lr, r->decay = 1;
    return 1;
}

static int in_paper(const data_set *data) {
    const size_t n = strlen(data->name);
    for (int i = 0; i < RECIPES_OF_MTAN; i++)
        if (strncmp(of_mtan[i].name, data->name, n) == 0 && of_mtan[i].name[n] == '-') return 1;
    return 0;
}

/* "DATA-enc", "DATA-full" or "DATA-interp" of a data set that is not in the paper: trained like own data. */
static int set_mtan_on(recipe *r, const char *name, mtan_preset preset) {
    const size_t n = strcspn(name, "-");
    const data_set *data = data_set_named(name, n);
    recipe made;
    if (!data || data->own || in_paper(data) || !name[n] || strcmp(name + n, "-per-time") == 0) return 0;
    if (!set_mtan(&made, own_mtan, OWN_MTAN, name + n + 1, preset)) return 0;
    if (made.config.classify != MTAN_CLASSIFY_NONE) {
        if (data->classify == MTAN_CLASSIFY_NONE) return 0;
        made.config.classify = data->classify, made.config.classes = data->classes;
    }
    made.config.channels = data->channels;
    *r = made;
    return 1;
}

/* ---- baselines ---- */

/* The sizes of the recurrent and the ODE models are those of latent_ode (Rubanova et al. 2019), the sizes of the others
 * those of the models' own papers. Where no paper gives any (Phased-LSTM, IP-Nets and SeFT on Activity, all models on
 * MIMIC-III), the sizes of PhysioNet are used. */
typedef struct sizes {
    int32_t hidden, latent, units, gru_units, rec_layers, gen_layers, mlp; /* 0: the model has no such size */
} sizes;

typedef struct baseline_row {
    const char *model;
    int variational;
    sizes record, time; /* for a class per record or interpolation; for a class per time */
    int hours;          /* the model expects times in hours, so they are multiplied by 48 */
    int adam;           /* Adam 1e-3, batch 128; 0: Adamax 1e-2 times 0.999 per step, batch 50 */
    int next; /* on the paper's records its states also predict the next row, with cross-entropy weighted by 100 */
} baseline_row;

static const baseline_row of_baselines[] = {
    {"rnn-impute", 0, {40, 0, 0, 0, 0, 0, 0}, {100, 0, 0, 0, 0, 0, 0}, 0, 0, 0},
    {"rnn-dt", 0, {40, 0, 0, 0, 0, 0, 0}, {100, 0, 0, 0, 0, 0, 0}, 0, 0, 0},
    {"rnn-decay", 0, {40, 0, 0, 0, 0, 0, 0}, {100, 0, 0, 0, 0, 0, 0}, 0, 0, 0},
    {"gru-d", 0, {40, 0, 0, 0, 0, 0, 0}, {100, 0, 0, 0, 0, 0, 0}, 0, 0, 0},
    {"phased-lstm", 0, {128, 0, 0, 0, 0, 0, 0}, {128, 0, 0, 0, 0, 0, 0}, 1, 1, 0},
    {"ip-nets", 0, {100, 0, 0, 0, 0, 0, 0}, {128, 0, 0, 0, 0, 0, 0}, 1, 1, 0},
    {"seft", 0, {32, 128, 32, 0, 0, 0, 0}, {32, 128, 32, 0, 0, 0, 0}, 1, 1, 0},
    {"rnn-vae", 1, {40, 20, 50, 0, 0, 0, 50}, {100, 15, 500, 0, 0, 0, 500}, 0, 0, 0},
    {"ode-rnn", 0, {40, 0, 50, 50, 3, 0, 0}, {100, 0, 500, 50, 4, 0, 0}, 0, 0, 1},
    {"l-ode-rnn", 1, {40, 20, 50, 0, 0, 3, 50}, {100, 15, 500, 0, 0, 2, 50}, 0, 0, 0},
    {"l-ode-ode", 1, {40, 20, 50, 50, 3, 3, 100}, {100, 15, 500, 50, 4, 2, 100}, 0, 0, 0},
};

/* The synthetic curves use the sizes with which latent_ode trains its own curves, the defaults of its script, and times
 * up to 5 as there (data_sets.c). Squared error of the validation curves after 100 epochs of `mtan train toy-l-ode-ode
 * --latent 10 --epochs 100`, seed 0: 0.123 with the sizes of PhysioNet and times up to 1, 0.074 with these sizes, 0.076
 * with these times, 0.047 with both. */
static const sizes of_curves = {20, 20, 100, 100, 1, 1, 0};

static const baseline_row any_baseline = {NULL, 0, {40, 0, 0, 0, 0, 0, 0}, {100, 0, 0, 0, 0, 0, 0}, 0, 1, 0};

/* A model without a row keeps its default sizes and is trained by Adam. */
static const baseline_row *row_of(const mtan_architecture *model) {
    for (size_t i = 0; i < sizeof of_baselines / sizeof of_baselines[0]; i++)
        if (strcmp(of_baselines[i].model, model->name) == 0) return &of_baselines[i];
    return &any_baseline;
}

/* Cuts `suffix` off the end of a name, if it is there. */
static int cut(char *name, const char *suffix) {
    const size_t n = strlen(name), m = strlen(suffix);
    if (n <= m || strcmp(name + n - m, suffix) != 0) return 0;
    name[n - m] = 0;
    return 1;
}

/* The parts of "DATA-MODEL[-interp|-per-time]". */
typedef struct task {
    const data_set *data;
    const mtan_architecture *model;
    const baseline_row *row;
    mtan_classify_kind classify;
} task;

/* Returns 0 if the name does not fit. */
static int read_name(const char *name, task *t) {
    const size_t n = strcspn(name, "-");
    char model[RECIPE_NAME];
    if (!(t->data = data_set_named(name, n)) || !name[n]) return 0;
    t->classify = t->data->classify;
    snprintf(model, sizeof model, "%s", name + n + 1);
    if (t->classify == MTAN_CLASSIFY_RECORD && cut(model, "-interp")) t->classify = MTAN_CLASSIFY_NONE;
    else if (t->data->own && cut(model, "-per-time")) t->classify = MTAN_CLASSIFY_TIME;
    if (!(t->model = baseline_named(model))) return 0;
    t->row = row_of(t->model);
    return t->row->variational || t->classify != MTAN_CLASSIFY_NONE;
}

/* Sets a setting of the architecture, if it has that setting. */
static void set_setting(mtan_config *c, const char *key, int32_t value) {
    char text[16];
    snprintf(text, sizeof text, "%d", (int)value);
    if (value > 0) (void)mtan_config_set(c, key, text);
}

static void set_sizes(mtan_config *c, const sizes *s) {
    c->enc_hidden = s->hidden;
    if (s->latent) c->latent = s->latent;
    if (s->mlp) c->mlp_hidden = s->mlp;
    set_setting(c, "units", s->units);
    set_setting(c, "gru_units", s->gru_units);
    set_setting(c, "rec_layers", s->rec_layers);
    set_setting(c, "gen_layers", s->gen_layers);
}

static void set_named(mtan_config *c, const char *model) {
    if (strcmp(model, "ip-nets") == 0) c->ref_points = 192, c->skip_empty = 0;
    if (strcmp(model, "seft") == 0) c->embed = 4, c->embed_base = 100, c->enc_heads = 4, c->head_hidden = 0;
}

/* A latent state: three samples of it in training. The published code also takes three for a prediction, and divides
 * the mean cross-entropy over them by their number once more. */
static void set_variational(mtan_config *c, mtan_preset preset) {
    c->samples = 3;
    c->alpha = preset == MTAN_FAITHFUL ? 100.0 / c->samples : 100;
    c->kl_anneal = c->classify != MTAN_CLASSIFY_TIME; /* a class per time has no KL in its loss */
    if (preset == MTAN_FAITHFUL) c->predict_samples = 3;
}

static int tells_next(const task *t) {
    return t->row->next && !t->data->own && t->classify == MTAN_CLASSIFY_RECORD;
}

static void set_model(mtan_config *c, const task *t, mtan_preset preset) {
    const baseline_row *r = t->row;
    const int time = t->classify == MTAN_CLASSIFY_TIME;
    mtan_config_init(c, r->variational ? MTAN_FULL : MTAN_ENC, t->classify, t->data->channels,
                     t->classify == MTAN_CLASSIFY_NONE ? 0 : t->data->classes);
    mtan_config_architecture(c, t->model);
    mtan_config_preset(c, preset);
    c->embed_scale = r->hours ? 48 : 1;
    c->head_hidden = time ? 0 : 300;
    set_sizes(c, time ? &r->time : &r->record);
    if (t->data->classify == MTAN_CLASSIFY_NONE) set_sizes(c, &of_curves);
    if (r->variational) set_variational(c, preset);
    else set_setting(c, "bidirectional", time);
    set_setting(c, "faithful", preset == MTAN_FAITHFUL);
    if (tells_next(t)) set_setting(c, "next", 1), c->alpha = 100;
    set_named(c, t->model->name);
}

static int set_baseline(recipe *r, const char *name, mtan_preset preset) {
    task t;
    if (!read_name(name, &t)) return 0;
    const int adam = t.row->adam;
    memset(r, 0, sizeof *r);
    set_model(&r->config, &t, preset);
    r->reconstructs = t.classify == MTAN_CLASSIFY_RECORD && (t.row->variational || tells_next(&t));
    r->batch = adam ? 128 : 50;
    r->epochs = adam && t.classify == MTAN_CLASSIFY_RECORD ? 100 : t.data->baseline_epochs;
    r->sample_low = r->sample_high = 1;
    if (t.classify == MTAN_CLASSIFY_NONE && t.data->observed < 1) r->sample_low = 0.5, r->sample_high = 0.9;
    r->optimizer = adam ? MTAN_ADAM : MTAN_ADAMAX;
    r->lr = adam ? 1e-3 : 1e-2;
    r->decay = adam ? 1 : 0.999;
    r->floor = adam ? 0 : 0.1;
    return 1;
}

/* ---- by name ---- */

int recipe_named(recipe *r, const char *name, mtan_preset preset) {
    return set_mtan(r, of_mtan, RECIPES_OF_MTAN, name, preset) || set_mtan_on(r, name, preset) ||
           set_baseline(r, name, preset);
}

int recipe_for_own(recipe *r, const char *model, mtan_preset preset) {
    char name[RECIPE_NAME];
    snprintf(name, sizeof name, "own-%s", model);
    return set_mtan(r, own_mtan, OWN_MTAN, model, preset) || set_baseline(r, name, preset);
}

const char *recipe_name(int index, char name[RECIPE_NAME]) {
    recipe found;
    if (index < 0) return NULL;
    if (index < RECIPES_OF_MTAN) return snprintf(name, RECIPE_NAME, "%s", of_mtan[index].name), name;
    index -= RECIPES_OF_MTAN;
    for (int d = 0; data_sets[d].name; d++)
        for (int b = 0; baselines[b]; b++)
            for (int interp = 0; interp < 2; interp++) {
                snprintf(name, RECIPE_NAME, "%s-%s%s", data_sets[d].name, baselines[b]->name, interp ? "-interp" : "");
                if (!data_sets[d].own && set_baseline(&found, name, MTAN_CORRECT) && index-- == 0) return name;
            }
    return NULL;
}

void recipe_list(char *text, size_t size) {
    text[0] = 0;
    for (int i = 0; i < RECIPES_OF_MTAN; i++)
        snprintf(text + strlen(text), size - strlen(text), "%s%s", i ? ", " : "", of_mtan[i].name);
}
