/* The smallest model of each kind and of each baseline: what the seeds describe and what the trainers train. */
#ifndef MTAN_FUZZ_SMALLEST_H
#define MTAN_FUZZ_SMALLEST_H

#include <string.h>

#include "../../tools/baselines/baselines.h"

enum { SMALLEST_SETTINGS = 3, SMALLEST_MOST = 32 };

/* A model of mTAN's own. */
typedef struct smallest_model {
    const char *name;
    mtan_kind kind;
    mtan_classify_kind classify;
    const char *settings[SMALLEST_SETTINGS][2]; /* beside the sizes: key and value; fewer end with zeros */
} smallest_model;

static const smallest_model smallest_own[] = {
    {"enc", MTAN_ENC, MTAN_CLASSIFY_RECORD, {{0}}},
    {"enc-time", MTAN_ENC, MTAN_CLASSIFY_TIME, {{0}}},
    {"full", MTAN_FULL, MTAN_CLASSIFY_RECORD, {{0}}},
    {"interp", MTAN_FULL, MTAN_CLASSIFY_NONE, {{0}}},
    {"full-time", MTAN_FULL, MTAN_CLASSIFY_TIME, {{0}}},
    {"rbf", MTAN_ENC, MTAN_CLASSIFY_RECORD, {{"encoder", "rbf"}, {"decoder", "rbf"}}},
    {"rnn3", MTAN_FULL, MTAN_CLASSIFY_RECORD, {{"encoder", "rnn3"}, {"decoder", "rnn3"}}},
    {"per-head",
     MTAN_FULL,
     MTAN_CLASSIFY_RECORD,
     {{"enc_heads", "2"}, {"dec_heads", "2"}, {"embed_heads", "per_head"}}},
    {"number", MTAN_ENC, MTAN_CLASSIFY_RECORD, {{"task", "number"}, {"interval", "0.8"}, {"classes", "3"}}},
    {"labels", MTAN_ENC, MTAN_CLASSIFY_RECORD, {{"task", "labels"}}},
    {"statistics",
     MTAN_ENC,
     MTAN_CLASSIFY_RECORD,
     {{"statistics", "mean,spread,intensity,slope"}, {"frequencies", "log"}, {"summaries", "1"}}},
    {"statics", MTAN_ENC, MTAN_CLASSIFY_RECORD, {{"channels", "2"}, {"statics", "1"}}},
    {"variance", MTAN_FULL, MTAN_CLASSIFY_NONE, {{"variance", "learned"}, {"statistics", "mean,intensity"}}},
};
enum { SMALLEST_OWN = sizeof smallest_own / sizeof smallest_own[0] };

static inline void smallest_sizes(mtan_config *c) {
    c->enc_hidden = c->dec_hidden = c->latent = c->mlp_hidden = 1;
    c->embed = c->ref_points = 2;
    if (c->head_hidden) c->head_hidden = 1;
}

static inline void smallest_baseline(mtan_config *c, const mtan_architecture *a) {
    static const char *const units[] = {"units", "gru_units", "psi_units"};
    const int latent = strstr(a->name, "vae") || strstr(a->name, "l-ode");
    mtan_config_init(c, latent ? MTAN_FULL : MTAN_ENC, MTAN_CLASSIFY_RECORD, 1, 2);
    smallest_sizes(c);
    mtan_config_architecture(c, a);
    for (int i = 0; i < 3; i++) (void)mtan_config_set(c, units[i], "1"); /* of those that have them */
}

/* The name of the model; null behind the last. mTAN's own come first. */
static inline const char *smallest_config(mtan_config *c, int which) {
    if (which >= SMALLEST_OWN) {
        const mtan_architecture *a = baselines[which - SMALLEST_OWN];
        if (a) smallest_baseline(c, a);
        return a ? a->name : NULL;
    }
    const smallest_model *m = &smallest_own[which];
    mtan_config_init(c, m->kind, m->classify, 1, 2);
    smallest_sizes(c);
    for (int i = 0; i < SMALLEST_SETTINGS && m->settings[i][0]; i++)
        (void)mtan_config_set(c, m->settings[i][0], m->settings[i][1]);
    return m->name;
}

#endif
