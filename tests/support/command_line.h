/* Running the command in tests: each call is a process of its own, in a folder that a test opens and closes. */
#ifndef MTAN_TESTS_COMMAND_LINE_H
#define MTAN_TESTS_COMMAND_LINE_H

#include <stddef.h>
#include <sys/types.h>

#include "tiny_model.h"

enum { COMMAND_RECORDS = 60 };

/* Own data is trained with a rate that falls until the last epoch, so how many there are is fixed: a run that a test resumes with
 * more of them has a steady one. */
#define COMMAND_STEADY "--schedule constant --warmup 0 "

/* The folder of a test, for GREATEST_SET_SETUP_CB and GREATEST_SET_TEARDOWN_CB; a file in it. The folder has data of
 * COMMAND_RECORDS records of two classes that are learned in a few steps: events.csv, labels.csv, and times.csv with a label
 * for every time. */
void command_open(void *unused);
void command_close(void *unused);
const char *command_path(const char *name);

/* A child whose output goes to out.txt and err.txt of the folder. `line` is cut at blanks; @ stands for the folder. file_limit:
 * writes beyond so many bytes of a file fail, as on a full disk; 0: none. command_finish gives the exit status, 1000 and the
 * signal's number after a signal. */
pid_t command_start(const char *line, size_t file_limit);
int command_finish(pid_t child);
int command_run(const char *line);
/* Does it end with BAD_USE, print nothing and say these words to standard error? Prints what it did when not. */
int command_refused(const char *line, const char *words);
/* The exit status of a run whose output goes to a terminal: what that shows is in terminal.txt. -1: there are no terminals here. */
int command_on_terminal(const char *line);
void command_terminal_columns(int columns); /* how wide that terminal says it is; 0: it does not say */

/* Waits until a table has some rows, at most ten seconds. */
int command_wait(const char *name, int rows);

/* A file of the folder: its text (malloc'd), its size, another text, a line more, and whether it holds some words: prints it when
 * not. */
char *command_text(const char *name);
size_t command_bytes(const char *name);
void command_write(const char *name, const char *text);
void command_append(const char *name, const char *line);
int command_says(const char *name, const char *words);

/* Human Activity as its authors ship it, in a new folder of the folder: five persons of one sequence each, 176 rows to it: six
 * windows, as one begins every 25 rows and has 50. */
void command_activity(const char *name);

/* A file of the folder: a model without preprocessing, whose channels are called 0, 1, 2 and so on, with m pairs of metadata more; a
 * model of tiny_model.h with these settings more ("channels 2 classes 3") and random weights; tensors. */
void command_model(const char *name, const mtan_model *model, const mtan_file_pair *pairs, size_t m);
void command_tiny(const char *name, tiny_kind kind, const char *settings, uint32_t seed, const mtan_file_pair *pairs,
                  size_t m);
void command_tensors(const char *name, const mtan_file_entry *entries, size_t n, const mtan_file_pair *pairs, size_t m);
/* Gives a pair of metadata of a file of tensors another value, or adds it; NULL takes it away. */
void command_metadata(const char *name, const char *key, const char *value);
int command_is_json(const char *name); /* is all of a file one value of JSON? prints it when not */
/* The number of an object in JSON text, behind the first `object` in it: command_json(text, "\"name\": \"x\"", "mean"). NaN: there is
 * none, or it is null. */
double command_json(const char *text, const char *object, const char *key);

int command_same_files(const char *a, const char *b);   /* the same bytes: says where they part when not */
int command_same_tensors(const char *a, const char *b); /* of model files, bit for bit; metadata is left out */
/* The same first `columns` of each row of two tables: the others hold seconds. */
int command_same_columns(const char *a, const char *b, int columns);

#endif
