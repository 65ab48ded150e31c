/* See physionet.h. Sections: parsing of one file; tar; where the files come from; what is done to the records. */
#define _POSIX_C_SOURCE 200809L
#include "physionet.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#ifdef MTAN_ZLIB
#include <zlib.h>
#endif

#define QUANTUM 0.016 /* hours: the published code's rounding of times */
enum {
    MOST_BYTES = 1 << 20, /* of one file; the largest of set-a has 30 kB */
    MOST_TOTAL = 1 << 28, /* of one archive, unpacked; set-a has 30 MB */
    MOST_HOURS = 10000    /* so that ticks and hours stay small */
};

static const char *const channels[PHYSIONET_CHANNELS] = {
    "Age",       "Gender",    "Height",      "ICUType",    "Weight",  "Albumin",   "ALP",      "ALT",     "AST",
    "Bilirubin", "BUN",       "Cholesterol", "Creatinine", "DiasABP", "FiO2",      "GCS",      "Glucose", "HCO3",
    "HCT",       "HR",        "K",           "Lactate",    "Mg",      "MAP",       "MechVent", "Na",      "NIDiasABP",
    "NIMAP",     "NISysABP",  "PaCO2",       "PaO2",       "pH",      "Platelets", "RespRate", "SaO2",    "SysABP",
    "Temp",      "TroponinI", "TroponinT",   "Urine",      "WBC"};

const char *physionet_channel(int32_t channel) {
    return channel >= 0 && channel < PHYSIONET_CHANNELS ? channels[channel] : NULL;
}

/* ---- reading one file ---- */

typedef struct observation {
    int32_t tick, channel, line; /* time in quanta; where it stood, so that sums run in the file's order */
    double value;
} observation;

typedef struct reader {
    physionet *data;
    size_t records, events, seen; /* how many the arrays can hold */
    observation *observation;     /* of the file being read */
    size_t *first;                /* (records) first event of each: the array moves while it grows */
    size_t n_events, n_seen;
    char *text; /* MOST_BYTES + 1: the file being read */
} reader;

static int fail(reader *r, const char *format, ...) {
    va_list arguments;
    memcpy(r->data->error, "mtan: ", 7);
    va_start(arguments, format);
    vsnprintf(r->data->error + 6, sizeof r->data->error - 6, format, arguments);
    va_end(arguments);
    return 0;
}

/* Room for n elements in an array that may move; growth by half keeps the copies linear. */
static int reserve(reader *r, void *array, size_t *capacity, size_t n, size_t size) {
    void *old, *grown;
    if (n <= *capacity) return 1;
    n += n / 2 + 64;
    memcpy(&old, array, sizeof old);
    if (n > SIZE_MAX / size || !(grown = realloc(old, n * size))) return fail(r, "out of memory");
    memcpy(array, &grown, sizeof grown);
    *capacity = n;
    return 1;
}

static int32_t find_channel(const char *name, size_t length) {
    for (int32_t c = 0; c < PHYSIONET_CHANNELS; c++)
        if (strlen(channels[c]) == length && memcmp(channels[c], name, length) == 0) return c;
    return -1;
}

/* Decimal digits at *at, at most `most`; -1 when there are none or the number is larger. */
static int32_t parse_digits(const char **at, int32_t most) {
    const char *start = *at;
    int32_t x = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++)
        if ((x = 10 * x + (**at - '0')) > most) return -1;
    return *at == start ? -1 : x;
}

/* "HH:MM,Parameter,Value" into the reader's list; a parameter that is not ours is skipped before its value is read. */
static int parse_line(reader *r, char *text, const char *file, int32_t line) {
    const char *at = text;
    const int32_t hours = parse_digits(&at, MOST_HOURS), colon = *at == ':',
                  minutes = colon ? (at++, parse_digits(&at, 59)) : -1;
    const char *name, *comma;
    observation o;
    char *end;
    if (hours < 0 || minutes < 0 || *at != ',') return fail(r, "%s:%d: no time of the form HH:MM", file, (int)line);
    name = at + 1;
    if (!(comma = strchr(name, ','))) return fail(r, "%s:%d: not three fields", file, (int)line);
    if ((o.channel = find_channel(name, (size_t)(comma - name))) < 0) return 1;
    o.value = strtod(comma + 1, &end);
    while (*end == ' ' || *end == '\r') end++;
    if (end == comma + 1 || *end || !(fabs(o.value) <= 1e30))
        return fail(r, "%s:%d: the value is not a number", file, (int)line);
    o.tick = (int32_t)rint((hours + minutes / 60.0) / QUANTUM);
    o.line = line;
    if (!reserve(r, &r->observation, &r->seen, r->n_seen + 1, sizeof o)) return 0;
    r->observation[r->n_seen++] = o;
    return 1;
}

static int compare_observations(const void *left, const void *right) {
    const observation *a = left, *b = right;
    if (a->tick != b->tick) return a->tick < b->tick ? -1 : 1;
    if (a->channel != b->channel) return a->channel < b->channel ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

/* The observations of a file as a record: sorted, repeats averaged. */
static int add_record(reader *r, int32_t id) {
    physionet *d = r->data;
    physionet_record record = {NULL, 0, 0, 0};
    size_t capacity = r->records;
    record.id = id;
    if (!reserve(r, &d->records, &capacity, d->n + 1, sizeof record) ||
        !reserve(r, &r->first, &r->records, d->n + 1, sizeof *r->first) ||
        !reserve(r, &d->events, &r->events, r->n_events + r->n_seen, sizeof *d->events))
        return 0;
    r->first[d->n] = r->n_events;
    if (r->n_seen) qsort(r->observation, r->n_seen, sizeof *r->observation, compare_observations);
    for (size_t i = 0, j; i < r->n_seen; i = j) {
        const observation *o = &r->observation[i];
        mtan_event *e = &d->events[r->n_events + (size_t)record.n_events++];
        double sum = 0;
        for (j = i; j < r->n_seen && r->observation[j].tick == o->tick && r->observation[j].channel == o->channel; j++)
            sum += r->observation[j].value;
        e->time = (mtan_real)(o->tick * QUANTUM);
        e->channel = o->channel;
        e->value = (mtan_real)(sum / (double)(j - i));
        record.n_times += i == 0 || o->tick != o[-1].tick;
    }
    r->n_events += (size_t)record.n_events;
    d->records[d->n++] = record;
    return 1;
}

/* r->text, `bytes` long, is the file `file`. */
static int parse_file(reader *r, size_t bytes, const char *file, int32_t id) {
    char *line = r->text, *end = r->text + bytes, *next;
    r->n_seen = 0;
    *end = 0;
    if (strlen(r->text) != bytes) return fail(r, "%s: a zero byte in the text", file);
    for (int32_t number = 1; line < end; line = next, number++) {
        char *stop = memchr(line, '\n', (size_t)(end - line));
        next = stop ? stop + 1 : end;
        if (stop) *stop = 0;
        if (number == 1 && strncmp(line, "Time,Parameter,Value", 20) != 0)
            return fail(r, "%s:1: the first line is not Time,Parameter,Value", file);
        if (number == 1 || strspn(line, " \r") == strlen(line)) continue;
        if (!parse_line(r, line, file, number)) return 0;
    }
    return add_record(r, id);
}

/* The record's id from a path that ends in <digits>.txt; -1 for any other. */
static int32_t id_of(const char *path) {
    const char *slash = strrchr(path, '/'), *at = slash ? slash + 1 : path;
    const int32_t id = parse_digits(&at, 99999999);
    return strcmp(at, ".txt") == 0 ? id : -1;
}

/* ---- tar: blocks of 512 bytes, a header before every file (POSIX ustar) ---- */

#ifdef MTAN_ZLIB
enum { BLOCK = 512 };

/* An octal field of a header; -1 when it is none. */
static long octal(const unsigned char *field, size_t length) {
    long x = 0;
    size_t i = 0;
    while (i < length && field[i] == ' ') i++;
    for (; i < length && field[i] >= '0' && field[i] <= '7'; i++)
        if ((x = 8 * x + (field[i] - '0')) > LONG_MAX / 16) return -1;
    return i == length || field[i] == 0 || field[i] == ' ' ? x : -1;
}

/* The sum of the header's bytes, its own field counted as spaces. */
static int checksum_holds(const unsigned char header[BLOCK]) {
    long sum = 0;
    for (int i = 0; i < BLOCK; i++) sum += i >= 148 && i < 156 ? ' ' : header[i];
    return sum == octal(header + 148, 8);
}

/* The whole number of bytes, or a failure that says whether the archive ended early or is damaged. */
static int inflate_bytes(reader *r, gzFile archive, const char *path, void *out, size_t bytes) {
    const int got = gzread(archive, out, (unsigned)bytes);
    int code = Z_OK;
    if (got == (int)bytes) return 1;
    if (got < 0) return fail(r, "%s: %s", path, gzerror(archive, &code));
    return fail(r, "%s: the archive ends early", path);
}

/* The file behind a header: parsed if it is a record, else passed over. */
static int tar_member(reader *r, gzFile archive, const char *path, const unsigned char header[BLOCK], size_t size) {
    char name[101] = {0}, file[256];
    const char kind = (char)header[156];
    unsigned char passed[BLOCK];
    int32_t id;
    memcpy(name, header, 100);
    id = kind == '0' || kind == 0 ? id_of(name) : -1;
    snprintf(file, sizeof file, "%.*s(%s)", 150, path, name);
    if (id >= 0 && size > MOST_BYTES) return fail(r, "%s: larger than %d bytes", file, MOST_BYTES);
    if (id >= 0) {
        if (!inflate_bytes(r, archive, path, r->text, size) || !parse_file(r, size, file, id)) return 0;
        size = (BLOCK - size % BLOCK) % BLOCK;
    } else size = (size + BLOCK - 1) / BLOCK * BLOCK;
    for (; size > 0; size -= size < BLOCK ? size : BLOCK)
        if (!inflate_bytes(r, archive, path, passed, size < BLOCK ? size : BLOCK)) return 0;
    return 1;
}

/* After the last file: blocks of zeros. Reading to the end makes zlib compare the archive's own checksum. */
static int tar_end(reader *r, gzFile archive, const char *path, size_t total) {
    unsigned char rest[BLOCK];
    int got, code = Z_OK;
    while ((got = gzread(archive, rest, sizeof rest)) > 0)
        if ((total += (size_t)got) > MOST_TOTAL) return fail(r, "%s: unpacks to more than %d bytes", path, MOST_TOTAL);
    gzerror(archive, &code);
    return got == 0 && code == Z_OK ? 1 : fail(r, "%s: damaged: %s", path, gzerror(archive, &code));
}

static int read_members(reader *r, gzFile archive, const char *path) {
    unsigned char header[BLOCK];
    for (size_t total = 0;;) {
        long size;
        if (!inflate_bytes(r, archive, path, header, BLOCK)) return 0;
        if (header[0] == 0) return tar_end(r, archive, path, total);
        if (!checksum_holds(header)) return fail(r, "%s: not a tar archive, or damaged: wrong checksum", path);
        if ((size = octal(header + 124, 12)) < 0) return fail(r, "%s: a file of unreadable size", path);
        if (size > MOST_TOTAL || (total += BLOCK + (size_t)size) > MOST_TOTAL)
            return fail(r, "%s: unpacks to more than %d bytes", path, MOST_TOTAL);
        if (!tar_member(r, archive, path, header, (size_t)size)) return 0;
    }
}

static int read_archive(reader *r, const char *path) {
    gzFile archive = gzopen(path, "rb");
    int good;
    if (!archive) return fail(r, "%s: cannot be opened", path);
    good = read_members(r, archive, path);
    gzclose(archive);
    return good;
}
#else
static int read_archive(reader *r, const char *path) {
    return fail(r, "%s: built without zlib: unpack the archive and name the folder of its .txt files", path);
}
#endif

/* ---- where the files come from ---- */

static int read_text(reader *r, const char *path, int32_t id) {
    FILE *file = fopen(path, "rb");
    size_t bytes;
    if (!file) return fail(r, "%s: cannot be opened", path);
    bytes = fread(r->text, 1, MOST_BYTES, file);
    if (ferror(file) || fgetc(file) != EOF) {
        fclose(file);
        return fail(r, "%s: cannot be read, or larger than %d bytes", path, MOST_BYTES);
    }
    fclose(file);
    return parse_file(r, bytes, path, id);
}

static int read_folder(reader *r, const char *path) {
    DIR *folder = opendir(path);
    struct dirent *entry;
    char file[4096];
    int good = 1;
    if (!folder) return fail(r, "%s: cannot be opened", path);
    while (good && (entry = readdir(folder)) != NULL) {
        const int32_t id = id_of(entry->d_name);
        if (id < 0) continue;
        if (snprintf(file, sizeof file, "%s/%s", path, entry->d_name) >= (int)sizeof file)
            good = fail(r, "%s: the path is too long", path);
        else good = read_text(r, file, id);
    }
    closedir(folder);
    return good;
}

static int read_path(reader *r, const char *path) {
    struct stat status;
    char archive[4096];
    if (stat(path, &status) != 0) return fail(r, "%s: no such file or folder", path);
    if (!S_ISDIR(status.st_mode)) return read_archive(r, path);
    if (snprintf(archive, sizeof archive, "%s/set-a.tar.gz", path) >= (int)sizeof archive)
        return fail(r, "%s: the path is too long", path);
    return stat(archive, &status) == 0 ? read_archive(r, archive) : read_folder(r, path);
}

static int compare_records(const void *left, const void *right) {
    const physionet_record *a = left, *b = right;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* Events to their records now that the array stays, records by id. */
static int finish(reader *r, const char *path) {
    physionet *d = r->data;
    mtan_event *exact = r->n_events ? realloc(d->events, r->n_events * sizeof *exact) : NULL;
    if (exact) d->events = exact;
    if (d->n == 0) return fail(r, "%s: no record: no file named <digits>.txt", path);
    for (size_t i = 0; i < d->n; i++) d->records[i].events = d->events + r->first[i];
    qsort(d->records, d->n, sizeof *d->records, compare_records);
    for (size_t i = 1; i < d->n; i++)
        if (d->records[i].id == d->records[i - 1].id)
            return fail(r, "%s: record %d is there twice", path, (int)d->records[i].id);
    return 1;
}

/* Sets up, runs one way of filling, cleans up. */
static int fill(physionet *data, reader *r, const char *path) {
    memset(data, 0, sizeof *data);
    memset(r, 0, sizeof *r);
    r->data = data;
    return (r->text = malloc(MOST_BYTES + 1)) && path ? 1 : fail(r, path ? "out of memory" : "no path given");
}

static int close_reader(reader *r, int good) {
    free(r->observation), free(r->first), free(r->text);
    if (!good) physionet_free(r->data);
    return good;
}

int physionet_read(physionet *data, const char *path) {
    reader r;
    return close_reader(&r, fill(data, &r, path) && read_path(&r, path) && finish(&r, path));
}

void physionet_free(physionet *data) {
    free(data->records), free(data->events);
    data->records = NULL, data->events = NULL, data->n = 0;
}

/* ---- what is done to the records ---- */

void physionet_normalise(physionet *data) {
    mtan_real low[PHYSIONET_CHANNELS], high[PHYSIONET_CHANNELS];
    int seen[PHYSIONET_CHANNELS] = {0};
    for (size_t i = 0; i < data->n; i++)
        for (int32_t j = 0; j < data->records[i].n_events; j++) {
            const mtan_event e = data->records[i].events[j];
            const int32_t c = e.channel;
            low[c] = seen[c] && low[c] < e.value ? low[c] : e.value;
            high[c] = seen[c] && high[c] > e.value ? high[c] : e.value;
            seen[c] = 1;
        }
    for (size_t i = 0; i < data->n; i++)
        for (int32_t j = 0; j < data->records[i].n_events; j++) {
            mtan_event *e = &data->records[i].events[j];
            const mtan_real most = high[e->channel];
            e->time /= 48;
            e->value = (e->value - low[e->channel]) / (most < 0 || most > 0 ? most : 1);
        }
}

physionet_summary physionet_summarise(const physionet *data) {
    physionet_summary s;
    double times2 = 0, cells2 = 0, n = data->n ? (double)data->n : 1;
    memset(&s, 0, sizeof s);
    s.records = data->n;
    for (size_t i = 0; i < data->n; i++) {
        const physionet_record *r = &data->records[i];
        int seen[PHYSIONET_CHANNELS] = {0}, channels_seen = 0;
        for (int32_t j = 0; j < r->n_events; j++)
            if (r->events[j].channel < PHYSIONET_CHANNELS) channels_seen += !seen[r->events[j].channel]++;
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
