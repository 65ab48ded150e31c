/* See baselines.h. */
#include "baselines.h"

#include <string.h>

extern const mtan_architecture baseline_rnn_dt, baseline_rnn_impute, baseline_rnn_decay, baseline_gru_d,
    baseline_phased_lstm, baseline_ode_rnn, baseline_seft, baseline_ip_nets, baseline_l_ode_rnn, baseline_l_ode_ode,
    baseline_rnn_vae;

const mtan_architecture *const baselines[] = {&baseline_rnn_dt,    &baseline_rnn_impute,  &baseline_rnn_decay,
                                              &baseline_gru_d,     &baseline_phased_lstm, &baseline_ode_rnn,
                                              &baseline_seft,      &baseline_ip_nets,     &baseline_l_ode_rnn,
                                              &baseline_l_ode_ode, &baseline_rnn_vae,     NULL};

const mtan_architecture *baseline_named(const char *name) {
    for (int i = 0; baselines[i]; i++)
        if (strcmp(baselines[i]->name, name) == 0) return baselines[i];
    return NULL;
}
