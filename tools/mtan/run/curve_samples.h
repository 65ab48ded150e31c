/* How many samples of the latent state a curve is made of where nobody says. A model with a learned variance has a
 * deviation without samples: it takes its own predict_samples, so that its curves are those that `mtan eval` measures.
 * The deviation of any other model is that of its samples, 0 without them: it takes the usual number. */
#ifndef MTAN_TOOLS_CURVE_SAMPLES_H
#define MTAN_TOOLS_CURVE_SAMPLES_H

#include "../../../mtan.h"

enum { USUAL_SAMPLES = 20 };

static inline int32_t curve_samples(const mtan_config *c, int32_t usual) {
    return c->variance == MTAN_VARIANCE_LEARNED ? c->predict_samples : usual;
}

#endif
