/* What a command says while it runs, all on standard error. Nothing here ends the program. */
#ifndef MTAN_TOOLS_MESSAGES_H
#define MTAN_TOOLS_MESSAGES_H

#include <stdio.h>

enum { DONE = 0, BAD_RESULT = 1, BAD_USE = 2, INTERRUPTED = 130 }; /* exit status of a command */

/* What went wrong, behind "mtan: ". Returns BAD_USE. */
int complain(const char *format, ...);
/* A remark; nothing with --quiet. */
void note(const char *format, ...);
void messages_quiet(int on); /* --quiet: what complain says alone */
int quiet(void);

/* A line that is rewritten on a terminal; elsewhere one line in ten seconds; nothing with --quiet. progress_end takes it away. */
void progress(const char *format, ...);
void progress_end(void);

/* The columns of the terminal behind a file descriptor: COLUMNS, or what the terminal says, or 80. */
int terminal_columns(int descriptor);

double seconds(void); /* monotonic */

#endif
