/* The help texts of the command, made from the tables of commands and options. */
#ifndef MTAN_TOOLS_HELP_H
#define MTAN_TOOLS_HELP_H

#include <stdio.h>

void help_short(FILE *out);                    /* with examples */
int help_command(FILE *out, const char *name); /* 0 with a message printed: no such command */
void help_man(FILE *out);                      /* man page, mdoc */

#endif
