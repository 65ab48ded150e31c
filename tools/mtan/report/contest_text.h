/* A contest (contest.h) as a table for people, as JSON for programs, and as sentences for both. */
#ifndef MTAN_TOOLS_CONTEST_TEXT_H
#define MTAN_TOOLS_CONTEST_TEXT_H

#include <stdio.h>

#include "../measure/contest.h"

/* The heading of a table under `title`: a column for each who took part, and the model's difference to the best; then a row. */
void contest_heading(FILE *out, const char *title, const contest_number *like);
void contest_row(FILE *out, const char *title, const contest_number *n);
/* , "baselines": {"auc": {"model": ..., "majority": ..., "best": "regression", "better_by": ..., "low": ..., "high": ...}, ...} */
void contest_json(FILE *out, const contest_number *numbers);
/* "AUC 0.8431; without a model: largest class 0.5000, logistic regression on summaries 0.8602" */
const char *contest_line(char *text, size_t size, const contest_number *n);

/* Whether the model is worth having, by one number and its interval; where it is not, the sentence ends with what to try, which
 * depends on what the model has already. Empty where there is no rival. */
enum { CONTEST_VERDICT_BYTES = 640 };
const char *contest_verdict(char *text, const contest_number *n, const mtan_config *config);
int contest_lost(
    const contest_number *n); /* 1: the model is not better than the best of the others, as far as one can tell */
/* The options that the advice names, up to NULL at the end. */
const char *contest_advice_option(size_t i);

#endif
