/* See tree.h. */
#define _POSIX_C_SOURCE 200809L
#define _XOPEN_SOURCE 700
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FULL = 2 * TREE_PATH };

void fail_system(const char *what) {
    fprintf(stderr, "mtan: %s: %s\n", what, strerror(errno));
    exit(2);
}

char *bytes_copy(const void *bytes, size_t n) {
    char *copy = malloc(n + 1);
    if (!copy) fail_system("memory");
    if (n > 0) memcpy(copy, bytes, n);
    copy[n] = 0;
    return copy;
}

char *file_bytes(const char *path, size_t *n) {
    FILE *file = fopen(path, "rb");
    struct stat status;
    char *bytes;
    if (!file || fstat(fileno(file), &status) != 0) fail_system(path);
    *n = (size_t)status.st_size;
    if (!(bytes = malloc(*n + 1)) || fread(bytes, 1, *n, file) != *n) fail_system(path);
    bytes[*n] = 0;
    fclose(file);
    return bytes;
}

static void write_bytes(const char *path, const tree_file *f) {
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(f->bytes, 1, f->n, file) != f->n || fclose(file) != 0) fail_system(path);
}

/* ---- trees ---- */

void tree_put(tree *t, const char *path, int is_folder, const void *bytes, size_t n) {
    size_t at = 0;
    int order = -1;
    while (at < t->n && (order = strcmp(t->files[at].path, path)) < 0) at++;
    if (at < t->n && order == 0) {
        free(t->files[at].bytes);
    } else {
        if (!(t->files = realloc(t->files, (t->n + 1) * sizeof *t->files))) fail_system("memory");
        memmove(t->files + at + 1, t->files + at, (t->n++ - at) * sizeof *t->files);
    }
    snprintf(t->files[at].path, TREE_PATH, "%s", path);
    t->files[at].is_folder = is_folder;
    t->files[at].bytes = bytes_copy(bytes, n), t->files[at].n = n;
}

void tree_free(tree *t) {
    for (size_t i = 0; i < t->n; i++) free(t->files[i].bytes);
    free(t->files);
    t->files = NULL, t->n = 0;
}

const tree_file *tree_find(const tree *t, const char *path) {
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->files[i].path, path) == 0) return &t->files[i];
    return NULL;
}

int file_same(const tree_file *a, const tree_file *b) {
    return a->is_folder == b->is_folder && a->n == b->n && memcmp(a->bytes, b->bytes, a->n) == 0;
}

const char *tree_difference(const tree *a, const tree *b) {
    size_t i = 0;
    while (i < a->n && i < b->n && strcmp(a->files[i].path, b->files[i].path) == 0 &&
           file_same(&a->files[i], &b->files[i]))
        i++;
    if (i == a->n && i == b->n) return NULL;
    if (i == a->n || i == b->n) return i == a->n ? b->files[i].path : a->files[i].path;
    return strcmp(a->files[i].path, b->files[i].path) < 0 ? a->files[i].path : b->files[i].path;
}

/* FNV-1a. */
uint64_t tree_hash(const tree *t) {
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < t->n; i++) {
        const tree_file *f = &t->files[i];
        for (const char *p = f->path; *p; p++) h = (h ^ (unsigned char)*p) * 1099511628211u;
        h = (h ^ (f->is_folder ? 257 : 256)) * 1099511628211u;
        for (size_t k = 0; k < f->n; k++) h = (h ^ (unsigned char)f->bytes[k]) * 1099511628211u;
        h = (h ^ f->n) * 1099511628211u;
    }
    return h;
}

/* ---- and folders ---- */

static void read_into(tree *t, const char *folder, const char *inside) {
    char full[FULL], path[TREE_PATH];
    struct dirent *entry;
    struct stat status;
    DIR *list;
    snprintf(full, sizeof full, "%s/%s", folder, inside);
    if (!(list = opendir(full))) return;
    while ((entry = readdir(list)) != NULL) {
        size_t n = 0;
        char *bytes = NULL;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (snprintf(path, sizeof path, "%s%s%s", inside, *inside ? "/" : "", entry->d_name) >= TREE_PATH ||
            snprintf(full, sizeof full, "%s/%s", folder, path) >= FULL || stat(full, &status) != 0)
            fail_system(entry->d_name);
        if (!S_ISDIR(status.st_mode)) bytes = file_bytes(full, &n);
        tree_put(t, path, S_ISDIR(status.st_mode), bytes, n);
        free(bytes);
        if (S_ISDIR(status.st_mode)) read_into(t, folder, path);
    }
    closedir(list);
}

tree tree_read(const char *folder) {
    tree t = {NULL, 0};
    read_into(&t, folder, "");
    return t;
}

void tree_write(const tree *t, const char *folder) {
    tree old = tree_read(folder);
    char full[FULL];
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) fail_system(folder);
    for (size_t i = old.n; i-- > 0;) { /* from within */
        const tree_file *wanted = tree_find(t, old.files[i].path);
        if (wanted && wanted->is_folder == old.files[i].is_folder) continue;
        snprintf(full, sizeof full, "%s/%s", folder, old.files[i].path);
        if (remove(full) != 0) fail_system(full);
    }
    for (size_t i = 0; i < t->n; i++) {
        const tree_file *f = &t->files[i], *there = tree_find(&old, f->path);
        if (there && file_same(there, f)) continue;
        snprintf(full, sizeof full, "%s/%s", folder, f->path);
        if (!f->is_folder) write_bytes(full, f);
        else if (mkdir(full, 0777) != 0) fail_system(full);
    }
    tree_free(&old);
}
