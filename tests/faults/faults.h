/* What the driver (main.c) and the library that is loaded into the command (preload.c) say to each other.
 *
 *     MTAN_FAULT=write:3:once:28     the third write fails, once, with errno 28; `read+write` are counted together
 *     MTAN_FAULT_PAGE=file           gets the numbers of calls (fault_page)
 *     MTAN_FAULT_LOG=file            gets what would change the disk (fault_entry), in order */
#ifndef MTAN_TESTS_FAULTS_H
#define MTAN_TESTS_FAULTS_H

#include <stdint.h>

/* Calls that can fail. folder: making, removing, opening and listing folders, and removing files; lock: flock, ftruncate. A clock does
 * not fail: it counts the moments at which a signal can come. */
#define FAULT_KINDS(X)                                                                                                 \
    X(memory) X(thread) X(open) X(read) X(write) X(fsync) X(rename) X(close) X(lock) X(stat) X(folder) X(clock)
#define FAULT_ENUM(name) FAULT_##name,
enum { FAULT_KINDS(FAULT_ENUM) FAULT_KIND_COUNT };

/* once: call n fails; on: it and all after it fail; half: it moves half of the bytes (read, write); kill: SIGKILL before it; tear:
 * SIGKILL after half of its bytes; term: SIGTERM before it. */
#define FAULT_ACTIONS(X) X(once) X(on) X(half) X(kill) X(tear) X(term)
#define FAULT_DO_ENUM(name) FAULT_DO_##name,
enum { FAULT_ACTIONS(FAULT_DO_ENUM) FAULT_ACTION_COUNT };

typedef struct fault_page {
    uint32_t calls[FAULT_KIND_COUNT];
    uint32_t seen, hits; /* calls of the kinds asked for; those that the fault came to */
} fault_page;

/* An entry of the log: this, then `path` bytes of a path, then `bytes` bytes of data. A file has the same number under all its names. */
enum { LOG_OPEN, LOG_TRUNCATE, LOG_WRITE, LOG_FLUSH, LOG_RENAME, LOG_REMOVE, LOG_MAKE_FOLDER };
typedef struct fault_entry {
    uint32_t what;
    uint32_t is_new;      /* LOG_OPEN: the file was not there */
    uint64_t file, at;    /* its number; LOG_WRITE: where; LOG_TRUNCATE: the new length */
    uint64_t path, bytes; /* LOG_RENAME: the data is the new path */
} fault_entry;

#endif
