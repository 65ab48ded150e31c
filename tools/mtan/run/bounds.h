/* Bounds that hold every record of a data set. `records` stays 0; the caller sets it. */
#ifndef MTAN_TOOLS_BOUNDS_H
#define MTAN_TOOLS_BOUNDS_H

#include "../../data/dataset.h"

/* dataset_bounds; but for baselines with a class per time, where query times become steps of the sequence like event
 * times, `times` counts both. */
mtan_bounds model_bounds(const mtan_config *c, const dataset *d);
/* For interpolation: `times` counts the times of the events and of the truth. */
mtan_bounds interpolation_bounds(const dataset *d);

#endif
