/* A second task for the states of a recurrent classifier, as latent_ode trains it on PhysioNet: each state predicts the
 * next row, through a net of its own. The squared error, divided by twice the variance of an observation (noise_std),
 * is averaged over the cells of a channel and then over the channels, so that a frequently measured channel counts no
 * more than another. The constant of the density is left out. The first row has no row before it, and error 0. */
#ifndef MTAN_TOOLS_BASELINES_NEXT_H
#define MTAN_TOOLS_BASELINES_NEXT_H

#include "sequence.h"

/* dec.0 and dec.2; returns the index of the first. */
int32_t add_next(mtan_params *p, const mtan_config *c);
void start_next(const mtan_config *c, mtan_real *weights, int32_t index, mtan_mt19937 *rng);

/* (B, 1), from the states (R, N) after every row. */
mtan_tensor next_loss(const mtan_forward *f, mtan_tensor states, const dense_rows *rows, int32_t index);

#endif
