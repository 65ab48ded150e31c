/* The paper's eleven baselines: models defined by their papers, built from the library's ops and those of ops.h. The
 * library trains, evaluates, saves and resumes them like mTAND-Enc and mTAND-Full. */
#ifndef MTAN_TOOLS_BASELINES_H
#define MTAN_TOOLS_BASELINES_H

#define MTAN_INTERNALS
#include "../../mtan.h"

/* All of them, ending with a null: the list for mtan_model_load. */
extern const mtan_architecture *const baselines[];
const mtan_architecture *baseline_named(const char *name); /* "gru-d"; null: no such baseline */

#endif
