/* Parts of `mtan eval` for two classes: how far the probability of the positive class supports decisions. */
#ifndef MTAN_TOOLS_EVAL_DECISIONS_H
#define MTAN_TOOLS_EVAL_DECISIONS_H

#include "../model/session.h"

/* Calibration slope and intercept, and a table of thresholds; nothing for more than two classes. p: labelled rows.
 * JSON: keys of an object that is already open and not empty. */
void put_decisions(const session *s, const predictions *p, int32_t draws, int json);

#endif
