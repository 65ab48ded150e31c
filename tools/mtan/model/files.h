/* Files as wholes: read at once, replaced at once, kept to one process. Errors are sentences, in 512 bytes. */
#ifndef MTAN_TOOLS_FILES_H
#define MTAN_TOOLS_FILES_H

#include <stddef.h>
#include <stdio.h>

#include "../../data/memory.h"

/* The whole file; malloc'd and zero-terminated behind `bytes`; NULL with error set. */
void *file_read(const char *path, size_t *bytes, char *error);
/* Writes atomically: to a temporary name in the same folder, flushed (file and folder), renamed. 1, or 0 with error set and
 * nothing changed. */
int file_write(const char *path, const void *bytes, size_t n, char *error);

/* The same for a file that is written piece by piece: it takes the place of `path` when it is closed as good. Nothing of it is
 * left when memory runs out before. */
typedef struct replacement {
    char path[4096], temporary[4112];
    FILE *file;
    memory_undo undo;
} replacement;
int replacement_open(replacement *r, const char *path, char *error);
int replacement_close(replacement *r, int good, char *error); /* 0 unless the file stands at its path now */

/* Keeps a folder to this process until folder_unlock, or until memory runs out. 0: another one has it and there is no waiting, or
 * the folder cannot be opened; unlocking it is allowed then. */
typedef struct folder_hold {
    int descriptor;
    memory_undo undo;
} folder_hold;
int folder_lock(folder_hold *h, const char *path, int wait);
void folder_unlock(folder_hold *h);

#endif
