/* Part of `mtan eval`: models that predict a number, or several labels. */
#ifndef MTAN_TOOLS_EVAL_NUMBERS_H
#define MTAN_TOOLS_EVAL_NUMBERS_H

#include "../model/session.h"

/* Returns the exit status. */
int eval_numbers(session *s, const options *o, int json);

#endif
