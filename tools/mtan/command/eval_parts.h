/* Parts of `mtan eval` that all kinds of models share: lines of text, or keys of one JSON object. */
#ifndef MTAN_TOOLS_EVAL_PARTS_H
#define MTAN_TOOLS_EVAL_PARTS_H

#include "../measure/contest.h"
#include "../model/session.h"

/* Opens the object: the model and the records. */
void put_what(const session *s, const options *o, int json);
/* "auc": x, "auc_low": ..., "auc_high": ... */
void put_range(const char *key, double x, interval range);
/* A number for people, in `format`; "-" for one that does not exist. */
const char *shown_number(char text[32], const char *format, double x);
/* A line: the title, the value and its interval, if there is one. format: of one number. */
void put_metric(const char *title, const char *format, double x, interval range);
/* The baselines, which need no model, and whether the model beats them: a table and a sentence. */
void put_rivals(const session *s, const contest_number *numbers, int json);
void put_verdict(const session *s, const contest_number *headline, int json);

#endif
