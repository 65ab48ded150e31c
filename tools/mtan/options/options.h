/* The command line. The parser, the help, the man page and the completion of shells (help.c, completion.c) are made
 * from one table of commands (commands.c) and one of options (option_table.c), so each fact about an option is written
 * once.
 *
 *     mtan COMMAND [ARGUMENT...] [--option VALUE | --option=VALUE | --flag]... */
#ifndef MTAN_TOOLS_OPTIONS_H
#define MTAN_TOOLS_OPTIONS_H

#include <stddef.h>
#include <stdint.h>
#include "../base/messages.h"

enum { OPTIONS_MOST = 192, ARGUMENTS_MOST = 8 };

typedef struct options {
    const struct command *command;
    const char *value[OPTIONS_MOST]; /* by the option's place in the table; NULL: not given */
    double number[OPTIONS_MOST];     /* the value, of an option that takes a number */
    const char *argument[ARGUMENTS_MOST];
    int arguments;
    const struct own_columns
        *columns; /* data in the memory of a calling program, in place of --data and --labels; or NULL */
    int trial;    /* of a search: an option that this trial's model does not read is there for others */
} options;

/* TRAINS: takes all settings of models, and the options of `mtan train`. SETTINGS: takes those of mTAN. ON_DEVICE: runs
 * models in blocks, which a device can hold. WRITES: its result is files, so another program can run it (flat.h). */
enum { COMMAND_TRAINS = 1, COMMAND_SETTINGS = 2, COMMAND_ON_DEVICE = 4, COMMAND_WRITES = 8 };

typedef struct command {
    const char *name;
    int (*run)(const options *o); /* returns the exit status */
    const char *arguments;        /* "MODEL --data DATA" */
    const char *summary;          /* one line */
    const char *details;          /* sentences and examples for `mtan help COMMAND` */
    int least, most;              /* how many arguments */
    unsigned traits;
} command;

extern const command commands[]; /* ends with a NULL name */

/* The value as given, or `otherwise`. */
const char *option_text(const options *o, const char *name, const char *otherwise);
int option_given(const options *o, const char *name); /* 1: a flag, or an option with a value */
/* The same for options that take a number. It is within the table's range, which options_parse checks. */
double option_number(const options *o, const char *name, double otherwise);
int64_t option_integer(const options *o, const char *name, int64_t otherwise);

/* Sets an option as if it had been given: its text and, if it takes a number, the number. NULL: as if not given. */
void option_set(options *o, const char *name, const char *text, double number);

/* Fills o and returns 1, or prints what is wrong (with 'did you mean') and returns 0. */
int options_parse(options *o, int argc, char **argv);

/* Keeps the name nearest to what was typed, over many calls. *nearest starts as NULL, *best as the smallest distance
 * that is too far. */
void keep_nearer(const char *typed, const char *name, const char **nearest, int *best);

/* Returns NULL with a message printed (with 'did you mean') if there is no such command. */
const command *command_named(const char *name);

#endif
