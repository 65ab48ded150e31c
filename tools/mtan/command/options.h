/* The command line. One table of commands and one of options (options.c) make the parser, the help, the man page and the
 * completion of bash; nothing about an option is said twice.
 *
 *     mtan COMMAND [ARGUMENT...] [--option VALUE | --option=VALUE | --flag]...
 */
#ifndef MTAN_TOOLS_OPTIONS_H
#define MTAN_TOOLS_OPTIONS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { DONE = 0, BAD_RESULT = 1, BAD_USE = 2, INTERRUPTED = 130 }; /* exit status of a command */
enum { OPTIONS_MOST = 128, ARGUMENTS_MOST = 8 };

typedef struct options {
    const struct command *command;
    const char *value[OPTIONS_MOST]; /* by the option's place in the table; NULL: not given */
    const char *argument[ARGUMENTS_MOST];
    int arguments;
} options;

typedef struct command {
    const char *name;
    int (*run)(const options *o); /* returns the exit status */
    const char *arguments;        /* "MODEL --data DATA" */
    const char *summary;          /* one line */
    const char *details;          /* sentences and examples for `mtan help COMMAND` */
    int least, most;              /* how many arguments */
} command;

extern const command commands[]; /* ends with a NULL name */

/* The value as given, or `otherwise`. */
const char *option_text(const options *o, const char *name, const char *otherwise);
int option_given(const options *o, const char *name); /* a flag, or an option with a value */
/* Numbers. A value that is no number or is out of [low, high] is an error: prints it and ends the program with BAD_USE. */
double option_number(const options *o, const char *name, double otherwise, double low, double high);
int64_t option_integer(const options *o, const char *name, int64_t otherwise, int64_t low, int64_t high);

/* Fills o, or prints what is wrong (with 'did you mean') and returns 0. */
int options_parse(options *o, int argc, char **argv);

void options_help(FILE *out);                          /* short help with examples */
int options_help_command(FILE *out, const char *name); /* 0: no such command */
void options_man(FILE *out);                           /* man page, mdoc */
void options_completion(FILE *out);                    /* bash completion */

/* Messages, all on stderr. complain prefixes "mtan: " and returns BAD_USE. note keeps silent with --quiet. */
void messages_start(const options *o);
int complain(const char *format, ...);
void note(const char *format, ...);
void messages_silence(void); /* as --quiet */
int quiet(void);
/* A line that is rewritten on a terminal; elsewhere one line in ten seconds; nothing with --quiet. progress_end takes it away. */
void progress(const char *format, ...);
void progress_end(void);
int use_color(FILE *stream); /* a terminal, and NO_COLOR is not set */
double seconds(void);        /* monotonic */

#endif
