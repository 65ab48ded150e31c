/* What an option of training needs before anything reads it: a latent state, a decoder, classes, ... What a preset or a
 * recipe sets is nobody's wish, so only options that were given count. */
#ifndef MTAN_TOOLS_NEEDS_H
#define MTAN_TOOLS_NEEDS_H

#include "plan.h"

/* Refuses a given option that this plan does not read; of a search's trial only one that the labels rule out for every
 * model. with_data: plan_fit has told the plan what the labels are; else needs that depend on the data are left for
 * later. 1, or 0 with a message printed. */
int needs_are_met(const plan *p, const options *o, int with_data);
/* Why a model cannot have its value of a setting, a key of mtan_config_key: "must be at least 2"; NULL: no reason is
 * known. */
const char *needs_reason(const mtan_config *c, const char *key);

#endif
