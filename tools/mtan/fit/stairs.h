/* A logistic regression (logistic.h), or of targets a linear one (ridge.h), written as trees (boost.h): one tree for
 * each number, whose leaves follow the regression line in steps. An effect that grows slowly with a number takes one
 * weight here, but many boosted trees that find it split by split. Few rows suffice for the weight, not for the
 * trees. */
#ifndef MTAN_TOOLS_STAIRS_H
#define MTAN_TOOLS_STAIRS_H

#include "boost.h"

/* Reads only the numbers that `reads` marks. ridge NaN: chooses the ridge with the smallest loss on the validation rows.
 * Returns the ridge. */
double stairs_fit(boost *b, boost_rows train, boost_rows valid, const uint8_t *reads, size_t numbers, int32_t classes,
                  double ridge);

#endif
