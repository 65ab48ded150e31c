/* Ordinary differential equations y' = f(y) whose field f is a net (add_net, tanh), solved for many rows in parallel as
 * one op.
 *
 * Every row has a start, its own output times and, with dopri5, its own steps. Finished rows drop out, so that the
 * products of the others stay dense. A row's numbers do not depend on the other rows, neither in their bits nor in
 * whether they exist. Times and step sizes are doubles. dopri5 is torchdiffeq's (0.2.5): its error norm, first step,
 * step control and dense output; rk4 is the 3/8 rule, as in torchdiffeq. The gradient goes through the accepted steps
 * and the dense output; step sizes count as constants.
 *
 * The backward pass needs only the state at the start of each accepted step, and recomputes the stages. `most` bounds
 * the steps of all rows of one owner, over all ops of one solver. A row that needs more gives MTAN_ERR_MEMORY. A step
 * that no longer moves the time, for example because the field is not finite, gives MTAN_ERR_INPUT. Without gradients
 * no steps are stored, and the bound is a thousand times `most`, only to stop endless runs. */
#ifndef MTAN_TOOLS_BASELINES_ODE_H
#define MTAN_TOOLS_BASELINES_ODE_H

#include "ops.h"

enum { BASELINE_ODE = BASELINE_OWN_OP, BASELINE_ODE_SOLVER, ODE_OWN_OP };
#define ODE_BACKWARD                                                                                                   \
    BASELINE_BACKWARD MTAN_BACKWARD(BASELINE_ODE, ode_back), MTAN_BACKWARD(BASELINE_ODE_SOLVER, ode_solver_back),
void ode_back(mtan_tape *tape, const mtan_node *n);
void ode_solver_back(mtan_tape *tape, const mtan_node *n);

/* a b; if it is too large, 0, with MTAN_ERR_SIZE on the tape. */
int32_t count_product(mtan_tape *tape, int32_t a, int32_t b);
/* Workspace for n items of so many bytes each, and its address (null while sizes are counted). */
mtan_tensor new_bytes(mtan_tape *tape, int32_t n, size_t bytes);
void *bytes_of(const mtan_tape *tape, mtan_tensor x);

typedef enum ode_method { ODE_EULER, ODE_RK4, ODE_DOPRI5 } ode_method;

typedef struct ode_settings {
    ode_method method;
    double rtol, atol; /* of dopri5 */
    int32_t rows;      /* most rows in an op */
    int32_t owners;    /* steps are counted per owner; rows of different ops may have the same owner */
    int32_t most;      /* most steps of an owner, over all ops */
    int32_t shared;    /* number of neighbouring rows that share their steps, error norm and output times; 1: none */
} ode_settings;

enum { ODE_LINEARS = 8 }; /* most Linears of a field */

/* A field with everything needed to solve it. It is stored in the workspace, and copies of it work as well. */
typedef struct ode_solver {
    ode_settings set;
    int32_t linears, size; /* Linears of the field; size of a state */
    mtan_tensor weight[ODE_LINEARS], bias[ODE_LINEARS];
    mtan_tensor packed[ODE_LINEARS], turned[ODE_LINEARS]; /* weights packed for products, and their transposes */
    mtan_tensor in[ODE_LINEARS], dout[ODE_LINEARS]; /* a pool of rows: inputs of each layer, gradients of its outputs */
    mtan_tensor filled; /* int32_t: rows of the pool that are not yet added to the weights' gradients */
    mtan_tensor arg, k, dk, dy, dy0, df, darg; /* arguments of the stages, values of f there, and gradients */
    mtan_tensor lanes;                         /* of running rows, in ode.c */
    mtan_tensor kept, steps, used;             /* data of accepted steps; int32_t: number of steps per owner */
    mtan_tensor self;                          /* a copy of this struct */
} ode_solver;

/* `index` is the field's first weight, `layers` the number of its hidden layers. */
ode_solver ode_solver_new(const mtan_forward *f, int32_t index, int32_t layers, ode_settings set);
/* The same from tensors, for a field without a model: weight and bias of each Linear in turn. */
ode_solver ode_solver_of(mtan_tape *tape, const mtan_tensor *param, int32_t linears, ode_settings set);

/* An output. Its time counts from the row's start and is negative for a run into the past; the times of a row move away
 * from 0. */
typedef struct ode_output {
    double time;
    int32_t row;   /* in the results */
    int32_t steps; /* euler, rk4: equal steps from the previous output to this one */
    int32_t step;  /* set by the solver: the accepted step it was read from, -1 for the start */
} ode_output;

typedef struct ode_row {
    int32_t start;           /* its row in the starts */
    int32_t owner, most;     /* owner of its steps, different for all rows of an op; most steps of that owner */
    int32_t output, outputs; /* its first output, and their number */
    int32_t kept, steps;     /* set by the solver: place of its stored steps, and their number */
} ode_row;

/* An accepted step as the solver stores it: its start, counted without sign, and its size with sign. */
typedef struct ode_step {
    double time, h;
} ode_step;

/* The problem to solve: rows and outputs, which the caller fills in. The arrays are null while sizes are counted. */
typedef struct ode_task {
    int32_t rows, outputs; /* initially their capacities; the caller sets the true numbers */
    ode_row *row;
    ode_output *output;
    mtan_tensor at[2]; /* of the two arrays in the workspace */
} ode_task;
ode_task ode_task_new(mtan_tape *tape, int32_t rows, int32_t outputs);

/* y (results, Z) from start (starts, Z). */
void op_ode(mtan_tape *tape, const ode_solver *solver, mtan_tensor y, mtan_tensor start, const ode_task *task);

#endif
