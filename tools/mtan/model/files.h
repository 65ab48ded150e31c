/* Files as wholes: read at once, replaced at once, kept to one process. Errors are sentences, in 512 bytes. A call that a signal
 * interrupts is made again. */
#ifndef MTAN_TOOLS_FILES_H
#define MTAN_TOOLS_FILES_H

#include <stddef.h>
#include <stdio.h>

#include "../../data/memory.h"

/* Whether there is a file or folder of this name: 1, or 0; -1 with error set when the system does not say. */
int file_exists(const char *path, char *error);
/* The whole file; malloc'd and zero-terminated behind `bytes`; NULL with error set, which says so when it is larger than 4 GiB, or
 * than 256 MiB where it is a pipe or a device, whose end nobody knows. */
void *file_read(const char *path, size_t *bytes, char *error);
/* The same for as long as `more` asks for more than the n bytes that have been read, so that nobody reads on what can be
 * refused by its beginning. */
typedef int (*file_more_fn)(const void *start, size_t n);
void *file_read_while(const char *path, file_more_fn more, size_t *bytes, char *error);
/* For safetensors: until the length that the header tells has been passed, and no further than bytes that are no header. */
int safetensors_more(const void *start, size_t n);
/* Writes atomically: to a temporary name in the same folder, flushed (file and folder), renamed. 1, or 0 with error set and
 * nothing changed; only when the folder could not be flushed does the new file stand there, until a power cut. */
int file_write(const char *path, const void *bytes, size_t n, char *error);
/* All the bytes, in as many calls as it takes. 1, or 0 with errno set. */
int descriptor_write(int descriptor, const void *bytes, size_t n);
/* What was printed to a stream reaches the disk. 1, or 0 with errno set. */
int stream_flush(FILE *file);

/* The same for a file that is written piece by piece: it takes the place of `path` when it is closed as good. Nothing of it is
 * left when memory runs out before. What processes that died left of theirs goes when the next one opens its own. */
typedef struct replacement {
    char path[4096], temporary[4112]; /* a process that lives has its temporary file locked */
    int descriptor, failure;          /* errno of what failed first; 0: nothing */
    size_t held;                      /* bytes that are not written yet */
    memory_undo undo;
    char buffer[1 << 14];
} replacement;
int replacement_open(replacement *r, const char *path, char *error);
int replacement_write(replacement *r, const void *bytes, size_t n);
int replacement_close(replacement *r, int good, char *error); /* 1, or 0 as file_write */
/* Removes what processes that died left of their replacements of a file. */
void replacement_clear(const char *path);

/* Makes a folder, and flushes the one that it stands in, as a run is lost with its folder: 1; 0: it was there before; -1 with error
 * set. */
int folder_make(const char *path, char *error);

/* Keeps a folder to this process until folder_unlock, or until memory runs out; where a file system has no locks, everybody gets one.
 * 0 with errno set: EWOULDBLOCK when another process has it and there is no waiting, else the folder cannot be opened. Unlocking it is
 * allowed then. */
typedef struct folder_hold {
    int descriptor;
    memory_undo undo;
} folder_hold;
int folder_lock(folder_hold *h, const char *path, int wait);
void folder_unlock(folder_hold *h);

/* The same with a file mtan.lock in the folder that names its owner, for others to say. The lock is the system's and ends with the
 * process: a file that a dead one left means nothing, whoever has its number now. Where a file system has no locks, everybody gets
 * one. 1, or 0 with error set: another process has it, or the folder cannot be written. */
typedef struct claim {
    char path[4096];
    int descriptor, held;
    memory_undo undo;
} claim;
int claim_take(claim *c, const char *folder, char *error);
void claim_drop(claim *c); /* nothing when it is not held */

#endif
