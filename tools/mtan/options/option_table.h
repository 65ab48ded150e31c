/* The list of options, for the parser and the help. Places count from 0: first the options of the table, then the
 * settings of a model, each of which is an option of `mtan train` and `mtan convert` (enc_hidden is --enc-hidden), and
 * last the settings that only baselines have, for `mtan train`. */
#ifndef MTAN_TOOLS_OPTION_TABLE_H
#define MTAN_TOOLS_OPTION_TABLE_H

#include "options.h"

/* Kinds that take a number come last. */
typedef enum option_kind { OPTION_FLAG, OPTION_TEXT, OPTION_NUMBER, OPTION_WHOLE } option_kind;

/* Where two commands have an option of the same name with different ranges, the table has two rows. */
typedef struct option {
    const char *name;
    char letter;          /* short form, 0: none */
    const char *argument; /* NULL: a flag */
    option_kind kind;
    double low, high;     /* of a number */
    const char *commands; /* names between blanks; "*": every command */
    const char *help;     /* one sentence without a full stop */
} option;

const option *option_at(int i);                /* NULL: a setting, or past the last */
const char *option_key(int i);                 /* of a setting, as in mtan_config_key; NULL: not a setting */
const char *option_name(int i, char name[64]); /* NULL: past the last */
int option_first_of_baselines(void);
int option_is_fixed(const char *name); /* 1: a setting that no option changes */
int option_belongs(int i, const command *c);
/* Place of the command's option of that name; -1: none. */
int option_find(const command *c, const char *name, size_t length);
const option *option_of(const char *command_name, const char *name); /* from the table, or NULL */

#endif
