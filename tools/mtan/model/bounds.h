/* How large a model's records may become: the bounds that hold every record of a data set. records stays 0: the caller's. */
#ifndef MTAN_TOOLS_BOUNDS_H
#define MTAN_TOOLS_BOUNDS_H

#include "../../data/dataset.h"

/* dataset_bounds, but where the query times become steps of the sequence beside the event times (a class per time by a baseline)
 * they count together. */
mtan_bounds model_bounds(const mtan_config *c, const dataset *d);
/* Where a model interpolates: the events' and the truth's times together. */
mtan_bounds interpolation_bounds(const dataset *d);

#endif
