/* mtan table: the paper's numbers and runs, the file of results, what is missing, what is printed; and the command on a few made-up
 * records in the form of PhysioNet's. */
#define _POSIX_C_SOURCE 200809L
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command_line.h"
#include "../../tools/mtan/model/bundle.h"
#include "../../tools/mtan/model/plan.h"
#include "../../tools/mtan/paper/limits.h"
#include "../../tools/mtan/paper/origin.h"
#include "../../tools/mtan/paper/table.h"

enum { PATIENTS = 40 };

static int64_t first_seeds[] = {0, 1};

/* All tables, and seeds 0 and 1. */
static table_choice all_tables(void) {
    table_choice c;
    memset(&c, 0, sizeof c);
    for (int t = 1; t <= PAPER_TABLES; t++) c.tables[t] = 1;
    c.preset = -1;
    for (int i = 0; i < 2; i++) arrput(c.seeds, first_seeds[i]);
    return c;
}

static result result_of(int table, const char *row, const char *data, const char *preset, int64_t seed,
                        const char *metric, double value) {
    result r;
    memset(&r, 0, sizeof r);
    r.table = table, r.seed = seed, r.value = value, r.epochs = 12, r.best_epoch = 7, r.threads = 2, r.seconds = 1.5;
    r.low = value - 0.03, r.high = value + 0.02;
    snprintf(r.row, sizeof r.row, "%s", row), snprintf(r.data, sizeof r.data, "%s", data);
    snprintf(r.preset, sizeof r.preset, "%s", preset), snprintf(r.metric, sizeof r.metric, "%s", metric);
    snprintf(r.backend, sizeof r.backend, "scalar");
    snprintf(r.command, sizeof r.command, "mtan train %s-%s --preset %s --seed %d", data, row, preset, (int)seed);
    snprintf(r.date, sizeof r.date, "2026-01-01T00:00:00Z");
    snprintf(r.commit, sizeof r.commit, "0123456789+"), snprintf(r.machine, sizeof r.machine, "a CPU x 2");
    return r;
}

static const char *all_there(void *context, const char *data) {
    return context && strcmp(data, "mimic3") == 0 ? "no data: ask for it" : NULL;
}

/* What is printed, for people or for programs; free it. */
static char *printed(const table_choice *c, const result *results, table_format format, int no_mimic) {
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    if (!out) perror("mtan: memory"), exit(2);
    table_print(out, format, c, results, all_there, no_mimic ? &n : NULL);
    fclose(out);
    return text;
}

/* ---- the paper ---- */

static const paper_cell *cell_of(int table, const char *row, const char *data, const char *metric) {
    for (const paper_cell *p = paper_cells; p->table; p++)
        if (p->table == table && strcmp(p->row, row) == 0 && strcmp(p->data, data) == 0 &&
            strcmp(p->metric, metric) == 0)
            return p;
    return NULL;
}

/* A row whose runs are in another table has that table's number, rounded. */
TEST rows_have_a_home(void) {
    for (const paper_cell *p = paper_cells; p->table; p++) {
        const paper_row *row = paper_row_of(p->table, p->row);
        const paper_cell *home;
        ASSERT(row);
        ASSERT((home = cell_of(row->home, row->home_row, p->data, p->metric)) != NULL);
        if (row->home != p->table) ASSERT(fabs(home->value - p->value) < 0.0006);
        ASSERT(isnan(p->value) || (p->value > 0 && p->value < 1));
    }
    ASSERT(paper_row_of(3, "gru-d") == NULL);
    PASS();
}

/* Every number comes from one run of each preset that its row has, and no two runs give the same. */
TEST every_number_has_its_run(void) {
    paper_run *runs = NULL;
    paper_runs(&runs, 0);
    for (const paper_cell *p = paper_cells; p->table; p++) {
        table_choice c;
        paper_run *missing;
        memset(&c, 0, sizeof c);
        c.tables[p->table] = 1, c.preset = -1, c.only = p->row;
        arrput(c.seeds, 0);
        missing = table_missing(&c, NULL);
        for (int preset = 0; preset < PAPER_PRESETS; preset++) {
            const int wanted = paper_row_has(paper_row_of(p->table, p->row)->home_row, (mtan_preset)preset);
            int found = 0;
            for (size_t i = 0; i < arrlenu(missing); i++) {
                char words[160], word[40];
                snprintf(words, sizeof words, " %s ", missing[i].metrics);
                snprintf(word, sizeof word, " %s ", p->metric);
                found += (int)missing[i].preset == preset && strcmp(missing[i].data, p->data) == 0 &&
                         strstr(words, word) != NULL;
            }
            if (found != wanted)
                printf("  BAD table %d %s %s %s: %d runs\n", p->table, p->row, p->data, p->metric, found);
            ASSERT_EQ(wanted, found);
        }
        arrfree(missing), arrfree(c.seeds);
    }
    arrfree(runs);
    PASS();
}

/* A run's command is one that `mtan train` takes, and a model trained so is known for that run. */
TEST runs_are_known_again(void) {
    paper_run *runs = NULL;
    paper_runs(&runs, 2);
    for (size_t i = 0; i < arrlenu(runs); i++) {
        char line[480], described[400], *word[32];
        int n = 0;
        options o;
        plan p;
        paper_command(&runs[i], line, sizeof line);
        for (char *at = strtok(line, " "); at && n < 32; at = strtok(NULL, " ")) word[n++] = at;
        ASSERT(options_parse(&o, n, word));
        ASSERT(plan_make(&p, &o));
        ASSERT_EQ_FMT(2, (int)p.seed, "%d");
        ASSERT(plan_describe(&p, described, sizeof described));
        ASSERT_STR_EQ(runs[i].options, described);
        ASSERT_EQ_FMT((ptrdiff_t)i, paper_run_of(runs, p.name, p.source.preset, described), "%td");
    }
    arrfree(runs);
    PASS();
}

/* What a line of results says of a run is how it was made. */
TEST a_plan_is_described_by_its_options(void) {
    static const char *const given[] = {" --fit all", " --by-group",     " --fold 1 --folds 4", " --split-seed 7",
                                        " --lr 0.01", " --scale zscore", " --forecast 0.25",    " --select last"};
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        char line[160], described[400], *word[16];
        int n = 0;
        options o;
        plan p;
        snprintf(line, sizeof line, "mtan train toy-interp%s", given[i]);
        for (char *at = strtok(line, " "); at; at = strtok(NULL, " ")) word[n++] = at;
        ASSERT(options_parse(&o, n, word) && plan_make(&p, &o));
        ASSERT(plan_describe(&p, described, sizeof described));
        ASSERT_STR_EQ(given[i], described);
    }
    PASS();
}

TEST other_options_are_the_same_row_or_none(void) {
    paper_run *runs = NULL;
    ptrdiff_t at;
    paper_runs(&runs, 0);
    at = paper_run_of(runs, "physionet-enc", MTAN_CORRECT, " --lr 0.01 --enc-hidden 64");
    ASSERT(at >= 0);
    ASSERT_STR_EQ("mtand-enc", runs[at].row);
    at = paper_run_of(runs, "physionet-full", MTAN_FAITHFUL, " --lr 0.01 --embedding fixed");
    ASSERT(at >= 0 && runs[at].table == 3);
    ASSERT_EQ(-1, paper_run_of(runs, "physionet-full", MTAN_FAITHFUL, " --decoder rbf"));
    ASSERT_EQ(-1, paper_run_of(runs, "toy-interp", MTAN_CORRECT, ""));
    ASSERT_EQ(-1, paper_run_of(runs, "toy-interp", MTAN_CORRECT, " --latent 100"));
    ASSERT(paper_run_of(runs, "toy-interp", MTAN_CORRECT, " --latent 10") >= 0);
    ASSERT_EQ(-1, paper_run_of(runs, "physionet-interp", MTAN_FAITHFUL, " --observed 0.55"));
    ASSERT_EQ(-1, paper_run_of(runs, "mimic3-enc", MTAN_FAITHFUL, " --fold 3"));
    ASSERT_EQ(-1, paper_run_of(runs, "own", MTAN_CORRECT, ""));
    arrfree(runs);
    PASS();
}

/* NumPy's, of the same curves and test records: interp; solve with the ten weights; solve with a Gaussian kernel of length 0.1 and
 * noise 1e-4. */
TEST limits_are_numpys(void) {
    static const struct {
        const char *row;
        double interpolation, reconstruction;
    } expected[] = {
        {"lines", 0.0302651231, 0}, {"kernel", 0.00287058036, 2.3565e-7}, {"process", 0.00584724679, 1.0031e-6}};
    for (size_t i = 0; i < 3; i++) {
        limit_error e;
        ASSERT(limit_named(expected[i].row));
        ASSERT(limit_measure(&e, expected[i].row, 50));
        ASSERT(fabs(e.interpolation - expected[i].interpolation) < 1e-5 * expected[i].interpolation);
        ASSERT(fabs(e.reconstruction - expected[i].reconstruction) < 1e-8);
        ASSERT(e.interpolation_range.low < e.interpolation && e.interpolation < e.interpolation_range.high);
    }
    ASSERT(!limit_named("mtand-full-10"));
    PASS();
}

/* ---- what is asked for ---- */

TEST seeds_are_parsed(void) {
    static const char *const bad[] = {"", "a", "1,", ",1", "1-", "3-1", "-1", "1;2", "0-100000", "99999999999"};
    int64_t *seeds;
    ASSERT(table_seeds(&seeds, "7,0-2"));
    ASSERT(arrlen(seeds) == 4 && seeds[0] == 7 && seeds[1] == 0 && seeds[3] == 2);
    arrfree(seeds);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) ASSERT(!table_seeds(&seeds, bad[i]));
    PASS();
}

TEST rows_are_chosen(void) {
    table_choice c = all_tables();
    c.only = "gru-d,ip-nets/activity,toy";
    ASSERT(table_wants(&c, 2, "gru-d", "mimic3"));
    ASSERT(table_wants(&c, 2, "ip-nets", "activity") && !table_wants(&c, 2, "ip-nets", "physionet"));
    ASSERT(table_wants(&c, 4, "ip-nets", "activity") && table_wants(&c, 5, "l-ode-ode-10", "toy"));
    ASSERT(!table_wants(&c, 2, "rnn-dt", "physionet"));
    c.only = "mtand-full/physionet"; /* a row that has its home elsewhere */
    ASSERT(table_wants(&c, 3, "learned", "physionet") && !table_wants(&c, 3, "positional", "physionet"));
    ASSERT(table_only_exists("gru-d,physionet,toy") && table_only_exists("seft/mimic3"));
    ASSERT(!table_only_exists("gru") && !table_only_exists("gru-d,gru") && !table_only_exists("") &&
           !table_only_exists("gru-d/toy"));
    arrfree(c.seeds);
    PASS();
}

static size_t count_missing(const table_choice *c, const result *results) {
    paper_run *runs = table_missing(c, results);
    const size_t n = arrlenu(runs);
    arrfree(runs);
    return n;
}

TEST what_is_missing_is_found(void) {
    table_choice c = all_tables();
    result *results = NULL;
    paper_run *runs;
    c.only = "gru-d";
    ASSERT_EQ_FMT((size_t)16, count_missing(&c, NULL), "%zu"); /* three data sets and a split, two seeds, two presets */
    arrput(results, result_of(2, "gru-d", "physionet", "correct", 0, "auc", 0.8));
    arrput(results, result_of(2, "gru-d", "activity", "correct", 0, "auc", 0.8)); /* not the metric of this set */
    ASSERT_EQ_FMT((size_t)15, count_missing(&c, results), "%zu");
    arrput(results, result_of(2, "gru-d", "mimic3", "faithful", 1, "auc", NAN)); /* diverged: done */
    ASSERT_EQ_FMT((size_t)14, count_missing(&c, results), "%zu");
    c.preset = MTAN_CORRECT;
    ASSERT_EQ_FMT((size_t)7, count_missing(&c, results), "%zu");
    c.preset = -1;
    runs = table_missing(&c, results);
    ASSERT(runs[0].seed == 0 && runs[0].preset == MTAN_CORRECT && strcmp(runs[0].data, "mimic3") == 0);
    ASSERT(arrlast(runs).seed == 1 && arrlast(runs).preset == MTAN_FAITHFUL);
    arrfree(runs);
    memset(c.tables, 0, sizeof c.tables);
    c.tables[4] = 1, c.only = NULL; /* IP-Nets and mTAND-Enc are runs of table 2 */
    runs = table_missing(&c, results);
    ASSERT_EQ_FMT((size_t)42, arrlenu(runs), "%zu");
    for (size_t i = 0; i < arrlenu(runs); i++) ASSERT(runs[i].table == (strstr(runs[i].row, "rbf") ? 4 : 2));
    arrfree(runs), arrfree(results), arrfree(c.seeds);
    PASS();
}

/* The published code has a model for every share, the correct preset one for all: it is done when all its numbers are there. */
TEST a_run_of_many_numbers_needs_them_all(void) {
    table_choice c = all_tables();
    result *results = NULL;
    char metric[24];
    arrsetlen(c.seeds, 1);
    memset(c.tables, 0, sizeof c.tables);
    c.tables[1] = 1, c.only = "rnn-vae";
    ASSERT_EQ_FMT((size_t)6, count_missing(&c, NULL), "%zu");
    for (int share = 50; share <= 90; share += 10)
        for (int all = 0; all < 2; all++) {
            snprintf(metric, sizeof metric, all ? "mse-all-%d" : "mse-%d", share);
            ASSERT_EQ_FMT((size_t)6, count_missing(&c, results), "%zu");
            arrput(results, result_of(1, "rnn-vae", "physionet", "correct", 0, metric, 0.01));
        }
    ASSERT_EQ_FMT((size_t)5, count_missing(&c, results), "%zu");
    arrput(results, result_of(1, "rnn-vae", "physionet", "faithful", 0, "mse-70", 0.01));
    ASSERT_EQ_FMT((size_t)5, count_missing(&c, results), "%zu");
    arrput(results, result_of(1, "rnn-vae", "physionet", "faithful", 0, "mse-all-70", 0.01));
    ASSERT_EQ_FMT((size_t)4, count_missing(&c, results), "%zu");
    arrfree(results), arrfree(c.seeds);
    PASS();
}

/* ---- the file of results ---- */

TEST results_survive_their_file(void) {
    result some[3] = {result_of(2, "seft", "physionet", "correct", 10, "auc", 0.123456789),
                      result_of(2, "gru-d", "physionet", "correct", 9, "auc", NAN),
                      result_of(1, "l-ode-ode", "physionet", "faithful", 0, "mse-50", 0.00672)},
           *list;
    char error[512], *text;
    some[1].epochs = 0, some[1].seconds = some[1].low = some[1].high = NAN, some[1].threads = 0;
    snprintf(some[2].command, sizeof some[2].command, "tabs\tand\nlines");
    ASSERT(results_read(&list, command_path("r.tsv"), error) && arrlen(list) == 0); /* no file, no results */
    ASSERT(results_add(command_path("r.tsv"), some, 3, error));
    ASSERT(results_read(&list, command_path("r.tsv"), error));
    ASSERT_EQ(3, arrlen(list));
    ASSERT_STR_EQ("l-ode-ode", list[0].row); /* sorted */
    ASSERT_STR_EQ("gru-d", list[1].row);
    ASSERT_STR_EQ("tabs and lines", list[0].command);
    ASSERT(isnan(list[1].value) && isnan(list[1].seconds) && list[1].epochs == 0 && list[1].threads == 0);
    ASSERT(fabs(list[2].value - 0.123456789) < 1e-12 && list[2].epochs == 12 && list[2].best_epoch == 7);
    ASSERT(list[2].threads == 2 && fabs(list[2].seconds - 1.5) < 1e-9 && list[2].seed == 10);
    ASSERT(fabs(list[2].low - 0.093457) < 1e-6 && fabs(list[2].high - 0.143457) < 1e-6 && isnan(list[1].low));
    ASSERT_STR_EQ("0123456789+", list[2].commit);
    ASSERT_STR_EQ("a CPU x 2", list[2].machine);
    arrfree(list);
    text = command_text("r.tsv");
    ASSERT(strncmp(text, "table\trow\tdata\tpreset\tseed\tmetric\tvalue\t", 40) == 0);
    ASSERT(results_add(command_path("r.tsv"), NULL, 0, error)); /* the same bytes again */
    char *again = command_text("r.tsv");
    ASSERT_STR_EQ(text, again);
    free(text), free(again);
    PASS();
}

TEST the_later_of_two_results_counts(void) {
    result r = result_of(2, "gru-d", "physionet", "correct", 0, "auc", 0.5), *list;
    char error[512];
    snprintf(r.date, sizeof r.date, "2026-05-01T00:00:00Z");
    ASSERT(results_add(command_path("r.tsv"), &r, 1, error));
    r.value = 0.6, snprintf(r.date, sizeof r.date, "2026-04-30T23:59:59Z");
    ASSERT(results_add(command_path("r.tsv"), &r, 1, error));
    ASSERT(results_read(&list, command_path("r.tsv"), error) && arrlen(list) == 1 && list[0].value < 0.55);
    arrfree(list);
    r.value = 0.7, snprintf(r.date, sizeof r.date, "2026-05-02T00:00:00Z");
    ASSERT(results_add(command_path("r.tsv"), &r, 1, error));
    ASSERT(results_read(&list, command_path("r.tsv"), error) && arrlen(list) == 1 && list[0].value > 0.65);
    arrfree(list);
    PASS();
}

#define LINE(seed, value)                                                                                              \
    "2\tgru-d\tphysionet\tcorrect\t" seed "\tauc\t" value "\t3\t2\t1.5\t2\tavx2\tmtan train\t2026-01-01\n"

/* git marks what two branches have put in one place; here both count. */
TEST a_merge_keeps_both_sides(void) {
    result *list;
    char error[512];
    command_append("r.tsv", "table\trow\n<<<<<<< HEAD\n" LINE("0", "0.8") "=======\n" LINE("1", "0.9")
                                LINE("2", "nan") ">>>>>>> other\n\n");
    ASSERT(results_read(&list, command_path("r.tsv"), error));
    ASSERT_EQ(3, arrlen(list));
    ASSERT(list[0].seed == 0 && list[1].seed == 1 && isnan(list[2].value));
    ASSERT(isnan(list[0].low) && isnan(list[0].high)); /* lines of before there were intervals */
    ASSERT_STR_EQ("-", list[0].commit);
    arrfree(list);
    ASSERT(results_add(command_path("r.tsv"), NULL, 0, error)); /* without the marks */
    char *text = command_text("r.tsv");
    ASSERT(!strstr(text, "<<<<"));
    free(text);
    PASS();
}

TEST a_bad_line_is_named(void) {
    static const char *const bad[] = {LINE("x", "0.8"), LINE("0", "0,8"),  LINE("", "1"),          "2\tgru-d\n",
                                      "hello\n",        LINE("-1", "0.8"), LINE("5000000000", "1")};
    result *list;
    char error[512];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        remove(command_path("r.tsv"));
        command_append("r.tsv", LINE("0", "0.8"));
        command_append("r.tsv", bad[i]);
        ASSERT(!results_read(&list, command_path("r.tsv"), error));
        ASSERT(list == NULL && strstr(error, "r.tsv:2: not a line of results"));
        ASSERT(!results_add(command_path("r.tsv"), NULL, 0, error)); /* and the file stays */
        ASSERT(command_says("r.tsv", bad[i]));
    }
    PASS();
}

/* Each column of a good line, as it cannot be. */
TEST every_column_is_checked(void) {
    static const char *const good[] = {
        "2",   "gru-d", "physionet",  "correct",  "0",    "auc",          "0.8",
        "3",   "2",     "1.5",        "4",        "avx2", "mtan train x", "2024-01-01T00:00:00Z",
        "0.7", "0.9",   "0123abcdef", "a CPU x 2"};
    static const char *const bad[][2] = {
        {"0", "100"},   {"", NULL},    {"", NULL},     {"", NULL},     {"-1", "nan"}, {"", NULL},
        {"1e301", "x"}, {"-1", "3e9"}, {"-1", "many"}, {"-1", "1e13"}, {"-1", "x"},   {"", NULL},
        {"", NULL},     {"", NULL},    {"", "x"},      {"1e301", "x"}, {"", NULL},    {"", "a CPU\t1"}};
    enum { COLUMNS = sizeof good / sizeof good[0] };
    char line[2048], error[512];
    result *list;
    for (int column = -1; column < COLUMNS; column++)
        for (int k = 0; k < 3; k++) {
            char longest[600];
            memset(longest, 'x', sizeof longest - 1), longest[sizeof longest - 1] = 0;
            const char *text = column < 0 ? NULL : k < 2 ? bad[column][k] : longest;
            if ((column >= 0 && !text) || (column < 0 && k > 0)) continue;
            line[0] = 0;
            for (int i = 0; i < COLUMNS; i++) strcat(strcat(line, i ? "\t" : ""), i == column ? text : good[i]);
            command_write("r.tsv", strcat(line, "\n"));
            if (column < 0) ASSERT(results_read(&list, command_path("r.tsv"), error) && arrlen(list) == 1);
            else
                ASSERTm(line, !results_read(&list, command_path("r.tsv"), error) &&
                                  strstr(error, "r.tsv:1: not a line of results"));
            arrfree(list);
        }
    PASS();
}

/* ---- numbers and words ---- */

TEST numbers_are_means_over_seeds(void) {
    table_choice c = all_tables();
    const paper_cell *cell = cell_of(2, "gru-d", "physionet", "auc");
    result *results = NULL;
    table_number n;
    arrput(results, result_of(2, "gru-d", "physionet", "correct", 0, "auc", 0.80));
    arrput(results, result_of(2, "gru-d", "physionet", "correct", 1, "auc", 0.84));
    arrput(results, result_of(2, "gru-d", "physionet", "correct", 5, "auc", 0.88));
    arrput(results, result_of(2, "gru-d", "physionet", "faithful", 0, "auc", NAN));
    n = table_number_of(&c, results, cell, "correct"); /* seeds 0 and 1 */
    ASSERT(n.runs == 2 && n.diverged == 0 && n.other == 0 && fabs(n.mean - 0.82) < 1e-12);
    ASSERT(fabs(n.spread - 0.04 / sqrt(2)) < 1e-12 && fabs(n.seconds - 1.5) < 1e-12);
    ASSERT(fabs(n.low - 0.79) < 1e-12 && fabs(n.high - 0.84) < 1e-12);
    c.all_seeds = 1;
    n = table_number_of(&c, results, cell, "correct");
    ASSERT(n.runs == 3 && fabs(n.mean - 0.84) < 1e-12 && fabs(n.spread - 0.04) < 1e-12);
    n = table_number_of(&c, results, cell, "faithful");
    ASSERT(n.runs == 0 && n.diverged == 1 && isnan(n.mean) && isnan(n.spread));
    strcat(results[0].command, " --lr 0.1");
    ASSERT_EQ(1, table_number_of(&c, results, cell, "correct").other);
    arrfree(results), arrfree(c.seeds);
    PASS();
}

/* Two standard errors: of the paper's number, of the seeds and of the test records. */
TEST what_differs_is_found(void) {
    const paper_cell cell = {2, "seft", "physionet", "auc", 0.8, 0.03};
    table_number n = {.runs = 4, .mean = 0.9, .spread = NAN, .low = NAN, .high = NAN};
    ASSERT(!table_differs(&n, &cell)); /* of one number nobody knows */
    n.spread = 0.08;                   /* 0.03 and 0.08 / 2 make 0.05 */
    n.mean = 0.9001;
    ASSERT(table_differs(&n, &cell));
    n.mean = 0.8999;
    ASSERT(!table_differs(&n, &cell));
    n.mean = 0.69;
    ASSERT(table_differs(&n, &cell));
    n.low = 0.69 - 1.959964 * 0.12, n.high = 0.69 + 1.959964 * 0.12; /* 0.05 and 0.12 make 0.13 */
    ASSERT(!table_differs(&n, &cell));
    n.mean = 0.53;
    ASSERT(table_differs(&n, &cell));
    PASS();
}

/* A line that differs says why, or that nobody knows. */
TEST what_differs_has_a_footnote(void) {
    table_choice c = all_tables();
    result *results = NULL;
    char *text;
    c.only = "seft/physionet";
    arrput(results, result_of(2, "seft", "physionet", "correct", 0, "auc", 0.80));
    text = printed(&c, results, TABLE_TEXT, 0);
    ASSERT(!strstr(text, paper_unexplained));
    free(text);
    results[0].value = 0.9, results[0].low = 0.88, results[0].high = 0.92;
    text = printed(&c, results, TABLE_MARKDOWN, 0);
    ASSERT(strstr(text, "SeFT<sup>a</sup>") && strstr(text, "| 0.880-0.920 |") && strstr(text, "no reason was found"));
    free(text);
    snprintf(results[0].row, sizeof results[0].row, "ode-rnn");
    c.only = "ode-rnn/physionet";
    text = printed(&c, results, TABLE_TEXT, 0);
    ASSERT(strstr(text, "ODE-RNN a,b") && strstr(text, "backwards over the gap") && !strstr(text, paper_unexplained));
    free(text), arrfree(results), arrfree(c.seeds);
    PASS();
}

/* Numbers of the published code have a column of their own and are nobody's other options. */
TEST the_published_code_has_a_column(void) {
    table_choice c = all_tables();
    result *results = NULL;
    char *text;
    c.only = "mtand-enc/physionet";
    arrput(results, result_of(2, "mtand-enc", "physionet", "published", 0, "auc", 0.834));
    text = printed(&c, results, TABLE_MARKDOWN, 0);
    ASSERT(strstr(text, "|  | paper | its code here | faithful |"));
    ASSERT(strstr(text, "| 0.854 +- 0.001 | 0.834 | - | 0 | - |") && !strstr(text, "other options"));
    free(text), arrfree(results), arrfree(c.seeds);
    PASS();
}

TEST tables_are_printed(void) {
    table_choice c = all_tables();
    result *results = NULL;
    char *text;
    arrput(results, result_of(2, "rnn-vae", "physionet", "correct", 0, "auc", 0.80));
    arrput(results, result_of(2, "rnn-vae", "physionet", "correct", 1, "auc", 0.84));
    arrput(results, result_of(2, "rnn-vae", "physionet", "faithful", 0, "auc", NAN));
    arrput(results, result_of(1, "mtand-full", "physionet", "correct", 0, "mse-50", 0.0045678));
    snprintf(arrlast(results).command, 480, "mtan train physionet-interp --preset correct --seed 0");
    arrput(results, result_of(2, "mtand-enc", "physionet", "best", 0, "auc", 0.861));
    snprintf(arrlast(results).command, 480, "mtan train physionet-enc --preset best --seed 0");
    text = printed(&c, results, TABLE_TEXT, 1);
    ASSERT(strstr(text, "Table 1. ") && strstr(text, "Table 5. "));
    ASSERT(strstr(text,
                  "\n  RNN-VAE e,f                0.515 +- 0.040   -               diverged             0             -"
                  "  0.820 +- 0.028       2   0.790-0.840  -                    0             -\n"));
    ASSERT(strstr(text,
                  "\n  mTAND-Full c               4.139 +- 0.029   -               -                    0             "
                  "-  4.568"));
    ASSERT(strstr(text, "faithful         seeds  95 % of test  correct          seeds  95 % of test  best "));
    ASSERT(strstr(text, "  0.861                1   0.831-0.881\n"));
    ASSERT(strstr(text, "MIMIC-III, AUC") && strstr(text, "no data: ask for it"));
    ASSERT(strstr(text, "reverses the batch") && strstr(text, "some runs diverged"));
    ASSERT(!strstr(text, " \n") && !strstr(text, "other options"));
    free(text);
    memset(c.tables, 0, sizeof c.tables);
    c.tables[2] = 1, c.only = "gru-d/activity";
    text = printed(&c, results, TABLE_TEXT, 0);
    ASSERT(!strstr(text, "Table 1.") && !strstr(text, "RNN-VAE") && strstr(text, "GRU-D"));
    free(text), arrfree(results), arrfree(c.seeds);
    PASS();
}

TEST programs_get_json(void) {
    table_choice c = all_tables();
    result *results = NULL;
    char *text;
    c.only = "rnn-vae/physionet";
    arrput(results, result_of(2, "rnn-vae", "physionet", "correct", 0, "auc", 0.75));
    text = printed(&c, results, TABLE_JSON, 0);
    ASSERT(text[0] == '[' && strcmp(text + strlen(text) - 3, "}]\n") == 0);
    ASSERT(strstr(text,
                  "{\"table\": 2, \"row\": \"rnn-vae\", \"title\": \"RNN-VAE\", \"data\": \"physionet\", \"metric\": "
                  "\"auc\", \"paper\": 0.515, \"paper_spread\": 0.04, "));
    ASSERT(strstr(text,
                  "\"correct\": {\"seeds\": 1, \"diverged\": 0, \"other_options\": 0, \"mean\": 0.75, \"spread\": "
                  "null, \"low\": 0.72, \"high\": 0.77, \"seconds_per_epoch\": 1.5}"));
    ASSERT(strstr(text, "\"published\": {\"seeds\": 0, ") &&
           strstr(text, ", \"notes\": [\"the published code reverses"));
    ASSERT(strstr(text, "\"best\": {\"seeds\": 0, "));
    free(text), arrfree(results), arrfree(c.seeds);
    PASS();
}

TEST markdown_and_csv_have_the_same_numbers(void) {
    table_choice c = all_tables();
    result *results = NULL;
    char *text;
    c.only = "rnn-vae/physionet";
    arrput(results, result_of(2, "rnn-vae", "physionet", "correct", 0, "auc", 0.75));
    arrput(results, result_of(2, "rnn-vae", "physionet", "correct", 1, "auc", 0.85));
    text = printed(&c, results, TABLE_MARKDOWN, 0);
    ASSERT(strncmp(text, "## Table 1. ", 12) == 0);
    ASSERT(strstr(
        text, "\n|  | paper | its code here | faithful | seeds | 95 % of test | correct | seeds | 95 % of test | best "
              "| seeds | 95 % of test |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n| **PhysioNet, AUC** |\n"
              "| RNN-VAE<sup>a</sup> | 0.515 +- 0.040 | - | - | 0 | - | 0.800 +- 0.071 | 2 | 0.770-0.820 | - | 0 | - "
              "|\n\n<sup>a</sup> the published code reverses"));
    free(text);
    text = printed(&c, results, TABLE_CSV, 0);
    ASSERT(strstr(text, "\n2,rnn-vae,physionet,auc,paper,0.515,0.04,,,0,0,0,120\n"
                        "2,rnn-vae,physionet,auc,faithful,,,,,0,0,0,\n"
                        "2,rnn-vae,physionet,auc,correct,0.8,0.0707106781,0.77,0.82,2,0,0,1.5\n"));
    ASSERT(strstr(text, "\n2,rnn-vae,physionet,auc,published,,,,,0,0,0,\n"));
    free(text), arrfree(results), arrfree(c.seeds);
    PASS();
}

/* Human Activity has two blocks; the second, which the paper has not, shows rows with runs alone. */
TEST a_split_by_person_is_a_block_of_its_own(void) {
    table_choice c = all_tables();
    result *results = NULL;
    paper_run *runs = NULL;
    char *text;
    paper_runs(&runs, 0);
    ASSERT_STR_EQ("activity", runs[paper_run_of(runs, "activity-gru-d", MTAN_CORRECT, "")].data);
    ASSERT_STR_EQ("activity-people", runs[paper_run_of(runs, "activity-gru-d", MTAN_CORRECT, " --by-group")].data);
    ASSERT_EQ(-1, paper_run_of(runs, "physionet-gru-d", MTAN_CORRECT, " --by-group"));
    arrfree(runs);
    c.only = "activity,activity-people";
    arrput(results, result_of(2, "gru-d", "activity", "correct", 0, "accuracy", 0.9));
    text = printed(&c, results, TABLE_TEXT, 0);
    ASSERT(!strstr(text, "split by person"));
    free(text);
    arrput(results, result_of(2, "gru-d", "activity-people", "correct", 0, "accuracy", 0.75));
    snprintf(arrlast(results).command, 480, "mtan train activity-gru-d --preset correct --seed 0 --by-group");
    text = printed(&c, results, TABLE_TEXT, 0);
    const char *block = strstr(text, "\nHuman Activity split by person, accuracy ");
    ASSERT(block && strstr(block, "\n  GRU-D ") && strstr(block, " 0.750 ") && !strstr(block, "\n  RNN-Dt "));
    ASSERT(strstr(text, "all windows of a person") && !strstr(text, "other options"));
    free(text);
    c.only = "activity-people";
    text = printed(&c, results, TABLE_MARKDOWN, 0);
    ASSERT(strstr(text, "| **Human Activity split by person, accuracy<sup>a</sup>** |\n| GRU-D<sup>b</sup> | - | - | - "
                        "| 0 | - | 0.750 | 1 | 0.720-0.770 | - | 0 | - |\n"));
    free(text);
    text = printed(&c, results, TABLE_CSV, 0);
    ASSERT(strstr(text, "seconds_per_epoch\n2,gru-d,activity-people,accuracy,paper,,,,,0,0,0,\n"));
    ASSERT(strstr(text, "\n2,gru-d,activity-people,accuracy,correct,0.75,,0.72,0.77,1,0,0,1.5\n"));
    free(text);
    text = printed(&c, results, TABLE_JSON, 0);
    ASSERT(strstr(text, "\"data\": \"activity-people\"") && strstr(text, "\"mean\": 0.75") && !strstr(text, "seft"));
    free(text), arrfree(results), arrfree(c.seeds);
    PASS();
}

/* ---- the command ---- */

/* Records of half a dozen observations; who dies has a fast pulse. */
static void write_patients(void) {
    char name[64], line[160];
    if (mkdir(command_path("data"), 0777) != 0 || mkdir(command_path("data/physionet2012"), 0777) != 0 ||
        mkdir(command_path("data/physionet2012/set-a"), 0777) != 0)
        perror("mtan: build"), exit(2);
    command_append("data/physionet2012/Outcomes-a.txt",
                   "RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death\n");
    for (int i = 0; i < PATIENTS; i++) {
        snprintf(name, sizeof name, "data/physionet2012/set-a/%d.txt", 1000 + i);
        snprintf(line, sizeof line, "Time,Parameter,Value\n00:00,RecordID,%d\n00:00,Age,%d\n", 1000 + i, 40 + i);
        command_append(name, line);
        for (int k = 0; k < 6; k++) {
            snprintf(line, sizeof line, "%02d:%02d,%s,%d\n", 4 * k + 1, 7 * ((i + k) % 8), k % 2 ? "HR" : "Temp",
                     k % 2 ? (i % 3 ? 70 : 110) + k : 36 + k % 3);
            command_append(name, line);
        }
        snprintf(line, sizeof line, "%d,1,1,5,-1,%d\n", 1000 + i, i % 3 == 0);
        command_append("data/physionet2012/Outcomes-a.txt", line);
    }
}

#define TABLE "table 2 --data @/data --out @/runs --results @/r.tsv --threads 1 --quiet "

static size_t lines_of(const char *name) {
    char *text = command_text(name);
    size_t n = 0;
    for (const char *at = text; at && (at = strchr(at, '\n')) != NULL; at++) n++;
    free(text);
    return n;
}

TEST missing_runs_are_made(void) {
    write_patients();
    ASSERT_EQ_FMT(DONE, command_run(TABLE "--only gru-d --seeds 0 --dry-run"), "%d");
    ASSERT(command_says("out.txt", "mtan train physionet-gru-d --data "));
    ASSERT_EQ_FMT((size_t)2, lines_of("out.txt"), "%zu"); /* the other two data sets are not there */
    ASSERT_EQ_FMT(DONE, command_run(TABLE "--only gru-d --seeds 0,1 --epochs 2 --budget 5"), "%d");
    ASSERT(command_says("out.txt", "  GRU-D "));
    ASSERT(command_says("out.txt", "other options than the row's")); /* --epochs */
    ASSERT_EQ_FMT((size_t)5, lines_of("r.tsv"), "%zu");
    ASSERT(command_says("r.tsv", "2\tgru-d\tphysionet\tcorrect\t0\tauc\t"));
    ASSERT(command_says("r.tsv", "mtan train physionet-gru-d --preset faithful --seed 1 --epochs 2\t"));
    char origin[128], machine[80];
    origin_machine(machine, sizeof machine);
    snprintf(origin, sizeof origin, "\t%s\t%s\n", origin_commit(), machine);
    ASSERT(command_says("r.tsv", origin));
    ASSERT_EQ_FMT(DONE, command_run(TABLE "--only gru-d --seeds 0,1 --dry-run"), "%d");
    ASSERT_EQ_FMT((size_t)0, lines_of("out.txt"), "%zu");
    PASS();
}

/* The same data, two splits: runs, folders and lines of results apart. */
TEST runs_by_person_are_made(void) {
    if (mkdir(command_path("data"), 0777) != 0) perror("mtan: build"), exit(2);
    command_activity("data/activity");
    ASSERT_EQ_FMT(DONE, command_run(TABLE "--only gru-d --seeds 0 --preset correct --dry-run"), "%d");
    ASSERT_EQ_FMT((size_t)2, lines_of("out.txt"), "%zu");
    ASSERT_EQ_FMT(DONE,
                  command_run(TABLE "--only gru-d/activity-people --seeds 0 --preset correct --epochs 1 --budget 5m"),
                  "%d");
    ASSERT_EQ_FMT((size_t)2, lines_of("r.tsv"), "%zu");
    ASSERT(command_says("r.tsv", "2\tgru-d\tactivity-people\tcorrect\t0\taccuracy\t"));
    ASSERT(command_says("r.tsv", "\tmtan train activity-gru-d --preset correct --seed 0 --epochs 1 --by-group\t"));
    ASSERT(command_says("out.txt", "Human Activity split by person, accuracy"));
    ASSERT_EQ_FMT(DONE, command_run(TABLE "--add @/runs/2.gru-d.activity-people.correct.0/best.safetensors"), "%d");
    ASSERT_EQ_FMT((size_t)2, lines_of("r.tsv"), "%zu"); /* known again */
    ASSERT_EQ_FMT(DONE, command_run(TABLE "--only gru-d --seeds 0 --preset correct --dry-run"), "%d");
    ASSERT_EQ_FMT((size_t)1, lines_of("out.txt"), "%zu");
    PASS();
}

/* What is printed and kept is the same wherever the data lies: `make tables` writes it into the project. */
TEST no_path_of_the_machine_is_printed(void) {
    static const char *const formats[] = {"", "--markdown", "--csv", "--json"};
    char line[200];
    write_patients();
    ASSERT_EQ_FMT(DONE, command_run(TABLE "--only rnn-dt --seeds 0 --preset correct --epochs 1 --budget 5m"), "%d");
    for (int i = 0; i < 4; i++) {
        snprintf(line, sizeof line, TABLE "%s", formats[i]);
        ASSERT_EQ_FMT(DONE, command_run(line), "%d");
        char *text = command_text("out.txt");
        ASSERTm(text, !strstr(text, command_path("")));
        free(text);
    }
    char *kept = command_text("r.tsv");
    ASSERTm(kept, !strstr(kept, command_path("")));
    free(kept);
    PASS();
}

/* What the data decides, epochs and frequencies, is no option of the row. */
TEST the_preset_best_has_its_column(void) {
    write_patients();
    ASSERT_EQ_FMT(DONE, command_run(TABLE "--only mtand-full --seeds 0 --preset best --epochs 1 --budget 5m"), "%d");
    ASSERT(command_says("r.tsv", "2\tmtand-full\tphysionet\tbest\t0\tauc\t"));
    ASSERT(command_says("r.tsv", "mtan train physionet-full --preset best --seed 0 --epochs 1\t"));
    ASSERT_EQ_FMT(DONE, command_run("inspect @/runs/2.mtand-full.physionet.best.0/best.safetensors"), "%d");
    ASSERT(command_says("out.txt", "rec.trees.share")); /* mTAND-Full has what mTAND-Enc has */
    PASS();
}

/* The run is cut after its first step, and then goes on to where an uninterrupted one comes. */
TEST a_run_that_is_cut_goes_on(void) {
    char error[512];
    result *cut, *whole;
    write_patients();
    ASSERT_EQ_FMT(DONE, command_run(TABLE "--only rnn-dt --seeds 0 --preset correct --epochs 3 --budget 0.000001s"),
                  "%d");
    ASSERT(results_read(&cut, command_path("r.tsv"), error) && arrlen(cut) == 0);
    ASSERT_EQ_FMT(DONE, command_run(TABLE "--only rnn-dt --seeds 0 --preset correct --epochs 3 --budget 0.05s"), "%d");
    ASSERT_EQ_FMT(DONE, command_run(TABLE "--only rnn-dt --seeds 0 --preset correct --epochs 3 --budget 5m"), "%d");
    ASSERT(results_read(&cut, command_path("r.tsv"), error) && arrlen(cut) == 1);
    ASSERT_EQ_FMT(DONE,
                  command_run("table 2 --data @/data --out @/again --results @/s.tsv --threads 1 --quiet --only rnn-dt "
                              "--seeds 0 --preset correct --epochs 3 --budget 5m"),
                  "%d");
    ASSERT(results_read(&whole, command_path("s.tsv"), error) && arrlen(whole) == 1);
    ASSERT(cut[0].value >= whole[0].value && cut[0].value <= whole[0].value);
    ASSERT(cut[0].epochs == 3 && whole[0].epochs == 3 && cut[0].threads == 1);
    arrfree(cut), arrfree(whole);
    PASS();
}

/* Each run is made by one of them. */
TEST processes_share_the_work(void) {
    static const char line[] = TABLE "--only gru-d --seeds 0-3 --epochs 2 --budget 5m";
    char error[512];
    result *list;
    pid_t first, second;
    write_patients();
    first = command_start(line, 0), second = command_start(line, 0);
    ASSERT_EQ_FMT(DONE, command_finish(first), "%d");
    ASSERT_EQ_FMT(DONE, command_finish(second), "%d");
    ASSERT(results_read(&list, command_path("r.tsv"), error));
    ASSERT_EQ_FMT((size_t)8, arrlenu(list), "%zu");
    arrfree(list);
    PASS();
}

TEST a_model_made_by_hand_is_added(void) {
    char error[512], *text;
    result *list;
    write_patients();
    ASSERT_EQ_FMT(DONE,
                  command_run("train physionet-rnn-dt --data @/data/physionet2012 --seed 4 --epochs 2 --enc-hidden 8 "
                              "--quiet --out @/hand"),
                  "%d");
    ASSERT_EQ_FMT(DONE, command_run(TABLE "--add @/hand/best.safetensors"), "%d");
    ASSERT(command_says("r.tsv", "mtan train physionet-rnn-dt --preset correct --seed 4 --epochs 2 --enc-hidden 8\t"));
    ASSERT(command_says("r.tsv", "2\trnn-dt\tphysionet\tcorrect\t4\tauc\t"));
    ASSERT(command_says("out.txt", "other options"));
    ASSERT(results_read(&list, command_path("r.tsv"), error) && arrlen(list) == 1);
    ASSERT_EQ_FMT(DONE, command_run("eval @/hand/best.safetensors --data @/data/physionet2012 --json --quiet"), "%d");
    text = command_text("out.txt");
    ASSERT(fabs(list[0].low - command_json(text, "{", "auc_low")) < 1e-6);
    ASSERT(fabs(list[0].high - command_json(text, "{", "auc_high")) < 1e-6 && list[0].low <= list[0].high);
    free(text), arrfree(list);
    ASSERT_EQ_FMT(DONE,
                  command_run("train own --model rnn-dt --data @/events.csv --labels @/labels.csv --epochs 1 --quiet "
                              "--out @/own"),
                  "%d");
    ASSERT_EQ_FMT(BAD_USE, command_run(TABLE "--add @/own/best.safetensors"), "%d");
    ASSERT(command_says("err.txt", "is in none of the tables"));
    PASS();
}

/* Data, a folder or a log that cannot be read is not missing: the row would look as if it had been left out. */
TEST what_cannot_be_read_is_a_failure(void) {
    ASSERT_EQ_FMT(DONE, command_run("table 2 --data @/nowhere --results @/r.tsv"), "%d");
    ASSERT(symlink("loop", command_path("loop")) == 0);
    ASSERT_EQ_FMT(BAD_USE, command_run("table 2 --data @/loop --results @/r.tsv"), "%d");
    ASSERT(command_says("err.txt", "loop: "));
    write_patients();
    ASSERT_EQ_FMT(DONE,
                  command_run("train physionet-rnn-dt --data @/data/physionet2012 --epochs 1 --enc-hidden 8 --quiet "
                              "--threads 1 --out @/hand"),
                  "%d");
    ASSERT(remove(command_path("hand/log.csv")) == 0 && mkdir(command_path("hand/log.csv"), 0777) == 0);
    ASSERT_EQ_FMT(BAD_USE, command_run(TABLE "--add @/hand/best.safetensors"), "%d");
    ASSERT(command_says("err.txt", "log.csv: "));
    PASS();
}

/* The second set of the interpolation, whose records need no outcome. */
static void write_more_patients(void) {
    char name[64];
    write_patients();
    if (mkdir(command_path("data/physionet2012/set-b"), 0777) != 0) perror("mtan: build"), exit(2);
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "data/physionet2012/set-b/%d.txt", 5000 + i);
        command_write(name,
                      "Time,Parameter,Value\n00:00,Age,50\n01:00,HR,70\n09:00,HR,80\n20:00,Temp,37\n30:00,HR,75\n");
    }
}

/* A model of curves has an error for each share of the times that the table has. */
TEST a_model_of_curves_is_added(void) {
    char error[512];
    result *list;
    write_more_patients();
    ASSERT_EQ_FMT(
        DONE,
        command_run(
            "train physionet-interp --data @/data/physionet2012 --seed 4 --epochs 1 --enc-hidden 4 --dec-hidden 4 "
            "--latent 2 --embed 4 --mlp-hidden 4 --ref-points 4 --quiet --threads 1 --out @/hand"),
        "%d");
    ASSERT_EQ_FMT(
        DONE,
        command_run("table 1 --data @/data --out @/runs --results @/r.tsv --threads 1 --add @/hand/best.safetensors"),
        "%d");
    ASSERT(command_says("err.txt", "table 1, mtand-full, physionet, correct, seed 4: mse-50 "));
    ASSERT(results_read(&list, command_path("r.tsv"), error));
    ASSERT(arrlen(list) >= 5);
    for (size_t i = 0; i < arrlenu(list); i++)
        ASSERT(list[i].table == 1 && list[i].seed == 4 && isfinite(list[i].value) && list[i].value > 0 &&
               list[i].low <= list[i].value && list[i].value <= list[i].high);
    arrfree(list);
    PASS();
}

TEST what_cannot_be_made_is_said(void) {
    write_patients();
    ASSERT(command_refused(TABLE "--add @/none", "none: No such file"));
    ASSERT(command_refused("table 2 --results @/data", "data: Is a directory"));
    ASSERT(command_refused("table 2 --budget 1d --results @/r.tsv",
                           "--budget 1d: must be minutes, or a time such as 90s, 10m or 2h"));
    ASSERT(command_refused("table 2 --budget 10mm --results @/r.tsv", "--budget 10mm: must be minutes"));
    ASSERT(command_refused("table 2 --budget 0 --results @/r.tsv", "--budget 0: must be minutes"));
    ASSERT(command_refused("table 2 --budget 99999h --results @/r.tsv", "--budget 99999h: must be minutes"));
    ASSERT(command_refused("table 0 --results @/r.tsv", "table 0: the paper has tables 1 to 5"));
    ASSERT(command_refused("table 22 --results @/r.tsv", "table 22: the paper has tables 1 to 5"));
    ASSERT(command_refused("table 2 --data @/data --out @/no/runs --results @/r.tsv --only gru-d --seeds 0 --budget 1h",
                           "no/runs: No such file"));
    command_write("runs", "a file");
    ASSERT_EQ_FMT(BAD_RESULT, command_run(TABLE "--only gru-d --seeds 0 --preset correct --epochs 1 --budget 1h"),
                  "%d");
    ASSERT(command_says("err.txt", "runs/") && command_says("err.txt", "Not a directory"));
    PASS();
}

TEST what_is_missing_is_told(void) {
    write_patients();
    ASSERT_EQ_FMT(DONE, command_run("table 2 --data @/data --results @/r.tsv --only gru-d --seeds 0 --json"), "%d");
    ASSERT(command_is_json("out.txt") && command_says("out.txt", "\"no_data\": \""));
    ASSERT(command_says("err.txt", "2 runs are missing: --budget trains them, --dry-run lists them\n"));
    ASSERT(command_says("err.txt", " runs more have no data\n"));
    ASSERT_EQ_FMT(DONE, command_run("table --data @/nowhere --results @/r.tsv --dry-run --preset faithful --seeds 0"),
                  "%d");
    ASSERT(command_says("out.txt", "mtan train toy-interp ") && command_says("err.txt", " runs more have no data\n"));
    PASS();
}

TEST bad_words_are_refused(void) {
    ASSERT_EQ_FMT(BAD_USE, command_run("table 6"), "%d");
    ASSERT(command_says("err.txt", "the paper has tables 1 to 5"));
    ASSERT_EQ_FMT(BAD_USE, command_run("table 2 --only gru --results @/r.tsv"), "%d");
    ASSERT_EQ_FMT(BAD_USE, command_run("table 2 --seeds x --results @/r.tsv"), "%d");
    ASSERT_EQ_FMT(BAD_USE, command_run("table 2 --budget soon --results @/r.tsv"), "%d");
    ASSERT(command_refused("table 2 --preset both --results @/r.tsv", "must be one of faithful, correct, best"));
    command_append("r.tsv", "nonsense\n");
    ASSERT_EQ_FMT(BAD_USE, command_run("table 2 --results @/r.tsv"), "%d");
    ASSERT(command_says("err.txt", "r.tsv:1: not a line of results"));
    PASS();
}

SUITE(table_suite) {
    GREATEST_SET_SETUP_CB(command_open, NULL);
    GREATEST_SET_TEARDOWN_CB(command_close, NULL);
    RUN_TEST(rows_have_a_home);
    RUN_TEST(every_number_has_its_run);
    RUN_TEST(runs_are_known_again);
    RUN_TEST(a_plan_is_described_by_its_options);
    RUN_TEST(other_options_are_the_same_row_or_none);
    RUN_TEST(limits_are_numpys);
    RUN_TEST(seeds_are_parsed);
    RUN_TEST(rows_are_chosen);
    RUN_TEST(what_is_missing_is_found);
    RUN_TEST(a_run_of_many_numbers_needs_them_all);
    RUN_TEST(results_survive_their_file);
    RUN_TEST(the_later_of_two_results_counts);
    RUN_TEST(a_merge_keeps_both_sides);
    RUN_TEST(a_bad_line_is_named);
    RUN_TEST(every_column_is_checked);
    RUN_TEST(numbers_are_means_over_seeds);
    RUN_TEST(what_differs_is_found);
    RUN_TEST(what_differs_has_a_footnote);
    RUN_TEST(the_published_code_has_a_column);
    RUN_TEST(tables_are_printed);
    RUN_TEST(programs_get_json);
    RUN_TEST(markdown_and_csv_have_the_same_numbers);
    RUN_TEST(a_split_by_person_is_a_block_of_its_own);
    RUN_TEST(missing_runs_are_made);
    RUN_TEST(runs_by_person_are_made);
    RUN_TEST(no_path_of_the_machine_is_printed);
    RUN_TEST(a_run_that_is_cut_goes_on);
    RUN_TEST(processes_share_the_work);
    RUN_TEST(a_model_made_by_hand_is_added);
    RUN_TEST(what_cannot_be_read_is_a_failure);
    RUN_TEST(a_model_of_curves_is_added);
    RUN_TEST(what_cannot_be_made_is_said);
    RUN_TEST(what_is_missing_is_told);
    RUN_TEST(the_preset_best_has_its_column);
    RUN_TEST(bad_words_are_refused);
}
