/* The paper's eleven baselines: models defined by their papers, of the library's ops and those of ops.h. Each is trained,
 * evaluated, kept in files and resumed by the library as mTAND-Enc and mTAND-Full are. */
#ifndef MTAN_TOOLS_BASELINES_H
#define MTAN_TOOLS_BASELINES_H

#define MTAN_INTERNALS
#include "../../mtan.h"

/* All of them, up to a null: what mtan_model_load takes. */
extern const mtan_architecture *const baselines[];
const mtan_architecture *baseline_named(const char *name); /* "gru-d"; null: none of them */

#endif
