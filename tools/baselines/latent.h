/* What RNN-VAE, L-ODE-RNN and L-ODE-ODE share: an encoder's last state becomes a posterior over one latent state z per record, its
 * samples go to a decoder, and classes are read from them. With a class per time the encoder sees the event times alone. */
#ifndef MTAN_TOOLS_BASELINES_LATENT_H
#define MTAN_TOOLS_BASELINES_LATENT_H

#include "ode_rnn.h"

enum { BASELINE_GATHER = ODE_RNN_OWN_OP, LATENT_OWN_OP };
#define LATENT_BACKWARD ODE_RNN_BACKWARD MTAN_BACKWARD(BASELINE_GATHER, latent_gather_back),
void latent_gather_back(mtan_tape *tape, const mtan_node *n);

/* y (n, C): row i of it is row index[i] of x. The indices are in the workspace, as `new_bytes` of int32_t has them. */
void op_gather(mtan_tape *tape, mtan_tensor y, mtan_tensor x, mtan_tensor index);

/* A latent state, a preset, units of the decoder. */
mtan_status check_latent(const mtan_config *c);
int32_t is_faithful(const mtan_config *c);
int32_t per_time(const mtan_config *c);

/* rec.rnn, a GRU over rows; rec.z0, from `in` numbers to the posterior. The index of the first parameter. */
int32_t add_rnn_encoder(mtan_params *p, const mtan_config *c);
int32_t add_posterior(mtan_params *p, const mtan_config *c, int32_t in);

/* The order of the rows, and which gap a row is fed with. */
typedef enum gap_kind {
    SINCE_ROW_BEFORE, /* rows from the last to the first; from the row processed before */
    TO_ROW_AFTER,     /* the same rows; to the row processed next: L-ODE-RNN's published code */
    TURNED_ROUND      /* rows from the first to the last, gaps in the reverse order: RNN-VAE's published code */
} gap_kind;
/* The last state of a GRU over the rows [x, m, gap]: (B, N). */
mtan_tensor apply_rnn_encoder(const mtan_forward *f, const dense_rows *rows, int32_t index, gap_kind gaps);

/* Posterior and samples of the states (B, N), in `out`; rec.z0 starts at `index`. */
void draw_latent(const mtan_forward *f, mtan_outputs *out, mtan_tensor states, int32_t index);

/* The queries of the record at place b in ascending order: indices from its first query on, into `order`; how many. */
int32_t sort_queries(const mtan_forward *f, int32_t b, int32_t *order);
/* The most queries that a record has, or may have while sizes are counted. */
int32_t most_queries(const mtan_tape *tape);

#endif
