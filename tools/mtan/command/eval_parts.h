/* Parts of `mtan eval` that all kinds of models share: lines for people, keys of one JSON object for programs. */
#ifndef MTAN_TOOLS_EVAL_PARTS_H
#define MTAN_TOOLS_EVAL_PARTS_H

#include "../measure/contest.h"
#include "../model/session.h"

/* The opening of the object: the model and the records. */
void put_what(const session *s, const options *o, int json);
void put_key(const char *key, double x);
/* "auc": x, "auc_low": ..., "auc_high": ... */
void put_range(const char *key, double x, interval range);
/* A line: the title, the value and, if there is one, its interval. format: of a number. */
void put_metric(const char *title, const char *format, double x, interval range);
/* What one has without the model, and whether the model is worth having: a table and a sentence. */
void put_rivals(const session *s, const contest_number *numbers, int json);
void put_verdict(const session *s, const contest_number *headline, int json);

#endif
