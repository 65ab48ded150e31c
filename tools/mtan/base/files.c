/* See files.h. */
#define _POSIX_C_SOURCE 200809L
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../mtan.h"

enum { ERROR_SIZE = 512 };
/* Largest file to read: 4 GiB, more than any model; 1 GiB, a quarter of the address space, with 32-bit addresses. */
static const size_t MOST_BYTES = (size_t)1 << (sizeof(size_t) > 4 ? 32 : 30);
/* The same for a pipe or a device. */
static const size_t MOST_OF_STREAM = (size_t)256 << 20;

/* ---- calls that a signal may interrupt ---- */

#define AGAIN(result, call)                                                                                            \
    do result = (call);                                                                                                \
    while (result < 0 && errno == EINTR)

static int open_again(const char *path, int flags) {
    int descriptor;
    AGAIN(descriptor, open(path, flags | O_CLOEXEC, 0666));
    return descriptor;
}

static ssize_t read_again(int descriptor, void *out, size_t n) {
    ssize_t got;
    AGAIN(got, read(descriptor, out, n));
    return got;
}

static int lock_again(int descriptor, int operation) {
    int result;
    AGAIN(result, flock(descriptor, operation));
    return result;
}

static int flush_again(int descriptor) {
    int result;
    AGAIN(result, fsync(descriptor));
    return result;
}

int descriptor_write(int descriptor, const void *bytes, size_t n) {
    const char *at = bytes;
    while (n > 0) {
        ssize_t done;
        AGAIN(done, write(descriptor, at, n));
        if (done < 0) return 0;
        at += done, n -= (size_t)done;
    }
    return 1;
}

int stream_flush(FILE *file) {
    if (fflush(file) != 0 || ferror(file)) return 0;
    return flush_again(fileno(file)) == 0 || errno == EINVAL; /* EINVAL: a device, for example, cannot be flushed */
}

/* ---- what is there ---- */

int file_exists(const char *path, char *error) {
    struct stat status;
    if (stat(path, &status) == 0) return 1;
    if (errno == ENOENT || errno == ENOTDIR) return 0;
    return snprintf(error, ERROR_SIZE, "%.400s: %s", path, strerror(errno)), -1;
}

static int is_one(const struct stat *a, const struct stat *b) {
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

int same_file(const char *a, const char *b) {
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && is_one(&one, &other);
}

/* Whether the path still names this open file. */
static int is_there(int descriptor, const char *path) {
    struct stat mine, there;
    return fstat(descriptor, &mine) == 0 && stat(path, &there) == 0 && is_one(&mine, &there);
}

/* ---- reading ---- */

int safetensors_more(const void *start, size_t n) {
    size_t length;
    return mtan_file_length(start, n, &length) == MTAN_OK && n <= length;
}

static void close_descriptor(void *descriptor) {
    close(*(const int *)descriptor);
}

/* Reads an open file, at most one byte more than `most`; NULL with errno set. */
static char *read_bytes(int file, file_more_fn more, size_t most, size_t *bytes) {
    char *text = NULL;
    size_t size = 0, room = 0;
    ssize_t got;
    do {
        if (size + 1 >= room) text = tool_realloc(text, room = room ? 2 * room : 1 << 16);
        got = read_again(file, text + size, room - size - 1);
        if (got > 0) size += (size_t)got;
    } while (got > 0 && size <= most && (!more || more(text, size)));
    if (got < 0) return free(text), NULL;
    text[size] = 0;
    *bytes = size;
    return text;
}

/* Reads with the limit for streams or for regular files. */
static char *read_limited(int file, const char *path, file_more_fn more, size_t *bytes, char *error) {
    struct stat status;
    const int stream = fstat(file, &status) != 0 || !S_ISREG(status.st_mode);
    const size_t most = stream ? MOST_OF_STREAM : MOST_BYTES;
    char *text = NULL;
    *bytes = 0;
    if (stream || (uint64_t)status.st_size <= most) {
        if (!(text = read_bytes(file, more, most, bytes)))
            return snprintf(error, ERROR_SIZE, "%.400s: %s", path, strerror(errno)), NULL;
        if (*bytes <= most) return text;
    }
    snprintf(error, ERROR_SIZE, "%.400s: larger than %zu MiB%s", path, most >> 20,
             stream ? ", and not a regular file: does it end?" : "");
    return free(text), NULL;
}

void *file_read_while(const char *path, file_more_fn more, size_t *bytes, char *error) {
    int file = open_again(path, O_RDONLY);
    memory_undo undo;
    char *text;
    if (file < 0) return snprintf(error, ERROR_SIZE, "%.400s: %s", path, strerror(errno)), NULL;
    memory_remember(&undo, close_descriptor, &file);
    text = read_limited(file, path, more, bytes, error);
    memory_forget(&undo);
    close(file);
    return text;
}

void *file_read(const char *path, size_t *bytes, char *error) {
    return file_read_while(path, NULL, bytes, error);
}

/* ---- replacing ---- */

static void replacement_drop(void *argument) {
    const replacement *r = argument;
    close(r->descriptor);
    remove(r->temporary);
}

/* Opens and locks the temporary file; the lock shows that its process lives. Between open and lock another process may
 * have cleared the file away, so the name is checked again. */
static int open_temporary(replacement *r) {
    for (int tries = 0;; tries++) {
        if ((r->descriptor = open_again(r->temporary, O_WRONLY | O_CREAT | O_TRUNC)) < 0) return 0;
        const int locked = lock_again(r->descriptor, LOCK_EX | LOCK_NB) == 0;
        if (locked ? is_there(r->descriptor, r->temporary) : errno != EWOULDBLOCK) return 1;
        if (tries == 100) return 1;
        close(r->descriptor);
    }
}

int replacement_open(replacement *r, const char *path, char *error) {
    struct stat status;
    memset(r, 0, offsetof(replacement, buffer));
    if (snprintf(r->path, sizeof r->path, "%s", path) >= (int)sizeof r->path)
        return snprintf(error, ERROR_SIZE, "the path is too long"), 0;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) /* devices and pipes must not be replaced */
        return snprintf(error, ERROR_SIZE, "%.400s: not a regular file", path), 0;
    replacement_clear(path);
    snprintf(r->temporary, sizeof r->temporary, "%s.%ld.tmp", path, (long)getpid());
    if (!open_temporary(r)) return snprintf(error, ERROR_SIZE, "%.400s: %s", path, strerror(errno)), 0;
    memory_remember(&r->undo, replacement_drop, r);
    return 1;
}

static int write_out(replacement *r, const void *bytes, size_t n) {
    if (!r->failure && !descriptor_write(r->descriptor, bytes, n)) r->failure = errno;
    return !r->failure;
}

static int write_held(replacement *r) {
    const size_t n = r->held;
    r->held = 0;
    return write_out(r, r->buffer, n);
}

int replacement_write(replacement *r, const void *bytes, size_t n) {
    if (n > sizeof r->buffer - r->held && !write_held(r)) return 0;
    if (n > sizeof r->buffer) return write_out(r, bytes, n);
    memcpy(r->buffer + r->held, bytes, n);
    r->held += n;
    return !r->failure;
}

static void folder_of(char folder[4096], const char *path) {
    char *slash;
    snprintf(folder, 4096, "%s", path);
    slash = strrchr(folder, '/');
    if (slash) *(slash == folder ? slash + 1 : slash) = 0;
    else strcpy(folder, ".");
}

/* The folder's entry must reach the disk too, or a power cut may undo the renaming. A folder that is writable but not
 * readable, or a file system that cannot flush folders, is not a failure. */
static int flush_folder(const char *path, char *error) {
    char folder[4096];
    int descriptor, good;
    folder_of(folder, path);
    descriptor = open_again(folder, O_RDONLY);
    good = descriptor >= 0 ? flush_again(descriptor) == 0 || errno == EINVAL : errno == EACCES;
    if (!good) snprintf(error, ERROR_SIZE, "%.400s: its folder cannot be flushed: %s", path, strerror(errno));
    if (descriptor >= 0) close(descriptor);
    return good;
}

int replacement_close(replacement *r, int good, char *error) {
    memory_forget(&r->undo);
    if (good && write_held(r) && flush_again(r->descriptor) != 0) r->failure = errno;
    if (close(r->descriptor) != 0 && errno != EINTR && !r->failure) r->failure = errno;
    if (good && !r->failure && rename(r->temporary, r->path) != 0) r->failure = errno;
    if (good && !r->failure) return flush_folder(r->path, error);
    snprintf(error, ERROR_SIZE, "%.400s: cannot be written: %s", r->path, strerror(r->failure));
    remove(r->temporary);
    return 0;
}

int file_write(const char *path, const void *bytes, size_t n, char *error) {
    replacement r;
    if (!replacement_open(&r, path, error)) return 0;
    return replacement_close(&r, replacement_write(&r, bytes, n), error);
}

/* <base>.<digits>.tmp */
static int is_temporary(const char *name, const char *base) {
    const size_t n = strlen(base),
                 digits = strncmp(name, base, n) == 0 && name[n] == '.' ? strspn(name + n + 1, "0123456789") : 0;
    return digits > 0 && strcmp(name + n + 1 + digits, ".tmp") == 0;
}

static void remove_unlocked(const char *path) {
    const int descriptor = open_again(path, O_RDWR | O_NOFOLLOW);
    if (descriptor < 0) return;
    if (lock_again(descriptor, LOCK_EX | LOCK_NB) == 0) remove(path);
    close(descriptor);
}

void replacement_clear(const char *path) {
    const char *slash = strrchr(path, '/');
    char folder[4096], full[4096 + 256];
    struct dirent *entry;
    DIR *entries;
    folder_of(folder, path);
    if (!(entries = opendir(folder))) return;
    while ((entry = readdir(entries)) != NULL) {
        if (!is_temporary(entry->d_name, slash ? slash + 1 : path)) continue;
        if (snprintf(full, sizeof full, "%s/%s", folder, entry->d_name) < (int)sizeof full) remove_unlocked(full);
    }
    closedir(entries);
}

/* ---- folders ---- */

int folder_make(const char *path, char *error) {
    char name[4096];
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    if (snprintf(name, sizeof name, "%.*s", (int)n, path) >= (int)sizeof name)
        return snprintf(error, ERROR_SIZE, "the path is too long"), -1;
    const int made = mkdir(name, 0777) == 0;
    if (!made && errno != EEXIST) return snprintf(error, ERROR_SIZE, "%.400s: %s", name, strerror(errno)), -1;
    if (flush_folder(name, error)) return made;
    if (made) (void)rmdir(name);
    return -1;
}

/* ---- locks ---- */

static void release_folder(void *argument) {
    close(((folder_hold *)argument)->descriptor);
}

int folder_lock(folder_hold *h, const char *path, int wait) {
    if ((h->descriptor = open_again(path, O_RDONLY)) < 0) return 0;
    if (lock_again(h->descriptor, wait ? LOCK_EX : LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(h->descriptor), h->descriptor = -1;
        return errno = EWOULDBLOCK, 0;
    }
    memory_remember(&h->undo, release_folder, h);
    return 1;
}

void folder_unlock(folder_hold *h) {
    if (h->descriptor < 0) return;
    memory_forget(&h->undo);
    release_folder(h);
}

/* Reports the owner that the file names; the owner may not have written its number yet. */
static int refuse_claim(const claim *c, const char *folder, char *error) {
    char text[24] = "";
    long owner;
    if (read_again(c->descriptor, text, sizeof text - 1) < 0) text[0] = 0;
    owner = strtol(text, NULL, 10);
    if (owner > 0) snprintf(error, ERROR_SIZE, "%.400s: process %ld is at work in this folder", folder, owner);
    else snprintf(error, ERROR_SIZE, "%.400s: another process is at work in this folder", folder);
    close(c->descriptor);
    return 0;
}

static int lock_claim(claim *c, const char *folder, char *error) {
    if ((c->descriptor = open_again(c->path, O_RDWR | O_CREAT | O_NOFOLLOW)) < 0)
        return snprintf(error, ERROR_SIZE, "%.400s: %s", c->path, strerror(errno)), 0;
    c->held = lock_again(c->descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    return c->held ? 1 : refuse_claim(c, folder, error);
}

static void release_claim(void *argument) {
    claim *c = argument;
    remove(c->path);
    close(c->descriptor);
    c->held = 0;
}

int claim_take(claim *c, const char *folder, char *error) {
    char text[24];
    memset(c, 0, sizeof *c);
    if (snprintf(c->path, sizeof c->path, "%s/mtan.lock", folder) >= (int)sizeof c->path)
        return snprintf(error, ERROR_SIZE, "the path is too long"), 0;
    if (!lock_claim(c, folder, error)) return 0;
    /* The previous owner removes the file on release, so the file locked here may not be the one under that name any
     * more. */
    for (int tries = 0; !is_there(c->descriptor, c->path) && tries < 100; tries++) {
        close(c->descriptor);
        if (!lock_claim(c, folder, error)) return c->held = 0;
    }
    snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(c->descriptor, 0) == 0) (void)descriptor_write(c->descriptor, text, strlen(text));
    memory_remember(&c->undo, release_claim, c);
    return 1;
}

void claim_drop(claim *c) {
    if (!c->held) return;
    memory_forget(&c->undo);
    release_claim(c);
}
