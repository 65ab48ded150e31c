/* mtan eval: measures a model on the held-out records. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "../../data/shown.h"
#include "../report/bands_text.h"
#include "../report/contest_text.h"
#include "../base/json_text.h"
#include "../measure/metrics.h"
#include "../model/session.h"
#include "eval_decisions.h"
#include "eval_groups.h"
#include "eval_numbers.h"
#include "eval_parts.h"

enum { SHARES = 5 };

/* ---- classification ---- */

static void put_measure(metric_query *q, const predictions *p, metric_name which, int32_t draws, int json) {
    q->name = which;
    const interval range = metric_interval(q, p->rows, p->record, draws);
    const double value = metric_drawn(q, NULL, p->rows);
    if (json) put_range(metric_key(which), value, range);
    else put_metric(metric_title(which), "%.4f", value, range);
}

static const char *class_name(const session *s, int32_t k, char number[16]) {
    snprintf(number, 16, "%d", (int)k);
    return k < (int32_t)arrlen(s->data.classes) ? s->data.classes[k] : number;
}

static void put_classes_json(const session *s, const metric_class *table, const int64_t *counts, int32_t C) {
    char number[16];
    json_member(stdout, NULL, "classes"), putchar('[');
    for (int32_t k = 0; k < C; k++) {
        int first = 1;
        fputs(k ? ", {" : "{", stdout), json_key_text(stdout, &first, "name", class_name(s, k, number));
        json_key_count(stdout, &first, "support", (size_t)table[k].support);
        json_key_count(stdout, &first, "predicted", (size_t)table[k].predicted);
        json_key_number(stdout, &first, "precision", table[k].precision);
        json_key_number(stdout, &first, "recall", table[k].recall), json_key_number(stdout, &first, "f1", table[k].f1);
        putchar('}');
    }
    putchar(']'), json_member(stdout, NULL, "confusion"), putchar('[');
    for (int32_t i = 0; i < C; i++) {
        for (int32_t k = 0; k < C; k++) printf("%s%lld", k ? ", " : i ? ", [" : "[", (long long)counts[i * C + k]);
        putchar(']');
    }
    putchar(']');
}

static void put_classes(const session *s, const metric_class *table, int32_t C) {
    char number[16], precision[32], recall[32], f1[32];
    printf("\n%-24s %9s %9s %9s %9s %9s\n", "class", "rows", "predicted", "precision", "recall", "F1");
    for (int32_t k = 0; k < C; k++) {
        if (table[k].support + table[k].predicted == 0) continue;
        shown_put(stdout, class_name(s, k, number), 24, SIZE_MAX);
        printf(" %9lld %9lld %9s %9s %9s\n", (long long)table[k].support, (long long)table[k].predicted,
               shown_number(precision, "%.4f", table[k].precision), shown_number(recall, "%.4f", table[k].recall),
               shown_number(f1, "%.4f", table[k].f1));
    }
}

static void put_tables(const session *s, const predictions *p, int json) {
    const size_t C = (size_t)p->classes;
    int64_t *counts = tool_calloc(C * C, sizeof *counts);
    metric_class *table = tool_calloc(C, sizeof *table);
    metric_confusion(counts, p->p, p->label, p->rows, p->classes);
    metric_per_class(table, counts, p->classes);
    if (json) put_classes_json(s, table, counts, p->classes);
    else put_classes(s, table, p->classes);
    free(counts), free(table);
}

/* The baselines, which need no model, on the same rows. */
static void put_class_rivals(const session *s, const predictions *p, int32_t draws, int json) {
    class_rivals r;
    contest_number *numbers;
    class_rivals_make(&r, &s->data, s->split.part[SPLIT_TRAIN], s->split.part[SPLIT_VALID], s->positions);
    numbers = contest_classes(&r, p, draws);
    put_rivals(s, numbers, json);
    arrfree(numbers);
    class_rivals_free(&r);
}

static void put_all(session *s, const options *o, const predictions *p, const worth *w, const subgroup *groups,
                    int32_t draws, int json) {
    metric_query q = {w->table, METRIC_AUC, NULL};
    put_what(s, o, json);
    if (json) json_key_count(stdout, NULL, "rows", p->rows);
    else printf("%td records of the part '%s', %zu labelled rows\n", arrlen(s->positions), s->part, p->rows);
    for (int i = 0; i < METRICS; i++) put_measure(&q, p, (metric_name)i, draws, json);
    put_class_rivals(s, p, draws, json);
    put_groups(option_text(o, "by", ""), groups, w, json);
    put_decisions(s, p, draws, json);
    put_tables(s, p, json);
    if (json) puts("}");
}

static int eval_classes(session *s, const options *o, int json) {
    const int32_t draws = (int32_t)option_integer(o, "bootstrap", 1000);
    record_column column = {NULL};
    subgroup *groups = NULL;
    predictions p;
    worth w;
    int good;
    if (!session_predict(s, o, &p)) return BAD_USE;
    predictions_drop_unlabelled(&p);
    w = worth_of_classes(&p);
    good = p.rows > 0 || (complain("no record of this part has a label"), 0);
    good = good && option_groups(&column, &groups, s, o, &w, draws);
    if (good) put_all(s, o, &p, &w, groups, draws, json);
    arrfree(groups), record_column_free(&column), worth_free(&w);
    predictions_free(&p);
    return good ? DONE : BAD_USE;
}

/* ---- interpolation ---- */

static void put_error(double x, interval range) {
    char text[64] = "-";
    if (!isnan(x)) snprintf(text, sizeof text, "%.6f", x);
    if (!isnan(x) && !isnan(range.low)) snprintf(text, sizeof text, "%.6f (%.4f-%.4f)", x, range.low, range.high);
    printf("  %-24s", text);
}

/* The unit in which times are printed. */
static band_units session_units(const session *s) {
    const band_units u = {prep_raw_time(&s->bundle.prep, SPLIT_TEST, 1), s->bundle.prep.unit};
    return u;
}

/* The errors at one share of the times: of the model and of the baselines, which fill in values without a model. */
typedef struct share_error {
    double share, forecast; /* forecast: 0 unless a forecast was asked for */
    interpolation_error model;
    contest_number *rivals; /* stb_ds array */
} share_error;

static int measure_share(session *s, const options *o, double share, share_error *e) {
    record_error *each = tool_calloc(arrlenu(s->positions), sizeof *each);
    const int good = session_interpolate(s, o, share, &e->model, each);
    e->share = share, e->forecast = s->source.forecast, e->rivals = NULL;
    if (good)
        e->rivals = contest_curves(&s->data, s->split.part[SPLIT_TRAIN], s->positions, share, each,
                                   (int32_t)option_integer(o, "bootstrap", 1000));
    free(each);
    return good;
}

enum { SHARE_TITLE = 24 };
static const char *share_title(char title[SHARE_TITLE], const share_error *e) {
    if (e->forecast > 0) snprintf(title, SHARE_TITLE, "  last %g", e->forecast);
    else snprintf(title, SHARE_TITLE, "%8.0f %%", 100 * e->share);
    return title;
}

static void put_share_json(const share_error *e, const band_units *units) {
    int first = 1;
    putchar('{');
    if (e->forecast > 0) json_key_number(stdout, &first, "forecast", e->forecast);
    else json_key_number(stdout, &first, "observed", e->share);
    put_range("mse_all", e->model.all, e->model.all_range);
    put_range("mse_held_out", e->model.held, e->model.held_range);
    put_range("mse_truth", e->model.truth, e->model.truth_range);
    json_key_number(stdout, &first, "mse_by_channel", e->model.by_channel);
    json_key_count(stdout, &first, "points", e->model.points);
    json_key_count(stdout, &first, "held_out_points", e->model.held_points);
    contest_json(stdout, e->rivals);
    bands_json(stdout, &e->model.bands, units);
    putchar('}');
}

static void put_share(const share_error *e) {
    char title[SHARE_TITLE];
    printf("%10s", share_title(title, e));
    put_error(e->model.all, e->model.all_range), put_error(e->model.held, e->model.held_range);
    put_error(e->model.truth, e->model.truth_range);
    putchar('\n');
}

/* A table of the headline number. */
static void put_fillers(const share_error *errors, int shares) {
    for (int i = 0; i < shares; i++) {
        const contest_number *n = contest_headline(errors[i].rivals, 0);
        char title[SHARE_TITLE];
        if (!n) continue;
        if (i == 0) putchar('\n'), contest_heading(stdout, n->title, n);
        contest_row(stdout, share_title(title, &errors[i]), n);
    }
}

static void put_shares(const session *s, const options *o, const share_error *errors, int shares, int json) {
    const band_units units = session_units(s);
    put_what(s, o, json);
    if (json) json_member(stdout, NULL, "interpolation"), putchar('[');
    else
        printf("%td records of the part '%s'; mean squared errors in the model's units, 95 %% intervals\n%10s  %-26s  "
               "%-26s  %-26s\n",
               arrlen(s->positions), s->part, s->source.forecast > 0 ? "held out" : "observed", "all points",
               "held out", "true curve");
    for (int i = 0; i < shares; i++) {
        if (json) fputs(i ? ", " : "", stdout), put_share_json(&errors[i], &units);
        else put_share(&errors[i]);
    }
    if (json) putchar(']');
    else put_fillers(errors, shares), bands_put(stdout, &errors[0].model.bands, &units);
    put_verdict(s, contest_headline(errors[0].rivals, 0), json);
    if (json) puts("}");
}

/* One row for the share asked for, or five for the shares of the paper's table. */
static int eval_curves(session *s, const options *o, int json) {
    const int one = option_given(o, "observed") || !(s->source.observed < 1) || s->source.forecast > 0;
    const int shares = one ? 1 : SHARES;
    const double asked = option_number(o, "observed", 1);
    share_error errors[SHARES];
    int measured = 0;
    if (option_given(o, "by")) return complain("--by is for models that predict labels, not curves");
    while (measured < shares && measure_share(s, o, one ? asked : 0.5 + 0.1 * measured, &errors[measured])) measured++;
    if (measured == shares) put_shares(s, o, errors, shares, json);
    for (int i = 0; i < measured; i++) arrfree(errors[i].rivals);
    return measured == shares ? DONE : BAD_USE;
}

int command_eval(const options *o) {
    const int json = option_given(o, "json");
    session s;
    int status;
    if (!session_open(&s, o, o->argument[0])) return BAD_USE;
    session_explain(&s);
    status = s.source.interpolation                            ? eval_curves(&s, o, json)
             : s.bundle.model.config.task == MTAN_TASK_CLASSES ? eval_classes(&s, o, json)
                                                               : eval_numbers(&s, o, json);
    session_close(&s);
    return status;
}
