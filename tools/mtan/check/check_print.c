/* See check_data.h: prints the results as text and as JSON. Names from files are cleaned of control characters. */
#include "check_data.h"

#include <math.h>
#include <string.h>

#include "../../data/field.h"
#include "../../data/shown.h"
#include "../report/contest_text.h"
#include "../base/json_text.h"

enum { LISTED_CHANNELS = 60, LISTED_CLASSES = 20, NAME_WIDTH = 14, LINE = 80 };

/* ---- for people ---- */

static void print_name(const char *name) {
    shown_put(stdout, name, NAME_WIDTH, NAME_WIDTH);
}

/* Prints a label and a text, folded at the width of a terminal. */
static void print_folded(const char *label, int indent, const char *text) {
    char *clean = tool_text(text), *at = clean;
    int column = printf("%-*s", indent, label);
    shown_clean(clean);
    for (int first = 1; *at; first = 0) {
        const int n = (int)strcspn(at, " ");
        if (!first && column + 1 + n > LINE) column = (printf("\n%*s", indent, ""), indent), first = 1;
        column += printf("%s%.*s", first ? "" : " ", n, at);
        at += n + (at[n] == ' ');
    }
    printf("\n");
    free(clean);
}

static void print_problems(const checked *c) {
    const size_t listed = arrlenu(c->problems.text);
    if (c->problems.count == 0) printf("no problem found\n");
    else printf("%zu problem%s\n", c->problems.count, c->problems.count == 1 ? "" : "s");
    for (size_t i = 0; i < listed; i++) print_folded("", 2, c->problems.text[i]);
    if (c->problems.count > listed) printf("  and %zu more\n", c->problems.count - listed);
    if (c->rows_at_fault) printf("What follows is of the rows that can be used.\n");
    for (size_t i = 0; i < arrlenu(c->flags); i++) print_folded("consider: ", 10, c->flags[i]);
    for (size_t i = 0; i < arrlenu(c->data.notes); i++) print_folded("note: ", 6, c->data.notes[i]);
    printf("\n");
}

static double percent(size_t part, size_t whole) {
    return whole ? 100 * (double)part / (double)whole : 0;
}

static void print_records(const checked *c) {
    const profile *p = &c->profile;
    printf("%-14s %zu (%s)\n", "records", p->records, c->set->name);
    printf("%-14s without an observation %zu, with a single time %zu (%.1f %%)\n", "", p->unobserved, p->single,
           percent(p->single, p->records));
    printf("%-14s %zu", "labelled", p->labelled);
    if (c->data.label_times) printf(", %zu labels of times", p->labels);
    printf("\n");
    if (c->data.task == MTAN_TASK_NUMBER) return;
    for (size_t k = 0; k < arrlenu(p->classes) && k < LISTED_CLASSES; k++) {
        printf(c->data.task == MTAN_TASK_LABELS ? "  label " : "  class ");
        print_name(c->data.classes[k]);
        printf(" %9zu  %5.1f %%\n", p->classes[k], percent(p->classes[k], p->labels));
    }
    if (arrlenu(p->classes) > LISTED_CLASSES) printf("  and %zu more classes\n", arrlenu(p->classes) - LISTED_CLASSES);
}

static void print_channel(const checked *c, size_t k) {
    const channel_profile *x = &c->profile.channels[k];
    print_name(c->data.channels[k]);
    printf(" %7zu %9zu %5.1f", x->records, x->observations, 100 * x->share);
    if (x->observations == 0) {
        printf("  never observed\n");
        return;
    }
    printf(" %8.4g %8.4g %8.4g", x->low, x->median, x->high);
    if (x->constant) printf("  constant");
    if (x->codes) printf("  %g x %zu", x->code, x->codes);
    printf("\n");
}

static void print_channels(const checked *c) {
    const size_t n = arrlenu(c->profile.channels);
    printf("\n%-14s %7s %9s %5s %8s %8s %8s  %s\n", "channel", "records", "values", "%time", "least", "median", "most",
           "code?");
    for (size_t k = 0; k < n && k < LISTED_CHANNELS; k++) print_channel(c, k);
    if (n > LISTED_CHANNELS) printf("and %zu more (--json lists all)\n", n - LISTED_CHANNELS);
}

/* " (hours)", or nothing for an unknown unit. */
static const char *unit_text(const checked *c) {
    static char text[32];
    snprintf(text, sizeof text, c->data.unit[0] ? " (%s)" : "%s", c->data.unit);
    return text;
}

static void print_times(const checked *c) {
    const profile *p = &c->profile;
    const double *q = p->stamps_quantile;
    if (p->stamps == 0) printf("\n%-14s none: there is no observation\n", "times");
    else printf("\n%-14s %zu time stamps from %.6g to %.6g%s\n", "times", p->stamps, p->first, p->last, unit_text(c));
    printf("%-14s least %g, quarter %g, median %g, three quarters %g, most %g\n", "per record", q[0], q[1], q[2], q[3],
           q[4]);
    if (isnan(p->gap_median)) printf("%-14s none: no record has two times\n", "gaps");
    else
        printf("%-14s median %.4g, largest %.4g in record %s\n", "gaps", p->gap_median, p->gap_largest,
               field_quote(dataset_name(&c->data, p->gap_record)).text);
    if (isnan(p->sparsity)) printf("%-14s none: there is no observation\n", "sparsity");
    else printf("%-14s %.1f %% of time stamps x channels hold nothing\n", "sparsity", 100 * p->sparsity);
    printf("%-14s ", "duplicates");
    if (p->twins == 0) printf("none\n");
    else
        printf("%zu record%s the observations of an earlier one (%s)\n", p->twins, p->twins == 1 ? " has" : "s have",
               field_quote(dataset_name(&c->data, p->twin_example)).text);
}

static void print_split(const checked *c) {
    const leakage *l = &c->leakage;
    if (!c->has_split) return;
    printf("%-14s %zu train, %zu valid, %zu test\n", "split", arrlenu(c->split.part[SPLIT_TRAIN]),
           arrlenu(c->split.part[SPLIT_VALID]), arrlenu(c->split.part[SPLIT_TEST]));
    if (!l->twins && !l->shared_groups) printf("%-14s none found\n", "leakage");
    else
        printf("%-14s %zu equal records, %zu of %zu groups (%zu records) on both sides\n", "leakage", l->twins,
               l->shared_groups, l->groups, l->shared_records);
}

/* The baselines. */
static void print_rivals(const checked *c) {
    const contest_number *headline = contest_headline(c->rivals, contest_classes_of(&c->plan.config));
    char few[CONTEST_FEW_BYTES];
    if (!c->rivals) return;
    printf("\n");
    contest_heading(stdout, "without a model", &c->rivals[0]);
    for (size_t i = 0; i < arrlenu(c->rivals); i++) contest_row(stdout, c->rivals[i].title, &c->rivals[i]);
    if (headline && contest_few(few, headline)) printf("%s which is better.\n", few);
}

static const char *duration(char text[32], double seconds) {
    if (seconds < 1) snprintf(text, 32, "%.3g ms", 1e3 * seconds);
    else snprintf(text, 32, seconds < 100 ? "%.3g s" : "%.0f s", seconds);
    return text;
}

/* If the steps got less than half of the CPU time, other processes were using the machine and the time says little. */
static void print_time(const checked *c) {
    const cost *x = &c->cost;
    char epoch[32], step[32];
    if (isnan(x->step_seconds)) {
        printf("%-14s not measured: it would take too much memory\n", "time");
        return;
    }
    printf("%-14s about %s per epoch%s: %d x %s (%d threads, %s)\n", "time",
           duration(epoch, x->steps * x->step_seconds), x->rough ? ", roughly" : "", (int)x->steps,
           duration(step, x->step_seconds), (int)c->threads, c->backend);
    if (x->cpu_share < 0.5)
        printf("%-14s (the steps had %.0f %% of the CPUs: is the machine busy?)\n", "", 100 * x->cpu_share);
}

static void print_cost(const checked *c) {
    const mtan_config *m = &c->plan.config;
    const cost *x = &c->cost;
    printf("\n");
    print_folded("suggested", NAME_WIDTH + 1, c->command);
    if (!c->has_cost) return;
    printf("%-14s %zu parameters, %d hidden, ", "model", x->parameters, (int)m->enc_hidden);
    if (m->reference == MTAN_REF_OBSERVED) printf("the record's own times, ");
    else printf("%d reference points, ", (int)m->ref_points);
    printf("batch %d\n", (int)c->plan.batch);
    printf("%-14s %.6g%s\n", "time scale", c->time_scale, unit_text(c));
    print_time(c);
    printf("%-14s %.1f MB for training, %.1f MB for the data\n", "memory", (double)x->bytes / 1e6,
           (double)c->data_bytes / 1e6);
}

void check_print(const checked *c) {
    print_problems(c);
    print_records(c);
    print_channels(c);
    print_times(c);
    print_split(c);
    print_rivals(c);
    print_cost(c);
}

/* ---- for programs ---- */

static void put_text(const char *name, const char *text) {
    printf(", \"%s\": ", name);
    json_string(stdout, text);
}

static void put_count(const char *name, size_t n) {
    printf(", \"%s\": %zu", name, n);
}

static void put_real(const char *name, double x) {
    printf(", \"%s\": ", name);
    json_number(stdout, x);
}

static void put_texts(const char *name, char **texts) {
    printf(", \"%s\": [", name);
    for (size_t i = 0; i < arrlenu(texts); i++) {
        if (i) printf(", ");
        json_string(stdout, texts[i]);
    }
    printf("]");
}

static void put_channel(const checked *c, size_t k) {
    const channel_profile *x = &c->profile.channels[k];
    printf("%s{\"name\": ", k ? ", " : "");
    json_string(stdout, c->data.channels[k]);
    put_count("records", x->records), put_count("observations", x->observations), put_real("share", x->share);
    put_real("min", x->low), put_real("median", x->median), put_real("max", x->high);
    printf(", \"constant\": %s", x->constant ? "true" : "false");
    if (x->codes) put_real("code", x->code), put_count("codes", x->codes);
    printf("}");
}

static void put_profile(const checked *c) {
    const profile *p = &c->profile;
    put_count("records", p->records), put_count("labelled", p->labelled), put_count("unobserved", p->unobserved);
    put_count("single_time", p->single), put_count("observations", p->observations), put_count("labels", p->labels);
    printf(", \"classes\": [");
    for (size_t k = 0; k < arrlenu(p->classes); k++) {
        printf("%s{\"name\": ", k ? ", " : "");
        json_string(stdout, c->data.classes[k]);
        put_count("labels", p->classes[k]);
        printf("}");
    }
    printf("], \"channels\": [");
    for (size_t k = 0; k < arrlenu(p->channels); k++) put_channel(c, k);
    printf("]");
    put_text("time_unit", c->data.unit), put_real("time_first", p->first), put_real("time_last", p->last);
    put_count("time_stamps", p->stamps);
    printf(", \"time_stamps_per_record\": [");
    for (int q = 0; q < 5; q++) {
        if (q) printf(", ");
        json_number(stdout, p->stamps_quantile[q]);
    }
    printf("]");
    put_real("gap_median", p->gap_median), put_real("gap_largest", p->gap_largest), put_real("sparsity", p->sparsity);
    put_count("duplicates", p->twins), put_count("contradicting_duplicates", p->contradicting);
}

static void put_split(const checked *c) {
    const leakage *l = &c->leakage;
    printf(", \"split\": {\"train\": %zu", arrlenu(c->split.part[SPLIT_TRAIN]));
    put_count("valid", arrlenu(c->split.part[SPLIT_VALID])), put_count("test", arrlenu(c->split.part[SPLIT_TEST]));
    printf("}, \"leakage\": {\"equal_records\": %zu", l->twins);
    put_count("groups", l->groups), put_count("shared_groups", l->shared_groups);
    put_count("shared_records", l->shared_records);
    printf("}");
}

static void put_cost(const checked *c) {
    const mtan_config *m = &c->plan.config;
    printf(", \"model\": {\"parameters\": %zu", c->cost.parameters);
    put_count("hidden", (size_t)m->enc_hidden), put_count("ref_points", (size_t)m->ref_points);
    put_count("batch", (size_t)c->plan.batch), put_real("time_scale", c->time_scale);
    printf("}, \"cost\": {\"training_bytes\": %zu", c->cost.bytes);
    put_count("data_bytes", c->data_bytes), put_count("steps", (size_t)c->cost.steps);
    put_real("step_seconds", c->cost.step_seconds), put_real("epoch_seconds", c->cost.steps * c->cost.step_seconds);
    put_real("cpu_share", c->cost.cpu_share);
    printf(", \"rough\": %s", c->cost.rough ? "true" : "false");
    put_count("threads", (size_t)c->threads), put_text("backend", c->backend);
    printf("}");
}

void check_json(const checked *c) {
    printf("{\"data\": ");
    json_string(stdout, c->path);
    put_text("kind", c->set->name);
    put_count("problem_count", c->problems.count);
    put_texts("problems", c->problems.text);
    put_texts("flags", c->flags);
    put_texts("notes", c->data.notes);
    put_profile(c);
    if (c->has_split) put_split(c);
    if (c->rivals) contest_json(stdout, c->rivals);
    put_text("suggested", c->command);
    if (c->has_cost) put_cost(c);
    printf("}\n");
}
