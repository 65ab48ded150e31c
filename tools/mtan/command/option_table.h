/* The options that there are, for those who read or print them. Their places count from 0: those of the table, then the settings of a
 * model, each of which is an option of `mtan train` and `mtan convert` (enc_hidden is --enc-hidden), last of all those that only
 * baselines have, for `mtan train`. */
#ifndef MTAN_TOOLS_OPTION_TABLE_H
#define MTAN_TOOLS_OPTION_TABLE_H

#include "options.h"

/* Those that take a number come last. */
typedef enum option_kind { OPTION_FLAG, OPTION_TEXT, OPTION_NUMBER, OPTION_WHOLE } option_kind;

/* Two commands may have an option of one name but not of one range: these are two rows. */
typedef struct option {
    const char *name;
    char letter;          /* short form, 0: none */
    const char *argument; /* NULL: a flag */
    option_kind kind;
    double low, high;     /* of a number */
    const char *commands; /* names between blanks; "*": every command */
    const char *help;     /* one sentence, without the full stop */
} option;

const option *option_at(int i);                /* NULL: past the table, a setting or nothing */
const char *option_key(int i);                 /* of a setting, as mtan_config_key has it; NULL: no setting */
const char *option_name(int i, char name[64]); /* NULL: past the last */
int option_first_of_baselines(void);
int option_is_fixed(const char *name); /* a setting that no option changes */
int option_belongs(int i, const command *c);
/* The option of that name that a command has; -1: none. */
int option_find(const command *c, const char *name, size_t length);
const option *option_of(const char *command_name, const char *name); /* that the table has, or NULL */

#endif
