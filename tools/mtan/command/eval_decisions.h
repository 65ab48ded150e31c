/* Parts of `mtan eval` for two classes: what the probability of the positive class is good for. */
#ifndef MTAN_TOOLS_EVAL_DECISIONS_H
#define MTAN_TOOLS_EVAL_DECISIONS_H

#include "../model/session.h"

/* Calibration slope and intercept, and a table of thresholds; nothing for more classes. p: labelled rows. JSON: keys behind others
 * of an object. */
void put_decisions(const session *s, const predictions *p, int32_t draws, int json);

#endif
