/* Ordinary differential equations y' = f(y) whose field f is a net (add_net, tanh), solved for many rows side by side as one op.
 *
 * Every row has a start, outputs at times of its own and, with dopri5, steps of its own; rows that are done drop out, so that the
 * products of the others stay dense. A row's numbers do not depend on the others: not in their bits, and not in whether they exist.
 * Times and step sizes are doubles. dopri5 is torchdiffeq's (0.2.5): its error norm, first step, step control and dense output; rk4 is
 * the 3/8 rule, as there. The gradient goes through the accepted steps and the dense output; step sizes count as constants.
 *
 * What the backward pass needs is the state at the start of each accepted step; it computes the stages anew. `most` bounds the
 * steps: of all rows of one owner, over all ops of one solver. A row that needs more is MTAN_ERR_MEMORY; a step that no longer moves
 * the time, as where the field is not finite, is MTAN_ERR_INPUT. Without gradients nothing is kept, and `most` counts a
 * thousandfold: against endless runs alone. */
#ifndef MTAN_TOOLS_BASELINES_ODE_H
#define MTAN_TOOLS_BASELINES_ODE_H

#include "ops.h"

enum { BASELINE_ODE = BASELINE_OWN_OP, BASELINE_ODE_SOLVER, ODE_OWN_OP };
#define ODE_BACKWARD                                                                                                   \
    BASELINE_BACKWARD MTAN_BACKWARD(BASELINE_ODE, ode_back), MTAN_BACKWARD(BASELINE_ODE_SOLVER, ode_solver_back),
void ode_back(mtan_tape *tape, const mtan_node *n);
void ode_solver_back(mtan_tape *tape, const mtan_node *n);

/* a b; MTAN_ERR_SIZE on the tape, and 0, where it is too large. */
int32_t count_product(mtan_tape *tape, int32_t a, int32_t b);
/* Workspace for n things of so many bytes each, and its address (null while sizes are counted). */
mtan_tensor new_bytes(mtan_tape *tape, int32_t n, size_t bytes);
void *bytes_of(const mtan_tape *tape, mtan_tensor x);

typedef enum ode_method { ODE_EULER, ODE_RK4, ODE_DOPRI5 } ode_method;

typedef struct ode_settings {
    ode_method method;
    double rtol, atol; /* of dopri5 */
    int32_t rows;      /* most rows of an op */
    int32_t owners;    /* whose steps are counted: rows of different ops may have the same */
    int32_t most;      /* room for as many steps of an owner, over all ops */
    int32_t shared;    /* neighbours that share their steps, error norm and output times; 1: none */
} ode_settings;

enum { ODE_LINEARS = 8 }; /* of the field, at the most */

/* A field with all that solving takes. It lies in the workspace, and its copies serve as well. */
typedef struct ode_solver {
    ode_settings set;
    int32_t linears, size; /* of the field; numbers of a state */
    mtan_tensor weight[ODE_LINEARS], bias[ODE_LINEARS];
    mtan_tensor packed[ODE_LINEARS], turned[ODE_LINEARS]; /* the weights laid out for products, and their transposes */
    mtan_tensor in[ODE_LINEARS], dout[ODE_LINEARS]; /* a pool of rows: inputs of each layer, gradients of its outputs */
    mtan_tensor filled; /* int32_t: rows of the pool that wait to be added to the weights' gradients */
    mtan_tensor arg, k, dk, dy, dy0, df, darg; /* arguments of the stages, values of f there; gradients */
    mtan_tensor lanes;                         /* what runs, in ode.c */
    mtan_tensor kept, steps, used;             /* what accepted steps leave; int32_t: how many an owner has */
    mtan_tensor self;                          /* a copy of this */
} ode_solver;

/* `index` is that of the field's first weight, `layers` its hidden layers. */
ode_solver ode_solver_new(const mtan_forward *f, int32_t index, int32_t layers, ode_settings set);
/* The same of tensors, for a field without a model: weight and bias of each Linear in turn. */
ode_solver ode_solver_of(mtan_tape *tape, const mtan_tensor *param, int32_t linears, ode_settings set);

/* An output: its time, counted from the row's start, below 0 for a run into the past; times of a row move away from 0. */
typedef struct ode_output {
    double time;
    int32_t row;   /* of the results */
    int32_t steps; /* euler, rk4: equal steps from the output before to this one */
    int32_t step;  /* set by the solver: the accepted step it was read in, -1 for the start */
} ode_output;

typedef struct ode_row {
    int32_t start;           /* row of the starts */
    int32_t owner, most;     /* whose steps are counted, no two rows of an op having one; how many it may have */
    int32_t output, outputs; /* its outputs: the first, and how many */
    int32_t kept, steps;     /* set by the solver: where its steps are kept, and how many */
} ode_row;

/* An accepted step, as the solver keeps it: when it starts, counted without sign, and its size with it. */
typedef struct ode_step {
    double time, h;
} ode_step;

/* What to solve: rows and outputs, for the caller to fill in. The arrays are null while sizes are counted. */
typedef struct ode_task {
    int32_t rows, outputs; /* room for as many at first; the caller sets the true numbers */
    ode_row *row;
    ode_output *output;
    mtan_tensor at[2]; /* where the two lie */
} ode_task;
ode_task ode_task_new(mtan_tape *tape, int32_t rows, int32_t outputs);

/* y (results, Z) from start (starts, Z). */
void op_ode(mtan_tape *tape, const ode_solver *solver, mtan_tensor y, mtan_tensor start, const ode_task *task);

#endif
