/* Whole files: read in one call, replaced atomically, locked to one process. Errors are sentences of up to 512 bytes.
 * Calls that a signal interrupts are repeated. */
#ifndef MTAN_TOOLS_FILES_H
#define MTAN_TOOLS_FILES_H

#include <stddef.h>
#include <stdio.h>

#include "../../data/memory.h"

/* Whether a file or folder of this name exists: 1 or 0; -1 with error set if the system cannot tell. */
int file_exists(const char *path, char *error);
/* Whether both names lead to one file that exists. */
int same_file(const char *a, const char *b);
/* Reads a whole file, malloc'd, with a zero after its `bytes`. NULL with error set, also when the file is larger than 4
 * GiB, or than 256 MiB if it is a pipe or a device, whose end is unknown. */
void *file_read(const char *path, size_t *bytes, char *error);
/* Reads as long as `more` returns 1 for the n bytes read so far, so that a file that its beginning rules out is not
 * read on. */
typedef int (*file_more_fn)(const void *start, size_t n);
void *file_read_while(const char *path, file_more_fn more, size_t *bytes, char *error);
/* For safetensors: reads until past the length that the header states, and stops at bytes that are no header. */
int safetensors_more(const void *start, size_t n);
/* Writes atomically: to a temporary name in the same folder, flushed (file and folder), then renamed. 1, or 0 with
 * error set and nothing changed. The exception: if only flushing the folder fails, the new file is in place, but a
 * power cut may undo that. */
int file_write(const char *path, const void *bytes, size_t n, char *error);
/* Writes all bytes, in as many calls as it takes. 1, or 0 with errno set. */
int descriptor_write(int descriptor, const void *bytes, size_t n);
/* Flushes a stream to the disk. 1, or 0 with errno set. */
int stream_flush(FILE *file);

/* Atomic replacement of a file that is written piece by piece: replacement_close with `good` puts it in place of
 * `path`. Running out of memory before that removes it. Opening one first removes temporary files that dead processes
 * left for the same path. */
typedef struct replacement {
    char path[4096], temporary[4112]; /* the temporary file is locked as long as its process lives */
    int descriptor, failure;          /* errno of the first failure; 0: none */
    size_t held;                      /* bytes in `buffer` */
    memory_undo undo;
    char buffer[1 << 14];
} replacement;
int replacement_open(replacement *r, const char *path, char *error);
int replacement_write(replacement *r, const void *bytes, size_t n);
int replacement_close(replacement *r, int good, char *error); /* 1, or 0 as file_write */
/* Removes temporary files that dead processes left for this path. */
void replacement_clear(const char *path);

/* Makes a folder and flushes its parent, so that a power cut does not lose a run with its folder. 1; 0: it existed
 * already; -1 with error set. */
int folder_make(const char *path, char *error);

/* Locks a folder for this process until folder_unlock, or until memory runs out. On file systems without locks
 * everybody gets the lock. 0 with errno set: EWOULDBLOCK when another process has it and wait is 0, else the folder
 * cannot be opened. folder_unlock is allowed after a failure. */
typedef struct folder_hold {
    int descriptor;
    memory_undo undo;
} folder_hold;
int folder_lock(folder_hold *h, const char *path, int wait);
void folder_unlock(folder_hold *h);

/* A lock with a file mtan.lock in the folder, which names the owner for error messages. The lock is the system's and
 * ends with the process, so a file that a dead process left has no effect, even if its process number is reused. On
 * file systems without locks everybody gets the lock. 1, or 0 with error set: another process has it, or the folder
 * cannot be written. */
typedef struct claim {
    char path[4096];
    int descriptor, held;
    memory_undo undo;
} claim;
int claim_take(claim *c, const char *folder, char *error);
void claim_drop(claim *c); /* does nothing if it is not held */

#endif
