/* Part of `mtan eval` and `mtan report`: --by, the metrics per value of a column of the labels. */
#ifndef MTAN_TOOLS_EVAL_GROUPS_H
#define MTAN_TOOLS_EVAL_GROUPS_H

#include "../model/session.h"
#include "../measure/subgroups.h"

/* Reads the file of --by and measures the groups; `column` keeps their names. Returns 1, with *groups NULL if --by is
 * not given, or 0 with a message printed. Free both in any case. */
int option_groups(record_column *column, subgroup **groups, const session *s, const options *o, const worth *w,
                  int32_t draws);
/* A table of the headline metrics, or a key of a JSON object with all of them. */
void put_groups(const char *column, const subgroup *groups, const worth *w, int json);

#endif
