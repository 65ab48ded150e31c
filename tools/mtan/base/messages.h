/* Messages of a running command: all on standard error, or to a program that listens. Nothing here ends the program. */
#ifndef MTAN_TOOLS_MESSAGES_H
#define MTAN_TOOLS_MESSAGES_H

#include <stdio.h>

enum { DONE = 0, BAD_RESULT = 1, BAD_USE = 2, INTERRUPTED = 130 }; /* exit status of a command */

/* Reports an error, after "mtan: ". Returns BAD_USE. */
int complain(const char *format, ...);
/* Errors that may be as many as the lines of a file: told is how many there were, from 0. Is this one still to be told?
 * Not when twenty have been, which is said once. complain_rest says at the end how many were not told. */
int complain_again(size_t *told);
void complain_rest(size_t told);
/* A remark; nothing with --quiet. */
void note(const char *format, ...);
void messages_quiet(int on); /* --quiet: only complain prints */
int quiet(void);

/* From now on, messages of this thread go to the listener instead of standard error, line by line; NULL: to standard
 * error again. wrong: 1 from complain, 0 from note. A listener gets remarks even with --quiet. It gets no progress
 * lines, which are for terminals. */
typedef void (*message_listener)(void *context, int wrong, const char *text);
typedef struct message_ear {
    message_listener hear;
    void *context;
} message_ear;
message_ear messages_listen(message_listener listener, void *context); /* returns the previous listener */

/* A line that is rewritten on a terminal. Elsewhere it is printed at most once in ten seconds; never with --quiet.
 * progress_end removes it. */
void progress(const char *format, ...);
void progress_end(void);

/* The columns of the terminal at a file descriptor: COLUMNS, the terminal's own answer, or 80. */
int terminal_columns(int descriptor);

double seconds(void); /* monotonic */

#endif
