/* Common code of the baselines: ops in addition to the library's, layers made of ops, and lists of parameters for them.
 *
 * An architecture's table of backward functions starts with BASELINE_BACKWARD and continues with its own ops, numbered
 * from BASELINE_OWN_OP on. As in the library, the caller provides the result, gradients are added, and nothing is
 * touched while sizes are counted. */
#ifndef MTAN_TOOLS_BASELINES_OPS_H
#define MTAN_TOOLS_BASELINES_OPS_H

#define MTAN_INTERNALS
#include "../../mtan.h"

/* The models' own loops are plain loops over many numbers. gcc vectorises them only at this level, and loops with a
 * conditional only if the branch not taken may raise floating-point exceptions, which nobody reads. The bits are the
 * same. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math")
#endif

/* The list of ops. Number, backward function and place in the table all come from it. */
#define BASELINE_OPS(X) X(decay) X(logvar) X(first) X(next)

enum {
    BASELINE_BEFORE = MTAN_OP_USER - 1,
#define X(name) BASELINE_##name,
    BASELINE_OPS(X)
#undef X
        BASELINE_OWN_OP
};

#define X(name) void baseline_##name##_back(mtan_tape *tape, const mtan_node *n);
BASELINE_OPS(X)
#undef X
#define BASELINE_BACK(name) MTAN_BACKWARD(BASELINE_##name, baseline_##name##_back),
#define BASELINE_BACKWARD BASELINE_OPS(BASELINE_BACK) /* with a trailing comma, like all tables built from it */

/* Traits of all baselines: every record has its own times, classes per time are rows among them, and a latent state
 * belongs to a whole record. */
#define BASELINE_TRAITS (MTAN_READS_TIMES | MTAN_JOINS_QUERIES | MTAN_ONE_LATENT | MTAN_USES_ALPHA)
/* The number of int32_t in a struct of parameter indices. */
#define ROLES(type) (int32_t)(sizeof(type) / sizeof(int32_t))

/* Should an op compute? Not while counting, and not after a failure. */
int op_runs(const mtan_tape *tape);

/* A row of a tensor, and of its gradient. */
static inline mtan_real *row_at(const mtan_tape *tape, mtan_tensor x, int32_t i) {
    return mtan_data(tape, x) + (size_t)i * (size_t)x.stride;
}
static inline mtan_real *grad_row(const mtan_tape *tape, mtan_tensor x, int32_t i) {
    return mtan_grad(tape, x) + (size_t)i * (size_t)x.stride;
}

/* Elementwise on matrices of one shape, any stride: */
void op_decay(mtan_tape *tape, mtan_tensor y, mtan_tensor x);  /* y = exp(-max(0, x)) */
void op_logvar(mtan_tape *tape, mtan_tensor y, mtan_tensor x); /* y = 2 log max(|x|, 1e-6): a log-variance */

/* (R S, C) to (B S, C): the first step of each sequence, where a GRU that runs backwards ends; zeros for an empty
 * sequence. */
void op_first(mtan_tape *tape, mtan_tensor y, mtan_tensor x);

/* ---- layers ---- */

/* NAME.weight (out, in) and NAME.bias (out), initialised as in torch.nn.Linear; returns the index of the weight; the
 * bias follows. */
int32_t add_linear(mtan_params *p, const char *name, int32_t out, int32_t in);
/* NAME.weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0 of a torch.nn.GRU; returns the index of the first. */
int32_t add_gru(mtan_params *p, const char *name, int32_t in, int32_t hidden);
/* NAME.0, NAME.2, ...: `layers` hidden layers of `units`, then `out`. */
int32_t add_net(mtan_params *p, const char *name, int32_t in, int32_t units, int32_t layers, int32_t out);

mtan_tensor apply_linear(const mtan_forward *f, int32_t index, mtan_tensor x);
/* The net of add_net, with tanh or ReLU after each hidden layer. */
mtan_tensor apply_net(const mtan_forward *f, int32_t index, int32_t layers, mtan_tensor x, int32_t relu);
/* A weight (n, k) for products with the few rows of a step, packed once for all steps: for product_packed and
 * mtan_op_gru. */
mtan_tensor packed_weight(const mtan_forward *f, mtan_tensor w);
/* x (R, in) through a GRU over the batch's sequence, forwards or backwards: (R, N). */
mtan_tensor apply_gru(const mtan_forward *f, int32_t index, mtan_tensor x, int32_t hidden, int32_t reverse);

/* The classifier of all baselines: two hidden layers of config.head_hidden with ReLU, or one linear layer if that is
 * 0. */
int32_t add_head(mtan_params *p, const mtan_config *c, int32_t in);
mtan_tensor apply_head(const mtan_forward *f, int32_t index, mtan_tensor x);

/* Initialises a tensor of the list differently from the uniform default. */
void start_constant(const mtan_config *c, mtan_real *weights, int32_t index, double value);
void start_normal(const mtan_config *c, mtan_real *weights, int32_t index, double std, mtan_mt19937 *rng);
/* Initialises a net of add_net or a linear layer (layers 0) like latent_ode: weights N(0, 0.1^2), biases 0. */
void start_net(const mtan_config *c, mtan_real *weights, int32_t index, int32_t layers, mtan_mt19937 *rng);

#endif
