/* Loaded in front of the C library (LD_PRELOAD): counts the calls of a program and makes one of them fail, as faults.h says.
 *
 * The C library writes its streams by calls that nobody can come between. So fopen and stdout are streams of our own here
 * (fopencookie), which call the write and close below. Standard error stays as it is: a message must come through.
 *
 * The clock goes on by a millisecond with every look at it, so that what a program writes is the same in every run. Nothing is
 * flushed to the disk: the log says when it would be, and the driver computes what a power cut leaves. */
#define _GNU_SOURCE
#include "faults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { STREAMS = 16, DESCRIPTORS = 256, SPOILT = 1024 };

/* What stands behind the names that this file takes. */
static struct {
    int (*open)(const char *, int, ...);
    ssize_t (*read)(int, void *, size_t);
    ssize_t (*write)(int, const void *, size_t);
    int (*rename)(const char *, const char *);
    int (*close)(int);
    int (*flock)(int, int);
    int (*ftruncate)(int, off_t);
    int (*stat)(const char *, struct stat *);
    int (*fstat)(int, struct stat *);
    int (*mkdir)(const char *, mode_t);
    int (*rmdir)(const char *);
    int (*remove)(const char *);
    DIR *(*opendir)(const char *);
    struct dirent *(*readdir)(DIR *);
    int (*fileno)(FILE *);
    int (*pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
} real;

/* A pointer to a function is no pointer to an object in C99: its bytes are copied. */
static void find(void *to, const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) abort();
    memcpy(to, &found, sizeof found);
}
#define FIND(name) find(&real.name, #name)

static struct {
    uint32_t mask, at, action; /* of MTAN_FAULT; mask 0: nothing fails */
    int code;
    fault_page *page;
    int log; /* a descriptor, or -1 */
    uint32_t moment;
    int on;
} fault = {0, 0, 0, 0, NULL, -1, 0, 0};

static char writable[DESCRIPTORS]; /* those whose writes are logged */

/* ---- the fault ---- */

/* Whether this call is the one. A signal comes at once, and then it is not. */
static int strikes(int kind) {
    uint32_t n;
    if (!fault.on) return 0;
    __atomic_fetch_add(&fault.page->calls[kind], 1, __ATOMIC_RELAXED);
    if (!(fault.mask >> kind & 1)) return 0;
    n = __atomic_add_fetch(&fault.page->seen, 1, __ATOMIC_RELAXED);
    if (fault.action == FAULT_DO_on ? n < fault.at : n != fault.at) return 0;
    __atomic_fetch_add(&fault.page->hits, 1, __ATOMIC_RELAXED);
    if (fault.action == FAULT_DO_kill || (fault.action == FAULT_DO_tear && kind != FAULT_write)) raise(SIGKILL);
    if (fault.action == FAULT_DO_term) return raise(SIGTERM), 0;
    return 1;
}

static int fails(int kind) {
    if (!strikes(kind)) return 0;
    errno = fault.code;
    return 1;
}

/* ---- the log ---- */

static uint64_t number_of(int descriptor) {
    struct stat status;
    return real.fstat(descriptor, &status) == 0 ? (uint64_t)status.st_ino : 0;
}

static void put(const void *bytes, size_t n) {
    if (n > 0 && real.write(fault.log, bytes, n) != (ssize_t)n) abort();
}

static void note(uint32_t what, uint32_t is_new, uint64_t file, uint64_t at, const char *path, const void *data,
                 size_t n) {
    const fault_entry e = {what, is_new, file, at, path ? strlen(path) : 0, n};
    const int kept = errno;
    if (fault.log < 0) return;
    put(&e, sizeof e), put(path, (size_t)e.path), put(data, n);
    errno = kept;
}

static void note_write(int descriptor, const void *bytes, ssize_t n) {
    struct stat status;
    off_t end;
    if (fault.log < 0 || n <= 0 || descriptor >= DESCRIPTORS || !writable[descriptor]) return;
    if (real.fstat(descriptor, &status) != 0 || (end = lseek(descriptor, 0, SEEK_CUR)) < 0) abort();
    note(LOG_WRITE, 0, (uint64_t)status.st_ino, (uint64_t)(end - n), NULL, bytes, (size_t)n);
}

/* ---- files ---- */

int open(const char *path, int flags, ...) {
    struct stat status;
    const int writes = (flags & O_ACCMODE) != O_RDONLY, is_new = writes && real.stat(path, &status) != 0;
    mode_t mode = 0;
    int descriptor;
    if (flags & O_CREAT) {
        va_list more;
        va_start(more, flags);
        mode = (mode_t)va_arg(more, int);
        va_end(more);
    }
    if (fails(FAULT_open)) return -1;
    if ((descriptor = real.open(path, flags, mode)) < 0 || descriptor >= DESCRIPTORS) return descriptor;
    writable[descriptor] = (char)writes;
    if (writes) note(LOG_OPEN, (uint32_t)is_new, number_of(descriptor), 0, path, NULL, 0);
    if (writes && (flags & O_TRUNC)) note(LOG_TRUNCATE, 0, number_of(descriptor), 0, NULL, NULL, 0);
    return descriptor;
}

int open64(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list more;
        va_start(more, flags);
        mode = (mode_t)va_arg(more, int);
        va_end(more);
    }
    return open(path, flags, mode);
}

ssize_t read(int descriptor, void *out, size_t n) {
    if (!strikes(FAULT_read)) return real.read(descriptor, out, n);
    if (fault.action == FAULT_DO_half) return real.read(descriptor, out, (n + 1) / 2);
    errno = fault.code;
    return -1;
}

ssize_t write(int descriptor, const void *bytes, size_t n) {
    const int bad = strikes(FAULT_write),
              part = bad && (fault.action == FAULT_DO_half || fault.action == FAULT_DO_tear);
    ssize_t done;
    if (bad && !part) {
        errno = fault.code;
        return -1;
    }
    done = real.write(descriptor, bytes, part ? (n + 1) / 2 : n);
    note_write(descriptor, bytes, done);
    if (bad && fault.action == FAULT_DO_tear) raise(SIGKILL);
    return done;
}

int fsync(int descriptor) {
    if (fails(FAULT_fsync)) return -1;
    note(LOG_FLUSH, 0, number_of(descriptor), 0, NULL, NULL, 0);
    return 0;
}

int rename(const char *from, const char *to) {
    int result;
    if (fails(FAULT_rename)) return -1;
    if ((result = real.rename(from, to)) == 0) note(LOG_RENAME, 0, 0, 0, from, to, strlen(to));
    return result;
}

/* The descriptor is gone also when it fails, as Linux has it. */
int close(int descriptor) {
    const int bad = fails(FAULT_close), result = real.close(descriptor);
    if (descriptor >= 0 && descriptor < DESCRIPTORS) writable[descriptor] = 0;
    if (!bad) return result;
    errno = fault.code;
    return -1;
}

int flock(int descriptor, int operation) {
    return fails(FAULT_lock) ? -1 : real.flock(descriptor, operation);
}

int ftruncate(int descriptor, off_t length) {
    int result;
    if (fails(FAULT_lock)) return -1;
    if ((result = real.ftruncate(descriptor, length)) == 0)
        note(LOG_TRUNCATE, 0, number_of(descriptor), (uint64_t)length, NULL, NULL, 0);
    return result;
}

int ftruncate64(int descriptor, off64_t length) {
    return ftruncate(descriptor, (off_t)length);
}

/* struct stat64 is struct stat where addresses have 64 bits, as struct dirent64 is struct dirent. */
int stat(const char *path, struct stat *out) {
    return fails(FAULT_stat) ? -1 : real.stat(path, out);
}

int stat64(const char *path, struct stat64 *out) {
    return stat(path, (struct stat *)out);
}

int fstat(int descriptor, struct stat *out) {
    return fails(FAULT_stat) ? -1 : real.fstat(descriptor, out);
}

int fstat64(int descriptor, struct stat64 *out) {
    return fstat(descriptor, (struct stat *)out);
}

/* ---- folders ---- */

int mkdir(const char *path, mode_t mode) {
    int result;
    if (fails(FAULT_folder)) return -1;
    if ((result = real.mkdir(path, mode)) == 0) {
        struct stat status;
        note(LOG_MAKE_FOLDER, 0, real.stat(path, &status) == 0 ? (uint64_t)status.st_ino : 0, 0, path, NULL, 0);
    }
    return result;
}

static int removed(int result, const char *path) {
    if (result == 0) note(LOG_REMOVE, 0, 0, 0, path, NULL, 0);
    return result;
}

int rmdir(const char *path) {
    return fails(FAULT_folder) ? -1 : removed(real.rmdir(path), path);
}

int remove(const char *path) {
    return fails(FAULT_folder) ? -1 : removed(real.remove(path), path);
}

DIR *opendir(const char *path) {
    return fails(FAULT_folder) ? NULL : real.opendir(path);
}

struct dirent *readdir(DIR *folder) {
    return fails(FAULT_folder) ? NULL : real.readdir(folder);
}

struct dirent64 *readdir64(DIR *folder) {
    return (struct dirent64 *)readdir(folder);
}

/* ---- streams ---- */

static struct {
    FILE *stream;
    int descriptor;
} streams[STREAMS];

/* The kernel makes a call again that a handler with SA_RESTART interrupted, and the command has no other handlers: the C library, which
 * knows no EINTR either, never sees one. */
static ssize_t stream_write(void *cookie, const char *bytes, size_t n) {
    size_t done = 0;
    while (done < n) {
        const ssize_t more = write(*(int *)cookie, bytes + done, n - done);
        if (more < 0 && errno != EINTR) break;
        if (more > 0) done += (size_t)more;
    }
    return (ssize_t)done;
}

static int stream_close(void *cookie) {
    int *descriptor = cookie;
    const int result = close(*descriptor);
    *descriptor = -1;
    return result < 0 && errno == EINTR ? 0 : result;
}

static FILE *stream_on(int descriptor, const char *mode) {
    const cookie_io_functions_t functions = {NULL, stream_write, NULL, stream_close};
    int i = 0;
    while (i < STREAMS && streams[i].stream && streams[i].descriptor >= 0) i++;
    if (i == STREAMS) abort();
    streams[i].descriptor = descriptor;
    return streams[i].stream = fopencookie(&streams[i].descriptor, mode, functions);
}

FILE *fopen(const char *path, const char *mode) {
    const int flags = mode[0] == 'w'   ? O_WRONLY | O_CREAT | O_TRUNC
                      : mode[0] == 'a' ? O_WRONLY | O_CREAT | O_APPEND
                                       : -1;
    FILE *stream;
    int descriptor;
    if (flags < 0) abort(); /* nobody reads by a stream */
    do descriptor = open(path, flags, 0666);
    while (descriptor < 0 && errno == EINTR);
    if (descriptor < 0) return NULL;
    if (!(stream = stream_on(descriptor, mode))) close(descriptor);
    return stream;
}

FILE *fopen64(const char *path, const char *mode) {
    return fopen(path, mode);
}

int fileno(FILE *stream) {
    for (int i = 0; i < STREAMS; i++)
        if (streams[i].stream == stream && streams[i].descriptor >= 0) return streams[i].descriptor;
    return real.fileno(stream);
}

/* ---- memory, threads, the clock ---- */

/* Memory that is fresh or given back holds no zeros, so that whoever reads it is seen to; the beginning is enough. */
static void spoil(void *memory, size_t n) {
    if (memory && fault.on) memset(memory, 0xA5, n < SPOILT ? n : SPOILT);
}

/* These are called before anything here has begun. */
void *malloc(size_t n) {
    void *memory;
    if (!real.malloc) FIND(malloc);
    memory = fails(FAULT_memory) ? NULL : real.malloc(n);
    spoil(memory, n);
    return memory;
}

/* Looking for it may free something too, which is lost. */
void free(void *memory) {
    static int looking;
    const int kept = errno;
    if (!real.free && looking++) return;
    if (!real.free) FIND(free);
    if (memory && fault.on) spoil(memory, malloc_usable_size(memory));
    real.free(memory);
    errno = kept;
}

void *calloc(size_t n, size_t size) {
    if (!real.calloc) FIND(calloc);
    return fails(FAULT_memory) ? NULL : real.calloc(n, size);
}

void *realloc(void *old, size_t n) {
    if (!real.realloc) FIND(realloc);
    return n > 0 && fails(FAULT_memory) ? NULL : real.realloc(old, n);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    return fails(FAULT_thread) ? EAGAIN : real.pthread_create(thread, attributes, run, argument);
}

int clock_gettime(clockid_t clock, struct timespec *out) {
    const uint32_t n = __atomic_add_fetch(&fault.moment, 1, __ATOMIC_RELAXED);
    (void)clock;
    strikes(FAULT_clock);
    out->tv_sec = 1000000 + (time_t)(n / 1000), out->tv_nsec = (long)(n % 1000) * 1000000;
    return 0;
}

time_t time(time_t *out) {
    const time_t now = 1700000000;
    if (out) *out = now;
    return now;
}

/* ---- the beginning ---- */

static void find_all(void) {
    FIND(open), FIND(read), FIND(write), FIND(rename), FIND(close), FIND(flock), FIND(ftruncate), FIND(stat);
    FIND(fstat), FIND(mkdir), FIND(rmdir), FIND(remove), FIND(opendir), FIND(readdir), FIND(fileno);
    FIND(pthread_create);
}

static uint32_t word_number(const char *word, size_t n, const char *const *names, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (strlen(names[i]) == n && strncmp(names[i], word, n) == 0) return i;
    abort();
}

#define FAULT_TEXT(name) #name,
/* kind+kind:n:action:errno */
static void read_fault(const char *text) {
    static const char *const kinds[] = {FAULT_KINDS(FAULT_TEXT)}, *const actions[] = {FAULT_ACTIONS(FAULT_TEXT)};
    char *end;
    for (size_t n; *text && *text != ':'; text += n + (text[n] == '+')) {
        n = strcspn(text, "+:");
        fault.mask |= 1u << word_number(text, n, kinds, FAULT_KIND_COUNT);
    }
    if (*text != ':') abort();
    fault.at = (uint32_t)strtoul(text + 1, &end, 10);
    if (*end != ':') abort();
    fault.action = word_number(end + 1, strcspn(end + 1, ":"), actions, FAULT_ACTION_COUNT);
    text = strchr(end + 1, ':');
    fault.code = text ? atoi(text + 1) : EIO;
}

static fault_page *open_page(const char *path) {
    static fault_page own;
    const int file = path ? real.open(path, O_RDWR) : -1;
    void *page = file < 0 ? NULL : mmap(NULL, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (path && (!page || page == MAP_FAILED)) abort();
    if (file >= 0) real.close(file);
    return path ? page : &own;
}

__attribute__((constructor)) static void begin(void) {
    const char *spec = getenv("MTAN_FAULT"), *log = getenv("MTAN_FAULT_LOG");
    find_all();
    if (spec) read_fault(spec);
    if (log && (fault.log = real.open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) < 0) abort();
    fault.page = open_page(getenv("MTAN_FAULT_PAGE"));
    if (!(stdout = stream_on(STDOUT_FILENO, "w"))) abort();
    fault.on = 1;
}
