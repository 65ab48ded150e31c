/* The smallest model of each kind and of each baseline: what the seeds describe and what the trainers train. */
#ifndef MTAN_FUZZ_SMALLEST_H
#define MTAN_FUZZ_SMALLEST_H

#include <string.h>

#include "../../tools/baselines/baselines.h"

enum { SMALLEST_OWN = 8, SMALLEST_MOST = 32 }; /* mTAN's own come first, then the baselines */

static inline void smallest_sizes(mtan_config *c) {
    c->enc_hidden = c->dec_hidden = c->latent = c->mlp_hidden = 1;
    c->embed = c->ref_points = 2;
    if (c->head_hidden) c->head_hidden = 1;
}

static inline void smallest_own(mtan_config *c, int which) {
    static const mtan_classify_kind classify[SMALLEST_OWN] = {
        MTAN_CLASSIFY_RECORD, MTAN_CLASSIFY_TIME,   MTAN_CLASSIFY_RECORD, MTAN_CLASSIFY_NONE,
        MTAN_CLASSIFY_TIME,   MTAN_CLASSIFY_RECORD, MTAN_CLASSIFY_RECORD, MTAN_CLASSIFY_RECORD};
    mtan_config_init(c, which < 2 || which == 5 ? MTAN_ENC : MTAN_FULL, classify[which], 1, 2);
    smallest_sizes(c);
    if (which == 5) c->encoder = c->decoder = MTAN_RBF;
    if (which == 6) c->encoder = c->decoder = MTAN_RNN3;
    if (which == 7) c->enc_heads = c->dec_heads = 2, c->embed_heads = MTAN_EMBED_PER_HEAD;
}

/* 1, or 0 behind the last. */
static inline int smallest_config(mtan_config *c, int which) {
    static const char *const units[] = {"units", "gru_units", "psi_units"};
    if (which < SMALLEST_OWN) return smallest_own(c, which), 1;
    const mtan_architecture *a = baselines[which - SMALLEST_OWN];
    if (!a) return 0;
    const int latent = strstr(a->name, "vae") || strstr(a->name, "l-ode");
    mtan_config_init(c, latent ? MTAN_FULL : MTAN_ENC, MTAN_CLASSIFY_RECORD, 1, 2);
    smallest_sizes(c);
    mtan_config_architecture(c, a);
    for (int i = 0; i < 3; i++) (void)mtan_config_set(c, units[i], "1"); /* of those that have them */
    return 1;
}

#endif
