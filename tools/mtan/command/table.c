/* mtan table: the paper's tables next to ours. It trains missing runs for as long as --budget allows, measures them on
 * the test records, keeps the numbers in a file of results, and prints the tables from that file. A run that is cut
 * short is resumed the next time. */
#define _POSIX_C_SOURCE 200809L
#include "../paper/table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "../base/shell_word.h"
#include "commands.h"
#include "../model/data_sets.h"
#include "../base/files.h"
#include "../model/plan.h"
#include "train.h"
#include "../model/shared_options.h"
#include "../model/session.h"
#include "../paper/limits.h"
#include "../paper/origin.h"

enum { WORDS = 40, PATH_SIZE = 4096 };

/* ---- data ---- */

/* Location of a data set that is read from files. */
typedef struct data_place {
    const data_set *set;
    char found[PATH_SIZE],
        missing[512]; /* why `found` is empty; tables print it, so it names no path of this machine */
} data_place;

/* 1, 0, or -1 with a message printed: an unreadable path is an error, not a missing data set. */
static int holds(const char *path, const data_set *set) {
    char error[512];
    const int there = file_exists(path, error);
    if (there < 0) complain("%s", error);
    if (there <= 0) return there;
    errno = 0;
    const data_set *found = data_set_at(path);
    if (!found && errno) return complain("%s: %s", path, strerror(errno)), -1;
    return found == set;
}

/* Looks for a folder of --data with the data set's name, then at --data itself. 0 with a message printed. */
static int find_place(data_place *p, const char *path) {
    int found = holds(path, p->set);
    snprintf(p->found, sizeof p->found, "%s", path);
    for (int k = 0; found == 0 && p->set->folders[k]; k++) {
        snprintf(p->found, sizeof p->found, "%s/%s", path, p->set->folders[k]);
        found = holds(p->found, p->set);
    }
    if (found != 0) return found > 0;
    p->found[0] = 0;
    snprintf(p->missing, sizeof p->missing, "no data: %s in the folder of --data would hold %s", p->set->folders[0],
             p->set->how);
    return 1;
}

/* Fills an stb_ds array. 0 with a message printed. */
static int find_data(data_place **places, const char *path) {
    for (const data_set *set = data_sets; set->name; set++) {
        data_place *p;
        if (!set->folders[0]) continue;
        p = arraddnptr(*places, 1);
        p->set = set;
        if (!find_place(p, path)) return 0;
    }
    return 1;
}

/* NULL: the data set is generated, not read. */
static const data_place *place_of(const data_place *places, const char *name) {
    for (size_t i = 0; i < arrlenu(places); i++)
        if (strcmp(places[i].set->name, paper_data_set(name)) == 0) return &places[i];
    return NULL;
}

/* Path of a data set: "" for a generated one; NULL: not found. */
static const char *data_path(const data_place *places, const char *name) {
    const data_place *p = place_of(places, name);
    return !p ? "" : p->found[0] ? p->found : NULL;
}

static const char *no_data(void *context, const char *name) {
    const data_place *p = place_of(context, name);
    return p && !p->found[0] ? p->missing : NULL;
}

/* ---- command lines ---- */

typedef struct words {
    char *word[WORDS], text[2 * PATH_SIZE + 1024];
    int n, lost;
    size_t used;
} words;

/* A command line that has no room for its words is not run: `lost` says so. */
static void add_word(words *w, const char *word) {
    const size_t n = strlen(word) + 1;
    if (w->n == WORDS || w->used + n > sizeof w->text) {
        w->lost = 1;
        return;
    }
    w->word[w->n++] = memcpy(w->text + w->used, word, n);
    w->used += n;
}

static void add_words(words *w, const char *words_of) {
    char word[64];
    while (*(words_of += strspn(words_of, " "))) {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(words_of, " "), words_of);
        add_word(w, word);
        words_of += strcspn(words_of, " ");
    }
}

static void add_pair(words *w, const char *name, const char *value) {
    if (value) add_word(w, name), add_word(w, value);
}

/* Passes options of the user on to a command that is run. */
static void pass_on(words *w, const options *o) {
    add_pair(w, "--threads", option_text(o, "threads", NULL));
    add_pair(w, "--backend", option_text(o, "backend", NULL));
}

static int parse_words(options *o, words *w) {
    if (w->lost) return complain("the paths of --data and --out are too long"), 0;
    return options_parse(o, w->n, w->word);
}

/* ---- a run ---- */

typedef struct job {
    const options *options;
    data_place *places;
    const char *out, *results_path;
    table_choice choice;
    result *results;
} job;

/* 2.gru-d.physionet.correct.0; with a run for every share of the times, 1.rnn-vae.physionet.50.faithful.0. */
static void run_folder(const job *j, const paper_run *r, char path[PATH_SIZE]) {
    char share[8] = "";
    if (r->table == 1 && r->preset == MTAN_FAITHFUL) snprintf(share, sizeof share, ".%.2s", r->metrics + 4);
    snprintf(path, PATH_SIZE, "%s/%d.%s.%s%s.%s.%lld", j->out, r->table, r->row, r->data, share,
             paper_preset(r->preset), (long long)r->seed);
}

static int exists(const char *folder, const char *name) {
    char path[PATH_SIZE + 32], error[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return file_exists(path, error) == 1;
}

static void train_words(const job *j, const paper_run *r, words *w) {
    char folder[PATH_SIZE], seed[24];
    const char *data = data_path(j->places, r->data);
    memset(w, 0, sizeof *w);
    run_folder(j, r, folder);
    snprintf(seed, sizeof seed, "%lld", (long long)r->seed);
    add_words(w, "mtan train"), add_word(w, r->name);
    add_pair(w, "--data", data && *data ? data : NULL);
    add_pair(w, "--preset", paper_preset(r->preset)), add_pair(w, "--seed", seed);
    add_words(w, r->options);
    add_pair(w, "--epochs", option_text(j->options, "epochs", NULL));
    pass_on(w, j->options);
    add_pair(w, "--out", folder);
    if (exists(folder, "last.safetensors")) add_word(w, "--resume");
}

/* The command that produces a run's numbers; a limit is not trained. */
static void run_words(const job *j, const paper_run *r, words *w) {
    char line[480];
    if (!limit_named(r->row)) {
        train_words(j, r, w);
        return;
    }
    memset(w, 0, sizeof *w);
    paper_command(r, line, sizeof line);
    add_words(w, line);
}

static void print_command(FILE *out, const words *w) {
    char line[2 * PATH_SIZE] = "";
    for (int i = 0; i < w->n; i++) shell_append(line, sizeof line, w->word[i]);
    fprintf(out, "%s\n", line);
}

/* ---- measuring a model ---- */

/* Reads the number of epochs and their mean seconds from the log next to a model; nothing if there is none. 0 with a
 * message printed if it cannot be read. */
static int read_log(const char *model, result *r) {
    char path[PATH_SIZE], error[512], *text, *line;
    const char *slash = strrchr(model, '/');
    size_t bytes = 0;
    double sum = 0;
    r->epochs = 0, r->seconds = NAN;
    snprintf(path, sizeof path, "%.*slog.csv", slash ? (int)(slash + 1 - model) : 0, model);
    const int there = file_exists(path, error);
    if (there == 0) return 1;
    if (there < 0 || !(text = file_read(path, &bytes, error))) return complain("%s", error), 0;
    for (line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        const char *at = line + 1;
        for (int column = 0; column < 4 && at; column++) at = (at = strchr(at, ',')) ? at + 1 : NULL;
        if (at) sum += strtod(at, NULL), r->epochs++;
    }
    if (r->epochs) r->seconds = sum / r->epochs;
    free(text);
    return 1;
}

/* A metric of a model on its test records, with its interval over them. */
typedef struct measure {
    double value;
    interval range;
} measure;

static int measure_classes(session *s, const options *o, const char *metric, measure *m) {
    const int32_t draws = (int32_t)option_integer(o, "bootstrap", 1000);
    metric_query q;
    predictions p;
    if (!session_predict(s, o, &p)) return 0;
    predictions_drop_unlabelled(&p);
    memset(&q, 0, sizeof q);
    q.name = strcmp(metric, "accuracy") == 0 ? METRIC_ACCURACY : METRIC_AUC;
    q.table = metric_table_new(p.p, p.classes == 2 ? p.score : NULL, p.label, p.rows, p.classes);
    m->value = metric_drawn(&q, NULL, p.rows);
    m->range = metric_bootstrap(metric_drawn, &q, p.rows, p.record, draws, 0);
    metric_table_free(q.table);
    predictions_free(&p);
    return 1;
}

/* The errors at one share of the times; several metrics use them. */
typedef struct curve_errors {
    double share; /* 0: none yet */
    interpolation_error e;
} curve_errors;

static int measure_curves(session *s, const options *o, curve_errors *last, const char *metric, measure *m) {
    const int all = strncmp(metric, "mse-all-", 8) == 0, shares = strncmp(metric, "mse-", 4) == 0;
    const double share = shares ? strtod(metric + (all ? 8 : 4), NULL) / 100 : 1;
    if (fabs(share - last->share) > 0 && !session_interpolate(s, o, share, &last->e, NULL)) return 0;
    last->share = share;
    if (strcmp(metric, "interpolation") == 0) *m = (measure){last->e.truth, last->e.truth_range};
    else if (shares && !all) *m = (measure){last->e.held, last->e.held_range};
    else *m = (measure){last->e.all, last->e.all_range};
    return 1;
}

static void write_date(char date[24]) {
    const time_t now = time(NULL);
    struct tm utc;
    if (!gmtime_r(&now, &utc) || !strftime(date, 24, "%Y-%m-%dT%H:%M:%SZ", &utc)) snprintf(date, 24, "-");
}

/* Fields that all lines of a run's results share. */
static void start_result(result *r, const paper_run *run, const char *line) {
    memset(r, 0, sizeof *r);
    r->table = run->table, r->seed = run->seed;
    r->value = r->seconds = r->low = r->high = NAN;
    memcpy(r->row, run->row, sizeof r->row), memcpy(r->data, run->data, sizeof r->data);
    snprintf(r->preset, sizeof r->preset, "%s", paper_preset(run->preset));
    snprintf(r->command, sizeof r->command, "%s", line);
    snprintf(r->backend, sizeof r->backend, "-");
    snprintf(r->commit, sizeof r->commit, "%s", origin_commit());
    origin_machine(r->machine, sizeof r->machine);
    write_date(r->date);
}

/* One line for each metric of a run; s NULL: the run diverged, so there is nothing to measure. */
static int add_results(job *j, const paper_run *run, result *r, session *s, const options *o) {
    measure m = {NAN, {NAN, NAN}};
    curve_errors errors;
    result *lines = NULL;
    char error[512];
    int good = 1;
    memset(&errors, 0, sizeof errors);
    for (const char *at = run->metrics; good && *at; at = table_next(at, " ")) {
        snprintf(r->metric, sizeof r->metric, "%.*s", (int)strcspn(at, " "), at);
        if (s)
            good = s->source.interpolation ? measure_curves(s, o, &errors, r->metric, &m)
                                           : measure_classes(s, o, r->metric, &m);
        r->value = m.value, r->low = m.range.low, r->high = m.range.high;
        arrput(lines, *r);
    }
    if (good && !(good = results_add(j->results_path, lines, arrlenu(lines), error))) complain("%s", error);
    for (size_t i = 0; good && i < arrlenu(lines); i++)
        note("table %d, %s, %s, %s, seed %lld: %s %.6g", r->table, r->row, r->data, r->preset, (long long)r->seed,
             lines[i].metric, lines[i].value);
    arrfree(lines);
    return good;
}

/* Finds the run that a model file belongs to. */
static int find_run(bundle *b, const char *model, paper_run *run, char *line, size_t size) {
    paper_run *all = NULL;
    char error[512] = "", described[400];
    ptrdiff_t at = -1;
    plan p;
    if (!plan_load(&p, b, error)) return complain("%s: %s", model, error), 0;
    if (plan_describe(&p, described, sizeof described)) {
        paper_runs(&all, p.seed);
        at = paper_run_of(all, p.name, p.source.preset, described);
    }
    if (at >= 0) {
        *run = all[at];
        snprintf(line, size, "mtan train %s --preset %s --seed %lld%s", p.name, paper_preset(run->preset),
                 (long long)p.seed, described);
    } else complain("%s: %s%s is in none of the tables", model, p.name, described);
    arrfree(all);
    return at >= 0;
}

/* Measures a model on its test records and keeps the numbers. trained: 1 if this command has just trained it. */
static int add_model(job *j, const char *model, int trained) {
    char error[512] = "", line[480];
    words w;
    options o;
    session s;
    paper_run run;
    result r;
    bundle b;
    int good;
    if (!bundle_read(&b, model, error)) return complain("%s", error), 0;
    good = find_run(&b, model, &run, line, sizeof line);
    bundle_free(&b);
    if (!good) return 0;
    memset(&w, 0, sizeof w);
    add_words(&w, "mtan eval"), add_word(&w, model);
    if (!data_path(j->places, run.data)) return complain("%s", no_data(j->places, run.data)), 0;
    if (*data_path(j->places, run.data)) add_pair(&w, "--data", data_path(j->places, run.data));
    pass_on(&w, j->options);
    if (!parse_words(&o, &w) || !session_open(&s, &o, model)) return 0;
    start_result(&r, &run, line);
    if (!read_log(model, &r)) return session_close(&s), 0;
    if (!r.epochs) r.epochs = (int32_t)fmin(1e9, bundle_number(&s.bundle, "mtan.run.epoch", 0));
    r.best_epoch = (int32_t)fmin(1e9, bundle_number(&s.bundle, "mtan.run.best_epoch", 0));
    if (trained) {
        r.threads = option_threads(&o);
        snprintf(r.backend, sizeof r.backend, "%s", mtan_backend_name(s.bundle.model.backend));
    }
    good = add_results(j, &run, &r, &s, &o);
    session_close(&s);
    return good;
}

/* A diverged run is a result too, since it would diverge again. */
static int add_diverged(job *j, const paper_run *run) {
    char line[480], folder[PATH_SIZE], model[PATH_SIZE + 32];
    result r;
    paper_command(run, line, sizeof line);
    start_result(&r, run, line);
    run_folder(j, run, folder);
    snprintf(model, sizeof model, "%s/best.safetensors", folder);
    return read_log(model, &r) && add_results(j, run, &r, NULL, NULL);
}

/* A limit is measured, not trained. */
static int add_limit(job *j, const paper_run *run) {
    char line[480], error[512];
    limit_error e;
    result r[2];
    if (!limit_measure(&e, run->row, (int32_t)option_integer(j->options, "bootstrap", 1000))) return 0;
    paper_command(run, line, sizeof line);
    for (int i = 0; i < 2; i++) {
        start_result(&r[i], run, line);
        snprintf(r[i].metric, sizeof r[i].metric, "%s", i ? "interpolation" : "reconstruction");
        r[i].value = i ? e.interpolation : e.reconstruction;
        const interval range = i ? e.interpolation_range : e.reconstruction_range;
        r[i].low = range.low, r[i].high = range.high;
    }
    return results_add(j->results_path, r, 2, error) ? 1 : (complain("%s", error), 0);
}

/* ---- making the missing runs ---- */

static int load_results(job *j) {
    char error[512];
    arrfree(j->results);
    return results_read(&j->results, j->results_path, error) ? 1 : (complain("%s", error), 0);
}

/* DONE; BAD_RESULT: this run failed, others may succeed; INTERRUPTED: by a signal or by the end of the budget. */
static int make_run(job *j, const paper_run *r, train_watch *w) {
    char folder[PATH_SIZE], model[PATH_SIZE + 32];
    words line;
    options o;
    int status;
    if (limit_named(r->row)) return add_limit(j, r) ? DONE : BAD_RESULT;
    train_words(j, r, &line);
    if (!quiet()) print_command(stderr, &line);
    if (!parse_words(&o, &line)) return BAD_RESULT;
    status = train_run(&o, w);
    if (status == INTERRUPTED) return status;
    if (w->diverged) return add_diverged(j, r) ? DONE : BAD_RESULT;
    if (status != DONE) return BAD_RESULT;
    run_folder(j, r, folder);
    snprintf(model, sizeof model, "%s/best.safetensors", folder);
    return add_model(j, model, 1) ? DONE : BAD_RESULT;
}

/* Several processes may share the work: a run belongs to the process that has locked its folder, so it is not made
 * twice. */
static int take_run(job *j, const paper_run *r, train_watch *w) {
    char folder[PATH_SIZE], error[512];
    folder_hold lock;
    int status = DONE;
    run_folder(j, r, folder);
    if (folder_make(folder, error) < 0) return complain("%s", error), BAD_RESULT;
    if (!folder_lock(&lock, folder, 0)) {
        if (errno == EWOULDBLOCK) return note("%s: another process is at it", folder), DONE;
        return complain("%s: %s", folder, strerror(errno)), BAD_RESULT;
    }
    if (!load_results(j)) status = BAD_RESULT;
    else if (!table_has(j->results, r)) status = make_run(j, r, w);
    folder_unlock(&lock);
    return status;
}

/* Puts interrupted runs first and otherwise keeps the order. */
static void interrupted_first(const job *j, paper_run *runs) {
    size_t front = 0;
    for (size_t i = 0; i < arrlenu(runs); i++) {
        const paper_run r = runs[i];
        char folder[PATH_SIZE];
        run_folder(j, &r, folder);
        if (!exists(folder, "last.safetensors")) continue;
        memmove(runs + front + 1, runs + front, (i - front) * sizeof *runs);
        runs[front++] = r;
    }
}

/* The missing runs, without those that have no data. */
static paper_run *runs_to_make(const job *j, size_t *without_data) {
    paper_run *runs = table_missing(&j->choice, j->results);
    size_t n = 0, all = arrlenu(runs);
    for (size_t i = 0; i < all; i++)
        if (data_path(j->places, runs[i].data)) runs[n++] = runs[i];
    if (runs) arrsetlen(runs, n);
    *without_data = all - n;
    interrupted_first(j, runs);
    return runs;
}

static int make_runs(job *j, const paper_run *runs, double budget) {
    train_watch w = {.deadline = seconds() + budget};
    char error[512];
    int status = DONE, failed = 0;
    if (folder_make(j->out, error) < 0) return complain("%s", error);
    for (size_t i = 0; i < arrlenu(runs) && status != INTERRUPTED && seconds() < w.deadline; i++) {
        status = take_run(j, &runs[i], &w);
        failed |= status == BAD_RESULT;
    }
    if (status == INTERRUPTED && !w.late) return INTERRUPTED;
    return failed ? BAD_RESULT : DONE;
}

/* ---- the command ---- */

static int parse_minutes(const char *text, double *out) {
    char *end;
    const double x = strtod(text, &end);
    const double unit = *end == 0 || *end == 'm' ? 60 : *end == 's' ? 1 : *end == 'h' ? 3600 : 0;
    if (end == text || !(unit > 0) || (*end && end[1]) || !(x * unit > 0 && x * unit < 1e8))
        return complain("--budget %s: must be minutes, or a time such as 90s, 10m or 2h", text), 0;
    *out = x * unit;
    return 1;
}

static int read_choice(table_choice *c, const options *o) {
    const char *preset = option_text(o, "preset", NULL);
    int named = 0;
    c->only = option_text(o, "only", NULL);
    c->all_seeds = !option_given(o, "seeds");
    while (preset && named < PAPER_PRESETS && strcmp(paper_preset((mtan_preset)named), preset) != 0) named++;
    if (named == PAPER_PRESETS) return complain("--preset %s: must be one of faithful, correct, best", preset), 0;
    c->preset = preset ? named : -1;
    for (int i = 0; i < o->arguments; i++) {
        const char *text = o->argument[i];
        if (text[0] < '1' || text[0] > '0' + PAPER_TABLES || text[1])
            return complain("table %s: the paper has tables 1 to %d", text, PAPER_TABLES), 0;
        c->tables[text[0] - '0'] = 1;
    }
    for (int t = 1; t <= PAPER_TABLES && o->arguments == 0; t++) c->tables[t] = 1;
    if (c->only && !table_only_exists(c->only))
        return complain("--only %s: must be rows (gru-d), data sets (physionet) or gru-d/physionet, between commas",
                        c->only),
               0;
    if (!table_seeds(&c->seeds, option_text(o, "seeds", "0,1,2")))
        return complain("--seeds %s: must be numbers such as 0,1,2 or 0-4", option_text(o, "seeds", "")), 0;
    return 1;
}

/* Tells on standard error what is still to be run. */
static void tell_missing(const job *j) {
    size_t without;
    paper_run *runs = runs_to_make(j, &without);
    if (arrlen(runs)) note("%td runs are missing: --budget trains them, --dry-run lists them", arrlen(runs));
    if (without) note("%zu runs more have no data", without);
    arrfree(runs);
}

static void tell_results(const job *j) {
    if (arrlen(j->results)) note("%td numbers of ours are from %s", arrlen(j->results), j->results_path);
    else note("%s has no number of ours: --results names another file", j->results_path);
}

static table_format format_of(const options *o) {
    return option_given(o, "json")       ? TABLE_JSON
           : option_given(o, "csv")      ? TABLE_CSV
           : option_given(o, "markdown") ? TABLE_MARKDOWN
                                         : TABLE_TEXT;
}

static int list_runs(const job *j) {
    size_t without;
    paper_run *runs = runs_to_make(j, &without);
    words w;
    for (size_t i = 0; i < arrlenu(runs); i++) run_words(j, &runs[i], &w), print_command(stdout, &w);
    if (without) note("%zu runs more have no data", without);
    arrfree(runs);
    return DONE;
}

static int run_job(job *j) {
    const options *o = j->options;
    const char *budget = option_text(o, "budget", NULL), *add = option_text(o, "add", NULL);
    double time_left = 0;
    int status = DONE;
    if (budget && !parse_minutes(budget, &time_left)) return BAD_USE;
    if (!load_results(j)) return BAD_USE;
    if (add && !add_model(j, add, 0)) return BAD_USE;
    if (option_given(o, "dry-run")) return list_runs(j);
    if (budget) {
        size_t without;
        paper_run *runs = runs_to_make(j, &without);
        status = make_runs(j, runs, time_left);
        arrfree(runs);
        if (status == BAD_USE) return status;
    }
    if (!load_results(j)) return BAD_USE;
    table_print(stdout, format_of(o), &j->choice, j->results, no_data, j->places);
    tell_results(j);
    tell_missing(j);
    return status;
}

int command_table(const options *o) {
    job *j = tool_calloc(1, sizeof *j);
    int status = BAD_USE;
    j->options = o;
    j->out = option_text(o, "out", "runs");
    j->results_path = option_text(o, "results", "results.tsv");
    if (read_choice(&j->choice, o) && find_data(&j->places, option_text(o, "data", "data"))) status = run_job(j);
    arrfree(j->choice.seeds), arrfree(j->results), arrfree(j->places);
    free(j);
    return status;
}
