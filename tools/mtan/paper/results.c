/* See results.h. */
#include "results.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/files.h"
#include "../../data/array.h"

/* Lines of older files end before or after the interval. */
enum { COLUMNS_LEAST = 14, COLUMNS_INTERVAL = 16, COLUMNS = 18 };
static const char header[] = "table\trow\tdata\tpreset\tseed\tmetric\tvalue\tepochs\tbest_epoch\tseconds_per_epoch\t"
                             "threads\tbackend\tcommand\tdate\tlow\thigh\tcommit\tmachine\n";

/* ---- order ---- */

static int compare_numbers(double a, double b) {
    return (a > b) - (a < b);
}

static int compare_runs(const result *a, const result *b) {
    int c = compare_numbers(a->table, b->table);
    if (!c) c = strcmp(a->row, b->row);
    if (!c) c = strcmp(a->data, b->data);
    if (!c) c = strcmp(a->preset, b->preset);
    if (!c) c = compare_numbers((double)a->seed, (double)b->seed);
    return c ? c : strcmp(a->metric, b->metric);
}

/* Inserts a result in order; of two for the same number, the later stays. */
static void insert(result **list, const result *one) {
    size_t low = 0, high = arrlenu(*list);
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (compare_runs(&(*list)[middle], one) < 0) low = middle + 1;
        else high = middle;
    }
    if (low == arrlenu(*list) || compare_runs(&(*list)[low], one) != 0) {
        arrput(*list, *one);
        memmove(*list + low + 1, *list + low, (arrlenu(*list) - 1 - low) * sizeof **list);
        (*list)[low] = *one;
    } else if (strcmp((*list)[low].date, one->date) <= 0) (*list)[low] = *one;
}

const result *results_find(const result *list, int table, const char *row, const char *data, const char *preset,
                           int64_t seed, const char *metric) {
    for (size_t i = 0; i < arrlenu(list); i++) {
        const result *r = &list[i];
        if (r->table == table && r->seed == seed && strcmp(r->row, row) == 0 && strcmp(r->data, data) == 0 &&
            strcmp(r->preset, preset) == 0 && strcmp(r->metric, metric) == 0)
            return r;
    }
    return NULL;
}

/* ---- reading ---- */

static int take_text(char *to, size_t size, const char *from) {
    return *from && snprintf(to, size, "%s", from) < (int)size;
}

/* A number; "-" is NaN. */
static int take_number(double *to, const char *from, double low, double high) {
    char *end;
    if (strcmp(from, "-") == 0) return *to = NAN, 1;
    *to = strtod(from, &end);
    return end != from && !*end && (isnan(*to) || (*to >= low && *to <= high));
}

static int take_whole(int32_t *to, const char *from) {
    double x;
    if (!take_number(&x, from, 0, 2e9)) return 0;
    *to = isnan(x) ? 0 : (int32_t)x;
    return 1;
}

static int read_columns(result *r, char *const column[COLUMNS]) {
    double table, seed;
    memset(r, 0, sizeof *r);
    if (!take_number(&table, column[0], 1, 99) || !take_number(&seed, column[4], 0, 4294967295.0) || isnan(table) ||
        isnan(seed))
        return 0;
    r->table = (int)table, r->seed = (int64_t)seed;
    return take_text(r->row, sizeof r->row, column[1]) && take_text(r->data, sizeof r->data, column[2]) &&
           take_text(r->preset, sizeof r->preset, column[3]) && take_text(r->metric, sizeof r->metric, column[5]) &&
           take_number(&r->value, column[6], -1e300, 1e300) && take_whole(&r->epochs, column[7]) &&
           take_whole(&r->best_epoch, column[8]) && take_number(&r->seconds, column[9], 0, 1e12) &&
           take_whole(&r->threads, column[10]) && take_text(r->backend, sizeof r->backend, column[11]) &&
           take_text(r->command, sizeof r->command, column[12]) && take_text(r->date, sizeof r->date, column[13]) &&
           take_number(&r->low, column[14], -1e300, 1e300) && take_number(&r->high, column[15], -1e300, 1e300) &&
           take_text(r->commit, sizeof r->commit, column[16]) && take_text(r->machine, sizeof r->machine, column[17]);
}

/* Splits the line into columns. */
static int read_line(result *r, char *line) {
    char none[] = "-", *column[COLUMNS], *at = line;
    int n = 0;
    for (; at && n < COLUMNS; n++) {
        column[n] = at;
        at = strchr(at, '\t');
        if (at) *at++ = 0;
    }
    if (at || (n != COLUMNS && n != COLUMNS_INTERVAL && n != COLUMNS_LEAST)) return 0;
    while (n < COLUMNS) column[n++] = none;
    return read_columns(r, column);
}

static int is_mark(const char *line) {
    return strncmp(line, "<<<<<<<", 7) == 0 || strncmp(line, "=======", 7) == 0 || strncmp(line, ">>>>>>>", 7) == 0 ||
           strncmp(line, "|||||||", 7) == 0;
}

static int is_header(const char *line) {
    return strncmp(line, "table\t", 6) == 0;
}

int results_read(result **list, const char *path, char *error) {
    size_t bytes = 0, number = 1;
    char *text, *line, *end;
    result one;
    int good = 1;
    const int there = file_exists(path, error);
    *list = NULL;
    if (there <= 0) return there == 0;
    if (!(text = file_read(path, &bytes, error))) return 0;
    for (line = text; good && *line; line = end, number++) {
        const size_t length = strcspn(line, "\r\n");
        end = line + length;
        end += *end == '\r';
        end += *end == '\n';
        line[length] = 0;
        if (!length || is_mark(line) || is_header(line)) continue;
        if (read_line(&one, line)) insert(list, &one);
        else good = 0, snprintf(error, 512, "%.400s:%zu: not a line of results", path, number);
    }
    free(text);
    if (!good) arrfree(*list);
    return good;
}

/* ---- writing ---- */

static void add_text(char **out, const char *text) {
    const size_t n = strlen(text);
    if (n) memcpy(arraddnptr(*out, n), text, n);
}

/* Replaces characters that would end the column. */
static void add_column(char **out, const char *text, char end) {
    for (; *text; text++) arrput(*out, *text == '\t' || *text == '\n' || *text == '\r' ? ' ' : *text);
    arrput(*out, end);
}

static void add_number(char **out, double x, const char *format, const char *nothing) {
    char text[40];
    snprintf(text, sizeof text, format, x);
    add_column(out, isnan(x) ? nothing : text, '\t');
}

/* 0 is written as "not known". */
static void add_count(char **out, int32_t n) {
    add_number(out, n ? (double)n : (double)NAN, "%.0f", "-");
}

static void add_line(char **out, const result *r) {
    add_count(out, r->table);
    add_column(out, r->row, '\t'), add_column(out, r->data, '\t'), add_column(out, r->preset, '\t');
    add_number(out, (double)r->seed, "%.0f", "-");
    add_column(out, r->metric, '\t');
    add_number(out, r->value, "%.9g", "nan");
    add_count(out, r->epochs), add_count(out, r->best_epoch);
    add_number(out, r->seconds, "%.4g", "-");
    add_count(out, r->threads);
    add_column(out, r->backend, '\t'), add_column(out, r->command, '\t'), add_column(out, r->date, '\t');
    add_number(out, r->low, "%.6g", "-"), add_number(out, r->high, "%.6g", "-");
    add_column(out, r->commit, '\t'), add_column(out, r->machine, '\n');
}

/* A lock keeps other processes from changing the file between reading and replacing it. */
int results_add(const char *path, const result *some, size_t n, char *error) {
    const char *slash = strrchr(path, '/');
    char folder[4096], *text = NULL;
    result *list;
    folder_hold lock;
    int good;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash + 1 - path) : 1, slash ? path : ".");
    if (!folder_lock(&lock, folder, 1) && errno != EACCES) /* a folder that may be written but not read cannot be
                                                            * locked */
        return snprintf(error, 512, "%.400s: %s", folder, strerror(errno)), 0;
    if (!results_read(&list, path, error)) return folder_unlock(&lock), 0;
    for (size_t i = 0; i < n; i++) insert(&list, &some[i]);
    add_text(&text, header);
    for (size_t i = 0; i < arrlenu(list); i++) add_line(&text, &list[i]);
    good = file_write(path, text, arrlenu(text), error);
    folder_unlock(&lock);
    arrfree(text), arrfree(list);
    return good;
}
