/* A contest (contest.h) as a text table, as JSON, and as sentences. */
#ifndef MTAN_TOOLS_CONTEST_TEXT_H
#define MTAN_TOOLS_CONTEST_TEXT_H

#include <stdio.h>

#include "../measure/contest.h"

/* contest_heading: the heading of a table, with a column for each baseline and one for the model's difference to the
 * best. contest_row: a row of it. */
void contest_heading(FILE *out, const char *title, const contest_number *like);
void contest_row(FILE *out, const char *title, const contest_number *n);
/* Appends , "baselines": {"auc": {"model": ..., "majority": ..., "best": "regression", "better_by": ..., "low": ...,
 * "high": ...}, ...} */
void contest_json(FILE *out, const contest_number *numbers);
/* "AUC 0.8431; without a model: largest class 0.5000, logistic regression on summaries 0.8602" */
const char *contest_line(char *text, size_t size, const contest_number *n);

/* Whether the model is better than the best baseline, by one metric and its interval, or that there are too few records
 * to tell. If it is not, the sentence ends with advice that depends on the model's settings. Empty without a
 * baseline. */
enum { CONTEST_VERDICT_BYTES = 640, CONTEST_FEW_BYTES = 96 };
const char *contest_verdict(char *text, const contest_number *n, const mtan_config *config);
int contest_lost(
    const contest_number *n); /* 1: the model is not better than the best baseline, as far as one can tell */
/* "2 records are too few to tell", the beginning of a sentence; NULL: they are not. */
const char *contest_few(char text[CONTEST_FEW_BYTES], const contest_number *n);
/* The options that the advice names; NULL past the last. */
const char *contest_advice_option(size_t i);

#endif
