/* The intervals of a number, as wide as they promise. What a net learns of its quantiles is wrong where dropout disturbs it in training
 * alone (too wide) or where it knows its training records too well (too narrow), so validation records have the last word: the
 * distances of both ends from the median are multiplied by one factor, with which as many of those records as promised lie inside. This
 * is conformal prediction, with the model's own distances for the scale.
 *
 * The last layer of a model is linear, so the factor goes into its rows: predictors, streams and exported headers know nothing of it. */
#ifndef MTAN_TOOLS_WIDTHS_H
#define MTAN_TOOLS_WIDTHS_H

#include "../../../mtan.h"
#include "../measure/numbers.h"

enum { WIDTH_LEAST = 20 }; /* rows that say something about a width */

/* 1 where there is no interval, or too few rows. */
double width_factor(const number_predictions *p, double interval);
/* Where the rows of low, median and high are: the parameters of the last layer. 0: the model has no interval. */
int width_layer(const mtan_config *c, mtan_param *weight, mtan_param *bias);
void width_apply(const mtan_config *c, mtan_real *weights, double factor);

#endif
