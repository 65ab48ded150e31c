/* What the fuzz targets have in common: promises, words, and files in memory. Each target is one file of this folder, NAME.c,
 * with NAME.dict and seeds/NAME/ beside it where it has them; `make fuzz` runs them all. */
#ifndef MTAN_FUZZ_H
#define MTAN_FUZZ_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A promise that does not hold is a finding. */
#define PROMISE(holds)                                                                                                 \
    do {                                                                                                               \
        if (!(holds)) fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #holds), abort();              \
    } while (0)

/* ---- words: a byte below 32 stands for a text, so that long names are no walls in the way ---- */

enum { FUZZ_WORDS = 32, FUZZ_ROOM = 1 << 19 };

/* Appends to `out`, which has FUZZ_ROOM bytes. What does not fit is left out. */
static inline size_t fuzz_put(uint8_t *out, size_t at, const void *bytes, size_t n) {
    if (n > FUZZ_ROOM - at) return at;
    if (n) memcpy(out + at, bytes, n);
    return at + n;
}

/* The next bytes of the input, up to a zero or its end, spelled out. A byte without a word stands for itself, 127 for zero. *data
 * and *size move on, past the zero. */
static inline size_t fuzz_spell(uint8_t *out, const char *const words[FUZZ_WORDS], const uint8_t **data, size_t *size) {
    size_t length = 0;
    for (; *size > 0 && **data != 0; (*data)++, (*size)--) {
        const uint8_t byte = (uint8_t)(**data == 127 ? 0 : **data);
        const char *word = byte < FUZZ_WORDS ? words[byte] : NULL;
        length = word ? fuzz_put(out, length, word, strlen(word)) : fuzz_put(out, length, &byte, 1);
    }
    if (*size > 0) (*data)++, (*size)--;
    return length;
}

/* ---- files in memory, for readers that take paths: they are written anew for each input ---- */

typedef struct fuzz_file {
    char path[80];
    int descriptor;
} fuzz_file;

static char fuzz_folder[32];
static fuzz_file *fuzz_files[8];

static void fuzz_remove_files(void) {
    for (size_t i = 0; i < sizeof fuzz_files / sizeof fuzz_files[0] && fuzz_files[i]; i++) remove(fuzz_files[i]->path);
    rmdir(fuzz_folder);
}

static inline void fuzz_give_up(const char *what) {
    perror(what);
    exit(2);
}

/* A folder of this process, in memory where the system has such a place. */
static void fuzz_make_folder(void) {
    static const char *const places[] = {"/dev/shm/mtan-fuzz-XXXXXX", "/tmp/mtan-fuzz-XXXXXX"};
    for (int i = 0; i < 2 && !fuzz_folder[0]; i++) {
        strcpy(fuzz_folder, places[i]);
        if (!mkdtemp(fuzz_folder)) fuzz_folder[0] = 0;
    }
    if (!fuzz_folder[0]) fuzz_give_up(places[1]);
    atexit(fuzz_remove_files);
}

/* Fills the file called `name`; it is made when it is first filled. */
static inline void fuzz_fill(fuzz_file *f, const char *name, const void *bytes, size_t n) {
    size_t i = 0;
    if (!fuzz_folder[0]) fuzz_make_folder();
    if (!f->path[0]) {
        snprintf(f->path, sizeof f->path, "%s/%s", fuzz_folder, name);
        f->descriptor = open(f->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        while (fuzz_files[i]) i++;
        fuzz_files[i] = f;
    }
    /* Cut afterwards, so that its pages are used again. */
    if (f->descriptor < 0 || pwrite(f->descriptor, bytes, n, 0) != (ssize_t)n ||
        ftruncate(f->descriptor, (off_t)n) != 0)
        fuzz_give_up(f->path);
}

#endif
