/* See flags.h. */
#include "flags.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/field.h"
#include "../../data/percentile.h"

enum {
    FEW_RECORDS = 5,   /* of a class: fewer cannot be both trained on and measured */
    MANY_NUMBERS = 20, /* more different labels that are all numbers look like a quantity */
    NAMED = 5          /* names that a sentence lists */
};
static const double RARE_CHANNEL = 0.01; /* of the records */
static const double RARE_CLASS = 0.05;   /* of the labels, with two classes */
static const double COMMON_CLASS = 0.9;  /* of the labels, with any number of classes */
static const double IDLE = 0.25;         /* of the reference points */

static void flag(char ***flags, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    arrput(*flags, tool_text(text));
}

/* A text with the first few names and their counts; and the number of names. */
typedef struct naming {
    char text[512];
    size_t count;
} naming;

static void name_one(naming *n, const char *name, size_t count) {
    const size_t used = strlen(n->text);
    if (n->count < NAMED)
        snprintf(n->text + used, sizeof n->text - used, "%s%.60s: %zu", used ? ", " : "", field_quote(name).text,
                 count);
    else if (n->count == NAMED) snprintf(n->text + used, sizeof n->text - used, ", ...");
    n->count++;
}

/* ---- labels ---- */

static void flag_few(char ***flags, const profile *p, const dataset *d) {
    naming n = {"", 0};
    for (size_t k = 0; k < arrlenu(p->classes); k++)
        if (p->classes[k] < FEW_RECORDS) name_one(&n, d->classes[k], p->classes[k]);
    if (n.count > 0)
        flag(flags,
             "classes: %zu of %zu have fewer than %d labels (%s): they cannot be learned and measured both; merge them "
             "or "
             "leave them out",
             n.count, arrlenu(p->classes), FEW_RECORDS, n.text);
}

static void flag_imbalance(char ***flags, const profile *p, const dataset *d) {
    const size_t C = arrlenu(p->classes);
    size_t most = 0, least = 0;
    for (size_t k = 0; k < C; k++) {
        if (p->classes[k] > p->classes[most]) most = k;
        if (p->classes[k] < p->classes[least]) least = k;
    }
    if (C < 2 || p->labels == 0) return;
    const double common = (double)p->classes[most] / (double)p->labels;
    const double rare = (double)p->classes[least] / (double)p->labels;
    if (common > COMMON_CLASS || (C == 2 && rare < RARE_CLASS))
        flag(flags,
             "classes: %.60s has %.1f %% of the labels, so who always says that is right as often: look at AUC and "
             "AUPRC "
             "instead of the accuracy, select by them (--select auc), and try --class-weights balanced",
             field_quote(d->classes[most]).text, 100 * common);
}

static int is_number(const char *text) {
    char *end;
    (void)strtod(text, &end);
    return end > text && *end == 0;
}

/* Warns about labels that are true, or false, in hardly any row. */
static void flag_rare_labels(char ***flags, const profile *p, const dataset *d) {
    naming n = {"", 0};
    for (size_t k = 0; k < arrlenu(p->classes); k++)
        if (p->classes[k] < FEW_RECORDS || p->labels - p->classes[k] < FEW_RECORDS)
            name_one(&n, d->classes[k], p->classes[k]);
    if (n.count > 0)
        flag(flags,
             "labels: %zu of %zu are true, or false, in fewer than %d rows (true: %s): they cannot be learned and "
             "measured both; leave them out",
             n.count, arrlenu(p->classes), FEW_RECORDS, n.text);
}

/* Returns 1 when the labels are not classes, or look like a quantity: then the warnings for classes do not apply. */
static int flag_numbers(char ***flags, const profile *p, const dataset *d) {
    const size_t C = arrlenu(d->classes);
    if (d->task == MTAN_TASK_NUMBER) flag(flags, "labels: a number to predict; if they are classes, --task classes");
    if (d->task == MTAN_TASK_LABELS) flag_rare_labels(flags, p, d);
    if (d->task != MTAN_TASK_CLASSES) return 1;
    for (size_t k = 0; k < C; k++)
        if (!is_number(d->classes[k])) return 0;
    if (C > MANY_NUMBERS)
        flag(flags,
             "labels: %zu different numbers look like a quantity, but each is taken as a class of its own: --task "
             "number "
             "predicts them; as classes, cut them into a few ranges with names",
             C);
    return C > MANY_NUMBERS;
}

/* ---- channels ---- */

/* Channels that are never observed are marked in the table instead. */
static void flag_channels(char ***flags, const profile *p, const dataset *d) {
    const double least = fmax(2, RARE_CHANNEL * (double)p->records);
    naming n = {"", 0};
    for (size_t k = 0; k < arrlenu(p->channels); k++) {
        const size_t records = p->channels[k].records;
        if (records > 0 && (double)records < least) name_one(&n, d->channels[k], records);
    }
    if (n.count > 0)
        flag(flags, "channels: %zu of %zu are observed in hardly any record (%s): little can be learned of them",
             n.count, arrlenu(p->channels), n.text);
}

void flags_find(char ***flags, const profile *p, const dataset *d) {
    if (!flag_numbers(flags, p, d)) flag_few(flags, p, d), flag_imbalance(flags, p, d);
    flag_channels(flags, p, d);
}

/* ---- times ---- */

static double within(double x) {
    return fmin(fmax(x, 0), 1);
}

static double median_of(double *x) {
    const size_t n = arrlenu(x);
    if (n == 0) return NAN;
    sort_ascending(x, n);
    return percentile_sorted(x, n, 50);
}

idle_time idle_time_of(const dataset *prepared, const int32_t *positions) {
    double *before = NULL, *after = NULL;
    idle_time t;
    for (size_t i = 0; i < arrlenu(positions); i++) {
        const dataset_record *r = &prepared->records[positions[i]];
        const mtan_event *e = dataset_events(prepared, r);
        if (r->n_events == 0) continue;
        arrput(before, within((double)e[0].time));
        arrput(after, 1 - within((double)e[r->n_events - 1].time));
    }
    t.before = median_of(before), t.after = median_of(after);
    arrfree(before), arrfree(after);
    return t;
}

void flags_idle_time(char ***flags, idle_time t, int own) {
    const char *advice = ": records of very different length share one time scale";
    if (!(t.before + t.after > IDLE)) return;
    if (t.before > t.after)
        advice =
            own ? ": --origin record counts times from each record's first observation" : ": nothing is observed there";
    flag(
        flags,
        "times: in a typical record %.0f %% of the reference points lie before the first observation and %.0f %% after "
        "the last%s",
        100 * t.before, 100 * t.after, advice);
}
