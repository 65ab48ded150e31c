/* See files.h. */
#define _POSIX_C_SOURCE 200809L
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../mtan.h"

enum { ERROR_SIZE = 512 };
/* Of a file that is read whole: 4 GiB, more than any model; a quarter of the memory where addresses have 32 bits. */
static const size_t MOST_BYTES = (size_t)1 << (sizeof(size_t) > 4 ? 32 : 30);
/* The same of a pipe or a device. */
static const size_t MOST_OF_STREAM = (size_t)256 << 20;

int safetensors_more(const void *start, size_t n) {
    size_t length;
    return mtan_file_length(start, n, &length) == MTAN_OK && n <= length;
}

static void close_file(void *file) {
    fclose(file);
}

/* The bytes of an open file, at most one more than `most`; its end or an error is the stream's to tell. */
static char *read_bytes(FILE *file, file_more_fn more, size_t most, size_t *bytes) {
    char *text = NULL;
    size_t got, size = 0, room = 0;
    do {
        if (size + 1 >= room) text = tool_realloc(text, room = room ? 2 * room : 1 << 16);
        size += got = fread(text + size, 1, room - size - 1, file);
    } while (got > 0 && size <= most && (!more || more(text, size)));
    text[size] = 0;
    *bytes = size;
    return text;
}

void *file_read_while(const char *path, file_more_fn more, size_t *bytes, char *error) {
    FILE *file = fopen(path, "rb");
    struct stat status;
    memory_undo undo;
    char *text = NULL;
    if (!file) return snprintf(error, ERROR_SIZE, "%.400s: %s", path, strerror(errno)), NULL;
    const int stream = fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode);
    const size_t most = stream ? MOST_OF_STREAM : MOST_BYTES;
    const int too_large = !stream && (uint64_t)status.st_size > most;
    memory_remember(&undo, close_file, file);
    if (!too_large) text = read_bytes(file, more, most, bytes);
    memory_forget(&undo);
    if (too_large || ferror(file) || *bytes > most) {
        if (ferror(file)) snprintf(error, ERROR_SIZE, "%.400s: %s", path, strerror(errno));
        else
            snprintf(error, ERROR_SIZE, "%.400s: larger than %zu MiB%s", path, most >> 20,
                     stream ? ", and not a regular file: does it end?" : "");
        free(text), text = NULL;
    }
    fclose(file);
    return text;
}

void *file_read(const char *path, size_t *bytes, char *error) {
    return file_read_while(path, NULL, bytes, error);
}

static void replacement_drop(void *argument) {
    const replacement *r = argument;
    fclose(r->file);
    remove(r->temporary);
}

int replacement_open(replacement *r, const char *path, char *error) {
    struct stat status;
    if (snprintf(r->path, sizeof r->path, "%s", path) >= (int)sizeof r->path)
        return snprintf(error, ERROR_SIZE, "the path is too long"), 0;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) /* a device or a pipe must not be replaced */
        return snprintf(error, ERROR_SIZE, "%.400s: not a regular file", path), 0;
    snprintf(r->temporary, sizeof r->temporary, "%s.%ld.tmp", path, (long)getpid());
    if (!(r->file = fopen(r->temporary, "wb")))
        return snprintf(error, ERROR_SIZE, "%.400s: %s", r->temporary, strerror(errno)), 0;
    memory_remember(&r->undo, replacement_drop, r);
    return 1;
}

/* The folder's entry has to reach the disk too, or a power cut may undo the renaming. */
static void flush_folder(const char *path) {
    char folder[4096];
    char *slash;
    int descriptor;
    snprintf(folder, sizeof folder, "%s", path);
    slash = strrchr(folder, '/');
    if (slash) *(slash == folder ? slash + 1 : slash) = 0;
    if ((descriptor = open(slash ? folder : ".", O_RDONLY)) < 0) return;
    (void)fsync(descriptor);
    close(descriptor);
}

static void release_folder(void *argument) {
    close(((folder_hold *)argument)->descriptor);
}

int folder_lock(folder_hold *h, const char *path, int wait) {
    if ((h->descriptor = open(path, O_RDONLY)) < 0) return 0;
    if (flock(h->descriptor, wait ? LOCK_EX : LOCK_EX | LOCK_NB) != 0) {
        close(h->descriptor), h->descriptor = -1;
        return 0;
    }
    memory_remember(&h->undo, release_folder, h);
    return 1;
}

void folder_unlock(folder_hold *h) {
    if (h->descriptor < 0) return;
    memory_forget(&h->undo);
    release_folder(h);
}

int replacement_close(replacement *r, int good, char *error) {
    memory_forget(&r->undo);
    if (good) good = fflush(r->file) == 0 && fsync(fileno(r->file)) == 0;
    good = (fclose(r->file) == 0) & good;
    if (good) good = rename(r->temporary, r->path) == 0;
    if (!good) {
        snprintf(error, ERROR_SIZE, "%.400s: cannot be written: %s", r->path, strerror(errno));
        remove(r->temporary);
    } else flush_folder(r->path);
    return good;
}

int file_write(const char *path, const void *bytes, size_t n, char *error) {
    replacement r;
    if (!replacement_open(&r, path, error)) return 0;
    return replacement_close(&r, fwrite(bytes, 1, n, r.file) == n, error);
}
