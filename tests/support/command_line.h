/* Runs the command in tests: each call is a separate process, in a folder that a test opens and closes. */
#ifndef MTAN_TESTS_COMMAND_LINE_H
#define MTAN_TESTS_COMMAND_LINE_H

#include <stddef.h>
#include <sys/types.h>

#include "tiny_model.h"

enum { COMMAND_RECORDS = 60 };

/* By default, own data is trained with a rate that falls until the last epoch, so the number of epochs must be fixed. A
 * run that a test resumes with more epochs needs a constant rate. */
#define COMMAND_STEADY "--schedule constant --warmup 0 "

/* The folder of a test, for GREATEST_SET_SETUP_CB and GREATEST_SET_TEARDOWN_CB, and the path of a file in it. The
 * folder has data of COMMAND_RECORDS records of two classes, which are learned in a few steps: events.csv, labels.csv,
 * and times.csv with a label for every time. */
void command_open(void *unused);
void command_close(void *unused);
const char *command_path(const char *name);

/* A child process whose output goes to out.txt and err.txt in the folder. `line` is split at blanks; @ stands for the
 * folder. file_limit: writing more than so many bytes to a file fails, as on a full disk; 0: no limit. command_finish
 * returns the exit status, or 1000 plus the signal's number. */
pid_t command_start(const char *line, size_t file_limit);
int command_finish(pid_t child);
int command_run(const char *line);
/* Does it end with BAD_USE, print nothing, and write these words to standard error? If not, prints what it did. */
int command_refused(const char *line, const char *words);
/* The exit status of a run whose output goes to a terminal; that output is in terminal.txt. -1: no terminals are
 * available. */
int command_on_terminal(const char *line);
void command_terminal_columns(int columns); /* the width that the terminal reports; 0: it reports none */

/* Waits until a table has so many rows, for at most ten seconds. */
int command_wait(const char *name, int rows);

/* A file of the folder: its text (malloc'd), its size, writing it, appending a line, and whether it contains some
 * words; if it does not, prints it. */
char *command_text(const char *name);
size_t command_bytes(const char *name);
void command_write(const char *name, const char *text);
void command_append(const char *name, const char *line);
int command_says(const char *name, const char *words);

/* Human Activity in the form that its authors distribute, in a new folder inside the folder: five persons with one
 * sequence each of 176 rows, which make six windows, as a window has 50 rows and one begins every 25 rows. */
void command_activity(const char *name);

/* Writes a file to the folder: a model without preprocessing, with channels called 0, 1, 2 and so on, and m extra pairs
 * of metadata; a model of tiny_model.h with these extra settings ("channels 2 classes 3") and random weights;
 * tensors. */
void command_model(const char *name, const mtan_model *model, const mtan_file_pair *pairs, size_t m);
void command_tiny(const char *name, tiny_kind kind, const char *settings, uint32_t seed, const mtan_file_pair *pairs,
                  size_t m);
void command_tensors(const char *name, const mtan_file_entry *entries, size_t n, const mtan_file_pair *pairs, size_t m);
/* Sets or adds a pair of metadata in a file of tensors; NULL removes it. */
void command_metadata(const char *name, const char *key, const char *value);
int command_is_json(const char *name); /* is the whole file one JSON value? if not, prints it */
/* The number under a key in JSON text, after the first `object` in it: command_json(text, "\"name\": \"x\"", "mean").
 * NaN if it is missing or null. */
double command_json(const char *text, const char *object, const char *key);

int command_same_files(const char *a, const char *b);   /* the same bytes? if not, prints where they differ */
int command_same_tensors(const char *a, const char *b); /* of model files, bit for bit; metadata is ignored */
/* Are the first `columns` of each row equal in both tables? The other columns hold seconds. */
int command_same_columns(const char *a, const char *b, int columns);

#endif
