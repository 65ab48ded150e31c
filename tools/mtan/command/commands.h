/* The commands of `mtan`. Each takes the parsed command line and returns the exit status: 0, 1 (done, but something is
 * wrong) or 2 (could not be done). */
#ifndef MTAN_TOOLS_COMMANDS_H
#define MTAN_TOOLS_COMMANDS_H

#include "../options/options.h"

enum { FIGURES_MODELS_MOST = 4 }; /* models that mtan figures takes */

/* Runs the command that was parsed. It returns even if memory runs out, with a message printed. */
int command_call(const options *o);

int command_train(const options *o);       /* train.c */
int command_eval(const options *o);        /* eval.c */
int command_explain(const options *o);     /* explain.c */
int command_predict(const options *o);     /* predict.c */
int command_interpolate(const options *o); /* predict.c */
int command_stream(const options *o);      /* stream.c */
int command_selftest(const options *o);    /* selftest.c */
int command_convert(const options *o);     /* convert.c */
int command_inspect(const options *o);     /* inspect.c */
int command_compare(const options *o);     /* compare.c */
int command_quantize(const options *o);    /* quantize.c */
int command_split(const options *o);       /* split.c */
int command_cv(const options *o);          /* cv.c */
int command_check(const options *o);       /* check.c */
int command_export(const options *o);      /* export.c */
int command_report(const options *o);      /* report.c */
int command_table(const options *o);       /* table.c */
int command_figures(const options *o);     /* figures.c */
int command_bench(const options *o);       /* bench.c */
int command_backends(const options *o);    /* commands.c */

#endif
