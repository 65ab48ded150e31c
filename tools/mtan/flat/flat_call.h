/* Shared by the functions of flat.h: handles, and how a call is made. flat_call runs code that prints messages, as the
 * tools' modules do: the listener hears them, and mtan_flat_message keeps them. Running out of memory is a failure like
 * any other. */
#ifndef MTAN_TOOLS_FLAT_CALL_H
#define MTAN_TOOLS_FLAT_CALL_H

#include "../model/source.h"
#include "flat_core.h"

struct mtan_flat_data {
    own_columns columns;
    const int64_t *query_offset; /* NULL: no queries */
    const double *query_time;
    int skip_unknown;
};

struct mtan_flat_model {
    flat_core core; /* views of the bundle */
    bundle bundle;
    source source;
    size_t batch; /* records per batch in training; 0: not known */
};

/* Prepares the data as the model sees it. 1, or 0 with a message printed; dataset_free is due after both. */
int flat_prepare(dataset *d, const mtan_flat_model *m, const own_columns *c, int skip_unknown);

#endif
