/* See table.h: choosing, counting and printing. It reads no file and trains nothing. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/json_text.h"
#include "table.h"

/* ---- selection ---- */

const char *table_next(const char *word, const char *between) {
    word += strcspn(word, between);
    return word + (*word != 0);
}

int table_seeds(int64_t **seeds, const char *text) {
    *seeds = NULL;
    do {
        char *end;
        const long long first = strtoll(text, &end, 10), last = *end == '-' ? strtoll(end + 1, &end, 10) : first;
        if (!isdigit((unsigned char)*text) || (*end && *end != ',') || last < first || last > 4294967295LL ||
            last - first > 1000)
            return arrfree(*seeds), 0;
        for (long long s = first; s <= last; s++) arrput(*seeds, (int64_t)s);
        text = end + (*end == ',');
        if (*end == ',' && !*text) return arrfree(*seeds), 0;
    } while (*text);
    return 1;
}

/* Is the word of `length` ROW, DATA or ROW/DATA of this row? */
static int word_names(const char *word, size_t length, const char *row, const char *data) {
    char both[64];
    snprintf(both, sizeof both, "%s/%s", row, data);
    return (strlen(row) == length && memcmp(word, row, length) == 0) ||
           (strlen(data) == length && memcmp(word, data, length) == 0) ||
           (strlen(both) == length && memcmp(word, both, length) == 0);
}

static int list_names(const char *list, const char *row, const char *data) {
    for (const char *at = list; *at; at = table_next(at, ","))
        if (word_names(at, strcspn(at, ","), row, data)) return 1;
    return 0;
}

int table_wants(const table_choice *c, int table, const char *row, const char *data) {
    const paper_row *r = paper_row_of(table, row);
    if (!c->tables[table]) return 0;
    return !c->only || list_names(c->only, row, data) || (r && list_names(c->only, r->home_row, data));
}

int table_only_exists(const char *only) {
    for (const char *at = only; *at; at = table_next(at, ",")) {
        const paper_cell *p = paper_cells;
        while (p->table && !word_names(at, strcspn(at, ","), p->row, p->data)) p++;
        if (!p->table) return 0;
    }
    return *only != 0;
}

/* ---- missing runs ---- */

static int has_word(const char *words, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = words; *at; at = table_next(at, " "))
        if (strcspn(at, " ") == n && memcmp(at, word, n) == 0) return 1;
    return 0;
}

/* Does a run produce a number? */
static int gives(const paper_run *r, const paper_cell *p) {
    const paper_row *row = paper_row_of(p->table, p->row);
    return row && row->home == r->table && strcmp(row->home_row, r->row) == 0 && strcmp(p->data, r->data) == 0 &&
           has_word(r->metrics, p->metric);
}

static int run_wanted(const table_choice *c, const paper_run *r) {
    if (c->preset >= 0 && c->preset != (int)r->preset) return 0;
    for (const paper_cell *p = paper_cells; p->table; p++)
        if (table_wants(c, p->table, p->row, p->data) && gives(r, p)) return 1;
    return 0;
}

int table_has(const result *results, const paper_run *r) {
    for (const char *at = r->metrics; *at; at = table_next(at, " ")) {
        char metric[24];
        snprintf(metric, sizeof metric, "%.*s", (int)strcspn(at, " "), at);
        if (!results_find(results, r->table, r->row, r->data, paper_preset(r->preset), r->seed, metric)) return 0;
    }
    return 1;
}

paper_run *table_missing(const table_choice *c, const result *results) {
    paper_run *missing = NULL, *all = NULL;
    for (size_t s = 0; s < arrlenu(c->seeds); s++) {
        arrsetlen(all, 0);
        paper_runs(&all, c->seeds[s]);
        for (size_t i = 0; i < arrlenu(all); i++)
            if (run_wanted(c, &all[i]) && !table_has(results, &all[i])) arrput(missing, all[i]);
    }
    arrfree(all);
    return missing;
}

/* ---- numbers ---- */

static int seed_counts(const table_choice *c, int64_t seed) {
    for (size_t i = 0; i < arrlenu(c->seeds); i++)
        if (c->seeds[i] == seed) return 1;
    return c->all_seeds;
}

/* Was it trained with the row's options? Results without a preset always count as such. */
static int is_usual(const result *r, const paper_cell *p) {
    paper_run *all = NULL;
    char command[480] = "";
    if (strcmp(r->preset, paper_rerun) == 0) return 1;
    paper_runs(&all, r->seed);
    for (size_t i = 0; i < arrlenu(all); i++)
        if (strcmp(paper_preset(all[i].preset), r->preset) == 0 && gives(&all[i], p))
            paper_command(&all[i], command, sizeof command);
    arrfree(all);
    return strcmp(command, r->command) == 0;
}

/* Sums over the runs that have the number. */
typedef struct sums {
    double squares, seconds, low, high;
    int timed, ranged;
} sums;

static void count_result(table_number *n, sums *s, const result *r) {
    if (isnan(r->value)) n->diverged++;
    else n->runs++, n->mean += r->value, s->squares += r->value * r->value;
    if (!isnan(r->seconds)) s->timed++, s->seconds += r->seconds;
    if (!isnan(r->low) && !isnan(r->high)) s->ranged++, s->low += r->low, s->high += r->high;
}

static void finish_number(table_number *n, const sums *s) {
    if (n->runs) n->mean /= n->runs;
    else n->mean = NAN;
    n->spread = n->runs > 1 ? sqrt(fmax(0, s->squares - n->runs * n->mean * n->mean) / (n->runs - 1)) : NAN;
    n->seconds = s->timed ? s->seconds / s->timed : NAN;
    n->low = s->ranged ? s->low / s->ranged : NAN, n->high = s->ranged ? s->high / s->ranged : NAN;
}

static int is_of(const result *r, const paper_row *row, const paper_cell *cell) {
    return r->table == row->home && strcmp(r->row, row->home_row) == 0 && strcmp(r->data, cell->data) == 0 &&
           strcmp(r->metric, cell->metric) == 0;
}

table_number table_number_of(const table_choice *c, const result *results, const paper_cell *cell, const char *whose) {
    const paper_row *row = paper_row_of(cell->table, cell->row);
    table_number n;
    sums s;
    memset(&n, 0, sizeof n), memset(&s, 0, sizeof s);
    for (size_t i = 0; i < arrlenu(results); i++) {
        const result *r = &results[i];
        if (!is_of(r, row, cell) || strcmp(r->preset, whose) != 0 || !seed_counts(c, r->seed)) continue;
        count_result(&n, &s, r);
        n.other += !is_usual(r, cell);
    }
    finish_number(&n, &s);
    return n;
}

int table_differs(const table_number *n, const paper_cell *cell) {
    const double paper = isnan(cell->spread) ? 0 : cell->spread;
    const double records = isnan(n->low) ? 0 : (n->high - n->low) / (2 * 1.959964);
    const double seeds = isnan(n->spread) ? 0 : n->spread / sqrt(n->runs);
    if (isnan(n->spread) && isnan(n->low)) return 0;
    return fabs(n->mean - cell->value) > 2 * sqrt(paper * paper + records * records + seeds * seeds);
}

/* Is the cell a line of the tables? */
static int is_shown(const table_choice *c, const result *results, const paper_cell *p) {
    const paper_row *row = paper_row_of(p->table, p->row);
    int runs = !paper_data_has_none(p->data);
    for (size_t i = 0; i < arrlenu(results) && !runs; i++) runs = is_of(&results[i], row, p);
    return runs && table_wants(c, p->table, p->row, p->data);
}

/* ---- text and Markdown ---- */

enum { NOTES = 26 };

/* Notes below a table, each with a letter. */
typedef struct footnotes {
    const char *text[NOTES];
    int n;
} footnotes;

static void add_mark(footnotes *f, char *marks, size_t size, const char *note) {
    int i = 0;
    while (i < f->n && strcmp(f->text[i], note) != 0) i++;
    if (i == NOTES) return;
    if (i == f->n) f->text[f->n++] = note;
    snprintf(marks + strlen(marks), size - strlen(marks), "%s%c", *marks ? "," : " ", 'a' + i);
}

/* Marks, if there are any, begin with a blank. */
static void put_title(char *text, size_t size, table_format format, const char *title, const char *marks) {
    if (format == TABLE_MARKDOWN && *marks) snprintf(text, size, "%s<sup>%s</sup>", title, marks + 1);
    else snprintf(text, size, "%s%s%s", format == TABLE_MARKDOWN ? "" : "  ", title, marks);
}

static void put_value(char *text, double value, double spread, const paper_block *b) {
    if (isnan(value)) snprintf(text, 40, "-");
    else if (isnan(spread)) snprintf(text, 40, "%.*f", b->decimals, value * b->factor);
    else snprintf(text, 40, "%.*f +- %.*f", b->decimals, value * b->factor, b->decimals, spread * b->factor);
}

/* A line of a table in text or Markdown: a title, the paper's number, the number of the paper's code, and three columns
 * for each preset. In text the columns have widths, aligned left (-) or right. */
enum { FIRST = 3, OURS = 3, COLUMNS = FIRST + OURS * PAPER_PRESETS };
static const struct {
    const char *before;
    int width;
} widths[FIRST + OURS] = {{"", -28}, {" ", -16}, {" ", -14}, {"  ", -16}, {" ", 5}, {" ", 13}};

typedef struct table_line {
    char cell[COLUMNS][96];
    int n;
} table_line;

static char *next_cell(table_line *l) {
    l->cell[l->n][0] = 0;
    return l->cell[l->n++];
}

static void put_line(FILE *out, table_format format, const table_line *l) {
    for (int i = 0; i < l->n; i++) {
        const int column = i < FIRST ? i : FIRST + (i - FIRST) % OURS;
        if (format == TABLE_MARKDOWN) fprintf(out, "| %s ", l->cell[i]);
        else fprintf(out, "%s%*s", widths[column].before, widths[column].width, l->cell[i]);
    }
    fputs(format == TABLE_MARKDOWN ? "|\n" : "\n", out);
}

static void put_range(char *text, double low, double high, const paper_block *b) {
    if (isnan(low)) snprintf(text, 40, "-");
    else snprintf(text, 40, "%.*f-%.*f", b->decimals, low * b->factor, b->decimals, high * b->factor);
}

static void put_ours(table_line *l, const table_number *n, const paper_block *b, const char *absent) {
    char *value = next_cell(l), *runs = next_cell(l);
    put_value(value, n->mean, n->spread, b);
    if (n->runs == 0 && n->diverged) strcpy(value, "diverged");
    else if (n->runs == 0 && absent) strcpy(value, "no data");
    sprintf(runs, "%d", n->runs);
    put_range(next_cell(l), n->low, n->high, b);
}

/* Adds the notes on a line: known reasons, and what happened to its runs. The preset best may differ from the paper,
 * because it goes beyond it. */
static void mark_line(footnotes *f, char *marks, size_t size, const paper_cell *p, const table_number *ours) {
    const char *known;
    int other = 0, diverged = 0, differs = 0, i;
    for (i = 0; i < PAPER_PRESETS; i++) {
        other |= ours[i].other, diverged |= ours[i].diverged;
        differs |= i != MTAN_BEST && table_differs(&ours[i], p);
    }
    for (i = 0; (known = paper_note(p, i)) != NULL; i++) add_mark(f, marks, size, known);
    if (differs && i == 0) add_mark(f, marks, size, paper_unexplained);
    if (other)
        add_mark(f, marks, size, "some runs had other options than the row's: the results file has their commands");
    if (diverged) add_mark(f, marks, size, "some runs diverged and are not in the mean");
}

static void print_line(FILE *out, table_format format, const table_choice *c, const result *results,
                       const paper_cell *p, footnotes *f, const char *absent) {
    const paper_row *row = paper_row_of(p->table, p->row);
    const paper_block b = paper_block_of(p->table, p->data, p->metric);
    const table_number rerun = table_number_of(c, results, p, paper_rerun);
    table_number ours[PAPER_PRESETS];
    table_line l = {.n = 0};
    char marks[32] = "";
    for (int i = 0; i < PAPER_PRESETS; i++) ours[i] = table_number_of(c, results, p, paper_preset((mtan_preset)i));
    mark_line(f, marks, sizeof marks, p, ours);
    put_title(next_cell(&l), sizeof l.cell[0], format, row->title, marks);
    put_value(next_cell(&l), p->value, p->spread, &b);
    put_value(next_cell(&l), rerun.mean, rerun.spread, &b);
    for (int i = 0; i < PAPER_PRESETS; i++)
        put_ours(&l, &ours[i], &b, paper_row_has(row->home_row, (mtan_preset)i) ? absent : NULL);
    put_line(out, format, &l);
}

/* Is this the first cell of its block that is asked for? */
static int starts_block(const table_choice *c, const result *results, const paper_cell *p) {
    for (const paper_cell *q = paper_cells; q < p; q++)
        if (q->table == p->table && strcmp(q->data, p->data) == 0 && strcmp(q->metric, p->metric) == 0 &&
            is_shown(c, results, q))
            return 0;
    return is_shown(c, results, p);
}

static void print_block(FILE *out, table_format format, const table_choice *c, const result *results,
                        const paper_cell *first, footnotes *f, const char *absent) {
    const paper_block b = paper_block_of(first->table, first->data, first->metric);
    char marks[32] = "", title[128];
    if (b.note) add_mark(f, marks, sizeof marks, b.note);
    if (absent) add_mark(f, marks, sizeof marks, absent);
    if (format == TABLE_MARKDOWN)
        put_title(title, sizeof title, format, b.title, marks), fprintf(out, "| **%s** |\n", title);
    else fprintf(out, "%s%s\n", b.title, marks);
    for (const paper_cell *p = first; p->table; p++)
        if (p->table == first->table && strcmp(p->data, first->data) == 0 && strcmp(p->metric, first->metric) == 0 &&
            is_shown(c, results, p))
            print_line(out, format, c, results, p, f, absent);
}

/* Wraps lines at 110 columns; in Markdown a line break ends each note. */
static void print_notes(FILE *out, table_format format, const footnotes *f) {
    if (format == TABLE_MARKDOWN && f->n > 0) fputc('\n', out);
    for (int i = 0; i < f->n; i++) {
        int column = fprintf(out, format == TABLE_MARKDOWN ? "<sup>%c</sup>" : "%c ", 'a' + i);
        for (const char *at = f->text[i]; *at;) {
            const int length = (int)strcspn(at, " ");
            if (column + 1 + length > 110) column = fprintf(out, "\n  ") - 1;
            column += fprintf(out, " %.*s", length, at);
            at += length + (at[length] == ' ');
        }
        fputs(format == TABLE_MARKDOWN && i + 1 < f->n ? "  \n" : "\n", out);
    }
}

static void print_head(FILE *out, table_format format, int table, int printed) {
    table_line l = {.n = 0};
    if (printed) fputc('\n', out);
    fprintf(out, format == TABLE_MARKDOWN ? "## Table %d. %s\n\n" : "Table %d. %s\n", table, paper_titles[table]);
    next_cell(&l), strcpy(next_cell(&l), "paper"), strcpy(next_cell(&l), "its code here");
    for (int i = 0; i < PAPER_PRESETS; i++) {
        snprintf(next_cell(&l), 32, "%s", paper_preset((mtan_preset)i));
        strcpy(next_cell(&l), "seeds"), strcpy(next_cell(&l), "95 % of test");
    }
    put_line(out, format, &l);
    for (int i = 0; format == TABLE_MARKDOWN && i < l.n; i++) fputs(i + 1 < l.n ? "|---" : "|---|\n", out);
}

static void print_tables(FILE *out, table_format format, const table_choice *c, const result *results,
                         table_no_data no_data, void *context) {
    for (int table = 1, printed = 0; table <= PAPER_TABLES; table++) {
        footnotes f;
        int started = 0;
        memset(&f, 0, sizeof f);
        for (const paper_cell *p = paper_cells; p->table; p++) {
            if (p->table != table || !starts_block(c, results, p)) continue;
            if (!started++) print_head(out, format, table, printed++);
            print_block(out, format, c, results, p, &f, no_data(context, p->data));
        }
        print_notes(out, format, &f);
    }
}

/* ---- CSV and JSON ---- */

static void json_key(FILE *out, const char *key, double x) {
    fprintf(out, ", \"%s\": ", key);
    json_number(out, x);
}

static void json_ours(FILE *out, const table_number *n, const char *whose) {
    fprintf(out, ", \"%s\": {\"seeds\": %d, \"diverged\": %d, \"other_options\": %d", whose, n->runs, n->diverged,
            n->other);
    json_key(out, "mean", n->mean), json_key(out, "spread", n->spread);
    json_key(out, "low", n->low), json_key(out, "high", n->high);
    json_key(out, "seconds_per_epoch", n->seconds);
    fputc('}', out);
}

static void json_notes(FILE *out, const paper_cell *p) {
    const char *known;
    fputs(", \"notes\": [", out);
    for (int i = 0; (known = paper_note(p, i)) != NULL; i++) fputs(i ? ", " : "", out), json_string(out, known);
    fputc(']', out);
}

/* Sources of our numbers: the presets, and the paper's code. */
enum { WHOSE = PAPER_PRESETS + 1 };
static const char *whose_name(int i) {
    return i < PAPER_PRESETS ? paper_preset((mtan_preset)i) : paper_rerun;
}

static void json_cell(FILE *out, const table_choice *c, const result *results, const paper_cell *p,
                      const char *absent) {
    const paper_row *row = paper_row_of(p->table, p->row);
    fprintf(out, "{\"table\": %d, \"row\": \"%s\", \"title\": \"%s\", \"data\": \"%s\", \"metric\": \"%s\"", p->table,
            p->row, row->title, p->data, p->metric);
    json_key(out, "paper", p->value), json_key(out, "paper_spread", p->spread);
    json_key(out, "paper_minutes_per_epoch", strcmp(p->data, "physionet") == 0 ? row->minutes : (double)NAN);
    for (int i = 0; i < WHOSE; i++) {
        const table_number n = table_number_of(c, results, p, whose_name(i));
        json_ours(out, &n, whose_name(i));
    }
    json_notes(out, p);
    if (absent) fputs(", \"no_data\": ", out), json_string(out, absent);
    fputc('}', out);
}

static void print_json(FILE *out, const table_choice *c, const result *results, table_no_data no_data, void *context) {
    int n = 0;
    fputc('[', out);
    for (const paper_cell *p = paper_cells; p->table; p++) {
        if (!is_shown(c, results, p)) continue;
        fputs(n++ ? ",\n " : "", out);
        json_cell(out, c, results, p, no_data(context, p->data));
    }
    fputs("]\n", out);
}

/* A missing number is an empty field. */
static void csv_real(FILE *out, double x) {
    if (isnan(x)) fputc(',', out);
    else fprintf(out, ",%.9g", x);
}

static void csv_line(FILE *out, const paper_cell *p, const char *whose, const table_number *n) {
    fprintf(out, "%d,%s,%s,%s,%s", p->table, p->row, p->data, p->metric, whose);
    csv_real(out, n->mean), csv_real(out, n->spread), csv_real(out, n->low), csv_real(out, n->high);
    fprintf(out, ",%d,%d,%d", n->runs, n->diverged, n->other);
    csv_real(out, n->seconds);
    fputc('\n', out);
}

/* Prints a line for the paper's number, one for each preset, and one for the paper's code. */
static void print_csv(FILE *out, const table_choice *c, const result *results) {
    fputs("table,row,data,metric,whose,mean,spread,low,high,seeds,diverged,other_options,seconds_per_epoch\n", out);
    for (const paper_cell *p = paper_cells; p->table; p++) {
        const paper_row *row = paper_row_of(p->table, p->row);
        if (!is_shown(c, results, p)) continue;
        csv_line(out, p, "paper",
                 &(table_number){.mean = p->value,
                                 .spread = p->spread,
                                 .low = NAN,
                                 .high = NAN,
                                 .seconds = strcmp(p->data, "physionet") == 0 ? 60 * row->minutes : (double)NAN});
        for (int i = 0; i < WHOSE; i++) {
            const table_number n = table_number_of(c, results, p, whose_name(i));
            csv_line(out, p, whose_name(i), &n);
        }
    }
}

void table_print(FILE *out, table_format format, const table_choice *c, const result *results, table_no_data no_data,
                 void *context) {
    if (format == TABLE_JSON) print_json(out, c, results, no_data, context);
    else if (format == TABLE_CSV) print_csv(out, c, results);
    else print_tables(out, format, c, results, no_data, context);
}
