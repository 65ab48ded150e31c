/* What a power cut leaves, computed from the log of a run (faults.h).
 *
 * The rules are those of POSIX, which promise less than most file systems keep. What was written to a file is safe once the file was
 * flushed; before that all of it may be there, or half of it, or none, or zeros in its place. A name (a new file, a renaming, a removal,
 * a folder) is safe once the folder that it stands in was flushed; before that a folder holds the first few of its changes, in their
 * order. */
#ifndef MTAN_TESTS_FAULTS_DISK_H
#define MTAN_TESTS_FAULTS_DISK_H

#include "child.h"

typedef struct disk_file {
    uint64_t number;
    int is_folder;
    char *now, *safe;
    size_t n_now, n_safe;
} disk_file;

typedef struct disk_name {
    char path[TREE_PATH];
    size_t file;
} disk_name;

/* A change of a folder: `from` goes, `to` comes; either may be empty. */
typedef struct disk_change {
    char from[TREE_PATH], to[TREE_PATH];
    size_t file;
} disk_change;

/* A file that took its place by renaming, or that was there before the run. Once the program has gone on to another file, it
 * counts on it. */
typedef struct disk_version {
    char path[TREE_PATH];
    char *bytes;
    size_t n;
    int promised;
} disk_version;

typedef struct disk {
    disk_file *files;
    disk_name *names;     /* that are safe */
    disk_change *changes; /* that are not, in their order */
    disk_version *versions;
    size_t n_files, n_names, n_changes, n_versions;
    char *log;
    size_t at, bytes; /* of the log */
} disk;

/* Before a run: work/ as it is. After it: its log. */
void disk_begin(disk *d, const place *p);
void disk_log(disk *d, const place *p);
int disk_step(disk *d); /* the next entry of the log; 0: there is none */
void disk_free(disk *d);

/* What may be there after a power cut now: with the first `changes` of those that are not safe, and what is not safe of files... */
enum { DISK_LOST, DISK_WHOLE, DISK_HALF, DISK_ZEROS, DISK_KINDS };
tree disk_after(const disk *d, size_t changes, int kind);
/* The path of a file that is not one of its versions, or older than one that was promised; NULL: there is none. */
const char *disk_broken(const disk *d, const tree *t);
int disk_is_version(const disk *d, const tree_file *f);
int disk_grows(const char *path); /* a table, which may end anywhere */

#endif
