/* See command_line.h. Not for Windows, like the suites of the command. */
#define _POSIX_C_SOURCE 200809L
#define _XOPEN_SOURCE 700
#include "command_line.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "small.h"
#include "../../tools/mtan/model/bundle.h"
#include "../../tools/mtan/command/commands.h"
#include "../../tools/mtan/options/options.h"
#include "../../tools/mtan/base/files.h"
#include "../../tools/mtan/torch/tensor_set.h"
#include "../../tools/data/generators.h"

enum { WORDS = 64 };

static char folder[64], terminal[64]; /* terminal: receives the output; empty: the output goes to files */

const char *command_path(const char *name) {
    static char paths[8][160];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* Two classes, at two levels of the values. */
static void write_data(void) {
    FILE *events = fopen(command_path("events.csv"), "w"), *labels = fopen(command_path("labels.csv"), "w");
    FILE *times = fopen(command_path("times.csv"), "w");
    mtan_mt19937 rng;
    if (!events || !labels || !times) perror("mtan: build"), exit(2);
    mtan_mt_seed(&rng, 5);
    fputs("record,time,channel,value\n", events);
    fputs("record,label\n", labels);
    fputs("record,time,label\n", times);
    for (int r = 0; r < COMMAND_RECORDS; r++) {
        const int n = 4 + (int)numpy_interval(&rng, 8), up = r % 2;
        for (int k = 0; k < n; k++) {
            const double t = 10 * numpy_uniform(&rng), noise = numpy_uniform(&rng);
            fprintf(events, "r%d,%.4f,%s,%.4f\n", r, t, k % 3 ? "pulse" : "heat", (up ? 6 : 3) + 2 * noise);
            fprintf(times, "r%d,%.4f,%s\n", r, k % 4 ? t : t + 0.5, up ? "up" : "down");
        }
        fprintf(labels, "r%d,%s\n", r, up ? "up" : "down");
    }
    fclose(events), fclose(labels), fclose(times);
}

void command_open(void *unused) {
    (void)unused;
    strcpy(folder, "build/command-XXXXXX");
    if (!mkdtemp(folder)) perror("mtan: build"), exit(2);
    write_data();
}

void command_close(void *unused) {
    char command_line[96];
    (void)unused;
    snprintf(command_line, sizeof command_line, "rm -rf %s", folder);
    if (system(command_line) != 0) perror("mtan: build"), exit(2);
}

/* For files written when a process ends, such as a profiler's counts. */
static void lift_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
}

static void limit_files(size_t bytes) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(99);
    limit.rlim_cur = bytes;
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0 || atexit(lift_limit) != 0) _exit(99);
}

pid_t command_start(const char *line, size_t file_limit) {
    static char text[1024];
    char *argv[WORDS] = {(char *)(uintptr_t) "mtan"}, *at;
    int argc = 1;
    options o;
    pid_t child;
    size_t n = 0;
    for (; *line && n + sizeof folder < sizeof text; line++)
        if (*line == '@') n += (size_t)snprintf(text + n, sizeof text - n, "%s", folder);
        else text[n++] = *line;
    text[n] = 0;
    for (at = strtok(text, " "); at && argc < WORDS; at = strtok(NULL, " ")) argv[argc++] = at;
    fflush(NULL);
    if ((child = fork()) != 0) return child;
    if (!freopen(terminal[0] ? terminal : command_path("out.txt"), "w", stdout) ||
        !freopen(terminal[0] ? terminal : command_path("err.txt"), "w", stderr))
        _exit(99);
    if (file_limit) limit_files(file_limit);
    if (!options_parse(&o, argc, argv)) exit(BAD_USE);
    messages_quiet(option_given(&o, "quiet"));
    exit(command_call(&o));
}

int command_finish(pid_t child) {
    int status = 0;
    pid_t ended;
    do ended = waitpid(child, &status, 0);
    while (ended < 0 && errno == EINTR);
    if (ended < 0) return -1; /* it was waited for already */
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int command_run(const char *line) {
    return command_finish(command_start(line, 0));
}

static int has_ended(pid_t child) {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

/* Copies a terminal's output until no process writes to it any more. */
static void watch(int master, pid_t child, FILE *shown) {
    char piece[512];
    for (int ended = 0;;) {
        struct pollfd ready = {master, POLLIN, 0};
        const ssize_t n = poll(&ready, 1, 10) > 0 && (ready.revents & POLLIN) ? read(master, piece, sizeof piece) : 0;
        if (n > 0) fwrite(piece, 1, (size_t)n, shown);
        else if (ended) break;
        else ended = has_ended(child);
    }
}

static int columns_said;

void command_terminal_columns(int columns) {
    columns_said = columns;
}

static void say_columns(int descriptor) {
    struct winsize size = {0, 0, 0, 0};
    size.ws_col = (unsigned short)columns_said;
    if (ioctl(descriptor, TIOCSWINSZ, &size) != 0) perror("mtan: the size of a terminal"), exit(2);
}

int command_on_terminal(const char *line) {
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    const char *name = master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0 ? ptsname(master) : NULL;
    const int slave = name ? open(name, O_RDWR | O_NOCTTY) : -1; /* without an open slave, reading from the master
                                                                  * fails */
    FILE *shown = fopen(command_path("terminal.txt"), "w");
    if (!shown) perror("mtan: build"), exit(2);
    if (slave < 0) return fclose(shown), close(master), -1;
    say_columns(slave);
    snprintf(terminal, sizeof terminal, "%s", name);
    const pid_t child = command_start(line, 0);
    terminal[0] = 0;
    watch(master, child, shown);
    close(slave), close(master), fclose(shown);
    return command_finish(child);
}

int command_refused(const char *line, const char *words) {
    const int status = command_run(line);
    if (status != BAD_USE) printf("  BAD exit status %d: %s\n", status, line);
    if (command_bytes("out.txt")) printf("  BAD it prints: %s\n", line);
    return command_says("err.txt", words) && status == BAD_USE && command_bytes("out.txt") == 0;
}

int command_wait(const char *name, int rows) {
    const struct timespec moment = {0, 2000000};
    for (int i = 0; i < 5000; i++) {
        char *text = access(command_path(name), R_OK) == 0 ? command_text(name) : NULL;
        int n = 0;
        for (const char *at = text; at && (at = strchr(at, '\n')) != NULL; at++) n++;
        free(text);
        if (n > rows) return 1;
        nanosleep(&moment, NULL);
    }
    return 0;
}

char *command_text(const char *name) {
    char error[512];
    size_t bytes;
    return file_read(command_path(name), &bytes, error);
}

int command_says(const char *name, const char *words) {
    char *text = command_text(name);
    const int found = text && strstr(text, words) != NULL;
    if (!found) printf("  BAD %s says:\n%s  expected: %s\n", name, text ? text : "(nothing)", words);
    free(text);
    return found;
}

int command_same_files(const char *a, const char *b) {
    char error[512];
    size_t n = 0, m = 0, i = 0;
    char *x = file_read(command_path(a), &n, error), *y = file_read(command_path(b), &m, error);
    const int same = x && y && n == m && memcmp(x, y, n) == 0;
    while (x && y && i < n && i < m && x[i] == y[i]) i++;
    if (!same) printf("  BAD %s: %zu bytes, %s: %zu bytes, the same up to byte %zu\n", a, n, b, m, i);
    if (!same && x && y) printf("  %.40s\n  %.40s\n", x + (i < 20 ? 0 : i - 20), y + (i < 20 ? 0 : i - 20));
    free(x), free(y);
    return same;
}

int command_same_tensors(const char *a, const char *b) {
    bundle x, y;
    char error[512];
    int same;
    if (!bundle_read(&x, command_path(a), error)) return printf("  BAD %s\n", error), 0;
    if (!bundle_read(&y, command_path(b), error)) return printf("  BAD %s\n", error), bundle_free(&x), 0;
    same = x.file.tensors == y.file.tensors && x.file.data_bytes == y.file.data_bytes &&
           memcmp(x.file.data, y.file.data, x.file.data_bytes) == 0;
    bundle_free(&x), bundle_free(&y);
    return same;
}

int command_same_columns(const char *a, const char *b, int columns) {
    char *x = command_text(a), *y = command_text(b), *p = x, *q = y;
    int same = x && y, column = 0;
    while (same && (*p || *q)) {
        if (column >= columns) {
            while (*p && *p != '\n') p++;
            while (*q && *q != '\n') q++;
        }
        same = *p == *q;
        column = *p == '\n' ? 0 : column + (*p == ',');
        if (*p) p++;
        if (*q) q++;
    }
    free(x), free(y);
    return same;
}

void command_write(const char *name, const char *text) {
    FILE *file = fopen(command_path(name), "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0) perror("mtan: build"), exit(2);
}

void command_append(const char *name, const char *line) {
    FILE *file = fopen(command_path(name), "a");
    if (!file || fputs(line, file) < 0 || fclose(file) != 0) perror("mtan: build"), exit(2);
}

void command_activity(const char *name) {
    static const char *const tags[] = {"010-000-024-033", "010-000-030-096", "020-000-033-111", "020-000-032-221"};
    char path[256], line[160];
    if (mkdir(command_path(name), 0777) != 0) perror("mtan: build"), exit(2);
    snprintf(path, sizeof path, "%s/ConfLongDemo_JSI.txt", name);
    for (int person = 0; person < 5; person++)
        for (int i = 0; i < 176; i++) {
            snprintf(line, sizeof line, "%c01,%s,%lld,27.05.2009 14:03:25:127,%d,%d,0,%s\n", 'A' + person, tags[i % 4],
                     633790226051280329 + 1000000LL * i, i % 7, person + i % 11, i % 30 < 15 ? "walking" : "falling");
            command_append(path, line);
        }
}

size_t command_bytes(const char *name) {
    char error[512];
    size_t bytes = 0;
    free(file_read(command_path(name), &bytes, error));
    return bytes;
}

void command_model(const char *name, const mtan_model *model, const mtan_file_pair *pairs, size_t m) {
    const prep none = {0};
    char error[512];
    if (!bundle_write(command_path(name), model, NULL, &none, pairs, m, error)) fputs(error, stderr), exit(2);
}

void command_tiny(const char *name, tiny_kind kind, const char *settings, uint32_t seed, const mtan_file_pair *pairs,
                  size_t m) {
    mtan_config config;
    mtan_model model;
    tiny_config(&config, kind);
    const int good = small_apply(&config, settings);
    const size_t count = mtan_weights_count(&config);
    mtan_real *weights = tool_calloc(count, sizeof *weights);
    if (!good || mtan_weights_init(&config, weights, count, seed) != MTAN_OK ||
        mtan_model_init(&model, &config, weights, count) != MTAN_OK)
        fprintf(stderr, "mtan: no model has %s\n", settings), exit(2);
    command_model(name, &model, pairs, m);
    free(weights);
}

void command_tensors(const char *name, const mtan_file_entry *entries, size_t n, const mtan_file_pair *pairs,
                     size_t m) {
    char error[512] = "these tensors make no file";
    size_t bytes = 0;
    uint8_t *blob = NULL;
    if (mtan_file_write_size(entries, n, pairs, m, &bytes) == MTAN_OK) blob = tool_calloc(bytes, 1);
    if (!blob || mtan_file_write_memory(entries, n, pairs, m, blob, bytes, &bytes) != MTAN_OK ||
        !file_write(command_path(name), blob, bytes, error))
        fputs(error, stderr), exit(2);
    free(blob);
}

/* An entry for writing a tensor of a file again: the file's elements are little-endian, an entry's are in host order.
 * The caller frees the copy. */
static mtan_file_entry entry_again(const named_tensor *t) {
    const mtan_tensor_view *v = &t->view;
    void *elements = tool_calloc(v->bytes + 1, 1);
    mtan_file_entry e = {t->name, v->dtype, v->rank, {0}, elements};
    memcpy(e.shape, v->shape, sizeof e.shape);
    if (mtan_view_read_raw(v, v->dtype, elements, v->count) != MTAN_OK)
        fputs("a tensor cannot be read", stderr), exit(2);
    return e;
}

void command_metadata(const char *name, const char *key, const char *value) {
    mtan_file_entry *entries = NULL;
    mtan_file_pair *pairs = NULL;
    tensor_set set;
    size_t bytes = 0;
    char error[512];
    void *blob = file_read(command_path(name), &bytes, error);
    if (!blob || !tensor_set_open(&set, name, blob, bytes, error)) fputs(error, stderr), exit(2);
    for (size_t i = 0; i < arrlenu(set.tensors); i++) {
        const mtan_file_entry e = entry_again(&set.tensors[i]);
        arrput(entries, e);
    }
    for (size_t i = 0; i < arrlenu(set.metadata); i++) {
        const mtan_file_pair pair = {set.metadata[i].name, set.metadata[i].text};
        if (strcmp(pair.key, key) != 0) arrput(pairs, pair);
    }
    const mtan_file_pair changed = {key, value};
    if (value) arrput(pairs, changed);
    command_tensors(name, entries, arrlenu(entries), pairs, arrlenu(pairs));
    for (size_t i = 0; i < arrlenu(entries); i++) free((void *)(uintptr_t)entries[i].data);
    arrfree(entries), arrfree(pairs);
    tensor_set_close(&set);
    free(blob);
}

static const char *json_value(const char *at);

static const char *json_blank(const char *at) {
    while (isspace((unsigned char)*at)) at++;
    return at;
}

static const char *json_text(const char *at) {
    if (*at++ != '"') return NULL;
    for (; *at != '"'; at++)
        if (*at == 0 || (*at == '\\' && *++at == 0)) return NULL;
    return at + 1;
}

/* Skips members or elements up to the closing bracket. */
static const char *json_list(const char *at, char end) {
    at = json_blank(at + 1);
    if (*at == end) return at + 1;
    for (;; at++) {
        at = json_blank(at);
        if (end == '}' && (!(at = json_text(at)) || *(at = json_blank(at)) != ':')) return NULL;
        if (!(at = json_value(json_blank(end == '}' ? at + 1 : at)))) return NULL;
        if (*(at = json_blank(at)) != ',') return *at == end ? at + 1 : NULL;
    }
}

/* The end of a value; NULL: not a value. */
static const char *json_value(const char *at) {
    static const char *const words[] = {"null", "true", "false"};
    char *end;
    if (*at == '{') return json_list(at, '}');
    if (*at == '[') return json_list(at, ']');
    if (*at == '"') return json_text(at);
    for (int i = 0; i < 3; i++)
        if (strncmp(at, words[i], strlen(words[i])) == 0) return at + strlen(words[i]);
    if (*at != '-' && !isdigit((unsigned char)*at)) return NULL;
    strtod(at, &end);
    return end;
}

int command_is_json(const char *name) {
    char *text = command_text(name);
    const char *end = text ? json_value(json_blank(text)) : NULL;
    const int good = end && *json_blank(end) == 0;
    if (!good) printf("  BAD not JSON: %s\n", text ? text : "(nothing)");
    free(text);
    return good;
}

double command_json(const char *text, const char *object, const char *key) {
    char name[64];
    const char *at = text ? strstr(text, object) : NULL;
    snprintf(name, sizeof name, "\"%s\": ", key);
    at = at ? strstr(at, name) : NULL;
    return !at || strncmp(at + strlen(name), "null", 4) == 0 ? NAN : strtod(at + strlen(name), NULL);
}
