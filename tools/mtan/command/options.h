/* The command line. One table of commands (commands.c) and one of options (option_table.c) make the parser, the help, the man page and
 * the completion of shells (help.c, completion.c); nothing about an option is said twice.
 *
 *     mtan COMMAND [ARGUMENT...] [--option VALUE | --option=VALUE | --flag]...
 */
#ifndef MTAN_TOOLS_OPTIONS_H
#define MTAN_TOOLS_OPTIONS_H

#include <stddef.h>
#include <stdint.h>
#include "messages.h"

enum { OPTIONS_MOST = 192, ARGUMENTS_MOST = 8 };

typedef struct options {
    const struct command *command;
    const char *value[OPTIONS_MOST]; /* by the option's place in the table; NULL: not given */
    double number[OPTIONS_MOST];     /* the value of one that takes a number */
    const char *argument[ARGUMENTS_MOST];
    int arguments;
    const struct own_columns
        *columns; /* what a program that calls a command gives in place of --data and --labels; or NULL */
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
/* The same for options that take a number. It is in the range that the table says: options_parse lets no other through. */
double option_number(const options *o, const char *name, double otherwise);
int64_t option_integer(const options *o, const char *name, int64_t otherwise);

/* As if it had been given: its text and, of one that takes a number, the number; NULL: as if not. */
void option_set(options *o, const char *name, const char *text, double number);

/* Fills o, or prints what is wrong (with 'did you mean') and returns 0. */
int options_parse(options *o, int argc, char **argv);

/* The name that is nearest to what was typed, over many calls: *nearest starts as NULL, *best as the distance that is too far. */
void keep_nearer(const char *typed, const char *name, const char **nearest, int *best);

/* NULL with a message printed (with 'did you mean'): no such command. */
const command *command_named(const char *name);

#endif
