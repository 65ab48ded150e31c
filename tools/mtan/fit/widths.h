/* Conformal calibration of a number's intervals. The learned quantiles are too far apart where dropout disturbs the net
 * in training only, and too close where the net overfits its training records. So the distances of both ends from the
 * median are multiplied by one factor, with which the promised share of the validation records lies inside. This is
 * conformal prediction with the model's own distances as the scale.
 *
 * The last layer of a model is linear, so the factor is multiplied into its rows: predictors, streams and exported
 * headers need no change. */
#ifndef MTAN_TOOLS_WIDTHS_H
#define MTAN_TOOLS_WIDTHS_H

#include "../../../mtan.h"
#include "../measure/numbers.h"

enum { WIDTH_LEAST = 20 }; /* fewest rows for a factor */

/* 1 where the model has no interval, or where the rows are too few. */
double width_factor(const number_predictions *p, double interval);
/* Finds the parameters of the last layer, which hold the rows of low, median and high. 0: the model has no interval. */
int width_layer(const mtan_config *c, mtan_param *weight, mtan_param *bias);
void width_apply(const mtan_config *c, mtan_real *weights, double factor);

#endif
