/* See disk.h. */
#define _POSIX_C_SOURCE 200809L
#include "disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ADD(list, n) (((list) = larger(list, ((n) + 1) * sizeof *(list))), &(list)[(n)++])

static void *larger(void *list, size_t bytes) {
    if (!(list = realloc(list, bytes))) fail_system("memory");
    return list;
}

/* ---- files and names ---- */

static size_t add_file(disk *d, uint64_t number, int is_folder, const char *bytes, size_t n) {
    disk_file *f = ADD(d->files, d->n_files);
    f->number = number, f->is_folder = is_folder;
    f->now = bytes_copy(bytes, n), f->safe = bytes_copy(bytes, n);
    f->n_now = f->n_safe = n;
    return d->n_files - 1;
}

/* The newest: a number is given again when a file is gone. NULL: nothing that matters. */
static disk_file *file_of(disk *d, uint64_t number) {
    for (size_t i = d->n_files; i-- > 0;)
        if (d->files[i].number == number) return &d->files[i];
    return NULL;
}

static ptrdiff_t find_name(const disk_name *names, size_t n, const char *path) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i].path, path) == 0) return (ptrdiff_t)i;
    return -1;
}

static void drop_name(disk_name *names, size_t *n, const char *path) {
    const ptrdiff_t at = find_name(names, *n, path);
    if (at >= 0) names[at] = names[--*n];
}

/* There is room for one name more. */
static void apply(disk_name *names, size_t *n, const disk_change *c) {
    if (c->from[0]) drop_name(names, n, c->from);
    if (!c->to[0]) return;
    drop_name(names, n, c->to);
    memcpy(names[*n].path, c->to, TREE_PATH);
    names[(*n)++].file = c->file;
}

/* All changes made, whether safe or not. */
static disk_name *names_after(const disk *d, size_t changes, size_t *n) {
    disk_name *names = larger(NULL, (d->n_names + changes + 1) * sizeof *names);
    *n = d->n_names;
    if (*n > 0) memcpy(names, d->names, *n * sizeof *names);
    for (size_t i = 0; i < changes; i++) apply(names, n, &d->changes[i]);
    return names;
}

static void change(disk *d, const char *from, const char *to, size_t file) {
    disk_change *c = ADD(d->changes, d->n_changes);
    snprintf(c->from, TREE_PATH, "%s", from), snprintf(c->to, TREE_PATH, "%s", to);
    c->file = file;
}

static void make_safe(disk *d, const disk_change *c) {
    d->names = larger(d->names, (d->n_names + 1) * sizeof *d->names);
    apply(d->names, &d->n_names, c);
}

/* Whether a path stands in a folder; "" is work/ itself. */
static int stands_in(const char *path, const char *folder) {
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) : 0;
    return strlen(folder) == n && strncmp(path, folder, n) == 0;
}

/* Tables grow by rows, and are replaced only when a run is resumed: they have no versions. */
int disk_grows(const char *path) {
    const size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".csv") == 0;
}

static void add_version(disk *d, const char *path, const char *bytes, size_t n, int promised) {
    disk_version *v;
    if (disk_grows(path)) return;
    v = ADD(d->versions, d->n_versions);
    snprintf(v->path, TREE_PATH, "%s", path);
    v->bytes = bytes_copy(bytes, n), v->n = n, v->promised = promised;
}

/* ---- the log ---- */

static void begin_with(disk *d, const char *path, const char *full, const tree_file *f) {
    struct stat status;
    disk_name *name = ADD(d->names, d->n_names);
    if (stat(full, &status) != 0) fail_system(full);
    snprintf(name->path, TREE_PATH, "%s", path);
    name->file = add_file(d, (uint64_t)status.st_ino, !f || f->is_folder, f ? f->bytes : NULL, f ? f->n : 0);
    if (f && !f->is_folder) add_version(d, path, f->bytes, f->n, 1);
}

void disk_begin(disk *d, const place *p) {
    tree t = tree_read(place_path(p, "work"));
    memset(d, 0, sizeof *d);
    begin_with(d, "", place_path(p, "work"), NULL);
    for (size_t i = 0; i < t.n; i++) {
        char full[2 * TREE_PATH];
        snprintf(full, sizeof full, "work/%s", t.files[i].path);
        begin_with(d, t.files[i].path, place_path(p, full), &t.files[i]);
    }
    tree_free(&t);
}

void disk_log(disk *d, const place *p) {
    d->log = file_bytes(place_path(p, "log"), &d->bytes);
}

static void write_file(disk_file *f, uint64_t at, const char *data, size_t n) {
    if (at + n > f->n_now) {
        f->now = larger(f->now, at + n + 1);
        if (at > f->n_now) memset(f->now + f->n_now, 0, (size_t)at - f->n_now);
        f->n_now = (size_t)at + n;
    }
    memcpy(f->now + at, data, n);
}

static void flush_file(disk_file *f) {
    free(f->safe);
    f->safe = bytes_copy(f->now, f->n_now), f->n_safe = f->n_now;
}

static void flush_folder(disk *d, size_t folder) {
    size_t kept = 0, n;
    disk_name *names = names_after(d, d->n_changes, &n);
    const char *path = NULL;
    for (size_t i = 0; i < n; i++)
        if (names[i].file == folder) path = names[i].path;
    for (size_t i = 0; path && i < d->n_changes; i++) {
        const disk_change c = d->changes[i];
        if (stands_in(c.to[0] ? c.to : c.from, path)) make_safe(d, &c);
        else d->changes[kept++] = c;
    }
    if (path) d->n_changes = kept;
    free(names);
}

static void rename_file(disk *d, const char *from, const char *to) {
    size_t n;
    disk_name *names = names_after(d, d->n_changes, &n);
    const ptrdiff_t at = find_name(names, n, from);
    if (at >= 0) {
        const size_t file = names[at].file;
        add_version(d, to, d->files[file].now, d->files[file].n_now, 0);
        change(d, from, to, file);
    }
    free(names);
}

static void opened(disk *d, const fault_entry *e, const char *path) {
    for (size_t i = 0; i < d->n_versions; i++) d->versions[i].promised = 1;
    if (e->is_new) change(d, "", path, add_file(d, e->file, 0, NULL, 0));
}

int disk_step(disk *d) {
    fault_entry e;
    char path[TREE_PATH], to[TREE_PATH];
    const char *data;
    disk_file *f;
    if (d->at + sizeof e > d->bytes) return 0;
    memcpy(&e, d->log + d->at, sizeof e);
    snprintf(path, sizeof path, "%.*s", (int)e.path, d->log + d->at + sizeof e);
    data = d->log + d->at + sizeof e + e.path;
    d->at += sizeof e + e.path + e.bytes;
    f = file_of(d, e.file);
    snprintf(to, sizeof to, "%.*s", e.what == LOG_RENAME ? (int)e.bytes : 0, data);
    if (e.what == LOG_OPEN) opened(d, &e, path);
    if (e.what == LOG_TRUNCATE && f) f->n_now = (size_t)e.at < f->n_now ? (size_t)e.at : f->n_now;
    if (e.what == LOG_WRITE && f) write_file(f, e.at, data, e.bytes);
    if (e.what == LOG_FLUSH && f && f->is_folder) flush_folder(d, (size_t)(f - d->files));
    if (e.what == LOG_FLUSH && f && !f->is_folder) flush_file(f);
    if (e.what == LOG_RENAME) rename_file(d, path, to);
    if (e.what == LOG_REMOVE) change(d, path, "", 0);
    if (e.what == LOG_MAKE_FOLDER) change(d, "", path, add_file(d, e.file, 1, NULL, 0));
    return 1;
}

void disk_free(disk *d) {
    for (size_t i = 0; i < d->n_files; i++) free(d->files[i].now), free(d->files[i].safe);
    for (size_t i = 0; i < d->n_versions; i++) free(d->versions[i].bytes);
    free(d->files), free(d->names), free(d->changes), free(d->versions), free(d->log);
    memset(d, 0, sizeof *d);
}

/* ---- power cuts ---- */

static void put_file(tree *t, const char *path, const disk_file *f, int kind) {
    const size_t more = f->n_now > f->n_safe ? f->n_now - f->n_safe : 0;
    char *bytes;
    if (kind == DISK_LOST || kind == DISK_WHOLE) {
        if (kind == DISK_LOST) tree_put(t, path, f->is_folder, f->safe, f->n_safe);
        else tree_put(t, path, f->is_folder, f->now, f->n_now);
        return;
    }
    bytes = bytes_copy(f->now, f->n_now);
    if (kind == DISK_ZEROS && more > 0) memset(bytes + f->n_safe, 0, more);
    tree_put(t, path, f->is_folder, bytes, kind == DISK_HALF ? f->n_now - (more + 1) / 2 : f->n_now);
    free(bytes);
}

/* A path whose folder is not there is not there. */
static int has_folder(const disk_name *names, size_t n, const char *path) {
    const char *slash = strrchr(path, '/');
    char folder[TREE_PATH];
    if (!slash) return 1;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    return find_name(names, n, folder) >= 0 && has_folder(names, n, folder);
}

tree disk_after(const disk *d, size_t changes, int kind) {
    tree t = {NULL, 0};
    size_t n;
    disk_name *names = names_after(d, changes, &n);
    for (size_t i = 0; i < n; i++)
        if (names[i].path[0] && has_folder(names, n, names[i].path))
            put_file(&t, names[i].path, &d->files[names[i].file], kind);
    free(names);
    return t;
}

static int is_version(const disk_version *v, const tree_file *f) {
    return strcmp(v->path, f->path) == 0 && v->n == f->n && memcmp(v->bytes, f->bytes, v->n) == 0;
}

int disk_is_version(const disk *d, const tree_file *f) {
    for (size_t i = 0; i < d->n_versions; i++)
        if (is_version(&d->versions[i], f)) return 1;
    return 0;
}

const char *disk_broken(const disk *d, const tree *t) {
    for (size_t i = 0; i < d->n_versions; i++) {
        const disk_version *v = &d->versions[i];
        const tree_file *f = tree_find(t, v->path);
        size_t k = i;
        if (f && !disk_is_version(d, f)) return v->path;
        if (!v->promised) continue;
        while (k < d->n_versions && !(f && is_version(&d->versions[k], f))) k++;
        if (k == d->n_versions) return v->path;
    }
    return NULL;
}
