/* mtan check DATA: problems, profile, leakage, suggested settings and their cost, before any time is spent on training.
 * It changes no file; own data with faults is profiled by its good rows. */
#include "../check/check_data.h"
#include "../check/flags.h"
#include "commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../../simd/mtan_simd.h"
#include "../model/shared_options.h"
#include "../base/shell_word.h"

enum { PROBLEMS_LISTED = 20, PROBLEMS_IN_JSON = 1000 };
static const double timing_seconds = 1;
static const size_t most_bytes = (size_t)2 << 30; /* above it no step is run, as the machine may not have the memory */

/* ---- the plan that `mtan train` would make ---- */

typedef struct words {
    char *word[24]; /* the option parser takes them as main's argv */
    char number[3][16], name[64];
    int n;
} words;

static void add_word(words *w, const char *word) {
    w->word[w->n++] = (char *)(uintptr_t)word; /* options_parse does not write */
}

static void add_number(words *w, const char *name, int which, int32_t x) {
    snprintf(w->number[which], sizeof w->number[which], "%d", (int)x);
    add_word(w, name), add_word(w, w->number[which]);
}

static void add_option(words *w, const char *name, const char *value) {
    if (value) add_word(w, name), add_word(w, value);
}

/* The words of a `mtan train` command. Own data gets the suggested options, unless a model is asked for; a named data
 * set gets its named configuration. */
static void suggest(words *w, const checked *c, const options *o) {
    const char *model = option_text(o, "model", NULL);
    memset(w, 0, sizeof *w);
    add_word(w, "mtan"), add_word(w, "train");
    if (c->set->own) {
        const suggestion s = profile_suggest(&c->profile, &c->data);
        add_word(w, "own"), add_word(w, "--model"), add_word(w, model ? model : s.model);
        add_number(w, "--batch", 0, s.batch);
        if (!model) add_number(w, "--enc-hidden", 1, s.hidden);
        if (!model && strcmp(s.model, "per-time") != 0) add_number(w, "--ref-points", 2, s.ref_points);
        add_option(w, "--origin", option_text(o, "origin", NULL));
        add_option(w, "--task", option_text(o, "task", NULL));
    } else {
        snprintf(w->name, sizeof w->name, "%s-%s", c->set->name, model ? model : "enc");
        add_word(w, w->name);
    }
}

static void spell_command(checked *c, const words *w, const options *o) {
    c->command[0] = 0;
    for (int i = 0; i < w->n; i++) shell_append(c->command, sizeof c->command, w->word[i]);
    shell_append(c->command, sizeof c->command, "--data");
    shell_append(c->command, sizeof c->command, c->path);
    if (c->labels) {
        shell_append(c->command, sizeof c->command, "--labels");
        shell_append(c->command, sizeof c->command, c->labels);
    }
    if (option_given(o, "static")) {
        shell_append(c->command, sizeof c->command, "--static");
        shell_append(c->command, sizeof c->command, option_text(o, "static", ""));
    }
    shell_append(c->command, sizeof c->command, "--out");
    shell_append(c->command, sizeof c->command, "run");
}

static int make_plan(checked *c, const options *o) {
    options of_train;
    words w;
    suggest(&w, c, o);
    spell_command(c, &w, o);
    return options_parse(&of_train, w.n, w.word) && plan_make(&c->plan, &of_train);
}

/* ---- reading ---- */

/* Reads own data: only its good rows if it has faults, else all of it by the regular loader. 0: nothing can be read. */
static int read_own(checked *c, const options *o) {
    const source_input in = option_input(o, NULL);
    char error[512];
    own_options own;
    dataset whole;
    if (strcmp(c->path, "-") == 0) return complain("check reads its data twice: give it a file"), 0;
    if (!source_own_options(&own, &in, NULL, error)) return complain("%s", error), 0;
    if (!tolerant_load(&c->data, &c->problems, c->path, c->labels, own.origin))
        return complain("%s", arrlast(c->problems.text)), 0;
    if (c->labels && !own_labels_fit(&c->data, c->path, c->labels, error)) {
        if (c->problems.count == 0) return complain("%s", error), 0;
        problems_add(&c->problems, error); /* the bad rows may be those of the labelled records */
    }
    if (c->problems.count > 0) return 1;
    if (own_load(&whole, c->path, c->labels, &own)) {
        dataset_free(&c->data);
        c->data = whole;
    } else problems_add(&c->problems, whole.error);
    return 1;
}

static int read_data(checked *c, const options *o) {
    source_input in = option_input(o, NULL);
    if (c->set->own) return read_own(c, o);
    in.path = c->path;
    return make_plan(c, o) && source_load(&c->data, &c->plan.source, &in);
}

/* ---- judging ---- */

static size_t data_bytes(const dataset *d) {
    return arrlenu(d->records) * sizeof *d->records + arrlenu(d->events) * sizeof *d->events +
           arrlenu(d->truth) * sizeof *d->truth + arrlenu(d->labels) * sizeof *d->labels +
           arrlenu(d->label_times) * sizeof *d->label_times + arrlenu(d->names);
}

static void judge_leakage(checked *c) {
    const leakage *l = &c->leakage;
    char text[512];
    if (l->twins) {
        snprintf(text, sizeof text,
                 "leakage: %zu validation or test record%s the same observations as a training record (%.60s as %.60s)",
                 l->twins, l->twins == 1 ? " has" : "s have", dataset_name(&c->data, l->twin_outside),
                 dataset_name(&c->data, l->twin_training));
        problems_add(&c->problems, text);
    }
    if (l->shared_groups) {
        snprintf(text, sizeof text,
                 "leakage: %zu of %zu groups (persons, cut series) are on both sides of the split, with %zu validation "
                 "and test records: --by-group keeps a group on one side",
                 l->shared_groups, l->groups, l->shared_records);
        problems_add(&c->problems, text);
    }
}

static void judge_twins(checked *c) {
    const profile *p = &c->profile;
    char text[512];
    if (!p->contradicting) return;
    snprintf(text, sizeof text, "labels: %zu record%s the observations of another, but not its label", p->contradicting,
             p->contradicting == 1 ? " has" : "s have");
    problems_add(&c->problems, text);
}

static mtan_train_config train_config(const plan *p) {
    mtan_train_config config;
    mtan_train_config_init(&config);
    config.optimizer = p->optimizer ? MTAN_ADAMAX : MTAN_ADAM;
    config.clip = p->clip;
    config.dropout = p->dropout;
    return config;
}

/* Preprocesses the data as `mtan train` would. This comes last, as the profile is of the raw data. */
static void preprocess(checked *c, prep *p) {
    char error[512];
    source_fit(p, &c->plan.source, &c->data, &c->split, c->plan.scale, c->plan.time_scale);
    if (!plan_can_be_saved(&c->plan, p, error)) problems_add(&c->problems, error);
    c->time_scale = p->time_scale[SPLIT_TRAIN];
    prep_apply(p, &c->data, &c->split);
}

/* Baselines, fitted and measured on the records that `mtan train` and `mtan eval` would use. */
static void find_rivals(checked *c, const prep *p) {
    int32_t *const *part = c->split.part;
    if (c->plan.source.interpolation) {
        c->rivals = contest_curves(&c->data, part[SPLIT_TRAIN], part[SPLIT_TEST], c->plan.source.observed, NULL, 0);
    } else if (c->data.numbers) {
        number_rivals r;
        number_rivals_make(&r, &c->data, p, part[SPLIT_TRAIN], part[SPLIT_VALID], part[SPLIT_TEST]);
        if (r.rows > 0)
            c->rivals = c->data.task == MTAN_TASK_LABELS ? contest_labels(&r, NULL, 0) : contest_numbers(&r, NULL, 0);
        number_rivals_free(&r);
    } else {
        class_rivals r;
        class_rivals_make(&r, &c->data, part[SPLIT_TRAIN], part[SPLIT_VALID], part[SPLIT_TEST]);
        if (r.rows > 0) c->rivals = contest_classes(&r, NULL, 0);
        class_rivals_free(&r);
    }
}

static void find_cost(checked *c, const options *o) {
    c->threads = option_threads(o);
    c->backend = mtan_backend_name(mtan_backend_best());
    note("timing a few steps of training");
    c->cost = profile_cost(&c->plan.config, train_config(&c->plan), mtan_backend_best(), &c->data,
                           c->split.part[SPLIT_TRAIN], c->plan.batch, c->threads, timing_seconds, most_bytes);
    c->has_cost = c->cost.status == MTAN_OK;
    if (!c->has_cost) problems_add(&c->problems, mtan_status_message(c->cost.status));
}

static int has_observations(checked *c) {
    if (arrlen(c->data.channels) > 0) return 1;
    complain(c->rows_at_fault ? "%s: no row can be read: see the problems" : "%s: there are no observations", c->path);
    problems_add(&c->problems, "`mtan train` would refuse these data");
    return 0;
}

static void find_split(checked *c, const options *o) {
    prep p;
    if (!source_split(&c->split, &c->plan.source, &c->data)) {
        problems_add(&c->problems, "the records cannot be split for training: there are too few");
        return;
    }
    c->has_split = 1;
    c->leakage = profile_leakage(&c->profile, &c->data, &c->split);
    judge_leakage(c);
    if (!has_observations(c)) return;
    if (!plan_fit(&c->plan, NULL, &c->data)) {
        problems_add(&c->problems, "`mtan train` would refuse these data");
        return;
    }
    memset(&p, 0, sizeof p);
    preprocess(c, &p);
    if (c->plan.config.reference == MTAN_REF_EVEN)
        flags_idle_time(&c->flags, idle_time_of(&c->data, c->split.part[SPLIT_TRAIN]), c->set->own);
    find_rivals(c, &p);
    prep_free(&p);
    find_cost(c, o);
}

static int check(checked *c, const options *o) {
    if (!read_data(c, o)) return BAD_USE;
    c->rows_at_fault = c->problems.count;
    c->data_bytes = data_bytes(&c->data);
    profile_make(&c->profile, &c->data);
    judge_twins(c);
    flags_find(&c->flags, &c->profile, &c->data);
    if (!make_plan(c, o)) return BAD_USE;
    find_split(c, o);
    if (option_given(o, "json")) check_json(c);
    else check_print(c);
    return c->problems.count ? BAD_RESULT : DONE;
}

/* The data set of --kind, or the one that the path is recognised as. */
static int choose_set(checked *c, const char *kind) {
    char names[128];
    c->set = kind ? data_set_named(kind, strlen(kind)) : data_set_at(c->path);
    if (!kind && !c->set && errno) return complain("%s: %s", c->path, strerror(errno)), 0;
    if (!kind && !c->set) return complain("%s: no data set known by its files; --kind says which it is", c->path), 0;
    if (c->set && c->set->needs_data) return 1;
    data_set_list(names, sizeof names);
    return complain("--kind %s: must be %s", kind, names), 0;
}

int command_check(const options *o) {
    checked c;
    int status;
    memset(&c, 0, sizeof c);
    c.path = o->argument[0];
    c.labels = option_text(o, "labels", NULL);
    c.problems.most = option_given(o, "json") ? PROBLEMS_IN_JSON : PROBLEMS_LISTED;
    if (!choose_set(&c, option_text(o, "kind", NULL))) return BAD_USE;
    status = check(&c, o);
    for (size_t i = 0; i < arrlenu(c.flags); i++) free(c.flags[i]);
    arrfree(c.flags), arrfree(c.rivals);
    profile_free(&c.profile);
    split_free(&c.split);
    dataset_free(&c.data);
    problems_free(&c.problems);
    return status;
}
