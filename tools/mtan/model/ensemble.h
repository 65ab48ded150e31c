/* Models with the same settings and preprocessing, trained separately, in one model file that averages them (mtan.h,
 * mtan_model_join). */
#ifndef MTAN_TOOLS_ENSEMBLE_H
#define MTAN_TOOLS_ENSEMBLE_H

#include "plan.h"

/* Joins the model files `members` (n) into the file `path`. The file records the plan of their training, and takes
 * data, split and self-test record from the first member. parts: mtan.split.* pairs of another split, an stb_ds array,
 * or NULL. Files that do not match are refused. 1, or 0 with error (512 bytes) set. */
int ensemble_join(const char *path, const plan *p, char (*members)[4096], int32_t n, const mtan_file_pair *parts,
                  char *error);

#endif
