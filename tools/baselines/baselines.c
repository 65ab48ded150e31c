/* See baselines.h. */
#include "baselines.h"

#include <string.h>

/* One line each: baseline_<name> is the architecture, defined in a file of this folder. */
#define BASELINES(X)                                                                                                   \
    X(rnn_impute)                                                                                                      \
    X(rnn_dt)                                                                                                          \
    X(rnn_decay)                                                                                                       \
    X(gru_d)                                                                                                           \
    X(phased_lstm)                                                                                                     \
    X(ip_nets)                                                                                                         \
    X(seft)                                                                                                            \
    X(rnn_vae)                                                                                                         \
    X(ode_rnn)                                                                                                         \
    X(l_ode_rnn)                                                                                                       \
    X(l_ode_ode)

#define X(name) extern const mtan_architecture baseline_##name;
BASELINES(X)
#undef X

const mtan_architecture *const baselines[] = {
#define X(name) &baseline_##name,
    BASELINES(X)
#undef X
        NULL};

const mtan_architecture *baseline_named(const char *name) {
    for (int i = 0; baselines[i]; i++)
        if (strcmp(baselines[i]->name, name) == 0) return baselines[i];
    return NULL;
}
