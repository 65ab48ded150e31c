/* Conformal calibration of a number's intervals. The learned quantiles are too far apart where dropout disturbs the net
 * in training only, and too close where the net overfits its training records, or has not learned their distance yet.
 * So both ends are moved until the promised share of the validation records lies inside:
 *   narrower: their distances from the median are multiplied by one factor below 1;
 *   wider: one margin is added at both ends (conformalised quantile regression, Romano et al. 2019).
 * Neither moves an end across the median. Quantiles are learned separately and may cross in some records, and
 * predictors sort them: a factor above 1 would multiply a crossing too, until an end takes the place of the median.
 *
 * Measured: 486 models on made-up records (200, 400 or 600; noise even, uneven or skewed; 15, 30 or 60 epochs of a
 * small net, or the default net), each on 1500 new records. Widths are relative to the margin's, errors to those before
 * calibration:
 *                      interval 0.8                      interval 0.9
 *                      coverage  width  RMSE (worst)     coverage  width  RMSE (worst)
 *   as learned         0.517     0.59   1    (1)         0.614     0.59   1    (1)
 *   one factor         0.792     1.59   1.07 (3.48)      0.891     2.31   1.27 (8.83)
 *   margin only        0.799     1      1.00 (1.02)      0.900     1      1.00 (1.02)
 *   as above           0.798     1.00   1.00 (1.02)      0.900     1.00   1.00 (1.02)
 * The coverage varies from model to model by 0.057 and 0.044, with one factor by 0.067 and 0.059 (standard deviations).
 * A margin alone narrows as well, but an end that moves inwards by a constant can pass the median of a record whose
 * interval is short. Where quantiles had crossed, the prediction was the middle one of the three, and with a margin it
 * is the median's own: hence the 1.02.
 *
 * The last layer of a model is linear, so factor and margin go into its rows: predictors, streams and exported headers
 * need no change. The row of the median keeps its bits. */
#ifndef MTAN_TOOLS_WIDTHS_H
#define MTAN_TOOLS_WIDTHS_H

#include "../../../mtan.h"
#include "../measure/numbers.h"

enum { WIDTH_LEAST = 20 }; /* fewest rows for a factor */

/* low = median + factor * (low - median) - margin, high likewise. {0, 0} and {1, 0} change nothing. */
typedef struct width_change {
    double factor, margin;
} width_change;

/* The factor, of any size, and the margin that hold the promised share of the rows, which are not sorted. 1 and 0 where
 * the model has no interval, or where the rows are too few. */
double width_factor(const number_predictions *p, double interval);
double width_margin(const number_predictions *p, double interval);
/* The change to make, of rows that are not sorted: a factor below 1, or a margin. */
width_change width_find(const number_predictions *p, double interval);
int width_changes(width_change w);
/* What the changed model predicts for rows that are not sorted: (rows), malloc'd. NULL: the model has no interval. */
double *width_middles(const number_predictions *p, width_change w);
/* Finds the parameters of the last layer, which hold the rows of low, median and high. 0: the model has no interval. */
int width_layer(const mtan_config *c, mtan_param *weight, mtan_param *bias);
void width_apply(const mtan_config *c, mtan_real *weights, width_change w);

#endif
