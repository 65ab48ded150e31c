/* See search.h. */
#define _POSIX_C_SOURCE 200809L
#include "search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../data/generators.h"
#include "../../data/array.h"
#include "../../data/own_columns.h"
#include "../model/data_sets.h"
#include "../base/files.h"

/* ---- the choices ---- */

/* Conditions on a plan under which a choice has an effect. */
enum {
    FREE_MODEL = 1 << 0, /* own data, and the user gave no --model */
    OWN = 1 << 1,
    MTAN = 1 << 2, /* not a baseline */
    BASELINE = 1 << 3,
    ATTENTION = 1 << 4, /* the encoder is attention */
    POINTS = 1 << 5,    /* the encoder has reference points of its own */
    RECORDS = 1 << 6,   /* one class or number per record */
    LABELS = 1 << 7,    /* a class or a number, per record or per time */
    SIZES = 1 << 8      /* the sizes are not fixed by a board */
};

/* The list of choices. A trial draws a value of each choice that its plan allows; a value that is listed twice is drawn
 * twice as often. */
typedef struct choice {
    const char *name;
    unsigned needs;
    const char *values[11]; /* ends with NULL */
} choice;

static const choice choices[] = {
    {"model",
     FREE_MODEL | LABELS,
     {"enc", "enc", "enc", "enc", "enc", "full", "gru-d", "rnn-decay", "seft", "ip-nets"}},
    {"origin", OWN, {"record", "zero"}},
    {"frequencies", ATTENTION, {"log", "log", "published"}},
    {"statistics", ATTENTION, {"mean,spread,intensity,slope", "mean,spread,intensity", "mean"}},
    {"values", ATTENTION, {"plain", "plain", "piecewise", "quantile"}},
    {"summaries", ATTENTION | RECORDS, {"3", "2", "1", "0"}},
    {"ref-points", POINTS | SIZES, {"8", "16", "32", "64", "128"}},
    {"enc-hidden", SIZES, {"16", "32", "64", "128"}},
    {"lr", MTAN, {"0.0003", "0.001", "0.003"}},
    {"lr", BASELINE, {"0.001", "0.003", "0.01", "0.03"}},
    {"decay", 0, {"0", "1", "10"}},
    {"dropout", MTAN | LABELS, {"0", "0.3", "0.5"}},
    {"thin", LABELS, {"0", "0.1", "0.2", "0.4"}},
};
enum { CHOICES = sizeof choices / sizeof choices[0] };

static unsigned facts_of(const plan *p, int free_model) {
    const mtan_config *c = &p->config;
    unsigned facts = c->architecture ? BASELINE : MTAN;
    if (free_model) facts |= FREE_MODEL;
    if (p->source.set->own) facts |= OWN;
    if (!c->architecture && c->encoder == MTAN_ATTENTION) facts |= ATTENTION;
    if (!c->architecture && c->reference != MTAN_REF_OBSERVED) facts |= POINTS;
    if (c->classify == MTAN_CLASSIFY_RECORD) facts |= RECORDS;
    if (c->classify != MTAN_CLASSIFY_NONE) facts |= LABELS;
    if (p->goal.flash == 0 && p->goal.ram == 0) facts |= SIZES;
    return facts;
}

/* ---- trials ---- */

enum { KEPT = 3, ROUNDS_MOST = 4, TRIALS_MOST = 81, PATH_ROOM = 4096 }; /* one of KEPT goes on to the next round */

/* With few labelled records, the validation part is too small to tell one trial from another. Then every record outside
 * of the test part takes its turn in validation, and a trial is one run for each of TURNS splits.
 *
 * Measured on made-up sets in which a level, a shape or a period decides, with 9 trials of 45 epochs: the difference in
 * AUC on 1000 other records, turns minus a single split. 96 labelled records (11 sets): +0.004 on average, from -0.07
 * to +0.09. 240 (10 sets): +0.021, never negative. 480 (4 sets): -0.004, from -0.19 to +0.17. In 14 of the 25 sets the
 * same trial wins. */
enum { TURNS = 5, FEW = 400 };

typedef struct trial {
    options options;
    char words[400]; /* its options on top of the user's: " --lr 0.003" */
    int round;       /* its last one */
    int32_t epochs;
    double turn[TURNS]; /* the smallest validation value so far, as training.h defines it */
    double best;        /* the mean of the finite ones */
    double seconds;
    const char *end; /* why it was ended, or NULL */
} trial;

typedef struct search {
    const options *asked;
    train_watch *outer; /* or NULL */
    const char *out;
    double start, budget; /* seconds; 0: the budget is a number of trials */
    options base;         /* common to all trials */
    int free_model;
    plan_select select;
    trial *trials;
    int count, rounds;
    int turns;      /* runs of a trial: TURNS, or 1 */
    int32_t epochs; /* of a full training */
    double reading; /* seconds before the first step of a run: every trial reads the data, in each round */
    double pace;    /* seconds per epoch with the unchanged plan */
    /* the current run */
    trial *now;
    int turn;      /* its number among the trial's runs */
    int32_t until; /* pauses after this many epochs */
    int32_t reached;
    int stopped; /* by a signal or the watcher: the search ends */
    int no_validation;
    char heard[512]; /* the last error message in it */
} search;

/* 90s, 10m, 2h, 600; or 27trials. */
static int parse_budget(search *s, const char *text) {
    char *end;
    const double x = strtod(text, &end);
    const double unit = *end == 0 || *end == 's' ? 1 : *end == 'm' ? 60 : *end == 'h' ? 3600 : 0;
    if (end > text && strcmp(end, "trials") == 0 && x >= 2 && x <= TRIALS_MOST) return s->count = (int)x, 1;
    if (end == text || !(unit > 0) || (*end && end[1]) || !(x * unit >= 1 && x * unit < 1e8))
        return complain("--budget %s: must be a time such as 90s, 10m or 2h, or 2 to %d trials: 9trials", text,
                        TRIALS_MOST),
               0;
    s->budget = x * unit;
    return 1;
}

/* Keeps the messages of a trial from the user. */
static void hear(void *context, int wrong, const char *text) {
    search *s = context;
    if (wrong) snprintf(s->heard, sizeof s->heard, "%.*s", (int)sizeof s->heard - 1, text);
}

static void set_choice(trial *x, const char *name, const char *value) {
    const size_t used = strlen(x->words);
    option_set(&x->options, name, value, strtod(value, NULL));
    snprintf(x->words + used, sizeof x->words - used, " --%s %s", name, value);
}

/* Every choice draws its number, used or not, so a trial does not depend on the user's other options. Returns 0 if no
 * plan has these options. */
static int draw_trial(search *s, trial *x, mtan_mt19937 *rng) {
    x->words[0] = 0, x->options = s->base, x->options.trial = 1;
    for (const choice *c = choices; c < choices + CHOICES; c++) {
        uint32_t last = 0;
        plan p;
        while (c->values[last + 1]) last++;
        const char *value = c->values[numpy_interval(rng, last)];
        const int is_model = strcmp(c->name, "model") == 0; /* the base has a model only for the first trial */
        if (!is_model && option_given(&x->options, c->name)) continue;
        if (!plan_make(&p, &x->options)) return 0;
        if ((c->needs & ~facts_of(&p, s->free_model)) == 0) set_choice(x, c->name, value);
    }
    return 1;
}

/* The first trial is the unchanged plan. Another trial is drawn again, up to 100 times, while it equals an earlier one
 * or the user's options do not fit its model. */
static void draw_trials(search *s) {
    const message_ear before = messages_listen(hear, s);
    mtan_mt19937 rng;
    s->trials = tool_calloc((size_t)s->count, sizeof *s->trials);
    s->trials[0].options = s->base;
    for (int i = 0; i < s->count; i++) {
        s->trials[i].best = INFINITY;
        for (int turn = 0; turn < TURNS; turn++) s->trials[i].turn[turn] = INFINITY;
    }
    mtan_mt_seed(&rng, (uint32_t)option_integer(s->asked, "seed", 0));
    for (int i = 1; i < s->count; i++)
        for (int known = 1, tries = 0; known && tries < 100; tries++) {
            known = !draw_trial(s, &s->trials[i], &rng);
            for (int k = 0; k < i; k++) known |= strcmp(s->trials[k].words, s->trials[i].words) == 0;
        }
    messages_listen(before.hear, before.context);
}

/* ---- a run of a trial ---- */

/* Name of a trial's run in RUN/trials. The run of the first turn becomes the final run if the trial is the best. */
static void name_run(char name[32], int number, int turn) {
    snprintf(name, 32, turn > 0 ? "%d-%d" : "%d", number, turn);
}

/* Path of the split of a turn, for --splits. */
static void name_split(char path[PATH_ROOM], const search *s, int turn) {
    snprintf(path, PATH_ROOM, "%.4000s/trials/split-%d.csv", s->out, turn);
}

/* Trains in RUN/trials/NAME and returns the exit status. */
static int train_trial(search *s, options o, const char *name, int resume, train_watch *w) {
    char path[PATH_ROOM];
    message_ear before;
    int status;
    snprintf(path, sizeof path, "%.4000s/trials/%s", s->out, name);
    option_set(&o, "out", path, 0);
    option_set(&o, "resume", resume ? "" : NULL, 0);
    w->context = s, w->signals = !s->outer || !s->outer->go_on;
    before = messages_listen(hear, s);
    status = train_run(&o, w);
    messages_listen(before.hear, before.context);
    if (status == INTERRUPTED && !w->late) s->stopped = 1;
    return status;
}

static int outer_goes_on(search *s, const training *t, const step_result *step, const epoch_result *epoch) {
    if (s->outer && s->outer->go_on && !s->outer->go_on(s->outer->context, t, step, epoch)) s->stopped = 1;
    return !s->stopped;
}

static int trial_goes_on(void *context, const training *t, const step_result *step, const epoch_result *epoch) {
    search *s = context;
    const message_ear own = messages_listen(NULL, NULL);
    if (!s->outer || !s->outer->go_on)
        progress("round %d of %d, trial %d of %d, epoch %d", s->now->round, s->rounds, (int)(s->now - s->trials) + 1,
                 s->count, (int)t->epoch + 1);
    messages_listen(own.hear, own.context);
    if (!step && !epoch) return outer_goes_on(s, t, NULL, NULL);
    if (epoch) s->now->turn[s->turn] = t->best, s->reached = t->epoch;
    return outer_goes_on(s, t, step, epoch) && t->epoch < s->until;
}

/* In a search limited by time, a run may take twice as long as the unchanged plan, so that the last one finishes
 * too. */
static void train_turn(search *s, trial *x, int turn, int32_t until) {
    train_watch w = {.deadline = INFINITY, .go_on = trial_goes_on};
    char name[32], path[PATH_ROOM];
    options o = x->options;
    int status;
    if (s->budget > 0) w.deadline = seconds() + 2 * (s->reading + s->pace * (until - x->epochs)) + 1;
    s->now = x, s->turn = turn, s->until = until, s->reached = x->epochs;
    name_run(name, (int)(x - s->trials), turn), name_split(path, s, turn);
    if (turn > 0) option_set(&o, "splits", path, 0), option_set(&o, "fold", NULL, 0), option_set(&o, "folds", NULL, 0);
    status = train_trial(s, o, name, x->epochs > 0, &w);
    if (status == BAD_USE) x->end = w.diverged ? "diverged" : "impossible";
    else if (status == INTERRUPTED && !s->stopped && s->reached < until) x->end = "too slow";
}

/* In a search that was stopped, some turns may have no value. */
static double mean_of_turns(const trial *x) {
    double sum = 0;
    int n = 0;
    for (int turn = 0; turn < TURNS; turn++)
        if (isfinite(x->turn[turn])) sum += x->turn[turn], n++;
    return n > 0 ? sum / n : INFINITY;
}

/* Trains all turns of a trial, until one of them ends it. */
static void train_further(search *s, trial *x, int32_t until) {
    const double start = seconds();
    if (x->epochs >= until) return;
    for (int turn = 0; turn < s->turns && !x->end && !s->stopped; turn++) train_turn(s, x, turn, until);
    x->best = mean_of_turns(x);
    x->epochs = s->reached;
    x->seconds += seconds() - start;
}

/* ---- turns ---- */

static size_t count_labelled(const training *t) {
    size_t n = 0;
    for (int part = SPLIT_TRAIN; part <= SPLIT_VALID; part++)
        for (size_t i = 0; i < arrlenu(t->split->part[part]); i++)
            n += t->data->records[t->split->part[part][i]].n_labels > 0;
    return n;
}

static void add_text(char **out, const char *text) {
    memcpy(arraddnptr(*out, strlen(text)), text, strlen(text));
}

static void add_quoted(char **out, const char *text) {
    arrput(*out, '"');
    for (; *text; text++) {
        if (*text == '"') arrput(*out, '"');
        arrput(*out, *text);
    }
    arrput(*out, '"');
}

/* Returns 0, with a message printed, if the file cannot be written. */
static int write_split(const search *s, const training *t, int turn) {
    char path[PATH_ROOM], error[512], *out = NULL;
    split turned;
    int good;
    name_split(path, s, turn);
    split_turn(&turned, t->split, t->data, t->plan->source.split.by_group, turn, TURNS);
    add_text(&out, "record,part\n");
    for (int part = 0; part < SPLIT_PARTS; part++)
        for (size_t i = 0; i < arrlenu(turned.part[part]); i++) {
            add_quoted(&out, dataset_name(t->data, (size_t)turned.part[part][i]));
            add_text(&out, ","), add_text(&out, split_part_name(part)), add_text(&out, "\n");
        }
    split_free(&turned);
    good = file_write(path, out, arrlenu(out), error) || (complain("%s", error), 0);
    arrfree(out);
    return good;
}

/* TURNS if there are few labelled records but enough for each turn, otherwise 1; -1: they cannot be written. */
static int find_turns(const search *s, const training *t) {
    const size_t labelled = t->plan->source.interpolation ? FEW : count_labelled(t);
    if (labelled >= FEW || arrlen(t->split->part[SPLIT_TRAIN]) < 2 * TURNS) return 1;
    for (int turn = 1; turn < TURNS; turn++)
        if (!write_split(s, t, turn)) return -1;
    return TURNS;
}

/* ---- time ---- */

/* Numbers are compared by their loss, the rest by what the user asked for or, of labels, by AUC. */
static plan_select selection_of(const search *s, const plan *p) {
    if (p->config.task == MTAN_TASK_NUMBER) return SELECT_LOSS;
    return p->source.interpolation || option_given(s->asked, "select") ? p->select : SELECT_AUC;
}

static int probe_goes_on(void *context, const training *t, const step_result *step, const epoch_result *epoch) {
    search *s = context;
    if (!step && !epoch) return outer_goes_on(s, t, NULL, NULL);
    if (s->epochs == 0) s->reading = seconds() - s->start - t->train_seconds;
    s->epochs = t->plan->epochs;
    s->select = selection_of(s, t->plan);
    s->no_validation = arrlen(t->split->part[SPLIT_VALID]) == 0;
    if (s->turns == 0) s->turns = s->no_validation ? 1 : find_turns(s, t);
    if (epoch) s->pace = epoch->seconds + epoch->eval_seconds;
    else s->pace = t->train_seconds / step->batch * training_batches(t);
    return outer_goes_on(s, t, step, epoch) && !epoch && !s->no_validation && s->turns > 0 && s->budget > 0;
}

/* The number of epochs that a search of so many rounds can afford, if a trial takes 1.5 times as long as the unchanged
 * plan. KEPT^rounds trials, with those that are resumed, make 3/2 as many runs. Together they train as much as 1 + 2/3
 * * rounds full trainings; the last 2/3 of a training, the end of the best trial, has no turns. */
static double affordable_epochs(const search *s, int rounds) {
    const double left = s->budget - 1.5 * s->turns * pow(KEPT, rounds) * s->reading;
    return left / (1.5 * s->pace * (s->turns * (1 + 2.0 / 3 * (rounds - 1)) + 2.0 / 3));
}

/* Plans as many rounds as the time allows with at least half of the epochs. If it allows fewer than two rounds, it
 * plans without turns, then with fewer epochs. */
static void plan_time(search *s) {
    for (s->rounds = ROUNDS_MOST; s->rounds > 1; s->rounds--)
        if (affordable_epochs(s, s->rounds) >= fmax(s->epochs / 2.0, pow(KEPT, s->rounds))) break;
    if (s->rounds == 1 && s->turns > 1) {
        s->turns = 1;
        plan_time(s);
        return;
    }
    s->count = (int)pow(KEPT, s->rounds);
    s->epochs = (int32_t)fmax(1, fmin(s->epochs, affordable_epochs(s, s->rounds)));
}

static void count_rounds(search *s) {
    for (int n = s->count; n > 1; n = (n + KEPT - 1) / KEPT) s->rounds++;
}

/* The files of a run; the state that a run resumes from comes last. There is no chosen.safetensors unless the best
 * model was trained once more. */
static const char *const run_files[] = {"chosen.safetensors", "best.safetensors", "log.csv", "steps.csv",
                                        "last.safetensors"};
enum { CHOSEN = 0, RUN_FILES = sizeof run_files / sizeof run_files[0] };

static void remove_run(const search *s, const char *name) {
    char path[PATH_ROOM];
    for (int i = 0; i < RUN_FILES; i++) {
        snprintf(path, sizeof path, "%.3900s/trials/%s/%s", s->out, name, run_files[i]);
        (void)remove(path);
    }
    snprintf(path, sizeof path, "%.3900s/trials/%s", s->out, name);
    (void)rmdir(path);
}

/* Runs the unchanged plan for one step or, in a search limited by time, for one epoch. Returns DONE, or an exit status
 * with a message printed. */
static int probe(search *s) {
    train_watch w = {.deadline = s->budget > 0 ? s->start + s->budget / 20 : INFINITY, .go_on = probe_goes_on};
    const int status = train_trial(s, s->base, "probe", 0, &w);
    remove_run(s, "probe");
    if (s->stopped) return INTERRUPTED;
    if (s->no_validation) return complain("--budget needs validation records: this plan has none");
    if (s->turns < 0) return complain("%s", s->heard);
    if (status == BAD_USE && !w.diverged) return complain("%s", s->heard);
    if (s->budget > 0) plan_time(s);
    else count_rounds(s);
    option_set(&s->base, "epochs", "", s->epochs);
    if (s->select == SELECT_AUC) option_set(&s->base, "select", "auc", 0); /* one criterion for all trials */
    return DONE;
}

/* ---- rounds ---- */

/* Better trials first: those that have not ended, then by the round they reached, by validation, and by number. */
static int compare_trials(const void *left, const void *right) {
    const trial *const *a = left, *const *b = right;
    if (!(*a)->end != !(*b)->end) return (*a)->end ? 1 : -1;
    if ((*a)->round != (*b)->round) return (*b)->round - (*a)->round;
    if ((*a)->best > (*b)->best || (*a)->best < (*b)->best) return (*a)->best > (*b)->best ? 1 : -1;
    return *a < *b ? -1 : *a > *b;
}

static const char *selected_by(const search *s) {
    return plan_word("select", (double)s->select);
}

/* AUC and accuracy are stored as their negatives, because the smallest value is selected. */
static void show(const search *s, const trial *x) {
    char value[40];
    snprintf(value, sizeof value, "%s", x->end ? x->end : "none");
    if (!x->end && isfinite(x->best)) snprintf(value, sizeof value, "%.5f", fabs(x->best));
    note("%5d  %5d  %6d  %7.1f  %-10s %s", x->round, (int)(x - s->trials), (int)x->epochs, x->seconds, value,
         x->words[0] ? x->words + 1 : "as it stands");
}

/* Has a trial had an epoch, or been ended? */
static int has_tried(const search *s) {
    for (int i = 0; i < s->count; i++)
        if (s->trials[i].epochs > 0 || s->trials[i].end) return 1;
    return 0;
}

/* Nothing tried, no table: then the folder is removed if it was created for nothing. */
static int write_table(const search *s) {
    if (!has_tried(s)) return 1;
    const size_t room = 512 * (size_t)(s->count + 1);
    char path[PATH_ROOM], error[512], *text = tool_calloc(room, 1);
    size_t n = (size_t)snprintf(text, room, "trial,round,epochs,seconds,%s,end,options\n", selected_by(s));
    for (const trial *x = s->trials; x < s->trials + s->count; x++) {
        n += (size_t)snprintf(text + n, room - n, "%d,%d,%d,%.3f,", (int)(x - s->trials), x->round, (int)x->epochs,
                              x->seconds);
        if (isfinite(x->best)) n += (size_t)snprintf(text + n, room - n, "%.9g", fabs(x->best));
        n +=
            (size_t)snprintf(text + n, room - n, ",%s,\"%s\"\n", x->end ? x->end : "", x->words[0] ? x->words + 1 : "");
    }
    snprintf(path, sizeof path, "%.4000s/trials.csv", s->out);
    const int good = file_write(path, text, n, error);
    free(text);
    return good ? 1 : (complain("%s", error), 0);
}

static int32_t epochs_of_round(const search *s, int round) {
    return (int32_t)fmax(1, floor(s->epochs / pow(KEPT, s->rounds + 1 - round)));
}

/* In a search limited by time, the last quarter is reserved for finishing the best trial. */
static int time_is_up(const search *s) {
    return s->budget > 0 && seconds() - s->start > 0.75 * s->budget;
}

/* Returns the best trial; NULL if no trial has a value. */
static trial *run_rounds(search *s) {
    trial **order = tool_calloc((size_t)s->count, sizeof *order), *best;
    int left = s->count, over = 0;
    for (int i = 0; i < s->count; i++) order[i] = &s->trials[i];
    if (s->turns > 1) note("few labelled records: each trial is validated on %d parts of them in turn", s->turns);
    note("round  trial  epochs  seconds  %-10s settings", selected_by(s));
    for (int round = 1; round <= s->rounds && !over; round++) {
        for (int i = 0; i < left && !(over = s->stopped || time_is_up(s)); i++) {
            if (order[i]->end) continue;
            order[i]->round = round;
            train_further(s, order[i], epochs_of_round(s, round));
            if (!s->stopped) show(s, order[i]);
        }
        qsort(order, (size_t)left, sizeof *order, compare_trials);
        left = (left + KEPT - 1) / KEPT;
        over = !write_table(s) || over;
    }
    best = isfinite(order[0]->best) && !order[0]->end ? order[0] : NULL;
    free(order);
    return best;
}

/* ---- the end ---- */

/* Moves the trial's files to RUN; the file that makes it a run is moved last. Returns 0 with a message printed if that
 * fails. */
static int promote(const search *s, const trial *x) {
    char from[PATH_ROOM], to[PATH_ROOM];
    for (int i = 0; i < RUN_FILES; i++) {
        snprintf(from, sizeof from, "%.3900s/trials/%d/%s", s->out, (int)(x - s->trials), run_files[i]);
        snprintf(to, sizeof to, "%.3900s/%s", s->out, run_files[i]);
        if (rename(from, to) != 0 && !(i == CHOSEN && errno == ENOENT))
            return complain("%s: cannot be renamed to %s", from, to), 0;
    }
    return 1;
}

static void remove_trials(const search *s) {
    char path[PATH_ROOM], name[32];
    remove_run(s, "probe");
    for (int turn = 0; turn < TURNS; turn++) {
        for (int i = 0; i < TRIALS_MOST; i++) name_run(name, i, turn), remove_run(s, name);
        name_split(path, s, turn);
        (void)remove(path);
    }
    snprintf(path, sizeof path, "%.4000s/trials", s->out);
    (void)rmdir(path);
}

/* What goes on with the run of the best trial if it is stopped. A run keeps its settings, so --budget is not given
 * again. */
static const char *how_again(const search *s) {
    return s->outer && s->outer->again ? s->outer->again : "--resume instead of --budget";
}

/* Trains the best trial to its end by resuming it. For an ensemble, members are trained with its settings instead. */
static int train_best(search *s, const trial *best) {
    const int joined = option_integer(s->asked, "ensemble", 1) > 1;
    train_watch w = {.deadline = s->budget > 0 ? s->start + s->budget : INFINITY, .signals = 1, .aloud = 1};
    options o = best->options;
    int status;
    if (s->outer) w = *s->outer;
    w.again = how_again(s);
    option_set(&o, "out", s->out, 0), option_set(&o, "resume", joined ? NULL : "", 0);
    option_set(&o, "ensemble", joined ? "" : NULL, (double)option_integer(s->asked, "ensemble", 1));
    note("best: trial %d:%s --epochs %d%s%s", (int)(best - s->trials), best->words, (int)s->epochs,
         option_given(s->asked, "select") ? "" : " --select ", option_given(s->asked, "select") ? "" : selected_by(s));
    status = train_run(&o, &w);
    if (!s->outer) return status == INTERRUPTED && w.late ? DONE : status;
    s->outer->late = w.late, s->outer->diverged = w.diverged;
    return status;
}

static int found_none(const search *s) {
    if (s->budget > 0 && seconds() - s->start > 0.5 * s->budget)
        return complain("no candidate had an epoch in that time: a longer --budget is needed");
    return complain("every candidate diverged: a smaller --lr may help");
}

/* Tells what a search that was stopped leaves. joined: its trials become no run, as an ensemble is trained
 * afterwards. */
static int tell_stopped(const search *s, const trial *best, int joined) {
    if (!best) note("interrupted before a candidate had a value: nothing to go on with");
    else if (joined)
        note("interrupted before the ensemble: nothing to go on with; %s/trials.csv lists the trials", s->out);
    else note("interrupted: the best so far is in %s: go on with %s", s->out, how_again(s));
    return INTERRUPTED;
}

/* Runs the rounds in a folder that this process has claimed. Returns DONE with the best trial, moved to the folder as
 * its run unless an ensemble follows, or an exit status. */
static int find_best(search *s, trial **best) {
    const int joined = option_integer(s->asked, "ensemble", 1) > 1;
    char path[PATH_ROOM], error[512];
    int status;
    remove_trials(s); /* left by a process that was killed */
    snprintf(path, sizeof path, "%.4000s/trials", s->out);
    if (folder_make(path, error) < 0) return complain("%s", error);
    if ((status = probe(s)) != DONE) return status == INTERRUPTED ? tell_stopped(s, NULL, joined) : status;
    draw_trials(s);
    if (!(*best = run_rounds(s)) && !s->stopped) return found_none(s);
    if (*best && !joined && !promote(s, *best)) return BAD_USE;
    return s->stopped ? tell_stopped(s, *best, joined) : DONE;
}

static int has_labels(const options *o) {
    return option_given(o, "labels") || (o->columns && own_columns_labelled(o->columns));
}

/* Sets the options that all trials share: the user's and a single model per trial. Returns 0 with a
 * message printed if they cannot be used. */
static int start_search(search *s) {
    const options *o = s->asked;
    struct stat data;
    plan p;
    s->base = *o;
    option_set(&s->base, "budget", NULL, 0), option_set(&s->base, "ensemble", NULL, 0);
    s->free_model = strcmp(o->argument[0], "own") == 0 && !option_given(o, "model");
    s->base.trial = s->free_model;
    if (s->free_model) option_set(&s->base, "model", has_labels(o) ? "enc" : "interp", 0);
    if (!plan_is_named(o) || !plan_make(&p, &s->base)) return 0;
    if (stat(option_text(o, "data", ""), &data) == 0 && !S_ISREG(data.st_mode) && !S_ISDIR(data.st_mode))
        return complain("%s: --budget reads the data for every trial, and a pipe gives it once",
                        option_text(o, "data", "")),
               0;
    return 1;
}

int search_run(const options *o, train_watch *w) {
    search s = {.asked = o, .outer = w, .start = seconds(), .out = option_text(o, "out", NULL)};
    trial *best = NULL;
    claim hold;
    char error[512];
    int status = BAD_USE, made;
    if (option_given(o, "distributed"))
        return complain("--budget compares by the clock, which ranks do not share: leave --distributed out");
    if (option_given(o, "pretrain"))
        return complain("--budget compares encoders of many sizes, and --pretrain makes one: one of them");
    if (!parse_budget(&s, option_text(o, "budget", "")) || !start_search(&s) || !train_is_free(s.out)) return BAD_USE;
    if ((made = folder_make(s.out, error)) < 0) return complain("%s", error);
    if (!claim_take(&hold, s.out, error)) return complain("%s", error);
    status = find_best(&s, &best);
    remove_trials(&s);
    claim_drop(&hold);
    if (status == DONE) status = train_best(&s, best);
    if (made && status != DONE) (void)rmdir(s.out);
    free(s.trials);
    return status;
}
