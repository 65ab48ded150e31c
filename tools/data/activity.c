/* See activity.h. Sections: rows; windows; lines; files. */
#define _POSIX_C_SOURCE 200809L
#include "activity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "field.h"
#include "gzip.h"

enum {
    TAGS = 4,
    FIELDS = 8,
    STRIDE = ACTIVITY_ROWS / 2,
    MOST_TOTAL = 1 << 28,  /* bytes, unpacked; the published file has 21 MB */
    MOST_SEQUENCES = 1000, /* the published file has 25 */
    MOST_TICKS = 1 << 24,  /* 46 hours: integers that float32 holds exactly */
    NAME_BYTES = 16,       /* of a sequence */
    LOST_LABEL = -1,       /* intended as CLASS_STANDING_UP; the published code does not find it in its table */
    CLASS_STANDING_UP = 4
};
#define TICK 1e5 /* the clock counts 100 ns */

static const char *const tags[TAGS] = {"010-000-024-033", "010-000-030-096", "020-000-033-111", "020-000-032-221"};
static const char *const tag_names[TAGS] = {"ankle-left", "ankle-right", "chest", "belt"};
static const char *const class_names[] = {
    "walking", "falling", "lying", "sitting", "standing up", "on all fours", "sitting on the ground"};
enum { NAMED_CLASSES = sizeof class_names / sizeof class_names[0] };

static const struct {
    const char *name;
    int class;
} labels[] = {{"walking", 0},
              {"falling", 1},
              {"lying", 2},
              {"lying down", 2},
              {"sitting", 3},
              {"sitting down", 3},
              {"standing up from lying", CLASS_STANDING_UP},
              {"standing up from sitting", CLASS_STANDING_UP},
              {"standing up from sit on grnd", CLASS_STANDING_UP},
              {"standing up from sitting on the ground", LOST_LABEL},
              {"on all fours", 5},
              {"sitting on the ground", 6}};
enum { LABELS = sizeof labels / sizeof labels[0] };

/* ---- rows: everything within one tick ---- */

typedef struct row {
    int32_t tick;
    unsigned classes; /* a bit for each label that occurred */
    float count[TAGS], mean[TAGS][3];
} row;

typedef struct reader {
    dataset *data;
    text_stream text;
    mtan_preset preset;
    row *rows; /* stb_ds array: of the sequence being read */
    double start;
    char (*sequence)[NAME_BYTES]; /* stb_ds array: sequences read so far; the last one is being read */
    size_t lost, too_short;
} reader;

/* The published code's running mean, every step rounded to float32. */
static void observe(row *r, int tag, const float value[3]) {
    for (int i = 0; i < 3; i++) {
        const float sum = r->mean[tag][i] * r->count[tag];
        r->mean[tag][i] = r->count[tag] > 0 ? (sum + value[i]) / (r->count[tag] + 1) : value[i];
    }
    r->count[tag] += 1;
}

/* If labels differ within one tick, the published code takes the lowest class that occurred, and class 0 if there is
 * none. */
static int32_t class_of(const row *r) {
    int32_t c = 0;
    while (c < NAMED_CLASSES && !(r->classes >> c & 1)) c++;
    return c < NAMED_CLASSES ? c : 0;
}

/* ---- windows ---- */

/* A stable sort; the rows are almost always sorted already. */
static void sort_rows(const row **sorted, const row *rows) {
    for (int i = 0; i < ACTIVITY_ROWS; i++) {
        int at = i;
        for (; at > 0 && sorted[at - 1]->tick > rows[i].tick; at--) sorted[at] = sorted[at - 1];
        sorted[at] = &rows[i];
    }
}

/* Adds the events of n rows of one tick, by channel. */
static void add_events(dataset *d, mtan_real time, const row *const *rows, int n) {
    for (int32_t c = 0; c < ACTIVITY_CHANNELS; c++)
        for (int i = 0; i < n; i++)
            if (rows[i]->count[c / 3] > 0) dataset_add_event(d, time, c, (mtan_real)rows[i]->mean[c / 3][c % 3]);
}

static void add_window(dataset *d, const char *name, int32_t group, const row *rows) {
    const row *sorted[ACTIVITY_ROWS];
    sort_rows(sorted, rows);
    dataset_add_record(d, name, group);
    for (int i = 0, n; i < ACTIVITY_ROWS; i += n) {
        const mtan_real time = (mtan_real)(sorted[i]->tick - rows[0].tick);
        for (n = 0; i + n < ACTIVITY_ROWS && sorted[i + n]->tick == sorted[i]->tick; n++) {
            dataset_add_label(d, class_of(sorted[i + n]));
            arrput(d->label_times, time);
        }
        add_events(d, time, sorted + i, n);
        arrlast(d->records).n_times++;
    }
}

static void end_sequence(reader *r) {
    size_t n = arrlenu(r->rows), windows = 0;
    if (n == 0) return;
    const char *sequence = arrlast(r->sequence);
    for (size_t offset = 0; offset + ACTIVITY_ROWS < n; offset += STRIDE) {
        char name[NAME_BYTES + 24];
        snprintf(name, sizeof name, "%s-%zu", sequence, windows++);
        add_window(r->data, name, sequence[0] - 'A', r->rows + offset);
    }
    r->too_short += windows == 0;
    arrsetlen(r->rows, 0);
}

/* ---- lines: sequence, tag, clock, date, x, y, z, label ---- */

static int fail_here(reader *r, const char *what, const char *text) {
    return dataset_fail(r->data, "%s:%zu: %s: '%.60s'", r->text.name, r->text.number, what, text);
}

static int split_fields(char *line, char *field[FIELDS]) {
    for (int i = 0; i < FIELDS; i++) {
        field[i] = line;
        line += strcspn(line, ",");
        if ((*line == ',') != (i < FIELDS - 1)) return 0;
        *line++ = 0;
    }
    return 1;
}

static int parse_number(reader *r, const char *text, double most, double *x) {
    if (!field_number(text, x) || fabs(*x) > most) return fail_here(r, "not a number", text);
    return 1;
}

static int start_sequence(reader *r, const char *name, double clock) {
    char copy[NAME_BYTES];
    const size_t n = arrlenu(r->sequence);
    if (name[0] < 'A' || name[0] > 'Z' || strlen(name) >= NAME_BYTES)
        return fail_here(r, "not a sequence's name (a capital letter for the person, at most 15 characters)", name);
    for (size_t i = 0; i < n; i++)
        if (strcmp(r->sequence[i], name) == 0) return fail_here(r, "a sequence that ended above begins again", name);
    if (n == MOST_SEQUENCES) return fail_here(r, "more than 1000 sequences", name);
    end_sequence(r);
    memset(copy, 0, sizeof copy);
    memcpy(copy, name, strlen(name));
    memcpy(arraddnptr(r->sequence, 1), copy, sizeof copy);
    r->start = clock;
    return 1;
}

/* The row of this clock: the last one, or a new one. */
static row *find_row(reader *r, double clock) {
    const double tick = rint((clock - r->start) / TICK);
    row fresh;
    if (!(fabs(tick) < MOST_TICKS)) return NULL;
    if (arrlenu(r->rows) && arrlast(r->rows).tick == (int32_t)tick) return &arrlast(r->rows);
    memset(&fresh, 0, sizeof fresh);
    fresh.tick = (int32_t)tick;
    arrput(r->rows, fresh);
    return &arrlast(r->rows);
}

static int find(const char *name, const char *const *names, int n) {
    int i = 0;
    while (i < n && strcmp(names[i], name) != 0) i++;
    return i;
}

static int find_label(const char *name) {
    int i = 0;
    while (i < LABELS && strcmp(labels[i].name, name) != 0) i++;
    return i;
}

static int parse_line(reader *r, char *line) {
    char *field[FIELDS];
    double clock, x[3];
    float value[3];
    row *here;
    if (!split_fields(line, field))
        return dataset_fail(r->data, "%s:%zu: not eight fields between commas", r->text.name, r->text.number);
    const int tag = find(field[1], tags, TAGS), label = find_label(field[7]);
    if (tag == TAGS) return fail_here(r, "not one of the four tags", field[1]);
    if (label == LABELS) return fail_here(r, "not a label of this data set", field[7]);
    if (!parse_number(r, field[2], 1e30, &clock)) return 0;
    for (int i = 0; i < 3; i++) {
        if (!parse_number(r, field[4 + i], 1e30, &x[i])) return 0;
        value[i] = (float)x[i];
    }
    if ((arrlenu(r->sequence) == 0 || strcmp(arrlast(r->sequence), field[0]) != 0) &&
        !start_sequence(r, field[0], clock))
        return 0;
    if (!(here = find_row(r, clock))) return fail_here(r, "a clock far from its sequence's first", field[2]);
    observe(here, tag, value);
    const int lost = labels[label].class == LOST_LABEL;
    r->lost += (size_t)lost;
    if (!lost) here->classes |= 1u << labels[label].class;
    else if (r->preset != MTAN_FAITHFUL) here->classes |= 1u << CLASS_STANDING_UP;
    return 1;
}

/* ---- files ---- */

static int read_lines(reader *r, const char *path) {
    int good = text_open(&r->text, path, MOST_TOTAL);
    while (good && text_line(&r->text))
        if (r->text.length) good = parse_line(r, r->text.line);
    if (r->text.error[0]) good = dataset_fail(r->data, "%s", r->text.error);
    if (good) end_sequence(r);
    if (good && arrlenu(r->data->records) == 0)
        good = dataset_fail(r->data, "%s: no sequence of more than %d rows", path, (int)ACTIVITY_ROWS);
    text_close(&r->text);
    return good;
}

static int read_path(reader *r, const char *path) {
    static const char *const names[] = {"ConfLongDemo_JSI.txt", "ConfLongDemo_JSI.txt.gz"};
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode)) return read_lines(r, path);
    for (int i = 0; i < 2; i++) {
        char file[4096];
        if (snprintf(file, sizeof file, "%s/%s", path, names[i]) < (int)sizeof file && stat(file, &status) == 0)
            return read_lines(r, file);
    }
    return dataset_fail(r->data, "%s: holds no %s and no %s", path, names[0], names[1]);
}

static void describe(const reader *r) {
    dataset *d = r->data;
    char name[32];
    for (int c = 0; c < ACTIVITY_CHANNELS; c++) {
        snprintf(name, sizeof name, "%s.%c", tag_names[c / 3], "xyz"[c % 3]);
        arrput(d->channels, tool_text(name));
    }
    for (int c = 0; c < ACTIVITY_CLASSES; c++) {
        snprintf(name, sizeof name, "unused-%d", c);
        arrput(d->classes, tool_text(c < NAMED_CLASSES ? class_names[c] : name));
    }
    snprintf(d->unit, sizeof d->unit, "10 ms");
    if (r->too_short) dataset_note(d, "%zu sequences are too short for a window of 50 rows", r->too_short);
    if (r->lost && r->preset == MTAN_FAITHFUL)
        dataset_note(d,
                     "%zu lines 'standing up from sitting on the ground' have no label, and count as walking where "
                     "no other line of their row has one, as in the published code",
                     r->lost);
}

int activity_load(dataset *d, const char *path, mtan_preset preset) {
    reader *r = tool_calloc(1, sizeof *r);
    memset(d, 0, sizeof *d);
    r->data = d;
    r->preset = preset;
    const int good = read_path(r, path);
    if (good) describe(r);
    else dataset_free(d);
    arrfree(r->rows), arrfree(r->sequence);
    free(r);
    return good;
}
