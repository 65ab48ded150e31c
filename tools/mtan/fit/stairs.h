/* A logistic regression (logistic.h) as trees (boost.h): one for each number, whose leaves follow the straight line in steps. What grows
 * slowly with a number takes one weight here, and many trees that find it split by split: few rows show the one and not the other. */
#ifndef MTAN_TOOLS_STAIRS_H
#define MTAN_TOOLS_STAIRS_H

#include "boost.h"

/* By those numbers alone that `reads` marks. ridge: NaN: the one with the smallest log-loss of the validation rows. Returns the
 * ridge. */
double stairs_fit(boost *b, boost_rows train, boost_rows valid, const uint8_t *reads, size_t numbers, int32_t classes,
                  double ridge);

#endif
