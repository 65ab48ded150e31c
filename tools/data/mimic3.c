/* See mimic3.h. There is one pass over each table. A row needs no allocation, and a row of another item is split only
 * up to its item number. Only the four tables are read (the items are listed below, so D_ITEMS is not needed), and
 * nothing is guessed: a field that is neither empty nor valid ends the loading. */
#define _POSIX_C_SOURCE 200809L
#define typeof __typeof__ /* used by stb_ds's maps; -std=c99 disables gcc's keyword */
#include "mimic3.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "field.h"
#include "gzip.h"

enum { SPO2, HR, RR, SBP, DBP, TEMP, TGCS, CRR, UO, FIO2, GLUCOSE, PH, EYE, VERBAL, MOTOR, SIGNALS };

static const char *const channel_names[MIMIC3_CHANNELS] = {"SpO2", "HR",  "RR", "SBP",  "DBP",     "Temp",
                                                           "TGCS", "CRR", "UO", "FiO2", "Glucose", "pH"};

static const double limits[SIGNALS][2] = {{1, 100},   {1, 350},   {1, 300}, {1, 375},  {1, 375},
                                          {26, 45},   {3, 15},    {1, 2},   {0, 2445}, {20, 100},
                                          {10, 2000}, {6.3, 8.4}, {1, 4},   {1, 5},    {1, 6}};

enum { HOUR = 3600, WINDOW = 48 * HOUR, MOST_TIMES = 200 /* of a record, faithful */ };

/* ---- items ---- */

enum { FAITHFUL = 1, CORRECT = 2, BOTH = 3, ITEM_TOP = 1 << 18, CHOSEN = 0x80 };

/* `list`: the published code reads a channel's lists one after the other, and appends later lists to the first. */
typedef struct item_group {
    uint8_t signal, list, presets;
    const int32_t *items;
} item_group;

#define ITEMS(...)                                                                                                     \
    (const int32_t[]) {                                                                                                \
        __VA_ARGS__, 0                                                                                                 \
    }

static const item_group groups[] = {
    {SPO2, 0, BOTH, ITEMS(646, 220277)},
    {HR, 0, BOTH, ITEMS(211, 220045)},
    {RR, 0, BOTH, ITEMS(618, 615, 220210, 224690)},
    {SBP, 0, BOTH, ITEMS(51, 442, 455, 6701, 220179, 220050)},
    {DBP, 0, BOTH, ITEMS(8368, 8440, 8441, 8555, 220180, 220051)},
    {TEMP, 0, BOTH, ITEMS(678, 223761)}, /* Fahrenheit */
    {TEMP, 1, BOTH, ITEMS(676, 223762)}, /* Celsius */
    {TGCS, 0, BOTH, ITEMS(198)},
    {TGCS, 0, FAITHFUL, ITEMS(226755, 227013)}, /* APACHE */
    {EYE, 0, CORRECT, ITEMS(220739)},
    {VERBAL, 0, CORRECT, ITEMS(223900)},
    {MOTOR, 0, CORRECT, ITEMS(223901)},
    {CRR, 0, BOTH, ITEMS(3348)},
    {CRR, 1, BOTH, ITEMS(115, 223951)},
    {CRR, 2, BOTH, ITEMS(8377, 224308)},
    {FIO2, 0, BOTH, ITEMS(2981, 3420, 3422, 223835)},
    {FIO2, 0, CORRECT, ITEMS(190)},
    {GLUCOSE, 0, BOTH, ITEMS(807, 811, 1529, 3744, 3745, 220621, 225664, 226537)},
    {PH, 0, BOTH, ITEMS(780, 860, 1126, 4202, 4753, 223830)},
    {PH, 0, FAITHFUL, ITEMS(1673, 3839, 220734, 228243)}, /* of other or unknown fluids */
    {PH, 0, CORRECT, ITEMS(220274)},
    {UO, 0, BOTH,
     ITEMS(40055, 40056, 40057, 40061, 40065, 40069, 40085, 40094, 40096, 40405, 40428, 40473, 40651, 40715, 41857,
           41922, 42001, 42042, 42068, 42111, 42119, 42130, 42362, 42366, 42592, 42666, 42676, 42765, 42810, 42859,
           42892, 43053, 43057, 43093, 43462, 43519, 43537, 43897, 43931, 43966, 43987, 44051, 44080, 44103, 44132,
           44237, 44253, 44278, 44325, 44506, 44684, 44706, 44752, 44824, 44834, 44837, 44911, 44925, 45804, 45927,
           45991, 46177, 46180, 46532, 46578, 46658, 46727, 46748, 46804)},
    {UO, 0, FAITHFUL,
     ITEMS(43171, 43173, 43333, 43347, 43348, 43355, 43365, 43372, 43373, 43374, 43379, 43380, 43431, 43522, 43576,
           43583, 43589, 43633, 43638, 43647, 43654, 43811, 43812, 43856, 45304,
           45841)}, /* per kg, per day, with irrigation */
    {UO, 0, CORRECT, ITEMS(226557, 226558, 226559, 226560, 226561, 226563, 226564, 226565, 226567, 226584)}};

/* ---- kept rows ---- */

enum { BLOCK_ROWS = 60 };

/* Rows of one stay in the order of the files. Separate arrays, because a struct of the three fields would be padded. */
typedef struct block {
    double value[BLOCK_ROWS]; /* NaN: a row without a value; only its time counts */
    int32_t time[BLOCK_ROWS]; /* seconds from the stay's start */
    uint8_t kind[BLOCK_ROWS];
    uint32_t next; /* number of the next block; unused in the last block */
} block;

typedef struct stay {
    int64_t start, end; /* in seconds: admission or ICU entry, discharge or death */
    int32_t hadm, subject, label;
    int32_t earliest;     /* time of its earliest row; faithful: the window starts there */
    uint32_t first, last; /* numbers of its blocks */
    uint32_t rows;
    uint16_t beyond; /* faithful: a bit per list of Temp or CRR that has rows past the window */
    uint8_t entered; /* correct: it has an ICU entry; faithful: it has a row */
    uint8_t chosen;
} stay;

typedef struct loader {
    dataset *d;
    int faithful;
    stay *stays;
    struct {
        int32_t key;
        ptrdiff_t value;
    } * by_hadm;
    block *blocks;
    uint8_t *kinds; /* (ITEM_TOP) 0, or CHOSEN | list << 4 | signal */
    void (*progress)(void *, double, const char *);
    void *context;
    double bytes, bytes_done;
    size_t no_admission, no_time, flagged, implausible, unknown;
} loader;

static int signal_of(uint8_t kind) {
    return kind & 15;
}

static int list_of(uint8_t kind) {
    return kind >> 4 & 7;
}

static void choose_items(loader *l) {
    l->kinds = tool_calloc(ITEM_TOP, 1);
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        if (groups[i].presets & (l->faithful ? FAITHFUL : CORRECT))
            for (const int32_t *item = groups[i].items; *item; item++)
                l->kinds[*item] = (uint8_t)(CHOSEN | groups[i].list << 4 | groups[i].signal);
}

static void push_row(loader *l, stay *s, int32_t time, uint8_t kind, double value) {
    const size_t at = s->rows % BLOCK_ROWS;
    block *b;
    if (at == 0) {
        const uint32_t fresh = (uint32_t)arrlenu(l->blocks);
        (void)arraddnptr(l->blocks, 1);
        if (s->rows == 0) s->first = fresh;
        else l->blocks[s->last].next = fresh;
        s->last = fresh;
    }
    b = &l->blocks[s->last];
    b->time[at] = time, b->kind[at] = kind, b->value[at] = value;
    s->rows++;
}

/* ---- tables ---- */

enum { MOST_WANTED = 6, MOST_COLUMNS = 64, TABLES = 4, REPORT_ROWS = 1 << 16 };

typedef struct table table;

/* A kind of table: its name, the columns that its rows need, and the function for a row (1, or 0 with d->error set). */
typedef struct table_kind {
    const char *name;
    const char *columns[MOST_WANTED + 1];
    int (*row)(loader *l, table *t);
} table_kind;

struct table {
    const table_kind *kind;
    text_stream text;
    int column[MOST_WANTED];
    char *field[MOST_COLUMNS]; /* of this line; those before `split` are valid */
    int split;
    char *rest; /* of this line, not yet split; NULL: no more fields */
};

static int fail_line(loader *l, const table *t, const char *what) {
    return dataset_fail(l->d, "%s:%zu: %s", t->text.name, t->text.number, what);
}

/* Splits off a field in quotes and replaces doubled quotes; NULL if it is not closed or something follows the closing
 * quote. */
static char *split_quoted(char **rest) {
    char *start = *rest + 1, *to = start, *from = start;
    for (; *from != '"' || from[1] == '"'; *to++ = *from++) {
        if (*from == 0) return NULL;
        from += *from == '"';
    }
    if (from[1] != ',' && from[1] != 0) return NULL;
    *rest = from[1] ? from + 2 : NULL;
    *to = 0;
    return start;
}

static char *split_field(char **rest) {
    char *start = *rest, *end = start;
    if (*start == '"') return split_quoted(rest);
    while (*end != ',' && *end != 0) end++;
    *rest = *end ? end + 1 : NULL;
    *end = 0;
    return start;
}

/* Splits the line up to the field at a position; NULL if the line has fewer fields, or a quote is not closed. */
static char *field_at(table *t, int position) {
    while (t->split <= position) {
        if (!t->rest || !(t->field[t->split] = split_field(&t->rest))) return NULL;
        t->split++;
    }
    return t->field[position];
}

/* Puts wanted columns of this line into `out`; 0 with an error if they are missing. */
static int take(loader *l, table *t, int wanted, char **out) {
    *out = field_at(t, t->column[wanted]);
    return *out ? 1 : fail_line(l, t, "too few fields, or a quote that is not closed");
}

static int next_row(table *t) {
    do
        if (!text_line(&t->text)) return 0;
    while (t->text.length == 0);
    t->split = 0;
    t->rest = t->text.line;
    return 1;
}

static int find_columns(loader *l, table *t) {
    int n = 0;
    while (n < MOST_COLUMNS && field_at(t, n)) n++;
    for (int w = 0; t->kind->columns[w]; w++) {
        int c = 0;
        while (c < n && strcasecmp(t->field[c], t->kind->columns[w]) != 0) c++;
        if (c == n)
            return dataset_fail(l->d, "%s:%zu: no column %s: is this MIMIC-III's table %s?", t->text.name,
                                t->text.number, t->kind->columns[w], t->kind->name);
        t->column[w] = c;
    }
    return 1;
}

static void report(loader *l, const table *t, double size) {
    const double part = text_progress(&t->text);
    if (l->progress && l->bytes > 0) l->progress(l->context, (l->bytes_done + part * size) / l->bytes, t->text.name);
}

static int read_rows(loader *l, table *t, double size) {
    if (!next_row(t) && !t->text.error[0]) return dataset_fail(l->d, "%s: the table is empty", t->text.name);
    if (!t->text.error[0] && !find_columns(l, t)) return 0;
    report(l, t, size);
    for (size_t rows = 1; !t->text.error[0] && next_row(t); rows++) {
        if (!t->kind->row(l, t)) return 0;
        if (rows % REPORT_ROWS == 0) report(l, t, size);
    }
    return t->text.error[0] ? dataset_fail(l->d, "%s", t->text.error) : 1;
}

static int read_table(loader *l, const table_kind *kind, const char *path, double size) {
    table t;
    int good;
    memset(&t, 0, sizeof t);
    t.kind = kind;
    good = text_open(&t.text, path, UINT64_MAX) ? read_rows(l, &t, size) : dataset_fail(l->d, "%s", t.text.error);
    text_close(&t.text);
    l->bytes_done += size;
    return good;
}

/* ---- fields ---- */

static int read_id(const char *text, int32_t *id) {
    int64_t n = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9' && n <= INT32_MAX; p++) n = 10 * n + (*p - '0');
    if (p == text || *p || n > INT32_MAX) return 0;
    *id = (int32_t)n;
    return 1;
}

static int two_digits(const char *text) {
    return (text[0] - '0') * 10 + text[1] - '0';
}

/* Days since a fixed day; -1 for an invalid date. */
static int64_t days_to(int year, int month, int day) {
    static const int before[13] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
    const int leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0, past = year - 1;
    if (year < 1 || month < 1 || month > 12 || day < 1) return -1;
    if (day > before[month] - before[month - 1] + (leap && month == 2)) return -1;
    return 365 * (int64_t)past + past / 4 - past / 100 + past / 400 + before[month - 1] + (leap && month > 2) + day;
}

/* "2130-02-04 04:00:00" as seconds since a fixed time. */
static int read_time(const char *text, int64_t *seconds) {
    static const char shape[] = "dddd-dd-dd dd:dd:dd";
    size_t i = 0;
    for (; shape[i] && text[i]; i++)
        if (shape[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != shape[i]) return 0;
    if (shape[i] || text[i]) return 0;
    const int hour = two_digits(text + 11), minute = two_digits(text + 14), second = two_digits(text + 17);
    const int64_t days =
        days_to(100 * two_digits(text) + two_digits(text + 2), two_digits(text + 5), two_digits(text + 8));
    if (days < 0 || hour > 23 || minute > 59 || second > 59) return 0;
    *seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    return 1;
}

/* ---- ADMISSIONS, ICUSTAYS: the stays ---- */

enum { A_SUBJECT, A_HADM, A_ADMIT, A_DISCHARGE, A_DEATH, A_LABEL };

static int admission_times(const loader *l, stay *s, char *const *field) {
    int64_t death;
    if (!read_time(field[A_ADMIT], &s->start) || !read_time(field[A_DISCHARGE], &s->end)) return 0;
    if (!field[A_DEATH][0]) return 1;
    if (!read_time(field[A_DEATH], &death)) return 0;
    if (!l->faithful && death < s->end) s->end = death;
    return 1;
}

static int admission_row(loader *l, table *t) {
    char *field[MOST_WANTED];
    stay s;
    memset(&s, 0, sizeof s);
    for (int w = 0; w < MOST_WANTED; w++)
        if (!take(l, t, w, &field[w])) return 0;
    if (!read_id(field[A_SUBJECT], &s.subject)) return fail_line(l, t, "SUBJECT_ID is no number");
    if (!read_id(field[A_HADM], &s.hadm)) return fail_line(l, t, "HADM_ID is no number");
    if (!read_id(field[A_LABEL], &s.label) || s.label > 1)
        return fail_line(l, t, "HOSPITAL_EXPIRE_FLAG is neither 0 nor 1");
    if (!admission_times(l, &s, field)) return fail_line(l, t, "no time of the form 2130-02-04 04:00:00");
    if (hmgeti(l->by_hadm, s.hadm) >= 0) return fail_line(l, t, "this HADM_ID was there before");
    s.chosen = l->faithful && s.end - s.start >= WINDOW;
    hmput(l->by_hadm, s.hadm, arrlen(l->stays));
    arrput(l->stays, s);
    return 1;
}

static stay *find_stay(loader *l, int32_t hadm) {
    const ptrdiff_t at = hmgeti(l->by_hadm, hadm);
    return at < 0 ? NULL : &l->stays[l->by_hadm[at].value];
}

enum { I_HADM, I_IN };

/* Only the correct preset reads this table. */
static int icustay_row(loader *l, table *t) {
    char *hadm_text, *in_text;
    int32_t hadm;
    int64_t in;
    stay *s;
    if (!take(l, t, I_HADM, &hadm_text) || !take(l, t, I_IN, &in_text)) return 0;
    if (!read_id(hadm_text, &hadm)) return fail_line(l, t, "HADM_ID is no number");
    if (!in_text[0]) return l->no_time++, 1;
    if (!read_time(in_text, &in)) return fail_line(l, t, "no time of the form 2130-02-04 04:00:00");
    if (!(s = find_stay(l, hadm))) return l->no_admission++, 1;
    if (!s->entered || in < s->start) s->start = in;
    s->entered = 1;
    s->chosen = s->end - s->start >= WINDOW;
    return 1;
}

/* ---- CHARTEVENTS, OUTPUTEVENTS: the rows of stays ---- */

enum { E_ITEM, E_HADM, E_TIME, E_VALUE, E_ERROR, E_NUMBER };

static double read_refill(loader *l, const char *text) {
    static const char *const words[2][3] = {{"Brisk", "Normal <3 secs", "Normal <3 Seconds"},
                                            {"Delayed", "Abnormal >3 secs", "Abnormal >3 Seconds"}};
    double value;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            if (strcmp(text, words[i][j]) == 0) return 1 + i;
    if (field_number(text, &value)) return value;
    l->unknown += text[0] && strcmp(text, "Other/Remarks") != 0 && strcmp(text, "Comment") != 0;
    return NAN;
}

/* Returns NaN if the value is implausible. */
static double corrected(int signal, double value) {
    if (signal == TEMP && value >= 78.8 && value <= 113) value = (value - 32) / 1.8;
    if (signal == FIO2 && value <= 1) value *= 100;
    return value >= limits[signal][0] && value <= limits[signal][1] ? value : NAN;
}

static void keep_corrected(loader *l, stay *s, int64_t time, uint8_t kind, double value) {
    if (time < 0 || time > WINDOW || isnan(value)) return;
    value = corrected(signal_of(kind), value);
    if (isnan(value)) l->implausible++;
    else push_row(l, s, (int32_t)time, kind, value);
}

static uint16_t list_bit(uint8_t kind) {
    const int signal = signal_of(kind);
    return (uint16_t)(signal == TEMP || signal == CRR ? 1 << (list_of(kind) + 4 * (signal == CRR)) : 0);
}

/* The window starts at the stay's earliest row, which is only known after the last line. A row past the window known so
 * far stays past it; rows that turn out to be past it later are left out at the end. */
static void keep_faithful(loader *l, stay *s, int64_t time, uint8_t kind, double value) {
    if (signal_of(kind) == TEMP && list_of(kind) == 1) {
        if (isnan(value)) return;
        value = value * 1.8 + 32;
    }
    if (time < INT32_MIN || time > INT32_MAX) return;
    if (!s->entered || time < s->earliest) s->earliest = (int32_t)time;
    s->entered = 1;
    if (time - s->earliest > WINDOW) s->beyond |= list_bit(kind);
    else push_row(l, s, (int32_t)time, kind, value);
}

/* The value of a row: a word for capillary refill, otherwise a number; NaN if the field is empty. */
static int row_value(loader *l, table *t, int signal, double *value) {
    char *text;
    if (!take(l, t, signal == UO || signal == CRR ? E_VALUE : E_NUMBER, &text)) return 0;
    *value = NAN;
    if (signal == CRR) *value = read_refill(l, text);
    else if (text[0] && !field_number(text, value)) return fail_line(l, t, "the value is no number");
    return 1;
}

static int keep_row(loader *l, table *t, stay *s, uint8_t kind) {
    char *time_text, *error_text;
    double value;
    int64_t time;
    if (!take(l, t, E_TIME, &time_text) || !take(l, t, E_ERROR, &error_text)) return 0;
    if (!time_text[0]) return l->no_time++, 1;
    if (!read_time(time_text, &time)) return fail_line(l, t, "no time of the form 2130-02-04 04:00:00");
    if (!row_value(l, t, signal_of(kind), &value)) return 0;
    if (l->faithful) keep_faithful(l, s, time - s->start, kind, value);
    else if (strcmp(error_text, "1") == 0) l->flagged++;
    else keep_corrected(l, s, time - s->start, kind, value);
    return 1;
}

static int event_row(loader *l, table *t, int outputs) {
    char *item_text, *hadm_text;
    int32_t item, hadm;
    uint8_t kind;
    stay *s;
    if (!take(l, t, E_ITEM, &item_text)) return 0;
    if (!read_id(item_text, &item)) return fail_line(l, t, "ITEMID is no number");
    kind = item < ITEM_TOP ? l->kinds[item] : 0;
    if (!kind || (signal_of(kind) == UO) != outputs) return 1;
    if (!take(l, t, E_HADM, &hadm_text)) return 0;
    if (!hadm_text[0]) return l->no_admission++, 1;
    if (!read_id(hadm_text, &hadm)) return fail_line(l, t, "HADM_ID is no number");
    if (!(s = find_stay(l, hadm))) return l->no_admission++, 1;
    return s->chosen ? keep_row(l, t, s, kind) : 1;
}

static int chart_row(loader *l, table *t) {
    return event_row(l, t, 0);
}

static int output_row(loader *l, table *t) {
    return event_row(l, t, 1);
}

static const table_kind tables[TABLES] = {
    {"ADMISSIONS",
     {"SUBJECT_ID", "HADM_ID", "ADMITTIME", "DISCHTIME", "DEATHTIME", "HOSPITAL_EXPIRE_FLAG", NULL},
     admission_row},
    {"ICUSTAYS", {"HADM_ID", "INTIME", NULL}, icustay_row},
    {"CHARTEVENTS", {"ITEMID", "HADM_ID", "CHARTTIME", "VALUE", "ERROR", "VALUENUM", NULL}, chart_row},
    {"OUTPUTEVENTS", {"ITEMID", "HADM_ID", "CHARTTIME", "VALUE", "ISERROR", NULL}, output_row}};

/* ---- records ---- */

typedef struct row {
    double value;
    int32_t time;
    uint32_t order; /* position in the files */
    uint8_t kind;
} row;

static row *gather_rows(const loader *l, const stay *s) {
    row *rows = NULL;
    uint32_t b = s->first;
    arrsetcap(rows, s->rows);
    for (uint32_t i = 0; i < s->rows; i++) {
        const uint32_t at = i % BLOCK_ROWS;
        if (i > 0 && at == 0) b = l->blocks[b].next;
        const row r = {l->blocks[b].value[at], l->blocks[b].time[at], i, l->blocks[b].kind[at]};
        arrput(rows, r);
    }
    return rows;
}

static int by_number(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

static int by_time(const void *left, const void *right) {
    const row *a = left, *b = right;
    const int difference = by_number(a->time, b->time);
    return difference ? difference : by_number(a->order, b->order);
}

/* The order of the published code: by channel, then list by list, each ascending in time. */
static int by_list(const void *left, const void *right) {
    const row *a = left, *b = right;
    int difference = signal_of(a->kind) - signal_of(b->kind);
    if (!difference) difference = list_of(a->kind) - list_of(b->kind);
    return difference ? difference : by_time(left, right);
}

/* The last time that a faithful record shows: the 200th distinct one, or the end of the window. */
static int64_t last_shown(const row *rows, const stay *s) {
    const int64_t end = (int64_t)s->earliest + WINDOW;
    int times = 0;
    for (size_t i = 0; i < arrlenu(rows) && rows[i].time <= end; i++)
        if ((i == 0 || rows[i].time > rows[i - 1].time) && ++times == MOST_TIMES) return rows[i].time;
    return end;
}

/* Has an earlier list of the same channel rows past the window? The published code stops there. */
static int blocked(const stay *s, uint8_t kind) {
    for (int list = 0; list < list_of(kind); list++)
        if (s->beyond & list_bit((uint8_t)(signal_of(kind) | list << 4))) return 1;
    return 0;
}

/* A row that turned out to be past the window is not shown and ends its series, since rows of a later list have earlier
 * times. */
static void add_faithful(loader *l, const stay *s, row *rows) {
    int64_t shown, previous = INT64_MIN;
    int signal = -1, ended = 0;
    qsort(rows, arrlenu(rows), sizeof *rows, by_time);
    shown = last_shown(rows, s);
    qsort(rows, arrlenu(rows), sizeof *rows, by_list);
    for (size_t i = 0; i < arrlenu(rows); i++) {
        const row *r = &rows[i];
        if (signal_of(r->kind) != signal) signal = signal_of(r->kind), ended = 0, previous = INT64_MIN;
        ended = ended || r->time <= previous || blocked(s, r->kind);
        previous = r->time;
        if (!ended && r->time <= shown && r->value > 0 && r->value <= 500)
            dataset_add_event(l->d, (mtan_real)((double)((int64_t)r->time - s->earliest) / HOUR), signal,
                              (mtan_real)r->value);
    }
}

/* Adds rows of one time. The parts of the coma scale become their sum if all three are there. */
static void add_moment(loader *l, const row *rows, size_t n) {
    const mtan_real time = (mtan_real)((double)rows[0].time / HOUR);
    double sum[SIGNALS] = {0};
    int count[SIGNALS] = {0};
    for (size_t i = 0; i < n; i++) {
        const int signal = signal_of(rows[i].kind);
        sum[signal] += rows[i].value, count[signal]++;
        if (signal < MIMIC3_CHANNELS) dataset_add_event(l->d, time, signal, (mtan_real)rows[i].value);
    }
    if (count[EYE] && count[VERBAL] && count[MOTOR])
        dataset_add_event(l->d, time, TGCS,
                          (mtan_real)(sum[EYE] / count[EYE] + sum[VERBAL] / count[VERBAL] + sum[MOTOR] / count[MOTOR]));
}

static void add_corrected(loader *l, row *rows) {
    qsort(rows, arrlenu(rows), sizeof *rows, by_time);
    for (size_t i = 0, n; i < arrlenu(rows); i += n) {
        for (n = 1; i + n < arrlenu(rows) && rows[i + n].time == rows[i].time; n++) {
        }
        add_moment(l, rows + i, n);
    }
}

/* Returns how many repeats were averaged. */
static size_t add_stay(loader *l, const stay *s) {
    char name[16];
    size_t repeats;
    row *rows = gather_rows(l, s);
    snprintf(name, sizeof name, "%d", (int)s->hadm);
    dataset_add_record(l->d, name, s->subject);
    if (l->faithful && arrlenu(rows)) add_faithful(l, s, rows);
    else if (arrlenu(rows)) add_corrected(l, rows);
    repeats = dataset_end_record(l->d);
    dataset_add_label(l->d, s->label);
    arrfree(rows);
    return repeats;
}

static void drop_last(dataset *d) {
    const dataset_record r = arrpop(d->records);
    arrsetlen(d->names, r.name);
    arrsetlen(d->labels, r.label0);
}

static void describe(const loader *l, size_t records, size_t deaths, size_t empty, size_t repeats) {
    dataset *d = l->d;
    dataset_note(d, "%zu of %zu admissions chosen, %zu deaths", records, arrlenu(l->stays), deaths);
    if (empty) dataset_note(d, "%zu admissions without an observation %s", empty, l->faithful ? "kept" : "left out");
    if (l->no_admission) dataset_note(d, "%zu rows without a HADM_ID of ADMISSIONS left out", l->no_admission);
    if (l->no_time) dataset_note(d, "%zu rows without a time left out", l->no_time);
    if (l->unknown) dataset_note(d, "%zu unknown words for capillary refill taken as missing", l->unknown);
    if (l->flagged) dataset_note(d, "%zu rows marked as errors left out", l->flagged);
    if (l->implausible) dataset_note(d, "%zu implausible values left out", l->implausible);
    if (repeats) dataset_note(d, "%zu repeats averaged", repeats);
}

static int make_records(loader *l) {
    static const char *const classes[2] = {"survived", "died"};
    size_t records = 0, deaths = 0, empty = 0, repeats = 0;
    for (int i = 0; i < MIMIC3_CHANNELS; i++) arrput(l->d->channels, tool_text(channel_names[i]));
    for (int i = 0; i < 2; i++) arrput(l->d->classes, tool_text(classes[i]));
    strcpy(l->d->unit, "hours");
    for (size_t i = 0; i < arrlenu(l->stays); i++) {
        const stay *s = &l->stays[i];
        if (!s->chosen) continue;
        repeats += add_stay(l, s);
        empty += arrlast(l->d->records).n_events == 0;
        if (arrlast(l->d->records).n_events == 0 && !l->faithful) drop_last(l->d);
        else records++, deaths += (size_t)s->label;
    }
    describe(l, records, deaths, empty, repeats);
    return 1;
}

/* ---- the folder ---- */

/* The table's path (free it) and its size; NULL if it is not in the folder. */
static char *find_table(const char *folder, const char *name, double *size) {
    static const char *const endings[] = {".csv", ".csv.gz", ".CSV", ".CSV.gz"};
    struct stat status;
    const size_t bytes = strlen(folder) + strlen(name) + 16;
    char *path = tool_calloc(bytes, 1);
    for (size_t i = 0; i < 2 * sizeof endings / sizeof endings[0]; i++) {
        char *p = path + snprintf(path, bytes, "%s/", folder);
        snprintf(p, bytes - (size_t)(p - path), "%s%s", name, endings[i / 2]);
        for (; i % 2 && *p != '.'; p++) *p = (char)(*p - 'A' + 'a');
        if (stat(path, &status) != 0) continue;
        *size = (double)status.st_size;
        return path;
    }
    free(path);
    return NULL;
}

static int read_tables(loader *l, const char *folder) {
    char *path[TABLES] = {NULL};
    double size[TABLES] = {0};
    int good = 1;
    for (int i = 0; i < TABLES && good; i++) {
        if (l->faithful && tables[i].row == icustay_row) continue;
        path[i] = find_table(folder, tables[i].name, &size[i]);
        l->bytes += size[i];
        if (!path[i])
            good = dataset_fail(l->d, "%s: no table %s (%s.csv or %s.csv.gz, in upper or lower case)", folder,
                                tables[i].name, tables[i].name, tables[i].name);
    }
    for (int i = 0; i < TABLES; i++) {
        if (path[i] && good) good = read_table(l, &tables[i], path[i], size[i]);
        free(path[i]);
    }
    if (good && l->progress) l->progress(l->context, 1, folder);
    return good;
}

int mimic3_load(dataset *d, const char *folder, int faithful,
                void (*progress)(void *context, double share, const char *what), void *context) {
    loader l;
    int good;
    memset(d, 0, sizeof *d);
    memset(&l, 0, sizeof l);
    l.d = d, l.faithful = faithful != 0, l.progress = progress, l.context = context;
    choose_items(&l);
    good = read_tables(&l, folder) && make_records(&l);
    if (good && arrlenu(d->records) == 0)
        good = dataset_fail(d, "%s: no admission of 48 hours or more with observations", folder);
    arrfree(l.blocks), arrfree(l.stays), hmfree(l.by_hadm), free(l.kinds);
    if (!good) dataset_free(d);
    return good;
}

/* ---- series without an observation ---- */

void mimic3_means(const dataset *d, const int32_t *train, size_t n, double *means) {
    double sum[MIMIC3_CHANNELS] = {0};
    size_t count[MIMIC3_CHANNELS] = {0};
    for (size_t i = 0; i < (train ? n : arrlenu(d->records)); i++) {
        const dataset_record *r = &d->records[train ? (size_t)train[i] : i];
        for (int32_t j = 0; j < r->n_events; j++) {
            const mtan_event *e = &d->events[r->event0 + (size_t)j];
            sum[e->channel] += (double)e->value, count[e->channel]++;
        }
    }
    for (int c = 0; c < MIMIC3_CHANNELS; c++) means[c] = count[c] ? sum[c] / (double)count[c] : NAN;
}

/* The means that a record gets, ascending in channel; returns how many. */
static int32_t missing_of(const dataset *d, const dataset_record *r, const double *means, mtan_event *out) {
    int seen[MIMIC3_CHANNELS] = {0};
    int32_t n = 0;
    for (int32_t j = 0; j < r->n_events; j++) seen[d->events[r->event0 + (size_t)j].channel] = 1;
    for (int32_t c = 0; c < MIMIC3_CHANNELS; c++)
        if (!seen[c] && !isnan(means[c])) out[n].time = 0, out[n].channel = c, out[n++].value = (mtan_real)means[c];
    return n;
}

/* Merges both ascending lists into `to`; e may start n_other places after `to` in the same array. */
static void merge(mtan_event *to, const mtan_event *e, int32_t n, const mtan_event *other, int32_t n_other) {
    int32_t i = 0, j = 0;
    while (j < n_other) {
        const int earlier = i < n && (e[i].time < 0 || (!(e[i].time > 0) && e[i].channel < other[j].channel));
        *to++ = earlier ? e[i++] : other[j++];
    }
}

/* Works in place, from the last record to the first, because there may be no memory for a copy of the events. */
void mimic3_fill(dataset *d, const double *means) {
    mtan_event missing[MIMIC3_CHANNELS];
    size_t total = arrlenu(d->events), left;
    for (size_t i = 0; i < arrlenu(d->records); i++) total += (size_t)missing_of(d, &d->records[i], means, missing);
    if (total == 0) return; /* nothing was observed and nothing is missing: there is no array */
    left = total;
    arrsetlen(d->events, total);
    for (size_t i = arrlenu(d->records); i-- > 0;) {
        dataset_record *r = &d->records[i];
        const int32_t n = missing_of(d, r, means, missing);
        mtan_event *old = d->events + r->event0;
        int at_zero = 0;
        for (int32_t j = 0; j < r->n_events; j++) at_zero |= !(old[j].time < 0) && !(old[j].time > 0);
        left -= (size_t)r->n_events;
        memmove(d->events + left, old, (size_t)r->n_events * sizeof *old);
        left -= (size_t)n;
        merge(d->events + left, d->events + left + n, r->n_events, missing, n);
        r->n_times += n > 0 && !at_zero;
        r->n_events += n;
        r->event0 = left;
    }
}

void mimic3_fill_missing(dataset *d, const int32_t *train, size_t n) {
    double means[MIMIC3_CHANNELS];
    mimic3_means(d, train, n, means);
    mimic3_fill(d, means);
}
