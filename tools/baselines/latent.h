/* Common parts of RNN-VAE, L-ODE-RNN and L-ODE-ODE: an encoder's last state becomes a posterior over one latent state z
 * per record; its samples go to a decoder, and classes are read from them. With a class per time, the encoder sees only
 * the event times. */
#ifndef MTAN_TOOLS_BASELINES_LATENT_H
#define MTAN_TOOLS_BASELINES_LATENT_H

#include "ode_rnn.h"

enum { BASELINE_GATHER = ODE_RNN_OWN_OP, LATENT_OWN_OP };
#define LATENT_BACKWARD ODE_RNN_BACKWARD MTAN_BACKWARD(BASELINE_GATHER, latent_gather_back),
void latent_gather_back(mtan_tape *tape, const mtan_node *n);

/* y (n, C): row i is row index[i] of x. The indices are int32_t in the workspace, allocated by `new_bytes`. */
void op_gather(mtan_tape *tape, mtan_tensor y, mtan_tensor x, mtan_tensor index);

/* Checks for a latent state, a preset and the decoder's units. */
mtan_status check_latent(const mtan_config *c);
int32_t is_faithful(const mtan_config *c);
int32_t per_time(const mtan_config *c);

/* rec.rnn, a GRU over rows; rec.z0, from `in` numbers to the posterior. Both return the index of the first
 * parameter. */
int32_t add_rnn_encoder(mtan_params *p, const mtan_config *c);
int32_t add_posterior(mtan_params *p, const mtan_config *c, int32_t in);

/* The order of the rows, and the gap that goes with a row. */
typedef enum gap_kind {
    SINCE_ROW_BEFORE, /* rows from the last to the first; gap since the row processed before */
    TO_ROW_AFTER,     /* the same rows; gap to the row processed next: L-ODE-RNN's published code */
    TURNED_ROUND      /* rows from the first to the last, gaps in the reverse order: RNN-VAE's published code */
} gap_kind;
/* The last state of a GRU over the rows [x, m, gap]: (B, N). */
mtan_tensor apply_rnn_encoder(const mtan_forward *f, const dense_rows *rows, int32_t index, gap_kind gaps);

/* Draws the posterior and samples from the states (B, N) into `out`; rec.z0 starts at `index`. */
void draw_latent(const mtan_forward *f, mtan_outputs *out, mtan_tensor states, int32_t index);

/* Writes the queries of the record at place b to `order`, ascending, as indices from its first query on; returns their
 * number. */
int32_t sort_queries(const mtan_forward *f, int32_t b, int32_t *order);
/* The largest number of queries of a record; an upper bound while sizes are counted. */
int32_t most_queries(const mtan_tape *tape);

#endif
