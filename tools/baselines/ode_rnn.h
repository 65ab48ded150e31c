/* The recognition net of ODE-RNN, also used by L-ODE-ODE: between the rows of a record its state follows an ODE, and at
 * a row a gated unit takes in the observations (Rubanova et al., 2019). The state is (y, s), N numbers each; the ODE
 * moves only y. */
#ifndef MTAN_TOOLS_BASELINES_ODE_RNN_H
#define MTAN_TOOLS_BASELINES_ODE_RNN_H

#include "ode.h"
#include "architecture_settings.h"
#include "walk.h"

enum { BASELINE_UNIT = ODE_OWN_OP, BASELINE_UNIT_WEIGHTS, ODE_RNN_OWN_OP };
#define ODE_RNN_BACKWARD                                                                                               \
    ODE_BACKWARD MTAN_BACKWARD(BASELINE_UNIT, ode_rnn_unit_back),                                                      \
        MTAN_BACKWARD(BASELINE_UNIT_WEIGHTS, ode_rnn_weights_back),
void ode_rnn_unit_back(mtan_tape *tape, const mtan_node *n);
void ode_rnn_weights_back(mtan_tape *tape, const mtan_node *n);

/* Checks its settings: units, gru_units, rec_layers, rec_solver, ode_steps, rtol, atol. most_steps: steps of a record
 * in addition to those that its rows and ode_steps need; dopri5 and the negative intervals of the published code may
 * need them. */
mtan_status check_ode_rnn(const mtan_config *c);
enum { ODE_MOST_STEPS = 128 }; /* default of most_steps */
/* Do the settings under this name (rec_solver, dec_solver) form a valid solver? */
int32_t is_solver(const mtan_config *c, const char *name);
/* Indices of its parameters: the three nets of the unit, and the field. */
typedef struct ode_rnn_roles {
    int32_t net[3], field;
} ode_rnn_roles;
/* Its parameters in a direction (0 or 1), and their initial values. */
ode_rnn_roles add_ode_rnn(mtan_params *p, const mtan_config *c, int32_t direction);
void start_ode_rnn(const mtan_config *c, mtan_real *weights, const ode_rnn_roles *roles, mtan_mt19937 *rng);

/* The interval of the ODE before a row: the gap to the row before; or the interval of the published ODE-RNN, which lags
 * behind; or that of the encoder in the published L-ODE-ODE, which starts a hundredth early and takes one step less per
 * gap. */
typedef enum ode_rnn_intervals { GAPS, PUBLISHED_LAGGING, PUBLISHED_EARLY } ode_rnn_intervals;

typedef struct ode_rnn_run {
    ode_rnn_roles roles;
    int32_t reverse; /* from the last row to the first */
    ode_rnn_intervals intervals;
    int32_t cells; /* skip rows without a cell: the state stays */
} ode_rnn_run;

/* States (R, 2N) after every row. */
mtan_tensor apply_ode_rnn(const mtan_forward *f, const dense_rows *rows, ode_rnn_run run);

/* Number of steps of a fixed size for `amount` of them: at least one. The 0.007 keeps integer amounts away from the
 * edge of rounding. */
int32_t whole_steps(double amount);

#endif
