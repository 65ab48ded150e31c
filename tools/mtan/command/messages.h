/* What a command says while it runs, all on standard error, or to a program that listens. Nothing here ends the program. */
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

/* What this thread says from now on goes to the listener in place of standard error, line by line; NULL: to standard error again.
 * wrong: complain says it, not note. A listener hears remarks even with --quiet, and no progress, which is for terminals. */
typedef void (*message_listener)(void *context, int wrong, const char *text);
typedef struct message_ear {
    message_listener hear;
    void *context;
} message_ear;
message_ear messages_listen(message_listener listener, void *context); /* returns who listened before */

/* A line that is rewritten on a terminal; elsewhere one line in ten seconds; nothing with --quiet. progress_end takes it away. */
void progress(const char *format, ...);
void progress_end(void);

/* The columns of the terminal behind a file descriptor: COLUMNS, or what the terminal says, or 80. */
int terminal_columns(int descriptor);

double seconds(void); /* monotonic */

#endif
