/* Options that several commands share, turned into values. */
#ifndef MTAN_TOOLS_SHARED_OPTIONS_H
#define MTAN_TOOLS_SHARED_OPTIONS_H

#include "source.h"
#include "../options/options.h"

int32_t usual_threads(void);              /* CPUs, at most 8 */
int32_t option_threads(const options *o); /* --threads; default: usual_threads() */
/* --backend NAME; 0 with a message if the backend cannot run here. */
int option_backend(const options *o, const mtan_backend **b);
/* --data and --labels (or columns in their place), --origin, --static, --splits, --positive and --skip-unknown. model:
 * the model that own data must fit, or NULL. */
source_input option_input(const options *o, const prep *model);

#endif
