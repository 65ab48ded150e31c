/* Completion of the command line for shells. */
#ifndef MTAN_TOOLS_COMPLETION_H
#define MTAN_TOOLS_COMPLETION_H

#include <stdio.h>

/* For bash, zsh or fish. Returns 0 for any other shell, and writes nothing. */
int complete_for(FILE *out, const char *shell);

#endif
