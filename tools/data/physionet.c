/* See physionet.h. Sections: one file of a record; tar; outcomes; where the files come from; statistics. */
#define _POSIX_C_SOURCE 200809L
#include "physionet.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "field.h"
#include "gzip.h"

#define QUANTUM 0.016 /* hours: the published code's rounding of times */
enum {
    MOST_BYTES = 1 << 20, /* of one file; the largest of set-a has 30 kB */
    MOST_TOTAL = 1 << 28, /* of one archive, unpacked; set-a has 30 MB */
    MOST_HOURS = 10000,   /* so that ticks and hours stay small */
    MOST_ID = 99999999,
    PATH_BYTES = 4096
};

static const char *const channels[PHYSIONET_CHANNELS] = {
    "Age",       "Gender",    "Height",      "ICUType",    "Weight",  "Albumin",   "ALP",      "ALT",     "AST",
    "Bilirubin", "BUN",       "Cholesterol", "Creatinine", "DiasABP", "FiO2",      "GCS",      "Glucose", "HCO3",
    "HCT",       "HR",        "K",           "Lactate",    "Mg",      "MAP",       "MechVent", "Na",      "NIDiasABP",
    "NIMAP",     "NISysABP",  "PaCO2",       "PaO2",       "pH",      "Platelets", "RespRate", "SaO2",    "SysABP",
    "Temp",      "TroponinI", "TroponinT",   "Urine",      "WBC"};

/* ---- one file ---- */

typedef struct observation {
    int32_t tick, channel, order; /* time in quanta; position in the file, which keeps the sort stable */
    float value;
} observation;

typedef struct numbered {
    int32_t id, value;
} numbered;

static int by_id(const void *left, const void *right) {
    const numbered *a = left, *b = right;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* Sorts the list; returns the first id that occurs twice, or -1. */
static int32_t sort_by_id(numbered *list, size_t n) {
    if (n) qsort(list, n, sizeof *list, by_id);
    for (size_t i = 1; i < n; i++)
        if (list[i].id == list[i - 1].id) return list[i].id;
    return -1;
}

typedef struct reader {
    dataset *data;
    numbered *outcomes; /* stb_ds array: ids and classes, ascending */
    char *text;         /* stb_ds array: the file being read, with room for a final zero */
    size_t length[PHYSIONET_CHANNELS];

    observation *seen; /* stb_ds array: of the file being read */
    int32_t tick;      /* of the row being read: all consecutive lines of one time */
    float mean[PHYSIONET_CHANNELS], count[PHYSIONET_CHANNELS]; /* of that row */
} reader;

/* The same parameters come in the same order at every time, so the search starts after the last one found. */
static int32_t find_channel(const reader *r, const char *name, size_t length, int32_t last) {
    for (int32_t i = 1; i <= PHYSIONET_CHANNELS; i++) {
        const int32_t c = (last + i) % PHYSIONET_CHANNELS;
        if (r->length[c] == length && memcmp(channels[c], name, length) == 0) return c;
    }
    return -1;
}

/* Parses decimal digits at *at; -1 if there are none or the number exceeds `most`. */
static int32_t parse_digits(const char **at, int32_t most) {
    const char *start = *at;
    int32_t x = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++)
        if ((x = 10 * x + (**at - '0')) > most) return -1;
    return *at == start ? -1 : x;
}

static void end_row(reader *r) {
    for (int32_t c = 0; c < PHYSIONET_CHANNELS; c++) {
        if (r->count[c] > 0) {
            const observation o = {r->tick, c, (int32_t)arrlen(r->seen), r->mean[c]};
            arrput(r->seen, o);
        }
        r->count[c] = 0;
    }
}

/* The published code's running mean, every step rounded to float32. */
static void observe(reader *r, int32_t tick, int32_t channel, float value) {
    float *mean = &r->mean[channel], *count = &r->count[channel];
    if (tick != r->tick) end_row(r), r->tick = tick;
    if (*count > 0) {
        const float sum = *mean * *count;
        *mean = (sum + value) / (*count + 1);
    } else *mean = value;
    *count += 1;
}

/* "HH:MM,Parameter,Value"; an unknown parameter is skipped before its value is read. *last: the channel found. */
static int parse_line(reader *r, const char *text, const char *file, int line, int32_t *last) {
    const char *at = text, *name, *comma;
    const int32_t hours = parse_digits(&at, MOST_HOURS);
    const int32_t minutes = *at == ':' ? (at++, parse_digits(&at, 59)) : -1;
    int32_t channel;
    double value;
    if (hours < 0 || minutes < 0 || *at != ',')
        return dataset_fail(r->data, "%s:%d: no time of the form HH:MM", file, line);
    name = at + 1;
    if (!(comma = strchr(name, ','))) return dataset_fail(r->data, "%s:%d: not three fields", file, line);
    if ((channel = find_channel(r, name, (size_t)(comma - name), *last)) < 0) return 1;
    if (!field_number(comma + 1, &value) || fabs(value) > 1e30)
        return dataset_fail(r->data, "%s:%d: the value is not a number", file, line);
    observe(r, (int32_t)rint((hours + minutes / 60.0) / QUANTUM), *last = channel, (float)value);
    return 1;
}

static int compare_observations(const void *left, const void *right) {
    const observation *a = left, *b = right;
    if (a->tick != b->tick) return a->tick < b->tick ? -1 : 1;
    if (a->channel != b->channel) return a->channel < b->channel ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static int in_order(const observation *o, size_t n) {
    for (size_t i = 1; i < n; i++)
        if (compare_observations(&o[i - 1], &o[i]) > 0) return 0;
    return 1;
}

/* Adds the observations of a file as a record, with its label. */
static void add_record(reader *r, int32_t id) {
    dataset *d = r->data;
    const size_t n = arrlenu(r->seen);
    const numbered key = {id, 0}, *outcome = NULL;
    char name[16];
    if (arrlenu(r->outcomes)) outcome = bsearch(&key, r->outcomes, arrlenu(r->outcomes), sizeof key, by_id);
    snprintf(name, sizeof name, "%d", (int)id);
    dataset_add_record(d, name, -1);
    if (outcome) dataset_add_label(d, outcome->value);
    if (!in_order(r->seen, n)) qsort(r->seen, n, sizeof *r->seen, compare_observations);
    for (size_t i = 0; i < n; i++) {
        const observation *o = &r->seen[i];
        dataset_add_event(d, (mtan_real)(float)(o->tick * QUANTUM), o->channel, (mtan_real)o->value);
        arrlast(d->records).n_times += i == 0 || o->tick != o[-1].tick;
    }
}

/* Removes the carriage return of a Windows line end. */
static void cut_return(char *line, char *stop) {
    if (stop > line && stop[-1] == '\r') stop[-1] = 0;
}

/* r->text, `bytes` long, is the file `file`. */
static int parse_file(reader *r, size_t bytes, const char *file, int32_t id) {
    char *line = r->text, *end = r->text + bytes, *next;
    int32_t last = -1;
    r->tick = 0;
    arrsetlen(r->seen, 0);
    *end = 0;
    if (strlen(r->text) != bytes) return dataset_fail(r->data, "%s: a zero byte in the text", file);
    for (int number = 1; line < end; line = next, number++) {
        char *stop = memchr(line, '\n', (size_t)(end - line));
        next = stop ? stop + 1 : end;
        if (stop) *stop = 0;
        cut_return(line, stop ? stop : end);
        if (number == 1 && strncmp(line, "Time,Parameter,Value", 20) != 0)
            return dataset_fail(r->data, "%s:1: the first line is not Time,Parameter,Value", file);
        if (number == 1 || line[strspn(line, " ")] == 0) continue;
        if (!parse_line(r, line, file, number, &last)) return 0;
    }
    end_row(r);
    add_record(r, id);
    return 1;
}

/* The record's id from a path that ends in <digits>.txt; -1 for any other path. */
static int32_t id_of(const char *path) {
    const char *slash = strrchr(path, '/'), *at = slash ? slash + 1 : path;
    const int32_t id = parse_digits(&at, MOST_ID);
    return strcmp(at, ".txt") == 0 ? id : -1;
}

/* ---- tar: blocks of 512 bytes, a header before every file (POSIX ustar) ---- */

enum { BLOCK = 512 };

/* An octal field of a header; -1 if it is invalid. */
static int64_t octal(const unsigned char *field, size_t length) {
    int64_t x = 0;
    size_t i = 0;
    while (i < length && field[i] == ' ') i++;
    for (; i < length && field[i] >= '0' && field[i] <= '7'; i++)
        if ((x = 8 * x + (field[i] - '0')) > INT64_MAX / 16) return -1;
    return i == length || field[i] == 0 || field[i] == ' ' ? x : -1;
}

/* The sum of the header's bytes, its own field counted as spaces. */
static int checksum_holds(const unsigned char header[BLOCK]) {
    long sum = 0;
    for (int i = 0; i < BLOCK; i++) sum += i >= 148 && i < 156 ? ' ' : header[i];
    return sum == octal(header + 148, 8);
}

static int tar_bytes(reader *r, text_stream *archive, void *out, size_t bytes) {
    if (text_bytes(archive, out, bytes) == bytes) return 1;
    if (archive->error[0]) return dataset_fail(r->data, "%s", archive->error);
    return dataset_fail(r->data, "%s: the archive ends early", archive->name);
}

/* Reads the file after a header: parses it if it is a record, else skips it. */
static int tar_member(reader *r, text_stream *archive, const unsigned char header[BLOCK], size_t size) {
    char name[101] = {0}, file[256];
    const char kind = (char)header[156];
    unsigned char passed[BLOCK];
    int32_t id;
    memcpy(name, header, 100);
    id = kind == '0' || kind == 0 ? id_of(name) : -1;
    snprintf(file, sizeof file, "%.150s(%s)", archive->name, name);
    if (id >= 0 && size > MOST_BYTES) return dataset_fail(r->data, "%s: larger than %d bytes", file, (int)MOST_BYTES);
    if (id >= 0) {
        arrsetlen(r->text, size + 1);
        if (!tar_bytes(r, archive, r->text, size) || !parse_file(r, size, file, id)) return 0;
        size = (BLOCK - size % BLOCK) % BLOCK;
    } else size = (size + BLOCK - 1) / BLOCK * BLOCK;
    for (; size > 0; size -= size < BLOCK ? size : BLOCK)
        if (!tar_bytes(r, archive, passed, size < BLOCK ? size : BLOCK)) return 0;
    return 1;
}

/* After the last file come blocks of zeros. Reading to the end lets gzip check its checksum. */
static int tar_end(reader *r, text_stream *archive) {
    unsigned char rest[BLOCK];
    while (text_bytes(archive, rest, sizeof rest) > 0) {
    }
    return archive->error[0] ? dataset_fail(r->data, "%s", archive->error) : 1;
}

static int read_members(reader *r, text_stream *archive) {
    unsigned char header[BLOCK];
    for (;;) {
        int64_t size;
        if (!tar_bytes(r, archive, header, BLOCK)) return 0;
        if (header[0] == 0) return tar_end(r, archive);
        if (!checksum_holds(header))
            return dataset_fail(r->data, "%s: not a tar archive, or damaged: wrong checksum", archive->name);
        if ((size = octal(header + 124, 12)) < 0)
            return dataset_fail(r->data, "%s: a file of unreadable size", archive->name);
        if (size > MOST_TOTAL)
            return dataset_fail(r->data, "%s: unpacks to more than %d bytes", archive->name, (int)MOST_TOTAL);
        if (!tar_member(r, archive, header, (size_t)size)) return 0;
    }
}

static int read_archive(reader *r, const char *path) {
    text_stream archive;
    const int good =
        text_open(&archive, path, MOST_TOTAL) ? read_members(r, &archive) : dataset_fail(r->data, "%s", archive.error);
    text_close(&archive);
    return good;
}

/* ---- outcomes ---- */

/* "RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death", all numbers. */
static int parse_outcome(reader *r, const char *line) {
    const char *at = line, *id_end = line;
    const int32_t id = parse_digits(&id_end, MOST_ID);
    double value = -1;
    for (int i = 0; i < 6; i++) {
        char *end;
        value = strtod(at, &end);
        if (end == at || *end != (i < 5 ? ',' : 0)) return 0;
        at = end + 1;
    }
    const numbered outcome = {id, value > 0};
    if (id < 0 || *id_end != ',' || (value < 0 || value > 0) == (value < 1 || value > 1)) return 0;
    arrput(r->outcomes, outcome);
    return 1;
}

static int read_outcomes(reader *r, const char *path) {
    static const char header[] = "RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death";
    text_stream s;
    int good = text_open(&s, path, MOST_TOTAL);
    while (good && text_line(&s)) {
        if (s.number == 1 && strcmp(s.line, header) != 0)
            good = dataset_fail(r->data, "%s:1: the first line is not %s", path, header);
        if (s.number > 1 && s.line[strspn(s.line, " ")] && !parse_outcome(r, s.line))
            good = dataset_fail(r->data, "%s:%zu: not six numbers of which the last is 0 or 1", path, s.number);
    }
    if (s.error[0]) good = dataset_fail(r->data, "%s", s.error);
    text_close(&s);
    return good;
}

static int join(reader *r, char out[PATH_BYTES], const char *folder, const char *name) {
    if (snprintf(out, PATH_BYTES, "%s/%s", folder, name) < PATH_BYTES) return 1;
    return dataset_fail(r->data, "%.100s...: the path is too long", folder);
}

/* 1: it exists, 0: it does not, -1: failed. */
static int is_there(reader *r, const char *path, struct stat *status) {
    if (stat(path, status) == 0) return 1;
    if (errno == ENOENT || errno == ENOTDIR) return 0;
    return dataset_fail(r->data, "%s: %s", path, strerror(errno)), -1;
}

static int read_outcomes_in(reader *r, const char *folder) {
    static const char *const names[] = {"Outcomes-a.txt", "Outcomes-b.txt"};
    struct stat status;
    char path[PATH_BYTES];
    int32_t twice;
    for (int i = 0; i < 2; i++) {
        if (!join(r, path, folder, names[i])) return 0;
        const int there = is_there(r, path, &status);
        if (there < 0 || (there && !read_outcomes(r, path))) return 0;
    }
    twice = sort_by_id(r->outcomes, arrlenu(r->outcomes));
    return twice < 0 || dataset_fail(r->data, "%s: record %d has two outcomes", folder, (int)twice);
}

/* ---- where the files come from ---- */

static int read_text(reader *r, const char *path, int32_t id) {
    text_stream s;
    size_t bytes = 0;
    arrsetlen(r->text, MOST_BYTES + 1);
    if (text_open(&s, path, MOST_BYTES)) bytes = text_bytes(&s, r->text, MOST_BYTES + 1);
    const int good = s.error[0] ? dataset_fail(r->data, "%s", s.error) : parse_file(r, bytes, path, id);
    text_close(&s);
    return good;
}

static int read_folder(reader *r, const char *path) {
    DIR *folder = opendir(path);
    struct dirent *entry;
    char file[PATH_BYTES];
    int good = 1;
    if (!folder) return dataset_fail(r->data, "%s: cannot be opened", path);
    while (good && (errno = 0, entry = readdir(folder)) != NULL) {
        const int32_t id = id_of(entry->d_name);
        if (id >= 0) good = join(r, file, path, entry->d_name) && read_text(r, file, id);
    }
    if (good && errno) good = dataset_fail(r->data, "%s: cannot be listed: %s", path, strerror(errno));
    closedir(folder);
    return good;
}

/* Sorts the records from `first` on by id. Their events stay in place. */
static int sort_records(reader *r, const char *path, size_t first) {
    dataset_record *records = r->data->records, *old;
    const size_t n = arrlenu(records) - first;
    numbered *order = tool_calloc(n, sizeof *order);
    int32_t twice;
    for (size_t i = 0; i < n; i++) {
        order[i].id = (int32_t)strtol(dataset_name(r->data, first + i), NULL, 10);
        order[i].value = (int32_t)i;
    }
    twice = sort_by_id(order, n);
    old = memcpy(tool_calloc(n, sizeof *old), records + first, n * sizeof *old);
    for (size_t i = 0; i < n; i++) records[first + i] = old[order[i].value];
    free(order), free(old);
    return twice < 0 || dataset_fail(r->data, "%s: record %d is there twice", path, (int)twice);
}

/* Reads one set, from a file or a folder of texts. */
static int read_set(reader *r, const char *path, int is_folder) {
    const size_t first = arrlenu(r->data->records);
    if (!(is_folder ? read_folder(r, path) : read_archive(r, path))) return 0;
    if (arrlenu(r->data->records) == first)
        return dataset_fail(r->data, "%s: no record: no file named <digits>.txt", path);
    return sort_records(r, path, first);
}

/* Finds a set in the folder: 0 not found, 1 an archive, 2 a folder, -1 failed. */
static int find_set(reader *r, char path[PATH_BYTES], const char *folder, char set) {
    static const char *const endings[] = {".tar.gz", ".tar", ""};
    struct stat status;
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "set-%c%s", set, endings[i]);
        if (!join(r, path, folder, name)) return -1;
        const int there = is_there(r, path, &status);
        if (there) return there < 0 ? -1 : S_ISDIR(status.st_mode) ? 2 : 1;
    }
    return 0;
}

/* all: every set must exist. */
static int read_sets(reader *r, const char *folder, const char *sets, int all) {
    char path[PATH_BYTES], above[PATH_BYTES];
    int found = 0;
    if (!read_outcomes_in(r, folder)) return 0;
    for (const char *set = sets; *set; set++) {
        const int kind = find_set(r, path, folder, *set);
        if (kind < 0 || (kind && !read_set(r, path, kind == 2))) return 0;
        if (!kind && found && all)
            return dataset_fail(r->data, "%s: set-a is there, but no set-%c.tar.gz, .tar or folder", folder, *set);
        if (!kind && all) break;
        found += kind > 0;
    }
    if (found) return 1;
    return join(r, above, folder, "..") && read_outcomes_in(r, above) && read_set(r, folder, 1);
}

static int read_path(reader *r, const char *path, const char *sets, int all) {
    struct stat status;
    char folder[PATH_BYTES];
    const char *slash = strrchr(path, '/');
    if (stat(path, &status) != 0) return dataset_fail(r->data, "%s: no such file or folder", path);
    if (S_ISDIR(status.st_mode)) return read_sets(r, path, sets, all);
    if (snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".") >= PATH_BYTES)
        return dataset_fail(r->data, "%.100s...: the path is too long", path);
    return read_outcomes_in(r, folder) && read_set(r, path, 0);
}

static void describe(reader *r) {
    dataset *d = r->data;
    size_t n = arrlenu(d->records), labelled = arrlenu(d->labels);
    for (int32_t c = 0; c < PHYSIONET_CHANNELS; c++) arrput(d->channels, tool_text(channels[c]));
    if (labelled) arrput(d->classes, tool_text("survived")), arrput(d->classes, tool_text("died"));
    if (labelled < n) dataset_note(d, "%zu of %zu records have no outcome", n - labelled, n);
    snprintf(d->unit, sizeof d->unit, "hours");
}

int physionet_load(dataset *d, const char *path, int which) {
    const char sets[] = {(char)(which == 'b' ? 'b' : 'a'), (char)(which == '2' || which == '1' ? 'b' : 0), 0};
    reader *r = tool_calloc(1, sizeof *r);
    int good;
    memset(d, 0, sizeof *d);
    r->data = d;
    for (int32_t c = 0; c < PHYSIONET_CHANNELS; c++) r->length[c] = strlen(channels[c]);
    if ((good = read_path(r, path, sets, which != '1')) != 0) describe(r);
    else dataset_free(d);
    arrfree(r->outcomes), arrfree(r->seen), arrfree(r->text);
    free(r);
    return good;
}

/* ---- statistics ---- */

physionet_summary physionet_summarise(const dataset *d) {
    physionet_summary s;
    double times2 = 0, cells2 = 0, n = arrlenu(d->records) ? (double)arrlenu(d->records) : 1;
    memset(&s, 0, sizeof s);
    s.records = arrlenu(d->records);
    for (size_t i = 0; i < s.records; i++) {
        const dataset_record *r = &d->records[i];
        int seen[PHYSIONET_CHANNELS] = {0}, channels_seen = 0;
        const mtan_event *e = dataset_events(d, r);
        for (int32_t k = 0; k < r->n_events; k++)
            if (e[k].channel < PHYSIONET_CHANNELS) channels_seen += !seen[e[k].channel]++;
        s.times += r->n_times / n, times2 += (double)r->n_times * r->n_times / n;
        s.cells += r->n_events / n, cells2 += (double)r->n_events * r->n_events / n;
        s.never += (PHYSIONET_CHANNELS - channels_seen) / n;
        s.only_start += r->n_times == 1;
        if (r->n_times > s.most_times) s.most_times = r->n_times;
        if (r->n_events > s.most_cells) s.most_cells = r->n_events;
    }
    s.times_spread = sqrt(fmax(0, times2 - s.times * s.times));
    s.cells_spread = sqrt(fmax(0, cells2 - s.cells * s.cells));
    return s;
}
