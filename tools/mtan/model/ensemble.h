/* Models of the same settings and preprocessing, trained apart, in one model file that averages them (mtan.h, mtan_model_join). */
#ifndef MTAN_TOOLS_ENSEMBLE_H
#define MTAN_TOOLS_ENSEMBLE_H

#include "plan.h"

/* Joins the model files `members` (n) into the file `path`, which says by which plan they were trained and has the data, the split
 * and the self-test's record of the first; parts: of another split, an stb_ds array of mtan.split.*, or NULL. Files that do not go
 * together are refused. 1, or 0 with error (512 bytes) set. */
int ensemble_join(const char *path, const plan *p, char (*members)[4096], int32_t n, const mtan_file_pair *parts,
                  char *error);

#endif
